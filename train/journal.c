#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/memory.h"
#include "train/files/event_file.h"
#include "train/files/metrics_log.h"
#include "train/files/run_folder.h"
#include "train/journal.h"

struct ttn_journal {
    ttn_metrics_log *lines;
    ttn_event_file *events;
    ttn_history history;
    const ttn_log *log;
    int is_refused; /* the disk took no record, and that was said */
};

/* A ttn_metrics_taker. */
static ttn_status keep(void *ctx, const ttn_metrics *r, ttn_error *err)
{
    ttn_journal *j = ctx;
    return ttn_history_add(&j->history, r, err);
}

ttn_status ttn_journal_open(const char *run, int64_t step, const ttn_clock *clock, const ttn_log *log,
                            ttn_journal **ret, ttn_error *err)
{
    char path[PATH_MAX], host[HOST_NAME_MAX + 1] = "";
    *ret = NULL;
    ttn_journal *j = ttn_alloc_or_say(1, sizeof *j, "the journal of the run", err);
    if (!j) return TTN_ENOMEM;
    j->log = log;
    (void)gethostname(host, sizeof host - 1); /* a name in a file's name; without it the file is as good */
    ttn_status status = ttn_run_path(run, TTN_RUN_METRICS, path, err);
    if (status == TTN_OK) status = ttn_metrics_log_open(path, step, keep, j, clock, log, &j->lines, err);
    if (status == TTN_OK) status = ttn_run_path(run, TTN_RUN_EVENTS, path, err);
    /* Records bear the number of steps that are done, so the next one is of step + 1, and those of `step` stay. */
    if (status == TTN_OK) status = ttn_event_file_create(path, host, step + 1, clock, &j->events, err);
    if (status == TTN_OK)
        *ret = j;
    else
        ttn_journal_close(j);
    return status;
}

void ttn_journal_close(ttn_journal *j)
{
    if (!j) return;
    ttn_metrics_log_close(j->lines);
    ttn_event_file_close(j->events);
    ttn_history_drop(&j->history);
    ttn_free(j);
}

static void warn_once(ttn_journal *j, const ttn_error *why)
{
    if (!j->is_refused) ttn_log_say(j->log, TTN_LOG_WARNING, "what was measured is not written down: %s", why->text);
    j->is_refused = 1;
}

ttn_status ttn_journal_add(ttn_journal *j, const ttn_metrics *r, ttn_error *err)
{
    ttn_error why = {0};
    ttn_status status = ttn_history_add(&j->history, r, err);
    if (status != TTN_OK) return status;
    ttn_status lines = ttn_metrics_log_add(j->lines, r, &why);
    ttn_status events = ttn_event_file_add(j->events, r, &why);
    if (lines == TTN_OK && events == TTN_OK)
        j->is_refused = 0;
    else
        warn_once(j, &why);
    return TTN_OK;
}

void ttn_journal_sync(ttn_journal *j)
{
    ttn_error why = {0};
    if (ttn_metrics_log_sync(j->lines, &why) != TTN_OK) warn_once(j, &why);
}

const ttn_history *ttn_journal_history(const ttn_journal *j)
{
    return &j->history;
}
