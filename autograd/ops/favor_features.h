/* The feature maps of random-feature attention, as formulas that kernels of all devices share.
 *
 * A map phi turns a scaled query x = s q or key y = s k (s = D^(-1/4)) into M features, so that phi(x).phi(y) stands for
 * exp(x.y) or defines a kernel of its own. u = W x are its projections onto m random directions, h(x) = |x|^2 / 2.
 *
 *     positive     exp(u_j - h)                       M = m     kappa 1/m          K. Choromanski et al.: Rethinking
 *     hyperbolic   exp(u_j - h), exp(-u_j - h)        M = 2m    kappa 1/(2m)       attention with Performers. ICLR 2021
 *     trig         e^h cos u_j, e^h sin u_j           M = 2m    kappa 1/m
 *     exp          exp(u_j)                           M = m     none
 *     others       f(u_j) + epsilon                   M = m     none
 *
 * kappa phi(x).phi(y) has the mean exp(x.y) over the directions. Without a projection u is x itself, and M = D. */
#ifndef TTN_FAVOR_FEATURES_H
#define TTN_FAVOR_FEATURES_H

#include "autograd/ops.h"
#include "autograd/ops/turn.h"
#include "core/real.h"
#include "core/vecmath.h"

/* Maps of one family differ in a formula; families differ in what keeps them in range (favor.h). */
typedef enum { TTN_FAVOR_EXPONENTIAL, TTN_FAVOR_TRIGONOMETRIC, TTN_FAVOR_GENERALIZED } ttn_favor_family;

TTN_HD ttn_favor_family ttn_favor_family_of(ttn_favor_kernel kernel)
{
    switch (kernel) {
    case TTN_FAVOR_POSITIVE:
    case TTN_FAVOR_HYPERBOLIC:
    case TTN_FAVOR_EXP:
        return TTN_FAVOR_EXPONENTIAL;
    case TTN_FAVOR_TRIG:
        return TTN_FAVOR_TRIGONOMETRIC;
    default:
        return TTN_FAVOR_GENERALIZED;
    }
}

/* Does it stand for exp(x.y), so that there is a truth to be off from? */
TTN_HD int ttn_favor_estimates(ttn_favor_kernel kernel)
{
    return kernel == TTN_FAVOR_POSITIVE || kernel == TTN_FAVOR_HYPERBOLIC || kernel == TTN_FAVOR_TRIG;
}

/* Features of each projection: both signs, or cosine and sine. */
TTN_HD int ttn_favor_sides(ttn_favor_kernel kernel)
{
    return kernel == TTN_FAVOR_HYPERBOLIC || kernel == TTN_FAVOR_TRIG ? 2 : 1;
}

/* Of the maps that estimate, for m directions. */
TTN_HD double ttn_favor_kappa(ttn_favor_kernel kernel, int64_t m)
{
    return kernel == TTN_FAVOR_HYPERBOLIC ? 0.5 / (double)m : 1 / (double)m;
}

/* Can a feature be negative, and so a sum of them 0? */
TTN_HD int ttn_favor_has_signs(ttn_favor_kernel kernel)
{
    return kernel == TTN_FAVOR_TRIG || kernel == TTN_FAVOR_GELU || kernel == TTN_FAVOR_TANH ||
           kernel == TTN_FAVOR_IDENTITY;
}

/* Added to features that reach 0 or underflow, so that their sum does not. */
TTN_HD real ttn_favor_epsilon(ttn_favor_kernel kernel)
{
    switch (kernel) {
    case TTN_FAVOR_RELU:
    case TTN_FAVOR_ELU1:
    case TTN_FAVOR_SQUARE:
    case TTN_FAVOR_SIGMOID:
    case TTN_FAVOR_SOFTPLUS:
        return (real)1e-3;
    default:
        return 0;
    }
}

/* ---- generalized maps: f(u) and f'(u) ---- */

typedef struct {
    real value, slope;
} ttn_favor_point;

TTN_HD ttn_favor_point ttn_favor_relu(real u)
{
    ttn_favor_point p;
    p.value = u > 0 ? u : 0;
    p.slope = u > 0 ? 1 : 0;
    return p;
}

/* elu(u) + 1; e^u itself below 0, since (e^u - 1) + 1 would lose its digits. */
TTN_HD ttn_favor_point ttn_favor_elu1(real u)
{
    const real e = ttn_exp(u < 0 ? u : 0);
    ttn_favor_point p;
    p.value = u > 0 ? u + 1 : e;
    p.slope = e;
    return p;
}

/* u Phi(u) */
TTN_HD ttn_favor_point ttn_favor_gelu(real u)
{
    const real Phi = (real)0.5 + (real)0.5 * ttn_erf(u * (real)0.70710678118654752440);
    const real density = (real)0.39894228040143267794 * ttn_exp((real)-0.5 * u * u);
    ttn_favor_point p;
    p.value = u * Phi;
    p.slope = Phi + u * density;
    return p;
}

TTN_HD ttn_favor_point ttn_favor_square(real u)
{
    ttn_favor_point p;
    p.value = u * u;
    p.slope = 2 * u;
    return p;
}

TTN_HD ttn_favor_point ttn_favor_sigmoid(real u)
{
    ttn_favor_point p;
    p.value = 1 / (1 + ttn_exp(-u));
    p.slope = p.value * (1 - p.value);
    return p;
}

TTN_HD ttn_favor_point ttn_favor_tanh(real u)
{
    ttn_favor_point p;
    p.value = ttn_tanh(u);
    p.slope = 1 - p.value * p.value;
    return p;
}

/* log(1 + e^u), with the exponential of what is at most 0 */
TTN_HD ttn_favor_point ttn_favor_softplus(real u)
{
    const real e = ttn_exp(u < 0 ? u : -u);
    ttn_favor_point p;
    p.value = (u > 0 ? u : 0) + ttn_log(1 + e);
    p.slope = (u > 0 ? 1 : e) / (1 + e);
    return p;
}

TTN_HD ttn_favor_point ttn_favor_identity(real u)
{
    ttn_favor_point p;
    p.value = u;
    p.slope = 1;
    return p;
}

/* ---- the trigonometric map ---- */

TTN_HD void ttn_favor_turn(real u, real *ret_cosine, real *ret_sine)
{
    double sine;
    double cosine;
    ttn_turn((double)u, &sine, &cosine);
    *ret_cosine = (real)cosine;
    *ret_sine = (real)sine;
}

#endif
