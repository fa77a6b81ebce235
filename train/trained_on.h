/* How many of the sequences that a model is evaluated on are in its own training set? A run's run.json names the packed copy it
 * was trained from, and its config.resolved.yaml how that was split. */
#ifndef TTN_TRAINED_ON_H
#define TTN_TRAINED_ON_H

#include <limits.h>
#include "train/config.h"
#include "train/eval_data.h"
#include "train/facts.h"

typedef struct {
    int is_known;
    char store[PATH_MAX];     /* the packed copy, when it is known */
    char why[TTN_ERROR_TEXT]; /* it is not known */
    int64_t equal;            /* sequences that one of the training set equals */
} ttn_trained_on;

/* model: the path of a checkpoint, or of a file in it ("run/a/ckpt/step-00000020"). What cannot be found or read makes it
 * unknown. TTN_ENOMEM; what reading the evaluated sequences returns. */
TTN_MUST_USE ttn_status ttn_trained_on_count(const char *model, const ttn_config_table *table,
                                             const ttn_eval_data_facts *d, ttn_trained_on *ret, ttn_error *err);

/* Keys: training_set (a path, or why it is not known), equal_to_training; with a warning where there are any. n: sequences that
 * were evaluated. */
void ttn_trained_on_tell(const ttn_trained_on *t, int64_t n, ttn_facts *f);

#endif
