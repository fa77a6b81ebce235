/* Random graphs: whatever is recorded, every way of planning it gives the same bits, and the gradient is the derivative.
 *
 * Values are shared, detached, used twice, kept; parameters are tied and frozen; outputs are ignored; blocks are marked
 * anywhere; there are one to three losses. TTN_SEED and the number that a failure prints bring a graph back.
 */
#include <inttypes.h>
#include <string.h>
#include "autograd/ops.h"
#include "autograd/plan.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/test.h"
#include "tests/harness/toy.h"

enum { WIDTH = 3, ROWS = 29, MOST_VALUES = 64, MOST_LOSSES = 3, PARAMS = 6 };

static const ttn_span spans[2] = {{0, 10}, {12, 17}};
static const ttn_feed feed = {.used = {.rows = ROWS, .seqs = 2}, .span = spans, .seed = 3, .step = 4};

/* A recorded graph and what is asked of it. */
typedef struct {
    ttn_graph *g;
    int loss[MOST_LOSSES], n_loss;
    int keep[2], n_keep;
    int detached; /* something is: the derivative along a parameter is then not the gradient */
} random_graph;

static int pick(ttn_rng *r, int n)
{
    return (int)ttn_rng_next_below(r, (uint64_t)n);
}

/* One more value from those of `value`, all (N, WIDTH). */
static int random_node(random_graph *t, ttn_rng *r, const int *value, int n, const int *weight, const int *gain)
{
    ttn_graph *g = t->g;
    const int x = value[pick(r, n)];
    const int y = value[pick(r, n)];
    switch (pick(r, 10)) {
    case 0:
        return ttn_add(g, NULL, x, y);
    case 1:
        return toy_blend_of(g, NULL, x, y);
    case 2:
        return ttn_scale(g, NULL, x, 0.5);
    case 3:
        return ttn_output(g, toy_pair_of(g, NULL, ttn_scale(g, NULL, x, 0.25)), pick(r, 2));
    case 4:
        return toy_maybe_of(g, NULL, x, pick(r, 2) ? y : TTN_NONE);
    case 5:
        return toy_square_of(g, NULL, ttn_scale(g, NULL, x, 0.3));
    case 6:
        return toy_mask_of(g, NULL, x);
    case 7:
        return ttn_linear(g, NULL, x, weight[pick(r, PARAMS)], pick(r, 2) ? gain[pick(r, PARAMS)] : TTN_NONE);
    case 8:
        return ttn_layernorm(g, NULL, x, gain[pick(r, PARAMS)], pick(r, 2) ? gain[pick(r, PARAMS)] : TTN_NONE, 1e-3);
    default:
        if (pick(r, 4) > 0) return ttn_gelu(g, NULL, x, TTN_ACT_GELU_ERF);
        t->detached = 1;
        return ttn_add(g, NULL, ttn_detach(g, x), y);
    }
}

static random_graph record(uint64_t key)
{
    ttn_rng r = {.key = key};
    random_graph t = {.g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 2})};
    ttn_graph *g = t.g;
    int value[MOST_VALUES] = {ttn_input(g, "x", ttn_rows(g, WIDTH))};
    int weight[PARAMS];
    int gain[PARAMS];
    for (int i = 0; i < PARAMS; i++) {
        unsigned frozen = pick(&r, 4) == 0 ? TTN_FROZEN : 0;
        ttn_scope_begin(g, "p.%d", i);
        weight[i] = ttn_param(g, "weight", ttn_matrix(WIDTH, WIDTH), (ttn_init){TTN_INIT_NORMAL, 0.5}, frozen);
        gain[i] = ttn_param(g, "gain", ttn_vector(WIDTH), (ttn_init){TTN_INIT_NORMAL, 0.5}, frozen);
        ttn_scope_end(g);
    }
    value[1] = ttn_linear(g, NULL, value[0], weight[0], TTN_NONE);
    const int n_value = 3 + pick(&r, MOST_VALUES - 3);
    int open = 0;
    for (int n = 2; n < n_value; n++) {
        if (pick(&r, 5) == 0) {
            if (open) ttn_block_end(g);
            if (!open) ttn_block_begin(g);
            open = !open;
        }
        value[n] = random_node(&t, &r, value, n, weight, gain);
    }
    t.n_loss = 1 + pick(&r, MOST_LOSSES);
    for (int i = 0; i < t.n_loss; i++)
        t.loss[i] = toy_sum_of(g, NULL, value[i == 0 ? n_value - 1 : pick(&r, n_value)]);
    if (open) ttn_block_end(g);
    t.n_keep = pick(&r, 3);
    for (int i = 0; i < t.n_keep; i++)
        t.keep[i] = value[1 + pick(&r, n_value - 1)];
    return t;
}

/* ---- a run: its gradients, losses and kept values one after the other ---- */

typedef struct {
    real *number;
    int64_t n, n_gradient;
    size_t bytes;
    double loss; /* weighted sum */
} outcome;

static const double loss_weight[MOST_LOSSES] = {1, -0.5, 0.25};

static outcome run(const random_graph *t, ttn_plan_options o, ttn_weights *w, const real *x)
{
    ttn_error err = {0};
    ttn_plan *p;
    o.loss = t->loss;
    o.n_loss = t->n_loss;
    o.keep = t->keep;
    o.n_keep = t->n_keep;
    assert_ok(ttn_plan_create(t->g, &o, &p, &err), &err);
    assert_ok(ttn_plan_attach(p, w, &err), &err);
    assert_ok(ttn_plan_bind(p, "x", x, &err), &err);
    assert_ok(ttn_weights_require(w, TTN_SLAB_GRADIENT, &err), &err);
    outcome r = {.n_gradient = ttn_weights_slab_elements(w)};
    r.n = r.n_gradient + t->n_loss + t->n_keep * 480 * WIDTH;
    r.number = ttn_alloc_array(r.n, sizeof *r.number);
    real *gradient = ttn_weights_slab(w, TTN_SLAB_GRADIENT);
    memset(gradient, 0, (size_t)r.n_gradient * sizeof *gradient); /* what is not trained stays 0 */
    assert_ok(ttn_plan_run(p, &feed, loss_weight, &err), &err);
    memcpy(r.number, gradient, (size_t)r.n_gradient * sizeof *gradient);
    real *to = r.number + r.n_gradient;
    for (int i = 0; i < t->n_loss && i < MOST_LOSSES; i++) {
        assert_ok(ttn_plan_read(p, t->loss[i], to, &err), &err);
        r.loss += loss_weight[i] * (double)*to++;
    }
    for (int i = 0; i < t->n_keep; i++) {
        assert_ok(ttn_plan_read(p, t->keep[i], to, &err), &err);
        to += 480 * WIDTH;
    }
    r.bytes = ttn_plan_report_of(p)->bytes;
    ttn_plan_destroy(p);
    return r;
}

static ttn_weights *weights_of(const random_graph *t)
{
    ttn_error err = {0};
    ttn_weights *w;
    assert_ok(ttn_weights_create(t->g, NULL, &w, &err), &err);
    assert_ok(ttn_weights_init(w, 1, &err), &err);
    return w;
}

static real *input(void)
{
    real *x = ttn_alloc_array(ROWS * WIDTH, sizeof *x);
    assert_non_null(x);
    ttn_rng_normal(9, 0, ROWS * WIDTH, x);
    return x;
}

static void expect_same(const outcome *a, outcome b)
{
    assert_int_equal(a->n, b.n);
    assert_same_bits(a->number, b.number, (size_t)a->n * sizeof *a->number);
    ttn_free(b.number);
}

static void every_plan_of_a_graph_gives_the_same_bits(void **state)
{
    (void)state;
    real *x = input();
    const int64_t graphs = ttn_test_long() ? 5000 : ttn_scaled(150, 15);
    for (int64_t i = 0; i < graphs; i++) {
        const uint64_t key = ttn_test_seed() + (uint64_t)i;
        random_graph t = record(key);
        ttn_weights *w = weights_of(&t);
        print_message("# graph %" PRIu64 "\n", key);
        outcome kept = run(&t, (ttn_plan_options){.budget = TTN_NO_BUDGET, .debug = TTN_PLAN_NO_SHARE}, w, x);
        outcome marked = run(&t, (ttn_plan_options){.debug = TTN_PLAN_POISON, .n_thread = 3}, w, x);
        outcome shared = run(&t, (ttn_plan_options){.budget = TTN_NO_BUDGET, .debug = TTN_PLAN_POISON}, w, x);
        for (int part = 1; part < 4 && marked.bytes < shared.bytes; part++) {
            size_t budget = marked.bytes + (shared.bytes - marked.bytes) * (size_t)part / 4;
            outcome budgeted = run(&t, (ttn_plan_options){.budget = budget, .debug = TTN_PLAN_POISON}, w, x);
            assert_true(budgeted.bytes <= budget);
            expect_same(&kept, budgeted);
        }
        expect_same(&kept, marked);
        expect_same(&kept, shared);
        ttn_free(kept.number);
        ttn_weights_destroy(w);
        ttn_graph_destroy(t.g);
    }
    ttn_free(x);
}

/* Along one random direction of all trained parameters. */
static void the_gradient_is_the_derivative(void **state)
{
    (void)state;
    if (sizeof(real) == sizeof(float)) skip_because("central differences are judged in double");
    real *x = input();
    int judged = 0;
    const int64_t graphs = ttn_test_long() ? 5000 : ttn_scaled(150, 15);
    for (int64_t i = 0; i < graphs; i++) {
        const uint64_t key = ttn_test_seed() + (uint64_t)i;
        random_graph t = record(key);
        if (!t.detached) {
            ttn_weights *w = weights_of(&t);
            outcome at = run(&t, (ttn_plan_options){0}, w, x);
            const int64_t n = at.n_gradient;
            real *value = ttn_weights_slab(w, TTN_SLAB_VALUE);
            real *direction = ttn_alloc_array(n, sizeof *direction);
            real *start = ttn_alloc_array(n, sizeof *start);
            ttn_rng_normal(key, 0, n, direction);
            memcpy(start, value, (size_t)n * sizeof *start);
            double along = 0;
            double size = 1;
            for (int64_t e = 0; e < n; e++) {
                along += (double)(at.number[e] * direction[e]);
                size += fabs((double)(at.number[e] * direction[e]));
            }
            double loss[2];
            const double h = 1e-6;
            for (int side = 0; side < 2; side++) {
                for (int64_t e = 0; e < n; e++)
                    value[e] = start[e] + (real)(side ? h : -h) * direction[e];
                outcome there = run(&t, (ttn_plan_options){0}, w, x);
                loss[side] = there.loss;
                ttn_free(there.number);
            }
            print_message("# graph %" PRIu64 "\n", key);
            double numeric = (loss[1] - loss[0]) / (2 * h);
            /* losses are sums of up to thousands: their rounding over h, and the curvature */
            double rounding = 1e-15 * (fabs(loss[0]) + fabs(loss[1])) / h;
            assert_at_most(fabs(numeric - along) / (size + rounding), 2e-6, "derivative");
            judged += along != 0;
            ttn_free(direction);
            ttn_free(start);
            ttn_free(at.number);
            ttn_weights_destroy(w);
        }
        ttn_graph_destroy(t.g);
    }
    assert_true(judged * 5 >= graphs); /* the test is about something */
    ttn_free(x);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(3);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_of_a_graph_gives_the_same_bits),
        cmocka_unit_test(the_gradient_is_the_derivative),
    };
    return ttn_test_run(tests);
}
