/* Random numbers and hashes against the memory they fill or read, and permutations. */
#include <string.h>
#include <xxhash.h>
#include "core/hash.h"
#include "core/permute.h"
#include "core/rng.h"
#include "tests/bench/bench.h"

enum { N = 1 << 18 }; /* 1 MiB of words: in the second cache */

typedef struct {
    uint32_t *word, *other;
    real *element;
    ttn_permute permute;
    volatile uint64_t sink; /* what is computed only to be timed */
} buffers;

static void copy(void *arg)
{
    buffers *b = arg;
    memcpy(b->other, b->word, N * sizeof *b->word);
    b->sink = b->other[N - 1];
}

static void one_block_after_the_other(void *arg)
{
    buffers *b = arg;
    for (int64_t i = 0; i < N / 4; i++)
        ttn_philox_at(1, 2, (uint64_t)i, b->word + 4 * i);
}

static void words(void *arg)
{
    buffers *b = arg;
    ttn_rng_words(1, 2, 0, N / 4, b->word);
}

static void uniform(void *arg)
{
    buffers *b = arg;
    ttn_rng_uniform(1, 0, N, b->element);
}

static void normal(void *arg)
{
    buffers *b = arg;
    ttn_rng_normal(1, 0, N, b->element);
}

static void below(void *arg)
{
    buffers *b = arg;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < N; i++)
        sum += ttn_rng_below(1, 2, i, 20);
    b->sink = sum;
}

static void permute(void *arg)
{
    buffers *b = arg;
    int64_t sum = 0;
    for (int64_t i = 0; i < N; i++)
        sum += ttn_permute_at(&b->permute, i);
    b->sink = (uint64_t)sum;
}

static void hash64(void *arg)
{
    buffers *b = arg;
    b->sink = ttn_hash64(b->word, N * sizeof *b->word, 0);
}

static void hash128(void *arg)
{
    buffers *b = arg;
    b->sink = ttn_hash128_of(b->word, N * sizeof *b->word).low;
}

static void library_hash64(void *arg)
{
    buffers *b = arg;
    b->sink = XXH3_64bits(b->word, N * sizeof *b->word);
}

static void library_older_hash(void *arg)
{
    buffers *b = arg;
    b->sink = XXH64(b->word, N * sizeof *b->word, 0);
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "rng");
    static uint32_t word[N];
    static uint32_t other[N];
    static real element[N];
    buffers b = {.word = word, .other = other, .element = element};
    ttn_permute_init(&b.permute, N + N / 2, 1, 2); /* a third of the walks is longer than one step */
    words(&b);

    const double giga = N / 1e9;
    const bench_row numbers[] = {
        {.name = "Philox, block by block", .run = one_block_after_the_other, .arg = &b, .work = giga, .unit = "G/s"},
        {.name = "ttn_rng_words", .run = words, .arg = &b, .work = giga, .unit = "G/s"},
        {.name = "ttn_rng_uniform", .run = uniform, .arg = &b, .work = giga, .unit = "G/s"},
        {.name = "ttn_rng_normal", .run = normal, .arg = &b, .work = giga, .unit = "G/s"},
        {.name = "ttn_rng_below", .run = below, .arg = &b, .work = giga, .unit = "G/s"},
        {.name = "ttn_permute_at", .run = permute, .arg = &b, .work = giga, .unit = "G/s"},
    };
    bench_compare("random numbers, 1 thread", numbers, sizeof numbers / sizeof *numbers);

    const double bytes = N * sizeof *b.word / 1e9;
    const bench_row hashes[] = {
        {.name = "memcpy", .run = copy, .arg = &b, .work = bytes, .unit = "GB/s"},
        {.name = "XXH64 of libxxhash.so", .run = library_older_hash, .arg = &b, .work = bytes, .unit = "GB/s"},
        {.name = "XXH3 of libxxhash.so", .run = library_hash64, .arg = &b, .work = bytes, .unit = "GB/s"},
        {.name = "ttn_hash64", .run = hash64, .arg = &b, .work = bytes, .unit = "GB/s"},
        {.name = "ttn_hash128_of", .run = hash128, .arg = &b, .work = bytes, .unit = "GB/s"},
    };
    bench_compare("hashes of 1 MiB", hashes, sizeof hashes / sizeof *hashes);
    return bench_end();
}
