/* A store (data/store.h) and its split as facts: what `titin data info`, `titin data pack` and `titin info` show. */
#ifndef TTN_STORE_FACTS_H
#define TTN_STORE_FACTS_H

#include "data/split.h"
#include "data/store.h"
#include "data/sweep.h"
#include "train/facts.h"
#include "train/info.h"

/* Keys: sequences, residues, shortest, median, mean, longest, alphabet, excluded (residues without a loss are marked),
 * packed_by, identity; the object clusters (or none); the lists source and length. TTN_ENOMEM, kept by f as well. */
TTN_MUST_USE ttn_status ttn_store_tell(const ttn_store *s, ttn_facts *f, ttn_error *err);

/* Who hears how far the counting of the overlap is. */
typedef struct {
    ttn_sweep_tell tell; /* NULL: nobody */
    void *ctx;
} ttn_overlap_listener;

/* The object split: kind, valid, seed, sequences and residues that are held out; overlap (NULL: not asked for): how much of them
 * is in training, too, which reads the whole store, and may be stopped: TTN_ESTOPPED. A store without clusters that is to be split by them is a warning. */
TTN_MUST_USE ttn_status ttn_split_tell(ttn_store *s, const ttn_split_rules *r, const ttn_overlap_listener *overlap,
                                       ttn_facts *f, ttn_error *err);

extern const ttn_info_kind ttn_info_store;

#endif
