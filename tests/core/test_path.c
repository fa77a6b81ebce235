/* A path that no shell has read. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/path.h"
#include "tests/harness/test.h"

static void expands_to(const char *path, const char *expected)
{
    char got[PATH_MAX];
    ttn_error err = {0};
    assert_ok(ttn_path_expand(path, got, &err), &err);
    assert_string_equal(got, expected);
}

static void refused(const char *path, const char *words)
{
    char got[PATH_MAX];
    ttn_error err = {0};
    assert_fails(ttn_path_expand(path, got, &err), TTN_EINVAL, &err, words);
}

static void home_folders_and_variables_are_put_in(void **state)
{
    (void)state;
    setenv("HOME", "/home/anna", 1);
    setenv("TITIN_TEST", "b c", 1);
    unsetenv("TITIN_TEST_UNSET");
    expands_to("~", "/home/anna");
    expands_to("~/", "/home/anna/");
    expands_to("~/runs/a", "/home/anna/runs/a");
    expands_to("$HOME/x", "/home/anna/x");
    expands_to("${HOME}x", "/home/annax");
    expands_to("/a/$TITIN_TEST/${TITIN_TEST}.fa", "/a/b c/b c.fa");
    refused("~nobody-of-this-name",
            "~nobody-of-this-name: there is no user 'nobody-of-this-name'; a file of this name is "
            "./~nobody-of-this-name");
    refused("$TITIN_TEST_UNSET/x", "$TITIN_TEST_UNSET/x: the environment has no variable TITIN_TEST_UNSET");
}

static void all_else_stays_as_it_is(void **state)
{
    (void)state;
    static const char *const paths[] = {"",   "-",      "a/~/b", "./~",    "a~",   "./~x/$",
                                        "$/", "a$HOME", "${",    "${HOME", "$1/x", "/tmp//x"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        expands_to(paths[i], paths[i]);
}

static void who_has_no_home_is_in_the_list_of_users(void **state)
{
    (void)state;
    char room[16384];
    struct passwd entry, *me = NULL;
    if (getpwuid_r(getuid(), &entry, room, sizeof room, &me) != 0 || !me) skip();
    char user[PATH_MAX], home[PATH_MAX];
    snprintf(user, sizeof user, "~%s/x", me->pw_name);
    snprintf(home, sizeof home, "%s/x", me->pw_dir);
    unsetenv("HOME");
    expands_to("~/x", home);
    setenv("HOME", "", 1);
    expands_to("~/x", home);
    setenv("HOME", "/elsewhere", 1);
    expands_to(user, home);
}

static void what_is_too_long_is_said(void **state)
{
    (void)state;
    static char longest[PATH_MAX], longer[PATH_MAX + 1];
    memset(longest, 'x', sizeof longest - 1);
    memset(longer, 'x', sizeof longer - 1);
    expands_to(longest, longest);
    refused(longer, "the path is too long");
    setenv("HOME", "/home", 1);
    longest[0] = '~';
    longest[1] = '/';
    refused(longest, "the path is too long");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(home_folders_and_variables_are_put_in),
        cmocka_unit_test(all_else_stays_as_it_is),
        cmocka_unit_test(who_has_no_home_is_in_the_list_of_users),
        cmocka_unit_test(what_is_too_long_is_said),
    };
    return ttn_test_run(tests);
}
