/* exp, log, tanh and erf of arrays: y[i] = f(x[i]) for i in [0, n), single-threaded.
 *
 * y may be x itself; otherwise they do not overlap. Errors, ranges and special values: core/vecmath.h. An
 * element's bits depend on its value alone: not on its place, on n, on alignment or on the compiler.
 */
#ifndef TTN_VEC_H
#define TTN_VEC_H

#include <stdint.h>
#include "core/real.h"

void ttn_vec_exp(int64_t n, const real *x, real *y);
void ttn_vec_log(int64_t n, const real *x, real *y);
void ttn_vec_tanh(int64_t n, const real *x, real *y);
void ttn_vec_erf(int64_t n, const real *x, real *y);

#endif
