/* rmsnorm over the last axis:  y = g n,  n = x r,  r = 1 / sqrt(mean(x^2) + eps).   x (N, C)   g (C) or none: ones
 * (Zhang and Sennrich, Root Mean Square Layer Normalization, 2019)
 * aux 0: r (N)
 * with h = g dy:  dx = r (h - n mean(h n))     dg = sum over rows of dy n */
#include <math.h>
#include "autograd/ops.h"
#include "autograd/ops/rmsnorm.h"
#include "autograd/rownorm.h"

typedef ttn_rownorm_attributes attributes;

enum { GAIN = 1 };

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_rownorm_want(s, "rmsnorm", ((const attributes *)s->attr)->eps, err);
    if (status == TTN_OK && s->in[GAIN].ndim >= 0) status = ttn_rownorm_want_vector(s, GAIN, "rmsnorm", "gain", err);
    if (status != TTN_OK) return status;
    s->n_out = 1;
    s->out[0] = s->in[0];
    s->n_aux = 1;
    s->aux[0] = ttn_desc_of(TTN_REAL, s->in[0].axis, 1, s->in[0].dim[0], 0, 0);
    s->work[TTN_BACKWARD] = ttn_rownorm_work(s, 1);
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->out[0]);
    const double flops = (pass == TTN_FORWARD ? 4 : 11) * n;
    const double values = pass == TTN_FORWARD ? 2 : 3;
    return (ttn_cost){.done = flops, .useful = flops, .bytes = values * n * (double)sizeof(real)};
}

/* ---- sums over a row ---- */

/* Of x^2. */
static real squares(int64_t C, const real *x)
{
    real s[TTN_ROW_SUMS] = {0};
    int64_t i = 0;
    for (; i + TTN_ROW_SUMS <= C; i += TTN_ROW_SUMS) {
#pragma omp simd
        for (int j = 0; j < TTN_ROW_SUMS; j++)
            s[j] += x[i + j] * x[i + j];
    }
    for (int j = 0; i + j < C; j++)
        s[j] += x[i + j] * x[i + j];
    return ttn_row_total(s);
}

/* Of h x, h = g dy. */
static real projection(int64_t C, const real *x, const real *g, const real *dy)
{
    real s[TTN_ROW_SUMS] = {0};
    int64_t i = 0;
    for (; i + TTN_ROW_SUMS <= C; i += TTN_ROW_SUMS) {
#pragma omp simd
        for (int j = 0; j < TTN_ROW_SUMS; j++)
            s[j] += g[i + j] * dy[i + j] * x[i + j];
    }
    for (int j = 0; i + j < C; j++)
        s[j] += g[i + j] * dy[i + j] * x[i + j];
    return ttn_row_total(s);
}

/* Without a gain. */
static real plain_projection(int64_t C, const real *x, const real *dy)
{
    real s[TTN_ROW_SUMS] = {0};
    int64_t i = 0;
    for (; i + TTN_ROW_SUMS <= C; i += TTN_ROW_SUMS) {
#pragma omp simd
        for (int j = 0; j < TTN_ROW_SUMS; j++)
            s[j] += dy[i + j] * x[i + j];
    }
    for (int j = 0; i + j < C; j++)
        s[j] += dy[i + j] * x[i + j];
    return ttn_row_total(s);
}

/* ---- forward ---- */

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const int64_t C = c->sig->in[0].dim[1];
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    const real eps = (real)((const attributes *)c->sig->attr)->eps;
    const real *g = c->in[GAIN];
    real *rstd = c->aux[0];
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t t = 0; t < used; t++) {
        const real *x = (const real *)c->in[0] + t * C;
        real *y = (real *)c->out[0] + t * C; /* may be x */
        const real r = ttn_rmsnorm_rstd(squares(C, x), C, eps);
        if (g) {
#pragma omp simd
            for (int64_t i = 0; i < C; i++)
                y[i] = g[i] * (x[i] * r);
        } else {
#pragma omp simd
            for (int64_t i = 0; i < C; i++)
                y[i] = x[i] * r;
        }
        rstd[t] = r;
    }
    ttn_zero_rest(c, &c->sig->out[0], c->out[0]);
    ttn_zero_rest(c, &c->sig->aux[0], rstd);
    return TTN_OK;
}

/* ---- backward ---- */

/* NOLINTNEXTLINE(readability-non-const-parameter): a ttn_rownorm_row, whose last argument is a bias gradient elsewhere */
static void backward_row(const ttn_call *c, int64_t t, double *dg, double *unused)
{
    (void)unused;
    const int64_t C = c->sig->in[0].dim[1];
    const real *x = (const real *)c->in[0] + t * C;
    const real *dy = (const real *)c->dout[0] + t * C;
    const real r = ((const real *)c->aux[0])[t];
    if (dg) {
#pragma omp simd
        for (int64_t i = 0; i < C; i++)
            dg[i] += dy[i] * (x[i] * r);
    }
    if (!c->din[0]) return;

    const real *g = c->in[GAIN]; /* read for dx only */
    const real acc = c->acc[0];
    real *dx = (real *)c->din[0] + t * C;
    const real mean_hn = (g ? projection(C, x, g, dy) : plain_projection(C, x, dy)) * r / (real)C;
    if (g) {
#pragma omp simd
        for (int64_t i = 0; i < C; i++)
            dx[i] = ttn_accumulate(acc, dx[i], ttn_rmsnorm_grad(g[i] * dy[i], x[i], r, mean_hn));
    } else {
#pragma omp simd
        for (int64_t i = 0; i < C; i++)
            dx[i] = ttn_accumulate(acc, dx[i], ttn_rmsnorm_grad(dy[i], x[i], r, mean_hn));
    }
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    ttn_rownorm_backward(c, 1, backward_row);
    return TTN_OK;
}

/* ---- cases ---- */

static const attributes usual = {.eps = 1e-5};
static const attributes large = {.eps = 0.5};
static const attributes negative = {.eps = -1e-5};
static const attributes vanishing = {.eps = 1e-320};

static const ttn_case cases[] = {
    {.about = "some rows", .used = {.rows = 6}, .in = {TTN_ROWS_OF(7), TTN_VECTOR(7)}, .attr = &usual},
    {.about = "no gain", .used = {.rows = 5}, .in = {TTN_ROWS_OF(6), TTN_LEFT_OUT}, .attr = &usual},
    {.about = "more than a vector, and a remainder",
     .used = {.rows = 4},
     .in = {TTN_ROWS_OF(37), TTN_VECTOR(37)},
     .attr = &usual},
    {.about = "the same without a gain", .used = {.rows = 4}, .in = {TTN_ROWS_OF(37), TTN_LEFT_OUT}, .attr = &usual},
    {.about = "one row, width 1", .used = {.rows = 1}, .in = {TTN_ROWS_OF(1), TTN_VECTOR(1)}, .attr = &large},
    {.about = "values of 1,000",
     .used = {.rows = 5},
     .in = {TTN_ROWS_OF(19), TTN_VECTOR(19)},
     .range = {{999, 1001}},
     .attr = &usual},
    {.about = "three lanes, rows of no sequence",
     .used = {.rows = 531, .seqs = 3},
     .span = {{0, 240}, {252, 100}, {360, 171}},
     .in = {TTN_ROWS_OF(3), TTN_VECTOR(3)},
     .attr = &large}, /* among 531 rows of 3 some are next to 0: third derivatives beyond the step */
    {.about = "every row of the capacity",
     .used = {.rows = 480},
     .in = {TTN_ROWS_OF(2), TTN_VECTOR(2)},
     .attr = &large},
    {.about = "picks", .used = {.picks = 13}, .in = {TTN_PICKS_OF(4), TTN_VECTOR(4)}, .attr = &usual},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4), TTN_VECTOR(4)}, .attr = &usual},
    {.about = "x of one dimension",
     .used = {.rows = 6},
     .in = {{.axis = TTN_ROWS, .ndim = 1}, TTN_VECTOR(7)},
     .attr = &usual,
     .refused = "x is " TTN_REAL_NAME " (N 480), which has 1 dimensions; expected 2, (N, C)"},
    {.about = "x of integers",
     .used = {.rows = 6},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 7}}, TTN_VECTOR(7)},
     .attr = &usual,
     .refused = "x is u8 (N 480, 7), expected " TTN_REAL_NAME " numbers"},
    {.about = "a gain of another width",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_VECTOR(8)},
     .attr = &usual,
     .refused = "gain is " TTN_REAL_NAME " (8), but x has width 7; expected (7)"},
    {.about = "a gain for each row",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(480), {.axis = TTN_ROWS, .ndim = 1}},
     .attr = &usual,
     .refused = "gain is " TTN_REAL_NAME " (N 480), but x has width 480; expected (480)"},
    {.about = "a gain of two dimensions",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_MATRIX(1, 7)},
     .attr = &usual,
     .refused = "gain is " TTN_REAL_NAME " (1, 7), which has 2 dimensions; expected 1, (C)"},
    {.about = "width 0",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(0), TTN_VECTOR(0)},
     .attr = &usual,
     .refused = "x has width 0, expected at least 1"},
    {.about = "eps below 0",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_VECTOR(7)},
     .attr = &negative,
     .refused = "eps is -1e-05, expected a number above 0"},
    {.about = "an eps that is flushed to 0",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_VECTOR(7)},
     .attr = &vanishing,
     .refused = "expected a number above 0"},
};

const ttn_op ttn_op_rmsnorm = {
    .name = "rmsnorm",
    .n_in = 2,
    .n_out = 1,
    .optional = TTN_BIT(GAIN),
    .differentiable = TTN_BIT(0) | TTN_BIT(GAIN),
    .reads = {{.in = TTN_BIT(0) | TTN_BIT(GAIN), .aux = TTN_BIT(0)}, [GAIN] = {.in = TTN_BIT(0), .aux = TTN_BIT(0)}},
    .takes = {TTN_SHARES(0)},
    .passes = {TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_rmsnorm(ttn_graph *g, const char *name, int x, int gain, double eps)
{
    const attributes a = {.eps = eps};
    return ttn_apply(g, "rmsnorm", name, &a, (const int[]){x, gain});
}
