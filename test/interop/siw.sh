#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Linux agrees: a guest with Debian's kernel and siw against a saker client, over vhost-user. Stock rping as client and as server, and every RFC 5040
# operation in both directions with either side connecting, over IPv4 and IPv6, at MPA revisions 1 and 2, on a plain wire and on one that
# loses and reorders. With $CI_LONG set every combination runs in full; without, a short selection.
set -u
cd "$(dirname "$0")/../.." || exit 1
. test/packages.sh
build=${SAKER_BUILD:-build}
work=$(mktemp -d /tmp/saker-siw.XXXXXX)
export SAKER_GUEST_NAME=siw$$
saker=
finish() {
    test/interop/guest.py stop
    [ -n "$saker" ] && kill "$saker" 2>/dev/null && wait "$saker" 2>/dev/null
    rm -rf "$work" "${SAKER_GUEST_DIR:-${TMPDIR:-/tmp}/saker-guest}/$SAKER_GUEST_NAME"
}
trap finish EXIT

test/interop/guest.py build >"$work/build.log" 2>&1 ||
    { tail -n 3 "$work/build.log"; echo "no guest with siw can be made here: $(tail -n 1 "$work/build.log")"; exit 77; }
reserve_hugepages 256 || exit 1

# Port 0 is a plain wire to the guest's eth0, net_impair0 a hostile one to its eth1.
"$build/app/saker" --lcores 0@0 --no-pci --in-memory --no-telemetry --file-prefix "siw$$" \
    --vdev "net_vhost0,iface=$work/plain.sock" --vdev "net_vhost1,iface=$work/hostile.sock" \
    --vdev "net_impair0,port=net_vhost1,seed=${SAKER_SEED:-11},drop=0.01,reorder=0.01" -- \
    --socket "$work/saker.sock" --idle yield \
    --address net_vhost0=10.66.0.1/24 --address net_vhost0=fd66::1/64 \
    --address net_impair0=10.67.0.1/24 --address net_impair0=fd67::1/64 >"$work/saker.log" 2>&1 </dev/null &
saker=$!
for _ in $(seq 300); do
    [ -S "$work/saker.sock" ] && break
    kill -0 $saker 2>/dev/null || { echo "saker did not start:"; cat "$work/saker.log"; exit 1; }
    sleep 0.1
done

test/interop/guest.py boot "vhost=$work/plain.sock,10.66.0.2/24,fd66::2/64" \
    "vhost=$work/hostile.sock,10.67.0.2/24,fd67::2/64" ||
    { echo "the guest did not boot"; exit 1; }
guest() { test/interop/guest.py run "$@"; }
guest 'for d in eth0 eth1; do for i in $(seq 100); do [ "$(cat /sys/class/net/$d/carrier)" = 1 ] && break; sleep 0.1; done; done
    rdma link show | grep -c ACTIVE' >"$work/links" || { echo "the guest has no siw device"; exit 1; }

failed=0 port=7100
verdict() { # verdict STATUS NAME LOG...
    local status=$1 name=$2
    shift 2
    if [ "$status" = 0 ]; then echo "ok    $name"; else
        echo "FAIL  $name"
        tail -n 8 "$@" | sed 's/^/      /'
        failed=$((failed + 1))
    fi
}
wait_line() { # wait_line FILE TEXT PID
    for _ in $(seq 600); do
        grep -q "$2" "$1" && return 0
        kill -0 "$3" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
guest_listens() { guest -t 30 "until rdma resource show cm_id | grep -q 'LISTEN.*:$1'; do sleep 0.1; done" >/dev/null 2>&1; }

# from_guest NAME HOST-COMMAND GUEST-COMMAND: the guest connects. Either command may end in "@" for the port.
from_guest() {
    port=$((port + 1))
    timeout 180 ${2//@/$port} >"$work/host.log" 2>&1 &
    local host=$! status
    wait_line "$work/host.log" listening $host
    guest -t 150 "${3//@/$port}" >"$work/guest.log" 2>&1
    status=$?
    wait $host || status=1
    verdict $status "$1" "$work/host.log" "$work/guest.log"
}
# to_guest NAME HOST-COMMAND GUEST-COMMAND: the host connects.
to_guest() {
    port=$((port + 1))
    guest -t 170 "${3//@/$port}" >"$work/guest.log" 2>&1 &
    local g=$! status
    guest_listens $port
    timeout 150 ${2//@/$port} >"$work/host.log" 2>&1
    status=$?
    wait $g || status=1
    verdict $status "$1" "$work/host.log" "$work/guest.log"
}

sock=$work/saker.sock bin=$(realpath "$build/test/interop")
peer=$bin/saker_peer rping=$bin/saker_rping verbs=$bin/verbs_peer cases=$bin/saker_cases guest_cases=$bin/verbs_cases

rping_both() { # rping_both NAME HOST-ADDRESS GUEST-ADDRESS ROUNDS SIZE
    from_guest "rping in the guest as client, $1" "$rping $sock server @ $4 $5" "rping -c -V -a $2 -p @ -C $4 -S $5"
    to_guest "rping in the guest as server, $1" "$rping $sock client $3 @ $4 $5" "rping -s -V -a $3 -p @ -C $4 -S $5"
}
operations() { # operations NAME HOST-ADDRESS GUEST-ADDRESS HOST-OPTIONS QUICK
    from_guest "every operation, the guest connects, $1" "$peer $sock listen any @ $5 $4" "$verbs connect $2 @ $5"
    to_guest "every operation, saker connects, $1" "$peer $sock connect $3 @ $5 $4" "$verbs listen $3 @ $5"
}

# Start-up (RFC 6581): depths, ready-to-receive messages, rejections, and Atomics (RFC 7306), which siw does not have. A second listener at
# the next port is the neighbour whose stream goes on.
startup_cases() { # startup_cases NAME HOST-ADDRESS GUEST-ADDRESS
    local status=0
    port=$((port + 2))
    guest -t 140 "$guest_cases listen $3 $port" >"$work/guest.log" 2>&1 &
    local g=$!
    guest -t 140 "$guest_cases listen $3 $((port + 1))" >"$work/guest2.log" 2>&1 &
    local g2=$!
    guest_listens $port
    guest_listens $((port + 1))
    timeout 140 "$cases" "$sock" connect "$3" $port >"$work/host.log" 2>&1 || status=1
    wait $g || status=1
    wait $g2 || status=1
    verdict $status "start-up in $(grep -c "^ok" "$work/host.log") ways, Atomics refused, saker connects, $1" "$work/host.log" "$work/guest.log" "$work/guest2.log"
    port=$((port + 1))
    from_guest "start-up, Atomics refused, the guest connects, $1" "$cases $sock listen @" "$guest_cases connect $2 @"
    port=$((port + 1))
}
# siw takes a Write or a Read as ready-to-receive message, and hears a Terminate (code 7) if only a Send was offered. Its kernel's iw_cm does
# not survive a stream that ends before it was established: this one comes last, and the guest's part is not waited for.
no_common_rtr() { # no_common_rtr GUEST-ADDRESS
    port=$((port + 1))
    guest -t 60 "$guest_cases listen $1 $port" >"$work/guest.log" 2>&1 &
    guest_listens $port
    timeout 60 "$cases" "$sock" send "$1" $port >"$work/host.log" 2>&1
    verdict $? "no ready-to-receive message in common" "$work/host.log"
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
kill -0 $saker 2>/dev/null || { echo "saker has died:"; tail -n 20 "$work/saker.log"; failed=$((failed + 1)); }
[ $failed = 0 ] || { echo "the guest's kernel:"; test/interop/guest.py console | grep -v "^$" | tail -n 60 | head -n 30; }
exit $((failed != 0))
