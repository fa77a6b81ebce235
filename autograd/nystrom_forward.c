/* Nystrom attention, forward: autograd/nystrom.h. */
#include <math.h>
#include <omp.h>
#include <string.h>
#include "autograd/nystrom.h"
#include "core/blas.h"

enum { Q, K, V, ADD };

typedef ttn_nystrom_pair pair;
typedef ttn_nystrom_chunk chunk;
typedef ttn_nystrom_group group;
typedef ttn_nystrom_tile tile;
typedef ttn_nystrom_job job;

/* s (height, M) becomes exp(s - max) with the maximum so far of every column, and what was summed up before is rescaled.
 * Rows past `live` become zeros. */
static void down_columns(const job *j, const pair *p, int64_t live, const tile *t, const chunk *h)
{
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    memcpy(t->next, h->max, (size_t)M * sizeof *t->next);
    for (int64_t r = 0; r < live; r++) {
        const real *row = t->s + r * M;
        real *next = t->next;
#pragma omp simd
        for (int64_t i = 0; i < M; i++)
            next[i] = row[i] > next[i] ? row[i] : next[i];
    }
    memset(t->sum, 0, (size_t)M * sizeof *t->sum);
    for (int64_t r = 0; r < live; r++) {
        real *row = t->s + r * M;
        const real *next = t->next;
        real *sum = t->sum;
#pragma omp simd
        for (int64_t i = 0; i < M; i++) {
            const real e = ttn_exp(row[i] - next[i]);
            row[i] = e;
            sum[i] += e;
        }
    }
    memset(t->s + live * M, 0, (size_t)((p->height - live) * M) * sizeof *t->s);
#pragma omp simd
    for (int64_t i = 0; i < M; i++)
        t->factor[i] = ttn_exp(h->max[i] - t->next[i]);
    for (int64_t i = 0; i < M; i++) {
        const real factor = t->factor[i];
        h->sum[i] = h->sum[i] * (double)factor + (double)t->sum[i];
        h->max[i] = t->next[i];
        if (factor == 1) continue;
        real *row = h->first + i * D;
#pragma omp simd
        for (int64_t d = 0; d < D; d++)
            row[d] *= factor;
    }
}

/* A chunk of keys: its share of B v. */
static void meet_keys(const job *j, int64_t number, const tile *t)
{
    const pair *p = ttn_nystrom_pair_of_chunk(&j->g, number);
    const chunk *h = &j->g.chunk[number];
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    for (int64_t i = 0; i < M; i++) {
        h->max[i] = -(real)INFINITY;
        h->sum[i] = 0;
    }
    memset(h->first, 0, (size_t)(M * D) * sizeof *h->first);
    int64_t first;
    int64_t end;
    ttn_nystrom_tiles_of_chunk(p, number, &first, &end);
    for (int64_t k = first; k < end; k++) {
        ttn_nystrom_pack(j, p, k, j->c->in[K], t->q);
        ttn_nystrom_pack(j, p, k, j->c->in[V], t->g);
        ttn_nystrom_logits(j, p->height, t->q, p->x, t->s);
        down_columns(j, p, ttn_nystrom_live(p, k), t, h);
        ttn_gemm(TTN_T, TTN_N, M, D, p->height, 1, ttn_in(t->s, M), ttn_in(t->g, D), 1, ttn_out(h->first, D));
    }
}

/* The chunks of a pair added up in a binary tree: into the first of them. */
static void merge_values(const job *j, const pair *p)
{
    const chunk *h = &j->g.chunk[p->first_chunk];
    const int64_t D = j->z.D;
    for (int64_t apart = 1; apart < p->chunks; apart *= 2)
        for (int64_t k = 0; k + apart < p->chunks; k += 2 * apart) {
            const chunk *to = &h[k];
            const chunk *from = &h[k + apart];
            for (int64_t i = 0; i < j->z.M; i++) {
                const real most = from->max[i] > to->max[i] ? from->max[i] : to->max[i];
                const real of_to = ttn_exp(to->max[i] - most);
                const real of_from = ttn_exp(from->max[i] - most);
                to->max[i] = most;
                to->sum[i] = to->sum[i] * (double)of_to + from->sum[i] * (double)of_from;
                real *sum = to->first + i * D;
                const real *add = from->first + i * D;
#pragma omp simd
                for (int64_t d = 0; d < D; d++)
                    sum[d] = sum[d] * of_to + add[d] * of_from;
            }
        }
}

/* C, Y, the row sums of Z, and what is reported. */
static void close_landmarks(const job *j, pair *p, const tile *t)
{
    merge_values(j, p);
    const chunk *h = &j->g.chunk[p->first_chunk];
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    for (int64_t i = 0; i < M; i++) {
        const real factor = (real)(1 / h->sum[i]);
        real *row = h->first + i * D;
#pragma omp simd
        for (int64_t d = 0; d < D; d++)
            row[d] *= factor;
    }
    memcpy(ttn_nystrom_landmark_values(j, p), h->first, (size_t)(j->z.m * D) * sizeof(real));
    real *lse = ttn_nystrom_landmark_lse(j, p);
    for (int64_t i = 0; i < j->z.m; i++)
        lse[i] = (real)((double)h->max[i] + ttn_logd(h->sum[i]));
    ttn_nystrom_make_Y(j, p, h->first);
    for (int64_t i = 0; i < M; i++) {
        double sum = 0;
        for (int64_t k = 0; k < M; k++)
            sum += (double)p->z[i * M + k];
        p->z1[i] = (real)sum;
    }
    ttn_inverse_measure(&j->z.inverse, p->a, p->z, &p->residual, &p->norm, t->inverse);
}

/* A chunk of queries: out, and L. */
static void meet_landmarks(const job *j, int64_t number, const tile *t)
{
    const pair *p = ttn_nystrom_pair_of_chunk(&j->g, number);
    chunk *h = &j->g.chunk[number];
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    h->row_sum = 0;
    int64_t first;
    int64_t end;
    ttn_nystrom_tiles_of_chunk(p, number, &first, &end);
    for (int64_t k = first; k < end; k++) {
        const int64_t live = ttn_nystrom_live(p, k);
        const int64_t row = j->c->feed->span[p->seq].first + k * p->height;
        real *lse = (real *)j->c->aux[TTN_NYSTROM_ROW_LSE] + row * j->z.H + p->head;
        ttn_nystrom_pack(j, p, k, j->c->in[Q], t->q);
        ttn_nystrom_logits(j, p->height, t->q, p->y, t->s);
        for (int64_t r = 0; r < p->height; r++) {
            real *s = t->s + r * M;
            const real most = ttn_nystrom_largest(j->z.m, s);
            const real sum = ttn_nystrom_exponentials(j->z.m, M, most, s);
            t->row[r] = 1 / sum;
            if (r >= live) continue;
            lse[r * j->z.H] = most + ttn_log(sum);
            h->row_sum = ttn_folded(TTN_MAX, h->row_sum, fabs((double)(ttn_nystrom_dot(M, s, p->z1) / sum) - 1));
        }
        ttn_gemm(TTN_N, TTN_N, p->height, D, M, 1, ttn_in(t->s, M), ttn_in(p->Y, D), 0, ttn_out(t->o, D));
        const int64_t at = ttn_nystrom_place(j, p, k * p->height);
        for (int64_t r = 0; r < live; r++) {
            const real factor = t->row[r];
            const real *from = t->o + r * D;
            real *out = (real *)j->c->out[0] + at + r * j->z.C;
            if (j->c->in[ADD]) {
                const real *add = (const real *)j->c->in[ADD] + at + r * j->z.C; /* may be out */
#pragma omp simd
                for (int64_t d = 0; d < D; d++)
                    out[d] = from[d] * factor + add[d];
            } else {
#pragma omp simd
                for (int64_t d = 0; d < D; d++)
                    out[d] = from[d] * factor;
            }
        }
    }
}

static void report(const job *j)
{
    const group *g = &j->g;
    for (int64_t i = 0; i < g->n_pair; i++) {
        const pair *p = &g->pair[i];
        double value[TTN_NYSTROM_N_STATS] = {[TTN_NYSTROM_RESIDUAL] = p->residual, [TTN_NYSTROM_Z_NORM] = p->norm};
        for (int64_t k = 0; k < p->chunks; k++)
            value[TTN_NYSTROM_ROW_SUM] =
                ttn_folded(TTN_MAX, value[TTN_NYSTROM_ROW_SUM], g->chunk[p->first_chunk + k].row_sum);
        for (int k = 0; k < TTN_NYSTROM_N_STATS; k++) {
            double *stat = &j->c->stat[k * j->z.H + p->head];
            *stat = ttn_folded(TTN_MAX, *stat, value[k]);
        }
    }
}

static void clear_slots(const ttn_call *c, int64_t used)
{
    for (int a = TTN_NYSTROM_LANDMARK_LSE; a <= TTN_NYSTROM_LANDMARK_VALUES; a++) {
        const ttn_desc *d = &c->sig->aux[a];
        if (d->dim[0] > used)
            memset((real *)c->aux[a] + used * ttn_row_width(d), 0,
                   (size_t)((d->dim[0] - used) * ttn_row_width(d)) * sizeof(real));
    }
}

ttn_status ttn_nystrom_forward(const ttn_call *c, ttn_error *err)
{
    const ttn_attn_tiles tiles = ttn_nystrom_short(c);
    ttn_attn_tiles_forward(&tiles);
    job j = ttn_nystrom_start(c, TTN_FORWARD);
    group *g = &j.g;
    for (int64_t i = 0; i < c->sig->n_stat; i++)
        c->stat[i] = 0;
    ttn_status status = TTN_OK;
    int64_t slots = 0;
    for (int64_t s = 0; s < c->feed->used.seqs; s++)
        slots += g->slot[s] >= 0;
    clear_slots(c, slots);
    for (ttn_nystrom_next_group(&j); g->n_pair > 0 && status == TTN_OK; ttn_nystrom_next_group(&j)) {
#pragma omp parallel num_threads(c->on->n_thread)
        {
            tile t;
            ttn_nystrom_lay_out_thread(c->sig, TTN_FORWARD, ttn_thread_work(c, TTN_FORWARD, omp_get_thread_num()), &t);
#pragma omp for schedule(static)
            for (int64_t number = 0; number < ttn_nystrom_landmark_tasks(&j); number++)
                ttn_nystrom_landmarks(&j, number);
#pragma omp for schedule(dynamic)
            for (int64_t i = 0; i < g->n_pair; i++)
                ttn_nystrom_make_a(&j, &g->pair[i]);
#pragma omp for schedule(dynamic)
            for (int64_t number = 0; number < g->n_pair + g->n_chunk; number++) {
                /* inverses and chunks do not need each other: the inverses first, since they take longer */
                if (number >= g->n_pair) {
                    meet_keys(&j, number - g->n_pair, &t);
                    continue;
                }
                pair *p = &g->pair[number];
                p->c = ttn_nystrom_starter(&j, number)->start.sum;
                p->pivot = ttn_inverse_forward(&j.z.inverse, p->a, p->c, 0, p->z, t.inverse);
            }
#pragma omp for schedule(dynamic)
            for (int64_t i = 0; i < g->n_pair; i++)
                if (g->pair[i].pivot == 0) close_landmarks(&j, &g->pair[i], &t);
#pragma omp for schedule(dynamic)
            for (int64_t number = 0; number < g->n_chunk; number++)
                if (ttn_nystrom_pair_of_chunk(g, number)->pivot == 0) meet_landmarks(&j, number, &t);
        }
        status = ttn_nystrom_failure(&j, err);
        if (status == TTN_OK) report(&j);
    }
    ttn_zero_no_sequence(c, &c->sig->out[0], c->out[0]);
    ttn_zero_no_sequence(c, &c->sig->aux[TTN_NYSTROM_ROW_LSE], c->aux[TTN_NYSTROM_ROW_LSE]);
    return status;
}
