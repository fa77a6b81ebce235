/* embedding:  y[t] = f E[token[t]].   token (N), u8, i32 or i64   E (V, C)   y (N, C)
 * dE[v] = sum over the rows t with token[t] = v of f dy[t], in double, in order of t
 *
 * f is 1, or with ESM's token dropout the factor of t's sequence, and 0 where token[t] is the mask:
 *
 *     f = (1 - share) / (1 - r),   r = masks of the sequence / its length
 *
 * share is what training masked, 0.15 0.8 = 0.12 in the published models; specials count in the length. (fair-esm,
 * model/esm2.py: embeddings of masks are zeros, and the scale makes up for how many there are.)
 *
 * Gradient: rows are sorted by token (counting, stable), and whoever owns some columns of a token's row adds its rows up:
 * no lanes and no atomics, the same sum for any number of threads, and a workspace that grows with N and V, not with
 * V C. Columns are shared too, because one residue in ten is leucine. */
#include <inttypes.h>
#include <string.h>
#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "autograd/ops/embedding.h"
#include "autograd/ops/places.h"

enum { TOKEN = 0, TABLE = 1 };

typedef ttn_token_dropout attributes;

/* A row's entry in the order of tokens. */
typedef struct {
    int64_t row;
    double factor;
} entry;

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    const ttn_desc *token = &s->in[TOKEN];
    char text[TTN_DESC_TEXT];
    const int is_id = token->type == TTN_U8 || token->type == TTN_I32 || token->type == TTN_I64;
    if (!is_id || token->ndim != 1 || token->axis != TTN_ROWS)
        return TTN_FAIL(err, TTN_EINVAL, "embedding: tokens are %s, expected u8, i32 or i64 of one dimension, (N)",
                        ttn_desc_print(token, text));
    ttn_status status = ttn_want_shape(s, TABLE, "embedding", "table", "(V, C)", err);
    if (status != TTN_OK) return status;
    const ttn_desc *table = &s->in[TABLE];
    if (table->axis != TTN_FIXED || table->dim[0] < 1 || table->dim[1] < 1)
        return TTN_FAIL(err, TTN_EINVAL, "embedding: table is %s, expected (V, C) with both at least 1",
                        ttn_desc_print(table, text));
    const attributes *a = s->attr;
    const int64_t V = table->dim[0];
    if (a->mask < -1 || a->mask >= V)
        return TTN_FAIL(err, TTN_EINVAL,
                        "embedding: the mask of token dropout is token %" PRId64
                        ", expected -1 (no token dropout) or a token, 0 to %" PRId64,
                        a->mask, V - 1);
    if (a->mask >= 0 && !(a->share >= 0 && a->share < 1))
        return TTN_FAIL(err, TTN_EINVAL,
                        "embedding: the share of masks in token dropout is %g, expected a number from 0 to below 1",
                        a->share);
    s->n_out = 1;
    s->out[0] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, token->dim[0], table->dim[1], 0);
    const size_t factors = (size_t)ttn_stretch_most_seqs(s->cap.seqs) * sizeof(double);
    s->work[TTN_FORWARD] = factors;
    s->work[TTN_BACKWARD] = factors + (size_t)token->dim[0] * sizeof(entry) + (size_t)(V + 1) * sizeof(int64_t);
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->out[0]);
    const double table = (double)ttn_desc_numel(&s->in[TABLE]);
    const double ids = (double)ttn_desc_bytes(&s->in[TOKEN]);
    const double flops = ((const attributes *)s->attr)->mask >= 0 ? n : 0;
    if (pass == TTN_FORWARD)
        return (ttn_cost){.done = flops, .useful = flops, .bytes = 2 * n * (double)sizeof(real) + ids};
    return (ttn_cost){.done = flops + n, .useful = flops + n, .bytes = (n + table) * (double)sizeof(real) + ids};
}

/* ---- tokens ---- */

static int64_t token_at(const ttn_call *c, int64_t row)
{
    return ttn_id_at(c->sig->in[TOKEN].type, c->in[TOKEN], row);
}

static ttn_status fault(const ttn_call *c, int kind, int64_t at, ttn_error *err)
{
    if (kind == TTN_EMBEDDING_MASKS) {
        const ttn_span s = ttn_stretch_span(c->feed, at);
        return TTN_FAIL(err, TTN_EINVAL,
                        "embedding: sequence %" PRId64 " (rows %" PRId64 " to %" PRId64
                        ") is nothing but masks (token %" PRId64 "): its factor of token dropout would be 1 / 0",
                        at, s.first, s.first + s.n - 1, ((const attributes *)c->sig->attr)->mask);
    }
    const int64_t V = c->sig->in[TABLE].dim[0];
    return TTN_FAIL(err, TTN_EINVAL,
                    "embedding: row %" PRId64 " (sequence %" PRId64 ") has token %" PRId64
                    ", but the vocabulary has %" PRId64 ": 0 to %" PRId64,
                    at, ttn_stretch_at(c->feed, at, at + 1).seq, token_at(c, at), V, V - 1);
}

static ttn_status check_tokens(const ttn_call *c, ttn_error *err)
{
    const int64_t V = c->sig->in[TABLE].dim[0];
    for (int64_t s = 0; s < ttn_stretch_seqs(c->feed); s++) {
        const ttn_span span = ttn_stretch_span(c->feed, s);
        for (int64_t t = span.first; t < span.first + span.n; t++) {
            const int64_t token = token_at(c, t);
            if (token < 0 || token >= V) return fault(c, TTN_EMBEDDING_TOKEN, t, err);
        }
    }
    return TTN_OK;
}

/* factor[s]: what the rows of sequence s are multiplied by. Returns the first sequence that is nothing but masks, -1 when
 * there is none; no row of such a sequence is multiplied. */
static int64_t make_factors(const ttn_call *c, double *factor)
{
    const attributes *a = c->sig->attr;
    int64_t masks_only = -1;
    for (int64_t s = 0; s < ttn_stretch_seqs(c->feed); s++) {
        factor[s] = 1;
        if (a->mask < 0) continue;
        const ttn_span span = ttn_stretch_span(c->feed, s);
        int64_t masks = 0;
        for (int64_t t = span.first; t < span.first + span.n; t++)
            masks += token_at(c, t) == a->mask;
        if (masks < span.n)
            factor[s] = ttn_embedding_factor(a->share, masks, span.n);
        else if (span.n > 0 && masks_only < 0)
            masks_only = s;
    }
    return masks_only;
}

/* ---- forward ---- */

enum { BLOCK_ROWS = 16 };

static void forward_rows(const ttn_call *c, const double *factor, int64_t first, int64_t end)
{
    const int64_t C = c->sig->in[TABLE].dim[1];
    const int64_t mask = ((const attributes *)c->sig->attr)->mask;
    const size_t bytes = (size_t)C * sizeof(real);
    for (int64_t t = first; t < end;) {
        const ttn_stretch s = ttn_stretch_at(c->feed, t, end);
        const real f = s.seq < 0 ? 0 : (real)factor[s.seq];
        for (const int64_t stop = t + s.n; t < stop; t++) {
            real *y = (real *)c->out[0] + t * C;
            const int64_t token = s.seq < 0 ? -1 : token_at(c, t);
            if (s.seq < 0 || token == mask) {
                memset(y, 0, bytes);
                continue;
            }
            const real *e = (const real *)c->in[TABLE] + token * C;
            if (mask < 0) {
                memcpy(y, e, bytes);
                continue;
            }
#pragma omp simd
            for (int64_t i = 0; i < C; i++)
                y[i] = f * e[i];
        }
    }
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    double *factor = c->work;
    ttn_status status = check_tokens(c, err);
    if (status != TTN_OK) return status;
    const int64_t masks_only = make_factors(c, factor);
    if (masks_only >= 0) return fault(c, TTN_EMBEDDING_MASKS, masks_only, err);
    const int64_t used = c->feed->used.rows;
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t first = 0; first < used; first += BLOCK_ROWS)
        forward_rows(c, factor, first, first + BLOCK_ROWS < used ? first + BLOCK_ROWS : used);
    ttn_zero_rest(c, &c->sig->out[0], c->out[0]);
    return TTN_OK;
}

/* ---- backward ---- */

/* Rows by token: those of token v are order[begin[v]] … order[begin[v + 1] - 1], ascending. Rows whose factor is 0 are
 * left out. */
static void sort_rows(const ttn_call *c, const double *factor, entry *order, int64_t *begin)
{
    const int64_t V = c->sig->in[TABLE].dim[0];
    const int64_t mask = ((const attributes *)c->sig->attr)->mask;
    const int64_t seqs = ttn_stretch_seqs(c->feed);
    memset(begin, 0, (size_t)(V + 1) * sizeof *begin);
    for (int64_t s = 0; s < seqs; s++) {
        const ttn_span span = ttn_stretch_span(c->feed, s);
        for (int64_t t = span.first; t < span.first + span.n; t++)
            if (token_at(c, t) != mask) begin[token_at(c, t)]++;
    }
    int64_t before = 0;
    for (int64_t v = 0; v <= V; v++) {
        const int64_t here = begin[v];
        begin[v] = before;
        before += here;
    }
    for (int64_t s = 0; s < seqs; s++) {
        const ttn_span span = ttn_stretch_span(c->feed, s);
        for (int64_t t = span.first; t < span.first + span.n; t++)
            if (token_at(c, t) != mask) order[begin[token_at(c, t)]++] = (entry){.row = t, .factor = factor[s]};
    }
    /* each is now where the next one begins */
    memmove(begin + 1, begin, (size_t)V * sizeof *begin);
    begin[0] = 0;
}

enum { BLOCK_COLUMNS = 128, LINE = 64 / sizeof(real), AHEAD = 4 };

/* Columns first … first + n - 1 of dE[v]. */
static void add_rows(const ttn_call *c, const entry *order, const int64_t *begin, int64_t v, int64_t first, int n)
{
    const int64_t C = c->sig->in[TABLE].dim[1];
    double sum[BLOCK_COLUMNS] = {0};
    for (int64_t k = begin[v]; k < begin[v + 1]; k++) {
        const real *dy = (const real *)c->dout[0] + order[k].row * C + first;
        const double f = order[k].factor;
        if (k + AHEAD < begin[v + 1]) /* rows of a token lie far apart: 0.2 of memcpy's rate became 0.7 */
            for (int i = 0; i < n; i += LINE)
                __builtin_prefetch((const real *)c->dout[0] + order[k + AHEAD].row * C + first + i);
#pragma omp simd
        for (int i = 0; i < n; i++)
            sum[i] += f * (double)dy[i];
    }
    const real acc = c->acc[TABLE];
    real *dtable = (real *)c->din[TABLE] + v * C + first;
    for (int i = 0; i < n; i++)
        dtable[i] = ttn_accumulate(acc, dtable[i], (real)sum[i]);
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (!c->din[TABLE]) return TTN_OK;
    const int64_t V = c->sig->in[TABLE].dim[0];
    const int64_t C = c->sig->in[TABLE].dim[1];
    double *factor = c->work;
    entry *order = (entry *)(factor + ttn_stretch_most_seqs(c->sig->cap.seqs));
    int64_t *begin = (int64_t *)(order + c->sig->in[TOKEN].dim[0]);
    (void)make_factors(c, factor);
    sort_rows(c, factor, order, begin);
    const int64_t blocks = (C + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
    /* Tasks a thread takes: balance where V is small, few handovers else. NOLINTNEXTLINE: the schedule reads it */
    const int64_t at_once = 1 + V * blocks / 4096;
#pragma omp parallel for num_threads(c->on->n_thread) schedule(dynamic, at_once)
    for (int64_t task = 0; task < V * blocks; task++) {
        const int64_t first = task % blocks * BLOCK_COLUMNS;
        const int64_t n = C - first < BLOCK_COLUMNS ? C - first : BLOCK_COLUMNS;
        add_rows(c, order, begin, task / blocks, first, (int)n);
    }
    return TTN_OK;
}

/* ---- cases ---- */

static const attributes plain = {.mask = -1};
static const attributes esm = {.mask = 4, .share = 0.12};
static const attributes first_is_mask = {.mask = 0, .share = 0};
static const attributes no_token = {.mask = 5, .share = 0.12};
static const attributes below = {.mask = -2};
static const attributes all_masked = {.mask = 4, .share = 1};

#define TOKENS(t)                                 \
    {                                             \
        .type = (t), .axis = TTN_ROWS, .ndim = 1, \
    }

static const ttn_case cases[] = {
    {.about = "bytes",
     .used = {.rows = 9},
     .in = {TOKENS(TTN_U8), TTN_MATRIX(5, 3)},
     .attr = &plain,
     .range = {{0, 4}}},
    {.about = "i32, two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TOKENS(TTN_I32), TTN_MATRIX(6, 4)},
     .attr = &plain,
     .range = {{0, 5}}},
    {.about = "i64, one row, width 1",
     .used = {.rows = 1},
     .in = {TOKENS(TTN_I64), TTN_MATRIX(3, 1)},
     .attr = &plain,
     .range = {{1, 1}}},
    {.about = "token dropout, two sequences",
     .used = {.rows = 48, .seqs = 2},
     .span = {{0, 13}, {24, 20}},
     .in = {TOKENS(TTN_U8), TTN_MATRIX(5, 3)},
     .attr = &esm,
     .range = {{0, 4}}},
    {.about = "token dropout without sequences",
     .used = {.rows = 21},
     .in = {TOKENS(TTN_I32), TTN_MATRIX(5, 2)},
     .attr = &esm,
     .range = {{0, 4}}},
    {.about = "token dropout without a mask in sight",
     .used = {.rows = 12, .seqs = 1},
     .span = {{3, 9}},
     .in = {TOKENS(TTN_I64), TTN_MATRIX(5, 2)},
     .attr = &first_is_mask,
     .range = {{1, 4}}},
    {.about = "more than a block of columns, a vocabulary most of which is not there",
     .used = {.rows = 31},
     .in = {TOKENS(TTN_I32), TTN_MATRIX(300, 131)},
     .attr = &plain,
     .range = {{100, 299}}},
    {.about = "several tiles",
     .used = {.rows = 1000, .seqs = 3},
     .cap = {.rows = 1440, .seqs = 5},
     .span = {{0, 400}, {408, 1}, {420, 571}},
     .in = {TOKENS(TTN_U8), TTN_MATRIX(33, 5)},
     .attr = &esm,
     .range = {{0, 32}}},
    {.about = "every row of the capacity",
     .used = {.rows = 480},
     .in = {TOKENS(TTN_U8), TTN_MATRIX(256, 2)},
     .attr = &plain,
     .range = {{0, 255}}},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TOKENS(TTN_U8), TTN_MATRIX(5, 3)}, .attr = &esm},
    {.about = "a token past the vocabulary",
     .used = {.rows = 9},
     .in = {TOKENS(TTN_U8), TTN_MATRIX(5, 3)},
     .attr = &plain,
     .range = {{5, 5}},
     .fails = "row 0 (sequence 0) has token 5, but the vocabulary has 5: 0 to 4"},
    {.about = "a negative token",
     .used = {.rows = 24, .seqs = 2},
     .span = {{3, 5}, {12, 7}},
     .in = {TOKENS(TTN_I32), TTN_MATRIX(5, 3)},
     .attr = &plain,
     .range = {{-1, -1}},
     .fails = "row 3 (sequence 0) has token -1, but the vocabulary has 5: 0 to 4"},
    {.about = "nothing but masks",
     .used = {.rows = 24, .seqs = 2},
     .span = {{3, 5}, {12, 7}},
     .in = {TOKENS(TTN_I64), TTN_MATRIX(5, 3)},
     .attr = &esm,
     .range = {{4, 4}},
     .fails = "sequence 0 (rows 3 to 7) is nothing but masks (token 4)"},
    {.about = "tokens that are reals",
     .used = {.rows = 9},
     .in = {{.axis = TTN_ROWS, .ndim = 1}, TTN_MATRIX(5, 3)},
     .attr = &plain,
     .refused = "tokens are " TTN_REAL_NAME " (N 480), expected u8, i32 or i64 of one dimension, (N)"},
    {.about = "tokens of two dimensions",
     .used = {.rows = 9},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 1}}, TTN_MATRIX(5, 3)},
     .attr = &plain,
     .refused = "tokens are u8 (N 480, 1), expected u8, i32 or i64 of one dimension, (N)"},
    {.about = "tokens of no rows",
     .used = {.rows = 9},
     .in = {{.type = TTN_U8, .ndim = 1, .dim = {9}}, TTN_MATRIX(5, 3)},
     .attr = &plain,
     .refused = "tokens are u8 (9), expected u8, i32 or i64 of one dimension, (N)"},
    {.about = "a table of one dimension",
     .used = {.rows = 9},
     .in = {TOKENS(TTN_U8), TTN_VECTOR(5)},
     .attr = &plain,
     .refused = "table is " TTN_REAL_NAME " (5), which has 1 dimensions; expected 2, (V, C)"},
    {.about = "a table of rows",
     .used = {.rows = 9},
     .in = {TOKENS(TTN_U8), TTN_ROWS_OF(3)},
     .attr = &plain,
     .refused = "table is " TTN_REAL_NAME " (N 480, 3), expected (V, C) with both at least 1"},
    {.about = "an empty vocabulary",
     .used = {.rows = 9},
     .in = {TOKENS(TTN_U8), TTN_MATRIX(0, 3)},
     .attr = &plain,
     .refused = "table is " TTN_REAL_NAME " (0, 3), expected (V, C) with both at least 1"},
    {.about = "a mask past the vocabulary",
     .used = {.rows = 9},
     .in = {TOKENS(TTN_U8), TTN_MATRIX(5, 3)},
     .attr = &no_token,
     .refused = "is token 5, expected -1 (no token dropout) or a token, 0 to 4"},
    {.about = "a mask below -1",
     .used = {.rows = 9},
     .in = {TOKENS(TTN_U8), TTN_MATRIX(5, 3)},
     .attr = &below,
     .refused = "is token -2, expected -1"},
    {.about = "a share of 1",
     .used = {.rows = 9},
     .in = {TOKENS(TTN_U8), TTN_MATRIX(5, 3)},
     .attr = &all_masked,
     .refused = "the share of masks in token dropout is 1, expected a number from 0 to below 1"},
};

const ttn_op ttn_op_embedding = {
    .name = "embedding",
    .n_in = 2,
    .n_out = 1,
    .differentiable = TTN_BIT(TABLE),
    .reads = {[TABLE] = {.in = TTN_BIT(TOKEN)}},
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .fault = fault,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_embedding(ttn_graph *g, const char *name, int tokens, int table, const ttn_token_dropout *dropout)
{
    const attributes a = dropout ? *dropout : plain;
    return ttn_apply(g, "embedding", name, &a, (const int[]){tokens, table});
}
