#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Interoperation with Linux: a guest with Debian's kernel and siw against a saker client, over
# vhost-user. Stock rping as client and as server, and every RFC 5040 operation in both directions
# with either side connecting, over IPv4 and IPv6, at MPA revisions 1 and 2, on a plain wire and on
# one that loses and reorders. With $CI_LONG set every combination runs in full, else a short
# selection.
. "$(dirname "$0")/common.sh"
one_guest
take_memory 256
# Port 0 is a plain wire to the guest's eth0. net_impair0 is a hostile wire to its eth1.
plain=net_vhost0 hostile=net_impair0
# siw overlooks a first FPDU that arrives while it still returns from the function that sent the
# reply (doc/debugging.md). The guest is emulated, and slow on a busy machine.
export SAKER_MPA_FIRST_FPDU_DELAY=500ms
saker host 0@0 "net_vhost0,iface=$work/plain" "net_vhost1,iface=$work/hostile" \
    "net_impair0,port=net_vhost1,seed=${SAKER_SEED:-11},drop=0.01,reorder=0.01" -- \
    --address $plain=10.66.0.1/24 --address $plain=fd66::1/64 \
    --address $hostile=10.67.0.1/24 --address $hostile=fd67::1/64
boot_guest "vhost=$work/plain,10.66.0.2/24,fd66::2/64" \
    "vhost=$work/hostile,10.67.0.2/24,fd67::2/64"
port=7100

# from_guest NAME HOST-COMMAND GUEST-COMMAND: the guest connects. Either command may end in "@" for
# the port.
from_guest() {
    local status
    port=$((port + 1))
    # shellcheck disable=SC2086
    start server timeout 180 ${2//@/$port}
    until_true 60 says_or_ends server listening
    guest -t 150 "${3//@/$port}" >"$work/client.log" 2>&1
    status=$?
    ends server 200 || status=1
    verdict $status "$1" "$work/server.log" "$work/client.log"
}
# to_guest NAME HOST-COMMAND GUEST-COMMAND: the host connects.
to_guest() {
    local status
    port=$((port + 1))
    start server guest -t 170 "${3//@/$port}"
    guest_listens 30 $port
    # shellcheck disable=SC2086
    timeout 150 ${2//@/$port} >"$work/client.log" 2>&1
    status=$?
    ends server 200 || status=1
    verdict $status "$1" "$work/server.log" "$work/client.log"
}

sock=$work/host.sock bin=$(realpath "$interop")
peer=$bin/saker_peer rping=$bin/saker_rping verbs=$bin/verbs_peer
cases=$bin/saker_cases guest_cases=$bin/verbs_cases

rping_both() { # rping_both NAME HOST-ADDRESS GUEST-ADDRESS ROUNDS SIZE
    from_guest "rping in the guest as client, $1" "$rping $sock server @ $4 $5" \
        "rping -c -V -a $2 -p @ -C $4 -S $5"
    to_guest "rping in the guest as server, $1" "$rping $sock client $3 @ $4 $5" \
        "rping -s -V -a $3 -p @ -C $4 -S $5"
}
operations() { # operations NAME HOST-ADDRESS GUEST-ADDRESS HOST-OPTIONS QUICK
    from_guest "every operation, the guest connects, $1" "$peer $sock listen any @ $5 $4" \
        "$verbs connect $2 @ $5"
    to_guest "every operation, saker connects, $1" "$peer $sock connect $3 @ $5 $4" \
        "$verbs listen $3 @ $5"
}

# Start-up (RFC 6581): depths, ready-to-receive messages, rejections, and Atomics (RFC 7306), which
# siw does not implement. A second listener at the next port has a stream that the cases must not
# disturb.
startup_cases() { # startup_cases NAME HOST-ADDRESS GUEST-ADDRESS
    local status=0 ways
    port=$((port + 2))
    start server guest -t 140 "$guest_cases listen $3 $port"
    start neighbour guest -t 140 "$guest_cases listen $3 $((port + 1))"
    guest_listens 30 $port
    guest_listens 30 $((port + 1))
    timeout 140 "$cases" "$sock" connect "$3" $port >"$work/client.log" 2>&1 || status=1
    ends server 200 || status=1
    ends neighbour 200 || status=1
    ways=$(grep -c "^ok" "$work/client.log")
    verdict $status "start-up in $ways ways, Atomics refused, saker connects, $1" \
        "$work/server.log" "$work/neighbour.log" "$work/client.log"
    port=$((port + 1))
    from_guest "start-up, Atomics refused, the guest connects, $1" "$cases $sock listen @" \
        "$guest_cases connect $2 @"
    port=$((port + 1))
}
# siw accepts a Write or a Read as ready-to-receive message, and receives a Terminate (code 7) if
# only a Send was offered. The guest kernel's iw_cm does not survive a stream that ends before it
# was established: this case is the last, and the script does not wait for the guest's program.
no_common_rtr() { # no_common_rtr GUEST-ADDRESS
    port=$((port + 1))
    start server guest -t 60 "$guest_cases listen $1 $port"
    guest_listens 30 $port
    timeout 60 "$cases" "$sock" send "$1" $port >"$work/client.log" 2>&1
    verdict $? "no ready-to-receive message in common" "$work/client.log"
}

quick=quick
[ -n "${CI_LONG:-}" ] && quick=
rping_both "IPv4" 10.66.0.1 10.66.0.2 20 1000
rping_both "IPv6" fd66::1 fd66::2 20 1000
startup_cases "IPv4" 10.66.0.1 10.66.0.2
operations "IPv4, revision 2" 10.66.0.1 10.66.0.2 "rev2" $quick
operations "IPv6, revision 1" fd66::1 fd66::2 "rev1" quick
rping_both "IPv4, hostile wire" 10.67.0.1 10.67.0.2 20 1000
operations "IPv4, hostile wire" 10.67.0.1 10.67.0.2 "rev2" quick
if [ -n "${CI_LONG:-}" ]; then
    startup_cases "IPv6" fd66::1 fd66::2
    startup_cases "IPv4, hostile wire" 10.67.0.1 10.67.0.2
    rping_both "IPv4, 64 KiB" 10.66.0.1 10.66.0.2 200 65000
    rping_both "IPv6, hostile wire" fd67::1 fd67::2 100 30000
    operations "IPv4, revision 1" 10.66.0.1 10.66.0.2 "rev1" ""
    operations "IPv6, revision 2" fd66::1 fd66::2 "rev2" ""
    operations "IPv4, no CRC" 10.66.0.1 10.66.0.2 "rev2 nocrc" ""
    operations "IPv6, hostile wire" fd67::1 fd67::2 "rev2" ""
fi
no_common_rtr 10.66.0.2
conclude host
