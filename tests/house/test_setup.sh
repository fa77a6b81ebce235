#!/bin/bash
# .ci/setup with a dpkg and an apt-get that are only played: nothing is installed here.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 16

# A folder that is the whole PATH: what the script may find, and actors for the rest.
bin=$work/bin
mkdir "$bin"
for tool in bash dirname sed tr cat mktemp rm env tail grep; do ln -s "$(command -v $tool)" "$bin/$tool"; done
actor() {
    { echo '#!/bin/bash'; cat; } > "$bin/$1"
    chmod +x "$bin/$1"
}
actor id <<< 'echo "${PLAYED_ID:-0}"'
actor apt-get << X
echo "\$*" >> "$work/called"
[ -z "\${OFFLINE:-}" ] || { echo 'Could not resolve host'; exit 100; }
X
actor dpkg-query <<< 'echo "$INSTALLED" | tr " " "\n" | sed "s/.*/installed &, /"'

# Not that of ccache, which looks for the compiler in PATH.
compiler=$(type -ap "$CC" | grep -v /ccache/ | head -n 1)
mapfile -t build < <(awk '$1 !~ /^#/ && $2 == "build" { print $1 }' .ci/packages)
# setup [ENVIRONMENT...] -- GROUP...
setup() {
    local settings=()
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    shift
    rm -f "$work/called"
    env PATH="$bin" CC="$compiler" "${settings[@]}" .ci/setup "$@" 2>&1
}

output=$(setup INSTALLED="${build[*]}" -- build)
same 'silent when everything is there' "$? $output" '0 '
check 'and apt-get is not asked' test ! -e "$work/called"

output=$(setup INSTALLED="${build[*]:1}" -- build)
same 'one line says what is installed' "$? $output" "0 setup: installing ${build[0]}"
same 'after an update' "$(cat "$work/called")" "-q -y update
-q -y install --no-install-recommends ${build[0]}"

output=$(setup INSTALLED= OFFLINE=1 -- build)
same 'no network is a sentence' "$? $(tail -n 1 <<< "$output")" \
    "1 setup: ${build[*]} could not be installed (apt-get says why above; apt-get update failed too: is there a network?)"

output=$(setup INSTALLED="${build[*]:1}" PLAYED_ID=1000 -- build)
same 'without sudo it says what is missing' "$? $(head -n 1 <<< "$output")" \
    "1 setup: missing: ${build[0]}; you are not root, and there is no sudo"
check 'and what root has to do' \
    grep -q -x "    apt-get update && apt-get install --no-install-recommends ${build[0]}" <<< "$output"
check 'and how to go without' grep -q '^    make SETUP=none CFLAGS=' <<< "$output"
output=$(setup INSTALLED="${build[*]}" PLAYED_ID=1000 -- build test)
check 'and what needs no more' grep -q 'titin itself is built by  make$' <<< "$output"
output=$(setup INSTALLED= PLAYED_ID=1000 -- none)
same 'none is none' "$? $output" '0 '
actor sudo << 'X'
echo "sudo $*" >> "$(dirname "$0")/../sudo"
"$@"
X
output=$(setup INSTALLED="${build[*]:1}" PLAYED_ID=1000 -- build)
same 'with sudo it uses it' "$? $(grep -c '^sudo env ' "$work/sudo")" '0 2'
output=$(setup INSTALLED="${build[*]:1}" PLAYED_ID=1000 OFFLINE=1 -- build)
check 'and what root has to do where sudo is refused' \
    grep -q -x "    apt-get update && apt-get install --no-install-recommends ${build[0]}" <<< "$output"

output=$(setup INSTALLED="${build[*]:1} x" -- build test check)
check 'several groups at once' grep -q 'libcmocka-dev.*clang' <<< "$output"
output=$(setup INSTALLED= -- nonsense)
same 'a group that is none is an error' "$? $output" "1 setup: no package is in the groups 'nonsense' of .ci/packages"

rm "$bin/dpkg-query"
output=$(setup -- build)
same 'not Debian, but the headers are there: a warning' "$? $output" \
    "0 setup: this is not Debian; titin needs what Debian calls: ${build[*]}"
actor false-cc <<< 'exit 1'
output=$(setup CC=false-cc -- build)
same 'not Debian, and they are not: an error' "$? $(tail -n 1 <<< "$output")" \
    "1 setup: and 'false-cc' does not find cblas.h, xxhash.h, jansson.h, yaml.h, zlib.h and cairo/cairo.h; install them and try again"
finish
