/* Edits between words, and which known word was meant. */
#include <string.h>
#include "core/nearest.h"
#include "tests/harness/test.h"

static void edits_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int edits;
    } pairs[] = {
        {"", "", 0},           {"lr", "lr", 0},          {"", "abc", 3},
        {"train", "trian", 1}, {"kitten", "sitting", 3}, {"steps", "step", 1},
        {"step", "steps", 1},  {"favor", "favour", 1},   {"abcd", "badc", 2},
        {"ca", "abc", 3},      {"warmup", "wamrup", 1},  {"a", "b", 1},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(ttn_edits(pairs[i].a, pairs[i].b), pairs[i].edits);
        assert_int_equal(ttn_edits(pairs[i].b, pairs[i].a), pairs[i].edits);
    }
    char long_word[TTN_NEAREST_WORD + 2];
    memset(long_word, 'x', sizeof long_word);
    long_word[TTN_NEAREST_WORD + 1] = 0;
    assert_int_equal(ttn_edits(long_word, "x"), TTN_NEAREST_FAR);
    long_word[TTN_NEAREST_WORD] = 0;
    assert_int_equal(ttn_edits(long_word, long_word), 0);
    assert_int_equal(ttn_edits(long_word, ""), TTN_NEAREST_WORD);
}

static void the_nearest_is_near_or_there_is_none(void **state)
{
    (void)state;
    static const char *const names[] = {"config", NULL, "doctor", "info", "train", "trail"};
    enum { N = sizeof names / sizeof *names };
    assert_string_equal(ttn_nearest("trian", names, N), "train");
    assert_string_equal(ttn_nearest("docter", names, N), "doctor");
    assert_string_equal(ttn_nearest("trai", names, N), "train"); /* the first of two */
    assert_string_equal(ttn_nearest("inf", names, N), "info");
    assert_null(ttn_nearest("xxxxx", names, N));
    assert_null(ttn_nearest("", names, N));
    assert_null(ttn_nearest("do", names, N));
    assert_null(ttn_nearest("train", names, 0));
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_are_counted),
        cmocka_unit_test(the_nearest_is_near_or_there_is_none),
    };
    return ttn_test_run(tests);
}
