#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# installed.sh BUILD: installs libsaker into an empty tree, and compiles a C and a C++ program with
# nothing but that tree. The installed headers must be those of <saker/saker.h>, and the library
# must export exactly the functions that they declare.
set -u
build=$1
tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT
fails=0

# ok NAME COMMAND...: one line of TAP.
n=0
ok() {
    local name=$1 log
    shift
    n=$((n + 1))
    if log=$("$@" 2>&1); then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        echo "$log" | head -40 | sed 's/^/# /'
        fails=$((fails + 1))
    fi
}

echo 1..6
ok installs env DESTDIR="$tree" meson install -C "$build" --no-rebuild --quiet --tags devel,runtime
include=$(dirname "$(find "$tree" -path '*/include/saker' | head -1)")
lib=$(dirname "$(find "$tree" -name libsaker.so | head -1)")

headers_are_complete() {
    diff <(printf '%s\n' addr.h saker.h types.h) <(ls "$include/saker") &&
        [ "$(ls "$include")" = saker ] &&
        ! grep -nE '\bshm_|SHM_|\.\./' "$include"/saker/*.h
}
ok "only the headers of <saker/saker.h> are installed" headers_are_complete

# declared: prints the names before a parenthesis, without comments and the two inline functions.
declared() {
    echo '#include <saker/saker.h>' | gcc -I"$include" -E -P - |
        grep -oE '\b(saker|sk_addr)_[a-z0-9_]+\(' | tr -d '(' | grep -vxE 'sk_addr_(eq|is_v4)' |
        sort -u
}
exported() {
    nm -D --defined-only "$lib/libsaker.so" |
        awk '$2 == "T" {sub("@.*", "", $3); print $3}' | sort -u
}
exports_match() {
    diff <(declared) <(exported)
}
ok "the library exports what the headers declare" exports_match

cat >"$tree/use.c" <<'C'
#include <saker/saker.h>

#include <stdio.h>

/* Exits 0 when the library's answers are those that the header promises. */
int
main(void)
{
	struct saker_qp_attr attr = {0};
	struct saker_wr wr = {0};
	struct rd_wc wc = {0};
	struct sk_addr a;
	struct saker *s;

	attr.transport = SAKER_FALCON;
	wr.opcode = RD_WRITE;
	wc.status = RD_SUCCESS;
	if (sk_addr_parse("192.0.2.1", &a) != 0 || !sk_addr_is_v4(&a) || sk_addr_is_any(&a))
		return 1;
	if (saker_open("/nonexistent/saker.sock", "use", &s) >= 0)
		return 2;
	printf("%s; %s\n", saker_error(), saker_status_str(wc.status));
	return saker_error()[0] == '\0' || wr.opcode + attr.transport != RD_WRITE + 1;
}
C
sed 's/= {0}/= {}/' "$tree/use.c" >"$tree/use.cc"
strict=(-Wall -Wextra -pedantic -Werror -I"$include")
c_program() {
    gcc -std=c99 "${strict[@]}" "$tree/use.c" -o "$tree/use_c" -L"$lib" -lsaker &&
        LD_LIBRARY_PATH=$lib "$tree/use_c"
}
cxx_program() {
    g++ -std=c++11 "${strict[@]}" "$tree/use.cc" -o "$tree/use_cc" -L"$lib" -lsaker &&
        LD_LIBRARY_PATH=$lib "$tree/use_cc"
}
by_pkg_config() {
    local flags
    flags=$(PKG_CONFIG_LIBDIR=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$tree \
        PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 \
        pkg-config --cflags --libs libsaker) || return 1
    # shellcheck disable=SC2086 # a list of arguments
    gcc "$tree/use.c" -o "$tree/use_pc" $flags && LD_LIBRARY_PATH=$lib "$tree/use_pc"
}
ok "a C program compiles, links and runs" c_program
ok "a C++ program compiles, links and runs" cxx_program
ok "pkg-config has the flags" by_pkg_config
[ $fails -eq 0 ]
