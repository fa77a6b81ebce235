/* A plan of the model over one packed batch. */
#ifndef TTN_RUN_BATCH_H
#define TTN_RUN_BATCH_H

#include "autograd/plan.h"
#include "data/batch.h"

/* For dropout: masks are functions of (seed, step, sample, position), and there are none without is_training. */
typedef struct {
    uint64_t seed;
    int64_t step; /* optimizer steps before this one */
    int is_training;
} ttn_run_batch_when;

/* Bind the inputs of a plan of ttn_model_build with a loss (train/model.h), whose capacities are the batch's, and run it. */
TTN_MUST_USE ttn_status ttn_run_batch(ttn_plan *p, const ttn_batch *b, const ttn_run_batch_when *when, ttn_error *err);

#endif
