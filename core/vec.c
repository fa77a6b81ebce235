#include "core/vec.h"
#include "core/vecmath.h"

/* "simd" promises that iterations do not depend on each other. Without it the compiler checks x and y for overlap
 * and takes a scalar loop when they are the same array. */

void ttn_vec_exp(int64_t n, const real *x, real *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_exp(x[i]);
}

void ttn_vec_log(int64_t n, const real *x, real *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_log(x[i]);
}

void ttn_vec_tanh(int64_t n, const real *x, real *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_tanh(x[i]);
}

void ttn_vec_erf(int64_t n, const real *x, real *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_erf(x[i]);
}
