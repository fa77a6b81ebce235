#include "autograd/tap.h"
#include "core/memory.h"

/* Copies of values one behind the other. With `to` NULL they are only counted. */
typedef struct {
    const ttn_stream *on;
    char *to;
    size_t bytes;
    ttn_status status;
    ttn_error *err;
} copies;

/* The copy of what stands at `from`, an address of the device or NULL. */
static void *bring(copies *k, const void *from, size_t bytes)
{
    if (!from || k->status != TTN_OK) return NULL;
    char *to = k->to ? k->to + k->bytes : NULL;
    k->bytes += ttn_work_align(bytes);
    if (to) k->status = k->on->device->ops->get(k->on, to, from, bytes, k->err);
    return to;
}

static void bring_all(copies *k, const ttn_call *from, ttn_call *to)
{
    const ttn_sig *s = from->sig;
    for (int i = 0; i < s->n_in; i++)
        to->in[i] = bring(k, from->in[i], ttn_desc_bytes(&s->in[i]));
    for (int j = 0; j < s->n_out; j++)
        to->out[j] = bring(k, from->out[j], ttn_desc_bytes(&s->out[j]));
    for (int a = 0; a < s->n_aux; a++)
        to->aux[a] = bring(k, from->aux[a], ttn_desc_bytes(&s->aux[a]));
    to->stat = bring(k, from->stat, (size_t)s->n_stat * sizeof(double));
}

ttn_status ttn_tap_open(const ttn_call *c, ttn_tap_view *ret, ttn_error *err)
{
    *ret = (ttn_tap_view){.call = *c};
    if (!c->on->device || c->on->device->ops->kernels == TTN_KERNELS_CPU) return TTN_OK;
    ret->on.n_thread = 1;
    ret->call.on = &ret->on;
    ret->call.on_device = (ttn_on_device){.span = NULL};
    ret->call.work = NULL;
    copies k = {.on = c->on, .err = err};
    bring_all(&k, c, &ret->call);
    ret->piece = ttn_alloc_or_say((int64_t)k.bytes, 1, "a copy of a node's values on the host", err);
    if (!ret->piece) return TTN_ENOMEM;
    k = (copies){.on = c->on, .to = ret->piece, .err = err};
    bring_all(&k, c, &ret->call);
    if (k.status != TTN_OK) ttn_tap_close(ret);
    return k.status;
}

void ttn_tap_close(ttn_tap_view *v)
{
    ttn_free(v->piece);
    v->piece = NULL;
}
