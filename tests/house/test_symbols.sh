#!/bin/bash
# What the library calls, holds and exports. It is linked into other people's programs: it never ends the process, never
# prints, never changes the process's settings (but in ttn_reexec and ttn_start, which are there for it), and has no state of its own that two
# users would share, but one: whether this process has started OpenBLAS, of which there is one a process.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 11

f32=$BUILD
f64=$(make -s print-BUILD CC="$CC" REAL=f64)

# What an object may name: a list of what is allowed, since nobody can list all that ends, prints or changes a process.
# In every object: memory, texts, arithmetic, assertions (our mistakes), and the runtimes of OpenMP and of the compiler.
everywhere='mem(cpy|move|set|cmp|chr)|bcmp|str(len|n?cmp|r?chr|str|spn|cspn|dup|to(d|f|ll|ull))|__isoc23_strto(ll|ull)|v?snprintf|qsort|bsearch'
everywhere+='|malloc|calloc|realloc|aligned_alloc|free|__assert_fail|__errno_location|strerror|_GLOBAL_OFFSET_TABLE_'
everywhere+='|(sin|cos|sincos|exp|log|pow|sqrt|fabs|floor|ceil|round|rint|nearbyint|ldexp|frexp|fma|fmin|fmax)[fl]?|l?lrint[fl]?'
everywhere+='|omp_get_(thread_num|num_threads|max_threads)|omp_in_parallel|GOMP_[a-z_]+|__kmpc_[a-z0-9_]+'
everywhere+='|__[a-z]+(ti|tf|sf|df)[0-9a-z]*|cpu_model|__cpu_model|__cpu_indicator_init'

# In one object: "OBJECT SYMBOLS", with the reason behind them.
allowed='
atomic.o  flock|fcntl|l?stat|fstat|fchmod|fchown|fpathconf|getpid|realpath|readlink|symlink|ftruncate|posix_fallocate|opendir|readdir|closedir  # files and folders
blas.o    cblas_[sd]gemm|openblas_[a-z_]+|getenv  # the one door to BLAS
blas.o    strcasecmp  # names of kernels, as OpenBLAS compares them
blas.o    omp_set_num_threads  # of the calling task, put back after the call: OpenBLAS on OpenMP has no other way to be told
fasta_sniff.o  memmem  # what a file that is no FASTA may be
path.o    getenv|getpw(nam|uid)_r|getuid  # home folders and variables in a path
files.o   l?stat|scandir|glob|globfree|strn?casecmp|strpbrk  # what a folder and a pattern stand for
reexec.o  getenv|setenv|unsetenv|getpid|prctl|execv|__isoc(99|23)_sscanf  # ttn_reexec, which a program calls as its first line
start.o   getenv|omp_get_thread_limit  # OMP_NUM_THREADS, and what else OpenMP was told: how many threads
checkpoint_info.o  l?stat  # what lies in a folder
chart.o   cairo_[a-z_]+  # drawing
clock.o   clock_gettime|gmtime_r|strftime  # time
config.o  strverscmp  # variables by their keys, elements of lists by number
config_source.o  open|read|close  # configuration files
config_yaml.o    yaml_parser_[a-z_]+|yaml_event_delete
config_tell.o    json_[a-z_]+
cpu.o     getauxval   # what the processor can do
dataset.o  l?stat  # a link that leads nowhere, a pipe
disk.o    open|close|write|pread|fsync|mkdir|rmdir|unlink|rename|renameat2|lstat|chmod|statvfs|opendir|readdir|closedir  # files and folders
device_cpu.o sysconf  # how much memory and how many processors there are
graph.o   fnmatch     # freezing by pattern
hdf5.o        H5[A-Z][A-Za-z0-9_]*|H5open|H5get_libversion  # files in HDF5
hdf5_disk.o   H5[A-Z][A-Za-z0-9_]*|H5open|fstat|pwrite|ftruncate  # its writes, so that none fails in its hands
hdf5_read.o   H5[A-Z][A-Za-z0-9_]*|H5open|H5dont_atexit|fstat|uncompress  # as it lies in the file
hdf5_write.o  H5[A-Z][A-Za-z0-9_]*|H5open
facts_json.o  json_[a-z_]+  # trees of JSON
info.o    open|read|close|stat  # the first bytes of a file
json.o    json_[a-z_]+|jsonp_[a-z_]+  # trees of JSON
loader.o  pthread_(create|join|sigmask|mutex_[a-z]+|cond_[a-z]+)|sigfillset  # a thread that makes batches
loaded.o  stat  # what a path leads to
lock.o    flock|fstat|l?stat|ftruncate|pwrite|getpid|gethostname  # the lock of a folder, and who holds it
doctor.o  open|close|write|fsync|unlink|getpid|statfs|statvfs|getenv|omp_get_proc_bind|omp_get_num_places  # what a run would find
machine.o  open|read|close|sched_getaffinity|sysconf|getrlimit|__isoc(99|23)_sscanf  # what a process may use
journal.o  gethostname  # in the name of a file of events
manifest.o  fstat|json_[a-z_]+  # trees of JSON, lengths of files
memory.o  mmap|munmap|mprotect|madvise|sysconf  # the block that grows
metrics_log.o  lstat|fstat|ftruncate  # a part of a line is taken back
store_facts.o  memmem  # a word among the first bytes
table.o   strtof  # the fewest digits of a float
scale.o   log10  # how many digits a tick has
nystrom_inverse.o  dpotrf_|dpotrs_  # Cholesky, from the LAPACK that OpenBLAS brings
safetensors.o  stat  # what a path leads to
safetensors.o  json_[a-z_]+  # the index
safetensors_info.o  stat  # what a folder holds
safetensors_header.o  strcasecmp  # a type in small letters
safetensors_write.o   lstat|json_[a-z_]+  # the index, and what stands in its way
nonfinite.o  json_[a-z_]+|lstat|opendir|readdir|closedir  # trees of JSON, and what an earlier try left
replay.o  stat  # is there a checkpoint
run_json.o  gethostname|getpid|access|json_[a-z_]+  # who ran it, and trees of JSON
training_create.o  l?stat  # what is in a folder
trained_on.o  stat  # a pipe where a file should be
saver.o   pthread_(create|join|sigmask|mutex_[a-z]+|cond_[a-z]+)|sigfillset  # a thread that writes
reader.o  open|close|fstat|pread  # files that are read by position
fasta.o   regcomp|regfree|regerror  # ids by expression
fasta_header.o  regexec  # the same
event_file.o  ftruncate|getpid  # a part of a record is taken back
fasta.o   regcomp|regexec|regfree|regerror  # ids by expression
store.o     pthread_mutex_(lock|unlock)  # several threads read from one file
store_open.o  pthread_mutex_[a-z]+
source_file.o  read|stat|lstat|fstat|readlink|realpath|poll  # files, pipes, standard input
source_gzip.o  crc32|inflate|inflateInit2_|inflateReset|inflateEnd  # zlib
run_folder.o  l?stat|readlink|opendir|readdir|closedir  # what lies in a folder, and which checkpoint is the best
run_state.o  json_[a-z_]+  # trees of JSON
'

# not_allowed: of lines "OBJECT SYMBOL" those that no list allows.
not_allowed() {
    local patterns=$work/allowed
    echo "^[^ ]+ ($everywhere)\$" > "$patterns"
    sed 's/ *#.*//' <<< "$allowed" | awk 'NF == 2 { gsub(/\./, "\\.", $1); print "^" $1 " (" $2 ")$" }' >> "$patterns"
    grep -v -E -f "$patterns" || true
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
        section != "" && section !~ /^\.data\.rel\.ro/ && $NF !~ /^\./ { print object, $NF }' | grep -v -x 'blas.o started_for'
}

# "status.o .data", one line a section that is not empty: also what has no name.
writable_sections() {
    objdump -h "$1/libtitin.a" | awk '
        /file format/ { object = $1; sub(/:$/, "", object) }
        object == "blas.o" && $2 == ".bss" && $3 ~ /^0*4$/ { next } # started_for
        $2 ~ /^(\.data|\.bss|\.tdata|\.tbss|\.ldata|\.lbss)/ && $2 !~ /^\.data\.rel\.ro/ && $3 !~ /^0+$/ { print object, $2 }'
}

for build in "$f32" "$f64"; do
    objects=$(ar t "$build/libtitin.a" | wc -l) # less, too, when two folders have sources of one name
    sources=$(make -s print-SOURCES | wc -w)
    same "$build: every source is in the library" "$objects" "$sources"
    empty "$build: nothing is called but what is listed: nothing ends, prints, or changes the process" \
        "$(undefined "$build" | grep -v ' ttn_' | not_allowed)"
    empty "$build: there is no global that can be written to" "$(writable "$build")"
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
