#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "core/atomic.h"
#include "train/files/checkpoint.h"
#include "train/files/json.h"
#include "train/files/run_folder.h"
#include "train/nonfinite.h"

static ttn_status path_is_too_long(const char *path, ttn_error *err)
{
    return TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long", path);
}

ttn_status ttn_nonfinite_path(const char *run, int64_t step, char *text, ttn_error *err)
{
    char name[TTN_STEP_NAME];
    const int n = snprintf(text, PATH_MAX, "%s/" TTN_RUN_NONFINITE "%s", run, ttn_step_name(step, name));
    return n < PATH_MAX ? TTN_OK : path_is_too_long(run, err);
}

/* ---- what was there ---- */

static const char STEP_JSON[] = "step.json";

static int is_own(const char *folder, const char *name)
{
    char path[PATH_MAX], reason[TTN_REASON];
    struct stat about;
    int64_t step;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path || lstat(path, &about) != 0) return 0;
    if (strcmp(name, STEP_JSON) == 0) return S_ISREG(about.st_mode);
    return ttn_step_parse(name, &step) && ttn_run_may_replace(path, reason);
}

/* Is there nothing, or a folder that holds what an earlier try wrote and nothing else? */
static int may_replace(const char *folder)
{
    struct stat about;
    if (lstat(folder, &about) != 0) return 1;
    DIR *d = S_ISDIR(about.st_mode) ? opendir(folder) : NULL;
    if (!d) return 0;
    int is_ours = 1;
    for (struct dirent *e = readdir(d); e && is_ours; e = readdir(d))
        is_ours = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || is_own(folder, e->d_name);
    closedir(d);
    return is_ours;
}

/* ---- step.json ---- */

/* A number, or null where it is not finite. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static int set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

typedef struct {
    json_t *shards; /* array of arrays of sequence numbers */
    int failed;
} lister;

/* A ttn_batch_taker. */
static ttn_status list_sequences(void *ctx, const ttn_batch *b, ttn_error *err)
{
    (void)err;
    lister *l = ctx;
    json_t *list = json_array();
    for (int64_t s = 0; s < b->used.seqs; s++) {
        json_t *item = json_object();
        l->failed |= set(item, "sequence", json_integer((json_int_t)b->sample[s]));
        l->failed |= set(item, "first_row", json_integer(b->span[s].first));
        l->failed |= set(item, "rows", json_integer(b->span[s].n));
        l->failed |= set(item, "first_position", json_integer(b->start[s]));
        l->failed |= json_array_append_new(list, item);
    }
    l->failed |= json_array_append_new(l->shards, list);
    return TTN_OK;
}

static int describe(json_t *root, const ttn_step *step, int64_t shard, const ttn_error *why)
{
    int failed = set(root, "step", json_integer(step->step));
    failed |= set(root, "loss", number(step->loss));
    failed |= set(root, "grad_norm", number(step->norm));
    failed |= set(root, "lr", number(step->lr));
    failed |= set(root, "targets", json_integer(step->targets));
    failed |= set(root, "epoch", json_integer(step->at.epoch));
    failed |= set(root, "window", json_integer(step->at.window));
    failed |= set(root, "batch", json_integer(step->at.batch));
    failed |= set(root, "shard", shard >= 0 ? json_integer(shard) : json_null());
    failed |= set(root, "first", shard >= 0 ? json_string(why->text) : json_null());
    return failed;
}

/* A ttn_json_taker. */
static ttn_status take_text(void *ctx, const char *bytes, size_t n, ttn_error *err)
{
    return ttn_atomic_write(ctx, bytes, n, err);
}

static ttn_status write_json(const char *folder, const json_t *root, ttn_error *err)
{
    char path[PATH_MAX];
    ttn_atomic *a = NULL;
    if (snprintf(path, sizeof path, "%s/%s", folder, STEP_JSON) >= (int)sizeof path)
        return path_is_too_long(folder, err);
    ttn_status status = ttn_atomic_file_create(path, &a, err);
    if (status == TTN_OK) status = ttn_json_dump(root, take_text, a, err);
    if (status == TTN_OK) status = ttn_atomic_commit(a, err);
    ttn_atomic_destroy(a);
    return status;
}

static ttn_status write_description(const char *folder, const ttn_trainer *t, const ttn_step *step, int64_t shard,
                                    const ttn_error *why, ttn_error *err)
{
    json_t *root = json_object();
    lister l = {.shards = json_array()};
    ttn_status status = ttn_trainer_batches_of(t, step, list_sequences, &l, err);
    int failed = describe(root, step, shard, why) | l.failed;
    failed |= set(root, "sequences", l.shards);
    if (status == TTN_OK && failed)
        status = TTN_FAIL(err, TTN_ENOMEM, "out of memory for what is told of step %" PRId64, step->step);
    if (status == TTN_OK) status = write_json(folder, root, err);
    json_decref(root);
    return status;
}

/* ---- the checkpoint ---- */

static ttn_status write_checkpoint(const char *folder, const ttn_trainer *t, const ttn_run_state *state, ttn_error *err)
{
    char path[PATH_MAX], name[TTN_STEP_NAME];
    ttn_snapshot *snapshot = NULL;
    const ttn_weights *w = ttn_trainer_weights(t);
    if (snprintf(path, sizeof path, "%s/%s", folder, ttn_step_name(state->step, name)) >= (int)sizeof path)
        return path_is_too_long(folder, err);
    ttn_status status = ttn_snapshot_create(w, NULL, NULL, 0, &snapshot, err);
    if (status == TTN_OK) status = ttn_snapshot_take(snapshot, w, NULL, state, err);
    if (status == TTN_OK) status = ttn_checkpoint_write(snapshot, path, NULL, err);
    ttn_snapshot_destroy(snapshot);
    return status;
}

/* ---- both ---- */

static ttn_status write_folder(const char *path, ttn_trainer *t, const ttn_step *step, const ttn_run_state *state,
                               int64_t shard, const ttn_error *why, const ttn_log *log, ttn_error *err)
{
    ttn_atomic *folder = NULL;
    ttn_error unsaved = {0};
    ttn_status status = may_replace(path) ? ttn_atomic_folder_create(path, &folder, err)
                                          : ttn_atomic_folder_create_beside(path, &folder, err);
    if (status == TTN_OK) status = write_description(ttn_atomic_path(folder), t, step, shard, why, err);
    /* Where weights themselves are not finite there is no checkpoint, and the one before must do for a replay. */
    if (status == TTN_OK && write_checkpoint(ttn_atomic_path(folder), t, state, &unsaved) != TTN_OK)
        ttn_log_say(log, TTN_LOG_WARNING, "%s has no checkpoint of its own: %s", path, unsaved.text);
    if (status == TTN_OK) status = ttn_atomic_commit(folder, err);
    if (status == TTN_OK && ttn_atomic_kept(folder))
        ttn_log_say(log, TTN_LOG_WARNING, "%s held something that is not its own and is now called %s", path,
                    ttn_atomic_kept(folder));
    ttn_atomic_destroy(folder);
    return status;
}

ttn_status ttn_nonfinite_write(const char *run, ttn_trainer *t, const ttn_step *step, const ttn_run_state *state,
                               const ttn_log *log, ttn_error *ret_why, ttn_error *err)
{
    char path[PATH_MAX];
    int64_t shard;
    *ret_why = (ttn_error){0};
    ttn_status status = ttn_nonfinite_path(run, step->step, path, err);
    if (status == TTN_OK) status = ttn_trainer_trap(t, step, &shard, ret_why, err);
    return status == TTN_OK ? write_folder(path, t, step, state, shard, ret_why, log, err) : status;
}
