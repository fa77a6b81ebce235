/* JSON documents: read strictly, written so that they read back to the bit.
 *
 * The tree is jansson's (json_t, jansson.h); what it was read from stays beside it, so that a message about a value
 * names its line and column:
 *
 *     ttn_json *j = NULL;
 *     int64_t step = 0;
 *     ttn_status status = ttn_json_read("state.json", &(ttn_json_rules){.failure = TTN_ECHECKPOINT}, &j, err);
 *     if (status == TTN_OK) status = ttn_json_integer(j, ttn_json_root(j), "step", 0, INT64_MAX, &step, err);
 *     ttn_json_close(j);
 *
 * Refused besides what json_scan.h refuses: a key that stands twice in one object, a number beyond double, a document
 * that is too large or too deep.
 */
#ifndef TTN_JSON_H
#define TTN_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

typedef struct {
    size_t most_bytes;  /* 0: 16 MiB */
    int most_depth;     /* of objects and arrays in each other; 0: 16, at most TTN_JSON_MAX_DEPTH */
    ttn_status failure; /* of a document that is not as it should be; 0: TTN_EFORMAT */
} ttn_json_rules;

typedef struct ttn_json ttn_json;

/* rules: NULL: the values above. *ret is the caller's. Also TTN_EINVAL (no such file), TTN_EIO, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_json_read(const char *path, const ttn_json_rules *rules, ttn_json **ret, ttn_error *err);

/* The same from memory; `name` stands in messages. The bytes are copied. */
TTN_MUST_USE ttn_status ttn_json_parse(const char *name, const void *bytes, size_t n, const ttn_json_rules *rules,
                                       ttn_json **ret, ttn_error *err);

void ttn_json_close(ttn_json *j); /* NULL is fine; the tree goes with it */

/* Borrowed until close, as everything below. */
const json_t *ttn_json_root(const ttn_json *j);

/* ---- what stands under a key of the object `in`, itself in j. Missing or of another kind: the document's failure
 * with its place. Arrays' items are asked for by their index in ttn_json_item. ---- */

TTN_MUST_USE ttn_status ttn_json_object(const ttn_json *j, const json_t *in, const char *key, const json_t **ret,
                                        ttn_error *err);
TTN_MUST_USE ttn_status ttn_json_array(const ttn_json *j, const json_t *in, const char *key, const json_t **ret,
                                       ttn_error *err);
TTN_MUST_USE ttn_status ttn_json_text(const ttn_json *j, const json_t *in, const char *key, const char **ret,
                                      ttn_error *err);
TTN_MUST_USE ttn_status ttn_json_bool(const ttn_json *j, const json_t *in, const char *key, int *ret, ttn_error *err);

/* An integer (2.0 and 1e3 are none) from least to most, both included. */
TTN_MUST_USE ttn_status ttn_json_integer(const ttn_json *j, const json_t *in, const char *key, int64_t least,
                                         int64_t most, int64_t *ret, ttn_error *err);

/* Any number; an integer becomes the nearest double. */
TTN_MUST_USE ttn_status ttn_json_real(const ttn_json *j, const json_t *in, const char *key, double *ret,
                                      ttn_error *err);

/* Item i of an array, which is to be of that type (JSON_OBJECT, JSON_STRING, …). */
TTN_MUST_USE ttn_status ttn_json_item(const ttn_json *j, const json_t *array, size_t i, json_type type,
                                      const json_t **ret, ttn_error *err);

/* The object has no keys but these (n of them): a key that nobody reads is a mistake, or from a later version. */
TTN_MUST_USE ttn_status ttn_json_only(const ttn_json *j, const json_t *in, const char *const *keys, size_t n,
                                      ttn_error *err);

/* A sentence about the value under `key` of `in` (key NULL: about `in`), with its place and the document's failure. */
ttn_status ttn_json_fail(const ttn_json *j, const json_t *in, const char *key, ttn_error *err, const char *format, ...)
    TTN_PRINTF(5, 6);

/* ---- writing ---- */

/* The tree as a text, two spaces a level, keys in the order of the tree, a line end behind it; doubles with the 17
 * digits that read back to the bit. It comes in pieces, which `take` (returning a status) is given. NaN and Infinity
 * cannot be in a tree: json_real refuses them. root is an object or an array. */
typedef ttn_status (*ttn_json_taker)(void *ctx, const char *bytes, size_t n, ttn_error *err);
TTN_MUST_USE ttn_status ttn_json_dump(const json_t *root, ttn_json_taker take, void *ctx, ttn_error *err);

/* The same to a file that appears whole or not at all (core/atomic.h). */
TTN_MUST_USE ttn_status ttn_json_write(const char *path, const json_t *root, ttn_error *err);

#endif
