/* The folder of a run, and the checkpoints in it.
 *
 *     run/.lock                 who writes here (core/lock.h)
 *     run/ckpt/step-00012000/   a checkpoint (train/files/checkpoint.h)
 *     run/ckpt/latest           a link to the last one that was saved, for people and scripts; titin does not read it
 *     run/ckpt/best             a link to the best one so far; which one that is, state.json of the newest says as well
 *     run/metrics.jsonl …       files of their own, by the names below
 *
 * Everything else in these folders is somebody else's and is never touched. What a run writes lies in its own folder: where
 * one of these names is a link, it is refused and what it leads to stays as it is (a folder that came from somebody else
 * may have any). The path to the run's folder itself may lead through links.
 */
#ifndef TTN_RUN_FOLDER_H
#define TTN_RUN_FOLDER_H

#include <limits.h>
#include <stdint.h>
#include "core/clock.h"
#include "core/log.h"
#include "core/status.h"
#include "train/files/checkpoint.h"

/* ---- names in it ---- */

#define TTN_RUN_CONFIG    "config.resolved.yaml"
#define TTN_RUN_STARTS    "run.json"
#define TTN_RUN_METRICS   "metrics.jsonl"
#define TTN_RUN_CURVE     "loss.svg"
#define TTN_RUN_REPORT    "report.html"
#define TTN_RUN_EVENTS    "tb"   /* a folder */
#define TTN_RUN_NONFINITE "nan-" /* and the name of a step: a folder (train/nonfinite.h) */

/* ---- one writer ---- */

typedef struct ttn_run_folder ttn_run_folder;

/* Make the folder at `path` this process's: it and ckpt/ are made when they are not there (their parents must be), the
 * lock is taken, and what killed writers left of the files above and of checkpoints is removed. log is told of that, and
 * must live as long as *ret, which is the caller's. clock NULL: the system's. TTN_EINVAL: another process writes there (the
 * message says which); one of the names above is a link, or a folder instead of a file; TTN_EIO, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_run_folder_open(const char *path, const ttn_clock *clock, const ttn_log *log,
                                            ttn_run_folder **ret, ttn_error *err);

/* What opening says of names that are links, or something else than they should be; nothing is made or changed. */
TTN_MUST_USE ttn_status ttn_run_folder_check(const char *path, ttn_error *err);

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

/* The step of the best checkpoint so far, by the newest state.json that can be read; where that knows none, the step that
 * the link ckpt/best leads to; -1: nobody knows. Whether the checkpoint is there is not asked. */
int64_t ttn_run_best(const char *path);

/* What else is in path/ckpt because of titin. */
typedef struct {
    char name[NAME_MAX + 1];
    int made_way; /* 1: it was there when a checkpoint or a link got its name (ttn_run_may_replace); 0: it is being written or
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

/* May a save replace what has the name of a checkpoint, `folder`? 1, also when nothing has it. 0: it holds anything that
 * titin did not put there, or is a link (writing would replace what it leads to), or no folder; reason (TTN_REASON bytes)
 * says which, as what follows its name in a sentence. Save with ttn_checkpoint_write_beside then. */
enum { TTN_REASON = 160 };
int ttn_run_may_replace(const char *folder, char *reason);

/* Let ckpt/latest lead to the checkpoint of `step`. A file or folder of that name is renamed to the first free name
 * "latest.kept-N", and log is told (copying a run without its links, or following them, makes such folders). */
TTN_MUST_USE ttn_status ttn_run_set_latest(const ttn_run_folder *r, int64_t step, ttn_error *err);

/* And ckpt/best. From now on ttn_run_retain neither removes nor counts the checkpoint of `step`, whatever becomes of the
 * link. */
TTN_MUST_USE ttn_status ttn_run_set_best(ttn_run_folder *r, int64_t step, ttn_error *err);

/* The same for a run that goes on, whose state says that `step` is the best so far: the link is made anew where it does not
 * lead there, which log is told, as of a checkpoint that is not there any more. Failures are warnings. */
void ttn_run_restore_best(ttn_run_folder *r, int64_t step);

/* Keep `keep` checkpoints (at least 1) and the best one, and remove the others: that of step `saved`, which was just saved and
 * may be older than others of the run (-1: none was), and the newest. The best is that of ttn_run_set_best; before that is
 * known, what the link leads to. Counted are those whose manifest, lengths and step are right; others
 * (damaged ones, and those called after another step) are neither counted nor removed. One that holds anything its manifest does not list, or is a link, is somebody's and not
 * removed either, and log is told. The first failure is returned when all have been tried. */
TTN_MUST_USE ttn_status ttn_run_retain(const ttn_run_folder *r, int keep, int64_t saved, const ttn_log *log,
                                       ttn_error *err);

#endif
