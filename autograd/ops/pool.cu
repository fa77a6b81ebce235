/* pool for CUDA devices: autograd/ops/pool.c says what it computes. */
#include "autograd/kernel_cuda.h"
#include "autograd/ops/pool.h"

static const ttn_pool_attributes *attributes_of(const ttn_call *c)
{
    return static_cast<const ttn_pool_attributes *>(c->sig->attr);
}

/* ---- forward ----
 *
 * A block makes TTN_WARP columns of one sequence: warp w adds the kept rows w, w + 32, … in double, and then the warps' sums
 * are added in their order. The grid is (S, columns / TTN_WARP). */
enum { ROWS_AT_ONCE = 32, THREADS = ROWS_AT_ONCE * TTN_WARP };

static __global__ void forward_kernel(int64_t C, int64_t seqs, ttn_pool_attributes a, ttn_on_device on, const real *x,
                                      real *y)
{
    TTN_SMEM(double, part, THREADS);
    const int64_t s = blockIdx.x;
    const int64_t column = static_cast<int64_t>(blockIdx.y) * TTN_WARP + ttn_lane();
    ttn_span rows = {0, 0};
    if (s < seqs) rows = ttn_pool_kept(&a, on.span[s]);
    double sum = 0;
    if (column < C) {
#pragma unroll 4
        for (int64_t t = threadIdx.x / TTN_WARP; t < rows.n; t += ROWS_AT_ONCE)
            sum += static_cast<double>(x[(rows.first + t) * C + column]);
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= TTN_WARP || column >= C) return;
    for (int w = 1; w < ROWS_AT_ONCE; w++)
        sum += part[w * TTN_WARP + threadIdx.x];
    y[s * C + column] = rows.n > 0 ? static_cast<real>(sum / static_cast<double>(rows.n)) : 0;
}

extern "C" ttn_status ttn_cuda_pool_forward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_pool_check(c, err);
    const int64_t C = c->sig->in[0].dim[1];
    if (status != TTN_OK || C == 0) return status;
    const dim3 grid(static_cast<unsigned>(c->sig->out[0].dim[0]), static_cast<unsigned>((C + TTN_WARP - 1) / TTN_WARP));
    return TTN_LAUNCH(forward_kernel, grid, THREADS, 0, c->on, err, C, c->feed->used.seqs, *attributes_of(c),
                      c->on_device, static_cast<const real *>(c->in[0]), static_cast<real *>(c->out[0]));
}

/* The sums are in shared memory. */
extern "C" size_t ttn_cuda_pool_work(const ttn_sig *s, ttn_pass pass)
{
    (void)s;
    (void)pass;
    return 0;
}

/* ---- backward: a warp makes a row ---- */

static __global__ void backward_kernel(ttn_quads q, int64_t capacity, int64_t seqs, ttn_pool_attributes a,
                                       ttn_on_device on, const real *dy, real *dx, real acc)
{
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        const int64_t s = seqs > 0 ? on.seq_of_row[t] : -1;
        ttn_span rows = {0, 0};
        if (s >= 0) rows = ttn_pool_kept(&a, on.span[s]);
        real *to = dx + t * q.width;
        if (t < rows.first || t >= rows.first + rows.n) {
            if (acc == 0) ttn_quad_zero_row(q, to);
            continue;
        }
        const real part = 1 / static_cast<real>(rows.n);
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
            ttn_quad v = ttn_quad_load(q, dy + s * q.width, i);
            for (int k = 0; k < 4; k++)
                v.at[k] *= part;
            ttn_quad_give(q, to, i, v, acc);
        }
    }
}

extern "C" ttn_status ttn_cuda_pool_backward(const ttn_call *c, ttn_error *err)
{
    if (!c->din[0]) return TTN_OK;
    const int64_t capacity = c->sig->in[0].dim[0];
    const real *dy = static_cast<const real *>(c->dout[0]);
    real *dx = static_cast<real *>(c->din[0]);
    return TTN_LAUNCH(backward_kernel, ttn_row_blocks(capacity), TTN_ROW_THREADS, 0, c->on, err,
                      ttn_quads_of(c->sig->in[0].dim[1], dy, dx), capacity, c->feed->used.seqs, *attributes_of(c),
                      c->on_device, dy, dx, c->acc[0]);
}
