#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/hash.h"
#include "core/rng.h"
#include "tests/harness/test.h"

/* Statistics are z-scores: 5 standard deviations, which chance passes 6 times in 10^7, for each of about 500 of them.
 * Of a chi-square with k degrees of freedom (k >= 63 here) the z-score is (X - k) / sqrt(2 k). */
#define Z_BOUND 5.0

static int64_t n_draw(void)
{
    return ttn_scaled(1 << 21, 1 << 17);
}

static uint64_t key_of(uint64_t use)
{
    return ttn_rng_key(ttn_test_seed(), use, 0);
}

static void *get(int64_t n, size_t size)
{
    void *memory = malloc((size_t)n * size);
    assert_non_null(memory);
    return memory;
}

static double chi_square_z(const int64_t *count, int n_cell, int64_t n)
{
    double expected = (double)n / n_cell;
    double sum = 0;
    for (int i = 0; i < n_cell; i++)
        sum += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
    return (sum - (n_cell - 1)) / sqrt(2.0 * (n_cell - 1));
}

/* ---- Philox ---- */

static void blocks_are_the_published_ones(void **state)
{
    (void)state;
    /* kat_vectors of Random123, philox4x32 with 10 rounds: zeros, ones, digits of pi */
    static const struct {
        uint32_t counter[4], key[2], word[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t word[4];
        ttn_philox(known[i].counter, known[i].key, word);
        assert_same_bits(word, known[i].word, sizeof word);
    }
}

/* Which word of counter and key holds which bits of the address: computed by a separate program. */
static void an_address_means_the_same_on_every_machine(void **state)
{
    (void)state;
    static const uint32_t known[4] = {0x073bc431, 0x11f81084, 0x0b6482d1, 0x9cd7ae93};
    uint32_t word[4];
    ttn_philox_at(0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x8877665544332211, word);
    assert_same_bits(word, known, sizeof word);
    assert_true(ttn_rng_key(20180625, 0x123456789ABCDEF0, 7) == 0x77cb990d55e25d0b);
    assert_true(ttn_philox_place(0x89ABCDEF, 0x01234567) == 0x89ABCDEF01234567);
}

static int bits_that_differ(const uint32_t *a, const uint32_t *b, int n)
{
    int differ = 0;
    for (int i = 0; i < n; i++)
        differ += __builtin_popcount(a[i] ^ b[i]);
    return differ;
}

/* A bit of the key, of the sample's number (high) or of the place (low) changes half of the words' bits, whether blocks
 * are made one by one or many; and so a bit of seed, name or step half of the key's. A field that loses its upper half
 * changes none. */
static void every_bit_of_key_and_counter_counts(void **state)
{
    (void)state;
    enum { FIELD = 3, BLOCK = 40 }; /* enough for the vector code and its rest */
    int64_t n_base = ttn_scaled(200, 20);
    ttn_rng r = {.key = key_of(1)};
    for (int bit = 0; bit < 64 * FIELD; bit++) {
        double one = 0;
        double many = 0;
        double key = 0;
        for (int64_t base = 0; base < n_base; base++) {
            uint64_t from[FIELD] = {ttn_rng_next(&r), ttn_rng_next(&r), ttn_rng_next(&r)};
            uint64_t to[FIELD] = {from[0], from[1], from[2]};
            to[bit / 64] ^= (uint64_t)1 << bit % 64;

            uint32_t a[4 * BLOCK];
            uint32_t b[4 * BLOCK];
            ttn_rng_words(from[0], from[1], from[2], BLOCK, a);
            ttn_rng_words(to[0], to[1], to[2], BLOCK, b);
            many += bits_that_differ(a, b, 4 * BLOCK);
            uint32_t single[2][4];
            ttn_philox_at(from[0], from[1], from[2], single[0]);
            ttn_philox_at(to[0], to[1], to[2], single[1]);
            one += bits_that_differ(single[0], single[1], 4);
            assert_same_bits(a, single[0], sizeof single[0]);
            assert_same_bits(b, single[1], sizeof single[1]);
            key += __builtin_popcountll(ttn_rng_key(from[0], from[1], from[2]) ^ ttn_rng_key(to[0], to[1], to[2]));
        }
        double n = (double)n_base;
        double z_one = (one - n * 64) / sqrt(n * 32);
        double z_many = (many - n * 64 * BLOCK) / sqrt(n * 32 * BLOCK);
        double z_key = (key - n * 32) / sqrt(n * 16);
        if (fabs(z_one) > Z_BOUND || fabs(z_many) > Z_BOUND || fabs(z_key) > Z_BOUND)
            fail_msg("bit %d of %s: z %g (one block), %g (many), %g (key)", bit % 64,
                     (const char *[]){"key", "high", "low"}[bit / 64], z_one, z_many, z_key);
    }
}

static void many_blocks_are_single_blocks(void **state)
{
    (void)state;
    enum { MOST = 70, GUARD = 4 };
    static const uint64_t low[] = {0, 3, 0xFFFFFFF0, 0xFFFFFFFFFFFFFFF7, 0x123456789};
    const uint32_t guard = 0xDEADBEEF;
    for (size_t l = 0; l < sizeof low / sizeof *low; l++)
        for (int64_t n = 0; n <= MOST; n++) {
            uint32_t word[4 * MOST + GUARD];
            for (int i = 0; i < 4 * MOST + GUARD; i++)
                word[i] = guard;
            ttn_rng_words(key_of(2), (uint64_t)n, low[l], n, word);
            for (int64_t i = 0; i < n; i++) {
                uint32_t single[4];
                ttn_philox_at(key_of(2), (uint64_t)n, low[l] + (uint64_t)i, single);
                assert_same_bits(word + 4 * i, single, sizeof single);
            }
            for (int64_t i = 4 * n; i < 4 * MOST + GUARD; i++)
                assert_int_equal(word[i], guard);
        }
}

/* ---- uniform ---- */

static void uniform_numbers_lie_on_their_lattice_inside_0_and_1(void **state)
{
    (void)state;
    assert_true(ttn_philox_f32(0) == 0x1p-25f);
    assert_true(ttn_philox_f32(0xFF) == 0x1p-25f);
    assert_true(ttn_philox_f32(0x100) == 0x1p-24f);
    assert_true(ttn_philox_f32(0x80000000) == 0.5f);
    assert_true(ttn_philox_f32(0xFFFFFFFF) == 1 - 0x1p-24f);
    assert_true(ttn_philox_f64(0, 0) == 0x1p-54);
    assert_true(ttn_philox_f64(0, 0x7FF) == 0x1p-54);
    assert_true(ttn_philox_f64(0, 0x800) == 0x1p-53);
    assert_true(ttn_philox_f64(1, 0) == 0x1p-32);
    assert_true(ttn_philox_f64(0x80000000, 0) == 0.5);
    assert_true(ttn_philox_f64(0xFFFFFFFF, 0xFFFFFFFF) == 1 - 0x1p-53);

    ttn_rng r = {.key = key_of(3)};
    for (int64_t i = 0; i < n_draw() / 8; i++) {
        uint64_t bits = ttn_rng_next(&r) >> ttn_rng_next_below(&r, 64); /* small ones too */
        uint32_t high = (uint32_t)(bits >> 32);
        uint32_t low = (uint32_t)bits;
        double wide = ttn_philox_f64(high, low);
        float narrow = ttn_philox_f32(high);
        assert_true(wide == (bits >> 11 == 0 ? 0x1p-54 : (double)(bits >> 11) * 0x1p-53));
        assert_true(narrow == (high >> 8 == 0 ? 0x1p-25f : (float)(high >> 8) * 0x1p-24f));
        assert_true(fabs(wide - (double)narrow) < 0x1p-24);
        assert_true(ttn_philox_real(high, low) == (sizeof(real) == sizeof(double) ? (real)wide : (real)narrow));
    }
}

/* Every bit of the 24 or 53 is 1 half of the time, the lowest too, and independent of the one above it; the ends of the
 * number are flat in chi-square. */
static void uniform_numbers_fill_all_their_bits(void **state)
{
    (void)state;
    enum { BITS = sizeof(real) == sizeof(double) ? 53 : 24, CELL = 256 };
    int64_t n = n_draw();
    real *u = get(n, sizeof *u);
    ttn_rng_uniform(key_of(4), 0, n, u);
    int64_t ones[BITS] = {0};
    int64_t same_as_above[BITS] = {0};
    int64_t top[CELL] = {0};
    int64_t bottom[CELL] = {0};
    for (int64_t i = 0; i < n; i++) {
        assert_true(u[i] > 0 && u[i] < 1);
        uint64_t k = (uint64_t)ldexp((double)u[i], BITS);
        for (int bit = 0; bit < BITS; bit++) {
            ones[bit] += (int64_t)(k >> bit & 1);
            same_as_above[bit] += (int64_t)(~(k >> bit ^ k >> (bit + 1)) & 1);
        }
        top[k >> (BITS - 8)]++;
        bottom[k % CELL]++;
    }
    free(u);
    double deviation = sqrt((double)n) / 2;
    for (int bit = 0; bit < BITS; bit++) {
        assert_at_most(fabs((double)ones[bit] - (double)n / 2) / deviation, Z_BOUND, "ones of a bit, z");
        if (bit < BITS - 1)
            assert_at_most(fabs((double)same_as_above[bit] - (double)n / 2) / deviation, Z_BOUND,
                           "a bit and the one above, z");
    }
    assert_at_most(chi_square_z(top, CELL, n), Z_BOUND, "highest 8 bits, chi-square z");
    assert_at_most(chi_square_z(bottom, CELL, n), Z_BOUND, "lowest 8 bits, chi-square z");
}

/* ---- arrays ---- */

typedef void (*filler)(uint64_t key, uint64_t first, int64_t n, real *out);

/* Element i depends on i alone: not on where a range starts or ends, nor on how it is cut between threads. */
static void an_element_does_not_depend_on_how_the_range_is_cut(void **state)
{
    (void)state;
    enum { N = 3000 };
    static const filler fills[] = {ttn_rng_uniform, ttn_rng_normal};
    static const uint64_t firsts[] = {0, 1, 0x1FFFFFFF1, UINT64_MAX - (N - 1)};
    ttn_rng r = {.key = key_of(5)};
    for (size_t f = 0; f < 2; f++)
        for (size_t s = 0; s < sizeof firsts / sizeof *firsts; s++) {
            static real whole[N];
            fills[f](key_of(6), firsts[s], N, whole);
            for (int64_t round = 0; round < ttn_scaled(200, 20); round++) {
                static real cut[N + 1];
                for (int64_t at = 0; at < N;) {
                    int64_t piece = (int64_t)ttn_rng_next_below(&r, round % 2 == 0 ? 5 : 700);
                    if (piece > N - at) piece = N - at;
                    cut[at + piece] = -77;
                    fills[f](key_of(6), firsts[s] + (uint64_t)at, piece, cut + at);
                    assert_true(cut[at + piece] == -77); /* nothing is written past the end */
                    at += piece;
                }
                assert_same_bits(cut, whole, sizeof whole);
            }
        }
}

/* The definition in the header, in scalar code; 2^41 + 11 is an element whose block number needs 40 bits. */
static void elements_come_from_the_blocks_that_the_header_names(void **state)
{
    (void)state;
    static const uint64_t firsts[] = {0, ((uint64_t)1 << 41) + 11, 0xFFFFFFFFFFFFFE00};
    for (size_t s = 0; s < sizeof firsts / sizeof *firsts; s++) {
        enum { N = 400 };
        real u[N];
        real z[N];
        ttn_rng_uniform(key_of(7), firsts[s], N, u);
        ttn_rng_normal(key_of(7), firsts[s], N, z);
        for (int i = 0; i < N; i++) {
            uint64_t index = firsts[s] + (uint64_t)i;
            uint32_t word[4];
            double pair[2];
            ttn_philox_at(key_of(7), 0, index / 2, word);
            ttn_philox_normal(word, pair);
            assert_true(u[i] == ttn_philox_real(word[2 * (index % 2)], word[2 * (index % 2) + 1]));
            assert_true(z[i] == (real)pair[index % 2]);
        }
    }
}

/* ---- normal ---- */

/* Digits from a separate program with 60 decimal places (Philox in integers, log and cos from mpmath). */
static void normal_numbers_are_those_of_a_separate_program(void **state)
{
    (void)state;
    static const double known[] = {
        0.7086586080040365004901424, 0.3935566456183886924364366, -0.6971778840211303240753627,
        0.5372241116530758130404306, -0.09725241510623402215944,  0.2358176409958829006419677,
        0.8722499120171183310224865, 0.1798486772649291295930728,
    };
    enum { N = sizeof known / sizeof *known };
    real z[N];
    ttn_rng_normal(0x0123456789ABCDEF, 0, N, z);
    for (int i = 0; i < N; i++)
        assert_at_most(fabs((double)z[i] - known[i]), (double)TTN_REAL_EPS, "difference");
}

/* Against long double, with u and v pushed to both ends, and v around eighths of the circle. The error is told in units
 * of the radius: the coordinates cannot be better than their angle's last bit. */
static void normal_numbers_are_exact_to_the_last_bits(void **state)
{
    (void)state;
    const long double half_pi = 1.57079632679489661923132169163975144L;
    double worst = 0;
    ttn_rng r = {.key = key_of(8)};
    for (int64_t i = 0; i < n_draw() / (ttn_test_long() ? 1 : 8); i++) {
        uint64_t a = ttn_rng_next(&r);
        uint64_t b = ttn_rng_next(&r);
        uint64_t small = ttn_rng_next(&r) >> ttn_rng_next_below(&r, 64);
        if (i % 4 == 1) a = small;
        if (i % 4 == 2) a = ~small;
        if (i % 4 == 3) b = (b & (uint64_t)7 << 61) + (i % 8 == 3 ? small : -small);
        const uint32_t word[4] = {(uint32_t)(a >> 32), (uint32_t)a, (uint32_t)(b >> 32), (uint32_t)b};
        double z[2];
        ttn_philox_normal(word, z);

        long double u = (long double)ttn_philox_f64(word[0], word[1]);
        long double v = (long double)ttn_philox_f64(word[2], word[3]);
        long double radius = sqrtl(-2 * logl(u));
        long double quarter = rintl(4 * v);
        long double angle = (4 * v - quarter) * half_pi;
        long double x[4] = {cosl(angle), -sinl(angle), -cosl(angle), sinl(angle)};
        int q = (int)quarter;
        double error0 = (double)fabsl((long double)z[0] / radius - x[q % 4]);
        double error1 = (double)fabsl((long double)z[1] / radius - x[(q + 3) % 4]);
        worst = fmax(worst, fmax(error0, error1));
    }
    printf("# largest error of a normal: %.3g of its pair's radius\n", worst);
    assert_at_most(worst, 4.5e-16, "largest error of a normal over its radius");
}

/* The bits are part of what a seed means: the same for gcc, clang, sanitizers, vector and scalar code, AVX2, AVX-512
 * and NEON. Those in double are one number for both builds. */
static void normal_numbers_have_the_same_bits_everywhere(void **state)
{
    (void)state;
    enum { N = 20000 };
    double *pair = get(N, sizeof *pair);
    for (int64_t i = 0; i < N / 2; i++) {
        uint32_t word[4];
        ttn_philox_at(20180625, 0, (uint64_t)i, word);
        ttn_philox_normal(word, pair + 2 * i);
    }
    uint64_t hash = ttn_hash64(pair, N * sizeof *pair, 0);
    free(pair);
    if (hash != 0xad3ee30d5805173f) fail_msg("hash of pairs %016" PRIx64, hash);

    real *z = get(N, sizeof *z);
    ttn_rng_normal(20180625, 12345, N, z);
    hash = ttn_hash64(z, N * sizeof *z, 0);
    free(z);
    uint64_t known = sizeof(real) == sizeof(double) ? 0xbf017509ec695998 : 0xaff57574b83af3e0;
    if (hash != known) fail_msg("hash of an array %016" PRIx64, hash);
}

/* An f32 build starts from the same weights as an f64 build, rounded. */
static void normal_numbers_do_not_depend_on_the_precision_but_for_rounding(void **state)
{
    (void)state;
    enum { N = 1000 };
    real z[N];
    ttn_rng_normal(key_of(9), 0, N, z);
    for (int i = 0; i < N; i += 2) {
        uint32_t word[4];
        double pair[2];
        ttn_philox_at(key_of(9), 0, (uint64_t)i / 2, word);
        ttn_philox_normal(word, pair);
        assert_true(z[i] == (real)pair[0] && z[i + 1] == (real)pair[1]);
    }
}

static int ascending(const void *a, const void *b)
{
    real x = *(const real *)a;
    real y = *(const real *)b;
    return (x > y) - (x < y);
}

/* sqrt(n) D > 2.6 happens by chance with probability 2 exp(-2 * 2.6^2) = 3e-6 (Kolmogorov). */
static void normal_numbers_follow_the_normal_distribution(void **state)
{
    (void)state;
    int64_t n = n_draw() / 4;
    real *z = get(n, sizeof *z);
    ttn_rng_normal(key_of(10), 0, n, z);
    qsort(z, (size_t)n, sizeof *z, ascending);
    double distance = 0;
    for (int64_t i = 0; i < n; i++) {
        double below = erfc(-(double)z[i] / sqrt(2)) / 2;
        distance = fmax(distance, fmax(below - (double)i / (double)n, (double)(i + 1) / (double)n - below));
    }
    free(z);
    assert_at_most(distance * sqrt((double)n), 2.6, "Kolmogorov's sqrt(n) D");
}

/* Both tails: counts beyond 3, 4 and 5 are within 5 deviations of a Poisson count (and 4 more, as few are expected). */
static void tails_of_normal_numbers_have_their_weight(void **state)
{
    (void)state;
    int64_t n = ttn_scaled(ttn_test_long() ? 1 << 27 : 1 << 23, 1 << 19);
    enum { PIECE = 4096 };
    int64_t count[2][6] = {{0}};
    for (int64_t at = 0; at < n; at += PIECE) {
        real z[PIECE];
        ttn_rng_normal(key_of(11), (uint64_t)at, PIECE, z);
        for (int i = 0; i < PIECE; i++) {
            real size = z[i] < 0 ? -z[i] : z[i];
            if (size < 3) continue;
            for (int limit = 3; limit <= 5; limit++)
                count[z[i] < 0][limit] += size > (real)limit;
        }
    }
    for (int side = 0; side < 2; side++)
        for (int limit = 3; limit <= 5; limit++) {
            double expected = (double)n * erfc(limit / sqrt(2)) / 2;
            double off = fabs((double)count[side][limit] - expected);
            printf("# %s %d: %" PRId64 ", expected %.1f\n", side ? "below -" : "above", limit, count[side][limit],
                   expected);
            assert_at_most(off, Z_BOUND * sqrt(expected) + 4, "count in a tail, off by");
        }
}

/* ---- moments and correlations ---- */

/* Means of x, x^2, x^3, x^4 against those of the distribution; their variances need moments up to the 8th. */
static void check_moments(filler fill, const double moment[9], const char *what)
{
    enum { PIECE = 4096 };
    int64_t n = n_draw();
    double sum[5] = {0};
    for (int64_t at = 0; at < n; at += PIECE) {
        real x[PIECE];
        fill(key_of(12), (uint64_t)at, PIECE, x);
        for (int i = 0; i < PIECE; i++) {
            double power = 1;
            for (int m = 1; m <= 4; m++) {
                power *= (double)x[i];
                sum[m] += power;
            }
        }
    }
    n = (n + PIECE - 1) / PIECE * PIECE;
    for (int m = 1; m <= 4; m++) {
        double variance = moment[2 * m] - moment[m] * moment[m];
        double z = (sum[m] / (double)n - moment[m]) / sqrt(variance / (double)n);
        printf("# %s, moment %d: z %.2f\n", what, m, z);
        assert_at_most(fabs(z), Z_BOUND, what);
    }
}

static void moments_are_those_of_the_distributions(void **state)
{
    (void)state;
    static const double uniform[] = {1, 1 / 2., 1 / 3., 1 / 4., 1 / 5., 1 / 6., 1 / 7., 1 / 8., 1 / 9.};
    static const double normal[] = {1, 0, 1, 0, 3, 0, 15, 0, 105};
    check_moments(ttn_rng_uniform, uniform, "uniform");
    check_moments(ttn_rng_normal, normal, "normal");
}

/* z of the correlation of a[0 … n) with b[0 … n), whose mean and deviation are known. */
static double correlation_z(const real *a, const real *b, int64_t n, double mean, double deviation)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += ((double)a[i] - mean) * ((double)b[i] - mean);
    return sum / (deviation * deviation * sqrt((double)n));
}

/* Lags up to 20, and those at which lanes, chunks and powers of two come round; of the numbers and of their squares
 * (a pair of normals shares a radius). */
static void elements_of_a_stream_are_not_correlated(void **state)
{
    (void)state;
    static const int64_t lag[] = {1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11,  12,  13,   14,   15,
                                  16, 17, 18, 19, 20, 31, 32, 127, 128, 129, 256, 512, 4096, 32768};
    static const filler fills[] = {ttn_rng_uniform, ttn_rng_normal};
    static const double mean[] = {0.5, 0};
    static const double mean_square[] = {1 / 3., 1};
    int64_t n = n_draw() / 4;
    int64_t most = 32768;
    real *x = get(n + most, sizeof *x);
    real *square = get(n + most, sizeof *square);
    for (int f = 0; f < 2; f++) {
        fills[f](key_of(13), 0, n + most, x);
        for (int64_t i = 0; i < n + most; i++)
            square[i] = x[i] * x[i];
        double deviation = f == 0 ? sqrt(1 / 12.) : 1;
        double deviation_square = f == 0 ? sqrt(1 / 5. - 1 / 9.) : sqrt(2);
        for (size_t l = 0; l < sizeof lag / sizeof *lag; l++) {
            double z = correlation_z(x, x + lag[l], n, mean[f], deviation);
            double z_square = correlation_z(square, square + lag[l], n, mean_square[f], deviation_square);
            assert_at_most(fabs(z), Z_BOUND, "elements at a lag, correlation z");
            assert_at_most(fabs(z_square), Z_BOUND, "squares of elements at a lag, correlation z");
        }
    }
    free(x);
    free(square);
}

/* Streams whose keys, or whose samples' numbers, differ in one bit. */
static void streams_that_differ_in_one_bit_are_not_correlated(void **state)
{
    (void)state;
    int64_t n = n_draw() / 64 / 4 * 4;
    real *a = get(n, sizeof *a);
    real *b = get(n, sizeof *b);
    ttn_rng_normal(key_of(14), 0, n, a);
    for (int bit = 0; bit < 64; bit++) {
        ttn_rng_normal(key_of(14) ^ (uint64_t)1 << bit, 0, n, b);
        assert_at_most(fabs(correlation_z(a, b, n, 0, 1)), Z_BOUND, "keys that differ in one bit, correlation z");
        for (int64_t i = 0; i < n / 2; i++) {
            uint32_t word[4];
            double z[2];
            ttn_philox_at(key_of(14), (uint64_t)1 << bit, (uint64_t)i, word);
            ttn_philox_normal(word, z);
            b[2 * i] = (real)z[0];
            b[2 * i + 1] = (real)z[1];
        }
        assert_at_most(fabs(correlation_z(a, b, n, 0, 1)), Z_BOUND, "samples that differ in one bit, correlation z");
    }
    free(a);
    free(b);
}

/* ---- whole numbers ---- */

/* Each of the numbers below `bound` equally often, told apart by their remainder modulo n_cell (a divisor of bound). */
static void check_below(uint64_t bound, int n_cell)
{
    int64_t count[2][128] = {{0}};
    int64_t n = n_draw() / 8;
    ttn_rng r = {.key = key_of(bound)};
    uint64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t addressed = ttn_rng_below(key_of(15), bound, (uint64_t)i, bound);
        uint64_t drawn = ttn_rng_next_below(&r, bound);
        assert_true(addressed < bound && drawn < bound);
        count[0][addressed % (uint64_t)n_cell]++;
        count[1][drawn % (uint64_t)n_cell]++;
        if (addressed > most) most = addressed;
    }
    assert_at_most(chi_square_z(count[0], n_cell, n), Z_BOUND, "numbers at addresses, chi-square z");
    assert_at_most(chi_square_z(count[1], n_cell, n), Z_BOUND, "numbers in sequence, chi-square z");
    /* the largest of n: less than (1 - 20 / n) bound with probability exp(-20) = 2e-9 */
    assert_true((double)most >= (1 - 20 / (double)n) * (double)bound - 1);
}

/* 96 2^57 is three quarters of 2^64: without rejection a third of the numbers come twice as often, those that are
 * multiples of 3 (and the chi-square is in the thousands). 65 2^57 is a little above one half. */
static void whole_numbers_below_a_bound_are_equally_likely(void **state)
{
    (void)state;
    check_below(64, 64);
    check_below(97, 97);
    check_below(6400, 64);
    check_below((uint64_t)101 << 25, 101); /* near 2^32 */
    check_below((uint64_t)101 << 26, 101);
    check_below((uint64_t)96 << 57, 96);
    check_below((uint64_t)65 << 57, 65);
    check_below((uint64_t)127 << 57, 127);
}

static void whole_numbers_below_1_and_below_all_bits(void **state)
{
    (void)state;
    uint64_t all = 0;
    for (uint64_t i = 0; i < 100; i++) {
        assert_true(ttn_rng_below(key_of(16), 0, i, 1) == 0);
        uint32_t word[4];
        ttn_philox_at(key_of(16), 0, i, word);
        uint64_t first = (uint64_t)word[0] << 32 | word[1];
        assert_true(ttn_rng_below(key_of(16), 0, i, (uint64_t)1 << 63) == first >> 1);
        all |= ttn_rng_below(key_of(16), 0, i, UINT64_MAX);
    }
    assert_true(all == UINT64_MAX);
}

/* Below 2^63 + 1 half of all words are rejected, so a quarter of the draws passes both words of its block. If it went
 * on with the next counter's words, neighbours would be equal; with the same words, the call would not return. */
static void a_rejected_draw_touches_no_other_counter(void **state)
{
    (void)state;
    const uint64_t bound = ((uint64_t)1 << 63) + 1;
    const uint64_t least_rest = ((uint64_t)1 << 63) - 1; /* 2^64 modulo bound */
    enum { N = 20000 };
    uint64_t *x = get(N, sizeof *x);
    int64_t beyond = 0;
    for (int64_t i = 0; i < N; i++) {
        uint64_t high = (uint64_t)(i % 100);
        uint64_t low = (uint64_t)(i / 100);
        x[i] = ttn_rng_below(key_of(17), high, low, bound);
        assert_true(x[i] == ttn_rng_below(key_of(17), high, low, bound));
        uint32_t word[4];
        ttn_philox_at(key_of(17), high, low, word);
        uint64_t first = (uint64_t)word[0] << 32 | word[1];
        uint64_t second = (uint64_t)word[2] << 32 | word[3];
        beyond += first * bound < least_rest && second * bound < least_rest;
    }
    assert_at_most(fabs((double)beyond - N / 4.0) / (sqrt(3.0 * N) / 4), Z_BOUND, "draws beyond their block, z");
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = i + 1; j < N && j < i + 300; j++)
            assert_true(x[i] != x[j]);
    free(x);
}

/* The rule of the header, written again: the two words of the block, then those of the same counter under the keys
 * that are derived from the first. Returns the number of keys that were needed. */
static uint64_t below_by_the_rule(uint64_t key, uint64_t high, uint64_t low, uint64_t bound, uint64_t *ret)
{
    __extension__ typedef unsigned __int128 wide;
    const uint64_t hash = 0xB7E151628AED2A6A;
    for (uint64_t n_key = 1;; n_key++) {
        uint32_t word[4];
        ttn_philox_at(n_key == 1 ? key : ttn_rng_key(key, hash, n_key - 1), high, low, word);
        for (int i = 0; i < 4; i += 2) {
            wide product = (wide)((uint64_t)word[i] << 32 | word[i + 1]) * bound;
            *ret = (uint64_t)(product >> 64);
            if ((uint64_t)product >= (UINT64_MAX - bound + 1) % bound) return n_key;
        }
    }
}

/* Below 2^63 + 1 a quarter of the draws needs a second key, a sixteenth a third, … */
static void a_rejected_draw_goes_on_with_the_keys_that_the_header_names(void **state)
{
    (void)state;
    const uint64_t bound = ((uint64_t)1 << 63) + 1;
    int64_t n_with[5] = {0};
    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t wanted;
        uint64_t n_key = below_by_the_rule(key_of(19), i % 7, i, bound, &wanted);
        assert_true(ttn_rng_below(key_of(19), i % 7, i, bound) == wanted);
        n_with[n_key < 5 ? n_key : 4]++;
    }
    for (int n = 1; n < 5; n++)
        assert_true(n_with[n] > 0);
}

/* ---- the sequence ---- */

static void a_sequence_goes_through_its_stream_once(void **state)
{
    (void)state;
    enum { BLOCK = 50 };
    uint32_t word[4 * BLOCK];
    ttn_rng_words(key_of(18), 0, 0, BLOCK, word);
    ttn_rng r = {.key = key_of(18)};
    for (int i = 0; i < 2 * BLOCK; i++) {
        ttn_rng copy = r;
        ttn_rng uniform = r;
        uint64_t bits = ttn_rng_next(&r);
        assert_true(bits == ((uint64_t)word[2 * i] << 32 | word[2 * i + 1]));
        assert_true(bits == ttn_rng_next(&copy));
        assert_true(ttn_rng_next_uniform(&uniform) == ttn_philox_real(word[2 * i], word[2 * i + 1]));
        assert_true(r.used == (uint64_t)i + 1 && uniform.used == r.used);
    }

    ttn_rng resumed = {.key = key_of(18), .used = 42};
    assert_true(ttn_rng_next(&resumed) == ((uint64_t)word[84] << 32 | word[85]));

    ttn_rng normal = {.key = key_of(18)};
    for (int i = 0; i < BLOCK; i++) {
        double pair[2];
        ttn_philox_normal(word + 4 * i, pair);
        assert_true(ttn_rng_next_normal(&normal) == (real)pair[0]);
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_the_published_ones),
        cmocka_unit_test(an_address_means_the_same_on_every_machine),
        cmocka_unit_test(every_bit_of_key_and_counter_counts),
        cmocka_unit_test(many_blocks_are_single_blocks),
        cmocka_unit_test(uniform_numbers_lie_on_their_lattice_inside_0_and_1),
        cmocka_unit_test(uniform_numbers_fill_all_their_bits),
        cmocka_unit_test(an_element_does_not_depend_on_how_the_range_is_cut),
        cmocka_unit_test(elements_come_from_the_blocks_that_the_header_names),
        cmocka_unit_test(normal_numbers_are_those_of_a_separate_program),
        cmocka_unit_test(normal_numbers_are_exact_to_the_last_bits),
        cmocka_unit_test(normal_numbers_have_the_same_bits_everywhere),
        cmocka_unit_test(normal_numbers_do_not_depend_on_the_precision_but_for_rounding),
        cmocka_unit_test(normal_numbers_follow_the_normal_distribution),
        cmocka_unit_test(tails_of_normal_numbers_have_their_weight),
        cmocka_unit_test(moments_are_those_of_the_distributions),
        cmocka_unit_test(elements_of_a_stream_are_not_correlated),
        cmocka_unit_test(streams_that_differ_in_one_bit_are_not_correlated),
        cmocka_unit_test(whole_numbers_below_a_bound_are_equally_likely),
        cmocka_unit_test(whole_numbers_below_1_and_below_all_bits),
        cmocka_unit_test(a_rejected_draw_touches_no_other_counter),
        cmocka_unit_test(a_rejected_draw_goes_on_with_the_keys_that_the_header_names),
        cmocka_unit_test(a_sequence_goes_through_its_stream_once),
    };
    return ttn_test_run(tests);
}
