#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/text.h"
#include "tests/core/utf8.h"
#include "tests/harness/test.h"

static void every_status_has_a_name_a_help_and_an_exit(void **state)
{
    (void)state;
    enum { LAST = TTN_ESTOPPED };
    for (int s = 0; s <= LAST; s++) {
        const char *name = ttn_status_name((ttn_status)s);
        assert_non_null(name);
        assert_true(strlen(name) >= 2);
        assert_true(strlen(ttn_status_help((ttn_status)s)) >= 2);
        for (int other = 0; other < s; other++)
            assert_string_not_equal(name, ttn_status_name((ttn_status)other));
    }
    assert_string_equal(ttn_status_name(TTN_EINVAL), "EINVAL");
    assert_string_equal(ttn_status_help(TTN_ENOMEM), "out of memory");
}

/* Scripts compare these numbers: they are a promise. */
static void exit_codes_are_the_documented_ones(void **state)
{
    (void)state;
    static const struct {
        ttn_status status;
        int code;
    } promised[] = {
        {TTN_OK, 0},      {TTN_EOF, 0},         {TTN_EINTERNAL, 1}, {TTN_EINVAL, 2},
        {TTN_EFORMAT, 3}, {TTN_ECHECKPOINT, 4}, {TTN_ENUMERIC, 5},  {TTN_ENOMEM, 6},
        {TTN_EIO, 6},     {TTN_EDEVICE, 6},     {TTN_ESTOPPED, 75},
    };
    assert_int_equal(sizeof promised / sizeof *promised, TTN_ESTOPPED + 1);
    for (size_t i = 0; i < sizeof promised / sizeof *promised; i++)
        assert_int_equal(ttn_status_exit(promised[i].status), promised[i].code);
}

static void numbers_that_are_no_status_are_named_so(void **state)
{
    (void)state;
    static const int none[] = {-1, TTN_ESTOPPED + 1, 1 << 30, INT32_MIN};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_string_equal(ttn_status_name((ttn_status)none[i]), "?");
        assert_string_equal(ttn_status_help((ttn_status)none[i]), "unknown status");
        assert_int_equal(ttn_status_exit((ttn_status)none[i]), TTN_EXIT_FAILURE);
    }
}

static void exit_entries_list_each_code_once_and_end(void **state)
{
    (void)state;
    static const int codes[] = {0, 1, 2, 3, 4, 5, 6, 75};
    enum { N = sizeof codes / sizeof *codes };
    for (int i = 0; i < N; i++) {
        int code = -1;
        const char *help = NULL;
        assert_int_equal(ttn_exit_entry(i, &code, &help), 1);
        assert_int_equal(code, codes[i]);
        assert_non_null(help);
    }
    int untouched = 7;
    const char *nothing = "x";
    assert_int_equal(ttn_exit_entry(N, &untouched, &nothing), 0);
    assert_int_equal(ttn_exit_entry(-1, &untouched, &nothing), 0);
    assert_int_equal(untouched, 7);
}

static void first_message_is_kept(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_int_equal(TTN_FAIL(&err, TTN_EFORMAT, "the %s failure", "first"), TTN_EFORMAT);
    assert_int_equal(TTN_FAIL(&err, TTN_EIO, "the second"), TTN_EIO);
    assert_int_equal(TTN_FAIL_AT(&err, TTN_EIO, "f", 1, 2, "the third"), TTN_EIO);
    assert_int_equal(err.status, TTN_EFORMAT);
    assert_string_equal(err.text, "the first failure");
    assert_string_equal(err.file, "");
    assert_int_equal(err.line, 0);
}

static void no_error_to_fill_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(TTN_FAIL(NULL, TTN_ENOMEM, "%d", 3), TTN_ENOMEM);
    assert_int_equal(TTN_FAIL_AT(NULL, TTN_EIO, "file", 1, 1, "%d", 3), TTN_EIO);
}

static void place_stands_before_the_message(void **state)
{
    (void)state;
    static const struct {
        int64_t line, column;
        const char *text;
    } cases[] = {
        {12, 7, "a.fa:12:7: why"},
        {12, 0, "a.fa:12: why"},
        {0, 0, "a.fa: why"},
        {0, 7, "a.fa: why"}, /* a column of no line is no place */
        {INT64_MAX, INT64_MAX, "a.fa:9223372036854775807:9223372036854775807: why"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ttn_error err = {0};
        assert_int_equal(TTN_FAIL_AT(&err, TTN_EFORMAT, "a.fa", cases[i].line, cases[i].column, "%s", "why"),
                         TTN_EFORMAT);
        assert_string_equal(err.text, cases[i].text);
        assert_string_equal(err.file, "a.fa");
        assert_int_equal(err.line, cases[i].line);
        assert_int_equal(err.column, cases[i].column);
    }
}

static void control_characters_become_question_marks(void **state)
{
    (void)state;
    char all[256];
    for (int c = 1; c < 256; c++)
        all[c - 1] = (char)c;
    all[255] = 0;
    ttn_error err = {0};
    (void)TTN_FAIL_AT(&err, TTN_EFORMAT, "x\033[2J", 1, 1, "%s", all);
    const char *prefix = "x?[2J:1:1: ";
    assert_int_equal(strncmp(err.text, prefix, strlen(prefix)), 0);
    const char *text = err.text + strlen(prefix);
    assert_int_equal(strlen(text), 255);
    for (int c = 1; c < 256; c++) {
        int is_control = c < ' ' || c == 0x7F;
        assert_int_equal((unsigned char)text[c - 1], is_control ? '?' : c);
    }
    assert_string_equal(err.file, "x?[2J");
}

static void long_message_is_cut_between_characters(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 4; size++)
        for (size_t shift = 0; shift < 4; shift++) {
            char text[2 * TTN_ERROR_TEXT];
            fill_utf8(text, sizeof text - 1, shift, size);
            ttn_error err = {0};
            (void)TTN_FAIL(&err, TTN_EINVAL, "%s", text);
            size_t length = strlen(err.text);
            assert_in_range(length, TTN_ERROR_TEXT - 4, TTN_ERROR_TEXT - 1);
            assert_string_equal(err.text + length - 3, "...");
            assert_true(is_whole(err.text));
            assert_int_equal(strncmp(err.text, text, length - 3), 0);
        }
}

static void append(char *text, size_t room, const char *format, ...) TTN_PRINTF(3, 4);
static void append(char *text, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ttn_text_append(text, room, format, args);
    va_end(args);
}

/* Wherever the cut falls, a second and a third piece leave it as it is. */
static void a_text_that_was_cut_takes_nothing_more(void **state)
{
    (void)state;
    enum { ROOM = 40 };
    for (size_t size = 1; size <= 4; size++)
        for (size_t shift = 0; shift < 4; shift++) {
            char long_one[2 * ROOM], text[ROOM] = "", before[ROOM];
            fill_utf8(long_one, sizeof long_one - 1, shift, size);
            append(text, sizeof text, "%s", long_one);
            memcpy(before, text, sizeof text);
            append(text, sizeof text, "%s", "x");
            append(text, sizeof text, "%s", "more than fits");
            assert_string_equal(text, before);
        }
    /* Dots that nobody cut there are text like any other. */
    char text[ROOM] = "wait ...";
    append(text, sizeof text, "%s", " and see");
    assert_string_equal(text, "wait ... and see");
    char short_one[8] = "";
    append(short_one, sizeof short_one, "ab");
    append(short_one, sizeof short_one, "c");
    append(short_one, sizeof short_one, "defg");
    assert_string_equal(short_one, "abcdefg");
}

/* Bytes that are no UTF-8 at all are shown as far as there is room. */
static void a_text_that_is_no_utf8_is_not_lost(void **state)
{
    (void)state;
    char text[2 * TTN_ERROR_TEXT];
    memset(text, 0x9D, sizeof text);
    text[sizeof text - 1] = 0;
    ttn_error err = {0};
    (void)TTN_FAIL(&err, TTN_EINVAL, "%s", text);
    assert_true(strlen(err.text) >= TTN_ERROR_TEXT - 8);
    err = (ttn_error){0};
    (void)TTN_FAIL_AT(&err, TTN_EINVAL, text, 1, 2, "why");
    assert_true(strlen(err.file) >= 290);
    assert_contains(err.text, ":1:2: why");
}

/* C1 controls: U+009B is what ESC [ is. Their neighbours are text. */
static void control_characters_of_two_bytes_become_question_marks(void **state)
{
    (void)state;
    for (int c = 0x80; c <= 0xBF; c++) {
        char text[] = {'a', (char)0xC2, (char)c, 'b', 0};
        ttn_error err = {0};
        (void)TTN_FAIL(&err, TTN_EINVAL, "%s", text);
        assert_string_equal(err.text, c <= 0x9F ? "a??b" : text);
    }
}

static void message_that_just_fits_is_whole(void **state)
{
    (void)state;
    char text[TTN_ERROR_TEXT + 1];
    memset(text, 'x', sizeof text);
    text[TTN_ERROR_TEXT - 1] = 0;
    ttn_error err = {0};
    (void)TTN_FAIL(&err, TTN_EINVAL, "%s", text);
    assert_string_equal(err.text, text);

    text[TTN_ERROR_TEXT - 1] = 'x';
    text[TTN_ERROR_TEXT] = 0;
    err = (ttn_error){0};
    (void)TTN_FAIL(&err, TTN_EINVAL, "%s", text);
    assert_int_equal(strlen(err.text), TTN_ERROR_TEXT - 1);
    assert_string_equal(err.text + TTN_ERROR_TEXT - 4, "...");
}

/* A path as it should be shown: whole up to 300 bytes, else dots and the last 300, or fewer where that is inside a
 * character. */
static void assert_shown(const char *shown, const char *path)
{
    size_t n = strlen(path);
    assert_true(is_whole(shown));
    if (n <= 300) {
        assert_string_equal(shown, path);
        return;
    }
    size_t length = strlen(shown);
    assert_in_range(length, 3 + 297, 3 + 300);
    assert_int_equal(strncmp(shown, "...", 3), 0);
    assert_string_equal(shown + 3, path + n - (length - 3));
}

/* Every length of name from nothing to twice the room: line, column and sentence are never lost. */
static void file_name_of_any_length_leaves_room_for_place_and_sentence(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 4; size++)
        for (size_t n = 0; n < 2 * TTN_ERROR_TEXT; n++) {
            char name[2 * TTN_ERROR_TEXT + 1], wanted[TTN_ERROR_TEXT];
            fill_utf8(name, n, n % 4, size);
            ttn_error err = {0};
            (void)TTN_FAIL_AT(&err, TTN_EFORMAT, name, 123456, 78, "why %d", 42);
            assert_shown(err.file, name);
            snprintf(wanted, sizeof wanted, "%s:123456:78: why 42", err.file);
            assert_string_equal(err.text, wanted);
            assert_int_equal(err.line, 123456);
        }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_a_help_and_an_exit),
        cmocka_unit_test(exit_codes_are_the_documented_ones),
        cmocka_unit_test(numbers_that_are_no_status_are_named_so),
        cmocka_unit_test(exit_entries_list_each_code_once_and_end),
        cmocka_unit_test(first_message_is_kept),
        cmocka_unit_test(no_error_to_fill_is_allowed),
        cmocka_unit_test(place_stands_before_the_message),
        cmocka_unit_test(control_characters_become_question_marks),
        cmocka_unit_test(long_message_is_cut_between_characters),
        cmocka_unit_test(control_characters_of_two_bytes_become_question_marks),
        cmocka_unit_test(a_text_that_was_cut_takes_nothing_more),
        cmocka_unit_test(a_text_that_is_no_utf8_is_not_lost),
        cmocka_unit_test(message_that_just_fits_is_whole),
        cmocka_unit_test(file_name_of_any_length_leaves_room_for_place_and_sentence),
    };
    return ttn_test_run(tests);
}
