/* exact attention, per sequence and head:  out_i = sum_t p_it v_t,   p_it = exp(a_it - L_i),   a_it = s q_i.k_t,
 * L_i = log sum_t exp(a_it), over all rows t of i's sequence (causal: t <= i).   q, k, v, out (N, H D)
 * aux 0: L (N, H).   Rows of no sequence: zeros. A run without sequences has no other rows.
 *
 * With g = dout, delta_i = g_i.out_i and e_it = s p_it (g_i.v_t - delta_i):
 * dq_i = sum_t e_it k_t     dk_t = sum_i e_it q_i     dv_t = sum_i p_it g_i
 *
 * Dropout (training only) puts p_it z_it in the place of p_it where it meets v_t or g_i, z being 0 or 1 / (1 - rate):
 * e_it = s p_it (z_it g_i.v_t - delta_i), and delta_i is g_i.out_i as before. z is drawn with a key of the head's own,
 * made from the call's, at counter (sample number, position of i, position of t / 4): a function of the place in the
 * sequence and of nothing else, and no draw is used twice.
 *
 * How it is computed: autograd/attn_tiles.c. */
#include <inttypes.h>
#include <math.h>
#include "autograd/attention.h"
#include "autograd/attn_tiles.h"
#include "autograd/kernel.h"
#include "autograd/ops.h"

enum { Q, K, V };

typedef ttn_attn_exact_options attributes;

/* ---- shapes ---- */

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    static const char *const name[] = {"q", "k", "v"};
    ttn_status status = ttn_want_rows(s, V + 1, "attn_exact", name, "(N, H D)", err);
    if (status != TTN_OK) return status;
    const attributes *a = s->attr;
    const int64_t C = s->in[Q].dim[1];
    status = ttn_want_heads(s, "attn_exact", a->heads, err);
    if (status != TTN_OK) return status;
    if (!(isfinite((real)a->scale) && a->scale >= 0))
        return TTN_FAIL(err, TTN_EINVAL,
                        "attn_exact: scale is %g, expected a number above 0, or 0 for 1/sqrt(%" PRId64 ")", a->scale,
                        C / a->heads);
    if (!(a->dropout >= 0 && a->dropout < 1))
        return TTN_FAIL(err, TTN_EINVAL, "attn_exact: dropout is %g, expected at least 0 and less than 1", a->dropout);
    s->n_out = 1;
    s->out[0] = s->in[Q];
    s->n_aux = 1;
    s->aux[0] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, s->in[Q].dim[0], a->heads, 0);
    for (int pass = TTN_FORWARD; pass <= TTN_BACKWARD; pass++) {
        s->work[pass] = ttn_attn_tiles_work(s, a->heads, s->in[Q].dim[0], (ttn_pass)pass);
        s->work_thread[pass] = ttn_attn_tiles_work_thread(s, a->heads, 0, (ttn_pass)pass);
    }
    return TTN_OK;
}

/* Lengths are not known when a graph is recorded: as many sequences as it has room for, all of one length. */
static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const attributes *a = s->attr;
    const double N = (double)s->in[Q].dim[0];
    const double C = (double)s->in[Q].dim[1];
    const double seqs = s->cap.seqs > 0 ? (double)s->cap.seqs : 1;
    const double n = N / seqs;
    const double seen = a->causal ? (n + 1) / 2 : n; /* keys of a row */
    const double product = 2 * N * seen * C;
    const double weights = N * seen * (double)a->heads;
    const double values = (pass == TTN_FORWARD ? 4 : 8) * N * C + N * (double)a->heads;
    ttn_cost cost = {.bytes = values * (double)sizeof(real)};
    if (pass == TTN_FORWARD) {
        cost.done = 2 * product + 5 * weights; /* q k^T, p v; scale, maximum, difference, exp, sum */
        cost.useful = cost.done;
    } else {
        cost.useful = 4 * product + 4 * weights; /* g v^T, p^T g, e k, e^T q */
        cost.done = cost.useful + product + 3 * weights;
    }
    return cost;
}

static ttn_attn_tiles tiles_of(const ttn_call *c)
{
    const attributes *a = c->sig->attr;
    return (ttn_attn_tiles){.c = c,
                            .heads = a->heads,
                            .causal = a->causal != 0,
                            .longest = c->sig->in[Q].dim[0],
                            .rule = ttn_attn_exact_rule_of(c),
                            .lse = c->aux[0]};
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const ttn_attn_tiles t = tiles_of(c);
    ttn_attn_tiles_forward(&t); /* out may be q */
    ttn_zero_no_sequence(c, &c->sig->out[0], c->out[0]);
    ttn_zero_no_sequence(c, &c->sig->aux[0], c->aux[0]);
    return TTN_OK;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const ttn_attn_tiles t = tiles_of(c);
    ttn_attn_tiles_backward(&t); /* each of dq, dk and dv may be dout */
    for (int i = Q; i <= V; i++)
        if (c->din[i] && c->acc[i] == 0) ttn_zero_no_sequence(c, &c->sig->in[i], c->din[i]);
    return TTN_OK;
}

/* ---- as an attention kind ---- */

static const ttn_option_condition in_use[] = {{"attention.kind", .is = "exact"}, {0}};

static const ttn_option options[] = {
    {.name = "exact.scale",
     .type = TTN_OPTION_REAL,
     .fallback = "0",
     .least = 0,
     .most = 1000,
     .help = "factor of q k before the softmax; 0 stands for 1/sqrt(head width)",
     .since = "0.1",
     .when = in_use},
};

static ttn_status attr_of_options(const ttn_option_reader *o, int layer, void *attr, ttn_error *err)
{
    attributes *a = attr;
    *a = (attributes){0};
    return o->get_real(o->self, options[0].name, layer, &a->scale, err);
}

static int build(ttn_graph *g, const ttn_attn_in *in, const void *attr)
{
    attributes a = *(const attributes *)attr;
    a.heads = in->heads;
    a.causal = in->causal;
    a.dropout = in->dropout;
    return ttn_attn_exact(g, in->name, in->q, in->k, in->v, &a);
}

static ttn_status map_rows(const ttn_call *c, int64_t seq, int64_t head, int64_t n_row, const int64_t *row, real *map,
                           ttn_error *err)
{
    const ttn_attn_tiles t = tiles_of(c);
    ttn_span span;
    ttn_status status = ttn_map_span(c, "attn_exact", seq, head, t.heads, n_row, row, 0, &span, err);
    if (status == TTN_OK) ttn_attn_tiles_map_rows(&t, seq, head, n_row, row, map);
    return status;
}

static ttn_status map_pool(const ttn_call *c, int64_t seq, int64_t head, int64_t P, double *map, ttn_error *err)
{
    const ttn_attn_tiles t = tiles_of(c);
    ttn_span span;
    ttn_status status = ttn_map_span(c, "attn_exact", seq, head, t.heads, 0, NULL, P, &span, err);
    if (status == TTN_OK) status = ttn_attn_tiles_map_pool(&t, seq, head, P, map, err);
    return status;
}

static const ttn_attention attention = {
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .attr = attr_of_options,
    .build = build,
    .map_rows = map_rows,
    .map_pool = map_pool,
    .drops = 1,
};

/* ---- cases ---- */

#define THREE(...)                            \
    {                                         \
        __VA_ARGS__, __VA_ARGS__, __VA_ARGS__ \
    }

static const attributes one = {.heads = 1};
static const attributes two = {.heads = 2};
static const attributes two_causal = {.heads = 2, .causal = 1};
static const attributes three_scaled = {.heads = 3, .scale = 2.5};
static const attributes two_dropped = {.heads = 2, .dropout = 0.4};
static const attributes one_dropped_causal = {.heads = 1, .causal = 1, .scale = 0.7, .dropout = 0.25};
static const attributes none = {.heads = 0};
static const attributes four = {.heads = 4};
static const attributes negative = {.heads = 1, .scale = -1};
static const attributes infinite = {.heads = 1, .scale = INFINITY};
static const attributes all_dropped = {.heads = 1, .dropout = 1};
static const attributes dropped_nan = {.heads = 1, .dropout = NAN};

static const ttn_case cases[] = {
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &two},
    {.about = "the same, causal",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &two_causal},
    {.about = "three heads, sequences of 1, 24, 25 and 3 rows that touch, a scale",
     .used = {.rows = 60, .seqs = 4},
     .span = {{2, 1}, {3, 24}, {27, 25}, {55, 3}},
     .in = THREE(TTN_ROWS_OF(15)),
     .attr = &three_scaled},
    {.about = "one row, width 1",
     .used = {.rows = 1, .seqs = 1},
     .span = {{0, 1}},
     .in = THREE(TTN_ROWS_OF(1)),
     .attr = &one},
    {.about = "three tiles and a sequence of one",
     .used = {.rows = 480, .seqs = 2},
     .span = {{0, 1}, {12, 387}},
     .in = THREE(TTN_ROWS_OF(4)),
     .attr = &two},
    {.about = "three tiles, causal, a width that fills no vector",
     .used = {.rows = 400, .seqs = 2},
     .span = {{0, 387}, {390, 4}},
     .in = THREE(TTN_ROWS_OF(3)),
     .attr = &(const attributes){.heads = 1, .causal = 1}},
    {.about = "weights that are all but one or zero",
     .used = {.rows = 40, .seqs = 1},
     .span = {{0, 40}},
     .in = THREE(TTN_ROWS_OF(8)),
     .range = {{-2, 2}, {-2, 2}},
     .attr = &two},
    {.about = "dropout",
     .used = {.rows = 60, .seqs = 3},
     .span = {{0, 5}, {12, 30}, {42, 1}},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &two_dropped},
    {.about = "dropout, causal, two tiles",
     .used = {.rows = 240, .seqs = 1},
     .span = {{1, 197}},
     .in = THREE(TTN_ROWS_OF(2)),
     .attr = &one_dropped_causal},
    {.about = "no sequences: zeros", .used = {.rows = 7}, .in = THREE(TTN_ROWS_OF(3)), .attr = &one},
    {.about = "no rows", .cap = {.rows = 480, .seqs = 2}, .in = THREE(TTN_ROWS_OF(3)), .attr = &one},
    {.about = "v of another width",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_ROWS_OF(4), TTN_ROWS_OF(8)},
     .attr = &two,
     .refused = "v is " TTN_REAL_NAME " (N 480, 8), but q is " TTN_REAL_NAME " (N 480, 4); expected one shape"},
    {.about = "picks",
     .used = {.picks = 6},
     .in = THREE(TTN_PICKS_OF(4)),
     .attr = &two,
     .refused = "q is " TTN_REAL_NAME " (R 480, 4), expected rows of a batch, (N, H D)"},
    {.about = "heads as an axis",
     .used = {.rows = 6},
     .in = THREE({.axis = TTN_ROWS, .ndim = 3, .dim = {0, 2, 2}}),
     .attr = &two,
     .refused = "which has 3 dimensions; expected 2, (N, H D)"},
    {.about = "four heads in a width of 6",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &four,
     .refused = "a width of 6 cannot be divided among 4 heads"},
    {.about = "no heads", .used = {.rows = 6}, .in = THREE(TTN_ROWS_OF(6)), .attr = &none, .refused = "among 0 heads"},
    {.about = "width 0", .used = {.rows = 6}, .in = THREE(TTN_ROWS_OF(0)), .attr = &one, .refused = "a width of 0"},
    {.about = "a scale below 0",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &negative,
     .refused = "scale is -1, expected a number above 0, or 0 for 1/sqrt(6)"},
    {.about = "an infinite scale",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &infinite,
     .refused = "scale is inf"},
    {.about = "everything dropped",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &all_dropped,
     .refused = "dropout is 1, expected at least 0 and less than 1"},
    {.about = "dropout NaN",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(6)),
     .attr = &dropped_nan,
     .refused = "dropout is nan"},
};

const ttn_op ttn_op_attn_exact = {
    .name = "attn_exact",
    .n_in = 3,
    .n_out = 1,
    .differentiable = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V),
    .reads = {[Q] = {.in = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V), .out = TTN_BIT(0), .aux = TTN_BIT(0)},
              [K] = {.in = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V), .out = TTN_BIT(0), .aux = TTN_BIT(0)},
              [V] = {.in = TTN_BIT(Q) | TTN_BIT(K), .aux = TTN_BIT(0)}},
    .takes = {TTN_SHARES(Q)},
    .passes = {TTN_SHARES(0), TTN_SHARES(0), TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .attention = &attention,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_attn_exact(ttn_graph *g, const char *name, int q, int k, int v, const ttn_attn_exact_options *o)
{
    return ttn_apply(g, "attn_exact", name, o, (const int[]){q, k, v});
}
