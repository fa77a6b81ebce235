/* What the host's side of .cu files asks for: rows of zeros, products over rows, sums over rows; by the rules of
 * autograd/kernel.h.
 *
 * Products over rows are one call of the
 * device's gemm over the whole capacity, however little of it a batch uses: cuBLAS chooses a kernel by the shape of the
 * call, so a sequence's rows keep their bits in another batch. Rows past the used ones are zeros on both sides of a sum.
 */
#ifndef TTN_ROWS_CUDA_H
#define TTN_ROWS_CUDA_H

#include "core/cuda.h"
#include "autograd/kernel.h"

/* ---- rows ---- */

/* ttn_zero_rest on the device. */
TTN_MUST_USE ttn_status ttn_cuda_zero_rest(const ttn_call *c, const ttn_desc *d, void *x, ttn_error *err);

/* Zeros in the rows of no sequence, past the used ones too; x (N, width). In a run without sequences all rows are. */
TTN_MUST_USE ttn_status ttn_cuda_zero_others(const ttn_call *c, const ttn_desc *d, real *x, ttn_error *err);

/* to[r] = row for r < used, zeros from there up to `rows`; to (rows, cols). */
TTN_MUST_USE ttn_status ttn_cuda_repeat_row(const ttn_stream *on, int64_t rows, int64_t used, int64_t cols,
                                            const real *row, real *to, ttn_error *err);

/* ---- one product of the build's real type: C (m, n) = op(A) op(B) + beta C ---- */

static inline TTN_MUST_USE ttn_status ttn_cuda_gemm(const ttn_stream *on, ttn_trans ta, ttn_trans tb, int64_t m,
                                                    int64_t n, int64_t k, ttn_mat_in a, ttn_mat_in b, double beta,
                                                    ttn_mat_out c, ttn_error *err)
{
    return on->device->ops->gemm(on, ta, tb, m, n, k, 1, a, b, beta, c, err);
}

/* ---- sums over rows: gradients of biases ----
 *
 * In double, in lanes of rows that depend on `rows` alone; each lane in a fixed order, and the lanes added in theirs.
 *
 *     ttn_cuda_sums s = ttn_cuda_sums_begin(rows, cols, work);
 *     ttn_cuda_sums_add(&s, on, used, x, ld, err)             as often as there are tiles of `rows` rows, in order
 *     ttn_cuda_sums_end(&s, on, acc, sum, err)                sum (cols) = acc sum + all of them
 */
typedef struct {
    int64_t rows, cols;
    double *part; /* (lanes, cols) */
    int lanes;
    int fresh; /* nothing was added: part holds anything */
} ttn_cuda_sums;

size_t ttn_cuda_sums_work(int64_t rows, int64_t cols);
ttn_cuda_sums ttn_cuda_sums_begin(int64_t rows, int64_t cols, void *work);
TTN_MUST_USE ttn_status ttn_cuda_sums_add(ttn_cuda_sums *s, const ttn_stream *on, int64_t used, const real *x,
                                          int64_t ld, ttn_error *err);
TTN_MUST_USE ttn_status ttn_cuda_sums_end(const ttn_cuda_sums *s, const ttn_stream *on, real acc, real *sum,
                                          ttn_error *err);

#endif
