/* dropout for CUDA devices: autograd/ops/dropout.c says what it computes; the masks are the CPU's. */
#include "autograd/ops/dropout_cuda.h"

/* to = acc to + m x / (1 - p); `to` may be x. */
static __global__ void drop_kernel(ttn_quads q, int64_t capacity, int64_t used, ttn_axis axis, ttn_on_device on,
                                   ttn_dropout_rule rule, const real *x, real *to, real acc)
{
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        const ttn_place place = ttn_dropout_place(on, axis, used, t);
        if (place.seq < 0) {
            if (acc == 0) ttn_quad_zero_row(q, to + t * q.width);
            continue;
        }
        const uint64_t sample = on.sample[place.seq];
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
            const ttn_quad v = ttn_quad_load(q, x + t * q.width, i);
            ttn_quad_give(q, to + t * q.width, i, ttn_dropout_quad(rule, sample, place.position, i, v), acc);
        }
    }
}

static ttn_status drop(const ttn_call *c, const void *from, void *to, real acc, ttn_error *err)
{
    const ttn_desc *d = &c->sig->in[0];
    const real *x = static_cast<const real *>(from);
    real *y = static_cast<real *>(to);
    return TTN_LAUNCH(drop_kernel, ttn_row_blocks(d->dim[0]), TTN_ROW_THREADS, 0, c->on, err,
                      ttn_quads_of(d->dim[1], x, y), d->dim[0], ttn_used(c->feed, d), d->axis, c->on_device,
                      ttn_dropout_rule_of(c), x, y, acc);
}

extern "C" ttn_status ttn_cuda_dropout_forward(const ttn_call *c, ttn_error *err)
{
    return drop(c, c->in[0], c->out[0], 0, err);
}

extern "C" ttn_status ttn_cuda_dropout_backward(const ttn_call *c, ttn_error *err)
{
    if (!c->din[0]) return TTN_OK;
    return drop(c, c->dout[0], c->din[0], c->acc[0], err);
}
