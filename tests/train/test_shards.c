/* Gradients of micro-batches add up in a tree, whoever makes it. */
#include <string.h>
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/shards.h"

enum { N = 1000, MOST = 16 };

typedef struct {
    ttn_graph *g;
    ttn_device *device;
    ttn_stream on;
    ttn_weights *weights;
} bench;

static bench create(int n_thread)
{
    ttn_error err = {0};
    bench b = {.g = ttn_graph_create((ttn_extent){0})};
    ttn_param(b.g, "w", ttn_vector(N), (ttn_init){TTN_INIT_CONSTANT, 0}, 0);
    assert_ok(ttn_device_cpu(&b.device, &err), &err);
    b.on = (ttn_stream){.device = b.device, .n_thread = n_thread};
    assert_ok(ttn_weights_create(b.g, b.device, &b.weights, &err), &err);
    return b;
}

static void drop(bench *b)
{
    ttn_weights_destroy(b->weights);
    ttn_device_destroy(b->device);
    ttn_graph_destroy(b->g);
}

/* Numbers of very different size, so that another order shows in the bits. */
static void shard(int64_t i, real *x)
{
    ttn_rng_normal((uint64_t)(100 + i), 0, N, x);
    for (int e = 0; e < N; e++)
        x[e] *= (real)(1 << (e * 7 + i * 5) % 11);
}

/* The sum of shards first … first + n - 1, as the header says. */
static void tree(int64_t first, int64_t n, real *sum)
{
    if (n == 1) {
        shard(first, sum);
        return;
    }
    real right[N];
    tree(first, n / 2, sum);
    tree(first + n / 2, n / 2, right);
    for (int e = 0; e < N; e++)
        sum[e] += right[e];
}

static void add_shards(const bench *b, ttn_shards *s, int64_t first, int64_t n)
{
    ttn_error err = {0};
    for (int64_t i = first; i < first + n; i++) {
        shard(i, ttn_weights_slab(b->weights, TTN_SLAB_GRADIENT));
        assert_ok(ttn_shards_add(s, &err), &err);
    }
}

static void shards_are_added_in_a_binary_tree(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= MOST; n *= 2) {
        ttn_error err = {0};
        bench b = create(2);
        ttn_shards *s;
        real sum[N];
        assert_ok(ttn_shards_create(b.weights, &b.on, n, &s, &err), &err);
        for (int64_t round = 0; round < 3; round++) {
            add_shards(&b, s, round * n, n);
            tree(round * n, n, sum);
            assert_same_bits(sum, ttn_weights_slab(b.weights, TTN_SLAB_GRADIENT), sizeof sum);
        }
        ttn_shards_destroy(s);
        drop(&b);
    }
}

/* Two ranks have a half each; the sum of their sums is that of one. */
static void two_ranks_make_the_sum_of_one(void **state)
{
    (void)state;
    ttn_error err = {0};
    real whole[N];
    real half[2][N];
    bench b = create(1);
    ttn_shards *s;
    assert_ok(ttn_shards_create(b.weights, &b.on, 8, &s, &err), &err);
    add_shards(&b, s, 0, 8);
    memcpy(whole, ttn_weights_slab(b.weights, TTN_SLAB_GRADIENT), sizeof whole);
    ttn_shards_destroy(s);
    assert_ok(ttn_shards_create(b.weights, &b.on, 4, &s, &err), &err);
    for (int rank = 0; rank < 2; rank++) {
        add_shards(&b, s, 4 * rank, 4);
        memcpy(half[rank], ttn_weights_slab(b.weights, TTN_SLAB_GRADIENT), sizeof half[rank]);
    }
    for (int e = 0; e < N; e++)
        half[0][e] += half[1][e];
    assert_same_bits(whole, half[0], sizeof whole);
    ttn_shards_destroy(s);
    drop(&b);
}

static void a_sum_that_was_given_up_leaves_nothing(void **state)
{
    (void)state;
    for (int64_t done = 1; done < 8; done++) {
        ttn_error err = {0};
        bench b = create(1);
        ttn_shards *s;
        real sum[N];
        assert_ok(ttn_shards_create(b.weights, &b.on, 8, &s, &err), &err);
        add_shards(&b, s, 50, done);
        ttn_shards_restart(s);
        add_shards(&b, s, 0, 8);
        tree(0, 8, sum);
        assert_same_bits(sum, ttn_weights_slab(b.weights, TTN_SLAB_GRADIENT), sizeof sum);
        ttn_shards_destroy(s);
        drop(&b);
    }
}

static void only_powers_of_two_are_a_tree(void **state)
{
    (void)state;
    static const int64_t n[] = {0, -1, 3, 6, 12, INT64_MAX};
    bench b = create(1);
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        ttn_shards *s = NULL;
        ttn_error err = {0};
        assert_fails(ttn_shards_create(b.weights, &b.on, n[i], &s, &err), TTN_EINVAL, &err, "expected a power of two");
        assert_null(s);
    }
    drop(&b);
}

static void no_memory_is_a_message(void **state)
{
    (void)state;
    ttn_error first = {0};
    bench b = create(1);
    assert_ok(ttn_weights_require(b.weights, TTN_SLAB_GRADIENT, &first), &first);
    for (int64_t nth = 1;; nth++) {
        ttn_shards *s = NULL;
        ttn_error err = {0};
        shim_arm(SHIM_ALLOC | SHIM_MAP, nth, SHIM_FAIL, 12, 0);
        const ttn_status status = ttn_shards_create(b.weights, &b.on, 4, &s, &err);
        const int hit = shim_was_hit();
        shim_disarm();
        if (!hit) {
            assert_ok(status, &err);
            assert_true(nth > 3);
            ttn_shards_destroy(s);
            break;
        }
        assert_fails(status, TTN_ENOMEM, &err, "memory");
        assert_null(s);
    }
    ttn_shards_destroy(NULL);
    drop(&b);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_added_in_a_binary_tree),
        cmocka_unit_test(two_ranks_make_the_sum_of_one),
        cmocka_unit_test(a_sum_that_was_given_up_leaves_nothing),
        cmocka_unit_test(only_powers_of_two_are_a_tree),
        cmocka_unit_test(no_memory_is_a_message),
    };
    return ttn_test_run(tests);
}
