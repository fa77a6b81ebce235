/* Exact attention: what the CPU and the GPU kernels share. The letters are those on top of autograd/ops/attn_exact.c. */
#ifndef TTN_ATTN_EXACT_H
#define TTN_ATTN_EXACT_H

#include <math.h>
#include "autograd/op.h"
#include "autograd/ops.h"
#include "core/philox.h"

/* What holds for a whole call. */
typedef struct {
    real scale;
    int drops;          /* dropout is on */
    uint32_t threshold; /* words below it are dropped */
    real kept;          /* 1 / (1 - rate) */
} ttn_attn_exact_rule;

static inline ttn_attn_exact_rule ttn_attn_exact_rule_of(const ttn_call *c)
{
    const ttn_attn_exact_options *a = (const ttn_attn_exact_options *)c->sig->attr;
    const int64_t width = c->sig->in[0].dim[1] / a->heads;
    ttn_attn_exact_rule r;
    r.scale = a->scale > 0 ? (real)a->scale : (real)(1 / sqrt((double)width));
    r.drops = c->feed->training && a->dropout > 0;
    r.threshold = r.drops ? (uint32_t)(a->dropout * 0x1p32) : 0;
    r.kept = r.drops ? (real)(1 / (1 - a->dropout)) : 1;
    return r;
}

/* Where dropout's words are: the key is the head's own; the block of counter (sample, place) has the words for the keys at
 * positions 4 block … 4 block + 3, seen from position i. */
TTN_HD uint64_t ttn_attn_exact_key(uint64_t key, int64_t head)
{
    return ttn_philox_key(key, (uint64_t)head, 0);
}
TTN_HD uint64_t ttn_attn_exact_place(int64_t i, int64_t block)
{
    return ttn_philox_place((uint32_t)i, (uint32_t)block);
}

/* z of such a word. */
TTN_HD real ttn_attn_exact_kept(uint32_t word, uint32_t threshold, real kept)
{
    return word >= threshold ? kept : 0;
}

/* e from p, z, g.v, s and s delta. */
TTN_HD real ttn_attn_exact_slope(real p, real z, real gv, real scale, real scaled_delta)
{
    return p * (scale * (z * gv) - scaled_delta);
}

#endif
