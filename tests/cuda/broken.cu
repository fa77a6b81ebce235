/* broken_kernel sums 128 numbers a block, and is wrong in the way that it is asked for. */
#include "core/cuda.h"
#include "tests/cuda/broken.h"

enum { THREADS = 128, WARPS = THREADS / TTN_WARP, BLOCKS = 2 };

static __device__ real *pass(real *at)
{
    return at;
}

/* A frame that is larger than a stack, and ends in what guards it: the same bytes in either precision. */
static __device__ __attribute__((noinline)) real deep(real x)
{
    const int n = 72000 / static_cast<int>(sizeof(real));
    volatile real much[n];
    for (int i = 0; i < n; i++)
        much[i] = x;
    return much[7];
}

static __device__ void use_much(real x)
{
    TTN_SMEM(real, much, 49152 / sizeof(real));
    much[threadIdx.x] = x;
}

static __device__ real from_dynamic(real x)
{
    TTN_SMEM_DYNAMIC(real, dynamic);
    dynamic[threadIdx.x] = x;
    return dynamic[threadIdx.x];
}

static __global__ void broken_kernel(broken which, const real *x, real *y, const real *host)
{
    TTN_SMEM(real, part, WARPS);
    TTN_SMEM(real, turned, THREADS);
    const int t = static_cast<int>(threadIdx.x);
    const int lane = t % TTN_WARP;
    real value = x[blockIdx.x * THREADS + t];

    /* to the neighbour in the warp and back, through shared memory */
    turned[t] = value;
    if (which != BROKEN_SHUFFLE_NO_SYNC) __syncwarp();
    value = turned[t ^ 1];

    if (which == BROKEN_HALF_WARP) {
        if (lane < TTN_WARP / 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, 1);
    }
    if (which == BROKEN_NOT_IN_MASK) value += __shfl_xor_sync(0x0000FFFFu, value, 1);
    if (which == BROKEN_RETURNED_LANE) {
        if (lane == 3) return;
        value += __shfl_sync(0xFFFFFFFFu, value, 3);
    }
    if (which == BROKEN_LANE_OUTSIDE) {
        if (lane < TTN_WARP / 2) value += __shfl_sync(0x0000FFFFu, value, 20);
    }
    if (which == BROKEN_SOME_AT_BARRIER) {
        if (t < 40) __syncthreads();
        return;
    }
    if (which == BROKEN_TWO_BARRIERS) {
        if (t < 40)
            __syncthreads();
        else
            __syncthreads();
    }

    const real sum_of_warp = ttn_warp_sum(value);
    real *first = pass(part);
    if (lane == 0) first[t / TTN_WARP] = sum_of_warp;
    if (which == BROKEN_SHARED_END && t == 5) first[WARPS] = 1;
    if (which == BROKEN_SHARED_START && t == 5) first[-1] = 1;
    if (which != BROKEN_NO_BARRIER) __syncthreads();
    real sum = 0;
    for (int w = 0; w < WARPS; w++)
        sum += first[w];
    if (which != BROKEN_LAST_BARRIER) __syncthreads();
    if (lane == 0) part[t / TTN_WARP] = 0;

    if (which == BROKEN_SHARED_UNWRITTEN) {
        TTN_SMEM(real, never, THREADS);
        sum += never[t];
    }
    if (which == BROKEN_TWO_BLOCKS_WRITE && t == 0) y[3] = 1;
    if (which == BROKEN_BLOCK_READS_OTHERS && t == 0) sum += y[1 - blockIdx.x];
    if (which == BROKEN_DEVICE_END && t == 0) y[100000] = 1;
    if (which == BROKEN_HOST_MEMORY) sum += host[t];
    if (which == BROKEN_MISALIGNED) sum += static_cast<real>(reinterpret_cast<const float4 *>(x + 1)->x);
    if (which == BROKEN_NO_DYNAMIC) sum += from_dynamic(sum);
    if (which == BROKEN_MUCH_SHARED) use_much(sum);
    if (which == BROKEN_DEEP) sum += deep(sum);
    if (which == BROKEN_BLOCK_WRITES_OTHERS && t == 0) {
        sum += y[blockIdx.x + 2];
        y[3 - blockIdx.x] = 1;
    }
    if (t == 0) y[blockIdx.x] = sum;
    if (which == BROKEN_LDG && t == 0) y[blockIdx.x] = __ldg(y + blockIdx.x);
}

ttn_status broken_run(broken which, const ttn_stream *s, const real *x, real *y, const real *host, ttn_error *err)
{
    return TTN_LAUNCH(broken_kernel, BLOCKS, THREADS, 0, s, err, which, x, y, host);
}

/* ---- a kernel that uses everything ---- */

/* One warp and a half of a second one: not a whole number of warps. */
enum { RIGHT_THREADS = 48 };

static __device__ void expect(int *out, int i, bool holds)
{
    if (__syncthreads_and(holds) && threadIdx.x == 0) out[i] = 1;
}

static __global__ void right_kernel(int *out, unsigned long long *wide, const int64_t *never)
{
    TTN_SMEM(int, seen, RIGHT_THREADS);
    TTN_SMEM_DYNAMIC(double, dynamic);
    const int t = static_cast<int>(threadIdx.x);
    const int lane = t % TTN_WARP;
    const unsigned all = t < TTN_WARP ? 0xFFFFFFFFu : 0x0000FFFFu;
    const int lanes = t < TTN_WARP ? TTN_WARP : RIGHT_THREADS - TTN_WARP;
    int i = 0;

    expect(out, i++, blockDim.x == RIGHT_THREADS && gridDim.x == 1 && blockIdx.x == 0 && threadIdx.y == 0);
    expect(out, i++, __syncthreads_count(t < 5) == 5);
    expect(out, i++, __syncthreads_or(t == 47) && !__syncthreads_or(0));

    expect(out, i++, __shfl_sync(all, t, 7) == t / TTN_WARP * TTN_WARP + 7);
    expect(out, i++, __shfl_sync(all, lane, 3, 8) == lane / 8 * 8 + 3);
    expect(out, i++, __shfl_up_sync(all, lane, 2) == (lane < 2 ? lane : lane - 2));
    expect(out, i++, __shfl_down_sync(all, lane, 2, 4) == (lane % 4 < 2 ? lane + 2 : lane));
    expect(out, i++, __shfl_xor_sync(all, 0.5 * lane, 5) == 0.5 * (lane ^ 5));
    expect(out, i++, __shfl_xor_sync(all, lane, 4, 4) == (lane % 8 < 4 ? lane : lane - 4));
    expect(out, i++, __ballot_sync(all, lane % 2) == (0xAAAAAAAAu & all));
    expect(out, i++, __any_sync(all, lane == 9) && !__any_sync(all, 0));
    expect(out, i++, __all_sync(all, 1) && !__all_sync(all, lane != 9));
    expect(out, i++, __reduce_add_sync(all, lane) == lanes * (lanes - 1) / 2);
    expect(out, i++, __reduce_min_sync(all, -lane) == 1 - lanes && __reduce_max_sync(all, lane - 5) == lanes - 6);
    expect(out, i++, __reduce_max_sync(all, 0u - static_cast<unsigned>(lane)) == 0xFFFFFFFFu);
    expect(out, i++, __reduce_or_sync(all, 1u << lane) == all && __reduce_and_sync(all, 1u << lane) == 0);
    expect(out, i++, __reduce_xor_sync(all, static_cast<unsigned>(lane)) == 0);

    /* two halves of a warp, each for itself */
    int half = 0;
    if (lane < 16)
        half = __shfl_sync(0x0000FFFFu, lane, 15);
    else
        half = __shfl_sync(0xFFFF0000u, lane, 16);
    expect(out, i++, half == (lane < 16 ? 15 : 16));

    /* shared memory, ordered by a barrier of the block and then by one of the warp */
    seen[t] = t;
    __syncthreads();
    expect(out, i++, seen[RIGHT_THREADS - 1 - t] == RIGHT_THREADS - 1 - t);
    seen[t] = 2 * t;
    __syncwarp(all);
    expect(out, i++, seen[t ^ 1] == 2 * (t ^ 1));

    dynamic[t] = t;
    __syncthreads();
    expect(out, i++, dynamic[(t + 1) % RIGHT_THREADS] == (t + 1) % RIGHT_THREADS);

    TTN_SMEM(unsigned, count, 4);
    if (t < 4) count[t] = t == 1 ? 1000 : 0;
    __syncthreads();
    atomicAdd(&count[0], 2u);
    atomicMin(&count[1], static_cast<unsigned>(t) + 5);
    atomicMax(&count[2], static_cast<unsigned>(t));
    atomicOr(&count[3], 1u << lane);
    __syncthreads();
    expect(out, i++, count[0] == 2 * RIGHT_THREADS && count[1] == 5 && count[2] == 47 && count[3] == 0xFFFFFFFFu);
    atomicMin(wide, static_cast<unsigned long long>(100 - t));
    __syncthreads();
    expect(out, i++, *wide == 53);

    TTN_SMEM(float4, four, RIGHT_THREADS);
    four[t] = make_float4(1, 2, 3, static_cast<float>(t));
    expect(out, i++, four[t].z == 3 && reinterpret_cast<const float *>(&four[t])[3] == static_cast<float>(t));

    TTN_SMEM(unsigned char, bytes, RIGHT_THREADS);
    bytes[t] = static_cast<unsigned char>(t); /* neighbours in one word are no race */
    __syncthreads();
    expect(out, i++, bytes[t ^ 1] == (t ^ 1));

    expect(out, i++, __float_as_uint(1.0f) == 0x3F800000u && __uint_as_float(0x40000000u) == 2.0f);
    expect(out, i++, __popc(0xF0F0u) == 8 && __clz(1) == 31 && __ffs(8) == 4 && __umulhi(1u << 31, 4) == 2);
    expect(out, i++, __umul64hi(1ull << 63, 6) == 3 && min(3, 4) == 3 && max(3.0f, 4.0f) == 4.0f);
    expect(out, i++, rsqrtf(4.0f) == 0.5f && rsqrt(16.0) == 0.25);
    expect(out, i++, never == nullptr || __ldg(never) == 0);

    /* a structure that is copied whole: a call of memcpy under some compilers */
    struct large {
        double at[20];
    };
    TTN_SMEM(large, copies, 2);
    large own;
    for (int k = 0; k < 20; k++)
        own.at[k] = k;
    if (t == 0) copies[1] = own;
    __syncthreads();
    own = copies[1];
    expect(out, i++, own.at[19] == 19 && copies[1].at[3] == 3);

    int mine[8]; /* local memory */
    for (int k = 0; k < 8; k++)
        mine[(k * 3 + t) % 8] = k;
    expect(out, i++, mine[(6 + t) % 8] == 2);

    TTN_SMEM(real, scratch, TTN_WARP);
    expect(out, i++, true);
    (void)scratch;
    for (; i < RIGHT_WORDS; i++)
        expect(out, i, true);
}

/* Whole warps: ttn_block_sum and ttn_block_max. */
static __global__ void block_kernel(int *out)
{
    TTN_SMEM(double, scratch, TTN_WARP);
    const double t = static_cast<double>(threadIdx.x);
    const bool sums = ttn_block_sum(t, scratch) == 127 * 64 && ttn_block_sum(1.0, scratch) == 128;
    const bool mosts = ttn_block_max(-t, scratch) == 0 && ttn_block_max(t, scratch) == 127;
    if (__syncthreads_and(sums && mosts) && threadIdx.x == 0) out[RIGHT_WORDS] = 1;
}

ttn_status right_run(const ttn_stream *s, int *out, ttn_error *err)
{
    unsigned long long *wide = reinterpret_cast<unsigned long long *>(out + RIGHT_WORDS + 2);
    const ttn_status status = TTN_LAUNCH(right_kernel, 1, RIGHT_THREADS, RIGHT_THREADS * sizeof(double), s, err, out,
                                         wide, static_cast<const int64_t *>(nullptr));
    if (status != TTN_OK) return status;
    return TTN_LAUNCH(block_kernel, 1, THREADS, 0, s, err, out);
}

/* ---- launches, order ---- */

static __global__ void empty_kernel()
{
}

ttn_status empty_run(const ttn_stream *s, unsigned blocks, unsigned threads, size_t dynamic_bytes, int allow,
                     ttn_error *err)
{
    if (allow) {
        const ttn_status status = TTN_ALLOW_DYNAMIC(empty_kernel, dynamic_bytes, err);
        if (status != TTN_OK) return status;
    }
    return TTN_LAUNCH(empty_kernel, blocks, threads, dynamic_bytes, s, err);
}

static __global__ void order_kernel(int *order, int *clock)
{
    order[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(clock, 1);
}

ttn_status order_run(const ttn_stream *s, int *order, int *clock, ttn_error *err)
{
    return TTN_LAUNCH(order_kernel, 3, 64, 0, s, err, order, clock);
}
