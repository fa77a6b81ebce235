/* headnorm's formulas (autograd/ops/headnorm.c), for the CPU and the GPU kernel. */
#ifndef TTN_HEADNORM_H
#define TTN_HEADNORM_H

#include <math.h>
#include <stdint.h>
#include "core/real.h"

typedef struct {
    int64_t heads;
    double eps;
} ttn_headnorm_attributes;

enum { TTN_HEADNORM_GAIN = 1 };

/* 1 / r, of the sum of squares over a head's D channels */
TTN_HD real ttn_headnorm_inverse(real squares, int64_t D, real eps)
{
    return 1 / sqrt(squares / (real)D + eps);
}

/* dx of one channel: factor = g / r, mean = mean over the head's channels of dy n */
TTN_HD real ttn_headnorm_grad(real dy, real x, real inverse, real factor, real mean)
{
    return factor * (dy - x * inverse * mean);
}

#endif
