#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# symbols.sh LIBRARY MANUAL LIBDIR: checks the functions that LIBRARY exports. Each public function
# of the genuine libibverbs and librdmacm in LIBDIR is in LIBRARY, or MANUAL names it as missing.
# LIBRARY exports no function that the genuine libraries do not have, in particular none of
# libsaker.
set -u
library=$1 manual=$2 libdir=$3
if [ ! -r "$libdir/libibverbs.so.1" ] || [ ! -r "$libdir/librdmacm.so.1" ]; then
    echo "1..0 # SKIP the genuine libraries are not in $libdir"
    exit 0
fi

# functions LIBRARY: prints the exported functions, without rdma-core's private versions.
functions() {
    readelf --dyn-syms --wide "$1" |
        awk '$4 == "FUNC" && $5 == "GLOBAL" && $7 != "UND" && $8 !~ /PRIVATE/ {
            sub("@.*", "", $8); print $8 }' |
        sort -u
}
# documented FUNCTION: succeeds if the manual names the function.
documented() { grep -qE "(^\.BR? |[^a-z_])$1([^a-z_]|$)" "$manual"; }

ours=$(functions "$library")
missing=0 known=0
for lib in ibverbs rdmacm; do
    for f in $(functions "$libdir/lib$lib.so.1"); do
        known=$((known + 1))
        grep -qx "$f" <<<"$ours" && continue
        documented "$f" && continue
        echo "# lib$lib: $f is neither in the library nor in the manual"
        missing=$((missing + 1))
    done
done
[ $known -ge 140 ] || {
    echo "# the genuine libraries have only $known functions"
    missing=1
}

genuine=$({
    functions "$libdir/libibverbs.so.1"
    functions "$libdir/librdmacm.so.1"
    echo ibv_query_gid_type # a private version
} | sort -u)
foreign=$(comm -23 <(echo "$ours") <(echo "$genuine"))
echo "1..2"
if [ $missing = 0 ]; then
    echo "ok 1 - $known functions"
else
    echo "not ok 1 - $missing of $known functions"
fi
if [ -z "$foreign" ]; then
    echo "ok 2 - no other function is exported"
else
    echo "not ok 2 - exported, and not in the genuine libraries: ${foreign//$'\n'/ }"
fi
