/* Whole encoders put together by autograd/nn: names, and what must hold for every shape of layer and any batch. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "autograd/nn.h"
#include "autograd/plan.h"
#include "core/gemm.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "tests/harness/toy.h"

enum { WIDTH = 24, HEADS = 3, HIDDEN = 40, LAYERS = 3 };

/* ---- shapes of layers ---- */

/* Norms of queries and of keys over the whole width, without a bias: what ESM C does. */
static int norm_of_whole_width(ttn_graph *g, const char *which, int x, int64_t heads, void *ctx)
{
    (void)heads;
    const ttn_layer_spec *s = ctx;
    char name[16];
    snprintf(name, sizeof name, "%s_norm", which);
    return ttn_nn_norm(g, name, x, s);
}

typedef enum { ESM2, BERT, AMPLIFY, QK_NORM, CAUSAL, NONE, DROPPED, N_SHAPES } shape;

static const char *const shape_name[N_SHAPES] = {
    [ESM2] = "pre-norm, rotary",
    [BERT] = "post-norm",
    [AMPLIFY] = "rmsnorm, gated, interleaved rotary, no biases",
    [QK_NORM] = "norms of q and k",
    [CAUSAL] = "causal post-norm, tanh form of gelu",
    [NONE] = "no attention",
    [DROPPED] = "dropout in every place",
};

static ttn_layer_spec spec_of(shape which)
{
    static ttn_layer_spec no_bias; /* of the norms of q and k */
    ttn_layer_spec s = ttn_layer_default(WIDTH, HEADS, HIDDEN);
    s.weight = (ttn_init){TTN_INIT_NORMAL, 0.3}; /* nothing is close to linear */
    s.out = (ttn_init){TTN_INIT_NORMAL, 0.2};
    switch (which) {
    case ESM2:
        s.rotary = 1;
        break;
    case BERT:
        s.post_norm = 1;
        s.norm_eps = 1e-12;
        break;
    case AMPLIFY:
        s.norm = TTN_NORM_RMS;
        s.attn_bias = 0;
        s.ffn_bias = 0;
        s.gated = 1;
        s.activation = TTN_ACT_SILU;
        s.rotary = 1;
        s.rotary_form = TTN_ROTARY_INTERLEAVED;
        break;
    case QK_NORM:
        no_bias = s;
        no_bias.norm_bias = 0;
        s.qk = norm_of_whole_width;
        s.qk_ctx = &no_bias;
        break;
    case CAUSAL:
        s.causal = 1;
        s.post_norm = 1;
        s.activation = TTN_ACT_GELU_TANH;
        break;
    case NONE:
        s.attention = "none";
        break;
    case DROPPED:
        s.rotary = 1;
        s.dropout = 0.2;
        s.attention_dropout = 0.1;
        break;
    case N_SHAPES:
        break;
    }
    return s;
}

/* ---- an encoder ---- */

typedef struct {
    ttn_graph *g;
    int out, loss;
} encoder;

/* x and dout (N, C) are inputs; the loss is the sum of out times dout. */
static encoder record(const ttn_layer_spec *s, int64_t rows)
{
    encoder e = {.g = ttn_graph_create((ttn_extent){.rows = rows, .seqs = 8})};
    int x = ttn_input(e.g, "x", ttn_rows(e.g, WIDTH));
    int dout = ttn_input(e.g, "dout", ttn_rows(e.g, WIDTH));
    x = ttn_nn_linear(e.g, "embed", x, WIDTH, 1, s->weight);
    for (int l = 0; l < LAYERS; l++)
        x = ttn_nn_layer(e.g, x, s, l);
    e.out = s->post_norm ? x : ttn_nn_norm(e.g, "norm", x, s);
    e.loss = toy_dot_of(e.g, "loss", e.out, dout);
    return e;
}

static real *allocate(int64_t n)
{
    real *x = ttn_alloc_array(n, sizeof *x);
    assert_non_null(x);
    return x;
}

static real *numbers(uint64_t key, int64_t n)
{
    real *x = allocate(n);
    ttn_rng_normal(key, 0, n, x);
    return x;
}

/* Weights for e: by their rules, with biases and gains moved away from 0 and 1. */
static ttn_weights *weights_of(const encoder *e)
{
    ttn_error err = {0};
    ttn_weights *w;
    assert_ok(ttn_weights_create(e->g, NULL, &w, &err), &err);
    assert_ok(ttn_weights_init(w, 3, &err), &err);
    for (int i = 0; i < ttn_weights_count(w); i++) {
        const ttn_weight *at = ttn_weights_at(w, i);
        const int64_t n = ttn_desc_numel(&at->desc);
        if (at->desc.ndim != 1) continue;
        real *value = ttn_weights_address(w, i, TTN_SLAB_VALUE);
        real *more = numbers(100 + (uint64_t)n + (uint64_t)i, n);
        for (int64_t j = 0; j < n; j++)
            value[j] += more[j] / 5;
        ttn_free(more);
    }
    return w;
}

/* ---- one run ---- */

typedef struct {
    real *out;      /* (rows of the capacity, C) */
    real *gradient; /* the slab; NULL: an inference plan */
    int64_t n_gradient;
    size_t bytes;
    double done;
} outcome;

static void release(outcome *r)
{
    ttn_free(r->out);
    ttn_free(r->gradient);
}

/* o says how to plan; o.n_loss 1: with backward. x, dout: (used rows, C). */
static outcome run(const encoder *e, ttn_weights *w, ttn_plan_options o, const ttn_feed *feed, const real *x,
                   const real *dout)
{
    ttn_error err = {0};
    ttn_plan *p;
    outcome r = {0};
    o.keep = &e->out;
    o.n_keep = 1;
    o.loss = o.n_loss ? &e->loss : NULL;
    o.debug |= TTN_PLAN_POISON;
    assert_ok(ttn_plan_create(e->g, &o, &p, &err), &err);
    assert_ok(ttn_plan_attach(p, w, &err), &err);
    assert_ok(ttn_plan_bind(p, "x", x, &err), &err);
    if (o.n_loss) assert_ok(ttn_plan_bind(p, "dout", dout, &err), &err);
    r.n_gradient = ttn_weights_slab_elements(w);
    if (o.n_loss) memset(ttn_weights_slab(w, TTN_SLAB_GRADIENT), 0, (size_t)r.n_gradient * sizeof(real));
    assert_ok(ttn_plan_run(p, feed, NULL, &err), &err);
    r.out = allocate(ttn_graph_capacity(e->g).rows * WIDTH);
    assert_ok(ttn_plan_read(p, e->out, r.out, &err), &err);
    if (o.n_loss) {
        r.gradient = allocate(r.n_gradient);
        memcpy(r.gradient, ttn_weights_slab(w, TTN_SLAB_GRADIENT), (size_t)r.n_gradient * sizeof(real));
    }
    r.bytes = ttn_plan_report_of(p)->bytes;
    r.done = ttn_plan_report_of(p)->done;
    ttn_plan_destroy(p);
    return r;
}

static void expect_finite(const outcome *r, int64_t rows)
{
    double sum = 0;
    for (int64_t i = 0; i < rows * WIDTH; i++)
        sum += fabs((double)r->out[i]);
    assert_true(isfinite(sum) && sum > 0);
    sum = 0;
    for (int64_t i = 0; r->gradient && i < r->n_gradient; i++)
        sum += fabs((double)r->gradient[i]);
    assert_true(isfinite(sum) && (!r->gradient || sum > 0));
}

static void expect_same(const outcome *a, const outcome *b, int64_t rows)
{
    assert_same_bits(a->out, b->out, (size_t)(rows * WIDTH) * sizeof(real));
    assert_int_equal(a->n_gradient, b->n_gradient);
    assert_true(!a->gradient == !b->gradient);
    if (a->gradient) assert_same_bits(a->gradient, b->gradient, (size_t)a->n_gradient * sizeof(real));
}

/* ---- names ---- */

static void expect_parameters(const ttn_layer_spec *s, const char *const *name)
{
    ttn_error err = {0};
    ttn_weights *w;
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 8});
    ttn_nn_layer(g, ttn_input(g, "x", ttn_rows(g, WIDTH)), s, 3);
    assert_ok(ttn_weights_create(g, NULL, &w, &err), &err);
    int n = 0;
    for (; name[n]; n++) {
        char full[80];
        snprintf(full, sizeof full, "layer.3.%s", name[n]);
        int at = ttn_weights_find(w, full);
        if (at < 0) fail_msg("no parameter %s", full);
        const ttn_weight *p = ttn_weights_at(w, at);
        assert_int_equal(p->flags, p->desc.ndim == 1 ? TTN_NO_DECAY : 0);
    }
    assert_int_equal(ttn_weights_count(w), n);
    ttn_weights_destroy(w);
    ttn_graph_destroy(g);
}

static void parameters_have_the_names_that_tables_of_import_are_written_against(void **state)
{
    (void)state;
    static const char *const all[] = {
        "norm1.gain",
        "norm1.bias",
        "attn.q.weight",
        "attn.q.bias",
        "attn.k.weight",
        "attn.k.bias",
        "attn.v.weight",
        "attn.v.bias",
        "attn.out.weight",
        "attn.out.bias",
        "norm2.gain",
        "norm2.bias",
        "ffn.up.weight",
        "ffn.up.bias",
        "ffn.down.weight",
        "ffn.down.bias",
        NULL,
        NULL,
        NULL,
    };
    static const char *const without_biases[] = {
        "norm1.gain", "attn.q.weight", "attn.k.weight",   "attn.v.weight",   "attn.out.weight",
        "norm2.gain", "ffn.up.weight", "ffn.gate.weight", "ffn.down.weight", NULL,
    };
    const char *with_gate[19];
    memcpy(with_gate, all, sizeof all);
    with_gate[16] = "ffn.gate.weight";
    with_gate[17] = "ffn.gate.bias";
    ttn_layer_spec s = spec_of(ESM2);
    expect_parameters(&s, all);
    s = spec_of(BERT);
    expect_parameters(&s, all);
    s.gated = 1;
    expect_parameters(&s, with_gate);
    s = spec_of(AMPLIFY);
    expect_parameters(&s, without_biases);
}

/* Taps, timings and streams of random numbers go by these. */
static void nodes_are_called_like_what_they_compute(void **state)
{
    (void)state;
    static const char *const name[] = {
        "norm1",     "attn.q",   "attn.q.rotary", "attn.k", "attn.k.rotary", "attn.v",
        "attn.core", "attn.out", "residual1",     "norm2",  "ffn",           "residual2",
    };
    const int n = sizeof name / sizeof *name;
    ttn_error err = {0};
    ttn_plan *p;
    ttn_layer_spec s = spec_of(ESM2);
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 8});
    int out = ttn_nn_layer(g, ttn_input(g, "x", ttn_rows(g, WIDTH)), &s, 3);
    assert_ok(ttn_plan_create(g, &(ttn_plan_options){.keep = &out, .n_keep = 1}, &p, &err), &err);
    const ttn_plan_report *r = ttn_plan_report_of(p);
    assert_int_equal(r->n_step, n);
    for (int at = 0; at < n; at++) {
        char full[80];
        snprintf(full, sizeof full, "layer.3.%s", name[at]);
        assert_string_equal(r->step[at].node, full);
    }
    ttn_plan_destroy(p);
    ttn_graph_destroy(g);
}

static void weights_begin_as_the_spec_says(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_weights *w;
    ttn_layer_spec s = ttn_layer_default(240, 3, 480);
    s.out.a = 0.005;
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 8});
    ttn_nn_layer(g, ttn_input(g, "x", ttn_rows(g, 240)), &s, 0);
    assert_ok(ttn_weights_create(g, NULL, &w, &err), &err);
    assert_ok(ttn_weights_init(w, 3, &err), &err);
    for (int i = 0; i < ttn_weights_count(w); i++) {
        const ttn_weight *p = ttn_weights_at(w, i);
        const real *value = ttn_weights_address(w, i, TTN_SLAB_VALUE);
        const int64_t n = ttn_desc_numel(&p->desc);
        double sum = 0;
        double squares = 0;
        for (int64_t j = 0; j < n; j++) {
            sum += (double)value[j];
            squares += (double)(value[j] * value[j]);
        }
        if (p->desc.ndim == 2) {
            const int is_out = strstr(p->name, "attn.out") || strstr(p->name, "ffn.down");
            const double wanted = is_out ? 0.005 : 0.02;
            assert_at_most(fabs(sqrt(squares / (double)n) / wanted - 1), 0.02, p->name); /* 57,600 numbers: 0.3 % */
        } else {
            const double wanted = strstr(p->name, "gain") ? 1 : 0;
            assert_true(sum == wanted * (double)n && squares == sum);
        }
    }
    ttn_weights_destroy(w);
    ttn_graph_destroy(g);
}

static void a_spec_that_does_not_fit_is_refused_in_a_sentence(void **state)
{
    (void)state;
    static const struct {
        int64_t heads, hidden, width;
        const char *attention, *says;
    } wrong[] = {
        {HEADS, HIDDEN, WIDTH, "exat",
         "layer.2.attention: there is no kind 'exat'; there are exact, favor, none, nystrom"},
        {HEADS, HIDDEN, WIDTH, NULL, "there is no kind ''"},
        {5, HIDDEN, WIDTH, "exact", "layer.2.width 24 cannot be divided among 5 heads"},
        {0, HIDDEN, WIDTH, "exact", "among 0 heads"},
        {HEADS, 0, WIDTH, "exact", "layer.2.a feed-forward block with 0 hidden channels"},
        {HEADS, HIDDEN, 48, "exact", "expected rows of a batch of width 48"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ttn_error err = {0};
        ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 8});
        ttn_layer_spec s = ttn_layer_default(wrong[i].width, wrong[i].heads, wrong[i].hidden);
        s.attention = wrong[i].attention;
        int x = ttn_input(g, "x", ttn_rows(g, WIDTH));
        assert_int_equal(ttn_nn_layer(g, x, &s, 2), TTN_FAILED);
        assert_fails(ttn_graph_check(g, &err), TTN_EINVAL, &err, wrong[i].says);
        ttn_graph_destroy(g);
    }
}

static void recording_without_memory_is_said(void **state)
{
    (void)state;
    ttn_layer_spec s = spec_of(AMPLIFY);
    int hits = 0;
    for (int64_t nth = 1;; nth++, hits++) {
        ttn_error err = {0};
        ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 8});
        int x = ttn_input(g, "x", ttn_rows(g, WIDTH));
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
        int y = ttn_nn_layer(g, x, &s, 0);
        shim_disarm();
        if (!shim_was_hit()) {
            ttn_graph_destroy(g);
            break;
        }
        assert_int_equal(y, TTN_FAILED);
        assert_fails(ttn_graph_check(g, &err), TTN_ENOMEM, &err, "out of memory");
        ttn_graph_destroy(g);
    }
    assert_true(hits > 20);
}

/* ---- what a batch must not change ---- */

/* Sequences of these lengths, in this order, at multiples of TTN_ROW_ALIGN. sample[i] is the sequence's number: it says
 * what is in it, so a sequence is the same wherever it stands. */
enum { MOST_SEQUENCES = 6 };

typedef struct {
    int64_t n_seq, n[MOST_SEQUENCES];
    uint64_t sample[MOST_SEQUENCES];
    ttn_span span[MOST_SEQUENCES];
    ttn_feed feed;
    real *x, *dout; /* (used rows, C) */
} batch;

/* `gap`: rows left free in front of every sequence, in units of TTN_ROW_ALIGN. Rows of no sequence hold numbers, too. */
static void fill(batch *b, int64_t gap, int64_t capacity)
{
    int64_t end = 0;
    for (int64_t s = 0; s < b->n_seq; s++) {
        int64_t first = ((end + TTN_ROW_ALIGN - 1) / TTN_ROW_ALIGN + gap) * TTN_ROW_ALIGN;
        b->span[s] = (ttn_span){.first = first, .n = b->n[s]};
        end = first + b->n[s];
    }
    assert_true(end <= capacity);
    b->feed = (ttn_feed){.used = {.rows = end, .seqs = b->n_seq},
                         .span = b->span,
                         .sample = b->sample,
                         .seed = 5,
                         .step = 2,
                         .training = 1};
    b->x = numbers(77 + (uint64_t)gap, end * WIDTH);
    b->dout = allocate(end * WIDTH);
    for (int64_t s = 0; s < b->n_seq; s++) {
        ttn_rng_normal(1000 + b->sample[s], 0, b->n[s] * WIDTH, b->x + b->span[s].first * WIDTH);
        ttn_rng_normal(2000 + b->sample[s], 0, b->n[s] * WIDTH, b->dout + b->span[s].first * WIDTH);
    }
}

static void empty(batch *b)
{
    ttn_free(b->x);
    ttn_free(b->dout);
}

static double largest_difference(const real *a, const real *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    return worst;
}

static const real *rows_of(const outcome *r, const batch *b, int64_t s)
{
    return r->out + b->span[s].first * WIDTH;
}

/* The sequence with 53-bit (24-bit) random numbers: with short ones products are exact and everything passes. */
static void a_sequence_has_the_same_bits_in_any_batch(void **state)
{
    (void)state;
    enum { CAPACITY = 960, N = 205, WHICH = 42 };
    static const batch placed[] = {
        {.n_seq = 1, .n = {N}, .sample = {WHICH}},
        {.n_seq = 3, .n = {N, 130, 1}, .sample = {WHICH, 7, 8}},
        {.n_seq = 3, .n = {300, N, 17}, .sample = {9, WHICH, 10}},
        {.n_seq = 4, .n = {1, 61, 400, N}, .sample = {11, 12, 13, WHICH}},
        {.n_seq = 2, .n = {251, N}, .sample = {14, WHICH}},
        {.n_seq = 6, .n = {1, 1, N, 1, 2, 3}, .sample = {1, 2, WHICH, 3, 4, 5}},
    };
    for (int which = 0; which < N_SHAPES; which++) {
        print_message("# %s\n", shape_name[which]);
        ttn_layer_spec s = spec_of((shape)which);
        encoder e = record(&s, CAPACITY);
        ttn_weights *w = weights_of(&e);
        real *first = NULL;
        for (size_t i = 0; i < sizeof placed / sizeof *placed; i++)
            for (int64_t gap = 0; gap < 2; gap++) {
                batch b = placed[i];
                fill(&b, gap, CAPACITY);
                outcome r = run(&e, w, (ttn_plan_options){.n_thread = 1 + (int)gap}, &b.feed, b.x, NULL);
                int64_t at = 0;
                while (b.sample[at] != WHICH)
                    at++;
                if (!first) {
                    expect_finite(&r, b.feed.used.rows);
                    first = allocate(N * WIDTH);
                    memcpy(first, rows_of(&r, &b, at), N * WIDTH * sizeof *first);
                }
                assert_same_bits(first, rows_of(&r, &b, at), N * WIDTH * sizeof *first);
                release(&r);
                empty(&b);
            }
        ttn_free(first);
        ttn_weights_destroy(w);
        ttn_graph_destroy(e.g);
    }
}

/* Every way of planning one encoder gives the bits of the plan that keeps everything and shares nothing; so does every
 * number of threads. */
static void plans_and_threads_change_no_bit_of_output_and_gradients(void **state)
{
    (void)state;
    batch b = {.n_seq = 3, .n = {100, 1, 193}, .sample = {4, 2, 9}};
    fill(&b, 1, 480);
    const int64_t rows = b.feed.used.rows;
    for (int which = 0; which < N_SHAPES; which++) {
        print_message("# %s\n", shape_name[which]);
        ttn_layer_spec s = spec_of((shape)which);
        encoder e = record(&s, 480);
        ttn_weights *w = weights_of(&e);
        ttn_plan_options o = {.budget = TTN_NO_BUDGET, .debug = TTN_PLAN_NO_SHARE, .n_loss = 1, .n_thread = 1};
        outcome kept = run(&e, w, o, &b.feed, b.x, b.dout);
        expect_finite(&kept, rows);
        o.debug = 0;
        outcome shared = run(&e, w, o, &b.feed, b.x, b.dout);
        expect_same(&kept, &shared, rows);
        o.budget = 0;
        outcome again = run(&e, w, o, &b.feed, b.x, b.dout);
        expect_same(&kept, &again, rows);
        assert_true(again.bytes < shared.bytes && again.done > shared.done);
        for (int part = 1; part <= 3; part++) {
            o.budget = again.bytes + (shared.bytes - again.bytes) * (size_t)part / 4;
            outcome budgeted = run(&e, w, o, &b.feed, b.x, b.dout);
            expect_same(&kept, &budgeted, rows);
            assert_true(budgeted.bytes <= o.budget);
            release(&budgeted);
        }
        static const int threads[] = {2, 3, 5, 8};
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            o.n_thread = threads[t];
            o.budget = t % 2 ? 0 : TTN_NO_BUDGET;
            outcome more = run(&e, w, o, &b.feed, b.x, b.dout);
            expect_same(&kept, &more, rows);
            release(&more);
        }
        release(&kept);
        release(&shared);
        release(&again);
        ttn_weights_destroy(w);
        ttn_graph_destroy(e.g);
    }
    empty(&b);
}

/* ---- what is known without an oracle ---- */

/* An encoder without positions does not know the order of residues. */
static void permuting_residues_permutes_outputs(void **state)
{
    (void)state;
    enum { N = 193 };
    static const shape which[] = {BERT, QK_NORM};
    batch b = {.n_seq = 2, .n = {5, N}, .sample = {4, 2}};
    fill(&b, 0, 480);
    real *x = b.x + b.span[1].first * WIDTH;
    real *straight = allocate(N * WIDTH);
    memcpy(straight, x, N * WIDTH * sizeof *straight);
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        ttn_layer_spec s = spec_of(which[i]);
        encoder e = record(&s, 480);
        ttn_weights *w = weights_of(&e);
        outcome r = run(&e, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
        for (int64_t t = 0; t < N; t++)
            memcpy(x + t * 10 % N * WIDTH, straight + t * WIDTH, WIDTH * sizeof *x);
        outcome permuted = run(&e, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
        double worst = 0;
        for (int64_t t = 0; t < N; t++)
            worst = fmax(worst, largest_difference(rows_of(&r, &b, 1) + t * WIDTH,
                                                   rows_of(&permuted, &b, 1) + t * 10 % N * WIDTH, WIDTH));
        assert_at_most(worst, sizeof(real) == sizeof(double) ? 1e-13 : 1e-4, shape_name[which[i]]);
        memcpy(x, straight, N * WIDTH * sizeof *x);
        release(&r);
        release(&permuted);
        ttn_weights_destroy(w);
        ttn_graph_destroy(e.g);
    }
    ttn_free(straight);
    empty(&b);
}

/* A residue alone can only look at itself: attention returns v, as the kind "none" does. Both kinds have the same
 * parameters, so both graphs run on the same weights. */
static void sequences_of_one_residue_see_only_themselves(void **state)
{
    (void)state;
    batch b = {.n_seq = 5, .n = {1, 1, 1, 1, 1}, .sample = {1, 2, 3, 4, 5}};
    fill(&b, 0, 480);
    static const shape which[] = {ESM2, BERT, AMPLIFY, CAUSAL};
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        ttn_layer_spec s = spec_of(which[i]);
        encoder exact = record(&s, 480);
        s.attention = "none";
        encoder none = record(&s, 480);
        ttn_weights *w = weights_of(&exact);
        outcome a = run(&exact, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
        outcome c = run(&none, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
        for (int64_t q = 0; q < b.n_seq; q++)
            assert_at_most(largest_difference(rows_of(&a, &b, q), rows_of(&c, &b, q), WIDTH),
                           sizeof(real) == sizeof(double) ? 1e-14 : 1e-5, shape_name[which[i]]);
        release(&a);
        release(&c);
        ttn_weights_destroy(w);
        ttn_graph_destroy(exact.g);
        ttn_graph_destroy(none.g);
    }
    empty(&b);
}

/* Rows of a causal encoder do not change when what follows them does. */
static void a_causal_encoder_does_not_look_ahead(void **state)
{
    (void)state;
    enum { N = 200, FROM = 77 };
    batch b = {.n_seq = 1, .n = {N}, .sample = {3}};
    fill(&b, 0, 480);
    ttn_layer_spec s = spec_of(CAUSAL);
    encoder e = record(&s, 480);
    ttn_weights *w = weights_of(&e);
    outcome r = run(&e, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
    for (int64_t i = FROM * WIDTH; i < N * WIDTH; i++)
        b.x[i] *= 3;
    outcome other = run(&e, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
    assert_same_bits(r.out, other.out, FROM * WIDTH * sizeof(real));
    assert_true(largest_difference(r.out + FROM * WIDTH, other.out + FROM * WIDTH, WIDTH) > 1e-3);
    release(&r);
    release(&other);
    ttn_weights_destroy(w);
    ttn_graph_destroy(e.g);
    empty(&b);
}

/* Positions count from a sequence's first residue: moved to another place of the batch it gives the same (above); told to
 * start later in its sequence, an encoder with rotary still gives the same to rounding (only differences of positions
 * count). */
static void rotary_encoders_see_differences_of_positions(void **state)
{
    (void)state;
    enum { N = 97 };
    static const shape which[] = {ESM2, AMPLIFY};
    batch b = {.n_seq = 1, .n = {N}, .sample = {3}};
    fill(&b, 0, 480);
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        ttn_layer_spec s = spec_of(which[i]);
        encoder e = record(&s, 480);
        s.rotary = 0;
        encoder without = record(&s, 480);
        ttn_weights *w = weights_of(&e);
        outcome r = run(&e, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
        const int64_t start = 31;
        b.feed.start = &start;
        outcome later = run(&e, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
        b.feed.start = NULL;
        outcome unordered = run(&without, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
        assert_at_most(largest_difference(r.out, later.out, N * WIDTH), sizeof(real) == sizeof(double) ? 1e-12 : 1e-3,
                       shape_name[which[i]]);
        assert_true(largest_difference(r.out, unordered.out, N * WIDTH) > 0.1);
        release(&r);
        release(&later);
        release(&unordered);
        ttn_weights_destroy(w);
        ttn_graph_destroy(e.g);
        ttn_graph_destroy(without.g);
    }
    empty(&b);
}

/* down(silu(gate(x)) up(x)), written out: which of the two matrices is activated decides what an imported model computes. */
static void a_gated_block_activates_its_gate(void **state)
{
    (void)state;
    enum { C = 5, F = 7, N = 3 };
    ttn_error err = {0};
    ttn_weights *w;
    ttn_plan *p;
    ttn_layer_spec s = spec_of(AMPLIFY);
    s.hidden = F;
    s.ffn_bias = 1;
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 1});
    encoder e = {.g = g, .out = ttn_nn_ffn(g, ttn_input(g, "x", ttn_rows(g, C)), &s)};
    w = weights_of(&e);
    assert_ok(ttn_plan_create(g, &(ttn_plan_options){.keep = &e.out, .n_keep = 1}, &p, &err), &err);
    assert_ok(ttn_plan_attach(p, w, &err), &err);
    real *x = numbers(5, N * C);
    assert_ok(ttn_plan_bind(p, "x", x, &err), &err);
    assert_ok(ttn_plan_run(p, &(ttn_feed){.used = {.rows = N}}, NULL, &err), &err);
    real *y = allocate(480 * C);
    assert_ok(ttn_plan_read(p, e.out, y, &err), &err);

    static const char *const name[] = {"ffn.gate.weight", "ffn.gate.bias",   "ffn.up.weight",
                                       "ffn.up.bias",     "ffn.down.weight", "ffn.down.bias"};
    const real *v[6];
    for (int i = 0; i < 6; i++)
        v[i] = ttn_weights_address(w, ttn_weights_find(w, name[i]), TTN_SLAB_VALUE);
    for (int64_t t = 0; t < N; t++) {
        double h[F];
        for (int f = 0; f < F; f++) {
            double gate = (double)v[1][f];
            double up = (double)v[3][f];
            for (int i = 0; i < C; i++) {
                gate += (double)v[0][f * C + i] * (double)x[t * C + i];
                up += (double)v[2][f * C + i] * (double)x[t * C + i];
            }
            h[f] = gate / (1 + exp(-gate)) * up;
        }
        for (int i = 0; i < C; i++) {
            double wanted = (double)v[5][i];
            for (int f = 0; f < F; f++)
                wanted += (double)v[4][i * F + f] * h[f];
            assert_at_most(fabs((double)y[t * C + i] - wanted), sizeof(real) == sizeof(double) ? 1e-14 : 1e-6, "ffn");
        }
    }
    ttn_free(x);
    ttn_free(y);
    ttn_plan_destroy(p);
    ttn_weights_destroy(w);
    ttn_graph_destroy(g);
}

/* Training runs drop, others do not; and without dropout both are the same. */
static void only_training_runs_drop(void **state)
{
    (void)state;
    batch b = {.n_seq = 2, .n = {61, 100}, .sample = {4, 2}};
    fill(&b, 0, 480);
    static const shape which[] = {ESM2, DROPPED};
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        ttn_layer_spec s = spec_of(which[i]);
        encoder e = record(&s, 480);
        s.dropout = 0;
        s.attention_dropout = 0;
        encoder without = record(&s, 480);
        ttn_weights *w = weights_of(&e);
        outcome trained = run(&e, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
        b.feed.training = 0;
        outcome evaluated = run(&e, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
        b.feed.training = 1;
        outcome plain = run(&without, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
        expect_same(&evaluated, &plain, b.feed.used.rows);
        const double difference = largest_difference(rows_of(&trained, &b, 0), rows_of(&plain, &b, 0), WIDTH);
        assert_true(which[i] == DROPPED ? difference > 0.1 : difference == 0);
        release(&trained);
        release(&evaluated);
        release(&plain);
        ttn_weights_destroy(w);
        ttn_graph_destroy(e.g);
        ttn_graph_destroy(without.g);
    }
    empty(&b);
}

/* ---- gradients ---- */

static double weighted_sum(const outcome *r, const batch *b)
{
    double sum = 0;
    for (int64_t i = 0; i < b->feed.used.rows * WIDTH; i++)
        sum += (double)r->out[i] * (double)b->dout[i];
    return sum;
}

/* The gradient along a direction is the loss's central difference: all blocks together, every parameter in it. */
static void an_encoders_gradient_is_its_loss_derivative(void **state)
{
    (void)state;
    if (sizeof(real) == sizeof(float)) skip_because("central differences are judged in double");
    batch b = {.n_seq = 4, .n = {1, 30, 193, 2}, .sample = {4, 2, 9, 1}};
    fill(&b, 0, 480);
    memset(b.dout + (b.span[0].first + 1) * WIDTH, 0,
           11 * WIDTH * sizeof *b.dout); /* rows of no sequence have no loss */
    for (int which = 0; which < N_SHAPES; which++) {
        ttn_layer_spec s = spec_of((shape)which);
        encoder e = record(&s, 480);
        ttn_weights *w = weights_of(&e);
        const ttn_plan_options o = {.n_loss = 1};
        outcome r = run(&e, w, o, &b.feed, b.x, b.dout);
        assert_non_null(r.gradient);
        real *direction = numbers(7, r.n_gradient);
        real *value = ttn_weights_slab(w, TTN_SLAB_VALUE);
        double along = 0;
        for (int64_t i = 0; r.gradient && i < r.n_gradient; i++)
            along += (double)(r.gradient[i] * direction[i]);
        double sum[2];
        const double h = 1e-6;
        for (int side = 0; side < 2; side++) {
            for (int64_t i = 0; i < r.n_gradient; i++)
                value[i] += (real)(side ? 2 * h : -h) * direction[i];
            outcome moved = run(&e, w, (ttn_plan_options){0}, &b.feed, b.x, NULL);
            sum[side] = weighted_sum(&moved, &b);
            release(&moved);
        }
        const double numeric = (sum[1] - sum[0]) / (2 * h);
        assert_at_most(fabs(numeric - along) / fabs(along), 1e-6, shape_name[which]);
        ttn_free(direction);
        release(&r);
        ttn_weights_destroy(w);
        ttn_graph_destroy(e.g);
    }
    empty(&b);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(8);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_have_the_names_that_tables_of_import_are_written_against),
        cmocka_unit_test(nodes_are_called_like_what_they_compute),
        cmocka_unit_test(weights_begin_as_the_spec_says),
        cmocka_unit_test(a_spec_that_does_not_fit_is_refused_in_a_sentence),
        cmocka_unit_test(recording_without_memory_is_said),
        cmocka_unit_test(a_sequence_has_the_same_bits_in_any_batch),
        cmocka_unit_test(plans_and_threads_change_no_bit_of_output_and_gradients),
        cmocka_unit_test(permuting_residues_permutes_outputs),
        cmocka_unit_test(sequences_of_one_residue_see_only_themselves),
        cmocka_unit_test(a_causal_encoder_does_not_look_ahead),
        cmocka_unit_test(rotary_encoders_see_differences_of_positions),
        cmocka_unit_test(a_gated_block_activates_its_gate),
        cmocka_unit_test(only_training_runs_drop),
        cmocka_unit_test(an_encoders_gradient_is_its_loss_derivative),
    };
    return ttn_test_run(tests);
}
