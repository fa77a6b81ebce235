/* What is wrong with a configuration, for people: the place, the line with a caret, and what may have been meant. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/builder.h"
#include "core/nearest.h"
#include "core/text.h"
#include "train/config_impl.h"

/* ---- the line around a place ---- */

/* A line of more characters than this is shown around the place. */
enum { MOST_SHOWN = 100, SHOWN_BEFORE = 60 };
static const char cut[] = "...";

static int64_t characters(const char *text, size_t n)
{
    int64_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += !ttn_text_is_continuation(text[i]);
    return count;
}

/* The byte n characters behind `at`, at most `end`. */
static size_t ahead(const char *text, size_t at, size_t end, int64_t n)
{
    for (; n > 0 && at < end; n--) {
        at++;
        while (at < end && ttn_text_is_continuation(text[at]))
            at++;
    }
    return at;
}

static void find_line(const ttn_config_source *s, size_t at, size_t *ret_begin, size_t *ret_end)
{
    size_t begin = at, end = at;
    while (begin > 0 && s->text[begin - 1] != '\n')
        begin--;
    while (end < s->n && s->text[end] != '\n')
        end++;
    if (end > begin && s->text[end - 1] == '\r') end--;
    *ret_begin = begin;
    *ret_end = end;
}

/* Bytes for a terminal: what is no printable character, or no UTF-8 that a place could be counted in, becomes '?'. */
static void disarm(char *text)
{
    for (char *c = text; *c; c++)
        if (*c == '\t') *c = ' ';
    ttn_text_disarm(text);
}

/* text, caret, n_caret of a problem. */
static ttn_status show_line(ttn_config *c, ttn_config_place place, ttn_config_problem *p, ttn_error *err)
{
    const ttn_config_source *s = place.source;
    size_t begin, end;
    find_line(s, place.at, &begin, &end);
    p->line = s->has_lines ? place.line : 0;
    p->column = s->has_lines ? (int64_t)(place.at - begin) + 1 : 0;
    const size_t at = place.at < end ? place.at : end;
    const size_t place_end = place.at + place.n < end ? place.at + place.n : end;
    int64_t before = characters(s->text + begin, at - begin);
    size_t from = begin, to = end;
    if (characters(s->text + begin, end - begin) > MOST_SHOWN) {
        if (before > SHOWN_BEFORE) from = ahead(s->text, begin, end, before - SHOWN_BEFORE);
        to = ahead(s->text, from, end, MOST_SHOWN);
    }
    char *line = ttn_arena_alloc(c->memory, to - from + 2 * sizeof cut);
    if (!line) return ttn_config_no_memory(err);
    const size_t lead = from > begin ? sizeof cut - 1 : 0;
    memcpy(line, cut, lead);
    memcpy(line + lead, s->text + from, to - from);
    for (size_t i = 0; i < to - from; i++)
        if (!line[lead + i]) line[lead + i] = '?'; /* a NUL byte is one of the things that may be wrong */
    memcpy(line + lead + to - from, cut, to < end ? sizeof cut : 0);
    disarm(line);
    p->text = line;
    p->caret = (int)(characters(s->text + from, at - from) + (int64_t)lead);
    const size_t shown_end = place_end < to ? place_end : to;
    const int64_t n = shown_end > at ? characters(s->text + at, shown_end - at) : 0;
    p->n_caret = n > 0 ? (int)n : 1;
    return TTN_OK;
}

/* ---- noting ---- */

static int n_kept(const ttn_config *c, int group)
{
    int n = 0;
    for (int i = 0; i < c->n_found; i++)
        n += c->found[i].group == group;
    return n;
}

int ttn_config_is_kept(const ttn_config *c, const ttn_config_source *s)
{
    return n_kept(c, s->group) < TTN_CONFIG_PROBLEMS;
}

static ttn_status add_found(ttn_config *c, const ttn_config_found *f, ttn_error *err)
{
    if (c->n_found == c->room_found) {
        const int room = 2 * c->room_found + 8;
        ttn_config_found *found = realloc(c->found, (size_t)room * sizeof *found);
        if (!found) return ttn_config_no_memory(err);
        c->found = found;
        c->room_found = room;
    }
    c->found[c->n_found] = *f;
    c->n_found++;
    return TTN_OK;
}

ttn_status ttn_config_blame(ttn_config *c, ttn_config_place place, ttn_error *err, const char *format, ...)
{
    const ttn_config_source *s = place.source;
    if (!ttn_config_is_kept(c, s)) {
        c->n_more++;
        return TTN_OK;
    }
    char sentence[TTN_ERROR_TEXT] = "";
    va_list args;
    va_start(args, format);
    ttn_text_append(sentence, sizeof sentence, format, args);
    va_end(args);
    disarm(sentence);
    ttn_config_found f = {.order = s->order, .group = s->group, .at = place.at, .shown = {.source = s->name}};
    f.shown.sentence = ttn_arena_text(c->memory, "%s", sentence);
    if (!f.shown.sentence) return ttn_config_no_memory(err);
    if (s->text && place.at <= s->n) {
        ttn_status status = show_line(c, place, &f.shown, err);
        if (status != TTN_OK) return status;
    }
    return add_found(c, &f, err);
}

/* ---- what may have been meant ---- */

/* "lr" of "train.lr", also of "lr". */
static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static int is_in_section(const char *row, const char *section, size_t n)
{
    return strncmp(row, section, n) == 0 && row[n] == '.';
}

static int has_section(const ttn_config_table *t, const char *section, size_t n)
{
    for (int i = 0; i < t->n_section; i++)
        if (strlen(t->section[i]) == n && memcmp(t->section[i], section, n) == 0) return 1;
    return 0;
}

/* The key of the table with fewest edits; within = 1: only its last part is compared, in this section. */
static const char *nearest_row(const ttn_config_table *t, const char *name, const char *section, size_t n_section)
{
    const char *best = NULL;
    int fewest = TTN_NEAREST_FAR;
    for (int i = 0; i < t->n_row; i++) {
        if (section && !is_in_section(t->row[i].name, section, n_section)) continue;
        const char *known = section ? t->row[i].name + n_section + 1 : t->row[i].name;
        const int edits = ttn_edits(name, known);
        if (edits >= fewest) continue;
        fewest = edits;
        best = t->row[i].name;
    }
    return best && ttn_is_near(name, fewest) ? best : NULL;
}

static const char *row_with_part(const ttn_config_table *t, const char *part)
{
    for (int i = 0; i < t->n_row; i++)
        if (strcmp(last_part(t->row[i].name), part) == 0) return t->row[i].name;
    return NULL;
}

/* A name as the source would write it is left to the reader: the dotted form is understood everywhere. */
const char *ttn_config_hint(const ttn_config_table *t, ttn_arena *memory, const char *name)
{
    const char *dot = strchr(name, '.');
    const size_t n_section = dot ? (size_t)(dot - name) : strlen(name);
    const int known_section = has_section(t, name, n_section);
    const char *near = known_section && dot ? nearest_row(t, dot + 1, name, n_section) : NULL;
    if (near) return ttn_arena_text(memory, "; did you mean %s?", near);
    const char *same = row_with_part(t, last_part(name));
    if (same) {
        const char *section_end = strchr(same, '.');
        return ttn_arena_text(memory, "; %s lives in the section %.*s: %s", last_part(name), (int)(section_end - same),
                              same, same);
    }
    near = nearest_row(t, name, NULL, 0);
    if (near) return ttn_arena_text(memory, "; did you mean %s?", near);
    if (!known_section && !dot) {
        near = ttn_nearest(name, t->section, t->n_section);
        if (near) return ttn_arena_text(memory, "; did you mean the section %s?", near);
    }
    char list[256] = "";
    size_t end = 0;
    for (int i = 0; i < (known_section ? t->n_row : t->n_section); i++) {
        const char *known = known_section ? t->row[i].name : t->section[i];
        if (known_section && !is_in_section(known, name, n_section)) continue;
        if (end + strlen(", ") + strlen(known) + sizeof ", ..." > sizeof list) { /* room is left for what stands here */
            memcpy(list + end, ", ...", sizeof ", ...");
            break;
        }
        end += (size_t)snprintf(list + end, sizeof list - end, "%s%s", end ? ", " : "", known);
    }
    if (!*list) return ttn_arena_text(memory, "%s", "");
    return ttn_arena_text(memory, known_section ? "; there are %s" : "; there are the sections %s", list);
}

ttn_status ttn_config_blame_unknown(ttn_config *c, ttn_config_place place, const char *name, ttn_error *err)
{
    if (!ttn_config_is_kept(c, place.source)) return ttn_config_blame(c, place, err, "unknown");
    const char *instead = ttn_option_instead(c->table->row, c->table->n_row, name);
    if (instead) return ttn_config_blame(c, place, err, "the key '%.100s' is not there yet: %s", name, instead);
    const char *hint = ttn_config_hint(c->table, c->memory, name);
    if (!hint) return ttn_config_no_memory(err);
    return ttn_config_blame(c, place, err, "there is no %s '%.100s'%s", strchr(name, '.') ? "key" : "section", name,
                            hint);
}

/* ---- all of it ---- */

static int by_place(const void *a, const void *b)
{
    const ttn_config_found *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return strcmp(x->shown.sentence, y->shown.sentence);
}

static void print_problem(ttn_builder *b, const ttn_config_problem *p)
{
    ttn_build(b, "%s:", p->source);
    if (p->line) ttn_build(b, "%" PRId64 ":%" PRId64 ":", p->line, p->column);
    ttn_build(b, " %s\n", p->sentence);
    if (!p->text) return;
    char margin[32];
    snprintf(margin, sizeof margin, p->line ? "%6" PRId64 " | " : "       | ", p->line);
    ttn_build(b, "%s%s\n", margin, p->text);
    ttn_build(b, "       | %*s^", p->caret, "");
    for (int i = 1; i < p->n_caret; i++)
        ttn_build(b, "~");
    ttn_build(b, "\n");
}

ttn_status ttn_config_make_report(ttn_config *c, ttn_error *err)
{
    if (c->n_found > 0) qsort(c->found, (size_t)c->n_found, sizeof *c->found, by_place);
    c->problem = ttn_arena_array(c->memory, c->n_found + 1, sizeof *c->problem);
    if (!c->problem) return ttn_config_no_memory(err);
    ttn_builder b = {0};
    for (int i = 0; i < c->n_found; i++) {
        c->problem[i] = c->found[i].shown;
        print_problem(&b, &c->problem[i]);
    }
    if (c->n_more > 0) ttn_build(&b, "and %" PRId64 " more\n", c->n_more);
    return ttn_builder_finish(&b, "the report on a configuration", &c->report, err);
}

const ttn_config_problem *ttn_config_problems(const ttn_config *c, int *n, int64_t *n_more)
{
    *n = c->n_found;
    if (n_more) *n_more = c->n_more;
    return c->problem;
}

const char *ttn_config_report(const ttn_config *c)
{
    return c->report;
}
