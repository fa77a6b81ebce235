/* A data card (data/card.h) as facts: what `titin data check` shows. */
#ifndef TTN_CARD_FACTS_H
#define TTN_CARD_FACTS_H

#include "data/card.h"
#include "train/facts.h"

/* Keys: records, residues, errors, files, shortest, median, mean, longest, duplicate_ids, duplicate_sequences; the lists
 * file, length, residue, found (what was put right or is unusual, by rule), twice (ids and sequences), error. */
void ttn_card_tell(const ttn_card *c, ttn_facts *f);

/* The list found alone, with its warnings. */
void ttn_card_tell_notes(const ttn_card *c, ttn_facts *f);

/* 1: what this rule counts is something that a user should look at, and not only know of. */
int ttn_card_warns_of(int code);

#endif
