/* Creating a plan, and what it can tell about itself. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/plan_impl.h"
#include "core/blas.h"
#include "core/memory.h"

/* ---- what was asked for ---- */

static int is_value(const ttn_graph *g, int v)
{
    return v >= 0 && v < g->n_value;
}

static ttn_status check_values(const ttn_graph *g, const int *v, int n, const char *what, ttn_error *err)
{
    if (n < 0 || (n > 0 && !v)) return TTN_FAIL(err, TTN_EINVAL, "plan: a list of %d for '%s'", n, what);
    for (int i = 0; i < n; i++)
        if (!is_value(g, v[i]))
            return TTN_FAIL(err, TTN_EINVAL, "plan: %s %d is %d, no value of this graph (it has %d)", what, i, v[i],
                            g->n_value);
    return TTN_OK;
}

static ttn_status check_loss(const ttn_graph *g, int v, ttn_error *err)
{
    const ttn_value *x = &g->value[v];
    const char *name = ttn_name_of_value(g, v);
    char text[TTN_DESC_TEXT];
    if (x->leaf != TTN_NO_LEAF || x->node == TTN_NO_NODE)
        return TTN_FAIL(err, TTN_EINVAL, "plan: the loss '%s' is a leaf, nothing computes it", name);
    if (x->root != v) return TTN_FAIL(err, TTN_EINVAL, "plan: the loss '%s' is detached, no gradient passes", name);
    if (x->desc.type != TTN_REAL || x->desc.ndim != 0)
        return TTN_FAIL(err, TTN_EINVAL, "plan: the loss '%s' is %s, a scalar of the build's real type is needed", name,
                        ttn_desc_print(&x->desc, text));
    return TTN_OK;
}

static ttn_status check_node_value(const ttn_graph *g, int v, const char *what, ttn_error *err)
{
    if (g->value[v].node != TTN_NO_NODE) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "plan: %s of '%s': that is a leaf, no node", what, ttn_name_of_value(g, v));
}

static ttn_status check_kept(const ttn_graph *g, int v, ttn_error *err)
{
    const ttn_value *x = &g->value[g->value[v].root];
    if (x->leaf != TTN_LEAF_PARAM && x->leaf != TTN_LEAF_STATE) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "plan: '%s' needs no keeping, it is read from the weights", x->name);
}

static ttn_status check_closed(const ttn_graph *g, ttn_error *err)
{
    if (g->n_scope > 0) return TTN_FAIL(err, TTN_EINVAL, "plan: the scope '%s' is still open", g->scope);
    if (g->block != TTN_NO_BLOCK) return TTN_FAIL(err, TTN_EINVAL, "plan: a block is still open");
    return TTN_OK;
}

static ttn_status check_options(const ttn_graph *g, const ttn_plan_options *o, ttn_error *err)
{
    if (o->n_tap < 0 || (o->n_tap > 0 && !o->tap))
        return TTN_FAIL(err, TTN_EINVAL, "plan: a list of %d for 'tap'", o->n_tap);
    ttn_status status = check_values(g, o->loss, o->n_loss, "loss", err);
    if (status == TTN_OK) status = check_values(g, o->keep, o->n_keep, "kept value", err);
    if (status == TTN_OK) status = check_values(g, o->stat, o->n_stat, "statistic", err);
    for (int i = 0; i < o->n_keep && status == TTN_OK; i++)
        status = check_kept(g, o->keep[i], err);
    for (int i = 0; i < o->n_loss && status == TTN_OK; i++)
        status = check_loss(g, o->loss[i], err);
    for (int i = 0; i < o->n_loss; i++)
        for (int j = 0; j < i && status == TTN_OK; j++)
            if (o->loss[i] == o->loss[j])
                status =
                    TTN_FAIL(err, TTN_EINVAL, "plan: the loss '%s' is given twice", ttn_name_of_value(g, o->loss[i]));
    for (int i = 0; i < o->n_stat && status == TTN_OK; i++)
        status = check_node_value(g, o->stat[i], "a statistic", err);
    for (int i = 0; i < o->n_tap && status == TTN_OK; i++) {
        status = check_values(g, &o->tap[i].value, 1, "tap", err);
        if (status == TTN_OK) status = check_node_value(g, o->tap[i].value, "a tap", err);
    }
    if (status == TTN_OK && (o->n_thread < 0 || o->n_thread > TTN_BLAS_MAX_THREADS))
        status = TTN_FAIL(err, TTN_EINVAL, "plan: %d threads, 1 to %d are possible", o->n_thread, TTN_BLAS_MAX_THREADS);
    if (status == TTN_OK) status = ttn_blas_check_started(o->n_thread > 0 ? o->n_thread : 1, err);
    return status;
}

/* A copy of n elements that *array points to; nothing for n = 0. */
static ttn_status own(const void *array, void *ret, int n, size_t size, ttn_error *err)
{
    void *copy = ttn_alloc_array(n, size);
    if (!copy) return TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for its options");
    if (n > 0) memcpy(copy, array, (size_t)n * size);
    memcpy(ret, &copy, sizeof copy);
    return TTN_OK;
}

static ttn_status own_options(const ttn_plan_options *o, ttn_plan_options *ret, ttn_error *err)
{
    *ret = *o;
    ret->keep = NULL;
    ret->loss = NULL;
    ret->stat = NULL;
    ret->tap = NULL;
    if (ret->n_thread == 0) ret->n_thread = 1;
    ttn_status status = own(o->keep, &ret->keep, o->n_keep, sizeof *o->keep, err);
    if (status == TTN_OK) status = own(o->loss, &ret->loss, o->n_loss, sizeof *o->loss, err);
    if (status == TTN_OK) status = own(o->stat, &ret->stat, o->n_stat, sizeof *o->stat, err);
    if (status == TTN_OK) status = own(o->tap, &ret->tap, o->n_tap, sizeof *o->tap, err);
    return status;
}

/* ---- report ---- */

static const ttn_node *node_of_step(const ttn_plan *p, int at)
{
    return &p->want.g->node[p->s.step[at].node];
}

static ttn_status report_steps(ttn_plan *p, ttn_error *err)
{
    p->report_step = ttn_alloc_array(p->s.n_step, sizeof *p->report_step);
    if (!p->report_step) return TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for a report of %d steps", p->s.n_step);
    for (int at = 0; at < p->s.n_step; at++) {
        const step *st = &p->s.step[at];
        const ttn_node *n = node_of_step(p, at);
        ttn_pass pass = st->kind == TTN_STEP_BACKWARD ? TTN_BACKWARD : TTN_FORWARD;
        ttn_cost cost = ttn_node_cost(n, pass, p->choice.lean[st->node]);
        p->report_step[at] = (ttn_plan_step){
            .kind = st->kind,
            .node = n->name,
            .op = n->op->name,
            .n_in = n->sig.n_in,
            .n_out = n->sig.n_out,
            .in = n->sig.in,
            .out = n->sig.out,
            .alive = p->s.alive[at],
            .done = cost.done,
            .useful = st->kind == TTN_STEP_AGAIN ? 0 : cost.useful,
            .bytes = cost.bytes,
        };
        p->report.done += p->report_step[at].done;
        p->report.useful += p->report_step[at].useful;
    }
    p->report.step = p->report_step;
    p->report.n_step = p->s.n_step;
    return TTN_OK;
}

/* "kept for backward": alive at the peak though the forward pass is past its last reader, or made by it for later. */
static const char *what_is_it(const ttn_plan *p, const buffer *b)
{
    switch (b->kind) {
    case BUFFER_INPUT:
        return "input";
    case BUFFER_AUX:
        return "kept for backward";
    case BUFFER_GRADIENT:
        return "gradient";
    case BUFFER_WORK:
        return "workspace";
    case BUFFER_VALUE:
        break;
    }
    for (int at = p->s.peak_step; at < p->s.first_backward; at++)
        for (int i = 0; i < TTN_MAX_IN; i++)
            if (p->s.step[at].in[i] >= 0 && &p->s.buffer[p->s.step[at].in[i]] == b) return "value";
    return b->life == 0 && b->last >= p->s.first_backward ? "kept for backward" : "value";
}

static int by_bytes(const void *a, const void *b)
{
    const ttn_plan_alive *x = a;
    const ttn_plan_alive *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->name, y->name);
}

static ttn_status report_alive(ttn_plan *p, ttn_error *err)
{
    const ttn_graph *g = p->want.g;
    ttn_plan_alive *alive = ttn_alloc_array(p->s.n_buffer, sizeof *alive);
    if (!alive) return TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for a report of %d buffers", p->s.n_buffer);
    int n = 0;
    for (int i = 0; i < p->s.n_buffer; i++) {
        const buffer *b = &p->s.buffer[i];
        if (b->shares != i || b->bytes == 0 || b->first > p->s.peak_step || b->last < p->s.peak_step) continue;
        int of_node = b->kind == BUFFER_AUX || b->kind == BUFFER_WORK;
        alive[n++] = (ttn_plan_alive){
            .name = of_node ? g->node[b->owner].name : ttn_name_of_value(g, b->owner),
            .what = what_is_it(p, b),
            .bytes = b->bytes,
        };
    }
    qsort(alive, (size_t)n, sizeof *alive, by_bytes);
    p->report.alive = alive;
    p->report.n_alive = n;
    return TTN_OK;
}

static size_t node_bytes(const ttn_plan *p, int k)
{
    const ttn_sig *sig = &p->want.g->node[k].sig;
    size_t bytes = 0;
    for (int j = 0; j < sig->n_out; j++)
        bytes += ttn_desc_bytes(&sig->out[j]);
    for (int j = 0; j < sig->n_aux; j++)
        bytes += ttn_desc_bytes(&sig->aux[j]);
    return bytes;
}

static size_t spare_bytes(const ttn_node *n)
{
    size_t bytes = 0;
    for (int j = 0; j < n->sig.n_aux; j++)
        if (n->op->spare & TTN_BIT(j)) bytes += ttn_desc_bytes(&n->sig.aux[j]);
    return bytes;
}

static ttn_status report_again(ttn_plan *p, ttn_error *err)
{
    const ttn_graph *g = p->want.g;
    ttn_plan_again *again = ttn_alloc_array(2 * (int64_t)g->n_node, sizeof *again);
    if (!again) return TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for a report of %d nodes", g->n_node);
    int count = 0;
    for (int at = 0; at < p->s.n_step; at++) {
        if (p->s.step[at].kind != TTN_STEP_AGAIN) continue;
        int k = p->s.step[at].node;
        again[count++] = (ttn_plan_again){
            .node = g->node[k].name,
            .op = g->node[k].op->name,
            .bytes = node_bytes(p, k),
            .flops = p->report_step[at].done,
        };
    }
    for (int k = 0; k < g->n_node; k++) {
        const ttn_node *n = &g->node[k];
        if (!p->choice.lean[k] || !p->want.trains[k] || n->op->spare == 0) continue;
        double flops = ttn_node_cost(n, TTN_BACKWARD, 1).done - ttn_node_cost(n, TTN_BACKWARD, 0).done;
        again[count++] =
            (ttn_plan_again){.node = n->name, .op = n->op->name, .lean = 1, .bytes = spare_bytes(n), .flops = flops};
    }
    p->report.again = again;
    p->report.n_again = count;
    return TTN_OK;
}

static ttn_status report_left_out(ttn_plan *p, ttn_error *err)
{
    const ttn_graph *g = p->want.g;
    const char **dropped = ttn_alloc_array(g->n_node, sizeof *dropped);
    const char **untrained = ttn_alloc_array(g->n_value, sizeof *untrained);
    p->report.dropped = dropped;
    p->report.untrained = untrained;
    if (!dropped || !untrained) return TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for a report");
    for (int k = 0; k < g->n_node; k++)
        if (!p->want.needed[k]) dropped[p->report.n_dropped++] = g->node[k].name;
    for (int v = 0; v < g->n_value && p->want.options.n_loss > 0; v++)
        if (g->value[v].leaf == TTN_LEAF_PARAM && g->value[v].needs_grad && !p->want.leads[v])
            untrained[p->report.n_untrained++] = g->value[v].name;
    return TTN_OK;
}

static ttn_status make_report(ttn_plan *p, ttn_error *err)
{
    p->report = (ttn_plan_report){
        .bytes = p->s.bytes,
        .peak = p->s.peak,
        .sum = p->s.sum,
        .peak_step = p->s.peak_step,
    };
    ttn_status status = report_steps(p, err);
    if (status == TTN_OK) status = report_alive(p, err);
    if (status == TTN_OK) status = report_again(p, err);
    if (status == TTN_OK) status = report_left_out(p, err);
    return status;
}

const ttn_plan_report *ttn_plan_report_of(const ttn_plan *p)
{
    return &p->report;
}

/* ---- create, destroy ---- */

static ttn_status place_stats(ttn_plan *p, ttn_error *err)
{
    const ttn_graph *g = p->want.g;
    p->stat_first = ttn_alloc_array(g->n_node, sizeof *p->stat_first);
    if (!p->stat_first) return TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for statistics");
    for (int k = 0; k < g->n_node; k++) {
        p->stat_first[k] = p->n_stat;
        if (p->want.needed[k]) p->n_stat += g->node[k].sig.n_stat;
    }
    return TTN_OK;
}

/* A device runs every node that is needed, or the plan is not made: nothing falls back to the host. */
static ttn_status bind_kernels(ttn_plan *p, ttn_error *err)
{
    const ttn_graph *g = p->want.g;
    const ttn_device_ops *d = p->device->ops;
    p->kernels = ttn_alloc_array(g->n_node, sizeof *p->kernels);
    if (!p->kernels) return TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for %d nodes", g->n_node);
    for (int k = 0; k < g->n_node; k++) {
        if (!p->want.needed[k]) continue;
        const ttn_node *n = &g->node[k];
        p->kernels[k] = ttn_op_kernels(n->op, d->kernels);
        if (p->kernels[k]) continue;
        return TTN_FAIL(err, TTN_EDEVICE, "plan: op '%s' (node '%s') has no kernel for the device '%s'", n->op->name,
                        n->name, d->name);
    }
    return TTN_OK;
}

static ttn_status fill_plan(ttn_plan *p, const ttn_plan_options *options, ttn_error *err)
{
    const ttn_graph *g = p->want.g;
    ttn_status status = own_options(options, &p->want.options, err);
    if (status != TTN_OK) return status;
    p->device = options->device;
    if (!p->device) {
        status = ttn_device_cpu(&p->own_device, err);
        p->device = p->own_device;
    }
    p->memory = options->memory;
    p->choice.drop = ttn_alloc_array(g->n_node, 1);
    p->choice.lean = ttn_alloc_array(g->n_node, 1);
    p->weight_of = ttn_alloc_array(g->n_value, sizeof *p->weight_of);
    p->bound = ttn_alloc_array(g->n_value, sizeof *p->bound);
    p->fp_saved = ttn_alloc_array(p->want.options.n_thread, sizeof *p->fp_saved);
    if (status == TTN_OK && (!p->fp_saved || !p->choice.drop || !p->choice.lean || !p->weight_of || !p->bound))
        status = TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for %d nodes", g->n_node);
    if (status == TTN_OK) status = ttn_request_fill(&p->want, err);
    if (status == TTN_OK) status = bind_kernels(p, err);
    if (status == TTN_OK) status = ttn_schedule_create(&p->want, &p->s, err);
    if (status == TTN_OK) status = ttn_choose(&p->want, &p->choice, &p->s, err);
    if (status == TTN_OK) status = place_stats(p, err);
    if (status == TTN_OK) status = ttn_exchange_create(p, err);
    if (status == TTN_OK) status = make_report(p, err);
    p->call = status == TTN_OK ? ttn_alloc_array(p->s.n_step, sizeof *p->call) : NULL;
    if (status == TTN_OK && !p->call)
        status = TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for %d steps", p->s.n_step);
    return status;
}

ttn_status ttn_plan_create(ttn_graph *g, const ttn_plan_options *options, ttn_plan **ret, ttn_error *err)
{
    *ret = NULL;
    static const ttn_plan_options defaults = {0};
    if (!options) options = &defaults;
    ttn_status status = ttn_graph_check(g, err);
    if (status == TTN_OK) status = check_closed(g, err);
    if (status == TTN_OK) status = check_options(g, options, err);
    if (status != TTN_OK) return status;
    ttn_plan *p = calloc(1, sizeof *p);
    if (!p) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for a plan");
    p->want.g = g;
    status = fill_plan(p, options, err);
    if (status != TTN_OK) {
        ttn_plan_destroy(p);
        return status;
    }
    g->sealed = 1;
    *ret = p;
    return TTN_OK;
}

void ttn_plan_destroy(ttn_plan *p)
{
    if (!p) return;
    if (p->own_memory) p->device->ops->memory_destroy(p->own_memory);
    if (p->device) ttn_exchange_destroy(p);
    ttn_schedule_free(&p->s);
    ttn_request_free(&p->want);
    ttn_free((void *)p->want.options.keep);
    ttn_free((void *)p->want.options.loss);
    ttn_free((void *)p->want.options.stat);
    ttn_free((void *)p->want.options.tap);
    ttn_free(p->choice.drop);
    ttn_free(p->choice.lean);
    ttn_free(p->weight_of);
    ttn_free(p->bound);
    ttn_free(p->fp_saved);
    ttn_free(p->kernels);
    ttn_free(p->stat_first);
    ttn_free(p->call);
    ttn_free(p->report_step);
    ttn_free((void *)p->report.alive);
    ttn_free((void *)p->report.again);
    ttn_free((void *)p->report.dropped);
    ttn_free((void *)p->report.untrained);
    ttn_device_destroy(p->own_device);
    free(p);
}

int ttn_plan_trains(const ttn_plan *p, int param)
{
    const ttn_graph *g = p->want.g;
    return is_value(g, param) && g->value[param].leaf == TTN_LEAF_PARAM && p->want.leads[param];
}
