/* AdamW for CUDA devices: autograd/adamw.h holds the formulas. A block of threads makes a block of the slabs. */
#include "core/cuda.h"

#include "autograd/adamw.h"

enum { THREADS = 256 };

static __global__ void squares_kernel(ttn_adamw_slabs s, double *sum)
{
    TTN_SMEM(double, part, TTN_WARP);
    for (int64_t k = blockIdx.x; k < s.n_block; k += gridDim.x) {
        const ttn_adamw_block b = s.block[k];
        double squares = 0;
        for (int64_t i = threadIdx.x; i < b.n; i += THREADS) {
            const double g = static_cast<double>(s.gradient[b.first + i]);
            squares += g * g;
        }
        squares = ttn_block_sum(squares, part);
        if (threadIdx.x == 0) sum[k] = squares;
    }
}

static __global__ void update_kernel(ttn_adamw_slabs s, ttn_adamw_rule r)
{
    for (int64_t k = blockIdx.x; k < s.n_block; k += gridDim.x) {
        const ttn_adamw_block b = s.block[k];
        const real keep = b.decays ? r.keep : 1;
        for (int64_t i = b.first + threadIdx.x; i < b.first + b.n; i += THREADS) {
            const real g = r.scale * s.gradient[i];
            const real m = ttn_adamw_m(&r, s.m[i], g);
            const real v = ttn_adamw_v(&r, s.v[i], g);
            s.m[i] = m;
            s.v[i] = v;
            s.value[i] = ttn_adamw_value(&r, keep, s.value[i], m, v);
        }
    }
}

static ttn_status squares(const ttn_stream *on, const ttn_adamw_slabs *s, double *sum, ttn_error *err)
{
    return TTN_LAUNCH(squares_kernel, ttn_cuda_blocks(s->n_block, 1), THREADS, 0, on, err, *s, sum);
}

static ttn_status update(const ttn_stream *on, const ttn_adamw_slabs *s, const ttn_adamw_rule *r, ttn_error *err)
{
    return TTN_LAUNCH(update_kernel, ttn_cuda_blocks(s->n_block, 1), THREADS, 0, on, err, *s, *r);
}

extern "C" const ttn_adamw_kernels *ttn_cuda_adamw(void)
{
    static const ttn_adamw_kernels kernels = {squares, update};
    return &kernels;
}
