/* mse:  y = sum over rows that count, and their channels, of (x - target)^2, a scalar.   x, target: the same shape
 * dx = 2 dy (x - target), 0 in rows that do not count
 *
 * Statistics: the sum, and the number of elements in it, so that sum / count is the mean square error. A loss is a sum,
 * never a mean: micro-batches and ranks of unequal size then add up, and what divides is the sum of their counts. Which
 * rows count, and how they are summed: autograd/kernel.h. */
#include <string.h>
#include "autograd/kernel.h"
#include "autograd/ops.h"

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_real(s, 0, "mse", "x", err);
    if (status == TTN_OK) status = ttn_want_real(s, 1, "mse", "target", err);
    if (status != TTN_OK) return status;
    if (!ttn_desc_same(&s->in[0], &s->in[1])) {
        char x[TTN_DESC_TEXT];
        char target[TTN_DESC_TEXT];
        return TTN_FAIL(err, TTN_EINVAL, "mse: x is %s and target is %s, expected the same shape",
                        ttn_desc_print(&s->in[0], x), ttn_desc_print(&s->in[1], target));
    }
    s->n_out = 1;
    s->out[0] = ttn_desc_of(TTN_REAL, TTN_FIXED, 0, 0, 0, 0);
    s->n_stat = 2;
    const size_t mark_bytes = ttn_mark_bytes(&s->in[0]);
    s->work[TTN_FORWARD] = (size_t)ttn_chunks(ttn_capacity_of(&s->in[0])) * sizeof(double) + mark_bytes;
    s->work[TTN_BACKWARD] = mark_bytes;
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)pass;
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->in[0]);
    const double values = pass == TTN_FORWARD ? 2 : 3;
    return (ttn_cost){.done = 3 * n, .useful = 3 * n, .bytes = values * n * (double)sizeof(real)};
}

/* Sum of squares, in partial sums whose order depends on n alone (see autograd/ops/layernorm.c). */
static double squares(int64_t n, const real *x, const real *target)
{
    enum { WIDTH = 8 };
    double s[WIDTH] = {0};
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
#pragma omp simd
        for (int j = 0; j < WIDTH; j++) {
            const double d = (double)(x[i + j] - target[i + j]);
            s[j] += d * d;
        }
    }
    for (int j = 0; i + j < n; j++) {
        const double d = (double)(x[i + j] - target[i + j]);
        s[j] += d * d;
    }
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    const int64_t width = ttn_row_width(&c->sig->in[0]);
    const int64_t n_chunk = ttn_chunks(ttn_capacity_of(&c->sig->in[0]));
    double *part = c->work;
    const unsigned char *mark = ttn_mark_rows(c, &c->sig->in[0], (unsigned char *)(part + n_chunk));
    int64_t rows = 0;
#pragma omp parallel for num_threads(c->on->n_thread) reduction(+ : rows)
    for (int64_t k = 0; k < n_chunk; k++) {
        int64_t first;
        int64_t end;
        ttn_chunk(used, k, &first, &end);
        part[k] = 0;
        for (int64_t t = first; t < end; t++) {
            if (mark && !mark[t]) continue;
            part[k] += squares(width, (const real *)c->in[0] + t * width, (const real *)c->in[1] + t * width);
            rows++;
        }
    }
    ttn_add_chunks(n_chunk, 1, part, &c->stat[0]);
    c->stat[1] = (double)(rows * width);
    *(real *)c->out[0] = (real)c->stat[0];
    return TTN_OK;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (!c->din[0]) return TTN_OK;
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    const int64_t width = ttn_row_width(&c->sig->in[0]);
    const real twice = 2 * *(const real *)c->dout[0];
    const real acc = c->acc[0];
    const unsigned char *mark = ttn_mark_rows(c, &c->sig->in[0], c->work);
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t t = 0; t < used; t++) {
        const real *x = (const real *)c->in[0] + t * width;
        const real *target = (const real *)c->in[1] + t * width;
        real *dx = (real *)c->din[0] + t * width;
        if (mark && !mark[t]) {
            if (acc == 0) memset(dx, 0, (size_t)width * sizeof *dx);
            continue;
        }
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            dx[i] = ttn_accumulate(acc, dx[i], twice * (x[i] - target[i]));
    }
    if (acc == 0) ttn_zero_rest(c, &c->sig->in[0], c->din[0]);
    return TTN_OK;
}

static const ttn_case cases[] = {
    {.about = "plain rows", .used = {.rows = 7}, .in = {TTN_ROWS_OF(13), TTN_ROWS_OF(13)}},
    {.about = "two sequences, rows of none between and after them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(3), TTN_ROWS_OF(3)}},
    {.about = "three chunks",
     .used = {.rows = 531, .seqs = 3},
     .span = {{0, 240}, {252, 100}, {360, 171}},
     .in = {TTN_ROWS_OF(1), TTN_ROWS_OF(1)}},
    {.about = "every row of the capacity", .used = {.rows = 480}, .in = {TTN_ROWS_OF(1), TTN_ROWS_OF(1)}},
    {.about = "picks", .used = {.picks = 13}, .in = {TTN_PICKS_OF(2), TTN_PICKS_OF(2)}},
    {.about = "one number a sequence",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {{.axis = TTN_SEQS, .ndim = 1}, {.axis = TTN_SEQS, .ndim = 1}}},
    {.about = "two scalars", .in = {{.ndim = 0}, {.ndim = 0}}},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4), TTN_ROWS_OF(4)}},
    {.about = "widths that differ",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), TTN_ROWS_OF(6)},
     .refused =
         "x is " TTN_REAL_NAME " (N 480, 5) and target is " TTN_REAL_NAME " (N 480, 6), expected the same shape"},
    {.about = "x of integers",
     .used = {.rows = 7},
     .in = {{.type = TTN_I64, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 5}}, TTN_ROWS_OF(5)},
     .refused = "x is i64 (N 480, 5), expected " TTN_REAL_NAME " numbers"},
    {.about = "a target of integers",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), {.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 5}}},
     .refused = "target is u8 (N 480, 5), expected " TTN_REAL_NAME " numbers"},
};

static const ttn_stat stats[] = {
    {.name = "sum", .fold = TTN_SUM},
    {.name = "count", .fold = TTN_SUM},
};

const ttn_op ttn_op_mse = {
    .name = "mse",
    .n_in = 2,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .reads = {{.in = TTN_BIT(0) | TTN_BIT(1)}},
    .stats = stats,
    .n_stats = sizeof stats / sizeof *stats,
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_mse(ttn_graph *g, const char *name, int x, int target)
{
    return ttn_apply(g, "mse", name, NULL, (const int[]){x, target});
}
