/* Which sequences are held out for validation, and never trained on.
 *
 * The decision is a function of a hash, made anew whenever a store is opened: of the sequence's cluster (data/cluster.h), so
 * that relatives stay together, or of the sequence itself; or a whole file is held out. So it does not depend on the order of
 * files, and a sequence stays on its side when others are added.
 */
#ifndef TTN_SPLIT_H
#define TTN_SPLIT_H

#include "core/options.h"
#include "data/store.h"
#include "data/subset.h"

typedef enum { TTN_SPLIT_CLUSTER, TTN_SPLIT_SEQUENCE, TTN_SPLIT_FILE } ttn_split_kind;

typedef struct {
    ttn_split_kind kind;
    double valid;     /* the part of clusters (sequences) that is held out, 0 to 1 */
    const char *file; /* TTN_SPLIT_FILE: the name of a file of the store, or its last part; "": none. Borrowed */
    int64_t seed;     /* another seed, others are held out */
} ttn_split_rules;

/* The rows data.split, data.valid, data.valid_file, data.split_seed. Texts are borrowed from the values. */
extern const ttn_option ttn_split_options[];
extern const int ttn_split_n_options;
TTN_MUST_USE ttn_status ttn_split_rules_of(const ttn_option_reader *o, ttn_split_rules *ret, ttn_error *err);

/* Is what has this hash (an entry of the lists `hash` or `cluster`) held out? Of many, a part `valid` is. */
int ttn_split_holds_out(const ttn_split_rules *r, int64_t hash);

/* The sequences that are held out; all others are for training. *ret is the caller's, closed. TTN_EINVAL: the store has no
 * clusters, no or several files of that name, or nothing is left to train on; failures of reading; TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_split_store(ttn_store *s, const ttn_split_rules *r, ttn_subset **ret, ttn_error *err);

/* Which of n names of files is the wanted file's: the same text, else the same file (dev and inode), else the only one whose
 * last part it is. -1: none; *ret_n: how many it could be. */
int64_t ttn_split_find_name(const char *const *name, int64_t n, const char *wanted, int *ret_n);

#endif
