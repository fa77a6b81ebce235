#include <assert.h>
#include <string.h>
#include "core/memory.h"
#include "data/batch.h"

ttn_status ttn_batch_create(ttn_extent capacity, ttn_batch **ret, ttn_error *err)
{
    assert(capacity.rows > 0 && capacity.rows % TTN_BATCH_TILE == 0);
    assert(capacity.picks > 0 && capacity.picks % TTN_BATCH_TILE == 0);
    assert(capacity.seqs > 0);
    *ret = NULL;
    const char *what = "a batch";
    ttn_batch *b = ttn_alloc_or_say(1, sizeof *b, what, err);
    if (!b) return TTN_ENOMEM;
    b->capacity = capacity;
    b->token = ttn_alloc_or_say(capacity.rows, sizeof *b->token, what, err);
    b->span = ttn_alloc_or_say(capacity.seqs, sizeof *b->span, what, err);
    b->start = ttn_alloc_or_say(capacity.seqs, sizeof *b->start, what, err);
    b->sample = ttn_alloc_or_say(capacity.seqs, sizeof *b->sample, what, err);
    b->index = ttn_alloc_or_say(capacity.picks, sizeof *b->index, what, err);
    b->target = ttn_alloc_or_say(capacity.picks, sizeof *b->target, what, err);
    b->shown = ttn_alloc_or_say(capacity.picks, sizeof *b->shown, what, err);
    if (!b->token || !b->span || !b->start || !b->sample || !b->index || !b->target || !b->shown) {
        ttn_batch_destroy(b);
        return TTN_ENOMEM;
    }
    ttn_batch_clear(b, 0);
    *ret = b;
    return TTN_OK;
}

void ttn_batch_destroy(ttn_batch *b)
{
    if (!b) return;
    ttn_free(b->token);
    ttn_free(b->span);
    ttn_free(b->start);
    ttn_free(b->sample);
    ttn_free(b->index);
    ttn_free(b->target);
    ttn_free(b->shown);
    ttn_free(b);
}

void ttn_batch_clear(ttn_batch *b, uint8_t pad)
{
    memset(b->token, pad, (size_t)b->capacity.rows);
    memset(b->span, 0, (size_t)b->capacity.seqs * sizeof *b->span);
    memset(b->start, 0, (size_t)b->capacity.seqs * sizeof *b->start);
    memset(b->sample, 0, (size_t)b->capacity.seqs * sizeof *b->sample);
    for (int64_t r = 0; r < b->capacity.picks; r++)
        b->index[r] = -1;
    memset(b->target, TTN_BATCH_NO_TARGET, (size_t)b->capacity.picks);
    memset(b->shown, 0, (size_t)b->capacity.picks);
    b->used = (ttn_extent){0};
    b->targets = b->masked = b->residues = b->cropped = b->unpicked = b->shard = 0;
    b->at = b->next = (ttn_cursor){0};
}
