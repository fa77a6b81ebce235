#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/disk.h"
#include "core/memory.h"
#include "core/text.h"
#include "train/files/reader.h"

struct ttn_reader {
    int fd;
    int64_t size;
    char name[TTN_TAIL_ROOM];
};

static ttn_status check_kind(const ttn_reader *r, const struct stat *about, ttn_error *err)
{
    if (S_ISREG(about->st_mode)) return TTN_OK;
    if (S_ISDIR(about->st_mode)) return TTN_FAIL(err, TTN_EINVAL, "%s: is a folder, and a file is to be read", r->name);
    return TTN_FAIL(err, TTN_EINVAL,
                    "%s: is a pipe, socket or device, and is read in any order; copy it to a file first", r->name);
}

static ttn_status open_file(ttn_reader *r, const char *path, ttn_error *err)
{
    /* O_NONBLOCK: the open of a pipe that nobody writes to would wait for ever. Regular files do not know it. */
    r->fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (r->fd < 0) {
        int error = errno;
        return TTN_FAIL(err, ttn_disk_fault(error), "%s: cannot be opened: %s", r->name, strerror(error));
    }
    struct stat about;
    if (fstat(r->fd, &about) != 0)
        return TTN_FAIL(err, TTN_EIO, "%s: cannot be asked for its size: %s", r->name, strerror(errno));
    r->size = about.st_size;
    return check_kind(r, &about, err);
}

ttn_status ttn_reader_open(const char *path, ttn_reader **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_reader *r = ttn_alloc_or_say(1, sizeof *r, "a file to be read", err);
    if (!r) return TTN_ENOMEM;
    r->fd = -1;
    ttn_text_tail(path, r->name);
    ttn_status status = open_file(r, path, err);
    if (status == TTN_OK)
        *ret = r;
    else
        ttn_reader_close(r);
    return status;
}

int64_t ttn_reader_size(const ttn_reader *r)
{
    return r->size;
}

const char *ttn_reader_name(const ttn_reader *r)
{
    return r->name;
}

ttn_status ttn_reader_read(const ttn_reader *r, int64_t at, void *to, size_t n, ttn_error *err)
{
    assert(at >= 0 && at <= r->size && n <= (size_t)(r->size - at));
    char *next = to;
    while (n > 0) {
        size_t part = n < 1 << 30 ? n : 1 << 30; /* one pread takes less than 2 GiB */
        ssize_t got = TEMP_FAILURE_RETRY(pread(r->fd, next, part, at));
        if (got < 0) return TTN_FAIL(err, TTN_EIO, "%s: cannot be read: %s", r->name, strerror(errno));
        if (got == 0)
            return TTN_FAIL(err, TTN_EIO,
                            "%s: had %" PRId64 " bytes when it was opened and ends at byte %" PRId64
                            " now: something shortens it while it is read",
                            r->name, r->size, at);
        next += got;
        at += got;
        n -= (size_t)got;
    }
    return TTN_OK;
}

void ttn_reader_close(ttn_reader *r)
{
    if (!r) return;
    if (r->fd >= 0) close(r->fd);
    ttn_free(r);
}
