#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "core/blas.h"
#include "core/start.h"

/* "PID CHANGES" of the process that has started again. execv keeps the number, and a child has another one: the guard works
 * for one process and does not leak to those it starts. */
static const char guard[] = "TTN_REEXEC";

/* How often a waiting thread of libgomp looks again before it sleeps. Its own default spins for milliseconds, which takes the
 * core away from whoever computes. Measured on two cores, width 64: with 300 to 3,000 an idle machine loses 0 to 3 %, and one
 * with two other busy processes keeps 84 to 97 % of what OMP_WAIT_POLICY=passive gets (41 % by default). */
static const char spin_count[] = "1000";

/* clang's libomp does not read it. */
#if defined(__clang__)
enum { HAS_LIBGOMP = 0 };
#else
enum { HAS_LIBGOMP = 1 };
#endif

/* ps and top show what was executed, "exe". */
static void restore_name(const char *program)
{
    if (!program) return;
    const char *slash = strrchr(program, '/');
    prctl(PR_SET_NAME, slash ? slash + 1 : program);
}

/* What an earlier start of this process has changed; -1: there was none. */
static int changes_before(void)
{
    const char *text = getenv(guard);
    long process;
    int changes;
    const int again = text && sscanf(text, "%ld %d", &process, &changes) == 2 && process == (long)getpid();
    unsetenv(guard);
    return again ? changes : -1;
}

static int is_set(const char *name)
{
    const char *text = getenv(name);
    return text && *text;
}

int ttn_reexec(char **argv)
{
    int changes = changes_before();
    if (changes >= 0) {
        restore_name(argv[0]);
        return changes;
    }
    changes = 0;
    const char *kernel = ttn_blas_wanted_kernel();
    if (kernel && setenv("OPENBLAS_CORETYPE", kernel, 1) == 0) changes |= TTN_REEXEC_KERNEL;
    if (HAS_LIBGOMP && !is_set("GOMP_SPINCOUNT") && !is_set("OMP_WAIT_POLICY") &&
        setenv("GOMP_SPINCOUNT", spin_count, 1) == 0)
        changes |= TTN_REEXEC_SPIN;
    if (changes == 0) return 0;
    char text[48];
    snprintf(text, sizeof text, "%ld %d", (long)getpid(), changes);
    if (setenv(guard, text, 1) == 0) execv("/proc/self/exe", argv);
    unsetenv(guard);
    return 0;
}
