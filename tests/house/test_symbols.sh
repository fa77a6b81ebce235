#!/bin/bash
# What the library calls, holds and exports. It is linked into other people's programs: it never ends the process, never
# prints, never changes the process's settings, and has no state of its own that two users would share.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 11

f32=$BUILD
f64=$(make -s print-BUILD CC="$CC" REAL=f64)

# Functions, and data, that no object may name.
forbidden='exit|_exit|_Exit|quick_exit|abort|atexit|on_exit|at_quick_exit'
forbidden+='|printf|vprintf|puts|putchar|putchar_unlocked|putc|perror|stdout|stderr|stdin'
forbidden+='|__printf_chk|__vprintf_chk|warn|warnx|vwarn|vwarnx|err|errx|verr|verrx|error|error_at_line|psignal|syslog'
forbidden+='|rand|srand|rand_r|random|srandom|initstate|setstate|drand48|lrand48|mrand48|srand48|seed48'
forbidden+='|signal|sigaction|sigprocmask|sigsetmask|raise|kill|alarm|setitimer'
forbidden+='|system|popen|fork|vfork|execv|execve|execvp|execl|execlp|posix_spawn'
forbidden+='|setenv|putenv|unsetenv|clearenv|chdir|fchdir|umask|setlocale|setrlimit'
forbidden+='|strtok|localtime|gmtime|ctime|asctime|gets|tmpnam|tempnam|mktemp'
forbidden+='|omp_set_num_threads|omp_set_dynamic|omp_set_schedule|omp_set_max_active_levels'

# Allowed all the same: "OBJECT SYMBOL" on one line, with the reason behind it.
allowed='
blas.o omp_set_num_threads   # of the calling task, put back after the call: OpenBLAS on OpenMP has no other way to be told
'

# drop_allowed: standard input without the lines that begin with an allowed OBJECT SYMBOL.
drop_allowed() {
    grep -v -F -x -f <(sed 's/ *#.*//' <<< "$allowed" | grep .) || true
}

# "status.o exit", one line a call.
undefined() {
    nm -A -u "$1/libtitin.a" | sed 's/.*:\([^:]*\.o\): *U */\1 /' | sed 's/@.*//'
}

# "status.o name", one line an object that can be written to. Constant tables of pointers (.data.rel.ro) are made
# read-only when the program has been loaded. *COM* is the lock of a named or unnamed critical section.
writable() {
    objdump -t "$1/libtitin.a" | awk '
        /file format/ { object = $1; sub(/:$/, "", object) }
        { section = ""; for (i = 2; i < NF; i++) if ($i ~ /^(\.data|\.bss|\.tdata|\.tbss|\.ldata|\.lbss|\*COM\*)/) section = $i }
        section != "" && section !~ /^\.data\.rel\.ro/ && $NF !~ /^\./ { print object, $NF }'
}

# "status.o .data", one line a section that is not empty: also what has no name.
writable_sections() {
    objdump -h "$1/libtitin.a" | awk '
        /file format/ { object = $1; sub(/:$/, "", object) }
        $2 ~ /^(\.data|\.bss|\.tdata|\.tbss|\.ldata|\.lbss)/ && $2 !~ /^\.data\.rel\.ro/ && $3 !~ /^0+$/ { print object, $2 }'
}

for build in "$f32" "$f64"; do
    objects=$(ar t "$build/libtitin.a" | wc -l) # less, too, when two folders have sources of one name
    sources=$(make -s print-SOURCES | wc -w)
    same "$build: every source is in the library" "$objects" "$sources"
    empty "$build: nothing is called that ends, prints, or changes the process" \
        "$(undefined "$build" | grep -E "^[^ ]+ ($forbidden)\$" | drop_allowed)"
    empty "$build: there is no global that can be written to" "$(writable "$build" | drop_allowed)"
    # Of the objects with no named one, lest one fault be told twice.
    empty "$build: and no nameless one" \
        "$(writable_sections "$build" | grep -v -F -f <(writable "$build" | sed 's/ .*/ /'))"
done

# ---- what libtitin.so exports is what the installed header declares ----

exported=$(nm -D --defined-only "$BUILD/libtitin.so" | awk '{ print $NF }' | sort)
# -aux-info is gcc's alone: one line a function, "extern" where it is not inline. build-essential always brings gcc.
cp "$BUILD/titin.h" "$work/titin.c"
gcc -std=c11 -fsyntax-only -aux-info "$work/declared" "$work/titin.c"
declared=$(grep "^/\* $work/titin.c:.* extern " "$work/declared" |
    sed 's/.*[ *]\(ttn_[A-Za-z0-9_]*\) (.*/\1/' | sort -u)
check 'the header declares functions' test "$(wc -l <<< "$declared")" -gt 10
empty 'every exported symbol begins with ttn_' "$(grep -v '^ttn_' <<< "$exported")"
same 'exported is what the installed header declares' "$exported" "$declared"
finish
