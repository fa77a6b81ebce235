/* How the CPU kernels of dropout and residual go over rows. */
#ifndef TTN_DROPOUT_ROWS_H
#define TTN_DROPOUT_ROWS_H

#include <string.h>
#include "autograd/ops/dropout.h"
#include "autograd/ops/places.h"
#include "core/rng.h"

/* Channels at a time: 64 blocks of random words stay in the first cache. */
enum { TTN_DROPOUT_CHUNK = 256 };

static inline ttn_status ttn_dropout_check(const ttn_sig *s, int i, const char *op, const char *name, ttn_error *err)
{
    ttn_status status = ttn_want_shape(s, i, op, name, "(N, C)", err);
    if (status != TTN_OK) return status;
    if (s->in[i].axis != TTN_ROWS && s->in[i].axis != TTN_SEQS) {
        char text[TTN_DESC_TEXT];
        return TTN_FAIL(err, TTN_EINVAL, "%s: %s is %s, expected rows (N, C) or sequences (S, C)", op, name,
                        ttn_desc_print(&s->in[i], text));
    }
    const double p = ((const ttn_dropout_attributes *)s->attr)->p;
    if (!(p >= 0 && p < 1)) return TTN_FAIL(err, TTN_EINVAL, "%s: p is %g, expected a number from 0 to below 1", op, p);
    return TTN_OK;
}

/* The stretch of rows from `row` on, of an input that counts rows or sequences. */
static inline ttn_stretch ttn_dropout_stretch(const ttn_call *c, ttn_axis axis, int64_t row, int64_t end)
{
    if (axis == TTN_SEQS) return (ttn_stretch){.n = 1, .seq = row, .position = 0};
    return ttn_stretch_at(c->feed, row, end);
}

static inline uint64_t ttn_dropout_sample(const ttn_call *c, int64_t seq)
{
    return c->feed->sample && c->feed->used.seqs > 0 ? c->feed->sample[seq] : (uint64_t)seq;
}

/* Ask for the n elements from x on while there are random numbers to be made: else the memory waits for the arithmetic
 * and the arithmetic for the memory: 0.52 of memcpy's rate became 0.82 (f32, Zen 3). */
static inline void ttn_dropout_fetch(int n, const real *x)
{
    enum { LINE = 64 / sizeof(real) };
    for (int i = 0; i < n; i += LINE)
        __builtin_prefetch(x + i);
}

/* word[i] decides on channel first + i, for n channels; first is a multiple of TTN_DROPOUT_CHUNK, and word has room for a
 * whole chunk. */
static inline void ttn_dropout_words(const ttn_dropout_rule *rule, uint64_t sample, int64_t position, int64_t first,
                                     int n, uint32_t *word)
{
    enum { AT_ONCE = 16 }; /* blocks that ttn_rng_words makes side by side: more of them cost nothing */
    const int64_t blocks = ((n + 3) / 4 + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
    ttn_rng_words(rule->key, sample, ttn_philox_place((uint32_t)position, (uint32_t)(first / 4)), blocks, word);
}

#endif
