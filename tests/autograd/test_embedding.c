/* embedding and positions: values and gradients against plain loops in double. */
#include <math.h>
#include <string.h>
#include "autograd/ops.h"
#include "tests/harness/call.h"
#include "tests/harness/test.h"

#define BOUND (8 * (double)TTN_REAL_EPS) /* a few roundings to a real of numbers up to 2 */

enum { CAP = 480, V = 11, C = 7, MASK = 9 };

static const ttn_extent capacity = {.rows = CAP, .seqs = 4};

static ttn_desc tokens_of(ttn_dtype type)
{
    return ttn_desc_of(type, TTN_ROWS, 1, 0, 0, 0);
}

static void set_token(const test_call *t, int64_t row, int64_t token)
{
    switch (t->sig.in[0].type) {
    case TTN_U8:
        ((uint8_t *)t->in[0])[row] = (uint8_t)token;
        break;
    case TTN_I32:
        ((int32_t *)t->in[0])[row] = (int32_t)token;
        break;
    default:
        ((int64_t *)t->in[0])[row] = token;
    }
}

static int64_t sequence_of(const ttn_feed *f, int64_t row)
{
    for (int64_t s = 0; s < f->used.seqs; s++)
        if (row >= f->span[s].first && row < f->span[s].first + f->span[s].n) return s;
    return -1;
}

/* Ids that go round the vocabulary, masks now and then. */
static int64_t some_token(int64_t row)
{
    return row % 4 == 1 ? MASK : (row * row + 3 * row) % V;
}

static const ttn_span spans[] = {{2, 13}, {24, 6}, {36, 41}};
static const ttn_feed three = {.used = {.rows = 80, .seqs = 3}, .span = spans};

static void fill_table(const test_call *t)
{
    test_call_fill(t->in[1], ttn_desc_numel(&t->sig.in[1]), ttn_test_seed());
    test_call_fill(t->dout[0], ttn_desc_numel(&t->sig.out[0]), ttn_test_seed() + 1);
}

/* The factor of a row from the formula, counting by hand. */
static double factor_of(const ttn_token_dropout *d, const ttn_feed *f, int64_t row)
{
    const int64_t s = sequence_of(f, row);
    if (s < 0) return 0;
    if (d->mask < 0) return 1;
    if (some_token(row) == d->mask) return 0;
    double masks = 0;
    for (int64_t t = f->span[s].first; t < f->span[s].first + f->span[s].n; t++)
        masks += some_token(t) == d->mask;
    return (1 - d->share) / (1 - masks / (double)f->span[s].n);
}

static void compare(ttn_dtype type, const ttn_token_dropout *d)
{
    test_call t;
    test_call_create(&t, "embedding", d, capacity, (const ttn_desc[]){tokens_of(type), ttn_matrix(V, C)});
    t.feed = three;
    fill_table(&t);
    for (int64_t r = 0; r < CAP; r++)
        set_token(&t, r, sequence_of(&three, r) < 0 ? 99 : some_token(r)); /* rows of none hold no token at all */
    test_call_forward(&t);
    test_call_backward(&t, TTN_BIT(1));
    double sum[V][C] = {{0}};
    for (int64_t r = 0; r < CAP; r++) {
        const double f = factor_of(d, &three, r);
        for (int64_t i = 0; i < C; i++) {
            const double wanted = f == 0 ? 0 : f * (double)((const real *)t.in[1])[some_token(r) * C + i];
            assert_at_most(fabs((double)((const real *)t.out[0])[r * C + i] - wanted), BOUND, "an embedding's error");
            if (f != 0) sum[some_token(r)][i] += f * (double)((const real *)t.dout[0])[r * C + i];
        }
    }
    for (int64_t v = 0; v < V; v++)
        for (int64_t i = 0; i < C; i++)
            assert_at_most(fabs((double)((const real *)t.din[1])[v * C + i] - sum[v][i]), 16 * BOUND,
                           "a table's gradient's error");
    test_call_destroy(&t);
}

static void rows_are_those_of_the_table_for_every_type_of_token(void **state)
{
    (void)state;
    const ttn_token_dropout none = {.mask = -1};
    compare(TTN_U8, &none);
    compare(TTN_I32, &none);
    compare(TTN_I64, &none);
}

static void token_dropout_follows_the_formula_of_each_sequence(void **state)
{
    (void)state;
    const ttn_token_dropout esm = {.mask = MASK, .share = 0.15 * 0.8};
    /* the three sequences have different shares of masks, so that a factor of the batch would show */
    assert_true(factor_of(&esm, &three, 2) != factor_of(&esm, &three, 24));
    assert_true(factor_of(&esm, &three, 24) != factor_of(&esm, &three, 36));
    compare(TTN_U8, &esm);
    compare(TTN_I32, &esm);
    compare(TTN_I64, &esm);
}

static void token_dropout_of_a_sequence_ignores_its_batch_mates(void **state)
{
    (void)state;
    const ttn_token_dropout esm = {.mask = MASK, .share = 0.12};
    real alone[13 * C];
    for (int packed = 0; packed < 2; packed++) {
        test_call t;
        test_call_create(&t, "embedding", &esm, capacity, (const ttn_desc[]){tokens_of(TTN_U8), ttn_matrix(V, C)});
        const ttn_span one = {0, 13};
        const ttn_span two[] = {{0, 20}, {24, 13}};
        t.feed = packed ? (ttn_feed){.used = {.rows = 37, .seqs = 2}, .span = two}
                        : (ttn_feed){.used = {.rows = 13, .seqs = 1}, .span = &one};
        fill_table(&t);
        for (int64_t r = 0; r < 20; r++)
            set_token(&t, r, r % 2 ? MASK : 3); /* the mate, half of it masks */
        for (int64_t r = 0; r < 13; r++)
            set_token(&t, (packed ? 24 : 0) + r, r == 5 ? MASK : r % 8);
        test_call_forward(&t);
        if (packed)
            assert_same_bits((const real *)t.out[0] + 24 * C, alone, sizeof alone);
        else
            memcpy(alone, t.out[0], sizeof alone);
        test_call_destroy(&t);
    }
}

static void a_bad_token_is_named_wherever_it_stands(void **state)
{
    (void)state;
    const ttn_token_dropout none = {.mask = -1};
    static const ttn_dtype types[] = {TTN_U8, TTN_I32, TTN_I64};
    for (int k = 0; k < 3; k++) {
        test_call t;
        test_call_create(&t, "embedding", &none, capacity, (const ttn_desc[]){tokens_of(types[k]), ttn_matrix(V, C)});
        t.feed = three;
        ttn_error err = {0};
        set_token(&t, 76, V); /* the last row of the last sequence */
        assert_fails(test_call_try(&t, &err), TTN_EINVAL, &err, "row 76 (sequence 2) has token 11");
        assert_contains(err.text, "the vocabulary has 11: 0 to 10");
        set_token(&t, 76, V - 1);
        set_token(&t, 77, V); /* a row of none */
        test_call_forward(&t);
        if (types[k] == TTN_I64) {
            err = (ttn_error){0};
            set_token(&t, 2, INT64_MIN);
            assert_fails(test_call_try(&t, &err), TTN_EINVAL, &err,
                         "row 2 (sequence 0) has token -9223372036854775808");
            err = (ttn_error){0};
            set_token(&t, 2, ((int64_t)1 << 32) + 3); /* a token, if cut to 32 bits */
            assert_fails(test_call_try(&t, &err), TTN_EINVAL, &err, "row 2 (sequence 0) has token 4294967299");
        }
        test_call_destroy(&t);
    }
}

static void a_sequence_of_nothing_but_masks_is_named(void **state)
{
    (void)state;
    const ttn_token_dropout esm = {.mask = MASK, .share = 0.12};
    test_call t;
    test_call_create(&t, "embedding", &esm, capacity, (const ttn_desc[]){tokens_of(TTN_U8), ttn_matrix(V, C)});
    t.feed = three;
    for (int64_t r = 24; r < 30; r++)
        set_token(&t, r, MASK);
    ttn_error err = {0};
    assert_fails(test_call_try(&t, &err), TTN_EINVAL, &err,
                 "sequence 1 (rows 24 to 29) is nothing but masks (token 9)");
    set_token(&t, 29, 0);
    test_call_forward(&t);
    test_call_destroy(&t);
}

/* 2^16 tokens, most of which are not there; two threads take different parts. */
static void a_large_vocabulary_gets_its_gradient_with_any_number_of_threads(void **state)
{
    (void)state;
    enum { MANY = 1 << 16, W = 3 };
    const ttn_token_dropout none = {.mask = -1};
    test_call t;
    test_call_create(&t, "embedding", &none, capacity, (const ttn_desc[]){tokens_of(TTN_I32), ttn_matrix(MANY, W)});
    assert_at_most((double)t.sig.work[TTN_BACKWARD], 16.0 * CAP + 8.0 * MANY + 64, "workspace in bytes");
    t.feed = (ttn_feed){.used = {.rows = CAP}};
    fill_table(&t);
    for (int64_t r = 0; r < CAP; r++)
        set_token(&t, r, r % 3 == 0 ? MANY - 1 : r * 131);
    test_call_backward(&t, TTN_BIT(1));
    const real *d = t.din[1];
    const real *dy = t.dout[0];
    for (int64_t i = 0; i < W; i++) {
        double last = 0;
        for (int64_t r = 0; r < CAP; r += 3)
            last += (double)dy[r * W + i];
        assert_true(d[(MANY - 1) * W + i] == (real)last);
        assert_true(d[131 * W + i] == dy[W + i]);
        assert_true(d[132 * W + i] == 0);
    }
    real *one = t.din[1];
    real *kept = t.in[1]; /* not needed any more */
    memcpy(kept, one, MANY * W * sizeof *one);
    for (int n = 2; n <= TEST_CALL_THREADS; n++) {
        t.on.n_thread = n;
        test_call_backward(&t, TTN_BIT(1));
        assert_same_bits(one, kept, MANY * W * sizeof *one);
    }
    test_call_destroy(&t);
}

/* ---- learned positions ---- */

static void positions_count_from_each_sequences_start_and_its_crop(void **state)
{
    (void)state;
    enum { L = 60 };
    for (int64_t offset = 0; offset <= 2; offset += 2) {
        const int64_t start[] = {0, 50, 7};
        test_call t;
        test_call_create(&t, "positions", &offset, capacity,
                         (const ttn_desc[]){ttn_desc_of(TTN_REAL, TTN_ROWS, 2, 0, C, 0), ttn_matrix(L, C)});
        t.feed = three;
        t.feed.start = start;
        fill_table(&t);
        test_call_fill(t.in[0], CAP * C, 3);
        test_call_forward(&t);
        test_call_backward(&t, TTN_BIT(0) | TTN_BIT(1));
        double sum[L][C] = {{0}};
        for (int64_t r = 0; r < CAP; r++) {
            const int64_t s = sequence_of(&three, r);
            for (int64_t i = 0; i < C; i++) {
                const int64_t e = r * C + i;
                if (s < 0) {
                    assert_true(((real *)t.out[0])[e] == 0 && ((real *)t.din[0])[e] == 0);
                    continue;
                }
                const int64_t p = r - t.feed.span[s].first + t.feed.start[s] + offset;
                assert_true(((real *)t.out[0])[e] == ((real *)t.in[0])[e] + ((real *)t.in[1])[p * C + i]);
                assert_true(((real *)t.din[0])[e] == ((real *)t.dout[0])[e]);
                sum[p][i] += (double)((real *)t.dout[0])[e];
            }
        }
        for (int64_t p = 0; p < L; p++)
            for (int64_t i = 0; i < C; i++)
                assert_at_most(fabs((double)((real *)t.din[1])[p * C + i] - sum[p][i]), BOUND, "dP's error");
        test_call_destroy(&t);
    }
}

static void a_position_past_the_table_is_named(void **state)
{
    (void)state;
    const int64_t offset = 2;
    test_call t;
    test_call_create(&t, "positions", &offset, capacity,
                     (const ttn_desc[]){ttn_desc_of(TTN_REAL, TTN_ROWS, 2, 0, C, 0), ttn_matrix(60, C)});
    t.feed = three;
    ttn_error err = {0};
    int64_t start[] = {0, 52, 0}; /* rows of P 54 … 59: the last ones */
    t.feed.start = start;
    test_call_forward(&t);
    start[1] = 53;
    assert_fails(test_call_try(&t, &err), TTN_EINVAL, &err,
                 "sequence 1 has 6 rows from position 53 on; the table's 60 rows serve positions 0 to 57");
    start[1] = -1;
    err = (ttn_error){0};
    assert_fails(test_call_try(&t, &err), TTN_EINVAL, &err, "sequence 1 has 6 rows from position -1 on");
    start[1] = INT64_MAX;
    err = (ttn_error){0};
    assert_fails(test_call_try(&t, &err), TTN_EINVAL, &err, "sequence 1 has 6 rows from position 9223372036854775807");
    test_call_destroy(&t);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_table_for_every_type_of_token),
        cmocka_unit_test(token_dropout_follows_the_formula_of_each_sequence),
        cmocka_unit_test(token_dropout_of_a_sequence_ignores_its_batch_mates),
        cmocka_unit_test(a_bad_token_is_named_wherever_it_stands),
        cmocka_unit_test(a_sequence_of_nothing_but_masks_is_named),
        cmocka_unit_test(a_large_vocabulary_gets_its_gradient_with_any_number_of_threads),
        cmocka_unit_test(positions_count_from_each_sequences_start_and_its_crop),
        cmocka_unit_test(a_position_past_the_table_is_named),
    };
    return ttn_test_run(tests);
}
