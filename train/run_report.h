/* loss.svg and report.html of a run, as it stands. */
#ifndef TTN_RUN_REPORT_H
#define TTN_RUN_REPORT_H

#include "train/summary.h"
#include "train/training.h"

/* Both files, in the run's folder. What fails is a warning to the run's log: they can be made again from metrics.jsonl. */
void ttn_run_report_write(const ttn_training *t);

/* What to try next. */
void ttn_run_report_advise(const ttn_training *t, ttn_advice *ret);

#endif
