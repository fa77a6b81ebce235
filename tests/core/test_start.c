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

/* argv[0]: the number of cores. */
static int child_threads(int argc, char **argv)
{
    (void)argc;
    printf("%d threads\n", ttn_start_threads(atoi(argv[0])));
    return 0;
}

static void where_nobody_chose_there_is_a_thread_for_each_core_that_openblas_serves(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"8", NULL, "8 threads"},
        {"128", NULL, "128 threads"},
        {"256", NULL, "128 threads"},
        {"0", NULL, "1 threads"},
        {"8", "OMP_NUM_THREADS=3", "3 threads"},
        {"1", "OMP_NUM_THREADS=3", "3 threads"},
        {"256", "OMP_NUM_THREADS=5,2", "5 threads"},
        {"8", "OMP_NUM_THREADS=200", "200 threads"},
    };
    unsetenv("OMP_NUM_THREADS"); /* what children inherit; OpenMP has read this process's own */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ttn_child c = run_again("threads", cases[i][0], cases[i][1], NULL);
        assert_child_is_content(&c);
        c.output[strcspn(c.output, "\n")] = 0;
        assert_string_equal(c.output, cases[i][2]);
    }
    ttn_child c = run_again("threads", "8", "OMP_THREAD_LIMIT=4", NULL);
    assert_child_is_content(&c);
    assert_contains(c.output, "4 threads");
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
    ttn_test_child("threads", child_threads);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_that_of_the_header),
        cmocka_unit_test(it_starts_again_and_for_other_numbers_of_threads),
        cmocka_unit_test(no_thread_at_all_is_refused),
        cmocka_unit_test(more_threads_than_openblas_serves_are_refused),
        cmocka_unit_test(where_nobody_chose_there_is_a_thread_for_each_core_that_openblas_serves),
        cmocka_unit_test(the_serial_flavour_is_refused_for_two_threads),
    };
    return ttn_test_run(tests);
}
