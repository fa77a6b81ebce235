/* Scheduling, lives, sharing, packing and recomputing: what a plan computes does not depend on any of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/ops.h"
#include "autograd/plan_impl.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/model.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "tests/harness/toy.h"

static const ttn_extent capacity = {.rows = 480, .seqs = 4};
static const ttn_span spans[] = {{0, 100}, {108, 205}, {324, 113}};
static const ttn_feed feed = {.used = {.rows = 437, .seqs = 3}, .span = spans, .seed = 5, .step = 2, .training = 1};
static const ttn_init small = {TTN_INIT_NORMAL, 0.3};

static real *numbers(uint64_t key, int64_t n)
{
    real *x = ttn_alloc_array(n, sizeof *x);
    assert_non_null(x);
    ttn_rng_normal(key, 0, n, x);
    return x;
}

/* ---- one plan, run once ---- */

typedef struct {
    real *gradient; /* the trainable slab's */
    int64_t n_gradient;
    real loss;
    size_t bytes, peak;
    double done;
} outcome;

static outcome run_model(const model *m, ttn_plan_options o)
{
    ttn_error err = {0};
    ttn_weights *w;
    ttn_plan *p;
    int64_t width = ttn_desc_of_value(m->g, m->x).dim[1];
    real *x = numbers(1, feed.used.rows * width);
    real *target = numbers(2, feed.used.rows * width);
    o.loss = &m->loss;
    o.n_loss = 1;
    assert_ok(ttn_weights_create(m->g, NULL, &w, &err), &err);
    assert_ok(ttn_weights_init(w, 3, &err), &err);
    assert_ok(ttn_plan_create(m->g, &o, &p, &err), &err);
    assert_ok(ttn_plan_attach(p, w, &err), &err);
    assert_ok(ttn_plan_bind(p, "x", x, &err), &err);
    assert_ok(ttn_plan_bind(p, "target", target, &err), &err);

    outcome r = {.n_gradient = ttn_weights_slab_elements(w)};
    size_t bytes = (size_t)r.n_gradient * sizeof(real);
    memset(ttn_weights_slab(w, TTN_SLAB_GRADIENT), 0xFF, bytes); /* a run writes gradients, it adds to none */
    assert_ok(ttn_plan_run(p, &feed, NULL, &err), &err);
    assert_ok(ttn_plan_run(p, &feed, NULL, &err), &err); /* twice: nothing is left over from the first */
    r.gradient = ttn_alloc(bytes);
    assert_non_null(r.gradient);
    for (int i = 0; i < ttn_weights_count(w); i++) {
        const ttn_weight *at = ttn_weights_at(w, i);
        const void *gradient = ttn_weights_address(w, i, TTN_SLAB_GRADIENT);
        int v = 0;
        while (strcmp(ttn_name_of_value(m->g, v), at->name) != 0)
            v++;
        if (gradient && ttn_plan_trains(p, v)) memcpy((char *)r.gradient + at->offset, gradient, at->bytes);
    }
    assert_ok(ttn_plan_read(p, m->loss, &r.loss, &err), &err);
    const ttn_plan_report *report = ttn_plan_report_of(p);
    r.bytes = report->bytes;
    r.peak = report->peak;
    r.done = report->done;
    ttn_plan_destroy(p);
    ttn_weights_destroy(w);
    ttn_free(x);
    ttn_free(target);
    return r;
}

static void expect_same(const outcome *a, const outcome *b)
{
    assert_same_bits(&a->loss, &b->loss, sizeof a->loss);
    assert_int_equal(a->n_gradient, b->n_gradient);
    assert_same_bits(a->gradient, b->gradient, (size_t)a->n_gradient * sizeof(real));
}

static void expect_numbers(const outcome *r)
{
    int nonzero = 0;
    for (int64_t i = 0; i < r->n_gradient; i++) {
        assert_true(isfinite(r->gradient[i]));
        nonzero += r->gradient[i] != 0;
    }
    assert_true(nonzero > 0);
}

static model_config config_of(model_shape shape, int layers)
{
    return (model_config){
        .shape = shape, .layers = layers, .width = 12, .hidden = 20, .capacity = capacity, .marked = 1};
}

/* Every way of planning one model gives the bits of the plan that keeps everything and shares nothing. */
static void check_shape(model_shape shape, int layers)
{
    model_config c = config_of(shape, layers);
    model m = model_record(&c);
    ttn_plan_options o = {.budget = TTN_NO_BUDGET, .debug = TTN_PLAN_NO_SHARE, .n_thread = 1};
    outcome kept = run_model(&m, o);
    expect_numbers(&kept);

    o.debug = TTN_PLAN_POISON;
    outcome poisoned = run_model(&m, o);
    expect_same(&kept, &poisoned);
    o.n_thread = 3;
    o.budget = 0;
    outcome again = run_model(&m, o);
    expect_same(&kept, &again);
    assert_true(again.bytes < poisoned.bytes);
    assert_true(again.done > poisoned.done);
    o.debug |= TTN_PLAN_NO_SHARE;
    outcome again_unshared = run_model(&m, o);
    expect_same(&kept, &again_unshared);

    o.debug = TTN_PLAN_POISON;
    double done = again.done;
    for (int part = 1; part < 8; part++) {
        o.budget = again.bytes + (poisoned.bytes - again.bytes) * (size_t)part / 8;
        outcome budgeted = run_model(&m, o);
        expect_same(&kept, &budgeted);
        assert_true(budgeted.bytes <= o.budget);
        assert_true(budgeted.done <= again.done);
        done = budgeted.done;
        ttn_free(budgeted.gradient);
    }
    assert_true(done < again.done); /* more memory, less work */
    ttn_free(kept.gradient);
    ttn_free(poisoned.gradient);
    ttn_free(again.gradient);
    ttn_free(again_unshared.gradient);
    ttn_graph_destroy(m.g);
}

static void kept_recomputed_and_budgeted_gradients_have_the_same_bits(void **state)
{
    (void)state;
    for (int shape = 0; shape < MODEL_N_SHAPES; shape++)
        for (int layers = 2; layers <= 5; layers++)
            check_shape((model_shape)shape, layers);
}

/* The gradient is right, not only the same everywhere: central differences of the loss along one direction. */
static void a_models_gradient_is_its_loss_derivative(void **state)
{
    (void)state;
    if (sizeof(real) == sizeof(float)) skip_because("central differences are judged in double");
    for (int shape = 0; shape < MODEL_N_SHAPES; shape++) {
        model_config c = config_of((model_shape)shape, 3);
        model m = model_record(&c);
        ttn_error err = {0};
        ttn_weights *w;
        ttn_plan *p;
        real *x = numbers(1, feed.used.rows * c.width);
        real *target = numbers(2, feed.used.rows * c.width);
        ttn_plan_options o = {.loss = &m.loss, .n_loss = 1};
        assert_ok(ttn_weights_create(m.g, NULL, &w, &err), &err);
        assert_ok(ttn_weights_init(w, 3, &err), &err);
        assert_ok(ttn_plan_create(m.g, &o, &p, &err), &err);
        assert_ok(ttn_plan_attach(p, w, &err), &err);
        assert_ok(ttn_plan_bind(p, "x", x, &err), &err);
        assert_ok(ttn_plan_bind(p, "target", target, &err), &err);
        assert_ok(ttn_plan_run(p, &feed, NULL, &err), &err);

        const int64_t n = ttn_weights_slab_elements(w);
        real *value = ttn_weights_slab(w, TTN_SLAB_VALUE);
        const real *gradient = ttn_weights_slab(w, TTN_SLAB_GRADIENT);
        real *direction = numbers(7, n);
        real *start = ttn_alloc_array(n, sizeof *start);
        memcpy(start, value, (size_t)n * sizeof *start);
        double along = 0;
        for (int64_t i = 0; i < n; i++)
            along += (double)(gradient[i] * direction[i]);
        double loss[2];
        const double h = 1e-6;
        for (int side = 0; side < 2; side++) {
            for (int64_t i = 0; i < n; i++)
                value[i] = start[i] + (real)(side ? h : -h) * direction[i];
            assert_ok(ttn_plan_run(p, &feed, NULL, &err), &err);
            real read;
            assert_ok(ttn_plan_read(p, m.loss, &read, &err), &err);
            loss[side] = (double)read;
        }
        double numeric = (loss[1] - loss[0]) / (2 * h);
        assert_at_most(fabs(numeric - along) / fabs(along), 1e-7, model_shape_name[shape]);
        ttn_free(start);
        ttn_free(direction);
        ttn_free(x);
        ttn_free(target);
        ttn_plan_destroy(p);
        ttn_weights_destroy(w);
        ttn_graph_destroy(m.g);
    }
}

/* ---- bytes ---- */

static size_t rounded(int64_t elements)
{
    return ((size_t)elements * sizeof(real) + 255) / 256 * 256;
}

static const ttn_plan_report *plan_of(ttn_graph *g, ttn_plan_options o, ttn_plan **p)
{
    ttn_error err = {0};
    assert_ok(ttn_plan_create(g, &o, p, &err), &err);
    return ttn_plan_report_of(*p);
}

/* x (N, 4) -> square -> square -> sum, as an inference plan: two of (x, a, b) at a time, then b and the scalar. */
static void bytes_of_a_chain_without_backward(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int x = ttn_input(g, "x", ttn_rows(g, 4));
    int sum = toy_sum_of(g, "sum", toy_square_of(g, "b", toy_square_of(g, "a", x)));
    ttn_plan *p;
    const ttn_plan_report *r = plan_of(g, (ttn_plan_options){.keep = &sum, .n_keep = 1}, &p);
    const size_t row = rounded(480 * 4);
    const size_t scalar = rounded(1);
    assert_int_equal(r->peak, 2 * row);
    assert_int_equal(r->sum, 3 * row + scalar);
    assert_int_equal(r->bytes, 2 * row);
    assert_int_equal(r->n_step, 3);
    assert_int_equal(r->step[0].alive, 2 * row);
    assert_int_equal(r->step[1].alive, 2 * row);
    assert_int_equal(r->step[2].alive, row + scalar);
    ttn_plan_destroy(p);
    ttn_graph_destroy(g);
}

/* w (V) -> square -> square -> sum with backward. Kept: a's aux (h), a (b reads it), b's aux. Values: a, b, the scalar.
 *
 *   step 0  a     a, h_a                       3 backward sum  a, h_a, h_b, scalar, dscalar, db
 *   step 1  b     a, h_a, b, h_b               4 backward b    a, h_a, h_b, scalar, db, da
 *   step 2  sum   a, h_a, b, h_b, scalar       5 backward a    h_a, scalar, da
 * w is no buffer; the loss is readable to the end. */
static void bytes_of_a_chain_with_backward(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int w = ttn_param(g, "w", ttn_vector(1000), small, 0);
    int sum = toy_sum_of(g, "sum", toy_square_of(g, "b", toy_square_of(g, "a", w)));
    ttn_plan *p;
    const ttn_plan_report *r = plan_of(g, (ttn_plan_options){.loss = &sum, .n_loss = 1, .budget = TTN_NO_BUDGET}, &p);
    const size_t v = rounded(1000);
    const size_t s = rounded(1);
    const size_t wanted[] = {2 * v, 4 * v, 4 * v + s, 4 * v + 2 * s, 5 * v + s, 2 * v + s};
    assert_int_equal(r->n_step, 6);
    for (int at = 0; at < 6; at++)
        assert_int_equal(r->step[at].alive, wanted[at]);
    assert_int_equal(r->peak, 5 * v + s);
    assert_int_equal(r->bytes, 5 * v + s);
    assert_int_equal(r->peak_step, 4);
    assert_int_equal(r->n_alive, 6);
    assert_string_equal(r->alive[5].name, "sum");
    ttn_plan_destroy(p);
    ttn_graph_destroy(g);
}

static void packing_is_within_two_percent_of_the_peak(void **state)
{
    (void)state;
    static const int layers[] = {2, 3, 6, 12, 24, 48};
    for (int shape = 0; shape < MODEL_N_SHAPES; shape++)
        for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
            for (int marked = 0; marked < 2; marked++) {
                model_config c = {
                    .shape = (model_shape)shape,
                    .layers = layers[i],
                    .width = 512,
                    .hidden = 2048,
                    .capacity = {.rows = 480 * 20},
                    .marked = marked,
                };
                model m = model_record(&c);
                ttn_plan *p;
                const ttn_plan_report *r = plan_of(m.g, (ttn_plan_options){.loss = &m.loss, .n_loss = 1}, &p);
                assert_true(r->bytes >= r->peak && r->sum > r->peak);
                assert_at_most((double)r->bytes / (double)r->peak, 1.02, model_shape_name[shape]);
                ttn_plan_destroy(p);
                ttn_graph_destroy(m.g);
            }
}

/* No two buffers that are alive at the same time overlap, and all lie inside the block. */
static void buffers_alive_together_do_not_overlap(void **state)
{
    (void)state;
    for (int shape = 0; shape < MODEL_N_SHAPES; shape++) {
        model_config c = config_of((model_shape)shape, 4);
        model m = model_record(&c);
        ttn_plan *p;
        plan_of(m.g, (ttn_plan_options){.loss = &m.loss, .n_loss = 1, .n_thread = 2}, &p);
        const schedule *s = &p->s;
        for (int i = 0; i < s->n_buffer; i++) {
            const buffer *a = &s->buffer[i];
            if (a->shares != i) continue;
            assert_true(a->offset + a->bytes <= s->bytes);
            for (int j = 0; j < i; j++) {
                const buffer *b = &s->buffer[j];
                if (b->shares != j || a->last < b->first || b->last < a->first) continue;
                assert_true(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
            }
        }
        ttn_plan_destroy(p);
        ttn_graph_destroy(m.g);
    }
}

/* ---- sharing ---- */

/* scale writes over its input and leaves its gradient in place, unless somebody else still needs either. */
static void an_output_takes_over_an_input_only_when_nobody_needs_it(void **state)
{
    (void)state;
    const size_t row = rounded(480 * 4);
    for (int needed = 0; needed < 2; needed++) {
        ttn_graph *g = ttn_graph_create(capacity);
        int x = ttn_input(g, "x", ttn_rows(g, 4));
        int a = toy_pair_of(g, "a", x);
        int b = ttn_scale(g, "b", a, 2);
        int keep[2] = {b, a};
        ttn_plan *p;
        const ttn_plan_report *r = plan_of(g, (ttn_plan_options){.keep = keep, .n_keep = 1 + needed}, &p);
        /* pair's two outputs and x at step 0; then b in a's place, or beside it */
        assert_int_equal(r->step[1].alive, needed ? 2 * row : row);
        assert_int_equal(r->peak, 3 * row);
        ttn_plan_destroy(p);
        ttn_graph_destroy(g);
    }
}

static void x_plus_x_is_not_written_in_place(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int x = ttn_input(g, "x", ttn_rows(g, 4));
    int a = toy_pair_of(g, "a", x);
    int b = ttn_add(g, "b", a, a);
    ttn_plan *p;
    const ttn_plan_report *r = plan_of(g, (ttn_plan_options){.keep = &b, .n_keep = 1}, &p);
    assert_int_equal(r->step[1].alive, 2 * rounded(480 * 4));
    ttn_plan_destroy(p);
    ttn_graph_destroy(g);
}

/* ---- reachability ---- */

static int listed(const char *const *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0) return 1;
    return 0;
}

static void what_nothing_needs_is_dropped_and_listed(void **state)
{
    (void)state;
    model_config c = config_of(MODEL_TWO_HEADS, 2);
    model m = model_record(&c);
    ttn_plan *p;
    const ttn_plan_report *r = plan_of(m.g, (ttn_plan_options){.loss = &m.loss, .n_loss = 1}, &p);
    assert_int_equal(r->n_dropped, 1);
    assert_string_equal(r->dropped[0], "other");
    assert_int_equal(r->n_untrained, 1);
    assert_string_equal(r->untrained[0], "other.weight");
    for (int at = 0; at < r->n_step; at++)
        assert_string_not_equal(r->step[at].node, "other");
    ttn_plan_destroy(p);
    ttn_graph_destroy(m.g);
}

static void a_kept_head_runs_forward_and_not_backward(void **state)
{
    (void)state;
    model_config c = config_of(MODEL_TWO_HEADS, 2);
    model m = model_record(&c);
    int other = 0;
    while (strcmp(ttn_name_of_value(m.g, other), "other") != 0)
        other++;
    ttn_plan *p;
    const ttn_plan_report *r =
        plan_of(m.g, (ttn_plan_options){.loss = &m.loss, .n_loss = 1, .keep = &other, .n_keep = 1}, &p);
    int forward = 0;
    for (int at = 0; at < r->n_step; at++) {
        if (strcmp(r->step[at].node, "other") != 0) continue;
        assert_int_equal(r->step[at].kind, TTN_STEP_FORWARD);
        forward++;
    }
    assert_int_equal(forward, 1);
    assert_true(listed(r->untrained, r->n_untrained, "other.weight"));
    ttn_plan_destroy(p);
    ttn_graph_destroy(m.g);
}

static void frozen_parts_have_no_backward_steps(void **state)
{
    (void)state;
    model_config c = config_of(MODEL_PRE_NORM, 4);
    model m = model_record(&c);
    ttn_graph_freeze(m.g, "*", 1);
    ttn_graph_freeze(m.g, "layer.2.*", 0);
    ttn_plan *p;
    const ttn_plan_report *r = plan_of(m.g, (ttn_plan_options){.loss = &m.loss, .n_loss = 1}, &p);
    for (int at = 0; at < r->n_step; at++)
        if (r->step[at].kind == TTN_STEP_BACKWARD) {
            assert_null(strstr(r->step[at].node, "layer.0"));
            assert_null(strstr(r->step[at].node, "layer.1"));
            assert_string_not_equal(r->step[at].node, "embed");
        }
    assert_int_equal(r->n_untrained, 0);
    ttn_plan_destroy(p);
    ttn_graph_destroy(m.g);
}

/* A frozen weight's gradient is what a linear layer's input is kept for. */
static void a_frozen_linear_layer_keeps_no_input(void **state)
{
    (void)state;
    size_t peak[2];
    for (int frozen = 0; frozen < 2; frozen++) {
        ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 9600});
        int x = ttn_input(g, "x", ttn_rows(g, 8));
        int target = ttn_input(g, "target", ttn_rows(g, 8));
        int h = ttn_linear(g, "first", x, ttn_param(g, "first.weight", ttn_matrix(8, 8), small, 0), TTN_NONE);
        for (int l = 0; l < 4; l++) {
            ttn_scope_begin(g, "layer.%d", l);
            h = ttn_linear(g, "l", h, ttn_param(g, "weight", ttn_matrix(8, 8), small, 0), TTN_NONE);
            ttn_scope_end(g);
        }
        int loss = ttn_mse(g, "loss", h, target);
        if (frozen) ttn_graph_freeze(g, "layer.*", 1);
        ttn_plan *p;
        peak[frozen] = plan_of(g, (ttn_plan_options){.loss = &loss, .n_loss = 1}, &p)->peak;
        ttn_plan_destroy(p);
        ttn_graph_destroy(g);
    }
    assert_true(peak[0] - peak[1] >= 3 * rounded(9600 * 8));
}

/* ---- recomputing ---- */

static void a_mark_recomputes_its_block_and_only_that(void **state)
{
    (void)state;
    model_config c = config_of(MODEL_PRE_NORM, 3);
    model m = model_record(&c);
    ttn_plan *p;
    const ttn_plan_report *r = plan_of(m.g, (ttn_plan_options){.loss = &m.loss, .n_loss = 1}, &p);
    /* norm, up and gelu of each block; "down" is read by "add" in forward only, "add" is what the next block reads */
    assert_int_equal(r->n_again, 9);
    for (int i = 0; i < r->n_again; i++) {
        assert_non_null(strstr(r->again[i].node, "layer."));
        assert_null(strstr(r->again[i].node, "add"));
        assert_null(strstr(r->again[i].node, "down"));
        assert_true(r->again[i].flops > 0 && r->again[i].bytes > 0);
    }
    double again = 0;
    for (int at = 0; at < r->n_step; at++)
        if (r->step[at].kind == TTN_STEP_AGAIN) again += r->step[at].done;
    assert_true(r->done - r->useful >= again * 0.999 && again > 0);
    ttn_plan_destroy(p);
    ttn_graph_destroy(m.g);
}

static void a_budget_too_small_names_the_smallest_that_would_do(void **state)
{
    (void)state;
    model_config c = config_of(MODEL_POST_NORM, 4);
    model m = model_record(&c);
    ttn_plan *p;
    ttn_error err = {0};
    ttn_plan_options o = {.loss = &m.loss, .n_loss = 1, .budget = 1000};
    assert_fails(ttn_plan_create(m.g, &o, &p, &err), TTN_ENOMEM, &err, "1000 bytes is too small");
    assert_null(p);
    size_t smallest = 0;
    const char *number = strstr(err.text, "recomputed: ");
    assert_non_null(number);
    assert_int_equal(sscanf(number, "recomputed: %zu", &smallest), 1);
    o.budget = smallest;
    err = (ttn_error){0};
    assert_ok(ttn_plan_create(m.g, &o, &p, &err), &err);
    assert_true(ttn_plan_report_of(p)->bytes <= smallest);
    ttn_plan_destroy(p);
    o.budget = smallest - 1;
    assert_fails(ttn_plan_create(m.g, &o, &p, &err), TTN_ENOMEM, &err, "too small");
    ttn_graph_destroy(m.g);
}

/* 0: refused. */
static size_t bytes_under(const model *m, size_t budget)
{
    ttn_plan *p;
    ttn_error err = {0};
    const ttn_plan_options o = {.loss = &m->loss, .n_loss = 1, .budget = budget};
    if (ttn_plan_create(m->g, &o, &p, &err) != TTN_OK) return 0;
    const size_t bytes = ttn_plan_report_of(p)->bytes;
    ttn_plan_destroy(p);
    assert_true(bytes <= budget);
    return bytes;
}

/* A plan that is found is found with more room, too, and with no more than it takes. */
static void what_fits_a_budget_fits_a_larger_one(void **state)
{
    (void)state;
    const model_shape shapes[] = {MODEL_PRE_NORM, MODEL_POST_NORM};
    const int n_budget = (int)ttn_scaled(60, 12);
    for (int i = 0; i < 4; i++) {
        const model_config c = config_of(shapes[i % 2], i < 2 ? 3 : 6);
        model m = model_record(&c);
        const size_t most = bytes_under(&m, TTN_NO_BUDGET), least = most / 4;
        int was_found = 0, n_refused = 0;
        for (int b = 0; b <= n_budget; b++) {
            const size_t budget = least + (most - least) / (size_t)n_budget * (size_t)b;
            const size_t bytes = bytes_under(&m, budget);
            n_refused += bytes == 0;
            assert_true(bytes > 0 || !was_found);
            was_found = bytes > 0;
            if (was_found) assert_true(bytes_under(&m, bytes) > 0);
        }
        assert_true(was_found && n_refused > 0);
        ttn_graph_destroy(m.g);
    }
}

/* What was given up on the way and turned out not to be necessary is kept: none of it can be kept without exceeding the
 * budget. Dearest first: what stays dropped is the cheap part. */
static void no_node_is_recomputed_that_could_be_kept(void **state)
{
    (void)state;
    model_config c = config_of(MODEL_PRE_NORM, 4);
    model m = model_record(&c);
    ttn_error err = {0};
    ttn_plan *p;
    ttn_plan_options o = {.loss = &m.loss, .n_loss = 1};
    size_t least = plan_of(m.g, o, &p)->bytes;
    ttn_plan_destroy(p);
    o.budget = TTN_NO_BUDGET;
    size_t most = plan_of(m.g, o, &p)->bytes;
    ttn_plan_destroy(p);
    for (size_t part = 1; part < 16; part++) {
        o.budget = least + (most - least) * part / 16;
        plan_of(m.g, o, &p);
        int dropped = 0;
        for (int k = 0; k < m.g->n_node; k++) {
            if (!p->choice.drop[k]) continue;
            dropped++;
            p->choice.drop[k] = 0;
            assert_ok(ttn_schedule_make(&p->want, &p->choice, &p->s, &err), &err);
            assert_ok(ttn_schedule_pack(&p->s, &err), &err);
            assert_true(p->s.bytes > o.budget);
            p->choice.drop[k] = 1;
        }
        assert_true(dropped > 0);
        ttn_plan_destroy(p);
    }
    ttn_graph_destroy(m.g);
}

/* A head that nothing needs reads a value of a block: the block can be recomputed all the same. */
static void a_dead_reader_does_not_hold_a_block(void **state)
{
    (void)state;
    int n_again[2];
    for (int dead = 0; dead < 2; dead++) {
        ttn_graph *g = ttn_graph_create(capacity);
        int w = ttn_param(g, "w", ttn_vector(1000), small, 0);
        ttn_block_begin(g);
        int h = toy_square_of(g, "h", toy_square_of(g, "inner", w));
        ttn_block_end(g);
        if (dead) toy_pair_of(g, "dead", h);
        ttn_block_begin(g);
        int y = toy_square_of(g, "y", h);
        ttn_block_end(g);
        int loss = toy_sum_of(g, "loss", y);
        ttn_plan *p;
        n_again[dead] = plan_of(g, (ttn_plan_options){.loss = &loss, .n_loss = 1}, &p)->n_again;
        ttn_plan_destroy(p);
        ttn_graph_destroy(g);
    }
    assert_int_equal(n_again[0], n_again[1]);
    assert_true(n_again[0] > 0);
}

/* A spare aux is left out where the budget asks for it, at its own cost, and the bits stay. */
static void a_spare_aux_is_left_out_under_a_budget(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int x = ttn_param(g, "x", ttn_matrix(1000, 8), small, 0);
    int loss = toy_sum_of(g, "loss", toy_square_of(g, "b", toy_square_of(g, "a", x)));
    ttn_error err = {0};
    ttn_weights *w;
    assert_ok(ttn_weights_create(g, NULL, &w, &err), &err);
    assert_ok(ttn_weights_init(w, 1, &err), &err);
    real *first = NULL;
    size_t before = 0;
    double flops = 0;
    for (int budgeted = 0; budgeted < 2; budgeted++) {
        ttn_plan_options o = {
            .loss = &loss, .n_loss = 1, .debug = TTN_PLAN_POISON, .budget = budgeted ? before - 1 : TTN_NO_BUDGET};
        ttn_plan *p;
        assert_ok(ttn_plan_create(g, &o, &p, &err), &err);
        const ttn_plan_report *r = ttn_plan_report_of(p);
        assert_int_equal(r->n_again, budgeted);
        if (budgeted) {
            assert_true(r->again[0].lean && r->again[0].bytes == 8000 * sizeof(real) && r->again[0].flops == 8000);
            assert_true(r->bytes < before && r->done == flops + 8000);
        }
        before = r->bytes;
        flops = r->done;
        assert_ok(ttn_plan_attach(p, w, &err), &err);
        assert_ok(ttn_plan_run(p, &(ttn_feed){0}, NULL, &err), &err);
        const void *gradient = ttn_weights_slab(w, TTN_SLAB_GRADIENT);
        if (!first) {
            first = ttn_alloc_array(8000, sizeof *first);
            memcpy(first, gradient, 8000 * sizeof *first);
        }
        assert_same_bits(first, gradient, 8000 * sizeof *first);
        ttn_plan_destroy(p);
    }
    ttn_free(first);
    ttn_weights_destroy(w);
    ttn_graph_destroy(g);
}

static void an_inference_plan_keeps_nothing_for_backward(void **state)
{
    (void)state;
    model_config c = config_of(MODEL_PRE_NORM, 12);
    model m = model_record(&c);
    ttn_plan *p;
    const ttn_plan_report *r = plan_of(m.g, (ttn_plan_options){.keep = &m.out, .n_keep = 1}, &p);
    size_t twelve = r->peak;
    for (int at = 0; at < r->n_step; at++)
        assert_int_equal(r->step[at].kind, TTN_STEP_FORWARD);
    assert_true(listed(r->dropped, r->n_dropped, "loss"));
    ttn_plan_destroy(p);
    ttn_graph_destroy(m.g);
    c.layers = 2;
    m = model_record(&c);
    r = plan_of(m.g, (ttn_plan_options){.keep = &m.out, .n_keep = 1}, &p);
    assert_int_equal(r->peak, twelve); /* whatever the depth */
    ttn_plan_destroy(p);
    ttn_graph_destroy(m.g);
}

/* ---- mistakes ---- */

static void expect_refused(ttn_graph *g, ttn_plan_options o, const char *words)
{
    ttn_plan *p;
    ttn_error err = {0};
    assert_fails(ttn_plan_create(g, &o, &p, &err), TTN_EINVAL, &err, words);
    assert_null(p);
}

static void requests_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    model_config c = config_of(MODEL_PRE_NORM, 1);
    model m = model_record(&c);
    int none = 1000;
    int detached = ttn_detach(m.g, m.loss);
    int weight = 0;
    while (strcmp(ttn_name_of_value(m.g, weight), "embed.weight") != 0)
        weight++;
    int twice[] = {m.loss, m.loss};
    ttn_tap tap = {.value = m.x};
    expect_refused(m.g, (ttn_plan_options){.loss = &none, .n_loss = 1}, "loss 0 is 1000, no value");
    expect_refused(m.g, (ttn_plan_options){.keep = &none, .n_keep = 1}, "kept value 0 is 1000");
    expect_refused(m.g, (ttn_plan_options){.stat = &none, .n_stat = 1}, "statistic 0 is 1000");
    expect_refused(m.g, (ttn_plan_options){.loss = &m.out, .n_loss = 1}, "the loss 'head' is f");
    expect_refused(m.g, (ttn_plan_options){.loss = &m.x, .n_loss = 1}, "the loss 'x' is a leaf");
    expect_refused(m.g, (ttn_plan_options){.loss = &detached, .n_loss = 1}, "'loss' is detached");
    expect_refused(m.g, (ttn_plan_options){.loss = twice, .n_loss = 2}, "'loss' is given twice");
    expect_refused(m.g, (ttn_plan_options){.stat = &m.x, .n_stat = 1}, "'x': that is a leaf");
    expect_refused(m.g, (ttn_plan_options){.tap = &tap, .n_tap = 1}, "a tap of 'x'");
    expect_refused(m.g, (ttn_plan_options){.n_thread = -1}, "-1 threads");
    expect_refused(m.g, (ttn_plan_options){.n_thread = 129}, "129 threads, 1 to 128");
    expect_refused(m.g, (ttn_plan_options){.keep = &weight, .n_keep = 1}, "'embed.weight' needs no keeping");
    expect_refused(m.g, (ttn_plan_options){.keep = &none, .n_keep = -1}, "a list of -1 for 'kept value'");
    expect_refused(m.g, (ttn_plan_options){.n_loss = 1}, "a list of 1 for 'loss'");
    expect_refused(m.g, (ttn_plan_options){.n_tap = -2}, "a list of -2 for 'tap'");
    ttn_scope_begin(m.g, "open");
    expect_refused(m.g, (ttn_plan_options){0}, "the scope 'open.' is still open");
    ttn_scope_end(m.g);
    ttn_block_begin(m.g);
    expect_refused(m.g, (ttn_plan_options){0}, "a block is still open");
    ttn_block_end(m.g);
    ttn_input(m.g, "x", ttn_vector(1)); /* the name is taken: the graph has failed */
    expect_refused(m.g, (ttn_plan_options){0}, "x: two leaves");
    ttn_graph_destroy(m.g);
}

static void values_beyond_64_bits_are_refused(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create((ttn_extent){.seqs = (int64_t)1 << 57});
    int x = ttn_input(g, "x", ttn_seqs(g, 32 / (int64_t)sizeof(real)));
    int keep[5] = {x};
    for (int i = 1; i < 5; i++)
        keep[i] = toy_pair_of(g, NULL, keep[i - 1]);
    expect_refused(g, (ttn_plan_options){.keep = keep, .n_keep = 5}, "do not fit in 64 bits");
    ttn_graph_destroy(g);
}

/* A plan points into its graph: recording on is refused, and the plan goes on working. */
static void a_graph_with_a_plan_does_not_grow(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int sum = toy_sum_of(g, "sum", toy_square_of(g, "y", ttn_input(g, "x", ttn_vector(3))));
    ttn_plan *p;
    plan_of(g, (ttn_plan_options){.keep = &sum, .n_keep = 1}, &p);
    assert_int_equal(toy_square_of(g, NULL, 0), TTN_FAILED);
    ttn_error err = {0};
    assert_fails(ttn_graph_check(g, &err), TTN_EINVAL, &err, "after a plan was made");
    const real x[3] = {1, 2, 3};
    real read;
    err = (ttn_error){0};
    assert_ok(ttn_plan_bind(p, "x", x, &err), &err);
    assert_ok(ttn_plan_run(p, &(ttn_feed){0}, NULL, &err), &err);
    assert_ok(ttn_plan_read(p, sum, &read, &err), &err);
    assert_true(read == 4 + 9 + 16);
    ttn_plan_destroy(p);
    ttn_graph_destroy(g);
}

static void an_empty_graph_is_an_empty_plan(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create((ttn_extent){0});
    ttn_plan *p;
    ttn_error err = {0};
    assert_ok(ttn_plan_create(g, NULL, &p, &err), &err);
    assert_ok(ttn_plan_run(p, &(ttn_feed){0}, NULL, &err), &err);
    assert_int_equal(ttn_plan_report_of(p)->bytes, 0);
    ttn_plan_destroy(p);
    ttn_graph_destroy(g);
}

static void out_of_memory_is_a_status_wherever_it_comes(void **state)
{
    (void)state;
    model_config c = config_of(MODEL_POST_NORM, 2);
    model m = model_record(&c);
    for (int64_t nth = 1;; nth++) {
        ttn_plan *p;
        ttn_error err = {0};
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, 12, 0);
        ttn_status status = ttn_plan_create(m.g, &(ttn_plan_options){.loss = &m.loss, .n_loss = 1}, &p, &err);
        int hit = shim_was_hit();
        shim_disarm();
        if (!hit) {
            assert_int_equal(status, TTN_OK);
            assert_true(nth > 20);
            ttn_plan_destroy(p);
            break;
        }
        assert_int_equal(status, TTN_ENOMEM);
        assert_contains(err.text, "memory");
        assert_null(p);
    }
    ttn_graph_destroy(m.g);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(3);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_recomputed_and_budgeted_gradients_have_the_same_bits),
        cmocka_unit_test(a_models_gradient_is_its_loss_derivative),
        cmocka_unit_test(bytes_of_a_chain_without_backward),
        cmocka_unit_test(bytes_of_a_chain_with_backward),
        cmocka_unit_test(packing_is_within_two_percent_of_the_peak),
        cmocka_unit_test(buffers_alive_together_do_not_overlap),
        cmocka_unit_test(an_output_takes_over_an_input_only_when_nobody_needs_it),
        cmocka_unit_test(x_plus_x_is_not_written_in_place),
        cmocka_unit_test(what_nothing_needs_is_dropped_and_listed),
        cmocka_unit_test(a_kept_head_runs_forward_and_not_backward),
        cmocka_unit_test(frozen_parts_have_no_backward_steps),
        cmocka_unit_test(a_frozen_linear_layer_keeps_no_input),
        cmocka_unit_test(a_mark_recomputes_its_block_and_only_that),
        cmocka_unit_test(a_budget_too_small_names_the_smallest_that_would_do),
        cmocka_unit_test(what_fits_a_budget_fits_a_larger_one),
        cmocka_unit_test(no_node_is_recomputed_that_could_be_kept),
        cmocka_unit_test(a_dead_reader_does_not_hold_a_block),
        cmocka_unit_test(values_beyond_64_bits_are_refused),
        cmocka_unit_test(a_graph_with_a_plan_does_not_grow),
        cmocka_unit_test(a_spare_aux_is_left_out_under_a_budget),
        cmocka_unit_test(an_inference_plan_keeps_nothing_for_backward),
        cmocka_unit_test(requests_that_make_no_sense_are_refused),
        cmocka_unit_test(an_empty_graph_is_an_empty_plan),
        cmocka_unit_test(out_of_memory_is_a_status_wherever_it_comes),
    };
    return ttn_test_run(tests);
}
