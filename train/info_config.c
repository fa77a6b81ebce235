/* Configuration files as a kind of `titin info`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/text.h"
#include "train/config.h"
#include "train/info_config.h"

static int recognise(const ttn_info_subject *s)
{
    const char *dot = strrchr(s->path, '.');
    return !s->is_folder && s->bytes > 0 && dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

/* Keys that are not as they are by default. Lists are shown by their first element and how many there are. */
static void add_values(const ttn_values *values, ttn_facts *f)
{
    ttn_facts_open_list(f, "sets");
    for (int i = 0; i < ttn_values_count(values); i++) {
        const ttn_option *row = ttn_values_row(values, i);
        const ttn_option_value *v = ttn_values_at(values, i);
        char room[TTN_OPTION_VALUE];
        if (v->origin.kind == TTN_FROM_DEFAULT) continue;
        const char *first = v->n > 0 ? ttn_option_write(row, v->item[0], room) : "";
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "key", "%s", row->name);
        if (!row->is_list)
            ttn_facts_text(f, "value", "%s", first);
        else if (v->n == 0)
            ttn_facts_text(f, "value", "[]");
        else
            ttn_facts_text(f, "value", "[%s%s]", first, v->n > 1 ? ", ..." : "");
        ttn_facts_text(f, "from", "%s", v->origin.text);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

static void add_problems(const ttn_config *c, ttn_facts *f)
{
    int n;
    int64_t more;
    const ttn_config_problem *p = ttn_config_problems(c, &n, &more);
    ttn_facts_integer(f, "problems", n + more);
    ttn_facts_open_list(f, "problem");
    for (int i = 0; i < n; i++) {
        ttn_facts_open(f, NULL);
        ttn_facts_integer(f, "line", p[i].line);
        ttn_facts_integer(f, "column", p[i].column);
        ttn_facts_text(f, "what", "%s", p[i].sentence);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

static ttn_status describe(const ttn_info_subject *s, int verify, ttn_facts *f, ttn_error *err)
{
    (void)verify; /* it is checked anyway */
    ttn_config_table *table;
    ttn_config *config = NULL;
    ttn_status status = ttn_config_table_of_titin(&table, err);
    if (status != TTN_OK) return status;
    const ttn_config_file file = {.path = s->path};
    const ttn_config_request request = {.presets = ttn_config_presets, .file = &file, .n_file = 1};
    status = ttn_config_load(table, &request, &config, err);
    ttn_facts_flag(f, "valid", status == TTN_OK);
    if (config && status != TTN_OK) add_problems(config, f);
    if (status == TTN_OK) {
        int n_note;
        ttn_config_notes(config, &n_note);
        if (ttn_config_preset_name(config)) ttn_facts_text(f, "preset", "%s", ttn_config_preset_name(config));
        ttn_facts_integer(f, "notes", n_note);
        add_values(ttn_config_values(config), f);
    }
    ttn_config_destroy(config);
    ttn_config_table_destroy(table);
    return status;
}

const ttn_info_kind ttn_info_config = {
    .name = "config",
    .what = "a configuration",
    .recognise = recognise,
    .describe = describe,
};
