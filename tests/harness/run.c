/* Runs test programs and adds up what they say.
 *
 *     run --jobs N --filter TEXT [--label NAME PROGRAM...]...
 *
 * A program (or a bash script, NAME.sh) prints TAP: the plan "1..N", then "ok I - name" or "not ok I - name" for each.
 * Skipped ("# SKIP" in the line; cmocka writes "not ok I # SKIP name") is counted apart, never as passed. What a program
 * owes counts as failed: one that dies, hangs (TTN_LIMIT seconds, default 300), leaves with an error but no failed test,
 * has no plan, runs no test, or prints another number of results than planned.
 *
 * Each program is a process group of its own, with no standard input and with a TMPDIR of its own; what it leaves
 * running is killed, what it leaves in TMPDIR removed. The last line is "N passed, N failed" (", N skipped" when there
 * are any); the exit code is 0 only if nothing failed and something passed.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    NAME_ROOM = 256,
    PATH_ROOM = 4096,
    FOLDER_ROOM = PATH_ROOM + 16,
    KEPT_OUTPUT = 1 << 20, /* of a failed program; of more, the first half is dropped */
    MAX_FOLDERS = 64,
};

typedef enum { WAITING, RUNNING, DONE } state;

typedef struct {
    const char *label;
    const char *path;
    char name[NAME_ROOM];   /* core/rng, of build/tests/core/test_rng or tests/core/test_rng.sh */
    char folder[NAME_ROOM]; /* core */

    state state;
    pid_t pid;
    int fd; /* its output; -1: closed */
    double started;
    int timed_out;

    char *output;
    size_t used, room, read_to; /* kept bytes; parsed bytes of them */
    int cut;                    /* some were dropped */
    char *reason;               /* of the next skip */
    char *skips;                /* lines to print */

    int n_plan, planned; /* plans seen, and their sum: a program may run several groups */
    int expected;        /* number of the next result */
    int passed, failed, skipped;
    int disorder;
    double cpu;
} job;

static volatile sig_atomic_t stop_signal;
static char temporary[PATH_ROOM];

static void die(const char *what)
{
    fprintf(stderr, "run: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void *grow(void *old, size_t size)
{
    void *ret = realloc(old, size);
    if (!ret) die("memory");
    return ret;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- names ---- */

/* "core/rng" and "core" of ".../core/test_rng" or ".../core/test_rng.sh". */
static void set_names(job *j)
{
    static const char prefix[] = "test_";
    const char *base = strrchr(j->path, '/');
    base = base ? base + 1 : j->path;
    const char *folder = base;
    if (folder > j->path) {
        folder--;
        while (folder > j->path && folder[-1] != '/')
            folder--;
        snprintf(j->folder, sizeof j->folder, "%.*s", (int)(base - 1 - folder), folder);
    } else {
        snprintf(j->folder, sizeof j->folder, ".");
    }
    if (strncmp(base, prefix, sizeof prefix - 1) == 0) base += sizeof prefix - 1;
    int length = (int)strlen(base);
    if (length > 3 && strcmp(base + length - 3, ".sh") == 0) length -= 3;
    snprintf(j->name, sizeof j->name, "%.100s/%.*s", j->folder, length > 100 ? 100 : length, base);
}

/* The filter is a part of "f32 core/rng" or of the path. */
static int matches(const job *j, const char *filter)
{
    char text[2 * NAME_ROOM];
    snprintf(text, sizeof text, "%s %s", j->label, j->name);
    return strstr(text, filter) || strstr(j->path, filter);
}

/* ---- TAP ---- */

static void add_skip(job *j, const char *what, const char *reason)
{
    size_t used = j->skips ? strlen(j->skips) : 0;
    size_t more = strlen(what) + strlen(reason) + sizeof "     skipped: : \n";
    j->skips = grow(j->skips, used + more);
    snprintf(j->skips + used, more, "     skipped: %s: %s\n", what, reason);
}

static void take_skip(job *j, const char *text, const char *mark)
{
    const char *after = mark + strlen("# skip");
    while (isspace((unsigned char)*after))
        after++;
    /* cmocka: "# SKIP name", with the reason in a line before it; scripts: "- name # SKIP reason" */
    const char *dash = strstr(text, "- ");
    if (dash && dash < mark) {
        char name[NAME_ROOM];
        int length = (int)(mark - dash - 2);
        while (length > 0 && isspace((unsigned char)dash[2 + length - 1]))
            length--;
        snprintf(name, sizeof name, "%.*s", length, dash + 2);
        add_skip(j, name, *after ? after : "no reason given");
    } else {
        add_skip(j, after, j->reason ? j->reason : "no reason given");
    }
    j->skipped++;
}

static void take_result(job *j, const char *text, int good)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || number != j->expected) j->disorder = 1;
    j->expected++;
    const char *mark = strcasestr(end, "# skip");
    if (mark)
        take_skip(j, end, mark);
    else if (good)
        j->passed++;
    else
        j->failed++;
    free(j->reason);
    j->reason = NULL;
}

/* "1..N" and nothing after it. */
static int is_plan(const char *line, int *n)
{
    if (strncmp(line, "1..", 3) != 0) return 0;
    char *end;
    long value = strtol(line + 3, &end, 10);
    if (end == line + 3 || *end || value < 0 || value > 1000000) return 0;
    *n = (int)value;
    return 1;
}

static void take_line(job *j, const char *line)
{
    static const char reason[] = "# skip: ";
    int n;
    if (strncmp(line, "ok ", 3) == 0) {
        take_result(j, line + 3, 1);
    } else if (strncmp(line, "not ok ", 7) == 0) {
        take_result(j, line + 7, 0);
    } else if (is_plan(line, &n)) {
        j->n_plan++;
        j->planned += n;
        j->expected = 1;
    } else if (strncmp(line, reason, sizeof reason - 1) == 0) {
        free(j->reason);
        j->reason = strdup(line + sizeof reason - 1);
    }
}

static void take_lines(job *j)
{
    for (;;) {
        char *line = j->output + j->read_to;
        char *end = memchr(line, '\n', j->used - j->read_to);
        if (!end) return;
        *end = 0;
        take_line(j, line);
        *end = '\n';
        j->read_to = (size_t)(end - j->output) + 1;
    }
}

/* ---- one program ---- */

/* Returns 0 when nothing more can come. */
static int take_output(job *j)
{
    char piece[65536];
    ssize_t n = read(j->fd, piece, sizeof piece);
    if (n < 0) return errno == EINTR;
    if (n == 0) return 0;
    if (j->used + (size_t)n + 1 > KEPT_OUTPUT) {
        size_t drop = j->read_to < j->used / 2 ? j->used : j->used / 2; /* a line of half a MiB is no line of TAP */
        memmove(j->output, j->output + drop, j->used - drop);
        j->used -= drop;
        j->read_to = j->read_to > drop ? j->read_to - drop : 0;
        j->cut = 1;
    }
    if (j->used + (size_t)n + 1 > j->room) {
        j->room = 2 * j->room + (size_t)n + 1;
        j->output = grow(j->output, j->room);
    }
    for (ssize_t i = 0; i < n; i++)
        j->output[j->used + (size_t)i] = piece[i] ? piece[i] : '?';
    j->used += (size_t)n;
    j->output[j->used] = 0;
    take_lines(j);
    return 1;
}

static void close_output(job *j)
{
    if (j->fd >= 0) close(j->fd);
    j->fd = -1;
}

/* The TMPDIR of job i; path has FOLDER_ROOM bytes. */
static void own_folder(int i, char *path)
{
    snprintf(path, FOLDER_ROOM, "%s/%d", temporary, i);
}

static void run_program(const job *j, int output)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) _exit(127);
    size_t length = strlen(j->path);
    if (length > 3 && strcmp(j->path + length - 3, ".sh") == 0)
        execlp("bash", "bash", j->path, (char *)NULL);
    else
        execl(j->path, j->path, (char *)NULL);
    dprintf(2, "run: %s: %s\n", j->path, strerror(errno));
    _exit(127);
}

static void start(job *j, int i)
{
    char folder[FOLDER_ROOM];
    own_folder(i, folder);
    if (mkdir(folder, 0700) != 0) die(folder);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) die("pipe");
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fflush(NULL);
    j->started = now();
    pid_t parent = getpid();
    j->pid = fork();
    if (j->pid < 0) die("fork");
    if (j->pid == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(127);
        setenv("TMPDIR", folder, 1);
        run_program(j, ends[1]);
    }
    setpgid(j->pid, j->pid); /* whichever of the two comes first */
    close(ends[1]);
    j->fd = ends[0];
    j->state = RUNNING;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static void remove_all(const char *path)
{
    enum { OPEN_FOLDERS = 16 };
    nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

static void owe(job *j, int n, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void owe(job *j, int n, const char *format, ...)
{
    va_list args;
    char why[512];
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    printf("     %s %s: %s\n", j->label, j->name, why);
    j->failed += n;
}

static int at_least_one(int n)
{
    return n > 1 ? n : 1;
}

/* What the program owes, beside the tests that it says have failed. */
static void judge(job *j, int status, double limit)
{
    int results = j->passed + j->failed + j->skipped;
    int missing = j->planned > results ? j->planned - results : 0;
    int own_failed = j->failed;
    if (j->timed_out)
        owe(j, at_least_one(missing), "still running after %.0f s, killed", limit);
    else if (WIFSIGNALED(status))
        owe(j, at_least_one(missing), "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (j->n_plan == 0 && own_failed == 0)
        owe(j, 1, "no plan (a line 1..N), exit code %d", WEXITSTATUS(status));
    else if (results == 0)
        owe(j, at_least_one(missing), "ran no test, exit code %d", WEXITSTATUS(status));
    else if (missing > 0)
        owe(j, missing, "%d results, %d planned", results, j->planned);
    else if (j->n_plan > 0 && results > j->planned)
        owe(j, results - j->planned, "%d results, %d planned", results, j->planned);
    else if (j->disorder && own_failed == 0)
        owe(j, 1, "the results are not numbered 1, 2, 3, ...");
    else if (WEXITSTATUS(status) != 0 && own_failed == 0)
        owe(j, 1, "exit code %d, but no test failed", WEXITSTATUS(status));
}

/* Waited for: report. */
static void finish(job *j, int i, int status, const struct rusage *usage, double limit)
{
    while (j->fd >= 0 && take_output(j))
        ;
    close_output(j);
    if (j->used > j->read_to) take_line(j, j->output + j->read_to); /* no line end */
    kill(-j->pid, SIGKILL);                                         /* what it has left running */
    j->cpu = (double)usage->ru_utime.tv_sec + 1e-6 * (double)usage->ru_utime.tv_usec + (double)usage->ru_stime.tv_sec +
             1e-6 * (double)usage->ru_stime.tv_usec;
    j->state = DONE;
    char folder[FOLDER_ROOM];
    own_folder(i, folder);
    remove_all(folder);
    if (stop_signal) return;

    judge(j, status, limit);
    printf("%s %s %s: %d passed, %d failed", j->failed ? "FAIL" : "ok  ", j->label, j->name, j->passed, j->failed);
    if (j->skipped) printf(", %d skipped", j->skipped);
    printf(" (%.2f s CPU)\n", j->cpu);
    if (j->skips) fputs(j->skips, stdout);
    if (j->failed && j->used) {
        printf("---- output of %s%s\n%s%s----\n", j->path, j->cut ? " (its beginning is cut off)" : "", j->output,
               j->output[j->used - 1] == '\n' ? "" : "\n");
    }
    fflush(stdout);
    free(j->output);
    j->output = NULL;
}

/* ---- all programs ---- */

static void on_signal(int signal)
{
    if (signal != SIGCHLD) stop_signal = signal;
}

static void kill_all(job *jobs, int n)
{
    for (int i = 0; i < n; i++)
        if (jobs[i].state == RUNNING) kill(-jobs[i].pid, SIGKILL);
}

/* Sleep until there is output, a child has ended, or a second is over. */
static void wait_for_news(job *jobs, int n, const sigset_t *while_asleep)
{
    struct pollfd *polled = grow(NULL, (size_t)n * sizeof *polled);
    int *of = grow(NULL, (size_t)n * sizeof *of);
    int n_polled = 0;
    for (int i = 0; i < n; i++) {
        if (jobs[i].state != RUNNING || jobs[i].fd < 0) continue;
        polled[n_polled] = (struct pollfd){.fd = jobs[i].fd, .events = POLLIN};
        of[n_polled] = i;
        n_polled++;
    }
    struct timespec second = {.tv_sec = 1};
    if (ppoll(polled, (nfds_t)n_polled, &second, while_asleep) > 0)
        for (int i = 0; i < n_polled; i++)
            if (polled[i].revents && !take_output(&jobs[of[i]])) close_output(&jobs[of[i]]);
    free(polled);
    free(of);
}

static void run_all(job *jobs, int n, int n_parallel, double limit)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t ours, while_asleep;
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    sigprocmask(SIG_BLOCK, &ours, &while_asleep);
    for (int s = 1; s < NSIG; s++)
        if (sigismember(&ours, s) == 1) sigaction(s, &action, NULL);
    signal(SIGPIPE, SIG_IGN);

    int next = 0, running = 0, done = 0;
    while (done < n) {
        while (next < n && running < n_parallel && !stop_signal) {
            start(&jobs[next], next);
            next++;
            running++;
        }
        if (stop_signal && running == 0) return;
        wait_for_news(jobs, n, &while_asleep);
        if (stop_signal) kill_all(jobs, n);
        for (int i = 0; i < next; i++) {
            job *j = &jobs[i];
            if (j->state != RUNNING) continue;
            int status;
            struct rusage usage;
            if (wait4(j->pid, &status, WNOHANG, &usage) == j->pid) {
                finish(j, i, status, &usage, limit);
                running--;
                done++;
            } else if (now() > j->started + limit) {
                j->timed_out = 1;
                kill(-j->pid, SIGKILL);
            }
        }
    }
}

static void print_cpu(const job *jobs, int n)
{
    const char *folder[MAX_FOLDERS];
    double cpu[MAX_FOLDERS];
    int n_folder = 0;
    for (int i = 0; i < n; i++) {
        int f = 0;
        while (f < n_folder && strcmp(folder[f], jobs[i].folder) != 0)
            f++;
        if (f == MAX_FOLDERS) continue;
        if (f == n_folder) {
            folder[f] = jobs[i].folder;
            cpu[f] = 0;
            n_folder++;
        }
        cpu[f] += jobs[i].cpu;
    }
    printf("CPU seconds:");
    for (int f = 0; f < n_folder; f++)
        printf(" %s %.1f%s", folder[f], cpu[f], f + 1 < n_folder ? "," : "\n");
}

/* ---- arguments ---- */

static double positive(const char *what, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (*end || end == text || !(value > 0 && value <= 1e6)) {
        fprintf(stderr, "run: %s is '%s', a number above 0 is expected\n", what, text);
        exit(2);
    }
    return value;
}

static const char *value_of(int argc, char **argv, int i)
{
    if (i + 1 < argc) return argv[i + 1];
    fprintf(stderr, "run: %s wants a value\n", argv[i]);
    exit(2);
}

static void prepare_environment(void)
{
    setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 1);
    /* Programs share the cores: waiting threads took half of all CPU seconds. */
    setenv("OMP_WAIT_POLICY", "passive", 0);
    unsetenv("CMOCKA_TEST_ABORT");
    unsetenv("CMOCKA_XML_FILE");
    /* A script that calls make means its own variables, not those of the make that has called us. */
    static const char *const of_make[] = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"};
    for (size_t i = 0; i < sizeof of_make / sizeof *of_make; i++)
        unsetenv(of_make[i]);

    const char *base = getenv("TMPDIR");
    int n = snprintf(temporary, sizeof temporary, "%s/titin-run-XXXXXX", base && *base ? base : "/tmp");
    if (n >= (int)sizeof temporary) {
        errno = ENAMETOOLONG;
        die("TMPDIR");
    }
    if (!mkdtemp(temporary)) die(temporary);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *filter = "", *label = "";
    int n_parallel = 1, n = 0;
    const char *limit_text = getenv("TTN_LIMIT");
    double limit = positive("TTN_LIMIT", limit_text && *limit_text ? limit_text : "300");
    job *jobs = grow(NULL, (size_t)argc * sizeof *jobs);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--jobs") == 0) {
            n_parallel = (int)positive("--jobs", value_of(argc, argv, i));
            if (n_parallel < 1) n_parallel = 1;
            i++;
        } else if (strcmp(argv[i], "--filter") == 0) {
            filter = value_of(argc, argv, i);
            i++;
        } else if (strcmp(argv[i], "--label") == 0) {
            label = value_of(argc, argv, i);
            i++;
        } else {
            jobs[n] = (job){.label = label, .path = argv[i], .fd = -1, .expected = 1};
            set_names(&jobs[n]);
            n++;
        }
    }
    int n_chosen = 0;
    for (int i = 0; i < n; i++) {
        if (!matches(&jobs[i], filter)) continue;
        jobs[n_chosen] = jobs[i];
        n_chosen++;
    }
    if (n_chosen == 0) {
        fprintf(stderr, "run: no test is called '%s' (of %d programs)\n", filter, n);
        return 2;
    }

    prepare_environment();
    run_all(jobs, n_chosen, n_parallel, limit);
    remove_all(temporary);
    if (stop_signal) {
        fprintf(stderr, "run: stopped by signal %d\n", (int)stop_signal);
        return 128 + (int)stop_signal;
    }
    int passed = 0, failed = 0, skipped = 0;
    for (int i = 0; i < n_chosen; i++) {
        passed += jobs[i].passed;
        failed += jobs[i].failed;
        skipped += jobs[i].skipped;
        free(jobs[i].skips);
        free(jobs[i].reason);
    }
    print_cpu(jobs, n_chosen);
    free(jobs);
    printf("%d passed, %d failed", passed, failed);
    if (skipped) printf(", %d skipped", skipped);
    printf("\n");
    return failed == 0 && passed > 0 ? 0 : 1;
}
