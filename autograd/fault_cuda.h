/* How a CUDA kernel raises a fault in its data: autograd/fault.h. Included by .cu files only. */
#ifndef TTN_FAULT_CUDA_H
#define TTN_FAULT_CUDA_H

#include "core/cuda.h"
#include "autograd/fault.h"

/* kind: 0 to 15; at: a row, a pick, a sequence. */
static __device__ inline void ttn_fault_raise(ttn_fault_sink f, int kind, int64_t at)
{
    atomicMin((unsigned long long *)f.first, (unsigned long long)ttn_fault_number(f, kind, at));
}

#endif
