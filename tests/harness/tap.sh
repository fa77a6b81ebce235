# TAP for test scripts. A script begins with
#
#     . tests/harness/tap.sh          (after a cd to the top of the tree)
#     plan 3
#
# then says ok, not_ok, check or skip three times, and ends with `finish`. The plan is a number written by hand: a
# script that ends early owes the rest. $TMPDIR is the script's own and is emptied behind it by the runner.
set -u
export LC_ALL=C
TMPDIR=${TMPDIR:-/tmp}
work=$(mktemp -d "$TMPDIR/titin-script-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# A script means its own build, whatever the make that has called it was asked for.
CC=${CC:-gcc}
BUILD=${BUILD:-build}
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES REAL ARCH SAN FUZZING WERROR CFLAGS LDFLAGS PREFIX DESTDIR T B F

tap_number=0
tap_failed=0

plan() { echo "1..$1"; }

ok() {
    tap_number=$((tap_number + 1))
    echo "ok $tap_number - $1"
}

# not_ok NAME [WHY]: WHY may have many lines.
not_ok() {
    tap_number=$((tap_number + 1))
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_number - $1"
    [ -z "${2:-}" ] || printf '%s\n' "$2" | sed 's/^/# /'
}

skip() {
    tap_number=$((tap_number + 1))
    echo "ok $tap_number - $1 # SKIP $2"
}

# check NAME COMMAND...: ok when it succeeds; else its output is the reason.
check() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then ok "$name"; else not_ok "$name" "$* (exit code $?):
$output"; fi
}

# same NAME GOT WANTED: two texts.
same() {
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "$(diff <(printf '%s\n' "$2") <(printf '%s\n' "$3") |
        sed 's/^</got      /; s/^>/expected /')"; fi
}

# empty NAME TEXT: what should not be there, one a line.
empty() {
    if [ -z "$2" ]; then ok "$1"; else not_ok "$1" "$2"; fi
}

finish() {
    [ "$tap_failed" -eq 0 ]
    exit
}
