#include <assert.h>
#include <math.h>
#include <string.h>
#include "train/schedule.h"

/* In the order of the enum. */
static const char *const kinds[] = {"constant", "linear", "cosine", "inverse-sqrt", "warmup-stable-decay", NULL};

static const ttn_option_condition when_it_ends[] = {{"schedule.kind", .is = "linear, cosine, warmup-stable-decay"},
                                                    {0}};
static const ttn_option_condition when_it_falls[] = {{"schedule.kind", .is_not = "constant"}, {0}};
static const ttn_option_condition when_it_decays[] = {{"schedule.kind", .is = "warmup-stable-decay"}, {0}};

static const ttn_option options[] = {
    {.name = "optim.lr",
     .type = TTN_OPTION_REAL,
     .fallback = "1e-3",
     .least = 0,
     .most = 10,
     .help = "the highest learning rate, which the schedule begins to leave after its warm-up",
     .since = "0.1"},
    {.name = "schedule.kind",
     .type = TTN_OPTION_CHOICE,
     .fallback = "cosine",
     .choices = kinds,
     .help = "how the learning rate falls after the warm-up",
     .since = "0.1"},
    {.name = "schedule.warmup",
     .type = TTN_OPTION_INTEGER,
     .fallback = "100",
     .least = 0,
     .most = 1e12,
     .unit = "steps",
     .help = "the learning rate rises in a line for so long",
     .since = "0.1"},
    {.name = "schedule.steps",
     .type = TTN_OPTION_INTEGER,
     .fallback = "0",
     .least = 0,
     .most = 1e12,
     .unit = "steps",
     .help = "where the schedule ends, and the floor is reached; 0: with the run",
     .since = "0.1",
     .when = when_it_ends},
    {.name = "schedule.floor",
     .type = TTN_OPTION_REAL,
     .fallback = "0.1",
     .least = 0,
     .most = 1,
     .help = "share of optim.lr at the end",
     .since = "0.1",
     .when = when_it_falls},
    {.name = "schedule.decay",
     .type = TTN_OPTION_REAL,
     .fallback = "0.2",
     .least = 0,
     .most = 1,
     .help = "for warmup-stable-decay: the last part of the schedule, in which the learning rate falls in a line",
     .since = "0.1",
     .when = when_it_decays},
};

typedef struct {
    const char *kind;
    ttn_schedule schedule;
} settings;

static const ttn_option_field fields[] = {
    TTN_FIELD(settings, kind, "schedule.kind"),
    TTN_FIELD(settings, schedule.lr, "optim.lr"),
    TTN_FIELD(settings, schedule.warmup, "schedule.warmup"),
    TTN_FIELD(settings, schedule.steps, "schedule.steps"),
    TTN_FIELD(settings, schedule.floor, "schedule.floor"),
    TTN_FIELD(settings, schedule.decay, "schedule.decay"),
};

static ttn_status read_settings(const ttn_values *values, settings *ret, ttn_error *err)
{
    *ret = (settings){0};
    return ttn_values_fill(values, fields, sizeof fields / sizeof *fields, ret, err);
}

static ttn_status read_module(const void *self, const ttn_values *values, ttn_error *err)
{
    (void)self;
    settings s;
    return read_settings(values, &s, err);
}

const ttn_config_module ttn_schedule_module = {
    .name = "schedule",
    .row = options,
    .n_row = sizeof options / sizeof *options,
    .read = read_module,
};

ttn_status ttn_schedule_of(const ttn_values *values, int64_t steps, ttn_schedule *ret, ttn_error *err)
{
    settings s;
    ttn_status status = read_settings(values, &s, err);
    if (status != TTN_OK) return status;
    int kind = 0;
    while (kinds[kind] && strcmp(kinds[kind], s.kind) != 0)
        kind++;
    assert(kinds[kind]); /* values were checked against the same list */
    *ret = s.schedule;
    ret->kind = (ttn_schedule_kind)kind;
    if (ret->steps == 0) ret->steps = steps;
    if (ttn_option_condition_holds(&when_it_ends[0], &s.kind, 1) && ret->steps <= 0)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "schedule.kind: %s has to know where it ends: set schedule.steps, or give the run a length in steps",
            s.kind);
    return TTN_OK;
}

/* How far from `first` to `end` the step is: 0 at first, 1 from end on. */
static double progress(int64_t step, int64_t first, int64_t end)
{
    if (step >= end) return 1; /* also where it ends before it began: in a warm-up longer than the run */
    if (step <= first) return 0;
    return (double)(step - first) / (double)(end - first);
}

/* From 1 down to the floor. */
static double fall(const ttn_schedule *s, double share)
{
    return s->floor + (1 - s->floor) * share;
}

/* The share of lr behind the warm-up. */
static double share_of(const ttn_schedule *s, int64_t step)
{
    switch (s->kind) {
    case TTN_SCHEDULE_CONSTANT:
        break;
    case TTN_SCHEDULE_LINEAR:
        return fall(s, 1 - progress(step, s->warmup, s->steps));
    case TTN_SCHEDULE_COSINE:
        return fall(s, 0.5 * (1 + cos(3.14159265358979323846 * progress(step, s->warmup, s->steps))));
    case TTN_SCHEDULE_INVERSE_SQRT:
        return fmax(s->floor, sqrt((double)(s->warmup > 0 ? s->warmup : 1) / (double)(step + 1)));
    case TTN_SCHEDULE_STABLE:
        return fall(s, 1 - progress(step, s->steps - (int64_t)round(s->decay * (double)s->steps), s->steps));
    }
    return 1;
}

double ttn_schedule_lr(const ttn_schedule *s, int64_t step)
{
    if (step < s->warmup) return s->lr * ((double)(step + 1) / (double)s->warmup);
    return s->lr * share_of(s, step);
}
