/* Does the driver notice? Ops that are wrong on purpose, one fault each: the property that is there for it must fail, with
 * a sentence that says what is wrong. Most are a real op with one kernel wrapped. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "autograd/gradcheck.h"
#include "autograd/kernel.h"
#include "core/blas.h"
#include "tests/harness/test.h"

/* ---- running one ---- */

typedef struct {
    const ttn_op *op;
    const char *property; /* NULL: the op as a whole */
} wanted;

static ttn_status check(const wanted *w, ttn_error *err)
{
    const ttn_gradcheck_options o = {.seed = ttn_test_seed()};
    if (!w->property) return ttn_gradcheck_op(w->op, &o, NULL, err);
    if (strcmp(w->property, "idle reads") == 0) return ttn_gradcheck_idle_reads(w->op, &o, err);
    if (strcmp(w->property, "descriptor") == 0) return ttn_gradcheck_descriptor(w->op, err);
    const ttn_property *p = ttn_property_find(w->property);
    assert_non_null(p);
    for (int k = 0; k < w->op->n_cases; k++) {
        if (!p->applies(w->op, &w->op->cases[k])) continue;
        ttn_status status = p->check(w->op, &w->op->cases[k], &o, err);
        if (status != TTN_OK) return status;
    }
    return TTN_OK;
}

/* In a child: a wrong op may crash. Exit code 0: all is well; 3: a fault, its sentence on stdout. */
static int check_in_child(void *arg)
{
    ttn_error err = {0};
    assert_ok(ttn_blas_start(8, NULL, &err), &err);
    ttn_status status = check(arg, &err);
    if (status == TTN_OK) return 0;
    printf("%s\n", err.text);
    fflush(stdout);
    return 3;
}

static void assert_caught(const ttn_op *op, const char *property, const char *words)
{
    wanted w = {.op = op, .property = property};
    const ttn_child child = run_in_child((ttn_child_limit){.seconds = 60}, check_in_child, &w);
    if (!child.exited || child.exit_code != 3)
        fail_msg("'%s' does not see the fault (exit code %d, signal %d): %s", property, child.exit_code, child.signal,
                 child.output);
    assert_contains(child.output, words);
}

static void assert_sound(const ttn_op *op)
{
    wanted w = {.op = op};
    const ttn_child child = run_in_child((ttn_child_limit){.seconds = 60}, check_in_child, &w);
    if (!child.exited || child.exit_code != 0) fail_msg("a sound op fails: %s", child.output);
}

/* ---- gradients ---- */

static ttn_status flipped_backward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_op_linear.cpu.backward(c, err);
    real *dx = c->din[0];
    if (!dx) return status;
    for (int64_t e = 0; e < ttn_used_numel(c->feed, &c->sig->in[0]); e++)
        dx[e] = -dx[e];
    return status;
}

static void a_flipped_sign(void **state)
{
    (void)state;
    ttn_op op = ttn_op_linear;
    op.cpu.backward = flipped_backward;
    assert_caught(&op, "gradients", "linear: din 0 is not the gradient");
}

/* Rows of the second tile take their gradient from the row before. */
static ttn_status seam_backward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_op_linear.cpu.backward(c, err);
    real *dx = c->din[0];
    if (!dx || c->sig->in[0].axis != TTN_ROWS) return status;
    const int64_t width = c->sig->in[0].dim[1];
    for (int64_t t = c->feed->used.rows - 1; t >= 480; t--)
        memcpy(dx + t * width, dx + (t - 1) * width, (size_t)width * sizeof *dx);
    return status;
}

static void a_wrong_tile_seam(void **state)
{
    (void)state;
    ttn_op op = ttn_op_linear;
    op.cpu.backward = seam_backward;
    assert_caught(&op, "gradients", "(row 48");
}

static void a_target_that_claims_to_be_differentiable(void **state)
{
    (void)state;
    ttn_op op = ttn_op_mse;
    op.differentiable |= TTN_BIT(1);
    assert_caught(&op, "every subset of gradients", "of din 1");
    assert_caught(&op, "every subset of gradients", "not written");
}

/* The bias' gradient is only written beside the gain's. */
static ttn_status frozen_gain_backward(const ttn_call *c, ttn_error *err)
{
    ttn_call changed = *c;
    if (!c->din[1]) changed.din[2] = NULL;
    return ttn_op_layernorm.cpu.backward(&changed, err);
}

static void layernorm_with_a_frozen_gain(void **state)
{
    (void)state;
    ttn_op op = ttn_op_layernorm;
    op.cpu.backward = frozen_gain_backward;
    assert_caught(&op, "every subset of gradients", "of din 2");
}

static ttn_status unasked_backward(const ttn_call *c, ttn_error *err)
{
    static real dgain[64];
    ttn_call changed = *c;
    if (!c->din[1]) changed.din[1] = dgain;
    ttn_status status = ttn_op_layernorm.cpu.backward(&changed, err);
    return status;
}

/* Computes a gradient that nobody wants, so it needs what only that gradient needs. */
static void a_read_for_a_gradient_not_asked_for(void **state)
{
    (void)state;
    ttn_op op = ttn_op_layernorm;
    op.cpu.backward = unasked_backward;
    wanted w = {.op = &op, .property = "every subset of gradients"};
    const ttn_child child = run_in_child((ttn_child_limit){.seconds = 60}, check_in_child, &w);
    assert_false(child.exited && child.exit_code == 0);
}

static ttn_status overwriting_backward(const ttn_call *c, ttn_error *err)
{
    ttn_call changed = *c;
    changed.acc[0] = 0;
    return ttn_op_scale.cpu.backward(&changed, err);
}

static void an_overwrite_where_it_should_accumulate(void **state)
{
    (void)state;
    ttn_op op = ttn_op_scale;
    op.cpu.backward = overwriting_backward;
    assert_caught(&op, "accumulation", "din 0");
}

/* acc times what is there: NaN where acc is 0 and nothing was written yet. */
static ttn_status multiplying_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *dy = c->dout[0];
    real *dx = c->din[0];
    if (!dx) return TTN_OK;
    for (int64_t e = 0; e < ttn_desc_numel(&c->sig->in[0]); e++)
        dx[e] = c->acc[0] * dx[e] + dy[e];
    return TTN_OK;
}

static void what_stands_there_multiplied_by_0(void **state)
{
    (void)state;
    ttn_op op = ttn_op_scale;
    op.cpu.backward = multiplying_backward;
    assert_caught(&op, "every subset of gradients", "made from what is not defined");
}

/* ---- reads ---- */

static void an_undeclared_read(void **state)
{
    (void)state;
    ttn_op op = ttn_op_mse;
    op.reads[0].in = TTN_BIT(0); /* and not the target */
    wanted w = {.op = &op, .property = "every subset of gradients"};
    const ttn_child child = run_in_child((ttn_child_limit){.seconds = 60}, check_in_child, &w);
    assert_true(ttn_test_sanitized() ? child.exit_code != 0 : !child.exited);
}

static void an_over_declared_read(void **state)
{
    (void)state;
    ttn_op op = ttn_op_add;
    op.reads[1].in = TTN_BIT(0);
    assert_caught(&op, "idle reads", "add: reads[1] lists in 0, but din 1 does not change");
    op = ttn_op_layernorm;
    op.reads[1].in |= TTN_BIT(1);
    assert_caught(&op, "idle reads", "layernorm: reads[1] lists in 1");
    op = ttn_op_layernorm;
    op.reads[2].aux = TTN_BIT(1);
    assert_caught(&op, "idle reads", "layernorm: reads[2] lists aux 1");
    op = ttn_op_gelu;
    op.reads[0].out = TTN_BIT(0);
    assert_caught(&op, "idle reads", "gelu: reads[0] lists out 0");
}

static void an_over_declared_read_of_integers(void **state)
{
    (void)state;
    ttn_op op = ttn_op_select;
    op.reads[0].in |= TTN_BIT(0);
    assert_caught(&op, "idle reads", "select: reads[0] lists in 0");
}

/* ---- the same bits ---- */

static ttn_status threaded_bias_backward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_op_linear.cpu.backward(c, err);
    real *db = c->din[2];
    if (!db) return status;
    const int64_t width = c->sig->out[0].dim[1];
    const int64_t used = ttn_used(c->feed, &c->sig->out[0]);
    const real *dy = c->dout[0];
    for (int64_t o = 0; o < width; o++) {
        real sum = 0;
        for (int part = 0; part < c->on->n_thread; part++) {
            real mine = 0;
            for (int64_t t = used * part / c->on->n_thread; t < used * (part + 1) / c->on->n_thread; t++)
                mine += dy[t * width + o];
            sum += mine;
        }
        db[o] = ttn_accumulate(c->acc[2], db[o], sum);
    }
    return status;
}

static void a_bias_gradient_that_depends_on_the_number_of_threads(void **state)
{
    (void)state;
    ttn_op op = ttn_op_linear;
    op.cpu.backward = threaded_bias_backward;
    assert_caught(&op, "threads", "of din 2 is not the same with 1 thread and with");
}

static ttn_status forgetful_forward(const ttn_call *c, ttn_error *err)
{
    static int runs;
    ttn_status status = ttn_op_mse.cpu.forward(c, err);
    c->stat[1] += runs++;
    return status;
}

static void a_statistic_that_differs_on_the_second_run(void **state)
{
    (void)state;
    ttn_op op = ttn_op_mse;
    op.cpu.forward = forgetful_forward;
    assert_caught(&op, "a second run", "element 1 of stat 0 is not the same");
}

static ttn_status mean_forward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_op_mse.cpu.forward(c, err);
    if (c->sig->in[0].ndim > 0) *(real *)c->out[0] /= (real)c->sig->in[0].dim[0];
    return status;
}

static void a_result_that_depends_on_the_capacity(void **state)
{
    (void)state;
    ttn_op op = ttn_op_mse;
    op.cpu.forward = mean_forward;
    assert_caught(&op, "a larger capacity", "element 0 of out 0 is not the same when the capacity is larger");
}

/* Each row adds the one before, across the borders of sequences. */
static ttn_status shifting_forward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_op_scale.cpu.forward(c, err);
    const int64_t width = ttn_row_width(&c->sig->in[0]);
    const real *x = c->in[0];
    real *y = c->out[0];
    for (int64_t e = width; e < ttn_used_numel(c->feed, &c->sig->in[0]); e++)
        y[e] += x[e - width];
    return status;
}

static void a_sequence_that_sees_the_row_in_front_of_it(void **state)
{
    (void)state;
    ttn_op op = ttn_op_scale;
    op.cpu.forward = shifting_forward;
    assert_caught(&op, "rows of no sequence", "element 36 of out 0"); /* row 12, the second sequence's first */
}

/* ---- what kernels write ---- */

static ttn_status unfinished_forward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_op_add.cpu.forward(c, err);
    const int64_t at = ttn_used_numel(c->feed, &c->sig->out[0]);
    if (at < ttn_desc_numel(&c->sig->out[0])) ((real *)c->out[0])[at] = 1;
    return status;
}

static void a_row_past_used_that_is_not_zero(void **state)
{
    (void)state;
    ttn_op op = ttn_op_add;
    op.cpu.forward = unfinished_forward;
    assert_caught(&op, "threads", "row 7 of out 0 is past the 7 in use and holds 1, not 0");
}

static ttn_status unfinished_backward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_op_add.cpu.backward(c, err);
    const int64_t at = ttn_desc_numel(&c->sig->in[0]) - 1;
    if (c->din[1] && ttn_used_numel(c->feed, &c->sig->out[0]) <= at) ((real *)c->din[1])[at] = NAN;
    return status;
}

static void a_gradient_past_used_that_is_not_zero(void **state)
{
    (void)state;
    ttn_op op = ttn_op_add;
    op.cpu.backward = unfinished_backward;
    assert_caught(&op, "every subset of gradients", "row 479 of din 1 is past the 7 in use and holds nan, not 0");
}

static ttn_status overrunning_forward(const ttn_call *c, ttn_error *err)
{
    ((real *)c->out[0])[ttn_desc_numel(&c->sig->out[0])] = 1;
    return ttn_op_scale.cpu.forward(c, err);
}

static void a_write_outside_its_buffer(void **state)
{
    (void)state;
    ttn_op op = ttn_op_scale;
    op.cpu.forward = overrunning_forward;
    assert_caught(&op, "threads", "forward writes behind out 0, outside the buffer");
}

static ttn_status greedy_backward(const ttn_call *c, ttn_error *err)
{
    ((char *)c->work)[-1] = 1;
    return ttn_op_layernorm.cpu.backward(c, err);
}

static void a_write_in_front_of_its_scratch(void **state)
{
    (void)state;
    ttn_op op = ttn_op_layernorm;
    op.cpu.backward = greedy_backward;
    assert_caught(&op, "threads", "backward writes in front of work 0, outside the buffer");
}

static ttn_status lazy_forward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_op_layernorm.cpu.forward(c, err);
    if (c->feed->used.rows > 0) ((real *)c->aux[1])[c->feed->used.rows - 1] = NAN;
    return status;
}

static void an_aux_that_is_not_written(void **state)
{
    (void)state;
    ttn_op op = ttn_op_layernorm;
    op.cpu.forward = lazy_forward;
    assert_caught(&op, "threads", "element 5 of aux 1 (row 5 of 6 in use) is nan");
}

static ttn_status scribbling_forward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_op_scale.cpu.forward(c, err);
    if (c->feed->used.rows > 0) ((real *)(uintptr_t)c->in[0])[0] = 0;
    return status;
}

static void a_write_to_an_input(void **state)
{
    (void)state;
    ttn_op op = ttn_op_scale;
    op.cpu.forward = scribbling_forward;
    assert_caught(&op, "threads", "forward writes to in 0, which it may only read");
}

/* ---- shared buffers ---- */

static ttn_status starting_from_zero_forward(const ttn_call *c, ttn_error *err)
{
    memset(c->out[0], 0, ttn_desc_bytes(&c->sig->out[0]));
    return ttn_op_add.cpu.forward(c, err);
}

static void an_output_cleared_before_the_input_under_it_is_read(void **state)
{
    (void)state;
    ttn_op op = ttn_op_add;
    op.cpu.forward = starting_from_zero_forward;
    assert_caught(&op, "shared buffers", "out 0 is not the same when out 0 is written over in 0");
}

/* y = 2a + b: where da is written over dy, db reads what is no longer dy. */
static ttn_status doubling_forward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_op_add.cpu.forward(c, err);
    for (int64_t e = 0; e < ttn_used_numel(c->feed, &c->sig->in[0]); e++)
        ((real *)c->out[0])[e] = 2 * ((const real *)c->in[0])[e] + ((const real *)c->in[1])[e];
    return status;
}

static ttn_status doubling_backward(const ttn_call *c, ttn_error *err)
{
    const int64_t n = ttn_used_numel(c->feed, &c->sig->in[0]);
    (void)err;
    for (int i = 0; i < 2; i++) {
        const real factor = i == 0 ? 2 : 1;
        real *dx = c->din[i];
        if (!dx) continue;
        for (int64_t e = 0; e < n; e++)
            dx[e] = ttn_accumulate(c->acc[i], dx[e], factor * ((const real *)c->dout[0])[e]);
        if (c->acc[i] == 0) ttn_zero_rest(c, &c->sig->in[i], dx);
    }
    return TTN_OK;
}

static void a_gradient_written_over_one_that_is_read_later(void **state)
{
    (void)state;
    ttn_op op = ttn_op_add;
    op.takes[0] = 0;
    op.cpu = (ttn_kernels){.forward = doubling_forward, .backward = doubling_backward};
    assert_caught(&op, "shared buffers", "of din 1 is not the same");
}

static ttn_status backward_in_reverse(const ttn_call *c, ttn_error *err)
{
    ttn_call one = *c;
    one.din[0] = NULL;
    ttn_status status = ttn_op_add.cpu.backward(&one, err);
    one = *c;
    one.din[1] = NULL;
    return status == TTN_OK ? ttn_op_add.cpu.backward(&one, err) : status;
}

static void gradients_not_in_the_order_of_the_inputs(void **state)
{
    (void)state;
    ttn_op op = ttn_op_add;
    op.cpu.backward = backward_in_reverse;
    assert_caught(&op, "one value in two inputs", "in one buffer for a value given twice");
}

/* ---- toys of their own: square (a spare aux), twins (two outputs) ---- */

static ttn_status square_shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_real(s, 0, "square", "x", err);
    s->n_out = 1;
    s->out[0] = s->in[0];
    s->n_aux = 1;
    s->aux[0] = s->in[0];
    return status;
}

static ttn_cost little(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)s;
    (void)pass;
    (void)aux_kept;
    return (ttn_cost){.done = 1, .useful = 1, .bytes = 1};
}

/* y = x^2; aux 0: 2 x, spare */
static ttn_status square_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *x = c->in[0];
    for (int64_t e = 0; e < ttn_desc_numel(&c->sig->in[0]); e++) {
        ((real *)c->out[0])[e] = x[e] * x[e];
        if (c->aux[0]) ((real *)c->aux[0])[e] = 2 * x[e];
    }
    return TTN_OK;
}

static ttn_status square_backward_from(const ttn_call *c, real factor)
{
    if (!c->din[0]) return TTN_OK;
    const real *x = c->in[0];
    real *dx = c->din[0];
    for (int64_t e = 0; e < ttn_desc_numel(&c->sig->in[0]); e++) {
        const real slope = c->aux[0] ? ((const real *)c->aux[0])[e] : factor * x[e];
        dx[e] = ttn_accumulate(c->acc[0], dx[e], slope * ((const real *)c->dout[0])[e]);
    }
    return TTN_OK;
}

static ttn_status square_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    return square_backward_from(c, 2);
}

static ttn_status wrong_square_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    return square_backward_from(c, (real)2.0001);
}

static const ttn_case unary_cases[] = {
    {.about = "some rows", .used = {.rows = 7}, .in = {TTN_ROWS_OF(5)}},
    {.about = "integers",
     .used = {.rows = 7},
     .in = {{.type = TTN_U8, .axis = TTN_ROWS, .ndim = 2, .dim = {0, 5}}},
     .refused = "x is u8"},
};

static const ttn_op square = {
    .name = "square",
    .n_in = 1,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .reads = {{.in = TTN_BIT(0), .aux = TTN_BIT(0)}},
    .spare = TTN_BIT(0),
    .shape = square_shape,
    .cost = little,
    .cpu = {.forward = square_forward, .backward = square_backward},
    .cases = unary_cases,
    .n_cases = 2,
};

static void a_spare_aux_that_is_made_again_is_sound(void **state)
{
    (void)state;
    assert_sound(&square);
}

static void a_spare_aux_that_is_made_again_otherwise(void **state)
{
    (void)state;
    ttn_op op = square;
    op.cpu.backward = wrong_square_backward;
    assert_caught(&op, "spare aux left out", "of din 0 is not the same when aux 0x1 is kept and when it is left out");
}

/* y0 = x, y1 = 2 x */
static ttn_status twins_shape(ttn_sig *s, ttn_error *err)
{
    ttn_status status = ttn_want_real(s, 0, "twins", "x", err);
    s->n_out = 2;
    s->out[0] = s->in[0];
    s->out[1] = s->in[0];
    return status;
}

static ttn_status twins_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    for (int64_t e = 0; e < ttn_desc_numel(&c->sig->in[0]); e++) {
        ((real *)c->out[0])[e] = ((const real *)c->in[0])[e];
        ((real *)c->out[1])[e] = 2 * ((const real *)c->in[0])[e];
    }
    return TTN_OK;
}

static ttn_status twins_backward_from(const ttn_call *c, const real *d0, const real *d1)
{
    real *dx = c->din[0];
    if (!dx) return TTN_OK;
    for (int64_t e = 0; e < ttn_desc_numel(&c->sig->in[0]); e++)
        dx[e] = ttn_accumulate(c->acc[0], dx[e], (d0 ? d0[e] : 0) + 2 * (d1 ? d1[e] : 0));
    return TTN_OK;
}

static ttn_status twins_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    return twins_backward_from(c, c->dout[0], c->dout[1]);
}

/* Takes the other output's gradient for the one that is not there. */
static ttn_status wrong_twins_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    return twins_backward_from(c, c->dout[0], c->dout[1] ? c->dout[1] : c->dout[0]);
}

static const ttn_op twins = {
    .name = "twins",
    .n_in = 1,
    .n_out = 2,
    .differentiable = TTN_BIT(0),
    .shape = twins_shape,
    .cost = little,
    .cpu = {.forward = twins_forward, .backward = twins_backward},
    .cases = unary_cases,
    .n_cases = 2,
};

static void two_outputs_are_sound(void **state)
{
    (void)state;
    assert_sound(&twins);
}

static void an_output_without_a_loss_taken_for_another(void **state)
{
    (void)state;
    ttn_op op = twins;
    op.cpu.backward = wrong_twins_backward;
    assert_caught(&op, "outputs without a loss", "with a dout of zeros and with none");
}

/* ---- descriptors ---- */

static ttn_status careless_shape(ttn_sig *s, ttn_error *err)
{
    (void)err;
    s->n_out = 1;
    s->out[0] = s->in[0];
    return TTN_OK;
}

static ttn_status nameless_shape(ttn_sig *s, ttn_error *err)
{
    ttn_error why = {0};
    ttn_status status = ttn_op_add.shape(s, &why);
    return status == TTN_OK ? TTN_OK : TTN_FAIL(err, status, "%s", why.text + strlen("add: "));
}

static void a_shape_that_should_be_refused(void **state)
{
    (void)state;
    ttn_op op = ttn_op_add;
    op.shape = careless_shape;
    assert_caught(&op, "refused shapes", "add: shape accepts this; expected a refusal with 'a is");
    op.shape = nameless_shape;
    assert_caught(&op, "refused shapes", "does not begin with the op's name");
    op = ttn_op_add;
    const ttn_case other[] = {{.about = "widths that differ",
                               .used = {.rows = 1},
                               .in = {TTN_ROWS_OF(5), TTN_ROWS_OF(6)},
                               .refused = "another sentence"}};
    op.cases = other;
    op.n_cases = 1;
    assert_caught(&op, "refused shapes", "expected 'another sentence' in it");
}

static ttn_status trusting_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    memset(c->out[0], 0, ttn_desc_bytes(&c->sig->out[0]));
    return TTN_OK;
}

static void data_that_should_be_refused(void **state)
{
    (void)state;
    ttn_op op = ttn_op_select;
    op.cpu.forward = trusting_forward;
    assert_caught(&op, "refused data", "select: forward accepts this; expected a refusal with 'index 0 is 10");
}

static ttn_cost boastful_cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    ttn_cost c = ttn_op_add.cost(s, pass, aux_kept);
    c.useful = c.done + 1;
    return c;
}

static void more_useful_work_than_work(void **state)
{
    (void)state;
    ttn_op op = ttn_op_add;
    op.cost = boastful_cost;
    assert_caught(&op, "cost", "useful flops of");
}

static void a_descriptor_that_contradicts_itself(void **state)
{
    (void)state;
    ttn_op op = ttn_op_mse;
    op.reads[1].in = TTN_BIT(0);
    assert_caught(&op, "descriptor", "mse: reads[1] of an input without a gradient");
    op = ttn_op_mse;
    op.reads[0].in |= TTN_BIT(2);
    assert_caught(&op, "descriptor", "mse: reads[0] names a value that does not exist");
    op = ttn_op_add;
    op.takes[0] = TTN_SHARES(2);
    assert_caught(&op, "descriptor", "add: takes[0] is 3");
    op = ttn_op_add;
    op.optional = TTN_BIT(1);
    assert_caught(&op, "descriptor", "add: no case leaves out input 1, which is optional");
    op = ttn_op_mse;
    const ttn_stat count = {.name = "count", .fold = TTN_SUM};
    const ttn_stat most = {.name = "count", .fold = TTN_MAX};
    const ttn_stat stats[][2] = {
        {{.name = "sum", .fold = TTN_SUM, .over = "counts", .mean = "mean"}, count},
        {{.name = "sum", .fold = TTN_SUM, .over = "count", .mean = "mean"}, most},
        {{.name = "sum", .fold = TTN_MAX, .over = "count", .mean = "mean"}, count},
        {{.name = "sum", .fold = TTN_SUM, .over = "count"}, count},
        {{.name = "sum", .fold = TTN_SUM, .mean = "mean"}, count},
    };
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
        op.stats = stats[i];
        assert_caught(&op, "descriptor", "mse: statistic 'sum' is told as a mean");
    }
    op = ttn_op_add;
    op.n_cases = 6;
    assert_caught(&op, "descriptor", "add: 6 good cases and 0 refused ones");
    op = ttn_op_linear;
    op.takes[0] = TTN_SHARES(0);
    assert_caught(&op, "shape rule", "linear: takes: out 0 has not the shape of in 0");
    op = ttn_op_layernorm;
    op.reads[0].aux |= TTN_BIT(2);
    assert_caught(&op, "shape rule", "layernorm: reads[0] lists more than 2 aux");
}

/* ---- two precisions ---- */

static void a_value_off_by_more_than_its_bound(void **state)
{
    (void)state;
    double one[3] = {1, -3, 5};
    double two[3] = {1, -3 + 6e-5, 5}; /* scale 1 + 5 */
    ttn_gradcheck_values a = {.n_part = 1, .part = {{"din 0", 0, 3}}, .n = 3, .value = one};
    ttn_gradcheck_values b = {.n_part = 1, .part = {{"din 0", 0, 3}}, .n = 3, .value = two};
    double worst = 0;
    ttn_error err = {0};
    assert_ok(ttn_gradcheck_compare(&a, &b, 1.1e-5, &worst, &err), &err);
    assert_true(worst > 0.9e-5 && worst < 1.1e-5);
    assert_fails(ttn_gradcheck_compare(&a, &b, 0.9e-5, &worst, &err), TTN_EINTERNAL, &err, "element 1 of din 0 is -3");
    two[1] = NAN;
    err = (ttn_error){0};
    assert_fails(ttn_gradcheck_compare(&a, &b, 1, &worst, &err), TTN_EINTERNAL, &err, "element 1 of din 0");
    b.n = 2;
    err = (ttn_error){0};
    assert_fails(ttn_gradcheck_compare(&a, &b, 1, &worst, &err), TTN_EINTERNAL, &err,
                 "3 values in 1 parts, and 2 in 1");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest in_double[] = {
        cmocka_unit_test(a_flipped_sign),
        cmocka_unit_test(a_wrong_tile_seam),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_target_that_claims_to_be_differentiable),
        cmocka_unit_test(layernorm_with_a_frozen_gain),
        cmocka_unit_test(a_read_for_a_gradient_not_asked_for),
        cmocka_unit_test(an_overwrite_where_it_should_accumulate),
        cmocka_unit_test(what_stands_there_multiplied_by_0),
        cmocka_unit_test(an_undeclared_read),
        cmocka_unit_test(an_over_declared_read),
        cmocka_unit_test(an_over_declared_read_of_integers),
        cmocka_unit_test(a_bias_gradient_that_depends_on_the_number_of_threads),
        cmocka_unit_test(a_statistic_that_differs_on_the_second_run),
        cmocka_unit_test(a_result_that_depends_on_the_capacity),
        cmocka_unit_test(a_sequence_that_sees_the_row_in_front_of_it),
        cmocka_unit_test(a_row_past_used_that_is_not_zero),
        cmocka_unit_test(a_gradient_past_used_that_is_not_zero),
        cmocka_unit_test(a_write_outside_its_buffer),
        cmocka_unit_test(a_write_in_front_of_its_scratch),
        cmocka_unit_test(an_aux_that_is_not_written),
        cmocka_unit_test(a_write_to_an_input),
        cmocka_unit_test(an_output_cleared_before_the_input_under_it_is_read),
        cmocka_unit_test(a_gradient_written_over_one_that_is_read_later),
        cmocka_unit_test(gradients_not_in_the_order_of_the_inputs),
        cmocka_unit_test(a_spare_aux_that_is_made_again_is_sound),
        cmocka_unit_test(a_spare_aux_that_is_made_again_otherwise),
        cmocka_unit_test(two_outputs_are_sound),
        cmocka_unit_test(an_output_without_a_loss_taken_for_another),
        cmocka_unit_test(a_shape_that_should_be_refused),
        cmocka_unit_test(data_that_should_be_refused),
        cmocka_unit_test(more_useful_work_than_work),
        cmocka_unit_test(a_descriptor_that_contradicts_itself),
        cmocka_unit_test(a_value_off_by_more_than_its_bound),
    };
    /* central differences are taken in double only */
    enum { N = sizeof tests / sizeof *tests, N_DOUBLE = sizeof in_double / sizeof *in_double };
    struct CMUnitTest all[N + N_DOUBLE];
    memcpy(all, tests, sizeof tests);
    memcpy(all + N, in_double, sizeof in_double);
    return _cmocka_run_group_tests(__FILE__, all, sizeof(real) == 8 ? N + N_DOUBLE : N, NULL, NULL);
}
