/* Softmax attention by tiles.
 *
 * The n x n matrix is never stored. A sequence is cut into tiles of equal height (at most MOST_TILE rows) that depend on
 * its length alone; products are of whole tiles, filled up with zero rows, so a sequence's bits depend neither on its
 * place in the batch nor on what else is in it. Forward goes along the keys with the running maximum m, the sum l of
 * exp(a - m), and the sum of exp(a - m) v, and rescales both sums when m grows. Backward makes p again from L.
 *
 * Each pair of a sequence and a head is copied out of (N, H D) into rows of its own, D wide: products straight from
 * (N, H D) are 25 to 40 % slower (H 8, D 64), since OpenBLAS copies a tile in every call and meets a stride of 2 KiB
 * there. As many pairs as keep the threads busy are done together (a group), so copies take little memory: those of one
 * pair, or PACKED_ROWS rows.
 *
 * Backward is one sweep with five products a pair of tiles, not two sweeps with seven: in wave w, query tile (j + w) mod
 * T meets key tile j, for all j at once. Within a wave no two tasks write one tile of dq, dk or dv, and each of these is
 * added to in the order of waves, so bits do not depend on the threads.
 *
 * Measured in f32 on Zen 3 (H 8, D 64, forward + backward; make bench B=attn): 0.82 of the rate of its own products issued
 * bare at n 2,048 on one thread, 0.86, 0.85 and 0.81 at 2,048, 4,096 and 8,192 on two; 0.66 to 0.72 of one plain sgemm.
 * exp and its passes are 8 to 10 % of the time, OpenBLAS's own copies 15 %. Dropout draws cost 6 ns a weight and halve the
 * rate of forward. */
#include <assert.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "autograd/attn_tiles.h"
#include "autograd/carve.h"
#include "autograd/kernel.h"
#include "core/blas.h"
#include "core/rng.h"
#include "core/vecmath.h"

enum { Q, K, V };

enum {
    WIDTH = TTN_ATTN_TILE_STEP, /* partial sums of a row, whatever the processor has */
    PACKED_ROWS = 24576,   /* rows of copies that a group may have when a pair has fewer: 16 threads' worth of tiles */
    TASKS_PER_THREAD = 16, /* of a group: a core that gets one more than another waits 1/16 of the time at most */
};

/* ---- memory: what a call works with ---- */

typedef struct {
    int64_t H, D, C, seqs, room;
    const int64_t *first_tile; /* (S + 1) tiles of the sequences before s, counted in one head */
    const int64_t *first_row;  /* (S + 1) rows of those tiles */
    /* copies of a group (rows, D), zero in rows that only fill up a tile; backward has all of them */
    real *q, *k, *v, *g, *dq, *dk, *dv;
    real *lse, *delta; /* (rows); delta times s */
} packed;

typedef struct {
    real *a;              /* (tile, tile): a, then p */
    real *b;              /* backward: g v^T, then e */
    real *sum_v;          /* for out (tile, D): sum of exp(a - m) v */
    real *max, *next_max; /* for out (tile): m, and m with the tile at hand */
    real *factor;         /* for out (tile): exp(m - next m) */
    real *tile_sum;       /* for out (tile): sum of exp(a - next m) in the tile at hand */
    double *sum;          /* for out (tile): l; in double, since it has up to 10^4 terms */
    uint32_t *word;       /* (tile + 4): random words of one row of a tile */
} scratch;

/* Rows of copies. No sequence takes more than n + n / 8 + TTN_ATTN_TILE_STEP rows of tiles: T tiles are rounded up by less than
 * that step each. */
static int64_t packed_rows(const ttn_sig *s, int64_t H, int64_t longest)
{
    const int64_t N = s->in[Q].dim[0];
    const int64_t most = longest < N ? ttn_smaller(s->cap.seqs * longest, N) : N; /* rows that are not left alone */
    const int64_t longest_one = ttn_smaller(longest, N);
    const int64_t one = longest_one + longest_one / 8 + TTN_ATTN_TILE_STEP;
    const int64_t all = H * (most + most / 8 + TTN_ATTN_TILE_STEP * s->cap.seqs);
    return ttn_smaller(ttn_larger(one, PACKED_ROWS), ttn_larger(all, TTN_ATTN_TILE_STEP));
}

static size_t lay_out(const ttn_sig *s, int64_t H, int64_t longest, ttn_pass pass, void *work, packed *ret)
{
    *ret = (packed){.H = H, .D = s->in[Q].dim[1] / H, .C = s->in[Q].dim[1], .room = packed_rows(s, H, longest)};
    ttn_carving c = {.base = work};
    ret->first_tile = ttn_carve(&c, s->cap.seqs + 1, sizeof *ret->first_tile);
    ret->first_row = ttn_carve(&c, s->cap.seqs + 1, sizeof *ret->first_row);
    real **const copy[] = {&ret->q, &ret->k, &ret->v, &ret->g, &ret->dq, &ret->dk, &ret->dv};
    const int n_copy = pass == TTN_FORWARD ? 3 : 7;
    for (int i = 0; i < n_copy; i++)
        *copy[i] = ttn_carve(&c, ret->room * ret->D, sizeof(real));
    if (pass == TTN_FORWARD) return c.at;
    ret->lse = ttn_carve(&c, ret->room, sizeof(real));
    ret->delta = ttn_carve(&c, ret->room, sizeof(real));
    return c.at;
}

/* attends: out is computed in this pass. */
static size_t lay_out_thread(int64_t D, ttn_pass pass, int attends, void *work, scratch *ret)
{
    *ret = (scratch){0};
    ttn_carving c = {.base = work};
    ret->a = ttn_carve(&c, TTN_ATTN_MOST_TILE * TTN_ATTN_MOST_TILE, sizeof(real));
    ret->word = ttn_carve(&c, TTN_ATTN_MOST_TILE + 4, sizeof *ret->word);
    if (pass == TTN_BACKWARD) ret->b = ttn_carve(&c, TTN_ATTN_MOST_TILE * TTN_ATTN_MOST_TILE, sizeof(real));
    if (!attends) return c.at;
    ret->sum_v = ttn_carve(&c, TTN_ATTN_MOST_TILE * D, sizeof(real));
    real **const column[] = {&ret->max, &ret->next_max, &ret->factor, &ret->tile_sum};
    for (int i = 0; i < 4; i++)
        *column[i] = ttn_carve(&c, TTN_ATTN_MOST_TILE, sizeof(real));
    ret->sum = ttn_carve(&c, TTN_ATTN_MOST_TILE, sizeof *ret->sum);
    return c.at;
}

size_t ttn_attn_tiles_work(const ttn_sig *s, int64_t heads, int64_t longest, ttn_pass pass)
{
    packed p;
    return lay_out(s, heads, longest, pass, NULL, &p);
}

size_t ttn_attn_tiles_work_thread(const ttn_sig *s, int64_t heads, int remakes_out, ttn_pass pass)
{
    scratch t;
    return lay_out_thread(s->in[Q].dim[1] / heads, pass, pass == TTN_FORWARD || remakes_out, NULL, &t);
}

/* ---- tasks ---- */

/* All that is the same for the whole call. */
typedef struct {
    const ttn_attn_tiles *a;
    const ttn_call *c;
    packed p;
    int causal;
    ttn_attn_exact_rule rule;
} job;

/* Rows of a sequence, 0 of one that is left alone: it has no tiles. */
static int64_t rows_of(const job *j, int64_t seq)
{
    const int64_t n = j->c->feed->span[seq].n;
    return n <= j->a->longest ? n : 0;
}

/* One tile of one pair. */
typedef struct {
    int64_t seq, head;
    int64_t T, height; /* the sequence's tiles */
    int64_t tile;      /* which of them */
    int64_t live;      /* its rows that belong to the sequence */
    int64_t row;       /* its first row in the batch */
    int64_t base;      /* the pair's first row among the copies of the group */
    int64_t at;        /* the tile's */
} task;

/* A group: pairs (sequence H + head) from `pair` up to `end`. */
typedef struct {
    int64_t pair, end;
} group;

/* What stands before this pair when all pairs are laid out one after the other; `first` is first_tile or first_row. */
static int64_t before(const packed *p, const int64_t *first, int64_t pair)
{
    const int64_t s = pair / p->H;
    if (s == p->seqs) return first[s] * p->H;
    return first[s] * p->H + pair % p->H * (first[s + 1] - first[s]);
}

/* The pairs that follow: whole ones, until there are tasks enough for the threads or no room for more. */
static group next_group(const packed *p, int n_thread, int64_t pair)
{
    const int64_t tiles = before(p, p->first_tile, pair);
    const int64_t rows = before(p, p->first_row, pair);
    group g = {.pair = pair, .end = pair + 1};
    while (g.end < p->seqs * p->H && before(p, p->first_tile, g.end) - tiles < (int64_t)TASKS_PER_THREAD * n_thread &&
           before(p, p->first_row, g.end + 1) - rows <= p->room)
        g.end++;
    return g;
}

/* Another tile of the same pair. */
static task tile_of(const job *j, task t, int64_t tile)
{
    const ttn_span span = j->c->feed->span[t.seq];
    t.tile = tile;
    t.live = ttn_smaller(t.height, span.n - tile * t.height);
    t.row = span.first + tile * t.height;
    t.at = t.base + tile * t.height;
    return t;
}

/* Tile number `number` of all, within the group. */
static task find_task(const job *j, group g, int64_t number)
{
    const packed *p = &j->p;
    int64_t s = 0; /* the last sequence that begins at or before it */
    for (int64_t end = p->seqs; end - s > 1;) {
        const int64_t middle = s + (end - s) / 2;
        if (p->first_tile[middle] * p->H <= number)
            s = middle;
        else
            end = middle;
    }
    const int64_t n = rows_of(j, s);
    const int64_t rest = number - p->first_tile[s] * p->H;
    task t = {.seq = s, .T = ttn_attn_tiles_of(n), .height = ttn_attn_height_of(n)};
    assert(t.T > 0); /* the last sequence that begins there is not one without tiles */
    t.head = rest / t.T;
    t.base = before(p, p->first_row, s * p->H + t.head) - before(p, p->first_row, g.pair);
    return tile_of(j, t, rest % t.T);
}

static job start(const ttn_attn_tiles *a, ttn_pass pass)
{
    const ttn_call *c = a->c;
    job j = {.a = a, .c = c, .causal = a->causal, .rule = a->rule};
    lay_out(c->sig, a->heads, a->longest, pass, c->work, &j.p);
    const int64_t S = c->feed->used.seqs;
    j.p.seqs = S;
    int64_t *first_tile = (int64_t *)j.p.first_tile;
    int64_t *first_row = (int64_t *)j.p.first_row;
    first_tile[0] = 0;
    first_row[0] = 0;
    for (int64_t s = 0; s < S; s++) {
        const int64_t n = rows_of(&j, s);
        first_tile[s + 1] = first_tile[s] + ttn_attn_tiles_of(n);
        first_row[s + 1] = first_row[s] + ttn_attn_tiles_of(n) * ttn_attn_height_of(n);
    }
    return j;
}

/* ---- in and out of (N, H D) ---- */

static const real *batch_row(const job *j, const task *t, const void *x, int64_t r)
{
    return (const real *)x + (t->row + r) * j->p.C + t->head * j->p.D;
}

static void pack(const job *j, const task *t, const void *x, real *to)
{
    const int64_t D = j->p.D;
    to += t->at * D;
    for (int64_t r = 0; r < t->live; r++)
        memcpy(to + r * D, batch_row(j, t, x, r), (size_t)D * sizeof *to);
    memset(to + t->live * D, 0, (size_t)((t->height - t->live) * D) * sizeof *to);
}

static void unpack(const job *j, const task *t, const real *from, real acc, void *x)
{
    const int64_t D = j->p.D;
    from += t->at * D;
    for (int64_t r = 0; r < t->live; r++) {
        real *to = (real *)x + (t->row + r) * j->p.C + t->head * D;
#pragma omp simd
        for (int64_t d = 0; d < D; d++)
            to[d] = ttn_accumulate(acc, to[d], from[r * D + d]);
    }
}

/* ---- a tile of a = s q k^T ---- */

static real total(const real *part)
{
    real sum[WIDTH];
    memcpy(sum, part, sizeof sum);
    for (int apart = WIDTH / 2; apart > 2; apart /= 2) /* 12, 6, 3 */
        for (int w = 0; w < apart; w++)
            sum[w] += sum[w + apart];
    return sum[0] + sum[1] + sum[2];
}

static real largest(const real *part)
{
    real most = part[0];
    for (int w = 1; w < WIDTH; w++)
        most = part[w] > most ? part[w] : most;
    return most;
}

/* What a row must not see becomes -inf, so that exp makes it 0 and the other loops need not know of it: keys behind the
 * sequence's end, and in a causal tile on the diagonal those behind the row. */
static void mask(const job *j, const task *query, const task *key, real *a)
{
    const int64_t height = key->height;
    const int diagonal = j->causal && query->tile == key->tile;
    if (!diagonal && key->live == height) return;
    for (int64_t r = 0; r < height; r++)
        for (int64_t t = diagonal ? ttn_smaller(r + 1, key->live) : key->live; t < height; t++)
            a[r * height + t] = -(real)INFINITY;
}

static void scores(const job *j, const task *query, const task *key, real *a)
{
    const int64_t height = key->height;
    const int64_t D = j->p.D;
    ttn_gemm(TTN_N, TTN_T, height, height, D, (double)j->rule.scale, ttn_in(j->p.q + query->at * D, D),
             ttn_in(j->p.k + key->at * D, D), 0, ttn_out(a, height));
    mask(j, query, key, a);
}

/* Random words for row r of the query tile against the key tile's rows. Returns the word of the first of them. */
static const uint32_t *draw(const job *j, uint64_t key_of_head, const task *query, const task *key, int64_t r,
                            uint32_t *word)
{
    const ttn_feed *f = j->c->feed;
    const int64_t start = f->start ? f->start[query->seq] : 0;
    const uint64_t sample = f->sample ? f->sample[query->seq] : (uint64_t)query->seq;
    const int64_t i = start + query->tile * query->height + r;
    const int64_t t = start + key->tile * key->height;
    ttn_rng_words(key_of_head, sample, ttn_attn_exact_place(i, t / 4), key->height / 4 + 1, word);
    return word + t % 4;
}

/* ---- forward ---- */

/* a becomes exp(a - next m), and its rows are summed; each row is in the first cache from the maximum to the sum. */
static void exponentials(int64_t height, real *a, const scratch *s)
{
    for (int64_t r = 0; r < height; r++) {
        real *row = a + r * height;
        real part[WIDTH];
        memcpy(part, row, sizeof part);
        for (int64_t t = WIDTH; t < height; t += WIDTH) {
#pragma omp simd
            for (int w = 0; w < WIDTH; w++)
                part[w] = row[t + w] > part[w] ? row[t + w] : part[w];
        }
        const real here = largest(part);
        const real most = here > s->max[r] ? here : s->max[r];
        memset(part, 0, sizeof part);
        for (int64_t t = 0; t < height; t += WIDTH) {
#pragma omp simd
            for (int w = 0; w < WIDTH; w++) {
                const real p = ttn_exp(row[t + w] - most);
                row[t + w] = p;
                part[w] += p;
            }
        }
        s->next_max[r] = most;
        s->tile_sum[r] = total(part);
    }
}

/* Old sums to the new maximum, and the tile's sum added. */
static void rescale(int64_t height, int64_t D, const scratch *s)
{
#pragma omp simd
    for (int64_t r = 0; r < height; r++)
        s->factor[r] = ttn_exp(s->max[r] - s->next_max[r]);
    for (int64_t r = 0; r < height; r++) {
        const real factor = s->factor[r];
        s->sum[r] = s->sum[r] * (double)factor + (double)s->tile_sum[r];
        s->max[r] = s->next_max[r];
        if (factor == 1) continue;
        real *sum_v = s->sum_v + r * D;
#pragma omp simd
        for (int64_t d = 0; d < D; d++)
            sum_v[d] *= factor;
    }
}

static void drop(const job *j, uint64_t key_of_head, const task *query, const task *key, const scratch *s)
{
    const int64_t height = key->height;
    const uint32_t threshold = j->rule.threshold;
    const real kept = j->rule.kept;
    for (int64_t r = 0; r < query->live; r++) {
        const uint32_t *word = draw(j, key_of_head, query, key, r, s->word);
        real *row = s->a + r * height;
#pragma omp simd
        for (int64_t t = 0; t < height; t++)
            row[t] *= ttn_attn_exact_kept(word[t], threshold, kept);
    }
}

/* Where a tile's first row of out goes. */
typedef struct {
    real *out;
    const real *add; /* as out; NULL: nothing is added */
    int64_t ld;      /* of out and add */
    real *lse;       /* every H-th; NULL: L is not wanted */
} destination;

/* Out of one tile, and L where it is wanted. */
static void attend(const job *j, const task *query, const scratch *s, destination to)
{
    const int64_t height = query->height;
    const int64_t D = j->p.D;
    const int64_t n_key = j->causal ? query->tile + 1 : query->T;
    const uint64_t key_of_head = j->rule.drops ? ttn_attn_exact_key(j->c->key, query->head) : 0;
    for (int64_t r = 0; r < height; r++) {
        s->max[r] = -(real)INFINITY;
        s->sum[r] = 0;
    }
    memset(s->sum_v, 0, (size_t)(height * D) * sizeof *s->sum_v);
    for (int64_t tile = 0; tile < n_key; tile++) {
        const task key = tile_of(j, *query, tile);
        scores(j, query, &key, s->a);
        exponentials(height, s->a, s);
        rescale(height, D, s);
        if (j->rule.drops) drop(j, key_of_head, query, &key, s);
        ttn_gemm(TTN_N, TTN_N, height, D, height, 1, ttn_in(s->a, height), ttn_in(j->p.v + key.at * D, D), 1,
                 ttn_out(s->sum_v, D));
    }
    for (int64_t r = 0; r < query->live; r++) {
        const real factor = (real)(1 / s->sum[r]);
        const real *sum_v = s->sum_v + r * D;
        real *out = to.out + r * to.ld;
        if (to.lse) to.lse[r * j->p.H] = (real)((double)s->max[r] + ttn_logd(s->sum[r]));
        if (to.add) {
            const real *add = to.add + r * to.ld;
#pragma omp simd
            for (int64_t d = 0; d < D; d++)
                out[d] = sum_v[d] * factor + add[d];
        } else {
#pragma omp simd
            for (int64_t d = 0; d < D; d++)
                out[d] = sum_v[d] * factor;
        }
    }
}

void ttn_attn_tiles_forward(const ttn_attn_tiles *a)
{
    const ttn_call *c = a->c;
    const job j = start(a, TTN_FORWARD);
    const int64_t n_pair = j.p.seqs * j.p.H;
#pragma omp parallel num_threads(c->on->n_thread)
    {
        scratch s;
        lay_out_thread(j.p.D, TTN_FORWARD, 1, ttn_thread_work(c, TTN_FORWARD, omp_get_thread_num()), &s);
        group g = {0};
        for (int64_t pair = 0; pair < n_pair; pair = g.end) {
            g = next_group(&j.p, c->on->n_thread, pair);
            const int64_t first = before(&j.p, j.p.first_tile, g.pair);
            const int64_t end = before(&j.p, j.p.first_tile, g.end);
#pragma omp for schedule(static)
            for (int64_t number = first; number < end; number++) {
                const task t = find_task(&j, g, number);
                pack(&j, &t, c->in[Q], j.p.q);
                pack(&j, &t, c->in[K], j.p.k);
                pack(&j, &t, c->in[V], j.p.v);
            }
            /* out may be q: this group's is copied, and other groups have other rows or columns. From the last tile on,
             * since a causal one has the most to do. */
#pragma omp for schedule(dynamic)
            for (int64_t number = end - 1; number >= first; number--) {
                const task t = find_task(&j, g, number);
                const int64_t at = t.row * j.p.C + t.head * j.p.D;
                attend(&j, &t, &s,
                       (destination){.out = (real *)c->out[0] + at,
                                     .add = a->add ? a->add + at : NULL,
                                     .ld = j.p.C,
                                     .lse = a->lse + t.row * j.p.H + t.head});
            }
        }
    }
}

/* ---- backward ---- */

/* L and s delta of a tile; 0 in rows that fill it up, whose g is 0 too, so that they add nothing. */
static void prepare_rows(const job *j, const task *t, int for_scores)
{
    const int64_t D = j->p.D;
    const real *lse = j->a->lse + t->row * j->p.H + t->head;
    for (int64_t r = 0; r < t->height; r++) {
        j->p.lse[t->at + r] = r < t->live ? lse[r * j->p.H] : 0;
        j->p.delta[t->at + r] = 0;
        if (!for_scores || r >= t->live) continue;
        const real *out = j->a->remakes_out ? j->p.dq + (t->at + r) * D : batch_row(j, t, j->c->out[0], r);
        const real *g = j->p.g + (t->at + r) * D;
        enum { PARTS = 8 };
        real part[PARTS] = {0};
        int64_t d = 0;
        for (; d + PARTS <= D; d += PARTS) {
#pragma omp simd
            for (int w = 0; w < PARTS; w++)
                part[w] += g[d + w] * out[d + w];
        }
        for (int w = 0; d + w < D; w++)
            part[w] += g[d + w] * out[d + w];
        real delta = 0;
        for (int w = 0; w < PARTS; w++)
            delta += part[w];
        j->p.delta[t->at + r] = j->rule.scale * delta;
    }
}

/* a becomes p (times z), b = g v^T becomes e; b may be NULL. */
static void weights(const job *j, const task *query, const task *key, const scratch *s, real *b)
{
    const int64_t height = key->height;
    const real scale = j->rule.scale;
    const uint64_t key_of_head = j->rule.drops ? ttn_attn_exact_key(j->c->key, query->head) : 0;
    for (int64_t r = 0; r < height; r++) {
        const real lse = j->p.lse[query->at + r];
        const real delta = j->p.delta[query->at + r];
        real *p = s->a + r * height;
        real *e = b ? b + r * height : NULL;
        if (j->rule.drops) {
            const uint32_t *word = draw(j, key_of_head, query, key, r, s->word);
            const real kept = j->rule.kept;
            const uint32_t threshold = j->rule.threshold;
            if (e) {
#pragma omp simd
                for (int64_t t = 0; t < height; t++) {
                    const real z = ttn_attn_exact_kept(word[t], threshold, kept);
                    const real weight = ttn_exp(p[t] - lse);
                    p[t] = weight * z;
                    e[t] = ttn_attn_exact_slope(weight, z, e[t], scale, delta);
                }
            } else {
#pragma omp simd
                for (int64_t t = 0; t < height; t++)
                    p[t] = ttn_exp(p[t] - lse) * ttn_attn_exact_kept(word[t], threshold, kept);
            }
        } else if (e) {
#pragma omp simd
            for (int64_t t = 0; t < height; t++) {
                const real weight = ttn_exp(p[t] - lse);
                p[t] = weight;
                e[t] = ttn_attn_exact_slope(weight, 1, e[t], scale, delta);
            }
        } else {
#pragma omp simd
            for (int64_t t = 0; t < height; t++)
                p[t] = ttn_exp(p[t] - lse);
        }
    }
}

/* One query tile against one key tile; `beta` is 0 when it is the first that these tiles of dq, dk and dv see. */
static void invert(const job *j, const task *query, const task *key, const scratch *s, double beta)
{
    const packed *p = &j->p;
    const int64_t D = p->D;
    const int64_t height = key->height;
    void *const *din = j->c->din;
    real *b = din[Q] || din[K] ? s->b : NULL;
    scores(j, query, key, s->a);
    if (b)
        ttn_gemm(TTN_N, TTN_T, height, height, D, 1, ttn_in(p->g + query->at * D, D), ttn_in(p->v + key->at * D, D), 0,
                 ttn_out(b, height));
    weights(j, query, key, s, b);
    if (din[V])
        ttn_gemm(TTN_T, TTN_N, height, D, height, 1, ttn_in(s->a, height), ttn_in(p->g + query->at * D, D), beta,
                 ttn_out(p->dv + key->at * D, D));
    if (din[K])
        ttn_gemm(TTN_T, TTN_N, height, D, height, 1, ttn_in(b, height), ttn_in(p->q + query->at * D, D), beta,
                 ttn_out(p->dk + key->at * D, D));
    if (din[Q])
        ttn_gemm(TTN_N, TTN_N, height, D, height, 1, ttn_in(b, height), ttn_in(p->k + key->at * D, D), beta,
                 ttn_out(p->dq + query->at * D, D));
}

static int64_t most_tiles(const job *j, group g)
{
    int64_t most = 0;
    for (int64_t s = g.pair / j->p.H; s <= (g.end - 1) / j->p.H; s++)
        most = ttn_larger(most, ttn_attn_tiles_of(rows_of(j, s)));
    return most;
}

void ttn_attn_tiles_backward(const ttn_attn_tiles *a)
{
    const ttn_call *c = a->c;
    const job j = start(a, TTN_BACKWARD);
    const int64_t n_pair = j.p.seqs * j.p.H;
    const int for_scores = c->din[Q] || c->din[K];
    const int remakes = for_scores && a->remakes_out;
    if (!for_scores && !c->din[V]) return;
#pragma omp parallel num_threads(c->on->n_thread)
    {
        scratch s;
        lay_out_thread(j.p.D, TTN_BACKWARD, a->remakes_out, ttn_thread_work(c, TTN_BACKWARD, omp_get_thread_num()), &s);
        group g = {0};
        for (int64_t pair = 0; pair < n_pair; pair = g.end) {
            g = next_group(&j.p, c->on->n_thread, pair);
            const int64_t first = before(&j.p, j.p.first_tile, g.pair);
            const int64_t end = before(&j.p, j.p.first_tile, g.end);
#pragma omp for schedule(static)
            for (int64_t number = first; number < end; number++) {
                const task t = find_task(&j, g, number);
                pack(&j, &t, c->in[Q], j.p.q);
                pack(&j, &t, c->in[K], j.p.k);
                pack(&j, &t, c->dout[0], j.p.g);
                if (for_scores) pack(&j, &t, c->in[V], j.p.v);
                if (!remakes) prepare_rows(&j, &t, for_scores);
            }
            if (remakes) {
#pragma omp for schedule(dynamic)
                for (int64_t number = first; number < end; number++) {
                    const task t = find_task(&j, g, number);
                    /* dq's copy is still free */
                    attend(&j, &t, &s, (destination){.out = j.p.dq + t.at * j.p.D, .ld = j.p.D});
                    prepare_rows(&j, &t, for_scores);
                }
            }
            const int64_t n_wave = most_tiles(&j, g);
            for (int64_t wave = 0; wave < n_wave; wave++) {
#pragma omp for schedule(dynamic)
                for (int64_t number = first; number < end; number++) {
                    const task key = find_task(&j, g, number);
                    const int64_t tile = key.tile + wave;
                    if (wave >= key.T || (j.causal && tile >= key.T)) continue;
                    const task query = tile_of(&j, key, tile % key.T);
                    invert(&j, &query, &key, &s, wave == 0 ? 0 : 1);
                }
            }
            /* in the order of the inputs: two of them may be one value. dq may be dout, of which the group has a copy. */
#pragma omp for schedule(static)
            for (int64_t number = first; number < end; number++) {
                const task t = find_task(&j, g, number);
                if (c->din[Q]) unpack(&j, &t, j.p.dq, c->acc[Q], c->din[Q]);
                if (c->din[K]) unpack(&j, &t, j.p.dk, c->acc[K], c->din[K]);
                if (c->din[V]) unpack(&j, &t, j.p.dv, c->acc[V], c->din[V]);
            }
        }
    }
}
