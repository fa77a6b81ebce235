/* Softmax attention by tiles: the kernel of exact attention, and of those sequences that a kind which approximates it finds
 * too short to approximate. The maths stands on top of autograd/ops/attn_exact.c, how it is done on top of attn_tiles.c.
 *
 * N rows   S sequences   H heads   D head width   n rows of one sequence
 */
#ifndef TTN_ATTN_TILES_H
#define TTN_ATTN_TILES_H

#include "autograd/op.h"
#include "autograd/ops/attn_exact.h"

/* What it works on: inputs 0, 1 and 2 of an op are q, k and v (N, H D), output 0 is out; c->din[0 … 2] are wanted or NULL. */
typedef struct {
    const ttn_call *c;
    int64_t heads;
    int causal;
    int64_t longest; /* sequences with more rows than this are left alone, in every output */
    ttn_attn_exact_rule rule;
    const real *add; /* forward: (N, H D), added to out, which may be it; NULL: nothing */
    real *lse;       /* (N, H): L, written forward, read backward */
    int remakes_out; /* backward: out is not there to be read, and is made again for dq and dk, with the same bits */
} ttn_attn_tiles;

/* Bytes at c->work, and for each thread at ttn_thread_work: at least as many must be declared by an op whose signature has
 * these inputs and this capacity. */
size_t ttn_attn_tiles_work(const ttn_sig *s, int64_t heads, int64_t longest, ttn_pass pass);
size_t ttn_attn_tiles_work_thread(const ttn_sig *s, int64_t heads, int remakes_out, ttn_pass pass);

/* Every row of the sequences that are not left alone, and nothing else: other rows' zeros are the op's
 * (ttn_zero_no_sequence). In parallel over c->on->n_thread. */
void ttn_attn_tiles_forward(const ttn_attn_tiles *a);
void ttn_attn_tiles_backward(const ttn_attn_tiles *a);

/* For map functions (autograd/attention.h), arguments checked already. The softmax's rows, and the mean of its blocks with
 * L from a->lse. TTN_ENOMEM. */
void ttn_attn_tiles_map_rows(const ttn_attn_tiles *a, int64_t seq, int64_t head, int64_t n_row, const int64_t *row,
                             real *map);
TTN_MUST_USE ttn_status ttn_attn_tiles_map_pool(const ttn_attn_tiles *a, int64_t seq, int64_t head, int64_t P,
                                                double *map, ttn_error *err);

/* ---- tiles of a sequence: equal heights that depend on its length alone ---- */

enum {
    /* Backward's two tiles of 192 x 192 in f32 fit the second cache (512 KiB) beside their operands. Bare products of
     * forward, backward on Zen 3, share of one plain sgemm: 96: 0.81, 0.83; 144: 0.90, 0.89; 192: 0.86, 0.88; 240: 0.87,
     * 0.88; 480: 0.88, 0.86. Larger tiles waste more above the diagonal and behind the end. */
    TTN_ATTN_MOST_TILE = 192,
    TTN_ATTN_TILE_STEP = 24, /* heights are multiples of it: of TTN_ROW_ALIGN, and of a row's partial sums */
};

/* How many tiles a sequence of n rows has, and how high they are. */
static inline int64_t ttn_attn_tiles_of(int64_t n)
{
    return (n + TTN_ATTN_MOST_TILE - 1) / TTN_ATTN_MOST_TILE;
}
static inline int64_t ttn_attn_height_of(int64_t n)
{
    const int64_t T = ttn_attn_tiles_of(n);
    if (T == 0) return 0;
    const int64_t rows = (n + T - 1) / T;
    return (rows + TTN_ATTN_TILE_STEP - 1) / TTN_ATTN_TILE_STEP * TTN_ATTN_TILE_STEP;
}

#endif
