#!/bin/bash
# Starting again in another environment: at most once, with the same arguments, and without a trace for the processes started later.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 11

# WANTS: what the played BLAS asks for; "always Zen" still asks when it has it. One line a start goes to STARTS.
cat > "$work/program.c" << 'X'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/blas.h"
#include "core/start.h"
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
    int changes = ttn_reexec(argv);
    const char *kernel = getenv("OPENBLAS_CORETYPE");
    printf("%s %s", kernel ? kernel : "none", getenv("TTN_REEXEC") ? "guard" : "clean");
    const char *spin = getenv("GOMP_SPINCOUNT");
    printf(" %s %d", spin ? spin : "default", changes);
    for (int i = 1; i < argc; i++)
        printf(" <%s>", argv[i]);
    char name[32] = "";
    FILE *comm = fopen("/proc/self/comm", "r");
    if (getenv("SHOW_NAME") && comm && fgets(name, sizeof name, comm)) printf(" %s", name);
    return 3;
}
X
check 'builds' "$CC" -std=c11 -D_GNU_SOURCE -I. -o "$work/program" "$work/program.c" core/reexec.c

# started NAME EXPECTED [ENVIRONMENT...]: how often it started, its exit code and what it printed: the kernel, whether the guard
# is gone, the spin count, what has changed (1: kernel, 2: spin count), the arguments.
started() {
    local name=$1 expected=$2 output code
    shift 2
    : > "$work/starts"
    output=$(env -u OPENBLAS_CORETYPE -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY STARTS="$work/starts" "$@" \
        timeout 20 "$work/program" 'a b' '' c)
    code=$?
    same "$name" "$(wc -l < "$work/starts") $code $output" "$expected"
}
passive=OMP_WAIT_POLICY=passive # then the spin count is the user's choice
started 'not when nothing is needed' '1 3 none clean default 0 <a b> <> <c>' $passive
started 'once when a kernel is needed' '2 3 Zen clean default 1 <a b> <> <c>' $passive WANTS=Zen
started 'once when it is still needed' '2 3 Zen clean default 1 <a b> <> <c>' $passive WANTS='always Zen'
started 'not when the user has chosen' '1 3 Prescott clean default 0 <a b> <> <c>' $passive WANTS=Zen OPENBLAS_CORETYPE=Prescott
started 'again when it is the parent that has started again' '2 3 Zen clean default 1 <a b> <> <c>' $passive WANTS=Zen TTN_REEXEC='1 1'
started 'under the name it was called by' '2 3 Zen clean default 1 <a b> <> <c> program' $passive WANTS=Zen SHOW_NAME=1
started 'as without starting again' '1 3 none clean default 0 <a b> <> <c> program' $passive SHOW_NAME=1
started 'a spin count that the user has set stays' '1 3 none clean 7 0 <a b> <> <c>' GOMP_SPINCOUNT=7
if "$CC" --version | grep -q clang; then # its OpenMP has no spin count
    started 'a short spin count is not set for another OpenMP' '1 3 none clean default 0 <a b> <> <c>'
    started 'nor with a kernel' '2 3 Zen clean default 1 <a b> <> <c>' WANTS=Zen
else
    started 'a short spin count is set where the user has set none' '2 3 none clean 1000 2 <a b> <> <c>'
    started 'together with a kernel' '2 3 Zen clean 1000 3 <a b> <> <c>' WANTS=Zen
fi
finish
