/* What attention says about itself, over the micro-batches of a step: the statistics of a graph's attention nodes
 * (ttn_op.stats), folded, for whoever renews states (autograd/renew.h) and whoever reports.
 *
 *     ttn_statistics_start(s);
 *     for each micro-batch: ttn_plan_run(plan, …), ttn_statistics_add(s, plan);
 *     ttn_renew(g, w, seed, step, &(ttn_renew_stats){ttn_statistics_of, s}, err);
 *     ttn_statistics_tell(s, take, ctx);
 *
 * Which numbers there are, and which of them are told as means, is said by the op's table alone. */
#ifndef TTN_STATISTICS_H
#define TTN_STATISTICS_H

#include "autograd/graph.h"
#include "autograd/plan.h"
#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ttn_statistics ttn_statistics;

/* Of all nodes of g that are attention and have statistics; g outlives it. *ret is the caller's. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_statistics_create(const ttn_graph *g, ttn_statistics **ret, ttn_error *err);
void ttn_statistics_destroy(ttn_statistics *s); /* NULL is fine */

/* Nothing is in them: a step begins. */
void ttn_statistics_start(ttn_statistics *s);

/* Fold in those of the plan's last run; the plan is of the same graph, and needs its nodes. */
void ttn_statistics_add(ttn_statistics *s, const ttn_plan *p);

/* As in ttn_renew_stats: those of the node that made `value`, one after the other as forward writes them. NULL: it has
 * none, or nothing was added since the start. */
const double *ttn_statistics_of(void *statistics, int value);

/* One number of one layer; heads are folded as micro-batches are. */
typedef struct {
    const char *kind; /* "favor": of the attention */
    int layer;        /* number among the graph's attention nodes */
    const char *name; /* the statistic's, or its mean's */
    double value;
} ttn_told_statistic;

/* All of them in the order of nodes and tables, to take; none if nothing was added since the start. A sum that others are
 * over is told through them alone, and a mean over nothing is not told. */
void ttn_statistics_tell(const ttn_statistics *s, void (*take)(void *ctx, const ttn_told_statistic *told), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
