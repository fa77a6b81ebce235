/* Going on from a checkpoint: where training stood, and whether the configuration is still the one it had. */
#ifndef TTN_RESUME_H
#define TTN_RESUME_H

#include "core/log.h"
#include "train/config.h"
#include "train/files/run_state.h"
#include "train/trainer.h"

/* ---- where it stood ---- */

typedef struct {
    ttn_trainer_state trainer;
    int64_t best_step; /* whose model had the lowest val/loss; -1: none was evaluated */
    double best_loss;
    int64_t longest; /* ttn_model_use's, of the data that the run began with: what attention.kind auto was decided by */
} ttn_standing;

/* The lists that a ttn_run_state borrows. */
enum { TTN_STANDING_SEEDS = 2, TTN_STANDING_SERIES = 4 };
typedef struct {
    ttn_named_number seed[TTN_STANDING_SEEDS];
    ttn_named_series series[TTN_STANDING_SERIES];
    double skipped[2], residues[1], best[2], longest[1];
} ttn_standing_room;

/* Fills step, cursor, seeds and series of *into, which borrows from room. */
void ttn_standing_write(const ttn_standing *s, uint64_t seed, ttn_standing_room *room, ttn_run_state *into);

/* TTN_ECHECKPOINT: the state lacks what the function above writes, but for `longest`. */
TTN_MUST_USE ttn_status ttn_standing_read(const ttn_run_state *from, ttn_standing *ret, ttn_error *err);

/* The `longest` of that state; 0: it does not say, as those of early versions. */
int64_t ttn_standing_longest(const ttn_run_state *from);

/* ---- the configuration ---- */

/* May a run whose checkpoint has the configuration `then` go on with `now`? What differs is said to log, one line a key.
 * Keys that change nothing about the model (threads, memory, how often is logged) always may; those about what is still to
 * come (how long, the optimizer, the schedule) where may_change says so; those that checkpoint and data depend on never.
 * TTN_EINVAL: no, with the keys and what to do; TTN_ECHECKPOINT: `then` cannot be read; TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_resume_check(const ttn_config_table *table, const char *then, const ttn_config *now,
                                         int may_change, const ttn_log *log, ttn_error *err);

/* What may happen to a key of the configuration when a run goes on. */
typedef enum { TTN_KEY_FREE, TTN_KEY_ASKED, TTN_KEY_FIXED } ttn_resume_key;
ttn_resume_key ttn_resume_key_of(const char *key);

#endif
