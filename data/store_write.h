/* Writing a store (data/store.h): record by record, then file by file, in memory that does not grow with it.
 *
 *     ttn_store_create("uniref50.h5", &kind, &w, err);              status: each call's, checked
 *     for each file:
 *         for each record: ttn_store_add(w, &record, err);
 *         ttn_store_end_source(w, &source, err);                    only when it has been read to its end, and is good
 *     ttn_store_commit(w, err);
 *     ttn_store_destroy(w);
 *
 * Nothing is under its name before the commit, which reads all of it again first. What was there before stays until then.
 */
#ifndef TTN_STORE_WRITE_H
#define TTN_STORE_WRITE_H

#include "data/fasta.h"
#include "data/store.h"

typedef struct {
    const ttn_alphabet *alphabet;
    const char *titin_version; /* which titin writes it; borrowed, as the alphabet */
    const char *packed_for;    /* see data/store.h; NULL or "": nothing; borrowed */
    int has_excluded;          /* records say what was lower case */
    int compressed; /* gzip, for a store that is kept and not trained from: half the size, and ten times slower */
} ttn_store_kind;

typedef struct ttn_store_writer ttn_store_writer;

/* *ret is the caller's. Failures of core/hdf5_write.h. */
TTN_MUST_USE ttn_status ttn_store_create(const char *path, const ttn_store_kind *kind, ttn_store_writer **ret,
                                         ttn_error *err);

/* The next sequence: r->token and r->n, r->lower where kind says so, id (the text `id` in place of the record's own, unless
 * NULL) and header. */
TTN_MUST_USE ttn_status ttn_store_add(ttn_store_writer *w, const ttn_fasta_record *r, const char *id, ttn_error *err);

/* The file that the last records came from: all of *source but `first` and `n`, which are found out here. Texts are copied. */
TTN_MUST_USE ttn_status ttn_store_end_source(ttn_store_writer *w, const ttn_store_source *source, ttn_error *err);

/* Behind the file that it is of: all of *finding but `source`. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_store_add_finding(ttn_store_writer *w, const ttn_store_finding *finding, ttn_error *err);

/* How many sequences an earlier one equals; 0 unless it is said. */
void ttn_store_set_duplicates(ttn_store_writer *w, int64_t n);

/* What was added so far. Entries of `hash`, and tokens, may be read again. */
int64_t ttn_store_added(const ttn_store_writer *w);
TTN_MUST_USE ttn_status ttn_store_added_offsets(ttn_store_writer *w, int64_t first, int64_t n, int64_t *into,
                                                ttn_error *err);
TTN_MUST_USE ttn_status ttn_store_added_tokens(ttn_store_writer *w, int64_t first, int64_t n, uint8_t *into,
                                               ttn_error *err);
TTN_MUST_USE ttn_status ttn_store_added_hashes(ttn_store_writer *w, int64_t first, int64_t n, int64_t *into,
                                               ttn_error *err);

/* The list `cluster`, once, behind the last record: key: (added). */
typedef struct {
    int64_t k, kmers, seed; /* how they were made */
    int64_t n;              /* how many clusters */
} ttn_store_clustering;
TTN_MUST_USE ttn_status ttn_store_set_clusters(ttn_store_writer *w, const ttn_store_clustering *how, const int64_t *key,
                                               ttn_error *err);

/* TTN_EFORMAT: there is no sequence. */
TTN_MUST_USE ttn_status ttn_store_commit(ttn_store_writer *w, ttn_error *err);
void ttn_store_destroy(ttn_store_writer *w); /* NULL is fine; without a commit nothing appears */

#endif
