/* How a run is set up: every check that needs no data first, then the data, then what takes memory. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/blas.h"
#include "core/disk.h"
#include "core/machine.h"
#include "core/memory.h"
#include "core/start.h"
#include "train/budget.h"
#include "train/files/run_folder.h"
#include "train/run_json.h"
#include "train/targets.h"
#include "train/training_impl.h"
#include "train/unread.h"

/* ---- the folder ---- */

/* Never over what is there: neither over another run nor into somebody's folder. */
static ttn_status check_is_new(const char *folder, ttn_error *err)
{
    struct stat about;
    char path[PATH_MAX];
    int64_t *step = NULL, n = 0;
    ttn_status status = ttn_run_checkpoints(folder, &step, &n, err);
    if (status == TTN_OK && n > 0)
        status = TTN_FAIL(err, TTN_EINVAL,
                          "%s: there is a run, saved at step %" PRId64
                          ": --resume goes on with it; a new one needs another folder, train.out=FOLDER",
                          folder, step[0]);
    ttn_free(step);
    if (status == TTN_OK) status = ttn_run_path(folder, TTN_RUN_CONFIG, path, err);
    if (status == TTN_OK && stat(path, &about) == 0)
        status = TTN_FAIL(err, TTN_EINVAL,
                          "%s: there is a run that was never saved: --resume begins it again; or name another folder, "
                          "train.out=FOLDER",
                          folder);
    return status;
}

/* Nothing is made before all that may be refused has been looked at, so that a run that never started leaves nothing; but
 * where one is to go on, nobody else writes while its checkpoint is looked for. */
static ttn_status open_folder(ttn_training *t, ttn_error *err)
{
    const ttn_training_options *o = &t->options;
    struct stat about;
    if (!o->folder) return TTN_OK;
    if (!o->resumes) return check_is_new(o->folder, err);
    if (stat(o->folder, &about) != 0 && errno == ENOENT) return TTN_OK;
    return ttn_run_folder_open(o->folder, o->clock, o->log, &t->folder, err);
}

/* The folder of a run that begins. Another may have begun in it since the first look. */
static ttn_status make_folder(ttn_training *t, ttn_error *err)
{
    const ttn_training_options *o = &t->options;
    int made;
    if (t->folder) return TTN_OK;
    ttn_status status = TTN_OK;
    if (ttn_disk_make_folders(o->folder, &made) != 0) {
        const int error = errno;
        status = TTN_FAIL(err, ttn_disk_fault(error), "%s: cannot be made: %s%s", o->folder, strerror(error),
                          ttn_disk_advice(error));
    }
    if (status == TTN_OK) status = ttn_run_folder_open(o->folder, o->clock, o->log, &t->folder, err);
    if (status == TTN_OK) status = check_is_new(o->folder, err);
    if (status != TTN_OK) ttn_disk_remove_folders(o->folder, made);
    return status;
}

/* ---- the checkpoint that it goes on from ---- */

/* *ret NULL: the run begins. */
static ttn_status find_checkpoint(ttn_training *t, ttn_checkpoint **ret, ttn_error *err)
{
    const ttn_training_options *o = &t->options;
    *ret = NULL;
    if (o->checkpoint) return ttn_checkpoint_open(o->checkpoint, ret, NULL, err);
    if (!o->resumes || !o->folder) return TTN_OK;
    ttn_status status = ttn_run_newest(o->folder, o->log, ret, err);
    if (status != TTN_OK) return status;
    if (!*ret) {
        ttn_log_say(o->log, TTN_LOG_INFO, "%s has no checkpoint: the run begins", o->folder);
        return TTN_OK;
    }
    return ttn_resume_check(o->table, ttn_checkpoint_state(*ret)->config, o->config, o->may_change, o->log, err);
}

static ttn_status go_on(ttn_training *t, const ttn_checkpoint *c, ttn_error *err)
{
    ttn_standing_room room;
    ttn_run_state now;
    const ttn_run_state *then = ttn_checkpoint_state(c);
    const int64_t longest = t->standing.longest;
    ttn_status status = ttn_standing_read(then, &t->standing, err);
    t->standing.longest = longest;
    if (status == TTN_OK) status = ttn_checkpoint_load(c, ttn_trainer_weights(t->trainer), NULL, 1, err);
    ttn_error why = {0};
    if (status == TTN_OK && ttn_trainer_go_on(t->trainer, &t->standing.trainer, &why) != TTN_OK)
        status = TTN_FAIL(err, TTN_EINVAL, "%s: the data is not what the run was trained on: %s",
                          ttn_checkpoint_path(c), why.text);
    if (status != TTN_OK) return status;
    t->facts.resumed = t->saved = t->told_saved = then->step;
    ttn_training_state(t, &t->standing, &room, &now);
    t->facts.is_exact = ttn_run_state_is_exact(then, &now, t->options.log);
    return TTN_OK;
}

/* ---- data and model ---- */

static ttn_status open_data(ttn_training *t, ttn_error *err)
{
    const ttn_training_options *o = &t->options;
    const ttn_values *v = ttn_config_values(o->config);
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_training_facts *f = &t->facts;
    const ttn_dataset_options data = {
        .folder = o->beside,
        .listener = o->packing,
        .titin_version = ttn_version(),
        .log = o->log,
    };
    ttn_status status = ttn_dataset_open(v, &data, &t->data, err);
    if (status == TTN_OK) status = ttn_batch_rules_of(&reader, &f->rules, err);
    if (status != TTN_OK) return status;
    f->data = t->data;
    if (!o->checkpoint) status = ttn_dataset_overlap_of(t->data, NULL, NULL, &f->overlap, err);
    if (status != TTN_OK) return status;
    f->rules.objective = t->spec.objective;
    const ttn_sequences *s = ttn_dataset_sequences(t->data);
    const ttn_subset *valid = ttn_dataset_valid(t->data);
    status = ttn_batch_capacity_of(&f->rules, s, ttn_dataset_train(t->data), &f->train, err);
    if (status != TTN_OK || !valid) return status;
    ttn_batch_rules same = f->rules;
    same.max_seqs = f->train.extent.seqs;
    return ttn_batch_capacity_of(&same, s, valid, &f->valid, err);
}

static int64_t longest_piece(const ttn_training *t)
{
    const ttn_training_facts *f = &t->facts;
    int64_t longest = f->train.longest > f->valid.longest ? f->train.longest : f->valid.longest;
    if (f->rules.max_len > 0 && f->rules.max_len < longest) longest = f->rules.max_len;
    return longest + 2; /* with <cls> and <eos> */
}

/* from: the state it goes on from, which keeps the kind of attention that the run began with; NULL: it begins. */
static ttn_status make_spec(ttn_training *t, const ttn_run_state *from, ttn_error *err)
{
    const int64_t then = from ? ttn_standing_longest(from) : 0;
    t->standing.longest = then > 0 ? then : longest_piece(t);
    const ttn_training_facts *f = &t->facts;
    const ttn_model_use use = {
        .alphabet = ttn_dataset_sequences(t->data)->alphabet,
        .causal = t->spec.objective == TTN_OBJECTIVE_CLM,
        .longest = t->standing.longest,
    };
    ttn_status status = ttn_model_spec_of(ttn_config_values(t->options.config), &use, &t->model, err);
    if (status != TTN_OK) return status;
    t->facts.model = t->model;
    ttn_divergence_start(&t->divergence, t->model->vocabulary);
    for (int64_t l = 0; l < t->model->layers; l++) {
        const char *note = ttn_model_note(t->model, l);
        if (note) ttn_log_say(t->options.log, TTN_LOG_WARNING, "%s", note);
    }
    const int64_t positions = f->train.positions > f->valid.positions ? f->train.positions : f->valid.positions;
    if (t->model->places == TTN_PLACES_LEARNED && positions > t->model->max_positions)
        return TTN_FAIL(err, TTN_EINVAL,
                        "model.max_positions: a table of %" PRId64
                        " positions, and pieces of proteins keep their place "
                        "in the whole, up to %" PRId64 ": raise it, or count from each piece's start with "
                        "data.frame=always",
                        t->model->max_positions, positions - 1);
    return TTN_OK;
}

/* Values that the user gave and that the run does not read. Errors come before anything is packed, when the model is not
 * known yet; warnings (log) when it is. */
static ttn_status check_unread(const ttn_training *t, const ttn_log *log, ttn_error *err)
{
    ttn_unread_about about = {.model = t->model};
    ttn_status status = ttn_dataset_names_store(ttn_config_values(t->options.config), &about.is_store, err);
    return status == TTN_OK ? ttn_unread_check(t->options.config, &about, log, err) : status;
}

/* ---- how long ---- */

static ttn_sampler_options sampler_of(const ttn_training *t)
{
    return (ttn_sampler_options){
        .from = ttn_dataset_sequences(t->data),
        .side = ttn_dataset_train(t->data),
        .rules = t->facts.rules,
        .capacity = t->facts.train,
        .seed = (uint64_t)t->spec.seed,
    };
}

static ttn_status check_targets(const ttn_training *t, ttn_error *err)
{
    ttn_sampler_options o = sampler_of(t);
    int found;
    o.epochs = 1;
    ttn_status status = ttn_targets_exist(&o, 0, &found, err);
    if (status != TTN_OK || found) return status;
    return TTN_FAIL(err, TTN_EINVAL,
                    "there is nothing to learn: no residue of the training set has a loss; with "
                    "data.lowercase=exclude-from-loss lower-case residues have none");
}

static ttn_status count_batches(const ttn_training *t, int64_t *ret, ttn_error *err)
{
    ttn_sampler *sampler = NULL;
    const ttn_sampler_options o = sampler_of(t);
    ttn_status status = ttn_sampler_create(&o, &sampler, err);
    if (status == TTN_OK) *ret = ttn_sampler_count(sampler, 0);
    ttn_sampler_destroy(sampler);
    return status;
}

static int64_t rounded_up(double x)
{
    const int64_t n = (int64_t)x;
    return (double)n < x ? n + 1 : n;
}

/* Steps that the run is; of epochs an estimate, since their numbers of batches differ a little. */
static ttn_status measure_length(ttn_training *t, ttn_error *err)
{
    ttn_training_facts *f = &t->facts;
    int64_t batches = 0;
    ttn_status status = count_batches(t, &batches, err);
    if (status != TTN_OK) return status;
    const double residues = (double)(f->train.residues - f->train.left_out);
    const double steps_of_epoch = (double)batches / (double)t->spec.shards;
    if (t->spec.steps > 0) f->steps = t->spec.steps;
    if (t->spec.epochs > 0) f->steps = rounded_up((double)t->spec.epochs * steps_of_epoch);
    if (t->spec.residues > 0) f->steps = rounded_up((double)t->spec.residues / (residues / steps_of_epoch));
    f->epochs = (double)f->steps / steps_of_epoch;
    f->batches = batches;
    f->fill = residues / ((double)batches * (double)f->train.extent.rows);
    return TTN_OK;
}

/* ---- the trainer ---- */

static void settle(void *ctx)
{
    const ttn_training *t = ctx;
    if (t->saver) ttn_saver_settle(t->saver);
}

/* Numbers in the parameters of a model, known before they take any memory. */
static ttn_status count_parameters(ttn_training *t, ttn_error *err)
{
    ttn_model model;
    ttn_weights *w = NULL;
    ttn_graph *g = ttn_graph_create((ttn_extent){TTN_GRAPH_TILE, 1, TTN_GRAPH_TILE});
    ttn_model_build(g, t->model, TTN_MODEL_LOSS, &model);
    ttn_status status = ttn_graph_check(g, err);
    if (status == TTN_OK) status = ttn_weights_layout(g, t->device, &w, err);
    for (int i = 0; w && i < ttn_weights_count(w); i++)
        if (!ttn_weights_at(w, i)->is_state) t->facts.parameters += ttn_desc_numel(&ttn_weights_at(w, i)->desc);
    ttn_weights_destroy(w);
    ttn_graph_destroy(g);
    return status;
}

static ttn_status find_budget(ttn_training *t, size_t *ret, ttn_error *err)
{
    ttn_machine machine;
    ttn_machine_look("", &machine);
    const ttn_budget_request request = {
        .asked = t->spec.memory,
        .parameters = t->facts.parameters,
        .shards = t->spec.shards,
        .ram = machine.ram,
    };
    t->facts.held = ttn_budget_held(&request);
    ttn_status status = ttn_budget_of(&request, ret, err);
    if (status == TTN_OK) t->facts.budget = (int64_t)*ret;
    return status;
}

static ttn_status create_trainer(ttn_training *t, ttn_error *err)
{
    const ttn_values *v = ttn_config_values(t->options.config);
    ttn_trainer_options o = {
        .model = t->model,
        .from = ttn_dataset_sequences(t->data),
        .side = ttn_dataset_train(t->data),
        .device = t->device,
        .rules = t->facts.rules,
        .capacity = t->facts.train,
        .seed = (uint64_t)t->spec.seed,
        .epochs = t->spec.epochs,
        .shards = t->spec.shards,
        .n_thread = t->options.n_thread,
        .before_change = settle,
        .ctx = t,
    };
    ttn_status status = ttn_optim_spec_of(v, &o.optim, err);
    if (status == TTN_OK) status = ttn_schedule_of(v, t->facts.steps, &o.schedule, err);
    if (status == TTN_OK && o.schedule.warmup > t->facts.steps)
        ttn_log_say(t->options.log, TTN_LOG_WARNING,
                    "schedule.warmup has %" PRId64 " steps and the run %" PRId64
                    ": it ends before the learning rate has come to optim.lr",
                    o.schedule.warmup, t->facts.steps);
    if (status == TTN_OK) status = count_parameters(t, err);
    if (status == TTN_OK) status = find_budget(t, &o.budget, err);
    if (status == TTN_OK) status = ttn_trainer_create(&o, &t->trainer, err);
    if (status == TTN_OK) t->facts.plan = ttn_trainer_plan(t->trainer);
    return status;
}

static ttn_status create_evaluator(ttn_training *t, ttn_error *err)
{
    const ttn_subset *valid = ttn_dataset_valid(t->data);
    if (!valid) {
        ttn_log_say(t->options.log, TTN_LOG_WARNING,
                    "nothing is held out (data.valid): nobody will know what the model "
                    "has learned");
        return TTN_OK;
    }
    ttn_evaluator_options o = {
        .model = t->model,
        .weights = ttn_trainer_weights(t->trainer),
        .from = ttn_dataset_sequences(t->data),
        .side = valid,
        .device = t->device,
        .memory = ttn_trainer_memory(t->trainer),
        .rules = t->facts.rules,
        .capacity = t->facts.valid,
        .seed = (uint64_t)t->spec.seed,
        .maskings = t->spec.maskings,
        .n_thread = t->options.n_thread,
        .goes_on = ttn_training_goes_on,
        .ctx = t,
    };
    ttn_status status = ttn_dataset_frequencies(t->data, &o.frequencies, err);
    return status == TTN_OK ? ttn_evaluator_create(&o, &t->evaluator, err) : status;
}

/* ---- room ---- */

/* Where the run's checkpoints are, or, of a run that is not there yet, the folder around it that is. */
static ttn_status find_checkpoints(const char *run, char *ret, ttn_error *err)
{
    struct stat about;
    ttn_status status = ttn_run_path(run, "ckpt", ret, err);
    while (status == TTN_OK && lstat(ret, &about) != 0 && errno == ENOENT) {
        char *slash = strrchr(ret, '/');
        if (!slash) return ttn_run_path(".", "", ret, err);
        slash[slash == ret] = 0; /* the root stays */
    }
    return status;
}

/* How many checkpoints will stay beside those that are there, with the one that is being written. */
static int64_t count_more(const ttn_training *t, int64_t there)
{
    const int64_t left = t->facts.steps - t->standing.trainer.steps, has_best = t->evaluator != NULL;
    const int64_t stay = t->spec.keep + has_best + 1 - there;
    const int64_t saves = (t->spec.save_every > 0 && left > 0 ? left / t->spec.save_every : 0) + 1 + has_best;
    return stay < saves ? stay : saves;
}

/* Before hours of training: one checkpoint can be saved, or that is an error; all that will stay can, or that is a warning. */
static ttn_status try_to_save(const ttn_training *t, const ttn_snapshot *s, ttn_error *err)
{
    const char *run = t->options.folder ? t->options.folder : t->options.planned;
    char folder[PATH_MAX], path[PATH_MAX], name[TTN_STEP_NAME], what[200];
    ttn_error why = {0};
    size_t bytes;
    int64_t *step, n;
    ttn_status status = find_checkpoints(run, folder, err);
    if (status == TTN_OK) status = ttn_run_path(folder, ttn_step_name(t->standing.trainer.steps, name), path, err);
    if (status != TTN_OK) return status;
    status = ttn_checkpoint_try(s, path, &bytes, &why);
    if (status != TTN_OK)
        return TTN_FAIL(err, status, "no checkpoint can be saved, so that training would be lost: %s", why.text);
    status = ttn_run_checkpoints(run, &step, &n, err);
    if (status != TTN_OK) return status;
    ttn_free(step);
    const int64_t more = count_more(t, n);
    snprintf(what, sizeof what,
             "up to %" PRId64 " more checkpoints at once (train.keep=%" PRId64 ", the best, the next)", more,
             (int64_t)t->spec.keep);
    if (more > 1 && ttn_disk_room(folder, (size_t)more * bytes, what, &why) != TTN_OK)
        ttn_log_say(t->options.log, TTN_LOG_WARNING, "%s", why.text);
    return TTN_OK;
}

/* For a run that is only looked at. */
static ttn_status try_planned(const ttn_training *t, ttn_error *err)
{
    ttn_snapshot *s = NULL;
    if (!t->options.planned) return TTN_OK;
    ttn_status status = ttn_run_folder_check(t->options.planned, err);
    if (status == TTN_OK) status = ttn_snapshot_create(ttn_trainer_weights(t->trainer), NULL, NULL, 0, &s, err);
    if (status == TTN_OK) status = try_to_save(t, s, err);
    ttn_snapshot_destroy(s);
    return status;
}

/* ---- what is written ---- */

/* An evaluation that was done before the run was stopped is not done again. */
static void find_last_evaluation(ttn_training *t)
{
    double loss;
    const int64_t step = t->standing.trainer.steps;
    if (ttn_history_at(ttn_journal_history(t->journal), ttn_metric_val_loss, (double)step, &loss)) t->evaluated = step;
}

/* What earlier starts of the run have written down counts as what this one will. */
static void recall_losses(ttn_training *t)
{
    const ttn_series *loss = ttn_history_find(ttn_journal_history(t->journal), ttn_metric_train_loss);
    for (int64_t i = 0; loss && i < loss->n; i++)
        ttn_divergence_add(&t->divergence, (int64_t)loss->step[i], loss->value[i]);
    ttn_divergence_resume(&t->divergence);
    t->told_episode = t->divergence.now.n > 0 ? t->divergence.now.from : -1;
}

static ttn_status write_run(const ttn_training *t, ttn_error *err)
{
    const ttn_training_options *o = &t->options;
    char path[PATH_MAX];
    const ttn_run_start_facts start = {
        .config = t->config,
        .seed = t->spec.seed,
        .data = t->data,
        .overlap = &t->facts.overlap,
        .date = ttn_clock_date(o->clock),
        .step = t->standing.trainer.steps,
        .command = o->command,
        .n_command = o->n_command,
        .titin = ttn_version(),
        .build = o->build,
        .real = TTN_REAL_NAME,
        .device = t->device->ops->name,
        .blas = t->blas.kernel,
        .threads = o->n_thread,
    };
    ttn_status status = ttn_run_path(o->folder, TTN_RUN_CONFIG, path, err);
    if (status == TTN_OK) status = ttn_config_save(o->config, path, err);
    if (status == TTN_OK) status = ttn_run_json_write(o->folder, &start, o->log, err);
    return status;
}

static ttn_status open_files(ttn_training *t, ttn_error *err)
{
    const ttn_training_options *o = &t->options;
    if (!o->folder) return try_planned(t, err);
    const ttn_saver_options saver = {.keep = (int)t->spec.keep, .log = o->log};
    ttn_status status = make_folder(t, err);
    if (status == TTN_OK)
        status = ttn_journal_open(o->folder, t->standing.trainer.steps, o->clock, o->log, &t->journal, err);
    if (status == TTN_OK)
        status = ttn_saver_create(t->folder, ttn_trainer_weights(t->trainer), NULL, NULL, 0, &saver, &t->saver, err);
    if (status == TTN_OK) status = try_to_save(t, ttn_saver_snapshot(t->saver), err);
    if (status == TTN_OK) find_last_evaluation(t);
    if (status == TTN_OK && t->standing.best_step >= 0) ttn_run_restore_best(t->folder, t->standing.best_step);
    if (status == TTN_OK) recall_losses(t);
    return status == TTN_OK ? write_run(t, err) : status;
}

/* ---- all of it ---- */

static ttn_status create(ttn_training *t, ttn_error *err)
{
    const ttn_training_options *o = &t->options;
    ttn_checkpoint *checkpoint = NULL;
    ttn_blas_describe(&t->blas);
    ttn_status status = ttn_train_spec_of(ttn_config_values(o->config), &t->spec, err);
    if (status == TTN_OK) status = ttn_config_resolved(o->config, &t->config, err);
    if (status == TTN_OK) status = ttn_device_cpu(&t->device, err);
    if (status == TTN_OK) status = open_folder(t, err);
    if (status == TTN_OK) status = find_checkpoint(t, &checkpoint, err);
    if (status == TTN_OK) status = check_unread(t, NULL, err);
    if (status == TTN_OK) status = open_data(t, err);
    if (status == TTN_OK) status = make_spec(t, checkpoint ? ttn_checkpoint_state(checkpoint) : NULL, err);
    if (status == TTN_OK) status = check_unread(t, o->log, err);
    if (status == TTN_OK) status = check_targets(t, err);
    if (status == TTN_OK) status = measure_length(t, err);
    if (status == TTN_OK) status = create_trainer(t, err);
    if (status == TTN_OK) status = create_evaluator(t, err);
    if (status == TTN_OK && checkpoint) status = go_on(t, checkpoint, err);
    ttn_checkpoint_close(checkpoint);
    return status == TTN_OK ? open_files(t, err) : status;
}

ttn_status ttn_training_create(const ttn_training_options *o, ttn_training **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_training *t = ttn_alloc_or_say(1, sizeof *t, "a run", err);
    if (!t) return TTN_ENOMEM;
    t->options = *o;
    t->facts = (ttn_training_facts){.folder = o->folder, .resumed = -1, .is_exact = 1, .spec = &t->spec};
    t->standing.best_step = t->evaluated = t->saved = t->told_saved = t->told_episode = -1;
    ttn_status status = create(t, err);
    if (status == TTN_OK)
        *ret = t;
    else
        ttn_training_destroy(t);
    return status;
}

void ttn_training_destroy(ttn_training *t)
{
    if (!t) return;
    ttn_saver_destroy(t->saver); /* first: it reads the weights */
    ttn_journal_close(t->journal);
    ttn_evaluator_destroy(t->evaluator);
    ttn_trainer_destroy(t->trainer);
    ttn_model_spec_destroy(t->model);
    ttn_dataset_close(t->data);
    ttn_device_destroy(t->device);
    ttn_run_folder_close(t->folder);
    free(t->config);
    ttn_free(t);
}
