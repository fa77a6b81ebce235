/* How the gradients of a step's micro-batches ("shards") add up: in a binary tree, ((s0 + s1) + (s2 + s3)) + …, so that the
 * sum is the same, bit for bit, when several ranks make it, each a subtree.
 *
 *     for each shard:
 *         ttn_plan_run(plan, &feed, NULL, &err);     its gradients, in the slab
 *         ttn_shards_add(shards, &err);
 *
 * Sums, not means: the optimizer divides once, by the targets of all of them.
 */
#ifndef TTN_TRAIN_SHARDS_H
#define TTN_TRAIN_SHARDS_H

#include <stdint.h>
#include "autograd/weights.h"
#include "core/device.h"

/* Holds log2 n slabs. */
typedef struct ttn_shards ttn_shards;

/* n: a power of two, else TTN_EINVAL. weights and the stream's device outlive it; *ret is the caller's. */
TTN_MUST_USE ttn_status ttn_shards_create(ttn_weights *w, const ttn_stream *on, int64_t n, ttn_shards **ret,
                                          ttn_error *err);
void ttn_shards_destroy(ttn_shards *s); /* NULL is fine */

/* The gradient slab holds the next shard's. After the n-th call it holds the sum of all, and the next shard is the first of
 * another sum. */
TTN_MUST_USE ttn_status ttn_shards_add(ttn_shards *s, ttn_error *err);

/* Forget the shards of a sum that is not complete. */
void ttn_shards_restart(ttn_shards *s);

#endif
