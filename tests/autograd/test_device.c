/* An encoder with everything that training uses, on a device whose memory the host may not touch (tests/harness/guarded.h):
 * the same bits as on the host, in two transfers of a run beside its inputs. A read by the engine dies of SIGSEGV, so all of
 * it runs in children. */
#include <stdio.h>
#include <string.h>
#include "autograd/graph_impl.h"
#include "autograd/on_device.h"
#include "autograd/ops.h"
#include "core/device.h"
#include "core/blas.h"
#include "tests/harness/encoder.h"
#include "tests/harness/guarded.h"
#include "tests/harness/test.h"

enum { LAYERS = 2 };

static void expect_in_child(int (*body)(void *arg))
{
    const ttn_child c = run_in_child((ttn_child_limit){0}, body, NULL);
    if (!c.exited || c.exit_code != 0) fail_msg("exit code %d, signal %d: %s", c.exit_code, c.signal, c.output);
}

static ttn_device *device(void)
{
    ttn_error err = {0};
    assert_ok(ttn_blas_start(1, NULL, &err), &err);
    ttn_device *d = guarded_device();
    assert_non_null(d);
    return d;
}

/* ---- training ---- */

static void expect_same(const encoder_result *a, const encoder_result *b)
{
    assert_same_bits(a->loss, b->loss, sizeof a->loss);
    assert_same_bits(a->stat, b->stat, sizeof a->stat);
    assert_same_bits(a->logits, b->logits, ENCODER_ROWS * ENCODER_VOCABULARY * sizeof(real));
    assert_same_bits(a->hidden, b->hidden, ENCODER_ROWS * ENCODER_WIDTH * sizeof(real));
    assert_int_equal(a->n_gradient, b->n_gradient);
    assert_same_bits(a->gradient, b->gradient, (size_t)a->n_gradient * sizeof(real));
}

static int train(void *arg)
{
    (void)arg;
    ttn_device *d = device();
    const encoder_way ways[] = {
        {.batches = 2},
        {.batches = 1, .budget = TTN_NO_BUDGET, .debug = TTN_PLAN_POISON},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        encoder host = encoder_record(LAYERS);
        encoder there = encoder_record(LAYERS);
        guarded_graph(d, there.g);
        encoder_result a;
        encoder_result b;
        encoder_train(&host, NULL, &ways[i], &a);
        encoder_train(&there, d, &ways[i], &b);
        assert_true(a.loss[0] > 0 && a.stat[1] > 0);
        assert_int_equal(b.again > 0, i == 0);
        expect_same(&a, &b);
        encoder_free(&a);
        encoder_free(&b);
        ttn_graph_destroy(host.g);
        ttn_graph_destroy(there.g);
    }
    ttn_device_destroy(d);
    return 0;
}

static void training_where_the_host_cannot_read_has_the_same_bits(void **state)
{
    (void)state;
    expect_in_child(train);
}

/* ---- failures ---- */

static void refuse(const encoder *e, ttn_device *d, const encoder_batch *b, ttn_error *ret)
{
    ttn_error err = {0};
    ttn_weights *w;
    ttn_plan *p;
    assert_ok(ttn_weights_create(e->g, d, &w, &err), &err);
    assert_ok(ttn_weights_init(w, 5, &err), &err);
    assert_ok(ttn_plan_create(e->g, &(ttn_plan_options){.loss = &e->loss, .n_loss = 1, .device = d}, &p, &err), &err);
    assert_ok(ttn_plan_attach(p, w, &err), &err);
    encoder_bind(p, b);
    assert_true(ttn_plan_run(p, &b->feed, NULL, ret) != TTN_OK);
    ttn_plan_destroy(p);
    ttn_weights_destroy(w);
}

static int fail_on_data(void *arg)
{
    (void)arg;
    ttn_device *d = device();
    encoder e = encoder_record(1);
    guarded_graph(d, e.g);
    encoder_batch b;
    encoder_fill(&b, 1);
    b.token[b.span[1].first] = ENCODER_VOCABULARY;
    ttn_error err = {0};
    refuse(&e, d, &b, &err);
    assert_contains(err.text, "embed: embedding: row ");
    assert_contains(err.text, "(sequence 1) has token 33, but the vocabulary has 33: 0 to 32");
    ttn_graph_destroy(e.g);
    ttn_device_destroy(d);
    return 0;
}

static void data_is_refused_there_too(void **state)
{
    (void)state;
    expect_in_child(fail_on_data);
}

/* ---- what kernels of a device get of the feed ---- */

enum { ROWS = 480, SEQS = 3 };

typedef struct {
    ttn_feed_layout layout;
    _Alignas(16) unsigned char piece[8192];
    ttn_on_device there;
} written;

static void write_feed(written *w, int64_t seqs, const ttn_feed *f)
{
    memset(w->piece, 0xAA, sizeof w->piece);
    w->layout = ttn_feed_lay_out((ttn_extent){.rows = ROWS, .seqs = seqs});
    assert_true(w->layout.bytes < sizeof w->piece);
    ttn_feed_write(&w->layout, f, w->piece);
    w->there = ttn_feed_at(&w->layout, w->piece);
    assert_int_equal(w->piece[w->layout.bytes], 0xAA);
}

static void spans_starts_samples_and_the_sequence_of_every_row(void **state)
{
    (void)state;
    static written w;
    const ttn_span span[] = {{2, 3}, {7, 1}};
    const int64_t start[] = {10, 0};
    const uint64_t sample[] = {(uint64_t)1 << 40, 5};
    ttn_feed f = {.used = {.rows = 9, .seqs = 2}, .span = span, .start = start, .sample = sample};
    write_feed(&w, SEQS, &f);
    assert_memory_equal(w.there.span, span, sizeof span);
    assert_memory_equal(w.there.start, start, sizeof start);
    assert_memory_equal(w.there.sample, sample, sizeof sample);
    for (int64_t t = 0; t < ROWS; t++) {
        const int64_t seq = t >= 2 && t < 5 ? 0 : t == 7 ? 1 : -1;
        assert_int_equal(w.there.seq_of_row[t], seq);
    }
    f.start = NULL;
    f.sample = NULL;
    write_feed(&w, SEQS, &f);
    assert_int_equal(w.there.start[0], 0);
    assert_int_equal(w.there.start[1], 0);
    assert_int_equal(w.there.sample[0], 0);
    assert_int_equal(w.there.sample[1], 1);
}

static void a_run_without_sequences_is_one_of_all_its_rows(void **state)
{
    (void)state;
    static written w;
    const ttn_feed f = {.used = {.rows = 9}};
    for (int64_t seqs = 0; seqs <= SEQS; seqs += SEQS) {
        write_feed(&w, seqs, &f);
        assert_int_equal(w.there.span[0].first, 0);
        assert_int_equal(w.there.span[0].n, 9);
        assert_int_equal(w.there.start[0], 0);
        assert_int_equal(w.there.sample[0], 0);
        for (int64_t t = 0; t < ROWS; t++)
            assert_int_equal(w.there.seq_of_row[t], t < 9 ? 0 : -1);
    }
}

/* The smallest number is that of the first step, of that the first kind, of that the first place. */
static void the_first_fault_is_the_smallest_number(void **state)
{
    (void)state;
    static const ttn_fault in_order[] = {{0, 0, 0}, {0, 0, ((int64_t)1 << TTN_FAULT_AT_BITS) - 1},
                                         {0, 1, 0}, {0, 15, 3},
                                         {1, 0, 0}, {(1 << TTN_FAULT_STEP_BITS) - 1, 14, 9}};
    uint64_t before = 0;
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) {
        const ttn_fault f = in_order[i];
        const ttn_fault_sink sink = {.step = ttn_fault_of_step(f.step)};
        const uint64_t number = ttn_fault_number(sink, f.kind, f.at);
        assert_true(i == 0 || number > before);
        assert_true(number < TTN_NO_FAULT);
        const ttn_fault back = ttn_fault_of(number);
        assert_int_equal(back.step, f.step);
        assert_int_equal(back.kind, f.kind);
        assert_int_equal(back.at, f.at);
        before = number;
    }
}

/* ---- kernels that a device does not have ---- */

static void a_plan_for_a_device_without_the_kernel_is_refused_when_it_is_made(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_device *cpu;
    assert_ok(ttn_device_cpu(&cpu, &err), &err);
    ttn_device_ops ops = *cpu->ops;
    ops.name = "elsewhere";
    ops.kernels = TTN_KERNELS_CUDA;
    ttn_device elsewhere = {.ops = &ops};
    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480});
    const int x = ttn_input(g, "x", ttn_rows(g, 3));
    ttn_scope_begin(g, "layer.0");
    ttn_op stranger = ttn_op_relu;
    stranger.name = "stranger";
    const int used = ttn_apply_op(g, &stranger, "first", NULL, &x);
    const int unused = ttn_apply_op(g, &stranger, "second", NULL, &x);
    ttn_scope_end(g);
    ttn_plan *p;
    assert_fails(ttn_plan_create(g, &(ttn_plan_options){.keep = &used, .n_keep = 1, .device = &elsewhere}, &p, &err),
                 TTN_EDEVICE, &err, "op 'stranger' (node 'layer.0.first') has no kernel for the device 'elsewhere'");
    assert_null(p);
    err = (ttn_error){0};
    assert_fails(ttn_plan_create(g, &(ttn_plan_options){.keep = &unused, .n_keep = 1, .device = &elsewhere}, &p, &err),
                 TTN_EDEVICE, &err, "(node 'layer.0.second')");
    ttn_graph_destroy(g);
    ttn_device_destroy(cpu);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_where_the_host_cannot_read_has_the_same_bits),
        cmocka_unit_test(data_is_refused_there_too),
        cmocka_unit_test(spans_starts_samples_and_the_sequence_of_every_row),
        cmocka_unit_test(a_run_without_sequences_is_one_of_all_its_rows),
        cmocka_unit_test(the_first_fault_is_the_smallest_number),
        cmocka_unit_test(a_plan_for_a_device_without_the_kernel_is_refused_when_it_is_made),
    };
    return ttn_test_run(tests);
}
