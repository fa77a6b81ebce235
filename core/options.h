/* Options: one row says everything about a key of the configuration.
 *
 * Rows belong to the module that reads them (`static const ttn_option options[]` beside the code); the table of a program
 * is their concatenation. Defaults, checks, help texts and saved files all come from the rows, so a default or a range is
 * written once.
 */
#ifndef TTN_OPTIONS_H
#define TTN_OPTIONS_H

#include <stddef.h>
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

/* What people look for and do not find (yet): a value of a choice ("oprf"), or, where the name has a dot, a key
 * ("favor.window", which may stand with any row). */
typedef struct {
    const char *name;
    const char *instead; /* what to take: goes on after "'oprf' is not there yet: " */
} ttn_option_absent;

/* When a row is read at all: where the row `key` has one of the values `is`, or a value that is none of `is_not`. One of the
 * two lists is there, with ", " between values as ttn_option_write writes them; "" stands for an empty list or text. */
typedef struct {
    const char *key;
    const char *is, *is_not;
    const char *words; /* the condition in messages; NULL: "KEY is A or B", "KEY is not A" */
} ttn_option_condition;

typedef struct {
    const char *name; /* "favor.redraw": a section, a dot, a key; lower case, digits and '_' */
    ttn_option_type type;
    int is_list;          /* of values of that type */
    const char *fallback; /* the default, as a user would write it (of a list: values with ", " between them, "" for
                                   none); NULL: the user must give a value */
    double least, most;   /* of numbers, sizes and durations, both possible; both 0: any */
    const char *const *choices;       /* of TTN_OPTION_CHOICE, NULL at the end */
    const char *unit;                 /* "steps", "rows"; NULL: none, or it is in the type */
    const char *help;                 /* one sentence, without a dot at its end */
    const char *since;                /* the version that brought it */
    const ttn_option_absent *absent;  /* a name NULL at the end; NULL: there are none */
    const ttn_option_condition *when; /* the row is read where all of them hold; a key NULL at the end; NULL: always */
    int unread_is_error; /* a value that the user gave and that is not read is an error: training would be on other data */
    int from_file;       /* TTN_OPTION_TEXT: "@FILE" stands for the lines of that file, with blanks between them */
} ttn_option;

/* "integer", "list of paths": what stands in help texts and messages; text has TTN_OPTION_KIND bytes. Returns text. */
enum { TTN_OPTION_KIND = 48 };
char *ttn_option_kind(const ttn_option *o, char *text);

/* The row of that name; NULL when there is none. */
const ttn_option *ttn_option_find(const ttn_option *row, int n, const char *name);

/* What to take instead of a key that is not there yet (ttn_option.absent); NULL: nobody has heard of it. */
const char *ttn_option_instead(const ttn_option *row, int n, const char *key);

/* One value. Which member holds is the row's type: see ttn_option_read. */
typedef union {
    int64_t integer;  /* BOOL (0 or 1), INTEGER, SIZE */
    double real;      /* REAL, DURATION */
    const char *text; /* TEXT, PATH, CHOICE, PATTERN; borrowed */
} ttn_scalar;

/* One value of the row (an element where it is a list), as a person writes it: core/number.h for numbers; yes, on, true or
 * no, off, false, small, with a capital, or in capitals; a choice as it stands in the row. Checked against range and choices.
 * ret->text is `text` itself. TTN_EINVAL with a sentence that begins with the text in quotes (the name of the row is left to
 * the caller). */
TTN_MUST_USE ttn_status ttn_option_read(const ttn_option *o, const char *text, ttn_scalar *ret, ttn_error *err);

/* The text that reads back to the same value, to the bit. A text is returned as it is; others are written to `room`, which
 * has TTN_OPTION_VALUE bytes. */
enum { TTN_OPTION_VALUE = 48 };
const char *ttn_option_write(const ttn_option *o, ttn_scalar value, char *room);

/* The next element of a list's default, copied to `room`, which has n_room bytes (TTN_OPTION_EXPECTED for a table that was
 * checked): returns room, and *rest is what follows. NULL after the last. */
const char *ttn_option_next(const char **rest, char *room, size_t n_room);

/* "a number from 0 to 1", "yes or no", "one of exact, favor": what a value has to be; cut where text has not the room.
 * Returns text. */
enum { TTN_OPTION_EXPECTED = 512 };
char *ttn_option_expected(const ttn_option *o, char *text);

/* Does it hold for a row that has these n values (texts)? A list does when one of its elements does. */
int ttn_option_condition_holds(const ttn_option_condition *c, const char *const *value, int n);

/* "schedule.kind is linear or cosine", "mlm.random is not 0"; text has TTN_OPTION_EXPECTED bytes. Returns text. */
char *ttn_option_condition_text(const ttn_option_condition *c, char *text);

/* Is the table one that a program can be built on? Names well-formed and unique, types that exist, help and version there,
 * a range that is not empty and only where there are numbers, choices exactly where they belong, a default that is one of
 * them. TTN_EINVAL with the row's name: a fault of ours, found by a test and not by a user. */
TTN_MUST_USE ttn_status ttn_options_check(const ttn_option *row, int n, ttn_error *err);

/* The same for conditions, which name rows of other modules, too: of a whole program's table. */
TTN_MUST_USE ttn_status ttn_options_check_conditions(const ttn_option *row, int n, ttn_error *err);

/* Values of the configuration by name ("exact.scale"), already checked against their rows; `layer` counts from 0 and
 * chooses where a value is a list with one element a layer. A name without a row, or of another type, is our mistake:
 * TTN_EINTERNAL with the name. Texts are borrowed until the configuration is destroyed. Whoever has a configuration
 * implements this; `self` is the first argument of every function. */
typedef struct {
    const void *self;
    ttn_status (*get_bool)(const void *self, const char *name, int layer, int *ret, ttn_error *err);
    ttn_status (*get_integer)(const void *self, const char *name, int layer, int64_t *ret, ttn_error *err);
    ttn_status (*get_real)(const void *self, const char *name, int layer, double *ret, ttn_error *err);
    ttn_status (*get_text)(const void *self, const char *name, int layer, const char **ret, ttn_error *err);
} ttn_option_reader;

#endif
