/* Conversions between the types of real numbers: exact, under every mode of the thread, and what is lost is counted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/bits.h"
#include "core/fp.h"
#include "core/half.h"
#include "core/philox.h"
#include "tests/harness/test.h"
#include "train/files/convert.h"

static uint64_t random_bits(uint64_t i)
{
    uint32_t word[4];
    ttn_philox_at(ttn_test_seed(), 1, i, word);
    return (uint64_t)word[0] << 32 | word[1];
}

/* Bits of floats around every border, and any. */
static uint32_t single_bits(int64_t i)
{
    static const uint32_t edges[] = {0,          1,          2,          0x007fffff, 0x00800000,
                                     0x00800001, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000,
                                     0x7fffffff, 0x3f800000, 0x33000000, 0x33800000};
    const int64_t n_edge = sizeof edges / sizeof *edges;
    if (i < 2 * n_edge) return edges[i / 2] | (i % 2 ? 0x80000000 : 0);
    return (uint32_t)random_bits((uint64_t)i);
}

/* Doubles near floats, at and around the middle of two, and of every size. */
static double wide_value(int64_t i)
{
    uint32_t single = single_bits(i / 5);
    uint64_t bits = ttn_f64_bits((double)ttn_f32_of_bits(single));
    static const uint64_t off[] = {0, 0x10000000, 0x0fffffff, 0x10000001, 1};
    if (i % 11 == 0) return ttn_f64_of_bits(random_bits((uint64_t)i));
    return ttn_f64_of_bits(bits + off[i % 5]);
}

static int same_single(float a, float b)
{
    return isnan(a) ? isnan(b) && signbit(a) == signbit(b) : ttn_f32_bits(a) == ttn_f32_bits(b);
}

static void float_and_double_convert_as_the_processor_does(void **state)
{
    (void)state;
    int64_t n = ttn_scaled(400000, 40000);
    for (int64_t i = 0; i < n; i++) {
        float x = ttn_f32_of_bits(single_bits(i));
        double wide = ttn_f32_to_f64(x);
        assert_true(isnan(x) ? isnan(wide) : ttn_f64_bits(wide) == ttn_f64_bits((double)x));
        double y = wide_value(i);
        if (!same_single((float)y, ttn_f64_to_f32(y))) fail_msg("%a becomes %a", y, (double)ttn_f64_to_f32(y));
    }
}

/* The bits are made before the mode is switched on, and compared after it is off. */
static void denormals_survive_flush_to_zero(void **state)
{
    (void)state;
    enum { N = 4000 };
    static float single[N], back[N];
    static double wide[N];
    for (int i = 0; i < N; i++)
        single[i] = ttn_f32_of_bits((uint32_t)random_bits((uint64_t)i) & 0x807fffff);
    ttn_converted sum = {0};
    uint64_t mode = ttn_fp_begin();
    ttn_convert(N, TTN_F32, single, TTN_F64, wide, &sum);
    ttn_convert(N, TTN_F64, wide, TTN_F32, back, &sum);
    ttn_fp_end(mode);
    assert_same_bits(single, back, sizeof single);
    assert_int_equal(sum.rounded + sum.overflowed + sum.nonfinite, 0);
    assert_int_equal(sum.n, 2 * N);
    for (int i = 0; i < N; i++)
        assert_true(wide[i] == (double)single[i]);
}

static void every_half_widens_and_comes_back(void **state)
{
    (void)state;
    enum { N = 1 << 16 };
    static uint16_t half[N], back[N];
    static float single[N];
    static double wide[N];
    static const ttn_dtype types[] = {TTN_F16, TTN_BF16};
    for (int i = 0; i < N; i++)
        half[i] = (uint16_t)i;
    for (int t = 0; t < 2; t++) {
        ttn_converted sum = {0};
        ttn_convert(N, types[t], half, TTN_F32, single, &sum);
        ttn_convert(N, types[t], half, TTN_F64, wide, &sum);
        int n_nonfinite = 0;
        for (int i = 0; i < N; i++) {
            double exact = types[t] == TTN_F16 ? ttn_f16_to_f64(half[i]) : ttn_bf16_to_f64(half[i]);
            n_nonfinite += !isfinite(exact);
            if (isnan(exact)) continue;
            assert_true((double)single[i] == exact && wide[i] == exact);
        }
        assert_int_equal(sum.nonfinite, 2 * n_nonfinite);
        assert_int_equal(sum.rounded + sum.overflowed, 0);
        ttn_convert(N, TTN_F32, single, types[t], back, &sum);
        for (int i = 0; i < N; i++)
            assert_true(back[i] == half[i] || !isfinite(wide[i]));
        assert_int_equal(sum.rounded + sum.overflowed, 0);
    }
}

static void what_is_lost_is_counted(void **state)
{
    (void)state;
    const double x[] = {1, 0.1, 1e39, -1e39, 1e-46, INFINITY, NAN, 0.5, -0.0, 3.4028235677973366e38};
    float y[10];
    ttn_converted sum = {0};
    ttn_convert(10, TTN_F64, x, TTN_F32, y, &sum);
    assert_int_equal(sum.overflowed, 3); /* the last is half a step above the largest float */
    assert_int_equal(sum.rounded, 2);    /* 0.1, and 1e-46, which becomes 0 */
    assert_int_equal(sum.nonfinite, 2);
    assert_int_equal(sum.first_nonfinite, 5);
    assert_true(signbit(y[8]) && y[8] == 0);
    const float single[] = {1, 65520, 65519, 0x1p-25f, 0x1p-24f};
    uint16_t half[5];
    sum = (ttn_converted){0};
    ttn_convert(5, TTN_F32, single, TTN_F16, half, &sum);
    assert_int_equal(sum.overflowed, 1);
    assert_int_equal(sum.rounded, 2);
}

/* The first one is counted over calls and over the blocks that numbers pass in. */
static void the_first_that_is_not_finite_is_found_anywhere(void **state)
{
    (void)state;
    enum { N = 2000 };
    static double x[N];
    for (int at = 0; at < N; at += 97) {
        ttn_converted sum = {0};
        x[at] = NAN;
        x[N - 1] = INFINITY;
        ttn_convert_check(100, TTN_F64, &(double[100]){0}, &sum);
        ttn_convert_check(N, TTN_F64, x, &sum);
        assert_int_equal(sum.first_nonfinite, 100 + at);
        assert_int_equal(sum.nonfinite, 2);
        x[at] = 0;
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_and_double_convert_as_the_processor_does),
        cmocka_unit_test(denormals_survive_flush_to_zero),
        cmocka_unit_test(every_half_widens_and_comes_back),
        cmocka_unit_test(what_is_lost_is_counted),
        cmocka_unit_test(the_first_that_is_not_finite_is_found_anywhere),
    };
    return ttn_test_run(tests);
}
