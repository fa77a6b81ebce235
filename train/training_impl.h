/* What the two halves of a run share: how it is set up (training_create.c), and how it goes (training.c). */
#ifndef TTN_TRAINING_IMPL_H
#define TTN_TRAINING_IMPL_H

#include "train/divergence.h"
#include "train/evaluate.h"
#include "train/files/run_folder.h"
#include "train/files/saver.h"
#include "train/journal.h"
#include "train/resume.h"
#include "train/training.h"

struct ttn_training {
    ttn_training_options options;
    ttn_train_spec spec;
    ttn_training_facts facts;
    ttn_standing standing; /* the trainer's part of it is as of the last step */
    char *config;          /* as it stands in checkpoints */

    ttn_run_folder *folder; /* this and what writes to it: NULL when only looked at */
    ttn_journal *journal;
    ttn_saver *saver;

    ttn_dataset *data;
    ttn_device *device;
    ttn_model_spec *model;
    ttn_trainer *trainer;
    ttn_evaluator *evaluator; /* NULL: nothing is held out */
    ttn_blas_info blas;

    ttn_divergence divergence;
    int64_t told_episode; /* the first step of the one that the log was told of; -1: none */

    /* of this start */
    ttn_pace pace;
    ttn_ema ema;
    ttn_step step; /* the last one */
    int has_stepped, has_ended;
    int64_t evaluated, saved; /* the last step at which that was done; -1: none */
    int64_t told_saved;       /* of the last save that the caller was told of */
    int wishes_stop;          /* it came in the middle of an evaluation */
    int wishes_save;
    struct {
        double seconds, waited;
        int64_t steps, residues, rows;
    } since; /* the last record */
    struct {
        double seconds, waited;
    } all; /* steps of this start */
};

/* The state of a checkpoint made now; borrows from t and room. */
void ttn_training_state(const ttn_training *t, const ttn_standing *standing, ttn_standing_room *room,
                        ttn_run_state *ret);

/* A ttn_evaluator's goes_on: ctx is the ttn_training. */
int ttn_training_goes_on(void *ctx, double part);

#endif
