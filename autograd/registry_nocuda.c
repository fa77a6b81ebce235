/* In the place of registry_cuda.c where the library is built without CUDA: no op has kernels for it. */
#include "autograd/op.h"

const ttn_kernels *ttn_cuda_kernels(const char *op)
{
    (void)op;
    return NULL;
}
