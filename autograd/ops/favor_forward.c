/* Attention by random features, forward: the maths stands on top of attn_favor.c. */
#include <assert.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "autograd/ops/favor_tasks.h"
#include "core/blas.h"

enum { Q = TTN_FAVOR_Q, K = TTN_FAVOR_K, V = TTN_FAVOR_V };

typedef ttn_favor_scratch scratch;
typedef ttn_favor_tasks tasks;
typedef ttn_favor_task task;

/* A chunk of keys and values becomes a state. */
static void sum_keys(const tasks *all, const task *k, scratch *own)
{
    const ttn_favor_job *f = &all->j;
    ttn_favor_tile *t = &own->tile;
    const ttn_favor_state s = ttn_favor_state_of(all, k);
    double *stat = all->w.stat + k->slot * TTN_FAVOR_N_STAT;
    assert(s.S && s.z);
    ttn_favor_no_statistics(stat);
    memset(s.z, 0, (size_t)f->M * sizeof *s.z);
    memset(s.sum_v, 0, (size_t)f->D * sizeof *s.sum_v);
    for (int64_t tile = k->tile; tile < k->end; tile++) {
        const int first = tile == k->tile;
        ttn_favor_project(f, t, ttn_favor_tile_at(f, t, f->c->in[K], k->seq, k->head, tile),
                          ttn_favor_head_of_W(f, k->head));
        ttn_favor_pack(f, t, ttn_favor_tile_at(f, t, f->c->in[V], k->seq, k->head, tile), 1, t->v);
        ttn_favor_count_norms(t, stat);
        if (f->map->grow) f->map->grow(f, t, &s, first, own->room);
        f->map->keys(f, t, s.c);
        ttn_favor_add_rows(t, f->M, t->u, NULL, own->room, s.z);
        ttn_favor_add_rows(t, f->D, t->v, NULL, own->room, s.sum_v);
        ttn_gemm(TTN_T, TTN_N, f->M, f->D, t->height, 1, ttn_in(t->u, f->M), ttn_in(t->v, f->D), first ? 0 : 1,
                 ttn_out(s.S, f->D));
    }
}

/* The states of a sequence, to that of its first chunk. */
static void complete(const tasks *all, const task *k, scratch *own)
{
    if (k->chunk > 0) return;
    const ttn_favor_state s = ttn_favor_state_of(all, k);
    ttn_favor_join_chunks(all, k, TTN_FORWARD, own->room);
    if (all->j.map->finish) all->j.map->finish(&all->j, &own->tile, &s, k->seq, k->head);
}

/* y, which holds N, becomes out. */
static void finish_row(const ttn_favor_job *j, const ttn_favor_tile *t, int64_t row, const ttn_favor_sum *sum,
                       real *ret_kept, real *ret_rms, double *stat)
{
    real *y = t->y + row * j->D;
    const real factor = j->map->factor(j, t, row, sum, ret_kept);
    const double Dn = (double)sum->denominator;
    stat[TTN_FAVOR_DENOMINATOR_LEAST] = ttn_folded(TTN_MIN, stat[TTN_FAVOR_DENOMINATOR_LEAST], Dn);
    stat[TTN_FAVOR_DENOMINATOR_NEGATIVE] += Dn <= 0;
    stat[TTN_FAVOR_ROWS_GIVEN_UP] += factor == 0 && j->divides;
#pragma omp simd
    for (int64_t d = 0; d < j->D; d++)
        y[d] *= factor;
    if (!ret_rms) return;
    *ret_rms = (real)sqrt((double)ttn_favor_dot(y, y, j->D) / (double)j->D + 1e-6);
    const real inverse = 1 / *ret_rms;
#pragma omp simd
    for (int64_t d = 0; d < j->D; d++)
        y[d] *= inverse;
}

/* A chunk of queries meets the state of its sequence. */
static void read_states(const tasks *all, const task *k, scratch *own)
{
    const ttn_favor_job *f = &all->j;
    ttn_favor_tile *t = &own->tile;
    const task first = ttn_favor_chunk_of(all, k, 0);
    const ttn_favor_state s = ttn_favor_state_of(all, &first);
    const ttn_span span = f->c->feed->span[k->seq];
    ttn_favor_sum sum = {
        .norm_z = (real)sqrt((double)ttn_favor_dot(s.z, s.z, f->M)), .c = s.c, .most = s.most, .n = span.n};
    double *stat = all->w.stat + k->slot * TTN_FAVOR_N_STAT;
    for (int64_t tile = k->tile; tile < k->end; tile++) {
        ttn_favor_project(f, t, ttn_favor_tile_at(f, t, f->c->in[Q], k->seq, k->head, tile),
                          ttn_favor_head_of_W(f, k->head));
        ttn_favor_count_norms(t, stat);
        if (ttn_favor_split(f) > 0) { /* one row of a tile: the middle one */
            const ttn_favor_sample e = ttn_favor_sample_row(f, t, &s, t->live / 2, span.n, own->room);
            stat[TTN_FAVOR_ERROR_HALVES] += e.halves;
            stat[TTN_FAVOR_ERROR_UNIFORM] += e.uniform;
            stat[TTN_FAVOR_ERROR_SIZE] += e.size;
        }
        f->map->queries(f, t, s.c);
        ttn_gemm(TTN_N, TTN_N, t->height, f->D, f->M, 1, ttn_in(t->u, f->M), ttn_in(s.S, f->D), 0, ttn_out(t->y, f->D));
        const int64_t row_at = (span.first + tile * t->height) * f->H + k->head;
        real *kept = (real *)f->c->aux[TTN_FAVOR_AUX_ROW] + row_at;
        real *rms = f->a->renormalize == TTN_FAVOR_RMS ? (real *)f->c->aux[TTN_FAVOR_AUX_RMS] + row_at : NULL;
        for (int64_t row = 0; row < t->live; row++) {
            sum.denominator = ttn_favor_dot(t->u + row * f->M, s.z, f->M);
            finish_row(f, t, row, &sum, kept + row * f->H, rms ? rms + row * f->H : NULL, stat);
        }
        real *out = (real *)ttn_favor_tile_at(f, t, f->c->out[0], k->seq, k->head, tile); /* may be q */
        ttn_favor_unpack(f, t, 0, out);
    }
}

ttn_status ttn_favor_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const tasks all = ttn_favor_start(c, TTN_FORWARD);
#pragma omp parallel num_threads(c->on->n_thread)
    {
        scratch own;
        ttn_favor_lay_out_thread(&all.j, TTN_FORWARD, ttn_thread_work(c, TTN_FORWARD, omp_get_thread_num()), &own);
        ttn_favor_each(&all, &own, sum_keys);
        ttn_favor_each(&all, &own, complete);
        ttn_favor_each(&all, &own, read_states);
    }
    if (c->stat) {
        ttn_favor_no_statistics(c->stat);
        for (int64_t number = 0; number < all.n_task; number++)
            ttn_favor_fold_statistics(c->stat, all.w.stat + number * TTN_FAVOR_N_STAT);
    }
    ttn_zero_no_sequence(c, &c->sig->out[0], c->out[0]);
    ttn_zero_no_sequence(c, &c->sig->aux[TTN_FAVOR_AUX_ROW], c->aux[TTN_FAVOR_AUX_ROW]);
    ttn_zero_no_sequence(c, &c->sig->aux[TTN_FAVOR_AUX_RMS], c->aux[TTN_FAVOR_AUX_RMS]);
    return TTN_OK;
}
