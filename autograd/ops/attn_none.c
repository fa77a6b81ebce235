/* attention that sees only itself:  out = v.   q, k (N, C) or left out   v, out (N, C); rows of no sequence: zeros
 * dq = 0     dk = 0     dv = dout
 *
 * What is left of a model when its attention costs nothing: q and k are projected and get a gradient, of zeros, that
 * goes on through their projections, so that another kind's time beside this one's is the time of attention alone. With
 * none.qk: no, a model has neither q nor k, and that time includes their projections. */
#include <string.h>
#include "autograd/attention.h"
#include "autograd/kernel.h"
#include "autograd/ops.h"

enum { Q, K, V };

typedef ttn_attn_none_options attributes;

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    static const char *const name[] = {"q", "k", "v"};
    const int without_q = s->in[Q].ndim < 0;
    if (without_q != (s->in[K].ndim < 0))
        return TTN_FAIL(err, TTN_EINVAL, "attn_none: %s is left out, and %s is there; expected both, or neither",
                        name[without_q ? Q : K], name[without_q ? K : Q]);
    ttn_sig there = *s; /* without those left out */
    if (without_q) there.in[0] = s->in[V];
    ttn_status status = without_q ? ttn_want_rows(&there, 1, "attn_none", name + V, "(N, C)", err)
                                  : ttn_want_rows(&there, V + 1, "attn_none", name, "(N, C)", err);
    if (status != TTN_OK) return status;
    s->n_out = 1;
    s->out[0] = s->in[V];
    return TTN_OK;
}

/* No arithmetic: v is moved forward, gradients of all inputs are written backward. */
static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double gradients = s->in[Q].ndim < 0 ? 1 : 3;
    const double values = pass == TTN_FORWARD ? 2 : 1 + gradients;
    return (ttn_cost){.bytes = values * (double)ttn_desc_numel(&s->out[0]) * (double)sizeof(real)};
}

/* to = acc to + from in the rows of sequences, acc to in all others; from may be `to`, or NULL for zeros. */
static void put(const ttn_call *c, const real *from, real acc, real *to)
{
    const ttn_feed *f = c->feed;
    const int64_t C = ttn_row_width(&c->sig->out[0]);
    if (acc != 0 && !from) return;
    int64_t free_from = 0; /* the first row behind the last sequence */
    for (int64_t s = 0; s < f->used.seqs; s++) {
        const ttn_span span = f->span[s];
        if (acc == 0) memset(to + free_from * C, 0, (size_t)((span.first - free_from) * C) * sizeof *to);
        free_from = span.first + span.n;
#pragma omp parallel for num_threads(c->on->n_thread) if (span.n >= 4096)
        for (int64_t t = span.first; t < span.first + span.n; t++) {
            if (!from) {
                memset(to + t * C, 0, (size_t)C * sizeof *to);
            } else if (acc == 0) {
                memmove(to + t * C, from + t * C, (size_t)C * sizeof *to);
            } else {
                for (int64_t i = t * C; i < (t + 1) * C; i++)
                    to[i] += from[i];
            }
        }
    }
    if (acc != 0) return;
    memset(to + free_from * C, 0, (size_t)((f->used.rows - free_from) * C) * sizeof *to);
    ttn_zero_rest(c, &c->sig->out[0], to);
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    put(c, c->in[V], 0, c->out[0]); /* may be v */
    return TTN_OK;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    for (int i = Q; i <= V; i++)
        if (c->din[i]) put(c, i == V ? c->dout[0] : NULL, c->acc[i], c->din[i]); /* dv may be dout */
    return TTN_OK;
}

/* ---- as an attention kind ---- */

static const ttn_option_condition in_use[] = {{"attention.kind", .is = "none"}, {0}};

static const ttn_option options[] = {
    {.name = "none.qk",
     .type = TTN_OPTION_BOOL,
     .fallback = "yes",
     .help = "queries and keys are projected, although nothing looks at them; no: the model has none",
     .since = "0.1",
     .when = in_use},
};

static ttn_status attr_of_options(const ttn_option_reader *o, int layer, void *attr, ttn_error *err)
{
    attributes *a = attr;
    int qk = 1;
    ttn_status status = o->get_bool(o->self, options[0].name, layer, &qk, err);
    *a = (attributes){.values_alone = !qk};
    return status;
}

static int values_alone(const void *attr)
{
    return ((const attributes *)attr)->values_alone;
}

static int build(ttn_graph *g, const ttn_attn_in *in, const void *attr)
{
    if (values_alone(attr)) return ttn_attn_none(g, in->name, TTN_NONE, TTN_NONE, in->v);
    return ttn_attn_none(g, in->name, in->q, in->k, in->v);
}

/* Every row looks at itself, in every head. */
static ttn_status map_rows(const ttn_call *c, int64_t seq, int64_t head, int64_t n_row, const int64_t *row, real *map,
                           ttn_error *err)
{
    ttn_span span;
    ttn_status status = ttn_map_span(c, "attn_none", seq, head, INT64_MAX, n_row, row, 0, &span, err);
    if (status != TTN_OK) return status;
    memset(map, 0, (size_t)(n_row * span.n) * sizeof *map);
    for (int64_t r = 0; r < n_row; r++)
        map[r * span.n + row[r]] = 1;
    return TTN_OK;
}

static ttn_status map_pool(const ttn_call *c, int64_t seq, int64_t head, int64_t P, double *map, ttn_error *err)
{
    ttn_span span;
    ttn_status status = ttn_map_span(c, "attn_none", seq, head, INT64_MAX, 0, NULL, P, &span, err);
    if (status != TTN_OK) return status;
    memset(map, 0, (size_t)(P * P) * sizeof *map);
    for (int64_t p = 0; p < P; p++)
        map[p * P + p] = 1 / (double)(ttn_map_block(p + 1, span.n, P) - ttn_map_block(p, span.n, P));
    return TTN_OK;
}

static const ttn_attention attention = {
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .attr = attr_of_options,
    .values_alone = values_alone,
    .build = build,
    .map_rows = map_rows,
    .map_pool = map_pool,
};

/* ---- cases ---- */

#define THREE(...)                            \
    {                                         \
        __VA_ARGS__, __VA_ARGS__, __VA_ARGS__ \
    }

static const attributes usual = {0};

static const ttn_case cases[] = {
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &usual},
    {.about = "one row, width 1",
     .used = {.rows = 1, .seqs = 1},
     .span = {{0, 1}},
     .in = THREE(TTN_ROWS_OF(1)),
     .attr = &usual},
    {.about = "every row of the capacity",
     .used = {.rows = 480, .seqs = 1},
     .span = {{0, 480}},
     .in = THREE(TTN_ROWS_OF(2)),
     .attr = &usual},
    {.about = "a long sequence, on several threads",
     .used = {.rows = 5000, .seqs = 2},
     .span = {{3, 4200}, {4900, 90}},
     .in = THREE(TTN_ROWS_OF(2)),
     .attr = &usual},
    {.about = "without q and k",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_LEFT_OUT, TTN_LEFT_OUT, TTN_ROWS_OF(6)},
     .attr = &usual},
    {.about = "no sequences: zeros", .used = {.rows = 7}, .in = THREE(TTN_ROWS_OF(3)), .attr = &usual},
    {.about = "no rows", .cap = {.rows = 480, .seqs = 2}, .in = THREE(TTN_ROWS_OF(3)), .attr = &usual},
    {.about = "k of another width",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_ROWS_OF(5), TTN_ROWS_OF(4)},
     .attr = &usual,
     .refused = "k is " TTN_REAL_NAME " (N 480, 5), but q is " TTN_REAL_NAME " (N 480, 4); expected one shape"},
    {.about = "picks",
     .used = {.picks = 6},
     .in = THREE(TTN_PICKS_OF(4)),
     .attr = &usual,
     .refused = "q is " TTN_REAL_NAME " (R 480, 4), expected rows of a batch, (N, C)"},
    {.about = "three dimensions",
     .used = {.rows = 6},
     .in = THREE({.axis = TTN_ROWS, .ndim = 3, .dim = {0, 2, 2}}),
     .attr = &usual,
     .refused = "which has 3 dimensions; expected 2, (N, C)"},
    {.about = "without k alone",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_LEFT_OUT, TTN_ROWS_OF(4)},
     .attr = &usual,
     .refused = "k is left out, and q is there; expected both, or neither"},
    {.about = "without q and k, picks",
     .used = {.picks = 6},
     .in = {TTN_LEFT_OUT, TTN_LEFT_OUT, TTN_PICKS_OF(4)},
     .attr = &usual,
     .refused = "v is " TTN_REAL_NAME " (R 480, 4), expected rows of a batch, (N, C)"},
};

const ttn_op ttn_op_attn_none = {
    .name = "attn_none",
    .n_in = 3,
    .n_out = 1,
    .optional = TTN_BIT(Q) | TTN_BIT(K),
    .differentiable = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V),
    .takes = {TTN_SHARES(V)},
    .passes = {[V] = TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .attention = &attention,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_attn_none(ttn_graph *g, const char *name, int q, int k, int v)
{
    const ttn_attn_none_options o = {.values_alone = q < 0 && k < 0};
    return ttn_apply(g, "attn_none", name, &o, (const int[]){q, k, v});
}
