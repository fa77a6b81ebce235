/* Attention by random features as a kind: read from options, recorded with its projection, which is drawn before the first
 * step and every so many steps, is the same for every graph of a model and for a run that was resumed, and is left alone by
 * runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/ops.h"
#include "autograd/plan.h"
#include "autograd/renew.h"
#include "core/blas.h"
#include "core/memory.h"
#include "tests/harness/test.h"

/* ---- options ---- */

typedef struct {
    const char *name;
    const char *text;
} literal;

static const char *value_of(const void *self, const char *name)
{
    for (const literal *l = self; l->name; l++)
        if (strcmp(l->name, name) == 0) return l->text;
    const ttn_attention *a = ttn_op_attn_favor.attention;
    const ttn_option *o = ttn_option_find(a->options, a->n_options, name);
    assert_non_null(o);
    return o->fallback;
}

static ttn_scalar read_of(const void *self, const char *name)
{
    const ttn_attention *a = ttn_op_attn_favor.attention;
    ttn_error err = {0};
    ttn_scalar value;
    assert_ok(ttn_option_read(ttn_option_find(a->options, a->n_options, name), value_of(self, name), &value, &err),
              &err);
    return value;
}

static ttn_status get_bool(const void *self, const char *name, int layer, int *ret, ttn_error *err)
{
    (void)layer;
    (void)err;
    *ret = (int)read_of(self, name).integer;
    return TTN_OK;
}

static ttn_status get_integer(const void *self, const char *name, int layer, int64_t *ret, ttn_error *err)
{
    (void)layer;
    (void)err;
    *ret = read_of(self, name).integer;
    return TTN_OK;
}

static ttn_status get_text(const void *self, const char *name, int layer, const char **ret, ttn_error *err)
{
    (void)layer;
    (void)err;
    *ret = read_of(self, name).text;
    return TTN_OK;
}

static ttn_attn_favor_options attributes_of(const literal *with)
{
    const ttn_option_reader reader = {
        .self = with, .get_bool = get_bool, .get_integer = get_integer, .get_text = get_text};
    ttn_attn_favor_options a;
    ttn_error err = {0};
    assert_int_equal(ttn_op_attn_favor.attr_bytes, sizeof a);
    assert_ok(ttn_op_attn_favor.attention->attr(&reader, 0, &a, &err), &err);
    return a;
}

static void options_become_attributes_and_have_the_papers_defaults(void **state)
{
    (void)state;
    static const literal none[] = {{NULL, NULL}};
    const ttn_attn_favor_options usual = attributes_of(none);
    assert_true(usual.kernel == TTN_FAVOR_POSITIVE && usual.renormalize == TTN_FAVOR_DIVIDED);
    assert_true(usual.compat == TTN_FAVOR_OURS && usual.lengths == TTN_FAVOR_CHI);
    assert_true(usual.features == 0 && usual.redraw == 1000 && !usual.no_projection && !usual.independent);

    static const literal all[] = {
        {"favor.kernel", "softplus"}, {"favor.features", "96"},       {"favor.projection", "no"},
        {"favor.ortho", "no"},        {"favor.lengths", "sqrtd"},     {"favor.redraw", "7"},
        {"favor.renormalize", "rms"}, {"favor.compat", "lucidrains"}, {NULL, NULL}};
    const ttn_attn_favor_options other = attributes_of(all);
    assert_true(other.kernel == TTN_FAVOR_SOFTPLUS && other.renormalize == TTN_FAVOR_RMS);
    assert_true(other.compat == TTN_FAVOR_LUCIDRAINS && other.lengths == TTN_FAVOR_SQRTD);
    assert_true(other.features == 96 && other.redraw == 7 && other.no_projection && other.independent);

    /* every name of a map is the map of that name */
    static const struct {
        const char *name;
        ttn_favor_kernel kernel;
    } maps[] = {{"positive", TTN_FAVOR_POSITIVE}, {"hyperbolic", TTN_FAVOR_HYPERBOLIC},
                {"trig", TTN_FAVOR_TRIG},         {"exp", TTN_FAVOR_EXP},
                {"relu", TTN_FAVOR_RELU},         {"elu1", TTN_FAVOR_ELU1},
                {"gelu", TTN_FAVOR_GELU},         {"square", TTN_FAVOR_SQUARE},
                {"sigmoid", TTN_FAVOR_SIGMOID},   {"tanh", TTN_FAVOR_TANH},
                {"identity", TTN_FAVOR_IDENTITY}};
    for (size_t m = 0; m < sizeof maps / sizeof *maps; m++) {
        const literal one[] = {{"favor.kernel", maps[m].name}, {NULL, NULL}};
        assert_int_equal(attributes_of(one).kernel, maps[m].kernel);
    }
}

/* ---- a model of two layers ---- */

enum { C = 12, HEADS = 2, D = C / HEADS, FEATURES = 16 /* D ln D = 10.8, in steps of 16 */, ROWS = 24 };

typedef struct {
    ttn_graph *g;
    int out[2], loss;
} model;

static model record(const ttn_attn_favor_options *a, ttn_extent cap)
{
    model m = {.g = ttn_graph_create(cap)};
    int x = ttn_input(m.g, "x", ttn_rows(m.g, C));
    for (int layer = 0; layer < 2; layer++) {
        ttn_scope_begin(m.g, "layer.%d", layer);
        int w = ttn_param(m.g, "weight", ttn_matrix(C, C), (ttn_init){TTN_INIT_NORMAL, 0.3}, 0);
        x = ttn_linear(m.g, "in", x, w, TTN_NONE);
        const ttn_attn_in in = {.q = x, .k = x, .v = x, .heads = HEADS, .name = "core"};
        x = ttn_op_attn_favor.attention->build(m.g, &in, a);
        ttn_scope_end(m.g);
        m.out[layer] = x;
    }
    m.loss = ttn_mse(m.g, NULL, x, ttn_input(m.g, "target", ttn_rows(m.g, C)));
    ttn_error err = {0};
    assert_ok(ttn_graph_check(m.g, &err), &err);
    return m;
}

static ttn_weights *weights_of(const model *m)
{
    ttn_weights *w;
    ttn_error err = {0};
    assert_ok(ttn_weights_create(m->g, NULL, &w, &err), &err);
    assert_ok(ttn_weights_init(w, 5, &err), &err);
    return w;
}

static void renew(const model *m, ttn_weights *w, uint64_t seed, int64_t step)
{
    ttn_error err = {0};
    assert_ok(ttn_renew(m->g, w, seed, step, NULL, &err), &err);
}

typedef struct {
    int64_t draw;
    real W[HEADS * FEATURES * D];
} drawn;

static drawn read_layer(const ttn_weights *w, int layer)
{
    drawn d;
    char name[64];
    ttn_error err = {0};
    snprintf(name, sizeof name, "layer.%d.core.projection", layer);
    const int W = ttn_weights_find(w, name);
    assert_true(W >= 0 && ttn_weights_at(w, W)->is_state);
    assert_int_equal(ttn_weights_at(w, W)->bytes, sizeof d.W);
    assert_ok(ttn_weights_read(w, W, TTN_SLAB_VALUE, d.W, &err), &err);
    snprintf(name, sizeof name, "layer.%d.core.draw", layer);
    assert_ok(ttn_weights_read(w, ttn_weights_find(w, name), TTN_SLAB_VALUE, &d.draw, &err), &err);
    return d;
}

static int same_W(const drawn *a, const drawn *b)
{
    for (int i = 0; i < HEADS * FEATURES * D; i++)
        if (a->W[i] != b->W[i]) return 0;
    return 1;
}

static void projections_are_drawn_for_each_layer_and_again_every_so_many_steps(void **state)
{
    (void)state;
    const ttn_attn_favor_options a = {.redraw = 10};
    model m = record(&a, (ttn_extent){.rows = 480, .seqs = 2});
    ttn_weights *w = weights_of(&m);
    assert_true(read_layer(w, 0).draw == 0 && read_layer(w, 0).W[0] == 0);
    renew(&m, w, 1, 0);
    const drawn first = read_layer(w, 0);
    const drawn second = read_layer(w, 1);
    assert_int_equal(first.draw, 1);
    for (int i = 0; i < HEADS * FEATURES * D; i++) {
        assert_true(first.W[i] != 0);
        assert_true(first.W[i] != second.W[i]);
    }
    for (int i = 0; i < FEATURES * D; i++) /* two heads */
        assert_true(first.W[i] != first.W[FEATURES * D + i]);
    for (int64_t step = 1; step < 25; step++) {
        renew(&m, w, 1, step);
        const drawn now = read_layer(w, 0);
        assert_int_equal(now.draw, 1 + step / 10);
        assert_int_equal(same_W(&now, &first), step < 10);
    }
    const drawn last = read_layer(w, 0);

    /* resumed at step 24, in another graph of the model, whatever was there before */
    model other = record(&a, (ttn_extent){.rows = 960, .seqs = 4});
    ttn_weights *resumed = weights_of(&other);
    renew(&other, resumed, 1, 24);
    const drawn again = read_layer(resumed, 0);
    assert_true(again.draw == last.draw && same_W(&again, &last));
    renew(&other, resumed, 1, 3);
    const drawn back = read_layer(resumed, 0);
    assert_true(back.draw == 1 && same_W(&back, &first));

    ttn_weights *another_seed = weights_of(&other);
    renew(&other, another_seed, 2, 0);
    const drawn different = read_layer(another_seed, 0);
    assert_false(same_W(&different, &first));

    ttn_weights_destroy(w);
    ttn_weights_destroy(resumed);
    ttn_weights_destroy(another_seed);
    ttn_graph_destroy(m.g);
    ttn_graph_destroy(other.g);
}

static void without_redraw_the_first_draw_stays_and_a_foreign_one_is_never_drawn_over(void **state)
{
    (void)state;
    const ttn_attn_favor_options a = {.redraw = 0};
    model m = record(&a, (ttn_extent){.rows = 480, .seqs = 2});
    ttn_weights *w = weights_of(&m);
    renew(&m, w, 1, 0);
    const drawn first = read_layer(w, 0);
    renew(&m, w, 1, 1000000);
    const drawn later = read_layer(w, 0);
    assert_true(later.draw == 1 && same_W(&later, &first));

    ttn_error err = {0};
    drawn foreign = {.draw = -1};
    for (int i = 0; i < HEADS * FEATURES * D; i++)
        foreign.W[i] = (real)i;
    assert_ok(ttn_weights_write(w, ttn_weights_find(w, "layer.0.core.projection"), TTN_SLAB_VALUE, foreign.W, &err),
              &err);
    assert_ok(ttn_weights_write(w, ttn_weights_find(w, "layer.0.core.draw"), TTN_SLAB_VALUE, &foreign.draw, &err),
              &err);
    renew(&m, w, 1, 5);
    const drawn kept = read_layer(w, 0);
    assert_true(kept.draw == -1 && same_W(&kept, &foreign));
    ttn_weights_destroy(w);
    ttn_graph_destroy(m.g);
}

/* Training and evaluating, at several steps and seeds: only ttn_renew draws. */
static void runs_leave_the_projection_alone(void **state)
{
    (void)state;
    const ttn_attn_favor_options a = {.redraw = 1};
    model m = record(&a, (ttn_extent){.rows = 480, .seqs = 2});
    ttn_weights *w = weights_of(&m);
    renew(&m, w, 1, 0);
    const drawn before = read_layer(w, 1);
    ttn_error err = {0};
    ttn_plan *p;
    assert_ok(ttn_plan_create(m.g, &(ttn_plan_options){.loss = &m.loss, .n_loss = 1}, &p, &err), &err);
    assert_ok(ttn_plan_attach(p, w, &err), &err);
    real x[ROWS * C];
    for (int i = 0; i < ROWS * C; i++)
        x[i] = (real)((i * 37 % 64) / 32.0 - 1);
    assert_ok(ttn_plan_bind(p, "x", x, &err), &err);
    assert_ok(ttn_plan_bind(p, "target", x, &err), &err);
    static const ttn_span span[] = {{0, 11}, {12, 12}};
    double loss[4];
    for (int k = 0; k < 4; k++) {
        const ttn_feed feed = {
            .used = {.rows = ROWS, .seqs = 2}, .span = span, .seed = 1, .step = (uint64_t)k, .training = k < 2};
        assert_ok(ttn_plan_run(p, &feed, NULL, &err), &err);
        real value;
        assert_ok(ttn_plan_read(p, m.loss, &value, &err), &err);
        loss[k] = (double)value;
        const drawn after = read_layer(w, 1);
        assert_true(same_W(&before, &after));
    }
    assert_true(loss[0] == loss[1] && loss[0] == loss[3]);
    ttn_plan_destroy(p);
    ttn_weights_destroy(w);
    ttn_graph_destroy(m.g);
}

static void build_refuses_what_is_not_there_and_needs_no_projection_without_one(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 2});
    int x = ttn_input(g, "x", ttn_rows(g, C));
    const ttn_attn_favor_options plain = {.kernel = TTN_FAVOR_SIGMOID, .no_projection = 1};
    const ttn_attn_in in = {.q = x, .k = x, .v = x, .heads = HEADS};
    const int y = ttn_op_attn_favor.attention->build(g, &in, &plain);
    assert_ok(ttn_graph_check(g, &err), &err);
    assert_string_equal(ttn_name_of_value(g, y), "attn_favor");
    ttn_weights *w;
    assert_ok(ttn_weights_create(g, NULL, &w, &err), &err);
    assert_int_equal(ttn_weights_count(w), 0);
    assert_ok(ttn_renew(g, w, 1, 0, NULL, &err), &err);
    ttn_weights_destroy(w);

    const ttn_attn_in causal = {.q = x, .k = x, .v = x, .heads = HEADS, .causal = 1, .name = "second"};
    assert_int_equal(ttn_op_attn_favor.attention->build(g, &causal, &(ttn_attn_favor_options){0}), TTN_FAILED);
    assert_fails(ttn_graph_check(g, &err), TTN_EINVAL, &err, "its causal form is not there yet");
    ttn_graph_destroy(g);
}

/* Weights of a graph without the states: our mistake, said with the node's name. */
static void renewing_weights_of_another_graph_names_the_node_and_the_state(void **state)
{
    (void)state;
    model m = record(&(ttn_attn_favor_options){0}, (ttn_extent){.rows = 480, .seqs = 2});
    model without = record(&(ttn_attn_favor_options){.kernel = TTN_FAVOR_RELU, .no_projection = 1},
                           (ttn_extent){.rows = 480, .seqs = 2});
    ttn_weights *w = weights_of(&without);
    ttn_error err = {0};
    assert_fails(ttn_renew(m.g, w, 1, 0, NULL, &err), TTN_EINTERNAL, &err,
                 "layer.0.core: there is no state 'draw' of this node");
    ttn_weights_destroy(w);
    ttn_graph_destroy(m.g);
    ttn_graph_destroy(without.g);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_become_attributes_and_have_the_papers_defaults),
        cmocka_unit_test(projections_are_drawn_for_each_layer_and_again_every_so_many_steps),
        cmocka_unit_test(without_redraw_the_first_draw_stays_and_a_foreign_one_is_never_drawn_over),
        cmocka_unit_test(runs_leave_the_projection_alone),
        cmocka_unit_test(build_refuses_what_is_not_there_and_needs_no_projection_without_one),
        cmocka_unit_test(renewing_weights_of_another_graph_names_the_node_and_the_state),
    };
    return ttn_test_run(tests);
}
