/* Plans for many lengths: few of them, one region of memory, the same results as with a plan for each. */
#include <stdlib.h>
#include "autograd/cache.h"
#include "autograd/ops.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/model.h"
#include "tests/harness/test.h"

enum { WIDTH = 6 };

static void the_ladder_grows_by_a_quarter_in_whole_tiles(void **state)
{
    (void)state;
    assert_int_equal(ttn_ladder(0), 0);
    assert_int_equal(ttn_ladder(1), 480);
    assert_int_equal(ttn_ladder(480), 480);
    assert_int_equal(ttn_ladder(481), 960);
    int64_t below = 0;
    int rungs = 0;
    for (int64_t n = 1; n <= (int64_t)1 << 20; n = below + 1) {
        int64_t rung = ttn_ladder(n);
        assert_true(rung >= n && rung % TTN_GRAPH_TILE == 0);
        assert_int_equal(ttn_ladder(rung), rung);
        assert_true(rung - below <= TTN_GRAPH_TILE || 4 * (rung - below) <= below); /* never more than a quarter */
        below = rung;
        rungs++;
    }
    assert_true(rungs < 40); /* up to a million rows */
    const int64_t most = INT64_MAX / TTN_GRAPH_TILE * TTN_GRAPH_TILE;
    assert_int_equal(ttn_ladder(INT64_MAX), most);
    assert_int_equal(ttn_ladder(-5), 0);
}

typedef struct {
    int loss;
    int fail;
} recorder;

static ttn_status record(void *ctx, ttn_extent cap, int mode, ttn_graph **g, ttn_plan_options *o, ttn_error *err)
{
    recorder *r = ctx;
    model_config c = {.layers = 2, .width = WIDTH, .hidden = 8, .capacity = cap, .marked = mode == 1};
    model m = model_record(&c);
    *g = m.g;
    r->loss = m.loss;
    o->n_loss = mode == 2 ? 0 : 1;
    o->loss = &r->loss;
    o->keep = &r->loss;
    o->n_keep = 1;
    if (r->fail) return TTN_FAIL(err, TTN_EFORMAT, "recording failed as told");
    return ttn_graph_check(m.g, err);
}

static double run(ttn_plan *p, const recorder *r, const real *x, int64_t rows)
{
    ttn_error err = {0};
    real loss;
    ttn_feed f = {.used = {.rows = rows}};
    assert_ok(ttn_plan_bind(p, "x", x, &err), &err);
    assert_ok(ttn_plan_bind(p, "target", x, &err), &err);
    assert_ok(ttn_plan_run(p, &f, NULL, &err), &err);
    assert_ok(ttn_plan_read(p, r->loss, &loss, &err), &err);
    return (double)loss;
}

/* Lengths up and down, three modes, room for four plans: as many plans as rungs, the same loss as any time before. */
static void plans_are_made_once_a_rung_and_mode(void **state)
{
    (void)state;
    ttn_error err = {0};
    recorder r = {0};
    model_config c = {.layers = 2, .width = WIDTH, .hidden = 8, .capacity = {.rows = 480}};
    model m = model_record(&c);
    ttn_weights *w;
    ttn_plan_cache *cache;
    ttn_plan *p;
    assert_ok(ttn_weights_create(m.g, NULL, &w, &err), &err);
    assert_ok(ttn_weights_init(w, 1, &err), &err);
    assert_ok(ttn_plan_cache_create(record, &r, w, NULL, 4, (size_t)1 << 32, &cache, &err), &err);
    real *x = ttn_alloc_array(2000 * WIDTH, sizeof *x);
    ttn_rng_normal(1, 0, 2000 * WIDTH, x);

    static const int64_t lengths[] = {100, 1900, 479, 480, 1500, 3, 950};
    double loss[7] = {0};
    for (int round = 0; round < 3; round++) /* 2: inference */
        for (int i = 0; i < 7; i++) {
            assert_ok(ttn_plan_cache_get(cache, (ttn_extent){.rows = lengths[i]}, round, &p, &err), &err);
            double now = run(p, &r, x, lengths[i]);
            if (round == 0) loss[i] = now;
            assert_true(now == loss[i]);
        }
    assert_int_equal(ttn_plan_cache_made(cache), 3 * 3); /* rungs 480, 960 and 1920 */
    ttn_plan_cache_destroy(cache);
    ttn_weights_destroy(w);
    ttn_graph_destroy(m.g);
    ttn_free(x);
}

static void the_least_recently_used_plan_goes(void **state)
{
    (void)state;
    ttn_error err = {0};
    recorder r = {0};
    ttn_plan_cache *cache;
    ttn_plan *p;
    assert_ok(ttn_plan_cache_create(record, &r, NULL, NULL, 2, (size_t)1 << 32, &cache, &err), &err);
    static const int64_t rows[] = {480, 960, 480, 1440, 480, 960};
    static const int64_t made[] = {1, 2, 2, 3, 3, 4};
    for (int i = 0; i < 6; i++) {
        assert_ok(ttn_plan_cache_get(cache, (ttn_extent){.rows = rows[i]}, 0, &p, &err), &err);
        assert_int_equal(ttn_plan_cache_made(cache), made[i]);
    }
    ttn_plan_cache_destroy(cache);
}

static void a_failed_recording_is_reported_and_forgotten(void **state)
{
    (void)state;
    ttn_error err = {0};
    recorder r = {.fail = 1};
    ttn_plan_cache *cache;
    ttn_plan *p;
    assert_fails(ttn_plan_cache_create(record, &r, NULL, NULL, 0, 1, &cache, &err), TTN_EINVAL, &err, "0 plans");
    err = (ttn_error){0};
    assert_ok(ttn_plan_cache_create(record, &r, NULL, NULL, 2, (size_t)1 << 32, &cache, &err), &err);
    assert_fails(ttn_plan_cache_get(cache, (ttn_extent){.rows = 1}, 0, &p, &err), TTN_EFORMAT, &err, "as told");
    assert_null(p);
    err = (ttn_error){0};
    assert_fails(ttn_plan_cache_get(cache, (ttn_extent){0}, 0, &p, &err), TTN_EFORMAT, &err, "as told");
    r.fail = 0;
    err = (ttn_error){0};
    assert_ok(ttn_plan_cache_get(cache, (ttn_extent){0}, 0, &p, &err), &err);
    assert_non_null(p);
    assert_ok(ttn_plan_cache_get(cache, (ttn_extent){.rows = 1}, 0, &p, &err), &err);
    assert_int_equal(ttn_plan_cache_made(cache), 2);
    ttn_plan_cache_destroy(cache);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ladder_grows_by_a_quarter_in_whole_tiles),
        cmocka_unit_test(plans_are_made_once_a_rung_and_mode),
        cmocka_unit_test(the_least_recently_used_plan_goes),
        cmocka_unit_test(a_failed_recording_is_reported_and_forgotten),
    };
    return ttn_test_run(tests);
}
