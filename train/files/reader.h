/* A file that is read by position: opened once, its size known, every read whole or an error.
 *
 * Reads are pread's, so that a file that somebody shortens meanwhile is an error and not a SIGBUS, and several threads
 * may read at once.
 */
#ifndef TTN_READER_H
#define TTN_READER_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

typedef struct ttn_reader ttn_reader;

/* Only regular files. TTN_EINVAL when there is none of that name, or it is something else (a folder, a pipe),
 * TTN_EIO when the system refuses, TTN_ENOMEM. *ret is the caller's. */
TTN_MUST_USE ttn_status ttn_reader_open(const char *path, ttn_reader **ret, ttn_error *err);

/* Bytes it had when it was opened. */
int64_t ttn_reader_size(const ttn_reader *r);

/* As messages show it; borrowed until close. */
const char *ttn_reader_name(const ttn_reader *r);

/* n bytes from `at` on, all of them within the size. TTN_EIO: the system fails, or the file is shorter by now. */
TTN_MUST_USE ttn_status ttn_reader_read(const ttn_reader *r, int64_t at, void *to, size_t n, ttn_error *err);

void ttn_reader_close(ttn_reader *r); /* NULL is fine */

#endif
