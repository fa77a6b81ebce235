#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/real.h"
#include "core/tensor.h"

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [TTN_REAL] = {TTN_REAL_NAME, sizeof(real)},
    [TTN_F32] = {"f32", 4},
    [TTN_BF16] = {"bf16", 2},
    [TTN_F16] = {"f16", 2},
    [TTN_F64] = {"f64", 8},
    [TTN_I64] = {"i64", 8},
    [TTN_I32] = {"i32", 4},
    [TTN_U8] = {"u8", 1},
};

enum { N_TYPE = sizeof types / sizeof *types };

static const char *const axis_letter[] = {[TTN_FIXED] = "", [TTN_ROWS] = "N ", [TTN_SEQS] = "S ", [TTN_PICKS] = "R "};

enum { N_AXIS = sizeof axis_letter / sizeof *axis_letter };

static int is_type(ttn_dtype type)
{
    return (int)type >= 0 && (int)type < N_TYPE;
}

size_t ttn_dtype_size(ttn_dtype type)
{
    return is_type(type) ? types[type].size : 0;
}

const char *ttn_dtype_name(ttn_dtype type)
{
    return is_type(type) ? types[type].name : "?";
}

ttn_dtype ttn_dtype_stored(ttn_dtype type)
{
    if (type != TTN_REAL) return type;
    return sizeof(real) == sizeof(double) ? TTN_F64 : TTN_F32;
}

ttn_status ttn_desc_check(const ttn_desc *d, const char *name, ttn_error *err)
{
    if (!is_type(d->type)) return TTN_FAIL(err, TTN_EINVAL, "%s: type number %d is none", name, (int)d->type);
    if ((int)d->axis < 0 || (int)d->axis >= N_AXIS)
        return TTN_FAIL(err, TTN_EINVAL, "%s: axis number %d is none", name, (int)d->axis);
    if (d->ndim > TTN_MAX_DIM)
        return TTN_FAIL(err, TTN_EINVAL, "%s: %d dimensions, at most %d are possible", name, d->ndim, TTN_MAX_DIM);
    if (d->axis != TTN_FIXED && d->ndim == 0)
        return TTN_FAIL(err, TTN_EINVAL, "%s: a scalar has no rows to count", name);
    int64_t bytes = (int64_t)ttn_dtype_size(d->type);
    for (int i = 0; i < d->ndim; i++)
        if (d->dim[i] < 0)
            return TTN_FAIL(err, TTN_EINVAL, "%s: dimension %d is %" PRId64 ", at least 0 is possible", name, i,
                            d->dim[i]);
    for (int i = 0; i < d->ndim; i++)
        if (__builtin_mul_overflow(bytes, d->dim[i], &bytes))
            return TTN_FAIL(err, TTN_EINVAL, "%s: its bytes do not fit in 63 bits (dimension %d is %" PRId64 ")", name,
                            i, d->dim[i]);
    return TTN_OK;
}

int64_t ttn_desc_numel(const ttn_desc *d)
{
    if (d->ndim < 0) return 0;
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++)
        n *= d->dim[i];
    return n;
}

size_t ttn_desc_bytes(const ttn_desc *d)
{
    return (size_t)ttn_desc_numel(d) * ttn_dtype_size(d->type);
}

int ttn_desc_same(const ttn_desc *a, const ttn_desc *b)
{
    if (ttn_dtype_stored(a->type) != ttn_dtype_stored(b->type)) return 0;
    if (a->axis != b->axis || a->ndim != b->ndim) return 0;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i]) return 0;
    return 1;
}

char *ttn_desc_print(const ttn_desc *d, char *text)
{
    if (d->ndim < 0) {
        snprintf(text, TTN_DESC_TEXT, "nothing");
        return text;
    }
    int at = snprintf(text, TTN_DESC_TEXT, "%s (", ttn_dtype_name(d->type));
    for (int i = 0; i < d->ndim && i < TTN_MAX_DIM; i++) {
        const char *letter = i == 0 && (int)d->axis >= 0 && (int)d->axis < N_AXIS ? axis_letter[d->axis] : "";
        at += snprintf(text + at, (size_t)(TTN_DESC_TEXT - at), "%s%s%" PRId64, i > 0 ? ", " : "", letter, d->dim[i]);
    }
    snprintf(text + at, (size_t)(TTN_DESC_TEXT - at), ")");
    return text;
}

ttn_desc ttn_desc_of(ttn_dtype type, ttn_axis axis, int ndim, int64_t d0, int64_t d1, int64_t d2)
{
    const int64_t none = -1; /* of a fourth dimension nobody has spoken */
    return (ttn_desc){.type = type, .axis = axis, .ndim = ndim, .dim = {d0, d1, d2, ndim > 3 ? none : 0}};
}
