/* Evaluation at fixed masks: what it says of a sequence depends on that sequence and the weights, and on nothing else. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/rng.h"
#include "core/start.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/harness/tiny.h"
#include "train/evaluate.h"

enum { MOST_THREADS = 3, SEED = 3, N_PROTEIN = 30, LONGEST = 300 };

/* ---- the world of a test ---- */

typedef struct {
    tiny t;
    ttn_sequence_list *list;
    ttn_sequences from;
} world;

static void build(world *w, const char *name, const char *const *setting)
{
    ttn_error err = {0};
    tiny_open(&w->t, in_folder(name), SEED, setting);
    const ttn_alphabet *a = w->t.model->alphabet;
    assert_ok(ttn_sequence_list_create(a, &w->list, &err), &err);
    ttn_rng rng = {.key = SEED};
    for (int i = 0; i < N_PROTEIN; i++) {
        uint8_t token[LONGEST];
        const int64_t n = i == 4 ? 1 : 2 + (int64_t)ttn_rng_next_below(&rng, LONGEST - 2);
        for (int64_t j = 0; j < n; j++)
            token[j] = a->residue[ttn_rng_next_below(&rng, 20)];
        assert_ok(ttn_sequence_list_add(w->list, "protein", token, NULL, n, &err), &err);
    }
    w->from = ttn_sequence_list_view(w->list);
}

static void tear_down(world *w)
{
    ttn_sequence_list_destroy(w->list);
    tiny_close(&w->t);
}

typedef struct {
    int64_t rows, max_seqs, maskings;
    int n_thread;
    const ttn_subset *side;
} way;

/* The result, and the sums of each sequence of the side. */
static ttn_validation_result evaluate(const world *w, way how, ttn_sequence_score *score)
{
    ttn_error err = {0};
    ttn_evaluator *e;
    ttn_validation_result result;
    ttn_evaluator_options o = {
        .model = w->t.model->model,
        .weights = w->t.model->weights,
        .from = &w->from,
        .side = how.side,
        .device = w->t.device,
        .rules = w->t.model->rules,
        .seed = SEED,
        .maskings = how.maskings ? how.maskings : 1,
        .n_thread = how.n_thread ? how.n_thread : 1,
    };
    int64_t count[TTN_MAX_TOKENS] = {0};
    for (int i = 0; i < 20; i++)
        count[w->from.alphabet->residue[i]] = 1 + i;
    ttn_frequencies_of(w->from.alphabet, count, &o.frequencies);
    o.rules.rows = how.rows ? how.rows : 960;
    o.rules.max_seqs = how.max_seqs;
    assert_ok(ttn_batch_capacity_of(&o.rules, &w->from, how.side, &o.capacity, &err), &err);
    assert_ok(ttn_evaluator_create(&o, &e, &err), &err);
    assert_ok(ttn_evaluator_run(e, &result, &err), &err);
    const int64_t n = how.side ? ttn_subset_count(how.side) : w->from.n;
    memcpy(score, ttn_validation_scores(ttn_evaluator_sums(e)), (size_t)n * sizeof *score);
    ttn_evaluator_destroy(e);
    return result;
}

/* ---- what it does not depend on ---- */

static void threads_and_packing_change_no_bit(void **state)
{
    (void)state;
    static const way ways[] = {
        {.n_thread = 3}, {.rows = 480}, {.rows = 2400, .n_thread = 2}, {.max_seqs = 2}, {.rows = 1440, .max_seqs = 1},
    };
    world w;
    build(&w, "packing", NULL);
    ttn_sequence_score first[N_PROTEIN], score[N_PROTEIN];
    const ttn_validation_result result = evaluate(&w, (way){0}, first);
    assert_true(result.hidden.targets > 0 && result.seen.targets > 0);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const ttn_validation_result other = evaluate(&w, ways[i], score);
        assert_same_bits(score, first, sizeof first);
        assert_same_bits(&other, &result, sizeof result);
    }
    tear_down(&w);
}

static void a_sequence_has_the_same_score_among_others(void **state)
{
    (void)state;
    world w;
    ttn_error err = {0};
    ttn_subset *third;
    build(&w, "others", NULL);
    assert_ok(ttn_subset_create(N_PROTEIN, &third, &err), &err);
    for (int64_t i = 0; i < N_PROTEIN; i += 3)
        ttn_subset_add(third, i);
    ttn_subset_close(third);
    ttn_sequence_score all[N_PROTEIN], some[N_PROTEIN];
    evaluate(&w, (way){.maskings = 2}, all);
    evaluate(&w, (way){.maskings = 2, .side = third}, some);
    for (int64_t k = 0; k < N_PROTEIN / 3; k++)
        assert_same_bits(&some[k], &all[3 * k], sizeof *all);
    ttn_subset_destroy(third);
    tear_down(&w);
}

/* ---- what it does depend on ---- */

static void maskings_differ_and_add_up(void **state)
{
    (void)state;
    world w;
    build(&w, "maskings", NULL);
    ttn_sequence_score one[N_PROTEIN], two[N_PROTEIN];
    const ttn_validation_result once = evaluate(&w, (way){0}, one);
    const ttn_validation_result twice = evaluate(&w, (way){.maskings = 2}, two);
    int differ = 0;
    for (int i = 0; i < N_PROTEIN; i++) {
        const int64_t n = one[i].hidden.n + one[i].seen.n;
        assert_int_equal(two[i].hidden.n + two[i].seen.n, 2 * n); /* as many targets each time */
        const double loss = one[i].hidden.loss + one[i].seen.loss;
        differ += n > 3 && fabs(two[i].hidden.loss + two[i].seen.loss - 2 * loss) > 1e-3 * loss;
    }
    assert_true(differ > N_PROTEIN / 2);
    assert_int_equal(twice.hidden.targets + twice.seen.targets, 2 * (once.hidden.targets + once.seen.targets));
    tear_down(&w);
}

static void of_targets_four_fifths_are_hidden(void **state)
{
    (void)state;
    world w;
    build(&w, "shares", NULL);
    ttn_sequence_score score[N_PROTEIN];
    const ttn_validation_result r = evaluate(&w, (way){.maskings = 4}, score);
    const double n = (double)(r.hidden.targets + r.seen.targets), share = (double)r.hidden.targets / n;
    assert_at_most(fabs(share - 0.8), 4 * sqrt(0.8 * 0.2 / n), "share of hidden targets: four standard deviations");
    tear_down(&w);
}

/* A model of zeros gives each token the same probability. */
static void a_model_that_knows_nothing_has_the_loss_of_its_vocabulary(void **state)
{
    (void)state;
    world w;
    ttn_error err = {0};
    build(&w, "nothing", NULL);
    ttn_weights *weights = w.t.model->weights;
    for (int i = 0; i < ttn_weights_count(weights); i++) {
        const size_t bytes = ttn_weights_at(weights, i)->bytes;
        static const char zeros[1 << 16];
        assert_true(bytes <= sizeof zeros);
        assert_ok(ttn_weights_write(weights, i, TTN_SLAB_VALUE, zeros, &err), &err);
    }
    ttn_sequence_score score[N_PROTEIN];
    const ttn_validation_result r = evaluate(&w, (way){0}, score);
    assert_at_most(fabs(r.hidden.loss.mean - log(33)), 1e-6, "loss of a model of zeros, less ln 33");
    assert_at_most(fabs(r.seen.loss.mean - log(33)), 1e-6, "the same where a residue is seen");
    assert_at_most(r.hidden.accuracy.mean, 0, "its accuracy: of equal tokens it takes the first, which is no residue");
    tear_down(&w);
}

typedef struct {
    int calls;
    double last; /* part that was told */
} asked;

static int stop_at_third(void *ctx, double part)
{
    asked *a = ctx;
    a->calls++;
    assert_true(a->calls == 1 || a->calls == -99 ? part == 0 : part >= a->last);
    a->last = part;
    return a->calls < 3;
}

static void it_can_be_stopped(void **state)
{
    (void)state;
    world w;
    ttn_error err = {0};
    asked a = {0};
    build(&w, "stopped", NULL);
    ttn_evaluator *e;
    ttn_validation_result result;
    ttn_evaluator_options o = {
        .model = w.t.model->model,
        .weights = w.t.model->weights,
        .from = &w.from,
        .device = w.t.device,
        .rules = w.t.model->rules,
        .maskings = 2,
        .n_thread = 1,
        .goes_on = stop_at_third,
        .ctx = &a,
    };
    const int64_t count[TTN_MAX_TOKENS] = {0};
    ttn_frequencies_of(w.from.alphabet, count, &o.frequencies);
    o.rules.rows = 480;
    assert_ok(ttn_batch_capacity_of(&o.rules, &w.from, NULL, &o.capacity, &err), &err);
    assert_ok(ttn_evaluator_create(&o, &e, &err), &err);
    assert_int_equal(ttn_evaluator_run(e, &result, &err), TTN_ESTOPPED);
    assert_int_equal(a.calls, 3);
    assert_true(a.last < 0.5); /* it is of the first of two maskings */
    assert_int_equal(result.hidden.targets, 0);
    a.calls = -100;
    err = (ttn_error){0};
    assert_ok(ttn_evaluator_run(e, &result, &err), &err); /* and begun again */
    assert_true(result.hidden.targets > 0);
    assert_true(a.last == 1);
    ttn_evaluator_destroy(e);
    tear_down(&w);
}

static ttn_evaluator_options options_of(const world *w)
{
    ttn_evaluator_options o = {
        .model = w->t.model->model,
        .weights = w->t.model->weights,
        .from = &w->from,
        .device = w->t.device,
        .rules = w->t.model->rules,
        .maskings = 1,
        .n_thread = 1,
    };
    const int64_t count[TTN_MAX_TOKENS] = {0};
    ttn_error err = {0};
    ttn_frequencies_of(w->from.alphabet, count, &o.frequencies);
    o.rules.rows = 480;
    assert_ok(ttn_batch_capacity_of(&o.rules, &w->from, NULL, &o.capacity, &err), &err);
    return o;
}

/* A mean over nothing is no number: it is refused before anything is computed, whatever is the reason. */
static void an_evaluation_that_counts_nothing_is_refused(void **state)
{
    (void)state;
    static const struct {
        double rate, mask, random;
        int64_t maskings;
        const char *words; /* NULL: there is something */
    } ways[] = {
        {0.15, 0, 1, 1, "mlm.mask=0: no residue is shown as <mask>"},
        {0.15, 0, 0, 4, "mlm.mask=0: no residue is shown as <mask>"},
        {0.001, 0.001, 0.9, 1,
         "of 30 sequences no residue is shown as <mask> (mlm.rate=0.001, mlm.mask=0.001, 1 masking)"},
        {0.15, 0.8, 0.1, 1, NULL},
        {0.001, 1, 0, 1, NULL},
        {0.15, 0.02, 0.9, 8, NULL}, /* in one of the maskings at least */
    };
    world w;
    build(&w, "counts", NULL);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        ttn_evaluator *e = NULL;
        ttn_validation_result result;
        ttn_error err = {0};
        ttn_evaluator_options o = options_of(&w);
        o.rules.mlm.rate = ways[i].rate;
        o.rules.mlm.mask = ways[i].mask;
        o.rules.mlm.random = ways[i].random;
        o.maskings = ways[i].maskings;
        ttn_status status = ttn_evaluator_create(&o, &e, &err);
        if (ways[i].words) {
            assert_fails(status, TTN_EINVAL, &err, ways[i].words);
            assert_null(e);
            continue;
        }
        assert_ok(status, &err);
        assert_ok(ttn_evaluator_run(e, &result, &err), &err);
        assert_true(isfinite(result.hidden.loss.mean));
        ttn_evaluator_destroy(e);
    }
    tear_down(&w);
}

static void losses_that_are_not_finite_are_told_with_the_first_sequence(void **state)
{
    (void)state;
    world w;
    ttn_error err = {0};
    build(&w, "finite", NULL);
    ttn_evaluator *e;
    ttn_validation_result result;
    const ttn_evaluator_options o = options_of(&w);
    assert_ok(ttn_evaluator_create(&o, &e, &err), &err);
    assert_ok(ttn_evaluator_run(e, &result, &err), &err);
    assert_ok(ttn_evaluator_check_finite(e, &err), &err);
    ttn_weights *weights = w.t.model->weights;
    const int i = ttn_weights_count(weights) - 1;
    real huge[1 << 12];
    assert_true(ttn_weights_at(weights, i)->bytes <= sizeof huge);
    for (size_t k = 0; k < sizeof huge / sizeof *huge; k++)
        huge[k] = (real)INFINITY;
    assert_ok(ttn_weights_write(weights, i, TTN_SLAB_VALUE, huge, &err), &err);
    assert_ok(ttn_evaluator_run(e, &result, &err), &err);
    assert_fails(ttn_evaluator_check_finite(e, &err), TTN_ENUMERIC, &err,
                 "the loss of 30 of 30 sequences, first of 'protein'");
    ttn_evaluator_destroy(e);
    tear_down(&w);
}

/* Next-residue prediction: every residue but the first is a target, and what was cut off by no <cls> is none. */
static void next_residues_are_all_targets(void **state)
{
    (void)state;
    static const char *const causal[] = {"train.objective=clm", "model.token_dropout=no", NULL};
    world w;
    build(&w, "causal", causal);
    ttn_sequence_score score[N_PROTEIN], again[N_PROTEIN];
    const ttn_validation_result r = evaluate(&w, (way){0}, score);
    for (int64_t i = 0; i < N_PROTEIN; i++)
        assert_int_equal(score[i].hidden.n, w.from.length(w.from.self, i) + 1); /* and <eos> */
    assert_int_equal(r.seen.targets, 0);
    evaluate(&w, (way){.rows = 1440, .n_thread = 2}, again);
    assert_same_bits(again, score, sizeof score);
    tear_down(&w);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(MOST_THREADS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_and_packing_change_no_bit),
        cmocka_unit_test(a_sequence_has_the_same_score_among_others),
        cmocka_unit_test(maskings_differ_and_add_up),
        cmocka_unit_test(of_targets_four_fifths_are_hidden),
        cmocka_unit_test(a_model_that_knows_nothing_has_the_loss_of_its_vocabulary),
        cmocka_unit_test(it_can_be_stopped),
        cmocka_unit_test(an_evaluation_that_counts_nothing_is_refused),
        cmocka_unit_test(losses_that_are_not_finite_are_told_with_the_first_sequence),
        cmocka_unit_test(next_residues_are_all_targets),
    };
    return ttn_test_run(tests);
}
