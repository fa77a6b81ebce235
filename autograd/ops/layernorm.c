/* layernorm over the last axis:  y = g n + b,  n = (x - m) r.   x (N, C)   g (C)   b (C) or none
 * m = mean(x)   r = 1 / sqrt(mean((x - m)^2) + eps)
 * aux 0: m (N)   aux 1: r (N)
 * with h = g dy:  dx = r (h - mean(h) - n mean(h n))     dg = sum over rows of dy n     db = sum over rows of dy
 *
 * aux 0 holds m rounded to a real. In a row whose mean is large beside its spread (mean 1,000, spread 1) the part that
 * was rounded off is up to 3e-5 of the spread in f32. So both passes work with d = x - aux 0, which loses nothing there,
 * and take the mean of d, the rounded-off part, out again: m = aux 0 + mean(d). */
#include <math.h>
#include "autograd/ops.h"
#include "autograd/ops/layernorm.h"
#include "autograd/rownorm.h"

typedef ttn_rownorm_attributes attributes;

enum { GAIN = 1, BIAS = 2 };

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_rownorm_want(s, "layernorm", ((const attributes *)s->attr)->eps, err);
    if (status == TTN_OK) status = ttn_rownorm_want_vector(s, GAIN, "layernorm", "gain", err);
    if (status == TTN_OK && s->in[BIAS].ndim >= 0) status = ttn_rownorm_want_vector(s, BIAS, "layernorm", "bias", err);
    if (status != TTN_OK) return status;
    s->n_out = 1;
    s->out[0] = s->in[0];
    s->n_aux = 2;
    s->aux[0] = ttn_desc_of(TTN_REAL, s->in[0].axis, 1, s->in[0].dim[0], 0, 0);
    s->aux[1] = s->aux[0];
    s->work[TTN_BACKWARD] = ttn_rownorm_work(s, 2);
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->out[0]);
    const double flops = (pass == TTN_FORWARD ? 9 : 20) * n;
    const double values = pass == TTN_FORWARD ? 2 : 3;
    return (ttn_cost){.done = flops, .useful = flops, .bytes = values * n * (double)sizeof(real)};
}

/* ---- sums over a row ---- */

static real sum(int64_t C, const real *x)
{
    real s[TTN_ROW_SUMS] = {0};
    int64_t i = 0;
    for (; i + TTN_ROW_SUMS <= C; i += TTN_ROW_SUMS) {
#pragma omp simd
        for (int j = 0; j < TTN_ROW_SUMS; j++)
            s[j] += x[i + j];
    }
    for (int j = 0; i + j < C; j++)
        s[j] += x[i + j];
    return ttn_row_total(s);
}

/* Sums of d = x - shift, and of d^2. */
static void deviations(int64_t C, const real *x, real shift, real *ret_d, real *ret_dd)
{
    real s[TTN_ROW_SUMS] = {0};
    real ss[TTN_ROW_SUMS] = {0};
    int64_t i = 0;
    for (; i + TTN_ROW_SUMS <= C; i += TTN_ROW_SUMS) {
#pragma omp simd
        for (int j = 0; j < TTN_ROW_SUMS; j++) {
            const real d = x[i + j] - shift;
            s[j] += d;
            ss[j] += d * d;
        }
    }
    for (int j = 0; i + j < C; j++) {
        const real d = x[i + j] - shift;
        s[j] += d;
        ss[j] += d * d;
    }
    *ret_d = ttn_row_total(s);
    *ret_dd = ttn_row_total(ss);
}

/* Sums of d = x - shift, of h = g dy, and of h d. */
static void projections(int64_t C, const real *x, real shift, const real *g, const real *dy, real *ret_d, real *ret_h,
                        real *ret_hd)
{
    real s[TTN_ROW_SUMS] = {0};
    real sh[TTN_ROW_SUMS] = {0};
    real shd[TTN_ROW_SUMS] = {0};
    int64_t i = 0;
    for (; i + TTN_ROW_SUMS <= C; i += TTN_ROW_SUMS) {
#pragma omp simd
        for (int j = 0; j < TTN_ROW_SUMS; j++) {
            const real d = x[i + j] - shift;
            const real h = g[i + j] * dy[i + j];
            s[j] += d;
            sh[j] += h;
            shd[j] += h * d;
        }
    }
    for (int j = 0; i + j < C; j++) {
        const real d = x[i + j] - shift;
        const real h = g[i + j] * dy[i + j];
        s[j] += d;
        sh[j] += h;
        shd[j] += h * d;
    }
    *ret_d = ttn_row_total(s);
    *ret_h = ttn_row_total(sh);
    *ret_hd = ttn_row_total(shd);
}

/* ---- forward ---- */

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const int64_t C = c->sig->in[0].dim[1];
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    const real eps = (real)((const attributes *)c->sig->attr)->eps;
    const real *g = c->in[GAIN];
    const real *b = c->in[BIAS];
    real *mean = c->aux[0];
    real *rstd = c->aux[1];
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t t = 0; t < used; t++) {
        const real *x = (const real *)c->in[0] + t * C;
        real *y = (real *)c->out[0] + t * C; /* may be x */
        const real m = sum(C, x) / (real)C;
        real d;
        real dd;
        deviations(C, x, m, &d, &dd);
        real offset;
        const real r = ttn_layernorm_rstd(d, dd, C, eps, &offset);
        if (b) {
#pragma omp simd
            for (int64_t i = 0; i < C; i++)
                y[i] = g[i] * ttn_layernorm_normal(x[i], m, offset, r) + b[i];
        } else {
#pragma omp simd
            for (int64_t i = 0; i < C; i++)
                y[i] = g[i] * ttn_layernorm_normal(x[i], m, offset, r);
        }
        mean[t] = m;
        rstd[t] = r;
    }
    ttn_zero_rest(c, &c->sig->out[0], c->out[0]);
    ttn_zero_rest(c, &c->sig->aux[0], mean);
    ttn_zero_rest(c, &c->sig->aux[1], rstd);
    return TTN_OK;
}

/* ---- backward ---- */

static void backward_row(const ttn_call *c, int64_t t, double *dg, double *db)
{
    const int64_t C = c->sig->in[0].dim[1];
    const real *dy = (const real *)c->dout[0] + t * C;
    if (db) {
#pragma omp simd
        for (int64_t i = 0; i < C; i++)
            db[i] += dy[i];
    }
    if (!dg && !c->din[0]) return;

    const real *x = (const real *)c->in[0] + t * C;
    const real m = ((const real *)c->aux[0])[t];
    const real r = ((const real *)c->aux[1])[t];
    const real *g = c->in[GAIN]; /* read for dx only */
    real d;
    real h = 0;
    real hd = 0;
    if (c->din[0]) {
        projections(C, x, m, g, dy, &d, &h, &hd);
    } else {
        real dd;
        deviations(C, x, m, &d, &dd);
    }
    const real offset = d / (real)C;
    if (dg) {
#pragma omp simd
        for (int64_t i = 0; i < C; i++)
            dg[i] += dy[i] * ttn_layernorm_normal(x[i], m, offset, r);
    }
    if (!c->din[0]) return;

    const real acc = c->acc[0];
    real *dx = (real *)c->din[0] + t * C;
    const real mean_h = h / (real)C;
    const real mean_hn = (hd - offset * h) * r / (real)C;
#pragma omp simd
    for (int64_t i = 0; i < C; i++) {
        const real n = ttn_layernorm_normal(x[i], m, offset, r);
        dx[i] = ttn_accumulate(acc, dx[i], ttn_layernorm_grad(g[i] * dy[i], n, r, mean_h, mean_hn));
    }
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    ttn_rownorm_backward(c, 2, backward_row);
    return TTN_OK;
}

/* ---- cases ---- */

static const attributes usual = {.eps = 1e-5};
static const attributes large = {.eps = 0.5};
static const attributes zero = {.eps = 0};
static const attributes vanishing = {.eps = 1e-320};
static const attributes not_a_number = {.eps = NAN};

static const ttn_case cases[] = {
    {.about = "some rows", .used = {.rows = 6}, .in = {TTN_ROWS_OF(7), TTN_VECTOR(7), TTN_VECTOR(7)}, .attr = &usual},
    {.about = "no bias", .used = {.rows = 5}, .in = {TTN_ROWS_OF(6), TTN_VECTOR(6), TTN_LEFT_OUT}, .attr = &usual},
    {.about = "more than a vector, and a remainder",
     .used = {.rows = 4},
     .in = {TTN_ROWS_OF(37), TTN_VECTOR(37), TTN_VECTOR(37)},
     .attr = &usual},
    {.about = "width 1: n is 0",
     .used = {.rows = 3},
     .in = {TTN_ROWS_OF(1), TTN_VECTOR(1), TTN_VECTOR(1)},
     .attr = &large},
    {.about = "mean 1,000, spread 1",
     .used = {.rows = 5},
     .in = {TTN_ROWS_OF(19), TTN_VECTOR(19), TTN_VECTOR(19)},
     .range = {{999, 1001}},
     .attr = &large},
    {.about = "three lanes, rows of no sequence",
     .used = {.rows = 531, .seqs = 3},
     .span = {{0, 240}, {252, 100}, {360, 171}},
     .in = {TTN_ROWS_OF(3), TTN_VECTOR(3), TTN_VECTOR(3)},
     .attr = &large}, /* among 531 rows of 3 some have next to no spread: third derivatives beyond the step */
    {.about = "every row of the capacity",
     .used = {.rows = 480},
     .in = {TTN_ROWS_OF(2), TTN_VECTOR(2), TTN_VECTOR(2)},
     .attr = &large},
    {.about = "picks", .used = {.picks = 13}, .in = {TTN_PICKS_OF(4), TTN_VECTOR(4), TTN_VECTOR(4)}, .attr = &usual},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4), TTN_VECTOR(4), TTN_VECTOR(4)}, .attr = &usual},
    {.about = "x of one dimension",
     .used = {.rows = 6},
     .in = {{.axis = TTN_ROWS, .ndim = 1}, TTN_VECTOR(7), TTN_VECTOR(7)},
     .attr = &usual,
     .refused = "x is " TTN_REAL_NAME " (N 480), which has 1 dimensions; expected 2, (N, C)"},
    {.about = "x of integers",
     .used = {.rows = 6},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 7}}, TTN_VECTOR(7), TTN_VECTOR(7)},
     .attr = &usual,
     .refused = "x is u8 (N 480, 7), expected " TTN_REAL_NAME " numbers"},
    {.about = "a gain of another width",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_VECTOR(8), TTN_VECTOR(7)},
     .attr = &usual,
     .refused = "gain is " TTN_REAL_NAME " (8), but x has width 7; expected (7)"},
    {.about = "a bias of another width",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_VECTOR(7), TTN_VECTOR(1)},
     .attr = &usual,
     .refused = "bias is " TTN_REAL_NAME " (1), but x has width 7; expected (7)"},
    {.about = "a gain for each row",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(480), {.axis = TTN_ROWS, .ndim = 1}, TTN_VECTOR(480)},
     .attr = &usual,
     .refused = "gain is " TTN_REAL_NAME " (N 480), but x has width 480; expected (480)"},
    {.about = "a gain of two dimensions",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_MATRIX(1, 7), TTN_VECTOR(7)},
     .attr = &usual,
     .refused = "gain is " TTN_REAL_NAME " (1, 7), which has 2 dimensions; expected 1, (C)"},
    {.about = "a bias of two dimensions",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_VECTOR(7), TTN_MATRIX(1, 7)},
     .attr = &usual,
     .refused = "bias is " TTN_REAL_NAME " (1, 7), which has 2 dimensions; expected 1, (C)"},
    {.about = "no gain",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_LEFT_OUT, TTN_VECTOR(7)},
     .attr = &usual,
     .refused = "gain is nothing, expected " TTN_REAL_NAME " numbers"},
    {.about = "width 0",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(0), TTN_VECTOR(0), TTN_VECTOR(0)},
     .attr = &usual,
     .refused = "x has width 0, expected at least 1"},
    {.about = "eps 0",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_VECTOR(7), TTN_VECTOR(7)},
     .attr = &zero,
     .refused = "eps is 0, expected a number above 0"},
    {.about = "an eps that is flushed to 0",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_VECTOR(7), TTN_VECTOR(7)},
     .attr = &vanishing,
     .refused = "expected a number above 0"},
    {.about = "eps NaN",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_VECTOR(7), TTN_VECTOR(7)},
     .attr = &not_a_number,
     .refused = "eps is nan, expected a number above 0"},
};

const ttn_op ttn_op_layernorm = {
    .name = "layernorm",
    .n_in = 3,
    .n_out = 1,
    .optional = TTN_BIT(BIAS),
    .differentiable = TTN_BIT(0) | TTN_BIT(GAIN) | TTN_BIT(BIAS),
    .reads = {{.in = TTN_BIT(0) | TTN_BIT(GAIN), .aux = TTN_BIT(0) | TTN_BIT(1)},
              [GAIN] = {.in = TTN_BIT(0), .aux = TTN_BIT(0) | TTN_BIT(1)},
              [BIAS] = {0}},
    .takes = {TTN_SHARES(0)},
    .passes = {TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_layernorm(ttn_graph *g, const char *name, int x, int gain, int bias, double eps)
{
    const attributes a = {.eps = eps};
    return ttn_apply(g, "layernorm", name, &a, (const int[]){x, gain, bias});
}
