/* How well hidden residues are predicted, and the two baselines beside it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/rng.h"
#include "tests/harness/test.h"
#include "train/validation.h"

static const ttn_alphabet *alphabet;

static uint8_t token_of(char letter)
{
    return alphabet->map[(unsigned char)letter];
}

/* Half of the training set is L, a quarter A, a quarter G. */
static ttn_frequencies three_letters(void)
{
    ttn_frequencies f;
    int64_t count[TTN_MAX_TOKENS] = {0};
    count[token_of('L')] = 2000000;
    count[token_of('A')] = 1000000;
    count[token_of('G')] = 1000000;
    ttn_frequencies_of(alphabet, count, &f);
    return f;
}

static void assert_near(double value, double wanted, const char *what)
{
    assert_at_most(fabs(value - wanted), 1e-12 * (1 + fabs(wanted)), what);
}

/* ---- frequencies ---- */

static void frequencies_are_counts_and_never_nothing(void **state)
{
    (void)state;
    const ttn_frequencies f = three_letters();
    double sum = 0;
    for (int t = 0; t < alphabet->n; t++) {
        assert_true(f.f[t] > 0);
        sum += f.f[t];
    }
    assert_near(sum, 1, "sum");
    assert_at_most(fabs(f.f[token_of('L')] - 0.5), 1e-6, "L");
    assert_at_most(f.f[token_of('W')], 1e-8, "W, never seen");
    assert_true(f.is_letter[token_of('W')] && f.is_letter[token_of('X')]);
    assert_false(f.is_letter[alphabet->mask] || f.is_letter[alphabet->cls]);
}

/* ---- one sequence by hand ---- */

/* <cls> L A <mask> G W <eos>: W stands where an A is; L is a target that is shown as it is. */
static void scores_are_those_made_by_hand(void **state)
{
    (void)state;
    const ttn_frequencies f = three_letters();
    uint8_t token[7] = {alphabet->cls, token_of('L'), token_of('A'), alphabet->mask,
                        token_of('G'), token_of('W'), alphabet->eos};
    ttn_span span = {0, 7};
    const int64_t sequence = 0;
    int64_t row[5] = {1, 3, 5, -1, -1};
    uint8_t target[5] = {token_of('L'), token_of('G'), token_of('A'), 0, 0};
    uint8_t hidden[5] = {0, 1, 0, 1, 1};
    const uint8_t right[5] = {1, 0, 0, 1, 1};
    const real loss[5] = {(real)0.25, 2, 3, 100, 100};
    const ttn_batch b = {.used = {.seqs = 1, .picks = 5},
                         .span = &span,
                         .token = token,
                         .index = row,
                         .target = target,
                         .shown = hidden};
    const ttn_predicted p = {.batch = &b, .sequence = &sequence, .loss = loss, .right = right};
    ttn_validation *v;
    ttn_error err = {0};
    assert_ok(ttn_validation_create(1, &f, &v, &err), &err);
    ttn_validation_add(v, &p);
    const ttn_score *h = &ttn_validation_scores(v)->hidden, *s = &ttn_validation_scores(v)->seen;
    /* What can be seen: L A G W, one each. */
    const double fl = f.f[token_of('L')], fa = f.f[token_of('A')], fg = f.f[token_of('G')];
    assert_int_equal(h->n, 1);
    assert_int_equal(h->right, 0);
    assert_near(h->loss, 2, "hidden: loss");
    assert_near(h->frequency, -log(fg), "hidden: frequency");
    assert_near(h->composition, -log((1 + 30 * fg) / (4 + 30)), "hidden: composition");
    assert_int_equal(s->n, 2);
    assert_int_equal(s->right, 1);
    assert_near(s->loss, 3.25, "seen: loss");
    assert_near(s->frequency, -log(fl) - log(fa), "seen: frequency");
    assert_near(s->composition, -log((1 + 30 * fl) / 34) - log((1 + 30 * fa) / 34), "seen: composition");
    ttn_validation_clear(v);
    assert_int_equal(h->n, 0);
    ttn_validation_destroy(v);
}

/* Next residue: <cls> L L A. Targets: L after <cls>, L after L, A after L L. */
static void the_next_residue_is_predicted_from_those_before_it(void **state)
{
    (void)state;
    const ttn_frequencies f = three_letters();
    uint8_t token[4] = {alphabet->cls, token_of('L'), token_of('L'), token_of('A')};
    ttn_span span = {0, 4};
    const int64_t sequence = 0;
    int64_t row[4] = {0, 1, 2, -1};
    uint8_t target[4] = {token_of('L'), token_of('L'), token_of('A'), 0};
    const uint8_t right[4] = {1, 1, 0, 0};
    const real loss[4] = {1, 1, 1, 0};
    const ttn_batch b = {
        .used = {.seqs = 1, .picks = 4}, .span = &span, .token = token, .index = row, .target = target};
    const ttn_predicted p = {.batch = &b, .sequence = &sequence, .loss = loss, .right = right, .is_causal = 1};
    ttn_validation *v;
    ttn_error err = {0};
    assert_ok(ttn_validation_create(1, &f, &v, &err), &err);
    ttn_validation_add(v, &p);
    const ttn_score *h = &ttn_validation_scores(v)->hidden;
    const double fl = f.f[token_of('L')], fa = f.f[token_of('A')];
    assert_int_equal(h->n, 3);
    assert_int_equal(ttn_validation_scores(v)->seen.n, 0);
    assert_near(h->composition, -log(fl) - log((1 + 30 * fl) / 31) - log(30 * fa / 32), "composition");
    ttn_validation_destroy(v);
}

/* ---- a set of sequences, packed in any way ---- */

enum { SEQS = 60, LONGEST = 40, MOST_ROWS = SEQS * (LONGEST + 12), MASKINGS = 3 };

/* Masking k of sequence i, made of nothing but k and i. */
typedef struct {
    int n, n_pick;
    uint8_t token[LONGEST], target[LONGEST], hidden[LONGEST], right[LONGEST];
    int row[LONGEST];
    real loss[LONGEST];
} masked;

static void make_masked(int i, int k, masked *m)
{
    ttn_rng rng = {.key = ttn_rng_key((uint64_t)i, 0, 0)};
    *m = (masked){.n = 1 + (int)(ttn_rng_next_below(&rng, LONGEST))};
    uint8_t residue[LONGEST];
    for (int j = 0; j < m->n; j++)
        residue[j] = alphabet->residue[ttn_rng_next_below(&rng, 20)];
    rng = (ttn_rng){.key = ttn_rng_key((uint64_t)i, 1, (uint64_t)k)};
    for (int j = 0; j < m->n; j++) {
        m->token[j] = residue[j];
        if (ttn_rng_next_below(&rng, 3) != 0 && m->n > 1) continue;
        const int hide = ttn_rng_next_below(&rng, 10) < 8;
        if (hide) m->token[j] = alphabet->mask;
        m->row[m->n_pick] = j;
        m->target[m->n_pick] = residue[j];
        m->hidden[m->n_pick] = (uint8_t)hide;
        m->right[m->n_pick] = ttn_rng_next_below(&rng, 4) == 0;
        m->loss[m->n_pick] = (real)(2 + (double)ttn_rng_next_below(&rng, 1000) / 700 + i % 7 / 10.0);
        m->n_pick++;
    }
}

/* Sequences [first, end) of masking k as one batch, with gaps between them. */
static void add_batch(ttn_validation *v, int first, int end, int k)
{
    static uint8_t token[MOST_ROWS], target[MOST_ROWS], hidden[MOST_ROWS], right[MOST_ROWS];
    static int64_t row[MOST_ROWS], sequence[SEQS];
    static ttn_span span[SEQS];
    static real loss[MOST_ROWS];
    int n = 0, at = 0, picks = 0;
    for (int i = first; i < end; i++) {
        masked m;
        make_masked(i, k, &m);
        span[n] = (ttn_span){at, m.n};
        sequence[n] = i;
        n++;
        memcpy(token + at, m.token, (size_t)m.n);
        for (int j = 0; j < m.n_pick; j++, picks++) {
            row[picks] = at + m.row[j];
            target[picks] = m.target[j];
            hidden[picks] = m.hidden[j];
            right[picks] = m.right[j];
            loss[picks] = m.loss[j];
        }
        at += m.n;
        while (at % 12) { /* rows and targets of no sequence: none of this counts */
            token[at] = alphabet->residue[0];
            at++;
        }
        while (picks % 12) {
            row[picks] = -1;
            target[picks] = alphabet->residue[1];
            hidden[picks] = 1;
            right[picks] = 1;
            loss[picks] = 1000;
            picks++;
        }
    }
    const ttn_batch b = {.used = {.seqs = n, .picks = picks},
                         .span = span,
                         .token = token,
                         .index = row,
                         .target = target,
                         .shown = hidden};
    const ttn_predicted p = {.batch = &b, .sequence = sequence, .loss = loss, .right = right};
    ttn_validation_add(v, &p);
}

static ttn_validation *new_validation(void)
{
    const ttn_frequencies f = three_letters();
    ttn_validation *v;
    ttn_error err = {0};
    assert_ok(ttn_validation_create(SEQS, &f, &v, &err), &err);
    return v;
}

/* All sequences and maskings, `batch` sequences at a time. */
static ttn_validation_result result_of_batches(int batch)
{
    ttn_validation_result r;
    ttn_validation *v = new_validation();
    for (int k = 0; k < MASKINGS; k++)
        for (int i = 0; i < SEQS; i += batch)
            add_batch(v, i, i + batch < SEQS ? i + batch : SEQS, k);
    ttn_validation_result_of(v, &r);
    ttn_validation_destroy(v);
    return r;
}

static void results_do_not_depend_on_the_packing(void **state)
{
    (void)state;
    const ttn_validation_result whole = result_of_batches(SEQS);
    assert_true(whole.hidden.targets > 500 && whole.seen.targets > 100);
    for (int batch = 1; batch < SEQS; batch += 7) {
        const ttn_validation_result r = result_of_batches(batch);
        assert_same_bits(&r, &whole, sizeof r);
    }
}

static void parts_that_are_merged_are_the_whole(void **state)
{
    (void)state;
    ttn_validation_result r, whole = result_of_batches(SEQS);
    ttn_validation *a = new_validation(), *b = new_validation();
    for (int k = 0; k < MASKINGS; k++) {
        add_batch(a, 0, 23, k);
        add_batch(b, 23, SEQS, k);
    }
    ttn_validation_merge(a, b);
    ttn_validation_result_of(a, &r);
    assert_same_bits(&r, &whole, sizeof r);
    ttn_validation_destroy(a);
    ttn_validation_destroy(b);
}

/* ---- estimates ---- */

static void errors_are_those_of_a_ratio_over_sequences(void **state)
{
    (void)state;
    const ttn_validation_result r = result_of_batches(9);
    double x[SEQS] = {0}, g[SEQS] = {0}, m[SEQS] = {0}, sum = 0, gain = 0, targets = 0, squares = 0, off = 0;
    const ttn_frequencies f = three_letters();
    int n = 0;
    for (int i = 0; i < SEQS; i++)
        for (int k = 0; k < MASKINGS; k++) {
            masked one;
            make_masked(i, k, &one);
            for (int j = 0; j < one.n_pick; j++) {
                if (!one.hidden[j]) continue;
                x[i] += (double)one.loss[j];
                g[i] += -log(f.f[one.target[j]]) - (double)one.loss[j];
                m[i]++;
            }
        }
    for (int i = 0; i < SEQS; i++) {
        sum += x[i];
        gain += g[i];
        targets += m[i];
        n += m[i] > 0;
    }
    for (int i = 0; i < SEQS; i++) {
        squares += pow(x[i] - sum / targets * m[i], 2);
        off += pow(g[i] - gain / targets * m[i], 2);
    }
    assert_int_equal(r.hidden.sequences, n);
    assert_int_equal(r.hidden.targets, (int64_t)targets);
    assert_near(r.hidden.loss.mean, sum / targets, "mean");
    assert_near(r.hidden.loss.error, sqrt(squares * n / (n - 1.0)) / targets, "error");
    assert_near(r.hidden.gain_frequency.mean, r.hidden.frequency.mean - r.hidden.loss.mean, "gain");
    assert_near(r.hidden.gain_frequency.error, sqrt(off * n / (n - 1.0)) / targets, "error of the gain");
}

/* What a standard error means: over many sets of sequences the mean is off by as much. Half of the sequences have one
 * target, half have 20, and those of one are alike: taken target by target the error would be four times too small, and by
 * sequences as if all were as long, a third too small. */
static void errors_are_as_large_as_the_mean_is_off(void **state)
{
    (void)state;
    enum { SET = 100, TARGETS = 20 };
    const int sets = (int)ttn_scaled(400, 200);
    const ttn_frequencies f = three_letters();
    ttn_validation *v;
    ttn_error err = {0};
    ttn_rng rng = {.key = ttn_test_seed()};
    assert_ok(ttn_validation_create(SET, &f, &v, &err), &err);
    double squares = 0, said = 0;
    const double mean = 2.5; /* of every sequence, whatever its length */
    for (int k = 0; k < sets; k++) {
        ttn_validation_clear(v);
        for (int64_t i = 0; i < SET; i++) {
            uint8_t token[TARGETS], target[TARGETS], hidden[TARGETS], right[TARGETS] = {0};
            int64_t row[TARGETS];
            real loss[TARGETS];
            ttn_span span = {0, TARGETS};
            const real of_sequence = (real)(mean + (double)(ttn_rng_next_below(&rng, 2001)) / 1000 - 1);
            const int n = ttn_rng_next_below(&rng, 2) ? TARGETS : 1;
            for (int j = 0; j < TARGETS; j++) {
                token[j] = alphabet->mask;
                target[j] = alphabet->residue[j];
                hidden[j] = 1;
                row[j] = j;
                loss[j] = of_sequence;
            }
            const ttn_batch b = {.used = {.seqs = 1, .picks = n},
                                 .span = &span,
                                 .token = token,
                                 .index = row,
                                 .target = target,
                                 .shown = hidden};
            const ttn_predicted p = {.batch = &b, .sequence = &i, .loss = loss, .right = right};
            ttn_validation_add(v, &p);
        }
        ttn_validation_result r;
        ttn_validation_result_of(v, &r);
        squares += pow(r.hidden.loss.mean - mean, 2);
        said += pow(r.hidden.loss.error, 2);
    }
    ttn_validation_destroy(v);
    /* Both are means over the sets of a square whose relative deviation is sqrt(2 / sets) at most: 0.1 at 200. */
    assert_at_most(fabs(sqrt(squares / said) - 1), 0.2, "how much it is off, beside what was said");
}

static void nothing_to_take_a_mean_of_is_nan(void **state)
{
    (void)state;
    ttn_validation_result r;
    ttn_validation *v = new_validation();
    ttn_validation_result_of(v, &r);
    assert_true(isnan(r.hidden.loss.mean) && isnan(r.seen.accuracy.mean));
    assert_int_equal(r.hidden.targets, 0);
    add_batch(v, 4, 5, 0);
    add_batch(v, 4, 5, 1);
    ttn_validation_result_of(v, &r);
    assert_int_equal(r.hidden.sequences, 1);
    assert_true(isfinite(r.hidden.loss.mean) && isnan(r.hidden.loss.error));
    ttn_validation_destroy(v);
}

static void a_record_has_the_numbers_under_their_names(void **state)
{
    (void)state;
    const ttn_validation_result v = result_of_batches(SEQS);
    ttn_metrics r = {0};
    double value;
    ttn_validation_record(&v, &r);
    const struct {
        const char *name;
        double wanted;
    } cases[] = {{"val/loss", v.hidden.loss.mean},
                 {"val/loss_error", v.hidden.loss.error},
                 {"val/ppl", exp(v.hidden.loss.mean)},
                 {"val/accuracy", v.hidden.accuracy.mean},
                 {"val/accuracy_error", v.hidden.accuracy.error},
                 {"val/ppl_frequency", exp(v.hidden.frequency.mean)},
                 {"val/ppl_composition", exp(v.hidden.composition.mean)},
                 {"val/gain_composition", v.hidden.composition.mean - v.hidden.loss.mean},
                 {"val/gain_composition_error", v.hidden.gain_composition.error},
                 {"val/ppl_seen", exp(v.seen.loss.mean)},
                 {"val/accuracy_seen", v.seen.accuracy.mean}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(ttn_metrics_find(&r, cases[i].name, &value), 1);
        assert_near(value, cases[i].wanted, cases[i].name);
    }
    for (int64_t i = 0; i < r.n; i++)
        assert_non_null(ttn_metric_what(r.metric[i].name));
    ttn_metrics_drop(&r);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    alphabet = ttn_alphabet_find("esm");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_are_counts_and_never_nothing),
        cmocka_unit_test(scores_are_those_made_by_hand),
        cmocka_unit_test(the_next_residue_is_predicted_from_those_before_it),
        cmocka_unit_test(results_do_not_depend_on_the_packing),
        cmocka_unit_test(parts_that_are_merged_are_the_whole),
        cmocka_unit_test(errors_are_those_of_a_ratio_over_sequences),
        cmocka_unit_test(errors_are_as_large_as_the_mean_is_off),
        cmocka_unit_test(nothing_to_take_a_mean_of_is_nan),
        cmocka_unit_test(a_record_has_the_numbers_under_their_names),
    };
    return ttn_test_run(tests);
}
