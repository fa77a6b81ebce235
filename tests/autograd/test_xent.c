/* Cross-entropy: the definition, its corners (far logits, -inf, NaN, ties, weights of 0), and sums that add up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/ops.h"
#include "autograd/plan.h"
#include "core/blas.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/autograd/parts.h"
#include "tests/harness/test.h"

/* As autograd/ops/xent.c has them. */
typedef struct {
    int64_t ignore;
    double smoothing;
} attributes;

enum { SUM, COUNT, CORRECT };

static const attributes usual = {.ignore = -100};

/* ---- the definition, in long double, for all cases of the op ---- */

static int of_sequence(const ttn_case *k, int64_t row)
{
    if (k->in[0].axis != TTN_ROWS || k->used.seqs == 0) return 1;
    for (int64_t s = 0; s < k->used.seqs; s++)
        if (row >= k->span[s].first && row < k->span[s].first + k->span[s].n) return 1;
    return 0;
}

/* p (V) = softmax(x); returns log of the sum of exp(x). */
static long double softmax(int64_t V, const double *x, long double *p)
{
    long double most = (long double)x[0];
    long double sum = 0;
    for (int64_t i = 0; i < V; i++)
        most = (long double)x[i] > most ? (long double)x[i] : most;
    for (int64_t i = 0; i < V; i++)
        sum += p[i] = expl((long double)x[i] - most);
    for (int64_t i = 0; i < V; i++)
        p[i] /= sum;
    return most + logl(sum);
}

static int64_t first_of_the_largest(int64_t V, const double *x)
{
    int64_t at = 0;
    for (int64_t i = 0; i < V; i++)
        if (x[i] > x[at]) at = i;
    return at;
}

static void check_case(int k)
{
    const ttn_case *c = &ttn_op_xent.cases[k];
    const attributes *a = c->attr;
    const ttn_gradcheck_options o = {.seed = ttn_test_seed()};
    ttn_gradcheck_values v;
    ttn_error err = {0};
    assert_ok(ttn_gradcheck_compute("xent", k, &o, &v, &err), &err);
    int64_t n = 0;
    int64_t n_weight = 0;
    int64_t rows = 0;
    int64_t one = 0;
    const double *x = part_of(&v, "in 0", &n);
    const double *target = part_of(&v, "in 1", &rows);
    const double *weight = part_of(&v, "in 2", &n_weight);
    const double dsum = *part_of(&v, "dout 0", &one);
    const double *dloss = part_of(&v, "dout 1", &rows);
    const int64_t V = c->in[0].dim[1];
    assert_int_equal(n, rows * V);
    double *loss = ttn_alloc_array(rows + 1, sizeof *loss);
    double *dx = ttn_alloc_array(n + 1, sizeof *dx);
    long double *p = ttn_alloc_array(V, sizeof *p);
    double stat[3] = {0};
    for (int64_t r = 0; r < rows; r++) {
        const int64_t t = (int64_t)target[r];
        if (!of_sequence(c, r) || t == a->ignore) continue;
        const long double w = n_weight > 0 ? (long double)weight[r] : 1;
        const long double eps = (long double)a->smoothing;
        const long double lse = softmax(V, x + r * V, p);
        long double nll = 0;
        for (int64_t i = 0; i < V; i++) {
            const long double q = (1 - eps) * (i == t) + eps / (long double)V;
            nll += q * (lse - (long double)x[r * V + i]);
            dx[r * V + i] = (double)((w * (long double)dsum + (long double)dloss[r]) * (p[i] - q));
        }
        loss[r] = (double)nll;
        stat[SUM] += (double)(w * nll);
        stat[COUNT] += (double)w;
        if (first_of_the_largest(V, x + r * V) == t) stat[CORRECT] += (double)w;
    }
    const double bound = sizeof(real) == 4 ? 1e-6 : 1e-14; /* sums of 531 roundings, of which most cancel */
    assert_part_near(&v, "stat 0", stat, bound, c->about);
    assert_part_near(&v, "out 0", &stat[SUM], bound, c->about);
    assert_part_near(&v, "out 1", loss, bound, c->about);
    assert_part_near(&v, "din 0", dx, bound, c->about);
    ttn_free(loss);
    ttn_free(dx);
    ttn_free(p);
    ttn_free(v.value);
}

static void losses_gradients_and_statistics_are_those_of_the_definition(void **state)
{
    (void)state;
    int checked = 0;
    for (int k = 0; k < ttn_op_xent.n_cases; k++) {
        if (ttn_op_xent.cases[k].refused || ttn_op_xent.cases[k].fails) continue;
        check_case(k);
        checked++;
    }
    assert_true(checked >= 10);
}

/* ---- kernels directly ---- */

typedef struct {
    int64_t R, V;
    ttn_dtype type; /* of target; TTN_REAL: TTN_I64 */
    const void *target;
    const real *x, *weight;
    attributes a;
    int n_thread;
    real dsum;
    const real *dloss;
    /* results */
    real sum;
    real *loss; /* (R) */
    real *dx;   /* (R, V) */
    double stat[3];
} problem;

static ttn_status compute(problem *p, ttn_error *err)
{
    ttn_sig s = {.attr = &p->a, .n_in = 3};
    s.in[0] = ttn_desc_of(TTN_REAL, TTN_FIXED, 2, p->R, p->V, 0);
    s.in[1] = ttn_desc_of(p->type == TTN_REAL ? TTN_I64 : p->type, TTN_FIXED, 1, p->R, 0, 0);
    s.in[2] = p->weight ? ttn_desc_of(TTN_REAL, TTN_FIXED, 1, p->R, 0, 0) : (ttn_desc){.ndim = -1};
    assert_ok(ttn_op_xent.shape(&s, err), err);
    p->loss = ttn_alloc_array(p->R + 1, sizeof *p->loss);
    p->dx = ttn_alloc_array(p->R * p->V + 1, sizeof *p->dx);
    real *max = ttn_alloc_array(p->R + 1, sizeof *max);
    real *inverse = ttn_alloc_array(p->R + 1, sizeof *inverse);
    void *work = ttn_alloc(s.work[TTN_FORWARD] + 1);
    assert_true(p->loss && p->dx && max && inverse && work);
    const ttn_feed feed = {0};
    const ttn_stream on = {.n_thread = p->n_thread > 0 ? p->n_thread : 1};
    ttn_call c = {.sig = &s,
                  .feed = &feed,
                  .on = &on,
                  .in = {p->x, p->target, p->weight},
                  .out = {&p->sum, p->loss},
                  .aux = {max, inverse},
                  .work = work,
                  .stat = p->stat};
    ttn_status status = ttn_op_xent.cpu.forward(&c, err);
    c.dout[0] = &p->dsum;
    c.dout[1] = p->dloss;
    c.din[0] = p->dx;
    if (status == TTN_OK) status = ttn_op_xent.cpu.backward(&c, err);
    ttn_free(max);
    ttn_free(inverse);
    ttn_free(work);
    return status;
}

static void expect(problem *p)
{
    ttn_error err = {0};
    if (p->dsum == 0) p->dsum = 1;
    assert_ok(compute(p, &err), &err);
}

static void release(problem *p)
{
    ttn_free(p->loss);
    ttn_free(p->dx);
}

static void assert_value(real got, double wanted)
{
    if (isnan(wanted) ? isnan(got) : (double)got == wanted) return;
    fail_msg("%.17g, expected %.17g", (double)got, wanted);
}

/* Multiples of 1/64 are exact at 10^4, in f32 too. So nothing may change when 10^4 is added to all logits: not a bit. */
static void shifting_all_logits_by_ten_thousand_changes_no_bit(void **state)
{
    (void)state;
    enum { R = 50, V = 33 };
    static real x[3][R * V];
    int64_t target[R];
    const real by[3] = {0, 10000, -10000};
    for (int e = 0; e < R * V; e++) {
        const real v = (real)((e * 7919) % 1024) / 64 - 8;
        for (int s = 0; s < 3; s++)
            x[s][e] = v + by[s];
    }
    for (int r = 0; r < R; r++)
        target[r] = (r * 5) % V;
    const double smoothing[] = {0, 0.1};
    for (int k = 0; k < 2; k++) {
        problem p[3];
        for (int s = 0; s < 3; s++) {
            p[s] =
                (problem){.R = R, .V = V, .x = x[s], .target = target, .a = {.ignore = -1, .smoothing = smoothing[k]}};
            expect(&p[s]);
            assert_same_bits(p[s].loss, p[0].loss, sizeof(real) * R);
            assert_same_bits(p[s].dx, p[0].dx, sizeof(real) * R * V);
        }
        for (int s = 0; s < 3; s++)
            release(&p[s]);
    }
}

static void logits_of_ten_thousand_on_both_sides_give_their_difference(void **state)
{
    (void)state;
    const real x[] = {10000, -10000, 0, 10000, -10000, 0};
    const int64_t target[] = {1, 0};
    problem p = {.R = 2, .V = 3, .x = x, .target = target, .a = usual};
    expect(&p);
    const double wanted[] = {1, -1, 0, 0, 0, 0};
    assert_value(p.loss[0], 20000);
    assert_value(p.loss[1], 0);
    for (int e = 0; e < 6; e++)
        assert_value(p.dx[e], wanted[e]);
    release(&p);
}

static void a_class_of_minus_infinity_is_as_good_as_none(void **state)
{
    (void)state;
    const real none = -(real)INFINITY;
    const real x[] = {none, 1, 2, none, 3, none};
    const real less[] = {1, 2, 3};
    const int64_t target[] = {4};
    const int64_t of_less[] = {2};
    problem p = {.R = 1, .V = 6, .x = x, .target = target, .a = usual};
    problem q = {.R = 1, .V = 3, .x = less, .target = of_less, .a = usual};
    expect(&p);
    expect(&q);
    const double gradient[] = {0, (double)q.dx[0], (double)q.dx[1], 0, (double)q.dx[2], 0};
    assert_true(fabs((double)(p.loss[0] - q.loss[0])) <= 2 * (double)TTN_REAL_EPS);
    for (int i = 0; i < 6; i++)
        assert_true(fabs((double)p.dx[i] - gradient[i]) <= 2 * (double)TTN_REAL_EPS);
    assert_true(p.dx[0] == 0 && p.stat[CORRECT] == 1);
    release(&p);
    release(&q);
}

/* The loss is infinite where it must be; the gradient never is. NaN stays NaN. A weight of 0 makes all of that count nothing,
 * and so does the ignore label. */
static void infinite_and_undefined_losses_are_what_they_should_be(void **state)
{
    (void)state;
    const real inf = (real)INFINITY;
    const real nan = (real)NAN;
    const real x[] = {-inf, 1, 1, nan, 0, 0, 0, nan, 0, -inf, -inf, -inf, inf, 0, 0, 1, 2, 3};
    const double loss[] = {INFINITY, NAN, NAN, NAN, NAN, log(exp(-2) + exp(-1) + 1)};
    const int64_t target[] = {0, 1, 1, 0, 0, 2};
    const int64_t some_ignored[] = {0, 9, 9, 9, 9, 2};
    const real weight[] = {0, 0, 0, 0, 0, 2};
    problem p = {.R = 6, .V = 3, .x = x, .target = target, .a = {.ignore = 9}};
    expect(&p);
    for (int r = 0; r < 5; r++)
        assert_value(p.loss[r], loss[r]);
    assert_true(fabs((double)p.loss[5] - loss[5]) <= 1e-6);
    assert_true(isnan(p.sum) && isnan(p.stat[SUM]));
    assert_value(p.dx[0], -1);
    assert_value(p.dx[1], 0.5);
    for (int i = 3; i < 15; i++)
        assert_true(isnan(p.dx[i]));
    for (int i = 15; i < 18; i++)
        assert_true(isfinite(p.dx[i]));
    assert_true(p.stat[COUNT] == 6);
    release(&p);

    problem q = {.R = 6, .V = 3, .x = x, .target = some_ignored, .a = {.ignore = 9}};
    expect(&q);
    assert_value(q.sum, INFINITY);
    assert_true(q.stat[COUNT] == 2 && q.stat[CORRECT] == 1);
    for (int r = 1; r < 5; r++)
        assert_value(q.loss[r], 0);
    for (int i = 3; i < 15; i++)
        assert_value(q.dx[i], 0);
    release(&q);

    problem w = {.R = 6, .V = 3, .x = x, .target = target, .weight = weight, .a = {.ignore = 9}};
    expect(&w);
    assert_true(fabs((double)w.sum - 2 * loss[5]) <= 1e-6 && w.stat[COUNT] == 2 && w.stat[CORRECT] == 2);
    assert_value(w.loss[0], INFINITY);
    for (int i = 0; i < 15; i++)
        assert_value(w.dx[i], 0);
    release(&w);

    problem s = {.R = 1, .V = 3, .x = x, .target = some_ignored + 5, .a = {.ignore = 9, .smoothing = 0.1}};
    expect(&s); /* some of the label is on class 0, which is impossible */
    assert_value(s.loss[0], INFINITY);
    assert_true(fabs((double)s.dx[0] + 0.1 / 3) <= 1e-7);
    release(&s);

    problem even = {.R = 1, .V = 3, .x = x, .target = target, .a = {.ignore = 9, .smoothing = 1}};
    expect(&even); /* all of the label is spread: infinite, not 0 times infinity */
    assert_value(even.loss[0], INFINITY);
    release(&even);
}

static void of_equal_logits_the_first_class_is_the_answer(void **state)
{
    (void)state;
    enum { V = 40 };
    real x[V];
    const int64_t target[V] = {0};
    for (int first = 0; first < V; first++)
        for (int second = first + 1; second < V; second += 3) {
            for (int i = 0; i < V; i++)
                x[i] = (real)(i == first || i == second);
            for (int t = 0; t < V; t++) {
                int64_t label = t;
                problem p = {.R = 1, .V = V, .x = x, .target = &label, .a = usual};
                expect(&p);
                assert_true(p.stat[CORRECT] == (t == first));
                release(&p);
            }
        }
    for (int i = 0; i < V; i++)
        x[i] = -2;
    problem p = {.R = 1, .V = V, .x = x, .target = target, .a = usual};
    expect(&p);
    assert_true(p.stat[CORRECT] == 1);
    release(&p);
}

static void targets_of_all_three_types_mean_the_same(void **state)
{
    (void)state;
    enum { R = 20, V = 7 };
    real x[R * V];
    uint8_t bytes[R];
    int32_t ints[R];
    int64_t longs[R];
    ttn_rng_normal(ttn_test_seed(), 0, R * V, x);
    for (int r = 0; r < R; r++)
        longs[r] = ints[r] = bytes[r] = (uint8_t)(r % 8 == 7 ? 200 : r % 8);
    problem p[] = {
        {.type = TTN_U8, .target = bytes}, {.type = TTN_I32, .target = ints}, {.type = TTN_I64, .target = longs}};
    for (int k = 0; k < 3; k++) {
        p[k].R = R;
        p[k].V = V;
        p[k].x = x;
        p[k].a.ignore = 200;
        expect(&p[k]);
        assert_same_bits(p[k].loss, p[0].loss, sizeof(real) * R);
        assert_same_bits(p[k].dx, p[0].dx, sizeof(real) * R * V);
        assert_true(p[k].stat[COUNT] == 18);
    }
    for (int k = 0; k < 3; k++)
        release(&p[k]);
}

/* Rows that several threads look at: always the first of them is named. */
static void the_first_target_that_is_no_class_is_named(void **state)
{
    (void)state;
    enum { R = 600 };
    static real x[R * 2];
    static int32_t target[R];
    target[599] = 2;
    target[300] = 7;
    target[77] = -3;
    target[12] = 5; /* the ignore label */
    for (int n_thread = 1; n_thread <= 4; n_thread++) {
        ttn_error err = {0};
        problem p = {
            .R = R, .V = 2, .type = TTN_I32, .x = x, .target = target, .a = {.ignore = 5}, .n_thread = n_thread};
        assert_fails(compute(&p, &err), TTN_EINVAL, &err,
                     "target 77 is -3, expected a class, 0 to 1, or the ignore label, 5");
        release(&p);
    }
}

static void many_classes_are_as_accurate_as_few(void **state)
{
    (void)state;
    static const int64_t widths[] = {1, 2, 15, 16, 17, 33, 1000, 1024, 1025, 65536};
    const double bound = sizeof(real) == 4 ? 5e-7 : 1e-15;
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
        const int64_t V = widths[k];
        real *x = ttn_alloc_array(V, sizeof *x);
        double *wide = ttn_alloc_array(V, sizeof *wide);
        long double *q = ttn_alloc_array(V, sizeof *q);
        ttn_rng_normal(ttn_test_seed(), 0, V, x);
        for (int64_t i = 0; i < V; i++)
            wide[i] = (double)x[i];
        const int64_t target = V - 1;
        problem p = {.R = 1, .V = V, .x = x, .target = &target, .a = usual};
        expect(&p);
        const long double loss = softmax(V, wide, q) - (long double)wide[target];
        assert_at_most(fabs((double)((long double)p.loss[0] - loss)) / (1 + (double)loss), bound, "loss");
        double worst = 0;
        for (int64_t i = 0; i < V; i++)
            worst = fmax(worst, fabs((double)((long double)p.dx[i] - q[i] + (i == target))));
        assert_at_most(worst, bound, "gradient");
        release(&p);
        ttn_free(x);
        ttn_free(wide);
        ttn_free(q);
    }
}

/* ---- sums ---- */

enum { WIDTH = 12, CLASSES = 33, WHOLE = 400 };

typedef struct {
    ttn_graph *g;
    ttn_weights *w;
    ttn_plan *p;
    int loss;
} model;

static model model_of(int weighted)
{
    ttn_error err = {0};
    model m = {.g = ttn_graph_create((ttn_extent){.picks = 480})};
    const ttn_desc row = ttn_desc_of(TTN_REAL, TTN_PICKS, 1, 480, 0, 0);
    const int x = ttn_input(m.g, "x", ttn_picks(m.g, WIDTH));
    const int target = ttn_input(m.g, "target", ttn_typed(row, TTN_U8));
    const int weight = weighted ? ttn_input(m.g, "weight", row) : TTN_NONE;
    const int w = ttn_param(m.g, "head", ttn_matrix(CLASSES, WIDTH), (ttn_init){TTN_INIT_NORMAL, 0.3}, 0);
    m.loss = ttn_xent(m.g, "loss", ttn_linear(m.g, "logits", x, w, TTN_NONE), target, weight, 255, 0.05);
    const int rows = ttn_output(m.g, m.loss, 1);
    const ttn_plan_options o = {
        .loss = &m.loss, .n_loss = 1, .keep = &rows, .n_keep = 1, .n_thread = 2, .debug = TTN_PLAN_POISON};
    assert_ok(ttn_plan_create(m.g, &o, &m.p, &err), &err);
    assert_ok(ttn_weights_create(m.g, NULL, &m.w, &err), &err);
    assert_ok(ttn_weights_init(m.w, 3, &err), &err);
    assert_ok(ttn_plan_attach(m.p, m.w, &err), &err);
    return m;
}

typedef struct {
    real x[WHOLE * WIDTH];
    real weight[WHOLE];
    uint8_t target[WHOLE];
} data;

/* Picks first to first + n - 1. Adds the statistics to stat and the gradient to sum; each row's losses add up to the sum. */
static void run_part(model *m, const data *d, int weighted, int64_t first, int64_t n, double factor, double *stat,
                     double *sum)
{
    ttn_error err = {0};
    const ttn_feed f = {.used = {.picks = n}};
    assert_ok(ttn_plan_bind(m->p, "x", d->x + first * WIDTH, &err), &err);
    assert_ok(ttn_plan_bind(m->p, "target", d->target + first, &err), &err);
    if (weighted) assert_ok(ttn_plan_bind(m->p, "weight", d->weight + first, &err), &err);
    assert_ok(ttn_plan_run(m->p, &f, &factor, &err), &err);
    int n_stat = 0;
    const double *got = ttn_plan_stat(m->p, m->loss, &n_stat);
    assert_int_equal(n_stat, 3);
    real loss[480];
    real total = 0;
    assert_ok(ttn_plan_read(m->p, ttn_output(m->g, m->loss, 1), loss, &err), &err);
    assert_ok(ttn_plan_read(m->p, m->loss, &total, &err), &err);
    double of_rows = 0;
    for (int64_t r = 0; r < 480; r++)
        of_rows += (double)loss[r] * (weighted && r < n ? (double)d->weight[first + r] : 1);
    assert_true(fabs(of_rows - got[SUM]) <= 1e-12 * (1 + of_rows));
    assert_true(total == (real)got[SUM]);
    for (int s = 0; s < 3; s++)
        stat[s] += got[s];
    const real *gradient = ttn_weights_slab(m->w, TTN_SLAB_GRADIENT);
    for (int64_t e = 0; e < CLASSES * WIDTH; e++)
        sum[e] += (double)gradient[e];
}

/* One batch of 400 picks, 40 % of them ignored, against four micro-batches of 250, 3, 100 and 47. What divides is the count
 * of all of them together: also in the micro-batches, each of which is weighted with it. */
static void micro_batches_of_unequal_counts_add_up(void **state)
{
    (void)state;
    static const int64_t counts[] = {250, 3, 100, 47};
    const double bound = sizeof(real) == 8 ? 1e-12 : 1e-5;
    static data d;
    ttn_rng_normal(ttn_test_seed(), 0, WHOLE * WIDTH, d.x);
    for (int r = 0; r < WHOLE; r++) {
        d.weight[r] = (real)0.5 + (real)(r % 7) / 10;
        d.target[r] = (uint8_t)(r % 5 < 2 ? 255 : r * 11 % CLASSES);
    }
    for (int weighted = 0; weighted < 2; weighted++) {
        model m = model_of(weighted);
        double count = 0;
        for (int r = 0; r < WHOLE; r++)
            if (d.target[r] != 255) count += weighted ? (double)d.weight[r] : 1;
        double whole_stat[3] = {0};
        double whole[CLASSES * WIDTH] = {0};
        run_part(&m, &d, weighted, 0, WHOLE, 1 / count, whole_stat, whole);
        double stat[3] = {0};
        double sum[CLASSES * WIDTH] = {0};
        int64_t first = 0;
        for (int i = 0; i < 4; i++) {
            run_part(&m, &d, weighted, first, counts[i], 1 / count, stat, sum);
            first += counts[i];
        }
        assert_true(whole_stat[CORRECT] > 0 && whole_stat[CORRECT] < count / 2);
        assert_at_most(fabs(whole_stat[COUNT] - count) / count, 1e-14, "count");
        for (int s = 0; s < 3; s++)
            assert_at_most(fabs(stat[s] - whole_stat[s]) / whole_stat[s], s == SUM ? bound : 1e-14, "statistic");
        double worst = 0;
        double largest = 0;
        for (int e = 0; e < CLASSES * WIDTH; e++) {
            worst = fmax(worst, fabs(sum[e] - whole[e]));
            largest = fmax(largest, fabs(whole[e]));
        }
        assert_at_most(worst / largest, bound, "gradients");
        ttn_plan_destroy(m.p);
        ttn_weights_destroy(m.w);
        ttn_graph_destroy(m.g);
    }
}

/* Two losses of one node, the second by way of the rows' losses. */
static void a_gradient_passes_through_the_losses_of_rows_as_well(void **state)
{
    (void)state;
    const real x[] = {1, 2, 0, 3, 1, -1};
    const int64_t target[] = {0, 2};
    const real dloss[] = {1, 1};
    problem sum = {.R = 2, .V = 3, .x = x, .target = target, .a = usual, .dsum = 2};
    problem both = {.R = 2, .V = 3, .x = x, .target = target, .a = usual, .dsum = 1, .dloss = dloss};
    expect(&sum);
    expect(&both);
    assert_same_bits(sum.dx, both.dx, sizeof(real) * 6);
    release(&sum);
    release(&both);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_gradients_and_statistics_are_those_of_the_definition),
        cmocka_unit_test(shifting_all_logits_by_ten_thousand_changes_no_bit),
        cmocka_unit_test(logits_of_ten_thousand_on_both_sides_give_their_difference),
        cmocka_unit_test(a_class_of_minus_infinity_is_as_good_as_none),
        cmocka_unit_test(infinite_and_undefined_losses_are_what_they_should_be),
        cmocka_unit_test(of_equal_logits_the_first_class_is_the_answer),
        cmocka_unit_test(targets_of_all_three_types_mean_the_same),
        cmocka_unit_test(the_first_target_that_is_no_class_is_named),
        cmocka_unit_test(many_classes_are_as_accurate_as_few),
        cmocka_unit_test(micro_batches_of_unequal_counts_add_up),
        cmocka_unit_test(a_gradient_passes_through_the_losses_of_rows_as_well),
    };
    return ttn_test_run(tests);
}
