/* The functions of core/vec.h against the C library's in a wider type: double for f32, long double for f64 (80 bits
 * on x86-64, 128 on aarch64). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/vec.h"
#include "core/vecmath.h"
#include "tests/core/flush.h"
#include "tests/harness/test.h"

#if defined(TTN_REAL64)
typedef long double wide;
typedef uint64_t word;
enum { DIGITS = DBL_MANT_DIG, LAST_EXPONENT = DBL_MAX_EXP };
static const real smallest = DBL_MIN;
static const real tanh_is_1 = 19.07, erf_is_1 = 5.93;
#define word_of ttn_f64_bits
#define real_of ttn_f64_of_bits
#define WIDE(f) f##l
#else
typedef double wide;
typedef uint32_t word;
enum { DIGITS = FLT_MANT_DIG, LAST_EXPONENT = FLT_MAX_EXP };
static const real smallest = FLT_MIN;
static const real tanh_is_1 = 9.02f, erf_is_1 = 3.92f;
#define word_of ttn_f32_bits
#define real_of ttn_f32_of_bits
#define WIDE(f) (f)
#endif

#if defined(__FMA__) || defined(__aarch64__)
static const int fused = 1; /* ttn_fma rounds once: the header's bounds are for that */
#else
static const int fused = 0;
#endif

static const word sign_bit = (word)1 << (8 * sizeof(word) - 1);

typedef struct {
    const char *name;
    void (*run)(int64_t n, const real *x, real *y);
    wide (*exact)(wide x);
    double bound; /* ulp */
    int odd;
    real lo, hi;     /* where most of what is interesting happens */
    uint64_t digest; /* of recorded results */
} function;

#if defined(TTN_REAL64)
#define PICK(f32, f64) f64
#else
#define PICK(f32, f64) f32
#endif

enum { EXP, LOG, TANH, ERF, N_FUNCTION, BATCH = 4096 };

static const function functions[N_FUNCTION] = {
    [EXP] = {"exp", ttn_vec_exp, WIDE(exp), TTN_EXP_ULP, 0, PICK(-90, -750), PICK(90, 720),
             PICK(0x2cc1c2812697806e, 0x76eab67d553b9f71)},
    [LOG] = {"log", ttn_vec_log, WIDE(log), TTN_LOG_ULP, 0, 0, 4, PICK(0x3289638f2792087f, 0xb1bbf346ec82c321)},
    [TANH] = {"tanh", ttn_vec_tanh, WIDE(tanh), TTN_TANH_ULP, 1, PICK(-10, -22), PICK(10, 22),
              PICK(0xcb87e327347e5d2d, 0x3d8de4482e9fb786)},
    [ERF] = {"erf", ttn_vec_erf, WIDE(erf), TTN_ERF_ULP, 1, PICK(-4, -7), PICK(4, 7),
             PICK(0x18d94911fc188ed0, 0x847142c1f6460e88)},
};

static real one_value(const function *f, real x)
{
    real y;
    f->run(1, &x, &y);
    return y;
}

/* ---- the error of one value ---- */

static real without_denormals(real x)
{
    return (x < 0 ? -x : x) < smallest ? real_of(word_of(x) & sign_bit) : x;
}

/* Is y, of which the exact value is `exact` and not an ordinary number, what the header promises? */
static int as_promised(const function *f, real x, real y, wide exact)
{
    if (isnan(exact)) return isnan(y) != 0;
    if (isinf(exact) || exact > 1) return isinf(y) && (y > 0) == (exact > 0);
    return word_of(y) == (f->odd ? word_of(x) & sign_bit : 0);
}

/* ilogb, and x 2^k, without a call: a sweep over all floats spends its time here. */
static int exponent_of(wide x)
{
#if defined(TTN_REAL64)
    return ilogb(x);
#else
    return (int)(ttn_f64_bits(x) >> 52 & 0x7ff) - 1023;
#endif
}

static double scaled(wide x, int k)
{
#if defined(TTN_REAL64)
    return (double)scalbn(x, k);
#else
    return x * ttn_f64_of_bits((uint64_t)(1023 + k) << 52);
#endif
}

/* |y - f(x)| in units of the last place of f(x); INFINITY when y is not the special value it should be. */
static double error_of(const function *f, real x, real y)
{
    x = without_denormals(x);
    wide exact = f->exact(x);
    wide size = exact < 0 ? -exact : exact;
    int exponent = exponent_of(exact);
    if (!(size >= smallest && exponent < LAST_EXPONENT)) return as_promised(f, x, y, exact) ? 0 : (double)INFINITY;
    if (!isfinite(y)) return (double)INFINITY;
    wide error = (wide)y - exact;
    return scaled(error < 0 ? -error : error, DIGITS - 1 - exponent);
}

/* ---- the worst of many ---- */

typedef struct {
    double error;
    real x;
    int64_t n;
} worst;

static void look_at(const function *f, int64_t n, const real *x, worst *w)
{
    real y[BATCH];
    for (int64_t first = 0; first < n; first += BATCH) {
        int64_t count = n - first < BATCH ? n - first : BATCH;
        f->run(count, x + first, y);
        for (int64_t i = 0; i < count; i++) {
            double error = error_of(f, x[first + i], y[i]);
            if (!(error <= w->error)) {
                w->error = error;
                w->x = x[first + i];
            }
        }
    }
    w->n += n;
}

static void judge(const function *f, const char *where, const worst *w)
{
    printf("# %s " TTN_REAL_NAME ", %s: %.4f ulp at x = %a, the worst of %" PRId64 " values\n", f->name, where,
           w->error, (double)w->x, w->n);
    assert_at_most(w->error, fused ? f->bound : 2, f->name);
}

/* splitmix64 */
static uint64_t random_word(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void errors_stay_within_the_bound_over_all_binades(void **state)
{
    (void)state;
    /* f32: every so-manieth float, about 30,000 in each binade; f64: as many, at random */
    const int64_t n = ttn_scaled((int64_t)1 << (sizeof(real) == 4 ? 23 : 20), 1 << 16);
    uint64_t random = ttn_test_seed();
    real *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    const word stride = (word)(((word)0 - (word)1) / (word)n);
    for (int64_t i = 0; i < n; i++)
        x[i] = real_of((word)i * stride + (word)(random_word(&random) % stride));
    for (int k = 0; k < N_FUNCTION; k++) {
        worst w = {0};
        look_at(&functions[k], n, x, &w);
        judge(&functions[k], "all binades", &w);
    }
    free(x);
}

/* Where f moves: uniform over [lo, hi], or at distances of all sizes from 0, of log from 1. */
static real draw(const function *f, uint64_t *random)
{
    uint64_t bits = random_word(random);
    double u = (double)(bits >> 11) * 0x1p-53;
    if (bits & 1) return (real)(f->lo + u * (f->hi - f->lo));
    double distance = bits & 2 ? exp2(12 * u - 8) : -exp2(12 * u - 8); /* 2^-8 to 2^4 */
    return (real)(f == &functions[LOG] ? 1 + distance / 32 : distance);
}

static void errors_stay_within_the_bound_where_the_function_moves(void **state)
{
    (void)state;
    const int64_t n = ttn_scaled(1 << 20, 1 << 16);
    uint64_t random = ttn_test_seed();
    real *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int k = 0; k < N_FUNCTION; k++) {
        worst w = {0};
        for (int64_t i = 0; i < n; i++)
            x[i] = draw(&functions[k], &random);
        look_at(&functions[k], n, x, &w);
        judge(&functions[k], "where it moves", &w);
    }
    free(x);
}

/* Places where an implementation changes pieces, and where results begin to be 0, 1 or inf. */
static int64_t special_places(real *place)
{
    static const double general[] = {0x1p-1022, 0x1p-126, 0x1p-1021, 0x1p-54,
                                     0x1p-28,   0x1p-27,  0x1p-25,   0x1p-12,
                                     0.1,       0.25,     1.0 / 3,   0.5,
                                     0.55,      0.625,    2.0 / 3,   0.7071067811865476,
                                     0.875,     1.0,      4.0 / 3,   1.4142135623730951,
                                     2.0,       3.92,     4.0,       5.93,
                                     6.0,       9.02,     10.0,      19.07,
                                     20.0,      0x1p+23,  0x1p+24,   0x1p+52,
                                     0x1p+53,   0x1p+127, 0x1p+1023, 1e30,
                                     1e300};
    int64_t n = 0;
    for (size_t i = 0; i < sizeof general / sizeof *general; i++)
        place[n++] = (real)general[i];
    /* exp: half-way between multiples of ln 2, those included where results become 0 and inf; log: 2/3 2^k */
    for (int k = -1100; k <= 1100; k++) {
        place[n++] = (real)(k * 0.34657359027997264);
        place[n++] = (real)(scalbn(2.0 / 3, k));
    }
    place[n++] = (real)TTN_FIT_EXP_LEAST_F;
    place[n++] = (real)TTN_FIT_EXP_MOST_F;
    place[n++] = (real)TTN_FIT_EXP_LEAST_D;
    place[n++] = (real)TTN_FIT_EXP_MOST_D;
    return n;
}

static void errors_stay_within_the_bound_around_special_places(void **state)
{
    (void)state;
    enum { PLACES = 5000, REACH = 40, AROUND = 2 * (2 * REACH + 1) };
    static real place[PLACES], x[PLACES * AROUND];
    int64_t n_place = special_places(place), n = 0;
    assert_true(n_place <= PLACES);
    for (int64_t i = 0; i < n_place; i++)
        for (int d = -REACH; d <= REACH; d++) {
            real near = real_of(word_of(place[i]) + (word)d);
            x[n++] = near;
            x[n++] = -near;
        }
    for (int k = 0; k < N_FUNCTION; k++) {
        worst w = {0};
        look_at(&functions[k], n, x, &w);
        judge(&functions[k], "special places", &w);
    }
}

#if !defined(TTN_REAL64)
static void all_floats_stay_within_the_bound(void **state)
{
    (void)state;
    if (!ttn_test_long()) skip_because("2^32 values of four functions: make test-long");
    for (int k = 0; k < N_FUNCTION; k++) {
        const function *f = &functions[k];
        worst all = {0};
        /* the negative half of an odd function is compared with the positive one, bit by bit */
        const int64_t n_batch = ((int64_t)1 << (f->odd ? 31 : 32)) / BATCH;
        int64_t n_not_odd = 0;
#pragma omp parallel reduction(+ : n_not_odd)
        {
            worst mine = {0};
#pragma omp for schedule(dynamic, 64)
            for (int64_t b = 0; b < n_batch; b++) {
                real x[BATCH], y[BATCH], minus[BATCH];
                for (int64_t i = 0; i < BATCH; i++)
                    x[i] = real_of((word)(b * BATCH + i));
                look_at(f, BATCH, x, &mine);
                if (!f->odd) continue;
                f->run(BATCH, x, y);
                for (int64_t i = 0; i < BATCH; i++)
                    x[i] = -x[i];
                f->run(BATCH, x, minus);
                for (int64_t i = 0; i < BATCH; i++)
                    n_not_odd += word_of(minus[i]) != (word_of(y[i]) ^ sign_bit);
            }
#pragma omp critical
            {
                all.n += mine.n;
                if (!(mine.error <= all.error)) {
                    all.error = mine.error;
                    all.x = mine.x;
                }
            }
        }
        judge(f, "all floats", &all);
        assert_int_equal(n_not_odd, 0);
    }
}
#endif

/* ---- special values ---- */

static void special_values_are_as_promised(void **state)
{
    (void)state;
    const real inf = (real)INFINITY, denormal = smallest / 4;
    const struct {
        real x, y[N_FUNCTION];
    } promised[] = {
        {0, {1, -inf, 0, 0}},
        {-(real)0, {1, -inf, -(real)0, -(real)0}},
        {denormal, {1, -inf, 0, 0}},
        {-denormal, {1, -inf, -(real)0, -(real)0}},
        {inf, {inf, inf, 1, 1}},
        {-inf, {0, (real)NAN, -1, -1}},
        {(real)NAN, {(real)NAN, (real)NAN, (real)NAN, (real)NAN}},
    };
    for (size_t i = 0; i < sizeof promised / sizeof *promised; i++)
        for (int k = 0; k < N_FUNCTION; k++) {
            real y = one_value(&functions[k], promised[i].x), wanted = promised[i].y[k];
            if (isnan(wanted) ? isnan(y) : word_of(y) == word_of(wanted)) continue;
            fail_msg("%s(%a) is %a, not %a", functions[k].name, (double)promised[i].x, (double)y, (double)wanted);
        }
    /* exact, or the nearest there is */
    assert_true(word_of(one_value(&functions[LOG], 1)) == 0);
    assert_true(one_value(&functions[TANH], smallest) == smallest);
    assert_true(one_value(&functions[TANH], -smallest) == -smallest);
}

static void nan_keeps_its_sign_and_payload_and_turns_quiet(void **state)
{
    (void)state;
    const word infinity = word_of((real)INFINITY), quiet = (word)1 << (DIGITS - 2);
    for (int k = 0; k < N_FUNCTION; k++)
        for (int bit = 0; bit < DIGITS - 1; bit++)
            for (int negative = 0; negative < 2; negative++) {
                word nan = infinity | ((word)1 << bit) | (negative ? sign_bit : 0);
                assert_true(word_of(one_value(&functions[k], real_of(nan))) == (nan | quiet));
            }
}

static void tanh_and_erf_are_odd_and_saturate_at_1_for_good(void **state)
{
    (void)state;
    const int64_t n = ttn_scaled(1 << 18, 1 << 14);
    const word stride = word_of((real)INFINITY) / (word)n;
    for (int k = TANH; k <= ERF; k++) {
        const function *f = &functions[k];
        const real end = k == TANH ? tanh_is_1 : erf_is_1;
        int64_t n_at_1 = 0;
        for (int64_t i = 0; i < n; i++) {
            real x = real_of((word)i * stride), y = one_value(f, x);
            assert_true(word_of(one_value(f, -x)) == (word_of(y) ^ sign_bit));
            assert_true(y >= 0 && y <= 1);
            if (x >= end) assert_true(y == 1);
            n_at_1 += x >= end;
        }
        assert_true(n_at_1 > n / 4);
        /* densely, where the last ulps are decided */
        int reached = 0;
        for (int i = -8192; i < 8192; i++) {
            real x = end + (real)i / 4096, y = one_value(f, x);
            assert_true(y <= 1 && (y == 1 || x < end));
            reached |= y == 1;
        }
        assert_true(reached);
    }
}

/* ---- where an element stands ---- */

static void fill(int64_t n, real *x, uint64_t *random)
{
    static const double specials[] = {0.0, -0.0,      INFINITY, -INFINITY, NAN,   -1.0,
                                      1.0, -0x1p-127, 90.0,     -90.0,     0.625, 4.0};
    enum { N_SPECIAL = sizeof specials / sizeof *specials };
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = random_word(random);
        x[i] = r % 8 == 0 ? (real)specials[(r >> 8) % N_SPECIAL] : (real)((double)(r >> 11) * 0x1p-53 * 16 - 8);
    }
}

static void bits_depend_neither_on_the_place_nor_on_n(void **state)
{
    (void)state;
    enum { MOST = 70, OFFSETS = 17, ROOM = MOST + OFFSETS + 16 };
    const real untouched = (real)-77;
    uint64_t random = ttn_test_seed();
    real x[ROOM], alone[ROOM], y[ROOM];
    for (int k = 0; k < N_FUNCTION; k++)
        for (int n = 0; n <= MOST; n++)
            for (int offset = 0; offset < OFFSETS; offset++) {
                fill(ROOM, x, &random);
                for (int i = 0; i < ROOM; i++) {
                    alone[i] = i < offset || i >= offset + n ? untouched : one_value(&functions[k], x[i]);
                    y[i] = untouched;
                }
                functions[k].run(n, x + offset, y + offset);
                assert_same_bits(y, alone, sizeof y);
            }
}

static void an_array_may_be_replaced_by_its_results(void **state)
{
    (void)state;
    enum { N = 1003 };
    uint64_t random = ttn_test_seed();
    real x[N], y[N];
    for (int k = 0; k < N_FUNCTION; k++) {
        fill(N, x, &random);
        functions[k].run(N, x, y);
        functions[k].run(N, x, x);
        assert_same_bits(x, y, sizeof y);
    }
}

/* ---- modes, compilers ---- */

typedef struct {
    int64_t n;
    const real *x;
    real *y[N_FUNCTION];
} sheet;

static void fill_sheet(void *arg)
{
    sheet *s = arg;
    for (int k = 0; k < N_FUNCTION; k++)
        functions[k].run(s->n, s->x, s->y[k]);
}

static void bits_are_the_same_where_denormals_are_flushed(void **state)
{
    (void)state;
    if (!fused) skip_because("erf next to the smallest normal number needs a fused multiply-add");
    enum { PER_BINADE = 1 << (DIGITS == 24 ? 10 : 7) };
    const int64_t n = 4 * (int64_t)LAST_EXPONENT * PER_BINADE;
    const word stride = (word)(((word)0 - (word)1) / (word)n);
    real *all = malloc((size_t)(1 + 2 * N_FUNCTION) * (size_t)n * sizeof *all);
    assert_non_null(all);
    sheet plain = {.n = n, .x = all}, flushed = {.n = n, .x = all};
    for (int64_t i = 0; i < n; i++)
        all[i] = real_of((word)i * stride);
    for (int k = 0; k < N_FUNCTION; k++) {
        plain.y[k] = all + (1 + 2 * k) * n;
        flushed.y[k] = all + (2 + 2 * k) * n;
    }
    fill_sheet(&plain);
    run_flushing(fill_sheet, &flushed);
    for (int k = 0; k < N_FUNCTION; k++)
        assert_same_bits(flushed.y[k], plain.y[k], (size_t)n * sizeof(real));
    free(all);
}

/* Recorded with gcc 12 on x86-64; they change when a fit changes, and then knowingly. */
static void results_are_the_recorded_bits_whatever_the_compiler(void **state)
{
    (void)state;
    if (!fused) skip_because("the recorded bits are those of a fused multiply-add");
    enum { N = 1 << 17 };
    static real x[N], y[N];
    const word stride = (word)0x9e3779b97f4a7c15;
    for (int64_t i = 0; i < N; i++)
        x[i] = real_of((word)i * stride);
    /* the lower half of the words, made ordinary numbers of sizes 2^-8 to 2^8 */
    for (int64_t i = 0; i < N / 2; i++)
        x[i] = (real)scalbn((double)(int32_t)((uint32_t)i * 0x9e3779b9u), -23 - (int)(i % 17));
    int n_wrong = 0;
    for (int k = 0; k < N_FUNCTION; k++) {
        functions[k].run(N, x, y);
        uint64_t digest = 0xcbf29ce484222325; /* FNV-1a, by words */
        for (int64_t i = 0; i < N; i++)
            if (!isnan(y[i])) digest = (digest ^ word_of(y[i])) * 0x100000001b3;
        if (digest == functions[k].digest) continue;
        printf("# %s " TTN_REAL_NAME ": digest 0x%016" PRIx64 ", recorded 0x%016" PRIx64 "\n", functions[k].name,
               digest, functions[k].digest);
        n_wrong++;
    }
    assert_int_equal(n_wrong, 0);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stay_within_the_bound_over_all_binades),
        cmocka_unit_test(errors_stay_within_the_bound_where_the_function_moves),
        cmocka_unit_test(errors_stay_within_the_bound_around_special_places),
#if !defined(TTN_REAL64)
        cmocka_unit_test(all_floats_stay_within_the_bound),
#endif
        cmocka_unit_test(special_values_are_as_promised),
        cmocka_unit_test(nan_keeps_its_sign_and_payload_and_turns_quiet),
        cmocka_unit_test(tanh_and_erf_are_odd_and_saturate_at_1_for_good),
        cmocka_unit_test(bits_depend_neither_on_the_place_nor_on_n),
        cmocka_unit_test(an_array_may_be_replaced_by_its_results),
        cmocka_unit_test(bits_are_the_same_where_denormals_are_flushed),
        cmocka_unit_test(results_are_the_recorded_bits_whatever_the_compiler),
    };
    return ttn_test_run(tests);
}
