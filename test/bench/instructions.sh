#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Compares the instructions of an operation with those that instructions.txt records, and fails
# when one takes more than 3 % more. callgrind counts both ends and both clients, in one thread
# and on a virtual clock.
#
#   test/bench/instructions.sh [--record] [NAME...]     (default: all rows)
#
# A name that instructions.txt does not have is an error. --record writes today's counts into
# instructions.txt. BUILD is the folder of the build (build).
# The counts belong to a compiler and to a processor with AVX2, as valgrind offers it. The status is
# 77 with another one, as counts cannot be compared then.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build} record=
table=test/bench/instructions.txt
[ "${1:-}" = --record ] && { record=1; shift; }
rows=$(sed 's/#.*//; /^ *$/d' $table)
known=$(awk '{ print $1 }' <<<"$rows")
for name in "$@"; do
    grep -qxF -e "$name" <<<"$known" && continue
    echo "$table has no row '$name'; its rows are: ${known//$'\n'/ }" >&2
    exit 2
done
. test/bench/callgrind.inc
[ -x "$build/test/bench/bench_engine_pair" ] || { echo "$build/test/bench is not built"; exit 1; }
grep -qw avx2 /proc/cpuinfo || { echo "the processor has no AVX2"; exit 77; }
compiler=$(strings -a "$build/test/bench/bench_engine_pair" | grep -m 1 '^GCC: ' || echo other)
recorded=$(sed -n 's/^# compiler: //p' $table)
if [ -z "$record" ] && [ "$compiler" != "$recorded" ]; then
    echo "the counts are those of '$recorded', the build is of '$compiler'"
    exit 77
fi
work=$(mktemp -d /tmp/saker-instructions.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# count NAME ARGS...: leaves the instructions of an operation in a file.
count() {
    local name=$1 functions="sender_turn receiver_turn" operations
    shift
    [[ " $* " == *" pong "* ]] && functions=pong_turn
    [ "$1" != verbs ] || local bench=bench_verbs functions=verbs_turn
    operations=$(callgrind_run "$work/$name" "$functions" "$@") || return
    awk -v n="$operations" '/^(summary|totals):/ { sum = $2 } END { printf "%.1f\n", sum / n }' \
        "$work/$name" >"$work/$name.count"
}

while read -r name _ args; do
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    # shellcheck disable=SC2086 # a list of words
    count "$name" $args &
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
done <<<"$rows"
wait

status=0 missing=0
printf '%-16s %10s %10s %8s\n' name recorded now change
while read -r name was _; do
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    now=$(cat "$work/$name.count" 2>/dev/null) || { echo "$name: no count"; missing=1; continue; }
    awk -v name="$name" -v was="$was" -v now="$now" 'BEGIN {
        change = was > 0 ? 100 * (now / was - 1) : 0
        note = (change > 3) ? "  more than 3 % above" : (change < -3) ? "  record it anew" : ""
        printf "%-16s %10.1f %10.1f %+7.1f%%%s\n", name, was, now, change, note
        exit change > 3 }' || status=1
    [ -z "$record" ] || sed -i -E "s/^($name +)[0-9.]+ +/\1$(printf %-9s "$now") /" $table
done <<<"$rows"
[ $missing = 0 ] || exit 1
[ -z "$record" ] || { sed -i "s/^# compiler: .*/# compiler: $compiler/" $table; exit 0; }
exit $status
