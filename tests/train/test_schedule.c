/* The learning rate at the corners of every schedule. */
#include <math.h>
#include <stdio.h>
#include "tests/harness/test.h"
#include "tests/train/model_config.h"
#include "train/schedule.h"

enum { WARMUP = 4, STEPS = 20 };

static const double lr = 0.5; /* and the floor: powers of two, so that products are exact */
static const double bottom = 0.25;

static ttn_schedule schedule_of(ttn_schedule_kind kind)
{
    return (ttn_schedule){.kind = kind, .lr = lr, .warmup = WARMUP, .steps = STEPS, .floor = bottom, .decay = 0.4};
}

static void assert_rate(const ttn_schedule *s, int64_t step, double expected)
{
    const double got = ttn_schedule_lr(s, step);
    if (!(fabs(got - expected) <= 1e-15)) fail_msg("step %d: %.17g, expected %.17g", (int)step, got, expected);
}

static void every_warm_up_is_a_line_from_the_first_step_on(void **state)
{
    (void)state;
    for (int kind = TTN_SCHEDULE_CONSTANT; kind <= TTN_SCHEDULE_STABLE; kind++) {
        const ttn_schedule s = schedule_of((ttn_schedule_kind)kind);
        for (int64_t step = 0; step < WARMUP; step++)
            assert_rate(&s, step, lr * (double)(step + 1) / WARMUP);
    }
}

static void without_a_warm_up_the_first_step_has_the_whole_rate(void **state)
{
    (void)state;
    for (int kind = TTN_SCHEDULE_CONSTANT; kind <= TTN_SCHEDULE_STABLE; kind++) {
        ttn_schedule s = schedule_of((ttn_schedule_kind)kind);
        s.warmup = 0;
        assert_rate(&s, 0, lr);
    }
}

static void a_constant_rate_stays(void **state)
{
    (void)state;
    const ttn_schedule s = schedule_of(TTN_SCHEDULE_CONSTANT);
    assert_rate(&s, WARMUP, lr);
    assert_rate(&s, STEPS - 1, lr);
    assert_rate(&s, STEPS, lr);
    assert_rate(&s, 1000000, lr);
}

static void a_line_falls_from_the_end_of_the_warm_up_to_the_floor_behind_the_last_step(void **state)
{
    (void)state;
    const ttn_schedule s = schedule_of(TTN_SCHEDULE_LINEAR);
    assert_rate(&s, WARMUP, lr);
    assert_rate(&s, 12, lr * (0.25 + 0.75 * 0.5)); /* half the way */
    assert_rate(&s, STEPS - 1, lr * (0.25 + 0.75 / 16));
    assert_rate(&s, STEPS, lr * bottom);
    assert_rate(&s, STEPS + 5, lr * bottom);
}

static void a_cosine_falls_from_the_end_of_the_warm_up_to_the_floor_behind_the_last_step(void **state)
{
    (void)state;
    const ttn_schedule s = schedule_of(TTN_SCHEDULE_COSINE);
    assert_rate(&s, WARMUP, lr);
    assert_rate(&s, 8, lr * (0.25 + 0.75 * (0.5 + sqrt(0.125)))); /* a quarter of the way: cos(pi/4) */
    assert_rate(&s, 12, lr * (0.25 + 0.75 * 0.5));
    assert_rate(&s, STEPS - 1, lr * (0.25 + 0.75 * 0.00960735979838477)); /* (1 + cos(15 pi / 16)) / 2 */
    assert_rate(&s, STEPS, lr * bottom);
    assert_rate(&s, STEPS + 5, lr * bottom);
}

static void an_inverse_square_root_goes_on_from_the_warm_up_and_ends_at_the_floor(void **state)
{
    (void)state;
    ttn_schedule s = schedule_of(TTN_SCHEDULE_INVERSE_SQRT);
    assert_rate(&s, WARMUP - 1, lr);
    assert_rate(&s, WARMUP, lr * sqrt(0.8)); /* the fifth step: sqrt(4 / 5) */
    assert_rate(&s, 15, lr * 0.5);
    assert_rate(&s, 63, lr * bottom);
    assert_rate(&s, 64, lr * bottom);
    s.floor = 0;
    assert_rate(&s, 99, lr * 0.2);
    s.warmup = 0; /* counts as one */
    assert_rate(&s, 99, lr * 0.1);
}

static void a_stable_rate_falls_in_the_last_part_alone(void **state)
{
    (void)state;
    ttn_schedule s = schedule_of(TTN_SCHEDULE_STABLE); /* the last 8 of 20 steps */
    assert_rate(&s, WARMUP, lr);
    assert_rate(&s, 12, lr);
    assert_rate(&s, 13, lr * (0.25 + 0.75 * 7 / 8));
    assert_rate(&s, 16, lr * (0.25 + 0.75 * 0.5));
    assert_rate(&s, STEPS - 1, lr * (0.25 + 0.75 / 8));
    assert_rate(&s, STEPS, lr * bottom);
    s.decay = 0;
    assert_rate(&s, STEPS - 1, lr);
}

static void a_warm_up_longer_than_the_run_is_a_run_of_warm_up(void **state)
{
    (void)state;
    ttn_schedule s = schedule_of(TTN_SCHEDULE_COSINE);
    s.warmup = 40;
    assert_rate(&s, STEPS - 1, lr / 2);
    assert_rate(&s, 39, lr);
    assert_rate(&s, 40, lr * bottom);
}

static void a_schedule_is_read_from_its_rows(void **state)
{
    (void)state;
    static const char *const name[] = {"constant", "linear", "cosine", "inverse-sqrt", "warmup-stable-decay"};
    for (int kind = TTN_SCHEDULE_CONSTANT; kind <= TTN_SCHEDULE_STABLE; kind++) {
        char text[256];
        snprintf(text, sizeof text, "schedule: {kind: %s, warmup: 7, floor: 0.5, decay: 0.125}\noptim: {lr: 0.25}\n",
                 name[kind]);
        model_config c = model_config_of(NULL, text);
        ttn_schedule s;
        ttn_error err = {0};
        assert_ok(ttn_schedule_of(c.values, 99, &s, &err), &err);
        assert_int_equal(s.kind, kind);
        assert_int_equal(s.warmup, 7);
        assert_int_equal(s.steps, 99);
        assert_true(s.floor == 0.5 && s.decay == 0.125 && s.lr == 0.25);
        model_config_drop(&c);
    }
}

static void a_length_of_its_own_comes_before_the_runs(void **state)
{
    (void)state;
    model_config c = model_config_of(NULL, "schedule: {steps: 55}\n");
    ttn_schedule s;
    ttn_error err = {0};
    assert_ok(ttn_schedule_of(c.values, 99, &s, &err), &err);
    assert_int_equal(s.steps, 55);
    model_config_drop(&c);
}

static void what_must_end_refuses_not_to_know_where(void **state)
{
    (void)state;
    static const char *const text[] = {"schedule: {kind: linear}\n", "schedule: {kind: cosine}\n",
                                       "schedule: {kind: warmup-stable-decay}\n"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        model_config c = model_config_of(NULL, text[i]);
        ttn_schedule s;
        ttn_error err = {0};
        assert_fails(ttn_schedule_of(c.values, 0, &s, &err), TTN_EINVAL, &err, "set schedule.steps");
        model_config_drop(&c);
    }
    model_config c = model_config_of(NULL, "schedule: {kind: inverse-sqrt}\n");
    ttn_schedule s;
    ttn_error err = {0};
    assert_ok(ttn_schedule_of(c.values, 0, &s, &err), &err);
    model_config_drop(&c);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_warm_up_is_a_line_from_the_first_step_on),
        cmocka_unit_test(without_a_warm_up_the_first_step_has_the_whole_rate),
        cmocka_unit_test(a_constant_rate_stays),
        cmocka_unit_test(a_line_falls_from_the_end_of_the_warm_up_to_the_floor_behind_the_last_step),
        cmocka_unit_test(a_cosine_falls_from_the_end_of_the_warm_up_to_the_floor_behind_the_last_step),
        cmocka_unit_test(an_inverse_square_root_goes_on_from_the_warm_up_and_ends_at_the_floor),
        cmocka_unit_test(a_stable_rate_falls_in_the_last_part_alone),
        cmocka_unit_test(a_warm_up_longer_than_the_run_is_a_run_of_warm_up),
        cmocka_unit_test(a_schedule_is_read_from_its_rows),
        cmocka_unit_test(a_length_of_its_own_comes_before_the_runs),
        cmocka_unit_test(what_must_end_refuses_not_to_know_where),
    };
    return ttn_test_run(tests);
}
