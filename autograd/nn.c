/* Straight-line recording: which layer it is stands in the spec, and which kind of attention in the registry. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/graph_impl.h"
#include "autograd/nn.h"
#include "core/values.h"

static const ttn_init one = {TTN_INIT_CONSTANT, 1};
static const ttn_init zero = {TTN_INIT_CONSTANT, 0};

ttn_layer_spec ttn_layer_default(int64_t width, int64_t heads, int64_t hidden)
{
    const ttn_init normal = {TTN_INIT_NORMAL, 0.02};
    return (ttn_layer_spec){
        .width = width,
        .heads = heads,
        .hidden = hidden,
        .norm = TTN_NORM_LAYER,
        .norm_bias = 1,
        .norm_eps = 1e-5,
        .attention = "exact",
        .attn_bias = 1,
        .rotary_form = TTN_ROTARY_HALVES,
        .rotary_base = 10000,
        .rotary_frequencies = TTN_NONE,
        .activation = TTN_ACT_GELU_ERF,
        .ffn_bias = 1,
        .weight = normal,
        .out = normal,
        .marked = 1,
    };
}

static int failed(const ttn_graph *g)
{
    return !g || g->error.status != TTN_OK;
}

/* ---- leaves ---- */

static int matrix(ttn_graph *g, const char *name, int64_t out, int64_t in, ttn_init init)
{
    ttn_scope_begin(g, "%s", name);
    int w = ttn_param(g, "weight", ttn_matrix(out, in), init, 0);
    ttn_scope_end(g);
    return w;
}

/* TTN_NONE where there is to be none. */
static int vector(ttn_graph *g, const char *name, const char *which, int wanted, int64_t n, ttn_init init)
{
    if (!wanted) return TTN_NONE;
    ttn_scope_begin(g, "%s", name);
    int b = ttn_param(g, which, ttn_vector(n), init, TTN_NO_DECAY);
    ttn_scope_end(g);
    return b;
}

/* The width of x (…, C); 0 for what is no value, which the next op says. */
static int64_t width_of(const ttn_graph *g, int x)
{
    const ttn_desc d = ttn_desc_of_value(g, x);
    return d.ndim > 0 ? d.dim[d.ndim - 1] : 0;
}

/* ---- linear, norm ---- */

int ttn_nn_linear(ttn_graph *g, const char *name, int x, int64_t out, int bias, ttn_init weight)
{
    int w = matrix(g, name, out, width_of(g, x), weight);
    int b = vector(g, name, "bias", bias, out, zero);
    return ttn_linear(g, name, x, w, b);
}

int ttn_nn_norm(ttn_graph *g, const char *name, int x, const ttn_layer_spec *s)
{
    const int64_t C = width_of(g, x);
    int gain = vector(g, name, "gain", 1, C, one);
    if (s->norm == TTN_NORM_RMS) return ttn_rmsnorm(g, name, x, gain, s->norm_eps);
    int bias = vector(g, name, "bias", s->norm_bias, C, zero);
    return ttn_layernorm(g, name, x, gain, bias, s->norm_eps);
}

/* ---- attention ---- */

/* "exact, none" */
static void list_kinds(char *text, size_t room)
{
    size_t end = 0;
    text[0] = 0;
    for (int i = 0; ttn_ops[i]; i++) {
        if (!ttn_ops[i]->attention || end >= room) continue;
        const char *kind = strchr(ttn_ops[i]->name, '_') + 1;
        end += (size_t)snprintf(text + end, room - end, "%s%s", end ? ", " : "", kind);
    }
}

static const ttn_op *find_kind(ttn_graph *g, const char *kind)
{
    const ttn_op *op = kind ? ttn_attention_find(kind) : NULL;
    if (op) return op;
    char kinds[256];
    list_kinds(kinds, sizeof kinds);
    TTN_FAIL(&g->error, TTN_EINVAL, "%sattention: there is no kind '%s'; there are %s", g->scope, kind ? kind : "",
             kinds);
    return NULL;
}

/* Records the kind with the attributes of a configuration, or its defaults. */
static int build(ttn_graph *g, const ttn_op *op, const ttn_attn_in *in, const void *attr)
{
    const ttn_attention *a = op->attention;
    if (attr || op->attr_bytes == 0) return a->build(g, in, attr);
    void *made = calloc(1, op->attr_bytes);
    ttn_values *defaults = NULL;
    int out = TTN_FAILED;
    if (made && ttn_values_create(a->options, a->n_options, &defaults, NULL) == TTN_OK) {
        const ttn_option_reader reader = ttn_values_reader(defaults);
        if (a->attr(&reader, 0, made, &g->error) == TTN_OK) out = a->build(g, in, made);
    } else {
        TTN_FAIL(&g->error, TTN_ENOMEM, "%sattention: out of memory for its attributes", g->scope);
    }
    ttn_values_destroy(defaults);
    free(made);
    return out;
}

/* q or k, as attention gets it. */
static int query_or_key(ttn_graph *g, const char *which, int x, const ttn_layer_spec *s)
{
    int y = ttn_nn_linear(g, which, x, s->width, s->attn_bias, s->weight);
    if (s->qk) y = s->qk(g, which, y, s->heads, s->qk_ctx);
    if (!s->rotary) return y;
    ttn_scope_begin(g, "%s", which);
    y = ttn_rotary(g, "rotary", y, s->rotary_frequencies, s->heads, s->rotary_base, s->rotary_form);
    ttn_scope_end(g);
    return y;
}

int ttn_nn_attention(ttn_graph *g, int x, const ttn_layer_spec *s)
{
    if (failed(g)) return TTN_FAILED;
    const ttn_op *kind = find_kind(g, s->attention);
    if (!kind) return TTN_FAILED;
    const ttn_attention *a = kind->attention;
    const int values_alone = s->attention_attr && a->values_alone && a->values_alone(s->attention_attr);
    ttn_scope_begin(g, "attn");
    int q = values_alone ? TTN_NONE : query_or_key(g, "q", x, s);
    int k = values_alone ? TTN_NONE : query_or_key(g, "k", x, s);
    int v = ttn_nn_linear(g, "v", x, s->width, s->attn_bias, s->weight);
    const ttn_attn_in in = {
        .q = q,
        .k = k,
        .v = v,
        .heads = (int)s->heads,
        .causal = s->causal,
        .dropout = s->attention_dropout,
        .name = "core",
    };
    int y = failed(g) ? TTN_FAILED : build(g, kind, &in, s->attention_attr);
    y = ttn_nn_linear(g, "out", y, s->width, s->attn_bias, s->out);
    ttn_scope_end(g);
    return y;
}

/* ---- feed-forward, layer ---- */

int ttn_nn_ffn(ttn_graph *g, int x, const ttn_layer_spec *s)
{
    const int64_t C = width_of(g, x);
    ttn_scope_begin(g, "ffn");
    int gate = s->gated ? matrix(g, "gate", s->hidden, C, s->weight) : TTN_NONE;
    int gate_bias = vector(g, "gate", "bias", s->gated && s->ffn_bias, s->hidden, zero);
    int up = matrix(g, "up", s->hidden, C, s->weight);
    int up_bias = vector(g, "up", "bias", s->ffn_bias, s->hidden, zero);
    int down = matrix(g, "down", C, s->hidden, s->out);
    int down_bias = vector(g, "down", "bias", s->ffn_bias, C, zero);
    ttn_scope_end(g);
    int activated = s->gated ? gate : up;
    int activated_bias = s->gated ? gate_bias : up_bias;
    int factor = s->gated ? up : TTN_NONE;
    int factor_bias = s->gated ? up_bias : TTN_NONE;
    return ttn_ffn(g, "ffn", x, activated, activated_bias, down, down_bias, factor, factor_bias, s->activation);
}

/* Does the spec fit x? Ops find the rest, but they would speak of their own inputs. */
static int check(ttn_graph *g, int x, const ttn_layer_spec *s)
{
    const ttn_desc d = ttn_desc_of_value(g, x);
    char text[TTN_DESC_TEXT];
    if (d.ndim != 2 || d.axis != TTN_ROWS || d.dim[1] != s->width)
        TTN_FAIL(&g->error, TTN_EINVAL, "%sx is %s, expected rows of a batch of width %" PRId64, g->scope,
                 ttn_desc_print(&d, text), s->width);
    else if (s->heads < 1 || s->width % s->heads != 0)
        TTN_FAIL(&g->error, TTN_EINVAL, "%swidth %" PRId64 " cannot be divided among %" PRId64 " heads", g->scope,
                 s->width, s->heads);
    else if (s->hidden < 1)
        TTN_FAIL(&g->error, TTN_EINVAL, "%sa feed-forward block with %" PRId64 " hidden channels", g->scope, s->hidden);
    return !failed(g);
}

static int pre_norm(ttn_graph *g, int x, const ttn_layer_spec *s)
{
    int y = ttn_nn_attention(g, ttn_nn_norm(g, "norm1", x, s), s);
    x = ttn_residual(g, "residual1", x, y, s->dropout);
    y = ttn_nn_ffn(g, ttn_nn_norm(g, "norm2", x, s), s);
    return ttn_residual(g, "residual2", x, y, s->dropout);
}

static int post_norm(ttn_graph *g, int x, const ttn_layer_spec *s)
{
    int y = ttn_nn_attention(g, x, s);
    x = ttn_nn_norm(g, "norm1", ttn_residual(g, "residual1", x, y, s->dropout), s);
    y = ttn_nn_ffn(g, x, s);
    return ttn_nn_norm(g, "norm2", ttn_residual(g, "residual2", x, y, s->dropout), s);
}

int ttn_nn_layer(ttn_graph *g, int x, const ttn_layer_spec *s, int layer)
{
    if (failed(g)) return TTN_FAILED;
    ttn_scope_begin(g, "layer.%d", layer);
    int y = TTN_FAILED;
    if (check(g, x, s)) {
        if (s->marked) ttn_block_begin(g);
        y = s->post_norm ? post_norm(g, x, s) : pre_norm(g, x, s);
        if (s->marked) ttn_block_end(g);
    }
    ttn_scope_end(g);
    return y;
}
