/* The curves of a run, drawn from its history: loss.svg, and the charts of its report. */
#ifndef TTN_CURVE_H
#define TTN_CURVE_H

#include "core/status.h"
#include "train/history.h"

typedef enum {
    TTN_CURVE_LOSS, /* of training and validation, beside both baselines */
    TTN_CURVE_ACCURACY,
    TTN_CURVE_LR,
    TTN_CURVE_GRAD_NORM,
    TTN_CURVE_SPEED,
    TTN_N_CURVES,
} ttn_curve;

/* Has anything been measured that this curve shows? */
int ttn_curve_is_there(const ttn_history *h, ttn_curve curve);

/* run: what the title begins with ("runs/proteins-20k"). As ttn_chart_svg and ttn_chart_save (train/look/chart.h). */
TTN_MUST_USE ttn_status ttn_curve_svg(const ttn_history *h, ttn_curve curve, const char *run, const char *prefix,
                                      char **ret, ttn_error *err);
TTN_MUST_USE ttn_status ttn_curve_save(const ttn_history *h, ttn_curve curve, const char *run, const char *path,
                                       ttn_error *err);

#endif
