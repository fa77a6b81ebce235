#include <stdlib.h>
#include "autograd/cache.h"
#include "core/device.h"
#include "core/memory.h"

typedef struct {
    ttn_extent capacity;
    int mode;
    int64_t last_used; /* number of the request */
    ttn_graph *graph;
    ttn_plan *plan;
} slot;

struct ttn_plan_cache {
    ttn_record record;
    void *ctx;
    ttn_weights *weights;
    ttn_device *device;
    ttn_device *own_device;
    ttn_memory *memory;
    slot *slot;
    int n_slot, max_slots;
    int64_t requests, made;
};

int64_t ttn_ladder(int64_t n)
{
    const int64_t most = INT64_MAX / TTN_GRAPH_TILE * TTN_GRAPH_TILE;
    int64_t rung = 0;
    while (rung < n && rung < most) {
        int64_t quarter = rung / 4 / TTN_GRAPH_TILE * TTN_GRAPH_TILE;
        int64_t step = quarter > TTN_GRAPH_TILE ? quarter : TTN_GRAPH_TILE;
        rung = most - rung > step ? rung + step : most;
    }
    return rung;
}

ttn_status ttn_plan_cache_create(ttn_record record, void *ctx, ttn_weights *weights, ttn_device *device, int max_plans,
                                 size_t most, ttn_plan_cache **ret, ttn_error *err)
{
    *ret = NULL;
    if (max_plans < 1) return TTN_FAIL(err, TTN_EINVAL, "a cache of %d plans: at least 1 is possible", max_plans);
    ttn_plan_cache *c = calloc(1, sizeof *c);
    if (!c) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for a cache of plans");
    *c = (ttn_plan_cache){.record = record, .ctx = ctx, .weights = weights, .device = device, .max_slots = max_plans};
    c->slot = ttn_alloc_array(max_plans, sizeof *c->slot);
    ttn_status status =
        c->slot ? TTN_OK : TTN_FAIL(err, TTN_ENOMEM, "out of memory for a cache of %d plans", max_plans);
    if (status == TTN_OK && !device) {
        status = ttn_device_cpu(&c->own_device, err);
        c->device = c->own_device;
    }
    if (status == TTN_OK) status = c->device->ops->memory_create(c->device, 0, most, &c->memory, err);
    if (status != TTN_OK) {
        ttn_plan_cache_destroy(c);
        return status;
    }
    *ret = c;
    return TTN_OK;
}

static void empty(slot *s)
{
    ttn_plan_destroy(s->plan);
    ttn_graph_destroy(s->graph);
    *s = (slot){0};
}

void ttn_plan_cache_destroy(ttn_plan_cache *c)
{
    if (!c) return;
    for (int i = 0; i < c->n_slot; i++)
        empty(&c->slot[i]);
    if (c->memory) c->device->ops->memory_destroy(c->memory);
    ttn_free(c->slot);
    ttn_device_destroy(c->own_device);
    free(c);
}

static int same_extent(ttn_extent a, ttn_extent b)
{
    return a.rows == b.rows && a.seqs == b.seqs && a.picks == b.picks;
}

/* A free slot: a new one, or the one that was used longest ago, emptied. */
static slot *free_slot(ttn_plan_cache *c)
{
    if (c->n_slot < c->max_slots) return &c->slot[c->n_slot++];
    slot *oldest = &c->slot[0];
    for (int i = 1; i < c->n_slot; i++)
        if (c->slot[i].last_used < oldest->last_used) oldest = &c->slot[i];
    empty(oldest);
    return oldest;
}

static ttn_status fill_slot(ttn_plan_cache *c, slot *s, ttn_error *err)
{
    ttn_plan_options o = {0};
    ttn_status status = c->record(c->ctx, s->capacity, s->mode, &s->graph, &o, err);
    o.device = c->device;
    o.memory = c->memory;
    if (status == TTN_OK) status = ttn_plan_create(s->graph, &o, &s->plan, err);
    if (status == TTN_OK && c->weights) status = ttn_plan_attach(s->plan, c->weights, err);
    if (status == TTN_OK) c->made++;
    return status;
}

ttn_status ttn_plan_cache_get(ttn_plan_cache *c, ttn_extent used, int mode, ttn_plan **ret, ttn_error *err)
{
    *ret = NULL;
    const ttn_extent capacity = {
        .rows = ttn_ladder(used.rows),
        .seqs = used.seqs,
        .picks = ttn_ladder(used.picks),
    };
    c->requests++;
    for (int i = 0; i < c->n_slot; i++) {
        slot *s = &c->slot[i];
        if (!s->plan || s->mode != mode || !same_extent(s->capacity, capacity)) continue;
        s->last_used = c->requests;
        *ret = s->plan;
        return TTN_OK;
    }
    slot *s = free_slot(c);
    *s = (slot){.capacity = capacity, .mode = mode, .last_used = c->requests};
    ttn_status status = fill_slot(c, s, err);
    if (status != TTN_OK) {
        empty(s);
        return status;
    }
    *ret = s->plan;
    return TTN_OK;
}

int64_t ttn_plan_cache_made(const ttn_plan_cache *c)
{
    return c->made;
}
