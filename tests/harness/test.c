#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "core/start.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#if SANITIZED
/* AddressSanitizer asks for these. A size that no machine has is to be NULL, as without it, and not the end; what
 * clang's OpenMP keeps for its threads, and fontconfig for the fonts of a process, is no leak of ours. */
#define ASKED_FOR __attribute__((visibility("default")))
ASKED_FOR const char *__asan_default_options(void);
ASKED_FOR const char *__lsan_default_options(void);
ASKED_FOR const char *__lsan_default_suppressions(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}
const char *__lsan_default_suppressions(void)
{
    return "leak:libomp.so\nleak:libfontconfig.so";
}
#endif

enum { MAX_CHILDREN = 32, PATH_ROOM = 4096 };

static struct {
    const char *name;
    int (*body)(int argc, char **argv);
} children[MAX_CHILDREN];

static int n_children;
static int in_child; /* of run_in_child */
static char folder[PATH_ROOM];
static long folder_owner;

static void die(const char *what)
{
    fprintf(stderr, "test harness: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- start ---- */

void ttn_test_child(const char *name, int (*body)(int argc, char **argv))
{
    if (n_children == MAX_CHILDREN) {
        errno = ENOSPC;
        die("too many children");
    }
    children[n_children].name = name;
    children[n_children].body = body;
    n_children++;
}

/* An assertion outside a cmocka test has nowhere to jump to: it prints and aborts. */
static void make_assertions_abort(void)
{
    setenv("CMOCKA_TEST_ABORT", "1", 1);
}

static int run_registered(int argc, char **argv)
{
    for (int i = 0; i < n_children; i++)
        if (strcmp(children[i].name, argv[2]) == 0) return children[i].body(argc - 3, argv + 3);
    fprintf(stderr, "test harness: no child is called '%s'\n", argv[2]);
    return 127;
}

void ttn_test_threads(int n_thread)
{
    ttn_error err = {0};
    if (ttn_start(n_thread, &err) == TTN_OK) return;
    fprintf(stderr, "test harness: %s\n", err.text);
    exit(2);
}

void ttn_test_start(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    ttn_reexec(argv);
    if (argc >= 3 && strcmp(argv[1], "--child") == 0) {
        make_assertions_abort();
        exit(run_registered(argc, argv));
    }
    unsetenv("CMOCKA_TEST_ABORT");
    ttn_test_threads(1); /* which makes no team: libgomp's threads would not survive the fork of run_in_child */
    cmocka_set_message_output(CM_OUTPUT_TAP);
}

/* ---- what the environment says ---- */

uint64_t ttn_test_seed(void)
{
    static uint64_t seed = 20180625;
    static int known;
    if (known) return seed;
    const char *text = getenv("TTN_SEED");
    if (text) {
        char *end;
        errno = 0;
        seed = strtoull(text, &end, 0);
        if (errno == 0 && (*end || end == text)) errno = EINVAL;
        if (errno != 0) die("TTN_SEED is no number");
    }
    known = 1;
    printf("# TTN_SEED=%" PRIu64 "\n", seed);
    return seed;
}

int64_t ttn_scaled(int64_t n, int64_t least)
{
    double scale = SANITIZED ? 0.1 : 1.0;
    const char *text = getenv("TTN_SCALE");
    if (text && *text) {
        char *end;
        scale = strtod(text, &end);
        if (*end || !(scale > 0 && scale <= 1000)) {
            errno = EINVAL;
            die("TTN_SCALE is no number above 0");
        }
    }
    int64_t scaled = (int64_t)((double)n * scale);
    return scaled > least ? scaled : least;
}

int ttn_test_long(void)
{
    const char *text = getenv("TTN_LONG");
    return text && strcmp(text, "1") == 0;
}

int ttn_test_sanitized(void)
{
    return SANITIZED;
}

const char *ttn_test_self(void)
{
    static char path[PATH_ROOM];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) die("/proc/self/exe");
    path[n] = 0;
    return path;
}

/* ---- a folder ---- */

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static void remove_folder(void)
{
    enum { OPEN_FOLDERS = 16 };
    if (folder_owner == (long)getpid()) nftw(folder, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

const char *ttn_test_folder(void)
{
    if (folder_owner == (long)getpid()) return folder;
    const char *base = getenv("TMPDIR");
    int n = snprintf(folder, sizeof folder, "%s/titin-test-XXXXXX", base && *base ? base : "/tmp");
    if (n >= (int)sizeof folder) {
        errno = ENAMETOOLONG;
        die("TMPDIR");
    }
    if (!mkdtemp(folder)) die(folder);
    if (folder_owner == 0) atexit(remove_folder);
    folder_owner = (long)getpid();
    return folder;
}

/* ---- children ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void limit_resource(__rlimit_resource_t resource, int64_t bytes)
{
    if (bytes <= 0) return;
    struct rlimit limit = {.rlim_cur = (rlim_t)bytes, .rlim_max = (rlim_t)bytes};
    if (setrlimit(resource, &limit) != 0) die("setrlimit");
}

/* In the child: what run_in_child promises about its surroundings. */
static void prepare_child(const ttn_child_limit *limit, int output, pid_t parent)
{
    static const int caught_by_cmocka[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS};
    in_child = 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    for (size_t i = 0; i < sizeof caught_by_cmocka / sizeof *caught_by_cmocka; i++)
        signal(caught_by_cmocka[i], SIG_DFL);
    make_assertions_abort();
    if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) _exit(127);
    for (const char *const *e = limit->environment; e && *e; e++)
        putenv((char *)*e);
    struct rlimit no_core = {0};
    setrlimit(RLIMIT_CORE, &no_core);
    limit_resource(RLIMIT_AS, limit->address_space);
    limit_resource(RLIMIT_FSIZE, limit->file_size);
}

/* Keeps what fits into ret->output and drops the rest. Returns 0 at the end of the output. */
static int take_output(int fd, ttn_child *ret, size_t *used)
{
    char piece[4096];
    ssize_t n = read(fd, piece, sizeof piece);
    if (n <= 0) return n < 0 && errno == EINTR;
    size_t room = sizeof ret->output - 1 - *used;
    size_t keep = (size_t)n < room ? (size_t)n : room;
    memcpy(ret->output + *used, piece, keep);
    *used += keep;
    return 1;
}

static int has_output(int fd, int milliseconds)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, milliseconds) > 0;
}

/* Not for the end of the output: something that the child started may hold it open. */
static ttn_child watch(pid_t child, int fd, double seconds)
{
    enum { TICK_MS = 10 };
    ttn_child ret = {0};
    size_t used = 0;
    int status = 0;
    int open = 1;
    double end = now() + seconds;
    for (;;) {
        if (!open)
            poll(NULL, 0, 1);
        else if (has_output(fd, TICK_MS))
            open = take_output(fd, &ret, &used);
        pid_t done = waitpid(child, &status, WNOHANG);
        if (done == child) break;
        if (done < 0 && errno != EINTR) die("waitpid");
        if (!ret.timed_out && now() > end) {
            ret.timed_out = 1;
            kill(child, SIGKILL);
        }
    }
    while (open && has_output(fd, 0))
        open = take_output(fd, &ret, &used);
    ret.output[used] = 0;
    ret.exited = WIFEXITED(status);
    if (ret.exited)
        ret.exit_code = WEXITSTATUS(status);
    else
        ret.signal = WTERMSIG(status);
    return ret;
}

ttn_child run_in_child(ttn_child_limit limit, int (*body)(void *arg), void *arg)
{
    if (SANITIZED && limit.address_space > 0)
        skip_because("RLIMIT_AS leaves no room for the shadow of AddressSanitizer");
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) die("pipe");
    fflush(NULL);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        prepare_child(&limit, ends[1], parent);
        int code = body(arg);
        fflush(NULL);
        _exit(code);
    }
    shim_real_close(ends[1]);
    ttn_child ret = watch(child, ends[0], limit.seconds > 0 ? limit.seconds : 60);
    shim_real_close(ends[0]);
    return ret;
}

static int execute(void *arg)
{
    char *const *argv = arg;
    execv(argv[0], argv);
    fprintf(stderr, "test harness: %s: %s\n", argv[0], strerror(errno));
    return 127;
}

ttn_child ttn_run_program(ttn_child_limit limit, const char *const *argv)
{
    return run_in_child(limit, execute, (void *)argv);
}

/* ---- assertions ---- */

static const char *text_of(const ttn_error *err)
{
    return err && err->text[0] ? err->text : "(no message)";
}

void ttn_assert_ok(ttn_status status, const ttn_error *err, const char *call, const char *file, int line)
{
    if (status == TTN_OK) return;
    print_error("%s: %s: %s\n", call, ttn_status_name(status), text_of(err));
    _fail(file, line);
}

void ttn_assert_fails(ttn_status got, ttn_status wanted, const ttn_error *err, const char *words, const char *call,
                      const char *file, int line)
{
    if (got != wanted) {
        print_error("%s: is %s (%s), should be %s\n", call, ttn_status_name(got), text_of(err),
                    ttn_status_name(wanted));
        _fail(file, line);
    }
    if (!err) return;
    if (err->status != wanted) {
        print_error("%s: returns %s, but the error holds %s\n", call, ttn_status_name(got),
                    ttn_status_name(err->status));
        _fail(file, line);
    }
    ttn_assert_contains(err->text, words, file, line);
}

void ttn_assert_contains(const char *text, const char *words, const char *file, int line)
{
    if (strstr(text, words)) return;
    print_error("'%s' stands nowhere in '%.2000s'\n", words, text);
    _fail(file, line);
}

void ttn_assert_same_bits(const void *a, const void *b, size_t n, const char *file, int line)
{
    if (n == 0 || memcmp(a, b, n) == 0) return;
    const unsigned char *x = a, *y = b;
    size_t at = 0;
    while (x[at] == y[at])
        at++;
    size_t differ = 0;
    for (size_t i = at; i < n; i++)
        differ += x[i] != y[i];
    print_error("byte %zu of %zu is %02x and %02x; %zu bytes differ\n", at, n, x[at], y[at], differ);
    _fail(file, line);
}

void ttn_assert_at_most(double value, double bound, const char *what, const char *file, int line)
{
    if (value <= bound) return;
    print_error("%s is %.6g, at most %.6g is allowed\n", what, value, bound);
    _fail(file, line);
}

void ttn_skip_because(const char *format, ...)
{
    va_list args;
    char reason[512];
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (in_child) {
        fprintf(stderr, "test harness: skip_because in a child (%s)\n", reason);
        abort();
    }
    printf("# skip: %s\n", reason); /* cmocka names no reason; the runner takes it from here */
    skip();
}
