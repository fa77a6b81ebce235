#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/lock.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

enum { PASSED = 17 };

static char path[PATH_MAX];

static void new_place(void)
{
    static int n;
    snprintf(path, sizeof path, "%s/%d.lock", ttn_test_folder(), n++);
}

static void put(const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static const char *content(void)
{
    static char text[2000];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

/* The word behind KEY in the line of a lock that this process holds. */
static const char *mine(const char *key)
{
    static char words[8][300];
    static int next;
    char *word = words[next++ % 8];
    ttn_error err = {0};
    ttn_lock *l;
    char kept[PATH_MAX];
    memcpy(kept, path, sizeof kept);
    new_place();
    assert_ok(ttn_lock_take(path, NULL, NULL, &l, &err), &err);
    const char *at = strstr(content(), key);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(key), " %299s", word), 1);
    ttn_lock_release(l);
    memcpy(path, kept, sizeof kept);
    return word;
}

static char said[2000];

static void say(void *ctx, ttn_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    snprintf(said, sizeof said, "%s", text);
}

static const ttn_log hear = {.say = say};

static void take_and_give_back(void)
{
    ttn_error err = {0};
    ttn_lock *l;
    said[0] = 0;
    assert_ok(ttn_lock_take(path, NULL, &hear, &l, &err), &err);
    ttn_lock_release(l);
}

static void refused(const char *words)
{
    ttn_error err = {0};
    ttn_lock *l;
    assert_fails(ttn_lock_take(path, NULL, NULL, &l, &err), TTN_EINVAL, &err, words);
    assert_null(l);
    assert_contains(err.text, path);
}

/* ---- live holders ---- */

static void second_holder_is_refused_and_told_who_has_it(void **state)
{
    (void)state;
    new_place();
    ttn_error err = {0};
    ttn_lock *l;
    assert_ok(ttn_lock_take(path, NULL, NULL, &l, &err), &err);
    char words[64];
    snprintf(words, sizeof words, "process %ld of this machine", (long)getpid());
    refused(words); /* also in the same process */
    ttn_lock_release(l);
    assert_string_equal(content(), "");
    take_and_give_back();
    assert_string_equal(said, "");
    ttn_lock_release(NULL);
}

static int try_lock(void *arg)
{
    (void)arg;
    ttn_error err = {0};
    ttn_lock *l;
    ttn_status status = ttn_lock_take(path, NULL, NULL, &l, &err);
    printf("%s\n", err.text);
    ttn_lock_release(l);
    return status == TTN_EINVAL ? PASSED : 1;
}

static void another_process_is_refused_until_the_first_ends(void **state)
{
    (void)state;
    new_place();
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t holder = fork();
    assert_true(holder >= 0);
    if (holder == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ttn_lock *l;
        if (ttn_lock_take(path, NULL, NULL, &l, NULL) != TTN_OK) _exit(1);
        if (write(ready[1], "!", 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    ttn_child child = run_in_child((ttn_child_limit){0}, try_lock, NULL);
    if (!child.exited || child.exit_code != PASSED) fail_msg("%s", child.output);
    char words[64];
    snprintf(words, sizeof words, "process %ld of this machine", (long)holder);
    assert_contains(child.output, words);
    kill(holder, SIGKILL);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    take_and_give_back();
    snprintf(words, sizeof words, "was left by process %ld", (long)holder);
    assert_contains(said, words);
    close(ready[0]);
    close(ready[1]);
}

/* A parallel start: exactly one of many gets it. */
static void of_many_at_once_one_gets_it(void **state)
{
    (void)state;
    enum { N = 8 };
    const int rounds = (int)ttn_scaled(10, 2);
    for (int round = 0; round < rounds; round++) {
        new_place();
        put("pid 1 start 2"); /* half a line: whoever wrote it was killed */
        int go[2], result[2];
        assert_int_equal(pipe(go), 0);
        assert_int_equal(pipe(result), 0);
        pid_t child[N];
        for (int i = 0; i < N; i++) {
            child[i] = fork();
            assert_true(child[i] >= 0);
            if (child[i] != 0) continue;
            char byte;
            ttn_lock *l;
            close(go[1]);
            if (read(go[0], &byte, 1) != 0) _exit(1); /* its other end is closed */
            char got = ttn_lock_take(path, NULL, NULL, &l, NULL) == TTN_OK ? 'y' : 'n';
            if (write(result[1], &got, 1) != 1) _exit(1);
            for (;;)
                pause();
        }
        close(go[0]);
        close(go[1]);
        int n_got = 0;
        for (int i = 0; i < N; i++) {
            char got;
            assert_int_equal(read(result[0], &got, 1), 1);
            n_got += got == 'y';
        }
        for (int i = 0; i < N; i++) {
            kill(child[i], SIGKILL);
            waitpid(child[i], NULL, 0);
        }
        close(result[0]);
        close(result[1]);
        assert_int_equal(n_got, 1);
    }
}

/* ---- what a line says when flock does not reach ---- */

static void line_of(long pid, const char *start, const char *boot, const char *host, int64_t alive)
{
    char line[1000];
    snprintf(line, sizeof line, "pid %ld start %s boot %s host %s since 1000 alive %lld (?)\n", pid, start, boot, host,
             (long long)alive);
    put(line);
}

static void living_process_of_this_kernel_holds_it(void **state)
{
    (void)state;
    new_place();
    pid_t other = fork();
    assert_true(other >= 0);
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    /* Its start, as the kernel says: the 22nd word; the program's name has no space. */
    char stat[64], start[40];
    snprintf(stat, sizeof stat, "/proc/%ld/stat", (long)other);
    FILE *f = fopen(stat, "r");
    assert_non_null(f);
    for (int word = 0; word < 22; word++)
        assert_int_equal(fscanf(f, "%39s", start), 1);
    fclose(f);
    line_of(other, start, mine(" boot"), mine(" host"), 1000);
    refused("of this machine");
    line_of(other, start, mine(" boot"), "container", 1000); /* a name of the host is no reason */
    refused("on host container");
    /* The number is used again by another process: one with another start. */
    line_of(other, "1", mine(" boot"), mine(" host"), 1000);
    take_and_give_back();
    assert_contains(said, "which is gone");
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    line_of(other, start, mine(" boot"), mine(" host"), 1000);
    take_and_give_back();
    assert_contains(said, "which is gone");
}

static void machine_that_started_again_holds_nothing(void **state)
{
    (void)state;
    new_place();
    line_of(getpid(), mine(" start"), "another-boot", mine(" host"), (int64_t)1 << 40);
    take_and_give_back();
    assert_contains(said, "which is gone");
}

static int64_t date;
static double now;

static int64_t the_date(void *ctx)
{
    (void)ctx;
    return date;
}

static double the_time(void *ctx)
{
    (void)ctx;
    return now;
}

static const ttn_clock hands = {.date = the_date, .now = the_time};

static void other_host_holds_it_until_it_has_been_silent(void **state)
{
    (void)state;
    new_place();
    ttn_error err = {0};
    ttn_lock *l;
    date = 5000;
    line_of(1, "2", "another-boot", "node7", date - TTN_LOCK_SILENCE + 1);
    assert_fails(ttn_lock_take(path, &hands, NULL, &l, &err), TTN_EINVAL, &err, "process 1 on host node7 writes here");
    assert_contains(err.text, "1970-01-01T00:16:40Z");
    assert_contains(err.text, "599 s ago");
    date++;
    err = (ttn_error){0};
    assert_ok(ttn_lock_take(path, &hands, &hear, &l, &err), &err);
    assert_contains(said, "left by process 1 on host node7");
    ttn_lock_release(l);
}

static void sign_of_life_from_the_future_is_told_as_that(void **state)
{
    (void)state;
    new_place();
    ttn_error err = {0};
    ttn_lock *l;
    date = 5000;
    line_of(1, "2", "another-boot", "node7", date + 100000);
    assert_fails(ttn_lock_take(path, &hands, NULL, &l, &err), TTN_EINVAL, &err, "process 1 on host node7 writes here");
    assert_contains(err.text, "1970-01-02T05:10:00Z, 100000 s ahead of the clock of this machine");
    assert_contains(err.text, "make sure that it has ended and remove this file");
    assert_null(strstr(err.text, "s ago"));
    assert_null(strstr(err.text, "wait"));
    line_of(1, "2", "another-boot", "node7", date + 2); /* as clocks are */
    err = (ttn_error){0};
    assert_fails(ttn_lock_take(path, &hands, NULL, &l, &err), TTN_EINVAL, &err, "last sign of life 0 s ago");
}

static void signs_of_life_are_written_once_a_minute(void **state)
{
    (void)state;
    new_place();
    ttn_error err = {0};
    ttn_lock *l;
    date = 7000;
    now = 1;
    assert_ok(ttn_lock_take(path, &hands, NULL, &l, &err), &err);
    assert_contains(content(), "since 7000 alive 7000");
    date += TTN_LOCK_SIGN - 1;
    now += TTN_LOCK_SIGN - 1;
    assert_ok(ttn_lock_alive(l, &err), &err);
    assert_contains(content(), "alive 7000");
    date++;
    now++;
    assert_ok(ttn_lock_alive(l, &err), &err);
    assert_contains(content(), "since 7000 alive 7060");
    now += TTN_LOCK_SIGN;
    shim_arm(SHIM_WRITE, 1, SHIM_FAIL, EIO, 0);
    ttn_status status = ttn_lock_alive(l, &err);
    shim_disarm();
    assert_fails(status, TTN_EIO, &err, "the lock cannot be written: Input/output error");
    assert_int_equal(remove(path), 0);
    err = (ttn_error){0};
    assert_fails(ttn_lock_alive(l, &err), TTN_EINVAL, &err, "somebody removed or replaced this lock");
    ttn_lock_release(l);
}

/* ---- files that are no lock ---- */

static void what_is_no_line_is_nobodys(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "\n",
        "pid",
        "pid 1 start 2 boot b host h since 1000 alive 1000",        /* no line end: cut */
        "pid -1 start 2 boot b host h since 1 alive 99999999999\n", /* no such number */
        "pid 1 start 2 boot b host h since 1 alive 1e9\n",
        "pid 1 start 2 host h since 1 alive 99999999999\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        new_place();
        put(texts[i]);
        take_and_give_back();
        assert_string_equal(said, "");
    }
    new_place();
    char word[400];
    memset(word, 'x', sizeof word);
    word[sizeof word - 1] = 0;
    line_of(1, "2", word, word, (int64_t)1 << 40);
    take_and_give_back();
}

static void lock_that_cannot_be_is_a_status(void **state)
{
    (void)state;
    new_place();
    ttn_error err = {0};
    ttn_lock *l;
    char inside[PATH_MAX + 8];
    snprintf(inside, sizeof inside, "%s/no", path);
    assert_fails(ttn_lock_take(inside, NULL, NULL, &l, &err), TTN_EINVAL, &err, "No such file or directory");
    assert_int_equal(symlink("elsewhere", path), 0);
    err = (ttn_error){0};
    assert_fails(ttn_lock_take(path, NULL, NULL, &l, &err), TTN_EINVAL, &err, "is a link, and the file");
    assert_contains(err.text, "move it away");
    new_place();
    assert_int_equal(mkdir(path, 0777), 0);
    err = (ttn_error){0};
    assert_fails(ttn_lock_take(path, NULL, NULL, &l, &err), TTN_EINVAL, &err, "is a folder, and the file");
    /* A line written to it would be written to what else it is. */
    new_place();
    char other[PATH_MAX + 8];
    snprintf(other, sizeof other, "%s.other", path);
    FILE *f = fopen(other, "w");
    assert_non_null(f);
    fputs("theirs", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(link(other, path), 0);
    err = (ttn_error){0};
    assert_fails(ttn_lock_take(path, NULL, NULL, &l, &err), TTN_EINVAL, &err, "several names (hard links)");
    struct stat about;
    assert_int_equal(stat(other, &about), 0);
    assert_int_equal(about.st_size, 6);
    new_place();
    assert_int_equal(mkfifo(path, 0600), 0);
    err = (ttn_error){0};
    assert_fails(ttn_lock_take(path, NULL, NULL, &l, &err), TTN_EINVAL, &err, "is a device, pipe or socket");
    static char name[PATH_MAX + 1];
    memset(name, 'n', sizeof name - 1);
    err = (ttn_error){0};
    assert_fails(ttn_lock_take(name, NULL, NULL, &l, &err), TTN_EINVAL, &err, "too long");
    int hit = 1;
    for (int n = 1; hit; n++) {
        new_place();
        shim_arm(SHIM_OPEN | SHIM_WRITE | SHIM_SIZE | SHIM_ALLOC, n, SHIM_FAIL, ENOSPC, 0);
        ttn_status status = ttn_lock_take(path, NULL, NULL, &l, NULL);
        shim_disarm();
        hit = shim_was_hit();
        assert_true(status == TTN_OK || (hit && !l));
        ttn_lock_release(l);
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_holder_is_refused_and_told_who_has_it),
        cmocka_unit_test(another_process_is_refused_until_the_first_ends),
        cmocka_unit_test(of_many_at_once_one_gets_it),
        cmocka_unit_test(living_process_of_this_kernel_holds_it),
        cmocka_unit_test(machine_that_started_again_holds_nothing),
        cmocka_unit_test(other_host_holds_it_until_it_has_been_silent),
        cmocka_unit_test(sign_of_life_from_the_future_is_told_as_that),
        cmocka_unit_test(signs_of_life_are_written_once_a_minute),
        cmocka_unit_test(what_is_no_line_is_nobodys),
        cmocka_unit_test(lock_that_cannot_be_is_a_status),
    };
    return ttn_test_run(tests);
}
