/* rmsnorm's formulas (autograd/ops/rmsnorm.c), for the CPU and the GPU kernel. */
#ifndef TTN_RMSNORM_H
#define TTN_RMSNORM_H

#include "core/real.h"

/* r, of the sum of squares over a row's C elements */
TTN_HD real ttn_rmsnorm_rstd(real squares, int64_t C, real eps)
{
    return 1 / sqrt(squares / (real)C + eps);
}

/* dx of one element with h = g dy; mean_hn: mean(h n) */
TTN_HD real ttn_rmsnorm_grad(real h, real x, real r, real mean_hn)
{
    return r * (h - x * r * mean_hn);
}

#endif
