/* What a step will take: against sums made by hand, and against what training makes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/start.h"
#include "tests/harness/test.h"
#include "train/config.h"
#include "train/forecast.h"
#include "train/forecast_facts.h"
#include "train/trainer.h"

/* Sizes are said for single precision, and are twice as large in double. */
#define MIB ((double)(1 << 20) * sizeof(real) / sizeof(float))
#define GIB (1024 * MIB)

enum { MOST_SETTINGS = 16 };

typedef struct {
    ttn_config_table *table;
    ttn_config *config;
    ttn_forecast *f;
    const ttn_forecast_facts *facts;
    ttn_status status;
    ttn_error err;
} world;

/* "train.memory=…", so many bytes; good for the next 4 calls. */
static const char *memory(double bytes)
{
    static char room[4][40];
    static int next;
    char *text = room[next++ % 4];
    snprintf(text, sizeof room[0], "train.memory=%" PRId64, (int64_t)bytes);
    return text;
}

/* A machine of 64 GiB that makes 10^11 products a second. */
static void look(world *w, int64_t fit, const char *const *setting)
{
    int n = 0;
    *w = (world){0};
    while (setting[n])
        n++;
    assert_ok(ttn_config_table_of_titin(&w->table, &w->err), &w->err);
    assert_ok(
        ttn_config_load(w->table, &(ttn_config_request){.argument = setting, .n_argument = n}, &w->config, &w->err),
        &w->err);
    const ttn_forecast_request r = {
        .values = ttn_config_values(w->config),
        .ram = {.present = (int64_t)64 << 30, .available = (int64_t)64 << 30, .usable = (int64_t)64 << 30},
        .rate = 1e11,
        .n_thread = 2,
        .fit = fit,
    };
    w->status = ttn_forecast_create(&r, &w->f, &w->err);
    w->facts = w->f ? ttn_forecast_of(w->f) : NULL;
}

static const ttn_forecast_facts *must(world *w, int64_t fit, const char *const *setting)
{
    look(w, fit, setting);
    assert_ok(w->status, &w->err);
    return w->facts;
}

static void drop(world *w)
{
    ttn_forecast_destroy(w->f);
    ttn_config_destroy(w->config);
    ttn_config_table_destroy(w->table);
}

/* Two numbers, of which the second was made by hand, are at most `part` of it apart. */
static void near(double got, double by_hand, double part, const char *what)
{
    assert_at_most(fabs(got - by_hand) / by_hand, part, what);
}

/* ---- a million residues ---- */

/* Bytes of one value (N, C) of 2^20 residues and a few: N is a whole number of tiles. */
static double value(double width)
{
    return 1048800 * width * sizeof(real);
}

/* What remains when all that can be is computed twice: what each layer begins with, and within the one whose backward pass
 * is going on, at attention's:
 *     norm1, q and k before and behind rotary (4; of these one is not needed any more), v,
 *     gradients: of the sum behind attention, of what attention returned, of q, of k
 * and the tiles of its workspace, which are about one more. */
enum { IN_A_LAYER = 9, WORKSPACE = 1 };

/* Kept of each layer when nothing is computed twice but the feed-forward block's hidden rows, which are made by tiles:
 *     norm1, q, k, v, attention, first sum, norm2, second sum
 * and before the first one the embedding; at the peak, in the last layer's feed-forward block, gradients of both sums and of
 * norm2, and not any more the last sum, whose norm is done with. */
enum { OF_A_LAYER = 8, GRADIENTS = 3, LAST_SUM = 1 };

/* The row statistics beside them: log-sums of attention for each head, mean and deviation of norms. */
static double statistics(double layers, double heads)
{
    return layers * (heads + 4) * 1048800 * sizeof(real);
}

static void a_million_residues_of_width_512_fit_into_46_gib(void **state)
{
    (void)state;
    world w;
    const char *setting[] = {"model.width=512",
                             "model.layers=12",
                             "batch.rows=1048576",
                             "data.max_seqs=1",
                             memory(46 * GIB),
                             "attention.kind=exact",
                             NULL};
    const ttn_forecast_facts *f = must(&w, 0, setting);
    assert_int_equal(f->capacity.extent.rows, 1048800);
    assert_int_equal(f->capacity.extent.seqs, 1);
    assert_true((double)f->plan->bytes <= 46 * GIB);
    near((double)f->plan->bytes, (12 + IN_A_LAYER + WORKSPACE) * value(512), 0.01, "width 512: against a sum by hand");
    drop(&w);
}

static void a_million_residues_of_width_256_fit_into_16_5_gib(void **state)
{
    (void)state;
    world w;
    const char *setting[] = {"model.width=256",
                             "model.layers=6",
                             "batch.rows=1048576",
                             "data.max_seqs=1",
                             memory(16.5 * GIB),
                             "attention.kind=exact",
                             NULL};
    const ttn_forecast_facts *f = must(&w, 0, setting);
    assert_true((double)f->plan->bytes <= 16.5 * GIB);
    near((double)f->plan->bytes, (6 + IN_A_LAYER + WORKSPACE) * value(256), 0.01, "width 256: against a sum by hand");
    drop(&w);
}

static void with_the_hidden_rows_by_tiles_alone_it_is_52_gib(void **state)
{
    (void)state;
    world w;
    const char *setting[] = {"model.width=256",
                             "model.layers=6",
                             "batch.rows=1048576",
                             "data.max_seqs=1",
                             memory(52 * GIB),
                             "attention.kind=exact",
                             NULL};
    const ttn_forecast_facts *f = must(&w, 0, setting);
    const double by_hand = (OF_A_LAYER * 6 + 1 + GRADIENTS - LAST_SUM) * value(256) + statistics(6, 8);
    assert_true(by_hand <= 52 * GIB);
    assert_true((double)f->plan->bytes <= 52 * GIB);
    near((double)f->plan->bytes, by_hand, 0.01, "hidden rows by tiles: against a sum by hand");
    assert_at_most(f->more, 0.002,
                   "work that it costs"); /* a few norms: attention over 2^20 residues is all the work */
    /* And with the hidden rows, of four times the width, whole. */
    near((double)f->everything, by_hand + (4 * 6 + LAST_SUM) * value(256), 0.02,
         "everything kept: against a sum by hand");
    drop(&w);
}

/* ---- parameters ---- */

static const ttn_parameter_group *group_of(const ttn_forecast_facts *f, const char *name)
{
    for (int i = 0; i < f->n_group; i++)
        if (strcmp(f->group[i].name, name) == 0) return &f->group[i];
    fail_msg("no group %s", name);
    return NULL;
}

static void parameters_are_counted_by_what_they_belong_to(void **state)
{
    (void)state;
    world w;
    static const char *const setting[] = {"model.width=64", "model.layers=3", "model.heads=4", NULL};
    const ttn_forecast_facts *f = must(&w, 0, setting);
    const int64_t C = 64, F = 256, V = 33, L = 3;
    assert_int_equal(group_of(f, "embed")->parameters, V * C);
    assert_int_equal(group_of(f, "layer.*.attn")->parameters, L * 4 * (C * C + C));
    assert_int_equal(group_of(f, "layer.*.attn")->tensors, L * 8);
    assert_int_equal(group_of(f, "layer.*.ffn")->parameters, L * (2 * C * F + C + F));
    assert_int_equal(group_of(f, "layer.*.norm1")->parameters, L * 2 * C);
    assert_int_equal(group_of(f, "layer.*.norm2")->parameters, L * 2 * C);
    assert_int_equal(group_of(f, "norm")->parameters, 2 * C);
    assert_int_equal(group_of(f, "head")->parameters, C * C + C + 2 * C + V);
    assert_int_equal(f->n_group, 7);
    int64_t sum = 0;
    for (int i = 0; i < f->n_group; i++)
        sum += f->group[i].parameters;
    assert_int_equal(f->parameters, sum);
    /* Values, gradients, two moments, each in blocks of 2 MiB, and three of them once more while they are saved; two blocks of
     * the optimizer. */
    const int64_t slab = sum * (int64_t)sizeof(real);
    assert_int_equal(f->held, 4 * ((slab + (2 << 20) - 1) / (2 << 20)) * (2 << 20) + 3 * slab + 2 * (2 << 20));
    drop(&w);
}

/* Published sizes of ESM-2, without the regression that reads contacts off its maps; and that of a model which no machine
 * here holds: nothing of its size is allocated. */
static void published_models_have_their_published_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *layers, *width, *heads;
        double parameters, part;
    } models[] = {
        {"model.layers=6", "model.width=320", "model.heads=20", 7512474 - (6 * 20 + 1), 0},
        {"model.layers=12", "model.width=480", "model.heads=20", 33501394 - (12 * 20 + 1), 0},
        {"model.layers=48", "model.width=5120", "model.heads=40", 15.1e9, 0.005},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        world w;
        const char *setting[] = {models[i].layers, models[i].width, models[i].heads, memory(1000 * GIB), NULL};
        near((double)must(&w, 0, setting)->parameters, models[i].parameters, models[i].part, "parameters of ESM-2");
        drop(&w);
    }
}

/* ---- it is what training does ---- */

/* What is asked of the sequences of a data set is their length alone. */
static int64_t length_of(const void *self, int64_t i)
{
    (void)self;
    (void)i;
    return 100;
}

static ttn_status tokens_of(void *self, int64_t i, int64_t first, int64_t n, uint8_t *into, ttn_error *err)
{
    (void)i;
    (void)first;
    (void)err;
    const ttn_alphabet *a = self;
    memset(into, a->residue[0], (size_t)n);
    return TTN_OK;
}

static void the_plan_is_that_of_training(void **state)
{
    (void)state;
    const char *memories[] = {memory(1 * GIB), memory(20 * MIB)};
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++) {
        world w;
        ttn_error err = {0};
        const char *setting[] = {"model.width=32", "model.layers=3",   "model.heads=2",     "batch.rows=4800",
                                 memories[i],      "data.max_len=100", "model.dropout=0.1", NULL};
        const ttn_forecast_facts *f = must(&w, 0, setting);
        const ttn_sequences from = {
            .self = (void *)f->alphabet,
            .alphabet = f->alphabet,
            .n = 500,
            .length = length_of,
            .tokens = tokens_of,
        };
        ttn_device *device;
        assert_ok(ttn_device_cpu(&device, &err), &err);
        ttn_trainer_options o = {
            .model = f->model,
            .from = &from,
            .device = device,
            .rules = f->rules,
            .shards = 1,
            .budget = (size_t)f->budget,
            .n_thread = 2,
        };
        ttn_trainer *t;
        assert_ok(ttn_optim_spec_of(ttn_config_values(w.config), &o.optim, &err), &err);
        assert_ok(ttn_schedule_of(ttn_config_values(w.config), 10, &o.schedule, &err), &err);
        assert_ok(ttn_batch_capacity_of(&o.rules, &from, NULL, &o.capacity, &err), &err);
        assert_int_equal(o.capacity.extent.seqs, f->capacity.extent.seqs);
        assert_int_equal(o.capacity.extent.picks, f->capacity.extent.picks);
        assert_ok(ttn_trainer_create(&o, &t, &err), &err);
        const ttn_plan_report *r = ttn_trainer_plan(t);
        assert_int_equal(r->bytes, f->plan->bytes);
        assert_int_equal(r->n_again, f->plan->n_again);
        assert_true(r->done == f->plan->done);
        assert_int_equal(r->n_again > 0, i == 1);
        assert_true((f->more > 0) == (i == 1));
        ttn_trainer_destroy(t);
        ttn_device_destroy(device);
        drop(&w);
    }
}

static void a_step_is_its_shards(void **state)
{
    (void)state;
    world one, four;
    static const char *const once[] = {"model.width=32", "model.heads=2", "batch.rows=960", NULL};
    static const char *const often[] = {"model.width=32", "model.heads=2", "batch.rows=960", "train.shards=4", NULL};
    const ttn_forecast_facts *a = must(&one, 0, once), *b = must(&four, 0, often);
    near(b->done, 4 * a->done, 1e-12, "work of four shards");
    near(b->seconds, 4 * a->seconds, 1e-12, "time of four shards");
    assert_int_equal(a->plan->bytes, b->plan->bytes);
    assert_int_equal(b->held, a->held + 2 * (2 << 20)); /* two levels of sums, of one block each */
    drop(&one);
    drop(&four);
}

static void work_by_op_is_all_the_work(void **state)
{
    (void)state;
    world w;
    const char *setting[] = {"model.width=64", "model.heads=2", "batch.rows=4800", memory(40 * MIB), NULL};
    const ttn_forecast_facts *f = must(&w, 0, setting);
    double done = 0, seconds = 0;
    int64_t steps = 0;
    for (int i = 0; i < f->n_op; i++) {
        done += f->op[i].done;
        seconds += f->op[i].seconds;
        steps += f->op[i].steps;
        assert_true(i == 0 || f->op[i].seconds <= f->op[i - 1].seconds);
    }
    near(done, f->plan->done, 1e-12, "work of all ops");
    near(seconds, f->seconds, 1e-12, "time of all ops");
    assert_int_equal(steps, f->plan->n_step);
    drop(&w);
}

/* ---- sequences that nobody has read ---- */

static void sequences_of_a_batch_are_assumed_or_given(void **state)
{
    (void)state;
    static const struct {
        const char *setting;
        int64_t length, seqs;
    } cases[] = {
        {"data.max_len=0", 353, 68},    /* 1.5 * 16,320 / 360, of rows in steps of 12 */
        {"data.max_len=100", 100, 227}, /* … / 108 */
        {"data.max_len=1000", 353, 68}, {"data.max_seqs=7", 0, 7}, {"data.max_seqs=1", 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        const char *setting[] = {"model.width=32", "model.heads=2", cases[i].setting, NULL};
        const ttn_forecast_facts *f = must(&w, 0, setting);
        assert_int_equal(f->length, cases[i].length);
        assert_int_equal(f->capacity.extent.seqs, cases[i].seqs);
        assert_int_equal(f->capacity.extent.rows, 16320);
        drop(&w);
    }
    world w;
    static const char *const small[] = {"model.width=32", "model.heads=2", "batch.rows=100", NULL};
    assert_int_equal(must(&w, 0, small)->length, 353); /* a tile of 480 rows */
    drop(&w);
}

/* ---- the longest sequence ---- */

static void the_longest_sequence_is_the_longest(void **state)
{
    (void)state;
    enum { STEP = 480 };
    const int64_t room = (int64_t)200 << 20;
    world w;
    static const char *const setting[] = {"model.width=64", "model.layers=2", "model.heads=2", NULL};
    const ttn_forecast_facts *f = must(&w, room, setting);
    const int64_t longest = f->fit.residues, held = f->held;
    assert_true(longest > 10000);
    assert_int_equal(f->fit.rows, longest + 2);
    assert_true(f->fit.bytes <= room && f->fit.bytes > room / 10 * 9);
    assert_true(f->fit.again > 0 && f->fit.more > 0 && f->fit.seconds > 0);
    drop(&w);
    for (int more = 0; more < 2; more++) {
        char rows[40];
        snprintf(rows, sizeof rows, "batch.rows=%" PRId64, (int64_t)(longest + 2 + more * STEP));
        const char *again[] = {"model.width=64",
                               "model.layers=2",
                               "model.heads=2",
                               "data.max_seqs=1",
                               rows,
                               memory((double)(room - held)),
                               NULL};
        look(&w, 0, again);
        assert_int_equal(w.status, more ? TTN_ENOMEM : TTN_OK);
        drop(&w);
    }
}

static void a_table_of_positions_ends_the_longest_sequence(void **state)
{
    (void)state;
    world w;
    static const char *const setting[] = {"model.width=64",          "model.layers=2",           "model.heads=2",
                                          "model.positions=learned", "model.max_positions=1026", NULL};
    const ttn_forecast_facts *f = must(&w, (int64_t)8 << 30, setting);
    assert_int_equal(f->fit.residues, 1024);
    assert_int_equal(f->fit.rows, 1440);
    drop(&w);
    f = must(&w, 1 << 20, setting);
    assert_int_equal(f->fit.residues, 0); /* weights alone take more */
    drop(&w);
}

/* ---- what cannot be ---- */

static void too_little_memory_is_told_with_what_would_do(void **state)
{
    (void)state;
    world w;
    const char *setting[] = {"model.width=64", "model.layers=2", "model.heads=2", memory(1 * MIB), NULL};
    look(&w, 0, setting);
    assert_int_equal(w.status, TTN_ENOMEM);
    assert_contains(w.err.text, "train.memory");
    assert_contains(w.err.text, "lower batch.rows");
    assert_contains(w.err.text, "would do");
    drop(&w);
}

static void all_of_it_can_be_told(void **state)
{
    (void)state;
    world w;
    const char *setting[] = {"model.width=64", "model.layers=8",  "model.heads=2",
                             memory(60 * MIB), "batch.rows=4800", NULL};
    const ttn_forecast_facts *f = must(&w, (int64_t)1 << 30, setting);
    for (int most = 0; most < 20; most += 6) {
        ttn_facts *facts;
        assert_ok(ttn_facts_create(&facts, &w.err), &w.err);
        ttn_forecast_tell(f, most, facts);
        assert_ok(ttn_facts_status(facts, &w.err), &w.err);
        /* Of what is alive, shown or summed up, every byte. */
        int64_t bytes = 0, rows = 0;
        const ttn_fact *x = ttn_facts_at(facts);
        int64_t at = 0;
        while (!(x[at].kind == TTN_FACT_OPEN_LIST && strcmp(x[at].key, "alive") == 0))
            at++;
        for (at++; x[at].kind != TTN_FACT_CLOSE; at += 5) { /* open, name, what, bytes, close */
            assert_int_equal(x[at + 3].kind, TTN_FACT_BYTES);
            bytes += x[at + 3].integer;
            rows++;
        }
        assert_int_equal(bytes, f->plan->peak);
        assert_int_equal(rows, most == 0 ? f->plan->n_alive : most + 1);
        ttn_facts_destroy(facts);
    }
    drop(&w);
}

static void what_attention_notes_is_a_warning(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        int64_t warnings;
    } example[] = {{"favor.kernel=tanh", 1}, {"favor.kernel=relu", 0}};
    for (int i = 0; i < 2; i++) {
        world w;
        const char *setting[] = {"model.width=16",
                                 "model.layers=2",
                                 "model.heads=2",
                                 "batch.rows=480",
                                 "attention.kind=favor",
                                 example[i].kernel,
                                 NULL};
        const ttn_forecast_facts *f = must(&w, 0, setting);
        ttn_facts *facts;
        assert_ok(ttn_facts_create(&facts, &w.err), &w.err);
        ttn_forecast_tell(f, 0, facts);
        assert_int_equal(ttn_facts_warning_count(facts), example[i].warnings);
        if (example[i].warnings) assert_contains(ttn_facts_warning(facts, 0), "favor.renormalize: rms");
        ttn_facts_destroy(facts);
        drop(&w);
    }
}

/* Four times the features: four times the work of attention, and the plan says so. */
static void features_are_paid_for_in_the_plan(void **state)
{
    (void)state;
    static const char *const features[] = {"favor.features=2048", "favor.features=8192"};
    double work[2] = {0};
    for (int i = 0; i < 2; i++) {
        world w;
        const char *setting[] = {"model.width=16",
                                 "model.layers=1",
                                 "model.heads=2",
                                 "batch.rows=480",
                                 "attention.kind=favor",
                                 features[i],
                                 NULL};
        const ttn_forecast_facts *f = must(&w, 0, setting);
        for (int k = 0; k < f->n_op; k++)
            if (strcmp(f->op[k].op, "attn_favor") == 0) work[i] = f->op[k].done;
        assert_true(work[i] > 0.5 * f->done);
        drop(&w);
    }
    near(work[1] / work[0], 4, 1e-3, "work of four times the features");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_residues_of_width_512_fit_into_46_gib),
        cmocka_unit_test(a_million_residues_of_width_256_fit_into_16_5_gib),
        cmocka_unit_test(with_the_hidden_rows_by_tiles_alone_it_is_52_gib),
        cmocka_unit_test(parameters_are_counted_by_what_they_belong_to),
        cmocka_unit_test(published_models_have_their_published_sizes),
        cmocka_unit_test(the_plan_is_that_of_training),
        cmocka_unit_test(a_step_is_its_shards),
        cmocka_unit_test(work_by_op_is_all_the_work),
        cmocka_unit_test(sequences_of_a_batch_are_assumed_or_given),
        cmocka_unit_test(the_longest_sequence_is_the_longest),
        cmocka_unit_test(a_table_of_positions_ends_the_longest_sequence),
        cmocka_unit_test(too_little_memory_is_told_with_what_would_do),
        cmocka_unit_test(all_of_it_can_be_told),
        cmocka_unit_test(what_attention_notes_is_a_warning),
        cmocka_unit_test(features_are_paid_for_in_the_plan),
    };
    return ttn_test_run(tests);
}
