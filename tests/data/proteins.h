/* Made-up sequences whose every residue is a function of (sequence, position), so that a test knows what a batch must hold. */
#ifndef TTN_TEST_PROTEINS_H
#define TTN_TEST_PROTEINS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/rng.h"
#include "data/sequences.h"
#include "tests/harness/test.h"

typedef struct {
    const ttn_alphabet *alphabet;
    int64_t n;
    int64_t *length; /* (n); NULL: all have `every` */
    int64_t every;
    int64_t block;     /* sequences in a block of the store; 0: no blocks */
    int excludes;      /* every fourth residue or so has no loss */
    atomic_long reads; /* calls of tokens() */
    atomic_long fails; /* the call that fails, from 1; 0: none */
    void (*on_read)(void *ctx, int64_t i);
    void *ctx;
} proteins;

/* n sequences of least to most residues. */
static inline proteins proteins_between(int64_t n, int64_t least, int64_t most)
{
    proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = n};
    p.length = malloc((size_t)(n + 1) * sizeof *p.length);
    assert_non_null(p.length);
    for (int64_t i = 0; i < n; i++)
        p.length[i] = least + (int64_t)ttn_rng_below(17, 0, (uint64_t)i, (uint64_t)(most - least + 1));
    return p;
}

static inline void proteins_free(proteins *p)
{
    free(p->length);
}

static inline uint8_t proteins_residue(const proteins *p, int64_t i, int64_t j)
{
    const uint64_t mixed = ((uint64_t)i * 0x9E3779B97F4A7C15u + (uint64_t)j) * 0xD1B54A32D192ED03u;
    return p->alphabet->residue[(mixed >> 40) % 20];
}

static inline int proteins_excludes(const proteins *p, int64_t i, int64_t j)
{
    return p->excludes && proteins_residue(p, j, i) % 4 == 0;
}

static inline int64_t proteins_length(const void *self, int64_t i)
{
    const proteins *p = self;
    assert(i >= 0 && i < p->n);
    return p->length ? p->length[i] : p->every;
}

static inline ttn_status proteins_tokens(void *self, int64_t i, int64_t first, int64_t n, uint8_t *into, ttn_error *err)
{
    proteins *p = self;
    assert(first >= 0 && n > 0 && n <= proteins_length(self, i) - first);
    if (p->on_read) p->on_read(p->ctx, i);
    if (atomic_fetch_add(&p->reads, 1) + 1 == atomic_load(&p->fails))
        return TTN_FAIL(err, TTN_EIO, "protein %d cannot be read", (int)i);
    for (int64_t j = 0; j < n; j++)
        into[j] = proteins_residue(p, i, first + j);
    return TTN_OK;
}

static inline ttn_status proteins_excluded(void *self, int64_t i, int64_t first, int64_t n, uint8_t *into,
                                           ttn_error *err)
{
    (void)err;
    for (int64_t j = 0; j < n; j++)
        into[j] = (uint8_t)proteins_excludes(self, i, first + j);
    return TTN_OK;
}

static inline void proteins_name(void *self, int64_t i, char *into, size_t room)
{
    (void)self;
    snprintf(into, room, "P%05d", (int)i);
}

static inline int64_t proteins_block_first(const void *self, int64_t b)
{
    const proteins *p = self;
    return b * p->block < p->n ? b * p->block : p->n;
}

static inline ttn_sequences proteins_view(proteins *p)
{
    return (ttn_sequences){
        .self = p,
        .alphabet = p->alphabet,
        .n = p->n,
        .length = proteins_length,
        .tokens = proteins_tokens,
        .excluded = p->excludes ? proteins_excluded : NULL,
        .name = proteins_name,
        .n_block = p->block ? (p->n + p->block - 1) / p->block : 0,
        .block_first = p->block ? proteins_block_first : NULL,
    };
}

#endif
