/* What the section `train` of a configuration says: how long, how often, where. */
#ifndef TTN_TRAIN_SPEC_H
#define TTN_TRAIN_SPEC_H

#include <stdint.h>
#include "core/values.h"
#include "data/batch_rules.h"
#include "train/config.h"

typedef struct {
    /* How long: exactly one is not 0. */
    int64_t steps, epochs, residues;
    ttn_objective objective;
    int64_t shards;  /* micro-batches of a step */
    int64_t memory;  /* bytes of the values of a step; 0: auto */
    int64_t threads; /* 0: as many as this process may use */
    int64_t seed;
    int64_t eval_every; /* steps; 0: at the end alone */
    int64_t maskings;   /* of each sequence in an evaluation */
    int64_t save_every; /* steps; 0: at the end, and when a signal asks for it */
    int64_t log_every;  /* steps */
    int64_t keep;       /* checkpoints, beside the best one */
    const char *out;    /* the run's folder; "auto": run/NAME of the configuration. Borrowed from the values */
} ttn_train_spec;

/* Rows train.*. */
extern const ttn_config_module ttn_train_module;

/* TTN_EINVAL: none or several of train.steps, train.epochs and train.tokens; a train.memory that is no size. */
TTN_MUST_USE ttn_status ttn_train_spec_of(const ttn_values *values, ttn_train_spec *ret, ttn_error *err);

/* The same for who does not ask how long: none or several of these three may be given. */
TTN_MUST_USE ttn_status ttn_train_spec_read(const ttn_values *values, ttn_train_spec *ret, ttn_error *err);

/* How many threads compute: train.threads, or where that is 0 what fits this many cores (core/start.h). */
int ttn_train_spec_threads(const ttn_train_spec *s, int cores);

#endif
