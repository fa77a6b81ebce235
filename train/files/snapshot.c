#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "train/files/convert.h"
#include "train/files/snapshot.h"

/* Where a tensor comes from. */
typedef struct {
    ttn_snapshot_tensor public;
    int weight; /* of the weights; -1: one of `more` */
    ttn_slab slab;
    int more;
} source;

struct ttn_snapshot {
    ttn_arena *names;
    source *tensor; /* (n) */
    int n;
    size_t bytes;
    ttn_block *block; /* all data */
    ttn_run_state_file *state;
};

enum { ALIGN = 64 };

char *ttn_moment_name(ttn_slab slab, const char *weight, char *text)
{
    assert(slab == TTN_SLAB_M || slab == TTN_SLAB_V);
    snprintf(text, TTN_MOMENT_NAME, "%s.%s", slab == TTN_SLAB_M ? "m" : "v", weight);
    return text;
}

/* ---- what there is ---- */

/* public.data is its offset until there is memory. */
static ttn_status add(ttn_snapshot *s, source what, const char *name, size_t *end, ttn_error *err)
{
    size_t n = ttn_desc_bytes(&what.public.desc);
    what.public.name = ttn_arena_copy(s->names, name, strlen(name) + 1);
    if (!what.public.name) return TTN_FAIL(err, TTN_ENOMEM, "no memory for the name of %s in a checkpoint", name);
    what.public.bytes = n;
    what.public.data = (const void *)*end;
    s->tensor[s->n] = what;
    s->n++;
    s->bytes += n;
    *end += (n + ALIGN - 1) / ALIGN * ALIGN; /* the weights themselves fit in memory: so do three of them in 64 bits */
    return TTN_OK;
}

static ttn_status add_weight(ttn_snapshot *s, const ttn_weights *w, int i, const char *model_name, size_t *end,
                             ttn_error *err)
{
    const ttn_weight *weight = ttn_weights_at(w, i);
    source what = {.public = {.desc = weight->desc, .part = TTN_PART_MODEL}, .weight = i, .slab = TTN_SLAB_VALUE};
    what.public.desc.type = ttn_dtype_stored(what.public.desc.type);
    ttn_status status = add(s, what, model_name, end, err);
    what.public.part = TTN_PART_OPTIMIZER;
    for (ttn_slab slab = TTN_SLAB_M; slab <= TTN_SLAB_V && status == TTN_OK; slab++) {
        char name[TTN_MOMENT_NAME];
        what.slab = slab;
        if (!weight->is_state && ttn_weights_address(w, i, slab))
            status = add(s, what, ttn_moment_name(slab, weight->name, name), end, err);
    }
    return status;
}

static int by_name(const void *a, const void *b)
{
    const source *x = *(const source *const *)a;
    const source *y = *(const source *const *)b;
    if (x->public.part != y->public.part) return x->public.part < y->public.part ? -1 : 1;
    return strcmp(x->public.name, y->public.name);
}

static ttn_status check_names(const ttn_snapshot *s, ttn_error *err)
{
    const source **sorted = ttn_alloc_or_say(s->n, sizeof *sorted, "the names of a checkpoint", err);
    if (!sorted) return TTN_ENOMEM;
    for (int i = 0; i < s->n; i++)
        sorted[i] = &s->tensor[i];
    qsort(sorted, (size_t)s->n, sizeof *sorted, by_name);
    ttn_status status = TTN_OK;
    for (int i = 1; i < s->n && status == TTN_OK; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            status = TTN_FAIL(err, TTN_EINVAL, "two tensors of a checkpoint are called '%s' in the file of the %s",
                              sorted[i]->public.name, sorted[i]->public.part == TTN_PART_MODEL ? "model" : "optimizer");
    ttn_free(sorted);
    return status;
}

static ttn_status take_memory(ttn_snapshot *s, size_t end, ttn_error *err)
{
    if (end == 0) return TTN_OK;
    ttn_status status = ttn_block_create(end, "the copy that a checkpoint is written from", &s->block, err);
    if (status == TTN_OK) status = ttn_block_grow(s->block, end, err);
    if (status != TTN_OK) return status;
    char *start = ttn_block_start(s->block);
    memset(start, 0, end); /* every page is there now, and not during the first save */
    for (int i = 0; i < s->n; i++)
        s->tensor[i].public.data = start + (size_t)s->tensor[i].public.data;
    return TTN_OK;
}

ttn_status ttn_snapshot_create(const ttn_weights *w, const char *const *model_name, const ttn_named_tensor *more,
                               int n_more, ttn_snapshot **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_snapshot *s = ttn_alloc_or_say(1, sizeof *s, "a copy of the weights", err);
    if (!s) return TTN_ENOMEM;
    const int n_weight = ttn_weights_count(w);
    size_t end = 0;
    ttn_status status = ttn_arena_create(0, &s->names, err);
    s->tensor = ttn_alloc_or_say(3 * (int64_t)n_weight + n_more, sizeof *s->tensor, "the list of a checkpoint", err);
    if (!s->tensor) status = TTN_ENOMEM;
    for (int i = 0; i < n_weight && status == TTN_OK; i++)
        status = add_weight(s, w, i, model_name ? model_name[i] : ttn_weights_at(w, i)->name, &end, err);
    for (int i = 0; i < n_more && status == TTN_OK; i++) {
        source what = {.public = {.desc = more[i].desc, .part = TTN_PART_OPTIMIZER}, .weight = -1, .more = i};
        what.public.desc.type = ttn_dtype_stored(what.public.desc.type);
        status = add(s, what, more[i].name, &end, err);
    }
    if (status == TTN_OK) status = check_names(s, err);
    if (status == TTN_OK) status = take_memory(s, end, err);
    if (status == TTN_OK)
        *ret = s;
    else
        ttn_snapshot_destroy(s);
    return status;
}

/* ---- the moment ---- */

ttn_status ttn_snapshot_take_state(ttn_snapshot *s, const ttn_run_state *state, ttn_error *err)
{
    ttn_run_state_file *copy;
    ttn_status status = ttn_run_state_copy(state, &copy, err);
    if (status != TTN_OK) return status;
    ttn_run_state_close(s->state);
    s->state = copy;
    return TTN_OK;
}

ttn_status ttn_snapshot_take_tensors(ttn_snapshot *s, const ttn_weights *w, const ttn_named_tensor *more,
                                     ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = 0; i < s->n && status == TTN_OK; i++) {
        const source *t = &s->tensor[i];
        void *to = (void *)t->public.data;
        if (t->weight >= 0)
            status = ttn_weights_read(w, t->weight, t->slab, to, err);
        else if (t->public.bytes > 0)
            memcpy(to, more[t->more].data, t->public.bytes);
    }
    return status;
}

ttn_status ttn_snapshot_take(ttn_snapshot *s, const ttn_weights *w, const ttn_named_tensor *more,
                             const ttn_run_state *state, ttn_error *err)
{
    ttn_status status = ttn_snapshot_take_state(s, state, err);
    return status == TTN_OK ? ttn_snapshot_take_tensors(s, w, more, err) : status;
}

ttn_status ttn_snapshot_check_finite(const ttn_snapshot *s, ttn_error *err)
{
    for (int i = 0; i < s->n; i++) {
        const ttn_snapshot_tensor *t = &s->tensor[i].public;
        if (t->desc.type == TTN_I64 || t->desc.type == TTN_I32 || t->desc.type == TTN_U8) continue;
        ttn_converted sum = {0};
        ttn_convert_check(ttn_desc_numel(&t->desc), t->desc.type, t->data, &sum);
        if (sum.nonfinite > 0)
            return TTN_FAIL(err, TTN_ENUMERIC,
                            "not saved: of the %" PRId64 " numbers of %s %" PRId64
                            " are NaN or infinite (the first: number %" PRId64 "); the last good checkpoint stays",
                            ttn_desc_numel(&t->desc), t->name, sum.nonfinite, sum.first_nonfinite);
    }
    return TTN_OK;
}

int ttn_snapshot_count(const ttn_snapshot *s)
{
    return s->n;
}

const ttn_snapshot_tensor *ttn_snapshot_at(const ttn_snapshot *s, int i)
{
    return i >= 0 && i < s->n ? &s->tensor[i].public : NULL;
}

const ttn_run_state *ttn_snapshot_state(const ttn_snapshot *s)
{
    return ttn_run_state_of(s->state);
}

size_t ttn_snapshot_bytes(const ttn_snapshot *s)
{
    return s->bytes;
}

void ttn_snapshot_destroy(ttn_snapshot *s)
{
    if (!s) return;
    ttn_arena_destroy(s->names);
    ttn_block_destroy(s->block);
    ttn_run_state_close(s->state);
    ttn_free(s->tensor);
    ttn_free(s);
}
