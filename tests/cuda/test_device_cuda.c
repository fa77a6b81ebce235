/* Every function of the table of a GPU, on the emulated one. */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/device.h"
#include "tests/cuda/emulation.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include <cuda_runtime_api.h>

enum { MIB = 1 << 20 };

static ttn_device *device;
static ttn_stream stream;

static int open_device(void **state)
{
    (void)state;
    ttn_error err = {0};
    emulation_reset();
    assert_ok(ttn_device_cuda(0, &device, &err), &err);
    stream = (ttn_stream){.device = device, .n_thread = 1};
    return 0;
}

/* Nothing is left, and nothing has failed. */
static int close_device(void **state)
{
    (void)state;
    assert_string_equal(emulation_failure(), "");
    ttn_device_destroy(device);
    assert_int_equal(emulation_allocated(), 0);
    return 0;
}

static ttn_memory *memory_of(size_t bytes)
{
    ttn_error err = {0};
    ttn_memory *m;
    assert_ok(device->ops->memory_create(device, bytes, 0, &m, &err), &err);
    return m;
}

/* byte i of an array of noise */
static unsigned char noise(int64_t i)
{
    return (unsigned char)((uint64_t)i * 0x9E3779B97F4A7C15 >> 56);
}

/* ---- the table ---- */

static void the_table_is_complete(void **state)
{
    (void)state;
    void (*function)(void);
    const size_t first = offsetof(ttn_device_ops, destroy);
    assert_string_equal(device->ops->name, "cuda");
    assert_int_equal(device->ops->kernels, TTN_KERNELS_CUDA);
    for (size_t at = first; at < sizeof *device->ops; at += sizeof function) {
        memcpy(&function, (const char *)device->ops + at, sizeof function);
        assert_non_null(function);
    }
}

static void another_gpu_is_refused(void **state)
{
    (void)state;
    ttn_device *none = device;
    ttn_error err = {0};
    assert_fails(ttn_device_cuda(3, &none, &err), TTN_EDEVICE, &err,
                 "GPU 3 was asked for, and there is 1, numbered from 0");
    assert_null(none);
    err = (ttn_error){0};
    assert_fails(ttn_device_cuda(-1, &none, &err), TTN_EDEVICE, &err, "GPU -1 was asked for");
}

static void it_says_what_it_is(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_device_report r;
    ttn_memory *m = memory_of(5 * MIB);
    assert_ok(device->ops->report(device, &r, &err), &err);
    assert_string_equal(r.kind, "cuda");
    assert_int_equal(r.index, 0);
    assert_string_equal(r.name, "emulated");
    assert_int_equal(r.capability[0], 8);
    assert_int_equal(r.capability[1], 0);
    assert_true(r.multiprocessors > 0);
    assert_true(r.memory_free <= r.memory - 5 * MIB);
    assert_string_equal(r.driver, "12.8");
    assert_string_equal(r.runtime, "12.8");
    assert_string_equal(r.blas, "cuBLAS 12.8.3");
    device->ops->memory_destroy(m);
}

/* ---- memory ---- */

static void a_region_grows_up_to_the_most(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_memory *m;
    assert_ok(device->ops->memory_create(device, 1000, 8 * MIB, &m, &err), &err);
    assert_int_equal((uintptr_t)device->ops->memory_base(m) % 64, 0);
    assert_int_equal(device->ops->memory_bytes(m), 1000);
    *device->ops->memory_user(m) = &err;
    assert_ok(device->ops->memory_grow(m, 10, &err), &err);
    assert_int_equal(device->ops->memory_bytes(m), 1000);
    assert_ptr_equal(*device->ops->memory_user(m), &err);
    assert_ok(device->ops->memory_grow(m, 5 * MIB, &err), &err);
    assert_int_equal(device->ops->memory_bytes(m), 5 * MIB);
    assert_null(*device->ops->memory_user(m)); /* what stood there is gone */
    device->ops->memory_touch(m, &stream);
    assert_ok(device->ops->fill(&stream, device->ops->memory_base(m), 1, 5 * MIB, &err), &err);
    assert_fails(device->ops->memory_grow(m, 9 * MIB, &err), TTN_EINVAL, &err, "values: 9437184 bytes are wanted");
    assert_int_equal(device->ops->memory_bytes(m), 5 * MIB);
    device->ops->memory_destroy(m);
    device->ops->memory_destroy(NULL);
}

static void no_memory_is_a_status(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_memory *m;
    assert_fails(device->ops->memory_create(device, (size_t)1 << 40, 0, &m, &err), TTN_ENOMEM, &err,
                 "GPU: 1099511627776 bytes of memory: cudaErrorMemoryAllocation");
    assert_null(m);
    err = (ttn_error){0};
    assert_ok(device->ops->memory_create(device, 0, (size_t)1 << 40, &m, &err), &err);
    assert_non_null(device->ops->memory_base(m));
    assert_int_equal(device->ops->memory_grow(m, (size_t)1 << 40, &err), TTN_ENOMEM);
    assert_int_equal(device->ops->memory_bytes(m), 0);
    assert_int_equal(device->ops->memory_grow(m, 100, &(ttn_error){0}), TTN_OK); /* it can be tried again */
    device->ops->memory_destroy(m);
}

/* ---- copies ---- */

/* More than the ring of slots, in pieces of all sizes; put returns before the bytes have left. */
static void bytes_arrive_and_come_back(void **state)
{
    (void)state;
    enum { ALL = 21 * MIB + 5 };
    const size_t pieces[] = {1, 63, 64, 1000, 65537, MIB - 1, MIB, MIB + 1, 3 * MIB, 9 * MIB};
    ttn_error err = {0};
    ttn_memory *m = memory_of(ALL);
    char *base = device->ops->memory_base(m);
    unsigned char *host = malloc(ALL);
    unsigned char *back = malloc(ALL);
    assert_true(host && back);
    size_t at = 0;
    for (size_t turn = 0; at < ALL; turn++) {
        size_t piece = pieces[turn % (sizeof pieces / sizeof *pieces)];
        if (piece > ALL - at) piece = ALL - at;
        for (size_t i = 0; i < piece; i++)
            host[i] = noise((int64_t)(at + i));
        assert_ok(device->ops->put(&stream, base + at, host, piece, &err), &err);
        memset(host, 0, piece); /* it may be used again */
        at += piece;
    }
    assert_ok(device->ops->get(&stream, back, base, ALL, &err), &err);
    for (int64_t i = 0; i < ALL; i++)
        if (back[i] != noise(i)) fail_msg("byte %" PRId64 " is %d, not %d", i, back[i], noise(i));
    assert_ok(device->ops->get(&stream, back, base + 17, 0, &err), &err);
    assert_ok(device->ops->put(&stream, base + 17, NULL, 0, &err), &err);
    free(host);
    free(back);
    device->ops->memory_destroy(m);
}

/* In a step nothing waits: small puts do not, as long as the ring has room. */
static void small_puts_do_not_wait(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_memory *m = memory_of(64);
    int32_t *at = device->ops->memory_base(m);
    int *pinned;
    assert_int_equal(cudaMallocHost((void **)&pinned, sizeof *pinned), cudaSuccess);
    *pinned = -1;
    cudaStream_t queue;
    assert_int_equal(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking), cudaSuccess);
    const ttn_stream own = {.device = device, .n_thread = 1, .queue = queue};
    const int first = 7;
    assert_ok(device->ops->put(&own, at, &first, sizeof first, &err), &err);
    assert_int_equal(cudaMemcpyAsync(pinned, at, 4, cudaMemcpyDeviceToHost, queue), cudaSuccess);
    for (int i = 0; i < 1000; i++)
        assert_ok(device->ops->put(&own, at, &i, sizeof i, &err), &err);
    assert_int_equal(*pinned, -1); /* still queued */
    assert_ok(device->ops->sync(&own, &err), &err);
    assert_int_equal(*pinned, 7);
    int last;
    assert_ok(device->ops->get(&own, &last, at, sizeof last, &err), &err);
    assert_int_equal(last, 999);
    assert_int_equal(cudaStreamDestroy(queue), cudaSuccess);
    assert_int_equal(cudaFreeHost(pinned), cudaSuccess);
    device->ops->memory_destroy(m);
}

/* What one stream has not copied yet stays in its slot, although another stream, which is done, has put as well. */
static void puts_of_two_streams_do_not_meet(void **state)
{
    (void)state;
    enum { N = 1000, ROUNDS = 20 }; /* more than the ring holds */
    ttn_error err = {0};
    cudaStream_t queue;
    assert_int_equal(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking), cudaSuccess);
    const ttn_stream late = {.device = device, .n_thread = 1, .queue = queue};
    ttn_memory *m = memory_of(N + (size_t)MIB);
    char *at = device->ops->memory_base(m);
    char *host = malloc(MIB);
    assert_non_null(host);
    memset(host, 1, N);
    assert_ok(device->ops->put(&late, at, host, N, &err), &err);
    memset(host, 2, MIB);
    for (int i = 0; i < ROUNDS; i++)
        assert_ok(device->ops->put(&stream, at + N, host, MIB, &err), &err);
    assert_ok(device->ops->get(&late, host, at, N, &err), &err);
    for (int i = 0; i < N; i++)
        assert_int_equal(host[i], 1);
    assert_ok(device->ops->sync(&stream, &err), &err);
    assert_int_equal(cudaStreamDestroy(queue), cudaSuccess);
    free(host);
    device->ops->memory_destroy(m);
}

static void fill_and_copy_touch_what_they_are_told(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_memory *m = memory_of(100);
    char *at = device->ops->memory_base(m);
    unsigned char back[100];
    assert_ok(device->ops->fill(&stream, at, 1, 100, &err), &err);
    assert_ok(device->ops->fill(&stream, at + 10, 0xAB, 7, &err), &err);
    assert_ok(device->ops->copy(&stream, at + 50, at + 8, 11, &err), &err);
    assert_ok(device->ops->fill(&stream, at, 9, 0, &err), &err);
    assert_ok(device->ops->copy(&stream, at, at + 10, 0, &err), &err);
    assert_ok(device->ops->get(&stream, back, at, 100, &err), &err);
    for (int i = 0; i < 100; i++)
        assert_int_equal(back[i], (i >= 10 && i < 17) || (i >= 52 && i < 59) ? 0xAB : 1);
    assert_fails(device->ops->copy(&stream, at + 95, at, 6, &err), TTN_EDEVICE, &err,
                 "GPU: copying on the GPU: cudaErrorInvalidValue");
    device->ops->memory_destroy(m);
}

/* ---- arithmetic ---- */

static void adding_adds_each_element_once(void **state)
{
    (void)state;
    const int64_t sizes[] = {0, 1, 255, 256, 257, 1000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        enum { MOST = 1000 };
        const int64_t n = sizes[s];
        ttn_error err = {0};
        ttn_memory *m = memory_of(2 * (MOST + 1) * sizeof(real));
        real *to = device->ops->memory_base(m);
        real *from = to + MOST + 1;
        real values[2 * (MOST + 1)];
        for (int i = 0; i < 2 * (MOST + 1); i++)
            values[i] = (real)(i % 31) / 7;
        assert_ok(device->ops->put(&stream, to, values, sizeof values, &err), &err);
        assert_ok(device->ops->add(&stream, to, from, n, &err), &err);
        real back[MOST + 1];
        assert_ok(device->ops->get(&stream, back, to, sizeof back, &err), &err);
        for (int64_t i = 0; i <= MOST; i++)
            assert_true(back[i] == (i < n ? values[i] + values[MOST + 1 + i] : values[i]));
        device->ops->memory_destroy(m);
    }
}

/* C of plain loops, in double. */
static double product_at(const real *a, const real *b, const real *c, int trans, int i, int j, int k_all, double beta)
{
    enum { LD = 30 };
    double sum = 0;
    for (int k = 0; k < k_all; k++)
        sum +=
            (double)(trans & 1 ? a[k * LD + i] : a[i * LD + k]) * (double)(trans & 2 ? b[j * LD + k] : b[k * LD + j]);
    return 0.75 * sum + beta * (double)c[i * LD + j];
}

static void a_product_is_that_of_plain_loops(void **state)
{
    (void)state;
    enum { M = 17, N = 9, K = 23, LD = 30, ALL = LD * LD };
    for (int trans = 0; trans < 4; trans++)
        for (int beta = 0; beta <= 1; beta++) {
            ttn_error err = {0};
            real host[3 * ALL];
            for (int e = 0; e < 3 * ALL; e++)
                host[e] = (real)((double)noise(e) / 128 - 1);
            ttn_memory *m = memory_of(sizeof host);
            real *a = device->ops->memory_base(m);
            real *b = a + ALL;
            real *c = b + ALL;
            assert_ok(device->ops->put(&stream, a, host, sizeof host, &err), &err);
            assert_ok(device->ops->gemm(&stream, trans & 1 ? TTN_T : TTN_N, trans & 2 ? TTN_T : TTN_N, M, N, K, 0.75,
                                        ttn_in(a, LD), ttn_in(b, LD), beta, ttn_out(c, LD), &err),
                      &err);
            real back[ALL];
            assert_ok(device->ops->get(&stream, back, c, sizeof back, &err), &err);
            for (int i = 0; i < LD; i++)
                for (int j = 0; j < LD; j++) {
                    const real before = host[2 * ALL + i * LD + j];
                    if (i >= M || j >= N) {
                        assert_true(back[i * LD + j] == before);
                        continue;
                    }
                    const double wanted = product_at(host, host + ALL, host + 2 * ALL, trans, i, j, K, beta);
                    assert_at_most(fabs((double)back[i * LD + j] - wanted), K * (double)TTN_REAL_EPS,
                                   "error of a product");
                }
            device->ops->memory_destroy(m);
        }
}

static void a_product_of_nothing_and_one_that_does_not_fit(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_memory *m = memory_of(64 * sizeof(real));
    real *c = device->ops->memory_base(m);
    real back[4];
    assert_ok(device->ops->fill(&stream, c, 0, 64 * sizeof(real), &err), &err);
    assert_ok(device->ops->gemm(&stream, TTN_N, TTN_N, 0, 3, 2, 1, ttn_in(NULL, 2), ttn_in(NULL, 3), 0,
                                ttn_out(NULL, 3), &err),
              &err);
    /* k 0: only beta */
    assert_ok(device->ops->gemm(&stream, TTN_N, TTN_T, 2, 2, 0, 1, ttn_in(c, 0), ttn_in(c, 0), 0, ttn_out(c, 2), &err),
              &err);
    assert_ok(device->ops->get(&stream, back, c, sizeof back, &err), &err);
    assert_true(back[0] == 0 && back[3] == 0);
    assert_fails(
        device->ops->gemm(&stream, TTN_N, TTN_N, -1, 1, 1, 1, ttn_in(c, 1), ttn_in(c, 1), 0, ttn_out(c, 1), &err),
        TTN_EINVAL, &err, "a product whose m is -1");
    err = (ttn_error){0};
    assert_fails(
        device->ops->gemm(&stream, TTN_N, TTN_N, 100, 1, 1, 1, ttn_in(c, 1), ttn_in(c, 1), 0, ttn_out(c, 1), &err),
        TTN_EDEVICE, &err, "GPU: cuBLAS: a product of (100, 1) and (1, 1): CUBLAS_STATUS_INVALID_VALUE");
    device->ops->memory_destroy(m);
}

/* One stream's products, then another's, then the first one's again: each sees what the one before wrote, whichever of the
 * two is waited for. */
static void products_of_two_streams_take_turns(void **state)
{
    (void)state;
    ttn_error err = {0};
    cudaStream_t queue;
    assert_int_equal(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking), cudaSuccess);
    const ttn_stream other = {.device = device, .n_thread = 1, .queue = queue};
    ttn_memory *m = memory_of(16 * sizeof(real));
    real *a = device->ops->memory_base(m);
    for (int turns = 6; turns <= 7; turns++) {
        real host[3] = {1, 0, 2};
        assert_ok(device->ops->put(&stream, a, host, sizeof host, &err), &err);
        for (int turn = 0; turn < turns; turn++) /* from a[0] to a[1] and back, times 2 */
            assert_ok(device->ops->gemm(turn % 2 ? &other : &stream, TTN_N, TTN_N, 1, 1, 1, 1, ttn_in(a + turn % 2, 1),
                                        ttn_in(a + 2, 1), 0, ttn_out(a + 1 - turn % 2, 1), &err),
                      &err);
        assert_ok(device->ops->get(turns % 2 ? &stream : &other, host, a, sizeof host, &err), &err);
        assert_true(host[turns % 2] == (real)(1 << turns));
        assert_ok(device->ops->sync(&stream, &err), &err);
        assert_ok(device->ops->sync(&other, &err), &err);
    }
    assert_int_equal(cudaStreamDestroy(queue), cudaSuccess);
    device->ops->memory_destroy(m);
}

static void put_number(ttn_dtype type, void *x, int64_t at, double value)
{
    switch (ttn_dtype_stored(type)) {
    case TTN_F32:
        ((float *)x)[at] = (float)value;
        break;
    case TTN_F64:
        ((double *)x)[at] = value;
        break;
    default: /* the upper 16 bits of the f32, or the largest half */
        ((uint16_t *)x)[at] = isfinite(value) ? 0x7BFF : (type == TTN_F16 ? 0x7C00 : 0x7F80);
    }
}

static void nonfinite_numbers_are_counted_and_the_first_is_named(void **state)
{
    (void)state;
    enum { N = 700 };
    const ttn_dtype types[] = {TTN_REAL, TTN_F32, TTN_F64, TTN_BF16, TTN_F16, TTN_I32};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const int integers = types[t] == TTN_I32;
        ttn_error err = {0};
        double room[N];
        int64_t count;
        int64_t first;
        ttn_memory *m = memory_of(sizeof room);
        for (int i = 0; i < N; i++)
            put_number(integers ? TTN_F32 : types[t], room, i, (double)FLT_MAX);
        for (int found = 0; found < 4; found++) {
            const int places[] = {N, 650, 649, 3};
            for (int i = 1; i <= found; i++)
                put_number(integers ? TTN_F32 : types[t], room, places[i], i == 2 ? (double)INFINITY : (double)NAN);
            void *at = device->ops->memory_base(m);
            assert_ok(device->ops->put(&stream, at, room, sizeof room, &err), &err);
            assert_ok(device->ops->find_nonfinite(&stream, types[t], at, N, &count, &first, &err), &err);
            assert_int_equal(count, integers ? 0 : found);
            assert_int_equal(first, integers || found == 0 ? -1 : places[found]);
            assert_ok(device->ops->find_nonfinite(&stream, types[t], at, 3, &count, &first, &err), &err);
            assert_int_equal(count, 0);
        }
        assert_ok(device->ops->find_nonfinite(&stream, types[t], NULL, 0, &count, &first, &err), &err);
        assert_int_equal(first, -1);
        device->ops->memory_destroy(m);
    }
}

/* ---- order ---- */

static void an_event_is_waited_for_once_it_was_recorded(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_event *e;
    cudaStream_t queue;
    assert_int_equal(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking), cudaSuccess);
    const ttn_stream other = {.device = device, .n_thread = 1, .queue = queue};
    ttn_memory *m = memory_of(64);
    char *at = device->ops->memory_base(m);
    char back[2];
    assert_ok(device->ops->event_create(device, &e, &err), &err);
    assert_fails(device->ops->event_wait(e, &other, &err), TTN_EINVAL, &err, "never recorded");
    err = (ttn_error){0};
    assert_ok(device->ops->fill(&stream, at, 5, 1, &err), &err);
    assert_ok(device->ops->event_record(e, &stream, &err), &err);
    assert_ok(device->ops->event_wait(e, &other, &err), &err);
    assert_ok(device->ops->copy(&other, at + 1, at, 1, &err), &err);
    assert_ok(device->ops->get(&other, back, at, 2, &err), &err);
    assert_int_equal(back[1], 5);
    device->ops->event_destroy(e);
    device->ops->event_destroy(NULL);
    assert_int_equal(cudaStreamDestroy(queue), cudaSuccess);
    device->ops->memory_destroy(m);
}

/* ---- failures ---- */

/* A bit of everything. */
static ttn_status use_all(ttn_device **d, ttn_memory **m, ttn_event **e, ttn_error *err)
{
    ttn_status status = ttn_device_cuda(0, d, err);
    if (status != TTN_OK) return status;
    const ttn_device_ops *ops = (*d)->ops;
    const ttn_stream s = {.device = *d, .n_thread = 1};
    real host[64] = {1, 2, 3};
    int64_t count;
    int64_t first;
    ttn_device_report r;
    status = ops->memory_create(*d, sizeof host, 4 * MIB, m, err);
    if (status == TTN_OK) status = ops->memory_grow(*m, 3 * MIB, err);
    if (status != TTN_OK) return status;
    real *x = ops->memory_base(*m);
    for (int i = 0; i < 3 && status == TTN_OK; i++) /* the ring has 8 MiB */
        status = ops->fill(&s, x, 0, 3 * MIB, err);
    if (status == TTN_OK) status = ops->put(&s, x, host, sizeof host, err);
    if (status == TTN_OK) status = ops->add(&s, x, x + 64, 64, err);
    if (status == TTN_OK) status = ops->copy(&s, x + 64, x, 64, err);
    if (status == TTN_OK)
        status = ops->gemm(&s, TTN_N, TTN_N, 2, 2, 2, 1, ttn_in(x, 2), ttn_in(x + 4, 2), 0, ttn_out(x + 8, 2), err);
    if (status == TTN_OK) status = ops->find_nonfinite(&s, TTN_REAL, x, 64, &count, &first, err);
    if (status == TTN_OK) status = ops->event_create(*d, e, err);
    if (status == TTN_OK) status = ops->event_record(*e, &s, err);
    if (status == TTN_OK) status = ops->event_wait(*e, &s, err);
    if (status == TTN_OK) status = ops->report(*d, &r, err);
    if (status == TTN_OK) status = ops->sync(&s, err);
    return status;
}

static void give_all(ttn_device *d, ttn_memory *m, ttn_event *e)
{
    if (e) d->ops->event_destroy(e);
    if (m) d->ops->memory_destroy(m);
    ttn_device_destroy(d);
}

/* Each call of the runtime in turn: a status and a sentence, and nothing is left on the device. */
static void every_call_that_fails_is_a_status(void **state)
{
    (void)state;
    const size_t before = emulation_allocated();
    int64_t n = 1;
    for (int hit = 1; hit; n++) {
        ttn_error err = {0};
        ttn_device *d = NULL;
        ttn_memory *m = NULL;
        ttn_event *e = NULL;
        emulation_fail_call(n, cudaErrorUnknown);
        const ttn_status status = use_all(&d, &m, &e, &err);
        hit = emulation_was_hit();
        emulation_fail_call(0, 0);
        /* cudaSetDevice of a thread that has the device already says nothing that matters */
        if (hit && status == TTN_OK) {
            give_all(d, m, e);
            continue;
        }
        assert_int_equal(status, hit ? TTN_EDEVICE : TTN_OK);
        if (hit) assert_contains(err.text, "GPU: ");
        give_all(d, m, e);
        assert_int_equal(emulation_allocated(), before);
        assert_int_equal(cudaGetLastError(), cudaSuccess);
    }
    assert_true(n > 50);
}

static void no_memory_of_the_host_is_a_status(void **state)
{
    (void)state;
    for (int64_t n = 1, hit = 1; hit; n++) {
        ttn_error err = {0};
        ttn_device *d = NULL;
        ttn_memory *m = NULL;
        ttn_event *e = NULL;
        shim_arm(SHIM_ALLOC | SHIM_MAP, n, SHIM_FAIL, ENOMEM, 0);
        const ttn_status status = use_all(&d, &m, &e, &err);
        shim_disarm();
        hit = shim_was_hit();
        assert_int_equal(status, hit ? TTN_ENOMEM : TTN_OK);
        give_all(d, m, e);
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(another_gpu_is_refused),
        cmocka_unit_test(it_says_what_it_is),
        cmocka_unit_test(a_region_grows_up_to_the_most),
        cmocka_unit_test(no_memory_is_a_status),
        cmocka_unit_test(bytes_arrive_and_come_back),
        cmocka_unit_test(small_puts_do_not_wait),
        cmocka_unit_test(puts_of_two_streams_do_not_meet),
        cmocka_unit_test(fill_and_copy_touch_what_they_are_told),
        cmocka_unit_test(adding_adds_each_element_once),
        cmocka_unit_test(a_product_is_that_of_plain_loops),
        cmocka_unit_test(a_product_of_nothing_and_one_that_does_not_fit),
        cmocka_unit_test(products_of_two_streams_take_turns),
        cmocka_unit_test(nonfinite_numbers_are_counted_and_the_first_is_named),
        cmocka_unit_test(an_event_is_waited_for_once_it_was_recorded),
        cmocka_unit_test(every_call_that_fails_is_a_status),
        cmocka_unit_test(no_memory_of_the_host_is_a_status),
    };
    return cmocka_run_group_tests_name(__FILE__, tests, open_device, close_device);
}
