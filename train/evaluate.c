#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "core/memory.h"
#include "core/text.h"
#include "train/evaluate.h"
#include "train/run_batch.h"
#include "train/targets.h"

struct ttn_evaluator {
    ttn_evaluator_options options;
    ttn_graph *graph;
    ttn_model model;
    ttn_plan *plan;
    ttn_batch *batch;
    ttn_validation *sums;
    real *logits;      /* (R, V) */
    real *loss;        /* (R) */
    uint8_t *right;    /* (R) */
    int64_t *sequence; /* (S) */
    int64_t done;      /* sequences of this run, once for each masking */
};

/* ---- creation ---- */

static ttn_status create_plan(ttn_evaluator *e, ttn_error *err)
{
    const ttn_evaluator_options *o = &e->options;
    e->graph = ttn_graph_create(o->capacity.extent);
    ttn_model_build(e->graph, o->model, TTN_MODEL_LOSS, &e->model);
    const int keep[] = {e->model.logits, e->model.loss_row};
    const ttn_plan_options plan = {
        .keep = keep,
        .n_keep = sizeof keep / sizeof *keep,
        .n_thread = o->n_thread,
        .device = o->device,
        .memory = o->memory,
    };
    ttn_status status = ttn_graph_check(e->graph, err);
    if (status == TTN_OK) status = ttn_plan_create(e->graph, &plan, &e->plan, err);
    return status == TTN_OK ? ttn_plan_attach(e->plan, o->weights, err) : status;
}

static int64_t count_of(const ttn_evaluator_options *o)
{
    return o->side ? ttn_subset_count(o->side) : o->from->n;
}

static ttn_status create_lists(ttn_evaluator *e, ttn_error *err)
{
    const ttn_extent n = e->options.capacity.extent;
    const char *what = "the predictions of a batch";
    e->logits = ttn_alloc_or_say(n.picks, (size_t)e->options.model->vocabulary * sizeof *e->logits, what, err);
    e->loss = ttn_alloc_or_say(n.picks, sizeof *e->loss, what, err);
    e->right = ttn_alloc_or_say(n.picks, sizeof *e->right, what, err);
    e->sequence = ttn_alloc_or_say(n.seqs, sizeof *e->sequence, what, err);
    return e->logits && e->loss && e->right && e->sequence ? TTN_OK : TTN_ENOMEM;
}

static ttn_sampler_options sampler_of(const ttn_evaluator_options *o, int64_t masking)
{
    return (ttn_sampler_options){
        .from = o->from,
        .side = o->side,
        .rules = o->rules,
        .capacity = o->capacity,
        .seed = o->seed,
        .epochs = 1,
        .is_fixed = 1,
        .masking = masking,
    };
}

/* What is counted are residues behind <mask>; of a model that predicts next residues, all. Without one there is no loss. */
static ttn_status check_targets(const ttn_evaluator_options *o, ttn_error *err)
{
    const ttn_mlm_rules *m = &o->rules.mlm;
    const int is_causal = o->rules.objective == TTN_OBJECTIVE_CLM;
    const int64_t n = count_of(o);
    int found = 0;
    ttn_status status = TTN_OK;
    for (int64_t k = 0; k < o->maskings && status == TTN_OK && !found; k++) {
        const ttn_sampler_options sampler = sampler_of(o, k);
        status = ttn_targets_exist(&sampler, !is_causal, &found, err);
    }
    if (status != TTN_OK || found) return status;
    if (!is_causal && m->mask == 0)
        return TTN_FAIL(err, TTN_EINVAL,
                        "mlm.mask=0: no residue is shown as <mask>, and validation counts those alone; set mlm.mask "
                        "above 0, or hold nothing out (data.valid=0)");
    if (is_causal)
        return TTN_FAIL(err, TTN_EINVAL,
                        "validation has nothing to count: of %" PRId64
                        " sequence%s no residue has a loss (data.lowercase)",
                        n, ttn_text_plural(n));
    return TTN_FAIL(
        err, TTN_EINVAL,
        "validation has nothing to count: of %" PRId64
        " sequence%s no residue is shown as <mask> (mlm.rate=%g, mlm.mask=%g, %" PRId64
        " masking%s); hold out more (data.valid), raise mlm.mask or train.maskings (eval: --maskings), or see whether "
        "data.lowercase leaves a residue to predict",
        n, ttn_text_plural(n), m->rate, m->mask, o->maskings, ttn_text_plural(o->maskings));
}

ttn_status ttn_evaluator_create(const ttn_evaluator_options *o, ttn_evaluator **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_evaluator *e = ttn_alloc_or_say(1, sizeof *e, "evaluation", err);
    if (!e) return TTN_ENOMEM;
    e->options = *o;
    ttn_status status = check_targets(o, err);
    if (status == TTN_OK) status = create_plan(e, err);
    if (status == TTN_OK) status = create_lists(e, err);
    if (status == TTN_OK) status = ttn_batch_create(o->capacity.extent, &e->batch, err);
    if (status == TTN_OK) status = ttn_validation_create(count_of(o), &o->frequencies, &e->sums, err);
    if (status == TTN_OK)
        *ret = e;
    else
        ttn_evaluator_destroy(e);
    return status;
}

void ttn_evaluator_destroy(ttn_evaluator *e)
{
    if (!e) return;
    ttn_validation_destroy(e->sums);
    ttn_batch_destroy(e->batch);
    ttn_free(e->logits);
    ttn_free(e->loss);
    ttn_free(e->right);
    ttn_free(e->sequence);
    ttn_plan_destroy(e->plan);
    ttn_graph_destroy(e->graph);
    ttn_free(e);
}

/* ---- a batch ---- */

/* The most probable token; of several the first. */
static int64_t best_of(const real *logit, int64_t n)
{
    int64_t best = 0;
    for (int64_t v = 1; v < n; v++)
        if (logit[v] > logit[best]) best = v;
    return best;
}

/* Which sequence of the validation each of the batch's is. */
static void number_sequences(ttn_evaluator *e)
{
    const ttn_evaluator_options *o = &e->options;
    for (int64_t s = 0; s < e->batch->used.seqs; s++) {
        const int64_t i = (int64_t)(e->batch->sample[s] - o->from->first_sample);
        e->sequence[s] = o->side ? ttn_subset_below(o->side, i) : i;
    }
}

static void judge(ttn_evaluator *e)
{
    const ttn_batch *b = e->batch;
    const int64_t V = e->options.model->vocabulary;
    for (int64_t r = 0; r < b->used.picks; r++)
        e->right[r] = b->index[r] >= 0 && best_of(e->logits + r * V, V) == b->target[r];
    number_sequences(e);
    const ttn_predicted predicted = {
        .batch = b,
        .sequence = e->sequence,
        .loss = e->loss,
        .right = e->right,
        .is_causal = e->options.rules.objective == TTN_OBJECTIVE_CLM,
    };
    ttn_validation_add(e->sums, &predicted);
}

static ttn_status evaluate_batch(ttn_evaluator *e, ttn_error *err)
{
    if (e->batch->targets == 0) return TTN_OK;
    ttn_status status = ttn_run_batch(e->plan, e->batch, &(ttn_run_batch_when){.seed = e->options.seed}, err);
    if (status == TTN_OK) status = ttn_plan_read(e->plan, e->model.logits, e->logits, err);
    if (status == TTN_OK) status = ttn_plan_read(e->plan, e->model.loss_row, e->loss, err);
    if (status == TTN_OK) judge(e);
    return status;
}

/* ---- all of it ---- */

static int goes_on(const ttn_evaluator *e)
{
    const ttn_evaluator_options *o = &e->options;
    const int64_t all = count_of(o) * o->maskings;
    return !o->goes_on || o->goes_on(o->ctx, all > 0 ? (double)e->done / (double)all : 0);
}

static ttn_status evaluate_masking(ttn_evaluator *e, int64_t masking, ttn_error *err)
{
    const ttn_sampler_options options = sampler_of(&e->options, masking);
    ttn_sampler *sampler = NULL;
    ttn_status status = ttn_sampler_create(&options, &sampler, err);
    while (status == TTN_OK) {
        if (!goes_on(e)) {
            status = TTN_FAIL(err, TTN_ESTOPPED, "the evaluation was stopped");
            break;
        }
        status = ttn_sampler_next(sampler, e->batch, err);
        if (status == TTN_OK) status = evaluate_batch(e, err);
        if (status == TTN_OK) e->done += e->batch->used.seqs;
    }
    ttn_sampler_destroy(sampler);
    return status == TTN_EOF ? TTN_OK : status;
}

ttn_status ttn_evaluator_run(ttn_evaluator *e, ttn_validation_result *ret, ttn_error *err)
{
    *ret = (ttn_validation_result){0};
    ttn_validation_clear(e->sums);
    e->done = 0;
    ttn_status status = TTN_OK;
    for (int64_t k = 0; k < e->options.maskings && status == TTN_OK; k++)
        status = evaluate_masking(e, k, err);
    if (status == TTN_OK) ttn_validation_result_of(e->sums, ret);
    return status;
}

const ttn_validation *ttn_evaluator_sums(const ttn_evaluator *e)
{
    return e->sums;
}

ttn_status ttn_evaluator_check_finite(const ttn_evaluator *e, ttn_error *err)
{
    const ttn_evaluator_options *o = &e->options;
    const ttn_sequence_score *score = ttn_validation_scores(e->sums);
    char name[128] = "";
    int64_t n = 0;
    for (int64_t k = count_of(o) - 1; k >= 0; k--) {
        if (isfinite(score[k].hidden.loss) && isfinite(score[k].seen.loss)) continue;
        const int64_t i = o->side ? ttn_subset_at(o->side, k) : k;
        if (o->from->name) o->from->name(o->from->self, i, name, sizeof name);
        n++;
    }
    if (n == 0) return TTN_OK;
    return TTN_FAIL(err, TTN_ENUMERIC,
                    "what this model predicts is not a finite number: the loss of %" PRId64 " of %" PRId64
                    " sequence%s, first of '%.100s'",
                    n, count_of(o), ttn_text_plural(count_of(o)), name);
}
