/* Words of k residues as numbers: whatever the vocabulary, the same word is the same number.
 *
 * A residue is its place in ACDEFGHIKLMNPQRSTVWY, in 5 bits; a word that holds anything else (X, B, U …) is none, since two
 * runs of X say nothing about two proteins. Shared by data/cluster.c and data/overlap.c.
 */
#ifndef TTN_KMER_H
#define TTN_KMER_H

#include <stdint.h>
#include <string.h>
#include "data/alphabet.h"

enum { TTN_KMER_BITS = 5, TTN_KMER_LONGEST = 12, TTN_KMER_NONE = 255 };

typedef struct {
    uint8_t code[TTN_MAX_TOKENS]; /* of a token; TTN_KMER_NONE: it is none of the 20 */
    int k;
    uint64_t mask; /* the bits of a word */
} ttn_kmers;

static inline void ttn_kmers_init(ttn_kmers *m, const ttn_alphabet *a, int k)
{
    memset(m->code, TTN_KMER_NONE, sizeof m->code);
    for (int i = 0; i < 20; i++)
        m->code[a->residue[i]] = (uint8_t)i;
    m->k = k;
    m->mask = ((uint64_t)1 << TTN_KMER_BITS * k) - 1;
}

/* The word that is being read. */
typedef struct {
    uint64_t word;
    int n; /* residues in it, up to k */
} ttn_kmer_reader;

/* One token more: 1 when the last k of them are a word, which is r->word. Start with zeros. */
static inline int ttn_kmer_next(const ttn_kmers *m, ttn_kmer_reader *r, uint8_t token)
{
    const uint8_t code = m->code[token];
    if (code == TTN_KMER_NONE) {
        r->n = 0;
        return 0;
    }
    r->word = (r->word << TTN_KMER_BITS | code) & m->mask;
    r->n += r->n < m->k;
    return r->n == m->k;
}

/* A one-to-one mix of 64 bits: different words have different numbers, in an order that means nothing. The finalizer of
 * splitmix64 (S. Vigna's variant of D. Stafford's Mix13). */
static inline uint64_t ttn_kmer_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBu;
    x ^= x >> 31;
    return x;
}

#endif
