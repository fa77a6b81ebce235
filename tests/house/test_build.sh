#!/bin/bash
# The build rebuilds what has to be and nothing else. In a copy of the tree, without optimisation.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 19

copy="$work/a folder/titin"
mkdir -p "$copy"
find . -mindepth 1 -maxdepth 1 ! -name build ! -name .git -exec cp -r {} "$copy/" \;
cd "$copy" || exit 1

flags=(CC="$CC" CFLAGS=-O0 WERROR=1)
out=$(make -s print-BUILD "${flags[@]}")
build() { make --no-print-directory -j2 "${flags[@]}" "$@"; }
objects() { find build -name '*.o' | sort; }
# The objects that are newer than the file `mark`.
rebuilt() { find build -name '*.o' -newer mark | sort; }
# Files with a date before that of `mark`, so that what is built or touched from here on is newer.
mark() {
    touch mark
    sleep 0.02
}

check 'make -j builds everything in a fresh copy, in a folder with a space' build
check 'library and program are there' test -f "$out/libtitin.a" -a -e "$out/libtitin.so" -a -x "$out/titin"
check 'program runs' "./$out/titin" --version

mark
output=$(build 2>&1)
same 'a second make does nothing' "$(find build -newer mark)$output" "make: Nothing to be done for 'all'."
check 'and make -q says so' build -q

# Which objects include a header is asked of the preprocessor's sibling: the compiler's own list, made anew.
header=core/tensor.h
mark
touch "$header"
build > /dev/null 2>&1
read -r -a includes <<< "$(make -s print-INCLUDES)"
expected=$(for source in $(make -s print-SOURCES print-PROGRAM); do
    "$CC" -std=c11 -D_GNU_SOURCE "${includes[@]}" "-I$out" -MM "$source" | tr -d '\\\n' | grep -q " $header" && echo "$out/obj/${source%.c}.o"
done | sort)
same "a touched header rebuilds what includes it, and only that" "$(rebuilt)" "$expected"
if [ "$(rebuilt | wc -l)" -lt "$(objects | wc -l)" ]; then ok 'which is not everything'; else
    not_ok 'which is not everything' "$(rebuilt)"; fi

mark
build CFLAGS='-O0 -DOTHER' > /dev/null 2>&1
same 'other CFLAGS rebuild everything' "$(rebuilt)" "$(objects)"
mark
build LDFLAGS='-Wl,-O1' CFLAGS='-O0 -DOTHER' > /dev/null 2>&1
check 'other LDFLAGS link again' test "$out/titin" -nt mark -a "$out/libtitin.so" -nt mark

# Sources that come and go.
printf 'int ttn_guest_of_the_program(void);\nint ttn_guest_of_the_program(void)\n{\n    return 7;\n}\n' > train/cli/guest.c
printf '#include "core/guest.h"\nint ttn_guest(void)\n{\n    return GUEST;\n}\n' > core/guest.c
printf '#define GUEST 7\nint ttn_guest(void);\n' > core/guest.h
build > /dev/null 2>&1
check 'a new source is in the library' grep -q ttn_guest <(nm "$out/libtitin.a")
check 'or in the program' grep -q ttn_guest_of_the_program <(nm "$out/titin")
rm core/guest.c core/guest.h train/cli/guest.c
check 'the build goes on when a source and its header are gone' build
empty 'and neither library holds it any more' "$(nm "$out/libtitin.a" "$out/libtitin.so" | grep ttn_guest)"
empty 'nor does the program' "$(nm "$out/titin" | grep ttn_guest)"

# Presets become texts of C, whatever is in them, and read as they stand in their files.
mkdir -p configs
printf '# a "word", C:\\new, a\ttab, ??/ and ??=, caf\303\251 %%s\nexact: {scale: 0.5}\nnotes: {a: "x\\ty"}\n' > configs/odd.yaml
printf 'exact:\r\n  scale: 2' > configs/windows.yaml
: > configs/empty.yaml
check 'presets with quotes, backslashes, tabs, carriage returns, or nothing in them are built' build
expected=$(for preset in odd windows empty; do
    "$out/titin" config show "configs/$preset.yaml" | sed "/hash/d; s/# configs.$preset.yaml/# preset $preset/"
done)
same 'and read as their files do' "$(for preset in odd windows empty; do "$out/titin" config show --preset $preset | sed /hash/d; done)" \
    "$expected"
rm -r configs

folders=$(for cc in gcc clang; do for real in f32 f64; do for arch in native x86-64-v3; do for san in '' 1; do for cuda in '' 1; do
    make -s print-BUILD CC=$cc REAL=$real ARCH=$arch SAN=$san CUDA=$cuda
done; done; done; done; done)
same 'every variant has a folder of its own' "$(sort -u <<< "$folders" | wc -l)" 32
output=$(make CUDA=1 CUDA_HOME=/nowhere 2>&1)
check 'CUDA=1 without nvcc says what is missing' grep -q 'CUDA=1 needs nvcc, and /nowhere/bin/nvcc is not there' <<< "$output"
check 'make SAN=1 test runs what it has built' grep -q -e '--label f32 build/clang-san/tests/' <(make -n CC=clang SAN=1 test)
finish
