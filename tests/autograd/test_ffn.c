/* The fused feed-forward op against the ops that it replaces, its two forms against each other, and the memory and the
 * arithmetic that planning promises for it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "autograd/gradcheck.h"
#include "autograd/graph_impl.h"
#include "autograd/ops.h"
#include "autograd/plan.h"
#include "core/blas.h"
#include "core/gemm.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/test.h"

/* ---- the product that a gate needs, for the composition ---- */

static ttn_status mul_shape(ttn_sig *s, ttn_error *err)
{
    (void)err;
    s->n_out = 1;
    s->out[0] = s->in[0];
    return TTN_OK;
}

static ttn_cost mul_cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)pass;
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->in[0]);
    return (ttn_cost){.done = n, .useful = n, .bytes = 3 * n * (double)sizeof(real)};
}

static ttn_status mul_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *a = c->in[0];
    const real *b = c->in[1];
    real *y = c->out[0];
    for (int64_t i = 0; i < ttn_desc_numel(&c->sig->in[0]); i++)
        y[i] = a[i] * b[i];
    return TTN_OK;
}

static ttn_status mul_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *dy = c->dout[0];
    for (int k = 0; k < 2; k++) {
        const real *other = c->in[1 - k];
        real *d = c->din[k];
        for (int64_t i = 0; d && i < ttn_desc_numel(&c->sig->in[0]); i++)
            d[i] = ttn_accumulate(c->acc[k], d[i], dy[i] * other[i]);
    }
    return TTN_OK;
}

static const ttn_op mul = {
    .name = "mul",
    .n_in = 2,
    .n_out = 1,
    .differentiable = TTN_BIT(0) | TTN_BIT(1),
    .reads = {{.in = TTN_BIT(1)}, {.in = TTN_BIT(0)}},
    .shape = mul_shape,
    .cost = mul_cost,
    .cpu = {.forward = mul_forward, .backward = mul_backward},
};

/* ---- a graph with one block, fused or composed ---- */

typedef struct {
    ttn_activation act;
    int gated, biases, fused;
    int64_t rows, C, F;
} config;

typedef struct {
    ttn_graph *g;
    int y, loss;
} block;

enum { N_PARAM = 7 };
static const char *const param_names[N_PARAM] = {"x0", "w1", "b1", "w2", "b2", "w3", "b3"};

static int activation(ttn_graph *g, ttn_activation act, int x)
{
    switch (act) {
    case TTN_ACT_GELU_ERF:
        return ttn_gelu(g, "act", x, TTN_ACT_GELU_ERF);
    case TTN_ACT_GELU_TANH:
        return ttn_gelu(g, "act", x, TTN_ACT_GELU_TANH);
    case TTN_ACT_RELU:
        return ttn_relu(g, "act", x);
    case TTN_ACT_SILU:
        break;
    }
    return ttn_silu(g, "act", x);
}

/* The block reads a product with a weight of its own, x0, so that the gradient of its input is looked at, too. */
static block record(const config *k)
{
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = k->rows});
    const ttn_init init = {TTN_INIT_NORMAL, 0.5};
    const int input = ttn_input(g, "x", ttn_rows(g, k->C));
    const int target = ttn_input(g, "target", ttn_rows(g, k->C));
    const int w0 = ttn_param(g, "x0", ttn_matrix(k->C, k->C), init, 0);
    const int w1 = ttn_param(g, "w1", ttn_matrix(k->F, k->C), init, 0);
    const int b1 = k->biases ? ttn_param(g, "b1", ttn_vector(k->F), init, 0) : TTN_NONE;
    const int w2 = ttn_param(g, "w2", ttn_matrix(k->C, k->F), init, 0);
    const int b2 = k->biases ? ttn_param(g, "b2", ttn_vector(k->C), init, 0) : TTN_NONE;
    const int w3 = k->gated ? ttn_param(g, "w3", ttn_matrix(k->F, k->C), init, 0) : TTN_NONE;
    const int b3 = k->gated && k->biases ? ttn_param(g, "b3", ttn_vector(k->F), init, 0) : TTN_NONE;
    const int x = ttn_linear(g, "x0", input, w0, TTN_NONE);
    block b = {.g = g};
    if (k->fused) {
        b.y = ttn_ffn(g, "ffn", x, w1, b1, w2, b2, w3, b3, k->act);
    } else {
        int h = activation(g, k->act, ttn_linear(g, "up", x, w1, b1));
        if (k->gated) h = ttn_apply_op(g, &mul, "gate", NULL, (int[]){h, ttn_linear(g, "gate_up", x, w3, b3)});
        b.y = ttn_linear(g, "down", h, w2, b2);
    }
    b.loss = ttn_mse(g, "loss", b.y, target);
    ttn_error err = {0};
    assert_ok(ttn_graph_check(g, &err), &err);
    return b;
}

/* ---- planned and run ---- */

typedef struct {
    real loss;
    real *y; /* (rows, C) */
    real *gradient[N_PARAM];
    int64_t n[N_PARAM]; /* 0: there is no such parameter */
    size_t bytes, peak, largest_alive;
    double done, useful;
    int lean;
} outcome;

static real *numbers(uint64_t key, int64_t n)
{
    real *x = ttn_alloc_array(n, sizeof *x);
    assert_non_null(x);
    ttn_rng_normal(key, 0, n, x);
    return x;
}

static void read_report(const ttn_plan *p, outcome *r)
{
    const ttn_plan_report *report = ttn_plan_report_of(p);
    r->bytes = report->bytes;
    r->peak = report->peak;
    r->done = report->done;
    r->useful = report->useful;
    for (int i = 0; i < report->n_alive; i++)
        if (report->alive[i].bytes > r->largest_alive) r->largest_alive = report->alive[i].bytes;
    for (int i = 0; i < report->n_again; i++)
        r->lean |= report->again[i].lean && strcmp(report->again[i].op, "ffn") == 0;
}

static outcome run(const config *k, int64_t used, size_t budget, int n_thread)
{
    ttn_error err = {0};
    ttn_weights *w;
    ttn_plan *p;
    block b = record(k);
    const ttn_feed feed = {.used = {.rows = used}, .training = 1};
    real *x = numbers(1, used * k->C);
    real *target = numbers(2, used * k->C);
    const ttn_plan_options o = {.keep = &b.y,
                                .n_keep = 1,
                                .loss = &b.loss,
                                .n_loss = 1,
                                .budget = budget,
                                .n_thread = n_thread,
                                .debug = TTN_PLAN_POISON};
    assert_ok(ttn_weights_create(b.g, NULL, &w, &err), &err);
    assert_ok(ttn_weights_init(w, 3, &err), &err);
    assert_ok(ttn_plan_create(b.g, &o, &p, &err), &err);
    assert_ok(ttn_plan_attach(p, w, &err), &err);
    assert_ok(ttn_plan_bind(p, "x", x, &err), &err);
    assert_ok(ttn_plan_bind(p, "target", target, &err), &err);
    assert_ok(ttn_plan_run(p, &feed, NULL, &err), &err);

    outcome r = {.y = numbers(3, k->rows * k->C)};
    read_report(p, &r);
    assert_ok(ttn_plan_read(p, b.loss, &r.loss, &err), &err);
    assert_ok(ttn_plan_read(p, b.y, r.y, &err), &err);
    for (int i = 0; i < ttn_weights_count(w); i++) {
        const ttn_weight *at = ttn_weights_at(w, i);
        int which = 0;
        while (strcmp(param_names[which], at->name) != 0)
            which++;
        r.n[which] = (int64_t)(at->bytes / sizeof(real));
        r.gradient[which] = numbers(4, r.n[which]);
        memcpy(r.gradient[which], ttn_weights_address(w, i, TTN_SLAB_GRADIENT), at->bytes);
    }
    ttn_plan_destroy(p);
    ttn_weights_destroy(w);
    ttn_graph_destroy(b.g);
    ttn_free(x);
    ttn_free(target);
    return r;
}

static void release(outcome *r)
{
    ttn_free(r->y);
    for (int i = 0; i < N_PARAM; i++)
        ttn_free(r->gradient[i]);
}

/* ---- against the composition ---- */

static double distance(int64_t n, const real *a, const real *b)
{
    double scale = 1;
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        scale = fmax(scale, fabs((double)a[i]));
    for (int64_t i = 0; i < n; i++) {
        const double off = fabs((double)a[i] - (double)b[i]) / scale;
        if (!(off <= worst)) worst = off;
    }
    return worst;
}

static void check_composition(config k, int64_t used)
{
    /* of the largest element; sums of up to 1,000 terms, in another order and with the bias added last */
    const double bound = sizeof(real) == 8 ? 1e-12 : 1e-5;
    k.fused = 0;
    outcome composed = run(&k, used, TTN_NO_BUDGET, 1);
    k.fused = 1;
    outcome fused = run(&k, used, TTN_NO_BUDGET, 2);
    assert_at_most(distance(used * k.C, composed.y, fused.y), bound, "fused y against linear, activation, linear");
    for (int i = 0; i < N_PARAM; i++) {
        assert_int_equal(composed.n[i], fused.n[i]);
        if (composed.n[i] > 0)
            assert_at_most(distance(composed.n[i], composed.gradient[i], fused.gradient[i]), bound, param_names[i]);
    }
    release(&composed);
    release(&fused);
}

static void fused_values_and_gradients_are_those_of_the_composition(void **state)
{
    (void)state;
    for (int act = TTN_ACT_GELU_ERF; act <= TTN_ACT_SILU; act++)
        for (int gated = 0; gated <= 1; gated++)
            for (int biases = 0; biases <= 1; biases++)
                check_composition((config){.act = (ttn_activation)act,
                                           .gated = gated,
                                           .biases = biases,
                                           .rows = 2 * TTN_ROW_TILE,
                                           .C = 12,
                                           .F = 37},
                                  TTN_ROW_TILE + 99);
}

/* ---- the two forms ---- */

static void expect_same(const config *k, const outcome *a, const outcome *b)
{
    assert_same_bits(&a->loss, &b->loss, sizeof a->loss);
    assert_same_bits(a->y, b->y, (size_t)(k->rows * k->C) * sizeof(real));
    for (int i = 0; i < N_PARAM; i++) {
        assert_int_equal(a->n[i], b->n[i]);
        if (a->n[i] > 0) assert_same_bits(a->gradient[i], b->gradient[i], (size_t)a->n[i] * sizeof(real));
    }
}

/* One byte less than everything: the plan leaves the hidden layer out, since nothing else can be dropped. */
static void check_forms(config k, int64_t used)
{
    k.fused = 1;
    outcome kept = run(&k, used, TTN_NO_BUDGET, 1);
    assert_false(kept.lean);
    for (int n_thread = 1; n_thread <= 5; n_thread += 2) {
        outcome keeping = run(&k, used, TTN_NO_BUDGET, n_thread);
        outcome lean = run(&k, used, keeping.bytes - 1, n_thread);
        assert_true(lean.lean);
        expect_same(&k, &kept, &keeping);
        expect_same(&k, &kept, &lean);
        assert_true(lean.useful == kept.useful);
        const double product = 2.0 * (double)k.rows * (double)k.C * (double)k.F;
        assert_true(lean.done == kept.done + (k.gated ? 2 : 1) * product);
        release(&keeping);
        release(&lean);
    }
    release(&kept);
}

static void kept_and_lean_plans_give_the_same_bits(void **state)
{
    (void)state;
    const config plain = {.act = TTN_ACT_GELU_ERF, .biases = 1, .rows = 12 * TTN_ROW_TILE, .C = 24, .F = 96};
    config gated = plain;
    gated.gated = 1;
    gated.act = TTN_ACT_SILU;
    check_forms(plain, 12 * TTN_ROW_TILE);
    check_forms(plain, 7 * TTN_ROW_TILE + 11);
    check_forms(gated, 9 * TTN_ROW_TILE + 1);
}

/* Weights of several pieces, the last ones narrow. */
static void the_forms_give_the_same_bits_where_weights_come_in_pieces(void **state)
{
    (void)state;
    check_forms((config){.act = TTN_ACT_SILU, .gated = 1, .biases = 1, .rows = 2 * TTN_ROW_TILE, .C = 264, .F = 1100},
                TTN_ROW_TILE + 5);
}

static ttn_status check_property(const char *name, const ttn_case *k, ttn_error *err)
{
    const ttn_property *p = ttn_property_find(name);
    assert_non_null(p);
    const ttn_gradcheck_options o = {.seed = ttn_test_seed()};
    return p->check(&ttn_op_ffn, k, &o, err);
}

/* At the level of kernels, where the driver's own cases are narrow. */
static void a_wide_layer_has_the_properties_that_the_driver_checks_on_narrow_ones(void **state)
{
    (void)state;
    static const struct {
        ttn_activation act;
    } silu = {TTN_ACT_SILU};
    enum { C = 130, F = 530 };
    const ttn_case k = {
        .about = "wide",
        .used = {.rows = TTN_ROW_TILE + 100, .seqs = 2},
        .span = {{0, 205}, {216, TTN_ROW_TILE - 116}},
        .in = {TTN_ROWS_OF(C), TTN_MATRIX(F, C), TTN_VECTOR(F), TTN_MATRIX(C, F), TTN_VECTOR(C), TTN_MATRIX(F, C),
               TTN_VECTOR(F)},
        .attr = &silu,
    };
    static const char *const properties[] = {"every subset of gradients", "threads", "rows of no sequence",
                                             "spare aux left out"};
    for (size_t p = 0; p < sizeof properties / sizeof *properties; p++) {
        ttn_error err = {0};
        assert_ok(check_property(properties[p], &k, &err), &err);
    }
}

/* ---- memory ---- */

static void a_lean_plan_holds_tiles_and_no_hidden_layer(void **state)
{
    (void)state;
    config k = {.act = TTN_ACT_GELU_ERF, .biases = 1, .fused = 1, .rows = 20 * TTN_ROW_TILE, .C = 16, .F = 512};
    const size_t hidden = (size_t)(k.rows * k.F) * sizeof(real);
    outcome kept = run(&k, k.rows, TTN_NO_BUDGET, 1);
    outcome lean = run(&k, k.rows, kept.bytes - 1, 1);
    print_message("# N %" PRId64 ", C %" PRId64 ", F %" PRId64
                  ": hidden layer %zu bytes, kept plan %zu, lean plan %zu\n",
                  k.rows, k.C, k.F, hidden, kept.bytes, lean.bytes);
    assert_true(lean.lean);
    assert_true(kept.largest_alive >= hidden);
    assert_true(lean.largest_alive < hidden);
    assert_true(lean.bytes + hidden <= kept.bytes + 4096); /* alignment */
    release(&kept);
    release(&lean);
}

/* 2,185 tiles of rows, width 512, F 2,048: more than 2^31 elements in the hidden layer. Nothing is allocated. */
static outcome plan_a_million(size_t budget, int gated)
{
    const config k = {
        .act = TTN_ACT_SILU, .gated = gated, .fused = 1, .rows = 2185 * TTN_ROW_TILE, .C = 512, .F = 2048};
    assert_true(k.rows >= 1 << 20 && k.rows * k.F > (int64_t)1 << 31);
    block b = record(&k);
    ttn_plan *p;
    ttn_error err = {0};
    const ttn_plan_options o = {.loss = &b.loss, .n_loss = 1, .budget = budget, .n_thread = 2};
    assert_ok(ttn_plan_create(b.g, &o, &p, &err), &err);
    outcome r = {0};
    read_report(p, &r);
    ttn_plan_destroy(p);
    ttn_graph_destroy(b.g);
    return r;
}

static void a_million_rows_of_512_are_planned_without_overflow(void **state)
{
    (void)state;
    const size_t word = sizeof(real);
    const size_t rows = (size_t)2185 * TTN_ROW_TILE;
    const size_t values = rows * 512 * word;
    const size_t hidden = rows * 2048 * word;
    const size_t tile = (size_t)TTN_ROW_TILE * 2048 * word;
    const size_t weight = (size_t)2048 * 512 * word;
    const size_t lanes = 16;
    for (int gated = 0; gated <= 1; gated++) {
        const size_t n = gated ? 2 : 1;
        const outcome kept = plan_a_million(TTN_NO_BUDGET, gated);
        const outcome lean = plan_a_million(kept.bytes - 1, gated);
        assert_true(kept.largest_alive == n * hidden);
        /* in backward: x, the block's input, dy, dx; lanes of two or three weights and the biases; two threads' tiles */
        const size_t work = lanes * (n + 1) * weight + lanes * n * 2048 * 8 + 64 * 512 * 8;
        const size_t tiles = 2 * ((n + 1) * tile + 64 + n * 2048 * 8);
        print_message("# %zu rows, %s: kept %.2f GiB, lean %.2f GiB, of that work %.3f GiB\n", rows,
                      gated ? "gated" : "plain", (double)kept.bytes * 0x1p-30, (double)lean.bytes * 0x1p-30,
                      (double)(work + tiles) * 0x1p-30);
        assert_true(lean.lean);
        assert_true(kept.bytes >= n * hidden + 4 * values + work + tiles);
        assert_true(kept.bytes <= n * hidden + 6 * values + work + tiles + (1 << 20));
        assert_true(kept.bytes - lean.bytes <= n * hidden && kept.bytes - lean.bytes >= n * hidden - work - tiles);
        const double product = 2.0 * (double)rows * 512 * 2048;
        assert_true(lean.done - kept.done == (double)n * product && lean.useful == kept.useful);
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(8);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_values_and_gradients_are_those_of_the_composition),
        cmocka_unit_test(kept_and_lean_plans_give_the_same_bits),
        cmocka_unit_test(the_forms_give_the_same_bits_where_weights_come_in_pieces),
        cmocka_unit_test(a_wide_layer_has_the_properties_that_the_driver_checks_on_narrow_ones),
        cmocka_unit_test(a_lean_plan_holds_tiles_and_no_hidden_layer),
        cmocka_unit_test(a_million_rows_of_512_are_planned_without_overflow),
    };
    return ttn_test_run(tests);
}
