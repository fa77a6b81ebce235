/* One hash for all purposes that are not secret: XXH3 (Y. Collet), from libxxhash's header.
 *
 * The same bytes give the same number on every machine, so hashes may be stored. 64 bits name things (streams of random
 * numbers, k-mers, tables); 128 bits tell a damaged file from a good one. Against a person who wants a collision
 * neither helps.
 */
#ifndef TTN_HASH_H
#define TTN_HASH_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

typedef struct {
    uint64_t high, low;
} ttn_hash128;

/* XXH3_64bits of the bytes; data may be NULL when bytes is 0. Different seeds make independent hashes. */
uint64_t ttn_hash64(const void *data, size_t bytes, uint64_t seed);

/* The same of a text without its closing 0, seed 0. */
uint64_t ttn_hash_text(const char *text);

/* XXH3_128bits, seed 0. */
ttn_hash128 ttn_hash128_of(const void *data, size_t bytes);

/* The 128-bit hash of bytes that come in pieces: however they are cut, it is ttn_hash128_of of the whole. The caller
 * owns *ret. TTN_ENOMEM when there is no memory for it (about 600 bytes). */
typedef struct ttn_hash ttn_hash;
TTN_MUST_USE ttn_status ttn_hash_create(ttn_hash **ret, ttn_error *err);
void ttn_hash_update(ttn_hash *h, const void *data, size_t bytes);
ttn_hash128 ttn_hash_final(const ttn_hash *h); /* of what has come so far; more may follow */
void ttn_hash_reset(ttn_hash *h);              /* as just created */
void ttn_hash_destroy(ttn_hash *h);            /* NULL is fine */

enum { TTN_HASH_TEXT = 33 };

/* 32 small hexadecimal digits, high half first, as `xxh128sum` prints them; text has TTN_HASH_TEXT bytes. Returns
 * text. */
char *ttn_hash_print(ttn_hash128 hash, char *text);

/* The hash that such a text (small or capital digits) stands for: 1; 0 when it is not one. */
int ttn_hash_parse(const char *text, ttn_hash128 *ret);

/* 1 when they are the same. */
static inline int ttn_hash_same(ttn_hash128 a, ttn_hash128 b)
{
    return a.high == b.high && a.low == b.low;
}

#endif
