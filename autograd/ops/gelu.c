/* gelu:  y = x Phi(x), elementwise, in the erf or the tanh form (autograd/ops/gelu.h).   dx = (Phi(x) + x Phi'(x)) dy */
#include "autograd/activate.h"

/* The attributes are the form. */
static ttn_activation form_of(const ttn_sig *s)
{
    return *(const ttn_activation *)s->attr;
}

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    if (form_of(s) != TTN_ACT_GELU_ERF && form_of(s) != TTN_ACT_GELU_TANH)
        return TTN_FAIL(err, TTN_EINVAL, "gelu: form number %d is none, expected %d (erf) or %d (tanh)",
                        (int)form_of(s), (int)TTN_ACT_GELU_ERF, (int)TTN_ACT_GELU_TANH);
    return ttn_activate_shape(s, "gelu", err);
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    return ttn_activate_cost(s, pass, pass == TTN_FORWARD ? 40 : 60);
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    ttn_activate_forward(c, form_of(c->sig));
    return TTN_OK;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (c->din[0]) ttn_activate_backward(c, form_of(c->sig), c->in[0]);
    return TTN_OK;
}

static const ttn_activation erf_form = TTN_ACT_GELU_ERF;
static const ttn_activation tanh_form = TTN_ACT_GELU_TANH;
static const ttn_activation no_form = (ttn_activation)7;

static const ttn_case cases[] = {
    {.about = "erf", .used = {.rows = 11}, .in = {TTN_ROWS_OF(7)}, .attr = &erf_form, .range = {{-4, 4}}},
    {.about = "tanh", .used = {.rows = 11}, .in = {TTN_ROWS_OF(7)}, .attr = &tanh_form, .range = {{-4, 4}}},
    {.about = "erf, tails", .used = {.rows = 3}, .in = {TTN_ROWS_OF(50)}, .attr = &erf_form, .range = {{-40, 40}}},
    {.about = "tanh, tails", .used = {.rows = 3}, .in = {TTN_ROWS_OF(50)}, .attr = &tanh_form, .range = {{-90, 90}}},
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(3)},
     .attr = &erf_form},
    {.about = "every row of the capacity, width 1", .used = {.rows = 480}, .in = {TTN_ROWS_OF(1)}, .attr = &tanh_form},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4)}, .attr = &erf_form},
    {.about = "a form that does not exist",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5)},
     .attr = &no_form,
     .refused = "form number 7 is none, expected 0 (erf) or 1 (tanh)"},
    {.about = "integers",
     .used = {.rows = 7},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 5}}},
     .attr = &erf_form,
     .refused = "x is u8 (N 480, 5), expected " TTN_REAL_NAME " numbers"},
};

const ttn_op ttn_op_gelu = {
    .name = "gelu",
    .n_in = 1,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .reads = {{.in = TTN_BIT(0)}},
    .takes = {TTN_SHARES(0)},
    .passes = {TTN_SHARES(0)},
    .attr_bytes = sizeof(ttn_activation),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_gelu(ttn_graph *g, const char *name, int x, ttn_activation form)
{
    return ttn_apply(g, "gelu", name, &form, (const int[]){x});
}
