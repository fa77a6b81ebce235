/* report.html: what a run was and came to, in one file that needs no network and runs no scripts. */
#ifndef TTN_REPORT_H
#define TTN_REPORT_H

#include <stdint.h>
#include "core/status.h"
#include "train/facts.h"
#include "train/history.h"
#include "train/summary.h"

/* Everything is borrowed, and may hold any bytes: ids, paths and configurations are other people's. NULL: left out. */
typedef struct {
    const char *run;              /* its folder */
    const char *state;            /* "step 1,200 of 50,000", "done: 50,000 steps in 3 h 12 min" */
    int64_t date;                 /* of the report; seconds since 1970 */
    const ttn_history *history;   /* not NULL */
    const ttn_facts *data;        /* the data card (train/card_facts.h), batches, the split, … */
    const ttn_facts *environment; /* versions, machine, threads, seeds, command line, … */
    const char *config;           /* ttn_config_resolved: values with their origins */
    const char *resume;           /* the command that goes on from the last checkpoint */
    const ttn_advice *advice;
} ttn_report;

/* To a file that appears whole. Failures of core/atomic.h, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_report_save(const ttn_report *r, const char *path, ttn_error *err);

#endif
