/* The kernels of core/device_cuda.c. */
#include "core/cuda.h"
#include "core/device_cuda.h"

enum { THREADS = 256 };

static __global__ void add_kernel(int64_t n, const real *from, real *to)
{
    for (int64_t i = ttn_cuda_first(); i < n; i += ttn_cuda_stride())
        to[i] += from[i];
}

ttn_status ttn_cuda_add_array(const ttn_stream *s, real *to, const real *from, int64_t n, ttn_error *err)
{
    return TTN_LAUNCH(add_kernel, ttn_cuda_blocks(n, THREADS), THREADS, 0, s, err, n, from, to);
}

/* All bits of the exponent are set. Word: an unsigned integer of the number's size. */
template <class Word>
static __global__ void nonfinite_kernel(int64_t n, const Word *x, Word exponent, ttn_cuda_nonfinite *found)
{
    unsigned long long count = 0;
    unsigned long long first = ~0ull;
    for (int64_t i = ttn_cuda_first(); i < n; i += ttn_cuda_stride()) {
        if ((x[i] & exponent) != exponent) continue;
        if (count == 0) first = static_cast<unsigned long long>(i);
        count++;
    }
    if (count == 0) return;
    /* sums and minima of integers are the same in any order */
    atomicAdd(reinterpret_cast<unsigned long long *>(&found->count), count);
    atomicMin(reinterpret_cast<unsigned long long *>(&found->first), first);
}

template <class Word>
static ttn_status count_nonfinite(const ttn_stream *s, const void *x, int64_t n, Word exponent,
                                  ttn_cuda_nonfinite *found, ttn_error *err)
{
    return TTN_LAUNCH(nonfinite_kernel<Word>, ttn_cuda_blocks(n, THREADS), THREADS, 0, s, err, n,
                      static_cast<const Word *>(x), exponent, found);
}

ttn_status ttn_cuda_count_nonfinite(const ttn_stream *s, ttn_dtype type, const void *x, int64_t n,
                                    ttn_cuda_nonfinite *found, ttn_error *err)
{
    switch (ttn_dtype_stored(type)) {
    case TTN_F32:
        return count_nonfinite<uint32_t>(s, x, n, 0x7F800000u, found, err);
    case TTN_F64:
        return count_nonfinite<uint64_t>(s, x, n, 0x7FF0000000000000u, found, err);
    case TTN_BF16:
        return count_nonfinite<uint16_t>(s, x, n, 0x7F80u, found, err);
    case TTN_F16:
        return count_nonfinite<uint16_t>(s, x, n, 0x7C00u, found, err);
    default:
        return TTN_OK;
    }
}
