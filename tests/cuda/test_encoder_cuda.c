/* An encoder with everything that training uses, on the emulated device against the CPU: losses, statistics, logits and
 * gradients of two micro-batches, with blocks that are recomputed, under a budget and with poisoned memory; the same bits
 * twice; attention maps; failures. The host reads nothing there: the emulation's memory is closed to it. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/graph_impl.h"
#include "autograd/ops.h"
#include "autograd/tap.h"
#include "core/blas.h"
#include "core/memory.h"
#include "tests/cuda/emulation.h"
#include "tests/harness/encoder.h"
#include "tests/harness/test.h"
#include "tests/harness/toy.h"

/* Of a value's largest element: the bound of each op, a few ops deep. */
#define BOUND (sizeof(real) == 4 ? 1e-5 : 1e-12)

enum { LAYERS = 1 };

static ttn_device *device;

static int open_device(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_ok(ttn_blas_start(1, NULL, &err), &err);
    assert_ok(ttn_device_cuda(0, &device, &err), &err);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    ttn_device_destroy(device);
    assert_int_equal(emulation_allocated(), 0);
    return 0;
}

/* ---- training ---- */

static void train(ttn_device *d, const encoder_way *way, encoder_result *ret)
{
    encoder e = encoder_record(LAYERS);
    encoder_train(&e, d, way, ret);
    ttn_graph_destroy(e.g);
}

/* Of n numbers the largest difference, as a part of the largest of a. */
static double difference(const real *a, const real *b, int64_t n)
{
    double scale = 0;
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        scale = fmax(scale, fabs((double)a[i]));
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        if (isnan(a[i]) || isnan(b[i])) return (double)INFINITY;
    }
    return worst / scale;
}

static void expect_near(const encoder_result *host, const encoder_result *there, int batches)
{
    for (int b = 0; b < batches; b++)
        assert_at_most(fabs(host->loss[b] - there->loss[b]) / host->loss[b], BOUND, "a loss");
    assert_at_most(fabs(host->stat[0] - there->stat[0]) / host->stat[0], BOUND, "the sum");
    assert_true(host->stat[1] > 0 && host->stat[1] == there->stat[1]); /* the count */
    assert_true(host->stat[2] == there->stat[2]);                      /* how many are correct */
    assert_at_most(difference(host->logits, there->logits, ENCODER_ROWS * ENCODER_VOCABULARY), BOUND, "logits");
    assert_at_most(difference(host->hidden, there->hidden, ENCODER_ROWS * ENCODER_WIDTH), BOUND, "rows");
    assert_int_equal(host->n_gradient, there->n_gradient);
    assert_at_most(difference(host->gradient, there->gradient, host->n_gradient), BOUND, "gradients");
}

static void expect_same(const encoder_result *a, const encoder_result *b)
{
    assert_same_bits(a->loss, b->loss, sizeof a->loss);
    assert_same_bits(a->stat, b->stat, sizeof a->stat);
    assert_same_bits(a->logits, b->logits, ENCODER_ROWS * ENCODER_VOCABULARY * sizeof(real));
    assert_same_bits(a->hidden, b->hidden, ENCODER_ROWS * ENCODER_WIDTH * sizeof(real));
    assert_same_bits(a->gradient, b->gradient, (size_t)a->n_gradient * sizeof(real));
}

/* The smallest budget that a plan for the device can keep. */
static size_t small_budget(void)
{
    encoder e = encoder_record(LAYERS);
    ttn_plan *p;
    ttn_error err = {0};
    const ttn_plan_options all = {.loss = &e.loss, .n_loss = 1, .budget = TTN_NO_BUDGET, .device = device};
    const ttn_plan_options marked = {.loss = &e.loss, .n_loss = 1, .device = device};
    assert_ok(ttn_plan_create(e.g, &all, &p, &err), &err);
    const size_t most = ttn_plan_report_of(p)->bytes;
    ttn_plan_destroy(p);
    assert_ok(ttn_plan_create(e.g, &marked, &p, &err), &err);
    const size_t least = ttn_plan_report_of(p)->bytes;
    ttn_plan_destroy(p);
    ttn_graph_destroy(e.g);
    assert_true(least < most);
    return least + (most - least) / 2;
}

static void two_micro_batches_are_those_of_the_cpu(void **state)
{
    (void)state;
    const encoder_way way = {.batches = 2, .budget = TTN_NO_BUDGET};
    encoder_result host;
    encoder_result there;
    train(NULL, &way, &host);
    train(device, &way, &there);
    assert_int_equal(there.again, 0);
    expect_near(&host, &there, way.batches);
    encoder_free(&host);
    encoder_free(&there);
}

static void what_is_computed_again_has_the_same_bits(void **state)
{
    (void)state;
    const encoder_way keep = {.batches = 1, .budget = TTN_NO_BUDGET};
    const encoder_way again = {.batches = 1, .budget = small_budget(), .debug = TTN_PLAN_POISON};
    encoder_result kept;
    encoder_result made;
    train(device, &keep, &kept);
    train(device, &again, &made);
    assert_true(made.again > 0);
    expect_same(&kept, &made);
    encoder_free(&kept);
    encoder_free(&made);
}

/* Nor does the number of blocks that share the work change any. */
static void every_order_of_warps_has_the_same_bits(void **state)
{
    (void)state;
    const encoder_way way = {.batches = 1};
    emulation_order before;
    uint64_t seed;
    emulation_get_order(&before, &seed);
    encoder_result first;
    train(device, &way, &first);
    const int runs = ttn_test_long() ? 5 : 1;
    for (int i = 0; i < runs; i++) {
        encoder_result other;
        emulation_set_order(i == 0 ? EMULATION_REVERSE : i == 1 ? EMULATION_FORWARD : EMULATION_RANDOM, (uint64_t)i);
        emulation_set_most_blocks(3);
        train(device, &way, &other);
        emulation_set_most_blocks(65535);
        expect_same(&first, &other);
        encoder_free(&other);
    }
    emulation_set_order(before, seed);
    encoder_free(&first);
}

/* ---- attention maps: a tap looks at values ---- */

typedef struct {
    int calls;
    int64_t n;
    real map[2 * 64];
    double pooled[4];
    ttn_error refused;
} maps;

static ttn_status look(const ttn_call *c, void *ctx, ttn_error *err)
{
    maps *m = ctx;
    const ttn_attention *a = ttn_attention_find("exact")->attention;
    const int64_t rows[] = {0, 1};
    ttn_tap_view v;
    ttn_status status = ttn_tap_open(c, &v, err);
    if (status != TTN_OK) return status;
    m->n = c->feed->span[1].n;
    m->calls++;
    status = a->map_rows(&v.call, 1, 1, 2, rows, m->map, err);
    if (status == TTN_OK) status = a->map_pool(&v.call, 1, 1, 2, m->pooled, err);
    ttn_tap_close(&v);
    if (c->on->device->ops->kernels == TTN_KERNELS_CUDA) (void)a->map_rows(c, 1, 1, 2, rows, m->map, &m->refused);
    return status;
}

static void see_maps(ttn_device *d, maps *m)
{
    encoder e = encoder_record(LAYERS);
    const ttn_tap tap = {.value = e.attention, .fn = look, .ctx = m};
    const encoder_way way = {.batches = 1, .tap = &tap};
    encoder_result r;
    encoder_train(&e, d, &way, &r);
    encoder_free(&r);
    ttn_graph_destroy(e.g);
}

static void attention_maps_are_those_of_the_cpu(void **state)
{
    (void)state;
    maps host = {.calls = 0};
    maps there = {.calls = 0};
    see_maps(NULL, &host);
    see_maps(device, &there);
    assert_int_equal(host.calls, 1);
    assert_int_equal(there.calls, 1);
    assert_int_equal(host.n, there.n);
    assert_at_most(difference(host.map, there.map, 2 * host.n), BOUND, "two rows of a map");
    for (int i = 0; i < 4; i++)
        assert_at_most(fabs(host.pooled[i] - there.pooled[i]), BOUND, "a pooled map");
    assert_contains(there.refused.text, "attn_exact: a map of values on the device");
}

/* ---- failures ---- */

typedef struct {
    encoder e;
    ttn_weights *w;
    ttn_plan *p;
    encoder_batch batch;
} set_up;

/* Forward only: what goes wrong goes wrong there. */
static set_up *begin(ttn_device *d)
{
    ttn_error err = {0};
    set_up *s = ttn_alloc(sizeof *s);
    assert_non_null(s);
    s->e = encoder_record(LAYERS);
    assert_ok(ttn_weights_create(s->e.g, d, &s->w, &err), &err);
    assert_ok(ttn_weights_init(s->w, 5, &err), &err);
    assert_ok(ttn_plan_create(s->e.g, &(ttn_plan_options){.keep = &s->e.loss, .n_keep = 1, .device = d}, &s->p, &err),
              &err);
    assert_ok(ttn_plan_attach(s->p, s->w, &err), &err);
    encoder_fill(&s->batch, 1);
    encoder_bind(s->p, &s->batch);
    return s;
}

static void end(set_up *s)
{
    ttn_plan_destroy(s->p);
    ttn_weights_destroy(s->w);
    ttn_graph_destroy(s->e.g);
    ttn_free(s);
}

/* Two faults at once: the first step's counts, and of that the first row. */
static void spoil(encoder_batch *b, int which)
{
    const ttn_span s = b->span[1];
    if (which == 0) {
        b->token[s.first + s.n - 1] = 200;
        b->token[s.first] = ENCODER_VOCABULARY;
        b->target[0] = 77;
    } else if (which == 1) {
        memset(b->token + s.first, ENCODER_MASK, (size_t)s.n);
    } else if (which == 2) {
        b->pick[2] = b->feed.used.rows;
        b->pick[3] = -2;
    } else {
        b->target[1] = ENCODER_VOCABULARY;
    }
}

static void faults_in_data_are_told_as_on_the_cpu(void **state)
{
    (void)state;
    static const char *const words[] = {"embed: embedding: row ", "embed: embedding: sequence 1 (rows ",
                                        "picked: select: index 2 is ", "loss: xent: target 1 is 33, expected a class"};
    set_up *host = begin(NULL);
    set_up *there = begin(device);
    for (int which = 0; which < 4; which++) {
        ttn_error here = {0};
        ttn_error err = {0};
        encoder_fill(&host->batch, 1);
        encoder_fill(&there->batch, 1);
        spoil(&host->batch, which);
        spoil(&there->batch, which);
        assert_fails(ttn_plan_run(host->p, &host->batch.feed, NULL, &here), TTN_EINVAL, &here, words[which]);
        assert_fails(ttn_plan_run(there->p, &there->batch.feed, NULL, &err), TTN_EINVAL, &err, words[which]);
        assert_string_equal(err.text, here.text);
    }
    real loss;
    ttn_error err = {0};
    assert_fails(ttn_plan_read(there->p, there->e.loss, &loss, &err), TTN_EINVAL, &err, "no run has ended well");
    err = (ttn_error){0};
    encoder_fill(&there->batch, 1);
    assert_ok(ttn_plan_run(there->p, &there->batch.feed, NULL, &err), &err);
    end(host);
    end(there);
}

static void the_trap_names_node_op_and_tensor(void **state)
{
    (void)state;
    ttn_error here = {0};
    ttn_error err = {0};
    set_up *s[2] = {begin(NULL), begin(device)};
    for (int i = 0; i < 2; i++) {
        real gain[ENCODER_WIDTH];
        const int at = ttn_weights_find(s[i]->w, "layer.0.norm2.gain");
        assert_ok(ttn_weights_read(s[i]->w, at, TTN_SLAB_VALUE, gain, &err), &err);
        gain[3] = NAN;
        assert_ok(ttn_weights_write(s[i]->w, at, TTN_SLAB_VALUE, gain, &err), &err);
        ttn_plan_trap(s[i]->p, 1);
        assert_true(ttn_plan_run(s[i]->p, &s[i]->batch.feed, NULL, i == 0 ? &here : &err) == TTN_ENUMERIC);
    }
    assert_contains(err.text, "layer.0.norm2 (layernorm): output 0 has ");
    assert_string_equal(err.text, here.text);
    end(s[0]);
    end(s[1]);
}

static real loss_of(const set_up *s)
{
    ttn_error err = {0};
    real loss;
    assert_ok(ttn_plan_read(s->p, s->e.loss, &loss, &err), &err);
    return loss;
}

/* The nth call of the runtime fails: a status, with a node's name when it was a step's, and the next run is well. A call that
 * only repeats what holds already (which device is the current one) may fail unnoticed: then the result is the right one. */
static void a_failing_device_is_a_status(void **state)
{
    (void)state;
    set_up *s = begin(device);
    ttn_error err = {0};
    emulation_fail_call(0, 0);
    assert_ok(ttn_plan_run(s->p, &s->batch.feed, NULL, &err), &err);
    const int64_t calls = emulation_calls();
    const real right = loss_of(s);
    assert_true(calls > 20);
    const int64_t stride = ttn_test_long() ? 1 : calls / 8;
    int named = 0;
    int failed = 0;
    for (int64_t nth = 1; nth <= calls; nth += stride) {
        err = (ttn_error){0};
        emulation_fail_call(nth, 719 /* cudaErrorLaunchFailure */);
        const ttn_status status = ttn_plan_run(s->p, &s->batch.feed, NULL, &err);
        const int hit = emulation_was_hit();
        emulation_fail_call(0, 0);
        assert_true(hit);
        assert_true(status == TTN_EDEVICE || (status == TTN_OK && loss_of(s) == right));
        failed += status != TTN_OK;
        named += strstr(err.text, "layer.0.") != NULL || strstr(err.text, "head.") != NULL;
        emulation_reset();
    }
    assert_true(named > 0 && failed > 3);
    err = (ttn_error){0};
    assert_ok(ttn_plan_run(s->p, &s->batch.feed, NULL, &err), &err);
    assert_true(loss_of(s) == right);
    end(s);
}

static void an_op_without_kernels_is_refused_when_the_plan_is_made(void **state)
{
    (void)state;
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480});
    const int x = ttn_input(g, "x", ttn_rows(g, 3));
    ttn_scope_begin(g, "layer.0");
    const int y = toy_square_of(g, "strange", ttn_add(g, "sum", x, x));
    ttn_scope_end(g);
    ttn_error err = {0};
    ttn_plan *p;
    assert_fails(ttn_plan_create(g, &(ttn_plan_options){.keep = &y, .n_keep = 1, .device = device}, &p, &err),
                 TTN_EDEVICE, &err, "(node 'layer.0.strange') has no kernel for the device 'cuda'");
    ttn_graph_destroy(g);
}

/* Nobody counts an op without kernels as passed: while there is one this is skipped, with the names, which the runner shows. */
static void every_op_has_kernels(void **state)
{
    (void)state;
    char names[512] = "";
    for (int o = 0; ttn_ops[o]; o++) {
        const size_t n = strlen(names);
        if (!ttn_cuda_kernels(ttn_ops[o]->name)) snprintf(names + n, sizeof names - n, " %s", ttn_ops[o]->name);
    }
    if (names[0]) skip_because("ops without kernels for CUDA:%s", names);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_micro_batches_are_those_of_the_cpu),
        cmocka_unit_test(what_is_computed_again_has_the_same_bits),
        cmocka_unit_test(every_order_of_warps_has_the_same_bits),
        cmocka_unit_test(attention_maps_are_those_of_the_cpu),
        cmocka_unit_test(faults_in_data_are_told_as_on_the_cpu),
        cmocka_unit_test(the_trap_names_node_op_and_tensor),
        cmocka_unit_test(a_failing_device_is_a_status),
        cmocka_unit_test(an_op_without_kernels_is_refused_when_the_plan_is_made),
        cmocka_unit_test(every_op_has_kernels),
    };
    return cmocka_run_group_tests_name(__FILE__, tests, open_device, close_device);
}
