/* Matrix products, and the rules by which OpenBLAS is started. core/blas.c is the only file that includes cblas.h.
 *
 * Threads are ours, BLAS has one: products are cut into tasks at borders that depend on shapes alone (core/gemm.h), so
 * results have the same bits for any number of threads. Everything is row-major.
 */
#ifndef TTN_BLAS_H
#define TTN_BLAS_H

#include <stddef.h>
#include <stdint.h>
#include "core/cpu.h"
#include "core/real.h"
#include "core/status.h"
#include "core/tensor.h"

TTN_EXTERN_C_BEGIN

/* ---- start ---- */

/* The value that OPENBLAS_CORETYPE must have before the process starts, so that OpenBLAS takes the kernel that fits this
 * processor; NULL: the loaded kernel is fine, or the user has set the variable. Call it after ttn_cpu_check. */
const char *ttn_blas_wanted_kernel(void);

/* The decision behind it: a processor with AVX2 that got the kernel `loaded`, which makes no use of it, should have this
 * one; NULL: fine. (0.3.21 takes Prescott, SSE3, on a Xeon of 2023: 5 to 8 times slower than SkylakeX.) A name that is
 * not in the table is taken for one newer than the table. */
const char *ttn_blas_kernel_for(const char *loaded, ttn_cpu_set present);

/* What this kernel needs and a processor with `present` lacks; 0: nothing that is known. OpenBLAS loads what OPENBLAS_CORETYPE
 * names, and ends in SIGILL where the processor cannot run it. */
ttn_cpu_set ttn_blas_kernel_lacks(const char *kernel, ttn_cpu_set present);

/* What openblas_get_parallel() answers; which one is loaded is the choice of Debian's alternatives, not the linker's. */
typedef enum { TTN_BLAS_SERIAL, TTN_BLAS_PTHREAD, TTN_BLAS_OPENMP } ttn_blas_flavour;

enum {
    TTN_BLAS_WARNING = 256,
    /* Threads that may call it at once. OpenBLAS lends each call a buffer: 0.3.21 as Debian builds it has 128. When all are
     * lent it adds 512 more, without a lock that would keep other calls waiting: on a busy machine one of some hundred
     * processes with 512 threads ended in SIGSEGV, behind "you tried to allocate too many memory regions". */
    TTN_BLAS_MAX_THREADS = 128,
};

/* What the self-check found, for each type. */
typedef struct {
    double worst;   /* largest error of a product, relative to the sum of its terms' absolute values */
    int row_period; /* in a whole row tile, equal rows r and r + period of A get equal bits in C; 1: all of them,
                       TTN_ROW_TILE: none. Known for common kernels, and then it must be that or a divisor */
} ttn_blas_measured;

typedef struct {
    ttn_blas_flavour flavour;
    const char *flavour_name; /* "serial", "pthread", "openmp" */
    const char *kernel;       /* "Zen"; this and config are OpenBLAS's own and live as long as the process */
    const char *config;       /* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH …" */
    const char *coretype;     /* OPENBLAS_CORETYPE, when it is set: not ours, valid until somebody sets it; else NULL */
    ttn_blas_measured f32, f64;
    char warning
        [TTN_BLAS_WARNING]; /* "", or one sentence: a slow kernel that the user chose, or one that is not what the
                                       user chose. Control characters are '?' */
} ttn_blas_info;

/* What is loaded, without starting it: of ret, what was measured and the warning stay empty. */
void ttn_blas_describe(ttn_blas_info *ret);

/* Once in a process, before any product; sets OpenBLAS to one thread of its own and checks its arithmetic (10 to 40 ms).
 * n_thread: how many threads will call it at once. ret may be NULL.
 *   TTN_EDEVICE   more than TTN_BLAS_MAX_THREADS threads, the serial flavour with more than one thread (it returns wrong
 *                 products: 400 to 1,900 of 24,000 concurrent calls), a flavour that keeps threads of its own, a kernel
 *                 below the processor that nobody chose: the sentence says what to install or to set
 *   TTN_ENUMERIC  the self-check failed: products differ from plain loops, or change when threads call at once, or with
 *                 the place of a row where it should not matter
 *   TTN_ENOMEM */
TTN_MUST_USE ttn_status ttn_blas_start(int n_thread, ttn_blas_info *ret, ttn_error *err);

/* Has ttn_blas_start found OpenBLAS fit for n_thread threads in this process, and is its rule still in force? TTN_EINVAL: no;
 * the sentence is the line to write. Every plan asks; ttn_gemm asserts the first half. Any thread. */
TTN_MUST_USE ttn_status ttn_blas_check_started(int n_thread, ttn_error *err);

/* Its last step alone, after ttn_blas_start: fills *ret for one type, TTN_F32 or TTN_F64. known_period: what the kernel's
 * row period must divide; 0: not known. `kernel` stands in messages. */
TTN_MUST_USE ttn_status ttn_blas_check(int n_thread, ttn_dtype type, int known_period, const char *kernel,
                                       ttn_blas_measured *ret, ttn_error *err);

/* ---- one product ---- */

typedef enum { TTN_N, TTN_T } ttn_trans; /* as it is; transposed */

/* A matrix in memory: element (r, c) at [r * ld + c], r * ld in 64 bits. */
typedef struct {
    const void *at;
    int64_t ld;
    ttn_dtype type;
} ttn_mat_in;

typedef struct {
    void *at;
    int64_t ld;
    ttn_dtype type;
} ttn_mat_out;

/* The build's own type, so that a call reads ttn_gemm(TTN_N, TTN_T, m, n, k, 1, ttn_in(q, ld), ttn_in(k, ld), 0, ttn_out(s, ls)). */
static inline ttn_mat_in ttn_in(const real *at, int64_t ld)
{
    return (ttn_mat_in){.at = at, .ld = ld, .type = TTN_REAL};
}
static inline ttn_mat_out ttn_out(real *at, int64_t ld)
{
    return (ttn_mat_out){.at = at, .ld = ld, .type = TTN_REAL};
}
static inline ttn_mat_in ttn_in_of(ttn_dtype type, const void *at, int64_t ld)
{
    return (ttn_mat_in){.at = at, .ld = ld, .type = type};
}
static inline ttn_mat_out ttn_out_of(ttn_dtype type, void *at, int64_t ld)
{
    return (ttn_mat_out){.at = at, .ld = ld, .type = type};
}

/* The same matrix from element (r, c) on. */
ttn_mat_in ttn_in_from(ttn_mat_in m, int64_t r, int64_t c);
ttn_mat_out ttn_out_from(ttn_mat_out m, int64_t r, int64_t c);

/* C (m, n) = alpha op(A) op(B) + beta C, on the calling thread, from inside a parallel region or outside of one.
 * op(A) is (m, k), op(B) (k, n). beta 0 does not read C. m, n or k may be 0: then only beta is applied.
 * All three are f32 or all three f64, in either build; other combinations (bf16 storage) are not there yet and asserted
 * against, as is an extent beyond INT_MAX: only rows grow that far, and core/gemm.h cuts them.
 *
 * Inside attention a product starts at its sequence's first token and always has the one zero-padded shape of its use,
 * with at most TTN_SUM_TILE rows where rows are summed over (op(A) = A^T): then its bits depend on neither the
 * neighbours of the sequence nor its length. What was measured on the Haswell, Zen, SkylakeX and Cooperlake kernels:
 * a sum over rows keeps its bits in zero-padded tiles of 96, 192 and 240 rows, not of 480 (OpenBLAS cuts the inner
 * dimension into blocks), and not when k is the exact number of rows; ld, misalignment and beta 1 onto zeros are free. */
void ttn_gemm(ttn_trans ta, ttn_trans tb, int64_t m, int64_t n, int64_t k, double alpha, ttn_mat_in a, ttn_mat_in b,
              double beta, ttn_mat_out c);

/* ---- LAPACK ----
 *
 * Debian's OpenBLAS has the Fortran symbols but neither LAPACKE nor a header. Matrices are column-major; an argument that
 * is a character has a hidden length after the last one. Between these two calls, as everything in LAPACK calls BLAS: */

/* From here to ttn_blas_alone_end(what it returned), OpenBLAS uses the calling thread alone, in every flavour. (The
 * OpenMP flavour would start a region of its own, and the number of threads would reach the bits.) Nests. */
int ttn_blas_alone_begin(void);
void ttn_blas_alone_end(int saved);

void sgeqrf_(const int *m, const int *n, float *a, const int *lda, float *tau, float *work, const int *lwork,
             int *info);
void dgeqrf_(const int *m, const int *n, double *a, const int *lda, double *tau, double *work, const int *lwork,
             int *info);
void sorgqr_(const int *m, const int *n, const int *k, float *a, const int *lda, const float *tau, float *work,
             const int *lwork, int *info);
void dorgqr_(const int *m, const int *n, const int *k, double *a, const int *lda, const double *tau, double *work,
             const int *lwork, int *info);
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t uplo_length);
void dpotrs_(const char *uplo, const int *n, const int *nrhs, const double *a, const int *lda, double *b,
             const int *ldb, int *info, size_t uplo_length);

TTN_EXTERN_C_END
#endif
