/* ffn, the feed-forward block of a transformer:  y = h W2^T + b2,  x (N, C)   y (N, C)   W1, W3 (F, C)   W2 (C, F)
 *
 *     h = act(z + b1)               z = x W1^T
 *     h = act(z + b1) (u + b3)      u = x W3^T, where W3 is given: gated
 *                                   (Shazeer, GLU Variants Improve Transformer, 2020: SwiGLU with silu, GeGLU with gelu)
 * aux 0: z (N, F), gated z and u side by side (N, 2 F); spare
 * with dh = dy W2:
 *     dz = dh act'(z + b1) (u + b3)      du = dh act(z + b1)
 *     dx = dz W1 + du W3     dW1 = dz^T x     dW2 = dy^T h     dW3 = du^T x     db: sums over rows of dz, dy, du
 *
 * Everything is done by tiles of TTN_ROW_TILE rows: a thread makes z, h and y of one tile, or dz, du, h and dx of one
 * tile, and of the (N, F) matrices nothing but z and u is ever whole. They are read from aux 0 where the plan keeps it and
 * made again, by the same calls, where it does not; all else is the same, and so are the bits. At 2^20 rows of 512 and F
 * 2,048 aux 0 would be 8 GiB in f32; the tiles of a thread are 8 MiB.
 *
 * The biases are added where the activation reads z, in the first cache: filling z with b1 before the product, as linear
 * must, would be one more pass over the tile. */
#include <inttypes.h>
#include <limits.h>
#include <omp.h>
#include <string.h>
#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "autograd/ops/activation.h"
#include "autograd/ops/ffn.h"
#include "core/gemm.h"

enum {
    W1 = TTN_FFN_W1,
    B1 = TTN_FFN_B1,
    W2 = TTN_FFN_W2,
    B2 = TTN_FFN_B2,
    W3 = TTN_FFN_W3,
    B3 = TTN_FFN_B3,
    N_IN = TTN_FFN_N_IN,
};

typedef ttn_ffn_attributes attributes;
typedef ttn_ffn_dims dims;

/* ---- shape ---- */

static ttn_status want_matrix(const ttn_sig *s, int i, const char *name, const char *letters, int64_t a, int64_t b,
                              ttn_error *err)
{
    ttn_status status = ttn_want_shape(s, i, "ffn", name, letters, err);
    if (status != TTN_OK) return status;
    const ttn_desc *d = &s->in[i];
    if (d->axis == TTN_FIXED && d->dim[0] == a && d->dim[1] == b) return TTN_OK;
    char text[TTN_DESC_TEXT];
    return TTN_FAIL(err, TTN_EINVAL, "ffn: %s is %s, expected %s with C %" PRId64 ", the width of x, and F %" PRId64,
                    name, ttn_desc_print(d, text), letters, s->in[0].dim[1], s->in[W1].dim[0]);
}

static ttn_status want_bias(const ttn_sig *s, int i, const char *name, int64_t n, ttn_error *err)
{
    if (s->in[i].ndim < 0) return TTN_OK;
    ttn_status status = ttn_want_shape(s, i, "ffn", name, "(n)", err);
    if (status != TTN_OK) return status;
    if (s->in[i].axis == TTN_FIXED && s->in[i].dim[0] == n) return TTN_OK;
    char text[TTN_DESC_TEXT];
    return TTN_FAIL(err, TTN_EINVAL, "ffn: %s is %s, expected (%" PRId64 ")", name, ttn_desc_print(&s->in[i], text), n);
}

/* What backward needs, shared by all threads; bytes from the beginning of c->work. */
typedef struct {
    size_t w1, w2, w3; /* lanes of the weights' gradients */
    size_t biases;     /* (lanes, F) doubles, gated (lanes, 2 F): db1 and db3 */
    size_t rows;       /* ttn_sum_rows: db2 */
    size_t all;
} layout;

static layout layout_of(const dims *d)
{
    const size_t weight = ttn_work_align(ttn_gemm_wgrad_work(d->N, d->F, d->C));
    const size_t lanes = (size_t)ttn_gemm_wgrad_lanes(d->N, d->F, d->C);
    layout l = {.w1 = 0, .w2 = weight, .w3 = 2 * weight};
    l.biases = l.w3 + (d->gated ? weight : 0);
    l.rows = l.biases + ttn_work_align(lanes * (size_t)d->ld * sizeof(double));
    l.all = l.rows + ttn_sum_rows_work(d->N, d->C);
    return l;
}

/* A thread's own tiles (TTN_ROW_TILE, F), in forward: h (where aux 0 is left out z before it), u when that is not in
 * aux 0; in backward: */
typedef struct {
    real *d;       /* dh, then dz */
    real *h;       /* z, then h */
    real *e;       /* u, then du; gated */
    double *sum;   /* (F) of dz over the tile's rows, gated (2 F): of dz and of du */
    int64_t *tile; /* which; -1: none */
} scratch;

static size_t tile_bytes(const dims *d)
{
    return ttn_work_align((size_t)(TTN_ROW_TILE * d->F) * sizeof(real));
}

static scratch scratch_of(const ttn_call *c, const dims *d, int thread)
{
    const size_t tile = tile_bytes(d);
    char *at = ttn_thread_work(c, TTN_BACKWARD, thread);
    scratch s = {.d = (void *)at, .h = (void *)(at + tile), .e = d->gated ? (void *)(at + 2 * tile) : NULL};
    at += (d->gated ? 3 : 2) * tile;
    s.tile = (void *)at;
    s.sum = (void *)(at + ttn_work_align(sizeof *s.tile));
    return s;
}

static size_t scratch_bytes(const dims *d)
{
    return (d->gated ? 3 : 2) * tile_bytes(d) + ttn_work_align(sizeof(int64_t)) + (size_t)d->ld * sizeof(double);
}

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_shape(s, 0, "ffn", "x", "(N, C)", err);
    if (status == TTN_OK) status = ttn_want_shape(s, W1, "ffn", "W1", "(F, C)", err);
    if (status != TTN_OK) return status;
    const dims d = ttn_ffn_dims_of(s);
    if (d.C < 1 || d.F < 1)
        return TTN_FAIL(err, TTN_EINVAL, "ffn: x has width %" PRId64 " and W1 height %" PRId64 ", expected at least 1",
                        d.C, d.F);
    if (d.C > INT_MAX || d.ld > INT_MAX)
        return TTN_FAIL(err, TTN_EINVAL,
                        "ffn: x has width %" PRId64 ", the hidden layer %" PRId64 ", and BLAS counts to %d", d.C, d.ld,
                        INT_MAX);
    status = want_matrix(s, W1, "W1", "(F, C)", d.F, d.C, err);
    if (status == TTN_OK) status = want_matrix(s, W2, "W2", "(C, F)", d.C, d.F, err);
    if (status == TTN_OK && d.gated) status = want_matrix(s, W3, "W3", "(F, C)", d.F, d.C, err);
    if (status == TTN_OK) status = want_bias(s, B1, "b1", d.F, err);
    if (status == TTN_OK) status = want_bias(s, B2, "b2", d.C, err);
    if (status == TTN_OK) status = want_bias(s, B3, "b3", d.F, err);
    if (status != TTN_OK) return status;
    if (s->in[B3].ndim >= 0 && !d.gated) return TTN_FAIL(err, TTN_EINVAL, "ffn: there is a b3, but no W3");
    const ttn_activation act = ((const attributes *)s->attr)->act;
    if ((int)act < TTN_ACT_GELU_ERF || act > TTN_ACT_SILU)
        return TTN_FAIL(err, TTN_EINVAL, "ffn: activation number %d is none, expected %d to %d", (int)act,
                        (int)TTN_ACT_GELU_ERF, (int)TTN_ACT_SILU);
    s->n_out = 1;
    s->out[0] = s->in[0];
    s->n_aux = 1;
    s->aux[0] = ttn_desc_of(TTN_REAL, s->in[0].axis, 2, d.N, d.ld, 0);
    s->work[TTN_BACKWARD] = layout_of(&d).all;
    s->work_thread[TTN_FORWARD] = (d.gated ? 2 : 1) * tile_bytes(&d);
    s->work_thread[TTN_BACKWARD] = scratch_bytes(&d);
    return TTN_OK;
}

/* Products of 2 N C F flops: forward z, (u), y; backward dh, dx and dW1 (twice, gated), dW2, and z (u) when they are made
 * again. Of the activation, the usual 40 and 60 flops of gelu. In bytes: x, y and the weights, in and out, and aux 0; tiles
 * stay in a cache. */
static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    const dims d = ttn_ffn_dims_of(s);
    const double hidden = (double)d.N * (double)d.F;
    const double product = 2 * hidden * (double)d.C;
    const double weights = (double)d.C * (double)d.F * (d.gated ? 3 : 2);
    const double aux = aux_kept & TTN_BIT(0) ? (double)d.N * (double)d.ld : 0;
    const double values = (double)d.N * (double)d.C;
    if (pass == TTN_FORWARD) {
        const double flops = (d.gated ? 3 : 2) * product + 40 * hidden;
        return (ttn_cost){.done = flops, .useful = flops, .bytes = (2 * values + weights + aux) * (double)sizeof(real)};
    }
    const double useful = (d.gated ? 6 : 4) * product + 60 * hidden;
    const double again = aux_kept & TTN_BIT(0) ? 0 : (d.gated ? 2 : 1) * product;
    return (ttn_cost){
        .done = useful + again, .useful = useful, .bytes = (3 * values + 2 * weights + aux) * (double)sizeof(real)};
}

/* ---- tiles ---- */

static int64_t tile_rows(const dims *d, int64_t tile)
{
    return ttn_smaller(TTN_ROW_TILE, d->N - tile * TTN_ROW_TILE);
}

/* z and u of a tile; each NULL: not wanted. One shape of call in forward and backward, kept or not. */
static void make_hidden(const ttn_call *c, const dims *d, int64_t tile, real *z, real *u, int64_t ld)
{
    const int64_t rows = tile_rows(d, tile);
    const ttn_mat_in x = ttn_in((const real *)c->in[0] + tile * TTN_ROW_TILE * d->C, d->C);
    if (z) ttn_gemm(TTN_N, TTN_T, rows, d->F, d->C, 1, x, ttn_in(c->in[W1], d->C), 0, ttn_out(z, ld));
    if (u) ttn_gemm(TTN_N, TTN_T, rows, d->F, d->C, 1, x, ttn_in(c->in[W3], d->C), 0, ttn_out(u, ld));
}

/* ---- rows: a row of the hidden layer stays in the first cache through these loops ---- */

/* to = x + b; to may be x, b NULL */
static void add_bias(int64_t n, const real *x, const real *b, real *to)
{
    if (b) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            to[i] = x[i] + b[i];
    } else if (to != x) {
        memcpy(to, x, (size_t)n * sizeof *to);
    }
}

/* h = act(h). `act` is a constant in each of the loops that this becomes. */
static inline __attribute__((always_inline)) void value_loop(ttn_activation act, int64_t n, real *h)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        h[i] = ttn_act_value(act, h[i]);
}

static void values(ttn_activation act, int64_t n, real *h)
{
    switch (act) {
    case TTN_ACT_GELU_ERF:
        value_loop(TTN_ACT_GELU_ERF, n, h);
        return;
    case TTN_ACT_GELU_TANH:
        value_loop(TTN_ACT_GELU_TANH, n, h);
        return;
    case TTN_ACT_RELU:
        value_loop(TTN_ACT_RELU, n, h);
        return;
    case TTN_ACT_SILU:
        value_loop(TTN_ACT_SILU, n, h);
        return;
    }
}

/* h: z + b1, becomes act; d: dh, becomes dh act'. */
static inline __attribute__((always_inline)) void gradient_loop(ttn_activation act, int64_t n, real *h, real *d)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const ttn_ffn_element made = ttn_ffn_plain(act, h[i], d[i]);
        h[i] = made.h;
        d[i] = made.dz;
    }
}

static void gradients(ttn_activation act, int64_t n, real *h, real *d)
{
    switch (act) {
    case TTN_ACT_GELU_ERF:
        gradient_loop(TTN_ACT_GELU_ERF, n, h, d);
        return;
    case TTN_ACT_GELU_TANH:
        gradient_loop(TTN_ACT_GELU_TANH, n, h, d);
        return;
    case TTN_ACT_RELU:
        gradient_loop(TTN_ACT_RELU, n, h, d);
        return;
    case TTN_ACT_SILU:
        gradient_loop(TTN_ACT_SILU, n, h, d);
        return;
    }
}

/* The same with a gate. e: u + b3, becomes du. */
static inline __attribute__((always_inline)) void gated_loop(ttn_activation act, int64_t n, real *h, real *d, real *e)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const ttn_ffn_element made = ttn_ffn_gated(act, h[i], e[i], d[i]);
        h[i] = made.h;
        d[i] = made.dz;
        e[i] = made.du;
    }
}

static void gated_gradients(ttn_activation act, int64_t n, real *h, real *d, real *e)
{
    switch (act) {
    case TTN_ACT_GELU_ERF:
        gated_loop(TTN_ACT_GELU_ERF, n, h, d, e);
        return;
    case TTN_ACT_GELU_TANH:
        gated_loop(TTN_ACT_GELU_TANH, n, h, d, e);
        return;
    case TTN_ACT_RELU:
        gated_loop(TTN_ACT_RELU, n, h, d, e);
        return;
    case TTN_ACT_SILU:
        gated_loop(TTN_ACT_SILU, n, h, d, e);
        return;
    }
}

/* h of one row; h may be z. */
static void hidden_row(const ttn_call *c, const dims *d, const real *z, const real *u, real *h)
{
    add_bias(d->F, z, c->in[B1], h);
    values(((const attributes *)c->sig->attr)->act, d->F, h);
    if (!d->gated) return;
    const real *b = c->in[B3];
    if (b) {
#pragma omp simd
        for (int64_t i = 0; i < d->F; i++)
            h[i] *= u[i] + b[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < d->F; i++)
            h[i] *= u[i];
    }
}

static void add_to_sums(int64_t n, const real *x, double *sum)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        sum[i] += (double)x[i];
}

/* ---- forward ---- */

static void forward_tile(const ttn_call *c, const dims *d, int64_t tile, real *h)
{
    const int64_t first = tile * TTN_ROW_TILE;
    const int64_t rows = tile_rows(d, tile);
    const int64_t used = ttn_smaller(rows, ttn_used(c->feed, &c->sig->in[0]) - first);
    real *z = h;
    real *u = d->gated ? h + TTN_ROW_TILE * d->F : NULL;
    int64_t ld = d->F;
    if (c->aux[0]) {
        ld = d->ld;
        z = (real *)c->aux[0] + first * ld;
        if (d->gated) u = z + d->F;
    }
    make_hidden(c, d, tile, z, u, ld);
    for (int64_t r = 0; r < used; r++)
        hidden_row(c, d, z + r * ld, d->gated ? u + r * ld : NULL, h + r * d->F);
    memset(h + used * d->F, 0, (size_t)((rows - used) * d->F) * sizeof *h); /* act(0 + b1) is not 0 */

    real *y = (real *)c->out[0] + first * d->C; /* may be x, which is not needed any more */
    const real *b = c->in[B2];
    if (b) {
        for (int64_t r = 0; r < used; r++)
            memcpy(y + r * d->C, b, (size_t)d->C * sizeof *y);
        memset(y + used * d->C, 0, (size_t)((rows - used) * d->C) * sizeof *y);
    }
    ttn_gemm(TTN_N, TTN_T, rows, d->C, d->F, 1, ttn_in(h, d->F), ttn_in(c->in[W2], d->F), b ? 1 : 0, ttn_out(y, d->C));
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const dims d = ttn_ffn_dims_of(c->sig);
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    const int64_t n_tile = (used + TTN_ROW_TILE - 1) / TTN_ROW_TILE;
#pragma omp parallel for num_threads(c->on->n_thread) schedule(static)
    for (int64_t tile = 0; tile < n_tile; tile++)
        forward_tile(c, &d, tile, ttn_thread_work(c, TTN_FORWARD, omp_get_thread_num()));
    ttn_zero_rest(c, &c->sig->out[0], c->out[0]);
    return TTN_OK;
}

/* ---- backward ---- */

/* What is the same for all tiles. */
typedef struct {
    dims d;
    ttn_ffn_needs needs;
    ttn_wgrad w1, w2, w3;
    int64_t task_w1, task_w2, task_w3, n_task; /* tasks that add a tile to sums: the first of each weight; of all */
    int64_t lanes;
    double *biases; /* (lanes, F), gated (lanes, 2 F) */
    double *rows;   /* scratch for db2 */
} job;

static int sums_biases(const ttn_call *c)
{
    return c->din[B1] || c->din[B3];
}

static job job_of(const ttn_call *c)
{
    job j = {.d = ttn_ffn_dims_of(c->sig)};
    const dims *d = &j.d;
    const layout l = layout_of(d);
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    char *work = c->work;
    j.needs = ttn_ffn_needs_of(c, d->gated);
    j.w1 = ttn_wgrad_begin(d->N, used, d->F, d->C, work + l.w1);
    j.w2 = ttn_wgrad_begin(d->N, used, d->C, d->F, work + l.w2);
    j.w3 = ttn_wgrad_begin(d->N, used, d->F, d->C, work + l.w3);
    j.task_w1 = sums_biases(c) ? 1 : 0; /* task 0: the biases */
    j.task_w2 = j.task_w1 + (c->din[W1] ? j.w1.n_piece : 0);
    j.task_w3 = j.task_w2 + (c->din[W2] ? j.w2.n_piece : 0);
    j.n_task = j.task_w3 + (c->din[W3] ? j.w3.n_piece : 0);
    j.lanes = j.w1.lanes;
    j.biases = (void *)(work + l.biases);
    j.rows = (void *)(work + l.rows);
    return j;
}

/* One row: dh becomes dz, z becomes h, u becomes du, in the thread's tiles. */
static void backward_row(const ttn_call *c, const job *j, const real *z, const real *u, int64_t r, const scratch *s)
{
    const int64_t F = j->d.F;
    const ttn_activation act = ((const attributes *)c->sig->attr)->act;
    real *h = s->h + r * F;
    real *dh = s->d + r * F;
    real *e = j->d.gated ? s->e + r * F : NULL;
    if (!j->needs.d_hidden) {
        hidden_row(c, &j->d, z, u, h);
        return;
    }
    add_bias(F, z, c->in[B1], h);
    if (!j->d.gated) {
        gradients(act, F, h, dh);
    } else {
        if (j->needs.u)
            add_bias(F, u, c->in[B3], e);
        else
            memset(e, 0, (size_t)F * sizeof *e); /* only du is wanted: h and dz are not looked at */
        gated_gradients(act, F, h, dh, e);
    }
    if (c->din[B1]) add_to_sums(F, dh, s->sum);
    if (c->din[B3]) add_to_sums(F, e, s->sum + F);
}

static void backward_tile(const ttn_call *c, const job *j, int64_t tile, const scratch *s)
{
    const dims *d = &j->d;
    const int64_t first = tile * TTN_ROW_TILE;
    const int64_t rows = tile_rows(d, tile);
    const real *z = s->h;
    const real *u = s->e;
    int64_t ld = d->F;
    if (c->aux[0]) {
        ld = d->ld;
        z = (const real *)c->aux[0] + first * ld;
        if (d->gated) u = z + d->F;
    } else {
        make_hidden(c, d, tile, s->h, j->needs.u ? s->e : NULL, ld);
    }
    if (j->needs.d_hidden)
        ttn_gemm(TTN_N, TTN_N, rows, d->F, d->C, 1, ttn_in((const real *)c->dout[0] + first * d->C, d->C),
                 ttn_in(c->in[W2], d->F), 0, ttn_out(s->d, d->F));
    memset(s->sum, 0, (size_t)d->ld * sizeof *s->sum);
    for (int64_t r = 0; r < rows; r++) /* past the used ones dh is 0, and so are dz and du */
        backward_row(c, j, z + r * ld, d->gated ? u + r * ld : NULL, r, s);
    if (!c->din[0]) return;
    const ttn_mat_out dx = ttn_out((real *)c->din[0] + first * d->C, d->C);
    ttn_gemm(TTN_N, TTN_N, rows, d->C, d->F, 1, ttn_in(s->d, d->F), ttn_in(c->in[W1], d->C), (double)c->acc[0], dx);
    if (d->gated) ttn_gemm(TTN_N, TTN_N, rows, d->C, d->F, 1, ttn_in(s->e, d->F), ttn_in(c->in[W3], d->C), 1, dx);
}

/* One task of adding one tile to the sums over rows. */
static void add_tile(const ttn_call *c, const job *j, int64_t task, const scratch *s)
{
    const dims *d = &j->d;
    const int64_t tile = *s->tile;
    const ttn_mat_in x = ttn_in(c->in[0] ? (const real *)c->in[0] + tile * TTN_ROW_TILE * d->C : NULL, d->C);
    const ttn_mat_in dy = ttn_in((const real *)c->dout[0] + tile * TTN_ROW_TILE * d->C, d->C);
    if (task >= j->task_w3) {
        ttn_wgrad_add(&j->w3, tile, task - j->task_w3, ttn_in(s->e, d->F), x);
    } else if (task >= j->task_w2) {
        ttn_wgrad_add(&j->w2, tile, task - j->task_w2, dy, ttn_in(s->h, d->F));
    } else if (task >= j->task_w1) {
        ttn_wgrad_add(&j->w1, tile, task - j->task_w1, ttn_in(s->d, d->F), x);
    } else {
        double *to = j->biases + ttn_wgrad_lane(&j->w1, tile) * d->ld;
        for (int64_t i = 0; i < d->ld; i++)
            to[i] += s->sum[i];
    }
}

/* The task for all tiles at hand that belong to the lane of thread `holder`'s tile, in order; the first of those threads
 * does it for all. */
static void add_lane(const ttn_call *c, const job *j, int64_t task, int holder, int n_thread)
{
    const int64_t own = *scratch_of(c, &j->d, holder).tile;
    if (own < 0) return;
    const int64_t lane = ttn_wgrad_lane(&j->w1, own);
    for (int t = 0; t < n_thread; t++) {
        const scratch s = scratch_of(c, &j->d, t);
        if (*s.tile < 0 || ttn_wgrad_lane(&j->w1, *s.tile) != lane) continue;
        if (t < holder) return;
        add_tile(c, j, task, &s);
    }
}

/* Step by step: each thread makes a tile of its own; then all threads together add these tiles to the sums. So a small
 * weight and a large one, few lanes and many, keep all threads busy. */
static void backward_tiles(const ttn_call *c, const job *j)
{
#pragma omp parallel num_threads(c->on->n_thread)
    {
        const int n_thread = omp_get_num_threads();
        const scratch s = scratch_of(c, &j->d, omp_get_thread_num());
        ttn_wgrad_place at = {0};
        int64_t next = ttn_wgrad_next(&j->w1, &at);
        while (next >= 0) { /* the same in every thread */
            for (int t = 0; t < n_thread; t++) {
                if (t == omp_get_thread_num()) *s.tile = next;
                next = ttn_wgrad_next(&j->w1, &at);
            }
            if (*s.tile >= 0) backward_tile(c, j, *s.tile, &s);
            if (j->n_task == 0) continue;
#pragma omp barrier
#pragma omp for collapse(2) schedule(dynamic)
            for (int holder = 0; holder < n_thread; holder++)
                for (int64_t task = 0; task < j->n_task; task++)
                    add_lane(c, j, task, holder, n_thread);
        }
    }
}

/* `first`: 0 for db1, F for db3. */
static void put_bias(const ttn_call *c, const job *j, int input, int64_t first)
{
    real *db = c->din[input];
    if (!db) return;
    for (int64_t i = 0; i < j->d.F; i++) {
        double sum = 0;
        for (int64_t lane = 0; lane < j->lanes; lane++)
            sum += j->biases[lane * j->d.ld + first + i];
        db[i] = ttn_accumulate(c->acc[input], db[i], (real)sum);
    }
}

static void put_weight(const ttn_call *c, const ttn_wgrad *w, int input)
{
    if (!c->din[input]) return;
    ttn_wgrad_end(w, c->on->n_thread, (double)c->acc[input], ttn_out(c->din[input], w->i));
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const job j = job_of(c);
    const dims *d = &j.d;
    if (sums_biases(c)) memset(j.biases, 0, (size_t)(j.lanes * d->ld) * sizeof *j.biases);
    if (j.needs.d_hidden || c->din[W2]) backward_tiles(c, &j);
    if (c->din[0] && c->acc[0] == 0) ttn_zero_rest(c, &c->sig->in[0], c->din[0]);
    put_weight(c, &j.w1, W1);
    put_bias(c, &j, B1, 0);
    put_weight(c, &j.w2, W2);
    if (c->din[B2])
        ttn_sum_rows(c->on->n_thread, d->N, ttn_used(c->feed, &c->sig->in[0]), d->C, ttn_in(c->dout[0], d->C),
                     (double)c->acc[B2], c->din[B2], j.rows);
    put_weight(c, &j.w3, W3);
    put_bias(c, &j, B3, d->F);
    return TTN_OK;
}

/* ---- cases ---- */

static const attributes erf_form = {.act = TTN_ACT_GELU_ERF};
static const attributes tanh_form = {.act = TTN_ACT_GELU_TANH};
static const attributes relu = {.act = TTN_ACT_RELU};
static const attributes silu = {.act = TTN_ACT_SILU};
static const attributes none = {.act = (ttn_activation)9};

/* Inputs of widths C and F: with all biases; without any. */
#define PLAIN(C, F)                                                                                                  \
    {                                                                                                                \
        TTN_ROWS_OF(C), TTN_MATRIX(F, C), TTN_VECTOR(F), TTN_MATRIX(C, F), TTN_VECTOR(C), TTN_LEFT_OUT, TTN_LEFT_OUT \
    }
#define PLAIN_BARE(C, F)                                                                                           \
    {                                                                                                              \
        TTN_ROWS_OF(C), TTN_MATRIX(F, C), TTN_LEFT_OUT, TTN_MATRIX(C, F), TTN_LEFT_OUT, TTN_LEFT_OUT, TTN_LEFT_OUT \
    }
#define GATED(C, F)                                                                                         \
    {                                                                                                       \
        TTN_ROWS_OF(C), TTN_MATRIX(F, C), TTN_VECTOR(F), TTN_MATRIX(C, F), TTN_VECTOR(C), TTN_MATRIX(F, C), \
            TTN_VECTOR(F)                                                                                   \
    }
#define GATED_BARE(C, F)                                                                                               \
    {                                                                                                                  \
        TTN_ROWS_OF(C), TTN_MATRIX(F, C), TTN_LEFT_OUT, TTN_MATRIX(C, F), TTN_LEFT_OUT, TTN_MATRIX(F, C), TTN_LEFT_OUT \
    }

static const ttn_case cases[] = {
    {.about = "gelu", .used = {.rows = 6}, .in = PLAIN(4, 7), .attr = &erf_form},
    {.about = "gelu's tanh form, no biases", .used = {.rows = 5}, .in = PLAIN_BARE(3, 10), .attr = &tanh_form},
    {.about = "relu", .used = {.rows = 5}, .in = PLAIN(3, 19), .attr = &relu},
    {.about = "silu", .used = {.rows = 5}, .in = PLAIN(3, 5), .attr = &silu},
    {.about = "SwiGLU", .used = {.rows = 6}, .in = GATED(4, 7), .attr = &silu},
    {.about = "SwiGLU, no biases", .used = {.rows = 6}, .in = GATED_BARE(5, 18), .attr = &silu},
    {.about = "GeGLU", .used = {.rows = 4}, .in = GATED(2, 17), .attr = &erf_form},
    {.about = "a gate of gelu's tanh form", .used = {.rows = 4}, .in = GATED_BARE(2, 3), .attr = &tanh_form},
    {.about = "a gate of relu", .used = {.rows = 4}, .in = GATED(2, 3), .attr = &relu},
    {.about = "one row, width 1", .used = {.rows = 1}, .in = PLAIN(1, 1), .attr = &silu},
    {.about = "F as wide as C: all weights of one shape", .used = {.rows = 5}, .in = GATED(3, 3), .attr = &silu},
    {.about = "two tiles, the second in part", .used = {.rows = 483}, .in = PLAIN(2, 3), .attr = &erf_form},
    {.about = "two tiles, gated", .used = {.rows = 483}, .in = GATED(2, 3), .attr = &silu},
    {.about = "three lanes, ten tiles, nine of them in use",
     .used = {.rows = 4317},
     .cap = {.rows = 4800},
     .in = GATED(2, 3),
     .attr = &silu},
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = PLAIN(3, 6),
     .attr = &erf_form},
    {.about = "every row of the capacity", .used = {.rows = 480}, .in = PLAIN(5, 2), .attr = &silu},
    {.about = "picks",
     .used = {.picks = 13},
     .in = {TTN_PICKS_OF(4), TTN_MATRIX(6, 4), TTN_VECTOR(6), TTN_MATRIX(4, 6), TTN_LEFT_OUT, TTN_LEFT_OUT,
            TTN_LEFT_OUT},
     .attr = &erf_form},
    {.about = "one row a sequence, a short tile",
     .used = {.rows = 24, .seqs = 2},
     .cap = {.rows = 480, .seqs = 5},
     .span = {{0, 5}, {12, 7}},
     .in = {{.axis = TTN_SEQS, .ndim = 2, .dim = {0, 4}},
            TTN_MATRIX(3, 4),
            TTN_LEFT_OUT,
            TTN_MATRIX(4, 3),
            TTN_VECTOR(4),
            TTN_MATRIX(3, 4),
            TTN_LEFT_OUT},
     .attr = &silu},
    {.about = "x is a weight, of W1's shape",
     .in = {TTN_MATRIX(6, 4), TTN_MATRIX(6, 4), TTN_VECTOR(6), TTN_MATRIX(4, 6), TTN_VECTOR(4), TTN_MATRIX(6, 4),
            TTN_VECTOR(6)},
     .attr = &silu},
    {.about = "no rows", .cap = {.rows = 480}, .in = GATED(4, 5), .attr = &silu},
    {.about = "x of one dimension",
     .used = {.rows = 6},
     .in = {{.axis = TTN_ROWS, .ndim = 1},
            TTN_MATRIX(5, 4),
            TTN_LEFT_OUT,
            TTN_MATRIX(4, 5),
            TTN_LEFT_OUT,
            TTN_LEFT_OUT,
            TTN_LEFT_OUT},
     .attr = &silu,
     .refused = "x is " TTN_REAL_NAME " (N 480), which has 1 dimensions; expected 2, (N, C)"},
    {.about = "width 0",
     .used = {.rows = 6},
     .in = PLAIN_BARE(0, 5),
     .attr = &silu,
     .refused = "x has width 0 and W1 height 5, expected at least 1"},
    {.about = "a width that BLAS cannot count",
     .used = {.rows = 6},
     .in = {{.axis = TTN_ROWS, .ndim = 2, .dim = {0, (int64_t)INT_MAX + 1}},
            TTN_MATRIX(1, (int64_t)INT_MAX + 1),
            TTN_LEFT_OUT,
            TTN_MATRIX((int64_t)INT_MAX + 1, 1),
            TTN_LEFT_OUT,
            TTN_LEFT_OUT,
            TTN_LEFT_OUT},
     .attr = &silu,
     .refused = "and BLAS counts to 2147483647"},
    {.about = "W1 of another width",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 3), TTN_LEFT_OUT, TTN_MATRIX(4, 5), TTN_LEFT_OUT, TTN_LEFT_OUT, TTN_LEFT_OUT},
     .attr = &silu,
     .refused = "W1 is " TTN_REAL_NAME " (5, 3), expected (F, C) with C 4, the width of x, and F 5"},
    {.about = "W2 not transposed",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 4), TTN_LEFT_OUT, TTN_MATRIX(5, 4), TTN_LEFT_OUT, TTN_LEFT_OUT, TTN_LEFT_OUT},
     .attr = &silu,
     .refused = "W2 is " TTN_REAL_NAME " (5, 4), expected (C, F) with C 4, the width of x, and F 5"},
    {.about = "W2 of rows",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 4), TTN_LEFT_OUT, TTN_ROWS_OF(5), TTN_LEFT_OUT, TTN_LEFT_OUT, TTN_LEFT_OUT},
     .attr = &silu,
     .refused = "W2 is " TTN_REAL_NAME " (N 480, 5), expected (C, F) with C 4"},
    {.about = "no W2",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 4), TTN_LEFT_OUT, TTN_LEFT_OUT, TTN_LEFT_OUT, TTN_LEFT_OUT, TTN_LEFT_OUT},
     .attr = &silu,
     .refused = "W2 is nothing, expected " TTN_REAL_NAME " numbers"},
    {.about = "W3 of another height",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 4), TTN_LEFT_OUT, TTN_MATRIX(4, 5), TTN_LEFT_OUT, TTN_MATRIX(6, 4),
            TTN_LEFT_OUT},
     .attr = &silu,
     .refused = "W3 is " TTN_REAL_NAME " (6, 4), expected (F, C) with C 4, the width of x, and F 5"},
    {.about = "b1 as wide as x",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 4), TTN_VECTOR(4), TTN_MATRIX(4, 5), TTN_LEFT_OUT, TTN_LEFT_OUT,
            TTN_LEFT_OUT},
     .attr = &silu,
     .refused = "b1 is " TTN_REAL_NAME " (4), expected (5)"},
    {.about = "b2 as wide as the hidden layer",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 4), TTN_LEFT_OUT, TTN_MATRIX(4, 5), TTN_VECTOR(5), TTN_LEFT_OUT,
            TTN_LEFT_OUT},
     .attr = &silu,
     .refused = "b2 is " TTN_REAL_NAME " (5), expected (4)"},
    {.about = "b3 of two dimensions",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 4), TTN_LEFT_OUT, TTN_MATRIX(4, 5), TTN_LEFT_OUT, TTN_MATRIX(5, 4),
            TTN_MATRIX(1, 5)},
     .attr = &silu,
     .refused = "b3 is " TTN_REAL_NAME " (1, 5), which has 2 dimensions; expected 1, (n)"},
    {.about = "b3 without W3",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 4), TTN_LEFT_OUT, TTN_MATRIX(4, 5), TTN_LEFT_OUT, TTN_LEFT_OUT,
            TTN_VECTOR(5)},
     .attr = &silu,
     .refused = "there is a b3, but no W3"},
    {.about = "an activation that does not exist",
     .used = {.rows = 6},
     .in = PLAIN(4, 5),
     .attr = &none,
     .refused = "activation number 9 is none, expected 0 to 3"},
};

/* x, W1 and W3 among what a gradient reads: to make aux 0 again. db3 and dW3 do not need u. */
#define HIDDEN (TTN_BIT(0) | TTN_BIT(W1) | TTN_BIT(B1) | TTN_BIT(W3) | TTN_BIT(B3))
#define ACT    (TTN_BIT(0) | TTN_BIT(W1) | TTN_BIT(B1))

const ttn_op ttn_op_ffn = {
    .name = "ffn",
    .n_in = N_IN,
    .n_out = 1,
    .optional = TTN_BIT(B1) | TTN_BIT(B2) | TTN_BIT(W3) | TTN_BIT(B3),
    .differentiable = TTN_BIT(N_IN) - 1,
    .reads = {{.in = HIDDEN | TTN_BIT(W2), .aux = TTN_BIT(0)},
              [W1] = {.in = HIDDEN | TTN_BIT(W2), .aux = TTN_BIT(0)},
              [B1] = {.in = HIDDEN | TTN_BIT(W2), .aux = TTN_BIT(0)},
              [W2] = {.in = HIDDEN, .aux = TTN_BIT(0)},
              [B2] = {0},
              [W3] = {.in = ACT | TTN_BIT(W2), .aux = TTN_BIT(0)},
              [B3] = {.in = ACT | TTN_BIT(W2), .aux = TTN_BIT(0)}},
    .takes = {TTN_SHARES(0)},
    .spare = TTN_BIT(0),
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_ffn(ttn_graph *g, const char *name, int x, int w1, int b1, int w2, int b2, int w3, int b3, ttn_activation act)
{
    const attributes a = {.act = act};
    return ttn_apply(g, "ffn", name, &a, (const int[]){x, w1, b1, w2, b2, w3, b3});
}
