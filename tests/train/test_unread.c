/* Values that a user gave and that a run does not read: every row of the configuration is read always, or says when; and what
 * it says is so, since runs with another value have the same numbers where it is not read, and others where it is. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/hash.h"
#include "core/rng.h"
#include "core/start.h"
#include "data/fasta.h"
#include "tests/harness/test.h"
#include "train/training.h"
#include "train/unread.h"

static ttn_config_table *table;

/* ---- configurations ---- */

/* YAML whose keys stand at the top: "train.lr: 1\n". */
typedef struct {
    char text[8192];
} yaml;

static void add(yaml *y, const char *key, const char *value)
{
    const size_t n = strlen(y->text);
    assert_true(snprintf(y->text + n, sizeof y->text - n, "%s: %s\n", key, value) < (int)(sizeof y->text - n));
}

/* The yaml as a preset, which is no user's, and settings over it. */
static ttn_config *load(const yaml *preset, const char *const *setting)
{
    ttn_config *c = NULL;
    ttn_error err = {0};
    int n = 0;
    while (setting && setting[n])
        n++;
    const ttn_config_preset presets[] = {{"base", preset->text}, {NULL, NULL}};
    const ttn_config_request r = {.presets = presets, .preset = "base", .argument = setting, .n_argument = n};
    assert_ok(ttn_config_load(table, &r, &c, &err), &err);
    return c;
}

/* What was told, one sentence a line. */
typedef struct {
    int n;
    char text[4096];
} told;

static void say(void *ctx, ttn_log_level level, const char *text)
{
    told *t = ctx;
    assert_int_equal(level, TTN_LOG_WARNING);
    const size_t n = strlen(t->text);
    snprintf(t->text + n, sizeof t->text - n, "%s\n", text);
    t->n++;
}

/* ---- conditions ---- */

static const ttn_option *row_of(const char *name)
{
    int n;
    const ttn_option *row = ttn_config_rows(table, &n);
    const ttn_option *o = ttn_option_find(row, n, name);
    assert_non_null(o);
    return o;
}

/* A value of the row of condition c with which it holds, or does not; "" for none at all. What only a run knows (data.train)
 * is taken as a fact, and any text does. */
static const char *value_for(const ttn_option_condition *c, int holds)
{
    static char listed[TTN_OPTION_EXPECTED];
    const ttn_option *o = row_of(c->key);
    const char *rest = c->is ? c->is : c->is_not;
    if ((c->is != NULL) == holds) {
        const char *first = ttn_option_next(&rest, listed, sizeof listed);
        return first ? first : "";
    }
    if (o->type == TTN_OPTION_BOOL) return strcmp(rest, "yes") == 0 ? "no" : "yes";
    if (o->type == TTN_OPTION_REAL) return "0.1";
    if (o->type == TTN_OPTION_INTEGER) return "8";
    if (o->type == TTN_OPTION_PATH) return TTN_DATA_IS_STORE;
    if (o->type == TTN_OPTION_TEXT) return "x";
    assert_int_equal(o->type, TTN_OPTION_CHOICE);
    const char *value = NULL;
    for (int i = 0; o->choices[i]; i++) {
        const char *choice = o->choices[i];
        if (ttn_option_condition_holds(c, &choice, 1) == holds) value = choice;
    }
    assert_non_null(value);
    return value;
}

/* All conditions of a row but number `unmet` hold. */
static void meet(const ttn_option *o, int unmet, yaml *y, ttn_config_fact *data)
{
    for (int i = 0; o->when && o->when[i].key; i++) {
        const char *key = o->when[i].key, *value = value_for(&o->when[i], i != unmet);
        if (strcmp(key, "data.train") == 0)
            data->value = i == unmet ? TTN_DATA_IS_STORE : TTN_DATA_IS_FASTA;
        else if (*value)
            add(y, key, value);
    }
}

/* Some value that the row lets pass. */
static const char *any_value(const ttn_option *o)
{
    static char text[64];
    switch (o->type) {
    case TTN_OPTION_BOOL:
        return "yes";
    case TTN_OPTION_CHOICE:
        return o->choices[0];
    case TTN_OPTION_INTEGER:
    case TTN_OPTION_SIZE:
    case TTN_OPTION_REAL:
    case TTN_OPTION_DURATION:
        snprintf(text, sizeof text, "%.17g", o->least > 0 ? o->least : 0);
        return text;
    case TTN_OPTION_TEXT:
    case TTN_OPTION_PATH:
    case TTN_OPTION_PATTERN:
        break;
    }
    return "x";
}

/* ---- every row ---- */

/* Whatever the others are, these are read. */
static const char *const always[] = {
    "data.tokens",      "data.cache",        "data.split",       "data.max_len",      "data.frame",
    "data.max_seqs",    "data.train",        "batch.rows",       "model.layers",      "model.width",
    "model.heads",      "model.ffn",         "model.activation", "model.gated",       "model.bias",
    "model.norm",       "model.norm_eps",    "model.norm_place", "model.embed_norm",  "model.final_norm",
    "model.positions",  "model.head",        "model.tied",       "model.dropout",     "model.token_dropout",
    "model.init_std",   "model.init_scaled", "attention.layers", "attention.dropout", "optim.beta1",
    "optim.beta2",      "optim.eps",         "optim.decay",      "optim.clip",        "optim.lr",
    "schedule.kind",    "schedule.warmup",   "train.steps",      "train.epochs",      "train.tokens",
    "train.objective",  "train.shards",      "train.memory",     "train.threads",     "train.seed",
    "train.save_every", "train.log_every",   "train.keep",       "train.out",
};

static int is_listed(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0) return 1;
    return 0;
}

static void a_row_is_read_always_or_says_when(void **state)
{
    (void)state;
    int n, n_always = 0;
    const ttn_option *row = ttn_config_rows(table, &n);
    for (int i = 0; i < n; i++) {
        const int is_always = is_listed(always, sizeof always / sizeof *always, row[i].name);
        const int has_conditions = row[i].when && row[i].when[0].key;
        if (is_always == has_conditions)
            fail_msg("%s: a new row has a condition (ttn_option.when), or stands in the list of what is always read",
                     row[i].name);
        n_always += is_always;
    }
    assert_int_equal(n_always, sizeof always / sizeof *always);
}

static ttn_status check(const ttn_config *c, const ttn_config_fact *fact, told *ret, ttn_error *err)
{
    *ret = (told){0};
    const ttn_log log = {.say = say, .ctx = ret, .from = TTN_LOG_WARNING};
    return ttn_config_check_unread(c, fact, fact ? 1 : 0, NULL, &log, err);
}

/* The row set on the command line, with condition `unmet` not met (-1: all are): is it told, with what it is for? */
static void check_row(const ttn_option *o, int unmet)
{
    yaml y = {0};
    told t;
    ttn_error err = {0};
    char setting[256], begin[300], text[TTN_OPTION_EXPECTED];
    ttn_config_fact data = {.key = "data.train"};
    meet(o, unmet, &y, &data);
    snprintf(setting, sizeof setting, "%s=%s", o->name, any_value(o));
    ttn_config *c = load(&y, (const char *const[]){setting, NULL});
    const ttn_status status = check(c, &data, &t, &err);
    const int is_error = unmet >= 0 && o->unread_is_error;
    if ((status != TTN_OK) != is_error || t.n != (unmet >= 0 && !is_error))
        fail_msg("%s with condition %d: %s%s", setting, unmet, t.text, err.text);
    if (unmet >= 0) {
        snprintf(begin, sizeof begin, "%s=", o->name);
        assert_contains(is_error ? err.text : t.text, begin);
        assert_contains(is_error ? err.text : t.text, "(command line) has no effect: it is used only if ");
        assert_contains(is_error ? err.text : t.text, ttn_option_condition_text(&o->when[unmet], text));
    }
    ttn_config_destroy(c);
}

static void each_condition_of_each_row_is_asked(void **state)
{
    (void)state;
    int n;
    const ttn_option *row = ttn_config_rows(table, &n);
    for (int i = 0; i < n; i++) {
        if (row[i].when) check_row(&row[i], -1);
        for (int k = 0; row[i].when && row[i].when[k].key; k++)
            check_row(&row[i], k);
    }
}

/* ---- whose values ---- */

static int count_told(const ttn_config_request *r)
{
    told t;
    ttn_config *c = NULL;
    ttn_error err = {0};
    assert_ok(ttn_config_load(table, r, &c, &err), &err);
    assert_ok(check(c, NULL, &t, &err), &err);
    ttn_config_destroy(c);
    return t.n;
}

static int count_told_of(const char *text)
{
    const ttn_config_file file = {.path = "a.yaml", .text = text, .n = strlen(text)};
    return count_told(&(ttn_config_request){.file = &file, .n_file = 1});
}

static void only_what_a_user_gave_is_told(void **state)
{
    (void)state;
    static const char *const environment[] = {"TITIN__NYSTROM__LANDMARKS=32", NULL};
    static const char *const argument[] = {"nystrom.landmarks=32"};
    static const char *const kind[] = {"attention.kind=exact"};
    assert_int_equal(count_told_of("nystrom: {landmarks: 32}\n"), 1);
    assert_int_equal(count_told(&(ttn_config_request){.environment = environment}), 1);
    assert_int_equal(count_told(&(ttn_config_request){.argument = argument, .n_argument = 1}), 1);
    /* a preset and one value over it, with which much of the preset is not read any more */
    ttn_config_request r = {.presets = ttn_config_presets, .preset = "quickstart", .argument = kind, .n_argument = 1};
    assert_int_equal(count_told(&r), 0);

    /* a file as titin wrote it, and one that was edited since */
    ttn_config *c = NULL;
    ttn_error err = {0};
    char *text = NULL;
    r.argument = argument;
    r.preset = NULL;
    assert_ok(ttn_config_load(table, &r, &c, &err), &err);
    assert_ok(ttn_config_resolved(c, &text, &err), &err);
    ttn_config_destroy(c);
    assert_int_equal(count_told_of(text), 0);
    char *landmarks = strstr(text, "landmarks: 32");
    assert_non_null(landmarks);
    memcpy(landmarks, "landmarks: 64", 13); /* the default */
    assert_int_equal(count_told_of(text), 0);
    memcpy(landmarks, "landmarks: 16", 13);
    assert_int_equal(count_told_of(text), 1);
    free(text);
}

static void facts_of_a_run_go_before_the_configuration(void **state)
{
    (void)state;
    static const yaml nothing;
    static const char *const settings[] = {"nystrom.landmarks=32", "exact.scale=0.5", NULL};
    ttn_config *c = load(&nothing, settings);
    ttn_error err = {0};
    told t;
    assert_ok(
        check(c, &(ttn_config_fact){"attention.kind", "favor, nystrom", "layers have favor and nystrom"}, &t, &err),
        &err);
    assert_string_equal(t.text, "exact.scale=0.5 (command line) has no effect: it is used only if attention.kind is "
                                "exact, and layers have favor and nystrom\n");
    assert_ok(check(c, &(ttn_config_fact){.key = "attention.kind"}, &t, &err), &err);
    assert_int_equal(t.n, 0); /* nobody knows yet */
    ttn_config_destroy(c);
}

/* ---- is it so? ---- */

static char folder[PATH_MAX / 4];

static void write_fasta(const char *name, uint64_t seed)
{
    enum { N_PROTEIN = 40 };
    static const char letters[] = "ACDEFGHIKLMNPQRSTVWY";
    char path[PATH_MAX];
    ttn_rng rng = {.key = seed};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < N_PROTEIN; i++) {
        const int64_t n = 30 + (int64_t)ttn_rng_next_below(&rng, 60);
        fprintf(f, ">%s_%d\n", name, i);
        for (int64_t j = 0; j < n; j++)
            fputc(letters[ttn_rng_next_below(&rng, 20)], f);
        fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
}

/* How many parameters, and loss, norm and learning rate of some steps, as one number. */
static uint64_t numbers_of(const yaml *y, const char *const *setting)
{
    enum { STEPS = 4 };
    ttn_config *c = load(y, setting);
    ttn_training *t = NULL;
    ttn_error err = {0};
    char beside[PATH_MAX];
    snprintf(beside, sizeof beside, "%s/data", folder);
    const ttn_training_options o = {.table = table, .config = c, .beside = beside, .n_thread = 1};
    assert_ok(ttn_training_create(&o, &t, &err), &err);
    double seen[3 * STEPS + 1] = {(double)ttn_training_facts_of(t)->parameters};
    for (int i = 0; i < STEPS; i++) {
        ttn_step step;
        assert_ok(ttn_trainer_step(ttn_training_trainer(t), &step, &err), &err);
        seen[3 * i + 1] = step.loss;
        seen[3 * i + 2] = step.norm;
        seen[3 * i + 3] = step.lr;
    }
    ttn_training_destroy(t);
    ttn_config_destroy(c);
    return ttn_hash64(seen, sizeof seen, 0);
}

static void begin(yaml *y)
{
    char files[2 * PATH_MAX], valid[PATH_MAX];
    *y = (yaml){0};
    snprintf(files, sizeof files, "[%s/a.fa, %s/b.fa]", folder, folder);
    snprintf(valid, sizeof valid, "%s/b.fa", folder);
    add(y, "data.train", files);
    add(y, "data.valid_file", valid);
    add(y, "model.layers", "1");
    add(y, "model.width", "16");
    add(y, "model.heads", "2");
    add(y, "batch.rows", "480");
    add(y, "optim.lr", "0.01");
    add(y, "schedule.warmup", "1");
    add(y, "train.steps", "5");
}

/* A value that makes a difference, beside keys that the row's own conditions do not set. */
static const struct {
    const char *setting, *key, *value;
} effects[] = {
    {"exact.scale=0.5", NULL, NULL},
    {"none.qk=no", NULL, NULL},
    {"nystrom.landmarks=8", NULL, NULL},
    {"nystrom.pinv=exact", NULL, NULL},
    {"nystrom.iterations=2", NULL, NULL},
    {"nystrom.lambda=0.1", NULL, NULL},
    {"nystrom.conv=3", NULL, NULL},
    {"nystrom.compat=hf", "nystrom.landmarks", "8"},
    {"favor.kernel=relu", NULL, NULL},
    {"favor.features=16", "favor.kernel", "relu"},
    {"favor.projection=no", "favor.kernel", "relu"},
    {"favor.ortho=no", "favor.kernel", "relu"},
    {"favor.lengths=sqrtd", "favor.kernel", "relu"},
    {"favor.redraw=1", "favor.kernel", "relu"},
    {"favor.renormalize=rms", "favor.kernel", "relu"},
    {"favor.compat=google", NULL, NULL},
    {"mlm.rate=0.3", NULL, NULL},
    {"mlm.mask=0.5", NULL, NULL},
    {"mlm.random=0.2", NULL, NULL},
    {"mlm.replace=vocabulary", NULL, NULL},
    {"data.valid=0.4", NULL, NULL},
    {"data.split_seed=5", NULL, NULL},
    {"model.norm_bias=no", NULL, NULL},
    {"model.max_positions=200", NULL, NULL},
    {"model.position_offset=2", NULL, NULL},
    {"model.rotary_base=100", NULL, NULL},
    {"model.rotary_form=interleaved", NULL, NULL},
    {"model.sinusoid_form=halves", NULL, NULL},
    {"model.token_dropout_share=0.5", NULL, NULL},
    {"attention.kind=favor", NULL, NULL},
    {"attention.auto_length=10", NULL, NULL},
    {"attention.qk_norm=yes", "none.qk", "no"},
    {"schedule.steps=3", NULL, NULL},
    {"schedule.floor=0.5", "schedule.decay", "0.9"},
    {"schedule.decay=0.9", NULL, NULL},
};

/* Rows whose effect is not among those numbers: on evaluations, on what is packed, on what is saved. */
static const char *const unseen[] = {
    "train.eval_every",
    "train.maskings",
    "model.rotary_frequencies",
    "pack.compress",
    "pack.k",
    "pack.kmers",
    "pack.seed",
    "pack.memory",
    "data.alphabet",
    "data.dedup",
    "data.valid_file",
    "data.lowercase",
    "data.stop",
    "data.gaps",
    "data.format",
    "data.strip_digits",
    "data.on_error",
    "data.max_skipped",
    "data.allow_nucleotide",
    "data.allow_no_bgzf_eof",
    "data.id_regex",
    "data.max_record",
};

static int has_effect(const char *name)
{
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++)
        if (strncmp(effects[i].setting, name, strlen(name)) == 0 && effects[i].setting[strlen(name)] == '=') return 1;
    return 0;
}

static void a_row_is_read_where_it_says_so_and_nowhere_else(void **state)
{
    (void)state;
    int n;
    const ttn_option *row = ttn_config_rows(table, &n);
    for (int i = 0; i < n; i++)
        if (row[i].when && has_effect(row[i].name) == is_listed(unseen, sizeof unseen / sizeof *unseen, row[i].name))
            fail_msg("%s: what difference does it make?", row[i].name);
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(effects[i].setting, "="), effects[i].setting);
        const ttn_option *o = row_of(name);
        const char *const setting[] = {effects[i].setting, NULL};
        for (int k = -1; k < 0 || o->when[k].key; k++) {
            yaml y;
            ttn_config_fact data;
            begin(&y);
            if (effects[i].key) add(&y, effects[i].key, effects[i].value);
            meet(o, k, &y, &data);
            const int is_same = numbers_of(&y, NULL) == numbers_of(&y, setting);
            if (is_same != (k >= 0))
                fail_msg("%s makes %s difference with\n%s", effects[i].setting, is_same ? "no" : "a", y.text);
        }
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_error err = {0};
    if (ttn_start(1, &err) != TTN_OK || ttn_config_table_of_titin(&table, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    snprintf(folder, sizeof folder, "%s", ttn_test_folder());
    write_fasta("a.fa", 1);
    write_fasta("b.fa", 2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_read_always_or_says_when),
        cmocka_unit_test(each_condition_of_each_row_is_asked),
        cmocka_unit_test(only_what_a_user_gave_is_told),
        cmocka_unit_test(facts_of_a_run_go_before_the_configuration),
        cmocka_unit_test(a_row_is_read_where_it_says_so_and_nowhere_else),
    };
    const int failed = ttn_test_run(tests);
    ttn_config_table_destroy(table);
    return failed;
}
