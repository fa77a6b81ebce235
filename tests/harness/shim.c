#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include "tests/harness/shim.h"

/* The linker's --wrap=NAME turns our calls of NAME into calls of __wrap_NAME, and __real_NAME into NAME. The list is
 * the Makefile's; a name that stands only there does not link. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **ret, size_t alignment, size_t size);
void *__real_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);
int __real_mprotect(void *address, size_t size, int protection);
ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t offset);
ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __real_pread(int fd, void *data, size_t size, off_t offset);
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __real_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
int __real_close(int fd);
int __real_open(const char *path, int flags, ...);
int __real_mkdir(const char *path, mode_t mode);
int __real_unlink(const char *path);
int __real_rmdir(const char *path);
int __real_symlink(const char *target, const char *path);
int __real_ftruncate(int fd, off_t size);
int __real_posix_fallocate(int fd, off_t offset, off_t size);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **ret, size_t alignment, size_t size);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_mprotect(void *address, size_t size, int protection);
ssize_t __wrap_write(int fd, const void *data, size_t size);
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_read(int fd, void *data, size_t size);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
int __wrap_close(int fd);
int __wrap_open(const char *path, int flags, ...);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_unlink(const char *path);
int __wrap_rmdir(const char *path);
int __wrap_symlink(const char *target, const char *path);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_posix_fallocate(int fd, off_t offset, off_t size);

/* The plan. `calls` is written last and read first: whoever sees it set sees the rest. */
static struct {
    _Atomic unsigned calls;
    _Atomic int64_t seen;
    _Atomic int hits;
    int64_t nth;
    shim_action action;
    int error;
    int from_there_on;
} plan;

void shim_arm(unsigned calls, int64_t nth, shim_action action, int error, int from_there_on)
{
    atomic_store(&plan.calls, 0);
    atomic_store(&plan.seen, 0);
    atomic_store(&plan.hits, 0);
    plan.nth = nth;
    plan.action = action;
    plan.error = error;
    plan.from_there_on = from_there_on;
    atomic_store(&plan.calls, calls);
}

int64_t shim_disarm(void)
{
    atomic_store(&plan.calls, 0);
    return atomic_load(&plan.seen);
}

int shim_was_hit(void)
{
    return atomic_load(&plan.hits) > 0;
}

/* Is this call the one? Counts it; does not come back from SHIM_KILL. */
static int is_hit(unsigned call)
{
    if (!(atomic_load(&plan.calls) & call)) return 0;
    int64_t n = atomic_fetch_add(&plan.seen, 1) + 1;
    if (n != plan.nth && !(plan.from_there_on && n > plan.nth)) return 0;
    atomic_fetch_add(&plan.hits, 1);
    if (plan.action == SHIM_KILL)
        for (;;)
            kill(getpid(), SIGKILL);
    return 1;
}

/* errno is set where the call is told to fail, and never else. */
static int fails(unsigned call)
{
    if (!is_hit(call)) return 0;
    errno = plan.error;
    return 1;
}

/* ---- the watch ---- */

static struct {
    int (*watch)(void *ctx, const shim_call *call);
    void *ctx;
} watcher;

void shim_watch(int (*watch)(void *ctx, const shim_call *call), void *ctx)
{
    watcher.watch = watch;
    watcher.ctx = ctx;
}

/* This thread is in the watch. */
static _Thread_local int is_watching;

/* 0, or the errno that the watch wants; errno is otherwise left alone. */
static int refusal(shim_call call)
{
    if (!watcher.watch || is_watching) return 0;
    int before = errno;
    is_watching = 1;
    int error = watcher.watch(watcher.ctx, &call);
    is_watching = 0;
    errno = error ? error : before;
    return error;
}

/* ---- memory ---- */

void *__wrap_malloc(size_t size)
{
    return fails(SHIM_ALLOC) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails(SHIM_ALLOC) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails(SHIM_ALLOC) ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails(SHIM_ALLOC) ? NULL : __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void **ret, size_t alignment, size_t size)
{
    return is_hit(SHIM_ALLOC) ? plan.error : __real_posix_memalign(ret, alignment, size);
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    return fails(SHIM_MAP) ? MAP_FAILED : __real_mmap(address, size, protection, flags, fd, offset);
}

int __wrap_mprotect(void *address, size_t size, int protection)
{
    return fails(SHIM_MAP) ? -1 : __real_mprotect(address, size, protection);
}

/* ---- files ---- */

static size_t half(size_t size)
{
    return size > 1 ? size / 2 : size;
}

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    if (refusal((shim_call){.name = "write", .fd = fd})) return -1;
    if (!is_hit(SHIM_WRITE)) return __real_write(fd, data, size);
    if (plan.action == SHIM_SHORT) return __real_write(fd, data, half(size));
    errno = plan.error;
    return -1;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset)
{
    if (refusal((shim_call){.name = "pwrite", .fd = fd})) return -1;
    if (!is_hit(SHIM_WRITE)) return __real_pwrite(fd, data, size, offset);
    if (plan.action == SHIM_SHORT) return __real_pwrite(fd, data, half(size), offset);
    errno = plan.error;
    return -1;
}

ssize_t __wrap_read(int fd, void *data, size_t size)
{
    if (!is_hit(SHIM_STREAM)) return __real_read(fd, data, size);
    if (plan.action == SHIM_SHORT) return __real_read(fd, data, half(size));
    errno = plan.error;
    return -1;
}

ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset)
{
    if (!is_hit(SHIM_READ)) return __real_pread(fd, data, size, offset);
    if (plan.action == SHIM_SHORT) return __real_pread(fd, data, half(size), offset);
    errno = plan.error;
    return -1;
}

int __wrap_fsync(int fd)
{
    if (refusal((shim_call){.name = "fsync", .fd = fd})) return -1;
    return fails(SHIM_FSYNC) ? -1 : __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    if (refusal((shim_call){.name = "rename", .fd = -1, .path = from, .to = to})) return -1;
    return fails(SHIM_RENAME) ? -1 : __real_rename(from, to);
}

int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    if (refusal((shim_call){.name = "renameat2", .fd = -1, .path = from, .to = to, .flags = (int)flags})) return -1;
    return fails(SHIM_RENAME) ? -1 : __real_renameat2(from_fd, from, to_fd, to, flags);
}

int __wrap_close(int fd)
{
    int error = refusal((shim_call){.name = "close", .fd = fd});
    if (!error && is_hit(SHIM_CLOSE)) error = plan.error;
    if (!error) return __real_close(fd);
    __real_close(fd); /* Linux frees the number even when it reports an error */
    errno = error;
    return -1;
}

int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    if (refusal((shim_call){.name = "open", .fd = -1, .path = path, .flags = flags})) return -1;
    return fails(SHIM_OPEN) ? -1 : __real_open(path, flags, mode);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    if (refusal((shim_call){.name = "mkdir", .fd = -1, .path = path})) return -1;
    return fails(SHIM_FOLDER) ? -1 : __real_mkdir(path, mode);
}

int __wrap_unlink(const char *path)
{
    if (refusal((shim_call){.name = "unlink", .fd = -1, .path = path})) return -1;
    return fails(SHIM_FOLDER) ? -1 : __real_unlink(path);
}

int __wrap_rmdir(const char *path)
{
    if (refusal((shim_call){.name = "rmdir", .fd = -1, .path = path})) return -1;
    return fails(SHIM_FOLDER) ? -1 : __real_rmdir(path);
}

int __wrap_symlink(const char *target, const char *path)
{
    if (refusal((shim_call){.name = "symlink", .fd = -1, .path = path, .to = target})) return -1;
    return fails(SHIM_FOLDER) ? -1 : __real_symlink(target, path);
}

int __wrap_ftruncate(int fd, off_t size)
{
    if (refusal((shim_call){.name = "ftruncate", .fd = fd})) return -1;
    return fails(SHIM_SIZE) ? -1 : __real_ftruncate(fd, size);
}

int __wrap_posix_fallocate(int fd, off_t offset, off_t size)
{
    int error = refusal((shim_call){.name = "posix_fallocate", .fd = fd});
    if (error) return error;
    return is_hit(SHIM_SIZE) ? plan.error : __real_posix_fallocate(fd, offset, size);
}

int shim_real_close(int fd)
{
    return __real_close(fd);
}
