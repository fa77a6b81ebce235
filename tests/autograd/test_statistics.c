/* Statistics of attention over the micro-batches of a step: folded as the op's table says, and told by its names. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/ops.h"
#include "autograd/renew.h"
#include "autograd/statistics.h"
#include "core/memory.h"
#include "tests/harness/test.h"

enum { C = 12, HEADS = 2, ROWS = 24, MOST = 64 };

typedef struct {
    ttn_graph *g;
    int favor, nystrom, loss;
    ttn_weights *w;
    ttn_plan *p;
} model;

static model record(void)
{
    model m = {.g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 2})};
    ttn_error err = {0};
    const int x = ttn_input(m.g, "x", ttn_rows(m.g, C));
    const int W = ttn_state(m.g, "projection", ttn_desc_of(TTN_REAL, TTN_FIXED, 3, HEADS, 16, C / HEADS));
    const int by = ttn_param(m.g, "weight", ttn_matrix(C, C), (ttn_init){TTN_INIT_NORMAL, 0.3}, 0);
    const int y = ttn_linear(m.g, "in", x, by, TTN_NONE);
    m.favor = ttn_attn_favor(m.g, "first", y, y, y, W, &(ttn_attn_favor_options){.heads = HEADS});
    const int between =
        ttn_attn_exact(m.g, "second", m.favor, m.favor, m.favor, &(ttn_attn_exact_options){.heads = HEADS});
    m.nystrom = ttn_attn_nystrom(m.g, "third", between, between, between, TTN_NONE,
                                 &(ttn_attn_nystrom_options){.heads = HEADS, .landmarks = 4});
    m.loss = ttn_mse(m.g, NULL, m.nystrom, ttn_input(m.g, "target", ttn_rows(m.g, C)));
    assert_ok(ttn_weights_create(m.g, NULL, &m.w, &err), &err);
    assert_ok(ttn_weights_init(m.w, 5, &err), &err);
    real projection[HEADS * 16 * C / HEADS];
    for (int i = 0; i < 16 * C; i++)
        projection[i] = (real)((i * 29 % 61) / 30.5 - 1);
    assert_ok(ttn_weights_write(m.w, ttn_weights_find(m.w, "projection"), TTN_SLAB_VALUE, projection, &err), &err);
    assert_ok(ttn_plan_create(m.g, &(ttn_plan_options){.loss = &m.loss, .n_loss = 1}, &m.p, &err), &err);
    assert_ok(ttn_plan_attach(m.p, m.w, &err), &err);
    return m;
}

static void drop(model *m)
{
    ttn_plan_destroy(m->p);
    ttn_weights_destroy(m->w);
    ttn_graph_destroy(m->g);
}

static void run(const model *m, int batch)
{
    static const ttn_span span[] = {{0, 11}, {12, 12}};
    real x[ROWS * C];
    for (int i = 0; i < ROWS * C; i++)
        x[i] = (real)(((i + 5 * batch) * 37 % 64) / 32.0 - 1) * (real)(1 + batch);
    ttn_error err = {0};
    assert_ok(ttn_plan_bind(m->p, "x", x, &err), &err);
    assert_ok(ttn_plan_bind(m->p, "target", x, &err), &err);
    assert_ok(ttn_plan_run(m->p, &(ttn_feed){.used = {.rows = ROWS, .seqs = 2}, .span = span, .seed = 1}, NULL, &err),
              &err);
}

typedef struct {
    int n;
    char name[MOST][64];
    double value[MOST];
} telling;

static void take(void *ctx, const ttn_told_statistic *told)
{
    telling *t = ctx;
    assert_true(t->n < MOST);
    snprintf(t->name[t->n], sizeof t->name[t->n], "%s/%d/%s", told->kind, told->layer, told->name);
    t->value[t->n++] = told->value;
}

static double told_as(const telling *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->name[i], name) == 0) return t->value[i];
    fail_msg("nothing is told as %s", name);
    return 0;
}

/* By names of the op's table, one head. */
static double stat_of(const ttn_op *op, const double *x, const char *name, int head)
{
    for (int i = 0; i < op->n_stats; i++)
        if (strcmp(op->stats[i].name, name) == 0) return op->stats[i].per_head ? x[i * HEADS + head] : x[i];
    fail_msg("%s has no statistic %s", op->name, name);
    return 0;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void sums_minima_and_maxima_are_those_of_all_micro_batches(void **state)
{
    (void)state;
    model m = record();
    ttn_statistics *s;
    ttn_error err = {0};
    assert_ok(ttn_statistics_create(m.g, &s, &err), &err);
    double favor[3][MOST], nystrom[3][MOST];
    ttn_statistics_start(s);
    for (int b = 0; b < 3; b++) {
        const int order[] = {1, 2, 0}; /* the largest is neither the first nor the last */
        int n;
        run(&m, order[b]);
        ttn_statistics_add(s, m.p);
        const double *x = ttn_plan_stat(m.p, m.favor, &n);
        memcpy(favor[b], x, (size_t)n * sizeof *x);
        x = ttn_plan_stat(m.p, m.nystrom, &n);
        memcpy(nystrom[b], x, (size_t)n * sizeof *x);
    }
    telling t = {0};
    ttn_statistics_tell(s, take, &t);
    double sum = 0, rows = 0, most = 0, least = HUGE_VAL, halves = 0, size = 0;
    const ttn_op *op = &ttn_op_attn_favor;
    for (int b = 0; b < 3; b++) {
        sum += stat_of(op, favor[b], "norm_sum", 0);
        rows += stat_of(op, favor[b], "norm_rows", 0);
        most = larger(most, stat_of(op, favor[b], "norm_most", 0));
        least = -larger(-least, -stat_of(op, favor[b], "denominator_least", 0));
        halves += stat_of(op, favor[b], "error_halves", 0);
        size += stat_of(op, favor[b], "error_size", 0);
    }
    assert_true(told_as(&t, "favor/0/norm_mean") == sum / rows && sum > 0);
    assert_true(told_as(&t, "favor/0/norm_most") == most);
    assert_true(told_as(&t, "favor/0/denominator_least") == least);
    assert_true(told_as(&t, "favor/0/error") == halves / size && halves > 0);
    double residual[HEADS] = {0};
    for (int b = 0; b < 3; b++)
        for (int h = 0; h < HEADS; h++)
            residual[h] = larger(residual[h], stat_of(&ttn_op_attn_nystrom, nystrom[b], "residual", h));
    assert_true(told_as(&t, "nystrom/2/residual") == larger(residual[0], residual[1]));
    for (int h = 0; h < HEADS; h++)
        assert_true(stat_of(&ttn_op_attn_nystrom, ttn_statistics_of(s, m.nystrom), "residual", h) == residual[h]);
    assert_int_equal(t.n, op->n_stats - 2 + ttn_op_attn_nystrom.n_stats); /* two of favor's are divisors */
    ttn_statistics_destroy(s);
    drop(&m);
}

static void a_step_forgets_the_one_before(void **state)
{
    (void)state;
    model m = record();
    ttn_statistics *s;
    ttn_error err = {0};
    assert_ok(ttn_statistics_create(m.g, &s, &err), &err);
    telling none = {0}, second = {0}, alone = {0};
    ttn_statistics_tell(s, take, &none);
    assert_int_equal(none.n, 0);
    assert_null(ttn_statistics_of(s, m.favor));
    run(&m, 2);
    ttn_statistics_add(s, m.p);
    ttn_statistics_start(s);
    ttn_statistics_tell(s, take, &none);
    assert_int_equal(none.n, 0);
    assert_null(ttn_statistics_of(s, m.favor));
    run(&m, 0);
    ttn_statistics_add(s, m.p);
    ttn_statistics_tell(s, take, &second);
    ttn_statistics_destroy(s);
    assert_ok(ttn_statistics_create(m.g, &s, &err), &err);
    ttn_statistics_add(s, m.p);
    ttn_statistics_tell(s, take, &alone);
    assert_true(second.n == alone.n && memcmp(second.value, alone.value, sizeof alone.value) == 0);
    ttn_statistics_destroy(s);
    drop(&m);
}

static void what_is_no_attention_or_has_no_statistics_says_nothing(void **state)
{
    (void)state;
    model m = record();
    ttn_statistics *s;
    ttn_error err = {0};
    assert_ok(ttn_statistics_create(m.g, &s, &err), &err);
    run(&m, 0);
    ttn_statistics_add(s, m.p);
    assert_null(ttn_statistics_of(s, m.loss));
    assert_null(ttn_statistics_of(s, TTN_NONE));
    telling t = {0};
    ttn_statistics_tell(s, take, &t);
    for (int i = 0; i < t.n; i++)
        assert_true(strncmp(t.name[i], "favor/0/", 8) == 0 || strncmp(t.name[i], "nystrom/2/", 10) == 0);
    ttn_statistics_destroy(s);
    drop(&m);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_minima_and_maxima_are_those_of_all_micro_batches),
        cmocka_unit_test(a_step_forgets_the_one_before),
        cmocka_unit_test(what_is_no_attention_or_has_no_statistics_says_nothing),
    };
    return ttn_test_run(tests);
}
