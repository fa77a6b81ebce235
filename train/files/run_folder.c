#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/atomic.h"
#include "core/disk.h"
#include "core/lock.h"
#include "core/memory.h"
#include "core/text.h"
#include "train/files/checkpoint_files.h"
#include "train/files/run_folder.h"

struct ttn_run_folder {
    ttn_lock *lock;
    const ttn_log *log;
    int64_t best; /* step; -1: the caller has not said */
    char path[PATH_MAX];
};

static const char LATEST[] = "latest", BEST[] = "best", CHECKPOINTS[] = "ckpt";

/* What a run writes to under a name that is known beforehand. */
static const struct {
    const char *name;
    int is_folder;
} own[] = {
    {CHECKPOINTS, 1},     {TTN_RUN_EVENTS, 1}, {TTN_RUN_CONFIG, 0}, {TTN_RUN_STARTS, 0},
    {TTN_RUN_METRICS, 0}, {TTN_RUN_CURVE, 0},  {TTN_RUN_REPORT, 0},
};
enum { N_OWN = sizeof own / sizeof *own };

/* ---- names ---- */

char *ttn_step_name(int64_t step, char *text)
{
    snprintf(text, TTN_STEP_NAME, "step-%08" PRId64, step);
    return text;
}

int ttn_step_parse(const char *name, int64_t *ret)
{
    char again[TTN_STEP_NAME];
    if (strncmp(name, "step-", 5) != 0) return 0;
    errno = 0;
    *ret = strtoll(name + 5, NULL, 10);
    return errno == 0 && *ret >= 0 && strcmp(ttn_step_name(*ret, again), name) == 0;
}

ttn_status ttn_step_check(const char *path, int64_t step, ttn_error *err)
{
    char name[NAME_MAX + 1], right[TTN_STEP_NAME], shown[TTN_TAIL_ROOM];
    int64_t named;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    snprintf(name, sizeof name, "%.*s", (int)(n - begin), path + begin);
    if (!ttn_step_parse(name, &named) || named == step) return TTN_OK;
    return TTN_FAIL(err, TTN_ECHECKPOINT,
                    "%s: is called after step %" PRId64 " and holds step %" PRId64
                    "; it is a copy or was renamed: give it the name %s, or move it out of the run",
                    ttn_text_tail(path, shown), named, step, ttn_step_name(step, right));
}

ttn_status ttn_run_path(const char *run, const char *name, char *ret, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    if (snprintf(ret, PATH_MAX, "%s/%s", run, name) < PATH_MAX) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long; choose a shorter one", ttn_text_tail(run, shown));
}

/* path/ckpt, or path/ckpt/NAME. */
static ttn_status path_in(const char *path, const char *name, char *ret, ttn_error *err)
{
    char inside[sizeof CHECKPOINTS + 1 + NAME_MAX];
    if (!name) return ttn_run_path(path, CHECKPOINTS, ret, err);
    const int n = snprintf(inside, sizeof inside, "%s/%s", CHECKPOINTS, name);
    assert(n < (int)sizeof inside); /* one of our names, or a folder's entry */
    return ttn_run_path(path, inside, ret, err);
}

/* ---- one writer ---- */

static ttn_status is_no_folder(const char *path, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    return TTN_FAIL(err, TTN_EINVAL, "%s: is no folder, and a run's is to be there; choose another name",
                    ttn_text_tail(path, shown));
}

static ttn_status make_folder(const char *path, ttn_error *err)
{
    struct stat about;
    char shown[TTN_TAIL_ROOM];
    ttn_text_tail(path, shown);
    if (ttn_disk_mkdir(path, 0777) != 0 && errno != EEXIST) {
        int error = errno;
        return TTN_FAIL(err, ttn_disk_fault(error), "%s: cannot be made: %s%s", shown, strerror(error),
                        error == ENOENT ? "; create the folder it lies in first (mkdir -p)" : ttn_disk_advice(error));
    }
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return TTN_OK;
    return is_no_folder(path, err);
}

/* What temporaries and trash in ckpt/ are of: a checkpoint, or a link. */
static int is_of_checkpoints(const char *name, int is_folder)
{
    int64_t step;
    if (is_folder) return ttn_step_parse(name, &step);
    return strcmp(name, LATEST) == 0 || strcmp(name, BEST) == 0;
}

/* The same in the run's folder: a file, or what is written down of a step. */
static int is_of_run(const char *name, int is_folder)
{
    static const size_t n = sizeof TTN_RUN_NONFINITE - 1;
    int64_t step;
    if (is_folder) return strncmp(name, TTN_RUN_NONFINITE, n) == 0 && ttn_step_parse(name + n, &step);
    int i = 0;
    while (i < N_OWN && (own[i].is_folder || strcmp(name, own[i].name) != 0))
        i++;
    return i < N_OWN;
}

static ttn_status is_link(const char *path, int is_folder, ttn_error *err)
{
    char target[PATH_MAX], shown[TTN_TAIL_ROOM], target_shown[TTN_TAIL_ROOM];
    const ssize_t n = readlink(path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
    ttn_text_tail(path, shown);
    ttn_text_tail(target, target_shown);
    if (is_folder)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "%s: is a link to %s, and a run writes to its own folder only: move that folder here in place of "
            "the link; to have a run on another disk, put its whole folder there (train.out)",
            shown, target_shown);
    return TTN_FAIL(
        err, TTN_EINVAL,
        "%s: is a link to %s, and a run writes to its own folder only: remove the link, or put a copy of the "
        "file in its place",
        shown, target_shown);
}

/* Each name is a file or a folder of the run's own, or nothing has it. */
ttn_status ttn_run_folder_check(const char *run, ttn_error *err)
{
    for (int i = 0; i < N_OWN; i++) {
        char path[PATH_MAX], shown[TTN_TAIL_ROOM];
        struct stat about;
        ttn_status status = ttn_run_path(run, own[i].name, path, err);
        if (status != TTN_OK) return status;
        if (lstat(path, &about) != 0) continue; /* of what cannot be asked, writing will speak */
        if (S_ISLNK(about.st_mode)) return is_link(path, own[i].is_folder, err);
        if (own[i].is_folder ? S_ISDIR(about.st_mode) : S_ISREG(about.st_mode)) continue;
        return TTN_FAIL(err, TTN_EINVAL, "%s: is no %s, and one of the run is to have this name; move it away",
                        ttn_text_tail(path, shown), own[i].is_folder ? "folder" : "file");
    }
    return TTN_OK;
}

ttn_status ttn_run_folder_open(const char *path, const ttn_clock *clock, const ttn_log *log, ttn_run_folder **ret,
                               ttn_error *err)
{
    char inside[PATH_MAX], shown[TTN_TAIL_ROOM];
    *ret = NULL;
    ttn_run_folder *r = ttn_alloc_or_say(1, sizeof *r, "the folder of a run", err);
    if (!r) return TTN_ENOMEM;
    ttn_status status = TTN_OK;
    r->log = log;
    r->best = -1;
    if (snprintf(r->path, sizeof r->path, "%s", path) >= (int)sizeof r->path - 16)
        status =
            TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long; choose a shorter one", ttn_text_tail(path, shown));
    if (status == TTN_OK) status = make_folder(path, err);
    if (status == TTN_OK) status = ttn_run_folder_check(path, err);
    if (status == TTN_OK) {
        snprintf(inside, sizeof inside, "%.*s/.lock", PATH_MAX - 16, r->path);
        status = ttn_lock_take(inside, clock, log, &r->lock, err);
    }
    if (status == TTN_OK) status = path_in(path, NULL, inside, err);
    if (status == TTN_OK) status = make_folder(inside, err);
    if (status == TTN_OK) status = ttn_atomic_sweep(inside, is_of_checkpoints, log, err);
    if (status == TTN_OK) status = ttn_atomic_sweep(path, is_of_run, log, err);
    if (status == TTN_OK)
        *ret = r;
    else
        ttn_run_folder_close(r);
    return status;
}

ttn_status ttn_run_folder_alive(ttn_run_folder *r, ttn_error *err)
{
    return ttn_lock_alive(r->lock, err);
}

const char *ttn_run_folder_path(const ttn_run_folder *r)
{
    return r->path;
}

void ttn_run_folder_close(ttn_run_folder *r)
{
    if (!r) return;
    ttn_lock_release(r->lock);
    ttn_free(r);
}

/* ---- which there are ---- */

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

typedef struct {
    int64_t *step;
    int64_t n, room;
} step_list;

static ttn_status append(step_list *l, int64_t step, ttn_error *err)
{
    if (l->n == l->room) {
        int64_t room = 2 * l->room + 16;
        int64_t *larger = ttn_alloc_or_say(room, sizeof *larger, "the list of checkpoints", err);
        if (!larger) return TTN_ENOMEM;
        if (l->n > 0) memcpy(larger, l->step, (size_t)l->n * sizeof *larger);
        ttn_free(l->step);
        l->step = larger;
        l->room = room;
    }
    l->step[l->n] = step;
    l->n++;
    return TTN_OK;
}

static ttn_status list(DIR *d, const char *folder, step_list *l, ttn_error *err)
{
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        int64_t step;
        char path[PATH_MAX];
        struct stat about;
        if (!ttn_step_parse(e->d_name, &step)) continue;
        if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path) continue;
        if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) continue;
        ttn_status status = append(l, step, err);
        if (status != TTN_OK) return status;
    }
    return TTN_OK;
}

/* path/ckpt; *ret NULL: there is none. */
static ttn_status open_checkpoints(const char *path, DIR **ret, ttn_error *err)
{
    char folder[PATH_MAX], shown[TTN_TAIL_ROOM];
    *ret = NULL;
    ttn_status status = path_in(path, NULL, folder, err);
    if (status != TTN_OK) return status;
    *ret = opendir(folder);
    if (*ret || errno == ENOENT) return TTN_OK;
    int error = errno;
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISDIR(about.st_mode)) return is_no_folder(path, err);
    return TTN_FAIL(err, ttn_disk_fault(error), "%s: cannot be looked through: %s%s", ttn_text_tail(folder, shown),
                    strerror(error), ttn_disk_advice(error));
}

ttn_status ttn_run_checkpoints(const char *path, int64_t **ret, int64_t *n, ttn_error *err)
{
    char folder[PATH_MAX];
    step_list l = {0};
    DIR *d;
    *ret = NULL;
    *n = 0;
    ttn_status status = open_checkpoints(path, &d, err);
    if (status == TTN_OK && d) status = path_in(path, NULL, folder, err);
    if (status != TTN_OK || !d) return status;
    status = list(d, folder, &l, err);
    closedir(d);
    if (status != TTN_OK) {
        ttn_free(l.step);
        return status;
    }
    if (l.n > 0) qsort(l.step, (size_t)l.n, sizeof *l.step, newest_first);
    *ret = l.step;
    *n = l.n;
    return TTN_OK;
}

/* "step-00012000.kept-3", "best.kept-1" */
static int is_kept_name(const char *name)
{
    static const char mark[] = ".kept-";
    char before[NAME_MAX + 1];
    int64_t step;
    const char *at = strstr(name, mark);
    if (!at) return 0;
    const char *number = at + strlen(mark);
    snprintf(before, sizeof before, "%.*s", (int)(at - name), name);
    const int is_ours = ttn_step_parse(before, &step) || strcmp(before, LATEST) == 0 || strcmp(before, BEST) == 0;
    return is_ours && *number && number[strspn(number, "0123456789")] == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const ttn_run_other *)a)->name, ((const ttn_run_other *)b)->name);
}

static ttn_status list_others(DIR *d, ttn_run_other **ret, int64_t *n, ttn_error *err)
{
    int64_t room = 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        const int made_way = is_kept_name(e->d_name);
        if (!made_way && !ttn_atomic_is_temporary(e->d_name)) continue;
        if (*n == room) {
            room = 2 * room + 16;
            ttn_run_other *larger = ttn_alloc_or_say(room, sizeof *larger, "the list of a run's folder", err);
            if (!larger) return TTN_ENOMEM;
            if (*n > 0) memcpy(larger, *ret, (size_t)*n * sizeof *larger);
            ttn_free(*ret);
            *ret = larger;
        }
        (*ret)[*n].made_way = made_way;
        snprintf((*ret)[*n].name, sizeof(*ret)[*n].name, "%s", e->d_name);
        ++*n;
    }
    return TTN_OK;
}

ttn_status ttn_run_others(const char *path, ttn_run_other **ret, int64_t *n, ttn_error *err)
{
    DIR *d;
    *ret = NULL;
    *n = 0;
    ttn_status status = open_checkpoints(path, &d, err);
    if (status != TTN_OK || !d) return status;
    status = list_others(d, ret, n, err);
    closedir(d);
    if (status == TTN_OK) {
        if (*n > 0) qsort(*ret, (size_t)*n, sizeof **ret, by_name);
        return TTN_OK;
    }
    ttn_free(*ret);
    *ret = NULL;
    *n = 0;
    return status;
}

static ttn_status path_of_step(const char *path, int64_t step, char *ret, ttn_error *err)
{
    char name[TTN_STEP_NAME];
    return path_in(path, ttn_step_name(step, name), ret, err);
}

/* Damage, and what cannot be read, is a reason to take an older one; the rest is not. */
static int may_pass_over(ttn_status status, int other)
{
    return (status == TTN_ECHECKPOINT && !other) || status == TTN_EIO;
}

ttn_status ttn_run_newest(const char *path, const ttn_log *log, ttn_checkpoint **ret, ttn_error *err)
{
    int64_t *step;
    int64_t n;
    ttn_error first = {0};
    *ret = NULL;
    ttn_status status = ttn_run_checkpoints(path, &step, &n, err);
    for (int64_t i = 0; i < n && status == TTN_OK && !*ret; i++) {
        char folder[PATH_MAX];
        ttn_error why = {0};
        int other = 0;
        status = path_of_step(path, step[i], folder, err);
        if (status != TTN_OK) break;
        status = ttn_checkpoint_open(folder, ret, &other, &why);
        if (status == TTN_OK) status = ttn_step_check(folder, ttn_checkpoint_state(*ret)->step, &why);
        if (status == TTN_OK) break;
        ttn_checkpoint_close(*ret);
        *ret = NULL;
        if (!may_pass_over(status, other)) {
            (void)TTN_FAIL(err, status, "%s", why.text);
            break;
        }
        ttn_log_say(log, TTN_LOG_WARNING, "checkpoint %" PRId64 " is passed over: %s", step[i], why.text);
        if (i == 0) first = why;
        status = TTN_OK;
    }
    if (status == TTN_OK && n > 0 && !*ret) {
        char shown[TTN_TAIL_ROOM];
        status = TTN_FAIL(err, TTN_ECHECKPOINT, "%s: of %" PRId64 " checkpoints none can be used; of the newest: %s",
                          ttn_text_tail(path, shown), n, first.text);
    }
    ttn_free(step);
    return status;
}

/* ---- around a save ---- */

/* What has the name of a link and is none gets another one. */
static ttn_status make_way(const char *path, const ttn_log *log, ttn_error *err)
{
    enum { MOST_KEPT = 1000 };
    char kept[PATH_MAX], shown[TTN_TAIL_ROOM];
    struct stat about;
    int i = 1;
    if (lstat(path, &about) != 0 || S_ISLNK(about.st_mode)) return TTN_OK;
    do {
        if (i == MOST_KEPT || snprintf(kept, sizeof kept, "%s.kept-%d", path, i) >= (int)sizeof kept)
            return TTN_FAIL(err, TTN_EINVAL, "%s: is no link, and there is no other name left for it; move it away",
                            ttn_text_tail(path, shown));
        i++;
    } while (lstat(kept, &about) == 0);
    if (ttn_disk_rename(path, kept) != 0) {
        const int error = errno;
        return TTN_FAIL(err, TTN_EIO, "%s: is no link, and cannot be renamed: %s%s", ttn_text_tail(path, shown),
                        strerror(error), ttn_disk_advice(error));
    }
    ttn_log_say(log, TTN_LOG_WARNING,
                "%s is not a link any more (copying a run may replace links) and is now called %s", path, kept);
    return TTN_OK;
}

/* The link `name` leads to the checkpoint of a step. */
static ttn_status set_link(const ttn_run_folder *r, const char *name, int64_t step, ttn_error *err)
{
    char path[PATH_MAX], target[TTN_STEP_NAME];
    ttn_status status = path_in(r->path, name, path, err);
    if (status == TTN_OK) status = make_way(path, r->log, err);
    if (status != TTN_OK) return status;
    return ttn_atomic_link(path, ttn_step_name(step, target), err);
}

ttn_status ttn_run_set_latest(const ttn_run_folder *r, int64_t step, ttn_error *err)
{
    return set_link(r, LATEST, step, err);
}

ttn_status ttn_run_set_best(ttn_run_folder *r, int64_t step, ttn_error *err)
{
    r->best = step;
    return set_link(r, BEST, step, err);
}

/* Where ckpt/best leads; -1: there is no such link. */
static int64_t linked_best(const char *path)
{
    char link[PATH_MAX], target[TTN_STEP_NAME];
    int64_t step = -1;
    if (path_in(path, BEST, link, NULL) != TTN_OK) return -1;
    const ssize_t n = readlink(link, target, sizeof target - 1);
    if (n <= 0) return -1;
    target[n] = 0;
    return ttn_step_parse(target, &step) ? step : -1;
}

/* The state of the checkpoint in `folder`, which is of the step that the folder is called after; NULL: it cannot be used. */
static ttn_run_state_file *state_in(const char *folder)
{
    char path[PATH_MAX];
    ttn_run_state_file *state;
    if (snprintf(path, sizeof path, "%s/%s", folder, TTN_CHECKPOINT_STATE) >= (int)sizeof path) return NULL;
    if (ttn_run_state_read(path, &state, NULL) != TTN_OK) return NULL;
    if (ttn_step_check(folder, ttn_run_state_of(state)->step, NULL) == TTN_OK) return state;
    ttn_run_state_close(state);
    return NULL;
}

int64_t ttn_run_best(const char *path)
{
    int64_t *step, n, best = -1;
    ttn_run_state_file *state = NULL;
    if (ttn_run_checkpoints(path, &step, &n, NULL) != TTN_OK) return -1;
    for (int64_t i = 0; i < n && !state; i++) {
        char folder[PATH_MAX];
        if (path_of_step(path, step[i], folder, NULL) == TTN_OK) state = state_in(folder);
    }
    ttn_free(step);
    const double *told = state ? ttn_run_state_series(ttn_run_state_of(state), TTN_SERIES_BEST, 2) : NULL;
    if (told) best = (int64_t)told[0];
    ttn_run_state_close(state);
    return best >= 0 ? best : linked_best(path);
}

void ttn_run_restore_best(ttn_run_folder *r, int64_t step)
{
    char folder[PATH_MAX];
    struct stat about;
    ttn_error err = {0};
    r->best = step;
    ttn_status status = path_of_step(r->path, step, folder, &err);
    if (status == TTN_OK && stat(folder, &about) != 0) {
        ttn_log_say(
            r->log, TTN_LOG_WARNING,
            "%s: is missing, and was the best checkpoint so far; titin eval takes the newest until a better one is "
            "saved",
            folder);
        return;
    }
    if (status == TTN_OK && linked_best(r->path) == step) return;
    if (status == TTN_OK) status = set_link(r, BEST, step, &err);
    if (status == TTN_OK)
        ttn_log_say(r->log, TTN_LOG_INFO,
                    "ckpt/best is restored: it leads to the best checkpoint so far, step %" PRId64, step);
    else
        ttn_log_say(r->log, TTN_LOG_WARNING, "%s", err.text);
}

/* m NULL: the folder has no manifest that can be read. */
static int has_own_name(const char *name, const ttn_manifest *m)
{
    if (strcmp(name, TTN_MANIFEST_NAME) == 0) return 1;
    if (m) return ttn_manifest_find(m, name) >= 0;
    for (int part = 0; part < TTN_N_PARTS; part++)
        if (strcmp(name, ttn_checkpoint_part_file[part]) == 0) return 1;
    return strcmp(name, TTN_CHECKPOINT_STATE) == 0;
}

/* A file: titin puts neither a folder nor a link into a checkpoint, whatever its name. */
static int is_own_file(const char *folder, const char *name, const ttn_manifest *m)
{
    char path[PATH_MAX];
    struct stat about;
    if (!has_own_name(name, m) || snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 0;
    return lstat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* The name of something in the folder that titin did not put there; *ret "": there is nothing. 0, or errno. */
static int find_stranger(const char *folder, const ttn_manifest *m, char *ret)
{
    ret[0] = 0;
    DIR *d = opendir(folder);
    if (!d) return errno;
    for (struct dirent *e = readdir(d); e && !ret[0]; e = readdir(d)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (!is_own_file(folder, e->d_name, m)) snprintf(ret, NAME_MAX + 1, "%s", e->d_name);
    }
    closedir(d);
    return 0;
}

int ttn_run_may_replace(const char *folder, char *reason)
{
    char stranger[NAME_MAX + 1];
    struct stat about;
    ttn_manifest *m;
    reason[0] = 0;
    if (lstat(folder, &about) != 0) return 1;
    if (S_ISLNK(about.st_mode)) {
        snprintf(reason, TTN_REASON, "is a link"); /* writing would follow it, and remove what it leads to */
        return 0;
    }
    if (!S_ISDIR(about.st_mode)) {
        snprintf(reason, TTN_REASON, "is no folder");
        return 0;
    }
    if (ttn_manifest_read(folder, TTN_CHECKPOINT_FORMAT, TTN_CHECKPOINT_VERSION, &m, NULL, NULL) != TTN_OK) m = NULL;
    int error = find_stranger(folder, m, stranger);
    ttn_manifest_close(m);
    /* What cannot be looked into, writing will speak of. */
    if (!error && stranger[0]) snprintf(reason, TTN_REASON, "holds something that is not its own (%.100s)", stranger);
    return reason[0] == 0;
}

/* *is_whole: it looks so; and when there are `kept` of these already, it goes. */
static ttn_status retain_one(const char *folder, int is_kept, int *is_whole, const ttn_log *log, ttn_error *err)
{
    ttn_manifest *m;
    ttn_status status =
        ttn_manifest_read(folder, TTN_CHECKPOINT_FORMAT, TTN_CHECKPOINT_VERSION, &m, NULL, NULL /* damage stays */);
    *is_whole = status == TTN_OK && ttn_manifest_check(m, folder, 0, NULL) == TTN_OK;
    ttn_run_state_file *state = *is_whole ? state_in(folder) : NULL;
    *is_whole = state != NULL;
    ttn_run_state_close(state);
    status = TTN_OK;
    if (*is_whole && !is_kept) {
        char stranger[NAME_MAX + 1];
        struct stat about;
        int error = find_stranger(folder, m, stranger);
        if (!error && lstat(folder, &about) != 0) error = errno;
        if (!error && S_ISLNK(about.st_mode))
            ttn_log_say(log, TTN_LOG_WARNING, "%s is kept, though old: it is a link", folder);
        else if (error || stranger[0])
            ttn_log_say(log, TTN_LOG_WARNING, "%s is kept, though old: %s%s", folder,
                        error ? strerror(error) : "it holds something that is not its own: ", stranger);
        else
            status = ttn_atomic_remove(folder, err);
    }
    ttn_manifest_close(m);
    return status;
}

ttn_status ttn_run_retain(const ttn_run_folder *r, int keep, int64_t saved, const ttn_log *log, ttn_error *err)
{
    int64_t *step;
    int64_t n;
    int n_kept = saved >= 0;
    const int64_t best = r->best >= 0 ? r->best : linked_best(r->path);
    assert(keep >= 1);
    ttn_status first = ttn_run_checkpoints(r->path, &step, &n, err);
    for (int64_t i = 0; i < n; i++) {
        char folder[PATH_MAX];
        int is_whole = 0;
        if (step[i] == saved || step[i] == best) continue;
        ttn_status status = path_of_step(r->path, step[i], folder, err);
        if (status == TTN_OK) status = retain_one(folder, n_kept < keep, &is_whole, log, err);
        n_kept += is_whole;
        if (first == TTN_OK) first = status;
    }
    ttn_free(step);
    return first;
}
