#include "autograd/renew.h"
#include <stdio.h>
#include "autograd/attention.h"
#include "autograd/graph_impl.h"

/* ---- the states of a node ---- */

/* The entry's number in the weights; -1: there is none. */
static int number_of(const ttn_state_set *s, const char *name)
{
    char full[TTN_MAX_NAME];
    const int length = snprintf(full, sizeof full, "%s.%s", s->node, name);
    if (length < 0 || (size_t)length >= sizeof full) return -1;
    const int i = ttn_weights_find(s->weights, full);
    return i >= 0 && ttn_weights_at(s->weights, i)->is_state ? i : -1;
}

static ttn_status missing(const char *name, ttn_error *err)
{
    return TTN_FAIL(err, TTN_EINTERNAL, "there is no state '%s' of this node", name);
}

ttn_status ttn_state_find(const ttn_state_set *s, const char *name, const ttn_weight **ret, ttn_error *err)
{
    const int i = number_of(s, name);
    if (i < 0) return missing(name, err);
    *ret = ttn_weights_at(s->weights, i);
    return TTN_OK;
}

ttn_status ttn_state_read(const ttn_state_set *s, const char *name, void *data, ttn_error *err)
{
    const int i = number_of(s, name);
    if (i < 0) return missing(name, err);
    return ttn_weights_read(s->weights, i, TTN_SLAB_VALUE, data, err);
}

ttn_status ttn_state_write(const ttn_state_set *s, const char *name, const void *data, ttn_error *err)
{
    const int i = number_of(s, name);
    if (i < 0) return missing(name, err);
    return ttn_weights_write(s->weights, i, TTN_SLAB_VALUE, data, err);
}

/* ---- all nodes ---- */

ttn_status ttn_renew(const ttn_graph *g, ttn_weights *w, uint64_t seed, int64_t step, const ttn_renew_stats *stats,
                     ttn_error *err)
{
    const ttn_when when = {.seed = seed, .step = step};
    for (int k = 0; k < g->n_node; k++) {
        const ttn_node *n = &g->node[k];
        if (!n->op->attention || !n->op->attention->renew) continue;
        const ttn_state_set s = {.weights = w, .node = n->name, .attr = n->attr};
        const double *stat = stats ? stats->of(stats->ctx, n->out) : NULL;
        ttn_error why = {0};
        ttn_status status = n->op->attention->renew(&s, &when, stat, &why);
        if (status != TTN_OK) return TTN_FAIL(err, status, "%s: %s", n->name, why.text);
    }
    return TTN_OK;
}
