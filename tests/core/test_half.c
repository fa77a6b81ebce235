/* core/half.h against a search: the values of a type as doubles, in order, from the definition of its fields; the
 * nearest one is found by bisection and comparison with midpoints. All of that is exact in double. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/half.h"
#include "tests/core/flush.h"
#include "tests/harness/test.h"

enum { N_VALUE = 1 << 16, SIGN = 0x8000 };

typedef struct {
    const char *name;
    int n_exponent, n_fraction;
    void (*from_f32)(int64_t n, const float *x, uint16_t *y);
    void (*from_f64)(int64_t n, const double *x, uint16_t *y);
    void (*to_f32)(int64_t n, const uint16_t *x, float *y);
    void (*to_f64)(int64_t n, const uint16_t *x, double *y);
    uint16_t (*one_from_f32)(float x);
    uint16_t (*one_from_f64)(double x);
    float (*one_to_f32)(uint16_t x);
    double (*one_to_f64)(uint16_t x);
} format;

enum { N_FORMAT = 2 };

static const format formats[N_FORMAT] = {
    {"bf16", 8, 7, ttn_half_f32_to_bf16, ttn_half_f64_to_bf16, ttn_half_bf16_to_f32, ttn_half_bf16_to_f64,
     ttn_f32_to_bf16, ttn_f64_to_bf16, ttn_bf16_to_f32, ttn_bf16_to_f64},
    {"f16", 5, 10, ttn_half_f32_to_f16, ttn_half_f64_to_f16, ttn_half_f16_to_f32, ttn_half_f16_to_f64, ttn_f32_to_f16,
     ttn_f64_to_f16, ttn_f16_to_f32, ttn_f16_to_f64},
};

/* ---- the reference ---- */

static uint16_t infinity_of(const format *f)
{
    return (uint16_t)(((1 << f->n_exponent) - 1) << f->n_fraction);
}

/* What the fields say; for the pattern of infinity, the number that would follow the largest. */
static double value_of(const format *f, uint16_t bits)
{
    const int bias = (1 << (f->n_exponent - 1)) - 1;
    int exponent = (bits & ~SIGN) >> f->n_fraction, fraction = bits & ((1 << f->n_fraction) - 1);
    double size = exponent == 0 ? ldexp((double)fraction, 1 - bias - f->n_fraction)
                                : ldexp((double)(fraction + (1 << f->n_fraction)), exponent - bias - f->n_fraction);
    return bits & SIGN ? -size : size;
}

static int is_nan(const format *f, uint16_t bits)
{
    return (bits & ~SIGN) > infinity_of(f);
}

/* Of a number that is not NaN. */
static uint16_t nearest(const format *f, double x)
{
    double size = fabs(x);
    int below = 0, above = infinity_of(f); /* value(below) <= size < value(above), unless size is beyond it */
    uint16_t sign = signbit(x) ? SIGN : 0;
    if (size >= value_of(f, (uint16_t)above)) return (uint16_t)(sign | above);
    while (above - below > 1) {
        int middle = (below + above) / 2;
        if (value_of(f, (uint16_t)middle) <= size)
            below = middle;
        else
            above = middle;
    }
    double midpoint = (value_of(f, (uint16_t)below) + value_of(f, (uint16_t)above)) / 2;
    int up = size > midpoint || (size == midpoint && (below & 1));
    return (uint16_t)(sign | (up ? above : below));
}

/* ---- all 65,536 ---- */

static void all_values_widen_exactly_and_come_back(void **state)
{
    (void)state;
    static uint16_t bits[N_VALUE], from_f32[N_VALUE], from_f64[N_VALUE];
    static float f32[N_VALUE];
    static double f64[N_VALUE];
    for (int i = 0; i < N_VALUE; i++)
        bits[i] = (uint16_t)i;
    for (int k = 0; k < N_FORMAT; k++) {
        const format *f = &formats[k];
        const uint16_t quiet = (uint16_t)(1 << (f->n_fraction - 1));
        int n_nan = 0;
        f->to_f32(N_VALUE, bits, f32);
        f->to_f64(N_VALUE, bits, f64);
        f->from_f32(N_VALUE, f32, from_f32);
        f->from_f64(N_VALUE, f64, from_f64);
        for (int i = 0; i < N_VALUE; i++) {
            uint16_t back = bits[i];
            if (is_nan(f, bits[i])) {
                n_nan++;
                back |= quiet;
                /* sign, quiet bit and payload stand at the top of the wider fraction, zeros below */
                uint32_t fraction32 = (uint32_t)(back & ((1 << f->n_fraction) - 1)) << (23 - f->n_fraction);
                uint64_t fraction64 = (uint64_t)(back & ((1 << f->n_fraction) - 1)) << (52 - f->n_fraction);
                assert_true(ttn_f32_bits(f32[i]) == ((uint32_t)(back & SIGN) << 16 | 0x7f800000 | fraction32));
                assert_true(ttn_f64_bits(f64[i]) == ((uint64_t)(back & SIGN) << 48 | 0x7ff0000000000000 | fraction64));
            } else {
                double value = (bits[i] & ~SIGN) == infinity_of(f) ? copysign((double)INFINITY, bits[i] & SIGN ? -1 : 1)
                                                                   : value_of(f, bits[i]);
                assert_true(ttn_f64_bits(f64[i]) == ttn_f64_bits(value));
                assert_true(ttn_f32_bits(f32[i]) == ttn_f32_bits((float)value));
            }
            if (from_f32[i] != back || from_f64[i] != back)
                fail_msg("%s 0x%04x comes back as 0x%04x from f32, 0x%04x from f64", f->name, (unsigned)bits[i],
                         (unsigned)from_f32[i], (unsigned)from_f64[i]);
        }
        assert_int_equal(n_nan, 2 * ((1 << f->n_fraction) - 1));
    }
}

/* ---- rounding ---- */

static void check_f32(const format *f, float x)
{
    uint16_t y = f->one_from_f32(x), wanted = nearest(f, (double)x);
    if (y != wanted)
        fail_msg("%s of the float %a is 0x%04x, not 0x%04x", f->name, (double)x, (unsigned)y, (unsigned)wanted);
}

static void check_f64(const format *f, double x)
{
    uint16_t y = f->one_from_f64(x), wanted = nearest(f, x);
    if (y != wanted) fail_msg("%s of the double %a is 0x%04x, not 0x%04x", f->name, x, (unsigned)y, (unsigned)wanted);
}

/* Every number of the type and every midpoint, that to infinity included, with the floats and doubles next to them. */
static void rounding_is_to_nearest_even_around_all_midpoints(void **state)
{
    (void)state;
    for (int k = 0; k < N_FORMAT; k++) {
        const format *f = &formats[k];
        for (int i = 0; i < infinity_of(f); i++) {
            double value = value_of(f, (uint16_t)i), midpoint = (value + value_of(f, (uint16_t)(i + 1))) / 2;
            const double places[] = {value, midpoint};
            for (int p = 0; p < 2; p++)
                for (int sign = -1; sign <= 1; sign += 2) {
                    double x = sign * places[p];
                    assert_true((double)(float)x == x);
                    check_f32(f, (float)x);
                    check_f32(f, nextafterf((float)x, INFINITY));
                    check_f32(f, nextafterf((float)x, -INFINITY));
                    check_f64(f, x);
                    check_f64(f, nextafter(x, (double)INFINITY));
                    check_f64(f, nextafter(x, -(double)INFINITY));
                }
        }
    }
}

/* Relative distance 2^-40 from a midpoint: float rounds it to the midpoint, and a second rounding goes to even. */
static void doubles_are_rounded_once(void **state)
{
    (void)state;
    int n_trap = 0;
    for (int k = 0; k < N_FORMAT; k++) {
        const format *f = &formats[k];
        for (int i = 0; i < infinity_of(f); i++) {
            double midpoint = (value_of(f, (uint16_t)i) + value_of(f, (uint16_t)(i + 1))) / 2;
            for (int side = -1; side <= 1; side += 2) {
                double x = midpoint * (1 + side * 0x1p-40);
                check_f64(f, x);
                check_f64(f, -x);
                n_trap += f->one_from_f32((float)x) != nearest(f, x);
            }
        }
    }
    /* half of the midpoints have their even neighbour on the wrong side of one of the two */
    assert_in_range(n_trap, (0x7f80 + 0x7c00) * 9 / 10, (0x7f80 + 0x7c00) * 11 / 10);
}

static uint64_t random_word(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void random_numbers_go_to_the_nearest(void **state)
{
    (void)state;
    const int64_t n = ttn_scaled(1000000, 10000);
    uint64_t random = ttn_test_seed();
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = random_word(&random);
        float x = ttn_f32_of_bits((uint32_t)r);
        double wide = ttn_f64_of_bits(r);
        /* most doubles are far outside: every second one comes near both types' ranges, 2^-160 to 2^140 */
        if (i % 2) wide = ldexp(1 + (double)(r >> 12) * 0x1p-52, (int)(random_word(&random) % 300) - 160);
        for (int k = 0; k < N_FORMAT; k++) {
            if (!isnan(x)) check_f32(&formats[k], x);
            if (!isnan(wide)) check_f64(&formats[k], i % 4 < 2 ? wide : -wide);
        }
    }
}

static void nan_turns_quiet_and_keeps_sign_and_upper_payload(void **state)
{
    (void)state;
    for (int k = 0; k < N_FORMAT; k++) {
        const format *f = &formats[k];
        const unsigned quiet = 1u << (f->n_fraction - 1), nan = infinity_of(f) | quiet;
        for (unsigned sign = 0; sign <= 1; sign++) {
            const unsigned out = sign * SIGN | nan;
            for (int bit = 0; bit < 23; bit++) {
                float x = ttn_f32_of_bits((uint32_t)sign << 31 | 0x7f800000 | (uint32_t)1 << bit);
                int kept = bit - (23 - f->n_fraction);
                assert_int_equal(f->one_from_f32(x), kept < 0 ? out : (out | 1u << kept));
            }
            for (int bit = 0; bit < 52; bit++) {
                double x = ttn_f64_of_bits((uint64_t)sign << 63 | 0x7ff0000000000000 | (uint64_t)1 << bit);
                int kept = bit - (52 - f->n_fraction);
                assert_int_equal(f->one_from_f64(x), kept < 0 ? out : (out | 1u << kept));
            }
            assert_int_equal(f->one_from_f32(ttn_f32_of_bits((uint32_t)sign << 31 | 0x7fffffff)), sign * SIGN | 0x7fff);
            assert_int_equal(f->one_from_f64(ttn_f64_of_bits(sign ? UINT64_MAX : INT64_MAX)), sign * SIGN | 0x7fff);
        }
    }
}

static void numbers_everybody_knows(void **state)
{
    (void)state;
    assert_int_equal(ttn_f32_to_f16(1.0f), 0x3c00);
    assert_int_equal(ttn_f32_to_f16(-2.0f), 0xc000);
    assert_int_equal(ttn_f32_to_f16(65504.0f), 0x7bff);
    assert_int_equal(ttn_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(ttn_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(ttn_f32_to_f16(0x1p-14f), 0x0400);
    assert_int_equal(ttn_f32_to_f16(0x1p-24f), 0x0001);
    assert_int_equal(ttn_f32_to_f16(0x1p-25f), 0x0000);
    assert_int_equal(ttn_f32_to_f16(1.0f / 3), 0x3555);
    assert_int_equal(ttn_f32_to_bf16(1.0f), 0x3f80);
    assert_int_equal(ttn_f32_to_bf16(3.14159265f), 0x4049);
    assert_int_equal(ttn_f32_to_bf16(FLT_MAX), 0x7f80);
    assert_int_equal(ttn_f32_to_bf16(0x1p-133f), 0x0001);
    assert_int_equal(ttn_f64_to_bf16(-1e-300), 0x8000);
    assert_int_equal(ttn_f64_to_f16(1e300), 0x7c00);
    assert_true(ttn_f16_to_f32(0x3c01) == 1.0009765625f);
    assert_true(ttn_bf16_to_f64(0x0001) == 0x1p-133);
}

/* ---- arrays, modes ---- */

/* All conversions, of everything that is special and of random bits. */
typedef struct {
    int64_t n;
    const uint16_t *x16;
    const float *x32;
    const double *x64;
    uint16_t *from_f32[N_FORMAT], *from_f64[N_FORMAT];
    float *to_f32[N_FORMAT];
    double *to_f64[N_FORMAT];
} sheet;

static void fill_sheet(void *arg)
{
    sheet *s = arg;
    for (int k = 0; k < N_FORMAT; k++) {
        formats[k].from_f32(s->n, s->x32, s->from_f32[k]);
        formats[k].from_f64(s->n, s->x64, s->from_f64[k]);
        formats[k].to_f32(s->n, s->x16, s->to_f32[k]);
        formats[k].to_f64(s->n, s->x16, s->to_f64[k]);
    }
}

static void *room(int64_t n, size_t size)
{
    void *p = calloc((size_t)n, size);
    assert_non_null(p);
    return p;
}

static sheet new_sheet(int64_t n, const uint16_t *x16, const float *x32, const double *x64)
{
    sheet s = {.n = n, .x16 = x16, .x32 = x32, .x64 = x64};
    for (int k = 0; k < N_FORMAT; k++) {
        s.from_f32[k] = room(n, sizeof(uint16_t));
        s.from_f64[k] = room(n, sizeof(uint16_t));
        s.to_f32[k] = room(n, sizeof(float));
        s.to_f64[k] = room(n, sizeof(double));
    }
    return s;
}

static void free_sheet(sheet *s)
{
    for (int k = 0; k < N_FORMAT; k++) {
        free(s->from_f32[k]);
        free(s->from_f64[k]);
        free(s->to_f32[k]);
        free(s->to_f64[k]);
    }
}

static void assert_same_sheets(const sheet *a, const sheet *b)
{
    size_t n = (size_t)a->n;
    for (int k = 0; k < N_FORMAT; k++) {
        assert_same_bits(a->from_f32[k], b->from_f32[k], n * sizeof(uint16_t));
        assert_same_bits(a->from_f64[k], b->from_f64[k], n * sizeof(uint16_t));
        assert_same_bits(a->to_f32[k], b->to_f32[k], n * sizeof(float));
        assert_same_bits(a->to_f64[k], b->to_f64[k], n * sizeof(double));
    }
}

static void bits_are_the_same_where_denormals_are_flushed(void **state)
{
    (void)state;
    uint64_t random = ttn_test_seed();
    uint16_t *x16 = room(N_VALUE, sizeof *x16);
    float *x32 = room(N_VALUE, sizeof *x32);
    double *x64 = room(N_VALUE, sizeof *x64);
    for (int i = 0; i < N_VALUE; i++) {
        x16[i] = (uint16_t)i;
        x32[i] = ttn_f32_of_bits((uint32_t)i << 16 | (uint32_t)(random_word(&random) & 0xffff));
        /* of doubles, half are floats: bf16 has denormals where float has them */
        x64[i] = i % 2 ? (double)x32[i] : ttn_f64_of_bits((uint64_t)i << 48 | random_word(&random) >> 16);
    }
    sheet plain = new_sheet(N_VALUE, x16, x32, x64), flushed = new_sheet(N_VALUE, x16, x32, x64);
    fill_sheet(&plain);
    run_flushing(fill_sheet, &flushed);
    assert_same_sheets(&flushed, &plain);
    free_sheet(&plain);
    free_sheet(&flushed);
    free(x16);
    free(x32);
    free(x64);
}

static void arrays_are_converted_element_by_element_and_no_further(void **state)
{
    (void)state;
    enum { MOST = 70, ROOM = MOST + 8, OFFSETS = 9 };
    uint64_t random = ttn_test_seed();
    for (int n = 0; n <= MOST; n++)
        for (int offset = 0; offset < OFFSETS; offset++) {
            uint16_t x16[ROOM + OFFSETS];
            float x32[ROOM + OFFSETS];
            double x64[ROOM + OFFSETS];
            for (int i = 0; i < ROOM + OFFSETS; i++) {
                uint64_t r = random_word(&random);
                x16[i] = (uint16_t)r;
                /* every third one in the range of f16 and its denormals, the others anywhere */
                x32[i] =
                    r % 3 ? ttn_f32_of_bits((uint32_t)r) : ttn_f32_of_bits((0x32000000 + (uint32_t)r % 0x16000000));
                x64[i] = r % 3 ? ttn_f64_of_bits(r) : (double)x32[i];
            }
            sheet all = new_sheet(ROOM, x16 + offset, x32 + offset, x64 + offset);
            sheet one = new_sheet(ROOM, x16 + offset, x32 + offset, x64 + offset);
            all.n = n;
            fill_sheet(&all);
            all.n = ROOM;
            for (int i = 0; i < n; i++)
                for (int k = 0; k < N_FORMAT; k++) {
                    one.from_f32[k][i] = formats[k].one_from_f32(one.x32[i]);
                    one.from_f64[k][i] = formats[k].one_from_f64(one.x64[i]);
                    one.to_f32[k][i] = formats[k].one_to_f32(one.x16[i]);
                    one.to_f64[k][i] = formats[k].one_to_f64(one.x16[i]);
                }
            assert_same_sheets(&all, &one);
            free_sheet(&all);
            free_sheet(&one);
        }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_values_widen_exactly_and_come_back),
        cmocka_unit_test(rounding_is_to_nearest_even_around_all_midpoints),
        cmocka_unit_test(doubles_are_rounded_once),
        cmocka_unit_test(random_numbers_go_to_the_nearest),
        cmocka_unit_test(nan_turns_quiet_and_keeps_sign_and_upper_payload),
        cmocka_unit_test(numbers_everybody_knows),
        cmocka_unit_test(bits_are_the_same_where_denormals_are_flushed),
        cmocka_unit_test(arrays_are_converted_element_by_element_and_no_further),
    };
    return ttn_test_run(tests);
}
