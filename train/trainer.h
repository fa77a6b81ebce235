/* A model in training: one optimizer step after the other, over packed batches.
 *
 *     ttn_trainer_create(&options, &t, err);
 *     while ((status = ttn_trainer_step(t, &step, err)) == TTN_OK) …
 *
 * A step is `shards` micro-batches, consecutive batches of the sampler, whose gradients add up in a binary tree
 * (train/shards.h); losses are sums, and the optimizer divides once, by the targets of them all. So a batch, the same
 * sequences as four micro-batches, and two ranks with half of them each make the same step.
 *
 * Nothing here writes a file or decides when a run is evaluated, saved or ended: that is train/training.h.
 */
#ifndef TTN_TRAINER_H
#define TTN_TRAINER_H

#include "autograd/plan.h"
#include "autograd/statistics.h"
#include "core/device.h"
#include "data/sampler.h"
#include "train/model.h"
#include "train/optim.h"
#include "train/schedule.h"

typedef struct {
    /* Borrowed as long as the trainer lives. */
    const ttn_model_spec *model;
    const ttn_sequences *from;
    const ttn_subset *side; /* NULL: all of them */
    ttn_device *device;

    ttn_optim_spec optim;
    ttn_schedule schedule;
    ttn_batch_rules rules;
    ttn_capacity capacity; /* ttn_batch_capacity_of these sequences */
    uint64_t seed;         /* of everything that is random: first weights, order, crops, masks, dropout */
    int64_t epochs;        /* after so many passes over the data a step is TTN_EOF; 0: never */
    int64_t shards;        /* micro-batches of a step; a power of two */
    size_t budget;         /* bytes that the values of a step may take, above 0; addresses for so many are reserved, for
                              evaluations too, so that TTN_NO_BUDGET is none */
    int n_thread;

    /* Called before a step changes weights or moments: whoever is still reading them is waited for. NULL: nobody is. */
    void (*before_change)(void *ctx);
    void *ctx;
} ttn_trainer_options;

typedef struct ttn_trainer ttn_trainer;

/* At step 0, weights by their rules. *ret is the caller's. TTN_ENOMEM, with the smallest budget that would do where it is
 * the budget; what graph, plan, optimizer and sampler return. */
TTN_MUST_USE ttn_status ttn_trainer_create(const ttn_trainer_options *o, ttn_trainer **ret, ttn_error *err);
void ttn_trainer_destroy(ttn_trainer *t); /* NULL is fine */

/* ---- a step ---- */

typedef struct {
    int64_t step;     /* which this was, from 0 */
    double loss;      /* nats a target */
    double accuracy;  /* share of targets whose most probable token is right */
    int64_t targets;  /* of all shards together, as the numbers that follow */
    int64_t residues; /* rows of residues; specials are none */
    int64_t sequences;
    int64_t cropped;
    int64_t rows; /* that hold something; the capacity is shards N */
    double lr;
    double norm;    /* of the gradient, before clipping */
    int is_skipped; /* loss or gradient was not finite: weights and moments are as before */
    ttn_cursor at;  /* of its first batch */
    double waited;  /* s, for data */
} ttn_step;

/* TTN_EOF: the epochs are over, and nothing was done. After another failure (reading the data, a device) the step has not
 * been made, and weights and moments are as before. */
TTN_MUST_USE ttn_status ttn_trainer_step(ttn_trainer *t, ttn_step *ret, ttn_error *err);

/* ---- where it stands ---- */

/* All that goes into a checkpoint beside weights and moments. */
typedef struct {
    int64_t steps;    /* done, skipped ones included */
    int64_t skipped;  /* of them */
    int64_t in_a_row; /* of these the last, one behind the other */
    int64_t residues; /* seen */
    ttn_cursor next;  /* of the batch that comes next */
} ttn_trainer_state;

ttn_trainer_state ttn_trainer_where(const ttn_trainer *t);

/* Go on from there: weights and moments have been loaded, and no step made yet. TTN_EINVAL: the cursor is of another series
 * of batches (ttn_sampler_seek). */
TTN_MUST_USE ttn_status ttn_trainer_go_on(ttn_trainer *t, const ttn_trainer_state *p, ttn_error *err);

/* ---- what it is made of ---- */

ttn_weights *ttn_trainer_weights(const ttn_trainer *t);
const ttn_statistics *ttn_trainer_statistics(const ttn_trainer *t); /* of the last step, skipped or not */
const ttn_plan_report *ttn_trainer_plan(const ttn_trainer *t);      /* of one micro-batch */

/* The memory in which a step's values live, for plans that run between steps. */
ttn_memory *ttn_trainer_memory(const ttn_trainer *t);

/* ---- a step that went wrong ---- */

/* The micro-batches of one step, for who looks into it: take(ctx, batch) gets each, borrowed. Reads the data again. */
typedef ttn_status (*ttn_batch_taker)(void *ctx, const ttn_batch *b, ttn_error *err);
TTN_MUST_USE ttn_status ttn_trainer_batches_of(const ttn_trainer *t, const ttn_step *step, ttn_batch_taker take,
                                               void *ctx, ttn_error *err);

/* Run the micro-batches of a step again with the weights as they are now, and look at every value and gradient: which is the
 * first that is not finite? *ret_shard: of which micro-batch (-1: all are finite), and why holds the sentence that names it.
 * Slow. TTN_OK: that could be found out. */
TTN_MUST_USE ttn_status ttn_trainer_trap(ttn_trainer *t, const ttn_step *step, int64_t *ret_shard, ttn_error *why,
                                         ttn_error *err);

#endif
