/* One step of AdamW against its formula, what it leaves alone, and what it refuses. */
#include <math.h>
#include <string.h>
#include "autograd/adamw.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "tests/train/model_config.h"
#include "train/optim.h"

/* Some blocks of the slabs, and ends that are no whole vector. */
enum { LARGE = 3 * 4096 + 37, SMALL = 5 };

static const ttn_optim_spec plain = {.beta1 = 0.9, .beta2 = 0.98, .eps = 1e-6, .decay = 0.1, .clip = 1};

/* Rounding of a step: a quotient, a root, a few sums. */
static const double bound = 16 * TTN_REAL_EPS;

typedef struct {
    ttn_graph *g;
    ttn_device *device;
    ttn_stream on;
    ttn_weights *weights;
    ttn_optim *optim;
} bench;

static bench create(const ttn_optim_spec *spec, int n_thread, const char *untrained)
{
    ttn_error err = {0};
    bench b = {.g = ttn_graph_create((ttn_extent){0})};
    const ttn_init normal = {TTN_INIT_NORMAL, 1};
    ttn_param(b.g, "matrix", ttn_vector(LARGE), normal, 0);
    ttn_param(b.g, "gain", ttn_vector(SMALL), normal, TTN_NO_DECAY);
    ttn_param(b.g, "dead", ttn_vector(SMALL), normal, 0);
    ttn_param(b.g, "frozen", ttn_vector(SMALL), normal, TTN_FROZEN);
    ttn_state(b.g, "state", ttn_vector(SMALL));
    assert_ok(ttn_device_cpu(&b.device, &err), &err);
    b.on = (ttn_stream){.device = b.device, .n_thread = n_thread};
    assert_ok(ttn_weights_create(b.g, b.device, &b.weights, &err), &err);
    assert_ok(ttn_weights_init(b.weights, 1, &err), &err);
    assert_ok(ttn_optim_create(spec, b.weights, &b.on, &untrained, untrained ? 1 : 0, &b.optim, &err), &err);
    return b;
}

static void drop(bench *b)
{
    ttn_optim_destroy(b->optim);
    ttn_weights_destroy(b->weights);
    ttn_device_destroy(b->device);
    ttn_graph_destroy(b->g);
}

static real *address(const bench *b, const char *name, ttn_slab slab)
{
    const int at = ttn_weights_find(b->weights, name);
    assert_true(at >= 0);
    return ttn_weights_address(b->weights, at, slab);
}

static void put_gradients(const bench *b, uint64_t key, real scale)
{
    static const char *const name[] = {"matrix", "gain", "dead"};
    static const int64_t n[] = {LARGE, SMALL, SMALL};
    for (int i = 0; i < 3; i++) {
        real *g = address(b, name[i], TTN_SLAB_GRADIENT);
        ttn_rng_normal(key + (uint64_t)i, 0, n[i], g);
        for (int64_t e = 0; e < n[i]; e++)
            g[e] *= scale;
    }
}

/* ---- the formula, element by element in double ---- */

typedef struct {
    double w, m, v;
} element;

static void step_element(const ttn_optim_spec *s, const ttn_optim_when *when, double g, double factor, int decays,
                         element *e)
{
    const double t = (double)when->step + 1;
    g *= factor / when->count;
    e->m = s->beta1 * e->m + (1 - s->beta1) * g;
    e->v = s->beta2 * e->v + (1 - s->beta2) * g * g;
    const double m = e->m / (1 - pow(s->beta1, t));
    const double v = e->v / (1 - pow(s->beta2, t));
    e->w -= when->lr * ((decays ? s->decay * e->w : 0) + m / (sqrt(v) + s->eps));
}

/* Takes steps, each beside the formula; `dead` stays as it is when it is untrained. */
static void follow(const ttn_optim_spec *spec, const char *untrained, double count, real scale)
{
    static element model[LARGE + 2 * SMALL];
    static const char *const name[] = {"matrix", "gain", "dead"};
    static const int64_t n[] = {LARGE, SMALL, SMALL};
    bench b = create(spec, 2, untrained);
    const int n_trained = untrained ? 2 : 3;
    int64_t at = 0;
    for (int i = 0; i < 3; i++)
        for (int64_t e = 0; e < n[i]; e++, at++)
            model[at] = (element){.w = (double)address(&b, name[i], TTN_SLAB_VALUE)[e]};
    for (int64_t step = 0; step < 3; step++) {
        ttn_error err = {0};
        const ttn_optim_when when = {.step = step, .lr = 0.01 * (double)(step + 1), .count = count};
        put_gradients(&b, (uint64_t)(10 * step), scale);
        double squares = 0;
        for (int i = 0; i < n_trained; i++)
            for (int64_t e = 0; e < n[i]; e++)
                squares += pow((double)address(&b, name[i], TTN_SLAB_GRADIENT)[e] / count, 2);
        const double norm = sqrt(squares);
        const double factor = spec->clip > 0 ? fmin(1, spec->clip / (norm + 1e-6)) : 1;
        ttn_optim_result r;
        assert_ok(ttn_optim_step(b.optim, &when, &r, &err), &err);
        assert_true(r.is_finite);
        assert_at_most(fabs(r.norm / norm - 1), 1e-13, "the norm"); /* in double in both builds */
        assert_at_most(fabs(r.factor / factor - 1), 1e-12, "the factor");
        at = 0;
        for (int i = 0; i < 3; i++)
            for (int64_t e = 0; e < n[i]; e++, at++) {
                if (i < n_trained)
                    step_element(spec, &when, (double)address(&b, name[i], TTN_SLAB_GRADIENT)[e], factor, i != 1,
                                 &model[at]);
                assert_at_most(fabs((double)address(&b, name[i], TTN_SLAB_VALUE)[e] - model[at].w),
                               bound * (1 + fabs(model[at].w)), "a value");
                assert_at_most(fabs((double)address(&b, name[i], TTN_SLAB_M)[e] - model[at].m), bound * (double)scale,
                               "a first moment");
                assert_at_most(fabs((double)address(&b, name[i], TTN_SLAB_V)[e] - model[at].v),
                               bound * (double)(scale * scale), "a second moment");
            }
    }
    drop(&b);
}

static void steps_follow_the_formula(void **state)
{
    (void)state;
    follow(&plain, NULL, 1, 1);
}

static void gradients_below_the_clip_are_left_alone(void **state)
{
    (void)state;
    follow(&plain, NULL, 1, (real)0x1p-10);
}

static void gradients_are_divided_by_the_count(void **state)
{
    (void)state;
    follow(&plain, NULL, 1000, 1);
}

static void without_a_clip_and_a_decay_too(void **state)
{
    (void)state;
    const ttn_optim_spec s = {.beta1 = 0, .beta2 = 0.5, .eps = 1e-3};
    follow(&s, NULL, 2, 1);
}

static void what_no_loss_reaches_stays_and_is_not_in_the_norm(void **state)
{
    (void)state;
    follow(&plain, "dead", 3, 1);
}

/* ---- what stays ---- */

static void frozen_weights_and_states_stay(void **state)
{
    (void)state;
    ttn_error err = {0};
    bench b = create(&plain, 1, NULL);
    real before[SMALL];
    memcpy(before, address(&b, "frozen", TTN_SLAB_VALUE), sizeof before);
    put_gradients(&b, 1, 1);
    ttn_optim_result r;
    assert_ok(ttn_optim_step(b.optim, &(ttn_optim_when){.lr = 1, .count = 1}, &r, &err), &err);
    assert_same_bits(before, address(&b, "frozen", TTN_SLAB_VALUE), sizeof before);
    for (int i = 0; i < SMALL; i++)
        assert_true(address(&b, "state", TTN_SLAB_VALUE)[i] == 0);
    drop(&b);
}

/* Values and both moments, one after the other. */
static real *snapshot(const bench *b)
{
    const int64_t n = ttn_weights_slab_elements(b->weights);
    static const ttn_slab slab[] = {TTN_SLAB_VALUE, TTN_SLAB_M, TTN_SLAB_V};
    real *all = ttn_alloc_array(3 * n, sizeof *all);
    assert_non_null(all);
    for (int i = 0; i < 3; i++)
        memcpy(all + i * n, ttn_weights_slab(b->weights, slab[i]), (size_t)n * sizeof *all);
    return all;
}

static void gradients_that_are_not_finite_change_nothing(void **state)
{
    (void)state;
    const real bad[] = {(real)NAN, (real)INFINITY, (real)-INFINITY};
    static const char *const where[] = {"matrix", "matrix", "gain"};
    static const int64_t place[] = {0, LARGE - 1, 2};
    bench b = create(&plain, 2, NULL);
    const size_t bytes = (size_t)(3 * ttn_weights_slab_elements(b.weights)) * sizeof(real);
    ttn_optim_result r;
    ttn_error err = {0};
    put_gradients(&b, 1, 1);
    assert_ok(ttn_optim_step(b.optim, &(ttn_optim_when){.lr = 0.1, .count = 1}, &r, &err), &err);
    assert_true(r.is_finite);
    real *before = snapshot(&b);
    for (int i = 0; i < 3; i++) {
        put_gradients(&b, 2, 1);
        address(&b, where[i], TTN_SLAB_GRADIENT)[place[i]] = bad[i];
        assert_ok(ttn_optim_step(b.optim, &(ttn_optim_when){.step = 1, .lr = 0.1, .count = 1}, &r, &err), &err);
        assert_false(r.is_finite);
        real *after = snapshot(&b);
        assert_same_bits(before, after, bytes);
        ttn_free(after);
    }
    put_gradients(&b, 2, 1);
    assert_ok(ttn_optim_step(b.optim, &(ttn_optim_when){.step = 1, .lr = 0.1, .count = 1}, &r, &err), &err);
    assert_true(r.is_finite);
    ttn_free(before);
    drop(&b);
}

static void any_number_of_threads_makes_the_same_bits(void **state)
{
    (void)state;
    static const int n_thread[] = {1, 2, 3, 5, 8};
    real *first = NULL;
    double norm = 0;
    for (int i = 0; i < 5; i++) {
        bench b = create(&plain, n_thread[i], NULL);
        const size_t bytes = (size_t)(3 * ttn_weights_slab_elements(b.weights)) * sizeof(real);
        ttn_error err = {0};
        ttn_optim_result r;
        put_gradients(&b, 1, 1);
        assert_ok(ttn_optim_step(b.optim, &(ttn_optim_when){.lr = 0.1, .count = 1}, &r, &err), &err);
        real *all = snapshot(&b);
        if (i == 0) {
            first = all;
            norm = r.norm;
        } else {
            assert_same_bits(first, all, bytes);
            assert_true(norm == r.norm);
            ttn_free(all);
        }
        drop(&b);
    }
    ttn_free(first);
}

/* Between tensors all slabs hold zeros, which checkpoints rely on. */
static void what_lies_between_the_tensors_stays_zero(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_optim_result r;
    bench b = create(&plain, 1, NULL);
    put_gradients(&b, 1, 1);
    assert_ok(ttn_optim_step(b.optim, &(ttn_optim_when){.lr = 0.1, .count = 1}, &r, &err), &err);
    const real *slab = ttn_weights_slab(b.weights, TTN_SLAB_VALUE);
    int64_t end = 0;
    int64_t between = 0;
    for (int i = 0; i < ttn_weights_count(b.weights); i++) {
        const ttn_weight *w = ttn_weights_at(b.weights, i);
        if (w->is_state) continue;
        const int64_t first = (int64_t)(w->offset / sizeof(real));
        for (int64_t e = end; e < first; e++) {
            assert_true(slab[e] == 0);
            between++;
        }
        end = first + ttn_desc_numel(&w->desc);
    }
    assert_true(between > 0);
    drop(&b);
}

/* ---- what is refused ---- */

static void a_step_without_targets_is_refused(void **state)
{
    (void)state;
    bench b = create(&plain, 1, NULL);
    const double count[] = {0, -1, (double)NAN};
    for (int i = 0; i < 3; i++) {
        ttn_optim_result r;
        ttn_error err = {0};
        assert_fails(ttn_optim_step(b.optim, &(ttn_optim_when){.step = 7, .lr = 0.1, .count = count[i]}, &r, &err),
                     TTN_EINVAL, &err, "optimizer: step 7 has");
    }
    drop(&b);
}

static void an_untrained_name_that_is_no_weight_is_refused(void **state)
{
    (void)state;
    bench b = create(&plain, 1, NULL);
    static const char *const name[] = {"dead", "deaf"};
    ttn_optim *o = NULL;
    ttn_error err = {0};
    assert_fails(ttn_optim_create(&plain, b.weights, &b.on, name, 2, &o, &err), TTN_EINVAL, &err,
                 "there is no weight 'deaf'");
    assert_null(o);
    drop(&b);
}

static void a_device_without_kernels_is_refused(void **state)
{
    (void)state;
    if (ttn_cuda_adamw()) skip_because("a build with CUDA has kernels for both kinds of device");
    bench b = create(&plain, 1, NULL);
    ttn_device_ops ops = *b.device->ops;
    ops.kernels = TTN_KERNELS_CUDA;
    ops.name = "cuda";
    ttn_device gpu = {.ops = &ops};
    const ttn_stream on = {.device = &gpu, .n_thread = 1};
    ttn_optim *o = NULL;
    ttn_error err = {0};
    assert_fails(ttn_optim_create(&plain, b.weights, &on, NULL, 0, &o, &err), TTN_EDEVICE, &err,
                 "the optimizer has no kernel for a device of kind cuda");
    assert_null(o);
    drop(&b);
}

static void no_memory_is_a_message(void **state)
{
    (void)state;
    bench b = create(&plain, 1, NULL);
    for (int64_t nth = 1;; nth++) {
        ttn_optim *o = NULL;
        ttn_error err = {0};
        shim_arm(SHIM_ALLOC | SHIM_MAP, nth, SHIM_FAIL, 12, 0);
        const ttn_status status = ttn_optim_create(&plain, b.weights, &b.on, NULL, 0, &o, &err);
        const int hit = shim_was_hit();
        shim_disarm();
        if (!hit) {
            assert_ok(status, &err);
            assert_true(nth > 5);
            ttn_optim_destroy(o);
            break;
        }
        assert_fails(status, TTN_ENOMEM, &err, "memory");
        assert_null(o);
    }
    ttn_optim_destroy(NULL);
    drop(&b);
}

static void rows_become_a_spec(void **state)
{
    (void)state;
    model_config c =
        model_config_of(NULL, "optim: {beta1: 0.5, beta2: 0.25, eps: 0.125, decay: 0.0625, clip: 0.75, lr: 0.3}");
    ttn_optim_spec s;
    ttn_error err = {0};
    assert_ok(ttn_optim_spec_of(c.values, &s, &err), &err);
    assert_true(s.beta1 == 0.5 && s.beta2 == 0.25 && s.eps == 0.125 && s.decay == 0.0625 && s.clip == 0.75);
    model_config_drop(&c);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_the_formula),
        cmocka_unit_test(gradients_below_the_clip_are_left_alone),
        cmocka_unit_test(gradients_are_divided_by_the_count),
        cmocka_unit_test(without_a_clip_and_a_decay_too),
        cmocka_unit_test(what_no_loss_reaches_stays_and_is_not_in_the_norm),
        cmocka_unit_test(frozen_weights_and_states_stay),
        cmocka_unit_test(gradients_that_are_not_finite_change_nothing),
        cmocka_unit_test(any_number_of_threads_makes_the_same_bits),
        cmocka_unit_test(what_lies_between_the_tensors_stays_zero),
        cmocka_unit_test(a_step_without_targets_is_refused),
        cmocka_unit_test(an_untrained_name_that_is_no_weight_is_refused),
        cmocka_unit_test(a_device_without_kernels_is_refused),
        cmocka_unit_test(no_memory_is_a_message),
        cmocka_unit_test(rows_become_a_spec),
    };
    return ttn_test_run(tests);
}
