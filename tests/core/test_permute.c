#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/permute.h"
#include "core/rng.h"
#include "tests/harness/test.h"

/* Statistics below are z-scores: 5 standard deviations, 6 in 10^7 by chance for each of about 30 of them. Of a
 * chi-square with k degrees of freedom the z-score is (X - k) / sqrt(2 k). */
#define Z_BOUND 5.0

static double chi_square_z(const int64_t *count, int64_t n_cell, int64_t n_draw)
{
    double expected = (double)n_draw / (double)n_cell;
    double sum = 0;
    for (int64_t i = 0; i < n_cell; i++)
        sum += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
    double freedom = (double)(n_cell - 1);
    return (sum - freedom) / sqrt(2 * freedom);
}

static void check_whole(int64_t n, uint64_t seed, uint64_t epoch)
{
    static uint8_t seen[1 << 17];
    assert_true(n <= (int64_t)sizeof seen);
    memset(seen, 0, (size_t)n);
    ttn_permute p;
    ttn_permute_init(&p, n, seed, epoch);
    for (int64_t i = 0; i < n; i++) {
        int64_t x = ttn_permute_at(&p, i);
        if (x < 0 || x >= n) fail_msg("n %" PRId64 ": at(%" PRId64 ") is %" PRId64, n, i, x);
        if (seen[x]++) fail_msg("n %" PRId64 ": %" PRId64 " comes twice", n, x);
        if (ttn_permute_find(&p, x) != i) fail_msg("n %" PRId64 ": find(at(%" PRId64 ")) is another", n, i);
    }
}

static void every_element_comes_once_for_every_n_to_300(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 300; n++)
        for (uint64_t seed = 0; seed < 3; seed++)
            check_whole(n, seed * 0x123456789ABCDEF, ttn_test_seed() + seed);
}

static void every_element_comes_once_around_powers_of_two(void **state)
{
    (void)state;
    static const int64_t n[] = {511, 512, 513, 1023, 1024, 1025, 4097, 32768, 32769, 65535, 65536, 65537, 70000};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        check_whole(n[i], ttn_test_seed(), i);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Both ends, and a random sample between them; its images spread over [0, n) as uniform numbers do. */
static void large_n_are_permuted_too(void **state)
{
    (void)state;
    static const int64_t sizes[] = {
        ((int64_t)1 << 31) - 1, (int64_t)1 << 31,       ((int64_t)1 << 31) + 1, ((int64_t)1 << 32) - 1,
        (int64_t)1 << 32,       ((int64_t)1 << 32) + 1, (int64_t)1 << 40,       ((int64_t)1 << 40) + 1,
        (int64_t)1 << 62,       ((int64_t)1 << 62) + 1, INT64_MAX - 1,          INT64_MAX,
    };
    int64_t n_sample = ttn_scaled(100000, 1000);
    int64_t *x = malloc((size_t)n_sample * sizeof *x);
    assert_non_null(x);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t n = sizes[s];
        ttn_permute p;
        ttn_permute_init(&p, n, ttn_test_seed(), s);
        double sum = 0;
        for (int64_t k = 0; k < n_sample; k++) {
            /* steps of an odd stride are distinct places; half of them from each end */
            int64_t step = (int64_t)(k / 2 * (n / n_sample | 1));
            int64_t i = k % 2 == 0 ? step / 2 : n - 1 - step / 2;
            x[k] = ttn_permute_at(&p, i);
            if (x[k] < 0 || x[k] >= n) fail_msg("n %" PRId64 ": at(%" PRId64 ") is %" PRId64, n, i, x[k]);
            if (ttn_permute_find(&p, x[k]) != i) fail_msg("n %" PRId64 ": find(at(%" PRId64 ")) is another", n, i);
            sum += (double)x[k] / (double)n - 0.5;
        }
        assert_at_most(fabs(sum / sqrt((double)n_sample / 12)), Z_BOUND, "mean of the sampled elements, z");
        qsort(x, (size_t)n_sample, sizeof *x, by_value);
        for (int64_t k = 1; k < n_sample; k++)
            if (x[k] == x[k - 1]) fail_msg("n %" PRId64 ": %" PRId64 " comes twice", n, x[k]);
    }
    free(x);
}

static void nothing_can_be_permuted(void **state)
{
    (void)state;
    ttn_permute p;
    ttn_permute_init(&p, 0, 1, 2);
    assert_int_equal(p.n, 0);
}

/* A resumed run must find the order in which it stopped: these are promises to files. */
static void the_order_is_the_one_of_all_earlier_versions(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        uint64_t seed, epoch;
        int64_t first[4];
    } known[] = {
        {5, 1, 0, {0, 3, 2, 1}},
        {64, 1, 0, {40, 48, 13, 12}},
        {65, 1, 0, {35, 21, 19, 7}},
        {20000, 1, 7, {3854, 8615, 631, 4022}},
        {(int64_t)1 << 40, 42, 1, {144786067848, 382533360323, 749726079900, 846008310197}},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        ttn_permute p;
        ttn_permute_init(&p, known[k].n, known[k].seed, known[k].epoch);
        for (int64_t i = 0; i < 4; i++)
            if (ttn_permute_at(&p, i) != known[k].first[i])
                fail_msg("n %" PRId64 ": at(%" PRId64 ") is %" PRId64, known[k].n, i, ttn_permute_at(&p, i));
    }
}

/* Number of this arrangement of n elements among all n! (Lehmer's code). */
static int64_t rank_of(const ttn_permute *p)
{
    int64_t rank = 0;
    for (int64_t i = 0; i < p->n; i++) {
        int64_t smaller = 0;
        for (int64_t j = i + 1; j < p->n; j++)
            smaller += ttn_permute_at(p, j) < ttn_permute_at(p, i);
        rank = rank * (p->n - i) + smaller;
    }
    return rank;
}

static void small_sets_come_in_all_orders_equally_often(void **state)
{
    (void)state;
    int64_t n_draw = ttn_scaled(60000, 6000);
    for (int by_epoch = 0; by_epoch < 2; by_epoch++) {
        int64_t n_order = 2;
        for (int64_t n = 3; n <= 5; n++) {
            n_order *= n;
            int64_t count[120] = {0};
            for (int64_t k = 0; k < n_draw; k++) {
                uint64_t seed = ttn_test_seed() + (by_epoch ? 0 : (uint64_t)k);
                uint64_t epoch = by_epoch ? (uint64_t)k : 3;
                ttn_permute p;
                ttn_permute_init(&p, n, seed, epoch);
                count[rank_of(&p)]++;
            }
            assert_at_most(chi_square_z(count, n_order, n_draw), Z_BOUND, "orders of a small set, chi-square z");
        }
    }
}

/* Where one element stands, over epochs. 64 is the last table, 65 the smallest network. */
static void an_element_stands_anywhere_equally_often(void **state)
{
    (void)state;
    static const int64_t sizes[] = {7, 64, 65, 100, 127, 128, 129, 257};
    int64_t n_epoch = ttn_scaled(30000, 3000);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t n = sizes[s];
        int64_t first[257] = {0};
        int64_t last[257] = {0};
        for (int64_t epoch = 0; epoch < n_epoch; epoch++) {
            ttn_permute p;
            ttn_permute_init(&p, n, ttn_test_seed(), (uint64_t)epoch);
            first[ttn_permute_find(&p, 0)]++;
            last[ttn_permute_at(&p, n - 1)]++;
        }
        assert_at_most(chi_square_z(first, n, n_epoch), Z_BOUND, "place of element 0, chi-square z");
        assert_at_most(chi_square_z(last, n, n_epoch), Z_BOUND, "element at the last place, chi-square z");
    }
}

/* All ordered pairs of the smallest network, at neighbouring places: a network of few rounds fails here first. */
static void neighbours_are_any_pair_equally_often(void **state)
{
    (void)state;
    enum { N = 65 };
    static int64_t count[N * N];
    static int64_t compact[N * (N - 1)];
    int64_t n_draw = ttn_scaled(400000, 40000);
    for (int64_t place = 0; place < N; place += 32) {
        memset(count, 0, sizeof count);
        for (int64_t k = 0; k < n_draw; k++) {
            ttn_permute p;
            ttn_permute_init(&p, N, ttn_test_seed() + (uint64_t)place, (uint64_t)k);
            count[ttn_permute_at(&p, place) * N + ttn_permute_at(&p, (place + 1) % N)]++;
        }
        int64_t n_cell = 0;
        for (int64_t i = 0; i < N * N; i++) {
            if (i / N == i % N)
                assert_int_equal(count[i], 0);
            else
                compact[n_cell++] = count[i];
        }
        assert_at_most(chi_square_z(compact, n_cell, n_draw), Z_BOUND, "pairs at neighbouring places, chi-square z");
    }
}

/* In one long permutation: descents number (n - 1) / 2 with variance (n + 1) / 12; neighbours that differ by one
 * number 2 - 2 / n, about as a Poisson count does. Summed over epochs. */
static void one_order_shows_no_pattern(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1000, 1024, 20000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t n = sizes[s];
        int64_t n_epoch = ttn_scaled(1000000, 100000) / n;
        double descents = 0;
        double close = 0;
        for (int64_t epoch = 0; epoch < n_epoch; epoch++) {
            ttn_permute p;
            ttn_permute_init(&p, n, ttn_test_seed(), (uint64_t)epoch);
            int64_t before = ttn_permute_at(&p, 0);
            for (int64_t i = 1; i < n; i++) {
                int64_t x = ttn_permute_at(&p, i);
                descents += x < before;
                close += x - before == 1 || x - before == -1;
                before = x;
            }
        }
        double epochs = (double)n_epoch;
        double z = (descents - epochs * (double)(n - 1) / 2) / sqrt(epochs * (double)(n + 1) / 12);
        assert_at_most(fabs(z), Z_BOUND, "descents, z");
        double expected = epochs * (2 - 2 / (double)n);
        assert_at_most(fabs(close - expected) / sqrt(expected), Z_BOUND, "neighbours that differ by one, z");
    }
}

typedef struct {
    const char *what;
    int64_t n;
    uint64_t seed, epoch;
} stream;

/* Two orders agree at about one place (Poisson), and their ranks are not correlated: variance 1 / (n - 1). */
static void orders_of_other_epochs_seeds_and_sizes_are_unrelated(void **state)
{
    (void)state;
    enum { N = 1000 };
    int64_t n_pair = ttn_scaled(200, 20);
    static const stream step[] = {
        {"the next epoch", 0, 0, 1},
        {"the next seed", 0, 1, 0},
        {"one element more", 1, 0, 0},
        {"seed and epoch both", 0, 1, 1},
        {"a high bit of the seed", 0, (uint64_t)1 << 63, 0},
        {"a high bit of the epoch", 0, 0, (uint64_t)1 << 40},
    };
    for (size_t s = 0; s < sizeof step / sizeof *step; s++) {
        double agree = 0;
        double correlation = 0;
        for (int64_t k = 0; k < n_pair; k++) {
            ttn_permute a;
            ttn_permute b;
            uint64_t seed = ttn_test_seed() + 10 * (uint64_t)k;
            ttn_permute_init(&a, N, seed, (uint64_t)k);
            ttn_permute_init(&b, N + step[s].n, seed + step[s].seed, (uint64_t)k + step[s].epoch);
            double product = 0;
            for (int64_t i = 0; i < N; i++) {
                int64_t x = ttn_permute_at(&a, i);
                int64_t y = ttn_permute_at(&b, i);
                agree += x == y;
                product += ((double)x - (N - 1) / 2.0) * ((double)y - (N - 1) / 2.0);
            }
            correlation += product / (N * ((double)N * N - 1) / 12) * sqrt(N - 1);
        }
        double pairs = (double)n_pair;
        if (fabs(agree - pairs) / sqrt(pairs) > Z_BOUND || fabs(correlation) / sqrt(pairs) > Z_BOUND)
            fail_msg("%s: %g places agree in %g pairs, correlation z %g", step[s].what, agree, pairs,
                     correlation / sqrt(pairs));
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_comes_once_for_every_n_to_300),
        cmocka_unit_test(every_element_comes_once_around_powers_of_two),
        cmocka_unit_test(large_n_are_permuted_too),
        cmocka_unit_test(nothing_can_be_permuted),
        cmocka_unit_test(the_order_is_the_one_of_all_earlier_versions),
        cmocka_unit_test(small_sets_come_in_all_orders_equally_often),
        cmocka_unit_test(an_element_stands_anywhere_equally_often),
        cmocka_unit_test(neighbours_are_any_pair_equally_often),
        cmocka_unit_test(one_order_shows_no_pattern),
        cmocka_unit_test(orders_of_other_epochs_seeds_and_sizes_are_unrelated),
    };
    return ttn_test_run(tests);
}
