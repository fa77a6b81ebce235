/* Forward and backward of a case, and what must hold after each: nothing written but what is to be written, all of that, and
 * zeros past the rows in use. */
#include "autograd/gradcheck_impl.h"

/* ---- what is wrong with a buffer ---- */

static ttn_status check_guard(const instance *t, const char *pass, const char *kind, int number, const buffer *b,
                              ttn_error *err)
{
    const int side = ttn_gradcheck_guard(b);
    if (side == 0) return TTN_OK;
    return FAULT(err, "%s: %s writes %s %s %d, outside the buffer", t->op->name, pass,
                 side < 0 ? "in front of" : "behind", kind, number);
}

static ttn_status check_kept(const instance *t, const char *pass, const char *kind, int number, const buffer *b,
                             ttn_error *err)
{
    if (is_saved(b)) return TTN_OK;
    return FAULT(err, "%s: %s writes to %s %d, which it may only read", t->op->name, pass, kind, number);
}

ttn_status ttn_gradcheck_guards(const instance *t, const char *pass, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = 0; i < t->op->n_in && status == TTN_OK; i++) {
        status = check_guard(t, pass, "in", i, &t->in[i], err);
        if (status == TTN_OK) status = check_guard(t, pass, "din", i, &t->din[i], err);
    }
    for (int j = 0; j < t->op->n_out && status == TTN_OK; j++) {
        status = check_guard(t, pass, "out", j, &t->out[j], err);
        if (status == TTN_OK) status = check_guard(t, pass, "dout", j, &t->dout[j], err);
    }
    for (int a = 0; a < t->sig.n_aux && status == TTN_OK; a++)
        status = check_guard(t, pass, "aux", a, &t->aux[a], err);
    if (status == TTN_OK) status = check_guard(t, pass, "stat", 0, &t->stat, err);
    if (status == TTN_OK) status = check_guard(t, pass, "work", 0, &t->work, err);
    return status;
}

/* No NaN where something must have been written: the first n elements. */
static ttn_status check_written(const instance *t, const char *pass, const char *kind, int number, const ttn_desc *d,
                                const void *x, int64_t n, ttn_error *err)
{
    if (!is_real(d)) return TTN_OK;
    for (int64_t e = 0; e < n; e++)
        if (!isfinite(ttn_gradcheck_get(d, x, e)))
            return FAULT(err,
                         "%s: after %s, element %" PRId64 " of %s %d (row %" PRId64 " of %" PRId64
                         " in use) is %g: not written, or made from what is not defined",
                         t->op->name, pass, e, kind, number, e / ttn_row_width(d), ttn_used(&t->feed, d),
                         ttn_gradcheck_get(d, x, e));
    return TTN_OK;
}

/* Rows past `used` hold `rest`. */
static ttn_status check_rest(const instance *t, const char *pass, const char *kind, int number, const ttn_desc *d,
                             const void *x, double rest, ttn_error *err)
{
    const int64_t n = ttn_desc_numel(d);
    for (int64_t e = ttn_used_numel(&t->feed, d); e < n; e++)
        if (ttn_gradcheck_get(d, x, e) != rest)
            return FAULT(err,
                         "%s: after %s, row %" PRId64 " of %s %d is past the %" PRId64 " in use and holds %g, not %g",
                         t->op->name, pass, e / ttn_row_width(d), kind, number, ttn_used(&t->feed, d),
                         ttn_gradcheck_get(d, x, e), rest);
    return TTN_OK;
}

/* ---- a call where the kernel runs ---- */

/* Where the copy of what stands at p lies. */
static void *there(instance *t, const void *p)
{
    for (int i = 0; p && i < N_BUFFERS; i++) {
        const buffer *b = ttn_gradcheck_buffer(t, i);
        const uintptr_t offset = (uintptr_t)p - (uintptr_t)b->raw;
        if (b->raw && offset < ttn_gradcheck_raw_bytes(b))
            return (char *)t->device->ops->memory_base(t->there) + b->there + offset;
    }
    return NULL;
}

/* All buffers, guards too, to the device or back. */
static ttn_status move(instance *t, int to_device, ttn_error *err)
{
    const ttn_device_ops *d = t->device->ops;
    ttn_status status = TTN_OK;
    for (int i = 0; i < N_BUFFERS && status == TTN_OK; i++) {
        const buffer *b = ttn_gradcheck_buffer(t, i);
        if (!b->raw) continue;
        if (to_device)
            status = d->put(&t->on, there(t, b->raw), b->raw, ttn_gradcheck_raw_bytes(b), err);
        else
            status = d->get(&t->on, b->raw, there(t, b->raw), ttn_gradcheck_raw_bytes(b), err);
    }
    return status;
}

static ttn_status call_there(instance *t, const ttn_call *host, ttn_kernel kernel, ttn_error *err)
{
    ttn_call c = *host;
    for (int i = 0; i < TTN_MAX_IN; i++) {
        c.in[i] = there(t, host->in[i]);
        c.din[i] = there(t, host->din[i]);
    }
    for (int j = 0; j < TTN_MAX_OUT; j++) {
        c.out[j] = there(t, host->out[j]);
        c.dout[j] = there(t, host->dout[j]);
    }
    for (int a = 0; a < TTN_MAX_AUX; a++)
        c.aux[a] = there(t, host->aux[a]);
    c.work = there(t, host->work);
    c.stat = there(t, host->stat);
    c.on_device = ttn_feed_at(&t->layout, there(t, t->arrays.data));
    c.on_device.fault = (ttn_fault_sink){.first = there(t, t->fault.data), .step = ttn_fault_of_step(0)};
    uint64_t first = TTN_NO_FAULT;
    memcpy(t->fault.data, &first, sizeof first);
    ttn_status status = move(t, 1, err);
    if (status == TTN_OK) status = kernel(&c, err);
    if (status == TTN_OK) status = move(t, 0, err);
    if (status != TTN_OK) return status;
    memcpy(&first, t->fault.data, sizeof first);
    if (first == TTN_NO_FAULT) return TTN_OK;
    const ttn_fault fault = ttn_fault_of(first);
    if (!t->op->fault) return FAULT(err, "%s: a kernel raises a fault, but the op has no sentence for it", t->op->name);
    return t->op->fault(host, fault.kind, fault.at, err);
}

ttn_status ttn_gradcheck_call(instance *t, const ttn_call *c, ttn_pass pass, ttn_error *err)
{
    const ttn_kernel kernel = pass == TTN_FORWARD ? t->kernels->forward : t->kernels->backward;
    return t->device ? call_there(t, c, kernel, err) : kernel(c, err);
}

/* ---- forward and backward, with what must hold after every run ---- */

static ttn_call call_of(instance *t, const variation *v)
{
    t->on.n_thread = v->n_thread > 0 ? v->n_thread : 1;
    return (ttn_call){.sig = &t->sig, .feed = &t->feed, .on = &t->on, .key = t->feed.seed, .work = t->work.data};
}

ttn_call ttn_gradcheck_forward_call(instance *t, const variation *v)
{
    ttn_call c = call_of(t, v);
    for (int i = 0; i < t->op->n_in; i++)
        c.in[i] = t->in[i].data;
    for (int j = 0; j < t->op->n_out; j++)
        c.out[j] = t->out[j].data;
    for (int a = 0; a < t->sig.n_aux; a++)
        c.aux[a] = v->aux_left_out & TTN_BIT(a) ? NULL : t->aux[a].data;
    c.stat = t->sig.n_stat > 0 ? t->stat.data : NULL;
    return c;
}

ttn_status ttn_gradcheck_forward(instance *t, variation v, ttn_error *err)
{
    const ttn_op *op = t->op;
    for (int j = 0; j < op->n_out; j++)
        clear(&t->out[j]);
    for (int a = 0; a < t->sig.n_aux; a++)
        clear(&t->aux[a]);
    clear(&t->stat);
    clear(&t->work);
    ttn_call c = ttn_gradcheck_forward_call(t, &v);
    if (v.takes) {
        const int j = v.takes - 1;
        const int i = op->takes[j] - 1;
        memcpy(t->out[j].data, t->in[i].data, t->in[i].bytes);
        c.in[i] = t->out[j].data;
    }
    ttn_status status = ttn_gradcheck_call(t, &c, TTN_FORWARD, err);
    if (status == TTN_OK) status = ttn_gradcheck_guards(t, "forward", err);
    for (int i = 0; i < op->n_in && status == TTN_OK; i++)
        status = check_kept(t, "forward", "in", i, &t->in[i], err);
    for (int j = 0; j < op->n_out && status == TTN_OK; j++) {
        const ttn_desc *d = &t->sig.out[j];
        status = check_written(t, "forward", "out", j, d, t->out[j].data, ttn_used_numel(&t->feed, d), err);
        if (status == TTN_OK) status = check_rest(t, "forward", "out", j, d, t->out[j].data, 0, err);
        save(&t->out[j]);
    }
    for (int a = 0; a < t->sig.n_aux && status == TTN_OK; a++) {
        const ttn_desc *d = &t->sig.aux[a];
        if (c.aux[a])
            status = check_written(t, "forward", "aux", a, d, t->aux[a].data, ttn_used_numel(&t->feed, d), err);
        save(&t->aux[a]);
    }
    for (int s = 0; s < t->sig.n_stat && status == TTN_OK; s++)
        if (isnan(((const double *)t->stat.data)[s]))
            status = FAULT(err, "%s: forward does not write stat %d", op->name, s);
    save(&t->stat);
    return status;
}

ttn_call ttn_gradcheck_backward_call(instance *t, uint32_t wanted, const variation *v)
{
    const ttn_op *op = t->op;
    const ttn_reads reads = ttn_op_reads(op, wanted);
    ttn_call c = call_of(t, v);
    for (int i = 0; i < op->n_in; i++) {
        if (reads.in & TTN_BIT(i)) c.in[i] = t->in[i].data;
        if (!(wanted & TTN_BIT(i))) continue;
        c.din[i] = t->din[i].data;
        c.acc[i] = (real)v->acc;
    }
    for (int j = 0; j < op->n_out; j++) {
        if (reads.out & TTN_BIT(j)) c.out[j] = t->out[j].data;
        if (!(v->no_dout & TTN_BIT(j))) c.dout[j] = t->dout[j].data;
    }
    for (int a = 0; a < t->sig.n_aux; a++)
        if (reads.aux & TTN_BIT(a) && !(v->aux_left_out & TTN_BIT(a))) c.aux[a] = t->aux[a].data;
    return c;
}

void ttn_gradcheck_prepare(instance *t, int acc)
{
    for (int i = 0; i < t->op->n_in; i++) {
        clear(&t->din[i]);
        if (!acc || !t->din[i].raw) continue;
        for (int64_t e = 0; e < ttn_desc_numel(&t->sig.in[i]); e++)
            ttn_gradcheck_set(&t->sig.in[i], t->din[i].data, e, 1);
    }
}

ttn_status ttn_gradcheck_backward(instance *t, uint32_t wanted, variation v, ttn_error *err)
{
    const ttn_op *op = t->op;
    ttn_gradcheck_prepare(t, v.acc);
    clear(&t->work);
    ttn_call c = ttn_gradcheck_backward_call(t, wanted, &v);
    if (v.passes) {
        const int i = v.passes - 1;
        const int j = op->passes[i] - 1;
        memcpy(t->din[i].data, t->dout[j].data, t->dout[j].bytes);
        c.dout[j] = t->din[i].data;
    }
    ttn_status status = ttn_gradcheck_call(t, &c, TTN_BACKWARD, err);
    if (status == TTN_OK) status = ttn_gradcheck_guards(t, "backward", err);
    for (int i = 0; i < op->n_in && status == TTN_OK; i++) {
        const ttn_desc *d = &t->sig.in[i];
        status = check_kept(t, "backward", "in", i, &t->in[i], err);
        if (status != TTN_OK || !(wanted & TTN_BIT(i))) continue;
        status = check_written(t, "backward", "din", i, d, t->din[i].data, ttn_used_numel(&t->feed, d), err);
        if (status == TTN_OK) status = check_rest(t, "backward", "din", i, d, t->din[i].data, v.acc, err);
    }
    for (int j = 0; j < op->n_out && status == TTN_OK; j++) {
        status = check_kept(t, "backward", "out", j, &t->out[j], err);
        if (status == TTN_OK) status = check_kept(t, "backward", "dout", j, &t->dout[j], err);
    }
    for (int a = 0; a < t->sig.n_aux && status == TTN_OK; a++)
        status = check_kept(t, "backward", "aux", a, &t->aux[a], err);
    return status;
}

ttn_status ttn_gradcheck_first_run(instance *t, ttn_error *err)
{
    ttn_status status = ttn_gradcheck_forward(t, (variation){0}, err);
    if (status == TTN_OK) status = ttn_gradcheck_backward(t, all_wanted(t), (variation){0}, err);
    for (int i = 0; i < t->op->n_in; i++)
        save(&t->din[i]);
    return status;
}
