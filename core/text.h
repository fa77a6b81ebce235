/* Text that goes to a person: cut to its room, and nothing in it that a terminal obeys. Shared by status and log. */
#ifndef TTN_TEXT_H
#define TTN_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include "core/api.h"

/* Append to text, which has room bytes in all (at least 4). What does not fit is cut, never inside a UTF-8 character,
 * and "..." stands at the end. */
void ttn_text_append(char *text, size_t room, const char *format, va_list args) TTN_PRINTF(3, 0);

/* Control characters become '?': a file's bytes may stand in a message, and a message may reach a terminal. */
void ttn_text_disarm(char *text);

#endif
