/* scale:  y = f x.   dx = f dy.   f is an attribute */
#include <math.h>
#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "autograd/ops/scale.h"

typedef ttn_scale_attributes attributes;

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_real(s, 0, "scale", "x", err);
    if (status != TTN_OK) return status;
    if (!isfinite(ttn_scale_factor(s)))
        return TTN_FAIL(err, TTN_EINVAL, "scale: the factor is %g, expected a number that is finite in %s",
                        ((const attributes *)s->attr)->factor, TTN_REAL_NAME);
    s->n_out = 1;
    s->out[0] = s->in[0];
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)pass;
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->out[0]);
    return (ttn_cost){.done = n, .useful = n, .bytes = 2 * n * (double)sizeof(real)};
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const int64_t n = ttn_used_numel(c->feed, &c->sig->out[0]);
    const real f = ttn_scale_factor(c->sig);
    const real *x = c->in[0];
    real *y = c->out[0]; /* may be x */
#pragma omp parallel for simd num_threads(c->on->n_thread)
    for (int64_t i = 0; i < n; i++)
        y[i] = f * x[i];
    ttn_zero_rest(c, &c->sig->out[0], y);
    return TTN_OK;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (!c->din[0]) return TTN_OK;
    const int64_t n = ttn_used_numel(c->feed, &c->sig->out[0]);
    const real f = ttn_scale_factor(c->sig);
    const real *dy = c->dout[0];
    real *dx = c->din[0]; /* may be dy */
    if (c->acc[0] != 0) {
#pragma omp parallel for simd num_threads(c->on->n_thread)
        for (int64_t i = 0; i < n; i++)
            dx[i] += f * dy[i];
        return TTN_OK;
    }
#pragma omp parallel for simd num_threads(c->on->n_thread)
    for (int64_t i = 0; i < n; i++)
        dx[i] = f * dy[i];
    ttn_zero_rest(c, &c->sig->out[0], dx);
    return TTN_OK;
}

static const attributes third = {.factor = 1.0 / 3};
static const attributes negative = {.factor = -8};
static const attributes none = {.factor = 0};
static const attributes not_a_number = {.factor = NAN};
static const attributes infinite = {.factor = INFINITY};

static const ttn_case cases[] = {
    {.about = "some rows", .used = {.rows = 7}, .in = {TTN_ROWS_OF(5)}, .attr = &third},
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(3)},
     .attr = &negative},
    {.about = "every row of the capacity", .used = {.rows = 960}, .in = {TTN_ROWS_OF(1)}, .attr = &third},
    {.about = "a scalar by 0", .in = {{.ndim = 0}}, .attr = &none},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4)}, .attr = &third},
    {.about = "NaN",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5)},
     .attr = &not_a_number,
     .refused = "the factor is nan, expected a number that is finite in " TTN_REAL_NAME},
    {.about = "infinite",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5)},
     .attr = &infinite,
     .refused = "the factor is inf, expected a number that is finite in " TTN_REAL_NAME},
    {.about = "integers",
     .used = {.rows = 7},
     .in = {{.type = TTN_I32, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 5}}},
     .attr = &third,
     .refused = "x is i32 (N 480, 5), expected " TTN_REAL_NAME " numbers"},
};

const ttn_op ttn_op_scale = {
    .name = "scale",
    .n_in = 1,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .takes = {TTN_SHARES(0)},
    .passes = {TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_scale(ttn_graph *g, const char *name, int x, double factor)
{
    const attributes a = {.factor = factor};
    return ttn_apply(g, "scale", name, &a, (const int[]){x});
}
