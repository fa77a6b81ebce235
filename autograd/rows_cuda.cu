#include "core/cuda.h"

#include "autograd/kernel_cuda.h"
#include "autograd/rows_cuda.h"

enum { THREADS = 256 };

/* ---- rows ---- */

ttn_status ttn_cuda_zero_rest(const ttn_call *c, const ttn_desc *d, void *x, ttn_error *err)
{
    const size_t row = (size_t)ttn_row_width(d) * ttn_dtype_size(d->type);
    const int64_t used = ttn_used(c->feed, d);
    const int64_t rest = ttn_capacity_of(d) - used;
    if (rest == 0 || row == 0) return TTN_OK;
    return c->on->device->ops->fill(c->on, static_cast<char *>(x) + (size_t)used * row, 0, (size_t)rest * row, err);
}

static __global__ void zero_others_kernel(int64_t rows, int64_t width, const int64_t *seq_of_row, real *x)
{
    for (int64_t r = ttn_warp_first(); r < rows; r += ttn_warp_stride()) {
        if (seq_of_row[r] >= 0) continue;
        for (int64_t i = ttn_lane(); i < width; i += TTN_WARP)
            x[r * width + i] = 0;
    }
}

ttn_status ttn_cuda_zero_others(const ttn_call *c, const ttn_desc *d, real *x, ttn_error *err)
{
    const int64_t width = ttn_row_width(d);
    const int64_t rows = ttn_capacity_of(d);
    if (rows == 0) return TTN_OK;
    if (c->feed->used.seqs == 0) return c->on->device->ops->fill(c->on, x, 0, (size_t)(rows * width) * sizeof *x, err);
    return TTN_LAUNCH(zero_others_kernel, ttn_row_blocks(rows), TTN_ROW_THREADS, 0, c->on, err, rows, width,
                      c->on_device.seq_of_row, x);
}

static __global__ void repeat_row_kernel(int64_t rows, int64_t used, int64_t cols, const real *row, real *to)
{
    for (int64_t r = ttn_warp_first(); r < rows; r += ttn_warp_stride())
        for (int64_t i = ttn_lane(); i < cols; i += TTN_WARP)
            to[r * cols + i] = r < used ? row[i] : 0;
}

ttn_status ttn_cuda_repeat_row(const ttn_stream *on, int64_t rows, int64_t used, int64_t cols, const real *row,
                               real *to, ttn_error *err)
{
    if (rows == 0) return TTN_OK;
    return TTN_LAUNCH(repeat_row_kernel, ttn_row_blocks(rows), TTN_ROW_THREADS, 0, on, err, rows, used, cols, row, to);
}

/* ---- sums over rows ---- */

/* A block sums 32 columns of one lane: thread (x, y) the rows y, y + 8, …, and then the eight are added in their order. */
enum { ACROSS = 32, DOWN = 8 };

typedef struct {
    int64_t rows, used, cols, ld;
    int lanes, fresh;
} sums_shape;

/* As ttn_row_lane, which is the host's. */
static __device__ int64_t lane_first(const sums_shape &s, int64_t lane)
{
    const int64_t first = s.rows * lane / s.lanes;
    return first < s.used ? first : s.used;
}

static __global__ void sums_kernel(sums_shape s, const real *x, double *part)
{
    TTN_SMEM(double, of_row, ACROSS *DOWN);
    const int across = (int)threadIdx.x;
    const int down = (int)threadIdx.y;
    const int64_t lane = blockIdx.y;
    const int64_t end = lane_first(s, lane + 1);
    for (int64_t left = (int64_t)blockIdx.x * ACROSS; left < s.cols; left += (int64_t)gridDim.x * ACROSS) {
        const int64_t col = left + across;
        double sum = 0;
        if (col < s.cols)
            for (int64_t r = lane_first(s, lane) + down; r < end; r += DOWN)
                sum += (double)x[r * s.ld + col];
        of_row[down * ACROSS + across] = sum;
        __syncthreads();
        if (down == 0 && col < s.cols) {
            double *to = part + lane * s.cols + col;
            double all = s.fresh ? 0 : *to;
            for (int i = 0; i < DOWN; i++)
                all += of_row[i * ACROSS + across];
            *to = all;
        }
        __syncthreads(); /* all have been read */
    }
}

static __global__ void sums_end_kernel(sums_shape s, const double *part, real acc, real *sum)
{
    for (int64_t col = ttn_cuda_first(); col < s.cols; col += ttn_cuda_stride()) {
        double all = 0;
        for (int64_t lane = 0; lane < s.lanes && !s.fresh; lane++)
            all += part[lane * s.cols + col];
        sum[col] = ttn_accumulate(acc, sum[col], (real)all);
    }
}

size_t ttn_cuda_sums_work(int64_t rows, int64_t cols)
{
    return (size_t)(ttn_row_lanes(rows) * cols) * sizeof(double);
}

ttn_cuda_sums ttn_cuda_sums_begin(int64_t rows, int64_t cols, void *work)
{
    ttn_cuda_sums s;
    s.rows = rows;
    s.cols = cols;
    s.part = static_cast<double *>(work);
    s.lanes = ttn_row_lanes(rows);
    s.fresh = 1;
    return s;
}

ttn_status ttn_cuda_sums_add(ttn_cuda_sums *s, const ttn_stream *on, int64_t used, const real *x, int64_t ld,
                             ttn_error *err)
{
    if (s->cols == 0) return TTN_OK;
    const sums_shape shape = {s->rows, used, s->cols, ld, s->lanes, s->fresh};
    const dim3 grid(ttn_cuda_blocks(s->cols, ACROSS), (unsigned)s->lanes);
    s->fresh = 0;
    return TTN_LAUNCH(sums_kernel, grid, dim3(ACROSS, DOWN), 0, on, err, shape, x, s->part);
}

ttn_status ttn_cuda_sums_end(const ttn_cuda_sums *s, const ttn_stream *on, real acc, real *sum, ttn_error *err)
{
    if (s->cols == 0) return TTN_OK;
    const sums_shape shape = {s->rows, 0, s->cols, 0, s->lanes, s->fresh};
    return TTN_LAUNCH(sums_end_kernel, ttn_cuda_blocks(s->cols, THREADS), THREADS, 0, on, err, shape, s->part, acc,
                      sum);
}
