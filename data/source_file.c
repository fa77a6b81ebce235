/* Files, pipes and standard input. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/disk.h"
#include "core/memory.h"
#include "core/text.h"
#include "data/source_impl.h"

typedef struct {
    ttn_source source; /* first: a ttn_source * of ours is one of these */
    int fd;            /* -1: not open */
    int is_ours;       /* to be closed */
    int at_end;
    struct stat opened; /* what it was when it was opened */
    char *path;         /* NULL: standard input */
    char name[TTN_TAIL_ROOM];
    ttn_error failure; /* the first one, which stays */
} file_source;

static ttn_status cannot_open(const file_source *f, int error, ttn_error *err)
{
    char target[PATH_MAX];
    ssize_t n = error == ENOENT ? readlink(f->path, target, sizeof target - 1) : -1;
    if (n > 0) {
        char end[TTN_TAIL_ROOM];
        target[n] = 0;
        return TTN_FAIL_AT(err, TTN_EINVAL, f->name, 0, 0,
                           "is a symbolic link to %s, and that is not there; make the link anew (FA066)",
                           ttn_text_tail(target, end));
    }
    return TTN_FAIL_AT(err, ttn_disk_fault(error), f->name, 0, 0, "cannot be opened: %s%s (FA066)", strerror(error),
                       error == EACCES ? "; ask its owner for permission to read it" : "");
}

static ttn_status open_file(file_source *f, const char *path, ttn_error *err)
{
    f->path = strdup(path);
    if (!f->path) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for the name %s", f->name);
    f->fd = ttn_disk_open(path, O_RDONLY | O_NOCTTY, 0);
    if (f->fd < 0) return cannot_open(f, errno, err);
    f->is_ours = 1;
    if (fstat(f->fd, &f->opened) != 0)
        return TTN_FAIL_AT(err, TTN_EIO, f->name, 0, 0, "cannot be asked for its size: %s (FA066)", strerror(errno));
    if (S_ISDIR(f->opened.st_mode))
        return TTN_FAIL_AT(
            err, TTN_EINVAL, f->name, 0, 0,
            "is a folder, and a file is to be read; name the files in it, or ask for all with --recursive (FA066)");
    struct stat itself;
    if (lstat(path, &itself) == 0 && S_ISLNK(itself.st_mode)) f->source.facts.link = realpath(path, NULL);
    return TTN_OK;
}

/* Is what the path leads to still the file that was opened, and was all of it read? */
static ttn_status check_unchanged(file_source *f, ttn_error *err)
{
    if (!f->path || !S_ISREG(f->opened.st_mode)) return TTN_OK;
    struct stat now;
    if (stat(f->path, &now) != 0)
        return TTN_FAIL_AT(err, TTN_EIO, f->name, 0, 0, "went away while it was read: %s (FA066)", strerror(errno));
    if (now.st_ino != f->opened.st_ino || now.st_dev != f->opened.st_dev)
        return TTN_FAIL_AT(err, TTN_EIO, f->name, 0, 0,
                           "was replaced by another file while it was read; read it again (FA066)");
    if (now.st_size != f->opened.st_size || f->source.facts.bytes != now.st_size ||
        now.st_mtim.tv_sec != f->opened.st_mtim.tv_sec || now.st_mtim.tv_nsec != f->opened.st_mtim.tv_nsec)
        return TTN_FAIL_AT(err, TTN_EIO, f->name, 0, 0,
                           "changed while it was read: it had %" PRId64 " bytes, %" PRId64
                           " were read, and it has %" PRId64
                           " now; read it again when nobody writes to it any more (FA066)",
                           (int64_t)f->opened.st_size, f->source.facts.bytes, (int64_t)now.st_size);
    return TTN_OK;
}

/* The bytes of one read; a standard input that somebody made non-blocking is waited for. */
static ssize_t read_some(file_source *f, void *bytes, size_t room)
{
    if (room > 1 << 30) room = 1 << 30; /* one read takes less than 2 GiB */
    for (;;) {
        ssize_t n = read(f->fd, bytes, room);
        if (n >= 0 || (errno != EINTR && errno != EAGAIN)) return n;
        if (errno == EAGAIN) poll(&(struct pollfd){.fd = f->fd, .events = POLLIN}, 1, -1);
    }
}

static ttn_status read_file(ttn_source *s, void *bytes, size_t room, size_t *ret_n, ttn_error *err)
{
    file_source *f = (file_source *)s;
    *ret_n = 0;
    ttn_status status = f->failure.status;
    if (status == TTN_OK && !f->at_end) {
        ssize_t n = read_some(f, bytes, room);
        if (n > 0) {
            s->facts.bytes += n;
            *ret_n = (size_t)n;
            return TTN_OK;
        }
        f->at_end = 1;
        if (n < 0)
            status = TTN_FAIL_AT(&f->failure, TTN_EIO, f->name, 0, 0,
                                 "reading failed at byte %" PRId64 ": %s; nothing of it can be relied on (FA066)",
                                 s->facts.bytes, strerror(errno));
        else
            status = check_unchanged(f, &f->failure);
    }
    if (status != TTN_OK && err && err->status == TTN_OK) *err = f->failure;
    return status;
}

static void close_file(ttn_source *s)
{
    file_source *f = (file_source *)s;
    if (f->is_ours) ttn_disk_close(f->fd);
    free(f->path);
    free(s->facts.link);
    ttn_free(f);
}

ttn_status ttn_source_of_file(const char *path, ttn_source **ret, ttn_error *err)
{
    *ret = NULL;
    file_source *f = ttn_alloc_or_say(1, sizeof *f, "a file to be read", err);
    if (!f) return TTN_ENOMEM;
    const int is_stdin = strcmp(path, "-") == 0;
    f->source = (ttn_source){.name = f->name, .read = read_file, .close = close_file};
    f->fd = is_stdin ? STDIN_FILENO : -1;
    ttn_text_tail(is_stdin ? "standard input" : path, f->name);
    ttn_status status = is_stdin ? TTN_OK : open_file(f, path, err);
    if (status == TTN_OK)
        *ret = &f->source;
    else
        close_file(&f->source);
    return status;
}
