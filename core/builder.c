#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/builder.h"
#include "core/text.h"

/* Room for n more bytes and a closing 0. */
static int make_room(ttn_builder *b, size_t n)
{
    if (b->failed) return 0;
    if (b->text && b->room - b->n > n) return 1;
    const size_t room = 2 * b->room + n + 1;
    char *text = room > n ? realloc(b->text, room) : NULL;
    if (!text) {
        b->failed = 1;
        return 0;
    }
    b->text = text;
    b->room = room;
    return 1;
}

void ttn_build_bytes(ttn_builder *b, const void *bytes, size_t n)
{
    if (!make_room(b, n)) return;
    if (n > 0) memcpy(b->text + b->n, bytes, n);
    b->n += n;
    b->text[b->n] = 0;
}

void ttn_build(ttn_builder *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !make_room(b, (size_t)n)) return;
    va_start(args, format);
    vsnprintf(b->text + b->n, (size_t)n + 1, format, args);
    va_end(args);
    b->n += (size_t)n;
}

void ttn_build_word(ttn_builder *b, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%";
    if (*word && word[strspn(word, plain)] == 0) {
        ttn_build(b, "%s", word);
        return;
    }
    /* Between single quotes nothing is special but the quote, which stands outside of them behind a backslash. */
    ttn_build(b, "'");
    for (const char *quote = strchr(word, '\''); quote; quote = strchr(word, '\'')) {
        ttn_build(b, "%.*s'\\''", (int)(quote - word), word);
        word = quote + 1;
    }
    ttn_build(b, "%s'", word);
}

/* Characters of UTF-8 since the last line end. */
static size_t column_of(const ttn_builder *b)
{
    size_t column = 0;
    for (size_t i = b->n; i > 0 && b->text[i - 1] != '\n'; i--)
        column += !ttn_text_is_continuation(b->text[i - 1]);
    return column;
}

void ttn_build_pad(ttn_builder *b, size_t column)
{
    for (size_t at = column_of(b); at < column; at++)
        ttn_build_bytes(b, " ", 1);
}

ttn_status ttn_builder_finish(ttn_builder *b, const char *what, char **ret, ttn_error *err)
{
    ttn_build_bytes(b, "", 0); /* a text of nothing is a text */
    if (b->failed) {
        ttn_builder_drop(b);
        return TTN_FAIL(err, TTN_ENOMEM, "out of memory for %s", what);
    }
    *ret = b->text;
    *b = (ttn_builder){0};
    return TTN_OK;
}

void ttn_builder_drop(ttn_builder *b)
{
    free(b->text);
    *b = (ttn_builder){0};
}
