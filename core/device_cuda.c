/* A GPU, through the CUDA runtime and cuBLAS. Its kernels are in core/device_kernels.cu.
 *
 * The same bits every time. cuBLAS promises them for one library, one kind of GPU and one configuration, if no two streams
 * share its workspace and no atomics are allowed: so the handle has a workspace of its own, which cublasSetStream takes
 * away and which is given again; when another stream multiplies, it waits for the one before. Pedantic math: f32 is
 * multiplied as f32 and not as TF32, whose 10 bits are no f32. (CUBLAS_WORKSPACE_CONFIG, which other programs set to the
 * same end, concerns the workspaces that cuBLAS takes by itself; here it takes none.) Another library or another GPU may
 * sum in another order.
 *
 * Copies from and to the host go through pinned memory. What is put is copied into a ring of slots and leaves from there,
 * so put returns while the stream still works; get waits. One thread of the host uses a device at a time.
 */
#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/cuda.h"
#include "core/device_cuda.h"
#include <cublas_v2.h>

enum {
    SLOTS = 8,
    SLOT_BYTES = 1 << 20,
    LANDING_BYTES = 4 << 20, /* of one piece of a get */
    STAGING_ALIGN = 64,
    /* What cuBLAS takes by itself: 4 MiB, and 32 on GPUs of compute capability 9 (its manual, cublasSetWorkspace). */
    WORKSPACE_BYTES = 4 << 20,
    WORKSPACE_BYTES_9 = 32 << 20,
};

/* What is in flight from one slot of the ring. */
typedef struct {
    cudaEvent_t left; /* recorded behind the last copy from it */
    int in_flight;
} slot;

typedef struct {
    ttn_device base;
    int index;
    struct cudaDeviceProp properties;
    cudaStream_t queue; /* the first one: of streams that name none */

    cublasHandle_t blas;
    void *workspace;
    size_t workspace_bytes;
    cudaStream_t multiplying; /* whose products use the workspace; NULL: nobody's yet */
    cudaEvent_t multiplied;   /* recorded behind the last product of a stream that is not ours: it may be gone by now */

    char *ring; /* SLOTS * SLOT_BYTES, pinned */
    slot slot[SLOTS];
    int at;             /* the slot that is being filled … */
    size_t filled;      /* … up to here … */
    cudaStream_t taker; /* … for this stream, which may be gone by now */
    char *landing;      /* LANDING_BYTES, pinned */

    ttn_cuda_nonfinite *found; /* of the device */
} cuda_device;

struct ttn_memory {
    cuda_device *device;
    void *start;
    size_t bytes, most;
    const void *user;
};

struct ttn_event {
    cuda_device *device;
    cudaEvent_t event;
    int recorded;
};

/* ---- errors ---- */

ttn_status ttn_cuda_status(cudaError_t answer, const char *what, ttn_error *err)
{
    if (answer == cudaSuccess) return TTN_OK;
    (void)cudaGetLastError(); /* told once is enough: else the next launch that succeeds would tell it again */
    const ttn_status status = answer == cudaErrorMemoryAllocation ? TTN_ENOMEM : TTN_EDEVICE;
    return TTN_FAIL(err, status, "GPU: %s: %s (%s)", what, cudaGetErrorName(answer), cudaGetErrorString(answer));
}

static ttn_status blas_status(cublasStatus_t answer, const char *what, ttn_error *err)
{
    if (answer == CUBLAS_STATUS_SUCCESS) return TTN_OK;
    const ttn_status status = answer == CUBLAS_STATUS_ALLOC_FAILED ? TTN_ENOMEM : TTN_EDEVICE;
    return TTN_FAIL(err, status, "GPU: cuBLAS: %s: %s", what, cublasGetStatusString(answer));
}

static cuda_device *device_of(const ttn_stream *s)
{
    return (cuda_device *)s->device;
}

/* The runtime's calls concern the calling thread's current device. What this says is said again by the call it is for. */
static void make_current(const cuda_device *d)
{
    (void)cudaSetDevice(d->index);
}

cudaStream_t ttn_cuda_queue(const ttn_stream *s)
{
    const cuda_device *d = device_of(s);
    make_current(d);
    return s->queue ? (cudaStream_t)s->queue : d->queue;
}

/* ---- memory ---- */

static void memory_destroy(ttn_memory *m)
{
    if (!m) return;
    make_current(m->device);
    /* cudaFree waits for what is queued, which may use this memory (cudaFreeAsync would not). A device that has failed says
     * so again; the memory goes with it. */
    (void)cudaFree(m->start);
    free(m);
}

/* A region of nothing has an address, too. */
static ttn_status take(ttn_memory *m, size_t bytes, ttn_error *err)
{
    char what[96];
    snprintf(what, sizeof what, "%zu bytes of memory", bytes);
    make_current(m->device);
    const cudaError_t answer = cudaMalloc(&m->start, bytes > 0 ? bytes : 1);
    if (answer != cudaSuccess) {
        m->start = NULL;
        return ttn_cuda_status(answer, what, err);
    }
    m->bytes = bytes;
    return TTN_OK;
}

static ttn_status memory_create(ttn_device *device, size_t bytes, size_t most, ttn_memory **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_memory *m = calloc(1, sizeof *m);
    if (!m) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for a memory region");
    *m = (ttn_memory){.device = (cuda_device *)device, .most = most > bytes ? most : bytes};
    const ttn_status status = take(m, bytes, err);
    if (status != TTN_OK) {
        free(m);
        return status;
    }
    *ret = m;
    return TTN_OK;
}

/* The old one goes first: both together may be more than there is. So the contents are gone, and whose they were. */
static ttn_status memory_grow(ttn_memory *m, size_t bytes, ttn_error *err)
{
    if (bytes <= m->bytes) return TTN_OK;
    if (bytes > m->most)
        return TTN_FAIL(err, TTN_EINVAL, "values: %zu bytes are wanted, %zu were reserved", bytes, m->most);
    make_current(m->device);
    const ttn_status status = TTN_CUDA_TRY(cudaFree(m->start), err, "giving memory back");
    m->start = NULL;
    m->bytes = 0;
    m->user = NULL;
    if (status != TTN_OK) return status;
    return take(m, bytes, err);
}

static void memory_touch(ttn_memory *m, const ttn_stream *s)
{
    (void)m;
    (void)s;
}

static void *memory_base(const ttn_memory *m)
{
    return m->start;
}

static size_t memory_bytes(const ttn_memory *m)
{
    return m->bytes;
}

static const void **memory_user(ttn_memory *m)
{
    return &m->user;
}

/* ---- copies ---- */

/* Up to `bytes` of pinned memory for a copy on this queue: *ret_bytes at *ret. A slot is one stream's, so that one event says
 * when it is free. */
static ttn_status stage(cuda_device *d, cudaStream_t queue, size_t bytes, char **ret, size_t *ret_bytes, ttn_error *err)
{
    if (d->filled == SLOT_BYTES || (d->filled > 0 && d->taker != queue)) {
        d->at = (d->at + 1) % SLOTS;
        d->filled = 0;
    }
    slot *s = &d->slot[d->at];
    if (d->filled == 0 && s->in_flight) {
        const ttn_status status = TTN_CUDA_TRY(cudaEventSynchronize(s->left), err, "waiting for copies to the GPU");
        if (status != TTN_OK) return status;
        s->in_flight = 0;
    }
    d->taker = queue;
    const size_t room = SLOT_BYTES - d->filled;
    *ret = d->ring + (size_t)d->at * SLOT_BYTES + d->filled;
    *ret_bytes = bytes < room ? bytes : room;
    const size_t used = (*ret_bytes + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN;
    d->filled += used < room ? used : room;
    return TTN_OK;
}

static ttn_status put(const ttn_stream *s, void *to, const void *from_host, size_t bytes, ttn_error *err)
{
    cuda_device *d = device_of(s);
    const cudaStream_t queue = ttn_cuda_queue(s);
    for (size_t done = 0; done < bytes;) {
        char *staged;
        size_t piece;
        ttn_status status = stage(d, queue, bytes - done, &staged, &piece, err);
        if (status != TTN_OK) return status;
        memcpy(staged, (const char *)from_host + done, piece);
        status = TTN_CUDA_TRY(cudaMemcpyAsync((char *)to + done, staged, piece, cudaMemcpyHostToDevice, queue), err,
                              "copying to the GPU");
        slot *used = &d->slot[d->at];
        if (status == TTN_OK)
            status = TTN_CUDA_TRY(cudaEventRecord(used->left, queue), err, "noting what is under way");
        if (status != TTN_OK) return status;
        used->in_flight = 1;
        done += piece;
    }
    return TTN_OK;
}

static ttn_status get(const ttn_stream *s, void *to_host, const void *from, size_t bytes, ttn_error *err)
{
    cuda_device *d = device_of(s);
    const cudaStream_t queue = ttn_cuda_queue(s);
    for (size_t done = 0; done < bytes;) {
        const size_t piece = bytes - done < LANDING_BYTES ? bytes - done : LANDING_BYTES;
        ttn_status status =
            TTN_CUDA_TRY(cudaMemcpyAsync(d->landing, (const char *)from + done, piece, cudaMemcpyDeviceToHost, queue),
                         err, "copying from the GPU");
        if (status == TTN_OK)
            status = TTN_CUDA_TRY(cudaStreamSynchronize(queue), err, "waiting for a copy from the GPU");
        if (status != TTN_OK) return status;
        memcpy((char *)to_host + done, d->landing, piece);
        done += piece;
    }
    return TTN_OK;
}

static ttn_status copy(const ttn_stream *s, void *to, const void *from, size_t bytes, ttn_error *err)
{
    if (bytes == 0) return TTN_OK;
    return TTN_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, ttn_cuda_queue(s)), err,
                        "copying on the GPU");
}

static ttn_status fill(const ttn_stream *s, void *to, int byte, size_t bytes, ttn_error *err)
{
    if (bytes == 0) return TTN_OK;
    return TTN_CUDA_TRY(cudaMemsetAsync(to, byte, bytes, ttn_cuda_queue(s)), err, "filling memory");
}

static ttn_status sync(const ttn_stream *s, ttn_error *err)
{
    return TTN_CUDA_TRY(cudaStreamSynchronize(ttn_cuda_queue(s)), err, "waiting for the work that was queued");
}

/* ---- arithmetic ---- */

static ttn_status add(const ttn_stream *s, void *to, const void *from, int64_t n, ttn_error *err)
{
    if (n == 0) return TTN_OK;
    return ttn_cuda_add_array(s, to, from, n, err);
}

static ttn_status note_products(cuda_device *d, cudaStream_t queue, ttn_error *err)
{
    return TTN_CUDA_TRY(cudaEventRecord(d->multiplied, queue), err, "noting where products end");
}

/* The products of this queue are next in the workspace. */
static ttn_status take_workspace(cuda_device *d, cudaStream_t queue, ttn_error *err)
{
    if (d->multiplying == queue) return TTN_OK;
    ttn_status status = TTN_OK;
    if (d->multiplying) {
        if (d->multiplying == d->queue) status = note_products(d, d->queue, err);
        if (status == TTN_OK)
            status = TTN_CUDA_TRY(cudaStreamWaitEvent(queue, d->multiplied, 0), err,
                                  "waiting for another stream's products");
    }
    if (status == TTN_OK) status = blas_status(cublasSetStream(d->blas, queue), "cublasSetStream", err);
    if (status == TTN_OK)
        status = blas_status(cublasSetWorkspace(d->blas, d->workspace, d->workspace_bytes), "cublasSetWorkspace", err);
    d->multiplying = status == TTN_OK ? queue : NULL;
    return status;
}

static cublasOperation_t operation(ttn_trans t)
{
    return t == TTN_N ? CUBLAS_OP_N : CUBLAS_OP_T;
}

/* A row-major matrix is the transpose of a column-major one, and C^T = op(B)^T op(A)^T: so A and B change places. */
static ttn_status gemm(const ttn_stream *s, ttn_trans ta, ttn_trans tb, int64_t m, int64_t n, int64_t k, double alpha,
                       ttn_mat_in a, ttn_mat_in b, double beta, ttn_mat_out c, ttn_error *err)
{
    cuda_device *d = device_of(s);
    const ttn_status bad = ttn_device_check_product(m, n, k, a.ld, b.ld, c.ld, err);
    if (bad != TTN_OK) return bad;
    if (m == 0 || n == 0) return TTN_OK;
    assert(ttn_dtype_stored(a.type) == ttn_dtype_stored(c.type) &&
           ttn_dtype_stored(b.type) == ttn_dtype_stored(c.type));
    assert(ttn_dtype_stored(c.type) == TTN_F32 || ttn_dtype_stored(c.type) == TTN_F64);
    const cudaStream_t queue = ttn_cuda_queue(s);
    const ttn_status status = take_workspace(d, queue, err);
    if (status != TTN_OK) return status;
    const int lda = a.ld > 0 ? (int)a.ld : 1; /* 0 when there is nothing to multiply */
    const int ldb = b.ld > 0 ? (int)b.ld : 1;
    cublasStatus_t answer;
    if (ttn_dtype_stored(c.type) == TTN_F64) {
        answer = cublasDgemm(d->blas, operation(tb), operation(ta), (int)n, (int)m, (int)k, &alpha, b.at, ldb, a.at,
                             lda, &beta, c.at, (int)c.ld);
    } else {
        const float alpha32 = (float)alpha;
        const float beta32 = (float)beta;
        answer = cublasSgemm(d->blas, operation(tb), operation(ta), (int)n, (int)m, (int)k, &alpha32, b.at, ldb, a.at,
                             lda, &beta32, c.at, (int)c.ld);
    }
    if (answer == CUBLAS_STATUS_SUCCESS) return queue == d->queue ? TTN_OK : note_products(d, queue, err);
    char what[128];
    snprintf(what, sizeof what, "a product of (%" PRId64 ", %" PRId64 ") and (%" PRId64 ", %" PRId64 ")", m, k, k, n);
    return blas_status(answer, what, err);
}

static ttn_status find_nonfinite(const ttn_stream *s, ttn_dtype type, const void *x, int64_t n, int64_t *count,
                                 int64_t *first, ttn_error *err)
{
    cuda_device *d = device_of(s);
    ttn_cuda_nonfinite found = {.count = 0, .first = UINT64_MAX};
    ttn_status status = TTN_OK;
    if (n > 0) {
        status = put(s, d->found, &found, sizeof found, err);
        if (status == TTN_OK) status = ttn_cuda_count_nonfinite(s, type, x, n, d->found, err);
        if (status == TTN_OK) status = get(s, &found, d->found, sizeof found, err);
    }
    *count = (int64_t)found.count;
    *first = found.count > 0 ? (int64_t)found.first : -1;
    return status;
}

/* ---- order between streams ---- */

static void event_destroy(ttn_event *e)
{
    if (!e) return;
    make_current(e->device);
    (void)cudaEventDestroy(e->event);
    free(e);
}

static ttn_status event_create(ttn_device *device, ttn_event **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_event *e = calloc(1, sizeof *e);
    if (!e) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for an event");
    e->device = (cuda_device *)device;
    make_current(e->device);
    const ttn_status status =
        TTN_CUDA_TRY(cudaEventCreateWithFlags(&e->event, cudaEventDisableTiming), err, "creating an event");
    if (status != TTN_OK) {
        free(e);
        return status;
    }
    *ret = e;
    return TTN_OK;
}

static ttn_status event_record(ttn_event *e, const ttn_stream *s, ttn_error *err)
{
    const ttn_status status = TTN_CUDA_TRY(cudaEventRecord(e->event, ttn_cuda_queue(s)), err, "recording an event");
    if (status == TTN_OK) e->recorded = 1;
    return status;
}

static ttn_status event_wait(ttn_event *e, const ttn_stream *s, ttn_error *err)
{
    if (!e->recorded) return TTN_FAIL(err, TTN_EINVAL, "waiting for an event that was never recorded");
    return TTN_CUDA_TRY(cudaStreamWaitEvent(ttn_cuda_queue(s), e->event, 0), err, "waiting for an event");
}

/* ---- the report ---- */

/* 12080 is version 12.8 */
static void print_version(char *text, size_t room, int version)
{
    snprintf(text, room, "%d.%d", version / 1000, version % 1000 / 10);
}

static ttn_status report(ttn_device *device, ttn_device_report *ret, ttn_error *err)
{
    cuda_device *d = (cuda_device *)device;
    make_current(d);
    *ret = (ttn_device_report){.kind = device->ops->name,
                               .index = d->index,
                               .multiprocessors = d->properties.multiProcessorCount,
                               .capability = {d->properties.major, d->properties.minor}};
    snprintf(ret->name, sizeof ret->name, "%s", d->properties.name);
    int driver;
    int runtime;
    int blas;
    ttn_status status =
        TTN_CUDA_TRY(cudaMemGetInfo(&ret->memory_free, &ret->memory), err, "asking for the free memory");
    if (status == TTN_OK) status = TTN_CUDA_TRY(cudaDriverGetVersion(&driver), err, "asking for the driver's version");
    if (status == TTN_OK)
        status = TTN_CUDA_TRY(cudaRuntimeGetVersion(&runtime), err, "asking for the runtime's version");
    if (status == TTN_OK) status = blas_status(cublasGetVersion(d->blas, &blas), "asking for its version", err);
    if (status != TTN_OK) return status;
    print_version(ret->driver, sizeof ret->driver, driver);
    print_version(ret->runtime, sizeof ret->runtime, runtime);
    snprintf(ret->blas, sizeof ret->blas, "cuBLAS %d.%d.%d", blas / 10000, blas / 100 % 100, blas % 100);
    return TTN_OK;
}

/* ---- the device ---- */

static void destroy(ttn_device *device)
{
    cuda_device *d = (cuda_device *)device;
    make_current(d);
    if (d->queue) (void)cudaStreamSynchronize(d->queue);
    if (d->blas) (void)cublasDestroy(d->blas);
    for (int i = 0; i < SLOTS; i++)
        if (d->slot[i].left) (void)cudaEventDestroy(d->slot[i].left);
    if (d->multiplied) (void)cudaEventDestroy(d->multiplied);
    if (d->workspace) (void)cudaFree(d->workspace);
    if (d->found) (void)cudaFree(d->found);
    if (d->ring) (void)cudaFreeHost(d->ring);
    if (d->landing) (void)cudaFreeHost(d->landing);
    if (d->queue) (void)cudaStreamDestroy(d->queue);
    (void)cudaGetLastError();
    free(d);
}

static const ttn_device_ops cuda_ops = {
    .name = "cuda",
    .kernels = TTN_KERNELS_CUDA,
    .destroy = destroy,
    .memory_create = memory_create,
    .memory_grow = memory_grow,
    .memory_touch = memory_touch,
    .memory_base = memory_base,
    .memory_bytes = memory_bytes,
    .memory_user = memory_user,
    .memory_destroy = memory_destroy,
    .put = put,
    .get = get,
    .copy = copy,
    .fill = fill,
    .add = add,
    .gemm = gemm,
    .find_nonfinite = find_nonfinite,
    .sync = sync,
    .event_create = event_create,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_destroy = event_destroy,
    .report = report,
};

/* Is there a GPU of this number, and is it one that the kernels are built for? */
static ttn_status look_at(cuda_device *d, ttn_error *err)
{
    enum { LEAST_MAJOR = 8 }; /* the Makefile: sm_80 and newer */
    int count;
    ttn_status status = TTN_CUDA_TRY(cudaGetDeviceCount(&count), err, "looking for GPUs");
    if (status != TTN_OK) return status;
    if (d->index < 0 || d->index >= count)
        return TTN_FAIL(err, TTN_EDEVICE, "GPU %d was asked for, and there %s %d, numbered from 0", d->index,
                        count == 1 ? "is" : "are", count);
    status = TTN_CUDA_TRY(cudaGetDeviceProperties(&d->properties, d->index), err, "asking what the GPU is");
    if (status == TTN_OK && d->properties.major < LEAST_MAJOR)
        status = TTN_FAIL(err, TTN_EDEVICE,
                          "GPU %d, %s, has compute capability %d.%d; %d.0 or newer is needed; run on the processor",
                          d->index, d->properties.name, d->properties.major, d->properties.minor, LEAST_MAJOR);
    return status;
}

static ttn_status start_blas(cuda_device *d, ttn_error *err)
{
    d->workspace_bytes = d->properties.major >= 9 ? WORKSPACE_BYTES_9 : WORKSPACE_BYTES;
    ttn_status status = TTN_CUDA_TRY(cudaMalloc(&d->workspace, d->workspace_bytes), err, "the workspace of cuBLAS");
    if (status == TTN_OK) status = blas_status(cublasCreate(&d->blas), "cublasCreate", err);
    if (status == TTN_OK)
        status = blas_status(cublasSetPointerMode(d->blas, CUBLAS_POINTER_MODE_HOST), "cublasSetPointerMode", err);
    if (status == TTN_OK)
        status = blas_status(cublasSetAtomicsMode(d->blas, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode", err);
    if (status == TTN_OK)
        status = blas_status(cublasSetMathMode(d->blas, CUBLAS_PEDANTIC_MATH), "cublasSetMathMode", err);
    return status;
}

static ttn_status start(cuda_device *d, ttn_error *err)
{
    ttn_status status = look_at(d, err);
    if (status == TTN_OK) status = TTN_CUDA_TRY(cudaSetDevice(d->index), err, "taking the GPU");
    if (status == TTN_OK)
        status = TTN_CUDA_TRY(cudaStreamCreateWithFlags(&d->queue, cudaStreamNonBlocking), err, "creating a stream");
    for (int i = 0; i < SLOTS && status == TTN_OK; i++)
        status =
            TTN_CUDA_TRY(cudaEventCreateWithFlags(&d->slot[i].left, cudaEventDisableTiming), err, "creating an event");
    if (status == TTN_OK)
        status =
            TTN_CUDA_TRY(cudaEventCreateWithFlags(&d->multiplied, cudaEventDisableTiming), err, "creating an event");
    if (status == TTN_OK)
        status = TTN_CUDA_TRY(cudaMallocHost((void **)&d->ring, (size_t)SLOTS * SLOT_BYTES), err, "memory for copies");
    if (status == TTN_OK)
        status = TTN_CUDA_TRY(cudaMallocHost((void **)&d->landing, LANDING_BYTES), err, "memory for copies");
    if (status == TTN_OK)
        status = TTN_CUDA_TRY(cudaMalloc((void **)&d->found, sizeof *d->found), err, "memory for what a search finds");
    if (status == TTN_OK) status = start_blas(d, err);
    return status;
}

ttn_status ttn_device_cuda(int index, ttn_device **ret, ttn_error *err)
{
    *ret = NULL;
    cuda_device *d = calloc(1, sizeof *d);
    if (!d) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for a device");
    d->base.ops = &cuda_ops;
    d->index = index;
    const ttn_status status = start(d, err);
    if (status != TTN_OK) {
        destroy(&d->base);
        return status;
    }
    *ret = &d->base;
    return TTN_OK;
}
