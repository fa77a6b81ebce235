/* linear:  y = x W^T + b.   x (N, I)   W (O, I)   b (O) or none   y (N, O)
 * dx = dy W     dW = dy^T x     db = sum over rows of dy */
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "core/gemm.h"

enum { WEIGHT = 1, BIAS = 2 };

typedef struct {
    int64_t N, I, O;
} dims;

static dims dims_of(const ttn_sig *s)
{
    return (dims){.N = s->in[0].dim[0], .I = s->in[WEIGHT].dim[1], .O = s->in[WEIGHT].dim[0]};
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_shape(s, 0, "linear", "x", "(N, I)", err);
    if (status == TTN_OK) status = ttn_want_shape(s, WEIGHT, "linear", "weight", "(O, I)", err);
    if (status == TTN_OK && s->in[BIAS].ndim >= 0) status = ttn_want_shape(s, BIAS, "linear", "bias", "(O)", err);
    if (status != TTN_OK) return status;
    const dims d = dims_of(s);
    char text[TTN_DESC_TEXT];
    if (s->in[WEIGHT].axis != TTN_FIXED || d.I < 1 || d.O < 1)
        return TTN_FAIL(err, TTN_EINVAL, "linear: weight is %s, expected (O, I) with both at least 1",
                        ttn_desc_print(&s->in[WEIGHT], text));
    if (d.I > INT_MAX || d.O > INT_MAX)
        return TTN_FAIL(err, TTN_EINVAL, "linear: weight is %s, and BLAS counts to %d",
                        ttn_desc_print(&s->in[WEIGHT], text), INT_MAX);
    if (s->in[0].dim[1] != d.I)
        return TTN_FAIL(err, TTN_EINVAL, "linear: x has width %" PRId64 ", but weight is %s and takes %" PRId64,
                        s->in[0].dim[1], ttn_desc_print(&s->in[WEIGHT], text), d.I);
    if (s->in[BIAS].ndim >= 0 && (s->in[BIAS].axis != TTN_FIXED || s->in[BIAS].dim[0] != d.O))
        return TTN_FAIL(err, TTN_EINVAL,
                        "linear: bias is %s, but weight gives width %" PRId64 "; expected (%" PRId64 ")",
                        ttn_desc_print(&s->in[BIAS], text), d.O, d.O);
    s->n_out = 1;
    s->out[0] = ttn_desc_of(TTN_REAL, s->in[0].axis, 2, d.N, d.O, 0);
    /* one after the other */
    s->work[TTN_BACKWARD] = larger(ttn_gemm_wgrad_work(d.N, d.O, d.I), ttn_sum_rows_work(d.N, d.O));
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const dims d = dims_of(s);
    const double N = (double)d.N;
    const double I = (double)d.I;
    const double O = (double)d.O;
    const double products = pass == TTN_FORWARD ? 1 : 2; /* dx and dW */
    const double flops = products * 2 * N * I * O;
    return (ttn_cost){
        .done = flops, .useful = flops, .bytes = products * (N * I + I * O + N * O) * (double)sizeof(real)};
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const dims d = dims_of(c->sig);
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    const real *b = c->in[BIAS];
    real *y = c->out[0];
    if (b) {
#pragma omp parallel for num_threads(c->on->n_thread)
        for (int64_t t = 0; t < used; t++)
            memcpy(y + t * d.O, b, (size_t)d.O * sizeof *y);
        ttn_zero_rest(c, &c->sig->out[0], y);
    }
    ttn_gemm_rows(c->on->n_thread, TTN_T, d.N, used, d.O, d.I, ttn_in(c->in[0], d.I), ttn_in(c->in[WEIGHT], d.I),
                  b ? 1 : 0, ttn_out(y, d.O));
    return TTN_OK;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const dims d = dims_of(c->sig);
    const int64_t used = ttn_used(c->feed, &c->sig->in[0]);
    const int n_thread = c->on->n_thread;
    const ttn_mat_in dy = ttn_in(c->dout[0], d.O);
    if (c->din[0])
        ttn_gemm_rows(n_thread, TTN_N, d.N, used, d.I, d.O, dy, ttn_in(c->in[WEIGHT], d.I), (double)c->acc[0],
                      ttn_out(c->din[0], d.I));
    if (c->din[WEIGHT])
        ttn_gemm_wgrad(n_thread, d.N, used, d.O, d.I, dy, ttn_in(c->in[0], d.I), (double)c->acc[WEIGHT],
                       ttn_out(c->din[WEIGHT], d.I), c->work);
    if (c->din[BIAS]) ttn_sum_rows(n_thread, d.N, used, d.O, dy, (double)c->acc[BIAS], c->din[BIAS], c->work);
    return TTN_OK;
}

static const ttn_case cases[] = {
    {.about = "some rows", .used = {.rows = 6}, .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 4), TTN_VECTOR(5)}},
    {.about = "no bias", .used = {.rows = 6}, .in = {TTN_ROWS_OF(3), TTN_MATRIX(7, 3), TTN_LEFT_OUT}},
    {.about = "one row, width 1", .used = {.rows = 1}, .in = {TTN_ROWS_OF(1), TTN_MATRIX(1, 1), TTN_VECTOR(1)}},
    {.about = "two tiles, the second in part",
     .used = {.rows = 483},
     .in = {TTN_ROWS_OF(2), TTN_MATRIX(3, 2), TTN_VECTOR(3)}},
    {.about = "three lanes, ten tiles",
     .used = {.rows = 4319},
     .cap = {.rows = 4800},
     .in = {TTN_ROWS_OF(2), TTN_MATRIX(3, 2), TTN_VECTOR(3)}},
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(3), TTN_MATRIX(4, 3), TTN_VECTOR(4)}},
    {.about = "every row of the capacity",
     .used = {.rows = 480},
     .in = {TTN_ROWS_OF(9), TTN_MATRIX(2, 9), TTN_VECTOR(2)}},
    {.about = "picks", .used = {.picks = 13}, .in = {TTN_PICKS_OF(4), TTN_MATRIX(6, 4), TTN_VECTOR(6)}},
    {.about = "one row a sequence",
     .used = {.rows = 24, .seqs = 2},
     .cap = {.rows = 480, .seqs = 5},
     .span = {{0, 5}, {12, 7}},
     .in = {{.axis = TTN_SEQS, .ndim = 2, .dim = {0, 4}}, TTN_MATRIX(3, 4), TTN_VECTOR(3)}},
    {.about = "a product of weights", .in = {TTN_MATRIX(6, 4), TTN_MATRIX(6, 4), TTN_LEFT_OUT}},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 4), TTN_VECTOR(5)}},
    {.about = "x of one dimension",
     .used = {.rows = 6},
     .in = {{.axis = TTN_ROWS, .ndim = 1}, TTN_MATRIX(5, 4), TTN_VECTOR(5)},
     .refused = "x is " TTN_REAL_NAME " (N 480), which has 1 dimensions; expected 2, (N, I)"},
    {.about = "x of tokens",
     .used = {.rows = 6},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 4}}, TTN_MATRIX(5, 4), TTN_VECTOR(5)},
     .refused = "x is u8 (N 480, 4), expected " TTN_REAL_NAME " numbers"},
    {.about = "widths that differ",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(4, 5), TTN_VECTOR(4)},
     .refused = "x has width 4, but weight is " TTN_REAL_NAME " (4, 5) and takes 5"},
    {.about = "a weight of one dimension",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_VECTOR(4), TTN_LEFT_OUT},
     .refused = "weight is " TTN_REAL_NAME " (4), which has 1 dimensions; expected 2, (O, I)"},
    {.about = "a weight of rows",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_ROWS_OF(4), TTN_LEFT_OUT},
     .refused = "weight is " TTN_REAL_NAME " (N 480, 4), expected (O, I) with both at least 1"},
    {.about = "a weight without outputs",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(0, 4), TTN_VECTOR(0)},
     .refused = "weight is " TTN_REAL_NAME " (0, 4), expected (O, I) with both at least 1"},
    {.about = "a weight that BLAS cannot count",
     .used = {.rows = 6},
     .in = {{.axis = TTN_ROWS, .ndim = 2, .dim = {0, (int64_t)INT_MAX + 1}},
            TTN_MATRIX(1, (int64_t)INT_MAX + 1),
            TTN_LEFT_OUT},
     .refused = "BLAS counts to 2147483647"},
    {.about = "no weight",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_LEFT_OUT, TTN_VECTOR(4)},
     .refused = "weight is nothing, expected " TTN_REAL_NAME " numbers"},
    {.about = "a bias as wide as x",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 4), TTN_VECTOR(4)},
     .refused = "bias is " TTN_REAL_NAME " (4), but weight gives width 5; expected (5)"},
    {.about = "a bias of two dimensions",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(5, 4), TTN_MATRIX(1, 5)},
     .refused = "bias is " TTN_REAL_NAME " (1, 5), which has 2 dimensions; expected 1, (O)"},
};

const ttn_op ttn_op_linear = {
    .name = "linear",
    .n_in = 3,
    .n_out = 1,
    .optional = TTN_BIT(BIAS),
    .differentiable = TTN_BIT(0) | TTN_BIT(WEIGHT) | TTN_BIT(BIAS),
    .reads = {{.in = TTN_BIT(WEIGHT)}, [WEIGHT] = {.in = TTN_BIT(0)}, [BIAS] = {0}},
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_linear(ttn_graph *g, const char *name, int x, int weight, int bias)
{
    return ttn_apply(g, "linear", name, NULL, (const int[]){x, weight, bias});
}
