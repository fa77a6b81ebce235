/* Looking at attention by random features: its map, and how far its estimate is off.
 *
 * The map factors, M_it = Q^_i.K'_t, so rows cost O(n M) and a picture of P x P blocks O(n M + P^2 M). */
#include <math.h>
#include <omp.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/ops/favor.h"
#include "core/blas.h"
#include "core/memory.h"

/* ---- the estimate's error ----
 *
 * Two halves of the features give two estimates o_a, o_b with errors that are independent where no block of orthogonal rows
 * is in both; their mean is about o, and |o_a - o_b|^2 / 4 about its squared error. Right within 10 % up to |x|^2 of 1; beyond
 * it is a lower bound, since both halves miss the same rare large terms. */

int64_t ttn_favor_split(const ttn_favor_job *j)
{
    if (!ttn_favor_estimates(j->a->kernel) || j->a->compat != TTN_FAVOR_OURS) return 0;
    if (j->a->independent) return j->m / 2;
    const int64_t blocks = (j->m + j->D - 1) / j->D;
    return blocks / 2 * j->D;
}

/* The logarithms of a row's features times those of the state, or the features themselves (trig). */
static void weigh(const ttn_favor_job *j, const ttn_favor_state *s, const real *u, real *weight)
{
    const int trig = j->a->kernel == TTN_FAVOR_TRIG;
    for (int64_t f = 0; f < j->m; f++) {
        if (trig)
            ttn_favor_turn(u[f], &weight[f], &weight[j->m + f]);
        else
            weight[f] = u[f] + s->c[f];
        if (!trig && j->M > j->m) weight[j->m + f] = -u[f] + s->c[j->m + f];
    }
}

/* N (D) += and return Dn of projections [first, end), with their own reference in *ret_most (0: trig has none). */
static real part_of_row(const ttn_favor_job *j, const ttn_favor_state *s, const real *weight, int64_t first,
                        int64_t end, real *N, real *ret_most)
{
    const int trig = j->a->kernel == TTN_FAVOR_TRIG;
    real most = trig ? 0 : weight[first];
    for (int64_t side = 0; side < j->M && !trig; side += j->m) {
        const real here = ttn_favor_largest(weight + side + first, end - first);
        most = here > most ? here : most;
    }
    real Dn = 0;
    memset(N, 0, (size_t)j->D * sizeof *N);
    for (int64_t side = 0; side < j->M; side += j->m)
        for (int64_t f = side + first; f < side + end; f++) {
            const real w = trig ? weight[f] : ttn_exp(weight[f] - most);
            const real *S = s->S + f * j->D;
            Dn += w * s->z[f];
#pragma omp simd
            for (int64_t d = 0; d < j->D; d++)
                N[d] += w * S[d];
        }
    *ret_most = most;
    return Dn;
}

ttn_favor_sample ttn_favor_sample_row(const ttn_favor_job *j, const ttn_favor_tile *t, const ttn_favor_state *s,
                                      int64_t row, int64_t n, real *room)
{
    real *weight = room;
    real *N_a = room + j->M;
    real *N_b = N_a + j->D;
    real most_a;
    real most_b;
    weigh(j, s, t->u + row * j->M, weight);
    const int64_t split = ttn_favor_split(j);
    const real Dn_a = part_of_row(j, s, weight, 0, split, N_a, &most_a);
    const real Dn_b = part_of_row(j, s, weight, split, j->m, N_b, &most_b);
    ttn_favor_sample e = {0};
    if (!(Dn_a > 0 && Dn_b > 0)) return e; /* trig: no estimate */
    const real most = most_a > most_b ? most_a : most_b;
    const real share_a = ttn_exp(most_a - most) * Dn_a;
    const real share_b = ttn_exp(most_b - most) * Dn_b;
    for (int64_t d = 0; d < j->D; d++) {
        const double a = (double)(N_a[d] / Dn_a);
        const double b = (double)(N_b[d] / Dn_b);
        const double o = (a * (double)share_a + b * (double)share_b) / (double)(share_a + share_b);
        const double mean = (double)s->sum_v[d] / (double)n;
        e.halves += (a - b) * (a - b) / 4;
        e.uniform += (o - mean) * (o - mean);
        e.size += o * o;
    }
    return e;
}

/* ---- maps ---- */

/* A tile of a thread's own, for any rows of a sequence, in so many numbers. */
static int64_t lens_reals(const ttn_favor_job *j)
{
    return TTN_FAVOR_TILE * (j->D + j->M + 2);
}

static ttn_favor_tile lens_at(const ttn_favor_job *j, real *memory)
{
    ttn_favor_tile t = {0};
    real **const part[] = {&t.x, &t.u, &t.half, &t.shift};
    const int64_t width[] = {j->D, j->M, 1, 1};
    for (int i = 0; i < 4; i++) {
        *part[i] = memory;
        memory += TTN_FAVOR_TILE * width[i];
    }
    return t;
}

/* Rows [first, first + n) of the sequence as features: those of queries times the factor that makes weights of out. */
static void look_at(const ttn_favor_job *j, ttn_favor_tile *t, int input, int64_t seq, int64_t head, int64_t first,
                    int64_t n)
{
    const ttn_span span = j->c->feed->span[seq];
    const ttn_favor_state s = ttn_favor_kept_state(j, seq, head);
    t->height = n;
    t->live = n;
    ttn_favor_project(j, t, (const real *)j->c->in[input] + (span.first + first) * j->C + head * j->D,
                      ttn_favor_head_of_W(j, head));
    if (input == TTN_FAVOR_K) {
        j->map->key_slopes(j, t, s.c, NULL);
        return;
    }
    const int64_t at = (span.first + first) * j->H + head;
    for (int64_t row = 0; row < n; row++)
        t->shift[row] = ((const real *)j->c->aux[TTN_FAVOR_AUX_ROW])[at + row * j->H];
    j->map->query_slopes(j, t, s.c, NULL);
    if (j->a->renormalize != TTN_FAVOR_RMS) return;
    for (int64_t row = 0; row < n; row++) {
        const real inverse = 1 / ((const real *)j->c->aux[TTN_FAVOR_AUX_RMS])[at + row * j->H];
        for (int64_t f = 0; f < j->M; f++)
            t->u[row * j->M + f] *= inverse;
    }
}

ttn_status ttn_favor_map_rows(const ttn_call *c, int64_t seq, int64_t head, int64_t n_row, const int64_t *row,
                              real *map, ttn_error *err)
{
    const ttn_favor_job j = ttn_favor_job_of(c);
    ttn_span span;
    ttn_status status = ttn_map_span(c, "attn_favor", seq, head, j.H, n_row, row, 0, &span, err);
    if (status != TTN_OK) return status;
    const int64_t each = lens_reals(&j);
    real *work =
        ttn_alloc_or_say(c->on->n_thread * each + n_row * j.M, sizeof *work, "features of an attention map", err);
    if (!work) return TTN_ENOMEM;
    real *queries = work + c->on->n_thread * each;
#pragma omp parallel num_threads(c->on->n_thread)
    {
        ttn_favor_tile t = lens_at(&j, work + omp_get_thread_num() * each);
#pragma omp for
        for (int64_t r = 0; r < n_row; r++) {
            look_at(&j, &t, TTN_FAVOR_Q, seq, head, row[r], 1);
            memcpy(queries + r * j.M, t.u, (size_t)j.M * sizeof *t.u);
        }
#pragma omp for
        for (int64_t first = 0; first < span.n; first += TTN_FAVOR_TILE) {
            const int64_t n = ttn_smaller(TTN_FAVOR_TILE, span.n - first);
            look_at(&j, &t, TTN_FAVOR_K, seq, head, first, n);
            ttn_gemm(TTN_N, TTN_T, n_row, n, j.M, 1, ttn_in(queries, j.M), ttn_in(t.u, j.M), 0,
                     ttn_out(map + first, span.n));
        }
    }
    ttn_free(work);
    return TTN_OK;
}

/* The mean of the features of block p of P, to sum (M). */
static void pool(const ttn_favor_job *j, ttn_favor_tile *t, int input, int64_t seq, int64_t head, int64_t p, int64_t P,
                 double *sum)
{
    const int64_t n = j->c->feed->span[seq].n;
    const int64_t from = ttn_map_block(p, n, P);
    const int64_t end = ttn_map_block(p + 1, n, P);
    memset(sum, 0, (size_t)j->M * sizeof *sum);
    for (int64_t first = from; first < end; first += TTN_FAVOR_TILE) {
        const int64_t rows = ttn_smaller(TTN_FAVOR_TILE, end - first);
        look_at(j, t, input, seq, head, first, rows);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t f = 0; f < j->M; f++)
                sum[f] += (double)t->u[row * j->M + f];
    }
    for (int64_t f = 0; f < j->M; f++)
        sum[f] /= (double)(end - from);
}

ttn_status ttn_favor_map_pool(const ttn_call *c, int64_t seq, int64_t head, int64_t P, double *map, ttn_error *err)
{
    const ttn_favor_job j = ttn_favor_job_of(c);
    ttn_span span;
    ttn_status status = ttn_map_span(c, "attn_favor", seq, head, j.H, 0, NULL, P, &span, err);
    if (status != TTN_OK) return status;
    const int64_t each = lens_reals(&j);
    real *work = ttn_alloc_or_say(c->on->n_thread * each, sizeof *work, "tiles of an attention map", err);
    double *queries = ttn_alloc_or_say(2 * P * j.M, sizeof *queries, "pooled features of an attention map", err);
    if (!work || !queries) {
        ttn_free(work);
        ttn_free(queries);
        return TTN_ENOMEM;
    }
    double *keys = queries + P * j.M;
#pragma omp parallel num_threads(c->on->n_thread)
    {
        ttn_favor_tile t = lens_at(&j, work + omp_get_thread_num() * each);
#pragma omp for schedule(dynamic)
        for (int64_t p = 0; p < P; p++) {
            pool(&j, &t, TTN_FAVOR_Q, seq, head, p, P, queries + p * j.M);
            pool(&j, &t, TTN_FAVOR_K, seq, head, p, P, keys + p * j.M);
        }
#pragma omp for
        for (int64_t p = 0; p < P; p++)
            for (int64_t b = 0; b < P; b++) {
                double sum = 0;
                for (int64_t f = 0; f < j.M; f++)
                    sum += queries[p * j.M + f] * keys[b * j.M + f];
                map[p * P + b] = sum;
            }
    }
    ttn_free(work);
    ttn_free(queries);
    return TTN_OK;
}
