/* Binding a plan to memory and walking its steps. Values are written and read through the device only. */
#include <inttypes.h>
#include <string.h>
#include "autograd/plan_impl.h"
#include "core/blas.h"
#include "core/fp.h"
#include "core/memory.h"
#include "core/rng.h"

/* ---- weights and inputs ---- */

static ttn_status attach_leaf(ttn_plan *p, int v, const ttn_weights *w, ttn_error *err)
{
    const ttn_value *x = &p->want.g->value[v];
    p->weight_of[v] = ttn_weights_find(w, x->name);
    const ttn_weight *found = ttn_weights_at(w, p->weight_of[v]);
    if (!found) return TTN_FAIL(err, TTN_EINVAL, "plan: the weights have no '%s'", x->name);
    char wanted[TTN_DESC_TEXT];
    char there[TTN_DESC_TEXT];
    if (!ttn_desc_same(&found->desc, &x->desc))
        return TTN_FAIL(err, TTN_EINVAL, "plan: '%s' is %s, the weights have it as %s", x->name,
                        ttn_desc_print(&x->desc, wanted), ttn_desc_print(&found->desc, there));
    if (found->is_state != (x->leaf == TTN_LEAF_STATE))
        return TTN_FAIL(err, TTN_EINVAL, "plan: '%s' is a parameter on one side and a state on the other", x->name);
    if (p->want.leads[v] && x->leaf == TTN_LEAF_PARAM && found->flags & TTN_FROZEN)
        return TTN_FAIL(err, TTN_EINVAL, "plan: '%s' is trained by this graph, but frozen in the weights", x->name);
    return TTN_OK;
}

ttn_status ttn_plan_attach(ttn_plan *p, ttn_weights *w, ttn_error *err)
{
    const ttn_graph *g = p->want.g;
    p->weights = NULL;
    p->base = NULL; /* the calls point into the old ones */
    p->ran = 0;
    ttn_status status = TTN_OK;
    for (int v = 0; v < g->n_value && status == TTN_OK; v++)
        if (g->value[v].leaf == TTN_LEAF_PARAM || g->value[v].leaf == TTN_LEAF_STATE)
            status = attach_leaf(p, v, w, err);
    if (status == TTN_OK && p->s.n_final > 0) status = ttn_weights_require(w, TTN_SLAB_GRADIENT, err);
    if (status == TTN_OK) p->weights = w;
    return status;
}

ttn_status ttn_plan_bind(ttn_plan *p, const char *input, const void *data, ttn_error *err)
{
    const ttn_graph *g = p->want.g;
    if (!input) return TTN_FAIL(err, TTN_EINVAL, "plan: an input without a name is bound");
    for (int v = 0; v < g->n_value; v++) {
        if (g->value[v].leaf != TTN_LEAF_INPUT || strcmp(g->value[v].name, input) != 0) continue;
        if (!data) return TTN_FAIL(err, TTN_EINVAL, "plan: input '%s' is bound to nothing", input);
        p->bound[v] = data;
        return TTN_OK;
    }
    return TTN_FAIL(err, TTN_EINVAL, "plan: the graph has no input '%s'", input);
}

/* ---- addresses ---- */

static void *address_of_buffer(const ttn_plan *p, int b)
{
    return (char *)p->base + p->s.buffer[ttn_root_buffer(&p->s, b)].offset;
}

static void *address(const ttn_plan *p, int place, ttn_slab slab)
{
    if (place == PLACE_NONE) return NULL;
    if (PLACE_IS_LEAF(place)) return ttn_weights_address(p->weights, p->weight_of[LEAF_OF_PLACE(place)], slab);
    return address_of_buffer(p, place);
}

static void bind_step(ttn_plan *p, int at)
{
    const step *st = &p->s.step[at];
    const ttn_node *n = &p->want.g->node[st->node];
    ttn_call *c = &p->call[at];
    *c = (ttn_call){.sig = &n->sig};
    for (int i = 0; i < TTN_MAX_IN; i++) {
        c->in[i] = address(p, st->in[i], TTN_SLAB_VALUE);
        c->din[i] = address(p, st->din[i], TTN_SLAB_GRADIENT);
        c->acc[i] = st->first_writer & TTN_BIT(i) ? 0 : 1;
    }
    for (int j = 0; j < TTN_MAX_OUT; j++) {
        c->out[j] = address(p, st->out[j], TTN_SLAB_VALUE);
        c->dout[j] = address(p, st->dout[j], TTN_SLAB_VALUE);
    }
    for (int j = 0; j < TTN_MAX_AUX; j++)
        c->aux[j] = address(p, st->aux[j], TTN_SLAB_VALUE);
    c->work = address(p, st->work, TTN_SLAB_VALUE);
    if (n->sig.n_stat > 0) c->stat = ttn_exchange_stat(p, p->stat_first[st->node]);
    c->on_device = ttn_exchange_for_step(p, at);
}

/* The block is large enough, and every call points into it. */
static ttn_status bind_memory(ttn_plan *p, const ttn_stream *on, ttn_error *err)
{
    const ttn_device_ops *d = p->device->ops;
    ttn_status status = TTN_OK;
    if (!p->memory) {
        status = d->memory_create(p->device, p->s.bytes, p->s.bytes, &p->own_memory, err);
        p->memory = p->own_memory;
    }
    if (status == TTN_OK) status = ttn_exchange_bind(p, err);
    if (status == TTN_OK) status = d->memory_grow(p->memory, p->s.bytes, err);
    if (status != TTN_OK) return status;
    d->memory_touch(p->memory, on);
    void *base = d->memory_base(p->memory);
    if (base == p->base) return TTN_OK;
    p->base = base;
    for (int at = 0; at < p->s.n_step; at++)
        bind_step(p, at);
    return TTN_OK;
}

/* ---- the feed ---- */

static ttn_status check_extent(int64_t used, int64_t cap, const char *what, ttn_error *err)
{
    if (used >= 0 && used <= cap) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "run: a batch of %" PRId64 " %s, the plan has room for %" PRId64, used, what, cap);
}

static ttn_status check_feed(const ttn_plan *p, const ttn_feed *f, ttn_error *err)
{
    const ttn_extent cap = p->want.g->cap;
    ttn_status status = check_extent(f->used.rows, cap.rows, "rows", err);
    if (status == TTN_OK) status = check_extent(f->used.seqs, cap.seqs, "sequences", err);
    if (status == TTN_OK) status = check_extent(f->used.picks, cap.picks, "picks", err);
    if (status != TTN_OK) return status;
    if (f->used.seqs > 0 && !f->span)
        return TTN_FAIL(err, TTN_EINVAL, "run: %" PRId64 " sequences without their spans", f->used.seqs);
    int64_t free_from = 0;
    for (int64_t i = 0; i < f->used.seqs; i++) {
        const ttn_span s = f->span[i];
        if (s.n < 1 || s.first < free_from || s.first > f->used.rows || s.n > f->used.rows - s.first)
            return TTN_FAIL(err, TTN_EINVAL,
                            "run: sequence %" PRId64 " has %" PRId64 " rows from row %" PRId64
                            "; at least 1 row, from row %" PRId64 " on, within %" PRId64 " used rows is possible",
                            i, s.n, s.first, free_from, f->used.rows);
        free_from = s.first + s.n;
        if (f->start && (f->start[i] < 0 || f->start[i] > TTN_MAX_POSITION - s.n))
            return TTN_FAIL(err, TTN_EINVAL,
                            "run: sequence %" PRId64 " begins at position %" PRId64 " of its protein; 0 to %" PRId64
                            " is possible with %" PRId64 " rows",
                            i, f->start[i], TTN_MAX_POSITION - s.n, s.n);
    }
    return TTN_OK;
}

static ttn_status check_bound(const ttn_plan *p, ttn_error *err)
{
    const ttn_graph *g = p->want.g;
    for (int v = 0; v < g->n_value; v++) {
        const ttn_value *x = &g->value[v];
        int reads = p->s.value_buffer[0][v] != PLACE_NONE;
        if (x->leaf == TTN_LEAF_INPUT && reads && !p->bound[v])
            return TTN_FAIL(err, TTN_EINVAL, "run: input '%s' is not bound", x->name);
        if ((x->leaf == TTN_LEAF_PARAM || x->leaf == TTN_LEAF_STATE) && !p->weights)
            return TTN_FAIL(err, TTN_EINVAL, "run: no weights are attached, '%s' has no values", x->name);
    }
    return TTN_OK;
}

/* The used part comes from the caller, the rest is 0. */
static ttn_status put_inputs(const ttn_plan *p, const ttn_stream *on, const ttn_feed *f, ttn_error *err)
{
    const ttn_graph *g = p->want.g;
    ttn_status status = TTN_OK;
    for (int v = 0; v < g->n_value && status == TTN_OK; v++) {
        const ttn_value *x = &g->value[v];
        if (x->leaf != TTN_LEAF_INPUT || p->s.value_buffer[0][v] == PLACE_NONE) continue;
        size_t all = ttn_desc_bytes(&x->desc);
        size_t row = x->desc.ndim > 0 && x->desc.dim[0] > 0 ? all / (size_t)x->desc.dim[0] : all;
        size_t used = x->desc.axis == TTN_FIXED ? all : row * (size_t)ttn_used(f, &x->desc);
        char *to = address_of_buffer(p, p->s.value_buffer[0][v]);
        status = p->device->ops->put(on, to, p->bound[v], used, err);
        if (status == TTN_OK) status = p->device->ops->fill(on, to + used, 0, all - used, err);
    }
    return status;
}

/* ---- steps ---- */

/* One run: what the steps of it share. */
typedef struct {
    ttn_plan *p;
    const ttn_feed *feed;
    const double *loss_weight;
    ttn_stream on;
} run;

static ttn_status seed_losses(const run *r, ttn_error *err)
{
    const ttn_plan *p = r->p;
    ttn_status status = TTN_OK;
    for (int i = 0; i < p->want.options.n_loss && status == TTN_OK; i++) {
        int b = p->s.gradient_buffer[p->want.options.loss[i]];
        if (b != PLACE_NONE) status = ttn_exchange_seed(p, &r->on, i, address_of_buffer(p, b), err);
    }
    return status;
}

static ttn_status keep_losses(const run *r, ttn_error *err)
{
    const ttn_plan *p = r->p;
    ttn_status status = TTN_OK;
    for (int i = 0; i < p->want.options.n_loss && status == TTN_OK; i++) {
        int b = p->s.value_buffer[0][p->want.options.loss[i]];
        status = ttn_exchange_keep_loss(p, &r->on, i, address_of_buffer(p, b), err);
    }
    return status;
}

static ttn_status call_taps(const run *r, int k, const ttn_call *c, ttn_error *err)
{
    const ttn_plan_options *o = &r->p->want.options;
    ttn_status status = TTN_OK;
    for (int i = 0; i < o->n_tap && status == TTN_OK; i++)
        if (r->p->want.g->value[o->tap[i].value].node == k) status = o->tap[i].fn(c, o->tap[i].ctx, err);
    return status;
}

/* Fill with NaN whatever step `at` used for the last time; 0xFF bytes are a NaN in every real type and -1 in others. */
static ttn_status poison(const run *r, int at, ttn_error *err)
{
    const ttn_plan *p = r->p;
    ttn_status status = TTN_OK;
    for (int b = 0; b < p->s.n_buffer && status == TTN_OK; b++) {
        const buffer *x = &p->s.buffer[b];
        if (x->shares != b || x->last != at) continue;
        status = p->device->ops->fill(&r->on, address_of_buffer(p, b), 0xFF, x->bytes, err);
    }
    return status;
}

static ttn_status find_nonfinite(const run *r, const ttn_desc *d, const void *x, const ttn_node *n, const char *what,
                                 int which, ttn_error *err)
{
    int64_t count;
    int64_t first;
    const int64_t numel = ttn_desc_numel(d);
    ttn_status status = r->p->device->ops->find_nonfinite(&r->on, d->type, x, numel, &count, &first, err);
    if (status != TTN_OK || count == 0) return status;
    return TTN_FAIL(err, TTN_ENUMERIC,
                    "%s (%s): %s %d has %" PRId64 " of %" PRId64 " values that are not finite, the first at %" PRId64,
                    n->name, n->op->name, what, which, count, numel, first);
}

static ttn_status trap(const run *r, int at, ttn_error *err)
{
    const step *st = &r->p->s.step[at];
    const ttn_node *n = &r->p->want.g->node[st->node];
    const ttn_call *c = &r->p->call[at];
    ttn_status status = TTN_OK;
    for (int j = 0; j < n->sig.n_out && st->kind != TTN_STEP_BACKWARD && status == TTN_OK; j++)
        status = find_nonfinite(r, &n->sig.out[j], c->out[j], n, "output", j, err);
    for (int i = 0; i < n->sig.n_in && status == TTN_OK; i++)
        if (c->din[i]) status = find_nonfinite(r, &n->sig.in[i], c->din[i], n, "the gradient of input", i, err);
    return status;
}

static ttn_status call_kernel(const run *r, int at, ttn_error *err)
{
    const step *st = &r->p->s.step[at];
    const ttn_node *n = &r->p->want.g->node[st->node];
    ttn_call c = r->p->call[at];
    c.feed = r->feed;
    c.on = &r->on;
    c.key = ttn_rng_key(r->feed->seed, n->hash, r->feed->step);
    ttn_error why = {0};
    const ttn_kernels *kernels = r->p->kernels[st->node];
    ttn_kernel kernel = st->kind == TTN_STEP_BACKWARD ? kernels->backward : kernels->forward;
    ttn_status status = kernel(&c, &why);
    /* sentences about data begin with the op's name, those of a device do not */
    if (status == TTN_EDEVICE) return TTN_FAIL(err, status, "%s (%s): %s", n->name, n->op->name, why.text);
    if (status != TTN_OK) return TTN_FAIL(err, status, "%s: %s", n->name, why.text);
    if (st->kind == TTN_STEP_FORWARD) status = call_taps(r, st->node, &c, err);
    return status;
}

/* A device may tell only now that the step has gone wrong. */
static ttn_status wait_for_step(const run *r, int at, ttn_error *err)
{
    const ttn_node *n = &r->p->want.g->node[r->p->s.step[at].node];
    ttn_error why = {0};
    ttn_status status = r->p->device->ops->sync(&r->on, &why);
    return status == TTN_OK ? TTN_OK : TTN_FAIL(err, status, "%s (%s): %s", n->name, n->op->name, why.text);
}

static ttn_status run_step(const run *r, int at, ttn_error *err)
{
    ttn_plan *p = r->p;
    const step *st = &p->s.step[at];
    double start = p->now ? p->now(p->now_ctx) : 0;
    ttn_status status = call_kernel(r, at, err);
    if (status == TTN_OK && (p->now || p->trap)) status = wait_for_step(r, at, err);
    if (status == TTN_OK && p->now) p->report_step[at].seconds += p->now(p->now_ctx) - start;
    if (status == TTN_OK && p->trap) status = trap(r, at, err);
    if (status == TTN_OK && p->want.options.debug & TTN_PLAN_POISON) status = poison(r, at, err);
    if (status != TTN_OK || !p->want.options.gradient_final) return status;
    for (int i = 0; i < st->n_final; i++)
        p->want.options.gradient_final(p->want.options.gradient_final_ctx,
                                       p->want.g->value[p->s.final[st->final_first + i]].name);
    return TTN_OK;
}

/* Unless every step was waited for, a device may tell only now that one of them has gone wrong. */
static ttn_status receive(const run *r, ttn_error *err)
{
    ttn_error why = {0};
    ttn_status status = ttn_exchange_receive(r->p, &r->on, r->feed, &why);
    if (status == TTN_EDEVICE)
        return TTN_FAIL(err, status, "run: one of %d steps: %s; ttn_plan_trap finds out which", r->p->s.n_step,
                        why.text);
    return status == TTN_OK ? TTN_OK : TTN_FAIL(err, status, "%s", why.text);
}

static ttn_status run_steps(const run *r, ttn_error *err)
{
    ttn_plan *p = r->p;
    ttn_status status = TTN_OK;
    if (p->want.options.debug & TTN_PLAN_POISON) status = p->device->ops->fill(&r->on, p->base, 0xFF, p->s.bytes, err);
    if (status == TTN_OK) status = put_inputs(p, &r->on, r->feed, err);
    if (status == TTN_OK) status = ttn_exchange_send(p, &r->on, r->feed, r->loss_weight, err);
    for (int at = 0; at < p->s.n_step && status == TTN_OK; at++) {
        if (at == p->s.first_backward) status = seed_losses(r, err);
        if (status == TTN_OK) status = run_step(r, at, err);
    }
    if (status == TTN_OK) status = keep_losses(r, err);
    return status == TTN_OK ? receive(r, err) : status;
}

ttn_status ttn_plan_run(ttn_plan *p, const ttn_feed *feed, const double *loss_weight, ttn_error *err)
{
    const run r = {
        .p = p,
        .feed = feed,
        .loss_weight = loss_weight,
        .on = {.device = p->device, .n_thread = p->want.options.n_thread},
    };
    p->ran = 0;
    ttn_status status = ttn_blas_check_started(r.on.n_thread, err);
    if (status == TTN_OK) status = check_feed(p, feed, err);
    if (status == TTN_OK) status = check_bound(p, err);
    if (status == TTN_OK) status = bind_memory(p, &r.on, err);
    if (status != TTN_OK) return status;
    *p->device->ops->memory_user(p->memory) = p;
    ttn_fp_begin_threads(r.on.n_thread, p->fp_saved);
    status = run_steps(&r, err);
    ttn_fp_end_threads(r.on.n_thread, p->fp_saved);
    p->ran = status == TTN_OK;
    return status;
}

/* ---- reading ---- */

ttn_status ttn_plan_read(const ttn_plan *p, int value, void *data, ttn_error *err)
{
    const ttn_graph *g = p->want.g;
    if (value < 0 || value >= g->n_value)
        return TTN_FAIL(err, TTN_EINVAL, "read: %d is no value of this graph (it has %d)", value, g->n_value);
    int v = g->value[value].root;
    int b = p->s.value_buffer[0][v];
    if (!p->want.kept[v] || b == PLACE_NONE)
        return TTN_FAIL(err, TTN_EINVAL, "read: '%s' is not kept by this plan", ttn_name_of_value(g, v));
    if (!p->ran)
        return TTN_FAIL(err, TTN_EINVAL,
                        "read: '%s', but no run has ended well since the plan was made, attached or failed",
                        ttn_name_of_value(g, v));
    if (*p->device->ops->memory_user(p->memory) != p)
        return TTN_FAIL(err, TTN_EINVAL, "read: '%s', but another plan has used the shared memory since",
                        ttn_name_of_value(g, v));
    for (int i = 0; i < p->want.options.n_loss; i++)
        if (p->want.options.loss[i] == v) {
            memcpy(data, &ttn_exchange_losses(p)[i], sizeof(real));
            return TTN_OK;
        }
    const ttn_stream on = {.device = p->device, .n_thread = p->want.options.n_thread};
    return p->device->ops->get(&on, data, address_of_buffer(p, b), ttn_desc_bytes(&g->value[v].desc), err);
}

const double *ttn_plan_stat(const ttn_plan *p, int value, int *n)
{
    const ttn_graph *g = p->want.g;
    *n = 0;
    int k = value >= 0 && value < g->n_value ? g->value[value].node : TTN_NO_NODE;
    if (k == TTN_NO_NODE || !p->want.needed[k] || g->node[k].sig.n_stat == 0) return NULL;
    *n = g->node[k].sig.n_stat;
    return ttn_exchange_stats(p) + p->stat_first[k];
}

void ttn_plan_trap(ttn_plan *p, int on)
{
    p->trap = on;
}

void ttn_plan_time(ttn_plan *p, double (*now)(void *ctx), void *ctx)
{
    p->now = now;
    p->now_ctx = ctx;
    for (int at = 0; at < p->s.n_step; at++)
        p->report_step[at].seconds = 0;
}
