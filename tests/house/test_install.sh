#!/bin/bash
# What `make install` puts somewhere works as a user would use it: from C and C++, shared and static, through pkg-config.
cd "$(dirname "$0")/../.." && . tests/harness/tap.sh
plan 14

root=$work/root
prefix=$root/usr
make_() { make --no-print-directory -j2 CC="$CC" DESTDIR="$root" PREFIX=/usr "$@"; }
check 'make install' make_ install
empty 'and nothing outside the prefix' "$(find "$root" -mindepth 1 -maxdepth 1 ! -name usr)"

# Installed files are for any processor of the last ten years: not for this one's extras.
case "$(uname -m)" in
x86_64) portable=x86-64-v3 ;;
*) portable=armv8-a ;;
esac
check 'what is installed is the portable build' cmp "$prefix/lib/libtitin.a" \
    "$(make -s print-BUILD CC="$CC" ARCH=$portable)/libtitin.a"

empty 'the header includes no other header of ours' "$(grep -n '#include "' "$prefix/include/titin.h")"

cat > "$work/program.c" << 'X'
#include <stdio.h>
#include <titin.h>
int main(void)
{
    ttn_desc d = ttn_desc_of(TTN_F32, TTN_ROWS, 2, 480, 512, 0);
    ttn_error err = {TTN_OK, 0, 0, "", ""};
    char text[TTN_DESC_TEXT];
    if (ttn_desc_check(&d, "x", &err) != TTN_OK) return 1;
    printf("%s %s %lu %s\n", TTN_VERSION, ttn_desc_print(&d, text), (unsigned long)ttn_desc_bytes(&d),
           ttn_status_name(TTN_EINVAL));
    return 0;
}
X
cp "$work/program.c" "$work/program.cpp"
expected="$(make -s print-VERSION) f32 (N 480, 512) 983040 EINVAL"

# The two ALLOW: /usr/include and /usr/lib are dropped as known to every compiler, but these lie in another root.
pkg() {
    env PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig" PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 \
        PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config "$@" titin
}
case "$CC" in
*clang*) cxx=clang++ ;;
*) cxx=g++ ;;
esac

# use NAME COMPILER SOURCE LINK...
use() {
    local name=$1 output
    shift
    if ! output=$("$@" -pedantic -Wall -Wextra -Werror -o "$work/program" 2>&1); then
        not_ok "$name" "$*
$output"
        return
    fi
    output=$(LD_LIBRARY_PATH="$prefix/lib" "$work/program" 2>&1)
    same "$name" "$output" "$expected"
}

# As a list of words.
read -r -a cflags <<< "$(pkg --cflags)"
read -r -a libs <<< "$(pkg --libs)"
read -r -a static <<< "$(pkg --static --libs | sed 's/-ltitin/-Wl,-Bstatic -ltitin -Wl,-Bdynamic/')"
check 'pkg-config knows flags and libraries' test "${#cflags[@]}" -gt 0 -a "${#libs[@]}" -gt 0

if grep -q avx2 /proc/cpuinfo || [ "$(uname -m)" != x86_64 ]; then
    use 'C, shared' "$CC" -std=c11 "$work/program.c" "${cflags[@]}" "${libs[@]}"
    check 'and it needs libtitin.so by its soname' grep -q "NEEDED.*libtitin.so.$(make -s print-SOVERSION)\$" \
        <(objdump -p "$work/program")
    use 'C, static' "$CC" -std=c11 "$work/program.c" "${cflags[@]}" "${static[@]}"
    use 'C++, shared' "$cxx" -std=c++11 "$work/program.cpp" "${cflags[@]}" "${libs[@]}"
    use 'C++, static' "$cxx" -std=c++11 "$work/program.cpp" "${cflags[@]}" "${static[@]}"
    check 'there is a man page' grep -q '^\.TH TITIN 1' "$prefix/share/man/man1/titin.1"
    check 'and a completion that bash can read' bash -n "$prefix/share/bash-completion/completions/titin"
    same 'the installed program runs' "$("$prefix/bin/titin" --version | head -n 1)" "titin $(make -s print-VERSION)"
else
    for name in 'C, shared' 'soname' 'C, static' 'C++, shared' 'C++, static' 'man page' 'completion' \
        'the installed program runs'; do
        skip "$name" 'this processor has no AVX2, the installed build needs it'
    done
fi

make_ uninstall > /dev/null
empty 'make uninstall leaves no file' "$(find "$root" ! -type d)"
finish
