/* exp, log, tanh and erf that vectorise: ttn_expf(float), ttn_expd(double), ttn_exp(real), …
 *
 * Basic operations, ttn_fma and selections only, in one straight line: gcc and clang turn a loop that calls
 * these into vector code, and an element has the same bits wherever it stands, in the vector body or the
 * remainder, under either compiler, with denormals flushed to zero or not. The C library's functions leave such
 * a loop scalar. Over arrays: core/vec.h.
 *
 * Results, besides the ordinary ones:
 *
 *     exp    0 where e^x is below the smallest normal number, inf where it overflows
 *     log    -inf of zeros, NaN of negative numbers
 *     tanh   odd, at most 1, and 1 from 9.02 (f32), 19.07 (f64) on
 *     erf    odd, at most 1, and 1 from 3.92 (f32), 5.93 (f64) on
 *
 * A denormal input counts as the zero of its sign, whatever the mode of the thread, and no result is ever denormal.
 * NaN gives NaN, quiet, with its sign and payload; signs of zero are kept.
 *
 * Measured with gcc 12 on x86-64-v3, arrays in the first cache, 10^9 elements a second (f32, f64), beside the C
 * library called in a loop: exp 2.7, 0.9 (0.21, 0.15); log 1.7, 0.5 (0.19, 0.16); tanh 1.2, 0.4 (0.06, 0.06);
 * erf 1.0, 0.3 (0.07, 0.06).
 */
#ifndef TTN_VECMATH_H
#define TTN_VECMATH_H

#include "core/bits.h"
#include "core/vecmath_fit.h"

/* |result - exact| is at most this many ulp of the exact result. f32: the largest over all 2^32 floats (1.0128,
 * 0.9934, 1.3320, 1.0551), rounded up. f64: the largest over 3e8 values each, of all binades and where the function
 * moves, is 1.0391, 1.2705, 1.3398, 1.1787; there may be worse ones.
 *
 * That is with ttn_fma rounding once. Where it rounds twice (x86-64 before v3) the bits differ, 2 ulp hold, but not
 * for erf below 8 times the smallest normal number in a thread that flushes denormals. */
#if defined(TTN_REAL64)
#define TTN_EXP_ULP  1.1
#define TTN_LOG_ULP  1.4
#define TTN_TANH_ULP 1.4
#define TTN_ERF_ULP  1.3
#else
#define TTN_EXP_ULP  1.02
#define TTN_LOG_ULP  1.0
#define TTN_TANH_ULP 1.34
#define TTN_ERF_ULP  1.06
#endif

/* ---- exp ----
 *
 * x = n ln 2 + r, |r| <= ln 2 / 2;   e^x = 2^n (1 + r + r^2 q(r)).
 *
 * n comes from adding 1.5 2^23 (2^52), which leaves it in the lowest bits of the sum: no conversion. 2^n is an
 * addition to the exponent. That is right while 2^n (…) is a normal number; NaN gives nonsense. */

TTN_HD float ttn_vecmath_exp_normalf(float x)
{
    const float shift = 0x1.8p+23f;
    float shifted = ttn_fmaf(x, TTN_FIT_LOG2E_F, shift);
    float n = shifted - shift;
    float r = ttn_fmaf(n, -TTN_FIT_LN2_HI_F, x);
    r = ttn_fmaf(n, -TTN_FIT_LN2_LO_F, r);
    float p = ttn_fmaf(r * r, ttn_fit_expf(r), r) + 1.0f;
    return ttn_f32_of_bits(ttn_f32_bits(p) + (ttn_f32_bits(shifted) << 23));
}

TTN_HD double ttn_vecmath_exp_normald(double x)
{
    const double shift = 0x1.8p+52;
    double shifted = ttn_fmad(x, TTN_FIT_LOG2E_D, shift);
    double n = shifted - shift;
    double r = ttn_fmad(n, -TTN_FIT_LN2_HI_D, x);
    r = ttn_fmad(n, -TTN_FIT_LN2_LO_D, r);
    double p = ttn_fmad(r * r, ttn_fit_expd(r), r) + 1.0;
    return ttn_f64_of_bits(ttn_f64_bits(p) + (ttn_f64_bits(shifted) << 52));
}

TTN_HD float ttn_expf(float x)
{
    float y = ttn_vecmath_exp_normalf(x);
    y = x < TTN_FIT_EXP_LEAST_F ? 0.0f : y;
    return x <= TTN_FIT_EXP_MOST_F ? y : x + INFINITY; /* NaN stays NaN */
}

TTN_HD double ttn_expd(double x)
{
    double y = ttn_vecmath_exp_normald(x);
    y = x < TTN_FIT_EXP_LEAST_D ? 0.0 : y;
    return x <= TTN_FIT_EXP_MOST_D ? y : x + (double)INFINITY;
}

/* ---- log ----
 *
 * x = 2^k (1 + f), 2/3 <= 1 + f < 4/3;   log x = k ln 2 + f + f^2 q(f).
 *
 * Of the bits of x, moved so that the border lies at a power of two, the exponent is k + bias; set into the
 * lowest bits of 2^23 (2^52) it becomes a number without a conversion. */

TTN_HD float ttn_logf(float x)
{
    const uint32_t one = 0x3f800000, border = 0x3f2aaaab, significand = 0x007fffff; /* border: 2/3 */
    uint32_t moved = ttn_f32_bits(x) + (one - border);
    float k = ttn_f32_of_bits((moved >> 23) | 0x4b000000) - (0x1p+23f + 127.0f);
    float f = ttn_f32_of_bits((moved & significand) + border) - 1.0f;
    float r = ttn_fmaf(f * f, ttn_fit_logf(f), f);
    float y = ttn_fmaf(k, TTN_FIT_LN2_HI_F, ttn_fmaf(k, TTN_FIT_LN2_LO_F, r));
    float a = ttn_f32_of_bits(ttn_f32_bits(x) & 0x7fffffff);
    y = x < 0.0f ? NAN : y;
    y = a < FLT_MIN ? -INFINITY : y;
    return x <= FLT_MAX ? y : x + x; /* inf, NaN */
}

TTN_HD double ttn_logd(double x)
{
    const uint64_t one = 0x3ff0000000000000, border = 0x3fe5555555555556, significand = 0x000fffffffffffff;
    uint64_t moved = ttn_f64_bits(x) + (one - border);
    double k = ttn_f64_of_bits((moved >> 52) | 0x4330000000000000) - (0x1p+52 + 1023.0);
    double f = ttn_f64_of_bits((moved & significand) + border) - 1.0;
    double r = ttn_fmad(f * f, ttn_fit_logd(f), f);
    double y = ttn_fmad(k, TTN_FIT_LN2_HI_D, ttn_fmad(k, TTN_FIT_LN2_LO_D, r));
    double a = ttn_f64_of_bits(ttn_f64_bits(x) & 0x7fffffffffffffff);
    y = x < 0.0 ? (double)NAN : y;
    y = a < DBL_MIN ? -(double)INFINITY : y;
    return x <= DBL_MAX ? y : x + x;
}

/* ---- tanh ----
 *
 * a = |x|:   a + a^3 q(a^2) up to 0.625,   1 - 2 / (e^2a + 1) above, where it is at least 0.55 and the error of the
 * quotient counts less than half. Past 10 (20) the quotient is lost in rounding; a is cut there. */

TTN_HD float ttn_tanhf(float x)
{
    uint32_t sign = ttn_f32_bits(x) & 0x80000000;
    float a = ttn_f32_of_bits(ttn_f32_bits(x) ^ sign);
    float a2 = a * a;
    float near = ttn_fmaf(a * a2, ttn_fit_tanhf(a2), a);
    float cut = a > 10.0f ? 10.0f : a;
    float far = 1.0f - 2.0f / (ttn_vecmath_exp_normalf(cut + cut) + 1.0f);
    float y = a > 0.625f ? far : near; /* NaN is near */
    y = a < FLT_MIN ? 0.0f : y;
    return ttn_f32_of_bits(ttn_f32_bits(y) | sign);
}

TTN_HD double ttn_tanhd(double x)
{
    uint64_t sign = ttn_f64_bits(x) & 0x8000000000000000;
    double a = ttn_f64_of_bits(ttn_f64_bits(x) ^ sign);
    double a2 = a * a;
    double near = ttn_fmad(a * a2, ttn_fit_tanhd(a2), a);
    double cut = a > 20.0 ? 20.0 : a;
    double far = 1.0 - 2.0 / (ttn_vecmath_exp_normald(cut + cut) + 1.0);
    double y = a > 0.625 ? far : near;
    y = a < DBL_MIN ? 0.0 : y;
    return ttn_f64_of_bits(ttn_f64_bits(y) | sign);
}

/* ---- erf ----
 *
 * a = |x|:   a + a q(a^2) up to 1,   1 - e^s(a) above, where erfc = e^s is at most 0.16. Past 4 (6) it is lost in
 * rounding; a is cut there. */

TTN_HD float ttn_erff(float x)
{
    uint32_t sign = ttn_f32_bits(x) & 0x80000000;
    float a = ttn_f32_of_bits(ttn_f32_bits(x) ^ sign);
    float near = ttn_fmaf(a, ttn_fit_erff(a * a), a);
    float cut = a > 4.0f ? 4.0f : a;
    float far = 1.0f - ttn_vecmath_exp_normalf(ttn_fit_erfcf(cut));
    float y = a > 1.0f ? far : near; /* NaN is near */
    y = a < FLT_MIN ? 0.0f : y;
    return ttn_f32_of_bits(ttn_f32_bits(y) | sign);
}

TTN_HD double ttn_erfd(double x)
{
    uint64_t sign = ttn_f64_bits(x) & 0x8000000000000000;
    double a = ttn_f64_of_bits(ttn_f64_bits(x) ^ sign);
    double near = ttn_fmad(a, ttn_fit_erfd(a * a), a);
    double cut = a > 6.0 ? 6.0 : a;
    double far = 1.0 - ttn_vecmath_exp_normald(ttn_fit_erfcd(cut));
    double y = a > 1.0 ? far : near;
    y = a < DBL_MIN ? 0.0 : y;
    return ttn_f64_of_bits(ttn_f64_bits(y) | sign);
}

/* ---- of the build's own type ---- */

#if defined(TTN_REAL64)
TTN_HD real ttn_exp(real x)
{
    return ttn_expd(x);
}
TTN_HD real ttn_log(real x)
{
    return ttn_logd(x);
}
TTN_HD real ttn_tanh(real x)
{
    return ttn_tanhd(x);
}
TTN_HD real ttn_erf(real x)
{
    return ttn_erfd(x);
}
#else
TTN_HD real ttn_exp(real x)
{
    return ttn_expf(x);
}
TTN_HD real ttn_log(real x)
{
    return ttn_logf(x);
}
TTN_HD real ttn_tanh(real x)
{
    return ttn_tanhf(x);
}
TTN_HD real ttn_erf(real x)
{
    return ttn_erff(x);
}
#endif

#endif
