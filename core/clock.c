#include <stdio.h>
#include <time.h>
#include "core/clock.h"

static struct timespec system_time(clockid_t which)
{
    struct timespec time = {0};
    clock_gettime(which, &time); /* fails for a clock that does not exist: these two do */
    return time;
}

double ttn_clock_now(const ttn_clock *clock)
{
    if (clock && clock->now) return clock->now(clock->ctx);
    struct timespec time = system_time(CLOCK_MONOTONIC);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int64_t ttn_clock_date(const ttn_clock *clock)
{
    if (clock && clock->date) return clock->date(clock->ctx);
    return system_time(CLOCK_REALTIME).tv_sec;
}

char *ttn_date_print(int64_t date, char *text)
{
    const int64_t year_1000 = -INT64_C(30610224000); /* years with four digits, from their first second */
    const int64_t year_10000 = INT64_C(253402300800);
    struct tm calendar;
    time_t seconds = (time_t)date;
    int printed = date >= year_1000 && date < year_10000 && gmtime_r(&seconds, &calendar) &&
                  strftime(text, TTN_DATE_TEXT, "%Y-%m-%dT%H:%M:%SZ", &calendar) > 0;
    if (!printed) snprintf(text, TTN_DATE_TEXT, "?");
    return text;
}
