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
    refused(o, "its default: 'exac' is not one of exact, favor");
    o = good[6];
    o.fallback = "2GiBs";
    refused(o, "option train.memory: its default: '2GiBs' ends in 'GiBs'");
    o = good[2];
    o.fallback = "2";
    refused(o, "option train.lr: its default: '2' is out of range");
    o.is_list = 1;
    o.fallback = "0.1, 0.2, 1.2";
    refused(o, "'1.2' is out of range");
    refused(good[0], "option train.resume: two rows");
}

static void what_is_not_there_yet_is_told_with_what_to_take(void **state)
{
    (void)state;
    static const ttn_option_absent absent[] = {
        {"linear", "favor is linear"}, {"attention.window", "exact sees the neighbours, too"}, {0}};
    ttn_option table[] = {good[0], good[5]};
    ttn_error err = {0};
    ttn_scalar value;
    table[1].absent = absent;
    assert_ok(ttn_options_check(table, 2, &err), &err);
    assert_fails(ttn_option_read(&table[1], "linear", &value, &err), TTN_EINVAL, &err,
                 "'linear' is not there yet: favor is linear");
    err = (ttn_error){0};
    assert_fails(ttn_option_read(&table[1], "linea", &value, &err), TTN_EINVAL, &err, "is not one of exact, favor");
    err = (ttn_error){0};
    assert_ok(ttn_option_read(&table[1], "favor", &value, &err), &err);
    assert_string_equal(ttn_option_instead(table, 2, "attention.window"), "exact sees the neighbours, too");
    assert_null(ttn_option_instead(table, 2, "attention.windows"));
    assert_null(ttn_option_instead(table, 2, "linear")); /* a value is no key */

    ttn_option o = good[5];
    o.absent = (const ttn_option_absent[]){{"favor", "exact"}, {0}};
    refused(o, "option attention.kind: 'favor' is there");
    o.absent = (const ttn_option_absent[]){{"train.resume", "it goes on"}, {0}};
    refused(o, "option attention.kind: 'train.resume' is there");
    o.absent = (const ttn_option_absent[]){{"linear", NULL}, {0}};
    refused(o, "what to take instead of 'linear' is not said");
    o = good[2];
    o.absent = absent;
    refused(o, "option train.lr: 'linear' cannot be missing");
}

static void what_is_expected_is_said_with_its_range(void **state)
{
    (void)state;
    char text[TTN_OPTION_EXPECTED];
    assert_string_equal(ttn_option_expected(&good[0], text), "yes or no");
    assert_string_equal(ttn_option_expected(&good[1], text), "an integer from 1 to 1000000000");
    assert_string_equal(ttn_option_expected(&good[2], text), "a number from 0 to 1");
    assert_string_equal(ttn_option_expected(&good[5], text), "one of exact, favor");
    ttn_option o = good[6];
    o.least = 1 << 20;
    o.most = (double)INFINITY;
    assert_string_equal(ttn_option_expected(&o, text), "a size in bytes (64k, 2GiB) of at least 1MiB");
    o = good[7];
    o.least = -(double)INFINITY;
    o.most = 3600;
    assert_string_equal(ttn_option_expected(&o, text), "a duration (90s, 1.5h) of at most 1h");
}

static void a_value_is_read_and_written_by_its_row(void **state)
{
    (void)state;
    static const struct {
        int row;
        const char *text, *written;
    } values[] = {
        {0, "ON", "yes"},
        {0, "False", "no"},
        {1, "5k", "5000"},
        {2, "5e-1", "0.5"},
        {3, "any: thing", "any: thing"},
        {4, "a b", "a b"},
        {5, "favor", "favor"},
        {6, "2048", "2KiB"},
        {7, "90m", "90m"},
        {8, "l[0-9].*", "l[0-9].*"},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const ttn_option *o = &good[values[i].row];
        ttn_error err = {0};
        ttn_scalar value;
        char room[TTN_OPTION_VALUE];
        assert_ok(ttn_option_read(o, values[i].text, &value, &err), &err);
        assert_string_equal(ttn_option_write(o, value, room), values[i].written);
    }
}

static void the_bounds_of_a_range_are_in_it(void **state)
{
    (void)state;
    ttn_scalar value;
    assert_int_equal(ttn_option_read(&good[2], "0", &value, NULL), TTN_OK);
    assert_int_equal(ttn_option_read(&good[2], "1", &value, NULL), TTN_OK);
    assert_int_equal(ttn_option_read(&good[2], "1.0000000000000002", &value, NULL), TTN_EINVAL);
    assert_int_equal(ttn_option_read(&good[2], "-5e-324", &value, NULL), TTN_EINVAL);
    assert_int_equal(ttn_option_read(&good[1], "1G", &value, NULL), TTN_OK);
    assert_int_equal(ttn_option_read(&good[1], "1000000001", &value, NULL), TTN_EINVAL);
    assert_int_equal(ttn_option_read(&good[1], "0", &value, NULL), TTN_EINVAL);
}

static void the_default_of_a_list_is_taken_apart(void **state)
{
    (void)state;
    char room[8];
    const char *rest = "a, b c,d, e";
    assert_string_equal(ttn_option_next(&rest, room, sizeof room), "a");
    assert_string_equal(ttn_option_next(&rest, room, sizeof room), "b c,d");
    assert_string_equal(ttn_option_next(&rest, room, sizeof room), "e");
    assert_null(ttn_option_next(&rest, room, sizeof room));
    rest = "";
    assert_null(ttn_option_next(&rest, room, sizeof room));
    rest = "a, longer than its room";
    assert_string_equal(ttn_option_next(&rest, room, sizeof room), "a");
    assert_null(ttn_option_next(&rest, room, sizeof room));
    assert_string_equal(rest, "longer than its room");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_table_passes_and_is_searched),
        cmocka_unit_test(every_type_has_a_name_for_people),
        cmocka_unit_test(a_faulty_row_is_named_with_its_fault),
        cmocka_unit_test(what_is_not_there_yet_is_told_with_what_to_take),
        cmocka_unit_test(what_is_expected_is_said_with_its_range),
        cmocka_unit_test(a_value_is_read_and_written_by_its_row),
        cmocka_unit_test(the_bounds_of_a_range_are_in_it),
        cmocka_unit_test(the_default_of_a_list_is_taken_apart),
    };
    return ttn_test_run(tests);
}
