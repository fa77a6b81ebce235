/* What a run measures, to everything that keeps it: metrics.jsonl and tb/ in its folder, and in memory for the curves. */
#ifndef TTN_JOURNAL_H
#define TTN_JOURNAL_H

#include "core/clock.h"
#include "core/log.h"
#include "train/history.h"
#include "train/metrics.h"

typedef struct ttn_journal ttn_journal;

/* Of the run in this folder, which goes on after `step` (0: it begins). What metrics.jsonl has of later steps is cut. *ret is
 * the caller's. Failures of train/files/metrics_log.h and event_file.h. */
TTN_MUST_USE ttn_status ttn_journal_open(const char *run, int64_t step, const ttn_clock *clock, const ttn_log *log,
                                         ttn_journal **ret, ttn_error *err);
void ttn_journal_close(ttn_journal *j); /* NULL is fine */

/* A disk that takes no more is a warning to the log, once until it does again: a run is worth more than its curve.
 * TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_journal_add(ttn_journal *j, const ttn_metrics *r, ttn_error *err);

/* Before a checkpoint is begun: what was added is on the disk. A failure is a warning. */
void ttn_journal_sync(ttn_journal *j);

/* Borrowed; of earlier starts of the run, too. */
const ttn_history *ttn_journal_history(const ttn_journal *j);

#endif
