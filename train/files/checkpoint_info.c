#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "core/clock.h"
#include "core/memory.h"
#include "core/text.h"
#include "train/files/checkpoint.h"
#include "train/files/checkpoint_files.h"
#include "train/files/checkpoint_info.h"
#include "train/files/run_folder.h"

static int is_folder_in(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat about;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 0;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static int is_file_in(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat about;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 0;
    return lstat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* ---- one checkpoint ---- */

/* Does the path end in the name of a checkpoint? One that is damaged may have nothing else left. */
static int has_step_name(const char *path)
{
    char name[NAME_MAX + 1];
    int64_t step;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return snprintf(name, sizeof name, "%.*s", (int)(n - begin), path + begin) < (int)sizeof name &&
           ttn_step_parse(name, &step);
}

static int recognise_checkpoint(const ttn_info_subject *s)
{
    return s->is_folder && (is_file_in(s->path, TTN_MANIFEST_NAME) || has_step_name(s->path));
}

static void tell_numbers(ttn_facts *f, const char *key, const ttn_named_number *list, int n)
{
    ttn_facts_open(f, key);
    for (int i = 0; i < n; i++)
        ttn_facts_text(f, list[i].name, "%" PRIu64, list[i].value); /* beyond the integers of JSON */
    ttn_facts_close(f);
}

static void tell_state(ttn_facts *f, const ttn_run_state *s)
{
    char date[TTN_DATE_TEXT], hash[TTN_HASH_TEXT];
    ttn_facts_integer(f, "step", s->step);
    ttn_facts_text(f, "saved", "%s", ttn_date_print(s->date, date));
    ttn_facts_open(f, "next_batch");
    ttn_facts_integer(f, "epoch", s->cursor.epoch);
    ttn_facts_integer(f, "window", s->cursor.window);
    ttn_facts_integer(f, "batch", s->cursor.batch);
    ttn_facts_close(f);
    tell_numbers(f, "seeds", s->seed, s->n_seed);
    if (s->n_draw > 0) tell_numbers(f, "draws", s->draw, s->n_draw);
    ttn_facts_open(f, "exact_with");
    ttn_facts_text(f, "precision", "%s", s->real);
    ttn_facts_text(f, "device", "%s", s->device);
    ttn_facts_text(f, "blas_kernel", "%s", s->kernel);
    ttn_facts_integer(f, "row_tile", s->row_tile);
    ttn_facts_integer(f, "batch_align", s->batch_align);
    ttn_facts_integer(f, "shards", s->shards);
    ttn_facts_close(f);
    ttn_facts_text(f, "config_xxh3_128", "%s", ttn_hash_print(ttn_hash128_of(s->config, strlen(s->config)), hash));
}

static void tell_files(ttn_facts *f, const ttn_manifest *m)
{
    ttn_facts_text(f, "titin_version", "%s", ttn_manifest_titin(m));
    ttn_facts_open_list(f, "files");
    for (int i = 0; i < ttn_manifest_file_count(m); i++) {
        const ttn_manifest_file *file = ttn_manifest_file_at(m, i);
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "name", "%s", file->name);
        ttn_facts_bytes(f, "bytes", file->bytes);
        ttn_facts_integer(f, "tensors", file->n_tensor);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

static ttn_status tell_checkpoint(const char *path, ttn_facts *f, ttn_error *err)
{
    char file[PATH_MAX];
    ttn_manifest *m;
    ttn_run_state_file *state = NULL;
    ttn_status status = ttn_manifest_read(path, TTN_CHECKPOINT_FORMAT, TTN_CHECKPOINT_VERSION, &m, NULL, err);
    if (status != TTN_OK) return status;
    tell_files(f, m);
    status = ttn_manifest_check(m, path, 0, err);
    if (status == TTN_OK && snprintf(file, sizeof file, "%s/%s", path, TTN_CHECKPOINT_STATE) >= (int)sizeof file)
        status = TTN_FAIL(err, TTN_EINVAL, "the path is too long");
    if (status == TTN_OK) status = ttn_run_state_read(file, &state, err);
    if (status == TTN_OK) tell_state(f, ttn_run_state_of(state));
    if (status == TTN_OK) status = ttn_step_check(path, ttn_run_state_of(state)->step, err);
    ttn_run_state_close(state);
    ttn_manifest_close(m);
    return status;
}

static ttn_status describe_checkpoint(const ttn_info_subject *s, int verify, ttn_facts *f, ttn_error *err)
{
    ttn_status status = tell_checkpoint(s->path, f, err);
    if (status != TTN_OK || !verify) return status;
    ttn_checkpoint *c;
    status = ttn_checkpoint_open(s->path, &c, NULL, err);
    ttn_checkpoint_close(c);
    ttn_facts_flag(f, "verified", status == TTN_OK);
    if (status != TTN_OK && err) ttn_facts_warn(f, "%s", err->text);
    return status;
}

const ttn_info_kind ttn_info_checkpoint = {
    .name = "checkpoint",
    .what = "a checkpoint of a run",
    .recognise = recognise_checkpoint,
    .describe = describe_checkpoint,
};

/* ---- a run ---- */

static int recognise_run(const ttn_info_subject *s)
{
    return s->is_folder && is_folder_in(s->path, "ckpt");
}

/* Is it whole, as far as is asked? *bytes of all its files, *date of its saving; err says why not. */
static ttn_status look_at(const char *path, int verify, int64_t *bytes, int64_t *date, ttn_error *err)
{
    char file[PATH_MAX];
    ttn_manifest *m;
    ttn_run_state_file *state = NULL;
    *bytes = 0;
    *date = -1;
    ttn_status status = ttn_manifest_read(path, TTN_CHECKPOINT_FORMAT, TTN_CHECKPOINT_VERSION, &m, NULL, err);
    if (status != TTN_OK) return status;
    for (int i = 0; i < ttn_manifest_file_count(m); i++)
        if (__builtin_add_overflow(*bytes, ttn_manifest_file_at(m, i)->bytes, bytes)) *bytes = INT64_MAX;
    status = ttn_manifest_check(m, path, 0, err);
    ttn_manifest_close(m);
    if (status == TTN_OK && snprintf(file, sizeof file, "%s/%s", path, TTN_CHECKPOINT_STATE) >= (int)sizeof file)
        status = TTN_FAIL(err, TTN_EINVAL, "the path is too long");
    if (status == TTN_OK) status = ttn_run_state_read(file, &state, err);
    if (status == TTN_OK) *date = ttn_run_state_of(state)->date;
    if (status == TTN_OK) status = ttn_step_check(path, ttn_run_state_of(state)->step, err);
    ttn_run_state_close(state);
    if (status != TTN_OK || !verify) return status;
    ttn_checkpoint *c;
    status = ttn_checkpoint_open(path, &c, NULL, err);
    ttn_checkpoint_close(c);
    return status;
}

/* One row of the list; what is wrong goes into the warnings, and the first such into err. */
static ttn_status tell_row(const char *run, int64_t step, int verify, ttn_facts *f, ttn_error *err)
{
    char path[PATH_MAX], name[TTN_STEP_NAME], date[TTN_DATE_TEXT];
    ttn_error why = {0};
    int64_t bytes, when;
    if (snprintf(path, sizeof path, "%s/ckpt/%s", run, ttn_step_name(step, name)) >= (int)sizeof path)
        return TTN_FAIL(err, TTN_EINVAL, "the path is too long");
    ttn_status status = look_at(path, verify, &bytes, &when, &why);
    ttn_facts_open(f, NULL);
    ttn_facts_text(f, "name", "%s", name);
    ttn_facts_integer(f, "step", step);
    ttn_facts_text(f, "saved", "%s", when >= 0 ? ttn_date_print(when, date) : "?");
    ttn_facts_bytes(f, "bytes", bytes);
    ttn_facts_text(f, "state", "%s", status != TTN_OK ? "cannot be used" : verify ? "verified" : "complete");
    ttn_facts_close(f);
    if (status == TTN_OK) return TTN_OK;
    ttn_facts_warn(f, "%s", why.text);
    return TTN_FAIL(err, status, "%s", why.text);
}

static ttn_status tell_others(const char *path, ttn_facts *f, ttn_error *err)
{
    ttn_run_other *other;
    int64_t n;
    ttn_status status = ttn_run_others(path, &other, &n, err);
    if (status != TTN_OK) return status;
    ttn_facts_open_list(f, "others");
    for (int64_t i = 0; i < n; i++) {
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "name", "%s", other[i].name);
        ttn_facts_text(f, "state", "%s", other[i].made_way ? "moved aside" : "unfinished");
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
    ttn_free(other);
    return TTN_OK;
}

/* verified: every checkpoint of at least one. */
static ttn_status say_none(const char *path, ttn_facts *f, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    ttn_facts_flag(f, "verified", 0);
    ttn_facts_warn(f, "%s: has no checkpoint, so there is nothing to verify", ttn_text_tail(path, shown));
    return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: has no checkpoint, so there is nothing to verify", shown);
}

static ttn_status describe_run(const ttn_info_subject *s, int verify, ttn_facts *f, ttn_error *err)
{
    int64_t *step, n;
    ttn_status status = ttn_run_checkpoints(s->path, &step, &n, err);
    if (status != TTN_OK) return status;
    ttn_error first = {0};
    ttn_facts_integer(f, "checkpoint_count", n);
    ttn_facts_open_list(f, "checkpoints");
    for (int64_t i = 0; i < n; i++) {
        ttn_status row = tell_row(s->path, step[i], verify, f, &first);
        if (status == TTN_OK) status = row;
    }
    ttn_facts_close(f);
    ttn_free(step);
    ttn_status listed = tell_others(s->path, f, err);
    if (listed != TTN_OK) return listed;
    if (!verify) return TTN_OK; /* the warnings have it */
    if (n == 0) return say_none(s->path, f, err);
    ttn_facts_flag(f, "verified", status == TTN_OK);
    return status == TTN_OK ? TTN_OK : TTN_FAIL(err, status, "%s", first.text);
}

const ttn_info_kind ttn_info_run = {
    .name = "run",
    .what = "the folder of a run",
    .recognise = recognise_run,
    .describe = describe_run,
};
