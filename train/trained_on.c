#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "core/disk.h"
#include "core/memory.h"
#include "data/overlap.h"
#include "data/split.h"
#include "data/sweep.h"
#include "train/files/json.h"
#include "train/files/run_folder.h"
#include "train/trained_on.h"

/* ---- the evaluated sequences ---- */

/* *ret: (d->sequences) their hashes; the caller's (ttn_free). */
static ttn_status hash_sequences(const ttn_eval_data_facts *d, int64_t **ret, ttn_error *err)
{
    const ttn_sequences *s = d->from;
    char letter[TTN_MAX_TOKENS];
    ttn_alphabet_letters(s->alphabet, letter);
    uint8_t *token = ttn_alloc_or_say(d->longest, 1, "the longest sequence", err);
    char *text = ttn_alloc_or_say(d->longest, 1, "the longest sequence", err);
    int64_t *hash = ttn_alloc_or_say(d->sequences, sizeof *hash, "the hashes of sequences", err), n = 0;
    ttn_status status = token && text && hash ? TTN_OK : TTN_ENOMEM;
    for (int64_t i = d->side ? ttn_subset_next(d->side, 0) : 0; status == TTN_OK && i >= 0 && i < s->n;
         i = d->side ? ttn_subset_next(d->side, i + 1) : i + 1) {
        const int64_t length = s->length(s->self, i);
        status = s->tokens(s->self, i, 0, length, token, err);
        if (status == TTN_OK) hash[n] = ttn_store_hash_of(letter, token, length, text);
        n++;
    }
    ttn_free(token);
    ttn_free(text);
    if (status != TTN_OK) ttn_free(hash);
    *ret = status == TTN_OK ? hash : NULL;
    return status;
}

/* ---- the training set ---- */

/* "run/a" of "run/a/ckpt/step-00000020/model.safetensors". */
static ttn_status find_run(const char *model, char *ret, ttn_error *err)
{
    const char *ckpt = NULL;
    for (const char *at = strstr(model, "/ckpt/"); at; at = strstr(at + 1, "/ckpt/"))
        ckpt = at;
    if (!ckpt) return TTN_FAIL(err, TTN_EINVAL, "the model is no checkpoint in the folder of a run");
    snprintf(ret, PATH_MAX, "%.*s", (int)(ckpt - model), model);
    return TTN_OK;
}

static ttn_status open_if_same(const char *path, const char *identity, ttn_store **ret, ttn_error *err)
{
    char text[TTN_HASH_TEXT];
    ttn_status status = ttn_store_open(path, 1, ret, err); /* its hashes alone are read */
    if (status != TTN_OK || strcmp(ttn_hash_print(ttn_store_describe(*ret)->identity, text), identity) == 0)
        return status;
    ttn_store_close(*ret);
    *ret = NULL;
    return TTN_FAIL(err, TTN_EFORMAT, "%s: holds other sequences than the run was trained on", path);
}

/* The store that run.json names: where it lay for who began the run, or in the folder beside the run. */
static ttn_status open_store(const char *run, ttn_trained_on *ret, ttn_store **store, ttn_error *err)
{
    char path[PATH_MAX];
    ttn_json *j = NULL;
    const json_t *data;
    const char *name = NULL, *identity = NULL;
    ttn_error why = {0};
    *store = NULL;
    ttn_status status = ttn_run_path(run, TTN_RUN_STARTS, path, err);
    if (status == TTN_OK) status = ttn_json_read(path, NULL, &j, err);
    if (status == TTN_OK) status = ttn_json_object(j, ttn_json_root(j), "data", &data, err);
    if (status == TTN_OK) status = ttn_json_text(j, data, "store", &name, err);
    if (status == TTN_OK) status = ttn_json_text(j, data, "xxh3_128", &identity, err);
    if (status == TTN_OK) {
        snprintf(ret->store, sizeof ret->store, "%s", name);
        status = open_if_same(ret->store, identity, store, err);
    }
    if (status != TTN_OK && status != TTN_ENOMEM && name && identity &&
        snprintf(path, sizeof path, "%s/../data/%s", run, name + ttn_disk_folder_length(name)) < (int)sizeof path &&
        open_if_same(path, identity, store, &why) == TTN_OK) {
        memcpy(ret->store, path, sizeof path);
        status = TTN_OK;
    }
    ttn_json_close(j);
    return status;
}

/* How the run split it. */
static ttn_status split(const char *run, const ttn_config_table *table, ttn_store *store, ttn_subset **ret,
                        ttn_error *err)
{
    char path[PATH_MAX];
    ttn_config *config = NULL;
    ttn_split_rules rules;
    struct stat about;
    ttn_status status = ttn_run_path(run, TTN_RUN_CONFIG, path, err);
    if (status == TTN_OK && stat(path, &about) == 0 && S_ISFIFO(about.st_mode)) /* it would be waited for */
        return TTN_FAIL(err, TTN_EINVAL, "%s: is a pipe, and a file is to be there", path);
    const ttn_config_file file = {.path = path};
    const ttn_config_request request = {.presets = ttn_config_presets, .file = &file, .n_file = 1};
    if (status == TTN_OK) status = ttn_config_load(table, &request, &config, err);
    if (status == TTN_OK) {
        const ttn_option_reader reader = ttn_values_reader(ttn_config_values(config));
        status = ttn_split_rules_of(&reader, &rules, err);
    }
    if (status == TTN_OK) status = ttn_split_store(store, &rules, ret, err);
    ttn_config_destroy(config);
    return status;
}

/* ---- both ---- */

ttn_status ttn_trained_on_count(const char *model, const ttn_config_table *table, const ttn_eval_data_facts *d,
                                ttn_trained_on *ret, ttn_error *err)
{
    char run[PATH_MAX];
    ttn_store *store = NULL;
    ttn_subset *held_out = NULL;
    int64_t *hash = NULL;
    ttn_error why = {0};
    *ret = (ttn_trained_on){0};
    ttn_status found = find_run(model, run, &why);
    if (found == TTN_OK) found = open_store(run, ret, &store, &why);
    if (found == TTN_OK) found = split(run, table, store, &held_out, &why);
    ttn_status status = found == TTN_OK ? hash_sequences(d, &hash, err) : TTN_OK;
    if (found == TTN_OK && status == TTN_OK) {
        const ttn_sweep_source source = ttn_sweep_of_store(store);
        found = ttn_overlap_equal(&source, held_out, hash, d->sequences, &ret->equal, &why);
    }
    ttn_free(hash);
    ttn_subset_destroy(held_out);
    ttn_store_close(store);
    ret->is_known = found == TTN_OK;
    if (!ret->is_known) snprintf(ret->why, sizeof ret->why, "%s", why.text);
    return status;
}

void ttn_trained_on_tell(const ttn_trained_on *t, int64_t n, ttn_facts *f)
{
    if (!t->is_known) {
        ttn_facts_text(f, "training_set", "not known: %s", t->why);
        ttn_facts_none(f, "equal_to_training");
        return;
    }
    ttn_facts_text(f, "training_set", "%s", t->store);
    ttn_facts_integer(f, "equal_to_training", t->equal);
    if (t->equal > 0)
        ttn_facts_warn(f,
                       "%" PRId64 " of %" PRId64
                       " sequences are in the model's training set, with the same sequence: there the numbers measure "
                       "memorisation",
                       t->equal, n);
}
