#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "core/clock.h"
#include "core/memory.h"
#include "train/files/saver.h"

enum { KEEP = 3 };

struct ttn_saver {
    ttn_run_folder *run;
    ttn_saver_options options;
    ttn_snapshot *snapshot; /* the thread's between its start and its end */
    const ttn_weights *w;   /* of the save that is being made */
    const ttn_named_tensor *more;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t copied;
    int is_copied;         /* under the lock: nobody needs the weights any more */
    int is_running;        /* there is a thread to join */
    _Atomic int has_ended; /* it has nothing more to do */
    double waited;         /* s, of the caller, for this save */
    int next_is_best;      /* the caller's */
    int is_best;           /* this save */
    /* what the thread leaves; read after it was joined */
    ttn_status status;
    ttn_error err;
    ttn_saver_report report;
    ttn_saver_report last; /* a copy of it, of the last save that ended */
};

/* ---- the thread ---- */

/* What comes after the checkpoint is in place; no reason to say that it was not saved. */
static void tidy_up(ttn_saver *s, int64_t step)
{
    ttn_error err = {0};
    ttn_status linked = ttn_run_set_latest(s->run, step, &err); /* the link matters to no save */
    ttn_status best = s->is_best ? ttn_run_set_best(s->run, step, &err) : TTN_OK;
    ttn_status retained = ttn_run_retain(s->run, s->options.keep, step, s->options.log, &err);
    if (linked == TTN_OK && best == TTN_OK && retained == TTN_OK) return;
    snprintf(s->report.warning, sizeof s->report.warning, "%s", err.text);
    ttn_log_say(s->options.log, TTN_LOG_WARNING, "step %lld is saved, but %s", (long long)step, err.text);
}

static void write_checkpoint(ttn_saver *s)
{
    char path[PATH_MAX], kept[PATH_MAX] = "", name[TTN_STEP_NAME], reason[TTN_REASON];
    const double begin = ttn_clock_now(NULL);
    const int64_t step = ttn_snapshot_state(s->snapshot)->step;
    int n = snprintf(path, sizeof path, "%s/ckpt/%s", ttn_run_folder_path(s->run), ttn_step_name(step, name));
    if (n >= (int)sizeof path)
        s->status = TTN_FAIL(&s->err, TTN_EINVAL, "%s: the path of the run is too long", name);
    else if (ttn_run_may_replace(path, reason))
        s->status = ttn_checkpoint_write(s->snapshot, path, &s->report.is_saved, &s->err);
    else
        s->status = ttn_checkpoint_write_beside(s->snapshot, path, kept, &s->report.is_saved, &s->err);
    if (kept[0]) ttn_log_say(s->options.log, TTN_LOG_WARNING, "%s %s and is now called %s", path, reason, kept);
    if (s->status == TTN_OK) tidy_up(s, step);
    s->report.written = ttn_clock_now(NULL) - begin;
}

static void tell_copied(ttn_saver *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_copied = 1;
    pthread_cond_signal(&s->copied);
    pthread_mutex_unlock(&s->lock);
}

static void *run_thread(void *arg)
{
    ttn_saver *s = arg;
    if (!s->options.copy_first) {
        s->status = ttn_snapshot_take_tensors(s->snapshot, s->w, s->more, &s->err);
        tell_copied(s);
    }
    if (s->status == TTN_OK) write_checkpoint(s);
    atomic_store(&s->has_ended, 1);
    return NULL;
}

/* Signals are for the thread that trains. 0 or the error. */
static int start_thread(ttn_saver *s)
{
    sigset_t all, before;
    sigfillset(&all);
    int error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error) return error;
    atomic_store(&s->has_ended, 0);
    error = pthread_create(&s->thread, NULL, run_thread, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    s->is_running = error == 0;
    return error;
}

/* ---- the caller's side ---- */

ttn_status ttn_saver_create(ttn_run_folder *run, const ttn_weights *w, const char *const *model_name,
                            const ttn_named_tensor *more, int n_more, const ttn_saver_options *options, ttn_saver **ret,
                            ttn_error *err)
{
    *ret = NULL;
    ttn_saver *s = ttn_alloc_or_say(1, sizeof *s, "saving", err);
    if (!s) return TTN_ENOMEM;
    s->run = run;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->copied, NULL);
    s->is_copied = 1;
    if (options) s->options = *options;
    if (s->options.keep == 0) s->options.keep = KEEP;
    s->report.step = s->last.step = -1;
    ttn_status status = ttn_snapshot_create(w, model_name, more, n_more, &s->snapshot, err);
    if (status == TTN_OK)
        *ret = s;
    else
        ttn_saver_destroy(s);
    return status;
}

const ttn_snapshot *ttn_saver_snapshot(const ttn_saver *s)
{
    return s->snapshot;
}

/* The thread's answer, once. */
static ttn_status collect(ttn_saver *s, ttn_saver_report *ret_report, ttn_error *err)
{
    if (s->is_running) pthread_join(s->thread, NULL);
    s->is_running = 0;
    s->report.waited = s->waited;
    s->last = s->report;
    if (ret_report) *ret_report = s->last;
    ttn_status status = s->status;
    s->status = TTN_OK;
    return status == TTN_OK ? TTN_OK : TTN_FAIL(err, status, "step %lld: %s", (long long)s->report.step, s->err.text);
}

ttn_status ttn_saver_poll(ttn_saver *s, ttn_saver_report *ret_report, ttn_error *err)
{
    if (!s->is_running || atomic_load(&s->has_ended)) return collect(s, ret_report, err);
    if (ret_report) *ret_report = s->last;
    return TTN_OK;
}

ttn_status ttn_saver_wait(ttn_saver *s, ttn_saver_report *ret_report, ttn_error *err)
{
    return collect(s, ret_report, err);
}

void ttn_saver_settle(ttn_saver *s)
{
    if (!s->is_running) return;
    const double begin = ttn_clock_now(NULL);
    pthread_mutex_lock(&s->lock);
    while (!s->is_copied)
        pthread_cond_wait(&s->copied, &s->lock);
    pthread_mutex_unlock(&s->lock);
    s->waited += ttn_clock_now(NULL) - begin;
}

ttn_status ttn_saver_save(ttn_saver *s, const ttn_weights *w, const ttn_named_tensor *more, const ttn_run_state *state,
                          ttn_error *err)
{
    const double begin = ttn_clock_now(NULL);
    ttn_status status = collect(s, NULL, err);
    if (status == TTN_OK) status = ttn_snapshot_take_state(s->snapshot, state, err);
    if (status == TTN_OK && s->options.copy_first) status = ttn_snapshot_take_tensors(s->snapshot, w, more, err);
    if (status != TTN_OK) return status;
    s->w = w;
    s->more = more;
    s->is_copied = s->options.copy_first;
    s->is_best = s->next_is_best;
    s->next_is_best = 0;
    s->err = (ttn_error){0};
    s->report = (ttn_saver_report){.step = state->step, .bytes = ttn_snapshot_bytes(s->snapshot)};
    int error = start_thread(s);
    s->waited = ttn_clock_now(NULL) - begin;
    if (error == 0) return TTN_OK;
    return TTN_FAIL(err, TTN_EIO, "step %lld: not saved, because no thread can be started: %s", (long long)state->step,
                    strerror(error));
}

void ttn_saver_mark_best(ttn_saver *s)
{
    s->next_is_best = 1;
}

void ttn_saver_destroy(ttn_saver *s)
{
    if (!s) return;
    if (s->is_running) pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->copied);
    pthread_mutex_destroy(&s->lock);
    ttn_snapshot_destroy(s->snapshot);
    ttn_free(s);
}
