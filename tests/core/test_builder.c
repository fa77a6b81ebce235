/* A text that grows, and that says when a part of it is missing. */
#include <stdlib.h>
#include <string.h>
#include "core/builder.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

static void a_text_grows_is_padded_and_says_when_there_is_no_memory(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_builder b = {0};
    char *text = NULL;
    assert_ok(ttn_builder_finish(&b, "nothing", &text, &err), &err);
    assert_string_equal(text, "");
    free(text);
    for (int i = 0; i < 1000; i++)
        ttn_build(&b, "%d\n", i % 10);
    ttn_build(&b, "\xC3\xA9");
    ttn_build_pad(&b, 4);
    ttn_build_bytes(&b, "|", 1);
    ttn_build_pad(&b, 3);
    assert_ok(ttn_builder_finish(&b, "digits", &text, &err), &err);
    assert_int_equal(strlen(text), 2000 + 2 + 3 + 1);
    assert_string_equal(text + 1998, "9\n\xC3\xA9   |");
    free(text);
    shim_arm(SHIM_ALLOC, 2, SHIM_FAIL, 0, 0);
    ttn_build(&b, "short");
    for (int i = 0; i < 100; i++)
        ttn_build(&b, "long");
    shim_disarm();
    assert_fails(ttn_builder_finish(&b, "the words", &text, &err), TTN_ENOMEM, &err, "out of memory for the words");
    assert_null(b.text);
}

/* What a shell makes of it is the word again. */
static void words_of_a_command_are_what_a_shell_reads(void **state)
{
    (void)state;
    static const char *const words[][2] = {
        {"train.out=run/a-1,b:2@x%+_", "train.out=run/a-1,b:2@x%+_"},
        {"", "''"},
        {"my proteins.fa", "'my proteins.fa'"},
        {"it's", "'it'\\''s'"},
        {"''", "''\\'''\\'''"},
        {"data.train=[a.fa, b.fa]", "'data.train=[a.fa, b.fa]'"},
        {"~/x#{1}`$(y)!", "'~/x#{1}`$(y)!'"},
        {"a\nb", "'a\nb'"},
        {"Prot\xC3\xA9ine", "'Prot\xC3\xA9ine'"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        ttn_error err = {0};
        ttn_builder b = {0};
        char *text = NULL;
        ttn_build_word(&b, words[i][0]);
        assert_ok(ttn_builder_finish(&b, "the word", &text, &err), &err);
        assert_string_equal(text, words[i][1]);
        ttn_build(&b, "printf %%s %s", text);
        free(text);
        assert_ok(ttn_builder_finish(&b, "the command", &text, &err), &err);
        const char *const argv[] = {"/bin/sh", "-c", text, NULL};
        const ttn_child c = ttn_run_program((ttn_child_limit){0}, argv);
        assert_int_equal(c.exit_code, 0);
        assert_string_equal(c.output, words[i][0]);
        free(text);
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_a_command_are_what_a_shell_reads),
        cmocka_unit_test(a_text_grows_is_padded_and_says_when_there_is_no_memory),
    };
    return ttn_test_run(tests);
}
