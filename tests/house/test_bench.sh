#!/bin/bash
# The bench harness measures what it says and reports a goal that was missed.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 7

# Row 1 does half of the work of row 0, row 2 twice as much, in one loop that no compiler shortens.
cat > "$work/bench.c" << 'X'
#include <stdlib.h>
#include "tests/bench/bench.h"
static void spin(void *arg)
{
    for (volatile long i = 0; i < *(long *)arg; i++)
        ;
}
int main(int argc, char **argv)
{
    static long n[] = {2000000, 1000000, 4000000};
    double goal = atof(getenv("GOAL"));
    bench_start(argc, argv, "spin");
    bench_row rows[] = {
        {.name = "whole", .run = spin, .arg = &n[0]},
        {.name = "half", .run = spin, .arg = &n[1], .goal = goal},
        {.name = "\"double\"", .run = spin, .arg = &n[2]},
    };
    bench_compare("time", rows, 3);
    for (int i = 0; i < 3; i++) {
        rows[i].work = 1e-9 * (double)n[i];
        rows[i].unit = "G/s";
        rows[i].goal = 0;
    }
    bench_compare("rate", rows, 3);
    return bench_end();
}
X
program=$work/spin
check 'builds' "$CC" -std=c11 -D_GNU_SOURCE -I. -O1 -fopenmp -o "$program" "$work/bench.c" tests/bench/bench.c \
    train/cli/reexec.c "$BUILD/libtitin.a" $(make -s print-LIBS)

check 'a goal that is reached is no failure' env GOAL=1.2 "$program"
json() { sed -n "s/.*\"case\": \"$1\".*\"$2\": \([^,}]*\).*/\1/p" "$program.jsonl"; }
# Half the work takes half the time, within what a busy machine leaves of it.
near() { awk -v got="$1" -v wanted="$2" 'BEGIN { exit !(got > 0.7 * wanted && got < 1.4 * wanted) }'; }
check 'half of the work: ratio 2' near "$(json 'time: half' ratio)" 2
check 'twice the work: ratio 1/2' near "$(json 'time: \\"double\\"' ratio)" 0.5
check 'twice the work at the same rate: ratio 1' near "$(json 'rate: \\"double\\"' ratio)" 1
lines=$(grep -c '^{"bench": "spin", "case": ".*", "value": .*, "unit": ".*", "spread": .*, "against": "whole", "ratio": .*}$' "$program.jsonl")
same 'one line of JSON a row' "$lines" 6
output=$(GOAL=50 "$program" time)
same 'a goal that is missed is one' "$? $(grep -c MISSED <<< "$output") $(tail -n 1 <<< "$output")" \
    '1 1 spin: 1 compared, 1 below its goal'
finish
