#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/clock.h"
#include "tests/harness/test.h"

/* A clock whose hands the test turns. */
typedef struct {
    double now;
    int64_t date;
} hands;

static double hand_now(void *ctx)
{
    return ((hands *)ctx)->now;
}

static int64_t hand_date(void *ctx)
{
    return ((hands *)ctx)->date;
}

static void system_clock_goes_on_and_never_back(void **state)
{
    (void)state;
    double first = ttn_clock_now(NULL);
    double last = first;
    for (int i = 0; i < 10000; i++) {
        double now = ttn_clock_now(NULL);
        assert_true(now >= last);
        last = now;
    }
    struct timespec wait = {.tv_nsec = 20 * 1000 * 1000};
    while (nanosleep(&wait, &wait) != 0)
        continue;
    double slept = ttn_clock_now(NULL) - last;
    assert_true(slept >= 0.02); /* seconds, and not some other unit */
    assert_at_most(slept, 10, "a sleep of 20 ms");
}

static void system_date_is_the_one_of_time(void **state)
{
    (void)state;
    int64_t before = (int64_t)time(NULL);
    int64_t date = ttn_clock_date(NULL);
    int64_t after = (int64_t)time(NULL);
    assert_true(date >= before - 1 && date <= after + 1); /* time() may read a coarser clock, a tick behind */
}

static void clock_of_ones_own_is_asked_and_its_missing_part_is_the_systems(void **state)
{
    (void)state;
    hands h = {.now = 17.25, .date = 1};
    ttn_clock both = {.now = hand_now, .date = hand_date, .ctx = &h};
    assert_true(ttn_clock_now(&both) == 17.25);
    h.now += 600;
    assert_true(ttn_clock_now(&both) == 617.25);
    assert_int_equal(ttn_clock_date(&both), 1);

    ttn_clock only_now = {.now = hand_now, .ctx = &h};
    assert_true(ttn_clock_now(&only_now) == 617.25);
    assert_true(ttn_clock_date(&only_now) > 1500000000);
    ttn_clock only_date = {.date = hand_date, .ctx = &h};
    assert_int_equal(ttn_clock_date(&only_date), 1);
    double now = ttn_clock_now(NULL);
    assert_true(ttn_clock_now(&only_date) >= now);
}

static void dates_are_iso_8601(void **state)
{
    (void)state;
    static const struct {
        int64_t date;
        const char *text;
    } known[] = {
        {0, "1970-01-01T00:00:00Z"},
        {-1, "1969-12-31T23:59:59Z"},
        {951782399, "2000-02-28T23:59:59Z"},
        {951782400, "2000-02-29T00:00:00Z"}, /* 2000 is a leap year */
        {951868800, "2000-03-01T00:00:00Z"},
        {1709251199, "2024-02-29T23:59:59Z"},
        {1709251200, "2024-03-01T00:00:00Z"},
        {1677628800, "2023-03-01T00:00:00Z"},
        {INT64_C(2147483647), "2038-01-19T03:14:07Z"},
        {INT64_C(2147483648), "2038-01-19T03:14:08Z"}, /* 2^31 */
        {INT64_C(4107542399), "2100-02-28T23:59:59Z"},
        {INT64_C(4107542400), "2100-03-01T00:00:00Z"}, /* 2100 is none */
        {INT64_C(4294967296), "2106-02-07T06:28:16Z"}, /* 2^32 */
        {INT64_C(253402300799), "9999-12-31T23:59:59Z"},
        {INT64_C(253402300800), "?"},
        {-INT64_C(30610224000), "1000-01-01T00:00:00Z"},
        {-INT64_C(30610224001), "?"},
        {INT64_MAX, "?"},
        {INT64_MIN, "?"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char text[TTN_DATE_TEXT + 1];
        memset(text, '#', sizeof text);
        assert_ptr_equal(ttn_date_print(known[i].date, text), text);
        assert_string_equal(text, known[i].text);
        assert_int_equal(text[TTN_DATE_TEXT], '#');
    }
}

/* A calendar turned day by day, which knows nothing but the rule for leap years. */
static void every_day_of_the_calendar_follows_the_one_before(void **state)
{
    (void)state;
    static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = 1600, month = 1, day = 1;
    const int64_t start = -INT64_C(11676096000); /* 1600-01-01T00:00:00Z */
    const int64_t n_day = ttn_scaled(400 * 365 + 97 + 1, 1000);
    for (int64_t i = 0; i < n_day; i++) {
        int second = (int)(i * 7919 % 86400);
        char wanted[64], text[TTN_DATE_TEXT];
        snprintf(wanted, sizeof wanted, "%04d-%02d-%02dT%02d:%02d:%02dZ", year, month, day, second / 3600,
                 second / 60 % 60, second % 60);
        assert_string_equal(ttn_date_print(start + i * 86400 + second, text), wanted);
        int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        if (++day <= length[month - 1] + (month == 2 && leap)) continue;
        day = 1;
        if (++month <= 12) continue;
        month = 1;
        year++;
    }
}

static void dates_are_utc_wherever_one_is(void **state)
{
    (void)state;
    char text[TTN_DATE_TEXT];
    setenv("TZ", "UTC-14", 1);
    tzset();
    ttn_date_print(1709251199, text);
    unsetenv("TZ");
    tzset();
    assert_string_equal(text, "2024-02-29T23:59:59Z");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_clock_goes_on_and_never_back),
        cmocka_unit_test(system_date_is_the_one_of_time),
        cmocka_unit_test(clock_of_ones_own_is_asked_and_its_missing_part_is_the_systems),
        cmocka_unit_test(dates_are_iso_8601),
        cmocka_unit_test(every_day_of_the_calendar_follows_the_one_before),
        cmocka_unit_test(dates_are_utc_wherever_one_is),
    };
    return ttn_test_run(tests);
}
