#!/bin/bash
# A build for another processor says so instead of dying with SIGILL.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 5

# The program as it is, but for a build that may use every instruction set there is: no processor has them all (FMA4
# went before AVX-512 came).
printf '#include "core/cpu.h"\nconst ttn_cpu_set ttn_cpu_built = ((ttn_cpu_set)1 << TTN_N_CPU) - 1;\n' > "$work/built.c"
read -r -a libs <<< "$(make -s print-LIBS)"
objects=("$BUILD"/obj/train/cli/*.o "$BUILD/obj/build.o")
check 'links' "$CC" -std=c11 -D_GNU_SOURCE -I. -fopenmp -o "$work/titin" "$work/built.c" "${objects[@]}" \
    "$BUILD/libtitin.a" "${libs[@]}"
output=$("$work/titin" --version 2>&1)
code=$?
same 'exit code 6' "$code" 6
check 'a sentence that says what is missing' grep -q 'needs .*, this one lacks .*make clean && make' <<< "$output"
same 'on one line' "$(wc -l <<< "$output")" 1

# What runs before the check has no instruction of a newer processor: those of AVX and later begin with v.
case "$(uname -m)" in
x86_64)
    newer=$(for source in $(make -s print-BASELINE); do
        objdump -d --no-show-raw-insn "$BUILD/obj/${source%.c}.o" > "$work/code" || echo "$source is not built"
        awk -v o="$source" '$2 ~ /^v/ && $2 !~ /^ver[rw]$/ { print o, $2 }' "$work/code"
    done 2>&1 | sort -u)
    empty 'nothing before the check is newer than x86-64' "$newer"
    ;;
*) skip 'nothing before the check is newer than x86-64' 'another family of processors' ;;
esac
finish
