/* The table of options, and a configuration from its sources. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "train/config_impl.h"

ttn_status ttn_config_no_memory(ttn_error *err)
{
    return TTN_FAIL(err, TTN_ENOMEM, "out of memory for the configuration");
}

/* ---- the table ---- */

static size_t section_length(const char *name)
{
    return (size_t)(strchr(name, '.') - name);
}

static int section_of(const ttn_config_table *t, const char *name)
{
    const size_t n = section_length(name);
    for (int i = 0; i < t->n_section; i++)
        if (strlen(t->section[i]) == n && memcmp(t->section[i], name, n) == 0) return i;
    return -1;
}

static ttn_status reserved_name(const ttn_option *o, ttn_error *err)
{
    static const char *const reserved[] = {"notes", "preset"};
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strlen(reserved[i]) == section_length(o->name) &&
            strncmp(o->name, reserved[i], section_length(o->name)) == 0)
            return TTN_FAIL(err, TTN_EINTERNAL, "option %s: '%s' belongs to the user", o->name, reserved[i]);
    return TTN_OK;
}

/* Rows of all modules, in their order; then each is checked. */
static ttn_status gather(ttn_config_table *t, ttn_option *row, ttn_error *err)
{
    int n = 0;
    for (int m = 0; m < t->n_module; m++)
        for (int i = 0; i < t->module[m].n_row; i++) {
            row[n] = t->module[m].row[i];
            n++;
        }
    ttn_error why = {0};
    ttn_status status = ttn_options_check(row, n, &why);
    if (status == TTN_OK) status = ttn_options_check_conditions(row, n, &why);
    if (status != TTN_OK) return TTN_FAIL(err, TTN_EINTERNAL, "%s", why.text);
    for (int i = 0; i < n && status == TTN_OK; i++)
        status = reserved_name(&row[i], err);
    return status;
}

/* A section's rows together, sections in the order of their first row. */
static ttn_status group(ttn_config_table *t, const ttn_option *row, ttn_error *err)
{
    for (int i = 0; i < t->n_row; i++) {
        if (section_of(t, row[i].name) >= 0) continue;
        t->section[t->n_section] = ttn_arena_text(t->memory, "%.*s", (int)section_length(row[i].name), row[i].name);
        if (!t->section[t->n_section]) return ttn_config_no_memory(err);
        t->n_section++;
    }
    int n = 0;
    for (int s = 0; s < t->n_section; s++)
        for (int i = 0; i < t->n_row; i++) {
            if (section_of(t, row[i].name) != s) continue;
            t->row[n] = row[i];
            n++;
        }
    return TTN_OK;
}

/* Every module reads its rows, and nothing but rows. */
static ttn_status audit(const ttn_config_table *t, ttn_error *err)
{
    ttn_values *v = NULL;
    int *read = ttn_arena_array(t->memory, t->n_row + 1, sizeof *read);
    if (!read) return ttn_config_no_memory(err);
    ttn_status status = ttn_values_create(t->row, t->n_row, &v, err);
    if (status == TTN_OK) status = ttn_values_audit(v, read, err);
    for (int m = 0; m < t->n_module && status == TTN_OK; m++) {
        ttn_error why = {0};
        status = t->module[m].read(t->module[m].self, v, &why);
        if (status != TTN_OK)
            status = TTN_FAIL(err, status == TTN_ENOMEM ? TTN_ENOMEM : TTN_EINTERNAL, "%s cannot read its options: %s",
                              t->module[m].name, why.text);
    }
    for (int i = 0; i < t->n_row && status == TTN_OK; i++)
        if (read[i] == 0) status = TTN_FAIL(err, TTN_EINTERNAL, "option %s: nobody reads this row", t->row[i].name);
    ttn_values_destroy(v);
    return status;
}

static ttn_status check_rules(const ttn_config_table *t, ttn_error *err)
{
    for (int m = 0; m < t->n_module; m++) {
        const ttn_config_module *module = &t->module[m];
        for (int i = 0; i < 2 * module->n_conflict; i++) {
            const char *key = module->conflict[i / 2].key[i % 2];
            if (!ttn_option_find(t->row, t->n_row, key))
                return TTN_FAIL(err, TTN_EINTERNAL, "%s has a rule for %s, and there is no such row", module->name,
                                key);
        }
        for (int i = 0; i < 2 * module->n_order; i++) {
            const char *key = i % 2 ? module->order[i / 2].larger : module->order[i / 2].smaller;
            const ttn_option *o = ttn_option_find(t->row, t->n_row, key);
            const int is_number = o && !o->is_list &&
                                  (o->type == TTN_OPTION_INTEGER || o->type == TTN_OPTION_REAL ||
                                   o->type == TTN_OPTION_SIZE || o->type == TTN_OPTION_DURATION);
            if (!is_number)
                return TTN_FAIL(err, TTN_EINTERNAL, "%s has a rule for %s, and there is no such row of a number",
                                module->name, key);
        }
    }
    return TTN_OK;
}

static ttn_status fill_table(ttn_config_table *t, ttn_error *err)
{
    ttn_status status = ttn_arena_create(0, &t->memory, err);
    if (status != TTN_OK) return status;
    for (int m = 0; m < t->n_module; m++)
        t->n_row += t->module[m].n_row;
    ttn_option *row = ttn_arena_array(t->memory, t->n_row + 1, sizeof *row);
    t->row = ttn_arena_array(t->memory, t->n_row + 1, sizeof *t->row);
    t->section = ttn_arena_array(t->memory, t->n_row + 1, sizeof *t->section);
    if (!row || !t->row || !t->section) return ttn_config_no_memory(err);
    status = gather(t, row, err);
    if (status == TTN_OK) status = group(t, row, err);
    if (status == TTN_OK) status = check_rules(t, err);
    return status == TTN_OK ? audit(t, err) : status;
}

ttn_status ttn_config_table_create(const ttn_config_module *module, int n, ttn_config_table **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_config_table *t = calloc(1, sizeof *t);
    if (!t) return ttn_config_no_memory(err);
    t->module = module;
    t->n_module = n;
    ttn_status status = fill_table(t, err);
    if (status == TTN_OK)
        *ret = t;
    else
        ttn_config_table_destroy(t);
    return status;
}

void ttn_config_table_destroy(ttn_config_table *t)
{
    if (!t) return;
    ttn_arena_destroy(t->memory);
    free(t->own_module);
    free(t);
}

const ttn_option *ttn_config_rows(const ttn_config_table *t, int *n)
{
    *n = t->n_row;
    return t->row;
}

/* ---- rules ---- */

static int row_of(const ttn_config *c, const char *name)
{
    return (int)(ttn_option_find(c->table->row, c->table->n_row, name) - c->table->row);
}

static int has_value(const ttn_config *c, int row, const char *wanted)
{
    const ttn_option_value *v = ttn_values_at(c->values, row);
    char room[TTN_OPTION_VALUE];
    for (int i = 0; i < v->n; i++)
        if (strcmp(ttn_option_write(&c->table->row[row], v->item[i], room), wanted) == 0) return 1;
    return 0;
}

/* Of two rows the one whose value came last: that is where the user looks. Values that nobody gave are the fault of a table. */
static int later(const ttn_config *c, int a, int b)
{
    if (!c->where[b].source) return a;
    if (!c->where[a].source) return b;
    const int order_a = c->where[a].source->order, order_b = c->where[b].source->order;
    if (order_a != order_b) return order_a > order_b ? a : b;
    return c->where[a].at > c->where[b].at ? a : b;
}

static ttn_status check_conflict(ttn_config *c, const ttn_config_conflict *r, ttn_error *err)
{
    const int row[2] = {row_of(c, r->key[0]), row_of(c, r->key[1])};
    if (!has_value(c, row[0], r->value[0]) || !has_value(c, row[1], r->value[1])) return TTN_OK;
    const int at = later(c, row[0], row[1]);
    if (!c->where[at].source) return TTN_OK;
    const int this = at == row[0] ? 0 : 1;
    return ttn_config_blame(c, c->where[at], err, "%s: %s does not go with %s: %s (%s): %s", r->key[this],
                            r->value[this], r->key[1 - this], r->value[1 - this],
                            ttn_values_at(c->values, row[1 - this])->origin.text, r->why);
}

static double number_of(const ttn_config *c, int row)
{
    const ttn_option *o = &c->table->row[row];
    const ttn_scalar value = ttn_values_at(c->values, row)->item[0];
    return o->type == TTN_OPTION_REAL || o->type == TTN_OPTION_DURATION ? value.real : (double)value.integer;
}

static ttn_status check_order(ttn_config *c, const ttn_config_order *r, ttn_error *err)
{
    const int small = row_of(c, r->smaller), large = row_of(c, r->larger);
    if (!ttn_values_at(c->values, small)->given || !ttn_values_at(c->values, large)->given) return TTN_OK;
    if (number_of(c, small) <= number_of(c, large)) return TTN_OK;
    const int at = later(c, small, large);
    if (!c->where[at].source) return TTN_OK;
    const int other = at == small ? large : small;
    char room[TTN_OPTION_VALUE], other_room[TTN_OPTION_VALUE];
    const ttn_option_value *value = ttn_values_at(c->values, at), *other_value = ttn_values_at(c->values, other);
    return ttn_config_blame(c, c->where[at], err, "%s: %s is %s than %s: %s (%s): %s", c->table->row[at].name,
                            ttn_option_write(&c->table->row[at], value->item[0], room), at == small ? "more" : "less",
                            c->table->row[other].name,
                            ttn_option_write(&c->table->row[other], other_value->item[0], other_room),
                            other_value->origin.text, r->why);
}

static ttn_status check_values(ttn_config *c, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int m = 0; m < c->table->n_module; m++) {
        const ttn_config_module *module = &c->table->module[m];
        for (int i = 0; i < module->n_conflict && status == TTN_OK; i++)
            status = check_conflict(c, &module->conflict[i], err);
        for (int i = 0; i < module->n_order && status == TTN_OK; i++)
            status = check_order(c, &module->order[i], err);
    }
    return status;
}

/* ---- environment and command line ---- */

static const char prefix[] = "TITIN__";
enum { PREFIX = sizeof prefix - 1 };

/* "train.lr" of "TRAIN__LR=…": n bytes. */
static char *name_of_variable(ttn_config *c, const char *text, size_t n)
{
    char *name = ttn_arena_alloc(c->memory, n + 1);
    if (!name) return NULL;
    size_t end = 0;
    for (size_t i = 0; i < n; i++) {
        const int is_dot = text[i] == '_' && i + 1 < n && text[i + 1] == '_';
        name[end] = (char)(is_dot ? '.' : text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
        end++;
        i += (size_t)is_dot;
    }
    return name;
}

/* "TITIN__TRAIN__LR" of "train.lr". */
static const char *variable_of(ttn_config *c, const char *name)
{
    const char *dot = strchr(name, '.');
    const int n = dot ? (int)(dot - name) : (int)strlen(name);
    char *variable = ttn_arena_text(c->memory, "%s%.*s%s%s", prefix, n, name, dot ? "__" : "", dot ? dot + 1 : "");
    for (char *at = variable; at && *at; at++)
        if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
    return variable;
}

/* One "NAME=value" as a source of its own. */
typedef struct {
    ttn_config_source *source;
    char *name; /* "train.lr"; NULL: there is no '=' */
    size_t name_at, name_n, value_at;
} assignment;

static ttn_status open_assignment(ttn_config *c, ttn_source_kind kind, int group, const char *text, size_t skip,
                                  assignment *ret, ttn_error *err)
{
    const size_t n = strlen(text);
    const char *equals = strchr(text, '=');
    *ret = (assignment){.name_at = skip, .name_n = (equals ? (size_t)(equals - text) : n) - skip};
    const int is_variable = kind == TTN_FROM_ENVIRONMENT;
    const char *shown =
        ttn_arena_text(c->memory, "%s %.*s", is_variable ? "environment" : "argument", (int)(skip + ret->name_n), text);
    if (!shown) return ttn_config_no_memory(err);
    ttn_status status = ttn_config_source_add(c, kind, group, shown, text, n, &ret->source, err);
    if (status != TTN_OK || !equals) return status;
    ret->value_at = (size_t)(equals - text) + 1;
    ret->name = is_variable ? name_of_variable(c, text + skip, ret->name_n)
                            : ttn_arena_text(c->memory, "%.*s", (int)ret->name_n, text);
    return ret->name ? TTN_OK : ttn_config_no_memory(err);
}

static ttn_config_place place_of_name(const assignment *a)
{
    return (ttn_config_place){.source = a->source, .at = a->name_at, .n = a->name_n, .line = 1};
}

static int is_preset(const char *name)
{
    return strcmp(name, "preset") == 0;
}

static ttn_status apply_assignment(ttn_config *c, const assignment *a, ttn_error *err)
{
    if (!a->name)
        return ttn_config_blame(c, place_of_name(a), err, "'%.100s' sets nothing: expected is section.key=value",
                                a->source->text);
    int is_text = 0;
    ttn_status status = ttn_config_check_bytes(c, a->source, 0, a->source->n, &is_text, err);
    if (status != TTN_OK || !is_text) return status;
    if (is_preset(a->name)) return TTN_OK; /* it was looked at before everything else */
    return ttn_config_apply_text(c, a->source, a->name, place_of_name(a), a->value_at, err);
}

/* ---- loading ---- */

typedef struct {
    const ttn_config_request *request;
    ttn_config_node **tree; /* (n_file) */
    assignment *variable;   /* (n_variable) */
    int n_variable;
    assignment *argument; /* (n_argument) */
} sources;

static ttn_status open_files(ttn_config *c, sources *s, ttn_error *err)
{
    const ttn_config_request *r = s->request;
    s->tree = ttn_arena_array(c->memory, r->n_file + 1, sizeof *s->tree);
    if (!s->tree) return ttn_config_no_memory(err);
    ttn_status status = TTN_OK;
    for (int i = 0; i < r->n_file && status == TTN_OK; i++) {
        ttn_config_source *source = NULL;
        status = ttn_config_file_open(c, &r->file[i], &source, err);
        if (status == TTN_OK && source) status = ttn_config_parse(c, source, 0, source->n, &s->tree[i], err);
    }
    return status;
}

/* Is TRAIN_LR or TRAIN__LR, n bytes, the row's name but for its dot? */
static int is_misspelt(const char *variable, size_t n, const char *row)
{
    size_t i = 0;
    for (; *row; row++) {
        if (i == n) return 0;
        if (*row != '.' && *row != '_') {
            if ((variable[i] >= 'A' && variable[i] <= 'Z' ? variable[i] - 'A' + 'a' : variable[i]) != *row) return 0;
            i++;
            continue;
        }
        if (variable[i] != '_') return 0;
        while (i < n && variable[i] == '_')
            i++;
    }
    return i == n;
}

/* TITIN_TRAIN_LR would set nothing and say nothing. Other variables that begin like that are somebody else's. */
static ttn_status check_spelling(ttn_config *c, const char *text, int group, ttn_error *err)
{
    const size_t n = strcspn(text, "="), skip = PREFIX - 1; /* TITIN_ */
    if (n <= skip || strncmp(text, prefix, skip) != 0) return TTN_OK;
    const char *meant = is_misspelt(text + skip, n - skip, "preset") ? "preset" : NULL;
    for (int i = 0; i < c->table->n_row && !meant; i++)
        if (is_misspelt(text + skip, n - skip, c->table->row[i].name)) meant = c->table->row[i].name;
    if (!meant) return TTN_OK;
    const char *shown = ttn_arena_text(c->memory, "environment %.*s", (int)n, text);
    const char *variable = variable_of(c, meant);
    if (!shown || !variable) return ttn_config_no_memory(err);
    ttn_config_source *source = NULL;
    ttn_status status = ttn_config_source_add(c, TTN_FROM_ENVIRONMENT, group, shown, text, strlen(text), &source, err);
    if (status != TTN_OK) return status;
    return ttn_config_blame(c, (ttn_config_place){.source = source, .n = n, .line = 1}, err,
                            "this sets nothing: %s is set by %s, with two '_' in a row", meant, variable);
}

/* An environment has no order that its user knows: variables are read in that of their keys, elements of a list by number
 * (2 before 10) and after the list itself. */
static int by_name(const void *a, const void *b)
{
    const assignment *x = a, *y = b;
    if (!x->name || !y->name) return (x->name != NULL) - (y->name != NULL);
    return strverscmp(x->name, y->name);
}

static ttn_status open_assignments(ttn_config *c, sources *s, ttn_error *err)
{
    const ttn_config_request *r = s->request;
    int n = 0;
    for (const char *const *e = r->environment; e && *e; e++)
        n += strncmp(*e, prefix, PREFIX) == 0;
    s->variable = ttn_arena_array(c->memory, n + 1, sizeof *s->variable);
    s->argument = ttn_arena_array(c->memory, r->n_argument + 1, sizeof *s->argument);
    if (!s->variable || !s->argument) return ttn_config_no_memory(err);
    const int environment = c->n_group, command_line = c->n_group + 1;
    c->n_group += 2;
    ttn_status status = TTN_OK;
    for (const char *const *e = r->environment; e && *e && status == TTN_OK; e++) {
        if (strncmp(*e, prefix, PREFIX) != 0) {
            status = check_spelling(c, *e, environment, err);
            continue;
        }
        status = open_assignment(c, TTN_FROM_ENVIRONMENT, environment, *e, PREFIX, &s->variable[s->n_variable], err);
        s->n_variable++;
    }
    qsort(s->variable, (size_t)s->n_variable, sizeof *s->variable, by_name);
    for (int i = 0; i < r->n_argument && status == TTN_OK; i++)
        status = open_assignment(c, TTN_FROM_COMMAND_LINE, command_line, r->argument[i], 0, &s->argument[i], err);
    return status;
}

/* A preset's name and where it is asked for; source NULL: by the request. */
typedef struct {
    const char *name;
    ttn_config_place place;
} wish;

static wish wish_of_assignment(const assignment *a)
{
    const size_t at = a->value_at, n = a->source->n - at;
    return (wish){a->source->text + at, {.source = a->source, .at = at, .n = n, .line = 1}};
}

static wish find_wish(const sources *s)
{
    const ttn_config_request *r = s->request;
    if (r->preset) return (wish){.name = r->preset};
    for (int i = r->n_argument - 1; i >= 0; i--)
        if (s->argument[i].name && is_preset(s->argument[i].name)) return wish_of_assignment(&s->argument[i]);
    for (int i = s->n_variable - 1; i >= 0; i--)
        if (s->variable[i].name && is_preset(s->variable[i].name)) return wish_of_assignment(&s->variable[i]);
    for (int i = r->n_file - 1; i >= 0; i--) {
        const ttn_config_node *n = ttn_config_find_preset(s->tree[i]);
        if (n) return (wish){n->text, n->place};
    }
    return (wish){0};
}

static ttn_status blame_preset(ttn_config *c, const sources *s, const wish *w, ttn_error *err)
{
    char known[256] = "";
    size_t end = 0;
    for (const ttn_config_preset *p = s->request->presets; p && p->name && end + strlen(p->name) + 3 < sizeof known;
         p++)
        end += (size_t)snprintf(known + end, sizeof known - end, "%s%s", end ? ", " : "", p->name);
    ttn_config_place place = w->place;
    if (!place.source) {
        const char *text = ttn_arena_text(c->memory, "--preset %s", w->name);
        ttn_config_source *source = NULL;
        if (!text) return ttn_config_no_memory(err);
        ttn_status status =
            ttn_config_source_add(c, TTN_FROM_COMMAND_LINE, c->n_group, text, text, strlen(text), &source, err);
        c->n_group++;
        if (status != TTN_OK) return status;
        place = (ttn_config_place){.source = source, .at = sizeof "--preset", .n = strlen(w->name), .line = 1};
    }
    if (!*known) return ttn_config_blame(c, place, err, "there is no preset '%.100s': this program has none", w->name);
    return ttn_config_blame(c, place, err, "there is no preset '%.100s'; there are %s", w->name, known);
}

static ttn_status apply_preset(ttn_config *c, const sources *s, ttn_error *err)
{
    const wish w = find_wish(s);
    if (!w.name) return TTN_OK;
    const ttn_config_preset *p = s->request->presets;
    while (p && p->name && strcmp(p->name, w.name) != 0)
        p++;
    if (!p || !p->name) return blame_preset(c, s, &w, err);
    const char *shown = ttn_arena_text(c->memory, "preset %s", p->name);
    if (!shown) return ttn_config_no_memory(err);
    ttn_config_source *source = NULL;
    ttn_config_node *root = NULL;
    ttn_status status =
        ttn_config_source_add(c, TTN_FROM_PRESET, c->n_group, shown, p->text, strlen(p->text), &source, err);
    c->n_group++;
    if (status != TTN_OK) return status;
    source->order = -1; /* weaker than all others, and first in the report */
    c->preset = p->name;
    status = ttn_config_parse(c, source, 0, source->n, &root, err);
    return status == TTN_OK ? ttn_config_apply_tree(c, root, err) : status;
}

/* Has the variable before this one the same key (TITIN__TRAIN__LR, TITIN__train__lr)? */
static int is_again(const sources *s, int i)
{
    return i > 0 && s->variable[i].name && s->variable[i - 1].name &&
           strcmp(s->variable[i].name, s->variable[i - 1].name) == 0;
}

static ttn_status blame_again(ttn_config *c, const assignment *a, ttn_error *err)
{
    return ttn_config_blame(c, place_of_name(a), err, "%s is given twice, by another variable too", a->name);
}

static ttn_status apply_all(ttn_config *c, const ttn_config_request *r, ttn_error *err)
{
    sources s = {.request = r};
    ttn_status status = open_files(c, &s, err);
    if (status == TTN_OK) status = open_assignments(c, &s, err);
    if (status == TTN_OK) status = apply_preset(c, &s, err);
    for (int i = 0; i < r->n_file && status == TTN_OK; i++)
        status = ttn_config_apply_tree(c, s.tree[i], err);
    for (int i = 0; i < s.n_variable && status == TTN_OK; i++)
        status = is_again(&s, i) ? blame_again(c, &s.variable[i], err) : apply_assignment(c, &s.variable[i], err);
    for (int i = 0; i < r->n_argument && status == TTN_OK; i++)
        status = apply_assignment(c, &s.argument[i], err);
    if (status == TTN_OK) status = check_values(c, err);
    return status == TTN_OK ? ttn_config_make_report(c, err) : status;
}

/* The first problem, and how many there are. */
static ttn_status first_problem(const ttn_config *c, ttn_error *err)
{
    if (c->n_found == 0) return TTN_OK;
    const ttn_config_problem *p = &c->problem[0];
    const int64_t others = c->n_found - 1 + c->n_more;
    char more[48] = "";
    if (others > 0) snprintf(more, sizeof more, " (and %" PRId64 " more)", others);
    return TTN_FAIL_AT(err, TTN_EINVAL, p->source, p->line, p->column, "%s%s", p->sentence, more);
}

ttn_status ttn_config_load(const ttn_config_table *t, const ttn_config_request *r, ttn_config **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_config *c = calloc(1, sizeof *c);
    if (!c) return ttn_config_no_memory(err);
    c->table = t;
    ttn_status status = ttn_arena_create(0, &c->memory, err);
    if (status == TTN_OK) status = ttn_values_create(t->row, t->n_row, &c->values, err);
    if (status == TTN_OK) {
        c->where = ttn_arena_array(c->memory, t->n_row + 1, sizeof *c->where);
        c->elements = ttn_arena_array(c->memory, t->n_row + 1, sizeof *c->elements);
        status = c->where && c->elements ? apply_all(c, r, err) : ttn_config_no_memory(err);
    }
    if (status != TTN_OK) {
        ttn_config_destroy(c);
        return status;
    }
    *ret = c;
    return first_problem(c, err);
}

void ttn_config_destroy(ttn_config *c)
{
    if (!c) return;
    ttn_values_destroy(c->values);
    ttn_config_map_drop(&c->note_of);
    ttn_arena_destroy(c->memory);
    free(c->note);
    free(c->found);
    free(c->report);
    free(c);
}

const ttn_values *ttn_config_values(const ttn_config *c)
{
    return c->values;
}

const char *ttn_config_preset_name(const ttn_config *c)
{
    return c->preset;
}
