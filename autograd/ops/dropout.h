/* Which elements dropout and residual keep: for the CPU and the GPU kernels.
 *
 * Channel i stays when word i % 4 of Philox's block at counter (sample, position, i / 4), with the call's key, is at
 * least 2^32 p: a function of the sequence and the place in it, not of the row. */
#ifndef TTN_DROPOUT_H
#define TTN_DROPOUT_H

#include "autograd/op.h"

typedef struct {
    double p;
} ttn_dropout_attributes;

typedef struct {
    uint64_t key;
    uint32_t least; /* words below it drop their element */
    real scale;     /* of what stays, 1 / (1 - p) */
    int drops;      /* 0: this run drops nothing */
} ttn_dropout_rule;

static inline ttn_dropout_rule ttn_dropout_rule_of(const ttn_call *c)
{
    const double p = ((const ttn_dropout_attributes *)c->sig->attr)->p;
    const double least = p * 0x1p32 + 0.5;
    ttn_dropout_rule rule;
    rule.key = c->key;
    rule.least = least < 0x1p32 ? (uint32_t)least : UINT32_MAX;
    rule.scale = (real)(1 / (1 - p));
    rule.drops = c->feed->training && p > 0;
    return rule;
}

/* What becomes of x. */
TTN_HD real ttn_dropout_value(uint32_t word, uint32_t least, real scale, real x)
{
    return word >= least ? scale * x : 0;
}

#endif
