/* The feed-forward block: what the CPU and the GPU kernels share. The letters are those on top of autograd/ops/ffn.c. */
#ifndef TTN_FFN_H
#define TTN_FFN_H

#include "autograd/op.h"
#include "autograd/ops/activation.h"

typedef struct {
    ttn_activation act;
} ttn_ffn_attributes;

/* Inputs, x before them. */
enum { TTN_FFN_W1 = 1, TTN_FFN_B1, TTN_FFN_W2, TTN_FFN_B2, TTN_FFN_W3, TTN_FFN_B3, TTN_FFN_N_IN };

typedef struct {
    int64_t N, C, F;
    int gated;
    int64_t ld; /* of aux 0: z, gated z and u side by side */
} ttn_ffn_dims;

static inline ttn_ffn_dims ttn_ffn_dims_of(const ttn_sig *s)
{
    ttn_ffn_dims d;
    d.N = s->in[0].dim[0];
    d.C = s->in[0].dim[1];
    d.F = s->in[TTN_FFN_W1].dim[0];
    d.gated = s->in[TTN_FFN_W3].ndim >= 0;
    d.ld = d.gated ? 2 * d.F : d.F;
    return d;
}

/* What the gradients asked for need of the hidden layer; all that is not needed is not made, and its inputs are not
 * there. */
typedef struct {
    int d_hidden; /* dz or du */
    int u;        /* for dz and h */
} ttn_ffn_needs;

static inline ttn_ffn_needs ttn_ffn_needs_of(const ttn_call *c, int gated)
{
    const int dz = c->din[0] || c->din[TTN_FFN_W1] || c->din[TTN_FFN_B1];
    ttn_ffn_needs n;
    n.d_hidden = dz || c->din[TTN_FFN_W3] || c->din[TTN_FFN_B3];
    n.u = gated && (dz || c->din[TTN_FFN_W2]);
    return n;
}

/* One element of the hidden layer, forward and backward, from z + b1, u + b3 and dh. */
typedef struct {
    real h, dz, du;
} ttn_ffn_element;

TTN_ALWAYS_INLINE ttn_ffn_element ttn_ffn_plain(ttn_activation act, real z, real dh)
{
    ttn_ffn_element e;
    e.h = ttn_act_value(act, z);
    e.dz = ttn_act_grad(act, z) * dh;
    e.du = 0;
    return e;
}

TTN_ALWAYS_INLINE ttn_ffn_element ttn_ffn_gated(ttn_activation act, real z, real u, real dh)
{
    const real a = ttn_act_value(act, z);
    ttn_ffn_element e;
    e.h = a * u;
    e.dz = ttn_act_grad(act, z) * u * dh;
    e.du = a * dh;
    return e;
}

#endif
