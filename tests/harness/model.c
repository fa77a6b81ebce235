#include <stdio.h>
#include "autograd/ops.h"
#include "tests/harness/model.h"

const char *const model_shape_name[MODEL_N_SHAPES] = {
    [MODEL_PRE_NORM] = "pre-norm", [MODEL_POST_NORM] = "post-norm", [MODEL_SKIP] = "skip over two blocks",
    [MODEL_TIED] = "tied weight",  [MODEL_TWO_HEADS] = "two heads", [MODEL_FROZEN] = "frozen halves",
};

static const ttn_init small = {TTN_INIT_NORMAL, 0.3};
static const ttn_init one = {TTN_INIT_CONSTANT, 1};
static const ttn_init zero = {TTN_INIT_CONSTANT, 0};

static int norm(const model_config *c, ttn_graph *g, int x)
{
    ttn_scope_begin(g, "norm");
    int gain = ttn_param(g, "gain", ttn_vector(c->width), one, TTN_NO_DECAY);
    int bias = ttn_param(g, "bias", ttn_vector(c->width), zero, TTN_NO_DECAY);
    ttn_scope_end(g);
    return ttn_layernorm(g, "norm", x, gain, bias, 1e-5);
}

/* Two linear layers with gelu between them. `tied`: the first one's weight, or TTN_NONE for one of its own. */
static int feed_forward(const model_config *c, ttn_graph *g, int x, int tied)
{
    int w1 = tied == TTN_NONE ? ttn_param(g, "up.weight", ttn_matrix(c->hidden, c->width), small, 0) : tied;
    int b1 = ttn_param(g, "up.bias", ttn_vector(c->hidden), small, TTN_NO_DECAY);
    int w2 = ttn_param(g, "down.weight", ttn_matrix(c->width, c->hidden), small, 0);
    int h = ttn_linear(g, "up", x, w1, b1);
    h = ttn_gelu(g, "gelu", h, TTN_ACT_GELU_ERF);
    return ttn_linear(g, "down", h, w2, TTN_NONE);
}

static int block(const model_config *c, ttn_graph *g, int x, int before, int tied)
{
    int h;
    if (c->shape == MODEL_POST_NORM) {
        h = norm(c, g, ttn_add(g, "add", x, feed_forward(c, g, x, tied)));
    } else {
        h = ttn_add(g, "add", x, feed_forward(c, g, norm(c, g, x), tied));
    }
    if (before != TTN_NONE) h = ttn_add(g, "skip", h, before);
    return h;
}

static void freeze(const model_config *c, ttn_graph *g)
{
    for (int l = 0; l < c->layers / 2; l++) {
        char pattern[32];
        snprintf(pattern, sizeof pattern, "layer.%d.*", l);
        ttn_graph_freeze(g, pattern, 1);
    }
    ttn_graph_freeze(g, "*.gain", 1);
}

model model_record(const model_config *c)
{
    ttn_graph *g = ttn_graph_create(c->capacity);
    model m = {.g = g};
    m.x = ttn_input(g, "x", ttn_rows(g, c->width));
    m.target = ttn_input(g, "target", ttn_rows(g, c->width));
    int w = ttn_param(g, "embed.weight", ttn_matrix(c->width, c->width), small, 0);
    int h = ttn_linear(g, "embed", m.x, w, TTN_NONE);
    int tied =
        c->shape == MODEL_TIED ? ttn_param(g, "tied.weight", ttn_matrix(c->hidden, c->width), small, 0) : TTN_NONE;
    int into_last = TTN_NONE; /* what went into the block before */
    for (int l = 0; l < c->layers; l++) {
        int before = c->shape == MODEL_SKIP && l % 2 == 1 ? into_last : TTN_NONE;
        into_last = h;
        ttn_scope_begin(g, "layer.%d", l);
        if (c->marked) ttn_block_begin(g);
        h = block(c, g, h, before, tied);
        if (c->marked) ttn_block_end(g);
        ttn_scope_end(g);
    }
    if (c->shape == MODEL_TWO_HEADS) {
        int other = ttn_param(g, "other.weight", ttn_matrix(3, c->width), small, 0);
        ttn_linear(g, "other", h, other, TTN_NONE);
    }
    int head = c->shape == MODEL_TIED ? w : ttn_param(g, "head.weight", ttn_matrix(c->width, c->width), small, 0);
    m.out = ttn_linear(g, "head", h, head, TTN_NONE);
    m.loss = ttn_mse(g, "loss", m.out, m.target);
    if (c->shape == MODEL_FROZEN) freeze(c, g);
    return m;
}
