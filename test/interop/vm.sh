#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A virtual machine with Debian's kernel uses saker through an ivshmem-plain device: against a client of the host's, against a second machine
# and against itself; unmodified programs from Debian's packages; its own kernel's siw over the vhost-user card meanwhile. Then it is paused,
# reset and killed in mid-transfer: the peer hears of it, saker keeps nothing, the machine comes back. $CI_LONG: ten times each.
set -u
cd "$(dirname "$0")/../.." || exit 1
. test/packages.sh
build=$(realpath "${SAKER_BUILD:-build}")
work=$(mktemp -d /tmp/saker-vm.XXXXXX)
export SAKER_GUEST_NAME=vm$$ SAKER_GUEST_REBOOT=1
memory=/dev/shm/saker-$SAKER_GUEST_NAME saker=
finish() {
    test/interop/guest.py stop
    [ -n "$saker" ] && kill "$saker" 2>/dev/null && wait "$saker" 2>/dev/null
    rm -rf "$work" "$memory"-* "${SAKER_GUEST_DIR:-${TMPDIR:-/tmp}/saker-guest}/$SAKER_GUEST_NAME"
}
trap finish EXIT
trap 'exit 1' INT TERM

install_packages rdmacm-utils ibverbs-utils
test/interop/guest.py build >"$work/build.log" 2>&1 ||
    { tail -n 3 "$work/build.log"; echo "no guest can be made here: $(tail -n 1 "$work/build.log")"; exit 77; }
reserve_hugepages 128 || exit 1

cat >"$work/saker.ini" <<INI
[gateway]
enabled = yes
control = $work/control.sock
[interface 0]
port = net_ring_gateway
address = 10.68.0.1/24
[vm 0]
name = guest
path = $memory-guest
size = 64m
slots = 4
timeout = 3000
ip = 10.68.0.2/24
peers = yes
nic = $work/card.sock
nic-mac = 52:54:00:5a:4b:01
mbufs = 2048
[vm 1]
name = other
path = $memory-other
size = 16m
slots = 2
ip = 10.68.0.3/24
peers = yes
mbufs = 2048
[vm 2]
name = stranger
path = $memory-stranger
size = 16m
slots = 2
ip = 10.68.0.4/24
mbufs = 2048
INI
"$build/app/saker" --lcores 0@0 --no-pci --in-memory --no-telemetry --file-prefix "vm$$" -- \
    --socket "$work/saker.sock" --idle yield --config "$work/saker.ini" >"$work/saker.log" 2>&1 </dev/null &
saker=$!
for _ in $(seq 300); do
    [ -S "$work/control.sock" ] && break
    kill -0 $saker 2>/dev/null || { echo "saker did not start:"; cat "$work/saker.log"; exit 1; }
    sleep 0.1
done

control() { # control LINE: what saker says
    python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\n")
while data := s.recv(65536): sys.stdout.write(data.decode())' "$work/control.sock" "$1"
}
guest() { test/interop/guest.py run "$@"; }
# What machine NAME holds, as one line.
holds() { control "vm show" | sed -n "/^$1:/,/holds/{/holds/p}"; }
failed=0 port=7200
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
# both NAME SERVER-ON SERVER CLIENT-ON CLIENT: two programs, each on `host` or in the `guest`; "@" is the port. The host's servers say that
# they listen; of the guest's saker knows.
both() {
    local status
    port=$((port + 1))
    if [ "$2" = host ]; then
        timeout 180 ${3//@/$port} >"$work/server.log" 2>&1 &
        local server=$!
        wait_line "$work/server.log" listening $server
    else
        guest -t 150 "${3//@/$port}" >"$work/server.log" 2>&1 &
        local server=$!
        for _ in $(seq 600); do holds guest | grep -q " [1-9][0-9]* listeners" && break; sleep 0.1; done
    fi
    if [ "$4" = host ]; then timeout 150 ${5//@/$port} >"$work/client.log" 2>&1; else guest -t 150 "${5//@/$port}" >"$work/client.log" 2>&1; fi
    status=$?
    wait $server || status=1
    verdict $status "$1" "$work/server.log" "$work/client.log"
}

test/interop/guest.py boot "vhost=$work/card.sock,10.69.0.2/24" "ivshmem=$memory-guest" || { echo "the guest did not boot"; exit 1; }
sock=$work/saker.sock bin=$build/test/interop other=ivshmem:$memory-other stranger=ivshmem:$memory-stranger
preload="SAKER_SOCKET=ivshmem: LD_PRELOAD=$build/drivers/verbs/libsaker-verbs.so"

both "libsaker in the guest, a client of the host listens" host "$bin/saker_rping $sock server @ 20 4096" \
    guest "$bin/saker_rping ivshmem: client 10.68.0.1 @ 20 4096"
both "libsaker in the guest listens, a second machine connects" guest "$bin/saker_rping ivshmem: server @ 20 4096" \
    host "$bin/saker_rping $other client 10.68.0.2 @ 20 4096"
both "two programs of one machine" host "$bin/saker_rping $other server @ 20 4096" \
    host "$bin/saker_rping $other client 10.68.0.3 @ 20 4096"
both "every operation, the guest connects to the host" host "$bin/saker_peer $sock listen any @ quick rev2" \
    guest "$bin/saker_peer ivshmem: connect 10.68.0.1 @ quick rev2"

# Unmodified programs.
guest "$preload ibv_devinfo" >"$work/devinfo.log" 2>&1 && grep -q PORT_ACTIVE "$work/devinfo.log"
verdict $? "ibv_devinfo in the guest" "$work/devinfo.log"
both "rping in the guest, a client of the host listens" host "$bin/saker_rping $sock server @ 20 1000" \
    guest "$preload rping -c -V -a 10.68.0.1 -p @ -C 20 -S 1000"
both "rping in the guest, server and client" guest "$preload rping -s -V -a 10.68.0.2 -p @ -C 20 -S 1000" \
    guest "$preload rping -c -V -a 10.68.0.2 -p @ -C 20 -S 1000"

# A machine that may have no peers reaches the host and nobody else.
timeout 60 "$bin/saker_rping" "$stranger" client 10.68.0.2 7999 1 64 >"$work/stranger.log" 2>&1
[ $? != 0 ] && [ $? != 124 ] && control "vm show" | grep -q GW_FLOODED
verdict $? "a machine without peers does not reach another" "$work/stranger.log"

# Ends in mid-transfer. The peer's rogue listener must come to its end; then nothing of the machine is left.
before=$(holds guest)
midway() { # midway NAME COMMAND...: while the guest transfers
    local what=$1 i status=0
    shift
    port=$((port + 1))
    "$bin/saker_rping" "$sock" server $port 1000000 4096 >"$work/server.log" 2>&1 &
    local server=$!
    wait_line "$work/server.log" listening $server
    guest -t 60 "$bin/saker_rping ivshmem: client 10.68.0.1 $port 1000000 4096" >"$work/client.log" 2>&1 &
    local client=$!
    for i in $(seq 300); do holds guest | grep -q "holds  1 of" && break; sleep 0.1; done
    sleep 1
    "$@" || status=1
    timeout 30 tail --pid=$server -f /dev/null || status=1 # its peer has gone, and it was told
    for i in $(seq 200); do [ "$(holds guest)" = "$before" ] && break; sleep 0.1; done
    [ "$(holds guest)" = "$before" ] || { status=1; holds guest >>"$work/server.log"; }
    kill $server $client 2>/dev/null
    wait $server $client 2>/dev/null
    verdict $status "the guest is $what in mid-transfer: its peer is told, nothing is left" "$work/server.log" "$work/client.log"
}
pause() { test/interop/guest.py monitor stop && sleep 5 && test/interop/guest.py monitor cont; }
crash() {
    kill -9 "$(cat "${SAKER_GUEST_DIR:-${TMPDIR:-/tmp}/saker-guest}/$SAKER_GUEST_NAME/pid")"
    sleep 5
    test/interop/guest.py boot "vhost=$work/card.sock,10.69.0.2/24" "ivshmem=$memory-guest"
}
rounds=1
[ -n "${CI_LONG:-}" ] && rounds=10
for _ in $(seq $rounds); do
    midway paused pause
    midway reset test/interop/guest.py reset
    midway killed crash
done
both "the guest that came back works" host "$bin/saker_rping $sock server @ 20 4096" \
    guest "$bin/saker_rping ivshmem: client 10.68.0.1 @ 20 4096"
kill -0 $saker 2>/dev/null || { echo "saker has died:"; tail -n 20 "$work/saker.log"; failed=$((failed + 1)); }
[ $failed = 0 ] || control "vm show"
exit $((failed != 0))
