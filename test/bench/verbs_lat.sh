#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures the cost of the verbs library: ib_write_lat under saker-run against saker-perf --client,
# both between two clients of one saker over its loop port, in alternating rounds. Each client spins
# on a core of its own (0 and 1), as ib_write_lat does. saker sleeps as soon as it has no work (idle
# = sleep, sleep-after = 0), is woken by the clients' doorbells, and has priority on core 0. The
# script prints each round's typical latency in us and, at the end, the quotient of the medians of
# each size.
#
#   test/bench/verbs_lat.sh [ROUNDS [SIZE...]]     (default: 5 rounds; 8 4096 65536)
. "$(dirname "$0")/../interop/perf.inc"
rounds=${1:-5}
[ $# -gt 0 ] && shift
sizes=("$@")
[ $# -gt 0 ] || sizes=(8 4096 65536)
iters=2000
take_memory 600

printf '[saker]\nidle = sleep\nsleep-after = 0\n' >"$work/saker.ini"
"$build/app/saker" --lcores 0@0 --no-pci "${memory[@]}" --file-prefix "vlat$$" --vdev net_ring0 -- \
    --socket "$work/s.sock" --address 0=10.6.0.1/24 --config "$work/saker.ini" \
    >"$work/saker.log" 2>&1 &
pid[saker]=$!
until_true 30 test -S "$work/s.sock" || fail "saker does not start"
chrt -f -p 1 "${pid[saker]}" || fail "saker gets no priority: only root may set it"

listens() {
    local info
    info=$(test/interop/telemetry.py "/var/run/dpdk/vlat$$/dpdk_telemetry.v2" /saker/info)
    [ "$(jq .listeners <<<"$info")" -gt 0 ]
}

verbs() { # verbs SIZE: prints half of a typical round trip
    local run=("$build/app/saker-run" --devices iwarp --socket "$work/s.sock"
        ib_write_lat -d saker0 -R -s "$1" -n "$iters")
    local server
    # perftest's server requests the client to connect before it listens for that. A client that is
    # refused ends, so both start again.
    for _ in $(seq 20); do
        taskset -c 1 "${run[@]}" >"$work/verbs.server.log" 2>&1 &
        server=$!
        until_true 30 listens || fail "ib_write_lat does not listen"
        taskset -c 0 "${run[@]}" 10.6.0.1 >"$work/verbs.log" 2>&1 && break
        kill $server
        wait $server
    done
    wait $server || fail "ib_write_lat"
    awk -v s="$1" '$1 == s { print $5 }' "$work/verbs.log"
}

client() { # client CORE ARGS...
    local core=$1
    shift
    "$build/app/saker-perf" --no-pci --no-huge --no-shconf -m 64 --no-telemetry \
        --file-prefix "vlat$$p$core" --lcores "0@$core" -- \
        --client "$work/s.sock" --op write --test lat --iters $iters --rounds 1 --no-floor "$@"
}
native() { # native SIZE
    client 1 --listen --size "$1" >"$work/native.server.log" 2>&1 &
    local server=$!
    until_true 30 grep -q listening "$work/native.server.log" || fail "saker-perf does not listen"
    client 0 --connect 10.6.0.1 --size "$1" --json --quiet >"$work/native.json" \
        2>"$work/native.log" || fail saker-perf
    wait $server
    jq -r '.p50_ns / 1000' "$work/native.json"
}

echo "size  round  ib_write_lat  saker-perf   [us]"
for size in "${sizes[@]}"; do
    : >"$work/v"
    : >"$work/n"
    for r in $(seq "$rounds"); do
        v=$(verbs "$size") && n=$(native "$size") || exit 1
        echo "$v" >>"$work/v"
        echo "$n" >>"$work/n"
        echo "$size  $r  $v  $n"
    done
    awk -v s="$size" -v v="$(median <"$work/v")" -v n="$(median <"$work/n")" 'BEGIN {
        printf "%s: %.2f us through verbs, %.2f us through libsaker: %.2f\n", s, v, n, v / n }'
done
