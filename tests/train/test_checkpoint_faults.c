#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/atomic.h"
#include "core/memory.h"
#include "tests/harness/saved.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/files/run_folder.h"
#include "train/files/saver.h"

/* One save is what a trainer does: copy, write by the thread, wait, with retention of the newest only, so that the previous
 * checkpoint is removed as soon as that is right. Set-up and checks go through calls that the shim does not see. */

enum { WIDTH = 8, PASSED = 17, IMPOSSIBLE = 77, OLD = 10, NEW = 20 };

static char run[PATH_MAX / 2];

/* Of the calls of a save every one is hit in turn; under sanitizers, where a save takes ten times as long, every fifth. */
static int stride(void)
{
    return ttn_test_sanitized() ? 5 : 1;
}

static void remove_tree(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        char inside[PATH_MAX];
        snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) remove_tree(inside);
    }
    if (d) closedir(d);
    remove(path);
}

static void new_run(void)
{
    static int n;
    snprintf(run, sizeof run, "%s/%d", ttn_test_folder(), n++);
}

/* ---- one save ---- */

typedef struct {
    ttn_status status;
    ttn_error err;
    ttn_saver_report report;
} outcome;

typedef struct {
    ttn_run_folder *folder;
    ttn_saver *saver;
    saved_model m;
} session;

static ttn_status session_open(session *s, ttn_error *err)
{
    *s = (session){0};
    ttn_status status = ttn_run_folder_open(run, NULL, &saved_log, &s->folder, err);
    if (status != TTN_OK) return status;
    saved_create(&s->m, WIDTH);
    return ttn_saver_create(s->folder, s->m.w, NULL, s->m.more, SAVED_N_MORE, &(ttn_saver_options){.keep = 1},
                            &s->saver, err);
}

static void session_close(session *s)
{
    ttn_saver_destroy(s->saver);
    if (s->m.w) saved_destroy(&s->m);
    ttn_run_folder_close(s->folder);
}

static outcome save(session *s, int64_t step)
{
    outcome o = {.report = {.step = -1}};
    const ttn_run_state state = saved_state(step);
    o.status = ttn_saver_save(s->saver, s->m.w, s->m.more, &state, &o.err);
    if (o.status == TTN_OK) o.status = ttn_saver_wait(s->saver, &o.report, &o.err);
    return o;
}

/* Open, with the model as it is at `step`: what is armed next meets the save alone. */
static void begin(session *s, int64_t step)
{
    ttn_error err = {0};
    assert_ok(session_open(s, &err), &err);
    saved_fill(&s->m, step);
}

/* A run with the old checkpoint in it. */
static void start_run(void)
{
    session s;
    remove_tree(run);
    saved_forget();
    begin(&s, OLD);
    outcome o = save(&s, OLD);
    assert_ok(o.status, &o.err);
    session_close(&s);
}

/* What the run offers, loaded and compared; nothing that was passed over. */
static int64_t newest(void)
{
    ttn_error err = {0};
    ttn_checkpoint *c;
    saved_model m;
    saved_forget();
    assert_ok(ttn_run_newest(run, &saved_log, &c, &err), &err);
    if (!c) fail_msg("the run has lost its checkpoints");
    saved_create(&m, WIDTH);
    assert_ok(saved_load(&m, c, &err), &err);
    int64_t step = ttn_checkpoint_state(c)->step;
    saved_check(&m, step);
    saved_check_state(ttn_checkpoint_state(c), step);
    saved_destroy(&m);
    ttn_checkpoint_close(c);
    if (saved_said[0]) fail_msg("a damaged checkpoint has its final name: %s", saved_said);
    return step;
}

static int leftovers(void)
{
    char path[PATH_MAX];
    int n = 0;
    snprintf(path, sizeof path, "%s/ckpt", run);
    DIR *d = opendir(path);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        n += ttn_atomic_is_temporary(e->d_name);
    if (d) closedir(d);
    return n;
}

/* The next process finds the run usable, leaves no leftovers, and saves. */
static void check_next_process(void)
{
    session s;
    begin(&s, NEW + 1);
    assert_int_equal(leftovers(), 0);
    outcome o = save(&s, NEW + 1);
    assert_ok(o.status, &o.err);
    assert_string_equal(o.report.warning, "");
    session_close(&s);
    assert_int_equal(newest(), NEW + 1);
}

/* ---- every call fails once, or from then on ---- */

static void check_after_fault(const outcome *o, int error)
{
    int64_t step = newest();
    assert_int_equal(step, o->report.is_saved ? NEW : OLD);
    if (o->status == TTN_OK) assert_int_equal(o->report.is_saved, 1);
    if (o->status != TTN_OK) {
        char old[PATH_MAX];
        snprintf(old, sizeof old, "%s/ckpt/step-00000010", run);
        assert_int_equal(access(old, F_OK), 0); /* also when the new one is there: its name may be taken back */
        assert_int_equal(o->status, TTN_EIO);
        assert_contains(o->err.text, "step 20: ");
        assert_contains(o->err.text, strerror(error));
    }
}

static void fault_at_any_call_leaves_a_checkpoint_that_loads_and_is_told(void **state)
{
    (void)state;
    static const struct {
        unsigned calls;
        shim_action action;
        int error;
        int lasting;
    } faults[] = {
        {SHIM_FILES, SHIM_FAIL, ENOSPC, 0}, {SHIM_FILES, SHIM_FAIL, EIO, 0},
        {SHIM_FILES, SHIM_FAIL, EINTR, 0},  {SHIM_WRITE, SHIM_SHORT, EIO, 0},
        {SHIM_FILES, SHIM_FAIL, EIO, 1},    {SHIM_WRITE | SHIM_FSYNC | SHIM_SIZE, SHIM_FAIL, ENOSPC, 1},
    };
    new_run();
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        const int heals = faults[f].error == EINTR || faults[f].action == SHIM_SHORT;
        int hit = 1, n_failed = 0, n_calls = 0;
        for (int n = 1; hit; n += stride()) {
            session s;
            start_run();
            begin(&s, NEW);
            shim_arm(faults[f].calls, n, faults[f].action, faults[f].error, faults[f].lasting);
            outcome o = save(&s, NEW);
            shim_disarm();
            hit = shim_was_hit();
            if (heals || !hit) assert_ok(o.status, &o.err);
            if (heals || !hit) assert_string_equal(o.report.warning, "");
            check_after_fault(&o, faults[f].error);
            n_failed += o.status != TTN_OK;
            n_calls = n;
            if (o.status != TTN_OK && !faults[f].lasting) { /* the next save of the same process succeeds */
                o = save(&s, NEW);
                assert_ok(o.status, &o.err);
                assert_int_equal(newest(), NEW);
            }
            session_close(&s);
            if (n % 8 == 0) check_next_process();
        }
        if (faults[f].calls == SHIM_FILES && n_calls < 50) fail_msg("a save is only %d calls", n_calls);
        if (!heals && n_failed < 8 / stride()) fail_msg("only %d faults were noticed", n_failed);
    }
}

static void no_memory_is_a_status_and_the_old_one_stays(void **state)
{
    (void)state;
    new_run();
    int hit = 1, n = 1;
    for (; hit; n += stride()) {
        session s;
        start_run();
        begin(&s, NEW);
        shim_arm(SHIM_ALLOC, n, SHIM_FAIL, ENOMEM, 0);
        outcome o = save(&s, NEW);
        shim_disarm();
        hit = shim_was_hit();
        if (!hit) assert_ok(o.status, &o.err);
        if (o.status != TTN_OK) assert_int_equal(o.status, TTN_ENOMEM);
        assert_int_equal(newest(), o.report.is_saved ? NEW : OLD);
        if (o.status != TTN_OK) assert_int_equal(leftovers(), 0);
        session_close(&s);
    }
    assert_true(n > 10);
}

/* ---- killed ---- */

static int save_and_be_killed(void *arg)
{
    const int nth = *(const int *)arg;
    ttn_error err = {0};
    session s;
    if (session_open(&s, &err) != TTN_OK) {
        printf("%s\n", err.text);
        return 1;
    }
    saved_fill(&s.m, NEW);
    shim_arm(SHIM_FILES, nth, SHIM_KILL, 0, 0);
    outcome o = save(&s, NEW);
    shim_disarm();
    session_close(&s);
    printf("%s\n", o.err.text);
    return o.status == TTN_OK ? PASSED : 1;
}

static void kill_at_any_call_loses_nothing(void **state)
{
    (void)state;
    new_run();
    int killed = 1, n_old = 0, n_new = 0;
    for (int n = 1; killed; n += stride()) {
        start_run();
        ttn_child child = run_in_child((ttn_child_limit){0}, save_and_be_killed, &n);
        killed = !child.exited;
        if (killed ? child.signal != SIGKILL : child.exit_code != PASSED) fail_msg("call %d: %s", n, child.output);
        int64_t step = newest();
        assert_true(step == OLD || step == NEW);
        n_old += step == OLD;
        n_new += step == NEW;
        if (n % 4 == 0 || !killed) check_next_process();
    }
    assert_true(n_old > 30 / stride() && n_new > 10 / stride());
}

/* Saves step after step and tells each that is saved, until it is killed. */
static int save_for_ever(void *arg)
{
    const int fd = *(const int *)arg;
    ttn_error err = {0};
    session s;
    if (session_open(&s, &err) != TTN_OK) return 1;
    int64_t step = 0;
    ttn_checkpoint *c;
    if (ttn_run_newest(run, NULL, &c, &err) != TTN_OK) return 1;
    if (c) step = ttn_checkpoint_state(c)->step;
    ttn_checkpoint_close(c);
    for (;;) {
        step++;
        saved_fill(&s.m, step);
        outcome o = save(&s, step);
        if (o.status != TTN_OK) return 1;
        if (write(fd, &step, sizeof step) != (ssize_t)sizeof step) return 1;
    }
}

static void kill_at_random_moments_loses_nothing(void **state)
{
    (void)state;
    const int n_kill = ttn_test_long() ? 1000 : (int)ttn_scaled(40, 10);
    uint64_t random = ttn_test_seed();
    int64_t known = 0;
    new_run();
    for (int k = 0; k < n_kill; k++) {
        int told[2];
        assert_int_equal(pipe(told), 0);
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(save_for_ever(&told[1]));
        }
        close(told[1]);
        int64_t step;
        if (k % 2 == 0 && read(told[0], &step, sizeof step) == (ssize_t)sizeof step)
            known = step; /* else: while it starts */
        random = random * 6364136223846793005u + 1442695040888963407u;
        usleep((useconds_t)(random >> 40) % 20000);
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status)) fail_msg("the child ended by itself, with %d", WEXITSTATUS(status));
        while (read(told[0], &step, sizeof step) == (ssize_t)sizeof step)
            known = step;
        close(told[0]);
        if (known == 0) continue; /* killed before its first save */
        int64_t found = newest();
        if (found != known && found != known + 1)
            fail_msg("kill %d: step %d was saved, %d is there", k, (int)known, (int)found);
        known = found;
    }
    assert_true(known > 0);
}

/* ---- full disks, for real ---- */

static char hog[PATH_MAX];

/* Somebody else takes space after the save has asked how much there is, on a disk where none can be taken in advance. */
static int take_the_space(void *ctx, const shim_call *call)
{
    (void)ctx;
    if (strcmp(call->name, "posix_fallocate") != 0) return 0;
    FILE *f = fopen(hog, "w");
    assert_non_null(f);
    for (int i = 0; i < 800; i++)
        fprintf(f, "%01024d", i);
    assert_int_equal(fclose(f), 0);
    return EOPNOTSUPP;
}

static outcome fill_and_save(session *s, int64_t step)
{
    saved_fill(&s->m, step);
    return save(s, step);
}

static void check_newest_of(session *s, int64_t step)
{
    ttn_error err = {0};
    ttn_checkpoint *c;
    saved_forget();
    assert_ok(ttn_run_newest(run, &saved_log, &c, &err), &err);
    assert_string_equal(saved_said, "");
    assert_int_equal(ttn_checkpoint_state(c)->step, step);
    assert_ok(saved_load(&s->m, c, &err), &err);
    saved_check(&s->m, step);
    ttn_checkpoint_close(c);
    assert_int_equal(leftovers(), 0);
}

static int fill_small_disk(void *arg)
{
    (void)arg;
    if (unshare(CLONE_NEWNS) != 0) return IMPOSSIBLE;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return IMPOSSIBLE;
    assert_int_equal(mkdirat(AT_FDCWD, run, 0777), 0);
    if (mount("tmpfs", run, "tmpfs", 0, "size=3m") != 0) return IMPOSSIBLE;
    const int64_t width = sizeof(real) == 4 ? 180 : 127; /* 10 width^2 numbers: 1.3 MB */
    ttn_error err = {0};
    session s = {0};
    assert_ok(ttn_run_folder_open(run, NULL, NULL, &s.folder, &err), &err);
    saved_create(&s.m, width);
    assert_ok(ttn_saver_create(s.folder, s.m.w, NULL, s.m.more, SAVED_N_MORE, NULL, &s.saver, &err), &err);
    for (int64_t step = 1; step <= 2; step++) {
        outcome o = fill_and_save(&s, step);
        assert_ok(o.status, &o.err);
    }
    outcome o = fill_and_save(&s, 3); /* the third does not fit beside two */
    assert_fails(o.status, TTN_EIO, &o.err, "step 3: ");
    assert_contains(o.err.text, "step-00000003: needs 1.4 MB (5 % to spare included)");
    assert_contains(o.err.text, "free some space");
    check_newest_of(&s, 2);

    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/ckpt/step-00000001", run);
    remove_tree(path);
    snprintf(hog, sizeof hog, "%s/somebody else's", run);
    saved_fill(&s.m, 3);
    shim_watch(take_the_space, NULL);
    o = save(&s, 3);
    shim_watch(NULL, NULL);
    assert_fails(o.status, TTN_EIO, &o.err, "No space left on device; free some space");
    check_newest_of(&s, 2);
    assert_int_equal(remove(hog), 0);
    o = fill_and_save(&s, 3); /* now there is room */
    assert_ok(o.status, &o.err);
    check_newest_of(&s, 3);
    session_close(&s);
    return PASSED;
}

static void full_disk_keeps_the_last_one_and_takes_the_next_once_there_is_room(void **state)
{
    (void)state;
    new_run();
    ttn_child child = run_in_child((ttn_child_limit){0}, fill_small_disk, NULL);
    if (child.exited && child.exit_code == IMPOSSIBLE) skip_because("a small tmpfs cannot be mounted here");
    if (!child.exited || child.exit_code != PASSED) fail_msg("%s", child.output);
}

static int exceed_limit(void *arg)
{
    (void)arg;
    signal(SIGXFSZ, SIG_IGN);
    session s;
    begin(&s, NEW);
    outcome o = save(&s, NEW);
    assert_fails(o.status, TTN_EIO, &o.err, "File too large; raise the limit on file sizes (ulimit -f)");
    assert_int_equal(leftovers(), 0);
    session_close(&s);
    return PASSED;
}

static void limit_on_file_sizes_keeps_the_old_one(void **state)
{
    (void)state;
    new_run();
    start_run();
    ttn_child child = run_in_child((ttn_child_limit){.file_size = 1500}, exceed_limit, NULL);
    if (!child.exited || child.exit_code != PASSED) fail_msg("%s", child.output);
    assert_int_equal(newest(), OLD);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    /* What is tested does not depend on the disk, but waits for it in thousands of fsync. The long run waits. */
    if (!ttn_test_long() && access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fault_at_any_call_leaves_a_checkpoint_that_loads_and_is_told),
        cmocka_unit_test(no_memory_is_a_status_and_the_old_one_stays),
        cmocka_unit_test(kill_at_any_call_loses_nothing),
        cmocka_unit_test(kill_at_random_moments_loses_nothing),
        cmocka_unit_test(full_disk_keeps_the_last_one_and_takes_the_next_once_there_is_room),
        cmocka_unit_test(limit_on_file_sizes_keeps_the_old_one),
    };
    return ttn_test_run(tests);
}
