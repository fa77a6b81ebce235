/* Text that goes to a person: cut to its room, and nothing in it that a terminal obeys. And what is a character in it. */
#ifndef TTN_TEXT_H
#define TTN_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "core/api.h"

/* The UTF-8 character that n >= 1 bytes begin with: its length, 1 to 4, and in *code (which may be NULL) its number. 0:
 * they begin with none (RFC 3629: bytes that are missing or no continuation, a form longer than it need be, a
 * surrogate, a number above U+10FFFF). */
int ttn_text_character(const char *text, size_t n, uint32_t *code);

/* Part of a UTF-8 character, but not its first byte. */
static inline int ttn_text_is_continuation(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* Append to text, which has room bytes in all (at least 4). What does not fit is cut, never inside a UTF-8 character,
 * and "..." stands at the end; nothing more is appended to a text that was cut. */
void ttn_text_append(char *text, size_t room, const char *format, va_list args) TTN_PRINTF(3, 0);

/* A path as messages show it: whole, or where it is longer than TTN_TAIL bytes "..." and its end, which begins with a
 * whole UTF-8 character. ret has TTN_TAIL_ROOM bytes; returns ret. A message of TTN_ERROR_TEXT bytes has room for two
 * such paths and a sentence. */
enum { TTN_TAIL = 300, TTN_TAIL_ROOM = TTN_TAIL + sizeof "..." };
char *ttn_text_tail(const char *path, char *ret);

/* "s" behind a word of which there are n, "" for one. */
static inline const char *ttn_text_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* n bytes as UTF-8 without control characters: each byte that is no UTF-8, and each control character (also U+0080 to U+009F,
 * which some terminals obey) but a tab and Ctrl-A, becomes U+FFFD. ret has 3 n + 1 bytes. */
typedef struct {
    int64_t invalid, controls;           /* bytes, characters */
    size_t first_invalid, first_control; /* where they are in raw */
} ttn_text_replaced;
ttn_text_replaced ttn_text_clean(const char *raw, size_t n, char *ret);

/* Would a spreadsheet take a cell with this text for a formula? Tables write a ' before it. */
int ttn_text_is_formula(const char *text);

/* Control characters become '?': a file's bytes may stand in a message, and a message may reach a terminal. */
void ttn_text_disarm(char *text);

#endif
