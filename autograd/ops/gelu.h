/* GELU, x Phi(x), and its derivative: formulas that the CPU and the GPU kernel share.
 *
 *     erf form:   Phi(x) = (1 + erf(x / sqrt 2)) / 2
 *     tanh form:  Phi(x) ~ (1 + tanh u) / 2 = 1 / (1 + e^-2u),   u = sqrt(2 / pi) (x + 0.044715 x^3)
 *
 * (Hendrycks and Gimpel, Gaussian Error Linear Units, 2016: the tanh form is what BERT's first code computed; ESM and
 * PyTorch's default are the erf form.) Finite for every finite x. By way of e^-2u the
 * tanh form takes half the time that it takes by way of tanh, and the negative tail, where 1 + tanh cancels, keeps its
 * digits. */
#ifndef TTN_GELU_H
#define TTN_GELU_H

#include "core/real.h"
#include "core/vecmath.h"

TTN_HD real ttn_gelu_erf(real x)
{
    const real sqrt_half = (real)0.70710678118654752440;
    return (real)0.5 * x * (1 + ttn_erf(sqrt_half * x));
}

/* Phi(x) + x phi(x), phi the density of the normal distribution */
TTN_HD real ttn_gelu_erf_grad(real x)
{
    const real sqrt_half = (real)0.70710678118654752440;
    const real peak = (real)0.39894228040143267794; /* phi(0) = 1 / sqrt(2 pi) */
    const real density = peak * ttn_exp((real)-0.5 * x * x);
    return ttn_fma(x, density, (real)0.5 * (1 + ttn_erf(sqrt_half * x)));
}

#define TTN_GELU_CUBIC     ((real)0.044715)               /* Hendrycks and Gimpel's fit */
#define TTN_GELU_STEEPNESS ((real)0.79788456080286535588) /* sqrt(2 / pi) */

TTN_HD real ttn_gelu_tanh(real x)
{
    const real u = TTN_GELU_STEEPNESS * x * ttn_fma(TTN_GELU_CUBIC * x, x, 1);
    return x / (1 + ttn_exp(-2 * u)); /* u = -inf: x / inf */
}

/* s + x s' with s = 1 / (1 + e^-2u), s' = 2 u' s (1 - s) = 2 u' e^-2u s^2 */
TTN_HD real ttn_gelu_tanh_grad(real x)
{
    /* past 10 s is 0 or 1 to 37 digits, and e^-2u reaches the end of f32 */
    const real cut = x > 10 ? 10 : (x < -10 ? -10 : x);
    const real e = ttn_exp(-2 * TTN_GELU_STEEPNESS * cut * ttn_fma(TTN_GELU_CUBIC * cut, cut, 1));
    const real slope = TTN_GELU_STEEPNESS * ttn_fma(3 * TTN_GELU_CUBIC * cut, cut, 1);
    const real s = 1 / (1 + e);
    return ttn_fma(2 * cut * slope * (e * s), s, s);
}

#endif
