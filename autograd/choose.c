/* Which nodes are made again, so that a plan fits a budget.
 *
 * Budget 0: exactly the marked blocks, the trade that is known beforehand. Otherwise: keep everything; while the packed
 * plan exceeds the budget, drop among what is held at the peak the nodes (and spare aux) that free the most bytes for the
 * time it takes to make them again, and plan again. How much is dropped at a time does not depend on the budget: all budgets
 * go the same way and stop at the first plan that fits, so that a larger one never fails where a smaller one is met. What
 * turns out not to have been necessary is kept after all.
 *
 * T. Chen et al.: Training deep nets with sublinear memory cost (arXiv 1604.06174), with a cost and a budget.
 */
#include <stdlib.h>
#include <string.h>
#include "autograd/plan_impl.h"
#include "core/memory.h"

typedef enum { DROP, LEAN } trade_kind;

typedef struct {
    trade_kind kind;
    int node;
    size_t bytes; /* held at the peak */
    double time;  /* that making them again takes, in flops */
} trade;

static double time_of(ttn_cost c)
{
    return c.done + TTN_FLOPS_PER_BYTE * c.bytes;
}

/* How many bytes is buffer number b alive with at step `at`? Whether only backward still needs it is not asked: giving up
 * what forward needs too frees nothing, which the next schedule shows. */
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

/* It was left out, and a backward pass would have use for it. */
static int may_keep_spare(const request *want, const choice *c, int k)
{
    return want->options.n_loss > 0 && want->needed[k] && want->g->node[k].op->spare != 0 && c->lean[k];
}

static double lean_time(const ttn_node *n)
{
    return time_of(ttn_node_cost(n, TTN_BACKWARD, 1)) - time_of(ttn_node_cost(n, TTN_BACKWARD, 0));
}

static int by_bytes_per_time(const void *a, const void *b)
{
    const trade *x = a;
    const trade *y = b;
    double left = (double)x->bytes / x->time;
    double right = (double)y->bytes / y->time;
    if (left != right) return left < right ? 1 : -1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static int by_time(const void *a, const void *b)
{
    const trade *x = a;
    const trade *y = b;
    if (x->time != y->time) return x->time < y->time ? 1 : -1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static int add_trade(trade *list, int n, trade_kind kind, int node, size_t bytes, double time)
{
    list[n] = (trade){.kind = kind, .node = node, .bytes = bytes, .time = time > 1 ? time : 1};
    return n + 1;
}

static double drop_time(const request *want, const choice *c, int k)
{
    return time_of(ttn_node_cost(&want->g->node[k], TTN_FORWARD, c->lean[k]));
}

/* What could be given up, seen from the peak, the best first; list has room for two a node. Returns how many. */
static int find_trades(const request *want, const choice *c, const schedule *s, trade *list)
{
    int n = 0;
    for (int k = 0; k < want->g->n_node; k++) {
        size_t held = may_drop(want, c, k) ? node_held(want, s, k, s->peak_step) : 0;
        size_t spare = may_lean(want, c, k) ? spare_held(want, s, k, s->peak_step) : 0;
        if (held > 0) n = add_trade(list, n, DROP, k, held, drop_time(want, c, k));
        if (spare > 0) n = add_trade(list, n, LEAN, k, spare, lean_time(&want->g->node[k]));
    }
    qsort(list, (size_t)n, sizeof *list, by_bytes_per_time);
    return n;
}

static void set_trade(choice *c, const trade *t, char given)
{
    if (t->kind == DROP)
        c->drop[t->node] = given;
    else
        c->lean[t->node] = given;
}

/* Give up trades until they are worth so many bytes. Returns how many: 0, there was none. */
static int give_up(const request *want, choice *c, const schedule *s, size_t worth, trade *list)
{
    int n = find_trades(want, c, s, list);
    int given = 0;
    for (size_t bytes = 0; given < n && bytes < worth; given++) {
        bytes += list[given].bytes;
        set_trade(c, &list[given], 1);
    }
    return given;
}

static ttn_status plan_with(const request *want, const choice *c, schedule *s, ttn_error *err)
{
    ttn_status status = ttn_schedule_make(want, c, s, err);
    return status == TTN_OK ? ttn_schedule_pack(s, err) : status;
}

/* Nothing is given up but what inference has no use for: spare aux are for a backward pass that does not come. */
static void keep_everything(const request *want, choice *c)
{
    const size_t n_node = (size_t)want->g->n_node;
    memset(c->drop, 0, n_node);
    memset(c->lean, want->options.n_loss == 0, n_node);
}

/* The most that recomputing can do. */
static void drop_everything(const request *want, choice *c)
{
    for (int k = 0; k < want->g->n_node; k++) {
        c->drop[k] = (char)(want->needed[k] && want->inside[k]);
        c->lean[k] = (char)(want->g->node[k].op->spare != 0);
    }
}

/* A round gives up this share of what is held at the peak. */
enum { ROUNDS_OF_A_PEAK = 64 };

/* Give up from the peak until the packed plan fits, or nothing can be given up; then everything that can be. What was found
 * stands in c and s; whether it fits, s->bytes tells. *least: of the plans on the way the fewest bytes. */
static ttn_status search(const request *want, choice *c, schedule *s, trade *list, size_t *least, ttn_error *err)
{
    const size_t budget = want->options.budget;
    keep_everything(want, c);
    ttn_status status = plan_with(want, c, s, err);
    *least = s->bytes;
    while (status == TTN_OK && s->bytes > budget) {
        if (give_up(want, c, s, s->peak / ROUNDS_OF_A_PEAK + 1, list) == 0) break;
        status = plan_with(want, c, s, err);
        if (s->bytes < *least) *least = s->bytes;
    }
    if (status != TTN_OK || s->bytes <= budget) return status;
    drop_everything(want, c);
    status = plan_with(want, c, s, err);
    if (s->bytes < *least) *least = s->bytes;
    return status;
}

/* Each try is a schedule: so many are enough, since a round of giving up overshoots by little. */
enum { MOST_TRIES = 64 };

/* Keep after all, dearest to make first, whatever the budget has room for. Now and then that makes a plan smaller than the
 * one that the search found, which no search with its bytes as the budget would come to: that is not taken. */
static ttn_status keep_what_fits(const request *want, choice *c, schedule *s, trade *list, ttn_error *err)
{
    int n = 0;
    for (int k = 0; k < want->g->n_node; k++) {
        if (c->drop[k]) n = add_trade(list, n, DROP, k, 0, drop_time(want, c, k));
        if (may_keep_spare(want, c, k)) n = add_trade(list, n, LEAN, k, 0, lean_time(&want->g->node[k]));
    }
    if (n == 0) return TTN_OK;
    qsort(list, (size_t)n, sizeof *list, by_time);
    ttn_status status = TTN_OK;
    const size_t found = s->bytes;
    for (int i = 0; i < n && i < MOST_TRIES && status == TTN_OK; i++) {
        set_trade(c, &list[i], 0);
        status = plan_with(want, c, s, err);
        if (s->bytes > want->options.budget || s->bytes < found) set_trade(c, &list[i], 1);
    }
    return status == TTN_OK ? plan_with(want, c, s, err) : status;
}

static ttn_status fit_budget(const request *want, choice *c, schedule *s, trade *list, ttn_error *err)
{
    const size_t budget = want->options.budget;
    size_t least;
    ttn_status status = search(want, c, s, list, &least, err);
    if (status != TTN_OK) return status;
    if (s->bytes <= budget) return keep_what_fits(want, c, s, list, err);
    return TTN_FAIL(err, TTN_ENOMEM,
                    "plan: a budget of %zu bytes is too small, whatever is recomputed: %zu bytes would do", budget,
                    least);
}

ttn_status ttn_choose(const request *want, choice *c, schedule *s, ttn_error *err)
{
    if (want->options.budget == 0) {
        keep_everything(want, c);
        if (want->options.n_loss > 0) memcpy(c->drop, want->inside, (size_t)want->g->n_node);
        return plan_with(want, c, s, err);
    }
    trade *list = ttn_alloc_or_say(2 * (int64_t)want->g->n_node, sizeof *list, "what a plan could give up", err);
    ttn_status status = list ? fit_budget(want, c, s, list, err) : TTN_ENOMEM;
    ttn_free(list);
    return status;
}
