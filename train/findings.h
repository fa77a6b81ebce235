/* What was left out of the files of a data set and repaired in them (ttn_store_finding), in words and as sums over the files:
 * what the first screen of training says, its report, run.json and `titin data info`. */
#ifndef TTN_FINDINGS_H
#define TTN_FINDINGS_H

#include "data/store.h"
#include "train/dataset.h"
#include "train/facts.h"

/* "digits", "lower-case residues"; "left out", "repaired" or "accepted". */
const char *ttn_finding_what(const ttn_store_finding *f);
const char *ttn_finding_outcome(const ttn_store_finding *f);

enum { TTN_FINDINGS_TEXT = 1024 };

/* Texts name each rule once, with its count over all files: "digits: 3 (FA049), no residues: 1 (FA027)"; "": there is none. */
typedef struct {
    int is_known; /* 0: the store was packed by an early titin, and all that follows is empty but `records` and `dropped` */
    int64_t records;                      /* in the files */
    int64_t left_out;                     /* of them: for a fault, or because there was no residue in them */
    int64_t dropped;                      /* of them: because the sequence was there before (data.dedup) */
    int64_t duplicates;                   /* sequences that are here and equal an earlier one */
    char left_out_for[TTN_FINDINGS_TEXT]; /* why */
    char repaired[TTN_FINDINGS_TEXT];     /* and counted; the sequence is here */
    char unusual[TTN_FINDINGS_TEXT];      /* accepted as it is, and worth a look (ttn_card_warns_of) */
    const ttn_store_source *source;       /* the first file with any of these three; NULL: none has */
} ttn_findings;

void ttn_findings_of(const ttn_store_facts *s, ttn_findings *ret);

/* Keys: records, left_out, duplicate_sequences (none: not known), and the list found, by file. With a warning where it is
 * not known. */
void ttn_findings_tell(const ttn_store_facts *s, ttn_facts *f);

/* The object overlap: how much of what is held out is trained on, too; none where it was not counted. */
void ttn_overlap_tell(const ttn_dataset_overlap *o, ttn_facts *f);

#endif
