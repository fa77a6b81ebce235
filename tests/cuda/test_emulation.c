/* The emulation that all other tests of this folder stand on: each of its detectors fires on a kernel that is wrong in that
 * way, in every order of warps, and none fires on right ones. */
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

static ttn_status run(broken which, const real *host, ttn_error *err)
{
    ttn_status status = broken_run(which, &stream, x, y, host, err);
    if (status == TTN_OK) status = device->ops->sync(&stream, err);
    return status;
}

static const emulation_order orders[] = {EMULATION_FORWARD, EMULATION_REVERSE, EMULATION_RANDOM};

/* In every order; the device is new each time. */
static void assert_noticed(broken which, const char *words)
{
    static const real host[N];
    emulation_order before;
    uint64_t seed;
    emulation_get_order(&before, &seed);
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        ttn_error err = {0};
        emulation_set_order(orders[o], seed);
        assert_fails(run(which, host, &err), TTN_EDEVICE, &err, words);
        assert_contains(err.text, "kernel 'broken_kernel'");
        emulation_reset();
    }
    emulation_set_order(before, seed);
}

/* What only a look at every access shows; AddressSanitizer does not. */
static void assert_seen(broken which, const char *words)
{
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
        assert_true(sums[0] == 128 * 129 / 2 && sums[1] == 128 * 128 + 128 * 129 / 2);

        int out[RIGHT_WORDS + 1];
        const uint64_t wide = 1000;
        assert_ok(device->ops->fill(&stream, y, 0, Y * sizeof(real), &err), &err);
        assert_ok(device->ops->put(&stream, (int *)y + RIGHT_WORDS + 2, &wide, sizeof wide, &err), &err);
        assert_ok(right_run(&stream, (int *)y, &err), &err);
        assert_ok(device->ops->get(&stream, out, y, sizeof out, &err), &err);
        for (int i = 0; i <= RIGHT_WORDS; i++)
            if (out[i] != 1) fail_msg("what the kernel tries as number %d does not hold", i);
    }
    emulation_set_order(EMULATION_FORWARD, 1);
}

static void a_missing_barrier(void **state)
{
    (void)state;
    assert_seen(BROKEN_NO_BARRIER, "shared array 'part'");
    assert_seen(BROKEN_LAST_BARRIER, "no barrier between");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_kernels_pass),
        cmocka_unit_test(a_missing_barrier),
    };
    return cmocka_run_group_tests_name(__FILE__, tests, open_device, close_device);
}
