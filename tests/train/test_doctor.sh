#!/bin/bash
# titin doctor on this machine as it is, and made worse in each way that can be done from outside.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 32

unset NO_COLOR COLUMNS TERM OMP_NUM_THREADS OPENBLAS_CORETYPE OMPI_COMM_WORLD_SIZE PMI_SIZE SLURM_JOB_ID
titin=$PWD/$BUILD/titin

# doctor [SETTING...] [-- ARGUMENT...]: $code, $out and $err; all of its lines fit 80 columns ($wide).
wide=
doctor() {
    local settings=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    shift
    env "${settings[@]}" $before "$titin" doctor "$@" > "$work/out" 2> "$work/err"
    code=$?
    out=$(< "$work/out")
    err=$(< "$work/err")
    wide+=$(awk 'length($0) > 80' "$work/out" | grep -v '^ *"')
}
before=
# says NAME PATTERN: in the text as one line, since it is wrapped.
says() {
    if tr -s '\n ' ' ' <<< "$out" | grep -Eq "$2"; then ok "$1"; else not_ok "$1" "no '$2' in:
$out
$err"; fi
}

# ---- as it is ----

cd "$work" || exit 1
doctor
same 'it succeeds, with nothing on stderr' "$code $err" '0 '
same 'it tells of these, in this order' "$(sed '/^$/,$d' <<< "$out" | cut -c 1-12 | sed 's/ *$//; /^$/d' | tr '\n' ' ')" \
    'titin processor cores threads BLAS memory huge pages disk libraries CUDA '
says 'the BLAS and its check' 'BLAS OpenBLAS [0-9.]+, [a-z]+ flavour, [A-Za-z]+ kernel.*self-check passed; row period [0-9]+ \(f32\), [0-9]+ \(f64\)'
says 'how fast it is' 'sgemm [0-9]+ GF/s with 1 thread'
says 'how many cores' "cores $(nproc) of $(nproc --all) may be used"
says 'how much memory' 'memory [0-9.]+ GiB can be had of [0-9.]+ GiB'
says 'the disk' 'disk \.: [0-9.]+ [A-Z]iB free( on [a-z0-9]+)?, [0-9.]+ (us|ms|s) to bring'
empty 'nothing stays behind where it has written' "$(find . -mindepth 1 ! -name out ! -name err)"

doctor -- --json
same 'JSON succeeds, with nothing on stderr' "$code $err" '0 '
keys=$(grep -o '^ *"[^"]*":' <<< "$out" | sed '/"warnings":/,$d' | sed 's/^  "/. "/; s/[" :]//g' | awk '!seen[$0]++' | tr '\n' ' ')
same 'and its keys are the ones that programs know' "$keys" "$(tr '\n' ' ' < "$OLDPWD/tests/train/screens/doctor_keys.txt")"
check 'of which the last are warnings' grep -Eqz '"warnings": \[(.    \{.      "id": "[a-z_]+",.      "what": "[^"]+",.      "do": "[^"]+".    \},?)*(.  )?\].\}' <<< "$out"

# ---- made worse ----

if grep -q avx2 /proc/cpuinfo; then
    doctor OPENBLAS_CORETYPE=Prescott
    same 'a slow kernel is no failure' "$code" 0
    says 'but told' 'Prescott kernel \(OPENBLAS_CORETYPE\)'
    says 'and a warning, with what to do' "OPENBLAS_CORETYPE=Prescott gave the kernel 'Prescott', several times slower.* -> unset OPENBLAS_CORETYPE"
else
    for name in 'a slow kernel is no failure' 'but told' 'and a warning, with what to do'; do
        skip "$name" 'this processor has no AVX2'
    done
fi

doctor OPENBLAS_CORETYPE=banana
says 'a kernel that OpenBLAS does not know is told' "OPENBLAS_CORETYPE=banana is not a kernel OpenBLAS took; it runs '[A-Za-z]+'"

if [ "$(nproc --all)" -gt 1 ]; then
    core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
    before="taskset -c $core"
    doctor
    says 'one core of several is told' "cores 1 of $(nproc --all) may be used.*warning: only 1 of the $(nproc --all) cores"
    says 'with what to do' 'taskset'
    doctor OMPI_COMM_WORLD_SIZE=2
    says 'under mpirun it is mpirun that has bound it' 'mpirun --bind-to none'
    before=
else
    for name in 'one core of several is told' 'with what to do' 'under mpirun it is mpirun that has bound it'; do
        skip "$name" 'this machine has one core'
    done
fi

doctor OMP_NUM_THREADS=64
says 'too many threads are told' 'threads 64 \(OMP_NUM_THREADS=64\)'
if [ "$(nproc)" -lt 64 ]; then
    says 'with what to do' "64 threads on $(nproc) cores? would wait.* -> set OMP_NUM_THREADS=$(nproc), or unset it"
else
    skip 'with what to do' 'this machine has 64 cores'
fi

# flavour NAME: the folder of that OpenBLAS, or nothing.
flavour() { find /usr/lib -path "*/openblas-$1/libopenblas.so.0" -printf '%h\n' 2> /dev/null | head -n 1; }
folder=$(flavour serial)
if [ -n "$folder" ]; then
    doctor LD_LIBRARY_PATH="$folder" OMP_NUM_THREADS=2
    same 'the serial flavour is a failure' "$code" 6
    says 'the rest is told all the same' 'serial flavour.*cannot be used, see below.*memory .*disk '
    check 'with what to install' grep -q '^titin: error: .*serial flavour.*install libopenblas0-pthread' <<< "$err"
    doctor LD_LIBRARY_PATH="$folder" OMP_NUM_THREADS=2 -- --json
    same 'also as JSON' "$code $(grep -c '"usable": false,' <<< "$out") $(grep -c '"error": "the OpenBLAS that was loaded' <<< "$out")" '6 1 1'
else
    for name in 'the serial flavour is a failure' 'the rest is told all the same' 'with what to install' 'also as JSON'; do
        skip "$name" 'libopenblas0-serial is not installed'
    done
fi
folder=$(flavour openmp)
if [ -n "$folder" ]; then
    doctor LD_LIBRARY_PATH="$folder"
    says 'the OpenMP flavour is told' 'openmp flavour, [A-Za-z]+ kernel.*self-check passed'
else
    skip 'the OpenMP flavour is told' 'libopenblas0-openmp is not installed'
fi

doctor -- /proc/self
same 'a folder that takes no files is no failure' "$code" 0
says 'but told' 'disk /proc/self: not writable .*warning: nothing can be written to /proc/self'
doctor -- nowhere
says 'nor is one that is not there' 'disk nowhere: not writable \(No such file or directory\)'

# ---- in a control group ----

# Files of a group of either version: FOLDER "NAME VALUE"...
group=
make_group() {
    local v1=/sys/fs/cgroup v2
    v2=$(awk '{ for (i = 7; i <= NF; i++) if ($i == "-" && $(i + 1) == "cgroup2") print $5 }' /proc/self/mountinfo | head -n 1)
    if mkdir "$v1/cpu/titin-$$" "$v1/memory/titin-$$" 2> /dev/null; then
        group="$v1/cpu/titin-$$ $v1/memory/titin-$$"
        echo 100000 > "$v1/cpu/titin-$$/cpu.cfs_period_us" &&
            echo 100000 > "$v1/cpu/titin-$$/cpu.cfs_quota_us" &&
            echo $((400 << 20)) > "$v1/memory/titin-$$/memory.limit_in_bytes"
    elif [ -n "$v2" ] && mkdir "$v2/titin-$$" 2> /dev/null; then
        group="$v2/titin-$$"
        echo '+cpu +memory' > "$v2/cgroup.subtree_control" &&
            echo '100000 100000' > "$group/cpu.max" && echo $((400 << 20)) > "$group/memory.max"
    else
        rmdir "$v1/cpu/titin-$$" "$v1/memory/titin-$$"
        return 1
    fi
}
if make_group 2> /dev/null; then
    # The group's first process is the shell that becomes the program.
    cat > enter << 'E'
#!/bin/bash
for folder in $GROUP; do echo $$ > "$folder/cgroup.procs" || exit 1; done
exec "$@"
E
    chmod +x enter
    before=./enter
    doctor GROUP="$group" OMP_NUM_THREADS=2
    says 'time and memory of a control group are told' 'cores .*the time of 1 by a control group.*limited to 400 MiB by a control group'
    says 'and what to do about them' '2 threads would be stopped.* -> set OMP_NUM_THREADS=1.*warning: only [0-9]+ MiB of memory can be had: a control group limits it'
    before=
else
    skip 'time and memory of a control group are told' 'a control group cannot be made here'
    skip 'and what to do about them' 'a control group cannot be made here'
fi
for folder in $group; do
    for _ in 1 2 3 4 5; do rmdir "$folder" 2> /dev/null && break; sleep 0.1; done
done

if (ulimit -v 4000000) 2> /dev/null; then
    out=$(ulimit -v 4000000 && OMP_NUM_THREADS=1 "$titin" doctor 2>&1)
    says 'ulimit -v is told' 'limited to 3.8 GiB by ulimit -v.* -> `ulimit -v unlimited`'
else
    skip 'ulimit -v is told' 'it cannot be set here'
fi
empty 'no line was wider than 80 columns' "$wide"
finish
