#include <math.h>
#include "train/divergence.h"

static const double FAR = 2;         /* times the first loss */
static const double NO_BETTER = 0.8; /* of the interval before */

void ttn_divergence_start(ttn_divergence *d, int64_t vocabulary)
{
    *d = (ttn_divergence){.uniform = log((double)vocabulary), .first = (double)NAN, .last = (double)NAN};
}

double ttn_divergence_limit(const ttn_divergence *d)
{
    return isnan(d->first) ? d->first : FAR * fmax(d->first, d->uniform);
}

static int64_t steps_of(const ttn_episode *e)
{
    return e->n > 0 ? e->to - e->from + 1 : 0;
}

static void begin_interval(ttn_divergence *d, int64_t step)
{
    d->interval_from = step;
    d->interval_n = 0;
    d->interval_sum = 0;
}

/* The interval that is under way is full. */
static void end_interval(ttn_divergence *d, int64_t step)
{
    const double mean = d->interval_sum / (double)d->interval_n;
    if (!isnan(d->mean_before) && mean >= NO_BETTER * d->mean_before) d->has_diverged = 1;
    d->mean_before = mean;
    begin_interval(d, step);
}

static void add_to_episode(ttn_divergence *d, int64_t step, double loss)
{
    if (d->now.n == 0) {
        d->now.from = step;
        d->mean_before = (double)NAN;
        begin_interval(d, step);
    }
    d->now.to = step;
    d->now.n++;
    d->interval_sum += loss;
    d->interval_n++;
    if (step - d->interval_from + 1 >= TTN_DIVERGENCE_INTERVAL && d->interval_n >= TTN_DIVERGENCE_RECORDS)
        end_interval(d, step + 1);
    if (ttn_divergence_is_told(d) && steps_of(&d->now) >= steps_of(&d->worst)) d->worst = d->now;
}

void ttn_divergence_add(ttn_divergence *d, int64_t step, double loss)
{
    if (!isfinite(loss)) return;
    if (isnan(d->first)) d->first = loss;
    d->last = loss;
    if (loss > ttn_divergence_limit(d))
        add_to_episode(d, step, loss);
    else
        d->now = (ttn_episode){0};
}

void ttn_divergence_resume(ttn_divergence *d)
{
    d->has_diverged = 0;
    d->mean_before = (double)NAN;
    begin_interval(d, d->now.to + 1);
}

int ttn_divergence_is_told(const ttn_divergence *d)
{
    return d->now.n >= TTN_DIVERGENCE_RECORDS && steps_of(&d->now) >= TTN_DIVERGENCE_TOLD;
}

int ttn_divergence_at_end(const ttn_divergence *d, int64_t steps, const double *validation)
{
    const int64_t half = (steps + 1) / 2, least = half < TTN_DIVERGENCE_TOLD ? half : TTN_DIVERGENCE_TOLD;
    if (d->has_diverged || (d->now.n > 0 && steps_of(&d->now) >= least)) return 1;
    if (!validation) return 0;
    return !isfinite(*validation) || *validation > ttn_divergence_limit(d);
}
