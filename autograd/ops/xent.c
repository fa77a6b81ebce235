/* xent:  softmax cross-entropy.   logits x (R, V)   target t (R), integers   weight w (R), real, or none: 1
 *
 *     p = softmax(x[r])    q = (1 - eps) onehot(t[r]) + eps / V      eps: label smoothing
 *     loss[r] = - sum over classes of q log p   = log s - (1 - eps) (x[r, t] - m) - eps mean(x[r] - m)
 *     m = max(x[r])    s = sum of exp(x[r] - m)
 * out 0: sum over rows that count of w loss, a scalar.   out 1: loss (R), 0 in rows that do not count
 * aux 0: m (R)    aux 1: 1 / s (R), 0 in rows that do not count
 * dx[r] = (w dout0 + dout1[r]) (p - q),   p = exp(x[r] - m) / s,   0 in rows that do not count
 *
 * Rows that count: those of autograd/kernel.h whose target is not the ignore label. In a row of no sequence the target is
 * not looked at; in all others it is the ignore label or a class.
 *
 * m and s are kept apart: log-sum-exp in one number, m + log s, would lose 5e-4 of p in f32 at logits of 10^4, and their
 * difference with x loses nothing. p = 0 where a logit is -inf: a class that is impossible. If that is the target (or eps
 * is not 0) the loss is inf, as it should be; its gradient is finite. NaN or +inf among the logits, or nothing but -inf,
 * makes the row's loss and gradient NaN. A row of weight 0 adds nothing to sum and gradient even then.
 *
 * Statistics: the sum; the sum of weights of the rows that count; and of those among them that are correct, which means that
 * no class has a larger logit than the target, and none before it an equal one. A loss is a sum, never a mean: see
 * autograd/ops/mse.c. */
#include <inttypes.h>
#include <string.h>
#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "autograd/ops/xent.h"
#include "core/vecmath.h"

typedef ttn_xent_attributes attributes;

enum { LOGITS = TTN_XENT_LOGITS, TARGET = TTN_XENT_TARGET, WEIGHT = TTN_XENT_WEIGHT };
enum { SUM = TTN_XENT_SUM, COUNT = TTN_XENT_COUNT, CORRECT = TTN_XENT_CORRECT, N_STAT = TTN_XENT_N_STAT };
enum { OUT = TTN_XENT_OUT, WRONG = TTN_XENT_WRONG, RIGHT = TTN_XENT_RIGHT };

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_shape(s, LOGITS, "xent", "logits", "(R, V)", err);
    if (status != TTN_OK) return status;
    const ttn_desc *x = &s->in[LOGITS];
    char text[TTN_DESC_TEXT];
    char logits[TTN_DESC_TEXT];
    if (x->dim[1] < 1) return TTN_FAIL(err, TTN_EINVAL, "xent: logits have 0 classes, expected at least 1");
    const ttn_desc *t = &s->in[TARGET];
    if (t->ndim != 1 || (t->type != TTN_U8 && t->type != TTN_I32 && t->type != TTN_I64))
        return TTN_FAIL(err, TTN_EINVAL, "xent: target is %s, expected u8, i32 or i64 of one dimension, (R)",
                        ttn_desc_print(t, text));
    if (s->in[WEIGHT].ndim >= 0) {
        status = ttn_want_shape(s, WEIGHT, "xent", "weight", "(R)", err);
        if (status != TTN_OK) return status;
    }
    static const char *const name[] = {[TARGET] = "target", [WEIGHT] = "weight"};
    for (int i = TARGET; i <= WEIGHT; i++) {
        if (s->in[i].ndim < 0 || (s->in[i].axis == x->axis && s->in[i].dim[0] == x->dim[0])) continue;
        return TTN_FAIL(err, TTN_EINVAL, "xent: logits are %s and %s is %s, expected one for each row",
                        ttn_desc_print(x, logits), name[i], ttn_desc_print(&s->in[i], text));
    }
    const double eps = ((const attributes *)s->attr)->smoothing;
    if (!(eps >= 0 && eps <= 1))
        return TTN_FAIL(err, TTN_EINVAL, "xent: label smoothing is %g, expected a number from 0 to 1", eps);
    s->n_out = 2;
    s->out[0] = ttn_desc_of(TTN_REAL, TTN_FIXED, 0, 0, 0, 0);
    s->out[1] = ttn_desc_of(TTN_REAL, x->axis, 1, x->dim[0], 0, 0);
    s->n_aux = 2;
    s->aux[0] = s->out[1];
    s->aux[1] = s->out[1];
    s->n_stat = N_STAT;
    /* the chunks' statistics, and what each row is */
    s->work[TTN_FORWARD] = (size_t)ttn_chunks(x->dim[0]) * N_STAT * sizeof(double) + (size_t)x->dim[0];
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->in[LOGITS]);
    const double flops = (pass == TTN_FORWARD ? 20 : 22) * n;
    const double values = pass == TTN_FORWARD ? 1 : 2;
    return (ttn_cost){.done = flops, .useful = flops, .bytes = values * n * (double)sizeof(real)};
}

static int64_t target_of(const ttn_call *c, int64_t r)
{
    return ttn_xent_target(c->sig->in[TARGET].type, c->in[TARGET], r);
}

/* ---- over a row ----
 *
 * WIDTH classes at a time, the last of them filled up with logits of -inf, of which each pass makes 0: 33 classes are three
 * vectors of 16, and no exp is left to a scalar remainder. */

enum { WIDTH = 64 / sizeof(real), BLOCK = 64 * WIDTH };

/* The last n < WIDTH of V classes, behind logits of -inf. Loaded together with the classes before them: a loop of n turns
 * took as long as the rest of a row of 33. */
static void fill_up(int64_t V, int64_t n, const real *x, real *full)
{
    const real none = -(real)INFINITY;
    const int64_t from = V - WIDTH;
    if (from >= 0) {
#pragma omp simd
        for (int j = 0; j < WIDTH; j++)
            full[j] = j >= WIDTH - n ? x[from + j] : none;
    } else {
        for (int j = 0; j < WIDTH; j++)
            full[j] = from + j >= 0 ? x[from + j] : none;
    }
}

static void larger(const real *x, real *m)
{
#pragma omp simd
    for (int j = 0; j < WIDTH; j++)
        m[j] = x[j] > m[j] ? x[j] : m[j];
}

/* NaN is passed over: exp(NaN - m) will show it. */
static real largest(int64_t V, const real *x)
{
    real m[WIDTH];
    real full[WIDTH];
    for (int j = 0; j < WIDTH; j++)
        m[j] = -(real)INFINITY;
    int64_t i = 0;
    for (; i + WIDTH <= V; i += WIDTH)
        larger(x + i, m);
    if (i < V) {
        fill_up(V, V - i, x, full);
        larger(full, m);
    }
    for (int apart = WIDTH / 2; apart > 0; apart /= 2)
        for (int j = 0; j < apart; j++)
            m[j] = m[j + apart] > m[j] ? m[j + apart] : m[j];
    return m[0];
}

static double total(const real *s)
{
    double t[WIDTH];
    for (int j = 0; j < WIDTH; j++)
        t[j] = (double)s[j];
    for (int apart = WIDTH / 2; apart > 0; apart /= 2)
        for (int j = 0; j < apart; j++)
            t[j] += t[j + apart];
    return t[0];
}

static void add_exp(const real *x, real m, real *s)
{
#pragma omp simd
    for (int j = 0; j < WIDTH; j++)
        s[j] += ttn_exp(x[j] - m);
}

/* Sum of exp(x - m). Partial sums of 64 terms, then in double: 65,536 classes lose no more than 33. */
static double sum_exp(int64_t V, const real *x, real m)
{
    double sum = 0;
    int64_t i = 0;
    while (i < V) {
        const int64_t end = i + BLOCK < V ? i + BLOCK : V;
        real s[WIDTH] = {0};
        for (; i + WIDTH <= end; i += WIDTH)
            add_exp(x + i, m, s);
        if (i < end) {
            real full[WIDTH];
            fill_up(V, V - i, x, full);
            add_exp(full, m, s);
            i = end;
        }
        sum += total(s);
    }
    return sum;
}

/* Mean of x - m. */
static double mean_below(int64_t V, const real *x, real m)
{
    enum { LANES = 8 };
    double s[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= V; i += LANES) {
#pragma omp simd
        for (int j = 0; j < LANES; j++)
            s[j] += (double)(x[i + j] - m);
    }
    for (int j = 0; i + j < V; j++)
        s[j] += (double)(x[i + j] - m);
    return (((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))) / (double)V;
}

/* ---- forward ---- */

static unsigned char classify(const real *x, int64_t target, real m)
{
    if (!(x[target] == m)) return WRONG;
    for (int64_t i = 0; i < target; i++)
        if (x[i] == m) return WRONG;
    return RIGHT;
}

/* Statistics from the rows' losses. */
static void add_up(const ttn_call *c, int64_t used, const unsigned char *what, double *part)
{
    const real *loss = c->out[1];
    const real *weight = c->in[WEIGHT];
    const int64_t n_chunk = ttn_chunks(c->sig->in[LOGITS].dim[0]);
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t k = 0; k < n_chunk; k++) {
        int64_t first;
        int64_t end;
        double stat[N_STAT] = {0};
        ttn_chunk(used, k, &first, &end);
        for (int64_t r = first; r < end; r++) {
            const double w = weight ? (double)weight[r] : 1;
            if (what[r] == OUT || w == 0) continue;
            stat[SUM] += w * (double)loss[r];
            stat[COUNT] += w;
            if (what[r] == RIGHT) stat[CORRECT] += w;
        }
        memcpy(part + k * N_STAT, stat, sizeof stat);
    }
    ttn_add_chunks(n_chunk, N_STAT, part, c->stat);
    *(real *)c->out[0] = (real)c->stat[SUM];
}

/* Rows are taken some at a time, step by step: the steps of one row wait for each other, those of several do not, and their
 * logarithms are one vector loop. 33 classes: 114 ns a row one by one, 89 ns so. As many as stay in the first cache. */
enum { AT_ONCE = 16, CACHED = 8192 };

static int64_t rows_at_once(int64_t V)
{
    const int64_t rows = CACHED / V;
    if (rows < 1) return 1;
    return rows < AT_ONCE ? rows : AT_ONCE;
}

/* Rows first to end - 1, at most AT_ONCE. mark may be what: each row's mark is read before it is written. Returns the first
 * row whose target is no class, or `none`. */
static int64_t forward_rows(const ttn_call *c, int64_t first, int64_t end, const unsigned char *mark,
                            unsigned char *what, int64_t none)
{
    const attributes *a = c->sig->attr;
    const int64_t V = c->sig->in[LOGITS].dim[1];
    const real *logits = c->in[LOGITS];
    real *loss = c->out[1];
    real *max = c->aux[0];
    real *inverse = c->aux[1];
    int64_t row[AT_ONCE];
    double s[AT_ONCE];
    int n = 0; /* rows that count */
    int64_t bad = none;
    for (int64_t r = first; r < end; r++) {
        const int of_sequence = !mark || mark[r];
        const int64_t target = of_sequence ? target_of(c, r) : a->ignore;
        what[r] = OUT;
        loss[r] = 0;
        max[r] = 0;
        inverse[r] = 0;
        if (target == a->ignore) continue;
        if (target >= 0 && target < V)
            row[n++] = r;
        else if (bad == none)
            bad = r;
    }
    for (int k = 0; k < n; k++)
        max[row[k]] = largest(V, logits + row[k] * V);
    for (int k = 0; k < n; k++) {
        s[k] = sum_exp(V, logits + row[k] * V, max[row[k]]);
        inverse[row[k]] = (real)(1 / s[k]);
    }
    for (int k = n; k < AT_ONCE; k++)
        s[k] = 1;
#pragma omp simd
    for (int k = 0; k < AT_ONCE; k++)
        s[k] = ttn_logd(s[k]);
    for (int k = 0; k < n; k++) {
        const int64_t r = row[k];
        const real *x = logits + r * V;
        const int64_t target = target_of(c, r);
        const double target_below = (double)x[target] - (double)max[r];
        const double all_below = a->smoothing > 0 ? mean_below(V, x, max[r]) : 0;
        loss[r] = (real)ttn_xent_loss(a->smoothing, s[k], target_below, all_below);
        what[r] = classify(x, target, max[r]);
    }
    return bad;
}

/* The one kind: the target of row `at` is no class. */
static ttn_status fault(const ttn_call *c, int kind, int64_t at, ttn_error *err)
{
    (void)kind;
    return TTN_FAIL(err, TTN_EINVAL,
                    "xent: target %" PRId64 " is %" PRId64 ", expected a class, 0 to %" PRId64
                    ", or the ignore label, %" PRId64,
                    at, target_of(c, at), c->sig->in[LOGITS].dim[1] - 1, ((const attributes *)c->sig->attr)->ignore);
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    const int64_t V = c->sig->in[LOGITS].dim[1];
    const int64_t used = ttn_used(c->feed, &c->sig->in[LOGITS]);
    const int64_t step = rows_at_once(V);
    double *part = c->work;
    unsigned char *what = (unsigned char *)(part + ttn_chunks(c->sig->in[LOGITS].dim[0]) * N_STAT);
    const unsigned char *mark = ttn_mark_rows(c, &c->sig->in[LOGITS], what);
    int64_t bad = used; /* the first row whose target is no class */
#pragma omp parallel for num_threads(c->on->n_thread) reduction(min : bad)
    for (int64_t first = 0; first < used; first += step) {
        const int64_t end = first + step < used ? first + step : used;
        const int64_t found = forward_rows(c, first, end, mark, what, used);
        bad = found < bad ? found : bad;
    }
    if (bad < used) return fault(c, 0, bad, err);
    add_up(c, used, what, part);
    ttn_zero_rest(c, &c->sig->out[1], c->out[1]);
    return TTN_OK;
}

/* ---- backward ---- */

static void backward_row(int64_t V, const real *x, int64_t target, const ttn_xent_slope *f, real acc, real *dx)
{
    const real at_target = ttn_accumulate(acc, dx[target], ttn_xent_slope_at_target(f, x[target]));
    int64_t i = 0;
    for (; i + WIDTH <= V; i += WIDTH) {
#pragma omp simd
        for (int j = 0; j < WIDTH; j++)
            dx[i + j] = ttn_accumulate(acc, dx[i + j], ttn_xent_slope_at(f, x[i + j]));
    }
    if (i < V) {
        real full[WIDTH];
        fill_up(V, V - i, x, full);
#pragma omp simd
        for (int j = 0; j < WIDTH; j++)
            full[j] = ttn_xent_slope_at(f, full[j]);
        for (; i < V; i++)
            dx[i] = ttn_accumulate(acc, dx[i], full[WIDTH - V + i]);
    }
    dx[target] = at_target;
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (!c->din[LOGITS]) return TTN_OK;
    const attributes *a = c->sig->attr;
    const int64_t V = c->sig->in[LOGITS].dim[1];
    const int64_t used = ttn_used(c->feed, &c->sig->in[LOGITS]);
    const real *weight = c->in[WEIGHT];
    const real dsum = c->dout[0] ? *(const real *)c->dout[0] : 0;
    const real *dloss = c->dout[1];
    const real acc = c->acc[LOGITS];
    const real smooth = (real)(a->smoothing / (double)V);
    const real certain = (real)(1 - a->smoothing);
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t r = 0; r < used; r++) {
        real *dx = (real *)c->din[LOGITS] + r * V;
        const int64_t target = target_of(c, r);
        ttn_xent_slope f = {.m = ((const real *)c->aux[0])[r], .inverse = ((const real *)c->aux[1])[r]};
        f.smooth = smooth;
        f.certain = certain;
        f.g = (weight ? weight[r] * dsum : dsum) + (dloss ? dloss[r] : 0);
        if (f.inverse == 0 || target == a->ignore || f.g == 0) {
            if (acc == 0) memset(dx, 0, (size_t)V * sizeof *dx);
            continue;
        }
        backward_row(V, (const real *)c->in[LOGITS] + r * V, target, &f, acc, dx);
    }
    if (acc == 0) ttn_zero_rest(c, &c->sig->in[LOGITS], c->din[LOGITS]);
    return TTN_OK;
}

/* ---- cases ---- */

static const attributes usual = {.ignore = -100};
static const attributes smoothed = {.ignore = -1, .smoothing = 0.1};
static const attributes flat = {.ignore = -1, .smoothing = 1};
static const attributes pad = {.ignore = 4};
static const attributes negative = {.ignore = -1, .smoothing = -0.1};
static const attributes excessive = {.ignore = -1, .smoothing = 1.5};
static const attributes not_a_number = {.ignore = -1, .smoothing = NAN};

#define TARGETS(a, t)                            \
    {                                            \
        .type = (t), .axis = TTN_##a, .ndim = 1, \
    }
#define WEIGHTS(a)                  \
    {                               \
        .axis = TTN_##a, .ndim = 1, \
    }

static const ttn_case cases[] = {
    {.about = "33 letters",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(33), TARGETS(ROWS, TTN_I64), TTN_LEFT_OUT},
     .attr = &usual,
     .range = {[TARGET] = {0, 32}}},
    {.about = "picks with weights, some of them ignored by a label that is a class",
     .used = {.picks = 25},
     .in = {TTN_PICKS_OF(5), TARGETS(PICKS, TTN_U8), WEIGHTS(PICKS)},
     .attr = &pad,
     .range = {[TARGET] = {0, 4}, [WEIGHT] = {0.5, 2}}},
    {.about = "smoothed labels, rows of no sequence, some ignored",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(31), TARGETS(ROWS, TTN_I32), TTN_LEFT_OUT},
     .attr = &smoothed,
     .range = {[TARGET] = {-1, 30}}},
    {.about = "nothing but smoothing, one vector",
     .used = {.picks = 13},
     .in = {TTN_PICKS_OF(16), TARGETS(PICKS, TTN_I64), TTN_LEFT_OUT},
     .attr = &flat,
     .range = {[TARGET] = {0, 15}}},
    {.about = "one class",
     .used = {.rows = 3},
     .in = {TTN_ROWS_OF(1), TARGETS(ROWS, TTN_I64), WEIGHTS(ROWS)},
     .attr = &smoothed},
    {.about = "more classes than a block",
     .used = {.picks = 3},
     .in = {TTN_PICKS_OF(2049), TARGETS(PICKS, TTN_I32), WEIGHTS(PICKS)},
     .attr = &smoothed,
     .range = {[TARGET] = {0, 2048}}},
    {.about = "three chunks, rows of no sequence, weights of both signs",
     .used = {.rows = 531, .seqs = 3},
     .span = {{0, 240}, {252, 100}, {360, 171}},
     .in = {TTN_ROWS_OF(3), TARGETS(ROWS, TTN_U8), WEIGHTS(ROWS)},
     .attr = &usual,
     .range = {[TARGET] = {0, 2}}},
    {.about = "every row of the capacity",
     .used = {.rows = 480},
     .in = {TTN_ROWS_OF(2), TARGETS(ROWS, TTN_U8), TTN_LEFT_OUT},
     .attr = &usual,
     .range = {[TARGET] = {0, 1}}},
    {.about = "logits from -100 to 100",
     .used = {.picks = 12},
     .in = {TTN_PICKS_OF(19), TARGETS(PICKS, TTN_I64), TTN_LEFT_OUT},
     .attr = &usual,
     .range = {{-100, 100}, [TARGET] = {0, 18}}},
    {.about = "a class for each sequence",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {{.axis = TTN_SEQS, .ndim = 2, .dim = {0, 10}}, TARGETS(SEQS, TTN_I64), TTN_LEFT_OUT},
     .attr = &usual,
     .range = {[TARGET] = {0, 9}}},
    {.about = "rows that are always the same number",
     .in = {TTN_MATRIX(4, 6), {.type = TTN_I32, .ndim = 1, .dim = {4}}, TTN_VECTOR(4)},
     .attr = &usual,
     .range = {[TARGET] = {0, 5}}},
    {.about = "nothing but ignored ones",
     .used = {.picks = 12},
     .in = {TTN_PICKS_OF(5), TARGETS(PICKS, TTN_U8), TTN_LEFT_OUT},
     .attr = &pad,
     .range = {[TARGET] = {4, 4}}},
    {.about = "no rows",
     .cap = {.rows = 480},
     .in = {TTN_ROWS_OF(4), TARGETS(ROWS, TTN_I64), TTN_LEFT_OUT},
     .attr = &usual},
    {.about = "logits of one dimension",
     .used = {.rows = 7},
     .in = {{.axis = TTN_ROWS, .ndim = 1}, TARGETS(ROWS, TTN_I64), TTN_LEFT_OUT},
     .attr = &usual,
     .refused = "logits is " TTN_REAL_NAME " (N 480), which has 1 dimensions; expected 2, (R, V)"},
    {.about = "logits of integers",
     .used = {.rows = 7},
     .in = {{.type = TTN_I64, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 5}}, TARGETS(ROWS, TTN_I64), TTN_LEFT_OUT},
     .attr = &usual,
     .refused = "logits is i64 (N 480, 5), expected " TTN_REAL_NAME " numbers"},
    {.about = "no classes",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(0), TARGETS(ROWS, TTN_I64), TTN_LEFT_OUT},
     .attr = &usual,
     .refused = "logits have 0 classes, expected at least 1"},
    {.about = "a target of reals",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), WEIGHTS(ROWS), TTN_LEFT_OUT},
     .attr = &usual,
     .refused = "target is " TTN_REAL_NAME " (N 480), expected u8, i32 or i64 of one dimension, (R)"},
    {.about = "a target of two dimensions",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), {.type = TTN_I64, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 5}}, TTN_LEFT_OUT},
     .attr = &usual,
     .refused = "target is i64 (N 480, 5), expected u8, i32 or i64 of one dimension, (R)"},
    {.about = "a target left out",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), TTN_LEFT_OUT, TTN_LEFT_OUT},
     .attr = &usual,
     .refused = "target is nothing, expected u8, i32 or i64"},
    {.about = "targets of picks for logits of rows",
     .used = {.rows = 7, .picks = 7},
     .in = {TTN_ROWS_OF(5), TARGETS(PICKS, TTN_I64), TTN_LEFT_OUT},
     .attr = &usual,
     .refused = "logits are " TTN_REAL_NAME " (N 480, 5) and target is i64 (R 480), expected one for each row"},
    {.about = "weights of integers",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), TARGETS(ROWS, TTN_I64), TARGETS(ROWS, TTN_I64)},
     .attr = &usual,
     .refused = "weight is i64 (N 480), expected " TTN_REAL_NAME " numbers"},
    {.about = "weights of classes",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), TARGETS(ROWS, TTN_I64), TTN_VECTOR(5)},
     .attr = &usual,
     .refused = "weight is " TTN_REAL_NAME " (5), expected one for each row"},
    {.about = "smoothing below 0",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), TARGETS(ROWS, TTN_I64), TTN_LEFT_OUT},
     .attr = &negative,
     .refused = "label smoothing is -0.1, expected a number from 0 to 1"},
    {.about = "smoothing above 1",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), TARGETS(ROWS, TTN_I64), TTN_LEFT_OUT},
     .attr = &excessive,
     .refused = "label smoothing is 1.5"},
    {.about = "smoothing NaN",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), TARGETS(ROWS, TTN_I64), TTN_LEFT_OUT},
     .attr = &not_a_number,
     .refused = "label smoothing is nan"},
    {.about = "a class too many",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(5), TARGETS(ROWS, TTN_I64), TTN_LEFT_OUT},
     .attr = &usual,
     .range = {[TARGET] = {5, 5}},
     .fails = "target 0 is 5, expected a class, 0 to 4, or the ignore label, -100"},
    {.about = "below 0, and not the ignore label",
     .used = {.rows = 24, .seqs = 1},
     .span = {{12, 7}},
     .in = {TTN_ROWS_OF(5), TARGETS(ROWS, TTN_I32), TTN_LEFT_OUT},
     .attr = &usual,
     .range = {[TARGET] = {-1, -1}},
     .fails = "target 12 is -1, expected a class, 0 to 4, or the ignore label, -100"},
    {.about = "a byte too large",
     .used = {.picks = 7},
     .in = {TTN_PICKS_OF(5), TARGETS(PICKS, TTN_U8), TTN_LEFT_OUT},
     .attr = &usual,
     .range = {[TARGET] = {255, 255}},
     .fails = "target 0 is 255, expected a class, 0 to 4, or the ignore label, -100"},
};

static const ttn_stat stats[] = {
    [SUM] = {.name = "sum", .fold = TTN_SUM},
    [COUNT] = {.name = "count", .fold = TTN_SUM},
    [CORRECT] = {.name = "correct", .fold = TTN_SUM},
};

const ttn_op ttn_op_xent = {
    .name = "xent",
    .n_in = 3,
    .n_out = 2,
    .optional = TTN_BIT(WEIGHT),
    .differentiable = TTN_BIT(LOGITS),
    .reads = {{.in = TTN_BIT(LOGITS) | TTN_BIT(TARGET) | TTN_BIT(WEIGHT), .aux = TTN_BIT(0) | TTN_BIT(1)}},
    .attr_bytes = sizeof(attributes),
    .stats = stats,
    .n_stats = N_STAT,
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .fault = fault,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_xent(ttn_graph *g, const char *name, int logits, int target, int weight, int64_t ignore, double smoothing)
{
    const attributes a = {.ignore = ignore, .smoothing = smoothing};
    return ttn_apply(g, "xent", name, &a, (const int[]){logits, target, weight});
}
