/* Named numbers of a run: records, their history, a mean that forgets, and how long it will still take. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/history.h"
#include "train/metrics.h"
#include "train/pace.h"

/* ---- names and records ---- */

static void every_name_is_good_is_there_once_and_is_explained(void **state)
{
    (void)state;
    static const char *const names[] = {
#define NAME(id, name, what) ttn_metric_##id,
        TTN_METRICS(NAME)
#undef NAME
    };
    const int n = sizeof names / sizeof *names;
    for (int i = 0; i < n; i++) {
        assert_true(ttn_metric_name_is_good(names[i]));
        assert_non_null(strchr(names[i], '/'));
        assert_true(strlen(ttn_metric_what(names[i])) > 5);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
    }
    assert_string_equal(ttn_metric_val_ppl, "val/ppl");
    assert_null(ttn_metric_what("val/pp"));
    assert_true(ttn_metric_is_perf(ttn_metric_perf_wait));
    assert_false(ttn_metric_is_perf(ttn_metric_train_loss));
}

static void names_that_would_break_a_line_are_not_good(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a b", "a\"", "a\\b", "a\n", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(ttn_metric_name_is_good(bad[i]));
    char longest[TTN_METRIC_TEXT + 1];
    memset(longest, 'x', sizeof longest);
    longest[TTN_METRIC_TEXT] = 0;
    assert_false(ttn_metric_name_is_good(longest));
    longest[TTN_METRIC_TEXT - 1] = 0;
    assert_true(ttn_metric_name_is_good(longest));
}

static void a_record_of_any_size_finds_its_numbers(void **state)
{
    (void)state;
    ttn_metrics r = {.step = 7};
    double value = -1;
    for (int i = 0; i < 500; i++) {
        char name[TTN_METRIC_TEXT];
        snprintf(name, sizeof name, "layer.%d/x", i);
        ttn_metrics_add(&r, name, i);
    }
    assert_false(r.failed);
    assert_int_equal(ttn_metrics_find(&r, "layer.377/x", &value), 1);
    assert_true(value == 377);
    assert_int_equal(ttn_metrics_find(&r, "layer.500/x", &value), 0);
    ttn_metrics_clear(&r);
    assert_int_equal(ttn_metrics_find(&r, "layer.0/x", &value), 0);
    assert_int_equal(r.step, 7);
    ttn_metrics_drop(&r);
}

/* ---- history ---- */

static void history_keeps_a_series_for_each_name(void **state)
{
    (void)state;
    ttn_history h = {0};
    ttn_error err = {0};
    double value;
    for (int step = 1; step <= 300; step++) {
        ttn_metrics r = {.step = step};
        ttn_metrics_add(&r, ttn_metric_train_loss, 3.0 - step / 1000.0);
        if (step % 100 == 0) ttn_metrics_add(&r, ttn_metric_val_ppl, (double)NAN);
        assert_ok(ttn_history_add(&h, &r, &err), &err);
        ttn_metrics_drop(&r);
    }
    const ttn_series *train = ttn_history_find(&h, ttn_metric_train_loss), *val = ttn_history_find(&h, "val/ppl");
    assert_non_null(train);
    assert_non_null(val);
    assert_null(ttn_history_find(&h, "val/p"));
    assert_int_equal(train->n, 300);
    assert_int_equal(val->n, 3);
    for (int i = 0; i < 300; i++)
        assert_true(train->step[i] == i + 1 && train->value[i] == 3.0 - (i + 1) / 1000.0);
    assert_int_equal(ttn_history_at(&h, ttn_metric_train_loss, 250, &value), 1);
    assert_true(value == 2.75);
    assert_int_equal(ttn_history_at(&h, ttn_metric_val_ppl, 250, &value), 0);
    assert_int_equal(h.n_record, 300);
    ttn_history_drop(&h);
}

static void history_has_so_many_series_and_no_more(void **state)
{
    (void)state;
    ttn_metrics r = {0};
    ttn_history h = {0};
    ttn_error err = {0};
    char name[32];
    for (int i = 0; i < TTN_MOST_METRICS + 5; i++) {
        snprintf(name, sizeof name, "x/%d", i);
        ttn_metrics_add(&r, name, i);
    }
    for (r.step = 1; r.step <= 2; r.step++)
        assert_ok(ttn_history_add(&h, &r, &err), &err);
    assert_int_equal(h.n, TTN_MOST_METRICS);
    assert_int_equal(h.n_record, 2);
    const ttn_series *last = ttn_history_find(&h, "x/1023");
    assert_non_null(last);
    assert_int_equal(last->n, 2);
    assert_null(ttn_history_find(&h, "x/1024"));
    ttn_metrics_clear(&r);
    ttn_metrics_add(&r, ttn_metric_val_loss, 3);
    assert_ok(ttn_history_add(&h, &r, &err), &err);
    assert_non_null(ttn_history_find(&h, ttn_metric_val_loss)); /* titin's own are never left out */
    ttn_metrics_drop(&r);
    ttn_history_drop(&h);
}

static void no_memory_is_a_status(void **state)
{
    (void)state;
    int hit = 1;
    for (int nth = 1; hit; nth++) {
        ttn_metrics r = {.step = 1};
        ttn_history h = {0};
        ttn_error err = {0};
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
        ttn_metrics_add(&r, "a", 1);
        ttn_status status = ttn_history_add(&h, &r, &err);
        shim_disarm();
        hit = shim_was_hit();
        assert_int_equal(status, hit ? TTN_ENOMEM : TTN_OK);
        assert_int_equal(err.status, status);
        ttn_history_drop(&h);
        ttn_metrics_drop(&r);
        if (!hit) assert_true(nth > 4);
    }
}

/* ---- a mean that forgets ---- */

static void a_moving_average_has_no_bias_of_its_start_and_passes_over_nan(void **state)
{
    (void)state;
    ttn_ema e = {0};
    assert_true(isnan(ttn_ema_value(&e)));
    ttn_ema_add(&e, 3.5, 0.99);
    assert_at_most(fabs(ttn_ema_value(&e) - 3.5), 1e-14, "the first value is the mean");
    ttn_ema_add(&e, (double)NAN, 0.99);
    ttn_ema_add(&e, (double)INFINITY, 0.99);
    assert_at_most(fabs(ttn_ema_value(&e) - 3.5), 1e-14, "not finite: passed over");
    ttn_ema_add(&e, 2.5, 0.5);
    /* weights: 0.01 * 0.5 of 3.5 and 0.5 of 2.5 */
    assert_at_most(fabs(ttn_ema_value(&e) - (0.005 * 3.5 + 0.5 * 2.5) / 0.505), 1e-14, "two values");
}

/* ---- time ---- */

static void time_left_is_unknown_before_20_steps(void **state)
{
    (void)state;
    ttn_pace p = {0};
    const int64_t none[TTN_N_PAUSES] = {0};
    for (int i = 0; i < TTN_PACE_LEAST; i++) {
        assert_true(isnan(ttn_pace_left(&p, 10, none)));
        ttn_pace_step(&p, 0.5);
    }
    assert_true(ttn_pace_left(&p, 10, none) == 5);
}

static void time_left_is_the_median_of_the_last_50_steps(void **state)
{
    (void)state;
    ttn_pace p = {0};
    const int64_t none[TTN_N_PAUSES] = {0};
    for (int i = 0; i < 200; i++)
        ttn_pace_step(&p, 9); /* the machine was busy */
    for (int i = 0; i < TTN_PACE_STEPS; i++)
        ttn_pace_step(&p, i % 10 == 3 ? 100 : 1); /* a tenth of the steps is held up */
    assert_true(ttn_pace_median(&p) == 1);
    assert_true(ttn_pace_left(&p, 1000, none) == 1000);
    ttn_pace two = {0};
    for (int i = 0; i < 20; i++)
        ttn_pace_step(&two, i < 10 ? 1 : 2);
    assert_true(ttn_pace_median(&two) == 1.5); /* of an even number: between the two in the middle */
}

static void evaluations_and_saves_are_added(void **state)
{
    (void)state;
    ttn_pace p = {0};
    for (int i = 0; i < 20; i++)
        ttn_pace_step(&p, 1);
    const int64_t left[TTN_N_PAUSES] = {[TTN_PAUSE_EVAL] = 4, [TTN_PAUSE_SAVE] = 2};
    assert_true(ttn_pace_left(&p, 100, left) == 100); /* nothing is known of them yet */
    ttn_pace_pause(&p, TTN_PAUSE_EVAL, 10);
    ttn_pace_pause(&p, TTN_PAUSE_EVAL, 20);
    ttn_pace_pause(&p, TTN_PAUSE_SAVE, 3);
    assert_true(ttn_pace_left(&p, 100, left) == 100 + 4 * 15 + 2 * 3);
}

static void durations_are_short_texts(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0s"},
                 {59.4, "59s"},
                 {59.6, "1m00s"},
                 {3599, "59m59s"},
                 {3599.7, "1h00m"},
                 {3 * 3600 + 12 * 60 + 59, "3h12m"},
                 {48 * 3600 - 1, "47h59m"},
                 {48 * 3600, "2d00h"},
                 {100.0 * 86400, "100d00h"},
                 {(double)NAN, "?"},
                 {(double)INFINITY, "?"},
                 {-1, "?"}};
    char text[TTN_PACE_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(ttn_pace_text(cases[i].seconds, text), cases[i].text);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_good_is_there_once_and_is_explained),
        cmocka_unit_test(names_that_would_break_a_line_are_not_good),
        cmocka_unit_test(a_record_of_any_size_finds_its_numbers),
        cmocka_unit_test(history_keeps_a_series_for_each_name),
        cmocka_unit_test(history_has_so_many_series_and_no_more),
        cmocka_unit_test(no_memory_is_a_status),
        cmocka_unit_test(a_moving_average_has_no_bias_of_its_start_and_passes_over_nan),
        cmocka_unit_test(time_left_is_unknown_before_20_steps),
        cmocka_unit_test(time_left_is_the_median_of_the_last_50_steps),
        cmocka_unit_test(evaluations_and_saves_are_added),
        cmocka_unit_test(durations_are_short_texts),
    };
    return ttn_test_run(tests);
}
