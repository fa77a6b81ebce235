/* Which residues a model has to predict, and what it sees in their places (masked language modelling).
 *
 *     J. Devlin, M.-W. Chang, K. Lee, K. Toutanova: BERT. NAACL 2019: of the picks 80 % are shown as <mask>, 10 % as
 *     another residue, 10 % as they are.
 *
 * Of n residues that can have a loss, exactly max(1, floor(rate n + 1/2)) are picked: those with the smallest random
 * numbers. A residue's number is a function of (key, sample, position in the protein): so masks do not depend on what else
 * is in the batch, on ranks, or on where a run was resumed, and each of the positions is picked equally often.
 * Specials are never picked, and never stand in for a residue.
 */
#ifndef TTN_MLM_H
#define TTN_MLM_H

#include <stdint.h>
#include "core/options.h"
#include "core/status.h"
#include "data/alphabet.h"

typedef enum {
    TTN_REPLACE_RESIDUES,   /* by one of the 20 standard residues */
    TTN_REPLACE_VOCABULARY, /* by any letter that the vocabulary has: X, B, U, Z and O as well */
} ttn_mlm_replace;

typedef struct {
    double rate;   /* of residues that are picked; above 0, at most 1 */
    double mask;   /* of picks: shown as <mask> */
    double random; /* of picks: shown as a residue drawn at random, by chance the right one; mask + random <= 1 */
    ttn_mlm_replace replace; /* what is drawn from */
} ttn_mlm_rules;

/* The rows of the configuration, and what they stand for. TTN_EINVAL: mask and random are more than all. */
extern const ttn_option ttn_mlm_options[];
extern const int ttn_mlm_n_options;
TTN_MUST_USE ttn_status ttn_mlm_rules_of(const ttn_option_reader *o, ttn_mlm_rules *ret, ttn_error *err);

/* Picks of n residues that can have a loss; 0 when n is 0. */
int64_t ttn_mlm_picks(double rate, int64_t n);

/* The stream of random numbers of an epoch's masks; and of one of several fixed maskings k = 0, 1, …, for validation, which
 * is to be the same whenever it is done. */
uint64_t ttn_mlm_key(uint64_t seed, int64_t epoch);
uint64_t ttn_mlm_fixed_key(uint64_t seed, int64_t k);

/* Scratch for sequences of up to `most` residues. The alphabet outlives it; *ret is the caller's. TTN_ENOMEM; TTN_EINVAL:
 * the alphabet has no mask. */
typedef struct ttn_mlm ttn_mlm;
TTN_MUST_USE ttn_status ttn_mlm_create(const ttn_alphabet *alphabet, const ttn_mlm_rules *rules, int64_t most,
                                       ttn_mlm **ret, ttn_error *err);
void ttn_mlm_destroy(ttn_mlm *m); /* NULL is fine */

/* n residues of which the first is residue `position` of its protein, counted from 0. excluded: (n) 1: never picked; NULL:
 * all can be. Fills (p = the value returned, at most ttn_mlm_picks(rate, n)):
 *     pick (p) ascending, 0 … n - 1      target (p) the residue that is there      shown (p) 1: the model sees <mask>
 * and puts into token (n) what the model sees. With is_bare the rows have no specials about them, and then the last pick
 * stays visible where otherwise all n would be masks: such a sequence says nothing, and ESM's token dropout would divide by
 * the zero visible part of it. Returns 0, and picks nothing, when everything is excluded. */
int64_t ttn_mlm_mask(ttn_mlm *m, uint64_t key, uint64_t sample, int64_t position, int64_t n, const uint8_t *excluded,
                     int is_bare, uint8_t *token, int64_t *pick, uint8_t *target, uint8_t *shown);

#endif
