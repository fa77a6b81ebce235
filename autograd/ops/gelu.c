/* gelu:  y = x Phi(x), elementwise, in the erf or the tanh form (autograd/ops/gelu.h).   dx = (Phi(x) + x Phi'(x)) dy */
#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "autograd/ops/gelu.h"

typedef struct {
    ttn_gelu_form form;
} attributes;

static ttn_gelu_form form_of(const ttn_sig *s)
{
    return ((const attributes *)s->attr)->form;
}

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_real(s, 0, "gelu", "x", err);
    if (status != TTN_OK) return status;
    if (form_of(s) != TTN_GELU_ERF && form_of(s) != TTN_GELU_TANH)
        return TTN_FAIL(err, TTN_EINVAL, "gelu: form number %d is none, expected %d (erf) or %d (tanh)",
                        (int)form_of(s), (int)TTN_GELU_ERF, (int)TTN_GELU_TANH);
    s->n_out = 1;
    s->out[0] = s->in[0];
    return TTN_OK;
}

/* Arithmetic operations of the formulas, the functions' polynomials included. */
static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->out[0]);
    const double flops = (pass == TTN_FORWARD ? 40 : 60) * n;
    const double values = pass == TTN_FORWARD ? 2 : 3;
    return (ttn_cost){.done = flops, .useful = flops, .bytes = values * n * (double)sizeof(real)};
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const int64_t n = ttn_used_numel(c->feed, &c->sig->out[0]);
    const real *x = c->in[0];
    real *y = c->out[0]; /* may be x */
    if (form_of(c->sig) == TTN_GELU_ERF) {
#pragma omp parallel for simd num_threads(c->on->n_thread)
        for (int64_t i = 0; i < n; i++)
            y[i] = ttn_gelu_erf(x[i]);
    } else {
#pragma omp parallel for simd num_threads(c->on->n_thread)
        for (int64_t i = 0; i < n; i++)
            y[i] = ttn_gelu_tanh(x[i]);
    }
    ttn_zero_rest(c, &c->sig->out[0], y);
    return TTN_OK;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (!c->din[0]) return TTN_OK;
    const int64_t n = ttn_used_numel(c->feed, &c->sig->out[0]);
    const real acc = c->acc[0];
    const real *x = c->in[0];
    const real *dy = c->dout[0];
    real *dx = c->din[0]; /* may be dy */
    if (form_of(c->sig) == TTN_GELU_ERF) {
#pragma omp parallel for simd num_threads(c->on->n_thread)
        for (int64_t i = 0; i < n; i++)
            dx[i] = ttn_accumulate(acc, dx[i], ttn_gelu_erf_grad(x[i]) * dy[i]);
    } else {
#pragma omp parallel for simd num_threads(c->on->n_thread)
        for (int64_t i = 0; i < n; i++)
            dx[i] = ttn_accumulate(acc, dx[i], ttn_gelu_tanh_grad(x[i]) * dy[i]);
    }
    if (acc == 0) ttn_zero_rest(c, &c->sig->in[0], dx);
    return TTN_OK;
}

static const attributes erf_form = {.form = TTN_GELU_ERF};
static const attributes tanh_form = {.form = TTN_GELU_TANH};
static const attributes no_form = {.form = (ttn_gelu_form)7};

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
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_gelu(ttn_graph *g, const char *name, int x, ttn_gelu_form form)
{
    const attributes a = {.form = form};
    return ttn_apply(g, "gelu", name, &a, (const int[]){x});
}
