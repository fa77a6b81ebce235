#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "core/atomic.h"
#include "core/disk.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/text.h"
#include "train/files/checkpoint.h"
#include "train/files/checkpoint_files.h"
#include "train/files/safetensors.h"

/* A file that appears whole, and the checksum of what is written to it. */
typedef struct {
    ttn_atomic *file;
    ttn_hash *hash;
    int64_t bytes;
} sink;

/* The tensors of one part, as the writer of safetensors wants them. */
typedef struct {
    ttn_tensor_to_write *tensor;        /* (n) */
    const ttn_snapshot_tensor **source; /* (n) */
    int64_t n;
    int64_t bytes; /* of the file */
    sink to;
} part;

typedef struct {
    const ttn_snapshot *snapshot;
    ttn_atomic *folder;
    ttn_manifest_draft *manifest;
    part part[TTN_N_PARTS];
    sink state;
} writing;

/* ---- one file ---- */

static ttn_status sink_open(sink *s, const char *folder, const char *name, int64_t reserve, ttn_error *err)
{
    char path[PATH_MAX], shown[TTN_TAIL_ROOM];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long; choose a shorter one",
                        ttn_text_tail(folder, shown));
    ttn_status status = ttn_hash_create(&s->hash, err);
    if (status == TTN_OK) status = ttn_atomic_file_create(path, &s->file, err);
    if (status == TTN_OK) status = ttn_atomic_reserve(s->file, (size_t)reserve, err);
    return status;
}

static ttn_status sink_take(void *ctx, const void *bytes, size_t n, ttn_error *err)
{
    sink *s = ctx;
    ttn_hash_update(s->hash, bytes, n);
    s->bytes += (int64_t)n;
    return ttn_atomic_write(s->file, bytes, n, err);
}

static ttn_status sink_take_text(void *ctx, const char *bytes, size_t n, ttn_error *err)
{
    return sink_take(ctx, bytes, n, err);
}

/* It is on the disk, and in the manifest. */
static ttn_status sink_commit(sink *s, const char *name, ttn_manifest_draft *manifest, ttn_error *err)
{
    ttn_status status = ttn_atomic_commit(s->file, err);
    if (status == TTN_OK) status = ttn_manifest_draft_file(manifest, name, s->bytes, ttn_hash_final(s->hash), err);
    return status;
}

static void sink_close(sink *s)
{
    ttn_atomic_destroy(s->file);
    ttn_hash_destroy(s->hash);
}

/* ---- tensors ---- */

static ttn_status give(void *ctx, int64_t i, int64_t at, int64_t n, void *to, ttn_error *err)
{
    (void)err;
    const part *p = ctx;
    memcpy(to, (const char *)p->source[i]->data + at, (size_t)n);
    return TTN_OK;
}

static ttn_safetensors_content content_of(part *p)
{
    return (ttn_safetensors_content){.tensor = p->tensor, .n_tensor = p->n, .give = give, .ctx = p};
}

static ttn_status list_part(part *p, const ttn_snapshot *s, ttn_part which, ttn_error *err)
{
    const int n = ttn_snapshot_count(s);
    p->tensor = ttn_alloc_or_say(n, sizeof *p->tensor, "the tensors of a checkpoint", err);
    p->source = ttn_alloc_or_say(n, sizeof *p->source, "the tensors of a checkpoint", err);
    if (!p->tensor || !p->source) return TTN_ENOMEM;
    for (int i = 0; i < n; i++) {
        const ttn_snapshot_tensor *t = ttn_snapshot_at(s, i);
        if (t->part != which) continue;
        p->tensor[p->n] = (ttn_tensor_to_write){.name = t->name, .desc = t->desc};
        p->source[p->n] = t;
        p->n++;
    }
    const ttn_safetensors_content c = content_of(p);
    return ttn_safetensors_size(&c, &p->bytes, err);
}

/* The model always has its file, the optimizer when it has tensors. */
static int has_file(const writing *w, int which)
{
    return which == TTN_PART_MODEL || w->part[which].n > 0;
}

static ttn_status write_part(writing *w, int which, ttn_error *err)
{
    part *p = &w->part[which];
    const char *name = ttn_checkpoint_part_file[which];
    const ttn_safetensors_content c = content_of(p);
    ttn_status status = ttn_safetensors_emit(&c, sink_take, &p->to, err);
    if (status == TTN_OK) status = sink_commit(&p->to, name, w->manifest, err);
    for (int64_t i = 0; i < p->n && status == TTN_OK; i++) {
        const ttn_snapshot_tensor *t = p->source[i];
        status = ttn_manifest_draft_tensor(w->manifest, name, t->name, ttn_hash128_of(t->data, t->bytes), err);
    }
    return status;
}

/* ---- the folder ---- */

enum { REST = 1 << 16 }; /* state and manifest of a small model */

static size_t bytes_of(const writing *w)
{
    size_t bytes = REST;
    for (int which = 0; which < TTN_N_PARTS; which++)
        bytes += (size_t)w->part[which].bytes;
    return bytes;
}

/* The space of all files is taken before the first byte of any is written. */
static ttn_status take_space(writing *w, const char *path, ttn_error *err)
{
    const size_t bytes = bytes_of(w);
    const char *folder = ttn_atomic_path(w->folder);
    char shown[TTN_TAIL_ROOM];
    ttn_status status = ttn_disk_room(folder, bytes, ttn_text_tail(path, shown), err);
    for (int which = 0; which < TTN_N_PARTS && status == TTN_OK; which++)
        if (has_file(w, which))
            status = sink_open(&w->part[which].to, folder, ttn_checkpoint_part_file[which], w->part[which].bytes, err);
    return status;
}

static ttn_status write_files(writing *w, ttn_error *err)
{
    const char *folder = ttn_atomic_path(w->folder);
    ttn_status status = TTN_OK;
    for (int which = 0; which < TTN_N_PARTS && status == TTN_OK; which++)
        if (has_file(w, which)) status = write_part(w, which, err);
    if (status == TTN_OK) status = sink_open(&w->state, folder, TTN_CHECKPOINT_STATE, 0, err);
    if (status == TTN_OK) status = ttn_run_state_write(ttn_snapshot_state(w->snapshot), sink_take_text, &w->state, err);
    if (status == TTN_OK) status = sink_commit(&w->state, TTN_CHECKPOINT_STATE, w->manifest, err);
    if (status == TTN_OK) status = ttn_manifest_draft_write(w->manifest, folder, err);
    return status;
}

static ttn_status list_parts(writing *w, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int which = 0; which < TTN_N_PARTS && status == TTN_OK; which++)
        status = list_part(&w->part[which], w->snapshot, (ttn_part)which, err);
    return status;
}

static void finish(writing *w)
{
    for (int which = 0; which < TTN_N_PARTS; which++) {
        sink_close(&w->part[which].to);
        ttn_free(w->part[which].tensor);
        ttn_free(w->part[which].source);
    }
    sink_close(&w->state);
    ttn_manifest_draft_destroy(w->manifest);
    ttn_atomic_destroy(w->folder); /* the last: it removes what was not committed */
}

/* kept NULL: what is at path is replaced. */
static ttn_status write_checkpoint(const ttn_snapshot *s, const char *path, char *kept, int *in_place, ttn_error *err)
{
    writing w = {.snapshot = s};
    if (in_place) *in_place = 0;
    if (kept) kept[0] = 0;
    ttn_status status = ttn_snapshot_check_finite(s, err);
    if (status == TTN_OK)
        status = ttn_manifest_draft_create(TTN_CHECKPOINT_FORMAT, TTN_CHECKPOINT_VERSION, &w.manifest, err);
    if (status == TTN_OK) status = list_parts(&w, err);
    if (status == TTN_OK)
        status = kept ? ttn_atomic_folder_create_beside(path, &w.folder, err)
                      : ttn_atomic_folder_create(path, &w.folder, err);
    if (status == TTN_OK) status = take_space(&w, path, err);
    if (status == TTN_OK) status = write_files(&w, err);
    if (status == TTN_OK) {
        status = ttn_atomic_commit(w.folder, err);
        if (in_place) *in_place = ttn_atomic_in_place(w.folder);
        const char *now = ttn_atomic_kept(w.folder);
        if (kept && now) snprintf(kept, PATH_MAX, "%s", now);
    }
    finish(&w);
    return status;
}

ttn_status ttn_checkpoint_write(const ttn_snapshot *s, const char *path, int *in_place, ttn_error *err)
{
    return write_checkpoint(s, path, NULL, in_place, err);
}

ttn_status ttn_checkpoint_write_beside(const ttn_snapshot *s, const char *path, char *kept, int *in_place,
                                       ttn_error *err)
{
    return write_checkpoint(s, path, kept, in_place, err);
}

ttn_status ttn_checkpoint_try(const ttn_snapshot *s, const char *path, size_t *ret_bytes, ttn_error *err)
{
    writing w = {.snapshot = s};
    ttn_status status = list_parts(&w, err);
    *ret_bytes = bytes_of(&w);
    if (status == TTN_OK) status = ttn_atomic_folder_create_beside(path, &w.folder, err);
    if (status == TTN_OK) status = take_space(&w, path, err);
    if (status == TTN_OK) status = sink_open(&w.state, ttn_atomic_path(w.folder), TTN_CHECKPOINT_STATE, REST, err);
    finish(&w);
    return status;
}
