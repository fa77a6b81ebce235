/* rotary:  each pair (a, b) of a head's channels turned by its angle.   x, y (N, H D)   f (D/2), a state, or none
 *
 *     y_a = x_a cos - x_b sin     y_b = x_b cos + x_a sin     angle = position f_j,   f_j = base^(-2j/D) unless given
 *     dx = dy turned by -angle
 *
 * Halves: pair j is channels (j, j + D/2).   Interleaved: channels (2j, 2j + 1).
 * (Su et al. 2021, RoFormer. q_t . k_s then depends on t - s alone.)
 *
 * Positions count from each sequence's own start. The angle is a product in double, and its sine and cosine are rounded
 * to a real at the end: a float angle is off by 0.03 at position 10^6. Sines and cosines of a row are made once for its H
 * heads, as it comes. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "autograd/ops/places.h"
#include "autograd/ops/rotary.h"
#include "autograd/ops/turn.h"

enum { FREQUENCIES = 1 };

typedef ttn_rotary_attributes attributes;

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_shape(s, 0, "rotary", "x", "(N, H D)", err);
    if (status == TTN_OK && s->in[FREQUENCIES].ndim >= 0)
        status = ttn_want_shape(s, FREQUENCIES, "rotary", "frequencies", "(D/2)", err);
    if (status != TTN_OK) return status;
    const attributes *a = s->attr;
    char text[TTN_DESC_TEXT];
    if (s->in[0].axis != TTN_ROWS)
        return TTN_FAIL(err, TTN_EINVAL, "rotary: x is %s, expected rows of sequences, (N, H D)",
                        ttn_desc_print(&s->in[0], text));
    const int64_t width = s->in[0].dim[1];
    if (a->heads < 1 || width < 1 || width % a->heads != 0)
        return TTN_FAIL(err, TTN_EINVAL, "rotary: x has width %" PRId64 ", which %" PRId64 " heads cannot share", width,
                        a->heads);
    const int64_t D = width / a->heads;
    if (D % 2 != 0)
        return TTN_FAIL(err, TTN_EINVAL,
                        "rotary: heads are %" PRId64 " wide, expected an even width: channels turn in pairs", D);
    if (a->form != TTN_ROTARY_HALVES && a->form != TTN_ROTARY_INTERLEAVED)
        return TTN_FAIL(err, TTN_EINVAL, "rotary: %" PRId64 " is no form of pairs", a->form);
    if (s->in[FREQUENCIES].ndim >= 0) {
        if (s->in[FREQUENCIES].axis != TTN_FIXED || s->in[FREQUENCIES].dim[0] != D / 2)
            return TTN_FAIL(err, TTN_EINVAL,
                            "rotary: frequencies are %s, but heads are %" PRId64 " wide; expected (%" PRId64 ")",
                            ttn_desc_print(&s->in[FREQUENCIES], text), D, D / 2);
    } else if (!(isfinite(a->base) && a->base > 0)) {
        return TTN_FAIL(err, TTN_EINVAL, "rotary: base is %g, expected a number above 0 (10,000 is usual)", a->base);
    }
    s->n_out = 1;
    s->out[0] = s->in[0];
    for (int pass = TTN_FORWARD; pass <= TTN_BACKWARD; pass++) {
        s->work[pass] = (size_t)(D / 2) * sizeof(double); /* frequencies */
        s->work_thread[pass] = (size_t)D * sizeof(real);  /* cosines and sines of a row */
    }
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    (void)pass;
    const attributes *a = s->attr;
    const double n = (double)ttn_desc_numel(&s->out[0]);
    const double flops = 3 * n + 35 * n / (double)(2 * a->heads); /* 35: a sine and a cosine */
    return (ttn_cost){.done = flops, .useful = flops, .bytes = 2 * n * (double)sizeof(real)};
}

static void make_frequencies(const ttn_call *c, int64_t half, double *frequency)
{
    const real *given = c->in[FREQUENCIES];
    for (int64_t j = 0; j < half; j++)
        frequency[j] =
            given ? (double)given[j] : ttn_rotary_frequency(((const attributes *)c->sig->attr)->base, j, half);
}

/* of all pairs of a head at this position; sign -1 turns back */
static void make_turns(int64_t half, const double *frequency, double position, double sign, real *restrict cosine,
                       real *restrict sine)
{
#pragma omp simd
    for (int64_t j = 0; j < half; j++) {
        double s;
        double k;
        ttn_turn(position * frequency[j], &s, &k);
        cosine[j] = (real)k;
        sine[j] = (real)(sign * s);
    }
}

/* to = acc to + x turned; `to` may be x. Inlined, so that acc 0 and the form cost nothing inside the loops. */
static inline void turn_halves(int64_t half, const real *cosine, const real *sine, const real *x, real *to, real acc)
{
#pragma omp simd
    for (int64_t j = 0; j < half; j++) {
        const real a = x[j];
        const real b = x[j + half];
        to[j] = ttn_accumulate(acc, to[j], ttn_rotary_a(a, b, cosine[j], sine[j]));
        to[j + half] = ttn_accumulate(acc, to[j + half], ttn_rotary_b(a, b, cosine[j], sine[j]));
    }
}

static inline void turn_interleaved(int64_t half, const real *cosine, const real *sine, const real *x, real *to,
                                    real acc)
{
#pragma omp simd
    for (int64_t j = 0; j < half; j++) {
        const real a = x[2 * j];
        const real b = x[2 * j + 1];
        to[2 * j] = ttn_accumulate(acc, to[2 * j], ttn_rotary_a(a, b, cosine[j], sine[j]));
        to[2 * j + 1] = ttn_accumulate(acc, to[2 * j + 1], ttn_rotary_b(a, b, cosine[j], sine[j]));
    }
}

static inline void turn_row(const attributes *a, int64_t half, const real *cosine, const real *sine, const real *x,
                            real *to, real acc)
{
    if (a->form == TTN_ROTARY_HALVES) {
        for (int64_t h = 0; h < a->heads; h++)
            turn_halves(half, cosine, sine, x + 2 * half * h, to + 2 * half * h, acc);
    } else {
        for (int64_t h = 0; h < a->heads; h++)
            turn_interleaved(half, cosine, sine, x + 2 * half * h, to + 2 * half * h, acc);
    }
}

enum { BLOCK_ROWS = 16 };

typedef struct {
    const real *x;
    real *to;
    real acc;
    double sign;
} job;

static void turn_rows(const ttn_call *c, const job *b, ttn_pass pass, int64_t first, int64_t end)
{
    const attributes *a = c->sig->attr;
    const int64_t width = c->sig->in[0].dim[1];
    const int64_t half = width / a->heads / 2;
    const double *frequency = c->work;
    real *cosine = ttn_thread_work(c, pass, omp_get_thread_num());
    real *sine = cosine + half;
    for (int64_t t = first; t < end;) {
        const ttn_stretch s = ttn_stretch_at(c->feed, t, end);
        if (s.seq < 0) {
            if (b->acc == 0) memset(b->to + t * width, 0, (size_t)(s.n * width) * sizeof *b->to);
            t += s.n;
            continue;
        }
        for (int64_t i = 0; i < s.n; i++, t++) {
            make_turns(half, frequency, (double)(s.position + i), b->sign, cosine, sine);
            if (b->acc == 0)
                turn_row(a, half, cosine, sine, b->x + t * width, b->to + t * width, 0);
            else
                turn_row(a, half, cosine, sine, b->x + t * width, b->to + t * width, 1);
        }
    }
}

static void turn(const ttn_call *c, const job *b, ttn_pass pass)
{
    make_frequencies(c, c->sig->in[0].dim[1] / ((const attributes *)c->sig->attr)->heads / 2, c->work);
    const int64_t used = c->feed->used.rows;
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t first = 0; first < used; first += BLOCK_ROWS)
        turn_rows(c, b, pass, first, first + BLOCK_ROWS < used ? first + BLOCK_ROWS : used);
    if (b->acc == 0) ttn_zero_rest(c, &c->sig->out[0], b->to);
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const job b = {.x = c->in[0], .to = c->out[0], .sign = 1};
    turn(c, &b, TTN_FORWARD);
    return TTN_OK;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (!c->din[0]) return TTN_OK;
    const job b = {.x = c->dout[0], .to = c->din[0], .acc = c->acc[0], .sign = -1};
    turn(c, &b, TTN_BACKWARD);
    return TTN_OK;
}

/* ---- cases ---- */

static const attributes halves = {.heads = 2, .base = 10000, .form = TTN_ROTARY_HALVES};
static const attributes interleaved = {.heads = 2, .base = 10000, .form = TTN_ROTARY_INTERLEAVED};
static const attributes one_head = {.heads = 1, .base = 100, .form = TTN_ROTARY_HALVES};
static const attributes one_head_interleaved = {.heads = 1, .base = 100, .form = TTN_ROTARY_INTERLEAVED};
static const attributes no_heads = {.heads = 0, .base = 10000};
static const attributes no_base = {.heads = 2, .base = 0};
static const attributes no_form = {.heads = 2, .base = 10000, .form = 2};

static const ttn_case cases[] = {
    {.about = "halves, without sequences", .used = {.rows = 7}, .in = {TTN_ROWS_OF(12), TTN_LEFT_OUT}, .attr = &halves},
    {.about = "halves, two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(8), TTN_LEFT_OUT},
     .attr = &halves},
    {.about = "interleaved, two sequences, rows of none on all sides",
     .used = {.rows = 24, .seqs = 2},
     .span = {{2, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(12), TTN_LEFT_OUT},
     .attr = &interleaved},
    {.about = "given frequencies", .used = {.rows = 6}, .in = {TTN_ROWS_OF(12), TTN_VECTOR(3)}, .attr = &halves},
    {.about = "given frequencies, interleaved",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(12), TTN_VECTOR(3)},
     .attr = &interleaved},
    {.about = "one row, one pair", .used = {.rows = 1}, .in = {TTN_ROWS_OF(2), TTN_LEFT_OUT}, .attr = &one_head},
    {.about = "more than a vector, and a remainder",
     .used = {.rows = 3},
     .in = {TTN_ROWS_OF(74), TTN_LEFT_OUT},
     .attr = &one_head},
    {.about = "the same, interleaved",
     .used = {.rows = 3},
     .in = {TTN_ROWS_OF(74), TTN_LEFT_OUT},
     .attr = &one_head_interleaved},
    {.about = "several tiles",
     .used = {.rows = 531, .seqs = 3},
     .cap = {.rows = 960, .seqs = 4},
     .span = {{0, 240}, {252, 1}, {360, 171}},
     .in = {TTN_ROWS_OF(4), TTN_LEFT_OUT},
     .attr = &halves},
    {.about = "every row of the capacity",
     .used = {.rows = 480},
     .in = {TTN_ROWS_OF(2), TTN_LEFT_OUT},
     .attr = &one_head},
    {.about = "no rows", .cap = {.rows = 480}, .in = {TTN_ROWS_OF(4), TTN_LEFT_OUT}, .attr = &halves},
    {.about = "an odd width of heads",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(6), TTN_LEFT_OUT},
     .attr = &halves,
     .refused = "heads are 3 wide, expected an even width: channels turn in pairs"},
    {.about = "a width that heads cannot share",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(7), TTN_LEFT_OUT},
     .attr = &halves,
     .refused = "x has width 7, which 2 heads cannot share"},
    {.about = "no heads",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(8), TTN_LEFT_OUT},
     .attr = &no_heads,
     .refused = "x has width 8, which 0 heads cannot share"},
    {.about = "width 0",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(0), TTN_LEFT_OUT},
     .attr = &halves,
     .refused = "x has width 0, which 2 heads cannot share"},
    {.about = "picks, which have no positions",
     .used = {.picks = 6},
     .in = {TTN_PICKS_OF(8), TTN_LEFT_OUT},
     .attr = &halves,
     .refused = "x is " TTN_REAL_NAME " (R 480, 8), expected rows of sequences, (N, H D)"},
    {.about = "x of integers",
     .used = {.rows = 6},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 8}}, TTN_LEFT_OUT},
     .attr = &halves,
     .refused = "x is u8 (N 480, 8), expected " TTN_REAL_NAME " numbers"},
    {.about = "frequencies for every channel",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(8), TTN_VECTOR(4)},
     .attr = &halves,
     .refused = "frequencies are " TTN_REAL_NAME " (4), but heads are 4 wide; expected (2)"},
    {.about = "frequencies of two dimensions",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(8), TTN_MATRIX(1, 2)},
     .attr = &halves,
     .refused = "frequencies is " TTN_REAL_NAME " (1, 2), which has 2 dimensions; expected 1, (D/2)"},
    {.about = "base 0",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(8), TTN_LEFT_OUT},
     .attr = &no_base,
     .refused = "base is 0, expected a number above 0"},
    {.about = "no form",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(8), TTN_LEFT_OUT},
     .attr = &no_form,
     .refused = "2 is no form of pairs"},
};

const ttn_op ttn_op_rotary = {
    .name = "rotary",
    .n_in = 2,
    .n_out = 1,
    .optional = TTN_BIT(FREQUENCIES),
    .differentiable = TTN_BIT(0),
    .reads = {{.in = TTN_BIT(FREQUENCIES)}},
    .takes = {TTN_SHARES(0)},
    .passes = {TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_rotary(ttn_graph *g, const char *name, int x, int frequencies, int64_t heads, double base, ttn_rotary_form form)
{
    const attributes a = {.heads = heads, .base = base, .form = form};
    return ttn_apply(g, "rotary", name, &a, (const int[]){x, frequencies});
}
