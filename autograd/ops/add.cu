/* add on a GPU; the maths, shapes and cases are in add.c. */
#include "core/cuda.h"
#include "autograd/kernel.h"

enum { THREADS = 256 };

/* y may be a. The elements past `used` are zeros. */
static __global__ void add_kernel(int64_t n, int64_t used, const real *a, const real *b, real *y)
{
    for (int64_t i = ttn_cuda_first(); i < n; i += ttn_cuda_stride())
        y[i] = i < used ? a[i] + b[i] : 0;
}

/* dx may be dy. */
static __global__ void pass_kernel(int64_t n, int64_t used, real acc, const real *dy, real *dx)
{
    for (int64_t i = ttn_cuda_first(); i < n; i += ttn_cuda_stride()) {
        if (i < used)
            dx[i] = ttn_accumulate(acc, dx[i], dy[i]);
        else if (acc == 0)
            dx[i] = 0;
    }
}

extern "C" ttn_status ttn_cuda_add_forward(const ttn_call *c, ttn_error *err)
{
    const ttn_desc *d = &c->sig->out[0];
    const int64_t n = ttn_desc_numel(d);
    return TTN_LAUNCH(add_kernel, ttn_cuda_blocks(n, THREADS), THREADS, 0, c->on, err, n, ttn_used_numel(c->feed, d),
                      static_cast<const real *>(c->in[0]), static_cast<const real *>(c->in[1]),
                      static_cast<real *>(c->out[0]));
}

extern "C" ttn_status ttn_cuda_add_backward(const ttn_call *c, ttn_error *err)
{
    const ttn_desc *d = &c->sig->out[0];
    const int64_t n = ttn_desc_numel(d);
    ttn_status status = TTN_OK;
    for (int i = 0; i < 2 && status == TTN_OK; i++)
        if (c->din[i])
            status = TTN_LAUNCH(pass_kernel, ttn_cuda_blocks(n, THREADS), THREADS, 0, c->on, err, n,
                                ttn_used_numel(c->feed, d), c->acc[i], static_cast<const real *>(c->dout[0]),
                                static_cast<real *>(c->din[i]));
    return status;
}
