#include <assert.h>
#include <cblas.h>
#undef I /* complex.h comes with it */
#include <limits.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "core/blas.h"
#include "core/text.h"

/* ---- which kernel ---- */

/* Kernels of x86-64 that OpenBLAS 0.3.21 can load by name. Row periods: measured in calls of TTN_ROW_TILE rows
 * (tests/core/test_gemm_kernels.c measures them again); 0 where nobody did. */
#if defined(__x86_64__)
#define NEEDS_AVX2   (TTN_CPU(AVX2) | TTN_CPU(FMA))
#define NEEDS_AVX512 (NEEDS_AVX2 | TTN_CPU(AVX512F) | TTN_CPU(AVX512DQ) | TTN_CPU(AVX512BW) | TTN_CPU(AVX512VL))
#define NEEDS_VNNI   (NEEDS_AVX512 | TTN_CPU(AVX512VNNI))
#define NEEDS_FMA4   (TTN_CPU(AVX) | TTN_CPU(FMA4))
#else
#define NEEDS_AVX2   0
#define NEEDS_AVX512 0
#define NEEDS_VNNI   0
#define NEEDS_FMA4   0
#endif

static const struct kernel {
    const char *name;
    int uses_avx2; /* or all that a processor has for which OpenBLAS chooses it */
    int row_period_f32, row_period_f64;
    ttn_cpu_set needs; /* without them it ends in SIGILL: OpenBLAS loads what OPENBLAS_CORETYPE says */
} kernels[] = {
    {.name = "Haswell", .needs = NEEDS_AVX2, .uses_avx2 = 1, .row_period_f32 = 12, .row_period_f64 = 1},
    {.name = "Zen", .needs = NEEDS_AVX2, .uses_avx2 = 1, .row_period_f32 = 12, .row_period_f64 = 1},
    {.name = "SkylakeX", .needs = NEEDS_AVX512, .uses_avx2 = 1, .row_period_f32 = 1, .row_period_f64 = 1},
    {.name = "Cooperlake", .needs = NEEDS_VNNI, .uses_avx2 = 1, .row_period_f32 = 1, .row_period_f64 = 1},
    {.name = "SapphireRapids", .needs = NEEDS_VNNI, .uses_avx2 = 1},
    {.name = "Excavator", .needs = NEEDS_FMA4, .uses_avx2 = 1},
    {.name = "Prescott", .row_period_f32 = 1, .row_period_f64 = 1},
    {.name = "Core2"},
    {.name = "Penryn"},
    {.name = "Dunnington"},
    {.name = "Atom"},
    {.name = "Nehalem"},
    {.name = "Sandybridge"},
    {.name = "Nano"},
    {.name = "Opteron"},
    {.name = "Opteron_SSE3"},
    {.name = "Barcelona"},
    {.name = "Bobcat"},
    {.name = "Bulldozer", .needs = NEEDS_FMA4},
    {.name = "Piledriver", .needs = NEEDS_FMA4},
    {.name = "Steamroller", .needs = NEEDS_FMA4},
};

static const struct kernel *find_kernel(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, name) == 0) return &kernels[i];
    return NULL;
}

#if defined(__x86_64__)

const char *ttn_blas_kernel_for(const char *loaded, ttn_cpu_set present)
{
    const ttn_cpu_set avx2 = TTN_CPU(AVX2) | TTN_CPU(FMA);
    const ttn_cpu_set avx512 = avx2 | TTN_CPU(AVX512F) | TTN_CPU(AVX512DQ) | TTN_CPU(AVX512BW) | TTN_CPU(AVX512VL);
    const struct kernel *k = find_kernel(loaded);
    if (!k || k->uses_avx2 || (present & avx2) != avx2) return NULL;
    return (present & avx512) == avx512 ? "SkylakeX" : "Haswell";
}

#else

/* Nothing was measured on other families. */
const char *ttn_blas_kernel_for(const char *loaded, ttn_cpu_set present)
{
    (void)loaded;
    (void)present;
    return NULL;
}

#endif

ttn_cpu_set ttn_blas_kernel_lacks(const char *kernel, ttn_cpu_set present)
{
    const struct kernel *k = find_kernel(kernel);
    return k ? k->needs & ~present : 0;
}

static const char *coretype(void)
{
    const char *text = getenv("OPENBLAS_CORETYPE");
    return text && *text ? text : NULL;
}

const char *ttn_blas_wanted_kernel(void)
{
    return coretype() ? NULL : ttn_blas_kernel_for(openblas_get_corename(), ttn_cpu_present());
}

/* ---- start ---- */

/* For how many threads ttn_blas_start has found OpenBLAS fit; 0: not yet; CHECKING: the rules are set, and the self-check
 * multiplies under them. One OpenBLAS serves the whole process, so this is one fact a process. */
static atomic_int started_for;
enum { CHECKING = -1 };

static ttn_status check_count(int n_thread, ttn_error *err)
{
    if (n_thread <= TTN_BLAS_MAX_THREADS) return TTN_OK;
    return TTN_FAIL(
        err, TTN_EDEVICE,
        "%d threads would call OpenBLAS at once, and its buffers are enough for %d; set OMP_NUM_THREADS to the "
        "number of cores, or to %d at most, or unset it",
        n_thread, TTN_BLAS_MAX_THREADS, TTN_BLAS_MAX_THREADS);
}

static ttn_status use_one_thread(int n_thread, ttn_blas_info *info, ttn_error *err)
{
    switch (info->flavour) {
    case TTN_BLAS_PTHREAD:
        /* With threads of its own inside ours, small products are 7 to 15 times slower, and bits depend on them. */
        openblas_set_num_threads(1);
        if (openblas_get_num_threads() != 1)
            return TTN_FAIL(err, TTN_EDEVICE, "OpenBLAS (%s) keeps %d threads of its own when told to use one",
                            info->config, openblas_get_num_threads());
        return TTN_OK;
    case TTN_BLAS_OPENMP:
        /* Here openblas_set_num_threads would call omp_set_num_threads and leave the whole program on one core: never
         * called. ttn_blas_alone_begin holds it down call by call. */
        return TTN_OK;
    case TTN_BLAS_SERIAL:
        if (n_thread == 1) return TTN_OK;
        return TTN_FAIL(err, TTN_EDEVICE,
                        "the OpenBLAS that was loaded is the serial flavour, which returns wrong products when several "
                        "threads (here %d) call it at once; install libopenblas0-pthread, or run with one thread",
                        n_thread);
    }
    return TTN_FAIL(err, TTN_EDEVICE, "OpenBLAS (%s) is of flavour number %d, which is not known", info->config,
                    (int)info->flavour);
}

/* OpenBLAS takes its own choice, without a word, for a name that it does not know or was not built with; it compares
 * names as is done here. */
static void warn_of_choice(const char *wanted, ttn_blas_info *info)
{
    if (!info->coretype) return;
    const size_t room = sizeof info->warning;
    int n = 0;
    if (strcasecmp(info->coretype, info->kernel) != 0)
        n = snprintf(info->warning, room, "OPENBLAS_CORETYPE=%.40s is not a kernel OpenBLAS took; it runs '%.40s'",
                     info->coretype, info->kernel);
    else if (wanted)
        n = snprintf(info->warning, room, "OPENBLAS_CORETYPE=%.40s gave the kernel '%.40s'", info->coretype,
                     info->kernel);
    if (wanted) snprintf(info->warning + n, room - (size_t)n, ", several times slower here than '%s'", wanted);
    ttn_text_disarm(info->warning);
}

/* A slow kernel that somebody asked for is worth a warning; one that nobody asked for would only be found by chance. */
static ttn_status judge_kernel(ttn_blas_info *info, ttn_error *err)
{
    const ttn_cpu_set missing = ttn_blas_kernel_lacks(info->kernel, ttn_cpu_present());
    char lacks[200];
    if (missing)
        return TTN_FAIL(
            err, TTN_EDEVICE,
            "OPENBLAS_CORETYPE=%.40s gave OpenBLAS the kernel '%.40s', and this processor lacks %s; unset it",
            info->coretype ? info->coretype : "", info->kernel, ttn_cpu_names(missing, lacks, sizeof lacks));
    const char *wanted = ttn_blas_kernel_for(info->kernel, ttn_cpu_present());
    if (wanted && !info->coretype)
        return TTN_FAIL(err, TTN_EDEVICE,
                        "OpenBLAS has taken its kernel '%s', which is several times too slow for this processor; set "
                        "OPENBLAS_CORETYPE=%s in the environment before the program starts",
                        info->kernel, wanted);
    warn_of_choice(wanted, info);
    return TTN_OK;
}

void ttn_blas_describe(ttn_blas_info *ret)
{
    static const char *const names[] = {
        [TTN_BLAS_SERIAL] = "serial", [TTN_BLAS_PTHREAD] = "pthread", [TTN_BLAS_OPENMP] = "openmp"};
    *ret = (ttn_blas_info){
        .flavour = (ttn_blas_flavour)openblas_get_parallel(),
        .flavour_name = "unknown",
        .kernel = openblas_get_corename(),
        .config = openblas_get_config(),
        .coretype = coretype(),
    };
    if ((size_t)ret->flavour < sizeof names / sizeof *names) ret->flavour_name = names[ret->flavour];
}

static ttn_status check(int n_thread, ttn_blas_info *info, ttn_error *err)
{
    static const struct kernel unknown = {.name = ""};
    const struct kernel *k = find_kernel(info->kernel);
    if (!k) k = &unknown;
    ttn_status status = ttn_blas_check(n_thread, TTN_F32, k->row_period_f32, info->kernel, &info->f32, err);
    if (status != TTN_OK) return status;
    return ttn_blas_check(n_thread, TTN_F64, k->row_period_f64, info->kernel, &info->f64, err);
}

ttn_status ttn_blas_start(int n_thread, ttn_blas_info *ret, ttn_error *err)
{
    assert(n_thread >= 1);
    ttn_blas_info info;
    ttn_blas_describe(&info);
    ttn_status status = check_count(n_thread, err);
    if (status == TTN_OK) status = use_one_thread(n_thread, &info, err);
    if (status == TTN_OK) status = judge_kernel(&info, err);
    if (status == TTN_OK) {
        const int before = atomic_load(&started_for);
        if (before == 0) atomic_store(&started_for, CHECKING);
        status = check(n_thread, &info, err);
        /* A check that failed leaves what an earlier start has found. */
        if (status == TTN_OK && n_thread > before) atomic_store(&started_for, n_thread);
        if (status != TTN_OK) atomic_store(&started_for, before);
    }
    if (ret) *ret = info;
    return status;
}

ttn_status ttn_blas_check_started(int n_thread, ttn_error *err)
{
    const int threads = atomic_load(&started_for);
    if (threads <= 0)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "titin is not started: call ttn_start(%d, &err) once, before the first plan (without it OpenBLAS "
            "uses threads of its own, and results change from batch to batch)",
            n_thread);
    if (n_thread > threads)
        return TTN_FAIL(err, TTN_EINVAL, "titin was started for %d %s, not for %d: call ttn_start(%d, &err) first",
                        threads, threads == 1 ? "thread" : "threads", n_thread, n_thread);
    if (openblas_get_parallel() == TTN_BLAS_PTHREAD && openblas_get_num_threads() != 1)
        return TTN_FAIL(err, TTN_EINVAL,
                        "something in this process has set OpenBLAS to %d threads since ttn_start; call "
                        "openblas_set_num_threads(1), or ttn_start(%d, &err) again",
                        openblas_get_num_threads(), n_thread);
    return TTN_OK;
}

/* The OpenMP flavour uses threads unless the caller is in an active parallel region or may have only one
 * (omp_get_max_threads() == 1). A region of one thread is not active; but omp_set_num_threads speaks for the calling task
 * alone. Measured with libgomp and libomp, by CPU time and by bits: one thread between these two, all of them after. */
int ttn_blas_alone_begin(void)
{
    if (openblas_get_parallel() != TTN_BLAS_OPENMP || omp_in_parallel()) return 0;
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    return threads;
}

void ttn_blas_alone_end(int saved)
{
    if (saved > 0) omp_set_num_threads(saved);
}

/* ---- one product ---- */

static size_t offset(int64_t ld, ttn_dtype type, int64_t r, int64_t c)
{
    return (size_t)(r * ld + c) * ttn_dtype_size(type);
}

ttn_mat_in ttn_in_from(ttn_mat_in m, int64_t r, int64_t c)
{
    m.at = (const char *)m.at + offset(m.ld, m.type, r, c);
    return m;
}

ttn_mat_out ttn_out_from(ttn_mat_out m, int64_t r, int64_t c)
{
    m.at = (char *)m.at + offset(m.ld, m.type, r, c);
    return m;
}

static int blas_int(int64_t n)
{
    assert(n >= 0 && n <= INT_MAX && "rows beyond this go through ttn_gemm_rows or ttn_gemm_wgrad");
    return (int)n;
}

static CBLAS_TRANSPOSE blas_trans(ttn_trans t)
{
    return t == TTN_T ? CblasTrans : CblasNoTrans;
}

/* C = beta C, for products over nothing: not left to BLAS, which may reject the ld of an empty matrix. */
static void scale(int64_t m, int64_t n, double beta, ttn_mat_out c)
{
    if (beta == 1) return;
    for (int64_t r = 0; r < m; r++) {
        void *row = ttn_out_from(c, r, 0).at;
        for (int64_t j = 0; j < n; j++)
            if (c.type == TTN_F64)
                ((double *)row)[j] = beta == 0 ? 0 : beta * ((double *)row)[j];
            else
                ((float *)row)[j] = beta == 0 ? 0 : (float)beta * ((float *)row)[j];
    }
}

void ttn_gemm(ttn_trans ta, ttn_trans tb, int64_t m, int64_t n, int64_t k, double alpha, ttn_mat_in a, ttn_mat_in b,
              double beta, ttn_mat_out c)
{
    c.type = ttn_dtype_stored(c.type);
    assert(ttn_dtype_stored(a.type) == c.type && ttn_dtype_stored(b.type) == c.type);
    assert(c.type == TTN_F32 || c.type == TTN_F64);
    assert(atomic_load_explicit(&started_for, memory_order_relaxed) != 0 && "ttn_start comes before any product");
    if (m == 0 || n == 0) return;
    if (k == 0) {
        scale(m, n, beta, c);
        return;
    }
    int saved = ttn_blas_alone_begin();
    if (c.type == TTN_F64)
        cblas_dgemm(CblasRowMajor, blas_trans(ta), blas_trans(tb), blas_int(m), blas_int(n), blas_int(k), alpha, a.at,
                    blas_int(a.ld), b.at, blas_int(b.ld), beta, c.at, blas_int(c.ld));
    else
        cblas_sgemm(CblasRowMajor, blas_trans(ta), blas_trans(tb), blas_int(m), blas_int(n), blas_int(k), (float)alpha,
                    a.at, blas_int(a.ld), b.at, blas_int(b.ld), (float)beta, c.at, blas_int(c.ld));
    ttn_blas_alone_end(saved);
}
