/* The emulation that all other tests of this folder stand on: each of its detectors fires on a kernel that is wrong in that
 * way, in every order of warps, and none fires on right ones. */
#include <stdio.h>
#include <string.h>
#include <cuda_runtime_api.h>
#include "tests/cuda/broken.h"
#include "tests/cuda/emulation.h"
#include "tests/harness/test.h"

enum { N = 256, Y = 64 };

static ttn_device *device;
static ttn_stream stream;
static ttn_memory *memory;
static real *x, *y; /* of the device */

static int open_device(void **state)
{
    (void)state;
    ttn_error err = {0};
    real values[N];
    for (int i = 0; i < N; i++)
        values[i] = (real)(i + 1);
    emulation_reset();
    assert_ok(ttn_device_cuda(0, &device, &err), &err);
    stream = (ttn_stream){.device = device, .n_thread = 1};
    const ttn_device_ops *d = device->ops;
    assert_ok(d->memory_create(device, (N + Y) * sizeof(real), 0, &memory, &err), &err);
    x = d->memory_base(memory);
    y = x + N;
    assert_ok(d->put(&stream, x, values, sizeof values, &err), &err);
    assert_ok(d->fill(&stream, y, 0, Y * sizeof(real), &err), &err);
    assert_ok(d->sync(&stream, &err), &err);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    emulation_reset();
    device->ops->memory_destroy(memory);
    ttn_device_destroy(device);
    assert_int_equal(emulation_allocated(), 0);
    return 0;
}

/* What a test before it may have left. */
static int begin(void **state)
{
    (void)state;
    emulation_reset();
    emulation_set_order(EMULATION_FORWARD, ttn_test_seed());
    return 0;
}

static ttn_status run(broken which, const real *host, ttn_error *err)
{
    ttn_status status = broken_run(which, &stream, x, y, host, err);
    if (status == TTN_OK) status = device->ops->sync(&stream, err);
    return status;
}

static const emulation_order orders[] = {EMULATION_FORWARD, EMULATION_REVERSE, EMULATION_RANDOM};

static int tried[BROKEN_N];

/* In every order; the device is new each time. */
static void assert_noticed(broken which, const char *words)
{
    tried[which] = 1;
    const real host[N] = {0};
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        ttn_error err = {0};
        emulation_set_order(orders[o], ttn_test_seed());
        assert_fails(run(which, host, &err), TTN_EDEVICE, &err, words);
        assert_contains(err.text, "kernel 'broken_kernel'");
        emulation_reset();
    }
}

/* What only a look at every access shows; AddressSanitizer does not. */
static void assert_seen(broken which, const char *words)
{
    tried[which] = 1;
    if (!emulation_checks()) skip_because("accesses are not looked at in a build under AddressSanitizer");
    assert_noticed(which, words);
}

static void right_kernels_pass(void **state)
{
    (void)state;
    ttn_error err = {0};
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        emulation_set_order(orders[o], ttn_test_seed());
        assert_ok(run(BROKEN_NOTHING, NULL, &err), &err);
        real sums[2];
        assert_ok(device->ops->get(&stream, sums, y, sizeof sums, &err), &err);
        assert_true(sums[0] == 8256 && sums[1] == 24640); /* 1 + … + 128, and 129 + … + 256 */

        int out[RIGHT_WORDS + 1];
        const uint64_t wide = 1000;
        assert_ok(device->ops->fill(&stream, y, 0, Y * sizeof(real), &err), &err);
        assert_ok(device->ops->put(&stream, (int *)y + RIGHT_WORDS + 2, &wide, sizeof wide, &err), &err);
        assert_ok(right_run(&stream, (int *)y, &err), &err);
        assert_ok(device->ops->get(&stream, out, y, sizeof out, &err), &err);
        for (int i = 0; i <= RIGHT_WORDS; i++)
            if (out[i] != 1) fail_msg("what the kernel tries as number %d does not hold", i);
    }
}

/* ---- what a block can do wrong ---- */

static void a_missing_barrier_is_a_race(void **state)
{
    (void)state;
    assert_seen(BROKEN_NO_BARRIER, "shared array 'part'");
    assert_seen(BROKEN_LAST_BARRIER, "no barrier between");
}

static void shuffles_order_no_memory(void **state)
{
    (void)state;
    assert_seen(BROKEN_SHUFFLE_NO_SYNC, "shared array 'turned', ");
}

static void a_barrier_that_some_threads_miss(void **state)
{
    (void)state;
    assert_noticed(BROKEN_SOME_AT_BARRIER, "is reached by 40 of the block's 128 threads; the others have returned");
    assert_noticed(BROKEN_TWO_BARRIERS, "threads wait at different __syncthreads: thread 0 in tests/cuda/broken.cu:");
}

static int run_past_the_end(void *arg)
{
    ttn_error err = {0};
    (void)arg;
    return run(BROKEN_SHARED_END, NULL, &err) == TTN_OK;
}

static void a_shared_array_has_ends(void **state)
{
    (void)state;
    if (!emulation_checks()) {
        const ttn_child child = run_in_child((ttn_child_limit){.seconds = 20}, run_past_the_end, NULL);
        assert_false(child.exited && child.exit_code == 0);
        assert_contains(child.output, "AddressSanitizer: heap-buffer-overflow");
        return;
    }
    char words[100];
    snprintf(words, sizeof words, "byte %zu of the %zu bytes of the shared array 'part'", 4 * sizeof(real),
             4 * sizeof(real));
    assert_seen(BROKEN_SHARED_END, words);
    snprintf(words, sizeof words, "byte -%zu of the", sizeof(real));
    assert_seen(BROKEN_SHARED_START, words);
}

static void shared_memory_is_nothing_until_it_is_written(void **state)
{
    (void)state;
    assert_seen(BROKEN_SHARED_UNWRITTEN, "the shared array 'never', where this block has written nothing");
}

static void shared_memory_is_asked_for_and_has_a_limit(void **state)
{
    (void)state;
    assert_noticed(BROKEN_NO_DYNAMIC, "'dynamic' is dynamic shared memory, but the launch asks for none");
    assert_noticed(BROKEN_MUCH_SHARED, "49152 are possible: 'much' is one too many");
}

static void a_thread_has_little_stack(void **state)
{
    (void)state;
    assert_seen(BROKEN_DEEP, "stack");
}

/* ---- what a warp can do wrong ---- */

static void a_full_mask_by_half_a_warp(void **state)
{
    (void)state;
    assert_noticed(BROKEN_HALF_WARP, "names the lanes FFFFFFFF in its mask, but only 0000FFFF come to it");
}

static void a_mask_without_the_lane_itself(void **state)
{
    (void)state;
    assert_noticed(BROKEN_NOT_IN_MASK, "which is not in it");
}

static void a_lane_that_is_not_there(void **state)
{
    (void)state;
    assert_noticed(BROKEN_RETURNED_LANE, "reads lane 3, which has returned");
    assert_noticed(BROKEN_LANE_OUTSIDE, "reads lane 20, which is not in its mask");
}

/* ---- what blocks can do wrong ---- */

static void two_blocks_at_one_address(void **state)
{
    (void)state;
    assert_seen(BROKEN_TWO_BLOCKS_WRITE, "which another block of this launch writes");
    assert_seen(BROKEN_BLOCK_READS_OTHERS, "another block of this launch");
    assert_seen(BROKEN_BLOCK_WRITES_OTHERS, "another block of this launch");
}

static void the_device_sees_its_own_memory_only(void **state)
{
    (void)state;
    assert_seen(BROKEN_DEVICE_END, "bytes of device memory");
    assert_seen(BROKEN_HOST_MEMORY, "which is memory of the host");
    assert_seen(BROKEN_MISALIGNED, "misaligned address");
    assert_seen(BROKEN_LDG, "__ldg of what this kernel writes");
}

static void every_wrong_kernel_was_tried(void **state)
{
    (void)state;
    if (!emulation_checks()) skip_because("a build under AddressSanitizer skips some");
    for (int i = 1; i < BROKEN_N; i++)
        if (!tried[i]) fail_msg("kernel %d of tests/cuda/broken.h is tried by no test", i);
}

/* ---- failures of the device ---- */

static void a_failure_stays_and_is_told_by_every_call(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_int_equal(run(BROKEN_HALF_WARP, NULL, &err), TTN_EDEVICE);
    for (int i = 0; i < 2; i++) {
        ttn_error again = {0};
        assert_fails(device->ops->fill(&stream, y, 0, 4, &again), TTN_EDEVICE, &again, "names the lanes FFFFFFFF");
    }
    assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
    assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
    assert_contains(emulation_failure(), "kernel 'broken_kernel', block (");
    emulation_reset();
    assert_ok(run(BROKEN_NOTHING, NULL, &(ttn_error){0}), &err);
    assert_string_equal(emulation_failure(), "");
}

static void a_launch_that_does_not_fit_is_refused_at_once(void **state)
{
    (void)state;
    ttn_error err = {0};
    const struct {
        unsigned blocks, threads;
        size_t dynamic_bytes;
        int allow;
        const char *words; /* NULL: it fits */
    } launches[] = {
        {1, 1, 0, 0, NULL},
        {0, 32, 0, 0, "starting the kernel empty_kernel: cudaErrorInvalidConfiguration"},
        {1, 0, 0, 0, "cudaErrorInvalidConfiguration"},
        {1, 1025, 0, 0, "cudaErrorInvalidConfiguration"},
        {2, 1024, 48 << 10, 0, NULL},
        {1, 32, (48 << 10) + 16, 0, "cudaErrorInvalidValue"},
        {1, 32, (227 << 10) + 16, 1, "shared memory for the kernel empty_kernel: cudaErrorInvalidValue"},
        {1, 32, 100 << 10, 1, NULL},
    };
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        ttn_error now = {0};
        const ttn_status status = empty_run(&stream, launches[i].blocks, launches[i].threads, launches[i].dynamic_bytes,
                                            launches[i].allow, &now);
        if (launches[i].words)
            assert_fails(status, TTN_EDEVICE, &now, launches[i].words);
        else
            assert_ok(status, &now);
    }
    assert_ok(device->ops->sync(&stream, &err), &err);
}

/* ---- order ---- */

enum { BLOCKS = 3, THREADS = 64, ORDERED = BLOCKS * THREADS };

static void run_in_order(emulation_order order, uint64_t seed, int *ret)
{
    ttn_error err = {0};
    ttn_memory *m;
    emulation_set_order(order, seed);
    assert_ok(device->ops->memory_create(device, (ORDERED + 1) * sizeof(int), 0, &m, &err), &err);
    int *at = device->ops->memory_base(m);
    assert_ok(device->ops->fill(&stream, at + ORDERED, 0, sizeof(int), &err), &err);
    assert_ok(order_run(&stream, at, at + ORDERED, &err), &err);
    assert_ok(device->ops->get(&stream, ret, at, ORDERED * sizeof(int), &err), &err);
    device->ops->memory_destroy(m);
}

/* A warp's lanes come one after the other, and a block's warps. */
static void blocks_warps_and_lanes_come_in_the_order_that_is_asked_for(void **state)
{
    (void)state;
    int came[ORDERED];
    int again[ORDERED];
    run_in_order(EMULATION_FORWARD, 1, came);
    for (int i = 0; i < ORDERED; i++)
        assert_int_equal(came[i], i);
    run_in_order(EMULATION_REVERSE, 1, came);
    for (int i = 0; i < ORDERED; i++)
        assert_int_equal(came[i], ORDERED - 1 - i);
    run_in_order(EMULATION_RANDOM, 7, came);
    run_in_order(EMULATION_RANDOM, 7, again);
    assert_same_bits(came, again, sizeof came);
    for (int warp = 0; warp < ORDERED / 32; warp++) {
        int least = ORDERED;
        int most = 0;
        for (int lane = 0; lane < 32; lane++) {
            const int when = came[warp * 32 + lane];
            least = when < least ? when : least;
            most = when > most ? when : most;
        }
        assert_int_equal(most - least, 31);
    }
    run_in_order(EMULATION_RANDOM, 8, again);
    assert_memory_not_equal(came, again, sizeof came);
}

/* ---- the runtime ---- */

static int read_device_memory(void *arg)
{
    const volatile real *at = arg;
    emulation_reset(); /* a child has the signal handlers that a program starts with: the emulation's again */
    return *at == 0;
}

static void the_host_cannot_touch_device_memory(void **state)
{
    (void)state;
    const ttn_child child = run_in_child((ttn_child_limit){.seconds = 20}, read_device_memory, x + 5);
    assert_false(child.exited && child.exit_code <= 1);
    char words[100];
    snprintf(words, sizeof words, "host code touches device memory: byte %zu of an allocation of %zu bytes",
             5 * sizeof(real), (N + Y) * sizeof(real));
    assert_contains(child.output, words);
}

static void copies_are_what_they_say(void **state)
{
    (void)state;
    real host[4] = {0};
    const size_t bytes = sizeof host;
    assert_int_equal(cudaMemcpy(host, x, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    assert_int_equal(cudaMemcpy(host, x, bytes, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, x, bytes, cudaMemcpyHostToHost), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, x, bytes, cudaMemcpyDefault), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, host, bytes, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(x, host, bytes, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(x, host, bytes, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(x + N + Y - 3, host, bytes, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(x, host, 0, cudaMemcpyHostToDevice), cudaSuccess);
    assert_int_equal(cudaMemsetAsync(host, 0, bytes, NULL), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaSuccess); /* told once */
    assert_int_equal(cudaFree(host), cudaErrorInvalidValue);
    (void)cudaGetLastError();
}

/* What is queued happens when somebody waits for it, and not before: pinned memory shows it. */
static void a_stream_runs_late(void **state)
{
    (void)state;
    cudaStream_t s;
    cudaEvent_t e;
    int *pinned;
    int32_t *on_device;
    assert_int_equal(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), cudaSuccess);
    assert_int_equal(cudaMallocHost((void **)&pinned, 2 * sizeof *pinned), cudaSuccess);
    assert_int_equal(cudaMalloc((void **)&on_device, sizeof *on_device), cudaSuccess);
    pinned[0] = 1;
    pinned[1] = 0;
    assert_int_equal(cudaMemcpyAsync(on_device, pinned, 4, cudaMemcpyHostToDevice, s), cudaSuccess);
    pinned[0] = 2; /* too early */
    assert_int_equal(cudaEventRecord(e, s), cudaSuccess);
    assert_int_equal(cudaMemcpyAsync(&pinned[1], on_device, 4, cudaMemcpyDeviceToHost, s), cudaSuccess);
    assert_int_equal(pinned[1], 0);
    assert_int_equal(cudaEventSynchronize(e), cudaSuccess);
    assert_int_equal(pinned[1], 0);
    assert_int_equal(cudaStreamQuery(s), cudaSuccess);
    assert_int_equal(pinned[1], 2);

    /* from pageable memory the bytes are taken at once */
    int pageable = 5;
    assert_int_equal(cudaMemcpyAsync(on_device, &pageable, 4, cudaMemcpyHostToDevice, s), cudaSuccess);
    pageable = 6;
    assert_int_equal(cudaMemcpyAsync(&pageable, on_device, 4, cudaMemcpyDeviceToHost, s), cudaSuccess); /* waits */
    assert_int_equal(pageable, 5);
    assert_int_equal(cudaFree(on_device), cudaSuccess);
    assert_int_equal(cudaFreeHost(pinned), cudaSuccess);
    assert_int_equal(cudaEventDestroy(e), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(s), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
    (void)cudaGetLastError();
}

/* One stream waits for the other's event, and sees what was queued before it, and nothing else. */
static void an_event_is_order_between_streams(void **state)
{
    (void)state;
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        emulation_set_order(orders[o], 3);
        cudaStream_t a;
        cudaStream_t b;
        cudaEvent_t e;
        unsigned char *at;
        unsigned char host[2] = {0};
        assert_int_equal(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking), cudaSuccess);
        assert_int_equal(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), cudaSuccess);
        assert_int_equal(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), cudaSuccess);
        assert_int_equal(cudaMalloc((void **)&at, 2), cudaSuccess);
        assert_int_equal(cudaMemsetAsync(at, 1, 1, a), cudaSuccess);
        assert_int_equal(cudaEventRecord(e, a), cudaSuccess);
        assert_int_equal(cudaStreamWaitEvent(b, e, 0), cudaSuccess);
        assert_int_equal(cudaMemcpyAsync(at + 1, at, 1, cudaMemcpyDeviceToDevice, b), cudaSuccess);
        assert_int_equal(cudaStreamSynchronize(b), cudaSuccess);
        assert_int_equal(cudaMemcpyAsync(host, at, 2, cudaMemcpyDeviceToHost, b), cudaSuccess);
        assert_int_equal(host[0], 1);
        assert_int_equal(host[1], 1);
        assert_int_equal(cudaStreamDestroy(a), cudaSuccess);
        assert_int_equal(cudaStreamDestroy(b), cudaSuccess);
        assert_int_equal(cudaEventDestroy(e), cudaSuccess);
        assert_int_equal(cudaFree(at), cudaSuccess);
    }
}

static void the_nth_call_fails_when_a_test_says_so(void **state)
{
    (void)state;
    void *at = NULL;
    emulation_fail_call(2, cudaErrorUnknown);
    assert_int_equal(cudaMalloc(&at, 8), cudaSuccess);
    assert_false(emulation_was_hit());
    assert_int_equal(cudaMemsetAsync(at, 0, 8, NULL), cudaErrorUnknown);
    assert_true(emulation_was_hit());
    assert_int_equal(emulation_calls(), 2);
    assert_int_equal(cudaMemsetAsync(at, 0, 8, NULL), cudaSuccess);
    assert_int_equal(cudaFree(at), cudaSuccess);
    emulation_fail_call(0, 0);
    assert_int_equal(cudaPeekAtLastError(), cudaErrorUnknown);
    (void)cudaGetLastError();
    assert_int_equal(cudaMalloc(&at, (size_t)3 << 30), cudaErrorMemoryAllocation);
    (void)cudaGetLastError();
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(right_kernels_pass, begin),
        cmocka_unit_test_setup(a_missing_barrier_is_a_race, begin),
        cmocka_unit_test_setup(shuffles_order_no_memory, begin),
        cmocka_unit_test_setup(a_barrier_that_some_threads_miss, begin),
        cmocka_unit_test_setup(a_shared_array_has_ends, begin),
        cmocka_unit_test_setup(shared_memory_is_nothing_until_it_is_written, begin),
        cmocka_unit_test_setup(shared_memory_is_asked_for_and_has_a_limit, begin),
        cmocka_unit_test_setup(a_thread_has_little_stack, begin),
        cmocka_unit_test_setup(a_full_mask_by_half_a_warp, begin),
        cmocka_unit_test_setup(a_mask_without_the_lane_itself, begin),
        cmocka_unit_test_setup(a_lane_that_is_not_there, begin),
        cmocka_unit_test_setup(two_blocks_at_one_address, begin),
        cmocka_unit_test_setup(the_device_sees_its_own_memory_only, begin),
        cmocka_unit_test_setup(every_wrong_kernel_was_tried, begin),
        cmocka_unit_test_setup(a_failure_stays_and_is_told_by_every_call, begin),
        cmocka_unit_test_setup(a_launch_that_does_not_fit_is_refused_at_once, begin),
        cmocka_unit_test_setup(blocks_warps_and_lanes_come_in_the_order_that_is_asked_for, begin),
        cmocka_unit_test_setup(the_host_cannot_touch_device_memory, begin),
        cmocka_unit_test_setup(copies_are_what_they_say, begin),
        cmocka_unit_test_setup(a_stream_runs_late, begin),
        cmocka_unit_test_setup(an_event_is_order_between_streams, begin),
        cmocka_unit_test_setup(the_nth_call_fails_when_a_test_says_so, begin),
    };
    return cmocka_run_group_tests_name(__FILE__, tests, open_device, close_device);
}
