#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# demo.sh [--pcap FOLDER]: demonstrates Saker in a minute. It builds Saker and connects two RNICs by
# shared memory. Between a client at each RNIC, it runs every operation over both transports and
# verifies every byte, and then measures each operation. With --pcap, it keeps captures of the
# measured frames in FOLDER.
set -eu
cd "$(dirname "$0")/.."
. test/packages.sh
pcap=
[ "${1:-}" = --pcap ] && pcap=$2

say() { echo "== $*"; }

work=$(mktemp -d /tmp/saker-demo.XXXXXX)
pids=()
stop_rnics() {
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
    for p in "${pids[@]}"; do wait "$p" 2>/dev/null || true; done
    pids=()
}
finish() {
    stop_rnics
    rm -rf "$work"
}
trap finish EXIT

say "packages"
# shellcheck disable=SC2086
install_packages $saker_build_packages jq
say "build"
[ -f build/build.ninja ] || meson setup build >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
ninja -C build >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
say "memory"
memory=(--in-memory)
reserve_hugepages 640 || {
    echo "continuing without huge pages"
    memory=(--no-huge --no-shconf -m 1024)
}

# rnic NAME CPU ROLE ADDRESS: starts a saker process on one core, with a memif port to the other.
rnic() {
    build/app/saker --lcores "0@$2" --no-pci "${memory[@]}" --file-prefix "demo$$$1" \
        --no-telemetry --vdev "net_memif0,role=$3,socket=$work/wire,zero-copy=no" -- \
        --socket "$work/$1.sock" --address "0=$4/24" --idle sleep --falcon yes \
        >"$work/$1.log" 2>&1 &
    pids+=($!)
    for _ in $(seq 300); do
        [ -S "$work/$1.sock" ] && return 0
        kill -0 $! 2>/dev/null || break
        sleep 0.1
    done
    echo "saker '$1' did not start:"; cat "$work/$1.log"; exit 1
}
say "two RNICs, connected by shared memory"
rnic a 0 server 10.5.0.1
rnic b 1 client 10.5.0.2

# A client of a running saker needs no huge pages. saker-perf with two engines in its process does.
client() {
    build/app/saker-perf --no-pci --no-huge --no-shconf -m 64 --no-telemetry \
        --file-prefix "demo$$p$RANDOM" "$@"
}
embedded() {
    build/app/saker-perf --no-pci "${memory[@]}" --no-telemetry --file-prefix "demo$$e" "$@"
}

# verified TRANSPORT OP SIZE: runs an operation between two client processes, through both RNICs,
# and prints yes or no.
verified() {
    local what=(--transport "$1" --op "$2" --size "$3" --verify --iters 20 --quiet)
    client --lcores 0@1 -- --client "$work/b.sock" --listen "${what[@]}" \
        >"$work/serve.log" 2>&1 &
    local serve=$! n
    for _ in $(seq 300); do
        grep -q listening "$work/serve.log" && break
        kill -0 $serve 2>/dev/null || break
        sleep 0.1
    done
    n=$(client --lcores 0@0 -- --client "$work/a.sock" --connect 10.5.0.2 "${what[@]}" --json \
        2>"$work/run.log" | jq -r '"\(.verified) \(.errors)"') || true
    if wait $serve && [ "$n" = "20 0" ]; then echo yes; else
        echo no
        cat "$work/serve.log" "$work/run.log" >&2
    fi
}

# measured TRANSPORT OP TEST SIZE MTU ITERS: measures an operation and prints the result as JSON.
measured() {
    embedded --lcores 0@0,1@1 -- --transport "$1" --op "$2" --test "$3" --size "$4" \
        --mtu "$5" --iters "$6" --json --quiet \
        ${pcap:+--pcap "$pcap/$1-$2-$3-$4.pcap"} 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
}

say "every operation between two client processes over both transports, every byte compared"
transports="iwarp falcon"
ops="send write read write_imm atomic_fa atomic_cs"
# sizes_of OP: prints the message sizes for an operation.
sizes_of() {
    case $1 in
    atomic_*) echo 8 ;;
    write_imm) echo 8 65536 ;;
    *) echo 8 4096 1048576 ;;
    esac
}
declare -A right
bad=0
for op in $ops; do
    for size in $(sizes_of "$op"); do
        for t in $transports; do
            right[$t$op$size]=$(verified "$t" "$op" "$size")
            [ "${right[$t$op$size]}" = yes ] || bad=1
        done
        echo "   $op $size: iWARP ${right[iwarp$op$size]}, Falcon ${right[falcon$op$size]}"
    done
done
stop_rnics # the measurement needs their cores

# cells TRANSPORT OP SIZE: prints the median and the 99th percentile in us, then Gb/s and million
# operations per second.
cells() {
    local iters=10000 stream=100000 mtu=1500 test=rate lat rate
    [ "$3" -ge 4096 ] && iters=2000 stream=10000 mtu=9000 test=bw
    [ "$3" -ge 1048576 ] && iters=200 stream=500
    lat=$(measured "$1" "$2" lat "$3" $mtu $iters)
    rate=$(measured "$1" "$2" $test "$3" $mtu $stream)
    echo "$(jq -r '"\(.p50_ns / 1000) \(.p99_ns / 1000)"' <<<"$lat")" \
        "$(jq -r '"\(.gbps) \(.mops)"' <<<"$rate")"
}

say "every operation measured, both ends in one process on two cores: p50[us] p99[us] Gb/s Mop/s"
printf '%-9s %8s | %-41s | %s\n' "" "" iWARP "Falcon (no PSP)"
for op in $ops; do
    for size in $(sizes_of "$op"); do
        printf '%-9s %8s' "$op" "$size"
        for t in $transports; do
            # shellcheck disable=SC2046,SC2183
            printf ' | %8.2f %8.2f %8.2f %8.3f %-5s' $(cells "$t" "$op" "$size") \
                "${right[$t$op$size]}"
        done
        echo
    done
done
[ $bad = 0 ] || { echo "the verification of at least one operation has failed"; exit 1; }
say "done: every byte verified"
