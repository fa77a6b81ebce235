#!/bin/bash
# tests/fuzz/run prints a row for each target, in numbers of its log, and owns up to targets that end badly. With programs of a few
# lines in the place of targets.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 7

mkdir -p "$work/tests/fuzz" "$work/programs"
cp tests/fuzz/run "$work/tests/fuzz/"
# shellcheck disable=SC2016
printf '#!/bin/bash\nmkdir -p "$2/good" && echo "$1" > "$2/good/seed"\n' > "$work/tests/fuzz/seeds"
target() { # NAME EXIT
    touch "$work/tests/fuzz/fuzz_$1.c"
    cat > "$work/programs/$1" << X
#!/bin/bash
echo "\$@" > "$work/$1.arguments"
echo '#2	INITED cov: 1 ft: 2 corp: 1/1b exec/s: 0 rss: 30Mb'
echo '#12345678	DONE   cov: 1234 ft: 56789 corp: 74/1172b lim: 62 exec/s: 2145 rss: 190Mb'
echo 'stat::number_of_executed_units: 12345678'
exit $2
X
}
target good 0
target bad 77
chmod +x "$work/programs/"* "$work/tests/fuzz/seeds"
output=$("$work/tests/fuzz/run" 10 "$work/programs" my-titin 2>&1)
code=$?
same 'a target that failed is a failure' "$code" 1
same 'the last line counts' "$(tail -n 1 <<< "$output")" '1 passed, 1 failed'
same 'a row has inputs, inputs a second, edges and features' "$(grep '^good ' <<< "$output" | tr -s ' ')" \
    'good 12,345,678 1,234,567 1,234 56,789 ok'
check 'and a bad one says so' grep -q '^bad .* FAILED: exit code 77$' <<< "$output"
check 'with what its log says' grep -q '^stat::number_of_executed_units' <<< "$output"
same 'the program makes inputs to begin with' "$(cat "$work/build/fuzz-corpus/seeds/good/seed")" my-titin
check 'which the target is given' grep -q 'build/fuzz-corpus/good build/fuzz-corpus/seeds/good$' "$work/good.arguments"
finish
