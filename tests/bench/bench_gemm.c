/* Products with many rows beside one plain product of the same shape, with as many threads; what denormals cost. */
#include <stdio.h>
#include <stdlib.h>
#include "core/blas.h"
#include "core/fp.h"
#include "core/gemm.h"
#include "tests/bench/bench.h"

/* OpenBLAS's own threads, for the plain product beside ours; of the pthread flavour only (core/blas.c). */
void openblas_set_num_threads(int n);

enum { ROWS = 9600, MAX_WIDTH = 2048, MAX_THREADS = 2 };

typedef struct {
    int n_thread;
    ttn_trans tb;
    int64_t n, k; /* C (ROWS, n) = A (ROWS, k) op(B); or dW (n, k) = C^T A */
} product;

static real *a, *b, *c;
static void *work;

static void plain_rows(void *arg)
{
    const product *p = arg;
    if (p->n_thread > 1) openblas_set_num_threads(p->n_thread);
    ttn_gemm(TTN_N, p->tb, ROWS, p->n, p->k, 1, ttn_in(a, p->k), ttn_in(b, p->tb == TTN_T ? p->k : p->n), 0,
             ttn_out(c, p->n));
    if (p->n_thread > 1) openblas_set_num_threads(1);
}

static void our_rows(void *arg)
{
    const product *p = arg;
    ttn_gemm_rows(p->n_thread, p->tb, ROWS, ROWS, p->n, p->k, ttn_in(a, p->k), ttn_in(b, p->tb == TTN_T ? p->k : p->n),
                  0, ttn_out(c, p->n));
}

static void plain_wgrad(void *arg)
{
    const product *p = arg;
    if (p->n_thread > 1) openblas_set_num_threads(p->n_thread);
    ttn_gemm(TTN_T, TTN_N, p->n, p->k, ROWS, 1, ttn_in(c, p->n), ttn_in(a, p->k), 0, ttn_out(b, p->k));
    if (p->n_thread > 1) openblas_set_num_threads(1);
}

static void our_wgrad(void *arg)
{
    const product *p = arg;
    ttn_gemm_wgrad(p->n_thread, ROWS, ROWS, p->n, p->k, ttn_in(c, p->n), ttn_in(a, p->k), 0, ttn_out(b, p->k), work);
}

static void compare(int n_thread, int64_t n, int64_t k, double goal)
{
    product forward = {.n_thread = n_thread, .tb = TTN_T, .n = n, .k = k};
    product backward = {.n_thread = n_thread, .tb = TTN_N, .n = n, .k = k};
    const double work_done = 2e-9 * ROWS * (double)n * (double)k;
    const bench_row rows[] = {
        {.name = "one product NT", .run = plain_rows, .arg = &forward, .work = work_done, .unit = "GF/s"},
        {.name = "ttn_gemm_rows NT", .run = our_rows, .arg = &forward, .work = work_done, .unit = "GF/s", .goal = goal},
    };
    const bench_row back[] = {
        {.name = "one product NN", .run = plain_rows, .arg = &backward, .work = work_done, .unit = "GF/s"},
        {.name = "ttn_gemm_rows NN",
         .run = our_rows,
         .arg = &backward,
         .work = work_done,
         .unit = "GF/s",
         .goal = goal},
    };
    const bench_row sums[] = {
        {.name = "one product TN", .run = plain_wgrad, .arg = &forward, .work = work_done, .unit = "GF/s"},
        {.name = "ttn_gemm_wgrad", .run = our_wgrad, .arg = &forward, .work = work_done, .unit = "GF/s", .goal = goal},
    };
    char what[96];
    snprintf(what, sizeof what, "%d rows, %dx%d, %d thread%s", ROWS, (int)n, (int)k, n_thread, n_thread > 1 ? "s" : "");
    bench_compare(what, rows, 2);
    if (goal > 0) bench_compare(what, back, 2);
    bench_compare(what, sums, 2);
}

/* ---- denormals ---- */

static real *some_denormal;

static void plain_numbers(void *arg)
{
    const product *p = arg;
    ttn_gemm(TTN_N, TTN_N, TTN_ROW_TILE, p->n, p->k, 1, ttn_in(a, p->k), ttn_in(b, p->n), 0, ttn_out(c, p->n));
}

static void with_denormals(void *arg)
{
    const product *p = arg;
    ttn_gemm(TTN_N, TTN_N, TTN_ROW_TILE, p->n, p->k, 1, ttn_in(some_denormal, p->k), ttn_in(b, p->n), 0,
             ttn_out(c, p->n));
}

static void with_flushed_denormals(void *arg)
{
    uint64_t saved = ttn_fp_begin();
    with_denormals(arg);
    ttn_fp_end(saved);
}

static void compare_denormals(void)
{
    product p = {.n = 512, .k = 512};
    for (int64_t e = 0; e < TTN_ROW_TILE * p.k; e++)
        some_denormal[e] = e % 10 ? a[e] : (sizeof(real) == sizeof(float) ? (real)1e-40 : (real)1e-310);
    const bench_row rows[] = {
        {.name = "no denormals", .run = plain_numbers, .arg = &p},
        {.name = "10 %, as they are", .run = with_denormals, .arg = &p},
        {.name = "10 %, ttn_fp_begin", .run = with_flushed_denormals, .arg = &p, .goal = 0.9},
    };
    bench_compare("denormals in A, 480 rows, 512x512", rows, 3);
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "gemm");
    ttn_error err = {0};
    ttn_blas_info info;
    if (ttn_blas_start(MAX_THREADS, &info, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        return ttn_status_exit(err.status);
    }
    if (info.warning[0]) { /* ratios on a slow kernel say nothing about the others */
        fprintf(stderr, "%s\n", info.warning);
        return TTN_EXIT_RESOURCE;
    }
    bench_note("%s, flavour %s, kernel %s", info.config, info.flavour_name, info.kernel);

    const size_t most = (size_t)ROWS * MAX_WIDTH;
    a = malloc(most * sizeof *a);
    b = malloc((size_t)MAX_WIDTH * MAX_WIDTH * sizeof *b);
    c = malloc(most * sizeof *c);
    some_denormal = malloc((size_t)TTN_ROW_TILE * 512 * sizeof *some_denormal);
    size_t work_bytes = 0;
    for (int64_t n = 64; n <= MAX_WIDTH; n *= 2)
        for (int64_t k = 64; k <= MAX_WIDTH; k *= 2)
            if (ttn_gemm_wgrad_work(ROWS, n, k) > work_bytes) work_bytes = ttn_gemm_wgrad_work(ROWS, n, k);
    work = malloc(work_bytes);
    if (!a || !b || !c || !some_denormal || !work) return 1;
    for (size_t e = 0; e < most; e++)
        c[e] = a[e] = (real)(e * 2654435761u % 1000) / 1000 - (real)0.5;
    for (size_t e = 0; e < (size_t)MAX_WIDTH * MAX_WIDTH; e++)
        b[e] = a[e];

    compare(1, 512, 512, 0.9);
    compare(1, 2048, 512, 0.9);
    if (info.flavour == TTN_BLAS_PTHREAD) {
        compare(2, 512, 512, 0.9);
        compare(2, 2048, 512, 0.9);
    } else {
        bench_note("two threads: only beside the pthread flavour's own");
    }
    compare(1, 512, 2048, 0);
    const int64_t widths[] = {64, 128, 256, 1024};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        compare(1, widths[i], widths[i], 0);
    compare_denormals();
    free(a);
    free(b);
    free(c);
    free(some_denormal);
    free(work);
    return bench_end();
}
