/* depthwise convolution along sequences, one kernel of odd width w a head, shared by the head's channels:
 *
 *     y_t = sum over j < w of kernel_j x_u,   u = t + j - (w - 1) / 2
 *
 * in every channel; terms with u outside of t's sequence are absent, so neighbours in a batch do not meet. x, y (N, H D)
 * kernel (H, w). Rows of no sequence: zeros. A run without sequences has no other rows.
 *
 * dx_r = sum over j of kernel_j dy_t,  t = r - j + (w - 1) / 2: the same with the kernel turned round
 * dkernel_j = sum over t and the head's channels of dy_t x_u
 *
 * dkernel is summed in lanes of rows (autograd/kernel.h): in runs of ROWS rows in the build's type, which are added up in
 * double. (PyTorch's f32 weight gradient with oneDNN is off by 4 to 16 % on some CPUs at width 65.) */
#include <inttypes.h>
#include <string.h>
#include "autograd/carve.h"
#include "autograd/kernel.h"
#include "autograd/ops.h"

enum { X, KERNEL };

enum {
    COLUMNS = 32, /* channels at a time: four sums of AVX2 in f32 */
    ROWS = 48, /* rows of a sum for dkernel: with the kernel's reach, 32 columns of x and dy stay in the first cache */
};

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_shape(s, X, "dwconv", "x", "(N, H D)", err);
    if (status == TTN_OK) status = ttn_want_shape(s, KERNEL, "dwconv", "kernel", "(H, w)", err);
    if (status != TTN_OK) return status;
    char text[TTN_DESC_TEXT];
    const ttn_desc *x = &s->in[X];
    const ttn_desc *kernel = &s->in[KERNEL];
    if (x->axis != TTN_ROWS)
        return TTN_FAIL(err, TTN_EINVAL, "dwconv: x is %s, expected rows of a batch, (N, H D)",
                        ttn_desc_print(x, text));
    if (kernel->axis != TTN_FIXED)
        return TTN_FAIL(err, TTN_EINVAL, "dwconv: kernel is %s, expected a matrix (H, w)",
                        ttn_desc_print(kernel, text));
    const int64_t H = kernel->dim[0];
    const int64_t w = kernel->dim[1];
    if (H < 1 || x->dim[1] < 1 || x->dim[1] % H != 0)
        return TTN_FAIL(err, TTN_EINVAL,
                        "dwconv: a width of %" PRId64 " cannot be divided among the %" PRId64 " heads of kernel",
                        x->dim[1], H);
    if (w % 2 == 0 || w > TTN_DWCONV_MOST_WIDTH)
        return TTN_FAIL(err, TTN_EINVAL, "dwconv: kernel is %" PRId64 " rows wide, expected an odd number up to %d", w,
                        TTN_DWCONV_MOST_WIDTH);
    s->out[0] = *x;
    /* the kernel turned round; each lane's sums */
    s->work[TTN_BACKWARD] = ttn_work_align((size_t)(H * w) * sizeof(real)) +
                            ttn_work_align((size_t)(ttn_row_lanes(x->dim[0]) * H * w) * sizeof(double));
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const double n = (double)ttn_desc_numel(&s->in[X]);
    const double flops = (pass == TTN_FORWARD ? 2 : 4) * n * (double)s->in[KERNEL].dim[1];
    return (ttn_cost){
        .done = flops, .useful = flops, .bytes = (pass == TTN_FORWARD ? 2 : 4) * n * (double)sizeof(real)};
}

/* ---- rows of sequences ---- */

/* The sequence that has row t or, when t is in none, the next one; used.seqs when there is none. */
static int64_t sequence_from(const ttn_feed *f, int64_t t)
{
    int64_t s = 0;
    for (int64_t end = f->used.seqs; s < end;) {
        const int64_t middle = s + (end - s) / 2;
        if (f->span[middle].first + f->span[middle].n <= t)
            s = middle + 1;
        else
            end = middle;
    }
    return s;
}

/* ---- forward, dx ---- */

/* to = acc to + the sum over j < n of kernel_j x[j ld + d], d < D. */
static void convolve_row(const real *kernel, int64_t n, const real *x, int64_t ld, int64_t D, real acc, real *to)
{
    int64_t d = 0;
    for (; d + COLUMNS <= D; d += COLUMNS) {
        real sum[COLUMNS] = {0};
        for (int64_t j = 0; j < n; j++) {
            const real *row = x + j * ld + d;
#pragma omp simd
            for (int i = 0; i < COLUMNS; i++)
                sum[i] = ttn_fma(kernel[j], row[i], sum[i]);
        }
#pragma omp simd
        for (int i = 0; i < COLUMNS; i++)
            to[d + i] = ttn_accumulate(acc, to[d + i], sum[i]);
    }
    if (d == D) return;
    real sum[COLUMNS] = {0};
    for (int64_t j = 0; j < n; j++) {
        const real *row = x + j * ld + d;
        for (int64_t i = 0; i < D - d; i++)
            sum[i] = ttn_fma(kernel[j], row[i], sum[i]);
    }
    for (int64_t i = 0; i < D - d; i++)
        to[d + i] = ttn_accumulate(acc, to[d + i], sum[i]);
}

/* All rows of sequences. */
static void convolve(const ttn_call *c, const real *kernel, const real *x, real acc, real *to)
{
    const ttn_feed *f = c->feed;
    const int64_t C = c->sig->in[X].dim[1];
    const int64_t H = c->sig->in[KERNEL].dim[0];
    const int64_t w = c->sig->in[KERNEL].dim[1];
    const int64_t D = C / H;
    const int64_t before = (w - 1) / 2;
#pragma omp parallel for num_threads(c->on->n_thread) schedule(dynamic)
    for (int64_t chunk = 0; chunk < ttn_chunks(f->used.rows); chunk++) {
        int64_t first;
        int64_t end;
        ttn_chunk(f->used.rows, chunk, &first, &end);
        for (int64_t s = sequence_from(f, first); s < f->used.seqs && f->span[s].first < end; s++) {
            const int64_t start = f->span[s].first;
            const int64_t stop = start + f->span[s].n;
            for (int64_t t = ttn_larger(first, start); t < ttn_smaller(end, stop); t++) {
                const int64_t j_first = ttn_larger(0, start - t + before);
                const int64_t j_end = ttn_smaller(w, stop - t + before);
                for (int64_t h = 0; h < H; h++) {
                    const int64_t at = (t + j_first - before) * C + h * D;
                    convolve_row(kernel + h * w + j_first, j_end - j_first, x + at, C, D, acc, to + t * C + h * D);
                }
            }
        }
    }
}

static ttn_status forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    convolve(c, c->in[KERNEL], c->in[X], 0, c->out[0]);
    ttn_zero_no_sequence(c, &c->sig->out[0], c->out[0]);
    return TTN_OK;
}

/* ---- dkernel ---- */

/* The sum over rows t in [first, end) and d < D of dy_t x_(t + apart): dy and x begin with row 0, this head's column. */
static double product(int64_t first, int64_t end, int64_t apart, const real *dy, const real *x, int64_t ld, int64_t D)
{
    double total = 0;
    for (int64_t d = 0; d < D; d += COLUMNS) {
        const int64_t columns = ttn_smaller(COLUMNS, D - d);
        real sum[COLUMNS] = {0};
        for (int64_t t = first; t < end; t++) {
            const real *a = dy + t * ld + d;
            const real *b = x + (t + apart) * ld + d;
            if (columns == COLUMNS) {
#pragma omp simd
                for (int i = 0; i < COLUMNS; i++)
                    sum[i] = ttn_fma(a[i], b[i], sum[i]);
            } else {
                for (int64_t i = 0; i < columns; i++)
                    sum[i] = ttn_fma(a[i], b[i], sum[i]);
            }
        }
        for (int i = 0; i < COLUMNS; i++)
            total += (double)sum[i];
    }
    return total;
}

/* One head's sums (w) over the rows of a lane. */
static void sum_lane(const ttn_call *c, int lane, int64_t h, double *sum)
{
    const ttn_feed *f = c->feed;
    const int64_t C = c->sig->in[X].dim[1];
    const int64_t w = c->sig->in[KERNEL].dim[1];
    const int64_t D = C / c->sig->in[KERNEL].dim[0];
    const int64_t before = (w - 1) / 2;
    memset(sum, 0, (size_t)w * sizeof *sum);
    int64_t first;
    int64_t end;
    ttn_row_lane(c->sig->in[X].dim[0], f->used.rows, lane, &first, &end);
    for (int64_t s = sequence_from(f, first); s < f->used.seqs && f->span[s].first < end; s++) {
        const int64_t start = f->span[s].first;
        const int64_t stop = start + f->span[s].n;
        const int64_t here = ttn_smaller(end, stop);
        for (int64_t t = ttn_larger(first, start); t < here; t += ROWS)
            for (int64_t j = 0; j < w; j++) {
                const int64_t apart = j - before;
                const int64_t from = ttn_larger(t, start - apart);
                const int64_t to = ttn_smaller(ttn_smaller(t + ROWS, here), stop - apart);
                if (from < to)
                    sum[j] += product(from, to, apart, (const real *)c->dout[0] + h * D, (const real *)c->in[X] + h * D,
                                      C, D);
            }
    }
}

static void sum_kernel(const ttn_call *c, double *part)
{
    const int64_t H = c->sig->in[KERNEL].dim[0];
    const int64_t w = c->sig->in[KERNEL].dim[1];
    const int lanes = ttn_row_lanes(c->sig->in[X].dim[0]);
#pragma omp parallel for num_threads(c->on->n_thread) schedule(dynamic)
    for (int64_t task = 0; task < lanes * H; task++)
        sum_lane(c, (int)(task / H), task % H, part + task * w);
    real *dkernel = c->din[KERNEL];
    for (int64_t e = 0; e < H * w; e++) {
        double sum = 0;
        for (int lane = 0; lane < lanes; lane++)
            sum += part[lane * H * w + e];
        dkernel[e] = ttn_accumulate(c->acc[KERNEL], dkernel[e], (real)sum);
    }
}

static ttn_status backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const int64_t H = c->sig->in[KERNEL].dim[0];
    const int64_t w = c->sig->in[KERNEL].dim[1];
    ttn_carving work = {.base = c->work};
    real *const turned = ttn_carve(&work, H * w, sizeof *turned);
    double *const part = ttn_carve(&work, ttn_row_lanes(c->sig->in[X].dim[0]) * H * w, sizeof *part);
    if (c->din[X]) {
        const real *kernel = c->in[KERNEL];
        for (int64_t h = 0; h < H; h++)
            for (int64_t j = 0; j < w; j++)
                turned[h * w + j] = kernel[h * w + w - 1 - j];
        convolve(c, turned, c->dout[0], c->acc[X], c->din[X]);
        if (c->acc[X] == 0) ttn_zero_no_sequence(c, &c->sig->in[X], c->din[X]);
    }
    if (c->din[KERNEL]) sum_kernel(c, part);
    return TTN_OK;
}

/* ---- cases ---- */

static const ttn_case cases[] = {
    {.about = "two sequences, rows of none between them",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = {TTN_ROWS_OF(6), TTN_MATRIX(2, 3)}},
    {.about = "sequences that touch, shorter than the kernel and longer",
     .used = {.rows = 40, .seqs = 4},
     .span = {{2, 1}, {3, 4}, {7, 9}, {16, 20}},
     .in = {TTN_ROWS_OF(3), TTN_MATRIX(1, 11)}},
    {.about = "a kernel of one row",
     .used = {.rows = 9, .seqs = 1},
     .span = {{0, 9}},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(4, 1)}},
    {.about = "heads wider than a block of columns, several chunks and lanes",
     .used = {.rows = 700, .seqs = 3},
     .span = {{1, 290}, {300, 257}, {557, 140}},
     .in = {TTN_ROWS_OF(80), TTN_MATRIX(2, 33)}},
    {.about = "no sequences: zeros", .used = {.rows = 7}, .in = {TTN_ROWS_OF(3), TTN_MATRIX(1, 3)}},
    {.about = "no rows", .cap = {.rows = 480, .seqs = 2}, .in = {TTN_ROWS_OF(3), TTN_MATRIX(3, 5)}},
    {.about = "an even width",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(2, 4)},
     .refused = "kernel is 4 rows wide, expected an odd number up to 1023"},
    {.about = "three heads in a width of 4",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(4), TTN_MATRIX(3, 3)},
     .refused = "a width of 4 cannot be divided among the 3 heads of kernel"},
    {.about = "picks",
     .used = {.picks = 7},
     .in = {TTN_PICKS_OF(4), TTN_MATRIX(2, 3)},
     .refused = "x is " TTN_REAL_NAME " (R 480, 4), expected rows of a batch, (N, H D)"},
    {.about = "a kernel of rows",
     .used = {.rows = 7},
     .in = {TTN_ROWS_OF(4), TTN_ROWS_OF(3)},
     .refused = "kernel is " TTN_REAL_NAME " (N 480, 3), expected a matrix (H, w)"},
};

const ttn_op ttn_op_dwconv = {
    .name = "dwconv",
    .n_in = 2,
    .n_out = 1,
    .differentiable = TTN_BIT(X) | TTN_BIT(KERNEL),
    .reads = {[X] = {.in = TTN_BIT(KERNEL)}, [KERNEL] = {.in = TTN_BIT(X)}},
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = forward, .backward = backward},
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_dwconv(ttn_graph *g, const char *name, int x, int kernel)
{
    return ttn_apply(g, "dwconv", name, NULL, (const int[]){x, kernel});
}
