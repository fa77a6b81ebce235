/* A step of a run once more: to look into one that was not finite. Nothing of the run is changed. */
#ifndef TTN_REPLAY_H
#define TTN_REPLAY_H

#include <limits.h>
#include "train/training.h"

/* The checkpoint from which the step can be made: that of run/nan-step-STEP, else the newest of the run at or before it; path
 * has PATH_MAX bytes. Whether it is whole shows when it is opened. TTN_EINVAL: there is none. */
TTN_MUST_USE ttn_status ttn_replay_find(const char *run, int64_t step, char *path, ttn_error *err);

typedef struct {
    ttn_step step;
    int64_t shard; /* the first micro-batch with a value that is not finite; -1: none */
    ttn_error why; /* which value that was */
} ttn_replayed;

/* t goes on from the checkpoint (ttn_training_options.checkpoint): steps up to `step` are made, then it, and where that is not
 * finite its values are looked at one by one. TTN_EINVAL: the checkpoint is of a later step, or the run has no such
 * step. */
TTN_MUST_USE ttn_status ttn_replay(ttn_training *t, int64_t step, ttn_replayed *ret, ttn_error *err);

#endif
