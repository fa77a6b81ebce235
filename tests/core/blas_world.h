/* What the tests of products share: numbers, plain loops, the flavours and kernels that can be tried here. */
#ifndef TTN_BLAS_WORLD_H
#define TTN_BLAS_WORLD_H

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/blas.h"
#include "core/gemm.h"
#include "tests/harness/test.h"

/* ---- numbers ---- */

/* Uniform in (-1, 1) with all 53 bits in use (splitmix64 of the element's number): products of short random numbers
 * are exact in any order, and every test of an order would pass. */
static inline double number(uint64_t seed, int64_t at)
{
    uint64_t z = seed * 0xD1342543DE82EF95u + ((uint64_t)at + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(int64_t)z * 0x1p-63;
}

static inline void fill(real *x, int64_t n, uint64_t seed)
{
    for (int64_t e = 0; e < n; e++)
        x[e] = (real)number(seed, e);
}

static inline void fill_with(real *x, int64_t n, double value)
{
    for (int64_t e = 0; e < n; e++)
        x[e] = (real)value;
}

/* Never NULL. */
static inline void *room(int64_t n, size_t size)
{
    void *p = calloc((size_t)n + 1, size);
    assert_non_null(p);
    return p;
}

static inline real *numbers(int64_t n, uint64_t seed)
{
    real *x = room(n, sizeof *x);
    fill(x, n, seed);
    return x;
}

/* ---- plain loops ---- */

/* Element (r, c) of op(M), in double. */
static inline double element(ttn_mat_in m, ttn_trans t, int64_t r, int64_t c)
{
    int64_t at = t == TTN_T ? c * m.ld + r : r * m.ld + c;
    return ttn_dtype_stored(m.type) == TTN_F64 ? ((const double *)m.at)[at] : (double)((const float *)m.at)[at];
}

/* The largest error of C (m, n) = alpha op(A) op(B) + beta C0, relative to the sum of the absolute values of its terms,
 * in units of what rounding may do: 6 sqrt(k) eps for k terms whose errors have random signs (a term left out would be
 * 1 / k of the sum: seen up to k = 10^4 in f32). At most 1 is right. */
static inline double error_of(ttn_trans ta, ttn_trans tb, int64_t m, int64_t n, int64_t k, double alpha, ttn_mat_in a,
                              ttn_mat_in b, double beta, ttn_mat_in c0, ttn_mat_in c)
{
    double eps = ttn_dtype_stored(c.type) == TTN_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    double worst = 0;
    double *sum = room(n, sizeof *sum), *size = room(n, sizeof *size);
    for (int64_t r = 0; r < m; r++) {
        for (int64_t j = 0; j < n; j++) {
            sum[j] = beta == 0 ? 0 : beta * element(c0, TTN_N, r, j);
            size[j] = fabs(sum[j]);
        }
        for (int64_t e = 0; e < k; e++) {
            double x = alpha * element(a, ta, r, e);
            for (int64_t j = 0; j < n; j++) {
                double term = x * element(b, tb, e, j);
                sum[j] += term;
                size[j] += fabs(term);
            }
        }
        for (int64_t j = 0; j < n; j++) {
            double off = fabs(element(c, TTN_N, r, j) - sum[j]);
            double error = off == 0 ? 0 : off / (size[j] * 6 * sqrt((double)k + 1) * eps);
            if (!(error <= worst)) worst = isnan(error) ? (double)INFINITY : error;
        }
    }
    free(sum);
    free(size);
    return worst;
}

/* FNV-1a: two runs computed the same bits. */
static inline uint64_t digest(uint64_t so_far, const void *x, size_t bytes)
{
    const unsigned char *c = x;
    for (size_t i = 0; i < bytes; i++)
        so_far = (so_far ^ c[i]) * 0x100000001B3u;
    return so_far;
}

/* ---- the environment of a child ---- */

/* "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp", or skips the test. */
static inline const char *flavour_path(const char *flavour)
{
    static char text[512];
    char pattern[128];
    snprintf(pattern, sizeof pattern, "/usr/lib/*/openblas-%s/libopenblas.so.0", flavour);
    glob_t found;
    int there = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
    if (there) {
        int folder = (int)(strrchr(found.gl_pathv[0], '/') - found.gl_pathv[0]);
        snprintf(text, sizeof text, "LD_LIBRARY_PATH=%.*s", folder, found.gl_pathv[0]);
    }
    globfree(&found);
    if (!there) skip_because("libopenblas0-%s is not installed", flavour);
    return text;
}

/* "OPENBLAS_CORETYPE=Haswell", or skips the test when this processor cannot run it. */
static inline const char *kernel_setting(const char *kernel)
{
    static char text[64];
#if !defined(__x86_64__)
    skip_because("the kernel %s is not for this family of processors", kernel);
#endif
    char lacks[128];
    const ttn_cpu_set missing = ttn_blas_kernel_lacks(kernel, ttn_cpu_present());
    if (missing) skip_because("the kernel %s needs %s", kernel, ttn_cpu_names(missing, lacks, sizeof lacks));
    snprintf(text, sizeof text, "OPENBLAS_CORETYPE=%s", kernel);
    return text;
}

/* This program again, as the child called name, with up to two settings; NULL: none. */
static inline ttn_child run_again(const char *name, const char *arg, const char *setting, const char *setting2)
{
    const char *const argv[] = {ttn_test_self(), "--child", name, arg, NULL};
    const char *const environment[] = {setting, setting2, NULL};
    return ttn_run_program((ttn_child_limit){.seconds = 120, .environment = environment}, argv);
}

static inline void assert_child_is_content(const ttn_child *c)
{
    if (!c->exited || c->exit_code != 0)
        print_error("child: exit code %d, signal %d: %s\n", c->exit_code, c->signal, c->output);
    assert_true(c->exited);
    assert_int_equal(c->exit_code, 0);
}

#endif
