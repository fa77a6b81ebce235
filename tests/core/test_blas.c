/* One product, LAPACK, and how OpenBLAS is started: which kernel, which flavour. */
#include <omp.h>
#include "tests/core/blas_world.h"

/* ---- one product ---- */

enum { ROOM = 40 * 40 };

/* Storage of one type, which is not always the build's. */
static void put(ttn_dtype type, void *x, int at, double value)
{
    if (type == TTN_F64)
        ((double *)x)[at] = value;
    else
        ((float *)x)[at] = (float)value;
}

static void fill_typed(ttn_dtype type, void *x, uint64_t seed)
{
    for (int e = 0; e < ROOM; e++)
        put(type, x, e, number(seed, e));
}

static void check_product(ttn_dtype type, ttn_trans ta, ttn_trans tb, int64_t m, int64_t n, int64_t k, double alpha,
                          double beta)
{
    double a[ROOM], b[ROOM], c[ROOM], c0[ROOM];
    ttn_dtype stored = ttn_dtype_stored(type);
    fill_typed(stored, a, 1);
    fill_typed(stored, b, 2);
    fill_typed(stored, c, 3);
    fill_typed(stored, c0, 3);
    ttn_mat_in ma = ttn_in_of(type, a, (ta == TTN_T ? m : k) + 2), mb = ttn_in_of(type, b, (tb == TTN_T ? k : n) + 1);
    const int64_t ldc = n + 3;
    if (beta == 0) /* not read */
        for (int e = 0; e < ROOM; e++)
            if (e % ldc < n && e / ldc < m) put(stored, c, e, (double)NAN);
    ttn_gemm(ta, tb, m, n, k, alpha, ma, mb, beta, ttn_out_of(type, c, ldc));
    assert_at_most(error_of(ta, tb, m, n, k, alpha, ma, mb, beta, ttn_in_of(type, c0, ldc), ttn_in_of(type, c, ldc)), 1,
                   "error of a product, in units of its bound");
    size_t size = ttn_dtype_size(stored);
    for (int64_t e = 0; e < ROOM; e++) /* and nothing beside it is written */
        if (e % ldc >= n || e / ldc >= m)
            assert_same_bits((char *)c + (size_t)e * size, (char *)c0 + (size_t)e * size, size);
}

static void product_equals_plain_loops(void **state)
{
    (void)state;
    const ttn_dtype types[] = {TTN_REAL, TTN_F32, TTN_F64}; /* both in either build */
    const int64_t sizes[][3] = {{1, 1, 1}, {7, 5, 3}, {16, 24, 32}, {33, 1, 17}, {1, 30, 30}, {31, 33, 1}};
    const double betas[] = {0, 1, -0.5};
    for (size_t t = 0; t < 3; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t b = 0; b < 3; b++)
                for (int trans = 0; trans < 4; trans++)
                    check_product(types[t], trans & 1 ? TTN_T : TTN_N, trans & 2 ? TTN_T : TTN_N, sizes[s][0],
                                  sizes[s][1], sizes[s][2], b == 2 ? 1.5 : 1, betas[b]);
}

static void a_product_over_nothing_applies_beta(void **state)
{
    (void)state;
    const ttn_dtype types[] = {TTN_F32, TTN_F64};
    const double betas[] = {0, 1, -0.5};
    for (size_t t = 0; t < 2; t++)
        for (size_t b = 0; b < 3; b++)
            for (int empty = 0; empty < 3; empty++)
                check_product(types[t], TTN_N, TTN_T, empty == 0 ? 0 : 5, empty == 1 ? 0 : 6, empty == 2 ? 0 : 7, 1,
                              betas[b]);
    /* nothing is there to have a width either */
    float c = 3;
    ttn_gemm(TTN_N, TTN_N, 1, 1, 0, 1, ttn_in_of(TTN_F32, NULL, 0), ttn_in_of(TTN_F32, NULL, 0), 2,
             ttn_out_of(TTN_F32, &c, 1));
    assert_true(c == 6);
}

/* ---- LAPACK ---- */

enum { QM = 12, QN = 5 };

static void qr_gives_an_orthogonal_factor(void **state)
{
    (void)state;
    const int m = QM, n = QN, room_work = 64 * QN;
    int info = -1;
    float a[QM * QN], q[QM * QN], tau[QN], work[64 * QN];
    double a64[QM * QN], q64[QM * QN], tau64[QN], work64[64 * QN];
    for (int e = 0; e < QM * QN; e++) {
        q64[e] = a64[e] = number(1, e);
        q[e] = a[e] = (float)a64[e];
    }
    int saved = ttn_blas_alone_begin();
    sgeqrf_(&m, &n, q, &m, tau, work, &room_work, &info);
    assert_int_equal(info, 0);
    float r[QN * QN] = {0};
    double r64[QN * QN] = {0};
    for (int j = 0; j < QN; j++)
        memcpy(r + j * QN, q + j * QM, sizeof *r * (size_t)(j + 1));
    sorgqr_(&m, &n, &n, q, &m, tau, work, &room_work, &info);
    assert_int_equal(info, 0);
    dgeqrf_(&m, &n, q64, &m, tau64, work64, &room_work, &info);
    assert_int_equal(info, 0);
    for (int j = 0; j < QN; j++)
        memcpy(r64 + j * QN, q64 + j * QM, sizeof *r64 * (size_t)(j + 1));
    dorgqr_(&m, &n, &n, q64, &m, tau64, work64, &room_work, &info);
    assert_int_equal(info, 0);
    ttn_blas_alone_end(saved);

    for (int i = 0; i < QN; i++)
        for (int j = 0; j < QN; j++) {
            double dot = 0, dot64 = 0;
            for (int e = 0; e < QM; e++) {
                dot += (double)q[i * QM + e] * (double)q[j * QM + e];
                dot64 += q64[i * QM + e] * q64[j * QM + e];
            }
            assert_at_most(fabs(dot - (i == j)), 1e-6 /* 12 terms in f32 */, "Q^T Q - 1, f32");
            assert_at_most(fabs(dot64 - (i == j)), 1e-15 * 10, "Q^T Q - 1, f64");
        }
    for (int j = 0; j < QN; j++)
        for (int e = 0; e < QM; e++) {
            double back = 0, back64 = 0;
            for (int i = 0; i <= j; i++) {
                back += (double)q[i * QM + e] * (double)r[j * QN + i];
                back64 += q64[i * QM + e] * r64[j * QN + i];
            }
            assert_at_most(fabs(back - (double)a[j * QM + e]), 1e-6, "Q R - A, f32");
            assert_at_most(fabs(back64 - a64[j * QM + e]), 1e-14, "Q R - A, f64");
        }
}

static void cholesky_solves_and_refuses(void **state)
{
    (void)state;
    enum { N = 9, RHS = 2 };
    const int n = N, rhs = RHS;
    double a[N * N], l[N * N], b[N * RHS], x[N * RHS];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i * N + j] = i == j ? 1 : 0;
            for (int e = 0; e < N; e++)
                a[i * N + j] += number((uint64_t)i, e) * number((uint64_t)j, e);
        }
    for (int e = 0; e < N * RHS; e++)
        x[e] = b[e] = number(99, e);
    memcpy(l, a, sizeof a);
    int info = -1;
    int saved = ttn_blas_alone_begin();
    dpotrf_("L", &n, l, &n, &info, 1);
    assert_int_equal(info, 0);
    dpotrs_("L", &n, &rhs, l, &n, x, &n, &info, 1);
    assert_int_equal(info, 0);
    a[4 * N + 4] = -1;
    dpotrf_("L", &n, memcpy(l, a, sizeof a), &n, &info, 1);
    ttn_blas_alone_end(saved);
    assert_int_equal(info, 5); /* the first minor that is not positive */
    a[4 * N + 4] = 1;
    for (int e = 0; e < N; e++)
        a[4 * N + 4] += number(4, e) * number(4, e);
    for (int r = 0; r < RHS; r++)
        for (int i = 0; i < N; i++) {
            double back = 0;
            for (int j = 0; j < N; j++)
                back += a[i * N + j] * x[r * N + j];
            assert_at_most(fabs(back - b[r * N + i]), 1e-13, "A x - b");
        }
}

/* ---- which kernel ---- */

static void a_kernel_below_the_processor_is_seen(void **state)
{
    (void)state;
#if defined(__x86_64__)
    const ttn_cpu_set sse = TTN_CPU(SSE3) | TTN_CPU(SSE4_2);
    const ttn_cpu_set avx = sse | TTN_CPU(AVX);
    const ttn_cpu_set avx2 = avx | TTN_CPU(AVX2) | TTN_CPU(FMA);
    const ttn_cpu_set half = avx2 | TTN_CPU(AVX512F) | TTN_CPU(AVX512CD); /* a Xeon Phi */
    const ttn_cpu_set avx512 = half | TTN_CPU(AVX512DQ) | TTN_CPU(AVX512BW) | TTN_CPU(AVX512VL);
    assert_null(ttn_blas_kernel_for("Prescott", sse));
    assert_null(ttn_blas_kernel_for("Sandybridge", avx));
    assert_null(ttn_blas_kernel_for("Zen", avx2));
    assert_null(ttn_blas_kernel_for("Haswell", avx512)); /* somebody may have measured */
    assert_null(ttn_blas_kernel_for("Cooperlake", avx512));
    assert_null(ttn_blas_kernel_for("Zen9", avx512)); /* newer than the table */
    assert_string_equal(ttn_blas_kernel_for("Prescott", avx2), "Haswell");
    assert_string_equal(ttn_blas_kernel_for("Sandybridge", avx2), "Haswell");
    assert_string_equal(ttn_blas_kernel_for("Prescott", half), "Haswell");
    assert_string_equal(ttn_blas_kernel_for("Prescott", avx512), "SkylakeX");
    assert_string_equal(ttn_blas_kernel_for("Nehalem", avx512), "SkylakeX");
#else
    assert_null(ttn_blas_kernel_for("Prescott", ~(ttn_cpu_set)0));
#endif
}

/* argv[0]: threads; argv[1], if any: "unset", forget OPENBLAS_CORETYPE after the library has read it. */
static int child_start(int argc, char **argv)
{
    if (argc > 1) unsetenv("OPENBLAS_CORETYPE");
    ttn_error err = {0};
    ttn_blas_info info;
    ttn_status status = ttn_blas_start(atoi(argv[0]), &info, &err);
    const char *wanted = ttn_blas_wanted_kernel();
    printf("%s: %s, kernel %s, wanted %s, warning '%s', error '%s'\n", ttn_status_name(status), info.flavour_name,
           info.kernel, wanted ? wanted : "none", info.warning, err.text);
    return 0;
}

/* Is the best kernel here above Prescott? Else nothing is slow about it. */
static void skip_if_prescott_is_right(void)
{
    if (!ttn_blas_kernel_for("Prescott", ttn_cpu_present())) skip_because("this processor has no AVX2");
}

static void a_slow_kernel_that_the_user_chose_is_a_warning(void **state)
{
    (void)state;
    skip_if_prescott_is_right();
    ttn_child c = run_again("start", "2", kernel_setting("Prescott"), NULL);
    assert_child_is_content(&c);
    assert_contains(c.output, "OK: ");
    assert_contains(c.output, "kernel Prescott, wanted none");
    assert_contains(c.output, "warning 'OPENBLAS_CORETYPE=Prescott gave the kernel 'Prescott', several times slower");
}

/* What a new Xeon does to a program that does not start again: the kernel is loaded, and nobody asked for it. */
static void a_slow_kernel_that_nobody_chose_is_refused(void **state)
{
    (void)state;
    skip_if_prescott_is_right();
    const char *const argv[] = {ttn_test_self(), "--child", "start", "2", "unset", NULL};
    const char *const environment[] = {kernel_setting("Prescott"), NULL};
    ttn_child c = ttn_run_program((ttn_child_limit){.environment = environment}, argv);
    assert_child_is_content(&c);
    const char *better = ttn_blas_kernel_for("Prescott", ttn_cpu_present());
    char words[64];
    snprintf(words, sizeof words, "kernel Prescott, wanted %s", better);
    assert_contains(c.output, "EDEVICE: ");
    assert_contains(c.output, words);
    assert_contains(c.output, "has taken its kernel 'Prescott'");
    snprintf(words, sizeof words, "set OPENBLAS_CORETYPE=%s in the environment", better);
    assert_contains(c.output, words);
}

/* A setting that OpenBLAS does not know is passed over without a word: the words are ours. */
static void a_kernel_that_openblas_did_not_take_is_a_warning(void **state)
{
    (void)state;
    ttn_child c = run_again("start", "2", "OPENBLAS_CORETYPE=foo\033[2J", NULL);
    assert_child_is_content(&c);
    if (strstr(c.output, "error 'OpenBLAS has")) skip_because("OpenBLAS takes a slow kernel by itself here");
    assert_contains(c.output, "OK: ");
    assert_contains(c.output, "warning 'OPENBLAS_CORETYPE=foo?[2J is not a kernel OpenBLAS took; it runs '");
}

/* OpenBLAS does not look at the case of letters. */
static void a_kernel_that_was_taken_is_none(void **state)
{
    (void)state;
    const char *setting = kernel_setting("Haswell");
    for (int lower = 0; lower < 2; lower++) {
        ttn_child c = run_again("start", "2", lower ? "OPENBLAS_CORETYPE=haswell" : setting, NULL);
        assert_child_is_content(&c);
        assert_contains(c.output, "OK: ");
        assert_contains(c.output, "kernel Haswell, wanted none, warning '', error ''");
    }
}

/* ---- how many threads ---- */

static void more_threads_than_openblas_has_buffers_for_are_refused(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_fails(ttn_blas_start(TTN_BLAS_MAX_THREADS + 1, NULL, &err), TTN_EDEVICE, &err,
                 "129 threads would call OpenBLAS at once");
    assert_contains(err.text, "set OMP_NUM_THREADS to the number of cores, or to 128 at most");
}

static void as_many_threads_as_are_allowed_start(void **state)
{
    (void)state;
    if (ttn_test_sanitized()) skip_because("so many threads take AddressSanitizer too long");
    char most[16];
    snprintf(most, sizeof most, "%d", TTN_BLAS_MAX_THREADS);
    ttn_child c = run_again("start", most, NULL, NULL);
    assert_child_is_content(&c);
    assert_contains(c.output, "OK: ");
}

/* ---- which flavour ---- */

static void check_flavour_starts(const char *flavour, const char *threads)
{
    char words[64];
    snprintf(words, sizeof words, "OK: %s, kernel", flavour);
    ttn_child c = run_again("start", threads, flavour_path(flavour), NULL);
    assert_child_is_content(&c);
    assert_contains(c.output, words);
}

static void the_pthread_flavour_starts(void **state)
{
    (void)state;
    check_flavour_starts("pthread", "2");
}

static void the_openmp_flavour_starts(void **state)
{
    (void)state;
    check_flavour_starts("openmp", "2");
}

static void the_serial_flavour_starts_for_one_thread_only(void **state)
{
    (void)state;
    check_flavour_starts("serial", "1");
    ttn_child c = run_again("start", "2", flavour_path("serial"), NULL);
    assert_child_is_content(&c);
    assert_contains(c.output, "EDEVICE: serial");
    assert_contains(c.output, "install libopenblas0-pthread");
}

/* Two threads of BLAS's own would give other bits than one: does a call outside any region, inside a region of one and
 * inside a region of two stay on its thread, and is OpenMP's setting what it was? */
static int child_alone(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    enum { SIDE = 500 };
    const size_t bytes = (size_t)SIDE * SIDE * sizeof(real);
    ttn_error err = {0};
    assert_ok(ttn_blas_start(2, NULL, &err), &err);
    real *a = numbers((int64_t)SIDE * SIDE, 1), *b = numbers((int64_t)SIDE * SIDE, 2);
    real *wanted = room((int64_t)SIDE * SIDE, sizeof *a), *c = room((int64_t)SIDE * SIDE, sizeof *a);
    ttn_mat_in ma = ttn_in(a, SIDE), mb = ttn_in(b, SIDE);
    const int threads = omp_get_max_threads();
    assert_int_equal(threads, 2); /* OMP_NUM_THREADS of this child */

#pragma omp parallel num_threads(2)
#pragma omp single
    ttn_gemm(TTN_N, TTN_N, SIDE, SIDE, SIDE, 1, ma, mb, 0, ttn_out(wanted, SIDE));

    ttn_gemm(TTN_N, TTN_N, SIDE, SIDE, SIDE, 1, ma, mb, 0, ttn_out(c, SIDE));
    assert_same_bits(wanted, c, bytes);
    assert_int_equal(omp_get_max_threads(), threads);

    memset(c, 0, bytes);
#pragma omp parallel num_threads(1)
    ttn_gemm(TTN_N, TTN_N, SIDE, SIDE, SIDE, 1, ma, mb, 0, ttn_out(c, SIDE));
    assert_same_bits(wanted, c, bytes);

    /* nested pairs end where they began */
    int outer = ttn_blas_alone_begin();
    memset(c, 0, bytes);
    ttn_gemm(TTN_N, TTN_N, SIDE, SIDE, SIDE, 1, ma, mb, 0, ttn_out(c, SIDE));
    ttn_blas_alone_end(outer);
    assert_same_bits(wanted, c, bytes);
    assert_int_equal(omp_get_max_threads(), threads);
    int in_region = 0;
#pragma omp parallel reduction(+ : in_region)
    in_region++;
    assert_int_equal(in_region, 2);
    free(a);
    free(b);
    free(wanted);
    free(c);
    return 0;
}

static void calls_stay_on_their_thread_in_each_flavour(void **state)
{
    (void)state;
    const char *const flavours[] = {"pthread", "openmp"};
    for (int f = 0; f < 2; f++) {
        ttn_child c = run_again("alone", NULL, flavour_path(flavours[f]), "OMP_NUM_THREADS=2");
        assert_child_is_content(&c);
    }
}

int main(int argc, char **argv)
{
    ttn_test_child("start", child_start);
    ttn_test_child("alone", child_alone);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product_equals_plain_loops),
        cmocka_unit_test(a_product_over_nothing_applies_beta),
        cmocka_unit_test(qr_gives_an_orthogonal_factor),
        cmocka_unit_test(cholesky_solves_and_refuses),
        cmocka_unit_test(a_kernel_below_the_processor_is_seen),
        cmocka_unit_test(a_slow_kernel_that_the_user_chose_is_a_warning),
        cmocka_unit_test(a_slow_kernel_that_nobody_chose_is_refused),
        cmocka_unit_test(a_kernel_that_openblas_did_not_take_is_a_warning),
        cmocka_unit_test(a_kernel_that_was_taken_is_none),
        cmocka_unit_test(more_threads_than_openblas_has_buffers_for_are_refused),
        cmocka_unit_test(as_many_threads_as_are_allowed_start),
        cmocka_unit_test(the_pthread_flavour_starts),
        cmocka_unit_test(the_openmp_flavour_starts),
        cmocka_unit_test(the_serial_flavour_starts_for_one_thread_only),
        cmocka_unit_test(calls_stay_on_their_thread_in_each_flavour),
    };
    return ttn_test_run(tests);
}
