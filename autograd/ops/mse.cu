/* mse for CUDA devices: autograd/ops/mse.c says what it computes. How many rows count is known to the host, which has the
 * spans. */
#include "autograd/kernel_cuda.h"

/* Does row t, which is in use, count? */
static __device__ inline bool counts(const ttn_on_device &on, ttn_axis axis, int64_t t)
{
    return axis != TTN_ROWS || on.seq_of_row[t] >= 0;
}

static int64_t rows_that_count(const ttn_call *c)
{
    const ttn_desc *d = &c->sig->in[0];
    if (d->axis != TTN_ROWS || c->feed->used.seqs == 0) return ttn_used(c->feed, d);
    int64_t rows = 0;
    for (int64_t s = 0; s < c->feed->used.seqs; s++)
        rows += c->feed->span[s].n;
    return rows;
}

/* ---- forward ----
 *
 * A block a chunk of rows: its warps take rows in turn, in double; then one block adds the chunks up. */
static __global__ void squares_kernel(ttn_quads q, int64_t used, ttn_axis axis, ttn_on_device on, const real *x,
                                      const real *target, double *part)
{
    TTN_SMEM(double, of_warp, TTN_WARP);
    for (int64_t chunk = blockIdx.x; chunk < ttn_chunks(used); chunk += gridDim.x) {
        int64_t first;
        int64_t end;
        ttn_chunk(used, chunk, &first, &end);
        double sum = 0;
        for (int64_t t = first + threadIdx.x / TTN_WARP; t < end; t += TTN_ROW_WARPS) {
            if (!counts(on, axis, t)) continue;
            for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
                const ttn_quad v = ttn_quad_load(q, x + t * q.width, i);
                const ttn_quad w = ttn_quad_load(q, target + t * q.width, i);
                for (int k = 0; k < 4; k++) {
                    const double d = static_cast<double>(v.at[k] - w.at[k]);
                    sum += d * d;
                }
            }
        }
        sum = ttn_block_sum(sum, of_warp);
        if (threadIdx.x == 0) part[chunk] = sum;
    }
}

/* One block. */
static __global__ void chunks_kernel(int64_t n, const double *part, double count, double *stat, real *y)
{
    TTN_SMEM(double, of_warp, TTN_WARP);
    double sum = 0;
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
        sum += part[k];
    sum = ttn_block_sum(sum, of_warp);
    if (threadIdx.x != 0) return;
    stat[0] = sum;
    stat[1] = count;
    *y = static_cast<real>(sum);
}

extern "C" ttn_status ttn_cuda_mse_forward(const ttn_call *c, ttn_error *err)
{
    const ttn_desc *d = &c->sig->in[0];
    const int64_t used = ttn_used(c->feed, d);
    const int64_t width = ttn_row_width(d);
    const real *x = static_cast<const real *>(c->in[0]);
    const real *target = static_cast<const real *>(c->in[1]);
    double *part = static_cast<double *>(c->work);
    ttn_status status = TTN_LAUNCH(squares_kernel, ttn_cuda_blocks(ttn_chunks(used), 1), TTN_ROW_THREADS, 0, c->on, err,
                                   ttn_quads_of(width, x, target), used, d->axis, c->on_device, x, target, part);
    if (status != TTN_OK) return status;
    return TTN_LAUNCH(chunks_kernel, 1, TTN_ROW_THREADS, 0, c->on, err, ttn_chunks(used), part,
                      static_cast<double>(rows_that_count(c) * width), c->stat, static_cast<real *>(c->out[0]));
}

/* ---- backward: a warp makes a row ---- */

static __global__ void backward_kernel(ttn_quads q, int64_t capacity, int64_t used, ttn_axis axis, ttn_on_device on,
                                       const real *x, const real *target, const real *dy, real *dx, real acc)
{
    const real twice = 2 * *dy;
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        real *to = dx + t * q.width;
        if (t >= used || !counts(on, axis, t)) {
            if (acc == 0) ttn_quad_zero_row(q, to);
            continue;
        }
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
            ttn_quad v = ttn_quad_load(q, x + t * q.width, i);
            const ttn_quad w = ttn_quad_load(q, target + t * q.width, i);
            for (int k = 0; k < 4; k++)
                v.at[k] = twice * (v.at[k] - w.at[k]);
            ttn_quad_give(q, to, i, v, acc);
        }
    }
}

extern "C" ttn_status ttn_cuda_mse_backward(const ttn_call *c, ttn_error *err)
{
    if (!c->din[0]) return TTN_OK;
    const ttn_desc *d = &c->sig->in[0];
    const int64_t capacity = ttn_capacity_of(d);
    const real *x = static_cast<const real *>(c->in[0]);
    const real *target = static_cast<const real *>(c->in[1]);
    real *dx = static_cast<real *>(c->din[0]);
    return TTN_LAUNCH(backward_kernel, ttn_row_blocks(capacity), TTN_ROW_THREADS, 0, c->on, err,
                      ttn_quads_of(ttn_row_width(d), x, target, dx), capacity, ttn_used(c->feed, d), d->axis,
                      c->on_device, x, target, static_cast<const real *>(c->dout[0]), dx, c->acc[0]);
}
