/* In the place of registry_cuda.c where the library is built without CUDA: neither ops nor the optimizer have kernels for it. */
#include "autograd/adamw.h"
#include "autograd/op.h"

const ttn_kernels *ttn_cuda_kernels(const char *op)
{
    (void)op;
    return NULL;
}

const ttn_adamw_kernels *ttn_cuda_adamw(void)
{
    return NULL;
}
