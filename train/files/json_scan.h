/* A strict scanner for JSON: one token at a time, from bytes in memory, without allocating.
 *
 * It is what checks every JSON text that titin reads. A document that becomes a tree is scanned first (json.h); one
 * that is large and of a known form (the header of a safetensors file) is taken in token by token, in a tenth of the
 * memory that a tree would need.
 *
 * Strict: RFC 8259 to the letter. UTF-8 without a byte order mark, no NUL (nor \u0000, which would cut a text short),
 * no lone surrogates, no NaN or Infinity, integers within 64 bits, no deeper than the caller says, nothing but white
 * space after the value. Keys that stand twice in an object are the caller's to find: it alone keeps them.
 */
#ifndef TTN_JSON_SCAN_H
#define TTN_JSON_SCAN_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

typedef enum {
    TTN_JSON_OBJECT,
    TTN_JSON_OBJECT_END,
    TTN_JSON_ARRAY,
    TTN_JSON_ARRAY_END,
    TTN_JSON_KEY, /* its colon is behind us */
    TTN_JSON_TEXT,
    TTN_JSON_INTEGER,
    TTN_JSON_REAL, /* has a fraction or an exponent: also 2.0 and 1e3 */
    TTN_JSON_TRUE,
    TTN_JSON_FALSE,
    TTN_JSON_NULL,
    TTN_JSON_END, /* of the document, white space behind it included */
} ttn_json_token;

enum { TTN_JSON_MAX_DEPTH = 64 };

typedef struct {
    /* Set these; the rest is 0 at the start. */
    const char *file;  /* for messages */
    const char *bytes; /* (n), borrowed */
    size_t n;
    int most_depth;      /* of objects and arrays in each other, at most TTN_JSON_MAX_DEPTH */
    ttn_status failure;  /* what a text that is not as it should be is */
    const char *section; /* NULL: places are lines and columns; else "byte I of SECTION" */
    const char *inside;  /* with a section: what the sentence is about, by name; changed as the caller goes on */

    /* The last token. */
    ttn_json_token token;
    size_t first, end; /* its bytes; of a text or key those between the quotes */
    int has_escape;    /* of a text or key */
    int64_t integer;
    int depth; /* objects and arrays around what comes next */

    size_t at; /* what follows */
    int state;
    uint64_t objects; /* bit d: the d-th one around is an object */
} ttn_json_scan;

/* The next token: TTN_OK, or s->failure with its place. After TTN_JSON_END or a failure it is not called again. */
TTN_MUST_USE ttn_status ttn_json_next(ttn_json_scan *s, ttn_error *err);

/* The value whose first token was the last one is passed over: after it s->token is its last one. */
TTN_MUST_USE ttn_status ttn_json_skip(ttn_json_scan *s, ttn_error *err);

/* The last text or key as it is meant, with a 0 at its end; `to` has s->end - s->first + 1 bytes. Returns its length,
 * which is no larger. */
size_t ttn_json_decode(const ttn_json_scan *s, char *to);

/* s->failure with a sentence about the byte at `at`. */
ttn_status ttn_json_fail_at(const ttn_json_scan *s, size_t at, ttn_error *err, const char *format, ...)
    TTN_PRINTF(4, 5);

/* "an integer", "a text", … */
const char *ttn_json_token_name(ttn_json_token token);

#endif
