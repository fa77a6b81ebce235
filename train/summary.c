#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include "train/show_fact.h"
#include "train/summary.h"

/* ---- the best validation ---- */

static double at(const ttn_history *h, const char *name, double step)
{
    double value;
    return ttn_history_at(h, name, step, &value) ? value : (double)NAN;
}

/* Where it is lowest; -1: nowhere, since there is no finite value. */
static int64_t lowest(const ttn_series *s)
{
    int64_t best = -1;
    for (int64_t i = 0; s && i < s->n; i++)
        if (isfinite(s->value[i]) && (best < 0 || s->value[i] < s->value[best])) best = i;
    return best;
}

ttn_best ttn_best_of(const ttn_history *h)
{
    const ttn_series *loss = ttn_history_find(h, ttn_metric_val_loss);
    const int64_t i = lowest(loss);
    if (i < 0) return (ttn_best){0};
    const double step = loss->step[i];
    return (ttn_best){
        .is_there = 1,
        .step = step,
        .loss = loss->value[i],
        .error = at(h, ttn_metric_val_loss_error, step),
        .accuracy = at(h, ttn_metric_val_accuracy, step),
        .ppl_seen = at(h, ttn_metric_val_ppl_seen, step),
        .targets = at(h, ttn_metric_val_targets, step),
        .sequences = at(h, ttn_metric_val_sequences, step),
        .frequency = {at(h, ttn_metric_val_loss_frequency, step), at(h, ttn_metric_val_gain_frequency, step),
                      at(h, ttn_metric_val_gain_frequency_error, step)},
        .composition = {at(h, ttn_metric_val_loss_composition, step), at(h, ttn_metric_val_gain_composition, step),
                        at(h, ttn_metric_val_gain_composition_error, step)},
    };
}

static const double SURE = 2; /* standard errors */

int ttn_best_beats(const ttn_beside *b)
{
    return b->gain > SURE * b->error;
}

/* ---- what to try next ---- */

static void say(ttn_advice *a, const char *format, ...) TTN_PRINTF(2, 3);
static void say(ttn_advice *a, const char *format, ...)
{
    va_list args;
    if (a->n == TTN_ADVICE) return;
    va_start(args, format);
    vsnprintf(a->text[a->n], TTN_ADVICE_TEXT, format, args);
    va_end(args);
    a->n++;
}

/* How the run itself went. */
static void advise_on_course(const ttn_course *c, ttn_advice *ret)
{
    const double most_waiting = 0.1, least_filled = 0.9, half_filled = 0.5, many_cropped = 0.05;
    char number[TTN_SHOW_NUMBER], to[TTN_SHOW_NUMBER];
    if (c->has_diverged)
        say(ret, "diverged: " TTN_DIVERGENCE_REMEDY ", and begin again in another folder (train.out)");
    else if (c->episode.n > 0)
        say(ret, "from step %s to %s the loss was far above the first one: " TTN_DIVERGENCE_REMEDY,
            ttn_show_count(c->episode.from, number), ttn_show_count(c->episode.to, to));
    if (c->skipped > 0)
        say(ret,
            "steps skipped because their loss or gradient was not finite: %s; try half of optim.lr, or a longer "
            "warm-up "
            "(nan-step-N/ has what happened)",
            ttn_show_count(c->skipped, number));
    if (c->wait > most_waiting)
        say(ret, "%.0f %% of the time was spent waiting for data: give it a faster disk, or a larger data.cache",
            100 * c->wait);
    if (c->batches == 1 && c->fill < half_filled)
        say(ret,
            "all proteins together fill %.0f %% of one batch: fewer batch.rows make shorter steps, and more of them of "
            "as many residues",
            100 * c->fill);
    else if (c->fill > 0 && c->fill < least_filled)
        say(ret, "only %.0f %% of the rows held residues: more batch.rows, or more data.max_seqs, fill them better",
            100 * c->fill);
    if (c->sequences > 0 && (double)c->cropped > many_cropped * (double)c->sequences)
        say(ret, "%.0f %% of the proteins are longer than %s and were cropped: try a larger data.max_len",
            100 * (double)c->cropped / (double)c->sequences, ttn_show_count(c->max_len, number));
}

static const double NOTICEABLE = 0.005; /* nats: half a per cent of the perplexity */

/* The last validation is the best, and clearly below the one that lies a quarter of them before it. */
static int still_falls(const ttn_series *loss, const ttn_best *best)
{
    const int64_t least = 4, last = loss->n - 1;
    if (loss->n < least || best->step < loss->step[last]) return 0;
    return loss->value[last - loss->n / 4] - loss->value[last] > NOTICEABLE;
}

static int rises(const ttn_series *loss, const ttn_best *best)
{
    const double last = loss->value[loss->n - 1];
    return best->step < loss->step[loss->n - 1] && last - best->loss > fmax(best->error, NOTICEABLE);
}

/* What the validations say. Of a run that was unstable they say no more than that. */
static void advise_on_learning(const ttn_history *h, const ttn_course *c, ttn_advice *ret)
{
    const ttn_series *loss = ttn_history_find(h, ttn_metric_val_loss);
    const ttn_best best = ttn_best_of(h);
    const int is_stable = !c->has_diverged && c->episode.n == 0;
    char number[TTN_SHOW_NUMBER];
    if (!best.is_there) {
        if (loss) return; /* there were some, and none was finite */
        say(ret, "nothing was validated, so nobody knows what was learned: hold something out (data.valid), and set "
                 "train.eval_every");
        return;
    }
    if (is_stable && !ttn_best_beats(&best.frequency))
        say(ret, "no better than the residues' frequencies: it has not begun to learn; train longer, or try ten times "
                 "more or less of optim.lr");
    else if (is_stable && !ttn_best_beats(&best.composition))
        say(ret, "no better than each protein's own composition: order is not learned yet; train longer, or a wider or "
                 "deeper model");
    if (c->has_diverged) return;
    if (rises(loss, &best))
        say(ret,
            "validation has become worse since step %s: it learns the training set by heart; the checkpoint of that "
            "step is the better one, and more data, dropout or a smaller model help",
            ttn_show_count((int64_t)best.step, number));
    else if (still_falls(loss, &best))
        say(ret, "the loss was still falling at the end: more train.steps will make it better");
}

void ttn_advise(const ttn_history *h, const ttn_course *c, ttn_advice *ret)
{
    ret->n = 0;
    advise_on_course(c, ret);
    advise_on_learning(h, c, ret);
    if (ret->n == 0)
        say(ret, "more width (model.width) or depth (model.layers), and more data, are what makes the next one better");
}
