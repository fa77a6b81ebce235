/* titin train CONFIG [KEY=VALUE...]: a run, from its configuration to its end. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/builder.h"
#include "core/clock.h"
#include "core/machine.h"
#include "core/path.h"
#include "core/start.h"
#include "core/text.h"
#include "data/files.h"
#include "train/cli/build.h"
#include "train/cli/command.h"
#include "train/cli/configured.h"
#include "train/cli/screens_of_run.h"
#include "train/cli/signals.h"
#include "train/cli/status_line.h"
#include "train/doctor.h"
#include "train/files/run_folder.h"
#include "train/training.h"

/* How fast products are, which steps are compared with: the best of some tries, since others may use the machine as well. */
static double rate_of_products(int n_thread)
{
    enum { TRIES = 3 };
    const double seconds = 0.02;
    double best = 0;
    for (int i = 0; i < TRIES; i++)
        best = fmax(best, ttn_doctor_rate(n_thread, seconds));
    return best;
}

/* ---- where a run lies ---- */

/* "quickstart" of configs/quickstart.yaml, or of --preset quickstart. */
static void name_of_run(const ttn_cli_call *call, const ttn_config *config, char *ret, size_t room)
{
    snprintf(ret, room, "%s", ttn_config_preset_name(config) ? ttn_config_preset_name(config) : "train");
    for (int i = 0; i < call->n_argument; i++) {
        const char *word = call->argument[i];
        if (ttn_is_setting(word)) continue;
        const char *slash = strrchr(word, '/');
        const char *name = slash ? slash + 1 : word;
        const char *dot = strrchr(name, '.');
        snprintf(ret, room, "%.*s", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
        return;
    }
}

typedef struct {
    char folder[PATH_MAX]; /* run/quickstart */
    char beside[PATH_MAX]; /* run/data: stores that are packed here, which other runs may use as well */
} places;

static ttn_status find_places(const ttn_cli_call *call, const ttn_config *config, const ttn_train_spec *spec,
                              places *ret, ttn_error *err)
{
    char name[NAME_MAX + 1];
    int n;
    if (strcmp(spec->out, "auto") == 0) {
        name_of_run(call, config, name, sizeof name);
        n = snprintf(ret->folder, sizeof ret->folder, "run/%s", name);
    } else {
        n = snprintf(ret->folder, sizeof ret->folder, "%s", spec->out);
        while (n > 1 && n < PATH_MAX && ret->folder[n - 1] == '/')
            ret->folder[--n] = 0;
    }
    if (n >= PATH_MAX) return TTN_FAIL(err, TTN_EINVAL, "train.out: the path is too long");
    const char *slash = strrchr(ret->folder, '/');
    const int parent = slash ? (int)(slash - ret->folder) + 1 : 0;
    if (snprintf(ret->beside, sizeof ret->beside, "%.*sdata", parent, ret->folder) >= PATH_MAX)
        return TTN_FAIL(err, TTN_EINVAL, "train.out: the path is too long");
    return TTN_OK;
}

/* "titin train quickstart.yaml --resume", to be copied. *ret is the caller's (free). */
static ttn_status resume_command(const ttn_cli_call *call, char **ret, ttn_error *err)
{
    ttn_builder b = {0};
    ttn_build(&b, "titin train");
    if (ttn_cli_value(call, "preset")) {
        ttn_build(&b, " --preset ");
        ttn_build_word(&b, ttn_cli_value(call, "preset"));
    }
    for (int i = 0; i < call->n_argument; i++) {
        ttn_build(&b, " ");
        ttn_build_word(&b, call->argument[i]);
    }
    ttn_build(&b, " --resume");
    return ttn_builder_finish(&b, "the command that goes on", ret, err);
}

/* The words of the call, in order: options first. Room for n_argument + MOST_WORDS. */
enum { MOST_WORDS = 8 };
static int words_of(const ttn_cli_call *call, const char **ret)
{
    int n = 0;
    ret[n++] = "titin";
    ret[n++] = "train";
    if (ttn_cli_given(call, "resume")) ret[n++] = "--resume";
    if (ttn_cli_given(call, "allow-change")) ret[n++] = "--allow-change";
    if (ttn_cli_value(call, "preset")) {
        ret[n++] = "--preset";
        ret[n++] = ttn_cli_value(call, "preset");
    }
    for (int i = 0; i < call->n_argument; i++)
        ret[n++] = call->argument[i];
    return n;
}

/* ---- what is told while it runs ---- */

typedef struct {
    const ttn_cli_call *call;
    ttn_status_line line;
    ttn_training *run;
} told;

static void show_step(told *t, const ttn_training_event *e)
{
    char text[TTN_PROGRESS_TEXT];
    const ttn_training_facts *f = ttn_training_facts_of(t->run);
    const ttn_terminal *err = &t->call->err;
    ttn_screens_progress(e, err->redraws ? ttn_terminal_line_width(err) : 0, text);
    ttn_status_line_show(&t->line, text);
    if (e->done == 1 && e->step->step == 0) {
        ttn_status_line_end(&t->line);
        ttn_screen_first_loss(&t->call->out, e->step->loss, f->model->vocabulary);
        ttn_status_line_begin(&t->line, stderr, NULL);
    }
}

static void show_event(void *ctx, const ttn_training_event *e)
{
    told *t = ctx;
    char text[TTN_SCREENS_LINE];
    switch (e->what) {
    case TTN_TRAINING_STEP:
        show_step(t, e);
        break;
    case TTN_TRAINING_EVALUATES: /* elsewhere what it comes to is enough */
        if (t->call->err.redraws) ttn_status_line_show(&t->line, ttn_screens_evaluating(e->part, text));
        break;
    case TTN_TRAINING_EVALUATED:
        ttn_status_line_say(&t->line, TTN_LOG_INFO, ttn_screens_evaluated(e, text));
        break;
    case TTN_TRAINING_SAVED:
        break;
    }
}

static ttn_wish ask(void *ctx)
{
    (void)ctx;
    return ttn_signals_wish();
}

/* A ttn_pack_listener's. */
static int tell_packing(void *ctx, const ttn_pack_progress *p)
{
    told *t = ctx;
    char text[TTN_SCREENS_LINE];
    ttn_status_line_show(&t->line, ttn_screens_packing(p, text));
    return ttn_signals_wants_stop();
}

/* ---- all of it ---- */

static int threads_of(const ttn_train_spec *spec, const ttn_log *log)
{
    ttn_machine machine;
    ttn_machine_look("", &machine);
    const int cores = machine.cores.usable, n = ttn_train_spec_threads(spec, cores);
    if (n > cores)
        ttn_log_say(log, TTN_LOG_WARNING,
                    "%d threads (%s) on %d core%s that this process may use: they wait for each other, and steps take "
                    "longer; train.threads=%d is the most that helps",
                    n, spec->threads > 0 ? "train.threads" : "OMP_NUM_THREADS", cores, ttn_text_plural(cores), cores);
    return n;
}

static ttn_status run_it(told *t, const ttn_training_options *o, const char *folder, const char *resume, ttn_error *err)
{
    const double begin = ttn_clock_now(NULL);
    ttn_status status = ttn_training_create(o, &t->run, err);
    ttn_status_line_end(&t->line);
    if (status != TTN_OK) return status;
    ttn_screens_start(&t->call->out, t->run, o, folder);
    if (!o->folder) return TTN_OK;
    ttn_status_line_begin(&t->line, stderr, NULL);
    status = ttn_training_run(t->run, err);
    ttn_status_line_end(&t->line);
    if (status == TTN_OK || status == TTN_ESTOPPED || status == TTN_ENUMERIC)
        ttn_screens_end(&t->call->out, t->run, status == TTN_OK ? NULL : resume, ttn_clock_now(NULL) - begin);
    return status;
}

static ttn_status train(const ttn_cli_call *call, const ttn_config_table *table, const ttn_config *config,
                        const ttn_train_spec *spec, ttn_error *err)
{
    places where;
    char *resume = NULL;
    told t = {.call = call};
    ttn_status_line_begin(&t.line, stderr, NULL);
    const ttn_log log = {.say = ttn_status_line_say, .ctx = &t.line, .from = TTN_LOG_INFO};
    const int n_thread = threads_of(spec, &log);
    ttn_status status = find_places(call, config, spec, &where, err);
    if (status == TTN_OK) status = ttn_start(n_thread, err);
    const char **word = calloc((size_t)call->n_argument + MOST_WORDS, sizeof *word);
    if (status == TTN_OK && !word) status = TTN_FAIL(err, TTN_ENOMEM, "no memory for the arguments");
    if (status == TTN_OK) status = resume_command(call, &resume, err);
    if (status == TTN_OK) {
        const ttn_pack_listener packing = {.tell = tell_packing, .ctx = &t};
        const ttn_training_options o = {
            .table = table,
            .config = config,
            .folder = ttn_cli_given(call, "dry-run") ? NULL : where.folder,
            .planned = where.folder,
            .beside = where.beside,
            .resumes = ttn_cli_given(call, "resume"),
            .may_change = ttn_cli_given(call, "allow-change"),
            .n_thread = n_thread,
            .rate = rate_of_products(n_thread),
            .command = word,
            .n_command = words_of(call, word),
            .build = ttn_build_flags,
            .resume = resume,
            .log = &log,
            .packing = &packing,
            .tell = show_event,
            .wish = ask,
            .ctx = &t,
        };
        status = run_it(&t, &o, where.folder, resume, err);
        ttn_training_destroy(t.run);
    } else {
        ttn_status_line_end(&t.line);
    }
    free(word);
    free(resume);
    return status;
}

/* ---- --resume by the folder of a run ---- */

/* The call as ttn_configured is to read it, with words in memory of its own. */
typedef struct {
    ttn_cli_call call;
    char **word; /* (call.n_argument) */
    char file[PATH_MAX + sizeof TTN_RUN_CONFIG + 1], setting[PATH_MAX + sizeof "train.out="];
} resumed;

static int is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* RUN/config.resolved.yaml is a file, and is r->file. A pipe of that name would be waited for. */
static int has_resolved(const char *run, resumed *r)
{
    struct stat about;
    const int n = snprintf(r->file, sizeof r->file, "%s/" TTN_RUN_CONFIG, run);
    return n < (int)sizeof r->file && stat(r->file, &about) == 0 && S_ISREG(about.st_mode);
}

static int is_run(const char *folder)
{
    struct stat about;
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/" TTN_RUN_STARTS, folder) < (int)sizeof path && stat(path, &about) == 0;
}

/* What train.out is given as: on the command line, else in the environment. NULL: nowhere. */
static const char *given_out(const ttn_cli_call *call)
{
    static const char key[] = "train.out=";
    for (int i = 0; i < call->n_argument; i++)
        if (strncmp(call->argument[i], key, sizeof key - 1) == 0) return call->argument[i] + sizeof key - 1;
    return getenv("TITIN__TRAIN__OUT");
}

/* Arguments that are no settings: *ret_n of them, the last of which is *ret_at. Is a preset among the settings? */
static int count_files(const ttn_cli_call *call, int *ret_n, int *ret_at)
{
    int has_preset = ttn_cli_given(call, "preset") || getenv("TITIN__PRESET");
    *ret_n = 0;
    for (int i = 0; i < call->n_argument; i++) {
        has_preset |= strncmp(call->argument[i], "preset=", sizeof "preset=" - 1) == 0;
        if (ttn_is_setting(call->argument[i])) continue;
        *ret_at = i;
        (*ret_n)++;
    }
    return has_preset;
}

/* "RUN" or "RUN/config.resolved.yaml" at an argument's place: the folder into run (PATH_MAX), else "". */
static ttn_status find_run(const char *word, resumed *r, char *run, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    const int n = (int)strlen(word) - (int)sizeof TTN_RUN_CONFIG;
    run[0] = 0;
    if (is_folder(word)) {
        snprintf(run, PATH_MAX, "%s", word);
        if (has_resolved(run, r)) return TTN_OK;
        return TTN_FAIL(err, TTN_EINVAL,
                        "%s: this folder is not that of a run: there is no file " TTN_RUN_CONFIG " in it",
                        ttn_text_tail(word, shown));
    }
    if (strcmp(word, TTN_RUN_CONFIG) == 0)
        snprintf(run, PATH_MAX, ".");
    else if (n > 0 && n < PATH_MAX && strcmp(word + n, "/" TTN_RUN_CONFIG) == 0)
        snprintf(run, PATH_MAX, "%.*s", n, word);
    if (run[0] && !(is_run(run) && has_resolved(run, r))) run[0] = 0; /* a copy, which may lie anywhere */
    return TTN_OK;
}

/* Who names the run alone goes on with the configuration that it has. */
static ttn_status name_run(const ttn_cli_call *call, resumed *r, ttn_error *err)
{
    int n_file, at = -1;
    char run[PATH_MAX], out[PATH_MAX] = "", shown[TTN_TAIL_ROOM];
    const int has_preset = count_files(call, &n_file, &at);
    ttn_status status = given_out(call) ? ttn_path_expand(given_out(call), out, err) : TTN_OK;
    if (status != TTN_OK || n_file > 1) return status;
    if (n_file == 0) {
        if (has_preset || !out[0] || !has_resolved(out, r)) return TTN_OK;
        r->word[r->call.n_argument++] = r->file;
        return TTN_OK;
    }
    status = find_run(call->argument[at], r, run, err);
    if (status != TTN_OK || !run[0]) return status;
    if (out[0] && !ttn_files_are_same(out, run))
        return TTN_FAIL(err, TTN_EINVAL, "%s: this run is to go on, and train.out names another folder: leave it out",
                        ttn_text_tail(run, shown));
    r->word[at] = r->file;
    snprintf(r->setting, sizeof r->setting, "train.out=%s", run);
    if (!out[0]) r->word[r->call.n_argument++] = r->setting;
    return TTN_OK;
}

static ttn_status begin_resumed(const ttn_cli_call *call, resumed *r, ttn_error *err)
{
    enum { MORE = 2 };
    *r = (resumed){.call = *call};
    r->word = calloc((size_t)call->n_argument + MORE, sizeof *r->word);
    if (!r->word) return TTN_FAIL(err, TTN_ENOMEM, "no memory for the arguments");
    for (int i = 0; i < call->n_argument; i++)
        r->word[i] = call->argument[i];
    r->call.argument = r->word;
    return ttn_cli_given(call, "resume") ? name_run(call, r, err) : TTN_OK;
}

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    ttn_config_table *table = NULL;
    ttn_config *config = NULL;
    ttn_train_spec spec;
    resumed r;
    ttn_signals_take(); /* first: what comes while the run is set up is answered before its first step */
    ttn_status status = begin_resumed(call, &r, err);
    if (status == TTN_OK) status = ttn_configured(&r.call, 0, &table, &config, err);
    if (status == TTN_OK) status = ttn_train_spec_of(ttn_config_values(config), &spec, err);
    if (status == TTN_OK) status = train(call, table, config, &spec, err);
    ttn_config_destroy(config);
    ttn_config_table_destroy(table);
    free(r.word);
    return status;
}

static const ttn_cli_argument arguments[] = {TTN_FILES_ARGUMENT, {0}};

static const ttn_cli_option options[] = {
    {.name = "resume", .help = "go on from the newest checkpoint that is whole; where there is none, begin"},
    {.name = "allow-change", .help = "with --resume: also with other values of what may change in a run"},
    {.name = "dry-run", .help = "check everything, show the first screen, and end"},
    TTN_PRESET_OPTION,
    {0},
};

static const ttn_cli_example examples[] = {
    {"titin train --preset quickstart data.train=my.fa", "a small model of your own proteins"},
    {"titin train run.yaml train.out=run/a", "a file, and a value that wins over it"},
    {"titin train run.yaml train.out=run/a --resume", "the same, from where it was stopped"},
    {"titin train run/a --resume", "the same by its folder: with the configuration that it has"},
    {0},
};

static const ttn_exit exits[] = {TTN_EXIT_DATA, TTN_EXIT_CHECKPOINT, TTN_EXIT_NUMERIC, TTN_EXIT_STOPPED, TTN_EXIT_OK};
static const char *const sections[] = {"train", "data",      "pack",  "batch",    "mlm",
                                       "model", "attention", "optim", "schedule", NULL};

const ttn_command ttn_cmd_train = {
    .name = "train",
    .group = "models",
    .purpose = "train a model, or go on with its training",
    .description =
        "Trains a protein language model on data.train: a store (titin data pack), or files in FASTA, which are packed "
        "to run/data first. Everything a run writes is in its folder, train.out: the configuration, what was measured "
        "(metrics.jsonl, tb/, loss.svg, report.html), and checkpoints, of which ckpt/best has the lowest loss on "
        "proteins that were held out."
        "\n\n"
        "A run that was stopped goes on with --resume as if it had not been, to the bit, also with another number of "
        "threads. SIGINT (Ctrl-C), SIGTERM and SIGUSR1 end it after the current step with its state saved, and exit "
        "code 75; a second SIGINT ends it at once; SIGUSR2 saves, and it goes on; SIGHUP (a closed terminal) does not "
        "end it. A run whose loss stays far above the first one has diverged, and ends with exit code 5.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .exits = exits,
    .sections = sections,
    .run = run,
};
