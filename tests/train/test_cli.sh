#!/bin/bash
# The program itself: what it prints, what it refuses, and that neither is lost without a word.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 92

unset NO_COLOR COLUMNS TERM
titin=$BUILD/titin
# run ARGUMENT...: $code, $out and $err of the program.
run() {
    "$titin" "$@" > "$work/out" 2> "$work/err"
    code=$?
    out=$(< "$work/out")
    err=$(< "$work/err")
}

# ---- help ----

run --help
same 'help succeeds, with nothing on stderr' "$code $err" '0 '
same 'and is the screen that was looked at' "$out" "$(< tests/train/screens/help.txt)"
help=$out
for words in -h help '-h --version' '--version --help'; do
    # shellcheck disable=SC2086
    run $words
    same "also as: titin $words" "$code $out" "0 $help"
done

# "doctor", "config show": two blanks before, two behind.
mapfile -t commands < <(sed '/^exit codes/,$d' <<< "$help" | sed -n 's/^  \([a-z ]*[a-z]\)  .*/\1/p')
check 'it lists commands' test "${#commands[@]}" -ge 4

wide=
unlike=
for command in "${commands[@]}"; do
    for width in 80 60; do
        # shellcheck disable=SC2086
        text=$(COLUMNS=$width "$titin" $command --help) || unlike+="$command: exit code $?"$'\n'
        wide+=$(awk -v w=$width -v c="$command" 'length($0) > w { print c ": " $0 }' <<< "$text")
    done
    # shellcheck disable=SC2086
    text=$("$titin" $command --help)
    # Examples come before anything else than the usage.
    order=$(grep -n -E '^(usage: titin|examples:$|options:$|exit codes:$)' <<< "$text" | sed 's/^[0-9]*://; s/ titin.*//' | tr '\n' ' ')
    [ "$order" = 'usage: examples: options: exit codes: ' ] || unlike+="$command: $order"$'\n'
    [[ $text == "titin $command: "* ]] || unlike+="$command: begins with ${text%%$'\n'*}"$'\n'
    # shellcheck disable=SC2086
    [ "$("$titin" help $command)" = "$text" ] || unlike+="$command: help is not --help"$'\n'
    # shellcheck disable=SC2086
    [ "$("$titin" -h $command)" = "$text" ] || unlike+="$command: -h before it is not --help"$'\n'
done
empty 'no help text is wider than it was asked for' "$wide"
empty 'every help text: usage, examples, options, exit codes, whatever way it is asked for' "$unlike"
check 'an exit code of its own is told' grep -q '^   4  checkpoint' <<< "$("$titin" info --help)"
check 'one of others is not' test "$("$titin" info --help | grep -c '^  75 ')" = 0

about=$("$titin" info --help)
for words in '-h x' 'x -h' 'x y z --help' '--bogus -h' '--json=1 x --help'; do
    # shellcheck disable=SC2086
    run info $words
    same "-h is seen: titin info $words" "$code $out$err" "0 $about"
done
empty 'no colours where there is no terminal' "$(grep $'\033' <<< "$help$about")"

# ---- words of the command line ----

run info -- -h
same 'what stands behind -- is an argument' "$code $out$err" '2 titin: error: -h: there is no such file or folder'
run info "$work" --json
json=$out
run info --json "$work"
same 'options stand before or behind arguments' "$json" "$out"
check 'and JSON begins as JSON' grep -Eqz '^\{.  "path": ".*",.  "kind": "unknown",' <<< "$out"
run info --js "$work"
same 'an option may be cut short' "$json" "$out"

# refused NAME EXPECTED ARGUMENT...: exit code 2, one sentence, nothing on stdout.
refused() {
    local name=$1 expected=$2
    shift 2
    run "$@"
    same "$name" "$code <$out> $err" "2 <> titin: error: $expected"
}
# meant WORDS COMMAND: what is suggested for them.
meant() {
    # shellcheck disable=SC2086
    run $1
    same "$1 is taken for $2" "$code $(grep -o 'did you mean `[^`]*`' <<< "$err")" "2 did you mean \`$2\`"
}
refused 'nothing to do' 'what is to be done? `titin --help` lists what there is'
refused 'an unknown word' "there is no command 'banana'; \`titin --help\` lists what there is" banana
refused 'also with --help' "there is no command 'banana'; \`titin --help\` lists what there is" banana --help
refused 'an empty word' "there is no command ''; \`titin --help\` lists what there is" ''
refused 'a word after --version' "nothing is expected after --version, and this stands there: 'x'" --version x
refused 'an argument too many' "titin info takes at most 1 argument, and this is one more: 'b'" info a b
refused 'an argument where none is taken' "titin version takes no arguments, and this is one: 'x'" version x
refused 'an argument that is missing' \
    'titin info: FILE is missing (a file, or the folder of a checkpoint or run); `titin info --help` tells more' info
refused 'a value for an option without one' 'titin info: --json takes no value' info --json=1 x
refused 'an unknown letter' 'titin info has no option -x; `titin info --help` lists those it has' info -x a
refused 'an unknown option' 'titin info has no option --frobnicate; `titin info --help` lists those it has' \
    info --frobnicate=3 a
refused 'control characters are disarmed' \
    "there is no command '?[2J??31m?'; \`titin --help\` lists what there is" $'\033[2J\302\23331m\n'
meant docter 'titin doctor'
meant Info 'titin info'
meant ver 'titin version'
meant --hlep 'titin --help'
meant 'info --jsno x' --json
meant 'info -verify x' --verify
run "$(printf 'x%.0s' {1..5000})"
check 'a long word is cut' test "${#err}" -lt 1100 -a "$code" = 2

# ---- the configuration ----

printf 'exact:\n  scale: 0.5\nnotes:\n  author: me\n' > "$work/a.yaml"
printf 'exat:\n  scale: 1\nexact: {scale: abc}\n' > "$work/bad.yaml"
cd "$work" || exit 1
titin=$OLDPWD/$titin
run config show
check 'config show: every key, with its default' grep -q '^  scale: 0  *# default$' <<< "$out"
run config show a.yaml
check 'a file is a source' grep -q '^  scale: 0.5  *# a.yaml:2$' <<< "$out"
run config show a.yaml exact.scale=2e0
check 'the command line wins over it' grep -q '^  scale: 2  *# command line$' <<< "$out"
TITIN__EXACT__SCALE=3 "$titin" config show a.yaml > out
check 'as does the environment' grep -q '^  scale: 3  *# environment TITIN__EXACT__SCALE$' out
run config show a.yaml exact.scale=2e0
"$titin" config show a.yaml exact.scale=2e0 > again.yaml
run config show again.yaml
same 'what is shown is a configuration, which is shown the same' "$out" "$(< again.yaml)"
run config show bad.yaml exact.scale=x y.z=1
same 'everything wrong is told at once, on stderr' "$code <$out> $(grep -c '^ *| *^~*$\|\^~' <<< "$err")" '2 <> 4'
check 'with its place' grep -q '^bad.yaml:1:1: .*exat' <<< "$err"
same 'and how much it is' "$(tail -n 1 <<< "$err")" \
    'titin: error: 4 things are wrong with the configuration: see above'
run config show nix.yaml
same 'a file that is not there' "$code $(head -n 1 <<< "$err")" '2 nix.yaml: there is no such file'
run config show --preset banana
same 'a preset that is not there' "$code $(grep -c "no preset 'banana'" <<< "$err")" '2 1'
run config show --preset
same 'an option whose value is missing' "$code $err" '2 titin: error: titin config show: --preset needs a value (NAME)'
run config explain exact.scale a.yaml
same 'config explain: a key, and its value' "$code $(grep -c '^exact.scale: number$\|^  value:    0.5  (a.yaml:2)$' <<< "$out")" '0 2'
run config explain exact.scal
same 'config explain: a key that is none' "$code $err" "2 titin: error: there is no key 'exact.scal'; did you mean exact.scale?"
run config diff a.yaml again.yaml
same 'config diff: what differs, and exit code 1' "$code $(head -n 1 <<< "$out")$err" \
    '1 exact.scale: 0.5 (a.yaml:2) -> 2 (command line)'
run config diff a.yaml a.yaml
same 'config diff: nothing' "$code $out$err" '0 '
run config diff a.yaml bad.yaml
same 'config diff: a file that is none' "$code <$out> $(tail -n 1 <<< "$err")" \
    '2 <> titin: error: 2 things are wrong with the configuration: see above'
run config schema
check 'config schema: a JSON Schema' grep -q '"$schema": "https://json-schema.org/draft/2020-12/schema"' <<< "$out"
run config
same 'config alone' "$code $err" '2 titin: error: titin config: what of it? `titin config --help` lists what there is'
run config --help
same 'lists its commands' "$code $(grep -c '^  config [a-z]* ' <<< "$out")" '0 4'
refused 'a command of config that is none' \
    "there is no command 'config shwo'; did you mean \`titin config show\`? \`titin config --help\` lists what there is" config shwo
meant show 'titin config show'
run info a.yaml
same 'info: a configuration, and what it sets' "$code $(sed -n '2p; $p' <<< "$out" | tr -s ' ' | tr '\n' ' ')" \
    '0 kind config  exact.scale 0.5 a.yaml:2 '
run info --json bad.yaml
same 'info: what is wrong with one' "$code $(grep -c '"what": ' <<< "$out")" '2 2'
cd "$OLDPWD" || exit 1

# ---- names that no shell has read, and settings that a command has no use for ----

mkdir "$work/home" "$work/dir"
printf '>a\nMKV\n' | tee "$work/dir/a.fa" "$work/dir/b.fa" "$work/a=b.fa" > "$work/home/c.fa"
cd "$work" || exit 1
records() { grep -c '"name": ".*fa"' <<< "$("$titin" data check --json "$@" 2>&1)"; }
same 'a ~ that is quoted' "$(HOME=$work/home records '~/c.fa')" 1
same 'a pattern that is quoted' "$(records 'dir/*.fa')" 2
same 'a name with a =' "$(records a=b.fa)" 1
HOME=$work/home "$titin" data pack a=b.fa --output='~/s.h5' > out 2> err
same 'a ~ behind --output=' "$? $(ls home)" '0 c.fa
s.h5'
run data check a=b.fa optim.lr=3 data.max_skipped=0.5 notes.mine=1
same 'settings that do nothing are told' "$code $(cut -d' ' -f1-2 <<< "$err")" '0 warning: optim.lr=3
warning: data.max_skipped=0.5'
refused 'an option with two values' "titin config show: --preset is given twice, as 'a' and as 'b': give it once" \
    config show --preset a --preset b
refused 'also a preset' 'preset is given twice, as quickstart and as b: give it once' \
    config show --preset quickstart preset=b
cd "$OLDPWD" || exit 1

# ---- version ----

run --version
same 'version succeeds, with nothing on stderr' "$code $err" '0 '
check 'and names the version and the BLAS' grep -Eqz '^titin [0-9]+\.[0-9]+.*kernel, self-check passed' <<< "$out"
check 'and how it was built' grep -Eqz 'flags +-O[0-9s] ' <<< "$out"
run version --json
# What the dynamic linker loads for it, but for what comes with the C library and the compiler,
# and CUDA, of which doctor tells. HDF5 comes in two libraries of one version.
linked=$(objdump -p "$titin" | sed -n 's/^ *NEEDED *\(.*\)\.so.*/\1/p' |
    grep -v -x -E 'libc|libm|libpthread|libgcc_s|ld-linux.*|libasan|libubsan|libstdc++|libcublas|libcudart' | sed 's/_hl$//' | sort -u)
same 'every library that is linked has its version told, and no other' \
    "$(sed -n 's/^ *"file": "\(lib[^"]*\)".*/\1/p' <<< "$out" | sort)" "$linked"

# ---- what is made of the table of commands ----

"$titin" help --man > "$work/titin.1"
if command -v man > /dev/null; then
    same 'the man page has no warnings' "$(LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -l "$work/titin.1" 2>&1 > /dev/null)" ''
else
    skip 'the man page has no warnings' 'there is no man'
fi
missing=
for command in "${commands[@]}"; do
    grep -q "^\.SS \"titin $command[ \"]" "$work/titin.1" || missing+="$command "
done
empty 'it tells of every command' "$missing"

"$titin" help --bash > "$work/completion"
# shellcheck disable=SC1091
. "$work/completion"
# completed WORD...: what is offered for the last one.
completed() {
    COMP_WORDS=(titin "$@")
    COMP_CWORD=$#
    _titin
    echo "${COMPREPLY[*]}"
}
same 'completion: a command' "$(completed doc)" doctor
same 'completion: an option' "$(completed info --v)" --verify
touch "$work/run.yaml"
same 'completion: a file' "$(completed info "$work/ru")" "$work/run.yaml"
same 'completion: a second word' "$(completed config s)" 'show schema'
same 'completion: a key' "$(completed config explain exact.s)" exact.scale
same 'completion: a command to be told of' "$(completed help vers)" version

# ---- where the output goes ----

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
# With 0, 1 and 2 closed the first file to be opened would be the standard output.
(cd "$work" && exec 0<&- 1>&- && exec "$OLDPWD/$titin" info run.yaml 2> err)
check 'no file is written to in place of a closed output' test ! -s "$work/run.yaml"

# A pipe that nobody reads: as `titin … | head` leaves it.
mkfifo "$work/pipe"
exec 4<> "$work/pipe" 5> "$work/pipe" 4<&-
"$titin" --help >&5 2> "$work/err"
same 'a reader that has gone ends it without a word' "$? $(< "$work/err")" "141 "
(trap '' PIPE && exec "$titin" --help >&5 2> "$work/err")
same 'also where the signal is ignored' "$? $(< "$work/err")" "141 "
exec 5>&-

# What has failed already keeps its own exit code and sentence.
"$titin" --version x >&- 2> "$work/err"
same 'the first error counts' "$? $(wc -l < "$work/err")" '2 1'

# One thread for each core of a machine that is larger than OpenBLAS.
OMP_NUM_THREADS=2000 "$titin" --version > "$work/out" 2> "$work/err"
same 'too many threads: exit code 6' "$?" 6
check 'and a sentence that says what to set' grep -q 'set OMP_NUM_THREADS to' "$work/err"
finish
