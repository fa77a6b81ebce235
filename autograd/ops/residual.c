/* residual:  y = a + m b / (1 - p),  m = 0 with probability p, else 1.   a, b, y (N, C) or (S, C)
 * da = dy     db = m dy / (1 - p)
 *
 * A block's output dropped and added to what went into it, in one pass: three values moved where dropout and add move
 * five. The mask is that of dropout (autograd/ops/dropout.h), made again in backward. In runs that do not train, or with p
 * 0, y = a + b. Rows of no sequence: zeros. */
#include <math.h>
#include "autograd/ops/dropout_rows.h"
#include "autograd/ops.h"

enum { A = 0, B = 1 };

typedef ttn_dropout_attributes attributes;

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_dropout_check(s, A, "residual", "a", err);
    if (status == TTN_OK) status = ttn_want_real(s, B, "residual", "b", err);
    if (status != TTN_OK) return status;
    if (!ttn_desc_same(&s->in[A], &s->in[B])) {
        char a[TTN_DESC_TEXT];
        char b[TTN_DESC_TEXT];
        return TTN_FAIL(err, TTN_EINVAL, "residual: a is %s and b is %s, expected the same shape",
                        ttn_desc_print(&s->in[A], a), ttn_desc_print(&s->in[B], b));
    }
    s->n_out = 1;
    s->out[0] = s->in[A];
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->out[0]);
    const double flops = pass == TTN_FORWARD ? 2 * n : n;
    const double values = pass == TTN_FORWARD ? 3 : 4;
    return (ttn_cost){.done = flops, .useful = flops, .bytes = values * n * (double)sizeof(real)};
}

enum { BLOCK_ROWS = 16 };

/* ---- forward ---- */

static void add_plain(int64_t n, const real *a, const real *b, real *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void add_row(const ttn_dropout_rule *rule, uint64_t sample, int64_t position, int64_t C, const real *a,
                    const real *b, real *y)
{
    uint32_t word[TTN_DROPOUT_CHUNK];
    const uint32_t least = rule->least;
    const real scale = rule->scale;
    for (int64_t first = 0; first < C; first += TTN_DROPOUT_CHUNK) {
        const int n = (int)(C - first < TTN_DROPOUT_CHUNK ? C - first : TTN_DROPOUT_CHUNK);
        ttn_dropout_fetch(n, a + first);
        ttn_dropout_fetch(n, b + first);
        if (y != a) ttn_dropout_fetch(n, y + first);
        ttn_dropout_words(rule, sample, position, first, n, word);
#pragma omp simd
        for (int i = 0; i < n; i++)
            y[first + i] = a[first + i] + ttn_dropout_value(word[i], least, scale, b[first + i]);
    }
}

static void forward_rows(const ttn_call *c, const ttn_dropout_rule *rule, int64_t first, int64_t end)
{
    const int64_t C = c->sig->out[0].dim[1];
    for (int64_t t = first; t < end;) {
        const ttn_stretch s = ttn_dropout_stretch(c, c->sig->out[0].axis, t, end);
        const real *a = (const real *)c->in[A] + t * C;
        const real *b = (const real *)c->in[B] + t * C;
        real *y = (real *)c->out[0] + t * C; /* may be a */
        if (s.seq < 0) {
            memset(y, 0, (size_t)(s.n * C) * sizeof *y);
        } else if (!rule->drops) {
            add_plain(s.n * C, a, b, y);
        } else {
            for (int64_t i = 0; i < s.n; i++)
                add_row(rule, ttn_dropout_sample(c, s.seq), s.position + i, C, a + i * C, b + i * C, y + i * C);
        }
        t += s.n;
    }
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const ttn_dropout_rule rule = ttn_dropout_rule_of(c);
    const int64_t used = ttn_used(c->feed, &c->sig->out[0]);
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t first = 0; first < used; first += BLOCK_ROWS)
        forward_rows(c, &rule, first, first + BLOCK_ROWS < used ? first + BLOCK_ROWS : used);
    ttn_zero_rest(c, &c->sig->out[0], c->out[0]);
    return TTN_OK;
}

/* ---- backward ----
 *
 * Chunk by chunk: dy is read, da and then db written, so that a and b may be one value with one buffer, and da may be
 * dy's. */

static void give_chunk(int n, const uint32_t *word, const ttn_dropout_rule *rule, const ttn_call *c, int64_t at)
{
    const uint32_t least = rule->least;
    const real scale = rule->scale;
    const real *dy = (const real *)c->dout[0] + at;
    real copy[TTN_DROPOUT_CHUNK]; /* da may be written over it */
    for (int i = 0; i < n; i++)
        copy[i] = dy[i];
    if (c->din[A]) {
        real *da = (real *)c->din[A] + at;
        const real acc = c->acc[A];
#pragma omp simd
        for (int i = 0; i < n; i++)
            da[i] = ttn_accumulate(acc, da[i], copy[i]);
    }
    if (c->din[B]) {
        real *db = (real *)c->din[B] + at;
        const real acc = c->acc[B];
        if (rule->drops) {
#pragma omp simd
            for (int i = 0; i < n; i++)
                db[i] = ttn_accumulate(acc, db[i], ttn_dropout_value(word[i], least, scale, copy[i]));
        } else {
#pragma omp simd
            for (int i = 0; i < n; i++)
                db[i] = ttn_accumulate(acc, db[i], copy[i]);
        }
    }
}

static void give_row(const ttn_call *c, const ttn_dropout_rule *rule, uint64_t sample, int64_t position, int64_t row)
{
    const int64_t C = c->sig->out[0].dim[1];
    uint32_t word[TTN_DROPOUT_CHUNK];
    for (int64_t first = 0; first < C; first += TTN_DROPOUT_CHUNK) {
        const int n = (int)(C - first < TTN_DROPOUT_CHUNK ? C - first : TTN_DROPOUT_CHUNK);
        const int64_t at = row * C + first;
        for (int k = A; k <= B && rule->drops; k++)
            if (c->din[k]) ttn_dropout_fetch(n, (const real *)c->din[k] + at);
        if (rule->drops) ttn_dropout_fetch(n, (const real *)c->dout[0] + at);
        if (rule->drops && c->din[B]) ttn_dropout_words(rule, sample, position, first, n, word);
        give_chunk(n, word, rule, c, at);
    }
}

static void backward_rows(const ttn_call *c, const ttn_dropout_rule *rule, int64_t first, int64_t end)
{
    const int64_t C = c->sig->out[0].dim[1];
    for (int64_t t = first; t < end;) {
        const ttn_stretch s = ttn_dropout_stretch(c, c->sig->out[0].axis, t, end);
        for (int k = A; k <= B && s.seq < 0; k++)
            if (c->din[k] && c->acc[k] == 0) memset((real *)c->din[k] + t * C, 0, (size_t)(s.n * C) * sizeof(real));
        for (int64_t i = 0; i < s.n && s.seq >= 0; i++)
            give_row(c, rule, ttn_dropout_sample(c, s.seq), s.position + i, t + i);
        t += s.n;
    }
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (!c->din[A] && !c->din[B]) return TTN_OK;
    const ttn_dropout_rule rule = ttn_dropout_rule_of(c);
    const int64_t used = ttn_used(c->feed, &c->sig->out[0]);
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t first = 0; first < used; first += BLOCK_ROWS)
        backward_rows(c, &rule, first, first + BLOCK_ROWS < used ? first + BLOCK_ROWS : used);
    for (int k = A; k <= B; k++)
        if (c->din[k] && c->acc[k] == 0) ttn_zero_rest(c, &c->sig->out[0], c->din[k]);
    return TTN_OK;
}

/* ---- cases ---- */

static const attributes third = {.p = 0.3};
static const attributes none = {.p = 0};
static const attributes all = {.p = 1};
static const attributes not_a_number = {.p = NAN};

static const ttn_case cases[] = {
    {.about = "without sequences", .used = {.rows = 7}, .in = {TTN_ROWS_OF(5), TTN_ROWS_OF(5)}, .attr = &third},
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(6), TTN_ROWS_OF(6)},
     .attr = &third},
    {.about = "p 0: add",
     .used = {.rows = 24, .seqs = 2},
     .span = {{2, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(6), TTN_ROWS_OF(6)},
     .attr = &none},
    {.about = "more than a chunk", .used = {.rows = 3}, .in = {TTN_ROWS_OF(301), TTN_ROWS_OF(301)}, .attr = &third},
    {.about = "one row, width 1", .used = {.rows = 1}, .in = {TTN_ROWS_OF(1), TTN_ROWS_OF(1)}, .attr = &third},
    {.about = "several tiles",
     .used = {.rows = 531, .seqs = 3},
     .cap = {.rows = 960, .seqs = 4},
     .span = {{0, 240}, {252, 1}, {360, 171}},
     .in = {TTN_ROWS_OF(4), TTN_ROWS_OF(4)},
     .attr = &third},
    {.about = "one row a sequence",
     .used = {.rows = 24, .seqs = 2},
     .cap = {.rows = 480, .seqs = 5},
     .span = {{0, 5}, {12, 7}},
     .in = {{.axis = TTN_SEQS, .ndim = 2, .dim = {0, 9}}, {.axis = TTN_SEQS, .ndim = 2, .dim = {0, 9}}},
     .attr = &third},
    {.about = "every row of the capacity",
     .used = {.rows = 480},
     .in = {TTN_ROWS_OF(2), TTN_ROWS_OF(2)},
     .attr = &third},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4), TTN_ROWS_OF(4)}, .attr = &third},
    {.about = "a of one dimension",
     .used = {.rows = 7},
     .in = {{.axis = TTN_ROWS, .ndim = 1}, TTN_ROWS_OF(3)},
     .attr = &third,
     .refused = "a is " TTN_REAL_NAME " (N 480), which has 1 dimensions; expected 2, (N, C)"},
    {.about = "widths that differ",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), TTN_ROWS_OF(6)},
     .attr = &third,
     .refused = "a is " TTN_REAL_NAME " (N 480, 5) and b is " TTN_REAL_NAME " (N 480, 6), expected the same shape"},
    {.about = "b of integers",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), {.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 5}}},
     .attr = &third,
     .refused = "b is u8 (N 480, 5), expected " TTN_REAL_NAME " numbers"},
    {.about = "picks, which have no positions",
     .used = {.picks = 7},
     .in = {TTN_PICKS_OF(3), TTN_PICKS_OF(3)},
     .attr = &third,
     .refused = "a is " TTN_REAL_NAME " (R 480, 3), expected rows (N, C) or sequences (S, C)"},
    {.about = "p 1",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3), TTN_ROWS_OF(3)},
     .attr = &all,
     .refused = "p is 1, expected a number from 0 to below 1"},
    {.about = "p NaN",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3), TTN_ROWS_OF(3)},
     .attr = &not_a_number,
     .refused = "p is nan, expected a number from 0 to below 1"},
};

const ttn_op ttn_op_residual = {
    .name = "residual",
    .n_in = 2,
    .n_out = 1,
    .differentiable = TTN_BIT(A) | TTN_BIT(B),
    .takes = {TTN_SHARES(A)},
    .passes = {TTN_SHARES(0), TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_residual(ttn_graph *g, const char *name, int a, int b, double p)
{
    const attributes t = {.p = p};
    return ttn_apply(g, "residual", name, &t, (const int[]){a, b});
}
