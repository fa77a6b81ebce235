#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/number.h"
#include "core/options.h"
#include "core/text.h"

static const struct {
    const char *one, *many;
    const char *expected; /* in messages, before a range */
    int has_range;
} types[] = {
    [TTN_OPTION_BOOL] = {"yes or no", "yes or no", "yes or no", 0},
    [TTN_OPTION_INTEGER] = {"integer", "integers", "an integer", 1},
    [TTN_OPTION_REAL] = {"number", "numbers", "a number", 1},
    [TTN_OPTION_TEXT] = {"text", "texts", "a text", 0},
    [TTN_OPTION_PATH] = {"path", "paths", "a path", 0},
    [TTN_OPTION_CHOICE] = {"choice", "choices", "one of ", 0},
    [TTN_OPTION_SIZE] = {"size in bytes", "sizes in bytes", "a size in bytes (64k, 2GiB)", 1},
    [TTN_OPTION_DURATION] = {"duration", "durations", "a duration (90s, 1.5h)", 1},
    [TTN_OPTION_PATTERN] = {"pattern", "patterns", "a pattern (layer.*.attn.*)", 0},
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

/* What the row says of a name that is not there; NULL: nothing. */
static const char *instead_of(const ttn_option *o, const char *name)
{
    for (const ttn_option_absent *a = o->absent; a && a->name; a++)
        if (strcmp(a->name, name) == 0) return a->instead;
    return NULL;
}

const char *ttn_option_instead(const ttn_option *row, int n, const char *key)
{
    if (!strchr(key, '.')) return NULL; /* a value */
    const char *instead = NULL;
    for (int i = 0; i < n && !instead; i++)
        instead = instead_of(&row[i], key);
    return instead;
}

static int is_choice(const ttn_option *o, const char *text)
{
    for (const char *const *c = o->choices; *c; c++)
        if (strcmp(*c, text) == 0) return 1;
    return 0;
}

static int has_range(const ttn_option *o)
{
    return o->least != 0 || o->most != 0;
}

static ttn_number_unit unit_of(const ttn_option *o)
{
    if (o->type == TTN_OPTION_SIZE) return TTN_UNIT_BYTES;
    return o->type == TTN_OPTION_DURATION ? TTN_UNIT_SECONDS : TTN_UNIT_COUNT;
}

static int is_whole(const ttn_option *o)
{
    return o->type == TTN_OPTION_INTEGER || o->type == TTN_OPTION_SIZE;
}

/* ---- what is expected ---- */

static void append(char *text, const char *format, ...) TTN_PRINTF(2, 3);
static void append(char *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ttn_text_append(text, TTN_OPTION_EXPECTED, format, args);
    va_end(args);
}

/* A bound of the row, as a value of the row is written. */
static const char *bound(const ttn_option *o, double value, char *room)
{
    const double past = 9223372036854775808.0; /* 2^63 */
    if (is_whole(o) && fabs(value) < past) return ttn_number_integer_text((int64_t)value, unit_of(o), room);
    return ttn_number_real_text(value, o->type == TTN_OPTION_DURATION ? TTN_UNIT_SECONDS : TTN_UNIT_COUNT, room);
}

char *ttn_option_expected(const ttn_option *o, char *text)
{
    text[0] = 0;
    append(text, "%s", types[o->type].expected);
    if (o->type == TTN_OPTION_CHOICE)
        for (int i = 0; o->choices[i]; i++)
            append(text, "%s%s", i ? ", " : "", o->choices[i]);
    if (!has_range(o)) return text;
    char least[TTN_NUMBER_TEXT], most[TTN_NUMBER_TEXT];
    if (isfinite(o->least) && isfinite(o->most))
        append(text, " from %s to %s", bound(o, o->least, least), bound(o, o->most, most));
    else if (isfinite(o->least))
        append(text, " of at least %s", bound(o, o->least, least));
    else if (isfinite(o->most))
        append(text, " of at most %s", bound(o, o->most, most));
    return text;
}

/* ---- values ---- */

static ttn_status unexpected(const ttn_option *o, const char *text, ttn_error *err)
{
    char expected[TTN_OPTION_EXPECTED];
    return TTN_FAIL(err, TTN_EINVAL, "'%.200s' is not %s", text, ttn_option_expected(o, expected));
}

static int is_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    if (strlen(text) != n) return 0;
    int small = 1, capital = 1, first = 1; /* yes, YES, Yes */
    for (size_t i = 0; i < n; i++) {
        const char upper = (char)(word[i] - 'a' + 'A');
        small &= text[i] == word[i];
        capital &= text[i] == upper;
        first &= text[i] == (i ? word[i] : upper);
    }
    return small || capital || first;
}

static ttn_status read_bool(const ttn_option *o, const char *text, ttn_scalar *ret, ttn_error *err)
{
    static const char *const words[2][3] = {{"no", "off", "false"}, {"yes", "on", "true"}};
    for (int value = 0; value < 2; value++)
        for (int i = 0; i < 3; i++)
            if (is_word(text, words[value][i])) {
                ret->integer = value;
                return TTN_OK;
            }
    return unexpected(o, text, err);
}

static ttn_status check_range(const ttn_option *o, const char *text, double value, ttn_error *err)
{
    if (!has_range(o) || (value >= o->least && value <= o->most)) return TTN_OK;
    char expected[TTN_OPTION_EXPECTED];
    return TTN_FAIL(err, TTN_EINVAL, "'%s' is out of range: expected is %s", text, ttn_option_expected(o, expected));
}

/* Every '[' of a shell pattern is closed; else it matches nothing but itself, which nobody means. */
static int is_closed(const char *pattern)
{
    for (const char *c = pattern; *c; c++) {
        if (*c == '\\' && c[1]) {
            c++;
        } else if (*c == '[') {
            c++;
            if (*c == '!') c++;
            if (*c == ']') c++;
            c = strchr(c, ']');
            if (!c) return 0;
        }
    }
    return 1;
}

static ttn_status read_choice(const ttn_option *o, const char *text, ttn_error *err)
{
    const char *instead = instead_of(o, text);
    if (is_choice(o, text)) return TTN_OK;
    if (instead) return TTN_FAIL(err, TTN_EINVAL, "'%s' is not there yet: %s", text, instead);
    return unexpected(o, text, err);
}

static ttn_status read_text(const ttn_option *o, const char *text, ttn_scalar *ret, ttn_error *err)
{
    ret->text = text;
    if (o->type == TTN_OPTION_TEXT) return TTN_OK;
    if (o->type == TTN_OPTION_CHOICE) return read_choice(o, text, err);
    if (!*text && o->fallback && !*o->fallback && !o->is_list) return TTN_OK; /* as by default: none */
    if (!*text) return unexpected(o, text, err);
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            return TTN_FAIL(err, TTN_EINVAL, "'%.200s' is not %s: it has a control character", text,
                            types[o->type].expected);
    if (o->type == TTN_OPTION_PATTERN && !is_closed(text))
        return TTN_FAIL(err, TTN_EINVAL, "'%.200s' is not a pattern: its '[' is not closed", text);
    return TTN_OK;
}

ttn_status ttn_option_read(const ttn_option *o, const char *text, ttn_scalar *ret, ttn_error *err)
{
    if (o->type == TTN_OPTION_BOOL) return read_bool(o, text, ret, err);
    if (!types[o->type].has_range) return read_text(o, text, ret, err);
    ttn_status status = is_whole(o) ? ttn_number_integer(text, unit_of(o), &ret->integer, err)
                                    : ttn_number_real(text, unit_of(o), &ret->real, err);
    if (status != TTN_OK) return status;
    return check_range(o, text, is_whole(o) ? (double)ret->integer : ret->real, err);
}

const char *ttn_option_write(const ttn_option *o, ttn_scalar value, char *room)
{
    if (o->type == TTN_OPTION_BOOL) return value.integer ? "yes" : "no";
    if (!types[o->type].has_range) return value.text;
    return is_whole(o) ? ttn_number_integer_text(value.integer, unit_of(o), room)
                       : ttn_number_real_text(value.real, unit_of(o), room);
}

/* ---- the default of a list ---- */

const char *ttn_option_next(const char **rest, char *room, size_t n_room)
{
    static const char between[] = ", ";
    if (!*rest || !**rest) return NULL;
    const char *end = strstr(*rest, between);
    size_t n = end ? (size_t)(end - *rest) : strlen(*rest);
    if (n >= n_room) return NULL;
    memcpy(room, *rest, n);
    room[n] = 0;
    *rest = end ? end + sizeof between - 1 : NULL;
    return room;
}

/* ---- conditions ---- */

static int is_among(const char *list, const char *value)
{
    char element[TTN_OPTION_EXPECTED];
    if (!*list) return !*value;
    while (ttn_option_next(&list, element, sizeof element))
        if (strcmp(element, value) == 0) return 1;
    return 0;
}

int ttn_option_condition_holds(const ttn_option_condition *c, const char *const *value, int n)
{
    static const char *const nothing[] = {""};
    if (n == 0) return ttn_option_condition_holds(c, nothing, 1);
    for (int i = 0; i < n; i++)
        if (c->is ? is_among(c->is, value[i]) : !is_among(c->is_not, value[i])) return 1;
    return 0;
}

char *ttn_option_condition_text(const ttn_option_condition *c, char *text)
{
    const char *rest = c->is ? c->is : c->is_not;
    text[0] = 0;
    if (c->words) {
        append(text, "%s", c->words);
        return text;
    }
    append(text, "%s is%s", c->key, c->is ? "" : " not");
    if (!*rest) append(text, " empty");
    char element[TTN_OPTION_EXPECTED];
    const char *before = " ";
    while (ttn_option_next(&rest, element, sizeof element)) {
        append(text, "%s%s", before, element);
        before = rest && strchr(rest, ',') ? ", " : " or ";
    }
    return text;
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
    if (has_range(o) && !types[o->type].has_range)
        return TTN_FAIL(err, TTN_EINVAL, "option %s: a %s has no range", o->name, types[o->type].one);
    if (!(o->least <= o->most))
        return TTN_FAIL(err, TTN_EINVAL, "option %s: nothing lies between %g and %g", o->name, o->least, o->most);
    if (o->from_file && (o->type != TTN_OPTION_TEXT || o->is_list))
        return TTN_FAIL(err, TTN_EINVAL, "option %s: the lines of a file are one text", o->name);
    int wants_choices = o->type == TTN_OPTION_CHOICE;
    if (wants_choices != (o->choices != NULL) || (wants_choices && !o->choices[0]))
        return TTN_FAIL(err, TTN_EINVAL, "option %s: choices belong to a choice, and a choice has some", o->name);
    return TTN_OK;
}

/* What a row calls absent is neither one of its choices nor a key, and each has something to take instead. */
static ttn_status check_absent(const ttn_option *row, int n, const ttn_option *o, ttn_error *err)
{
    for (const ttn_option_absent *a = o->absent; a && a->name; a++) {
        const int is_value = !strchr(a->name, '.');
        if (is_value && o->type != TTN_OPTION_CHOICE)
            return TTN_FAIL(err, TTN_EINVAL, "option %s: '%s' cannot be missing: it is no choice", o->name, a->name);
        if (is_value ? is_choice(o, a->name) : ttn_option_find(row, n, a->name) != NULL)
            return TTN_FAIL(err, TTN_EINVAL, "option %s: '%s' is there", o->name, a->name);
        if (!a->instead || !*a->instead)
            return TTN_FAIL(err, TTN_EINVAL, "option %s: what to take instead of '%s' is not said", o->name, a->name);
    }
    return TTN_OK;
}

static ttn_status check_default(const ttn_option *o, ttn_error *err)
{
    if (!o->fallback) return TTN_OK;
    ttn_scalar value;
    ttn_error why = {0};
    if (!o->is_list) {
        if (ttn_option_read(o, o->fallback, &value, &why) == TTN_OK) return TTN_OK;
        return TTN_FAIL(err, TTN_EINVAL, "option %s: its default: %s", o->name, why.text);
    }
    char element[TTN_OPTION_EXPECTED];
    const char *rest = o->fallback;
    while (ttn_option_next(&rest, element, sizeof element))
        if (ttn_option_read(o, element, &value, &why) != TTN_OK)
            return TTN_FAIL(err, TTN_EINVAL, "option %s: its default: %s", o->name, why.text);
    if (rest && *rest) return TTN_FAIL(err, TTN_EINVAL, "option %s: an element of its default is too long", o->name);
    return TTN_OK;
}

ttn_status ttn_options_check(const ttn_option *row, int n, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = 0; i < n && status == TTN_OK; i++) {
        status = check_words(&row[i], err);
        if (status == TTN_OK) status = check_values(&row[i], err);
        if (status == TTN_OK) status = check_default(&row[i], err);
        if (status == TTN_OK) status = check_absent(row, n, &row[i], err);
        if (status == TTN_OK && ttn_option_find(row, i, row[i].name))
            status = TTN_FAIL(err, TTN_EINVAL, "option %s: two rows have this name", row[i].name);
    }
    return status;
}

/* Conditions name other rows, and values that these can have. */
static ttn_status check_when(const ttn_option *row, int n, const ttn_option *o, ttn_error *err)
{
    for (const ttn_option_condition *c = o->when; c && c->key; c++) {
        const ttn_option *other = ttn_option_find(row, n, c->key);
        if (!other || other == o)
            return TTN_FAIL(err, TTN_EINVAL, "option %s: it is read by the value of %s, which is no other row", o->name,
                            c->key);
        if (!c->is == !c->is_not)
            return TTN_FAIL(err, TTN_EINVAL, "option %s: a condition has one list of values of %s", o->name, c->key);
        const char *rest = c->is ? c->is : c->is_not;
        char element[TTN_OPTION_EXPECTED];
        while (other->type == TTN_OPTION_CHOICE && ttn_option_next(&rest, element, sizeof element))
            if (!is_choice(other, element))
                return TTN_FAIL(err, TTN_EINVAL, "option %s: '%s' is no choice of %s", o->name, element, c->key);
    }
    return TTN_OK;
}

ttn_status ttn_options_check_conditions(const ttn_option *row, int n, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = 0; i < n && status == TTN_OK; i++)
        status = check_when(row, n, &row[i], err);
    return status;
}
