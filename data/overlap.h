/* How much of the held-out proteins was seen in training: what a split is worth.
 *
 * For each held-out protein, the part of its words of 10 residues that stand in some training protein. Where two proteins are
 * unrelated next to none do; more than half of them is nearly the same protein.
 */
#ifndef TTN_OVERLAP_H
#define TTN_OVERLAP_H

#include "data/sweep.h"
#include "data/subset.h"

/* Proteins are looked at while they have so few words together: some 11,000 of usual length. */
enum { TTN_OVERLAP_K = 10, TTN_OVERLAP_WORDS = 4 << 20 };

typedef struct {
    int64_t held_out;  /* sequences */
    int64_t looked_at; /* of them, spread over all: with a word in them, and within TTN_OVERLAP_WORDS */
    int64_t over_10;   /* of those looked at: more than 10 % of the words are in training */
    int64_t over_50;
} ttn_overlap;

/* held_out: of the source's sequences; the others are the training set. Reads everything twice, in 100 MB of memory at most. TTN_ENOMEM,
 * TTN_ESTOPPED, and what the source says. */
TTN_MUST_USE ttn_status ttn_overlap_count(const ttn_sweep_source *source, const ttn_subset *held_out,
                                          ttn_sweep_tell tell, void *ctx, ttn_overlap *ret, ttn_error *err);

/* How many of these sequences, given by their hashes (ttn_store_hash_of), are in the training set: those of the source that
 * are not held out. hash: (n), equal ones are counted each. 24 to 60 bytes a hash, and one pass over the source's hashes.
 * TTN_ENOMEM, and what the source says. */
TTN_MUST_USE ttn_status ttn_overlap_equal(const ttn_sweep_source *source, const ttn_subset *held_out,
                                          const int64_t *hash, int64_t n, int64_t *ret, ttn_error *err);

/* The hashes of what is held out, in order: (ttn_subset_count) and the caller's (ttn_free). TTN_ENOMEM, and what the source
 * says. */
TTN_MUST_USE ttn_status ttn_overlap_hashes(const ttn_sweep_source *source, const ttn_subset *held_out, int64_t **ret,
                                           ttn_error *err);

#endif
