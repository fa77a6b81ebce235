/* How well a model predicts hidden residues of given sequences: at fixed masks, which depend on the seed and the sequence
 * alone, so that the same model gets the same numbers whatever the batches, the threads or the epoch are.
 *
 *     ttn_evaluator_create(&options, &e, err);
 *     ttn_evaluator_run(e, &result, err);          again after every change of the weights
 *
 * With several maskings each sequence is masked in several ways, which makes standard errors smaller and takes as many times
 * as long.
 */
#ifndef TTN_EVALUATE_H
#define TTN_EVALUATE_H

#include "autograd/plan.h"
#include "core/device.h"
#include "data/sampler.h"
#include "train/model.h"
#include "train/validation.h"

typedef struct {
    /* Borrowed as long as the evaluator lives. */
    const ttn_model_spec *model;
    ttn_weights *weights;
    const ttn_sequences *from;
    const ttn_subset *side; /* NULL: all of them */
    ttn_device *device;
    ttn_memory *memory; /* to compute in, shared with plans that do not run at the same time; NULL: its own */

    ttn_batch_rules rules;
    ttn_capacity capacity; /* ttn_batch_capacity_of these sequences */
    ttn_frequencies frequencies;
    uint64_t seed;
    int64_t maskings; /* at least 1 */
    int n_thread;

    /* Told before every batch how much is done, 0 to 1, and asked: 0 ends the evaluation. NULL: nobody is asked. */
    int (*goes_on)(void *ctx, double part);
    void *ctx;
} ttn_evaluator_options;

typedef struct ttn_evaluator ttn_evaluator;

/* *ret is the caller's. TTN_EINVAL: with these rules no residue of these sequences is counted; TTN_ENOMEM; what graph, plan
 * and sampler return. */
TTN_MUST_USE ttn_status ttn_evaluator_create(const ttn_evaluator_options *o, ttn_evaluator **ret, ttn_error *err);
void ttn_evaluator_destroy(ttn_evaluator *e); /* NULL is fine */

/* With the weights as they are. TTN_ESTOPPED: goes_on said so, and *ret is empty. */
TTN_MUST_USE ttn_status ttn_evaluator_run(ttn_evaluator *e, ttn_validation_result *ret, ttn_error *err);

/* Every loss of the last run is a finite number; else TTN_ENUMERIC, with how many sequences' are not, and the first. */
TTN_MUST_USE ttn_status ttn_evaluator_check_finite(const ttn_evaluator *e, ttn_error *err);

/* Of the last run, sequence by sequence of the side: borrowed. */
const ttn_validation *ttn_evaluator_sums(const ttn_evaluator *e);

#endif
