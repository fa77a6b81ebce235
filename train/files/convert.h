/* Numbers of a file in another type: widened exactly, narrowed once (to nearest, ties to even), and counted where that
 * loses something.
 *
 * Exact also for denormals, whatever the mode of the thread: the program runs with flush-to-zero, under which the
 * processor's own conversions between float and double are not.
 */
#ifndef TTN_CONVERT_H
#define TTN_CONVERT_H

#include <stdint.h>
#include "core/tensor.h"

/* Sums over calls; start with {0}. */
typedef struct {
    int64_t nonfinite;       /* NaN and infinities in the source */
    int64_t first_nonfinite; /* which element of all that came through; 0 when there is none */
    int64_t overflowed;      /* finite numbers that became infinite */
    int64_t rounded;         /* finite numbers that became other finite numbers */
    int64_t n;               /* elements so far */
} ttn_converted;

/* y[i] = x[i], i < n. Both types are real ones (TTN_REAL, F32, BF16, F16, F64); x and y do not overlap and may lie at
 * any address. NaN stays NaN. */
void ttn_convert(int64_t n, ttn_dtype from, const void *x, ttn_dtype to, void *y, ttn_converted *sum);

/* Only count what is not finite. */
void ttn_convert_check(int64_t n, ttn_dtype type, const void *x, ttn_converted *sum);

/* The two that core/half.h does not have. */
double ttn_f32_to_f64(float x);
float ttn_f64_to_f32(double x);

#endif
