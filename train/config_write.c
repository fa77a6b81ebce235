/* config.resolved.yaml */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/atomic.h"
#include "core/builder.h"
#include "core/hash.h"
#include "train/config_impl.h"
#include "train/config_resolved.h"
#include "train/config_text.h"

/* ---- the seal ---- */

static const char title[] = "# titin configuration: every value, and where it came from\n";
static const char before_hash[] = "# origins hold while the rest has the hash ";

int ttn_config_was_resolved(const char *text, size_t n)
{
    return n >= sizeof title - 1 && memcmp(text, title, sizeof title - 1) == 0;
}

int ttn_config_is_resolved(const char *text, size_t n)
{
    const size_t at = sizeof title - 1 + sizeof before_hash - 1;
    const size_t body = at + TTN_HASH_TEXT; /* the digits, and a line end where the text has its 0 */
    if (n < body || !ttn_config_was_resolved(text, n)) return 0;
    if (memcmp(text + sizeof title - 1, before_hash, sizeof before_hash - 1) != 0 || text[body - 1] != '\n') return 0;
    char digits[TTN_HASH_TEXT];
    memcpy(digits, text + at, TTN_HASH_TEXT - 1);
    digits[TTN_HASH_TEXT - 1] = 0;
    ttn_hash128 hash;
    return ttn_hash_parse(digits, &hash) && ttn_hash_same(hash, ttn_hash128_of(text + body, n - body));
}

void ttn_config_seal(ttn_builder *b, const char *body, size_t n)
{
    char digits[TTN_HASH_TEXT];
    ttn_build(b, "%s%s%s\n", title, before_hash, ttn_hash_print(ttn_hash128_of(body, n), digits));
    ttn_build_bytes(b, body, n);
}

ttn_source_kind ttn_config_origin_kind(const char *text)
{
    static const struct {
        const char *begin;
        int is_all;
        ttn_source_kind kind;
    } kinds[] = {
        {"default", 1, TTN_FROM_DEFAULT},
        {"preset ", 0, TTN_FROM_PRESET},
        {"environment ", 0, TTN_FROM_ENVIRONMENT},
        {"command line", 1, TTN_FROM_COMMAND_LINE},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const int same = kinds[i].is_all ? strcmp(text, kinds[i].begin) == 0
                                         : strncmp(text, kinds[i].begin, strlen(kinds[i].begin)) == 0;
        if (same) return kinds[i].kind;
    }
    return TTN_FROM_FILE;
}

/* ---- values as YAML ---- */

/* A word that no YAML reader takes for anything but text, in a list or not. */
static int is_word(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
    static const char *const reserved[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
    const int is_letter = (text[0] | 0x20) >= 'a' && (text[0] | 0x20) <= 'z';
    if (!is_letter && !(text[0] == '/' && text[1])) return 0;
    if (strspn(text, allowed) != strlen(text)) return 0;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        size_t n = 0;
        while (reserved[i][n] && (text[n] | 0x20) == reserved[i][n])
            n++;
        if (!reserved[i][n] && !text[n]) return 0;
    }
    return 1;
}

/* Two bytes of UTF-8 that a reader refuses as they stand: U+0080 to U+009F. */
static int is_c1(const unsigned char *c)
{
    return c[0] == 0xC2 && c[1] >= 0x80 && c[1] <= 0x9F;
}

/* Three bytes: U+2028, U+2029, U+FEFF, U+FFFE, U+FFFF. */
static unsigned refused_of_three(const unsigned char *c)
{
    if (c[0] == 0xE2 && c[1] == 0x80 && (c[2] == 0xA8 || c[2] == 0xA9)) return 0x2000u + 0x28u + (c[2] == 0xA9);
    if (c[0] == 0xEF && c[1] == 0xBB && c[2] == 0xBF) return 0xFEFF;
    if (c[0] == 0xEF && c[1] == 0xBF && (c[2] == 0xBE || c[2] == 0xBF)) return 0xFFC0u + (c[2] & 0x3Fu);
    return 0;
}

static void build_quoted(ttn_builder *b, const char *text)
{
    ttn_build(b, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        const unsigned three = c[1] ? refused_of_three(c) : 0;
        if (*c == '"' || *c == '\\') {
            ttn_build(b, "\\%c", *c);
        } else if (*c == '\n') {
            ttn_build(b, "\\n");
        } else if (*c < ' ' || *c == 0x7F) {
            ttn_build(b, "\\x%02X", *c);
        } else if (is_c1(c)) {
            ttn_build(b, "\\x%02X", c[1]);
            c++;
        } else if (three) {
            ttn_build(b, "\\u%04X", three);
            c += 2;
        } else {
            ttn_build_bytes(b, c, 1);
        }
    }
    ttn_build(b, "\"");
}

static int is_text(const ttn_option *o)
{
    return !o || o->type == TTN_OPTION_TEXT || o->type == TTN_OPTION_PATH || o->type == TTN_OPTION_PATTERN ||
           o->type == TTN_OPTION_CHOICE;
}

static void build_scalar(ttn_builder *b, const ttn_option *o, ttn_scalar value)
{
    char room[TTN_OPTION_VALUE];
    const char *text = o ? ttn_option_write(o, value, room) : value.text;
    if (is_text(o) && !is_word(text))
        build_quoted(b, text);
    else
        ttn_build(b, "%s", text);
}

void ttn_config_build_value(ttn_builder *b, const ttn_option *o, const ttn_option_value *v, int is_list)
{
    if (is_list) ttn_build(b, "[");
    for (int i = 0; i < v->n; i++) {
        if (i > 0) ttn_build(b, ", ");
        build_scalar(b, o, v->item[i]);
    }
    if (is_list) ttn_build(b, "]");
}

/* ---- the file ---- */

enum { COMMENT_COLUMN = 40 };

static void build_origin(ttn_builder *b, const char *origin)
{
    ttn_build(b, "  ");
    ttn_build_pad(b, COMMENT_COLUMN);
    ttn_build(b, "# %s\n", origin);
}

static void build_row(ttn_builder *b, const ttn_option *o, const ttn_option_value *v)
{
    const char *key = strchr(o->name, '.') + 1;
    if (!v->given) {
        ttn_build(b, "  # %s:", key);
        build_origin(b, "no value, and no default");
        return;
    }
    ttn_build(b, "  %s: ", key);
    ttn_config_build_value(b, o, v, o->is_list);
    build_origin(b, v->origin.text);
}

static void build_body(ttn_builder *b, const ttn_config *c)
{
    const char *section = "";
    for (int i = 0; i < c->table->n_row; i++) {
        const ttn_option *o = &c->table->row[i];
        const size_t n = (size_t)(strchr(o->name, '.') - o->name);
        if (strlen(section) < n || memcmp(section, o->name, n + 1) != 0) ttn_build(b, "\n%.*s:\n", (int)n, o->name);
        section = o->name;
        build_row(b, o, ttn_values_at(c->values, i));
    }
    if (c->n_note > 0) ttn_build(b, "\nnotes:\n");
    for (int i = 0; i < c->n_note; i++) {
        ttn_build(b, "  ");
        const char *key = strchr(c->note[i].name, '.') + 1;
        if (is_word(key))
            ttn_build(b, "%s", key);
        else
            build_quoted(b, key);
        ttn_build(b, ": ");
        ttn_config_build_value(b, NULL, &c->note[i].value, c->note[i].is_list);
        build_origin(b, c->note[i].value.origin.text);
    }
}

ttn_status ttn_config_resolved(const ttn_config *c, char **ret, ttn_error *err)
{
    static const char what[] = "config.resolved.yaml";
    ttn_builder body = {0}, b = {0};
    char *text = NULL;
    build_body(&body, c);
    const size_t n = body.n;
    ttn_status status = ttn_builder_finish(&body, what, &text, err);
    if (status != TTN_OK) return status;
    ttn_config_seal(&b, text, n);
    free(text);
    return ttn_builder_finish(&b, what, ret, err);
}

ttn_status ttn_config_save(const ttn_config *c, const char *path, ttn_error *err)
{
    char *text = NULL;
    ttn_status status = ttn_config_resolved(c, &text, err);
    if (status != TTN_OK) return status;
    status = ttn_atomic_save(path, text, strlen(text), err);
    free(text);
    return status;
}
