#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Counts the instructions of a Write (or $OP: read, fetch_add) over iWARP (or $TRANSPORT: falcon)
# with callgrind. One thread drives both engines over a ring. The sending side (client included) and
# the receiving side are counted apart. Counts, unlike times, are the same on a busy machine.
#
#   test/bench/callgrind.sh [SIZE...]     (default: 64 65536, the latter at MTU 9000)
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build} op=${OP:-write} transport=${TRANSPORT:-iwarp}
work=$(mktemp -d /tmp/saker-callgrind.XXXXXX)
trap 'rm -rf "$work"' EXIT
. test/bench/callgrind.inc

# count SIDE SIZE MTU DEPTH: writes the instructions of an operation by part of the program, a line
# "PART N" for each.
count() {
    local out=$work/$1.$2 operations
    operations=$(callgrind_run "$out" "$1_turn" solo "$2" "$3" "$4" 0 "$op" "$transport") || exit 1
    # callgrind_annotate prints "COUNT (SHARE) FILE:FUNCTION [OBJECT]".
    callgrind_annotate --auto=no --threshold=100 "$out" | awk -v operations="$operations" '
        /PROGRAM TOTALS/ { gsub(",", "", $1); total = $1 }
        /^ *[0-9,]+ \(/ && !/PROGRAM TOTALS/ {
            n = $1
            gsub(",", "", n)
            where = $0
            sub(/^ *[0-9,]+ \([^)]*\) */, "", where)
            part = "the rest"
            if (match(where, /lib\/(base|wire|net|tcp|falcon|rdma|iwarp|rof|shm|engine|client)\//))
                part = substr(where, RSTART, RLENGTH - 1)
            else if (where ~ /isal|crc32_iscsi/) part = "ISA-L"
            else if (where ~ /memmove|memcpy|memset|libc/) part = "libc"
            else if (where ~ /rte_|librte|dpdk/) part = "DPDK"
            else if (where ~ /test\/bench/) part = "the test"
            sum[part] += n
            seen += n
        }
        END {
            sum["the rest"] += total - seen
            for (p in sum) printf "%s\t%.1f\n", p, sum[p] / operations
            printf "total\t%.1f\n", total / operations
        }' >"$out.table"
}

for size in "${@:-64 65536}"; do
    for s in $size; do
        mtu=1500 depth=256
        [ "$s" -ge 4096 ] && mtu=9000 depth=16
        count sender "$s" $mtu $depth
        count receiver "$s" $mtu $depth
        echo "instructions for a $op over $transport of $s bytes, MTU $mtu"
        printf '%-12s %12s %12s\n' part sending receiving
        awk -F'\t' '
            NR == FNR { a[$1] = $2; k[$1]; next }
            { b[$1] = $2; k[$1] }
            END { for (p in k) print p "\t" a[p] + 0 "\t" b[p] + 0 }' \
            "$work/sender.$s.table" "$work/receiver.$s.table" | sort -t"$(printf '\t')" -k2,2nr |
            awk -F'\t' '{ printf "%-12s %12.1f %12.1f\n", $1, $2, $3 }'
        echo
    done
done
