/* Recording: shapes, names, and what happens after a mistake. */
#include <stdio.h>
#include <string.h>
#include "tests/harness/test.h"
#include "tests/harness/shim.h"
#include "tests/harness/toy.h"

static const ttn_init zero = {TTN_INIT_CONSTANT, 0};

static ttn_graph *small_graph(void)
{
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 480, .picks = 480});
    assert_non_null(g);
    return g;
}

/* The graph failed with a message that holds `words`; it is destroyed. */
static void expect_failure(ttn_graph *g, const char *words)
{
    ttn_error err = {0};
    assert_fails(ttn_graph_check(g, &err), TTN_EINVAL, &err, words);
    ttn_graph_destroy(g);
}

static void capacities_are_whole_tiles(void **state)
{
    (void)state;
    expect_failure(ttn_graph_create((ttn_extent){.rows = 481}), "481 rows");
    expect_failure(ttn_graph_create((ttn_extent){.rows = 480, .picks = 10}), "10 picks");
    expect_failure(ttn_graph_create((ttn_extent){.rows = -480}), "-480 rows");
    expect_failure(ttn_graph_create((ttn_extent){.seqs = -1}), "-1 sequences");
    ttn_graph *g = ttn_graph_create((ttn_extent){0});
    ttn_error err = {0};
    assert_ok(ttn_graph_check(g, &err), &err);
    ttn_graph_destroy(g);
}

static void no_graph_is_a_sentence(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_int_equal(ttn_input(NULL, "x", ttn_vector(3)), TTN_FAILED);
    assert_int_equal(ttn_graph_freeze(NULL, "*", 1), 0);
    ttn_scope_begin(NULL, "a");
    ttn_block_begin(NULL);
    assert_fails(ttn_graph_check(NULL, &err), TTN_ENOMEM, &err, "no graph");
}

static void equal_capacities_are_different_axes(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    int rows = ttn_input(g, "rows", ttn_rows(g, 4));
    int picks = ttn_input(g, "picks", ttn_picks(g, 4));
    ttn_desc a = ttn_desc_of_value(g, rows);
    ttn_desc b = ttn_desc_of_value(g, picks);
    assert_int_equal(a.dim[0], b.dim[0]);
    assert_false(ttn_desc_same(&a, &b));
    ttn_apply(g, "add", NULL, NULL, (int[]){rows, picks});
    expect_failure(g, "add");
}

static void an_axis_has_the_graphs_capacity(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    ttn_input(g, "x", ttn_desc_of(TTN_REAL, TTN_ROWS, 2, 960, 4, 0));
    expect_failure(g, "x: f");
}

static void names_are_dotted_scopes(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    int x = ttn_input(g, "x", ttn_rows(g, 4));
    ttn_scope_begin(g, "layer.%d", 3);
    ttn_scope_begin(g, "attn");
    int w = ttn_param(g, "q.weight", ttn_matrix(2, 4), zero, 0);
    int p = toy_pair_of(g, "q", x);
    ttn_scope_end(g);
    int first = toy_square_of(g, NULL, p);
    int second = toy_square_of(g, NULL, first);
    ttn_scope_end(g);
    int outside = toy_square_of(g, NULL, second);
    assert_string_equal(ttn_name_of_value(g, x), "x");
    assert_string_equal(ttn_name_of_value(g, w), "layer.3.attn.q.weight");
    assert_string_equal(ttn_name_of_value(g, p), "layer.3.attn.q.0");
    assert_string_equal(ttn_name_of_value(g, ttn_output(g, p, 1)), "layer.3.attn.q.1");
    assert_string_equal(ttn_name_of_value(g, first), "layer.3.square");
    assert_string_equal(ttn_name_of_value(g, second), "layer.3.square_2");
    assert_string_equal(ttn_name_of_value(g, outside), "square");
    assert_string_equal(ttn_name_of_value(g, ttn_detach(g, first)), "layer.3.square");
    assert_string_equal(ttn_name_of_value(g, 1000), "?");
    ttn_error err = {0};
    assert_ok(ttn_graph_check(g, &err), &err);
    ttn_graph_destroy(g);
}

static void a_name_used_twice_is_refused(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    ttn_input(g, "x", ttn_rows(g, 4));
    ttn_param(g, "x", ttn_vector(3), zero, 0);
    expect_failure(g, "x: two leaves");

    g = small_graph();
    int x = ttn_input(g, "x", ttn_rows(g, 4));
    ttn_scope_begin(g, "a");
    toy_square_of(g, "q", x);
    toy_square_of(g, "q", x);
    expect_failure(g, "a.q: two nodes");
}

static void broken_names_are_refused(void **state)
{
    (void)state;
    static const char *const broken[] = {"", ".", "a.", ".a", "a..b", "a b", "a/b", "a\n", "\xc3\xa9", "a*"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        ttn_graph *g = small_graph();
        ttn_input(g, broken[i], ttn_vector(3));
        expect_failure(g, "make a name");
        g = small_graph();
        ttn_scope_begin(g, "%s", broken[i]);
        expect_failure(g, "make a name");
    }
    ttn_graph *g = small_graph();
    ttn_scope_begin(g, "a");
    ttn_input(g, NULL, ttn_vector(3));
    expect_failure(g, "in scope 'a.': a leaf without a name");
    char long_name[TTN_MAX_NAME + 1];
    memset(long_name, 'a', TTN_MAX_NAME);
    long_name[TTN_MAX_NAME] = 0;
    g = small_graph();
    ttn_input(g, long_name, ttn_vector(3));
    expect_failure(g, "longer than");
    g = small_graph();
    ttn_scope_begin(g, "%s", long_name);
    ttn_error err = {0};
    assert_int_equal(ttn_graph_check(g, &err), TTN_EINVAL);
    ttn_graph_destroy(g);
}

static void scopes_and_blocks_are_balanced(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    ttn_scope_end(g);
    expect_failure(g, "not opened");
    g = small_graph();
    for (int i = 0; i <= TTN_MAX_SCOPES; i++)
        ttn_scope_begin(g, "a");
    expect_failure(g, "scopes are open");
    g = small_graph();
    ttn_block_begin(g);
    ttn_block_begin(g);
    expect_failure(g, "inside a block");
    g = small_graph();
    ttn_block_end(g);
    expect_failure(g, "not opened");
}

static void the_first_failure_stays(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    int x = ttn_input(g, "x", ttn_rows(g, 4));
    int bad = ttn_apply(g, "no_such_op", "first", NULL, (int[]){x});
    assert_int_equal(bad, TTN_FAILED);
    assert_int_equal(toy_square_of(g, "second", bad), TTN_FAILED);
    assert_int_equal(ttn_output(g, bad, 0), TTN_FAILED);
    assert_int_equal(ttn_detach(g, bad), TTN_FAILED);
    expect_failure(g, "first: there is no op 'no_such_op'");
}

static void inputs_must_be_values(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    toy_square_of(g, "a", 17);
    expect_failure(g, "a: square: input 0 is 17");
    g = small_graph();
    toy_square_of(g, "a", TTN_NONE);
    expect_failure(g, "input 0 cannot be left out");
    g = small_graph();
    ttn_output(g, ttn_input(g, "x", ttn_vector(2)), 0);
    expect_failure(g, "no node's value");
    g = small_graph();
    ttn_output(g, ttn_detach(g, toy_pair_of(g, "p", ttn_input(g, "x", ttn_vector(2)))), 1);
    expect_failure(g, "output 1 of 'p.0': that is detached");
    g = small_graph();
    ttn_output(g, toy_pair_of(g, "p", ttn_input(g, "x", ttn_vector(2))), 2);
    expect_failure(g, "p: pair has no output 2");
}

static void attributes_are_copied_and_required(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    int x = ttn_input(g, "x", ttn_vector(2));
    toy_failing_attr attr = {.step = 7};
    int y = toy_failing_of(g, "y", x, attr);
    attr.step = 1000;
    const toy_failing_attr *copy = g->node[g->value[y].node].sig.attr;
    assert_int_equal(copy->step, 7);
    ttn_apply_op(g, &toy_failing, "z", NULL, (int[]){x});
    expect_failure(g, "z: failing: its attributes are missing");
}

static void parameters_and_states_have_no_batch_axis(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    ttn_param(g, "w", ttn_rows(g, 4), zero, 0);
    expect_failure(g, "w");
    g = small_graph();
    ttn_param(g, "w", ttn_typed(ttn_vector(4), TTN_I64), zero, 0);
    expect_failure(g, "i64");
    g = small_graph();
    ttn_state(g, "s", ttn_rows(g, 4));
    expect_failure(g, "s");
    g = small_graph();
    ttn_input(g, "x", ttn_matrix(INT64_MAX / 4, 1000));
    expect_failure(g, "63 bits");
    g = small_graph();
    ttn_input(g, "x", ttn_matrix(-3, 1000));
    expect_failure(g, "-3");
    g = small_graph();
    ttn_input(g, "x", (ttn_desc){.ndim = -1});
    expect_failure(g, "-1 dimensions");
}

/* ---- what an op says of its outputs is looked at ---- */

static ttn_status shape_of_more_rows(ttn_sig *s, ttn_error *err)
{
    (void)err;
    s->out[0] = s->in[0];
    s->out[0].dim[0]++;
    return TTN_OK;
}

static ttn_status shape_of_too_much_aux(ttn_sig *s, ttn_error *err)
{
    (void)err;
    s->out[0] = s->in[0];
    s->n_aux = 1;
    s->aux[0] = ttn_matrix(INT64_MAX / 8, 1000);
    return TTN_OK;
}

static void outputs_and_aux_are_checked(void **state)
{
    (void)state;
    const ttn_op more = {.name = "more", .n_in = 1, .n_out = 1, .shape = shape_of_more_rows};
    ttn_graph *g = small_graph();
    ttn_apply_op(g, &more, "y", NULL, (int[]){ttn_input(g, "x", ttn_rows(g, 4))});
    expect_failure(g, "y: more: f");
    const ttn_op much = {.name = "much", .n_in = 1, .n_out = 1, .shape = shape_of_too_much_aux};
    g = small_graph();
    ttn_apply_op(g, &much, "y", NULL, (int[]){ttn_input(g, "x", ttn_rows(g, 4))});
    expect_failure(g, "y: much: its bytes do not fit");
}

static void thousands_of_nodes_are_named_in_no_time(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    int x = ttn_input(g, "x", ttn_rows(g, 4));
    enum { N = 20000 }; /* took a minute when each name was looked for among all others */
    for (int i = 0; i < N; i++)
        x = toy_square_of(g, NULL, x);
    char last[32];
    snprintf(last, sizeof last, "square_%d", N);
    assert_string_equal(ttn_name_of_value(g, x), last);
    toy_square_of(g, "square_77", x);
    expect_failure(g, "square_77: two nodes");
}

/* A number that was taken by name is passed over. */
static void automatic_names_pass_over_given_ones(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    int x = ttn_input(g, "x", ttn_rows(g, 4));
    toy_square_of(g, "square_2", x);
    toy_square_of(g, NULL, x);
    assert_string_equal(ttn_name_of_value(g, toy_square_of(g, NULL, x)), "square_3");
    ttn_graph_destroy(g);
}

/* ---- gradients ---- */

static ttn_status no_shape(ttn_sig *s, ttn_error *err)
{
    (void)err;
    s->out[0] = s->in[0];
    return TTN_OK;
}

static const ttn_op without_gradient = {.name = "opaque", .n_in = 1, .n_out = 1, .shape = no_shape};

static void a_gradient_where_the_op_has_none_is_refused(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    int w = ttn_param(g, "w", ttn_vector(3), zero, 0);
    ttn_apply_op(g, &without_gradient, "y", NULL, (int[]){toy_square_of(g, "h", w)});
    expect_failure(g, "y: opaque: input 0, 'h', leads to a parameter but cannot have a gradient; use ttn_detach");

    g = small_graph();
    w = ttn_param(g, "w", ttn_vector(3), zero, 0);
    int y = ttn_apply_op(g, &without_gradient, "y", NULL, (int[]){ttn_detach(g, toy_square_of(g, "h", w))});
    assert_true(y >= 0);
    assert_false(g->value[y].needs_grad);
    ttn_graph_destroy(g);
}

static void freezing_goes_by_pattern_and_spreads(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    int a = ttn_param(g, "layer.0.attn.q.weight", ttn_vector(3), zero, 0);
    int b = ttn_param(g, "layer.1.attn.q.weight", ttn_vector(3), zero, 0);
    int c = ttn_param(g, "layer.1.norm.gain", ttn_vector(3), zero, TTN_FROZEN);
    int ya = toy_square_of(g, NULL, a);
    int yc = toy_square_of(g, NULL, c);
    int yab = toy_maybe_of(g, NULL, ya, b);
    assert_true(g->value[ya].needs_grad && g->value[yab].needs_grad && !g->value[yc].needs_grad);
    assert_int_equal(ttn_graph_freeze(g, "layer.*.attn.*", 1), 2);
    assert_false(g->value[ya].needs_grad || g->value[yab].needs_grad);
    assert_int_equal(ttn_graph_freeze(g, "layer.1.*", 0), 2);
    assert_true(!g->value[ya].needs_grad && g->value[yab].needs_grad && g->value[yc].needs_grad);
    ttn_graph_freeze(g, "layer.7.*", 1);
    expect_failure(g, "'layer.7.*': no parameter");
}

static void unfreezing_what_cannot_be_trained_is_refused(void **state)
{
    (void)state;
    ttn_graph *g = small_graph();
    int w = ttn_param(g, "w", ttn_vector(3), zero, TTN_FROZEN);
    assert_true(ttn_apply_op(g, &without_gradient, "y", NULL, (int[]){w}) >= 0);
    ttn_graph_freeze(g, "w", 0);
    expect_failure(g, "y: opaque");
}

/* ---- memory ---- */

static int record_something(void)
{
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480});
    int x = ttn_input(g, "x", ttn_rows(g, 4));
    for (int i = 0; i < 70; i++) { /* past the first room of both arrays */
        ttn_scope_begin(g, "layer.%d", i);
        int w = ttn_param(g, "w", ttn_rows(g, 4).dim[0] ? ttn_vector(4) : ttn_vector(1), zero, 0);
        ttn_detach(g, w);
        x = toy_failing_of(g, "y", x, (toy_failing_attr){.step = -1});
        ttn_scope_end(g);
    }
    int pair = toy_pair_of(g, NULL, x);
    ttn_error err = {0};
    ttn_status status = ttn_graph_check(g, &err);
    int whole = status == TTN_OK && pair >= 0;
    int said = status == TTN_ENOMEM && strstr(err.text, g ? "out of memory" : "no graph") != NULL;
    ttn_graph_destroy(g);
    return whole ? 1 : said ? 0 : -1;
}

static void out_of_memory_is_a_sentence_wherever_it_comes(void **state)
{
    (void)state;
    int64_t nth = 0;
    int whole = 0;
    while (!whole) {
        nth++;
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, 12, 0);
        int result = record_something();
        int hit = shim_was_hit();
        shim_disarm();
        assert_int_not_equal(result, -1);
        assert_int_equal(result, !hit);
        whole = !hit;
    }
    assert_true(nth > 70);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capacities_are_whole_tiles),
        cmocka_unit_test(no_graph_is_a_sentence),
        cmocka_unit_test(equal_capacities_are_different_axes),
        cmocka_unit_test(an_axis_has_the_graphs_capacity),
        cmocka_unit_test(names_are_dotted_scopes),
        cmocka_unit_test(a_name_used_twice_is_refused),
        cmocka_unit_test(broken_names_are_refused),
        cmocka_unit_test(scopes_and_blocks_are_balanced),
        cmocka_unit_test(the_first_failure_stays),
        cmocka_unit_test(inputs_must_be_values),
        cmocka_unit_test(attributes_are_copied_and_required),
        cmocka_unit_test(parameters_and_states_have_no_batch_axis),
        cmocka_unit_test(outputs_and_aux_are_checked),
        cmocka_unit_test(thousands_of_nodes_are_named_in_no_time),
        cmocka_unit_test(automatic_names_pass_over_given_ones),
        cmocka_unit_test(a_gradient_where_the_op_has_none_is_refused),
        cmocka_unit_test(freezing_goes_by_pattern_and_spreads),
        cmocka_unit_test(unfreezing_what_cannot_be_trained_is_refused),
        cmocka_unit_test(out_of_memory_is_a_sentence_wherever_it_comes),
    };
    return ttn_test_run(tests);
}
