/* What the kernels of rotary share. */
#ifndef TTN_ROTARY_H
#define TTN_ROTARY_H

#include <math.h>
#include <stdint.h>
#include "core/real.h"

typedef struct {
    int64_t heads;
    double base;
    int64_t form; /* ttn_rotary_form */
} ttn_rotary_attributes;

/* f_j of a head of 2 `half` channels */
TTN_HD double ttn_rotary_frequency(double base, int64_t j, int64_t half)
{
    return pow(base, -(double)j / (double)half);
}

/* The pair (a, b) turned. */
TTN_HD real ttn_rotary_a(real a, real b, real cosine, real sine)
{
    return a * cosine - b * sine;
}
TTN_HD real ttn_rotary_b(real a, real b, real cosine, real sine)
{
    return b * cosine + a * sine;
}

#endif
