/* embedding for CUDA devices: autograd/ops/embedding.c says what it computes. */
#include "autograd/fault_cuda.h"
#include "autograd/kernel_cuda.h"
#include "autograd/ops.h"
#include "autograd/ops/embedding.h"

enum { TOKEN = 0, TABLE = 1 };

/* What kernels need of the call. */
struct job {
    const void *token;
    ttn_dtype type;
    int64_t V;
    ttn_token_dropout dropout;
    ttn_on_device on;
};

static job job_of(const ttn_call *c)
{
    job j = {};
    j.token = c->in[TOKEN];
    j.type = c->sig->in[TOKEN].type;
    j.V = c->sig->in[TABLE].dim[0];
    j.dropout = *static_cast<const ttn_token_dropout *>(c->sig->attr);
    j.on = c->on_device;
    return j;
}

static __device__ inline int64_t token_at(const job &j, int64_t row)
{
    return ttn_id_at(j.type, j.token, row);
}

/* ---- factors of sequences, 1 without token dropout: a block counts the masks of one ---- */

enum { FACTOR_THREADS = 512 };

static int64_t seqs_of(const ttn_call *c)
{
    return c->feed->used.seqs > 0 ? c->feed->used.seqs : 1;
}

static __global__ void factors_kernel(job j, int64_t seqs, double *factor)
{
    TTN_SMEM(int, of_warp, TTN_WARP);
    for (int64_t s = blockIdx.x; s < seqs; s += gridDim.x) {
        const ttn_span span = j.on.span[s];
        int masks = 0; /* of this thread's rows: below 2^31 rows a sequence */
        if (j.dropout.mask >= 0)
            for (int64_t i = threadIdx.x; i < span.n; i += FACTOR_THREADS)
                masks += token_at(j, span.first + i) == j.dropout.mask;
        masks = ttn_block_sum(masks, of_warp);
        if (threadIdx.x != 0) continue;
        if (masks > 0 && masks == span.n) ttn_fault_raise(j.on.fault, TTN_EMBEDDING_MASKS, s);
        const bool has_factor = j.dropout.mask >= 0 && masks < span.n;
        factor[s] = has_factor ? ttn_embedding_factor(j.dropout.share, masks, span.n) : 1;
    }
}

/* The factors, and in backward a weight of each row after them. */
extern "C" size_t ttn_cuda_embedding_work(const ttn_sig *s, ttn_pass pass)
{
    const int64_t seqs = s->cap.seqs > 0 ? s->cap.seqs : 1;
    return static_cast<size_t>(seqs + (pass == TTN_BACKWARD ? s->in[TOKEN].dim[0] : 0)) * sizeof(double);
}

static ttn_status make_factors(const ttn_call *c, const job &j, double *factor, ttn_error *err)
{
    return TTN_LAUNCH(factors_kernel, ttn_cuda_blocks(seqs_of(c), 1), FACTOR_THREADS, 0, c->on, err, j, seqs_of(c),
                      factor);
}

/* ---- forward: a warp makes a row ---- */

static __global__ void forward_kernel(ttn_quads q, int64_t capacity, job j, const double *factor, const real *table,
                                      real *y)
{
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        const int64_t seq = j.on.seq_of_row[t];
        const int64_t token = seq < 0 ? -1 : token_at(j, t);
        const bool wrong = seq >= 0 && (token < 0 || token >= j.V);
        real *to = y + t * q.width;
        if (wrong && ttn_lane() == 0) ttn_fault_raise(j.on.fault, TTN_EMBEDDING_TOKEN, t);
        if (wrong || seq < 0 || token == j.dropout.mask) {
            ttn_quad_zero_row(q, to);
            continue;
        }
        const real f = static_cast<real>(factor[seq]);
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
            ttn_quad v = ttn_quad_load(q, table + token * q.width, i);
            for (int k = 0; k < 4; k++)
                v.at[k] *= f;
            ttn_quad_store(q, to, i, v);
        }
    }
}

extern "C" ttn_status ttn_cuda_embedding_forward(const ttn_call *c, ttn_error *err)
{
    const job j = job_of(c);
    double *factor = static_cast<double *>(c->work);
    ttn_status status = make_factors(c, j, factor, err);
    if (status != TTN_OK) return status;
    const int64_t capacity = c->sig->out[0].dim[0];
    const real *table = static_cast<const real *>(c->in[TABLE]);
    real *y = static_cast<real *>(c->out[0]);
    return TTN_LAUNCH(forward_kernel, ttn_row_blocks(capacity), TTN_ROW_THREADS, 0, c->on, err,
                      ttn_quads_of(c->sig->in[TABLE].dim[1], table, y), capacity, j, factor, table, y);
}

/* ---- backward ----
 *
 * Without sorting: a block owns a token and 128 columns of its row of dE, looks through the tokens of all rows, and adds the
 * rows of its own. Warp w looks at groups w, w + 16, … of 32 rows, in double; the warps' sums are added in their order. V C /
 * 128 blocks look at N tokens each: for the 33 tokens of proteins, C 512 and N 65,536 that is 9 MB from the second cache,
 * beside 134 MB of dy. A vocabulary of thousands of words would want the rows sorted. */
enum { GROUPS_AT_ONCE = 16, OWNER_THREADS = GROUPS_AT_ONCE * TTN_WARP, OWNER_COLUMNS = 4 * TTN_WARP };

/* What row t adds of its dy to the gradient of its token: 0 in rows of no sequence, of masks, and of words outside. */
static __global__ void weights_kernel(job j, int64_t capacity, const double *factor, double *weight)
{
    for (int64_t t = ttn_cuda_first(); t < capacity; t += ttn_cuda_stride()) {
        const int64_t seq = j.on.seq_of_row[t];
        weight[t] = seq < 0 || token_at(j, t) == j.dropout.mask ? 0 : factor[seq];
    }
}

/* Grid: (V, columns / OWNER_COLUMNS). */
static __global__ void table_kernel(ttn_quads q, int64_t used, job j, const double *weight, const real *dy,
                                    real *dtable, real acc)
{
    TTN_SMEM(double, part, GROUPS_AT_ONCE *OWNER_COLUMNS);
    const int64_t v = blockIdx.x;
    const int warp = static_cast<int>(threadIdx.x) / TTN_WARP;
    const int64_t column = static_cast<int64_t>(blockIdx.y) * OWNER_COLUMNS; /* the block's first */
    const int64_t i = column / 4 + ttn_lane();                               /* this thread's quad */
    double sum[4] = {0, 0, 0, 0};
    for (int64_t first = warp * TTN_WARP; first < used; first += OWNER_THREADS) {
        const int64_t t = first + ttn_lane();
        const double f = t < used && token_at(j, t) == v ? weight[t] : 0;
        unsigned mine = __ballot_sync(0xFFFFFFFFu, f != 0);
        while (mine != 0) {
            const int next = __ffs(static_cast<int>(mine)) - 1;
            mine &= mine - 1;
            const double factor = __shfl_sync(0xFFFFFFFFu, f, next);
            if (i >= q.count) continue;
            const ttn_quad g = ttn_quad_load(q, dy + (first + next) * q.width, i);
            for (int k = 0; k < 4; k++)
                sum[k] += factor * static_cast<double>(g.at[k]);
        }
    }
    for (int k = 0; k < 4; k++)
        part[warp * OWNER_COLUMNS + 4 * ttn_lane() + k] = sum[k];
    __syncthreads();
    const int64_t mine = column + threadIdx.x;
    if (threadIdx.x >= OWNER_COLUMNS || mine >= q.width) return;
    double all = part[threadIdx.x];
    for (int w = 1; w < GROUPS_AT_ONCE; w++)
        all += part[w * OWNER_COLUMNS + threadIdx.x];
    ttn_give(&dtable[v * q.width + mine], static_cast<real>(all), acc);
}

extern "C" ttn_status ttn_cuda_embedding_backward(const ttn_call *c, ttn_error *err)
{
    if (!c->din[TABLE]) return TTN_OK;
    const job j = job_of(c);
    const int64_t capacity = c->sig->in[TOKEN].dim[0];
    const int64_t C = c->sig->in[TABLE].dim[1];
    double *factor = static_cast<double *>(c->work);
    double *weight = factor + (c->sig->cap.seqs > 0 ? c->sig->cap.seqs : 1); /* (N) */
    ttn_status status = make_factors(c, j, factor, err);
    if (status == TTN_OK)
        status = TTN_LAUNCH(weights_kernel, ttn_cuda_blocks(capacity, TTN_ROW_THREADS), TTN_ROW_THREADS, 0, c->on, err,
                            j, capacity, factor, weight);
    if (status != TTN_OK) return status;
    const real *dy = static_cast<const real *>(c->dout[0]);
    const dim3 grid(static_cast<unsigned>(j.V), static_cast<unsigned>((C + OWNER_COLUMNS - 1) / OWNER_COLUMNS));
    return TTN_LAUNCH(table_kernel, grid, OWNER_THREADS, 0, c->on, err, ttn_quads_of(C, dy), c->feed->used.rows, j,
                      weight, dy, static_cast<real *>(c->din[TABLE]), c->acc[TABLE]);
}
