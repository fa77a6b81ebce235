/* Sine and cosine of one angle, in double and in a form that vectorises: what positions are encoded with. */
#ifndef TTN_TURN_H
#define TTN_TURN_H

#include "core/bits.h"
#include "core/real.h"

/* |angle| < 2^30. Off by at most 1.8e-16 (2e6 angles up to 10^9 against the C library); a build without fused
 * multiply-add loses another 2^-53 of the angle, as much as the angle's own rounding.
 *
 * angle = n pi/2 + r, |r| <= pi/4: pi/2 in three parts, so that n times each is taken away with one rounding. The two
 * polynomials are those of fdlibm (Sun Microsystems 1993: k_sin.c, k_cos.c). */
TTN_HD void ttn_turn(double angle, double *ret_sine, double *ret_cosine)
{
    const double shift = 0x1.8p+52; /* n stands in the lowest bits of the sum */
    const double shifted = ttn_fmad(angle, 0x1.45f306dc9c883p-1 /* 2 / pi */, shift);
    const double n = shifted - shift;
    double r = ttn_fmad(n, -0x1.921fb54442d18p+0, angle);
    r = ttn_fmad(n, -0x1.1a62633145c07p-54, r);
    r = ttn_fmad(n, 0x1.f1976b7ed8fbcp-110, r);

    const double r2 = r * r;
    double s = 1.58969099521155010221e-10;
    s = ttn_fmad(s, r2, -2.50507602534068634195e-08);
    s = ttn_fmad(s, r2, 2.75573137070700676789e-06);
    s = ttn_fmad(s, r2, -1.98412698298579493134e-04);
    s = ttn_fmad(s, r2, 8.33333333332248946124e-03);
    s = ttn_fmad(s, r2, -1.66666666666666324348e-01);
    s = ttn_fmad(r * r2, s, r);
    double c = -1.13596475577881948265e-11;
    c = ttn_fmad(c, r2, 2.08757232129817482790e-09);
    c = ttn_fmad(c, r2, -2.75573143513906633035e-07);
    c = ttn_fmad(c, r2, 2.48015872894767294178e-05);
    c = ttn_fmad(c, r2, -1.38888888888741095749e-03);
    c = ttn_fmad(c, r2, 4.16666666666666019037e-02);
    c = ttn_fmad(r2 * r2, c, ttn_fmad(r2, -0.5, 1.0));

    /* quarters of the circle: 1 and 3 change places, 2 and 3 turn the sine's sign, 1 and 2 the cosine's */
    const uint64_t quarter = ttn_f64_bits(shifted);
    const uint64_t odd = 0 - (quarter & 1);
    const uint64_t s_bits = ttn_f64_bits(s);
    const uint64_t c_bits = ttn_f64_bits(c);
    const uint64_t exchange = (s_bits ^ c_bits) & odd;
    *ret_sine = ttn_f64_of_bits((s_bits ^ exchange) ^ (quarter & 2) << 62);
    *ret_cosine = ttn_f64_of_bits((c_bits ^ exchange) ^ ((quarter + 1) & 2) << 62);
}

#endif
