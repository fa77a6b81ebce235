/* relu for CUDA devices: autograd/ops/relu.c says what it computes. Backward reads y. */
#include "autograd/activate_cuda.h"

extern "C" ttn_status ttn_cuda_relu_forward(const ttn_call *c, ttn_error *err)
{
    return ttn_cuda_activate_forward<TTN_ACT_RELU>(c, err);
}

extern "C" ttn_status ttn_cuda_relu_backward(const ttn_call *c, ttn_error *err)
{
    return ttn_cuda_activate_backward<TTN_ACT_RELU>(c, c->out[0], err);
}
