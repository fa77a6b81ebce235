/* Is the whole of training right? Twenty optimizer steps from given weights, batches and masks against PyTorch's: losses,
 * norms of gradients, rates, moments and final weights (tests/reference/trajectory.py). */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "autograd/plan.h"
#include "core/memory.h"
#include "tests/harness/golden.h"
#include "tests/harness/test.h"
#include "tests/train/model_config.h"
#include "train/optim.h"
#include "train/schedule.h"
#include "train/shards.h"

enum { ROWS = 480, SEQS = 12, PICKS = 480, ALIGN = 12, STEPS = 20, LAYERS = 2 };

static const int is_double = sizeof(real) == sizeof(double);

/* ---- names ---- */

typedef struct {
    const char *published, *ours; /* without ".weight" and ".bias"; of a layer: behind its prefix */
} pair;

static const pair esm_layer[] = {
    {"attention.LayerNorm", "norm1"},   {"attention.self.query", "attn.q"},     {"attention.self.key", "attn.k"},
    {"attention.self.value", "attn.v"}, {"attention.output.dense", "attn.out"}, {"LayerNorm", "norm2"},
    {"intermediate.dense", "ffn.up"},   {"output.dense", "ffn.down"},           {NULL, NULL},
};

static const pair bert_layer[] = {
    {"attention.self.query", "attn.q"},     {"attention.self.key", "attn.k"},        {"attention.self.value", "attn.v"},
    {"attention.output.dense", "attn.out"}, {"attention.output.LayerNorm", "norm1"}, {"intermediate.dense", "ffn.up"},
    {"output.dense", "ffn.down"},           {"output.LayerNorm", "norm2"},           {NULL, NULL},
};

static const pair esm_rest[] = {
    {"esm.encoder.emb_layer_norm_after", "norm"},
    {"lm_head.dense", "head.dense"},
    {"lm_head.layer_norm", "head.norm"},
    {NULL, NULL},
};

static const pair bert_rest[] = {
    {"bert.embeddings.LayerNorm", "embed.norm"},
    {"cls.predictions.transform.dense", "head.dense"},
    {"cls.predictions.transform.LayerNorm", "head.norm"},
    {NULL, NULL},
};

/* Whole names. */
static const pair esm_single[] = {
    {"esm.embeddings.word_embeddings.weight", "embed.weight"},
    {"lm_head.bias", "head.bias"},
    {NULL, NULL},
};

static const pair bert_single[] = {
    {"bert.embeddings.word_embeddings.weight", "embed.weight"},
    {"bert.embeddings.position_embeddings.weight", "positions.weight"},
    {"cls.predictions.decoder.weight", "head.decoder.weight"},
    {"cls.predictions.decoder.bias", "head.bias"},
    {NULL, NULL},
};

typedef struct {
    const char *golden, *config, *prefix; /* of layers */
    const pair *layer, *rest, *single;
} subject;

static const char esm_model[] = "model: {layers: 2, width: 16, heads: 2, ffn: 24, token_dropout: yes, "
                                "rotary_frequencies: stored}\n";

static const subject esm = {.golden = "trajectory_esm",
                            .config = "schedule: {kind: linear}\n",
                            .prefix = "esm.encoder.layer",
                            .layer = esm_layer,
                            .rest = esm_rest,
                            .single = esm_single};

static const subject shards = {.golden = "trajectory_shards",
                               .config = "schedule: {kind: cosine}\n",
                               .prefix = "esm.encoder.layer",
                               .layer = esm_layer,
                               .rest = esm_rest,
                               .single = esm_single};

static const subject bert = {.golden = "trajectory_bert",
                             .config =
                                 "schedule: {kind: cosine}\n"
                                 "model: {layers: 2, width: 16, heads: 2, ffn: 24, norm_place: post, norm_eps: 1e-12, "
                                 "embed_norm: yes, positions: learned, max_positions: 40, head: bert, tied: no}\n",
                             .prefix = "bert.encoder.layer",
                             .layer = bert_layer,
                             .rest = bert_rest,
                             .single = bert_single};

/* ---- one run ---- */

typedef struct {
    const subject *subject;
    golden *file;
    model_config config;
    ttn_model_spec *spec;
    ttn_graph *g;
    ttn_model model;
    ttn_device *device;
    ttn_stream on;
    ttn_weights *weights;
    ttn_plan *plan;
    ttn_shards *shards;
    ttn_optim *optim;
    ttn_schedule schedule;
    int n_named; /* weights that a published name was found for */
} run;

typedef void (*with_weight)(run *r, const char *published, const char *ours);

static void for_both(run *r, const char *published, const char *ours, with_weight f)
{
    for (int bias = 0; bias < 2; bias++) {
        char theirs_full[96];
        char ours_full[96];
        const char *weight = strstr(ours, "norm") ? "gain" : "weight";
        snprintf(theirs_full, sizeof theirs_full, "%s.%s", published, bias ? "bias" : "weight");
        snprintf(ours_full, sizeof ours_full, "%s.%s", ours, bias ? "bias" : weight);
        f(r, theirs_full, ours_full);
    }
}

static void for_each_weight(run *r, with_weight f)
{
    for (int l = 0; l < LAYERS; l++)
        for (const pair *p = r->subject->layer; p->ours; p++) {
            char published[80];
            char ours[80];
            snprintf(published, sizeof published, "%s.%d.%s", r->subject->prefix, l, p->published);
            snprintf(ours, sizeof ours, "layer.%d.%s", l, p->ours);
            for_both(r, published, ours, f);
        }
    for (const pair *p = r->subject->rest; p->ours; p++)
        for_both(r, p->published, p->ours, f);
    for (const pair *p = r->subject->single; p->ours; p++)
        f(r, p->published, p->ours);
}

static int weight_called(const run *r, const char *name)
{
    const int at = ttn_weights_find(r->weights, name);
    if (at < 0) fail_msg("the model has no weight %s", name);
    return at;
}

static void load(run *r, const char *published, const char *ours)
{
    ttn_error err = {0};
    const golden_tensor *t = golden_find(r->file, "first.%s", published);
    const int at = weight_called(r, ours);
    assert_int_equal(t->n, ttn_desc_numel(&ttn_weights_at(r->weights, at)->desc));
    real *x = ttn_alloc_array(t->n, sizeof *x);
    assert_non_null(x);
    golden_rows(t, 0, t->dim[0], x);
    assert_ok(ttn_weights_write(r->weights, at, TTN_SLAB_VALUE, x, &err), &err);
    ttn_free(x);
    r->n_named++;
}

static void load_frequencies(run *r)
{
    if (!r->spec->stored_frequencies) return;
    ttn_error err = {0};
    const golden_tensor *t = golden_find(r->file, "inv_freq");
    real x[8];
    assert_true(t->n <= 8);
    golden_rows(t, 0, t->n, x);
    assert_ok(ttn_weights_write(r->weights, weight_called(r, "rotary.frequencies"), TTN_SLAB_VALUE, x, &err), &err);
}

/* The subject's configuration with the numbers of its golden file. */
static void configure(run *r)
{
    char text[1024];
    const golden *f = r->file;
    snprintf(text, sizeof text,
             "%s%s"
             "optim: {lr: %.17g, clip: %.17g, decay: %.17g, beta1: %.17g, beta2: %.17g, eps: %.17g}\n"
             "schedule.warmup: %d\nschedule.floor: %.17g\n",
             strstr(r->subject->config, "model:") ? "" : esm_model, r->subject->config, golden_number(f, "optim.lr"),
             golden_number(f, "optim.clip"), golden_number(f, "optim.decay"), golden_number(f, "optim.beta1"),
             golden_number(f, "optim.beta2"), golden_number(f, "optim.eps"), (int)golden_number(f, "warmup"),
             golden_number(f, "optim.floor"));
    r->config = model_config_of(NULL, text);
}

static void prepare(run *r, const subject *s, int n_thread)
{
    ttn_error err = {0};
    *r = (run){.subject = s, .file = golden_open(s->golden)};
    configure(r);
    const ttn_model_use use = {.alphabet = ttn_alphabet_find("esm")};
    ttn_optim_spec optim;
    assert_ok(ttn_model_spec_of(r->config.values, &use, &r->spec, &err), &err);
    assert_ok(ttn_schedule_of(r->config.values, STEPS, &r->schedule, &err), &err);
    assert_ok(ttn_optim_spec_of(r->config.values, &optim, &err), &err);
    assert_ok(ttn_device_cpu(&r->device, &err), &err);
    r->on = (ttn_stream){.device = r->device, .n_thread = n_thread};
    r->g = ttn_graph_create((ttn_extent){.rows = ROWS, .seqs = SEQS, .picks = PICKS});
    ttn_model_build(r->g, r->spec, TTN_MODEL_LOSS, &r->model);
    const ttn_plan_options o = {
        .loss = &r->model.loss, .n_loss = 1, .n_thread = n_thread, .device = r->device, .debug = TTN_PLAN_POISON};
    assert_ok(ttn_plan_create(r->g, &o, &r->plan, &err), &err);
    assert_ok(ttn_weights_create(r->g, r->device, &r->weights, &err), &err);
    assert_ok(ttn_plan_attach(r->plan, r->weights, &err), &err);
    assert_ok(ttn_shards_create(r->weights, &r->on, (int64_t)golden_number(r->file, "shards"), &r->shards, &err), &err);
    assert_ok(ttn_optim_create(&optim, r->weights, &r->on, NULL, 0, &r->optim, &err), &err);
    for_each_weight(r, load);
    assert_int_equal(r->n_named, ttn_weights_count(r->weights) - r->spec->stored_frequencies);
    load_frequencies(r);
}

static void release(run *r)
{
    ttn_optim_destroy(r->optim);
    ttn_shards_destroy(r->shards);
    ttn_plan_destroy(r->plan);
    ttn_weights_destroy(r->weights);
    ttn_graph_destroy(r->g);
    ttn_device_destroy(r->device);
    ttn_model_spec_destroy(r->spec);
    model_config_drop(&r->config);
    golden_close(r->file);
}

/* ---- batches ---- */

typedef struct {
    uint8_t token[ROWS], target[PICKS];
    int64_t index[PICKS];
    ttn_span span[SEQS];
    ttn_feed feed;
} batch;

static void add_sequence(batch *b, const run *r, int64_t s, int64_t first_token, int64_t first_pick)
{
    const golden *f = r->file;
    const int64_t n = (int64_t)golden_find(f, "sequence.tokens")->value[s];
    const int64_t n_pick = (int64_t)golden_find(f, "sequence.picks")->value[s];
    ttn_extent *used = &b->feed.used;
    assert_true(used->rows + n <= ROWS && used->picks + n_pick <= PICKS && used->seqs < SEQS);
    for (int64_t t = 0; t < n; t++)
        b->token[used->rows + t] = (uint8_t)golden_find(f, "token")->value[first_token + t];
    for (int64_t p = 0; p < n_pick; p++) {
        b->index[used->picks + p] = used->rows + (int64_t)golden_find(f, "pick")->value[first_pick + p];
        b->target[used->picks + p] = (uint8_t)golden_find(f, "target")->value[first_pick + p];
    }
    b->span[used->seqs] = (ttn_span){.first = used->rows, .n = n};
    used->seqs++;
    used->rows = (used->rows + n + ALIGN) / ALIGN * ALIGN; /* rows of no sequence in between */
    used->picks = (used->picks + n_pick + ALIGN) / ALIGN * ALIGN;
}

/* The sequences of a step's shard, or of all its shards (-1). */
static void fill(batch *b, const run *r, int64_t step, int64_t shard)
{
    const golden *f = r->file;
    *b = (batch){.feed = {.training = 1, .step = (uint64_t)step}};
    memset(b->target, TTN_BATCH_NO_TARGET, sizeof b->target);
    for (int64_t p = 0; p < PICKS; p++)
        b->index[p] = -1;
    int64_t token = 0;
    int64_t pick = 0;
    for (int64_t s = 0; s < golden_find(f, "sequence.step")->n; s++) {
        const int is_of_shard = shard < 0 || (int64_t)golden_find(f, "sequence.shard")->value[s] == shard;
        if ((int64_t)golden_find(f, "sequence.step")->value[s] == step && is_of_shard)
            add_sequence(b, r, s, token, pick);
        token += (int64_t)golden_find(f, "sequence.tokens")->value[s];
        pick += (int64_t)golden_find(f, "sequence.picks")->value[s];
    }
    b->feed.span = b->span;
}

/* ---- a step ---- */

typedef struct {
    double sum, count;
} loss;

static void run_batch(run *r, const batch *b, loss *l)
{
    ttn_error err = {0};
    assert_ok(ttn_plan_bind(r->plan, "tokens", b->token, &err), &err);
    assert_ok(ttn_plan_bind(r->plan, "index", b->index, &err), &err);
    assert_ok(ttn_plan_bind(r->plan, "target", b->target, &err), &err);
    assert_ok(ttn_plan_run(r->plan, &b->feed, NULL, &err), &err);
    int n = 0;
    const double *stat = ttn_plan_stat(r->plan, r->model.loss, &n);
    assert_true(n >= 2);
    l->sum += stat[0];
    l->count += stat[1];
}

/* The gradients of a step's micro-batches, added up in the slab. */
static loss run_shards(run *r, int64_t step)
{
    ttn_error err = {0};
    loss l = {0};
    const int64_t n = (int64_t)golden_number(r->file, "shards");
    for (int64_t shard = 0; shard < n; shard++) {
        batch b;
        fill(&b, r, step, shard);
        run_batch(r, &b, &l);
        assert_ok(ttn_shards_add(r->shards, &err), &err);
    }
    return l;
}

/* Relative difference from entry `step` of a golden list. */
static double difference(const run *r, const char *list, int64_t step, double got)
{
    const double expected = golden_find(r->file, "%s", list)->value[step];
    return fabs(got - expected) / fabs(expected);
}

static void train(run *r, int64_t steps)
{
    ttn_error err = {0};
    double worst_loss = 0;
    double worst_norm = 0;
    double worst_rate = 0;
    for (int64_t step = 0; step < steps; step++) {
        const loss l = run_shards(r, step);
        const ttn_optim_when when = {.step = step, .lr = ttn_schedule_lr(&r->schedule, step), .count = l.count};
        ttn_optim_result result;
        assert_ok(ttn_optim_step(r->optim, &when, &result, &err), &err);
        assert_true(result.is_finite);
        worst_loss = fmax(worst_loss, difference(r, "loss", step, l.sum / l.count));
        worst_norm = fmax(worst_norm, difference(r, "norm", step, result.norm));
        worst_rate = fmax(worst_rate, difference(r, "rate", step, when.lr));
    }
    assert_at_most(worst_rate, 1e-13, "rates");
    assert_at_most(worst_loss, is_double ? 1e-9 : 2e-6, "losses");
    assert_at_most(worst_norm, is_double ? 1e-9 : 1e-5, "norms of gradients");
}

/* ---- against PyTorch ---- */

static double worst_of(run *r, const char *what, const char *published, const char *ours, ttn_slab slab)
{
    ttn_error err = {0};
    const golden_tensor *t = golden_find(r->file, "%s.%s", what, published);
    real *x = ttn_alloc_array(t->n, sizeof *x);
    assert_non_null(x);
    assert_ok(ttn_weights_read(r->weights, weight_called(r, ours), slab, x, &err), &err);
    const double worst = golden_difference(t, 0, t->dim[0], x, golden_range(t));
    ttn_free(x);
    return worst;
}

/* Keys' biases have gradients of nothing but rounding where no rotary turns them: softmax does not see what is the same for
 * all keys. Divided by the root of their own squares they move weights by 1e-4 in f32; moments are not compared. */
static int is_only_rounding(const run *r, const char *ours)
{
    return r->spec->places != TTN_PLACES_ROTARY && strstr(ours, "attn.k.bias");
}

static void compare(run *r, const char *published, const char *ours)
{
    const int is_rounding = is_only_rounding(r, ours);
    const double bound = is_double ? 1e-9 : 1e-5;
    assert_at_most(worst_of(r, "last", published, ours, TTN_SLAB_VALUE), is_rounding && !is_double ? 1e-3 : bound,
                   ours);
    if (is_rounding) return;
    assert_at_most(worst_of(r, "m", published, ours, TTN_SLAB_M), is_double ? 1e-9 : 1e-4, ours);
    assert_at_most(worst_of(r, "v", published, ours, TTN_SLAB_V), is_double ? 1e-9 : 1e-4, ours);
}

static void check(const subject *s)
{
    run r;
    prepare(&r, s, 1);
    train(&r, STEPS);
    for_each_weight(&r, compare);
    release(&r);
}

static void twenty_steps_of_esm2_are_pytorchs(void **state)
{
    (void)state;
    check(&esm);
}

static void twenty_steps_of_four_unequal_micro_batches_are_pytorchs(void **state)
{
    (void)state;
    check(&shards);
}

static void twenty_steps_of_bert_are_pytorchs(void **state)
{
    (void)state;
    check(&bert);
}

/* ---- without PyTorch ---- */

static real *gradients(const run *r)
{
    const int64_t n = ttn_weights_slab_elements(r->weights);
    real *g = ttn_alloc_array(n, sizeof *g);
    assert_non_null(g);
    memcpy(g, ttn_weights_slab(r->weights, TTN_SLAB_GRADIENT), (size_t)n * sizeof *g);
    return g;
}

static void one_batch_is_its_four_micro_batches(void **state)
{
    (void)state;
    run r;
    prepare(&r, &shards, 1);
    for (int64_t step = 0; step < 3; step++) {
        const loss apart = run_shards(&r, step);
        real *g = gradients(&r);
        loss together = {0};
        batch b;
        fill(&b, &r, step, -1);
        run_batch(&r, &b, &together);
        real *h = gradients(&r);
        double range = 0;
        double worst = 0;
        for (int64_t i = 0; i < ttn_weights_slab_elements(r.weights); i++) {
            range = fmax(range, fabs((double)h[i]));
            worst = fmax(worst, fabs((double)g[i] - (double)h[i]));
        }
        assert_true(apart.count == together.count);
        assert_at_most(fabs(apart.sum / together.sum - 1), is_double ? 1e-12 : 1e-6, "the loss");
        assert_at_most(worst / range, is_double ? 1e-12 : 1e-6, "gradients");
        ttn_free(g);
        ttn_free(h);
    }
    release(&r);
}

static void any_number_of_threads_trains_to_the_same_bits(void **state)
{
    (void)state;
    real *first = NULL;
    size_t bytes = 0;
    for (int n_thread = 1; n_thread <= 5; n_thread += 2) {
        run r;
        prepare(&r, &shards, n_thread);
        train(&r, 6);
        bytes = (size_t)ttn_weights_slab_elements(r.weights) * sizeof(real);
        if (first) {
            assert_same_bits(first, ttn_weights_slab(r.weights, TTN_SLAB_VALUE), bytes);
        } else {
            first = ttn_alloc(bytes);
            assert_non_null(first);
            memcpy(first, ttn_weights_slab(r.weights, TTN_SLAB_VALUE), bytes);
        }
        release(&r);
    }
    ttn_free(first);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(5);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_steps_of_esm2_are_pytorchs),
        cmocka_unit_test(twenty_steps_of_four_unequal_micro_batches_are_pytorchs),
        cmocka_unit_test(twenty_steps_of_bert_are_pytorchs),
        cmocka_unit_test(one_batch_is_its_four_micro_batches),
        cmocka_unit_test(any_number_of_threads_trains_to_the_same_bits),
    };
    return ttn_test_run(tests);
}
