#include <stdio.h>
#include <string.h>
#include "core/text.h"

/* Part of a UTF-8 sequence, but not its first byte. */
static int is_continuation(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* text holds the first room - 1 bytes of something longer: end in "...", never inside a character. */
static void mark_cut(char *text, size_t room)
{
    static const char dots[] = "...";
    size_t at = room - sizeof dots;
    while (at > 0 && is_continuation(text[at]))
        at--;
    memcpy(text + at, dots, sizeof dots);
}

void ttn_text_append(char *text, size_t room, const char *format, va_list args)
{
    size_t used = strlen(text);
    int wanted = vsnprintf(text + used, room - used, format, args);
    if (wanted < 0)
        snprintf(text, room, "(no message)"); /* a broken format or character set */
    else if ((size_t)wanted >= room - used)
        mark_cut(text, room);
}

void ttn_text_disarm(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (*c < ' ' || *c == 0x7F) *c = '?';
        /* U+0080 to U+009F: a terminal in UTF-8 obeys U+009B as it does ESC [ */
        if (c[0] == 0xC2 && c[1] >= 0x80 && c[1] <= 0x9F) c[0] = c[1] = '?';
    }
}
