/* add:  y = a + b, the same shape (the residual connection).   da = dy   db = dy */
#include "autograd/kernel.h"
#include "autograd/ops.h"

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_real(s, 0, "add", "a", err);
    if (status == TTN_OK) status = ttn_want_real(s, 1, "add", "b", err);
    if (status != TTN_OK) return status;
    if (!ttn_desc_same(&s->in[0], &s->in[1])) {
        char a[TTN_DESC_TEXT];
        char b[TTN_DESC_TEXT];
        return TTN_FAIL(err, TTN_EINVAL, "add: a is %s and b is %s, expected the same shape",
                        ttn_desc_print(&s->in[0], a), ttn_desc_print(&s->in[1], b));
    }
    s->n_out = 1;
    s->out[0] = s->in[0];
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->out[0]);
    if (pass == TTN_BACKWARD) return (ttn_cost){.bytes = 4 * n * (double)sizeof(real)};
    return (ttn_cost){.done = n, .useful = n, .bytes = 3 * n * (double)sizeof(real)};
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const int64_t n = ttn_used_numel(c->feed, &c->sig->out[0]);
    const real *a = c->in[0];
    const real *b = c->in[1];
    real *y = c->out[0]; /* may be a */
#pragma omp parallel for simd num_threads(c->on->n_thread)
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
    ttn_zero_rest(c, &c->sig->out[0], y);
    return TTN_OK;
}

static void pass_on(const ttn_call *c, int input)
{
    const int64_t n = ttn_used_numel(c->feed, &c->sig->out[0]);
    const real *dy = c->dout[0];
    real *dx = c->din[input]; /* may be dy */
    if (c->acc[input] != 0) {
#pragma omp parallel for simd num_threads(c->on->n_thread)
        for (int64_t i = 0; i < n; i++)
            dx[i] += dy[i];
        return;
    }
    if (dx != dy) {
#pragma omp parallel for simd num_threads(c->on->n_thread)
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i];
    }
    ttn_zero_rest(c, &c->sig->out[0], dx);
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    for (int i = 0; i < 2; i++)
        if (c->din[i]) pass_on(c, i);
    return TTN_OK;
}

static const ttn_case cases[] = {
    {.about = "some rows", .used = {.rows = 7}, .in = {TTN_ROWS_OF(5), TTN_ROWS_OF(5)}},
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(3), TTN_ROWS_OF(3)}},
    {.about = "every row of the capacity", .used = {.rows = 480}, .in = {TTN_ROWS_OF(1), TTN_ROWS_OF(1)}},
    {.about = "picks", .used = {.picks = 13}, .in = {TTN_PICKS_OF(2), TTN_PICKS_OF(2)}},
    {.about = "two scalars", .in = {{.ndim = 0}, {.ndim = 0}}},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4), TTN_ROWS_OF(4)}},
    {.about = "widths that differ",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), TTN_ROWS_OF(6)},
     .refused = "a is " TTN_REAL_NAME " (N 480, 5) and b is " TTN_REAL_NAME " (N 480, 6), expected the same shape"},
    {.about = "rows and picks of equal capacity",
     .used = {.rows = 7, .picks = 7},
     .in = {TTN_ROWS_OF(5), TTN_PICKS_OF(5)},
     .refused = "(N 480, 5) and b is " TTN_REAL_NAME " (R 480, 5), expected the same shape"},
    {.about = "integers",
     .used = {.rows = 7},
     .in = {{.type = TTN_I64, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 5}}, TTN_ROWS_OF(5)},
     .refused = "a is i64 (N 480, 5), expected " TTN_REAL_NAME " numbers"},
    {.about = "integers on the other side",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), {.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 5}}},
     .refused = "b is u8 (N 480, 5), expected " TTN_REAL_NAME " numbers"},
};

const ttn_op ttn_op_add = {
    .name = "add",
    .n_in = 2,
    .n_out = 1,
    .differentiable = TTN_BIT(0) | TTN_BIT(1),
    .takes = {TTN_SHARES(0)},
    .passes = {TTN_SHARES(0), TTN_SHARES(0)},
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_add(ttn_graph *g, const char *name, int a, int b)
{
    return ttn_apply(g, "add", name, NULL, (const int[]){a, b});
}
