#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# symbols.sh LIBRARY MANUAL LIBDIR NAMES: checks the functions that LIBRARY exports. Each public
# function of the genuine libibverbs and librdmacm in LIBDIR is in LIBRARY, or in the library of the
# same name in the folder NAMES, or MANUAL names it as missing. LIBRARY exports no function that the
# genuine libraries do not have, in particular none of libsaker. Symbols have the versions of the
# genuine ones, and NAMES has every version and every private function of the genuine libraries.
set -u
library=$1 manual=$2 libdir=$3 names=$4
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
both=$({ echo "$ours"; functions "$names/libibverbs.so.1"; functions "$names/librdmacm.so.1"; })
# versioned LIBRARY: prints the exported symbols with their versions.
versioned() {
    readelf --dyn-syms --wide "$1" |
        awk '$5 == "GLOBAL" && $7 != "UND" && ($4 == "FUNC" || $4 == "OBJECT") && $8 ~ /@/ {
            sub("@@", "@", $8); print $8 }' |
        sort -u
}
# versions LIB: prints the versions that it defines.
versions() {
    readelf -V "$1" | sed '/Version needs/,$d' | grep -oE "Name: (IBVERBS|RDMACM)\S*" | sort -u
}
missing=0 known=0
for lib in ibverbs rdmacm; do
    for f in $(functions "$libdir/lib$lib.so.1"); do
        known=$((known + 1))
        grep -qx "$f" <<<"$both" && continue
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
echo "1..4"
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

unlike=$(comm -23 <(versioned "$library") <({
    versioned "$libdir/libibverbs.so.1"
    versioned "$libdir/librdmacm.so.1"
} | sort -u))
if [ -z "$unlike" ] && [ "$(versioned "$library" | wc -l)" -ge 130 ]; then
    echo "ok 3 - versions as in the genuine libraries"
else
    echo "not ok 3 - versions that the genuine libraries do not have: ${unlike//$'\n'/ }"
fi

lacking=$({
    comm -23 <(versioned "$libdir/libibverbs.so.1" | grep PRIVATE) \
        <({ versioned "$names/libibverbs.so.1"; versioned "$library"; } | sort -u)
    for lib in ibverbs rdmacm; do
        comm -23 <(versions "$libdir/lib$lib.so.1") <(versions "$names/lib$lib.so.1")
    done
})
if [ -z "$lacking" ]; then
    echo "ok 4 - the libraries by name have each version and each private function"
else
    echo "not ok 4 - the libraries by name lack ${lacking//$'\n'/ }"
fi
