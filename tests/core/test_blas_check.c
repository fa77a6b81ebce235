/* The self-check at start-up, with a BLAS that has faults: this program brings its own cblas_sgemm and cblas_dgemm, which
 * the linker prefers to the library's. They pass calls on and then spoil what a test asks them to. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include "tests/core/blas_world.h"
#include "tests/harness/shim.h"

typedef enum {
    NO_FAULT,
    WRONG_ELEMENT,   /* one element of one shape */
    NAN_ELEMENT,     /* the same, not a number */
    READS_OLD_C,     /* beta 0 multiplies what was in C */
    WRONG_AT_ONCE,   /* while another thread is inside */
    NEIGHBOURS_SEEN, /* the last bits of a row follow another row's numbers */
    PLACE_SEEN,      /* the last bit of a row follows its place, with period 5 */
} fault;

static struct {
    fault fault;
    size_t size; /* of the type to spoil */
    atomic_int inside;
} spoiler;

typedef struct {
    int m, n, k, ldc;
    const void *a;
} call;

static double element_at(size_t size, const void *x, int64_t at)
{
    return size == sizeof(double) ? ((const double *)x)[at] : (double)((const float *)x)[at];
}

static void change(size_t size, void *c, int64_t at, double factor)
{
    if (size == sizeof(double))
        ((double *)c)[at] *= factor;
    else
        ((float *)c)[at] *= (float)factor;
}

static void spoil(size_t size, call s, int others, void *c)
{
    const double eps = size == sizeof(double) ? DBL_EPSILON : (double)FLT_EPSILON;
    const int is_tile = s.m == TTN_ROW_TILE;
    if (size != spoiler.size) return;
    switch (spoiler.fault) {
    case NO_FAULT:
    case READS_OLD_C:
        break;
    case WRONG_ELEMENT:
        if (s.m == 97) change(size, c, 50 * (int64_t)s.ldc + 3, 1.001);
        break;
    case NAN_ELEMENT:
        if (s.m == 97) change(size, c, 50 * (int64_t)s.ldc + 3, (double)NAN);
        break;
    case WRONG_AT_ONCE:
        if (others) change(size, c, 0, 1 + 4 * eps);
        break;
    case NEIGHBOURS_SEEN:
        if (is_tile && s.n == 33)
            for (int64_t r = 100; r < 110; r++)
                change(size, c, r * s.ldc, 1 + 2 * eps * floor(100 * fabs(element_at(size, s.a, 0))));
        break;
    case PLACE_SEEN:
        if (is_tile && s.n == 512)
            for (int64_t r = 0; r < s.m; r += 5)
                for (int64_t j = 0; j < s.n; j++)
                    change(size, c, r * s.ldc + j, 1 + 2 * eps);
        break;
    }
}

/* The library's own one, below this program in the order of search. */
static void *real_one(const char *name)
{
    void *f = dlsym(RTLD_NEXT, name);
    if (!f) abort();
    return f;
}

static int enter(size_t size)
{
    int others = atomic_fetch_add(&spoiler.inside, 1) > 0;
    if (spoiler.fault == WRONG_AT_ONCE && size == spoiler.size) {
        struct timespec moment = {.tv_nsec = 100000};
        nanosleep(&moment, NULL); /* so that another one may come, even on one core */
        others |= atomic_load(&spoiler.inside) > 1;
    }
    return others;
}

static void leave(void)
{
    atomic_fetch_sub(&spoiler.inside, 1);
}

void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                 int ldb, float beta, float *c, int ldc);
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                 int ldb, float beta, float *c, int ldc)
{
    void (*gemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
    *(void **)&gemm = real_one("cblas_sgemm");
    int others = enter(sizeof *c);
    if (spoiler.fault == READS_OLD_C && spoiler.size == sizeof *c && beta == 0) beta = 1e-30f;
    gemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    leave();
    spoil(sizeof *c, (call){m, n, k, ldc, a}, others, c);
}

void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc);
void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc)
{
    void (*gemm)(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
    *(void **)&gemm = real_one("cblas_dgemm");
    int others = enter(sizeof *c);
    if (spoiler.fault == READS_OLD_C && spoiler.size == sizeof *c && beta == 0) beta = 1e-300;
    gemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    leave();
    spoil(sizeof *c, (call){m, n, k, ldc, a}, others, c);
}

/* ---- */

/* In both types: this fault, and this sentence. */
static void check_fault(fault f, const char *words)
{
    const size_t sizes[] = {sizeof(float), sizeof(double)};
    for (int i = 0; i < 2; i++) {
        spoiler.size = sizes[i];
        spoiler.fault = f;
        ttn_error err = {0};
        ttn_status status = ttn_blas_start(3, NULL, &err);
        spoiler.fault = NO_FAULT;
        assert_fails(status, TTN_ENUMERIC, &err, words);
        assert_contains(err.text, i ? "f64" : "f32");
    }
}

static void a_sound_blas_passes(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_blas_info info;
    assert_ok(ttn_blas_start(3, &info, &err), &err);
    assert_string_equal(info.warning, "");
    assert_at_most(info.f32.worst, 2e-6, "error of a sound f32 kernel");
    assert_at_most(info.f64.worst, 1e-14, "error of a sound f64 kernel");
    assert_true(info.f32.worst > 1e-9); /* measured at all */
    assert_true(info.f64.worst > 1e-18);
    printf("# kernel %s: row period %d (f32), %d (f64); errors %.1e, %.1e\n", info.kernel, info.f32.row_period,
           info.f64.row_period, info.f32.worst, info.f64.worst);
}

static void a_wrong_element_is_found(void **state)
{
    (void)state;
    check_fault(WRONG_ELEMENT, "product NT of 97 x 128 x 96 is off by");
}

static void a_nan_is_found(void **state)
{
    (void)state;
    check_fault(NAN_ELEMENT, "is off by inf");
}

static void reading_what_beta_0_should_ignore_is_found(void **state)
{
    (void)state;
    check_fault(READS_OLD_C, "is wrong");
}

static void calls_that_disturb_each_other_are_found(void **state)
{
    (void)state;
    check_fault(WRONG_AT_ONCE, "when 3 threads call it at once");
}

static void a_row_that_follows_its_neighbours_is_found(void **state)
{
    (void)state;
    check_fault(NEIGHBOURS_SEEN, "when other rows");
}

/* Only a kernel whose period is known can break a promise; of another one the measured number is told. */
static void a_row_that_follows_its_place_is_found(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        ttn_dtype type = i ? TTN_F64 : TTN_F32;
        ttn_blas_measured sound, spoilt;
        ttn_error err = {0};
        assert_ok(ttn_blas_check(2, type, 0, "this", &sound, &err), &err);
        assert_ok(ttn_blas_check(2, type, sound.row_period, "this", &sound, &err), &err);
        assert_ok(ttn_blas_check(2, type, 12 * sound.row_period, "this", &sound, &err), &err);
        spoiler.size = i ? sizeof(double) : sizeof(float);
        spoiler.fault = PLACE_SEEN;
        ttn_status status = ttn_blas_check(2, type, sound.row_period, "this", &spoilt, &err);
        ttn_error none = {0};
        ttn_status unknown = ttn_blas_check(2, type, 0, "this", &spoilt, &none);
        spoiler.fault = NO_FAULT;
        assert_fails(status, TTN_ENUMERIC, &err, "but is known for");
        assert_ok(unknown, &none);
        assert_int_equal(spoilt.row_period, 5 * sound.row_period);
    }
}

static void no_memory_is_a_status(void **state)
{
    (void)state;
    ttn_error err = {0};
    shim_arm(SHIM_ALLOC, 1, SHIM_FAIL, ENOMEM, 1);
    ttn_status status = ttn_blas_start(2, NULL, &err);
    shim_disarm();
    assert_fails(status, TTN_ENOMEM, &err, "no memory for the self-check");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_blas_passes),
        cmocka_unit_test(a_wrong_element_is_found),
        cmocka_unit_test(a_nan_is_found),
        cmocka_unit_test(reading_what_beta_0_should_ignore_is_found),
        cmocka_unit_test(calls_that_disturb_each_other_are_found),
        cmocka_unit_test(a_row_that_follows_its_neighbours_is_found),
        cmocka_unit_test(a_row_that_follows_its_place_is_found),
        cmocka_unit_test(no_memory_is_a_status),
    };
    return ttn_test_run(tests);
}
