#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Ten thousand connected and idle QPs: their cost for a working one, and their cost in memory. The
# rates are printed and decide nothing: they depend on the machine as much as on Saker.
. "$(dirname "$0")/perf.inc"
many=${CI_POPULATION:-10000}
take_memory 640
# shellcheck disable=SC2034 # perf() reads it
limit=600

measure() { # measure NAME IDLE
    perf "$1" --lcores 0@0,1@1 -- --op write --test rate --size 64 --iters 1000000 --rounds 5 \
        --no-floor --idle-qps "$2" || fail "saker-perf with $2 idle QPs: status $?"
    [ "$(jq .errors "$work/$1.json")" = 0 ] || fail "$2 idle QPs: $(cat "$work/$1.json")"
    [ "$(jq .idle_qps "$work/$1.json")" = "$2" ] ||
        fail "saker-perf made $(jq .idle_qps "$work/$1.json") of $2 idle QPs"
}
export MALLOC_ARENA_MAX=1
rounds=3
say "one idle QP and $many, in turn, $rounds times"
for i in $(seq $rounds); do
    measure "one$i" 1
    measure "many$i" "$many"
done
best() { jq -s 'map(.mops) | max' "$work/$1"[0-9]*.json; }
ratio=$(jq -n "$(best many) / $(best one)")
echo "64-byte Writes, the best of $rounds: $(best one) Mop/s beside one idle QP," \
    "$(best many) beside $many: ratio $ratio (wanted: 0.95)"

private=$(counted many1 active engine private_bytes_per_qp)
shared=$(counted many1 active engine shared_bytes_per_qp)
growth() { # growth WHAT: prints the bytes that the process grew by for each QP and end
    local few lots
    few=$(counted one1 active process "$1")
    lots=$(counted many1 active process "$1")
    echo $(((lots - few) / (2 * (many - 1))))
}
malloced=$(growth malloc_bytes)
resident=$(growth resident_bytes)
echo "an idle connected QP with 16-deep queues, by the sizes of its objects:" \
    "$private bytes private to the engine, $shared bytes shared"
echo "by the process' growth, for each end: $malloced bytes from malloc" \
    "(engine and client library);" \
    "$resident bytes resident, $((resident - shared)) without the shared ones"
[ "$private" -gt 0 ] && [ "$private" -le 4096 ] || fail "$private private bytes for an idle QP"
[ "$malloced" -le 4096 ] ||
    fail "the process grew by $malloced bytes from malloc for each end of an idle QP"
[ "$malloced" -ge $((private / 4)) ] ||
    fail "$malloced bytes from malloc are too few for the engine's part of a QP ($private)"
