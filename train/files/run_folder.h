/* The folder of a run, and the checkpoints in it.
 *
 *     run/.lock                 who writes here (core/lock.h)
 *     run/ckpt/step-00012000/   a checkpoint (train/files/checkpoint.h)
 *     run/ckpt/latest           a link to the last one that was saved, for people and scripts; titin does not read it
 *     run/ckpt/best             a link to the best one so far, by whatever the run judges them
 *
 * Everything else in these folders is somebody else's and is never touched.
 */
#ifndef TTN_RUN_FOLDER_H
#define TTN_RUN_FOLDER_H

#include <limits.h>
#include <stdint.h>
#include "core/clock.h"
#include "core/log.h"
#include "core/status.h"
#include "train/files/checkpoint.h"

/* ---- one writer ---- */

typedef struct ttn_run_folder ttn_run_folder;

/* Make the folder at `path` this process's: it and ckpt/ are made when they are not there (their parents must be), the
 * lock is taken, and what killed writers left is removed, which log is told. clock NULL: the system's. *ret is the
 * caller's. TTN_EINVAL: another process writes there (the message says which); TTN_EIO, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_run_folder_open(const char *path, const ttn_clock *clock, const ttn_log *log,
                                            ttn_run_folder **ret, ttn_error *err);

/* A sign of life (ttn_lock_alive); call it every step. */
TTN_MUST_USE ttn_status ttn_run_folder_alive(ttn_run_folder *r, ttn_error *err);

const char *ttn_run_folder_path(const ttn_run_folder *r);
void ttn_run_folder_close(ttn_run_folder *r); /* NULL is fine */

/* Where `name` lies in the run's folder `run`; ret has PATH_MAX bytes. TTN_EINVAL: the path is too long. */
TTN_MUST_USE ttn_status ttn_run_path(const char *run, const char *name, char *ret, ttn_error *err);

/* ---- which checkpoints there are: for anybody, with or without the lock ---- */

enum { TTN_STEP_NAME = 32 };

/* "step-00012000"; text has TTN_STEP_NAME bytes. Returns text. */
char *ttn_step_name(int64_t step, char *text);

/* The step that a name stands for: 1; 0 when it is no such name. */
int ttn_step_parse(const char *name, int64_t *ret);

/* Is the checkpoint in the folder `path`, whose state says that it is of `step`, of the step that the folder is called
 * after? Also TTN_OK when that is no such name at all. TTN_ECHECKPOINT: it is a copy, or was renamed, and a run that took
 * it would go on at another step than it says. */
TTN_MUST_USE ttn_status ttn_step_check(const char *path, int64_t step, ttn_error *err);

/* Steps of the folders in path/ckpt that have the name of a checkpoint, newest first; whole or not is not asked. No
 * ckpt: none. *ret is the caller's (ttn_free). TTN_EIO, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_run_checkpoints(const char *path, int64_t **ret, int64_t *n, ttn_error *err);

/* The step that ckpt/best leads to; -1: there is no such link. Whether the checkpoint is there is not asked. */
int64_t ttn_run_best(const char *path);

/* What else is in path/ckpt because of titin. */
typedef struct {
    char name[NAME_MAX + 1];
    int made_way; /* 1: it was there when a checkpoint got its name (ttn_run_may_replace); 0: it is being written or
                     removed, or whoever did that was killed, and the next writer removes it */
} ttn_run_other;

/* In the order of their names; no ckpt: none. *ret is the caller's (ttn_free). TTN_EIO, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_run_others(const char *path, ttn_run_other **ret, int64_t *n, ttn_error *err);

/* Open the newest checkpoint of the run that is whole, and of the step that it is called after. Those that are passed over, and why, are warnings to log. *ret
 * NULL with TTN_OK: there is no checkpoint at all. TTN_ECHECKPOINT: there are, but none can be used; or the newest
 * whole one is of another version of the format, which is nobody's damage and no reason to go back. TTN_EIO,
 * TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_run_newest(const char *path, const ttn_log *log, ttn_checkpoint **ret, ttn_error *err);

/* ---- around a save ---- */

/* May a save replace what has the name of the checkpoint of `step`? 1, also when nothing has it. 0: it holds anything that
 * titin did not put there, or is a link (writing would replace what it leads to), or no folder; reason (TTN_REASON bytes)
 * says which, as what follows its name in a sentence. Save with ttn_checkpoint_write_beside then. */
enum { TTN_REASON = 160 };
int ttn_run_may_replace(const ttn_run_folder *r, int64_t step, char *reason);

/* Let ckpt/latest lead to the checkpoint of `step`. */
TTN_MUST_USE ttn_status ttn_run_set_latest(const ttn_run_folder *r, int64_t step, ttn_error *err);

/* And ckpt/best: what it leads to is not removed by ttn_run_retain, and not counted either. */
TTN_MUST_USE ttn_status ttn_run_set_best(const ttn_run_folder *r, int64_t step, ttn_error *err);

/* Keep `keep` checkpoints (at least 1) and remove the others: that of step `saved`, which was just saved and may be older
 * than others of the run (-1: none was), and the newest. Counted are those whose manifest, lengths and step are right; others
 * (damaged ones, and those called after another step) are neither counted nor removed. One that holds anything its manifest does not list, or is a link, is somebody's and not
 * removed either, and log is told. The first failure is returned when all have been tried. */
TTN_MUST_USE ttn_status ttn_run_retain(const ttn_run_folder *r, int keep, int64_t saved, const ttn_log *log,
                                       ttn_error *err);

#endif
