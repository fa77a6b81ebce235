/* Values that the user gave and that the run does not read: by the conditions of the rows (core/options.h). */
#include <stdlib.h>
#include <string.h>
#include "core/builder.h"
#include "train/config_impl.h"
#include "train/config_text.h"
#include "train/config_unread.h"

typedef struct {
    const ttn_config *c;
    const ttn_config_fact *fact; /* (n_fact) */
    int n_fact;
    ttn_values *by_default;
} question;

/* Out of memory is seen where the sentence is finished: two texts that are cut are then not compared. */
static int is_default(const question *q, int row)
{
    const ttn_option *o = &q->c->table->row[row];
    const ttn_option_value *v = ttn_values_at(q->by_default, row);
    ttn_builder given = {0}, usual = {0};
    ttn_config_build_value(&given, o, ttn_values_at(q->c->values, row), o->is_list);
    if (v->given) ttn_config_build_value(&usual, o, v, o->is_list);
    const int same = given.text && usual.text && strcmp(given.text, usual.text) == 0;
    ttn_builder_drop(&given);
    ttn_builder_drop(&usual);
    return same;
}

/* What comes from a preset, or stands in a file as titin wrote it, is nobody's mistake. In one that titin wrote and somebody
 * edited there are all keys: those with their defaults were hardly meant. */
static int is_users(const question *q, int row)
{
    const ttn_config_source *s = q->c->where[row].source;
    if (!s || s->kind < TTN_FROM_FILE || s->is_resolved) return 0;
    return !s->was_resolved || !is_default(q, row);
}

static const ttn_config_fact *fact_of(const question *q, const char *key)
{
    for (int i = 0; i < q->n_fact; i++)
        if (strcmp(q->fact[i].key, key) == 0) return &q->fact[i];
    return NULL;
}

static int row_of(const question *q, const char *key)
{
    const ttn_config_table *t = q->c->table;
    return (int)(ttn_option_find(t->row, t->n_row, key) - t->row); /* the table was checked */
}

static int holds_by_fact(const ttn_option_condition *c, const ttn_config_fact *f)
{
    char element[TTN_OPTION_EXPECTED];
    for (const char *rest = f->value; ttn_option_next(&rest, element, sizeof element);) {
        const char *value = element;
        if (ttn_option_condition_holds(c, &value, 1)) return 1;
    }
    return !f->value;
}

static int holds(const question *q, const ttn_option_condition *c)
{
    const ttn_config_fact *f = fact_of(q, c->key);
    if (f) return holds_by_fact(c, f);
    const int row = row_of(q, c->key);
    const ttn_option *o = &q->c->table->row[row];
    const ttn_option_value *v = ttn_values_at(q->c->values, row);
    if (v->n == 0) return ttn_option_condition_holds(c, NULL, 0);
    for (int i = 0; i < v->n; i++) {
        char room[TTN_OPTION_VALUE];
        const char *value = ttn_option_write(o, v->item[i], room);
        if (ttn_option_condition_holds(c, &value, 1)) return 1;
    }
    return 0;
}

/* The first that does not hold; NULL: the row is read. */
static const ttn_option_condition *unmet(const question *q, int row)
{
    const ttn_option_condition *c = q->c->table->row[row].when;
    while (c && c->key && holds(q, c))
        c++;
    return c && c->key ? c : NULL;
}

static void build_setting(ttn_builder *b, const question *q, int row, const char *between)
{
    const ttn_option *o = &q->c->table->row[row];
    const ttn_option_value *v = ttn_values_at(q->c->values, row);
    ttn_build(b, "%s%s", o->name, between);
    ttn_config_build_value(b, o, v, o->is_list);
    ttn_build(b, " (%s)", v->origin.text);
}

static void build_sentence(ttn_builder *b, const question *q, int row, const ttn_option_condition *c)
{
    char text[TTN_OPTION_EXPECTED];
    const ttn_config_fact *f = fact_of(q, c->key);
    build_setting(b, q, row, "=");
    ttn_build(b, " has no effect: it is used only if %s, and ", ttn_option_condition_text(c, text));
    if (f && f->words)
        ttn_build(b, "%s", f->words);
    else
        build_setting(b, q, row_of(q, c->key), " is ");
    if (q->c->table->row[row].unread_is_error && c->is && !c->words)
        ttn_build(b, ": set %s=%s, or leave %s out", c->key, c->is, q->c->table->row[row].name);
}

static ttn_status tell(const question *q, int row, const ttn_option_condition *c, const ttn_log *log, ttn_error *err)
{
    ttn_builder b = {0};
    char *text = NULL;
    build_sentence(&b, q, row, c);
    ttn_status status = ttn_builder_finish(&b, "what a value is for", &text, err);
    if (status != TTN_OK) return status;
    if (q->c->table->row[row].unread_is_error)
        status = TTN_FAIL(err, TTN_EINVAL, "%s", text);
    else
        ttn_log_say(log, TTN_LOG_WARNING, "%s", text);
    free(text);
    return status;
}

static int is_in(const char *const *section, const char *name)
{
    const size_t n = strcspn(name, ".");
    if (!section) return 1;
    while (*section && (strlen(*section) != n || memcmp(*section, name, n) != 0))
        section++;
    return *section != NULL;
}

ttn_status ttn_config_check_unread(const ttn_config *c, const ttn_config_fact *fact, int n_fact,
                                   const char *const *section, const ttn_log *log, ttn_error *err)
{
    question q = {.c = c, .fact = fact, .n_fact = n_fact};
    ttn_status status = ttn_values_create(c->table->row, c->table->n_row, &q.by_default, err);
    for (int row = 0; row < c->table->n_row && status == TTN_OK; row++) {
        const int is_asked = is_in(section, c->table->row[row].name) && is_users(&q, row);
        const ttn_option_condition *u = is_asked ? unmet(&q, row) : NULL;
        if (u) status = tell(&q, row, u, log, err);
    }
    ttn_values_destroy(q.by_default);
    return status;
}
