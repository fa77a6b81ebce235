/* Philox 4x32-10: a random number is a function of a 128-bit counter and a 64-bit key, and of nothing else.
 *
 * J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011. For one
 * key the 2^128 counters map one to one to 2^128 outputs, so no two counters of a stream give the same block.
 *
 * CPU and GPU share this file and get the same bits, of the normals too: every product that meets a sum is written as
 * one fused multiply-add, and only + * / sqrt are used, which IEEE 754 rounds in one way. No function of libm comes in.
 */
#ifndef TTN_PHILOX_H
#define TTN_PHILOX_H

#include <stdint.h>
#include <string.h>
#include "core/real.h"

#define TTN_PHILOX_M0 0xD2511F53u
#define TTN_PHILOX_M1 0xCD9E8D57u

/* One of the ten rounds; the key moves on by TTN_PHILOX_KEY_STEP between them. The low halves of the products are
 * written on their own: as the low halves of p0 and p1 they cost clang its vector code, a factor of 4. */
TTN_HD void ttn_philox_round(uint32_t *c0, uint32_t *c1, uint32_t *c2, uint32_t *c3, uint32_t k0, uint32_t k1)
{
    const uint32_t m0 = TTN_PHILOX_M0;
    const uint32_t m1 = TTN_PHILOX_M1;
    uint64_t p0 = (uint64_t)m0 * *c0;
    uint64_t p1 = (uint64_t)m1 * *c2;
    uint32_t low0 = m0 * *c0;
    uint32_t low1 = m1 * *c2;
    *c0 = (uint32_t)(p1 >> 32) ^ *c1 ^ k0;
    *c2 = (uint32_t)(p0 >> 32) ^ *c3 ^ k1;
    *c1 = low1;
    *c3 = low0;
}

#define TTN_PHILOX_ROUNDS    10
#define TTN_PHILOX_KEY_STEP0 0x9E3779B9u /* golden ratio */
#define TTN_PHILOX_KEY_STEP1 0xBB67AE85u /* sqrt(3) - 1 */

/* One block: counter[0] and key[0] are the lowest words, in the order of the published test vectors. */
TTN_HD void ttn_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t word[4])
{
    uint32_t c0 = counter[0];
    uint32_t c1 = counter[1];
    uint32_t c2 = counter[2];
    uint32_t c3 = counter[3];
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];
    for (int round = 0; round < TTN_PHILOX_ROUNDS; round++) {
        ttn_philox_round(&c0, &c1, &c2, &c3, k0, k1);
        k0 += TTN_PHILOX_KEY_STEP0;
        k1 += TTN_PHILOX_KEY_STEP1;
    }
    word[0] = c0;
    word[1] = c1;
    word[2] = c2;
    word[3] = c3;
}

/* counter = high 2^64 + low: all their bits count. */
TTN_HD void ttn_philox_counter(uint64_t high, uint64_t low, uint32_t counter[4])
{
    counter[0] = (uint32_t)low;
    counter[1] = (uint32_t)(low >> 32);
    counter[2] = (uint32_t)high;
    counter[3] = (uint32_t)(high >> 32);
}

/* The block at such a counter, with the key as a whole number too. */
TTN_HD void ttn_philox_at(uint64_t key, uint64_t high, uint64_t low, uint32_t word[4])
{
    const uint32_t keys[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    uint32_t counter[4];
    ttn_philox_counter(high, low, counter);
    ttn_philox(counter, keys, word);
}

/* The key of a stream: words 1 and 0 of the block with key `seed` and counter (number, name): ttn_rng_key (core/rng.h). */
TTN_HD uint64_t ttn_philox_key(uint64_t seed, uint64_t name, uint64_t number)
{
    uint32_t word[4];
    ttn_philox_at(seed, number, name, word);
    return (uint64_t)word[1] << 32 | word[0];
}

/* The low half of the counter for what belongs to a residue: `position` counts from the start of its sequence, and one
 * block serves the four channels 4 `block` … 4 `block` + 3. The high half is the sequence's number in the data set. */
TTN_HD uint64_t ttn_philox_place(uint32_t position, uint32_t block)
{
    return (uint64_t)position << 32 | block;
}

/* Uniform in the open interval (0, 1): k 2^-24 with k = the top 24 bits of a word, each k equally likely; in place of
 * k = 0 stands 2^-25. So the largest is 1 - 2^-24, the mean 1/2 - 2^-25, and u < j 2^-24 has probability j 2^-24. */
TTN_HD float ttn_philox_f32(uint32_t high)
{
    float u = (float)(int32_t)(high >> 8) * 0x1p-24f;
    return u > 0 ? u : 0x1p-25f;
}

/* The same with k = the top 53 bits of high 2^32 + low, and 2^-54 in place of k = 0. Its first 24 bits are those of
 * ttn_philox_f32(high). */
TTN_HD double ttn_philox_f64(uint32_t high, uint32_t low)
{
    /* Two halves that convert exactly: there is no vector instruction for 64-bit integers before AVX-512. */
    double u = (double)high * 0x1p-32 + (double)(int32_t)(low >> 11) * 0x1p-53;
    return u > 0 ? u : 0x1p-54;
}

/* What the build computes in. An f32 build differs from an f64 build by less than 2^-24. */
TTN_HD real ttn_philox_real(uint32_t high, uint32_t low)
{
#if defined(TTN_REAL64)
    return ttn_philox_f64(high, low);
#else
    (void)low;
    return ttn_philox_f32(high);
#endif
}

/* Two independent normal numbers, mean 0 and variance 1, from the four words of a block.
 *
 * Box and Muller (1958): with u and v uniform, r = sqrt(-2 log u) and the angle 2 pi v give r cos and r sin. Not the
 * polar form, whose rejections would tie an element to a count of draws. Computed in double in both builds, so that an
 * f32 build starts from the f64 build's weights, rounded. Off by at most 4e-16 r (3.6e-16 measured, with u at both ends
 * and v around all eighths). Tails are those of u's 53 bits: |z| <= 8.66, which 1 in 10^17 normals exceed. */
TTN_HD void ttn_philox_normal(const uint32_t word[4], double z[2])
{
    double u = ttn_philox_f64(word[0], word[1]);
    double v = ttn_philox_f64(word[2], word[3]);

    /* u = 2^e m with m in [sqrt(1/2), sqrt(2)): so e = 0 for u near 1, where the logarithm is small. */
    const uint64_t one = 0x3FF0000000000000u;
    const uint64_t root_half = 0x3FE6A09E00000000u; /* sqrt(1/2), rounded down */
    const uint64_t two_52 = 0x4330000000000000u;    /* its lowest bits count ones */
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    bits += one - root_half;
    uint64_t exponent_bits = two_52 | bits >> 52;
    uint64_t mantissa_bits = (bits & 0x000FFFFFFFFFFFFFu) + root_half;
    double e;
    double m;
    memcpy(&e, &exponent_bits, sizeof e);
    memcpy(&m, &mantissa_bits, sizeof m);
    e -= 0x1p52 + 1023;

    /* log m = 2 atanh(s) = s (2 + s^2 P(s^2)), |s| <= 0.1716; P fitted at Chebyshev nodes, relative error 4.7e-18. */
    double s = (m - 1) / (m + 1);
    double s2 = s * s;
    double p = 0x1.2b5900de53b32p-3;
    p = __builtin_fma(p, s2, 0x1.39fe51a7c18f9p-3);
    p = __builtin_fma(p, s2, 0x1.7462b51cb66b1p-3);
    p = __builtin_fma(p, s2, 0x1.c71c62e3f11e6p-3);
    p = __builtin_fma(p, s2, 0x1.2492492df281ap-2);
    p = __builtin_fma(p, s2, 0x1.99999999952d7p-2);
    p = __builtin_fma(p, s2, 0x1.5555555555558p-1);
    double log_m = s * __builtin_fma(p, s2, 2);
    double log_u = __builtin_fma(e, 0x1.62e42fefa39efp-1 /* log 2 */, log_m);
    double r = __builtin_sqrt(-2 * log_u);

    /* 4 v = quarter + f with f in [-1/2, 1/2], exactly; adding 1.5 2^52 rounds to a whole number. */
    double turned = 4 * v + 0x1.8p52;
    uint64_t quarter;
    memcpy(&quarter, &turned, sizeof quarter);
    double f = 4 * v - (turned - 0x1.8p52);
    double f2 = f * f;

    /* sin(pi f / 2) = f S(f^2), cos(pi f / 2) = 1 + f^2 C(f^2); relative errors 3.9e-17 and 1.9e-17. */
    double sine = 0x1.e3f38399551bfp-25;
    sine = __builtin_fma(sine, f2, -0x1.e30071afc3e59p-19);
    sine = __builtin_fma(sine, f2, 0x1.50782fda12d96p-13);
    sine = __builtin_fma(sine, f2, -0x1.32d2cce2e5b19p-8);
    sine = __builtin_fma(sine, f2, 0x1.466bc677587f8p-4);
    sine = __builtin_fma(sine, f2, -0x1.4abbce625be41p-1);
    sine = f * __builtin_fma(sine, f2, 0x1.921fb54442d18p+0);
    double cosine = -0x1.b2f3eb054afcdp-28;
    cosine = __builtin_fma(cosine, f2, 0x1.f9ce245cada0bp-22);
    cosine = __builtin_fma(cosine, f2, -0x1.a6d1eef479be1p-16);
    cosine = __builtin_fma(cosine, f2, 0x1.e1f5068688d5bp-11);
    cosine = __builtin_fma(cosine, f2, -0x1.55d3c7e3cb241p-6);
    cosine = __builtin_fma(cosine, f2, 0x1.03c1f081b5ac0p-2);
    cosine = __builtin_fma(cosine, f2, -0x1.3bd3cc9be45dep+0);
    cosine = __builtin_fma(cosine, f2, 1);

    /* Quarters of the circle: 1 and 3 change places, 2 and 3 turn the sine's sign, 1 and 2 the cosine's. */
    double x = (quarter & 1) != 0 ? sine : cosine;
    double y = (quarter & 1) != 0 ? cosine : sine;
    z[0] = ((quarter + 1) & 2) != 0 ? -r * x : r * x;
    z[1] = (quarter & 2) != 0 ? -r * y : r * y;
}

#endif
