/* The optimizer and the sums of shards on the emulated device, against the CPU's: values, moments and norm after some steps of
 * two micro-batches each; the same bits twice; gradients that are not finite. The host reads nothing there. */
#include <math.h>
#include <string.h>
#include "core/memory.h"
#include "core/rng.h"
#include "tests/cuda/emulation.h"
#include "tests/harness/test.h"
#include "train/optim.h"
#include "train/shards.h"

/* Of a value's largest element: the same formula, element by element, and a norm that is added up in another order. */
#define BOUND (sizeof(real) == 4 ? 1e-6 : 1e-14)

enum { LARGE = 2 * 4096 + 37, SMALL = 5, STEPS = 3, SHARDS = 2, SLABS = 3 };

static ttn_device *there;

static int open_device(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_ok(ttn_device_cuda(0, &there, &err), &err);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    ttn_device_destroy(there);
    assert_int_equal(emulation_allocated(), 0);
    return 0;
}

static const char *const name[] = {"matrix", "gain"};
static const int64_t length[] = {LARGE, SMALL};
static const ttn_slab slab[SLABS] = {TTN_SLAB_VALUE, TTN_SLAB_M, TTN_SLAB_V};

typedef struct {
    real x[SLABS][LARGE + SMALL];
    double norm;
} result;

static void put_gradients(ttn_weights *w, uint64_t key, real first)
{
    static real g[LARGE];
    ttn_error err = {0};
    for (int i = 0; i < 2; i++) {
        ttn_rng_normal(key + (uint64_t)i, 0, length[i], g);
        if (i == 1) g[0] += first;
        assert_ok(ttn_weights_write(w, ttn_weights_find(w, name[i]), TTN_SLAB_GRADIENT, g, &err), &err);
    }
}

static void read_slabs(const ttn_weights *w, result *r)
{
    ttn_error err = {0};
    for (int s = 0; s < SLABS; s++)
        for (int i = 0; i < 2; i++)
            assert_ok(ttn_weights_read(w, ttn_weights_find(w, name[i]), slab[s], r->x[s] + i * LARGE, &err), &err);
}

/* bad: added to one gradient of the last step. Returns whether all were finite. */
static int train(ttn_device *d, real bad, result *r)
{
    static const ttn_optim_spec spec = {.beta1 = 0.9, .beta2 = 0.98, .eps = 1e-6, .decay = 0.1, .clip = 1};
    ttn_error err = {0};
    ttn_graph *g = ttn_graph_create((ttn_extent){0});
    const ttn_init normal = {TTN_INIT_NORMAL, 1};
    ttn_param(g, name[0], ttn_vector(LARGE), normal, 0);
    ttn_param(g, name[1], ttn_vector(SMALL), normal, TTN_NO_DECAY);
    ttn_weights *w;
    ttn_shards *shards;
    ttn_optim *o;
    const ttn_stream on = {.device = d, .n_thread = 1};
    assert_ok(ttn_weights_create(g, d, &w, &err), &err);
    assert_ok(ttn_weights_init(w, 1, &err), &err);
    assert_ok(ttn_optim_create(&spec, w, &on, NULL, 0, &o, &err), &err);
    assert_ok(ttn_shards_create(w, &on, SHARDS, &shards, &err), &err);
    ttn_optim_result step = {0};
    for (int64_t s = 0; s < STEPS; s++) {
        for (int64_t k = 0; k < SHARDS; k++) {
            put_gradients(w, (uint64_t)(10 * s + 2 * k), s == STEPS - 1 ? bad : 0);
            assert_ok(ttn_shards_add(shards, &err), &err);
        }
        assert_ok(ttn_optim_step(o, &(ttn_optim_when){.step = s, .lr = 0.01, .count = 7}, &step, &err), &err);
    }
    r->norm = step.norm;
    read_slabs(w, r);
    ttn_optim_destroy(o);
    ttn_shards_destroy(shards);
    ttn_weights_destroy(w);
    ttn_graph_destroy(g);
    return step.is_finite;
}

static result host;
static result once;
static result twice;

static void steps_are_the_cpus(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_device *cpu;
    assert_ok(ttn_device_cpu(&cpu, &err), &err);
    assert_true(train(cpu, 0, &host));
    assert_true(train(there, 0, &once));
    assert_at_most(fabs(once.norm / host.norm - 1), 1e-12, "the norm");
    for (int s = 0; s < SLABS; s++) {
        double scale = 0;
        double worst = 0;
        for (int i = 0; i < LARGE + SMALL; i++) {
            scale = fmax(scale, fabs((double)host.x[s][i]));
            worst = fmax(worst, fabs((double)host.x[s][i] - (double)once.x[s][i]));
        }
        assert_at_most(worst / scale, BOUND, "a slab");
    }
    ttn_device_destroy(cpu);
}

static void the_same_steps_give_the_same_bits(void **state)
{
    (void)state;
    assert_true(train(there, 0, &once));
    assert_true(train(there, 0, &twice));
    assert_same_bits(&once, &twice, sizeof once);
}

static void gradients_that_are_not_finite_change_nothing_there(void **state)
{
    (void)state;
    assert_false(train(there, (real)NAN, &once));
    assert_false(train(there, (real)INFINITY, &twice));
    assert_same_bits(once.x, twice.x, sizeof once.x);
    for (int s = 0; s < SLABS; s++)
        for (int i = 0; i < LARGE + SMALL; i++)
            assert_true(isfinite(once.x[s][i]));
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_the_cpus),
        cmocka_unit_test(the_same_steps_give_the_same_bits),
        cmocka_unit_test(gradients_that_are_not_finite_change_nothing_there),
    };
    return cmocka_run_group_tests_name(__FILE__, tests, open_device, close_device);
}
