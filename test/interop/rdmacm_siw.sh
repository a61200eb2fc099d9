#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The same program on both sides of the wire: Debian's rping, ucmatose and perftest on the preloaded library and Saker here, and on the genuine
# libraries and kernel siw in a guest, over vhost-user; each side connecting once.
set -u
cd "$(dirname "$0")/../.." || exit 1
. test/packages.sh
build=${SAKER_BUILD:-build}
lib=$(realpath "$build/drivers/verbs/libsaker-verbs.so")
[ -e "$lib" ] || { echo "the preloaded library is not built"; exit 77; }
install_packages rdmacm-utils perftest jq || { echo "Debian's rdmacm-utils and perftest are not to be had"; exit 77; }
work=$(mktemp -d /tmp/saker-cmsiw.XXXXXX)
export SAKER_GUEST_NAME=cmsiw$$
saker=
finish() {
    local p
    for p in $(jobs -p); do kill "$p" 2>/dev/null; done
    test/interop/guest.py stop
    [ -n "$saker" ] && kill "$saker" 2>/dev/null && wait "$saker" 2>/dev/null
    rm -rf "$work" "${SAKER_GUEST_DIR:-${TMPDIR:-/tmp}/saker-guest}/$SAKER_GUEST_NAME"
}
trap finish EXIT
trap 'exit 1' INT TERM

test/interop/guest.py build >"$work/build.log" 2>&1 ||
    { echo "no guest with siw can be made here: $(tail -n 1 "$work/build.log")"; exit 77; }
reserve_hugepages 256 || exit 1
"$build/app/saker" --lcores 0@0 --no-pci --in-memory --file-prefix "cmsiw$$" --vdev "net_vhost0,iface=$work/port.sock" -- \
    --socket "$work/saker.sock" --idle yield --address net_vhost0=10.68.0.1/24 --address net_vhost0=fd68::1/64 >"$work/saker.log" 2>&1 </dev/null &
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

failed=0 port=7500
verdict() { # verdict STATUS NAME
    if [ "$1" = 0 ]; then echo "ok    $2"; else
        echo "FAIL  $2"
        tail -n 8 "$work/host.log" "$work/guest.log" | sed 's/^/      /'
        failed=$((failed + 1))
    fi
}
host() { exec timeout -k 5 200 env SAKER_SOCKET="$work/saker.sock" LD_PRELOAD="$lib" "$@"; }
listeners() { test/interop/telemetry.py "/var/run/dpdk/cmsiw$$/dpdk_telemetry.v2" /saker/info | jq .listeners; }
host_listens() { # host_listens PID
    for _ in $(seq 600); do
        [ "$(listeners)" -gt 0 ] && return 0
        kill -0 "$1" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
guest_listens() { guest -t 30 "until rdma resource show cm_id | grep -q 'LISTEN.*:$1'; do sleep 0.1; done" >/dev/null 2>&1; }

# both NAME SERVER CLIENT [GUEST-ADDRESS HOST-ADDRESS]: once in each direction; @ stands for the port, % for the server's address.
both() {
    local name=$1 pid status to_guest=${4:-10.68.0.2} to_host=${5:-10.68.0.1} server client
    port=$((port + 1))
    server=${2//@/$port} client=${3//@/$port}
    if [ -z "${only_saker_connects:-}" ]; then
        # shellcheck disable=SC2086
        (host ${server//%/$to_host}) >"$work/host.log" 2>&1 &
        pid=$!
        host_listens $pid
        guest -t 200 "${client//%/$to_host}" >"$work/guest.log" 2>&1
        status=$?
        wait $pid || status=1
        verdict $status "$name, the guest connects"
    fi

    guest -t 200 "${server//%/$to_guest}" >"$work/guest.log" 2>&1 &
    pid=$!
    guest_listens "$port"
    # shellcheck disable=SC2086
    (host ${client//%/$to_guest}) >"$work/host.log" 2>&1
    status=$?
    wait $pid || status=1
    verdict $status "$name, Saker connects"
}

both "rping" "rping -s -a % -p @ -C 20 -V -S 1000" "rping -c -a % -p @ -C 20 -V -S 1000"
both "rping, IPv6" "rping -s -a % -p @ -C 20 -V -S 4000" "rping -c -a % -p @ -C 20 -V -S 4000" fd68::2 fd68::1
# The servers of ucmatose and ib_write_lat send first. siw asks for no ready-to-receive message when it connects, and Saker as the responder then waits for the
# initiator's first FPDU (RFC 5044 7.1.2), which does not come: so only Saker connects.
only_saker_connects=yes both "ucmatose" "ucmatose -p @ -c 3 -C 10 -S 2000" "ucmatose -s % -p @ -c 3 -C 10 -S 2000"
only_saker_connects=yes both "ib_write_lat -R" "ib_write_lat -R -F -p @ -n 20 -s 2048" "ib_write_lat -R -F -p @ -n 20 -s 2048 %"
for t in ib_send_lat ib_read_lat; do
    both "$t -R" "$t -R -F -p @ -n 20 -s 2048" "$t -R -F -p @ -n 20 -s 2048 %"
done
for t in ib_send_bw ib_write_bw ib_read_bw; do
    both "$t -R" "$t -R -F -p @ -n 100 -s 2048" "$t -R -F -p @ -n 100 -s 2048 %"
done
kill -0 $saker 2>/dev/null || { echo "saker has died:"; tail -n 20 "$work/saker.log"; failed=$((failed + 1)); }
[ $failed = 0 ] || { echo "the guest's kernel:"; test/interop/guest.py console | grep -v "^$" | tail -n 30; }
exit $((failed != 0))
