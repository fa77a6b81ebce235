/* Facts about something, for people and for programs: what `titin info` and `titin doctor` say.
 *
 * Whoever knows a thing adds facts in order, each under a key; the program lays them out as text or prints them as JSON.
 * A key is a name in JSON, so it stays as it is once it has been released: lower case, digits and '_'. As text it is
 * shown with blanks for '_'.
 *
 *     ttn_facts_text(f, "format", "safetensors");
 *     ttn_facts_integer(f, "tensors", n);
 *     ttn_facts_bytes(f, "bytes", bytes);
 *     ttn_facts_open_list(f, "tensor");          a list of objects with the same keys is shown as a table
 *     for (…) {
 *         ttn_facts_open(f, NULL);               in a list nothing has a key
 *         ttn_facts_text(f, "name", "%s", name);
 *         ttn_facts_close(f);
 *     }
 *     ttn_facts_close(f);
 *
 * No call fails: the first that finds no memory is remembered, and ttn_facts_status tells it at the end.
 */
#ifndef TTN_FACTS_H
#define TTN_FACTS_H

#include <stdint.h>
#include "core/status.h"

typedef struct ttn_facts ttn_facts;

typedef enum {
    TTN_FACT_NONE, /* null */
    TTN_FACT_TEXT,
    TTN_FACT_INTEGER,
    TTN_FACT_REAL,
    TTN_FACT_BYTES,   /* integer: bytes */
    TTN_FACT_SECONDS, /* real */
    TTN_FACT_FLAG,    /* integer: 0 or 1 */
    TTN_FACT_OPEN,    /* an object begins */
    TTN_FACT_OPEN_LIST,
    TTN_FACT_CLOSE, /* of the last object or list that is open */
} ttn_fact_kind;

/* Text and key are the ttn_facts' own. */
typedef struct {
    ttn_fact_kind kind;
    const char *key; /* NULL in a list, and of a TTN_FACT_CLOSE */
    const char *text;
    int64_t integer;
    double real;
} ttn_fact;

/* *ret is the caller's. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_facts_create(ttn_facts **ret, ttn_error *err);
void ttn_facts_destroy(ttn_facts *f); /* NULL is fine */

/* Keys and texts are copied. Of a text (a file's bytes may stand in it) control characters become '?', and what is not
 * UTF-8 becomes U+FFFD; one of any length is kept whole. */
void ttn_facts_text(ttn_facts *f, const char *key, const char *format, ...) TTN_PRINTF(3, 4);
void ttn_facts_integer(ttn_facts *f, const char *key, int64_t value);
void ttn_facts_real(ttn_facts *f, const char *key, double value); /* not finite: none */
void ttn_facts_bytes(ttn_facts *f, const char *key, int64_t bytes);
void ttn_facts_seconds(ttn_facts *f, const char *key, double seconds);
void ttn_facts_flag(ttn_facts *f, const char *key, int value);
void ttn_facts_none(ttn_facts *f, const char *key);

void ttn_facts_open(ttn_facts *f, const char *key);
void ttn_facts_open_list(ttn_facts *f, const char *key);
void ttn_facts_close(ttn_facts *f);
void ttn_facts_close_all(ttn_facts *f); /* for who stops half-way */

/* Something that goes on, but that somebody should look at: one sentence. Warnings are shown after the facts, and are
 * the list "warnings" of the outermost object. */
void ttn_facts_warn(ttn_facts *f, const char *format, ...) TTN_PRINTF(2, 3);

/* Everything was kept, and what was opened is closed (an assertion)? Else TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_facts_status(const ttn_facts *f, ttn_error *err);

/* All of them in order, and the warnings; good until the next one is added. */
int64_t ttn_facts_count(const ttn_facts *f);
const ttn_fact *ttn_facts_at(const ttn_facts *f);
int64_t ttn_facts_warning_count(const ttn_facts *f);
const char *ttn_facts_warning(const ttn_facts *f, int64_t i);

#endif
