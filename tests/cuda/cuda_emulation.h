/* CUDA's language for kernels in plain C++, for tests on machines without a GPU: core/cuda.h includes it where nvcc would
 * bring cuda_runtime.h. A block's threads are fibers on one thread of the host (engine.cpp); every access to memory is
 * looked at (shadow.cpp).
 *
 * Here: indices, TTN_SMEM and TTN_LAUNCH, __syncthreads and its reductions, __syncwarp, shuffles, votes, integer atomics,
 * __ldg, vector types, bit casts. Not here, so that it does not compile: atomics of float and double (their sums have
 * no order), cooperative groups, textures, approximate functions (__expf).
 *
 * What a run on a GPU may still show: its timing, its memory model between blocks, other bits of exp, log and the like.
 */
#ifndef TTN_TEST_CUDA_EMULATION_H
#define TTN_TEST_CUDA_EMULATION_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)

/* ---- vector types ---- */

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

#define EMULATED_VECTORS(type, name, align2, align4)                     \
    struct alignas(align2) name##2                                       \
    {                                                                    \
        type x, y;                                                       \
    };                                                                   \
    struct alignas(align4) name##4                                       \
    {                                                                    \
        type x, y, z, w;                                                 \
    };                                                                   \
    static inline name##2 make_##name##2(type x, type y)                 \
    {                                                                    \
        return name##2 {x, y};                                           \
    }                                                                    \
    static inline name##4 make_##name##4(type x, type y, type z, type w) \
    {                                                                    \
        return name##4 {x, y, z, w};                                     \
    }
EMULATED_VECTORS(float, float, 8, 16)
EMULATED_VECTORS(int, int, 8, 16)
EMULATED_VECTORS(unsigned, uint, 8, 16)
EMULATED_VECTORS(double, double, 16, 16)
#undef EMULATED_VECTORS

/* ---- the engine's side: engine.cpp, shadow.cpp ---- */

uint3 emulation_thread_index();
uint3 emulation_block_index();
dim3 emulation_block_size();
dim3 emulation_grid_size();

/* Kernel code begins and ends here: in between, accesses are checked. */
void emulation_begin_kernel();
void emulation_end_kernel();

cudaError_t emulation_enqueue(const char *name, const void *kernel, dim3 grid, dim3 block, size_t dynamic_bytes,
                              cudaStream_t stream, std::function<void()> body);

/* The array of this name, line and size in the running block's shared memory; everybody gets the same one. */
void *emulation_shared(const char *name, int line, size_t bytes);
void *emulation_shared_dynamic(const char *name);

/* A barrier of the block; how many threads brought something that is not 0. */
int emulation_barrier(const char *file, int line, int predicate);

/* What a warp's lanes do together. */
enum emulation_warp_kind {
    EMULATION_SYNC,
    EMULATION_SHUFFLE,
    EMULATION_BALLOT,
    EMULATION_REDUCE_ADD,
    EMULATION_REDUCE_MIN,
    EMULATION_REDUCE_MAX,
    EMULATION_REDUCE_MIN_SIGNED,
    EMULATION_REDUCE_MAX_SIGNED,
    EMULATION_REDUCE_AND,
    EMULATION_REDUCE_OR,
    EMULATION_REDUCE_XOR,
};

/* Waits for the lanes of mask, and gives what lane `from` brought, or what they make together. */
uint64_t emulation_warp(emulation_warp_kind kind, unsigned mask, uint64_t value, int from);

/* TTN_MOST_BLOCKS: emulation_set_most_blocks (emulation.h). */
int emulation_most_blocks();

/* A read that assumes that the kernel writes there nowhere. */
void emulation_read_only(const void *at, size_t bytes);

/* ---- launches ---- */

template <class T> struct emulation_same {
    using type = T;
};

/* On the fiber: the parameters are on its own stack before anything is checked. */
template <class... P> __attribute__((noinline)) void emulation_run_kernel(void (*kernel)(P...), P... parameters)
{
    emulation_begin_kernel();
    kernel(parameters...);
    emulation_end_kernel();
}

/* Arguments are converted and copied now, as a launch does; the kernel runs when the stream gets to it. */
template <class... P>
cudaError_t emulation_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t dynamic_bytes,
                             cudaStream_t stream, typename emulation_same<P>::type... parameters)
{
    return emulation_enqueue(name, reinterpret_cast<const void *>(kernel), grid, block, dynamic_bytes, stream,
                             [=] { emulation_run_kernel<P...>(kernel, parameters...); });
}

#define TTN_EMULATED_SMEM(type, name, count) \
    type(&name)[count] = *reinterpret_cast<type(*)[count]>(emulation_shared(#name, __LINE__, sizeof(type[count])))

#define TTN_EMULATED_SMEM_DYNAMIC(type, name) type *name = static_cast<type *>(emulation_shared_dynamic(#name))

/* ---- what a kernel sees ---- */

#define threadIdx (emulation_thread_index())
#define blockIdx  (emulation_block_index())
#define blockDim  (emulation_block_size())
#define gridDim   (emulation_grid_size())
#define warpSize  32

#define __syncthreads()                ((void)emulation_barrier(__FILE__, __LINE__, 0))
#define __syncthreads_count(predicate) emulation_barrier(__FILE__, __LINE__, (predicate))
#define __syncthreads_or(predicate)    (emulation_barrier(__FILE__, __LINE__, (predicate)) > 0)
#define __syncthreads_and(predicate)   (emulation_barrier(__FILE__, __LINE__, !(predicate)) == 0)

static inline void __syncwarp(unsigned mask = 0xFFFFFFFFu)
{
    emulation_warp(EMULATION_SYNC, mask, 0, 0);
}

static inline void __threadfence()
{
}
static inline void __threadfence_block()
{
}

static inline int emulation_lane()
{
    const dim3 size = emulation_block_size();
    const uint3 at = emulation_thread_index();
    return static_cast<int>((at.x + size.x * (at.y + size.y * at.z)) % 32);
}

template <class T> static inline T emulation_shuffle(unsigned mask, T value, int from)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "shuffles move at most 8 bytes");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = emulation_warp(EMULATION_SHUFFLE, mask, bits, from);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/* A lane outside of its segment of `width` lanes: what CUDA's manual says of each shuffle. */
template <class T> static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
    const int lane = emulation_lane();
    return emulation_shuffle(mask, value, lane / width * width + (from & (width - 1)));
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32)
{
    const int lane = emulation_lane();
    const int from = lane - static_cast<int>(distance);
    return emulation_shuffle(mask, value, from < lane / width * width ? lane : from);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32)
{
    const int lane = emulation_lane();
    const int from = lane + static_cast<int>(distance);
    return emulation_shuffle(mask, value, from >= (lane / width + 1) * width ? lane : from);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int distance, int width = 32)
{
    const int lane = emulation_lane();
    const int from = lane ^ distance;
    return emulation_shuffle(mask, value, from >= (lane / width + 1) * width ? lane : from);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    return static_cast<unsigned>(emulation_warp(EMULATION_BALLOT, mask, predicate != 0, 0));
}
static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, !predicate) == 0;
}

#define EMULATED_REDUCE(name, type, kind)                                                      \
    static inline type __reduce_##name##_sync(unsigned mask, type value)                       \
    {                                                                                          \
        return static_cast<type>(emulation_warp(kind, mask, static_cast<unsigned>(value), 0)); \
    }
EMULATED_REDUCE(add, unsigned, EMULATION_REDUCE_ADD)
EMULATED_REDUCE(add, int, EMULATION_REDUCE_ADD)
EMULATED_REDUCE(min, unsigned, EMULATION_REDUCE_MIN)
EMULATED_REDUCE(min, int, EMULATION_REDUCE_MIN_SIGNED)
EMULATED_REDUCE(max, unsigned, EMULATION_REDUCE_MAX)
EMULATED_REDUCE(max, int, EMULATION_REDUCE_MAX_SIGNED)
EMULATED_REDUCE(and, unsigned, EMULATION_REDUCE_AND)
EMULATED_REDUCE(or, unsigned, EMULATION_REDUCE_OR)
EMULATED_REDUCE(xor, unsigned, EMULATION_REDUCE_XOR)
#undef EMULATED_REDUCE

/* Atomics of integers. Whatever the order of the threads, add, min, max, and, or and xor end in the same number. */
#define EMULATED_ATOMICS(type)                      \
    type atomicMin(type *at, type value);           \
    type atomicMax(type *at, type value);           \
    type atomicExch(type *at, type value);          \
    type atomicCAS(type *at, type old, type value); \
    type atomicAnd(type *at, type value);           \
    type atomicOr(type *at, type value);            \
    type atomicXor(type *at, type value);           \
    type atomicAdd(type *at, type value);
EMULATED_ATOMICS(int)
EMULATED_ATOMICS(unsigned)
EMULATED_ATOMICS(unsigned long long)
#undef EMULATED_ATOMICS
long long atomicMin(long long *at, long long value);
long long atomicMax(long long *at, long long value);

template <class T> static inline T __ldg(const T *at)
{
    emulation_read_only(at, sizeof *at);
    return *at;
}

using std::max;
using std::min;

static inline float rsqrtf(float x)
{
    return 1.0f / std::sqrt(x);
}
static inline double rsqrt(double x)
{
    return 1.0 / std::sqrt(x);
}

template <class To, class From> static inline To emulation_bits(From x)
{
    static_assert(sizeof(To) == sizeof(From), "bits of one size");
    To bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline unsigned __float_as_uint(float x)
{
    return emulation_bits<unsigned>(x);
}
static inline int __float_as_int(float x)
{
    return emulation_bits<int>(x);
}
static inline float __uint_as_float(unsigned x)
{
    return emulation_bits<float>(x);
}
static inline float __int_as_float(int x)
{
    return emulation_bits<float>(x);
}
static inline long long __double_as_longlong(double x)
{
    return emulation_bits<long long>(x);
}
static inline double __longlong_as_double(long long x)
{
    return emulation_bits<double>(x);
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}

#endif
