/* The bits of a number as an integer, and back. Compilers make nothing of it: loops over these vectorise. */
#ifndef TTN_BITS_H
#define TTN_BITS_H

#include <stdint.h>
#include <string.h>
#include "core/real.h"

TTN_HD uint32_t ttn_f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TTN_HD float ttn_f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

TTN_HD uint64_t ttn_f64_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TTN_HD double ttn_f64_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
