#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/atomic.h"
#include "core/memory.h"
#include "core/text.h"

/* Paths, not openat and the like: other libraries open the temporary by its name, so it must have one that works. */
struct ttn_atomic {
    ttn_arena *texts;      /* all strings below */
    const char *shown;     /* the path as the caller gave it, for messages (ttn_text_tail) */
    const char *final;     /* absolute, links followed */
    const char *temporary; /* beside it */
    const char *aside;     /* beside it: where the previous folder goes when it cannot be swapped */
    const char *leftover;  /* NULL, temporary or aside */
    char *buffer;          /* (BUFFER) of a file */
    size_t n_buffered;
    int fd;     /* the temporary; -1: closed */
    int parent; /* the folder that both lie in */
    int is_folder;
    int replaces; /* `old` holds */
    struct stat old;
    int failed;   /* a call failed: nothing will appear */
    int exists;   /* there is a temporary to remove */
    int in_place; /* the final name shows the new contents */
};

enum { BUFFER = 64 << 10, MAX_LINKS = 40 /* as the kernel */, MAX_LEFTOVERS = 1000 };

/* ---- messages ---- */

static const char *advice(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "; free some space, or write to another disk";
    case EFBIG:
        return "; raise the limit on file sizes (ulimit -f), or write to another file system";
    case EACCES:
    case EPERM:
        return "; check who may write to its folder";
    case EROFS:
        return "; write to a file system that is mounted for writing";
    case EIO:
        return "; the disk may be failing: see the system's log (dmesg)";
    case EMFILE:
    case ENFILE:
        return "; raise the limit on open files (ulimit -n)";
    case ENAMETOOLONG:
        return "; choose a shorter name";
    case ENOMEM:
        return "; end other programs";
    default:
        return "";
    }
}

/* "PATH: cannot DOING WHERE: why; what to do". where: "", or a part of what is written. */
static ttn_status fail(ttn_atomic *a, ttn_status status, int error, const char *doing, const char *where,
                       ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    a->failed = 1;
    if (error == ENOMEM) status = TTN_ENOMEM;
    (void)TTN_FAIL(err, status, "%s: cannot %s%s%s: %s%s%s", a->shown, doing, *where ? " " : "",
                   ttn_text_tail(where, shown), strerror(error), advice(error),
                   a->replaces ? " (what was there stays)" : "");
    return status;
}

static ttn_status no_memory(ttn_atomic *a, ttn_error *err)
{
    return fail(a, TTN_ENOMEM, ENOMEM, "keep its name", "", err);
}

/* ---- calls that are made again after EINTR ---- */

static int open_again(const char *path, int flags, mode_t mode)
{
    return (int)TEMP_FAILURE_RETRY(open(path, flags | O_CLOEXEC, mode));
}

static int fsync_again(int fd)
{
    return (int)TEMP_FAILURE_RETRY(fsync(fd));
}

/* On Linux the descriptor is gone whatever close returns, EINTR included; the data were given to fsync before. */
static int close_once(int fd)
{
    return close(fd) == 0 || errno == EINTR ? 0 : -1;
}

static int rename_again(const char *from, const char *to)
{
    return (int)TEMP_FAILURE_RETRY(rename(from, to));
}

static int exchange_again(const char *a, const char *b)
{
    return (int)TEMP_FAILURE_RETRY(renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE));
}

static int unlink_again(const char *path)
{
    return (int)TEMP_FAILURE_RETRY(unlink(path));
}

static int rmdir_again(const char *path)
{
    return (int)TEMP_FAILURE_RETRY(rmdir(path));
}

/* Some file systems have no fsync for folders and say EINVAL: their names are as durable as they get. */
static int fsync_folder(int fd)
{
    return fsync_again(fd) == 0 || errno == EINVAL ? 0 : -1;
}

/* ---- trees: everything in a folder, in no order, links not followed ---- */

/* A path that is lengthened and shortened while walking. */
typedef struct {
    char text[PATH_MAX];
    size_t n;
} trail;

static int trail_start(trail *t, const char *path)
{
    t->n = strlen(path);
    if (t->n >= sizeof t->text) return ENAMETOOLONG;
    memcpy(t->text, path, t->n + 1);
    return 0;
}

/* Visit every entry of the folder t->text, the insides of a folder before itself. Stops at the first failure, whose
 * errno it returns: t->text is then where it happened. */
static int walk(trail *t, int (*visit)(const char *path, const struct stat *about))
{
    DIR *folder = opendir(t->text);
    if (!folder) return errno;
    const size_t n = t->n;
    int error = 0;
    while (!error) {
        errno = 0;
        struct dirent *entry = readdir(folder);
        if (!entry) {
            error = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        size_t longer = (size_t)snprintf(t->text + n, sizeof t->text - n, "/%s", entry->d_name);
        if (longer >= sizeof t->text - n) {
            error = ENAMETOOLONG;
            break;
        }
        t->n = n + longer;
        struct stat about;
        if (lstat(t->text, &about) != 0) error = errno;
        if (!error && S_ISDIR(about.st_mode)) error = walk(t, visit);
        if (!error) error = visit(t->text, &about);
        if (!error) {
            t->n = n;
            t->text[n] = 0;
        }
    }
    closedir(folder);
    return error;
}

static int sync_one(const char *path, const struct stat *about)
{
    int is_folder = S_ISDIR(about->st_mode);
    if (!is_folder && !S_ISREG(about->st_mode)) return 0; /* links are in their folder; pipes hold nothing */
    int fd = open_again(path, O_RDONLY | O_NOFOLLOW | (is_folder ? O_DIRECTORY : 0), 0);
    if (fd < 0) return errno;
    int error = (is_folder ? fsync_folder(fd) : fsync_again(fd)) == 0 ? 0 : errno;
    if (close_once(fd) != 0 && !error) error = errno;
    return error;
}

static int remove_one(const char *path, const struct stat *about)
{
    int removed = S_ISDIR(about->st_mode) ? rmdir_again(path) : unlink_again(path);
    return removed == 0 || errno == ENOENT ? 0 : errno;
}

/* A file, or a folder with all that is in it. 0, or the errno of what was refused. */
static int remove_all(const char *path)
{
    struct stat about;
    if (lstat(path, &about) != 0) return errno == ENOENT ? 0 : errno;
    if (S_ISDIR(about.st_mode)) {
        (void)chmod(path, S_IRWXU); /* a folder that its owner may not write to could not be emptied */
        trail t;
        int error = trail_start(&t, path);
        if (!error) error = walk(&t, remove_one);
        if (error) return error;
    }
    return remove_one(path, &about);
}

/* ---- create ---- */

/* Is it the caller's mistake, or does the system refuse? */
static ttn_status fault_of(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return TTN_EINVAL;
    default:
        return TTN_EIO;
    }
}

/* path without slashes at its end; "/" stays. */
static char *without_slashes(ttn_arena *texts, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return ttn_arena_text(texts, "%.*s", (int)n, path);
}

/* The bytes of path before its last name, the slash included. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* *ret = what path leads to when it is a symbolic link, also a dangling one (realpath refuses those), else path. */
static ttn_status follow_links(ttn_atomic *a, const char *path, const char **ret, ttn_error *err)
{
    char target[PATH_MAX];
    for (int i = 0; i <= MAX_LINKS; i++) {
        a->replaces = lstat(path, &a->old) == 0;
        if (!a->replaces && errno != ENOENT) {
            int error = errno;
            return fail(a, fault_of(error), error, "be written", "", err);
        }
        *ret = path;
        if (!a->replaces || !S_ISLNK(a->old.st_mode)) return TTN_OK;
        a->replaces = 0;
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n < 0) return fail(a, TTN_EIO, errno, "follow the link", path, err);
        target[n] = 0;
        const char *next = without_slashes(a->texts, target);
        if (next && *next != '/') next = ttn_arena_text(a->texts, "%.*s%s", folder_length(path), path, next);
        if (!next) return no_memory(a, err);
        path = next;
    }
    return fail(a, TTN_EINVAL, ELOOP, "follow its links", "", err);
}

static ttn_status check_kind(ttn_atomic *a, ttn_error *err)
{
    if (!a->replaces) return TTN_OK;
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

    const char *name = plain + folder_length(plain);
    if (*name == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return TTN_FAIL(err, TTN_EINVAL, "%s: does not end in a name that can be given to something", a->shown);
    const char *folder = ttn_arena_text(a->texts, "%.*s", folder_length(plain), plain);
    if (!folder) return no_memory(a, err);
    if (*folder == 0) folder = ".";
    char real[PATH_MAX], shown[TTN_TAIL_ROOM];
    if (!realpath(folder, real)) {
        int error = errno;
        if (error == ENOENT)
            return TTN_FAIL(err, TTN_EINVAL, "%s: there is no folder %s; create it first (mkdir -p)", a->shown,
                            ttn_text_tail(folder, shown));
        return fail(a, fault_of(error), error, "find its folder", folder, err);
    }
    a->final = ttn_arena_text(a->texts, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
    if (!a->final) return no_memory(a, err);
    a->parent = open_again(real, O_RDONLY | O_DIRECTORY, 0);
    if (a->parent < 0) return fail(a, TTN_EIO, errno, "open its folder", folder, err);
    return TTN_OK;
}

/* Names that nobody has yet, the counter-th ones. */
static ttn_status name_temporary(ttn_atomic *a, int counter, ttn_error *err)
{
    char mark[64];
    int n_mark = snprintf(mark, sizeof mark, ".tmp-%ld-%d", (long)getpid(), counter);
    long most = fpathconf(a->parent, _PC_NAME_MAX);
    if (most <= 0) most = NAME_MAX;
    const char *name = a->final + folder_length(a->final);
    long n = (long)strlen(name);
    long room = most - n_mark - 5; /* "." before and ".old" behind */
    if (n > room) {
        n = room > 0 ? room : 0;
        while (n > 0 && ((unsigned char)name[n] & 0xC0) == 0x80) /* not inside a UTF-8 character */
            n--;
    }
    int n_folder = folder_length(a->final);
    a->temporary = ttn_arena_text(a->texts, "%.*s.%.*s%s", n_folder, a->final, (int)n, name, mark);
    a->aside = a->temporary ? ttn_arena_text(a->texts, "%s.old", a->temporary) : NULL;
    return a->aside ? TTN_OK : no_memory(a, err);
}

/* Create the temporary under the first name that is free. Its rights are never wider than the final ones. */
static ttn_status make_temporary(ttn_atomic *a, ttn_error *err)
{
    for (int counter = 0; counter < MAX_LEFTOVERS; counter++) {
        ttn_status status = name_temporary(a, counter, err);
        if (status != TTN_OK) return status;
        struct stat about;
        if (a->is_folder && lstat(a->aside, &about) == 0) continue;
        mode_t mode = a->is_folder ? 0777 : 0666;
        if (a->replaces) mode = a->is_folder ? S_IRWXU : S_IRUSR | S_IWUSR; /* keep_rights widens it at the end */
        if (a->is_folder) {
            a->exists = TEMP_FAILURE_RETRY(mkdir(a->temporary, mode)) == 0;
            if (a->exists) a->fd = open_again(a->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        } else {
            a->fd = open_again(a->temporary, O_RDWR | O_CREAT | O_EXCL, mode);
            a->exists = a->fd >= 0;
        }
        if (a->fd >= 0) return TTN_OK;
        int error = errno;
        if (error != EEXIST || a->exists)
            return fail(a, fault_of(error), error, "create the temporary", a->temporary, err);
    }
    return fail(a, TTN_EIO, EEXIST, "find a free name like", a->temporary, err);
}

static ttn_status create(const char *path, int is_folder, ttn_atomic **ret, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    *ret = NULL;
    ttn_atomic *a = ttn_alloc_or_say(1, sizeof *a, ttn_text_tail(path, shown), err);
    if (!a) return TTN_ENOMEM;
    *a = (ttn_atomic){.is_folder = is_folder, .fd = -1, .parent = -1};
    ttn_status status = ttn_arena_create(4096, &a->texts, err);
    if (status == TTN_OK) {
        a->shown = ttn_arena_text(a->texts, "%s", shown);
        if (!a->shown) status = TTN_FAIL(err, TTN_ENOMEM, "no memory to write %s; end other programs", shown);
    }
    if (status == TTN_OK && !is_folder) {
        a->buffer = ttn_alloc_or_say(1, BUFFER, a->shown, err);
        if (!a->buffer) status = TTN_ENOMEM;
    }
    if (status == TTN_OK) status = find_place(a, path, err);
    if (status == TTN_OK) status = make_temporary(a, err);
    if (status == TTN_OK)
        *ret = a;
    else
        ttn_atomic_destroy(a);
    return status;
}

ttn_status ttn_atomic_file_create(const char *path, ttn_atomic **ret, ttn_error *err)
{
    return create(path, 0, ret, err);
}

ttn_status ttn_atomic_folder_create(const char *path, ttn_atomic **ret, ttn_error *err)
{
    return create(path, 1, ret, err);
}

const char *ttn_atomic_path(const ttn_atomic *a)
{
    return a->temporary;
}

/* ---- write ---- */

static ttn_status write_out(ttn_atomic *a, const char *bytes, size_t n, ttn_error *err)
{
    while (n > 0) {
        size_t part = n < 1 << 30 ? n : 1 << 30; /* one write takes less than 2 GiB */
        ssize_t written = TEMP_FAILURE_RETRY(write(a->fd, bytes, part));
        if (written <= 0) return fail(a, TTN_EIO, written < 0 ? errno : EIO, "be written", "", err);
        bytes += written;
        n -= (size_t)written;
    }
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
    if (n >= BUFFER) return write_out(a, bytes, n, err);
    if (n > 0) memcpy(a->buffer + a->n_buffered, bytes, n);
    a->n_buffered += n;
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

/* Everything under the temporary name is on the disk, and closed. */
static ttn_status bring_to_disk(ttn_atomic *a, ttn_error *err)
{
    if (a->is_folder) {
        trail t;
        int error = trail_start(&t, a->temporary);
        if (!error) error = walk(&t, sync_one);
        if (error) {
            size_t n = strlen(a->temporary);
            return fail(a, TTN_EIO, error, "bring to the disk", t.n > n ? t.text + n + 1 : "it", err);
        }
    } else {
        ttn_status status = flush(a, err);
        if (status != TTN_OK) return status;
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
    if (a->replaces) {
        int error = keep_rights(a);
        if (error) return fail(a, TTN_EIO, error, "get the permissions of what it replaces", "", err);
    }
    if ((a->is_folder ? fsync_folder(a->fd) : fsync_again(a->fd)) != 0)
        return fail(a, TTN_EIO, errno, "be brought to the disk", "", err);
    int fd = a->fd;
    a->fd = -1;
    if (close_once(fd) != 0) return fail(a, TTN_EIO, errno, "be closed", "", err);
    return TTN_OK;
}

/* For file systems without exchange. *previous = where the previous folder is. */
static ttn_status swap_in_two_steps(ttn_atomic *a, const char **previous, ttn_error *err)
{
    if (rename_again(a->final, a->aside) != 0)
        return fail(a, TTN_EIO, errno, "rename the previous one to", a->aside, err);
    if (rename_again(a->temporary, a->final) == 0) {
        *previous = a->aside;
        return TTN_OK;
    }
    int error = errno;
    char shown[TTN_TAIL_ROOM];
    if (rename_again(a->aside, a->final) == 0) return fail(a, TTN_EIO, error, "take its name", "", err);
    a->failed = 1;
    a->leftover = a->aside;
    return TTN_FAIL(err, TTN_EIO,
                    "%s: cannot take its name: %s; the previous one is whole but now called %s: rename it", a->shown,
                    strerror(error), ttn_text_tail(a->aside, shown));
}

/* The final name shows the new contents. *previous = where the previous folder is now, NULL: there is none. */
static ttn_status appear(ttn_atomic *a, const char **previous, ttn_error *err)
{
    int swap = a->is_folder && a->replaces;
    /* Other writers of the name may come and go between two steps; more than a few times in a row is no accident. */
    for (int tries = 0; tries < 8; tries++) {
        if (!swap) {
            if (rename_again(a->temporary, a->final) == 0) return TTN_OK;
            swap = a->is_folder && (errno == ENOTEMPTY || errno == EEXIST);
            if (!swap) break;
        } else {
            if (exchange_again(a->temporary, a->final) == 0) {
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
    if (a->fd >= 0) close_once(a->fd);
    a->fd = -1;
    if (!a->exists) return;
    a->exists = 0;
    if (remove_all(a->temporary) != 0 && !a->leftover) a->leftover = a->temporary;
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
    if (fsync_folder(a->parent) != 0) {
        int error = errno;
        char shown[TTN_TAIL_ROOM];
        a->leftover = previous; /* the disk may still need it */
        return TTN_FAIL(err, TTN_EIO,
                        "%s: the new contents are in place, but the disk did not confirm their name: %s%s%s%s%s",
                        a->shown, strerror(error), advice(error), previous ? " (the previous ones are kept: " : "",
                        ttn_text_tail(previous ? previous : "", shown), previous ? ")" : "");
    }
    if (previous && remove_all(previous) != 0) a->leftover = previous;
    return TTN_OK;
}

int ttn_atomic_in_place(const ttn_atomic *a)
{
    return a->in_place;
}

const char *ttn_atomic_leftover(const ttn_atomic *a)
{
    return a->leftover;
}

void ttn_atomic_destroy(ttn_atomic *a)
{
    if (!a) return;
    discard(a);
    if (a->parent >= 0) close_once(a->parent);
    ttn_free(a->buffer);
    ttn_arena_destroy(a->texts);
    ttn_free(a);
}

/* ---- names ---- */

/* Digits at s: where they end; NULL: there is none. */
static const char *after_digits(const char *s)
{
    const char *end = s + strspn(s, "0123456789");
    return end > s ? end : NULL;
}

int ttn_atomic_is_temporary(const char *name)
{
    if (*name != '.') return 0;
    for (const char *mark = strstr(name + 1, ".tmp-"); mark; mark = strstr(mark + 1, ".tmp-")) {
        const char *end = after_digits(mark + 5);
        if (!end || *end != '-') continue;
        end = after_digits(end + 1);
        if (end && (*end == 0 || strcmp(end, ".old") == 0)) return 1;
    }
    return 0;
}
