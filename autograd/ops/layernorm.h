/* layernorm's formulas (autograd/ops/layernorm.c), for the CPU and the GPU kernel. */
#ifndef TTN_LAYERNORM_H
#define TTN_LAYERNORM_H

#include "core/real.h"

/* r, of the sums over a row's C elements of d and d^2, d = x - m; *ret_offset: mean(d), what rounding m has lost. */
TTN_HD real ttn_layernorm_rstd(real d, real dd, int64_t C, real eps, real *ret_offset)
{
    const real offset = d / (real)C;
    const real variance = dd / (real)C - offset * offset;
    *ret_offset = offset;
    return 1 / sqrt((variance > 0 ? variance : 0) + eps);
}

/* n */
TTN_HD real ttn_layernorm_normal(real x, real m, real offset, real r)
{
    return (x - m - offset) * r;
}

/* dx of one element with h = g dy; mean_hn: mean(h n) */
TTN_HD real ttn_layernorm_grad(real h, real n, real r, real mean_h, real mean_hn)
{
    return r * (h - mean_h - n * mean_hn);
}

#endif
