/* dropout and residual: the mask is a function of sample, position, channel, key, and of nothing else. */
#include <math.h>
#include <string.h>
#include "autograd/ops.h"
#include "core/philox.h"
#include "core/rng.h"
#include "tests/harness/call.h"
#include "tests/harness/test.h"

enum { CAP = 480, C = 301 };

static const ttn_extent capacity = {.rows = CAP, .seqs = 4};
static const ttn_span spans[] = {{2, 13}, {24, 6}, {36, 41}};
static const uint64_t samples[] = {77, 3, ((uint64_t)1 << 40) + 77};
static const int64_t start[] = {0, 100, 7};
static const ttn_feed three = {
    .used = {.rows = 80, .seqs = 3}, .span = spans, .start = start, .sample = samples, .training = 1};

static int64_t sequence_of(const ttn_feed *f, int64_t row)
{
    for (int64_t s = 0; s < f->used.seqs; s++)
        if (row >= f->span[s].first && row < f->span[s].first + f->span[s].n) return s;
    return -1;
}

static void create(test_call *t, const char *op, const double *p)
{
    const ttn_desc x = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, 0, C, 0);
    test_call_create(t, op, p, capacity, (const ttn_desc[]){x, x});
    for (int i = 0; i < t->op->n_in; i++)
        test_call_fill(t->in[i], CAP * C, ttn_test_seed() + (uint64_t)i);
    test_call_fill(t->dout[0], CAP * C, ttn_test_seed() + 9);
    t->key = 0x123456789abcdef0u;
    t->feed = three;
}

/* The mask by the rule, one element at a time. */
static int stays(uint64_t key, uint64_t sample, int64_t position, int64_t channel, double p)
{
    uint32_t word[4];
    ttn_philox_at(key, sample, ttn_philox_place((uint32_t)position, (uint32_t)(channel / 4)), word);
    return (double)word[channel % 4] >= floor(p * 0x1p32 + 0.5);
}

static void values_and_gradients_follow_the_rule(void **state)
{
    (void)state;
    static const double ps[] = {0.1, 0.5, 0.999, 0};
    for (int k = 0; k < 8; k++) {
        const double p = ps[k % 4];
        const int fused = k >= 4;
        test_call t;
        create(&t, fused ? "residual" : "dropout", &p);
        test_call_forward(&t);
        test_call_backward(&t, fused ? 3 : 1);
        const int dropped = fused ? 1 : 0; /* input that is dropped */
        const real *x = t.in[dropped];
        const real scale = (real)(1 / (1 - p));
        for (int64_t r = 0; r < CAP; r++) {
            const int64_t s = sequence_of(&three, r);
            for (int64_t i = 0; i < C; i++) {
                const int64_t e = r * C + i;
                const int kept =
                    s >= 0 && stays(t.key, t.feed.sample[s], r - t.feed.span[s].first + t.feed.start[s], i, p);
                const real a = fused && s >= 0 ? ((real *)t.in[0])[e] : 0;
                const real dy = ((real *)t.dout[0])[e];
                assert_true(((real *)t.out[0])[e] == a + (kept ? scale * x[e] : 0));
                assert_true(((real *)t.din[dropped])[e] == (kept ? scale * dy : 0));
                if (fused) assert_true(((real *)t.din[0])[e] == (s >= 0 ? dy : 0));
            }
        }
        test_call_destroy(&t);
    }
}

static void evaluation_is_the_identity(void **state)
{
    (void)state;
    const double p = 0.5;
    for (int fused = 0; fused < 2; fused++) {
        test_call t;
        create(&t, fused ? "residual" : "dropout", &p);
        t.feed.training = 0;
        test_call_forward(&t);
        test_call_backward(&t, fused ? 3 : 1);
        for (int64_t e = 0; e < CAP * C; e++) {
            const int counts = sequence_of(&three, e / C) >= 0;
            const real x = ((real *)t.in[0])[e] + (fused ? ((real *)t.in[1])[e] : 0);
            const real dy = counts ? ((real *)t.dout[0])[e] : 0;
            assert_true(((real *)t.out[0])[e] == (counts ? x : 0));
            assert_true(((real *)t.din[fused])[e] == dy && ((real *)t.din[0])[e] == dy);
        }
        test_call_destroy(&t);
    }
}

/* Ones in, so that what is not 0 has stayed. */
static void run_ones(test_call *t)
{
    for (int64_t e = 0; e < CAP * C; e++)
        ((real *)t->in[0])[e] = 1;
    test_call_forward(t);
}

/* 480 rows of 301: sqrt(p (1 - p) / n) is 0.0013 at p 1/2, and 5 of them once in 10^6. */
static void the_share_dropped_is_p_and_the_mean_stays(void **state)
{
    (void)state;
    static const double ps[] = {0.01, 0.1, 0.5, 0.9};
    for (int k = 0; k < 4; k++) {
        test_call t;
        create(&t, "dropout", &ps[k]);
        t.feed = (ttn_feed){.used = {.rows = CAP}, .training = 1};
        run_ones(&t);
        double dropped = 0;
        double sum = 0;
        for (int64_t e = 0; e < CAP * C; e++) {
            dropped += ((real *)t.out[0])[e] == 0;
            sum += (double)((real *)t.out[0])[e];
        }
        const double n = CAP * C;
        const double deviation = sqrt(ps[k] * (1 - ps[k]) / n);
        assert_at_most(fabs(dropped / n - ps[k]), 5 * deviation, "the share dropped, off p");
        assert_at_most(fabs(sum / n - 1), 5 * deviation / (1 - ps[k]), "the mean, off 1");
        test_call_destroy(&t);
    }
}

/* The share of elements in which two rows' masks agree: 1/2 at p 1/2, +- 5 sqrt(1 / (4 C)). */
static void assert_unlike(const real *a, const real *b)
{
    double same = 0;
    for (int64_t i = 0; i < C; i++)
        same += (a[i] == 0) == (b[i] == 0);
    assert_at_most(fabs(same / C - 0.5), 5 * sqrt(0.25 / C), "two masks' agreement, off 1/2");
}

static void masks_differ_between_channels_positions_samples_and_keys(void **state)
{
    (void)state;
    const double p = 0.5;
    test_call t;
    create(&t, "dropout", &p);
    t.feed.start = NULL;
    run_ones(&t);
    const real *y = t.out[0];
    real first[C];
    memcpy(first, y + 2 * C, sizeof first);
    assert_unlike(y + 2 * C, y + 3 * C);  /* the next position */
    assert_unlike(y + 2 * C, y + 24 * C); /* the same position of another sample */
    assert_unlike(y + 2 * C, y + 36 * C); /* of one whose number differs above bit 32 only */
    double alike = 0;
    for (int64_t i = 0; i + 1 < C; i++)
        alike += (first[i] == 0) == (first[i + 1] == 0);
    assert_at_most(fabs(alike / (C - 1) - 0.5), 5 * sqrt(0.25 / C), "neighbouring channels' agreement, off 1/2");
    t.key = ttn_rng_key(1, 2, 3);
    test_call_forward(&t);
    assert_unlike(y + 2 * C, first);
    memcpy(first, y + 2 * C, sizeof first);
    t.key = ttn_rng_key(1, 2, 4); /* the next step */
    test_call_forward(&t);
    assert_unlike(y + 2 * C, first);
    test_call_destroy(&t);
}

/* One sequence alone, behind others, with another place in the list, cut in two, with more threads. */
static void a_sequence_keeps_its_mask_in_another_packing(void **state)
{
    (void)state;
    enum { N = 40, CUT = 17 };
    static const double p = 0.3;
    static const ttn_span alone[] = {{0, N}};
    static const ttn_span second[] = {{0, 5}, {12, 3}, {24, N}};
    static const ttn_span cut[] = {{12, N - CUT}, {60, CUT}};
    static const int64_t cut_start[] = {CUT, 0};
    static const uint64_t own[] = {41, 41, 41};
    static const uint64_t third[] = {9, 8, 41};
    const ttn_feed feeds[] = {
        {.used = {.rows = N, .seqs = 1}, .span = alone, .sample = own, .training = 1},
        {.used = {.rows = 24 + N, .seqs = 3}, .span = second, .sample = third, .training = 1},
        {.used = {.rows = 80, .seqs = 2}, .span = cut, .start = cut_start, .sample = own, .training = 1},
    };
    for (int fused = 0; fused < 2; fused++) {
        real wanted[N * C];
        for (int k = 0; k < 3; k++) {
            test_call t;
            create(&t, fused ? "residual" : "dropout", &p);
            t.feed = feeds[k];
            t.on.n_thread = 1 + 3 * k;
            for (int64_t e = 0; e < CAP * C; e++) {
                ((real *)t.in[0])[e] = fused ? 0 : 1;
                if (fused) ((real *)t.in[1])[e] = 1;
            }
            test_call_forward(&t);
            const real *y = t.out[0];
            if (k == 0) memcpy(wanted, y, sizeof wanted);
            if (k == 1) assert_same_bits(y + 24 * C, wanted, sizeof wanted);
            if (k == 2) {
                assert_same_bits(y + 60 * C, wanted, CUT * C * sizeof *y);
                assert_same_bits(y + 12 * C, wanted + CUT * C, (N - CUT) * C * sizeof *y);
            }
            test_call_destroy(&t);
        }
    }
}

static void without_samples_sequences_count_0_1_2(void **state)
{
    (void)state;
    static const double p = 0.3;
    static const uint64_t counted[] = {0, 1, 2};
    test_call t;
    create(&t, "dropout", &p);
    t.feed.sample = counted;
    run_ones(&t);
    real wanted[80 * C];
    memcpy(wanted, t.out[0], sizeof wanted);
    t.feed.sample = NULL;
    test_call_forward(&t);
    assert_same_bits(t.out[0], wanted, sizeof wanted);
    test_call_destroy(&t);
}

static void backward_drops_what_forward_dropped_in_any_number_of_threads(void **state)
{
    (void)state;
    static const double p = 0.4;
    test_call t;
    create(&t, "dropout", &p);
    run_ones(&t);
    for (int64_t e = 0; e < CAP * C; e++)
        ((real *)t.dout[0])[e] = 1;
    for (int n = 1; n <= TEST_CALL_THREADS; n++) {
        t.on.n_thread = n;
        test_call_backward(&t, 1);
        assert_same_bits(t.din[0], t.out[0], CAP * C * sizeof(real));
    }
    test_call_destroy(&t);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_gradients_follow_the_rule),
        cmocka_unit_test(evaluation_is_the_identity),
        cmocka_unit_test(the_share_dropped_is_p_and_the_mean_stays),
        cmocka_unit_test(masks_differ_between_channels_positions_samples_and_keys),
        cmocka_unit_test(a_sequence_keeps_its_mask_in_another_packing),
        cmocka_unit_test(without_samples_sequences_count_0_1_2),
        cmocka_unit_test(backward_drops_what_forward_dropped_in_any_number_of_threads),
    };
    return ttn_test_run(tests);
}
