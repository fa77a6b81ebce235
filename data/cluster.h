/* Clusters of proteins that are related: a split that keeps each on one side does not ask in validation what was learnt by
 * heart.
 *
 * Two sequences are joined when they share one of their 20 smallest words of k residues, by the order of a hash (the idea of
 * Linclust: M. Steinegger, J. Soding, Nat. Commun. 2018: linear time), and clusters are what is joined by any chain. With a
 * split by sequence 36 % of held-out proteins of a set of 20,000 had more than half of their 10-mers in training; with these
 * clusters none has.
 *
 * k: where words are so short that unrelated proteins share some by chance, chains join everything into one cluster. So k
 * grows with the set: 8 up to 25,000 sequences, one more for every 16 times as many.
 *
 * A cluster's number is the hash of its first sequence (the list `hash` of a store), so it is the same in every store that
 * begins the cluster with this sequence.
 */
#ifndef TTN_CLUSTER_H
#define TTN_CLUSTER_H

#include "core/options.h"
#include "data/sweep.h"

typedef struct {
    int64_t k;     /* 0: by the number of sequences */
    int64_t kmers; /* 20: how many words of a sequence count */
    int64_t seed;  /* another seed, other words */
    int64_t
        memory; /* bytes for the table of words; what does not fit takes more passes. Beside it: 16 bytes a sequence */
} ttn_cluster_rules;

/* The rows pack.k, pack.kmers, pack.seed, pack.memory. */
extern const ttn_option ttn_cluster_options[];
extern const int ttn_cluster_n_options;
TTN_MUST_USE ttn_status ttn_cluster_rules_of(const ttn_option_reader *o, ttn_cluster_rules *ret, ttn_error *err);

typedef struct {
    int64_t k;       /* that was used */
    int64_t n;       /* clusters */
    int64_t largest; /* sequences in the largest */
    int64_t passes;
} ttn_cluster_facts;

/* The k for so many sequences. */
int64_t ttn_cluster_usual_k(int64_t n);

/* *ret_key: (source->n) the number of each sequence's cluster; the caller's (ttn_free). What the source says; TTN_ENOMEM;
 * TTN_ESTOPPED. */
TTN_MUST_USE ttn_status ttn_cluster(const ttn_sweep_source *source, const ttn_cluster_rules *rules, ttn_sweep_tell tell,
                                    void *ctx, int64_t **ret_key, ttn_cluster_facts *ret_facts, ttn_error *err);

#endif
