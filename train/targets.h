/* Is there anything to predict in the sequences of one side? Asked before a run and before an evaluation: a loss over nothing
 * is no number. */
#ifndef TTN_TARGETS_H
#define TTN_TARGETS_H

#include "data/sampler.h"

/* The batches of o, up to the first that has what is looked for: a residue with a loss; is_hidden: one that is shown as <mask>.
 * epochs above 0. Usually that is the first batch. *ret: 1, there is one. What the sampler returns. */
TTN_MUST_USE ttn_status ttn_targets_exist(const ttn_sampler_options *o, int is_hidden, int *ret, ttn_error *err);

#endif
