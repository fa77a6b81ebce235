/* The inside of random-feature attention: what its files share. The maths stands on top of attn_favor.c.
 *
 *   attn_favor.c         the op: shapes, cost, cases, and the attention kind
 *   favor_forward.c      its passes
 *   favor_backward.c
 *   favor_tasks.c        tasks, and the memory that they work in (favor_tasks.h)
 *   favor_tiles.c        rows in and out of (N, H D)
 *   favor_features.h     formulas of the maps
 *   favor_families.c     the maps on tiles of rows, forward and backward, one family after the other
 *   favor_compat.c       the maps of published implementations, with their eps
 *   favor_draw.c         random projections
 *   favor_statistics.c   what it says about itself
 *   favor_look.c         attention maps, the estimate of the kernel's error
 *
 * N rows   S sequences   H heads   D head width   m projections   M features (m or 2m; D without a projection)
 * n rows of one sequence, in tiles of equal height; 28 tiles at most are a chunk, the unit of work of a thread
 */
#ifndef TTN_FAVOR_H
#define TTN_FAVOR_H

#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "autograd/ops/favor_features.h"

enum {
    TTN_FAVOR_Q,
    TTN_FAVOR_K,
    TTN_FAVOR_V,
    TTN_FAVOR_W,
};

/* Kept for backward. Of size 0 where a map has no such thing. */
enum {
    TTN_FAVOR_AUX_ROW, /* (N, H): L, or the factor of a row */
    TTN_FAVOR_AUX_S,   /* (S, H, M, D) */
    TTN_FAVOR_AUX_Z,   /* (S, H, M) */
    TTN_FAVOR_AUX_C,   /* (S, H, M): exponential; (S, H, 1): others with a reference */
    TTN_FAVOR_AUX_RMS, /* (N, H): the root mean square that a row was divided by */
    TTN_FAVOR_N_AUX,
};

enum {
    /* f32, M 256, D 64 on Zen 3: 48 to 480 rows are within noise of each other (bare products); two tiles of 144 x 256
     * fit the second cache (512 KiB) beside their operands, and short sequences waste less than with 240. */
    TTN_FAVOR_TILE = 144,
    TTN_FAVOR_TILE_STEP = 24, /* heights of tiles: a multiple of TTN_ROW_ALIGN */
    TTN_FAVOR_CHUNK = 28,     /* tiles: 4,032 rows */
};

/* What of keys and values a query needs. Those of two chunks can be joined: ttn_favor_map.join. */
typedef struct {
    real *S;     /* (M, D): sum of K'^T v */
    real *z;     /* (M): sum of K' */
    real *c;     /* (M) or (1): the reference, K' = exp(… - c); NULL: none */
    real *sum_v; /* (D): sum of v */
    real *most;  /* (1): largest h of the queries that read it, where a map's `finish` wants it */
} ttn_favor_state;

/* What holds for a whole call. */
typedef struct ttn_favor_map ttn_favor_map;
typedef struct {
    const ttn_call *c;
    const ttn_attn_favor_options *a;
    const ttn_favor_map *map;
    int64_t N, H, D, C, m, M;
    int64_t n_c;  /* references of a state: M, 1 or 0 */
    int has_W;    /* else u = x */
    real scale;   /* s */
    real epsilon; /* of features */
    real ratio;   /* of compat features: m^(-1/2); else 1 */
    real kappa;
    int divides; /* out is divided by Dn, which then has a gradient */
} ttn_favor_job;

ttn_favor_job ttn_favor_job_of(const ttn_call *c);

/* The op's passes. */
ttn_status ttn_favor_forward(const ttn_call *c, ttn_error *err);
ttn_status ttn_favor_backward(const ttn_call *c, ttn_error *err);

/* What a compat mode changes in it (favor_compat.c). */
void ttn_favor_compat_job(ttn_favor_job *j);

/* Rows of one head, `height` of them, of which the first `live` belong to the sequence. Pointers that a pass does not
 * use are NULL. */
typedef struct {
    int64_t height, live;
    real *x;     /* (height, D): s q or s k; zeros from `live` on */
    real *v;     /* (height, D): v, or the gradient that comes in */
    real *u;     /* (height, M): projections in the first m columns, then features */
    real *b;     /* (height, M): gradients of features, then of projections in the first m columns */
    real *y;     /* (height, D): a product */
    real *half;  /* (height): h(x) */
    real *shift; /* (height): forward: mu. backward: L, or the factor of a row */
    real *delta; /* (height): g.out, so that -delta is the gradient of log Dn */
    real *own;   /* (height): the row's gradient is W^T du + own x */
} ttn_favor_tile;

/* What a row of queries meets. */
typedef struct {
    real denominator; /* Dn = Q'.z */
    real norm_z;      /* |z| */
    const real *c;    /* the state's reference */
    const real *most; /* the state's */
    int64_t n;        /* keys */
} ttn_favor_sum;

/* A family of maps on tiles. Functions work on live rows and leave zeros in the others. */
struct ttn_favor_map {
    /* The reference of a state takes in the projections of one more tile of keys, and S and z go with it (first: there is
     * nothing in them yet). room: (2 M). NULL: it has none. */
    void (*grow)(const ttn_favor_job *j, const ttn_favor_tile *t, const ttn_favor_state *s, int first, real *room);

    /* The state of a whole sequence and head is complete; t is for queries. NULL: nothing is left to do. */
    void (*finish)(const ttn_favor_job *j, ttn_favor_tile *t, const ttn_favor_state *s, int64_t seq, int64_t head);

    /* u becomes K', as it is summed up in a state, or Q', with mu in `shift`. */
    void (*keys)(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c);
    void (*queries)(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c);

    /* What Q' has to be multiplied with for the weights of out: 1/Dn and the like, 0 in a row that is given up. What is
     * kept of it goes to *ret_kept: L where features are made from it again (exponential), else the factor itself. */
    real (*factor)(const ttn_favor_job *j, const ttn_favor_tile *t, int64_t row, const ttn_favor_sum *sum,
                   real *ret_kept);

    /* Backward: u becomes Q^, Q' with its factor. b holds g S^T and becomes the gradient of projections; NULL: not wanted.
     * Returns the gradient that goes to the largest h of queries, where a map has that in it. */
    double (*query_slopes)(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c, const real *z);

    /* u becomes K', as queries see it. b holds v R^T, the gradient of K' but for rho (M), and becomes the gradient of
     * projections; NULL: not wanted. Returns the gradient that goes to the reference itself, where that has one. */
    double (*key_slopes)(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c, const real *rho);

    /* dq (input Q) or dk (K) of one sequence and head gets what query_slopes or key_slopes returned for its tiles, all
     * together. NULL: nothing. */
    void (*settle)(const ttn_favor_job *j, ttn_favor_tile *t, int input, int64_t seq, int64_t head, double reference);
};

extern const ttn_favor_map ttn_favor_exponential, ttn_favor_trigonometric, ttn_favor_generalized,
    ttn_favor_compat_softmax, ttn_favor_compat_trig;

/* ---- what families share (favor_families.c) ---- */

/* s takes in `more`, whose S and z it may spoil: both to the larger reference, then their sum. room: (2 M). */
void ttn_favor_join(const ttn_favor_job *j, const ttn_favor_state *s, const ttn_favor_state *more, real *room);

/* The same without a reference: their sum. */
void ttn_favor_add(const ttn_favor_job *j, const ttn_favor_state *s, const ttn_favor_state *more);

/* A reference of one number for all features becomes `next`, if that is larger. room: (M). */
void ttn_favor_grow_scalar(const ttn_favor_job *j, const ttn_favor_state *s, int first, real next, real *room);

/* S and z of a state, row j times factor[j]. */
void ttn_favor_rescale(const ttn_favor_job *j, const ttn_favor_state *s, const real *factor);

/* Of the trigonometric map, for google's. A row of projections becomes factor [cos, sin] of them; the gradient b of such a
 * row becomes that of its projections, in the first half. */
void ttn_favor_turn_row(const ttn_favor_job *j, real *u, real factor);
void ttn_favor_unturn_row(const ttn_favor_job *j, const real *u, real *b);
void ttn_favor_trig_grow(const ttn_favor_job *j, const ttn_favor_tile *t, const ttn_favor_state *s, int first,
                         real *room);
void ttn_favor_trig_keys(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c);
void ttn_favor_trig_queries(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c);
double ttn_favor_trig_key_slopes(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c, const real *rho);

/* Sums in an order that no processor changes. */
real ttn_favor_dot(const real *x, const real *y, int64_t n);
real ttn_favor_sum_of(const real *x, int64_t n);
real ttn_favor_largest(const real *x, int64_t n);

/* to (width) += the sum of the live rows of x (height, width), each times its number in `factor` (height); NULL: 1.
 * room: (width). */
void ttn_favor_add_rows(const ttn_favor_tile *t, int64_t width, const real *x, const real *factor, real *room,
                        real *to);

/* Zeros in rows from `live` on of (height, width). */
void ttn_favor_clear_rest(const ttn_favor_tile *t, int64_t width, real *x);

/* ---- rows of a tile (favor_tiles.c) ---- */

/* factor times the live rows of one head, zeros in the others. from: the first row, in (N, H D). to: (height, D). */
void ttn_favor_pack(const ttn_favor_job *j, const ttn_favor_tile *t, const real *from, real factor, real *to);

/* x and half, from the first row as above; and u as well. W: the head's (m, D). */
void ttn_favor_take(const ttn_favor_job *j, const ttn_favor_tile *t, const real *from);
void ttn_favor_project(const ttn_favor_job *j, const ttn_favor_tile *t, const real *from, const real *W);

/* The first row of `tile` of a sequence, in (N, H D); the tile's height and live rows are set. */
const real *ttn_favor_tile_at(const ttn_favor_job *j, ttn_favor_tile *t, const void *x, int64_t seq, int64_t head,
                              int64_t tile);

/* The head's own projection. */
const real *ttn_favor_head_of_W(const ttn_favor_job *j, int64_t head);

/* din = acc din + s (y + own x), and din = acc din + y. to: the first row, in (N, H D). */
void ttn_favor_unpack_slopes(const ttn_favor_job *j, const ttn_favor_tile *t, real acc, real *to);
void ttn_favor_unpack(const ttn_favor_job *j, const ttn_favor_tile *t, real acc, real *to);

/* ---- a sequence and its state (favor_tasks.c) ---- */

/* The state of a sequence and head, as it is kept. */
ttn_favor_state ttn_favor_kept_state(const ttn_favor_job *j, int64_t seq, int64_t head);

/* How a sequence of n rows is cut: tiles, their height, chunks. */
int64_t ttn_favor_tiles(int64_t n);
int64_t ttn_favor_height(int64_t n);
int64_t ttn_favor_chunks(int64_t n);

/* ---- statistics (favor_statistics.c) ---- */

enum {
    TTN_FAVOR_NORM_SUM,
    TTN_FAVOR_NORM_MOST,
    TTN_FAVOR_NORM_ROWS,
    TTN_FAVOR_DENOMINATOR_LEAST,
    TTN_FAVOR_DENOMINATOR_NEGATIVE,
    TTN_FAVOR_ROWS_GIVEN_UP,
    TTN_FAVOR_ERROR_HALVES,
    TTN_FAVOR_ERROR_UNIFORM,
    TTN_FAVOR_ERROR_SIZE,
    TTN_FAVOR_N_STAT,
};

extern const ttn_stat ttn_favor_stats[TTN_FAVOR_N_STAT];

/* Those of no rows. */
void ttn_favor_no_statistics(double *stat);

/* `to` takes in `from`. */
void ttn_favor_fold_statistics(double *to, const double *from);

/* |x|^2 of a tile's rows. */
void ttn_favor_count_norms(const ttn_favor_tile *t, double *stat);

/* ---- favor_look.c ---- */

/* What a sampled row says about the error of the kernel: squares of differences. */
typedef struct {
    double halves;  /* |o_a - o_b|^2 of the outputs from either half of the features */
    double uniform; /* |o - mean v|^2 */
    double size;    /* |o|^2 */
} ttn_favor_sample;

/* Is there a split of the projections into two halves of whole blocks of D? 0: none. */
int64_t ttn_favor_split(const ttn_favor_job *j);

/* Row `row` of a tile of projections (before they become features). room: (M + 3 D). n: keys. */
ttn_favor_sample ttn_favor_sample_row(const ttn_favor_job *j, const ttn_favor_tile *t, const ttn_favor_state *s,
                                      int64_t row, int64_t n, real *room);

/* ttn_map_rows and ttn_map_pool of autograd/attention.h. */
ttn_status ttn_favor_map_rows(const ttn_call *c, int64_t seq, int64_t head, int64_t n_row, const int64_t *row,
                              real *map, ttn_error *err);
ttn_status ttn_favor_map_pool(const ttn_call *c, int64_t seq, int64_t head, int64_t P, double *map, ttn_error *err);
#endif
