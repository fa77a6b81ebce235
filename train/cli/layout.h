/* Text in columns: how wide it is, wrapped, and in pairs of a term and what it means. */
#ifndef TTN_LAYOUT_H
#define TTN_LAYOUT_H

#include <stddef.h>
#include <stdio.h>

/* Columns of a UTF-8 text on a terminal: 0 for combining marks, 2 for the wide characters of East Asia and most emoji,
 * 1 for others, and for each byte that is not UTF-8. Escape sequences are not known to it: styles go around a text, not
 * into it. */
int ttn_columns(const char *text);

/* How many bytes of text fit into `most` columns: whole characters. *ret_columns (may be NULL): the columns they take. */
size_t ttn_columns_fit(const char *text, int most, int *ret_columns);

/* Print text, broken at blanks so that no line is longer than `width` (a word that is longer stands alone), and end the
 * line. The cursor stands at column `at` (from 0); further lines are indented by `indent`. A '\n' in text begins a new
 * line, and blanks at the beginning of such a line are kept. */
void ttn_wrap(FILE *out, int width, int at, int indent, const char *text);

/* A term and what it means, one pair after the other: meanings begin in one column, two blanks after the longest term of
 * at most `most` columns; a longer term has a line for itself. `before` and `after` (styles, or "") go around terms. */
typedef struct {
    const char *term, *meaning;
} ttn_pair;

typedef struct {
    FILE *out;
    int width;  /* of lines */
    int indent; /* of terms */
    int most;   /* columns of a term */
    int column; /* where meanings begin; 0: as their terms ask for */
    const char *before, *after;
} ttn_pair_layout;

void ttn_print_pairs(const ttn_pair_layout *l, const ttn_pair *pair, int n);

/* The column in which meanings begin; for several lists that are to look like one. */
int ttn_pair_column(const ttn_pair_layout *l, const ttn_pair *pair, int n);

#endif
