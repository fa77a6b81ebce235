#!/bin/bash
# The program itself: what it prints, what it refuses, and that neither is lost without a word.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 19

titin=$BUILD/titin
# run ARGUMENT...: $code, $out and $err of the program.
run() {
    "$titin" "$@" > "$work/out" 2> "$work/err"
    code=$?
    out=$(< "$work/out")
    err=$(< "$work/err")
}

run --help
same 'help succeeds, with nothing on stderr' "$code $err" '0 '
check 'and lists the exit codes' grep -q '^ *75 ' <<< "$out"
help=$out
run -h
same 'also by its short name' "$code $out" "0 $help"
run --version
same 'version succeeds, with nothing on stderr' "$code $err" '0 '
check 'and names the version and the BLAS' grep -Eqz '^titin [0-9]+\.[0-9]+.*kernel, self-check passed' <<< "$out"

# refused NAME EXPECTED ARGUMENT...: exit code 2, one sentence, nothing on stdout.
refused() {
    local name=$1 expected=$2
    shift 2
    run "$@"
    same "$name" "$code <$out> $err" "2 <> titin: error: $expected"
}
refused 'nothing to do' 'what is to be done? `titin --help` lists what there is'
refused 'an unknown word' '`titin --help` lists what is known here, and this is not: '"'trian'" trian
refused 'an empty word' '`titin --help` lists what is known here, and this is not: '"''" ''
refused 'a word after --version' "nothing is expected after --version, and this stands there: 'x'" --version x
refused 'a word after --help' "nothing is expected after --help, and this stands there: ''" --help ''
refused 'control characters are disarmed' '`titin --help` lists what is known here, and this is not: '"'?[2J??31m?'" \
    $'\033[2J\302\23331m\n'
run "$(printf 'x%.0s' {1..5000})"
check 'a long word is cut' test "${#err}" -lt 1100 -a "$code" = 2

# lost NAME WHY ARGUMENT...: exit code 6 and one sentence; stdout is what the caller has made of it.
lost() {
    same "$1" "$code $(< "$work/err")" "6 titin: error: the standard output takes no more: $2"
}
if [ -c /dev/full ]; then
    for command in --help --version; do
        "$titin" $command > /dev/full 2> "$work/err"
        code=$?
        lost "a full disk is an error of $command" 'No space left on device'
    done
else
    skip 'a full disk is an error of --help' 'there is no /dev/full'
    skip 'a full disk is an error of --version' 'there is no /dev/full'
fi
for command in --help --version; do
    "$titin" $command >&- 2> "$work/err"
    code=$?
    lost "a closed output is an error of $command" 'Bad file descriptor'
done

# What has failed already keeps its own exit code and sentence.
"$titin" --version x >&- 2> "$work/err"
same 'the first error counts' "$? $(wc -l < "$work/err")" '2 1'

# One thread for each core of a machine that is larger than OpenBLAS.
OMP_NUM_THREADS=2000 "$titin" --version > "$work/out" 2> "$work/err"
same 'too many threads: exit code 6' "$?" 6
check 'and a sentence that says what to set' grep -q 'set OMP_NUM_THREADS to' "$work/err"
finish
