/* Random numbers that depend on where they are used, never on how many were drawn before (core/philox.h).
 *
 * A key names a stream; within it a number has an address. One key has one use: two functions below that get the same
 * key and overlapping counters give related numbers.
 */
#ifndef TTN_RNG_H
#define TTN_RNG_H

#include <stdint.h>
#include "core/philox.h"
#include "core/real.h"

/* The key of a stream: the first 64 bits of the Philox block with key `seed` and counter (step, name). `name` is the
 * hash of what the stream is for (ttn_hash_text of a node's or a parameter's name); step 0 where there are no steps.
 * All 192 bits take part; two different (name, step) of one seed get the same key with probability 2^-64. */
uint64_t ttn_rng_key(uint64_t seed, uint64_t name, uint64_t step);

/* Many blocks: word[4 i + j] is word j of the block with counter (high, low + i), for i = 0 … n_block - 1. low wraps
 * at 2^64 without a carry into high. For dropout high is the sample's number and low ttn_philox_place(position, 0). */
void ttn_rng_words(uint64_t key, uint64_t high, uint64_t low, int64_t n_block, uint32_t *word);

/* Elements first, first + 1, … first + n - 1 of the key's stream, which has 2^64 of them; a range may be cut anywhere,
 * for threads or blocks. Elements 2 b and 2 b + 1 come from the block with counter (0, b): uniform ones from words 0, 1
 * and 2, 3 (ttn_philox_real), normal ones as a pair (ttn_philox_normal). 4 and 6 ns an element, 128 at a time: for a
 * number here and there take ttn_philox_at. */
void ttn_rng_uniform(uint64_t key, uint64_t first, int64_t n, real *out);
void ttn_rng_normal(uint64_t key, uint64_t first, int64_t n, real *out);

/* A whole number in [0, bound), each equally likely, at counter (high, low); bound > 0.
 *
 * D. Lemire: Fast random integer generation in an interval. ACM TOMACS 29 (2019): the high half of a 128-bit product,
 * with the few (less than bound in 2^64) draws rejected that would favour some results. Then the other 64 bits of the
 * same block are tried, then the two of the same counter under the keys ttn_rng_key(key, 0xB7E151628AED2A6A, 1),
 * (…, 2), …: no other counter is touched, so a draw stays a function of its own address. */
uint64_t ttn_rng_below(uint64_t key, uint64_t high, uint64_t low, uint64_t bound);

/* A sequence of draws, for tests and for data that is made up: start with {.key = …}. `used` counts 64-bit words, so
 * {.key = …, .used = any even number} starts further on. */
typedef struct {
    uint64_t key;
    uint64_t used;
    uint64_t spare; /* second half of the block, valid while used is odd */
} ttn_rng;

uint64_t ttn_rng_next(ttn_rng *r);                       /* 64 bits */
real ttn_rng_next_uniform(ttn_rng *r);                   /* as ttn_philox_real */
real ttn_rng_next_normal(ttn_rng *r);                    /* takes two words, gives the first of the pair */
uint64_t ttn_rng_next_below(ttn_rng *r, uint64_t bound); /* [0, bound), bound > 0; takes words until one is accepted */

#endif
