/* Descriptors of any bytes, checked, counted and printed against arithmetic that does not overflow; messages of any
 * bytes. */
#include <assert.h>
#include <string.h>
#include "core/status.h"
#include "core/tensor.h"
#include "tests/fuzz/fuzz.h"

/* ---- descriptors ---- */

static ttn_desc desc_of(const uint8_t *data, size_t size)
{
    ttn_desc d = {0};
    uint8_t small[3] = {0};
    size_t n = size < sizeof small ? size : sizeof small;
    memcpy(small, data, n);
    d.type = (ttn_dtype)((int)small[0] - 8);
    d.axis = (ttn_axis)((int)small[1] - 8);
    d.ndim = (int)small[2] - 8;
    size_t left = size - n;
    memcpy(d.dim, data + n, left < sizeof d.dim ? left : sizeof d.dim);
    return d;
}

static int is_good(const ttn_desc *d, __int128 *numel)
{
    *numel = d->ndim < 0 ? 0 : 1;
    if ((int)d->type < 0 || (int)d->type > TTN_U8 || (int)d->axis < 0 || (int)d->axis > TTN_PICKS) return 0;
    if (d->ndim > TTN_MAX_DIM || (d->ndim == 0 && d->axis != TTN_FIXED)) return 0;
    for (int i = 0; i < d->ndim; i++)
        if (d->dim[i] < 0) return 0;
    for (int i = 0; i < d->ndim; i++) {
        *numel *= d->dim[i];
        if (*numel * (__int128)ttn_dtype_size(d->type) > INT64_MAX) return 0;
    }
    return 1;
}

static void try_desc(const ttn_desc *d)
{
    ttn_error err = {0};
    __int128 numel;
    int good = is_good(d, &numel);
    ttn_status status = ttn_desc_check(d, "x", &err);
    assert((status == TTN_OK) == good);
    assert((err.text[0] == 0) == good);
    if (good) {
        assert(ttn_desc_numel(d) == (int64_t)numel);
        assert(ttn_desc_bytes(d) == (size_t)numel * ttn_dtype_size(d->type));
    }
    char *text = __builtin_malloc(TTN_DESC_TEXT); /* a block of its own: AddressSanitizer sees one byte too many */
    assert(text);
    ttn_desc_print(d, text);
    assert(memchr(text, 0, TTN_DESC_TEXT));
    __builtin_free(text);
}

/* ---- messages ---- */

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
static int is_utf8(const char *text)
{
    for (const uint8_t *c = (const uint8_t *)text; *c;) {
        int follow = *c < 0x80                  ? 0
                     : *c >= 0xC2 && *c <= 0xDF ? 1
                     : *c >= 0xE0 && *c <= 0xEF ? 2
                     : *c >= 0xF0 && *c <= 0xF4 ? 3
                                                : -1;
        if (follow < 0) return 0;
        uint8_t low = *c == 0xE0 ? 0xA0 : *c == 0xF0 ? 0x90 : 0x80;
        uint8_t high = *c == 0xED ? 0x9F : *c == 0xF4 ? 0x8F : 0xBF;
        if (follow > 0 && (c[1] < low || c[1] > high)) return 0;
        for (int i = 2; i <= follow; i++)
            if (c[i] < 0x80 || c[i] > 0xBF) return 0;
        c += follow + 1;
    }
    return 1;
}

static void check_text(const char *text, size_t room)
{
    assert(memchr(text, 0, room));
    for (const char *c = text; *c; c++)
        assert((unsigned char)*c >= ' ' && *c != 0x7F);
}

/* The first bytes say how far the file's name and the value are repeated: libFuzzer's inputs are shorter than a text. */
static void try_message(const uint8_t *data, size_t size)
{
    enum { ROOM = 4 * TTN_ERROR_TEXT };
    static char name[ROOM], value[ROOM];
    if (size < 4) return;
    size_t n_name = (size_t)data[0] * 8, n_value = (size_t)data[1] * 8;
    size_t split = 4 + (size - 4) * data[2] / 256;
    size_t at = 0;
    for (size_t i = 4; i < size && at < n_name; i = i + 1 < split ? i + 1 : 4) {
        name[at] = i < split && data[i] ? (char)data[i] : 'n';
        at++;
    }
    name[at] = 0;
    at = 0;
    for (size_t i = split; i < size && at < n_value; i = i + 1 < size ? i + 1 : split) {
        value[at] = data[i] ? (char)data[i] : 'v';
        at++;
    }
    value[at] = 0;

    int is_text = is_utf8(name) && is_utf8(value);
    ttn_error err = {0};
    assert(TTN_FAIL_AT(&err, TTN_EFORMAT, name, (int64_t)data[3] - 8, 7, "'%s' is no value", value) == TTN_EFORMAT);
    check_text(err.text, sizeof err.text);
    assert(memchr(err.file, 0, sizeof err.file));
    if (is_text) assert(is_utf8(err.text) && is_utf8(err.file));

    ttn_error plain = {0};
    assert(TTN_FAIL(&plain, TTN_EIO, "%s", value) == TTN_EIO);
    check_text(plain.text, sizeof plain.text);
    if (is_utf8(value)) assert(is_utf8(plain.text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ttn_desc d = desc_of(data, size);
    try_desc(&d);
    try_message(data, size);
    return 0;
}
