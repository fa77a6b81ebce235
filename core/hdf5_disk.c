#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/disk.h"
#include "core/hdf5.h"
#include "core/hdf5_disk.h"

/* From 1.13 on a driver is declared in a header of its own, and also has a version and a number. */
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

typedef struct {
    H5FD_t public; /* first: an H5FD_t * of ours is one of these; HDF5 fills it in */
    ttn_hdf5_disk *disk;
    int fd;
    struct stat about;
    haddr_t end_of_room; /* what HDF5 gave out */
    haddr_t end_of_file; /* what was written, or would have been */
} open_file;

/* Every call that changes the file ends here. */
static void note(const open_file *f, int failed)
{
    if (failed && f->disk->error == 0) f->disk->error = errno ? errno : EIO;
}

/* ---- what HDF5 asks of a driver ---- */

static H5FD_t *open_it(const char *path, unsigned flags, hid_t access, haddr_t most)
{
    (void)most;
    ttn_hdf5_disk *const *disk = H5Pget_driver_info(access);
    open_file *f = disk ? calloc(1, sizeof *f) : NULL;
    if (!f) return NULL;
    f->disk = *disk;
    const int how = (flags & H5F_ACC_RDWR ? O_RDWR : O_RDONLY) | (flags & H5F_ACC_TRUNC ? O_TRUNC : 0) |
                    (flags & H5F_ACC_CREAT ? O_CREAT : 0) | (flags & H5F_ACC_EXCL ? O_EXCL : 0);
    f->fd = ttn_disk_open(path, how, 0666);
    const int failed = f->fd < 0 || fstat(f->fd, &f->about) != 0;
    note(f, failed);
    if (!failed) {
        f->end_of_file = (haddr_t)f->about.st_size;
        return &f->public;
    }
    if (f->fd >= 0) ttn_disk_close(f->fd);
    free(f);
    return NULL;
}

static herr_t close_it(H5FD_t *file)
{
    open_file *f = (open_file *)file;
    note(f, ttn_disk_close(f->fd) != 0);
    free(f);
    return 0;
}

static int compare(const H5FD_t *a, const H5FD_t *b)
{
    const struct stat *x = &((const open_file *)a)->about, *y = &((const open_file *)b)->about;
    if (x->st_dev != y->st_dev) return x->st_dev < y->st_dev ? -1 : 1;
    return (x->st_ino > y->st_ino) - (x->st_ino < y->st_ino);
}

/* As HDF5's own driver of files has it, so that the same data are the same bytes. */
static herr_t query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

static haddr_t get_room(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const open_file *)file)->end_of_room;
}

static herr_t set_room(H5FD_t *file, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    ((open_file *)file)->end_of_room = end;
    return 0;
}

static haddr_t get_end(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const open_file *)file)->end_of_file;
}

static herr_t read_it(H5FD_t *file, H5FD_mem_t type, hid_t how, haddr_t at, size_t n, void *bytes)
{
    (void)type;
    (void)how;
    const open_file *f = (open_file *)file;
    ssize_t got = ttn_disk_read_at(f->fd, bytes, n, (int64_t)at);
    if (got < 0) return -1;
    memset((char *)bytes + got, 0, n - (size_t)got); /* room that nothing was written to yet */
    return 0;
}

static int write_at(int fd, const char *bytes, size_t n, off_t at)
{
    while (n > 0) {
        ssize_t done = pwrite(fd, bytes, n, at);
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = EIO;
        if (done <= 0) return -1;
        bytes += done;
        n -= (size_t)done;
        at += done;
    }
    return 0;
}

static herr_t write_it(H5FD_t *file, H5FD_mem_t type, hid_t how, haddr_t at, size_t n, const void *bytes)
{
    (void)type;
    (void)how;
    open_file *f = (open_file *)file;
    if (f->disk->error == 0) note(f, write_at(f->fd, bytes, n, (off_t)at) != 0);
    if (at + n > f->end_of_file) f->end_of_file = at + n;
    return 0;
}

static herr_t truncate_it(H5FD_t *file, hid_t how, hbool_t closing)
{
    (void)how;
    (void)closing;
    open_file *f = (open_file *)file;
    if (f->end_of_room == f->end_of_file) return 0;
    if (f->disk->error == 0) note(f, ftruncate(f->fd, (off_t)f->end_of_room) != 0);
    f->end_of_file = f->end_of_room;
    return 0;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)500, /* 256 to 511 are for drivers that the HDF Group has given no number */
#endif
    .name = "titin",
    .maxaddr = (haddr_t)INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(ttn_hdf5_disk *),
    .open = open_it,
    .close = close_it,
    .cmp = compare,
    .query = query,
    .get_eoa = get_room,
    .set_eoa = set_room,
    .get_eof = get_end,
    .read = read_it,
    .write = write_it,
    .truncate = truncate_it,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

herr_t ttn_hdf5_disk_use(ttn_hdf5_disk *d, hid_t access)
{
    if (d->driver < 0) d->driver = H5FDregister(&driver);
    return d->driver < 0 ? -1 : H5Pset_driver(access, d->driver, &d);
}

void ttn_hdf5_disk_end(ttn_hdf5_disk *d)
{
    if (d->driver >= 0) (void)H5FDunregister(d->driver);
    d->driver = TTN_HDF5_NONE;
}
