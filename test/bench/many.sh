#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures Writes over many QPs that are all busy, between two lcores: the rate of small ones and
# the bandwidth of large ones from and to memory that all QPs share. The numbers of QPs alternate
# in each round, and each figure is the median of the rounds. Nothing is lost on this wire, so the
# table also has the retransmissions and the changes of paths, in per cent of the frames sent.
#
#   test/bench/many.sh [iwarp|falcon]...     (default: both)
#
# Environment, with defaults: MANY_QPS ("1 16 256 1000 10000"), MANY_ROUNDS (3), MANY_MS (300, each
# run), MANY_RUN ("chrt -f 50", words before the program), SAKER_BUILD.
# shellcheck source=test/interop/perf.inc
. "$(dirname "$0")/../interop/perf.inc"
qps=${MANY_QPS:-1 16 256 1000 10000} rounds=${MANY_ROUNDS:-3} ms=${MANY_MS:-300}
[ $# -gt 0 ] || set -- iwarp falcon
for t in "$@"; do
    [[ $t == iwarp || $t == falcon ]] && continue
    echo "no transport '$t'; the transports are: iwarp falcon" >&2
    exit 2
done
[ "$(nproc)" -ge 2 ] || skip "two processors are necessary"
reserve_hugepages 700 || skip "700 MiB of huge pages are necessary"
# shellcheck disable=SC2034 # perf() reads both
limit=300
# shellcheck disable=SC2034,SC2206 # MANY_RUN is a list of words
runner=(${MANY_RUN-chrt -f 50})

# measure NAME TRANSPORT QPS TEST SIZE: leaves $work/NAME.json.
measure() {
    local mtu=1500
    [ "$4" = bw ] && mtu=9000
    perf "$1" --lcores 0@0,1@1 -- --transport "$2" --op write --test "$4" --size "$5" --depth 16 \
        --qps "$3" --mtu $mtu --duration "${ms}ms" --rounds 1 --no-floor ||
        fail "$3 QPs over $2: status $?"
}
# share RUNS COUNTER...: the sum of the counters in per cent of the frames.
share() {
    local runs=$1
    shift
    awk -v names=" $* " '$1 == "active" && index(names, " " $3 " ") { n += $4 }
        $1 == "active" && $3 == "tx_good_packets" { all += $4 }
        END { printf "%.3f", all ? 100 * n / all : 0 }' "$work/$runs".[0-9]*.log
}

printf '%-9s %10s %6s %9s %9s %9s %9s %9s\n' transport bytes QPs Mop/s Gb/s "of first" resent paths
for t in "$@"; do
    for what in "rate 8" "rate 64" "bw 65536"; do
        read -r test size <<<"$what"
        for ((round = 0; round < rounds; round++)); do
            for n in $qps; do measure "$t.$size.$n.$round" "$t" "$n" "$test" "$size"; done
        done
        first=
        for n in $qps; do
            mops=$(for ((r = 0; r < rounds; r++)); do
                jq .mops "$work/$t.$size.$n.$r.json"
            done | median)
            first=${first:-$mops}
            awk -v t="$t" -v size="$size" -v n="$n" -v mops="$mops" -v first="$first" \
                -v resent="$(share "$t.$size.$n" TCP_RETRANSMIT FA_RETRANSMIT)" \
                -v paths="$(share "$t.$size.$n" FA_REPATH)" 'BEGIN {
                    printf "%-9s %10d %6d %9.3f %9.2f %9.2f %9s %9s\n", t, size, n, mops,
                        mops * size * 8 / 1000, mops / first, resent, paths }'
        done
    done
done
