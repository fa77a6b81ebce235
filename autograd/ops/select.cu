/* select for CUDA devices: autograd/ops/select.c says what it computes. */
#include "autograd/fault_cuda.h"
#include "autograd/kernel_cuda.h"

/* ---- forward: a warp makes a row ---- */

static __global__ void forward_kernel(ttn_quads q, int64_t capacity, int64_t picks, int64_t rows, const int64_t *index,
                                      const real *x, real *y, ttn_fault_sink fault)
{
    for (int64_t r = ttn_warp_first(); r < capacity; r += ttn_warp_stride()) {
        const int64_t from = r < picks ? index[r] : -1;
        const bool wrong = from < -1 || from >= rows;
        if (wrong && ttn_lane() == 0) ttn_fault_raise(fault, 0, r);
        real *to = y + r * q.width;
        if (wrong || from < 0) {
            ttn_quad_zero_row(q, to);
            continue;
        }
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP)
            ttn_quad_store(q, to, i, ttn_quad_load(q, x + from * q.width, i));
    }
}

extern "C" ttn_status ttn_cuda_select_forward(const ttn_call *c, ttn_error *err)
{
    const int64_t capacity = ttn_capacity_of(&c->sig->out[0]);
    const real *x = static_cast<const real *>(c->in[0]);
    real *y = static_cast<real *>(c->out[0]);
    return TTN_LAUNCH(forward_kernel, ttn_row_blocks(capacity), TTN_ROW_THREADS, 0, c->on, err,
                      ttn_quads_of(c->sig->in[0].dim[1], x, y), capacity, ttn_used(c->feed, &c->sig->in[1]),
                      ttn_used(c->feed, &c->sig->in[0]), static_cast<const int64_t *>(c->in[1]), x, y,
                      c->on_device.fault);
}

/* ---- backward ----
 *
 * A block owns TILE_ROWS rows of dx, and a thread of it some columns. The block looks through all picks, THREADS at a time:
 * those that are of its rows are listed in their order, and each thread adds its columns of them: the CPU's order and bits,
 * no atomics, and R N / TILE_ROWS looks in all, from the second cache. */
enum { THREADS = 256, WARPS = THREADS / TTN_WARP, TILE_ROWS = 128 };

/* found: the picks of those from `first_pick` on, a thread each, whose rows are in [first, end), in order. Returns how many;
 * all threads call it. */
static __device__ inline int list_picks(int64_t first_pick, int64_t picks, const int64_t *index, int64_t first,
                                        int64_t end, int *of_warp, int64_t *found)
{
    const int64_t r = first_pick + threadIdx.x;
    const bool mine = r < picks && index[r] >= first && index[r] < end;
    const unsigned votes = __ballot_sync(0xFFFFFFFFu, mine);
    const int warp = static_cast<int>(threadIdx.x) / TTN_WARP;
    if (ttn_lane() == 0) of_warp[warp] = __popc(votes);
    __syncthreads(); /* the counts are there, and nobody reads what was found before */
    int all = 0;
    int before = __popc(votes & ((1u << ttn_lane()) - 1));
    for (int w = 0; w < WARPS; w++) {
        if (w < warp) before += of_warp[w];
        all += of_warp[w];
    }
    if (mine) found[before] = r;
    __syncthreads(); /* the list is there, and nobody reads the counts */
    return all;
}

static __global__ void backward_kernel(int64_t C, int64_t rows, int64_t picks, const int64_t *index, const real *dy,
                                       real *dx, real acc)
{
    TTN_SMEM(int64_t, found, THREADS);
    TTN_SMEM(int, of_warp, WARPS);
    const int64_t tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int64_t first = tile * TILE_ROWS;
        const int64_t end = first + TILE_ROWS < rows ? first + TILE_ROWS : rows;
        if (acc == 0)
            for (int64_t t = first; t < end; t++)
                for (int64_t i = threadIdx.x; i < C; i += THREADS)
                    dx[t * C + i] = 0;
        for (int64_t pick = 0; pick < picks; pick += THREADS) {
            const int n = list_picks(pick, picks, index, first, end, of_warp, found);
            for (int k = 0; k < n; k++) {
                real *to = dx + index[found[k]] * C;
                const real *from = dy + found[k] * C;
                for (int64_t i = threadIdx.x; i < C; i += THREADS)
                    to[i] += from[i];
            }
        }
    }
}

extern "C" ttn_status ttn_cuda_select_backward(const ttn_call *c, ttn_error *err)
{
    if (!c->din[0]) return TTN_OK;
    const int64_t rows = c->sig->in[0].dim[0];
    return TTN_LAUNCH(backward_kernel, ttn_cuda_blocks(rows, TILE_ROWS), THREADS, 0, c->on, err, c->sig->in[0].dim[1],
                      rows, ttn_used(c->feed, &c->sig->in[1]), static_cast<const int64_t *>(c->in[1]),
                      static_cast<const real *>(c->dout[0]), static_cast<real *>(c->din[0]), c->acc[0]);
}
