/* rotary and sinusoid: values against the C library in long double, and what makes rotary useful. */
#include <math.h>
#include <string.h>
#include "autograd/ops.h"
#include "autograd/ops/turn.h"
#include "tests/harness/call.h"
#include "tests/harness/test.h"

enum { CAP = 480, H = 3, D = 10, C = H * D };

/* Angles are products in double: of 10^6 radians 1e-10 is rounded off. Beyond that, roundings to a real. */
#define BOUND(position) (4 * (double)TTN_REAL_EPS + 4e-16 * (double)(position))

static const ttn_extent capacity = {.rows = CAP, .seqs = 4};
static const ttn_span spans[] = {{2, 13}, {24, 6}, {36, 41}};
static const ttn_feed three = {.used = {.rows = 80, .seqs = 3}, .span = spans};

typedef struct {
    int64_t heads;
    double base;
    int64_t form;
} rotary_attributes;

typedef struct {
    int64_t offset, form;
} sinusoid_attributes;

static ttn_desc rows_of(int64_t width)
{
    return ttn_desc_of(TTN_REAL, TTN_ROWS, 2, 0, width, 0);
}

static int64_t sequence_of(const ttn_feed *f, int64_t row)
{
    for (int64_t s = 0; s < f->used.seqs; s++)
        if (row >= f->span[s].first && row < f->span[s].first + f->span[s].n) return s;
    return -1;
}

static void create_rotary(test_call *t, const rotary_attributes *a, int given)
{
    const ttn_desc none = {.ndim = -1};
    test_call_create(t, "rotary", a, capacity, (const ttn_desc[]){rows_of(C), given ? ttn_vector(D / 2) : none});
    test_call_fill(t->in[0], CAP * C, ttn_test_seed());
    test_call_fill(t->dout[0], CAP * C, ttn_test_seed() + 1);
}

/* Channels of pair j in a head. */
static int64_t first_of(const rotary_attributes *a, int64_t j)
{
    return a->form == TTN_ROTARY_HALVES ? j : 2 * j;
}
static int64_t second_of(const rotary_attributes *a, int64_t j)
{
    return a->form == TTN_ROTARY_HALVES ? j + D / 2 : 2 * j + 1;
}

static double frequency_of(const test_call *t, const rotary_attributes *a, int64_t j)
{
    return t->in[1] ? (double)((const real *)t->in[1])[j] : pow(a->base, -2.0 * (double)j / D);
}

/* to is from turned by sign times the angles of its places. */
static void assert_turned(const test_call *t, const rotary_attributes *a, const real *from, const real *to, double sign)
{
    for (int64_t r = 0; r < CAP; r++) {
        const int64_t s = sequence_of(&t->feed, r);
        for (int64_t h = 0; h < H; h++)
            for (int64_t j = 0; j < D / 2; j++) {
                const int64_t ia = r * C + h * D + first_of(a, j);
                const int64_t ib = r * C + h * D + second_of(a, j);
                if (s < 0) {
                    assert_true(to[ia] == 0 && to[ib] == 0);
                    continue;
                }
                const int64_t p = r - t->feed.span[s].first + (t->feed.start ? t->feed.start[s] : 0);
                const long double angle = (long double)sign * (long double)p * (long double)frequency_of(t, a, j);
                const long double wanted_a = from[ia] * cosl(angle) - from[ib] * sinl(angle);
                const long double wanted_b = from[ib] * cosl(angle) + from[ia] * sinl(angle);
                assert_at_most(fabs((double)(to[ia] - wanted_a)), BOUND(p), "the error of a pair's first");
                assert_at_most(fabs((double)(to[ib] - wanted_b)), BOUND(p), "the error of a pair's second");
            }
    }
}

static const rotary_attributes forms[] = {
    {.heads = H, .base = 10000, .form = TTN_ROTARY_HALVES},
    {.heads = H, .base = 10000, .form = TTN_ROTARY_INTERLEAVED},
};

static void pairs_turn_by_position_times_frequency_in_both_forms(void **state)
{
    (void)state;
    static const int64_t start[] = {0, 1000, 7};
    for (int k = 0; k < 4; k++) {
        const rotary_attributes *a = &forms[k % 2];
        test_call t;
        create_rotary(&t, a, k >= 2);
        for (int64_t j = 0; j < D / 2 && t.in[1]; j++)
            ((real *)t.in[1])[j] = (real)1.5 / (real)(j + 1); /* not what a base gives */
        t.feed = three;
        for (int crop = 0; crop < 2; crop++) {
            t.feed.start = crop ? start : NULL;
            test_call_forward(&t);
            test_call_backward(&t, TTN_BIT(0));
            assert_turned(&t, a, t.in[0], t.out[0], 1);
            assert_turned(&t, a, t.dout[0], t.din[0], -1);
        }
        test_call_destroy(&t);
    }
}

/* A float angle is off by 0.03 there. */
static void positions_of_a_million_are_exact(void **state)
{
    (void)state;
    static const int64_t start[] = {1000000, 999983, 123456};
    for (int k = 0; k < 2; k++) {
        test_call t;
        create_rotary(&t, &forms[k], 0);
        t.feed = three;
        t.feed.start = start;
        test_call_forward(&t);
        assert_turned(&t, &forms[k], t.in[0], t.out[0], 1);
        test_call_destroy(&t);
    }
}

static double dot(const real *x, const real *y)
{
    double s = 0;
    for (int64_t i = 0; i < D; i++)
        s += (double)x[i] * (double)y[i];
    return s;
}

/* One vector at every position: q_i . k_j must be a function of i - j. */
static void scores_depend_on_the_distance_alone(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_call q;
        test_call p;
        create_rotary(&q, &forms[k], 0);
        create_rotary(&p, &forms[k], 0);
        test_call_fill(p.in[0], CAP * C, ttn_test_seed() + 5);
        for (int64_t r = 1; r < 60; r++) {
            memcpy((real *)q.in[0] + r * C, q.in[0], C * sizeof(real));
            memcpy((real *)p.in[0] + r * C, p.in[0], C * sizeof(real));
        }
        q.feed = (ttn_feed){.used = {.rows = 60}};
        p.feed = q.feed;
        test_call_forward(&q);
        test_call_forward(&p);
        const real *x = q.out[0];
        const real *y = p.out[0];
        double moved = 0;
        for (int64_t apart = -20; apart <= 20; apart++)
            for (int64_t i = 20; i < 40; i++) {
                const double here = dot(x + i * C, y + (i + apart) * C);
                const double first = dot(x + 20 * C, y + (20 + apart) * C);
                assert_at_most(fabs(here - first), 64 * (double)TTN_REAL_EPS, "a score's change with the place");
                moved = fmax(moved, fabs(here - dot(x + i * C, y + i * C)));
            }
        assert_true(moved > 0.1); /* and it does depend on the distance */
        test_call_destroy(&q);
        test_call_destroy(&p);
    }
}

static void norms_stay(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_call t;
        create_rotary(&t, &forms[k], 0);
        t.feed = (ttn_feed){.used = {.rows = CAP}};
        test_call_forward(&t);
        for (int64_t r = 0; r < CAP * H; r++) {
            const real *x = (const real *)t.in[0] + r * D;
            const real *y = (const real *)t.out[0] + r * D;
            assert_at_most(fabs(dot(x, x) - dot(y, y)), 64 * (double)TTN_REAL_EPS, "a norm's change");
        }
        test_call_destroy(&t);
    }
}

/* The same sequence first, second, and as two crops of which the second says where it starts. */
static void a_sequence_has_the_same_bits_wherever_it_stands(void **state)
{
    (void)state;
    enum { N = 40, CUT = 17 };
    real wanted[N * C];
    static const ttn_span alone[] = {{0, N}};
    static const ttn_span second[] = {{0, 24}, {24, N}};
    static const ttn_span cut[] = {{0, CUT}, {24, N - CUT}};
    static const int64_t start[] = {0, CUT};
    const ttn_feed feeds[] = {
        {.used = {.rows = N, .seqs = 1}, .span = alone},
        {.used = {.rows = 24 + N, .seqs = 2}, .span = second},
        {.used = {.rows = 24 + N - CUT, .seqs = 2}, .span = cut, .start = start},
    };
    for (int k = 0; k < 3; k++) {
        test_call t;
        create_rotary(&t, &forms[0], 0);
        t.feed = feeds[k];
        real x[N * C];
        test_call_fill(x, N * C, 9);
        real *to = t.in[0];
        const real *y = t.out[0];
        if (k < 2) {
            memcpy(to + k * 24 * C, x, sizeof x);
        } else {
            memcpy(to, x, CUT * C * sizeof *x);
            memcpy(to + 24 * C, x + CUT * C, (N - CUT) * C * sizeof *x);
        }
        t.on.n_thread = 1 + k;
        test_call_forward(&t);
        if (k == 0) memcpy(wanted, y, sizeof wanted);
        if (k == 1) assert_same_bits(y + 24 * C, wanted, sizeof wanted);
        if (k == 2) {
            assert_same_bits(y, wanted, CUT * C * sizeof *y);
            assert_same_bits(y + 24 * C, wanted + CUT * C, (N - CUT) * C * sizeof *y);
        }
        test_call_destroy(&t);
    }
}

static void sines_and_cosines_agree_with_the_c_library(void **state)
{
    (void)state;
    const int64_t n = ttn_scaled(400000, 20000);
    const int fused = ttn_fmad(1 + 0x1p-30, 1 - 0x1p-30, -1) != 0; /* else the angle is rounded once more */
    real u[2];
    for (int64_t i = 0; i < n; i++) {
        test_call_fill(u, 2, (uint64_t)i);
        const double angle =
            (double)u[0] * pow(10, 9.0 * fabs((double)u[1])) + (i % 2 ? 0 : (double)(i % 4000) * 0x1.921fb54442d18p-1);
        double s;
        double c;
        ttn_turn(angle, &s, &c);
        const double bound = 2.3e-16 + (fused ? 0 : 4e-16 * fabs(angle));
        assert_at_most(fabs((double)((long double)s - sinl((long double)angle))), bound, "a sine's error");
        assert_at_most(fabs((double)((long double)c - cosl((long double)angle))), bound, "a cosine's error");
    }
}

/* ---- sinusoid ---- */

static long double wave(const sinusoid_attributes *a, int64_t width, int64_t position, int64_t channel)
{
    const int64_t K = width / 2;
    const double p = (double)(position + a->offset);
    if (a->form == TTN_SINUSOID_INTERLEAVED) {
        const double f = pow(10000, -(double)(channel - channel % 2) / (double)width);
        return channel % 2 == 0 ? sinl((long double)p * f) : cosl((long double)p * f);
    }
    if (channel == 2 * K) return 0;
    const double f = pow(10000, -(double)(channel % K) / (double)(K - 1));
    return channel < K ? sinl((long double)p * f) : cosl((long double)p * f);
}

static void sinusoids_follow_their_formulas_in_both_forms(void **state)
{
    (void)state;
    static const sinusoid_attributes attributes[] = {
        {.offset = 0, .form = TTN_SINUSOID_INTERLEAVED},
        {.offset = 2, .form = TTN_SINUSOID_HALVES},
    };
    static const int64_t start[] = {0, 1000000, 7};
    for (int k = 0; k < 4; k++) {
        const sinusoid_attributes *a = &attributes[k % 2];
        const int64_t width = k < 2 ? 30 : 31;
        test_call t;
        test_call_create(&t, "sinusoid", a, capacity, (const ttn_desc[]){rows_of(width)});
        test_call_fill(t.in[0], CAP * width, 1);
        test_call_fill(t.dout[0], CAP * width, 2);
        t.feed = three;
        t.feed.start = start;
        test_call_forward(&t);
        test_call_backward(&t, TTN_BIT(0));
        for (int64_t r = 0; r < CAP; r++) {
            const int64_t s = sequence_of(&three, r);
            for (int64_t i = 0; i < width; i++) {
                const real y = ((real *)t.out[0])[r * width + i];
                const real dx = ((real *)t.din[0])[r * width + i];
                if (s < 0) {
                    assert_true(y == 0 && dx == 0);
                    continue;
                }
                const int64_t p = r - t.feed.span[s].first + t.feed.start[s];
                const long double wanted = ((real *)t.in[0])[r * width + i] + wave(a, width, p, i);
                assert_at_most(fabs((double)(y - wanted)), BOUND(p), "a sinusoid's error");
                assert_true(dx == ((real *)t.dout[0])[r * width + i]);
            }
        }
        test_call_destroy(&t);
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_turn_by_position_times_frequency_in_both_forms),
        cmocka_unit_test(positions_of_a_million_are_exact),
        cmocka_unit_test(scores_depend_on_the_distance_alone),
        cmocka_unit_test(norms_stay),
        cmocka_unit_test(a_sequence_has_the_same_bits_wherever_it_stands),
        cmocka_unit_test(sines_and_cosines_agree_with_the_c_library),
        cmocka_unit_test(sinusoids_follow_their_formulas_in_both_forms),
    };
    return ttn_test_run(tests);
}
