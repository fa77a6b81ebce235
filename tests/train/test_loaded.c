/* Models as they were saved: which checkpoint is taken of a run, and what is wrong with those that cannot be. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/memory.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/harness/tiny.h"
#include "train/files/checkpoint.h"
#include "train/files/run_folder.h"

enum { SEED = 5 };

/* ---- files ---- */

/* The path "FOLDER/NAME" in the folder of the test: the caller's room, of PATH_MAX bytes. Returns it. */
static const char *join(char *room, const char *folder, const char *name)
{
    assert_true(snprintf(room, PATH_MAX, "%s/%s", folder, name) < PATH_MAX);
    return room;
}

/* ---- the world of a test ---- */

typedef struct {
    ttn_config_table *table;
    ttn_device *device;
    ttn_log log;
    char said[2000];
} world;

static void listen_to(void *ctx, ttn_log_level level, const char *text)
{
    world *w = ctx;
    const size_t n = strlen(w->said);
    snprintf(w->said + n, sizeof w->said - n, "%s: %s\n", ttn_log_level_name(level), text);
}

static void build(world *w)
{
    ttn_error err = {0};
    *w = (world){.log = {.say = listen_to, .ctx = w}};
    assert_ok(ttn_config_table_of_titin(&w->table, &err), &err);
    assert_ok(ttn_device_cpu(&w->device, &err), &err);
}

static void tear_down(world *w)
{
    ttn_device_destroy(w->device);
    ttn_config_table_destroy(w->table);
}

static ttn_status load(world *w, const char *path, const char *config, const char *const *setting, ttn_loaded **ret,
                       ttn_error *err)
{
    int n = 0;
    while (setting && setting[n])
        n++;
    *err = (ttn_error){0};
    const ttn_loaded_options o = {
        .table = w->table,
        .device = w->device,
        .config = config,
        .setting = setting,
        .n_setting = n,
        .log = &w->log,
    };
    return ttn_loaded_open(path, &o, ret, err);
}

/* Weight i of both, which must be in the same order. */
static int same_weights(const ttn_loaded *a, const ttn_loaded *b)
{
    ttn_error err = {0};
    assert_int_equal(ttn_weights_count(a->weights), ttn_weights_count(b->weights));
    int same = 1;
    for (int i = 0; i < ttn_weights_count(a->weights); i++) {
        const ttn_weight *w = ttn_weights_at(a->weights, i);
        void *x = ttn_alloc(w->bytes), *y = ttn_alloc(w->bytes);
        assert_true(x && y);
        assert_ok(ttn_weights_read(a->weights, i, TTN_SLAB_VALUE, x, &err), &err);
        assert_ok(ttn_weights_read(b->weights, i, TTN_SLAB_VALUE, y, &err), &err);
        same &= memcmp(x, y, w->bytes) == 0;
        ttn_free(x);
        ttn_free(y);
    }
    return same;
}

static void flip(const char *folder, const char *name, long at)
{
    char path[PATH_MAX];
    FILE *f = fopen(join(path, folder, name), "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    const int c = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    fputc(c ^ 1, f);
    fclose(f);
}

/* A folder with ckpt/step-00000007 of seed 1, and as the newer one ckpt/step-00000009 of seed 2, called after its step. */
static void make_run(const char *run, const char *best)
{
    char path[PATH_MAX];
    assert_int_equal(mkdir(run, 0777), 0);
    assert_int_equal(mkdir(join(path, run, "ckpt"), 0777), 0);
    tiny_save(join(path, run, "ckpt/step-00000007"), 1, NULL);
    tiny_save_step(join(path, run, "ckpt/step-00000009"), 9, 2, NULL);
    if (best) assert_int_equal(symlink(best, join(path, run, "ckpt/best")), 0);
}

/* ---- what is there ---- */

static void a_checkpoint_is_what_was_saved(void **state)
{
    (void)state;
    static const char *const setting[] = {"model.layers=3", "data.frame=none", "train.seed=12", "batch.rows=1440",
                                          NULL};
    world w;
    ttn_error err;
    ttn_loaded *a, *b, *c;
    build(&w);
    tiny_save(in_folder("one"), SEED, setting);
    tiny_save(in_folder("other"), SEED + 1, setting);
    assert_ok(load(&w, in_folder("one"), NULL, NULL, &a, &err), &err);
    assert_ok(load(&w, in_folder("one"), NULL, NULL, &b, &err), &err);
    assert_ok(load(&w, in_folder("other"), NULL, NULL, &c, &err), &err);
    assert_true(same_weights(a, b));
    assert_false(same_weights(a, c));
    assert_int_equal(a->step, TINY_STEP);
    assert_int_equal(a->model->layers, 3);
    assert_int_equal(a->rules.rows, 1440);
    assert_int_equal(a->rules.frame, TTN_FRAME_NONE);
    assert_int_equal(a->rules.objective, TTN_OBJECTIVE_MLM);
    assert_int_equal(a->seed, 12);
    assert_string_equal(a->alphabet->name, "esm");
    assert_string_equal(a->path, in_folder("one"));
    /* embedding, 3 layers, norm, head: C 24, F 96, V 33 */
    assert_int_equal(a->parameters, 33 * 24 + 3 * (4 * (24 * 24 + 24) + 2 * 24 * 96 + 24 + 96 + 4 * 24) + 2 * 24 +
                                        24 * 24 + 24 + 2 * 24 + 33);
    assert_string_equal(w.said, "");
    ttn_loaded_close(a);
    ttn_loaded_close(b);
    ttn_loaded_close(c);
    tear_down(&w);
}

static void settings_stand_over_the_models_configuration(void **state)
{
    (void)state;
    static const char *const setting[] = {"batch.rows=480", "mlm.rate=0.5", NULL};
    static const char *const wrong[] = {"batch.rows=x", NULL};
    world w;
    ttn_error err;
    ttn_loaded *m;
    build(&w);
    tiny_save(in_folder("settings"), SEED, NULL);
    assert_ok(load(&w, in_folder("settings"), NULL, setting, &m, &err), &err);
    assert_int_equal(m->rules.rows, 480);
    assert_true(m->rules.mlm.rate == 0.5);
    ttn_loaded_close(m);
    assert_fails(load(&w, in_folder("settings"), NULL, wrong, &m, &err), TTN_EINVAL, &err, "batch.rows");
    assert_null(m);
    tear_down(&w);
}

static void of_a_run_the_best_is_taken_or_the_newest(void **state)
{
    (void)state;
    world w;
    ttn_error err;
    ttn_loaded *m;
    build(&w);
    make_run(in_folder("with_best"), "step-00000007");
    make_run(in_folder("without_best"), NULL);
    assert_ok(load(&w, in_folder("with_best"), NULL, NULL, &m, &err), &err);
    assert_int_equal(m->step, 7);
    ttn_loaded_close(m);
    assert_ok(load(&w, in_folder("without_best"), NULL, NULL, &m, &err), &err);
    assert_int_equal(m->step, 9);
    ttn_loaded_close(m);
    assert_contains(w.said,
                    "without_best: the newest checkpoint, step 9, is used: none is known as the best, since none "
                    "was evaluated");
    tear_down(&w);
}

/* The state of the newest says which is the best, whatever has become of the link on the way through a zip or a bucket. */
static void the_best_is_known_without_its_link(void **state)
{
    (void)state;
    enum { BEST = 7, NEWEST = 11 };
    static const char *const links[] = {NULL, "step-00000009", "nowhere"};
    world w;
    ttn_error err;
    ttn_loaded *m;
    build(&w);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        char path[PATH_MAX], name[32];
        snprintf(name, sizeof name, "best_of_state_%zu", i);
        const char *run = in_folder(name);
        make_run(run, links[i]);
        tiny_save_best(join(path, run, "ckpt/step-00000011"), NEWEST, 3, BEST);
        assert_ok(load(&w, run, NULL, NULL, &m, &err), &err);
        assert_int_equal(m->step, BEST);
        assert_string_equal(w.said, "");
        ttn_loaded_close(m);
    }
    tear_down(&w);
}

/* It was removed by hand: the newest is taken, and that is said. */
static void a_best_that_is_not_there_is_told(void **state)
{
    (void)state;
    char path[PATH_MAX];
    world w;
    ttn_error err;
    ttn_loaded *m;
    build(&w);
    const char *run = in_folder("best_is_gone");
    make_run(run, NULL);
    tiny_save_best(join(path, run, "ckpt/step-00000011"), 11, 3, 5);
    assert_ok(load(&w, run, NULL, NULL, &m, &err), &err);
    assert_int_equal(m->step, 11);
    assert_contains(w.said, "the newest checkpoint, step 11, is used: the best one cannot be used: ");
    assert_contains(w.said, "step-00000005/MANIFEST.json: is missing");
    ttn_loaded_close(m);
    tear_down(&w);
}

static void a_damaged_best_is_passed_over_and_told(void **state)
{
    (void)state;
    world w;
    ttn_error err;
    ttn_loaded *m;
    build(&w);
    const char *run = in_folder("damaged_best");
    make_run(run, "step-00000007");
    flip(run, "ckpt/step-00000007/model.safetensors", 4000);
    assert_ok(load(&w, run, NULL, NULL, &m, &err), &err);
    assert_int_equal(m->step, 9);
    assert_contains(w.said, "the newest checkpoint, step 9, is used: the best one cannot be used: ");
    assert_contains(w.said, "ckpt/step-00000007/model.safetensors: is damaged");
    ttn_loaded_close(m);
    flip(run, "ckpt/step-00000009/state.json", 10);
    assert_fails(load(&w, run, NULL, NULL, &m, &err), TTN_ECHECKPOINT, &err, "none can be used");
    assert_null(m);
    tear_down(&w);
}

static void a_file_of_weights_needs_its_configuration(void **state)
{
    (void)state;
    world w;
    ttn_error err;
    ttn_loaded *whole, *m;
    build(&w);
    char file[PATH_MAX];
    const char *folder = in_folder("weights");
    join(file, folder, "model.safetensors");
    tiny_save(folder, SEED, NULL);
    FILE *f = fopen(in_folder("run.yaml"), "w");
    assert_non_null(f);
    fputs("model: {layers: 2, width: 24, heads: 2, token_dropout: yes}\n", f);
    fclose(f);
    assert_ok(load(&w, folder, NULL, NULL, &whole, &err), &err);
    assert_ok(load(&w, file, in_folder("run.yaml"), NULL, &m, &err), &err);
    assert_true(same_weights(whole, m));
    assert_int_equal(m->step, -1);
    assert_string_equal(m->path, file);
    ttn_loaded_close(m);
    assert_fails(load(&w, file, NULL, NULL, &m, &err), TTN_EINVAL, &err, "does not say what model they are of");
    assert_fails(load(&w, folder, in_folder("run.yaml"), NULL, &m, &err), TTN_EINVAL, &err,
                 "a checkpoint brings its own configuration");
    static const char *const wide[] = {"model.width=48", NULL};
    assert_fails(load(&w, file, in_folder("run.yaml"), wide, &m, &err), TTN_ECHECKPOINT, &err, "[48");
    static const char *const deep[] = {"model.layers=3", NULL};
    assert_fails(load(&w, file, in_folder("run.yaml"), deep, &m, &err), TTN_ECHECKPOINT, &err, "layer.2.");
    assert_null(m);
    assert_string_equal(w.said, "");
    /* What a file has too much of is told, and no fault: other heads stand beside published weights. */
    static const char *const shallow[] = {"model.layers=1", NULL};
    assert_ok(load(&w, file, in_folder("run.yaml"), shallow, &m, &err), &err);
    assert_contains(w.said, "layer.1.");
    ttn_loaded_close(m);
    ttn_loaded_close(whole);
    tear_down(&w);
}

/* 57 TB of weights: whoever takes memory first fails for want of it. */
static void a_model_that_the_file_is_not_of_takes_no_memory(void **state)
{
    (void)state;
    static const char *const huge[] = {"model.width=1048576", NULL};
    world w;
    ttn_error err;
    ttn_loaded *m;
    char file[PATH_MAX];
    build(&w);
    const char *folder = in_folder("small");
    join(file, folder, "model.safetensors");
    tiny_save(folder, SEED, NULL);
    FILE *f = fopen(in_folder("small.yaml"), "w");
    assert_non_null(f);
    fputs("model: {layers: 2, width: 24, heads: 2, token_dropout: yes}\n", f);
    fclose(f);
    assert_fails(load(&w, folder, NULL, huge, &m, &err), TTN_ECHECKPOINT, &err, "[1048576");
    assert_null(m);
    assert_fails(load(&w, file, in_folder("small.yaml"), huge, &m, &err), TTN_ECHECKPOINT, &err,
                 "and the model has [1048576");
    assert_null(m);
    tear_down(&w);
}

/* ---- what is not ---- */

static void what_is_no_model_is_told_for_what_it_is(void **state)
{
    (void)state;
    world w;
    ttn_error err;
    ttn_loaded *m;
    build(&w);
    assert_fails(load(&w, in_folder("nowhere"), NULL, NULL, &m, &err), TTN_EINVAL, &err,
                 "there is no such run, checkpoint or file");
    const char *folder = in_folder("empty");
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_fails(load(&w, folder, NULL, NULL, &m, &err), TTN_ECHECKPOINT, &err, "this folder is no run");
    char file[PATH_MAX], ckpt[PATH_MAX];
    FILE *f = fopen(join(file, folder, "config.json"), "w");
    assert_non_null(f);
    fclose(f);
    assert_fails(load(&w, folder, NULL, NULL, &m, &err), TTN_ECHECKPOINT, &err, "a model of another program");
    const char *run = in_folder("begun");
    assert_int_equal(mkdir(run, 0777), 0);
    assert_int_equal(mkdir(join(ckpt, run, "ckpt"), 0777), 0);
    assert_fails(load(&w, run, NULL, NULL, &m, &err), TTN_ECHECKPOINT, &err, "has not saved a checkpoint yet");
    assert_fails(load(&w, file, NULL, NULL, &m, &err), TTN_ECHECKPOINT, &err, "config.json");
    assert_null(m);
    tear_down(&w);
}

static void a_model_of_another_shape_is_told_with_both(void **state)
{
    (void)state;
    static const struct {
        const char *setting, *sentence;
    } cases[] = {
        {"model.width=48", "in this model F"},     {"model.layers=3", "has no tensor 'layer.2."},
        {"model.layers=1", "holds 'layer.1."},     {"model.tied=no", "has no tensor 'head.decoder.weight'"},
        {"data.alphabet=bert", "in this model F"},
    };
    world w;
    ttn_error err;
    ttn_loaded *m;
    build(&w);
    tiny_save(in_folder("shape"), SEED, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *setting[] = {cases[i].setting, NULL};
        assert_fails(load(&w, in_folder("shape"), NULL, setting, &m, &err), TTN_ECHECKPOINT, &err, cases[i].sentence);
        assert_null(m);
    }
    tear_down(&w);
}

/* attention.kind=auto was decided by the data of training: a setting that would decide otherwise now makes another model. */
static void automatic_attention_is_what_it_was_in_training(void **state)
{
    (void)state;
    static const char *const automatic[] = {"attention.kind=auto", NULL}, *const favor[] = {"attention.kind=favor",
                                                                                            NULL};
    world w;
    ttn_error err;
    ttn_loaded *m;
    build(&w);
    tiny_save(in_folder("auto"), SEED, automatic);
    assert_ok(load(&w, in_folder("auto"), NULL, NULL, &m, &err), &err);
    assert_string_equal(m->model->attention[0].kind, "exact");
    ttn_loaded_close(m);
    assert_fails(load(&w, in_folder("auto"), NULL, favor, &m, &err), TTN_ECHECKPOINT, &err, "has no tensor 'layer.0.");
    tear_down(&w);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_is_what_was_saved),
        cmocka_unit_test(settings_stand_over_the_models_configuration),
        cmocka_unit_test(of_a_run_the_best_is_taken_or_the_newest),
        cmocka_unit_test(the_best_is_known_without_its_link),
        cmocka_unit_test(a_best_that_is_not_there_is_told),
        cmocka_unit_test(a_damaged_best_is_passed_over_and_told),
        cmocka_unit_test(a_file_of_weights_needs_its_configuration),
        cmocka_unit_test(a_model_that_the_file_is_not_of_takes_no_memory),
        cmocka_unit_test(what_is_no_model_is_told_for_what_it_is),
        cmocka_unit_test(a_model_of_another_shape_is_told_with_both),
        cmocka_unit_test(automatic_attention_is_what_it_was_in_training),
    };
    return ttn_test_run(tests);
}
