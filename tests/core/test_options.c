/* A table of options is well-formed, or a test says which row is not and why. */
#include <math.h>
#include "core/options.h"
#include "tests/harness/test.h"

static const char *const kinds[] = {"exact", "favor", NULL};
static const char *const none[] = {NULL};

/* One good row of every type. */
static const ttn_option good[] = {
    {.name = "train.resume", .type = TTN_OPTION_BOOL, .fallback = "no", .help = "go on", .since = "0.1"},
    {.name = "train.steps",
     .type = TTN_OPTION_INTEGER,
     .least = 1,
     .most = 1e9,
     .unit = "steps",
     .help = "how many",
     .since = "0.1"},
    {.name = "train.lr", .type = TTN_OPTION_REAL, .fallback = "3e-4", .most = 1, .help = "rate", .since = "0.1"},
    {.name = "notes.text", .type = TTN_OPTION_TEXT, .fallback = "", .help = "yours", .since = "0.1"},
    {.name = "data.train", .type = TTN_OPTION_PATH, .is_list = 1, .help = "files", .since = "0.1"},
    {.name = "attention.kind",
     .type = TTN_OPTION_CHOICE,
     .choices = kinds,
     .fallback = "exact",
     .help = "how",
     .since = "0.1"},
    {.name = "train.memory", .type = TTN_OPTION_SIZE, .fallback = "2GiB", .help = "bytes", .since = "0.1"},
    {.name = "train.save_every", .type = TTN_OPTION_DURATION, .fallback = "10m", .help = "when", .since = "0.1"},
    {.name = "train.freeze2", .type = TTN_OPTION_PATTERN, .is_list = 1, .fallback = "", .help = "what", .since = "0.1"},
};

enum { N_GOOD = sizeof good / sizeof *good };

static void a_good_table_passes_and_is_searched(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_ok(ttn_options_check(good, N_GOOD, &err), &err);
    assert_ok(ttn_options_check(NULL, 0, &err), &err);
    for (int i = 0; i < N_GOOD; i++)
        assert_ptr_equal(ttn_option_find(good, N_GOOD, good[i].name), &good[i]);
    assert_null(ttn_option_find(good, N_GOOD, "train.l"));
    assert_null(ttn_option_find(good, N_GOOD, "train.lr2"));
}

static void every_type_has_a_name_for_people(void **state)
{
    (void)state;
    char text[TTN_OPTION_KIND];
    assert_string_equal(ttn_option_kind(&good[1], text), "integer");
    assert_string_equal(ttn_option_kind(&good[4], text), "list of paths");
    assert_string_equal(ttn_option_kind(&(ttn_option){.type = (ttn_option_type)99}, text), "?");
    for (int i = 0; i < N_GOOD; i++)
        assert_string_not_equal(ttn_option_kind(&good[i], text), "?");
}

static void refused(ttn_option row, const char *words)
{
    const ttn_option table[2] = {good[0], row};
    ttn_error err = {0};
    assert_fails(ttn_options_check(table, 2, &err), TTN_EINVAL, &err, words);
}

static void a_faulty_row_is_named_with_its_fault(void **state)
{
    (void)state;
    static const char *const names[] = {NULL,       "",           "lr",        ".lr",      "train.",
                                        "Train.lr", "train.lr.x", "train.l r", "train.l-r"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ttn_option o = good[2];
        o.name = names[i];
        refused(o, "a name is a section");
    }
    ttn_option o = good[2];
    o.type = (ttn_option_type)99;
    refused(o, "option train.lr: type number 99");
    o = good[2];
    o.help = "Ends in a dot.";
    refused(o, "without a dot");
    o.help = "";
    refused(o, "without a dot");
    o.help = NULL;
    refused(o, "without a dot");
    o = good[2];
    o.since = NULL;
    refused(o, "since when");
    o = good[2];
    o.least = 2;
    refused(o, "nothing lies between 2 and 1");
    o.least = (double)NAN;
    refused(o, "nothing lies between");
    o = good[3];
    o.most = 1;
    refused(o, "a text has no range");
    o = good[5];
    o.choices = NULL;
    refused(o, "a choice has some");
    o.choices = none;
    refused(o, "a choice has some");
    o = good[2];
    o.choices = kinds;
    refused(o, "choices belong to a choice");
    o = good[5];
    o.fallback = "exac";
    refused(o, "'exac' is not one of exact, favor");
    refused(good[0], "option train.resume: two rows");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_table_passes_and_is_searched),
        cmocka_unit_test(every_type_has_a_name_for_people),
        cmocka_unit_test(a_faulty_row_is_named_with_its_fault),
    };
    return ttn_test_run(tests);
}
