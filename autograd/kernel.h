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

/* ---- shape rules ---- */

/* Input i (called `name` in the message) holds the build's real type. */
TTN_MUST_USE ttn_status ttn_want_real(const ttn_sig *s, int i, const char *op, const char *name, ttn_error *err);

/* … and has as many dimensions as `letters`, "(N, C)" or "(C)", says. */
TTN_MUST_USE ttn_status ttn_want_shape(const ttn_sig *s, int i, const char *op, const char *name, const char *letters,
                                       ttn_error *err);

/* ---- sums over rows ---- */

/* A sum over rows is made in lanes: lane l owns a fixed range of rows, adds them in order, and the lanes are added in
 * order of l. How many depends on the capacity only, so bits do not depend on threads. About 256 rows a lane, so that
 * adding up the lanes costs 1/256 of the work; at most 64 lanes, enough for 64 cores. */
int ttn_row_lanes(int64_t capacity);

/* The used rows of lane l: [*ret_first, *ret_end). */
void ttn_row_lane(int64_t capacity, int64_t used, int lane, int64_t *ret_first, int64_t *ret_end);

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

/* How many chunks so many rows make. */
int64_t ttn_chunks(int64_t rows);

/* The used rows of chunk k: [*ret_first, *ret_end). */
void ttn_chunk(int64_t used, int64_t k, int64_t *ret_first, int64_t *ret_end);

/* to[i] = sum over k of part[k n + i], i < n: the chunks' sums, which are lost. */
void ttn_add_chunks(int64_t n_chunk, int n, double *part, double *to);

#ifdef __cplusplus
}
#endif
#endif
