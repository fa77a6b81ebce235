/* positions:  y[t] = x[t] + P[p],   p = t's position in its sequence + offset.   x, y (N, C)   P (L, C)
 * dx = dy     dP[p] = sum over sequences of dy at their row of position p, in double, in the order of the sequences
 *
 * Learned positions: offset 0 in BERT, 2 in ESM-1b and Nystromformer checkpoints. Rows of no sequence: zeros.
 * Gradient: whoever owns some rows of P looks through the sequences for theirs, so that no sum is made by two. */
#include <inttypes.h>
#include <string.h>
#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "autograd/ops/places.h"
#include "autograd/ops/positions.h"

enum { TABLE = 1 };

typedef ttn_positions_attributes attributes;

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_shape(s, 0, "positions", "x", "(N, C)", err);
    if (status == TTN_OK) status = ttn_want_shape(s, TABLE, "positions", "table", "(L, C)", err);
    if (status != TTN_OK) return status;
    char text[TTN_DESC_TEXT];
    if (s->in[0].axis != TTN_ROWS)
        return TTN_FAIL(err, TTN_EINVAL, "positions: x is %s, expected rows of sequences, (N, C)",
                        ttn_desc_print(&s->in[0], text));
    const int64_t C = s->in[0].dim[1];
    const ttn_desc *table = &s->in[TABLE];
    if (C < 1 || table->axis != TTN_FIXED || table->dim[0] < 1 || table->dim[1] != C)
        return TTN_FAIL(err, TTN_EINVAL,
                        "positions: table is %s, but x has width %" PRId64 "; expected (L, %" PRId64
                        "), both at least 1",
                        ttn_desc_print(table, text), C, C);
    const int64_t offset = ((const attributes *)s->attr)->offset;
    if (offset < 0 || offset >= table->dim[0])
        return TTN_FAIL(err, TTN_EINVAL, "positions: offset is %" PRId64 ", expected a row of the table, 0 to %" PRId64,
                        offset, table->dim[0] - 1);
    s->n_out = 1;
    s->out[0] = s->in[0];
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->out[0]);
    const double table = (double)ttn_desc_numel(&s->in[TABLE]);
    const double values = pass == TTN_FORWARD ? 3 * n : 2 * n + table;
    return (ttn_cost){.done = n, .useful = n, .bytes = values * (double)sizeof(real)};
}

/* Row of P for the first row of this sequence. */
static int64_t first_place(const ttn_call *c, int64_t seq)
{
    return ttn_stretch_start(c->feed, seq) + ((const attributes *)c->sig->attr)->offset;
}

ttn_status ttn_positions_check(const ttn_call *c, ttn_error *err)
{
    const int64_t L = c->sig->in[TABLE].dim[0];
    const int64_t offset = ((const attributes *)c->sig->attr)->offset;
    for (int64_t s = 0; s < ttn_stretch_seqs(c->feed); s++) {
        const int64_t n = ttn_stretch_span(c->feed, s).n;
        const int64_t start = ttn_stretch_start(c->feed, s);
        if (start < 0 || start > L || n > L - offset - start)
            return TTN_FAIL(err, TTN_EINVAL,
                            "positions: sequence %" PRId64 " has %" PRId64 " rows from position %" PRId64
                            " on; the table's %" PRId64 " rows serve positions 0 to %" PRId64,
                            s, n, start, L, L - offset - 1);
    }
    return TTN_OK;
}

enum { BLOCK_ROWS = 16 };

static void forward_rows(const ttn_call *c, int64_t first, int64_t end)
{
    const int64_t C = c->sig->in[0].dim[1];
    const int64_t offset = ((const attributes *)c->sig->attr)->offset;
    for (int64_t t = first; t < end;) {
        const ttn_stretch s = ttn_stretch_at(c->feed, t, end);
        const real *x = (const real *)c->in[0] + t * C;
        real *y = (real *)c->out[0] + t * C; /* may be x */
        if (s.seq < 0) {
            memset(y, 0, (size_t)(s.n * C) * sizeof *y);
        } else {
            const real *p = (const real *)c->in[TABLE] + (s.position + offset) * C;
#pragma omp simd
            for (int64_t i = 0; i < s.n * C; i++)
                y[i] = x[i] + p[i];
        }
        t += s.n;
    }
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_positions_check(c, err);
    if (status != TTN_OK) return status;
    const int64_t used = c->feed->used.rows;
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t first = 0; first < used; first += BLOCK_ROWS)
        forward_rows(c, first, first + BLOCK_ROWS < used ? first + BLOCK_ROWS : used);
    ttn_zero_rest(c, &c->sig->out[0], c->out[0]);
    return TTN_OK;
}

/* ---- backward ---- */

enum { BLOCK_PLACES = 8, BLOCK_COLUMNS = 128 }; /* 8 KiB of sums */

/* Rows first … first + n_row - 1 of dP, columns column … column + n - 1. */
static void add_rows(const ttn_call *c, int64_t first, int64_t n_row, int64_t column, int n)
{
    const int64_t C = c->sig->in[0].dim[1];
    double sum[BLOCK_PLACES][BLOCK_COLUMNS] = {{0}};
    for (int64_t s = 0; s < ttn_stretch_seqs(c->feed); s++) {
        const ttn_span span = ttn_stretch_span(c->feed, s);
        const int64_t place = first_place(c, s);
        const int64_t from = place > first ? place : first;
        const int64_t end = place + span.n < first + n_row ? place + span.n : first + n_row;
        for (int64_t p = from; p < end; p++) {
            const real *dy = (const real *)c->dout[0] + (span.first + p - place) * C + column;
            double *to = sum[p - first];
#pragma omp simd
            for (int i = 0; i < n; i++)
                to[i] += (double)dy[i];
        }
    }
    const real acc = c->acc[TABLE];
    for (int64_t r = 0; r < n_row; r++) {
        real *dtable = (real *)c->din[TABLE] + (first + r) * C + column;
        for (int i = 0; i < n; i++)
            dtable[i] = ttn_accumulate(acc, dtable[i], (real)sum[r][i]);
    }
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const int64_t L = c->sig->in[TABLE].dim[0];
    const int64_t C = c->sig->in[0].dim[1];
    if (c->din[TABLE]) { /* before dx, which may be dy */
        const int64_t blocks = (C + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
        const int64_t tasks = (L + BLOCK_PLACES - 1) / BLOCK_PLACES * blocks;
#pragma omp parallel for num_threads(c->on->n_thread) schedule(dynamic, 4)
        for (int64_t task = 0; task < tasks; task++) {
            const int64_t first = task / blocks * BLOCK_PLACES;
            const int64_t column = task % blocks * BLOCK_COLUMNS;
            const int64_t n = C - column < BLOCK_COLUMNS ? C - column : BLOCK_COLUMNS;
            add_rows(c, first, L - first < BLOCK_PLACES ? L - first : BLOCK_PLACES, column, (int)n);
        }
    }
    if (c->din[0]) ttn_stretch_pass(c);
    return TTN_OK;
}

/* ---- cases ---- */

static const attributes bert = {.offset = 0};
static const attributes esm = {.offset = 2};
static const attributes past = {.offset = 9};
static const attributes below = {.offset = -1};

static const ttn_case cases[] = {
    {.about = "without sequences", .used = {.rows = 7}, .in = {TTN_ROWS_OF(3), TTN_MATRIX(9, 3)}, .attr = &bert},
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(20, 4)},
     .attr = &bert},
    {.about = "an offset of 2, the table's last row in use",
     .used = {.rows = 24, .seqs = 2},
     .span = {{2, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(9, 4)},
     .attr = &esm},
    {.about = "one row, width 1", .used = {.rows = 1}, .in = {TTN_ROWS_OF(1), TTN_MATRIX(1, 1)}, .attr = &bert},
    {.about = "more than a block of columns",
     .used = {.rows = 18, .seqs = 3},
     .span = {{0, 5}, {5, 1}, {6, 12}},
     .in = {TTN_ROWS_OF(133), TTN_MATRIX(12, 133)},
     .attr = &bert},
    {.about = "several tiles",
     .used = {.rows = 531, .seqs = 3},
     .cap = {.rows = 960, .seqs = 4},
     .span = {{0, 240}, {252, 1}, {360, 171}},
     .in = {TTN_ROWS_OF(3), TTN_MATRIX(250, 3)},
     .attr = &esm},
    {.about = "every row of the capacity",
     .used = {.rows = 480},
     .in = {TTN_ROWS_OF(1), TTN_MATRIX(480, 1)},
     .attr = &bert},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4), TTN_MATRIX(9, 4)}, .attr = &bert},
    {.about = "a sequence longer than the table",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 8}},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(9, 4)},
     .attr = &esm,
     .fails = "sequence 1 has 8 rows from position 0 on; the table's 9 rows serve positions 0 to 6"},
    {.about = "rows without sequences, more than the table's",
     .used = {.rows = 10},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(9, 4)},
     .attr = &bert,
     .fails = "sequence 0 has 10 rows from position 0 on; the table's 9 rows serve positions 0 to 8"},
    {.about = "x of one dimension",
     .used = {.rows = 7},
     .in = {{.axis = TTN_ROWS, .ndim = 1}, TTN_MATRIX(9, 3)},
     .attr = &bert,
     .refused = "x is " TTN_REAL_NAME " (N 480), which has 1 dimensions; expected 2, (N, C)"},
    {.about = "picks, which have no positions",
     .used = {.picks = 7},
     .in = {TTN_PICKS_OF(3), TTN_MATRIX(9, 3)},
     .attr = &bert,
     .refused = "x is " TTN_REAL_NAME " (R 480, 3), expected rows of sequences, (N, C)"},
    {.about = "x of integers",
     .used = {.rows = 7},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 3}}, TTN_MATRIX(9, 3)},
     .attr = &bert,
     .refused = "x is u8 (N 480, 3), expected " TTN_REAL_NAME " numbers"},
    {.about = "a table of another width",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3), TTN_MATRIX(9, 4)},
     .attr = &bert,
     .refused = "table is " TTN_REAL_NAME " (9, 4), but x has width 3; expected (L, 3)"},
    {.about = "a table of one dimension",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3), TTN_VECTOR(3)},
     .attr = &bert,
     .refused = "table is " TTN_REAL_NAME " (3), which has 1 dimensions; expected 2, (L, C)"},
    {.about = "a table of rows",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3), TTN_ROWS_OF(3)},
     .attr = &bert,
     .refused = "table is " TTN_REAL_NAME " (N 480, 3), but x has width 3; expected (L, 3)"},
    {.about = "an empty table",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3), TTN_MATRIX(0, 3)},
     .attr = &bert,
     .refused = "table is " TTN_REAL_NAME " (0, 3), but x has width 3; expected (L, 3)"},
    {.about = "width 0",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(0), TTN_MATRIX(9, 0)},
     .attr = &bert,
     .refused = "expected (L, 0), both at least 1"},
    {.about = "an offset past the table",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3), TTN_MATRIX(9, 3)},
     .attr = &past,
     .refused = "offset is 9, expected a row of the table, 0 to 8"},
    {.about = "a negative offset",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3), TTN_MATRIX(9, 3)},
     .attr = &below,
     .refused = "offset is -1, expected a row of the table, 0 to 8"},
};

const ttn_op ttn_op_positions = {
    .name = "positions",
    .n_in = 2,
    .n_out = 1,
    .differentiable = TTN_BIT(0) | TTN_BIT(TABLE),
    .takes = {TTN_SHARES(0)},
    .passes = {TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_positions(ttn_graph *g, const char *name, int x, int table, int64_t offset)
{
    const attributes a = {.offset = offset};
    return ttn_apply(g, "positions", name, &a, (const int[]){x, table});
}
