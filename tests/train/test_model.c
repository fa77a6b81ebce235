/* From a configuration to a model: shapes, names, beginnings, and what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/plan.h"
#include "autograd/renew.h"
#include "core/memory.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "tests/train/model_config.h"

enum { ROWS = 480, SEQS = 4, PICKS = 480 };

/* ---- a model ---- */

typedef struct {
    model_config config;
    ttn_model_spec *spec;
    ttn_graph *g;
    ttn_model model;
    ttn_weights *weights;
} built;

static ttn_model_use plain_use(void)
{
    return (ttn_model_use){.alphabet = ttn_alphabet_find("esm")};
}

static built build_as(const char *preset, const char *text, const ttn_model_use *use, ttn_model_mode mode)
{
    ttn_error err = {0};
    built b = {.config = model_config_of(preset, text)};
    assert_ok(ttn_model_spec_of(b.config.values, use, &b.spec, &err), &err);
    b.g = ttn_graph_create((ttn_extent){.rows = ROWS, .seqs = SEQS, .picks = PICKS});
    ttn_model_build(b.g, b.spec, mode, &b.model);
    assert_ok(ttn_weights_create(b.g, NULL, &b.weights, &err), &err);
    return b;
}

static built build(const char *text)
{
    const ttn_model_use use = plain_use();
    return build_as(NULL, text, &use, TTN_MODEL_LOSS);
}

static void drop(built *b)
{
    ttn_weights_destroy(b->weights);
    ttn_graph_destroy(b->g);
    ttn_model_spec_destroy(b->spec);
    model_config_drop(&b->config);
}

static int64_t count_parameters(const built *b)
{
    int64_t n = 0;
    for (int i = 0; i < ttn_weights_count(b->weights); i++)
        if (!ttn_weights_at(b->weights, i)->is_state) n += ttn_desc_numel(&ttn_weights_at(b->weights, i)->desc);
    return n;
}

/* ---- shapes ---- */

/* The published counts include a contact head, layers x heads + 1 numbers that are no part of the language model. */
static void presets_of_esm2_have_the_published_number_of_parameters(void **state)
{
    (void)state;
    const ttn_model_use use = plain_use();
    built small = build_as("esm2-8m", "", &use, TTN_MODEL_LOSS);
    assert_int_equal(count_parameters(&small), 7512474 - (6 * 20 + 1));
    drop(&small);
    built medium = build_as("esm2-35m", "", &use, TTN_MODEL_LOSS);
    assert_int_equal(count_parameters(&medium), 33501394 - (12 * 20 + 1));
    drop(&medium);
}

static void every_preset_is_a_model(void **state)
{
    (void)state;
    const ttn_model_use use = plain_use();
    int n = 0;
    for (const ttn_config_preset *p = ttn_config_presets; p->name; p++) {
        built b = build_as(p->name, "", &use, TTN_MODEL_LOSS);
        assert_true(count_parameters(&b) > 0);
        drop(&b);
        n++;
    }
    assert_true(n >= 4);
}

static void feed_forward_blocks_are_as_wide_as_is_usual(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t hidden;
    } example[] = {
        {"model: {width: 64, heads: 4}", 256},
        {"model: {width: 64, heads: 4, gated: yes}", 176}, /* 8/3 64 = 170.7 */
        {"model: {width: 24, heads: 4, gated: yes}", 64},  /* 8/3 24 = 64 */
        {"model: {width: 64, heads: 4, gated: yes, ffn: 100}", 100},
    };
    for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
        built b = build(example[i].text);
        const int at = ttn_weights_find(b.weights, "layer.0.ffn.up.weight");
        assert_true(at >= 0);
        assert_int_equal(ttn_weights_at(b.weights, at)->desc.dim[0], example[i].hidden);
        drop(&b);
    }
}

/* ---- names ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All names in the order of the alphabet, with a '*' behind those that decay. */
static void list_names(const built *b, char *text, size_t room)
{
    enum { MOST = 64 };
    const char *name[MOST];
    const int n = ttn_weights_count(b->weights);
    assert_true(n <= MOST);
    for (int i = 0; i < n; i++)
        name[i] = ttn_weights_at(b->weights, i)->name;
    qsort(name, (size_t)n, sizeof *name, by_text);
    size_t end = 0;
    text[0] = 0;
    for (int i = 0; i < n; i++) {
        const ttn_weight *w = ttn_weights_at(b->weights, ttn_weights_find(b->weights, name[i]));
        const int decays = !w->is_state && !(w->flags & TTN_NO_DECAY);
        end += (size_t)snprintf(text + end, room - end, "%s%s ", name[i], decays ? "*" : "");
        assert_true(end < room);
    }
}

static void assert_names(const char *config, const char *expected)
{
    built b = build(config);
    char text[4096];
    list_names(&b, text, sizeof text);
    assert_string_equal(text, expected);
    drop(&b);
}

static void parameters_have_the_names_that_files_know(void **state)
{
    (void)state;
    assert_names("model: {layers: 1, width: 8, heads: 2}",
                 "embed.weight head.bias head.dense.bias head.dense.weight* head.norm.bias head.norm.gain "
                 "layer.0.attn.k.bias layer.0.attn.k.weight* layer.0.attn.out.bias layer.0.attn.out.weight* "
                 "layer.0.attn.q.bias layer.0.attn.q.weight* layer.0.attn.v.bias layer.0.attn.v.weight* "
                 "layer.0.ffn.down.bias layer.0.ffn.down.weight* layer.0.ffn.up.bias layer.0.ffn.up.weight* "
                 "layer.0.norm1.bias layer.0.norm1.gain layer.0.norm2.bias layer.0.norm2.gain norm.bias norm.gain ");
    assert_names("model: {layers: 1, width: 8, heads: 2, norm: rms, bias: no, gated: yes, head: linear, tied: no, "
                 "positions: learned, embed_norm: yes}\nattention: {qk_norm: yes}",
                 "embed.norm.gain embed.weight head.bias head.decoder.weight* "
                 "layer.0.attn.k.norm.gain layer.0.attn.k.weight* layer.0.attn.out.weight* "
                 "layer.0.attn.q.norm.gain layer.0.attn.q.weight* layer.0.attn.v.weight* "
                 "layer.0.ffn.down.weight* layer.0.ffn.gate.weight* layer.0.ffn.up.weight* "
                 "layer.0.norm1.gain layer.0.norm2.gain norm.gain positions.weight ");
}

static void the_last_norm_stands_behind_norms_before_their_blocks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int has_norm;
    } example[] = {
        {"model: {norm_place: pre}", 1},
        {"model: {norm_place: post}", 0},
        {"model: {norm_place: pre, final_norm: no}", 0},
        {"model: {norm_place: post, final_norm: yes}", 1},
    };
    for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
        built b = build(example[i].text);
        assert_int_equal(ttn_weights_find(b.weights, "norm.gain") >= 0, example[i].has_norm);
        drop(&b);
    }
}

static void a_graph_goes_as_far_as_it_is_asked_to(void **state)
{
    (void)state;
    const ttn_model_use use = plain_use();
    for (int mode = TTN_MODEL_HIDDEN; mode <= TTN_MODEL_WEIGHTED_LOSS; mode++) {
        built b = build_as(NULL, "model: {layers: 1, width: 8, heads: 2}", &use, (ttn_model_mode)mode);
        assert_true(b.model.tokens >= 0 && b.model.hidden >= 0);
        assert_int_equal(b.model.index >= 0, mode >= TTN_MODEL_LOGITS);
        assert_int_equal(b.model.logits >= 0, mode >= TTN_MODEL_LOGITS);
        assert_int_equal(b.model.target >= 0, mode >= TTN_MODEL_LOSS);
        assert_int_equal(b.model.loss >= 0, mode >= TTN_MODEL_LOSS);
        assert_int_equal(b.model.loss_row >= 0, mode >= TTN_MODEL_LOSS);
        assert_int_equal(b.model.weight >= 0, mode == TTN_MODEL_WEIGHTED_LOSS);
        assert_int_equal(ttn_weights_find(b.weights, "head.bias") >= 0, mode >= TTN_MODEL_LOGITS);
        drop(&b);
    }
}

/* ---- attention ---- */

static void kinds_of_layers_are_a_pattern_that_repeats(void **state)
{
    (void)state;
    built b = build("model: {layers: 5, width: 8, heads: 2}\nattention: {kind: none, layers: [exact, none, none]}");
    static const char *const expected[] = {"exact", "none", "none", "exact", "none"};
    for (int l = 0; l < 5; l++)
        assert_string_equal(b.spec->attention[l].kind, expected[l]);
    drop(&b);
    built same = build("model: {layers: 2, width: 8, heads: 2}\nattention: {kind: none}");
    assert_string_equal(same.spec->attention[1].kind, "none");
    drop(&same);
}

/* Whatever else is asked for queries and keys: positions, norms, biases. */
static void without_queries_and_keys_a_model_has_no_parameters_of_them(void **state)
{
    (void)state;
    for (int without = 0; without < 2; without++) {
        char text[160];
        snprintf(text, sizeof text,
                 "model: {layers: 2, width: 8, heads: 2}\nattention: {layers: [none, exact], qk_norm: yes}\n"
                 "none: {qk: %s}",
                 without ? "no" : "yes");
        built b = build(text);
        ttn_error err = {0};
        assert_ok(ttn_graph_check(b.g, &err), &err);
        for (int i = 0; i < ttn_weights_count(b.weights); i++) {
            const char *name = ttn_weights_at(b.weights, i)->name;
            assert_false(without && (strstr(name, "layer.0.attn.q") || strstr(name, "layer.0.attn.k")));
        }
        assert_int_equal(ttn_weights_find(b.weights, "layer.0.attn.q.weight") < 0, without);
        assert_true(ttn_weights_find(b.weights, "layer.0.attn.v.weight") >= 0);
        assert_true(ttn_weights_find(b.weights, "layer.1.attn.k.weight") >= 0);
        drop(&b);
    }
}

static void every_kind_can_be_asked_for_by_name(void **state)
{
    (void)state;
    int n = 0;
    for (int i = 0; ttn_ops[i]; i++) {
        if (!ttn_ops[i]->attention) continue;
        char text[128];
        snprintf(text, sizeof text, "model: {layers: 1, width: 16, heads: 2}\nattention: {kind: %s}",
                 strchr(ttn_ops[i]->name, '_') + 1);
        built b = build(text);
        drop(&b);
        n++;
    }
    const ttn_option *kinds = ttn_option_find(ttn_model_module.row, ttn_model_module.n_row, "attention.kind");
    int n_choice = 0;
    while (kinds->choices[n_choice])
        n_choice++;
    assert_int_equal(n_choice, n + 1); /* and auto */
}

static void auto_is_exact_up_to_a_length_that_stands_in_the_configuration(void **state)
{
    (void)state;
    model_config c = model_config_of(NULL, "attention: {kind: auto, auto_length: 600}");
    ttn_model_use use = plain_use();
    ttn_model_spec *s = NULL;
    ttn_error err = {0};
    use.longest = 600;
    assert_ok(ttn_model_spec_of(c.values, &use, &s, &err), &err);
    assert_string_equal(s->attention[0].kind, "exact");
    ttn_model_spec_destroy(s);
    static const int64_t longer[] = {601, 0}; /* 0: no limit */
    for (int i = 0; i < 2; i++) {
        use.longest = longer[i];
        err = (ttn_error){0};
        const ttn_status status = ttn_model_spec_of(c.values, &use, &s, &err);
        if (ttn_attention_find("favor")) {
            assert_ok(status, &err);
            assert_string_equal(s->attention[0].kind, "favor");
            ttn_model_spec_destroy(s);
        } else {
            assert_fails(status, TTN_EINVAL, &err, "auto asks for 'favor' in layer 0");
        }
    }
    model_config_drop(&c);
}

/* ---- beginnings ---- */

static real *values_of(const built *b, const char *name, int64_t *n)
{
    ttn_error err = {0};
    const int at = ttn_weights_find(b->weights, name);
    if (at < 0) fail_msg("the model has no weight %s", name);
    *n = ttn_desc_numel(&ttn_weights_at(b->weights, at)->desc);
    real *x = ttn_alloc_array(*n, sizeof *x);
    assert_non_null(x);
    assert_ok(ttn_weights_read(b->weights, at, TTN_SLAB_VALUE, x, &err), &err);
    return x;
}

static void expect_deviation(const built *b, const char *name, double expected)
{
    int64_t n = 0;
    real *x = values_of(b, name, &n);
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        square += (double)x[i] * (double)x[i];
    const double got = sqrt(square / (double)n);
    /* four standard errors of a deviation */
    assert_at_most(fabs(got / expected - 1), 4 / sqrt(2 * (double)n), name);
    ttn_free(x);
}

static void expect_constant(const built *b, const char *name, double expected)
{
    int64_t n = 0;
    real *x = values_of(b, name, &n);
    for (int64_t i = 0; i < n; i++)
        if (x[i] != (real)expected) fail_msg("%s begins with %g", name, (double)x[i]);
    ttn_free(x);
}

static void weights_begin_by_rule(void **state)
{
    (void)state;
    ttn_error err = {0};
    built b =
        build("model: {layers: 2, width: 32, heads: 2, init_std: 0.1, init_scaled: yes, tied: no, positions: learned}\n"
              "attention: {qk_norm: yes}");
    assert_ok(ttn_model_init(b.spec, b.weights, 3, &err), &err);
    expect_deviation(&b, "embed.weight", 0.1);
    expect_deviation(&b, "positions.weight", 0.1);
    expect_deviation(&b, "layer.0.attn.q.weight", 0.1);
    expect_deviation(&b, "layer.1.ffn.up.weight", 0.1);
    expect_deviation(&b, "layer.0.attn.out.weight", 0.05); /* / sqrt(2 layers) */
    expect_deviation(&b, "layer.1.ffn.down.weight", 0.05);
    expect_deviation(&b, "head.dense.weight", 0.1);
    expect_deviation(&b, "head.decoder.weight", 0.1);
    expect_constant(&b, "layer.0.norm1.gain", 1);
    expect_constant(&b, "layer.0.ffn.up.bias", 0);
    expect_constant(&b, "layer.0.attn.q.norm.gain", 1);
    expect_constant(&b, "head.bias", 0);
    drop(&b);
}

/* |x|^2 of a query begins as 1 where random features must estimate with it. */
static void normed_queries_begin_as_each_kind_of_attention_needs(void **state)
{
    (void)state;
    ttn_error err = {0};
    built b = build("model: {layers: 3, width: 32, heads: 2}\n"
                    "attention: {qk_norm: yes, layers: [favor, exact, nystrom]}");
    assert_ok(ttn_model_init(b.spec, b.weights, 3, &err), &err);
    expect_constant(&b, "layer.0.attn.q.norm.gain", 0.5); /* D^(-1/4), D = 16 */
    expect_constant(&b, "layer.0.attn.k.norm.gain", 0.5);
    expect_constant(&b, "layer.1.attn.q.norm.gain", 1);
    expect_constant(&b, "layer.2.attn.q.norm.gain", 1);
    drop(&b);
}

static void stored_frequencies_begin_as_the_formula(void **state)
{
    (void)state;
    ttn_error err = {0};
    built b = build("model: {layers: 1, width: 24, heads: 2, rotary_frequencies: stored, rotary_base: 500}");
    assert_ok(ttn_model_init(b.spec, b.weights, 3, &err), &err);
    int64_t n = 0;
    real *x = values_of(&b, "rotary.frequencies", &n);
    assert_int_equal(n, 6);
    for (int64_t j = 0; j < n; j++)
        assert_at_most(fabs((double)x[j] / pow(500, -(double)j / 6) - 1), TTN_REAL_EPS, "a frequency");
    ttn_free(x);
    drop(&b);
}

/* ---- what it computes ---- */

typedef struct {
    uint8_t token[ROWS], target[PICKS];
    int64_t index[PICKS];
    real weight[PICKS];
    ttn_span span[1];
    ttn_feed feed;
} batch;

enum { LENGTH = 30, N_PICK = 12 };

static void fill(batch *b)
{
    *b = (batch){.span = {{.n = LENGTH}}, .feed = {.used = {.rows = LENGTH, .seqs = 1, .picks = N_PICK}}};
    for (int t = 0; t < LENGTH; t++)
        b->token[t] = (uint8_t)(4 + t * 7 % 20);
    for (int p = 0; p < N_PICK; p++) {
        b->index[p] = 2 * p;
        b->target[p] = (uint8_t)(4 + p);
        b->weight[p] = (real)(p % 3);
    }
    b->feed.span = b->span;
}

/* What a run leaves; room for the largest. */
typedef struct {
    real logits[PICKS * 33], hidden[ROWS * 16], loss_row[PICKS];
    double sum, count;
} result;

static void run(const built *b, const batch *x, result *r)
{
    ttn_error err = {0};
    ttn_plan *p;
    const int keep[] = {b->model.logits, b->model.hidden, b->model.loss_row};
    const ttn_plan_options o = {.keep = keep, .n_keep = 3, .stat = &b->model.loss, .n_stat = 1};
    assert_ok(ttn_plan_create(b->g, &o, &p, &err), &err);
    assert_ok(ttn_plan_attach(p, b->weights, &err), &err);
    assert_ok(ttn_plan_bind(p, "tokens", x->token, &err), &err);
    assert_ok(ttn_plan_bind(p, "index", x->index, &err), &err);
    assert_ok(ttn_plan_bind(p, "target", x->target, &err), &err);
    if (b->model.weight >= 0) assert_ok(ttn_plan_bind(p, "weight", x->weight, &err), &err);
    assert_ok(ttn_plan_run(p, &x->feed, NULL, &err), &err);
    assert_ok(ttn_plan_read(p, b->model.logits, r->logits, &err), &err);
    assert_ok(ttn_plan_read(p, b->model.hidden, r->hidden, &err), &err);
    assert_ok(ttn_plan_read(p, b->model.loss_row, r->loss_row, &err), &err);
    int n = 0;
    const double *stat = ttn_plan_stat(p, b->model.loss, &n);
    r->sum = stat[0];
    r->count = stat[1];
    ttn_plan_destroy(p);
}

static int same_bits(const void *a, const void *b, size_t n)
{
    return memcmp(a, b, n) == 0;
}

static void weights_of_losses_are_in_their_sum_and_count(void **state)
{
    (void)state;
    ttn_error err = {0};
    const ttn_model_use use = plain_use();
    built b = build_as(NULL, "model: {layers: 1, width: 16, heads: 2, init_std: 0.3}", &use, TTN_MODEL_WEIGHTED_LOSS);
    assert_ok(ttn_model_init(b.spec, b.weights, 3, &err), &err);
    batch x;
    static result r;
    fill(&x);
    run(&b, &x, &r);
    double sum = 0;
    double count = 0;
    for (int p = 0; p < N_PICK; p++) {
        sum += (double)(x.weight[p] * r.loss_row[p]);
        count += (double)x.weight[p];
    }
    assert_true(r.count == count);
    assert_at_most(fabs(r.sum / sum - 1), 8 * TTN_REAL_EPS, "the sum");
    drop(&b);
}

static void what_comes_later_changes_nothing_in_a_causal_model(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_model_use use = plain_use();
    static result before;
    static result after;
    batch x;
    for (int causal = 0; causal < 2; causal++) {
        use.causal = causal;
        built b = build_as(NULL, "model: {layers: 2, width: 16, heads: 2, init_std: 0.3}", &use, TTN_MODEL_LOSS);
        assert_ok(ttn_model_init(b.spec, b.weights, 3, &err), &err);
        fill(&x);
        run(&b, &x, &before);
        enum { CHANGED = 20 };
        x.token[CHANGED] = (uint8_t)(x.token[CHANGED] == 4 ? 5 : 4);
        run(&b, &x, &after);
        const int is_same = same_bits(before.hidden, after.hidden, (size_t)CHANGED * 16 * sizeof(real));
        assert_int_equal(is_same, causal);
        assert_false(same_bits(before.hidden, after.hidden, sizeof before.hidden));
        drop(&b);
    }
}

/* A norm forgets how long queries were. */
static void with_qk_norm_the_scale_of_queries_does_not_matter(void **state)
{
    (void)state;
    ttn_error err = {0};
    static result before;
    static result after;
    batch x;
    fill(&x);
    for (int norm = 0; norm < 2; norm++) {
        built b = build(norm ? "model: {layers: 1, width: 16, heads: 2, init_std: 0.5}\nattention: {qk_norm: yes}"
                             : "model: {layers: 1, width: 16, heads: 2, init_std: 0.5}");
        assert_ok(ttn_model_init(b.spec, b.weights, 3, &err), &err);
        run(&b, &x, &before);
        real *w = ttn_weights_address(b.weights, ttn_weights_find(b.weights, "layer.0.attn.q.weight"), TTN_SLAB_VALUE);
        for (int i = 0; i < 16 * 16; i++)
            w[i] *= 3;
        run(&b, &x, &after);
        double worst = 0;
        for (int i = 0; i < LENGTH * 16; i++)
            worst = fmax(worst, fabs((double)before.hidden[i] - (double)after.hidden[i]));
        if (norm)
            assert_at_most(worst, 1e-5, "a difference"); /* the 1e-6 beside the mean square of queries of about 1 */
        else
            assert_true(worst > 1e-2);
        drop(&b);
    }
}

/* A layer whose queries and keys are normed, |x|^2 = gain^2 D^(1/2), as `kind` computes it: (LENGTH, 16). */
static void run_normed(const char *kind, double gain, real *ret)
{
    ttn_error err = {0};
    static result r;
    char text[256];
    batch x;
    fill(&x);
    snprintf(text, sizeof text,
             "model: {layers: 1, width: 16, heads: 2, init_std: 0.5}\n"
             "attention: {qk_norm: yes, kind: %s}\nfavor: {features: 8192}",
             kind);
    built b = build(text);
    assert_ok(ttn_model_init(b.spec, b.weights, 3, &err), &err);
    assert_ok(ttn_renew(b.g, b.weights, 7, 0, NULL, &err), &err);
    static const char *const names[] = {"layer.0.attn.q.norm.gain", "layer.0.attn.k.norm.gain"};
    for (int i = 0; i < 2; i++) {
        real *g = ttn_weights_address(b.weights, ttn_weights_find(b.weights, names[i]), TTN_SLAB_VALUE);
        for (int h = 0; h < 2; h++)
            g[h] = (real)gain;
    }
    run(&b, &x, &r);
    memcpy(ret, r.hidden, LENGTH * 16 * sizeof *ret);
    drop(&b);
}

static double squared_distance(const real *a, const real *b)
{
    double sum = 0;
    for (int i = 0; i < LENGTH * 16; i++)
        sum += pow((double)a[i] - (double)b[i], 2);
    return sum;
}

/* Softmax attention is met by its estimate with 8,192 features, and both know more than the mean (gain 0: all weights are
 * one). |x|^2 is 1.8. With seeds of the draw from 7 to 12 the error is 0.015 to 0.040 of that of the mean. Were the gain 0.6
 * for one of the two, it would be 0.24 (1.13: 0.45). */
static void random_features_estimate_the_softmax_of_normed_queries(void **state)
{
    (void)state;
    static real exact[LENGTH * 16];
    static real estimate[LENGTH * 16];
    static real mean[LENGTH * 16];
    run_normed("exact", 0.8, exact);
    run_normed("favor", 0.8, estimate);
    run_normed("exact", 0, mean);
    const double error = squared_distance(estimate, exact) / squared_distance(mean, exact);
    print_message("# error of the estimate over that of the mean: %.4f\n", error);
    assert_at_most(error, 0.1, "error of the estimate over that of the mean");
}

/* The op of a node in the plan of a model. */
static void expect_op(const char *text, const char *node, const char *op)
{
    ttn_error err = {0};
    built b = build(text);
    ttn_plan *p;
    const ttn_plan_options o = {.keep = &b.model.logits, .n_keep = 1};
    assert_ok(ttn_plan_create(b.g, &o, &p, &err), &err);
    const ttn_plan_report *r = ttn_plan_report_of(p);
    int at = 0;
    while (at < r->n_step && strcmp(r->step[at].node, node) != 0)
        at++;
    if (at == r->n_step) fail_msg("no step of %s", node);
    assert_string_equal(r->step[at].op, op);
    ttn_plan_destroy(p);
    drop(&b);
}

/* What a published model computes whose num_landmarks is its segment_means_seq_len: softmax attention, and the convolution, of
 * any length. Sequences of at most 30 residues have it with 30 landmarks, too. */
static void no_landmarks_are_exact_attention_with_the_convolution(void **state)
{
    (void)state;
    static const char *const settings[] = {"landmarks: 0, conv: 5", "landmarks: 30, conv: 5", "landmarks: 0, conv: 0",
                                           "landmarks: 8, conv: 5"};
    static result r[4];
    ttn_error err = {0};
    batch x;
    fill(&x);
    for (int i = 0; i < 4; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "model: {layers: 2, width: 16, heads: 2, init_std: 0.5}\nattention: {kind: nystrom}\nnystrom: {%s}",
                 settings[i]);
        built b = build(text);
        assert_ok(ttn_model_init(b.spec, b.weights, 3, &err), &err);
        for (int l = 0; l < 2 && i != 2; l++) { /* of the width that values have */
            const int at = ttn_weights_find(b.weights, l ? "layer.1.attn.conv.weight" : "layer.0.attn.conv.weight");
            real *kernel = ttn_weights_address(b.weights, at, TTN_SLAB_VALUE);
            for (int e = 0; e < 2 * 5; e++)
                kernel[e] = (real)(e + 1) / 10;
        }
        run(&b, &x, &r[i]);
        drop(&b);
    }
    const double size = squared_distance(r[0].hidden, r[2].hidden);
    assert_true(size > 1); /* the convolution is there */
    assert_at_most(squared_distance(r[0].hidden, r[1].hidden) / size, 1e-10, "0 and 30 landmarks");
    assert_true(squared_distance(r[0].hidden, r[3].hidden) / size > 1e-4);
    expect_op("model: {layers: 1, width: 16, heads: 2}\nattention: {kind: nystrom}\nnystrom: {landmarks: 0}",
              "layer.0.attn.core", "attn_exact");
}

static void the_head_of_bert_has_the_models_activation_and_that_of_esm_gelu(void **state)
{
    (void)state;
    expect_op("model: {layers: 1, width: 16, heads: 2, activation: relu, head: esm}", "head.activation", "gelu");
    expect_op("model: {layers: 1, width: 16, heads: 2, activation: relu, head: bert}", "head.activation", "relu");
    expect_op("model: {layers: 1, width: 16, heads: 2, activation: silu, head: bert}", "head.activation", "silu");
    expect_op("model: {layers: 1, width: 16, heads: 2, activation: gelu-tanh, head: bert}", "head.activation", "gelu");
}

static void drop_out_is_of_embeddings_too(void **state)
{
    (void)state;
    ttn_error err = {0};
    static result still;
    static result moved;
    batch x;
    fill(&x);
    built b = build("model: {layers: 1, width: 16, heads: 2, init_std: 0.3, dropout: 0.4}");
    assert_ok(ttn_model_init(b.spec, b.weights, 3, &err), &err);
    int has_node = 0;
    for (int v = 0; strcmp(ttn_name_of_value(b.g, v), "?") != 0; v++)
        has_node |= strcmp(ttn_name_of_value(b.g, v), "embed.dropout") == 0;
    assert_true(has_node);
    run(&b, &x, &still);
    x.feed.training = 1;
    run(&b, &x, &moved);
    assert_false(same_bits(still.hidden, moved.hidden, sizeof still.hidden));
    drop(&b);
}

/* ---- what cannot be ---- */

static void impossible_models_are_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
        int causal;
        int64_t positions;
    } example[] = {
        {"model: {width: 30, heads: 4}", "model.heads: 4 heads do not divide model.width, 30: the nearest width", 0, 0},
        {"model: {width: 15, heads: 3}",
         "rotary turns pairs of channels, and heads have 5 (model.width 15 / model.heads 3)", 0, 0},
        {"model: {token_dropout: yes}", "predicts next residues sees none: set it to no", 1, 0},
        {"model: {positions: learned, max_positions: 100}",
         "a table of 100 positions, and sequences that reach position 100", 0, 101},
        {"model: {layers: 2}\nattention: {layers: [none, none, none]}",
         "attention.layers has 3 kinds, and model.layers is 2", 0, 0},
        {"attention: {kind: nystrom, dropout: 0.1}", "no layer has weights to drop: attention of the kind 'nystrom'", 0,
         0},
        {"attention: {layers: [favor, none], dropout: 0.1}",
         "attention.dropout is 0.1, and no layer has weights to drop", 0, 0},
    };
    for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
        model_config c = model_config_of(NULL, example[i].text);
        ttn_model_use use = plain_use();
        use.causal = example[i].causal;
        use.positions = example[i].positions;
        ttn_model_spec *s = NULL;
        ttn_error err = {0};
        assert_fails(ttn_model_spec_of(c.values, &use, &s, &err), TTN_EINVAL, &err, example[i].words);
        assert_null(s);
        model_config_drop(&c);
    }
}

static void other_models_at_those_edges_are_fine(void **state)
{
    (void)state;
    ttn_model_use use = plain_use();
    use.positions = 100;
    static const char *const text[] = {
        "model: {width: 15, heads: 3, positions: none}",
        "model: {width: 15, heads: 3, positions: sinusoid}",
        "model: {positions: learned, max_positions: 100}",
        "model: {layers: 2}\nattention: {layers: [none, none]}",
        "model: {layers: 2}\nattention: {layers: [nystrom, exact], dropout: 0.1}",
    };
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        built b = build_as(NULL, text[i], &use, TTN_MODEL_LOSS);
        drop(&b);
    }
}

static void more_heads_than_channels_are_told_with_their_place(void **state)
{
    (void)state;
    ttn_config_table *t = NULL;
    ttn_config *c = NULL;
    ttn_error err = {0};
    const char text[] = "model:\n  width: 4\n  heads: 8\n";
    const ttn_config_file file = {.path = "run.yaml", .text = text, .n = sizeof text - 1};
    assert_ok(ttn_config_table_of_titin(&t, &err), &err);
    assert_fails(ttn_config_load(t, &(ttn_config_request){.file = &file, .n_file = 1}, &c, &err), TTN_EINVAL, &err,
                 "run.yaml:3:10: model.heads: 8 is more than model.width: 4 (run.yaml:2)");
    ttn_config_destroy(c);
    ttn_config_table_destroy(t);
}

static void what_attention_does_not_have_yet_is_told_with_what_to_take(void **state)
{
    (void)state;
    static const char *const example[][2] = {
        {"favor.kernel=oprf", "favor.kernel: 'oprf' is not there yet: hyperbolic"},
        {"favor.kernel=learned", "favor.kernel: 'learned' is not there yet: positive"},
        {"favor.window=64", "the key 'favor.window' is not there yet: "},
        {"favor.windows=64", "there is no key 'favor.windows'"},
    };
    ttn_config_table *t = NULL;
    ttn_error err = {0};
    assert_ok(ttn_config_table_of_titin(&t, &err), &err);
    for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
        ttn_config *c = NULL;
        err = (ttn_error){0};
        const ttn_config_request r = {.argument = &example[i][0], .n_argument = 1};
        assert_fails(ttn_config_load(t, &r, &c, &err), TTN_EINVAL, &err, example[i][1]);
        ttn_config_destroy(c);
    }
    ttn_config_table_destroy(t);
}

/* Once a model, whatever its layers; nothing where sums of weights are above 0 or not divided by, or as published. */
static void features_of_either_sign_are_noted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int notes;
    } example[] = {
        {"model: {layers: 3}\nattention: {layers: [exact, favor, favor]}\nfavor: {kernel: tanh}", 1},
        {"model: {layers: 2}\nattention: {kind: favor}\nfavor: {kernel: identity}", 1},
        {"model: {layers: 2}\nattention: {kind: favor}\nfavor: {kernel: tanh, renormalize: rms}", 0},
        {"model: {layers: 2}\nattention: {kind: favor}\nfavor: {kernel: tanh, compat: google}", 0},
        {"model: {layers: 2}\nattention: {kind: favor}\nfavor: {kernel: relu}", 0},
        {"model: {layers: 2}\nattention: {kind: exact}\nfavor: {kernel: tanh}", 0},
    };
    for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
        built b = build(example[i].text);
        int n = 0;
        for (int64_t l = 0; l < b.spec->layers; l++) {
            const char *note = ttn_model_note(b.spec, l);
            if (!note) continue;
            assert_contains(note, "with favor.renormalize: rms");
            n++;
        }
        assert_int_equal(n, example[i].notes);
        drop(&b);
    }
}

static void no_memory_is_a_message(void **state)
{
    (void)state;
    model_config c = model_config_of(NULL, "model: {layers: 2}");
    const ttn_model_use use = plain_use();
    for (int64_t nth = 1;; nth++) {
        ttn_model_spec *s = NULL;
        ttn_error err = {0};
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, 0, 0);
        const ttn_status status = ttn_model_spec_of(c.values, &use, &s, &err);
        const int hit = shim_was_hit();
        shim_disarm();
        if (!hit) {
            assert_ok(status, &err);
            assert_true(nth > 4); /* the spec, its layers, the attributes of two */
            ttn_model_spec_destroy(s);
            break;
        }
        assert_fails(status, TTN_ENOMEM, &err, "out of memory");
        assert_null(s);
    }
    model_config_drop(&c);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_of_esm2_have_the_published_number_of_parameters),
        cmocka_unit_test(every_preset_is_a_model),
        cmocka_unit_test(feed_forward_blocks_are_as_wide_as_is_usual),
        cmocka_unit_test(parameters_have_the_names_that_files_know),
        cmocka_unit_test(the_last_norm_stands_behind_norms_before_their_blocks),
        cmocka_unit_test(a_graph_goes_as_far_as_it_is_asked_to),
        cmocka_unit_test(kinds_of_layers_are_a_pattern_that_repeats),
        cmocka_unit_test(without_queries_and_keys_a_model_has_no_parameters_of_them),
        cmocka_unit_test(every_kind_can_be_asked_for_by_name),
        cmocka_unit_test(auto_is_exact_up_to_a_length_that_stands_in_the_configuration),
        cmocka_unit_test(weights_begin_by_rule),
        cmocka_unit_test(normed_queries_begin_as_each_kind_of_attention_needs),
        cmocka_unit_test(stored_frequencies_begin_as_the_formula),
        cmocka_unit_test(weights_of_losses_are_in_their_sum_and_count),
        cmocka_unit_test(what_comes_later_changes_nothing_in_a_causal_model),
        cmocka_unit_test(with_qk_norm_the_scale_of_queries_does_not_matter),
        cmocka_unit_test(random_features_estimate_the_softmax_of_normed_queries),
        cmocka_unit_test(no_landmarks_are_exact_attention_with_the_convolution),
        cmocka_unit_test(the_head_of_bert_has_the_models_activation_and_that_of_esm_gelu),
        cmocka_unit_test(drop_out_is_of_embeddings_too),
        cmocka_unit_test(impossible_models_are_refused_with_a_sentence),
        cmocka_unit_test(other_models_at_those_edges_are_fine),
        cmocka_unit_test(more_heads_than_channels_are_told_with_their_place),
        cmocka_unit_test(what_attention_does_not_have_yet_is_told_with_what_to_take),
        cmocka_unit_test(features_of_either_sign_are_noted),
        cmocka_unit_test(no_memory_is_a_message),
    };
    return ttn_test_run(tests);
}
