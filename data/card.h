/* The data card: what a set of sequence files holds and what was unusual about it, as numbers.
 *
 *     ttn_card *c;                                     status: each call's, checked
 *     ttn_card_create(ttn_alphabet_find("esm"), &c, err);
 *     for each file:
 *         while ((status = ttn_fasta_next(f, &r, err)) == TTN_OK) ttn_card_add(c, r, err);
 *         ttn_card_end_file(c, f, status, err);
 *     const ttn_card_totals *t = ttn_card_total(c);
 *
 * Memory: 100 bytes a record at most, for the ids and sequences that stand twice.
 */
#ifndef TTN_CARD_H
#define TTN_CARD_H

#include <stdint.h>
#include "data/alphabet.h"
#include "data/fasta.h"

enum {
    TTN_CARD_EXACT = 1 << 16, /* lengths below this are counted one by one */
    TTN_CARD_BUCKETS = 40,    /* [i]: lengths from 2^i to 2^(i+1) - 1 */
};

/* Something that stands twice. */
typedef struct {
    int64_t n; /* records whose id (sequence) an earlier one had */
    int n_place;
    struct {
        int file; /* of the later record */
        int64_t line, first_line;
        int first_file;
    } place[TTN_FASTA_PLACES];
} ttn_card_twice;

typedef struct {
    int64_t records; /* with residues */
    int64_t residues;
    int64_t shortest, longest;        /* 0: there is none */
    int64_t length[TTN_CARD_BUCKETS]; /* records */
    int64_t token[TTN_MAX_TOKENS];    /* residues by token, of files that have ended */
    ttn_card_twice id, sequence;
} ttn_card_totals;

typedef struct {
    char *name;
    char *link; /* the file that a symbolic link leads to; NULL: it is none */
    ttn_fasta_counts found;
    ttn_source_facts source; /* but its `link` */
    ttn_status status;       /* TTN_EOF: it was read to its end, and is good */
    int rule;                /* behind its failure */
    char *failure;           /* the sentence; NULL: none */
    int n_skipped;
    char *skipped[TTN_FASTA_PLACES]; /* (n_skipped) the first records that were left out */
} ttn_card_file;

typedef struct ttn_card ttn_card;

/* The alphabet outlives it. *ret is the caller's. TTN_ENOMEM, as of the others. */
TTN_MUST_USE ttn_status ttn_card_create(const ttn_alphabet *alphabet, ttn_card **ret, ttn_error *err);
void ttn_card_destroy(ttn_card *c); /* NULL is fine */

TTN_MUST_USE ttn_status ttn_card_add(ttn_card *c, const ttn_fasta_record *r, ttn_error *err);

/* The file that the last records came from: status is what its last ttn_fasta_next returned, failure its sentence where that
 * is a failure. f may be NULL for a file that could not be opened; name is then shown. */
TTN_MUST_USE ttn_status ttn_card_end_file(ttn_card *c, const char *name, const ttn_fasta *f, ttn_status status,
                                          const ttn_error *failure, ttn_error *err);

/* Borrowed until the card is destroyed or added to. */
const ttn_alphabet *ttn_card_alphabet(const ttn_card *c);
const ttn_card_totals *ttn_card_total(const ttn_card *c);
int ttn_card_n_files(const ttn_card *c);
const ttn_card_file *ttn_card_files(const ttn_card *c);

/* The smallest length that at least this part (0 to 1) of the records reach at most; exact below TTN_CARD_EXACT, else the
 * longest of its bucket. 0: there are no records. */
int64_t ttn_card_quantile(const ttn_card *c, double part);

/* Files that failed, and records that were left out for a fault. */
int64_t ttn_card_errors(const ttn_card *c);

#endif
