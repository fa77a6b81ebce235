#include <stdio.h>
#include <string.h>
#include "core/blas.h"
#include "core/number.h"
#include "core/start.h"
#include "train/train_spec.h"

/* In the order of its enum. */
static const char *const objectives[] = {"mlm", "clm", NULL};

/* 2^53: what counts as doubles in records and states hold exactly. */
#define MOST_COUNT 9007199254740992.0

#define EVALUATES                                                                              \
    {                                                                                          \
        "data.valid", .is_not = "0", .words = "something is held out (data.valid, data.split)" \
    }
static const ttn_option_condition evaluates[] = {EVALUATES, {0}};
static const ttn_option_condition masks[] = {EVALUATES, {"train.objective", .is = "mlm"}, {0}};

static const ttn_option options[] = {
    {.name = "train.steps",
     .type = TTN_OPTION_INTEGER,
     .fallback = "0",
     .least = 0,
     .most = 1e12,
     .unit = "steps",
     .help = "how long to train; this, train.epochs or train.tokens, and the others 0",
     .since = "0.1"},
    {.name = "train.epochs",
     .type = TTN_OPTION_INTEGER,
     .fallback = "0",
     .least = 0,
     .most = 1e9,
     .unit = "passes over the data",
     .help = "the same in passes over all training sequences",
     .since = "0.1"},
    {.name = "train.tokens",
     .type = TTN_OPTION_INTEGER,
     .fallback = "0",
     .least = 0,
     .most = MOST_COUNT,
     .unit = "residues",
     .help = "the same in residues, to the nearest step",
     .since = "0.1"},
    {.name = "train.objective",
     .type = TTN_OPTION_CHOICE,
     .fallback = "mlm",
     .choices = objectives,
     .help = "predict masked residues (mlm), or the next one from those before it (clm)",
     .since = "0.1"},
    {.name = "train.shards",
     .type = TTN_OPTION_INTEGER,
     .fallback = "1",
     .least = 1,
     .most = 1 << 20,
     .unit = "micro-batches",
     .help = "batches whose gradients make one step, a power of two: larger steps in the memory of one batch",
     .since = "0.1"},
    {.name = "train.memory",
     .type = TTN_OPTION_TEXT,
     .fallback = "auto",
     .help = "what the values of a step may take, as 20GiB; what does not fit is computed twice. auto: 80 % of what is "
             "free beside weights and data",
     .since = "0.1"},
    {.name = "train.threads",
     .type = TTN_OPTION_INTEGER,
     .fallback = "0",
     .least = 0,
     .most = TTN_BLAS_MAX_THREADS,
     .help = "threads that compute; 0: as OMP_NUM_THREADS says, or as many as cores may be used. "
             "The results are the same for any number",
     .since = "0.1"},
    {.name = "train.seed",
     .type = TTN_OPTION_INTEGER,
     .fallback = "1",
     .least = 0,
     .most = MOST_COUNT,
     .help = "of everything that is random: first weights, order of the data, crops, masks, dropout",
     .since = "0.1"},
    {.name = "train.eval_every",
     .type = TTN_OPTION_INTEGER,
     .fallback = "500",
     .least = 0,
     .most = 1e12,
     .unit = "steps",
     .help = "how often to evaluate held-out sequences; at the end always, and with 0 only then",
     .since = "0.1",
     .when = evaluates},
    {.name = "train.maskings",
     .type = TTN_OPTION_INTEGER,
     .fallback = "1",
     .least = 1,
     .most = 1000,
     .help = "in how many ways an evaluation masks each sequence",
     .since = "0.1",
     .when = masks},
    {.name = "train.save_every",
     .type = TTN_OPTION_INTEGER,
     .fallback = "500",
     .least = 0,
     .most = 1e12,
     .unit = "steps",
     .help = "how often to save a checkpoint; at the end always, and with 0 only then",
     .since = "0.1"},
    {.name = "train.log_every",
     .type = TTN_OPTION_INTEGER,
     .fallback = "10",
     .least = 1,
     .most = 1e12,
     .unit = "steps",
     .help = "how often to write down what was measured",
     .since = "0.1"},
    {.name = "train.keep",
     .type = TTN_OPTION_INTEGER,
     .fallback = "3",
     .least = 1,
     .most = 1e6,
     .unit = "checkpoints",
     .help = "the last ones that stay, and the best one beside them",
     .since = "0.1"},
    {.name = "train.out",
     .type = TTN_OPTION_PATH,
     .fallback = "auto",
     .help = "the folder of the run; auto: run/ and the name of the configuration",
     .since = "0.1"},
};

/* As they stand in the configuration, where that differs. */
typedef struct {
    ttn_train_spec spec;
    const char *objective, *memory;
} settings;

static const ttn_option_field fields[] = {
    TTN_FIELD(settings, spec.steps, "train.steps"),
    TTN_FIELD(settings, spec.epochs, "train.epochs"),
    TTN_FIELD(settings, spec.residues, "train.tokens"),
    TTN_FIELD(settings, objective, "train.objective"),
    TTN_FIELD(settings, spec.shards, "train.shards"),
    TTN_FIELD(settings, memory, "train.memory"),
    TTN_FIELD(settings, spec.threads, "train.threads"),
    TTN_FIELD(settings, spec.seed, "train.seed"),
    TTN_FIELD(settings, spec.eval_every, "train.eval_every"),
    TTN_FIELD(settings, spec.maskings, "train.maskings"),
    TTN_FIELD(settings, spec.save_every, "train.save_every"),
    TTN_FIELD(settings, spec.log_every, "train.log_every"),
    TTN_FIELD(settings, spec.keep, "train.keep"),
    TTN_FIELD(settings, spec.out, "train.out"),
};

static ttn_status read_settings(const ttn_values *v, settings *ret, ttn_error *err)
{
    *ret = (settings){0};
    return ttn_values_fill(v, fields, sizeof fields / sizeof *fields, ret, err);
}

static ttn_status read_module(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    settings s;
    return read_settings(v, &s, err);
}

const ttn_config_module ttn_train_module = {
    .name = "training",
    .row = options,
    .n_row = sizeof options / sizeof *options,
    .read = read_module,
};

static ttn_status check_length(const ttn_train_spec *s, ttn_error *err)
{
    const int n = (s->steps > 0) + (s->epochs > 0) + (s->residues > 0);
    if (n == 1) return TTN_OK;
    if (n == 0)
        return TTN_FAIL(err, TTN_EINVAL,
                        "how long to train is not said: give one of train.steps, train.epochs and train.tokens");
    return TTN_FAIL(err, TTN_EINVAL, "how long to train is said more than once: %s%s%s; set all but one of them to 0",
                    s->steps > 0 ? "train.steps" : "train.epochs", n == 3 ? ", train.epochs" : "",
                    s->residues > 0 ? " and train.tokens" : " and train.epochs");
}

static ttn_status read_memory(const char *text, int64_t *ret, ttn_error *err)
{
    *ret = 0;
    if (strcmp(text, "auto") == 0) return TTN_OK;
    ttn_error why = {0};
    ttn_status status = ttn_number_integer(text, TTN_UNIT_BYTES, ret, &why);
    if (status != TTN_OK) return TTN_FAIL(err, status, "train.memory: %s; expected is auto or a size", why.text);
    if (*ret <= 0) return TTN_FAIL(err, TTN_EINVAL, "train.memory: '%s' is nothing; expected is auto or a size", text);
    return TTN_OK;
}

ttn_status ttn_train_spec_read(const ttn_values *values, ttn_train_spec *ret, ttn_error *err)
{
    settings s;
    ttn_status status = read_settings(values, &s, err);
    if (status == TTN_OK) status = read_memory(s.memory, &s.spec.memory, err);
    if (status != TTN_OK) return status;
    while (strcmp(objectives[s.spec.objective], s.objective) != 0)
        s.spec.objective++;
    *ret = s.spec;
    return TTN_OK;
}

ttn_status ttn_train_spec_of(const ttn_values *values, ttn_train_spec *ret, ttn_error *err)
{
    ttn_status status = ttn_train_spec_read(values, ret, err);
    return status == TTN_OK ? check_length(ret, err) : status;
}

int ttn_train_spec_threads(const ttn_train_spec *s, int cores)
{
    return s->threads > 0 ? (int)s->threads : ttn_start_threads(cores);
}
