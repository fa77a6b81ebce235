/* Pooling: against plain loops, in any layout of spans, and the same bits wherever a sequence lies. */
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

/* As autograd/ops/pool.c has them. */
typedef enum { MEAN, FIRST } form;
typedef struct {
    form form;
    int64_t skip_first, skip_last;
} attributes;

/* ---- plain loops, for all cases of the op ---- */

static int is_kept(const attributes *a, ttn_span s, int64_t row)
{
    if (a->form == FIRST) return row == s.first;
    return row >= s.first + a->skip_first && row < s.first + s.n - a->skip_last;
}

static void check_case(int k)
{
    const ttn_case *c = &ttn_op_pool.cases[k];
    const attributes *a = c->attr;
    const ttn_gradcheck_options o = {.seed = ttn_test_seed()};
    ttn_gradcheck_values v;
    ttn_error err = {0};
    assert_ok(ttn_gradcheck_compute("pool", k, &o, &v, &err), &err);
    int64_t n = 0;
    int64_t n_out = 0;
    const double *x = part_of(&v, "in 0", &n);
    const double *dy = part_of(&v, "dout 0", &n_out);
    const int64_t C = c->in[0].dim[1];
    assert_int_equal(n_out, c->used.seqs * C);
    double *y = ttn_alloc_array(n_out + 1, sizeof *y);
    double *dx = ttn_alloc_array(n + 1, sizeof *dx);
    for (int64_t s = 0; s < c->used.seqs; s++) {
        int64_t rows = 0;
        for (int64_t t = 0; t < n / C; t++)
            rows += is_kept(a, c->span[s], t);
        for (int64_t i = 0; i < C; i++) {
            long double sum = 0;
            for (int64_t t = 0; t < n / C; t++) {
                if (!is_kept(a, c->span[s], t)) continue;
                sum += (long double)x[t * C + i];
                dx[t * C + i] = dy[s * C + i] / (double)rows;
            }
            y[s * C + i] = (double)(sum / (long double)rows);
        }
    }
    const double bound = (double)TTN_REAL_EPS;
    assert_part_near(&v, "out 0", y, bound, c->about);
    assert_part_near(&v, "din 0", dx, bound, c->about);
    ttn_free(y);
    ttn_free(dx);
    ttn_free(v.value);
}

static void means_and_first_rows_are_those_of_plain_loops(void **state)
{
    (void)state;
    int checked = 0;
    for (int k = 0; k < ttn_op_pool.n_cases; k++) {
        if (ttn_op_pool.cases[k].refused || ttn_op_pool.cases[k].fails) continue;
        check_case(k);
        checked++;
    }
    assert_true(checked >= 7);
}

/* ---- kernels directly ---- */

typedef struct {
    int64_t N, S, C;
    const ttn_span *span; /* (S) */
    const real *x;        /* (N, C) */
    const real *dy;       /* (S, C) */
    attributes a;
    int n_thread;
    real *y, *dx;
} problem;

static void compute(problem *p)
{
    ttn_error err = {0};
    ttn_sig s = {.attr = &p->a, .cap = {.rows = p->N, .seqs = p->S}, .n_in = 1};
    s.in[0] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, p->N, p->C, 0);
    assert_ok(ttn_op_pool.shape(&s, &err), &err);
    p->y = ttn_alloc_array(p->S * p->C + 1, sizeof *p->y);
    p->dx = ttn_alloc_array(p->N * p->C + 1, sizeof *p->dx);
    void *work = ttn_alloc(s.work[TTN_FORWARD] + 1);
    assert_true(p->y && p->dx && work);
    const ttn_feed feed = {.used = {.rows = p->N, .seqs = p->S}, .span = p->span};
    const ttn_stream on = {.n_thread = p->n_thread > 0 ? p->n_thread : 1};
    ttn_call c = {.sig = &s, .feed = &feed, .on = &on, .in = {p->x}, .out = {p->y}, .work = work};
    assert_ok(ttn_op_pool.cpu.forward(&c, &err), &err);
    c.in[0] = NULL;
    c.dout[0] = p->dy;
    c.din[0] = p->dx;
    assert_ok(ttn_op_pool.cpu.backward(&c, &err), &err);
    ttn_free(work);
}

static void release(problem *p)
{
    ttn_free(p->y);
    ttn_free(p->dx);
}

static real *numbers(uint64_t stream, int64_t n)
{
    real *x = ttn_alloc_array(n, sizeof *x);
    assert_non_null(x);
    ttn_rng_normal(ttn_test_seed() + stream, 0, n, x);
    return x;
}

static void the_mean_of_a_constant_is_the_constant(void **state)
{
    (void)state;
    enum { N = 2400, C = 5 };
    const ttn_span span[] = {{0, 1}, {5, 1100}, {1110, 3}, {1120, 1280}};
    static real x[N * C];
    static const real dy[4 * C];
    for (int e = 0; e < N * C; e++)
        x[e] = (real)(e % C) / 10;
    problem p = {.N = N, .S = 4, .C = C, .span = span, .x = x, .dy = dy};
    compute(&p);
    for (int s = 0; s < 4; s++)
        for (int i = 0; i < C; i++)
            assert_true(fabs((double)p.y[s * C + i] - (double)x[i]) <= 1e-13 * (sizeof(real) == 8));
    release(&p);
}

static void a_sequence_of_one_row_is_copied(void **state)
{
    (void)state;
    enum { N = 7, C = 19 };
    const ttn_span span[] = {{0, 1}, {1, 1}, {6, 1}};
    const int64_t row[] = {0, 1, 6};
    real *x = numbers(1, N * C);
    real *dy = numbers(2, 3 * C);
    for (int f = MEAN; f <= FIRST; f++) {
        problem p = {.N = N, .S = 3, .C = C, .span = span, .x = x, .dy = dy, .a = {.form = (form)f}};
        compute(&p);
        static const real zeros[C];
        for (int s = 0; s < 3; s++) {
            assert_same_bits(p.y + s * C, x + row[s] * C, sizeof(real) * C);
            assert_same_bits(p.dx + row[s] * C, dy + s * C, sizeof(real) * C);
        }
        for (int t = 2; t < 6; t++)
            assert_same_bits(p.dx + t * C, zeros, sizeof(real) * C);
        release(&p);
    }
    ttn_free(x);
    ttn_free(dy);
}

/* Alone, and in the middle of a batch: chunks are counted from the sequence's own first row. */
static void a_mean_has_the_same_bits_alone_and_among_others(void **state)
{
    (void)state;
    enum { N = 1300, C = 6, BEFORE = 601 };
    const ttn_span alone[] = {{0, N}};
    const ttn_span among[] = {{0, 7}, {20, 560}, {BEFORE, N}, {BEFORE + N, 13}};
    real *x = numbers(1, (BEFORE + N + 13) * C);
    real *dy = numbers(2, 4 * C);
    const attributes a = {.skip_first = 1, .skip_last = 2};
    problem p = {.N = N, .S = 1, .C = C, .span = alone, .x = x + BEFORE * C, .dy = dy + 2 * C, .a = a};
    problem q = {.N = BEFORE + N + 13, .S = 4, .C = C, .span = among, .x = x, .dy = dy, .a = a};
    compute(&p);
    compute(&q);
    assert_same_bits(p.y, q.y + 2 * C, sizeof(real) * C);
    assert_same_bits(p.dx, q.dx + BEFORE * C, sizeof(real) * N * C);
    release(&p);
    release(&q);
    ttn_free(x);
    ttn_free(dy);
}

/* The longest protein is titin. */
static void a_sequence_of_34350_rows_is_exact_with_any_number_of_threads(void **state)
{
    (void)state;
    enum { N = 34350, C = 3 };
    const ttn_span span[] = {{0, N}};
    real *x = numbers(1, N * C);
    real *dy = numbers(2, C);
    for (int64_t e = 0; e < N * C; e++)
        x[e] += 100;
    problem one = {.N = N, .S = 1, .C = C, .span = span, .x = x, .dy = dy};
    compute(&one);
    for (int i = 0; i < C; i++) {
        long double sum = 0;
        for (int64_t t = 0; t < N; t++)
            sum += (long double)x[t * C + i];
        const double mean = (double)(sum / N);
        assert_at_most(fabs((double)one.y[i] - mean) / mean, sizeof(real) == 4 ? 6e-8 : 2e-15, "mean");
    }
    for (int n_thread = 2; n_thread <= 5; n_thread++) {
        problem p = {.N = N, .S = 1, .C = C, .span = span, .x = x, .dy = dy, .n_thread = n_thread};
        compute(&p);
        assert_same_bits(p.y, one.y, sizeof(real) * C);
        assert_same_bits(p.dx, one.dx, sizeof(real) * N * C);
        release(&p);
    }
    release(&one);
    ttn_free(x);
    ttn_free(dy);
}

/* ---- through a plan ---- */

static void a_plan_pools_refuses_what_is_too_short_and_goes_on(void **state)
{
    (void)state;
    enum { C = 4, ROWS = 30 };
    ttn_error err = {0};
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 3});
    const int x = ttn_input(g, "x", ttn_rows(g, C));
    const int mean = ttn_pool_mean(g, "inner", x, 1, 1);
    const int first = ttn_pool_first(g, NULL, x);
    ttn_plan *p = NULL;
    const int keep[] = {mean, first};
    assert_ok(ttn_plan_create(g, &(ttn_plan_options){.keep = keep, .n_keep = 2}, &p, &err), &err);
    real *data = numbers(1, ROWS * C);
    assert_ok(ttn_plan_bind(p, "x", data, &err), &err);
    const ttn_span good[] = {{0, 9}, {12, 3}};
    const ttn_span bad[] = {{0, 9}, {12, 2}};
    for (int again = 0; again < 2; again++) {
        ttn_feed f = {.used = {.rows = ROWS, .seqs = 2}, .span = bad};
        assert_fails(ttn_plan_run(p, &f, NULL, &err), TTN_EINVAL, &err, "inner: pool: sequence 1 has 2 rows");
        f.span = good;
        assert_ok(ttn_plan_run(p, &f, NULL, &err), &err);
        real y[3 * C];
        assert_ok(ttn_plan_read(p, mean, y, &err), &err);
        assert_same_bits(y + C, data + 13 * C, sizeof(real) * C); /* of 12, 13, 14 only 13 is left */
        for (int i = 0; i < C; i++)
            assert_true(y[2 * C + i] == 0);
        assert_ok(ttn_plan_read(p, first, y, &err), &err);
        assert_same_bits(y, data, sizeof(real) * C);
        assert_same_bits(y + C, data + 12 * C, sizeof(real) * C);
    }
    ttn_free(data);
    ttn_plan_destroy(p);
    ttn_graph_destroy(g);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_and_first_rows_are_those_of_plain_loops),
        cmocka_unit_test(the_mean_of_a_constant_is_the_constant),
        cmocka_unit_test(a_sequence_of_one_row_is_copied),
        cmocka_unit_test(a_mean_has_the_same_bits_alone_and_among_others),
        cmocka_unit_test(a_sequence_of_34350_rows_is_exact_with_any_number_of_threads),
        cmocka_unit_test(a_plan_pools_refuses_what_is_too_short_and_goes_on),
    };
    return ttn_test_run(tests);
}
