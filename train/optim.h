/* The optimizer: AdamW over the flat slabs of weights.
 *
 * With g = sum of gradients / count, c = min(1, clip / (|g| + 1e-6)) (torch.nn.utils.clip_grad_norm_) and t = step + 1:
 *
 *     m = m + (1 - beta1)(c g - m)        v = beta2 v + (1 - beta2)(c g)^2
 *     w = (1 - lr decay) w - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps)
 *
 * (Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019; as torch.optim.AdamW.) Parameters with TTN_NO_DECAY
 * (norms, biases, embeddings) do not decay; those that no loss reaches stay as they are and are not in the norm. |g| is a
 * sum of squares in double, in blocks that the layout of the slabs alone decides: the same bits for any number of threads.
 *
 *     for each micro-batch:
 *         ttn_plan_run(plan, &feed, NULL, &err);              gradients of a sum, in the slab
 *         ttn_shards_add(shards, &err);                       train/shards.h
 *     ttn_optim_step(optim, &(ttn_optim_when){.step = s, .lr = ttn_schedule_lr(&schedule, s), .count = n}, &result, &err);
 */
#ifndef TTN_TRAIN_OPTIM_H
#define TTN_TRAIN_OPTIM_H

#include <stdint.h>
#include "autograd/weights.h"
#include "core/device.h"
#include "core/values.h"
#include "train/config.h"

typedef struct {
    double beta1, beta2, eps;
    double decay;
    double clip; /* of the norm of all gradients together; 0: none */
} ttn_optim_spec;

/* Rows optim.* but optim.lr, which is the schedule's. */
extern const ttn_config_module ttn_optim_module;

TTN_MUST_USE ttn_status ttn_optim_spec_of(const ttn_values *values, ttn_optim_spec *ret, ttn_error *err);

typedef struct ttn_optim ttn_optim;

/* The weights get their slabs of gradients and moments, unless they are there. untrained: names of trainable parameters that
 * no loss reaches (ttn_plan_report has them), copied. weights and the stream's device outlive it; *ret is the caller's.
 * TTN_EDEVICE: a device without a kernel for this. TTN_EINVAL: an untrained name that is no weight. */
TTN_MUST_USE ttn_status ttn_optim_create(const ttn_optim_spec *spec, ttn_weights *w, const ttn_stream *on,
                                         const char *const *untrained, int n_untrained, ttn_optim **ret,
                                         ttn_error *err);
void ttn_optim_destroy(ttn_optim *o); /* NULL is fine */

typedef struct {
    int64_t step; /* from 0; how many updates the moments have seen */
    double lr;
    double count; /* what the sum of gradients is divided by: targets in all micro-batches, above 0 */
} ttn_optim_when;

typedef struct {
    double norm;   /* |g|, before clipping */
    double factor; /* c */
    int is_finite; /* 0: a gradient is not, and nothing was changed */
} ttn_optim_result;

/* One step from the gradient slab, which stays. Gradients that are not finite are the caller's to judge: TTN_OK, and weights
 * and moments are as before. */
TTN_MUST_USE ttn_status ttn_optim_step(ttn_optim *o, const ttn_optim_when *when, ttn_optim_result *ret, ttn_error *err);

#endif
