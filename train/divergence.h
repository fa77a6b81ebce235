/* Has a run diverged? Decided by the losses that it writes down, so that a run that is resumed decides as one that was not
 * stopped.
 *
 * Far above the first loss is a loss beyond twice the larger of the first one and that of a uniform guess, ln V: 7.0 nats with 33
 * tokens, where an untrained model has 3.5 and the worst of a noisy start stays below 5. An episode are the losses in a row
 * that are so high. Losses that are no finite numbers neither begin nor end one (steps that are not finite are skipped and end
 * a run by themselves).
 *
 *     told of        an episode of 3 losses or more, over 20 steps or more
 *     diverged       (the run ends) an episode over two intervals of 250 steps of which the second is no better: its mean is
 *                    not below 0.8 of the first one's. Spikes fall within that time, and go on
 *     diverged at the end   it ends in an episode of 20 steps, or of half the run where that is less; or the last
 *                    validation is so high, or no finite number
 *
 * Measured (width 32, two layers, cosine, 800 steps; optim.lr of 0.01 to 0.1 is right there): with 0.5 losses stay below 4, with
 * 0.7 they peak at 6.6, with 1 they are above 7 for 360 steps and with 2 for 620, falling: none of these ends the run.
 */
#ifndef TTN_DIVERGENCE_H
#define TTN_DIVERGENCE_H

#include <stdint.h>

enum { TTN_DIVERGENCE_RECORDS = 3, TTN_DIVERGENCE_TOLD = 20, TTN_DIVERGENCE_INTERVAL = 250 };

/* What to try, in messages. */
#define TTN_DIVERGENCE_REMEDY "lower optim.lr, or set a longer schedule.warmup or a smaller optim.clip"

/* Losses above the limit, one after the other. Steps as they are written down: from 1. */
typedef struct {
    int64_t from, to; /* the steps of the first and of the last of them */
    int64_t n;        /* of them; 0: there is none */
} ttn_episode;

typedef struct {
    double uniform;    /* ln V */
    double first;      /* the first finite loss; NaN: none yet */
    double last;       /* the last one */
    ttn_episode now;   /* that the last loss belongs to */
    ttn_episode worst; /* the longest of those that are told of */
    int has_diverged;
    /* of the interval of `now` that is under way, and of the one before it */
    int64_t interval_from, interval_n;
    double interval_sum, mean_before;
} ttn_divergence;

void ttn_divergence_start(ttn_divergence *d, int64_t vocabulary);
void ttn_divergence_add(ttn_divergence *d, int64_t step, double loss);

/* A run goes on with what was added: it has two whole intervals again before it is said to have diverged. */
void ttn_divergence_resume(ttn_divergence *d);

/* NaN: there is no loss yet. */
double ttn_divergence_limit(const ttn_divergence *d);

/* 1: `now` is long enough to be told of. */
int ttn_divergence_is_told(const ttn_divergence *d);

/* At the end of a run of so many steps. validation: the last val/loss; NULL: there was none. */
int ttn_divergence_at_end(const ttn_divergence *d, int64_t steps, const double *validation);

#endif
