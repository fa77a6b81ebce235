/* bf16 and f16, numbers of 16 bits, from and to float and double.
 *
 * bf16 is the upper half of a float: 8 bits of exponent, 7 of fraction. f16 (IEEE 754 binary16) has 5 and 10: normal
 * from 2^-14, in steps of 2^-24 below, 65504 at most. Both are passed around as their bits.
 *
 * Widening is exact. Narrowing rounds once, to nearest, ties to even; from double too, where a number just above a
 * midpoint would otherwise become the midpoint first, and then perhaps go down. What is beyond the largest number by
 * half a step or more becomes infinite. Denormals are numbers like others, whatever the mode of the thread: the
 * arithmetic is on bits, but for sums whose results are normal or 0, to which a denormal operand (below 2^-126) makes
 * no difference. NaN stays NaN: quiet, its sign and the upper bits of its payload kept.
 */
#ifndef TTN_HALF_H
#define TTN_HALF_H

#include "core/bits.h"

TTN_HD uint16_t ttn_f32_to_bf16(float x)
{
    uint32_t bits = ttn_f32_bits(x), size = bits & 0x7fffffff;
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16; /* to infinity, too: the carry runs on */
    uint32_t nan = (bits >> 16) | 0x0040;
    return (uint16_t)(size > 0x7f800000 ? nan : rounded);
}

TTN_HD float ttn_bf16_to_f32(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    return ttn_f32_of_bits((bits & 0x7fffffff) > 0x7f800000 ? bits | 0x00400000 : bits);
}

/* Denormals of f16 count steps of 2^-24, which is the last place of 0.5f: |x| + 0.5f is rounded to that, and the
 * lowest bits of the sum are the number of steps. A sum has no shift by a variable amount, and no branch. */
TTN_HD uint16_t ttn_f32_to_f16(float x)
{
    const uint32_t rebias = (127u - 15u) << 23, last_place = 1u << 13, least = 0x38800000, most = 0x47800000;
    uint32_t bits = ttn_f32_bits(x), size = bits & 0x7fffffff;
    uint32_t normal = (size - rebias + (last_place / 2 - 1) + ((size >> 13) & 1)) >> 13;
    uint32_t denormal = ttn_f32_bits(ttn_f32_of_bits(size) + 0.5f) - 0x3f000000;
    uint32_t y = size < least ? denormal : normal; /* least: 2^-14 */
    y = size >= most ? 0x7c00 : y;                 /* most: 2^16; a carry gets to infinity from 65520 on */
    y = size > 0x7f800000 ? 0x7e00 | ((size >> 13) & 0x01ff) : y;
    return (uint16_t)(((bits >> 16) & 0x8000) | y);
}

TTN_HD float ttn_f16_to_f32(uint16_t x)
{
    uint32_t size = x & 0x7fff;
    uint32_t normal = (size << 13) + ((127u - 15u) << 23);
    uint32_t denormal = ttn_f32_bits(ttn_f32_of_bits(0x3f000000 + size) - 0.5f);
    uint32_t y = size < 0x0400 ? denormal : normal;
    y = size >= 0x7c00 ? 0x7f800000 | (size << 13) : y;
    y = size > 0x7c00 ? y | 0x00400000 : y;
    return ttn_f32_of_bits(((uint32_t)(x & 0x8000) << 16) | y);
}

/* The same from and to double, for a type of one bit of sign, n_fraction of fraction and the rest of exponent; after
 * inlining n_fraction is a constant. `unit` is the number whose last place is a step between the type's denormals. */
TTN_HD uint16_t ttn_half_of_f64(double x, int n_fraction)
{
    const uint64_t bias = ((uint64_t)1 << (14 - n_fraction)) - 1, infinity = (2 * bias + 1) << n_fraction;
    const int n_dropped = 52 - n_fraction;
    const uint64_t half_place = (uint64_t)1 << (n_dropped - 1), quiet = (uint64_t)1 << (n_fraction - 1);
    const uint64_t unit = (1023 + 1 - bias - (uint64_t)n_fraction + 52) << 52;
    const int64_t least = (int64_t)((1023 + 1 - bias) << 52), most = (int64_t)((1023 + 1 + bias) << 52);
    uint64_t bits = ttn_f64_bits(x), size = bits & 0x7fffffffffffffff;
    int64_t signed_size = (int64_t)size; /* AVX2 compares 64-bit integers with a sign only, and shifts without */
    uint64_t normal = (size - ((1023 - bias) << 52) + (half_place - 1) + ((size >> n_dropped) & 1)) >> n_dropped;
    uint64_t denormal = ttn_f64_bits(ttn_f64_of_bits(size) + ttn_f64_of_bits(unit)) - unit;
    uint64_t y = signed_size < least ? denormal : normal;
    y = signed_size >= most ? infinity : y;
    uint64_t nan = infinity | quiet | ((size & 0x000fffffffffffff) >> n_dropped);
    y = signed_size > 0x7ff0000000000000 ? nan : y;
    return (uint16_t)(((bits >> 48) & 0x8000) | y);
}

TTN_HD double ttn_half_to_f64(uint16_t x, int n_fraction)
{
    const uint64_t bias = ((uint64_t)1 << (14 - n_fraction)) - 1;
    const int32_t infinity = (int32_t)((2 * bias + 1) << n_fraction), least = 1 << n_fraction;
    const int n_dropped = 52 - n_fraction;
    const uint64_t unit = (1023 + 1 - bias - (uint64_t)n_fraction + 52) << 52;
    int32_t size = x & 0x7fff;
    uint64_t wide = (uint64_t)size;
    uint64_t normal = (wide << n_dropped) + ((1023 - bias) << 52);
    uint64_t denormal = ttn_f64_bits(ttn_f64_of_bits(unit + wide) - ttn_f64_of_bits(unit));
    uint64_t y = size < least ? denormal : normal;
    y = size >= infinity ? 0x7ff0000000000000 | (wide << n_dropped) : y;
    y = size > infinity ? y | 0x0008000000000000 : y;
    return ttn_f64_of_bits(((uint64_t)(x & 0x8000) << 48) | y);
}

TTN_HD uint16_t ttn_f64_to_bf16(double x)
{
    return ttn_half_of_f64(x, 7);
}
TTN_HD double ttn_bf16_to_f64(uint16_t x)
{
    return ttn_half_to_f64(x, 7);
}
TTN_HD uint16_t ttn_f64_to_f16(double x)
{
    return ttn_half_of_f64(x, 10);
}
TTN_HD double ttn_f16_to_f64(uint16_t x)
{
    return ttn_half_to_f64(x, 10);
}

/* The same for arrays of n, single-threaded; they do not overlap. An element's bits depend on its value alone. */
void ttn_half_f32_to_bf16(int64_t n, const float *x, uint16_t *y);
void ttn_half_bf16_to_f32(int64_t n, const uint16_t *x, float *y);
void ttn_half_f32_to_f16(int64_t n, const float *x, uint16_t *y);
void ttn_half_f16_to_f32(int64_t n, const uint16_t *x, float *y);
void ttn_half_f64_to_bf16(int64_t n, const double *x, uint16_t *y);
void ttn_half_bf16_to_f64(int64_t n, const uint16_t *x, double *y);
void ttn_half_f64_to_f16(int64_t n, const double *x, uint16_t *y);
void ttn_half_f16_to_f64(int64_t n, const uint16_t *x, double *y);

#endif
