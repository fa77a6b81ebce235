/* Text that goes to a person: cut to its room, and nothing in it that a terminal obeys. Shared by status and log. */
#ifndef TTN_TEXT_H
#define TTN_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include "core/api.h"

/* Append to text, which has room bytes in all (at least 4). What does not fit is cut, never inside a UTF-8 character,
 * and "..." stands at the end; nothing more is appended to a text that was cut. */
void ttn_text_append(char *text, size_t room, const char *format, va_list args) TTN_PRINTF(3, 0);

/* A path as messages show it: whole, or where it is longer than TTN_TAIL bytes "..." and its end, which begins with a
 * whole UTF-8 character. ret has TTN_TAIL_ROOM bytes; returns ret. A message of TTN_ERROR_TEXT bytes has room for two
 * such paths and a sentence. */
enum { TTN_TAIL = 300, TTN_TAIL_ROOM = TTN_TAIL + sizeof "..." };
char *ttn_text_tail(const char *path, char *ret);

/* Control characters become '?': a file's bytes may stand in a message, and a message may reach a terminal. */
void ttn_text_disarm(char *text);

#endif
