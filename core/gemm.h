/* Products with many rows, spread over threads: the bits do not depend on how many.
 *
 * What OpenBLAS 0.3.21 does to the bits of one row of C = A op(B):
 *   Haswell, Zen    f32: they depend on the row's place in the call, with period 12 in calls of a multiple of 12 rows
 *                   (with none at 512); f64: not, in such calls
 *   SkylakeX, Cooperlake   not on the place, but on the size of the call: below 10^6 multiplications another kernel runs
 * and never on the numbers in other rows. So every call has a whole tile of TTN_ROW_TILE rows, and sequences start at
 * multiples of TTN_ROW_ALIGN: then a sequence's rows have the same bits wherever it stands and whatever stands beside it.
 *
 * "rows" is the capacity: a multiple of TTN_ROW_TILE for rows and picks, so there is no short tile. Matrices of another
 * height (a row for each sequence) may have any number of rows; then the last tile is short and the promise is off for
 * its rows. "used" rows hold a batch; what stands past them in A, dY or X is finite, and zero where a sum runs over it.
 */
#ifndef TTN_GEMM_H
#define TTN_GEMM_H

#include <stddef.h>
#include <stdint.h>
#include "core/blas.h"

enum {
    TTN_ROW_TILE = 480, /* rows of one call: 90 to 99 % of one plain sgemm's rate at 512 x 512 and 2048 x 512 (Zen 3) */
    TTN_ROW_ALIGN = 12, /* the longest row period, and a divisor of the tile */
    TTN_SUM_TILE = 240, /* rows of one call that sums over them and may be zero-padded (ttn_gemm) */
    TTN_MAX_LANES = 64, /* partial sums of a sum over rows: enough tasks for 64 cores */
    TTN_LANE_ROWS = 2048 /* no lane of a weight gradient is shorter */
};

/* C (rows, n) = A op(B) + beta C for the tiles that hold used rows; beta is 0 or 1. Rows of tiles wholly past `used` are
 * set to 0 (beta 0) or left alone (beta 1). op(B) is (k, n): a weight (O, I) is TTN_T forward, TTN_N backward. */
void ttn_gemm_rows(int n_thread, ttn_trans tb, int64_t rows, int64_t used, int64_t n, int64_t k, ttn_mat_in a,
                   ttn_mat_in b, double beta, ttn_mat_out c);

/* dW (o, i) = acc dW + dY^T X, dY (rows, o), X (rows, i), in the build's real type; acc is 0 (dW is not read) or 1.
 * Rows are summed in lanes, each owning a fixed range of whole tiles and adding them in order, then in a binary tree over
 * the lanes. Lanes and tree depend on rows, o and i alone: neither on n_thread, nor (beyond the zeros there) on `used`.
 * lanes = clamp(64 / number of 512 x 512 tiles of outputs, 1, ceil(rows / 2,048)), so that lanes times tiles is near 64
 * and work, ttn_gemm_wgrad_work bytes, at most max(64 MiB, one weight) in f32. */
int64_t ttn_gemm_wgrad_lanes(int64_t rows, int64_t o, int64_t i);
size_t ttn_gemm_wgrad_work(int64_t rows, int64_t o, int64_t i);
void ttn_gemm_wgrad(int n_thread, int64_t rows, int64_t used, int64_t o, int64_t i, ttn_mat_in dy, ttn_mat_in x,
                    double acc, ttn_mat_out dw, void *work);

/* The same sum, the same bits, for a caller that makes dY or X a tile of TTN_ROW_TILE rows at a time and has neither whole:
 *
 *     ttn_wgrad w = ttn_wgrad_begin(rows, used, o, i, work);
 *     every tile that holds used rows, those of one lane in order (ttn_wgrad_next):
 *         every piece of the weight, in any order, on any thread:
 *             ttn_wgrad_add(&w, tile, piece, dy, x);
 *     ttn_wgrad_end(&w, n_thread, acc, dw);
 *
 * Pieces of one tile may be added at the same time, and tiles of different lanes. */
typedef struct {
    int64_t rows, used, o, i;
    int64_t lanes, live;      /* lanes in all; those that hold used rows, the first ones */
    int64_t piece_o, piece_i; /* outputs of a piece */
    int64_t n_piece;          /* that cover the weight */
    real *part;               /* work: (lanes, o, i) */
} ttn_wgrad;

ttn_wgrad ttn_wgrad_begin(int64_t rows, int64_t used, int64_t o, int64_t i, void *work);

/* dy (the tile's rows, o) and x (the tile's rows, i) begin with the tile. On the calling thread. */
void ttn_wgrad_add(const ttn_wgrad *w, int64_t tile, int64_t piece, ttn_mat_in dy, ttn_mat_in x);
void ttn_wgrad_end(const ttn_wgrad *w, int n_thread, double acc, ttn_mat_out dw);

/* The lane that adds this tile. It depends on rows and the size o i of the weight only, not on which side is o. */
int64_t ttn_wgrad_lane(const ttn_wgrad *w, int64_t tile);

/* The tiles that hold used rows, one of each lane in turn; -1 after the last, and then always. Begin with {0, 0}. */
typedef struct {
    int64_t round, lane;
} ttn_wgrad_place;
int64_t ttn_wgrad_next(const ttn_wgrad *w, ttn_wgrad_place *at);

/* sum (cols) = acc sum + the sum over the used rows of X (rows, cols), in the build's real type: bias gradients. Added
 * row by row in double (a loop over columns was measured 12 times slower), in lanes that depend on rows alone.
 * work: ttn_sum_rows_work bytes, at most 64 cols doubles. */
size_t ttn_sum_rows_work(int64_t rows, int64_t cols);
void ttn_sum_rows(int n_thread, int64_t rows, int64_t used, int64_t cols, ttn_mat_in x, double acc, real *sum,
                  void *work);

#endif
