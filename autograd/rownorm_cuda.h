/* What the CUDA kernels of layernorm and rmsnorm share: the gradients of their parameters, which are sums over rows.
 * Included by their .cu files only.
 *
 * The lanes are the CPU's (ttn_row_lanes). A block owns TTN_WARP columns of one lane: warp w adds the lane's rows w, w + 8,
 * … in double, the warps' sums are added in their order, and then the lanes in theirs: no result depends on who came
 * first. */
#ifndef TTN_ROWNORM_CUDA_H
#define TTN_ROWNORM_CUDA_H

#include "autograd/kernel_cuda.h"
#include "autograd/ops/layernorm.h"
#include "autograd/rownorm.h"

struct ttn_rownorm_params {
    int64_t C, capacity, used;
    const real *x;             /* this and the next three: NULL where the gain's gradient is not wanted */
    const real *mean, *offset; /* (N); NULL: zeros, rmsnorm */
    const real *rstd;          /* (N) */
    const real *dy;
    double *gain, *bias; /* (lanes, C); NULL: not wanted */
};

/* The block's columns of the sums of one lane, from what its warps have; all threads call it. */
static __device__ inline void ttn_rownorm_put(int64_t C, int lane_of_rows, int64_t column, double sum, double *part,
                                              double *to)
{
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < TTN_WARP && column < C) {
        double s = part[threadIdx.x];
        for (int w = 1; w < TTN_ROW_WARPS; w++)
            s += part[w * TTN_WARP + threadIdx.x];
        to[lane_of_rows * C + column] = s;
    }
    __syncthreads(); /* part is free again */
}

/* Grid: (columns / TTN_WARP, lanes). */
static __global__ void ttn_rownorm_params_kernel(ttn_rownorm_params p)
{
    TTN_SMEM(double, part, TTN_ROW_THREADS);
    const int64_t column = static_cast<int64_t>(blockIdx.x) * TTN_WARP + ttn_lane();
    const int lane_of_rows = static_cast<int>(blockIdx.y);
    int64_t first;
    int64_t end;
    ttn_row_lane(p.capacity, p.used, lane_of_rows, &first, &end);
    double gain = 0;
    double bias = 0;
    if (column < p.C) {
#pragma unroll 4
        for (int64_t t = first + threadIdx.x / TTN_WARP; t < end; t += TTN_ROW_WARPS) {
            const real dy = p.dy[t * p.C + column];
            bias += static_cast<double>(dy);
            if (!p.gain) continue;
            const real x = p.x[t * p.C + column];
            const real n = p.mean ? ttn_layernorm_normal(x, p.mean[t], p.offset[t], p.rstd[t]) : x * p.rstd[t];
            gain += static_cast<double>(dy * n);
        }
    }
    if (p.gain) ttn_rownorm_put(p.C, lane_of_rows, column, gain, part, p.gain);
    if (p.bias) ttn_rownorm_put(p.C, lane_of_rows, column, bias, part, p.bias);
}

/* to = acc to + the lanes, in their order */
static __global__ void ttn_rownorm_lanes_kernel(int lanes, int64_t C, const double *part, real *to, real acc)
{
    for (int64_t i = ttn_cuda_first(); i < C; i += ttn_cuda_stride()) {
        double s = 0;
        for (int l = 0; l < lanes; l++)
            s += part[l * C + i];
        ttn_give(&to[i], static_cast<real>(s), acc);
    }
}

/* din[1], the gain's, and din[2], the bias's, where they are wanted: c->work begins with the lanes of both. mean and offset
 * NULL: rmsnorm. */
static inline ttn_status ttn_cuda_rownorm_params(const ttn_call *c, const real *mean, const real *offset,
                                                 const real *rstd, ttn_error *err)
{
    enum { GAIN = 1, BIAS = 2 };
    if (!c->din[GAIN] && !c->din[BIAS]) return TTN_OK;
    const ttn_desc *d = &c->sig->in[0];
    const int lanes = ttn_row_lanes(d->dim[0]);
    const int64_t C = d->dim[1];
    double *work = static_cast<double *>(c->work);
    ttn_rownorm_params p = {};
    p.C = C;
    p.capacity = d->dim[0];
    p.used = ttn_used(c->feed, d);
    p.x = static_cast<const real *>(c->in[0]);
    p.mean = mean;
    p.offset = offset;
    p.rstd = rstd;
    p.dy = static_cast<const real *>(c->dout[0]);
    p.gain = c->din[GAIN] ? work : NULL;
    p.bias = c->din[BIAS] ? work + lanes * C : NULL;
    const dim3 grid(static_cast<unsigned>((C + TTN_WARP - 1) / TTN_WARP), static_cast<unsigned>(lanes));
    ttn_status status = TTN_LAUNCH(ttn_rownorm_params_kernel, grid, TTN_ROW_THREADS, 0, c->on, err, p);
    const double *part[] = {NULL, p.gain, p.bias};
    for (int i = GAIN; i <= BIAS && status == TTN_OK; i++)
        if (part[i])
            status = TTN_LAUNCH(ttn_rownorm_lanes_kernel, ttn_cuda_blocks(C, TTN_ROW_THREADS), TTN_ROW_THREADS, 0,
                                c->on, err, lanes, C, part[i], static_cast<real *>(c->din[i]), c->acc[i]);
    return status;
}

#endif
