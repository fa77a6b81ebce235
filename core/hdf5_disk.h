/* How HDF5 reaches the disk when it writes. Private to core/hdf5*.c.
 *
 * HDF5 1.10 does not survive a close that fails: what is left of the file is freed again at exit, and the process dies. A full
 * disk shows in the close of a file, since chunks wait in memory. So HDF5 is never told: what the disk does not take is
 * dropped, the first refusal is kept, and the writer looks for it after every step.
 */
#ifndef TTN_HDF5_DISK_H
#define TTN_HDF5_DISK_H

#include <hdf5.h>

/* Start with {.driver = TTN_HDF5_NONE}. It outlives the file. */
typedef struct {
    hid_t driver;
    int error; /* errno of the first write that was refused; from then on nothing is written. 0: none */
} ttn_hdf5_disk;

/* A file that is opened with `access` is written through d; negative: there is no memory. */
herr_t ttn_hdf5_disk_use(ttn_hdf5_disk *d, hid_t access);

/* Its files are closed. */
void ttn_hdf5_disk_end(ttn_hdf5_disk *d);

#endif
