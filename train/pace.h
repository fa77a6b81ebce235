/* How long it will still take. */
#ifndef TTN_PACE_H
#define TTN_PACE_H

#include <stdint.h>

/* What a run spends time on beside steps. */
typedef enum { TTN_PAUSE_EVAL, TTN_PAUSE_SAVE, TTN_N_PAUSES } ttn_pause;

enum { TTN_PACE_STEPS = 50, TTN_PACE_LEAST = 20 };

/* Start with {0}. The median of the last steps is not moved by one that a neighbour held up. */
typedef struct {
    double step[TTN_PACE_STEPS]; /* seconds, without pauses; a ring */
    int64_t n;                   /* steps so far */
    double pause[TTN_N_PAUSES];  /* seconds in all */
    int64_t n_pause[TTN_N_PAUSES];
} ttn_pace;

void ttn_pace_step(ttn_pace *p, double seconds);
void ttn_pace_pause(ttn_pace *p, ttn_pause kind, double seconds);

/* Seconds of a step: the median of the last TTN_PACE_STEPS; NaN before TTN_PACE_LEAST. */
double ttn_pace_median(const ttn_pace *p);

/* Seconds that so many steps, evaluations and saves (left, by ttn_pause) take: pauses at the mean of those so far, nothing
 * for a kind that has not been. NaN before TTN_PACE_LEAST steps. */
double ttn_pace_left(const ttn_pace *p, int64_t steps, const int64_t *left);

/* "3h12m", "12m40s", "41s", "6d04h", "?" for NaN: five or six columns. text has TTN_PACE_TEXT bytes. Returns text. */
enum { TTN_PACE_TEXT = 24 };
char *ttn_pace_text(double seconds, char *text);

#endif
