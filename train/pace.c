#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "train/pace.h"

void ttn_pace_step(ttn_pace *p, double seconds)
{
    p->step[p->n % TTN_PACE_STEPS] = seconds;
    p->n++;
}

void ttn_pace_pause(ttn_pace *p, ttn_pause kind, double seconds)
{
    p->pause[kind] += seconds;
    p->n_pause[kind]++;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ttn_pace_median(const ttn_pace *p)
{
    double sorted[TTN_PACE_STEPS];
    if (p->n < TTN_PACE_LEAST) return (double)NAN;
    const size_t n = p->n < TTN_PACE_STEPS ? (size_t)p->n : TTN_PACE_STEPS;
    memcpy(sorted, p->step, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double ttn_pace_left(const ttn_pace *p, int64_t steps, const int64_t *left)
{
    double seconds = (double)steps * ttn_pace_median(p);
    for (int kind = 0; kind < TTN_N_PAUSES; kind++)
        if (p->n_pause[kind] > 0) seconds += (double)left[kind] * p->pause[kind] / (double)p->n_pause[kind];
    return seconds;
}

char *ttn_pace_text(double seconds, char *text)
{
    const double most = 1e9; /* 30 years */
    if (!(seconds >= 0 && seconds < most)) {
        snprintf(text, TTN_PACE_TEXT, "?");
        return text;
    }
    const int64_t s = llrint(seconds);
    if (s < 60)
        snprintf(text, TTN_PACE_TEXT, "%" PRId64 "s", s);
    else if (s < 3600)
        snprintf(text, TTN_PACE_TEXT, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
    else if (s < 48 * 3600)
        snprintf(text, TTN_PACE_TEXT, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
    else
        snprintf(text, TTN_PACE_TEXT, "%" PRId64 "d%02" PRId64 "h", s / 86400, s / 3600 % 24);
    return text;
}
