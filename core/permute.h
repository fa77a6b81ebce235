/* A permutation of [0, n) in constant memory: what comes i-th, and when x comes, without a list of n numbers.
 *
 * The order in which an epoch visits the sequences. It is a function of (n, seed, epoch), so a run resumes from a
 * position alone, and the permutations of two epochs, two seeds or two n have nothing to do with each other.
 *
 * Up to TTN_PERMUTE_TABLE elements are shuffled (Fisher and Yates), every permutation equally likely. More pass through
 * a Feistel network on the smallest power of two that holds n, and walk on along its cycles while the result is n or
 * more (J. Black, P. Rogaway: Ciphers with arbitrary finite domains. CT-RSA 2002): fewer than 2 steps on average.
 */
#ifndef TTN_PERMUTE_H
#define TTN_PERMUTE_H

#include <stdint.h>

enum { TTN_PERMUTE_TABLE = 64, TTN_PERMUTE_ROUNDS = 10 };

/* Private to permute.c; a plain value that may be copied. */
typedef struct {
    int64_t n;
    int left_bits, right_bits; /* the network's halves; 0: the table holds the permutation */
    union {
        uint64_t key[TTN_PERMUTE_ROUNDS];
        uint8_t table[TTN_PERMUTE_TABLE];
    };
} ttn_permute;

/* n from 0 (then nothing may be asked) to INT64_MAX. */
void ttn_permute_init(ttn_permute *p, int64_t n, uint64_t seed, uint64_t epoch);

/* The element at place i, 0 <= i < n. A step of the walk takes 60 ns: 60 to 120 on average, by how far n is from a power
 * of two. */
int64_t ttn_permute_at(const ttn_permute *p, int64_t i);

/* The place of element x, 0 <= x < n: ttn_permute_at(p, ttn_permute_find(p, x)) == x. */
int64_t ttn_permute_find(const ttn_permute *p, int64_t x);

#endif
