/* From a recorded graph to a flat list of steps over one block of memory whose size is known before it is allocated.
 *
 *     ttn_start(n_thread, &err);                    once in a process (core/start.h)
 *     ttn_plan_create(g, &options, &plan, &err);    schedule and offsets; nothing large is allocated
 *     ttn_plan_attach(plan, weights, &err);         parameters, gradients and states live there
 *     ttn_plan_bind(plan, "tokens", tokens, &err);  every input, by name
 *     ttn_plan_run(plan, &feed, loss_weight, &err); forward and backward; fresh gradients every time
 *     ttn_plan_read(plan, loss, &value, &err);
 *
 * The graph, the weights, the device and the memory must live as long as the plan.
 */
#ifndef TTN_PLAN_H
#define TTN_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include "autograd/feed.h"
#include "autograd/graph.h"
#include "autograd/weights.h"
#include "core/status.h"

TTN_API_BEGIN

typedef struct ttn_plan ttn_plan;
typedef struct ttn_call ttn_call;     /* what a kernel gets: autograd/op.h, for taps inside the library */
typedef struct ttn_memory ttn_memory; /* core/device.h */

/* Called right after the forward step of `value`'s node, while its inputs are there. */
typedef struct {
    int value;
    ttn_status (*fn)(const ttn_call *c, void *ctx, ttn_error *err);
    void *ctx;
} ttn_tap;

/* A budget that nothing exceeds: keep everything. */
#define TTN_NO_BUDGET SIZE_MAX

enum {
    TTN_PLAN_POISON = 1,   /* fill memory with NaN before a run, and every buffer when its life ends */
    TTN_PLAN_NO_SHARE = 2, /* no buffer is shared between an input and an output of one step */
};

typedef struct {
    const int *keep; /* values that can be read after a run */
    int n_keep;
    const int *loss; /* scalars, readable too; none: an inference plan, nothing is kept for backward */
    int n_loss;
    const int *stat; /* values whose node's statistics are wanted even if nothing else needs the node */
    int n_stat;
    size_t budget; /* bytes of the block; 0: recompute exactly the marked blocks */
    const ttn_tap *tap;
    int n_tap;
    int n_thread;       /* 0: 1; at most what ttn_start was told */
    ttn_device *device; /* NULL: the host */
    /* The block to use, shared by plans that do not run at the same time: the results of one are gone when the next runs, and
     * reading them is refused. NULL: a block of its own. */
    ttn_memory *memory;
    unsigned debug; /* TTN_PLAN_… */
    /* Called when the last writer of a parameter's gradient has been queued: once for each, in slab order but where a
     * parameter's first reader leads to no loss. */
    void (*gradient_final)(void *ctx, const char *name);
    void *gradient_final_ctx;
} ttn_plan_options;

/* Schedule g, which from then on cannot grow (freezing, for later plans, goes on). options NULL: all defaults. *ret is the
 * caller's; on failure NULL and a sentence that names nodes by their dotted names. TTN_EINVAL: ttn_start was not called, or
 * not for as many threads; a loss that is no scalar, a number that is no value. TTN_ENOMEM: a budget too small (with the
 * smallest that would do), out of memory. */
TTN_MUST_USE ttn_status ttn_plan_create(ttn_graph *g, const ttn_plan_options *options, ttn_plan **ret, ttn_error *err);
void ttn_plan_destroy(ttn_plan *p);

/* Every parameter and state of the graph must be in w, with the same shape; w gets its gradient slab if the plan needs
 * one. Not needed for a graph without either. */
TTN_MUST_USE ttn_status ttn_plan_attach(ttn_plan *p, ttn_weights *w, ttn_error *err);

/* data: the used part of the input (feed.used of its rows, or all of it), on the host; read at the start of every run. */
TTN_MUST_USE ttn_status ttn_plan_bind(ttn_plan *p, const char *input, const void *data, ttn_error *err);

/* Forward and, if there are losses, backward. loss_weight: one factor for each loss, NULL: 1. A loss is a sum, so a weight
 * of 1 / count over all micro-batches gives the mean. Gradients are written, not added to: a plan's run starts from 0.
 * TTN_EINVAL: an input or the weights are missing, the feed does not fit, OpenBLAS was given threads again. After a failure
 * the plan can be run again. */
TTN_MUST_USE ttn_status ttn_plan_run(ttn_plan *p, const ttn_feed *feed, const double *loss_weight, ttn_error *err);

/* Copy a kept value or a loss of the last run to the host: its capacity's bytes. TTN_EINVAL: not kept, no run has ended
 * well since the last failure, or another plan has used the shared memory since. */
TTN_MUST_USE ttn_status ttn_plan_read(const ttn_plan *p, int value, void *data, ttn_error *err);

/* Statistics of the node that made `value`, from the last run: *n doubles, borrowed until the next run. NULL, 0: it has
 * none or was not needed. */
const double *ttn_plan_stat(const ttn_plan *p, int value, int *n);

/* Is the gradient of this parameter written by a run? */
int ttn_plan_trains(const ttn_plan *p, int param);

/* Look at every output and gradient after every step; the first that is not finite ends the run with TTN_ENUMERIC and the
 * names of the node, the op and the tensor. Slow: for finding out, not for training. */
void ttn_plan_trap(ttn_plan *p, int on);

/* Measure every step with this clock from now on (it waits for the device after each); NULL: stop. */
void ttn_plan_time(ttn_plan *p, double (*now)(void *ctx), void *ctx);

/* ---- what a plan is, as data ---- */

/* Moving a byte takes about as long as so many flops of a matrix product (90 GF/s beside 11 GB/s a core): what is made again
 * is chosen by it, and times are foretold. */
enum { TTN_FLOPS_PER_BYTE = 8 };

typedef enum { TTN_STEP_FORWARD, TTN_STEP_AGAIN, TTN_STEP_BACKWARD } ttn_step_kind;

typedef struct {
    ttn_step_kind kind;
    const char *node, *op;
    int n_in, n_out;
    const ttn_desc *in, *out;
    size_t alive; /* bytes of the block in use during the step */
    double done;  /* flops, recomputed work included */
    double useful;
    double bytes;   /* moved */
    double seconds; /* measured, all runs since ttn_plan_time together */
} ttn_plan_step;

/* A buffer alive at the peak. */
typedef struct {
    const char *name; /* the node's, or the input's */
    const char *what; /* "input", "value", "kept for backward", "gradient", "workspace" */
    size_t bytes;
} ttn_plan_alive;

/* A node whose forward runs again, or (lean) that is planned without its spare buffer. */
typedef struct {
    const char *node, *op;
    int lean;
    size_t bytes; /* that need not be kept */
    double flops; /* that this costs */
} ttn_plan_again;

typedef struct {
    size_t bytes; /* of the block */
    size_t peak;  /* most bytes alive at once: no packing can do better */
    size_t sum;   /* if nothing were used twice */
    int peak_step;
    const ttn_plan_step *step;
    int n_step;
    const ttn_plan_alive *alive; /* at the peak, largest first */
    int n_alive;
    const ttn_plan_again *again;
    int n_again;
    const char *const *dropped; /* nodes that nothing asked for needs */
    int n_dropped;
    const char *const *untrained; /* trainable parameters that no loss reaches */
    int n_untrained;
    double done, useful; /* flops of a run */
} ttn_plan_report;

/* Borrowed until the plan is destroyed. */
const ttn_plan_report *ttn_plan_report_of(const ttn_plan *p);

TTN_API_END
#endif
