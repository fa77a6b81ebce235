/* Recording: values and nodes in two growing arrays. No arithmetic happens here. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/graph_impl.h"
#include "core/gemm.h"
#include "core/hash.h"

_Static_assert((int)TTN_GRAPH_TILE == (int)TTN_ROW_TILE, "capacities are whole tiles of the row-wise products");

/* What a builder returns after the caller's mistake. */
static int fail(ttn_graph *g, const char *format, ...) TTN_PRINTF(2, 3);
static int fail(ttn_graph *g, const char *format, ...)
{
    char text[TTN_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    TTN_FAIL(&g->error, TTN_EINVAL, "%s", text);
    return TTN_FAILED;
}

static int failed(const ttn_graph *g)
{
    return !g || g->error.status != TTN_OK;
}

static int fail(ttn_graph *g, const char *format, ...) TTN_PRINTF(2, 3);

/* Every builder's first question. A plan points into the graph: it must not grow under it. */
static int cannot_record(ttn_graph *g)
{
    if (failed(g)) return 1;
    if (!g->sealed) return 0;
    fail(g, "recording goes on after a plan was made of the graph; record everything first");
    return 1;
}

static int out_of_memory(ttn_graph *g, const char *what)
{
    TTN_FAIL(&g->error, TTN_ENOMEM, "out of memory for %s after %d values and %d nodes", what, g->n_value, g->n_node);
    return TTN_FAILED;
}

/* ---- the graph itself ---- */

static void check_capacity(ttn_graph *g, int64_t n, int64_t tile, const char *what)
{
    if (n < 0 || n % tile != 0)
        TTN_FAIL(&g->error, TTN_EINVAL, "a graph for %" PRId64 " %s: 0 or a multiple of %" PRId64 " is possible", n,
                 what, tile);
}

ttn_graph *ttn_graph_create(ttn_extent capacity)
{
    ttn_graph *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->cap = capacity;
    check_capacity(g, capacity.rows, TTN_GRAPH_TILE, "rows");
    check_capacity(g, capacity.picks, TTN_GRAPH_TILE, "picks");
    check_capacity(g, capacity.seqs, 1, "sequences");
    return g;
}

void ttn_graph_destroy(ttn_graph *g)
{
    if (!g) return;
    for (int v = 0; v < g->n_value; v++)
        free(g->value[v].name);
    for (int k = 0; k < g->n_node; k++) {
        free(g->node[k].attr);
        free(g->node[k].name);
    }
    free(g->value);
    free(g->node);
    free(g->leaf_names.slot);
    free(g->node_names.slot);
    free(g->next_number.slot);
    free(g);
}

ttn_status ttn_graph_check(const ttn_graph *g, ttn_error *err)
{
    if (!g) return TTN_FAIL(err, TTN_ENOMEM, "there is no graph: ttn_graph_create was out of memory");
    if (g->error.status != TTN_OK) return TTN_FAIL(err, g->error.status, "%s", g->error.text);
    return TTN_OK;
}

ttn_extent ttn_graph_capacity(const ttn_graph *g)
{
    return g ? g->cap : (ttn_extent){0};
}

/* ---- shapes ---- */

ttn_desc ttn_rows(const ttn_graph *g, int64_t channels)
{
    return ttn_desc_of(TTN_REAL, TTN_ROWS, 2, ttn_graph_capacity(g).rows, channels, 0);
}

ttn_desc ttn_picks(const ttn_graph *g, int64_t channels)
{
    return ttn_desc_of(TTN_REAL, TTN_PICKS, 2, ttn_graph_capacity(g).picks, channels, 0);
}

ttn_desc ttn_seqs(const ttn_graph *g, int64_t channels)
{
    return ttn_desc_of(TTN_REAL, TTN_SEQS, 2, ttn_graph_capacity(g).seqs, channels, 0);
}

ttn_desc ttn_matrix(int64_t a, int64_t b)
{
    return ttn_desc_of(TTN_REAL, TTN_FIXED, 2, a, b, 0);
}

ttn_desc ttn_vector(int64_t a)
{
    return ttn_desc_of(TTN_REAL, TTN_FIXED, 1, a, 0, 0);
}

ttn_desc ttn_typed(ttn_desc d, ttn_dtype type)
{
    d.type = type;
    return d;
}

/* ---- names ---- */

/* Of ASCII, whatever the locale. */
static int is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* Parts of letters, digits, '_' and '-' with single dots between them: names go into files and patterns. */
static int is_name(const char *name)
{
    int part = 0;
    for (const char *c = name; *c; c++) {
        if (is_name_byte(*c)) {
            part++;
        } else {
            if (*c != '.' || part == 0) return 0;
            part = 0;
        }
    }
    return part > 0;
}

void ttn_scope_begin(ttn_graph *g, const char *format, ...)
{
    if (cannot_record(g)) return;
    char part[TTN_MAX_NAME];
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(part, sizeof part, format, args);
    va_end(args);
    size_t end = strlen(g->scope);
    if (g->n_scope == TTN_MAX_SCOPES) {
        fail(g, "scope '%s': more than %d scopes are open", part, TTN_MAX_SCOPES);
        return;
    }
    if (wanted < 0 || !is_name(part)) {
        fail(g, "scope '%s': letters, digits, '_', '-' and dots between parts make a name", part);
        return;
    }
    if (end + (size_t)wanted + 2 > sizeof g->scope) {
        fail(g, "scope '%s%s': longer than %d bytes", g->scope, part, TTN_MAX_NAME);
        return;
    }
    g->scope_end[g->n_scope++] = end;
    memcpy(g->scope + end, part, (size_t)wanted);
    memcpy(g->scope + end + wanted, ".", 2);
}

void ttn_scope_end(ttn_graph *g)
{
    if (cannot_record(g)) return;
    if (g->n_scope == 0) {
        fail(g, "a scope is closed that was not opened");
        return;
    }
    g->n_scope--;
    g->scope[g->scope_end[g->n_scope]] = 0;
}

/* The name with the scope in front, allocated; NULL after a failure. */
static char *full_name(ttn_graph *g, const char *name)
{
    if (!name) {
        fail(g, "in scope '%s': a leaf without a name", g->scope);
        return NULL;
    }
    if (!is_name(name)) {
        fail(g, "name '%s%s': letters, digits, '_', '-' and dots between parts make a name", g->scope, name);
        return NULL;
    }
    size_t bytes = strlen(g->scope) + strlen(name) + 1;
    if (bytes > TTN_MAX_NAME) {
        fail(g, "name '%s%s': longer than %d bytes", g->scope, name, TTN_MAX_NAME - 1);
        return NULL;
    }
    char *full = malloc(bytes);
    if (!full) {
        out_of_memory(g, "a name");
        return NULL;
    }
    memcpy(full, g->scope, strlen(g->scope));
    memcpy(full + strlen(g->scope), name, strlen(name) + 1);
    return full;
}

/* The place of this hash, or the free one where it belongs; `from` continues behind a place that was not the right one.
 * The table has room. */
static int64_t find_slot(const ttn_name_table *t, uint64_t hash, int64_t from)
{
    int64_t at = from >= 0 ? from + 1 : (int64_t)(hash & (uint64_t)(t->room - 1));
    for (;; at++) {
        at &= t->room - 1;
        if (t->slot[at].number < 0 || t->slot[at].hash == hash) return at;
    }
}

static int grow_table(ttn_name_table *t)
{
    ttn_name_table larger = {.room = t->room ? 2 * t->room : 64};
    larger.slot = calloc((size_t)larger.room, sizeof *larger.slot);
    if (!larger.slot) return 0;
    for (int64_t i = 0; i < larger.room; i++)
        larger.slot[i].number = -1;
    for (int64_t i = 0; i < t->room; i++) {
        if (t->slot[i].number < 0) continue;
        int64_t at = find_slot(&larger, t->slot[i].hash, -1);
        while (larger.slot[at].number >= 0)
            at = find_slot(&larger, t->slot[i].hash, at);
        larger.slot[at] = t->slot[i];
    }
    larger.n = t->n;
    free(t->slot);
    *t = larger;
    return 1;
}

/* 0: out of memory. */
static int note_name(ttn_name_table *t, uint64_t hash, int number)
{
    if (2 * (t->n + 1) > t->room && !grow_table(t)) return 0;
    int64_t at = find_slot(t, hash, -1);
    while (t->slot[at].number >= 0)
        at = find_slot(t, hash, at);
    t->slot[at] = (ttn_name_slot){.hash = hash, .number = number};
    t->n++;
    return 1;
}

/* Equal hashes are taken for equal names only after a look at the names. */
static int leaf_named(const ttn_graph *g, const char *name, uint64_t hash)
{
    const ttn_name_table *t = &g->leaf_names;
    for (int64_t at = -1; t->room > 0;) {
        at = find_slot(t, hash, at);
        if (t->slot[at].number < 0) return 0;
        if (strcmp(g->value[t->slot[at].number].name, name) == 0) return 1;
    }
    return 0;
}

static int node_named(const ttn_graph *g, const char *name, uint64_t hash)
{
    const ttn_name_table *t = &g->node_names;
    for (int64_t at = -1; t->room > 0;) {
        at = find_slot(t, hash, at);
        if (t->slot[at].number < 0) return 0;
        if (strcmp(g->node[t->slot[at].number].name, name) == 0) return 1;
    }
    return 0;
}

/* ---- values ---- */

/* Room for one element more. On failure the array stays as it is. */
static int grow(void **array, int n, int *room, size_t element)
{
    if (n < *room) return 1;
    int more = *room ? 2 * *room : 64;
    void *larger = realloc(*array, (size_t)more * element);
    if (!larger) return 0;
    *array = larger;
    *room = more;
    return 1;
}

static int push_value(ttn_graph *g, ttn_value x)
{
    void *array = g->value;
    if (!grow(&array, g->n_value, &g->value_room, sizeof *g->value)) return out_of_memory(g, "a value");
    g->value = array;
    if (x.root == TTN_FAILED) x.root = g->n_value;
    g->value[g->n_value] = x;
    return g->n_value++;
}

static int is_value(const ttn_graph *g, int x)
{
    return g && x >= 0 && x < g->n_value;
}

static int64_t capacity_of(const ttn_graph *g, const ttn_desc *d)
{
    switch (d->axis) {
    case TTN_ROWS:
        return g->cap.rows;
    case TTN_SEQS:
        return g->cap.seqs;
    case TTN_PICKS:
        return g->cap.picks;
    case TTN_FIXED:
        break;
    }
    return d->ndim > 0 ? d->dim[0] : 1;
}

static ttn_status check_desc(ttn_graph *g, const char *name, const ttn_desc *d, ttn_error *err)
{
    if (d->ndim < 0) return TTN_FAIL(err, TTN_EINVAL, "%s: %d dimensions", name, d->ndim);
    ttn_status status = ttn_desc_check(d, name, err);
    if (status != TTN_OK) return status;
    if (d->axis != TTN_FIXED && d->dim[0] != capacity_of(g, d)) {
        char text[TTN_DESC_TEXT];
        return TTN_FAIL(err, TTN_EINVAL, "%s: %s, but the graph was created for %" PRId64, name,
                        ttn_desc_print(d, text), capacity_of(g, d));
    }
    return TTN_OK;
}

static int leaf(ttn_graph *g, const char *name, ttn_value x)
{
    if (cannot_record(g)) return TTN_FAILED;
    x.name = full_name(g, name);
    if (!x.name) return TTN_FAILED;
    x.hash = ttn_hash_text(x.name);
    x.node = TTN_NO_NODE;
    x.root = TTN_FAILED;
    int ret = TTN_FAILED;
    if (leaf_named(g, x.name, x.hash))
        fail(g, "%s: two leaves have this name", x.name);
    else if (check_desc(g, x.name, &x.desc, &g->error) == TTN_OK)
        ret = note_name(&g->leaf_names, x.hash, g->n_value) ? push_value(g, x) : out_of_memory(g, "a name");
    if (ret == TTN_FAILED) free(x.name);
    return ret;
}

int ttn_input(ttn_graph *g, const char *name, ttn_desc d)
{
    return leaf(g, name, (ttn_value){.desc = d, .leaf = TTN_LEAF_INPUT});
}

int ttn_param(ttn_graph *g, const char *name, ttn_desc d, ttn_init init, unsigned flags)
{
    if (cannot_record(g)) return TTN_FAILED;
    if (d.type != TTN_REAL || d.axis != TTN_FIXED) {
        char text[TTN_DESC_TEXT];
        return fail(g, "%s%s: %s cannot be a parameter, which has the build's real type and no axis of a batch",
                    g->scope, name ? name : "", ttn_desc_print(&d, text));
    }
    return leaf(g, name,
                (ttn_value){
                    .desc = d,
                    .leaf = TTN_LEAF_PARAM,
                    .init = init,
                    .flags = flags,
                    .needs_grad = !(flags & TTN_FROZEN),
                });
}

int ttn_state(ttn_graph *g, const char *name, ttn_desc d)
{
    if (cannot_record(g)) return TTN_FAILED;
    if (d.axis != TTN_FIXED) return fail(g, "%s%s: a state has no axis of a batch", g->scope, name ? name : "");
    return leaf(g, name, (ttn_value){.desc = d, .leaf = TTN_LEAF_STATE});
}

int ttn_detach(ttn_graph *g, int x)
{
    if (cannot_record(g)) return TTN_FAILED;
    if (!is_value(g, x)) return fail(g, "detach: %d is no value of this graph (it has %d)", x, g->n_value);
    ttn_value d = g->value[x];
    return push_value(g, (ttn_value){.desc = d.desc, .node = d.node, .output = d.output, .root = d.root});
}

/* ---- nodes ---- */

uint32_t ttn_node_wanted(const ttn_graph *g, const ttn_node *n)
{
    uint32_t wanted = 0;
    for (int i = 0; i < n->op->n_in; i++)
        if (n->in[i] != TTN_NONE && g->value[n->in[i]].needs_grad) wanted |= TTN_BIT(i);
    return wanted;
}

/* No gradient may be wanted where the op has none. */
static ttn_status check_wanted(const ttn_graph *g, const ttn_node *n, ttn_error *err)
{
    uint32_t impossible = ttn_node_wanted(g, n) & ~n->op->differentiable;
    if (!impossible) return TTN_OK;
    int i = __builtin_ctz(impossible);
    return TTN_FAIL(err, TTN_EINVAL,
                    "%s: %s: input %d, '%s', leads to a parameter but cannot have a gradient; use ttn_detach", n->name,
                    n->op->name, i, ttn_name_of_value(g, n->in[i]));
}

static ttn_status take_inputs(ttn_graph *g, ttn_node *n, const int *in)
{
    const ttn_op *op = n->op;
    n->sig.cap = g->cap;
    n->sig.n_in = op->n_in;
    for (int i = 0; i < op->n_in; i++) {
        n->in[i] = in[i];
        if (in[i] == TTN_NONE) {
            if (!(op->optional & TTN_BIT(i)))
                return TTN_FAIL(&g->error, TTN_EINVAL, "%s: %s: input %d cannot be left out", n->name, op->name, i);
            n->sig.in[i] = (ttn_desc){.ndim = -1};
            continue;
        }
        if (!is_value(g, in[i]))
            return TTN_FAIL(&g->error, TTN_EINVAL, "%s: %s: input %d is %d, no value of this graph (it has %d)",
                            n->name, op->name, i, in[i], g->n_value);
        n->sig.in[i] = g->value[in[i]].desc;
    }
    return check_wanted(g, n, &g->error);
}

static ttn_status copy_attr(ttn_graph *g, ttn_node *n, const void *attr)
{
    size_t bytes = n->op->attr_bytes;
    if (bytes == 0) return TTN_OK;
    if (!attr) return TTN_FAIL(&g->error, TTN_EINVAL, "%s: %s: its attributes are missing", n->name, n->op->name);
    n->attr = malloc(bytes);
    if (!n->attr) return TTN_FAIL(&g->error, TTN_ENOMEM, "%s: out of memory for its attributes", n->name);
    memcpy(n->attr, attr, bytes);
    n->sig.attr = n->attr;
    return TTN_OK;
}

static ttn_status infer_shapes(ttn_graph *g, ttn_node *n)
{
    ttn_error err = {0};
    n->sig.n_out = n->op->n_out;
    ttn_status status = n->op->shape(&n->sig, &err);
    for (int j = 0; j < n->sig.n_out && status == TTN_OK; j++)
        status = check_desc(g, n->op->name, &n->sig.out[j], &err);
    for (int j = 0; j < n->sig.n_aux && status == TTN_OK; j++)
        status = ttn_desc_check(&n->sig.aux[j], n->op->name, &err);
    if (status != TTN_OK) return TTN_FAIL(&g->error, status, "%s: %s", n->name, err.text);
    return TTN_OK;
}

/* The first number from which the graph has not yet named a node of this name. NULL: out of memory. */
static int *next_number(ttn_graph *g, uint64_t hash)
{
    ttn_name_table *t = &g->next_number;
    if (t->room > 0) {
        int64_t at = find_slot(t, hash, -1);
        if (t->slot[at].number >= 0) return &t->slot[at].number;
    }
    if (!note_name(t, hash, 1)) return NULL;
    return &t->slot[find_slot(t, hash, -1)].number;
}

/* The op's name, with the first number that is free. */
static ttn_status name_automatically(ttn_graph *g, ttn_node *n)
{
    char *base = full_name(g, n->op->name);
    int *number = base ? next_number(g, ttn_hash_text(base)) : NULL;
    free(base);
    if (!number && g->error.status == TTN_OK) out_of_memory(g, "a name");
    while (number) {
        char automatic[64];
        snprintf(automatic, sizeof automatic, *number == 1 ? "%s" : "%s_%d", n->op->name, *number);
        (*number)++;
        n->name = full_name(g, automatic);
        if (!n->name) break;
        n->hash = ttn_hash_text(n->name);
        if (!node_named(g, n->name, n->hash)) return TTN_OK;
        free(n->name);
        n->name = NULL;
    }
    return g->error.status;
}

/* n->name and n->hash. */
static ttn_status name_node(ttn_graph *g, ttn_node *n, const char *name)
{
    if (!name) return name_automatically(g, n);
    n->name = full_name(g, name);
    if (!n->name) return g->error.status;
    n->hash = ttn_hash_text(n->name);
    if (node_named(g, n->name, n->hash))
        return TTN_FAIL(&g->error, TTN_EINVAL, "%s: two nodes have this name", n->name);
    return TTN_OK;
}

/* Output j's name: the node's own when it is alone. NULL: out of memory. */
static char *output_name(const ttn_node *n, int j)
{
    size_t bytes = strlen(n->name) + 16;
    char *name = malloc(bytes);
    if (!name) return NULL;
    if (n->sig.n_out == 1)
        snprintf(name, bytes, "%s", n->name);
    else
        snprintf(name, bytes, "%s.%d", n->name, j);
    return name;
}

/* n is complete: it gets a number and its outputs get values. */
static int push_node(ttn_graph *g, ttn_node n)
{
    void *array = g->node;
    if (!grow(&array, g->n_node, &g->node_room, sizeof *g->node)) return out_of_memory(g, "a node");
    g->node = array;
    int needs_grad = ttn_node_wanted(g, &n) != 0;
    n.out = g->n_value;
    n.block = g->block;
    for (int j = 0; j < n.sig.n_out; j++) {
        ttn_value x = {
            .desc = n.sig.out[j],
            .node = g->n_node,
            .output = j,
            .root = TTN_FAILED,
            .needs_grad = needs_grad,
            .name = output_name(&n, j),
        };
        if (!x.name) return out_of_memory(g, "a name");
        if (push_value(g, x) == TTN_FAILED) {
            free(x.name);
            return TTN_FAILED;
        }
    }
    if (!note_name(&g->node_names, n.hash, g->n_node)) return out_of_memory(g, "a name");
    g->node[g->n_node++] = n;
    return n.out;
}

int ttn_apply_op(ttn_graph *g, const ttn_op *op, const char *node, const void *attr, const int *in)
{
    if (cannot_record(g)) return TTN_FAILED;
    ttn_node n = {.op = op};
    int out = TTN_FAILED;
    if (name_node(g, &n, node) == TTN_OK && take_inputs(g, &n, in) == TTN_OK && copy_attr(g, &n, attr) == TTN_OK &&
        infer_shapes(g, &n) == TTN_OK)
        out = push_node(g, n);
    if (out == TTN_FAILED) {
        free(n.attr);
        free(n.name);
    }
    return out;
}

int ttn_apply(ttn_graph *g, const char *op, const char *node, const void *attr, const int *in)
{
    if (failed(g)) return TTN_FAILED;
    const ttn_op *found = ttn_op_find(op);
    if (!found) return fail(g, "%s%s: there is no op '%s'", g->scope, node ? node : "", op);
    return ttn_apply_op(g, found, node, attr, in);
}

int ttn_output(ttn_graph *g, int first, int j)
{
    if (failed(g)) return TTN_FAILED;
    if (!is_value(g, first) || g->value[first].node == TTN_NO_NODE)
        return fail(g, "output %d of %d: that is no node's value", j, first);
    if (g->value[first].root != first)
        return fail(g, "output %d of '%s': that is detached; detach the output", j, ttn_name_of_value(g, first));
    const ttn_node *n = &g->node[g->value[first].node];
    if (j < 0 || j >= n->sig.n_out)
        return fail(g, "%s: %s has no output %d, only %d", n->name, n->op->name, j, n->sig.n_out);
    return n->out + j;
}

/* ---- blocks ---- */

void ttn_block_begin(ttn_graph *g)
{
    if (cannot_record(g)) return;
    if (g->block != TTN_NO_BLOCK) {
        fail(g, "%s: a block is opened inside a block", g->scope);
        return;
    }
    g->n_block++;
    g->block = g->n_block;
}

void ttn_block_end(ttn_graph *g)
{
    if (cannot_record(g)) return;
    if (g->block == TTN_NO_BLOCK) {
        fail(g, "%s: a block is closed that was not opened", g->scope);
        return;
    }
    g->block = TTN_NO_BLOCK;
}

/* ---- freezing ---- */

/* Who needs a gradient follows from the parameters, in the order of recording. */
static void spread_needs_grad(ttn_graph *g)
{
    for (int k = 0; k < g->n_node; k++) {
        const ttn_node *n = &g->node[k];
        int needs_grad = ttn_node_wanted(g, n) != 0;
        for (int j = 0; j < n->sig.n_out; j++)
            g->value[n->out + j].needs_grad = needs_grad;
    }
}

int ttn_graph_freeze(ttn_graph *g, const char *pattern, int freeze)
{
    if (failed(g)) return 0;
    int matched = 0;
    for (int v = 0; v < g->n_value; v++) {
        ttn_value *x = &g->value[v];
        if (x->leaf != TTN_LEAF_PARAM || fnmatch(pattern, x->name, 0) != 0) continue;
        matched++;
        x->flags = freeze ? x->flags | TTN_FROZEN : x->flags & ~(unsigned)TTN_FROZEN;
        x->needs_grad = !freeze;
    }
    if (matched == 0) {
        fail(g, "freeze '%s': no parameter has a name like that", pattern);
        return 0;
    }
    spread_needs_grad(g);
    for (int k = 0; k < g->n_node; k++)
        if (check_wanted(g, &g->node[k], &g->error) != TTN_OK) return 0;
    return matched;
}

/* ---- questions ---- */

ttn_desc ttn_desc_of_value(const ttn_graph *g, int x)
{
    return is_value(g, x) ? g->value[x].desc : (ttn_desc){.ndim = -1};
}

const char *ttn_name_of_value(const ttn_graph *g, int x)
{
    return is_value(g, x) ? g->value[g->value[x].root].name : "?";
}

int ttn_next_param(const ttn_graph *g, int x)
{
    if (!g) return TTN_NONE;
    for (int v = x == TTN_NONE ? 0 : x + 1; v < g->n_value; v++)
        if (g->value[v].leaf == TTN_LEAF_PARAM) return v;
    return TTN_NONE;
}
