/* The rows of commands are well-formed, and command lines are read by them. */
#include <stdio.h>
#include <string.h>
#include "tests/harness/test.h"
#include "train/cli/command.h"
#include "train/cli/configured.h"

/* ---- rows ---- */

static int is_phrase(const char *text)
{
    size_t n = text ? strlen(text) : 0;
    return n > 0 && text[n - 1] != '.' && text[n - 1] != ' ' && !strchr(text, '\n') && !strchr(text, '\t');
}

static void names_are_unique_and_of_one_or_two_words(void **state)
{
    (void)state;
    for (const ttn_command *const *c = ttn_commands; *c; c++) {
        const char *name = (*c)->name;
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz- "), strlen(name));
        const char *blank = strchr(name, ' ');
        assert_true(!blank || !strchr(blank + 1, ' '));
        assert_ptr_equal(ttn_command_find(name), *c); /* the first of that name */
        char first[32];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(name, " "), name);
        assert_int_equal(ttn_command_is_family(first), blank != NULL);
        assert_true(!blank || !ttn_command_find(first)); /* `config` cannot be both */
    }
}

/* Else a heading would be printed twice. */
static void groups_and_families_stand_together(void **state)
{
    (void)state;
    for (int i = 0; ttn_commands[i]; i++)
        for (int j = i + 1; ttn_commands[j]; j++) {
            const ttn_command *a = ttn_commands[i], *b = ttn_commands[j], *before = ttn_commands[j - 1];
            size_t n = strcspn(a->name, " ") + 1;
            if (strcmp(a->group, b->group) == 0) assert_string_equal(before->group, b->group);
            if (strncmp(a->name, b->name, n) == 0) assert_int_equal(strncmp(before->name, b->name, n), 0);
        }
}

static void options_are_unique_and_explained(void **state)
{
    (void)state;
    for (const ttn_command *const *c = ttn_commands; *c; c++) {
        int n = 0;
        for (const ttn_cli_option *o = (*c)->options; o && o->name; o++, n++) {
            assert_true(is_phrase(o->help));
            assert_string_not_equal(o->name, ttn_help_option.name);
            assert_true(o->letter != ttn_help_option.letter);
            for (const ttn_cli_option *other = (*c)->options; other != o; other++) {
                assert_string_not_equal(o->name, other->name);
                assert_true(!o->letter || o->letter != other->letter);
            }
        }
        assert_in_range(n, 0, TTN_MAX_OPTIONS);
    }
}

static void arguments_can_be_told_apart(void **state)
{
    (void)state;
    for (const ttn_command *const *c = ttn_commands; *c; c++) {
        int is_optional = 0;
        for (const ttn_cli_argument *a = (*c)->arguments; a && a->name; a++) {
            assert_true(is_phrase(a->help));
            assert_false(is_optional && a->least > 0); /* which of the two would one word be? */
            is_optional = a->least == 0;
            assert_true(a->most != TTN_ANY_NUMBER || !a[1].name);
            assert_true(a->most == TTN_ANY_NUMBER || (a->most >= a->least && a->most > 0));
        }
    }
}

static void every_command_says_what_for_and_how(void **state)
{
    (void)state;
    for (const ttn_command *const *c = ttn_commands; *c; c++) {
        char usage[TTN_USAGE_TEXT];
        assert_true(is_phrase((*c)->purpose));
        assert_non_null((*c)->run);
        assert_non_null((*c)->examples);
        assert_non_null((*c)->examples[0].line);
        for (const ttn_cli_example *e = (*c)->examples; e->line; e++) {
            assert_true(is_phrase(e->what));
            assert_contains(e->line, "titin");
            assert_in_range(strlen(e->line), 1, 56); /* and two blanks before it fit a narrow terminal */
        }
        assert_in_range(strlen(ttn_usage(*c, usage)), 1, sizeof usage - 2);
        for (const ttn_exit *e = (*c)->exits; e && *e != TTN_EXIT_OK; e++)
            assert_false(ttn_exit_is_common((int)*e));
    }
}

/* ---- examples of the table are command lines that it takes ---- */

enum { MAX_WORDS = 16 };

/* Split at blanks. Returns how many. */
static int split(char *line, char **word)
{
    int n = 0;
    char *rest = NULL;
    for (char *w = strtok_r(line, " ", &rest); w && n < MAX_WORDS; w = strtok_r(NULL, " ", &rest))
        word[n++] = w;
    word[n] = NULL;
    return n;
}

static void examples_can_be_typed(void **state)
{
    (void)state;
    for (const ttn_command *const *c = ttn_commands; *c; c++)
        for (const ttn_cli_example *e = (*c)->examples; e->line; e++) {
            char line[256];
            char *word[MAX_WORDS + 1];
            /* Of a line with more than titin in it, its own part. */
            snprintf(line, sizeof line, "%s", strstr(e->line, "titin"));
            line[strcspn(line, "|>)")] = 0;
            if (strchr(line, '{')) continue; /* two words, once bash has read it */
            int n = split(line, word);
            ttn_cli_call call = {0};
            ttn_asked asked;
            const char *family;
            ttn_error err = {0};
            assert_ok(ttn_cli_parse(n, word, &asked, &call, &family, &err), &err);
            assert_true(asked == TTN_ASKED_VERSION || call.command == *c);
            for (int i = 0; i < call.n_argument; i++) {
                if (!ttn_is_setting(call.argument[i])) continue;
                ttn_config_table *table;
                int n_row;
                char key[64];
                assert_ok(ttn_config_table_of_titin(&table, &err), &err);
                const ttn_option *row = ttn_config_rows(table, &n_row);
                snprintf(key, sizeof key, "%.*s", (int)strcspn(call.argument[i], "="), call.argument[i]);
                assert_non_null(ttn_option_find(row, n_row, key));
                ttn_config_table_destroy(table);
            }
        }
}

/* ---- reading ---- */

static void words_become_options_and_arguments(void **state)
{
    (void)state;
    char line[] = "titin config explain exact.scale --preset=fast a.yaml -- --json";
    char *word[MAX_WORDS + 1];
    int n = split(line, word);
    ttn_cli_call call = {0};
    ttn_asked asked;
    const char *family;
    ttn_error err = {0};
    assert_ok(ttn_cli_parse(n, word, &asked, &call, &family, &err), &err);
    assert_int_equal(asked, TTN_ASKED_RUN);
    assert_ptr_equal(call.command, &ttn_cmd_config_explain);
    assert_string_equal(ttn_cli_value(&call, "preset"), "fast");
    assert_int_equal(ttn_cli_given(&call, "preset"), 1);
    assert_int_equal(call.n_argument, 3);
    assert_string_equal(call.argument[0], "exact.scale");
    assert_string_equal(call.argument[1], "a.yaml");
    assert_string_equal(call.argument[2], "--json");
}

static void one_line_after_the_other_is_read_alike(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) { /* getopt keeps its place between calls */
        char bad[] = "titin info -xyz --json", good[] = "titin info --json file";
        char *word[MAX_WORDS + 1];
        ttn_cli_call call = {0};
        ttn_asked asked;
        const char *family;
        ttn_error err = {0};
        int n = split(bad, word);
        assert_fails(ttn_cli_parse(n, word, &asked, &call, &family, &err), TTN_EINVAL, &err, "has no option -x");
        n = split(good, word);
        call = (ttn_cli_call){0};
        err = (ttn_error){0};
        assert_ok(ttn_cli_parse(n, word, &asked, &call, &family, &err), &err);
        assert_int_equal(ttn_cli_given(&call, "json"), 1);
        assert_int_equal(ttn_cli_given(&call, "verify"), 0);
        assert_int_equal(call.n_argument, 1);
    }
}

/* Programs may be started with no words at all. */
static void no_words_at_all_is_a_sentence(void **state)
{
    (void)state;
    char *none[] = {NULL};
    ttn_cli_call call = {0};
    ttn_asked asked;
    const char *family;
    ttn_error err = {0};
    assert_fails(ttn_cli_parse(0, none, &asked, &call, &family, &err), TTN_EINVAL, &err, "what is to be done?");
}

static void random_words_never_crash(void **state)
{
    (void)state;
    static const char *const pool[] = {"titin",   "config",    "show",     "explain", "diff",  "info",   "doctor",
                                       "help",    "-h",        "--help",   "--",      "-",     "--json", "--jso",
                                       "--js=",   "--preset",  "=",        "",        "-hx",   "-j",     "a=b",
                                       "--=",     "a b",       "\xff\xfe", "-\xff",   "--man", "--bash", "--version",
                                       "version", "--preset=", "-?",       "-:"};
    uint64_t seed = ttn_test_seed();
    const int64_t n_line = ttn_scaled(20000, 1000);
    for (int64_t i = 0; i < n_line; i++) {
        char *word[MAX_WORDS + 1];
        int n = 0;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        for (uint64_t left = seed >> 60; left > 0; left--) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            word[n++] = (char *)pool[(seed >> 33) % (sizeof pool / sizeof *pool)];
        }
        word[n] = NULL;
        ttn_cli_call call = {0};
        ttn_asked asked;
        const char *family;
        ttn_error err = {0};
        ttn_status status = ttn_cli_parse(n, word, &asked, &call, &family, &err);
        assert_true(status == TTN_OK || (status == TTN_EINVAL && err.text[0]));
        if (status == TTN_OK && asked == TTN_ASKED_RUN) assert_in_range(call.n_argument, 0, n);
    }
}

static void settings_are_told_from_files(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        int is_setting;
    } words[] = {{"train.lr=3e-4", 1}, {"a=b", 1},     {"A.b=c", 1}, {"x=/a/b", 1}, {"run.yaml", 0},
                 {"./a=b.yaml", 0},    {"dir/a=b", 0}, {"=x", 0},    {"", 0}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_int_equal(ttn_is_setting(words[i].word), words[i].is_setting);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_unique_and_of_one_or_two_words),
        cmocka_unit_test(groups_and_families_stand_together),
        cmocka_unit_test(options_are_unique_and_explained),
        cmocka_unit_test(arguments_can_be_told_apart),
        cmocka_unit_test(every_command_says_what_for_and_how),
        cmocka_unit_test(examples_can_be_typed),
        cmocka_unit_test(words_become_options_and_arguments),
        cmocka_unit_test(one_line_after_the_other_is_read_alike),
        cmocka_unit_test(no_words_at_all_is_a_sentence),
        cmocka_unit_test(random_words_never_crash),
        cmocka_unit_test(settings_are_told_from_files),
    };
    return ttn_test_run(tests);
}
