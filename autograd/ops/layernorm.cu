/* layernorm for CUDA devices: autograd/ops/layernorm.c says what it computes, layernorm.h holds the formulas.
 *
 * A warp makes a row, which it reads two or three times: once from memory, then from the first cache. */
#include "autograd/ops/layernorm.h"
#include "autograd/rownorm_cuda.h"

enum { GAIN = 1, BIAS = 2 };

/* ---- sums over a row, in every lane ---- */

static __device__ inline real row_sum(const ttn_quads &q, const real *x)
{
    real s = 0;
    for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
        const ttn_quad v = ttn_quad_load(q, x, i);
        s += (v.at[0] + v.at[1]) + (v.at[2] + v.at[3]);
    }
    return ttn_warp_sum(s);
}

/* Of d = x - m, and of d^2. */
static __device__ inline void row_deviations(const ttn_quads &q, const real *x, real m, real *ret_d, real *ret_dd)
{
    real s = 0;
    real ss = 0;
    for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
        const ttn_quad v = ttn_quad_load(q, x, i);
        for (int k = 0; k < 4; k++) {
            const real d = 4 * i + k < q.width ? v.at[k] - m : 0;
            s += d;
            ss += d * d;
        }
    }
    *ret_d = ttn_warp_sum(s);
    *ret_dd = ttn_warp_sum(ss);
}

/* ---- forward ---- */

static __global__ void forward_kernel(ttn_quads q, int64_t capacity, int64_t used, real eps, const real *x,
                                      const real *g, const real *b, real *y, real *mean, real *rstd)
{
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        const real *row = x + t * q.width;
        real *to = y + t * q.width; /* may be x */
        real m = 0;
        real r = 0;
        if (t < used) {
            real d;
            real dd;
            real offset;
            m = row_sum(q, row) / static_cast<real>(q.width);
            row_deviations(q, row, m, &d, &dd);
            r = ttn_layernorm_rstd(d, dd, q.width, eps, &offset);
            for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
                ttn_quad v = ttn_quad_load(q, row, i);
                const ttn_quad gain = ttn_quad_load(q, g, i);
                for (int k = 0; k < 4; k++)
                    v.at[k] = gain.at[k] * ttn_layernorm_normal(v.at[k], m, offset, r);
                if (b) {
                    const ttn_quad bias = ttn_quad_load(q, b, i);
                    for (int k = 0; k < 4; k++)
                        v.at[k] += bias.at[k];
                }
                ttn_quad_store(q, to, i, v);
            }
        } else {
            ttn_quad_zero_row(q, to);
        }
        if (ttn_lane() == 0) {
            mean[t] = m;
            rstd[t] = r;
        }
    }
}

extern "C" ttn_status ttn_cuda_layernorm_forward(const ttn_call *c, ttn_error *err)
{
    const int64_t capacity = c->sig->in[0].dim[0];
    const real eps = static_cast<real>(static_cast<const ttn_rownorm_attributes *>(c->sig->attr)->eps);
    const real *x = static_cast<const real *>(c->in[0]);
    const real *g = static_cast<const real *>(c->in[GAIN]);
    const real *b = static_cast<const real *>(c->in[BIAS]);
    real *y = static_cast<real *>(c->out[0]);
    const ttn_quads q = ttn_quads_of(c->sig->in[0].dim[1], x, g, b, y);
    return TTN_LAUNCH(forward_kernel, ttn_row_blocks(capacity), TTN_ROW_THREADS, 0, c->on, err, q, capacity,
                      ttn_used(c->feed, &c->sig->in[0]), eps, x, g, b, y, static_cast<real *>(c->aux[0]),
                      static_cast<real *>(c->aux[1]));
}

/* ---- backward ---- */

/* What rounding the mean has lost, row by row: the parameters' gradients need it and are made before dx, which may be
 * written over the dy that they read. */
static __global__ void offset_kernel(ttn_quads q, int64_t used, const real *x, const real *mean, real *offset)
{
    for (int64_t t = ttn_warp_first(); t < used; t += ttn_warp_stride()) {
        real d;
        real dd;
        row_deviations(q, x + t * q.width, mean[t], &d, &dd);
        if (ttn_lane() == 0) offset[t] = d / static_cast<real>(q.width);
    }
}

static __global__ void dx_kernel(ttn_quads q, int64_t capacity, int64_t used, const real *x, const real *g,
                                 const real *mean, const real *rstd, const real *dy, real *dx, real acc)
{
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        const real *row = x + t * q.width;
        const real *from = dy + t * q.width;
        real *to = dx + t * q.width; /* may be dy */
        if (t >= used) {
            if (acc == 0) ttn_quad_zero_row(q, to);
            continue;
        }
        const real m = mean[t];
        const real r = rstd[t];
        real d = 0; /* sums of x - m, of h = g dy, and of h (x - m) */
        real h = 0;
        real hd = 0;
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
            const ttn_quad v = ttn_quad_load(q, row, i);
            const ttn_quad gain = ttn_quad_load(q, g, i);
            const ttn_quad dv = ttn_quad_load(q, from, i);
            for (int k = 0; k < 4; k++) {
                const real one_d = 4 * i + k < q.width ? v.at[k] - m : 0;
                const real one_h = gain.at[k] * dv.at[k];
                d += one_d;
                h += one_h;
                hd += one_h * one_d;
            }
        }
        d = ttn_warp_sum(d);
        h = ttn_warp_sum(h);
        hd = ttn_warp_sum(hd);
        const real offset = d / static_cast<real>(q.width);
        const real mean_h = h / static_cast<real>(q.width);
        const real mean_hn = (hd - offset * h) * r / static_cast<real>(q.width);
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
            const ttn_quad v = ttn_quad_load(q, row, i);
            const ttn_quad gain = ttn_quad_load(q, g, i);
            ttn_quad dv = ttn_quad_load(q, from, i);
            for (int k = 0; k < 4; k++) {
                const real n = ttn_layernorm_normal(v.at[k], m, offset, r);
                dv.at[k] = ttn_layernorm_grad(gain.at[k] * dv.at[k], n, r, mean_h, mean_hn);
            }
            ttn_quad_give(q, to, i, dv, acc);
        }
    }
}

/* The lanes of the parameters, and mean(d) of each row. */
extern "C" size_t ttn_cuda_layernorm_work(const ttn_sig *s, ttn_pass pass)
{
    if (pass == TTN_FORWARD) return 0;
    return ttn_rownorm_work(s, 2) + ttn_desc_bytes(&s->aux[0]);
}

extern "C" ttn_status ttn_cuda_layernorm_backward(const ttn_call *c, ttn_error *err)
{
    const int64_t capacity = c->sig->in[0].dim[0];
    const int64_t C = c->sig->in[0].dim[1];
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    const real *x = static_cast<const real *>(c->in[0]);
    const real *g = static_cast<const real *>(c->in[GAIN]);
    const real *mean = static_cast<const real *>(c->aux[0]);
    const real *rstd = static_cast<const real *>(c->aux[1]);
    const real *dy = static_cast<const real *>(c->dout[0]);
    real *dx = static_cast<real *>(c->din[0]);
    ttn_status status = TTN_OK;
    real *offset = reinterpret_cast<real *>(static_cast<char *>(c->work) + ttn_rownorm_work(c->sig, 2));
    if (c->din[GAIN])
        status = TTN_LAUNCH(offset_kernel, ttn_row_blocks(used), TTN_ROW_THREADS, 0, c->on, err, ttn_quads_of(C, x),
                            used, x, mean, offset);
    if (status == TTN_OK) status = ttn_cuda_rownorm_params(c, mean, offset, rstd, err);
    if (status != TTN_OK || !dx) return status;
    return TTN_LAUNCH(dx_kernel, ttn_row_blocks(capacity), TTN_ROW_THREADS, 0, c->on, err,
                      ttn_quads_of(C, x, g, dy, dx), capacity, used, x, g, mean, rstd, dy, dx, c->acc[0]);
}
