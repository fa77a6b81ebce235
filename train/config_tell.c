/* What is known of keys, for people and for editors: explain, diff, schema. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/builder.h"
#include "train/config_impl.h"
#include "train/config_text.h"

/* ---- explain ---- */

static int is_below(const char *row, const char *section)
{
    const size_t n = strlen(section);
    return strncmp(row, section, n) == 0 && row[n] == '.';
}

static void build_default(ttn_builder *b, const ttn_option *o)
{
    if (!o->fallback)
        ttn_build(b, "none: a value must be given");
    else if (o->is_list)
        ttn_build(b, "[%s]", o->fallback);
    else
        ttn_build(b, "%s", *o->fallback ? o->fallback : "(empty)");
}

static void explain_row(ttn_builder *b, const ttn_option *o, const ttn_option_value *v)
{
    char kind[TTN_OPTION_KIND], expected[TTN_OPTION_EXPECTED];
    ttn_build(b, "%s: %s%s%s%s\n", o->name, ttn_option_kind(o, kind), o->unit ? " (" : "", o->unit ? o->unit : "",
              o->unit ? ")" : "");
    ttn_build(b, "  %s\n", o->help);
    ttn_build(b, "  expected: %s%s\n", o->is_list ? "a list, each element " : "", ttn_option_expected(o, expected));
    ttn_build(b, "  default:  ");
    build_default(b, o);
    for (const ttn_option_condition *c = o->when; c && c->key; c++)
        ttn_build(b, "%s%s", c == o->when ? "\n  used if:  " : ", and ", ttn_option_condition_text(c, expected));
    ttn_build(b, "\n  since:    %s\n", o->since);
    if (!v) return;
    ttn_build(b, "  value:    ");
    if (v->given) {
        ttn_config_build_value(b, o, v, o->is_list);
        ttn_build(b, "  (%s)\n", v->origin.text);
    } else {
        ttn_build(b, "none yet\n");
    }
}

static void explain_section(ttn_builder *b, const ttn_config_table *t, const char *section)
{
    size_t widest = 0;
    for (int i = 0; i < t->n_row; i++)
        if (is_below(t->row[i].name, section) && strlen(t->row[i].name) > widest) widest = strlen(t->row[i].name);
    for (int i = 0; i < t->n_row; i++) {
        if (!is_below(t->row[i].name, section)) continue;
        ttn_build(b, "%s", t->row[i].name);
        ttn_build_pad(b, widest + 2);
        ttn_build(b, "%s\n", t->row[i].help);
    }
}

ttn_status ttn_config_explain(const ttn_config_table *t, const ttn_config *c, const char *key, char **ret,
                              ttn_error *err)
{
    ttn_builder b = {0};
    const ttn_option *o = ttn_option_find(t->row, t->n_row, key);
    if (o) {
        explain_row(&b, o, c ? ttn_values_at(c->values, (int)(o - t->row)) : NULL);
        return ttn_builder_finish(&b, "what a key means", ret, err);
    }
    for (int i = 0; i < t->n_section; i++) {
        if (strcmp(t->section[i], key) != 0) continue;
        explain_section(&b, t, key);
        return ttn_builder_finish(&b, "what a key means", ret, err);
    }
    if (strcmp(key, "notes") == 0 || is_below(key, "notes")) {
        ttn_build(&b,
                  "notes: your own keys, each a text or a list of texts\n  kept with the run, and read by nobody\n");
        return ttn_builder_finish(&b, "what a key means", ret, err);
    }
    if (strcmp(key, "preset") == 0) {
        ttn_build(&b, "preset: the name of a preset to start from, at the top of a file\n"
                      "  weaker than everything else that is given\n");
        return ttn_builder_finish(&b, "what a key means", ret, err);
    }
    ttn_arena *memory = NULL;
    ttn_status status = ttn_arena_create(0, &memory, err);
    if (status != TTN_OK) return status;
    const char *hint = ttn_config_hint(t, memory, key);
    status =
        hint ? TTN_FAIL(err, TTN_EINVAL, "there is no %s '%.100s'%s", strchr(key, '.') ? "key" : "section", key, hint)
             : ttn_config_no_memory(err);
    ttn_arena_destroy(memory);
    return status;
}

/* ---- diff ---- */

static int is_same_scalar(const ttn_option *o, ttn_scalar a, ttn_scalar b)
{
    char room_a[TTN_OPTION_VALUE], room_b[TTN_OPTION_VALUE];
    if (!o) return strcmp(a.text, b.text) == 0;
    return strcmp(ttn_option_write(o, a, room_a), ttn_option_write(o, b, room_b)) == 0;
}

/* NULL: nobody has given one. */
static int is_same(const ttn_option *o, const ttn_option_value *a, const ttn_option_value *b)
{
    if (!a || !b || !a->given || !b->given) return (a && a->given) == (b && b->given);
    if (a->n != b->n) return 0;
    for (int i = 0; i < a->n; i++)
        if (!is_same_scalar(o, a->item[i], b->item[i])) return 0;
    return 1;
}

static void build_side(ttn_builder *b, const ttn_option *o, const ttn_option_value *v, int is_list)
{
    if (!v || !v->given) {
        ttn_build(b, "none");
        return;
    }
    ttn_config_build_value(b, o, v, is_list);
    ttn_build(b, " (%s)", v->origin.text);
}

static void build_difference(ttn_builder *b, const char *name, const ttn_option *o, const ttn_option_value *x,
                             int x_is_list, const ttn_option_value *y, int y_is_list)
{
    if (is_same(o, x, y) && x_is_list == y_is_list) return;
    ttn_build(b, "%s: ", name);
    build_side(b, o, x, x_is_list);
    ttn_build(b, " -> ");
    build_side(b, o, y, y_is_list);
    ttn_build(b, "\n");
}

static const ttn_config_note *find_note(const ttn_config *c, const char *name)
{
    for (int i = 0; i < c->n_note; i++)
        if (strcmp(c->note[i].name, name) == 0) return &c->note[i];
    return NULL;
}

ttn_status ttn_config_diff(const ttn_config *a, const ttn_config *b, char **ret, ttn_error *err)
{
    ttn_builder text = {0};
    for (int i = 0; i < a->table->n_row; i++) {
        const ttn_option *o = &a->table->row[i];
        build_difference(&text, o->name, o, ttn_values_at(a->values, i), o->is_list, ttn_values_at(b->values, i),
                         o->is_list);
    }
    for (int i = 0; i < a->n_note; i++) {
        const ttn_config_note *x = &a->note[i], *y = find_note(b, x->name);
        build_difference(&text, x->name, NULL, &x->value, x->is_list, y ? &y->value : NULL,
                         y ? y->is_list : x->is_list);
    }
    for (int i = 0; i < b->n_note; i++) {
        const ttn_config_note *y = &b->note[i];
        if (!find_note(a, y->name)) build_difference(&text, y->name, NULL, NULL, y->is_list, &y->value, y->is_list);
    }
    return ttn_builder_finish(&text, "the difference of two configurations", ret, err);
}

/* ---- schema ---- */

/* jansson gives NULL when there is no memory, takes NULL for a value as a failure, and keeps none of what it was given. */
static json_t *texts(const char *const *text)
{
    json_t *list = json_array();
    for (; *text; text++)
        if (json_array_append_new(list, json_string(*text)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* Bounds that a whole number or a real can have. */
static int set_range(json_t *schema, const ttn_option *o)
{
    if (o->least == 0 && o->most == 0) return 0;
    int failed = 0;
    const int is_whole = o->type == TTN_OPTION_INTEGER || o->type == TTN_OPTION_SIZE;
    const double past = 9223372036854775808.0; /* 2^63 */
    const struct {
        const char *name;
        double value;
    } bound[] = {{"minimum", o->least}, {"maximum", o->most}};
    for (int i = 0; i < 2; i++)
        if (isfinite(bound[i].value) && fabs(bound[i].value) < past)
            failed |= json_object_set_new(
                schema, bound[i].name, is_whole ? json_integer((json_int_t)bound[i].value) : json_real(bound[i].value));
    return failed;
}

/* {"anyOf": [{"type": number, …}, {"type": "string", "pattern": with a unit}]} */
static json_t *number_schema(const ttn_option *o)
{
    static const char *const patterns[] = {
        [TTN_OPTION_INTEGER] = "^[+-]?[0-9_.]+([eE][+-]?[0-9]+)? *[kMGT]?$",
        [TTN_OPTION_REAL] = "^[+-]?[0-9_.]+([eE][+-]?[0-9]+)? *[kMGT]?$",
        [TTN_OPTION_SIZE] = "^[+]?[0-9_.]+([eE][+-]?[0-9]+)? *([kMGT]?B?|[KMGT]iB?)$",
        [TTN_OPTION_DURATION] = "^([+]?[0-9_.]+([eE][+-]?[0-9]+)? *(ms|s|m|min|h|d)? *)+$",
    };
    const int is_whole = o->type == TTN_OPTION_INTEGER || o->type == TTN_OPTION_SIZE;
    json_t *number = json_pack("{s:s}", "type", is_whole ? "integer" : "number");
    if (number && set_range(number, o) != 0) {
        json_decref(number);
        return NULL;
    }
    return json_pack("{s:[o, {s:s, s:s}]}", "anyOf", number, "type", "string", "pattern", patterns[o->type]);
}

static json_t *value_schema(const ttn_option *o)
{
    switch (o->type) {
    case TTN_OPTION_BOOL:
        return json_pack("{s:[{s:s}, {s:s, s:s}]}", "anyOf", "type", "boolean", "type", "string", "pattern",
                         "^([Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF|[Tt]rue|TRUE|[Ff]alse|FALSE)$");
    case TTN_OPTION_CHOICE:
        return json_pack("{s:o}", "enum", texts(o->choices));
    case TTN_OPTION_INTEGER:
    case TTN_OPTION_REAL:
    case TTN_OPTION_SIZE:
    case TTN_OPTION_DURATION:
        return number_schema(o);
    case TTN_OPTION_TEXT:
    case TTN_OPTION_PATH:
    case TTN_OPTION_PATTERN:
        break;
    }
    return json_pack("{s:[s, s, s]}", "type", "string", "number", "boolean"); /* words of an editor; a text to us */
}

/* Several, one alone, or some by number. */
static json_t *list_schema(json_t *item)
{
    return json_pack("{s:[{s:s, s:O}, O, {s:s, s:{s:o}, s:b}]}", "anyOf", "type", "array", "items", item, item, "type",
                     "object", "patternProperties", "^(0|[1-9][0-9]*)$", item, "additionalProperties", 0);
}

static json_t *row_schema(const ttn_option *o)
{
    json_t *schema = value_schema(o);
    if (o->is_list) schema = list_schema(schema);
    int failed = !schema || json_object_set_new(schema, "description", json_string(o->help)) != 0;
    if (!failed && o->fallback) {
        ttn_builder b = {0};
        build_default(&b, o);
        failed = b.failed || json_object_set_new(schema, "$comment", json_sprintf("default: %s", b.text)) != 0;
        ttn_builder_drop(&b);
    }
    if (!failed) return schema;
    json_decref(schema);
    return NULL;
}

static json_t *section_schema(const ttn_config_table *t, const char *section)
{
    json_t *keys = json_object();
    for (int i = 0; i < t->n_row; i++) {
        if (!is_below(t->row[i].name, section)) continue;
        if (json_object_set_new(keys, t->row[i].name + strlen(section) + 1, row_schema(&t->row[i])) != 0) {
            json_decref(keys);
            return NULL;
        }
    }
    return json_pack("{s:[s, s], s:o, s:b}", "type", "object", "null", "properties", keys, "additionalProperties", 0);
}

/* "train.lr: 3e-4" and "data.train.0: a.fa" at the top, which editors let pass and do not offer. */
static json_t *dotted_schema(const ttn_config_table *t)
{
    json_t *dotted = json_object();
    int failed = !dotted || json_object_set_new(dotted, "^notes[.]", json_object()) != 0;
    for (int i = 0; i < t->n_row && !failed; i++) {
        const char *name = t->row[i].name, *dot = strchr(name, '.');
        json_t *pattern = json_sprintf("^%.*s[.]%s%s$", (int)(dot - name), name, dot + 1,
                                       t->row[i].is_list ? "([.](0|[1-9][0-9]*))?" : "");
        json_t *key = json_sprintf("#/properties/%.*s/properties/%s", (int)(dot - name), name, dot + 1);
        if (!pattern) json_decref(key); /* else json_pack takes it */
        failed = !pattern || json_object_set_new(dotted, json_string_value(pattern), json_pack("{s:o}", "$ref", key));
        json_decref(pattern);
    }
    if (!failed) return dotted;
    json_decref(dotted);
    return NULL;
}

static json_t *file_schema(const ttn_config_table *t)
{
    json_t *sections = json_pack("{s:{s:s, s:s}}", "preset", "type", "string", "description", "a preset to start from");
    int failed = !sections;
    for (int i = 0; i < t->n_section && !failed; i++)
        failed = json_object_set_new(sections, t->section[i], section_schema(t, t->section[i])) != 0;
    if (!failed)
        failed = json_object_set_new(sections, "notes",
                                     json_pack("{s:[s, s], s:s}", "type", "object", "null", "description",
                                               "your own keys, kept with the run and read by nobody")) != 0;
    if (failed) {
        json_decref(sections);
        return NULL;
    }
    json_t *dotted = dotted_schema(t);
    return json_pack("{s:s, s:s, s:[s, s], s:o, s:o, s:b}", "$schema", "https://json-schema.org/draft/2020-12/schema",
                     "title", "titin configuration", "type", "object", "null", "properties", sections,
                     "patternProperties", dotted, "additionalProperties", 0);
}

static int append(const char *text, size_t n, void *builder)
{
    ttn_build_bytes(builder, text, n);
    return 0;
}

ttn_status ttn_config_schema(const ttn_config_table *t, char **ret, ttn_error *err)
{
    static const char what[] = "the schema of the configuration";
    json_t *schema = file_schema(t);
    if (!schema) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for %s", what);
    /* Not json_dumps: when it cannot grow its text while it writes a key (jansson 2.14), it goes on without that key. A
     * builder does not forget that something is missing. */
    ttn_builder b = {0};
    const int failed = json_dump_callback(schema, append, &b, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(schema);
    ttn_build(&b, "\n");
    if (failed) b.failed = 1;
    return ttn_builder_finish(&b, what, ret, err);
}
