/* Runs from their configuration to their end, in folders of their own: stopped at any moment they go on to the bit, what goes
 * wrong is told, and nothing good is lost by it. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/rng.h"
#include "core/start.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/files/run_folder.h"
#include "train/loaded.h"
#include "train/replay.h"
#include "train/resume.h"
#include "train/training.h"

enum { MOST_THREADS = 8, SEED = 3, N_PROTEIN = 60, STEPS = 12, EVAL_EVERY = 4, SAVE_EVERY = 3 };

static char base[PATH_MAX / 4]; /* the folder of the tests */
static char fasta[PATH_MAX / 2];
static ttn_config_table *table;

/* ---- files ---- */

/* base/NAME; good for the next 8 calls. */
static const char *in_base(const char *format, ...) TTN_PRINTF(1, 2);
static const char *in_base(const char *format, ...)
{
    static char path[8][PATH_MAX];
    static int next;
    char *p = path[next++ % 8];
    const int n = snprintf(p, PATH_MAX, "%s/", base);
    va_list args;
    va_start(args, format);
    vsnprintf(p + n, (size_t)(PATH_MAX - n), format, args);
    va_end(args);
    return p;
}

static int is_there(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

static char *contents(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    char *text = calloc(1, *n + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, *n, f), *n);
    fclose(f);
    return text;
}

/* Every other protein is made of other residues. */
static void write_fasta(const char *path, uint64_t seed)
{
    static const char letters[] = "ACDEFGHIKLMNPQRSTVWY";
    ttn_rng rng = {.key = seed};
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < N_PROTEIN; i++) {
        const int64_t n = 20 + (int64_t)ttn_rng_next_below(&rng, 60);
        fprintf(f, ">protein_%d\n", i);
        for (int64_t j = 0; j < n; j++)
            fputc(letters[(i % 2) * 10 + (int64_t)ttn_rng_next_below(&rng, 10)], f);
        fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
}

/* ---- a run ---- */

/* What a test may turn, and what it sees. */
typedef struct {
    const char *folder, *planned;
    const char *const *setting; /* NULL at the end; NULL: none */
    int resumes, may_change, n_thread;
    const char *checkpoint;
    int64_t stop_at_ask;  /* the wish to stop comes with this answer; 0: never */
    int64_t stop_at_step; /* or when so many steps are made; 0: never */
    int64_t save_at_ask;
    int stops_packing;
    int64_t poison_at, heal_at; /* behind this step a weight becomes huge, and what it was; 0: never */

    /* left behind */
    int64_t asked, steps, saved, evaluated, n_best;
    char said[8192];
    real healthy;
    ttn_training *t;
    ttn_config *config;
} session;

static void say(void *ctx, ttn_log_level level, const char *text)
{
    (void)level;
    session *s = ctx;
    const size_t n = strlen(s->said);
    snprintf(s->said + n, sizeof s->said - n, "%s\n", text);
}

/* The weight by which a test makes values overflow: finite itself, so that it can be saved. */
static real *victim(const session *s)
{
    ttn_weights *w = ttn_trainer_weights(ttn_training_trainer(s->t));
    return ttn_weights_address(w, ttn_weights_find(w, "norm.gain"), TTN_SLAB_VALUE);
}

static const real huge = sizeof(real) == 8 ? (real)1e300 : (real)1e38;

static void see(void *ctx, const ttn_training_event *e)
{
    session *s = ctx;
    switch (e->what) {
    case TTN_TRAINING_STEP:
        s->steps++;
        assert_int_equal(e->done, e->step->step + 1);
        if (s->poison_at && e->done == s->poison_at) {
            s->healthy = *victim(s);
            *victim(s) = huge;
        }
        if (s->heal_at && e->done == s->heal_at) *victim(s) = s->healthy;
        break;
    case TTN_TRAINING_EVALUATES:
        break;
    case TTN_TRAINING_EVALUATED:
        s->evaluated++;
        s->n_best += e->is_best;
        break;
    case TTN_TRAINING_SAVED:
        s->saved++;
        break;
    }
}

static ttn_wish wish(void *ctx)
{
    session *s = ctx;
    s->asked++;
    if (s->asked == s->stop_at_ask) return TTN_WISH_STOP;
    if (s->stop_at_step > 0 && s->steps >= s->stop_at_step) return TTN_WISH_STOP;
    return s->asked == s->save_at_ask ? TTN_WISH_SAVE : TTN_WISH_NONE;
}

static int tell_packing(void *ctx, const ttn_pack_progress *p)
{
    (void)p;
    return ((session *)ctx)->stops_packing;
}

enum { MOST_SETTINGS = 40 };

static void configure(session *s)
{
    ttn_error err = {0};
    char data[PATH_MAX], steps[64], eval[64], save[64];
    snprintf(data, sizeof data, "data.train=%s", fasta);
    snprintf(steps, sizeof steps, "train.steps=%d", STEPS);
    snprintf(eval, sizeof eval, "train.eval_every=%d", EVAL_EVERY);
    snprintf(save, sizeof save, "train.save_every=%d", SAVE_EVERY);
    const char *setting[MOST_SETTINGS] = {
        data,
        steps,
        eval,
        save,
        "train.log_every=1",
        "data.split=sequence",
        "data.valid=0.2",
        "batch.rows=480",
        "train.shards=2",
        "model.layers=1",
        "model.width=16",
        "model.heads=2",
        "model.dropout=0.1",
        "model.token_dropout=yes",
        "optim.lr=0.01",
        "schedule.warmup=3",
    };
    int n = 16;
    for (const char *const *more = s->setting; more && *more; more++)
        setting[n++] = *more;
    assert_ok(ttn_config_load(table, &(ttn_config_request){.argument = setting, .n_argument = n}, &s->config, &err),
              &err);
}

static ttn_status begin(session *s, ttn_error *err)
{
    static ttn_log log;
    static ttn_pack_listener packing;
    static const char *const command[] = {"titin", "train", "test"};
    configure(s);
    log = (ttn_log){.say = say, .ctx = s, .from = TTN_LOG_INFO};
    packing = (ttn_pack_listener){.tell = tell_packing, .ctx = s};
    return ttn_training_create(
        &(ttn_training_options){
            .table = table,
            .config = s->config,
            .folder = s->folder,
            .planned = s->planned,
            .beside = in_base("data"),
            .checkpoint = s->checkpoint,
            .resumes = s->resumes,
            .may_change = s->may_change,
            .n_thread = s->n_thread ? s->n_thread : 2,
            .command = command,
            .n_command = 3,
            .build = "of a test",
            .log = &log,
            .packing = &packing,
            .tell = see,
            .wish = wish,
            .ctx = s,
        },
        &s->t, err);
}

static void end(session *s)
{
    ttn_training_destroy(s->t);
    ttn_config_destroy(s->config);
    s->t = NULL;
    s->config = NULL;
}

/* One number for weights, moments and what was measured, without what belongs to the machine and the hour. */
static uint64_t hash(const session *s)
{
    const ttn_weights *w = ttn_trainer_weights(ttn_training_trainer(s->t));
    const ttn_slab which[] = {TTN_SLAB_VALUE, TTN_SLAB_M, TTN_SLAB_V};
    uint64_t h = 0;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        h = ttn_hash64(ttn_weights_slab(w, which[i]), (size_t)ttn_weights_slab_elements(w) * sizeof(real), h);
    const ttn_history *history = ttn_training_history(s->t);
    for (int64_t i = 0; i < history->n; i++) {
        const ttn_series *x = &history->series[i];
        if (ttn_metric_is_perf(x->name)) continue;
        h = ttn_hash64(x->step, (size_t)x->n * sizeof *x->step, h);
        h = ttn_hash64(x->value, (size_t)x->n * sizeof *x->value, h);
    }
    return h;
}

/* From its start, or its checkpoint, to its end. */
static void complete(session *s)
{
    ttn_error err = {0};
    assert_ok(begin(s, &err), &err);
    assert_ok(ttn_training_run(s->t, &err), &err);
}

/* The same of a run with far too high a learning rate. */
static void complete_diverging(session *s)
{
    ttn_error err = {0};
    assert_ok(begin(s, &err), &err);
    assert_int_equal(ttn_training_run(s->t, &err), TTN_ENUMERIC);
    assert_contains(err.text, "diverged");
}

/* The lines of metrics.jsonl as they are, but for perf/… and dates: what a history is read from. */
static uint64_t hash_of_lines(const char *folder)
{
    size_t n;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    char *text = contents(path, &n);
    uint64_t h = 0;
    for (char *line = text; *line;) {
        char *line_end = line + strcspn(line, "\n");
        char *perf = strstr(line, ",\"perf/"), *date = strstr(line, "\"date\":");
        assert_non_null(date);
        const char *behind = strchr(date, ',') + 1;
        const char *stop = perf && perf < line_end ? perf : line_end;
        h = ttn_hash64(line, (size_t)(date - line), h);
        h = ttn_hash64(behind, (size_t)(stop - behind), h);
        line = *line_end ? line_end + 1 : line_end;
    }
    free(text);
    return h;
}

/* What a run that nobody stops comes to. */
static uint64_t whole, whole_lines;
static int64_t whole_best;

/* Every step was logged: together they take no longer than the run, and no more rows than there are. */
static void assert_performance(const session *s, double seconds)
{
    const ttn_history *h = ttn_training_history(s->t);
    const ttn_series *taken = ttn_history_find(h, ttn_metric_perf_step_s);
    const ttn_series *fill = ttn_history_find(h, ttn_metric_perf_fill);
    double sum = 0;
    assert_int_equal(taken->n, STEPS);
    assert_int_equal(fill->n, STEPS);
    for (int i = 0; i < STEPS; i++) {
        sum += taken->value[i];
        assert_true(fill->value[i] > 0.3 && fill->value[i] <= 1);
    }
    assert_true(sum > 0 && sum <= seconds);
}

/* ---- a run that goes well ---- */

static void a_run_leaves_what_it_says(void **state)
{
    (void)state;
    session s = {.folder = in_base("whole")};
    const double begun = ttn_clock_now(NULL);
    complete(&s);
    assert_performance(&s, ttn_clock_now(NULL) - begun);
    whole = hash(&s);
    assert_int_equal(s.steps, STEPS);
    assert_int_equal(s.evaluated, STEPS / EVAL_EVERY);
    assert_true(s.n_best >= 1);
    assert_int_equal(ttn_training_facts_of(s.t)->resumed, -1);
    end(&s);
    whole_lines = hash_of_lines(in_base("whole"));
    whole_best = ttn_run_best(in_base("whole"));
    const char *const files[] = {"config.resolved.yaml", "run.json",  "metrics.jsonl", "tb", "loss.svg",
                                 "report.html",          "ckpt/best", "ckpt/latest"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_true(is_there(in_base("whole/%s", files[i])));
    int64_t *step, n;
    ttn_error err = {0};
    assert_ok(ttn_run_checkpoints(in_base("whole"), &step, &n, &err), &err);
    assert_int_equal(step[0], STEPS);
    assert_true(n <= 4); /* the last three, and the best */
    ttn_free(step);
    size_t bytes;
    char *text = contents(in_base("whole/run.json"), &bytes);
    assert_contains(text, "\"of a test\"");
    free(text);
}

static void another_number_of_threads_has_the_same_bits(void **state)
{
    (void)state;
    const int threads[] = {1, 3, 8};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        session s = {.folder = in_base("threads-%d", threads[i]), .n_thread = threads[i]};
        complete(&s);
        assert_int_equal(hash(&s), whole);
        end(&s);
    }
}

/* The loss of the best checkpoint is the lowest, and ckpt/best leads to it, however many came later. */
static void the_best_checkpoint_stays(void **state)
{
    (void)state;
    const char *const setting[] = {"train.keep=1", "train.eval_every=2", "train.save_every=1", "optim.lr=1", NULL};
    session s = {.folder = in_base("best"), .setting = setting};
    complete_diverging(&s);
    const ttn_series *loss = ttn_history_find(ttn_training_history(s.t), ttn_metric_val_loss);
    int64_t lowest = 0;
    for (int64_t i = 1; i < loss->n; i++)
        if (loss->value[i] < loss->value[lowest]) lowest = i;
    /* With such a learning rate it is not the last one, or this test shows nothing. */
    assert_true(lowest < loss->n - 1);
    int64_t *step, n;
    ttn_error err = {0};
    assert_int_equal(ttn_run_best(s.folder), (int64_t)loss->step[lowest]);
    assert_ok(ttn_run_checkpoints(s.folder, &step, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(step[0], STEPS);
    assert_int_equal(step[1], (int64_t)loss->step[lowest]);
    ttn_free(step);
    /* Nor does a run that was stopped in between take a worse one for the best. */
    const int64_t best = (int64_t)loss->step[lowest];
    end(&s);
    session stopped = {.folder = in_base("best-stopped"), .setting = setting, .stop_at_step = best + 1};
    assert_ok(begin(&stopped, &err), &err);
    assert_int_equal(ttn_training_run(stopped.t, NULL), TTN_ESTOPPED);
    end(&stopped);
    /* Also where the link was lost meanwhile: state.json knows the step, and the link is made again. */
    char name[TTN_STEP_NAME];
    assert_int_equal(remove(in_base("best-stopped/ckpt/best")), 0);
    session on = {.folder = stopped.folder, .setting = setting, .resumes = 1};
    complete_diverging(&on);
    assert_true(on.evaluated > 0);
    assert_int_equal(on.n_best, 0);
    assert_int_equal(ttn_run_best(on.folder), best);
    assert_true(is_there(in_base("best-stopped/ckpt/%s/model.safetensors", ttn_step_name(best, name))));
    assert_true(is_there(in_base("best-stopped/ckpt/best/model.safetensors")));
    end(&on);
}

/* Saved as any other, since it was trained to its end; the first checkpoint, which is better, is the best. */
static void a_run_that_ends_far_above_its_first_loss_has_diverged(void **state)
{
    (void)state;
    const char *const setting[] = {"train.eval_every=2", "train.save_every=1", "optim.lr=1", NULL};
    session s = {.folder = in_base("diverged"), .setting = setting};
    ttn_error err = {0};
    assert_ok(begin(&s, &err), &err);
    assert_fails(ttn_training_run(s.t, &err), TTN_ENUMERIC, &err, "diverged: the training loss has been above 7.");
    assert_contains(err.text, "lower optim.lr");
    assert_contains(err.text, "; ckpt/best is of step 2");
    assert_int_equal(ttn_training_has_diverged(s.t), 1);
    int64_t *step, n;
    ttn_error why = {0};
    assert_ok(ttn_run_checkpoints(s.folder, &step, &n, &why), &why);
    assert_int_equal(step[0], STEPS);
    ttn_free(step);
    end(&s);
}

static void a_warm_up_beyond_the_end_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *warmup;
        int is_said;
    } cases[] = {{"schedule.warmup=13", 1}, {"schedule.warmup=12", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const setting[] = {cases[i].warmup, NULL};
        session s = {.setting = setting};
        ttn_error err = {0};
        assert_ok(begin(&s, &err), &err);
        const char *const said = strstr(s.said, "schedule.warmup has 13 steps and the run 12: it ends before");
        assert_int_equal(said != NULL, cases[i].is_said);
        end(&s);
    }
}

/* ---- stopped, and going on ---- */

/* The wish comes before the first step, between steps, in the middle of an evaluation, when a checkpoint is being saved, and
 * at the end; and once at every one of these in turn. */
static void stopped_at_any_moment_it_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    session count = {.folder = in_base("count")};
    complete(&count);
    end(&count);
    const int64_t stride = ttn_test_long() ? 1 : count.asked / ttn_scaled(10, 3);
    assert_true(count.asked > STEPS + 3); /* evaluations ask, too */
    for (int64_t k = 1; k <= count.asked; k += stride) {
        session s = {.folder = in_base("stop-%" PRId64, k), .stop_at_ask = k};
        ttn_error err = {0};
        assert_ok(begin(&s, &err), &err);
        assert_fails(ttn_training_run(s.t, &err), TTN_ESTOPPED, &err, "--resume goes on from there");
        end(&s);
        session on = {.folder = s.folder, .resumes = 1, .n_thread = 3};
        complete(&on);
        assert_true(ttn_training_facts_of(on.t)->resumed >= 0);
        assert_true(ttn_training_facts_of(on.t)->is_exact);
        assert_int_equal(hash(&on), whole);
        end(&on);
        assert_int_equal(hash_of_lines(s.folder), whole_lines);
        assert_int_equal(ttn_run_best(s.folder), whole_best);
    }
}

static int is_a_file_of_events(const struct dirent *e)
{
    return strncmp(e->d_name, "events.", 7) == 0;
}

/* The step in the second record of the newest file: from there on, TensorBoard takes what earlier files say for void. */
static int board_is_void_from(const char *folder)
{
    enum { FRAME = 12, CHECKSUM = 4, DATE = 9, KEY_OF_STEP = 2 << 3 };
    struct dirent **file;
    size_t size;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/tb", folder);
    const int n = scandir(path, &file, is_a_file_of_events, alphasort);
    assert_true(n > 0);
    snprintf(path, sizeof path, "%s/tb/%s", folder, file[n - 1]->d_name);
    for (int i = 0; i < n; i++)
        free(file[i]);
    free(file);
    char *bytes = contents(path, &size);
    const size_t second = FRAME + (size_t)bytes[0] + CHECKSUM + FRAME;
    assert_true(size > second + DATE + 1);
    assert_int_equal(bytes[second + DATE], KEY_OF_STEP);
    const int step = bytes[second + DATE + 1];
    free(bytes);
    return step;
}

/* What was measured after the last step before the checkpoint belongs to it, and stays. */
static void tensorboard_keeps_what_the_checkpoint_has_seen(void **state)
{
    (void)state;
    ttn_error err = {0};
    session s = {.folder = in_base("board"), .stop_at_ask = 7};
    assert_ok(begin(&s, &err), &err);
    assert_int_equal(board_is_void_from(s.folder), 1);
    assert_fails(ttn_training_run(s.t, &err), TTN_ESTOPPED, &err, "--resume goes on from there");
    const int stopped_at = (int)s.steps;
    end(&s);
    session on = {.folder = s.folder, .resumes = 1};
    err = (ttn_error){0};
    assert_ok(begin(&on, &err), &err);
    assert_int_equal(ttn_training_facts_of(on.t)->resumed, stopped_at);
    assert_int_equal(board_is_void_from(s.folder), stopped_at + 1);
    end(&on);
}

/* Stopped on the way and begun again, a run of this setting ends as one that was not stopped. Its folder. */
static const char *goes_on(const char *name, const char *const *setting)
{
    session s = {.folder = in_base("%s", name), .setting = setting};
    complete(&s);
    const uint64_t end_of_it = hash(&s);
    end(&s);
    session part = {.folder = in_base("%s-2", name), .setting = setting, .stop_at_ask = 9};
    ttn_error err = {0};
    assert_ok(begin(&part, &err), &err);
    assert_fails(ttn_training_run(part.t, &err), TTN_ESTOPPED, &err, "");
    end(&part);
    session on = {.folder = part.folder, .setting = setting, .resumes = 1};
    complete(&on);
    assert_true(ttn_training_facts_of(on.t)->resumed > 5);
    assert_int_equal(hash(&on), end_of_it);
    end(&on);
    return on.folder;
}

/* Random projections that are drawn again are states, and functions of the step. */
static void attention_with_states_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    goes_on("favor", (const char *const[]){"attention.kind=favor", "favor.redraw=5", NULL});
}

/* Of the model of its checkpoints: the kind of attention in the first layer. */
static void assert_loads_as(const char *folder, const char *kind)
{
    ttn_error err = {0};
    ttn_device *device;
    ttn_loaded *m;
    assert_ok(ttn_device_cpu(&device, &err), &err);
    assert_ok(ttn_loaded_open(folder, &(ttn_loaded_options){.table = table, .device = device}, &m, &err), &err);
    assert_string_equal(m->model->attention[0].kind, kind);
    ttn_loaded_close(m);
    ttn_device_destroy(device);
}

static void a_model_without_queries_and_keys_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    const char *const setting[] = {"attention.kind=none", "none.qk=no", "attention.qk_norm=yes", NULL};
    assert_loads_as(goes_on("values", setting), "none");
}

/* The lengths of the data decide when the run begins, also for who has its checkpoints alone. Proteins here have 20 to 79
 * residues. */
static void automatic_attention_is_that_of_training(void **state)
{
    (void)state;
    static const char *const of_length[][3] = {
        {"attention.kind=auto", "attention.auto_length=60", NULL},
        {"attention.kind=auto", "attention.auto_length=100", NULL},
    };
    static const char *const kind[] = {"favor", "exact"};
    for (int i = 0; i < 2; i++) {
        session s = {.folder = in_base("auto-%d", i), .setting = of_length[i], .stop_at_ask = 4};
        ttn_error err = {0};
        assert_ok(begin(&s, &err), &err);
        assert_string_equal(ttn_training_facts_of(s.t)->model->attention[0].kind, kind[i]);
        assert_fails(ttn_training_run(s.t, &err), TTN_ESTOPPED, &err, "");
        end(&s);
        assert_loads_as(s.folder, kind[i]);
        session on = {.folder = s.folder, .setting = of_length[i], .resumes = 1};
        complete(&on);
        end(&on);
        assert_loads_as(on.folder, kind[i]);
    }
}

/* Every record of a step has what the op's table says, layer by layer, folded over its micro-batches. */
static void attention_says_how_it_is(void **state)
{
    (void)state;
    static const char *const told[] = {
        "favor/0/norm_mean",     "favor/0/norm_most", "favor/0/denominator_least", "favor/0/denominator_not_positive",
        "favor/0/rows_given_up", "favor/0/error",     "favor/0/error_of_mean",     "nystrom/2/residual",
        "nystrom/2/row_sum",     "nystrom/2/z_norm",
    };
    static const char *const not_told[] = {"favor/0/norm_sum", "favor/0/norm_rows", "favor/0/error_size",
                                           "favor/1/error", "favor/2/error"};
    const char *const setting[] = {"model.layers=3", "attention.layers=[favor, exact, nystrom]", "nystrom.landmarks=8",
                                   NULL};
    session s = {.folder = in_base("says"), .setting = setting};
    complete(&s);
    const ttn_history *h = ttn_training_history(s.t);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        const ttn_series *x = ttn_history_find(h, told[i]);
        if (!x) fail_msg("nothing is said of %s", told[i]);
        assert_int_equal(x->n, STEPS);
        for (int64_t k = 0; k < x->n; k++)
            assert_true(isfinite(x->value[k]));
    }
    for (size_t i = 0; i < sizeof not_told / sizeof *not_told; i++)
        assert_null(ttn_history_find(h, not_told[i]));
    for (int64_t k = 0; k < STEPS; k++) {
        assert_true(ttn_history_find(h, "favor/0/norm_mean")->value[k] <=
                    ttn_history_find(h, "favor/0/norm_most")->value[k]);
        assert_true(ttn_history_find(h, "favor/0/denominator_least")->value[k] >= 1);
    }
    end(&s);
}

static void what_attention_notes_is_said_when_a_run_begins(void **state)
{
    (void)state;
    const char *const setting[] = {"attention.kind=favor", "favor.kernel=tanh", NULL};
    session s = {.folder = in_base("notes"), .setting = setting};
    ttn_error err = {0};
    assert_ok(begin(&s, &err), &err);
    assert_contains(s.said, "with favor.renormalize: rms");
    end(&s);
}

static void a_run_that_is_at_its_end_has_nothing_to_do(void **state)
{
    (void)state;
    session s = {.folder = in_base("whole"), .resumes = 1};
    complete(&s);
    assert_int_equal(s.steps, 0);
    assert_int_equal(s.evaluated, 0);
    assert_int_equal(hash(&s), whole);
    end(&s);
}

static void a_wish_to_save_is_fulfilled_and_changes_nothing(void **state)
{
    (void)state;
    const char *const setting[] = {"train.save_every=0", "train.eval_every=0", NULL};
    session s = {.folder = in_base("wish"), .setting = setting, .save_at_ask = 6};
    complete(&s);
    assert_int_equal(s.evaluated, 1); /* at the end */
    end(&s);
    assert_true(is_there(in_base("wish/ckpt/step-00000005")));
    assert_true(is_there(in_base("wish/ckpt/step-00000012")));
    assert_int_equal(s.saved, 2);
}

/* A byte of the newest one is another: the older one is used, that is said, and the end is the same. */
static void a_damaged_checkpoint_is_passed_over(void **state)
{
    (void)state;
    session s = {.folder = in_base("damaged"), .stop_at_ask = 10};
    ttn_error err = {0};
    assert_ok(begin(&s, &err), &err);
    assert_int_equal(ttn_training_run(s.t, NULL), TTN_ESTOPPED);
    end(&s);
    int64_t *step, n;
    assert_ok(ttn_run_checkpoints(s.folder, &step, &n, &err), &err);
    assert_true(n >= 2);
    char name[TTN_STEP_NAME];
    FILE *f = fopen(in_base("damaged/ckpt/%s/model.safetensors", ttn_step_name(step[0], name)), "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, -5, SEEK_END), 0);
    const int byte = fgetc(f);
    assert_int_equal(fseek(f, -5, SEEK_END), 0);
    fputc(byte ^ 1, f);
    assert_int_equal(fclose(f), 0);
    session on = {.folder = s.folder, .resumes = 1};
    complete(&on);
    assert_int_equal(ttn_training_facts_of(on.t)->resumed, step[1]);
    assert_contains(on.said, "is passed over");
    assert_int_equal(hash(&on), whole);
    end(&on);
    ttn_free(step);
}

/* ---- what is refused ---- */

static void another_run_is_not_written_over(void **state)
{
    (void)state;
    session s = {.folder = in_base("whole")};
    ttn_error err = {0};
    assert_fails(begin(&s, &err), TTN_EINVAL, &err, "there is a run, saved at step 12: --resume goes on with it");
    end(&s);
    /* Nor by another process at the same time. */
    session first = {.folder = in_base("twice")}, second = {.folder = in_base("twice"), .resumes = 1};
    err = (ttn_error){0};
    assert_ok(begin(&first, &err), &err);
    assert_fails(begin(&second, &err), TTN_EINVAL, &err, "");
    end(&second);
    end(&first);
}

static void without_a_checkpoint_going_on_is_beginning(void **state)
{
    (void)state;
    session s = {.folder = in_base("nothing"), .resumes = 1};
    complete(&s);
    assert_contains(s.said, "has no checkpoint: the run begins");
    assert_int_equal(hash(&s), whole);
    end(&s);
}

static void stop_after(const char *folder, int64_t ask)
{
    session s = {.folder = folder, .stop_at_ask = ask};
    assert_int_equal(begin(&s, NULL), TTN_OK);
    assert_int_equal(ttn_training_run(s.t, NULL), TTN_ESTOPPED);
    end(&s);
}

static void a_changed_configuration_is_shown_and_judged(void **state)
{
    (void)state;
    const char *folder = in_base("changed");
    stop_after(folder, 5);
    static const struct {
        const char *setting[2];
        int may_change;
        ttn_status status;
        const char *words;
    } cases[] = {
        {{"model.width=32"}, 1, TTN_EINVAL, "cannot go on with another value of model.width"},
        {{"train.seed=2"}, 1, TTN_EINVAL, "cannot go on with another value of train.seed"},
        {{"optim.lr=0.02"}, 0, TTN_EINVAL, "the configuration is not the run's: optim.lr; add --allow-change"},
        {{"train.steps=14"}, 0, TTN_EINVAL, "train.steps; add --allow-change"},
        {{"optim.lr=0.02"}, 1, TTN_OK, "changed: optim.lr: 0.01 "},
        {{"train.log_every=2"}, 0, TTN_OK, "changed: train.log_every: 1 "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        session s = {.folder = folder, .resumes = 1, .setting = cases[i].setting, .may_change = cases[i].may_change};
        ttn_error err = {0};
        const ttn_status status = begin(&s, &err);
        assert_int_equal(status, cases[i].status);
        assert_contains(status == TTN_OK ? s.said : err.text, cases[i].words);
        end(&s);
    }
}

/* A key that nobody thought of may not change. */
static void keys_are_fixed_unless_somebody_has_thought_about_them(void **state)
{
    (void)state;
    int n;
    const ttn_option *row = ttn_config_rows(table, &n);
    int free_keys = 0;
    for (int i = 0; i < n; i++)
        free_keys += ttn_resume_key_of(row[i].name) == TTN_KEY_FREE;
    assert_int_equal(free_keys, 8); /* and the notes: those of the table in train/resume.c */
    assert_int_equal(ttn_resume_key_of("notes.author"), TTN_KEY_FREE);
    assert_int_equal(ttn_resume_key_of("optim.lr"), TTN_KEY_ASKED);
    assert_int_equal(ttn_resume_key_of("model.layers"), TTN_KEY_FIXED);
    assert_int_equal(ttn_resume_key_of("something.new"), TTN_KEY_FIXED);
}

static void what_does_not_fit_together_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *setting[4];
        const char *words;
    } cases[] = {
        {{"train.steps=0"}, "how long to train is not said"},
        {{"train.epochs=1"}, "train.steps and train.epochs; set all but one of them to 0"},
        {{"train.memory=lots"}, "train.memory: 'lots'"},
        {{"train.shards=3"}, "expected a power of two"},
        {{"data.max_len=100000", "model.positions=learned", "model.max_positions=8"}, "model.max_positions"},
        {{"model.heads=3"}, "model.heads: 3 heads do not divide model.width"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        session s = {.folder = in_base("refused-%zu", i), .setting = cases[i].setting};
        ttn_error err = {0};
        assert_fails(begin(&s, &err), TTN_EINVAL, &err, cases[i].words);
        end(&s);
    }
}

static void every_preset_says_how_long_it_trains(void **state)
{
    (void)state;
    for (const ttn_config_preset *p = ttn_config_presets; p->name; p++) {
        ttn_error err = {0};
        ttn_config *c;
        ttn_train_spec spec;
        assert_ok(
            ttn_config_load(table, &(ttn_config_request){.presets = ttn_config_presets, .preset = p->name}, &c, &err),
            &err);
        assert_ok(ttn_train_spec_of(ttn_config_values(c), &spec, &err), &err);
        ttn_config_destroy(c);
    }
}

static void too_little_memory_says_what_to_lower(void **state)
{
    (void)state;
    const char *const rows[] = {"train.memory=20k", "batch.rows=4800", NULL}, *const length[] = {"train.memory=20k",
                                                                                                 NULL};
    session s = {.folder = in_base("memory"), .setting = rows};
    ttn_error err = {0};
    assert_fails(begin(&s, &err), TTN_ENOMEM, &err, "lower batch.rows, which is 4800 and must be 480 at least");
    assert_contains(err.text, "bytes would do");
    end(&s);
    session t = {.folder = in_base("memory-2"), .setting = length};
    err = (ttn_error){0};
    assert_fails(begin(&t, &err), TTN_ENOMEM, &err, "data.max_len");
    end(&t);
}

/* ---- how long ---- */

static void tokens_and_epochs_are_steps(void **state)
{
    (void)state;
    const char *const epochs[] = {"train.steps=0", "train.epochs=2", NULL};
    const char *const tokens[] = {"train.steps=0", "train.tokens=5k", NULL};
    session e = {.folder = in_base("epochs"), .setting = epochs};
    complete(&e);
    const ttn_training_facts *f = ttn_training_facts_of(e.t);
    /* Each residue of the training side is seen twice. */
    assert_int_equal(ttn_trainer_where(ttn_training_trainer(e.t)).residues, 2 * f->train.residues);
    assert_true(llabs(f->steps - e.steps) <= 1);
    end(&e);
    session t = {.folder = in_base("tokens"), .setting = tokens};
    complete(&t);
    assert_int_equal(t.steps, ttn_training_facts_of(t.t)->steps);
    /* To the nearest step, of some 800 residues. */
    const double residues = (double)ttn_trainer_where(ttn_training_trainer(t.t)).residues;
    assert_at_most(fabs(residues - 5000), 1000, "residues of a run of 5,000");
    end(&t);
}

/* ---- data ---- */

static void files_are_packed_once_and_again_when_they_change(void **state)
{
    (void)state;
    session s = {.folder = in_base("pack")};
    ttn_error err = {0};
    char own[PATH_MAX], path[PATH_MAX], data[PATH_MAX + 16];
    snprintf(own, sizeof own, "%s", in_base("own.fa"));
    snprintf(data, sizeof data, "data.train=%s", own);
    const char *const setting[] = {data, NULL};
    s.setting = setting;
    write_fasta(own, 7);
    assert_ok(begin(&s, &err), &err);
    assert_contains(s.said, "packed 1 file to ");
    snprintf(path, sizeof path, "%s", ttn_dataset_path(ttn_training_facts_of(s.t)->data));
    end(&s);
    session again = {.folder = in_base("pack-2"), .setting = setting};
    assert_ok(begin(&again, &err), &err);
    assert_null(strstr(again.said, "packed"));
    assert_string_equal(ttn_dataset_path(ttn_training_facts_of(again.t)->data), path);
    end(&again);
    write_fasta(own, 8);
    session changed = {.folder = in_base("pack-3"), .setting = setting};
    assert_ok(begin(&changed, &err), &err);
    assert_contains(changed.said, "packed 1 file to ");
    assert_string_not_equal(ttn_dataset_path(ttn_training_facts_of(changed.t)->data), path);
    end(&changed);
    /* A link that leads nowhere in place of the store is not written through. */
    write_fasta(own, 7);
    char moved[PATH_MAX + 16];
    snprintf(moved, sizeof moved, "%s.moved", path);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink("nowhere.h5", path), 0);
    session planted = {.folder = in_base("pack-planted"), .setting = setting};
    assert_fails(begin(&planted, &err), TTN_EINVAL, &err, "is a link that leads nowhere");
    end(&planted);
    assert_false(is_there(in_base("data/nowhere.h5")));
    assert_int_equal(remove(path), 0);
    assert_int_equal(rename(moved, path), 0);
    err = (ttn_error){0};
    /* The store itself is data as well; for another vocabulary it is none. */
    char store[PATH_MAX + 16];
    snprintf(store, sizeof store, "data.train=%s", path);
    const char *const from_store[] = {store, NULL}, *const other[] = {store, "data.alphabet=bert", NULL};
    session direct = {.folder = in_base("pack-4"), .setting = from_store};
    assert_ok(begin(&direct, &err), &err);
    end(&direct);
    session foreign = {.folder = in_base("pack-5"), .setting = other};
    assert_fails(begin(&foreign, &err), TTN_EINVAL, &err, "was packed for the alphabet 'esm'");
    end(&foreign);
}

static void stopped_while_packing_nothing_is_left(void **state)
{
    (void)state;
    char own[PATH_MAX], data[PATH_MAX + 16];
    snprintf(own, sizeof own, "%s", in_base("stopped.fa"));
    snprintf(data, sizeof data, "data.train=%s", own);
    const char *const setting[] = {data, NULL};
    write_fasta(own, 9);
    session s = {.folder = in_base("packing"), .setting = setting, .stops_packing = 1};
    ttn_error err = {0};
    assert_fails(begin(&s, &err), TTN_ESTOPPED, &err, "");
    end(&s);
    s = (session){.folder = in_base("packing"), .setting = setting, .resumes = 1};
    err = (ttn_error){0};
    assert_ok(begin(&s, &err), &err);
    assert_contains(s.said, "packed 1 file to ");
    end(&s);
}

/* ---- numbers that are not finite ---- */

static void a_step_that_is_not_finite_is_skipped_and_written_down(void **state)
{
    (void)state;
    session s = {.folder = in_base("nan"), .poison_at = 5, .heal_at = 6};
    complete(&s);
    assert_int_equal(s.steps, STEPS);
    assert_int_equal(ttn_trainer_where(ttn_training_trainer(s.t)).skipped, 1);
    assert_contains(s.said, "step 5 is skipped: loss or gradient is not finite: ");
    double skipped;
    assert_true(ttn_history_at(ttn_training_history(s.t), ttn_metric_train_skipped, STEPS, &skipped));
    assert_true(skipped == 1);
    end(&s);
    size_t n;
    char *text = contents(in_base("nan/nan-step-00000005/step.json"), &n);
    assert_contains(text, "\"step\": 5");
    assert_contains(text, "\"grad_norm\": null");
    assert_contains(text, "\"sequence\": ");
    free(text);
    /* Made again from what was kept, it is the same step. */
    ttn_error err = {0};
    char path[PATH_MAX];
    assert_ok(ttn_replay_find(in_base("nan"), 5, path, &err), &err);
    session r = {.checkpoint = path};
    ttn_replayed replayed;
    assert_ok(begin(&r, &err), &err);
    assert_ok(ttn_replay(r.t, 5, &replayed, &err), &err);
    assert_true(replayed.step.is_skipped);
    assert_int_equal(replayed.shard, 0);
    assert_contains(replayed.why.text, "norm");
    end(&r);
    /* One that was fine is fine again, from a checkpoint before it. */
    assert_ok(ttn_replay_find(in_base("nan"), 10, path, &err), &err);
    assert_contains(path, "ckpt/step-0000000");
    r = (session){.checkpoint = path};
    assert_ok(begin(&r, &err), &err);
    assert_ok(ttn_replay(r.t, 10, &replayed, &err), &err);
    assert_false(replayed.step.is_skipped);
    assert_int_equal(replayed.step.step, 10);
    end(&r);
    assert_fails(ttn_replay_find(in_base("nan"), 0, path, &err), TTN_EINVAL, &err, "at or before step 0");
}

/* What has the name of the folder and is none of titin's gets another name: it is neither removed nor followed. */
static void what_has_the_name_of_a_step_that_is_not_finite_is_kept(void **state)
{
    (void)state;
    enum { WAYS = 5 };
    for (int way = 0; way < WAYS; way++) {
        ttn_error err = {0};
        session s = {.folder = in_base("nan-way-%d", way), .poison_at = 5, .heal_at = 6};
        assert_ok(begin(&s, &err), &err);
        char folder[PATH_MAX / 2], elsewhere[PATH_MAX], command[3 * PATH_MAX];
        snprintf(folder, sizeof folder, "%s/nan-step-00000005", s.folder);
        static const char *const make[WAYS] = {
            "mkdir '%s'; echo mine > '%s/mine'",                        /* a folder of somebody's */
            "mkdir '%s.elsewhere'; echo mine > '%s.elsewhere/mine'",    /* and a link to it */
            "mkdir -p '%s/step.json'; echo mine > '%s/step.json/mine'", /* in place of a file */
            "mkdir -p '%s/step-00000005/state.json'; echo mine > '%s/step-00000005/state.json/mine'", /* deeper */
            "mkdir '%s'; echo old > '%s/step.json'", /* as an earlier try left it */
        };
        snprintf(command, sizeof command, make[way], folder, folder);
        assert_int_equal(system(command), 0);
        if (way == 1) {
            snprintf(elsewhere, sizeof elsewhere, "%s.elsewhere", folder);
            assert_int_equal(symlink(elsewhere, folder), 0);
        }
        assert_ok(ttn_training_run(s.t, &err), &err);
        end(&s);
        size_t n;
        char *text = contents(in_base("nan-way-%d/nan-step-00000005/step.json", way), &n);
        assert_contains(text, "\"step\": 5");
        free(text);
        static const char *const mine[WAYS] = {".kept-1/mine", ".elsewhere/mine", ".kept-1/step.json/mine",
                                               ".kept-1/step-00000005/state.json/mine", "/step.json"};
        assert_true(is_there(in_base("nan-way-%d/nan-step-00000005%s", way, mine[way])));
        assert_int_equal(is_there(in_base("nan-way-%d/nan-step-00000005.kept-1", way)), way < WAYS - 1);
        if (way < WAYS - 1) assert_contains(s.said, "held something that is not its own and is now called ");
    }
}

static void three_in_a_row_end_the_run_and_leave_the_good_checkpoint(void **state)
{
    (void)state;
    session s = {.folder = in_base("nan-3"), .poison_at = 7};
    ttn_error err = {0};
    assert_ok(begin(&s, &err), &err);
    assert_fails(ttn_training_run(s.t, &err), TTN_ENUMERIC, &err, "3 steps one behind the other");
    assert_int_equal(s.steps, 10);
    end(&s);
    for (int step = 7; step < 10; step++)
        assert_true(is_there(in_base("nan-3/nan-step-%08d/step.json", step)));
    int64_t *saved, n;
    assert_ok(ttn_run_checkpoints(s.folder, &saved, &n, &err), &err);
    for (int64_t i = 0; i < n; i++)
        assert_true(saved[i] <= 9);
    ttn_free(saved);
}

static void three_in_a_row_are_three_also_when_the_run_was_stopped_between_them(void **state)
{
    (void)state;
    session s = {.folder = in_base("nan-2-and-1"), .poison_at = 7, .stop_at_step = 9};
    ttn_error err = {0};
    assert_ok(begin(&s, &err), &err);
    assert_int_equal(ttn_training_run(s.t, NULL), TTN_ESTOPPED);
    end(&s);
    session on = {.folder = s.folder, .resumes = 1};
    assert_ok(begin(&on, &err), &err);
    assert_fails(ttn_training_run(on.t, &err), TTN_ENUMERIC, &err, "3 steps one behind the other");
    assert_int_equal(on.steps, 1);
    end(&on);
}

/* ---- a full disk ---- */

/* No space can be taken for any checkpoint: training goes on, each is told, and the end of the run says that it is not
 * saved; nothing is there under a final name. When there is space again, it is. */
static void a_full_disk_is_told_and_training_goes_on(void **state)
{
    (void)state;
    session s = {.folder = in_base("full")};
    ttn_error err = {0};
    assert_ok(begin(&s, &err), &err);
    shim_arm(SHIM_SIZE, 1, SHIM_FAIL, ENOSPC, 1);
    const ttn_status status = ttn_training_run(s.t, &err);
    shim_disarm();
    assert_int_equal(status, TTN_EIO);
    assert_contains(err.text, strerror(ENOSPC));
    assert_int_equal(s.steps, STEPS);
    assert_int_equal(s.saved, 0);
    assert_contains(s.said, "not saved, and training goes on: step 3: ");
    assert_int_equal(hash(&s), whole);
    int64_t *saved, n;
    err = (ttn_error){0};
    assert_ok(ttn_run_checkpoints(s.folder, &saved, &n, &err), &err);
    assert_int_equal(n, 0);
    ttn_free(saved);
    assert_ok(ttn_training_run(s.t, &err), &err);
    assert_true(is_there(in_base("full/ckpt/step-00000012")));
    end(&s);
}

typedef struct {
    const char *call;
    int error;
    const char *advice;
} refusal;

/* A ttn_shim watch: that call fails for what a checkpoint is written to. */
static int refuse(void *ctx, const shim_call *call)
{
    const refusal *r = ctx;
    if (strcmp(call->name, r->call) != 0) return 0;
    return !call->path || strstr(call->path, "/.step-") ? r->error : 0;
}

/* Where not one checkpoint could be saved nothing is computed, nor where a run is only looked at: a full disk, a quota, a
 * limit on the size of files, a folder that may not be written. The same folder serves when it can. */
static void where_no_checkpoint_can_be_saved_no_step_is_made(void **state)
{
    (void)state;
    static const refusal ways[] = {{"posix_fallocate", ENOSPC, "free some space"},
                                   {"posix_fallocate", EDQUOT, "free some space"},
                                   {"posix_fallocate", EFBIG, "ulimit -f"},
                                   {"mkdir", EACCES, "check who may write to its folder"},
                                   {"mkdir", EROFS, "mounted for writing"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (int is_planned = 0; is_planned < 2; is_planned++) {
            const char *where = in_base("unsaved-%zu", i);
            session s = {.folder = is_planned ? NULL : where, .planned = is_planned ? where : NULL};
            ttn_error err = {0};
            shim_watch(refuse, (void *)&ways[i]);
            const ttn_status status = begin(&s, &err);
            shim_watch(NULL, NULL);
            assert_fails(status, TTN_EIO, &err, "no checkpoint can be saved");
            assert_contains(err.text, strerror(ways[i].error));
            assert_contains(err.text, ways[i].advice);
            assert_null(s.t);
            end(&s);
            assert_int_equal(s.steps, 0);
            if (is_planned) continue;
            assert_false(is_there(in_base("unsaved-%zu/config.resolved.yaml", i)));
            assert_ok(begin(&s, &err), &err); /* nothing stands in the way of the next start */
            end(&s);
        }
}

/* All that train.keep asks for would not fit: said before the run, which begins. */
static void too_little_room_for_all_that_stays_is_a_warning(void **state)
{
    (void)state;
    const char *const setting[] = {"train.keep=1000000", "train.save_every=1", "train.steps=1000000",
                                   "model.width=512",    "model.layers=2",     NULL};
    session s = {.planned = in_base("no/such/run"), .setting = setting};
    ttn_error err = {0};
    assert_ok(begin(&s, &err), &err);
    assert_contains(s.said, "up to 1000002 more checkpoints at once (train.keep=1000000, the best, the next): needs ");
    end(&s);
    assert_false(is_there(in_base("no")));
    session few = {.planned = in_base("no/such/run")};
    assert_ok(begin(&few, &err), &err);
    assert_null(strstr(few.said, "more checkpoints at once"));
    end(&few);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_error err = {0};
    if (ttn_start(MOST_THREADS, &err) != TTN_OK || ttn_config_table_of_titin(&table, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    snprintf(base, sizeof base, "%s", ttn_test_folder());
    snprintf(fasta, sizeof fasta, "%s/proteins.fa", base);
    write_fasta(fasta, SEED);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_leaves_what_it_says),
        cmocka_unit_test(another_number_of_threads_has_the_same_bits),
        cmocka_unit_test(the_best_checkpoint_stays),
        cmocka_unit_test(a_run_that_ends_far_above_its_first_loss_has_diverged),
        cmocka_unit_test(a_warm_up_beyond_the_end_is_said),
        cmocka_unit_test(stopped_at_any_moment_it_goes_on_with_the_same_bits),
        cmocka_unit_test(tensorboard_keeps_what_the_checkpoint_has_seen),
        cmocka_unit_test(attention_with_states_goes_on_with_the_same_bits),
        cmocka_unit_test(a_model_without_queries_and_keys_goes_on_with_the_same_bits),
        cmocka_unit_test(automatic_attention_is_that_of_training),
        cmocka_unit_test(attention_says_how_it_is),
        cmocka_unit_test(what_attention_notes_is_said_when_a_run_begins),
        cmocka_unit_test(a_run_that_is_at_its_end_has_nothing_to_do),
        cmocka_unit_test(a_wish_to_save_is_fulfilled_and_changes_nothing),
        cmocka_unit_test(a_damaged_checkpoint_is_passed_over),
        cmocka_unit_test(another_run_is_not_written_over),
        cmocka_unit_test(without_a_checkpoint_going_on_is_beginning),
        cmocka_unit_test(a_changed_configuration_is_shown_and_judged),
        cmocka_unit_test(keys_are_fixed_unless_somebody_has_thought_about_them),
        cmocka_unit_test(what_does_not_fit_together_is_refused),
        cmocka_unit_test(every_preset_says_how_long_it_trains),
        cmocka_unit_test(too_little_memory_says_what_to_lower),
        cmocka_unit_test(tokens_and_epochs_are_steps),
        cmocka_unit_test(files_are_packed_once_and_again_when_they_change),
        cmocka_unit_test(stopped_while_packing_nothing_is_left),
        cmocka_unit_test(a_step_that_is_not_finite_is_skipped_and_written_down),
        cmocka_unit_test(what_has_the_name_of_a_step_that_is_not_finite_is_kept),
        cmocka_unit_test(three_in_a_row_end_the_run_and_leave_the_good_checkpoint),
        cmocka_unit_test(three_in_a_row_are_three_also_when_the_run_was_stopped_between_them),
        cmocka_unit_test(a_full_disk_is_told_and_training_goes_on),
        cmocka_unit_test(where_no_checkpoint_can_be_saved_no_step_is_made),
        cmocka_unit_test(too_little_room_for_all_that_stays_is_a_warning),
    };
    const int failed = ttn_test_run(tests);
    ttn_config_table_destroy(table);
    return failed;
}
