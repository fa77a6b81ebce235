#include <stdlib.h>
#include <string.h>
#include "train/cli/layout.h"
#include "train/cli/show.h"
#include "train/facts_json.h"
#include "train/files/json.h"

/* ---- text ---- */

enum { INDENT = 2 };

/* The column where values of the facts [at, end) of one object begin. */
static int value_column(const ttn_fact *f, int64_t at, int64_t end, int indent)
{
    char room[TTN_SHOW_KEY];
    int longest = 0;
    for (; at < end; at = ttn_show_skip(f, at)) {
        int columns = ttn_show_opens(&f[at]) ? 0 : ttn_columns(ttn_show_key(f[at].key, room));
        if (columns > longest) longest = columns;
    }
    return indent + longest + 2;
}

static void put_cell(FILE *out, const char *text, int width, int is_right, int is_last)
{
    int blanks = width - ttn_columns(text);
    if (blanks < 0) blanks = 0;
    if (is_right) fprintf(out, "%*s", blanks, "");
    fputs(text, out);
    if (!is_right && !is_last) fprintf(out, "%*s", blanks, "");
}

static void show_table(const ttn_terminal *t, const ttn_fact *f, int64_t at, int n, int indent)
{
    const int64_t first = at + 1;
    int width[TTN_SHOW_COLUMNS], is_right[TTN_SHOW_COLUMNS];
    char room[TTN_SHOW_NUMBER + TTN_SHOW_KEY];
    for (int c = 0; c < n; c++) {
        width[c] = ttn_columns(ttn_show_key(f[first + 1 + c].key, room));
        is_right[c] = ttn_show_is_number(&f[first + 1 + c]);
    }
    for (int64_t entry = first; f[entry].kind == TTN_FACT_OPEN; entry += n + 2)
        for (int c = 0; c < n; c++) {
            int columns = ttn_columns(ttn_show_value(&f[entry + 1 + c], room));
            if (columns > width[c]) width[c] = columns;
        }
    fprintf(t->out, "%*s%s", indent, "", ttn_terminal_style(t, TTN_STYLE_DIM));
    for (int c = 0; c < n; c++) {
        if (c > 0) fputs("  ", t->out);
        put_cell(t->out, ttn_show_key(f[first + 1 + c].key, room), width[c], is_right[c], c == n - 1);
    }
    fprintf(t->out, "%s\n", ttn_terminal_plain(t));
    for (int64_t entry = first; f[entry].kind == TTN_FACT_OPEN; entry += n + 2) {
        fprintf(t->out, "%*s", indent, "");
        for (int c = 0; c < n; c++) {
            if (c > 0) fputs("  ", t->out);
            put_cell(t->out, ttn_show_value(&f[entry + 1 + c], room), width[c], is_right[c], c == n - 1);
        }
        putc('\n', t->out);
    }
}

static void show_plain_list(const ttn_terminal *t, const ttn_fact *f, int64_t at, int column)
{
    char room[TTN_SHOW_NUMBER];
    size_t size = 0;
    char *text = NULL;
    FILE *gathered = open_memstream(&text, &size);
    if (!gathered) return;
    for (int64_t i = at + 1; f[i].kind != TTN_FACT_CLOSE; i++)
        fprintf(gathered, "%s%s", i > at + 1 ? ", " : "", ttn_show_value(&f[i], room));
    fclose(gathered);
    ttn_wrap(t->out, ttn_terminal_width(t), column, column, size > 0 ? text : "none");
    free(text);
}

static void put_key(const ttn_terminal *t, const char *key, int indent, int column)
{
    char room[TTN_SHOW_KEY];
    ttn_show_key(key, room);
    fprintf(t->out, "%*s%s%s%s", indent, "", ttn_terminal_style(t, TTN_STYLE_BOLD), room, ttn_terminal_plain(t));
    int end = indent + ttn_columns(room);
    fprintf(t->out, "%*s", column > end ? column - end : 1, "");
}

static void show_members(const ttn_terminal *t, const ttn_fact *f, int64_t at, int64_t end, int indent)
{
    char room[TTN_SHOW_NUMBER], key[TTN_SHOW_KEY];
    int column = value_column(f, at, end, indent);
    for (; at < end; at = ttn_show_skip(f, at)) {
        int n = ttn_show_table_columns(f, at);
        if (ttn_show_is_plain_list(f, at)) {
            put_key(t, f[at].key, indent, column);
            show_plain_list(t, f, at, column);
        } else if (ttn_show_opens(&f[at])) {
            fprintf(t->out, "%*s%s%s%s\n", indent, "", ttn_terminal_style(t, TTN_STYLE_BOLD),
                    ttn_show_key(f[at].key, key), ttn_terminal_plain(t));
            if (n > 0)
                show_table(t, f, at, n, indent + INDENT);
            else
                show_members(t, f, at + 1, ttn_show_skip(f, at) - 1, indent + INDENT);
        } else {
            put_key(t, f[at].key, indent, column);
            ttn_wrap(t->out, ttn_terminal_width(t), column, column, ttn_show_value(&f[at], room));
        }
    }
}

void ttn_show_text(const ttn_terminal *t, const ttn_facts *f)
{
    show_members(t, ttn_facts_at(f), 0, ttn_facts_count(f), 0);
    for (int64_t i = 0; i < ttn_facts_warning_count(f); i++) {
        static const char word[] = "warning: ";
        fprintf(t->out, "%s%s%s", ttn_terminal_style(t, TTN_STYLE_YELLOW), word, ttn_terminal_plain(t));
        ttn_wrap(t->out, ttn_terminal_prose_width(t), sizeof word - 1, INDENT, ttn_facts_warning(f, i));
    }
}

/* ---- JSON ---- */

static json_t *tree(const ttn_facts *f)
{
    json_t *root = ttn_facts_json(f);
    if (!root || json_object_get(root, "warnings")) return root;
    if (json_object_set_new(root, "warnings", ttn_facts_json_warnings(f)) == 0) return root;
    json_decref(root);
    return NULL;
}

static ttn_status take(void *ctx, const char *bytes, size_t n, ttn_error *err)
{
    (void)err;
    fwrite(bytes, 1, n, ctx); /* whether it arrives is asked once, at the end of the program */
    return TTN_OK;
}

ttn_status ttn_show_json(FILE *out, const ttn_facts *f, ttn_error *err)
{
    json_t *root = tree(f);
    if (!root) return TTN_FAIL(err, TTN_ENOMEM, "no memory for the JSON of what is to be said");
    ttn_status status = ttn_json_dump(root, take, out, err);
    json_decref(root);
    return status;
}
