/* What every file of kernels (NAME.cu) includes first. Two compilers read a .cu: nvcc, for a GPU, and in the tests a plain
 * C++ compiler, against an emulation of CUDA on the processor (tests/cuda). This header is the only place that knows which.
 *
 * A kernel takes its shared memory through TTN_SMEM and is started through TTN_LAUNCH; everything else is CUDA as it is
 * written anywhere. What the emulation does not have (cooperative groups, textures, float atomics) is not to be used: sums
 * are made in a fixed order, so that a result has the same bits every time.
 *
 *     static __global__ void scale_kernel(int64_t n, real f, const real *x, real *y) { … }
 *
 *     TTN_LAUNCH(scale_kernel, ttn_cuda_blocks(n, 256), 256, 0, c->on, err, n, f, x, y)     is a ttn_status
 *
 * Host code in C (core/device_cuda.c) sees the second part only.
 */
#ifndef TTN_CUDA_H
#define TTN_CUDA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#elif defined(__cplusplus)
#include "cuda_emulation.h" /* tests/cuda */
#else
#include <cuda_runtime_api.h>
#endif

#include "core/device.h"
#include "core/real.h"
#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- host: errors ---- */

/* The runtime's answer as a status: "WHAT: cudaErrorX (its words)", TTN_ENOMEM when memory ran out, else TTN_EDEVICE. */
TTN_MUST_USE ttn_status ttn_cuda_status(cudaError_t answer, const char *what, ttn_error *err);

/* The queue behind a stream: the device's first one when it names none. */
cudaStream_t ttn_cuda_queue(const ttn_stream *s);

/* if ((status = TTN_CUDA_TRY(cudaEventRecord(e, stream), err, "recording an event")) != TTN_OK) … */
#define TTN_CUDA_TRY(call, err, what) ttn_cuda_status((call), (what), (err))

#ifdef __cplusplus
}
#endif

/* ---- kernels ---- */

#if defined(__cplusplus)

enum { TTN_WARP = 32 };

/* The most blocks that ttn_cuda_blocks asks for: as many as a grid has in y and z. A test may want fewer. */
#if defined(__CUDACC__)
enum { TTN_MOST_BLOCKS = 65535 };
#else
#define TTN_MOST_BLOCKS emulation_most_blocks()
#endif

/* Blocks of `threads` that cover n elements: at least one (an empty grid is an error) and at most TTN_MOST_BLOCKS, so a
 * kernel goes over its elements in strides of the grid:
 *     for (int64_t i = ttn_cuda_first(); i < n; i += ttn_cuda_stride()) */
static inline unsigned ttn_cuda_blocks(int64_t n, int64_t threads)
{
    const int64_t most = TTN_MOST_BLOCKS;
    const int64_t blocks = (n + threads - 1) / threads;
    return (unsigned)(blocks < 1 ? 1 : (blocks > most ? most : blocks));
}

#if defined(__CUDACC__)

/* type name[count] in the block's shared memory; count is a constant. */
#define TTN_SMEM(type, name, count) __shared__ type name[count]

/* The dynamic part of it, as many bytes as the launch asks for; aligned for float4. One in a kernel. */
#define TTN_SMEM_DYNAMIC(type, name)                    \
    extern __shared__ float4 ttn_cuda_dynamic_memory[]; \
    type *name = reinterpret_cast<type *>(ttn_cuda_dynamic_memory)

/* Starts the kernel on stream->queue; a ttn_status that names the kernel when it could not be started. What goes wrong
 * while it runs comes with the next call that waits. kernel: a name, in brackets when it has template arguments. */
#define TTN_LAUNCH(kernel, grid, block, dynamic_bytes, stream, err, ...)                \
    (kernel<<<(grid), (block), (dynamic_bytes), ttn_cuda_queue(stream)>>>(__VA_ARGS__), \
     ttn_cuda_status(cudaGetLastError(), "starting the kernel " #kernel, (err)))

#else

#define TTN_SMEM(type, name, count) TTN_EMULATED_SMEM(type, name, count)

#define TTN_SMEM_DYNAMIC(type, name) TTN_EMULATED_SMEM_DYNAMIC(type, name)

#define TTN_LAUNCH(kernel, grid, block, dynamic_bytes, stream, err, ...)   \
    (emulation_launch(#kernel, (kernel), (grid), (block), (dynamic_bytes), \
                      ttn_cuda_queue(stream) __VA_OPT__(, ) __VA_ARGS__),  \
     ttn_cuda_status(cudaGetLastError(), "starting the kernel " #kernel, (err)))

#endif

/* More than 48 KiB of dynamic shared memory must be asked for once, before the launch. A ttn_status. */
#define TTN_ALLOW_DYNAMIC(kernel, bytes, err)                                                                   \
    ttn_cuda_status(cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),                                \
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)), \
                    "shared memory for the kernel " #kernel, (err))

/* This thread's number in a grid of one dimension, and how many there are. */
static __device__ inline int64_t ttn_cuda_first()
{
    return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
static __device__ inline int64_t ttn_cuda_stride()
{
    return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

/* The sum, or the largest, of the values of a warp's 32 lanes, in every lane: all of them must call it. The same tree every
 * time. */
template <class T> static __device__ inline T ttn_warp_sum(T value)
{
    for (int distance = TTN_WARP / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
    return value;
}
template <class T> static __device__ inline T ttn_warp_max(T value)
{
    for (int distance = TTN_WARP / 2; distance > 0; distance /= 2) {
        const T other = __shfl_xor_sync(0xFFFFFFFFu, value, distance);
        value = other > value ? other : value;
    }
    return value;
}

/* The same over a block of one dimension and whole warps, in every thread: all threads must call it. part: TTN_WARP numbers
 * of shared memory, which are free again afterwards. Warps are added in their order. */
template <class T> static __device__ inline T ttn_block_sum(T value, T *part)
{
    const int n_warp = static_cast<int>(blockDim.x) / TTN_WARP;
    value = ttn_warp_sum(value);
    if (threadIdx.x % TTN_WARP == 0) part[threadIdx.x / TTN_WARP] = value;
    __syncthreads();
    T sum = part[0];
    for (int warp = 1; warp < n_warp; warp++)
        sum += part[warp];
    __syncthreads(); /* all have read before part is written again */
    return sum;
}
template <class T> static __device__ inline T ttn_block_max(T value, T *part)
{
    const int n_warp = static_cast<int>(blockDim.x) / TTN_WARP;
    value = ttn_warp_max(value);
    if (threadIdx.x % TTN_WARP == 0) part[threadIdx.x / TTN_WARP] = value;
    __syncthreads();
    T most = part[0];
    for (int warp = 1; warp < n_warp; warp++)
        most = part[warp] > most ? part[warp] : most;
    __syncthreads();
    return most;
}

#endif /* __cplusplus */
#endif
