/* Numbers as people write them: 3e-4, 1_000_000, 64k, 2GiB, 90s, 1.5h. What could be read in two ways is not read.
 *
 *     number   [+-] digits [. digits] [e [+-] digits], '_' between two digits, then a unit, spaces before it or not
 *     counts   k M G T                       1,000 each time: 64k rows are 64,000
 *     bytes    k M G T  kB MB GB TB          1,000 each time
 *              Ki Mi Gi Ti  KiB MiB GiB TiB  1,024 each time; B and no unit: bytes
 *     seconds  ms s m min h d, no unit: seconds; parts add up from large to small: 1h30m
 *
 * No octal and no hexadecimal: 010 and 0x10 are refused. So are inf and nan, decimal commas, numbers of more than 64 bytes,
 * and what does not fit. An integer may be written 1e3 or 1.5k as long as it is whole, and is exact. Nothing here depends on
 * the locale.
 */
#ifndef TTN_NUMBER_H
#define TTN_NUMBER_H

#include <stdint.h>
#include "core/status.h"

typedef enum { TTN_UNIT_COUNT, TTN_UNIT_BYTES, TTN_UNIT_SECONDS } ttn_number_unit;

/* TTN_EINVAL with a sentence that begins with the text in quotes and says what is wrong and what to write. Bytes and
 * seconds are not negative. */
TTN_MUST_USE ttn_status ttn_number_integer(const char *text, ttn_number_unit unit, int64_t *ret, ttn_error *err);
TTN_MUST_USE ttn_status ttn_number_real(const char *text, ttn_number_unit unit, double *ret, ttn_error *err);

/* The shortest text that reads back to the same value, to the bit: 2GiB, 90m, 0.0003. It has TTN_NUMBER_TEXT bytes; returns
 * text. value is finite, and not negative where the unit is bytes or seconds. */
enum { TTN_NUMBER_TEXT = 48 };
char *ttn_number_integer_text(int64_t value, ttn_number_unit unit, char *text);
char *ttn_number_real_text(double value, ttn_number_unit unit, char *text);

#endif
