/* Checkpoints that are written while training goes on.
 *
 *     ttn_saver_create(run, weights, …, &saver, err);
 *     every K steps:  status = ttn_saver_save(saver, weights, more, &state, err);
 *     every step:     … forward and backward …
 *                     ttn_saver_settle(saver);          then the optimizer may change the weights
 *                     status = ttn_saver_poll(saver, &report, err);
 *     at the end:     status = ttn_saver_wait(saver, &report, err);
 *                     ttn_saver_destroy(saver);
 *
 * A thread copies weights and moments to the host, checks, writes, and brings to the disk. They change only when the
 * optimizer steps, so the copy is made beside forward and backward; ttn_saver_settle waits for what is left of it (most
 * often nothing). 90 MB on two cores that others used too: the caller waits 5 to 8 % of a save's time when it makes the
 * copy (copy_first), and 0.01 % so.
 *
 * What the thread ran into is the answer of the next poll, wait or save, once; the caller decides whether to go on. After
 * a failure the last good checkpoint is in place, and the next save may succeed. A limit on file sizes (ulimit -f) is such
 * a failure where SIGXFSZ is ignored, and else the end of the process.
 *
 * Memory: one copy of all that is saved. A save that comes while the last one is still being written waits for it.
 */
#ifndef TTN_SAVER_H
#define TTN_SAVER_H

#include <stdint.h>
#include "core/log.h"
#include "core/status.h"
#include "train/files/run_folder.h"
#include "train/files/snapshot.h"

typedef struct {
    int keep;           /* checkpoints that stay; 0: 3 */
    const ttn_log *log; /* called from the thread as well; must live as long as the saver. NULL: silence */
    int copy_first;     /* ttn_saver_save makes the copy itself: for a device that only one thread may ask */
} ttn_saver_options;

/* Of the last save that ended. */
typedef struct {
    int64_t step;                 /* -1: none has ended yet */
    int is_saved;                 /* its folder has its name */
    size_t bytes;                 /* of tensors */
    double waited;                /* s that the caller was kept by ttn_saver_save and _settle */
    double written;               /* s of the thread: check, write, fsync, retention */
    char warning[TTN_ERROR_TEXT]; /* "", or what failed after the checkpoint was in place: the link, the retention */
} ttn_saver_report;

typedef struct ttn_saver ttn_saver;

/* For a run that this process has open, which must outlive the saver. The rest as ttn_snapshot_create. */
TTN_MUST_USE ttn_status ttn_saver_create(ttn_run_folder *run, const ttn_weights *w, const char *const *model_name,
                                         const ttn_named_tensor *more, int n_more, const ttn_saver_options *options,
                                         ttn_saver **ret, ttn_error *err);

/* What is written from: names and sizes, while nothing is being saved. Borrowed. */
const ttn_snapshot *ttn_saver_snapshot(const ttn_saver *s);

/* Begin to save the checkpoint of state->step. Until ttn_saver_settle (or wait) nobody may change the weights, the
 * moments, what `more` points to, nor `more` itself; the state is copied at once. When the save before it failed, that
 * failure is returned and nothing is begun: call again to go on. TTN_EIO also when no thread can be started. */
TTN_MUST_USE ttn_status ttn_saver_save(ttn_saver *s, const ttn_weights *w, const ttn_named_tensor *more,
                                       const ttn_run_state *state, ttn_error *err);

/* The next save is of the best model so far: when it is in place, ckpt/best leads to it, and it stays until another one is
 * the best. */
void ttn_saver_mark_best(ttn_saver *s);

/* Wait until everything is copied. Cheap when nothing is being saved. */
void ttn_saver_settle(ttn_saver *s);

/* Has a save ended since the last answer? Its status, else TTN_OK; *ret_report (unless NULL) is of the last that ended.
 * Does not wait. */
TTN_MUST_USE ttn_status ttn_saver_poll(ttn_saver *s, ttn_saver_report *ret_report, ttn_error *err);

/* The same after the save that is being written has ended. */
TTN_MUST_USE ttn_status ttn_saver_wait(ttn_saver *s, ttn_saver_report *ret_report, ttn_error *err);

/* Waits, and drops what nobody asked for. NULL is fine. */
void ttn_saver_destroy(ttn_saver *s);

#endif
