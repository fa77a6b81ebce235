#include <assert.h>
#include "core/permute.h"
#include "core/rng.h"

/* Names the keys of permutations among all that a seed has keys for: the first digits of pi. */
static const uint64_t permute_name = 0x243F6A8885A308D3u;

void ttn_permute_init(ttn_permute *p, int64_t n, uint64_t seed, uint64_t epoch)
{
    assert(n >= 0);
    uint64_t key = ttn_rng_key(seed, permute_name, epoch);
    *p = (ttn_permute){.n = n};
    if (n <= TTN_PERMUTE_TABLE) {
        for (int64_t i = 0; i < n; i++) {
            int64_t j = (int64_t)ttn_rng_below(key, (uint64_t)n, (uint64_t)i, (uint64_t)i + 1);
            p->table[i] = p->table[j];
            p->table[j] = (uint8_t)i;
        }
        return;
    }
    int bits = 64 - __builtin_clzll((unsigned long long)n - 1);
    p->left_bits = bits / 2;
    p->right_bits = bits - bits / 2;
    uint32_t word[2 * TTN_PERMUTE_ROUNDS];
    ttn_rng_words(key, (uint64_t)n, 0, TTN_PERMUTE_ROUNDS / 2, word);
    for (int r = 0; r < TTN_PERMUTE_ROUNDS; r++)
        p->key[r] = (uint64_t)word[2 * r] << 32 | word[2 * r + 1];
}

/* What a half adds to the other: splitmix64's output function (G. Steele, D. Lea, C. Flood: OOPSLA 2014). */
static uint64_t mix(uint64_t half, uint64_t key)
{
    uint64_t z = key + half * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Rounds change the left half and the right half in turn, so halves of different widths need no exchange, and the
 * inverse is the same rounds from the last to the first. */
static uint64_t round_of(const ttn_permute *p, int r, uint64_t x)
{
    uint64_t right_mask = ((uint64_t)1 << p->right_bits) - 1;
    uint64_t left = x >> p->right_bits;
    uint64_t right = x & right_mask;
    if (r % 2 == 0)
        left ^= mix(right, p->key[r]) & (((uint64_t)1 << p->left_bits) - 1);
    else
        right ^= mix(left, p->key[r]) & right_mask;
    return left << p->right_bits | right;
}

static uint64_t forward(const ttn_permute *p, uint64_t x)
{
    for (int r = 0; r < TTN_PERMUTE_ROUNDS; r++)
        x = round_of(p, r, x);
    return x;
}

static uint64_t backward(const ttn_permute *p, uint64_t x)
{
    for (int r = TTN_PERMUTE_ROUNDS - 1; r >= 0; r--)
        x = round_of(p, r, x);
    return x;
}

int64_t ttn_permute_at(const ttn_permute *p, int64_t i)
{
    assert(i >= 0 && i < p->n);
    if (p->left_bits == 0) return p->table[i];
    uint64_t x = forward(p, (uint64_t)i);
    while (x >= (uint64_t)p->n)
        x = forward(p, x);
    return (int64_t)x;
}

int64_t ttn_permute_find(const ttn_permute *p, int64_t x)
{
    assert(x >= 0 && x < p->n);
    if (p->left_bits == 0) {
        int64_t i = 0;
        while (p->table[i] != x)
            i++;
        return i;
    }
    uint64_t i = backward(p, (uint64_t)x);
    while (i >= (uint64_t)p->n)
        i = backward(p, i);
    return (int64_t)i;
}
