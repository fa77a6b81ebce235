/* What changes between optimizer steps and is no parameter: random projections that are drawn again.
 *
 * Whoever trains calls this before the first step (step 0), when a run is resumed, and after each optimizer step with the
 * number of steps made: never between the micro-batches of a step, and never while evaluating, whose plans share the states. */
#ifndef TTN_RENEW_H
#define TTN_RENEW_H

#include "autograd/graph.h"
#include "autograd/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The statistics of the node that made `value` in the step that was made, all micro-batches and ranks folded
 * (ttn_op.stats): what ttn_plan_stat gives for one. NULL: there are none. */
typedef struct {
    const double *(*of)(void *ctx, int value); /* ttn_statistics_of (autograd/statistics.h) */
    void *ctx;
} ttn_renew_stats;

/* All attention nodes of g with states, in w. stats NULL: there are none yet. The message begins with the node's name. */
TTN_MUST_USE ttn_status ttn_renew(const ttn_graph *g, ttn_weights *w, uint64_t seed, int64_t step,
                                  const ttn_renew_stats *stats, ttn_error *err);

#ifdef __cplusplus
}
#endif
#endif
