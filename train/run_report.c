#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include "core/real.h"
#include "core/start.h"
#include "train/files/run_folder.h"
#include "train/look/curve.h"
#include "train/look/report.h"
#include "train/findings.h"
#include "train/run_report.h"
#include "train/training_impl.h"

void ttn_run_report_advise(const ttn_training *t, ttn_advice *ret)
{
    const ttn_training_facts *f = &t->facts;
    const double all = t->all.seconds;
    const ttn_course course = {
        .sequences = f->train.sequences,
        .cropped = f->train.cropped,
        .max_len = f->rules.max_len,
        .batches = f->batches,
        .skipped = t->standing.trainer.skipped,
        .fill = f->fill,
        .wait = all > 0 ? t->all.waited / all : 0,
        .has_diverged = ttn_training_has_diverged(t) || ttn_divergence_is_told(&t->divergence),
        .episode = t->divergence.worst,
    };
    *ret = (ttn_advice){0};
    ttn_advise(ttn_journal_history(t->journal), &course, ret);
}

/* ---- facts of the report ---- */

static void tell_data(const ttn_training *t, ttn_facts *f)
{
    const ttn_training_facts *run = &t->facts;
    const ttn_store_facts *d = ttn_dataset_facts(t->data);
    char hash[TTN_HASH_TEXT];
    ttn_facts_text(f, "store", "%s", ttn_dataset_path(t->data));
    ttn_facts_text(f, "xxh3_128", "%s", ttn_hash_print(d->identity, hash));
    ttn_facts_integer(f, "sequences", d->sequences);
    ttn_facts_integer(f, "residues", d->residues);
    ttn_facts_integer(f, "shortest", d->shortest);
    ttn_facts_integer(f, "median", ttn_dataset_median(t->data));
    ttn_facts_integer(f, "longest", d->longest);
    ttn_findings_tell(d, f);
    ttn_facts_text(f, "split", "%s", ttn_dataset_split(t->data));
    ttn_facts_integer(f, "trained_on", run->train.sequences);
    ttn_facts_integer(f, "held_out", run->valid.sequences);
    ttn_overlap_tell(&run->overlap, f);
    ttn_facts_integer(f, "cropped", run->train.cropped);
    ttn_facts_integer(f, "rows_of_a_batch", run->train.extent.rows);
    ttn_facts_real(f, "filled", run->fill);
}

static void tell_environment(const ttn_training *t, ttn_facts *f)
{
    const ttn_training_options *o = &t->options;
    char command[1024] = "";
    size_t n = 0;
    for (int i = 0; i < o->n_command && n < sizeof command; i++)
        n += (size_t)snprintf(command + n, sizeof command - n, "%s%s", i > 0 ? " " : "", o->command[i]);
    ttn_facts_text(f, "command", "%s", command);
    ttn_facts_text(f, "titin", "%s", ttn_version());
    ttn_facts_text(f, "build", "%s", o->build ? o->build : "");
    ttn_facts_text(f, "precision", "%s", TTN_REAL_NAME);
    ttn_facts_text(f, "device", "%s", t->device->ops->name);
    ttn_facts_integer(f, "threads", o->n_thread);
    ttn_facts_text(f, "blas", "%s", t->blas.config);
    ttn_facts_text(f, "blas_kernel", "%s", t->blas.kernel);
    ttn_facts_integer(f, "parameters", t->facts.parameters);
    ttn_facts_bytes(f, "memory_predicted", (int64_t)t->facts.plan->bytes + t->facts.held);
    ttn_facts_integer(f, "seed", t->spec.seed);
}

/* ---- files ---- */

static ttn_status write_report(const ttn_training *t, ttn_facts *data, ttn_facts *environment, ttn_error *err)
{
    char path[PATH_MAX], state[64];
    ttn_advice advice;
    ttn_run_report_advise(t, &advice);
    tell_data(t, data);
    tell_environment(t, environment);
    const int64_t steps = t->standing.trainer.steps;
    snprintf(state, sizeof state, "step %" PRId64 " of %" PRId64, steps,
             steps > t->facts.steps ? steps : t->facts.steps);
    const ttn_report report = {
        .run = t->facts.folder,
        .state = state,
        .date = ttn_clock_date(t->options.clock),
        .history = ttn_journal_history(t->journal),
        .data = data,
        .environment = environment,
        .config = t->config,
        .resume = t->options.resume,
        .advice = &advice,
    };
    ttn_status status = ttn_run_path(t->facts.folder, TTN_RUN_REPORT, path, err);
    return status == TTN_OK ? ttn_report_save(&report, path, err) : status;
}

static ttn_status write_both(const ttn_training *t, ttn_error *err)
{
    char path[PATH_MAX];
    ttn_facts *data = NULL, *environment = NULL;
    const ttn_history *h = ttn_journal_history(t->journal);
    ttn_status status = ttn_run_path(t->facts.folder, TTN_RUN_CURVE, path, err);
    if (status == TTN_OK && ttn_curve_is_there(h, TTN_CURVE_LOSS))
        status = ttn_curve_save(h, TTN_CURVE_LOSS, t->facts.folder, path, err);
    if (status == TTN_OK) status = ttn_facts_create(&data, err);
    if (status == TTN_OK) status = ttn_facts_create(&environment, err);
    if (status == TTN_OK) status = write_report(t, data, environment, err);
    ttn_facts_destroy(data);
    ttn_facts_destroy(environment);
    return status;
}

void ttn_run_report_write(const ttn_training *t)
{
    ttn_error err = {0};
    if (write_both(t, &err) != TTN_OK)
        ttn_log_say(t->options.log, TTN_LOG_WARNING, "curves and report are not as they should be: %s", err.text);
}
