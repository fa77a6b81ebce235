/* One call of attention by random features, set up by hand: for the tests of that op. */
#ifndef TTN_FAVOR_RUN_H
#define TTN_FAVOR_RUN_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/ops.h"
#include "autograd/ops/favor.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/test.h"

enum { TILE = TTN_FAVOR_TILE, CHUNK_ROWS = TTN_FAVOR_CHUNK * TTN_FAVOR_TILE, MOST_THREADS = 8 };

enum {
    NORM_SUM = TTN_FAVOR_NORM_SUM,
    NORM_MOST = TTN_FAVOR_NORM_MOST,
    NORM_ROWS = TTN_FAVOR_NORM_ROWS,
    DENOMINATOR_LEAST = TTN_FAVOR_DENOMINATOR_LEAST,
    DENOMINATOR_NEGATIVE = TTN_FAVOR_DENOMINATOR_NEGATIVE,
    ROWS_GIVEN_UP = TTN_FAVOR_ROWS_GIVEN_UP,
    ERROR_HALVES = TTN_FAVOR_ERROR_HALVES,
    ERROR_UNIFORM = TTN_FAVOR_ERROR_UNIFORM,
    ERROR_SIZE = TTN_FAVOR_ERROR_SIZE,
    N_STAT = TTN_FAVOR_N_STAT,
};

typedef struct {
    ttn_attn_favor_options a;
    int64_t D, m, M, C, rows, used;
    ttn_sig sig;
    ttn_feed feed;
    ttn_stream on;
    real *in[4], *out, *aux[TTN_FAVOR_N_AUX], *dout, *din[3];
    double stat[N_STAT];
    void *work;
} run;

static inline void *piece(int64_t n, size_t size)
{
    void *p = ttn_alloc_array(n, size);
    assert_non_null(p);
    return p;
}

/* m 0: no projection. */
static inline void make(run *r, ttn_attn_favor_options a, int64_t D, int64_t m, const ttn_span *span, int64_t seqs)
{
    const int64_t used = span[seqs - 1].first + span[seqs - 1].n;
    const int64_t rows = (used + 479) / 480 * 480;
    *r = (run){.a = a, .D = D, .m = m > 0 ? m : D, .C = a.heads * D, .rows = rows, .used = used, .on = {.n_thread = 2}};
    r->M = r->m * ttn_favor_sides(a.kernel);
    r->sig = (ttn_sig){.attr = &r->a, .cap = {.rows = rows, .seqs = seqs}, .n_in = 4};
    for (int i = 0; i < 3; i++)
        r->sig.in[i] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, rows, r->C, 0);
    r->sig.in[3] = ttn_desc_of(TTN_REAL, TTN_FIXED, 3, a.heads, m, D);
    if (m == 0) r->sig.in[3].ndim = -1;
    ttn_error err = {0};
    assert_ok(ttn_op_attn_favor.shape(&r->sig, &err), &err);
    assert_int_equal(r->sig.n_stat, N_STAT);
    r->feed = (ttn_feed){.used = {.rows = used, .seqs = seqs}, .span = span, .training = 1};
    size_t bytes = 0;
    for (int pass = 0; pass < 2; pass++) {
        const size_t each = ttn_work_align(r->sig.work[pass]) + MOST_THREADS * ttn_work_align(r->sig.work_thread[pass]);
        bytes = each > bytes ? each : bytes;
    }
    r->work = piece((int64_t)bytes, 1);
    for (int i = 0; i < 3; i++) {
        r->in[i] = piece(rows * r->C, sizeof(real));
        r->din[i] = piece(rows * r->C, sizeof(real));
    }
    r->in[3] = piece(a.heads * r->m * D, sizeof(real));
    r->out = piece(rows * r->C, sizeof(real));
    r->dout = piece(rows * r->C, sizeof(real));
    for (int x = 0; x < TTN_FAVOR_N_AUX; x++)
        r->aux[x] = piece((int64_t)ttn_desc_bytes(&r->sig.aux[x]), 1);
}

static inline void release(run *r)
{
    for (int i = 0; i < 3; i++) {
        ttn_free(r->in[i]);
        ttn_free(r->din[i]);
    }
    ttn_free(r->in[3]);
    for (int x = 0; x < TTN_FAVOR_N_AUX; x++)
        ttn_free(r->aux[x]);
    ttn_free(r->out);
    ttn_free(r->dout);
    ttn_free(r->work);
}

/* Normal numbers times `size`, with all their bits. */
static inline void fill(real *x, int64_t n, double size, uint64_t seed, uint64_t stream)
{
    ttn_rng_normal(ttn_rng_key(seed, stream, 0), 0, n, x);
    for (int64_t i = 0; i < n; i++)
        x[i] *= (real)size;
}

/* |x|^2 and |y|^2 of about `norm`: x = D^(-1/4) q has D entries. */
static inline void fill_all(run *r, double norm, uint64_t seed, uint64_t stream)
{
    const double size = sqrt(norm / sqrt((double)r->D));
    for (int i = 0; i < 3; i++)
        fill(r->in[i], r->used * r->C, i < 2 ? size : 1, seed, 10 * stream + (uint64_t)i);
    fill(r->in[3], r->a.heads * r->m * r->D, 1, seed, 10 * stream + 3);
    fill(r->dout, r->used * r->C, 1, seed, 10 * stream + 4);
}

static inline ttn_call call_of(run *r)
{
    ttn_call c = {.sig = &r->sig, .feed = &r->feed, .on = &r->on, .out = {r->out}, .work = r->work, .stat = r->stat};
    for (int i = 0; i < 3; i++)
        c.in[i] = r->in[i];
    if (r->sig.in[3].ndim > 0) c.in[3] = r->in[3];
    for (int x = 0; x < TTN_FAVOR_N_AUX; x++)
        c.aux[x] = r->aux[x];
    return c;
}

static inline void forward(run *r)
{
    ttn_error err = {0};
    const ttn_call c = call_of(r);
    assert_ok(ttn_op_attn_favor.cpu.forward(&c, &err), &err);
}

static inline void backward(run *r)
{
    ttn_error err = {0};
    ttn_call c = call_of(r);
    c.dout[0] = r->dout;
    for (int i = 0; i < 3; i++)
        c.din[i] = r->din[i];
    assert_ok(ttn_op_attn_favor.cpu.backward(&c, &err), &err);
}

#endif
