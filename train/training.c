#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/gemm.h"
#include "core/machine.h"
#include "core/memory.h"
#include "train/nonfinite.h"
#include "train/run_report.h"
#include "train/training_impl.h"

/* Share of the past that the mean of losses keeps at each step. */
#define EMA_KEEP 0.98

/* ---- questions ---- */

const ttn_training_facts *ttn_training_facts_of(const ttn_training *t)
{
    return &t->facts;
}

const ttn_history *ttn_training_history(const ttn_training *t)
{
    return t->journal ? ttn_journal_history(t->journal) : NULL;
}

ttn_trainer *ttn_training_trainer(ttn_training *t)
{
    return t->trainer;
}

static double now(const ttn_training *t)
{
    return ttn_clock_now(t->options.clock);
}

static int64_t done(const ttn_training *t)
{
    return t->standing.trainer.steps;
}

void ttn_training_state(const ttn_training *t, const ttn_standing *standing, ttn_standing_room *room,
                        ttn_run_state *ret)
{
    *ret = (ttn_run_state){
        .config = t->config,
        .device = t->device->ops->name,
        .kernel = t->blas.kernel,
        .row_tile = TTN_ROW_TILE,
        .batch_align = TTN_BATCH_ALIGN,
        .ranks = 1,
        .shards = t->spec.shards,
    };
    ttn_standing_write(standing, (uint64_t)t->spec.seed, room, ret);
}

/* ---- what the caller is told and asked ---- */

static double left(const ttn_training *t)
{
    const int64_t steps = t->facts.steps - done(t);
    int64_t pauses[TTN_N_PAUSES] = {1, 1}; /* at the end */
    if (t->spec.eval_every > 0) pauses[TTN_PAUSE_EVAL] += steps / t->spec.eval_every;
    if (t->spec.save_every > 0) pauses[TTN_PAUSE_SAVE] += steps / t->spec.save_every;
    return ttn_pace_left(&t->pace, steps > 0 ? steps : 0, pauses);
}

static double share_of_peak(const ttn_training *t, double seconds)
{
    if (!(t->options.rate > 0) || !(seconds > 0)) return (double)NAN;
    return t->facts.plan->useful * (double)t->spec.shards / seconds / t->options.rate;
}

static void tell(ttn_training *t, ttn_training_event *e)
{
    if (!t->options.tell) return;
    e->step = t->has_stepped ? &t->step : NULL;
    e->done = done(t);
    e->steps = t->facts.steps;
    e->ema = ttn_ema_value(&t->ema);
    const double seconds = t->since.seconds;
    e->residues_per_s = seconds > 0 ? (double)t->since.residues / seconds : (double)NAN;
    e->peak = t->since.steps > 0 ? share_of_peak(t, seconds / (double)t->since.steps) : (double)NAN;
    e->memory = ttn_machine_resident();
    e->left = left(t);
    t->options.tell(t->options.ctx, e);
}

/* What the caller wishes, until it is fulfilled. */
static void ask(ttn_training *t)
{
    const ttn_wish wish = t->options.wish ? t->options.wish(t->options.ctx) : TTN_WISH_NONE;
    if (wish == TTN_WISH_STOP) t->wishes_stop = 1;
    if (wish == TTN_WISH_SAVE) t->wishes_save = 1;
}

int ttn_training_goes_on(void *ctx, double part)
{
    ttn_training *t = ctx;
    tell(t, &(ttn_training_event){.what = TTN_TRAINING_EVALUATES, .part = part});
    ask(t);
    return !t->wishes_stop;
}

/* ---- records ---- */

static ttn_metrics record_of(const ttn_training *t)
{
    return (ttn_metrics){.step = done(t), .date = ttn_clock_date(t->options.clock)};
}

static ttn_status add_record(ttn_training *t, ttn_metrics *r, ttn_error *err)
{
    ttn_status status = ttn_journal_add(t->journal, r, err);
    ttn_metrics_drop(r);
    return status;
}

static void add_performance(const ttn_training *t, ttn_metrics *r)
{
    const double seconds = t->since.seconds, steps = (double)t->since.steps;
    const double capacity = steps * (double)(t->facts.train.extent.rows * t->spec.shards);
    ttn_metrics_add(r, ttn_metric_perf_residues_per_s, (double)t->since.residues / seconds);
    ttn_metrics_add(r, ttn_metric_perf_step_s, seconds / steps);
    ttn_metrics_add(r, ttn_metric_perf_wait, t->since.waited / seconds);
    if (t->options.rate > 0) ttn_metrics_add(r, ttn_metric_perf_peak, share_of_peak(t, seconds / steps));
    ttn_metrics_add(r, ttn_metric_perf_fill, (double)t->since.rows / capacity);
    ttn_metrics_add(r, ttn_metric_perf_memory, (double)ttn_machine_resident());
    ttn_metrics_add(r, ttn_metric_perf_memory_predicted, (double)t->facts.plan->bytes + (double)t->facts.held);
}

/* "favor/0/norm_mean": a number of the first layer's attention. ctx: the record. */
static void add_statistic(void *ctx, const ttn_told_statistic *told)
{
    char name[TTN_METRIC_TEXT];
    snprintf(name, sizeof name, "%s/%d/%s", told->kind, told->layer, told->name);
    ttn_metrics_add(ctx, name, told->value);
}

static ttn_status record_step(ttn_training *t, ttn_error *err)
{
    const ttn_step *s = &t->step;
    const int64_t an_epoch = t->facts.train.residues - t->facts.train.left_out;
    ttn_metrics r = record_of(t);
    ttn_metrics_add(&r, ttn_metric_train_loss, s->loss);
    ttn_metrics_add(&r, ttn_metric_train_accuracy, s->accuracy);
    ttn_metrics_add(&r, ttn_metric_train_targets, (double)s->targets);
    ttn_metrics_add(&r, ttn_metric_train_residues, (double)t->standing.trainer.residues);
    ttn_metrics_add(&r, ttn_metric_train_epoch, (double)t->standing.trainer.residues / (double)an_epoch);
    ttn_metrics_add(&r, ttn_metric_train_grad_norm, s->norm);
    ttn_metrics_add(&r, ttn_metric_train_lr, s->lr);
    ttn_metrics_add(&r, ttn_metric_train_skipped, (double)t->standing.trainer.skipped);
    ttn_statistics_tell(ttn_trainer_statistics(t->trainer), add_statistic, &r);
    add_performance(t, &r);
    return add_record(t, &r, err);
}

/* ---- saving ---- */

static void tell_saved(ttn_training *t, const ttn_saver_report *report)
{
    if (!report->is_saved || report->step == t->told_saved) return;
    t->told_saved = report->step;
    tell(t, &(ttn_training_event){.what = TTN_TRAINING_SAVED, .saved = report->step});
}

/* What became of a save: weights that are not finite are the end, a disk that is full is not. */
static ttn_status take_report(ttn_training *t, ttn_status status, const ttn_saver_report *report, const ttn_error *why,
                              ttn_error *err)
{
    if (status == TTN_OK) {
        tell_saved(t, report);
        return TTN_OK;
    }
    if (status == TTN_ENUMERIC) return TTN_FAIL(err, status, "%s", why->text);
    t->saved = -1;
    ttn_log_say(t->options.log, TTN_LOG_ERROR, "not saved, and training goes on: %s", why->text);
    return TTN_OK;
}

static ttn_status poll_save(ttn_training *t, ttn_error *err)
{
    ttn_saver_report report;
    ttn_error why = {0};
    return take_report(t, ttn_saver_poll(t->saver, &report, &why), &report, &why, err);
}

/* Begin to save, behind whatever is being saved. */
static ttn_status save(ttn_training *t, ttn_error *err)
{
    const double begin = now(t);
    ttn_saver_report report;
    ttn_standing_room room;
    ttn_run_state state;
    ttn_error why = {0};
    ttn_journal_sync(t->journal);
    ttn_status status = take_report(t, ttn_saver_wait(t->saver, &report, &why), &report, &why, err);
    if (status != TTN_OK) return status;
    ttn_training_state(t, &t->standing, &room, &state);
    if (t->standing.best_step == done(t)) ttn_saver_mark_best(t->saver);
    t->saved = done(t);
    why = (ttn_error){0};
    status = ttn_saver_save(t->saver, ttn_trainer_weights(t->trainer), NULL, &state, &why);
    ttn_pace_pause(&t->pace, TTN_PAUSE_SAVE, now(t) - begin);
    return take_report(t, status, &report, &why, err);
}

/* Save what is not saved yet, and see that it is: the end of a run, or of this start. */
static ttn_status save_at_the_end(ttn_training *t, ttn_error *err)
{
    ttn_saver_report report;
    ttn_status status = t->saved == done(t) ? TTN_OK : save(t, err);
    if (status == TTN_OK) status = ttn_saver_wait(t->saver, &report, err);
    if (status == TTN_OK)
        tell_saved(t, &report);
    else
        t->saved = -1;
    return status;
}

/* ---- divergence ---- */

/* The loss of the validation after the last step; NULL: there was none. */
static const double *last_validation(const ttn_training *t, double *room)
{
    const ttn_history *h = ttn_training_history(t);
    return h && ttn_history_at(h, ttn_metric_val_loss, (double)done(t), room) ? room : NULL;
}

int ttn_training_has_diverged(const ttn_training *t)
{
    double room;
    if (!t->has_ended) return t->divergence.has_diverged;
    return ttn_divergence_at_end(&t->divergence, done(t), last_validation(t, &room));
}

enum { LOSS_TEXT = 32 };

/* "2180", "6.14": as exact as such a loss is worth. */
static char *print_loss(double loss, char *text)
{
    const double plain = 1000, long_one = 1e7;
    snprintf(text, LOSS_TEXT, loss < plain ? "%.2f" : loss < long_one ? "%.0f" : "%.1e", loss);
    return text;
}

/* An episode is told once, when it has lasted for a while. */
static void tell_divergence(ttn_training *t)
{
    const ttn_divergence *d = &t->divergence;
    char loss[LOSS_TEXT];
    if (!ttn_divergence_is_told(d) || t->told_episode == d->now.from) return;
    t->told_episode = d->now.from;
    ttn_log_say(t->options.log, TTN_LOG_WARNING,
                "step %" PRId64 ": the loss has been above %.1f nats since step %" PRId64
                " and is %s (a uniform guess has %.2f): training diverges; " TTN_DIVERGENCE_REMEDY,
                d->now.to, ttn_divergence_limit(d), d->now.from, print_loss(d->last, loss), d->uniform);
}

static ttn_status fail_as_diverged(const ttn_training *t, ttn_error *err)
{
    const ttn_divergence *d = &t->divergence;
    double room;
    char what[160], best[80] = "", loss[LOSS_TEXT];
    const double *validation = last_validation(t, &room);
    if (d->now.n > 0)
        snprintf(what, sizeof what, "the training loss has been above %.1f nats since step %" PRId64 " and is %s",
                 ttn_divergence_limit(d), d->now.from, print_loss(d->last, loss));
    else if (validation && isfinite(*validation))
        snprintf(what, sizeof what, "the validation loss is %s", print_loss(*validation, loss));
    else
        snprintf(what, sizeof what, "the validation loss is not a finite number");
    if (t->standing.best_step >= 0 && t->standing.best_loss <= ttn_divergence_limit(d))
        snprintf(best, sizeof best, "; ckpt/best is of step %" PRId64, t->standing.best_step);
    return TTN_FAIL(err, TTN_ENUMERIC,
                    "diverged: %s (a uniform guess has %.2f): " TTN_DIVERGENCE_REMEDY
                    ", and begin again in another folder (train.out)%s",
                    what, d->uniform, best);
}

/* ---- evaluating ---- */

static ttn_status evaluate(ttn_training *t, ttn_error *err)
{
    const double begin = now(t);
    ttn_validation_result result;
    ttn_status status = ttn_evaluator_run(t->evaluator, &result, err);
    ttn_pace_pause(&t->pace, TTN_PAUSE_EVAL, now(t) - begin);
    if (status != TTN_OK) return status;
    t->evaluated = done(t);
    const double loss = result.hidden.loss.mean;
    const int is_best = isfinite(loss) && (t->standing.best_step < 0 || loss < t->standing.best_loss);
    if (is_best) {
        t->standing.best_step = done(t);
        t->standing.best_loss = loss;
        t->saved = -1; /* also where this step was saved before: the best one is to be known as such */
    }
    ttn_error why = {0};
    if (ttn_evaluator_check_finite(t->evaluator, &why) != TTN_OK)
        ttn_log_say(t->options.log, TTN_LOG_WARNING, "step %" PRId64 ": %s", done(t), why.text);
    ttn_metrics r = record_of(t);
    ttn_validation_record(&result, &r);
    status = add_record(t, &r, err);
    if (status != TTN_OK) return status;
    tell(t, &(ttn_training_event){
                .what = TTN_TRAINING_EVALUATED,
                .validation = &result,
                .is_best = is_best,
            });
    ttn_run_report_write(t);
    return TTN_OK;
}

static int is_due(int64_t every, int64_t step)
{
    return every > 0 && step > 0 && step % every == 0;
}

/* What is to be done between two steps, which a run that goes on catches up on. */
static ttn_status between_steps(ttn_training *t, int is_end, ttn_error *err)
{
    ttn_status status = TTN_OK;
    const int evaluates = is_end || is_due(t->spec.eval_every, done(t));
    if (t->evaluator && evaluates && t->evaluated != done(t)) status = evaluate(t, err);
    const int is_new_best = t->standing.best_step == done(t) && t->evaluated == done(t);
    const int saves = t->wishes_save || is_new_best || is_due(t->spec.save_every, done(t));
    if (status == TTN_OK && saves && t->saved != done(t)) status = save(t, err);
    if (status == TTN_OK) t->wishes_save = 0;
    return status;
}

/* ---- steps ---- */

static ttn_status give_up(const ttn_training *t, const ttn_error *why, ttn_error *err)
{
    return TTN_FAIL(err, TTN_ENUMERIC,
                    "%d steps one behind the other had a loss or gradient that is not finite, the last of them step "
                    "%" PRId64
                    "%s%s; they are described in %s/nan-step-N, checkpoints before them are as they were: lower "
                    "optim.lr, and go on from there",
                    TTN_NONFINITE_MOST, t->step.step, why->text[0] ? ": " : "", why->text, t->facts.folder);
}

static ttn_status look_into_skipped(ttn_training *t, const ttn_standing *before, ttn_error *err)
{
    ttn_standing_room room;
    ttn_run_state state;
    ttn_error why = {0}, failure = {0};
    ttn_training_state(t, before, &room, &state);
    if (ttn_nonfinite_write(t->facts.folder, t->trainer, &t->step, &state, t->options.log, &why, &failure) != TTN_OK)
        ttn_log_say(t->options.log, TTN_LOG_WARNING, "step %" PRId64 ": %s", t->step.step, failure.text);
    ttn_log_say(t->options.log, TTN_LOG_WARNING, "step %" PRId64 " is skipped: loss or gradient is not finite%s%s",
                t->step.step, why.text[0] ? ": " : "", why.text);
    return t->standing.trainer.in_a_row >= TTN_NONFINITE_MOST ? give_up(t, &why, err) : TTN_OK;
}

static void count_step(ttn_training *t, double seconds)
{
    t->has_stepped = 1;
    t->standing.trainer = ttn_trainer_where(t->trainer);
    ttn_pace_step(&t->pace, seconds);
    ttn_ema_add(&t->ema, t->step.loss, EMA_KEEP);
    t->all.seconds += seconds;
    t->all.waited += t->step.waited;
    t->since.seconds += seconds;
    t->since.waited += t->step.waited;
    t->since.steps++;
    t->since.residues += t->step.residues;
    t->since.rows += t->step.rows;
}

/* TTN_EOF: the epochs are over. */
static ttn_status take_step(ttn_training *t, ttn_error *err)
{
    const double begin = now(t);
    const ttn_standing before = t->standing;
    ttn_status status = ttn_trainer_step(t->trainer, &t->step, err);
    if (status != TTN_OK) return status;
    count_step(t, now(t) - begin);
    if (t->step.is_skipped) status = look_into_skipped(t, &before, err);
    tell(t, &(ttn_training_event){.what = TTN_TRAINING_STEP});
    const int records = done(t) == 1 || done(t) == t->facts.steps || is_due(t->spec.log_every, done(t));
    if (!records) return status;
    const ttn_status recorded = record_step(t, status == TTN_OK ? err : NULL);
    t->since.seconds = t->since.waited = 0;
    t->since.steps = t->since.residues = t->since.rows = 0;
    if (status == TTN_OK) status = recorded;
    if (status != TTN_OK) return status;
    ttn_divergence_add(&t->divergence, done(t), t->step.loss);
    tell_divergence(t);
    return TTN_OK;
}

static ttn_status sign_of_life(ttn_training *t, ttn_error *err)
{
    ttn_error why = {0};
    ttn_status status = ttn_run_folder_alive(t->folder, &why);
    if (status == TTN_EIO) {
        ttn_log_say(t->options.log, TTN_LOG_WARNING, "%s", why.text);
        return TTN_OK;
    }
    return status == TTN_OK ? TTN_OK : TTN_FAIL(err, status, "%s", why.text);
}

static int is_at_end(const ttn_training *t)
{
    return t->spec.epochs == 0 && done(t) >= t->facts.steps;
}

static ttn_status stop(ttn_training *t, ttn_error *err)
{
    ttn_status status = save_at_the_end(t, err);
    if (status != TTN_OK) return status;
    return TTN_FAIL(err, TTN_ESTOPPED, "stopped at step %" PRId64 ", and saved: --resume goes on from there", done(t));
}

ttn_status ttn_training_run(ttn_training *t, ttn_error *err)
{
    ttn_status status = TTN_OK;
    t->has_ended = is_at_end(t);
    while (status == TTN_OK) {
        status = between_steps(t, t->has_ended, err);
        if (status == TTN_OK) ask(t);
        if (t->wishes_stop && (status == TTN_OK || status == TTN_ESTOPPED)) {
            if (err) *err = (ttn_error){0};
            return stop(t, err);
        }
        if (status != TTN_OK || t->has_ended || t->divergence.has_diverged) break;
        if (t->wishes_save) continue; /* between_steps fulfils it */
        status = take_step(t, err);
        if (status == TTN_EOF) t->has_ended = 1;
        if (status == TTN_OK) t->has_ended = is_at_end(t);
        if (status == TTN_EOF) status = TTN_OK;
        if (status == TTN_OK) status = poll_save(t, err);
        if (status == TTN_OK) status = sign_of_life(t, err);
    }
    if (status != TTN_OK) return status;
    if (t->evaluated != done(t)) ttn_run_report_write(t);
    /* A model that diverged on the way is not worth a checkpoint; one that was trained to its end is saved as any other. */
    if (t->has_ended) status = save_at_the_end(t, err);
    return status == TTN_OK && ttn_training_has_diverged(t) ? fail_as_diverged(t, err) : status;
}
