#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "autograd/ops/xent.h"
#include "autograd/renew.h"
#include "autograd/statistics.h"
#include "core/memory.h"
#include "data/loader.h"
#include "train/budget.h"
#include "train/run_batch.h"
#include "train/shards.h"
#include "train/trainer.h"

/* Batches that wait while one is computed with. */
enum { READY = 2 };

struct ttn_trainer {
    ttn_trainer_options options;
    ttn_stream on;
    ttn_graph *graph;
    ttn_model model;
    ttn_weights *weights;
    ttn_statistics *statistics; /* of the last step */
    ttn_memory *memory;
    ttn_plan *plan;
    ttn_shards *shards;
    ttn_optim *optim;
    ttn_sampler *sampler;
    ttn_loader *loader; /* NULL: it does not run; then the sampler is this thread's */
    ttn_trainer_state state;
};

/* ---- creation ---- */

/* States of attention kinds (random projections) after so many updates: before the first step, when a run goes on, and
 * after every optimizer step, never between micro-batches; with the statistics of the step, if one was just made. */
static ttn_status renew_states(ttn_trainer *t, int64_t updates, ttn_error *err)
{
    const ttn_renew_stats stats = {.of = ttn_statistics_of, .ctx = t->statistics};
    return ttn_renew(t->graph, t->weights, t->options.seed, updates, &stats, err);
}

static ttn_status create_model(ttn_trainer *t, ttn_error *err)
{
    const ttn_trainer_options *o = &t->options;
    t->graph = ttn_graph_create(o->capacity.extent);
    ttn_model_build(t->graph, o->model, TTN_MODEL_LOSS, &t->model);
    ttn_status status = ttn_graph_check(t->graph, err);
    if (status == TTN_OK) status = ttn_weights_create(t->graph, o->device, &t->weights, err);
    if (status == TTN_OK) status = ttn_model_init(o->model, t->weights, o->seed, err);
    if (status == TTN_OK) status = ttn_statistics_create(t->graph, &t->statistics, err);
    return status == TTN_OK ? renew_states(t, 0, err) : status;
}

static ttn_status create_plan(ttn_trainer *t, ttn_error *err)
{
    const ttn_trainer_options *o = &t->options;
    ttn_status status = o->device->ops->memory_create(o->device, 0, o->budget, &t->memory, err);
    if (status != TTN_OK) return status;
    const ttn_plan_options plan = {
        .loss = &t->model.loss,
        .n_loss = 1,
        .stat = &t->model.loss,
        .n_stat = 1,
        .budget = o->budget,
        .n_thread = o->n_thread,
        .device = o->device,
        .memory = t->memory,
    };
    ttn_error why = {0};
    status = ttn_plan_create(t->graph, &plan, &t->plan, &why);
    if (status == TTN_ENOMEM) return ttn_budget_advise(&why, o->budget, &o->rules, &o->capacity, err);
    if (status != TTN_OK) return TTN_FAIL(err, status, "%s", why.text);
    return ttn_plan_attach(t->plan, t->weights, err);
}

static ttn_status create_optimizer(ttn_trainer *t, ttn_error *err)
{
    const ttn_trainer_options *o = &t->options;
    const ttn_plan_report *report = ttn_plan_report_of(t->plan);
    ttn_status status =
        ttn_optim_create(&o->optim, t->weights, &t->on, report->untrained, report->n_untrained, &t->optim, err);
    return status == TTN_OK ? ttn_shards_create(t->weights, &t->on, o->shards, &t->shards, err) : status;
}

static ttn_status create_sampler(const ttn_trainer *t, ttn_sampler **ret, ttn_error *err)
{
    const ttn_trainer_options *o = &t->options;
    return ttn_sampler_create(
        &(ttn_sampler_options){
            .from = o->from,
            .side = o->side,
            .rules = o->rules,
            .capacity = o->capacity,
            .seed = o->seed,
            .epochs = o->epochs,
            .shards = o->shards,
            .n_shard = o->shards,
        },
        ret, err);
}

ttn_status ttn_trainer_create(const ttn_trainer_options *o, ttn_trainer **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_trainer *t = ttn_alloc_or_say(1, sizeof *t, "training", err);
    if (!t) return TTN_ENOMEM;
    assert(o->budget > 0 && o->budget != TTN_NO_BUDGET);
    t->options = *o;
    t->on = (ttn_stream){.device = o->device, .n_thread = o->n_thread};
    ttn_status status = create_model(t, err);
    if (status == TTN_OK) status = create_plan(t, err);
    if (status == TTN_OK) status = create_optimizer(t, err);
    if (status == TTN_OK) status = create_sampler(t, &t->sampler, err);
    if (status == TTN_OK)
        *ret = t;
    else
        ttn_trainer_destroy(t);
    return status;
}

static void stop_loading(ttn_trainer *t)
{
    ttn_loader_destroy(t->loader);
    t->loader = NULL;
}

void ttn_trainer_destroy(ttn_trainer *t)
{
    if (!t) return;
    stop_loading(t);
    ttn_sampler_destroy(t->sampler);
    ttn_optim_destroy(t->optim);
    ttn_shards_destroy(t->shards);
    ttn_plan_destroy(t->plan);
    if (t->memory) t->options.device->ops->memory_destroy(t->memory);
    ttn_statistics_destroy(t->statistics);
    ttn_weights_destroy(t->weights);
    ttn_graph_destroy(t->graph);
    ttn_free(t);
}

/* ---- a step ---- */

/* The loader runs ahead, so it starts where the last step ended. */
static ttn_status start_loading(ttn_trainer *t, ttn_error *err)
{
    if (t->loader) return TTN_OK;
    ttn_status status = ttn_sampler_seek(t->sampler, t->state.next, err);
    return status == TTN_OK ? ttn_loader_create(t->sampler, READY, &t->loader, err) : status;
}

/* Sums over the micro-batches of a step. */
typedef struct {
    double loss, right;
    ttn_step step;
    ttn_cursor next;
} sums;

static void add_batch(sums *s, const ttn_batch *b)
{
    s->step.targets += b->targets;
    s->step.residues += b->residues;
    s->step.sequences += b->used.seqs;
    s->step.cropped += b->cropped;
    s->step.rows += b->used.rows;
    s->next = b->next;
}

/* Gradients of one micro-batch to the slab, its loss to the sums. One without targets has neither. */
static ttn_status compute(ttn_trainer *t, const ttn_batch *b, sums *s, ttn_error *err)
{
    if (b->targets == 0) {
        const size_t bytes = (size_t)ttn_weights_slab_elements(t->weights) * ttn_dtype_size(TTN_REAL);
        real *gradient = ttn_weights_slab(t->weights, TTN_SLAB_GRADIENT);
        return t->options.device->ops->fill(&t->on, gradient, 0, bytes, err);
    }
    const ttn_run_batch_when when = {
        .seed = t->options.seed,
        .step = t->state.steps,
        .is_training = 1,
    };
    ttn_status status = ttn_run_batch(t->plan, b, &when, err);
    if (status != TTN_OK) return status;
    int n_stat;
    const double *stat = ttn_plan_stat(t->plan, t->model.loss, &n_stat);
    s->loss += stat[TTN_XENT_SUM];
    s->right += stat[TTN_XENT_CORRECT];
    ttn_statistics_add(t->statistics, t->plan);
    return TTN_OK;
}

static ttn_status run_shards(ttn_trainer *t, sums *s, ttn_error *err)
{
    ttn_status status = TTN_OK;
    ttn_statistics_start(t->statistics);
    for (int64_t shard = 0; shard < t->options.shards && status == TTN_OK; shard++) {
        const ttn_batch *b;
        status = ttn_loader_next(t->loader, &b, err);
        if (status != TTN_OK) break;
        if (shard == 0) s->step.at = b->at;
        status = compute(t, b, s, err);
        if (status == TTN_OK) status = ttn_shards_add(t->shards, err);
        add_batch(s, b);
    }
    return status;
}

/* What the moments have seen. */
static int64_t updates_of(const ttn_trainer_state *s)
{
    return s->steps - s->skipped;
}

/* The optimizer's part; a step without a target changes nothing. */
static ttn_status change_weights(ttn_trainer *t, sums *s, ttn_error *err)
{
    ttn_step *step = &s->step;
    step->lr = ttn_schedule_lr(&t->options.schedule, step->step);
    step->norm = step->targets > 0 ? (double)NAN : 0;
    step->is_skipped = !isfinite(s->loss);
    if (step->targets == 0 || step->is_skipped) return TTN_OK;
    if (t->options.before_change) t->options.before_change(t->options.ctx);
    const int64_t updates = updates_of(&t->state);
    const ttn_optim_when when = {
        .step = updates,
        .lr = step->lr,
        .count = (double)step->targets,
    };
    ttn_optim_result result;
    ttn_status status = ttn_optim_step(t->optim, &when, &result, err);
    step->norm = result.norm;
    step->is_skipped = !result.is_finite;
    return status == TTN_OK && !step->is_skipped ? renew_states(t, updates + 1, err) : status;
}

static void advance(ttn_trainer_state *p, const sums *s)
{
    p->steps++;
    p->skipped += s->step.is_skipped;
    p->in_a_row = s->step.is_skipped ? p->in_a_row + 1 : 0;
    p->residues += s->step.residues;
    p->next = s->next;
}

ttn_status ttn_trainer_step(ttn_trainer *t, ttn_step *ret, ttn_error *err)
{
    *ret = (ttn_step){0};
    ttn_status status = start_loading(t, err);
    if (status != TTN_OK) return status;
    const double waited = ttn_loader_waited(t->loader);
    sums s = {.step = {.step = t->state.steps}};
    status = run_shards(t, &s, err);
    if (status == TTN_OK) {
        s.step.loss = s.loss / (double)s.step.targets;
        s.step.accuracy = s.right / (double)s.step.targets;
        s.step.waited = ttn_loader_waited(t->loader) - waited;
        status = change_weights(t, &s, err);
    }
    if (status != TTN_OK) {
        ttn_shards_restart(t->shards);
        stop_loading(t);
        return status;
    }
    advance(&t->state, &s);
    *ret = s.step;
    return TTN_OK;
}

/* ---- where it stands ---- */

ttn_trainer_state ttn_trainer_where(const ttn_trainer *t)
{
    return t->state;
}

ttn_status ttn_trainer_go_on(ttn_trainer *t, const ttn_trainer_state *p, ttn_error *err)
{
    stop_loading(t);
    ttn_status status = ttn_sampler_seek(t->sampler, p->next, err);
    if (status != TTN_OK) return status;
    t->state = *p;
    ttn_statistics_start(t->statistics);
    return renew_states(t, updates_of(p), err);
}

ttn_weights *ttn_trainer_weights(const ttn_trainer *t)
{
    return t->weights;
}

const ttn_statistics *ttn_trainer_statistics(const ttn_trainer *t)
{
    return t->statistics;
}

const ttn_plan_report *ttn_trainer_plan(const ttn_trainer *t)
{
    return ttn_plan_report_of(t->plan);
}

ttn_memory *ttn_trainer_memory(const ttn_trainer *t)
{
    return t->memory;
}

/* ---- a step that went wrong ---- */

ttn_status ttn_trainer_batches_of(const ttn_trainer *t, const ttn_step *step, ttn_batch_taker take, void *ctx,
                                  ttn_error *err)
{
    ttn_sampler *sampler = NULL;
    ttn_batch *b = NULL;
    ttn_status status = create_sampler(t, &sampler, err);
    if (status == TTN_OK) status = ttn_batch_create(ttn_sampler_capacity(sampler), &b, err);
    if (status == TTN_OK) status = ttn_sampler_seek(sampler, step->at, err);
    for (int64_t shard = 0; shard < t->options.shards && status == TTN_OK; shard++) {
        status = ttn_sampler_next(sampler, b, err);
        if (status == TTN_OK) status = take(ctx, b, err);
    }
    ttn_batch_destroy(b);
    ttn_sampler_destroy(sampler);
    return status;
}

typedef struct {
    ttn_trainer *t;
    const ttn_step *step;
    int64_t shard, found;
    ttn_error *why;
} trap;

/* A ttn_batch_taker. */
static ttn_status run_trapped(void *ctx, const ttn_batch *b, ttn_error *err)
{
    trap *c = ctx;
    const int64_t shard = c->shard++;
    if (c->found >= 0 || b->targets == 0) return TTN_OK;
    const ttn_run_batch_when when = {
        .seed = c->t->options.seed,
        .step = c->step->step,
        .is_training = 1,
    };
    ttn_error failure = {0};
    ttn_status status = ttn_run_batch(c->t->plan, b, &when, &failure);
    if (status == TTN_ENUMERIC) {
        c->found = shard;
        *c->why = failure;
    } else if (status != TTN_OK) {
        if (err) *err = failure;
        return status;
    }
    return TTN_OK;
}

ttn_status ttn_trainer_trap(ttn_trainer *t, const ttn_step *step, int64_t *ret_shard, ttn_error *why, ttn_error *err)
{
    trap c = {.t = t, .step = step, .found = -1, .why = why};
    ttn_plan_trap(t->plan, 1);
    ttn_status status = ttn_trainer_batches_of(t, step, run_trapped, &c, err);
    ttn_plan_trap(t->plan, 0);
    *ret_shard = c.found;
    return status;
}
