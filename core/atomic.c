#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/atomic.h"
#include "core/disk.h"
#include "core/memory.h"
#include "core/text.h"

/* Paths, not openat and the like: other libraries open the temporary by its name, so it must have one that works. */
struct ttn_atomic {
    ttn_arena *texts;      /* all strings below */
    const char *shown;     /* the path as the caller gave it, for messages (ttn_text_tail) */
    const char *final;     /* absolute, links followed */
    const char *temporary; /* beside it */
    const char *aside;     /* beside it: where the previous folder goes when it cannot be swapped */
    const char *kept;      /* where what was there is now; NULL: it is not kept, or there was nothing */
    const char *leftover;  /* NULL, temporary or aside */
    char *buffer;          /* (BUFFER) of a file */
    size_t n_buffered;
    size_t written;  /* of a file, by ttn_atomic_write, buffered or not */
    size_t reserved; /* of a file: how long it was made in advance; 0: not */
    int fd;          /* the temporary; -1: closed */
    int lock;        /* of a file: its lock says that somebody writes it, until it has its name; -1: there is none */
    int parent;      /* the folder that both lie in */
    int is_folder;
    int is_link;  /* a symbolic link itself, not what it leads to */
    int is_own;   /* a file: a symbolic link that is there is replaced, too */
    int keeps;    /* what is there, of whatever kind, gets another name */
    int replaces; /* `old` holds */
    struct stat old;
    int failed;   /* a call failed: nothing will appear */
    int exists;   /* there is a temporary to remove */
    int in_place; /* the final name shows the new contents */
};

/* What stands between the final name and PID-COUNTER in the names of what is being written, and of what is being removed. */
static const char TEMPORARY[] = ".tmp-", TRASH[] = ".trash-";

enum { BUFFER = 64 << 10, MAX_LINKS = 40 /* as the kernel */, MAX_LEFTOVERS = 1000 };

/* ---- messages ---- */

/* "PATH: cannot DOING WHERE: why; what to do". where: "", or a part of what is written. */
static ttn_status fail(ttn_atomic *a, ttn_status status, int error, const char *doing, const char *where,
                       ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    a->failed = 1;
    if (error == ENOMEM) status = TTN_ENOMEM;
    (void)TTN_FAIL(err, status, "%s: cannot %s%s%s: %s%s%s", a->shown, doing, *where ? " " : "",
                   ttn_text_tail(where, shown), strerror(error), ttn_disk_advice(error),
                   a->replaces ? " (what was there stays)" : "");
    return status;
}

static ttn_status no_memory(ttn_atomic *a, ttn_error *err)
{
    return fail(a, TTN_ENOMEM, ENOMEM, "keep its name", "", err);
}

/* ---- create ---- */

/* path without slashes at its end; "/" stays. */
static char *without_slashes(ttn_arena *texts, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return ttn_arena_text(texts, "%.*s", (int)n, path);
}

/* *ret = what path leads to when it is a symbolic link, also a dangling one (realpath refuses those), else path. */
static ttn_status follow_links(ttn_atomic *a, const char *path, const char **ret, ttn_error *err)
{
    char target[PATH_MAX];
    for (int i = 0; i <= MAX_LINKS; i++) {
        a->replaces = lstat(path, &a->old) == 0;
        if (!a->replaces && errno != ENOENT) {
            int error = errno;
            return fail(a, ttn_disk_fault(error), error, "be written", "", err);
        }
        *ret = path;
        if (a->replaces && a->is_own && S_ISLNK(a->old.st_mode)) a->replaces = 0; /* whose rights are nothing to keep */
        if (!a->replaces || a->is_link || a->keeps || !S_ISLNK(a->old.st_mode)) return TTN_OK;
        a->replaces = 0;
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n < 0) return fail(a, TTN_EIO, errno, "follow the link", path, err);
        target[n] = 0;
        const char *next = without_slashes(a->texts, target);
        if (next && *next != '/') next = ttn_arena_text(a->texts, "%.*s%s", ttn_disk_folder_length(path), path, next);
        if (!next) return no_memory(a, err);
        path = next;
    }
    return fail(a, TTN_EINVAL, ELOOP, "follow its links", "", err);
}

static ttn_status check_kind(ttn_atomic *a, ttn_error *err)
{
    if (!a->replaces || a->keeps) return TTN_OK;
    if (a->is_link && !S_ISLNK(a->old.st_mode))
        return TTN_FAIL(err, TTN_EINVAL, "%s: is no symbolic link, and one is to be written; choose another name",
                        a->shown);
    if (a->is_link) return TTN_OK;
    if (a->is_folder && !S_ISDIR(a->old.st_mode))
        return TTN_FAIL(err, TTN_EINVAL, "%s: is not a folder, and a folder is to be written; choose another name",
                        a->shown);
    if (!a->is_folder && S_ISDIR(a->old.st_mode))
        return TTN_FAIL(err, TTN_EINVAL, "%s: is a folder, and a file is to be written; add a file name", a->shown);
    if (!a->is_folder && !S_ISREG(a->old.st_mode))
        return TTN_FAIL(err, TTN_EINVAL,
                        "%s: is a device, pipe or socket, which cannot be replaced by a file; write to a file and copy",
                        a->shown);
    return TTN_OK;
}

/* final, parent and old from the caller's path. */
static ttn_status find_place(ttn_atomic *a, const char *path, ttn_error *err)
{
    size_t n = strlen(path);
    if (n == 0) return TTN_FAIL(err, TTN_EINVAL, "the name of what is to be written is empty");
    if (!a->is_folder && path[n - 1] == '/')
        return TTN_FAIL(err, TTN_EINVAL, "%s: is the name of a folder (it ends in '/'), and a file is to be written",
                        a->shown);
    const char *plain = without_slashes(a->texts, path);
    if (!plain) return no_memory(a, err);
    ttn_status status = follow_links(a, plain, &plain, err);
    if (status == TTN_OK) status = check_kind(a, err);
    if (status != TTN_OK) return status;

    const char *name = plain + ttn_disk_folder_length(plain);
    if (*name == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return TTN_FAIL(err, TTN_EINVAL, "%s: does not end in a name that can be given to something", a->shown);
    const char *folder = ttn_arena_text(a->texts, "%.*s", ttn_disk_folder_length(plain), plain);
    if (!folder) return no_memory(a, err);
    if (*folder == 0) folder = ".";
    char real[PATH_MAX], shown[TTN_TAIL_ROOM];
    if (!realpath(folder, real)) {
        int error = errno;
        if (error == ENOENT)
            return TTN_FAIL(err, TTN_EINVAL, "%s: there is no folder %s; create it first (mkdir -p)", a->shown,
                            ttn_text_tail(folder, shown));
        return fail(a, ttn_disk_fault(error), error, "find its folder", folder, err);
    }
    a->final = ttn_arena_text(a->texts, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
    if (!a->final) return no_memory(a, err);
    a->parent = ttn_disk_open(real, O_RDONLY | O_DIRECTORY, 0);
    if (a->parent < 0) return fail(a, ttn_disk_fault(errno), errno, "open its folder", folder, err);
    return TTN_OK;
}

/* Names that nobody has yet, the counter-th ones. */
static ttn_status name_temporary(ttn_atomic *a, const char *kind, int counter, ttn_error *err)
{
    char mark[64];
    int n_mark = snprintf(mark, sizeof mark, "%s%ld-%d", kind, (long)getpid(), counter);
    long most = fpathconf(a->parent, _PC_NAME_MAX);
    if (most <= 0) most = NAME_MAX;
    const char *name = a->final + ttn_disk_folder_length(a->final);
    long n = (long)strlen(name);
    long room = most - n_mark - 5; /* "." before and ".old" behind */
    if (n > room) {
        n = room > 0 ? room : 0;
        while (n > 0 && ttn_text_is_continuation(name[n])) /* not inside a UTF-8 character */
            n--;
    }
    int n_folder = ttn_disk_folder_length(a->final);
    a->temporary = ttn_arena_text(a->texts, "%.*s.%.*s%s", n_folder, a->final, (int)n, name, mark);
    a->aside = a->temporary ? ttn_arena_text(a->texts, "%s.old", a->temporary) : NULL;
    return a->aside ? TTN_OK : no_memory(a, err);
}

/* The file that was just opened says by its lock (shared, so that HDF5 can read it) that it has a writer. 0: a sweep was
 * faster, and removes it. Where there are no locks there is none: such files are never swept. */
static int take_lock(ttn_atomic *a)
{
    struct stat opened, named;
    if (flock(a->fd, LOCK_SH | LOCK_NB) != 0) return errno != EWOULDBLOCK;
    if (fstat(a->fd, &opened) != 0 || lstat(a->temporary, &named) != 0 || opened.st_dev != named.st_dev ||
        opened.st_ino != named.st_ino)
        return 0;
    a->lock = fcntl(a->fd, F_DUPFD_CLOEXEC, 0); /* outlives the fd, which is closed before the file gets its name */
    return 1;
}

/* Create the temporary under the first name that is free. Its rights are never wider than the final ones. */
static ttn_status make_temporary(ttn_atomic *a, ttn_error *err)
{
    for (int counter = 0; counter < MAX_LEFTOVERS; counter++) {
        ttn_status status = name_temporary(a, TEMPORARY, counter, err);
        if (status != TTN_OK) return status;
        struct stat about;
        if (a->is_folder && lstat(a->aside, &about) == 0) continue;
        mode_t mode = a->is_folder ? 0777 : 0666;
        if (a->replaces && !a->keeps)
            mode = a->is_folder ? S_IRWXU : S_IRUSR | S_IWUSR; /* keep_rights widens it at the end */
        if (a->is_folder) {
            a->exists = ttn_disk_mkdir(a->temporary, mode) == 0;
            if (a->exists) a->fd = ttn_disk_open(a->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        } else {
            a->fd = ttn_disk_open(a->temporary, O_RDWR | O_CREAT | O_EXCL, mode);
            a->exists = a->fd >= 0;
            if (a->exists && !take_lock(a)) {
                ttn_disk_close(a->fd);
                a->fd = -1;
                a->exists = 0;
                continue;
            }
        }
        if (a->fd >= 0) return TTN_OK;
        int error = errno;
        if (error != EEXIST || a->exists)
            return fail(a, ttn_disk_fault(error), error, "create the temporary", a->temporary, err);
    }
    return fail(a, TTN_EIO, EEXIST, "find a free name like", a->temporary, err);
}

/* *ret knows its place, and nothing is there yet. */
static ttn_status start(const char *path, ttn_atomic kind, ttn_atomic **ret, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    *ret = NULL;
    ttn_atomic *a = ttn_alloc_or_say(1, sizeof *a, ttn_text_tail(path, shown), err);
    if (!a) return TTN_ENOMEM;
    *a = kind;
    a->fd = a->parent = a->lock = -1;
    ttn_status status = ttn_arena_create(4096, &a->texts, err);
    if (status == TTN_OK) {
        a->shown = ttn_arena_text(a->texts, "%s", shown);
        if (!a->shown) status = TTN_FAIL(err, TTN_ENOMEM, "no memory to write %s; end other programs", shown);
    }
    if (status == TTN_OK) status = find_place(a, path, err);
    if (status == TTN_OK)
        *ret = a;
    else
        ttn_atomic_destroy(a);
    return status;
}

static ttn_status create(const char *path, ttn_atomic kind, ttn_atomic **ret, ttn_error *err)
{
    ttn_atomic *a;
    *ret = NULL;
    ttn_status status = start(path, kind, &a, err);
    if (status != TTN_OK) return status;
    if (!kind.is_folder) {
        a->buffer = ttn_alloc_or_say(1, BUFFER, a->shown, err);
        if (!a->buffer) status = TTN_ENOMEM;
    }
    if (status == TTN_OK) status = make_temporary(a, err);
    if (status == TTN_OK)
        *ret = a;
    else
        ttn_atomic_destroy(a);
    return status;
}

ttn_status ttn_atomic_file_create(const char *path, ttn_atomic **ret, ttn_error *err)
{
    return create(path, (ttn_atomic){0}, ret, err);
}

ttn_status ttn_atomic_file_create_own(const char *path, ttn_atomic **ret, ttn_error *err)
{
    return create(path, (ttn_atomic){.is_own = 1}, ret, err);
}

ttn_status ttn_atomic_folder_create(const char *path, ttn_atomic **ret, ttn_error *err)
{
    return create(path, (ttn_atomic){.is_folder = 1}, ret, err);
}

ttn_status ttn_atomic_folder_create_beside(const char *path, ttn_atomic **ret, ttn_error *err)
{
    return create(path, (ttn_atomic){.is_folder = 1, .keeps = 1}, ret, err);
}

const char *ttn_atomic_path(const ttn_atomic *a)
{
    return a->temporary;
}

/* ---- write ---- */

static ttn_status write_out(ttn_atomic *a, const char *bytes, size_t n, ttn_error *err)
{
    if (ttn_disk_write(a->fd, bytes, n) != 0) return fail(a, TTN_EIO, errno, "be written", "", err);
    return TTN_OK;
}

static ttn_status flush(ttn_atomic *a, ttn_error *err)
{
    size_t n = a->n_buffered;
    a->n_buffered = 0;
    return write_out(a, a->buffer, n, err);
}

static ttn_status check_going(const ttn_atomic *a, ttn_error *err)
{
    if (!a->failed) return TTN_OK;
    return TTN_FAIL(err, TTN_EIO, "%s: is not written any further, because an earlier step failed", a->shown);
}

ttn_status ttn_atomic_write(ttn_atomic *a, const void *bytes, size_t n, ttn_error *err)
{
    assert(!a->is_folder && (a->failed || a->fd >= 0));
    ttn_status status = check_going(a, err);
    if (status == TTN_OK && n > BUFFER - a->n_buffered) status = flush(a, err);
    if (status != TTN_OK) return status;
    a->written += n;
    if (n >= BUFFER) return write_out(a, bytes, n, err);
    if (n > 0) memcpy(a->buffer + a->n_buffered, bytes, n);
    a->n_buffered += n;
    return TTN_OK;
}

ttn_status ttn_atomic_reserve(ttn_atomic *a, size_t bytes, ttn_error *err)
{
    assert(!a->is_folder && a->written == 0 && (a->failed || a->fd >= 0));
    ttn_status status = check_going(a, err);
    if (status != TTN_OK || bytes == 0) return status;
    int error;
    do
        error = bytes > INT64_MAX ? EFBIG : posix_fallocate(a->fd, 0, (off_t)bytes);
    while (error == EINTR);
    if (error == EINVAL || error == EOPNOTSUPP || error == ENOSYS) return TTN_OK;
    if (error) {
        char amount[TTN_DISK_AMOUNT];
        return fail(a, TTN_EIO, error, "get the space of", ttn_disk_amount(bytes, amount), err);
    }
    a->reserved = bytes;
    return TTN_OK;
}

/* ---- commit ---- */

/* Owner, group and permissions of what is replaced. 0 or errno. */
static int keep_rights(const ttn_atomic *a)
{
    struct stat now;
    if (fstat(a->fd, &now) != 0) return errno;
    mode_t mode = a->old.st_mode & 07777;
    if (now.st_uid != a->old.st_uid && fchown(a->fd, a->old.st_uid, (gid_t)-1) != 0) mode &= ~(mode_t)S_ISUID;
    if (now.st_gid != a->old.st_gid && fchown(a->fd, (uid_t)-1, a->old.st_gid) != 0) {
        /* Another group than the one it was open to. */
        mode_t everybody = (mode & S_IRWXO) << 3;
        mode &= ~(mode_t)S_ISGID & (~(mode_t)S_IRWXG | everybody);
    }
    if (fstat(a->fd, &now) != 0) return errno; /* a change of owner takes bits away */
    if ((now.st_mode & 07777) == mode) return 0;
    return fchmod(a->fd, mode) == 0 ? 0 : errno;
}

static int sync_one(const char *path, const struct stat *about)
{
    int is_folder = S_ISDIR(about->st_mode);
    if (!is_folder && !S_ISREG(about->st_mode)) return 0; /* links are in their folder; pipes hold nothing */
    int fd = ttn_disk_open(path, O_RDONLY | O_NOFOLLOW | (is_folder ? O_DIRECTORY : 0), 0);
    if (fd < 0) return errno;
    int error = (is_folder ? ttn_disk_fsync_folder(fd) : ttn_disk_fsync(fd)) == 0 ? 0 : errno;
    if (ttn_disk_close(fd) != 0 && !error) error = errno;
    return error;
}

/* Everything under the temporary name is on the disk, and closed. */
static ttn_status bring_to_disk(ttn_atomic *a, ttn_error *err)
{
    if (a->is_folder) {
        ttn_trail t;
        int error = ttn_trail_start(&t, a->temporary);
        if (!error) error = ttn_disk_walk(&t, sync_one);
        if (error) {
            size_t n = strlen(a->temporary);
            return fail(a, TTN_EIO, error, "bring to the disk", t.n > n ? t.text + n + 1 : "it", err);
        }
    } else {
        ttn_status status = flush(a, err);
        if (status != TTN_OK) return status;
        if (a->written < a->reserved && TEMP_FAILURE_RETRY(ftruncate(a->fd, (off_t)a->written)) != 0)
            return fail(a, TTN_EIO, errno, "be cut to what was written", "", err);
    }
    /* fd has been open since before the first byte, so fsync reports every failure to write any of them, also of bytes
     * that another library wrote by name, if it wrote to this file. */
    struct stat opened, named;
    char shown[TTN_TAIL_ROOM];
    if (fstat(a->fd, &opened) != 0 || lstat(a->temporary, &named) != 0)
        return fail(a, TTN_EIO, errno, "find the temporary", a->temporary, err);
    if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino) {
        a->failed = 1;
        return TTN_FAIL(err, TTN_EIO, "%s: cannot be written: something put another file at %s meanwhile", a->shown,
                        ttn_text_tail(a->temporary, shown));
    }
    if (a->replaces && !a->keeps) {
        int error = keep_rights(a);
        if (error) return fail(a, TTN_EIO, error, "get the permissions of what it replaces", "", err);
    }
    if ((a->is_folder ? ttn_disk_fsync_folder(a->fd) : ttn_disk_fsync(a->fd)) != 0)
        return fail(a, TTN_EIO, errno, "be brought to the disk", "", err);
    int fd = a->fd;
    a->fd = -1;
    if (ttn_disk_close(fd) != 0) return fail(a, TTN_EIO, errno, "be closed", "", err);
    return TTN_OK;
}

/* For file systems without exchange. *previous = where the previous folder is. */
static ttn_status swap_in_two_steps(ttn_atomic *a, const char **previous, ttn_error *err)
{
    if (ttn_disk_rename(a->final, a->aside) != 0)
        return fail(a, TTN_EIO, errno, "rename the previous one to", a->aside, err);
    if (ttn_disk_rename(a->temporary, a->final) == 0) {
        *previous = a->aside;
        return TTN_OK;
    }
    int error = errno;
    char shown[TTN_TAIL_ROOM];
    if (ttn_disk_rename(a->aside, a->final) == 0) return fail(a, TTN_EIO, error, "take its name", "", err);
    a->failed = 1;
    a->leftover = a->aside;
    return TTN_FAIL(err, TTN_EIO,
                    "%s: cannot take its name: %s; the previous one is whole but now called %s: rename it", a->shown,
                    strerror(error), ttn_text_tail(a->aside, shown));
}

/* A name that nobody has, for what must not be removed. */
static ttn_status name_kept(ttn_atomic *a, ttn_error *err)
{
    struct stat about;
    for (int i = 1; i < MAX_LEFTOVERS; i++) {
        a->kept = ttn_arena_text(a->texts, "%s.kept-%d", a->final, i);
        if (!a->kept) return no_memory(a, err);
        if (lstat(a->kept, &about) != 0) return TTN_OK; /* a name that cannot be will not take the new one either */
    }
    return fail(a, TTN_EIO, EEXIST, "find a free name like", a->kept, err);
}

/* The new folder goes to the name of what is to be kept, then both are exchanged: so the final name stands for one whole
 * thing at every moment, and what is kept never has a name that ttn_atomic_sweep removes. */
static ttn_status appear_beside(ttn_atomic *a, ttn_error *err)
{
    ttn_status status = name_kept(a, err);
    if (status != TTN_OK) return status;
    if (ttn_disk_rename(a->temporary, a->kept) != 0)
        return fail(a, TTN_EIO, errno, "take the name of what is to be kept,", a->kept, err);
    if (ttn_disk_exchange(a->kept, a->final) == 0) return TTN_OK;
    const int error = errno;
    if (ttn_disk_rename(a->kept, a->temporary) != 0) {
        a->exists = 0; /* under that name */
        a->leftover = a->kept;
        return fail(a, TTN_EIO, error, "take its name", "", err);
    }
    if (error != EINVAL && error != ENOSYS && error != EOPNOTSUPP)
        return fail(a, TTN_EIO, error, "take its name", "", err);
    const char *previous = NULL;
    a->aside = a->kept;
    return swap_in_two_steps(a, &previous, err);
}

/* The final name shows the new contents. *previous = where the previous folder is now that is to be removed, NULL: there
 * is none. */
static ttn_status appear(ttn_atomic *a, const char **previous, ttn_error *err)
{
    struct stat about;
    if (a->keeps && lstat(a->final, &about) == 0) return appear_beside(a, err);
    int swap = a->is_folder && a->replaces && !a->keeps;
    /* Other writers of the name may come and go between two steps; more than a few times in a row is no accident. */
    for (int tries = 0; tries < 8; tries++) {
        if (!swap) {
            if (ttn_disk_rename(a->temporary, a->final) == 0) return TTN_OK;
            swap = a->is_folder && (errno == ENOTEMPTY || errno == EEXIST);
            if (!swap) break;
        } else {
            if (ttn_disk_exchange(a->temporary, a->final) == 0) {
                *previous = a->temporary;
                return TTN_OK;
            }
            if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return swap_in_two_steps(a, previous, err);
            swap = errno != ENOENT;
            if (swap) break;
        }
    }
    return fail(a, TTN_EIO, errno, "take its name", "", err);
}

static void discard(ttn_atomic *a)
{
    if (a->fd >= 0) ttn_disk_close(a->fd);
    a->fd = -1;
    if (!a->exists) return;
    a->exists = 0;
    if (ttn_disk_remove(a->temporary) != 0 && !a->leftover) a->leftover = a->temporary;
}

ttn_status ttn_atomic_commit(ttn_atomic *a, ttn_error *err)
{
    assert(a->failed || a->fd >= 0); /* once */
    const char *previous = NULL;
    ttn_status status = check_going(a, err);
    if (status == TTN_OK) status = bring_to_disk(a, err);
    if (status == TTN_OK) status = appear(a, &previous, err);
    if (status != TTN_OK) {
        discard(a);
        return status;
    }
    a->exists = 0;
    a->in_place = 1;
    if (ttn_disk_fsync_folder(a->parent) != 0) {
        int error = errno;
        char shown[TTN_TAIL_ROOM];
        a->leftover = previous; /* the disk may still need it */
        return TTN_FAIL(
            err, TTN_EIO, "%s: the new contents are in place, but the disk did not confirm their name: %s%s%s%s%s",
            a->shown, strerror(error), ttn_disk_advice(error), previous ? " (the previous ones are kept: " : "",
            ttn_text_tail(previous ? previous : "", shown), previous ? ")" : "");
    }
    if (previous && ttn_disk_remove(previous) != 0) a->leftover = previous;
    return TTN_OK;
}

int ttn_atomic_in_place(const ttn_atomic *a)
{
    return a->in_place;
}

const char *ttn_atomic_kept(const ttn_atomic *a)
{
    return a->in_place ? a->kept : NULL;
}

const char *ttn_atomic_leftover(const ttn_atomic *a)
{
    return a->leftover;
}

void ttn_atomic_destroy(ttn_atomic *a)
{
    if (!a) return;
    discard(a);
    if (a->lock >= 0) ttn_disk_close(a->lock); /* what was written through it was confirmed by the fd's close */
    if (a->parent >= 0) ttn_disk_close(a->parent);
    ttn_free(a->buffer);
    ttn_arena_destroy(a->texts);
    ttn_free(a);
}

ttn_status ttn_atomic_save(const char *path, const void *bytes, size_t n, ttn_error *err)
{
    ttn_atomic *a;
    ttn_status status = ttn_atomic_file_create_own(path, &a, err);
    if (status == TTN_OK) status = ttn_atomic_write(a, bytes, n, err);
    if (status == TTN_OK) status = ttn_atomic_commit(a, err);
    ttn_atomic_destroy(a);
    return status;
}

/* ---- links, and what is to go ---- */

/* The new name, or the missing old one, is on the disk. */
static ttn_status confirm(ttn_atomic *a, const char *what, ttn_error *err)
{
    if (ttn_disk_fsync_folder(a->parent) == 0) return TTN_OK;
    int error = errno;
    return TTN_FAIL(err, TTN_EIO, "%s: %s, but the disk did not confirm it: %s%s", a->shown, what, strerror(error),
                    ttn_disk_advice(error));
}

static ttn_status make_link(ttn_atomic *a, const char *target, ttn_error *err)
{
    for (int counter = 0; counter < MAX_LEFTOVERS; counter++) {
        ttn_status status = name_temporary(a, TEMPORARY, counter, err);
        if (status != TTN_OK) return status;
        a->exists = TEMP_FAILURE_RETRY(symlink(target, a->temporary)) == 0;
        if (a->exists) return TTN_OK;
        if (errno != EEXIST) return fail(a, ttn_disk_fault(errno), errno, "create the temporary", a->temporary, err);
    }
    return fail(a, TTN_EIO, EEXIST, "find a free name like", a->temporary, err);
}

ttn_status ttn_atomic_link(const char *path, const char *target, ttn_error *err)
{
    ttn_atomic *a;
    ttn_status status = start(path, (ttn_atomic){.is_link = 1}, &a, err);
    if (status == TTN_OK) status = make_link(a, target, err);
    if (status == TTN_OK && ttn_disk_rename(a->temporary, a->final) != 0)
        status = fail(a, TTN_EIO, errno, "take its name", "", err);
    if (status == TTN_OK) {
        a->exists = 0;
        status = confirm(a, "the new link is in place", err);
    }
    ttn_atomic_destroy(a);
    return status;
}

static ttn_status throw_away(ttn_atomic *a, ttn_error *err)
{
    struct stat about;
    int counter = 0;
    do {
        if (counter == MAX_LEFTOVERS) return fail(a, TTN_EIO, EEXIST, "find a free name like", a->temporary, err);
        ttn_status status = name_temporary(a, TRASH, counter, err);
        if (status != TTN_OK) return status;
        counter++;
    } while (lstat(a->temporary, &about) == 0);
    if (ttn_disk_rename(a->final, a->temporary) != 0)
        return fail(a, TTN_EIO, errno, "be renamed before it is removed", "", err);
    ttn_status status = confirm(a, "its name is gone", err); /* else a power cut gives half of it the name back */
    if (status != TTN_OK) return status;
    int error = ttn_disk_remove(a->temporary);
    char shown[TTN_TAIL_ROOM];
    if (error)
        return TTN_FAIL(err, TTN_EIO, "%s: its name is gone, but the rest of it stays as %s: %s%s", a->shown,
                        ttn_text_tail(a->temporary, shown), strerror(error), ttn_disk_advice(error));
    return TTN_OK;
}

ttn_status ttn_atomic_remove(const char *path, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    struct stat about;
    if (lstat(path, &about) != 0 || !S_ISDIR(about.st_mode))
        return TTN_FAIL(err, TTN_EINVAL, "%s: is no folder, and one is to be removed", ttn_text_tail(path, shown));
    ttn_atomic *a;
    ttn_status status = start(path, (ttn_atomic){.is_folder = 1}, &a, err);
    if (status == TTN_OK) status = throw_away(a, err);
    ttn_atomic_destroy(a);
    return status;
}

/* ---- names ---- */

/* Digits at s: where they end; NULL: there is none. */
static const char *after_digits(const char *s)
{
    const char *end = s + strspn(s, "0123456789");
    return end > s ? end : NULL;
}

/* Is `name` ".FINAL" + mark + "PID-COUNTER", or that + ".old"? *n = bytes of FINAL, *is_old: ".old" is there. */
static int parse_temporary(const char *name, const char *mark, size_t *n, int *is_old)
{
    if (*name != '.') return 0;
    for (const char *at = strstr(name + 1, mark); at; at = strstr(at + 1, mark)) {
        const char *end = after_digits(at + strlen(mark));
        if (!end || *end != '-') continue;
        end = after_digits(end + 1);
        if (!end) continue;
        *is_old = strcmp(end, ".old") == 0;
        *n = (size_t)(at - name) - 1;
        if (*end == 0 || *is_old) return 1;
    }
    return 0;
}

int ttn_atomic_is_temporary(const char *name)
{
    size_t n;
    int is_old;
    return parse_temporary(name, TEMPORARY, &n, &is_old) || (parse_temporary(name, TRASH, &n, &is_old) && !is_old);
}

/* ---- leftovers ---- */

/* 0, or the errno. A previous version that was put aside, and whose final name nobody has got since, gets it back. */
static int clear_leftover(const char *path, const char *final, int is_old, const ttn_log *log)
{
    struct stat about;
    if (is_old && lstat(final, &about) != 0 && errno == ENOENT) {
        if (ttn_disk_rename(path, final) != 0) return errno;
        ttn_log_say(log, TTN_LOG_WARNING, "%s: has its name back; whoever was replacing it was killed", final);
        return 0;
    }
    int error = ttn_disk_remove(path);
    if (!error) ttn_log_say(log, TTN_LOG_INFO, "%s: removed; whoever was writing it was killed", path);
    return error;
}

/* One entry of the folder; what is not a leftover of ours is 0 as well. */
static int sweep_entry(const char *folder, const char *name, int (*is_ours)(const char *name, int is_folder),
                       const ttn_log *log)
{
    char path[PATH_MAX], final[PATH_MAX];
    size_t n = 0;
    int is_old = 0;
    if (!parse_temporary(name, TEMPORARY, &n, &is_old) && (!parse_temporary(name, TRASH, &n, &is_old) || is_old))
        return 0;
    int n_path = snprintf(path, sizeof path, "%s/%s", folder, name);
    int n_final = snprintf(final, sizeof final, "%s/%.*s", folder, (int)n, name + 1);
    if (n_path >= (int)sizeof path || n_final >= (int)sizeof final) return ENAMETOOLONG;
    struct stat about;
    if (lstat(path, &about) != 0) return errno == ENOENT ? 0 : errno;
    if (!is_ours(final + strlen(folder) + 1, S_ISDIR(about.st_mode))) return 0;
    return clear_leftover(path, final, is_old, log);
}

ttn_status ttn_atomic_sweep(const char *folder, int (*is_ours)(const char *name, int is_folder), const ttn_log *log,
                            ttn_error *err)
{
    char shown[TTN_TAIL_ROOM], entry_shown[TTN_TAIL_ROOM];
    DIR *d = opendir(folder);
    if (!d) {
        int error = errno;
        return TTN_FAIL(err, ttn_disk_fault(error), "%s: cannot be looked through: %s%s", ttn_text_tail(folder, shown),
                        strerror(error), ttn_disk_advice(error));
    }
    ttn_status status = TTN_OK;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        int error = sweep_entry(folder, e->d_name, is_ours, log);
        if (error)
            status = TTN_FAIL(err, TTN_EIO, "%s/%s: a killed writer left it, and it cannot be removed: %s%s",
                              ttn_text_tail(folder, shown), ttn_text_tail(e->d_name, entry_shown), strerror(error),
                              ttn_disk_advice(error));
    }
    closedir(d);
    return status;
}

/* The file is removed, if nobody writes it: 1; 0: somebody does, or it cannot be told; -1 with errno: it stays. */
static int remove_unlocked(const char *path)
{
    struct stat opened, named;
    int fd = ttn_disk_open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0); /* NFS locks only what may be written */
    if (fd < 0) return 0;
    int is_free = fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0;
    /* Its writer may have given it its name between opening and locking it here. */
    is_free = is_free && lstat(path, &named) == 0 && named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
    int ret = is_free ? ttn_disk_unlink(path) == 0 ? 1 : -1 : 0;
    int error = errno;
    ttn_disk_close(fd);
    errno = error;
    return ret;
}

void ttn_atomic_sweep_dead(const char *folder, int (*is_ours)(void *ctx, const char *name), void *ctx,
                           const ttn_log *log)
{
    char path[PATH_MAX], name[NAME_MAX + 1];
    size_t n;
    int is_old;
    DIR *d = opendir(folder);
    if (!d) return;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (!parse_temporary(e->d_name, TEMPORARY, &n, &is_old) || is_old || n >= sizeof name) continue;
        memcpy(name, e->d_name + 1, n);
        name[n] = 0;
        if (!is_ours(ctx, name)) continue;
        if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path) continue;
        const int removed = remove_unlocked(path);
        if (removed > 0) ttn_log_say(log, TTN_LOG_INFO, "%s: removed; whoever was writing it was killed", path);
        if (removed < 0)
            ttn_log_say(log, TTN_LOG_WARNING, "%s: a killed writer left it, and it cannot be removed: %s", path,
                        strerror(errno));
    }
    closedir(d);
}

static int is_name(void *ctx, const char *name)
{
    return strcmp(ctx, name) == 0;
}

void ttn_atomic_sweep_dead_of(const char *path, const ttn_log *log)
{
    char real[PATH_MAX], folder[PATH_MAX];
    /* What is there may be a link: the temporary lies beside what it leads to. */
    if (!realpath(path, real) &&
        snprintf(real, sizeof real, "%s%s", strchr(path, '/') ? "" : "./", path) >= (int)sizeof real)
        return;
    const int n = ttn_disk_folder_length(real);
    snprintf(folder, sizeof folder, "%.*s", n > 1 ? n - 1 : n, real);
    ttn_atomic_sweep_dead(folder, is_name, real + n, log);
}
