#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Saker in two minutes: builds it, joins two RNICs by a shared-memory wire, runs every operation between a client at each with every byte verified, and
# measures each operation in the benchmark harness. `app/demo.sh --pcap FOLDER` also keeps captures of the measured wire.
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
reserve_hugepages 640 || { echo "going on without huge pages"; memory=(--no-huge --no-shconf -m 1024); }

# rnic NAME CPU ROLE ADDRESS: a saker process on one core, its memif port towards the other.
rnic() {
    build/app/saker --lcores "0@$2" --no-pci "${memory[@]}" --file-prefix "demo$$$1" --no-telemetry \
        --vdev "net_memif0,role=$3,socket=$work/wire,zero-copy=no" -- \
        --socket "$work/$1.sock" --address "0=$4/24" --idle sleep >"$work/$1.log" 2>&1 &
    pids+=($!)
    for _ in $(seq 300); do
        [ -S "$work/$1.sock" ] && return 0
        kill -0 $! 2>/dev/null || break
        sleep 0.1
    done
    echo "saker '$1' did not start:"; cat "$work/$1.log"; exit 1
}
say "two RNICs, joined by shared memory"
rnic a 0 server 10.5.0.1
rnic b 1 client 10.5.0.2

# A client of a running saker needs no huge pages of its own; what embeds two engines does.
client() { build/app/saker-perf --no-pci --no-huge --no-shconf -m 64 --no-telemetry --file-prefix "demo$$p$RANDOM" "$@"; }
embedded() { build/app/saker-perf --no-pci "${memory[@]}" --no-telemetry --file-prefix "demo$$e" "$@"; }

# verified OP SIZE: between two client processes, through both RNICs; prints yes or no.
verified() {
    client --lcores 0@1 -- --client "$work/b.sock" --listen --op "$1" --size "$2" --verify --iters 20 --quiet \
        >"$work/serve.log" 2>&1 &
    local serve=$! n
    for _ in $(seq 300); do
        grep -q listening "$work/serve.log" && break
        kill -0 $serve 2>/dev/null || break
        sleep 0.1
    done
    n=$(client --lcores 0@0 -- --client "$work/a.sock" --connect 10.5.0.2 --op "$1" --size "$2" --verify --iters 20 \
        --quiet --json 2>"$work/run.log" | jq -r '"\(.verified) \(.errors)"') || true
    if wait $serve && [ "$n" = "20 0" ]; then echo yes; else
        echo no
        cat "$work/serve.log" "$work/run.log" >&2
    fi
}

measured() { # measured OP TEST SIZE MTU ITERS
    embedded --lcores 0@0,1@1 -- --op "$1" --test "$2" --size "$3" --mtu "$4" --iters "$5" --json --quiet \
        ${pcap:+--pcap "$pcap/$1-$2-$3.pcap"} 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
}

say "every operation between two client processes, every byte compared"
ops="send write read write_imm atomic_fa atomic_cs"
sizes_of() { # sizes_of OP
    case $1 in
    atomic_*) echo 8 ;;
    write_imm) echo 8 4096 65536 ;;
    *) echo 8 64 4096 65536 1048576 ;;
    esac
}
declare -A right
bad=0
for op in $ops; do
    for size in $(sizes_of "$op"); do
        right[$op$size]=$(verified "$op" "$size")
        [ "${right[$op$size]}" = yes ] || bad=1
        echo "   $op $size: ${right[$op$size]}"
    done
done
stop_rnics # they would share the cores with what is measured next

say "every operation measured, both ends in one process on two cores"
row='%-9s %9s %10s %10s %9s %9s  %s\n'
# shellcheck disable=SC2059
printf "$row" op size 'p50[us]' 'p99[us]' 'Gb/s' 'Mop/s' verified
for op in $ops; do
    for size in $(sizes_of "$op"); do
        iters=20000 stream=200000 mtu=1500 test=rate
        [ "$size" -ge 4096 ] && iters=4000 stream=20000 mtu=9000 test=bw
        [ "$size" -ge 1048576 ] && iters=500 stream=1000
        lat=$(measured "$op" lat "$size" $mtu $iters)
        rate=$(measured "$op" $test "$size" $mtu $stream)
        # shellcheck disable=SC2059
        printf "$row" "$op" "$size" "$(jq '.p50_ns / 1000' <<<"$lat")" "$(jq '.p99_ns / 1000' <<<"$lat")" \
            "$(jq .gbps <<<"$rate")" "$(jq .mops <<<"$rate")" "${right[$op$size]}"
    done
done
[ $bad = 0 ] || { echo "not every byte was right"; exit 1; }
say "done: every byte verified"
