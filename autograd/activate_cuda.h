/* The CUDA kernels of gelu, relu and silu: autograd/activate.h, for a device. Included by their .cu files only. */
#ifndef TTN_ACTIVATE_CUDA_H
#define TTN_ACTIVATE_CUDA_H

#include "autograd/kernel_cuda.h"
#include "autograd/ops/activation.h"

/* Values are gone over as one long row. y may be x. */
template <ttn_activation ACT>
static __global__ void ttn_activate_forward_kernel(ttn_quads q, int64_t used, const real *x, real *y)
{
    for (int64_t i = ttn_cuda_first(); i < q.count; i += ttn_cuda_stride()) {
        ttn_quad v = {};
        if (4 * i < used) v = ttn_quad_load(q, x, i);
        for (int k = 0; k < 4; k++)
            v.at[k] = 4 * i + k < used ? ttn_act_value(ACT, v.at[k]) : 0;
        ttn_quad_store(q, y, i, v);
    }
}

/* at: x or y, as the activation has it. dx may be dy. */
template <ttn_activation ACT>
static __global__ void ttn_activate_backward_kernel(ttn_quads q, int64_t used, const real *at, const real *dy, real *dx,
                                                    real acc)
{
    for (int64_t i = ttn_cuda_first(); i < q.count; i += ttn_cuda_stride()) {
        ttn_quad v = {};
        ttn_quad g = {};
        if (4 * i < used) {
            v = ttn_quad_load(q, at, i);
            g = ttn_quad_load(q, dy, i);
        }
        for (int k = 0; k < 4; k++)
            g.at[k] = 4 * i + k < used ? ttn_act_chain(ACT, v.at[k], g.at[k]) : 0;
        ttn_quad_give(q, dx, i, g, acc);
    }
}

enum { TTN_ACTIVATE_THREADS = 256 };

template <ttn_activation ACT> static inline ttn_status ttn_cuda_activate_forward(const ttn_call *c, ttn_error *err)
{
    const real *x = static_cast<const real *>(c->in[0]);
    real *y = static_cast<real *>(c->out[0]);
    const ttn_quads q = ttn_quads_of(ttn_desc_numel(&c->sig->out[0]), x, y);
    return TTN_LAUNCH((ttn_activate_forward_kernel<ACT>), ttn_cuda_blocks(q.count, TTN_ACTIVATE_THREADS),
                      TTN_ACTIVATE_THREADS, 0, c->on, err, q, ttn_used_numel(c->feed, &c->sig->out[0]), x, y);
}

template <ttn_activation ACT>
static inline ttn_status ttn_cuda_activate_backward(const ttn_call *c, const void *at_value, ttn_error *err)
{
    const real *at = static_cast<const real *>(at_value);
    const real *dy = static_cast<const real *>(c->dout[0]);
    real *dx = static_cast<real *>(c->din[0]);
    if (!dx) return TTN_OK;
    const ttn_quads q = ttn_quads_of(ttn_desc_numel(&c->sig->out[0]), at, dy, dx);
    return TTN_LAUNCH((ttn_activate_backward_kernel<ACT>), ttn_cuda_blocks(q.count, TTN_ACTIVATE_THREADS),
                      TTN_ACTIVATE_THREADS, 0, c->on, err, q, ttn_used_numel(c->feed, &c->sig->out[0]), at, dy, dx,
                      c->acc[0]);
}

#endif
