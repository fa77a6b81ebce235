/* Denormals are zero where we compute, and what they were elsewhere. */
#include <float.h>
#include <omp.h>
#include "core/fp.h"
#include "tests/harness/test.h"

enum { N_THREAD = 4 };

#if defined(__x86_64__) || defined(__aarch64__)
#define FLUSHES 1
#else
#define FLUSHES 0
#endif

/* Seen by the calling thread, as bits; volatile: computed here and now. */
enum { FLOAT_RESULT = 1, FLOAT_OPERAND = 2, DOUBLE_RESULT = 4, DOUBLE_OPERAND = 8, ALL_DENORMALS = 15 };

static int denormals_seen(void)
{
    volatile float f = FLT_MIN, tiny_f = FLT_TRUE_MIN, large_f = 0x1p30f;
    volatile double d = DBL_MIN, tiny_d = DBL_TRUE_MIN, large_d = 0x1p60;
    volatile float half_f = f * 0.5f, back_f = tiny_f * large_f;
    volatile double half_d = d * 0.5, back_d = tiny_d * large_d;
    /* compared as bits: a comparison, too, takes a denormal for zero */
    union {
        float f;
        uint32_t bits;
    } hf = {.f = half_f};
    union {
        double d;
        uint64_t bits;
    } hd = {.d = half_d};
    return (hf.bits != 0 ? FLOAT_RESULT : 0) | (back_f > 0 ? FLOAT_OPERAND : 0) | (hd.bits != 0 ? DOUBLE_RESULT : 0) |
           (back_d > 0 ? DOUBLE_OPERAND : 0);
}

/* The same in each thread of a region, which is where workers are started if there are none yet. */
static void denormals_seen_by_threads(int *ret)
{
#pragma omp parallel num_threads(N_THREAD)
    ret[omp_get_thread_num()] = denormals_seen();
}

static void assert_threads_see(int wanted)
{
    int seen[N_THREAD];
    for (int t = 0; t < N_THREAD; t++)
        seen[t] = -1;
    denormals_seen_by_threads(seen);
    for (int t = 0; t < N_THREAD; t++)
        assert_int_equal(seen[t], wanted);
}

static void skip_where_nothing_flushes(void)
{
    if (!FLUSHES) skip_because("this family of processors is not told to flush denormals");
}

static void the_calling_thread_flushes_until_the_end(void **state)
{
    (void)state;
    skip_where_nothing_flushes();
    assert_int_equal(denormals_seen(), ALL_DENORMALS);
    uint64_t saved = ttn_fp_begin();
    assert_int_equal(denormals_seen(), 0);
    uint64_t inner = ttn_fp_begin();
    ttn_fp_end(inner);
    assert_int_equal(denormals_seen(), 0); /* the inner pair ended, the outer one did not */
    ttn_fp_end(saved);
    assert_int_equal(denormals_seen(), ALL_DENORMALS);
}

/* A library's caller has run regions of its own before. */
static void workers_that_were_there_before_flush_too(void **state)
{
    (void)state;
    skip_where_nothing_flushes();
    assert_threads_see(ALL_DENORMALS);
    uint64_t saved[N_THREAD];
    ttn_fp_begin_threads(N_THREAD, saved);
    assert_threads_see(0);
    ttn_fp_end_threads(N_THREAD, saved);
    assert_threads_see(ALL_DENORMALS);
}

/* A caller who flushes already finds it so afterwards, in each thread as it was in that thread. */
static void each_thread_gets_back_what_it_had(void **state)
{
    (void)state;
    skip_where_nothing_flushes();
    int before[N_THREAD], after[N_THREAD];
#pragma omp parallel num_threads(N_THREAD)
    if (omp_get_thread_num() % 2) (void)ttn_fp_begin();
    denormals_seen_by_threads(before);
    assert_int_equal(before[0], ALL_DENORMALS);
    if (before[1] == ALL_DENORMALS) skip_because("this OpenMP gives every worker the word of the calling thread");
    assert_int_equal(before[1], 0);

    uint64_t saved[N_THREAD];
    ttn_fp_begin_threads(N_THREAD, saved);
    assert_threads_see(0);
    ttn_fp_end_threads(N_THREAD, saved);
    denormals_seen_by_threads(after);
    assert_memory_equal(before, after, sizeof before);

    uint64_t main_word = saved[0];
#pragma omp parallel num_threads(N_THREAD)
    ttn_fp_end(main_word);
    assert_threads_see(ALL_DENORMALS);
}

/* Before the first region of a process: workers have it from the thread that starts them. */
static int child_workers_inherit(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    int seen[N_THREAD];
    (void)ttn_fp_begin();
    denormals_seen_by_threads(seen);
    int any = 0;
    for (int t = 0; t < N_THREAD; t++)
        any |= seen[t];
    return any;
}

static void workers_started_later_inherit_it(void **state)
{
    (void)state;
    skip_where_nothing_flushes();
    const char *const argv[] = {ttn_test_self(), "--child", "workers_inherit", NULL};
    ttn_child c = ttn_run_program((ttn_child_limit){0}, argv);
    assert_true(c.exited);
    assert_int_equal(c.exit_code, 0);
}

int main(int argc, char **argv)
{
    ttn_test_child("workers_inherit", child_workers_inherit);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_calling_thread_flushes_until_the_end),
        cmocka_unit_test(workers_that_were_there_before_flush_too),
        cmocka_unit_test(each_thread_gets_back_what_it_had),
        cmocka_unit_test(workers_started_later_inherit_it),
    };
    return ttn_test_run(tests);
}
