/* Is it the right function? Gradients that agree with the function's differences say nothing about the function. Here the
 * forward pass of every good case of every op is computed a second time, in double and in plain loops. */
#include <math.h>
#include <string.h>
#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "autograd/ops/headnorm.h"
#include "core/blas.h"
#include "core/memory.h"
#include "tests/harness/test.h"

/* Of a value's scale: sums of up to 50 terms, and the functions' 2 ulp. */
static const double bound = sizeof(real) == 4 ? 1e-6 : 1e-13;

typedef struct {
    const ttn_op *op;
    const ttn_case *k;
    ttn_gradcheck_values v;
} computed;

/* Part `name` and how many elements it has. */
static const double *part(const computed *c, const char *name, int64_t *ret_n)
{
    for (int p = 0; p < c->v.n_part; p++)
        if (strcmp(c->v.part[p].name, name) == 0) {
            *ret_n = c->v.part[p].n;
            return c->v.value + c->v.part[p].first;
        }
    fail_msg("%s has no %s", c->op->name, name);
    return NULL;
}

static int64_t width_of(const ttn_desc *d)
{
    return d->ndim == 2 ? d->dim[1] : 1;
}

static void assert_near(const computed *c, const char *name, const double *wanted)
{
    int64_t n = 0;
    const double *got = part(c, name, &n);
    double scale = 1;
    for (int64_t e = 0; e < n; e++)
        scale = fabs(wanted[e]) > scale ? fabs(wanted[e]) : scale;
    for (int64_t e = 0; e < n; e++)
        if (!(fabs(got[e] - wanted[e]) <= bound * scale))
            fail_msg("%s case %d (%s): element %lld of %s is %.17g, expected %.17g", c->op->name,
                     (int)(c->k - c->op->cases), c->k->about, (long long)e, name, got[e], wanted[e]);
}

/* For each good case of the op: reference(case, out) fills out, which must be "out 0". */
static void compare(const ttn_op *op, void (*reference)(const computed *c, double *out))
{
    const ttn_gradcheck_options o = {.seed = ttn_test_seed()};
    int compared = 0;
    for (int k = 0; k < op->n_cases; k++) {
        if (op->cases[k].refused || op->cases[k].fails) continue;
        ttn_error err = {0};
        computed c = {.op = op, .k = &op->cases[k]};
        assert_ok(ttn_gradcheck_compute(op->name, k, &o, &c.v, &err), &err);
        int64_t n = 0;
        part(&c, "out 0", &n);
        double *out = ttn_alloc_array(n + 1, sizeof *out);
        assert_non_null(out);
        reference(&c, out);
        assert_near(&c, "out 0", out);
        ttn_free(out);
        ttn_free(c.v.value);
        compared++;
    }
    assert_true(compared > 0);
}

static void add_reference(const computed *c, double *out)
{
    int64_t n = 0;
    const double *a = part(c, "in 0", &n);
    const double *b = part(c, "in 1", &n);
    for (int64_t e = 0; e < n; e++)
        out[e] = a[e] + b[e];
}

static void add_adds(void **state)
{
    (void)state;
    compare(&ttn_op_add, add_reference);
}

static void relu_reference(const computed *c, double *out)
{
    int64_t n = 0;
    const double *x = part(c, "in 0", &n);
    for (int64_t e = 0; e < n; e++)
        out[e] = fmax(x[e], 0);
}

static void relu_is_x_where_that_is_positive(void **state)
{
    (void)state;
    compare(&ttn_op_relu, relu_reference);
}

static void headnorm_reference(const computed *c, double *out)
{
    const ttn_headnorm_attributes *a = c->k->attr;
    int64_t n = 0;
    int64_t n_gain = 0;
    const double *x = part(c, "in 0", &n);
    const double *g = part(c, "in 1", &n_gain);
    const int64_t D = width_of(&c->k->in[0]) / a->heads;
    for (int64_t head = 0; head < n / D; head++) { /* of all rows */
        double square = a->eps;
        for (int64_t i = head * D; i < (head + 1) * D; i++)
            square += x[i] * x[i] / (double)D;
        for (int64_t i = head * D; i < (head + 1) * D; i++)
            out[i] = g[head % a->heads] * x[i] / sqrt(square);
    }
}

static void headnorm_makes_the_root_mean_square_of_a_head_its_gain(void **state)
{
    (void)state;
    compare(&ttn_op_headnorm, headnorm_reference);
}

static void rmsnorm_reference(const computed *c, double *out)
{
    int64_t n = 0;
    int64_t n_gain = 0;
    const double *x = part(c, "in 0", &n);
    const double *g = part(c, "in 1", &n_gain);
    const int64_t C = width_of(&c->k->in[0]);
    for (int64_t t = 0; t < n / C; t++) {
        double square = *(const double *)c->k->attr;
        for (int64_t i = 0; i < C; i++)
            square += x[t * C + i] * x[t * C + i] / (double)C;
        for (int64_t i = 0; i < C; i++)
            out[t * C + i] = (n_gain > 0 ? g[i] : 1) * x[t * C + i] / sqrt(square);
    }
}

static void rmsnorm_makes_the_mean_square_of_a_row_1(void **state)
{
    (void)state;
    compare(&ttn_op_rmsnorm, rmsnorm_reference);
}

static void scale_reference(const computed *c, double *out)
{
    int64_t n = 0;
    const double *x = part(c, "in 0", &n);
    for (int64_t e = 0; e < n; e++)
        out[e] = *(const double *)c->k->attr * x[e];
}

static void scale_multiplies(void **state)
{
    (void)state;
    compare(&ttn_op_scale, scale_reference);
}

static void gelu_reference(const computed *c, double *out)
{
    int64_t n = 0;
    const double *x = part(c, "in 0", &n);
    for (int64_t e = 0; e < n; e++) {
        const double u = sqrt(2 / acos(-1)) * (x[e] + 0.044715 * x[e] * x[e] * x[e]);
        const double phi = *(const ttn_activation *)c->k->attr == TTN_ACT_GELU_ERF ? erf(x[e] / sqrt(2)) : tanh(u);
        out[e] = x[e] / 2 * (1 + phi);
    }
}

static void gelu_is_x_times_phi_of_x_in_both_forms(void **state)
{
    (void)state;
    compare(&ttn_op_gelu, gelu_reference);
}

static void layernorm_reference(const computed *c, double *out)
{
    int64_t n = 0;
    int64_t n_gain = 0;
    int64_t n_bias = 0;
    const double *x = part(c, "in 0", &n);
    const double *g = part(c, "in 1", &n_gain);
    const double *b = part(c, "in 2", &n_bias);
    const int64_t C = width_of(&c->k->in[0]);
    const double eps = *(const double *)c->k->attr;
    assert_int_equal(n_gain, C);
    for (int64_t t = 0; t < n / C; t++) {
        long double mean = 0;
        long double variance = 0;
        for (int64_t i = 0; i < C; i++)
            mean += (long double)x[t * C + i] / C;
        for (int64_t i = 0; i < C; i++)
            variance += ((long double)x[t * C + i] - mean) * ((long double)x[t * C + i] - mean) / C;
        for (int64_t i = 0; i < C; i++)
            out[t * C + i] = (double)(g[i] * ((long double)x[t * C + i] - mean) / sqrtl(variance + (long double)eps)) +
                             (n_bias > 0 ? b[i] : 0);
    }
}

static void layernorm_normalises_rows_also_those_with_a_mean_of_1000(void **state)
{
    (void)state;
    compare(&ttn_op_layernorm, layernorm_reference);
}

static void linear_reference(const computed *c, double *out)
{
    int64_t n = 0;
    int64_t n_weight = 0;
    int64_t n_bias = 0;
    const double *x = part(c, "in 0", &n);
    const double *w = part(c, "in 1", &n_weight);
    const double *b = part(c, "in 2", &n_bias);
    const int64_t I = c->k->in[1].dim[1];
    const int64_t O = c->k->in[1].dim[0];
    for (int64_t t = 0; t < n / I; t++)
        for (int64_t o = 0; o < O; o++) {
            out[t * O + o] = n_bias > 0 ? b[o] : 0;
            for (int64_t i = 0; i < I; i++)
                out[t * O + o] += x[t * I + i] * w[o * I + i];
        }
}

static void linear_is_the_product_with_the_transposed_weight(void **state)
{
    (void)state;
    compare(&ttn_op_linear, linear_reference);
}

static int counts(const ttn_case *k, int64_t row)
{
    if (k->in[0].axis != TTN_ROWS || k->used.seqs == 0) return 1;
    for (int64_t s = 0; s < k->used.seqs; s++)
        if (row >= k->span[s].first && row < k->span[s].first + k->span[s].n) return 1;
    return 0;
}

static void mse_reference(const computed *c, double *out)
{
    int64_t n = 0;
    const double *x = part(c, "in 0", &n);
    const double *target = part(c, "in 1", &n);
    const int64_t C = width_of(&c->k->in[0]);
    double stat[2] = {0, 0};
    for (int64_t e = 0; e < n; e++) {
        if (!counts(c->k, e / C)) continue;
        stat[0] += (x[e] - target[e]) * (x[e] - target[e]);
        stat[1]++;
    }
    out[0] = stat[0];
    assert_near(c, "stat 0", stat);
    int64_t n_stat = 0;
    assert_true(part(c, "stat 0", &n_stat)[1] == stat[1]);
    assert_int_equal(n_stat, 2);
}

static void mse_sums_over_the_rows_of_sequences_and_counts_their_elements(void **state)
{
    (void)state;
    compare(&ttn_op_mse, mse_reference);
}

static void select_reference(const computed *c, double *out)
{
    int64_t n_x = 0;
    int64_t n = 0;
    const double *x = part(c, "in 0", &n_x);
    const double *index = part(c, "in 1", &n);
    const int64_t C = width_of(&c->k->in[0]);
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < C; i++)
            out[r * C + i] = index[r] < 0 ? 0 : x[(int64_t)index[r] * C + i];
}

static void select_takes_rows_and_gives_zeros_for_minus_one(void **state)
{
    (void)state;
    compare(&ttn_op_select, select_reference);
}

static void silu_reference(const computed *c, double *out)
{
    int64_t n = 0;
    const double *x = part(c, "in 0", &n);
    for (int64_t e = 0; e < n; e++)
        out[e] = x[e] / (1 + exp(-x[e]));
}

static void silu_is_x_times_the_logistic_function(void **state)
{
    (void)state;
    compare(&ttn_op_silu, silu_reference);
}

/* ---- what is left of them: costs, far inputs ---- */

static void linear_costs_two_flops_a_product_and_twice_that_backward(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_sig s = {.cap = {.rows = 480}, .n_in = 3};
    s.in[0] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, 480, 5, 0);
    s.in[1] = ttn_desc_of(TTN_REAL, TTN_FIXED, 2, 7, 5, 0);
    s.in[2] = (ttn_desc){.ndim = -1};
    assert_ok(ttn_op_linear.shape(&s, &err), &err);
    const ttn_cost forward = ttn_op_linear.cost(&s, TTN_FORWARD, 0);
    const ttn_cost backward = ttn_op_linear.cost(&s, TTN_BACKWARD, 0);
    assert_true(forward.done == 2.0 * 480 * 5 * 7 && forward.useful == forward.done);
    assert_true(backward.done == 2 * forward.done && backward.useful == backward.done);
    assert_true(forward.bytes == (480.0 * 5 + 5 * 7 + 480 * 7) * (double)sizeof(real));
}

/* Kernels directly: what no case's range reaches. */
static void gelu_and_its_gradient_are_finite_up_to_the_largest_numbers(void **state)
{
    (void)state;
    static const ttn_activation forms[] = {TTN_ACT_GELU_ERF, TTN_ACT_GELU_TANH};
    const real most = sizeof(real) == 4 ? (real)FLT_MAX : (real)DBL_MAX;
    const real x[] = {most, -most, (real)1e13, (real)-1e13, 60, -60, 11, -11, 0};
    enum { N = sizeof x / sizeof *x };
    for (int f = 0; f < 2; f++) {
        ttn_error err = {0};
        ttn_sig s = {.attr = &forms[f], .n_in = 1, .in = {ttn_desc_of(TTN_REAL, TTN_FIXED, 1, N, 0, 0)}};
        assert_ok(ttn_op_gelu.shape(&s, &err), &err);
        const ttn_feed feed = {0};
        const ttn_stream on = {.n_thread = 1};
        real y[N];
        real dy[N];
        real dx[N];
        for (int e = 0; e < N; e++)
            dy[e] = 1;
        ttn_call c = {.sig = &s, .feed = &feed, .on = &on, .in = {x}, .out = {y}, .dout = {dy}, .din = {dx}};
        assert_ok(ttn_op_gelu.cpu.forward(&c, &err), &err);
        assert_ok(ttn_op_gelu.cpu.backward(&c, &err), &err);
        for (int e = 0; e < N; e++) {
            assert_true(fabs((double)y[e] - (x[e] > 0 ? (double)x[e] : 0)) <= 1e-20);
            assert_true(fabs((double)dx[e] - (x[e] > 0 ? 1 : x[e] < 0 ? 0 : 0.5)) <= 1e-7);
        }
    }
}

enum { MOST_POINTS = 4096 };

/* y and dy/dx of an op of one input at n points. NOLINTNEXTLINE(readability-non-const-parameter): the kernels write them */
static void run_at(const ttn_op *op, int64_t n, const real *x, real *y, real *dx)
{
    ttn_error err = {0};
    ttn_sig s = {.n_in = 1, .in = {ttn_desc_of(TTN_REAL, TTN_FIXED, 1, n, 0, 0)}};
    assert_ok(op->shape(&s, &err), &err);
    const ttn_feed feed = {0};
    const ttn_stream on = {.n_thread = 1};
    static real one[MOST_POINTS];
    for (int64_t e = 0; e < n; e++)
        one[e] = 1;
    ttn_call c = {.sig = &s, .feed = &feed, .on = &on, .in = {x}, .out = {y}, .dout = {one}, .din = {dx}};
    assert_ok(op->cpu.forward(&c, &err), &err);
    assert_ok(op->cpu.backward(&c, &err), &err);
}

/* Against long double, relative to the value itself (the derivative: to its two terms, which cancel at -1.28): both tails
 * keep their digits, down to where e^x leaves the range. */
static void silu_and_its_gradient_keep_their_digits_in_both_tails(void **state)
{
    (void)state;
    const double far = sizeof(real) == 4 ? 86 : 700;
    real x[MOST_POINTS];
    real y[MOST_POINTS];
    real dx[MOST_POINTS];
    for (int e = 0; e < MOST_POINTS; e++)
        x[e] = (real)(far * (2 * (e + 0.5) / MOST_POINTS - 1));
    run_at(&ttn_op_silu, MOST_POINTS, x, y, dx);
    double worst_y = 0;
    double worst_dx = 0;
    for (int e = 0; e < MOST_POINTS; e++) {
        const long double at = (long double)x[e];
        const long double s = 1 / (1 + expl(-at));
        const long double rest = 1 / (1 + expl(at));
        worst_y = fmax(worst_y, (double)fabsl(((long double)y[e] - at * s) / (at * s)));
        worst_dx =
            fmax(worst_dx, (double)(fabsl((long double)dx[e] - s * (1 + at * rest)) / (s * (1 + fabsl(at) * rest))));
    }
    assert_at_most(worst_y, 3 * (double)TTN_REAL_EPS, "relative error of silu");
    assert_at_most(worst_dx, 4 * (double)TTN_REAL_EPS, "relative error of silu's gradient");
}

static void silu_and_relu_are_finite_up_to_the_largest_numbers_and_pass_on_a_nan(void **state)
{
    (void)state;
    static const ttn_op *const ops[] = {&ttn_op_silu, &ttn_op_relu};
    const real most = sizeof(real) == 4 ? (real)FLT_MAX : (real)DBL_MAX;
    const real x[] = {most, -most, (real)1e13, (real)-1e13, 800, -800, (real)NAN};
    enum { N = sizeof x / sizeof *x };
    for (int o = 0; o < 2; o++) {
        real y[N];
        real dx[N];
        run_at(ops[o], N, x, y, dx);
        for (int e = 0; e < N - 1; e++) {
            assert_true(fabs((double)y[e] - (x[e] > 0 ? (double)x[e] : 0)) <= 1e-20);
            assert_true(fabs((double)dx[e] - (x[e] > 0 ? 1 : 0)) <= 1e-20);
        }
        assert_true(isnan(y[N - 1]));
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_adds),
        cmocka_unit_test(scale_multiplies),
        cmocka_unit_test(gelu_is_x_times_phi_of_x_in_both_forms),
        cmocka_unit_test(layernorm_normalises_rows_also_those_with_a_mean_of_1000),
        cmocka_unit_test(linear_is_the_product_with_the_transposed_weight),
        cmocka_unit_test(mse_sums_over_the_rows_of_sequences_and_counts_their_elements),
        cmocka_unit_test(relu_is_x_where_that_is_positive),
        cmocka_unit_test(headnorm_makes_the_root_mean_square_of_a_head_its_gain),
        cmocka_unit_test(rmsnorm_makes_the_mean_square_of_a_row_1),
        cmocka_unit_test(silu_is_x_times_the_logistic_function),
        cmocka_unit_test(silu_and_its_gradient_keep_their_digits_in_both_tails),
        cmocka_unit_test(silu_and_relu_are_finite_up_to_the_largest_numbers_and_pass_on_a_nan),
        cmocka_unit_test(select_takes_rows_and_gives_zeros_for_minus_one),
        cmocka_unit_test(linear_costs_two_flops_a_product_and_twice_that_backward),
        cmocka_unit_test(gelu_and_its_gradient_are_finite_up_to_the_largest_numbers),
    };
    return ttn_test_run(tests);
}
