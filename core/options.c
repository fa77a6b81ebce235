#include <stdio.h>
#include <string.h>
#include "core/options.h"

static const struct {
    const char *one, *many;
    int has_range;
} types[] = {
    [TTN_OPTION_BOOL] = {"yes or no", "yes or no", 0},
    [TTN_OPTION_INTEGER] = {"integer", "integers", 1},
    [TTN_OPTION_REAL] = {"number", "numbers", 1},
    [TTN_OPTION_TEXT] = {"text", "texts", 0},
    [TTN_OPTION_PATH] = {"path", "paths", 0},
    [TTN_OPTION_CHOICE] = {"choice", "choices", 0},
    [TTN_OPTION_SIZE] = {"size in bytes", "sizes in bytes", 1},
    [TTN_OPTION_DURATION] = {"duration", "durations", 1},
    [TTN_OPTION_PATTERN] = {"pattern", "patterns", 0},
};

enum { N_TYPE = sizeof types / sizeof *types };

static int is_type(ttn_option_type type)
{
    return (int)type >= 0 && (int)type < N_TYPE;
}

char *ttn_option_kind(const ttn_option *o, char *text)
{
    if (!is_type(o->type))
        snprintf(text, TTN_OPTION_KIND, "?");
    else if (o->is_list)
        snprintf(text, TTN_OPTION_KIND, "list of %s", types[o->type].many);
    else
        snprintf(text, TTN_OPTION_KIND, "%s", types[o->type].one);
    return text;
}

const ttn_option *ttn_option_find(const ttn_option *row, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(row[i].name, name) == 0) return &row[i];
    return NULL;
}

/* ---- a table is well-formed ---- */

static int is_key_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* A section, one dot, a key. */
static int is_key(const char *name)
{
    const char *dot = strchr(name, '.');
    if (!dot || dot == name || !dot[1]) return 0;
    for (const char *c = name; *c; c++)
        if (c != dot && !is_key_byte(*c)) return 0;
    return 1;
}

static int is_choice(const ttn_option *o, const char *text)
{
    for (const char *const *c = o->choices; *c; c++)
        if (strcmp(*c, text) == 0) return 1;
    return 0;
}

static ttn_status check_words(const ttn_option *o, ttn_error *err)
{
    if (!o->name || !is_key(o->name))
        return TTN_FAIL(err, TTN_EINVAL, "option '%s': a name is a section, a dot and a key, of a-z, 0-9 and '_'",
                        o->name ? o->name : "");
    if (!is_type(o->type)) return TTN_FAIL(err, TTN_EINVAL, "option %s: type number %d is none", o->name, (int)o->type);
    if (!o->help || !*o->help || o->help[strlen(o->help) - 1] == '.')
        return TTN_FAIL(err, TTN_EINVAL, "option %s: its help is one sentence without a dot at its end", o->name);
    if (!o->since || !*o->since) return TTN_FAIL(err, TTN_EINVAL, "option %s: no version says since when", o->name);
    return TTN_OK;
}

static ttn_status check_values(const ttn_option *o, ttn_error *err)
{
    int has_range = o->least != 0 || o->most != 0;
    if (has_range && !types[o->type].has_range)
        return TTN_FAIL(err, TTN_EINVAL, "option %s: a %s has no range", o->name, types[o->type].one);
    if (!(o->least <= o->most))
        return TTN_FAIL(err, TTN_EINVAL, "option %s: nothing lies between %g and %g", o->name, o->least, o->most);
    int wants_choices = o->type == TTN_OPTION_CHOICE;
    if (wants_choices != (o->choices != NULL) || (wants_choices && !o->choices[0]))
        return TTN_FAIL(err, TTN_EINVAL, "option %s: choices belong to a choice, and a choice has some", o->name);
    if (wants_choices && !o->is_list && o->fallback && !is_choice(o, o->fallback))
        return TTN_FAIL(err, TTN_EINVAL, "option %s: its default '%s' is not one of its choices", o->name, o->fallback);
    return TTN_OK;
}

ttn_status ttn_options_check(const ttn_option *row, int n, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = 0; i < n && status == TTN_OK; i++) {
        status = check_words(&row[i], err);
        if (status == TTN_OK) status = check_values(&row[i], err);
        if (status == TTN_OK && ttn_option_find(row, i, row[i].name))
            status = TTN_FAIL(err, TTN_EINVAL, "option %s: two rows have this name", row[i].name);
    }
    return status;
}
