/* What is known of estimates by random features, as facts of the op: means and variances of one product of features, which
 * maps and which draws have the smaller error, and what the error that the op reports is worth. Heads serve as draws: all
 * heads get the same queries, keys and values, and each has a projection of its own. Samples are drawn from one seed,
 * whatever TTN_SEED is: another sample meets another bound. */
#include "autograd/ops/favor_draw.h"
#include "core/blas.h"
#include "tests/autograd/favor_run.h"

enum { SEED = 20180625 };

/* Projections of the op's heads. */
static void draw_heads(run *r, uint64_t key)
{
    double *W = piece(r->m * r->D, sizeof *W);
    ttn_error err = {0};
    for (int64_t h = 0; h < r->a.heads; h++) {
        assert_ok(ttn_favor_draw(key, h, r->m, r->D, &r->a, W, &err), &err);
        for (int64_t i = 0; i < r->m * r->D; i++)
            r->in[3][h * r->m * r->D + i] = (real)W[i];
    }
    ttn_free(W);
}

/* ---- one product of features ---- */

/* Mean and variance over heads of kappa phi(x).phi(y), x and y along one line: x = a e, y = b e, |e| = 1. One projection a head. */
static void moments(ttn_favor_kernel kernel, double a, double b, double *ret_mean, double *ret_variance, int64_t *ret_n)
{
    enum { D = 4, HEADS = 500 };
    static const ttn_span span = {0, 1};
    const int64_t draws = ttn_scaled(128, 8);
    double sum = 0;
    double squares = 0;
    run r;
    make(&r,
         (ttn_attn_favor_options){.heads = HEADS, .kernel = kernel, .renormalize = TTN_FAVOR_PLAIN, .independent = 1},
         D, 1, &span, 1);
    const double entry = 0.5 * pow(D, 0.25); /* of a vector along (1, 1, 1, 1), before the op's scale */
    for (int64_t i = 0; i < r.C; i++) {
        r.in[0][i] = (real)(a * entry);
        r.in[1][i] = (real)(b * entry);
        r.in[2][i] = 1;
    }
    for (int64_t k = 0; k < draws; k++) {
        draw_heads(&r, SEED + (uint64_t)k);
        forward(&r);
        for (int64_t h = 0; h < HEADS; h++) {
            const double product = (double)r.out[h * D];
            sum += product;
            squares += product * product;
        }
    }
    const double n = (double)(draws * HEADS);
    *ret_mean = sum / n;
    *ret_variance = squares / n - *ret_mean * *ret_mean;
    *ret_n = draws * HEADS;
    release(&r);
}

/* z = x + y, SM = exp(x.y):  positive e^|z|^2 SM^2 (1 - e^-|z|^2),  hyperbolic (1 - e^-|z|^2) / 2 times that,
 * trig e^|z|^2 SM^-2 (1 - e^-|x-y|^2)^2 / 2. So m products have a mean squared error of a part in m of it. */
static double closed_form(ttn_favor_kernel kernel, double a, double b)
{
    const double z = (a + b) * (a + b);
    const double SM = exp(a * b);
    const double positive = exp(z) * SM * SM * (1 - exp(-z));
    if (kernel == TTN_FAVOR_HYPERBOLIC) return positive * (1 - exp(-z)) / 2;
    if (kernel == TTN_FAVOR_TRIG) return exp(z) / (SM * SM) * pow(1 - exp(-(a - b) * (a - b)), 2) / 2;
    return positive;
}

/* 64,000 independent products (fewer under sanitizers). The relative standard error of their variance is sqrt(kurtosis - 1) / sqrt(n): 3.7 / sqrt(n)
 * where a product is a square of a normal number, as for cosh and cos near 0, and e^(2 |z|^2) / sqrt(n) for exp(w.z): 1.5 % and,
 * at |z| = 1, 3 %. The bound is 4 of them. */
static void products_of_features_have_the_mean_and_variance_of_the_closed_form(void **state)
{
    (void)state;
    static const ttn_favor_kernel kernels[] = {TTN_FAVOR_POSITIVE, TTN_FAVOR_HYPERBOLIC, TTN_FAVOR_TRIG};
    static const double places[][2] = {{0.5, 0.5}, {0.8, -0.2}, {0.9, -0.9}, {0.3, 0.1}};
    for (int k = 0; k < 3; k++)
        for (int p = 0; p < 4; p++) {
            const double a = places[p][0];
            const double b = places[p][1];
            double mean;
            double variance;
            int64_t n;
            moments(kernels[k], a, b, &mean, &variance, &n);
            const double wanted = closed_form(kernels[k], a, b);
            const double sigma = sqrt(wanted / (double)n);
            assert_at_most(fabs(mean - exp(a * b)), 3 * sigma + 1e-6, "mean of a product");
            const double z = fabs(a + b);
            /* positive at x + y = 0 is exact; rounding is left */
            const double slack = 4 * (4 + exp(2 * z * z)) / sqrt((double)n);
            assert_at_most(fabs(variance - wanted), slack * fmax(wanted, 1e-5), "variance of a product");
        }
}

/* ---- the error of outputs ---- */

/* Softmax attention of head 0, in double: (n, D). */
static double *exact_outputs(const run *r)
{
    const int64_t n = r->feed.span[0].n;
    const int64_t D = r->D;
    double *out = piece(n * D, sizeof *out);
    double *a = piece(n, sizeof *a);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t t = 0; t < n; t++) {
            a[t] = 0;
            for (int64_t d = 0; d < D; d++)
                a[t] += (double)r->in[0][i * r->C + d] * (double)r->in[1][t * r->C + d];
            a[t] = exp(a[t] / sqrt((double)D));
            sum += a[t];
        }
        for (int64_t t = 0; t < n; t++)
            for (int64_t d = 0; d < D; d++)
                out[i * D + d] += a[t] / sum * (double)r->in[2][t * r->C + d];
    }
    ttn_free(a);
    return out;
}

/* |out - exact|^2 over |exact|^2, all heads, rows first, first + step, … */
static double error_of(const run *r, const double *exact, int64_t first, int64_t step)
{
    double error = 0;
    double size = 0;
    for (int64_t i = first; i < r->feed.span[0].n; i += step)
        for (int64_t h = 0; h < r->a.heads; h++)
            for (int64_t d = 0; d < r->D; d++) {
                const double wanted = exact[i * r->D + d];
                error += pow((double)r->out[i * r->C + h * r->D + d] - wanted, 2);
                size += wanted * wanted;
            }
    return error / size;
}

/* The same rows in every head. */
static void spread(run *r)
{
    for (int i = 0; i < 3; i++)
        for (int64_t row = 0; row < r->used; row++)
            for (int64_t h = 1; h < r->a.heads; h++)
                memcpy(r->in[i] + row * r->C + h * r->D, r->in[i] + row * r->C, (size_t)r->D * sizeof(real));
}

/* Mean over 300 draws of 64 features, D 16, 48 rows; entries of q and k have standard deviation `size`, so that the mean |x|^2
 * is 4 size^2. sample: of rows and draws. */
static double error_over_draws(ttn_favor_kernel kernel, int independent, ttn_favor_lengths lengths, double size,
                               int64_t sample)
{
    const uint64_t seed = SEED + (uint64_t)sample;
    enum { D = 16, M = 64, DRAWS = 300, N = 48 };
    static const ttn_span span = {0, N};
    run r;
    make(&r, (ttn_attn_favor_options){.heads = DRAWS, .kernel = kernel, .independent = independent, .lengths = lengths},
         D, M / ttn_favor_sides(kernel), &span, 1);
    for (int i = 0; i < 3; i++)
        fill(r.in[i], r.used * r.C, i < 2 ? size : 1, seed, 500 + (uint64_t)i);
    spread(&r);
    draw_heads(&r, seed);
    forward(&r);
    double *exact = exact_outputs(&r);
    const double error = error_of(&r, exact, 0, 1);
    ttn_free(exact);
    release(&r);
    return error;
}

static double error_over_samples(ttn_favor_kernel kernel, int independent, int64_t samples)
{
    double sum = 0;
    for (int64_t k = 0; k < samples; k++)
        sum += error_over_draws(kernel, independent, TTN_FAVOR_CHI, 0.5, k);
    return sum / (double)samples;
}

/* Of one sample the ratio varies, with its rows (by 0.03, one standard deviation) and with its draws (by 0.04): over 180
 * samples, 30 sets of rows and 6 times 300 draws for each, it is 0.63 on average and from 0.52 to 0.79. (The error of independent
 * draws has a heavy tail.) Of 12 samples together it varies by 0.014, so that 0.7 is 5 of these above what is true. */
static void orthogonal_hyperbolic_features_have_less_error_than_independent_ones(void **state)
{
    (void)state;
    const int64_t samples = ttn_scaled(12, 4);
    const double orthogonal = error_over_samples(TTN_FAVOR_HYPERBOLIC, 0, samples);
    const double independent = error_over_samples(TTN_FAVOR_HYPERBOLIC, 1, samples);
    print_message("# %d samples: orthogonal over independent %.3f\n", (int)samples, orthogonal / independent);
    assert_at_most(orthogonal / independent, 0.7, "hyperbolic: orthogonal over independent");
}

/* One sample each. Over the 180 of above, on average and in the worst one: trig's orthogonal over independent 0.28 and 0.39;
 * hyperbolic over positive 0.73 and 0.83; sqrtd over chi 0.41 and 0.48 (positive), 0.21 and 0.23 (hyperbolic); hyperbolic over
 * positive with sqrtd 0.36 and 0.44; trig over positive 0.41 and 0.56. */
static void maps_and_draws_are_better_and_worse_as_they_should(void **state)
{
    (void)state;
    const ttn_favor_kernel positive = TTN_FAVOR_POSITIVE;
    const ttn_favor_kernel hyperbolic = TTN_FAVOR_HYPERBOLIC;
    const ttn_favor_kernel trig = TTN_FAVOR_TRIG;
    const double positive_chi = error_over_draws(positive, 0, TTN_FAVOR_CHI, 0.5, 0);
    const double positive_sqrtd = error_over_draws(positive, 0, TTN_FAVOR_SQRTD, 0.5, 0);
    const double hyperbolic_chi = error_over_draws(hyperbolic, 0, TTN_FAVOR_CHI, 0.5, 0);
    const double hyperbolic_sqrtd = error_over_draws(hyperbolic, 0, TTN_FAVOR_SQRTD, 0.5, 0);
    const double trig_chi = error_over_draws(trig, 0, TTN_FAVOR_CHI, 0.5, 0);
    const double trig_independent = error_over_draws(trig, 1, TTN_FAVOR_CHI, 0.5, 0);
    assert_at_most(trig_chi / trig_independent, 0.5, "trig: orthogonal over independent");
    assert_at_most(hyperbolic_chi / positive_chi, 1, "hyperbolic over positive");
    assert_at_most(positive_sqrtd / positive_chi, 1, "positive: sqrtd over chi");
    assert_at_most(hyperbolic_sqrtd / hyperbolic_chi, 1, "hyperbolic: sqrtd over chi");
    assert_at_most(hyperbolic_sqrtd / positive_sqrtd, 1, "sqrtd: hyperbolic over positive");
    assert_at_most(trig_chi / positive_chi, 1, "trig over positive at 0.5");
    assert_at_most(10 * error_over_draws(positive, 0, TTN_FAVOR_CHI, 1, 0) /
                       error_over_draws(trig, 0, TTN_FAVOR_CHI, 1, 0),
                   1, "ten times positive over trig at 1");
}

/* Squared errors, as shares of |out|^2. */
typedef struct {
    double is, reported, of_mean;
} errors;

/* Of the row that is sampled, in `draws` draws of m features; entries of q and k as for fill_all. sample: of rows and draws. */
static errors errors_of_sample(int64_t D, int64_t m, int draws, double norm, int64_t sample)
{
    static const ttn_span span = {0, TILE};
    run r;
    make(&r, (ttn_attn_favor_options){.heads = draws}, D, m, &span, 1);
    fill_all(&r, norm, SEED + (uint64_t)sample, 600);
    spread(&r);
    draw_heads(&r, SEED + (uint64_t)sample);
    forward(&r);
    double *exact = exact_outputs(&r);
    const errors e = {.is = error_of(&r, exact, TILE / 2, TILE),
                      .reported = r.stat[ERROR_HALVES] / r.stat[ERROR_SIZE],
                      .of_mean = r.stat[ERROR_UNIFORM] / r.stat[ERROR_SIZE]};
    ttn_free(exact);
    release(&r);
    return e;
}

/* The error that the op reports beside the true one: right within 10 % at |x|^2 up to 1, a lower bound beyond. Of one row in
 * 200 or 400 draws the quotient varies by 0.04, 0.03 and 0.07 (one standard deviation over 48 samples, rows and draws anew);
 * of all 48 together it is 1.00, 0.95 and 0.19. Of 8 samples together it varies by 0.015, 0.010 and 0.023: the bound of 10 % is
 * 5 of these from 0.95, and that of 0.15 is 6 from 0.19. (Of 4, as under sanitizers, by 0.022, 0.014 and 0.033.) */
static void the_reported_error_is_right_up_to_norms_of_one_and_a_lower_bound_beyond(void **state)
{
    (void)state;
    static const struct {
        int64_t D, m;
        int draws;
        double norm;
    } what[] = {{16, 64, 400, 0.25}, {64, 272, 200, 1}, {16, 64, 400, 4}};
    const int64_t samples = ttn_scaled(8, 4);
    for (int k = 0; k < 3; k++) {
        errors sum = {0};
        for (int64_t s = 0; s < samples; s++) {
            const errors e = errors_of_sample(what[k].D, what[k].m, what[k].draws, what[k].norm, s);
            sum.is += e.is;
            sum.reported += e.reported;
            sum.of_mean += e.of_mean;
        }
        const double reported = sum.reported / sum.is;
        print_message("# |x|^2 %.2f, %d samples: error %.4f, of the uniform mean %.4f; reported %.3f of it\n",
                      what[k].norm, (int)samples, sum.is / (double)samples, sum.of_mean / (double)samples, reported);
        if (what[k].norm <= 1)
            assert_at_most(fabs(reported - 1), 0.1, "reported over true error");
        else
            assert_at_most(fabs(reported - 0.19), 0.15, "reported over true error");
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(MOST_THREADS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_features_have_the_mean_and_variance_of_the_closed_form),
        cmocka_unit_test(orthogonal_hyperbolic_features_have_less_error_than_independent_ones),
        cmocka_unit_test(maps_and_draws_are_better_and_worse_as_they_should),
        cmocka_unit_test(the_reported_error_is_right_up_to_norms_of_one_and_a_lower_bound_beyond),
    };
    return ttn_test_run(tests);
}
