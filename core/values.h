/* The values of a table of options, each with where it came from.
 *
 * A new object holds the defaults. Whoever reads a configuration sets values; modules get them by name, as a
 * ttn_option_reader or into the fields of a struct. What is read is checked when it is set, so modules check nothing.
 */
#ifndef TTN_VALUES_H
#define TTN_VALUES_H

#include <stddef.h>
#include "core/options.h"

/* In rising order: a later source wins. */
typedef enum {
    TTN_FROM_DEFAULT,
    TTN_FROM_PRESET,
    TTN_FROM_FILE,
    TTN_FROM_ENVIRONMENT,
    TTN_FROM_COMMAND_LINE,
} ttn_source_kind;

typedef struct {
    ttn_source_kind kind;
    const char
        *text; /* "default", "preset quickstart:3", "run.yaml:12", "environment TITIN__TRAIN__LR", "command line" */
} ttn_origin;

typedef struct {
    int given;              /* 0: the row has no default and nobody gave a value */
    int n;                  /* elements of a list; else 1 */
    const ttn_scalar *item; /* (n) */
    ttn_origin origin;
} ttn_option_value;

typedef struct ttn_values ttn_values;

/* The rows must pass ttn_options_check, and outlive the object; *ret is the caller's. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_values_create(const ttn_option *row, int n_row, ttn_values **ret, ttn_error *err);
void ttn_values_destroy(ttn_values *v); /* NULL is fine */

/* Row i of n, in the order of the table, and its value: borrowed until the object is destroyed or the value set. */
int ttn_values_count(const ttn_values *v);
const ttn_option *ttn_values_row(const ttn_values *v, int i);
const ttn_option_value *ttn_values_at(const ttn_values *v, int i);

/* Give row i n values (1 where it is no list) that ttn_option_read made; everything is copied. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_values_set(ttn_values *v, int i, const ttn_scalar *item, int n, ttn_origin origin,
                                       ttn_error *err);

/* ---- for modules ---- */

/* By name: borrowed, good as long as v. Of a list with one element every layer gets that one; of a longer one layer l gets
 * element l, TTN_EINVAL when there is none. TTN_EINVAL too for a value that nobody gave. A list whose elements are wanted
 * all together is read with ttn_values_fill. get_integer also reads sizes, get_real durations, get_text all texts. */
ttn_option_reader ttn_values_reader(const ttn_values *v);

/* A field of a struct that is filled from a row. */
typedef struct {
    const char *name; /* of the row */
    size_t at;        /* offset of the field */
    enum { TTN_FIELD_INT, TTN_FIELD_INTEGER, TTN_FIELD_REAL, TTN_FIELD_TEXT, TTN_FIELD_LIST } type;
} ttn_option_field;

/* A field for a list: borrowed from the ttn_values. */
typedef struct {
    int n;
    const ttn_scalar *item;
} ttn_list;

/* {TTN_FIELD(struct, member, "train.lr")}: int for yes and no, int64_t for integers and sizes, double for numbers and
 * durations, const char * for texts, paths, choices and patterns, ttn_list for a list of any of them. The pointer in it is
 * looked at for its type alone. */
#define TTN_FIELD(of, member, row)                                  \
    {                                                               \
        .name = (row), .at = offsetof(of, member),                \
        .type = _Generic(((of *)sizeof(of))->member,                       \
            int: TTN_FIELD_INT,                                   \
            int64_t: TTN_FIELD_INTEGER,                           \
            double: TTN_FIELD_REAL,                               \
            const char *: TTN_FIELD_TEXT,                         \
            ttn_list: TTN_FIELD_LIST) \
    }

/* Fill the fields of *into. TTN_EINTERNAL: a field without a row, or of another type (our mistake); TTN_EINVAL: a value that
 * nobody gave. */
TTN_MUST_USE ttn_status ttn_values_fill(const ttn_values *v, const ttn_option_field *field, int n, void *into,
                                        ttn_error *err);

/* ---- does somebody read every row? ---- */

/* A check of the program, not of a user's values: rows without a value get one that passes (so that no reader stops at it),
 * and from now on read[i] (the caller's, one a row) counts how often row i is read. One thread. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_values_audit(ttn_values *v, int *read, ttn_error *err);

#endif
