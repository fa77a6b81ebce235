/* What the kernels of .cu files share: how rows are gone over, four elements at a time.
 *
 * A warp takes a row, or several one after the other; its lanes take the row's elements in groups of four ("quads") side by
 * side, so that a warp moves 512 bytes (f32) of a row at once. Kernels write every row of the capacity: those past the used
 * ones get zeros from the same kernel, without a launch of their own. */
#ifndef TTN_KERNEL_CUDA_H
#define TTN_KERNEL_CUDA_H

#include "core/cuda.h"

#include "autograd/kernel.h"

enum { TTN_ROW_THREADS = 256, TTN_ROW_WARPS = TTN_ROW_THREADS / TTN_WARP };

/* Blocks of TTN_ROW_THREADS for so many rows, a warp each. In the kernel:
 *     for (int64_t t = ttn_warp_first(); t < rows; t += ttn_warp_stride()) */
static inline unsigned ttn_row_blocks(int64_t rows)
{
    return ttn_cuda_blocks(rows, TTN_ROW_WARPS);
}
static __device__ inline int64_t ttn_warp_first()
{
    return ttn_cuda_first() / TTN_WARP;
}
static __device__ inline int64_t ttn_warp_stride()
{
    return ttn_cuda_stride() / TTN_WARP;
}
static __device__ inline int ttn_lane()
{
    return static_cast<int>(threadIdx.x) % TTN_WARP;
}

/* *to = acc *to + v, where acc 0 does not read it */
static __device__ inline void ttn_give(real *to, real v, real acc)
{
    *to = acc != 0 ? *to + v : v;
}

/* ---- quads ---- */

struct alignas(16) ttn_quad {
    real at[4];
};

/* How rows of so many elements are cut into quads. */
struct ttn_quads {
    int64_t width; /* elements of a row */
    int64_t count; /* quads of a row, the last of which may have fewer than four elements */
    int whole;     /* none has, and every quad of every row begins at a multiple of 16 bytes: one access moves it */
};

/* For rows of these values; a NULL among them is none. */
template <class... Values> static inline ttn_quads ttn_quads_of(int64_t width, const Values *...value)
{
    const uintptr_t bits = (uintptr_t{0} | ... | reinterpret_cast<uintptr_t>(value));
    return {width, (width + 3) / 4, width % 4 == 0 && bits % alignof(ttn_quad) == 0};
}

/* Quad i of a row; zeros past the row's end. */
static __device__ inline ttn_quad ttn_quad_load(const ttn_quads &q, const real *row, int64_t i)
{
    if (q.whole) return reinterpret_cast<const ttn_quad *>(row)[i];
    ttn_quad v;
    for (int k = 0; k < 4; k++)
        v.at[k] = 4 * i + k < q.width ? row[4 * i + k] : 0;
    return v;
}

static __device__ inline void ttn_quad_store(const ttn_quads &q, real *row, int64_t i, const ttn_quad &v)
{
    if (q.whole) {
        reinterpret_cast<ttn_quad *>(row)[i] = v;
        return;
    }
    for (int k = 0; k < 4; k++)
        if (4 * i + k < q.width) row[4 * i + k] = v.at[k];
}

/* row = acc row + v */
static __device__ inline void ttn_quad_give(const ttn_quads &q, real *row, int64_t i, ttn_quad v, real acc)
{
    if (acc != 0) {
        const ttn_quad old = ttn_quad_load(q, row, i);
        for (int k = 0; k < 4; k++)
            v.at[k] = old.at[k] + v.at[k];
    }
    ttn_quad_store(q, row, i, v);
}

/* The warp writes zeros to a row. */
static __device__ inline void ttn_quad_zero_row(const ttn_quads &q, real *row)
{
    const ttn_quad zero = {};
    for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP)
        ttn_quad_store(q, row, i, zero);
}

/* ---- places: autograd/ops/places.h ---- */

struct ttn_place {
    int64_t seq;      /* -1: of no sequence, or past the used rows */
    int64_t position; /* in its sequence; 0 in rows of none */
};

/* Of a row, which is below the capacity. */
static __device__ inline ttn_place ttn_place_of(const ttn_on_device &on, int64_t row)
{
    const int64_t seq = on.seq_of_row[row];
    if (seq < 0) return {-1, 0};
    return {seq, row - on.span[seq].first + on.start[seq]};
}

#endif
