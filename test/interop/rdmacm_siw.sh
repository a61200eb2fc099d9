#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The same program on both sides of the wire: Debian's rping, ucmatose and perftest on the preloaded library and Saker here, and on the genuine
# libraries and kernel siw in a guest, over vhost-user; each side connecting once. A word as argument selects the programs that it occurs in.
set -u
cd "$(dirname "$0")/../.." || exit 1
. test/packages.sh
build=${SAKER_BUILD:-build}
lib=$(realpath "$build/drivers/verbs/libsaker-verbs.so")
[ -e "$lib" ] || { echo "the preloaded library is not built"; exit 77; }
install_packages rdmacm-utils perftest jq || { echo "Debian's rdmacm-utils and perftest are not to be had"; exit 77; }
work=$(mktemp -d /tmp/saker-cmsiw.XXXXXX)
export SAKER_GUEST_NAME=cmsiw$$
saker='' server=''
finish() {
    [ -n "$server" ] && kill "$server" 2>/dev/null
    test/interop/guest.py stop
    [ -n "$saker" ] && kill "$saker" 2>/dev/null && wait "$saker" 2>/dev/null
    rm -rf "$work" "${SAKER_GUEST_DIR:-${TMPDIR:-/tmp}/saker-guest}/$SAKER_GUEST_NAME"
}
trap finish EXIT
trap 'exit 1' INT TERM

test/interop/guest.py build >"$work/build.log" 2>&1 ||
    { echo "no guest with siw can be made here: $(tail -n 1 "$work/build.log")"; exit 77; }
reserve_hugepages 256 || exit 1
# What siw needs of us: doc/rdmacm.md.
SAKER_MPA_FIRST_FPDU_WAIT=500ms SAKER_MPA_FIRST_FPDU_DELAY=20ms "$build/app/saker" --lcores 0@0 --no-pci --in-memory --file-prefix "cmsiw$$" --vdev "net_vhost0,iface=$work/port.sock" -- \
    --socket "$work/saker.sock" --idle sleep --address net_vhost0=10.68.0.1/24 --address net_vhost0=fd68::1/64 >"$work/saker.log" 2>&1 </dev/null &
saker=$!
for _ in $(seq 300); do
    [ -S "$work/saker.sock" ] && break
    kill -0 $saker 2>/dev/null || { echo "saker did not start:"; cat "$work/saker.log"; exit 1; }
    sleep 0.1
done
test/interop/guest.py boot "vhost=$work/port.sock,10.68.0.2/24,fd68::2/64" || { echo "the guest did not boot"; exit 1; }
guest() { test/interop/guest.py run "$@"; }
guest 'for i in $(seq 100); do [ "$(cat /sys/class/net/eth0/carrier)" = 1 ] && break; sleep 0.1; done
    rdma link show | grep -c ACTIVE' >"$work/links" || { echo "the guest has no siw device"; exit 1; }

failed=0 port=7500 only=${1:-}
# Programs that spin leave the cores to saker and the guest.
host() { exec nice -n 19 timeout -k 5 90 env SAKER_SOCKET="$work/saker.sock" LD_PRELOAD="$lib" "$@"; }
in_saker() { test/interop/telemetry.py "/var/run/dpdk/cmsiw$$/dpdk_telemetry.v2" /saker/info | jq "$1"; }
until_true() { # until_true COMMAND...: a generous bound
    for _ in $(seq 300); do
        "$@" && return 0
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
host_listens() { [ "$(in_saker .listeners)" -gt 0 ]; }
nobody() { [ "$(in_saker '.clients + .qps + .listeners')" = 0 ]; }
guest_listens() { guest -t 5 "rdma resource show cm_id | grep -q 'LISTEN.*:$port'" >/dev/null 2>&1; }

# once SIDE SERVER CLIENT: the server is on this SIDE, the client on the other. @ stands for the port.
once() {
    local side=$1 status
    port=$((port + 1))
    local serves=${2//@/$port} connects=${3//@/$port}
    if [ "$side" = host ]; then
        # shellcheck disable=SC2086
        (host $serves) >"$work/server.log" 2>&1 &
        server=$!
        until_true host_listens
        guest -t 90 "$connects" >"$work/client.log" 2>&1
        status=$?
    else
        guest -t 90 "echo \$\$ >/run/server; exec $serves" >"$work/server.log" 2>&1 &
        server=$!
        until_true guest_listens
        # shellcheck disable=SC2086
        (host $connects) >"$work/client.log" 2>&1
        status=$?
    fi
    [ $status = 0 ] || end_server "$side"
    wait "$server" || status=1
    server=''
    return $status
}
end_server() { # end_server SIDE: it waits in vain
    if [ "$1" = host ]; then kill "$server" 2>/dev/null; else guest 'kill "$(cat /run/server)"' >/dev/null 2>&1; fi
}

# perftest's server tells the client to connect and only then listens for that: where it is not scheduled in between, the client is refused.
too_early() { [[ $1 == ib_* ]] && grep -q "REJECTED; error: -111\|Connection refused" "$work/client.log"; }

case_of() { # case_of NAME SIDE SERVER CLIENT
    local name=$1 status start=$SECONDS
    for _ in 1 2 3 4 5; do
        once "$2" "$3" "$4"
        status=$?
        [ $status != 0 ] && too_early "$name" || break
    done
    for _ in $(seq 100); do nobody && break; sleep 0.1; done
    nobody || { status=1; echo "left behind: $(in_saker .)" >>"$work/server.log"; }
    if [ $status = 0 ]; then echo "ok    $name ($((SECONDS - start)) s)"; else
        echo "FAIL  $name"
        tail -n 8 "$work/server.log" "$work/client.log" | sed 's/^/      /'
        failed=$((failed + 1))
    fi
}

# both NAME SERVER CLIENT [GUEST-ADDRESS HOST-ADDRESS]: once in each direction; % stands for the server's address.
both() {
    local to_guest=${4:-10.68.0.2} to_host=${5:-10.68.0.1}
    [[ $1 == *"$only"* ]] || return
    case_of "$1, the guest connects" host "${2//%/$to_host}" "${3//%/$to_host}"
    case_of "$1, Saker connects" guest "${2//%/$to_guest}" "${3//%/$to_guest}"
}

both "rping" "rping -s -a % -p @ -C 20 -V -S 1000" "rping -c -a % -p @ -C 20 -V -S 1000"
both "rping, IPv6" "rping -s -a % -p @ -C 20 -V -S 4000" "rping -c -a % -p @ -C 20 -V -S 4000" fd68::2 fd68::1
both "ucmatose" "ucmatose -p @ -c 3 -C 10 -S 2000" "ucmatose -s % -p @ -c 3 -C 10 -S 2000"
for t in ib_send_lat ib_write_lat ib_read_lat; do
    both "$t -R" "$t -R -F -p @ -n 20 -s 2048" "$t -R -F -p @ -n 20 -s 2048 %"
done
for t in ib_send_bw ib_write_bw ib_read_bw; do
    both "$t -R" "$t -R -F -p @ -n 100 -s 2048" "$t -R -F -p @ -n 100 -s 2048 %"
done
kill -0 $saker 2>/dev/null || { echo "saker has died:"; tail -n 20 "$work/saker.log"; failed=$((failed + 1)); }
[ $failed = 0 ] || { echo "the guest's kernel:"; test/interop/guest.py console | grep -v "^$" | tail -n 30; }
exit $((failed != 0))
