#include <stdio.h>
#include <string.h>
#include "core/text.h"

int ttn_text_character(const char *text, size_t n, uint32_t *code)
{
    const unsigned char first = (unsigned char)text[0];
    const int length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (length == 0 || (size_t)length > n) return 0;
    uint32_t number = length == 1 ? first : first & (0x7Fu >> length);
    for (int i = 1; i < length; i++) {
        if (!ttn_text_is_continuation(text[i])) return 0;
        number = number << 6 | ((unsigned char)text[i] & 0x3Fu);
    }
    const int is_overlong = (length == 3 && number < 0x800) || (length == 4 && number < 0x10000);
    const int is_surrogate = number >= 0xD800 && number <= 0xDFFF;
    if (is_overlong || is_surrogate || number > 0x10FFFF) return 0;
    if (code) *code = number;
    return length;
}

static const char dots[] = "...";

/* More of them in a row are no UTF-8, and not to be looked through. */
enum { MOST_CONTINUATIONS = 3 };

/* text holds the first room - 1 bytes of something longer: end in "...", never inside a character. */
static void mark_cut(char *text, size_t room)
{
    size_t at = room - sizeof dots;
    for (int i = 0; i < MOST_CONTINUATIONS && at > 0 && ttn_text_is_continuation(text[at]); i++)
        at--;
    memcpy(text + at, dots, sizeof dots);
}

/* Did mark_cut end here? It leaves at most three bytes of the room, those of a character that did not fit. A text that
 * ends so by itself loses at most three bytes of what would have followed. */
static int was_cut(const char *text, size_t used, size_t room)
{
    const size_t n = sizeof dots - 1;
    return used >= n && used + sizeof dots >= room && memcmp(text + used - n, dots, n) == 0;
}

void ttn_text_append(char *text, size_t room, const char *format, va_list args)
{
    size_t used = strlen(text);
    if (was_cut(text, used, room)) return;
    int wanted = vsnprintf(text + used, room - used, format, args);
    if (wanted < 0)
        snprintf(text, room, "(no message)"); /* a broken format or character set */
    else if ((size_t)wanted >= room - used)
        mark_cut(text, room);
}

char *ttn_text_tail(const char *path, char *ret)
{
    size_t n = strlen(path);
    if (n <= TTN_TAIL) {
        memcpy(ret, path, n + 1);
        return ret;
    }
    const char *tail = path + n - TTN_TAIL;
    for (int i = 0; i < MOST_CONTINUATIONS && ttn_text_is_continuation(*tail); i++)
        tail++;
    snprintf(ret, TTN_TAIL_ROOM, "%s%s", dots, tail);
    return ret;
}

void ttn_text_disarm(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (*c < ' ' || *c == 0x7F) *c = '?';
        /* U+0080 to U+009F: a terminal in UTF-8 obeys U+009B as it does ESC [ */
        if (c[0] == 0xC2 && c[1] >= 0x80 && c[1] <= 0x9F) c[0] = c[1] = '?';
    }
}

/* Nearly all texts have nothing to be replaced. */
static int is_plain(const char *text, size_t n)
{
    int special = 0;
    for (size_t i = 0; i < n; i++)
        special |= (unsigned char)(text[i] - ' ') >= 0x7F - ' ';
    return !special;
}

static int is_control(uint32_t code)
{
    return (code < ' ' && code != '\t' && code != 1) || (code >= 0x7F && code < 0xA0);
}

ttn_text_replaced ttn_text_clean(const char *raw, size_t n, char *ret)
{
    static const char replacement[] = "\xef\xbf\xbd";
    ttn_text_replaced r = {0};
    if (is_plain(raw, n)) {
        if (n > 0) memcpy(ret, raw, n);
        ret[n] = 0;
        return r;
    }
    for (size_t i = 0; i < n;) {
        uint32_t code = 0;
        const int length = ttn_text_character(raw + i, n - i, &code);
        if (length > 0 && !is_control(code)) {
            memcpy(ret, raw + i, (size_t)length);
            ret += length;
            i += (size_t)length;
            continue;
        }
        if (length == 0 && r.invalid++ == 0) r.first_invalid = i;
        if (length > 0 && r.controls++ == 0) r.first_control = i;
        memcpy(ret, replacement, sizeof replacement - 1);
        ret += sizeof replacement - 1;
        i += length > 0 ? (size_t)length : 1;
    }
    *ret = 0;
    return r;
}

int ttn_text_is_formula(const char *text)
{
    return *text && strchr("=+-@\t\r", *text) != NULL;
}
