#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Many connected and idle QPs, of each transport: more than there are local ports for one address
# and one listener port. It prints how fast they connect, what they cost a working QP in speed, and
# what they cost in memory. The rates decide nothing: they depend on the machine as much as on
# Saker. --long (CI_LONG) connects 100 000.
. "$(dirname "$0")/perf.inc"
many=${CI_POPULATION:-20000} rounds=1
[ -z "${CI_LONG:-}" ] || many=${CI_POPULATION:-100000} rounds=3
available=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
needed=$((1200 + many / 40)) # MiB
[ "$available" -ge $needed ] || skip "the test needs $needed MiB of memory, $available are free"
take_memory 640
# shellcheck disable=SC2034 # perf() reads it
limit=600
export MALLOC_ARENA_MAX=1

measure() { # measure NAME TRANSPORT IDLE
    perf "$1" --lcores 0@0,1@1 -- --transport "$2" --op write --test rate --size 64 \
        --iters 500000 --rounds 5 --no-floor --idle-qps "$3" ||
        fail "saker-perf with $3 idle QPs: status $?"
    [ "$(jq -r '"\(.errors) \(.connects)"' "$work/$1.json")" = "0 $(($3 + 1))" ] ||
        fail "$3 idle QPs: $(cat "$work/$1.json")"
}
best() { jq -s "map(.$2) | max" "$work/$1"[0-9]*.json; } # best RUNS FIGURE

growth() { # growth TRANSPORT WHAT: prints the bytes that the process grew by for each QP and end
    local few lots
    few=$(counted "$1one1" active process "$2")
    lots=$(counted "$1many1" active process "$2")
    echo $(((lots - few) / (2 * (many - 1))))
}

report() { # report TRANSPORT MOST-BYTES
    local ratio shared resident
    ratio=$(jq -n "$(best "$1many" mops) / $(best "$1one" mops)")
    shared=$(counted "$1many1" active engine shared_bytes_per_qp)
    resident=$(growth "$1" resident_bytes)
    echo "$1: $many QPs connected at $(best "$1many" connects_per_s) per second"
    echo "$1, 64-byte Writes, the best round: $(best "$1one" mops) Mop/s beside one idle QP," \
        "$(best "$1many" mops) beside $many: ratio $ratio (wanted: 0.95)"
    echo "$1, by the process' growth, for each connection and end: $resident bytes resident" \
        "(at most $2), of which $shared are shared with the client;" \
        "$(growth "$1" malloc_bytes) from malloc"
    [ "$resident" -gt "$shared" ] && [ "$resident" -le "$2" ] ||
        fail "$1: $resident bytes resident for each connection and end"
}

for transport in iwarp falcon; do
    say "$transport: one idle QP and $many in turn, rounds: $rounds"
    for i in $(seq $rounds); do
        measure "${transport}one$i" $transport 1
        measure "${transport}many$i" $transport "$many"
    done
done
report iwarp 4096
report falcon 6144

private=$(counted iwarpmany1 active engine private_bytes_per_qp)
malloced=$(growth iwarp malloc_bytes)
echo "an idle connected iWARP QP with 16-deep queues, by the sizes of its objects:" \
    "$private bytes private to the engine"
[ "$private" -gt 0 ] && [ "$private" -le 4096 ] || fail "$private private bytes for an idle QP"
[ "$malloced" -le 4096 ] ||
    fail "the process grew by $malloced bytes from malloc for each end of an idle QP"
[ "$malloced" -ge $((private / 4)) ] ||
    fail "$malloced bytes from malloc are too few for the engine's part of a QP ($private)"

say "beyond the memory of the machine, there is a sentence"
perf beyond --lcores 0@0,1@1 -- --qps 65536 --depth 8192 && fail "512 GiB of queues were made"
grep -q "^saker-perf: no memory for 65536 QPs" "$work/beyond.log" || fail "there is no sentence"
