/* A file, or a folder of files, that appears whole or not at all.
 *
 *     ttn_status status = ttn_atomic_file_create("weights.bin", &a, err);
 *     if (status == TTN_OK) status = ttn_atomic_write(a, bytes, n, err);
 *     if (status == TTN_OK) status = ttn_atomic_commit(a, err);
 *     ttn_atomic_destroy(a);
 *
 * Everything is written under a temporary name beside the final one; commit brings it to the disk (fsync of every
 * file and folder), then gives it its name (rename), then brings that to the disk (fsync of the folder it lies in).
 * So at any moment, also after a crash, kill -9 or power cut, the final name has the previous contents or the new,
 * whole. A call that fails leaves the previous contents in place, with one exception that the message names: see
 * ttn_atomic_in_place.
 *
 * Temporary names are ".NAME.tmp-PID-COUNTER", NAME cut where it would be too long. One that stays behind is of a
 * writer that was killed (or see ttn_atomic_leftover): ttn_atomic_sweep, ttn_atomic_sweep_dead. A temporary file is
 * locked (flock, shared) while it has a writer.
 *
 * Links: where the final name is a symbolic link, what it points to is written and the link stays, but for those calls
 * that say otherwise. A hard link is broken: its other names keep the previous contents.
 * Permissions: those of what is replaced, and its owner and group as far as this process may give them; where it may
 * not, group rights shrink to everybody's. A new file gets 0666, a new folder 0777, less the umask. ACLs and extended
 * attributes are not kept.
 *
 * Different objects may be used by different threads; with several writers of one name the last commit wins.
 */
#ifndef TTN_ATOMIC_H
#define TTN_ATOMIC_H

#include <stddef.h>
#include "core/log.h"
#include "core/status.h"

typedef struct ttn_atomic ttn_atomic;

/* Start the file `path`; a later chdir does not matter. *ret is the caller's: end with ttn_atomic_destroy.
 * TTN_EINVAL when the path cannot be one of a file (its folder is missing, it is a folder, a device, too long, …),
 * TTN_EIO when the system refuses, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_atomic_file_create(const char *path, ttn_atomic **ret, ttn_error *err);

/* The same, but a symbolic link at `path` is replaced by the file and not followed, and what it points to stays as it is:
 * for files of a folder that somebody else may have filled. */
TTN_MUST_USE ttn_status ttn_atomic_file_create_own(const char *path, ttn_atomic **ret, ttn_error *err);

/* The same for a folder: it starts empty, the caller makes what it wants under ttn_atomic_path and has closed it
 * before the commit. A folder that is there already is swapped for the new one (renameat2, one step), then removed.
 * On a file system that cannot swap (NFS, some FUSE) it is renamed to the temporary's name with ".old", then the new
 * one renamed: a kill between these two leaves both whole, and neither under the final name. */
TTN_MUST_USE ttn_status ttn_atomic_folder_create(const char *path, ttn_atomic **ret, ttn_error *err);

/* The same, but what is at path when it is committed (a folder, a file, a link, which is not followed) is not removed: it
 * gets the first free name "PATH.kept-N". The final name stands for one of the two, whole, at every moment: the new one
 * takes the name PATH.kept-N, then both are exchanged in one step. A writer killed between these leaves what was there in
 * place, and the new one under that name. Where the file system cannot exchange, what was there is renamed first: a kill
 * between these two leaves both whole, and neither under the final name. */
TTN_MUST_USE ttn_status ttn_atomic_folder_create_beside(const char *path, ttn_atomic **ret, ttn_error *err);

/* The temporary's absolute path, for libraries that open by name; borrowed until destroy. A file is there, empty, and
 * must stay the same file (written in place or truncated, not replaced). */
const char *ttn_atomic_path(const ttn_atomic *a);

/* Append to a file; small pieces are gathered. Not to be mixed with writing by name. TTN_EIO, and every later call
 * fails. */
TTN_MUST_USE ttn_status ttn_atomic_write(ttn_atomic *a, const void *bytes, size_t n, ttn_error *err);

/* Before the first ttn_atomic_write of a file: take the space for so many bytes now, so that a full disk shows here and
 * not after half of the writing. What turns out shorter is cut at commit. On file systems that cannot: TTN_OK. TTN_EIO. */
TTN_MUST_USE ttn_status ttn_atomic_reserve(ttn_atomic *a, size_t bytes, ttn_error *err);

/* Make it appear. Once, last, and with nobody writing to it. TTN_EIO (a full disk, …): the previous contents are in
 * place, the temporary is gone. */
TTN_MUST_USE ttn_status ttn_atomic_commit(ttn_atomic *a, ttn_error *err);

/* Does the final name show the new contents? Without a commit 0, after a successful one 1. Also 1 when the commit
 * failed at its very last step: the new contents are whole and have their name, but the disk did not confirm the name,
 * so that after a power cut it may be the previous contents again. */
int ttn_atomic_in_place(const ttn_atomic *a);

/* After commit of what ttn_atomic_folder_create_beside started: the absolute path of what was there. Borrowed until
 * destroy. NULL: nothing was, or it is still in place. */
const char *ttn_atomic_kept(const ttn_atomic *a);

/* After commit: the absolute path of a temporary, or of the previous folder, that stayed behind because the system
 * refused to remove it; or because the new folder's name is not confirmed (above), when the previous one is kept.
 * Borrowed until destroy. NULL: nothing did. */
const char *ttn_atomic_leftover(const ttn_atomic *a);

/* Ends it; without a commit everything that was written is removed. NULL is fine. */
void ttn_atomic_destroy(ttn_atomic *a);

/* All of it for a file whose n bytes are there already: ttn_atomic_file_create_own, write, commit. */
TTN_MUST_USE ttn_status ttn_atomic_save(const char *path, const void *bytes, size_t n, ttn_error *err);

/* ---- what else must not be seen half done ---- */

/* The symbolic link `path` leads to `target` (a text; nobody looks whether that is there): made, or replaced in one
 * step. TTN_EINVAL when there is something at path that is no symbolic link. TTN_EIO: the previous link stays, or the
 * message says that the new one is in place but not confirmed. */
TTN_MUST_USE ttn_status ttn_atomic_link(const char *path, const char *target, ttn_error *err);

/* Remove a folder with all that is in it: it is renamed to ".NAME.trash-PID-COUNTER" first and the disk confirms that,
 * so its name never stands for a part of it. TTN_EINVAL: there is no folder at path (a link to one is none). TTN_EIO:
 * it is whole and has its name; or the message says under which name what could not be removed stays. */
TTN_MUST_USE ttn_status ttn_atomic_remove(const char *path, ttn_error *err);

/* ---- what killed writers left ---- */

/* Is this file name (without folders) one that a temporary or trash has? Readers of a folder pass over those. */
int ttn_atomic_is_temporary(const char *name);

/* Remove from `folder` every temporary, and all trash, that was made for a final name which is_ours(name, is_folder)
 * accepts; names are as long as they were, so it must not accept ones that had to be cut. Only for one who knows that
 * nobody is writing them: holds the folder's lock, and writes nothing there itself. A previous folder that was put aside
 * by a writer killed before its successor appeared gets its name back. Each is told to log (NULL: silence).
 * TTN_EIO names one that resisted; the others are gone. */
TTN_MUST_USE ttn_status ttn_atomic_sweep(const char *folder, int (*is_ours)(const char *name, int is_folder),
                                         const ttn_log *log, ttn_error *err);

/* Remove from `folder` every temporary file that was made for a final name which is_ours(ctx, name) accepts, and whose
 * writer is gone: for one who does not know whether others write there, also on other machines. Its lock tells: where
 * the file system has none, nothing is removed. Each is told to log (NULL: silence), and so is what resists. */
void ttn_atomic_sweep_dead(const char *folder, int (*is_ours)(void *ctx, const char *name), void *ctx,
                           const ttn_log *log);

/* The same of one final name, at `path`; names that had to be cut are not found. */
void ttn_atomic_sweep_dead_of(const char *path, const ttn_log *log);

#endif
