/* HDF5 files that core/hdf5_write.h wrote, read again: attributes, texts and columns of numbers.
 *
 * Somebody else's bytes may come under such a name, so little is believed. Files in the formats before HDF5 1.10 are refused
 * by their first bytes: those have no checksums, and of 20,000 with a few bytes changed 35 crashed the library and 5 hung it;
 * in the format that we write none did, because checksums are compared before anything is understood. Datasets must lie in
 * the file itself, in chunks with a checksum, and have no filter but those of ours (another one would be looked for as a
 * plug-in and run). Chunks are read as they lie in the file, and unpacked here into room for one of them: a list cannot have
 * more entries than the file has bytes for, every chunk must be in the file, and each is compared with the XXH3 that was
 * taken when it was written (NAME_xxh64), whatever is read of it: what was changed since is found, also where HDF5's own
 * checksum was made anew. What nobody defends against is a file made on purpose to attack, with all checksums right.
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

/* For programs, before anything else of HDF5: when the process ends, HDF5 does not close what is open. It cannot where a damaged
 * file left something behind, and prints "infinite loop closing library". Files are closed here, so nothing is lost. */
void ttn_hdf5_be_quiet_at_exit(void);

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

/* All texts of a dataset of ttn_hdf5_texts: *ret, (n) of them and each, is f's own. At most `most` of them are believed. */
TTN_MUST_USE ttn_status ttn_hdf5_get_texts(ttn_hdf5_file *f, const char *name, int64_t most, const char *const **ret,
                                           int64_t *ret_n, ttn_error *err);

/* A column (core/hdf5_write.h) with numbers of exactly this type. *ret is the caller's, and holds a chunk of at most 1 MiB as
 * soon as it is read from. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_hdf5_array_open(ttn_hdf5_file *f, const char *name, ttn_dtype type, ttn_hdf5_array **ret,
                                            ttn_error *err);
void ttn_hdf5_array_close(ttn_hdf5_array *a); /* NULL is fine */
int64_t ttn_hdf5_array_count(const ttn_hdf5_array *a);

/* Numbers [first, first + n), which there are, to `into`. A chunk whose checksum is wrong is a failure. */
TTN_MUST_USE ttn_status ttn_hdf5_array_read(ttn_hdf5_array *a, int64_t first, int64_t n, void *into, ttn_error *err);

#endif
