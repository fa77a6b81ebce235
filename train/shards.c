/* The tree as a binary counter has it: a finished shard is added to the one that waits at its level, and the sum goes on to
 * the next level. */
#include <inttypes.h>
#include <stdlib.h>
#include "train/shards.h"

enum { MOST_LEVELS = 32 };

struct ttn_shards {
    ttn_weights *weights;
    ttn_stream on;
    int levels;                       /* n = 2^levels */
    int64_t done;                     /* shards so far; bit l, below `levels`: one waits at level l */
    ttn_memory *waiting[MOST_LEVELS]; /* (levels) a slab each */
};

static size_t slab_bytes(const ttn_shards *s)
{
    return (size_t)ttn_weights_slab_elements(s->weights) * ttn_dtype_size(TTN_REAL);
}

ttn_status ttn_shards_create(ttn_weights *w, const ttn_stream *on, int64_t n, ttn_shards **ret, ttn_error *err)
{
    *ret = NULL;
    int levels = 0;
    while (levels < MOST_LEVELS && (int64_t)1 << levels < n)
        levels++;
    if (n < 1 || (int64_t)1 << levels != n)
        return TTN_FAIL(err, TTN_EINVAL,
                        "%" PRId64 " micro-batches in a step: expected a power of two, so that any number "
                        "of ranks adds them in the same order",
                        n);
    ttn_status status = ttn_weights_require(w, TTN_SLAB_GRADIENT, err);
    if (status != TTN_OK) return status;
    ttn_shards *s = calloc(1, sizeof *s);
    if (!s) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for gradients of micro-batches");
    s->weights = w;
    s->on = *on;
    s->levels = levels;
    const size_t bytes = slab_bytes(s);
    for (int l = 0; l < levels && status == TTN_OK; l++)
        status = on->device->ops->memory_create(on->device, bytes, bytes, &s->waiting[l], err);
    if (status == TTN_OK)
        *ret = s;
    else
        ttn_shards_destroy(s);
    return status;
}

void ttn_shards_destroy(ttn_shards *s)
{
    if (!s) return;
    for (int l = 0; l < s->levels; l++)
        if (s->waiting[l]) s->on.device->ops->memory_destroy(s->waiting[l]);
    free(s);
}

ttn_status ttn_shards_add(ttn_shards *s, ttn_error *err)
{
    const ttn_device_ops *ops = s->on.device->ops;
    real *gradient = ttn_weights_slab(s->weights, TTN_SLAB_GRADIENT);
    ttn_status status = TTN_OK;
    int level = 0;
    while (level < s->levels && s->done >> level & 1 && status == TTN_OK) {
        status =
            ops->add(&s->on, gradient, ops->memory_base(s->waiting[level]), ttn_weights_slab_elements(s->weights), err);
        level++;
    }
    if (level < s->levels && status == TTN_OK)
        status = ops->copy(&s->on, ops->memory_base(s->waiting[level]), gradient, slab_bytes(s), err);
    if (status == TTN_OK) s->done++;
    return status;
}

void ttn_shards_restart(ttn_shards *s)
{
    s->done = 0;
}
