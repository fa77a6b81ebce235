/* Starting the library: what is refused, and with which words. */
#include "core/start.h"
#include "core/titin.h"
#include "tests/core/blas_world.h"

static void the_version_is_that_of_the_header(void **state)
{
    (void)state;
    assert_string_equal(ttn_version(), TTN_VERSION);
}

static void it_starts_again_and_for_other_numbers_of_threads(void **state)
{
    (void)state;
    for (int n_thread = 1; n_thread <= 3; n_thread++) {
        ttn_error err = {0};
        assert_ok(ttn_start(n_thread, &err), &err);
        assert_int_equal(err.status, TTN_OK);
    }
    assert_ok(ttn_start(1, NULL), &(ttn_error){0});
}

static void no_thread_at_all_is_refused(void **state)
{
    (void)state;
    const int counts[] = {0, -1, INT32_MIN};
    for (int i = 0; i < 3; i++) {
        ttn_error err = {0};
        assert_fails(ttn_start(counts[i], &err), TTN_EINVAL, &err, "threads: at least 1 is needed");
    }
}

static void more_threads_than_openblas_serves_are_refused(void **state)
{
    (void)state;
    const int counts[] = {129, 2000, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        ttn_error err = {0};
        assert_fails(ttn_start(counts[i], &err), TTN_EDEVICE, &err, "set OMP_NUM_THREADS to the number of cores");
    }
}

/* argv[0]: the number of threads. */
static int child_start(int argc, char **argv)
{
    (void)argc;
    ttn_error err = {0};
    ttn_status status = ttn_start(atoi(argv[0]), &err);
    printf("%s %s\n", ttn_status_name(status), err.text);
    return 0;
}

static void the_serial_flavour_is_refused_for_two_threads(void **state)
{
    (void)state;
    ttn_child one = run_again("start", "1", flavour_path("serial"), NULL);
    assert_child_is_content(&one);
    assert_contains(one.output, "OK ");
    ttn_child two = run_again("start", "2", flavour_path("serial"), NULL);
    assert_child_is_content(&two);
    assert_contains(two.output, "EDEVICE the OpenBLAS that was loaded is the serial flavour");
}

int main(int argc, char **argv)
{
    ttn_test_child("start", child_start);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_that_of_the_header),
        cmocka_unit_test(it_starts_again_and_for_other_numbers_of_threads),
        cmocka_unit_test(no_thread_at_all_is_refused),
        cmocka_unit_test(more_threads_than_openblas_serves_are_refused),
        cmocka_unit_test(the_serial_flavour_is_refused_for_two_threads),
    };
    return ttn_test_run(tests);
}
