/* metrics.jsonl: a line a record, {"step":1200,"date":1767225600,"train/loss":2.7134,…}, appended while training goes on.
 *
 * A line is whole or not there: where the disk takes only a part of one, that part is cut off again. Numbers have the
 * fewest digits that read back to the bit; one that is not finite is null. So without "date" and "perf/…" the lines of a
 * run are the same bytes however often it was stopped.
 *
 * A line is in the system's hands when ttn_metrics_log_add returns (a killed process loses none) and on the disk at the
 * latest TTN_METRICS_SYNC seconds later, if a line comes then, or after ttn_metrics_log_sync: call that before a
 * checkpoint is begun, and the log is never behind the checkpoint that a run resumes from.
 */
#ifndef TTN_METRICS_LOG_H
#define TTN_METRICS_LOG_H

#include <stdint.h>
#include "core/clock.h"
#include "core/log.h"
#include "core/status.h"
#include "train/metrics.h"

#define TTN_METRICS_SYNC 30.0 /* seconds */

/* ---- reading ---- */

/* Every line of the file that is a record, in order; it is borrowed until take returns, which returns TTN_OK or what ends
 * the reading. *ret_damaged (may be NULL): lines that are none, a last one without its end included. Keys that are no
 * metric (texts and the like of a later version) are passed over. TTN_EINVAL: there is no such file. */
typedef ttn_status (*ttn_metrics_taker)(void *ctx, const ttn_metrics *r, ttn_error *err);
TTN_MUST_USE ttn_status ttn_metrics_log_read(const char *path, ttn_metrics_taker take, void *ctx, int64_t *ret_damaged,
                                             ttn_error *err);

/* ---- writing ---- */

typedef struct ttn_metrics_log ttn_metrics_log;

/* Open the log of a run that goes on after optimizer step `step` (0: from the start), for the one process that writes to the
 * run. Lines of later steps are cut: those steps are taken again. So are lines that are no records (a last one that was cut
 * by a crash). What was cut is said to log. The file is replaced in one step, or not at all; one that needs no cut is not
 * touched. A link, also a hard one, is replaced by a file. What stays is given to kept(ctx, record), which may be NULL. clock
 * NULL: the system's. *ret is the caller's. TTN_EINVAL, TTN_EIO, TTN_ENOMEM, and what kept returns. */
TTN_MUST_USE ttn_status ttn_metrics_log_open(const char *path, int64_t step, ttn_metrics_taker kept, void *ctx,
                                             const ttn_clock *clock, const ttn_log *log, ttn_metrics_log **ret,
                                             ttn_error *err);

/* Append a record. TTN_EIO (a full disk): the file is as before, and the line is written before the next one, or at the next
 * sync, when the disk takes it; or the line is there and the disk did not confirm it, which the message says. Whether to go
 * on is the caller's to decide. TTN_ENOMEM: this line and those that waited are lost. */
TTN_MUST_USE ttn_status ttn_metrics_log_add(ttn_metrics_log *l, const ttn_metrics *r, ttn_error *err);

/* What was added is on the disk. TTN_EIO. */
TTN_MUST_USE ttn_status ttn_metrics_log_sync(ttn_metrics_log *l, ttn_error *err);

/* Brings what was added to the disk, as far as that works: ask ttn_metrics_log_sync first who wants to know. NULL is fine. */
void ttn_metrics_log_close(ttn_metrics_log *l);

#endif
