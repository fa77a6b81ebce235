/* Files of sequences into one store: read, cleaned by the rules of data/fasta.h, freed of doubles where that is asked for,
 * clustered, written (data/store.h). Memory: that of one record, of the tables for doubles and ids where they are asked for, of
 * clustering, and 8 bytes a sequence while equal ones are counted.
 */
#ifndef TTN_PACK_H
#define TTN_PACK_H

#include "data/card.h"
#include "data/cluster.h"
#include "data/fasta.h"
#include "data/store.h"

typedef struct {
    ttn_fasta_rules fasta; /* its `ids` is not looked at */
    ttn_fasta_ids ids;     /* over all files */
    int drops_doubles;     /* of several equal sequences the first is kept; 24 to 60 bytes a sequence */
    int is_compressed;     /* gzip */
    int makes_clusters;
    ttn_cluster_rules cluster;
    const char *titin_version; /* stands in the store */
    const char *packed_for;    /* the same; NULL: nothing */
} ttn_pack_rules;

/* The rows pack.compress and data.dedup; and all of the above but ids, makes_clusters and titin_version from their rows. */
extern const ttn_option ttn_pack_options[];
extern const int ttn_pack_n_options;
TTN_MUST_USE ttn_status ttn_pack_rules_of(const ttn_option_reader *o, ttn_own_alphabet *own, ttn_pack_rules *ret,
                                          ttn_error *err);

typedef enum { TTN_PACK_READS, TTN_PACK_CLUSTERS, TTN_PACK_CHECKS } ttn_pack_phase;

typedef struct {
    ttn_pack_phase phase;
    int file;          /* number of the file that is read */
    int64_t bytes;     /* read, of all files, as they lie on the disk */
    int64_t sequences; /* stored so far */
    double part;       /* of clustering, 0 to 1 */
} ttn_pack_progress;

/* Called every MiB or so; anything but 0 stops it with TTN_ESTOPPED. */
typedef struct {
    int (*tell)(void *ctx, const ttn_pack_progress *p);
    void *ctx;
} ttn_pack_listener;

typedef struct {
    int64_t dropped;           /* records whose sequence was there before */
    ttn_cluster_facts cluster; /* zeros: none were made */
} ttn_pack_facts;

/* n files, "-" for standard input, to a store at `store`. card (an empty one, or NULL) gets the files with what was
 * found in them, but no records.
 * Whatever fails, also at the end of the last file, leaves what was at `store` before. TTN_EFORMAT and the like: of the first
 * file that is not good; TTN_ESTOPPED. */
TTN_MUST_USE ttn_status ttn_pack(const char *const *file, int n, const char *store, const ttn_pack_rules *rules,
                                 const ttn_pack_listener *listener, ttn_card *card, ttn_pack_facts *ret,
                                 ttn_error *err);

#endif
