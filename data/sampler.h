/* Batches of a training run or a validation, in an order that is a function of (seed, epoch, window).
 *
 * An epoch visits every sequence of its side of the split exactly once (data/order.h). Windows of `capacity.window` of them
 * are packed by first fit (data/packing.h); the last window of an epoch is as long as what is left, and packed like the
 * others. Crops and masks are functions of (seed, epoch, sample, position): the same however batches are packed.
 *
 * Batches are one endless series: that of epoch 0, of epoch 1, … A step is `shards` consecutive ones. Where an epoch's number
 * of batches is no multiple of it, a step takes its last batches from the next epoch: nothing is lost, and nothing comes
 * twice. A rank asks for its own shards of each step, and for what others do only lengths are looked at.
 *
 *     while ((status = ttn_sampler_next(s, batch, err)) == TTN_OK) …
 */
#ifndef TTN_SAMPLER_H
#define TTN_SAMPLER_H

#include <stdint.h>
#include "data/batch.h"
#include "data/batch_rules.h"
#include "data/sequences.h"
#include "data/subset.h"

typedef struct {
    const ttn_sequences *from; /* copied; what is behind it, and `side`, outlive the sampler */
    const ttn_subset *side;    /* NULL: all of them */
    ttn_batch_rules rules;
    ttn_capacity capacity; /* ttn_batch_capacity_of these */
    uint64_t seed;
    int64_t epochs; /* after so many it is TTN_EOF; 0: never */

    /* For a validation that is the same each time: sequences in ascending order, crops and masks of no epoch. Several
     * maskings k = 0, 1, … of the same sequences differ in their masks alone. */
    int is_fixed;
    int64_t masking;

    /* This rank has shards first_shard, … first_shard + n_shard - 1 of each step's `shards`; all 0: one and the only one. With
     * a limit on epochs the last step is filled up with empty batches, so that every rank gets as many. */
    int64_t shards, first_shard, n_shard;
} ttn_sampler_options;

typedef struct ttn_sampler ttn_sampler;

/* At the start of epoch 0. *ret is the caller's; one thread at a time. TTN_ENOMEM; TTN_EINVAL: the vocabulary has no <mask>. */
TTN_MUST_USE ttn_status ttn_sampler_create(const ttn_sampler_options *o, ttn_sampler **ret, ttn_error *err);
void ttn_sampler_destroy(ttn_sampler *s); /* NULL is fine */

/* Go on at a cursor that a batch had as `next` behind the last shard of its step, whatever the number of ranks or of shards
 * in a step was. {.epoch = e} is the start of epoch e. TTN_EINVAL: a cursor of another series: other sequences, seed,
 * capacities or rules (the hash in it tells); then go on at the start of its epoch, or of the next. The sampler is then where
 * it was. */
TTN_MUST_USE ttn_status ttn_sampler_seek(ttn_sampler *s, ttn_cursor at, ttn_error *err);

/* The next batch of this rank, into b, which has the capacities of the sampler. TTN_EOF after the last (b is then empty), or
 * what reading the sequences returned; then b is not to be used, and the next call tries the same batch again. */
TTN_MUST_USE ttn_status ttn_sampler_next(ttn_sampler *s, ttn_batch *b, ttn_error *err);

/* N, S and R of its batches. */
ttn_extent ttn_sampler_capacity(const ttn_sampler *s);

/* Batches of an epoch, of all shards together. Packs all of it: 0.2 microseconds a sequence. Where the sampler stands stays
 * as it is. */
int64_t ttn_sampler_count(ttn_sampler *s, int64_t epoch);

#endif
