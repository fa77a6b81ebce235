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

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_grows_is_padded_and_says_when_there_is_no_memory),
    };
    return ttn_test_run(tests);
}
