/* The tensors of tests/reference/golden/kinds.safetensors: the same list, and the same bits, as in
 * tests/reference/files.py. */
#ifndef TTN_TEST_STORED_H
#define TTN_TEST_STORED_H

#include <stdint.h>
#include <string.h>
#include "train/files/safetensors.h"

typedef struct {
    const char *name;
    ttn_stored_type type;
    int bits;
    int ndim;
    int64_t dim[3];
} stored_kind;

static const stored_kind stored_kinds[] = {
    {"f32", TTN_STORED_F32, 32, 2, {3, 5}},
    {"f16", TTN_STORED_F16, 16, 1, {7}},
    {"bf16", TTN_STORED_BF16, 16, 3, {2, 2, 2}},
    {"f64", TTN_STORED_F64, 64, 1, {4}},
    {"i64", TTN_STORED_I64, 64, 1, {3}},
    {"i32", TTN_STORED_I32, 32, 1, {2}},
    {"u8", TTN_STORED_U8, 8, 1, {3}},
    {"empty", TTN_STORED_F32, 32, 2, {0, 3}},
    {"scalar", TTN_STORED_F32, 32, 0, {0}},
    {"\xC3\xA9 \"quoted\" \\ name", TTN_STORED_F32, 32, 1, {1}},
    {"bool", TTN_STORED_BOOL, 8, 1, {5}}, /* last: titin does not write it */
};
enum { N_STORED_KIND = sizeof stored_kinds / sizeof *stored_kinds, MOST_STORED_BYTES = 60 };

static int64_t stored_n(int kind)
{
    int64_t n = 1;
    for (int d = 0; d < stored_kinds[kind].ndim; d++)
        n *= stored_kinds[kind].dim[d];
    return n;
}

/* Any bits, NaN and denormals included. Returns the bytes, at most MOST_STORED_BYTES. */
static int64_t stored_bytes(int kind, unsigned char *to)
{
    const stored_kind *k = &stored_kinds[kind];
    int64_t n = stored_n(kind), size = k->bits / 8;
    for (int64_t i = 0; i < n; i++) {
        uint64_t word = (uint64_t)(i + 1) * 0x9E3779B97F4A7C15u + (uint64_t)(kind + 1) * 0xD1B54A32D192ED03u;
        uint64_t bits = word >> (64 - k->bits);
        if (k->type == TTN_STORED_BOOL) bits &= 1;
        memcpy(to + i * size, &bits, (size_t)size); /* little-endian, as everything here */
    }
    return n * size;
}

#endif
