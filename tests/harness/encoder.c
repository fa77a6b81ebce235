#include "tests/harness/encoder.h"
#include <string.h>
#include "autograd/graph_impl.h"
#include "autograd/nn.h"
#include "autograd/ops.h"
#include "core/device.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/test.h"

enum { SEQS = 3, HIDDEN = 40 };

static const ttn_init small = {TTN_INIT_NORMAL, 0.3};

static int value_called(const ttn_graph *g, const char *name)
{
    int v = 0;
    while (v < g->n_value && strcmp(ttn_name_of_value(g, v), name) != 0)
        v++;
    assert_true(v < g->n_value);
    return v;
}

encoder encoder_record(int layers)
{
    encoder e = {.g = ttn_graph_create((ttn_extent){.rows = ENCODER_ROWS, .seqs = SEQS, .picks = ENCODER_ROWS})};
    ttn_graph *g = e.g;
    const int tokens = ttn_input(g, "tokens", ttn_desc_of(TTN_U8, TTN_ROWS, 1, ENCODER_ROWS, 0, 0));
    const int picks = ttn_input(g, "picks", ttn_desc_of(TTN_I64, TTN_PICKS, 1, ENCODER_ROWS, 0, 0));
    const int targets = ttn_input(g, "targets", ttn_desc_of(TTN_U8, TTN_PICKS, 1, ENCODER_ROWS, 0, 0));
    const int table = ttn_param(g, "embed.weight", ttn_matrix(ENCODER_VOCABULARY, ENCODER_WIDTH), small, 0);
    ttn_layer_spec s = ttn_layer_default(ENCODER_WIDTH, ENCODER_HEADS, HIDDEN);
    s.rotary = 1;
    s.dropout = 0.1;
    s.attention_dropout = 0.1;
    s.weight = small;
    s.out = small;
    const ttn_token_dropout esm = {.mask = ENCODER_MASK, .share = 0.12};
    int x = ttn_embedding(g, "embed", tokens, table, &esm);
    for (int l = 0; l < layers; l++)
        x = ttn_nn_layer(g, x, &s, l);
    e.attention = value_called(g, "layer.0.attn.core");
    e.hidden = ttn_nn_norm(g, "norm", x, &s);
    x = ttn_select(g, "picked", e.hidden, picks);
    ttn_scope_begin(g, "head");
    x = ttn_nn_linear(g, "dense", x, ENCODER_WIDTH, 1, small);
    x = ttn_gelu(g, "gelu", x, TTN_ACT_GELU_ERF);
    x = ttn_nn_norm(g, "norm", x, &s);
    const int bias = ttn_param(g, "bias", ttn_vector(ENCODER_VOCABULARY), small, TTN_NO_DECAY);
    e.logits = ttn_linear(g, "logits", x, table, bias); /* tied */
    ttn_scope_end(g);
    e.loss = ttn_xent(g, "loss", e.logits, targets, TTN_NONE, 255, 0);
    return e;
}

void encoder_fill(encoder_batch *b, uint64_t seed)
{
    *b = (encoder_batch){.feed = {.used = {.seqs = SEQS}, .seed = 7, .step = 11, .training = 1}};
    ttn_rng draw = {.key = seed};
    int64_t row = 0;
    int64_t pick = 0;
    for (int s = 0; s < SEQS; s++) {
        const int64_t n = 2 + (int64_t)ttn_rng_next_below(&draw, 40);
        b->span[s] = (ttn_span){.first = row, .n = n};
        b->start[s] = 5 * s;
        b->sample[s] = seed * 100 + (uint64_t)s;
        for (int64_t t = 0; t < n; t++) {
            const uint64_t token = ttn_rng_next_below(&draw, ENCODER_MASK);
            b->token[row + t] = (uint8_t)token;
            if (t % 5 != 1) continue;
            b->token[row + t] = ENCODER_MASK;
            b->pick[pick] = row + t;
            b->target[pick++] = (uint8_t)token;
        }
        row = (row + n + 12) / 12 * 12; /* at least one row of none */
    }
    b->pick[pick] = -1; /* a row of zeros, which does not count */
    b->target[pick++] = 255;
    b->feed.used.rows = row;
    b->feed.used.picks = pick;
    b->feed.span = b->span;
    b->feed.start = b->start;
    b->feed.sample = b->sample;
}

void encoder_bind(ttn_plan *p, const encoder_batch *b)
{
    ttn_error err = {0};
    assert_ok(ttn_plan_bind(p, "tokens", b->token, &err), &err);
    assert_ok(ttn_plan_bind(p, "picks", b->pick, &err), &err);
    assert_ok(ttn_plan_bind(p, "targets", b->target, &err), &err);
}

static real *reals(int64_t n)
{
    real *x = ttn_alloc_array(n, sizeof *x);
    assert_non_null(x);
    return x;
}

static void read_gradients(const ttn_weights *w, encoder_result *r)
{
    ttn_error err = {0};
    r->n_gradient = 0;
    for (int i = 0; i < ttn_weights_count(w); i++)
        r->n_gradient += ttn_desc_numel(&ttn_weights_at(w, i)->desc);
    r->gradient = reals(r->n_gradient);
    real *to = r->gradient;
    for (int i = 0; i < ttn_weights_count(w); i++) {
        assert_ok(ttn_weights_read(w, i, TTN_SLAB_M, to, &err), &err);
        to += ttn_desc_numel(&ttn_weights_at(w, i)->desc);
    }
}

void encoder_train(const encoder *e, ttn_device *d, const encoder_way *way, encoder_result *ret)
{
    ttn_error err = {0};
    ttn_device *host = NULL;
    if (!d) assert_ok(ttn_device_cpu(&host, &err), &err);
    ttn_device *on = d ? d : host;
    const ttn_stream stream = {.device = on, .n_thread = 1};
    const int keep[] = {e->logits, e->hidden};
    const ttn_plan_options o = {.keep = keep,
                                .n_keep = 2,
                                .loss = &e->loss,
                                .n_loss = 1,
                                .budget = way->budget,
                                .debug = way->debug,
                                .tap = way->tap,
                                .n_tap = way->tap != NULL,
                                .device = on};
    *ret = (encoder_result){.logits = reals(ENCODER_ROWS * ENCODER_VOCABULARY),
                            .hidden = reals(ENCODER_ROWS * ENCODER_WIDTH)};
    ttn_weights *w;
    ttn_plan *p;
    assert_ok(ttn_weights_create(e->g, on, &w, &err), &err);
    assert_ok(ttn_weights_init(w, 5, &err), &err);
    assert_ok(ttn_weights_require(w, TTN_SLAB_M, &err), &err);
    assert_ok(ttn_plan_create(e->g, &o, &p, &err), &err);
    assert_ok(ttn_plan_attach(p, w, &err), &err);
    ret->again = ttn_plan_report_of(p)->n_again;
    for (int b = 0; b < way->batches; b++) {
        encoder_batch batch;
        encoder_fill(&batch, 1 + (uint64_t)b);
        encoder_bind(p, &batch);
        assert_ok(ttn_plan_run(p, &batch.feed, NULL, &err), &err);
        assert_ok(on->ops->add(&stream, ttn_weights_slab(w, TTN_SLAB_M), ttn_weights_slab(w, TTN_SLAB_GRADIENT),
                               ttn_weights_slab_elements(w), &err),
                  &err);
        real loss;
        assert_ok(ttn_plan_read(p, e->loss, &loss, &err), &err);
        ret->loss[b] = (double)loss;
    }
    int n;
    const double *stat = ttn_plan_stat(p, e->loss, &n);
    assert_int_equal(n, 3);
    memcpy(ret->stat, stat, sizeof ret->stat);
    assert_ok(ttn_plan_read(p, e->logits, ret->logits, &err), &err);
    assert_ok(ttn_plan_read(p, e->hidden, ret->hidden, &err), &err);
    read_gradients(w, ret);
    ttn_plan_destroy(p);
    ttn_weights_destroy(w);
    ttn_device_destroy(host);
}

void encoder_free(encoder_result *r)
{
    ttn_free(r->logits);
    ttn_free(r->hidden);
    ttn_free(r->gradient);
}
