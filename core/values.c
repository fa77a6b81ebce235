#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "core/values.h"

struct ttn_values {
    const ttn_option *row; /* (n) */
    int n;
    ttn_option_value *value; /* (n) */
    ttn_arena *memory;       /* of the values; what a later one replaces stays until the end */
    int *read;               /* (n), the auditor's; NULL: nobody counts */
};

static ttn_status no_memory(ttn_error *err)
{
    TTN_FAIL(err, TTN_ENOMEM, "out of memory for the values of a configuration");
    return TTN_ENOMEM;
}

/* ---- setting ---- */

static int holds_text(const ttn_option *o)
{
    return o->type == TTN_OPTION_TEXT || o->type == TTN_OPTION_PATH || o->type == TTN_OPTION_CHOICE ||
           o->type == TTN_OPTION_PATTERN;
}

ttn_status ttn_values_set(ttn_values *v, int i, const ttn_scalar *item, int n, ttn_origin origin, ttn_error *err)
{
    ttn_scalar *copy = ttn_arena_array(v->memory, n > 0 ? n : 1, sizeof *copy);
    if (!copy) return no_memory(err);
    for (int k = 0; k < n; k++) {
        copy[k] = item[k];
        if (!holds_text(&v->row[i])) continue;
        copy[k].text = ttn_arena_copy(v->memory, item[k].text, strlen(item[k].text) + 1);
        if (!copy[k].text) return no_memory(err);
    }
    origin.text = ttn_arena_copy(v->memory, origin.text, strlen(origin.text) + 1);
    if (!origin.text) return no_memory(err);
    v->value[i] = (ttn_option_value){.given = 1, .n = n, .item = copy, .origin = origin};
    return TTN_OK;
}

static const ttn_origin by_default = {TTN_FROM_DEFAULT, "default"};

static ttn_status set_default_list(ttn_values *v, int i, ttn_error *err)
{
    char element[TTN_OPTION_EXPECTED];
    int n = 0;
    for (const char *rest = v->row[i].fallback; ttn_option_next(&rest, element, sizeof element);)
        n++;
    ttn_scalar *item = ttn_arena_array(v->memory, n > 0 ? n : 1, sizeof *item);
    if (!item) return no_memory(err);
    const char *rest = v->row[i].fallback;
    for (int k = 0; k < n; k++) {
        const char *text = ttn_option_next(&rest, element, sizeof element);
        text = text ? ttn_arena_copy(v->memory, text, strlen(text) + 1) : NULL;
        if (!text) return no_memory(err);
        ttn_status status = ttn_option_read(&v->row[i], text, &item[k], err);
        if (status != TTN_OK) return status;
    }
    return ttn_values_set(v, i, item, n, by_default, err);
}

static ttn_status set_default(ttn_values *v, int i, ttn_error *err)
{
    if (!v->row[i].fallback) {
        v->value[i].origin = by_default;
        return TTN_OK;
    }
    if (v->row[i].is_list) return set_default_list(v, i, err);
    ttn_scalar value;
    ttn_status status = ttn_option_read(&v->row[i], v->row[i].fallback, &value, err);
    return status == TTN_OK ? ttn_values_set(v, i, &value, 1, by_default, err) : status;
}

ttn_status ttn_values_create(const ttn_option *row, int n_row, ttn_values **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_values *v = calloc(1, sizeof *v);
    if (!v) return no_memory(err);
    v->row = row;
    v->n = n_row;
    v->value = calloc((size_t)n_row + 1, sizeof *v->value);
    ttn_status status = v->value ? ttn_arena_create(0, &v->memory, err) : no_memory(err);
    for (int i = 0; i < n_row && status == TTN_OK; i++)
        status = set_default(v, i, err);
    if (status == TTN_OK)
        *ret = v;
    else
        ttn_values_destroy(v);
    return status;
}

void ttn_values_destroy(ttn_values *v)
{
    if (!v) return;
    ttn_arena_destroy(v->memory);
    free(v->value);
    free(v);
}

int ttn_values_count(const ttn_values *v)
{
    return v->n;
}

const ttn_option *ttn_values_row(const ttn_values *v, int i)
{
    return &v->row[i];
}

const ttn_option_value *ttn_values_at(const ttn_values *v, int i)
{
    return &v->value[i];
}

/* ---- reading ---- */

typedef enum { WANTS_BOOL, WANTS_INTEGER, WANTS_REAL, WANTS_TEXT } wanted;

static wanted kind_of(const ttn_option *o)
{
    if (holds_text(o)) return WANTS_TEXT;
    if (o->type == TTN_OPTION_BOOL) return WANTS_BOOL;
    return o->type == TTN_OPTION_REAL || o->type == TTN_OPTION_DURATION ? WANTS_REAL : WANTS_INTEGER;
}

/* The row of that name, and that it has a value. */
static ttn_status find(const ttn_values *v, const char *name, int *ret, ttn_error *err)
{
    const ttn_option *row = ttn_option_find(v->row, v->n, name);
    if (!row) return TTN_FAIL(err, TTN_EINTERNAL, "option %s: somebody reads it, and no row has this name", name);
    *ret = (int)(row - v->row);
    if (v->read) v->read[*ret]++;
    if (v->value[*ret].given) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "%s has no value, and there is no default: give it one (%s)", name, row->help);
}

static ttn_status get(const ttn_values *v, const char *name, int layer, wanted type, ttn_scalar *ret, ttn_error *err)
{
    int i = 0;
    ttn_status status = find(v, name, &i, err);
    if (status != TTN_OK) return status;
    if (kind_of(&v->row[i]) != type) {
        char kind[TTN_OPTION_KIND];
        return TTN_FAIL(err, TTN_EINTERNAL, "option %s: it is read as something else than its row says, %s", name,
                        ttn_option_kind(&v->row[i], kind));
    }
    const ttn_option_value *value = &v->value[i];
    const int at = v->row[i].is_list && value->n != 1 ? layer : 0;
    if (at < 0 || at >= value->n)
        return TTN_FAIL(err, TTN_EINVAL,
                        "%s has %d values, and layer %d (from 0) asks for one of its own: give one for every "
                        "layer, or one for all",
                        name, value->n, layer);
    *ret = value->item[at];
    return TTN_OK;
}

static ttn_status get_bool(const void *self, const char *name, int layer, int *ret, ttn_error *err)
{
    ttn_scalar value = {0};
    ttn_status status = get(self, name, layer, WANTS_BOOL, &value, err);
    if (status == TTN_OK) *ret = (int)value.integer;
    return status;
}

static ttn_status get_integer(const void *self, const char *name, int layer, int64_t *ret, ttn_error *err)
{
    ttn_scalar value = {0};
    ttn_status status = get(self, name, layer, WANTS_INTEGER, &value, err);
    if (status == TTN_OK) *ret = value.integer;
    return status;
}

static ttn_status get_real(const void *self, const char *name, int layer, double *ret, ttn_error *err)
{
    ttn_scalar value = {0};
    ttn_status status = get(self, name, layer, WANTS_REAL, &value, err);
    if (status == TTN_OK) *ret = value.real;
    return status;
}

static ttn_status get_text(const void *self, const char *name, int layer, const char **ret, ttn_error *err)
{
    ttn_scalar value = {0};
    ttn_status status = get(self, name, layer, WANTS_TEXT, &value, err);
    if (status == TTN_OK) *ret = value.text;
    return status;
}

ttn_option_reader ttn_values_reader(const ttn_values *v)
{
    return (ttn_option_reader){
        .self = v,
        .get_bool = get_bool,
        .get_integer = get_integer,
        .get_real = get_real,
        .get_text = get_text,
    };
}

static ttn_status fill_list(const ttn_values *v, const ttn_option_field *field, ttn_list *ret, ttn_error *err)
{
    int i = 0;
    ttn_status status = find(v, field->name, &i, err);
    if (status != TTN_OK) return status;
    *ret = (ttn_list){.n = v->value[i].n, .item = v->value[i].item};
    return TTN_OK;
}

ttn_status ttn_values_fill(const ttn_values *v, const ttn_option_field *field, int n, void *into, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = 0; i < n && status == TTN_OK; i++) {
        const ttn_option_field *f = &field[i];
        const ttn_option *row = ttn_option_find(v->row, v->n, f->name);
        if (row && row->is_list != (f->type == TTN_FIELD_LIST))
            return TTN_FAIL(err, TTN_EINTERNAL, "option %s: a list and a field for a list belong together", f->name);
        void *at = (char *)into + f->at;
        switch (f->type) {
        case TTN_FIELD_INT:
            status = get_bool(v, f->name, 0, at, err);
            break;
        case TTN_FIELD_INTEGER:
            status = get_integer(v, f->name, 0, at, err);
            break;
        case TTN_FIELD_REAL:
            status = get_real(v, f->name, 0, at, err);
            break;
        case TTN_FIELD_TEXT:
            status = get_text(v, f->name, 0, at, err);
            break;
        case TTN_FIELD_LIST:
            status = fill_list(v, f, at, err);
            break;
        }
    }
    return status;
}

/* ---- audit ---- */

/* Some value that the row lets pass. */
static ttn_scalar any_value(const ttn_option *o)
{
    const double number = isfinite(o->least) ? o->least : isfinite(o->most) ? o->most : 0;
    switch (kind_of(o)) {
    case WANTS_TEXT:
        return (ttn_scalar){.text = o->type == TTN_OPTION_CHOICE ? o->choices[0] : "x"};
    case WANTS_REAL:
        return (ttn_scalar){.real = number};
    case WANTS_INTEGER:
        return (ttn_scalar){.integer = (int64_t)number};
    case WANTS_BOOL:
        break;
    }
    return (ttn_scalar){.integer = 0};
}

ttn_status ttn_values_audit(ttn_values *v, int *read, ttn_error *err)
{
    v->read = read;
    for (int i = 0; i < v->n; i++) {
        if (v->value[i].given) continue;
        const ttn_scalar value = any_value(&v->row[i]);
        ttn_status status = ttn_values_set(v, i, &value, 1, by_default, err);
        if (status != TTN_OK) return status;
    }
    return TTN_OK;
}
