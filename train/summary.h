/* What a run came to, from its history: the best validation, what it says beside the baselines, and what to try next. */
#ifndef TTN_SUMMARY_H
#define TTN_SUMMARY_H

#include <stdint.h>
#include "core/status.h"
#include "train/divergence.h"
#include "train/history.h"

/* A baseline, and by how much (nats a residue) the model's loss is below it; error: the standard error of that. */
typedef struct {
    double loss, gain, error;
} ttn_beside;

/* The validation with the lowest loss. What was not measured is NaN. */
typedef struct {
    int is_there;
    double step;
    double loss, error; /* nats a hidden residue, and the standard error */
    double accuracy, ppl_seen, targets, sequences;
    ttn_beside frequency, composition;
} ttn_best;

ttn_best ttn_best_of(const ttn_history *h);

/* Is the model below the baseline, as far as can be told: by more than two standard errors? */
int ttn_best_beats(const ttn_beside *b);

/* ---- what to try next ---- */

/* Numbers of a run that decide it; what is not known is 0. */
typedef struct {
    int64_t sequences, cropped; /* of the training set */
    int64_t max_len;            /* to which they were cropped */
    int64_t batches;            /* that an epoch is */
    int64_t skipped;            /* steps whose loss or gradient was not finite */
    double fill, wait;          /* shares: rows that hold sequences, time spent waiting for data */
    int has_diverged;           /* ttn_training_has_diverged, or it was about to */
    ttn_episode episode;        /* n 0: none; the longest in which the loss was far above the first one */
} ttn_course;

enum { TTN_ADVICE = 6, TTN_ADVICE_TEXT = 240 };

/* Sentences without a dot at their ends, the most important first; a run that went well has advice, too. */
typedef struct {
    char text[TTN_ADVICE][TTN_ADVICE_TEXT];
    int n;
} ttn_advice;

void ttn_advise(const ttn_history *h, const ttn_course *c, ttn_advice *ret);

#endif
