/* What core/device_cuda.c, which is C, asks of its kernels (core/device_kernels.cu). All queued on the stream. */
#ifndef TTN_DEVICE_CUDA_H
#define TTN_DEVICE_CUDA_H

#include "core/device.h"
#include "core/real.h"

#ifdef __cplusplus
extern "C" {
#endif

/* to[i] += from[i], i < n */
TTN_MUST_USE ttn_status ttn_cuda_add_array(const ttn_stream *s, real *to, const real *from, int64_t n, ttn_error *err);

/* Memory of the device; count 0 and first UINT64_MAX before. */
typedef struct {
    uint64_t count, first;
} ttn_cuda_nonfinite;

/* count += how many of n elements are not finite; first = min(first, each of their places). type: not an integer. */
TTN_MUST_USE ttn_status ttn_cuda_count_nonfinite(const ttn_stream *s, ttn_dtype type, const void *x, int64_t n,
                                                 ttn_cuda_nonfinite *found, ttn_error *err);

#ifdef __cplusplus
}
#endif
#endif
