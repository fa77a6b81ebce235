/* silu:  y = x s(x), s(x) = 1 / (1 + e^-x), elementwise (autograd/ops/activation.h).   dx = (s + x s (1 - s)) dy */
#include "autograd/activate.h"

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    return ttn_activate_shape(s, "silu", err);
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    return ttn_activate_cost(s, pass, pass == TTN_FORWARD ? 20 : 28);
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    ttn_activate_forward(c, TTN_ACT_SILU);
    return TTN_OK;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (c->din[0]) ttn_activate_backward(c, TTN_ACT_SILU, c->in[0]);
    return TTN_OK;
}

static const ttn_case cases[] = {
    {.about = "some rows", .used = {.rows = 11}, .in = {TTN_ROWS_OF(7)}, .range = {{-4, 4}}},
    {.about = "tails", .used = {.rows = 3}, .in = {TTN_ROWS_OF(50)}, .range = {{-120, 120}}},
    {.about = "tails beyond the exponential's range",
     .used = {.rows = 3},
     .in = {TTN_ROWS_OF(50)},
     .range = {{-3000, -500}}},
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(3)}},
    {.about = "every row of the capacity, width 1", .used = {.rows = 480}, .in = {TTN_ROWS_OF(1)}},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4)}},
    {.about = "integers",
     .used = {.rows = 7},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 5}}},
     .refused = "x is u8 (N 480, 5), expected " TTN_REAL_NAME " numbers"},
};

const ttn_op ttn_op_silu = {
    .name = "silu",
    .n_in = 1,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .reads = {{.in = TTN_BIT(0)}},
    .takes = {TTN_SHARES(0)},
    .passes = {TTN_SHARES(0)},
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_silu(ttn_graph *g, const char *name, int x)
{
    return ttn_apply(g, "silu", name, NULL, (const int[]){x});
}
