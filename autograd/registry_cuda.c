/* The kernels of ops_cuda.def. Built with CUDA=1; without, registry_nocuda.c takes its place. */
#include <string.h>
#include "autograd/op.h"

#define TTN_OP_CUDA(name)                          \
    ttn_kernel_function ttn_cuda_##name##_forward; \
    ttn_kernel_function ttn_cuda_##name##_backward;
#define TTN_OP_CUDA_WORK(name) \
    TTN_OP_CUDA(name)          \
    size_t ttn_cuda_##name##_work(const ttn_sig *s, ttn_pass pass);
#include "autograd/ops_cuda.def"
#undef TTN_OP_CUDA
#undef TTN_OP_CUDA_WORK

typedef struct {
    const char *op;
    ttn_kernels kernels;
} entry;

static const entry table[] = {
#define TTN_OP_CUDA(name)      {#name, {ttn_cuda_##name##_forward, ttn_cuda_##name##_backward, NULL}},
#define TTN_OP_CUDA_WORK(name) {#name, {ttn_cuda_##name##_forward, ttn_cuda_##name##_backward, ttn_cuda_##name##_work}},
#include "autograd/ops_cuda.def"
#undef TTN_OP_CUDA
#undef TTN_OP_CUDA_WORK
    {NULL, {NULL, NULL, NULL}},
};

const ttn_kernels *ttn_cuda_kernels(const char *op)
{
    for (const entry *e = table; e->op; e++)
        if (strcmp(e->op, op) == 0) return &e->kernels;
    return NULL;
}
