/* Plans for batches of many lengths.
 *
 * Rows are rounded up to a ladder, so that an embedding run over mixed lengths plans a dozen times and not once a protein.
 * All plans of a cache use one region of memory, which grows to the largest of them.
 */
#ifndef TTN_CACHE_H
#define TTN_CACHE_H

#include "autograd/plan.h"

TTN_API_BEGIN

/* The smallest rung that holds n: 0, 480, 960, …, multiples of 480 growing by a quarter; the last one is the
 * largest multiple that there is. */
int64_t ttn_ladder(int64_t n);

/* Record a graph for this capacity and mode (the caller's own number: training, evaluation) and say what to plan. The
 * cache takes the graph, also when it is incomplete: its failure is then reported. Options are copied; device and memory
 * are filled in by the cache. */
typedef ttn_status (*ttn_record)(void *ctx, ttn_extent capacity, int mode, ttn_graph **g, ttn_plan_options *o,
                                 ttn_error *err);

typedef struct ttn_plan_cache ttn_plan_cache;

/* At most max_plans are kept, the least recently used goes. weights: attached to every plan; NULL: none. most: bytes that
 * the shared region may grow to. device NULL: the host. */
TTN_MUST_USE ttn_status ttn_plan_cache_create(ttn_record record, void *ctx, ttn_weights *weights, ttn_device *device,
                                              int max_plans, size_t most, ttn_plan_cache **ret, ttn_error *err);
void ttn_plan_cache_destroy(ttn_plan_cache *c);

/* A plan whose capacity holds `used`: rows and picks rounded up to the ladder, sequences as given. Ready to bind inputs.
 * Borrowed until max_plans other capacities have been asked for; its results can be read until another plan of the cache
 * runs. */
TTN_MUST_USE ttn_status ttn_plan_cache_get(ttn_plan_cache *c, ttn_extent used, int mode, ttn_plan **ret,
                                           ttn_error *err);

/* How often a plan had to be made. */
int64_t ttn_plan_cache_made(const ttn_plan_cache *c);

TTN_API_END
#endif
