/* A run of training, from a configuration to its end: steps (train/trainer.h) at which it is decided what to measure, when
 * to save and when to stop, and the files of its folder.
 *
 *     ttn_training_create(&options, &t, err);     data, model, memory; goes on from a checkpoint; nothing is computed yet
 *     status = ttn_training_run(t, err);
 *     ttn_training_destroy(t);
 *
 *     run/config.resolved.yaml   every value and where it came from
 *     run/run.json               each start of the run: when, where, by which command and build
 *     run/metrics.jsonl, tb/     what was measured
 *     run/ckpt/                  checkpoints (train/files/run_folder.h); best leads to that of the lowest val/loss
 *     run/nan-step-…/            steps that were not finite (train/nonfinite.h)
 *
 * A run that was stopped at any step and goes on has the same weights, moments and metrics (but perf/… and dates) to the bit
 * as one that was not, with any number of threads.
 */
#ifndef TTN_TRAINING_H
#define TTN_TRAINING_H

#include "core/clock.h"
#include "core/log.h"
#include "train/config.h"
#include "train/dataset.h"
#include "train/history.h"
#include "train/pace.h"
#include "train/train_spec.h"
#include "train/trainer.h"

/* ---- what the caller is told and asked ---- */

typedef enum {
    TTN_TRAINING_STEP,      /* `step` was made */
    TTN_TRAINING_EVALUATES, /* is at it, and has done `part`, 0 to 1 */
    TTN_TRAINING_EVALUATED, /* `validation`; is_best: the lowest val/loss so far */
    TTN_TRAINING_SAVED,     /* the checkpoint of `saved` is in place */
} ttn_training_what;

typedef struct {
    ttn_training_what what;
    const ttn_step *step;                    /* the last one; NULL: none since the start */
    const ttn_validation_result *validation; /* of EVALUATED */
    int is_best;
    double part;
    int64_t saved;
    int64_t done, steps;   /* made so far, and in all */
    double ema;            /* of the loss */
    double residues_per_s; /* of the last steps */
    double peak;           /* share of the rate of products; NaN: unknown */
    int64_t memory;        /* bytes in use */
    double left;           /* s until the end; NaN: unknown yet */
} ttn_training_event;

typedef enum {
    TTN_WISH_NONE,
    TTN_WISH_SAVE, /* save when the step is done, and go on */
    TTN_WISH_STOP, /* save when the step is done, and return TTN_ESTOPPED */
} ttn_wish;

typedef struct {
    const ttn_config_table *table;
    const ttn_config *config; /* outlive the run, as what follows */
    const char *folder;       /* of the run; NULL: nothing is written, and it cannot be run: only looked at */
    const char *planned;    /* without a folder: where it would be, to try whether a checkpoint could be saved; NULL */
    const char *beside;     /* where stores are packed (train/dataset.h) */
    const char *checkpoint; /* without a folder: go on from this one, whatever the configuration; NULL: from none */
    int resumes;            /* go on from the newest checkpoint that is whole; where there is none, begin */
    int may_change;         /* with a configuration that differs in what may (train/resume.h) */
    int n_thread;
    double rate;                /* flop/s of products on this machine; 0: unknown */
    const char *const *command; /* (n_command) the words by which the run was started, for run.json */
    int n_command;
    const char *build;  /* how this titin was built, for run.json */
    const char *resume; /* the command that goes on, for report.html */
    const ttn_clock *clock;
    const ttn_log *log;
    const ttn_pack_listener *packing; /* is told how packing goes, and may stop it; NULL: nobody */

    void (*tell)(void *ctx, const ttn_training_event *e);
    ttn_wish (*wish)(void *ctx); /* asked between steps, and between batches of an evaluation; a wish is told once */
    void *ctx;
} ttn_training_options;

/* ---- a run ---- */

typedef struct ttn_training ttn_training;

/* *ret is the caller's. That a checkpoint can be saved is tried (train/files/checkpoint.h) before anything is computed.
 * TTN_EINVAL: what does not fit together in the configuration; there is a run in the folder and `resumes` is 0, or it has
 * another configuration; another process writes there. TTN_ECHECKPOINT, TTN_EFORMAT, TTN_EIO, TTN_ENOMEM, TTN_ESTOPPED
 * (while packing): each with its sentence. */
TTN_MUST_USE ttn_status ttn_training_create(const ttn_training_options *o, ttn_training **ret, ttn_error *err);
void ttn_training_destroy(ttn_training *t); /* NULL is fine */

/* To its end. TTN_ESTOPPED: by a wish, and its state is saved. TTN_ENUMERIC: too many steps one behind the other were not
 * finite, or weights are not; or it has diverged (train/divergence.h), on the way or at its end. A save that fails on the
 * way is told to the log; one that fails at the end is returned. */
TTN_MUST_USE ttn_status ttn_training_run(ttn_training *t, ttn_error *err);

/* What is known before the first step. Borrowed. */
typedef struct {
    const char *folder;
    int64_t resumed; /* the step whose checkpoint it goes on from; -1: none */
    int is_exact;    /* it will have the bits it would have had without a stop */
    const ttn_train_spec *spec;
    const ttn_dataset *data;
    ttn_batch_rules rules;
    ttn_capacity train, valid; /* valid.sequences 0: nothing is held out */
    ttn_dataset_overlap overlap;
    const ttn_model_spec *model;
    int64_t parameters;
    const ttn_plan_report *plan;
    int64_t budget, held; /* bytes: for the values of a step; beside them (train/budget.h) */
    int64_t steps;        /* in all */
    double epochs;        /* that they are */
    int64_t batches;      /* of epoch 0 */
    double fill;          /* share of a batch's rows that hold something, of epoch 0 */
} ttn_training_facts;

const ttn_training_facts *ttn_training_facts_of(const ttn_training *t);
const ttn_history *ttn_training_history(const ttn_training *t); /* NULL without a folder */
ttn_trainer *ttn_training_trainer(ttn_training *t);

/* It is far above its first loss: so far that it ends there, or, when all its steps are made, at its end. */
int ttn_training_has_diverged(const ttn_training *t);

#endif
