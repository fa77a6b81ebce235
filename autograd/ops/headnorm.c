/* headnorm:  of every row's every head by itself, with one gain a head: norms of queries and of keys.
 *
 *     y = g[h] n,   n = x / r,   r = sqrt(mean over the head's channels of x^2 + eps)
 *
 * x (N, H D)   g (H)   y (N, H D)   aux 0: 1 / r (N, H)
 * with p = sum over the head's channels of dy n:   dx = g[h] / r (dy - n p / D)     dg[h] = sum over rows of p
 *
 * A gain is one number, so that rotary, which turns channels of a head, may come before or after. */
#include <inttypes.h>
#include <string.h>
#include "autograd/ops.h"
#include "autograd/ops/headnorm.h"
#include "autograd/rownorm.h"

typedef ttn_headnorm_attributes attributes;

enum { GAIN = TTN_HEADNORM_GAIN };

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    const attributes *a = s->attr;
    ttn_status status = ttn_rownorm_want(s, "headnorm", a->eps, err);
    if (status == TTN_OK) status = ttn_want_shape(s, GAIN, "headnorm", "gain", "(H)", err);
    if (status != TTN_OK) return status;
    const int64_t C = s->in[0].dim[1];
    if (a->heads < 1 || C % a->heads != 0)
        return TTN_FAIL(err, TTN_EINVAL, "headnorm: x has width %" PRId64 ", which %" PRId64 " heads do not divide", C,
                        a->heads);
    const ttn_desc *gain = &s->in[GAIN];
    char text[TTN_DESC_TEXT];
    if (gain->axis != TTN_FIXED || gain->dim[0] != a->heads)
        return TTN_FAIL(err, TTN_EINVAL,
                        "headnorm: gain is %s, but there are %" PRId64 " heads; expected (%" PRId64 ")",
                        ttn_desc_print(gain, text), a->heads, a->heads);
    s->n_out = 1;
    s->out[0] = s->in[0];
    s->n_aux = 1;
    s->aux[0] = ttn_desc_of(TTN_REAL, s->in[0].axis, 2, s->in[0].dim[0], a->heads, 0);
    s->work[TTN_BACKWARD] = (size_t)(ttn_row_lanes(s->in[0].dim[0]) * a->heads) * sizeof(double);
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->out[0]);
    const double flops = (pass == TTN_FORWARD ? 3 : 7) * n;
    const double values = pass == TTN_FORWARD ? 2 : 3;
    return (ttn_cost){.done = flops, .useful = flops, .bytes = values * n * (double)sizeof(real)};
}

/* The sum of a[i] b[i]. */
static real dot(int64_t n, const real *a, const real *b)
{
    real s[TTN_ROW_SUMS] = {0};
    int64_t i = 0;
    for (; i + TTN_ROW_SUMS <= n; i += TTN_ROW_SUMS) {
#pragma omp simd
        for (int j = 0; j < TTN_ROW_SUMS; j++)
            s[j] += a[i + j] * b[i + j];
    }
    for (int j = 0; i + j < n; j++)
        s[j] += a[i + j] * b[i + j];
    return ttn_row_total(s);
}

static int64_t width_of_head(const ttn_call *c)
{
    return c->sig->in[0].dim[1] / ((const attributes *)c->sig->attr)->heads;
}

/* ---- forward ---- */

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const attributes *a = c->sig->attr;
    const int64_t H = a->heads;
    const int64_t D = width_of_head(c);
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    const real *g = c->in[GAIN];
    real *inverse = c->aux[0];
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t t = 0; t < used; t++)
        for (int64_t h = 0; h < H; h++) {
            const real *x = (const real *)c->in[0] + (t * H + h) * D;
            real *y = (real *)c->out[0] + (t * H + h) * D; /* may be x */
            const real one = ttn_headnorm_inverse(dot(D, x, x), D, (real)a->eps);
            const real factor = g[h] * one;
#pragma omp simd
            for (int64_t i = 0; i < D; i++)
                y[i] = factor * x[i];
            inverse[t * H + h] = one;
        }
    ttn_zero_rest(c, &c->sig->out[0], c->out[0]);
    ttn_zero_rest(c, &c->sig->aux[0], inverse);
    return TTN_OK;
}

/* ---- backward ---- */

/* dx of row t, and what the row adds to dg (H); NULL: not wanted. dx comes last, since it may be dy. */
static void backward_row(const ttn_call *c, int64_t t, double *dg)
{
    const int64_t H = ((const attributes *)c->sig->attr)->heads;
    const int64_t D = width_of_head(c);
    const real acc = c->acc[0];
    for (int64_t h = 0; h < H; h++) {
        const real *x = (const real *)c->in[0] + (t * H + h) * D;
        const real *dy = (const real *)c->dout[0] + (t * H + h) * D;
        const real inverse = ((const real *)c->aux[0])[t * H + h];
        const real p = dot(D, dy, x) * inverse;
        if (dg) dg[h] += (double)p;
        if (!c->din[0]) continue;
        real *dx = (real *)c->din[0] + (t * H + h) * D;
        const real factor = ((const real *)c->in[GAIN])[h] * inverse; /* the gain is read for dx only */
        const real mean = p / (real)D;
#pragma omp simd
        for (int64_t i = 0; i < D; i++)
            dx[i] = ttn_accumulate(acc, dx[i], ttn_headnorm_grad(dy[i], x[i], inverse, factor, mean));
    }
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const int64_t H = ((const attributes *)c->sig->attr)->heads;
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    const int64_t capacity = c->sig->in[0].dim[0];
    const int lanes = ttn_row_lanes(capacity);
    double *part = c->din[GAIN] ? c->work : NULL; /* (lanes, H) */
    if (!part && !c->din[0]) return TTN_OK;
#pragma omp parallel for num_threads(c->on->n_thread) schedule(dynamic)
    for (int l = 0; l < lanes; l++) {
        double *dg = part ? part + l * H : NULL;
        if (dg) memset(dg, 0, (size_t)H * sizeof *dg);
        int64_t first;
        int64_t end;
        ttn_row_lane(capacity, used, l, &first, &end);
        for (int64_t t = first; t < end; t++)
            backward_row(c, t, dg);
    }
    if (c->din[0] && c->acc[0] == 0) ttn_zero_rest(c, &c->sig->in[0], c->din[0]);
    real *dgain = c->din[GAIN];
    for (int64_t h = 0; h < H && part; h++) {
        double sum = 0;
        for (int l = 0; l < lanes; l++)
            sum += part[l * H + h];
        dgain[h] = ttn_accumulate(c->acc[GAIN], dgain[h], (real)sum);
    }
    return TTN_OK;
}

/* ---- cases ---- */

static const attributes two_heads = {.heads = 2, .eps = 1e-6};
static const attributes one_head = {.heads = 1, .eps = 1e-6};
static const attributes large = {.heads = 3, .eps = 0.5}; /* among many rows some are next to 0 */
static const attributes no_heads = {.heads = 0, .eps = 1e-6};
static const attributes negative = {.heads = 2, .eps = -1e-6};

static const ttn_case cases[] = {
    {.about = "some rows, two heads", .used = {.rows = 6}, .in = {TTN_ROWS_OF(14), TTN_VECTOR(2)}, .attr = &two_heads},
    {.about = "one head, more than a vector and a remainder",
     .used = {.rows = 4},
     .in = {TTN_ROWS_OF(37), TTN_VECTOR(1)},
     .attr = &one_head},
    {.about = "heads of 24, as in ESM-2 of 35M",
     .used = {.rows = 5},
     .in = {TTN_ROWS_OF(48), TTN_VECTOR(2)},
     .attr = &two_heads},
    {.about = "heads of one channel", .used = {.rows = 3}, .in = {TTN_ROWS_OF(3), TTN_VECTOR(3)}, .attr = &large},
    {.about = "values of 1,000",
     .used = {.rows = 5},
     .in = {TTN_ROWS_OF(10), TTN_VECTOR(2)},
     .range = {{999, 1001}},
     .attr = &two_heads},
    {.about = "three lanes, rows of no sequence",
     .used = {.rows = 531, .seqs = 3},
     .span = {{0, 240}, {252, 100}, {360, 171}},
     .in = {TTN_ROWS_OF(6), TTN_VECTOR(3)},
     .attr = &large},
    {.about = "every row of the capacity",
     .used = {.rows = 480},
     .in = {TTN_ROWS_OF(6), TTN_VECTOR(3)},
     .attr = &large},
    {.about = "picks", .used = {.picks = 13}, .in = {TTN_PICKS_OF(4), TTN_VECTOR(2)}, .attr = &two_heads},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4), TTN_VECTOR(2)}, .attr = &two_heads},
    {.about = "x of one dimension",
     .used = {.rows = 6},
     .in = {{.axis = TTN_ROWS, .ndim = 1}, TTN_VECTOR(2)},
     .attr = &two_heads,
     .refused = "x is " TTN_REAL_NAME " (N 480), which has 1 dimensions; expected 2, (N, C)"},
    {.about = "a gain for each channel",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(14), TTN_VECTOR(14)},
     .attr = &two_heads,
     .refused = "gain is " TTN_REAL_NAME " (14), but there are 2 heads; expected (2)"},
    {.about = "a gain for each row",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(14), {.axis = TTN_ROWS, .ndim = 1}},
     .attr = &two_heads,
     .refused = "gain is " TTN_REAL_NAME " (N 480), but there are 2 heads; expected (2)"},
    {.about = "a gain of two dimensions",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(14), TTN_MATRIX(1, 2)},
     .attr = &two_heads,
     .refused = "gain is " TTN_REAL_NAME " (1, 2), which has 2 dimensions; expected 1, (H)"},
    {.about = "heads that do not divide the width",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_VECTOR(2)},
     .attr = &two_heads,
     .refused = "x has width 7, which 2 heads do not divide"},
    {.about = "no heads",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_VECTOR(0)},
     .attr = &no_heads,
     .refused = "x has width 7, which 0 heads do not divide"},
    {.about = "eps below 0",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(14), TTN_VECTOR(2)},
     .attr = &negative,
     .refused = "eps is -1e-06, expected a number above 0"},
};

const ttn_op ttn_op_headnorm = {
    .name = "headnorm",
    .n_in = 2,
    .n_out = 1,
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

int ttn_headnorm(ttn_graph *g, const char *name, int x, int gain, int64_t heads, double eps)
{
    const attributes a = {.heads = heads, .eps = eps};
    return ttn_apply(g, "headnorm", name, &a, (const int[]){x, gain});
}
