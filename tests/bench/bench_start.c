/* From the command to the first step: the program is started on a store of 20,000 proteins, and its words are read until it
 * tells of step 1. What that step took, by its own metrics, is not counted.
 *
 * The proteins are the sample's, each in COPIES rotations; few are held out, so that a run ends soon after its step. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/clock.h"
#include "tests/bench/bench.h"

enum { COPIES = 40, TIMES = 3, ROOM = 4096 };
static const double MOST_SECONDS = 0.5;

static char titin[ROOM], work[ROOM];

static void stop(const char *what)
{
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* A command in which %1$s, %2$s and %3$d stand for the folder `work`, titin and COPIES. */
static FILE *start(const char *format)
{
    char command[4 * ROOM];
    /* Positions in formats (%2$s) are read as a count of arguments. */
    // cppcheck-suppress [invalidPrintfArgType_s, wrongPrintfScanfArgNum]
    snprintf(command, sizeof command, format, work, titin, COPIES);
    FILE *f = popen(command, "r");
    if (!f) stop("popen");
    return f;
}

static void run(const char *format)
{
    FILE *f = start(format);
    char line[ROOM];
    while (fgets(line, sizeof line, f)) {
    }
    if (pclose(f) != 0) {
        fprintf(stderr, "bench: a command failed: %s\n", format);
        exit(1);
    }
}

static void make_store(void)
{
    run("zcat data/sample/proteins-500.fasta.gz |"
        " awk '/^>/ { name = $1; next } { sequence[name] = sequence[name] $0 }"
        " END { for (name in sequence) for (i = 0; i < %3$d; i++) { s = sequence[name]; at = int(i * length(s) / %3$d);"
        " print name \"_\" i; print substr(s, at + 1) substr(s, 1, at) } }' > '%1$s/proteins.fasta' &&"
        " '%2$s' data pack '%1$s/proteins.fasta' -o '%1$s/proteins.h5' data.valid=0.0005 > '%1$s/log' 2>&1");
}

/* Seconds of the first step, by the run's own metrics. */
static double first_step(void)
{
    FILE *f = start("sed -n '1s/.*\"perf\\/step_s\":\\([-+.0-9e]*\\).*/\\1/p' '%1$s/run/metrics.jsonl'");
    double s = 0;
    if (fscanf(f, "%lf", &s) != 1) stop("metrics.jsonl has no perf/step_s");
    pclose(f);
    return s;
}

static double seconds_to_first_step(void)
{
    char line[ROOM];
    double at = -1;
    run("rm -rf '%1$s/run'");
    const double begin = ttn_clock_now(NULL);
    FILE *f =
        start("exec '%2$s' train --preset quickstart data.train='%1$s/proteins.h5' train.out='%1$s/run' train.tokens=0"
              " train.steps=1 2>&1");
    while (fgets(line, sizeof line, f))
        if (at < 0 && strncmp(line, "step", 4) == 0) at = ttn_clock_now(NULL) - begin;
    if (pclose(f) != 0 || at < 0) {
        fprintf(stderr, "bench: titin train did not come to a step\n");
        exit(1);
    }
    return at - first_step();
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "start");
    const char *slash = strrchr(argv[0], '/');
    snprintf(titin, sizeof titin, "%.*s../titin", slash ? (int)(slash + 1 - argv[0]) : 0, argv[0]);
    snprintf(work, sizeof work, "/tmp/titin-bench-XXXXXX");
    if (!mkdtemp(work)) stop(work);
    make_store();
    double best = 0;
    for (int i = 0; i < TIMES; i++) {
        const double s = seconds_to_first_step();
        if (i == 0 || s < best) best = s;
    }
    bench_note("%d proteins: %.3f s from the command to the first step (the best of %d; wanted are at most %.1f)%s",
               500 * COPIES, best, TIMES, MOST_SECONDS, best > MOST_SECONDS ? ", which is missed" : "");
    run("rm -rf '%1$s'");
    const int ended = bench_end();
    return best > MOST_SECONDS ? 1 : ended;
}
