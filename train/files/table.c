#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/atomic.h"
#include "core/bits.h"
#include "core/memory.h"
#include "core/text.h"
#include "train/files/table.h"

struct ttn_table {
    ttn_atomic *file;
    ttn_table_kind kind;
    int n_cell;   /* of this row so far */
    int n_column; /* of the first row; 0: it has not ended */
    int is_blank; /* this row is nothing so far, though it has a cell */
    ttn_status status;
    ttn_error err; /* of the first failure */
};

ttn_status ttn_table_create(const char *path, ttn_table_kind kind, ttn_table **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_table *t = ttn_alloc_or_say(1, sizeof *t, "a table to be written", err);
    if (!t) return TTN_ENOMEM;
    t->kind = kind;
    ttn_status status = ttn_atomic_file_create(path, &t->file, err);
    if (status == TTN_OK)
        *ret = t;
    else
        ttn_table_destroy(t);
    return status;
}

static void put(ttn_table *t, const char *bytes, size_t n)
{
    if (t->status == TTN_OK) t->status = ttn_atomic_write(t->file, bytes, n, &t->err);
}

static void begin_cell(ttn_table *t)
{
    if (t->n_cell > 0) put(t, t->kind == TTN_TABLE_CSV ? "," : "\t", 1);
    t->n_cell++;
}

/* text, each of the special characters replaced by two. */
static void put_escaped(ttn_table *t, const char *text, const char *special, const char *const *pairs)
{
    while (*text) {
        size_t n = strcspn(text, special);
        put(t, text, n);
        text += n;
        if (*text == 0) return;
        put(t, pairs[strchr(special, *text) - special], 2);
        text++;
    }
}

void ttn_table_text(ttn_table *t, const char *text)
{
    static const char *const tsv_pairs[] = {"\\t", "\\n", "\\r", "\\\\"}, *const csv_pairs[] = {"\"\""};
    begin_cell(t);
    t->is_blank = t->n_cell == 1 && *text == 0;
    const int is_formula = ttn_text_is_formula(text);
    if (t->kind == TTN_TABLE_TSV) {
        if (is_formula) put(t, "'", 1);
        put_escaped(t, text, "\t\n\r\\", tsv_pairs);
        return;
    }
    int is_quoted = text[strcspn(text, ",\"\r\n")] != 0;
    if (is_quoted) put(t, "\"", 1);
    if (is_formula) put(t, "'", 1);
    put_escaped(t, text, "\"", csv_pairs);
    if (is_quoted) put(t, "\"", 1);
}

void ttn_table_integer(ttn_table *t, int64_t value)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRId64, value);
    begin_cell(t);
    put(t, digits, (size_t)n);
}

/* The locale's point, one byte or more, becomes a point. */
static size_t mend_point(char *digits, size_t n)
{
    static const char plain[] = "0123456789+-e.";
    size_t first = strspn(digits, plain);
    if (first == n) return n;
    size_t end = first;
    while (end < n && !strchr(plain, digits[end]))
        end++;
    digits[first] = '.';
    memmove(digits + first + 1, digits + end, n - end + 1);
    return n - (end - first) + 1;
}

static int is_finite(double x)
{
    return (ttn_f64_bits(x) & 0x7ff0000000000000) != 0x7ff0000000000000;
}

/* As few digits as read back, from least to most; strtod and snprintf agree about the point. */
static void put_real(ttn_table *t, double value, int least, int most, int is_single)
{
    char digits[64];
    int n = 0;
    begin_cell(t);
    if (!is_finite(value)) {
        const char *word = value != value ? "nan" : value > 0 ? "inf" : "-inf";
        put(t, word, strlen(word));
        return;
    }
    for (int precision = least; precision <= most; precision++) {
        n = snprintf(digits, sizeof digits, "%.*g", precision, value);
        int same = is_single ? ttn_f32_bits(strtof(digits, NULL)) == ttn_f32_bits((float)value)
                             : ttn_f64_bits(strtod(digits, NULL)) == ttn_f64_bits(value);
        if (same) break;
    }
    put(t, digits, mend_point(digits, (size_t)n));
}

void ttn_table_real(ttn_table *t, double value)
{
    put_real(t, value, 15, 17, 0); /* 15 always suffice to read a decimal number back, 17 a double */
}

void ttn_table_single(ttn_table *t, float value)
{
    put_real(t, (double)value, 6, 9, 1);
}

ttn_status ttn_table_end_row(ttn_table *t, ttn_error *err)
{
    assert(t->n_cell > 0 && (t->n_column == 0 || t->n_cell == t->n_column));
    /* A blank line is no row to readers of CSV (RFC 4180 leaves it open): one empty cell is two quotes. */
    if (t->kind == TTN_TABLE_CSV && t->n_cell == 1 && t->is_blank) put(t, "\"\"", 2);
    t->n_column = t->n_cell;
    t->n_cell = 0;
    t->is_blank = 0;
    if (t->kind == TTN_TABLE_CSV)
        put(t, "\r\n", 2);
    else
        put(t, "\n", 1);
    if (t->status != TTN_OK && err && err->status == TTN_OK) *err = t->err;
    return t->status;
}

ttn_status ttn_table_commit(ttn_table *t, ttn_error *err)
{
    assert(t->n_cell == 0);
    if (t->status == TTN_OK) return ttn_atomic_commit(t->file, err);
    if (err && err->status == TTN_OK) *err = t->err;
    return t->status;
}

void ttn_table_destroy(ttn_table *t)
{
    if (!t) return;
    ttn_atomic_destroy(t->file);
    ttn_free(t);
}
