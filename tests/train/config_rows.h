/* A table of options that has everything that an option can be, for tests of the configuration: what titin has today is far
 * simpler. */
#ifndef TTN_TEST_CONFIG_ROWS_H
#define TTN_TEST_CONFIG_ROWS_H

#include <math.h>
#include "train/config.h"

static const char *const test_kinds[] = {"exact", "favor", "nystrom", "none", NULL};
static const char *const test_objectives[] = {"mlm", "clm", NULL};

/* Two sections in one module, and one of them again in the other: the table brings a section's rows together. */
static const ttn_option test_train_rows[] = {
    {.name = "train.lr",
     .type = TTN_OPTION_REAL,
     .fallback = "3e-4",
     .most = 1,
     .help = "learning rate",
     .since = "0.1"},
    {.name = "train.steps",
     .type = TTN_OPTION_INTEGER,
     .fallback = "50k",
     .least = 1,
     .most = 1e12,
     .unit = "steps",
     .help = "how long to train",
     .since = "0.1"},
    {.name = "train.warmup",
     .type = TTN_OPTION_INTEGER,
     .fallback = "1000",
     .most = HUGE_VAL,
     .unit = "steps",
     .help = "steps until the learning rate is reached",
     .since = "0.1"},
    {.name = "train.seed",
     .type = TTN_OPTION_INTEGER,
     .fallback = "0",
     .help = "of all random numbers",
     .since = "0.1"},
    {.name = "train.resume",
     .type = TTN_OPTION_BOOL,
     .fallback = "no",
     .help = "go on with the newest",
     .since = "0.1"},
    {.name = "train.budget",
     .type = TTN_OPTION_SIZE,
     .fallback = "2GiB",
     .most = HUGE_VAL,
     .help = "memory of the plan",
     .since = "0.1"},
    {.name = "train.save_every",
     .type = TTN_OPTION_DURATION,
     .fallback = "10m",
     .least = 1,
     .most = 864000,
     .help = "time between two checkpoints",
     .since = "0.1"},
    {.name = "train.betas",
     .type = TTN_OPTION_REAL,
     .is_list = 1,
     .fallback = "0.9, 0.95",
     .most = 1,
     .help = "of Adam",
     .since = "0.1"},
    {.name = "train.freeze",
     .type = TTN_OPTION_PATTERN,
     .is_list = 1,
     .fallback = "",
     .help = "weights that stay as they are",
     .since = "0.1"},
    {.name = "data.train", .type = TTN_OPTION_PATH, .is_list = 1, .help = "stores to train on", .since = "0.1"},
    {.name = "data.name", .type = TTN_OPTION_TEXT, .fallback = "", .help = "what to call it", .since = "0.1"},
    {.name = "data.shuffle",
     .type = TTN_OPTION_BOOL,
     .fallback = "yes",
     .help = "another order each epoch",
     .since = "0.1"},
};

static const ttn_option test_model_rows[] = {
    {.name = "attention.kind",
     .type = TTN_OPTION_CHOICE,
     .is_list = 1,
     .fallback = "exact",
     .choices = test_kinds,
     .help = "one for each layer, or one for all",
     .since = "0.1"},
    {.name = "attention.landmarks",
     .type = TTN_OPTION_INTEGER,
     .fallback = "64",
     .least = 1,
     .most = 4096,
     .help = "of the kind nystrom",
     .since = "0.1"},
    {.name = "objective.kind",
     .type = TTN_OPTION_CHOICE,
     .fallback = "mlm",
     .choices = test_objectives,
     .help = "what is predicted",
     .since = "0.1"},
    {.name = "train.offset", .type = TTN_OPTION_REAL, .fallback = "0", .help = "any number", .since = "0.1"},
};

typedef struct {
    double lr;
    int64_t steps, warmup, seed, budget;
    int resume;
    double save_every;
    ttn_list betas, freeze, files;
    const char *name;
    int shuffle;
} test_train;

typedef struct {
    ttn_list kinds;
    int64_t landmarks;
    const char *objective;
    double offset;
} test_model;

static const ttn_option_field test_train_fields[] = {
    TTN_FIELD(test_train, lr, "train.lr"),
    TTN_FIELD(test_train, steps, "train.steps"),
    TTN_FIELD(test_train, warmup, "train.warmup"),
    TTN_FIELD(test_train, seed, "train.seed"),
    TTN_FIELD(test_train, budget, "train.budget"),
    TTN_FIELD(test_train, resume, "train.resume"),
    TTN_FIELD(test_train, save_every, "train.save_every"),
    TTN_FIELD(test_train, betas, "train.betas"),
    TTN_FIELD(test_train, freeze, "train.freeze"),
    TTN_FIELD(test_train, files, "data.train"),
    TTN_FIELD(test_train, name, "data.name"),
    TTN_FIELD(test_train, shuffle, "data.shuffle"),
};

static const ttn_option_field test_model_fields[] = {
    TTN_FIELD(test_model, kinds, "attention.kind"),
    TTN_FIELD(test_model, landmarks, "attention.landmarks"),
    TTN_FIELD(test_model, objective, "objective.kind"),
    TTN_FIELD(test_model, offset, "train.offset"),
};

enum { TEST_N_TRAIN = sizeof test_train_rows / sizeof *test_train_rows };
enum { TEST_N_MODEL = sizeof test_model_rows / sizeof *test_model_rows };
enum { TEST_N_TRAIN_FIELDS = sizeof test_train_fields / sizeof *test_train_fields };
enum { TEST_N_MODEL_FIELDS = sizeof test_model_fields / sizeof *test_model_fields };

static inline ttn_status test_read_train(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    test_train t;
    return ttn_values_fill(v, test_train_fields, TEST_N_TRAIN_FIELDS, &t, err);
}

static inline ttn_status test_read_model(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    test_model m;
    return ttn_values_fill(v, test_model_fields, TEST_N_MODEL_FIELDS, &m, err);
}

static const ttn_config_conflict test_conflicts[] = {
    {{"attention.kind", "objective.kind"}, {"nystrom", "clm"}, "landmarks see the whole sequence"},
};

static const ttn_config_order test_orders[] = {
    {"train.warmup", "train.steps", "the learning rate would never be reached"},
};

static const ttn_config_module test_modules[] = {
    {.name = "test trainer",
     .row = test_train_rows,
     .n_row = TEST_N_TRAIN,
     .read = test_read_train,
     .order = test_orders,
     .n_order = 1},
    {.name = "test model",
     .row = test_model_rows,
     .n_row = TEST_N_MODEL,
     .read = test_read_model,
     .conflict = test_conflicts,
     .n_conflict = 1},
};

enum { TEST_N_MODULE = sizeof test_modules / sizeof *test_modules };

static const ttn_config_preset test_presets[] = {
    {"quickstart", "train:\n  steps: 2k\n  lr: 1e-3\n  betas: [0.9, 0.98]\nnotes: {from: preset}\n"},
    {"broken", "train:\n  lr: fast\n"},
    {"nested", "preset: quickstart\n"},
    {NULL, NULL},
};

#endif
