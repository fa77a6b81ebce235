/* What the writer and the reader of HDF5 files (core/hdf5_write.h, core/hdf5_read.h) share. Private to core/hdf5*.c.
 *
 * HDF5 keeps its reasons on a stack, one a thread, and prints it unless it is told not to: every call stands between
 * ttn_hdf5_be_quiet and ttn_hdf5_end_quiet, and a failure takes its reason before the next call clears it.
 */
#ifndef TTN_HDF5_H
#define TTN_HDF5_H

#include <hdf5.h>
#include "core/status.h"
#include "core/tensor.h"

/* Its constants call this, which ends the process when headers and library differ; ttn_hdf5_check_version says so instead. */
#undef H5CHECK
#define H5CHECK

enum { TTN_HDF5_NONE = -1 };

/* Behind the name of a column or of texts: the list of XXH3 (64 bits) of their chunks, in the order of chunks; of the last one
 * as far as there are entries. */
#define TTN_HDF5_SUMS "_xxh64"

typedef struct {
    H5E_auto2_t print;
    void *data;
} ttn_hdf5_quiet;

ttn_hdf5_quiet ttn_hdf5_be_quiet(void);
void ttn_hdf5_end_quiet(ttn_hdf5_quiet before);

/* The cause of the last failure of this thread, as HDF5 words it; text has TTN_HDF5_REASON bytes. Returns text. */
enum { TTN_HDF5_REASON = 512 };
char *ttn_hdf5_reason(char *text);

/* Headers and library are of one version, else TTN_EIO about the file `name`. */
TTN_MUST_USE ttn_status ttn_hdf5_check_version(const char *name, ttn_error *err);

/* How files are opened: in the format of HDF5 1.10 and no older one, and closing the file closes all that is open in it. The
 * caller closes it; negative: there is no memory. */
hid_t ttn_hdf5_access(void);

/* HDF5's type for numbers, of the file and of memory alike (never TTN_BF16); and for UTF-8 texts of n bytes, padded with 0.
 * The caller closes it; negative: there is no memory. */
hid_t ttn_hdf5_number_type(ttn_dtype type);
hid_t ttn_hdf5_text_type(size_t n);

/* Numbers [first, first + n) along the first dimension of an open dataset, written from `from` or read to `to` (the other is
 * NULL). Returns whether all went well. */
int ttn_hdf5_move_rows(hid_t dataset, const ttn_desc *desc, int64_t first, int64_t n, const void *from, void *to);

#endif
