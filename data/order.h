/* The order in which an epoch visits the sequences of one side of a split: place 0, 1, … to a sequence, in constant memory
 * where everything can be read fast, else in 16 bytes a block of the store.
 *
 * Then it is a random permutation of all of them (core/permute.h). With more blocks than the cache holds, epochs shuffle
 * blocks: those of an epoch come in random order, in groups of half a cache, and the sequences of a group in random order. So
 * each block is read once an epoch; two groups, which a window at their border mixes, fit into the cache.
 */
#ifndef TTN_ORDER_H
#define TTN_ORDER_H

#include <stdint.h>
#include "core/status.h"
#include "data/sequences.h"
#include "data/subset.h"

typedef struct ttn_order ttn_order;

/* s (copied) and side (NULL: all) outlive it. shuffle 0: ascending, the same in every epoch. It begins in epoch 0. *ret is
 * the caller's. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_order_create(const ttn_sequences *s, const ttn_subset *side, int shuffle, uint64_t seed,
                                         ttn_order **ret, ttn_error *err);
void ttn_order_destroy(ttn_order *o); /* NULL is fine */

int64_t ttn_order_count(const ttn_order *o);   /* places */
int64_t ttn_order_n_group(const ttn_order *o); /* groups of blocks; 1: all are shuffled together */

/* From now on places are those of this epoch. */
void ttn_order_begin(ttn_order *o, int64_t epoch);

/* The number of the sequence at place 0 <= i < count. Ascending places are fast. */
int64_t ttn_order_at(ttn_order *o, int64_t i);

#endif
