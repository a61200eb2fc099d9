#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# demo.sh [--no-figures | --pcap FOLDER]: demonstrates Saker in a minute. It connects two RNICs by
# shared memory. Between a client at each RNIC, it runs every operation over both transports and
# verifies every byte, and then measures each operation, unless --no-figures is given. With --pcap,
# it keeps captures of the measured frames in FOLDER. In the source tree it builds Saker first;
# elsewhere it uses the installed programs.
#
# Exit status: 0 if every byte was verified and every figure measured. On a busy machine, figures
# may be missing: the table then has "busy" in their place.
set -eu
pcap='' figures=yes
case ${1:-} in
"") ;;
--no-figures) figures=no ;;
--pcap) pcap=$(realpath -m "${2:?demo.sh: --pcap needs a folder}") ;;
*) echo "demo.sh: the options are --no-figures and --pcap FOLDER, not '$1'"; exit 2 ;;
esac
tree=$(realpath "$(dirname "$0")/..")
work=$(mktemp -d /tmp/saker-demo.XXXXXX)
pids=()

say() { echo "== $*"; }
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

# ---- The programs, and memory ----

memory=(--in-memory)
small() {
    echo "continuing without huge pages"
    memory=(--no-huge --no-shconf -m 1024)
}
if [ -f "$tree/meson.build" ]; then
    cd "$tree"
    . test/packages.sh
    say "packages"
    # shellcheck disable=SC2086
    install_packages $saker_build_packages jq
    say "build"
    [ -f build/build.ninja ] || meson setup build >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    ninja -C build >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
    saker=build/app/saker perf=build/app/saker-perf
    say "memory"
    reserve_hugepages 640 || small
else
    saker=saker perf=saker-perf
    PATH=$PATH:/usr/local/sbin:/usr/sbin
    for p in saker saker-perf jq; do
        command -v $p >/dev/null || { echo "demo.sh: $p is not installed"; exit 1; }
    done
    free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null) || free=0
    [ "$free" -ge 640 ] || small
fi

# others: prints how many threads of other programs want a processor, on average.
others() {
    local sum=0 now
    for _ in 1 2 3 4 5; do
        sleep 0.1
        read -r _ _ _ now _ </proc/loadavg
        sum=$((sum + ${now%/*} - 1))
    done
    echo $(((sum + 2) / 5))
}
busy=$(others)
[ "$busy" = 0 ] || say "this machine is busy: $busy other threads want its $(nproc) processors," \
    "so no figure below shows Saker's speed"

# ---- Every byte ----

# rnic NAME CPU ROLE ADDRESS: starts a saker process on one core, with a memif port to the other.
rnic() {
    "$saker" --lcores "0@$2" --no-pci "${memory[@]}" --file-prefix "demo$$$1" \
        --no-telemetry --vdev "net_memif0,role=$3,socket=$work/wire,zero-copy=no" -- \
        --socket "$work/$1.sock" --address "0=$4/24" --idle sleep --falcon yes \
        >"$work/$1.log" 2>&1 &
    pids+=($!)
    for _ in $(seq 600); do
        [ -S "$work/$1.sock" ] && return 0
        kill -0 $! 2>/dev/null || break
        sleep 0.1
    done
    echo "saker '$1' did not start:"; cat "$work/$1.log"; exit 1
}

# exchange TRANSPORT OP SIZE: runs an operation between two client processes, through both RNICs.
# Succeeds if both ends saw every byte of all 20 messages.
exchange() {
    local what=(--transport "$1" --op "$2" --size "$3" --verify --iters 20 --quiet)
    "$perf" --client "$work/b.sock" --listen "${what[@]}" >"$work/serve.log" 2>&1 &
    local serve=$! seen
    for _ in $(seq 1200); do
        grep -q listening "$work/serve.log" && break
        kill -0 $serve 2>/dev/null || break
        sleep 0.05
    done
    seen=$("$perf" --client "$work/a.sock" --connect 10.5.0.2 "${what[@]}" --json \
        2>"$work/run.log" | jq -r '"\(.verified) \(.errors)"') || true
    wait $serve && [ "$seen" = "20 0" ]
}

# verified TRANSPORT OP SIZE: prints yes or no. On a busy machine, a connection whose peer does not
# get a processor in time fails; another attempt follows. Wrong bytes are never tried again.
verified() {
    local attempt
    for attempt in 1 2 3; do
        exchange "$@" && { echo yes; return; }
        ! grep -q "instead of" "$work/serve.log" "$work/run.log" || break
        [ "$attempt" = 3 ] || echo "   ($1 $2 $3, again: $(tail -n 1 "$work/run.log"))" >&2
    done
    echo no
    cat "$work/serve.log" "$work/run.log" >&2
}

# sizes_of OP: prints the message sizes for an operation.
sizes_of() {
    case $1 in
    atomic_*) echo 8 ;;
    write_imm) echo 8 65536 ;;
    *) echo 8 4096 1048576 ;;
    esac
}

say "two RNICs, connected by shared memory"
rnic a 0 server 10.5.0.1
rnic b 1 client 10.5.0.2
say "every operation between two client processes over both transports"
ops="send write read write_imm atomic_fa atomic_cs"
bad=0
printf '%-9s %7s   %s   %s\n' "" bytes iWARP Falcon
for op in $ops; do
    for size in $(sizes_of "$op"); do
        printf '%-9s %7s' "$op" "$size"
        for t in iwarp falcon; do
            right=$(verified $t "$op" "$size")
            printf '   %-5s' "$right"
            [ "$right" = yes ] || bad=1
        done
        echo
    done
done
stop_rnics # the measurement needs their cores
[ $bad = 0 ] || { echo "demo.sh: the verification of at least one operation has failed"; exit 1; }
say "every byte compared"
[ $figures = yes ] || exit 0

# ---- Every figure ----

# measured TRANSPORT OP TEST SIZE: measures an operation for a quarter of a second, and prints the
# result as JSON.
measured() {
    local mtu=1500
    [ "$4" -lt 4096 ] || mtu=9000
    "$perf" --no-pci "${memory[@]}" --no-telemetry --file-prefix "demo$$e" --lcores 0@0,1@1 -- \
        --transport "$1" --op "$2" --test "$3" --size "$4" --mtu $mtu --duration 250ms \
        --rounds 2 --warm-up 50 --no-floor --json --quiet \
        ${pcap:+--pcap "$pcap/$1-$2-$3-$4.pcap"} 2>"$work/measured.log"
}

# cells TRANSPORT OP SIZE: prints the median and the 99th percentile in us, then Gb/s and million
# operations per second. Fails when three attempts have failed.
cells() {
    local test=rate lat rate
    [ "$3" -lt 4096 ] || test=bw
    for _ in 1 2 3; do
        lat=$(measured "$1" "$2" lat "$3") && rate=$(measured "$1" "$2" $test "$3") || continue
        jq -rn --argjson lat "$lat" --argjson rate "$rate" \
            '"\($lat.p50_ns / 1000) \($lat.p99_ns / 1000) \($rate.gbps) \($rate.mops)"'
        return
    done
    return 1
}

# row NUMBER...: prints each number with as many digits as its column has room for.
row() {
    awk -v numbers="$*" 'BEGIN {
        n = split(numbers, v, " ")
        split("7 8 7 7", width, " ")
        for (i = 1; i <= n; i++) {
            for (d = 3; d > 0 && length(sprintf("%.*f", d, v[i])) > width[i] - 1; d--)
                ;
            s = sprintf("%.*f", d > 2 && i < 4 ? 2 : d, v[i])
            printf "%*s", width[i], length(s) < width[i] ? s : sprintf("%.0e", v[i])
        }
    }'
}

say "every operation measured, both ends in one process on two cores: microseconds"
echo "== (median, 99th percentile), gigabits and million operations per second"
printf '%-9s %7s |%29s |%29s\n' "" bytes "iWARP          " "Falcon, no PSP      "
printf '%-9s %7s |%7s%8s%7s%7s |%7s%8s%7s%7s\n' "" "" p50 p99 Gb/s Mop/s p50 p99 Gb/s Mop/s
lost=0
for op in $ops; do
    for size in $(sizes_of "$op"); do
        printf '%-9s %7s' "$op" "$size"
        for t in iwarp falcon; do
            if found=$(cells $t "$op" "$size"); then
                # shellcheck disable=SC2086 # four numbers
                printf ' |%s' "$(row $found)"
            else
                lost=$((lost + 1))
                printf ' |%29s' busy
                echo "$t $op $size: $(tail -n 1 "$work/measured.log")" >>"$work/lost"
            fi
        done
        echo
    done
done
if [ $lost -gt 0 ]; then
    echo "$lost measurements failed three times:"
    cat "$work/lost"
    [ "$busy" != 0 ] || [ "$(others)" != 0 ] || exit 1
    echo "Other programs use the processors of this machine, so it is too busy to measure."
fi
say "done: every byte verified"
