/* The harness itself: a check that cannot fail would let everything else through. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

/* Not to be optimised away together with its free. */
static void *volatile kept;

static int allocates(void)
{
    kept = malloc(8);
    int got = kept != NULL;
    free(kept);
    return got;
}

static void nth_allocation_fails_and_only_it(void **state)
{
    (void)state;
    shim_arm(SHIM_ALLOC, 3, SHIM_FAIL, ENOMEM, 0);
    int got[5];
    for (int i = 0; i < 5; i++)
        got[i] = allocates();
    assert_true(shim_was_hit());
    assert_int_equal(shim_disarm(), 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(got[i], i != 2);

    shim_arm(SHIM_ALLOC, 2, SHIM_FAIL, ENOMEM, 1);
    for (int i = 0; i < 4; i++)
        got[i] = allocates();
    shim_disarm();
    for (int i = 0; i < 4; i++)
        assert_int_equal(got[i], i == 0);
    assert_true(allocates());
}

static void every_kind_of_allocation_fails(void **state)
{
    (void)state;
    shim_arm(SHIM_ALLOC | SHIM_MAP, 1, SHIM_FAIL, ENOMEM, 1);
    errno = 0;
    void *volatile got[4]; /* volatile: a block that is only compared with NULL may not be asked for at all */
    got[0] = malloc(8);
    got[1] = calloc(2, 8);
    got[2] = realloc(NULL, 8);
    got[3] = aligned_alloc(64, 64);
    void *aligned = &aligned;
    int code = posix_memalign(&aligned, 64, 64);
    void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int protect = mprotect(NULL, 0, PROT_READ);
    int error = errno; /* of mprotect: with -fno-math-errno gcc takes it that malloc leaves errno alone */
    int64_t n = shim_disarm();
    assert_int_equal(error, ENOMEM);
    for (int i = 0; i < 4; i++)
        assert_null(got[i]);
    assert_ptr_equal(aligned, &aligned);
    assert_int_equal(code, ENOMEM);
    assert_ptr_equal(map, MAP_FAILED);
    assert_int_equal(protect, -1);
    assert_int_equal(n, 7);
}

static void calls_outside_the_plan_are_not_counted(void **state)
{
    (void)state;
    shim_arm(SHIM_FSYNC, 1, SHIM_FAIL, EIO, 0);
    assert_true(allocates());
    assert_false(shim_was_hit());
    assert_int_equal(shim_disarm(), 0);
}

static void every_file_call_fails_with_the_error_asked_for(void **state)
{
    (void)state;
    char path[4200], other[4200];
    snprintf(path, sizeof path, "%s/file", ttn_test_folder());
    snprintf(other, sizeof other, "%s/other", ttn_test_folder());
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    struct stat info;
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);

    int got[12], error[12], n = 0;
#define TRY(call) (errno = 0, got[n] = (int)(call), error[n] = errno, n++)
    shim_arm(SHIM_FILES, 1, SHIM_FAIL, ENOSPC, 1);
    TRY(write(fd, "abcd", 4));
    TRY(pwrite(fd, "abcd", 4, 0));
    TRY(fsync(fd));
    TRY(rename(path, other));
    TRY(renameat2(AT_FDCWD, path, AT_FDCWD, other, 0));
    TRY(open(path, O_RDONLY));
    TRY(mkdir(other, 0700));
    TRY(unlink(path));
    TRY(ftruncate(fd, 100));
    int fallocated = posix_fallocate(fd, 0, 100);
    TRY(close(fd));
    int64_t calls = shim_disarm();
    for (int i = 0; i < n; i++) {
        assert_int_equal(got[i], -1);
        assert_int_equal(error[i], ENOSPC);
    }
    assert_int_equal(fallocated, ENOSPC);
    assert_int_equal(calls, n + 1);
    assert_int_equal(stat(path, &info), 0); /* nothing was done ... */
    assert_int_equal(info.st_size, 0);
    assert_int_equal(stat(other, &info), -1);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* ... but close has closed */
#undef TRY
}

static void short_write_writes_half(void **state)
{
    (void)state;
    char path[4200], back[8] = "";
    snprintf(path, sizeof path, "%s/short", ttn_test_folder());
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    shim_arm(SHIM_WRITE, 1, SHIM_SHORT, EIO, 1);
    assert_int_equal(write(fd, "abcdef", 6), 3);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(pwrite(fd, "yz", 2, 4), 1);
    shim_disarm();
    assert_int_equal(pread(fd, back, sizeof back, 0), 5);
    assert_string_equal(back, "abcxy");
    close(fd);
}

static int write_and_be_killed(void *arg)
{
    (void)arg;
    shim_arm(SHIM_WRITE, 2, SHIM_KILL, 0, 0);
    (void)!write(STDOUT_FILENO, "first ", 6);
    (void)!write(STDOUT_FILENO, "second", 6);
    return 0;
}

static void kill_comes_in_place_of_the_call(void **state)
{
    (void)state;
    ttn_child child = run_in_child((ttn_child_limit){0}, write_and_be_killed, NULL);
    assert_false(child.exited);
    assert_int_equal(child.signal, SIGKILL);
    assert_string_equal(child.output, "first ");
}

static void every_call_is_counted_once_with_threads(void **state)
{
    (void)state;
    enum { N = 1000 };
    int failed = 0;
    shim_arm(SHIM_FSYNC, N / 2, SHIM_FAIL, EIO, 1);
#pragma omp parallel for num_threads(4) reduction(+ : failed)
    for (int i = 0; i < N; i++) {
        int r = fsync(-1); /* fails either way: errno tells who said so */
        failed += r == -1 && errno == EIO;
    }
    assert_int_equal(shim_disarm(), N);
    assert_int_equal(failed, N / 2 + 1);
}

static int count_slowly(void *ctx, const shim_call *call)
{
    (void)call;
    usleep(100); /* the other threads call meanwhile */
    atomic_fetch_add((_Atomic int *)ctx, 1);
    fsync(-1); /* its own, which is not shown */
    return 0;
}

static void watch_is_shown_the_calls_of_all_threads(void **state)
{
    (void)state;
    enum { N = 200 };
    _Atomic int shown = 0;
    shim_watch(count_slowly, (void *)&shown);
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < N; i++)
        fsync(-1);
    shim_watch(NULL, NULL);
    assert_int_equal(atomic_load(&shown), N);
}

/* ---- children ---- */

static int return_seven(void *arg)
{
    (void)arg;
    printf("out\n");
    fflush(stdout);
    fprintf(stderr, "err %s\n", getenv("TTN_TEST_WORD"));
    return 7;
}

static void childs_code_output_and_environment_come_back(void **state)
{
    (void)state;
    static const char *const set[] = {"TTN_TEST_WORD=word", NULL};
    ttn_child child = run_in_child((ttn_child_limit){.environment = set}, return_seven, NULL);
    assert_true(child.exited);
    assert_int_equal(child.exit_code, 7);
    assert_string_equal(child.output, "out\nerr word\n");
    assert_null(getenv("TTN_TEST_WORD"));
}

static int sleep_for_ever(void *arg)
{
    (void)arg;
    for (;;)
        pause();
    return 0;
}

static void hanging_child_is_killed(void **state)
{
    (void)state;
    ttn_child child = run_in_child((ttn_child_limit){.seconds = 0.1}, sleep_for_ever, NULL);
    assert_true(child.timed_out);
    assert_false(child.exited);
    assert_int_equal(child.signal, SIGKILL);
}

static int assert_wrongly(void *arg)
{
    assert_int_equal(*(int *)arg, 2);
    return 0;
}

static void failing_assertion_in_a_child_ends_the_child(void **state)
{
    (void)state;
    int one = 1, two = 2;
    ttn_child bad = run_in_child((ttn_child_limit){0}, assert_wrongly, &one);
    assert_false(bad.exited);
    assert_int_equal(bad.signal, SIGABRT);
    assert_contains(bad.output, "0x1 != 0x2");
    ttn_child good = run_in_child((ttn_child_limit){0}, assert_wrongly, &two);
    assert_true(good.exited);
    assert_int_equal(good.exit_code, 0);
}

static int crash(void *arg)
{
    (void)arg;
    raise(SIGSEGV);
    return 0;
}

static void crashing_child_is_reported_with_its_signal(void **state)
{
    (void)state;
    ttn_child child = run_in_child((ttn_child_limit){0}, crash, NULL);
    assert_false(child.exited);
    assert_int_equal(child.signal, SIGSEGV);
}

static int allocate_much(void *arg)
{
    (void)arg;
    kept = malloc((size_t)1 << 32);
    return kept ? 1 : 0;
}

static void address_space_of_a_child_is_limited(void **state)
{
    (void)state;
    ttn_child child = run_in_child((ttn_child_limit){.address_space = 1L << 31}, allocate_much, NULL);
    assert_true(child.exited);
    assert_int_equal(child.exit_code, 0);
}

static int write_beyond_limit(void *arg)
{
    signal(SIGXFSZ, SIG_IGN);
    int fd = open(arg, O_WRONLY | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 1000) != 0) return 1;
    return ftruncate(fd, 1001) == 0 ? 2 : 0;
}

static void file_size_of_a_child_is_limited(void **state)
{
    (void)state;
    char path[4200];
    snprintf(path, sizeof path, "%s/big", ttn_test_folder());
    ttn_child child = run_in_child((ttn_child_limit){.file_size = 1000}, write_beyond_limit, path);
    assert_int_equal(child.exit_code, 0);
}

static int print_much(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100000; i++)
        printf("%d\n", i);
    return 3;
}

static void output_is_cut_and_not_waited_for(void **state)
{
    (void)state;
    ttn_child child = run_in_child((ttn_child_limit){0}, print_much, NULL);
    assert_int_equal(child.exit_code, 3);
    assert_int_equal(strlen(child.output), sizeof child.output - 1);
}

static int say_arguments(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        printf("<%s>", argv[i]);
    assert_int_equal(argc, 2);
    return 5;
}

static void program_runs_itself_as_a_registered_child(void **state)
{
    (void)state;
    const char *const two[] = {ttn_test_self(), "--child", "say", "a", "b c", NULL};
    ttn_child child = ttn_run_program((ttn_child_limit){0}, two);
    assert_int_equal(child.exit_code, 5);
    assert_string_equal(child.output, "<a><b c>");

    const char *const one[] = {ttn_test_self(), "--child", "say", "a", NULL};
    child = ttn_run_program((ttn_child_limit){0}, one);
    assert_false(child.exited);
    assert_int_equal(child.signal, SIGABRT);

    const char *const unknown[] = {ttn_test_self(), "--child", "sing", NULL};
    child = ttn_run_program((ttn_child_limit){0}, unknown);
    assert_int_equal(child.exit_code, 127);
    assert_contains(child.output, "no child is called 'sing'");

    const char *const missing[] = {"/nonexistent/program", NULL};
    child = ttn_run_program((ttn_child_limit){0}, missing);
    assert_int_equal(child.exit_code, 127);
}

/* ---- assertions ---- */

static ttn_status fail_so(ttn_error *err)
{
    return TTN_FAIL(err, TTN_EIO, "disk on fire");
}

static int broken_assertion(void *arg)
{
    static const unsigned char left[] = {1, 2, 3, 4}, right[] = {1, 2, 5, 6};
    ttn_error err = {0};
    ttn_error empty = {0};
    switch (*(int *)arg) {
    case 0:
        assert_ok(fail_so(&err), &err);
        break;
    case 1:
        assert_fails(TTN_OK, TTN_EIO, &empty, "");
        break;
    case 2:
        assert_fails(fail_so(&err), TTN_EINVAL, &err, "");
        break;
    case 3:
        assert_fails(fail_so(&err), TTN_EIO, &err, "water");
        break;
    case 4:
        assert_fails(TTN_EIO, TTN_EIO, &empty, "");
        break;
    case 5:
        assert_contains("abc", "x");
        break;
    case 6:
        assert_same_bits(left, right, sizeof left);
        break;
    case 7:
        assert_at_most(1.5, 1.0, "ratio");
        break;
    case 8:
        assert_at_most(NAN, 1.0, "ratio");
        break;
    default:
        return 9;
    }
    return 0;
}

static void each_assertion_can_fail_and_says_why(void **state)
{
    (void)state;
    static const char *const words[] = {
        "EIO: disk on fire",
        "is OK",
        "is EIO (disk on fire), should be EINVAL",
        "'water' stands nowhere in 'disk on fire'",
        "the error holds OK",
        "'x' stands nowhere in 'abc'",
        "byte 2 of 4 is 03 and 05; 2 bytes differ",
        "ratio is 1.5, at most 1 is allowed",
        "ratio is nan",
    };
    enum { N = sizeof words / sizeof *words };
    for (int i = 0; i < N; i++) {
        ttn_child child = run_in_child((ttn_child_limit){0}, broken_assertion, &i);
        assert_false(child.exited);
        assert_int_equal(child.signal, SIGABRT);
        assert_contains(child.output, words[i]);
    }
}

static void assertions_that_hold_return(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_ok(TTN_OK, &err);
    assert_fails(fail_so(&err), TTN_EIO, &err, "fire");
    assert_fails(fail_so(NULL), TTN_EIO, NULL, "");
    assert_same_bits("ab", "ac", 1);
    assert_same_bits(NULL, NULL, 0);
    assert_at_most(1.0, 1.0, "ratio");
}

static void test_folder_is_empty_and_one(void **state)
{
    (void)state;
    struct stat info;
    assert_int_equal(stat(ttn_test_folder(), &info), 0);
    assert_true(S_ISDIR(info.st_mode));
    assert_ptr_equal(ttn_test_folder(), ttn_test_folder());
}

static void scale_and_seed_come_from_the_environment(void **state)
{
    (void)state;
    const char *scale = getenv("TTN_SCALE");
    char before[64] = "";
    if (scale) snprintf(before, sizeof before, "%s", scale);
    setenv("TTN_SCALE", "0.25", 1);
    assert_int_equal(ttn_scaled(100, 1), 25);
    assert_int_equal(ttn_scaled(100, 40), 40);
    unsetenv("TTN_SCALE");
    assert_int_equal(ttn_scaled(100, 1), ttn_test_sanitized() ? 10 : 100);
    if (scale) setenv("TTN_SCALE", before, 1);
    assert_true(ttn_test_seed() == ttn_test_seed());
}

int main(int argc, char **argv)
{
    ttn_test_child("say", say_arguments);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nth_allocation_fails_and_only_it),
        cmocka_unit_test(every_kind_of_allocation_fails),
        cmocka_unit_test(calls_outside_the_plan_are_not_counted),
        cmocka_unit_test(every_file_call_fails_with_the_error_asked_for),
        cmocka_unit_test(short_write_writes_half),
        cmocka_unit_test(kill_comes_in_place_of_the_call),
        cmocka_unit_test(childs_code_output_and_environment_come_back),
        cmocka_unit_test(hanging_child_is_killed),
        cmocka_unit_test(failing_assertion_in_a_child_ends_the_child),
        cmocka_unit_test(crashing_child_is_reported_with_its_signal),
        cmocka_unit_test(address_space_of_a_child_is_limited),
        cmocka_unit_test(file_size_of_a_child_is_limited),
        cmocka_unit_test(output_is_cut_and_not_waited_for),
        cmocka_unit_test(program_runs_itself_as_a_registered_child),
        cmocka_unit_test(each_assertion_can_fail_and_says_why),
        cmocka_unit_test(assertions_that_hold_return),
        cmocka_unit_test(test_folder_is_empty_and_one),
        cmocka_unit_test(scale_and_seed_come_from_the_environment),
        cmocka_unit_test(every_call_is_counted_once_with_threads),
        cmocka_unit_test(watch_is_shown_the_calls_of_all_threads), /* last: after it a fork has no threads */
    };
    return ttn_test_run(tests);
}
