/* Calls to the system that fail when a test says so.
 *
 * Test programs are linked with --wrap for the calls listed in the Makefile (SHIMMED); a call from our objects
 * comes to shim.c, which counts it, fails it, cuts it short or kills the process, or else passes it on.
 * LD_PRELOAD would do the same but not under AddressSanitizer. Thread-safe.
 */
#ifndef TTN_SHIM_H
#define TTN_SHIM_H

#include <stdint.h>

/* Which calls a plan looks at; any set. */
enum {
    SHIM_ALLOC = 1 << 0, /* malloc calloc realloc aligned_alloc posix_memalign */
    SHIM_MAP = 1 << 1,   /* mmap mprotect */
    SHIM_WRITE = 1 << 2, /* write pwrite */
    SHIM_FSYNC = 1 << 3,
    SHIM_RENAME = 1 << 4, /* rename renameat2 */
    SHIM_CLOSE = 1 << 5,
    SHIM_OPEN = 1 << 6,
    SHIM_FOLDER = 1 << 7,  /* mkdir unlink rmdir symlink */
    SHIM_SIZE = 1 << 8,    /* ftruncate posix_fallocate */
    SHIM_READ = 1 << 9,    /* pread */
    SHIM_STREAM = 1 << 10, /* read */
    SHIM_FILES = SHIM_WRITE | SHIM_FSYNC | SHIM_RENAME | SHIM_CLOSE | SHIM_OPEN | SHIM_FOLDER | SHIM_SIZE,
};

typedef enum {
    SHIM_FAIL, /* the call does nothing, returns its failure and sets errno = error (close closes all the same) */
    SHIM_SHORT, /* write, pwrite, read, pread: only half of the bytes (at least 1) are taken and reported; others as SHIM_FAIL */
    SHIM_KILL, /* the process gets SIGKILL in place of the call */
} shim_action;

/* From now on the nth matching call (1 is the next one) is hit; with `from_there_on`, all after it too.
 * Counting starts at 0. Arm and disarm while no thread is inside a matching call. A forked child inherits the plan. */
void shim_arm(unsigned calls, int64_t nth, shim_action action, int error, int from_there_on);

/* Nothing is hit any more. Returns how many matching calls were made since shim_arm. */
int64_t shim_disarm(void);

/* Was a call hit since shim_arm? */
int shim_was_hit(void);

/* One call of SHIM_FILES, before it is made. */
typedef struct {
    const char *name; /* "write", "renameat2", … */
    int fd;           /* -1: none */
    const char *path; /* NULL: none */
    const char *to;   /* of rename, renameat2 and symlink (what it leads to); NULL: none */
    int flags;        /* of open and renameat2; 0: none */
} shim_call;

/* Show every call of SHIM_FILES to watch(ctx, call), which returns 0, or the errno that it is to fail with: for tests
 * of their order, and for failures that no count describes. What it lets pass is then counted, and may be hit. NULL
 * ends it. Calls of several threads are shown at the same time; the watch's own are not shown. Begin and end while no
 * thread is inside such a call. */
void shim_watch(int (*watch)(void *ctx, const shim_call *call), void *ctx);

/* The harness's own: never counted, never failed. */
int shim_real_close(int fd);

#endif
