#include "core/half.h"

void ttn_half_f32_to_bf16(int64_t n, const float *x, uint16_t *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_f32_to_bf16(x[i]);
}

void ttn_half_bf16_to_f32(int64_t n, const uint16_t *x, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_bf16_to_f32(x[i]);
}

void ttn_half_f32_to_f16(int64_t n, const float *x, uint16_t *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_f32_to_f16(x[i]);
}

void ttn_half_f16_to_f32(int64_t n, const uint16_t *x, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_f16_to_f32(x[i]);
}

void ttn_half_f64_to_bf16(int64_t n, const double *x, uint16_t *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_f64_to_bf16(x[i]);
}

void ttn_half_bf16_to_f64(int64_t n, const uint16_t *x, double *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_bf16_to_f64(x[i]);
}

void ttn_half_f64_to_f16(int64_t n, const double *x, uint16_t *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_f64_to_f16(x[i]);
}

void ttn_half_f16_to_f64(int64_t n, const uint16_t *x, double *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_f16_to_f64(x[i]);
}
