/* HDF5 files that are written once, checked, and never appended to: what h5py and the like read, and stores of sequences.
 *
 * Each file is written aside, closed, opened again, read whole against what was given to it, and only then brought to the
 * disk and named (core/atomic.h). For the reasons below it is written by one thread, in the newest format of HDF5 1.10 (which
 * everything since 2016 reads), every dataset of numbers in chunks with a checksum (fletcher32), every text of fixed length:
 *
 *  - killed while writing, HDF5's files are unreadable, with default settings all of them;
 *  - on a full disk a chunked write succeeds and only the close fails, and going on after that can crash the process: the
 *    first failure here is the last call into the file;
 *  - the older format has no checksums at all, and texts of variable length have none in either.
 *
 * What has no checksum, and is not compared when the file is read again: the links and names that ttn_hdf5_scale makes.
 * HDF5 keeps them in attributes of variable length (DIMENSION_LIST, DIMENSION_LABELS), whose contents lie in a heap
 * without one. Damage there can lose or exchange the names of dimensions unseen; the numbers, and those along the
 * dimensions, are datasets of their own and have theirs.
 *
 * Calls stick: after a failure later ones do nothing, and ttn_hdf5_commit returns the first with HDF5's own reason.
 */
#ifndef TTN_HDF5_WRITE_H
#define TTN_HDF5_WRITE_H

#include <stdint.h>
#include "core/hash.h"
#include "core/status.h"
#include "core/tensor.h"

typedef struct ttn_hdf5 ttn_hdf5;

/* *ret is the caller's. Failures of core/atomic.h; TTN_EIO: HDF5's. */
TTN_MUST_USE ttn_status ttn_hdf5_create(const char *path, ttn_hdf5 **ret, ttn_error *err);

/* A group, "maps" or "maps/raw"; the ones it lies in are there. */
void ttn_hdf5_group(ttn_hdf5 *h, const char *name);

/* An attribute of the group or dataset `of` ("/": the file). Texts are UTF-8 of fixed length; an empty one has length 1. */
void ttn_hdf5_note_text(ttn_hdf5 *h, const char *of, const char *key, const char *text);
void ttn_hdf5_note_integer(ttn_hdf5 *h, const char *of, const char *key, int64_t value);
void ttn_hdf5_note_real(ttn_hdf5 *h, const char *of, const char *key, double value);

typedef struct {
    ttn_desc desc;              /* F16, F32, F64, TTN_REAL, I32, I64, U8 (also for yes and no) */
    int64_t chunk[TTN_MAX_DIM]; /* 0: from the last dimension backwards until a chunk has some 256 KiB */
    int compressed;             /* shuffle and gzip 4: for floats that are kept; tokens gain too little */
} ttn_hdf5_shape;

/* A dataset; its numbers come in order, in pieces of whole rows (first dimension), or at once when it has no dimension. */
void ttn_hdf5_dataset(ttn_hdf5 *h, const char *name, const ttn_hdf5_shape *shape);
void ttn_hdf5_append(ttn_hdf5 *h, int64_t n_row, const void *numbers);

/* A dataset of texts of one fixed length, that of the longest; beside it, as of a column, NAME_xxh64. */
void ttn_hdf5_texts(ttn_hdf5 *h, const char *name, const char *const *text, int64_t n);

/* Dataset `scale` (of one dimension) names the places along dimension d of `name`, and is called `label` there. */
void ttn_hdf5_scale(ttn_hdf5 *h, const char *name, int d, const char *scale, const char *label);

/* ---- columns: datasets of one dimension that grow side by side, when nobody knows how long they will be ---- */

typedef struct ttn_hdf5_column ttn_hdf5_column;

/* Types as of ttn_hdf5_shape. In chunks of 1 MiB, or of its whole length where that is less; compressed: shuffle and gzip 1.
 * Beside it the commit writes the list NAME_xxh64 (i64): XXH3 (64 bits) of each chunk, with which a reader compares what it
 * reads (core/hdf5_read.h). It belongs to h, and holds 1 MiB. NULL when h has failed; calls with it do nothing. */
ttn_hdf5_column *ttn_hdf5_column_create(ttn_hdf5 *h, const char *name, ttn_dtype type, int compressed);
void ttn_hdf5_column_add(ttn_hdf5_column *c, int64_t n, const void *numbers);

/* How many there are, and the hash of their bytes in the file (little-endian). */
int64_t ttn_hdf5_column_count(const ttn_hdf5_column *c);
ttn_hash128 ttn_hdf5_column_hash(const ttn_hdf5_column *c);

/* Numbers [first, first + n) of those that were added, before the commit. After a failure of h: `into` is as it was. */
void ttn_hdf5_column_read(ttn_hdf5_column *c, int64_t first, int64_t n, void *into);

/* The first failure of any call so far. */
TTN_MUST_USE ttn_status ttn_hdf5_status(const ttn_hdf5 *h, ttn_error *err);

/* Close, read again, name. Returns the first failure of any call. */
TTN_MUST_USE ttn_status ttn_hdf5_commit(ttn_hdf5 *h, ttn_error *err);

void ttn_hdf5_destroy(ttn_hdf5 *h); /* NULL is fine; without a commit nothing appears */

#endif
