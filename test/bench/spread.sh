#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Counts the instructions of a message, both ends and both clients, with N loops on each side, for
# several N (bench_spread): N lcores do the work of one N times if the counts are equal. Fails when
# one takes more than 5 % more than one loop, or a frame or message passes from one loop to another.
#
#   test/bench/spread.sh [N...]   (default: 1 2 4 8 16; the others are compared to the first)
#
# BUILD is the folder of the build (build).
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
# shellcheck disable=SC2034 # callgrind.inc
bench=bench_spread
. test/bench/callgrind.inc
[ -x "$build/test/bench/$bench" ] || { echo "$build/test/bench/$bench is not built"; exit 1; }
[ $# -gt 0 ] || set -- 1 2 4 8 16
work=$(mktemp -d /tmp/saker-spread.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# count N TRANSPORT: leaves the instructions of a message in a file.
count() {
    local out=$work/$2-$1 operations
    operations=$(callgrind_run "$out" "sender_turn receiver_turn" "$1" "$2" 2) || return
    awk -v n="$operations" '/^(summary|totals):/ { sum = $2 } END { printf "%.1f\n", sum / n }' \
        "$out" >"$out.count"
}

for transport in iwarp falcon; do
    for n in "$@"; do
        count "$n" "$transport" &
        while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    done
done
wait

status=0
printf '%-9s %6s %13s %8s\n' transport loops instructions change
for transport in iwarp falcon; do
    first=
    for n in "$@"; do
        now=$(cat "$work/$transport-$n.count" 2>/dev/null) ||
            { echo "$transport, $n loops: it did not run"; status=1; continue; }
        first=${first:-$now}
        awk -v t="$transport" -v n="$n" -v was="$first" -v now="$now" 'BEGIN {
            change = (now / was - 1) * 100
            printf "%-9s %6d %13.1f %+7.1f%%\n", t, n, now, change
            exit change > 5 }' || status=1
        grep '^  side' "$work/$transport-$n.log" && status=1
    done
done
exit $status
