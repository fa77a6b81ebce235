/* What batches are to be like: how much they hold, how proteins are framed and cropped, what is predicted; and the
 * capacities that follow from it for a set of sequences, known before anything is planned or read.
 *
 *     ttn_batch_rules rules;
 *     ttn_capacity capacity;
 *     ttn_batch_rules_of(&reader, &rules, err);
 *     ttn_batch_capacity_of(&rules, &sequences, train_side, &capacity, err);
 *     graph of capacity.extent; sampler (data/sampler.h) of both
 */
#ifndef TTN_BATCH_RULES_H
#define TTN_BATCH_RULES_H

#include <stdint.h>
#include "core/options.h"
#include "core/tensor.h"
#include "data/mlm.h"
#include "data/sequences.h"
#include "data/subset.h"

/* Which specials stand around the residues, as far as the vocabulary has them; and what positions count from.
 *
 * ENDS: <cls> stands before residue 1 and <eos> behind the last one, and nowhere else, so a fragment is not taken for a
 *       protein. Positions are those in the whole protein: 0 is <cls>.
 * ALWAYS: both, around whatever piece there is, whose positions count from its own <cls>: what models expect that were
 *       trained with tokenizers which do so.
 * NONE: residues only; position 0 is residue 1 of the protein. */
typedef enum { TTN_FRAME_ENDS, TTN_FRAME_ALWAYS, TTN_FRAME_NONE } ttn_frame;

typedef enum {
    TTN_OBJECTIVE_MLM, /* masked residues */
    TTN_OBJECTIVE_CLM, /* the next token: residues, and <eos> where it stands */
} ttn_objective;

typedef struct {
    int64_t rows;     /* N; rounded up to a multiple of TTN_BATCH_TILE */
    int64_t max_seqs; /* S; 0: what the sequences' lengths suggest */
    int64_t max_len;  /* residues; of longer proteins each epoch sees another piece of so many. 0: never cropped */
    ttn_frame frame;
    ttn_objective objective; /* no key of this table: whoever trains sets it; 0 is MLM */
    ttn_mlm_rules mlm;
} ttn_batch_rules;

/* The rows of the configuration, and what they and those of data/mlm.h stand for. */
extern const ttn_option ttn_batch_options[];
extern const int ttn_batch_n_options;
TTN_MUST_USE ttn_status ttn_batch_rules_of(const ttn_option_reader *o, ttn_batch_rules *ret, ttn_error *err);

/* ---- pieces ---- */

/* What of a protein comes into a batch: residues first, … first + n - 1, counted from 0, and specials about them. */
typedef struct {
    int64_t first, n;
    int has_cls, has_eos;
} ttn_piece;

/* The stream of random numbers of an epoch's crops, and of the fixed ones for validation. */
uint64_t ttn_crop_key(uint64_t seed, int64_t epoch);
uint64_t ttn_crop_fixed_key(uint64_t seed);

/* The piece of a protein of `length` residues: the whole, or with max_len L < length the L residues from an offset on that is
 * uniform over all length - L + 1 of them, so each window of the protein can come, the first and the last as well. */
ttn_piece ttn_piece_of(const ttn_batch_rules *r, const ttn_alphabet *a, uint64_t key, uint64_t sample, int64_t length);

int64_t ttn_piece_rows(const ttn_piece *p);

/* Position of its first row, see ttn_frame. */
int64_t ttn_piece_start(const ttn_batch_rules *r, const ttn_alphabet *a, const ttn_piece *p);

/* n, or what comes after it as a multiple of TTN_BATCH_ALIGN: rows that a sequence takes, and its picks. */
int64_t ttn_batch_align(int64_t n);

/* ---- capacities ---- */

typedef struct {
    ttn_extent extent; /* N, S, R */
    int64_t window;    /* so many sequences are packed together */
    int64_t positions; /* of any row: below this. A table of positions needs as many rows */
    int64_t sequences; /* on this side of the split */
    int64_t residues;  /* of them all, whole */
    int64_t longest;   /* residues of the longest one, whole */
    int64_t cropped;   /* sequences longer than max_len */
    int64_t left_out;  /* residues that an epoch does not see because of it */
    uint64_t lengths;  /* hash of which sequences these are, and how long each is */
} ttn_capacity;

/* For these sequences (side NULL: all of them). Looks at every length once.
 *
 *   S   max_seqs, or 1.5 N / (rows of a sequence on average): few batches are closed because of it. What attention keeps for
 *       a sequence makes S costly, so it is not simply N / 12.
 *   R   multiple of 480 that S sequences in N rows cannot exceed: each takes max(1, floor(rate n + 1/2)) <= rate n + 1
 *       picks, and 11 at most to begin at a multiple of 12. So R >= rate N + 12 S. With CLM every row is a pick: R = N.
 *   window   the multiple of 1,024 that makes 32 batches or more, so that the last one, half empty on average, costs less
 *       than 2 % of the rows.
 *
 * For validation under the same plan, call it for the other side with max_seqs = extent.seqs of the first: N, S and R are
 * then the same.
 *
 * TTN_EINVAL: there are none; or one of them does not fit into N rows: the sentence names it, and both ways out. */
TTN_MUST_USE ttn_status ttn_batch_capacity_of(const ttn_batch_rules *r, const ttn_sequences *s, const ttn_subset *side,
                                              ttn_capacity *ret, ttn_error *err);

#endif
