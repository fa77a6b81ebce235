#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/blas.h"
#include "core/builder.h"
#include "core/real.h"
#include "train/cli/screens_of_run.h"
#include "train/run_report.h"
#include "train/show_fact.h"

/* ---- the first screen ---- */

enum { TEXT = 256 };

/* "OpenBLAS 0.3.21, kernel Zen" */
static void tell_blas(char *ret)
{
    ttn_blas_info blas;
    ttn_blas_describe(&blas);
    const char *space = strchr(blas.config, ' ');
    const size_t n = space ? (size_t)(space - blas.config) + 1 + strcspn(space + 1, " ") : strlen(blas.config);
    snprintf(ret, TEXT, "%.*s, kernel %s", (int)n, blas.config, blas.kernel);
}

/* "exact, favor": the kinds of a model, each once. */
static void tell_attention(const ttn_model_spec *m, char *ret)
{
    size_t n = 0;
    ret[0] = 0;
    for (int64_t l = 0; l < m->layers; l++) {
        int is_new = 1;
        for (int64_t k = 0; k < l; k++)
            is_new &= strcmp(m->attention[k].kind, m->attention[l].kind) != 0;
        if (is_new && n < TEXT)
            n += (size_t)snprintf(ret + n, TEXT - n, "%s%s", n > 0 ? ", " : "", m->attention[l].kind);
    }
}

/* Name of the first file that the data came from, and how many more there are. */
static void tell_source(const ttn_store_facts *d, char *ret)
{
    const char *name = d->n_source > 0 ? d->source[0].name : "";
    const char *slash = strrchr(name, '/');
    snprintf(ret, TEXT, "%s%s", slash ? slash + 1 : name, d->n_source > 1 ? " …" : "");
}

/* "titin data info run/data/a-0123.h5": *ret is the caller's (free); NULL without memory. */
static char *command_on(const char *command, const char *path)
{
    ttn_builder b = {0};
    char *ret;
    ttn_build(&b, "titin data %s ", command);
    ttn_build_word(&b, path);
    return ttn_builder_finish(&b, "the command that shows the data", &ret, NULL) == TTN_OK ? ret : NULL;
}

static int64_t count_forward(const ttn_plan_report *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->n_step; i++)
        n += p->step[i].kind == TTN_STEP_FORWARD;
    return n;
}

void ttn_screens_start(const ttn_terminal *t, ttn_training *run, const ttn_training_options *o, const char *folder)
{
    const ttn_training_facts *f = ttn_training_facts_of(run);
    const ttn_store_facts *d = ttn_dataset_facts(f->data);
    char blas[TEXT], attention[TEXT], source[TEXT];
    tell_blas(blas);
    tell_attention(f->model, attention);
    tell_source(d, source);
    ttn_findings found;
    ttn_findings_of(d, &found);
    char *info = command_on("info", ttn_dataset_path(f->data));
    char *check = found.source ? command_on("check", found.source->name) : NULL;
    const ttn_run_start s = {
        .run = folder,
        .resumed = f->resumed > 0 ? f->resumed : 0,
        .device = "CPU",
        .threads = o->n_thread,
        .blas = blas,
        .real = TTN_REAL_NAME,
        .data =
            {
                .source = source,
                .files = d->n_source,
                .sequences = d->sequences,
                .residues = d->residues,
                .shortest = d->shortest,
                .median = ttn_dataset_median(f->data),
                .longest = d->longest,
                .train = f->train.sequences,
                .valid = f->valid.sequences,
                .split = ttn_dataset_split(f->data),
                .cropped = f->train.cropped,
                .max_len = f->rules.max_len,
                .found = &found,
                .info = info,
                .check = check,
                .overlap = f->overlap,
            },
        .model =
            {
                .layers = f->model->layers,
                .width = f->model->layer.width,
                .heads = f->model->layer.heads,
                .vocabulary = f->model->vocabulary,
                .parameters = f->parameters,
                .attention = attention,
            },
        .memory =
            {
                .values = (int64_t)f->plan->bytes,
                .budget = f->budget,
                .held = f->held,
                .blocks = count_forward(f->plan),
                .recomputed = f->plan->n_again,
                .more = f->plan->done / f->plan->useful - 1,
            },
        .batch =
            {
                .rows = f->train.extent.rows,
                .seqs = f->train.extent.seqs,
                .shards = f->spec->shards,
                .fill = f->fill,
            },
        .steps = f->steps,
        .eval_every = f->spec->eval_every,
        .save_every = f->spec->save_every,
        .epochs = f->epochs,
    };
    ttn_screen_start(t, &s);
    fflush(t->out);
    free(info);
    free(check);
}

/* ---- lines ---- */

char *ttn_screens_progress(const ttn_training_event *e, int width, char *text)
{
    const ttn_progress p = {
        .step = e->done,
        .steps = e->steps,
        .loss = e->step->loss,
        .ema = e->ema,
        .accuracy = e->step->accuracy,
        .grad_norm = e->step->norm,
        .lr = e->step->lr,
        .residues_per_s = e->residues_per_s,
        .peak = e->peak,
        .memory = (double)e->memory,
        .left = e->left,
    };
    return ttn_progress_text(&p, width, text);
}

/* "2.8040"; what is far beyond any loss as a power. */
static const char *loss_text(double loss, char *text)
{
    const double plain = 1e6;
    snprintf(text, TTN_SHOW_NUMBER, fabs(loss) < plain ? "%.4f" : "%.3e", loss);
    return text;
}

char *ttn_screens_evaluated(const ttn_training_event *e, char *text)
{
    const ttn_validation_part *h = &e->validation->hidden;
    char error[TTN_SHOW_NUMBER + 8] = ""; /* a single protein has none */
    char ppl[TTN_SHOW_NUMBER], frequency[TTN_SHOW_NUMBER], composition[TTN_SHOW_NUMBER], loss[TTN_SHOW_NUMBER];
    if (isfinite(h->loss.error)) snprintf(error, sizeof error, " ± %s", loss_text(h->loss.error, loss));
    ttn_show_perplexity(h->loss.mean, 3, ppl);
    ttn_show_perplexity(h->frequency.mean, 3, frequency);
    ttn_show_perplexity(h->composition.mean, 3, composition);
    snprintf(text, TTN_SCREENS_LINE,
             "step %" PRId64 ": held out, ppl %s (loss %s%s, accuracy %.3f); by frequencies %s, by composition %s%s",
             e->done, ppl, loss_text(h->loss.mean, loss), error, h->accuracy.mean, frequency, composition,
             e->is_best ? "; the best so far" : "");
    return text;
}

char *ttn_screens_evaluating(double part, char *text)
{
    snprintf(text, TTN_SCREENS_LINE, "evaluating: %.0f %%", 100 * part);
    return text;
}

char *ttn_screens_packing(const ttn_pack_progress *p, char *text)
{
    char bytes[TTN_SHOW_NUMBER], sequences[TTN_SHOW_NUMBER];
    switch (p->phase) {
    case TTN_PACK_READS:
        snprintf(text, TTN_SCREENS_LINE, "packing: %s read, %s sequences", ttn_show_bytes(p->bytes, bytes),
                 ttn_show_count(p->sequences, sequences));
        break;
    case TTN_PACK_CLUSTERS:
        snprintf(text, TTN_SCREENS_LINE, "packing: clusters of %s sequences, %.0f %%",
                 ttn_show_count(p->sequences, sequences), 100 * p->part);
        break;
    case TTN_PACK_CHECKS:
        snprintf(text, TTN_SCREENS_LINE, "packing: reading %s sequences again",
                 ttn_show_count(p->sequences, sequences));
        break;
    }
    return text;
}

/* ---- the last screen ---- */

/* "titin fill run/a MKT_YIAKQ", for a model that predicts hidden residues; else, and without memory, NULL. The caller's
 * (free). */
static char *fill_command(const ttn_training_facts *f)
{
    ttn_builder b = {0};
    char *ret;
    ttn_error err;
    if (f->spec->objective != TTN_OBJECTIVE_MLM) return NULL;
    ttn_build(&b, "titin fill ");
    ttn_build_word(&b, f->folder);
    ttn_build(&b, " MKT_YIAKQ");
    return ttn_builder_finish(&b, "the command that fills", &ret, &err) == TTN_OK ? ret : NULL;
}

void ttn_screens_end(const ttn_terminal *t, ttn_training *run, const char *resume, double seconds)
{
    const ttn_training_facts *f = ttn_training_facts_of(run);
    const ttn_history *h = ttn_training_history(run);
    const ttn_trainer_state at = ttn_trainer_where(ttn_training_trainer(run));
    const ttn_best best = ttn_best_of(h);
    ttn_advice advice;
    ttn_run_report_advise(run, &advice);
    const int has_diverged = ttn_training_has_diverged(run);
    char *fill = resume || has_diverged ? NULL : fill_command(f);
    const ttn_run_end e = {
        .run = f->folder,
        .step = at.steps,
        .steps = f->steps,
        .has_diverged = has_diverged,
        .seconds = seconds,
        .residues = at.residues,
        .best = &best,
        .resume = has_diverged ? NULL : resume,
        .fill = fill,
        .advice = &advice,
    };
    ttn_screen_end(t, &e);
    free(fill);
}
