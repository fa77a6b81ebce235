/* Straight-line recording: what a model is stands in its spec (train/model_spec.c). */
#include <math.h>
#include "autograd/attention.h"
#include "autograd/ops/rotary.h"
#include "core/memory.h"
#include "train/model.h"

/* Added to the mean square of a head of queries or keys. */
#define QK_NORM_EPS 1e-6

/* ---- embedding ---- */

static int embedding(ttn_graph *g, const ttn_model_spec *s, int tokens, int table)
{
    const ttn_token_dropout dropout = {.mask = s->mask, .share = s->token_dropout_share};
    return ttn_embedding(g, "embed", tokens, table, s->token_dropout_share >= 0 ? &dropout : NULL);
}

static int with_positions(ttn_graph *g, const ttn_model_spec *s, int x)
{
    switch (s->places) {
    case TTN_PLACES_LEARNED: {
        const int64_t rows = s->max_positions + s->position_offset;
        int table = ttn_param(g, "positions.weight", ttn_matrix(rows, s->layer.width), s->layer.weight, TTN_NO_DECAY);
        return ttn_positions(g, "positions", x, table, s->position_offset);
    }
    case TTN_PLACES_SINUSOID:
        return ttn_sinusoid(g, "positions", x, s->position_offset, s->sinusoid_form);
    case TTN_PLACES_ROTARY:
    case TTN_PLACES_NONE:
        break;
    }
    return x;
}

static int embedded(ttn_graph *g, const ttn_model_spec *s, int tokens, int table)
{
    int x = with_positions(g, s, embedding(g, s, tokens, table));
    ttn_scope_begin(g, "embed");
    if (s->embed_norm) x = ttn_nn_norm(g, "norm", x, &s->layer);
    if (s->layer.dropout > 0) x = ttn_dropout(g, "dropout", x, s->layer.dropout);
    ttn_scope_end(g);
    return x;
}

/* ---- layers ---- */

/* A ttn_nn_hook; ctx: the layer's ttn_model_attention. */
static int norm_of_heads(ttn_graph *g, const char *which, int x, int64_t heads, void *ctx)
{
    const ttn_model_attention *a = ctx;
    const ttn_init begin = {TTN_INIT_CONSTANT, a->qk_gain};
    ttn_scope_begin(g, "%s", which);
    int gain = ttn_param(g, "norm.gain", ttn_vector(heads), begin, TTN_NO_DECAY);
    int y = ttn_headnorm(g, "norm", x, gain, heads, QK_NORM_EPS);
    ttn_scope_end(g);
    return y;
}

static int layers(ttn_graph *g, const ttn_model_spec *s, int x)
{
    ttn_layer_spec layer = s->layer;
    layer.rotary = s->places == TTN_PLACES_ROTARY;
    layer.rotary_frequencies = TTN_NONE;
    if (layer.rotary && s->stored_frequencies)
        layer.rotary_frequencies = ttn_state(g, "rotary.frequencies", ttn_vector(layer.width / layer.heads / 2));
    for (int64_t l = 0; l < s->layers; l++) {
        ttn_model_attention *a = &s->attention[l];
        layer.attention = a->kind;
        layer.attention_attr = a->attr;
        layer.qk = s->qk_norm ? norm_of_heads : NULL;
        layer.qk_ctx = a;
        x = ttn_nn_layer(g, x, &layer, (int)l);
    }
    return x;
}

/* ---- head ---- */

static int activated(ttn_graph *g, int x, ttn_activation activation)
{
    switch (activation) {
    case TTN_ACT_GELU_ERF:
    case TTN_ACT_GELU_TANH:
        return ttn_gelu(g, "activation", x, activation);
    case TTN_ACT_RELU:
        return ttn_relu(g, "activation", x);
    case TTN_ACT_SILU:
        return ttn_silu(g, "activation", x);
    }
    return TTN_FAILED;
}

/* x (R, C) to logits (R, V). */
static int head(ttn_graph *g, const ttn_model_spec *s, int x, int table)
{
    ttn_scope_begin(g, "head");
    if (s->head != TTN_HEAD_LINEAR) {
        x = ttn_nn_linear(g, "dense", x, s->layer.width, 1, s->layer.weight);
        x = activated(g, x, s->head == TTN_HEAD_ESM ? TTN_ACT_GELU_ERF : s->layer.activation);
        x = ttn_nn_norm(g, "norm", x, &s->layer);
    }
    int decoder =
        s->tied ? table : ttn_param(g, "decoder.weight", ttn_matrix(s->vocabulary, s->layer.width), s->layer.weight, 0);
    int bias = ttn_param(g, "bias", ttn_vector(s->vocabulary), (ttn_init){TTN_INIT_CONSTANT, 0}, TTN_NO_DECAY);
    int logits = ttn_linear(g, "logits", x, decoder, bias);
    ttn_scope_end(g);
    return logits;
}

/* ---- the model ---- */

static void predict(ttn_graph *g, const ttn_model_spec *s, int table, ttn_model *m)
{
    const int64_t picks = ttn_graph_capacity(g).picks;
    m->index = ttn_input(g, "index", ttn_desc_of(TTN_I64, TTN_PICKS, 1, picks, 0, 0));
    m->logits = head(g, s, ttn_select(g, "picked", m->hidden, m->index), table);
}

static void judge(ttn_graph *g, ttn_model_mode mode, ttn_model *m)
{
    const int64_t picks = ttn_graph_capacity(g).picks;
    m->target = ttn_input(g, "target", ttn_desc_of(TTN_U8, TTN_PICKS, 1, picks, 0, 0));
    if (mode == TTN_MODEL_WEIGHTED_LOSS)
        m->weight = ttn_input(g, "weight", ttn_desc_of(TTN_REAL, TTN_PICKS, 1, picks, 0, 0));
    m->loss = ttn_xent(g, "loss", m->logits, m->target, m->weight, TTN_BATCH_NO_TARGET, 0);
    m->loss_row = ttn_output(g, m->loss, 1);
}

void ttn_model_build(ttn_graph *g, const ttn_model_spec *s, ttn_model_mode mode, ttn_model *ret)
{
    *ret = (ttn_model){
        .index = TTN_NONE,
        .target = TTN_NONE,
        .weight = TTN_NONE,
        .logits = TTN_NONE,
        .loss = TTN_NONE,
        .loss_row = TTN_NONE,
    };
    ret->tokens = ttn_input(g, "tokens", ttn_desc_of(TTN_U8, TTN_ROWS, 1, ttn_graph_capacity(g).rows, 0, 0));
    int table = ttn_param(g, "embed.weight", ttn_matrix(s->vocabulary, s->layer.width), s->layer.weight, TTN_NO_DECAY);
    int x = layers(g, s, embedded(g, s, ret->tokens, table));
    ret->hidden = s->final_norm ? ttn_nn_norm(g, "norm", x, &s->layer) : x;
    if (mode >= TTN_MODEL_LOGITS) predict(g, s, table, ret);
    if (mode >= TTN_MODEL_LOSS) judge(g, mode, ret);
}

ttn_status ttn_model_init(const ttn_model_spec *s, ttn_weights *w, uint64_t seed, ttn_error *err)
{
    ttn_status status = ttn_weights_init(w, seed, err);
    const int at = ttn_weights_find(w, "rotary.frequencies");
    if (status != TTN_OK || at < 0) return status;
    const int64_t half = ttn_desc_numel(&ttn_weights_at(w, at)->desc);
    real *frequency = ttn_alloc_array(half, sizeof *frequency);
    if (!frequency) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for the frequencies of rotary");
    for (int64_t j = 0; j < half; j++)
        frequency[j] = (real)ttn_rotary_frequency(s->layer.rotary_base, j, half);
    status = ttn_weights_write(w, at, TTN_SLAB_VALUE, frequency, err);
    ttn_free(frequency);
    return status;
}
