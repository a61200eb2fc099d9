#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Unmodified verbs programs of Debian run under saker-run, between two sakers joined by net_memif:
# the programs that list devices, perftest, the pingpongs of libibverbs. Further: a program of the
# project that provokes errors, programs that are killed, and a program that runs two hundred times.
# Data is compared where the program can do so.
#
#   test/interop/verbs.sh [iwarp|falcon|moved|killed|repeated|many|bereft...]
. "$(dirname "$0")/common.sh"
[ -x "$build/app/saker-run" ] ||
    skip "saker-run is not built: no headers of libibverbs and librdmacm"
for p in ibv_devinfo rping ib_write_lat; do
    command -v $p >/dev/null || skip "$p is not installed: ibverbs-utils, rdmacm-utils, perftest"
done
take_memory 900
port=18600
table=()

# pair_of NAME PROGRAM ARGS...: runs a server at b, and a client at a, and adds them to the table.
pair_of() {
    local name=$1 begin=$SECONDS
    shift
    between "$name" "$to" "$@"
    table+=("$device: $*")
    echo "$device: $* ($((SECONDS - begin)) s)"
}

# perftest NAME PROGRAM ARGS...: uses a port of its own. $how holds the options by which its queue
# pairs connect.
perftest() {
    local name=$1 program=$2
    shift 2
    port=$((port + 1))
    # shellcheck disable=SC2086 # $how is a list of words
    pair_of "$name" "$program" -d "$device" $how -p "$port" "$@"
}

value() { telemetry "$1" /saker/info | jq ".$2"; }
has_qps() { [ "$(value "$1" qps)" -gt 0 ]; }
# program_of NAME: prints the id of the program's process, which is timeout's child.
program_of() { pgrep -P "${pid[$1]}"; }
has_begun() { program_of "$1" >/dev/null || has_ended "$1"; }
# huge_kb: prints the kilobytes of huge pages that the two sakers hold.
huge_kb() {
    awk '$1 == "HugetlbPages:" { n += $2 } END { print n + 0 }' \
        "/proc/${pid[a]}/status" "/proc/${pid[b]}/status"
}

say "two sakers joined by memif"
falcon_section 3 >"$work/falcon.ini"
wire_a=(--config "$work/falcon.ini" --address "0=10.5.0.1/24" --address "0=fd05::1/64")
wire_b=(--config "$work/falcon.ini" --address "0=10.5.0.2/24" --address "0=fd05::2/64")
pair --idle sleep
huge=$(huge_kb)

say "devices"
at a ibv_devices >"$work/devices.log" || fail ibv_devices
at a ibv_devinfo -v >"$work/devinfo.log" || fail ibv_devinfo
for d in saker0 sakerf0; do
    grep -q $d "$work/devices.log" || fail "ibv_devices does not list $d"
    grep -q "hca_id:[[:space:]]*$d" "$work/devinfo.log" || fail "ibv_devinfo does not list $d"
done
grep -q "iWARP (1)" "$work/devinfo.log" && grep -q "InfiniBand (0)" "$work/devinfo.log" ||
    fail "ibv_devinfo shows other transports than iWARP and InfiniBand"
grep -q "GID\[.*10.5.0.1" "$work/devinfo.log" || fail "the Falcon device has no GID for its address"

# over_cm DEVICE: runs all programs that connect over rdma_cm.
over_cm() {
    local op
    device=$1
    export SAKER_DEVICE=iwarp
    [ "$device" = sakerf0 ] && export SAKER_DEVICE=falcon
    say "$device: every operation, every byte compared, over rdma_cm"
    port=$((port + 1))
    start exchange.server at b "$interop/verbs_peer" listen 10.5.0.2 $port quick
    until_true 60 log_says exchange.server listening || fail "verbs_peer does not listen"
    at a "$interop/verbs_peer" connect 10.5.0.2 $port quick >"$work/exchange.client.log" 2>&1 ||
        fail "verbs_peer's client failed"
    passes exchange.server 60

    say "$device: perftest over rdma_cm"
    how=-R to=10.5.0.2
    for op in send write read; do
        perftest $op-lat ib_${op}_lat -a -n 5
        perftest $op-bw ib_${op}_bw -a -n 10
    done
    perftest both ib_send_bw -a -n 10 -b
    perftest several ib_write_bw -s 65536 -n 50 -q 4
    perftest event ib_send_lat -s 4096 -n 50 -e
    perftest event-bw ib_read_bw -s 4096 -n 1000 -e
    # On iWARP perftest reports its receives by Writes, which do not wake a program that sleeps on a
    # CQ: there its two ends may wait for each other.
    [ "$device" = saker0 ] || perftest event-send ib_send_bw -s 4096 -n 1000 -e
    perftest inline ib_write_lat -s 64 -n 100 -I 64
    perftest atomic-lat ib_atomic_lat -n 50
    perftest atomic-bw ib_atomic_bw -n 100 -A CMP_AND_SWAP

    say "$device: errors"
    at a "$interop/verbs_errors" 10.5.0.1 >"$work/errors.log" 2>&1 ||
        fail "verbs reports another error than its specification demands"
    grep -c "^ok" "$work/errors.log" | sed 's/$/ errors as verbs specifies them/'
    clean a b
    unset SAKER_DEVICE
}
part_iwarp() { over_cm saker0; }
part_falcon() { over_cm sakerf0; }

# pingpong NAME PROGRAM ARGS...
pingpong() {
    local name=$1 program=$2
    shift 2
    port=$((port + 1))
    pair_of "$name" "$program" -d sakerf0 -g 0 -p $port "$@"
}

part_moved() {
    local op
    say "sakerf0: queue pairs modified by the program, datagrams, XRC"
    device=sakerf0 to=127.0.0.1 how="-x 0"
    for op in send write read; do
        perftest $op-lat ib_${op}_lat -a -n 5
        perftest $op-bw ib_${op}_bw -a -n 10
    done
    perftest atomic-bw ib_atomic_bw -n 100
    pingpong rc ibv_rc_pingpong -n 200 -c
    pingpong rc-events ibv_rc_pingpong -n 200 -c -e
    pingpong srq ibv_srq_pingpong -n 100 -q 4 -c
    pingpong ud ibv_ud_pingpong -n 200 -s 1000
    pingpong xsrq ibv_xsrq_pingpong -n 100 -c 1
    clean a b
}

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
no_page_kept() {
    [ "$(huge_kb)" -le "$huge" ] ||
        fail "the sakers held $huge kB of huge pages before, and hold $(huge_kb) now"
}

# Kills a program during a transfer. Its peer receives a disconnect event.
killed_at_work() {
    local since
    start rping.server at b rping -s -v
    until_true 60 listens b || fail "rping does not listen"
    start rping.client at a rping -c -a 10.5.0.2 -C 1000000
    until_true 60 has_qps a && until_true 60 has_qps b || fail "rping does not begin"
    kill -KILL "$(program_of rping.client)" || fail "no rping to kill"
    since=$(now_ms)
    clean a
    since=$(($(now_ms) - since))
    ends rping.client 60 2>/dev/null
    ends rping.server 60
    log_says rping.server DISCONNECT ||
        fail "the peer of a killed program receives no disconnect event"
    clean a b
    echo "$SAKER_DEVICE: the peer was disconnected, nothing was left $since ms after the kill"
}

# Kills programs after a delay, in which the client has not begun, attaches, registers, connects or
# works.
killed_anywhere() {
    local ms program
    for ms in 1 3 5 8 12 17 23 30 40 60 90 150; do
        start server at b ib_write_bw -R -p $((++port)) -s 65536 -n 100000
        until_true 60 listens b || fail "ib_write_bw does not listen"
        start client at a ib_write_bw -R -p $port -s 65536 -n 100000 10.5.0.2
        sleep "0.$(printf %03d "$ms")"
        for program in client server; do
            # On a busy machine, timeout may not have started the program yet.
            until_true 60 has_begun $program || fail "$program does not begin"
            kill -KILL "$(program_of $program)" 2>/dev/null
            ends $program 60 2>/dev/null
        done
        clean a b
    done
    echo "$SAKER_DEVICE: killed at twelve points, nothing was left"
}

part_killed() {
    say "programs that are killed"
    for SAKER_DEVICE in iwarp falcon; do
        export SAKER_DEVICE
        killed_at_work
        killed_anywhere
    done
    unset SAKER_DEVICE
    no_page_kept
}

part_repeated() {
    say "a program two hundred times in a row"
    for n in $(seq 100); do
        for SAKER_DEVICE in iwarp falcon; do
            export SAKER_DEVICE
            at a "$interop/verbs_life" 10.5.0.1 once >"$work/once.log" 2>&1 || fail "run $n"
        done
    done
    unset SAKER_DEVICE
    clean a b
    no_page_kept
}

part_bereft() {
    say "the saker ends before its programs"
    for SAKER_DEVICE in iwarp falcon; do
        export SAKER_DEVICE
        start bereft at a "$interop/verbs_life" 10.5.0.1 bereft
        until_true 60 log_says bereft ready || fail "verbs_life does not begin"
        kill -KILL "${pid[a]}"
        ends a 60 2>/dev/null
        passes bereft 120
        kill "${pid[b]}"
        ends b 60
        rm -f "$work"/[ab].sock "$work/wire"
        pair --idle sleep
    done
    unset SAKER_DEVICE
}

part_many() {
    say "a thousand queue pairs in one process"
    for SAKER_DEVICE in iwarp falcon; do
        export SAKER_DEVICE
        at a "$interop/verbs_life" 10.5.0.1 many 500 >"$work/many.log" 2>&1 ||
            fail "a thousand queue pairs"
        echo "$SAKER_DEVICE: $(cat "$work/many.log")"
    done
    unset SAKER_DEVICE
    clean a b
}

parts=("$@")
[ $# -gt 0 ] || parts=(iwarp falcon moved killed repeated many bereft)
for part in "${parts[@]}"; do
    "part_$part" || fail "no part $part"
done
echo "${#table[@]} runs of perftest and pingpongs"
echo PASS
