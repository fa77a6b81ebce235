/* What a run measures, as named numbers: a record goes to metrics.jsonl, to TensorBoard, into the curves, onto the screen.
 *
 * Everything under "perf/", and the date, is about this machine and this hour; all else is a function of the configuration
 * and the data, and the same to the bit in a run that was stopped and resumed.
 */
#ifndef TTN_METRICS_H
#define TTN_METRICS_H

#include <stdint.h>
#include "core/status.h"

/* constant, name, what it is. The one list: whoever writes or looks for one of these takes the constant. Losses are nats a
 * target, a perplexity is exp of one, errors are standard errors over sequences (train/validation.h). */
#define TTN_METRICS(X)                                                                                           \
    X(TRAIN_LOSS, "train/loss", "loss of the step's targets")                                                    \
    X(TRAIN_ACCURACY, "train/accuracy", "share of the step's targets whose most probable token was right")       \
    X(TRAIN_TARGETS, "train/targets", "targets of the step")                                                     \
    X(TRAIN_RESIDUES, "train/residues", "residues seen since the first step")                                    \
    X(TRAIN_EPOCH, "train/epoch", "passes over the data so far")                                                 \
    X(TRAIN_GRAD_NORM, "train/grad_norm", "norm of the gradient before clipping")                                \
    X(TRAIN_LR, "train/lr", "learning rate")                                                                     \
    X(TRAIN_SKIPPED, "train/skipped", "steps skipped so far because a loss or gradient was not finite")          \
    X(VAL_LOSS, "val/loss", "loss where <mask> was shown")                                                       \
    X(VAL_LOSS_ERROR, "val/loss_error", "its standard error")                                                    \
    X(VAL_PPL, "val/ppl", "perplexity where <mask> was shown")                                                   \
    X(VAL_ACCURACY, "val/accuracy", "share that was right where <mask> was shown")                               \
    X(VAL_TARGETS, "val/targets", "positions where <mask> was shown")                                            \
    X(VAL_SEQUENCES, "val/sequences", "sequences with such positions")                                           \
    X(VAL_LOSS_FREQUENCY, "val/loss_frequency", "loss there of the training residues' frequencies")              \
    X(VAL_PPL_FREQUENCY, "val/ppl_frequency", "its perplexity")                                                  \
    X(VAL_GAIN_FREQUENCY, "val/gain_frequency", "by how much the model's loss is below it")                      \
    X(VAL_GAIN_FREQUENCY_ERROR, "val/gain_frequency_error", "standard error of that difference")                 \
    X(VAL_LOSS_COMPOSITION, "val/loss_composition", "loss there of the protein's own visible composition")       \
    X(VAL_PPL_COMPOSITION, "val/ppl_composition", "its perplexity")                                              \
    X(VAL_GAIN_COMPOSITION, "val/gain_composition", "by how much the model's loss is below it")                  \
    X(VAL_GAIN_COMPOSITION_ERROR, "val/gain_composition_error", "standard error of that difference")             \
    X(VAL_LOSS_SEEN, "val/loss_seen", "loss at targets where a residue, right or wrong, was shown")              \
    X(VAL_PPL_SEEN, "val/ppl_seen", "perplexity there")                                                          \
    X(VAL_ACCURACY_SEEN, "val/accuracy_seen", "share that was right there")                                      \
    X(PERF_RESIDUES_PER_S, "perf/residues_per_s", "residues of proteins a second, without padding and specials") \
    X(PERF_STEP_S, "perf/step_s", "seconds of a step")                                                           \
    X(PERF_WAIT, "perf/wait", "share of the time in which the model waited for data")                            \
    X(PERF_PEAK, "perf/peak", "flops the model needs, as a share of what this machine's matrix products reach")  \
    X(PERF_FILL, "perf/fill", "share of a batch's rows that hold sequences")                                     \
    X(PERF_MEMORY, "perf/memory", "bytes in use")                                                                \
    X(PERF_MEMORY_PREDICTED, "perf/memory_predicted", "bytes that the plan said would be in use")

#define TTN_METRIC_NAME(constant, name, what) extern const char TTN_METRIC_##constant[];
TTN_METRICS(TTN_METRIC_NAME)
#undef TTN_METRIC_NAME

/* What a metric of that name is, or NULL: modules add metrics of their own ("favor/…"), which are in no list. */
const char *ttn_metric_what(const char *name);

/* 1: about this machine and this hour. */
int ttn_metric_is_perf(const char *name);

/* ---- a record ---- */

enum { TTN_METRIC_TEXT = 80 }; /* bytes of a name, with its end */

typedef struct {
    char name[TTN_METRIC_TEXT];
    double value; /* may be no finite number */
} ttn_metric;

/* Start with {.step = …, .date = …}; end with ttn_metrics_drop. */
typedef struct {
    int64_t step; /* optimizer steps done */
    int64_t date; /* seconds since 1970; 0: unknown */
    ttn_metric *metric;
    int64_t n, room;
    int failed; /* there was no memory for one of them: whoever writes the record says so */
} ttn_metrics;

/* The name is printable ASCII without quotes and backslashes, shorter than TTN_METRIC_TEXT, and not in the record yet. */
void ttn_metrics_add(ttn_metrics *r, const char *name, double value);

/* 1: *ret is the value; 0: the record has none of that name. */
int ttn_metrics_find(const ttn_metrics *r, const char *name, double *ret);

void ttn_metrics_clear(ttn_metrics *r); /* without numbers, the memory kept */
void ttn_metrics_drop(ttn_metrics *r);

/* Is it such a name? */
int ttn_metric_name_is_good(const char *name);

/* ---- a mean that forgets ---- */

/* Exponential moving average, free of the start's bias. Start with {0}. Values that are not finite are passed over. */
typedef struct {
    double sum, weight;
} ttn_ema;

/* keep (0 to 1): the share of the past that stays. */
void ttn_ema_add(ttn_ema *e, double value, double keep);
double ttn_ema_value(const ttn_ema *e); /* NaN before the first value */

#endif
