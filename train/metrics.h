/* What a run measures, as named numbers: a record goes to metrics.jsonl, to TensorBoard, into the curves, onto the screen.
 *
 * Everything under "perf/", and the date, is about this machine and this hour; all else is a function of the configuration
 * and the data, and the same to the bit in a run that was stopped and resumed.
 */
#ifndef TTN_METRICS_H
#define TTN_METRICS_H

#include <stdint.h>
#include "core/status.h"

/* id, name, what it is. The one list: whoever writes or looks for one of these takes ttn_metric_ID. Losses are nats a
 * target, a perplexity is exp of one, errors are standard errors over sequences (train/validation.h). */
#define TTN_METRICS(X)                                                                                           \
    X(train_loss, "train/loss", "loss of the step's targets")                                                    \
    X(train_accuracy, "train/accuracy", "share of the step's targets whose most probable token was right")       \
    X(train_targets, "train/targets", "targets of the step")                                                     \
    X(train_residues, "train/residues", "residues seen since the first step")                                    \
    X(train_epoch, "train/epoch", "passes over the data so far")                                                 \
    X(train_grad_norm, "train/grad_norm", "norm of the gradient before clipping")                                \
    X(train_lr, "train/lr", "learning rate")                                                                     \
    X(train_skipped, "train/skipped", "steps skipped so far because a loss or gradient was not finite")          \
    X(val_loss, "val/loss", "loss where <mask> was shown")                                                       \
    X(val_loss_error, "val/loss_error", "its standard error")                                                    \
    X(val_ppl, "val/ppl", "perplexity where <mask> was shown")                                                   \
    X(val_accuracy, "val/accuracy", "share that was right where <mask> was shown")                               \
    X(val_accuracy_error, "val/accuracy_error", "its standard error")                                            \
    X(val_targets, "val/targets", "positions where <mask> was shown")                                            \
    X(val_sequences, "val/sequences", "sequences with such positions")                                           \
    X(val_loss_frequency, "val/loss_frequency", "loss there of the training residues' frequencies")              \
    X(val_ppl_frequency, "val/ppl_frequency", "its perplexity")                                                  \
    X(val_gain_frequency, "val/gain_frequency", "by how much the model's loss is below it")                      \
    X(val_gain_frequency_error, "val/gain_frequency_error", "standard error of that difference")                 \
    X(val_loss_composition, "val/loss_composition", "loss there of the protein's own visible composition")       \
    X(val_ppl_composition, "val/ppl_composition", "its perplexity")                                              \
    X(val_gain_composition, "val/gain_composition", "by how much the model's loss is below it")                  \
    X(val_gain_composition_error, "val/gain_composition_error", "standard error of that difference")             \
    X(val_loss_seen, "val/loss_seen", "loss at targets where a residue, right or wrong, was shown")              \
    X(val_ppl_seen, "val/ppl_seen", "perplexity there")                                                          \
    X(val_accuracy_seen, "val/accuracy_seen", "share that was right there")                                      \
    X(perf_residues_per_s, "perf/residues_per_s", "residues of proteins a second, without padding and specials") \
    X(perf_step_s, "perf/step_s", "seconds of a step")                                                           \
    X(perf_wait, "perf/wait", "share of the time in which the model waited for data")                            \
    X(perf_peak, "perf/peak", "flops the model needs, as a share of what this machine's matrix products reach")  \
    X(perf_fill, "perf/fill", "share of a batch's rows that hold sequences")                                     \
    X(perf_memory, "perf/memory", "bytes in use")                                                                \
    X(perf_memory_predicted, "perf/memory_predicted", "bytes that the plan said would be in use")

#define TTN_METRIC_NAME(id, name, what) extern const char ttn_metric_##id[];
TTN_METRICS(TTN_METRIC_NAME)
#undef TTN_METRIC_NAME

/* What a metric of that name is, or NULL: modules add metrics of their own ("favor/…"), which are in no list. */
const char *ttn_metric_what(const char *name);

/* 1: about this machine and this hour. */
int ttn_metric_is_perf(const char *name);

/* ---- a record ---- */

enum { TTN_METRIC_TEXT = 80 }; /* bytes of a name, with its end */

/* Metrics of a record that is read, and series of a history (train/history.h), at most: titin writes some 40. Names are compared
 * one by one, and a log that somebody else made may have a new one in every place. */
enum { TTN_MOST_METRICS = 1024 };

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
