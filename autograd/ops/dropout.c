/* dropout:  y = m x / (1 - p),  m = 0 with probability p, else 1.   x, y (N, C) or (S, C)   dx = m dy / (1 - p)
 *
 * Inverted: nothing is left to do in runs that do not train, where y = x. The mask is made again in backward and stored
 * nowhere (autograd/ops/dropout.h). Rows of no sequence: zeros. */
#include "autograd/ops/dropout_rows.h"
#include "autograd/ops.h"

typedef ttn_dropout_attributes attributes;

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_dropout_check(s, 0, "dropout", "x", err);
    if (status != TTN_OK) return status;
    s->n_out = 1;
    s->out[0] = s->in[0];
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)pass;
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->out[0]);
    return (ttn_cost){.done = n, .useful = n, .bytes = 2 * n * (double)sizeof(real)};
}

/* to = acc to + m x scale, in the n channels of a chunk; `to` may be x. */
static inline void drop_chunk(int n, const uint32_t *word, const ttn_dropout_rule *rule, const real *x, real *to,
                              real acc)
{
    const uint32_t least = rule->least;
    const real scale = rule->scale;
#pragma omp simd
    for (int i = 0; i < n; i++) {
        to[i] = ttn_accumulate(acc, to[i], ttn_dropout_value(word[i], least, scale, x[i]));
    }
}

static void drop_row(const ttn_dropout_rule *rule, uint64_t sample, int64_t position, int64_t C, const real *x,
                     real *to, real acc)
{
    uint32_t word[TTN_DROPOUT_CHUNK];
    for (int64_t first = 0; first < C; first += TTN_DROPOUT_CHUNK) {
        const int n = (int)(C - first < TTN_DROPOUT_CHUNK ? C - first : TTN_DROPOUT_CHUNK);
        ttn_dropout_fetch(n, x + first);
        if (to != x) ttn_dropout_fetch(n, to + first);
        ttn_dropout_words(rule, sample, position, first, n, word);
        if (acc == 0)
            drop_chunk(n, word, rule, x + first, to + first, 0);
        else
            drop_chunk(n, word, rule, x + first, to + first, 1);
    }
}

static void pass_rows(int64_t n, const real *x, real *to, real acc)
{
    if (acc == 0) {
        if (to != x) memcpy(to, x, (size_t)n * sizeof *to);
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        to[i] += x[i];
}

enum { BLOCK_ROWS = 16 };

/* Rows first … end - 1 of forward (from x to y) or backward (from dy to dx). */
static void drop_rows(const ttn_call *c, const ttn_dropout_rule *rule, const real *from, real *to, real acc,
                      int64_t first, int64_t end)
{
    const int64_t C = c->sig->in[0].dim[1];
    for (int64_t t = first; t < end;) {
        const ttn_stretch s = ttn_dropout_stretch(c, c->sig->in[0].axis, t, end);
        if (s.seq < 0) {
            if (acc == 0) memset(to + t * C, 0, (size_t)(s.n * C) * sizeof *to);
        } else if (!rule->drops) {
            pass_rows(s.n * C, from + t * C, to + t * C, acc);
        } else {
            for (int64_t i = 0; i < s.n; i++)
                drop_row(rule, ttn_dropout_sample(c, s.seq), s.position + i, C, from + (t + i) * C, to + (t + i) * C,
                         acc);
        }
        t += s.n;
    }
}

static void drop(const ttn_call *c, const real *from, real *to, real acc)
{
    const ttn_dropout_rule rule = ttn_dropout_rule_of(c);
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t first = 0; first < used; first += BLOCK_ROWS)
        drop_rows(c, &rule, from, to, acc, first, first + BLOCK_ROWS < used ? first + BLOCK_ROWS : used);
    if (acc == 0) ttn_zero_rest(c, &c->sig->out[0], to);
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    drop(c, c->in[0], c->out[0], 0);
    return TTN_OK;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (c->din[0]) drop(c, c->dout[0], c->din[0], c->acc[0]);
    return TTN_OK;
}

/* ---- cases ---- */

static const attributes third = {.p = 0.3};
static const attributes none = {.p = 0};
static const attributes nearly_all = {.p = 0.999};
static const attributes all = {.p = 1};
static const attributes negative = {.p = -0.1};

static const ttn_case cases[] = {
    {.about = "without sequences", .used = {.rows = 7}, .in = {TTN_ROWS_OF(5)}, .attr = &third},
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(6)},
     .attr = &third},
    {.about = "more than a chunk", .used = {.rows = 3}, .in = {TTN_ROWS_OF(301)}, .attr = &third},
    {.about = "one row, width 1", .used = {.rows = 1}, .in = {TTN_ROWS_OF(1)}, .attr = &third},
    {.about = "p 0", .used = {.rows = 7}, .in = {TTN_ROWS_OF(5)}, .attr = &none},
    {.about = "p 0.999", .used = {.rows = 7}, .in = {TTN_ROWS_OF(64)}, .attr = &nearly_all},
    {.about = "several tiles",
     .used = {.rows = 531, .seqs = 3},
     .cap = {.rows = 960, .seqs = 4},
     .span = {{0, 240}, {252, 1}, {360, 171}},
     .in = {TTN_ROWS_OF(4)},
     .attr = &third},
    {.about = "one row a sequence",
     .used = {.rows = 24, .seqs = 2},
     .cap = {.rows = 480, .seqs = 5},
     .span = {{0, 5}, {12, 7}},
     .in = {{.axis = TTN_SEQS, .ndim = 2, .dim = {0, 9}}},
     .attr = &third},
    {.about = "every row of the capacity", .used = {.rows = 480}, .in = {TTN_ROWS_OF(2)}, .attr = &third},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4)}, .attr = &third},
    {.about = "x of one dimension",
     .used = {.rows = 7},
     .in = {{.axis = TTN_ROWS, .ndim = 1}},
     .attr = &third,
     .refused = "x is " TTN_REAL_NAME " (N 480), which has 1 dimensions; expected 2, (N, C)"},
    {.about = "x of integers",
     .used = {.rows = 7},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 3}}},
     .attr = &third,
     .refused = "x is u8 (N 480, 3), expected " TTN_REAL_NAME " numbers"},
    {.about = "picks, which have no positions",
     .used = {.picks = 7},
     .in = {TTN_PICKS_OF(3)},
     .attr = &third,
     .refused = "x is " TTN_REAL_NAME " (R 480, 3), expected rows (N, C) or sequences (S, C)"},
    {.about = "p 1",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3)},
     .attr = &all,
     .refused = "p is 1, expected a number from 0 to below 1"},
    {.about = "a negative p",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3)},
     .attr = &negative,
     .refused = "p is -0.1, expected a number from 0 to below 1"},
};

const ttn_op ttn_op_dropout = {
    .name = "dropout",
    .n_in = 1,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .takes = {TTN_SHARES(0)},
    .passes = {TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_dropout(ttn_graph *g, const char *name, int x, double p)
{
    const attributes a = {.p = p};
    return ttn_apply(g, "dropout", name, &a, (const int[]){x});
}
