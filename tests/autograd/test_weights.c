/* Flat slabs: layout, initial values that depend on names only, and reading and writing. */
#include <stdlib.h>
#include <string.h>
#include "autograd/graph_impl.h"
#include "autograd/weights.h"
#include "core/memory.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "tests/harness/toy.h"

static const ttn_init normal = {TTN_INIT_NORMAL, 0.02};
static const ttn_init one = {TTN_INIT_CONSTANT, 1};

/* Used in the order b, a, c (the other way round: c, a, b); d by nobody; f frozen. */
static ttn_graph *five_parameters(int other_order)
{
    ttn_graph *g = ttn_graph_create((ttn_extent){0});
    int a = other_order ? TTN_NONE : ttn_param(g, "a", ttn_vector(3), normal, 0);
    int d = ttn_param(g, "d", ttn_vector(2), one, 0);
    int f = ttn_param(g, "f", ttn_vector(100), (ttn_init){TTN_INIT_UNIFORM, 0.5}, TTN_FROZEN);
    int c = ttn_param(g, "c", ttn_vector(5), normal, TTN_NO_DECAY);
    int b = ttn_param(g, "b", ttn_vector(20), normal, 0);
    if (other_order) a = ttn_param(g, "a", ttn_vector(3), normal, 0);
    ttn_state(g, "s", ttn_typed(ttn_vector(7), TTN_I64));
    (void)d;
    toy_square_of(g, NULL, f);
    toy_square_of(g, NULL, other_order ? c : b);
    toy_square_of(g, NULL, a);
    toy_square_of(g, NULL, other_order ? b : c);
    toy_square_of(g, NULL, b);
    return g;
}

static ttn_weights *weights_of(const ttn_graph *g)
{
    ttn_error err = {0};
    ttn_weights *w;
    assert_ok(ttn_weights_create(g, NULL, &w, &err), &err);
    return w;
}

static void the_slab_is_in_the_order_in_which_gradients_become_final(void **state)
{
    (void)state;
    static const char *const order[] = {"c", "a", "b", "d", "f", "s"};
    ttn_graph *g = five_parameters(0);
    ttn_weights *w = weights_of(g);
    ttn_graph_destroy(g); /* the weights outlive it */
    assert_int_equal(ttn_weights_count(w), 6);
    size_t end = 0;
    for (int i = 0; i < 6; i++) {
        const ttn_weight *e = ttn_weights_at(w, i);
        assert_string_equal(e->name, order[i]);
        assert_int_equal(ttn_weights_find(w, order[i]), i);
        assert_int_equal(e->is_state, i == 5);
        if (e->is_state) break;
        assert_int_equal(e->offset, end);
        assert_int_equal(e->offset % 64, 0);
        end += (e->bytes + 63) / 64 * 64;
        if (strcmp(e->name, "d") == 0) assert_int_equal(ttn_weights_slab_elements(w), end / sizeof(real));
    }
    assert_int_equal(ttn_weights_find(w, "z"), -1);
    assert_null(ttn_weights_at(w, 6));
    assert_null(ttn_weights_at(w, -1));
    assert_int_equal(ttn_weights_at(w, 0)->flags, TTN_NO_DECAY);
    ttn_weights_destroy(w);
}

/* Two parameters that one node reads for the first time stand in the order of its inputs. */
static void parameters_of_one_node_are_in_the_order_of_its_inputs(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create((ttn_extent){0});
    int b = ttn_param(g, "b", ttn_vector(3), normal, 0);
    int a = ttn_param(g, "a", ttn_vector(3), normal, 0);
    toy_blend_of(g, "y", a, b);
    ttn_weights *w = weights_of(g);
    assert_int_equal(ttn_weights_find(w, "a"), 0);
    assert_int_equal(ttn_weights_find(w, "b"), 1);
    ttn_weights_destroy(w);
    ttn_graph_destroy(g);
}

static void initial_values_depend_on_seed_and_name_only(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_graph *g[2] = {five_parameters(0), five_parameters(1)};
    ttn_weights *w[2];
    for (int i = 0; i < 2; i++) {
        w[i] = weights_of(g[i]);
        assert_ok(ttn_weights_init(w[i], 11, &err), &err);
    }
    static const char *const names[] = {"a", "b", "c", "d", "f"};
    real other[100];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int at = ttn_weights_find(w[0], names[i]);
        const void *x = ttn_weights_address(w[0], at, TTN_SLAB_VALUE);
        const void *y = ttn_weights_address(w[1], ttn_weights_find(w[1], names[i]), TTN_SLAB_VALUE);
        assert_same_bits(x, y, ttn_weights_at(w[0], at)->bytes);
    }
    int b = ttn_weights_find(w[0], "b");
    assert_ok(ttn_weights_read(w[0], b, TTN_SLAB_VALUE, other, &err), &err);
    assert_ok(ttn_weights_init(w[0], 12, &err), &err);
    assert_memory_not_equal(other, ttn_weights_address(w[0], b, TTN_SLAB_VALUE), 20 * sizeof(real));
    for (int i = 0; i < 2; i++) {
        ttn_weights_destroy(w[i]);
        ttn_graph_destroy(g[i]);
    }
}

static void rules_of_initial_values_hold(void **state)
{
    (void)state;
    const int64_t n = 200000; /* more than one piece of the fill */
    ttn_graph *g = ttn_graph_create((ttn_extent){0});
    ttn_param(g, "normal", ttn_vector(n), normal, 0);
    ttn_param(g, "uniform", ttn_vector(n), (ttn_init){TTN_INIT_UNIFORM, 0.5}, 0);
    ttn_param(g, "constant", ttn_vector(n), (ttn_init){TTN_INIT_CONSTANT, 3}, 0);
    ttn_weights *w = weights_of(g);
    ttn_error err = {0};
    assert_ok(ttn_weights_init(w, ttn_test_seed(), &err), &err);
    static const double deviation[] = {0.02, 0.28867513459481287 /* 0.5 / sqrt(3) */, 0};
    static const double mean[] = {0, 0, 3};
    static const char *const names[] = {"normal", "uniform", "constant"};
    for (int i = 0; i < 3; i++) {
        const real *x = ttn_weights_address(w, ttn_weights_find(w, names[i]), TTN_SLAB_VALUE);
        double sum = 0;
        double squares = 0;
        for (int64_t e = 0; e < n; e++) {
            sum += (double)x[e];
            squares += ((double)x[e] - mean[i]) * ((double)x[e] - mean[i]);
            if (i == 1) assert_true(x[e] > (real)-0.5 && x[e] < (real)0.5);
        }
        /* five standard errors of a mean and of a deviation over n numbers */
        assert_at_most(fabs(sum / (double)n - mean[i]), 5 * deviation[i] / sqrt((double)n), names[i]);
        assert_at_most(fabs(sqrt(squares / (double)n) - deviation[i]), 5 * deviation[i] / sqrt(2 * (double)n),
                       names[i]);
    }
    /* no piece repeats another: the first numbers of two pieces differ */
    const real *x = ttn_weights_address(w, ttn_weights_find(w, "normal"), TTN_SLAB_VALUE);
    assert_memory_not_equal(x, x + (1 << 14), 16 * sizeof *x);
    ttn_weights_destroy(w);
    ttn_graph_destroy(g);
}

static void slabs_come_when_they_are_required(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_graph *g = five_parameters(0);
    ttn_weights *w = weights_of(g);
    int a = ttn_weights_find(w, "a");
    int f = ttn_weights_find(w, "f");
    int s = ttn_weights_find(w, "s");
    real data[3] = {1, 2, 3};
    assert_non_null(ttn_weights_slab(w, TTN_SLAB_VALUE));
    assert_null(ttn_weights_slab(w, TTN_SLAB_GRADIENT));
    assert_fails(ttn_weights_read(w, a, TTN_SLAB_GRADIENT, data, &err), TTN_EINVAL, &err, "a has no values in slab 1");
    err = (ttn_error){0};
    assert_ok(ttn_weights_require(w, TTN_SLAB_GRADIENT, &err), &err);
    assert_null(ttn_weights_slab(w, TTN_SLAB_M));
    assert_ok(ttn_weights_write(w, a, TTN_SLAB_GRADIENT, data, &err), &err);
    assert_ok(ttn_weights_require(w, TTN_SLAB_V, &err), &err);
    real read[3] = {0};
    assert_ok(ttn_weights_read(w, a, TTN_SLAB_GRADIENT, read, &err), &err); /* still there */
    assert_memory_equal(read, data, sizeof data);
    assert_ok(ttn_weights_read(w, a, TTN_SLAB_V, read, &err), &err);
    assert_true(read[0] == 0 && read[1] == 0 && read[2] == 0);
    assert_null(ttn_weights_address(w, f, TTN_SLAB_GRADIENT)); /* frozen */
    assert_non_null(ttn_weights_address(w, f, TTN_SLAB_VALUE));
    assert_null(ttn_weights_address(w, s, TTN_SLAB_M));
    int64_t states[7] = {0, 1, 2, 3, 4, 5, INT64_MAX};
    int64_t states_read[7];
    assert_ok(ttn_weights_write(w, s, TTN_SLAB_VALUE, states, &err), &err);
    assert_ok(ttn_weights_read(w, s, TTN_SLAB_VALUE, states_read, &err), &err);
    assert_memory_equal(states, states_read, sizeof states);
    assert_ok(ttn_weights_init(w, 1, &err), &err); /* states become 0 */
    assert_ok(ttn_weights_read(w, s, TTN_SLAB_VALUE, states_read, &err), &err);
    for (int i = 0; i < 7; i++)
        assert_int_equal(states_read[i], 0);
    assert_int_equal(ttn_weights_find(w, NULL), -1);
    assert_fails(ttn_weights_write(w, 6, TTN_SLAB_VALUE, data, &err), TTN_EINVAL, &err, "weight 6: there are 6");
    ttn_weights_destroy(w);
    ttn_graph_destroy(g);
}

static void a_failed_graph_has_no_weights(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create((ttn_extent){0});
    ttn_param(g, "a", ttn_vector(1), one, 0);
    ttn_param(g, "a", ttn_vector(1), one, 0);
    ttn_weights *w;
    ttn_error err = {0};
    assert_fails(ttn_weights_create(g, NULL, &w, &err), TTN_EINVAL, &err, "a: two leaves");
    assert_null(w);
    ttn_weights_destroy(NULL);
    ttn_graph_destroy(g);
}

static void out_of_memory_is_a_status_wherever_it_comes(void **state)
{
    (void)state;
    ttn_graph *g = five_parameters(0);
    for (int64_t nth = 1;; nth++) {
        ttn_weights *w = NULL;
        ttn_error err = {0};
        shim_arm(SHIM_ALLOC | SHIM_MAP, nth, SHIM_FAIL, 12, 0);
        ttn_status status = ttn_weights_create(g, NULL, &w, &err);
        if (status == TTN_OK) status = ttn_weights_init(w, 1, &err);
        if (status == TTN_OK) status = ttn_weights_require(w, TTN_SLAB_V, &err);
        int hit = shim_was_hit();
        shim_disarm();
        ttn_weights_destroy(w);
        if (!hit) {
            assert_int_equal(status, TTN_OK);
            assert_true(nth > 15);
            break;
        }
        if (status == TTN_OK) continue; /* a hint (huge pages) that may fail */
        assert_int_equal(status, TTN_ENOMEM);
        assert_true(err.text[0] != 0);
    }
    ttn_graph_destroy(g);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slab_is_in_the_order_in_which_gradients_become_final),
        cmocka_unit_test(parameters_of_one_node_are_in_the_order_of_its_inputs),
        cmocka_unit_test(initial_values_depend_on_seed_and_name_only),
        cmocka_unit_test(rules_of_initial_values_hold),
        cmocka_unit_test(slabs_come_when_they_are_required),
        cmocka_unit_test(a_failed_graph_has_no_weights),
        cmocka_unit_test(out_of_memory_is_a_status_wherever_it_comes),
    };
    return ttn_test_run(tests);
}
