/* Tables as text: cells of a row, row after row, to a file that appears whole or not at all.
 *
 * CSV: RFC 4180. Cells that hold a comma, a quote or a line end stand in quotes, quotes in them doubled; rows end in CR LF.
 * TSV: tabs between cells, LF behind rows. A tab, LF, CR or backslash in a cell is written \t, \n, \r, \\ (as in the
 * IANA type's practice and PostgreSQL's COPY), so that a row is a line and awk -F'\t' counts right.
 *
 * In both a text that begins with = + - @, a tab or a CR, which spreadsheets would compute, gets a ' before it.
 *
 * Both are UTF-8 without a byte order mark. The first row is usually the names of the columns; all rows have as many
 * cells. Real numbers have the fewest digits that read back to the bit and a point whatever the locale; those that are
 * not finite are nan, inf and -inf.
 */
#ifndef TTN_TABLE_H
#define TTN_TABLE_H

#include <stdint.h>
#include "core/status.h"

typedef enum { TTN_TABLE_TSV, TTN_TABLE_CSV } ttn_table_kind;

typedef struct ttn_table ttn_table;

/* *ret is the caller's. Failures of core/atomic.h. */
TTN_MUST_USE ttn_status ttn_table_create(const char *path, ttn_table_kind kind, ttn_table **ret, ttn_error *err);

/* The next cell of the row. What fails here is told when the row ends. */
void ttn_table_text(ttn_table *t, const char *text);
void ttn_table_integer(ttn_table *t, int64_t value);
void ttn_table_real(ttn_table *t, double value);
void ttn_table_single(ttn_table *t, float value); /* fewest digits for a float: 0.1, not 0.10000000149011612 */

TTN_MUST_USE ttn_status ttn_table_end_row(ttn_table *t, ttn_error *err);

TTN_MUST_USE ttn_status ttn_table_commit(ttn_table *t, ttn_error *err);
void ttn_table_destroy(ttn_table *t); /* NULL is fine; without a commit nothing appears */

#endif
