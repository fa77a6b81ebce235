/* What a run sends to the device before its first step and brings back after its last, beside inputs: one transfer each.
 * Between them the host knows no value: statistics, losses and faults in the data wait in the device's memory. */
#include <inttypes.h>
#include <string.h>
#include "autograd/plan_impl.h"
#include "core/memory.h"

enum { ALIGN = 16 };

/* Room for n elements behind what is there; where it begins. */
static size_t append(exchange *x, int64_t n, size_t size)
{
    const size_t first = (x->bytes + ALIGN - 1) / ALIGN * ALIGN;
    x->bytes = first + (size_t)n * size;
    return first;
}

static int kernels_look_at_the_feed(const ttn_plan *p)
{
    return p->device->ops->kernels != TTN_KERNELS_CPU;
}

ttn_status ttn_exchange_create(ttn_plan *p, ttn_error *err)
{
    exchange *x = &p->exchange;
    *x = (exchange){.bytes = 0};
    (void)append(x, p->n_stat, sizeof(double));
    x->loss = append(x, p->want.options.n_loss, sizeof(real));
    x->fault = append(x, 1, sizeof(uint64_t));
    x->seed = append(x, p->want.options.n_loss, sizeof(real));
    if (kernels_look_at_the_feed(p)) {
        if (p->s.n_step >= 1 << TTN_FAULT_STEP_BITS)
            return TTN_FAIL(err, TTN_EINVAL, "plan: %d steps; fewer than %d are possible on a device", p->s.n_step,
                            1 << TTN_FAULT_STEP_BITS);
        x->layout = ttn_feed_lay_out(p->want.g->cap);
        x->feed = append(x, 1, x->layout.bytes);
    }
    x->host = ttn_alloc(x->bytes);
    if (!x->host)
        return TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for the %zu bytes that a run exchanges with the device",
                        x->bytes);
    return TTN_OK;
}

void ttn_exchange_destroy(ttn_plan *p)
{
    if (p->exchange.memory) p->device->ops->memory_destroy(p->exchange.memory);
    ttn_free(p->exchange.host);
}

ttn_status ttn_exchange_bind(ttn_plan *p, ttn_error *err)
{
    exchange *x = &p->exchange;
    if (x->memory) return TTN_OK;
    return p->device->ops->memory_create(p->device, x->bytes, x->bytes, &x->memory, err);
}

static char *on_device(const ttn_plan *p, size_t offset)
{
    return (char *)p->device->ops->memory_base(p->exchange.memory) + offset;
}

void *ttn_exchange_stat(const ttn_plan *p, int first)
{
    return on_device(p, (size_t)first * sizeof(double));
}

/* ---- there ---- */

ttn_status ttn_exchange_send(const ttn_plan *p, const ttn_stream *on, const ttn_feed *f, const double *loss_weight,
                             ttn_error *err)
{
    const exchange *x = &p->exchange;
    const uint64_t none = TTN_NO_FAULT;
    memcpy(x->host + x->fault, &none, sizeof none);
    real *seed = (void *)(x->host + x->seed);
    for (int i = 0; i < p->want.options.n_loss; i++)
        seed[i] = loss_weight ? (real)loss_weight[i] : 1;
    if (kernels_look_at_the_feed(p)) ttn_feed_write(&x->layout, f, x->host + x->feed);
    return p->device->ops->put(on, on_device(p, x->fault), x->host + x->fault, x->bytes - x->fault, err);
}

ttn_on_device ttn_exchange_for_step(const ttn_plan *p, int at)
{
    if (!kernels_look_at_the_feed(p)) return (ttn_on_device){.span = NULL};
    const exchange *x = &p->exchange;
    ttn_on_device there = ttn_feed_at(&x->layout, on_device(p, x->feed));
    there.fault = (ttn_fault_sink){.first = (void *)on_device(p, x->fault), .step = ttn_fault_of_step(at)};
    return there;
}

ttn_status ttn_exchange_seed(const ttn_plan *p, const ttn_stream *on, int loss, void *to, ttn_error *err)
{
    const size_t offset = p->exchange.seed + (size_t)loss * sizeof(real);
    return p->device->ops->copy(on, to, on_device(p, offset), sizeof(real), err);
}

/* ---- and back ---- */

ttn_status ttn_exchange_keep_loss(const ttn_plan *p, const ttn_stream *on, int loss, const void *from, ttn_error *err)
{
    const size_t offset = p->exchange.loss + (size_t)loss * sizeof(real);
    return p->device->ops->copy(on, on_device(p, offset), from, sizeof(real), err);
}

static int is_integer(const ttn_desc *d)
{
    return d->type == TTN_I64 || d->type == TTN_I32 || d->type == TTN_U8;
}

/* The sentence is the op's; what it names it finds among the integer inputs, which are the caller's arrays. */
static ttn_status say_fault(const ttn_plan *p, const ttn_feed *f, ttn_fault fault, ttn_error *err)
{
    const ttn_graph *g = p->want.g;
    const ttn_node *n = &g->node[p->s.step[fault.step].node];
    ttn_call c = {.sig = &n->sig, .feed = f};
    int at_hand = n->op->fault != NULL;
    for (int i = 0; i < n->sig.n_in; i++) {
        if (n->in[i] == TTN_NONE || !is_integer(&n->sig.in[i])) continue;
        c.in[i] = p->bound[g->value[n->in[i]].root];
        at_hand = at_hand && c.in[i];
    }
    if (!at_hand) /* integers that are a state */
        return TTN_FAIL(err, TTN_EINVAL, "%s (%s): fault %d in its data, at %" PRId64, n->name, n->op->name, fault.kind,
                        fault.at);
    ttn_error why = {0};
    const ttn_status status = n->op->fault(&c, fault.kind, fault.at, &why);
    return TTN_FAIL(err, status, "%s: %s", n->name, why.text);
}

ttn_status ttn_exchange_receive(const ttn_plan *p, const ttn_stream *on, const ttn_feed *f, ttn_error *err)
{
    const exchange *x = &p->exchange;
    uint64_t fault;
    const size_t bytes = x->fault + sizeof fault;
    ttn_status status = p->device->ops->get(on, x->host, on_device(p, 0), bytes, err);
    if (status != TTN_OK) return status;
    memcpy(&fault, x->host + x->fault, sizeof fault);
    return fault == TTN_NO_FAULT ? TTN_OK : say_fault(p, f, ttn_fault_of(fault), err);
}

const double *ttn_exchange_stats(const ttn_plan *p)
{
    return (const double *)(const void *)p->exchange.host;
}

const real *ttn_exchange_losses(const ttn_plan *p)
{
    return (const real *)(const void *)(p->exchange.host + p->exchange.loss);
}
