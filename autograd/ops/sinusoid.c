/* sinusoid:  y[t] = x[t] + S[p],   p = t's position in its sequence + offset.   x, y (N, C)   dx = dy
 *
 * Interleaved (Vaswani et al. 2017, section 3.5):
 *     S[p][2j] = sin(p f_j)   S[p][2j + 1] = cos(p f_j)   f_j = 10000^(-2j/C)
 * Halves (tensor2tensor, fairseq, the first ESM-1), with K = floor(C/2); of an odd C the last channel gets 0:
 *     S[p][j] = sin(p f_j)    S[p][j + K] = cos(p f_j)    f_j = 10000^(-j/(K - 1)), 1 where K is 1
 *
 * Nothing is learned and nothing stored: a row's numbers are made in double from its position, so that any length is
 * served, and rounded at the end. Rows of no sequence: zeros. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "autograd/ops/places.h"
#include "autograd/ops/sinusoid.h"
#include "autograd/ops/turn.h"

typedef ttn_sinusoid_attributes attributes;

static int64_t pairs_of(const ttn_sig *s)
{
    return ttn_sinusoid_pairs(s->attr, s->in[0].dim[1]);
}

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_shape(s, 0, "sinusoid", "x", "(N, C)", err);
    if (status != TTN_OK) return status;
    char text[TTN_DESC_TEXT];
    if (s->in[0].axis != TTN_ROWS || s->in[0].dim[1] < 1)
        return TTN_FAIL(err, TTN_EINVAL, "sinusoid: x is %s, expected rows of sequences, (N, C) with C at least 1",
                        ttn_desc_print(&s->in[0], text));
    const attributes *a = s->attr;
    if (a->form != TTN_SINUSOID_INTERLEAVED && a->form != TTN_SINUSOID_HALVES)
        return TTN_FAIL(err, TTN_EINVAL, "sinusoid: %" PRId64 " is no form", a->form);
    if (a->offset < 0)
        return TTN_FAIL(err, TTN_EINVAL, "sinusoid: offset is %" PRId64 ", expected at least 0", a->offset);
    s->n_out = 1;
    s->out[0] = s->in[0];
    s->work[TTN_FORWARD] = (size_t)pairs_of(s) * sizeof(double);
    s->work_thread[TTN_FORWARD] = (size_t)pairs_of(s) * 2 * sizeof(real);
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->out[0]);
    const double flops = pass == TTN_FORWARD ? n + 35 * n / 2 : 0; /* 35: a sine and a cosine */
    return (ttn_cost){.done = flops, .useful = flops, .bytes = 2 * n * (double)sizeof(real)};
}

static void make_frequencies(const ttn_call *c, int64_t n, double *frequency)
{
    const double steps = ttn_sinusoid_steps(c->sig->attr, c->sig->in[0].dim[1]);
    for (int64_t j = 0; j < n; j++)
        frequency[j] = ttn_sinusoid_frequency(j, steps);
}

static void make_waves(int64_t n, const double *frequency, double position, real *restrict sine, real *restrict cosine)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        double s;
        double k;
        ttn_turn(position * frequency[j], &s, &k);
        sine[j] = (real)s;
        cosine[j] = (real)k;
    }
}

static void add_interleaved(int64_t C, const real *sine, const real *cosine, const real *x, real *y)
{
    const int64_t K = C / 2;
#pragma omp simd
    for (int64_t j = 0; j < K; j++) {
        y[2 * j] = x[2 * j] + sine[j];
        y[2 * j + 1] = x[2 * j + 1] + cosine[j];
    }
    if (C % 2 != 0) y[C - 1] = x[C - 1] + sine[K];
}

static void add_halves(int64_t C, const real *sine, const real *cosine, const real *x, real *y)
{
    const int64_t K = C / 2;
#pragma omp simd
    for (int64_t j = 0; j < K; j++) {
        y[j] = x[j] + sine[j];
        y[j + K] = x[j + K] + cosine[j];
    }
    if (C % 2 != 0) y[C - 1] = x[C - 1];
}

enum { BLOCK_ROWS = 16 };

static void forward_rows(const ttn_call *c, int64_t first, int64_t end)
{
    const attributes *a = c->sig->attr;
    const int64_t C = c->sig->in[0].dim[1];
    const int64_t n = pairs_of(c->sig);
    real *sine = ttn_thread_work(c, TTN_FORWARD, omp_get_thread_num());
    real *cosine = sine + n;
    for (int64_t t = first; t < end;) {
        const ttn_stretch s = ttn_stretch_at(c->feed, t, end);
        if (s.seq < 0) {
            memset((real *)c->out[0] + t * C, 0, (size_t)(s.n * C) * sizeof(real));
            t += s.n;
            continue;
        }
        for (int64_t i = 0; i < s.n; i++, t++) {
            const real *x = (const real *)c->in[0] + t * C;
            real *y = (real *)c->out[0] + t * C; /* may be x */
            make_waves(n, c->work, (double)(s.position + i + a->offset), sine, cosine);
            if (a->form == TTN_SINUSOID_INTERLEAVED)
                add_interleaved(C, sine, cosine, x, y);
            else
                add_halves(C, sine, cosine, x, y);
        }
    }
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    make_frequencies(c, pairs_of(c->sig), c->work);
    const int64_t used = c->feed->used.rows;
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t first = 0; first < used; first += BLOCK_ROWS)
        forward_rows(c, first, first + BLOCK_ROWS < used ? first + BLOCK_ROWS : used);
    ttn_zero_rest(c, &c->sig->out[0], c->out[0]);
    return TTN_OK;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (c->din[0]) ttn_stretch_pass(c);
    return TTN_OK;
}

/* ---- cases ---- */

static const attributes interleaved = {.form = TTN_SINUSOID_INTERLEAVED};
static const attributes halves = {.form = TTN_SINUSOID_HALVES};
static const attributes esm = {.offset = 2, .form = TTN_SINUSOID_HALVES};
static const attributes below = {.offset = -1};
static const attributes no_form = {.form = 2};

static const ttn_case cases[] = {
    {.about = "interleaved, without sequences", .used = {.rows = 7}, .in = {TTN_ROWS_OF(6)}, .attr = &interleaved},
    {.about = "halves, two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(8)},
     .attr = &halves},
    {.about = "halves with an offset, rows of none on all sides",
     .used = {.rows = 24, .seqs = 2},
     .span = {{2, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(10)},
     .attr = &esm},
    {.about = "an odd width, interleaved", .used = {.rows = 5}, .in = {TTN_ROWS_OF(37)}, .attr = &interleaved},
    {.about = "an odd width, halves", .used = {.rows = 5}, .in = {TTN_ROWS_OF(37)}, .attr = &halves},
    {.about = "one row, width 1", .used = {.rows = 1}, .in = {TTN_ROWS_OF(1)}, .attr = &interleaved},
    {.about = "width 1, halves", .used = {.rows = 3}, .in = {TTN_ROWS_OF(1)}, .attr = &halves},
    {.about = "width 2, halves: one frequency", .used = {.rows = 3}, .in = {TTN_ROWS_OF(2)}, .attr = &halves},
    {.about = "several tiles",
     .used = {.rows = 531, .seqs = 3},
     .cap = {.rows = 960, .seqs = 4},
     .span = {{0, 240}, {252, 1}, {360, 171}},
     .in = {TTN_ROWS_OF(3)},
     .attr = &interleaved},
    {.about = "every row of the capacity", .used = {.rows = 480}, .in = {TTN_ROWS_OF(2)}, .attr = &interleaved},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4)}, .attr = &halves},
    {.about = "x of one dimension",
     .used = {.rows = 7},
     .in = {{.axis = TTN_ROWS, .ndim = 1}},
     .attr = &halves,
     .refused = "x is " TTN_REAL_NAME " (N 480), which has 1 dimensions; expected 2, (N, C)"},
    {.about = "x of integers",
     .used = {.rows = 7},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 3}}},
     .attr = &halves,
     .refused = "x is u8 (N 480, 3), expected " TTN_REAL_NAME " numbers"},
    {.about = "picks, which have no positions",
     .used = {.picks = 7},
     .in = {TTN_PICKS_OF(3)},
     .attr = &halves,
     .refused = "x is " TTN_REAL_NAME " (R 480, 3), expected rows of sequences"},
    {.about = "width 0",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(0)},
     .attr = &halves,
     .refused = "x is " TTN_REAL_NAME " (N 480, 0), expected rows of sequences, (N, C) with C at least 1"},
    {.about = "a negative offset",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3)},
     .attr = &below,
     .refused = "offset is -1, expected at least 0"},
    {.about = "no form", .used = {.rows = 7}, .in = {TTN_ROWS_OF(3)}, .attr = &no_form, .refused = "2 is no form"},
};

const ttn_op ttn_op_sinusoid = {
    .name = "sinusoid",
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

int ttn_sinusoid(ttn_graph *g, const char *name, int x, int64_t offset, ttn_sinusoid_form form)
{
    const attributes a = {.offset = offset, .form = form};
    return ttn_apply(g, "sinusoid", name, &a, (const int[]){x});
}
