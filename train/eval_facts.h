/* How well a model predicts (train/validation.h), as facts. */
#ifndef TTN_EVAL_FACTS_H
#define TTN_EVAL_FACTS_H

#include "train/facts.h"
#include "train/validation.h"

/* An object "masked" of the positions shown as <mask>, and where there are any one "seen" of those where a residue was shown.
 * is_causal: next-residue prediction; then there is the first alone, called "next". */
void ttn_eval_tell(const ttn_validation_result *v, int is_causal, ttn_facts *f);

#endif
