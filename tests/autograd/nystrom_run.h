/* Nystrom attention set up for tests: calls of an op without a plan, data on which A is far from singular, and the definition in
 * double. */
#ifndef TTN_NYSTROM_RUN_H
#define TTN_NYSTROM_RUN_H

#include <math.h>
#include <string.h>
#include "autograd/nystrom_inverse.h"
#include "autograd/ops.h"
#include "autograd/ops/attn_nystrom.h"
#include "core/blas.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/test.h"

enum { MOST_THREADS = 8, MOST_STATS = 240, IS_F32 = sizeof(real) == 4 };

/* ---- a call of an op, set up ---- */

typedef struct {
    const ttn_op *op;
    const void *attr;
    int64_t heads, C, rows; /* rows: the capacity */
    ttn_sig sig;
    ttn_feed feed;
    ttn_stream on;
    real *in[4], *out, *aux[3], *dout, *din[4];
    double stat[MOST_STATS];
    void *work;
} run;

static inline void *memory(size_t bytes)
{
    void *p = ttn_alloc(bytes > 0 ? bytes : 1);
    assert_non_null(p);
    return p;
}

static inline real *values(int64_t n)
{
    return memory((size_t)n * sizeof(real));
}

/* adds: the fourth input is there. kernel: of dwconv, whose second input is no value of rows. */
static inline void make(run *r, const ttn_op *op, const void *attr, int64_t heads, int64_t D, int adds,
                        const ttn_span *span, int64_t seqs)
{
    const int64_t used = seqs > 0 ? span[seqs - 1].first + span[seqs - 1].n : 0;
    const int64_t rows = (used + 479) / 480 * 480;
    *r = (run){.op = op, .attr = attr, .heads = heads, .C = heads * D, .rows = rows, .on = {.n_thread = 2}};
    r->sig = (ttn_sig){.attr = attr, .cap = {.rows = rows, .seqs = seqs}, .n_in = op->n_in};
    for (int i = 0; i < op->n_in; i++) {
        r->sig.in[i] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, rows, r->C, 0);
        if (i == 3 && !adds) r->sig.in[i].ndim = -1;
    }
    ttn_error err = {0};
    assert_ok(op->shape(&r->sig, &err), &err);
    assert_true(r->sig.n_stat <= MOST_STATS);
    r->feed = (ttn_feed){.used = {.rows = used, .seqs = seqs}, .span = span, .training = 1};
    size_t bytes = 0;
    for (int pass = 0; pass < 2; pass++) {
        const size_t each = ttn_work_align(r->sig.work[pass]) + MOST_THREADS * ttn_work_align(r->sig.work_thread[pass]);
        bytes = each > bytes ? each : bytes;
    }
    r->work = memory(bytes);
    for (int i = 0; i < op->n_in; i++) {
        r->in[i] = r->sig.in[i].ndim > 0 ? values(rows * r->C) : NULL;
        r->din[i] = r->sig.in[i].ndim > 0 ? values(rows * r->C) : NULL;
    }
    r->out = values(rows * r->C);
    r->dout = values(rows * r->C);
    for (int a = 0; a < r->sig.n_aux; a++)
        r->aux[a] = memory(ttn_desc_bytes(&r->sig.aux[a]));
}

static inline void make_nystrom(run *r, const ttn_attn_nystrom_options *attr, int64_t D, int adds, const ttn_span *span,
                                int64_t seqs)
{
    make(r, &ttn_op_attn_nystrom, attr, attr->heads, D, adds, span, seqs);
}

static inline void release(run *r)
{
    for (int i = 0; i < 4; i++) {
        ttn_free(r->in[i]);
        ttn_free(r->din[i]);
    }
    for (int a = 0; a < 3; a++)
        ttn_free(r->aux[a]);
    ttn_free(r->out);
    ttn_free(r->dout);
    ttn_free(r->work);
}

/* Normal numbers with all their bits. */
static inline void fill(real *x, int64_t n, uint64_t stream, double size)
{
    if (!x) return;
    ttn_rng_normal(ttn_test_seed() + 1000 * stream, 0, n, x);
    for (int64_t i = 0; i < n; i++)
        x[i] *= (real)size;
}

/* Queries and keys of this size: 1.5 makes a softmax of a few large weights. */
static inline void fill_all(run *r, uint64_t stream, double size)
{
    const int64_t n = r->feed.used.rows * r->C;
    for (int i = 0; i < 4; i++)
        fill(r->in[i], n, stream + (uint64_t)i, i < 2 ? size : 1);
    fill(r->dout, n, stream + 4, 1);
}

/* Queries and keys whose segments have means of their own, that differ from segment to segment and resemble each other
 * between q and k: A is far from singular, as it is not for white data. */
static inline void set_apart(run *r, int64_t landmarks, uint64_t stream)
{
    for (int64_t s = 0; s < r->feed.used.seqs; s++) {
        const ttn_span span = r->feed.span[s];
        if (span.n <= landmarks) continue;
        real *mean = values(landmarks * r->C);
        fill(mean, landmarks * r->C, stream + (uint64_t)s, 2);
        for (int64_t t = 0; t < span.n; t++)
            for (int64_t c = 0; c < r->C; c++)
                for (int i = 0; i < 2; i++) {
                    const real of_segment = mean[ttn_nystrom_segment_of(t, span.n, landmarks) * r->C + c];
                    real *x = &r->in[i][(span.first + t) * r->C + c];
                    *x = of_segment + *x / 2;
                }
        ttn_free(mean);
    }
}

static inline ttn_call call_of(run *r)
{
    ttn_call c = {.sig = &r->sig, .feed = &r->feed, .on = &r->on, .out = {r->out}, .work = r->work, .stat = r->stat};
    for (int i = 0; i < r->op->n_in; i++)
        c.in[i] = r->in[i];
    for (int a = 0; a < r->sig.n_aux; a++)
        c.aux[a] = r->aux[a];
    return c;
}

static inline void forward(run *r)
{
    ttn_error err = {0};
    const ttn_call c = call_of(r);
    assert_ok(r->op->cpu.forward(&c, &err), &err);
}

static inline void backward(run *r)
{
    ttn_error err = {0};
    ttn_call c = call_of(r);
    c.dout[0] = r->dout;
    for (int i = 0; i < r->op->n_in; i++)
        c.din[i] = r->din[i];
    assert_ok(r->op->cpu.backward(&c, &err), &err);
}

/* ---- the definition, in double ---- */

/* x[i] of head h, row t of sequence s. */
static inline const real *row_of(const run *r, const real *x, int64_t s, int64_t h, int64_t t)
{
    return x + (r->feed.span[s].first + t) * r->C + h * (r->C / r->heads);
}

/* Row-major products in double: c (m, n) = op(a) b. */
static inline void multiply(ttn_trans ta, ttn_trans tb, int64_t m, int64_t n, int64_t k, double alpha, const double *a,
                            const double *b, double beta, double *c)
{
    ttn_gemm(ta, tb, m, n, k, alpha, ttn_in_of(TTN_F64, a, ta == TTN_N ? k : m),
             ttn_in_of(TTN_F64, b, tb == TTN_N ? n : k), beta, ttn_out_of(TTN_F64, c, n));
}

static inline void softmax_rows(int64_t m, int64_t n, double *a)
{
    for (int64_t i = 0; i < m; i++) {
        double most = a[i * n];
        double sum = 0;
        for (int64_t t = 0; t < n; t++)
            most = fmax(most, a[i * n + t]);
        for (int64_t t = 0; t < n; t++) {
            a[i * n + t] = exp(a[i * n + t] - most);
            sum += a[i * n + t];
        }
        for (int64_t t = 0; t < n; t++)
            a[i * n + t] /= sum;
    }
}

/* 40 steps of Newton's iteration Z (2I - A Z): the pseudo-inverse, by another way than the library's. steps >= 0: so many of
 * cheb. */
static inline void invert(int64_t m, int steps, const double *a, double *z)
{
    double *p = memory((size_t)(2 * m * m) * sizeof *p);
    double *t = p + m * m;
    double c = 0;
    for (int64_t j = 0; j < m; j++) {
        double sum = 0;
        for (int64_t i = 0; i < m; i++)
            sum += a[i * m + j];
        c = fmax(c, sum);
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            z[i * m + j] = a[j * m + i] / c;
    for (int k = 0; k < (steps < 0 ? 40 : steps); k++) {
        multiply(TTN_N, TTN_N, m, m, m, 1, a, z, 0, p);
        if (steps < 0) {
            memset(t, 0, (size_t)(m * m) * sizeof *t);
            for (int64_t i = 0; i < m; i++)
                t[i * m + i] = 2;
            for (int64_t e = 0; e < m * m; e++)
                t[e] -= p[e];
        } else { /* 3I - 3P + P^2 */
            multiply(TTN_N, TTN_N, m, m, m, 1, p, p, 0, t);
            for (int64_t e = 0; e < m * m; e++)
                t[e] -= 3 * p[e];
            for (int64_t i = 0; i < m; i++)
                t[i * m + i] += 3;
        }
        memcpy(p, z, (size_t)(m * m) * sizeof *p);
        multiply(TTN_N, TTN_N, m, m, m, 1, p, t, 0, z);
    }
    ttn_free(p);
}

/* One head of one sequence, copied into doubles; rows behind n are zeros, as padding is. */
typedef struct {
    int64_t n, D, m;
    double *q, *k, *v, *out; /* (n, D) */
} dense;

static inline double *copy_of(const run *r, int input, int64_t s, int64_t h, int64_t n, int64_t D)
{
    double *x = memory((size_t)(n * D) * sizeof *x);
    for (int64_t t = 0; t < n; t++)
        for (int64_t d = 0; d < D; d++)
            x[t * D + d] = (double)row_of(r, r->in[input], s, h, t)[d];
    return x;
}

static inline dense dense_of(const run *r, int64_t s, int64_t h, int64_t m)
{
    dense d = {.n = r->feed.span[s].n, .D = r->C / r->heads, .m = m};
    d.q = copy_of(r, 0, s, h, d.n, d.D);
    d.k = copy_of(r, 1, s, h, d.n, d.D);
    d.v = copy_of(r, 2, s, h, d.n, d.D);
    d.out = memory((size_t)(d.n * d.D) * sizeof *d.out);
    return d;
}

static inline void dense_free(dense *d)
{
    ttn_free(d->q);
    ttn_free(d->k);
    ttn_free(d->v);
    ttn_free(d->out);
}

static inline void dense_exact(dense *d)
{
    double *p = memory((size_t)(d->n * d->n) * sizeof *p);
    multiply(TTN_N, TTN_T, d->n, d->n, d->D, 1 / sqrt((double)d->D), d->q, d->k, 0, p);
    softmax_rows(d->n, d->n, p);
    multiply(TTN_N, TTN_N, d->n, d->D, d->n, 1, p, d->v, 0, d->out);
    ttn_free(p);
}

/* The mean of rows [first, end), divided by `by`. */
static inline void mean(const dense *d, const double *x, int64_t first, int64_t end, int64_t by, double *to)
{
    memset(to, 0, (size_t)d->D * sizeof *to);
    for (int64_t t = first; t < end; t++)
        for (int64_t c = 0; c < d->D; c++)
            to[c] += x[t * d->D + c] / (double)by;
}

/* padded > 0: segments of padded / m rows of a sequence that is filled up with zeros to `padded` rows, which B does not see
 * but landmarks do. map (n, n): F Z B; may be NULL. */
static inline void dense_nystrom(dense *d, int steps, int64_t padded, double *map)
{
    const int64_t n = d->n;
    const int64_t m = d->m;
    const double scale = 1 / sqrt((double)d->D);
    double *x = memory((size_t)(2 * m * d->D) * sizeof *x);
    double *y = x + m * d->D;
    double *f = memory((size_t)(3 * n * m) * sizeof *f);
    double *b = f + n * m;
    double *fz = b + n * m;
    double *a = memory((size_t)(2 * m * m) * sizeof *a);
    double *z = a + m * m;
    double *c = memory((size_t)(2 * m * d->D) * sizeof *c);
    double *yc = c + m * d->D;
    for (int64_t j = 0; j < m; j++) {
        int64_t first = j * n / m;
        int64_t end = (j + 1) * n / m;
        int64_t by = end - first;
        if (padded > 0) {
            by = padded / m;
            first = j * by < n ? j * by : n;
            end = (j + 1) * by < n ? (j + 1) * by : n;
        }
        mean(d, d->q, first, end, by, x + j * d->D);
        mean(d, d->k, first, end, by, y + j * d->D);
    }
    multiply(TTN_N, TTN_T, n, m, d->D, scale, d->q, y, 0, f);
    softmax_rows(n, m, f);
    multiply(TTN_N, TTN_T, m, m, d->D, scale, x, y, 0, a);
    softmax_rows(m, m, a);
    multiply(TTN_N, TTN_T, m, n, d->D, scale, x, d->k, 0, b);
    softmax_rows(m, n, b);
    invert(m, steps, a, z);
    multiply(TTN_N, TTN_N, m, d->D, n, 1, b, d->v, 0, c);
    multiply(TTN_N, TTN_N, m, d->D, m, 1, z, c, 0, yc);
    multiply(TTN_N, TTN_N, n, d->D, m, 1, f, yc, 0, d->out);
    if (map) {
        multiply(TTN_N, TTN_N, n, m, m, 1, f, z, 0, fz);
        multiply(TTN_N, TTN_N, n, n, m, 1, fz, b, 0, map);
    }
    ttn_free(x);
    ttn_free(f);
    ttn_free(a);
    ttn_free(c);
}

/* Of one head's output: the largest difference, relative to the largest number. */
static inline double difference(const run *r, const dense *d, int64_t s, int64_t h)
{
    double worst = 0;
    double most = 0;
    for (int64_t t = 0; t < d->n; t++)
        for (int64_t c = 0; c < d->D; c++) {
            const double wanted = d->out[t * d->D + c];
            most = fmax(most, fabs(wanted));
            worst = fmax(worst, fabs((double)row_of(r, r->out, s, h, t)[c] - wanted));
        }
    return worst / most;
}

#endif
