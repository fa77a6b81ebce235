/* MANIFEST.json: what a folder of files should hold, to the byte.
 *
 *     {
 *       "format": "titin checkpoint",
 *       "format_version": 1,
 *       "titin_version": "0.1.0",
 *       "files": {
 *         "model.safetensors": {
 *           "bytes": 20480,
 *           "xxh3_128": "0123…",
 *           "tensors": {
 *             "layer.0.q.weight": "4567…"
 *           }
 *         },
 *         "state.json": { "bytes": 1200, "xxh3_128": "89ab…" }
 *       },
 *       "xxh3_128": "cdef…"
 *     }
 *
 * Checksums are XXH3-128 as `xxh128sum` prints them: of a file, of a tensor's bytes within it, and, in the last line, of
 * all that stands before that line. So no byte of the folder can change unseen, the manifest's own
 * included. It is written last: a folder without one is not finished.
 */
#ifndef TTN_MANIFEST_H
#define TTN_MANIFEST_H

#include <stdint.h>
#include "core/hash.h"
#include "core/status.h"

#define TTN_MANIFEST_NAME "MANIFEST.json"

/* ---- writing ---- */

typedef struct ttn_manifest_draft ttn_manifest_draft;

/* format: what the folder is ("titin checkpoint"); version: of that format. *ret is the caller's. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_manifest_draft_create(const char *format, int64_t version, ttn_manifest_draft **ret,
                                                  ttn_error *err);

/* Names are copied. A file's name is one without folders (ttn_manifest_is_name), a tensor's any UTF-8 text; both new. */
TTN_MUST_USE ttn_status ttn_manifest_draft_file(ttn_manifest_draft *d, const char *name, int64_t bytes,
                                                ttn_hash128 hash, ttn_error *err);
TTN_MUST_USE ttn_status ttn_manifest_draft_tensor(ttn_manifest_draft *d, const char *file, const char *name,
                                                  ttn_hash128 hash, ttn_error *err);

/* Write it to `folder`, as a file that appears whole (core/atomic.h). */
TTN_MUST_USE ttn_status ttn_manifest_draft_write(const ttn_manifest_draft *d, const char *folder, ttn_error *err);
void ttn_manifest_draft_destroy(ttn_manifest_draft *d); /* NULL is fine */

/* ---- reading ---- */

typedef struct ttn_manifest ttn_manifest;

/* Texts are borrowed until close. */
typedef struct {
    const char *name;
    int64_t bytes;
    ttn_hash128 hash;
    int64_t n_tensor;
} ttn_manifest_file;

/* Read folder/MANIFEST.json. `format` and `version` are what this program knows. TTN_ECHECKPOINT when it is missing,
 * damaged, of another format, or of another version: the message then names the titin that wrote it, and *opt_other
 * (unless NULL) is 1, which it is not for damage. TTN_EIO, TTN_ENOMEM. *ret is the caller's. */
TTN_MUST_USE ttn_status ttn_manifest_read(const char *folder, const char *format, int64_t version, ttn_manifest **ret,
                                          int *opt_other, ttn_error *err);

/* The same from memory; `name` stands in messages. */
TTN_MUST_USE ttn_status ttn_manifest_parse(const char *name, const void *bytes, size_t n, const char *format,
                                           int64_t version, ttn_manifest **ret, int *opt_other, ttn_error *err);

void ttn_manifest_close(ttn_manifest *m); /* NULL is fine */

/* "0.1.0": the titin that wrote it. */
const char *ttn_manifest_titin(const ttn_manifest *m);

int ttn_manifest_file_count(const ttn_manifest *m);
const ttn_manifest_file *ttn_manifest_file_at(const ttn_manifest *m, int i);
int ttn_manifest_find(const ttn_manifest *m, const char *name); /* -1: no such file */

/* The checksum of a tensor of file i: 1; 0 when there is none of that name. */
int ttn_manifest_tensor(const ttn_manifest *m, int i, const char *name, ttn_hash128 *ret);

/* The files are there, regular, and as long as they should be (quick), and hold what they should (verify: every byte is
 * read). TTN_ECHECKPOINT names the first that is not. */
TTN_MUST_USE ttn_status ttn_manifest_check(const ttn_manifest *m, const char *folder, int verify, ttn_error *err);

/* May a manifest name a file so? 1 to 255 bytes of UTF-8 without '/', control characters and a dot in front, and not the
 * manifest's own name. */
int ttn_manifest_is_name(const char *name);

#endif
