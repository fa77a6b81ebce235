/* What the kernels of sinusoid share. */
#ifndef TTN_SINUSOID_H
#define TTN_SINUSOID_H

#include <math.h>
#include <stdint.h>
#include "autograd/ops.h"
#include "core/real.h"

typedef struct {
    int64_t offset;
    int64_t form; /* ttn_sinusoid_form */
} ttn_sinusoid_attributes;

/* Frequencies: with an odd C, interleaved, the last one has no cosine. */
static inline int64_t ttn_sinusoid_pairs(const ttn_sinusoid_attributes *a, int64_t C)
{
    return a->form == TTN_SINUSOID_INTERLEAVED ? (C + 1) / 2 : C / 2;
}

/* f_j = 10000^(-j / steps), with so many steps: */
static inline double ttn_sinusoid_steps(const ttn_sinusoid_attributes *a, int64_t C)
{
    if (a->form == TTN_SINUSOID_INTERLEAVED) return (double)C / 2;
    const int64_t half = C / 2;
    return half > 1 ? (double)(half - 1) : 1;
}
TTN_HD double ttn_sinusoid_frequency(int64_t j, double steps)
{
    return pow(10000.0, -(double)j / steps);
}

#endif
