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
    uint32_t word[4];
    ttn_philox_at(seed, step, name, word);
    return join(word[1], word[0]);
}

/* Blocks side by side, for the vector unit: 1.8 (gcc) and 0.8 (clang) ns a word on AVX2; one after the other takes gcc
 * 2.3. Not 16: loops as short as that gcc unrolls before it looks for vectors, and then packs scalars, at 4.7. */
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

void ttn_rng_words(uint64_t key, uint64_t high, uint64_t low, int64_t n_block, uint32_t *word)
{
    int64_t i = 0;
    for (; i + LANE <= n_block; i += LANE)
        make_words(key, high, low + (uint64_t)i, word + 4 * i);
    for (; i < n_block; i++)
        ttn_philox_at(key, high, low + (uint64_t)i, word + 4 * i);
}

/* Blocks at a time when arrays are filled: 1 KiB of words, in the first cache together with what is made of them. */
enum { CHUNK = 2 * LANE };

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
