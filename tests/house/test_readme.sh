#!/bin/bash
# README, `make help`, CI and the Makefile speak of the same commands.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 9

check 'there is a README' test -s README.md
# The target of each "make X", with or without variables between the two.
targets_of() { grep -oE '\bmake( [A-Z_0-9]+=[^ ]*)* [a-z][a-z-]*' | sed 's/.* //' | sort -u; }
phony=$(make -s print-PHONY | tr ' ' '\n' | grep -v FORCE | sort -u)

# Only what stands in a code block or between backquotes is a command.
in_code=$(awk '/^```/ { code = !code; next } code { print }' README.md; grep -o '`[^`]*`' README.md)
unknown=$(comm -23 <(targets_of <<< "$in_code") <(echo "$phony"))
empty 'every `make X` of the README is a target' "$unknown"
check 'the README says how to test' grep -q '^ *make test *$' README.md

# test-programs and the like are made by other targets and are nobody's command.
helped=$(make -s help | targets_of)
same 'make help lists every target' \
    "$(comm -13 <(echo "$helped") <(grep -v -e '-programs$' -e '^all$' <<< "$phony"))" ''
empty 'and none that is none' "$(comm -23 <(echo "$helped") <(echo "$phony"))"

# A message that names an option which no command has cannot be followed. (report.c has CSS, doctor names options of Slurm, Docker and mpirun.)
options=$("$BUILD/titin" help --bash | grep -oE -e '--[a-z][a-z-]+' | sort -u)
named=$(find core data autograd train -name '*.c' ! -name report.c ! -name 'doctor*.c' ! -name machine.c -exec sed -E 's:/\*([^*]|\*[^/])*\*/::g' {} + |
    grep -oE '"([^"\\]|\\.)*"' | grep -oE '(^|[^a-z-])--[a-z][a-z-]+' | grep -oE -e '--[a-z-]+' | sort -u)
check 'messages name options' grep -q -x -e '--resume' <<< "$named"
empty 'every --option in a message is one that a command has' "$(comm -13 <(echo "$options") <(echo "$named"))"

# Kinds of attention stand there as they were measured.
empty 'the README has the table of make compare' "$(KINDS='' configs/compare.sh | grep '^|' | grep -vxFf README.md)"

# CI runs the README's command as it stands there.
check 'CI runs the README'\''s test command' grep -q '^stage test counted make test$' .ci/run
finish
