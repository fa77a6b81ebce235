/* rmsnorm for CUDA devices: autograd/ops/rmsnorm.c says what it computes, rmsnorm.h holds the formulas. A warp makes a
 * row. */
#include "autograd/ops/rmsnorm.h"
#include "autograd/rownorm_cuda.h"

enum { GAIN = 1 };

/* Quad i of the gain; ones where there is none. */
static __device__ inline ttn_quad gain_at(const ttn_quads &q, const real *g, int64_t i)
{
    if (g) return ttn_quad_load(q, g, i);
    return {{1, 1, 1, 1}};
}

/* ---- forward ---- */

static __global__ void forward_kernel(ttn_quads q, int64_t capacity, int64_t used, real eps, const real *x,
                                      const real *g, real *y, real *rstd)
{
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        const real *row = x + t * q.width;
        real *to = y + t * q.width; /* may be x */
        real r = 0;
        if (t < used) {
            real squares = 0;
            for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
                const ttn_quad v = ttn_quad_load(q, row, i);
                for (int k = 0; k < 4; k++)
                    squares += v.at[k] * v.at[k];
            }
            r = ttn_rmsnorm_rstd(ttn_warp_sum(squares), q.width, eps);
            for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
                ttn_quad v = ttn_quad_load(q, row, i);
                const ttn_quad gain = gain_at(q, g, i);
                for (int k = 0; k < 4; k++)
                    v.at[k] = gain.at[k] * (v.at[k] * r);
                ttn_quad_store(q, to, i, v);
            }
        } else {
            ttn_quad_zero_row(q, to);
        }
        if (ttn_lane() == 0) rstd[t] = r;
    }
}

extern "C" ttn_status ttn_cuda_rmsnorm_forward(const ttn_call *c, ttn_error *err)
{
    const int64_t capacity = c->sig->in[0].dim[0];
    const real eps = static_cast<real>(static_cast<const ttn_rownorm_attributes *>(c->sig->attr)->eps);
    const real *x = static_cast<const real *>(c->in[0]);
    const real *g = static_cast<const real *>(c->in[GAIN]);
    real *y = static_cast<real *>(c->out[0]);
    return TTN_LAUNCH(forward_kernel, ttn_row_blocks(capacity), TTN_ROW_THREADS, 0, c->on, err,
                      ttn_quads_of(c->sig->in[0].dim[1], x, g, y), capacity, ttn_used(c->feed, &c->sig->in[0]), eps, x,
                      g, y, static_cast<real *>(c->aux[0]));
}

/* ---- backward ---- */

static __global__ void dx_kernel(ttn_quads q, int64_t capacity, int64_t used, const real *x, const real *g,
                                 const real *rstd, const real *dy, real *dx, real acc)
{
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        const real *row = x + t * q.width;
        const real *from = dy + t * q.width;
        real *to = dx + t * q.width; /* may be dy */
        if (t >= used) {
            if (acc == 0) ttn_quad_zero_row(q, to);
            continue;
        }
        const real r = rstd[t];
        real hx = 0; /* sum of h x, h = g dy */
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
            const ttn_quad v = ttn_quad_load(q, row, i);
            const ttn_quad gain = gain_at(q, g, i);
            const ttn_quad dv = ttn_quad_load(q, from, i);
            for (int k = 0; k < 4; k++)
                hx += gain.at[k] * dv.at[k] * v.at[k];
        }
        const real mean_hn = ttn_warp_sum(hx) * r / static_cast<real>(q.width);
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
            const ttn_quad v = ttn_quad_load(q, row, i);
            const ttn_quad gain = gain_at(q, g, i);
            ttn_quad dv = ttn_quad_load(q, from, i);
            for (int k = 0; k < 4; k++)
                dv.at[k] = ttn_rmsnorm_grad(gain.at[k] * dv.at[k], v.at[k], r, mean_hn);
            ttn_quad_give(q, to, i, dv, acc);
        }
    }
}

extern "C" ttn_status ttn_cuda_rmsnorm_backward(const ttn_call *c, ttn_error *err)
{
    const int64_t capacity = c->sig->in[0].dim[0];
    const real *x = static_cast<const real *>(c->in[0]);
    const real *g = static_cast<const real *>(c->in[GAIN]);
    const real *rstd = static_cast<const real *>(c->aux[0]);
    const real *dy = static_cast<const real *>(c->dout[0]);
    real *dx = static_cast<real *>(c->din[0]);
    ttn_status status = ttn_cuda_rownorm_params(c, NULL, NULL, rstd, err); /* before dx, which may be dy */
    if (status != TTN_OK || !dx) return status;
    return TTN_LAUNCH(dx_kernel, ttn_row_blocks(capacity), TTN_ROW_THREADS, 0, c->on, err,
                      ttn_quads_of(c->sig->in[0].dim[1], x, g, dy, dx), capacity, ttn_used(c->feed, &c->sig->in[0]), x,
                      g, rstd, dy, dx, c->acc[0]);
}
