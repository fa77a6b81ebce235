/* What the CUDA kernels of dropout and residual share. Included by their .cu files only. */
#ifndef TTN_DROPOUT_CUDA_H
#define TTN_DROPOUT_CUDA_H

#include "autograd/kernel_cuda.h"
#include "autograd/ops/dropout.h"
#include "core/philox.h"

/* The place of a row of a value that counts rows (N) or sequences (S); place.seq -1: its row of the output is 0. */
static __device__ inline ttn_place ttn_dropout_place(const ttn_on_device &on, ttn_axis axis, int64_t used, int64_t row)
{
    if (axis != TTN_SEQS) return ttn_place_of(on, row);
    return {row < used ? row : -1, 0};
}

/* What becomes of quad i of a row at this place: one block of Philox decides on its four elements. */
static __device__ inline ttn_quad ttn_dropout_quad(const ttn_dropout_rule &rule, uint64_t sample, int64_t position,
                                                   int64_t i, ttn_quad v)
{
    if (!rule.drops) return v;
    uint32_t word[4];
    ttn_philox_at(rule.key, sample, ttn_philox_place(static_cast<uint32_t>(position), static_cast<uint32_t>(i)), word);
    for (int k = 0; k < 4; k++)
        v.at[k] = ttn_dropout_value(word[k], rule.least, rule.scale, v.at[k]);
    return v;
}

#endif
