/* A configuration of titin's own table from a text or a preset, for tests of what is made of it. */
#ifndef TTN_TEST_MODEL_CONFIG_H
#define TTN_TEST_MODEL_CONFIG_H

#include <string.h>
#include "tests/harness/test.h"
#include "train/config.h"
#include "train/model.h"

typedef struct {
    ttn_config_table *table;
    ttn_config *config;
    const ttn_values *values;
} model_config;

static inline model_config model_config_of(const char *preset, const char *text)
{
    model_config c = {0};
    ttn_error err = {0};
    const ttn_config_file file = {.path = "test.yaml", .text = text, .n = strlen(text)};
    const ttn_config_request r = {
        .presets = ttn_config_presets, .preset = preset, .file = &file, .n_file = *text ? 1 : 0};
    assert_ok(ttn_config_table_of_titin(&c.table, &err), &err);
    assert_ok(ttn_config_load(c.table, &r, &c.config, &err), &err);
    c.values = ttn_config_values(c.config);
    return c;
}

static inline void model_config_drop(model_config *c)
{
    ttn_config_destroy(c->config);
    ttn_config_table_destroy(c->table);
}

#endif
