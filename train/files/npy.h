/* One array as numpy.load reads it: the NPY format, version 1.0, whose headers hold up to 65,535 bytes; four dimensions
 * need 128. https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 *
 *     ttn_npy *w;
 *     ttn_status status = ttn_npy_create("embedding.npy", &desc, &w, err);
 *     if (status == TTN_OK) status = ttn_npy_append(w, row, bytes, err);      as often as there are rows
 *     if (status == TTN_OK) status = ttn_npy_commit(w, err);
 *     ttn_npy_destroy(w);
 */
#ifndef TTN_NPY_H
#define TTN_NPY_H

#include <stddef.h>
#include "core/status.h"
#include "core/tensor.h"

typedef struct ttn_npy ttn_npy;

/* The file appears whole at the commit or not at all (core/atomic.h, with its failures). desc: type and dimensions, the
 * numbers row-major; bf16, which numpy has no name for, is TTN_EINVAL. *ret is the caller's. */
TTN_MUST_USE ttn_status ttn_npy_create(const char *path, const ttn_desc *desc, ttn_npy **ret, ttn_error *err);

/* The next bytes of the numbers; not more in all than desc has. */
TTN_MUST_USE ttn_status ttn_npy_append(ttn_npy *w, const void *bytes, size_t n, ttn_error *err);

/* When all bytes are there. */
TTN_MUST_USE ttn_status ttn_npy_commit(ttn_npy *w, ttn_error *err);

void ttn_npy_destroy(ttn_npy *w); /* NULL is fine; without a commit nothing appears */

#endif
