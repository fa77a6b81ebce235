#include <stdio.h>
#include <string.h>
#include "autograd/graph.h"
#include "core/memory.h"
#include "tests/harness/saved.h"
#include "tests/harness/test.h"

/* ---- the model ---- */

void saved_create(saved_model *m, int64_t width)
{
    ttn_error err = {0};
    ttn_graph *g = ttn_graph_create((ttn_extent){0});
    ttn_param(g, "embed.weight", ttn_matrix(2 * width, width), (ttn_init){0}, TTN_NO_DECAY);
    ttn_param(g, "layer.0.q.weight", ttn_matrix(width, width), (ttn_init){0}, 0);
    ttn_param(g, "layer.0.q.bias", ttn_vector(width), (ttn_init){0}, 0);
    ttn_param(g, "layer.0.scale", (ttn_desc){.type = TTN_REAL}, (ttn_init){0}, 0);
    ttn_param(g, "layer.0.empty", ttn_vector(0), (ttn_init){0}, 0);
    ttn_param(g, "head.weight", ttn_matrix(width, width), (ttn_init){0}, TTN_FROZEN);
    ttn_state(g, "layer.0.favor.draws", ttn_typed(ttn_vector(5), TTN_I64));
    *m = (saved_model){0};
    assert_ok(ttn_weights_create(g, NULL, &m->w, &err), &err);
    assert_ok(ttn_weights_require(m->w, TTN_SLAB_V, &err), &err);
    ttn_graph_destroy(g);
    m->more[0] = (ttn_named_tensor){"average", ttn_desc_of(TTN_F64, TTN_FIXED, 1, SAVED_MORE, 0, 0), m->average};
    m->more[1] = (ttn_named_tensor){"count", ttn_desc_of(TTN_I64, TTN_FIXED, 1, SAVED_MORE, 0, 0), m->count};
}

void saved_destroy(saved_model *m)
{
    ttn_weights_destroy(m->w);
    m->w = NULL;
}

/* Number `at` of something called `name` at a step: finite, all bits in use, now and then a denormal or -0. */
static double number(const char *name, int64_t step, int64_t at)
{
    uint64_t x = (uint64_t)step * 1000003u + (uint64_t)at;
    for (const char *c = name; *c; c++)
        x = x * 31 + (unsigned char)*c;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    if (x % 50 == 0) return -0.0;
    if (x % 50 == 1) return 1e-40; /* a denormal of float */
    return (double)(int64_t)x * 0x1p-60;
}

static void fill_bytes(void *to, const ttn_desc *d, const char *name, int64_t step)
{
    const int64_t n = ttn_desc_numel(d);
    for (int64_t i = 0; i < n; i++) {
        const double x = number(name, step, i);
        if (ttn_dtype_stored(d->type) == TTN_F32)
            ((float *)to)[i] = (float)x;
        else if (ttn_dtype_stored(d->type) == TTN_F64)
            ((double *)to)[i] = x;
        else
            ((int64_t *)to)[i] = (int64_t)(x * 1000);
    }
}

/* Slabs have one name each in number(). */
static const char *slab_name(const ttn_weight *weight, ttn_slab slab, char *text)
{
    if (slab == TTN_SLAB_VALUE) return weight->name;
    return ttn_moment_name(slab, weight->name, text);
}

/* Calls visit for every tensor of the weights that is saved. */
static void each(const saved_model *m, int64_t step,
                 void (*visit)(ttn_weights *w, int i, ttn_slab slab, void *made, size_t bytes))
{
    for (int i = 0; i < ttn_weights_count(m->w); i++)
        for (ttn_slab slab = TTN_SLAB_VALUE; slab <= TTN_SLAB_V; slab++) {
            const ttn_weight *weight = ttn_weights_at(m->w, i);
            char text[TTN_MOMENT_NAME];
            if (slab == TTN_SLAB_GRADIENT || (slab != TTN_SLAB_VALUE && weight->is_state)) continue;
            if (!ttn_weights_address(m->w, i, slab)) continue;
            void *made = ttn_alloc(weight->bytes);
            assert_non_null(made);
            fill_bytes(made, &weight->desc, slab_name(weight, slab, text), step);
            visit(m->w, i, slab, made, weight->bytes);
            ttn_free(made);
        }
}

static void put(ttn_weights *w, int i, ttn_slab slab, void *made, size_t bytes)
{
    (void)bytes;
    ttn_error err = {0};
    assert_ok(ttn_weights_write(w, i, slab, made, &err), &err);
}

static void compare(ttn_weights *w, int i, ttn_slab slab, void *made, size_t bytes)
{
    ttn_error err = {0};
    void *got = ttn_alloc(bytes);
    assert_non_null(got);
    assert_ok(ttn_weights_read(w, i, slab, got, &err), &err);
    assert_same_bits(got, made, bytes);
    ttn_free(got);
}

void saved_fill(saved_model *m, int64_t step)
{
    each(m, step, put);
    for (int i = 0; i < SAVED_N_MORE; i++)
        fill_bytes((void *)m->more[i].data, &m->more[i].desc, m->more[i].name, step);
}

void saved_check(const saved_model *m, int64_t step)
{
    each(m, step, compare);
    for (int i = 0; i < SAVED_N_MORE; i++) {
        double made[SAVED_MORE];
        fill_bytes(made, &m->more[i].desc, m->more[i].name, step);
        assert_same_bits(m->more[i].data, made, sizeof made);
    }
}

/* ---- the state ---- */

static const char config_text[] = "train.steps: 100 # from run.yaml:12\nnotes: \"\xC3\xA4\"\n";

ttn_run_state saved_state(int64_t step)
{
    static ttn_named_number seed[2], draw[1];
    static double window[3];
    static ttn_named_series series[2];
    seed[0] = (ttn_named_number){"init", UINT64_MAX};
    seed[1] = (ttn_named_number){"data", 7};
    draw[0] = (ttn_named_number){"layer.0.favor.draws", (uint64_t)step / 10};
    window[0] = 1.0 / 3;
    window[1] = 5e-324;
    window[2] = (double)step;
    series[0] = (ttn_named_series){"norms", window, 3};
    series[1] = (ttn_named_series){"nothing yet", window, 0};
    return (ttn_run_state){
        .step = step,
        .cursor = {.epoch = step / 100, .window = step % 100, .batch = step > 0 ? 3 : 0},
        .config = config_text,
        .seed = seed,
        .n_seed = 2,
        .draw = draw,
        .n_draw = 1,
        .series = series,
        .n_series = 2,
        .device = "cpu",
        .kernel = "Zen",
        .row_tile = 480,
        .batch_align = 12,
        .ranks = 1,
        .shards = 4,
    };
}

static void check_numbers(const ttn_named_number *a, int n_a, const ttn_named_number *b, int n_b)
{
    assert_int_equal(n_a, n_b);
    for (int i = 0; i < n_a; i++) {
        assert_string_equal(a[i].name, b[i].name);
        assert_true(a[i].value == b[i].value);
    }
}

void saved_check_state(const ttn_run_state *s, int64_t step)
{
    const ttn_run_state wanted = saved_state(step);
    assert_int_equal(s->step, step);
    assert_int_equal(s->cursor.epoch, wanted.cursor.epoch);
    assert_int_equal(s->cursor.window, wanted.cursor.window);
    assert_int_equal(s->cursor.batch, wanted.cursor.batch);
    assert_string_equal(s->config, wanted.config);
    check_numbers(s->seed, s->n_seed, wanted.seed, wanted.n_seed);
    check_numbers(s->draw, s->n_draw, wanted.draw, wanted.n_draw);
    assert_int_equal(s->n_series, wanted.n_series);
    for (int i = 0; i < s->n_series; i++) {
        assert_string_equal(s->series[i].name, wanted.series[i].name);
        assert_int_equal(s->series[i].n, wanted.series[i].n);
        assert_same_bits(s->series[i].value, wanted.series[i].value, (size_t)s->series[i].n * sizeof(double));
    }
    assert_string_equal(s->device, wanted.device);
    assert_string_equal(s->kernel, wanted.kernel);
    assert_string_equal(s->real, TTN_REAL_NAME);
    assert_int_equal(s->row_tile, wanted.row_tile);
    assert_int_equal(s->batch_align, wanted.batch_align);
    assert_int_equal(s->ranks, wanted.ranks);
    assert_int_equal(s->shards, wanted.shards);
}

/* ---- to the disk and back ---- */

ttn_status saved_write(saved_model *m, const char *path, int64_t step, int *in_place, ttn_error *err)
{
    ttn_snapshot *s;
    const ttn_run_state state = saved_state(step);
    saved_fill(m, step);
    ttn_status status = ttn_snapshot_create(m->w, NULL, m->more, SAVED_N_MORE, &s, err);
    if (status == TTN_OK) status = ttn_snapshot_take(s, m->w, m->more, &state, err);
    if (status == TTN_OK) status = ttn_checkpoint_write(s, path, in_place, err);
    ttn_snapshot_destroy(s);
    return status;
}

ttn_status saved_load(saved_model *m, const ttn_checkpoint *c, ttn_error *err)
{
    ttn_status status = ttn_checkpoint_load(c, m->w, NULL, 1, err);
    for (int i = 0; i < SAVED_N_MORE && status == TTN_OK; i++)
        status =
            ttn_checkpoint_read(c, TTN_PART_OPTIMIZER, m->more[i].name, &m->more[i].desc, (void *)m->more[i].data, err);
    return status;
}

/* ---- what was said ---- */

char saved_said[16384];

static void hear(void *ctx, ttn_log_level level, const char *text)
{
    (void)ctx;
    size_t n = strlen(saved_said);
    snprintf(saved_said + n, sizeof saved_said - n, "%s: %s\n", ttn_log_level_name(level), text);
}

const ttn_log saved_log = {.say = hear};

void saved_forget(void)
{
    saved_said[0] = 0;
}
