/* Sources and their order, where values came from, what is written, and a table that its modules read. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "tests/train/config_rows.h"

static ttn_config_table *create_table(void)
{
    ttn_config_table *t = NULL;
    ttn_error err = {0};
    assert_ok(ttn_config_table_create(test_modules, TEST_N_MODULE, &t, &err), &err);
    return t;
}

static ttn_config_file file_of(const char *path, const char *text)
{
    return (ttn_config_file){.path = path, .text = text, .n = strlen(text)};
}

static ttn_config *load(const ttn_config_table *t, const ttn_config_request *r)
{
    ttn_config *c = NULL;
    ttn_error err = {0};
    assert_ok(ttn_config_load(t, r, &c, &err), &err);
    assert_string_equal(ttn_config_report(c), "");
    return c;
}

static const ttn_option_value *value_of(const ttn_config *c, const char *name)
{
    const ttn_values *v = ttn_config_values(c);
    for (int i = 0; i < ttn_values_count(v); i++)
        if (strcmp(ttn_values_row(v, i)->name, name) == 0) return ttn_values_at(v, i);
    fail_msg("no row %s", name);
    return NULL;
}

/* ---- sources ---- */

/* Every stronger source gives one key less: each value shows who was the last to speak. */
static void later_sources_win_and_origins_say_which(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    const ttn_config_file files[] = {
        file_of("a.yaml", "train:\n  seed: 2\n  warmup: 2\n  lr: 0.2\n  offset: 2\n"),
        file_of("b.yaml", "# b\ntrain: {warmup: 3, lr: 0.3,\n  offset: 3}\n"),
    };
    static const char *const environment[] = {"HOME=/root", "TITIN__TRAIN__LR=0.4", "TITIN__TRAIN__OFFSET=4", NULL};
    static const char *const arguments[] = {"train.offset=4.5", "train.offset=5"};
    const ttn_config_request r = {
        .presets = test_presets,
        .preset = "quickstart",
        .file = files,
        .n_file = 2,
        .environment = environment,
        .argument = arguments,
        .n_argument = 2,
    };
    ttn_config *c = load(t, &r);
    static const struct {
        const char *name;
        double value;
        ttn_source_kind kind;
        const char *origin;
    } expected[] = {
        {"train.save_every", 600, TTN_FROM_DEFAULT, "default"},
        {"train.steps", 2000, TTN_FROM_PRESET, "preset quickstart:2"},
        {"train.seed", 2, TTN_FROM_FILE, "a.yaml:2"},
        {"train.warmup", 3, TTN_FROM_FILE, "b.yaml:2"},
        {"train.lr", 0.4, TTN_FROM_ENVIRONMENT, "environment TITIN__TRAIN__LR"},
        {"train.offset", 5, TTN_FROM_COMMAND_LINE, "command line"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const ttn_option_value *v = value_of(c, expected[i].name);
        const int is_real = strstr("train.lr train.offset train.save_every", expected[i].name) != NULL;
        const double got = is_real ? v->item[0].real : (double)v->item[0].integer;
        assert_true(got == expected[i].value);
        assert_int_equal(v->origin.kind, expected[i].kind);
        assert_string_equal(v->origin.text, expected[i].origin);
    }
    assert_string_equal(ttn_config_preset_name(c), "quickstart");
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
}

static void the_strongest_wish_for_a_preset_counts(void **state)
{
    (void)state;
    static const ttn_config_preset presets[] = {{"one", "train: {seed: 1}"},
                                                {"two", "train: {seed: 2}"},
                                                {"three", "train: {seed: 3}"},
                                                {"four", "train: {seed: 4}"},
                                                {NULL, NULL}};
    ttn_config_table *t = create_table();
    const ttn_config_file files[] = {file_of("a.yaml", "preset: four\n"), file_of("b.yaml", "preset: one\n"),
                                     file_of("c.yaml", "")};
    static const char *const environment[] = {"TITIN__PRESET=two", NULL};
    static const char *const arguments[] = {"preset=one", "preset=three"};
    ttn_config_request r = {.presets = presets,
                            .preset = "four",
                            .file = files,
                            .n_file = 3,
                            .environment = environment,
                            .argument = arguments,
                            .n_argument = 2};
    static const int64_t seeds[] = {4, 3, 2, 1, 0}; /* as one wish after the other is taken away */
    for (int i = 0; i < 5; i++) {
        if (i == 1) r.preset = NULL;
        if (i == 2) r.n_argument = 0;
        if (i == 3) r.environment = NULL;
        if (i == 4) r.n_file = 0;
        ttn_config *c = load(t, &r);
        assert_int_equal(value_of(c, "train.seed")->item[0].integer, seeds[i]);
        ttn_config_destroy(c);
    }
    ttn_config_table_destroy(t);
}

static void what_is_wrong_in_a_preset_is_told_with_its_line(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    ttn_config *c = NULL;
    ttn_error err = {0};
    ttn_config_request r = {.presets = test_presets, .preset = "broken"};
    assert_fails(ttn_config_load(t, &r, &c, &err), TTN_EINVAL, &err,
                 "preset broken:2:7: train.lr: 'fast' is not a number");
    ttn_config_destroy(c);
    err = (ttn_error){0};
    r.preset = "nested";
    assert_fails(ttn_config_load(t, &r, &c, &err), TTN_EINVAL, &err, "a preset cannot name another one");
    ttn_config_destroy(c);
    err = (ttn_error){0};
    r.preset = "fast";
    assert_fails(ttn_config_load(t, &r, &c, &err), TTN_EINVAL, &err, "there is no preset 'fast'; there are quickstart");
    assert_contains(ttn_config_report(c), "       | --preset fast\n       |          ^~~~\n");
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
}

static void refused_argument(const ttn_config_table *t, const char *const *argument, const char *words)
{
    ttn_config *c = NULL;
    ttn_error err = {0};
    const ttn_config_request r = {.argument = argument, .n_argument = 1};
    assert_fails(ttn_config_load(t, &r, &c, &err), TTN_EINVAL, &err, words);
    ttn_config_destroy(c);
}

static void no_shell_reads_paths_of_files_and_settings(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    setenv("HOME", "/home/of us", 1);
    setenv("TITIN_TEST_DISK", "/disk", 1);
    const ttn_config_file file =
        file_of("a.yaml", "data:\n  train: [~/a.fa, $TITIN_TEST_DISK/b.fa, '${HOME}', /x/$TITIN_TEST_DISK, a~$HOME]\n");
    static const char *const environment[] = {"TITIN__DATA__TRAIN__5=~/c.fa", NULL};
    static const char *const arguments[] = {"data.train.6=~/d.fa", "data.name=~/is a text"};
    const ttn_config_request r = {
        .file = &file, .n_file = 1, .environment = environment, .argument = arguments, .n_argument = 2};
    static const char *const expected[] = {"/home/of us/a.fa", "/disk/b.fa",       "/home/of us",     "/x//disk",
                                           "a~$HOME",          "/home/of us/c.fa", "/home/of us/d.fa"};
    ttn_config *c = load(t, &r);
    for (int i = 0; i < 7; i++)
        assert_string_equal(value_of(c, "data.train")->item[i].text, expected[i]);
    assert_string_equal(value_of(c, "data.name")->item[0].text, "~/is a text");

    /* what was written is not expanded again */
    setenv("HOME", "/elsewhere", 1);
    char *text = NULL;
    ttn_error err = {0};
    assert_ok(ttn_config_resolved(c, &text, &err), &err);
    const ttn_config_file again = file_of("config.resolved.yaml", text);
    ttn_config *back = load(t, &(ttn_config_request){.file = &again, .n_file = 1});
    assert_string_equal(value_of(back, "data.train")->item[0].text, "/home/of us/a.fa");
    ttn_config_destroy(back);
    free(text);
    ttn_config_destroy(c);

    static const char *const nobody[] = {"data.train=~nobody-of-this-name/x"};
    static const char *const unset[] = {"data.train=$TITIN_TEST_UNSET/x"};
    refused_argument(t, nobody, "there is no user 'nobody-of-this-name'; a file of this name is ./~nobody");
    refused_argument(t, unset, "$TITIN_TEST_UNSET/x: the environment has no variable TITIN_TEST_UNSET");
    ttn_config_table_destroy(t);
}

static void an_element_of_a_list_is_changed_and_keeps_both_origins(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    const ttn_config_file file = file_of("a.yaml", "train:\n  betas: [0.1, 0.2]\n");
    static const char *const arguments[] = {"train.betas.1=0.3", "train.betas.2=0.4"};
    const ttn_config_request r = {.file = &file, .n_file = 1, .argument = arguments, .n_argument = 2};
    ttn_config *c = load(t, &r);
    const ttn_option_value *v = value_of(c, "train.betas");
    assert_int_equal(v->n, 3);
    assert_true(v->item[0].real == 0.1 && v->item[1].real == 0.3 && v->item[2].real == 0.4);
    assert_string_equal(v->origin.text, "a.yaml:2, command line");
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
}

static void the_environment_has_no_order(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    static const char *const environment[] = {
        "TITIN__TRAIN__BETAS__10=0.5", "TITIN__TRAIN__BETAS__9=0.25", "TITIN__TRAIN__BETAS=[0, 0, 0, 0, 0, 0, 0, 0, 0]",
        "TITIN__DATA__TRAIN__1=b",     "TITIN__DATA__TRAIN__0=a",     NULL};
    ttn_config *c = load(t, &(ttn_config_request){.environment = environment});
    const ttn_option_value *v = value_of(c, "train.betas");
    assert_int_equal(v->n, 11);
    assert_true(v->item[9].real == 0.25 && v->item[10].real == 0.5);
    assert_string_equal(value_of(c, "data.train")->item[1].text, "b");
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
}

static void a_key_of_two_variables_is_refused(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    static const char *const environment[] = {"TITIN__TRAIN__LR=0.1", "TITIN__train__lr=0.2", NULL};
    ttn_config *c = NULL;
    ttn_error err = {0};
    assert_fails(ttn_config_load(t, &(ttn_config_request){.environment = environment}, &c, &err), TTN_EINVAL, &err,
                 "train.lr is given twice, by another variable too");
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
}

/* Each a step and a few bytes: when every element was a copy of the list, these were 6 GB. */
static void a_list_of_many_elements_by_number_is_read_in_little_memory(void **state)
{
    (void)state;
    enum { N = 60000, LINE = 16 };
    ttn_config_table *t = create_table();
    char *text = malloc(N * LINE + 64);
    assert_non_null(text);
    int n = sprintf(text, "data:\n train:\n");
    for (int i = 0; i < N; i++)
        n += sprintf(text + n, "  %d: a\n", i);
    ttn_config *c =
        load(t, &(ttn_config_request){.file = &(ttn_config_file){.path = "a.yaml", .text = text, .n = (size_t)n},
                                      .n_file = 1});
    const ttn_option_value *v = value_of(c, "data.train");
    assert_int_equal(v->n, N);
    assert_string_equal(v->origin.text, "a.yaml:60002");
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
    free(text);
}

/* ---- files ---- */

static const char *path_in(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", ttn_test_folder(), name);
    return path;
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

static void refused_file(const ttn_config_table *t, const char *path, ttn_status status, const char *words)
{
    const ttn_config_file file = {.path = path};
    ttn_config *c = NULL;
    ttn_error err = {0};
    assert_fails(ttn_config_load(t, &(ttn_config_request){.file = &file, .n_file = 1}, &c, &err), status, &err, words);
    assert_contains(err.text, strrchr(path, '/') ? strrchr(path, '/') : path);
    assert_int_equal(c != NULL, status == TTN_EINVAL);
    ttn_config_destroy(c);
}

static void a_file_is_read_or_its_failure_named(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    const char *path = path_in("a.yaml");
    refused_file(t, path, TTN_EINVAL, "there is no such file");
    refused_file(t, ttn_test_folder(), TTN_EINVAL, "this is a folder");
    refused_file(t, "train.lr", TTN_EINVAL, "there is no such file; a key is set by KEY=VALUE");

    static char large[(1 << 20) + 1];
    memset(large, '#', sizeof large);
    write_file(path, large, sizeof large);
    refused_file(t, path, TTN_EINVAL, "more than 1 MiB");
    write_file(path, large, sizeof large - 1); /* a comment of exactly that */
    const ttn_config_file file = {.path = path};
    ttn_config_destroy(load(t, &(ttn_config_request){.file = &file, .n_file = 1}));

    write_file(path, "train.seed: 7", 13);
    ttn_config *c = load(t, &(ttn_config_request){.file = &file, .n_file = 1});
    assert_int_equal(value_of(c, "train.seed")->item[0].integer, 7);
    ttn_config_destroy(c);
    shim_arm(SHIM_OPEN, 1, SHIM_FAIL, EMFILE, 0);
    refused_file(t, path, TTN_EINVAL, "Too many open files");
    shim_disarm();
    ttn_config_table_destroy(t);
}

/* ---- problems ---- */

static void of_one_source_twenty_are_told_and_the_others_counted(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    char text[4096] = "train:\n";
    for (int i = 0; i < 50; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "  key%d: 1\n", i);
    const ttn_config_file files[] = {file_of("a.yaml", text), file_of("b.yaml", "train: {lr: x}\n")};
    static const char *const environment[] = {"TITIN__TRAIN__LR=y", NULL};
    const ttn_config_request r = {.file = files, .n_file = 2, .environment = environment};
    ttn_config *c = NULL;
    ttn_error err = {0};
    assert_fails(ttn_config_load(t, &r, &c, &err), TTN_EINVAL, &err, "a.yaml:2:3: there is no key 'train.key0'");
    assert_contains(err.text, "(and 51 more)");
    assert_int_equal(err.line, 2);
    assert_int_equal(err.column, 3);
    assert_string_equal(err.file, "a.yaml");
    int n = 0;
    int64_t more = 0;
    const ttn_config_problem *p = ttn_config_problems(c, &n, &more);
    assert_int_equal(n, TTN_CONFIG_PROBLEMS + 2);
    assert_int_equal(more, 50 - TTN_CONFIG_PROBLEMS);
    for (int i = 0; i < TTN_CONFIG_PROBLEMS; i++)
        assert_int_equal(p[i].line, 2 + i);
    assert_string_equal(p[n - 2].source, "b.yaml");
    assert_string_equal(p[n - 1].source, "environment TITIN__TRAIN__LR");
    assert_contains(ttn_config_report(c), "and 30 more\n");
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
}

static void the_report_shows_the_line_and_a_caret(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    const ttn_config_file file = file_of("run.yaml", "train:\n  lr: \xCF\x80\xCF\x80  # \xCF\x80\n\tseed: 1\n");
    static const char *const arguments[] = {"train.betas=[0.5, x]"};
    const ttn_config_request r = {.file = &file, .n_file = 1, .argument = arguments, .n_argument = 1};
    ttn_config *c = NULL;
    assert_int_equal(ttn_config_load(t, &r, &c, NULL), TTN_EINVAL);
    assert_string_equal(ttn_config_report(c), "run.yaml:3:1: a tab in the indentation: YAML wants spaces\n"
                                              "     3 |  seed: 1\n"
                                              "       | ^\n"
                                              "argument train.betas: train.betas.1: 'x' is not a number\n"
                                              "       | train.betas=[0.5, x]\n"
                                              "       |                   ^\n");
    ttn_config_destroy(c);
    const ttn_config_file other = file_of("run.yaml", "train:\n  lr: \xCF\x80\xCF\x80  # \xCF\x80\n");
    assert_int_equal(ttn_config_load(t, &(ttn_config_request){.file = &other, .n_file = 1}, &c, NULL), TTN_EINVAL);
    assert_string_equal(ttn_config_report(c), "run.yaml:2:7: train.lr: '\xCF\x80\xCF\x80' is not a number\n"
                                              "     2 |   lr: \xCF\x80\xCF\x80  # \xCF\x80\n"
                                              "       |       ^~\n");
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
}

static void of_a_long_line_the_part_around_the_place_is_shown(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    char text[1200] = "notes: {a: \"";
    for (int i = 0; i < 300; i++)
        strcat(text, "\xCF\x80");
    strcat(text, "\"}\ntrain: {betas: [");
    for (int i = 0; i < 100; i++)
        strcat(text, "0.1, ");
    strcat(text, "x]}\n");
    const ttn_config_file file = file_of("run.yaml", text);
    ttn_config *c = NULL;
    assert_int_equal(ttn_config_load(t, &(ttn_config_request){.file = &file, .n_file = 1}, &c, NULL), TTN_EINVAL);
    int n = 0;
    const ttn_config_problem *p = ttn_config_problems(c, &n, NULL);
    assert_int_equal(n, 1);
    assert_int_equal(p->line, 2);
    assert_int_equal(p->column, (int64_t)strlen("train: {betas: [") + 500 + 1);
    assert_true(strlen(p->text) < 120);
    assert_int_equal(p->text[p->caret], 'x');
    assert_memory_equal(p->text, "...", 3);
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
}

/* ---- what is written ---- */

static void resolved(const ttn_config *c, char **ret)
{
    ttn_error err = {0};
    assert_ok(ttn_config_resolved(c, ret, &err), &err);
}

static void what_is_written_reads_back_with_its_origins(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    const ttn_config_file file =
        file_of("my # run.yaml", "train: {betas: [0.5], freeze: ['a # b', c]}\nnotes: {n: 1, m: ['x # y', \"\"]}\n");
    static const char *const arguments[] = {"train.betas.0=0.25", "data.name=a: \"b\" # c"};
    static const char *const environment[] = {"TITIN__TRAIN__LR=0.125", NULL};
    const ttn_config_request r = {.presets = test_presets,
                                  .preset = "quickstart",
                                  .file = &file,
                                  .n_file = 1,
                                  .environment = environment,
                                  .argument = arguments,
                                  .n_argument = 2};
    ttn_config *c = load(t, &r);
    char *first = NULL;
    resolved(c, &first);
    assert_contains(first, "\n  betas: [0.25]                         # my # run.yaml:1, command line\n");
    assert_contains(first, "\n  steps: 2000                           # preset quickstart:2\n");
    assert_contains(first, "\n  budget: 2GiB                          # default\n");
    assert_contains(first, "\n  # train:                              # no value, and no default\n");
    assert_contains(first, "\n  name: \"a: \\\"b\\\" # c\"                  # command line\n");
    const ttn_config_file again = file_of("config.resolved.yaml", first);
    ttn_config *back = load(t, &(ttn_config_request){.file = &again, .n_file = 1});
    char *second = NULL;
    resolved(back, &second);
    assert_string_equal(first, second);
    assert_int_equal(value_of(back, "train.lr")->origin.kind, TTN_FROM_ENVIRONMENT);
    assert_int_equal(value_of(back, "train.seed")->origin.kind, TTN_FROM_DEFAULT);
    assert_int_equal(value_of(back, "train.steps")->origin.kind, TTN_FROM_PRESET);
    assert_int_equal(value_of(back, "data.name")->origin.kind, TTN_FROM_COMMAND_LINE);
    assert_int_equal(value_of(back, "train.freeze")->origin.kind, TTN_FROM_FILE);
    ttn_config_destroy(back);
    free(second);

    /* a value changed by hand comes from that file, whatever the comment says */
    const char *lr = strstr(first, "lr: 0.125");
    assert_non_null(lr);
    static const char other[] = "lr: 1    ";
    for (size_t i = 0; other[i]; i++)
        first[(size_t)(lr - first) + i] = other[i];
    back = load(t, &(ttn_config_request){.file = &again, .n_file = 1});
    assert_true(value_of(back, "train.lr")->item[0].real == 1);
    assert_contains(value_of(back, "train.lr")->origin.text, "config.resolved.yaml:");
    assert_contains(value_of(back, "train.seed")->origin.text, "config.resolved.yaml:");
    ttn_config_destroy(back);
    free(first);
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
}

static void saving_is_atomic_and_the_same_text(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    ttn_config *c = load(t, &(ttn_config_request){0});
    char *text = NULL;
    resolved(c, &text);
    const char *path = path_in("config.resolved.yaml");
    ttn_error err = {0};
    assert_ok(ttn_config_save(c, path, &err), &err);
    char got[8192] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(got, 1, sizeof got, file), strlen(text));
    fclose(file);
    assert_memory_equal(got, text, strlen(text));
    shim_arm(SHIM_RENAME, 1, SHIM_FAIL, ENOSPC, 1);
    assert_int_equal(ttn_config_save(c, path, &err), TTN_EIO);
    shim_disarm();
    free(text);
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
}

/* ---- what is told ---- */

static void a_key_is_explained_with_its_value(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    const ttn_config_file file = file_of("a.yaml", "train: {steps: 9k}\n");
    ttn_config *c = load(t, &(ttn_config_request){.file = &file, .n_file = 1});
    ttn_error err = {0};
    char *text = NULL;
    assert_ok(ttn_config_explain(t, c, "train.steps", &text, &err), &err);
    assert_string_equal(text, "train.steps: integer (steps)\n"
                              "  how long to train\n"
                              "  expected: an integer from 1 to 1000000000000\n"
                              "  default:  50k\n"
                              "  since:    0.1\n"
                              "  value:    9000  (a.yaml:1)\n");
    free(text);
    assert_ok(ttn_config_explain(t, c, "data.train", &text, &err), &err);
    assert_contains(text, "default:  none: a value must be given\n");
    assert_contains(text, "value:    none yet\n");
    free(text);
    assert_ok(ttn_config_explain(t, NULL, "attention", &text, &err), &err);
    assert_string_equal(text, "attention.kind       one for each layer, or one for all\n"
                              "attention.landmarks  of the kind nystrom\n");
    free(text);
    assert_ok(ttn_config_explain(t, NULL, "notes.x", &text, &err), &err);
    free(text);
    assert_ok(ttn_config_explain(t, NULL, "preset", &text, &err), &err);
    assert_contains(text, "preset: the name of a preset");
    free(text);
    assert_fails(ttn_config_explain(t, NULL, "train.stesp", &text, &err), TTN_EINVAL, &err,
                 "did you mean train.steps?");
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
}

static void differences_are_those_of_values_not_of_spelling(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    const ttn_config_file x =
        file_of("x.yaml", "train: {steps: 50000, lr: 1e-3, betas: []}\nnotes: {a: 1, b: 2, c: x}\n");
    const ttn_config_file y =
        file_of("y.yaml", "train: {budget: 2048Mi}\ndata: {train: a.fa}\nnotes: {b: 3, c: x, d: 4}\n");
    ttn_config *a = load(t, &(ttn_config_request){.file = &x, .n_file = 1});
    ttn_config *b = load(t, &(ttn_config_request){.file = &y, .n_file = 1});
    ttn_error err = {0};
    char *text = NULL;
    assert_ok(ttn_config_diff(a, b, &text, &err), &err);
    assert_string_equal(text, "train.lr: 0.001 (x.yaml:1) -> 0.0003 (default)\n"
                              "train.betas: [] (x.yaml:1) -> [0.9, 0.95] (default)\n"
                              "data.train: none -> [a.fa] (y.yaml:2)\n"
                              "notes.a: \"1\" (x.yaml:2) -> none\n"
                              "notes.b: \"2\" (x.yaml:2) -> \"3\" (y.yaml:3)\n"
                              "notes.d: none -> \"4\" (y.yaml:3)\n");
    free(text);
    assert_ok(ttn_config_diff(a, a, &text, &err), &err);
    assert_string_equal(text, "");
    free(text);
    ttn_config_destroy(a);
    ttn_config_destroy(b);
    ttn_config_table_destroy(t);
}

static void the_schema_has_every_row(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    ttn_error err = {0};
    char *text = NULL;
    assert_ok(ttn_config_schema(t, &text, &err), &err);
    json_t *schema = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(schema);
    assert_string_equal(json_string_value(json_object_get(schema, "$schema")),
                        "https://json-schema.org/draft/2020-12/schema");
    json_t *sections = json_object_get(schema, "properties");
    int n = 0;
    const ttn_option *row = ttn_config_rows(t, &n);
    assert_int_equal(n, TEST_N_TRAIN + TEST_N_MODEL);
    for (int i = 0; i < n; i++) {
        char section[64];
        snprintf(section, sizeof section, "%.*s", (int)strcspn(row[i].name, "."), row[i].name);
        json_t *keys = json_object_get(json_object_get(sections, section), "properties");
        json_t *key = json_object_get(keys, strchr(row[i].name, '.') + 1);
        assert_string_equal(json_string_value(json_object_get(key, "description")), row[i].help);
        json_t *array = json_array_get(json_object_get(key, "anyOf"), 0);
        assert_int_equal(json_object_get(array, "items") != NULL, row[i].is_list);
        char pattern[128];
        snprintf(pattern, sizeof pattern, "^%s[.]%s%s$", section, strchr(row[i].name, '.') + 1,
                 row[i].is_list ? "([.](0|[1-9][0-9]*))?" : "");
        assert_non_null(json_object_get(json_object_get(schema, "patternProperties"), pattern));
    }
    json_t *steps = json_object_get(json_object_get(json_object_get(sections, "train"), "properties"), "steps");
    json_t *number = json_array_get(json_object_get(steps, "anyOf"), 0);
    assert_int_equal(json_integer_value(json_object_get(number, "minimum")), 1);
    assert_int_equal(json_integer_value(json_object_get(number, "maximum")), 1000000000000);
    json_decref(schema);
    free(text);
    ttn_config_table_destroy(t);
}

/* ---- tables ---- */

static void a_section_of_two_modules_stands_together(void **state)
{
    (void)state;
    ttn_config_table *t = create_table();
    int n = 0;
    const ttn_option *row = ttn_config_rows(t, &n);
    assert_string_equal(row[TEST_N_TRAIN - 3].name, "train.offset");
    assert_string_equal(row[TEST_N_TRAIN - 2].name, "data.train");
    assert_string_equal(row[n - 1].name, "objective.kind");
    ttn_config_table_destroy(t);
}

static ttn_status read_nothing(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    (void)v;
    (void)err;
    return TTN_OK;
}

static void refused_table(const ttn_config_module *module, int n, const char *words)
{
    ttn_config_table *t = NULL;
    ttn_error err = {0};
    assert_fails(ttn_config_table_create(module, n, &t, &err), TTN_EINTERNAL, &err, words);
    assert_null(t);
}

static void a_row_that_nobody_reads_and_a_read_without_a_row_are_found(void **state)
{
    (void)state;
    ttn_config_module module[2] = {test_modules[0], test_modules[1]};
    module[1].n_row--; /* train.offset is read, and has no row */
    refused_table(
        module, 2,
        "test model cannot read its options: option train.offset: somebody reads it, and no row has this name");
    module[1] = test_modules[1];
    module[1].read = read_nothing;
    refused_table(module, 2, "option train.offset: nobody reads this row");
    module[1] = test_modules[0];
    refused_table(module, 2, "option train.lr: two rows have this name");
    static const ttn_option mine = {
        .name = "notes.x", .type = TTN_OPTION_TEXT, .fallback = "", .help = "x", .since = "0.1"};
    module[1] = (ttn_config_module){.name = "thief", .row = &mine, .n_row = 1, .read = read_nothing};
    refused_table(module, 2, "option notes.x: 'notes' belongs to the user");
    static const ttn_config_conflict conflict = {{"train.lr", "train.rate"}, {"1", "2"}, "x"};
    module[0].conflict = &conflict;
    module[0].n_conflict = 1;
    refused_table(module, 1, "test trainer has a rule for train.rate, and there is no such row");
    module[0] = test_modules[0];
    static const ttn_config_order order = {"train.lr", "train.betas", "x"};
    module[0].order = &order;
    refused_table(module, 1, "test trainer has a rule for train.betas");
}

/* Keys of one length but for the first, so that the list of them is cut at every place. */
enum { MANY = 40, LONGEST_LIST = 255 };

static ttn_status read_many(const void *self, const ttn_values *v, ttn_error *err)
{
    const ttn_option *row = self;
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_status status = TTN_OK;
    for (int i = 0; i < MANY && status == TTN_OK; i++) {
        int64_t unused;
        status = reader.get_integer(reader.self, row[i].name, 0, &unused, err);
    }
    return status;
}

static void a_long_list_of_keys_is_cut_where_it_has_no_room(void **state)
{
    (void)state;
    static char name[MANY][64];
    ttn_option row[MANY];
    const ttn_config_module module = {.name = "many", .row = row, .n_row = MANY, .read = read_many, .self = row};
    for (int length = 1; length < 40; length++) {
        for (int i = 0; i < MANY; i++) {
            snprintf(name[i], sizeof name[i], "many.k%02d%.*s", i, i == 0 ? length : 20,
                     "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww");
            row[i] = (ttn_option){
                .name = name[i], .type = TTN_OPTION_INTEGER, .fallback = "0", .most = 1, .help = "x", .since = "0.1"};
        }
        ttn_config_table *t = NULL;
        ttn_config *c = NULL;
        ttn_error err = {0};
        assert_ok(ttn_config_table_create(&module, 1, &t, &err), &err);
        const char *const argument = "many.=1";
        const ttn_config_request r = {.argument = &argument, .n_argument = 1};
        assert_fails(ttn_config_load(t, &r, &c, &err), TTN_EINVAL, &err, "there are many.k00");
        const char *list = strstr(err.text, "there are ") + strlen("there are ");
        assert_true(strlen(list) <= LONGEST_LIST);
        assert_string_equal(list + strlen(list) - strlen(", ..."), ", ...");
        ttn_config_destroy(c);
        ttn_config_table_destroy(t);
    }
}

static void every_row_of_titin_is_read(void **state)
{
    (void)state;
    ttn_config_table *t = NULL;
    ttn_error err = {0};
    assert_ok(ttn_config_table_of_titin(&t, &err), &err);
    int n = 0;
    assert_non_null(ttn_config_rows(t, &n));
    assert_true(n >= 1);
    ttn_config_table_destroy(t);
    ttn_config_table_destroy(NULL);
}

static void every_preset_of_titin_loads(void **state)
{
    (void)state;
    ttn_config_table *t = NULL;
    ttn_error err = {0};
    assert_ok(ttn_config_table_of_titin(&t, &err), &err);
    for (const ttn_config_preset *p = ttn_config_presets; p->name; p++)
        ttn_config_destroy(load(t, &(ttn_config_request){.presets = ttn_config_presets, .preset = p->name}));
    ttn_config_table_destroy(t);
}

static int is_of_attention(const char *key)
{
    static const char *const section[] = {"attention.", "favor.", "nystrom."};
    for (size_t i = 0; i < sizeof section / sizeof *section; i++)
        if (strncmp(key, section[i], strlen(section[i])) == 0) return 1;
    return 0;
}

/* Else what is compared is more than attention. */
static void presets_of_other_attention_are_proteins_20k_with_it(void **state)
{
    (void)state;
    static const char *const others[] = {"performer-relu", "performer-softmax", "nystromformer-proteins"};
    ttn_config_table *t = NULL;
    ttn_error err = {0};
    assert_ok(ttn_config_table_of_titin(&t, &err), &err);
    ttn_config *base = load(t, &(ttn_config_request){.presets = ttn_config_presets, .preset = "proteins-20k"});
    for (size_t o = 0; o < sizeof others / sizeof *others; o++) {
        ttn_config *other = load(t, &(ttn_config_request){.presets = ttn_config_presets, .preset = others[o]});
        char *diff = NULL;
        assert_ok(ttn_config_diff(base, other, &diff, &err), &err);
        assert_true(*diff != 0);
        for (const char *line = diff; *line; line += strcspn(line, "\n") + 1)
            if (!is_of_attention(line)) fail_msg("%s: %.*s", others[o], (int)strcspn(line, "\n"), line);
        free(diff);
        ttn_config_destroy(other);
    }
    ttn_config_destroy(base);
    ttn_config_table_destroy(t);
}

/* ---- memory ---- */

typedef struct {
    int64_t n_call;
    int is_done;
} attempt;

/* Everything that takes memory, with the nth request refused: a message or success. */
static attempt try_without(int64_t nth)
{
    const ttn_config_file file = file_of("a.yaml", "train: {lr: 0.5, betas: [0.1, 0.2], x: 1}\nnotes: {a: [b, c]}\n");
    static const char *const arguments[] = {"train.betas=[0.1]"};
    const ttn_config_request r = {.presets = test_presets,
                                  .preset = "quickstart",
                                  .file = &file,
                                  .n_file = 1,
                                  .argument = arguments,
                                  .n_argument = 1};
    ttn_config_table *t = NULL;
    ttn_config *c = NULL;
    char *text[4] = {NULL};
    ttn_error err = {0};
    shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, 0, 0);
    ttn_status status = ttn_config_table_create(test_modules, TEST_N_MODULE, &t, &err);
    if (status == TTN_OK) status = ttn_config_load(t, &r, &c, &err);
    if (status == TTN_EINVAL) { /* the key x */
        err = (ttn_error){0};
        status = ttn_config_resolved(c, &text[0], &err);
        if (status == TTN_OK) status = ttn_config_explain(t, c, "train.betas", &text[1], &err);
        if (status == TTN_OK) status = ttn_config_diff(c, c, &text[2], &err);
        if (status == TTN_OK) status = ttn_config_schema(t, &text[3], &err);
    }
    attempt a = {.is_done = !shim_was_hit()};
    a.n_call = shim_disarm();
    if (a.is_done)
        assert_ok(status, &err);
    else
        assert_fails(status, TTN_ENOMEM, &err, "memory");
    for (int i = 0; i < 4; i++)
        free(text[i]);
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
    return a;
}

/* libyaml and jansson are linked statically into this program, so that their requests fail, too. */
static void no_memory_is_a_message_wherever_it_happens(void **state)
{
    (void)state;
    const int64_t n = try_without(INT64_MAX).n_call;
    assert_true(n > 300);
    const int64_t step = ttn_test_long() ? 1 : n / ttn_scaled(400, 50) + 1;
    for (int64_t nth = 1; nth <= n; nth += step)
        assert_false(try_without(nth).is_done);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_sources_win_and_origins_say_which),
        cmocka_unit_test(the_strongest_wish_for_a_preset_counts),
        cmocka_unit_test(what_is_wrong_in_a_preset_is_told_with_its_line),
        cmocka_unit_test(no_shell_reads_paths_of_files_and_settings),
        cmocka_unit_test(an_element_of_a_list_is_changed_and_keeps_both_origins),
        cmocka_unit_test(the_environment_has_no_order),
        cmocka_unit_test(a_key_of_two_variables_is_refused),
        cmocka_unit_test(a_list_of_many_elements_by_number_is_read_in_little_memory),
        cmocka_unit_test(a_file_is_read_or_its_failure_named),
        cmocka_unit_test(of_one_source_twenty_are_told_and_the_others_counted),
        cmocka_unit_test(the_report_shows_the_line_and_a_caret),
        cmocka_unit_test(of_a_long_line_the_part_around_the_place_is_shown),
        cmocka_unit_test(what_is_written_reads_back_with_its_origins),
        cmocka_unit_test(saving_is_atomic_and_the_same_text),
        cmocka_unit_test(a_key_is_explained_with_its_value),
        cmocka_unit_test(differences_are_those_of_values_not_of_spelling),
        cmocka_unit_test(the_schema_has_every_row),
        cmocka_unit_test(a_section_of_two_modules_stands_together),
        cmocka_unit_test(a_row_that_nobody_reads_and_a_read_without_a_row_are_found),
        cmocka_unit_test(a_long_list_of_keys_is_cut_where_it_has_no_room),
        cmocka_unit_test(every_row_of_titin_is_read),
        cmocka_unit_test(every_preset_of_titin_loads),
        cmocka_unit_test(presets_of_other_attention_are_proteins_20k_with_it),
        cmocka_unit_test(no_memory_is_a_message_wherever_it_happens),
    };
    return ttn_test_run(tests);
}
