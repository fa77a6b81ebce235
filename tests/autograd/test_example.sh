#!/bin/bash
# The example of the README is a program against the one public header, and its gradient is right.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 2

program=$work/two_layers
libs=$(make -s print-LIBS)
# shellcheck disable=SC2086 # a list of words
check 'it compiles as strict C11 against the public header alone' \
    "$CC" -std=c11 -pedantic -Wall -Wextra -Werror -I "$BUILD" tests/autograd/example_two_layers.c "$BUILD/libtitin.a" \
    $libs -fopenmp -o "$program"
check 'it runs, and its gradient is the difference of two losses' "$program"
finish
