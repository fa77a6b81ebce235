/* scale on a GPU; the maths, shapes and cases are in scale.c. */
#include "core/cuda.h"
#include "autograd/kernel.h"
#include "autograd/ops/scale.h"

enum { THREADS = 256 };

/* y may be x. The elements past `used` are zeros. */
static __global__ void scale_kernel(int64_t n, int64_t used, real f, const real *x, real *y)
{
    for (int64_t i = ttn_cuda_first(); i < n; i += ttn_cuda_stride())
        y[i] = i < used ? f * x[i] : 0;
}

/* dx may be dy. */
static __global__ void back_kernel(int64_t n, int64_t used, real acc, real f, const real *dy, real *dx)
{
    for (int64_t i = ttn_cuda_first(); i < n; i += ttn_cuda_stride()) {
        if (i < used)
            dx[i] = ttn_accumulate(acc, dx[i], f * dy[i]);
        else if (acc == 0)
            dx[i] = 0;
    }
}

extern "C" ttn_status ttn_cuda_scale_forward(const ttn_call *c, ttn_error *err)
{
    const ttn_desc *d = &c->sig->out[0];
    const int64_t n = ttn_desc_numel(d);
    return TTN_LAUNCH(scale_kernel, ttn_cuda_blocks(n, THREADS), THREADS, 0, c->on, err, n, ttn_used_numel(c->feed, d),
                      ttn_scale_factor(c->sig), static_cast<const real *>(c->in[0]), static_cast<real *>(c->out[0]));
}

extern "C" ttn_status ttn_cuda_scale_backward(const ttn_call *c, ttn_error *err)
{
    if (!c->din[0]) return TTN_OK;
    const ttn_desc *d = &c->sig->out[0];
    const int64_t n = ttn_desc_numel(d);
    return TTN_LAUNCH(back_kernel, ttn_cuda_blocks(n, THREADS), THREADS, 0, c->on, err, n, ttn_used_numel(c->feed, d),
                      c->acc[0], ttn_scale_factor(c->sig), static_cast<const real *>(c->dout[0]),
                      static_cast<real *>(c->din[0]));
}
