/* A tree, or one assignment, to values: keys are looked up, values are read as their rows say. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/builder.h"
#include "core/hash.h"
#include "core/path.h"
#include "core/text.h"
#include "train/config_impl.h"
#include "train/config_resolved.h"

static const char notes[] = "notes";
static const char preset[] = "preset";

/* ---- a map from texts to numbers ---- */

static ttn_config_entry *slot_of(const ttn_config_map *m, const char *text)
{
    assert(m->entry); /* add has made room */
    size_t i = (size_t)ttn_hash_text(text) & (m->room - 1);
    while (m->entry[i].text && strcmp(m->entry[i].text, text) != 0)
        i = (i + 1) & (m->room - 1);
    return &m->entry[i];
}

static ttn_status grow(ttn_config_map *m, ttn_error *err)
{
    enum { FIRST_ROOM = 64 };
    ttn_config_map larger = {.n = m->n, .room = m->room ? 2 * m->room : FIRST_ROOM};
    larger.entry = calloc(larger.room, sizeof *larger.entry);
    if (!larger.entry) return ttn_config_no_memory(err);
    for (size_t i = 0; i < m->room; i++)
        if (m->entry[i].text) *slot_of(&larger, m->entry[i].text) = m->entry[i];
    free(m->entry);
    *m = larger;
    return TTN_OK;
}

ttn_status ttn_config_map_add(ttn_config_map *m, const char *text, int64_t value, int64_t *ret, int *is_new,
                              ttn_error *err)
{
    if (2 * (m->n + 1) > m->room) {
        ttn_status status = grow(m, err);
        if (status != TTN_OK) return status;
    }
    ttn_config_entry *e = slot_of(m, text);
    *is_new = !e->text;
    if (*is_new) {
        *e = (ttn_config_entry){text, value};
        m->n++;
    }
    *ret = e->value;
    return TTN_OK;
}

void ttn_config_map_drop(ttn_config_map *m)
{
    free(m->entry);
    *m = (ttn_config_map){0};
}

/* ---- origins ---- */

/* What the comment behind a value in config.resolved.yaml says, or NULL. */
static ttn_status comment_behind(ttn_config *c, ttn_config_place place, const char **ret, ttn_error *err)
{
    const ttn_config_source *s = place.source;
    *ret = NULL;
    size_t at = place.at + place.n;
    while (at < s->n && s->text[at] == ' ')
        at++;
    if (at + 2 >= s->n || s->text[at] != '#' || s->text[at + 1] != ' ') return TTN_OK;
    at += 2;
    const char *end = memchr(s->text + at, '\n', s->n - at);
    const int length = (int)((end ? end : s->text + s->n) - (s->text + at));
    *ret = ttn_arena_text(c->memory, "%.*s", length, s->text + at);
    return *ret ? TTN_OK : ttn_config_no_memory(err);
}

static ttn_status origin_of(ttn_config *c, ttn_config_place place, ttn_origin *ret, ttn_error *err)
{
    const ttn_config_source *s = place.source;
    *ret = (ttn_origin){.kind = s->kind};
    if (s->is_resolved) {
        ttn_status status = comment_behind(c, place, &ret->text, err);
        if (status != TTN_OK) return status;
        if (ret->text) {
            ret->kind = ttn_config_origin_kind(ret->text);
            return TTN_OK;
        }
    }
    if (s->has_lines)
        ret->text = ttn_arena_text(c->memory, "%s:%" PRId64, s->name, place.line);
    else
        ret->text = s->kind == TTN_FROM_COMMAND_LINE ? "command line" : s->name;
    return ret->text ? TTN_OK : ttn_config_no_memory(err);
}

/* ---- one value ---- */

static int is_null(const ttn_config_node *n)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (n->kind != TTN_NODE_SCALAR || !n->is_plain) return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(n->text, words[i]) == 0) return 1;
    return 0;
}

static ttn_status blame_null(ttn_config *c, const ttn_config_node *n, const char *name, const ttn_option *o,
                             ttn_error *err)
{
    if (*n->text)
        return ttn_config_blame(c, n->place, err,
                                "%s: %s is no value: leave the line out, or quote it if the word is meant", name,
                                n->text);
    const char *or_else = o->fallback && *o->fallback ? o->fallback : NULL;
    return ttn_config_blame(c, n->place, err, "%s: no value: give one%s%s", name,
                            or_else ? ", or leave the line out for the default, " : " or leave the line out",
                            or_else ? or_else : "");
}

/* No shell has read a path of a file or behind a '='. What titin wrote was expanded then. */
static ttn_status expand_path(ttn_config *c, ttn_scalar *path, ttn_error *why)
{
    char expanded[PATH_MAX];
    ttn_status status = ttn_path_expand(path->text, expanded, why);
    if (status != TTN_OK || strcmp(expanded, path->text) == 0) return status;
    path->text = ttn_arena_text(c->memory, "%s", expanded);
    return path->text ? TTN_OK : TTN_ENOMEM;
}

/* *ret is set and *ok is 1, or something is blamed. */
static ttn_status read_scalar(ttn_config *c, const ttn_config_node *n, const char *name, const ttn_option *o,
                              ttn_scalar *ret, int *ok, ttn_error *err)
{
    *ok = 0;
    if (n->is_void) return TTN_OK;
    if (n->kind != TTN_NODE_SCALAR)
        return ttn_config_blame(c, n->place, err, "%s: one value is expected, and here stands %s", name,
                                n->kind == TTN_NODE_LIST ? "a list" : "a section");
    if (is_null(n)) return blame_null(c, n, name, o, err);
    if (n->has_nul) return ttn_config_blame(c, n->place, err, "%s: the text has a NUL byte", name);
    ttn_error why = {0};
    const char *text = n->text;
    ttn_status status = TTN_OK;
    if (o->from_file && text[0] == '@') {
        ttn_scalar path = {.text = text + 1};
        status = expand_path(c, &path, &why);
        if (status == TTN_OK) status = ttn_config_words_of_file(c, path.text, &text, &why);
    }
    if (status == TTN_OK) status = ttn_option_read(o, text, ret, &why);
    if (status == TTN_OK && o->type == TTN_OPTION_PATH && !n->place.source->is_resolved)
        status = expand_path(c, ret, &why);
    if (status == TTN_ENOMEM) return ttn_config_no_memory(err);
    *ok = status == TTN_OK;
    return *ok ? TTN_OK : ttn_config_blame(c, n->place, err, "%s: %s", name, why.text);
}

static ttn_status set_row(ttn_config *c, int row, const ttn_scalar *item, int n, ttn_config_place place, ttn_error *err)
{
    ttn_origin origin;
    ttn_status status = origin_of(c, place, &origin, err);
    if (status == TTN_OK) status = ttn_values_set(c->values, row, item, n, origin, err);
    if (status == TTN_OK) c->where[row] = place;
    return status;
}

static ttn_status set_list(ttn_config *c, int row, const ttn_config_node *list, ttn_error *err)
{
    const ttn_option *o = &c->table->row[row];
    int n = 0;
    for (const ttn_config_node *e = list->first; e; e = e->next)
        n++;
    ttn_scalar *item = ttn_arena_array(c->memory, n > 0 ? n : 1, sizeof *item);
    if (!item) return ttn_config_no_memory(err);
    int good = 0, i = 0;
    for (const ttn_config_node *e = list->first; e; e = e->next) {
        char name[TTN_ERROR_TEXT];
        snprintf(name, sizeof name, "%s.%d", o->name, i);
        int ok = 0;
        ttn_status status = read_scalar(c, e, name, o, &item[i], &ok, err);
        if (status != TTN_OK) return status;
        good += ok;
        i++;
    }
    return good == n ? set_row(c, row, item, n, list->place, err) : TTN_OK;
}

static ttn_status set_value(ttn_config *c, int row, const ttn_config_node *n, ttn_error *err)
{
    const ttn_option *o = &c->table->row[row];
    if (n->is_void) return TTN_OK;
    if (o->is_list && n->kind == TTN_NODE_LIST) return set_list(c, row, n, err);
    if (n->kind != TTN_NODE_SCALAR) {
        char kind[TTN_OPTION_KIND];
        return ttn_config_blame(c, n->place, err, "%s: expected is %s%s, and here stands a %s", o->name,
                                o->is_list ? "a " : "one value: ", ttn_option_kind(o, kind),
                                n->kind == TTN_NODE_LIST ? "list" : "section");
    }
    ttn_scalar value = {0};
    int ok = 0;
    ttn_status status = read_scalar(c, n, o->name, o, &value, &ok, err);
    return status == TTN_OK && ok ? set_row(c, row, &value, 1, n->place, err) : status;
}

/* ---- one element of a list ---- */

enum { MOST_INDEX_DIGITS = 9 };

/* Of a few digits and nothing else, and not 00 or 01, which would be second names of 0 and 1; else -1. */
static int index_of(const char *text)
{
    int index = 0;
    if (text[0] == '0' && text[1]) return -1;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || c - text == MOST_INDEX_DIGITS) return -1;
        index = 10 * index + (*c - '0');
    }
    return *text ? index : -1;
}

/* "data.train.0": the row that is a list, and 0. Else -1; *ret_index -1: what follows the row's name is no number. */
static int find_element(const ttn_config_table *t, const char *name, int *ret_index)
{
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && i < t->n_row; i++) {
        const size_t n = strlen(t->row[i].name);
        if ((size_t)(dot - name) != n || memcmp(t->row[i].name, name, n) != 0) continue;
        *ret_index = index_of(dot + 1);
        return i;
    }
    return -1;
}

/* Room for one more element: twice as many as there are. */
static ttn_status add_element(ttn_config *c, ttn_config_elements *e, ttn_error *err)
{
    enum { FIRST_ROOM = 8 };
    if (e->n == e->room) {
        const int room = e->room > 0 ? 2 * e->room : FIRST_ROOM;
        ttn_scalar *item = ttn_arena_array(c->memory, room, sizeof *item);
        if (!item) return ttn_config_no_memory(err);
        if (e->n > 0) memcpy(item, e->item, (size_t)e->n * sizeof *item);
        e->item = item;
        e->room = room;
    }
    e->n++;
    return TTN_OK;
}

static ttn_status begin_elements(ttn_config *c, int row, ttn_config_place place, ttn_error *err)
{
    const ttn_option_value *old = ttn_values_at(c->values, row);
    const int n = old->given ? old->n : 0;
    ttn_scalar *item = ttn_arena_array(c->memory, n > 0 ? n : 1, sizeof *item);
    if (!item) return ttn_config_no_memory(err);
    if (n > 0) memcpy(item, old->item, (size_t)n * sizeof *item);
    c->elements[row] = (ttn_config_elements){.source = place.source, .item = item, .n = n, .room = n, .place = place};
    return TTN_OK;
}

static ttn_status set_element(ttn_config *c, int row, int index, const char *name, const ttn_config_node *n,
                              ttn_config_place name_place, ttn_error *err)
{
    const ttn_option *o = &c->table->row[row];
    if (!o->is_list) {
        char kind[TTN_OPTION_KIND];
        return ttn_config_blame(c, name_place, err, "%s: %s is one value (%s), and has nothing below it", name, o->name,
                                ttn_option_kind(o, kind));
    }
    if (index < 0)
        return ttn_config_blame(c, name_place, err, "%s: elements of a list have numbers: 0, 1, 2, ...", name);
    if (c->where[row].source == n->place.source)
        return ttn_config_blame(c, name_place, err, "%s: line %" PRId64 " gives the whole list: change it there", name,
                                c->where[row].line);
    ttn_config_elements *e = &c->elements[row];
    ttn_status status = TTN_OK;
    if (!e->source) status = begin_elements(c, row, n->place, err);
    if (status != TTN_OK) return status;
    if (index > e->n)
        return ttn_config_blame(c, name_place, err, "%s: the list has %d element%s so far: the next one is %s.%d", name,
                                e->n, ttn_text_plural(e->n), o->name, e->n);
    if (index == e->n) status = add_element(c, e, err);
    if (status != TTN_OK) return status;
    int ok = 0;
    status = read_scalar(c, n, name, o, &e->item[index], &ok, err);
    e->is_bad |= !ok;
    e->place = n->place;
    return status;
}

/* "a.yaml:2, command line": where the list came from, and who changed it last. */
static ttn_status origin_of_change(ttn_config *c, const ttn_option_value *old, ttn_config_place place, ttn_origin *ret,
                                   ttn_error *err)
{
    ttn_status status = origin_of(c, place, ret, err);
    if (status != TTN_OK || !old->given || old->origin.kind == TTN_FROM_DEFAULT) return status;
    const char *before = old->origin.text;
    const size_t n_before = strlen(before), n_now = strlen(ret->text);
    if (n_before >= n_now && strcmp(before + n_before - n_now, ret->text) == 0)
        ret->text = before; /* it ends in this origin already */
    else
        ret->text = ttn_arena_text(c->memory, "%s, %s", before, ret->text);
    return ret->text ? TTN_OK : ttn_config_no_memory(err);
}

/* At the end of a source: set the lists of which it changed elements. */
static ttn_status set_elements(ttn_config *c, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int row = 0; row < c->table->n_row && status == TTN_OK; row++) {
        ttn_config_elements *e = &c->elements[row];
        if (e->source && !e->is_bad) {
            ttn_origin origin;
            status = origin_of_change(c, ttn_values_at(c->values, row), e->place, &origin, err);
            if (status == TTN_OK) status = ttn_values_set(c->values, row, e->item, e->n, origin, err);
            if (status == TTN_OK) c->where[row] = e->place;
        }
        *e = (ttn_config_elements){0};
    }
    return status;
}

/* ---- notes ---- */

enum { MOST_NOTE_KEY = 128 };

static int is_note_key(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const char *key = name + sizeof notes;
    const size_t n = strlen(key);
    return n > 0 && n <= MOST_NOTE_KEY && strspn(key, allowed) == n && key[0] != '.' && key[n - 1] != '.' &&
           !strstr(key, "..");
}

static ttn_status read_note(ttn_config *c, const ttn_config_node *n, const char *name, ttn_scalar *ret, int *ok,
                            ttn_error *err)
{
    static const ttn_option text = {.name = "notes.any", .type = TTN_OPTION_TEXT};
    if (is_null(n) && !n->is_void) {
        ret->text = "";
        *ok = 1;
        return TTN_OK;
    }
    return read_scalar(c, n, name, &text, ret, ok, err);
}

/* The note of that name, a new one where there is none. TTN_ENOMEM: *ret is as it was. */
static ttn_status add_note(ttn_config *c, const char *name, int64_t *ret, ttn_error *err)
{
    if (c->n_note == c->room_note) {
        const int room = 2 * c->room_note + 8;
        ttn_config_note *note = realloc(c->note, (size_t)room * sizeof *note);
        if (!note) return ttn_config_no_memory(err);
        c->note = note;
        c->room_note = room;
    }
    int is_new = 0;
    ttn_status status = ttn_config_map_add(&c->note_of, name, c->n_note, ret, &is_new, err);
    if (status != TTN_OK || !is_new) return status;
    c->note[c->n_note] = (ttn_config_note){.name = name};
    c->n_note++;
    return TTN_OK;
}

/* name: in the configuration's memory. */
static ttn_status set_note(ttn_config *c, const char *name, const ttn_config_node *n, ttn_config_place name_place,
                           ttn_error *err)
{
    if (!is_note_key(name))
        return ttn_config_blame(c, name_place, err,
                                "'%.100s': a key of notes is made of at most %d letters, digits, '_', '-' and '.'",
                                name, MOST_NOTE_KEY);
    const int is_list = n->kind == TTN_NODE_LIST;
    int count = is_list ? 0 : 1;
    for (const ttn_config_node *e = is_list ? n->first : NULL; e; e = e->next)
        count++;
    ttn_scalar *item = ttn_arena_array(c->memory, count > 0 ? count : 1, sizeof *item);
    if (!item) return ttn_config_no_memory(err);
    int good = 0, i = 0;
    for (const ttn_config_node *e = is_list ? n->first : n; e; e = is_list ? e->next : NULL) {
        int ok = 0;
        ttn_status status = read_note(c, e, name, &item[i], &ok, err);
        if (status != TTN_OK) return status;
        good += ok;
        i++;
    }
    if (good < count) return TTN_OK;
    int64_t index = 0;
    ttn_origin origin;
    ttn_status status = origin_of(c, n->place, &origin, err);
    if (status == TTN_OK) status = add_note(c, name, &index, err);
    if (status != TTN_OK) return status;
    c->note[index].value = (ttn_option_value){.given = 1, .n = count, .item = item, .origin = origin};
    c->note[index].is_list = is_list;
    return TTN_OK;
}

const ttn_config_note *ttn_config_notes(const ttn_config *c, int *n)
{
    *n = c->n_note;
    return c->note;
}

/* ---- keys ---- */

static int find_row(const ttn_config_table *t, const char *name)
{
    for (int i = 0; i < t->n_row; i++)
        if (strcmp(t->row[i].name, name) == 0) return i;
    return -1;
}

static int is_section(const ttn_config_table *t, const char *name)
{
    if (strcmp(name, notes) == 0) return 1;
    for (int i = 0; i < t->n_section; i++)
        if (strcmp(t->section[i], name) == 0) return 1;
    return 0;
}

/* "notes." and more */
static int is_note(const char *name)
{
    return strncmp(name, notes, sizeof notes - 1) == 0 && name[sizeof notes - 1] == '.';
}

typedef struct {
    ttn_config *c;
    ttn_config_map seen; /* names to lines */
} walk;

static ttn_status apply_section(walk *w, const ttn_config_node *map, const char *name, ttn_error *err);

static ttn_status apply_below(walk *w, const ttn_config_node *n, const char *name, ttn_error *err)
{
    if (n->kind == TTN_NODE_MAP) return apply_section(w, n, name, err);
    if (is_null(n)) return TTN_OK; /* a section whose keys are all commented out */
    return ttn_config_blame(w->c, n->place, err, "%s is a section: below it stand its keys, indented, as KEY: VALUE",
                            name);
}

/* The value of a name, wherever it stands. */
static ttn_status apply_named(walk *w, const ttn_config_node *n, const char *name, ttn_error *err)
{
    ttn_config *c = w->c;
    const int row = find_row(c->table, name);
    if (row >= 0) {
        if (c->table->row[row].is_list && n->kind == TTN_NODE_MAP) return apply_section(w, n, name, err);
        if (c->elements[row].source)
            return ttn_config_blame(c, n->key_place, err,
                                    "%s: elements of this list are given too (line %" PRId64 "): write it once", name,
                                    c->elements[row].place.line);
        return set_value(c, row, n, err);
    }
    if (is_note(name))
        return n->kind == TTN_NODE_MAP ? apply_section(w, n, name, err) : set_note(c, name, n, n->key_place, err);
    if (is_section(c->table, name)) return apply_below(w, n, name, err);
    int index = 0;
    const int list = find_element(c->table, name, &index);
    if (list >= 0) return set_element(c, list, index, name, n, n->key_place, err);
    return ttn_config_blame_unknown(c, n->key_place, name, err);
}

static ttn_status apply_key(walk *w, const ttn_config_node *n, const char *section, ttn_error *err)
{
    ttn_config *c = w->c;
    const char *name = section ? ttn_arena_text(c->memory, "%s.%s", section, n->key) : n->key;
    if (!name) return ttn_config_no_memory(err);
    int64_t first = 0;
    int is_new = 0;
    ttn_status status = ttn_config_map_add(&w->seen, name, n->key_place.line, &first, &is_new, err);
    if (status != TTN_OK) return status;
    if (!is_new)
        return ttn_config_blame(c, n->key_place, err, "%s is given twice: the first time in line %" PRId64, name,
                                first);
    if (!section && strcmp(name, preset) == 0) {
        if (n->place.source->kind == TTN_FROM_PRESET)
            return ttn_config_blame(c, n->key_place, err, "a preset cannot name another one");
        if (n->kind == TTN_NODE_SCALAR && !is_null(n)) return TTN_OK; /* it was looked at before everything else */
        return ttn_config_blame(c, n->place, err, "preset: the name of a preset is expected");
    }
    return apply_named(w, n, name, err);
}

/* section NULL: the whole file. Not deeper than the tree is, TTN_CONFIG_DEPTH. */
static ttn_status apply_section(walk *w, const ttn_config_node *map, const char *section, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (const ttn_config_node *n = map->first; n && status == TTN_OK; n = n->next)
        if (!n->is_void) status = apply_key(w, n, section, err);
    return status;
}

const ttn_config_node *ttn_config_find_preset(const ttn_config_node *root)
{
    for (const ttn_config_node *n = root && root->kind == TTN_NODE_MAP ? root->first : NULL; n; n = n->next)
        if (!n->is_void && strcmp(n->key, preset) == 0) return n->kind == TTN_NODE_SCALAR && !is_null(n) ? n : NULL;
    return NULL;
}

ttn_status ttn_config_apply_tree(ttn_config *c, const ttn_config_node *root, ttn_error *err)
{
    if (!root || root->is_void || is_null(root)) return TTN_OK;
    if (root->kind != TTN_NODE_MAP)
        return ttn_config_blame(
            c, root->place, err,
            "a configuration is made of sections with keys (train:, and below it lr: 3e-4), and here stands a %s",
            root->kind == TTN_NODE_LIST ? "list" : "value");
    walk w = {.c = c};
    ttn_status status = apply_section(&w, root, NULL, err);
    ttn_config_map_drop(&w.seen);
    return status == TTN_OK ? set_elements(c, err) : status;
}

ttn_status ttn_config_apply_text(ttn_config *c, const ttn_config_source *s, const char *name,
                                 ttn_config_place name_place, size_t at, ttn_error *err)
{
    ttn_config_node scalar = {
        .kind = TTN_NODE_SCALAR,
        .text = s->text + at,
        .place = {.source = s, .at = at, .n = s->n - at, .line = 1},
    };
    ttn_config_node *node = &scalar;
    const int row = find_row(c->table, name);
    if (row >= 0 && c->table->row[row].is_list && s->text[at] == '[') {
        const int64_t n_before = c->n_found + c->n_more;
        ttn_status status = ttn_config_parse(c, s, at, s->n - at, &node, err);
        if (status != TTN_OK || c->n_found + c->n_more > n_before || !node) return status;
    }
    node->key = name;
    node->key_place = name_place;
    if (is_section(c->table, name))
        return ttn_config_blame(c, name_place, err, "%s is a section: name one of its keys, %s.KEY=VALUE", name, name);
    walk w = {.c = c};
    ttn_status status = apply_named(&w, node, name, err);
    return status == TTN_OK ? set_elements(c, err) : status;
}
