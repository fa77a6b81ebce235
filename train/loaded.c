#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "core/memory.h"
#include "core/text.h"
#include "data/fasta.h"
#include "train/files/run_folder.h"
#include "train/files/safetensors.h"
#include "train/loaded.h"
#include "train/resume.h"
#include "train/train_spec.h"

/* ---- what a path is ---- */

static int is_there(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat about;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 0;
    return stat(path, &about) == 0;
}

/* The best checkpoint of a run; *ret NULL with TTN_OK: it cannot be had, and why has the reason. */
static ttn_status open_best(const char *path, ttn_checkpoint **ret, ttn_error *why, ttn_error *err)
{
    char best[PATH_MAX], name[TTN_STEP_NAME], shown[TTN_TAIL_ROOM];
    ttn_error found = {0};
    int is_other = 0;
    const int64_t step = ttn_run_best(path);
    *ret = NULL;
    if (step < 0) {
        (void)TTN_FAIL(why, TTN_ECHECKPOINT, "none is known as the best, since none was evaluated");
        return TTN_OK;
    }
    if (snprintf(best, sizeof best, "%s/ckpt/%s", path, ttn_step_name(step, name)) >= (int)sizeof best)
        return TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long", ttn_text_tail(path, shown));
    ttn_status status = ttn_checkpoint_open(best, ret, &is_other, &found);
    if (status == TTN_OK) return TTN_OK;
    if (status != TTN_ECHECKPOINT || is_other) return TTN_FAIL(err, status, "%s", found.text);
    (void)TTN_FAIL(why, status, "the best one cannot be used: %s", found.text);
    return TTN_OK;
}

static ttn_status open_run(const char *path, const ttn_log *log, ttn_checkpoint **ret, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    ttn_error why = {0};
    ttn_text_tail(path, shown);
    ttn_status status = open_best(path, ret, &why, err);
    if (status != TTN_OK || *ret) return status;
    status = ttn_run_newest(path, log, ret, err);
    if (status == TTN_OK && !*ret)
        status = TTN_FAIL(err, TTN_ECHECKPOINT, "%s: this run has not saved a checkpoint yet", shown);
    if (status == TTN_OK)
        ttn_log_say(log, TTN_LOG_WARNING, "%s: the newest checkpoint, step %" PRId64 ", is used: %s", shown,
                    ttn_checkpoint_state(*ret)->step, why.text);
    return status;
}

/* A folder: *ret is its checkpoint. */
static ttn_status open_folder(const char *path, const ttn_log *log, ttn_checkpoint **ret, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    if (is_there(path, "ckpt")) return open_run(path, log, ret, err);
    if (!is_there(path, TTN_MANIFEST_NAME) && is_there(path, "config.json"))
        return TTN_FAIL(err, TTN_ECHECKPOINT,
                        "%s: this is a model of another program (it has a config.json), and none of titin",
                        ttn_text_tail(path, shown));
    if (!is_there(path, TTN_MANIFEST_NAME) && !is_there(path, "model.safetensors"))
        return TTN_FAIL(
            err, TTN_ECHECKPOINT,
            "%s: this folder is no run, which would have a folder ckpt in it, and no checkpoint, which would "
            "have a " TTN_MANIFEST_NAME,
            ttn_text_tail(path, shown));
    return ttn_checkpoint_open(path, ret, NULL, err);
}

/* ---- the configuration ---- */

/* What is wrong with a checkpoint's own configuration is the checkpoint's fault, as long as no setting stands over it. */
static ttn_status read_config(ttn_loaded *m, const ttn_loaded_options *o, const char *text, ttn_error *err)
{
    ttn_config_file file = {.path = o->config};
    if (text) file = (ttn_config_file){.path = "the model's configuration", .text = text, .n = strlen(text)};
    const ttn_config_request request = {
        .presets = ttn_config_presets,
        .file = &file,
        .n_file = 1,
        .argument = o->setting,
        .n_argument = o->n_setting,
    };
    ttn_error why = {0};
    ttn_status status = ttn_config_load(o->table, &request, &m->config, &why);
    if (status == TTN_OK) return TTN_OK;
    if (status == TTN_EINVAL && text && o->n_setting == 0) status = TTN_ECHECKPOINT;
    return TTN_FAIL(err, status, "%s", why.text);
}

static ttn_status read_rules(ttn_loaded *m, ttn_error *err)
{
    const ttn_values *v = ttn_config_values(m->config);
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_fasta_rules fasta;
    ttn_train_spec train;
    ttn_status status = ttn_fasta_rules_of(&reader, &m->own, &fasta, err);
    if (status == TTN_OK) status = ttn_batch_rules_of(&reader, &m->rules, err);
    if (status == TTN_OK) status = ttn_train_spec_read(v, &train, err);
    if (status != TTN_OK) return status;
    m->alphabet = fasta.alphabet;
    m->rules.objective = train.objective;
    m->seed = (uint64_t)train.seed;
    return TTN_OK;
}

/* ---- model and weights ---- */

/* attention.kind=auto was decided by the data of training, which is not here: its checkpoints say how. */
static ttn_status make_model(ttn_loaded *m, const ttn_run_state *state, ttn_error *err)
{
    const ttn_model_use use = {
        .alphabet = m->alphabet,
        .causal = m->rules.objective == TTN_OBJECTIVE_CLM,
        .longest = state ? ttn_standing_longest(state) : 0,
    };
    return ttn_model_spec_of(ttn_config_values(m->config), &use, &m->model, err);
}

/* Names and shapes alone: a file that is of another model is refused before there is memory for this one, however large its
 * configuration says that it is. */
static ttn_status lay_out_weights(ttn_loaded *m, ttn_device *device, ttn_error *err)
{
    ttn_model model;
    ttn_graph *g = ttn_graph_create((ttn_extent){TTN_GRAPH_TILE, 1, TTN_GRAPH_TILE});
    ttn_model_build(g, m->model, TTN_MODEL_LOGITS, &model);
    ttn_status status = ttn_graph_check(g, err);
    if (status == TTN_OK) status = ttn_weights_layout(g, device, &m->weights, err);
    ttn_graph_destroy(g);
    for (int i = 0; status == TTN_OK && i < ttn_weights_count(m->weights); i++) {
        const ttn_weight *w = ttn_weights_at(m->weights, i);
        if (!w->is_state) m->parameters += ttn_desc_numel(&w->desc);
    }
    return status;
}

static ttn_status load_checkpoint(ttn_loaded *m, const ttn_checkpoint *c, const ttn_loaded_options *o, ttn_error *err)
{
    const ttn_run_state *state = ttn_checkpoint_state(c);
    if (o->config)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "%s: a checkpoint brings its own configuration, and %s is not read: leave it out, or set single "
            "keys with KEY=VALUE",
            ttn_checkpoint_path(c), o->config);
    snprintf(m->path, sizeof m->path, "%s", ttn_checkpoint_path(c));
    m->step = state->step;
    ttn_status status = read_config(m, o, state->config, err);
    if (status == TTN_OK) status = read_rules(m, err);
    if (status == TTN_OK) status = make_model(m, state, err);
    if (status == TTN_OK) status = lay_out_weights(m, o->device, err);
    if (status == TTN_OK) status = ttn_checkpoint_compare(c, m->weights, NULL, err);
    if (status == TTN_OK) status = ttn_weights_require(m->weights, TTN_SLAB_VALUE, err);
    return status == TTN_OK ? ttn_checkpoint_load(c, m->weights, NULL, 0, err) : status;
}

/* ---- a file of weights ---- */

static ttn_wanted_tensor wanted_of(const ttn_weight *w)
{
    ttn_wanted_tensor wanted = {.name = w->name, .ndim = w->desc.ndim};
    memcpy(wanted.dim, w->desc.dim, sizeof wanted.dim);
    return wanted;
}

static ttn_status read_tensors(ttn_loaded *m, const ttn_safetensors *s, const ttn_stored_tensor *const *found,
                               ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = 0; i < ttn_weights_count(m->weights) && status == TTN_OK; i++) {
        void *data = ttn_alloc_or_say((int64_t)ttn_weights_at(m->weights, i)->bytes, 1, "one tensor of a file", err);
        if (!data) return TTN_ENOMEM;
        status = ttn_safetensors_read(s, found[i], 0, found[i]->n, TTN_REAL, data, NULL, err);
        if (status == TTN_OK) status = ttn_weights_write(m->weights, i, TTN_SLAB_VALUE, data, err);
        ttn_free(data);
    }
    return status;
}

static ttn_status match_tensors(ttn_loaded *m, const ttn_safetensors *s, ttn_error *err)
{
    const int n = ttn_weights_count(m->weights);
    ttn_match match;
    ttn_wanted_tensor *wanted = ttn_alloc_or_say(n, sizeof *wanted, "the names of a model's tensors", err);
    const ttn_stored_tensor **found = ttn_alloc_or_say(n, sizeof *found, "the tensors of a file", err);
    ttn_status status = wanted && found ? TTN_OK : TTN_ENOMEM;
    for (int i = 0; i < n && status == TTN_OK; i++)
        wanted[i] = wanted_of(ttn_weights_at(m->weights, i));
    if (status == TTN_OK) status = ttn_safetensors_match(s, wanted, n, found, &match, err);
    if (status == TTN_OK) status = ttn_weights_require(m->weights, TTN_SLAB_VALUE, err);
    if (status == TTN_OK) status = read_tensors(m, s, found, err);
    ttn_free(found);
    ttn_free(wanted);
    return status;
}

static ttn_status load_file(ttn_loaded *m, const char *path, const ttn_loaded_options *o, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    ttn_safetensors *s = NULL;
    if (snprintf(m->path, sizeof m->path, "%s", path) >= (int)sizeof m->path)
        return TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long", ttn_text_tail(path, shown));
    ttn_status status = ttn_safetensors_open(path, &(ttn_safetensors_options){.log = o->log}, &s, err);
    if (status == TTN_OK && !o->config)
        status = TTN_FAIL(err, TTN_EINVAL,
                          "%s: a file of weights does not say what model they are of: name its configuration "
                          "(--config run.yaml), or the folder of the checkpoint in which it lies",
                          ttn_text_tail(path, shown));
    if (status == TTN_OK) status = read_config(m, o, NULL, err);
    if (status == TTN_OK) status = read_rules(m, err);
    if (status == TTN_OK) status = make_model(m, NULL, err);
    if (status == TTN_OK) status = lay_out_weights(m, o->device, err);
    if (status == TTN_OK) status = match_tensors(m, s, err);
    ttn_safetensors_close(s);
    return status;
}

/* ---- all of it ---- */

static ttn_status load(ttn_loaded *m, const char *path, const ttn_loaded_options *o, ttn_error *err)
{
    struct stat about;
    char shown[TTN_TAIL_ROOM];
    if (stat(path, &about) != 0)
        return TTN_FAIL(err, TTN_EINVAL, "%s: there is no such run, checkpoint or file", ttn_text_tail(path, shown));
    if (!S_ISDIR(about.st_mode)) return load_file(m, path, o, err);
    ttn_checkpoint *c = NULL;
    ttn_status status = open_folder(path, o->log, &c, err);
    if (status == TTN_OK) status = load_checkpoint(m, c, o, err);
    ttn_checkpoint_close(c);
    return status;
}

ttn_status ttn_loaded_open(const char *path, const ttn_loaded_options *o, ttn_loaded **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_loaded *m = ttn_alloc_or_say(1, sizeof *m, "a model", err);
    if (!m) return TTN_ENOMEM;
    m->step = -1;
    ttn_status status = load(m, path, o, err);
    if (status == TTN_OK)
        *ret = m;
    else
        ttn_loaded_close(m);
    return status;
}

void ttn_loaded_close(ttn_loaded *m)
{
    if (!m) return;
    ttn_weights_destroy(m->weights);
    ttn_model_spec_destroy(m->model);
    ttn_config_destroy(m->config);
    ttn_free(m);
}
