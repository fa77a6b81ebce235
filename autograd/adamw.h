/* AdamW's arithmetic on flat slabs: the formulas and the kernels of every kind of device. What it computes and why stands in
 * train/optim.h, which is the optimizer.
 *
 * Slabs are cut into blocks of at most TTN_ADAMW_BLOCK elements, all of which decay or none of which do. Blocks are the
 * unit of work and of sums: the sum of squares of a block is made in a fixed order, so that bits depend on the blocks and
 * on nothing else.
 */
#ifndef TTN_ADAMW_H
#define TTN_ADAMW_H

#include <stdint.h>
#include "core/device.h"
#include "core/real.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TTN_ADAMW_BLOCK = 4096 };

typedef struct {
    int64_t first, n; /* elements of a slab */
    int64_t decays;
} ttn_adamw_block;

/* Addresses of the device. */
typedef struct {
    int64_t n_block;
    const ttn_adamw_block *block;
    const real *gradient;
    real *value, *m, *v;
} ttn_adamw_slabs;

/* One step, in the numbers that elements need: made in double, and rounded once. */
typedef struct {
    real scale;        /* of gradients: clipping and the count */
    real keep;         /* of a value that decays: 1 - lr decay */
    real rate;         /* lr / (1 - beta1^t) */
    real new_m;        /* 1 - beta1 */
    real old_v, new_v; /* beta2, 1 - beta2 */
    real v_correction; /* 1 / sqrt(1 - beta2^t) */
    real eps;
} ttn_adamw_rule;

/* An element's moments and value after the step. */
TTN_HD real ttn_adamw_m(const ttn_adamw_rule *r, real m, real g)
{
    return m + r->new_m * (g - m);
}
TTN_HD real ttn_adamw_v(const ttn_adamw_rule *r, real v, real g)
{
    return r->old_v * v + r->new_v * (g * g);
}
TTN_HD real ttn_adamw_value(const ttn_adamw_rule *r, real keep, real value, real m, real v)
{
    return keep * value - r->rate * m / (sqrt(v) * r->v_correction + r->eps);
}

typedef struct {
    /* sum[b]: of the squares of block b's gradients, in double; an address of the device. */
    ttn_status (*squares)(const ttn_stream *on, const ttn_adamw_slabs *s, double *sum, ttn_error *err);
    ttn_status (*update)(const ttn_stream *on, const ttn_adamw_slabs *s, const ttn_adamw_rule *r, ttn_error *err);
} ttn_adamw_kernels;

/* Of such a device; NULL: it has none. */
const ttn_adamw_kernels *ttn_adamw_kernels_of(ttn_kernel_kind kind);

/* Those of autograd/adamw.cu; built without CUDA (registry_nocuda.c): NULL. */
const ttn_adamw_kernels *ttn_cuda_adamw(void);

#ifdef __cplusplus
}
#endif
#endif
