#include <assert.h>
#include "core/hash.h"
#include "core/memory.h"
#include "core/permute.h"
#include "core/rng.h"
#include "data/order.h"

struct ttn_order {
    const ttn_subset *side;
    int shuffle;
    uint64_t seed;
    int64_t epoch;
    int64_t count;
    ttn_permute all; /* of the places, or with groups of the blocks */

    /* With groups only. A member is a sequence of this side, counted from 0. */
    int64_t n_block, n_group, group_blocks;
    int64_t *block_member; /* (n_block + 1) first member of a block */
    int64_t *place;        /* (n_block + 1) first place of the epoch's k-th block */
    int64_t group;         /* whose permutation stands in `within`; -1: none */
    ttn_permute within;
};

static ttn_status prepare_blocks(ttn_order *o, const ttn_sequences *s, ttn_error *err)
{
    o->block_member = ttn_alloc_or_say(o->n_block + 1, sizeof *o->block_member, "the order of blocks", err);
    o->place = o->block_member ? ttn_alloc_or_say(o->n_block + 1, sizeof *o->place, "the order of blocks", err) : NULL;
    if (!o->place) return TTN_ENOMEM;
    for (int64_t b = 0; b <= o->n_block; b++) {
        const int64_t first = s->block_first(s->self, b);
        o->block_member[b] = o->side ? ttn_subset_below(o->side, first) : first;
    }
    assert(o->block_member[0] == 0 && o->block_member[o->n_block] == o->count);
    return TTN_OK;
}

ttn_status ttn_order_create(const ttn_sequences *s, const ttn_subset *side, int shuffle, uint64_t seed, ttn_order **ret,
                            ttn_error *err)
{
    *ret = NULL;
    ttn_order *o = ttn_alloc_or_say(1, sizeof *o, "the order of sequences", err);
    if (!o) return TTN_ENOMEM;
    *o = (ttn_order){
        .side = side,
        .shuffle = shuffle,
        .seed = seed,
        .count = side ? ttn_subset_count(side) : s->n,
        .n_group = 1,
    };
    if (shuffle && s->n_block > s->blocks_at_once) {
        o->n_block = s->n_block;
        o->group_blocks = s->blocks_at_once > 2 ? s->blocks_at_once / 2 : 1;
        o->n_group = (o->n_block + o->group_blocks - 1) / o->group_blocks;
        const ttn_status status = prepare_blocks(o, s, err);
        if (status != TTN_OK) {
            ttn_order_destroy(o);
            return status;
        }
    }
    ttn_order_begin(o, 0);
    *ret = o;
    return TTN_OK;
}

void ttn_order_destroy(ttn_order *o)
{
    if (!o) return;
    ttn_free(o->block_member);
    ttn_free(o->place);
    ttn_free(o);
}

int64_t ttn_order_count(const ttn_order *o)
{
    return o->count;
}

int64_t ttn_order_n_group(const ttn_order *o)
{
    return o->n_group;
}

void ttn_order_begin(ttn_order *o, int64_t epoch)
{
    o->epoch = epoch;
    if (!o->shuffle) return;
    if (o->n_group == 1) {
        ttn_permute_init(&o->all, o->count, o->seed, (uint64_t)epoch);
        return;
    }
    ttn_permute_init(&o->all, o->n_block, o->seed, (uint64_t)epoch);
    int64_t place = 0;
    for (int64_t k = 0; k < o->n_block; k++) {
        const int64_t b = ttn_permute_at(&o->all, k);
        o->place[k] = place;
        place += o->block_member[b + 1] - o->block_member[b];
    }
    o->place[o->n_block] = place;
    o->group = -1;
}

/* The last k of first … end - 1 with place[k] <= at: empty blocks, which share their place with the next one, are stepped
 * over. */
static int64_t block_at(const ttn_order *o, int64_t first, int64_t end, int64_t at)
{
    while (end - first > 1) {
        const int64_t middle = first + (end - first) / 2;
        if (o->place[middle] <= at)
            first = middle;
        else
            end = middle;
    }
    return first;
}

static int64_t member_in_groups(ttn_order *o, int64_t i)
{
    const int64_t group = block_at(o, 0, o->n_block, i) / o->group_blocks;
    const int64_t first = group * o->group_blocks;
    const int64_t end = first + o->group_blocks < o->n_block ? first + o->group_blocks : o->n_block;
    if (group != o->group) {
        const uint64_t seed = ttn_rng_key(o->seed, ttn_hash_text("order within a group of blocks"), (uint64_t)group);
        ttn_permute_init(&o->within, o->place[end] - o->place[first], seed, (uint64_t)o->epoch);
        o->group = group;
    }
    const int64_t at = o->place[first] + ttn_permute_at(&o->within, i - o->place[first]);
    const int64_t k = block_at(o, first, end, at);
    return o->block_member[ttn_permute_at(&o->all, k)] + (at - o->place[k]);
}

int64_t ttn_order_at(ttn_order *o, int64_t i)
{
    assert(i >= 0 && i < o->count);
    int64_t member = i;
    if (o->n_group > 1)
        member = member_in_groups(o, i);
    else if (o->shuffle)
        member = ttn_permute_at(&o->all, i);
    return o->side ? ttn_subset_at(o->side, member) : member;
}
