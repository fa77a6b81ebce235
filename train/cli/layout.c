#include <stdint.h>
#include <string.h>
#include "core/text.h"
#include "train/cli/layout.h"

/* ---- columns ---- */

/* Ranges of Unicode 15 that are not one column wide, coarse: what stands in names, notes and messages. */
static const struct {
    uint32_t first, last;
    int columns;
} not_one[] = {
    {0x0300, 0x036F, 0},   {0x0483, 0x0489, 0},   {0x0591, 0x05BD, 0},   {0x0610, 0x061A, 0},   {0x064B, 0x065F, 0},
    {0x1100, 0x115F, 2},   {0x1AB0, 0x1AFF, 0},   {0x1DC0, 0x1DFF, 0},   {0x200B, 0x200F, 0},   {0x202A, 0x202E, 0},
    {0x2060, 0x2064, 0},   {0x20D0, 0x20FF, 0},   {0x2E80, 0x303E, 2},   {0x3041, 0xA4CF, 2},   {0xA960, 0xA97C, 2},
    {0xAC00, 0xD7A3, 2},   {0xF900, 0xFAFF, 2},   {0xFE00, 0xFE0F, 0},   {0xFE20, 0xFE2F, 0},   {0xFE30, 0xFE6F, 2},
    {0xFEFF, 0xFEFF, 0},   {0xFF00, 0xFF60, 2},   {0xFFE0, 0xFFE6, 2},   {0x1F300, 0x1F64F, 2}, {0x1F680, 0x1F6FF, 2},
    {0x1F900, 0x1FAFF, 2}, {0x20000, 0x3FFFD, 2}, {0xE0100, 0xE01EF, 0},
};

/* Columns of the character that n bytes begin with, and its length; a byte that begins none is one column, too. */
static int columns_at(const char *text, size_t n, size_t *ret_bytes)
{
    uint32_t c = 0;
    const int length = ttn_text_character(text, n, &c);
    *ret_bytes = length > 0 ? (size_t)length : 1;
    for (size_t i = 0; length > 0 && i < sizeof not_one / sizeof *not_one && c >= not_one[i].first; i++)
        if (c <= not_one[i].last) return not_one[i].columns;
    return 1;
}

size_t ttn_columns_fit(const char *text, int most, int *ret_columns)
{
    int columns = 0;
    const size_t n = strlen(text);
    size_t at = 0, bytes;
    while (at < n) {
        int more = columns_at(text + at, n - at, &bytes);
        if (columns + more > most) break;
        columns += more;
        at += bytes;
    }
    if (ret_columns) *ret_columns = columns;
    return at;
}

int ttn_columns(const char *text)
{
    int columns;
    ttn_columns_fit(text, INT32_MAX, &columns);
    return columns;
}

/* The same for the first n bytes. */
static int columns_of_word(const char *text, size_t n)
{
    int columns = 0;
    size_t bytes;
    for (size_t at = 0; at < n; at += bytes)
        columns += columns_at(text + at, n - at, &bytes);
    return columns;
}

/* ---- wrapping ---- */

static void indent_line(FILE *out, int n)
{
    fprintf(out, "%*s", n, "");
}

void ttn_wrap(FILE *out, int width, int at, int indent, const char *text)
{
    int column = at;
    int line_is_empty = 1; /* nothing of text stands on this line yet */
    while (*text) {
        if (*text == '\n') {
            putc('\n', out);
            text++;
            if (*text && *text != '\n') indent_line(out, indent);
            column = indent;
            line_is_empty = 1;
            continue;
        }
        size_t blanks = strspn(text, " ");
        size_t word = strcspn(text + blanks, " \n");
        int columns = columns_of_word(text + blanks, word);
        if (word > 0 && !line_is_empty && column + (int)blanks + columns > width) {
            putc('\n', out);
            indent_line(out, indent);
            column = indent;
        } else if (word > 0) {
            indent_line(out, (int)blanks);
            column += (int)blanks;
        }
        fwrite(text + blanks, 1, word, out);
        column += columns;
        line_is_empty = 0;
        text += blanks + word;
    }
    putc('\n', out);
}

/* ---- pairs ---- */

enum { GAP = 2 };

int ttn_pair_column(const ttn_pair_layout *l, const ttn_pair *pair, int n)
{
    int longest = 0;
    for (int i = 0; i < n; i++) {
        int columns = ttn_columns(pair[i].term);
        if (columns <= l->most && columns > longest) longest = columns;
    }
    return l->indent + longest + GAP;
}

void ttn_print_pairs(const ttn_pair_layout *l, const ttn_pair *pair, int n)
{
    int column = l->column > 0 ? l->column : ttn_pair_column(l, pair, n);
    for (int i = 0; i < n; i++) {
        int end = l->indent + ttn_columns(pair[i].term);
        fprintf(l->out, "%*s%s%s%s", l->indent, "", l->before, pair[i].term, l->after);
        if (!pair[i].meaning[0]) {
            putc('\n', l->out);
            continue;
        }
        if (end + GAP > column) {
            putc('\n', l->out);
            end = 0;
        }
        indent_line(l->out, column - end);
        ttn_wrap(l->out, l->width, column, column, pair[i].meaning);
    }
}
