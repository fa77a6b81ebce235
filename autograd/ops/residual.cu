/* residual for CUDA devices: autograd/ops/residual.c says what it computes; the masks are the CPU's. */
#include "autograd/ops/dropout_cuda.h"

enum { A = 0, B = 1 };

static __global__ void forward_kernel(ttn_quads q, int64_t capacity, int64_t used, ttn_axis axis, ttn_on_device on,
                                      ttn_dropout_rule rule, const real *a, const real *b, real *y)
{
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        const ttn_place place = ttn_dropout_place(on, axis, used, t);
        real *to = y + t * q.width; /* may be a */
        if (place.seq < 0) {
            ttn_quad_zero_row(q, to);
            continue;
        }
        const uint64_t sample = on.sample[place.seq];
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
            ttn_quad v = ttn_quad_load(q, a + t * q.width, i);
            const ttn_quad dropped =
                ttn_dropout_quad(rule, sample, place.position, i, ttn_quad_load(q, b + t * q.width, i));
            for (int k = 0; k < 4; k++)
                v.at[k] += dropped.at[k];
            ttn_quad_store(q, to, i, v);
        }
    }
}

extern "C" ttn_status ttn_cuda_residual_forward(const ttn_call *c, ttn_error *err)
{
    const ttn_desc *d = &c->sig->out[0];
    const real *a = static_cast<const real *>(c->in[A]);
    const real *b = static_cast<const real *>(c->in[B]);
    real *y = static_cast<real *>(c->out[0]);
    return TTN_LAUNCH(forward_kernel, ttn_row_blocks(d->dim[0]), TTN_ROW_THREADS, 0, c->on, err,
                      ttn_quads_of(d->dim[1], a, b, y), d->dim[0], ttn_used(c->feed, d), d->axis, c->on_device,
                      ttn_dropout_rule_of(c), a, b, y);
}

/* dy is read before da and then db are written: da or db may be dy, and a and b may be one value with one buffer, which one
 * thread then writes twice. */
static __global__ void backward_kernel(ttn_quads q, int64_t capacity, int64_t used, ttn_axis axis, ttn_on_device on,
                                       ttn_dropout_rule rule, const real *dy, real *da, real acc_a, real *db,
                                       real acc_b)
{
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        const ttn_place place = ttn_dropout_place(on, axis, used, t);
        const int64_t at = t * q.width;
        if (place.seq < 0) {
            if (da && acc_a == 0) ttn_quad_zero_row(q, da + at);
            if (db && acc_b == 0) ttn_quad_zero_row(q, db + at);
            continue;
        }
        const uint64_t sample = on.sample[place.seq];
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
            const ttn_quad v = ttn_quad_load(q, dy + at, i);
            if (da) ttn_quad_give(q, da + at, i, v, acc_a);
            if (db) ttn_quad_give(q, db + at, i, ttn_dropout_quad(rule, sample, place.position, i, v), acc_b);
        }
    }
}

extern "C" ttn_status ttn_cuda_residual_backward(const ttn_call *c, ttn_error *err)
{
    if (!c->din[A] && !c->din[B]) return TTN_OK;
    const ttn_desc *d = &c->sig->out[0];
    const real *dy = static_cast<const real *>(c->dout[0]);
    real *da = static_cast<real *>(c->din[A]);
    real *db = static_cast<real *>(c->din[B]);
    return TTN_LAUNCH(backward_kernel, ttn_row_blocks(d->dim[0]), TTN_ROW_THREADS, 0, c->on, err,
                      ttn_quads_of(d->dim[1], dy, da, db), d->dim[0], ttn_used(c->feed, d), d->axis, c->on_device,
                      ttn_dropout_rule_of(c), dy, da, c->acc[A], db, c->acc[B]);
}
