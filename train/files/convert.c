#include <assert.h>
#include <string.h>
#include "core/bits.h"
#include "core/half.h"
#include "train/files/convert.h"

/* ---- float and double, on bits ---- */

double ttn_f32_to_f64(float x)
{
    uint32_t bits = ttn_f32_bits(x), size = bits & 0x7fffffff;
    uint64_t wide;
    if (size < 0x00800000) /* 0 and denormals: so many steps of 2^-149 */
        wide = ttn_f64_bits((double)size * 0x1p-149);
    else if (size < 0x7f800000)
        wide = ((uint64_t)size << 29) + ((uint64_t)(1023 - 127) << 52);
    else
        wide = 0x7ff0000000000000 | (uint64_t)(size & 0x007fffff) << 29 |
               (size > 0x7f800000 ? (uint64_t)1 << 51 : 0); /* NaN becomes quiet */
    return ttn_f64_of_bits((uint64_t)(bits >> 31) << 63 | wide);
}

float ttn_f64_to_f32(double x)
{
    const uint64_t least = (uint64_t)(1023 - 126) << 52, most = (uint64_t)(1023 + 128) << 52;
    const uint64_t rebias = (uint64_t)(1023 - 127) << 52, infinity = 0x7ff0000000000000;
    uint64_t bits = ttn_f64_bits(x), size = bits & 0x7fffffffffffffff;
    uint32_t narrow;
    if (size < least) /* 2^-97: its last place is 2^-149, to which the sum is rounded */
        narrow = (uint32_t)(ttn_f64_bits(ttn_f64_of_bits(size) + 0x1p-97) - ttn_f64_bits(0x1p-97));
    else if (size < most)
        narrow = (uint32_t)((size - rebias + ((uint64_t)1 << 28) - 1 + (size >> 29 & 1)) >> 29);
    else if (size <= infinity)
        narrow = 0x7f800000;
    else
        narrow = 0x7fc00000 | (uint32_t)(size >> 29 & 0x003fffff);
    return ttn_f32_of_bits((uint32_t)(bits >> 63) << 31 | narrow);
}

/* ---- any two types, by way of double, which holds them all ---- */

enum { BLOCK = 512 };

typedef union {
    uint16_t half[BLOCK];
    float single[BLOCK];
    double wide[BLOCK];
} stored_block;

static void load(ttn_dtype type, int n, const stored_block *x, double *value)
{
    if (type == TTN_F32)
        for (int i = 0; i < n; i++)
            value[i] = ttn_f32_to_f64(x->single[i]);
    else if (type == TTN_F16)
        for (int i = 0; i < n; i++)
            value[i] = ttn_f16_to_f64(x->half[i]);
    else if (type == TTN_BF16)
        for (int i = 0; i < n; i++)
            value[i] = ttn_bf16_to_f64(x->half[i]);
    else
        memcpy(value, x->wide, (size_t)n * sizeof *value);
}

static void store(ttn_dtype type, int n, const double *value, stored_block *y)
{
    if (type == TTN_F32)
        for (int i = 0; i < n; i++)
            y->single[i] = ttn_f64_to_f32(value[i]);
    else if (type == TTN_F16)
        for (int i = 0; i < n; i++)
            y->half[i] = ttn_f64_to_f16(value[i]);
    else if (type == TTN_BF16)
        for (int i = 0; i < n; i++)
            y->half[i] = ttn_f64_to_bf16(value[i]);
    else
        memcpy(y->wide, value, (size_t)n * sizeof *value);
}

static ttn_dtype real_type(ttn_dtype type)
{
    ttn_dtype stored = ttn_dtype_stored(type);
    assert(stored == TTN_F32 || stored == TTN_F64 || stored == TTN_F16 || stored == TTN_BF16);
    return stored;
}

static int is_finite(double x)
{
    return (ttn_f64_bits(x) & 0x7ff0000000000000) != 0x7ff0000000000000;
}

static void count_nonfinite(int n, const double *value, ttn_converted *sum)
{
    int64_t count = 0;
    for (int i = 0; i < n; i++)
        count += !is_finite(value[i]);
    for (int i = 0; i < n && count > 0 && sum->nonfinite == 0; i++) {
        if (is_finite(value[i])) continue;
        sum->first_nonfinite = sum->n + i;
        break;
    }
    sum->nonfinite += count;
}

/* Bits are compared: ==, under denormals-are-zero, would overlook a denormal that became 0. */
static void count_lost(int n, const double *value, const double *kept, ttn_converted *sum)
{
    for (int i = 0; i < n; i++) {
        int differs = is_finite(value[i]) && ttn_f64_bits(kept[i]) != ttn_f64_bits(value[i]);
        sum->overflowed += differs && !is_finite(kept[i]);
        sum->rounded += differs && is_finite(kept[i]);
    }
}

void ttn_convert(int64_t n, ttn_dtype from, const void *x, ttn_dtype to, void *y, ttn_converted *sum)
{
    from = real_type(from);
    to = real_type(to);
    size_t size_x = ttn_dtype_size(from), size_y = ttn_dtype_size(to);
    stored_block in, out;
    double value[BLOCK], kept[BLOCK];
    for (int64_t done = 0; done < n; done += BLOCK) {
        int part = n - done < BLOCK ? (int)(n - done) : BLOCK;
        memcpy(&in, (const char *)x + (size_t)done * size_x, (size_t)part * size_x);
        load(from, part, &in, value);
        store(to, part, value, &out);
        memcpy((char *)y + (size_t)done * size_y, &out, (size_t)part * size_y);
        count_nonfinite(part, value, sum);
        if (size_y < size_x || (from != to && size_y == size_x)) {
            load(to, part, &out, kept);
            count_lost(part, value, kept, sum);
        }
        sum->n += part;
    }
}

void ttn_convert_check(int64_t n, ttn_dtype type, const void *x, ttn_converted *sum)
{
    type = real_type(type);
    size_t size = ttn_dtype_size(type);
    stored_block in;
    double value[BLOCK];
    for (int64_t done = 0; done < n; done += BLOCK) {
        int part = n - done < BLOCK ? (int)(n - done) : BLOCK;
        memcpy(&in, (const char *)x + (size_t)done * size, (size_t)part * size);
        load(type, part, &in, value);
        count_nonfinite(part, value, sum);
        sum->n += part;
    }
}
