/* What the kernels and the shape rules of ops share.
 *
 * Rows past `used` are zeros in what an op writes (rule 3 of autograd/op.h). So an elementwise kernel computes the used
 * elements, one contiguous range, and calls ttn_zero_rest for what follows them.
 */
#ifndef TTN_KERNEL_H
#define TTN_KERNEL_H

#include "autograd/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements of one row: the product of all dimensions but the first. */
int64_t ttn_row_width(const ttn_desc *d);

TTN_HD int64_t ttn_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
TTN_HD int64_t ttn_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Elements of the used rows. */
static inline int64_t ttn_used_numel(const ttn_feed *f, const ttn_desc *d)
{
    return ttn_used(f, d) * ttn_row_width(d);
}

/* How many rows there is room for: dim[0], and 1 for a scalar. */
static inline int64_t ttn_capacity_of(const ttn_desc *d)
{
    return d->ndim > 0 ? d->dim[0] : 1;
}

/* Zeros from the first row that is not used to the last of the capacity. x: a whole value of this shape. */
void ttn_zero_rest(const ttn_call *c, const ttn_desc *d, void *x);

/* Zeros in every row that belongs to no sequence, past the used ones too. x: a whole value of this shape, on axis N. */
void ttn_zero_no_sequence(const ttn_call *c, const ttn_desc *d, void *x);

/* Element i of a value of ids: u8, i32 or i64. */
TTN_HD int64_t ttn_id_at(ttn_dtype type, const void *x, int64_t i)
{
    switch (type) {
    case TTN_U8:
        return ((const uint8_t *)x)[i];
    case TTN_I32:
        return ((const int32_t *)x)[i];
    default:
        return ((const int64_t *)x)[i];
    }
}

/* ---- shape rules ---- */

/* Input i (called `name` in the message) holds the build's real type. */
TTN_MUST_USE ttn_status ttn_want_real(const ttn_sig *s, int i, const char *op, const char *name, ttn_error *err);

/* … and has as many dimensions as `letters`, "(N, C)" or "(C)", says. */
TTN_MUST_USE ttn_status ttn_want_shape(const ttn_sig *s, int i, const char *op, const char *name, const char *letters,
                                       ttn_error *err);

/* Inputs 0, … n - 1 are values of the rows of a batch, all of input 0's shape, which `letters` says,
 * and are called name[i] in messages: what attention takes. */
TTN_MUST_USE ttn_status ttn_want_rows(const ttn_sig *s, int n, const char *op, const char *const *name,
                                      const char *letters, ttn_error *err);

/* Input 0's width can be divided among so many heads. */
TTN_MUST_USE ttn_status ttn_want_heads(const ttn_sig *s, const char *op, int heads, ttn_error *err);

/* ---- sums over rows ---- */

/* A sum over rows is made in lanes: lane l owns a fixed range of rows, adds them in order, and the lanes are added in
 * order of l. How many depends on the capacity only, so bits do not depend on threads. About 256 rows a lane, so that
 * adding up the lanes costs 1/256 of the work; at most 64 lanes, enough for 64 cores. */
enum { TTN_SUM_LANE_ROWS = 256, TTN_SUM_MOST_LANES = 64 };

TTN_HD int ttn_row_lanes(int64_t capacity)
{
    const int64_t lanes = (capacity + TTN_SUM_LANE_ROWS - 1) / TTN_SUM_LANE_ROWS;
    if (lanes < 1) return 1;
    return lanes < TTN_SUM_MOST_LANES ? (int)lanes : TTN_SUM_MOST_LANES;
}

/* The used rows of lane l: [*ret_first, *ret_end). */
TTN_HD void ttn_row_lane(int64_t capacity, int64_t used, int lane, int64_t *ret_first, int64_t *ret_end)
{
    const int lanes = ttn_row_lanes(capacity);
    const int64_t first = capacity * lane / lanes;
    const int64_t end = capacity * (lane + 1) / lanes;
    *ret_first = first < used ? first : used;
    *ret_end = end < used ? end : used;
}

/* ---- losses: sums over the rows that count ----
 *
 * Rows that count: those of a sequence. Used rows between the sequences hold anything finite and must change nothing. A
 * run without sequences is plain data, and every used row counts; as every used one does on any other axis than N.
 *
 * Summed in double, in chunks of rows and a binary tree over the chunks that depend on nothing but the rows' places. */

/* Bytes of marks for this value's rows; 0 when all used rows count whatever the run. */
static inline size_t ttn_mark_bytes(const ttn_desc *d)
{
    return d->axis == TTN_ROWS ? (size_t)ttn_capacity_of(d) : 0;
}

/* mark[t] = 1 for rows that count, else 0; all of the capacity. Returns mark, or NULL, with nothing written, when all used
 * rows count. */
const unsigned char *ttn_mark_rows(const ttn_call *c, const ttn_desc *d, unsigned char *mark);

/* Rows: enough to be worth a task, few enough that 16 cores share 4,096 rows. */
enum { TTN_CHUNK_ROWS = 256 };

/* How many chunks so many rows make. */
TTN_HD int64_t ttn_chunks(int64_t rows)
{
    return (rows + TTN_CHUNK_ROWS - 1) / TTN_CHUNK_ROWS;
}

/* The used rows of chunk k: [*ret_first, *ret_end). */
TTN_HD void ttn_chunk(int64_t used, int64_t k, int64_t *ret_first, int64_t *ret_end)
{
    const int64_t first = k * TTN_CHUNK_ROWS;
    const int64_t end = first + TTN_CHUNK_ROWS;
    *ret_first = first < used ? first : used;
    *ret_end = end < used ? end : used;
}

/* to[i] = sum over k of part[k n + i], i < n: the chunks' sums, which are lost. */
void ttn_add_chunks(int64_t n_chunk, int n, double *part, double *to);

#ifdef __cplusplus
}
#endif
#endif
