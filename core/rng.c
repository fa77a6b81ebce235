#include <assert.h>
#include <string.h>
#include "core/rng.h"

/* Names the keys of draws that were rejected: the first digits of e, so that it is no text's hash by intention. */
static const uint64_t retry_name = 0xB7E151628AED2A6Au;

static uint64_t join(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

uint64_t ttn_rng_key(uint64_t seed, uint64_t name, uint64_t step)
{
    return ttn_philox_key(seed, name, step);
}

/* ---- blocks side by side ----
 *
 * A round needs both halves of 32 x 32 bit products. Asked for the high half in integers, gcc shuffles lanes about: 1.8 ns
 * a word on AVX2. One fused multiply-add gives it as well. With 2^52 + 2^51 added a double holds a whole number in its
 * low bits; for c and a multiplier m below 2^32, m odd,
 *
 *     (1.5 2^52 + c) m 2^-32 + (1.5 2^52 - 1.5 2^52 m 2^-32 - 1/2) = 1.5 2^52 + c m 2^-32 - 1/2
 *
 * rounded once, to whole numbers, is 1.5 2^52 + floor(c m 2^-32): c m 2^-32 is whole for c = 0 only, where the tie goes to
 * the even 1.5 2^52. All constants are exact. So four blocks are a vector of 64-bit lanes, c0 and c2 with the bits of
 * 1.5 2^52 above them, c1 and c3 with zeros, and a round is two multiply-adds, two products of low halves and four
 * exclusive ors: 0.8 (gcc) and 0.9 (clang) ns a word; the integer form takes clang 0.7. */

#if defined(__FMA__) || defined(__aarch64__)

typedef uint64_t lanes __attribute__((vector_size(32)));
typedef uint32_t halves __attribute__((vector_size(32)));
typedef double doubles __attribute__((vector_size(32)));

typedef struct {
    lanes c0, c1, c2, c3;
} blocks;

enum { VECTOR = 4, N_VECTOR = 4, LANE = VECTOR * N_VECTOR }; /* four at a time hide the multiply-add's delay */

#define HELD 0x1.8p+52 /* 2^52 + 2^51 */

static inline lanes all(uint64_t x)
{
    return (lanes){x, x, x, x};
}

/* HELD + floor(c m / 2^32), where x = HELD + c */
static inline lanes high_half(lanes x, uint32_t m)
{
    const double factor = (double)m * 0x1p-32;
    const double rest = HELD - HELD * factor - 0.5;
    const doubles d = (doubles)x;
    return (lanes)(doubles){__builtin_fma(d[0], factor, rest), __builtin_fma(d[1], factor, rest),
                            __builtin_fma(d[2], factor, rest), __builtin_fma(d[3], factor, rest)};
}

/* c m mod 2^32; the products of the other halves are with 0. */
static inline lanes low_half(lanes x, uint32_t m)
{
    return (lanes)((halves)x * (halves)all(m));
}

static inline void make_round(blocks *b, lanes k0, lanes k1)
{
    const lanes high0 = high_half(b->c0, TTN_PHILOX_M0);
    const lanes high1 = high_half(b->c2, TTN_PHILOX_M1);
    const lanes low0 = low_half(b->c0, TTN_PHILOX_M0);
    const lanes low1 = low_half(b->c2, TTN_PHILOX_M1);
    b->c0 = high1 ^ b->c1 ^ k0;
    b->c2 = high0 ^ b->c3 ^ k1;
    b->c1 = low1;
    b->c3 = low0;
}

/* LANE blocks, from counter (high, low) on. */
static void make_words(uint64_t key, uint64_t high, uint64_t low, uint32_t *word)
{
    const lanes held = (lanes)(doubles){HELD, HELD, HELD, HELD};
    const lanes below = all(0xFFFFFFFFu);
    lanes count = all(low) + (lanes){0, 1, 2, 3};
    blocks b[N_VECTOR];
    for (int v = 0; v < N_VECTOR; v++) {
        b[v] = (blocks){(count & below) | held, count >> 32, (all(high) & below) | held, all(high) >> 32};
        count += all(VECTOR);
    }
    uint32_t k0 = (uint32_t)key;
    uint32_t k1 = (uint32_t)(key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < TTN_PHILOX_ROUNDS; round++) {
#pragma GCC unroll 4
        for (int v = 0; v < N_VECTOR; v++)
            make_round(&b[v], all(k0), all(k1));
        k0 += TTN_PHILOX_KEY_STEP0;
        k1 += TTN_PHILOX_KEY_STEP1;
    }
    for (int v = 0; v < N_VECTOR; v++) {
        const halves w01 = (halves)((b[v].c0 & below) | (b[v].c1 << 32)); /* words 0 and 1 of each block */
        const halves w23 = (halves)((b[v].c2 & below) | (b[v].c3 << 32));
        const halves first = __builtin_shufflevector(w01, w23, 0, 1, 8, 9, 2, 3, 10, 11);
        const halves second = __builtin_shufflevector(w01, w23, 4, 5, 12, 13, 6, 7, 14, 15);
        memcpy(word + 16 * v, &first, sizeof first);
        memcpy(word + 16 * v + 8, &second, sizeof second);
    }
}

#else /* a multiply-add that rounds twice will not do */

/* Not 16: loops as short as that gcc unrolls before it looks for vectors, and then packs scalars. */
enum { LANE = 32 };

static void make_words(uint64_t key, uint64_t high, uint64_t low, uint32_t *word)
{
    uint32_t c0[LANE];
    uint32_t c1[LANE];
    uint32_t c2[LANE];
    uint32_t c3[LANE];
    for (int lane = 0; lane < LANE; lane++) {
        uint32_t counter[4];
        ttn_philox_counter(high, low + (uint64_t)lane, counter);
        c0[lane] = counter[0];
        c1[lane] = counter[1];
        c2[lane] = counter[2];
        c3[lane] = counter[3];
    }
    uint32_t k0 = (uint32_t)key;
    uint32_t k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < TTN_PHILOX_ROUNDS; round++) {
        for (int lane = 0; lane < LANE; lane++)
            ttn_philox_round(&c0[lane], &c1[lane], &c2[lane], &c3[lane], k0, k1);
        k0 += TTN_PHILOX_KEY_STEP0;
        k1 += TTN_PHILOX_KEY_STEP1;
    }
    for (int lane = 0; lane < LANE; lane++) {
        word[4 * lane] = c0[lane];
        word[4 * lane + 1] = c1[lane];
        word[4 * lane + 2] = c2[lane];
        word[4 * lane + 3] = c3[lane];
    }
}

#endif

void ttn_rng_words(uint64_t key, uint64_t high, uint64_t low, int64_t n_block, uint32_t *word)
{
    int64_t i = 0;
    for (; i + LANE <= n_block; i += LANE)
        make_words(key, high, low + (uint64_t)i, word + 4 * i);
    for (; i < n_block; i++)
        ttn_philox_at(key, high, low + (uint64_t)i, word + 4 * i);
}

/* Blocks at a time when arrays are filled: 1 KiB of words, in the first cache together with what is made of them. */
enum { CHUNK = 64 };

typedef void (*make)(const uint32_t *word, real *out);

static void make_uniform(const uint32_t *word, real *out)
{
    for (int i = 0; i < 2 * CHUNK; i++)
        out[i] = ttn_philox_real(word[2 * i], word[2 * i + 1]);
}

static void make_normal(const uint32_t *word, real *out)
{
    for (int i = 0; i < CHUNK; i++) {
        double z[2];
        ttn_philox_normal(word + 4 * i, z);
        out[2 * i] = (real)z[0];
        out[2 * i + 1] = (real)z[1];
    }
}

/* Whole chunks go straight to `out`; an odd start and the end pass through a chunk of our own. */
static void fill(uint64_t key, uint64_t first, int64_t n, real *out, make make_chunk)
{
    assert(n <= 0 || first <= UINT64_MAX - (uint64_t)(n - 1));
    uint32_t word[4 * CHUNK];
    real element[2 * CHUNK];
    for (int64_t at = 0; at < n;) {
        uint64_t index = first + (uint64_t)at;
        int64_t skip = (int64_t)(index % 2);
        int64_t take = 2 * CHUNK - skip;
        if (take > n - at) take = n - at;
        for (int block = 0; block < CHUNK; block += LANE)
            make_words(key, 0, index / 2 + (uint64_t)block, word + 4 * block);
        if (take == 2 * CHUNK) {
            make_chunk(word, out + at);
        } else {
            make_chunk(word, element);
            memcpy(out + at, element + skip, (size_t)take * sizeof *out);
        }
        at += take;
    }
}

void ttn_rng_uniform(uint64_t key, uint64_t first, int64_t n, real *out)
{
    fill(key, first, n, out, make_uniform);
}

void ttn_rng_normal(uint64_t key, uint64_t first, int64_t n, real *out)
{
    fill(key, first, n, out, make_normal);
}

__extension__ typedef unsigned __int128 uint128;

/* Is this word one that favours nobody? Then *ret is its share of [0, bound). */
static int scale(uint64_t word, uint64_t bound, uint64_t *ret)
{
    uint128 product = (uint128)word * bound;
    uint64_t rest = (uint64_t)product;
    *ret = (uint64_t)(product >> 64);
    if (rest >= bound) return 1; /* the remainder below is smaller than bound: spare the division */
    return rest >= (0 - bound) % bound;
}

uint64_t ttn_rng_below(uint64_t key, uint64_t high, uint64_t low, uint64_t bound)
{
    assert(bound > 0);
    for (uint64_t attempt = 0;; attempt++) {
        uint32_t word[4];
        ttn_philox_at(attempt == 0 ? key : ttn_rng_key(key, retry_name, attempt), high, low, word);
        uint64_t ret;
        if (scale(join(word[0], word[1]), bound, &ret)) return ret;
        if (scale(join(word[2], word[3]), bound, &ret)) return ret;
    }
}

uint64_t ttn_rng_next(ttn_rng *r)
{
    if (r->used++ % 2 == 1) return r->spare;
    uint32_t word[4];
    ttn_philox_at(r->key, 0, (r->used - 1) / 2, word);
    r->spare = join(word[2], word[3]);
    return join(word[0], word[1]);
}

real ttn_rng_next_uniform(ttn_rng *r)
{
    uint64_t bits = ttn_rng_next(r);
    return ttn_philox_real((uint32_t)(bits >> 32), (uint32_t)bits);
}

real ttn_rng_next_normal(ttn_rng *r)
{
    uint64_t a = ttn_rng_next(r);
    uint64_t b = ttn_rng_next(r);
    const uint32_t word[4] = {(uint32_t)(a >> 32), (uint32_t)a, (uint32_t)(b >> 32), (uint32_t)b};
    double z[2];
    ttn_philox_normal(word, z);
    return (real)z[0];
}

uint64_t ttn_rng_next_below(ttn_rng *r, uint64_t bound)
{
    assert(bound > 0);
    uint64_t ret;
    while (!scale(ttn_rng_next(r), bound, &ret)) {
    }
    return ret;
}
