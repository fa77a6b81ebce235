/* The nonlinear functions between two linear layers and their derivatives, in one place: the ops gelu, relu and silu and
 * the hidden layer of ffn all compute these, and a GPU kernel can.
 *
 *     gelu   x Phi(x): autograd/ops/gelu.h
 *     relu   max(x, 0)
 *     silu   x s(x), s(x) = 1 / (1 + e^-x), also called swish
 *            (Ramachandran et al., Searching for Activation Functions, 2017)
 *
 * Finite for every finite x; NaN gives NaN, so that what went wrong is seen. */
#ifndef TTN_ACTIVATION_H
#define TTN_ACTIVATION_H

#include "autograd/ops.h"
#include "autograd/ops/gelu.h"

TTN_HD real ttn_relu_value(real x)
{
    return x <= 0 ? 0 : x;
}

/* By the sign of x or, the same, of the result; 0 at 0. Times dy: one selection. */
TTN_HD real ttn_relu_grad(real x, real dy)
{
    return x <= 0 ? 0 : dy;
}

TTN_HD real ttn_silu_value(real x)
{
    return x / (1 + ttn_exp(-x)); /* x = -200 in f32: x / inf. The whole negative tail keeps its digits */
}

/* s (1 + x (1 - s)). By way of e^-|x| nothing overflows and 1 - s does not cancel. */
TTN_HD real ttn_silu_grad(real x)
{
    const real e = ttn_exp(x < 0 ? x : -x);
    const real near = 1 / (1 + e);
    const real far = e * near;
    const real s = x < 0 ? far : near;
    const real rest = x < 0 ? near : far; /* 1 - s */
    return s * ttn_fma(x, rest, 1);
}

/* By name. `act` should be a constant where this stands in a loop: gcc leaves a loop with a switch inside it scalar, and
 * without the attribute calls the function. */
#if defined(__CUDACC__)
#define TTN_ALWAYS_INLINE TTN_HD
#else
#define TTN_ALWAYS_INLINE static inline __attribute__((always_inline))
#endif

TTN_ALWAYS_INLINE real ttn_act_value(ttn_activation act, real x)
{
    switch (act) {
    case TTN_ACT_GELU_ERF:
        return ttn_gelu_erf(x);
    case TTN_ACT_GELU_TANH:
        return ttn_gelu_tanh(x);
    case TTN_ACT_RELU:
        return ttn_relu_value(x);
    case TTN_ACT_SILU:
        break;
    }
    return ttn_silu_value(x);
}

TTN_ALWAYS_INLINE real ttn_act_grad(ttn_activation act, real x)
{
    switch (act) {
    case TTN_ACT_GELU_ERF:
        return ttn_gelu_erf_grad(x);
    case TTN_ACT_GELU_TANH:
        return ttn_gelu_tanh_grad(x);
    case TTN_ACT_RELU:
        return ttn_relu_grad(x, 1);
    case TTN_ACT_SILU:
        break;
    }
    return ttn_silu_grad(x);
}

/* act'(x) dy. relu selects, so that it is exact for an infinite dy, too. */
TTN_ALWAYS_INLINE real ttn_act_chain(ttn_activation act, real x, real dy)
{
    return act == TTN_ACT_RELU ? ttn_relu_grad(x, dy) : ttn_act_grad(act, x) * dy;
}

#endif
