/* Training on a few made-up proteins in memory: what a step is, and that nothing but the numbers it should depend on
 * changes a bit of it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/hash.h"
#include "core/memory.h"
#include "core/rng.h"
#include "core/start.h"
#include "tests/harness/test.h"
#include "train/config.h"
#include "train/evaluate.h"
#include "train/trainer.h"

enum { N_PROTEIN = 40, MOST_THREADS = 8, SEED = 5, VALID_EVERY = 5 };

/* ---- the world of a test ---- */

/* What a test may turn; the rest is the same in all. */
typedef struct {
    int64_t rows, shards, epochs;
    int n_thread;
    const char *const *setting; /* "model.dropout=0.1"; NULL at the end; NULL: none */
    void (*before_change)(void *ctx);
    void *ctx;
} way;

typedef struct {
    ttn_config_table *table;
    ttn_config *config;
    ttn_sequence_list *list;
    ttn_sequences from;
    ttn_subset *train, *valid;
    ttn_device *device;
    ttn_model_spec *model;
    ttn_trainer_options options;
    ttn_trainer *t;
} world;

/* Proteins of two kinds of composition, so that there is something to learn, of lengths 20 to 120. */
static void make_proteins(world *w)
{
    ttn_error err = {0};
    const ttn_alphabet *a = ttn_alphabet_find("esm");
    assert_ok(ttn_sequence_list_create(a, &w->list, &err), &err);
    ttn_rng rng = {.key = SEED};
    for (int i = 0; i < N_PROTEIN; i++) {
        uint8_t token[120];
        const int64_t n = 20 + (int64_t)ttn_rng_next_below(&rng, 101);
        for (int64_t j = 0; j < n; j++)
            token[j] = a->residue[(i % 2) * 10 + (int64_t)ttn_rng_next_below(&rng, 5)];
        assert_ok(ttn_sequence_list_add(w->list, "protein", token, NULL, n, &err), &err);
    }
    w->from = ttn_sequence_list_view(w->list);
    assert_ok(ttn_subset_create(N_PROTEIN, &w->train, &err), &err);
    assert_ok(ttn_subset_create(N_PROTEIN, &w->valid, &err), &err);
    for (int64_t i = 0; i < N_PROTEIN; i++)
        ttn_subset_add(i % VALID_EVERY == 0 ? w->valid : w->train, i);
    ttn_subset_close(w->train);
    ttn_subset_close(w->valid);
}

enum { MOST_SETTINGS = 16 };

static void configure(world *w, const way *how)
{
    ttn_error err = {0};
    const char *setting[MOST_SETTINGS] = {
        "model.layers=2",    "model.width=24", "model.heads=2",     "model.token_dropout=yes",
        "model.dropout=0.1", "optim.lr=0.01",  "schedule.warmup=3",
    };
    int n = 7;
    for (const char *const *s = how->setting; s && *s; s++)
        setting[n++] = *s;
    assert_ok(ttn_config_table_of_titin(&w->table, &err), &err);
    assert_ok(ttn_config_load(w->table, &(ttn_config_request){.argument = setting, .n_argument = n}, &w->config, &err),
              &err);
}

static void build(world *w, const way *how)
{
    ttn_error err = {0};
    *w = (world){0};
    make_proteins(w);
    configure(w, how);
    const ttn_values *v = ttn_config_values(w->config);
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_trainer_options *o = &w->options;
    assert_ok(ttn_device_cpu(&w->device, &err), &err);
    assert_ok(ttn_model_spec_of(v, &(ttn_model_use){.alphabet = w->from.alphabet}, &w->model, &err), &err);
    assert_ok(ttn_optim_spec_of(v, &o->optim, &err), &err);
    assert_ok(ttn_schedule_of(v, 40, &o->schedule, &err), &err);
    assert_ok(ttn_batch_rules_of(&reader, &o->rules, &err), &err);
    o->rules.rows = how->rows ? how->rows : 960;
    assert_ok(ttn_batch_capacity_of(&o->rules, &w->from, w->train, &o->capacity, &err), &err);
    o->model = w->model;
    o->from = &w->from;
    o->side = w->train;
    o->device = w->device;
    o->seed = SEED;
    o->epochs = how->epochs;
    o->shards = how->shards ? how->shards : 1;
    o->budget = (size_t)1 << 30;
    o->n_thread = how->n_thread ? how->n_thread : 2;
    o->before_change = how->before_change;
    o->ctx = how->ctx;
    assert_ok(ttn_trainer_create(o, &w->t, &err), &err);
}

static void tear_down(world *w)
{
    ttn_trainer_destroy(w->t);
    ttn_model_spec_destroy(w->model);
    ttn_device_destroy(w->device);
    ttn_subset_destroy(w->train);
    ttn_subset_destroy(w->valid);
    ttn_sequence_list_destroy(w->list);
    ttn_config_destroy(w->config);
    ttn_config_table_destroy(w->table);
}

static ttn_step step(world *w)
{
    ttn_error err = {0};
    ttn_step s;
    assert_ok(ttn_trainer_step(w->t, &s, &err), &err);
    return s;
}

/* Batches of an epoch. */
static int64_t batches_of(const world *w, int64_t epoch)
{
    ttn_error err = {0};
    const ttn_trainer_options *o = &w->options;
    ttn_sampler *s;
    assert_ok(ttn_sampler_create(
                  &(ttn_sampler_options){
                      .from = o->from, .side = o->side, .rules = o->rules, .capacity = o->capacity, .seed = o->seed},
                  &s, &err),
              &err);
    const int64_t n = ttn_sampler_count(s, epoch);
    ttn_sampler_destroy(s);
    return n;
}

/* Slabs of parameters, host memory on the CPU. */
static real *slab(const world *w, ttn_slab which)
{
    return ttn_weights_slab(ttn_trainer_weights(w->t), which);
}

static int64_t slab_length(const world *w)
{
    return ttn_weights_slab_elements(ttn_trainer_weights(w->t));
}

/* One number for weights and both moments. */
static uint64_t hash(const world *w)
{
    const ttn_slab which[] = {TTN_SLAB_VALUE, TTN_SLAB_M, TTN_SLAB_V};
    uint64_t h = 0;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        h = ttn_hash64(slab(w, which[i]), (size_t)slab_length(w) * sizeof(real), h);
    return h;
}

/* ---- steps ---- */

static void the_loss_goes_down(void **state)
{
    (void)state;
    world w;
    build(&w, &(way){0});
    const double first = step(&w).loss;
    ttn_step last = {0};
    for (int i = 1; i < 30; i++)
        last = step(&w);
    /* It begins as one that knows nothing, of 33 tokens, and soon knows that there are two kinds of five residues each. */
    assert_at_most(fabs(first - log(33)), 0.2, "loss of the first step beside ln V");
    assert_at_most(last.loss, log(10), "loss after 30 steps beside that of ten equally frequent residues");
    assert_int_equal(last.step, 29);
    assert_int_equal(ttn_trainer_where(w.t).steps, 30);
    tear_down(&w);
}

static void any_number_of_threads_has_the_same_bits(void **state)
{
    (void)state;
    const int threads[] = {1, 2, 3, 5, 8};
    uint64_t first = 0;
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        world w;
        build(&w, &(way){.n_thread = threads[i], .shards = 2, .rows = 480});
        double loss = 0;
        for (int s = 0; s < 5; s++)
            loss += step(&w).loss;
        const uint64_t now = ttn_hash64(&loss, sizeof loss, hash(&w));
        if (i == 0) first = now;
        assert_int_equal(now, first);
        tear_down(&w);
    }
}

/* An epoch in one step, as one batch, or two, or four, or eight, of which the last may be empty: dropout and masks are
 * functions of the sample, so sums differ in their order alone. */
static void one_batch_is_two_micro_batches_is_eight(void **state)
{
    (void)state;
    const int64_t rows[] = {3840, 1920, 960, 480}, shards[] = {1, 2, 4, 8};
    real *weights = NULL;
    ttn_step whole = {0};
    for (int i = 0; i < 4; i++) {
        world w;
        build(&w, &(way){.rows = rows[i], .shards = shards[i], .epochs = 1});
        const int64_t batches = batches_of(&w, 0);
        assert_true(batches > shards[i] / 2 && batches <= shards[i]);
        const ttn_step s = step(&w);
        const int64_t n = slab_length(&w);
        if (i == 0) {
            whole = s;
            weights = ttn_alloc_array(n, sizeof *weights);
            memcpy(weights, slab(&w, TTN_SLAB_GRADIENT), (size_t)n * sizeof *weights);
        } else {
            double worst = 0, largest = 0;
            for (int64_t j = 0; j < n; j++) {
                worst = fmax(worst, fabs((double)(slab(&w, TTN_SLAB_GRADIENT)[j] - weights[j])));
                largest = fmax(largest, fabs((double)weights[j]));
            }
            /* some hundred terms, summed in another order */
            const double bound = sizeof(real) == 8 ? 1e-12 : 2e-5;
            assert_at_most(worst, bound * largest, "gradients of micro-batches beside those of a batch");
            assert_at_most(fabs(s.loss - whole.loss), bound * whole.loss, "their loss");
            assert_int_equal(s.targets, whole.targets);
            assert_int_equal(s.residues, whole.residues);
        }
        tear_down(&w);
    }
    ttn_free(weights);
}

static void the_end_of_the_epochs_is_the_end(void **state)
{
    (void)state;
    world w;
    ttn_error err = {0};
    build(&w, &(way){.rows = 480, .shards = 4, .epochs = 2});
    const int64_t batches = batches_of(&w, 0) + batches_of(&w, 1);
    int64_t steps = 0, residues = 0;
    ttn_step s;
    ttn_status status;
    while ((status = ttn_trainer_step(w.t, &s, &err)) == TTN_OK) {
        steps++;
        residues += s.residues;
    }
    assert_int_equal(status, TTN_EOF);
    assert_int_equal(steps, (batches + 3) / 4);
    /* Every residue of the training side twice: also where the last step is filled up with empty batches. */
    assert_int_equal(residues, 2 * w.options.capacity.residues);
    assert_int_equal(ttn_trainer_where(w.t).residues, residues);
    assert_int_equal(ttn_trainer_step(w.t, &s, NULL), TTN_EOF);
    assert_int_equal(ttn_trainer_where(w.t).steps, steps);
    tear_down(&w);
}

/* ---- going on ---- */

static void copy_weights(const world *from, world *to)
{
    const ttn_slab which[] = {TTN_SLAB_VALUE, TTN_SLAB_M, TTN_SLAB_V};
    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        memcpy(slab(to, which[i]), slab(from, which[i]), (size_t)slab_length(from) * sizeof(real));
}

/* At every step of the first two epochs, in the middle of one and at its end; with another number of threads. */
static void going_on_has_the_same_bits_from_any_step(void **state)
{
    (void)state;
    enum { STEPS = 8 };
    const way how = {.rows = 480, .shards = 2};
    const way other = {.rows = 480, .shards = 2, .n_thread = 3};
    world whole;
    build(&whole, &how);
    uint64_t end = 0;
    for (int i = 0; i < STEPS; i++)
        step(&whole);
    end = hash(&whole);
    tear_down(&whole);
    for (int cut = 0; cut < STEPS; cut++) {
        world before, after;
        ttn_error err = {0};
        build(&before, &how);
        for (int i = 0; i < cut; i++)
            step(&before);
        build(&after, &other);
        copy_weights(&before, &after);
        const ttn_trainer_state at = ttn_trainer_where(before.t);
        assert_ok(ttn_trainer_go_on(after.t, &at, &err), &err);
        tear_down(&before);
        for (int i = cut; i < STEPS; i++)
            step(&after);
        assert_int_equal(hash(&after), end);
        tear_down(&after);
    }
}

static void going_on_with_other_data_is_refused(void **state)
{
    (void)state;
    world w, other;
    ttn_error err = {0};
    build(&w, &(way){.rows = 480});
    build(&other, &(way){.rows = 960});
    step(&w);
    const ttn_trainer_state at = ttn_trainer_where(w.t);
    assert_fails(ttn_trainer_go_on(other.t, &at, &err), TTN_EINVAL, &err, "");
    tear_down(&w);
    tear_down(&other);
}

/* ---- what is not finite ---- */

/* Values of a weight that no norm hides. */
static void poison(world *w, const char *name, real value)
{
    ttn_error err = {0};
    ttn_weights *weights = ttn_trainer_weights(w->t);
    const int i = ttn_weights_find(weights, name);
    assert_true(i >= 0);
    real *address = ttn_weights_address(weights, i, TTN_SLAB_VALUE);
    address[0] = value;
    (void)err;
}

static void a_step_that_is_not_finite_changes_nothing_and_is_counted(void **state)
{
    (void)state;
    world w;
    ttn_error err = {0}, why = {0};
    build(&w, &(way){.rows = 480, .shards = 2});
    const int64_t seen = step(&w).residues;
    poison(&w, "layer.1.ffn.up.bias", (real)NAN);
    const uint64_t before = hash(&w);
    const ttn_step s = step(&w);
    assert_true(s.is_skipped);
    assert_int_equal(s.step, 1);
    assert_int_equal(hash(&w), before);
    ttn_trainer_state at = ttn_trainer_where(w.t);
    assert_int_equal(at.steps, 2);
    assert_int_equal(at.skipped, 1);
    assert_int_equal(at.in_a_row, 1);
    assert_int_equal(at.residues, seen + s.residues); /* its place in the data is behind them */
    int64_t shard;
    assert_ok(ttn_trainer_trap(w.t, &s, &shard, &why, &err), &err);
    assert_int_equal(shard, 0);
    assert_contains(why.text, "layer.1.ffn");
    poison(&w, "layer.1.ffn.up.bias", 0);
    assert_false(step(&w).is_skipped);
    at = ttn_trainer_where(w.t);
    assert_int_equal(at.skipped, 1);
    assert_int_equal(at.in_a_row, 0);
    tear_down(&w);
}

/* The step behind one that was skipped is the one that would have come first: the moments have seen as many. */
static void moments_do_not_count_what_was_skipped(void **state)
{
    (void)state;
    world w, twin;
    ttn_error err = {0};
    build(&w, &(way){.rows = 480});
    build(&twin, &(way){.rows = 480});
    poison(&w, "norm.gain", (real)INFINITY);
    assert_true(step(&w).is_skipped);
    poison(&w, "norm.gain", 1);
    /* The twin has never seen the bad step; it makes the second one as its first update. */
    ttn_trainer_state at = ttn_trainer_where(w.t);
    assert_ok(ttn_trainer_go_on(twin.t, &at, &err), &err);
    step(&w);
    step(&twin);
    assert_int_equal(hash(&w), hash(&twin));
    real largest = 0;
    for (int64_t i = 0; i < slab_length(&w); i++)
        largest = (real)fmax((double)largest, fabs((double)slab(&w, TTN_SLAB_M)[i]));
    assert_true(largest > 0);
    tear_down(&w);
    tear_down(&twin);
}

/* The first update of AdamW moves a weight by the learning rate, whatever its gradient is, since means are divided by what
 * they lack of so young; when two updates were counted it would be by 0.74 of it. */
static void the_first_update_behind_a_skipped_step_is_the_first(void **state)
{
    (void)state;
    world w;
    static const char bias[] = "layer.1.ffn.up.bias"; /* without decay */
    build(&w, &(way){.rows = 480});
    poison(&w, "norm.gain", (real)INFINITY);
    assert_true(step(&w).is_skipped);
    poison(&w, "norm.gain", 1);
    ttn_weights *weights = ttn_trainer_weights(w.t);
    const int i = ttn_weights_find(weights, bias);
    const real *value = ttn_weights_address(weights, i, TTN_SLAB_VALUE);
    const int64_t n = ttn_desc_numel(&ttn_weights_at(weights, i)->desc);
    double largest = 0;
    for (int64_t k = 0; k < n; k++)
        assert_true(value[k] == 0);
    const ttn_step s = step(&w);
    for (int64_t k = 0; k < n; k++)
        largest = fmax(largest, fabs((double)value[k]));
    assert_true(fabs(largest / s.lr - 1) < 1e-3); /* eps beside a small gradient */
    tear_down(&w);
}

/* ---- who reads the weights ---- */

typedef struct {
    world *w;
    uint64_t seen;
    int calls;
} reader;

static void look(void *ctx)
{
    reader *r = ctx;
    r->calls++;
    r->seen = hash(r->w);
}

static void whoever_reads_the_weights_is_waited_for_before_they_change(void **state)
{
    (void)state;
    world w;
    reader r = {.w = &w};
    build(&w, &(way){.before_change = look, .ctx = &r});
    for (int i = 0; i < 3; i++) {
        const uint64_t before = hash(&w);
        step(&w);
        assert_int_equal(r.calls, i + 1);
        assert_int_equal(r.seen, before);
        assert_int_not_equal(hash(&w), before);
    }
    tear_down(&w);
}

/* ---- evaluation ---- */

static void evaluate(world *w, int64_t rows, int64_t maskings, int n_thread, ttn_validation_result *ret)
{
    ttn_error err = {0};
    ttn_evaluator_options o = {
        .model = w->model,
        .weights = ttn_trainer_weights(w->t),
        .from = &w->from,
        .side = w->valid,
        .device = w->device,
        .memory = rows == w->options.rules.rows ? ttn_trainer_memory(w->t) : NULL,
        .rules = w->options.rules,
        .seed = SEED,
        .maskings = maskings,
        .n_thread = n_thread,
    };
    int64_t count[TTN_MAX_TOKENS] = {0};
    for (int i = 0; i < 20; i++)
        count[w->from.alphabet->residue[i]] = 1;
    ttn_frequencies_of(w->from.alphabet, count, &o.frequencies);
    o.rules.rows = rows;
    o.rules.max_seqs = w->options.capacity.extent.seqs;
    assert_ok(ttn_batch_capacity_of(&o.rules, &w->from, w->valid, &o.capacity, &err), &err);
    ttn_evaluator *e;
    assert_ok(ttn_evaluator_create(&o, &e, &err), &err);
    assert_ok(ttn_evaluator_run(e, ret, &err), &err);
    ttn_evaluator_destroy(e);
}

static void evaluation_depends_on_weights_alone(void **state)
{
    (void)state;
    world w;
    build(&w, &(way){0});
    for (int i = 0; i < 5; i++)
        step(&w);
    ttn_validation_result first, again, packed;
    evaluate(&w, 960, 2, 2, &first);
    evaluate(&w, 960, 2, 3, &again);
    assert_same_bits(&first, &again, sizeof first);
    evaluate(&w, 480, 2, 2, &packed);
    /* Other plans: the same numbers to rounding. */
    assert_int_equal(first.hidden.targets, packed.hidden.targets);
    assert_at_most(fabs(first.hidden.loss.mean - packed.hidden.loss.mean), 1e-5, "loss in another packing");
    assert_int_equal(first.hidden.sequences, ttn_subset_count(w.valid));
    assert_true(first.seen.targets > 0);
    /* Training goes on as if nobody had looked. */
    world twin;
    build(&twin, &(way){0});
    for (int i = 0; i < 5; i++)
        step(&twin);
    step(&w);
    step(&twin);
    assert_int_equal(hash(&w), hash(&twin));
    tear_down(&twin);
    tear_down(&w);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(MOST_THREADS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_goes_down),
        cmocka_unit_test(any_number_of_threads_has_the_same_bits),
        cmocka_unit_test(one_batch_is_two_micro_batches_is_eight),
        cmocka_unit_test(the_end_of_the_epochs_is_the_end),
        cmocka_unit_test(going_on_has_the_same_bits_from_any_step),
        cmocka_unit_test(going_on_with_other_data_is_refused),
        cmocka_unit_test(a_step_that_is_not_finite_changes_nothing_and_is_counted),
        cmocka_unit_test(moments_do_not_count_what_was_skipped),
        cmocka_unit_test(the_first_update_behind_a_skipped_step_is_the_first),
        cmocka_unit_test(whoever_reads_the_weights_is_waited_for_before_they_change),
        cmocka_unit_test(evaluation_depends_on_weights_alone),
    };
    return ttn_test_run(tests);
}
