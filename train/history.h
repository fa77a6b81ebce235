/* What was measured so far, a series for each metric: what the curves are drawn from. */
#ifndef TTN_HISTORY_H
#define TTN_HISTORY_H

#include <stdint.h>
#include "train/metrics.h"

typedef struct {
    char name[TTN_METRIC_TEXT];
    double *step, *value; /* (n) in the order in which they came; values may be no finite numbers */
    int64_t n, room;
} ttn_series;

/* Start with {0}; end with ttn_history_drop. */
typedef struct {
    ttn_series *series; /* in the order in which their names came */
    int64_t n, room;
    int64_t n_record;
} ttn_history;

/* Of more than TTN_MOST_METRICS names those that came first have a series, and titin's own. TTN_ENOMEM, also for a record that lacks something because there was no memory. */
TTN_MUST_USE ttn_status ttn_history_add(ttn_history *h, const ttn_metrics *r, ttn_error *err);

/* NULL: there is no such series. Borrowed until the next ttn_history_add. */
const ttn_series *ttn_history_find(const ttn_history *h, const char *name);

/* The last value of that name at this step: 1; 0: there is none. */
int ttn_history_at(const ttn_history *h, const char *name, double step, double *ret);

void ttn_history_drop(ttn_history *h);

#endif
