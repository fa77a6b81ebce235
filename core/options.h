/* Options: one row says everything about a key of the configuration.
 *
 * Rows belong to the module that reads them (`static const ttn_option options[]` beside the code); the table of a program
 * is their concatenation. Defaults, checks, help texts and saved files all come from the rows, so a default or a range is
 * written once.
 */
#ifndef TTN_OPTIONS_H
#define TTN_OPTIONS_H

#include <stdint.h>
#include "core/status.h"

typedef enum {
    TTN_OPTION_BOOL,    /* yes, no */
    TTN_OPTION_INTEGER, /* 64 bits */
    TTN_OPTION_REAL,
    TTN_OPTION_TEXT,
    TTN_OPTION_PATH,
    TTN_OPTION_CHOICE,   /* one of `choices` */
    TTN_OPTION_SIZE,     /* bytes: 64k, 2GiB */
    TTN_OPTION_DURATION, /* seconds: 90s, 1.5h */
    TTN_OPTION_PATTERN,  /* a shell pattern for names: layer.*.attn.* */
} ttn_option_type;

typedef struct {
    const char *name; /* "favor.redraw": a section, a dot, a key; lower case, digits and '_' */
    ttn_option_type type;
    int is_list;                /* of values of that type */
    const char *fallback;       /* the default, as a user would write it; NULL: the user must give a value */
    double least, most;         /* of numbers, sizes and durations, both possible; both 0: any */
    const char *const *choices; /* of TTN_OPTION_CHOICE, NULL at the end */
    const char *unit;           /* "steps", "rows"; NULL: none, or it is in the type */
    const char *help;           /* one sentence, without a dot at its end */
    const char *since;          /* the version that brought it */
} ttn_option;

/* "integer", "list of paths": what stands in help texts and messages; text has TTN_OPTION_KIND bytes. Returns text. */
enum { TTN_OPTION_KIND = 48 };
char *ttn_option_kind(const ttn_option *o, char *text);

/* The row of that name; NULL when there is none. */
const ttn_option *ttn_option_find(const ttn_option *row, int n, const char *name);

/* Is the table one that a program can be built on? Names well-formed and unique, types that exist, help and version there,
 * a range that is not empty and only where there are numbers, choices exactly where they belong, a default that is one of
 * them. TTN_EINVAL with the row's name: a fault of ours, found by a test and not by a user. */
TTN_MUST_USE ttn_status ttn_options_check(const ttn_option *row, int n, ttn_error *err);

#endif
