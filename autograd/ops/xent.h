/* Cross-entropy: what the CPU and the GPU kernel share. The letters are those on top of autograd/ops/xent.c. */
#ifndef TTN_XENT_H
#define TTN_XENT_H

#include <stdint.h>
#include "core/real.h"
#include "core/tensor.h"
#include "core/vecmath.h"

typedef struct {
    int64_t ignore;
    double smoothing;
} ttn_xent_attributes;

enum { TTN_XENT_LOGITS, TTN_XENT_TARGET, TTN_XENT_WEIGHT };
enum { TTN_XENT_SUM, TTN_XENT_COUNT, TTN_XENT_CORRECT, TTN_XENT_N_STAT };

/* What a row is: it does not count, or its largest logit is (not) that of the target. */
enum { TTN_XENT_OUT, TTN_XENT_WRONG, TTN_XENT_RIGHT };

/* The target of row r. type: u8, i32 or i64. */
TTN_HD int64_t ttn_xent_target(ttn_dtype type, const void *target, int64_t r)
{
    switch (type) {
    case TTN_U8:
        return ((const uint8_t *)target)[r];
    case TTN_I32:
        return ((const int32_t *)target)[r];
    default:
        return ((const int64_t *)target)[r];
    }
}

/* The loss of a row from log s, x[t] - m and the mean of x - m. A part whose share is 0 is not looked at: 0 times infinity
 * would be NaN. */
TTN_HD double ttn_xent_loss(double smoothing, double log_s, double target_below, double mean_below)
{
    double loss = log_s;
    if (smoothing < 1) loss -= (1 - smoothing) * target_below;
    if (smoothing > 0) loss -= smoothing * mean_below;
    return loss;
}

/* The gradient of one row: g (exp(x - m) inverse - smooth), and at the target `certain` less inside the brackets. */
typedef struct {
    real m, inverse, g;
    real smooth;  /* eps / V */
    real certain; /* 1 - eps */
} ttn_xent_slope;

TTN_HD real ttn_xent_slope_at(const ttn_xent_slope *f, real x)
{
    return f->g * (ttn_exp(x - f->m) * f->inverse - f->smooth);
}

/* p - 1 comes first: what is left of two numbers near 1 in a row that is nearly certain. */
TTN_HD real ttn_xent_slope_at_target(const ttn_xent_slope *f, real x)
{
    const real p = ttn_exp(x - f->m) * f->inverse;
    return f->g * ((p - f->certain) - f->smooth);
}

#endif
