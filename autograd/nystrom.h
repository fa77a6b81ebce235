/* Nystrom attention's kernels: what forward, backward and maps share. The maths, and how it is done: on top of
 * autograd/ops/attn_nystrom.c, whose letters these are. */
#ifndef TTN_NYSTROM_H
#define TTN_NYSTROM_H

#include <math.h>
#include <string.h>
#include "autograd/attn_tiles.h"
#include "autograd/kernel.h"
#include "autograd/nystrom_inverse.h"
#include "autograd/ops.h"
#include "core/vecmath.h"

/* The op's aux, and its statistics, a number a head each. */
enum { TTN_NYSTROM_ROW_LSE, TTN_NYSTROM_LANDMARK_LSE, TTN_NYSTROM_LANDMARK_VALUES, TTN_NYSTROM_N_AUX };
enum { TTN_NYSTROM_RESIDUAL, TTN_NYSTROM_ROW_SUM, TTN_NYSTROM_Z_NORM, TTN_NYSTROM_N_STATS };

enum {
    TTN_NYSTROM_PAD = 16,      /* landmarks are filled up to a multiple, so that rows of a tile are whole vectors */
    TTN_NYSTROM_SEGMENTS = 16, /* of a task that makes landmarks */
};

/* ---- the op's kernels ---- */

ttn_status ttn_nystrom_forward(const ttn_call *c, ttn_error *err);
ttn_status ttn_nystrom_backward(const ttn_call *c, ttn_error *err);

/* autograd/attention.h; without what `add` brings. */
ttn_status ttn_nystrom_map_rows(const ttn_call *c, int64_t seq, int64_t head, int64_t n_row, const int64_t *row,
                                real *map, ttn_error *err);
ttn_status ttn_nystrom_map_pool(const ttn_call *c, int64_t seq, int64_t head, int64_t P, double *map, ttn_error *err);

/* ---- sizes ---- */

/* Sizes that hold for a whole call. */
typedef struct {
    int64_t H, D, C;
    int64_t m, M; /* landmarks, and what they are filled up to */
    real scale;
    ttn_inverse inverse;
} ttn_nystrom_sizes;

ttn_nystrom_sizes ttn_nystrom_sizes_of(const ttn_sig *s);

/* Sequences of more than m rows that there may be. */
int64_t ttn_nystrom_slots(const ttn_sig *s);

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
} ttn_nystrom_pair;

/* What a chunk sums up. */
typedef struct {
    real *max;      /* forward (M) */
    double *sum;    /* forward (M): of exp(logit - max) */
    real *first;    /* (M, D): B v of exp(logit - max); dY, then dx */
    real *second;   /* backward (M, D): dy */
    double row_sum; /* forward: largest |sum of a row of F Z B - 1| */
} ttn_nystrom_chunk;

typedef struct {
    int64_t room_pairs, room_chunks;
    int64_t *slot;            /* (S): of sequences with more than m rows, counted; -1 of others */
    ttn_nystrom_pair *pair;   /* (room_pairs) */
    ttn_nystrom_chunk *chunk; /* (room_chunks) */
    int64_t n_pair, n_chunk;
    int64_t next; /* the pair of all (seq H + head) after this group */
} ttn_nystrom_group;

/* One thread's tile. */
typedef struct {
    real *s, *e;               /* (tile, M): logits, then weights; backward: gradients of weights, then of logits */
    real *q, *g;               /* (tile, D): copies; q stands for k, and g for v */
    real *o;                   /* (tile, D): results */
    real *next, *factor, *sum; /* forward (M) */
    real *row;                 /* forward (tile): 1 / the sum of a row of F before it is divided */
    real *dz;                  /* backward (M, M) */
    void *inverse;
} ttn_nystrom_tile;

typedef struct {
    const ttn_call *c;
    ttn_nystrom_sizes z;
    int64_t unit; /* pairs that start together: H where heads do, else 1; a group is whole units */
    ttn_nystrom_group g;
} ttn_nystrom_job;

/* Bytes of scratch, and where its parts are. work NULL: only the bytes. */
size_t ttn_nystrom_lay_out(const ttn_sig *s, ttn_pass pass, void *work, ttn_nystrom_group *ret);
size_t ttn_nystrom_lay_out_thread(const ttn_sig *s, ttn_pass pass, void *work, ttn_nystrom_tile *ret);

/* ---- groups ---- */

/* With c->work laid out, and no group yet. */
ttn_nystrom_job ttn_nystrom_start(const ttn_call *c, ttn_pass pass);

/* The pairs that follow: whole units until there is no room for another; none after the last. By one thread. */
void ttn_nystrom_next_group(ttn_nystrom_job *j);

/* Which pair a chunk of the group is of, and its tiles: [*ret_first, *ret_end). */
ttn_nystrom_pair *ttn_nystrom_pair_of_chunk(const ttn_nystrom_group *g, int64_t number);
void ttn_nystrom_tiles_of_chunk(const ttn_nystrom_pair *p, int64_t number, int64_t *ret_first, int64_t *ret_end);

/* The first inverse of the group that failed, as an error. */
ttn_status ttn_nystrom_failure(const ttn_nystrom_job *j, ttn_error *err);

/* Sequences of at most m rows, as exact attention takes them. */
ttn_attn_tiles ttn_nystrom_short(const ttn_call *c);

/* ---- in and out of (N, H D) ---- */

/* Element 0 of row t of the sequence, in this head's columns. */
static inline int64_t ttn_nystrom_place(const ttn_nystrom_job *j, const ttn_nystrom_pair *p, int64_t t)
{
    return (j->c->feed->span[p->seq].first + t) * j->z.C + p->head * j->z.D;
}

/* How many rows of a tile are the sequence's. */
static inline int64_t ttn_nystrom_live(const ttn_nystrom_pair *p, int64_t tile_number)
{
    return ttn_smaller(p->height, p->n - tile_number * p->height);
}

/* A tile's rows to or from compact ones; to: zeros behind the sequence's end. */
void ttn_nystrom_pack(const ttn_nystrom_job *j, const ttn_nystrom_pair *p, int64_t tile_number, const void *x,
                      real *to);
void ttn_nystrom_unpack(const ttn_nystrom_job *j, const ttn_nystrom_pair *p, int64_t tile_number, const real *from,
                        real acc, void *x);

/* Where the op keeps a pair's: (m), (m, D). */
static inline real *ttn_nystrom_landmark_lse(const ttn_nystrom_job *j, const ttn_nystrom_pair *p)
{
    return (real *)j->c->aux[TTN_NYSTROM_LANDMARK_LSE] + (p->slot * j->z.H + p->head) * j->z.m;
}

static inline real *ttn_nystrom_landmark_values(const ttn_nystrom_job *j, const ttn_nystrom_pair *p)
{
    return (real *)j->c->aux[TTN_NYSTROM_LANDMARK_VALUES] + (p->slot * j->z.H + p->head) * j->z.m * j->z.D;
}

/* ---- landmarks ---- */

/* Tasks that make the landmarks of a group: x and y of a few segments each. */
static inline int64_t ttn_nystrom_landmark_tasks(const ttn_nystrom_job *j)
{
    return j->g.n_pair * ((j->z.M + TTN_NYSTROM_SEGMENTS - 1) / TTN_NYSTROM_SEGMENTS);
}
void ttn_nystrom_landmarks(const ttn_nystrom_job *j, int64_t number);

/* s rows (n, D) landmarks^T: (n, M). */
void ttn_nystrom_logits(const ttn_nystrom_job *j, int64_t n, const real *rows, const real *of_landmarks, real *to);

/* A, and where Z would start by itself. */
void ttn_nystrom_make_a(const ttn_nystrom_job *j, ttn_nystrom_pair *p);

/* The pair whose column gives Z_0's c to pair i of the group: itself, or of the heads that start together the first with the
 * largest sum. */
const ttn_nystrom_pair *ttn_nystrom_starter(const ttn_nystrom_job *j, int64_t i);

/* Y = Z C. */
void ttn_nystrom_make_Y(const ttn_nystrom_job *j, const ttn_nystrom_pair *p, const real *C);

/* ---- a row of M weights ---- */

/* The largest of m numbers, in TTN_NYSTROM_PAD lanes. */
static inline real ttn_nystrom_largest(int64_t m, const real *x)
{
    real part[TTN_NYSTROM_PAD];
    for (int w = 0; w < TTN_NYSTROM_PAD; w++)
        part[w] = -(real)INFINITY;
    int64_t i = 0;
    for (; i + TTN_NYSTROM_PAD <= m; i += TTN_NYSTROM_PAD) {
#pragma omp simd
        for (int w = 0; w < TTN_NYSTROM_PAD; w++)
            part[w] = x[i + w] > part[w] ? x[i + w] : part[w];
    }
    for (int w = 0; i + w < m; w++)
        part[w] = x[i + w] > part[w] ? x[i + w] : part[w];
    real most = part[0];
    for (int w = 1; w < TTN_NYSTROM_PAD; w++)
        most = part[w] > most ? part[w] : most;
    return most;
}

static inline real ttn_nystrom_total(const real *part)
{
    real sum[TTN_NYSTROM_PAD];
    memcpy(sum, part, sizeof sum);
    for (int apart = TTN_NYSTROM_PAD / 2; apart > 0; apart /= 2)
        for (int w = 0; w < apart; w++)
            sum[w] += sum[w + apart];
    return sum[0];
}

/* x (M), logits of which m count, becomes exp(x - most), zeros past m. Returns their sum. */
static inline real ttn_nystrom_exponentials(int64_t m, int64_t M, real most, real *x)
{
    real part[TTN_NYSTROM_PAD] = {0};
    for (int64_t i = m; i < M; i++)
        x[i] = -(real)INFINITY;
    for (int64_t i = 0; i < M; i += TTN_NYSTROM_PAD) {
#pragma omp simd
        for (int w = 0; w < TTN_NYSTROM_PAD; w++) {
            const real p = ttn_exp(x[i + w] - most);
            x[i + w] = p;
            part[w] += p;
        }
    }
    return ttn_nystrom_total(part);
}

static inline real ttn_nystrom_dot(int64_t M, const real *x, const real *y)
{
    real part[TTN_NYSTROM_PAD] = {0};
    for (int64_t i = 0; i < M; i += TTN_NYSTROM_PAD) {
#pragma omp simd
        for (int w = 0; w < TTN_NYSTROM_PAD; w++)
            part[w] += x[i + w] * y[i + w];
    }
    return ttn_nystrom_total(part);
}

#endif
