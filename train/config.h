/* The configuration: one table of options (core/options.h) made of the rows of all modules, and values for it from
 *
 *     built-in defaults < a preset < files in order < environment TITIN__SECTION__KEY < command line section.key=value
 *
 * where a later source wins. A file is YAML: sections with keys, `train: {lr: 3e-4}` or `train.lr: 3e-4`; lists by index
 * (`data.train.0: a.fa`) change one element; the section `notes` may hold any key. What a source says is checked against the
 * rows when it is read, also where a later source replaces it, and everything that is wrong is reported at once, with its place.
 */
#ifndef TTN_CONFIG_H
#define TTN_CONFIG_H

#include <stddef.h>
#include <stdint.h>
#include "core/options.h"
#include "core/values.h"

/* ---- what modules bring ---- */

/* Two values that do not go together. Values are as ttn_option_write writes them ("clm", "yes"); of a list any element
 * counts. `why` ends the sentence "A: x does not go with B: y: …". */
typedef struct {
    const char *key[2];
    const char *value[2];
    const char *why;
} ttn_config_conflict;

/* Two numbers of which the first is at most the second. */
typedef struct {
    const char *smaller, *larger;
    const char *why;
} ttn_config_order;

typedef struct {
    const char *name; /* for our own messages: "attention kind exact" */
    const ttn_option *row;
    int n_row;
    /* Read every row as the module does when it is used; what it makes is thrown away. So that a row that nobody reads, and
     * a read without a row, are found when the program starts. */
    ttn_status (*read)(const void *self, const ttn_values *v, ttn_error *err);
    const void *self; /* the first argument of read */
    const ttn_config_conflict *conflict;
    int n_conflict;
    const ttn_config_order *order;
    int n_order;
} ttn_config_module;

/* Read-only, and may be shared. Modules are not copied: they outlive the table. TTN_EINTERNAL: a row is not well-formed, is
 * there twice or is not read, or something is read that has no row; TTN_ENOMEM. */
typedef struct ttn_config_table ttn_config_table;
TTN_MUST_USE ttn_status ttn_config_table_create(const ttn_config_module *module, int n, ttn_config_table **ret,
                                                ttn_error *err);
void ttn_config_table_destroy(ttn_config_table *t); /* NULL is fine */

/* The table of this program: its attention kinds and what else there is. The same errors. */
TTN_MUST_USE ttn_status ttn_config_table_of_titin(ttn_config_table **ret, ttn_error *err);

/* All rows, a section's together, in the order of modules: borrowed from the table. */
const ttn_option *ttn_config_rows(const ttn_config_table *t, int *n);

/* ---- presets: short files that are part of the program ---- */

typedef struct {
    const char *name; /* "quickstart" */
    const char *text; /* YAML */
} ttn_config_preset;

/* Those of this program, made of configs/NAME.yaml when it was built; a name that is NULL at the end. */
extern const ttn_config_preset ttn_config_presets[];

/* ---- loading ---- */

typedef struct {
    const char *path; /* is opened, unless there is a text; "run.yaml" in messages */
    const char *text; /* NULL: read the path */
    size_t n;         /* bytes of text */
} ttn_config_file;

typedef struct {
    const ttn_config_preset *presets; /* a name that is NULL at the end; NULL: there are none */
    const char *preset;               /* of --preset, stronger than `preset: NAME` in a file; NULL: none */
    const ttn_config_file *file;      /* (n_file) */
    int n_file;
    const char *const *environment; /* "NAME=value", NULL at the end (main's environ); NULL: none */
    const char *const *argument;    /* (n_argument) "section.key=value" */
    int n_argument;
} ttn_config_request;

typedef struct ttn_config ttn_config;

/* Everything that is wrong with any source stands in the report (below), the first of it in err, with "(and N more)".
 * TTN_EINVAL: there is something wrong, or a file is not there; TTN_EIO, TTN_ENOMEM. *ret is the caller's also after
 * TTN_EINVAL, for its report; else NULL after a failure. The table and presets outlive it; all else is copied. */
TTN_MUST_USE ttn_status ttn_config_load(const ttn_config_table *t, const ttn_config_request *r, ttn_config **ret,
                                        ttn_error *err);
void ttn_config_destroy(ttn_config *c); /* NULL is fine */

/* Borrowed until the configuration is destroyed. */
const ttn_values *ttn_config_values(const ttn_config *c);
const char *ttn_config_preset_name(const ttn_config *c); /* the preset in use; NULL: none */

/* A key of the section notes, n of them, in the order in which they came. */
typedef struct {
    const char *name;       /* "notes.author" */
    ttn_option_value value; /* texts */
    int is_list;
} ttn_config_note;
const ttn_config_note *ttn_config_notes(const ttn_config *c, int *n);

/* ---- what is wrong ---- */

/* At most TTN_CONFIG_PROBLEMS of one source are kept; the others are counted. */
enum { TTN_CONFIG_PROBLEMS = 20 };

typedef struct {
    const char *source;   /* "run.yaml", "preset quickstart", "environment TITIN__TRAIN__LR", "argument train.lr=x" */
    int64_t line, column; /* from 1, column in bytes; 0: the source is no file, or as a whole is wrong */
    const char *sentence; /* without place and dot */
    const char *text;     /* the line, or the part of a long one around the place; NULL: no line */
    int caret, n_caret;   /* characters of text before the place, and how many are under the carets */
} ttn_config_problem;

/* n of them, in the order of sources and places; *n_more: those that were only counted (not asked for: NULL). */
const ttn_config_problem *ttn_config_problems(const ttn_config *c, int *n, int64_t *n_more);

/* All of it for a person, each
 *     run.yaml:12:7: train.lr: 'abc' is not a number from 0 to 1
 *        12 |   lr: abc
 *           |       ^~~
 * ending in a line end, "" when nothing is wrong. Borrowed. */
const char *ttn_config_report(const ttn_config *c);

/* ---- giving it to people and programs ----
 *
 * *ret: a text that ends in a line end; the caller's, to be freed with free. TTN_ENOMEM. */

/* The file config.resolved.yaml: every value with its origin. It reads back to the same values and origins, so that writing
 * it again gives the same bytes. */
TTN_MUST_USE ttn_status ttn_config_resolved(const ttn_config *c, char **ret, ttn_error *err);

/* The same to a file that appears whole (core/atomic.h). */
TTN_MUST_USE ttn_status ttn_config_save(const ttn_config *c, const char *path, ttn_error *err);

/* A key's row: type, range, default, help, and, when c is not NULL, its value and where that came from. For a section's name:
 * its keys. TTN_EINVAL for an unknown key, with the nearest one. */
TTN_MUST_USE ttn_status ttn_config_explain(const ttn_config_table *t, const ttn_config *c, const char *key, char **ret,
                                           ttn_error *err);

/* Keys (notes too) whose values differ: one line each, "train.lr: 0.001 (a.yaml:2) -> 3e-4 (default)"; "" when there are
 * none. Both are of one table. */
TTN_MUST_USE ttn_status ttn_config_diff(const ttn_config *a, const ttn_config *b, char **ret, ttn_error *err);

/* JSON Schema (draft 2020-12) of a configuration file, for editors. */
TTN_MUST_USE ttn_status ttn_config_schema(const ttn_config_table *t, char **ret, ttn_error *err);

#endif
