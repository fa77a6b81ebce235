#!/bin/bash
# The runner counts what a program owes: nothing that goes wrong in one may look like a pass.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 21

run=$PWD/build/tests/run
mkdir -p "$work/fake"

# fake NAME: the body of a test script on standard input.
fake() { cat > "$work/fake/test_$1.sh"; }

# counted NAME EXPECTED [ENVIRONMENT...]: its closing line, and an exit code that fits it.
counted() {
    local name=$1 expected=$2 output code last wanted=1
    shift 2
    output=$(env "$@" "$run" --jobs 1 --filter '' --label x "$work/fake/test_$name.sh" 2>&1)
    code=$?
    last=$(tail -n 1 <<< "$output")
    case "$expected" in *", 0 failed"*) wanted=0 ;; esac
    if [ "$last" = "$expected" ] && [ "$code" = "$wanted" ]; then
        ok "$name"
    else
        not_ok "$name" "'$last' and exit code $code; expected '$expected' and $wanted
$output"
    fi
}

fake good << 'X'
echo 1..2; echo "ok 1 - a"; echo "ok 2 - b"
X
counted good '2 passed, 0 failed'

fake says_not_ok << 'X'
echo 1..2; echo "ok 1 - a"; echo "not ok 2 - b"; exit 1
X
counted says_not_ok '1 passed, 1 failed'

fake fails_with_exit_0 << 'X'
echo 1..2; echo "ok 1 - a"; echo "not ok 2 - b"
X
counted fails_with_exit_0 '1 passed, 1 failed'

fake crashes << 'X'
echo 1..5; echo "ok 1 - a"; kill -SEGV $$
X
counted crashes '1 passed, 4 failed'

fake crashes_at_the_end << 'X'
echo 1..1; echo "ok 1 - a"; kill -SEGV $$
X
counted crashes_at_the_end '1 passed, 1 failed'

fake hangs << 'X'
echo 1..3; echo "ok 1 - a"; sleep 100
X
counted hangs '1 passed, 2 failed' TTN_LIMIT=0.3

fake hangs_at_the_end << 'X'
echo 1..1; echo "ok 1 - a"; sleep 100
X
counted hangs_at_the_end '1 passed, 1 failed' TTN_LIMIT=0.3

fake prints_nothing < /dev/null
counted prints_nothing '0 passed, 1 failed'

fake has_no_plan << 'X'
echo "ok 1 - a"
X
counted has_no_plan '1 passed, 1 failed'

fake runs_no_test << 'X'
echo 1..0
X
counted runs_no_test '0 passed, 1 failed'

fake prints_less_than_planned << 'X'
echo 1..5; echo "ok 1 - a"; echo "ok 2 - b"
X
counted prints_less_than_planned '2 passed, 3 failed'

fake prints_more_than_planned << 'X'
echo 1..1; echo "ok 1 - a"; echo "ok 2 - b"
X
counted prints_more_than_planned '2 passed, 1 failed'

fake repeats_a_number << 'X'
echo 1..2; echo "ok 1 - a"; echo "ok 1 - a"
X
counted repeats_a_number '2 passed, 1 failed'

fake exits_1_after_all_ok << 'X'
echo 1..1; echo "ok 1 - a"; exit 1
X
counted exits_1_after_all_ok '1 passed, 1 failed'

# The middle line is how cmocka 1.1.5 writes a skip.
fake skips << 'X'
echo 1..3; echo "ok 1 - a"; echo "# skip: no such library"; echo "not ok 2 # SKIP b"; echo "ok 3 - c # SKIP no such compiler"
X
counted skips '1 passed, 0 failed, 2 skipped'
reasons=$("$run" --jobs 1 --filter '' "$work/fake/test_skips.sh" | sed -n 's/^ *skipped: //p')
same 'reasons of skips are printed' "$reasons" "b: no such library
c: no such compiler"

fake only_skips << 'X'
echo 1..1; echo "ok 1 - a # SKIP no reason"
X
output=$("$run" --jobs 1 --filter '' "$work/fake/test_only_skips.sh")
same 'nothing but skips is no success' "$? $(tail -n 1 <<< "$output")" '1 0 passed, 0 failed, 1 skipped'

fake two_groups << 'X'
echo 1..1; echo "ok 1 - a"; echo 1..2; echo "ok 1 - a"; echo "ok 2 - b"
X
counted two_groups '3 passed, 0 failed'

output=$("$run" --jobs 1 --filter nonsense "$work"/fake/test_*.sh 2>&1)
same 'a filter that matches nothing is an error' "$? $output" \
    "2 run: no test is called 'nonsense' (of $(ls "$work"/fake | wc -l) programs)"

# Of five sleepers of 0.4 s, four at a time: no longer than two after each other, far less than five.
for i in 1 2 3 4 5; do
    fake "sleeper$i" <<< 'sleep 0.4; echo 1..1; echo "ok 1 - a"'
done
begin=$(date +%s%N)
output=$("$run" --jobs 5 --filter sleeper "$work"/fake/test_*.sh 2>&1 | tail -n 1)
took=$((($(date +%s%N) - begin) / 1000000))
if [ "$took" -lt 1900 ] && [ "$output" = '5 passed, 0 failed' ]; then ok 'programs run side by side'; else
    not_ok 'programs run side by side' "$took ms for five times 400 ms side by side; $output"; fi

# A signal to the runner ends what it has started, also a grandchild.
fake leaves_a_child << X
echo \$\$ > "$work/pid"; sleep 1000 & echo \$! >> "$work/pid"; wait
X
"$run" --jobs 1 --filter leaves "$work/fake/test_leaves_a_child.sh" > /dev/null 2>&1 &
runner=$!
for _ in $(seq 100); do
    [ "$(wc -l < "$work/pid" 2> /dev/null)" = 2 ] && break
    sleep 0.05
done
kill -TERM "$runner"
wait "$runner"
code=$?
alive=
while read -r pid; do
    # A killed process that init has not yet waited for is a zombie: dead enough.
    case "$(sed 's/.*) //' "/proc/$pid/stat" 2> /dev/null)" in '' | Z*) ;; *) alive="$alive $pid" ;; esac
done < "$work/pid"
same 'a stopped runner leaves nothing running' "$code$alive" 143
finish
