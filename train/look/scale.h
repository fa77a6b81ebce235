/* Numbers behind a chart: where ticks go, and what is left of a million points on 600 pixels. */
#ifndef TTN_SCALE_H
#define TTN_SCALE_H

#include <stdint.h>
#include "core/status.h"

/* ---- ticks ---- */

/* first + i step, 0 <= i < n: multiples of 1, 2 or 5 times a power of ten. */
typedef struct {
    double first, step;
    int n;
} ttn_ticks;

/* Ticks in [low, high], about `wanted` of them and at least two where low < high; both finite. */
ttn_ticks ttn_ticks_of(double low, double high, int wanted);

/* "2.75", "1500", "20k", "1.5M", "0.2e-3": with the digits that tell ticks apart. text has TTN_TICK_TEXT bytes. Returns text. */
enum { TTN_TICK_TEXT = 32 };
char *ttn_tick_text(const ttn_ticks *t, int i, char *text);

/* ---- points ---- */

/* The mean of the values around each: at most `reach` on either side, and near the ends fewer, as many on either side, so
 * that nothing is shifted; but never less than half of reach on the side where there are some, so that the last value is not
 * taken for a trend. Values that are not finite are passed over; NaN where there is no other. ret (n) is not y. */
void ttn_smooth(const double *y, int64_t n, int64_t reach, double *ret);

/* What falls into one column of pixels. */
typedef struct {
    int64_t n;        /* finite values */
    double x;         /* their mean x */
    double low, high; /* of the values; NaN when there is none */
    double mean;
    int64_t n_bad; /* values that are not finite */
} ttn_bin;

/* Points with x in [low, high] in n_bin bins of equal width; high > low. */
void ttn_bins_of(const double *x, const double *y, int64_t n, double low, double high, int n_bin, ttn_bin *ret);

#endif
