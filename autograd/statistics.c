#include "autograd/statistics.h"
#include <string.h>
#include "autograd/attention.h"
#include "autograd/graph_impl.h"
#include "core/memory.h"

typedef struct {
    const ttn_node *node;
    int layer, heads;
    double *stat; /* (sig.n_stat) */
} member;

struct ttn_statistics {
    member *member;
    double *stat; /* of all members */
    int n;
    int is_empty;
};

/* ---- creation ---- */

/* An op with numbers a head and numbers of its own has `heads` of the former: what is left of n_stat. */
static int heads_of(const ttn_node *n)
{
    int per_head = 0;
    for (int i = 0; i < n->op->n_stats; i++)
        per_head += n->op->stats[i].per_head;
    return per_head > 0 ? (n->sig.n_stat - (n->op->n_stats - per_head)) / per_head : 1;
}

ttn_status ttn_statistics_create(const ttn_graph *g, ttn_statistics **ret, ttn_error *err)
{
    int64_t numbers = 0;
    *ret = NULL;
    for (int k = 0; k < g->n_node; k++)
        if (g->node[k].op->attention) numbers += g->node[k].sig.n_stat;
    ttn_statistics *s = ttn_alloc_or_say(1, sizeof *s, "statistics of attention", err);
    if (!s) return TTN_ENOMEM;
    s->member = ttn_alloc_or_say(g->n_node + 1, sizeof *s->member, "statistics of attention", err);
    s->stat = ttn_alloc_or_say(numbers + 1, sizeof *s->stat, "statistics of attention", err);
    if (!s->member || !s->stat) {
        ttn_statistics_destroy(s);
        return TTN_ENOMEM;
    }
    int layer = 0;
    double *next = s->stat;
    for (int k = 0; k < g->n_node; k++) {
        const ttn_node *n = &g->node[k];
        if (!n->op->attention) continue;
        const int number = layer++;
        if (n->op->n_stats == 0) continue;
        s->member[s->n++] = (member){.node = n, .layer = number, .heads = heads_of(n), .stat = next};
        next += n->sig.n_stat;
    }
    s->is_empty = 1;
    *ret = s;
    return TTN_OK;
}

void ttn_statistics_destroy(ttn_statistics *s)
{
    if (!s) return;
    ttn_free(s->member);
    ttn_free(s->stat);
    ttn_free(s);
}

/* ---- folding ---- */

static int width_of(const member *m, int i)
{
    return m->node->op->stats[i].per_head ? m->heads : 1;
}

void ttn_statistics_start(ttn_statistics *s)
{
    s->is_empty = 1;
}

void ttn_statistics_add(ttn_statistics *s, const ttn_plan *p)
{
    for (int k = 0; k < s->n; k++) {
        member *m = &s->member[k];
        int n;
        const double *more = ttn_plan_stat(p, m->node->out, &n);
        if (!more) continue;
        if (s->is_empty) {
            memcpy(m->stat, more, (size_t)n * sizeof *more);
            continue;
        }
        int at = 0;
        for (int i = 0; i < m->node->op->n_stats; i++)
            for (int h = 0; h < width_of(m, i); h++, at++)
                m->stat[at] = ttn_folded(m->node->op->stats[i].fold, m->stat[at], more[at]);
    }
    s->is_empty = 0;
}

const double *ttn_statistics_of(void *statistics, int value)
{
    const ttn_statistics *s = statistics;
    for (int k = 0; k < s->n && !s->is_empty; k++)
        if (s->member[k].node->out == value) return s->member[k].stat;
    return NULL;
}

/* ---- telling ---- */

/* -1: it has none of that name. */
static int number_of(const ttn_op *op, const char *name)
{
    for (int i = 0; i < op->n_stats; i++)
        if (strcmp(op->stats[i].name, name) == 0) return i;
    return -1;
}

/* Statistic i of a node, its heads folded. */
static double number(const member *m, int i)
{
    const double *x = m->stat;
    for (int before = 0; before < i; before++)
        x += width_of(m, before);
    double value = x[0];
    for (int h = 1; h < width_of(m, i); h++)
        value = ttn_folded(m->node->op->stats[i].fold, value, x[h]);
    return value;
}

static int is_a_divisor(const ttn_op *op, int i)
{
    for (int other = 0; other < op->n_stats; other++)
        if (op->stats[other].over && strcmp(op->stats[other].over, op->stats[i].name) == 0) return 1;
    return 0;
}

static void tell(const member *m, void (*take)(void *ctx, const ttn_told_statistic *told), void *ctx)
{
    const ttn_op *op = m->node->op;
    for (int i = 0; i < op->n_stats; i++) {
        if (is_a_divisor(op, i)) continue;
        const ttn_stat *stat = &op->stats[i];
        ttn_told_statistic told = {
            .kind = op->name + strlen("attn_"), /* autograd/attention.h */
            .layer = m->layer,
            .name = stat->over ? stat->mean : stat->name,
            .value = number(m, i),
        };
        if (stat->over) {
            const double divisor = number(m, number_of(op, stat->over));
            if (divisor == 0) continue;
            told.value /= divisor;
        }
        take(ctx, &told);
    }
}

void ttn_statistics_tell(const ttn_statistics *s, void (*take)(void *ctx, const ttn_told_statistic *told), void *ctx)
{
    for (int k = 0; k < s->n && !s->is_empty; k++)
        tell(&s->member[k], take, ctx);
}
