#!/bin/bash
# The bench harness measures what it says and reports a goal that was missed.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 9

# The clock is played, so that a busy machine changes nothing: a run takes as long as it says, but one in five is held
# up by ten times its time.
cat > "$work/bench.c" << 'X'
#include <stdlib.h>
#include <time.h>
#include "tests/bench/bench.h"
static double played;
int clock_gettime(clockid_t id, struct timespec *ret) /* bench.c's, by -Dclock_gettime=played_clock */
{
    (void)id;
    ret->tv_sec = (time_t)played;
    ret->tv_nsec = (long)(1e9 * (played - (double)ret->tv_sec));
    return 0;
}
static void spin(void *arg)
{
    static int n_run;
    n_run++;
    played += *(double *)arg * (n_run % 5 ? 1 : 10);
}
int main(int argc, char **argv)
{
    static double seconds[] = {0.020, 0.010, 0.040};
    double goal = atof(getenv("GOAL"));
    bench_start(argc, argv, "spin");
    bench_row rows[] = {
        {.name = "whole", .run = spin, .arg = &seconds[0]},
        {.name = "half", .run = spin, .arg = &seconds[1], .goal = goal},
        {.name = "\"double\"", .run = spin, .arg = &seconds[2]},
    };
    bench_compare("time", rows, 3);
    for (int i = 0; i < 3; i++) {
        rows[i].work = seconds[i];
        rows[i].unit = "G/s";
        rows[i].goal = 0;
    }
    bench_compare("rate", rows, 3);
    return bench_end();
}
X
program=$work/spin
check 'builds' "$CC" -std=c11 -D_GNU_SOURCE -I. -O1 -fopenmp -Dclock_gettime=played_clock -o "$program" "$work/bench.c" tests/bench/bench.c \
    "$BUILD/libtitin.a" $(make -s print-LIBS)

check 'a goal that is reached is no failure' env GOAL=1.2 "$program"
json() { sed -n "s/.*\"case\": \"$1\".*\"$2\": \([^,}]*\).*/\1/p" "$program.jsonl"; }
same 'the time is the median' "$(json 'time: half' value) $(json 'time: half' unit)" '10 "ms"'
same 'half of the work: ratio 2' "$(json 'time: half' ratio)" 2
same 'twice the work: ratio 1/2' "$(json 'time: \\"double\\"' ratio)" 0.5
same 'twice the work at the same rate: ratio 1' "$(json 'rate: \\"double\\"' ratio)" 1
lines=$(grep -c '^{"bench": "spin", "case": ".*", "value": .*, "unit": ".*", "spread": .*, "against": "whole", "ratio": .*}$' "$program.jsonl")
same 'one line of JSON a row' "$lines" 6
output=$(GOAL=50 "$program" time)
same 'a goal that is missed is one' "$? $(grep -c MISSED <<< "$output") $(tail -n 1 <<< "$output")" \
    '1 1 spin: 1 compared, 1 below its goal'
output=$(GOAL=0 OPENBLAS_CORETYPE=Prescott "$program" time 2>&1)
code=$?
if grep -q avx2 /proc/cpuinfo; then
    same 'a kernel below the processor: it refuses to run' "$code $(grep -c 'no ratio means anything' <<< "$output")" '6 1'
else
    skip 'a kernel below the processor: it refuses to run' 'this processor has none above Prescott'
fi
finish
