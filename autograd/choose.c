/* Which nodes are made again, so that a plan fits a budget.
 *
 * Budget 0: exactly the marked blocks, the trade that is known beforehand. Otherwise: keep everything; while the packed
 * plan exceeds the budget, drop among what is held at the peak the nodes (and spare aux) that free the most bytes for the
 * time it takes to make them again, as many as the excess asks for, and plan again. What turns out not to have been necessary
 * is kept after all.
 *
 * T. Chen et al.: Training deep nets with sublinear memory cost (arXiv 1604.06174), with a cost and a budget.
 */
#include <stdlib.h>
#include <string.h>
#include "autograd/plan_impl.h"
#include "core/memory.h"

/* Moving a byte takes about as long as so many flops of a matrix product (90 GF/s beside 11 GB/s a core). */
enum { FLOPS_PER_BYTE = 8 };

typedef enum { DROP, LEAN } trade_kind;

typedef struct {
    trade_kind kind;
    int node;
    size_t bytes;
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

static int by_bytes_per_flop(const void *a, const void *b)
{
    const trade *x = a;
    const trade *y = b;
    if (x->bytes_per_flop != y->bytes_per_flop) return x->bytes_per_flop < y->bytes_per_flop ? 1 : -1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static int add_trade(trade *list, int n, trade_kind kind, int node, size_t bytes, double time)
{
    if (bytes == 0) return n;
    list[n] =
        (trade){.kind = kind, .node = node, .bytes = bytes, .bytes_per_flop = (double)bytes / (time > 1 ? time : 1)};
    return n + 1;
}

/* What could be given up, seen from the peak, the best first; list has room for two a node. Returns how many. */
static int find_trades(const request *want, const choice *c, const schedule *s, trade *list)
{
    int n = 0;
    for (int k = 0; k < want->g->n_node; k++) {
        const ttn_node *node = &want->g->node[k];
        if (may_drop(want, c, k))
            n = add_trade(list, n, DROP, k, node_held(want, s, k, s->peak_step),
                          time_of(ttn_node_cost(node, TTN_FORWARD, c->lean[k])));
        if (may_lean(want, c, k))
            n = add_trade(list, n, LEAN, k, spare_held(want, s, k, s->peak_step), lean_time(node));
    }
    qsort(list, (size_t)n, sizeof *list, by_bytes_per_flop);
    return n;
}

/* Give up trades until they are worth `excess` bytes. Returns how many: 0, there was none. */
static int give_up(const request *want, choice *c, const schedule *s, size_t excess, trade *list)
{
    int n = find_trades(want, c, s, list);
    int given = 0;
    for (size_t bytes = 0; given < n && bytes < excess; given++) {
        bytes += list[given].bytes;
        if (list[given].kind == DROP)
            c->drop[list[given].node] = 1;
        else
            c->lean[list[given].node] = 1;
    }
    return given;
}

static ttn_status plan_with(const request *want, const choice *c, schedule *s, ttn_error *err)
{
    ttn_schedule_make(want, c, s);
    return ttn_schedule_pack(s, err);
}

/* Drop until it fits or nothing more can be dropped. *smallest: the smallest packed size seen. */
static ttn_status drop_until_it_fits(const request *want, choice *c, schedule *s, size_t *smallest, trade *list,
                                     ttn_error *err)
{
    const size_t budget = want->options.budget;
    for (;;) {
        ttn_schedule_make(want, c, s);
        size_t excess = s->peak > budget ? s->peak - budget : 0;
        if (excess == 0) {
            ttn_status status = ttn_schedule_pack(s, err);
            if (status != TTN_OK) return status;
            if (s->bytes < *smallest) *smallest = s->bytes;
            if (s->bytes <= budget) return TTN_OK;
            excess = s->bytes - budget;
        }
        if (give_up(want, c, s, excess, list) == 0) break;
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

/* Keep again, dearest to make first, whatever the budget has room for. Each try is a schedule: so many are enough, since a
 * round of giving up overshoots by less than one buffer. */
enum { MOST_TRIES = 64 };

static ttn_status keep_what_fits(const request *want, choice *c, schedule *s, ttn_error *err)
{
    const int n_node = want->g->n_node;
    char *tried = ttn_alloc_array(n_node, 1);
    if (!tried) return TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for %d nodes", n_node);
    ttn_status status = TTN_OK;
    for (int tries = 0; tries < MOST_TRIES; tries++) {
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
    trade *list = ttn_alloc_or_say(2 * (int64_t)want->g->n_node, sizeof *list, "what a plan could give up", err);
    ttn_status status = list ? drop_until_it_fits(want, c, s, &smallest, list, err) : TTN_ENOMEM;
    ttn_free(list);
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
