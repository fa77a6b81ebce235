/* What softmax attention looks like: rows of its weights, and their means over blocks (autograd/attn_tiles.h). */
#include <omp.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/attn_tiles.h"
#include "autograd/kernel.h"
#include "core/blas.h"
#include "core/memory.h"
#include "core/vecmath.h"

enum { Q, K };

/* Row i of the sequence, this head's columns. */
static const real *head_row(const ttn_attn_tiles *a, int input, ttn_span span, int64_t head, int64_t i)
{
    const int64_t C = a->c->sig->in[Q].dim[1];
    return (const real *)a->c->in[input] + (span.first + i) * C + head * (C / a->heads);
}

/* a_it of rows i, i + 1, … i + n_row - 1 against keys t, … t + n_key - 1. */
static void map_scores(const ttn_attn_tiles *a, ttn_span span, int64_t head, int64_t i, int64_t n_row, int64_t t,
                       int64_t n_key, real *score, int64_t ld)
{
    const int64_t C = a->c->sig->in[Q].dim[1];
    ttn_gemm(TTN_N, TTN_T, n_row, n_key, C / a->heads, (double)a->rule.scale, ttn_in(head_row(a, Q, span, head, i), C),
             ttn_in(head_row(a, K, span, head, t), C), 0, ttn_out(score, ld));
}

void ttn_attn_tiles_map_rows(const ttn_attn_tiles *a, int64_t seq, int64_t head, int64_t n_row, const int64_t *row,
                             real *map)
{
    const ttn_span span = a->c->feed->span[seq];
#pragma omp parallel for num_threads(a->c->on->n_thread)
    for (int64_t r = 0; r < n_row; r++) {
        real *p = map + r * span.n;
        const int64_t seen = a->causal ? row[r] + 1 : span.n;
        for (int64_t t = 0; t < seen; t += TTN_ATTN_MOST_TILE)
            map_scores(a, span, head, row[r], 1, t, ttn_smaller(TTN_ATTN_MOST_TILE, seen - t), p + t, span.n);
        real most = p[0];
        for (int64_t t = 1; t < seen; t++)
            most = p[t] > most ? p[t] : most;
        double sum = 0;
        for (int64_t t = 0; t < seen; t++) {
            p[t] = ttn_exp(p[t] - most);
            sum += (double)p[t];
        }
        for (int64_t t = 0; t < seen; t++)
            p[t] = (real)((double)p[t] / sum);
        memset(p + seen, 0, (size_t)(span.n - seen) * sizeof *p);
    }
}

enum { MAP_ROWS = 24 };

/* Adds the weights of rows i up to end (at most MAP_ROWS) to cells (P) of their blocks of columns. */
static void add_to_cells(const ttn_attn_tiles *a, int64_t seq, int64_t head, int64_t i, int64_t end, int64_t P,
                         real *score, double *cell)
{
    const ttn_span span = a->c->feed->span[seq];
    const real *lse = a->lse + span.first * a->heads + head;
    const int64_t last_seen = a->causal ? end : span.n;
    for (int64_t t = 0; t < last_seen; t += TTN_ATTN_MOST_TILE) {
        const int64_t t_end = ttn_smaller(t + TTN_ATTN_MOST_TILE, last_seen);
        map_scores(a, span, head, i, end - i, t, t_end - t, score, TTN_ATTN_MOST_TILE);
        for (int64_t r = i; r < end; r++) {
            const int64_t seen = a->causal ? ttn_smaller(r + 1, t_end) : t_end;
            const real *row = score + (r - i) * TTN_ATTN_MOST_TILE;
            const int64_t first = ((t + 1) * P - 1) / span.n; /* t's block */
            for (int64_t p = first; p < P && ttn_map_block(p, span.n, P) < seen; p++) {
                const int64_t from = ttn_larger(t, ttn_map_block(p, span.n, P));
                const int64_t to = ttn_smaller(seen, ttn_map_block(p + 1, span.n, P));
                for (int64_t u = from; u < to; u++)
                    cell[p] += (double)ttn_exp(row[u - t] - lse[r * a->heads]);
            }
        }
    }
}

/* A row of blocks is one thread's: O(n^2 D) in all, in memory for one row of tiles a thread. */
ttn_status ttn_attn_tiles_map_pool(const ttn_attn_tiles *a, int64_t seq, int64_t head, int64_t P, double *map,
                                   ttn_error *err)
{
    const ttn_span span = a->c->feed->span[seq];
    const int n_thread = a->c->on->n_thread;
    const int64_t each = MAP_ROWS * TTN_ATTN_MOST_TILE;
    real *work = ttn_alloc_or_say(n_thread * each, sizeof *work, "tiles of an attention map", err);
    if (!work) return TTN_ENOMEM;
#pragma omp parallel for num_threads(n_thread) schedule(dynamic)
    for (int64_t p = 0; p < P; p++) {
        const int64_t first = ttn_map_block(p, span.n, P);
        const int64_t end = ttn_map_block(p + 1, span.n, P);
        double *cell = map + p * P;
        memset(cell, 0, (size_t)P * sizeof *cell);
        for (int64_t i = first; i < end; i += MAP_ROWS)
            add_to_cells(a, seq, head, i, ttn_smaller(i + MAP_ROWS, end), P, work + omp_get_thread_num() * each, cell);
        for (int64_t b = 0; b < P; b++)
            cell[b] /= (double)((end - first) * (ttn_map_block(b + 1, span.n, P) - ttn_map_block(b, span.n, P)));
    }
    ttn_free(work);
    return TTN_OK;
}
