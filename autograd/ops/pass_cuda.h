/* The gradient of an op that adds something to the rows of sequences (positions, sinusoid), for CUDA devices:
 * ttn_stretch_pass of autograd/ops/places.h. Included by their .cu files only. */
#ifndef TTN_PASS_CUDA_H
#define TTN_PASS_CUDA_H

#include "autograd/kernel_cuda.h"

/* dx = acc dx + dy in rows of sequences, 0 in others; dx may be dy. */
static __global__ void ttn_pass_kernel(ttn_quads q, int64_t capacity, ttn_on_device on, const real *dy, real *dx,
                                       real acc)
{
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        real *to = dx + t * q.width;
        if (on.seq_of_row[t] < 0) {
            if (acc == 0) ttn_quad_zero_row(q, to);
            continue;
        }
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP)
            ttn_quad_give(q, to, i, ttn_quad_load(q, dy + t * q.width, i), acc);
    }
}

/* Input 0's gradient. */
static inline ttn_status ttn_cuda_pass(const ttn_call *c, ttn_error *err)
{
    const int64_t capacity = c->sig->in[0].dim[0];
    const real *dy = static_cast<const real *>(c->dout[0]);
    real *dx = static_cast<real *>(c->din[0]);
    return TTN_LAUNCH(ttn_pass_kernel, ttn_row_blocks(capacity), TTN_ROW_THREADS, 0, c->on, err,
                      ttn_quads_of(c->sig->in[0].dim[1], dy, dx), capacity, c->on_device, dy, dx, c->acc[0]);
}

#endif
