/* Is it the published function? Softmax attention against PyTorch, Nystrom attention against transformers, one encoder layer of ESM-2's and of BERT's shape against
 * transformers: outputs and all gradients. Scripts in tests/reference made the numbers, one sequence at a time; here they stand
 * in one batch, with rows of no sequence between them. */
#include <stdio.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/nn.h"
#include "autograd/plan.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/golden.h"
#include "tests/harness/test.h"
#include "tests/harness/toy.h"

enum { ROWS = 480, ALIGN = 12, MOST_SEQUENCES = 8 };

/* Of a tensor's range. */
static const double bound = sizeof(real) == sizeof(double) ? 1e-10 : 1e-5;

/* ---- golden rows in a batch ---- */

typedef struct {
    ttn_span span[MOST_SEQUENCES];
    ttn_feed feed;
} batch;

static void place(const golden_tensor *lengths, batch *b)
{
    assert_true(lengths->n <= MOST_SEQUENCES);
    int64_t first = ALIGN; /* rows of no sequence in front, too */
    for (int64_t s = 0; s < lengths->n; s++) {
        b->span[s] = (ttn_span){.first = first, .n = (int64_t)lengths->value[s]};
        first += (b->span[s].n / ALIGN + 1) * ALIGN;
    }
    assert_true(first <= ROWS);
    b->feed = (ttn_feed){.used = {.rows = first, .seqs = lengths->n}, .span = b->span};
}

/* t (rows of the sequences one after the other, C) as rows of the batch. Rows of no sequence hold other numbers where they
 * may. */
static void spread(const batch *b, const golden_tensor *t, int fill, real *x)
{
    const int64_t C = t->dim[1];
    if (fill) ttn_rng_normal(9, 0, ROWS * C, x);
    int64_t from = 0;
    for (int64_t s = 0; s < b->feed.used.seqs; s++) {
        golden_rows(t, from, b->span[s].n, x + b->span[s].first * C);
        from += b->span[s].n;
    }
    assert_int_equal(from, t->dim[0]);
}

/* The batch's rows x against t. */
static void expect_rows(const batch *b, const golden_tensor *t, const real *x)
{
    double worst = 0;
    int64_t from = 0;
    for (int64_t s = 0; s < b->feed.used.seqs; s++) {
        worst =
            fmax(worst, golden_difference(t, from, b->span[s].n, x + b->span[s].first * t->dim[1], golden_range(t)));
        from += b->span[s].n;
    }
    assert_at_most(worst, bound, t->name);
}

/* ---- a graph with inputs whose gradients can be read ---- */

typedef struct {
    const golden *file;
    batch batch;
    ttn_graph *g;
    ttn_weights *weights;
    ttn_plan *plan;
    real *dout; /* (ROWS, C) */
} bench;

static int rows_param(ttn_graph *g, const char *name, int64_t C)
{
    int x = ttn_param(g, name, ttn_matrix(ROWS, C), (ttn_init){TTN_INIT_CONSTANT, 0}, 0);
    return toy_rows_of(g, name, x);
}

/* Plan g: `out` is kept, and dout is its gradient. */
static void prepare(bench *b, int out, const golden_tensor *dout)
{
    ttn_error err = {0};
    int seed = ttn_input(b->g, "dout", ttn_rows(b->g, dout->dim[1]));
    int loss = toy_dot_of(b->g, "loss", out, seed);
    const ttn_plan_options o = {
        .loss = &loss, .n_loss = 1, .keep = &out, .n_keep = 1, .n_thread = 2, .debug = TTN_PLAN_POISON};
    assert_ok(ttn_plan_create(b->g, &o, &b->plan, &err), &err);
    assert_ok(ttn_weights_create(b->g, NULL, &b->weights, &err), &err);
    assert_ok(ttn_plan_attach(b->plan, b->weights, &err), &err);
    b->dout = ttn_alloc_array(ROWS * dout->dim[1], sizeof *b->dout);
    assert_non_null(b->dout);
    spread(&b->batch, dout, 0, b->dout);
    assert_ok(ttn_plan_bind(b->plan, "dout", b->dout, &err), &err);
}

static void *address(const bench *b, const char *name, ttn_slab slab)
{
    int at = ttn_weights_find(b->weights, name);
    if (at < 0) fail_msg("the model has no weight %s", name);
    return ttn_weights_address(b->weights, at, slab);
}

static void release(bench *b)
{
    ttn_plan_destroy(b->plan);
    ttn_weights_destroy(b->weights);
    ttn_graph_destroy(b->g);
    ttn_free(b->dout);
}

/* The kept output, rows of the capacity; the caller's. */
static real *output(const bench *b, int out)
{
    ttn_error err = {0};
    const ttn_desc d = ttn_desc_of_value(b->g, out);
    real *y = ttn_alloc_array(ttn_desc_numel(&d), sizeof *y);
    assert_non_null(y);
    assert_ok(ttn_plan_run(b->plan, &b->batch.feed, NULL, &err), &err);
    assert_ok(ttn_plan_read(b->plan, out, y, &err), &err);
    return y;
}

/* ---- attention ---- */

static void check_attention(const golden *file, int set, int causal)
{
    static const char *const name[] = {"q", "k", "v"};
    bench b = {.file = file, .g = ttn_graph_create((ttn_extent){.rows = ROWS, .seqs = MOST_SEQUENCES})};
    place(golden_find(file, "%d.lengths", set), &b.batch);
    const int64_t C = golden_find(file, "%d.q", set)->dim[1];
    int in[3];
    for (int i = 0; i < 3; i++)
        in[i] = rows_param(b.g, name[i], C);
    const ttn_attn_exact_options o = {.heads = (int)golden_number(file, "%d.heads", set), .causal = causal};
    int out = ttn_attn_exact(b.g, "attention", in[0], in[1], in[2], &o);
    prepare(&b, out, golden_find(file, "%d.dout", set));
    for (int i = 0; i < 3; i++)
        spread(&b.batch, golden_find(file, "%d.%s", set, name[i]), 1, address(&b, name[i], TTN_SLAB_VALUE));

    const char *kind = causal ? "causal" : "full";
    real *y = output(&b, out);
    expect_rows(&b.batch, golden_find(file, "%d.%s.out", set, kind), y);
    for (int i = 0; i < 3; i++)
        expect_rows(&b.batch, golden_find(file, "%d.%s.d%s", set, kind, name[i]),
                    address(&b, name[i], TTN_SLAB_GRADIENT));
    ttn_free(y);
    release(&b);
}

static void attention_is_pytorchs(void **state)
{
    (void)state;
    golden *file = golden_open("attn_exact");
    for (int set = 0; set < 4; set++)
        for (int causal = 0; causal < 2; causal++)
            check_attention(file, set, causal);
    golden_close(file);
}

/* How the sets of attn_nystrom were made: published functions, and the library's own other inverses. */
static const ttn_attn_nystrom_options nystrom_sets[] = {
    {.pinv = TTN_PINV_RAZAVI, .shared = 1}, /* hf */
    {.pinv = TTN_PINV_RAZAVI, .shared = 1}, /* hf */
    {.pinv = TTN_PINV_RAZAVI, .shared = 1}, /* hf */
    {.pinv = TTN_PINV_RAZAVI, .shared = 1}, /* mlpen */
    {.pinv = TTN_PINV_RAZAVI},              /* mlpen, head by head */
    {.pinv = TTN_PINV_CHEB},
    {.pinv = TTN_PINV_EXACT, .lambda = 1e-3},
};

static void check_nystrom(const golden *file, int set)
{
    static const char *const name[] = {"q", "k", "v"};
    bench b = {.file = file, .g = ttn_graph_create((ttn_extent){.rows = ROWS, .seqs = MOST_SEQUENCES})};
    place(golden_find(file, "%d.lengths", set), &b.batch);
    const int64_t C = golden_find(file, "%d.q", set)->dim[1];
    int in[3];
    for (int i = 0; i < 3; i++)
        in[i] = rows_param(b.g, name[i], C);
    ttn_attn_nystrom_options o = nystrom_sets[set];
    o.landmarks = (int64_t)golden_number(file, "%d.landmarks", set);
    o.conv = (int)golden_number(file, "%d.conv", set);
    const ttn_attn_in what = {
        .q = in[0], .k = in[1], .v = in[2], .heads = (int)golden_number(file, "%d.heads", set), .name = "attention"};
    int out = ttn_op_attn_nystrom.attention->build(b.g, &what, &o);
    prepare(&b, out, golden_find(file, "%d.dout", set));
    for (int i = 0; i < 3; i++)
        spread(&b.batch, golden_find(file, "%d.%s", set, name[i]), 1, address(&b, name[i], TTN_SLAB_VALUE));
    if (o.conv > 0)
        golden_rows(golden_find(file, "%d.kernel", set), 0, what.heads, address(&b, "conv.weight", TTN_SLAB_VALUE));

    real *y = output(&b, out);
    expect_rows(&b.batch, golden_find(file, "%d.out", set), y);
    for (int i = 0; i < 3; i++)
        expect_rows(&b.batch, golden_find(file, "%d.d%s", set, name[i]), address(&b, name[i], TTN_SLAB_GRADIENT));
    if (o.conv > 0) {
        const golden_tensor *t = golden_find(file, "%d.dkernel", set);
        const real *got = address(&b, "conv.weight", TTN_SLAB_GRADIENT);
        assert_at_most(golden_difference(t, 0, t->dim[0], got, golden_range(t)), bound, t->name);
    }
    ttn_free(y);
    release(&b);
}

static void nystrom_attention_is_the_published_one(void **state)
{
    (void)state;
    golden *file = golden_open("attn_nystrom");
    for (size_t set = 0; set < sizeof nystrom_sets / sizeof *nystrom_sets; set++)
        check_nystrom(file, (int)set);
    golden_close(file);
}

/* ---- layers ---- */

/* A published name, and ours below "layer.0.". */
typedef struct {
    const char *published, *ours;
} pair;

static const pair esm_names[] = {
    {"attention.LayerNorm", "norm1"},   {"attention.self.query", "attn.q"},     {"attention.self.key", "attn.k"},
    {"attention.self.value", "attn.v"}, {"attention.output.dense", "attn.out"}, {"LayerNorm", "norm2"},
    {"intermediate.dense", "ffn.up"},   {"output.dense", "ffn.down"},
};

static const pair bert_names[] = {
    {"attention.self.query", "attn.q"},     {"attention.self.key", "attn.k"},        {"attention.self.value", "attn.v"},
    {"attention.output.dense", "attn.out"}, {"attention.output.LayerNorm", "norm1"}, {"intermediate.dense", "ffn.up"},
    {"output.dense", "ffn.down"},           {"output.LayerNorm", "norm2"},
};

enum { N_NAMES = sizeof esm_names / sizeof *esm_names };

typedef void (*with_weight)(const bench *b, const char *published, const char *ours);

/* Both of every pair: "attn.q" has "attn.q.weight" and "attn.q.bias", norms have a gain in the place of a weight. */
static void for_each_weight(const bench *b, const pair *names, with_weight f)
{
    for (int i = 0; i < N_NAMES; i++)
        for (int bias = 0; bias < 2; bias++) {
            char published[80];
            char ours[80];
            const char *weight = strstr(names[i].ours, "norm") ? "gain" : "weight";
            snprintf(published, sizeof published, "%s.%s", names[i].published, bias ? "bias" : "weight");
            snprintf(ours, sizeof ours, "layer.0.%s.%s", names[i].ours, bias ? "bias" : weight);
            f(b, published, ours);
        }
}

static void load(const bench *b, const char *published, const char *ours)
{
    const golden_tensor *t = golden_find(b->file, "%s", published);
    const ttn_weight *w = ttn_weights_at(b->weights, ttn_weights_find(b->weights, ours));
    assert_int_equal(t->n, ttn_desc_numel(&w->desc));
    golden_rows(t, 0, t->dim[0], address(b, ours, TTN_SLAB_VALUE));
}

/* The gradient of keys' bias is 0 without rotary: softmax does not see what is the same for all keys. What rounding
 * leaves of it is judged on the scale of the queries'. */
static double range_of_gradient(const golden *file, const char *published, const golden_tensor *t)
{
    double range = golden_range(t);
    if (strcmp(published, "attention.self.key.bias") == 0)
        range = fmax(range, golden_range(golden_find(file, "d.attention.self.query.bias")));
    return range;
}

static void expect_gradient(const bench *b, const char *published, const char *ours)
{
    const golden_tensor *t = golden_find(b->file, "d.%s", published);
    const double range = range_of_gradient(b->file, published, t);
    assert_at_most(golden_difference(t, 0, t->dim[0], address(b, ours, TTN_SLAB_GRADIENT), range), bound, t->name);
}

static void check_layer(const char *name, const pair *names, ttn_layer_spec s)
{
    golden *file = golden_open(name);
    bench b = {.file = file, .g = ttn_graph_create((ttn_extent){.rows = ROWS, .seqs = MOST_SEQUENCES})};
    place(golden_find(file, "lengths"), &b.batch);
    s.heads = (int64_t)golden_number(file, "heads");
    s.hidden = golden_find(file, "intermediate.dense.bias")->n;
    s.norm_eps = golden_number(file, "eps");
    const golden_tensor *x = golden_find(file, "x");
    s.width = x->dim[1];
    if (s.rotary) s.rotary_frequencies = ttn_state(b.g, "frequencies", ttn_vector(s.width / s.heads / 2));
    int out = ttn_nn_layer(b.g, rows_param(b.g, "x", s.width), &s, 0);
    prepare(&b, out, golden_find(file, "dout"));
    spread(&b.batch, x, 1, address(&b, "x", TTN_SLAB_VALUE));
    if (s.rotary) {
        const golden_tensor *t = golden_find(file, "rotary_embeddings.inv_freq");
        golden_rows(t, 0, t->n, address(&b, "frequencies", TTN_SLAB_VALUE));
    }
    for_each_weight(&b, names, load);

    real *y = output(&b, out);
    expect_rows(&b.batch, golden_find(file, "out"), y);
    expect_rows(&b.batch, golden_find(file, "d.x"), address(&b, "x", TTN_SLAB_GRADIENT));
    for_each_weight(&b, names, expect_gradient);
    ttn_free(y);
    release(&b);
    golden_close(file);
}

static void a_layer_of_esm2_is_the_published_one(void **state)
{
    (void)state;
    ttn_layer_spec s = ttn_layer_default(0, 0, 0);
    s.rotary = 1;
    check_layer("esm_layer", esm_names, s);
}

static void a_layer_of_bert_is_the_published_one(void **state)
{
    (void)state;
    ttn_layer_spec s = ttn_layer_default(0, 0, 0);
    s.post_norm = 1;
    check_layer("bert_layer", bert_names, s);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_pytorchs),
        cmocka_unit_test(nystrom_attention_is_the_published_one),
        cmocka_unit_test(a_layer_of_esm2_is_the_published_one),
        cmocka_unit_test(a_layer_of_bert_is_the_published_one),
    };
    return ttn_test_run(tests);
}
