/* relu:  y = max(x, 0), elementwise.   dx = dy where y > 0, else 0 */
#include "autograd/activate.h"

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    return ttn_activate_shape(s, "relu", err);
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    return ttn_activate_cost(s, pass, 1);
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    ttn_activate_forward(c, TTN_ACT_RELU);
    return TTN_OK;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (c->din[0]) ttn_activate_backward(c, TTN_ACT_RELU, c->out[0]);
    return TTN_OK;
}

static const ttn_case cases[] = {
    {.about = "some rows", .used = {.rows = 7}, .in = {TTN_ROWS_OF(5)}},
    {.about = "positive only", .used = {.rows = 3}, .in = {TTN_ROWS_OF(9)}, .range = {{1, 2}}},
    {.about = "negative only", .used = {.rows = 3}, .in = {TTN_ROWS_OF(9)}, .range = {{-2, -1}}},
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(3)}},
    {.about = "every row of the capacity, width 1", .used = {.rows = 480}, .in = {TTN_ROWS_OF(1)}},
    {.about = "more than a vector, and a remainder", .used = {.rows = 483}, .in = {TTN_ROWS_OF(37)}},
    {.about = "a scalar", .in = {{.ndim = 0}}, .range = {{1, 2}}},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4)}},
    {.about = "integers",
     .used = {.rows = 7},
     .in = {{.type = TTN_I32, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 5}}},
     .refused = "x is i32 (N 480, 5), expected " TTN_REAL_NAME " numbers"},
};

const ttn_op ttn_op_relu = {
    .name = "relu",
    .n_in = 1,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .reads = {{.out = TTN_BIT(0)}}, /* backward looks at y, and at nothing else */
    .takes = {TTN_SHARES(0)},       /* y may be written over x */
    .passes = {TTN_SHARES(0)},      /* dx may be written over dy */
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_relu(ttn_graph *g, const char *name, int x)
{
    return ttn_apply(g, "relu", name, NULL, (const int[]){x});
}
