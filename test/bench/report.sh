#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures the speed of one connection between two lcores and compares it with the targets: every
# figure in each round, floor and product alternating within each run, in less than 15 minutes.
#
#     test/bench/report.sh [FOLDER]
#
# Writes FOLDER/report.md (the table), FOLDER/report.json (all runs), and with gnuplot the pictures
# latency.png, bandwidth.png and rate.png. The default is build/report. The host may move
# the processors, so each run has the class of the ping-pong of a 64-byte frame in its own rounds.
# The pictures have the runs of the most frequent class. A run without a figure ends the script with
# status 1, and FOLDER stays as it was: files come into it only when all are complete.
#
# Environment, with defaults: REPORT_ROUNDS (5), REPORT_SWEEPS (3, rounds over all sizes),
# REPORT_MS (150, each part of a run), REPORT_COUNT (yes; no: takes the recorded counts of
# instructions), REPORT_RUN ("chrt -f 50", words before the program), REPORT_HUGE (yes; no: takes
# small pages), SAKER_BUILD.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.." || exit 1
. test/packages.sh
build=${SAKER_BUILD:-build}
out=${1:-$build/report}
rounds=${REPORT_ROUNDS:-5} sweeps=${REPORT_SWEEPS:-3} ms=${REPORT_MS:-150}
# fail SENTENCE...
fail() {
    echo "report: $*" >&2
    exit 1
}

[ -x "$build/app/saker-perf" ] || fail "$build/app/saker-perf is not built"
for n in REPORT_ROUNDS=$rounds REPORT_SWEEPS=$sweeps REPORT_MS=$ms; do
    [[ $n =~ =[1-9][0-9]*$ ]] || fail "$n is not a number above 0"
done
command -v jq >/dev/null || fail "jq is not installed"
[ "$(nproc)" -ge 2 ] || { echo "two processors are necessary"; exit 77; }
memory=(--in-memory)
if [ "${REPORT_HUGE:-yes}" != yes ] || ! reserve_hugepages 600; then
    memory=(--no-huge --no-shconf -m 1200)
fi
work=$(mktemp -d /tmp/saker-report.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir "$work/out" || exit 1
start=$SECONDS

# The figures without which report.py cannot use a run. Each is above 0.
figures='.ratio, .frame_floor_ns,
    (if .test == "lat" then .p50_ns, .p99_ns, .floor_p50_ns, .floor_p99_ns
    elif .test == "bw" then .gbps, .floor_gbps else .mops, .floor_mops end)'

# run NAME ROUND ARGS...: measures once, and adds a line to the results.
run() {
    local name=$1 round=$2 status
    shift 2
    # shellcheck disable=SC2086 # REPORT_RUN is a list of words
    timeout 120 ${REPORT_RUN-chrt -f 50} "$build/app/saker-perf" --lcores 0@0,1@1 --no-pci \
        "${memory[@]}" --no-telemetry --file-prefix "report$$" -- --op write --rounds 3 --json \
        "$@" >"$work/run" 2>"$work/log"
    status=$?
    [ $status = 0 ] || { tail -n 3 "$work/log" >&2; fail "$name ended with status $status: $*"; }
    # jq has status 0 for a file without an object, too.
    jq -c --arg name "$name" --argjson round "$round" "{name: \$name, round: \$round} +
        select([$figures] | all(type == \"number\" and . > 0))" "$work/run" >"$work/line" \
        2>"$work/why" || : >"$work/line"
    [ -s "$work/line" ] || {
        tail -qn 3 "$work/run" "$work/log" "$work/why" >&2
        fail "$name gave no figure: $*"
    }
    cat "$work/line" >>"$work/runs" || fail "$name cannot be noted"
    jq -r '"\(.size) B: p50 \(.p50_ns) ns, \(.gbps) Gb/s, \(.mops) M/s; floor " +
        "\(.floor_p50_ns) ns, \(.floor_gbps) Gb/s, \(.floor_mops) M/s, \(.floor_stores); " +
        "ratio \(.ratio)"' "$work/run" | sed "s/^/$name /" >&2
}
# stream NAME ROUND ARGS...: measures for $ms in each part of a run.
stream() { run "$@" --duration $((3 * ms))ms; }

for round in $(seq "$rounds"); do
    echo "round $round of $rounds" >&2
    for t in iwarp falcon; do
        # Few messages, so that those that a first touch of memory delays are more than 1 %.
        run latency-$t "$round" --transport $t --test lat --size 64 --iters 12000 --histogram
        stream write-64k-$t "$round" --transport $t --test bw --size 65536 --mtu 9000
        stream read-64k-$t "$round" --transport $t --op read --test bw --size 65536 --mtu 9000
        stream write-8-$t "$round" --transport $t --test rate --size 8 --depth 256
    done
    stream sealed-64k-falcon "$round" --transport falcon --psp gcm128 --test bw --size 65536 \
        --mtu 9000
    stream read-8-falcon "$round" --transport falcon --op read --test rate --size 8 --depth 256
    run fetch-add-8-falcon "$round" --transport falcon --op atomic_fa --test rate --depth 256 \
        --iters 600000
done
for round in $(seq "$sweeps"); do
    echo "sizes, round $round of $sweeps" >&2
    for bit in $(seq 20); do
        for t in iwarp falcon; do
            stream size-$t "$round" --transport $t --test bw --size $((1 << bit)) --mtu 9000 \
                --depth $((bit > 16 ? 16 : 64))
        done
    done
done
if [ "${REPORT_COUNT:-yes}" = yes ]; then
    # Counts that differ from the recorded ones give status 1, and are figures nevertheless.
    BUILD=$build test/bench/instructions.sh >"$work/counts"
    cat "$work/counts" >&2
    awk 'NR > 1 && $3 > 0 { print $1, $3 }' "$work/counts" >"$work/count"
    [ "$(wc -l <"$work/count")" = "$(grep -c '^[a-z]' test/bench/instructions.txt)" ] ||
        fail "test/bench/instructions.sh did not count all rows"
else
    awk '!/^#/ && NF { print $1, $2 }' test/bench/instructions.txt >"$work/count"
fi
machine="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors"
"$here/report.py" "$work/runs" "$work/count" "$work/out" "$machine" \
    "$(git describe --always --dirty)" $((SECONDS - start)) || fail "there is no table"
if command -v gnuplot >/dev/null; then
    gnuplot -e "folder='$work/out'" "$here/report.gp" || fail "there are no pictures"
fi
mkdir -p "$out" || exit 1
mv "$work/out"/* "$out" || fail "$out cannot be written"
cat "$out/report.md"
