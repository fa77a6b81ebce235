/* Nystrom attention: memory, groups of pairs, landmarks (autograd/nystrom.h). */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "autograd/carve.h"
#include "autograd/nystrom.h"
#include "autograd/ops/attn_nystrom.h"
#include "core/blas.h"

enum { Q, K, ADD = 3 };

typedef ttn_nystrom_sizes sizes;
typedef ttn_nystrom_pair pair;
typedef ttn_nystrom_chunk chunk;
typedef ttn_nystrom_group group;
typedef ttn_nystrom_tile tile;
typedef ttn_nystrom_job job;

enum {
    CHUNK_TILES = 20, /* of a chunk, at most: 3,840 rows, so that what it sums up is 7 % of what it reads at M 256 */
    GROUP_BYTES = 16 << 20, /* of the pairs of a group … */
    LEAST_PAIRS = 8,        /* … which are so many at least, for as many threads, … */
    MOST_PAIRS = 64,        /* … and at most */
};

/* ---- sizes ---- */

sizes ttn_nystrom_sizes_of(const ttn_sig *s)
{
    const ttn_attn_nystrom_options *a = s->attr;
    sizes z = {.H = a->heads, .D = s->in[Q].dim[1] / a->heads, .C = s->in[Q].dim[1], .m = a->landmarks};
    z.M = (z.m + TTN_NYSTROM_PAD - 1) / TTN_NYSTROM_PAD * TTN_NYSTROM_PAD;
    z.scale = (real)(1 / sqrt((double)z.D));
    z.inverse = (ttn_inverse){.m = z.m, .ld = z.M, .kind = a->pinv, .iterations = a->iterations, .lambda = a->lambda};
    if (z.inverse.iterations == 0)
        z.inverse.iterations = a->pinv == TTN_PINV_CHEB ? TTN_INVERSE_CHEB_STEPS : TTN_INVERSE_RAZAVI_STEPS;
    return z;
}

int64_t ttn_nystrom_slots(const ttn_sig *s)
{
    const ttn_attn_nystrom_options *a = s->attr;
    return ttn_smaller(s->cap.seqs, s->in[Q].dim[0] / (a->landmarks + 1));
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
    const ttn_attn_nystrom_options *a = s->attr;
    return a->shared ? a->heads : 1;
}

size_t ttn_nystrom_lay_out(const ttn_sig *s, ttn_pass pass, void *work, group *ret)
{
    const sizes z = ttn_nystrom_sizes_of(s);
    pair p;
    chunk h;
    const size_t pair_bytes = pair_lay_out(&z, pass, NULL, &p);
    const size_t chunk_bytes = chunk_lay_out(&z, pass, NULL, &h);
    const int64_t all = ttn_nystrom_slots(s) * z.H;
    int64_t pairs = ttn_larger(LEAST_PAIRS, ttn_smaller(MOST_PAIRS, (int64_t)(GROUP_BYTES / pair_bytes)));
    pairs = ttn_smaller(ttn_larger(pairs, unit_of(s)), all);
    *ret = (group){.room_pairs = pairs};
    /* so many pairs never have more chunks than those of min(pairs, H) heads of one sequence of all rows, and one each */
    ret->room_chunks = pairs > 0 ? ttn_smaller(pairs, z.H) * chunks_of(s->in[Q].dim[0]) + pairs : 0;
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

size_t ttn_nystrom_lay_out_thread(const ttn_sig *s, ttn_pass pass, void *work, tile *ret)
{
    const sizes z = ttn_nystrom_sizes_of(s);
    *ret = (tile){0};
    if (ttn_nystrom_slots(s) == 0) return 0; /* with 4,096 landmarks it would be 0.6 GiB a thread */
    ttn_carving c = {.base = work};
    ret->inverse = ttn_carve(&c, 1, ttn_inverse_work(&z.inverse, pass));
    ret->s = ttn_carve(&c, TTN_ATTN_MOST_TILE * z.M, sizeof(real));
    real **const rows[] = {&ret->q, &ret->g, &ret->o};
    for (int i = 0; i < 3; i++)
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

/* ---- groups ---- */

job ttn_nystrom_start(const ttn_call *c, ttn_pass pass)
{
    job j = {.c = c, .z = ttn_nystrom_sizes_of(c->sig), .unit = unit_of(c->sig)};
    ttn_nystrom_lay_out(c->sig, pass, c->work, &j.g);
    int64_t slots = 0;
    for (int64_t s = 0; s < c->feed->used.seqs; s++) {
        j.g.slot[s] = -1;
        if (c->feed->span[s].n > j.z.m) j.g.slot[s] = slots++;
    }
    return j;
}

void ttn_nystrom_next_group(job *j)
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

pair *ttn_nystrom_pair_of_chunk(const group *g, int64_t number)
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

void ttn_nystrom_tiles_of_chunk(const pair *p, int64_t number, int64_t *ret_first, int64_t *ret_end)
{
    const int64_t each = chunk_tiles_of(p->n);
    *ret_first = (number - p->first_chunk) * each;
    *ret_end = ttn_smaller(*ret_first + each, p->T);
}

ttn_status ttn_nystrom_failure(const job *j, ttn_error *err)
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

ttn_attn_tiles ttn_nystrom_short(const ttn_call *c)
{
    const sizes z = ttn_nystrom_sizes_of(c->sig);
    return (ttn_attn_tiles){.c = c,
                            .heads = z.H,
                            .longest = z.m,
                            .rule = {.scale = z.scale, .kept = 1},
                            .add = c->in[ADD],
                            .lse = c->aux[TTN_NYSTROM_ROW_LSE],
                            .remakes_out = 1};
}

/* ---- in and out of (N, H D) ---- */

void ttn_nystrom_pack(const job *j, const pair *p, int64_t tile_number, const void *x, real *to)
{
    const int64_t D = j->z.D;
    const int64_t live = ttn_nystrom_live(p, tile_number);
    const real *from = (const real *)x + ttn_nystrom_place(j, p, tile_number * p->height);
    for (int64_t r = 0; r < live; r++)
        memcpy(to + r * D, from + r * j->z.C, (size_t)D * sizeof *to);
    memset(to + live * D, 0, (size_t)((p->height - live) * D) * sizeof *to);
}

void ttn_nystrom_unpack(const job *j, const pair *p, int64_t tile_number, const real *from, real acc, void *x)
{
    const int64_t D = j->z.D;
    const int64_t live = ttn_nystrom_live(p, tile_number);
    real *to = (real *)x + ttn_nystrom_place(j, p, tile_number * p->height);
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
    const real *from = (const real *)x + ttn_nystrom_place(j, p, first);
    enum { COLUMNS = 64 };
    for (int64_t d = 0; d < D; d += COLUMNS) {
        double sum[COLUMNS] = {0};
        const int64_t columns = ttn_smaller(COLUMNS, D - d);
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

void ttn_nystrom_landmarks(const job *j, int64_t number)
{
    const int64_t blocks = (j->z.M + TTN_NYSTROM_SEGMENTS - 1) / TTN_NYSTROM_SEGMENTS;
    const pair *p = &j->g.pair[number / blocks];
    const int64_t D = j->z.D;
    const int64_t first = number % blocks * TTN_NYSTROM_SEGMENTS;
    for (int64_t segment = first; segment < ttn_smaller(first + TTN_NYSTROM_SEGMENTS, j->z.M); segment++) {
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

void ttn_nystrom_logits(const job *j, int64_t n, const real *rows, const real *of_landmarks, real *to)
{
    ttn_gemm(TTN_N, TTN_T, n, j->z.M, j->z.D, (double)j->z.scale, ttn_in(rows, j->z.D), ttn_in(of_landmarks, j->z.D), 0,
             ttn_out(to, j->z.M));
}

void ttn_nystrom_make_a(const job *j, pair *p)
{
    const int64_t M = j->z.M;
    const int64_t m = j->z.m;
    ttn_nystrom_logits(j, M, p->x, p->y, p->a);
    for (int64_t i = 0; i < m; i++) {
        real *row = p->a + i * M;
        const real sum = ttn_nystrom_exponentials(m, M, ttn_nystrom_largest(m, row), row);
#pragma omp simd
        for (int64_t t = 0; t < M; t++)
            row[t] /= sum;
    }
    memset(p->a + m * M, 0, (size_t)((M - m) * M) * sizeof *p->a);
    p->start = ttn_inverse_start_of(&j->z.inverse, p->a);
}

const pair *ttn_nystrom_starter(const job *j, int64_t i)
{
    const pair *first = &j->g.pair[i / j->unit * j->unit];
    const pair *most = first;
    for (int64_t u = 1; u < j->unit; u++)
        if (first[u].start.sum > most->start.sum) most = &first[u];
    return most;
}

void ttn_nystrom_make_Y(const job *j, const pair *p, const real *C)
{
    const int64_t M = j->z.M;
    const int64_t D = j->z.D;
    ttn_gemm(TTN_N, TTN_N, M, D, M, 1, ttn_in(p->z, M), ttn_in(C, D), 0, ttn_out(p->Y, D));
}
