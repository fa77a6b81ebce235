/* Time: seconds that only grow, for durations; and the date, for files and people.
 *
 * Code that acts on time (a save every ten minutes) takes a ttn_clock, so that a test can turn its hands.
 */
#ifndef TTN_CLOCK_H
#define TTN_CLOCK_H

#include <stdint.h>

/* A clock, or a part of one, that is NULL is the system's. */
typedef struct {
    double (*now)(void *ctx);   /* seconds since some moment; never goes back */
    int64_t (*date)(void *ctx); /* seconds since 1970-01-01T00:00:00Z, without leap seconds; may be set back */
    void *ctx;
} ttn_clock;

/* Seconds since some moment (the system's: CLOCK_MONOTONIC, which nobody sets). Only differences mean something. */
double ttn_clock_now(const ttn_clock *clock);

/* Seconds since 1970-01-01T00:00:00Z. */
int64_t ttn_clock_date(const ttn_clock *clock);

enum { TTN_DATE_TEXT = sizeof "2038-01-19T03:14:08Z" };

/* ISO 8601 in UTC, "2038-01-19T03:14:08Z"; text has TTN_DATE_TEXT bytes. Years 1000 to 9999, which have
 * four digits; "?" for others. Returns text. */
char *ttn_date_print(int64_t date, char *text);

#endif
