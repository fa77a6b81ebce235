/* The calls to the file system that whatever writes files shares: made again after EINTR, with what a person can do about
 * a refusal, and over whole trees. Private to core and to what saves files.
 *
 * Functions that return int give 0 or -1 with errno, as the call they stand for; those that say so return the errno.
 */
#ifndef TTN_DISK_H
#define TTN_DISK_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "core/status.h"

/* ---- one call ---- */

/* O_CLOEXEC is added. */
int ttn_disk_open(const char *path, int flags, mode_t mode);
int ttn_disk_fsync(int fd);

/* Some file systems have no fsync for folders and say EINVAL: their names are as durable as they get, and this is 0. */
int ttn_disk_fsync_folder(int fd);

/* On Linux the descriptor is gone whatever close returns, EINTR included (which is 0 here); call it once. */
int ttn_disk_close(int fd);

int ttn_disk_mkdir(const char *path, mode_t mode);
/* The folder `path` and those it lies in, as far as they are not there (mkdir -p). *ret_made: how many it made, also where
 * that failed; to take them back with the second one, which leaves what is not empty, and errno as it is. */
int ttn_disk_make_folders(const char *path, int *ret_made);
void ttn_disk_remove_folders(const char *path, int made);
int ttn_disk_rename(const char *from, const char *to);
int ttn_disk_exchange(const char *a, const char *b); /* renameat2 with RENAME_EXCHANGE */
int ttn_disk_unlink(const char *path);
int ttn_disk_rmdir(const char *path);

/* All n bytes, or -1. Nothing written for a write of something is EIO. */
int ttn_disk_write(int fd, const void *bytes, size_t n);

/* Up to n bytes from offset on; fewer only at the file's end. The number, or -1. */
ssize_t ttn_disk_read_at(int fd, void *bytes, size_t n, int64_t offset);

/* ---- what to say ---- */

/* "; free some space, or write to another disk": what follows strerror(error) in a message, or "". */
const char *ttn_disk_advice(int error);

/* Of an errno about a path: TTN_EINVAL when it is the caller's mistake (no such folder, …), TTN_ENOMEM, else TTN_EIO. */
ttn_status ttn_disk_fault(int error);

/* The bytes of path before its last name, the slash included; 0 when there is no slash. */
int ttn_disk_folder_length(const char *path);

/* ---- room ---- */

/* The file system that `folder` is on has room for `bytes` and 5 % more, for the user that runs this. TTN_EIO with both
 * numbers when it has not; `what` ("the checkpoint run/ckpt/step-00000100") is the message's subject. */
TTN_MUST_USE ttn_status ttn_disk_room(const char *folder, size_t bytes, const char *what, ttn_error *err);

/* "1.5 GB", powers of 1000; text has TTN_DISK_AMOUNT bytes. Returns text. */
enum { TTN_DISK_AMOUNT = 32 };
char *ttn_disk_amount(size_t bytes, char *text);

/* ---- trees: everything in a folder, in no order, links not followed ---- */

/* A path that is lengthened and shortened while walking. */
typedef struct {
    char text[PATH_MAX];
    size_t n;
} ttn_trail;

/* 0, or ENAMETOOLONG. */
int ttn_trail_start(ttn_trail *t, const char *path);

/* Visit every entry of the folder t->text, the insides of a folder before itself. Stops at the first failure (also the
 * visit's), whose errno it returns: t->text is then where it happened. 0: all were visited. */
int ttn_disk_walk(ttn_trail *t, int (*visit)(const char *path, const struct stat *about));

/* A file, or a folder with all that is in it. 0, or the errno of what was refused. What is not there is removed. */
int ttn_disk_remove(const char *path);

#endif
