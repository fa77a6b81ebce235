/* How well hidden residues are predicted, beside two predictors that know nothing about proteins.
 *
 * With the usual masking (of the targets 80 % are shown as <mask>, 10 % as another residue, 10 % as they are) a model that
 * copies what it sees has a perplexity of 15.45 over all targets and has learned nothing. So targets shown as <mask> are
 * counted apart from those where a residue was seen; it is the former that says what a model knows. The baselines, at the
 * same positions:
 *
 *     frequency      p(t) = f(t)                              what the proteins of the training set are made of
 *     composition    p(t) = (count(t) + 30 f(t)) / (n + 30)   and what can be seen of this protein: of n letters that
 *                                                             are shown, count(t) are t
 *
 * For next-residue prediction everything is a hidden target, and what can be seen at a row is that row and those before it.
 *
 * Sums are kept for each sequence, in the order in which its targets come, and added up in the order of sequences: neither
 * the packing into batches nor the number of ranks changes a bit, as long as all maskings of a sequence go to one
 * ttn_validation in the same order. Standard errors are over sequences, since the residues of one protein are no
 * independent draws: with x the sum of a sequence's losses, m of its targets, r = sum x / sum m the mean of all S,
 *
 *     error^2 = S / (S - 1) * sum (x - r m)^2 / (sum m)^2            (a ratio of sums; Cochran 1977, eq. 6.13)
 */
#ifndef TTN_VALIDATION_H
#define TTN_VALIDATION_H

#include <stdint.h>
#include "core/real.h"
#include "core/status.h"
#include "data/alphabet.h"
#include "data/batch.h"
#include "train/metrics.h"

/* ---- what is known without a model ---- */

typedef struct {
    int n; /* tokens of the alphabet */
    uint8_t is_letter[TTN_MAX_TOKENS];
    double f[TTN_MAX_TOKENS]; /* sum 1 */
} ttn_frequencies;

/* f(t) = (count(t) + 0.01) / (sum + 0.01 n): a token that training never had costs much and not everything.
 * count (a->n): tokens of the training set that can be targets; zeros for all others. */
void ttn_frequencies_of(const ttn_alphabet *a, const int64_t *count, ttn_frequencies *ret);

/* ---- sums ---- */

typedef struct {
    int64_t n, right;                    /* targets; of them, the most probable token was the target */
    double loss, frequency, composition; /* sums of -ln p(target), p the model's and the baselines' */
} ttn_score;

typedef struct {
    ttn_score hidden; /* shown as <mask> */
    ttn_score seen;   /* shown as some residue */
} ttn_sequence_score;

/* A batch, and what a model said of its targets. */
typedef struct {
    const ttn_batch *batch;
    const int64_t *sequence; /* (S) the number of each among the sequences of the validation */
    const real *loss;        /* (R) -ln p(target) */
    const uint8_t *right;    /* (R) the most probable token was the target */
    int is_causal;           /* next-residue prediction (see above) */
} ttn_predicted;

typedef struct ttn_validation ttn_validation;

/* For n sequences, about 80 bytes each; f is copied. *ret is the caller's. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_validation_create(int64_t n, const ttn_frequencies *f, ttn_validation **ret,
                                              ttn_error *err);
void ttn_validation_destroy(ttn_validation *v); /* NULL is fine */
void ttn_validation_clear(ttn_validation *v);

void ttn_validation_add(ttn_validation *v, const ttn_predicted *p);

/* What another one has found, of other sequences of the same set. */
void ttn_validation_merge(ttn_validation *v, const ttn_validation *other);

/* (n), borrowed: by the number of the sequence. */
const ttn_sequence_score *ttn_validation_scores(const ttn_validation *v);

/* ---- results ---- */

typedef struct {
    double mean, error; /* NaN: there is nothing to take it of (no target; for the error, fewer than two sequences) */
} ttn_estimate;

typedef struct {
    int64_t sequences, targets;
    ttn_estimate loss, frequency, composition; /* nats a target; the perplexity is exp of it */
    ttn_estimate gain_frequency,
        gain_composition; /* baseline - loss: the error is of the difference, sequence by sequence */
    ttn_estimate accuracy;
} ttn_validation_part;

typedef struct {
    ttn_validation_part hidden, seen;
} ttn_validation_result;

void ttn_validation_result_of(const ttn_validation *v, ttn_validation_result *ret);

/* As val/… of a record; `seen` only where there is any. */
void ttn_validation_record(const ttn_validation_result *v, ttn_metrics *r);

#endif
