/* What a model thinks stands where something is hidden.
 *
 *     ttn_filler_create(&options, &f, err);
 *     ttn_filler_run(f, sequence, err);
 *     for (k = 0; k < sequence->n_mask; k++)
 *         ttn_filler_guesses(f, k, top, guess);
 */
#ifndef TTN_FILL_H
#define TTN_FILL_H

#include <stdint.h>
#include "core/device.h"
#include "train/loaded.h"
#include "train/masked.h"

/* Borrowed as long as the filler lives. */
typedef struct {
    const ttn_loaded *model;
    ttn_device *device;
    size_t memory; /* bytes that computing may take */
    int n_thread;
} ttn_filler_options;

typedef struct ttn_filler ttn_filler;

/* *ret is the caller's. TTN_EINVAL: the model predicts next residues, or its vocabulary has no mask; TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_filler_create(const ttn_filler_options *o, ttn_filler **ret, ttn_error *err);
void ttn_filler_destroy(ttn_filler *f); /* NULL is fine */

/* The sequence as a whole, however long: between its specials, as the model was trained. TTN_EINVAL: it hides nothing, or
 * reaches positions that the model does not know; TTN_ENUMERIC: the answer is not finite; TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_filler_run(ttn_filler *f, const ttn_masked *s, ttn_error *err);

typedef struct {
    char letter;
    double p; /* of all tokens of the vocabulary, specials too */
} ttn_guess;

/* The most probable letters at mask k of the last run, counted from 0, the best first; *ret_position: where it is, counted
 * from 1. Returns how many there are, at most `most`. */
int ttn_filler_guesses(const ttn_filler *f, int64_t k, int most, ttn_guess *ret, int64_t *ret_position);

#endif
