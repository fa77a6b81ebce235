#include "tests/harness/guarded.h"
#include <stdlib.h>
#include <sys/mman.h>
#include "autograd/op.h"

enum { MAX_REGIONS = 16, MAX_NODES = 512, PAGE = 4096 };

typedef struct guarded guarded;

/* What this device gives out as a ttn_memory: the processor's, and whose it is. */
typedef struct {
    guarded *device;
    ttn_memory *inner; /* NULL: a free place */
    size_t bytes;
} region;

/* A node's op with kernels that open the memory, and the op that it stands for. */
typedef struct {
    const ttn_sig *sig;
    const ttn_op *real;
    ttn_op op;
} wrapped;

struct guarded {
    ttn_device device;
    ttn_device_ops ops;
    ttn_device *cpu;
    region region[MAX_REGIONS];
    wrapped *node;
    int n_node;
    guarded_transfers count;
};

static guarded *of(const ttn_stream *s)
{
    return (guarded *)s->device;
}

static void protect(const guarded *d, int as)
{
    for (int i = 0; i < MAX_REGIONS; i++)
        if (d->region[i].inner && mprotect(d->cpu->ops->memory_base(d->region[i].inner), d->region[i].bytes, as) != 0)
            abort();
}

static void open_memory(const guarded *d)
{
    protect(d, PROT_READ | PROT_WRITE);
}

static void close_memory(const guarded *d)
{
    protect(d, PROT_NONE);
}

/* ---- memory ---- */

static void destroy(ttn_device *device)
{
    guarded *d = (guarded *)device;
    ttn_device_destroy(d->cpu);
    free(d->node);
    free(d);
}

static const region *region_of(const ttn_memory *m)
{
    return (const region *)(const void *)m;
}

/* The memory is asked for at its full size: an address for good, whole pages of its own. */
static ttn_status memory_create(ttn_device *device, size_t bytes, size_t most, ttn_memory **ret, ttn_error *err)
{
    guarded *d = (guarded *)device;
    int i = 0;
    while (i < MAX_REGIONS && d->region[i].inner)
        i++;
    if (i == MAX_REGIONS) abort();
    const size_t room = (most > bytes ? most : bytes) / PAGE * PAGE + PAGE;
    ttn_memory *inner;
    ttn_status status = d->cpu->ops->memory_create(d->cpu, room, room, &inner, err);
    if (status != TTN_OK) return status;
    d->region[i] = (region){.device = d, .inner = inner, .bytes = room};
    close_memory(d);
    *ret = (ttn_memory *)(void *)&d->region[i];
    return TTN_OK;
}

static void memory_destroy(ttn_memory *m)
{
    if (!m) return;
    region *r = (region *)(void *)m;
    r->device->cpu->ops->memory_destroy(r->inner);
    r->inner = NULL;
}

static void *memory_base(const ttn_memory *m)
{
    return region_of(m)->device->cpu->ops->memory_base(region_of(m)->inner);
}

static size_t memory_bytes(const ttn_memory *m)
{
    return region_of(m)->bytes;
}

static const void **memory_user(ttn_memory *m)
{
    return region_of(m)->device->cpu->ops->memory_user(region_of(m)->inner);
}

static ttn_status memory_grow(ttn_memory *m, size_t bytes, ttn_error *err)
{
    (void)m;
    (void)bytes;
    (void)err;
    return TTN_OK; /* made as large as it may get */
}

static void memory_touch(ttn_memory *m, const ttn_stream *s)
{
    (void)m;
    (void)s;
}

/* ---- values ---- */

static ttn_status put(const ttn_stream *s, void *to, const void *from, size_t bytes, ttn_error *err)
{
    open_memory(of(s));
    of(s)->count.puts++;
    const ttn_status status = of(s)->cpu->ops->put(s, to, from, bytes, err);
    close_memory(of(s));
    return status;
}

static ttn_status get(const ttn_stream *s, void *to, const void *from, size_t bytes, ttn_error *err)
{
    open_memory(of(s));
    of(s)->count.gets++;
    const ttn_status status = of(s)->cpu->ops->get(s, to, from, bytes, err);
    close_memory(of(s));
    return status;
}

static ttn_status copy(const ttn_stream *s, void *to, const void *from, size_t bytes, ttn_error *err)
{
    open_memory(of(s));
    const ttn_status status = of(s)->cpu->ops->copy(s, to, from, bytes, err);
    close_memory(of(s));
    return status;
}

static ttn_status fill(const ttn_stream *s, void *to, int byte, size_t bytes, ttn_error *err)
{
    open_memory(of(s));
    const ttn_status status = of(s)->cpu->ops->fill(s, to, byte, bytes, err);
    close_memory(of(s));
    return status;
}

static ttn_status add(const ttn_stream *s, void *to, const void *from, int64_t n, ttn_error *err)
{
    open_memory(of(s));
    const ttn_status status = of(s)->cpu->ops->add(s, to, from, n, err);
    close_memory(of(s));
    return status;
}

static ttn_status find_nonfinite(const ttn_stream *s, ttn_dtype type, const void *x, int64_t n, int64_t *count,
                                 int64_t *first, ttn_error *err)
{
    open_memory(of(s));
    const ttn_status status = of(s)->cpu->ops->find_nonfinite(s, type, x, n, count, first, err);
    close_memory(of(s));
    return status;
}

/* ---- kernels ---- */

static ttn_status run_kernel(const ttn_call *c, ttn_pass pass, ttn_error *err)
{
    const guarded *d = of(c->on);
    int k = 0;
    while (k < d->n_node && d->node[k].sig != c->sig)
        k++;
    if (k == d->n_node) abort();
    const ttn_kernels *kernels = &d->node[k].real->cpu;
    open_memory(d);
    const ttn_status status = (pass == TTN_FORWARD ? kernels->forward : kernels->backward)(c, err);
    close_memory(d);
    return status;
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    return run_kernel(c, TTN_FORWARD, err);
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    return run_kernel(c, TTN_BACKWARD, err);
}

void guarded_graph(ttn_device *device, ttn_graph *g)
{
    guarded *d = (guarded *)device;
    for (int k = 0; k < g->n_node; k++) {
        if (d->n_node == MAX_NODES) abort();
        wrapped *w = &d->node[d->n_node++];
        *w = (wrapped){.sig = &g->node[k].sig, .real = g->node[k].op, .op = *g->node[k].op};
        w->op.cpu = (ttn_kernels){.forward = forward, .backward = backward};
        g->node[k].op = &w->op;
    }
}

guarded_transfers guarded_count(const ttn_device *d)
{
    return ((const guarded *)d)->count;
}

ttn_device *guarded_device(void)
{
    guarded *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->node = calloc(MAX_NODES, sizeof *d->node);
    if (!d->node || ttn_device_cpu(&d->cpu, NULL) != TTN_OK) {
        free(d->node);
        free(d);
        return NULL;
    }
    d->ops = *d->cpu->ops;
    d->ops.name = "guarded";
    d->ops.destroy = destroy;
    d->ops.memory_create = memory_create;
    d->ops.memory_grow = memory_grow;
    d->ops.memory_touch = memory_touch;
    d->ops.memory_base = memory_base;
    d->ops.memory_bytes = memory_bytes;
    d->ops.memory_user = memory_user;
    d->ops.memory_destroy = memory_destroy;
    d->ops.put = put;
    d->ops.get = get;
    d->ops.copy = copy;
    d->ops.fill = fill;
    d->ops.add = add;
    d->ops.find_nonfinite = find_nonfinite;
    d->device.ops = &d->ops;
    return &d->device;
}
