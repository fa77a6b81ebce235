/* What the files of the configuration share: the table, sources and places in them, the tree that a YAML file becomes.
 *
 *     config.c          the table, and the order of things
 *     config_source.c   texts of files, presets, environment and command line
 *     config_yaml.c     a text to a tree
 *     config_apply.c    a tree to values
 *     config_problem.c  what is wrong, for people
 *     config_unread.c   values that the user gave and nobody reads
 *     config_write.c    config.resolved.yaml
 *     config_tell.c     explain, diff, schema
 */
#ifndef TTN_CONFIG_IMPL_H
#define TTN_CONFIG_IMPL_H

#include "core/memory.h"
#include "train/config.h"

enum {
    TTN_CONFIG_BYTES = 1 << 20, /* of a file */
    TTN_CONFIG_DEPTH = 16,      /* of sections and lists in each other */
};

struct ttn_config_table {
    ttn_option *row; /* (n_row) a section's together */
    int n_row;
    const char **section; /* (n_section) without notes */
    int n_section;
    const ttn_config_module *module;
    int n_module;
    ttn_config_module *own_module; /* of ttn_config_table_of_titin; else NULL */
    ttn_arena *memory;
};

/* ---- sources and places ---- */

typedef struct {
    ttn_source_kind kind;
    int order;        /* of sources in the report */
    int group;        /* those that share one limit on problems: a file, all of the environment, … */
    const char *name; /* as in ttn_config_problem */
    const char *text; /* (n) whole, with a closing 0; NULL: there is none */
    size_t n;
    int has_lines;    /* a file or preset */
    int was_resolved; /* titin wrote it once, with every key in it; somebody may have edited it */
    int is_resolved;  /* and untouched since: comments say where values came from */
} ttn_config_source;

/* n bytes of a source; line from 1. */
typedef struct {
    const ttn_config_source *source;
    size_t at, n;
    int64_t line;
} ttn_config_place;

/* ---- the tree of a file ---- */

typedef enum { TTN_NODE_SCALAR, TTN_NODE_LIST, TTN_NODE_MAP } ttn_config_node_kind;

typedef struct ttn_config_node {
    ttn_config_node_kind kind;
    int is_plain;    /* a scalar without quotes */
    int is_void;     /* something was wrong with it and is reported: passed over */
    const char *key; /* in a map; with a closing 0 */
    ttn_config_place key_place;
    const char *text;                     /* of a scalar; with a closing 0 */
    int has_nul;                          /* and another 0 before it (an escape) */
    ttn_config_place place;               /* the value as it stands in the source */
    struct ttn_config_node *first, *next; /* of a list or map; in their order */
} ttn_config_node;

/* ---- a map from texts to numbers ---- */

typedef struct {
    const char *text; /* NULL: free */
    int64_t value;
} ttn_config_entry;

typedef struct {
    ttn_config_entry *entry; /* (room) room is a power of two, less than half of them in use */
    size_t n, room;
} ttn_config_map;

/* The value of text, after setting it to `value` where it is new; *is_new says so. text is borrowed by a map that takes it.
 * TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_config_map_add(ttn_config_map *m, const char *text, int64_t value, int64_t *ret,
                                           int *is_new, ttn_error *err);
void ttn_config_map_drop(ttn_config_map *m);

/* ---- the configuration ---- */

typedef struct {
    int order, group;
    size_t at;
    ttn_config_problem shown;
} ttn_config_found;

/* A list whose elements a source changes one by one: gathered here, and set when the source has been read. So that a file of
 * n elements costs n steps, and not n copies of the list. */
typedef struct {
    const ttn_config_source *source; /* NULL: nobody changes any */
    ttn_scalar *item;                /* (room) n of them in use */
    int n, room;
    int is_bad;             /* something is blamed: is not set */
    ttn_config_place place; /* of the last that was changed */
} ttn_config_elements;

struct ttn_config {
    const ttn_config_table *table;
    ttn_arena *memory;
    ttn_values *values;
    ttn_config_place *where;       /* (n_row) of the value; source NULL: a default */
    ttn_config_elements *elements; /* (n_row) */
    const char *preset;

    ttn_config_note *note; /* (n_note) */
    int n_note, room_note;
    ttn_config_map note_of;

    int n_source, n_group;   /* given out so far */
    ttn_config_found *found; /* (n_found) what is wrong */
    int n_found, room_found;
    int64_t n_more;
    ttn_config_problem *problem; /* (n_found) once it is sorted */
    char *report;
};

/* Out of memory, in words that fit everywhere here. Returns TTN_ENOMEM. */
ttn_status ttn_config_no_memory(ttn_error *err);

/* ---- config_problem.c ---- */

/* Note what is wrong at a place; `sentence` as in ttn_config_problem. A place whose source has no text, or with at beyond it,
 * is the source as a whole. TTN_OK, or TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_config_blame(ttn_config *c, ttn_config_place place, ttn_error *err, const char *format, ...)
    TTN_PRINTF(4, 5);

/* Are problems of this group still kept? Then it is worth looking for the nearest key. */
int ttn_config_is_kept(const ttn_config *c, const ttn_config_source *s);

/* Nobody has this key: blames, with where it lives or the nearest one. name: all of it, "train.lr". */
TTN_MUST_USE ttn_status ttn_config_blame_unknown(ttn_config *c, ttn_config_place place, const char *name,
                                                 ttn_error *err);

/* "; did you mean train.lr?" and the like, for a key that nobody has: to arena memory, NULL without. */
const char *ttn_config_hint(const ttn_config_table *t, ttn_arena *memory, const char *name);

/* Sorts, makes the report. Once, at the end. */
TTN_MUST_USE ttn_status ttn_config_make_report(ttn_config *c, ttn_error *err);

/* ---- config_source.c ---- */

/* A source of the configuration's, with a copy of the text (NULL: none) and of the name. */
TTN_MUST_USE ttn_status ttn_config_source_add(ttn_config *c, ttn_source_kind kind, int group, const char *name,
                                              const char *text, size_t n, ttn_config_source **ret, ttn_error *err);

/* The text of a file, as a source: what is wrong with it is blamed, and *ret is then NULL. TTN_EIO, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_config_file_open(ttn_config *c, const ttn_config_file *file, ttn_config_source **ret,
                                             ttn_error *err);

/* "@FILE" as a value (ttn_option.from_file): *ret, in arena memory, has the file's lines, blanks between them. TTN_EINVAL with
 * "FILE:LINE: why": it cannot be read, is too long, or has lines of several words or none; TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_config_words_of_file(ttn_config *c, const char *path, const char **ret, ttn_error *err);

/* ---- config_yaml.c ---- */

/* Is it text that YAML can hold (UTF-8, no control characters)? *ret 1, or 0 and something is blamed. */
TTN_MUST_USE ttn_status ttn_config_check_bytes(ttn_config *c, const ttn_config_source *s, size_t at, size_t n, int *ret,
                                               ttn_error *err);

/* What check_bytes would refuse becomes '?', byte by byte; line ends too: for names in one line. */
void ttn_config_make_plain(char *text);

/* The tree of n bytes of a source from `at` on: *ret NULL when it is empty, or when nothing could be read of it. What is
 * wrong is blamed; what could be read is there. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_config_parse(ttn_config *c, const ttn_config_source *s, size_t at, size_t n,
                                         ttn_config_node **ret, ttn_error *err);

/* ---- config_apply.c ---- */

/* The `preset: NAME` of a tree, when there is one that can be read; else NULL. */
const ttn_config_node *ttn_config_find_preset(const ttn_config_node *root);

/* Set what a file's tree says. root NULL: nothing. */
TTN_MUST_USE ttn_status ttn_config_apply_tree(ttn_config *c, const ttn_config_node *root, ttn_error *err);

/* Set one value by its dotted name: text is n bytes of the source from `at` on, name stands at name_at. */
TTN_MUST_USE ttn_status ttn_config_apply_text(ttn_config *c, const ttn_config_source *s, const char *name,
                                              ttn_config_place name_place, size_t at, ttn_error *err);

#endif
