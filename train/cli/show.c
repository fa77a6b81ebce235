#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "train/cli/layout.h"
#include "train/cli/show.h"
#include "train/files/json.h"

/* ---- numbers ---- */

char *ttn_show_bytes(int64_t bytes, char *text)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int u = 0;
    while (value >= 1023.95 && u < 6) { /* what would be printed as 1024.0 */
        value /= 1024;
        u++;
    }
    snprintf(text, TTN_SHOW_NUMBER, u == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value, units[u]);
    if (bytes == 1) snprintf(text, TTN_SHOW_NUMBER, "1 byte");
    return text;
}

char *ttn_show_count(int64_t n, char *text)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, n);
    char *to = text;
    const char *from = digits;
    if (*from == '-') *to++ = *from++;
    for (size_t left = strlen(from); left > 0; left--) {
        *to++ = *from++;
        if (left > 1 && left % 3 == 1) *to++ = ',';
    }
    *to = 0;
    return text;
}

char *ttn_show_seconds(double seconds, char *text)
{
    if (seconds < 1e-3)
        snprintf(text, TTN_SHOW_NUMBER, "%.0f us", seconds * 1e6);
    else if (seconds < 1)
        snprintf(text, TTN_SHOW_NUMBER, seconds < 0.01 ? "%.1f ms" : "%.0f ms", seconds * 1e3);
    else if (seconds < 120)
        snprintf(text, TTN_SHOW_NUMBER, "%.1f s", seconds);
    else if (seconds < 48 * 3600)
        snprintf(text, TTN_SHOW_NUMBER, "%d h %02d min", (int)(seconds / 3600), (int)(seconds / 60) % 60);
    else
        snprintf(text, TTN_SHOW_NUMBER, "%.1f days", seconds / 86400);
    return text;
}

/* ---- text ---- */

static const char *value_text(const ttn_fact *f, char *room)
{
    switch (f->kind) {
    case TTN_FACT_TEXT:
        return f->text;
    case TTN_FACT_INTEGER:
        return ttn_show_count(f->integer, room);
    case TTN_FACT_REAL:
        snprintf(room, TTN_SHOW_NUMBER, "%.6g", f->real);
        return room;
    case TTN_FACT_BYTES:
        return ttn_show_bytes(f->integer, room);
    case TTN_FACT_SECONDS:
        return ttn_show_seconds(f->real, room);
    case TTN_FACT_FLAG:
        return f->integer ? "yes" : "no";
    case TTN_FACT_NONE:
        return "none";
    case TTN_FACT_OPEN:
    case TTN_FACT_OPEN_LIST:
    case TTN_FACT_CLOSE:
        break;
    }
    return "";
}

static int opens(const ttn_fact *f)
{
    return f->kind == TTN_FACT_OPEN || f->kind == TTN_FACT_OPEN_LIST;
}

/* The fact behind the one at `at`, which may be an object or a list. */
static int64_t skip(const ttn_fact *f, int64_t at)
{
    int depth = 0;
    do {
        depth += opens(&f[at]) - (f[at].kind == TTN_FACT_CLOSE);
        at++;
    } while (depth > 0);
    return at;
}

enum { INDENT = 2, MAX_KEY = 24, MAX_COLUMNS = 16 };

/* "looks_like" as "looks like"; room has MAX_KEY * 4 bytes. */
static const char *key_text(const char *key, char *room)
{
    snprintf(room, (size_t)MAX_KEY * 4, "%s", key ? key : "-");
    for (char *c = room; *c; c++)
        if (*c == '_') *c = ' ';
    return room;
}

/* The column where values of the facts [at, end) of one object begin. */
static int value_column(const ttn_fact *f, int64_t at, int64_t end, int indent)
{
    char room[MAX_KEY * 4];
    int longest = 0;
    for (; at < end; at = skip(f, at)) {
        int columns = opens(&f[at]) ? 0 : ttn_columns(key_text(f[at].key, room));
        if (columns > longest) longest = columns;
    }
    return indent + longest + 2;
}

/* A list all of whose entries are objects of plain values with the same keys: how many columns; 0: it is no table. */
static int table_columns(const ttn_fact *f, int64_t at)
{
    const int64_t first = at + 1;
    int n = 0;
    if (f[at].kind != TTN_FACT_OPEN_LIST || f[first].kind != TTN_FACT_OPEN) return 0;
    for (int64_t i = first + 1; f[i].kind != TTN_FACT_CLOSE; i++)
        n += opens(&f[i]) ? MAX_COLUMNS + 1 : 1;
    if (n == 0 || n > MAX_COLUMNS) return 0;
    for (int64_t entry = first; f[entry].kind == TTN_FACT_OPEN; entry += n + 2)
        for (int c = 0; c < n; c++) {
            const ttn_fact *now = &f[entry + 1 + c], *model = &f[first + 1 + c];
            if (now->kind == TTN_FACT_CLOSE || opens(now) || !now->key || strcmp(now->key, model->key) != 0) return 0;
            if (c == n - 1 && f[entry + n + 1].kind != TTN_FACT_CLOSE) return 0;
        }
    return n;
}

static int is_number(const ttn_fact *f)
{
    return f->kind == TTN_FACT_INTEGER || f->kind == TTN_FACT_REAL || f->kind == TTN_FACT_BYTES ||
           f->kind == TTN_FACT_SECONDS;
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
    int width[MAX_COLUMNS], is_right[MAX_COLUMNS];
    char room[TTN_SHOW_NUMBER + MAX_KEY * 4];
    for (int c = 0; c < n; c++) {
        width[c] = ttn_columns(key_text(f[first + 1 + c].key, room));
        is_right[c] = is_number(&f[first + 1 + c]);
    }
    for (int64_t entry = first; f[entry].kind == TTN_FACT_OPEN; entry += n + 2)
        for (int c = 0; c < n; c++) {
            int columns = ttn_columns(value_text(&f[entry + 1 + c], room));
            if (columns > width[c]) width[c] = columns;
        }
    fprintf(t->out, "%*s%s", indent, "", ttn_terminal_style(t, TTN_STYLE_DIM));
    for (int c = 0; c < n; c++) {
        if (c > 0) fputs("  ", t->out);
        put_cell(t->out, key_text(f[first + 1 + c].key, room), width[c], is_right[c], c == n - 1);
    }
    fprintf(t->out, "%s\n", ttn_terminal_plain(t));
    for (int64_t entry = first; f[entry].kind == TTN_FACT_OPEN; entry += n + 2) {
        fprintf(t->out, "%*s", indent, "");
        for (int c = 0; c < n; c++) {
            if (c > 0) fputs("  ", t->out);
            put_cell(t->out, value_text(&f[entry + 1 + c], room), width[c], is_right[c], c == n - 1);
        }
        putc('\n', t->out);
    }
}

/* A list of plain values is one line: "1, 2, 3". */
static int is_plain_list(const ttn_fact *f, int64_t at)
{
    if (f[at].kind != TTN_FACT_OPEN_LIST) return 0;
    for (at++; f[at].kind != TTN_FACT_CLOSE; at++)
        if (opens(&f[at])) return 0;
    return 1;
}

static void show_plain_list(const ttn_terminal *t, const ttn_fact *f, int64_t at, int column)
{
    char room[TTN_SHOW_NUMBER];
    size_t size = 0;
    char *text = NULL;
    FILE *gathered = open_memstream(&text, &size);
    if (!gathered) return;
    for (int64_t i = at + 1; f[i].kind != TTN_FACT_CLOSE; i++)
        fprintf(gathered, "%s%s", i > at + 1 ? ", " : "", value_text(&f[i], room));
    fclose(gathered);
    ttn_wrap(t->out, ttn_terminal_width(t), column, column, size > 0 ? text : "none");
    free(text);
}

static void put_key(const ttn_terminal *t, const char *key, int indent, int column)
{
    char room[MAX_KEY * 4];
    key_text(key, room);
    fprintf(t->out, "%*s%s%s%s", indent, "", ttn_terminal_style(t, TTN_STYLE_BOLD), room, ttn_terminal_plain(t));
    int end = indent + ttn_columns(room);
    fprintf(t->out, "%*s", column > end ? column - end : 1, "");
}

static void show_members(const ttn_terminal *t, const ttn_fact *f, int64_t at, int64_t end, int indent)
{
    char room[TTN_SHOW_NUMBER], key[MAX_KEY * 4];
    int column = value_column(f, at, end, indent);
    for (; at < end; at = skip(f, at)) {
        int n = table_columns(f, at);
        if (is_plain_list(f, at)) {
            put_key(t, f[at].key, indent, column);
            show_plain_list(t, f, at, column);
        } else if (opens(&f[at])) {
            fprintf(t->out, "%*s%s%s%s\n", indent, "", ttn_terminal_style(t, TTN_STYLE_BOLD), key_text(f[at].key, key),
                    ttn_terminal_plain(t));
            if (n > 0)
                show_table(t, f, at, n, indent + INDENT);
            else
                show_members(t, f, at + 1, skip(f, at) - 1, indent + INDENT);
        } else {
            put_key(t, f[at].key, indent, column);
            ttn_wrap(t->out, ttn_terminal_width(t), column, column, value_text(&f[at], room));
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

static json_t *value_json(const ttn_fact *f)
{
    switch (f->kind) {
    case TTN_FACT_TEXT:
        return json_string(f->text);
    case TTN_FACT_INTEGER:
    case TTN_FACT_BYTES:
        return json_integer(f->integer);
    case TTN_FACT_REAL:
    case TTN_FACT_SECONDS:
        return json_real(f->real);
    case TTN_FACT_FLAG:
        return json_boolean(f->integer);
    case TTN_FACT_NONE:
        return json_null();
    case TTN_FACT_OPEN:
        return json_object();
    case TTN_FACT_OPEN_LIST:
        return json_array();
    case TTN_FACT_CLOSE:
        break;
    }
    return NULL;
}

/* Hangs value, which may be NULL, into a container; then it is the container's. 0: no memory. */
static int hang(json_t *in, const char *key, json_t *value)
{
    return (json_is_array(in) ? json_array_append_new(in, value) : json_object_set_new(in, key ? key : "", value)) == 0;
}

/* The facts [at, end) into a container. */
static int hang_all(json_t *in, const ttn_fact *f, int64_t at, int64_t end)
{
    for (; at < end; at = skip(f, at)) {
        json_t *value = value_json(&f[at]);
        if (!hang(in, f[at].key, value)) return 0;
        if (opens(&f[at]) && !hang_all(value, f, at + 1, skip(f, at) - 1)) return 0;
    }
    return 1;
}

static int hang_warnings(json_t *root, const ttn_facts *f)
{
    if (json_object_get(root, "warnings")) return 1;
    json_t *warnings = json_array();
    if (!hang(root, "warnings", warnings)) return 0;
    for (int64_t i = 0; i < ttn_facts_warning_count(f); i++)
        if (!hang(warnings, NULL, json_string(ttn_facts_warning(f, i)))) return 0;
    return 1;
}

static json_t *tree(const ttn_facts *f)
{
    json_t *root = json_object();
    if (root && hang_all(root, ttn_facts_at(f), 0, ttn_facts_count(f)) && hang_warnings(root, f)) return root;
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
