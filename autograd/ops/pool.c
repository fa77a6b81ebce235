/* pool:  one row for each sequence.   x (N, C)   y (S, C)
 * y[s] = mean over K(s) of x[t]        dx[t] = dy[s] / |K(s)| for t in K(s), else 0
 *
 * K(s), the rows of sequence s that are kept: all without the first skip_first and the last skip_last of them; or its first
 * row alone. A sequence of which nothing is kept is refused. Rows of no sequence are in no K(s).
 *
 * Summed in double, in chunks of 512 rows counted from the sequence's first kept row, and the chunks in order: bits do not
 * depend on threads, place or batch mates, and one sequence of 34,350 rows is 68 tasks. */
#include <inttypes.h>
#include <string.h>
#include "autograd/kernel.h"
#include "autograd/ops.h"
#include "autograd/ops/pool.h"

typedef ttn_pool_attributes attributes;

enum { CHUNK = 512 }; /* rows */

static int64_t chunks_of(int64_t rows)
{
    return (rows + CHUNK - 1) / CHUNK;
}

/* Chunks of a batch, at most: one that is not full for each sequence. */
static int64_t most_chunks(const ttn_sig *s)
{
    return s->in[0].dim[0] / CHUNK + s->cap.seqs;
}

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_shape(s, 0, "pool", "x", "(N, C)", err);
    if (status != TTN_OK) return status;
    if (s->in[0].axis != TTN_ROWS) {
        char text[TTN_DESC_TEXT];
        return TTN_FAIL(err, TTN_EINVAL, "pool: x is %s, expected rows of sequences, (N, C)",
                        ttn_desc_print(&s->in[0], text));
    }
    if (s->cap.seqs < 1) return TTN_FAIL(err, TTN_EINVAL, "pool: the graph has room for 0 sequences");
    const attributes *a = s->attr;
    const int64_t most = s->in[0].dim[0];
    if (a->skip_first < 0 || a->skip_first > most || a->skip_last < 0 || a->skip_last > most)
        return TTN_FAIL(err, TTN_EINVAL,
                        "pool: %" PRId64 " first and %" PRId64 " last rows are left out, expected 0 to %" PRId64
                        " of each",
                        a->skip_first, a->skip_last, most);
    s->n_out = 1;
    s->out[0] = ttn_desc_of(TTN_REAL, TTN_SEQS, 2, s->cap.seqs, s->in[0].dim[1], 0);
    /* the chunks' sums, and the number of each sequence's first chunk */
    s->work[TTN_FORWARD] =
        (size_t)(most_chunks(s) * s->in[0].dim[1]) * sizeof(double) + (size_t)(s->cap.seqs + 1) * sizeof(int64_t);
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double all = (double)ttn_desc_numel(&s->in[0]);
    const double pooled = (double)ttn_desc_numel(&s->out[0]);
    const double looked_at = ((const attributes *)s->attr)->form == TTN_POOL_FIRST ? pooled : all;
    const double moved = pass == TTN_FORWARD ? looked_at + pooled : all + pooled;
    return (ttn_cost){.done = looked_at, .useful = looked_at, .bytes = moved * (double)sizeof(real)};
}

static ttn_span kept(const ttn_call *c, int64_t s)
{
    return ttn_pool_kept(c->sig->attr, c->feed->span[s]);
}

ttn_status ttn_pool_check(const ttn_call *c, ttn_error *err)
{
    const attributes *a = c->sig->attr;
    for (int64_t s = 0; s < c->feed->used.seqs; s++)
        if (kept(c, s).n < 1)
            return TTN_FAIL(err, TTN_EINVAL,
                            "pool: sequence %" PRId64 " has %" PRId64 " rows; without %" PRId64 " first and %" PRId64
                            " last ones nothing is left of it",
                            s, c->feed->span[s].n, a->skip_first, a->skip_last);
    return TTN_OK;
}

/* ---- forward ---- */

/* to = sum of n rows, n >= 1 */
static void add_rows(int64_t n, int64_t C, const real *x, double *to)
{
#pragma omp simd
    for (int64_t i = 0; i < C; i++)
        to[i] = (double)x[i];
    for (int64_t t = 1; t < n; t++) {
#pragma omp simd
        for (int64_t i = 0; i < C; i++)
            to[i] += (double)x[t * C + i];
    }
}

/* The last i with first[i] <= k, of n + 1 ascending numbers: the sequence of chunk k. */
static int64_t find(const int64_t *first, int64_t n, int64_t k)
{
    int64_t low = 0;
    while (n - low > 1) {
        const int64_t middle = low + (n - low) / 2;
        if (first[middle] <= k)
            low = middle;
        else
            n = middle;
    }
    return low;
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_pool_check(c, err);
    if (status != TTN_OK) return status;
    const int64_t C = c->sig->in[0].dim[1];
    const int64_t n_seq = c->feed->used.seqs;
    const real *x = c->in[0];
    real *y = c->out[0];
    double *part = c->work;
    int64_t *first = (void *)(part + most_chunks(c->sig) * C);
    first[0] = 0;
    for (int64_t s = 0; s < n_seq; s++)
        first[s + 1] = first[s] + chunks_of(kept(c, s).n);
#pragma omp parallel for num_threads(c->on->n_thread) schedule(dynamic)
    for (int64_t k = 0; k < first[n_seq]; k++) {
        const int64_t s = find(first, n_seq, k);
        const ttn_span rows = kept(c, s);
        const int64_t from = (k - first[s]) * CHUNK;
        const int64_t end = from + CHUNK < rows.n ? from + CHUNK : rows.n;
        add_rows(end - from, C, x + (rows.first + from) * C, part + k * C);
    }
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t s = 0; s < n_seq; s++) {
        const double n = (double)kept(c, s).n;
        double *sum = part + first[s] * C;
        for (int64_t k = first[s] + 1; k < first[s + 1]; k++) {
#pragma omp simd
            for (int64_t i = 0; i < C; i++)
                sum[i] += part[k * C + i];
        }
#pragma omp simd
        for (int64_t i = 0; i < C; i++)
            y[s * C + i] = (real)(sum[i] / n);
    }
    ttn_zero_rest(c, &c->sig->out[0], y);
    return TTN_OK;
}

/* ---- backward ---- */

static void zero_rows(int64_t first, int64_t end, int64_t C, real acc, real *dx)
{
    if (acc == 0 && first < end) memset(dx + first * C, 0, (size_t)((end - first) * C) * sizeof *dx);
}

/* Rows first to end - 1 of dx; s: the first sequence that may have some of them. */
static void backward_rows(const ttn_call *c, int64_t first, int64_t end, int64_t s)
{
    const int64_t C = c->sig->in[0].dim[1];
    const real acc = c->acc[0];
    real *dx = c->din[0];
    int64_t t = first;
    for (; t < end && s < c->feed->used.seqs; s++) {
        const ttn_span rows = kept(c, s);
        const int64_t from = rows.first < end ? rows.first : end;
        const int64_t to = rows.first + rows.n < end ? rows.first + rows.n : end;
        zero_rows(t, from, C, acc, dx);
        if (t < from) t = from;
        const real part = 1 / (real)rows.n;
        const real *dy = (const real *)c->dout[0] + s * C;
        for (; t < to; t++) {
#pragma omp simd
            for (int64_t i = 0; i < C; i++)
                dx[t * C + i] = ttn_accumulate(acc, dx[t * C + i], part * dy[i]);
        }
    }
    zero_rows(t, end, C, acc, dx);
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    if (!c->din[0]) return TTN_OK;
    const int64_t capacity = c->sig->in[0].dim[0];
    const int64_t n_chunk = chunks_of(capacity);
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t k = 0; k < n_chunk; k++) {
        const int64_t first = k * CHUNK;
        const int64_t end = first + CHUNK < capacity ? first + CHUNK : capacity;
        int64_t s = 0; /* the first sequence that ends behind `first` */
        for (int64_t n = c->feed->used.seqs; n > 0;) {
            const ttn_span span = c->feed->span[s + n / 2];
            if (span.first + span.n <= first) {
                s += n / 2 + 1;
                n -= n / 2 + 1;
            } else {
                n /= 2;
            }
        }
        backward_rows(c, first, end, s);
    }
    return TTN_OK;
}

/* ---- cases ---- */

static const attributes mean = {.form = TTN_POOL_MEAN};
static const attributes inner = {.form = TTN_POOL_MEAN, .skip_first = 1, .skip_last = 1};
static const attributes tail = {.form = TTN_POOL_MEAN, .skip_first = 3};
static const attributes first_row = {.form = TTN_POOL_FIRST};
static const attributes negative = {.form = TTN_POOL_MEAN, .skip_last = -1};
static const attributes boundless = {.form = TTN_POOL_MEAN, .skip_first = INT64_MAX};

static const ttn_case cases[] = {
    {.about = "two sequences, rows of none between and after them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(19)},
     .attr = &mean},
    {.about = "rows of none in front, one row, sequences side by side",
     .used = {.rows = 24, .seqs = 3},
     .span = {{3, 1}, {4, 8}, {12, 12}},
     .in = {TTN_ROWS_OF(4)},
     .attr = &mean},
    {.about = "without specials, one row left",
     .used = {.rows = 40, .seqs = 3},
     .span = {{0, 3}, {12, 9}, {24, 16}},
     .in = {TTN_ROWS_OF(5)},
     .attr = &inner},
    {.about = "three chunks, of which the last has one row; width 1",
     .used = {.rows = 1056, .seqs = 3},
     .span = {{0, 4}, {12, 1028}, {1044, 12}},
     .in = {TTN_ROWS_OF(1)},
     .attr = &tail},
    {.about = "every row of the capacity",
     .used = {.rows = 480, .seqs = 1},
     .span = {{0, 480}},
     .in = {TTN_ROWS_OF(33)},
     .attr = &mean},
    {.about = "the first rows",
     .used = {.rows = 600, .seqs = 3},
     .span = {{0, 5}, {12, 500}, {516, 1}},
     .in = {TTN_ROWS_OF(7)},
     .attr = &first_row},
    {.about = "room for more sequences",
     .cap = {.rows = 480, .seqs = 9},
     .used = {.rows = 12, .seqs = 1},
     .span = {{2, 7}},
     .in = {TTN_ROWS_OF(3)},
     .attr = &inner},
    {.about = "no sequences",
     .cap = {.rows = 480, .seqs = 2},
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3)},
     .attr = &mean},
    {.about = "no sequences, the first rows of them",
     .cap = {.rows = 480, .seqs = 2},
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(3)},
     .attr = &first_row},
    {.about = "x of one dimension",
     .used = {.rows = 24, .seqs = 2},
     .in = {{.axis = TTN_ROWS, .ndim = 1}},
     .attr = &mean,
     .refused = "x is " TTN_REAL_NAME " (N 480), which has 1 dimensions; expected 2, (N, C)"},
    {.about = "x of integers",
     .used = {.rows = 24, .seqs = 2},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 3}}},
     .attr = &mean,
     .refused = "x is u8 (N 480, 3), expected " TTN_REAL_NAME " numbers"},
    {.about = "picks, of which nobody says whose they are",
     .used = {.rows = 24, .seqs = 2, .picks = 9},
     .in = {TTN_PICKS_OF(3)},
     .attr = &mean,
     .refused = "x is " TTN_REAL_NAME " (R 480, 3), expected rows of sequences, (N, C)"},
    {.about = "a graph without sequences",
     .used = {.rows = 24},
     .in = {TTN_ROWS_OF(3)},
     .attr = &mean,
     .refused = "the graph has room for 0 sequences"},
    {.about = "fewer than none left out",
     .used = {.rows = 24, .seqs = 2},
     .in = {TTN_ROWS_OF(3)},
     .attr = &negative,
     .refused = "0 first and -1 last rows are left out, expected 0 to 480 of each"},
    {.about = "more left out than there can be",
     .used = {.rows = 24, .seqs = 2},
     .in = {TTN_ROWS_OF(3)},
     .attr = &boundless,
     .refused = "9223372036854775807 first and 0 last rows are left out, expected 0 to 480 of each"},
    {.about = "nothing left",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 2}},
     .in = {TTN_ROWS_OF(3)},
     .attr = &inner,
     .fails = "sequence 1 has 2 rows; without 1 first and 1 last ones nothing is left of it"},
    {.about = "less than nothing left",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 1}, {12, 7}},
     .in = {TTN_ROWS_OF(3)},
     .attr = &tail,
     .fails = "sequence 0 has 1 rows; without 3 first and 0 last ones nothing is left of it"},
};

const ttn_op ttn_op_pool = {
    .name = "pool",
    .n_in = 1,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .attr_bytes = sizeof(attributes),
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_pool_mean(ttn_graph *g, const char *name, int x, int64_t skip_first, int64_t skip_last)
{
    const attributes a = {.form = TTN_POOL_MEAN, .skip_first = skip_first, .skip_last = skip_last};
    return ttn_apply(g, "pool", name, &a, (const int[]){x});
}

int ttn_pool_first(ttn_graph *g, const char *name, int x)
{
    const attributes a = {.form = TTN_POOL_FIRST};
    return ttn_apply(g, "pool", name, &a, (const int[]){x});
}
