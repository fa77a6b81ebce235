#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/memory.h"
#include "tests/harness/saved.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/files/run_folder.h"
#include "train/files/saver.h"

enum { WIDTH = 8, PASSED = 17 };

static char run[PATH_MAX / 2];

static void new_run(void)
{
    static int n;
    snprintf(run, sizeof run, "%s/%d", ttn_test_folder(), n++);
}

/* run/NAME; good for the next 8 calls. */
static const char *in_run(const char *name)
{
    static char paths[8][PATH_MAX];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_MAX, "%s/%s", run, name);
    return path;
}

static int is_there(const char *name)
{
    struct stat about;
    return lstat(in_run(name), &about) == 0;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(in_run(name), "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static ttn_run_folder *opened(void)
{
    ttn_error err = {0};
    ttn_run_folder *r;
    saved_forget();
    assert_ok(ttn_run_folder_open(run, NULL, &saved_log, &r, &err), &err);
    return r;
}

static void write_step(int64_t step)
{
    saved_model m;
    ttn_error err = {0};
    char path[PATH_MAX], name[TTN_STEP_NAME];
    snprintf(path, sizeof path, "%s/ckpt/%s", run, ttn_step_name(step, name));
    saved_create(&m, WIDTH);
    assert_ok(saved_write(&m, path, step, NULL, &err), &err);
    saved_destroy(&m);
}

/* "30 20 10" */
static const char *steps(void)
{
    static char text[400];
    int64_t *step, n;
    ttn_error err = {0};
    text[0] = 0;
    assert_ok(ttn_run_checkpoints(run, &step, &n, &err), &err);
    for (int64_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i ? " " : "", (long long)step[i]);
    ttn_free(step);
    return text;
}

/* ---- names ---- */

static void name_and_step_are_one_to_one(void **state)
{
    (void)state;
    static const struct {
        int64_t step;
        const char *name;
    } good[] = {{0, "step-00000000"},
                {12000, "step-00012000"},
                {99999999, "step-99999999"},
                {100000000, "step-100000000"},
                {INT64_MAX, "step-9223372036854775807"}};
    static const char *const bad[] = {"step-",         "step-1",         "step-000000001",           "step--0000001",
                                      "step-+0000001", "step-0000000a",  "step-00000001.tmp",        "step-00000001 ",
                                      "Step-00000001", "xstep-00000001", "step-9223372036854775808", ""};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char text[TTN_STEP_NAME];
        int64_t step = -1;
        assert_string_equal(ttn_step_name(good[i].step, text), good[i].name);
        assert_int_equal(ttn_step_parse(good[i].name, &step), 1);
        assert_int_equal(step, good[i].step);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t step;
        if (ttn_step_parse(bad[i], &step)) fail_msg("'%s' is taken for a step", bad[i]);
    }
}

/* ---- one writer, and other people's files ---- */

static void run_is_made_where_it_may_be(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    ttn_run_folder *r = opened();
    assert_true(is_there("ckpt") && is_there(".lock"));
    assert_string_equal(ttn_run_folder_path(r), run);
    assert_ok(ttn_run_folder_alive(r, &err), &err);
    assert_string_equal(steps(), "");
    ttn_run_folder_close(r);
    ttn_run_folder_close(NULL);
    ttn_run_folder_close(opened()); /* again */
    assert_fails(ttn_run_folder_open(in_run("no/run"), NULL, NULL, &r, &err), TTN_EINVAL, &err, "mkdir -p");
    assert_null(r);
    put("a file", "");
    err = (ttn_error){0};
    assert_fails(ttn_run_folder_open(in_run("a file"), NULL, NULL, &r, &err), TTN_EINVAL, &err, "is no folder");
    /* a run on another disk */
    char elsewhere[PATH_MAX];
    new_run();
    snprintf(elsewhere, sizeof elsewhere, "%s.disk", run);
    assert_int_equal(mkdir(elsewhere, 0777), 0);
    assert_int_equal(symlink(elsewhere, run), 0);
    r = opened();
    write_step(10);
    assert_string_equal(steps(), "10");
    ttn_run_folder_close(r);
}

/* A tar archive that came from somebody else may have any of them, and `ln -s` to save space on a disk. */
static void what_a_run_writes_to_is_no_link(void **state)
{
    (void)state;
    static const struct {
        const char *name, *what;
    } own[] = {{"ckpt", "move that folder here in place of the link"},
               {"tb", "move that folder here in place of the link"},
               {"config.resolved.yaml", "remove the link, or put a copy of the file in its place"},
               {"run.json", "remove the link"},
               {"metrics.jsonl", "remove the link"},
               {"loss.svg", "remove the link"},
               {"report.html", "remove the link"},
               {".lock", "move it away"}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        for (int leads_nowhere = 0; leads_nowhere < 2; leads_nowhere++) {
            ttn_error err = {0};
            ttn_run_folder *r;
            new_run();
            assert_int_equal(mkdir(run, 0777), 0);
            assert_int_equal(mkdir(in_run("elsewhere"), 0777), 0);
            put("elsewhere/mine", "my only copy");
            assert_int_equal(symlink(leads_nowhere ? "elsewhere/new"
                                     : i < 2       ? "elsewhere"
                                                   : "elsewhere/mine",
                                     in_run(own[i].name)),
                             0);
            assert_fails(ttn_run_folder_open(run, NULL, NULL, &r, &err), TTN_EINVAL, &err, own[i].what);
            assert_contains(err.text, own[i].name);
            assert_contains(err.text, "is a link");
            assert_null(r);
            struct stat about;
            assert_int_equal(stat(in_run("elsewhere/mine"), &about), 0);
            assert_int_equal(about.st_size, 12);
            assert_false(is_there("elsewhere/new"));
            assert_int_equal(remove(in_run(own[i].name)), 0);
            /* Nor anything else that is not what the run makes there. */
            if (i < 2)
                put(own[i].name, "a file");
            else
                assert_int_equal(mkdir(in_run(own[i].name), 0777), 0);
            err = (ttn_error){0};
            assert_fails(ttn_run_folder_open(run, NULL, NULL, &r, &err), TTN_EINVAL, &err, "move it away");
            assert_int_equal(remove(in_run(own[i].name)), 0);
            ttn_run_folder_close(opened()); /* and without it the run begins */
        }
}

/* Its ckpt is a link to the one of a run that is being written: neither runs nor its own take from the other. */
static void the_checkpoints_of_another_run_are_not_taken(void **state)
{
    (void)state;
    char other[PATH_MAX];
    ttn_error err = {0};
    ttn_run_folder *writing, *r;
    new_run();
    writing = opened();
    for (int64_t step = 10; step <= 50; step += 10)
        write_step(step);
    assert_int_equal(mkdir(in_run("ckpt/.step-00000060.tmp-1-0"), 0777), 0);
    snprintf(other, sizeof other, "%s.b", run);
    assert_int_equal(mkdir(other, 0777), 0);
    strcat(other, "/ckpt");
    assert_int_equal(symlink(in_run("ckpt"), other), 0);
    other[strlen(other) - strlen("/ckpt")] = 0;
    assert_fails(ttn_run_folder_open(other, NULL, NULL, &r, &err), TTN_EINVAL, &err, "is a link to ");
    assert_string_equal(steps(), "50 40 30 20 10");
    assert_true(is_there("ckpt/.step-00000060.tmp-1-0"));
    ttn_run_folder_close(writing);
}

static int open_again(void *arg)
{
    (void)arg;
    ttn_error err = {0};
    ttn_run_folder *r;
    ttn_status status = ttn_run_folder_open(run, NULL, NULL, &r, &err);
    printf("%s\n", err.text);
    return status == TTN_EINVAL ? PASSED : 1;
}

static void second_process_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    new_run();
    ttn_run_folder *r = opened();
    assert_int_equal(mkdir(in_run("ckpt/.step-00000010.tmp-1-0"), 0777), 0); /* is being written, as far as it knows */
    ttn_child child = run_in_child((ttn_child_limit){0}, open_again, NULL);
    if (!child.exited || child.exit_code != PASSED) fail_msg("%s", child.output);
    char words[64];
    snprintf(words, sizeof words, "process %ld of this machine writes here", (long)getpid());
    assert_contains(child.output, words);
    assert_true(is_there("ckpt/.step-00000010.tmp-1-0"));
    ttn_run_folder_close(r);
}

static void what_a_killed_process_left_is_taken_over_and_removed(void **state)
{
    (void)state;
    new_run();
    static const char *const left[] = {".config.resolved.yaml.tmp-99-0", ".run.json.tmp-99-1",
                                       ".metrics.jsonl.tmp-99-0", ".loss.svg.tmp-99-0", ".report.html.tmp-99-12"};
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)opened();
        if (mkdir(in_run("ckpt/.step-00000010.tmp-99-0"), 0777) != 0) _exit(1);
        put("ckpt/.step-00000010.tmp-99-0/model.safetensors", "half");
        if (symlink("step-00000010", in_run("ckpt/.latest.tmp-99-0")) != 0) _exit(1);
        if (mkdir(in_run("ckpt/.step-00000005.trash-99-0"), 0777) != 0) _exit(1);
        for (size_t i = 0; i < sizeof left / sizeof *left; i++)
            put(left[i], "half");
        if (mkdir(in_run(".nan-step-00000007.tmp-99-0"), 0777) != 0) _exit(1);
        put(".nan-step-00000007.tmp-99-0/step.json", "half");
        if (write(ready[1], "!", 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    static const char *const foreign[] = {
        "ckpt/.step-00000010.tmp-mine", "ckpt/.notes.tmp-1-0",    "ckpt/.latest",
        "ckpt/.step-1.tmp-1-0",         ".step-00000010.tmp-1-0", ".notes.txt.tmp-99-0",
        ".report.html.tmp-mine",        ".tb.tmp-99-0",           ".nan-step-00000008.tmp-99-0"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        put(foreign[i], "");
    put("ckpt/.step-00000011.tmp-1-0", "a file, and checkpoints are folders");
    ttn_run_folder *r = opened();
    assert_false(is_there("ckpt/.step-00000010.tmp-99-0"));
    assert_false(is_there("ckpt/.latest.tmp-99-0"));
    assert_false(is_there("ckpt/.step-00000005.trash-99-0"));
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (is_there(left[i])) fail_msg("%s is still there", left[i]);
    assert_false(is_there(".nan-step-00000007.tmp-99-0"));
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (!is_there(foreign[i])) fail_msg("%s is gone", foreign[i]);
    assert_true(is_there("ckpt/.step-00000011.tmp-1-0"));
    char words[64];
    snprintf(words, sizeof words, "was left by process %ld", (long)child);
    assert_contains(saved_said, words);
    assert_contains(saved_said, ".step-00000010.tmp-99-0: removed; whoever was writing it was killed");
    ttn_run_folder_close(r);
    shim_real_close(ready[0]);
    shim_real_close(ready[1]);
}

/* ---- retention ---- */

static void retention_keeps_the_newest_and_whatever_is_not_its_own(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    ttn_run_folder *r = opened();
    for (int64_t step = 10; step <= 60; step += 10)
        write_step(step);
    put("ckpt/step-00000010/notes.txt", "why this one is good");
    put("ckpt/step-00000060/state.json", "cut"); /* not whole: does not count, and stays for whoever looks into it */
    put("ckpt/notes.txt", "");
    assert_int_equal(mkdir(in_run("ckpt/step-00000001"), 0777), 0); /* no manifest: somebody's */
    assert_int_equal(mkdir(in_run("ckpt/step-7"), 0777), 0);
    assert_ok(ttn_run_retain(r, 2, -1, &saved_log, &err), &err);
    assert_string_equal(steps(), "60 50 40 10 1");
    assert_contains(saved_said, "step-00000010 is kept, though old: it holds something that is not its own: notes.txt");
    assert_true(is_there("ckpt/notes.txt") && is_there("ckpt/step-7") && is_there("ckpt/step-00000010/notes.txt"));
    assert_ok(ttn_run_retain(r, 1, -1, NULL, &err), &err);
    assert_string_equal(steps(), "60 50 10 1");
    ttn_checkpoint *c;
    assert_ok(ttn_run_newest(run, NULL, &c, &err), &err);
    assert_int_equal(ttn_checkpoint_state(c)->step, 50);
    ttn_checkpoint_close(c);
    ttn_run_folder_close(r);
}

/* `cp -r step-00000050 step-00000099`: neither taken for step 99, nor counted, nor removed. */
static void copy_under_the_name_of_another_step_is_passed_over(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    ttn_checkpoint *c;
    ttn_run_folder *r = opened();
    write_step(50);
    assert_int_equal(rename(in_run("ckpt/step-00000050"), in_run("ckpt/step-00000099")), 0);
    assert_fails(ttn_run_newest(run, &saved_log, &c, &err), TTN_ECHECKPOINT, &err,
                 "is called after step 99 and holds step 50; it is a copy or was renamed: give it the name "
                 "step-00000050");
    assert_null(c);
    write_step(40);
    write_step(50);
    err = (ttn_error){0};
    assert_ok(ttn_run_newest(run, &saved_log, &c, &err), &err);
    assert_int_equal(ttn_checkpoint_state(c)->step, 50);
    ttn_checkpoint_close(c);
    assert_contains(saved_said, "checkpoint 99 is passed over: ");
    assert_ok(ttn_run_retain(r, 1, -1, &saved_log, &err), &err);
    assert_string_equal(steps(), "99 50");
    ttn_run_folder_close(r);
}

static void latest_leads_to_the_last_one_saved(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    char target[100] = "";
    ttn_run_folder *r = opened();
    assert_ok(ttn_run_set_latest(r, 10, &err), &err);
    assert_ok(ttn_run_set_latest(r, 20, &err), &err);
    assert_int_equal(readlink(in_run("ckpt/latest"), target, sizeof target - 1), 13);
    assert_string_equal(target, "step-00000020");
    assert_int_equal(remove(in_run("ckpt/latest")), 0);
    put("ckpt/latest", "somebody's");
    for (int64_t step = 30; step <= 40; step += 10) {
        assert_ok(ttn_run_set_latest(r, step, &err), &err);
        assert_true(is_there("ckpt/latest.kept-1"));
    }
    assert_false(is_there("ckpt/latest.kept-2"));
    assert_int_equal(readlink(in_run("ckpt/latest"), target, sizeof target - 1), 13);
    assert_string_equal(target, "step-00000040");
    assert_contains(saved_said, "ckpt/latest is not a link any more");
    ttn_run_folder_close(r);
}

/* Neither counted nor removed, also when it is the oldest; a link that leads to no step is none. */
static void the_best_stays_beside_the_newest(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    ttn_run_folder *r = opened();
    for (int64_t step = 10; step <= 50; step += 10)
        write_step(step);
    assert_int_equal(ttn_run_best(run), -1);
    assert_ok(ttn_run_set_best(r, 20, &err), &err);
    assert_int_equal(ttn_run_best(run), 20);
    assert_ok(ttn_run_retain(r, 2, -1, NULL, &err), &err);
    assert_string_equal(steps(), "50 40 20");
    assert_ok(ttn_run_retain(r, 1, 20, NULL, &err), &err); /* the one just saved is the best: it counts */
    assert_string_equal(steps(), "20");
    assert_ok(ttn_run_set_best(r, 70, &err), &err);
    assert_int_equal(ttn_run_best(run), 70);
    write_step(60);
    assert_ok(ttn_run_retain(r, 1, -1, NULL, &err), &err);
    assert_string_equal(steps(), "60");
    assert_int_equal(remove(in_run("ckpt/best")), 0);
    assert_int_equal(symlink("elsewhere", in_run("ckpt/best")), 0);
    assert_int_equal(ttn_run_best(run), -1);
    ttn_run_folder_close(r);
}

static const char *best_link(void)
{
    static char target[100];
    const ssize_t n = readlink(in_run("ckpt/best"), target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
    return target;
}

/* rclone, a bucket, zip and exFAT drop links, scp -r and cp -L make folders of them, and a link may lead to another step:
 * the run knows its best one. */
static void the_best_stays_without_its_link(void **state)
{
    (void)state;
    static const char *const ways[] = {"lost", "a folder", "a file", "another", "nowhere"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        new_run();
        ttn_error err = {0};
        ttn_run_folder *r = opened();
        for (int64_t step = 10; step <= 50; step += 10)
            write_step(step);
        if (i == 1) {
            assert_int_equal(mkdir(in_run("ckpt/best"), 0777), 0);
            put("ckpt/best/mine", "");
        }
        if (i == 2) put("ckpt/best", "step-00000010");
        if (i == 3) assert_int_equal(symlink("step-00000030", in_run("ckpt/best")), 0);
        if (i == 4) assert_int_equal(symlink("step-00000099", in_run("ckpt/best")), 0);
        ttn_run_restore_best(r, 10);
        assert_ok(ttn_run_retain(r, 1, -1, &saved_log, &err), &err);
        assert_string_equal(steps(), "50 10");
        assert_string_equal(best_link(), "step-00000010");
        assert_contains(saved_said, "info: ckpt/best is restored: it leads to the best checkpoint so far, step 10");
        assert_int_equal(is_there("ckpt/best.kept-1/mine"), i == 1);
        assert_int_equal(is_there("ckpt/best.kept-1"), i == 1 || i == 2);
        /* Where it is right nothing is said. */
        saved_forget();
        ttn_run_restore_best(r, 10);
        assert_string_equal(saved_said, "");
        /* One that is not there any more is told, and is led to by nobody. */
        ttn_run_restore_best(r, 11);
        assert_contains(saved_said, "step-00000011: is missing, and was the best checkpoint so far");
        assert_string_equal(best_link(), "step-00000010");
        ttn_run_folder_close(r);
    }
}

/* ---- saving beside the training ---- */

typedef struct {
    ttn_run_folder *r;
    saved_model m;
    ttn_saver *s;
} session;

static void start_as(session *x, int64_t width, int keep, int copy_first)
{
    ttn_error err = {0};
    x->r = opened();
    saved_create(&x->m, width);
    const ttn_saver_options options = {.keep = keep, .log = &saved_log, .copy_first = copy_first};
    assert_ok(ttn_saver_create(x->r, x->m.w, NULL, x->m.more, SAVED_N_MORE, &options, &x->s, &err), &err);
}

static void start(session *x, int64_t width, int keep)
{
    start_as(x, width, keep, 0);
}

static void end(session *x)
{
    ttn_saver_destroy(x->s);
    saved_destroy(&x->m);
    ttn_run_folder_close(x->r);
}

static ttn_status begin_save(session *x, int64_t step, ttn_error *err)
{
    const ttn_run_state state = saved_state(step);
    saved_fill(&x->m, step);
    return ttn_saver_save(x->s, x->m.w, x->m.more, &state, err);
}

static void check_moment(int copy_first)
{
    new_run();
    ttn_error err = {0};
    ttn_saver_report report;
    session x;
    start_as(&x, WIDTH, 2, copy_first);
    ttn_saver_settle(x.s); /* nothing is being saved */
    assert_ok(ttn_saver_poll(x.s, &report, &err), &err);
    assert_int_equal(report.step, -1);
    for (int64_t step = 10; step <= 40; step += 10) {
        assert_ok(begin_save(&x, step, &err), &err);
        if (!copy_first) ttn_saver_settle(x.s);
        saved_fill(&x.m, step + 5); /* training goes on */
    }
    assert_ok(ttn_saver_wait(x.s, &report, &err), &err);
    assert_int_equal(report.step, 40);
    assert_int_equal(report.is_saved, 1);
    assert_string_equal(report.warning, "");
    assert_true(report.bytes > 1000 && report.written > 0 && report.waited >= 0);
    assert_string_equal(steps(), "40 30");
    ttn_checkpoint *c;
    assert_ok(ttn_run_newest(run, NULL, &c, &err), &err);
    assert_ok(saved_load(&x.m, c, &err), &err);
    saved_check(&x.m, 40);
    saved_check_state(ttn_checkpoint_state(c), 40);
    ttn_checkpoint_close(c);
    assert_ok(begin_save(&x, 50, &err), &err);
    end(&x); /* waits */
    assert_string_equal(steps(), "50 40");
}

static void save_is_of_the_moment_it_was_asked_for(void **state)
{
    (void)state;
    check_moment(0);
    check_moment(1);
}

static void failure_is_told_once_and_the_next_save_goes_on(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    ttn_saver_report report;
    session x;
    start(&x, WIDTH, 2);
    assert_ok(begin_save(&x, 10, &err), &err);
    assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
    shim_arm(SHIM_FSYNC, 1, SHIM_FAIL, EIO, 0);
    assert_ok(begin_save(&x, 20, &err), &err);
    int64_t tries = 0;
    ttn_status status = TTN_OK;
    while (status == TTN_OK && tries++ < 60000) {
        status = ttn_saver_poll(x.s, &report, &err);
        usleep(1000);
    }
    shim_disarm();
    assert_fails(status, TTN_EIO, &err, "step 20: ");
    assert_contains(err.text, "Input/output error");
    assert_int_equal(report.step, 20);
    assert_int_equal(report.is_saved, 0);
    err = (ttn_error){0};
    assert_ok(ttn_saver_wait(x.s, &report, &err), &err);
    assert_string_equal(steps(), "10");

    /* Who does not ask meets it when saving next; nothing is begun then. */
    shim_arm(SHIM_FSYNC, 1, SHIM_FAIL, ENOSPC, 0);
    assert_ok(begin_save(&x, 30, &err), &err);
    assert_fails(begin_save(&x, 40, &err), TTN_EIO, &err, "step 30: ");
    shim_disarm();
    assert_string_equal(steps(), "10");
    err = (ttn_error){0};
    assert_ok(begin_save(&x, 40, &err), &err);
    assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
    assert_string_equal(steps(), "40 10");
    end(&x);
}

static void numbers_that_are_not_finite_are_told_and_not_saved(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    ttn_saver_report report;
    session x;
    start(&x, WIDTH, 2);
    assert_ok(begin_save(&x, 10, &err), &err);
    assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
    const ttn_run_state then = saved_state(10);
    real scale = (real)NAN;
    assert_ok(ttn_weights_write(x.m.w, ttn_weights_find(x.m.w, "layer.0.scale"), TTN_SLAB_VALUE, &scale, &err), &err);
    assert_ok(ttn_saver_save(x.s, x.m.w, x.m.more, &then, &err), &err);
    assert_fails(ttn_saver_wait(x.s, &report, &err), TTN_ENUMERIC, &err, "layer.0.scale");
    assert_contains(err.text, "the last good checkpoint stays");
    assert_int_equal(report.is_saved, 0);
    ttn_checkpoint *c;
    err = (ttn_error){0};
    assert_ok(ttn_run_newest(run, NULL, &c, &err), &err);
    assert_ok(saved_load(&x.m, c, &err), &err);
    saved_check(&x.m, 10);
    ttn_checkpoint_close(c);
    end(&x);
}

/* A ttn_shim watch: a file system without links. */
static int has_no_links(void *ctx, const shim_call *call)
{
    (void)ctx;
    return strcmp(call->name, "symlink") == 0 ? EPERM : 0;
}

static void what_fails_after_the_checkpoint_is_in_place_is_a_warning(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    ttn_saver_report report;
    session x;
    start(&x, WIDTH, 2);
    shim_watch(has_no_links, NULL);
    assert_ok(begin_save(&x, 10, &err), &err);
    assert_ok(ttn_saver_wait(x.s, &report, &err), &err);
    shim_watch(NULL, NULL);
    assert_int_equal(report.is_saved, 1);
    assert_contains(report.warning, "ckpt/latest: cannot create the temporary");
    assert_contains(saved_said, "warning: step 10 is saved, but ");
    end(&x);
}

/* Also the best, and old ones go. */
static void without_links_the_same_checkpoints_stay(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    session x;
    start(&x, WIDTH, 2);
    shim_watch(has_no_links, NULL);
    for (int64_t step = 10; step <= 60; step += 10) {
        if (step <= 20) ttn_saver_mark_best(x.s);
        assert_ok(begin_save(&x, step, &err), &err);
        assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
    }
    shim_watch(NULL, NULL);
    assert_string_equal(steps(), "60 50 20");
    end(&x);
}

static void folder_with_somebodys_file_is_not_replaced_but_renamed(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    session x;
    start(&x, WIDTH, 2);
    assert_ok(begin_save(&x, 10, &err), &err);
    assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
    put("ckpt/step-00000010/notes.txt", "mine");
    assert_int_equal(mkdir(in_run("ckpt/step-00000010.kept-1"), 0777), 0); /* that name is taken */
    for (int again = 0; again < 2; again++) {
        assert_ok(begin_save(&x, 10, &err), &err);
        assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
        assert_true(is_there("ckpt/step-00000010.kept-2/notes.txt"));
        assert_true(is_there("ckpt/step-00000010.kept-2/model.safetensors"));
        assert_false(is_there("ckpt/step-00000010/notes.txt"));
        assert_false(is_there("ckpt/step-00000010.kept-3"));
    }
    assert_contains(saved_said, "holds something that is not its own (notes.txt) and is now called ");
    assert_string_equal(steps(), "10");
    /* Nor when its manifest is gone. */
    assert_int_equal(remove(in_run("ckpt/step-00000010/MANIFEST.json")), 0);
    put("ckpt/step-00000010/more.txt", "mine");
    assert_ok(begin_save(&x, 10, &err), &err);
    assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
    assert_true(is_there("ckpt/step-00000010.kept-3/more.txt"));
    end(&x);
}

/* A folder or a link under the name of a file of titin's is somebody's, too. */
static void what_has_the_name_of_a_file_and_is_none_is_not_removed(void **state)
{
    (void)state;
    static const char *const names[] = {"state.json", "model.safetensors", "optim-r0000-of-0001.safetensors",
                                        "MANIFEST.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int kind = 0; kind < 3;
             kind++) { /* a folder with a file, a link; a folder beside a whole checkpoint's files */
            new_run();
            ttn_error err = {0};
            session x;
            char inside[100], kept[100];
            start(&x, WIDTH, 1);
            if (kind == 2) {
                assert_ok(begin_save(&x, 10, &err), &err);
                assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
            } else {
                assert_int_equal(mkdir(in_run("ckpt/step-00000010"), 0777), 0);
            }
            put("mine", "my only copy");
            snprintf(inside, sizeof inside, "ckpt/step-00000010/%s", names[i]);
            (void)remove(in_run(inside));
            if (kind == 1) {
                assert_int_equal(symlink("../../mine", in_run(inside)), 0);
            } else {
                assert_int_equal(mkdir(in_run(inside), 0777), 0);
                snprintf(inside, sizeof inside, "ckpt/step-00000010/%s/mine", names[i]);
                put(inside, "my only copy");
            }
            assert_ok(begin_save(&x, 10, &err), &err);
            assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
            snprintf(kept, sizeof kept, "ckpt/step-00000010.kept-1/%s%s", names[i], kind == 1 ? "" : "/mine");
            if (!is_there(kept)) fail_msg("%s is gone", kept);
            assert_contains(saved_said, "holds something that is not its own");
            /* Nor when it is old: what a manifest does not list, and whatever is none of its files. */
            assert_ok(begin_save(&x, 20, &err), &err);
            assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
            assert_string_equal(steps(), "20");
            assert_true(is_there(kept) && is_there("mine"));
            end(&x);
        }
}

/* A save that fails leaves the run with the checkpoint it had, also where that one would have to make way. */
static void checkpoint_that_is_to_make_way_stays_when_the_save_fails(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    ttn_checkpoint *c;
    session x;
    start(&x, WIDTH, 2);
    assert_ok(begin_save(&x, 10, &err), &err);
    assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
    put("ckpt/step-00000010/notes.txt", "mine");
    x.m.average[1] = NAN;
    const ttn_run_state again = saved_state(10);
    assert_ok(ttn_saver_save(x.s, x.m.w, x.m.more, &again, &err), &err);
    assert_fails(ttn_saver_wait(x.s, NULL, &err), TTN_ENUMERIC, &err, "the last good checkpoint stays");
    assert_ok(ttn_run_newest(run, NULL, &c, &err), &err);
    if (!c) fail_msg("the run has lost its checkpoint");
    ttn_checkpoint_close(c);
    assert_true(is_there("ckpt/step-00000010/notes.txt"));
    end(&x);
}

static int save_10_and_be_killed(void *arg)
{
    ttn_error err = {0};
    session x;
    start(&x, WIDTH, 2);
    shim_arm(SHIM_FILES, *(const int *)arg, SHIM_KILL, 0, 0);
    ttn_status status = begin_save(&x, 10, &err);
    if (status == TTN_OK) status = ttn_saver_wait(x.s, NULL, &err);
    shim_disarm();
    end(&x);
    return status == TTN_OK ? PASSED : 1;
}

/* Wherever the process is killed, the name of the checkpoint stands for one that loads, and the next process removes
 * neither that nor somebody's file. */
static void kill_while_a_checkpoint_makes_way_leaves_the_name_to_one_of_both(void **state)
{
    (void)state;
    int killed = 1, n_made_way = 0;
    for (int n = 1; killed; n++) {
        new_run();
        ttn_error err = {0};
        ttn_checkpoint *c;
        ttn_run_folder_close(opened());
        write_step(10);
        put("ckpt/step-00000010/notes.txt", "mine");
        ttn_child child = run_in_child((ttn_child_limit){0}, save_10_and_be_killed, &n);
        killed = !child.exited;
        if (killed ? child.signal != SIGKILL : child.exit_code != PASSED) fail_msg("call %d: %s", n, child.output);
        for (int next = 0; next < 2; next++) {
            assert_ok(ttn_run_newest(run, NULL, &c, &err), &err);
            if (!c) fail_msg("killed in place of call %d: no checkpoint has its name", n);
            ttn_checkpoint_close(c);
            const int made_way = is_there("ckpt/step-00000010.kept-1/notes.txt");
            if (!made_way && !is_there("ckpt/step-00000010/notes.txt"))
                fail_msg("killed in place of call %d: somebody's file is gone", n);
            n_made_way += made_way;
            ttn_run_folder_close(opened());
        }
    }
    assert_true(n_made_way > 0);
}

/* A file of that name would make every save of the step fail. */
static void file_with_the_name_of_a_checkpoint_makes_way(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    session x;
    start(&x, WIDTH, 2);
    put("ckpt/step-00000010", "mine");
    assert_ok(begin_save(&x, 10, &err), &err);
    assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
    assert_true(is_there("ckpt/step-00000010.kept-1"));
    assert_true(is_there("ckpt/step-00000010/MANIFEST.json"));
    assert_contains(saved_said, "step-00000010 is no folder and is now called ");
    end(&x);
}

/* Somebody moved a checkpoint to another disk, and put a link in its place. */
static void what_a_link_leads_to_is_neither_replaced_nor_removed(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    ttn_saver_report report;
    char elsewhere[PATH_MAX];
    session x;
    start(&x, WIDTH, 1);
    assert_ok(begin_save(&x, 10, &err), &err);
    assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", run);
    assert_int_equal(rename(in_run("ckpt/step-00000010"), elsewhere), 0);
    put("elsewhere/notes.txt", "mine");
    assert_int_equal(symlink(elsewhere, in_run("ckpt/step-00000010")), 0);
    assert_ok(begin_save(&x, 10, &err), &err);
    assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
    assert_true(is_there("elsewhere/notes.txt"));
    assert_true(is_there("ckpt/step-00000010.kept-1/notes.txt"));
    struct stat about;
    assert_int_equal(lstat(in_run("ckpt/step-00000010"), &about), 0);
    assert_true(S_ISDIR(about.st_mode));
    assert_contains(saved_said, "step-00000010 is a link");

    write_step(5); /* and where it is old */
    assert_int_equal(rename(in_run("ckpt/step-00000005"), in_run("older")), 0);
    assert_int_equal(symlink("../older", in_run("ckpt/step-00000005")), 0);
    saved_forget();
    assert_ok(begin_save(&x, 20, &err), &err);
    assert_ok(ttn_saver_wait(x.s, &report, &err), &err);
    assert_string_equal(report.warning, "");
    assert_string_equal(steps(), "20 5");
    assert_true(is_there("older/model.safetensors"));
    assert_contains(saved_said, "step-00000005 is kept, though old: it is a link");
    end(&x);
}

/* Whoever goes back to step 10 of a run that has 40 and 50 keeps what is saved from there on. */
static void what_was_just_saved_stays_also_when_others_are_of_later_steps(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    session x;
    start(&x, WIDTH, 2);
    static const int64_t step[] = {40, 50, 10, 20};
    static const char *const left[] = {"40", "50 40", "50 10", "50 20"};
    for (int i = 0; i < 4; i++) {
        assert_ok(begin_save(&x, step[i], &err), &err);
        assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
        assert_string_equal(steps(), left[i]);
    }
    end(&x);
}

static void old_checkpoints_go_also_where_somebody_has_the_name_of_the_link(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    ttn_saver_report report;
    session x;
    start(&x, WIDTH, 2);
    put("ckpt/latest", "somebody's");
    for (int64_t step = 10; step <= 50; step += 10) {
        assert_ok(begin_save(&x, step, &err), &err);
        assert_ok(ttn_saver_wait(x.s, &report, &err), &err);
        assert_string_equal(report.warning, "");
    }
    assert_string_equal(steps(), "50 40");
    assert_true(is_there("ckpt/latest.kept-1"));
    end(&x);
}

static volatile sig_atomic_t n_caught;

static void note_signal(int number)
{
    (void)number;
    n_caught = 1;
}

static int hold_fsync(void *ctx, const shim_call *call)
{
    _Atomic int *held = ctx;
    if (strcmp(call->name, "fsync") == 0 && atomic_load(held) == 0) {
        atomic_store(held, 1);
        while (atomic_load(held) == 1)
            usleep(100);
    }
    return 0;
}

/* The thread that trains is in a lock or waits for a device, and the process gets a signal: its handler runs there. */
static void signals_are_for_the_thread_that_trains(void **state)
{
    (void)state;
    new_run();
    ttn_error err = {0};
    _Atomic int held = 0;
    session x;
    start(&x, WIDTH, 2);
    signal(SIGUSR1, note_signal);
    shim_watch(hold_fsync, (void *)&held);
    assert_ok(begin_save(&x, 10, &err), &err);
    while (atomic_load(&held) == 0)
        usleep(100);
    ttn_saver_report report;
    assert_ok(ttn_saver_poll(x.s, &report, &err), &err); /* does not wait */
    assert_int_equal(report.step, -1);
    sigset_t usr1, before;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, &before); /* so the saver's thread would be the only one to take it */
    kill(getpid(), SIGUSR1);
    usleep(2000);
    assert_int_equal(n_caught, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(n_caught, 1);
    atomic_store(&held, 2);
    assert_ok(ttn_saver_wait(x.s, NULL, &err), &err);
    shim_watch(NULL, NULL);
    signal(SIGUSR1, SIG_DFL);
    end(&x);
}

/* Share of a save's time that the caller is kept. On a disk, not in memory: fsync counts. */
static double share_waited(int copy_first)
{
    enum {
        LARGE = 1500,
        STEP_MS = 100 /* forward and backward: of 7.5 M weights and 65,536 residues, minutes on a core */
    };
    char here[] = "titin-test-XXXXXX";
    assert_non_null(mkdtemp(here));
    snprintf(run, sizeof run, "%s/run", here);
    ttn_error err = {0};
    double waited = 0, written = 0, bytes = 0;
    session x;
    start_as(&x, LARGE, 1, copy_first);
    saved_fill(&x.m, 1);
    for (int64_t step = 1; step <= 6; step++) {
        ttn_saver_report report;
        const ttn_run_state then = saved_state(step);
        assert_ok(ttn_saver_save(x.s, x.m.w, x.m.more, &then, &err), &err);
        usleep(1000 * STEP_MS);
        ttn_saver_settle(x.s);
        assert_ok(ttn_saver_wait(x.s, &report, &err), &err);
        if (step == 1) continue;
        waited += report.waited;
        written += report.written;
        bytes += (double)report.bytes;
    }
    print_message("# %s: %.1f MB, the caller waited %.4f s beside %.3f s of writing, %.2f %%\n",
                  copy_first ? "copied first" : "copied beside", bytes / 1e6, waited, written, 100 * waited / written);
    end(&x);
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -rf '%s'", here);
    assert_int_equal(system(command), 0);
    return waited / written;
}

static void caller_waits_for_a_small_part_of_a_save(void **state)
{
    (void)state;
    if (!ttn_test_long()) skip_because("a time on a machine that others use; TTN_LONG=1 measures it");
    (void)share_waited(1);
    assert_at_most(share_waited(0), 0.02, "the share of a save that the caller waits");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    if (!ttn_test_long() && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1); /* fsync is not what counts */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_and_step_are_one_to_one),
        cmocka_unit_test(run_is_made_where_it_may_be),
        cmocka_unit_test(the_checkpoints_of_another_run_are_not_taken),
        cmocka_unit_test(what_a_run_writes_to_is_no_link),
        cmocka_unit_test(second_process_is_refused_and_changes_nothing),
        cmocka_unit_test(what_a_killed_process_left_is_taken_over_and_removed),
        cmocka_unit_test(retention_keeps_the_newest_and_whatever_is_not_its_own),
        cmocka_unit_test(copy_under_the_name_of_another_step_is_passed_over),
        cmocka_unit_test(latest_leads_to_the_last_one_saved),
        cmocka_unit_test(the_best_stays_beside_the_newest),
        cmocka_unit_test(the_best_stays_without_its_link),
        cmocka_unit_test(save_is_of_the_moment_it_was_asked_for),
        cmocka_unit_test(failure_is_told_once_and_the_next_save_goes_on),
        cmocka_unit_test(numbers_that_are_not_finite_are_told_and_not_saved),
        cmocka_unit_test(what_fails_after_the_checkpoint_is_in_place_is_a_warning),
        cmocka_unit_test(without_links_the_same_checkpoints_stay),
        cmocka_unit_test(folder_with_somebodys_file_is_not_replaced_but_renamed),
        cmocka_unit_test(what_has_the_name_of_a_file_and_is_none_is_not_removed),
        cmocka_unit_test(kill_while_a_checkpoint_makes_way_leaves_the_name_to_one_of_both),
        cmocka_unit_test(file_with_the_name_of_a_checkpoint_makes_way),
        cmocka_unit_test(checkpoint_that_is_to_make_way_stays_when_the_save_fails),
        cmocka_unit_test(what_a_link_leads_to_is_neither_replaced_nor_removed),
        cmocka_unit_test(what_was_just_saved_stays_also_when_others_are_of_later_steps),
        cmocka_unit_test(old_checkpoints_go_also_where_somebody_has_the_name_of_the_link),
        cmocka_unit_test(signals_are_for_the_thread_that_trains),
        cmocka_unit_test(caller_waits_for_a_small_part_of_a_save),
    };
    return ttn_test_run(tests);
}
