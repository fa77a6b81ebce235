/* Nystrom attention (Xiong et al. 2021), per sequence and head, through M landmarks x_j, y_j: the means of q and of k over M
 * segments of the sequence (segment j has rows j n / M, rounded down, up to (j + 1) n / M). With s = D^(-1/2):
 *
 *     F = softmax(s q y^T) (n, M)     A = softmax(s x y^T) (M, M)     B = softmax(s x k^T) (M, n)     Z ~ A^+ (M, M)
 *     out = F (Z (B v)) + add         C = B v,   Y = Z C   (M, D)
 *
 * q, k, v, out (N, H D), add the same or left out. n <= M: out = softmax(s q k^T) v + add, which is exact attention
 * (autograd/attn_tiles.h) with its bits. Rows of no sequence: zeros. How Z is made: autograd/nystrom_inverse.h.
 *
 * aux 0: L (N, H), log-sum-exp of each row's logits of F (n <= M: of the softmax)
 * aux 1: log-sum-exp of the rows of B (slots, H, M)     aux 2: C (slots, H, M, D)
 * A slot is a sequence of more than M rows; there are at most min(S, N / (M + 1)) of them. A and every iterate of Z are made
 * again in backward: kept, they would be 0.58 GB a layer at M 256, 278 sequences and 8 heads.
 *
 * Backward, g = dout:
 *     dY = F^T g     dZ = dY C^T     dC = Z^T dY     dA from dZ
 *     dF = s F * (g Y^T - rowsum(F * g Y^T))     dB = s B * (dC v^T - dC . C)     dL_A = s A * (dA - rowsum(A * dA))
 *     dq = dF y         dk = dB^T x        dv = B^T dC        dadd = g        (* is elementwise)
 *     dx = dL_A y + dB k     dy = dL_A^T x + dF^T q:   each goes to the rows of its segment, divided by their number
 *
 * Neither F nor B is ever whole: they are made by tiles (those of autograd/attn_tiles.h), F a tile of rows at a time, B with
 * the running maximum of each landmark. A chunk of a sequence is a run of tiles; what is summed over its rows (B's maximum,
 * sum and B v; dY and dy; dx) is one chunk's alone until the chunks are added up in a tree that depends on n only: so many
 * threads work on one head, and bits do not depend on how many. Tiles are rows of keys or queries by columns of landmarks for
 * both factors: B's softmax then runs down the columns, with no sum across a vector. A tile is copied out of (N, H D) into
 * compact rows, zero behind the sequence's end, so that a sequence's bits depend on nothing but itself.
 *
 * Pairs of a sequence and a head are done in groups, as many as memory of a fixed size holds, each group phase by phase. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/attn_tiles.h"
#include "autograd/carve.h"
#include "autograd/kernel.h"
#include "autograd/nystrom_inverse.h"
#include "autograd/ops.h"
#include "autograd/ops/attn_nystrom.h"
#include "core/blas.h"
#include "core/memory.h"
#include "core/vecmath.h"

enum { Q, K, V, ADD };
enum { ROW_LSE, LANDMARK_LSE, LANDMARK_VALUES };
enum { RESIDUAL, ROW_SUM, Z_NORM, N_STATS };

typedef ttn_attn_nystrom_options attributes;

enum {
    PAD = 16,         /* landmarks are filled up to a multiple, so that rows of a tile are whole vectors */
    CHUNK_TILES = 20, /* of a chunk, at most: 3,840 rows, so that what it sums up is 7 % of what it reads at M 256 */
    SEGMENTS = 16,    /* of a task that makes landmarks */
    GROUP_BYTES = 16 << 20, /* of the pairs of a group … */
    LEAST_PAIRS = 8,        /* … which are so many at least, for as many threads, … */
    MOST_PAIRS = 64,        /* … and at most */
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- shapes ---- */

/* Sizes that hold for a whole call. */
typedef struct {
    int64_t H, D, C;
    int64_t m, M; /* landmarks, and what they are filled up to */
    real scale;
    ttn_inverse inverse;
} sizes;

static sizes sizes_of(const ttn_sig *s)
{
    const attributes *a = s->attr;
    sizes z = {.H = a->heads, .D = s->in[Q].dim[1] / a->heads, .C = s->in[Q].dim[1], .m = a->landmarks};
    z.M = (z.m + PAD - 1) / PAD * PAD;
    z.scale = (real)(1 / sqrt((double)z.D));
    z.inverse = (ttn_inverse){.m = z.m, .ld = z.M, .kind = a->pinv, .iterations = a->iterations, .lambda = a->lambda};
    if (z.inverse.iterations == 0)
        z.inverse.iterations = a->pinv == TTN_PINV_CHEB ? TTN_INVERSE_CHEB_STEPS : TTN_INVERSE_RAZAVI_STEPS;
    return z;
}

static int64_t slots_of(const ttn_sig *s)
{
    const attributes *a = s->attr;
    return smaller(s->cap.seqs, s->in[Q].dim[0] / (a->landmarks + 1));
}

/* Chunks of a sequence, and tiles of a chunk (the last may have fewer). */
static int64_t chunks_of(int64_t n)
{
    return (ttn_attn_tiles_of(n) + CHUNK_TILES - 1) / CHUNK_TILES;
}
static int64_t chunk_tiles_of(int64_t n)
{
    return (ttn_attn_tiles_of(n) + chunks_of(n) - 1) / chunks_of(n);
}

/* ---- memory ---- */

/* A sequence and a head. Matrices of landmarks have M rows, zero past m. */
typedef struct {
    int64_t seq, head, slot;
    int64_t n, T, height;
    int64_t first_chunk, chunks; /* among those of the group */
    real *x, *y;                 /* (M, D) */
    real *a;                     /* (M, M) */
    real *iterates;              /* (M, M) each; forward: none but the last */
    real *z;                     /* (M, M): the last of them */
    real *Y;                     /* (M, D) */
    real *z1;                    /* forward (M): row sums of Z */
    real *C, *dC;                /* backward (M, D) */
    real *lse, *cc;              /* backward (M): log-sum-exp of B's rows, and dC . C */
    real *dY, *dx, *dy;          /* backward (M, D); dx and dy: in the end divided by the segments' lengths */
    real *da;                    /* backward (M, M): in the place of z, when dC has been made */
    ttn_inverse_start start;     /* the pair's own */
    real c;                      /* where Z_0 starts: the pair's own or its sequence's */
    double start_gradient;       /* sum of dZ_0 * A^T */
    int pivot;                   /* of an inverse that failed, else 0 */
    double residual, norm;
} pair;

/* What a chunk sums up. */
typedef struct {
    real *max;      /* forward (M) */
    double *sum;    /* forward (M): of exp(logit - max) */
    real *first;    /* (M, D): B v of exp(logit - max); dY, then dx */
    real *second;   /* backward (M, D): dy */
    double row_sum; /* forward: largest |sum of a row of F Z B - 1| */
} chunk;

typedef struct {
    int64_t room_pairs, room_chunks;
    int64_t *slot; /* (S): of sequences with more than m rows, counted; -1 of others */
    pair *pair;    /* (room_pairs) */
    chunk *chunk;  /* (room_chunks) */
    int64_t n_pair, n_chunk;
    int64_t next; /* the pair of all (seq H + head) after this group */
    int failed;
} group;

/* One thread's tile. */
typedef struct {
    real *s, *e;               /* (tile, M): logits, then weights; backward: gradients of weights, then of logits */
    real *q, *g;               /* (tile, D): copies; q stands for k, and g for v */
    real *o, *p;               /* (tile, D): results */
    real *next, *factor, *sum; /* forward (M) */
    real *row;                 /* forward (tile): 1 / the sum of a row of F before it is divided */
    real *dz;                  /* backward (M, M) */
    void *inverse;
} tile;

static size_t pair_lay_out(const sizes *z, ttn_pass pass, void *work, pair *ret)
{
    ttn_carving c = {.base = work};
    const int64_t MD = z->M * z->D;
    const int64_t MM = z->M * z->M;
    real **const both[] = {&ret->x, &ret->y, &ret->Y};
    real **const back[] = {&ret->C, &ret->dC, &ret->dY, &ret->dx, &ret->dy};
    for (int i = 0; i < 3; i++)
        *both[i] = ttn_carve(&c, MD, sizeof(real));
    ret->a = ttn_carve(&c, MM, sizeof(real));
    if (pass == TTN_FORWARD) {
        ret->iterates = ttn_carve(&c, MM, sizeof(real));
        ret->z = ret->iterates;
        ret->z1 = ttn_carve(&c, z->M, sizeof(real));
        return c.at;
    }
    const int64_t kept = ttn_inverse_kept(&z->inverse);
    ret->iterates = ttn_carve(&c, kept * MM, sizeof(real));
    if (ret->iterates) ret->z = ret->iterates + (kept - 1) * MM;
    for (int i = 0; i < 5; i++)
        *back[i] = ttn_carve(&c, MD, sizeof(real));
    ret->da = ret->z;
    ret->lse = ttn_carve(&c, z->M, sizeof(real));
    ret->cc = ttn_carve(&c, z->M, sizeof(real));
    return c.at;
}

static size_t chunk_lay_out(const sizes *z, ttn_pass pass, void *work, chunk *ret)
{
    ttn_carving c = {.base = work};
    ret->first = ttn_carve(&c, z->M * z->D, sizeof(real));
    if (pass == TTN_BACKWARD) {
        ret->second = ttn_carve(&c, z->M * z->D, sizeof(real));
    } else {
        ret->max = ttn_carve(&c, z->M, sizeof(real));
        ret->sum = ttn_carve(&c, z->M, sizeof(double));
    }
    return c.at;
}

/* A group is whole sequences where their heads start together. */
static int64_t unit_of(const ttn_sig *s)
{
    const attributes *a = s->attr;
    return a->shared ? a->heads : 1;
}

static size_t lay_out(const ttn_sig *s, ttn_pass pass, void *work, group *ret)
{
    const sizes z = sizes_of(s);
    pair p;
    chunk h;
    const size_t pair_bytes = pair_lay_out(&z, pass, NULL, &p);
    const size_t chunk_bytes = chunk_lay_out(&z, pass, NULL, &h);
    const int64_t all = slots_of(s) * z.H;
    int64_t pairs = larger(LEAST_PAIRS, smaller(MOST_PAIRS, (int64_t)(GROUP_BYTES / pair_bytes)));
    pairs = smaller(larger(pairs, unit_of(s)), all);
    *ret = (group){.room_pairs = pairs};
    /* so many pairs never have more chunks than those of min(pairs, H) heads of one sequence of all rows, and one each */
    ret->room_chunks = pairs > 0 ? smaller(pairs, z.H) * chunks_of(s->in[Q].dim[0]) + pairs : 0;
    ttn_carving c = {.base = work};
    ret->slot = ttn_carve(&c, s->cap.seqs, sizeof *ret->slot);
    ret->pair = ttn_carve(&c, pairs, sizeof *ret->pair);
    ret->chunk = ttn_carve(&c, ret->room_chunks, sizeof *ret->chunk);
    char *const of_pairs = ttn_carve(&c, pairs, pair_bytes);
    char *const of_chunks = ttn_carve(&c, ret->room_chunks, chunk_bytes);
    for (int64_t i = 0; i < pairs && work; i++)
        pair_lay_out(&z, pass, of_pairs + (size_t)i * pair_bytes, &ret->pair[i]);
    for (int64_t i = 0; i < ret->room_chunks && work; i++)
        chunk_lay_out(&z, pass, of_chunks + (size_t)i * chunk_bytes, &ret->chunk[i]);
    return c.at;
}

static size_t lay_out_thread(const ttn_sig *s, ttn_pass pass, void *work, tile *ret)
{
    const sizes z = sizes_of(s);
    *ret = (tile){0};
    ttn_carving c = {.base = work};
    ret->inverse = ttn_carve(&c, 1, ttn_inverse_work(&z.inverse, pass));
    ret->s = ttn_carve(&c, TTN_ATTN_MOST_TILE * z.M, sizeof(real));
    real **const rows[] = {&ret->q, &ret->g, &ret->o, &ret->p};
    for (int i = 0; i < 4; i++)
        *rows[i] = ttn_carve(&c, TTN_ATTN_MOST_TILE * z.D, sizeof(real));
    if (pass == TTN_BACKWARD) {
        ret->e = ttn_carve(&c, TTN_ATTN_MOST_TILE * z.M, sizeof(real));
        ret->dz = ttn_carve(&c, z.M * z.M, sizeof(real));
        return c.at;
    }
    real **const columns[] = {&ret->next, &ret->factor, &ret->sum};
    for (int i = 0; i < 3; i++)
        *columns[i] = ttn_carve(&c, z.M, sizeof(real));
    ret->row = ttn_carve(&c, TTN_ATTN_MOST_TILE, sizeof(real));
    return c.at;
}

static size_t greater(size_t a, size_t b)
{
    return a > b ? a : b;
}

static ttn_status check_attributes(const ttn_sig *s, ttn_error *err)
{
    const attributes *a = s->attr;
    const int64_t C = s->in[Q].dim[1];
    if (a->heads < 1 || C < 1 || C % a->heads != 0)
        return TTN_FAIL(err, TTN_EINVAL, "attn_nystrom: a width of %" PRId64 " cannot be divided among %d heads", C,
                        a->heads);
    if (a->causal)
        return TTN_FAIL(err, TTN_EINVAL,
                        "attn_nystrom: causal attention does not go through landmarks, since each is a mean over a "
                        "segment and would show residues that come later; choose the kind exact or favor");
    if (a->landmarks < 1 || a->landmarks > TTN_NYSTROM_MOST_LANDMARKS)
        return TTN_FAIL(err, TTN_EINVAL, "attn_nystrom: landmarks is %" PRId64 ", expected 1 to %d", a->landmarks,
                        TTN_NYSTROM_MOST_LANDMARKS);
    if (a->iterations < 0 || a->iterations > TTN_INVERSE_MOST_STEPS)
        return TTN_FAIL(err, TTN_EINVAL,
                        "attn_nystrom: iterations is %d, expected 1 to %d, or 0 for %d (cheb) and %d (razavi)",
                        a->iterations, TTN_INVERSE_MOST_STEPS, TTN_INVERSE_CHEB_STEPS, TTN_INVERSE_RAZAVI_STEPS);
    if (!(a->lambda >= 0 && isfinite(a->lambda)))
        return TTN_FAIL(err, TTN_EINVAL, "attn_nystrom: lambda is %g, expected 0 or more", a->lambda);
    return TTN_OK;
}

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    static const char *const name[] = {"q", "k", "v", "add"};
    char text[TTN_DESC_TEXT];
    char other[TTN_DESC_TEXT];
    for (int i = Q; i <= ADD; i++) {
        if (s->in[i].ndim < 0) continue;
        ttn_status status = ttn_want_shape(s, i, "attn_nystrom", name[i], "(N, H D)", err);
        if (status != TTN_OK) return status;
        if (s->in[i].axis != TTN_ROWS)
            return TTN_FAIL(err, TTN_EINVAL, "attn_nystrom: %s is %s, expected rows of a batch, (N, H D)", name[i],
                            ttn_desc_print(&s->in[i], text));
        if (!ttn_desc_same(&s->in[i], &s->in[Q]))
            return TTN_FAIL(err, TTN_EINVAL, "attn_nystrom: %s is %s, but q is %s; expected one shape", name[i],
                            ttn_desc_print(&s->in[i], text), ttn_desc_print(&s->in[Q], other));
    }
    ttn_status status = check_attributes(s, err);
    if (status != TTN_OK) return status;
    const attributes *a = s->attr;
    const int64_t slots = slots_of(s);
    const int64_t D = s->in[Q].dim[1] / a->heads;
    s->n_out = 1;
    s->out[0] = s->in[Q];
    s->n_aux = 3;
    s->aux[ROW_LSE] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, s->in[Q].dim[0], a->heads, 0);
    s->aux[LANDMARK_LSE] = ttn_desc_of(TTN_REAL, TTN_FIXED, 3, slots, a->heads, a->landmarks);
    s->aux[LANDMARK_VALUES] =
        (ttn_desc){.type = TTN_REAL, .axis = TTN_FIXED, .ndim = 4, .dim = {slots, a->heads, a->landmarks, D}};
    s->n_stat = N_STATS * a->heads;
    for (int p = TTN_FORWARD; p <= TTN_BACKWARD; p++) {
        const ttn_pass pass = (ttn_pass)p;
        group g;
        tile t;
        /* short sequences and long ones are done one after the other, in the same memory */
        s->work[p] = greater(lay_out(s, pass, NULL, &g), ttn_attn_tiles_work(s, a->heads, a->landmarks, pass));
        s->work_thread[p] =
            greater(lay_out_thread(s, pass, NULL, &t), ttn_attn_tiles_work_thread(s, a->heads, 1, pass));
    }
    return TTN_OK;
}

/* Lengths are not known when a graph is recorded: as many sequences as it has room for, all of one length. */
static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const sizes z = sizes_of(s);
    const double N = (double)s->in[Q].dim[0];
    const double C = (double)z.C;
    const double seqs = s->cap.seqs > 0 ? (double)s->cap.seqs : 1;
    const double n = N / seqs;
    const double m = (double)z.m;
    const int is_exact = n <= m;
    const double seen = is_exact ? n : m; /* keys or landmarks of a row */
    const double product = 2 * N * seen * C;
    const double weights = N * seen * (double)z.H;
    const double pairs = is_exact ? 0 : seqs * (double)z.H;
    const double of_landmarks = 2 * m * m * (double)z.D; /* A from x and y, and the like */
    const double measure = 2 * 2 * m * m * m;
    const ttn_inverse_flops inverse = ttn_inverse_cost(&z.inverse);
    const int adds = s->in[ADD].ndim >= 0;
    const double values = (pass == TTN_FORWARD ? 6 + adds : 12 + 2 * adds) * N * C + N * (double)z.H;
    ttn_cost cost = {.bytes = values * (double)sizeof(real)};
    if (pass == TTN_FORWARD) {
        /* exact: q k^T, p v. Else logits of F and B, B v, F Y; A, Z C, and A Z A for the residual */
        cost.done = (is_exact ? 2 : 4) * product + (is_exact ? 5 : 10) * weights;
        cost.done += pairs * (inverse.forward + 2 * of_landmarks + measure);
        cost.useful = cost.done - pairs * measure;
        return cost;
    }
    /* exact: four products, and q k^T, q k^T and p v made again. Else eight, and both logits made again; A and Z C, too, and
     * dZ, dC and A's logits' two */
    cost.useful = (is_exact ? 4 : 8) * product + (is_exact ? 4 : 8) * weights;
    cost.useful += pairs * (inverse.backward + 4 * of_landmarks);
    cost.done = cost.useful + (is_exact ? 3 : 2) * product + (is_exact ? 8 : 6) * weights;
    cost.done += pairs * (inverse.remake + 2 * of_landmarks);
    return cost;
}

/* ---- groups ---- */

typedef struct {
    const ttn_call *c;
    sizes z;
    int64_t unit;
    group g;
} job;

static job start(const ttn_call *c, ttn_pass pass)
{
    job j = {.c = c, .z = sizes_of(c->sig), .unit = unit_of(c->sig)};
    lay_out(c->sig, pass, c->work, &j.g);
    int64_t slots = 0;
    for (int64_t s = 0; s < c->feed->used.seqs; s++) {
        j.g.slot[s] = -1;
        if (c->feed->span[s].n > j.z.m) j.g.slot[s] = slots++;
    }
    return j;
}

/* The pairs that follow: whole units until there is no room for another. By one thread. */
static void next_group(job *j)
{
    group *g = &j->g;
    const ttn_feed *f = j->c->feed;
    g->n_pair = 0;
    g->n_chunk = 0;
    while (g->next < f->used.seqs * j->z.H) {
        const int64_t s = g->next / j->z.H;
        const int64_t n = f->span[s].n;
        if (g->slot[s] < 0) {
            g->next = (s + 1) * j->z.H;
            continue;
        }
        if (g->n_pair + j->unit > g->room_pairs) return;
        for (int64_t u = 0; u < j->unit; u++) {
            pair *p = &g->pair[g->n_pair++];
            p->seq = s;
            p->head = g->next++ % j->z.H;
            p->slot = g->slot[s];
            p->n = n;
            p->T = ttn_attn_tiles_of(n);
            p->height = ttn_attn_height_of(n);
            p->first_chunk = g->n_chunk;
            p->chunks = chunks_of(n);
            g->n_chunk += p->chunks;
        }
    }
}

/* Which pair a chunk of the group is of. */
static pair *pair_of_chunk(const group *g, int64_t number)
{
    int64_t i = 0; /* the last pair that begins at or before it */
    for (int64_t end = g->n_pair; end - i > 1;) {
        const int64_t middle = i + (end - i) / 2;
        if (g->pair[middle].first_chunk <= number)
            i = middle;
        else
            end = middle;
    }
    return &g->pair[i];
}

/* The tiles of a chunk: [*ret_first, *ret_end). */
static void tiles_of_chunk(const pair *p, int64_t number, int64_t *ret_first, int64_t *ret_end)
{
    const int64_t each = chunk_tiles_of(p->n);
    *ret_first = (number - p->first_chunk) * each;
    *ret_end = smaller(*ret_first + each, p->T);
}

/* ---- in and out of (N, H D) ---- */

static int64_t place_of(const job *j, const pair *p, int64_t t)
{
    return (j->c->feed->span[p->seq].first + t) * j->z.C + p->head * j->z.D;
}

/* How many rows of a tile are the sequence's. */
static int64_t live_of(const pair *p, int64_t tile_number)
{
    return smaller(p->height, p->n - tile_number * p->height);
}

static void pack(const job *j, const pair *p, int64_t tile_number, const void *x, real *to)
{
    const int64_t D = j->z.D;
    const int64_t live = live_of(p, tile_number);
    const real *from = (const real *)x + place_of(j, p, tile_number * p->height);
    for (int64_t r = 0; r < live; r++)
        memcpy(to + r * D, from + r * j->z.C, (size_t)D * sizeof *to);
    memset(to + live * D, 0, (size_t)((p->height - live) * D) * sizeof *to);
}

static void unpack(const job *j, const pair *p, int64_t tile_number, const real *from, real acc, void *x)
{
    const int64_t D = j->z.D;
    const int64_t live = live_of(p, tile_number);
    real *to = (real *)x + place_of(j, p, tile_number * p->height);
    for (int64_t r = 0; r < live; r++) {
#pragma omp simd
        for (int64_t d = 0; d < D; d++)
            to[r * j->z.C + d] = ttn_accumulate(acc, to[r * j->z.C + d], from[r * D + d]);
    }
}

/* ---- landmarks, A ---- */

/* A segment's mean, summed in double: at a million residues it has thousands of terms. */
static void mean(const job *j, const pair *p, int64_t segment, const void *x, real *to)
{
    const int64_t D = j->z.D;
    const int64_t first = ttn_nystrom_segment(segment, p->n, j->z.m);
    const int64_t end = ttn_nystrom_segment(segment + 1, p->n, j->z.m);
    const real *from = (const real *)x + place_of(j, p, first);
    enum { COLUMNS = 64 };
    for (int64_t d = 0; d < D; d += COLUMNS) {
        double sum[COLUMNS] = {0};
        const int64_t columns = smaller(COLUMNS, D - d);
        for (int64_t t = 0; t < end - first; t++) {
            const real *row = from + t * j->z.C + d;
#pragma omp simd
            for (int64_t i = 0; i < columns; i++)
                sum[i] += (double)row[i];
        }
        for (int64_t i = 0; i < columns; i++)
            to[d + i] = (real)(sum[i] / (double)(end - first));
    }
}

/* x and y of SEGMENTS segments. */
static void landmarks(const job *j, int64_t number)
{
    const int64_t blocks = (j->z.M + SEGMENTS - 1) / SEGMENTS;
    const pair *p = &j->g.pair[number / blocks];
    const int64_t D = j->z.D;
    const int64_t first = number % blocks * SEGMENTS;
    for (int64_t segment = first; segment < smaller(first + SEGMENTS, j->z.M); segment++) {
        real *x = p->x + segment * D;
        real *y = p->y + segment * D;
        if (segment < j->z.m) {
            mean(j, p, segment, j->c->in[Q], x);
            mean(j, p, segment, j->c->in[K], y);
        } else {
            memset(x, 0, (size_t)D * sizeof *x);
            memset(y, 0, (size_t)D * sizeof *y);
        }
    }
}

/* s rows (n, D) landmarks^T: (n, M). */
static void logits(const job *j, int64_t n, const real *rows, const real *of_landmarks, real *to)
{
    ttn_gemm(TTN_N, TTN_T, n, j->z.M, j->z.D, (double)j->z.scale, ttn_in(rows, j->z.D), ttn_in(of_landmarks, j->z.D), 0,
             ttn_out(to, j->z.M));
}

/* The largest of m numbers, in PAD lanes. */
static real largest(int64_t m, const real *x)
{
    real part[PAD];
    for (int w = 0; w < PAD; w++)
        part[w] = -(real)INFINITY;
    int64_t i = 0;
    for (; i + PAD <= m; i += PAD) {
#pragma omp simd
        for (int w = 0; w < PAD; w++)
            part[w] = x[i + w] > part[w] ? x[i + w] : part[w];
    }
    for (int w = 0; i + w < m; w++)
        part[w] = x[i + w] > part[w] ? x[i + w] : part[w];
    real most = part[0];
    for (int w = 1; w < PAD; w++)
        most = part[w] > most ? part[w] : most;
    return most;
}

static real total(const real *part)
{
    real sum[PAD];
    memcpy(sum, part, sizeof sum);
    for (int apart = PAD / 2; apart > 0; apart /= 2)
        for (int w = 0; w < apart; w++)
            sum[w] += sum[w + apart];
    return sum[0];
}

/* x (M), logits of which m count, becomes exp(x - most), zeros past m. Returns their sum. */
static real exponentials(int64_t m, int64_t M, real most, real *x)
{
    real part[PAD] = {0};
    for (int64_t i = m; i < M; i++)
        x[i] = -(real)INFINITY;
    for (int64_t i = 0; i < M; i += PAD) {
#pragma omp simd
        for (int w = 0; w < PAD; w++) {
            const real p = ttn_exp(x[i + w] - most);
            x[i + w] = p;
            part[w] += p;
        }
    }
    return total(part);
}

static real dot(int64_t M, const real *x, const real *y)
{
    real part[PAD] = {0};
    for (int64_t i = 0; i < M; i += PAD) {
#pragma omp simd
        for (int w = 0; w < PAD; w++)
            part[w] += x[i + w] * y[i + w];
    }
    return total(part);
}

static void make_a(const job *j, pair *p)
{
    const int64_t M = j->z.M;
    const int64_t m = j->z.m;
    logits(j, M, p->x, p->y, p->a);
    for (int64_t i = 0; i < m; i++) {
        real *row = p->a + i * M;
        const real sum = exponentials(m, M, largest(m, row), row);
#pragma omp simd
        for (int64_t t = 0; t < M; t++)
            row[t] /= sum;
    }
    memset(p->a + m * M, 0, (size_t)((M - m) * M) * sizeof *p->a);
    p->start = ttn_inverse_start_of(&j->z.inverse, p->a);
}

/* The pair whose column gives Z_0's c to pair i: itself, or of the heads that start together the first with the largest sum. */
static const pair *starter_of(const job *j, int64_t i)
{
    const pair *first = &j->g.pair[i / j->unit * j->unit];
    const pair *most = first;
    for (int64_t u = 1; u < j->unit; u++)
        if (first[u].start.sum > most->start.sum) most = &first[u];
    return most;
}

/* ---- forward ---- */

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
    const pair *p = pair_of_chunk(&j->g, number);
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
    tiles_of_chunk(p, number, &first, &end);
    for (int64_t k = first; k < end; k++) {
        pack(j, p, k, j->c->in[K], t->q);
        pack(j, p, k, j->c->in[V], t->g);
        logits(j, p->height, t->q, p->x, t->s);
        down_columns(j, p, live_of(p, k), t, h);
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

/* Y = Z C. */
static void make_Y(const job *j, const pair *p, const real *C)
{
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    const real *z = p->z;
    ttn_gemm(TTN_N, TTN_N, M, D, M, 1, ttn_in(z, M), ttn_in(C, D), 0, ttn_out(p->Y, D));
}

static real *landmark_lse(const job *j, const pair *p)
{
    return (real *)j->c->aux[LANDMARK_LSE] + (p->slot * j->z.H + p->head) * j->z.m;
}

static real *landmark_values(const job *j, const pair *p)
{
    return (real *)j->c->aux[LANDMARK_VALUES] + (p->slot * j->z.H + p->head) * j->z.m * j->z.D;
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
    memcpy(landmark_values(j, p), h->first, (size_t)(j->z.m * D) * sizeof(real));
    real *lse = landmark_lse(j, p);
    for (int64_t i = 0; i < j->z.m; i++)
        lse[i] = (real)((double)h->max[i] + ttn_logd(h->sum[i]));
    make_Y(j, p, h->first);
    for (int64_t i = 0; i < M; i++) {
        double sum = 0;
        for (int64_t k = 0; k < M; k++)
            sum += (double)p->z[i * M + k];
        p->z1[i] = (real)sum;
    }
    ttn_inverse_measure(&j->z.inverse, p->a, p->z, &p->residual, &p->norm, t->inverse);
}

/* The larger one; NaN is the largest. */
static double worse(double a, double b)
{
    return isnan(a) || a >= b ? a : b;
}

/* A chunk of queries: out, and L. */
static void meet_landmarks(const job *j, int64_t number, const tile *t)
{
    const pair *p = pair_of_chunk(&j->g, number);
    chunk *h = &j->g.chunk[number];
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    h->row_sum = 0;
    int64_t first;
    int64_t end;
    tiles_of_chunk(p, number, &first, &end);
    for (int64_t k = first; k < end; k++) {
        const int64_t live = live_of(p, k);
        const int64_t row = j->c->feed->span[p->seq].first + k * p->height;
        real *lse = (real *)j->c->aux[ROW_LSE] + row * j->z.H + p->head;
        pack(j, p, k, j->c->in[Q], t->q);
        logits(j, p->height, t->q, p->y, t->s);
        for (int64_t r = 0; r < p->height; r++) {
            real *s = t->s + r * M;
            const real most = largest(j->z.m, s);
            const real sum = exponentials(j->z.m, M, most, s);
            t->row[r] = 1 / sum;
            if (r >= live) continue;
            lse[r * j->z.H] = most + ttn_log(sum);
            h->row_sum = worse(h->row_sum, fabs((double)(dot(M, s, p->z1) / sum) - 1));
        }
        ttn_gemm(TTN_N, TTN_N, p->height, D, M, 1, ttn_in(t->s, M), ttn_in(p->Y, D), 0, ttn_out(t->o, D));
        const int64_t at = place_of(j, p, k * p->height);
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
        double value[N_STATS] = {[RESIDUAL] = p->residual, [Z_NORM] = p->norm};
        for (int64_t k = 0; k < p->chunks; k++)
            value[ROW_SUM] = worse(value[ROW_SUM], g->chunk[p->first_chunk + k].row_sum);
        for (int k = 0; k < N_STATS; k++) {
            double *stat = &j->c->stat[k * j->z.H + p->head];
            *stat = worse(*stat, value[k]);
        }
    }
}

/* The first inverse of the group that failed. */
static ttn_status failure(const job *j, ttn_error *err)
{
    for (int64_t i = 0; i < j->g.n_pair; i++) {
        const pair *p = &j->g.pair[i];
        if (p->pivot != 0)
            return TTN_FAIL(err, TTN_ENUMERIC,
                            "attn_nystrom: in sequence %" PRId64 ", head %" PRId64
                            ", A'A + %g I is too close to singular "
                            "for Cholesky (pivot %d of %" PRId64 "); take a lambda of 1e-6 or more, or another pinv",
                            p->seq, p->head, j->z.inverse.lambda, p->pivot, j->z.m);
    }
    return TTN_OK;
}

static ttn_attn_tiles short_ones(const ttn_call *c)
{
    const sizes z = sizes_of(c->sig);
    return (ttn_attn_tiles){.c = c,
                            .heads = z.H,
                            .longest = z.m,
                            .rule = {.scale = z.scale, .kept = 1},
                            .add = c->in[ADD],
                            .lse = c->aux[ROW_LSE],
                            .remakes_out = 1};
}

static void clear_slots(const ttn_call *c, int64_t used)
{
    for (int a = LANDMARK_LSE; a <= LANDMARK_VALUES; a++) {
        const ttn_desc *d = &c->sig->aux[a];
        if (d->dim[0] > used)
            memset((real *)c->aux[a] + used * ttn_row_width(d), 0,
                   (size_t)((d->dim[0] - used) * ttn_row_width(d)) * sizeof(real));
    }
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    const ttn_attn_tiles tiles = short_ones(c);
    ttn_attn_tiles_forward(&tiles);
    job j = start(c, TTN_FORWARD);
    group *g = &j.g;
    const int64_t blocks = (j.z.M + SEGMENTS - 1) / SEGMENTS;
    for (int64_t i = 0; i < c->sig->n_stat; i++)
        c->stat[i] = 0;
    ttn_status status = TTN_OK;
    int64_t slots = 0;
    for (int64_t s = 0; s < c->feed->used.seqs; s++)
        slots += g->slot[s] >= 0;
    clear_slots(c, slots);
    for (next_group(&j); g->n_pair > 0 && status == TTN_OK; next_group(&j)) {
#pragma omp parallel num_threads(c->on->n_thread)
        {
            tile t;
            lay_out_thread(c->sig, TTN_FORWARD, ttn_thread_work(c, TTN_FORWARD, omp_get_thread_num()), &t);
#pragma omp for schedule(static)
            for (int64_t number = 0; number < g->n_pair * blocks; number++)
                landmarks(&j, number);
#pragma omp for schedule(dynamic)
            for (int64_t i = 0; i < g->n_pair; i++)
                make_a(&j, &g->pair[i]);
                /* inverses and chunks do not need each other: the inverses first, since they take longer */
#pragma omp for schedule(dynamic)
            for (int64_t number = 0; number < g->n_pair + g->n_chunk; number++) {
                if (number >= g->n_pair) {
                    meet_keys(&j, number - g->n_pair, &t);
                    continue;
                }
                pair *p = &g->pair[number];
                p->c = starter_of(&j, number)->start.sum;
                p->pivot = ttn_inverse_forward(&j.z.inverse, p->a, p->c, 0, p->z, t.inverse);
            }
#pragma omp for schedule(dynamic)
            for (int64_t i = 0; i < g->n_pair; i++)
                if (g->pair[i].pivot == 0) close_landmarks(&j, &g->pair[i], &t);
#pragma omp for schedule(dynamic)
            for (int64_t number = 0; number < g->n_chunk; number++)
                if (pair_of_chunk(g, number)->pivot == 0) meet_landmarks(&j, number, &t);
        }
        status = failure(&j, err);
        if (status == TTN_OK) report(&j);
    }
    ttn_zero_no_sequence(c, &c->sig->out[0], c->out[0]);
    ttn_zero_no_sequence(c, &c->sig->aux[ROW_LSE], c->aux[ROW_LSE]);
    return status;
}

/* ---- backward ---- */

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
    p->c = starter_of(j, number)->start.sum;
    p->pivot = ttn_inverse_forward(&j->z.inverse, p->a, p->c, 1, p->iterates, t->inverse);
    assert(p->pivot == 0); /* forward had the same A */
    fill_rows(j->z.m, j->z.M, 1, landmark_lse(j, p), p->lse);
    if (!for_scores(j->c)) return;
    fill_rows(j->z.m, j->z.M, j->z.D, landmark_values(j, p), p->C);
    make_Y(j, p, p->C);
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
    const real sum = dot(M, s, e);
#pragma omp simd
    for (int64_t i = 0; i < M; i++)
        e[i] = ttn_nystrom_slope(s[i], e[i], sum, scale);
}

/* A chunk of queries: dq but for what comes through landmarks; its share of dY and dy. */
static void meet_landmarks_back(const job *j, int64_t number, const tile *t)
{
    const ttn_call *c = j->c;
    const pair *p = pair_of_chunk(&j->g, number);
    const chunk *h = &j->g.chunk[number];
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    const int scores = for_scores(c);
    int64_t first;
    int64_t end;
    tiles_of_chunk(p, number, &first, &end);
    for (int64_t k = first; k < end; k++) {
        const double beta = k == first ? 0 : 1;
        const int64_t live = live_of(p, k);
        const int64_t row = c->feed->span[p->seq].first + k * p->height;
        const real *lse = (const real *)c->aux[ROW_LSE] + row * j->z.H + p->head;
        pack(j, p, k, c->in[Q], t->q);
        pack(j, p, k, c->dout[0], t->g);
        logits(j, p->height, t->q, p->y, t->s);
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
        unpack(j, p, k, t->o, c->acc[Q], c->din[Q]);
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
    const pair *p = pair_of_chunk(&j->g, number);
    const chunk *h = &j->g.chunk[number];
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    const int scores = for_scores(c);
    const real scale = j->z.scale;
    int64_t first;
    int64_t end;
    tiles_of_chunk(p, number, &first, &end);
    for (int64_t k = first; k < end; k++) {
        const int64_t live = live_of(p, k);
        pack(j, p, k, c->in[K], t->q);
        logits(j, p->height, t->q, p->x, t->s);
        if (scores) {
            pack(j, p, k, c->in[V], t->g);
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
            unpack(j, p, k, t->o, c->acc[K], c->din[K]);
        }
        if (c->din[Q])
            ttn_gemm(TTN_T, TTN_N, M, D, p->height, 1, ttn_in(t->e, M), ttn_in(t->q, D), k == first ? 0 : 1,
                     ttn_out(h->first, D));
        if (!c->din[V]) continue;
        ttn_gemm(TTN_N, TTN_N, p->height, D, M, 1, ttn_in(t->s, M), ttn_in(p->dC, D), 0, ttn_out(t->o, D));
        unpack(j, p, k, t->o, c->acc[V], c->din[V]);
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
    if (starter_of(j, number) == p) {
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
        const real sum = dot(M, a, da);
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
    const pair *p = pair_of_chunk(&j->g, number);
    const int64_t D = j->z.D;
    int64_t first;
    int64_t end;
    tiles_of_chunk(p, number, &first, &end);
    first *= p->height;
    end = smaller(end * p->height, p->n);
    for (int64_t t = first; t < end; t++) {
        const real *add = of_landmarks + ttn_nystrom_segment_of(t, p->n, j->z.m) * D;
        real *to = (real *)x + place_of(j, p, t);
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
    const int64_t blocks = (j->z.M + SEGMENTS - 1) / SEGMENTS;
    const int scores = for_scores(c);
#pragma omp parallel num_threads(c->on->n_thread)
    {
        tile t;
        lay_out_thread(c->sig, TTN_BACKWARD, ttn_thread_work(c, TTN_BACKWARD, omp_get_thread_num()), &t);
#pragma omp for schedule(static)
        for (int64_t number = 0; number < g->n_pair * blocks; number++)
            landmarks(j, number);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < g->n_pair; i++)
            make_a(j, &g->pair[i]);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < g->n_pair; i++)
            remake(j, i, &t);
#pragma omp for schedule(dynamic)
        for (int64_t number = 0; number < g->n_chunk; number++)
            meet_landmarks_back(j, number, &t);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < g->n_pair; i++)
            through_Y(j, &g->pair[i]);
        /* the inverses' gradients and the chunks of keys do not need each other */
        const int64_t inverses = scores ? g->n_pair : 0;
#pragma omp for schedule(dynamic)
        for (int64_t number = 0; number < inverses + g->n_chunk; number++) {
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
                const pair *p = pair_of_chunk(g, number);
                if (c->din[Q]) add_to_members(j, number, p->dx, c->din[Q]);
                if (c->din[K]) add_to_members(j, number, p->dy, c->din[K]);
            }
        }
    }
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (for_scores(c) || c->din[V]) {
        const ttn_attn_tiles tiles = short_ones(c);
        ttn_attn_tiles_backward(&tiles);
        job j = start(c, TTN_BACKWARD);
        for (next_group(&j); j.g.n_pair > 0; next_group(&j))
            backward_of_group(&j);
    }
    if (c->din[ADD]) pass_on(c);
    for (int i = Q; i <= ADD; i++)
        if (c->din[i] && c->acc[i] == 0) ttn_zero_no_sequence(c, &c->sig->in[i], c->din[i]);
    return TTN_OK;
}

/* ---- as an attention kind ---- */

static const char *const pinvs[] = {"cheb", "razavi", "exact", NULL}; /* in the order of ttn_pinv */
static const char *const compats[] = {"none", "hf", "mlpen", NULL};

static const ttn_option options[] = {
    {.name = "nystrom.landmarks",
     .type = TTN_OPTION_INTEGER,
     .fallback = "64",
     .least = 1,
     .most = TTN_NYSTROM_MOST_LANDMARKS,
     .help = "landmarks of a head; sequences of at most so many residues get exact attention",
     .since = "0.1"},
    {.name = "nystrom.pinv",
     .type = TTN_OPTION_CHOICE,
     .fallback = "cheb",
     .choices = pinvs,
     .help = "inverse of the landmarks' matrix: Chebyshev's iteration, the papers' by Razavi, or by Cholesky",
     .since = "0.1"},
    {.name = "nystrom.iterations",
     .type = TTN_OPTION_INTEGER,
     .fallback = "0",
     .least = 0,
     .most = TTN_INVERSE_MOST_STEPS,
     .help = "steps of cheb or razavi; 0 stands for 8 and 6, which cost the same",
     .since = "0.1"},
    {.name = "nystrom.lambda",
     .type = TTN_OPTION_REAL,
     .fallback = "1e-6",
     .least = 0,
     .most = 1,
     .help = "with the pinv exact: added to the diagonal; smaller is worse where the matrix is close to singular",
     .since = "0.1"},
    {.name = "nystrom.conv",
     .type = TTN_OPTION_INTEGER,
     .fallback = "33",
     .least = 0,
     .most = TTN_DWCONV_MOST_WIDTH,
     .unit = "residues",
     .help = "width, odd, of the convolution of the values that is added, a kernel for each head; 0 leaves it out",
     .since = "0.1"},
    {.name = "nystrom.compat",
     .type = TTN_OPTION_CHOICE,
     .fallback = "none",
     .choices = compats,
     .help = "compute what published weights were trained with: razavi in 6 steps, all heads of a sequence starting "
             "together; pinv and iterations are not looked at",
     .since = "0.1"},
};

enum { LANDMARKS, PINV, ITERATIONS, LAMBDA, CONV, COMPAT };

static ttn_status integer_of(const ttn_option_reader *o, int row, int layer, int *ret, ttn_error *err)
{
    int64_t value;
    const ttn_status status = o->get_integer(o->self, options[row].name, layer, &value, err);
    if (status == TTN_OK) *ret = (int)value; /* the rows' ranges fit */
    return status;
}

static int place_in(const char *const *choices, const char *text)
{
    int i = 0;
    while (choices[i] && strcmp(choices[i], text) != 0)
        i++;
    return i;
}

static ttn_status attr_of_options(const ttn_option_reader *o, int layer, void *attr, ttn_error *err)
{
    attributes *a = attr;
    *a = (attributes){0};
    const char *pinv = NULL;
    const char *compat = NULL;
    ttn_status status = o->get_integer(o->self, options[LANDMARKS].name, layer, &a->landmarks, err);
    if (status == TTN_OK) status = o->get_text(o->self, options[PINV].name, layer, &pinv, err);
    if (status == TTN_OK) status = integer_of(o, ITERATIONS, layer, &a->iterations, err);
    if (status == TTN_OK) status = o->get_real(o->self, options[LAMBDA].name, layer, &a->lambda, err);
    if (status == TTN_OK) status = integer_of(o, CONV, layer, &a->conv, err);
    if (status == TTN_OK) status = o->get_text(o->self, options[COMPAT].name, layer, &compat, err);
    if (status != TTN_OK) return status;
    if (a->conv > 0 && a->conv % 2 == 0)
        return TTN_FAIL(err, TTN_EINVAL, "%s is %d, expected an odd width, so that it has a middle, or 0",
                        options[CONV].name, a->conv);
    a->pinv = (ttn_pinv)place_in(pinvs, pinv);
    if (place_in(compats, compat) > 0) {
        a->pinv = TTN_PINV_RAZAVI;
        a->iterations = TTN_INVERSE_RAZAVI_STEPS;
        a->shared = 1;
    }
    return TTN_OK;
}

static int build(ttn_graph *g, const ttn_attn_in *in, const void *attr)
{
    attributes a = *(const attributes *)attr;
    a.heads = in->heads;
    a.causal = in->causal;
    int add = TTN_NONE;
    if (a.conv > 0 && !a.causal) {
        const ttn_init init = {TTN_INIT_NORMAL, 0.02}; /* as the published models begin */
        add = ttn_dwconv(g, "conv", in->v, ttn_param(g, "conv.weight", ttn_matrix(in->heads, a.conv), init, 0));
    }
    return ttn_attn_nystrom(g, in->name, in->q, in->k, in->v, add, &a);
}

/* ---- maps: without what `add` brings ---- */

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
    const size_t shared = lay_out(s, TTN_FORWARD, NULL, &g);
    const size_t each = ttn_work_align(lay_out_thread(s, TTN_FORWARD, NULL, &t));
    lay_out_thread(s, TTN_FORWARD, (char *)v->work + shared + (size_t)thread * each, &t);
    return t;
}

static ttn_status map_open(const ttn_call *c, int64_t seq, int64_t head, map_view *v, ttn_error *err)
{
    group g;
    tile t;
    const size_t bytes = lay_out(c->sig, TTN_FORWARD, NULL, &g) +
                         (size_t)c->on->n_thread * ttn_work_align(lay_out_thread(c->sig, TTN_FORWARD, NULL, &t));
    v->work = ttn_alloc_or_say((int64_t)bytes, 1, "landmarks of an attention map", err);
    if (!v->work) return TTN_ENOMEM;
    ttn_call with = *c;
    with.work = v->work;
    v->j = start(&with, TTN_FORWARD);
    v->j.c = c;
    job *j = &v->j;
    const int64_t first = head / j->unit * j->unit; /* of the heads that start together */
    j->g.next = seq * j->z.H + first;
    j->g.room_pairs = j->unit;
    next_group(j);
    const int64_t blocks = (j->z.M + SEGMENTS - 1) / SEGMENTS;
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t number = 0; number < j->g.n_pair * blocks; number++)
        landmarks(j, number);
    for (int64_t i = 0; i < j->g.n_pair; i++)
        make_a(j, &j->g.pair[i]);
    pair *p = &j->g.pair[head - first];
    v->p = p;
    t = map_tile(v, 0);
    p->pivot = ttn_inverse_forward(&j->z.inverse, p->a, starter_of(j, head - first)->start.sum, 0, p->z, t.inverse);
    if (p->pivot == 0) return TTN_OK;
    map_close(v);
    return failure(j, err);
}

/* Rows t, t + 1, … of F (n_row, M), to s of the tile; at most a tile's rows. */
static void map_queries(const map_view *v, int64_t t, int64_t n_row, const tile *with)
{
    const job *j = &v->j;
    const ttn_call *c = j->c;
    const real *lse = (const real *)c->aux[ROW_LSE] + (c->feed->span[v->p->seq].first + t) * j->z.H + v->p->head;
    const real *from = (const real *)c->in[Q] + place_of(j, v->p, t);
    for (int64_t r = 0; r < n_row; r++)
        memcpy(with->q + r * j->z.D, from + r * j->z.C, (size_t)j->z.D * sizeof(real));
    logits(j, n_row, with->q, v->p->y, with->s);
    for (int64_t r = 0; r < n_row; r++)
        slopes_along_row(j, lse[r * j->z.H], with->s + r * j->z.M, NULL);
}

/* Columns t, t + 1, … of B as rows (n_row, M), to s of the tile; those past m hold anything finite. */
static void map_keys(const map_view *v, int64_t t, int64_t n_row, const tile *with)
{
    const job *j = &v->j;
    const real *lse = landmark_lse(j, v->p);
    const real *from = (const real *)j->c->in[K] + place_of(j, v->p, t);
    for (int64_t r = 0; r < n_row; r++)
        memcpy(with->q + r * j->z.D, from + r * j->z.C, (size_t)j->z.D * sizeof(real));
    logits(j, n_row, with->q, v->p->x, with->s);
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
        const int64_t live = live_of(v.p, k);
        map_keys(&v, first, live, &of_thread);
        ttn_gemm(TTN_N, TTN_T, n_row, live, M, 1, ttn_in(fz, M), ttn_in(of_thread.s, M), 0, ttn_out(map + first, n));
    }
    ttn_free(fz);
    map_close(&v);
    return TTN_OK;
}

static ttn_status map_rows(const ttn_call *c, int64_t seq, int64_t head, int64_t n_row, const int64_t *row, real *map,
                           ttn_error *err)
{
    const ttn_attn_tiles tiles = short_ones(c);
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
            const int64_t rows = smaller(TTN_ATTN_MOST_TILE, end - at);
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

static ttn_status map_pool(const ttn_call *c, int64_t seq, int64_t head, int64_t P, double *map, ttn_error *err)
{
    const ttn_attn_tiles tiles = short_ones(c);
    ttn_span span;
    ttn_status status = ttn_map_span(c, "attn_nystrom", seq, head, tiles.heads, 0, NULL, P, &span, err);
    if (status != TTN_OK) return status;
    if (span.n > tiles.longest) return map_long_pool(c, seq, head, P, map, err);
    return ttn_attn_tiles_map_pool(&tiles, seq, head, P, map, err);
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

#define THREE(...)                                          \
    {                                                       \
        __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, TTN_LEFT_OUT \
    }
#define FOUR(...)                                          \
    {                                                      \
        __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__ \
    }
/* A with a condition number that does not bury differences: queries and keys well apart */
#define APART             \
    {                     \
        {-3, 3}, {-3, 3}, \
        {                 \
            -1, 1         \
        }                 \
    }

static const attributes two_cheb = {.heads = 2, .landmarks = 4, .iterations = 3};
static const attributes one_cheb = {.heads = 1, .landmarks = 3};
static const attributes two_razavi = {.heads = 2, .landmarks = 5, .pinv = TTN_PINV_RAZAVI, .iterations = 3};
static const attributes two_exact = {.heads = 2, .landmarks = 4, .pinv = TTN_PINV_EXACT, .lambda = 1e-2};
static const attributes three_shared = {
    .heads = 3, .landmarks = 4, .pinv = TTN_PINV_RAZAVI, .iterations = 2, .shared = 1};
static const attributes one_wide = {.heads = 1, .landmarks = 17, .iterations = 2};

static const ttn_case cases[] = {
    {.about = "segments of unequal length, rows of no sequence between",
     .used = {.rows = 36, .seqs = 2},
     .span = {{0, 11}, {12, 21}},
     .in = FOUR(TTN_ROWS_OF(6)),
     .range = APART,
     .attr = &two_cheb},
    {.about = "short sequences beside long ones",
     .used = {.rows = 40, .seqs = 5},
     .span = {{1, 4}, {5, 1}, {8, 5}, {15, 3}, {19, 18}},
     .in = FOUR(TTN_ROWS_OF(6)),
     .range = APART,
     .attr = &two_cheb},
    {.about = "eight steps, nothing added",
     .used = {.rows = 20, .seqs = 1},
     .span = {{0, 20}},
     .in = THREE(TTN_ROWS_OF(5)),
     .range = APART,
     .attr = &one_cheb},
    {.about = "razavi",
     .used = {.rows = 30, .seqs = 2},
     .span = {{0, 6}, {6, 23}},
     .in = THREE(TTN_ROWS_OF(8)),
     .range = APART,
     .attr = &two_razavi},
    {.about = "by Cholesky",
     .used = {.rows = 30, .seqs = 2},
     .span = {{0, 17}, {18, 12}},
     .in = FOUR(TTN_ROWS_OF(8)),
     .range = APART,
     .attr = &two_exact},
    {.about = "heads that start together",
     .used = {.rows = 30, .seqs = 3},
     .span = {{0, 9}, {9, 4}, {13, 16}},
     .in = FOUR(TTN_ROWS_OF(12)),
     .range = APART,
     .attr = &three_shared},
    {.about = "more landmarks than fill up a vector, three tiles",
     .used = {.rows = 400, .seqs = 2},
     .span = {{0, 387}, {390, 5}},
     .in = THREE(TTN_ROWS_OF(3)),
     .attr = &one_wide},
    {.about = "one landmark",
     .used = {.rows = 9, .seqs = 2},
     .span = {{0, 7}, {7, 2}},
     .in = THREE(TTN_ROWS_OF(2)),
     .attr = &(const attributes){.heads = 1, .landmarks = 1}},
    {.about = "two chunks of a sequence",
     .used = {.rows = 4200, .seqs = 1},
     .span = {{0, 4100}},
     .in = THREE(TTN_ROWS_OF(2)),
     .range = APART,
     .attr = &(const attributes){.heads = 1, .landmarks = 2, .iterations = 2}},
    {.about = "only short sequences",
     .used = {.rows = 12, .seqs = 2},
     .span = {{0, 4}, {5, 3}},
     .in = FOUR(TTN_ROWS_OF(6)),
     .attr = &two_cheb},
    {.about = "no sequences: zeros", .used = {.rows = 7}, .in = THREE(TTN_ROWS_OF(3)), .attr = &one_cheb},
    {.about = "no rows", .cap = {.rows = 480, .seqs = 2}, .in = FOUR(TTN_ROWS_OF(3)), .attr = &one_cheb},
    {.about = "causal",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(4)),
     .attr = &(const attributes){.heads = 1, .landmarks = 2, .causal = 1},
     .refused = "causal attention does not go through landmarks"},
    {.about = "v of another width",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_ROWS_OF(4), TTN_ROWS_OF(8), TTN_LEFT_OUT},
     .attr = &two_cheb,
     .refused = "v is " TTN_REAL_NAME " (N 480, 8), but q is " TTN_REAL_NAME " (N 480, 4); expected one shape"},
    {.about = "picks",
     .used = {.picks = 6},
     .in = THREE(TTN_PICKS_OF(4)),
     .attr = &two_cheb,
     .refused = "q is " TTN_REAL_NAME " (R 480, 4), expected rows of a batch, (N, H D)"},
    {.about = "four dimensions",
     .used = {.rows = 6},
     .in = THREE({.axis = TTN_ROWS, .ndim = 3, .dim = {0, 2, 2}}),
     .attr = &two_cheb,
     .refused = "which has 3 dimensions; expected 2, (N, H D)"},
    {.about = "two heads in a width of 5",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(5)),
     .attr = &two_cheb,
     .refused = "a width of 5 cannot be divided among 2 heads"},
    {.about = "no landmarks",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(4)),
     .attr = &(const attributes){.heads = 1},
     .refused = "landmarks is 0, expected 1 to 4096"},
    {.about = "too many steps",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(4)),
     .attr = &(const attributes){.heads = 1, .landmarks = 2, .iterations = 13},
     .refused = "iterations is 13, expected 1 to 12, or 0 for 8 (cheb) and 6 (razavi)"},
    {.about = "lambda below 0",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(4)),
     .attr = &(const attributes){.heads = 1, .landmarks = 2, .lambda = -1},
     .refused = "lambda is -1, expected 0 or more"},
};

static const ttn_stat stats[] = {
    [RESIDUAL] = {"residual", TTN_MAX, 1},
    [ROW_SUM] = {"row_sum", TTN_MAX, 1},
    [Z_NORM] = {"z_norm", TTN_MAX, 1},
};

/* Of dq and dk, aux and all; dv needs neither v nor C. */
#define READS_OF_SCORES                                                            \
    {                                                                              \
        .in = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V),                                \
        .aux = TTN_BIT(ROW_LSE) | TTN_BIT(LANDMARK_LSE) | TTN_BIT(LANDMARK_VALUES) \
    }

const ttn_op ttn_op_attn_nystrom = {
    .name = "attn_nystrom",
    .n_in = 4,
    .n_out = 1,
    .optional = TTN_BIT(ADD),
    .differentiable = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V) | TTN_BIT(ADD),
    .reads = {[Q] = READS_OF_SCORES,
              [K] = READS_OF_SCORES,
              [V] = {.in = TTN_BIT(Q) | TTN_BIT(K), .aux = TTN_BIT(ROW_LSE) | TTN_BIT(LANDMARK_LSE)}},
    .takes = {TTN_SHARES(ADD)},
    .passes = {[ADD] = TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .stats = stats,
    .n_stats = N_STATS,
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .attention = &attention,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_attn_nystrom(ttn_graph *g, const char *name, int q, int k, int v, int add, const ttn_attn_nystrom_options *o)
{
    return ttn_apply(g, "attn_nystrom", name, o, (const int[]){q, k, v, add});
}
