/* Is the arithmetic of this BLAS right, here and now? Three questions, answered before anything is computed with it:
 * are products right (a kernel can be consistently wrong), do calls from all threads at once give what the same calls give
 * alone, and does a row keep its bits from one whole tile to another. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/blas.h"
#include "core/gemm.h"

/* Small enough for 5 ms (the plain loops most of it), with whole and broken blocks of every kernel; on AVX-512, products below 10^6 multiplications
 * take another path than those above. */
static const struct shape {
    ttn_trans ta, tb;
    int64_t m, n, k;
} shapes[] = {
    {TTN_N, TTN_N, 1, 1, 1},      {TTN_N, TTN_N, 33, 47, 65},   {TTN_N, TTN_N, 120, 96, 100},
    {TTN_N, TTN_N, 12, 100, 100}, {TTN_N, TTN_N, 64, 3, 100},   {TTN_N, TTN_N, 5, 64, 240},
    {TTN_N, TTN_T, 64, 64, 64},   {TTN_N, TTN_T, 96, 112, 7},   {TTN_N, TTN_T, 97, 128, 96},
    {TTN_N, TTN_T, 128, 16, 24},  {TTN_T, TTN_N, 48, 96, 80},   {TTN_T, TTN_N, 24, 24, 240},
    {TTN_T, TTN_N, 96, 50, 240},  {TTN_T, TTN_N, 17, 17, 1000}, {TTN_T, TTN_T, 31, 29, 37},
    {TTN_T, TTN_T, 64, 48, 32},
};

enum {
    N_SHAPE = sizeof shapes / sizeof *shapes,
    MAX_IN = 25000,  /* elements of the largest A or B above */
    MAX_OUT = 16384, /* of the largest C */
    MAX_COLS = 128,
    WIDE = 512, /* columns and inner dimension of the row tiles */
    DEEP = 48,
    SAME = 96, /* where a few rows stand in both tiles */
    N_SAME = 24,
};

/* One type's worth of memory, all of it from one allocation. */
typedef struct {
    ttn_dtype type;
    int n_thread;
    double *a64, *b64; /* (MAX_IN) */
    void *a, *b;       /* (MAX_IN) */
    void *alone;       /* (N_SHAPE, MAX_OUT) */
    void *at_once;     /* (n_thread, MAX_OUT) */
    void *rows;        /* (TTN_ROW_TILE, DEEP) */
    void *weight;      /* (DEEP, WIDE) or (WIDE, DEEP) */
    void *out, *out2;  /* (TTN_ROW_TILE, WIDE) */
} desk;

/* m from element `at` on. */
static void *from(ttn_dtype type, void *m, int64_t at)
{
    return (char *)m + (size_t)at * ttn_dtype_size(type);
}

static int desk_create(ttn_dtype type, int n_thread, desk *ret, void **ret_memory)
{
    void **part[] = {&ret->a, &ret->b, &ret->alone, &ret->at_once, &ret->rows, &ret->weight, &ret->out, &ret->out2};
    const int64_t n[] = {MAX_IN,
                         MAX_IN,
                         (int64_t)N_SHAPE * MAX_OUT,
                         (int64_t)n_thread * MAX_OUT,
                         (int64_t)TTN_ROW_TILE * DEEP,
                         (int64_t)DEEP * WIDE,
                         (int64_t)TTN_ROW_TILE * WIDE,
                         (int64_t)TTN_ROW_TILE * WIDE};
    int64_t total = 0;
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        total += n[i];
    double *memory = malloc(2 * MAX_IN * sizeof *memory + (size_t)total * ttn_dtype_size(type));
    *ret_memory = memory;
    if (!memory) return 0;
    ret->type = type;
    ret->n_thread = n_thread;
    ret->a64 = memory;
    ret->b64 = memory + MAX_IN;
    void *next = memory + 2 * (size_t)MAX_IN;
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        *part[i] = next;
        next = from(type, next, n[i]);
    }
    return 1;
}

/* ---- numbers ---- */

/* Uniform in (-1, 1) with every bit of a double in use: sums of short numbers are exact in any order, and would hide all
 * that is looked for here. splitmix64 of the element's number. */
static double number(uint64_t seed, int64_t at)
{
    uint64_t z = (seed << 32) + ((uint64_t)at + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(int64_t)z * 0x1p-63;
}

static double get(ttn_dtype type, const void *m, int64_t at)
{
    return type == TTN_F64 ? ((const double *)m)[at] : (double)((const float *)m)[at];
}

static void put(ttn_dtype type, void *m, int64_t at, double value)
{
    if (type == TTN_F64)
        ((double *)m)[at] = value;
    else
        ((float *)m)[at] = (float)value;
}

static void fill(ttn_dtype type, void *m, int64_t n, uint64_t seed)
{
    for (int64_t e = 0; e < n; e++)
        put(type, m, e, number(seed, e));
}

static void fill_nan(ttn_dtype type, void *m, int64_t n)
{
    for (int64_t e = 0; e < n; e++)
        put(type, m, e, (double)NAN);
}

/* ---- are they right? ---- */

static void multiply(const desk *w, const struct shape *s, void *c)
{
    int64_t lda = s->ta == TTN_T ? s->m : s->k;
    int64_t ldb = s->tb == TTN_T ? s->k : s->n;
    ttn_gemm(s->ta, s->tb, s->m, s->n, s->k, 1, ttn_in_of(w->type, w->a, lda), ttn_in_of(w->type, w->b, ldb), 0,
             ttn_out_of(w->type, c, s->n));
}

/* op(M) (rows, cols) in double, as plain loops want it. */
static void unfold(ttn_dtype type, const void *m, ttn_trans t, int64_t rows, int64_t cols, double *ret)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            ret[r * cols + c] = get(type, m, t == TTN_T ? c * rows + r : r * cols + c);
}

/* sum (n) = row a (k) times B (k, n), size (n) the same for absolute values. */
static void plain_row(int64_t n, int64_t k, const double *a, const double *b, double *sum, double *size)
{
    memset(sum, 0, (size_t)n * sizeof *sum);
    memset(size, 0, (size_t)n * sizeof *size);
    for (int64_t e = 0; e < k; e++)
        for (int64_t j = 0; j < n; j++) {
            sum[j] += a[e] * b[e * n + j];
            size[j] += fabs(a[e] * b[e * n + j]);
        }
}

/* The largest |c - plain loops| / sum |a b| over one product; infinite when a number is NaN. */
static double error_of(const desk *w, const struct shape *s, const void *c)
{
    double sum[MAX_COLS], size[MAX_COLS];
    double worst = 0;
    unfold(w->type, w->a, s->ta, s->m, s->k, w->a64);
    unfold(w->type, w->b, s->tb, s->k, s->n, w->b64);
    for (int64_t r = 0; r < s->m; r++) {
        plain_row(s->n, s->k, w->a64 + r * s->k, w->b64, sum, size);
        for (int64_t j = 0; j < s->n; j++) {
            double error = fabs(get(w->type, c, r * s->n + j) - sum[j]) / size[j];
            if (!(error <= worst)) worst = isnan(error) ? (double)INFINITY : error;
        }
    }
    return worst;
}

static const char *letter(ttn_trans t)
{
    return t == TTN_T ? "T" : "N";
}

static ttn_status check_products(const desk *w, const char *kernel, double *ret_worst, ttn_error *err)
{
    /* A sum of k = 1,000 terms in f32 may be off by 6e-5 of their size, and is by 1e-7; a wrong kernel, by 1e-2 or more.
     * The plain loops in double are off by as much as an f64 kernel. */
    const double bound = w->type == TTN_F64 ? 1e-13 : 1e-5;
    *ret_worst = 0;
    for (int i = 0; i < N_SHAPE; i++) {
        const struct shape *s = &shapes[i];
        void *c = from(w->type, w->alone, (int64_t)i * MAX_OUT);
        fill_nan(w->type, c, s->m * s->n);
        multiply(w, s, c);
        double error = error_of(w, s, c);
        if (error > *ret_worst) *ret_worst = error;
        if (error > bound)
            return TTN_FAIL(
                err, TTN_ENUMERIC,
                "OpenBLAS kernel '%s' is wrong: %s product %s%s of %" PRId64 " x %" PRId64 " x %" PRId64
                " is off by %.1e, at most %.0e is rounding; install another version, or choose another kernel "
                "with OPENBLAS_CORETYPE",
                kernel, ttn_dtype_name(w->type), letter(s->ta), letter(s->tb), s->m, s->n, s->k, error, bound);
    }
    return TTN_OK;
}

/* ---- from all threads at once? ---- */

static ttn_status check_threads(const desk *w, const char *kernel, ttn_error *err)
{
    const size_t size = ttn_dtype_size(w->type);
    int64_t differ = 0;
#pragma omp parallel for num_threads(w->n_thread) schedule(static) reduction(+ : differ)
    for (int t = 0; t < w->n_thread; t++)
        for (int i = 0; i < N_SHAPE; i++) {
            int at = (i + t) % N_SHAPE; /* different shapes meet */
            void *c = from(w->type, w->at_once, (int64_t)t * MAX_OUT);
            multiply(w, &shapes[at], c);
            differ += memcmp(c, from(w->type, w->alone, (int64_t)at * MAX_OUT),
                             (size_t)(shapes[at].m * shapes[at].n) * size) != 0;
        }
    if (differ == 0) return TTN_OK;
    return TTN_FAIL(err, TTN_ENUMERIC,
                    "OpenBLAS (kernel '%s') returns other products when %d threads call it at once (%" PRId64
                    " of %d %s products); install another version, or run with one thread",
                    kernel, w->n_thread, differ, w->n_thread * N_SHAPE, ttn_dtype_name(w->type));
}

/* ---- does a row keep its bits? ---- */

static void multiply_tile(const desk *w, ttn_trans tb, int64_t n, void *out)
{
    ttn_gemm(TTN_N, tb, TTN_ROW_TILE, n, DEEP, 1, ttn_in_of(w->type, w->rows, DEEP),
             ttn_in_of(w->type, w->weight, tb == TTN_T ? DEEP : n), 0, ttn_out_of(w->type, out, n));
}

static int has_period(const void *out, size_t row_bytes, int period)
{
    return memcmp(out, (const char *)out + (size_t)period * row_bytes, (size_t)(TTN_ROW_TILE - period) * row_bytes) ==
           0;
}

/* All rows of A equal: how far apart are rows of C that are? */
static int row_period(const desk *w, ttn_trans tb, int64_t n)
{
    for (int64_t r = 0; r < TTN_ROW_TILE; r++)
        fill(w->type, from(w->type, w->rows, r * DEEP), DEEP, 3);
    multiply_tile(w, tb, n, w->out);
    int period = 1;
    while (period < TTN_ROW_TILE && !has_period(w->out, (size_t)n * ttn_dtype_size(w->type), period))
        period++;
    return period;
}

/* The same rows at the same place of two tiles, all others different. */
static int keeps_rows(const desk *w, ttn_trans tb, int64_t n)
{
    fill(w->type, w->rows, TTN_ROW_TILE * DEEP, 4);
    multiply_tile(w, tb, n, w->out);
    fill(w->type, w->rows, SAME * DEEP, 5);
    fill(w->type, from(w->type, w->rows, (SAME + N_SAME) * DEEP), (TTN_ROW_TILE - SAME - N_SAME) * DEEP, 6);
    multiply_tile(w, tb, n, w->out2);
    return memcmp(from(w->type, w->out, SAME * n), from(w->type, w->out2, SAME * n),
                  (size_t)(N_SAME * n) * ttn_dtype_size(w->type)) == 0;
}

static int common_multiple(int a, int b)
{
    int both = a;
    while (both % b != 0)
        both += a;
    return both < TTN_ROW_TILE ? both : TTN_ROW_TILE;
}

static ttn_status check_rows(const desk *w, int known_period, const char *kernel, int *ret_period, ttn_error *err)
{
    static const struct {
        ttn_trans tb;
        int64_t n;
    } cases[] = {{TTN_N, 33}, {TTN_N, WIDE}, {TTN_T, 33}, {TTN_T, WIDE}};
    int period = 1;
    fill(w->type, w->weight, DEEP * WIDE, 7);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!keeps_rows(w, cases[i].tb, cases[i].n))
            return TTN_FAIL(
                err, TTN_ENUMERIC,
                "OpenBLAS kernel '%s' gives a row other bits when other rows of its %s product change (N%s, "
                "%" PRId64 " columns): no result could be repeated",
                kernel, ttn_dtype_name(w->type), letter(cases[i].tb), cases[i].n);
        period = common_multiple(period, row_period(w, cases[i].tb, cases[i].n));
    }
    *ret_period = period;
    if (known_period == 0 || known_period % period == 0) return TTN_OK;
    return TTN_FAIL(
        err, TTN_ENUMERIC,
        "OpenBLAS kernel '%s' gives rows of a %s product bits with period %d, but is known for %d: sequences "
        "would change with their place in a batch",
        kernel, ttn_dtype_name(w->type), period, known_period);
}

ttn_status ttn_blas_check(int n_thread, ttn_dtype type, int known_period, const char *kernel, ttn_blas_measured *ret,
                          ttn_error *err)
{
    desk w;
    void *memory;
    if (!desk_create(type, n_thread, &w, &memory))
        return TTN_FAIL(err, TTN_ENOMEM, "no memory for the self-check of the BLAS with %d threads", n_thread);
    fill(type, w.a, MAX_IN, 1);
    fill(type, w.b, MAX_IN, 2);
    ttn_status status = check_products(&w, kernel, &ret->worst, err);
    if (status == TTN_OK) status = check_threads(&w, kernel, err);
    if (status == TTN_OK) status = check_rows(&w, known_period, kernel, &ret->row_period, err);
    free(memory);
    return status;
}
