/* gelu for CUDA devices: autograd/ops/gelu.c says what it computes. */
#include "autograd/activate_cuda.h"

static bool is_erf(const ttn_call *c)
{
    return *static_cast<const ttn_activation *>(c->sig->attr) == TTN_ACT_GELU_ERF;
}

extern "C" ttn_status ttn_cuda_gelu_forward(const ttn_call *c, ttn_error *err)
{
    if (is_erf(c)) return ttn_cuda_activate_forward<TTN_ACT_GELU_ERF>(c, err);
    return ttn_cuda_activate_forward<TTN_ACT_GELU_TANH>(c, err);
}

extern "C" ttn_status ttn_cuda_gelu_backward(const ttn_call *c, ttn_error *err)
{
    if (is_erf(c)) return ttn_cuda_activate_backward<TTN_ACT_GELU_ERF>(c, c->in[0], err);
    return ttn_cuda_activate_backward<TTN_ACT_GELU_TANH>(c, c->in[0], err);
}
