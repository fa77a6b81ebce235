/* What a run promises: sums that add up, statistics, taps, names in every message, and values touched by the device only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/ops.h"
#include "autograd/plan_impl.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/guarded.h"
#include "tests/harness/model.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "tests/harness/toy.h"

static const ttn_extent capacity = {.rows = 480, .seqs = 4, .picks = 480};
static const ttn_init small = {TTN_INIT_NORMAL, 0.3};

static real *numbers(uint64_t key, int64_t n)
{
    real *x = ttn_alloc_array(n, sizeof *x);
    assert_non_null(x);
    ttn_rng_normal(key, 0, n, x);
    return x;
}

static ttn_feed rows_of(int64_t rows)
{
    return (ttn_feed){.used = {.rows = rows}};
}

/* A graph with its weights and plan. */
typedef struct {
    ttn_graph *g;
    ttn_weights *w;
    ttn_plan *p;
} set_up;

static set_up set_up_of(ttn_graph *g, ttn_plan_options o)
{
    set_up s = {.g = g};
    ttn_error err = {0};
    assert_ok(ttn_weights_create(g, o.device, &s.w, &err), &err);
    assert_ok(ttn_weights_init(s.w, 3, &err), &err);
    assert_ok(ttn_plan_create(g, &o, &s.p, &err), &err);
    assert_ok(ttn_plan_attach(s.p, s.w, &err), &err);
    return s;
}

static void tear_down(set_up *s)
{
    ttn_plan_destroy(s->p);
    ttn_weights_destroy(s->w);
    ttn_graph_destroy(s->g);
}

static void expect_run(set_up *s, const ttn_feed *f, const double *weight)
{
    ttn_error err = {0};
    assert_ok(ttn_plan_run(s->p, f, weight, &err), &err);
}

static double read_scalar(set_up *s, int value)
{
    ttn_error err = {0};
    real x;
    assert_ok(ttn_plan_read(s->p, value, &x, &err), &err);
    return (double)x;
}

static void bind(set_up *s, const char *name, const void *data)
{
    ttn_error err = {0};
    assert_ok(ttn_plan_bind(s->p, name, data, &err), &err);
}

/* ---- sums ---- */

/* One batch of 400 rows against four micro-batches of 250, 3, 100 and 47 whose gradients are added up and divided once. */
static void micro_batches_of_unequal_counts_add_up(void **state)
{
    (void)state;
    static const int64_t counts[] = {250, 3, 100, 47};
    const int64_t width = 12;
    model_config c = {.layers = 2, .width = width, .hidden = 20, .capacity = capacity};
    model m = model_record(&c);
    set_up s = set_up_of(m.g, (ttn_plan_options){.loss = &m.loss, .n_loss = 1});
    real *x = numbers(1, 400 * width);
    real *target = numbers(2, 400 * width);
    const int64_t n = ttn_weights_slab_elements(s.w);
    real *gradient = ttn_weights_slab(s.w, TTN_SLAB_GRADIENT);
    int n_stat;

    bind(&s, "x", x);
    bind(&s, "target", target);
    ttn_feed f = rows_of(400);
    double weight = 1.0 / (400.0 * (double)width);
    expect_run(&s, &f, &weight);
    double whole_sum = ttn_plan_stat(s.p, m.loss, &n_stat)[0];
    assert_int_equal(n_stat, 2);
    assert_true(ttn_plan_stat(s.p, m.loss, &n_stat)[1] == 400.0 * (double)width);
    real *whole = ttn_alloc_array(n, sizeof *whole);
    memcpy(whole, gradient, (size_t)n * sizeof *whole);

    real *sum = ttn_alloc_array(n, sizeof *sum);
    double loss = 0;
    double count = 0;
    int64_t first = 0;
    for (int i = 0; i < 4; i++) {
        bind(&s, "x", x + first * width);
        bind(&s, "target", target + first * width);
        f = rows_of(counts[i]);
        expect_run(&s, &f, NULL); /* weight 1: sums */
        for (int64_t e = 0; e < n; e++)
            sum[e] += gradient[e];
        loss += ttn_plan_stat(s.p, m.loss, &n_stat)[0];
        count += ttn_plan_stat(s.p, m.loss, &n_stat)[1];
        first += counts[i];
    }
    double worst = 0;
    double largest = 0;
    for (int64_t e = 0; e < n; e++) {
        double d = fabs((double)sum[e] / count - (double)whole[e]);
        worst = d > worst ? d : worst;
        largest = fabs((double)whole[e]) > largest ? fabs((double)whole[e]) : largest;
    }
    const double bound = sizeof(real) == 8 ? 1e-12 : 1e-5;
    assert_at_most(worst / largest, bound, "gradients");
    assert_at_most(fabs(loss - whole_sum) / whole_sum, bound, "losses");
    ttn_free(x);
    ttn_free(target);
    ttn_free(whole);
    ttn_free(sum);
    tear_down(&s);
}

/* Two losses with weights of their own: the gradient is the weighted sum of what each gives alone. */
static void two_losses_have_their_own_weights(void **state)
{
    (void)state;
    real *x = numbers(1, 400 * 6);
    real *target = numbers(2, 400 * 6);
    real *alone[2] = {NULL, NULL};
    int64_t n = 0;
    for (int which = 0; which < 3; which++) {
        ttn_graph *g = ttn_graph_create(capacity);
        int in = ttn_input(g, "x", ttn_rows(g, 6));
        int to = ttn_input(g, "target", ttn_rows(g, 6));
        int h = ttn_linear(g, "h", in, ttn_param(g, "w", ttn_matrix(6, 6), small, 0), TTN_NONE);
        int first = ttn_mse(g, "first", h, to);
        int second = toy_sum_of(g, "second", toy_square_of(g, NULL, h));
        int losses[2] = {which == 1 ? second : first, second};
        set_up s = set_up_of(g, (ttn_plan_options){.loss = losses, .n_loss = which < 2 ? 1 : 2});
        bind(&s, "x", x);
        if (which != 1) bind(&s, "target", target);
        ttn_feed f = rows_of(400);
        double weights[2] = {0.25, -3};
        expect_run(&s, &f, which < 2 ? NULL : weights);
        n = ttn_weights_slab_elements(s.w);
        const real *gradient = ttn_weights_slab(s.w, TTN_SLAB_GRADIENT);
        for (int64_t e = 0; which == 2 && e < n; e++) {
            double wanted = 0.25 * (double)alone[0][e] - 3 * (double)alone[1][e];
            assert_at_most(fabs((double)gradient[e] - wanted) / (1 + fabs(wanted)), sizeof(real) == 8 ? 1e-13 : 1e-4,
                           "both together");
        }
        if (which < 2) {
            alone[which] = ttn_alloc_array(n, sizeof(real));
            memcpy(alone[which], gradient, (size_t)n * sizeof(real));
        }
        tear_down(&s);
    }
    for (int which = 0; which < 2; which++)
        ttn_free(alone[which]);
    ttn_free(x);
    ttn_free(target);
}

/* A loss that is also an input of another loss: its seed and what comes back add up. d(a + 2 s)/dw, s = 2 a: 1 + 4. */
static void a_loss_may_lead_to_another_loss(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int w = ttn_param(g, "w", ttn_vector(5), small, 0);
    int a = toy_sum_of(g, "a", w);
    int s2 = ttn_scale(g, "s", a, 2);
    int losses[2] = {a, s2};
    set_up s = set_up_of(g, (ttn_plan_options){.loss = losses, .n_loss = 2, .debug = TTN_PLAN_POISON});
    double weights[2] = {1, 2};
    ttn_feed f = {0};
    expect_run(&s, &f, weights);
    const real *gradient = ttn_weights_slab(s.w, TTN_SLAB_GRADIENT);
    for (int i = 0; i < 5; i++)
        assert_true(gradient[i] == 5);
    assert_true(read_scalar(&s, s2) == 2 * read_scalar(&s, a));
    tear_down(&s);
}

/* ---- several outputs, optional inputs, one value twice, detach ---- */

static void outputs_that_reach_no_loss_have_no_gradient(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) { /* the first output, the second, both */
        ttn_graph *g = ttn_graph_create(capacity);
        int w = ttn_param(g, "w", ttn_vector(5), small, 0);
        int pair = toy_pair_of(g, "pair", w);
        int second = ttn_output(g, pair, 1);
        int sum = which == 0   ? toy_sum_of(g, "sum", pair)
                  : which == 1 ? toy_sum_of(g, "sum", second)
                               : toy_sum_of(g, "sum", ttn_add(g, "both", pair, second));
        set_up s = set_up_of(g, (ttn_plan_options){.loss = &sum, .n_loss = 1, .debug = TTN_PLAN_POISON});
        ttn_feed f = {0};
        expect_run(&s, &f, NULL);
        const real wanted[3] = {2, 3, 5};
        assert_true(*(real *)ttn_weights_slab(s.w, TTN_SLAB_GRADIENT) == wanted[which]);
        tear_down(&s);
    }
}

static void an_input_left_out_is_null(void **state)
{
    (void)state;
    for (int there = 0; there < 2; there++) {
        ttn_graph *g = ttn_graph_create(capacity);
        int w = ttn_param(g, "w", ttn_vector(5), (ttn_init){TTN_INIT_CONSTANT, 1}, 0);
        int b = ttn_param(g, "b", ttn_vector(5), (ttn_init){TTN_INIT_CONSTANT, 10}, 0);
        int sum = toy_sum_of(g, "sum", toy_maybe_of(g, "y", w, there ? b : TTN_NONE));
        set_up s = set_up_of(g, (ttn_plan_options){.loss = &sum, .n_loss = 1});
        ttn_feed f = {0};
        expect_run(&s, &f, NULL);
        assert_true(read_scalar(&s, sum) == (there ? 55 : 5));
        assert_int_equal(ttn_plan_trains(s.p, b), there);
        tear_down(&s);
    }
}

static void one_value_in_two_inputs_gets_both_gradients(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int w = ttn_param(g, "w", ttn_vector(5), small, 0);
    int h = toy_square_of(g, "h", w);
    int sum = toy_sum_of(g, "sum", ttn_add(g, "twice", ttn_add(g, "add", h, h), ttn_add(g, "ww", w, w)));
    set_up s = set_up_of(g, (ttn_plan_options){.loss = &sum, .n_loss = 1, .debug = TTN_PLAN_POISON});
    ttn_feed f = {0};
    expect_run(&s, &f, NULL);
    const real *value = ttn_weights_slab(s.w, TTN_SLAB_VALUE);
    const real *gradient = ttn_weights_slab(s.w, TTN_SLAB_GRADIENT);
    for (int i = 0; i < 5; i++)
        assert_at_most(fabs((double)(gradient[i] - (4 * (value[i] + 1) + 2))), 20 * (double)TTN_REAL_EPS, "gradient");
    tear_down(&s);
}

static void nothing_comes_back_through_detach(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int w = ttn_param(g, "w", ttn_vector(5), small, 0);
    int v = ttn_param(g, "v", ttn_vector(5), small, 0);
    int h = toy_square_of(g, "h", w);
    int sum = toy_sum_of(g, "sum", ttn_add(g, "add", ttn_detach(g, h), v));
    set_up s = set_up_of(g, (ttn_plan_options){.loss = &sum, .n_loss = 1, .debug = TTN_PLAN_POISON});
    ttn_feed f = {0};
    expect_run(&s, &f, NULL);
    assert_int_equal(ttn_plan_trains(s.p, w), 0);
    assert_int_equal(ttn_plan_trains(s.p, v), 1);
    const ttn_plan_report *r = ttn_plan_report_of(s.p);
    assert_int_equal(r->n_untrained, 1);
    assert_string_equal(r->untrained[0], "w");
    tear_down(&s);
}

/* dy may be left in the buffer of the last gradient only: the first one still needs it. */
static void a_gradient_passed_on_is_not_overwritten_too_early(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        ttn_graph *g = ttn_graph_create(capacity);
        int v = ttn_param(g, "v", ttn_vector(5), small, 0);
        int w = ttn_param(g, "w", ttn_vector(5), small, 0);
        int a = ttn_scale(g, "a", v, 1);
        int b = ttn_scale(g, "b", w, 1);
        int sum = toy_sum_of(g, "sum", toy_blend_of(g, "y", a, b));
        unsigned debug = TTN_PLAN_POISON | (shared ? 0 : TTN_PLAN_NO_SHARE);
        set_up s = set_up_of(g, (ttn_plan_options){.loss = &sum, .n_loss = 1, .debug = debug});
        ttn_feed f = {0};
        expect_run(&s, &f, NULL);
        const real *dv = ttn_weights_address(s.w, ttn_weights_find(s.w, "v"), TTN_SLAB_GRADIENT);
        const real *dw = ttn_weights_address(s.w, ttn_weights_find(s.w, "w"), TTN_SLAB_GRADIENT);
        assert_true(dv[0] == 2 && dv[4] == 2 && dw[0] == 3 && dw[4] == 3);
        tear_down(&s);
    }
}

static void a_detached_value_can_be_kept_and_read(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int h = toy_square_of(g, "h", ttn_param(g, "w", ttn_vector(1), (ttn_init){TTN_INIT_CONSTANT, 1}, 0));
    int d = ttn_detach(g, h);
    toy_square_of(g, "after", d);
    set_up s = set_up_of(g, (ttn_plan_options){.keep = &d, .n_keep = 1, .debug = TTN_PLAN_POISON});
    ttn_feed f = {0};
    expect_run(&s, &f, NULL);
    assert_true(read_scalar(&s, d) == 4 && read_scalar(&s, h) == 4);
    tear_down(&s);
}

/* ---- order of final gradients ---- */

typedef struct {
    const char *name[64];
    int n;
} name_list;

static void note_name(void *ctx, const char *name)
{
    name_list *list = ctx;
    if (list->n < 64) list->name[list->n++] = name;
}

/* One parameter in two inputs of a node, and behind a detach, is final once. */
static void a_parameter_read_twice_is_final_once(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int w = ttn_param(g, "w", ttn_vector(5), small, 0);
    int v = ttn_param(g, "v", ttn_vector(5), small, 0);
    int h = ttn_add(g, "h", ttn_add(g, "ww", w, w), ttn_detach(g, v));
    int sum = toy_sum_of(g, "sum", ttn_add(g, "y", h, v));
    name_list list = {.n = 0};
    set_up s = set_up_of(
        g, (ttn_plan_options){.loss = &sum, .n_loss = 1, .gradient_final = note_name, .gradient_final_ctx = &list});
    ttn_feed f = {0};
    expect_run(&s, &f, NULL);
    assert_int_equal(list.n, 2);
    for (int i = 0; i < 2; i++)
        assert_string_equal(list.name[i], ttn_weights_at(s.w, i)->name);
    tear_down(&s);
}

static void gradients_become_final_in_slab_order_and_once(void **state)
{
    (void)state;
    for (int shape = 0; shape < MODEL_N_SHAPES; shape++) {
        model_config c = {
            .shape = (model_shape)shape, .layers = 3, .width = 6, .hidden = 6, .capacity = capacity, .marked = 1};
        model m = model_record(&c);
        name_list list = {.n = 0};
        set_up s = set_up_of(m.g, (ttn_plan_options){
                                      .loss = &m.loss,
                                      .n_loss = 1,
                                      .gradient_final = note_name,
                                      .gradient_final_ctx = &list,
                                  });
        real *x = numbers(1, 400 * 6);
        bind(&s, "x", x);
        bind(&s, "target", x);
        ttn_feed f = rows_of(400);
        expect_run(&s, &f, NULL);
        int at = 0;
        for (int i = 0; i < ttn_weights_count(s.w); i++) {
            const ttn_weight *e = ttn_weights_at(s.w, i);
            if (e->flags & TTN_FROZEN || strcmp(e->name, "other.weight") == 0) continue;
            assert_true(at < list.n);
            assert_string_equal(list.name[at++], e->name);
        }
        assert_int_equal(at, list.n);
        ttn_free(x);
        tear_down(&s);
    }
}

/* ---- statistics, taps, time ---- */

static void statistics_count_the_used_part(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int x = ttn_input(g, "x", ttn_rows(g, 1));
    int y = toy_square_of(g, "y", x);
    int unused = toy_square_of(g, "unused", x);
    set_up s = set_up_of(g, (ttn_plan_options){.stat = &y, .n_stat = 1});
    const real data[3] = {1, 2, -3};
    bind(&s, "x", data);
    ttn_feed f = rows_of(3);
    expect_run(&s, &f, NULL);
    int n;
    const double *stat = ttn_plan_stat(s.p, y, &n);
    assert_int_equal(n, 3);
    assert_true(stat[0] == 4 + 9 + 4 && stat[1] == 4 && stat[2] == 9);
    assert_null(ttn_plan_stat(s.p, unused, &n));
    assert_null(ttn_plan_stat(s.p, x, &n));
    assert_null(ttn_plan_stat(s.p, 1000, &n));
    tear_down(&s);
}

typedef struct {
    real in, out;
    int calls;
} seen;

static ttn_status look(const ttn_call *c, void *ctx, ttn_error *err)
{
    (void)err;
    seen *s = ctx;
    s->in = *(const real *)c->in[0];
    s->out = *(const real *)c->out[0];
    s->calls++;
    return TTN_OK;
}

/* scale would write over its input; a tap on it is to see both. It is called once, also when the node is made again. */
static void a_tap_sees_inputs_and_outputs_once(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int w = ttn_param(g, "w", ttn_vector(5), (ttn_init){TTN_INIT_CONSTANT, 1}, 0);
    ttn_block_begin(g);
    int h = toy_square_of(g, "h", w);
    int y = ttn_scale(g, "y", h, 10);
    int z = toy_square_of(g, "z", y);
    int sum = toy_sum_of(g, "sum", z);
    ttn_block_end(g);
    seen what = {.calls = 0};
    ttn_tap tap = {.value = y, .fn = look, .ctx = &what};
    set_up s =
        set_up_of(g, (ttn_plan_options){.loss = &sum, .n_loss = 1, .tap = &tap, .n_tap = 1, .debug = TTN_PLAN_POISON});
    ttn_feed f = {0};
    expect_run(&s, &f, NULL);
    assert_true(ttn_plan_report_of(s.p)->n_again > 0);
    assert_int_equal(what.calls, 1);
    assert_true(what.in == 4 && what.out == 40);
    tear_down(&s);
}

/* Nothing but the tap needs the node. */
static void a_tap_is_reason_enough_to_run_a_node(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int w = ttn_param(g, "w", ttn_vector(5), (ttn_init){TTN_INIT_CONSTANT, 1}, 0);
    int y = ttn_scale(g, "y", toy_square_of(g, "h", w), 10);
    seen what = {.calls = 0};
    ttn_tap tap = {.value = y, .fn = look, .ctx = &what};
    set_up s = set_up_of(g, (ttn_plan_options){.tap = &tap, .n_tap = 1});
    ttn_feed f = {0};
    expect_run(&s, &f, NULL);
    assert_true(what.calls == 1 && what.in == 4 && what.out == 40);
    tear_down(&s);
}

/* ---- random streams ---- */

enum { MASK_ROWS = 60 };

/* The mask of node "SCOPE.mask" for two sequences at these rows: 1 or 0 for each of their 20 positions. */
static void mask_of(int more_nodes, const char *scope, ttn_feed f, int *mask)
{
    ttn_graph *g = ttn_graph_create(capacity);
    int x = ttn_input(g, "x", ttn_rows(g, 1));
    int w = ttn_param(g, "w", ttn_vector(1), small, 0);
    for (int i = 0; i < more_nodes; i++)
        toy_square_of(g, NULL, x);
    ttn_scope_begin(g, "%s", scope);
    ttn_block_begin(g);
    int h = toy_mask_of(g, "mask", x);
    int y = toy_square_of(g, "y", h);
    ttn_block_end(g);
    ttn_scope_end(g);
    int loss = toy_sum_of(g, "loss", toy_square_of(g, "z", y));
    int unused = toy_sum_of(g, "w_loss", w);
    int losses[2] = {loss, unused};
    set_up s = set_up_of(
        g, (ttn_plan_options){.loss = losses, .n_loss = 2, .keep = &h, .n_keep = 1, .debug = TTN_PLAN_POISON});
    real ones[MASK_ROWS];
    for (int i = 0; i < MASK_ROWS; i++)
        ones[i] = 1;
    bind(&s, "x", ones);
    expect_run(&s, &f, NULL);
    ttn_error err = {0};
    real *read = ttn_alloc_array(480, sizeof *read);
    assert_ok(ttn_plan_read(s.p, h, read, &err), &err);
    for (int i = 0; i < 2; i++)
        for (int p = 0; p < 20; p++)
            mask[i * 20 + p] = read[f.span[i].first + p] != 0;
    ttn_free(read);
    tear_down(&s);
}

static int differ(const int *a, const int *b)
{
    return memcmp(a, b, 40 * sizeof *a) != 0;
}

/* A random number depends on seed, step, the node's name, the sequence's number and the place in it, and on nothing else:
 * not on the node's number, not on where the sequence stands. */
static void random_streams_are_keyed_by_name_step_and_place(void **state)
{
    (void)state;
    static const ttn_span here[2] = {{0, 20}, {24, 20}};
    static const ttn_span there[2] = {{3, 20}, {36, 20}};
    static const uint64_t samples[2] = {70, (uint64_t)1 << 40};
    static const uint64_t swapped[2] = {(uint64_t)1 << 40, 70};
    ttn_feed f = {.used = {.rows = MASK_ROWS, .seqs = 2}, .span = here, .sample = samples, .seed = 5, .step = 9};
    int first[40];
    int other[40];
    mask_of(0, "a", f, first);
    int kept = 0;
    for (int i = 0; i < 40; i++)
        kept += first[i];
    assert_true(kept > 5 && kept < 35);
    mask_of(7, "a", f, other);
    assert_false(differ(first, other));
    f.span = there;
    mask_of(0, "a", f, other);
    assert_false(differ(first, other));
    f.span = here;
    f.sample = swapped;
    mask_of(0, "a", f, other);
    assert_memory_equal(first, other + 20, 20 * sizeof *first);
    assert_memory_equal(first + 20, other, 20 * sizeof *first);
    f.sample = samples;
    mask_of(0, "b", f, other);
    assert_true(differ(first, other));
    f.step = 10;
    mask_of(0, "a", f, other);
    assert_true(differ(first, other));
    f.step = 9;
    f.seed = 6;
    mask_of(0, "a", f, other);
    assert_true(differ(first, other));
}

/* The mask made again in backward is the one of forward: x masked, then squared twice; the gradient of w x. */
static void a_recomputed_mask_is_the_same(void **state)
{
    (void)state;
    static const ttn_span span[1] = {{0, 60}};
    real gradient[2];
    for (int again = 0; again < 2; again++) {
        ttn_graph *g = ttn_graph_create(capacity);
        int x = ttn_input(g, "x", ttn_rows(g, 1));
        int w = ttn_param(g, "w", ttn_matrix(1, 1), (ttn_init){TTN_INIT_CONSTANT, 1}, 0);
        int h = ttn_linear(g, "h", x, w, TTN_NONE);
        if (again) ttn_block_begin(g);
        int y = toy_square_of(g, "y", toy_mask_of(g, "mask", h));
        int z = toy_square_of(g, "z", y);
        if (again) ttn_block_end(g);
        int loss = toy_sum_of(g, "loss", ttn_scale(g, "s", z, 1));
        set_up s = set_up_of(g, (ttn_plan_options){.loss = &loss, .n_loss = 1, .debug = TTN_PLAN_POISON});
        assert_int_equal(ttn_plan_report_of(s.p)->n_again > 0, again);
        real *data = numbers(4, MASK_ROWS);
        bind(&s, "x", data);
        ttn_feed f = {.used = {.rows = MASK_ROWS, .seqs = 1}, .span = span, .seed = 5, .step = 9};
        expect_run(&s, &f, NULL);
        gradient[again] = *(real *)ttn_weights_slab(s.w, TTN_SLAB_GRADIENT);
        ttn_free(data);
        tear_down(&s);
    }
    assert_same_bits(&gradient[0], &gradient[1], sizeof(real));
}

/* ---- time ---- */

static double tick(void *ctx)
{
    double *now = ctx;
    *now += 1;
    return *now;
}

static void steps_are_timed_on_request(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int sum = toy_sum_of(g, "sum", ttn_param(g, "w", ttn_vector(5), small, 0));
    set_up s = set_up_of(g, (ttn_plan_options){.loss = &sum, .n_loss = 1});
    ttn_feed f = {0};
    double now = 0;
    ttn_plan_time(s.p, tick, &now);
    expect_run(&s, &f, NULL);
    expect_run(&s, &f, NULL);
    const ttn_plan_report *r = ttn_plan_report_of(s.p);
    for (int at = 0; at < r->n_step; at++)
        assert_true(r->step[at].seconds == 2);
    ttn_plan_time(s.p, NULL, NULL);
    expect_run(&s, &f, NULL);
    assert_true(r->step[0].seconds == 0);
    tear_down(&s);
}

/* ---- feeds ---- */

static void rows_past_the_used_ones_are_zero(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int x = ttn_input(g, "x", ttn_rows(g, 2));
    set_up s = set_up_of(g, (ttn_plan_options){.keep = &x, .n_keep = 1, .debug = TTN_PLAN_POISON});
    const real data[6] = {1, 2, 3, 4, 5, 6}; /* the caller has no more than the used rows */
    bind(&s, "x", data);
    ttn_feed f = rows_of(3);
    expect_run(&s, &f, NULL);
    real read[960];
    ttn_error err = {0};
    assert_ok(ttn_plan_read(s.p, x, read, &err), &err);
    for (int i = 0; i < 960; i++)
        assert_true(read[i] == (i < 6 ? data[i] : 0));
    tear_down(&s);
}

static void expect_run_refused(set_up *s, const ttn_feed *f, ttn_status status, const char *words)
{
    ttn_error err = {0};
    assert_fails(ttn_plan_run(s->p, f, NULL, &err), status, &err, words);
}

static void a_feed_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int x = ttn_input(g, "x", ttn_rows(g, 1));
    int y = toy_square_of(g, "y", x);
    set_up s = set_up_of(g, (ttn_plan_options){.keep = &y, .n_keep = 1});
    const real data[480] = {0};
    ttn_feed f = rows_of(5);
    expect_run_refused(&s, &f, TTN_EINVAL, "input 'x' is not bound");
    bind(&s, "x", data);
    expect_run(&s, &f, NULL);
    f.used.rows = 481;
    expect_run_refused(&s, &f, TTN_EINVAL, "a batch of 481 rows, the plan has room for 480");
    f.used.rows = -1;
    expect_run_refused(&s, &f, TTN_EINVAL, "-1 rows");
    f.used = (ttn_extent){.rows = 5, .seqs = 5};
    expect_run_refused(&s, &f, TTN_EINVAL, "5 sequences, the plan has room for 4");
    f.used = (ttn_extent){.rows = 5, .picks = 481};
    expect_run_refused(&s, &f, TTN_EINVAL, "481 picks");
    f.used = (ttn_extent){.rows = 20, .seqs = 2};
    expect_run_refused(&s, &f, TTN_EINVAL, "without their spans");
    const ttn_span bad[][2] = {
        {{0, 0}, {5, 5}},  {{0, 5}, {4, 5}},         {{5, 5}, {0, 5}},         {{0, 5}, {5, 16}},  {{-1, 5}, {5, 5}},
        {{0, 5}, {21, 1}}, {{0, 5}, {5, INT64_MAX}}, {{0, 5}, {INT64_MAX, 2}}, {{0, -3}, {5, 15}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        f.span = bad[i];
        expect_run_refused(&s, &f, TTN_EINVAL, "within 20 used rows");
    }
    const ttn_span good[2] = {{0, 5}, {5, 15}};
    f.span = good;
    expect_run(&s, &f, NULL);
    static const int64_t bad_start[][2] = {{-1, 0}, {0, TTN_MAX_POSITION - 14}, {0, INT64_MAX}, {INT64_MIN, 0}};
    for (size_t i = 0; i < sizeof bad_start / sizeof *bad_start; i++) {
        f.start = bad_start[i];
        expect_run_refused(&s, &f, TTN_EINVAL, "of its protein");
    }
    static const int64_t good_start[2] = {0, TTN_MAX_POSITION - 15};
    f.start = good_start;
    expect_run(&s, &f, NULL);
    ttn_error err = {0};
    assert_fails(ttn_plan_bind(s.p, "z", data, &err), TTN_EINVAL, &err, "no input 'z'");
    err = (ttn_error){0};
    assert_fails(ttn_plan_bind(s.p, "x", NULL, &err), TTN_EINVAL, &err, "'x' is bound to nothing");
    tear_down(&s);
}

static void reading_what_is_not_there_is_refused(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int x = ttn_input(g, "x", ttn_vector(1));
    int y = toy_square_of(g, "y", x);
    int z = toy_square_of(g, "z", y);
    set_up s = set_up_of(g, (ttn_plan_options){.keep = &z, .n_keep = 1});
    ttn_error err = {0};
    real read;
    assert_fails(ttn_plan_read(s.p, z, &read, &err), TTN_EINVAL, &err, "'z', but no run has ended well");
    const real one = 1;
    ttn_feed f = {0};
    bind(&s, "x", &one);
    expect_run(&s, &f, NULL);
    err = (ttn_error){0};
    assert_ok(ttn_plan_read(s.p, z, &read, &err), &err);
    assert_true(read == 25);
    f.used.rows = 1000;
    err = (ttn_error){0};
    assert_int_equal(ttn_plan_run(s.p, &f, NULL, &err), TTN_EINVAL);
    err = (ttn_error){0};
    assert_fails(ttn_plan_read(s.p, z, &read, &err), TTN_EINVAL, &err, "'z', but no run has ended well");
    err = (ttn_error){0};
    assert_fails(ttn_plan_read(s.p, y, &read, &err), TTN_EINVAL, &err, "'y' is not kept");
    err = (ttn_error){0};
    assert_fails(ttn_plan_read(s.p, -1, &read, &err), TTN_EINVAL, &err, "-1 is no value");
    tear_down(&s);
}

static void weights_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_graph *g = ttn_graph_create(capacity);
    int sum = toy_sum_of(g, "sum", ttn_param(g, "w", ttn_vector(5), small, 0));
    ttn_plan *p;
    assert_ok(ttn_plan_create(g, &(ttn_plan_options){.loss = &sum, .n_loss = 1}, &p, &err), &err);
    assert_fails(ttn_plan_run(p, &(ttn_feed){0}, NULL, &err), TTN_EINVAL, &err, "no weights are attached, 'w'");
    static const struct {
        const char *name, *words;
        int64_t width;
        unsigned flags;
    } other[] = {
        {"v", "have no 'w'", 5, 0},
        {"w", "'w' is f", 6, 0},
        {"w", "'w' is trained by this graph, but frozen", 5, TTN_FROZEN},
    };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        ttn_graph *foreign = ttn_graph_create(capacity);
        ttn_param(foreign, other[i].name, ttn_vector(other[i].width), small, other[i].flags);
        ttn_weights *w;
        err = (ttn_error){0};
        assert_ok(ttn_weights_create(foreign, NULL, &w, &err), &err);
        assert_fails(ttn_plan_attach(p, w, &err), TTN_EINVAL, &err, other[i].words);
        ttn_weights_destroy(w);
        ttn_graph_destroy(foreign);
    }
    ttn_plan_destroy(p);
    ttn_graph_destroy(g);
}

/* Other weights are other numbers, at once. */
static void attaching_other_weights_takes_effect(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_graph *g = ttn_graph_create(capacity);
    int sum = toy_sum_of(g, "sum", ttn_param(g, "w", ttn_vector(1), (ttn_init){TTN_INIT_CONSTANT, 1}, 0));
    set_up s = set_up_of(g, (ttn_plan_options){.loss = &sum, .n_loss = 1});
    ttn_feed f = {0};
    expect_run(&s, &f, NULL);
    assert_true(read_scalar(&s, sum) == 1);
    ttn_weights *other;
    assert_ok(ttn_weights_create(g, NULL, &other, &err), &err);
    const real seven = 7;
    assert_ok(ttn_weights_write(other, 0, TTN_SLAB_VALUE, &seven, &err), &err);
    assert_ok(ttn_plan_attach(s.p, other, &err), &err);
    real read;
    assert_fails(ttn_plan_read(s.p, sum, &read, &err), TTN_EINVAL, &err, "no run has ended well");
    expect_run(&s, &f, NULL);
    assert_true(read_scalar(&s, sum) == 7);
    ttn_weights_destroy(other);
    tear_down(&s);
}

/* The caller's own arithmetic is as it was after a run. */
static void a_run_gives_back_the_callers_denormals(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int sum = toy_sum_of(g, "sum", ttn_param(g, "w", ttn_vector(1), small, 0));
    set_up s = set_up_of(g, (ttn_plan_options){.loss = &sum, .n_loss = 1, .n_thread = 2});
    ttn_feed f = {0};
    expect_run(&s, &f, NULL);
    volatile double tiny = 1e-310;
    assert_true(tiny * 0.5 > 0);
    tear_down(&s);
}

/* ---- kernels that fail, values that are not finite ---- */

static void a_failing_kernel_is_named_and_the_plan_runs_again(void **state)
{
    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        ttn_graph *g = ttn_graph_create(capacity);
        int w = ttn_param(g, "w", ttn_vector(5), small, 0);
        ttn_scope_begin(g, "layer.7");
        int y = toy_failing_of(g, "odd", w, (toy_failing_attr){.step = 2, .pass = pass ? TTN_BACKWARD : TTN_FORWARD});
        ttn_scope_end(g);
        int sum = toy_sum_of(g, "sum", y);
        set_up s = set_up_of(g, (ttn_plan_options){.loss = &sum, .n_loss = 1});
        for (uint64_t turn = 1; turn < 4; turn++) {
            ttn_feed f = {.step = turn};
            if (turn == 2)
                expect_run_refused(&s, &f, TTN_EFORMAT, "layer.7.odd: toy: row 3 is odd");
            else
                expect_run(&s, &f, NULL);
        }
        tear_down(&s);
    }
}

static void the_trap_names_the_first_tensor_that_is_not_finite(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create(capacity);
    int x = ttn_input(g, "x", ttn_vector(5));
    int w = ttn_param(g, "w", ttn_vector(5), small, 0);
    ttn_scope_begin(g, "layer.7");
    int y = ttn_add(g, "add", x, w);
    ttn_scope_end(g);
    int sum = toy_sum_of(g, "sum", toy_square_of(g, "z", y));
    set_up s = set_up_of(g, (ttn_plan_options){.loss = &sum, .n_loss = 1});
    real data[5] = {1, 2, 3, INFINITY, NAN};
    bind(&s, "x", data);
    ttn_feed f = {0};
    expect_run(&s, &f, NULL); /* without the trap nobody looks */
    ttn_plan_trap(s.p, 1);
    expect_run_refused(&s, &f, TTN_ENUMERIC,
                       "layer.7.add (add): output 0 has 2 of 5 values that are not finite, the first at 3");
    data[3] = data[4] = 0;
    expect_run(&s, &f, NULL);
    const double weight = (double)INFINITY;
    ttn_error err = {0};
    assert_fails(ttn_plan_run(s.p, &f, &weight, &err), TTN_ENUMERIC, &err,
                 "sum (sum): the gradient of input 0 has 5 of 5");
    tear_down(&s);
}

/* ---- the engine touches values through the device only ---- */

static int run_guarded(void *arg)
{
    (void)arg;
    ttn_device *d = guarded_device();
    ttn_error err = {0};
    ttn_graph *g = ttn_graph_create(capacity);
    int x = ttn_input(g, "x", ttn_rows(g, 1));
    int w = ttn_param(g, "w", ttn_vector(6), small, 0);
    ttn_block_begin(g);
    int kept = toy_square_of(g, "kept", x);
    int h = toy_square_of(g, "h", toy_square_of(g, "again", w));
    ttn_block_end(g);
    int loss = toy_sum_of(g, "loss", h);
    ttn_plan_options o = {.loss = &loss, .n_loss = 1, .keep = &kept, .n_keep = 1, .debug = TTN_PLAN_POISON};
    o.device = d;
    ttn_weights *weights;
    ttn_plan *p;
    const real data[3] = {1, 2, 3};
    const ttn_feed f = {.used = {.rows = 3}};
    real read = 0;
    real all[480];
    if (!d) return 1;
    guarded_graph(d, g);
    if (ttn_weights_create(g, d, &weights, &err) != TTN_OK) return 2;
    if (ttn_weights_init(weights, 1, &err) != TTN_OK) return 3;
    if (ttn_plan_create(g, &o, &p, &err) != TTN_OK) return 4;
    if (ttn_plan_attach(p, weights, &err) != TTN_OK) return 5;
    if (ttn_plan_bind(p, "x", data, &err) != TTN_OK) return 6;
    ttn_plan_trap(p, 1);
    const guarded_transfers before = guarded_count(d);
    if (ttn_plan_run(p, &f, NULL, &err) != TTN_OK) return 7;
    const guarded_transfers after = guarded_count(d);
    if (after.gets != before.gets + 1) return 8;
    if (after.puts != before.puts + 2) return 9; /* x, and all that is not an input */
    if (ttn_plan_read(p, loss, &read, &err) != TTN_OK || !(read > 0)) return 10;
    if (guarded_count(d).gets != after.gets) return 11;
    if (ttn_plan_read(p, kept, all, &err) != TTN_OK || all[2] != 16) return 12;
    int n;
    if (ttn_plan_stat(p, kept, &n)[0] != 4 + 9 + 16) return 13;
    ttn_plan_destroy(p);
    ttn_weights_destroy(weights);
    ttn_graph_destroy(g);
    ttn_device_destroy(d);
    return 0;
}

static void the_host_reads_no_value_of_the_device_and_a_run_is_one_transfer_there_and_back(void **state)
{
    (void)state;
    ttn_child c = run_in_child((ttn_child_limit){0}, run_guarded, NULL);
    if (!c.exited || c.exit_code != 0) print_message("%s\n", c.output);
    assert_true(c.exited);
    assert_int_equal(c.exit_code, 0);
}

/* ---- threads, memory ---- */

static void a_run_out_of_memory_is_a_status_and_can_be_repeated(void **state)
{
    (void)state;
    model_config c = {.layers = 1, .width = 6, .hidden = 6, .capacity = capacity};
    model m = model_record(&c);
    real *x = numbers(1, 480 * 6);
    for (int64_t nth = 1;; nth++) {
        set_up s = set_up_of(m.g, (ttn_plan_options){.loss = &m.loss, .n_loss = 1});
        bind(&s, "x", x);
        bind(&s, "target", x);
        ttn_feed f = rows_of(100);
        ttn_error err = {0};
        shim_arm(SHIM_ALLOC | SHIM_MAP, nth, SHIM_FAIL, 12, 0);
        ttn_status status = ttn_plan_run(s.p, &f, NULL, &err);
        int hit = shim_was_hit();
        shim_disarm();
        if (hit) assert_int_equal(status, TTN_ENOMEM);
        expect_run(&s, &f, NULL);
        ttn_plan_destroy(s.p);
        ttn_weights_destroy(s.w);
        if (hit) continue;
        assert_int_equal(status, TTN_OK);
        assert_true(nth > 2);
        break;
    }
    ttn_free(x);
    ttn_graph_destroy(m.g);
}

static void a_shared_region_is_enough_for_two_plans(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_device *d;
    ttn_memory *region;
    assert_ok(ttn_device_cpu(&d, &err), &err);
    assert_ok(d->ops->memory_create(d, 0, (size_t)1 << 30, &region, &err), &err);
    double loss[2][2];
    for (int turn = 0; turn < 2; turn++) {
        set_up s[2];
        real *x = numbers(1, 480 * 6);
        model m[2];
        for (int i = 0; i < 2; i++) {
            model_config c = {.layers = 1 + i, .width = 6, .hidden = 6, .capacity = capacity};
            m[i] = model_record(&c);
            ttn_plan_options o = {.loss = &m[i].loss, .n_loss = 1, .device = d, .memory = turn ? region : NULL};
            s[i] = set_up_of(m[i].g, o);
            bind(&s[i], "x", x);
            bind(&s[i], "target", x);
        }
        for (int round = 0; round < 2; round++)
            for (int i = 0; i < 2; i++) {
                ttn_feed f = rows_of(100 + round);
                expect_run(&s[i], &f, NULL);
                loss[turn][i] = read_scalar(&s[i], m[i].loss);
                real read; /* of the other plan, whose results are gone where they share the region */
                ttn_status other = ttn_plan_read(s[1 - i].p, m[1 - i].loss, &read, NULL);
                if (round > 0 || i > 0) assert_int_equal(other, turn ? TTN_EINVAL : TTN_OK);
            }
        for (int i = 0; i < 2; i++)
            tear_down(&s[i]);
        ttn_free(x);
    }
    assert_true(loss[0][0] == loss[1][0] && loss[0][1] == loss[1][1]);
    d->ops->memory_destroy(region);
    ttn_device_destroy(d);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(micro_batches_of_unequal_counts_add_up),
        cmocka_unit_test(two_losses_have_their_own_weights),
        cmocka_unit_test(a_loss_may_lead_to_another_loss),
        cmocka_unit_test(outputs_that_reach_no_loss_have_no_gradient),
        cmocka_unit_test(an_input_left_out_is_null),
        cmocka_unit_test(one_value_in_two_inputs_gets_both_gradients),
        cmocka_unit_test(nothing_comes_back_through_detach),
        cmocka_unit_test(a_gradient_passed_on_is_not_overwritten_too_early),
        cmocka_unit_test(a_detached_value_can_be_kept_and_read),
        cmocka_unit_test(a_parameter_read_twice_is_final_once),
        cmocka_unit_test(a_tap_is_reason_enough_to_run_a_node),
        cmocka_unit_test(random_streams_are_keyed_by_name_step_and_place),
        cmocka_unit_test(a_recomputed_mask_is_the_same),
        cmocka_unit_test(attaching_other_weights_takes_effect),
        cmocka_unit_test(a_run_gives_back_the_callers_denormals),
        cmocka_unit_test(gradients_become_final_in_slab_order_and_once),
        cmocka_unit_test(statistics_count_the_used_part),
        cmocka_unit_test(a_tap_sees_inputs_and_outputs_once),
        cmocka_unit_test(steps_are_timed_on_request),
        cmocka_unit_test(rows_past_the_used_ones_are_zero),
        cmocka_unit_test(a_feed_that_does_not_fit_is_refused),
        cmocka_unit_test(reading_what_is_not_there_is_refused),
        cmocka_unit_test(weights_that_do_not_fit_are_refused),
        cmocka_unit_test(a_failing_kernel_is_named_and_the_plan_runs_again),
        cmocka_unit_test(the_trap_names_the_first_tensor_that_is_not_finite),
        cmocka_unit_test(the_host_reads_no_value_of_the_device_and_a_run_is_one_transfer_there_and_back),
        cmocka_unit_test(a_run_out_of_memory_is_a_status_and_can_be_repeated),
        cmocka_unit_test(a_shared_region_is_enough_for_two_plans),
    };
    return ttn_test_run(tests);
}
