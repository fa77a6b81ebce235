#include <errno.h>
#include <string.h>
#include "core/titin.h"
#include "tests/harness/test.h"

typedef struct {
    int n;
    ttn_log_level level;
    char text[2 * TTN_LOG_TEXT];
} heard;

static void hear(void *ctx, ttn_log_level level, const char *text)
{
    heard *h = ctx;
    h->n++;
    h->level = level;
    assert_true(strlen(text) < sizeof h->text);
    strcpy(h->text, text);
    errno = ERANGE; /* a function that writes to a file may do so */
}

static void nobody_listening_is_silence(void **state)
{
    (void)state;
    ttn_log deaf = {0};
    ttn_log_say(NULL, TTN_LOG_ERROR, "%s", "to nobody");
    ttn_log_say(&deaf, TTN_LOG_ERROR, "%s", "to nobody");
    assert_int_equal(ttn_log_says(NULL, TTN_LOG_ERROR), 0);
    assert_int_equal(ttn_log_says(&deaf, TTN_LOG_ERROR), 0);
}

static void levels_below_from_are_not_said(void **state)
{
    (void)state;
    for (int from = TTN_LOG_DEBUG; from <= TTN_LOG_ERROR; from++)
        for (int level = TTN_LOG_DEBUG; level <= TTN_LOG_ERROR; level++) {
            heard h = {0};
            ttn_log log = {.say = hear, .ctx = &h, .from = (ttn_log_level)from};
            ttn_log_say(&log, (ttn_log_level)level, "step %d of %s", 7, "ten");
            assert_int_equal(h.n, level >= from);
            assert_int_equal(ttn_log_says(&log, (ttn_log_level)level), level >= from);
            if (h.n == 0) continue;
            assert_int_equal(h.level, level);
            assert_string_equal(h.text, "step 7 of ten");
        }
}

static void text_is_one_line_that_no_terminal_obeys(void **state)
{
    (void)state;
    heard h = {0};
    ttn_log log = {.say = hear, .ctx = &h};
    ttn_log_say(&log, TTN_LOG_INFO, "id %s",
                "\x1b[2J\r\n\t\x7f \xc2\x9b"
                "31m \xc3\xa9 \xe2\x82\xac \xc2\xa0 end");
    assert_string_equal(h.text, "id ?[2J???? ??31m \xc3\xa9 \xe2\x82\xac \xc2\xa0 end");
    ttn_log_say(&log, TTN_LOG_INFO, "%s", "\xc2"); /* a character cut short: the byte behind it is not ours */
    assert_string_equal(h.text, "\xc2");
}

static void long_text_is_cut_between_characters(void **state)
{
    (void)state;
    char text[TTN_LOG_TEXT + 8];
    for (size_t n = TTN_LOG_TEXT - 8; n < sizeof text; n++)
        for (size_t shift = 0; shift < 3; shift++) {
            memset(text, 'x', shift);
            for (size_t i = shift; i < n; i++)
                text[i] = "\xe2\x82\xac"[(i - shift) % 3];
            text[n] = 0;
            heard h = {0};
            ttn_log log = {.say = hear, .ctx = &h};
            ttn_log_say(&log, TTN_LOG_INFO, "%s", text);
            size_t said = strlen(h.text);
            if (n < TTN_LOG_TEXT) {
                assert_string_equal(h.text, text);
                continue;
            }
            assert_true(said < TTN_LOG_TEXT && said >= TTN_LOG_TEXT - 4);
            assert_string_equal(h.text + said - 3, "...");
            assert_int_equal((said - 3 - shift) % 3, 0); /* whole characters of three bytes */
            assert_memory_equal(h.text, text, said - 3);
        }
}

static void errno_survives_a_line(void **state)
{
    (void)state;
    heard h = {0};
    ttn_log log = {.say = hear, .ctx = &h};
    errno = ENOSPC;
    ttn_log_say(&log, TTN_LOG_WARNING, "cannot write: %s", strerror(errno));
    assert_int_equal(errno, ENOSPC);
    assert_contains(h.text, "No space left");
}

static void levels_have_names(void **state)
{
    (void)state;
    assert_string_equal(ttn_log_level_name(TTN_LOG_DEBUG), "debug");
    assert_string_equal(ttn_log_level_name(TTN_LOG_INFO), "info");
    assert_string_equal(ttn_log_level_name(TTN_LOG_WARNING), "warning");
    assert_string_equal(ttn_log_level_name(TTN_LOG_ERROR), "error");
    assert_string_equal(ttn_log_level_name((ttn_log_level)(TTN_LOG_ERROR + 1)), "?");
    assert_string_equal(ttn_log_level_name((ttn_log_level)-1), "?");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_listening_is_silence),
        cmocka_unit_test(levels_below_from_are_not_said),
        cmocka_unit_test(text_is_one_line_that_no_terminal_obeys),
        cmocka_unit_test(long_text_is_cut_between_characters),
        cmocka_unit_test(errno_survives_a_line),
        cmocka_unit_test(levels_have_names),
    };
    return ttn_test_run(tests);
}
