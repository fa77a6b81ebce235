/* Facts as people read them, on the screen and in a report: values, keys, and which lists are tables. */
#ifndef TTN_SHOW_FACT_H
#define TTN_SHOW_FACT_H

#include <stdint.h>
#include "train/facts.h"

/* ---- numbers: text has TTN_SHOW_NUMBER bytes and is returned ---- */

enum { TTN_SHOW_NUMBER = 40 };
char *ttn_show_bytes(int64_t bytes, char *text); /* "1.2 GiB", "87 bytes" */
char *ttn_show_count(int64_t n, char *text);     /* "1,234,567" */
/* Of a loss in nats: "16.51", from 100,000 on "1.2e+24"; "over 1e300", "not finite". digits: behind the point. */
char *ttn_show_perplexity(double loss, int digits, char *text);
char *ttn_show_seconds(double seconds, char *text); /* "3.2 ms", "3 h 12 min" */

/* ---- one fact ---- */

/* The value: one of the above, "yes", "none", or its own text, which is borrowed; "" for what opens or closes. */
const char *ttn_show_value(const ttn_fact *f, char *text);
int ttn_show_is_number(const ttn_fact *f);

/* "looks_like" as "looks like"; "-" for NULL. text has TTN_SHOW_KEY bytes. Returns text. */
enum { TTN_SHOW_KEY = 96 };
const char *ttn_show_key(const char *key, char *text);

/* ---- what is in what: f[at] is one of the facts of ttn_facts_at ---- */

int ttn_show_opens(const ttn_fact *f);

/* The fact behind the one at `at`, which may be an object or a list. */
int64_t ttn_show_skip(const ttn_fact *f, int64_t at);

/* A list of plain values is one line: "1, 2, 3". */
int ttn_show_is_plain_list(const ttn_fact *f, int64_t at);

/* A list all of whose entries are objects of plain values with the same keys is a table: how many columns; 0: it is none. */
enum { TTN_SHOW_COLUMNS = 16 };
int ttn_show_table_columns(const ttn_fact *f, int64_t at);

#endif
