/* Where values live and kernels run: a table of functions per kind of device.
 *
 * The engine sees memory only through this: nothing in autograd/ dereferences a value's pointer, so the same plan runs
 * where the host cannot read. All work of a plan goes to one stream, in order.
 */
#ifndef TTN_DEVICE_H
#define TTN_DEVICE_H

#include <stddef.h>
#include <stdint.h>
#include "core/blas.h"
#include "core/status.h"
#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ttn_device ttn_device;
typedef struct ttn_memory ttn_memory; /* one region that can grow */
typedef struct ttn_event ttn_event;

/* A queue of a device, and what kernels need to know of it. */
typedef struct {
    ttn_device *device;
    int n_thread; /* CPU: the OpenMP threads a kernel may use, at least 1. Never changes a result. */
    void *queue;  /* CUDA: a cudaStream_t, or NULL: the device's first one; CPU: NULL */
} ttn_stream;

/* What the device is, for people and for records. Versions are "" where there is none. */
typedef struct {
    const char *kind; /* "cpu", "cuda" */
    int index;        /* GPU number; CPU: 0 */
    char name[256];
    size_t memory, memory_free; /* bytes */
    int multiprocessors;        /* CPU: processors that are switched on */
    int capability[2];          /* CUDA: compute capability, {8, 0}; CPU: {0, 0} */
    char driver[16], runtime[16];
    char blas[64]; /* CPU: "", core/blas.h knows */
} ttn_device_report;

/* Whose kernels run there: those of autograd/ops/NAME.c or those of NAME.cu. */
typedef enum { TTN_KERNELS_CPU, TTN_KERNELS_CUDA } ttn_kernel_kind;

typedef struct {
    const char *name; /* "cpu", "cuda" */
    ttn_kernel_kind kernels;

    void (*destroy)(ttn_device *d);

    /* A region of at least `bytes`, which memory_grow may enlarge up to `most`. Contents are not defined. */
    ttn_status (*memory_create)(ttn_device *d, size_t bytes, size_t most, ttn_memory **ret, ttn_error *err);
    /* At least `bytes` from now on. The address and the contents may change on devices that cannot keep them; then the
     * region's word is NULL again, and after a failure it has no bytes. */
    ttn_status (*memory_grow)(ttn_memory *m, size_t bytes, ttn_error *err);
    /* What is new is first touched by the threads of the stream, so that it lies near them. Contents stay. */
    void (*memory_touch)(ttn_memory *m, const ttn_stream *s);
    void *(*memory_base)(const ttn_memory *m);
    size_t (*memory_bytes)(const ttn_memory *m);
    /* A word for whoever uses the region, NULL at first: plans that share one mark whose results lie in it. */
    const void **(*memory_user)(ttn_memory *m);
    void (*memory_destroy)(ttn_memory *m);

    /* In the stream's order. put and get: the host's side may be reused when they return. copy: `to` and `from` do not
     * overlap. */
    ttn_status (*put)(const ttn_stream *s, void *to, const void *from_host, size_t bytes, ttn_error *err);
    ttn_status (*get)(const ttn_stream *s, void *to_host, const void *from, size_t bytes, ttn_error *err);
    ttn_status (*copy)(const ttn_stream *s, void *to, const void *from, size_t bytes, ttn_error *err);
    ttn_status (*fill)(const ttn_stream *s, void *to, int byte, size_t bytes, ttn_error *err);

    /* to[i] += from[i], i < n, elements of the build's real type: gradient slabs of micro-batches. */
    ttn_status (*add)(const ttn_stream *s, void *to, const void *from, int64_t n, ttn_error *err);

    /* One product, as ttn_gemm (core/blas.h): C (m, n) = alpha op(A) op(B) + beta C. CPU: on the calling thread. An
     * extent or ld that is negative or beyond INT_MAX is TTN_EINVAL. */
    ttn_status (*gemm)(const ttn_stream *s, ttn_trans ta, ttn_trans tb, int64_t m, int64_t n, int64_t k, double alpha,
                       ttn_mat_in a, ttn_mat_in b, double beta, ttn_mat_out c, ttn_error *err);

    /* How many of n elements are NaN or infinite, and the first of them (-1: none). Integer types have none. Waits. */
    ttn_status (*find_nonfinite)(const ttn_stream *s, ttn_dtype type, const void *x, int64_t n, int64_t *count,
                                 int64_t *first, ttn_error *err);

    /* Wait until everything that was queued is done. */
    ttn_status (*sync)(const ttn_stream *s, ttn_error *err);

    /* Order between streams: b waits for what a had queued when the event was recorded. */
    ttn_status (*event_create)(ttn_device *d, ttn_event **ret, ttn_error *err);
    ttn_status (*event_record)(ttn_event *e, const ttn_stream *s, ttn_error *err);
    ttn_status (*event_wait)(ttn_event *e, const ttn_stream *s, ttn_error *err);
    void (*event_destroy)(ttn_event *e);

    ttn_status (*report)(ttn_device *d, ttn_device_report *ret, ttn_error *err);
} ttn_device_ops;

/* Every kind of device begins with this. */
struct ttn_device {
    const ttn_device_ops *ops;
};

/* The host's processor. *ret is the caller's; destroy through ops->destroy. */
TTN_MUST_USE ttn_status ttn_device_cpu(ttn_device **ret, ttn_error *err);

/* GPU number `index`. Built without CUDA: TTN_EDEVICE, "built without CUDA". */
TTN_MUST_USE ttn_status ttn_device_cuda(int index, ttn_device **ret, ttn_error *err);

/* For devices: the extents and lds of one product are 0 to INT_MAX. Else TTN_EINVAL, naming the one that is not. */
TTN_MUST_USE ttn_status ttn_device_check_product(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc,
                                                 ttn_error *err);

static inline void ttn_device_destroy(ttn_device *d)
{
    if (d) d->ops->destroy(d);
}

#ifdef __cplusplus
}
#endif
#endif
