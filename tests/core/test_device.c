/* The processor as a device: every function of its table. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>
#include "core/device.h"
#include "core/half.h"
#include "tests/core/blas_world.h"
#include "tests/harness/shim.h"

enum { MIB = 1 << 20 };

static ttn_device *device;
static ttn_stream stream;

static int open_device(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_ok(ttn_device_cpu(&device, &err), &err);
    stream = (ttn_stream){.device = device, .n_thread = 2};
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    ttn_device_destroy(device);
    return 0;
}

/* Every function, those added later as well: the table has no hole. */
static void the_table_is_complete(void **state)
{
    (void)state;
    void (*function)(void);
    const size_t first = offsetof(ttn_device_ops, destroy);
    assert_string_equal(device->ops->name, "cpu");
    assert_int_equal((sizeof *device->ops - first) % sizeof function, 0);
    for (size_t at = first; at < sizeof *device->ops; at += sizeof function) {
        memcpy(&function, (const char *)device->ops + at, sizeof function);
        assert_non_null(function);
    }
    ttn_device_destroy(NULL);
}

/* ---- memory ---- */

static void a_region_grows_where_it_is_and_keeps_its_contents(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_memory *m;
    assert_ok(device->ops->memory_create(device, 1000, 8 * MIB, &m, &err), &err);
    char *base = device->ops->memory_base(m);
    assert_non_null(base);
    assert_int_equal((uintptr_t)base % 64, 0);
    assert_int_equal(device->ops->memory_bytes(m), 1000);
    memset(base, 7, 1000);
    assert_ok(device->ops->memory_grow(m, 5 * MIB, &err), &err);
    assert_ptr_equal(device->ops->memory_base(m), base);
    assert_int_equal(device->ops->memory_bytes(m), 5 * MIB);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(base[i], 7);
    memset(base, 8, 5 * MIB);
    assert_ok(device->ops->memory_grow(m, 10, &err), &err); /* never smaller */
    assert_int_equal(device->ops->memory_bytes(m), 5 * MIB);
    assert_ok(device->ops->memory_grow(m, 8 * MIB, &err), &err);
    for (int i = 0; i < 5 * MIB; i += 4095)
        assert_int_equal(base[i], 8);
    assert_fails(device->ops->memory_grow(m, 80 * (size_t)MIB, &err), TTN_EINVAL, &err, "values: 83886080 bytes");
    assert_int_equal(device->ops->memory_bytes(m), 8 * MIB);
    device->ops->memory_destroy(m);
    device->ops->memory_destroy(NULL);
}

static void a_region_may_be_empty_or_larger_than_the_most(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_memory *m;
    assert_ok(device->ops->memory_create(device, 0, 0, &m, &err), &err);
    assert_non_null(device->ops->memory_base(m));
    assert_int_equal(device->ops->memory_bytes(m), 0);
    device->ops->memory_touch(m, &stream);
    device->ops->memory_destroy(m);
    assert_ok(device->ops->memory_create(device, 3 * MIB, 10, &m, &err), &err);
    memset(device->ops->memory_base(m), 1, 3 * MIB);
    device->ops->memory_destroy(m);
    assert_fails(device->ops->memory_create(device, (size_t)1 << 62, 0, &m, &err), TTN_ENOMEM, &err, "values");
    assert_null(m);
}

/* Each allocation in turn: a status, and nothing is left behind (AddressSanitizer would say). */
static void no_memory_is_a_status(void **state)
{
    (void)state;
    for (int64_t n = 1, hit = 1; hit; n++) {
        ttn_error err = {0};
        ttn_device *d = NULL;
        ttn_memory *m = NULL;
        ttn_event *e = NULL;
        shim_arm(SHIM_ALLOC | SHIM_MAP, n, SHIM_FAIL, ENOMEM, 0);
        ttn_status status = ttn_device_cpu(&d, &err);
        if (status == TTN_OK) status = d->ops->memory_create(d, 100, 1000, &m, &err);
        if (status == TTN_OK) status = d->ops->event_create(d, &e, &err);
        shim_disarm();
        hit = shim_was_hit();
        assert_int_equal(status, hit ? TTN_ENOMEM : TTN_OK);
        if (hit) assert_true(err.text[0]);
        if (!hit) assert_true(n > 3);
        if (e) d->ops->event_destroy(e);
        if (m) d->ops->memory_destroy(m);
        ttn_device_destroy(d);
    }
}

static int64_t bytes_in_memory(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    long long all, in;
    assert_int_equal(fscanf(f, "%lld %lld", &all, &in), 2);
    fclose(f);
    return in * sysconf(_SC_PAGESIZE);
}

/* What is new is touched once, what was written stays. */
static void touching_brings_what_is_new_into_memory_and_changes_nothing(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_memory *m;
    const size_t first = 16 * MIB + 100;
    assert_ok(device->ops->memory_create(device, first, 64 * MIB, &m, &err), &err);
    char *base = device->ops->memory_base(m);
    base[0] = 1;
    base[first - 1] = 2;
    int64_t before = bytes_in_memory();
    device->ops->memory_touch(m, &stream);
    assert_true(bytes_in_memory() - before > 8 * MIB); /* the kernel counts in batches */
    assert_ok(device->ops->memory_grow(m, 48 * MIB, &err), &err);
    before = bytes_in_memory();
    device->ops->memory_touch(m, &stream);
    assert_true(bytes_in_memory() - before > 20 * MIB);
    before = bytes_in_memory();
    device->ops->memory_touch(m, &stream);
    assert_true(bytes_in_memory() - before < 8 * MIB);
    assert_int_equal(base[0], 1);
    assert_int_equal(base[first - 1], 2);
    device->ops->memory_destroy(m);
}

/* ---- bytes ---- */

typedef ttn_status (*mover)(const ttn_stream *s, void *to, const void *from, size_t bytes, ttn_error *err);

static void check_bytes(mover move, size_t n)
{
    ttn_error err = {0};
    unsigned char from[1000], to[1002], wanted[1002];
    for (size_t b = 0; b < sizeof from; b++)
        from[b] = (unsigned char)(b * 7 + 1);
    memset(to, 0xEE, sizeof to);
    memset(wanted, 0xEE, sizeof wanted);
    memcpy(wanted + 1, from, n);
    assert_ok(move(&stream, to + 1, from, n, &err), &err);
    assert_same_bits(to, wanted, sizeof to);

    memset(wanted + 1, 0xA5, n);
    assert_ok(device->ops->fill(&stream, to + 1, 0x1A5, n, &err), &err); /* as memset: its low byte */
    assert_same_bits(to, wanted, sizeof to);
}

static void bytes_arrive_and_their_neighbours_stay(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 7, 64, 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_bytes(device->ops->put, sizes[i]);
        check_bytes(device->ops->get, sizes[i]);
        check_bytes(device->ops->copy, sizes[i]);
    }
    ttn_error err = {0};
    assert_ok(device->ops->copy(&stream, NULL, NULL, 0, &err), &err);
    assert_ok(device->ops->fill(&stream, NULL, 0, 0, &err), &err);
}

/* ---- numbers ---- */

static void adding_adds_each_element_once(void **state)
{
    (void)state;
    const int64_t sizes[] = {0, 1, 3, 17, 1000, 4099};
    for (int n_thread = 1; n_thread <= 4; n_thread += 3)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const int64_t n = sizes[i];
            ttn_error err = {0};
            ttn_stream s = {.device = device, .n_thread = n_thread};
            real *to = numbers(n + 1, 1), *from = numbers(n + 1, 2), *wanted = numbers(n + 1, 1);
            for (int64_t e = 0; e < n; e++)
                wanted[e] += from[e];
            assert_ok(device->ops->add(&s, to, from, n, &err), &err);
            assert_same_bits(to, wanted, (size_t)(n + 1) * sizeof *to);
            free(to);
            free(from);
            free(wanted);
        }
}

/* Element `at` of x is this number, or for integers all ones. */
static void put_number(ttn_dtype type, void *x, int64_t at, double value)
{
    switch (ttn_dtype_stored(type)) {
    case TTN_F32:
        ((float *)x)[at] = (float)value;
        break;
    case TTN_F64:
        ((double *)x)[at] = value;
        break;
    case TTN_BF16:
        ((uint16_t *)x)[at] = ttn_f32_to_bf16((float)value);
        break;
    case TTN_F16:
        ((uint16_t *)x)[at] = ttn_f32_to_f16((float)value);
        break;
    default:
        memset((char *)x + (size_t)at * ttn_dtype_size(type), 0xFF, ttn_dtype_size(type));
    }
}

static void a_product_is_that_of_plain_loops(void **state)
{
    (void)state;
    enum { M = 17, N = 9, K = 23, LD = 30 };
    const ttn_dtype types[] = {TTN_F32, TTN_F64};
    for (int t = 0; t < 2; t++)
        for (int trans = 0; trans < 4; trans++)
            for (int beta = 0; beta <= 1; beta++) {
                ttn_error err = {0};
                double a[LD * LD] = {0}, b[LD * LD] = {0}, c[LD * LD] = {0}, c0[LD * LD];
                for (int e = 0; e < LD * LD; e++) {
                    put_number(types[t], a, e, number(1, e));
                    put_number(types[t], b, e, number(2, e));
                    put_number(types[t], c, e, number(3, e));
                }
                memcpy(c0, c, sizeof c);
                ttn_trans ta = trans & 1 ? TTN_T : TTN_N, tb = trans & 2 ? TTN_T : TTN_N;
                ttn_mat_in ma = ttn_in_of(types[t], a, LD), mb = ttn_in_of(types[t], b, LD);
                assert_ok(
                    device->ops->gemm(&stream, ta, tb, M, N, K, 0.75, ma, mb, beta, ttn_out_of(types[t], c, LD), &err),
                    &err);
                assert_at_most(error_of(ta, tb, M, N, K, 0.75, ma, mb, beta, ttn_in_of(types[t], c0, LD),
                                        ttn_in_of(types[t], c, LD)),
                               1, "error of a product, in units of its bound");
            }
}

static void a_product_that_does_not_fit_in_one_call_is_refused(void **state)
{
    (void)state;
    const char *const words[] = {"whose m is",     "whose n is",     "whose k is",
                                 "the ld of A is", "the ld of B is", "the ld of C is"};
    const int64_t bad[] = {-1, (int64_t)INT_MAX + 1, INT64_MAX};
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 3; j++) {
            ttn_error err = {0};
            real a[1] = {1}, b[1] = {1}, c[1] = {5};
            int64_t size[] = {1, 1, 1, 1, 1, 1};
            size[i] = bad[j];
            ttn_status status = device->ops->gemm(&stream, TTN_N, TTN_N, size[0], size[1], size[2], 1,
                                                  ttn_in(a, size[3]), ttn_in(b, size[4]), 0, ttn_out(c, size[5]), &err);
            assert_fails(status, TTN_EINVAL, &err, words[i]);
            assert_true(c[0] == 5);
        }
    /* the largest that does: there is nothing to multiply */
    ttn_error err = {0};
    assert_ok(device->ops->gemm(&stream, TTN_N, TTN_T, 0, INT_MAX, INT_MAX, 1, ttn_in(NULL, INT_MAX),
                                ttn_in(NULL, INT_MAX), 0, ttn_out(NULL, INT_MAX), &err),
              &err);
}

static double largest(ttn_dtype type)
{
    switch (ttn_dtype_stored(type)) {
    case TTN_F64:
        return DBL_MAX;
    case TTN_BF16:
        return 0x1.FEp127;
    case TTN_F16:
        return 65504;
    default:
        return (double)FLT_MAX;
    }
}

static int is_integer(ttn_dtype type)
{
    return type == TTN_I64 || type == TTN_I32 || type == TTN_U8;
}

static void check_nonfinite(ttn_dtype type, int n_thread)
{
    enum { N = 100 };
    static const int64_t places[][2] = {{0, 0}, {N - 1, N - 1}, {3, 97}, {40, 41}};
    const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    const ttn_stream s = {.device = device, .n_thread = n_thread};
    void *x = room(N, ttn_dtype_size(type));
    int64_t count, first;
    ttn_error err = {0};
    for (int64_t e = 0; e < N; e++)
        put_number(type, x, e, e % 2 ? largest(type) : -largest(type));
    assert_ok(device->ops->find_nonfinite(&s, type, x, N, &count, &first, &err), &err);
    assert_int_equal(count, 0);
    assert_int_equal(first, -1);
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (int b = 0; b < 3; b++) {
            for (int i = 0; i < 2; i++)
                put_number(type, x, places[p][i], bad[b]);
            assert_ok(device->ops->find_nonfinite(&s, type, x, N, &count, &first, &err), &err);
            assert_int_equal(count, is_integer(type) ? 0 : 1 + (places[p][0] != places[p][1]));
            assert_int_equal(first, is_integer(type) ? -1 : places[p][0]);
            /* what stands behind the last element is not looked at */
            assert_ok(device->ops->find_nonfinite(&s, type, x, places[p][0], &count, &first, &err), &err);
            assert_int_equal(count, 0);
            assert_int_equal(first, -1);
            for (int i = 0; i < 2; i++)
                put_number(type, x, places[p][i], 0);
        }
    free(x);
}

static void nonfinite_numbers_are_counted_and_the_first_is_named(void **state)
{
    (void)state;
    for (int type = 0; type <= TTN_U8; type++)
        for (int n_thread = 1; n_thread <= 3; n_thread += 2)
            check_nonfinite((ttn_dtype)type, n_thread);
}

/* ---- order ---- */

static void an_event_is_waited_for_once_it_was_recorded(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_event *e;
    ttn_stream other = {.device = device, .n_thread = 1};
    assert_ok(device->ops->sync(&stream, &err), &err);
    assert_ok(device->ops->event_create(device, &e, &err), &err);
    assert_fails(device->ops->event_wait(e, &other, &err), TTN_EINVAL, &err, "never recorded");
    err = (ttn_error){0};
    assert_ok(device->ops->event_record(e, &stream, &err), &err);
    assert_ok(device->ops->event_wait(e, &other, &err), &err);
    assert_ok(device->ops->event_wait(e, &stream, &err), &err);
    device->ops->event_destroy(e);
    device->ops->event_destroy(NULL);
}

static void it_says_what_it_is(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_device_report r;
    memset(&r, 0xFF, sizeof r);
    assert_ok(device->ops->report(device, &r, &err), &err);
    assert_string_equal(r.kind, "cpu");
    assert_true(strlen(r.name) >= 6);
    assert_int_equal(r.multiprocessors, sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(r.memory >= r.memory_free && r.memory_free > 0);
    assert_int_equal(r.index, 0);
    assert_int_equal(r.capability[0], 0);
    assert_string_equal(r.driver, "");
    assert_string_equal(r.runtime, "");
    assert_string_equal(r.blas, "");
}

static void without_cuda_a_gpu_is_refused_with_a_sentence(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_device *gpu = device;
    assert_fails(
        ttn_device_cuda(3, &gpu, &err), TTN_EDEVICE, &err,
        "GPU 3 was asked for, but this titin was built without CUDA; run on the processor or build with CUDA=1");
    assert_null(gpu);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(a_region_grows_where_it_is_and_keeps_its_contents),
        cmocka_unit_test(a_region_may_be_empty_or_larger_than_the_most),
        cmocka_unit_test(no_memory_is_a_status),
        cmocka_unit_test(touching_brings_what_is_new_into_memory_and_changes_nothing),
        cmocka_unit_test(bytes_arrive_and_their_neighbours_stay),
        cmocka_unit_test(adding_adds_each_element_once),
        cmocka_unit_test(a_product_is_that_of_plain_loops),
        cmocka_unit_test(a_product_that_does_not_fit_in_one_call_is_refused),
        cmocka_unit_test(nonfinite_numbers_are_counted_and_the_first_is_named),
        cmocka_unit_test(an_event_is_waited_for_once_it_was_recorded),
        cmocka_unit_test(it_says_what_it_is),
        cmocka_unit_test(without_cuda_a_gpu_is_refused_with_a_sentence),
    };
    return cmocka_run_group_tests_name(__FILE__, tests, open_device, close_device);
}
