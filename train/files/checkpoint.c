#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "core/memory.h"
#include "core/text.h"
#include "train/files/checkpoint.h"
#include "train/files/checkpoint_files.h"
#include "train/files/safetensors.h"

const char *const ttn_checkpoint_part_file[TTN_N_PARTS] = {
    [TTN_PART_MODEL] = "model.safetensors",
    [TTN_PART_OPTIMIZER] = "optim-r0000-of-0001.safetensors",
};

struct ttn_checkpoint {
    ttn_manifest *manifest;
    ttn_run_state_file *state;
    ttn_safetensors *part[TTN_N_PARTS]; /* NULL: it has none */
    int listed[TTN_N_PARTS];            /* where in the manifest */
    char path[PATH_MAX];
    char shown[TTN_TAIL_ROOM];
};

/* ---- open ---- */

static ttn_status path_of(const ttn_checkpoint *c, const char *name, char *path, ttn_error *err)
{
    if (snprintf(path, PATH_MAX, "%s/%s", c->path, name) < PATH_MAX) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long", c->shown);
}

/* The tensors of the file are those of the manifest. Both are whole by now: this finds what was never right. */
static ttn_status compare_lists(const ttn_checkpoint *c, int which, ttn_error *err)
{
    const ttn_safetensors *s = c->part[which];
    const char *file = ttn_checkpoint_part_file[which];
    const ttn_manifest_file *listed = ttn_manifest_file_at(c->manifest, c->listed[which]);
    if (ttn_safetensors_count(s) != listed->n_tensor)
        return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: %s holds %" PRId64 " tensors, and the manifest lists %" PRId64,
                        c->shown, file, ttn_safetensors_count(s), listed->n_tensor);
    for (int64_t i = 0; i < listed->n_tensor; i++) {
        ttn_hash128 unused;
        const char *name = ttn_safetensors_at(s, i)->name;
        if (!ttn_manifest_tensor(c->manifest, c->listed[which], name, &unused))
            return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: %s holds '%s', which the manifest does not list", c->shown, file,
                            name);
    }
    return TTN_OK;
}

static ttn_status open_part(ttn_checkpoint *c, int which, ttn_error *err)
{
    const char *file = ttn_checkpoint_part_file[which];
    c->listed[which] = ttn_manifest_find(c->manifest, file);
    if (c->listed[which] < 0 && which == TTN_PART_MODEL)
        return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: its manifest lists no %s", c->shown, file);
    if (c->listed[which] < 0) return TTN_OK;
    char path[PATH_MAX];
    ttn_status status = path_of(c, file, path, err);
    if (status == TTN_OK) status = ttn_safetensors_open(path, NULL, &c->part[which], err);
    if (status == TTN_OK) status = compare_lists(c, which, err);
    return status;
}

static ttn_status open_state(ttn_checkpoint *c, ttn_error *err)
{
    char path[PATH_MAX];
    if (ttn_manifest_find(c->manifest, TTN_CHECKPOINT_STATE) < 0)
        return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: its manifest lists no " TTN_CHECKPOINT_STATE, c->shown);
    ttn_status status = path_of(c, TTN_CHECKPOINT_STATE, path, err);
    return status == TTN_OK ? ttn_run_state_read(path, &c->state, err) : status;
}

ttn_status ttn_checkpoint_open(const char *path, ttn_checkpoint **ret, int *opt_other, ttn_error *err)
{
    *ret = NULL;
    if (opt_other) *opt_other = 0;
    ttn_checkpoint *c = ttn_alloc_or_say(1, sizeof *c, "a checkpoint", err);
    if (!c) return TTN_ENOMEM;
    ttn_text_tail(path, c->shown);
    ttn_status status = TTN_OK;
    if (snprintf(c->path, sizeof c->path, "%s", path) >= (int)sizeof c->path)
        status = TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long", c->shown);
    if (status == TTN_OK)
        status = ttn_manifest_read(path, TTN_CHECKPOINT_FORMAT, TTN_CHECKPOINT_VERSION, &c->manifest, opt_other, err);
    if (status == TTN_OK) status = ttn_manifest_check(c->manifest, path, 1, err);
    if (status == TTN_OK) status = open_state(c, err);
    for (int which = 0; which < TTN_N_PARTS && status == TTN_OK; which++)
        status = open_part(c, which, err);
    if (status == TTN_OK)
        *ret = c;
    else
        ttn_checkpoint_close(c);
    return status;
}

void ttn_checkpoint_close(ttn_checkpoint *c)
{
    if (!c) return;
    for (int which = 0; which < TTN_N_PARTS; which++)
        ttn_safetensors_close(c->part[which]);
    ttn_run_state_close(c->state);
    ttn_manifest_close(c->manifest);
    ttn_free(c);
}

const char *ttn_checkpoint_path(const ttn_checkpoint *c)
{
    return c->path;
}

const ttn_run_state *ttn_checkpoint_state(const ttn_checkpoint *c)
{
    return ttn_run_state_of(c->state);
}

/* ---- one tensor ---- */

static int is_same_type(const ttn_stored_tensor *t, const ttn_desc *d)
{
    ttn_dtype type;
    return ttn_stored_dtype(t->type, &type) && type == ttn_dtype_stored(d->type);
}

/* Is it what the other precision of titin calls a real? */
static int is_other_precision(const ttn_stored_tensor *t, const ttn_desc *d)
{
    const ttn_dtype wanted = ttn_dtype_stored(d->type);
    return (t->type == TTN_STORED_F32 && wanted == TTN_F64) || (t->type == TTN_STORED_F64 && wanted == TTN_F32);
}

static int is_same_shape(const ttn_stored_tensor *t, const ttn_desc *d)
{
    if (t->ndim != d->ndim) return 0;
    for (int i = 0; i < d->ndim; i++)
        if (t->dim[i] != d->dim[i]) return 0;
    return 1;
}

/* What is wanted, as the sentence has what is found. text has TTN_STORED_TEXT bytes; returns it. */
static char *print_wanted(const ttn_desc *d, char *text)
{
    const ttn_stored_tensor t = {.type = ttn_stored_of(ttn_dtype_stored(d->type)), .ndim = d->ndim, .dim = d->dim};
    return ttn_stored_print(&t, text);
}

/* *ret = the tensor, which is what is wanted. */
static ttn_status find(const ttn_checkpoint *c, ttn_part part, const char *name, const ttn_desc *desc,
                       const ttn_stored_tensor **ret, ttn_error *err)
{
    const char *file = ttn_checkpoint_part_file[part];
    char wanted[TTN_STORED_TEXT], found[TTN_STORED_TEXT];
    *ret = NULL;
    if (!c->part[part])
        return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: has no %s: it was saved without an optimizer", c->shown, file);
    *ret = ttn_safetensors_find(c->part[part], name);
    print_wanted(desc, wanted);
    if (!*ret)
        return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: %s has no tensor '%s', and this model has one: %s", c->shown, file,
                        name, wanted);
    if (is_same_shape(*ret, desc) && is_other_precision(*ret, desc))
        return TTN_FAIL(err, TTN_ECHECKPOINT,
                        "%s: %s: '%s' is %s, and in this model %s; use a titin of its precision (make REAL=%s)",
                        c->shown, file, name, ttn_stored_print(*ret, found), wanted,
                        (*ret)->type == TTN_STORED_F32 ? "f32" : "f64");
    if (!is_same_shape(*ret, desc) || !is_same_type(*ret, desc))
        return TTN_FAIL(err, TTN_ECHECKPOINT,
                        "%s: %s: '%s' is %s, and in this model %s; use the configuration it was saved with", c->shown,
                        file, name, ttn_stored_print(*ret, found), wanted);
    return TTN_OK;
}

static ttn_status read_checked(const ttn_checkpoint *c, ttn_part part, const ttn_stored_tensor *t, void *data,
                               ttn_error *err)
{
    ttn_hash128 wanted = {0};
    (void)ttn_manifest_tensor(c->manifest, c->listed[part], t->name, &wanted);
    ttn_status status = ttn_safetensors_read_bytes(c->part[part], t, 0, t->bytes, data, err);
    if (status != TTN_OK) return status;
    if (ttn_hash_same(ttn_hash128_of(data, (size_t)t->bytes), wanted)) return TTN_OK;
    return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: %s: '%s' has changed since the checkpoint was opened", c->shown,
                    ttn_checkpoint_part_file[part], t->name);
}

ttn_status ttn_checkpoint_read(const ttn_checkpoint *c, ttn_part part, const char *name, const ttn_desc *desc,
                               void *data, ttn_error *err)
{
    const ttn_stored_tensor *t;
    ttn_status status = find(c, part, name, desc, &t, err);
    return status == TTN_OK && t ? read_checked(c, part, t, data, err) : status;
}

/* ---- all weights ---- */

/* What a slab of weight i is called: where and how. 0: it has none there. */
static int name_of(const ttn_weights *w, int i, ttn_slab slab, const char *const *model_name, ttn_part *part,
                   char *name)
{
    const ttn_weight *weight = ttn_weights_at(w, i);
    *part = slab == TTN_SLAB_VALUE ? TTN_PART_MODEL : TTN_PART_OPTIMIZER;
    if (slab == TTN_SLAB_GRADIENT || (slab != TTN_SLAB_VALUE && !ttn_weights_address(w, i, slab))) return 0;
    if (weight->is_state && slab != TTN_SLAB_VALUE) return 0;
    if (slab == TTN_SLAB_VALUE)
        snprintf(name, TTN_MOMENT_NAME, "%s", model_name ? model_name[i] : weight->name);
    else
        ttn_moment_name(slab, weight->name, name);
    return 1;
}

/* Is there a weight that goes by this name in model.safetensors? */
static int is_known(const ttn_weights *w, const char *const *model_name, const char *name)
{
    if (!model_name) return ttn_weights_find(w, name) >= 0;
    for (int i = 0; i < ttn_weights_count(w); i++)
        if (strcmp(model_name[i], name) == 0) return 1;
    return 0;
}

static ttn_status compare(const ttn_checkpoint *c, const ttn_weights *w, const char *const *model_name, ttn_slab last,
                          int64_t *largest, ttn_error *err)
{
    int64_t n_model = 0;
    for (int i = 0; i < ttn_weights_count(w); i++)
        for (ttn_slab slab = TTN_SLAB_VALUE; slab <= last; slab++) {
            char name[TTN_MOMENT_NAME];
            ttn_part part;
            const ttn_stored_tensor *t;
            if (!name_of(w, i, slab, model_name, &part, name)) continue;
            ttn_status status = find(c, part, name, &ttn_weights_at(w, i)->desc, &t, err);
            if (status != TTN_OK || !t) return status; /* with TTN_OK there is one */
            if (t->bytes > *largest) *largest = t->bytes;
            n_model += part == TTN_PART_MODEL;
        }
    const ttn_safetensors *model = c->part[TTN_PART_MODEL];
    for (int64_t i = 0; i < ttn_safetensors_count(model) && ttn_safetensors_count(model) > n_model; i++) {
        char found[TTN_STORED_TEXT];
        const ttn_stored_tensor *t = ttn_safetensors_at(model, i);
        if (is_known(w, model_name, t->name)) continue;
        return TTN_FAIL(
            err, TTN_ECHECKPOINT,
            "%s: %s holds '%s', %s, which this model does not have; use the configuration it was saved with", c->shown,
            ttn_checkpoint_part_file[TTN_PART_MODEL], t->name, ttn_stored_print(t, found));
    }
    return TTN_OK;
}

ttn_status ttn_checkpoint_compare(const ttn_checkpoint *c, const ttn_weights *w, const char *const *model_name,
                                  ttn_error *err)
{
    int64_t largest = 0;
    return compare(c, w, model_name, TTN_SLAB_VALUE, &largest, err);
}

ttn_status ttn_checkpoint_load(const ttn_checkpoint *c, ttn_weights *w, const char *const *model_name, int with_moments,
                               ttn_error *err)
{
    const ttn_slab last = with_moments ? TTN_SLAB_V : TTN_SLAB_VALUE;
    int64_t largest = 0;
    ttn_status status = compare(c, w, model_name, last, &largest, err);
    if (status != TTN_OK) return status;
    void *data = ttn_alloc_or_say(largest, 1, "one tensor of a checkpoint", err);
    if (!data) return TTN_ENOMEM;
    for (int i = 0; i < ttn_weights_count(w) && status == TTN_OK; i++)
        for (ttn_slab slab = TTN_SLAB_VALUE; slab <= last && status == TTN_OK; slab++) {
            char name[TTN_MOMENT_NAME];
            ttn_part part;
            if (!name_of(w, i, slab, model_name, &part, name)) continue;
            status = ttn_checkpoint_read(c, part, name, &ttn_weights_at(w, i)->desc, data, err);
            if (status == TTN_OK) status = ttn_weights_write(w, i, slab, data, err);
        }
    ttn_free(data);
    return status;
}
