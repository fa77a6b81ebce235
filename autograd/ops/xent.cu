/* xent on CUDA: a warp for each row, its lanes along the classes (33 letters are two steps; 65,536 words would keep a warp
 * busy for a while, but the rows are many).
 *
 * Sums over classes and all statistics are double. The statistics add up in a fixed order: chunks of rows, by the tree of a
 * block in each; then the chunks, by the tree of one block. */
#include "core/cuda.h"

#include "autograd/kernel_cuda.h"
#include "autograd/fault_cuda.h"
#include "autograd/rows_cuda.h"
#include "autograd/ops/xent.h"

enum {
    LOGITS = TTN_XENT_LOGITS,
    TARGET = TTN_XENT_TARGET,
    WEIGHT = TTN_XENT_WEIGHT,
    SUM = TTN_XENT_SUM,
    COUNT = TTN_XENT_COUNT,
    CORRECT = TTN_XENT_CORRECT,
    N_STAT = TTN_XENT_N_STAT,
    CHUNK = 256, /* rows, and the threads of a block */
};

#define ALL_LANES 0xFFFFFFFFu

typedef struct {
    int64_t rows, used, V;
    const real *logits;
    const void *target;
    ttn_dtype target_type;
    const real *weight;        /* may be NULL */
    const int64_t *seq_of_row; /* NULL: all used rows count */
    ttn_xent_attributes attr;
    real *max, *inverse;
} job;

static job job_of(const ttn_call *c)
{
    const ttn_desc *x = &c->sig->in[LOGITS];
    job j = {};
    j.rows = x->dim[0];
    j.used = ttn_used(c->feed, x);
    j.V = x->dim[1];
    j.logits = static_cast<const real *>(c->in[LOGITS]);
    j.target = c->in[TARGET];
    j.target_type = c->sig->in[TARGET].type;
    j.weight = static_cast<const real *>(c->in[WEIGHT]);
    j.seq_of_row = x->axis == TTN_ROWS ? c->on_device.seq_of_row : NULL;
    j.attr = *static_cast<const ttn_xent_attributes *>(c->sig->attr);
    j.max = static_cast<real *>(c->aux[0]);
    j.inverse = static_cast<real *>(c->aux[1]);
    return j;
}

/* ---- scratch of forward: what each chunk adds, then what each row is ---- */

static int64_t chunks_of(int64_t rows)
{
    return (rows + CHUNK - 1) / CHUNK;
}

extern "C" size_t ttn_cuda_xent_work(const ttn_sig *s, ttn_pass pass)
{
    const int64_t rows = s->in[LOGITS].dim[0];
    return pass == TTN_FORWARD ? (size_t)chunks_of(rows) * N_STAT * sizeof(double) + (size_t)rows : 0;
}

/* ---- forward ---- */

/* The class that row r has to be, or the ignore label: also for a row of no sequence, and for one past the used ones. */
static __device__ int64_t wanted_class(const job &j, int64_t r, ttn_fault_sink fault)
{
    if (r >= j.used || (j.seq_of_row && j.seq_of_row[r] < 0)) return j.attr.ignore;
    const int64_t target = ttn_xent_target(j.target_type, j.target, r);
    if (target == j.attr.ignore || (target >= 0 && target < j.V)) return target;
    if (ttn_lane() == 0) ttn_fault_raise(fault, 0, r);
    return j.attr.ignore;
}

static __global__ void rows_kernel(job j, ttn_fault_sink fault, real *loss, unsigned char *what)
{
    const int lane = ttn_lane();
    for (int64_t r = ttn_warp_first(); r < j.rows; r += ttn_warp_stride()) {
        const real *x = j.logits + r * j.V;
        const int64_t target = wanted_class(j, r, fault);
        if (target == j.attr.ignore) {
            if (lane == 0) {
                what[r] = TTN_XENT_OUT;
                loss[r] = 0;
                j.max[r] = 0;
                j.inverse[r] = 0;
            }
            continue;
        }
        real m = -(real)INFINITY; /* NaN is passed over: exp(NaN - m) will show it */
        for (int64_t i = lane; i < j.V; i += TTN_WARP)
            m = x[i] > m ? x[i] : m;
        m = ttn_warp_max(m);
        double s = 0;
        double below = 0;
        int before = 0; /* a class before the target has the largest logit too */
        for (int64_t i = lane; i < j.V; i += TTN_WARP) {
            s += (double)ttn_exp(x[i] - m);
            below += (double)(x[i] - m);
            if (i < target && x[i] == m) before = 1;
        }
        s = ttn_warp_sum(s);
        below = ttn_warp_sum(below);
        before = __any_sync(ALL_LANES, before);
        if (lane == 0) {
            const double target_below = (double)x[target] - (double)m;
            loss[r] = (real)ttn_xent_loss(j.attr.smoothing, ttn_logd(s), target_below, below / (double)j.V);
            what[r] = x[target] == m && !before ? TTN_XENT_RIGHT : TTN_XENT_WRONG;
            j.max[r] = m;
            j.inverse[r] = (real)(1 / s);
        }
    }
}

static __global__ void chunks_kernel(job j, const real *loss, const unsigned char *what, double *part)
{
    TTN_SMEM(double, of_warp, TTN_WARP);
    const int64_t n_chunk = (j.rows + CHUNK - 1) / CHUNK;
    for (int64_t k = blockIdx.x; k < n_chunk; k += gridDim.x) {
        const int64_t r = k * CHUNK + threadIdx.x;
        double stat[N_STAT] = {0, 0, 0};
        const double w = r < j.used ? (j.weight ? (double)j.weight[r] : 1) : 0;
        if (w != 0 && what[r] != TTN_XENT_OUT) { /* 0 times infinity is left out */
            stat[SUM] = w * (double)loss[r];
            stat[COUNT] = w;
            stat[CORRECT] = what[r] == TTN_XENT_RIGHT ? w : 0;
        }
        for (int i = 0; i < N_STAT; i++) {
            const double sum = ttn_block_sum(stat[i], of_warp);
            if (threadIdx.x == 0) part[k * N_STAT + i] = sum;
        }
    }
}

/* One block. */
static __global__ void add_up_kernel(int64_t n_chunk, const double *part, double *stat, real *sum)
{
    TTN_SMEM(double, of_warp, TTN_WARP);
    for (int i = 0; i < N_STAT; i++) {
        double mine = 0;
        for (int64_t k = threadIdx.x; k < n_chunk; k += CHUNK)
            mine += part[k * N_STAT + i];
        const double all = ttn_block_sum(mine, of_warp);
        if (threadIdx.x > 0) continue;
        stat[i] = all;
        if (i == SUM) *sum = (real)all;
    }
}

extern "C" ttn_status ttn_cuda_xent_forward(const ttn_call *c, ttn_error *err)
{
    const job j = job_of(c);
    const int64_t n_chunk = chunks_of(j.rows);
    real *loss = static_cast<real *>(c->out[1]);
    double *part = static_cast<double *>(c->work);
    unsigned char *what = reinterpret_cast<unsigned char *>(part + n_chunk * N_STAT);
    ttn_status status = TTN_LAUNCH(rows_kernel, ttn_row_blocks(j.rows), TTN_ROW_THREADS, 0, c->on, err, j,
                                   c->on_device.fault, loss, what);
    if (status == TTN_OK)
        status = TTN_LAUNCH(chunks_kernel, ttn_cuda_blocks(n_chunk, 1), CHUNK, 0, c->on, err, j, loss, what, part);
    if (status == TTN_OK)
        status =
            TTN_LAUNCH(add_up_kernel, 1, CHUNK, 0, c->on, err, n_chunk, part, c->stat, static_cast<real *>(c->out[0]));
    return status;
}

/* ---- backward ---- */

static __global__ void backward_kernel(job j, const real *dsum, const real *dloss, real acc, real *dlogits)
{
    const int lane = ttn_lane();
    for (int64_t r = ttn_warp_first(); r < j.rows; r += ttn_warp_stride()) {
        const real *x = j.logits + r * j.V;
        real *dx = dlogits + r * j.V;
        ttn_xent_slope f = {};
        int64_t target = j.attr.ignore;
        if (r < j.used) {
            const real sum = dsum ? *dsum : 0;
            target = ttn_xent_target(j.target_type, j.target, r);
            f.m = j.max[r];
            f.inverse = j.inverse[r];
            f.g = (j.weight ? j.weight[r] * sum : sum) + (dloss ? dloss[r] : 0);
            f.smooth = (real)(j.attr.smoothing / (double)j.V);
            f.certain = (real)(1 - j.attr.smoothing);
        }
        /* a row that does not count has 0 in the place of 1 / s; its target may be anything */
        if (f.inverse == 0 || target == j.attr.ignore || f.g == 0) {
            for (int64_t i = lane; i < j.V; i += TTN_WARP)
                if (acc == 0) dx[i] = 0;
            continue;
        }
        for (int64_t i = lane; i < j.V; i += TTN_WARP) {
            const real g = i == target ? ttn_xent_slope_at_target(&f, x[i]) : ttn_xent_slope_at(&f, x[i]);
            dx[i] = ttn_accumulate(acc, dx[i], g);
        }
    }
}

extern "C" ttn_status ttn_cuda_xent_backward(const ttn_call *c, ttn_error *err)
{
    if (!c->din[LOGITS]) return TTN_OK;
    const job j = job_of(c);
    return TTN_LAUNCH(backward_kernel, ttn_row_blocks(j.rows), TTN_ROW_THREADS, 0, c->on, err, j,
                      static_cast<const real *>(c->dout[0]), static_cast<const real *>(c->dout[1]), c->acc[LOGITS],
                      static_cast<real *>(c->din[LOGITS]));
}
