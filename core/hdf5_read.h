/* HDF5 files that core/hdf5_write.h wrote, read again: attributes, texts and columns of numbers.
 *
 * Somebody else's bytes may come under such a name, so little is believed. Files in the formats before HDF5 1.10 are refused
 * by their first bytes: those have no checksums, and of 20,000 with a few bytes changed 35 crashed the library and 5 hung it;
 * in the format that we write none did, because checksums are compared before anything is understood. Datasets must lie in
 * the file itself, in chunks with a checksum, and have no filter but those of ours (another one would be looked for as a
 * plug-in and run). What nobody defends against is a file made on purpose to attack, with checksums that are right.
 *
 * Failures are TTN_EFORMAT with the file's name and HDF5's own reason, where it is not said otherwise. One thread at a time.
 */
#ifndef TTN_HDF5_READ_H
#define TTN_HDF5_READ_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"
#include "core/tensor.h"

typedef struct ttn_hdf5_file ttn_hdf5_file;
typedef struct ttn_hdf5_array ttn_hdf5_array;

/* what ("a store of sequences"): what it should be, for messages; borrowed. *ret is the caller's. TTN_EINVAL: there is no
 * file; TTN_EIO: the system refuses; TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_hdf5_open(const char *path, const char *what, ttn_hdf5_file **ret, ttn_error *err);

/* Arrays must have been closed before. NULL is fine. */
void ttn_hdf5_close(ttn_hdf5_file *f);

/* Is there an attribute or a dataset of this name in the file's root? */
int ttn_hdf5_has_note(ttn_hdf5_file *f, const char *key);
int ttn_hdf5_has_array(ttn_hdf5_file *f, const char *name);

/* Attributes of the root. A text of at most TTN_HDF5_LONGEST_NOTE bytes; *ret is f's own. */
enum { TTN_HDF5_LONGEST_NOTE = 1 << 16 };
TTN_MUST_USE ttn_status ttn_hdf5_get_text(ttn_hdf5_file *f, const char *key, const char **ret, ttn_error *err);
TTN_MUST_USE ttn_status ttn_hdf5_get_integer(ttn_hdf5_file *f, const char *key, int64_t *ret, ttn_error *err);

/* All texts of a dataset: *ret, (n) of them and each, is f's own. At most `most` of them are believed. */
TTN_MUST_USE ttn_status ttn_hdf5_get_texts(ttn_hdf5_file *f, const char *name, int64_t most, const char *const **ret,
                                           int64_t *ret_n, ttn_error *err);

/* A dataset of one dimension with numbers of exactly this type. *ret is the caller's. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_hdf5_array_open(ttn_hdf5_file *f, const char *name, ttn_dtype type, ttn_hdf5_array **ret,
                                            ttn_error *err);
void ttn_hdf5_array_close(ttn_hdf5_array *a); /* NULL is fine */
int64_t ttn_hdf5_array_count(const ttn_hdf5_array *a);

/* Numbers [first, first + n), which there are, to `into`. A chunk whose checksum is wrong is a failure. */
TTN_MUST_USE ttn_status ttn_hdf5_array_read(ttn_hdf5_array *a, int64_t first, int64_t n, void *into, ttn_error *err);

#endif
