/* Random projections of attention by random features. */
#ifndef TTN_FAVOR_DRAW_H
#define TTN_FAVOR_DRAW_H

#include "autograd/ops.h"
#include "core/status.h"

/* max(D, D ln D), rounded up to a multiple of 16: 272 for 64. */
int64_t ttn_favor_default_features(int64_t D);

/* Draw a projection W (m, D) of one head: a function of the key and the head alone, the same on every machine. Directions
 * are uniform on the sphere; in blocks of D rows they are orthogonal (o->independent: all independent). Lengths are those of
 * other Gaussian vectors (chi: kernels are estimated without bias), or sqrt(D) (lower variance, and a bias).
 * TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_favor_draw(uint64_t key, int64_t head, int64_t m, int64_t D,
                                       const ttn_attn_favor_options *o, double *W, ttn_error *err);

#endif
