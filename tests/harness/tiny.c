#include <stdlib.h>
#include <string.h>
#include "data/batch.h"
#include "tests/harness/test.h"
#include "tests/harness/tiny.h"
#include "train/files/checkpoint.h"

static const char *const small[] = {
    "model.layers=2",          "model.width=24",     "model.heads=2",
    "model.token_dropout=yes", "model.init_std=0.3", "batch.rows=960",
};
enum { N_SMALL = sizeof small / sizeof *small, LONGEST = 1 /* as if trained on such pieces */ };

static ttn_config *configure(const ttn_config_table *table, const char *const *setting)
{
    ttn_error err = {0};
    ttn_config *c;
    const char *all[N_SMALL + TINY_MOST_SETTINGS];
    int n = N_SMALL;
    memcpy(all, small, sizeof small);
    for (const char *const *s = setting; s && *s; s++) {
        assert_true(n < N_SMALL + TINY_MOST_SETTINGS);
        all[n++] = *s;
    }
    assert_ok(ttn_config_load(table, &(ttn_config_request){.argument = all, .n_argument = n}, &c, &err), &err);
    return c;
}

static ttn_weights *make_weights(const ttn_config *c, uint64_t seed)
{
    ttn_error err = {0};
    ttn_model_spec *spec;
    ttn_model m;
    ttn_weights *w;
    const char *alphabet;
    const ttn_option_reader reader = ttn_values_reader(ttn_config_values(c));
    assert_ok(reader.get_text(reader.self, "data.alphabet", 0, &alphabet, &err), &err);
    const ttn_model_use use = {.alphabet = ttn_alphabet_find(alphabet), .longest = LONGEST};
    assert_ok(ttn_model_spec_of(ttn_config_values(c), &use, &spec, &err), &err);
    ttn_graph *g = ttn_graph_create((ttn_extent){TTN_GRAPH_TILE, 1, TTN_GRAPH_TILE});
    ttn_model_build(g, spec, TTN_MODEL_LOSS, &m);
    assert_ok(ttn_graph_check(g, &err), &err);
    assert_ok(ttn_weights_create(g, NULL, &w, &err), &err);
    assert_ok(ttn_model_init(spec, w, seed, &err), &err);
    ttn_graph_destroy(g);
    ttn_model_spec_destroy(spec);
    return w;
}

/* best: the step that the state calls the best; -1: none. */
static void save(const char *path, int64_t step, uint64_t seed, int64_t best, const char *const *setting)
{
    ttn_error err = {0};
    ttn_config_table *table;
    char *text;
    ttn_snapshot *snapshot;
    assert_ok(ttn_config_table_of_titin(&table, &err), &err);
    ttn_config *c = configure(table, setting);
    ttn_weights *w = make_weights(c, seed);
    assert_ok(ttn_config_resolved(c, &text, &err), &err);
    const double longest = LONGEST;
    const double best_of_run[] = {(double)best, best < 0 ? 0 : 2.5};
    const ttn_named_series series[] = {{"longest", &longest, 1}, {"best", best_of_run, 2}};
    const ttn_run_state state = {
        .step = step,
        .config = text,
        .series = series,
        .n_series = 2,
        .device = "cpu",
        .kernel = "Zen",
        .row_tile = TTN_BATCH_TILE,
        .batch_align = TTN_BATCH_ALIGN,
        .ranks = 1,
        .shards = 1,
    };
    assert_ok(ttn_snapshot_create(w, NULL, NULL, 0, &snapshot, &err), &err);
    assert_ok(ttn_snapshot_take(snapshot, w, NULL, &state, &err), &err);
    assert_ok(ttn_checkpoint_write(snapshot, path, NULL, &err), &err);
    ttn_snapshot_destroy(snapshot);
    ttn_weights_destroy(w);
    free(text);
    ttn_config_destroy(c);
    ttn_config_table_destroy(table);
}

void tiny_save(const char *path, uint64_t seed, const char *const *setting)
{
    save(path, TINY_STEP, seed, -1, setting);
}

void tiny_save_step(const char *path, int64_t step, uint64_t seed, const char *const *setting)
{
    save(path, step, seed, -1, setting);
}

void tiny_save_best(const char *path, int64_t step, uint64_t seed, int64_t best)
{
    save(path, step, seed, best, NULL);
}

void tiny_open(tiny *t, const char *path, uint64_t seed, const char *const *setting)
{
    ttn_error err = {0};
    *t = (tiny){0};
    tiny_save(path, seed, setting);
    assert_ok(ttn_config_table_of_titin(&t->table, &err), &err);
    assert_ok(ttn_device_cpu(&t->device, &err), &err);
    const ttn_loaded_options o = {.table = t->table, .device = t->device};
    assert_ok(ttn_loaded_open(path, &o, &t->model, &err), &err);
}

void tiny_close(tiny *t)
{
    ttn_loaded_close(t->model);
    ttn_device_destroy(t->device);
    ttn_config_table_destroy(t->table);
}
