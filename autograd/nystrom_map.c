/* What Nystrom attention looks like: rows of F Z B, and their means over blocks (autograd/nystrom.h). */
#include <omp.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/nystrom.h"
#include "core/blas.h"
#include "core/memory.h"

enum { Q, K };

typedef ttn_nystrom_pair pair;
typedef ttn_nystrom_group group;
typedef ttn_nystrom_tile tile;
typedef ttn_nystrom_job job;

/* A sequence's Z for one head, and memory to make rows of F and of B. */
typedef struct {
    job j;
    const pair *p;
    void *work; /* shared, then a part for each thread */
} map_view;

static void map_close(map_view *v)
{
    ttn_free(v->work);
}

static tile map_tile(const map_view *v, int thread)
{
    const ttn_sig *s = v->j.c->sig;
    group g;
    tile t;
    const size_t shared = ttn_nystrom_lay_out(s, TTN_FORWARD, NULL, &g);
    const size_t each = ttn_work_align(ttn_nystrom_lay_out_thread(s, TTN_FORWARD, NULL, &t));
    ttn_nystrom_lay_out_thread(s, TTN_FORWARD, (char *)v->work + shared + (size_t)thread * each, &t);
    return t;
}

static ttn_status map_open(const ttn_call *c, int64_t seq, int64_t head, map_view *v, ttn_error *err)
{
    group g;
    tile t;
    const size_t bytes =
        ttn_nystrom_lay_out(c->sig, TTN_FORWARD, NULL, &g) +
        (size_t)c->on->n_thread * ttn_work_align(ttn_nystrom_lay_out_thread(c->sig, TTN_FORWARD, NULL, &t));
    v->work = ttn_alloc_or_say((int64_t)bytes, 1, "landmarks of an attention map", err);
    if (!v->work) return TTN_ENOMEM;
    ttn_call with = *c;
    with.work = v->work;
    v->j = ttn_nystrom_start(&with, TTN_FORWARD);
    v->j.c = c;
    job *j = &v->j;
    const int64_t first = head / j->unit * j->unit; /* of the heads that start together */
    j->g.next = seq * j->z.H + first;
    j->g.room_pairs = j->unit;
    ttn_nystrom_next_group(j);
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t number = 0; number < ttn_nystrom_landmark_tasks(j); number++)
        ttn_nystrom_landmarks(j, number);
    for (int64_t i = 0; i < j->g.n_pair; i++)
        ttn_nystrom_make_a(j, &j->g.pair[i]);
    pair *p =
        &j->g.pair[head - first]; /* the only one whose Z is made: the others have no pivot, memory begins as zeros */
    v->p = p;
    t = map_tile(v, 0);
    p->pivot =
        ttn_inverse_forward(&j->z.inverse, p->a, ttn_nystrom_starter(j, head - first)->start.sum, 0, p->z, t.inverse);
    const ttn_status status = ttn_nystrom_failure(j, err);
    if (status != TTN_OK) map_close(v);
    return status;
}

/* Rows t, t + 1, … of F (n_row, M), to s of the tile; at most a tile's rows. */
static void map_queries(const map_view *v, int64_t t, int64_t n_row, const tile *with)
{
    const job *j = &v->j;
    const ttn_call *c = j->c;
    const real *lse =
        (const real *)c->aux[TTN_NYSTROM_ROW_LSE] + (c->feed->span[v->p->seq].first + t) * j->z.H + v->p->head;
    const real *from = (const real *)c->in[Q] + ttn_nystrom_place(j, v->p, t);
    for (int64_t r = 0; r < n_row; r++)
        memcpy(with->q + r * j->z.D, from + r * j->z.C, (size_t)j->z.D * sizeof(real));
    ttn_nystrom_logits(j, n_row, with->q, v->p->y, with->s);
    for (int64_t r = 0; r < n_row; r++)
        for (int64_t i = 0; i < j->z.M; i++) {
            real *f = &with->s[r * j->z.M + i];
            *f = i < j->z.m ? ttn_exp(*f - lse[r * j->z.H]) : 0;
        }
}

/* Columns t, t + 1, … of B as rows (n_row, M), to s of the tile; those past m hold anything finite. */
static void map_keys(const map_view *v, int64_t t, int64_t n_row, const tile *with)
{
    const job *j = &v->j;
    const real *lse = ttn_nystrom_landmark_lse(j, v->p);
    const real *from = (const real *)j->c->in[K] + ttn_nystrom_place(j, v->p, t);
    for (int64_t r = 0; r < n_row; r++)
        memcpy(with->q + r * j->z.D, from + r * j->z.C, (size_t)j->z.D * sizeof(real));
    ttn_nystrom_logits(j, n_row, with->q, v->p->x, with->s);
    for (int64_t r = 0; r < n_row; r++)
        for (int64_t i = 0; i < j->z.m; i++)
            with->s[r * j->z.M + i] = ttn_exp(with->s[r * j->z.M + i] - lse[i]);
}

static ttn_status map_long_rows(const ttn_call *c, int64_t seq, int64_t head, int64_t n_row, const int64_t *row,
                                real *map, ttn_error *err)
{
    map_view v;
    ttn_status status = map_open(c, seq, head, &v, err);
    if (status != TTN_OK) return status;
    const int64_t M = v.j.z.M;
    const int64_t n = v.p->n;
    real *fz = ttn_alloc_or_say(n_row * M, sizeof *fz, "rows of an attention map", err); /* F Z */
    if (!fz) {
        map_close(&v);
        return TTN_ENOMEM;
    }
    const tile t = map_tile(&v, 0);
    for (int64_t r = 0; r < n_row; r++) {
        map_queries(&v, row[r], 1, &t);
        ttn_gemm(TTN_N, TTN_N, 1, M, M, 1, ttn_in(t.s, M), ttn_in(v.p->z, M), 0, ttn_out(fz + r * M, M));
    }
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t k = 0; k < v.p->T; k++) {
        const tile of_thread = map_tile(&v, omp_get_thread_num());
        const int64_t first = k * v.p->height;
        const int64_t live = ttn_nystrom_live(v.p, k);
        map_keys(&v, first, live, &of_thread);
        ttn_gemm(TTN_N, TTN_T, n_row, live, M, 1, ttn_in(fz, M), ttn_in(of_thread.s, M), 0, ttn_out(map + first, n));
    }
    ttn_free(fz);
    map_close(&v);
    return TTN_OK;
}

ttn_status ttn_nystrom_map_rows(const ttn_call *c, int64_t seq, int64_t head, int64_t n_row, const int64_t *row,
                                real *map, ttn_error *err)
{
    const ttn_attn_tiles tiles = ttn_nystrom_short(c);
    ttn_span span;
    ttn_status status = ttn_map_span(c, "attn_nystrom", seq, head, tiles.heads, n_row, row, 0, &span, err);
    if (status != TTN_OK) return status;
    if (span.n > tiles.longest) return map_long_rows(c, seq, head, n_row, row, map, err);
    ttn_attn_tiles_map_rows(&tiles, seq, head, n_row, row, map);
    return TTN_OK;
}

/* pool (P, M) = the means over blocks of rows of F, or of rows of B transposed. */
static void map_means(const map_view *v, void (*make)(const map_view *v, int64_t t, int64_t n_row, const tile *with),
                      int64_t P, double *pool)
{
    const int64_t M = v->j.z.M;
    const int64_t n = v->p->n;
#pragma omp parallel for num_threads(v->j.c->on->n_thread)
    for (int64_t p = 0; p < P; p++) {
        const tile t = map_tile(v, omp_get_thread_num());
        const int64_t first = ttn_map_block(p, n, P);
        const int64_t end = ttn_map_block(p + 1, n, P);
        double *to = pool + p * M;
        memset(to, 0, (size_t)M * sizeof *to);
        for (int64_t at = first; at < end; at += TTN_ATTN_MOST_TILE) {
            const int64_t rows = ttn_smaller(TTN_ATTN_MOST_TILE, end - at);
            make(v, at, rows, &t);
            for (int64_t r = 0; r < rows; r++)
                for (int64_t i = 0; i < v->j.z.m; i++)
                    to[i] += (double)t.s[r * M + i];
        }
        for (int64_t i = 0; i < v->j.z.m; i++)
            to[i] /= (double)(end - first);
    }
}

/* The mean over blocks of F Z B is pool(F) Z pool(B): O(n M D + P M (M + P)). */
static ttn_status map_long_pool(const ttn_call *c, int64_t seq, int64_t head, int64_t P, double *map, ttn_error *err)
{
    map_view v;
    ttn_status status = map_open(c, seq, head, &v, err);
    if (status != TTN_OK) return status;
    const int64_t M = v.j.z.M;
    double *pools = ttn_alloc_or_say(3 * P + M, (size_t)M * sizeof *pools, "blocks of an attention map", err);
    if (!pools) {
        map_close(&v);
        return TTN_ENOMEM;
    }
    double *const of_f = pools;
    double *const of_b = of_f + P * M;
    double *const fz = of_b + P * M;
    double *const z = fz + P * M;
    map_means(&v, map_queries, P, of_f);
    map_means(&v, map_keys, P, of_b);
    for (int64_t e = 0; e < M * M; e++)
        z[e] = (double)v.p->z[e];
    ttn_gemm(TTN_N, TTN_N, P, M, M, 1, ttn_in_of(TTN_F64, of_f, M), ttn_in_of(TTN_F64, z, M), 0,
             ttn_out_of(TTN_F64, fz, M));
    ttn_gemm(TTN_N, TTN_T, P, P, M, 1, ttn_in_of(TTN_F64, fz, M), ttn_in_of(TTN_F64, of_b, M), 0,
             ttn_out_of(TTN_F64, map, P));
    ttn_free(pools);
    map_close(&v);
    return TTN_OK;
}

ttn_status ttn_nystrom_map_pool(const ttn_call *c, int64_t seq, int64_t head, int64_t P, double *map, ttn_error *err)
{
    const ttn_attn_tiles tiles = ttn_nystrom_short(c);
    ttn_span span;
    ttn_status status = ttn_map_span(c, "attn_nystrom", seq, head, tiles.heads, 0, NULL, P, &span, err);
    if (status != TTN_OK) return status;
    if (span.n > tiles.longest) return map_long_pool(c, seq, head, P, map, err);
    return ttn_attn_tiles_map_pool(&tiles, seq, head, P, map, err);
}
