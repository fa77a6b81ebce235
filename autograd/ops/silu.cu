/* silu for CUDA devices: autograd/ops/silu.c says what it computes. */
#include "autograd/activate_cuda.h"

extern "C" ttn_status ttn_cuda_silu_forward(const ttn_call *c, ttn_error *err)
{
    return ttn_cuda_activate_forward<TTN_ACT_SILU>(c, err);
}

extern "C" ttn_status ttn_cuda_silu_backward(const ttn_call *c, ttn_error *err)
{
    return ttn_cuda_activate_backward<TTN_ACT_SILU>(c, c->in[0], err);
}
