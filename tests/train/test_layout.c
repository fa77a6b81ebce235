/* Text in columns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/harness/test.h"
#include "train/cli/layout.h"

static void widths_are_those_of_a_terminal(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int columns;
    } texts[] = {
        {"", 0},
        {"abc", 3},
        {"\u00e9", 1},
        {"e\u0301", 1},
        {"\u6f22\u5b57", 4},
        {"\u03c6(q)", 4},
        {"\U0001F600", 2},
        {"a\u200bb", 2},
        {"\xff\xfe", 2},
        {"\xc3", 1},
        {"\xc0\x80", 2},
        {"\xe6\xbc", 2},
        /* cut in a character */ {"\u2192", 1},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(ttn_columns(texts[i].text), texts[i].columns);
}

static void what_fits_is_whole_characters(void **state)
{
    (void)state;
    int columns;
    assert_int_equal(ttn_columns_fit("abc", 2, &columns), 2);
    assert_int_equal(columns, 2);
    assert_int_equal(ttn_columns_fit("a\u6f22", 2, &columns), 1);
    assert_int_equal(columns, 1);
    assert_int_equal(ttn_columns_fit("e\u0301x", 1, NULL), 3); /* the mark belongs to its letter */
    assert_int_equal(ttn_columns_fit("abc", 0, NULL), 0);
}

static void assert_wraps(int width, int at, int indent, const char *text, const char *expected)
{
    char *printed = NULL;
    size_t size;
    FILE *out = open_memstream(&printed, &size);
    assert_non_null(out);
    ttn_wrap(out, width, at, indent, text);
    fclose(out);
    assert_string_equal(printed, expected);
    free(printed);
}

static void text_is_broken_at_blanks(void **state)
{
    (void)state;
    assert_wraps(10, 0, 0, "one two three", "one two\nthree\n");
    assert_wraps(7, 0, 0, "one two three", "one two\nthree\n"); /* exactly full */
    assert_wraps(6, 0, 0, "one two three", "one\ntwo\nthree\n");
    assert_wraps(10, 4, 2, "one two three", "one\n  two\n  three\n");
    assert_wraps(10, 0, 2, "a\nb\n\nc", "a\n  b\n\n  c\n");
    assert_wraps(5, 0, 0, "abcdefgh ij", "abcdefgh\nij\n"); /* too long for any line */
    assert_wraps(9, 0, 0, "\u6f22\u5b57 \u6f22\u5b57 \u6f22", "\u6f22\u5b57 \u6f22\u5b57\n\u6f22\n");
    assert_wraps(9, 0, 0, "", "\n");
    assert_wraps(20, 0, 0, "ends in blanks   ", "ends in blanks\n");
    assert_wraps(20, 0, 0, "  begins so", "  begins so\n");
}

static void meanings_stand_in_one_column(void **state)
{
    (void)state;
    static const ttn_pair pairs[] = {
        {"--json", "print JSON"}, {"-h, --help", "help"}, {"--a-very-long-option", "of its own line"}, {"x", ""}};
    char *printed = NULL;
    size_t size;
    ttn_pair_layout l = {.width = 24, .indent = 2, .most = 12, .before = "<", .after = ">"};
    l.out = open_memstream(&printed, &size);
    assert_non_null(l.out);
    ttn_print_pairs(&l, pairs, 4);
    fclose(l.out);
    assert_string_equal(printed, "  <--json>      print JSON\n"
                                 "  <-h, --help>  help\n"
                                 "  <--a-very-long-option>\n"
                                 "              of its own\n"
                                 "              line\n"
                                 "  <x>\n");
    free(printed);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widths_are_those_of_a_terminal),
        cmocka_unit_test(what_fits_is_whole_characters),
        cmocka_unit_test(text_is_broken_at_blanks),
        cmocka_unit_test(meanings_stand_in_one_column),
    };
    return ttn_test_run(tests);
}
