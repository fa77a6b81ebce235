#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/atomic.h"
#include "core/memory.h"
#include "train/files/npy.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie in memory");

struct ttn_npy {
    ttn_atomic *file;
    size_t left; /* bytes of numbers still to come */
};

/* numpy's name; NULL: it has none. */
static const char *type_name(ttn_dtype type)
{
    switch (ttn_dtype_stored(type)) {
    case TTN_F16:
        return "<f2";
    case TTN_F32:
        return "<f4";
    case TTN_F64:
        return "<f8";
    case TTN_I32:
        return "<i4";
    case TTN_I64:
        return "<i8";
    case TTN_U8:
        return "|u1";
    default:
        return NULL;
    }
}

enum { STEP = 64, PREFIX = 10, HEADER = 256 };

/* Magic, version, length and the dict, padded so that the numbers begin at a multiple of 64. Returns its bytes. */
static size_t make_header(const ttn_desc *desc, char *header)
{
    char shape[4 * 24] = "";
    size_t used = 0;
    for (int i = 0; i < desc->ndim; i++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%" PRId64 "%s", i > 0 ? " " : "", desc->dim[i],
                                 i + 1 < desc->ndim || desc->ndim == 1 ? "," : "");
    int n = snprintf(header + PREFIX, HEADER - PREFIX, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                     type_name(desc->type), shape);
    size_t end = PREFIX + (size_t)n + 1; /* and a line end */
    size_t total = (end + STEP - 1) / STEP * STEP;
    assert(n > 0 && total <= HEADER);
    memset(header + end - 1, ' ', total - end);
    header[total - 1] = '\n';
    static const char magic[8] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0}; /* version 1.0 */
    memcpy(header, magic, sizeof magic);
    header[8] = (char)((total - PREFIX) & 0xff);
    header[9] = (char)((total - PREFIX) >> 8);
    return total;
}

ttn_status ttn_npy_create(const char *path, const ttn_desc *desc, ttn_npy **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_status status = ttn_desc_check(desc, path, err);
    if (status != TTN_OK) return status;
    if (!type_name(desc->type))
        return TTN_FAIL(err, TTN_EINVAL, "%s: numpy has no %s; write f32 or f16", path, ttn_dtype_name(desc->type));
    ttn_npy *w = ttn_alloc_or_say(1, sizeof *w, "an array to be written", err);
    if (!w) return TTN_ENOMEM;
    w->left = ttn_desc_bytes(desc);
    char header[HEADER];
    size_t n = make_header(desc, header);
    status = ttn_atomic_file_create(path, &w->file, err);
    if (status == TTN_OK) status = ttn_atomic_write(w->file, header, n, err);
    if (status == TTN_OK)
        *ret = w;
    else
        ttn_npy_destroy(w);
    return status;
}

ttn_status ttn_npy_append(ttn_npy *w, const void *bytes, size_t n, ttn_error *err)
{
    assert(n <= w->left);
    w->left -= n;
    return ttn_atomic_write(w->file, bytes, n, err);
}

ttn_status ttn_npy_commit(ttn_npy *w, ttn_error *err)
{
    assert(w->left == 0);
    return ttn_atomic_commit(w->file, err);
}

void ttn_npy_destroy(ttn_npy *w)
{
    if (!w) return;
    ttn_atomic_destroy(w->file);
    ttn_free(w);
}
