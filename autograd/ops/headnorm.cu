/* headnorm for CUDA devices: autograd/ops/headnorm.c says what it computes, headnorm.h holds the formulas. A warp makes a
 * row, head after head; with heads of fewer than 32 channels some lanes have nothing to do. */
#include "autograd/kernel_cuda.h"
#include "autograd/ops/headnorm.h"
#include "autograd/rows_cuda.h"

enum { GAIN = TTN_HEADNORM_GAIN };

typedef struct {
    int64_t capacity, used, heads, D;
} dims;

static dims dims_of(const ttn_call *c)
{
    const ttn_desc *x = &c->sig->in[0];
    const int64_t heads = static_cast<const ttn_headnorm_attributes *>(c->sig->attr)->heads;
    const dims d = {x->dim[0], ttn_used(c->feed, x), heads, x->dim[1] / heads};
    return d;
}

/* ---- forward ---- */

static __global__ void forward_kernel(dims d, real eps, const real *x, const real *g, real *y, real *inverse)
{
    for (int64_t t = ttn_warp_first(); t < d.capacity; t += ttn_warp_stride())
        for (int64_t h = 0; h < d.heads; h++) {
            const int64_t head = t * d.heads + h;
            const real *from = x + head * d.D;
            real *to = y + head * d.D; /* may be x */
            real one = 0;
            if (t < d.used) {
                real squares = 0;
                for (int64_t i = ttn_lane(); i < d.D; i += TTN_WARP)
                    squares += from[i] * from[i];
                one = ttn_headnorm_inverse(ttn_warp_sum(squares), d.D, eps);
            }
            const real factor = g[h] * one;
            for (int64_t i = ttn_lane(); i < d.D; i += TTN_WARP)
                to[i] = t < d.used ? factor * from[i] : 0;
            if (ttn_lane() == 0) inverse[head] = one;
        }
}

extern "C" ttn_status ttn_cuda_headnorm_forward(const ttn_call *c, ttn_error *err)
{
    const dims d = dims_of(c);
    const real eps = static_cast<real>(static_cast<const ttn_headnorm_attributes *>(c->sig->attr)->eps);
    return TTN_LAUNCH(forward_kernel, ttn_row_blocks(d.capacity), TTN_ROW_THREADS, 0, c->on, err, d, eps,
                      static_cast<const real *>(c->in[0]), static_cast<const real *>(c->in[GAIN]),
                      static_cast<real *>(c->out[0]), static_cast<real *>(c->aux[0]));
}

/* ---- backward ---- */

/* p (N, H) of the used rows. */
static __global__ void projection_kernel(dims d, const real *x, const real *inverse, const real *dy, real *p)
{
    for (int64_t t = ttn_warp_first(); t < d.used; t += ttn_warp_stride())
        for (int64_t h = 0; h < d.heads; h++) {
            const int64_t head = t * d.heads + h;
            real sum = 0;
            for (int64_t i = ttn_lane(); i < d.D; i += TTN_WARP)
                sum += dy[head * d.D + i] * x[head * d.D + i];
            sum = ttn_warp_sum(sum);
            if (ttn_lane() == 0) p[head] = sum * inverse[head];
        }
}

static __global__ void dx_kernel(dims d, const real *x, const real *g, const real *inverse, const real *p,
                                 const real *dy, real *dx, real acc)
{
    for (int64_t t = ttn_warp_first(); t < d.capacity; t += ttn_warp_stride()) {
        if (t >= d.used && acc != 0) continue;
        for (int64_t h = 0; h < d.heads; h++) {
            const int64_t head = t * d.heads + h;
            const real one = inverse[head];
            const real mean = t < d.used ? p[head] / static_cast<real>(d.D) : 0;
            for (int64_t i = head * d.D + ttn_lane(); i < (head + 1) * d.D; i += TTN_WARP) {
                if (t < d.used) /* dx may be dy */
                    ttn_give(&dx[i], ttn_headnorm_grad(dy[i], x[i], one, g[h] * one, mean), acc);
                else
                    dx[i] = 0;
            }
        }
    }
}

/* p, then the lanes of its sums. */
static size_t projection_bytes(const ttn_sig *s)
{
    return ttn_work_align(static_cast<size_t>(ttn_desc_numel(&s->aux[0])) * sizeof(real));
}

extern "C" size_t ttn_cuda_headnorm_work(const ttn_sig *s, ttn_pass pass)
{
    if (pass == TTN_FORWARD) return 0;
    return projection_bytes(s) + ttn_cuda_sums_work(s->aux[0].dim[0], s->aux[0].dim[1]);
}

extern "C" ttn_status ttn_cuda_headnorm_backward(const ttn_call *c, ttn_error *err)
{
    if (!c->din[0] && !c->din[GAIN]) return TTN_OK;
    const dims d = dims_of(c);
    const real *x = static_cast<const real *>(c->in[0]);
    const real *inverse = static_cast<const real *>(c->aux[0]);
    const real *dy = static_cast<const real *>(c->dout[0]);
    real *p = static_cast<real *>(c->work);
    ttn_status status =
        TTN_LAUNCH(projection_kernel, ttn_row_blocks(d.capacity), TTN_ROW_THREADS, 0, c->on, err, d, x, inverse, dy, p);
    if (c->din[0] && status == TTN_OK)
        status = TTN_LAUNCH(dx_kernel, ttn_row_blocks(d.capacity), TTN_ROW_THREADS, 0, c->on, err, d, x,
                            static_cast<const real *>(c->in[GAIN]), inverse, p, dy, static_cast<real *>(c->din[0]),
                            c->acc[0]);
    if (c->din[GAIN] && status == TTN_OK) {
        ttn_cuda_sums s =
            ttn_cuda_sums_begin(d.capacity, d.heads, static_cast<char *>(c->work) + projection_bytes(c->sig));
        status = ttn_cuda_sums_add(&s, c->on, d.used, p, d.heads, err);
        if (status == TTN_OK)
            status = ttn_cuda_sums_end(&s, c->on, c->acc[GAIN], static_cast<real *>(c->din[GAIN]), err);
    }
    return status;
}
