/* What scale's kernels share, on the CPU and on a GPU. */
#ifndef TTN_SCALE_H
#define TTN_SCALE_H

#include "autograd/op.h"

typedef struct {
    double factor;
} ttn_scale_attributes;

/* The factor as the kernels use it. */
static inline real ttn_scale_factor(const ttn_sig *s)
{
    return (real)((const ttn_scale_attributes *)s->attr)->factor;
}

#endif
