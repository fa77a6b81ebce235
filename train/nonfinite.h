/* A step whose loss or gradient is not finite: what is written down about it, so that it can be looked into.
 *
 *     run/nan-step-00000412/
 *       step.json      which sequences it was, what the loss and the gradient were, the first value that is not finite
 *       step-00000412/ the checkpoint from which `titin replay RUN 412` makes the step again
 */
#ifndef TTN_NONFINITE_H
#define TTN_NONFINITE_H

#include "core/log.h"
#include "train/files/run_state.h"
#include "train/trainer.h"

/* After so many such steps one behind the other a run stops: it will not find back by itself. */
enum { TTN_NONFINITE_MOST = 3 };

/* "run/nan-step-00000412"; text has PATH_MAX bytes. TTN_EINVAL: the path is too long. */
TTN_MUST_USE ttn_status ttn_nonfinite_path(const char *run, int64_t step, char *text, ttn_error *err);

/* Write the folder of a step that was skipped. The weights are still those it was made with; state is the one before it. A
 * folder of that name from an earlier try is replaced; anything else of that name is renamed to the first free NAME.kept-N,
 * which log is told. why (empty: not found) is filled with what was found out. */
TTN_MUST_USE ttn_status ttn_nonfinite_write(const char *run, ttn_trainer *t, const ttn_step *step,
                                            const ttn_run_state *state, const ttn_log *log, ttn_error *ret_why,
                                            ttn_error *err);

#endif
