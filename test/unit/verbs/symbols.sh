#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# symbols.sh LIBRARY MANUAL LIBDIR: each public function of the genuine libibverbs and librdmacm is in our library, or the manual says what
# becomes of it. And what is in ours is a name of theirs: nothing of libsaker shows.
set -u
library=$1 manual=$2 libdir=$3
[ -r "$libdir/libibverbs.so.1" ] && [ -r "$libdir/librdmacm.so.1" ] || {
    echo "1..0 # SKIP the genuine libraries are not in $libdir"
    exit 0
}

# functions LIBRARY: what it exports, but for the family's private versions.
functions() {
    readelf --dyn-syms --wide "$1" | awk '$4 == "FUNC" && $5 == "GLOBAL" && $7 != "UND" && $8 !~ /PRIVATE/ { sub("@.*", "", $8); print $8 }' |
        sort -u
}
said() { grep -qE "(^\.BR? |[^a-z_])$1([^a-z_]|$)" "$manual"; }

ours=$(functions "$library")
missing=0 known=0
for lib in ibverbs rdmacm; do
    for f in $(functions "$libdir/lib$lib.so.1"); do
        known=$((known + 1))
        grep -qx "$f" <<<"$ours" && continue
        said "$f" && continue
        echo "# lib$lib: $f is neither there nor in the manual"
        missing=$((missing + 1))
    done
done
[ $known -ge 140 ] || { echo "# only $known functions were found in the genuine libraries"; missing=1; }

foreign=$(comm -23 <(echo "$ours") <({ functions "$libdir/libibverbs.so.1"; functions "$libdir/librdmacm.so.1"; echo ibv_query_gid_type; } | sort -u))
echo "1..2"
[ $missing = 0 ] && echo "ok 1 - $known functions" || echo "not ok 1 - $missing of $known functions"
[ -z "$foreign" ] && echo "ok 2 - nothing else is exported" || echo "not ok 2 - exported, and not theirs:" $foreign
