#!/bin/bash
# tests/gpu/run with a build that is only played: what it writes stays JSON when a program dies.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 2

mkdir -p "$work/tests/gpu"
cp tests/gpu/run "$work/tests/gpu/"
cat > "$work/Makefile" << 'X'
gpu-programs:
print-BUILD:
	@echo build
X
mkdir -p "$work/build/gpu"
actor() {
    { echo '#!/bin/bash'; cat; } > "$work/build/gpu/$1"
    chmod +x "$work/build/gpu/$1"
}
actor test_ops_cuda <<< 'echo "ok 1 - add"; echo "not ok 2 - scale"; exit 1'
actor measure <<< 'kill -SEGV $$'

"$work/tests/gpu/run" out.json > "$work/log" 2>&1
same 'a program that dies is an error' "$?" 1
same 'what failed is named, what is not there is null' \
    "$(grep -c -e '"scale"' -e '^"measure_f[36][24]": null,$' "$work/out.json")" 4
finish
