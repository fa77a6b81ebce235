#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/hash.h"
#include "core/rng.h"
#include "core/values.h"
#include "data/mlm.h"
#include "tests/data/chi_square.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

enum { MOST = 40000 };

static const ttn_mlm_rules usual = {.rate = 0.15, .mask = 0.8, .random = 0.1};

/* Of a count with this probability in n draws. */
static double binomial_z(double count, double n, double p)
{
    return fabs(count - n * p) / sqrt(n * p * (1 - p));
}

typedef struct {
    const ttn_alphabet *alphabet;
    ttn_mlm *m;
    uint8_t residue[MOST]; /* as it is */
    uint8_t token[MOST];   /* as the model sees it */
    int64_t pick[MOST];
    uint8_t target[MOST], shown[MOST];
} bench;

static bench *begin(const char *alphabet, const ttn_mlm_rules *rules)
{
    bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    ttn_error err = {0};
    b->alphabet = ttn_alphabet_find(alphabet);
    assert_ok(ttn_mlm_create(b->alphabet, rules, MOST, &b->m, &err), &err);
    for (int64_t j = 0; j < MOST; j++)
        b->residue[j] = b->alphabet->residue[ttn_rng_below(5, 0, (uint64_t)j, 20)];
    return b;
}

static void end(bench *b)
{
    ttn_mlm_destroy(b->m);
    free(b);
}

static int64_t mask(bench *b, uint64_t key, uint64_t sample, int64_t position, int64_t n, const uint8_t *excluded)
{
    memcpy(b->token, b->residue, (size_t)n);
    return ttn_mlm_mask(b->m, key, sample, position, n, excluded, 0, b->token, b->pick, b->target, b->shown);
}

/* 15 in 100 in whole numbers, where halves go up. */
static void exactly_15_of_100_residues_are_picked_and_at_least_one(void **state)
{
    (void)state;
    assert_int_equal(ttn_mlm_picks(0.15, 0), 0);
    for (int64_t n = 1; n < 100000; n++) {
        const int64_t wanted = (15 * n + 50) / 100 > 1 ? (15 * n + 50) / 100 : 1;
        if (ttn_mlm_picks(0.15, n) != wanted) fail_msg("%" PRId64 " picks of %" PRId64, ttn_mlm_picks(0.15, n), n);
        assert_int_equal(ttn_mlm_picks(1, n), n);
        assert_int_equal(ttn_mlm_picks(0.001, n), (n + 500) / 1000 > 1 ? (n + 500) / 1000 : 1);
    }
    bench *b = begin("esm", &usual);
    for (int64_t n = 1; n < 1500; n++)
        assert_int_equal(mask(b, 7, (uint64_t)n, 0, n, NULL), ttn_mlm_picks(0.15, n));
    end(b);
}

typedef struct {
    uint64_t number;
    int64_t place;
} numbered;

static int by_number(const void *a, const void *b)
{
    const numbered *x = a;
    const numbered *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

static int by_place(const void *a, const void *b)
{
    const numbered *x = a;
    const numbered *y = b;
    return x->place < y->place ? -1 : 1;
}

/* By the book: a number for each residue from its own Philox block, sorted. */
static void picks_are_the_residues_with_the_smallest_numbers(void **state)
{
    (void)state;
    bench *b = begin("esm", &usual);
    static const struct {
        uint64_t sample;
        int64_t position, n;
        int with_excluded;
    } cases[] = {
        {0, 0, 1, 0},          {3, 0, 2, 0},    {5, 17, 63, 0},
        {5, 0, 64, 1},         {6, 100, 65, 0}, {7, 0, 1000, 1},
        {8, 123456, 34350, 0}, {9, 0, MOST, 1}, {(uint64_t)1 << 40, 1 << 29, 700, 0},
    };
    numbered *list = calloc(MOST, sizeof *list);
    uint8_t *excluded = calloc(MOST, 1);
    assert_non_null(list);
    assert_non_null(excluded);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const uint64_t key = ttn_mlm_key(ttn_test_seed(), (int64_t)c);
        const int64_t n = cases[c].n;
        int64_t n_can = 0;
        for (int64_t j = 0; j < n; j++) {
            uint32_t word[4];
            ttn_philox_at(key, cases[c].sample, (uint64_t)(cases[c].position + j), word);
            excluded[j] = cases[c].with_excluded && ttn_rng_below(1, 1, (uint64_t)j, 3) == 0;
            if (!excluded[j]) list[n_can++] = (numbered){(uint64_t)word[0] << 32 | word[1], j};
        }
        qsort(list, (size_t)n_can, sizeof *list, by_number);
        const int64_t n_pick = ttn_mlm_picks(0.15, n_can);
        qsort(list, (size_t)n_pick, sizeof *list, by_place);
        assert_int_equal(mask(b, key, cases[c].sample, cases[c].position, n, cases[c].with_excluded ? excluded : NULL),
                         n_pick);
        for (int64_t p = 0; p < n_pick; p++)
            if (b->pick[p] != list[p].place)
                fail_msg("n %" PRId64 ": pick %" PRId64 " is %" PRId64 ", not %" PRId64, n, p, b->pick[p],
                         list[p].place);
    }
    free(excluded);
    free(list);
    end(b);
}

static void only_picks_change_and_targets_are_what_was_there(void **state)
{
    (void)state;
    bench *b = begin("esm", &usual);
    for (uint64_t sample = 0; sample < 200; sample++) {
        const int64_t n = 1 + (int64_t)ttn_rng_below(1, 0, sample, 900);
        const int64_t n_pick = mask(b, 11, sample, 0, n, NULL);
        int64_t p = 0;
        for (int64_t j = 0; j < n; j++) {
            if (p < n_pick && b->pick[p] == j) {
                assert_int_equal(b->target[p], b->residue[j]);
                assert_int_equal(b->shown[p], b->token[j] == b->alphabet->mask);
                p++;
            } else {
                assert_int_equal(b->token[j], b->residue[j]);
            }
        }
        assert_int_equal(p, n_pick);
    }
    end(b);
}

/* What n_pick picks of long sequences are shown as. */
static void count_shown(const char *alphabet, const ttn_mlm_rules *rules, int64_t n_pick, double *masks, double *same,
                        double *others, double *token)
{
    bench *b = begin(alphabet, rules);
    memset(b->residue, b->alphabet->residue[0], MOST); /* all alike, so a stand-in is seen unless it is this one */
    *masks = *same = *others = 0;
    memset(token, 0, TTN_MAX_TOKENS * sizeof *token);
    int64_t seen = 0;
    for (uint64_t sample = 0; seen < n_pick; sample++) {
        const int64_t n = mask(b, ttn_test_seed(), sample, 0, 2000, NULL);
        for (int64_t p = 0; p < n && seen < n_pick; p++) {
            const uint8_t t = b->token[b->pick[p]];
            seen++;
            *masks += b->shown[p];
            if (b->shown[p]) continue;
            if (t == b->target[p])
                *same += 1;
            else
                *others += 1;
            token[t]++;
        }
    }
    end(b);
}

/* One stand-in of 20 is the residue itself. */
static void of_the_picks_80_10_and_10_in_100_are_masks_others_and_themselves(void **state)
{
    (void)state;
    const double n = (double)ttn_scaled(400000, 40000);
    static const ttn_mlm_rules rules[] = {
        {.rate = 0.15, .mask = 0.8, .random = 0.1},
        {.rate = 0.15, .mask = 0.5, .random = 0.5},
        {.rate = 0.4, .mask = 0.1, .random = 0.3},
    };
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        double masks, same, others, token[TTN_MAX_TOKENS];
        count_shown("esm", &rules[r], (int64_t)n, &masks, &same, &others, token);
        assert_at_most(binomial_z(masks, n, rules[r].mask), Z_BOUND, "shown as <mask>, z");
        assert_at_most(binomial_z(others, n, rules[r].random * 19 / 20), Z_BOUND, "shown as another residue, z");
        const double itself = 1 - rules[r].mask - rules[r].random * 19 / 20;
        assert_at_most(binomial_z(same, n, itself), Z_BOUND, "shown as it is, z");
    }
    double masks, same, others, token[TTN_MAX_TOKENS];
    count_shown("esm", &(ttn_mlm_rules){.rate = 0.15, .mask = 1}, 10000, &masks, &same, &others, token);
    assert_true(masks == 10000);
    count_shown("esm", &(ttn_mlm_rules){.rate = 0.15}, 10000, &masks, &same, &others, token);
    assert_true(same == 10000);
}

static void stand_ins_are_the_20_residues_equally_often_and_never_a_special(void **state)
{
    (void)state;
    const double n = (double)ttn_scaled(200000, 20000);
    for (int i = 0; ttn_alphabet_names[i]; i++) {
        const ttn_alphabet *a = ttn_alphabet_find(ttn_alphabet_names[i]);
        for (int all = 0; all < 2; all++) {
            const ttn_mlm_rules rules = {
                .rate = 0.15, .random = 1, .replace = all ? TTN_REPLACE_VOCABULARY : TTN_REPLACE_RESIDUES};
            double masks, same, others, token[TTN_MAX_TOKENS], count[TTN_MAX_TOKENS];
            count_shown(a->name, &rules, (int64_t)n, &masks, &same, &others, token);
            int n_cell = 0;
            double seen = 0;
            for (int t = 0; t < a->n; t++) {
                if (!(all ? ttn_alphabet_letter(a, t) != 0 : ttn_alphabet_is_residue(a, t))) continue;
                count[n_cell++] = token[t];
                seen += token[t];
            }
            assert_true(all ? n_cell >= 20 : n_cell == 20);
            assert_true(seen == n);
            assert_at_most(fabs(chi_square_z(count, n_cell, n)), Z_BOUND, "stand-ins, chi-square z");
        }
    }
}

/* The number of picks is a constant, so counts vary less than those of independent draws: only the upper side tells. Ends, and
 * edges of the blocks of 64 included. */
static void every_position_is_picked_equally_often(void **state)
{
    (void)state;
    static const int lengths[] = {2, 7, 20, 65, 200};
    bench *b = begin("esm", &usual);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (int by_epoch = 0; by_epoch < 2; by_epoch++) {
            const int n = lengths[l];
            double count[200] = {0};
            double all = 0;
            const int64_t n_draw = ttn_scaled(200000, 20000) / n;
            for (int64_t d = 0; d < n_draw; d++) {
                const uint64_t key = ttn_mlm_key(ttn_test_seed(), by_epoch ? d : 3);
                const int64_t picks = mask(b, key, by_epoch ? 3 : (uint64_t)d, 0, n, NULL);
                for (int64_t p = 0; p < picks; p++)
                    count[b->pick[p]]++;
                all += (double)picks;
            }
            assert_at_most(chi_square_z(count, n, all), Z_BOUND, "positions, chi-square z");
        }
    }
    end(b);
}

/* The picks that two maskings of one sequence share: hypergeometric, mean k^2 / n. */
static void masks_of_other_samples_epochs_and_seeds_are_unrelated(void **state)
{
    (void)state;
    enum { N = 400 };
    static const struct {
        const char *what;
        uint64_t sample, seed;
        int64_t epoch;
        int is_fixed;
    } step[] = {
        {"the next sample", 1, 0, 0, 0}, {"the next epoch", 0, 0, 1, 0},
        {"the next seed", 0, 1, 0, 0},   {"a high bit of the sample", (uint64_t)1 << 40, 0, 0, 0},
        {"the fixed masks", 0, 0, 0, 1},
    };
    bench *b = begin("esm", &usual);
    const int64_t n_pair = ttn_scaled(2000, 200);
    for (size_t s = 0; s < sizeof step / sizeof *step; s++) {
        double shared = 0;
        double k = 0;
        for (int64_t i = 0; i < n_pair; i++) {
            const uint64_t seed = ttn_test_seed() + (uint64_t)i;
            uint8_t is_picked[N] = {0};
            k = (double)mask(b, ttn_mlm_key(seed, i), (uint64_t)i, 0, N, NULL);
            for (int64_t p = 0; p < (int64_t)k; p++)
                is_picked[b->pick[p]] = 1;
            const uint64_t key =
                step[s].is_fixed ? ttn_mlm_fixed_key(seed, i) : ttn_mlm_key(seed + step[s].seed, i + step[s].epoch);
            mask(b, key, (uint64_t)i + step[s].sample, 0, N, NULL);
            for (int64_t p = 0; p < (int64_t)k; p++)
                shared += is_picked[b->pick[p]];
        }
        const double pairs = (double)n_pair;
        const double deviation = sqrt(pairs * k * k / N * (1 - k / N) * (N - k) / (N - 1));
        const double z = (shared - pairs * k * k / N) / deviation;
        if (fabs(z) > Z_BOUND) fail_msg("%s: %g shared picks, z %g", step[s].what, shared, z);
    }
    end(b);
}

static void excluded_residues_are_never_picked_nor_counted(void **state)
{
    (void)state;
    bench *b = begin("esm", &usual);
    static uint8_t excluded[MOST];
    for (uint64_t sample = 0; sample < 300; sample++) {
        const int64_t n = 1 + (int64_t)ttn_rng_below(1, 0, sample, 300);
        const uint64_t one_in = 1 + ttn_rng_below(1, 1, sample, 5);
        int64_t n_can = 0;
        for (int64_t j = 0; j < n; j++) {
            excluded[j] = ttn_rng_below(2, sample, (uint64_t)j, one_in) == 0;
            n_can += !excluded[j];
        }
        const int64_t picks = mask(b, 3, sample, 0, n, excluded);
        assert_int_equal(picks, ttn_mlm_picks(0.15, n_can));
        for (int64_t p = 0; p < picks; p++)
            assert_int_equal(excluded[b->pick[p]], 0);
        if (n_can == 0) assert_same_bits(b->token, b->residue, (size_t)n);
    }
    end(b);
}

/* A piece without specials of which nothing can be seen would divide by zero in ESM's token dropout. */
static void something_of_a_bare_sequence_stays_visible(void **state)
{
    (void)state;
    bench *b = begin("esm", &(ttn_mlm_rules){.rate = 1, .mask = 0.8, .random = 0.1});
    for (int64_t n = 1; n < 5; n++) {
        int hidden[2] = {0};
        for (uint64_t sample = 0; sample < 1000; sample++) {
            for (int is_bare = 0; is_bare < 2; is_bare++) {
                memcpy(b->token, b->residue, (size_t)n);
                assert_int_equal(
                    ttn_mlm_mask(b->m, 3, sample, 0, n, NULL, is_bare, b->token, b->pick, b->target, b->shown), n);
                int64_t masks = 0;
                for (int64_t p = 0; p < n; p++) {
                    masks += b->shown[p];
                    assert_int_equal(b->shown[p], b->token[p] == b->alphabet->mask);
                    assert_int_equal(b->target[p], b->residue[p]);
                }
                hidden[is_bare] += masks == n;
            }
        }
        assert_int_equal(hidden[1], 0);
        const double p = pow(0.8, (double)n);
        assert_at_most(binomial_z(hidden[0], 1000, p), Z_BOUND, "masks only, with specials about them, z");
    }
    end(b);
}

/* A resumed run must see the masks that it saw: these are promises to files. */
static void masks_are_those_of_all_earlier_versions(void **state)
{
    (void)state;
    bench *b = begin("esm", &usual);
    static const int64_t by_epoch[] = {6, 12, 19, 22, 26}, fixed[] = {3, 7, 10};
    assert_int_equal(mask(b, ttn_mlm_key(1, 2), 3, 0, 30, NULL), 5);
    assert_same_bits(b->pick, by_epoch, sizeof by_epoch);
    assert_int_equal(mask(b, ttn_mlm_fixed_key(1, 2), 3, 0, 20, NULL), 3);
    assert_same_bits(b->pick, fixed, sizeof fixed);
    /* What is shown, of 6,000 picks. */
    mask(b, ttn_mlm_key(1, 2), 3, 0, MOST, NULL);
    assert_int_equal(ttn_hash64(b->token, MOST, 0), 0x3e20fe4815dedaa8);
    end(b);
}

static void a_vocabulary_without_a_mask_is_refused(void **state)
{
    (void)state;
    static const char *const token[] = {"A", "C", "D", "E", "F", "G", "H", "I", "K", "L",    "M",
                                        "N", "P", "Q", "R", "S", "T", "V", "W", "Y", "<unk>"};
    ttn_alphabet a;
    ttn_error err = {0};
    assert_ok(ttn_alphabet_make("mine", token, (int)(sizeof token / sizeof *token), &a, &err), &err);
    ttn_mlm *m = NULL;
    assert_fails(ttn_mlm_create(&a, &usual, 100, &m, &err), TTN_EINVAL, &err, "'mine' has no <mask>");
    assert_null(m);
}

static void without_memory_there_is_no_masking(void **state)
{
    (void)state;
    int64_t nth = 1;
    for (int hit = 1; hit; nth++) {
        ttn_error err = {0};
        ttn_mlm *m = NULL;
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
        const ttn_status status = ttn_mlm_create(ttn_alphabet_find("esm"), &usual, 100, &m, &err);
        hit = shim_was_hit();
        shim_disarm();
        assert_int_equal(status, hit ? TTN_ENOMEM : TTN_OK);
        ttn_mlm_destroy(m);
    }
    assert_true(nth > 3);
}

static void set(ttn_values *v, const char *name, const char *text)
{
    ttn_error err = {0};
    ttn_scalar s;
    for (int i = 0; i < ttn_mlm_n_options; i++) {
        if (strcmp(ttn_mlm_options[i].name, name) != 0) continue;
        assert_ok(ttn_option_read(&ttn_mlm_options[i], text, &s, &err), &err);
        assert_ok(ttn_values_set(v, i, &s, 1, (ttn_origin){.text = "test"}, &err), &err);
        return;
    }
    fail_msg("there is no option %s", name);
}

static void the_options_are_the_rules(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_values *v;
    ttn_mlm_rules r;
    assert_ok(ttn_options_check(ttn_mlm_options, ttn_mlm_n_options, &err), &err);
    assert_ok(ttn_values_create(ttn_mlm_options, ttn_mlm_n_options, &v, &err), &err);
    const ttn_option_reader reader = ttn_values_reader(v);
    assert_ok(ttn_mlm_rules_of(&reader, &r, &err), &err);
    assert_true(r.rate == 0.15 && r.mask == 0.8 && r.random == 0.1 && r.replace == TTN_REPLACE_RESIDUES);
    set(v, "mlm.rate", "0.3");
    set(v, "mlm.mask", "0.7");
    set(v, "mlm.random", "0.3");
    set(v, "mlm.replace", "vocabulary");
    assert_ok(ttn_mlm_rules_of(&reader, &r, &err), &err);
    assert_true(r.rate == 0.3 && r.mask == 0.7 && r.random == 0.3 && r.replace == TTN_REPLACE_VOCABULARY);
    set(v, "mlm.random", "0.31");
    assert_fails(ttn_mlm_rules_of(&reader, &r, &err), TTN_EINVAL, &err, "mlm.mask is 0.7 and mlm.random is 0.31");
    ttn_values_destroy(v);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_15_of_100_residues_are_picked_and_at_least_one),
        cmocka_unit_test(picks_are_the_residues_with_the_smallest_numbers),
        cmocka_unit_test(only_picks_change_and_targets_are_what_was_there),
        cmocka_unit_test(of_the_picks_80_10_and_10_in_100_are_masks_others_and_themselves),
        cmocka_unit_test(stand_ins_are_the_20_residues_equally_often_and_never_a_special),
        cmocka_unit_test(every_position_is_picked_equally_often),
        cmocka_unit_test(masks_of_other_samples_epochs_and_seeds_are_unrelated),
        cmocka_unit_test(excluded_residues_are_never_picked_nor_counted),
        cmocka_unit_test(something_of_a_bare_sequence_stays_visible),
        cmocka_unit_test(masks_are_those_of_all_earlier_versions),
        cmocka_unit_test(a_vocabulary_without_a_mask_is_refused),
        cmocka_unit_test(without_memory_there_is_no_masking),
        cmocka_unit_test(the_options_are_the_rules),
    };
    return ttn_test_run(tests);
}
