/* The program titin train, stopped by a real signal at chosen places of a run, and on disks that are full for chosen files:
 * what it answers, that nothing half-written has a final name, and that it goes on to the bits of a run that was let be.
 *
 * A place is a call between two of our sources, or one of the system that concerns a file. The linker leads the calls of
 * the Makefile's list STOPPED_AT here (--wrap), those of the system go through tests/harness/shim.h; the nth of them sends
 * the signal to the process and is then made as if nothing was. Runs are forked: this process computes nothing itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>
#include "autograd/plan.h"
#include "core/fp.h"
#include "core/gemm.h"
#include "core/hash.h"
#include "core/rng.h"
#include "data/store_write.h"
#include "tests/harness/files.h"
#include "tests/harness/shim.h"
#include "train/cli/program.h"
#include "train/files/metrics_log.h"
#include "train/look/report.h"
#include "train/optim.h"
#include "train/shards.h"
#include "train/validation.h"

enum { N_PROTEIN = 60, STEPS = 12, EVAL_EVERY = 6, SAVE_EVERY = 4, MOST_WORDS = 12 };

/* ---- places ---- */

typedef struct {
    const char *call; /* "ttn_optim_step"; of the system: "write", "fsync", "rename", …, NULL: any */
    const char *path; /* of a call of the system: a part of the path that it concerns; NULL: none of the system's */
    int64_t behind;   /* counted are those after the optimizer has begun so many steps */
    int64_t nth;      /* which of them; 1 is the first */
} place;

/* What happens in a child; set before its threads are there. */
static struct {
    place at;
    int signal;       /* that is sent there; 0: none */
    int times;        /* so often */
    const char *full; /* what is written to paths with this in them finds no space; NULL: nothing is refused */
    _Atomic int64_t steps, passed;
    _Atomic int is_hit; /* from then on the disk is full */
} trap;

static int is_of(const char *call, const char *path)
{
    if (trap.at.call && strcmp(trap.at.call, call) != 0) return 0;
    return trap.at.path ? path && strstr(path, trap.at.path) : !path;
}

static void pass(const char *call, const char *path)
{
    if (trap.at.nth == 0 || !is_of(call, path) || atomic_load(&trap.steps) < trap.at.behind) return;
    if (atomic_fetch_add(&trap.passed, 1) + 1 != trap.at.nth) return;
    atomic_store(&trap.is_hit, 1);
    for (int i = 0; i < trap.times; i++)
        kill(getpid(), trap.signal);
}

/* ---- calls between our sources ---- */

ttn_status __real_ttn_store_add(ttn_store_writer *w, const ttn_fasta_record *r, const char *id, ttn_error *err);
ttn_status __real_ttn_plan_create(ttn_graph *g, const ttn_plan_options *options, ttn_plan **ret, ttn_error *err);
void __real_ttn_gemm_rows(int n_thread, ttn_trans tb, int64_t rows, int64_t used, int64_t n, int64_t k, ttn_mat_in a,
                          ttn_mat_in b, double beta, ttn_mat_out c);
void __real_ttn_gemm_wgrad(int n_thread, int64_t rows, int64_t used, int64_t o, int64_t i, ttn_mat_in dy, ttn_mat_in x,
                           double acc, ttn_mat_out dw, void *work);
ttn_status __real_ttn_shards_add(ttn_shards *s, ttn_error *err);
ttn_status __real_ttn_optim_step(ttn_optim *o, const ttn_optim_when *when, ttn_optim_result *ret, ttn_error *err);
void __real_ttn_validation_add(ttn_validation *v, const ttn_predicted *p);
ttn_status __real_ttn_metrics_log_add(ttn_metrics_log *l, const ttn_metrics *r, ttn_error *err);
ttn_status __real_ttn_report_save(const ttn_report *r, const char *path, ttn_error *err);

ttn_status __wrap_ttn_store_add(ttn_store_writer *w, const ttn_fasta_record *r, const char *id, ttn_error *err);
ttn_status __wrap_ttn_plan_create(ttn_graph *g, const ttn_plan_options *options, ttn_plan **ret, ttn_error *err);
void __wrap_ttn_gemm_rows(int n_thread, ttn_trans tb, int64_t rows, int64_t used, int64_t n, int64_t k, ttn_mat_in a,
                          ttn_mat_in b, double beta, ttn_mat_out c);
void __wrap_ttn_gemm_wgrad(int n_thread, int64_t rows, int64_t used, int64_t o, int64_t i, ttn_mat_in dy, ttn_mat_in x,
                           double acc, ttn_mat_out dw, void *work);
ttn_status __wrap_ttn_shards_add(ttn_shards *s, ttn_error *err);
ttn_status __wrap_ttn_optim_step(ttn_optim *o, const ttn_optim_when *when, ttn_optim_result *ret, ttn_error *err);
void __wrap_ttn_validation_add(ttn_validation *v, const ttn_predicted *p);
ttn_status __wrap_ttn_metrics_log_add(ttn_metrics_log *l, const ttn_metrics *r, ttn_error *err);
ttn_status __wrap_ttn_report_save(const ttn_report *r, const char *path, ttn_error *err);

ttn_status __wrap_ttn_store_add(ttn_store_writer *w, const ttn_fasta_record *r, const char *id, ttn_error *err)
{
    pass("ttn_store_add", NULL);
    return __real_ttn_store_add(w, r, id, err);
}

ttn_status __wrap_ttn_plan_create(ttn_graph *g, const ttn_plan_options *options, ttn_plan **ret, ttn_error *err)
{
    pass("ttn_plan_create", NULL);
    return __real_ttn_plan_create(g, options, ret, err);
}

void __wrap_ttn_gemm_rows(int n_thread, ttn_trans tb, int64_t rows, int64_t used, int64_t n, int64_t k, ttn_mat_in a,
                          ttn_mat_in b, double beta, ttn_mat_out c)
{
    pass("ttn_gemm_rows", NULL);
    __real_ttn_gemm_rows(n_thread, tb, rows, used, n, k, a, b, beta, c);
}

void __wrap_ttn_gemm_wgrad(int n_thread, int64_t rows, int64_t used, int64_t o, int64_t i, ttn_mat_in dy, ttn_mat_in x,
                           double acc, ttn_mat_out dw, void *work)
{
    pass("ttn_gemm_wgrad", NULL);
    __real_ttn_gemm_wgrad(n_thread, rows, used, o, i, dy, x, acc, dw, work);
}

ttn_status __wrap_ttn_shards_add(ttn_shards *s, ttn_error *err)
{
    ttn_status status = __real_ttn_shards_add(s, err);
    pass("ttn_shards_add", NULL);
    return status;
}

ttn_status __wrap_ttn_optim_step(ttn_optim *o, const ttn_optim_when *when, ttn_optim_result *ret, ttn_error *err)
{
    pass("ttn_optim_step", NULL);
    atomic_fetch_add(&trap.steps, 1);
    return __real_ttn_optim_step(o, when, ret, err);
}

void __wrap_ttn_validation_add(ttn_validation *v, const ttn_predicted *p)
{
    pass("ttn_validation_add", NULL);
    __real_ttn_validation_add(v, p);
}

ttn_status __wrap_ttn_metrics_log_add(ttn_metrics_log *l, const ttn_metrics *r, ttn_error *err)
{
    pass("ttn_metrics_log_add", NULL);
    return __real_ttn_metrics_log_add(l, r, err);
}

ttn_status __wrap_ttn_report_save(const ttn_report *r, const char *path, ttn_error *err)
{
    pass("ttn_report_save", NULL);
    return __real_ttn_report_save(r, path, err);
}

/* ---- calls of the system ---- */

static void path_of(const shim_call *call, char *ret)
{
    char link[64];
    ret[0] = 0;
    if (call->path)
        snprintf(ret, PATH_MAX, "%s", call->to && strcmp(call->name, "symlink") != 0 ? call->to : call->path);
    if (call->fd < 0) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", call->fd);
    const ssize_t n = readlink(link, ret, PATH_MAX - 1);
    ret[n > 0 ? n : 0] = 0;
}

/* A call that a full disk refuses. */
static int takes_space(const shim_call *call)
{
    static const char *const names[] = {"write", "pwrite", "posix_fallocate", "mkdir", "symlink"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(call->name, names[i]) == 0) return 1;
    return strcmp(call->name, "open") == 0 && call->flags & O_CREAT;
}

/* shim_watch's. */
static int meet(void *ctx, const shim_call *call)
{
    (void)ctx;
    char path[PATH_MAX];
    path_of(call, path);
    const int is_full = trap.full && atomic_load(&trap.is_hit);
    if (is_full && takes_space(call) && strstr(path, trap.full)) return ENOSPC;
    pass(strncmp(call->name, "rename", 6) == 0 ? "rename" : call->name, path);
    return 0;
}

/* ---- a run ---- */

static const char *base; /* the folder of the tests */
static char fasta[PATH_MAX / 2], config[PATH_MAX / 2];

static void write_fasta(void)
{
    static const char letters[] = "ACDEFGHIKLMNPQRSTVWY";
    ttn_rng rng = {.key = 3};
    FILE *f = fopen(fasta, "w");
    assert_non_null(f);
    for (int i = 0; i < N_PROTEIN; i++) {
        const int64_t n = 20 + (int64_t)ttn_rng_next_below(&rng, 60);
        fprintf(f, ">protein_%d\n", i);
        for (int64_t j = 0; j < n; j++)
            fputc(letters[ttn_rng_next_below(&rng, 20)], f);
        fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
}

static void write_config(void)
{
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fprintf(f,
            "model: {layers: 1, width: 16, heads: 2, token_dropout: yes, dropout: 0.1}\n"
            "optim: {lr: 0.01}\n"
            "schedule: {warmup: 3}\n"
            "batch: {rows: 480}\n"
            "data: {train: ['%s'], valid: 0.3}\n"
            "train: {steps: %d, shards: 2, eval_every: %d, save_every: %d, keep: 9, log_every: 1}\n",
            fasta, STEPS, EVAL_EVERY, SAVE_EVERY);
    assert_int_equal(fclose(f), 0);
}

/* titin with these words, in this process. */
static int run_titin(void *arg)
{
    char **word = arg;
    int n = 0;
    while (word[n])
        n++;
    ttn_fp_begin();
    shim_watch(meet, NULL);
    const int code = ttn_program_run(n, word, 0);
    shim_watch(NULL, NULL);
    if (trap.at.nth > 0 && !atomic_load(&trap.is_hit)) {
        fprintf(stderr, "the run did not come to the place where something was to happen\n");
        return 99;
    }
    return code;
}

typedef struct {
    char folder[PATH_MAX / 2]; /* base/N: nothing else is there */
    const char *setting;       /* NULL: none */
} run_place;

static run_place new_place(const char *setting)
{
    static int n;
    run_place r = {.setting = setting};
    snprintf(r.folder, sizeof r.folder, "%s/%d", base, n++);
    assert_int_equal(mkdir(r.folder, 0755), 0);
    return r;
}

static ttn_child train(const run_place *r, int resumes)
{
    char out[PATH_MAX];
    snprintf(out, sizeof out, "train.out=%s/run", r->folder);
    const char *word[MOST_WORDS] = {"titin", "train", config, out, resumes ? "train.threads=2" : "train.threads=1"};
    int n = 5;
    if (r->setting) word[n++] = r->setting;
    if (resumes) word[n++] = "--resume";
    return run_in_child((ttn_child_limit){0}, run_titin, word);
}

/* ---- what a run leaves ---- */

/* The lines of metrics.jsonl without perf/… and dates; the caller's (free). */
static char *lines_of(const char *folder)
{
    size_t n;
    char *text = get_file(path_in(folder, "run/metrics.jsonl"), &n);
    char *to = text;
    for (const char *line = text; *line;) {
        const char *line_end = line + strcspn(line, "\n");
        const char *date = strstr(line, "\"date\":"), *perf = strstr(line, ",\"perf/");
        assert_non_null(date);
        const char *behind = strchr(date, ',') + 1;
        const char *stop = perf && perf < line_end ? perf : line_end;
        memmove(to, line, (size_t)(date - line));
        to += date - line;
        memmove(to, behind, (size_t)(stop - behind));
        to += stop - behind;
        *to++ = '\n';
        line = *line_end ? line_end + 1 : line_end;
    }
    *to = 0;
    return text;
}

/* Weights and moments of the last step. */
static uint64_t hash_of(const char *folder)
{
    static const char *const files[] = {"model.safetensors", "optim-r0000-of-0001.safetensors"};
    uint64_t h = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[PATH_MAX];
        size_t n;
        snprintf(name, sizeof name, "run/ckpt/step-%08d/%s", STEPS, files[i]);
        char *bytes = get_file(path_in(folder, name), &n);
        h = ttn_hash64(bytes, n, h);
        free(bytes);
    }
    return h;
}

/* What runs that nobody stops come to: with proteins that are held out, and without. */
typedef struct {
    uint64_t hash;
    char *lines;
} result;
static result undisturbed, undisturbed_without;
static const char without_held_out[] = "data.valid=0";

static const result *wanted_of(const run_place *r)
{
    return r->setting ? &undisturbed_without : &undisturbed;
}

/* The first n bytes. */
static void assert_lines(const char *lines, const char *wanted, size_t n)
{
    if (strncmp(lines, wanted, n) == 0) return;
    fprintf(stderr, "metrics.jsonl has\n%sand should have\n%s", lines, wanted);
    fail_msg("lines of metrics.jsonl are not those of a run that was let be");
}

static void assert_same_result(const run_place *r)
{
    char *lines = lines_of(r->folder);
    assert_lines(lines, wanted_of(r)->lines, strlen(wanted_of(r)->lines) + 1);
    free(lines);
    assert_true(hash_of(r->folder) == wanted_of(r)->hash);
}

/* All that the program said goes to stderr line by line: a message of cmocka's has room for a part of it. */
static void refuse(const ttn_child *c, const char *why)
{
    fprintf(stderr, "%s\n", c->output);
    fail_msg("%s; exit code %d, signal %d", why, c->exit_code, c->signal);
}

static void assert_says(const ttn_child *c, const char *words)
{
    char why[256];
    snprintf(why, sizeof why, "'%s' stands nowhere in what it said", words);
    if (!strstr(c->output, words)) refuse(c, why);
}

static void assert_exits(const ttn_child *c, int code, const char *words)
{
    char why[64];
    snprintf(why, sizeof why, "should have ended with exit code %d", code);
    if (!c->exited || c->exit_code != code) refuse(c, why);
    assert_says(c, words);
}

static result result_of(const char *setting)
{
    const run_place r = new_place(setting);
    const ttn_child c = train(&r, 0);
    assert_exits(&c, 0, "done: 12 steps in ");
    return (result){hash_of(r.folder), lines_of(r.folder)};
}

static int is_no_temporary(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about;
    (void)type;
    const char *name = path + where->base;
    if (strstr(name, ".tmp") || strstr(name, ".trash")) fail_msg("%s was left", path);
    return 0;
}

/* A ttn_metrics_taker. */
static ttn_status pass_by(void *ctx, const ttn_metrics *r, ttn_error *err)
{
    (void)ctx;
    (void)r;
    (void)err;
    return TTN_OK;
}

/* Checkpoints are whole by their checksums, lines of metrics are lines, pictures and reports have an end, and what was begun
 * is gone. */
static void assert_all_is_whole(const run_place *r)
{
    static const char *const ends[][2] = {{"run/loss.svg", "</svg>\n"}, {"run/report.html", "</html>\n"}};
    enum { OPEN_FOLDERS = 16 };
    assert_int_equal(nftw(r->folder, is_no_temporary, OPEN_FOLDERS, FTW_PHYS), 0);
    if (is_there(path_in(r->folder, "run/ckpt/latest"))) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/run", r->folder);
        char *word[] = {"titin", "info", "--verify", path, NULL};
        const ttn_child c = run_in_child((ttn_child_limit){0}, run_titin, word);
        assert_exits(&c, 0, "");
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (!is_there(path_in(r->folder, ends[i][0]))) continue;
        size_t n;
        char *text = get_file(path_in(r->folder, ends[i][0]), &n);
        assert_contains(text, ends[i][1]);
        free(text);
    }
    if (!is_there(path_in(r->folder, "run/metrics.jsonl"))) return;
    int64_t damaged;
    ttn_error err = {0};
    assert_ok(ttn_metrics_log_read(path_in(r->folder, "run/metrics.jsonl"), pass_by, NULL, &damaged, &err), &err);
    assert_int_equal(damaged, 0);
}

/* ---- signals ---- */

typedef struct {
    const char *name;
    place at;
    int signal; /* 0: SIGTERM */
    int is_twice;
    int code;         /* KILLED: none, it ended by the signal */
    const char *says; /* NULL: nothing about it */
    const char *setting;
    const char *leaves; /* this, in the run's folder; NULL: nothing of its own */
    int is_unevaluated; /* it stopped in an evaluation, whose record is still missing */
    int packs_nothing;  /* no store was made */
} moment;

enum { STOPPED = 75, KILLED = -1 };

static const moment moments[] = {
    {
        .name = "signal_while_a_record_is_packed",
        .at = {.call = "ttn_store_add", .nth = N_PROTEIN / 2},
        .code = STOPPED,
        .says = "stopped while clusters were made; nothing was written",
        .packs_nothing = 1,
    },
    {
        .name = "signal_while_a_packed_store_takes_its_name",
        .at = {.call = "rename", .path = ".h5", .nth = 1},
        .code = STOPPED,
        .says = "stopped at step 0, and saved",
    },
    {
        .name = "signal_while_the_step_is_planned",
        .at = {.call = "ttn_plan_create", .nth = 1},
        .code = STOPPED,
        .says = "stopped at step 0, and saved",
    },
    {
        .name = "signal_in_the_first_forward",
        .at = {.call = "ttn_gemm_rows", .nth = 1},
        .code = STOPPED,
        .says = "stopped at step 1, and saved",
    },
    {
        .name = "signal_of_the_keyboard_in_a_forward",
        .at = {.call = "ttn_gemm_rows", .behind = 1, .nth = 1},
        .signal = SIGINT,
        .code = STOPPED,
        .says = "stopped at step 2, and saved",
    },
    {
        .name = "signal_in_a_backward",
        .at = {.call = "ttn_gemm_wgrad", .behind = 2, .nth = 1},
        .code = STOPPED,
        .says = "stopped at step 3, and saved",
    },
    {
        .name = "signal_of_a_scheduler_in_a_backward",
        .at = {.call = "ttn_gemm_wgrad", .behind = 9, .nth = 2},
        .signal = SIGUSR1,
        .code = STOPPED,
        .says = "stopped at step 10, and saved",
    },
    {
        .name = "signal_between_micro_batches",
        .at = {.call = "ttn_shards_add", .behind = 4, .nth = 1},
        .code = STOPPED,
        .says = "stopped at step 5, and saved",
    },
    {
        .name = "signal_in_the_optimizer",
        .at = {.call = "ttn_optim_step", .behind = 6, .nth = 1},
        .code = STOPPED,
        .says = "stopped at step 7, and saved",
    },
    {
        .name = "signal_in_an_evaluation",
        .at = {.call = "ttn_validation_add", .behind = EVAL_EVERY, .nth = 1},
        .code = STOPPED,
        .says = "stopped at step 6, and saved",
        .is_unevaluated = 1,
    },
    {
        .name = "signal_while_a_record_is_written",
        .at = {.call = "ttn_metrics_log_add", .behind = 9, .nth = 1},
        .code = STOPPED,
        .says = "stopped at step 9, and saved",
    },
    /* In the saver's thread, beside which training goes on: for how many steps until the signal is seen is not said. */
    {
        .name = "signal_while_a_checkpoint_is_written",
        .at = {.call = "write", .path = "/.model.safetensors", .behind = SAVE_EVERY, .nth = 1},
        .code = STOPPED,
        .says = "and saved: --resume goes on from there",
    },
    {
        .name = "signal_while_a_checkpoint_goes_to_the_disk",
        .at = {.call = "fsync", .path = "/.optim-", .behind = SAVE_EVERY, .nth = 1},
        .code = STOPPED,
        .says = "and saved: --resume goes on from there",
    },
    {
        .name = "signal_while_a_checkpoint_takes_its_name",
        .at = {.call = "rename", .path = "/ckpt/step-00000004", .nth = 1},
        .code = STOPPED,
        .says = "and saved: --resume goes on from there",
    },
    /* What is left is to evaluate. */
    {
        .name = "signal_in_the_last_step",
        .at = {.call = "ttn_optim_step", .behind = STEPS - 1, .nth = 1},
        .code = STOPPED,
        .says = "stopped at step 12, and saved",
        .is_unevaluated = 1,
    },
    {
        .name = "signal_while_the_last_report_is_written",
        .at = {.call = "ttn_report_save", .behind = STEPS, .nth = 1},
        .code = STOPPED,
        .says = "stopped at step 12, and saved",
    },
    /* All that was asked for has been done, and whoever is told "start it again" would do so for nothing. */
    {
        .name = "signal_when_only_the_report_is_left",
        .at = {.call = "ttn_report_save", .behind = STEPS, .nth = 1},
        .code = 0,
        .says = "done: 12 steps in ",
        .setting = without_held_out,
    },
    {
        .name = "second_signal_of_the_keyboard_ends_it_at_once",
        .at = {.call = "ttn_gemm_rows", .behind = 1, .nth = 1},
        .signal = SIGINT,
        .is_twice = 1,
        .code = KILLED,
    },
    {
        .name = "signal_to_save_in_a_forward",
        .at = {.call = "ttn_gemm_rows", .behind = 4, .nth = 1},
        .signal = SIGUSR2,
        .says = "done: 12 steps in ",
        .leaves = "run/ckpt/step-00000005",
    },
    {
        .name = "signal_to_save_while_a_record_is_packed",
        .at = {.call = "ttn_store_add", .nth = 1},
        .signal = SIGUSR2,
        .says = "done: 12 steps in ",
        .leaves = "run/ckpt/step-00000000",
    },
    {
        .name = "closed_terminal_is_no_reason_to_stop",
        .at = {.call = "ttn_gemm_rows", .behind = 4, .nth = 1},
        .signal = SIGHUP,
        .says = "done: 12 steps in ",
    },
};

enum { N_MOMENTS = sizeof moments / sizeof *moments };

static int is_evaluated(const char *folder, int64_t step)
{
    char line[64];
    snprintf(line, sizeof line, "{\"step\":%lld,\"val/loss\"", (long long)step);
    char *lines = lines_of(folder);
    const int is = strstr(lines, line) != NULL;
    free(lines);
    return is;
}

static void assert_ends(const ttn_child *c, const moment *m)
{
    if (m->code != KILLED) {
        assert_exits(c, m->code, m->says);
        return;
    }
    assert_false(c->exited);
    assert_int_equal(c->signal, m->signal);
}

static void stop_and_go_on(void **state)
{
    const moment *m = *state;
    const run_place r = new_place(m->setting);
    trap.at = m->at;
    trap.signal = m->signal ? m->signal : SIGTERM;
    trap.times = m->is_twice ? 2 : 1;
    const ttn_child stopped = train(&r, 0);
    trap.at = (place){0};
    assert_ends(&stopped, m);
    assert_all_is_whole(&r);
    assert_true(is_there(path_in(r.folder, "data")) == !m->packs_nothing);
    assert_true(is_there(path_in(r.folder, "run")) == !m->packs_nothing);
    if (m->leaves) assert_true(is_there(path_in(r.folder, m->leaves)));
    if (m->code == STOPPED && !m->packs_nothing) {
        assert_says(&stopped, "titin train ");
        assert_says(&stopped, " --resume\n");
    }
    if (m->is_unevaluated) assert_false(is_evaluated(r.folder, m->at.behind < STEPS - 1 ? EVAL_EVERY : STEPS));
    const ttn_child on = train(&r, !m->packs_nothing);
    assert_exits(&on, 0, "done: 12 steps in ");
    assert_int_equal(strstr(on.output, "packed 1 file") != NULL, m->packs_nothing);
    assert_all_is_whole(&r);
    assert_same_result(&r);
}

/* ---- killed while something takes its name ---- */

typedef struct {
    const char *name;
    place at;
    const char *left; /* what has the name of a temporary then begins so */
} kill_moment;

static const kill_moment kills[] = {
    {"killed_with_an_unnamed_configuration",
     {.call = "rename", .path = "/config.resolved.yaml", .nth = 1},
     "run/.config.resolved.yaml.tmp-"},
    {"killed_with_unnamed_starts", {.call = "rename", .path = "/run.json", .nth = 1}, "run/.run.json.tmp-"},
    {"killed_with_unnamed_metrics", {.call = "rename", .path = "/metrics.jsonl", .nth = 1}, "run/.metrics.jsonl.tmp-"},
    {"killed_with_an_unnamed_curve", {.call = "rename", .path = "/loss.svg", .nth = 2}, "run/.loss.svg.tmp-"},
    {"killed_with_an_unnamed_report", {.call = "rename", .path = "/report.html", .nth = 2}, "run/.report.html.tmp-"},
    {"killed_with_an_unnamed_checkpoint",
     {.call = "rename", .path = "/ckpt/step-00000008", .nth = 1},
     "run/ckpt/.step-00000008.tmp-"},
    {"killed_with_an_unnamed_link", {.call = "rename", .path = "/ckpt/latest", .nth = 2}, "run/ckpt/.latest.tmp-"},
};

enum { N_KILLS = sizeof kills / sizeof *kills };

static const char *looked_for;
static int n_left;

static int count_temporary(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about;
    (void)type;
    (void)where;
    n_left += strstr(path, looked_for) != NULL;
    return 0;
}

static void kill_and_go_on(void **state)
{
    enum { OPEN_FOLDERS = 16 };
    const kill_moment *m = *state;
    const run_place r = new_place(NULL);
    trap.at = m->at;
    trap.signal = SIGKILL;
    trap.times = 1;
    const ttn_child killed = train(&r, 0);
    trap.at = (place){0};
    assert_false(killed.exited);
    assert_int_equal(killed.signal, SIGKILL);
    looked_for = m->left;
    n_left = 0;
    assert_int_equal(nftw(r.folder, count_temporary, OPEN_FOLDERS, FTW_PHYS), 0);
    assert_true(n_left > 0);
    const ttn_child on = train(&r, 1);
    assert_exits(&on, 0, "done: 12 steps in ");
    assert_all_is_whole(&r); /* and nothing of it is left */
    assert_same_result(&r);
}

/* ---- full disks ---- */

typedef struct {
    const char *name;
    const char *full;  /* a part of the paths that find no space: of what is being written, before it has its name */
    const char *since; /* from when on: when something takes this name; NULL: from the beginning */
    int code;
    const char *says;
    int loses_lines; /* of metrics.jsonl, and says so */
} shortage;

enum { SYSTEM = 6 };

static const char unsaved[] = "not saved, and training goes on: step 8: ", unmeasured[] = "is not written down: ",
                  untold[] = "curves and report are not as they should be: ", unnamed[] = "is saved, but ";
/* A checkpoint takes its name beside the training, at the latest before the next is begun; a report does between two steps. */
static const char first_save[] = "/ckpt/latest", first_report[] = "/report.html";

static const shortage shortages[] = {
    {"full_disk_for_all_of_a_run", "/run/", first_save, SYSTEM, unsaved, 0},
    {"full_disk_for_folders_of_checkpoints", "/ckpt/.step-", first_save, SYSTEM, unsaved, 0},
    {"full_disk_for_weights", "/.model.safetensors", first_save, SYSTEM, unsaved, 0},
    {"full_disk_for_moments", "/.optim-", first_save, SYSTEM, unsaved, 0},
    {"full_disk_for_states", "/.state.json", first_save, SYSTEM, unsaved, 0},
    {"full_disk_for_manifests", "/.MANIFEST.json", first_save, SYSTEM, unsaved, 0},
    {"full_disk_for_links_to_checkpoints", "/ckpt/.latest", first_save, 0, unnamed, 0},
    {"full_disk_for_metrics", "/metrics.jsonl", first_save, 0, unmeasured, 1},
    {"full_disk_for_event_files", "/tb/", first_save, 0, unmeasured, 0},
    {"full_disk_for_curves", "/.loss.svg", first_report, 0, untold, 0},
    {"full_disk_for_reports", "/.report.html", first_report, 0, untold, 0},
    {"full_disk_for_a_store", ".h5", NULL, SYSTEM, "proteins-", 0},
    {"full_disk_for_the_folder_of_a_run", "/run", NULL, SYSTEM, "/run", 0},
    {"full_disk_for_the_configuration", "/.config.resolved.yaml", NULL, SYSTEM, "config.resolved.yaml", 0},
    {"full_disk_for_the_starts", "/.run.json", NULL, SYSTEM, "run.json", 0},
    {"full_disk_for_new_metrics", "/.metrics.jsonl", NULL, SYSTEM, "metrics.jsonl", 0},
    {"full_disk_for_a_new_event_file", "/tb", NULL, SYSTEM, "/tb", 0},
};

enum { N_SHORTAGES = sizeof shortages / sizeof *shortages };

static void run_short_of_space(void **state)
{
    const shortage *s = *state;
    const run_place r = new_place(NULL);
    trap.full = s->full;
    trap.times = 0;
    if (s->since)
        trap.at = (place){.call = "rename", .path = s->since, .nth = 1};
    else
        atomic_store(&trap.is_hit, 1);
    const ttn_child short_of = train(&r, 0);
    trap.full = NULL;
    trap.at = (place){0};
    atomic_store(&trap.is_hit, 0);
    assert_exits(&short_of, s->code, s->says);
    assert_says(&short_of, strerror(ENOSPC));
    assert_all_is_whole(&r);
    assert_true(is_there(path_in(r.folder, "run/ckpt/step-00000004")) == (s->since != NULL));
    assert_true(is_there(path_in(r.folder, "run/ckpt/step-00000012")) == (s->code == 0));
    if (s->loses_lines) {
        char *lines = lines_of(r.folder);
        assert_lines(lines, undisturbed.lines, strlen(lines));
        free(lines);
        assert_true(hash_of(r.folder) == undisturbed.hash);
        return;
    }
    const ttn_child on = train(&r, 1);
    assert_exits(&on, 0, "done: 12 steps in ");
    assert_all_is_whole(&r);
    assert_same_result(&r);
}

/* The i-th of n: all of them are tried, or every third where tests are to be short. */
static int is_tried(int i, int n)
{
    const int64_t some = ttn_scaled(n, n / 3);
    return some >= n || (i + 1) * some / n > i * some / n;
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    base = ttn_test_folder();
    snprintf(fasta, sizeof fasta, "%s/proteins.fa", base);
    snprintf(config, sizeof config, "%s/tiny.yaml", base);
    write_fasta();
    write_config();
    undisturbed = result_of(NULL);
    undisturbed_without = result_of(without_held_out);
    struct CMUnitTest tests[N_MOMENTS + N_SHORTAGES + N_KILLS] = {
        {0}}; /* cmocka passes over those without a function */
    for (int i = 0; i < N_MOMENTS; i++)
        if (is_tried(i, N_MOMENTS))
            tests[i] = (struct CMUnitTest){moments[i].name, stop_and_go_on, NULL, NULL, (void *)&moments[i]};
    for (int i = 0; i < N_SHORTAGES; i++)
        if (is_tried(i, N_SHORTAGES))
            tests[N_MOMENTS + i] =
                (struct CMUnitTest){shortages[i].name, run_short_of_space, NULL, NULL, (void *)&shortages[i]};
    for (int i = 0; i < N_KILLS; i++)
        if (is_tried(i, N_KILLS))
            tests[N_MOMENTS + N_SHORTAGES + i] =
                (struct CMUnitTest){kills[i].name, kill_and_go_on, NULL, NULL, (void *)&kills[i]};
    const int failed = ttn_test_run(tests);
    free(undisturbed.lines);
    free(undisturbed_without.lines);
    return failed;
}
