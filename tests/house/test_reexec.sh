#!/bin/bash
# Starting again for the BLAS: at most once, with the same arguments, and without a trace for the processes started later.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 8

# WANTS: what the played BLAS asks for; "always Zen" still asks when it has it. One line a start goes to STARTS.
cat > "$work/program.c" << 'X'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/blas.h"
#include "train/cli/reexec.h"
const char *ttn_blas_wanted_kernel(void)
{
    const char *wants = getenv("WANTS");
    if (!wants) return NULL;
    if (strncmp(wants, "always ", 7) == 0) return wants + 7;
    return getenv("OPENBLAS_CORETYPE") ? NULL : wants;
}
int main(int argc, char **argv)
{
    FILE *starts = fopen(getenv("STARTS"), "a");
    fputs("start\n", starts);
    fclose(starts);
    ttn_reexec_for_blas(argv);
    const char *kernel = getenv("OPENBLAS_CORETYPE");
    printf("%s %s", kernel ? kernel : "none", getenv("TTN_REEXEC_PID") ? "guard" : "clean");
    for (int i = 1; i < argc; i++)
        printf(" <%s>", argv[i]);
    char name[32] = "";
    FILE *comm = fopen("/proc/self/comm", "r");
    if (getenv("SHOW_NAME") && comm && fgets(name, sizeof name, comm)) printf(" %s", name);
    return 3;
}
X
check 'builds' "$CC" -std=c11 -D_GNU_SOURCE -I. -o "$work/program" "$work/program.c" train/cli/reexec.c

# started NAME EXPECTED [ENVIRONMENT...]: how often it started, its exit code and what it printed.
started() {
    local name=$1 expected=$2 output code
    shift 2
    : > "$work/starts"
    output=$(env -u OPENBLAS_CORETYPE STARTS="$work/starts" "$@" timeout 20 "$work/program" 'a b' '' c)
    code=$?
    same "$name" "$(wc -l < "$work/starts") $code $output" "$expected"
}
started 'not when nothing is wanted' '1 3 none clean <a b> <> <c>'
started 'once when a kernel is wanted' '2 3 Zen clean <a b> <> <c>' WANTS=Zen
started 'once when it is still wanted' '2 3 Zen clean <a b> <> <c>' WANTS='always Zen'
started 'not when the user has chosen' '1 3 Prescott clean <a b> <> <c>' WANTS=Zen OPENBLAS_CORETYPE=Prescott
started 'again when it is the parent that has started again' '2 3 Zen clean <a b> <> <c>' WANTS=Zen TTN_REEXEC_PID=1
started 'under the name it was called by' '2 3 Zen clean <a b> <> <c> program' WANTS=Zen SHOW_NAME=1
started 'as without starting again' '1 3 none clean <a b> <> <c> program' SHOW_NAME=1
finish
