/* Sequences that a model is evaluated on, and how often each residue stands in those that it was trained on.
 *
 * Of a store: what data.split holds out, or all of it; the frequencies are those of the training side. Of files in FASTA:
 * all of them, read into memory; the frequencies are their own, since what the model was trained on is not here. That makes
 * the baselines better than they could be without looking.
 */
#ifndef TTN_EVAL_DATA_H
#define TTN_EVAL_DATA_H

#include <stdint.h>
#include "core/status.h"
#include "core/values.h"
#include "data/sequences.h"
#include "data/subset.h"
#include "train/validation.h"

typedef struct ttn_eval_data ttn_eval_data;

/* path (n): one store, or files in FASTA, "-" for standard input. all: of a store everything, not what is held out. The
 * alphabet is the model's, and values are of its configuration: rows data.*. *ret is the caller's. TTN_EINVAL: a store beside
 * other files, or of another alphabet; nothing is held out; TTN_EFORMAT, TTN_EIO, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_eval_data_open(const char *const *path, int n, int all, const ttn_values *values,
                                           ttn_eval_data **ret, ttn_error *err);
void ttn_eval_data_close(ttn_eval_data *d); /* NULL is fine */

/* Borrowed until it is closed. */
typedef struct {
    const ttn_sequences *from;
    const ttn_subset *side;      /* NULL: all of them */
    int is_store;                /* of a store; 0: of files in FASTA */
    int64_t sequences, residues; /* of the side */
    int64_t longest;             /* residues of the longest sequence of the side */
    int64_t records, left_out;   /* of FASTA: headers in the files, and of them those that are no sequence here */
    int64_t repaired;            /* of FASTA: what was changed while reading, by all rules together (data/fasta.h) */
    ttn_frequencies frequencies;
} ttn_eval_data_facts;

const ttn_eval_data_facts *ttn_eval_data_of(const ttn_eval_data *d);

#endif
