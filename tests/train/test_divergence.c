/* When a run has diverged: series of losses, in the rule of train/divergence.h. */
#include <math.h>
#include <string.h>
#include "core/rng.h"
#include "tests/harness/test.h"
#include "train/divergence.h"

enum { V = 33 };

/* Losses of steps every, 2 every, … with the one of step 1 before them, as a run writes them down. */
typedef double (*course)(int64_t step);

static ttn_divergence after(course loss, int64_t steps, int64_t every)
{
    ttn_divergence d;
    ttn_divergence_start(&d, V);
    for (int64_t step = 1; step <= steps; step++)
        if (step == 1 || step == steps || step % every == 0) ttn_divergence_add(&d, step, loss(step));
    return d;
}

static int ends_diverged(course loss, int64_t steps, int64_t every)
{
    const ttn_divergence d = after(loss, steps, every);
    return ttn_divergence_at_end(&d, steps, NULL);
}

/* ---- courses ---- */

static double learns(int64_t step)
{
    return 2.6 + 0.9 * exp(-(double)step / 300);
}

/* A handful of targets a step: a standard deviation of a nat, which a batch of five has. */
static double noise(int64_t step)
{
    ttn_rng rng = {.key = (uint64_t)step};
    return (double)ttn_rng_next_normal(&rng);
}

static double learns_from_tiny_batches(int64_t step)
{
    return fmax(0, learns(step) + noise(step));
}

static double explodes(int64_t step)
{
    return step < 5 ? 3.5 : 1000 + 10 * (double)step;
}

/* To 60 nats, and back to where it was within 150 steps. */
static double has_a_spike(int64_t step)
{
    return learns(step) + (step >= 500 ? 60 * exp(-(double)(step - 500) / 50) : 0);
}

/* As measured with far too high a learning rate that decays: slower than two intervals. */
static double falls_back(int64_t step)
{
    return step < 10 ? 3.5 : 3 + 80 * exp(-(double)step / 250);
}

/* A model that has learned goes to pieces. */
static double breaks(int64_t step)
{
    return step < 3000 ? learns(step) : 9;
}

static double begins_high(int64_t step)
{
    return step == 1 ? 40 : step < 700 ? 30 : learns(step);
}

/* Badly, but not far above the first one. */
static double stays_bad(int64_t step)
{
    return step == 1 ? 3.5 : 6.6;
}

/* ---- tests ---- */

static void runs_that_learn_are_never_told_of(void **state)
{
    (void)state;
    static const course good[] = {learns, learns_from_tiny_batches, begins_high, stays_bad};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        for (int64_t every = 1; every <= 100; every *= 10) {
            const ttn_divergence d = after(good[i], 2000, every);
            assert_int_equal(d.worst.n, 0);
            assert_int_equal(d.has_diverged, 0);
            assert_int_equal(ends_diverged(good[i], 2000, every), 0);
            assert_int_equal(ends_diverged(good[i], 10, every), 0);
        }
}

static void a_run_that_explodes_ends_after_two_intervals(void **state)
{
    (void)state;
    ttn_divergence d;
    ttn_divergence_start(&d, V);
    int64_t told = 0, ended = 0;
    for (int64_t step = 1; step <= 1000; step++) {
        ttn_divergence_add(&d, step, explodes(step));
        if (!told && ttn_divergence_is_told(&d)) told = step;
        if (!ended && d.has_diverged) ended = step;
    }
    assert_int_equal(told, 5 + TTN_DIVERGENCE_TOLD - 1);
    assert_int_equal(ended, 5 + 2 * TTN_DIVERGENCE_INTERVAL - 1);
    for (int64_t every = 10; every <= 100; every *= 10) {
        assert_int_equal(after(explodes, 1000, every).has_diverged, 1);
        assert_int_equal(after(explodes, 400, every).has_diverged, 0);
        assert_int_equal(ends_diverged(explodes, 400, every), 1);
    }
}

/* Also where only every thousandth step is written down: three losses, and not one, are an interval. */
static void few_losses_are_enough_when_they_are_three_an_interval(void **state)
{
    (void)state;
    assert_int_equal(after(explodes, 5000, 1000).has_diverged, 0);
    assert_int_equal(after(explodes, 7000, 1000).has_diverged, 1);
}

static void spikes_that_fall_are_told_of_and_go_on(void **state)
{
    (void)state;
    ttn_divergence d = after(has_a_spike, 1000, 10);
    assert_int_equal(d.has_diverged, 0);
    assert_int_equal(d.now.n, 0);
    assert_int_equal(d.worst.from, 500);
    assert_int_equal(d.worst.to, 630); /* 2.7 + 60 exp(-130 / 50) is 7.2 */
    assert_int_equal(ttn_divergence_at_end(&d, 1000, NULL), 0);
    d = after(falls_back, 1000, 1);
    assert_int_equal(d.has_diverged, 0);
    assert_int_equal(d.worst.from, 10);
    assert_true(d.worst.to - d.worst.from > 2 * TTN_DIVERGENCE_INTERVAL);
    assert_int_equal(ttn_divergence_at_end(&d, 1000, NULL), 0);
    assert_int_equal(ends_diverged(falls_back, 100, 1), 1); /* a run that ends before it is back */
}

static void what_was_learned_before_is_no_excuse(void **state)
{
    (void)state;
    assert_int_equal(after(breaks, 3400, 10).has_diverged, 0);
    assert_int_equal(after(breaks, 3510, 10).has_diverged, 1);
    assert_int_equal(ends_diverged(breaks, 3010, 10), 0); /* two losses, eleven steps */
    assert_int_equal(ends_diverged(breaks, 3020, 10), 1);
}

static void short_runs_are_judged_by_their_second_half(void **state)
{
    (void)state;
    assert_int_equal(ends_diverged(explodes, 8, 1), 1);
    assert_int_equal(ends_diverged(explodes, 7, 1), 0); /* steps 5 to 7 of 7 */
    assert_int_equal(ends_diverged(explodes, 30, 1), 1);
    assert_int_equal(ends_diverged(explodes, 30, 10), 1);
}

static void the_last_validation_decides_too(void **state)
{
    (void)state;
    const ttn_divergence d = after(learns, 100, 10);
    const double good = 2.9, high = 7.1, none = (double)NAN, all = (double)INFINITY;
    assert_at_most(fabs(ttn_divergence_limit(&d) - 2 * fmax(log(V), learns(1))), 1e-12, "the limit");
    assert_int_equal(ttn_divergence_at_end(&d, 100, &good), 0);
    assert_int_equal(ttn_divergence_at_end(&d, 100, &high), 1);
    assert_int_equal(ttn_divergence_at_end(&d, 100, &none), 1);
    assert_int_equal(ttn_divergence_at_end(&d, 100, &all), 1);
}

static void losses_that_are_no_numbers_neither_begin_nor_end_an_episode(void **state)
{
    (void)state;
    ttn_divergence d;
    ttn_divergence_start(&d, V);
    for (int64_t step = 1; step <= 600; step++)
        ttn_divergence_add(&d, step, step % 2 ? (double)NAN : explodes(step));
    assert_int_equal(d.has_diverged, 1);
    assert_true(d.first == 3.5);
    ttn_divergence_start(&d, V);
    for (int64_t step = 1; step <= 600; step++)
        ttn_divergence_add(&d, step, (double)NAN);
    assert_int_equal(d.has_diverged, 0);
    assert_int_equal(ttn_divergence_at_end(&d, 600, NULL), 0);
}

/* At any step: it remembers the first loss and the episode, and has two intervals again. */
static void a_run_that_goes_on_has_time_again(void **state)
{
    (void)state;
    ttn_divergence d = after(explodes, 700, 10);
    assert_int_equal(d.has_diverged, 1);
    ttn_divergence_resume(&d);
    assert_int_equal(d.has_diverged, 0);
    assert_int_equal(ttn_divergence_is_told(&d), 1);
    assert_int_equal(ttn_divergence_at_end(&d, 700, NULL), 1);
    for (int64_t step = 710; step <= 1190; step += 10)
        ttn_divergence_add(&d, step, explodes(step));
    assert_int_equal(d.has_diverged, 0);
    ttn_divergence_add(&d, 1200, explodes(1200));
    assert_int_equal(d.has_diverged, 1);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_that_learn_are_never_told_of),
        cmocka_unit_test(a_run_that_explodes_ends_after_two_intervals),
        cmocka_unit_test(few_losses_are_enough_when_they_are_three_an_interval),
        cmocka_unit_test(spikes_that_fall_are_told_of_and_go_on),
        cmocka_unit_test(what_was_learned_before_is_no_excuse),
        cmocka_unit_test(short_runs_are_judged_by_their_second_half),
        cmocka_unit_test(the_last_validation_decides_too),
        cmocka_unit_test(losses_that_are_no_numbers_neither_begin_nor_end_an_episode),
        cmocka_unit_test(a_run_that_goes_on_has_time_again),
    };
    return ttn_test_run(tests);
}
