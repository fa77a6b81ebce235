/* A store: the sequences of one or more files made ready for training, in one HDF5 file that `titin data pack` writes
 * (data/store_write.h, data/pack.h) and that nobody changes afterwards.
 *
 *     ttn_store *store;
 *     ttn_status status = ttn_store_open("uniref50.h5", 0, &store, err);
 *     ttn_sequences s = ttn_store_sequences(store);
 *
 * What is in it, S sequences with T residues in all; every list is in chunks of at most 1 MiB, and NAME_xxh64 (i64) beside it
 * has the checksum of each of its chunks (core/hdf5_write.h), with which all that is read is compared:
 *
 *     tokens          u8  (T)      residues as tokens of `alphabet`, sequence behind sequence, no specials
 *     excluded        u8  (T)      1: no loss for this residue (it was lower case); only with data.lowercase exclude-from-loss
 *     offset          i64 (S + 1)  sequence i is tokens [offset[i], offset[i + 1])
 *     id, id_offset   u8, i64      UTF-8, the same way; need not be unique
 *     header, header_offset        the whole line behind '>', its first 4 KiB
 *     hash            i64 (S)      XXH3 (64 bits) of its letters, as FASTA would have them
 *     cluster         i64 (S)      hash of the first sequence of its cluster (data/cluster.h); only where clusters were made
 *     alphabet        text         (33) the vocabulary: token v is called alphabet[v]
 *     source, source_link, source_xxh128   text (F)   the files: name, what a symbolic link leads to, checksum of the
 *                                  unpacked bytes
 *     source_first    i64 (F + 1)  file f brought sequences [source_first[f], source_first[f + 1])
 *     source_bytes, source_unpacked, source_records, source_skipped, source_dropped   i64 (F)
 *     found_source, found_rule, found_is_fault, found_n, found_line, found_column     i64 (found)   what the reader counted in
 *                                  the files (ttn_store_finding); only where `found` is above 0
 *
 * and as attributes of the root: format "titin-store", format_version 2, titin_version, alphabet_name, sequences, residues,
 * duplicate_sequences, found; cluster_k, cluster_kmers, cluster_seed, clusters where clusters were made; NAME_xxh128, the
 * checksum of each list of numbers; and packed_for where titin train packed it for itself: what it was packed from and how, as
 * a checksum.
 *
 * Version 1 had no NAME_xxh64, and what was changed in it could not be found while it was read: it is packed again.
 */
#ifndef TTN_STORE_H
#define TTN_STORE_H

#include <stdint.h>
#include "core/hash.h"
#include "core/options.h"
#include "data/alphabet.h"
#include "data/sequences.h"

enum { TTN_STORE_VERSION = 2 };
#define TTN_STORE_FORMAT "titin-store"

/* The row data.cache. */
extern const ttn_option ttn_store_options[];
extern const int ttn_store_n_options;
TTN_MUST_USE ttn_status ttn_store_cache_of(const ttn_option_reader *o, int64_t *ret, ttn_error *err);

/* A file that the sequences came from. Texts are the store's. */
typedef struct {
    const char *name; /* as it was named when it was packed */
    const char *link; /* where a symbolic link led; "": it was none */
    const char *hash; /* XXH3-128 of its bytes, unpacked; 32 hexadecimal digits */
    int64_t first, n; /* its sequences in the store */
    int64_t bytes, unpacked;
    int64_t records; /* headers in it */
    int64_t skipped; /* records left out because of a fault */
    int64_t dropped; /* records left out because the sequence was there before */
} ttn_store_source;

/* What the reader counted in a file under one of its rules (data/fasta.h). */
enum { TTN_STORE_MOST_RULE = 999 };
typedef struct {
    int64_t source;       /* which file */
    int64_t rule;         /* 49: FA049; up to TTN_STORE_MOST_RULE, since a newer titin may know more */
    int64_t is_fault;     /* 1: faults that records were left out for; 0: repaired, or worth knowing */
    int64_t n;            /* at least 1 */
    int64_t line, column; /* of the first, from 1; 0: none */
} ttn_store_finding;

typedef struct {
    int64_t sequences, residues;
    int64_t shortest, longest;
    const ttn_alphabet *alphabet;
    int has_excluded;
    int has_clusters;
    int64_t clusters;                               /* how many */
    int64_t cluster_k, cluster_kmers, cluster_seed; /* see data/cluster.h */
    const char *titin_version;                      /* of the titin that packed it */
    const char *packed_for;                         /* see above; "": it was packed to be kept */
    int64_t n_source;
    const ttn_store_source *source; /* (n_source) */
    int has_findings;               /* 0: the three that follow are not known */
    int64_t duplicates;             /* sequences that an earlier one equals (by their 64-bit hashes) */
    int64_t n_finding;
    const ttn_store_finding *finding; /* (n_finding) in the order of files */
    ttn_hash128 identity;             /* of tokens and offsets: the same for the same data, whatever their names */
} ttn_store_facts;

typedef struct ttn_store ttn_store;

/* cache: bytes of tokens that may be kept in memory; 0: a quarter of what this process can have (core/machine.h). What fits
 * is read at once; of a larger store blocks are kept, those that were used last. Offsets are always in memory, 8 bytes a
 * sequence. *ret is the caller's. TTN_EFORMAT: it is no store, is one of a newer titin, or is damaged; TTN_EINVAL: there is
 * no file; TTN_EIO, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_store_open(const char *path, int64_t cache, ttn_store **ret, ttn_error *err);
void ttn_store_close(ttn_store *s); /* NULL is fine */

/* Borrowed until it is closed. */
const ttn_store_facts *ttn_store_describe(const ttn_store *s);
const char *ttn_store_name(const ttn_store *s); /* for messages */

/* For the sampler: any number of threads. Good until the store is closed. */
ttn_sequences ttn_store_sequences(ttn_store *s);

/* Where sequence i begins among all tokens, 0 <= i <= sequences. */
int64_t ttn_store_offset(const ttn_store *s, int64_t i);

/* Tokens [first, first + n) of all, past the cache: for passes over everything from front to end. */
TTN_MUST_USE ttn_status ttn_store_read(ttn_store *s, int64_t first, int64_t n, uint8_t *into, ttn_error *err);

/* Entries [first, first + n) of the lists `hash` and `cluster` (which must be there). */
TTN_MUST_USE ttn_status ttn_store_hashes(ttn_store *s, int64_t first, int64_t n, int64_t *into, ttn_error *err);
TTN_MUST_USE ttn_status ttn_store_clusters(ttn_store *s, int64_t first, int64_t n, int64_t *into, ttn_error *err);

/* Id and header of sequence i, *ret_… of them bytes without a closing 0: borrowed until the next call of these from the same
 * store. Fast when i goes up: thousands are read at a time. One thread. */
TTN_MUST_USE ttn_status ttn_store_id(ttn_store *s, int64_t i, const char **ret, int64_t *ret_n, ttn_error *err);
TTN_MUST_USE ttn_status ttn_store_header(ttn_store *s, int64_t i, const char **ret, int64_t *ret_n, ttn_error *err);

/* The hash of a sequence as the list `hash` has it: of its letters (ttn_alphabet_letters), which are the same whatever the
 * vocabulary. room: (n) for them. */
int64_t ttn_store_hash_of(const char *letter, const uint8_t *token, int64_t n, char *room);

/* Read everything and compare it with the checksums. TTN_EFORMAT names what differs. */
TTN_MUST_USE ttn_status ttn_store_verify(ttn_store *s, ttn_error *err);

/* The sequences in blocks of some bytes of tokens, for what reads a store larger than its cache: block b begins with
 * ret_first[b], and ret_first[*ret_n] is n. offset: (n + 1). No block is empty; one that holds a long sequence alone is as
 * long as that. *ret_first is the caller's (ttn_free). TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_store_blocks(const int64_t *offset, int64_t n, int64_t bytes, int64_t **ret_first,
                                         int64_t *ret_n, ttn_error *err);

#endif
