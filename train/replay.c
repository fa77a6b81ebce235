#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "core/memory.h"
#include "train/files/run_folder.h"
#include "train/nonfinite.h"
#include "train/replay.h"

static int is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static ttn_status is_too_long(const char *run, ttn_error *err)
{
    return TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long", run);
}

ttn_status ttn_replay_find(const char *run, int64_t step, char *path, ttn_error *err)
{
    char folder[PATH_MAX], name[TTN_STEP_NAME];
    int64_t *saved = NULL, n = 0;
    ttn_status status = ttn_nonfinite_path(run, step, folder, err);
    if (status != TTN_OK) return status;
    if (snprintf(path, PATH_MAX, "%s/%s", folder, ttn_step_name(step, name)) >= PATH_MAX) return is_too_long(run, err);
    if (is_folder(path)) return TTN_OK;
    status = ttn_run_checkpoints(run, &saved, &n, err);
    int64_t i = 0;
    while (i < n && saved[i] > step)
        i++; /* newest first */
    if (status == TTN_OK && i == n)
        status = TTN_FAIL(err, TTN_EINVAL, "%s: no checkpoint is there at or before step %" PRId64, run, step);
    if (status == TTN_OK && snprintf(path, PATH_MAX, "%s/ckpt/%s", run, ttn_step_name(saved[i], name)) >= PATH_MAX)
        status = is_too_long(run, err);
    ttn_free(saved);
    return status;
}

ttn_status ttn_replay(ttn_training *t, int64_t step, ttn_replayed *ret, ttn_error *err)
{
    ttn_trainer *trainer = ttn_training_trainer(t);
    const int64_t begin = ttn_trainer_where(trainer).steps;
    *ret = (ttn_replayed){.shard = -1};
    if (begin > step)
        return TTN_FAIL(err, TTN_EINVAL, "step %" PRId64 " cannot be made from a checkpoint of step %" PRId64, step,
                        begin);
    ttn_status status = TTN_OK;
    while (status == TTN_OK && ttn_trainer_where(trainer).steps <= step)
        status = ttn_trainer_step(trainer, &ret->step, err);
    if (status == TTN_EOF) return TTN_FAIL(err, TTN_EINVAL, "the run ends before step %" PRId64, step);
    if (status == TTN_OK && ret->step.is_skipped)
        status = ttn_trainer_trap(trainer, &ret->step, &ret->shard, &ret->why, err);
    return status;
}
