/* Which nodes are made again, so that a plan fits a budget.
 *
 * Budget 0: exactly the marked blocks, the trade that is known beforehand. Otherwise: keep everything; while the packed
 * plan exceeds the budget, drop among what is alive at the peak only because backward will read it the node (or the spare
 * aux) that frees the most bytes for the time it takes to make them again, and plan again. What turns out not to have been
 * necessary is kept after all.
 *
 * T. Chen et al.: Training deep nets with sublinear memory cost (arXiv 1604.06174), with a cost and a budget.
 */
#include <inttypes.h>
#include <string.h>
#include "autograd/plan_impl.h"
#include "core/memory.h"

/* Moving a byte takes about as long as so many flops of a matrix product (90 GF/s beside 11 GB/s a core). */
enum { FLOPS_PER_BYTE = 8 };

typedef enum { DROP, LEAN } trade_kind;

typedef struct {
    trade_kind kind;
    int node; /* TTN_NO_NODE: there is none */
    double bytes_per_flop;
} trade;

static double time_of(ttn_cost c)
{
    return c.done + FLOPS_PER_BYTE * c.bytes;
}

/* Is buffer number b held at step `at`, after its last forward reader, and how many bytes is that? */
static size_t held_bytes(const schedule *s, int b, int at)
{
    if (b == PLACE_NONE) return 0;
    const buffer *x = &s->buffer[ttn_root_buffer(s, b)];
    return x->first <= at && at <= x->last ? x->bytes : 0;
}

static size_t node_held(const request *want, const schedule *s, int k, int at)
{
    const ttn_node *n = &want->g->node[k];
    size_t bytes = 0;
    for (int j = 0; j < n->sig.n_out; j++)
        bytes += held_bytes(s, s->value_buffer[0][n->out + j], at);
    for (int j = 0; j < n->sig.n_aux; j++)
        bytes += held_bytes(s, s->aux_buffer[0][k * TTN_MAX_AUX + j], at);
    return bytes;
}

static size_t spare_held(const request *want, const schedule *s, int k, int at)
{
    const ttn_node *n = &want->g->node[k];
    size_t bytes = 0;
    for (int j = 0; j < n->sig.n_aux; j++)
        if (n->op->spare & TTN_BIT(j)) bytes += held_bytes(s, s->aux_buffer[0][k * TTN_MAX_AUX + j], at);
    return bytes;
}

static void consider(trade *best, trade_kind kind, int node, size_t bytes, double time)
{
    if (bytes == 0) return;
    double bytes_per_flop = (double)bytes / (time > 1 ? time : 1);
    if (bytes_per_flop > best->bytes_per_flop)
        *best = (trade){.kind = kind, .node = node, .bytes_per_flop = bytes_per_flop};
}

static int may_drop(const request *want, const choice *c, int k)
{
    return want->needed[k] && want->inside[k] && !c->drop[k];
}

static int may_lean(const request *want, const choice *c, int k)
{
    return want->needed[k] && want->g->node[k].op->spare != 0 && !c->lean[k];
}

static double lean_time(const ttn_node *n)
{
    return time_of(ttn_node_cost(n, TTN_BACKWARD, 1)) - time_of(ttn_node_cost(n, TTN_BACKWARD, 0));
}

/* What to give up next, seen from the peak. */
static trade best_trade(const request *want, const choice *c, const schedule *s)
{
    trade best = {.node = TTN_NO_NODE};
    for (int k = 0; k < want->g->n_node; k++) {
        const ttn_node *n = &want->g->node[k];
        if (may_drop(want, c, k))
            consider(&best, DROP, k, node_held(want, s, k, s->peak_step),
                     time_of(ttn_node_cost(n, TTN_FORWARD, c->lean[k])));
        if (may_lean(want, c, k)) consider(&best, LEAN, k, spare_held(want, s, k, s->peak_step), lean_time(n));
    }
    return best;
}

static ttn_status plan_with(const request *want, const choice *c, schedule *s, ttn_error *err)
{
    ttn_schedule_make(want, c, s);
    return ttn_schedule_pack(s, err);
}

/* Drop until it fits or nothing more can be dropped. *smallest: the smallest packed size seen. */
static ttn_status drop_until_it_fits(const request *want, choice *c, schedule *s, size_t *smallest, ttn_error *err)
{
    for (;;) {
        ttn_schedule_make(want, c, s);
        if (s->peak <= want->options.budget) {
            ttn_status status = ttn_schedule_pack(s, err);
            if (status != TTN_OK) return status;
            if (s->bytes < *smallest) *smallest = s->bytes;
            if (s->bytes <= want->options.budget) return TTN_OK;
        }
        trade t = best_trade(want, c, s);
        if (t.node == TTN_NO_NODE) break;
        if (t.kind == DROP)
            c->drop[t.node] = 1;
        else
            c->lean[t.node] = 1;
    }
    ttn_status status = ttn_schedule_pack(s, err);
    if (status == TTN_OK && s->bytes < *smallest) *smallest = s->bytes;
    return status;
}

/* Drop everything that can be: the most that recomputing can do. */
static void drop_all(const request *want, choice *c)
{
    for (int k = 0; k < want->g->n_node; k++) {
        c->drop[k] = (char)(want->needed[k] && want->inside[k]);
        c->lean[k] = (char)(want->g->node[k].op->spare != 0);
    }
}

/* Keep again, dearest to make first, whatever the budget has room for. */
static ttn_status keep_what_fits(const request *want, choice *c, schedule *s, ttn_error *err)
{
    const int n_node = want->g->n_node;
    char *tried = ttn_alloc_array(n_node, 1);
    if (!tried) return TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for %d nodes", n_node);
    ttn_status status = TTN_OK;
    for (;;) {
        int dearest = TTN_NO_NODE;
        double most = -1;
        for (int k = 0; k < n_node; k++) {
            if (!c->drop[k] || tried[k]) continue;
            double time = time_of(ttn_node_cost(&want->g->node[k], TTN_FORWARD, c->lean[k]));
            if (time <= most) continue;
            most = time;
            dearest = k;
        }
        if (dearest == TTN_NO_NODE) break;
        tried[dearest] = 1;
        c->drop[dearest] = 0;
        ttn_schedule_make(want, c, s);
        if (s->peak <= want->options.budget) {
            status = ttn_schedule_pack(s, err);
            if (status != TTN_OK) break;
            if (s->bytes <= want->options.budget) continue;
        }
        c->drop[dearest] = 1;
    }
    ttn_free(tried);
    return status == TTN_OK ? plan_with(want, c, s, err) : status;
}

static ttn_status fit_budget(const request *want, choice *c, schedule *s, ttn_error *err)
{
    size_t smallest = SIZE_MAX;
    ttn_status status = drop_until_it_fits(want, c, s, &smallest, err);
    if (status != TTN_OK) return status;
    if (s->bytes > want->options.budget) {
        drop_all(want, c);
        status = plan_with(want, c, s, err);
        if (status != TTN_OK) return status;
        if (s->bytes < smallest) smallest = s->bytes;
    }
    if (s->bytes <= want->options.budget) {
        int nothing_dropped = memchr(c->drop, 1, (size_t)want->g->n_node) == NULL;
        return nothing_dropped ? TTN_OK : keep_what_fits(want, c, s, err);
    }
    return TTN_FAIL(
        err, TTN_ENOMEM,
        "plan: a budget of %zu bytes is too small: with everything recomputed that can be, %zu bytes would do",
        want->options.budget, smallest);
}

ttn_status ttn_choose(const request *want, choice *c, schedule *s, ttn_error *err)
{
    const size_t n_node = (size_t)want->g->n_node;
    const int inference = want->options.n_loss == 0;
    memset(c->drop, 0, n_node);
    memset(c->lean, 0, n_node);
    if (inference)
        memset(c->lean, 1, n_node); /* nothing is kept for a backward pass that does not come */
    else if (want->options.budget == 0)
        memcpy(c->drop, want->inside, n_node);
    if (want->options.budget == 0) return plan_with(want, c, s, err);
    return fit_budget(want, c, s, err);
}
