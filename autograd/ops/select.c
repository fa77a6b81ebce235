/* select:  y[r] = x[index[r]], and zeros where index[r] is -1.   x (N, C)   index (R), i64   y (R, C)
 * dx[t] = sum of dy[r] over all r with index[r] = t, added in order of r
 *
 * Rows with a loss, out of all rows. -1 fills the places between the picks of one sequence and those of the next, which
 * begin at multiples of 12. The axis of index decides that of y: picks of rows, or the first row of each sequence. */
#include <inttypes.h>
#include <string.h>
#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "core/memory.h"

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_shape(s, 0, "select", "x", "(N, C)", err);
    if (status != TTN_OK) return status;
    if (s->in[1].type != TTN_I64 || s->in[1].ndim != 1) {
        char text[TTN_DESC_TEXT];
        return TTN_FAIL(err, TTN_EINVAL, "select: index is %s, expected i64 of one dimension, (R)",
                        ttn_desc_print(&s->in[1], text));
    }
    s->n_out = 1;
    s->out[0] = ttn_desc_of(TTN_REAL, s->in[1].axis, 2, s->in[1].dim[0], s->in[0].dim[1], 0);
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double picked = (double)ttn_desc_numel(&s->out[0]);
    const double all = (double)ttn_desc_numel(&s->in[0]);
    if (pass == TTN_FORWARD) return (ttn_cost){.bytes = 2 * picked * (double)sizeof(real)};
    return (ttn_cost){.done = picked, .useful = picked, .bytes = (all + 3 * picked) * (double)sizeof(real)};
}

/* The one kind: pick number `at` is of no row. */
static ttn_status fault(const ttn_call *c, int kind, int64_t at, ttn_error *err)
{
    (void)kind;
    return TTN_FAIL(err, TTN_EINVAL,
                    "select: index %" PRId64 " is %" PRId64 ", expected -1 or a row in use, 0 to %" PRId64, at,
                    ((const int64_t *)c->in[1])[at], ttn_used(c->feed, &c->sig->in[0]) - 1);
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    const int64_t C = c->sig->in[0].dim[1];
    const int64_t rows = ttn_used(c->feed, &c->sig->in[0]);
    const int64_t picks = ttn_used(c->feed, &c->sig->in[1]);
    const int64_t *index = c->in[1];
    for (int64_t r = 0; r < picks; r++)
        if (index[r] < -1 || index[r] >= rows) return fault(c, 0, r, err);
    const real *x = c->in[0];
    real *y = c->out[0];
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t r = 0; r < picks; r++) {
        if (index[r] < 0)
            memset(y + r * C, 0, (size_t)C * sizeof *y);
        else
            memcpy(y + r * C, x + index[r] * C, (size_t)C * sizeof *y);
    }
    ttn_zero_rest(c, &c->sig->out[0], y);
    return TTN_OK;
}

/* Each part owns a range of x's rows and looks through all picks for its own (8 bytes a pick, beside the 4 C that adding
 * one takes), so that a row is added up in order of the picks whatever the number of parts. */
static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (!c->din[0]) return TTN_OK;
    const int64_t C = c->sig->in[0].dim[1];
    const int64_t rows = c->sig->in[0].dim[0];
    const int64_t picks = ttn_used(c->feed, &c->sig->in[1]);
    const int64_t *index = c->in[1];
    const real *dy = c->dout[0];
    real *dx = c->din[0];
    const int n_part = c->on->n_thread;
#pragma omp parallel for num_threads(n_part)
    for (int part = 0; part < n_part; part++) {
        int64_t first;
        int64_t end;
        ttn_share(rows, part, n_part, &first, &end);
        if (c->acc[0] == 0) memset(dx + first * C, 0, (size_t)((end - first) * C) * sizeof *dx);
        for (int64_t r = 0; r < picks; r++) {
            if (index[r] < first || index[r] >= end) continue;
            real *to = dx + index[r] * C;
#pragma omp simd
            for (int64_t i = 0; i < C; i++)
                to[i] += dy[r * C + i];
        }
    }
    return TTN_OK;
}

#define INDEX_OF_PICKS                                 \
    {                                                  \
        .type = TTN_I64, .axis = TTN_PICKS, .ndim = 1, \
    }

static const ttn_case cases[] = {
    {.about = "rows, some of them more than once, and none at all",
     .used = {.rows = 10, .picks = 25},
     .in = {TTN_ROWS_OF(3), INDEX_OF_PICKS},
     .range = {[1] = {-1, 9}}},
    {.about = "one row for all",
     .used = {.rows = 10, .picks = 25},
     .in = {TTN_ROWS_OF(1), INDEX_OF_PICKS},
     .range = {[1] = {9, 9}}},
    {.about = "nothing but -1",
     .used = {.rows = 10, .picks = 12},
     .in = {TTN_ROWS_OF(3), INDEX_OF_PICKS},
     .range = {[1] = {-1, -1}}},
    {.about = "more rows than one part, and a vector with its remainder",
     .used = {.rows = 500, .picks = 37},
     .in = {TTN_ROWS_OF(19), INDEX_OF_PICKS},
     .range = {[1] = {-1, 499}}},
    {.about = "no picks",
     .cap = {.rows = 480, .picks = 480},
     .used = {.rows = 10},
     .in = {TTN_ROWS_OF(3), INDEX_OF_PICKS}},
    {.about = "one row for each sequence",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(3), {.type = TTN_I64, .axis = TTN_SEQS, .ndim = 1}},
     .range = {[1] = {0, 4}}},
    {.about = "x of one dimension",
     .used = {.rows = 10, .picks = 25},
     .in = {{.axis = TTN_ROWS, .ndim = 1}, INDEX_OF_PICKS},
     .refused = "x is " TTN_REAL_NAME " (N 480), which has 1 dimensions; expected 2, (N, C)"},
    {.about = "x of integers",
     .used = {.rows = 10, .picks = 25},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 3}}, INDEX_OF_PICKS},
     .refused = "x is u8 (N 480, 3), expected " TTN_REAL_NAME " numbers"},
    {.about = "an index of reals",
     .used = {.rows = 10, .picks = 25},
     .in = {TTN_ROWS_OF(3), {.axis = TTN_PICKS, .ndim = 1}},
     .refused = "index is " TTN_REAL_NAME " (R 480), expected i64 of one dimension, (R)"},
    {.about = "an index of two dimensions",
     .used = {.rows = 10, .picks = 25},
     .in = {TTN_ROWS_OF(3), {.type = TTN_I64, .axis = TTN_PICKS, .ndim = 2, .dim = {0, 1}}},
     .refused = "index is i64 (R 480, 1), expected i64 of one dimension, (R)"},
    {.about = "a row that is not in use",
     .used = {.rows = 10, .picks = 25},
     .in = {TTN_ROWS_OF(3), INDEX_OF_PICKS},
     .range = {[1] = {10, 10}},
     .fails = "index 0 is 10, expected -1 or a row in use, 0 to 9"},
    {.about = "below -1",
     .used = {.rows = 10, .picks = 25},
     .in = {TTN_ROWS_OF(3), INDEX_OF_PICKS},
     .range = {[1] = {-2, -2}},
     .fails = "index 0 is -2, expected -1 or a row in use, 0 to 9"},
};

const ttn_op ttn_op_select = {
    .name = "select",
    .n_in = 2,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .reads = {{.in = TTN_BIT(1)}},
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .fault = fault,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_select(ttn_graph *g, const char *name, int x, int index)
{
    return ttn_apply(g, "select", name, NULL, (const int[]){x, index});
}
