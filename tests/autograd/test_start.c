/* No plan before ttn_start: each way to go without it is refused, with the line to write. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/ops.h"
#include "autograd/plan.h"
#include "core/blas.h"
#include "core/start.h"
#include "tests/harness/test.h"

void openblas_set_num_threads(int n); /* as a program would that uses OpenBLAS itself; cblas.h is core/blas.c's alone */
int openblas_get_num_threads(void);

/* x (rows, 8) through one linear layer. */
static ttn_graph *record(int *out)
{
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480});
    const int x = ttn_input(g, "x", ttn_rows(g, 8));
    const int w = ttn_param(g, "weight", ttn_matrix(8, 8), (ttn_init){TTN_INIT_NORMAL, 1}, 0);
    *out = ttn_linear(g, "layer", x, w, TTN_NONE);
    return g;
}

/* The status of a plan for n_thread threads, or of running it when it was made; the sentence is in *err, emptied before. */
static ttn_status plan_and_run(int n_thread, int give_threads_back, ttn_error *err)
{
    *err = (ttn_error){0};
    int out;
    ttn_graph *g = record(&out);
    ttn_plan *p = NULL;
    ttn_weights *w = NULL;
    static const real x[480 * 8];
    ttn_status status =
        ttn_plan_create(g, &(ttn_plan_options){.keep = &out, .n_keep = 1, .n_thread = n_thread}, &p, err);
    if (status == TTN_OK) status = ttn_weights_create(g, NULL, &w, err);
    if (status == TTN_OK) status = ttn_weights_init(w, 1, err);
    if (status == TTN_OK) status = ttn_plan_attach(p, w, err);
    if (status == TTN_OK) status = ttn_plan_bind(p, "x", x, err);
    if (give_threads_back) openblas_set_num_threads(2);
    if (status == TTN_OK) status = ttn_plan_run(p, &(ttn_feed){.used = {.rows = 480}}, NULL, err);
    ttn_plan_destroy(p);
    ttn_weights_destroy(w);
    ttn_graph_destroy(g);
    return status;
}

/* argv[0]: threads of the plan. A child of the harness is not started. */
static int child_unstarted(int argc, char **argv)
{
    (void)argc;
    ttn_error err = {0};
    const ttn_status status = plan_and_run(atoi(argv[0]), 0, &err);
    printf("%s: %s\n", ttn_status_name(status), err.text);
    return 0;
}

static ttn_child run_again(const char *name, const char *arg, const char *setting)
{
    const char *const argv[] = {ttn_test_self(), "--child", name, arg, NULL};
    const char *const environment[] = {setting, NULL};
    return ttn_run_program((ttn_child_limit){.environment = environment}, argv);
}

static void a_plan_before_the_start_is_refused_with_the_line_to_write(void **state)
{
    (void)state;
    /* Also where OpenBLAS would have one thread anyway: what works on one machine only is no program. */
    const char *const settings[] = {NULL, "OPENBLAS_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=4"};
    for (int i = 0; i < 3; i++) {
        ttn_child c = run_again("unstarted", "0", settings[i]);
        assert_int_equal(c.exit_code, 0);
        assert_contains(c.output, "EINVAL: titin is not started: call ttn_start(1, &err) once, before the first plan");
    }
    ttn_child c = run_again("unstarted", "8", NULL);
    assert_contains(c.output, "call ttn_start(8, &err) once");
}

static int child_multiplies(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    const real a[4] = {1, 2, 3, 4};
    real c[4];
    ttn_gemm(TTN_N, TTN_N, 2, 2, 2, 1, ttn_in(a, 2), ttn_in(a, 2), 0, ttn_out(c, 2));
    puts("multiplied");
    return 0;
}

static void a_product_before_the_start_is_an_assertion(void **state)
{
    (void)state;
    ttn_child c = run_again("multiplies", NULL, NULL);
    assert_false(c.exited && c.exit_code == 0);
    assert_contains(c.output, "ttn_start comes before any product");
    assert_null(strstr(c.output, "multiplied"));
}

static void a_start_that_fails_is_no_start(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_fails(ttn_start(TTN_BLAS_MAX_THREADS + 1, &err), TTN_EDEVICE, &err, "129 threads");
    err = (ttn_error){0};
    assert_fails(ttn_blas_check_started(TTN_BLAS_MAX_THREADS + 1, &err), TTN_EINVAL, &err, "not for 129");
    assert_ok(plan_and_run(1, 0, &err), &err); /* what the harness has started stays */
}

static void a_plan_may_have_the_threads_that_were_started_and_no_more(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_fails(plan_and_run(3, 0, &err), TTN_EINVAL, &err,
                 "titin was started for 1 thread, not for 3: call ttn_start(3, &err) first");
    err = (ttn_error){0};
    assert_ok(ttn_start(2, &err), &err);
    assert_ok(plan_and_run(2, 0, &err), &err);
    assert_fails(plan_and_run(3, 0, &err), TTN_EINVAL, &err, "started for 2 threads, not for 3");
    err = (ttn_error){0};
    assert_ok(ttn_start(1, &err), &err); /* takes nothing away */
    assert_ok(plan_and_run(2, 0, &err), &err);
}

static void threads_that_openblas_gets_back_are_seen_before_a_run(void **state)
{
    (void)state;
    ttn_blas_info info;
    ttn_blas_describe(&info);
    if (info.flavour != TTN_BLAS_PTHREAD) skip_because("OpenBLAS is of the %s flavour here", info.flavour_name);
    ttn_error err = {0};
    assert_int_equal(openblas_get_num_threads(), 1);
    openblas_set_num_threads(2);
    const int two = openblas_get_num_threads() == 2;
    openblas_set_num_threads(1);
    if (!two) skip_because("OpenBLAS keeps one thread here");
    assert_fails(plan_and_run(1, 1, &err), TTN_EINVAL, &err, "has set OpenBLAS to 2 threads since ttn_start");
    assert_fails(plan_and_run(1, 0, &err), TTN_EINVAL, &err, "call openblas_set_num_threads(1), or ttn_start(1, &err)");
    err = (ttn_error){0};
    assert_ok(ttn_start(1, &err), &err);
    assert_ok(plan_and_run(1, 0, &err), &err);
}

int main(int argc, char **argv)
{
    ttn_test_child("unstarted", child_unstarted);
    ttn_test_child("multiplies", child_multiplies);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_before_the_start_is_refused_with_the_line_to_write),
        cmocka_unit_test(a_product_before_the_start_is_an_assertion),
        cmocka_unit_test(a_start_that_fails_is_no_start),
        cmocka_unit_test(a_plan_may_have_the_threads_that_were_started_and_no_more),
        cmocka_unit_test(threads_that_openblas_gets_back_are_seen_before_a_run),
    };
    return ttn_test_run(tests);
}
