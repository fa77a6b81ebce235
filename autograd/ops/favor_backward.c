/* Attention by random features, backward: the maths stands on top of attn_favor.c. */
#include <omp.h>
#include <string.h>
#include "autograd/ops/favor_tasks.h"
#include "core/blas.h"

enum { Q = TTN_FAVOR_Q, K = TTN_FAVOR_K, V = TTN_FAVOR_V };

typedef ttn_favor_scratch scratch;
typedef ttn_favor_tasks tasks;
typedef ttn_favor_task task;

/* v holds dout and out is out: v becomes g, and delta is filled in. */
static void gradient_of_rows(const ttn_favor_job *j, const ttn_favor_tile *t, const real *out, const real *rms)
{
    for (int64_t row = 0; row < t->live; row++) {
        real *g = t->v + row * j->D;
        const real *y = out + row * j->D;
        const real product = ttn_favor_dot(g, y, j->D);
        t->delta[row] = product;
        if (!rms) continue;
        /* out = o / r: do = (dout - out mean(dout out)) / r, and do.o = do.out r */
        const real r = rms[row * j->H];
        const real mean = product / (real)j->D;
        const real inverse = 1 / r;
#pragma omp simd
        for (int64_t d = 0; d < j->D; d++)
            g[d] = (g[d] - y[d] * mean) * inverse;
        t->delta[row] = r * ttn_favor_dot(g, y, j->D);
    }
}

/* b (height, m) W to y. */
static void to_inputs(const ttn_favor_job *j, const ttn_favor_tile *t, const real *weight)
{
    if (weight)
        ttn_gemm(TTN_N, TTN_N, t->height, j->D, j->m, 1, ttn_in(t->b, j->M), ttn_in(weight, j->D), 0,
                 ttn_out(t->y, j->D));
    else
        memcpy(t->y, t->b, (size_t)(t->height * j->D) * sizeof *t->y);
}

/* A chunk of queries: dq, and what its gradients make of R and rho. */
static void invert_queries(const tasks *all, const task *k, scratch *own)
{
    const ttn_favor_job *f = &all->j;
    const ttn_call *c = f->c;
    const ttn_favor_state s = ttn_favor_kept_state(f, k->seq, k->head);
    const ttn_favor_state gradient = ttn_favor_gradient_of(all, k);
    const real *weight = ttn_favor_head_of_W(f, k->head);
    const ttn_span span = c->feed->span[k->seq];
    const int for_keys = c->din[K] || c->din[V];
    ttn_favor_tile t = own->tile;
    double reference = 0;
    if (!c->din[Q]) t.b = NULL;
    memset(gradient.z, 0, (size_t)f->M * sizeof *gradient.z);
    for (int64_t tile = k->tile; tile < k->end; tile++) {
        ttn_favor_project(f, &t, ttn_favor_tile_at(f, &t, c->in[Q], k->seq, k->head, tile), weight);
        ttn_favor_pack(f, &t, ttn_favor_tile_at(f, &t, c->dout[0], k->seq, k->head, tile), 1, t.v);
        const int64_t row_at = (span.first + tile * t.height) * f->H + k->head;
        const real *kept = (const real *)c->aux[TTN_FAVOR_AUX_ROW] + row_at;
        for (int64_t row = 0; row < t.live; row++)
            t.shift[row] = kept[row * f->H];
        if (c->out[0]) {
            ttn_favor_pack(f, &t, ttn_favor_tile_at(f, &t, c->out[0], k->seq, k->head, tile), 1, own->out);
            gradient_of_rows(f, &t, own->out,
                             f->a->renormalize == TTN_FAVOR_RMS ? (const real *)c->aux[TTN_FAVOR_AUX_RMS] + row_at
                                                                : NULL);
        }
        if (t.b)
            ttn_gemm(TTN_N, TTN_T, t.height, f->M, f->D, 1, ttn_in(t.v, f->D), ttn_in(s.S, f->D), 0,
                     ttn_out(t.b, f->M));
        reference += f->map->query_slopes(f, &t, s.c, s.z);
        if (for_keys)
            ttn_gemm(TTN_T, TTN_N, f->M, f->D, t.height, 1, ttn_in(t.u, f->M), ttn_in(t.v, f->D),
                     tile == k->tile ? 0 : 1, ttn_out(gradient.S, f->D));
        if (c->din[K] && f->divides) ttn_favor_add_rows(&t, f->M, t.u, t.delta, own->room, gradient.z);
        if (!t.b) continue;
        to_inputs(f, &t, weight);
        real *dq = (real *)ttn_favor_tile_at(f, &t, c->din[Q], k->seq, k->head, tile); /* may be dout */
        ttn_favor_unpack_slopes(f, &t, c->acc[Q], dq);
    }
    for (int64_t i = 0; i < f->M; i++)
        gradient.z[i] = -gradient.z[i];
    all->w.reference[Q][k->slot] = reference;
}

/* A chunk of keys and values: dk and dv. */
static void invert_keys(const tasks *all, const task *k, scratch *own)
{
    const ttn_favor_job *f = &all->j;
    const ttn_call *c = f->c;
    const ttn_favor_state s = ttn_favor_kept_state(f, k->seq, k->head);
    const task first = ttn_favor_chunk_of(all, k, 0);
    const ttn_favor_state gradient = ttn_favor_gradient_of(all, &first);
    const real *weight = ttn_favor_head_of_W(f, k->head);
    ttn_favor_tile t = own->tile;
    if (!c->din[K]) t.b = NULL;
    double reference = 0;
    for (int64_t tile = k->tile; tile < k->end; tile++) {
        ttn_favor_project(f, &t, ttn_favor_tile_at(f, &t, c->in[K], k->seq, k->head, tile), weight);
        if (t.b) {
            ttn_favor_pack(f, &t, ttn_favor_tile_at(f, &t, c->in[V], k->seq, k->head, tile), 1, t.v);
            ttn_gemm(TTN_N, TTN_T, t.height, f->M, f->D, 1, ttn_in(t.v, f->D), ttn_in(gradient.S, f->D), 0,
                     ttn_out(t.b, f->M));
        }
        reference += f->map->key_slopes(f, &t, s.c, gradient.z);
        /* in the order of the inputs: two of them may be one value */
        if (t.b) {
            to_inputs(f, &t, weight);
            real *dk = (real *)ttn_favor_tile_at(f, &t, c->din[K], k->seq, k->head, tile);
            ttn_favor_unpack_slopes(f, &t, c->acc[K], dk);
        }
        if (!c->din[V]) continue;
        ttn_gemm(TTN_N, TTN_N, t.height, f->D, f->M, 1, ttn_in(t.u, f->M), ttn_in(gradient.S, f->D), 0,
                 ttn_out(t.y, f->D));
        ttn_favor_unpack(f, &t, c->acc[V], (real *)ttn_favor_tile_at(f, &t, c->din[V], k->seq, k->head, tile));
    }
    all->w.reference[K][k->slot] = reference;
}

/* R and rho of a sequence, to those of its first chunk. */
static void complete(const tasks *all, const task *k, scratch *own)
{
    if (k->chunk == 0) ttn_favor_join_chunks(all, k, TTN_BACKWARD, own->room);
}

/* What is left for the references of a sequence: dq and dk. */
static void settle(const tasks *all, const task *k, scratch *own)
{
    if (k->chunk > 0) return;
    for (int input = Q; input <= K; input++) {
        if (!all->j.c->din[input]) continue;
        double reference = 0;
        for (int64_t chunk = all->w.first_chunk[k->seq]; chunk < all->w.first_chunk[k->seq + 1]; chunk++)
            reference += all->w.reference[input][chunk * all->j.H + k->head];
        if (reference != 0) all->j.map->settle(&all->j, &own->tile, input, k->seq, k->head, reference);
    }
}

ttn_status ttn_favor_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const tasks all = ttn_favor_start(c, TTN_BACKWARD);
    const int for_keys = c->din[K] || c->din[V];
    if (!for_keys && !c->din[Q]) return TTN_OK;
#pragma omp parallel num_threads(c->on->n_thread)
    {
        scratch own;
        ttn_favor_lay_out_thread(&all.j, TTN_BACKWARD, ttn_thread_work(c, TTN_BACKWARD, omp_get_thread_num()), &own);
        ttn_favor_each(&all, &own, invert_queries);
        if (for_keys) {
            ttn_favor_each(&all, &own, complete);
            ttn_favor_each(&all, &own, invert_keys);
        }
        if (all.j.map->settle) ttn_favor_each(&all, &own, settle);
    }
    for (int i = Q; i <= V; i++)
        if (c->din[i] && c->acc[i] == 0) ttn_zero_no_sequence(c, &c->sig->in[i], c->din[i]);
    return TTN_OK;
}
