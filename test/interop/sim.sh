#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs saker-sim on the scenario files of config/sim, shortened to seconds: each finishes, the same
# seed gives the same file, Falcon keeps its goodput under loss where TCP does not, and gnuplot
# draws a picture where it is installed. A wrong argument gets one sentence.
set -eu
cd "$(dirname "$0")/../.."
sim=${SAKER_BUILD:-build}/app/saker-sim/saker-sim
[ -x "$sim" ] || { echo "$sim is not built"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAIL: $*"; exit 1; }

# run DIR FILE [section.key=value]...
run() {
    local out=$dir/$1 file=config/sim/$2.ini args=()
    shift 2
    for a in "$@"; do args+=(-s "$a"); done
    "$sim" -o "$out" "${args[@]}" "$file" || fail "$file does not finish"
}

run a loss run.duration-us=3000 "link.loss=0 1 5" traffic.connections=8
run b loss run.duration-us=3000 "link.loss=0 1 5" traffic.connections=8
cmp "$dir/a/loss.csv" "$dir/b/loss.csv" || fail "the same seed gives another result"
[ "$(wc -l <"$dir/a/loss.csv")" = 13 ] ||
    fail "four transports at three rates give other than 12 rows"
# cell COLUMN TRANSPORT LOSS
cell() { awk -F, -v name="$1" -v t="$2" -v l="$3" '
    NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    $c["host.transport"] == t && $c["link.loss"] == l { print $c[name] }' "$dir/a/loss.csv"; }
clean=$(cell goodput_gbps falcon 0)
lossy=$(cell goodput_gbps falcon 5)
rdma=$(cell goodput_gbps rof 5)
tcp=$(cell goodput_gbps tcp 5)
awk -v a="$clean" -v b="$lossy" -v c="$tcp" -v d="$rdma" '
    BEGIN { exit !(b > 0.85 * a && d > 0.85 * a && b > c) }' ||
    fail "at 5 % loss Falcon has $lossy of $clean Gb/s, RDMA over it $rdma, TCP $tcp"
if command -v gnuplot >/dev/null; then
    [ "$(head -c 4 "$dir/a/loss.png" | tail -c 3)" = PNG ] || fail "no picture"
fi

run c reorder run.duration-us=1000 "link.reorder=0 5"
run c incast run.duration-us=1000 run.sample-us=100 "topology.hosts=3 26"
# Four runs of 2 ms print a line each 100 us. Some of the lines have queued packets.
awk -F, 'NR > 1 { n[$1]++; if ($4 > 0) deep++ }
    END { exit !(n[0] >= 18 && n[3] >= 18 && deep > 20) }' "$dir/c/incast-series.csv" ||
    fail "the series of the incast has too few lines, or too few with queued packets"
run c receiver run.duration-us=46000
# value FILE COLUMN CONTROL [CUTS]: a column of the last row with this congestion control.
value() { awk -F, -v name="$2" -v cc="$3" -v cuts="${4:-}" '
    NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    $c["falcon.congestion"] == cc && (cuts == "" || $c["falcon.early-cuts"] == cuts) {
        v = $c[name] }
    END { print v }' "$dir/c/$1.csv"; }
# Swift and DCTCP beside each other. DCTCP's queue ends near the mark.
run c congestion-incast run.duration-us=2000 "topology.hosts=11 26"
swift=$(value congestion-incast depth_p99_bytes swift)
dctcp=$(value congestion-incast depth_p99_bytes dctcp)
dropped=$(value congestion-incast dropped dctcp)$(value congestion-incast dropped swift)
awk -v s="$swift" -v d="$dctcp" -v n="$dropped" 'BEGIN { exit !(d > 0 && 2 * d < s && n == 0) }' ||
    fail "under incast the queue is $swift bytes with Swift and $dctcp with DCTCP, lost $dropped"
run c congestion-loss run.duration-us=3000 "link.loss=0 1"
for cc in swift dctcp; do
    no=$(value congestion-loss goodput_gbps $cc no)
    yes=$(value congestion-loss goodput_gbps $cc yes)
    awk -v a="$no" -v b="$yes" 'BEGIN { exit !(a > 185 && b < 150) }' ||
        fail "at 1 % loss $cc has $no Gb/s, and $yes with cuts at early retransmissions"
done
run c congestion-paths run.duration-us=1000
run c paths run.warmup-us=500 run.duration-us=1000
run c smallest-pools
run c ten-thousand topology.hosts=400 topology.leaves=4
# refused SENTENCE ARGUMENT...: nothing on standard output, one sentence, and status 2.
refused() {
    local sentence=$1 rc=0
    shift
    "$sim" "$@" >"$dir/out" 2>"$dir/err" || rc=$?
    [ $rc = 2 ] && [ ! -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" = 1 ] &&
        grep -qF -- "$sentence" "$dir/err" ||
        fail "saker-sim $*: status $rc, $(cat "$dir/out" "$dir/err")"
}
refused "[link] has no key 'colour'" -s link.colour=red config/sim/loss.ini
refused "unrecognized option '--bogus'" --bogus config/sim/loss.ini
refused "the file of scenarios is missing" -o "$dir/d"
refused "'two.ini' is a second file" config/sim/loss.ini two.ini
many=()
for _ in {1..33}; do many+=(-s link.loss=0); done
refused "-s link.loss=0 is one more than the 32 possible" "${many[@]}" config/sim/loss.ini
mkdir -p "$dir/d/incast-series.csv"
refused "incast-series.csv cannot be created: Is a directory" -o "$dir/d" -s run.sample-us=100 \
    config/sim/incast.ini
echo "saker-sim: all scenarios ran; at 5 % loss Falcon $lossy of $clean Gb/s," \
    "RDMA over it $rdma, TCP $tcp"
