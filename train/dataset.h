/* The data of a run: data.train of a configuration, as sequences with two sides.
 *
 * data.train names a store (`titin data pack`), or files of sequences: these are packed first, to a store beside the run
 * whose name has a checksum of the files and of all that packing depends on. So it is done once, and again only when
 * something of it has changed. A store of that name which was packed from something else, or is damaged, is packed anew.
 */
#ifndef TTN_DATASET_H
#define TTN_DATASET_H

#include "core/log.h"
#include "data/overlap.h"
#include "data/pack.h"
#include "data/store.h"
#include "data/subset.h"
#include "train/config.h"
#include "train/validation.h"

/* The row data.train. */
extern const ttn_config_module ttn_dataset_module;

typedef struct {
    const char *folder; /* for stores that are packed here; made when it is needed, its parent must be there */
    const ttn_pack_listener *listener; /* of packing; NULL: nobody */
    const char *titin_version;
    const ttn_log *log;
} ttn_dataset_options;

typedef struct ttn_dataset ttn_dataset;

/* *ret is the caller's. TTN_EINVAL: data.train is missing, or names a store beside other files; TTN_EFORMAT: what is wrong
 * with a file; TTN_ESTOPPED: the listener said so; what store, pack and split return. */
TTN_MUST_USE ttn_status ttn_dataset_open(const ttn_values *values, const ttn_dataset_options *o, ttn_dataset **ret,
                                         ttn_error *err);
void ttn_dataset_close(ttn_dataset *d); /* NULL is fine */

/* The same of a store alone, whatever data.train is. */
TTN_MUST_USE ttn_status ttn_dataset_open_store(const char *path, const ttn_values *values, ttn_dataset **ret,
                                               ttn_error *err);

/* *ret: data.train names one store and nothing else. TTN_EINVAL, TTN_EIO: as when it is opened. */
TTN_MUST_USE ttn_status ttn_dataset_names_store(const ttn_values *values, int *ret, ttn_error *err);

/* Does this file begin as a store does? 0 also where there is none. */
int ttn_dataset_is_store(const char *path);

/* Borrowed until it is closed. */
const ttn_sequences *ttn_dataset_sequences(const ttn_dataset *d);
const ttn_subset *ttn_dataset_train(const ttn_dataset *d);
const ttn_subset *ttn_dataset_valid(const ttn_dataset *d); /* NULL: nothing is held out */
const ttn_store_facts *ttn_dataset_facts(const ttn_dataset *d);
const char *ttn_dataset_path(const ttn_dataset *d);  /* of the store */
const char *ttn_dataset_split(const ttn_dataset *d); /* data.split: "cluster" */

/* How much of what is held out stands in the training set, too. Proteins that a split by clusters holds out have no relatives
 * there: nothing is counted. Nearly equal ones are looked for in sets of at most TTN_DATASET_LOOKED_AT residues (some seconds);
 * `titin data info --overlap` does it for any. TTN_ESTOPPED: tell said so; what the store says; TTN_ENOMEM. */
typedef struct {
    int64_t held_out;
    int is_counted;
    int64_t equal; /* of them: proteins with the sequence of one that is trained on */
    int is_near_counted;
    ttn_overlap near;
} ttn_dataset_overlap;
TTN_MUST_USE ttn_status ttn_dataset_overlap_of(const ttn_dataset *d, ttn_sweep_tell tell, void *ctx,
                                               ttn_dataset_overlap *ret, ttn_error *err);

/* Residues' frequencies on the training side: of all, or of sequences spread evenly over it where there are more than
 * TTN_DATASET_LOOKED_AT residues. */
enum { TTN_DATASET_LOOKED_AT = 100000000 };
TTN_MUST_USE ttn_status ttn_dataset_frequencies(const ttn_dataset *d, ttn_frequencies *ret, ttn_error *err);

/* Half of the sequences are shorter: of all, or of a hundred thousand spread evenly over them. 0: no memory. */
int64_t ttn_dataset_median(const ttn_dataset *d);

#endif
