/* Random projections: directions that are orthogonal and uniform, lengths, and that they depend on their key alone. Drawn in
 * double in both builds, so this runs once.
 *
 * What is unbiased is seen along (1, …, 1), where the published draws (Q of a QR decomposition as it comes) are not: with
 * |z| = 2 their mean of exp(w.z - |z|^2 / 2), which is 1, is 0.65 at D = 8, 0.72 at 16 and 0.86 at 64. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/ops/favor_draw.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/test.h"

static double *drawn(uint64_t key, int64_t head, int64_t m, int64_t D, ttn_attn_favor_options o)
{
    double *W = ttn_alloc_array(m * D, sizeof *W);
    assert_non_null(W);
    ttn_error err = {0};
    assert_ok(ttn_favor_draw(key, head, m, D, &o, W, &err), &err);
    return W;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void the_default_number_of_features_is_d_log_d_in_steps_of_16(void **state)
{
    (void)state;
    static const int64_t known[][2] = {{1, 16}, {2, 16}, {8, 32}, {16, 48}, {24, 80}, {64, 272}, {128, 624}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        assert_int_equal(ttn_favor_default_features(known[k][0]), known[k][1]);
}

static void rows_of_a_block_are_orthogonal_and_blocks_are_not(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 3}, {2, 5}, {8, 20}, {24, 48}, {64, 100}}; /* D, m */
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int64_t D = sizes[k][0];
        const int64_t m = sizes[k][1];
        double *W = drawn(ttn_test_seed(), 3, m, D, (ttn_attn_favor_options){0});
        double across = 0;
        for (int64_t a = 0; a < m; a++)
            for (int64_t b = 0; b < a; b++) {
                const double *x = W + a * D;
                const double *y = W + b * D;
                const double cosine = fabs(dot(x, y, D)) / sqrt(dot(x, x, D) * dot(y, y, D));
                if (a / D == b / D)
                    assert_at_most(cosine, 1e-14, "cosine of two rows of a block");
                else
                    across = fmax(across, cosine);
            }
        assert_true(across > 0.1);
        ttn_free(W);
    }
}

static void lengths_are_those_of_gaussian_vectors_or_all_the_same(void **state)
{
    (void)state;
    enum { D = 16, M = 8000 };
    for (int independent = 0; independent < 2; independent++) {
        double *chi = drawn(1, 0, M, D, (ttn_attn_favor_options){.independent = independent});
        double *sqrtd =
            drawn(1, 0, M, D, (ttn_attn_favor_options){.independent = independent, .lengths = TTN_FAVOR_SQRTD});
        double sum = 0;
        double squares = 0;
        for (int64_t row = 0; row < M; row++) {
            const double norm = dot(chi + row * D, chi + row * D, D);
            sum += norm;
            squares += norm * norm;
            assert_at_most(fabs(dot(sqrtd + row * D, sqrtd + row * D, D) / D - 1), 1e-14, "|w|^2 / D");
            if (independent) continue; /* one direction, two lengths */
            const double cosine = dot(chi + row * D, sqrtd + row * D, D) / sqrt(norm * D);
            assert_at_most(fabs(cosine - 1), 1e-14, "the same direction");
        }
        /* chi^2 of 16: mean 16, variance 32; standard errors of 8,000 rows are 0.063 and 0.7 */
        assert_at_most(fabs(sum / M - D), 0.19, "mean of |w|^2");
        assert_at_most(fabs(squares / M - (sum / M) * (sum / M) - 2 * D), 2.1, "variance of |w|^2");
        ttn_free(chi);
        ttn_free(sqrtd);
    }
}

static void a_draw_depends_on_its_key_and_head_alone(void **state)
{
    (void)state;
    enum { D = 6, M = 15 };
    const size_t bytes = M * D * sizeof(double);
    double *a = drawn(7, 2, M, D, (ttn_attn_favor_options){0});
    double *again = drawn(7, 2, M, D, (ttn_attn_favor_options){0});
    double *longer = drawn(7, 2, 2 * M, D, (ttn_attn_favor_options){0});
    double *head = drawn(7, 3, M, D, (ttn_attn_favor_options){0});
    double *key = drawn(8, 2, M, D, (ttn_attn_favor_options){0});
    assert_same_bits(a, again, bytes);
    assert_same_bits(a, longer, bytes);
    for (int i = 0; i < M * D; i++) {
        assert_true(a[i] != head[i]);
        assert_true(a[i] != key[i]);
    }
    ttn_free(a);
    ttn_free(again);
    ttn_free(longer);
    ttn_free(head);
    ttn_free(key);
}

/* Mean of exp(w.z - |z|^2 / 2) over m rows w, z along (1, …, 1) with |z| = length, negative: along -(1, …, 1). */
static double mean_estimate(int64_t D, int64_t m, double length, ttn_attn_favor_options o)
{
    double sum = 0;
    const int64_t each = 4096 / D * D; /* whole blocks */
    const int64_t draws = (m + each - 1) / each;
    for (int64_t k = 0; k < draws; k++) {
        double *W = drawn(ttn_test_seed(), k, each, D, o);
        for (int64_t row = 0; row < each; row++) {
            double u = 0;
            for (int64_t i = 0; i < D; i++)
                u += W[row * D + i];
            sum += exp(u * length / sqrt((double)D) - length * length / 2);
        }
        ttn_free(W);
    }
    return sum / (double)(draws * each);
}

/* The variance of one term is e^4 - 1 = 53.6: with 64k independent rows 3 sigma are 0.086, and orthogonal ones vary less. The
 * raw Q is off by 0.35, 0.28 and 0.14. */
static void estimates_along_the_diagonal_are_unbiased(void **state)
{
    (void)state;
    static const int64_t widths[] = {8, 16, 64};
    for (int w = 0; w < 3; w++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const int64_t m = ttn_test_long() ? 1 << 18 : ttn_scaled(1 << 16, 1 << 13);
            const double three_sigma = 3 * sqrt((exp(4) - 1) / (double)m);
            const double mean = mean_estimate(widths[w], m, 2 * sign, (ttn_attn_favor_options){0});
            assert_at_most(fabs(mean - 1), three_sigma, "bias along the diagonal");
        }
}

/* sum over k of z^k / ((b)_k k!) */
static double hypergeometric_0f1(double b, double z)
{
    double term = 1;
    double sum = 1;
    for (int k = 1; k < 400; k++) {
        term *= z / ((b + k - 1) * k);
        sum += term;
    }
    return sum;
}

/* With all lengths sqrt(D) the mean is 0F1(; D/2; D |z|^2 / 4) e^(-|z|^2 / 2), 0.945 at D = 64 and |z| = 2, and the second moment
 * 0F1(; D/2; D |z|^2) e^-|z|^2: 3 sigma of 2^18 rows are
 * 0.011 and 0.029. */
static void lengths_of_sqrtd_have_the_bias_of_the_closed_form(void **state)
{
    (void)state;
    static const int64_t widths[] = {8, 64};
    for (int w = 0; w < 2; w++) {
        const double D = (double)widths[w];
        const double wanted = hypergeometric_0f1(D / 2, D) * exp(-2);
        if (widths[w] == 64) assert_at_most(fabs(wanted - 0.945), 5e-4, "the closed form at 64");
        const int64_t m = ttn_scaled(1 << 18, 1 << 16);
        const double variance = hypergeometric_0f1(D / 2, 4 * D) * exp(-4) - wanted * wanted;
        const double mean =
            mean_estimate(widths[w], m, 2, (ttn_attn_favor_options){.independent = 1, .lengths = TTN_FAVOR_SQRTD});
        assert_at_most(fabs(mean - wanted), 3 * sqrt(variance / (double)m), "mean with lengths sqrt(D)");
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_number_of_features_is_d_log_d_in_steps_of_16),
        cmocka_unit_test(rows_of_a_block_are_orthogonal_and_blocks_are_not),
        cmocka_unit_test(lengths_are_those_of_gaussian_vectors_or_all_the_same),
        cmocka_unit_test(a_draw_depends_on_its_key_and_head_alone),
        cmocka_unit_test(estimates_along_the_diagonal_are_unbiased),
        cmocka_unit_test(lengths_of_sqrtd_have_the_bias_of_the_closed_form),
    };
    return ttn_test_run(tests);
}
