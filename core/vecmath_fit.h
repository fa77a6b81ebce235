/* Made by tests/reference/vecmath.py, which says how; do not edit. The numbers of core/vecmath.h. */
#ifndef TTN_VECMATH_FIT_H
#define TTN_VECMATH_FIT_H

#include "core/real.h"

/* clang-format off */

#define TTN_FIT_LOG2E_F       0x1.715476p+0f              /* log2 e */
#define TTN_FIT_LN2_HI_F      0x1.62e4p-1f                /* ln 2 in 15 bits: times an exponent it is exact */
#define TTN_FIT_LN2_LO_F      0x1.7f7d1cp-20f             /* ln 2 - hi */
#define TTN_FIT_EXP_LEAST_F   -0x1.5d589ep+6f             /* of anything less exp is denormal or 0 */
#define TTN_FIT_EXP_MOST_F    0x1.62e42ep+6f              /* of anything greater exp overflows */

#define TTN_FIT_LOG2E_D       0x1.71547652b82fep+0        /* log2 e */
#define TTN_FIT_LN2_HI_D      0x1.62e42fefa4p-1           /* ln 2 in 41 bits: times an exponent it is exact */
#define TTN_FIT_LN2_LO_D      -0x1.8432a1b0e2634p-43      /* ln 2 - hi */
#define TTN_FIT_EXP_LEAST_D   -0x1.6232bdd7abcd2p+9       /* of anything less exp is denormal or 0 */
#define TTN_FIT_EXP_MOST_D    0x1.62e42fefa39efp+9        /* of anything greater exp overflows */

/* (e^t - 1 - t) / t^2 on +-ln 2 / 2
 * 5 terms, largest error 2^-28.26 of the result. */
TTN_HD float ttn_fit_expf(float t)
{
    float p = 0x1.6a53dap-10f;
    p = ttn_fmaf(p, t, 0x1.12397ep-7f);
    p = ttn_fmaf(p, t, 0x1.5558aap-5f);
    p = ttn_fmaf(p, t, 0x1.555492p-3f);
    p = ttn_fmaf(p, t, 0x1.fffffcp-2f);
    return p;
}

/* (ln(1 + t) - t) / t^2 on +-1/3
 * 9 terms, largest error 2^-27.62 of the result. */
TTN_HD float ttn_fit_logf(float t)
{
    float t2 = t * t;
    float even = -0x1.06ccfp-3f;
    even = ttn_fmaf(even, t2, -0x1.f3a83cp-4f);
    even = ttn_fmaf(even, t2, -0x1.5598p-3f);
    even = ttn_fmaf(even, t2, -0x1.ffff14p-3f);
    even = ttn_fmaf(even, t2, -0x1p-1f);
    float odd = 0x1.1ec5e2p-3f;
    odd = ttn_fmaf(odd, t2, 0x1.1ec0fep-3f);
    odd = ttn_fmaf(odd, t2, 0x1.99d1c4p-3f);
    odd = ttn_fmaf(odd, t2, 0x1.555502p-2f);
    return ttn_fmaf(odd, t, even);
}

/* (tanh(a) - a) / a^3 of t = a^2, a up to 0.625
 * 5 terms, largest error 2^-27.72 of the result. */
TTN_HD float ttn_fit_tanhf(float t)
{
    float p = -0x1.758f08p-8f;
    p = ttn_fmaf(p, t, 0x1.5211aap-6f);
    p = ttn_fmaf(p, t, -0x1.b8389ep-5f);
    p = ttn_fmaf(p, t, 0x1.110704p-3f);
    p = ttn_fmaf(p, t, -0x1.555532p-2f);
    return p;
}

/* erf(a) / a - 1 of t = a^2, a up to 1
 * 7 terms, largest error 2^-29.35 of the result. */
TTN_HD float ttn_fit_erff(float t)
{
    float p = 0x1.4916f2p-14f;
    p = ttn_fmaf(p, t, -0x1.a3d7ecp-11f);
    p = ttn_fmaf(p, t, 0x1.54017p-8f);
    p = ttn_fmaf(p, t, -0x1.b7f88cp-6f);
    p = ttn_fmaf(p, t, 0x1.ce2cf2p-4f);
    p = ttn_fmaf(p, t, -0x1.81273ep-2f);
    p = ttn_fmaf(p, t, 0x1.06eba8p-3f);
    return p;
}

/* ln(1 - erf(t)) on 1 to 4
 * 7 terms, largest error 2^-29.81 of the result. */
TTN_HD float ttn_fit_erfcf(float t)
{
    float p = 0x1.86f5cp-13f;
    p = ttn_fmaf(p, t, -0x1.82689p-9f);
    p = ttn_fmaf(p, t, 0x1.65d1aep-6f);
    p = ttn_fmaf(p, t, -0x1.a6563ap-4f);
    p = ttn_fmaf(p, t, -0x1.46ba88p-1f);
    p = ttn_fmaf(p, t, -0x1.208906p+0f);
    p = ttn_fmaf(p, t, -0x1.65bbe8p-12f);
    return p;
}

/* (e^t - 1 - t) / t^2 on +-ln 2 / 2
 * 10 terms, largest error 2^-57.9 of the result. */
TTN_HD double ttn_fit_expd(double t)
{
    double t2 = t * t;
    double even = 0x1.28ae032f583e2p-22;
    even = ttn_fmad(even, t2, 0x1.a019995839683p-16);
    even = ttn_fmad(even, t2, 0x1.6c16c18479552p-10);
    even = ttn_fmad(even, t2, 0x1.55555555506b4p-5);
    even = ttn_fmad(even, t2, 0x1.000000000000ap-1);
    double odd = 0x1.ad9f12eb049f2p-26;
    odd = ttn_fmad(odd, t2, 0x1.71df11065c867p-19);
    odd = ttn_fmad(odd, t2, 0x1.a01a013399fd2p-13);
    odd = ttn_fmad(odd, t2, 0x1.1111111125fep-7);
    odd = ttn_fmad(odd, t2, 0x1.5555555555501p-3);
    return ttn_fmad(odd, t, even);
}

/* (ln(1 + t) - t) / t^2 on +-1/3
 * 20 terms, largest error 2^-56.86 of the result. */
TTN_HD double ttn_fit_logd(double t)
{
    double t2 = t * t;
    double even = -0x1.64364ef893158p-4;
    even = ttn_fmad(even, t2, -0x1.736bac4f83f96p-5);
    even = ttn_fmad(even, t2, -0x1.062699daffe2fp-4);
    even = ttn_fmad(even, t2, -0x1.24073811466a9p-4);
    even = ttn_fmad(even, t2, -0x1.555d023987c3dp-4);
    even = ttn_fmad(even, t2, -0x1.9999560f1afd5p-4);
    even = ttn_fmad(even, t2, -0x1.000000b1cc7eep-3);
    even = ttn_fmad(even, t2, -0x1.555555535513p-3);
    even = ttn_fmad(even, t2, -0x1.0000000001504p-2);
    even = ttn_fmad(even, t2, -0x1.ffffffffffff8p-2);
    double odd = 0x1.5c2f3998a4defp-4;
    odd = ttn_fmad(odd, t2, 0x1.55fcdc01db1a6p-5);
    odd = ttn_fmad(odd, t2, 0x1.efc80d090df6cp-5);
    odd = ttn_fmad(odd, t2, 0x1.1068b450163bp-4);
    odd = ttn_fmad(odd, t2, 0x1.3b1dcba64a0e7p-4);
    odd = ttn_fmad(odd, t2, 0x1.745cb495be90ap-4);
    odd = ttn_fmad(odd, t2, 0x1.c71c7419d3c37p-4);
    odd = ttn_fmad(odd, t2, 0x1.249249208cbf8p-3);
    odd = ttn_fmad(odd, t2, 0x1.99999999a0849p-3);
    odd = ttn_fmad(odd, t2, 0x1.5555555555534p-2);
    return ttn_fmad(odd, t, even);
}

/* (tanh(a) - a) / a^3 of t = a^2, a up to 0.625
 * 11 terms, largest error 2^-56.44 of the result. */
TTN_HD double ttn_fit_tanhd(double t)
{
    double t2 = t * t;
    double even = -0x1.0da3375a56565p-16;
    even = ttn_fmad(even, t2, -0x1.df54753d7dfb4p-13);
    even = ttn_fmad(even, t2, -0x1.7d689d5bc522bp-10);
    even = ttn_fmad(even, t2, -0x1.226e16265ed9fp-7);
    even = ttn_fmad(even, t2, -0x1.ba1ba1b504af7p-5);
    even = ttn_fmad(even, t2, -0x1.55555555554ffp-2);
    double odd = 0x1.438efa87f7585p-14;
    odd = ttn_fmad(odd, t2, 0x1.3365effe6cbb1p-11);
    odd = ttn_fmad(odd, t2, 0x1.d6cf276dfcb3ep-9);
    odd = ttn_fmad(odd, t2, 0x1.664f477a9c2c3p-6);
    odd = ttn_fmad(odd, t2, 0x1.111111110aca2p-3);
    return ttn_fmad(odd, t, even);
}

/* erf(a) / a - 1 of t = a^2, a up to 1
 * 12 terms, largest error 2^-56.05 of the result. */
TTN_HD double ttn_fit_erfd(double t)
{
    double t2 = t * t;
    double even = 0x1.d6e30def48c53p-27;
    even = ttn_fmad(even, t2, 0x1.b97e3f3999d85p-20);
    even = ttn_fmad(even, t2, 0x1.f9a2b74d26652p-14);
    even = ttn_fmad(even, t2, 0x1.565bccf7e0937p-8);
    even = ttn_fmad(even, t2, 0x1.ce2f21a0408cfp-4);
    even = ttn_fmad(even, t2, 0x1.06eba8214db68p-3);
    double odd = -0x1.ab135d9273052p-31;
    odd = ttn_fmad(odd, t2, -0x1.5bfe57fdb6bfap-23);
    odd = ttn_fmad(odd, t2, -0x1.f4ca1fcdcdd3p-17);
    odd = ttn_fmad(odd, t2, -0x1.c02db0144b9e3p-11);
    odd = ttn_fmad(odd, t2, -0x1.b82ce311edfd2p-6);
    odd = ttn_fmad(odd, t2, -0x1.812746b0379b2p-2);
    return ttn_fmad(odd, t, even);
}

/* ln(1 - erf(t)) on 1 to 6
 * 18 terms, largest error 2^-57.03 of the result. */
TTN_HD double ttn_fit_erfcd(double t)
{
    double t2 = t * t;
    double even = 0x1.c18e0108bcf8cp-33;
    even = ttn_fmad(even, t2, 0x1.8eaa082da0817p-25);
    even = ttn_fmad(even, t2, 0x1.1e93bd82b5b5cp-19);
    even = ttn_fmad(even, t2, 0x1.7ec83b5fcce52p-16);
    even = ttn_fmad(even, t2, -0x1.1b4b46fa8dc03p-13);
    even = ttn_fmad(even, t2, -0x1.f64547f33aefp-10);
    even = ttn_fmad(even, t2, 0x1.3722639f4490cp-6);
    even = ttn_fmad(even, t2, -0x1.45f627a0c4b28p-1);
    even = ttn_fmad(even, t2, -0x1.0e144c642122ap-21);
    double odd = -0x1.5ab51cbc3e3c3p-38;
    odd = ttn_fmad(odd, t2, -0x1.0e489294a5538p-28);
    odd = ttn_fmad(odd, t2, -0x1.90bb3e5cff276p-22);
    odd = ttn_fmad(odd, t2, -0x1.22c0019e50924p-17);
    odd = ttn_fmad(odd, t2, -0x1.53b9a24d5c3a7p-16);
    odd = ttn_fmad(odd, t2, 0x1.94114c532566ep-11);
    odd = ttn_fmad(odd, t2, 0x1.aea43f8da8dc2p-12);
    odd = ttn_fmad(odd, t2, -0x1.a4ac5609ddb4bp-4);
    odd = ttn_fmad(odd, t2, -0x1.20dd1fcb4212p+0);
    return ttn_fmad(odd, t, even);
}

/* clang-format on */
#endif
