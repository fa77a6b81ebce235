/* The learning rate as a pure function of the step.
 *
 * Steps count from 0; T is how many there are, w = schedule.warmup, f = schedule.floor, lr = optim.lr.
 *
 *     warm-up (s < w):  lr (s + 1) / w             so that no step is wasted on a rate of 0, and step w - 1 has lr
 *     constant:         lr
 *     linear:           lr (f + (1 - f)(1 - p))    p = (s - w) / (T - w), at most 1
 *     cosine:           lr (f + (1 - f)(1 + cos(pi p)) / 2)
 *     inverse-sqrt:     lr max(f, sqrt(w / (s + 1)))    w at least 1 (fairseq's inverse_sqrt, counted from 1)
 *     warmup-stable-decay:    lr up to the last d = round(schedule.decay T) steps; in these linear with p = (s - (T - d)) / d
 *
 * Step w has the full rate too, and the floor would be reached at step T, which is the first that is not made.
 */
#ifndef TTN_TRAIN_SCHEDULE_H
#define TTN_TRAIN_SCHEDULE_H

#include <stdint.h>
#include "core/values.h"
#include "train/config.h"

typedef enum {
    TTN_SCHEDULE_CONSTANT,
    TTN_SCHEDULE_LINEAR,
    TTN_SCHEDULE_COSINE,
    TTN_SCHEDULE_INVERSE_SQRT,
    TTN_SCHEDULE_STABLE, /* warmup-stable-decay */
} ttn_schedule_kind;

typedef struct {
    ttn_schedule_kind kind;
    double lr;      /* the highest */
    int64_t warmup; /* steps */
    int64_t steps;  /* T */
    double floor;   /* share of lr at the end */
    double decay;   /* share of T that STABLE decays in */
} ttn_schedule;

/* Rows schedule.* and optim.lr. */
extern const ttn_config_module ttn_schedule_module;

/* steps: of the run, for schedule.steps 0; a schedule that must know its end refuses 0 (TTN_EINVAL). */
TTN_MUST_USE ttn_status ttn_schedule_of(const ttn_values *values, int64_t steps, ttn_schedule *ret, ttn_error *err);

/* Of optimizer step `step`, from 0; past the end it stays at the floor. */
double ttn_schedule_lr(const ttn_schedule *s, int64_t step);

#endif
