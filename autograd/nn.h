/* The blocks of an encoder, put together from ops by name.
 *
 *     ttn_layer_spec s = ttn_layer_default(320, 20, 1280);       pre-norm, layernorm, gelu, biases, exact attention
 *     s.rotary = 1;                                              … and now ESM-2's
 *     for (int l = 0; l < 6; l++)
 *         x = ttn_nn_layer(g, x, &s, l);                         (N, C) -> (N, C)
 *     x = ttn_nn_norm(g, "norm", x, &s);
 *
 * pre-norm:   x += dropout(attention(norm1(x)))        post-norm:  x = norm1(x + dropout(attention(x)))
 *             x += dropout(ffn(norm2(x)))                          x = norm2(x + dropout(ffn(x)))
 *
 * Parameters of layer 3, all below "layer.3."; tables of import and export are written against these names, so they stay.
 * C width, H heads, D = C / H, F hidden.
 *
 *     norm1.gain (C)          norm1.bias (C)       bias: of a layernorm with norm_bias
 *     attn.q.weight (C, C)    attn.q.bias (C)      and attn.k, attn.v; biases with attn_bias
 *     attn.out.weight (C, C)  attn.out.bias (C)
 *     norm2.gain (C)          norm2.bias (C)
 *     ffn.up.weight (F, C)    ffn.up.bias (F)      biases with ffn_bias
 *     ffn.gate.weight (F, C)  ffn.gate.bias (F)    when gated: down(activation(gate(x)) up(x))
 *     ffn.down.weight (C, F)  ffn.down.bias (C)
 *
 * A kind of attention that goes without q and k has no "attn.q" and "attn.k".
 * A kind of attention, and what is done to q and k (the hook), may declare more, below "attn.". Gains and biases have
 * TTN_NO_DECAY. Nodes are called like what they compute: "norm1", "attn.q", "attn.q.rotary", "attn.core", "attn.out", "residual1",
 * "norm2", "ffn", "residual2".
 *
 * As builders of ops do, these return a value's number, or TTN_FAILED once anything has failed; the graph keeps the message.
 */
#ifndef TTN_NN_H
#define TTN_NN_H

#include <stdint.h>
#include "autograd/graph.h"
#include "autograd/ops.h"

TTN_API_BEGIN

typedef enum { TTN_NORM_LAYER, TTN_NORM_RMS } ttn_norm_form;

/* Called for q and for k between their projection and rotary, with "attn." as the scope: `which` is "q" or "k", x (N, C).
 * Declares what it needs and returns a value of the same shape: norms of queries and keys are written so. */
typedef int (*ttn_nn_hook)(ttn_graph *g, const char *which, int x, int64_t heads, void *ctx);

/* Everything that distinguishes one encoder layer from another. Begin with ttn_layer_default. */
typedef struct {
    int64_t width;  /* C */
    int64_t heads;  /* H, divides C */
    int64_t hidden; /* F */

    int post_norm;      /* norms after the sums, not before the parts */
    ttn_norm_form norm; /* rmsnorm never has a bias */
    int norm_bias;
    double norm_eps;

    const char *attention;      /* a kind, by name: "exact", "none" */
    const void *attention_attr; /* what that kind's `attr` has made of a configuration; NULL: its options' defaults */
    int causal;                 /* rows see the rows before them and themselves */
    int attn_bias;              /* of q, k, v and the output's projection */
    ttn_nn_hook qk;             /* NULL: none */
    void *qk_ctx;

    int rotary; /* q and k are turned by their rows' positions */
    ttn_rotary_form rotary_form;
    double rotary_base;
    int rotary_frequencies; /* a state (D/2), or TTN_NONE: from rotary_base */

    ttn_activation activation;
    int gated;
    int ffn_bias;

    double dropout;           /* of what is added to x, in [0, 1) */
    double attention_dropout; /* of attention's weights */

    ttn_init weight; /* how matrices begin; gains begin as 1 and biases as 0 */
    ttn_init out;    /* … attn.out and ffn.down, whose products are added to x */

    int marked; /* each layer is a block whose values may be computed again in backward (ttn_block_begin) */
} ttn_layer_spec;

/* Pre-norm with layernorm (eps 1e-5), exact attention in both directions, gelu (erf), biases everywhere, no positions
 * (rotary off; if it is switched on: halves, base 10,000), no dropout, every matrix normal with deviation 0.02, marked. */
ttn_layer_spec ttn_layer_default(int64_t width, int64_t heads, int64_t hidden);

/* Layer number `layer`, in a scope of its own "layer.NUMBER.": x (N, C), and so the result. */
int ttn_nn_layer(ttn_graph *g, int x, const ttn_layer_spec *s, int layer);

/* ---- its parts, in the scope that is open: for models that put them together in another way ---- */

/* x W^T + b with parameters "NAME.weight" (out, C) and, with bias, "NAME.bias" (out). x (N, C), or (R, C), or (S, C). */
int ttn_nn_linear(ttn_graph *g, const char *name, int x, int64_t out, int bias, ttn_init weight);

/* Over the last axis of x (N, C), as s->norm says; parameters "NAME.gain" (C) and "NAME.bias" (C). */
int ttn_nn_norm(ttn_graph *g, const char *name, int x, const ttn_layer_spec *s);

/* From x (N, C) to the projection of what attention returns (N, C); parameters "attn.…". */
int ttn_nn_attention(ttn_graph *g, int x, const ttn_layer_spec *s);

/* The feed-forward block of x (N, C), or (R, C); parameters "ffn.…". */
int ttn_nn_ffn(ttn_graph *g, int x, const ttn_layer_spec *s);

TTN_API_END
#endif
