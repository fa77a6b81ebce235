#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/graph_impl.h"
#include "autograd/weights.h"
#include "core/device.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/rng.h"

enum { ALIGN = 64 };

typedef struct {
    ttn_weight public;
    char *name;
    uint64_t hash;
    ttn_init init;
} entry;

struct ttn_weights {
    ttn_device *device;
    ttn_device *own_device; /* destroyed with the weights; NULL: the caller's */
    entry *entry;
    int n_entry, n_param;
    size_t trainable_bytes; /* the first part of every slab */
    size_t param_bytes;     /* of the value slab */
    size_t state_bytes;
    ttn_memory *slab[TTN_N_SLABS];
    ttn_memory *state;
};

/* ---- layout ---- */

typedef struct {
    int value; /* of the graph */
    int frozen;
    int first_use; /* the first node that reads it; -1: none */
    int input;     /* as which of its inputs */
} parameter;

/* Gradients become final in the reverse order of first use. Frozen ones go last, and of their kind those that nobody
 * reads. */
static int by_final_gradient(const void *a, const void *b)
{
    const parameter *x = a;
    const parameter *y = b;
    if (x->frozen != y->frozen) return x->frozen - y->frozen;
    if (x->first_use != y->first_use) return x->first_use < y->first_use ? 1 : -1;
    if (x->input != y->input) return x->input - y->input;
    return x->value < y->value ? -1 : 1;
}

static void note_uses(const ttn_graph *g, parameter *of_value)
{
    for (int v = 0; v < g->n_value; v++)
        of_value[v] = (parameter){.value = v, .frozen = (g->value[v].flags & TTN_FROZEN) != 0, .first_use = -1};
    for (int k = g->n_node - 1; k >= 0; k--)
        for (int i = g->node[k].op->n_in - 1; i >= 0; i--) {
            int in = g->node[k].in[i];
            if (in == TTN_NONE || g->value[in].root != in) continue; /* no gradient comes through a detached value */
            of_value[in].first_use = k;
            of_value[in].input = i;
        }
}

/* The graph's parameters in slab order, *n of them; NULL: out of memory. */
static parameter *ordered_parameters(const ttn_graph *g, int *n)
{
    parameter *p = ttn_alloc_array(g->n_value, sizeof *p);
    if (!p) return NULL;
    note_uses(g, p);
    *n = 0;
    for (int v = 0; v < g->n_value; v++)
        if (g->value[v].leaf == TTN_LEAF_PARAM) p[(*n)++] = p[v];
    qsort(p, (size_t)*n, sizeof *p, by_final_gradient);
    return p;
}

static ttn_status add_entry(ttn_weights *w, const ttn_value *x, size_t *end, ttn_error *err)
{
    entry *e = &w->entry[w->n_entry];
    e->name = ttn_alloc(strlen(x->name) + 1);
    if (!e->name) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for the name of %s", x->name);
    memcpy(e->name, x->name, strlen(x->name) + 1);
    e->hash = x->hash;
    e->init = x->init;
    e->public = (ttn_weight){
        .name = e->name,
        .desc = x->desc,
        .flags = x->flags,
        .is_state = x->leaf == TTN_LEAF_STATE,
        .offset = *end,
        .bytes = ttn_desc_bytes(&x->desc),
    };
    w->n_entry++;
    size_t rounded;
    if (!ttn_size_add(e->public.bytes, ALIGN - 1, &rounded) || !ttn_size_add(*end, rounded / ALIGN * ALIGN, end))
        return TTN_FAIL(err, TTN_ENOMEM, "%s: the weights together do not fit in 64 bits", x->name);
    return TTN_OK;
}

static ttn_status add_entries(ttn_weights *w, const ttn_graph *g, const parameter *p, int n_param, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = 0; i < n_param && status == TTN_OK; i++) {
        const ttn_value *x = &g->value[p[i].value];
        status = add_entry(w, x, &w->param_bytes, err);
        if (!p[i].frozen) w->trainable_bytes = w->param_bytes;
    }
    w->n_param = w->n_entry;
    for (int v = 0; v < g->n_value && status == TTN_OK; v++)
        if (g->value[v].leaf == TTN_LEAF_STATE) status = add_entry(w, &g->value[v], &w->state_bytes, err);
    return status;
}

static ttn_status lay_out(ttn_weights *w, const ttn_graph *g, ttn_error *err)
{
    int n_param = 0;
    parameter *p = ordered_parameters(g, &n_param);
    if (!p) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for a list of %d weights", g->n_value);
    w->entry = ttn_alloc_or_say(g->n_value, sizeof *w->entry, "the weights of the graph", err);
    ttn_status status = w->entry ? add_entries(w, g, p, n_param, err) : TTN_ENOMEM;
    ttn_free(p);
    return status;
}

/* ---- memory ---- */

static ttn_stream stream_of(const ttn_weights *w)
{
    return (ttn_stream){.device = w->device, .n_thread = 1};
}

static ttn_status zeroed(const ttn_weights *w, size_t bytes, const char *what, ttn_memory **ret, ttn_error *err)
{
    ttn_error why = {0};
    const ttn_stream s = stream_of(w);
    ttn_status status = w->device->ops->memory_create(w->device, bytes, bytes, ret, &why);
    if (status == TTN_OK) status = w->device->ops->fill(&s, w->device->ops->memory_base(*ret), 0, bytes, &why);
    if (status != TTN_OK) return TTN_FAIL(err, status, "%s of the weights: %s", what, why.text);
    return TTN_OK;
}

ttn_status ttn_weights_layout(const ttn_graph *g, ttn_device *device, ttn_weights **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_status status = ttn_graph_check(g, err);
    if (status != TTN_OK) return status;
    ttn_weights *w = calloc(1, sizeof *w);
    if (!w) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for weights");
    w->device = device;
    if (!device) {
        status = ttn_device_cpu(&w->own_device, err);
        w->device = w->own_device;
    }
    if (status == TTN_OK) status = lay_out(w, g, err);
    if (status != TTN_OK) {
        ttn_weights_destroy(w);
        return status;
    }
    *ret = w;
    return TTN_OK;
}

ttn_status ttn_weights_create(const ttn_graph *g, ttn_device *device, ttn_weights **ret, ttn_error *err)
{
    ttn_status status = ttn_weights_layout(g, device, ret, err);
    if (status != TTN_OK) return status;
    assert(*ret); /* what ttn_weights_layout promises */
    status = ttn_weights_require(*ret, TTN_SLAB_VALUE, err);
    if (status != TTN_OK) {
        ttn_weights_destroy(*ret);
        *ret = NULL;
    }
    return status;
}

void ttn_weights_destroy(ttn_weights *w)
{
    if (!w) return;
    for (int s = 0; s < TTN_N_SLABS; s++)
        if (w->slab[s]) w->device->ops->memory_destroy(w->slab[s]);
    if (w->state) w->device->ops->memory_destroy(w->state);
    for (int i = 0; i < w->n_entry; i++)
        ttn_free(w->entry[i].name);
    ttn_free(w->entry);
    ttn_device_destroy(w->own_device);
    free(w);
}

ttn_status ttn_weights_require(ttn_weights *w, ttn_slab last, ttn_error *err)
{
    static const char *const name[TTN_N_SLABS] = {"the values", "the gradients", "the first moments",
                                                  "the second moments"};
    ttn_status status = TTN_OK;
    for (int s = TTN_SLAB_VALUE; s <= (int)last && s < TTN_N_SLABS && status == TTN_OK; s++) {
        const size_t bytes = s == TTN_SLAB_VALUE ? w->param_bytes : w->trainable_bytes;
        if (!w->slab[s]) status = zeroed(w, bytes, name[s], &w->slab[s], err);
    }
    if (status == TTN_OK && !w->state) status = zeroed(w, w->state_bytes, "the states", &w->state, err);
    return status;
}

/* ---- values ---- */

/* Elements are made in pieces of this many on the host and put where the weights live. */
enum { PIECE = 1 << 14 };

static void fill_piece(const entry *e, uint64_t seed, int64_t first, int64_t n, real *piece)
{
    const uint64_t key = ttn_rng_key(seed, e->hash, 0);
    const real a = (real)e->init.a;
    switch (e->init.kind) {
    case TTN_INIT_CONSTANT:
        for (int64_t i = 0; i < n; i++)
            piece[i] = a;
        break;
    case TTN_INIT_NORMAL:
        ttn_rng_normal(key, first, n, piece);
        for (int64_t i = 0; i < n; i++)
            piece[i] *= a;
        break;
    case TTN_INIT_UNIFORM:
        ttn_rng_uniform(key, first, n, piece);
        for (int64_t i = 0; i < n; i++)
            piece[i] = a * (2 * piece[i] - 1);
        break;
    }
}

static ttn_status init_entry(ttn_weights *w, int i, uint64_t seed, real *piece, ttn_error *err)
{
    const entry *e = &w->entry[i];
    const ttn_stream s = stream_of(w);
    const int64_t n = ttn_desc_numel(&e->public.desc);
    real *to = ttn_weights_address(w, i, TTN_SLAB_VALUE);
    ttn_status status = TTN_OK;
    for (int64_t first = 0; first < n && status == TTN_OK; first += PIECE) {
        int64_t count = n - first < PIECE ? n - first : PIECE;
        fill_piece(e, seed, first, count, piece);
        status = w->device->ops->put(&s, to + first, piece, (size_t)count * sizeof *piece, err);
    }
    return status;
}

ttn_status ttn_weights_init(ttn_weights *w, uint64_t seed, ttn_error *err)
{
    const ttn_stream s = stream_of(w);
    real *piece = ttn_alloc_array(PIECE, sizeof *piece);
    if (!piece) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for %d numbers", PIECE);
    ttn_status status = TTN_OK;
    for (int i = 0; i < w->n_param && status == TTN_OK; i++)
        status = init_entry(w, i, seed, piece, err);
    ttn_free(piece);
    if (status != TTN_OK) return status;
    return w->device->ops->fill(&s, w->device->ops->memory_base(w->state), 0, w->state_bytes, err);
}

/* ---- questions ---- */

int ttn_weights_count(const ttn_weights *w)
{
    return w->n_entry;
}

const ttn_weight *ttn_weights_at(const ttn_weights *w, int i)
{
    return i >= 0 && i < w->n_entry ? &w->entry[i].public : NULL;
}

int ttn_weights_find(const ttn_weights *w, const char *name)
{
    if (!name) return -1;
    uint64_t hash = ttn_hash_text(name);
    for (int i = 0; i < w->n_entry; i++)
        if (w->entry[i].hash == hash && strcmp(w->entry[i].name, name) == 0) return i;
    return -1;
}

void *ttn_weights_address(const ttn_weights *w, int i, ttn_slab slab)
{
    if (i < 0 || i >= w->n_entry || (int)slab < 0 || slab >= TTN_N_SLABS) return NULL;
    const ttn_weight *e = &w->entry[i].public;
    const ttn_memory *m = e->is_state ? w->state : w->slab[slab];
    int only_value = e->is_state || e->flags & TTN_FROZEN;
    if (!m || (only_value && slab != TTN_SLAB_VALUE)) return NULL;
    return (char *)w->device->ops->memory_base(m) + e->offset;
}

void *ttn_weights_slab(const ttn_weights *w, ttn_slab slab)
{
    if ((int)slab < 0 || slab >= TTN_N_SLABS || !w->slab[slab]) return NULL;
    return w->device->ops->memory_base(w->slab[slab]);
}

int64_t ttn_weights_slab_elements(const ttn_weights *w)
{
    return (int64_t)(w->trainable_bytes / sizeof(real));
}

/* The address, or a sentence. */
static ttn_status locate(const ttn_weights *w, int i, ttn_slab slab, void **ret, ttn_error *err)
{
    *ret = ttn_weights_address(w, i, slab);
    if (*ret) return TTN_OK;
    if (i < 0 || i >= w->n_entry) return TTN_FAIL(err, TTN_EINVAL, "weight %d: there are %d", i, w->n_entry);
    return TTN_FAIL(err, TTN_EINVAL, "%s has no values in slab %d: frozen, a state, or not required yet",
                    w->entry[i].name, (int)slab);
}

ttn_status ttn_weights_read(const ttn_weights *w, int i, ttn_slab slab, void *data, ttn_error *err)
{
    void *from;
    ttn_status status = locate(w, i, slab, &from, err);
    if (status != TTN_OK) return status;
    const ttn_stream s = stream_of(w);
    return w->device->ops->get(&s, data, from, w->entry[i].public.bytes, err);
}

ttn_status ttn_weights_write(ttn_weights *w, int i, ttn_slab slab, const void *data, ttn_error *err)
{
    void *to;
    ttn_status status = locate(w, i, slab, &to, err);
    if (status != TTN_OK) return status;
    const ttn_stream s = stream_of(w);
    return w->device->ops->put(&s, to, data, w->entry[i].public.bytes, err);
}
