/* The array functions of core/vec.h beside memcpy of the same bytes and beside the C library's function called in a
 * loop, for arrays that stay in the second cache and for arrays that do not stay in any. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/real.h"
#include "core/vec.h"
#include "tests/bench/bench.h"

typedef void array_function(int64_t n, const real *x, real *y);

typedef struct {
    int64_t n;
    const real *x;
    real *y;
    array_function *run;
} job;

static void run_copy(void *arg)
{
    const job *j = arg;
    memcpy(j->y, j->x, (size_t)j->n * sizeof *j->x);
}

static void run_function(void *arg)
{
    const job *j = arg;
    j->run(j->n, j->x, j->y);
}

static void libm_exp(int64_t n, const real *x, real *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = exp(x[i]);
}

static void libm_log(int64_t n, const real *x, real *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = log(x[i]);
}

static void libm_tanh(int64_t n, const real *x, real *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = tanh(x[i]);
}

static void libm_erf(int64_t n, const real *x, real *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = erf(x[i]);
}

/* What attention and gelu put in: exponents below the largest score, sums of exponentials, scaled activations. */
static const struct {
    const char *name;
    array_function *run, *libm;
    double lo, hi;
} functions[] = {
    {"exp", ttn_vec_exp, libm_exp, -20, 0},
    {"log", ttn_vec_log, libm_log, 0.01, 10},
    {"tanh", ttn_vec_tanh, libm_tanh, -4, 4},
    {"erf", ttn_vec_erf, libm_erf, -4, 4},
};

/* goal: times the rate of libm */
static void compare(int k, const char *size, int64_t n, double goal)
{
    /* In one block, y 1 KiB more than a number of pages after x: with malloc's 16 bytes more, memcpy is 20 times slower
     * on Zen 3. */
    enum { ALIGNED = 64, APART = 1024 };
    real *x = aligned_alloc(ALIGNED, 2 * (size_t)n * sizeof *x + APART);
    if (!x) {
        bench_note("%s: no memory for 2 arrays of %lld", size, (long long)n);
        return;
    }
    real *y = x + n + APART / (int64_t)sizeof *x;
    for (int64_t i = 0; i < n; i++) {
        double u = (double)(uint32_t)((uint32_t)i * 0x9e3779b9u) * 0x1p-32;
        x[i] = (real)(functions[k].lo + u * (functions[k].hi - functions[k].lo));
        y[i] = 0;
    }
    const char *name = functions[k].name;
    char what[64], libm_name[32], ours_name[32];
    snprintf(libm_name, sizeof libm_name, "libm's %s in a loop", name);
    snprintf(ours_name, sizeof ours_name, "ttn_vec_%s", name);
    job libm = {n, x, y, functions[k].libm}, ours = {n, x, y, functions[k].run};
    const double work = (double)n * 1e-9; /* G/s */
    bench_row against_libm[] = {
        {.name = libm_name, .run = run_function, .arg = &libm, .work = work, .unit = "G/s"},
        {.name = ours_name, .run = run_function, .arg = &ours, .work = work, .unit = "G/s", .goal = goal},
    };
    bench_row against_copy[] = {
        {.name = "memcpy", .run = run_copy, .arg = &ours, .work = work, .unit = "G/s"},
        {.name = ours_name, .run = run_function, .arg = &ours, .work = work, .unit = "G/s"},
    };
    snprintf(what, sizeof what, "%s " TTN_REAL_NAME ", %s, beside libm", name, size);
    bench_compare(what, against_libm, 2);
    snprintf(what, sizeof what, "%s " TTN_REAL_NAME ", %s, beside memcpy", name, size);
    bench_compare(what, against_copy, 2);
    free(x);
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "vec");
    const int64_t cached = (64 << 10) / (int64_t)sizeof(real), large = (64 << 20) / (int64_t)sizeof(real);
    for (int k = 0; k < (int)(sizeof functions / sizeof *functions); k++) {
        compare(k, "2 x 64 KiB", cached, sizeof(real) == 4 ? 4 : 2); /* doubles: half the lanes, twice the terms */
        compare(k, "2 x 64 MiB", large, 0);                          /* as fast as memory is */
    }
    return bench_end();
}
