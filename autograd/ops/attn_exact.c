/* exact attention, per sequence and head:  out_i = sum_t p_it v_t,   p_it = exp(a_it - L_i),   a_it = s q_i.k_t,
 * L_i = log sum_t exp(a_it), over all rows t of i's sequence (causal: t <= i).   q, k, v, out (N, H D)
 * aux 0: L (N, H).   Rows of no sequence: zeros. A run without sequences has no other rows.
 *
 * With g = dout, delta_i = g_i.out_i and e_it = s p_it (g_i.v_t - delta_i):
 * dq_i = sum_t e_it k_t     dk_t = sum_i e_it q_i     dv_t = sum_i p_it g_i
 *
 * Dropout (training only) puts p_it z_it in the place of p_it where it meets v_t or g_i, z being 0 or 1 / (1 - rate):
 * e_it = s p_it (z_it g_i.v_t - delta_i), and delta_i is g_i.out_i as before. z is drawn with a key of the head's own,
 * made from the call's, at counter (sample number, position of i, position of t / 4): a function of the place in the
 * sequence and of nothing else, and no draw is used twice.
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
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "autograd/ops/attn_exact.h"
#include "core/blas.h"
#include "core/memory.h"
#include "core/rng.h"
#include "core/vecmath.h"

enum { Q, K, V };

typedef ttn_attn_exact_options attributes;

enum {
    /* Backward's two tiles of 192 x 192 in f32 fit the second cache (512 KiB) beside their operands. Bare products of
     * forward, backward on Zen 3, share of one plain sgemm: 96: 0.81, 0.83; 144: 0.90, 0.89; 192: 0.86, 0.88; 240: 0.87,
     * 0.88; 480: 0.88, 0.86. Larger tiles waste more above the diagonal and behind the end. */
    MOST_TILE = 192,
    WIDTH = 24,            /* partial sums of a row, whatever the processor has */
    TILE_STEP = WIDTH,     /* heights of tiles: a multiple of TTN_ROW_ALIGN, and rows of whole partial sums */
    PACKED_ROWS = 24576,   /* rows of copies that a group may have when a pair has fewer: 16 threads' worth of tiles */
    TASKS_PER_THREAD = 16, /* of a group: a core that gets one more than another waits 1/16 of the time at most */
};

/* ---- shapes ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How many tiles a sequence of n rows has, and how high they are. */
static int64_t tiles_of(int64_t n)
{
    return (n + MOST_TILE - 1) / MOST_TILE;
}

static int64_t height_of(int64_t n)
{
    const int64_t T = tiles_of(n);
    if (T == 0) return 0;
    const int64_t rows = (n + T - 1) / T;
    return (rows + TILE_STEP - 1) / TILE_STEP * TILE_STEP;
}

/* ---- memory: what a call works with ---- */

typedef struct {
    int64_t N, H, D, C, seqs;
    const int64_t *first_tile; /* (S + 1) tiles of the sequences before s, counted in one head */
    const int64_t *first_row;  /* (S + 1) rows of those tiles */
    /* copies of a group (rows, D), zero in rows that only fill up a tile; backward has all of them */
    real *q, *k, *v, *g, *dq, *dk, *dv;
    real *lse, *delta; /* (rows); delta times s */
} packed;

typedef struct {
    real *a;              /* (tile, tile): a, then p */
    real *b;              /* backward: g v^T, then e */
    real *sum_v;          /* forward (tile, D): sum of exp(a - m) v */
    real *max, *next_max; /* forward (tile): m, and m with the tile at hand */
    real *factor;         /* forward (tile): exp(m - next m) */
    real *tile_sum;       /* forward (tile): sum of exp(a - next m) in the tile at hand */
    double *sum;          /* forward (tile): l; in double, since it has up to 10^4 terms */
    uint32_t *word;       /* (tile + 4): random words of one row of a tile */
} scratch;

typedef struct {
    char *base; /* NULL: only counting */
    size_t at;
} carving;

static void *carve(carving *c, int64_t n, size_t size)
{
    void *p = c->base ? c->base + c->at : NULL;
    c->at += ttn_work_align((size_t)n * size);
    return p;
}

/* No sequence takes more than n + n / 8 + TILE_STEP rows of tiles: T tiles are rounded up by less than TILE_STEP each. */
static int64_t packed_rows(const ttn_sig *s, int64_t H)
{
    const int64_t N = s->in[Q].dim[0];
    const int64_t one = N + N / 8 + TILE_STEP;
    const int64_t all = H * (N + N / 8 + TILE_STEP * s->cap.seqs);
    return smaller(larger(one, PACKED_ROWS), larger(all, TILE_STEP));
}

static size_t lay_out(const ttn_sig *s, ttn_pass pass, void *work, packed *ret)
{
    const int64_t H = ((const attributes *)s->attr)->heads;
    *ret = (packed){.N = s->in[Q].dim[0], .H = H, .D = s->in[Q].dim[1] / H, .C = s->in[Q].dim[1]};
    const int64_t rows = packed_rows(s, H);
    carving c = {.base = work};
    ret->first_tile = carve(&c, s->cap.seqs + 1, sizeof *ret->first_tile);
    ret->first_row = carve(&c, s->cap.seqs + 1, sizeof *ret->first_row);
    real **const copy[] = {&ret->q, &ret->k, &ret->v, &ret->g, &ret->dq, &ret->dk, &ret->dv};
    const int n_copy = pass == TTN_FORWARD ? 3 : 7;
    for (int i = 0; i < n_copy; i++)
        *copy[i] = carve(&c, rows * ret->D, sizeof(real));
    if (pass == TTN_FORWARD) return c.at;
    ret->lse = carve(&c, rows, sizeof(real));
    ret->delta = carve(&c, rows, sizeof(real));
    return c.at;
}

static size_t lay_out_thread(int64_t D, ttn_pass pass, void *work, scratch *ret)
{
    *ret = (scratch){0};
    carving c = {.base = work};
    ret->a = carve(&c, MOST_TILE * MOST_TILE, sizeof(real));
    ret->word = carve(&c, MOST_TILE + 4, sizeof *ret->word);
    if (pass == TTN_BACKWARD) {
        ret->b = carve(&c, MOST_TILE * MOST_TILE, sizeof(real));
        return c.at;
    }
    ret->sum_v = carve(&c, MOST_TILE * D, sizeof(real));
    real **const column[] = {&ret->max, &ret->next_max, &ret->factor, &ret->tile_sum};
    for (int i = 0; i < 4; i++)
        *column[i] = carve(&c, MOST_TILE, sizeof(real));
    ret->sum = carve(&c, MOST_TILE, sizeof *ret->sum);
    return c.at;
}

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    static const char *const name[] = {"q", "k", "v"};
    char text[TTN_DESC_TEXT];
    char other[TTN_DESC_TEXT];
    for (int i = Q; i <= V; i++) {
        ttn_status status = ttn_want_shape(s, i, "attn_exact", name[i], "(N, H D)", err);
        if (status != TTN_OK) return status;
        if (s->in[i].axis != TTN_ROWS)
            return TTN_FAIL(err, TTN_EINVAL, "attn_exact: %s is %s, expected rows of a batch, (N, H D)", name[i],
                            ttn_desc_print(&s->in[i], text));
        if (!ttn_desc_same(&s->in[i], &s->in[Q]))
            return TTN_FAIL(err, TTN_EINVAL, "attn_exact: %s is %s, but q is %s; expected one shape", name[i],
                            ttn_desc_print(&s->in[i], text), ttn_desc_print(&s->in[Q], other));
    }
    const attributes *a = s->attr;
    const int64_t C = s->in[Q].dim[1];
    if (a->heads < 1 || C < 1 || C % a->heads != 0)
        return TTN_FAIL(err, TTN_EINVAL, "attn_exact: a width of %" PRId64 " cannot be divided among %d heads", C,
                        a->heads);
    if (!(isfinite((real)a->scale) && a->scale >= 0))
        return TTN_FAIL(err, TTN_EINVAL,
                        "attn_exact: scale is %g, expected a number above 0, or 0 for 1/sqrt(%" PRId64 ")", a->scale,
                        C / a->heads);
    if (!(a->dropout >= 0 && a->dropout < 1))
        return TTN_FAIL(err, TTN_EINVAL, "attn_exact: dropout is %g, expected at least 0 and less than 1", a->dropout);
    s->n_out = 1;
    s->out[0] = s->in[Q];
    s->n_aux = 1;
    s->aux[0] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, s->in[Q].dim[0], a->heads, 0);
    for (int pass = TTN_FORWARD; pass <= TTN_BACKWARD; pass++) {
        packed p;
        scratch t;
        s->work[pass] = lay_out(s, (ttn_pass)pass, NULL, &p);
        s->work_thread[pass] = lay_out_thread(C / a->heads, (ttn_pass)pass, NULL, &t);
    }
    return TTN_OK;
}

/* Lengths are not known when a graph is recorded: as many sequences as it has room for, all of one length. */
static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const attributes *a = s->attr;
    const double N = (double)s->in[Q].dim[0];
    const double C = (double)s->in[Q].dim[1];
    const double seqs = s->cap.seqs > 0 ? (double)s->cap.seqs : 1;
    const double n = N / seqs;
    const double seen = a->causal ? (n + 1) / 2 : n; /* keys of a row */
    const double product = 2 * N * seen * C;
    const double weights = N * seen * (double)a->heads;
    const double values = (pass == TTN_FORWARD ? 4 : 8) * N * C + N * (double)a->heads;
    ttn_cost cost = {.bytes = values * (double)sizeof(real)};
    if (pass == TTN_FORWARD) {
        cost.done = 2 * product + 5 * weights; /* q k^T, p v; scale, maximum, difference, exp, sum */
        cost.useful = cost.done;
    } else {
        cost.useful = 4 * product + 4 * weights; /* g v^T, p^T g, e k, e^T q */
        cost.done = cost.useful + product + 3 * weights;
    }
    return cost;
}

/* ---- tasks ---- */

/* All that is the same for the whole call. */
typedef struct {
    const ttn_call *c;
    packed p;
    int causal;
    ttn_attn_exact_rule rule;
} job;

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
static group next_group(const packed *p, int n_thread, int64_t room, int64_t pair)
{
    const int64_t tiles = before(p, p->first_tile, pair);
    const int64_t rows = before(p, p->first_row, pair);
    group g = {.pair = pair, .end = pair + 1};
    while (g.end < p->seqs * p->H && before(p, p->first_tile, g.end) - tiles < (int64_t)TASKS_PER_THREAD * n_thread &&
           before(p, p->first_row, g.end + 1) - rows <= room)
        g.end++;
    return g;
}

/* Another tile of the same pair. */
static task tile_of(const job *j, task t, int64_t tile)
{
    const ttn_span span = j->c->feed->span[t.seq];
    t.tile = tile;
    t.live = smaller(t.height, span.n - tile * t.height);
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
    const int64_t n = j->c->feed->span[s].n;
    const int64_t rest = number - p->first_tile[s] * p->H;
    task t = {.seq = s, .T = tiles_of(n), .height = height_of(n)};
    t.head = rest / t.T;
    t.base = before(p, p->first_row, s * p->H + t.head) - before(p, p->first_row, g.pair);
    return tile_of(j, t, rest % t.T);
}

static job start(const ttn_call *c, ttn_pass pass)
{
    const attributes *a = c->sig->attr;
    job j = {.c = c, .causal = a->causal != 0, .rule = ttn_attn_exact_rule_of(c)};
    lay_out(c->sig, pass, c->work, &j.p);
    const int64_t S = c->feed->used.seqs;
    j.p.seqs = S;
    int64_t *first_tile = (int64_t *)j.p.first_tile;
    int64_t *first_row = (int64_t *)j.p.first_row;
    first_tile[0] = 0;
    first_row[0] = 0;
    for (int64_t s = 0; s < S; s++) {
        const int64_t n = c->feed->span[s].n;
        first_tile[s + 1] = first_tile[s] + tiles_of(n);
        first_row[s + 1] = first_row[s] + tiles_of(n) * height_of(n);
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

/* Zeros in all rows of no sequence, past `used` too. */
static void zero_others(const ttn_call *c, const ttn_desc *d, real *x)
{
    const int64_t width = ttn_row_width(d);
    int64_t from = 0;
    for (int64_t s = 0; s < c->feed->used.seqs; s++) {
        const ttn_span span = c->feed->span[s];
        memset(x + from * width, 0, (size_t)((span.first - from) * width) * sizeof *x);
        from = span.first + span.n;
    }
    memset(x + from * width, 0, (size_t)((c->feed->used.rows - from) * width) * sizeof *x);
    ttn_zero_rest(c, d, x);
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
        for (int64_t t = diagonal ? smaller(r + 1, key->live) : key->live; t < height; t++)
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

static void attend(const job *j, const task *query, const scratch *s)
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
    real *lse = (real *)j->c->aux[0] + query->row * j->p.H + query->head;
    for (int64_t r = 0; r < query->live; r++) {
        const real factor = (real)(1 / s->sum[r]);
        const real *sum_v = s->sum_v + r * D;
        real *out = (real *)j->c->out[0] + (query->row + r) * j->p.C + query->head * D;
#pragma omp simd
        for (int64_t d = 0; d < D; d++)
            out[d] = sum_v[d] * factor;
        lse[r * j->p.H] = (real)((double)s->max[r] + ttn_logd(s->sum[r]));
    }
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const job j = start(c, TTN_FORWARD);
    const int64_t n_pair = j.p.seqs * j.p.H;
    const int64_t room = packed_rows(c->sig, j.p.H);
#pragma omp parallel num_threads(c->on->n_thread)
    {
        scratch s;
        lay_out_thread(j.p.D, TTN_FORWARD, ttn_thread_work(c, TTN_FORWARD, omp_get_thread_num()), &s);
        group g = {0};
        for (int64_t pair = 0; pair < n_pair; pair = g.end) {
            g = next_group(&j.p, c->on->n_thread, room, pair);
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
                attend(&j, &t, &s);
            }
        }
    }
    zero_others(c, &c->sig->out[0], c->out[0]);
    zero_others(c, &c->sig->aux[0], c->aux[0]);
    return TTN_OK;
}

/* ---- backward ---- */

/* L and s delta of a tile; 0 in rows that fill it up, whose g is 0 too, so that they add nothing. */
static void prepare_rows(const job *j, const task *t, int for_scores)
{
    const int64_t D = j->p.D;
    const real *lse = (const real *)j->c->aux[0] + t->row * j->p.H + t->head;
    for (int64_t r = 0; r < t->height; r++) {
        j->p.lse[t->at + r] = r < t->live ? lse[r * j->p.H] : 0;
        j->p.delta[t->at + r] = 0;
        if (!for_scores || r >= t->live) continue;
        const real *out = batch_row(j, t, j->c->out[0], r);
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
        most = larger(most, tiles_of(j->c->feed->span[s].n));
    return most;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const job j = start(c, TTN_BACKWARD);
    const int64_t n_pair = j.p.seqs * j.p.H;
    const int64_t room = packed_rows(c->sig, j.p.H);
    const int for_scores = c->din[Q] || c->din[K];
    if (!for_scores && !c->din[V]) return TTN_OK;
#pragma omp parallel num_threads(c->on->n_thread)
    {
        scratch s;
        lay_out_thread(j.p.D, TTN_BACKWARD, ttn_thread_work(c, TTN_BACKWARD, omp_get_thread_num()), &s);
        group g = {0};
        for (int64_t pair = 0; pair < n_pair; pair = g.end) {
            g = next_group(&j.p, c->on->n_thread, room, pair);
            const int64_t first = before(&j.p, j.p.first_tile, g.pair);
            const int64_t end = before(&j.p, j.p.first_tile, g.end);
#pragma omp for schedule(static)
            for (int64_t number = first; number < end; number++) {
                const task t = find_task(&j, g, number);
                pack(&j, &t, c->in[Q], j.p.q);
                pack(&j, &t, c->in[K], j.p.k);
                pack(&j, &t, c->dout[0], j.p.g);
                if (for_scores) pack(&j, &t, c->in[V], j.p.v);
                prepare_rows(&j, &t, for_scores);
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
    for (int i = Q; i <= V; i++)
        if (c->din[i] && c->acc[i] == 0) zero_others(c, &c->sig->in[i], c->din[i]);
    return TTN_OK;
}

/* ---- as an attention kind ---- */

static const ttn_option options[] = {
    {.name = "exact.scale",
     .type = TTN_OPTION_REAL,
     .fallback = "0",
     .least = 0,
     .most = 1000,
     .help = "factor of q k before the softmax; 0 stands for 1/sqrt(head width)",
     .since = "0.1"},
};

static ttn_status attr_of_options(const ttn_option_reader *o, int layer, void *attr, ttn_error *err)
{
    attributes *a = attr;
    *a = (attributes){0};
    return o->get_real(o->self, options[0].name, layer, &a->scale, err);
}

static int build(ttn_graph *g, const ttn_attn_in *in, const void *attr)
{
    attributes a = *(const attributes *)attr;
    a.heads = in->heads;
    a.causal = in->causal;
    a.dropout = in->dropout;
    return ttn_attn_exact(g, in->name, in->q, in->k, in->v, &a);
}

/* ---- maps ---- */

static int64_t width_of_head(const ttn_call *c)
{
    return c->sig->in[Q].dim[1] / ((const attributes *)c->sig->attr)->heads;
}

/* Row i of the sequence, this head's columns. */
static const real *head_row(const ttn_call *c, int input, ttn_span span, int64_t head, int64_t i)
{
    return (const real *)c->in[input] + (span.first + i) * c->sig->in[Q].dim[1] + head * width_of_head(c);
}

/* a_it of rows i, i + 1, … i + n_row - 1 against keys t, … t + n_key - 1. */
static void map_scores(const ttn_call *c, ttn_span span, int64_t head, int64_t i, int64_t n_row, int64_t t,
                       int64_t n_key, real *a, int64_t ld)
{
    const int64_t C = c->sig->in[Q].dim[1];
    const int64_t D = width_of_head(c);
    const attributes *at = c->sig->attr;
    const double scale = at->scale > 0 ? at->scale : 1 / sqrt((double)D);
    ttn_gemm(TTN_N, TTN_T, n_row, n_key, D, scale, ttn_in(head_row(c, Q, span, head, i), C),
             ttn_in(head_row(c, K, span, head, t), C), 0, ttn_out(a, ld));
}

static ttn_status map_rows(const ttn_call *c, int64_t seq, int64_t head, int64_t n_row, const int64_t *row, real *map,
                           ttn_error *err)
{
    const attributes *at = c->sig->attr;
    ttn_span span;
    ttn_status status = ttn_map_span(c, "attn_exact", seq, head, at->heads, n_row, row, 0, &span, err);
    if (status != TTN_OK) return status;
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t r = 0; r < n_row; r++) {
        real *p = map + r * span.n;
        const int64_t seen = at->causal ? row[r] + 1 : span.n;
        for (int64_t t = 0; t < seen; t += MOST_TILE)
            map_scores(c, span, head, row[r], 1, t, smaller(MOST_TILE, seen - t), p + t, span.n);
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
    return TTN_OK;
}

enum { MAP_ROWS = 24 };

/* Adds the weights of rows i up to end (at most MAP_ROWS) to cells (P) of their blocks of columns. */
static void add_to_cells(const ttn_call *c, int64_t seq, int64_t head, int64_t i, int64_t end, int64_t P, real *a,
                         double *cell)
{
    const attributes *at = c->sig->attr;
    const ttn_span span = c->feed->span[seq];
    const real *lse = (const real *)c->aux[0] + span.first * at->heads + head;
    const int64_t last_seen = at->causal ? end : span.n;
    for (int64_t t = 0; t < last_seen; t += MOST_TILE) {
        const int64_t t_end = smaller(t + MOST_TILE, last_seen);
        map_scores(c, span, head, i, end - i, t, t_end - t, a, MOST_TILE);
        for (int64_t r = i; r < end; r++) {
            const int64_t seen = at->causal ? smaller(r + 1, t_end) : t_end;
            const real *row = a + (r - i) * MOST_TILE;
            const int64_t first = ((t + 1) * P - 1) / span.n; /* t's block */
            for (int64_t p = first; p < P && ttn_map_block(p, span.n, P) < seen; p++) {
                const int64_t from = larger(t, ttn_map_block(p, span.n, P));
                const int64_t to = smaller(seen, ttn_map_block(p + 1, span.n, P));
                for (int64_t u = from; u < to; u++)
                    cell[p] += (double)ttn_exp(row[u - t] - lse[r * at->heads]);
            }
        }
    }
}

/* A row of blocks is one thread's: O(n^2 D) in all, in memory for one row of tiles a thread. */
static ttn_status map_pool(const ttn_call *c, int64_t seq, int64_t head, int64_t P, double *map, ttn_error *err)
{
    const attributes *at = c->sig->attr;
    ttn_span span;
    ttn_status status = ttn_map_span(c, "attn_exact", seq, head, at->heads, 0, NULL, P, &span, err);
    if (status != TTN_OK) return status;
    const int64_t each = MAP_ROWS * MOST_TILE;
    real *work = ttn_alloc_or_say(c->on->n_thread * each, sizeof *work, "tiles of an attention map", err);
    if (!work) return TTN_ENOMEM;
#pragma omp parallel for num_threads(c->on->n_thread) schedule(dynamic)
    for (int64_t p = 0; p < P; p++) {
        const int64_t first = ttn_map_block(p, span.n, P);
        const int64_t end = ttn_map_block(p + 1, span.n, P);
        double *cell = map + p * P;
        memset(cell, 0, (size_t)P * sizeof *cell);
        for (int64_t i = first; i < end; i += MAP_ROWS)
            add_to_cells(c, seq, head, i, smaller(i + MAP_ROWS, end), P, work + omp_get_thread_num() * each, cell);
        for (int64_t b = 0; b < P; b++)
            cell[b] /= (double)((end - first) * (ttn_map_block(b + 1, span.n, P) - ttn_map_block(b, span.n, P)));
    }
    ttn_free(work);
    return TTN_OK;
}

static const ttn_attention attention = {
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .attr = attr_of_options,
    .build = build,
    .map_rows = map_rows,
    .map_pool = map_pool,
};

/* ---- cases ---- */

#define THREE(...)                            \
    {                                         \
        __VA_ARGS__, __VA_ARGS__, __VA_ARGS__ \
    }

static const attributes one = {.heads = 1};
static const attributes two = {.heads = 2};
static const attributes two_causal = {.heads = 2, .causal = 1};
static const attributes three_scaled = {.heads = 3, .scale = 2.5};
static const attributes two_dropped = {.heads = 2, .dropout = 0.4};
static const attributes one_dropped_causal = {.heads = 1, .causal = 1, .scale = 0.7, .dropout = 0.25};
static const attributes none = {.heads = 0};
static const attributes four = {.heads = 4};
static const attributes negative = {.heads = 1, .scale = -1};
static const attributes infinite = {.heads = 1, .scale = INFINITY};
static const attributes all_dropped = {.heads = 1, .dropout = 1};
static const attributes dropped_nan = {.heads = 1, .dropout = NAN};

static const ttn_case cases[] = {
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &two},
    {.about = "the same, causal",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &two_causal},
    {.about = "three heads, sequences of 1, 24, 25 and 3 rows that touch, a scale",
     .used = {.rows = 60, .seqs = 4},
     .span = {{2, 1}, {3, 24}, {27, 25}, {55, 3}},
     .in = THREE(TTN_ROWS_OF(15)),
     .attr = &three_scaled},
    {.about = "one row, width 1",
     .used = {.rows = 1, .seqs = 1},
     .span = {{0, 1}},
     .in = THREE(TTN_ROWS_OF(1)),
     .attr = &one},
    {.about = "three tiles and a sequence of one",
     .used = {.rows = 480, .seqs = 2},
     .span = {{0, 1}, {12, 387}},
     .in = THREE(TTN_ROWS_OF(4)),
     .attr = &two},
    {.about = "three tiles, causal, a width that fills no vector",
     .used = {.rows = 400, .seqs = 2},
     .span = {{0, 387}, {390, 4}},
     .in = THREE(TTN_ROWS_OF(3)),
     .attr = &(const attributes){.heads = 1, .causal = 1}},
    {.about = "weights that are all but one or zero",
     .used = {.rows = 40, .seqs = 1},
     .span = {{0, 40}},
     .in = THREE(TTN_ROWS_OF(8)),
     .range = {{-2, 2}, {-2, 2}},
     .attr = &two},
    {.about = "dropout",
     .used = {.rows = 60, .seqs = 3},
     .span = {{0, 5}, {12, 30}, {42, 1}},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &two_dropped},
    {.about = "dropout, causal, two tiles",
     .used = {.rows = 240, .seqs = 1},
     .span = {{1, 197}},
     .in = THREE(TTN_ROWS_OF(2)),
     .attr = &one_dropped_causal},
    {.about = "no sequences: zeros", .used = {.rows = 7}, .in = THREE(TTN_ROWS_OF(3)), .attr = &one},
    {.about = "no rows", .cap = {.rows = 480, .seqs = 2}, .in = THREE(TTN_ROWS_OF(3)), .attr = &one},
    {.about = "v of another width",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_ROWS_OF(4), TTN_ROWS_OF(8)},
     .attr = &two,
     .refused = "v is " TTN_REAL_NAME " (N 480, 8), but q is " TTN_REAL_NAME " (N 480, 4); expected one shape"},
    {.about = "picks",
     .used = {.picks = 6},
     .in = THREE(TTN_PICKS_OF(4)),
     .attr = &two,
     .refused = "q is " TTN_REAL_NAME " (R 480, 4), expected rows of a batch, (N, H D)"},
    {.about = "heads as an axis",
     .used = {.rows = 6},
     .in = THREE({.axis = TTN_ROWS, .ndim = 3, .dim = {0, 2, 2}}),
     .attr = &two,
     .refused = "which has 3 dimensions; expected 2, (N, H D)"},
    {.about = "four heads in a width of 6",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &four,
     .refused = "a width of 6 cannot be divided among 4 heads"},
    {.about = "no heads", .used = {.rows = 6}, .in = THREE(TTN_ROWS_OF(6)), .attr = &none, .refused = "among 0 heads"},
    {.about = "width 0", .used = {.rows = 6}, .in = THREE(TTN_ROWS_OF(0)), .attr = &one, .refused = "a width of 0"},
    {.about = "a scale below 0",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &negative,
     .refused = "scale is -1, expected a number above 0, or 0 for 1/sqrt(6)"},
    {.about = "an infinite scale",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &infinite,
     .refused = "scale is inf"},
    {.about = "everything dropped",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &all_dropped,
     .refused = "dropout is 1, expected at least 0 and less than 1"},
    {.about = "dropout NaN",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &dropped_nan,
     .refused = "dropout is nan"},
};

const ttn_op ttn_op_attn_exact = {
    .name = "attn_exact",
    .n_in = 3,
    .n_out = 1,
    .differentiable = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V),
    .reads = {[Q] = {.in = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V), .out = TTN_BIT(0), .aux = TTN_BIT(0)},
              [K] = {.in = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V), .out = TTN_BIT(0), .aux = TTN_BIT(0)},
              [V] = {.in = TTN_BIT(Q) | TTN_BIT(K), .aux = TTN_BIT(0)}},
    .takes = {TTN_SHARES(Q)},
    .passes = {TTN_SHARES(0), TTN_SHARES(0), TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .attention = &attention,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_attn_exact(ttn_graph *g, const char *name, int q, int k, int v, const ttn_attn_exact_options *o)
{
    return ttn_apply(g, "attn_exact", name, o, (const int[]){q, k, v});
}
