/* linear on CUDA: the products are the device's gemm, one call each over the whole capacity (autograd/rows_cuda.h). y
 * begins as the bias in every row, so that the product adds to it: what a pass after it would read and write as well. */
#include "core/cuda.h"
#include "autograd/rows_cuda.h"

enum { WEIGHT = 1, BIAS = 2 };

typedef struct {
    int64_t N, I, O;
} dims;

static dims dims_of(const ttn_sig *s)
{
    const dims d = {s->in[0].dim[0], s->in[WEIGHT].dim[1], s->in[WEIGHT].dim[0]};
    return d;
}

extern "C" size_t ttn_cuda_linear_work(const ttn_sig *s, ttn_pass pass)
{
    const dims d = dims_of(s);
    return pass == TTN_FORWARD || s->in[BIAS].ndim < 0 ? 0 : ttn_cuda_sums_work(d.N, d.O);
}

extern "C" ttn_status ttn_cuda_linear_forward(const ttn_call *c, ttn_error *err)
{
    const dims d = dims_of(c->sig);
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    const real *x = static_cast<const real *>(c->in[0]);
    const real *w = static_cast<const real *>(c->in[WEIGHT]);
    const real *b = static_cast<const real *>(c->in[BIAS]);
    real *y = static_cast<real *>(c->out[0]);
    ttn_status status = TTN_OK;
    if (b) status = ttn_cuda_repeat_row(c->on, d.N, used, d.O, b, y, err);
    if (status == TTN_OK)
        status = ttn_cuda_gemm(c->on, TTN_N, TTN_T, d.N, d.O, d.I, ttn_in(x, d.I), ttn_in(w, d.I), b ? 1 : 0,
                               ttn_out(y, d.O), err);
    if (status == TTN_OK) status = ttn_cuda_zero_rest(c, &c->sig->out[0], y, err);
    return status;
}

extern "C" ttn_status ttn_cuda_linear_backward(const ttn_call *c, ttn_error *err)
{
    const dims d = dims_of(c->sig);
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    const real *dy = static_cast<const real *>(c->dout[0]);
    real *dx = static_cast<real *>(c->din[0]);
    real *dw = static_cast<real *>(c->din[WEIGHT]);
    real *db = static_cast<real *>(c->din[BIAS]);
    ttn_status status = TTN_OK;
    if (dx) {
        const real *w = static_cast<const real *>(c->in[WEIGHT]);
        status = ttn_cuda_gemm(c->on, TTN_N, TTN_N, d.N, d.I, d.O, ttn_in(dy, d.O), ttn_in(w, d.I), (double)c->acc[0],
                               ttn_out(dx, d.I), err);
    }
    if (dw && status == TTN_OK) {
        const real *x = static_cast<const real *>(c->in[0]);
        status = ttn_cuda_gemm(c->on, TTN_T, TTN_N, d.O, d.I, d.N, ttn_in(dy, d.O), ttn_in(x, d.I),
                               (double)c->acc[WEIGHT], ttn_out(dw, d.I), err);
    }
    if (db && status == TTN_OK) {
        ttn_cuda_sums s = ttn_cuda_sums_begin(d.N, d.O, c->work);
        status = ttn_cuda_sums_add(&s, c->on, used, dy, d.O, err);
        if (status == TTN_OK) status = ttn_cuda_sums_end(&s, c->on, c->acc[BIAS], db, err);
    }
    return status;
}
