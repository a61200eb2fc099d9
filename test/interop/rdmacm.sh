#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Programs that were built against the genuine librdmacm connect through Saker: Debian's
# rdmacm-utils and perftest, unmodified, between two sakers and within one, on the iWARP device and
# on the Falcon device, over IPv4 and IPv6.
. "$(dirname "$0")/common.sh"
install_packages rdmacm-utils perftest jq ||
    skip "Debian's rdmacm-utils and perftest cannot be installed"
lib=$(realpath "$build/drivers/verbs/libsaker-verbs.so")
[ -e "$lib" ] || skip "the preloaded library is not built"
take_memory 400
port=7300

falcon_section 7 >"$work/falcon.ini"
wire_a=(--config "$work/falcon.ini")
wire_b=(--config "$work/falcon.ini")
for address in 10.5.0.1/24 fd05::1/64 fe80::5:1/64; do wire_a+=(--address "0=$address"); done
for address in 10.5.0.2/24 fd05::2/64 fe80::5:2/64; do wire_b+=(--address "0=$address"); done

# at SAKER COMMAND...: becomes a program that uses the saker, for start. Its priority is low, so
# that the sakers run first where cores are few.
at() {
    local s=$1
    shift
    exec nice -n 19 env SAKER_SOCKET="$work/$s.sock" SAKER_DEVICE="$device" \
        LATE_MS="${patience-}" LD_PRELOAD="${patience:+$late:}$lib" "$@"
}

# both NAME SERVER-SAKER CLIENT-SAKER SERVER-COMMAND CLIENT-COMMAND: @ stands for the port. The
# server listens before the client starts.
both() {
    local name=$1 server=$2 client=$3
    port=$((port + 1))
    # shellcheck disable=SC2086
    start "$name.server" at "$server" ${4//@/$port}
    until_true 20 listens "$server" || fail "$name: the server does not listen"
    # shellcheck disable=SC2086
    start "$name.client" at "$client" ${5//@/$port}
    if ! ends "$name.client" 120 || ! ends "$name.server" 60; then
        [[ $name != *" ib_"* ]] || return 1
        fail "$name: the client or the server failed"
    fi
    no_reports "$name.client"
    no_reports "$name.server"
    # The next server's listener must not be mistaken for this one's.
    is_gone "$name" "$server"
    echo "ok    $name"
}
is_gone() { # is_gone NAME SAKER
    until_true 10 nothing_left "$2" ||
        fail "$1 leaves objects behind: $(telemetry "$2" /saker/info)"
}

both_of() { # as both, when an earlier attempt may have left objects behind
    is_gone "$1" "$2"
    both "$@"
}
perftest() { # as both
    patiently "$1" both_of "$@"
}

# fails_with NAME EVENT COMMAND...: the program cannot connect, and prints the event.
fails_with() {
    local name=$1 event=$2
    shift 2
    timeout 60 env SAKER_SOCKET="$work/a.sock" SAKER_DEVICE="$device" LD_PRELOAD="$lib" "$@" \
        >"$work/$name.log" 2>&1
    grep -q "$event" "$work/$name.log" || fail "$name: no $event"
    echo "ok    $name: $event"
}

rpings() {
    both "$device rping, IPv4" b a "rping -s -p @ -C 30 -V -S 1000" \
        "rping -c -a 10.5.0.2 -p @ -C 30 -V -S 1000"
    both "$device rping, IPv6" a b "rping -s -a ::0 -p @ -C 30 -V -S 4000" \
        "rping -c -a fd05::1 -p @ -C 30 -V -S 4000"
    both "$device rping within one saker" a a "rping -s -a 10.5.0.1 -p @ -C 30 -V" \
        "rping -c -a 10.5.0.1 -p @ -C 30 -V"
    both "$device rping with a QP of its own" b a "rping -s -q -p @ -C 30 -V" \
        "rping -c -q -a 10.5.0.2 -p @ -C 30 -V"
}

utilities() {
    both "$device ucmatose" b a "ucmatose -p @ -c 20 -C 20 -S 3000" \
        "ucmatose -s 10.5.0.2 -p @ -c 20 -C 20 -S 3000"
    both "$device ucmatose that migrates" b a "ucmatose -m -p @ -c 3 -C 5" \
        "ucmatose -m -s 10.5.0.2 -p @ -c 3 -C 5"
    both "$device rdma_server and rdma_client" b a "rdma_server -p @" "rdma_client -s 10.5.0.2 -p @"
}

perftests() {
    local t
    for t in ib_send_lat ib_write_lat ib_read_lat ib_send_bw ib_write_bw ib_read_bw; do
        perftest "$device $t -R" b a "$t -R -p @ -n 200 -s 4096 -F" \
            "$t -R -p @ -n 200 -s 4096 -F 10.5.0.2"
    done
    perftest "$device ib_write_bw -R -a, both ways" b a "ib_write_bw -R -p @ -n 20 -a -b -F" \
        "ib_write_bw -R -p @ -n 20 -a -b -F 10.5.0.2"
    # On iWARP ib_send_bw reports its receives by Writes, which do not wake a program that sleeps on
    # a CQ: its two ends may wait for each other.
    t=ib_send_bw
    [ "$device" = iwarp ] && t=ib_read_bw
    perftest "$device $t -R -e, several QPs" b a "$t -R -p @ -n 200 -q 4 -e -F" \
        "$t -R -p @ -n 200 -q 4 -e -F 10.5.0.2"
}

# A thousand connections of one process are opened and closed at once. cmtime's server runs until it
# is killed. Its client prints a table at the end.
thousand() {
    port=$((port + 1))
    start cmtime.server at b cmtime -p $port -c 1000
    until_true 20 listens b || fail "cmtime does not listen"
    start cmtime.client at a cmtime -s 10.5.0.2 -p $port -c 1000
    passes cmtime.client 120
    grep -q "error:" "$work/cmtime.client.log" && fail "cmtime: a connection failed"
    grep -q "^disconnect *:" "$work/cmtime.client.log" || fail "cmtime does not print its table"
    kill "${pid[cmtime.server]}"
    ends cmtime.server 20 2>/dev/null
    is_gone cmtime b
    echo "ok    $device cmtime, 1000 connections: $(awk '/^(create qp|connect|disconnect) *:/ {
        printf "%s%s %d ms", n++ ? ", " : "", $1, $(NF - 3) }' "$work/cmtime.client.log")"
}

datagrams() {
    [ "$device" = falcon ] || return 0
    both "$device udaddy" b a "udaddy -c 5 -C 20" "udaddy -s 10.5.0.2 -c 5 -C 20"
}

refusals() {
    fails_with "$device: no listener" REJECTED rping -c -a 10.5.0.2 -p 7299 -C 1 -d
    [ "$device" = falcon ] ||
        fails_with "$device: no such host" UNREACHABLE rping -c -a 10.5.0.77 -p 7299 -C 1 -d
}

pair --psp none --idle sleep
for device in iwarp falcon; do
    say "$device"
    rpings
    utilities
    perftests
    datagrams
    thousand
    refusals
done
neighbors=$(telemetry a /saker/neighbors)
[ "$(jq 'any(.[]; .address == "10.5.0.2" and .mac != "00:00:00:00:00:00" and .port == 0)' \
    <<<"$neighbors")" = true ] || fail "the neighbours: $neighbors"
echo PASS
