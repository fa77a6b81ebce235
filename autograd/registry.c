#include <string.h>
#include "autograd/op.h"

const ttn_op *const ttn_ops[] = {
#define TTN_OP(name) &ttn_op_##name,
#include "autograd/ops.def"
#undef TTN_OP
    NULL,
};

const ttn_op *ttn_op_find(const char *name)
{
    for (int i = 0; ttn_ops[i]; i++)
        if (strcmp(ttn_ops[i]->name, name) == 0) return ttn_ops[i];
    return NULL;
}

const ttn_kernels *ttn_op_kernels(const ttn_op *op, ttn_kernel_kind kind)
{
    switch (kind) {
    case TTN_KERNELS_CPU:
        return &op->cpu;
    case TTN_KERNELS_CUDA:
        return ttn_cuda_kernels(op->name);
    }
    return NULL;
}

size_t ttn_work_bytes(const ttn_kernels *kernels, const ttn_sig *s, ttn_pass pass, int n_thread)
{
    if (kernels && kernels->work) return kernels->work(s, pass);
    return ttn_work_align(s->work[pass]) + (size_t)n_thread * ttn_work_align(s->work_thread[pass]);
}

ttn_reads ttn_op_reads(const ttn_op *op, uint32_t wanted)
{
    ttn_reads all = {0};
    for (int i = 0; i < op->n_in; i++) {
        if (!(wanted & TTN_BIT(i))) continue;
        all.in |= op->reads[i].in;
        all.out |= op->reads[i].out;
        all.aux |= op->reads[i].aux;
    }
    return all;
}
