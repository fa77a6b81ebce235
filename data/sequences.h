/* Sequences by number: what batches are made from, whether they lie in memory or in a store on disk.
 *
 * Whoever has sequences implements ttn_sequences; the sampler reads through it and knows nothing else of where they come
 * from. A list in memory is here, too: of small sets, and of tests.
 */
#ifndef TTN_SEQUENCES_H
#define TTN_SEQUENCES_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"
#include "data/alphabet.h"

/* Constant as long as it is used; calls may come from several threads at once, so whoever has a file or a cache behind them
 * has a lock as well. 0 <= i < n; ranges lie within their sequence: the implementation asserts it. */
typedef struct {
    void *self; /* the first argument of every function */
    const ttn_alphabet *alphabet;
    int64_t n; /* sequences */
    uint64_t
        first_sample; /* number i is sample first_sample + i of the data set, which keys all that is random about it */

    /* Residues of sequence i, at least 1, no specials counted. Fast: nothing is read from a file. */
    int64_t (*length)(const void *self, int64_t i);

    /* Residues first, … first + n - 1 of sequence i, counted from 0, as tokens. What went wrong is the system's fault or the
     * file's, and the sentence names it. */
    ttn_status (*tokens)(void *self, int64_t i, int64_t first, int64_t n, uint8_t *into, ttn_error *err);

    /* The same range: into[j] = 1 for a residue that is not to have a loss (it was lower case), else 0. NULL: there is none. */
    ttn_status (*excluded)(void *self, int64_t i, int64_t first, int64_t n, uint8_t *into, ttn_error *err);

    /* Its id for messages, cut to `room` bytes with the closing 0. NULL: they have none. */
    void (*name)(void *self, int64_t i, char *into, size_t room);

    /* Sequences that are read from disk together: block b holds block_first(self, b) up to and without block_first(self,
     * b + 1), and block_first(self, n_block) is n. Reading is fast while it stays within blocks_at_once of them (the cache).
     * With n_block 0 everything is fast, as it is when blocks_at_once is n_block or more. The order of an epoch depends on
     * these numbers where they bind, so a run that is resumed needs the same ones. */
    int64_t n_block, blocks_at_once;
    int64_t (*block_first)(const void *self, int64_t b);
} ttn_sequences;

/* ---- in memory ---- */

typedef struct ttn_sequence_list ttn_sequence_list;

/* The alphabet outlives it. *ret is the caller's. TTN_ENOMEM, as of ttn_sequence_list_add. */
TTN_MUST_USE ttn_status ttn_sequence_list_create(const ttn_alphabet *alphabet, ttn_sequence_list **ret, ttn_error *err);
void ttn_sequence_list_destroy(ttn_sequence_list *l); /* NULL is fine */

/* One more, n >= 1 residues; everything is copied. excluded: (n) as above; NULL: none of them. After a failure the list is as
 * it was. */
TTN_MUST_USE ttn_status ttn_sequence_list_add(ttn_sequence_list *l, const char *name, const uint8_t *token,
                                              const uint8_t *excluded, int64_t n, ttn_error *err);

/* Good until the list is added to or destroyed. */
ttn_sequences ttn_sequence_list_view(ttn_sequence_list *l);

#endif
