#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Counts the cache lines that miss a cache of 1 MB for a message, when many QPs take turns with one
# message each: what a cold QP costs. callgrind simulates the cache and counts both ends and both
# clients, in one thread and on a virtual clock. The queues and connections of QPS QPs do not fit
# into the cache.
#
#   test/bench/lines.sh [iwarp|falcon]...     (default: both)
#
# QPS (1500) is the number of QPs, TOP (20) the number of functions to print, and BUILD the folder
# of the build (build). The status is 1 when a message takes more lines than its limit below, and 77
# without valgrind.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build} qps=${QPS:-1500} top=${TOP:-20}
declare -A most=([iwarp]=38 [falcon]=61) # a few per cent above the counts
[ $# -gt 0 ] || set -- iwarp falcon
for t in "$@"; do
    [ -n "${most[$t]:-}" ] && continue
    echo "no transport '$t'; the transports are: iwarp falcon" >&2
    exit 2
done
. test/bench/callgrind.inc
[ -x "$build/test/bench/bench_engine_pair" ] || { echo "$build/test/bench is not built"; exit 1; }
work=$(mktemp -d /tmp/saker-lines.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# count TRANSPORT: leaves "LINES READ WRITTEN FUNCTION" for each function, and the sum.
count() {
    local messages out=$work/$1
    messages=$(callgrind_run "$out" measured_turns turns 64 1500 32 "$qps" write "$1" 10) || return
    callgrind_annotate --auto=no --threshold=100 --show=DLmr,DLmw --sort=DLmr,DLmw "$out" |
        awk -v n="$messages" -v total="$out.total" '
            /^ *[0-9,.]+ / {
                gsub(/\([^)]*%\)/, "")
                r = $1
                w = $2
                gsub(/[,.]/, "", r)
                gsub(/[,.]/, "", w)
                if (/PROGRAM TOTALS/) { printf "%.1f\n", (r + w) / n >total; next }
                f = $3
                sub(/.*:/, "", f)
                sum[f] += r + w
                read[f] += r
                wrote[f] += w
            }
            END {
                for (f in sum)
                    printf "%.2f %.2f %.2f %s\n", sum[f] / n, read[f] / n, wrote[f] / n, f
            }' | sort -rn >"$out.functions"
}

export CALLGRIND_CACHE=1
for t in "$@"; do
    count "$t" &
done
wait
status=0
for t in "$@"; do
    lines=$(cat "$work/$t.total" 2>/dev/null) || { echo "$t: no count"; status=1; continue; }
    echo "$t, $qps QPs in turns: $lines lines a message, at most ${most[$t]}"
    printf '%10s %8s %8s  %s\n' lines read written function
    head -n "$top" "$work/$t.functions" | awk '{ printf "%10s %8s %8s  %s\n", $1, $2, $3, $4 }'
    awk -v l="$lines" -v m="${most[$t]}" 'BEGIN { exit l > m }' || status=1
done
exit $status
