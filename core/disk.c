#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "core/disk.h"
#include "core/text.h"

/* ---- one call ---- */

int ttn_disk_open(const char *path, int flags, mode_t mode)
{
    return (int)TEMP_FAILURE_RETRY(open(path, flags | O_CLOEXEC, mode));
}

int ttn_disk_fsync(int fd)
{
    return (int)TEMP_FAILURE_RETRY(fsync(fd));
}

int ttn_disk_fsync_folder(int fd)
{
    return ttn_disk_fsync(fd) == 0 || errno == EINVAL ? 0 : -1;
}

int ttn_disk_close(int fd)
{
    return close(fd) == 0 || errno == EINTR ? 0 : -1;
}

int ttn_disk_mkdir(const char *path, mode_t mode)
{
    return (int)TEMP_FAILURE_RETRY(mkdir(path, mode));
}

int ttn_disk_make_folders(const char *path, int *ret_made)
{
    char part[PATH_MAX];
    const size_t n = strlen(path);
    *ret_made = 0;
    if (n >= sizeof part) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (size_t i = 1; i <= n; i++) {
        if (i < n && path[i] != '/') continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (ttn_disk_mkdir(part, 0777) == 0)
            ++*ret_made;
        else if (errno != EEXIST)
            return -1;
    }
    return 0;
}

void ttn_disk_remove_folders(const char *path, int made)
{
    char part[PATH_MAX];
    const int error = errno;
    size_t n = strlen(path);
    if (n >= sizeof part) return; /* none was made */
    memcpy(part, path, n + 1);
    while (made > 0 && n > 0) {
        part[n] = 0;
        if (ttn_disk_rmdir(part) != 0 && errno != ENOENT) break; /* ENOENT: where making them failed on the way */
        if (errno != ENOENT) made--;
        while (n > 0 && part[n - 1] != '/')
            n--;
        while (n > 0 && part[n - 1] == '/')
            n--;
    }
    errno = error;
}

int ttn_disk_rename(const char *from, const char *to)
{
    return (int)TEMP_FAILURE_RETRY(rename(from, to));
}

int ttn_disk_exchange(const char *a, const char *b)
{
    return (int)TEMP_FAILURE_RETRY(renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE));
}

int ttn_disk_unlink(const char *path)
{
    return (int)TEMP_FAILURE_RETRY(unlink(path));
}

int ttn_disk_rmdir(const char *path)
{
    return (int)TEMP_FAILURE_RETRY(rmdir(path));
}

enum { MOST_AT_ONCE = 1 << 30 }; /* one read or write takes less than 2 GiB */

int ttn_disk_write(int fd, const void *bytes, size_t n)
{
    const char *from = bytes;
    while (n > 0) {
        ssize_t written = TEMP_FAILURE_RETRY(write(fd, from, n < MOST_AT_ONCE ? n : MOST_AT_ONCE));
        if (written == 0) errno = EIO;
        if (written <= 0) return -1;
        from += written;
        n -= (size_t)written;
    }
    return 0;
}

ssize_t ttn_disk_read_at(int fd, void *bytes, size_t n, int64_t offset)
{
    char *to = bytes;
    size_t done = 0;
    while (done < n) {
        size_t part = n - done < MOST_AT_ONCE ? n - done : MOST_AT_ONCE;
        ssize_t got = TEMP_FAILURE_RETRY(pread(fd, to + done, part, (off_t)(offset + (int64_t)done)));
        if (got < 0) return -1;
        if (got == 0) break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* ---- what to say ---- */

const char *ttn_disk_advice(int error)
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
    case ENOTDIR:
        return "; a file stands where a folder is wanted";
    case ENOMEM:
        return "; end other programs";
    default:
        return "";
    }
}

ttn_status ttn_disk_fault(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return TTN_EINVAL;
    case ENOMEM:
        return TTN_ENOMEM;
    default:
        return TTN_EIO;
    }
}

int ttn_disk_folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* ---- room ---- */

char *ttn_disk_amount(size_t bytes, char *text)
{
    static const char *const unit[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double amount = (double)bytes;
    int u = 0;
    while (amount >= 999.5) {
        amount /= 1000;
        u++;
    }
    snprintf(text, TTN_DISK_AMOUNT, u > 0 && amount < 9.95 ? "%.1f %s" : "%.0f %s", amount, unit[u]);
    return text;
}

ttn_status ttn_disk_room(const char *folder, size_t bytes, const char *what, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    struct statvfs about;
    if (TEMP_FAILURE_RETRY(statvfs(folder, &about)) != 0) {
        int error = errno;
        return TTN_FAIL(err, ttn_disk_fault(error), "%s: cannot ask how much space %s has: %s%s", what,
                        ttn_text_tail(folder, shown), strerror(error), ttn_disk_advice(error));
    }
    const double free_bytes = (double)about.f_bavail * (double)about.f_frsize;
    const double needed = 1.05 * (double)bytes; /* names, blocks that are not full, what others write meanwhile */
    if (needed <= free_bytes) return TTN_OK;
    char need[TTN_DISK_AMOUNT], have[TTN_DISK_AMOUNT];
    return TTN_FAIL(err, TTN_EIO, "%s: needs %s (5 %% to spare included), and the file system of %s has %s left%s",
                    what, ttn_disk_amount((size_t)needed, need), ttn_text_tail(folder, shown),
                    ttn_disk_amount((size_t)free_bytes, have), ttn_disk_advice(ENOSPC));
}

/* ---- trees ---- */

int ttn_trail_start(ttn_trail *t, const char *path)
{
    t->n = strlen(path);
    if (t->n >= sizeof t->text) return ENAMETOOLONG;
    memcpy(t->text, path, t->n + 1);
    return 0;
}

int ttn_disk_walk(ttn_trail *t, int (*visit)(const char *path, const struct stat *about))
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
        if (!error && S_ISDIR(about.st_mode)) error = ttn_disk_walk(t, visit);
        if (!error) error = visit(t->text, &about);
        if (!error) {
            t->n = n;
            t->text[n] = 0;
        }
    }
    closedir(folder);
    return error;
}

static int remove_one(const char *path, const struct stat *about)
{
    int removed = S_ISDIR(about->st_mode) ? ttn_disk_rmdir(path) : ttn_disk_unlink(path);
    return removed == 0 || errno == ENOENT ? 0 : errno;
}

int ttn_disk_remove(const char *path)
{
    struct stat about;
    if (lstat(path, &about) != 0) return errno == ENOENT ? 0 : errno;
    if (S_ISDIR(about.st_mode)) {
        (void)chmod(path, S_IRWXU); /* a folder that its owner may not write to could not be emptied */
        ttn_trail t;
        int error = ttn_trail_start(&t, path);
        if (!error) error = ttn_disk_walk(&t, remove_one);
        if (error) return error;
    }
    return remove_one(path, &about);
}
