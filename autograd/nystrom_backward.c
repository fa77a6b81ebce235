/* Nystrom attention, backward: autograd/nystrom.h. */
#include <assert.h>
#include <omp.h>
#include <string.h>
#include "autograd/nystrom.h"
#include "autograd/ops/attn_nystrom.h"
#include "core/blas.h"

enum { Q, K, V, ADD };

typedef ttn_nystrom_pair pair;
typedef ttn_nystrom_chunk chunk;
typedef ttn_nystrom_group group;
typedef ttn_nystrom_tile tile;
typedef ttn_nystrom_job job;

/* Which gradients are asked for. */
static int for_scores(const ttn_call *c)
{
    return c->din[Q] || c->din[K];
}

static void fill_rows(int64_t rows, int64_t filled, int64_t width, const real *from, real *to)
{
    memcpy(to, from, (size_t)(rows * width) * sizeof *to);
    memset(to + rows * width, 0, (size_t)((filled - rows) * width) * sizeof *to);
}

/* All iterates of Z, and what forward kept. */
static void remake(const job *j, int64_t number, const tile *t)
{
    pair *p = &j->g.pair[number];
    p->c = ttn_nystrom_starter(j, number)->start.sum;
    p->pivot = ttn_inverse_forward(&j->z.inverse, p->a, p->c, 1, p->iterates, t->inverse);
    assert(p->pivot == 0); /* forward had the same A */
    fill_rows(j->z.m, j->z.M, 1, ttn_nystrom_landmark_lse(j, p), p->lse);
    if (!for_scores(j->c)) return;
    fill_rows(j->z.m, j->z.M, j->z.D, ttn_nystrom_landmark_values(j, p), p->C);
    ttn_nystrom_make_Y(j, p, p->C);
}

/* Row r: weights from logits, and the logits' gradients from the weights'. */
static void slopes_along_row(const job *j, real lse, real *s, real *e)
{
    const int64_t M = j->z.M;
    const real scale = j->z.scale;
    for (int64_t i = j->z.m; i < M; i++)
        s[i] = -(real)INFINITY;
#pragma omp simd
    for (int64_t i = 0; i < M; i++)
        s[i] = ttn_exp(s[i] - lse);
    if (!e) return;
    const real sum = ttn_nystrom_dot(M, s, e);
#pragma omp simd
    for (int64_t i = 0; i < M; i++)
        e[i] = ttn_nystrom_slope(s[i], e[i], sum, scale);
}

/* A chunk of queries: dq but for what comes through landmarks; its share of dY and dy. */
static void meet_landmarks_back(const job *j, int64_t number, const tile *t)
{
    const ttn_call *c = j->c;
    const pair *p = ttn_nystrom_pair_of_chunk(&j->g, number);
    const chunk *h = &j->g.chunk[number];
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    const int scores = for_scores(c);
    int64_t first;
    int64_t end;
    ttn_nystrom_tiles_of_chunk(p, number, &first, &end);
    for (int64_t k = first; k < end; k++) {
        const double beta = k == first ? 0 : 1;
        const int64_t live = ttn_nystrom_live(p, k);
        const int64_t row = c->feed->span[p->seq].first + k * p->height;
        const real *lse = (const real *)c->aux[TTN_NYSTROM_ROW_LSE] + row * j->z.H + p->head;
        ttn_nystrom_pack(j, p, k, c->in[Q], t->q);
        ttn_nystrom_pack(j, p, k, c->dout[0], t->g);
        ttn_nystrom_logits(j, p->height, t->q, p->y, t->s);
        if (scores) ttn_gemm(TTN_N, TTN_T, p->height, M, D, 1, ttn_in(t->g, D), ttn_in(p->Y, D), 0, ttn_out(t->e, M));
        for (int64_t r = 0; r < live; r++)
            slopes_along_row(j, lse[r * j->z.H], t->s + r * M, scores ? t->e + r * M : NULL);
        const size_t rest = (size_t)((p->height - live) * M) * sizeof(real);
        memset(t->s + live * M, 0, rest);
        ttn_gemm(TTN_T, TTN_N, M, D, p->height, 1, ttn_in(t->s, M), ttn_in(t->g, D), beta, ttn_out(h->first, D));
        if (!scores) continue;
        memset(t->e + live * M, 0, rest);
        if (c->din[K])
            ttn_gemm(TTN_T, TTN_N, M, D, p->height, 1, ttn_in(t->e, M), ttn_in(t->q, D), beta, ttn_out(h->second, D));
        if (!c->din[Q]) continue;
        ttn_gemm(TTN_N, TTN_N, p->height, D, M, 1, ttn_in(t->e, M), ttn_in(p->y, D), 0, ttn_out(t->o, D));
        ttn_nystrom_unpack(j, p, k, t->o, c->acc[Q], c->din[Q]);
    }
}

/* to = the sum of the pair's chunks, one of their two parts, in a binary tree. */
static void merge(const job *j, const pair *p, int second, real *to)
{
    const chunk *h = &j->g.chunk[p->first_chunk];
    const int64_t MD = j->z.M * j->z.D;
    for (int64_t apart = 1; apart < p->chunks; apart *= 2)
        for (int64_t k = 0; k + apart < p->chunks; k += 2 * apart) {
            real *sum = second ? h[k].second : h[k].first;
            const real *add = second ? h[k + apart].second : h[k + apart].first;
#pragma omp simd
            for (int64_t e = 0; e < MD; e++)
                sum[e] += add[e];
        }
    memcpy(to, second ? h[0].second : h[0].first, (size_t)MD * sizeof *to);
}

/* dY, dC, and dy as far as it comes from F. */
static void through_Y(const job *j, const pair *p)
{
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    merge(j, p, 0, p->dY);
    ttn_gemm(TTN_T, TTN_N, M, D, M, 1, ttn_in(p->z, M), ttn_in(p->dY, D), 0, ttn_out(p->dC, D));
    if (!for_scores(j->c)) return;
    if (j->c->din[K]) merge(j, p, 1, p->dy);
    for (int64_t i = 0; i < M; i++) {
        real sum = 0;
        for (int64_t d = 0; d < D; d++)
            sum += p->dC[i * D + d] * p->C[i * D + d];
        p->cc[i] = sum;
    }
}

/* dZ; dA, but for what comes through c. */
static void through_inverse(const job *j, pair *p, const tile *t)
{
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    ttn_gemm(TTN_N, TTN_T, M, M, D, 1, ttn_in(p->dY, D), ttn_in(p->C, D), 0, ttn_out(t->dz, M));
    ttn_inverse_backward(&j->z.inverse, p->a, p->c, p->iterates, t->dz, p->da, &p->start_gradient, t->inverse);
}

/* A chunk of keys: dv; dk but for what comes through landmarks; its share of dx. */
static void meet_keys_back(const job *j, int64_t number, const tile *t)
{
    const ttn_call *c = j->c;
    const pair *p = ttn_nystrom_pair_of_chunk(&j->g, number);
    const chunk *h = &j->g.chunk[number];
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    const int scores = for_scores(c);
    const real scale = j->z.scale;
    int64_t first;
    int64_t end;
    ttn_nystrom_tiles_of_chunk(p, number, &first, &end);
    for (int64_t k = first; k < end; k++) {
        const int64_t live = ttn_nystrom_live(p, k);
        ttn_nystrom_pack(j, p, k, c->in[K], t->q);
        ttn_nystrom_logits(j, p->height, t->q, p->x, t->s);
        if (scores) {
            ttn_nystrom_pack(j, p, k, c->in[V], t->g);
            ttn_gemm(TTN_N, TTN_T, p->height, M, D, 1, ttn_in(t->g, D), ttn_in(p->dC, D), 0, ttn_out(t->e, M));
        }
        for (int64_t r = 0; r < live; r++) {
            real *s = t->s + r * M;
#pragma omp simd
            for (int64_t i = 0; i < M; i++)
                s[i] = ttn_exp(s[i] - p->lse[i]);
            if (!scores) continue;
            real *e = t->e + r * M;
#pragma omp simd
            for (int64_t i = 0; i < M; i++)
                e[i] = ttn_nystrom_slope(s[i], e[i], p->cc[i], scale);
        }
        const size_t rest = (size_t)((p->height - live) * M) * sizeof(real);
        memset(t->s + live * M, 0, rest);
        if (scores) memset(t->e + live * M, 0, rest);
        if (c->din[K]) {
            ttn_gemm(TTN_N, TTN_N, p->height, D, M, 1, ttn_in(t->e, M), ttn_in(p->x, D), 0, ttn_out(t->o, D));
            ttn_nystrom_unpack(j, p, k, t->o, c->acc[K], c->din[K]);
        }
        if (c->din[Q])
            ttn_gemm(TTN_T, TTN_N, M, D, p->height, 1, ttn_in(t->e, M), ttn_in(t->q, D), k == first ? 0 : 1,
                     ttn_out(h->first, D));
        if (!c->din[V]) continue;
        ttn_gemm(TTN_N, TTN_N, p->height, D, M, 1, ttn_in(t->s, M), ttn_in(p->dC, D), 0, ttn_out(t->o, D));
        ttn_nystrom_unpack(j, p, k, t->o, c->acc[V], c->din[V]);
    }
}

/* Rows of x, each divided by the length of its segment. */
static void per_member(const job *j, const pair *p, real *x)
{
    const int64_t D = j->z.D;
    for (int64_t i = 0; i < j->z.m; i++) {
        const int64_t length = ttn_nystrom_segment(i + 1, p->n, j->z.m) - ttn_nystrom_segment(i, p->n, j->z.m);
        for (int64_t d = 0; d < D; d++)
            x[i * D + d] /= (real)length;
    }
}

/* dA's last part, A's logits, and what each row of a segment gets. */
static void through_landmarks(const job *j, int64_t number)
{
    pair *p = &j->g.pair[number];
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    if (ttn_nystrom_starter(j, number) == p) {
        const pair *first = &j->g.pair[number / j->unit * j->unit];
        double sum = 0;
        for (int64_t u = 0; u < j->unit; u++)
            sum += first[u].start_gradient;
        const real of_column = (real)(sum / ((double)p->c * (double)p->c));
        for (int64_t i = 0; i < j->z.m; i++)
            p->da[i * M + p->start.column] -= of_column;
    }
    for (int64_t i = 0; i < j->z.m; i++) {
        const real *a = p->a + i * M;
        real *da = p->da + i * M;
        const real sum = ttn_nystrom_dot(M, a, da);
#pragma omp simd
        for (int64_t k = 0; k < M; k++)
            da[k] = ttn_nystrom_slope(a[k], da[k], sum, j->z.scale);
    }
    memset(p->da + j->z.m * M, 0, (size_t)((M - j->z.m) * M) * sizeof *p->da);
    if (j->c->din[Q]) {
        merge(j, p, 0, p->dx);
        ttn_gemm(TTN_N, TTN_N, M, D, M, 1, ttn_in(p->da, M), ttn_in(p->y, D), 1, ttn_out(p->dx, D));
        per_member(j, p, p->dx);
    }
    if (j->c->din[K]) {
        ttn_gemm(TTN_T, TTN_N, M, D, M, 1, ttn_in(p->da, M), ttn_in(p->x, D), 1, ttn_out(p->dy, D));
        per_member(j, p, p->dy);
    }
}

/* Rows of one chunk: x += its segment's gradient. */
static void add_to_members(const job *j, int64_t number, const real *of_landmarks, void *x)
{
    const pair *p = ttn_nystrom_pair_of_chunk(&j->g, number);
    const int64_t D = j->z.D;
    int64_t first;
    int64_t end;
    ttn_nystrom_tiles_of_chunk(p, number, &first, &end);
    first *= p->height;
    end = ttn_smaller(end * p->height, p->n);
    for (int64_t t = first; t < end; t++) {
        const real *add = of_landmarks + ttn_nystrom_segment_of(t, p->n, j->z.m) * D;
        real *to = (real *)x + ttn_nystrom_place(j, p, t);
#pragma omp simd
        for (int64_t d = 0; d < D; d++)
            to[d] += add[d];
    }
}

/* din = acc din + dout in the rows of sequences. */
static void pass_on(const ttn_call *c)
{
    const int64_t C = ttn_row_width(&c->sig->out[0]);
    const real *g = c->dout[0]; /* may be din */
    real *din = c->din[ADD];
    const real acc = c->acc[ADD];
    for (int64_t s = 0; s < c->feed->used.seqs; s++) {
        const ttn_span span = c->feed->span[s];
#pragma omp parallel for simd num_threads(c->on->n_thread)
        for (int64_t e = span.first * C; e < (span.first + span.n) * C; e++)
            din[e] = ttn_accumulate(acc, din[e], g[e]);
    }
}

static void backward_of_group(job *j)
{
    const ttn_call *c = j->c;
    group *g = &j->g;
    const int scores = for_scores(c);
#pragma omp parallel num_threads(c->on->n_thread)
    {
        tile t;
        ttn_nystrom_lay_out_thread(c->sig, TTN_BACKWARD, ttn_thread_work(c, TTN_BACKWARD, omp_get_thread_num()), &t);
#pragma omp for schedule(static)
        for (int64_t number = 0; number < ttn_nystrom_landmark_tasks(j); number++)
            ttn_nystrom_landmarks(j, number);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < g->n_pair; i++)
            ttn_nystrom_make_a(j, &g->pair[i]);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < g->n_pair; i++)
            remake(j, i, &t);
#pragma omp for schedule(dynamic)
        for (int64_t number = 0; number < g->n_chunk; number++)
            meet_landmarks_back(j, number, &t);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < g->n_pair; i++)
            through_Y(j, &g->pair[i]);
        const int64_t inverses = scores ? g->n_pair : 0;
#pragma omp for schedule(dynamic)
        for (int64_t number = 0; number < inverses + g->n_chunk; number++) {
            /* the inverses' gradients and the chunks of keys do not need each other */
            if (number < inverses)
                through_inverse(j, &g->pair[number], &t);
            else
                meet_keys_back(j, number - inverses, &t);
        }
        if (scores) {
#pragma omp for schedule(dynamic)
            for (int64_t i = 0; i < g->n_pair; i++)
                through_landmarks(j, i);
#pragma omp for schedule(dynamic)
            for (int64_t number = 0; number < g->n_chunk; number++) {
                const pair *p = ttn_nystrom_pair_of_chunk(g, number);
                if (c->din[Q]) add_to_members(j, number, p->dx, c->din[Q]);
                if (c->din[K]) add_to_members(j, number, p->dy, c->din[K]);
            }
        }
    }
}

ttn_status ttn_nystrom_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (for_scores(c) || c->din[V]) {
        const ttn_attn_tiles tiles = ttn_nystrom_short(c);
        ttn_attn_tiles_backward(&tiles);
        job j = ttn_nystrom_start(c, TTN_BACKWARD);
        for (ttn_nystrom_next_group(&j); j.g.n_pair > 0; ttn_nystrom_next_group(&j))
            backward_of_group(&j);
    }
    if (c->din[ADD]) pass_on(c);
    for (int i = Q; i <= ADD; i++)
        if (c->din[i] && c->acc[i] == 0) ttn_zero_no_sequence(c, &c->sig->in[i], c->din[i]);
    return TTN_OK;
}
