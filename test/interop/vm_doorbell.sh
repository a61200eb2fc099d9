#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A virtual machine whose device is an ivshmem-doorbell, and a saker that sleeps: QEMU gets memory and doorbell from saker, programs in the guest
# wake it, and a guest that rings all the time does not keep others from their work.
set -u
cd "$(dirname "$0")/../.." || exit 1
. test/packages.sh
build=$(realpath "${SAKER_BUILD:-build}")
work=$(mktemp -d /tmp/saker-bell.XXXXXX)
export SAKER_GUEST_NAME=bell$$
memory=/dev/shm/saker-$SAKER_GUEST_NAME saker=
finish() {
    test/interop/guest.py stop
    [ -n "$saker" ] && kill "$saker" 2>/dev/null && wait "$saker" 2>/dev/null
    rm -rf "$work" "$memory" "${SAKER_GUEST_DIR:-${TMPDIR:-/tmp}/saker-guest}/$SAKER_GUEST_NAME"
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
path = $memory
size = 64m
slots = 4
timeout = 60000
doorbell = $work/bell.sock
ip = 10.68.0.2/24
mbufs = 2048
INI
"$build/app/saker" --lcores 0@0 --no-pci --in-memory --no-telemetry --file-prefix "bell$$" -- \
    --socket "$work/saker.sock" --idle sleep --config "$work/saker.ini" >"$work/saker.log" 2>&1 </dev/null &
saker=$!
for _ in $(seq 300); do
    [ -S "$work/control.sock" ] && break
    kill -0 $saker 2>/dev/null || { echo "saker did not start:"; cat "$work/saker.log"; exit 1; }
    sleep 0.1
done

show() { # what `vm show` says
    python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"vm show\n")
while data := s.recv(65536): sys.stdout.write(data.decode())' "$work/control.sock"
}
rung() { show | sed -n 's/.*doorbell .*: connected, rung \([0-9]*\) times/\1/p'; }
guest() { test/interop/guest.py run "$@"; }
failed=0
verdict() { # verdict STATUS NAME LOG...
    local status=$1 name=$2
    shift 2
    if [ "$status" = 0 ]; then echo "ok    $name"; else
        echo "FAIL  $name"
        tail -n 8 "$@" | sed 's/^/      /'
        failed=$((failed + 1))
    fi
}
# with_host NAME PORT CLIENT: a client of the host listens, CLIENT runs in the guest.
with_host() {
    local status
    timeout 120 "$build/test/interop/saker_rping" "$work/saker.sock" server "$2" 20 1000 >"$work/server.log" 2>&1 &
    local server=$!
    for _ in $(seq 300); do grep -q listening "$work/server.log" && break; sleep 0.1; done
    guest -t 100 "$3" >"$work/client.log" 2>&1
    status=$?
    wait $server || status=1
    verdict $status "$1" "$work/server.log" "$work/client.log"
}

test/interop/guest.py boot "ivshmem=$work/bell.sock" || { echo "the guest did not boot"; exit 1; }
[ "$(rung)" = 0 ]
verdict $? "QEMU is connected, and nothing has rung" "$work/saker.log"
with_host "libsaker in the guest, a client of the host listens" 7301 \
    "$build/test/interop/saker_rping ivshmem: client 10.68.0.1 7301 20 1000"
[ "$(rung)" -gt 0 ]
verdict $? "the guest has rung" "$work/saker.log"
with_host "rping in the guest, a client of the host listens" 7302 \
    "SAKER_SOCKET=ivshmem: LD_PRELOAD=$build/drivers/verbs/libsaker-verbs.so rping -c -V -a 10.68.0.1 -p 7302 -C 20 -S 1000"

# Rings for as long as it may, whether saker sleeps or not.
guest -t 100 'python3 -c "
import ctypes, glob, os, time
dev = [os.path.dirname(p) for p in glob.glob(\"/sys/bus/pci/devices/*/device\") if open(p).read().strip() == \"0x1110\"][0]
at = int(open(dev + \"/resource\").read().split()[0], 16) % 4096
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
bar = libc.mmap(None, 4096, 3, 1, os.open(dev + \"/resource0\", os.O_RDWR), 0)
bell = ctypes.c_uint32.from_address(bar + at + 12)
end = time.monotonic() + 20
while time.monotonic() < end:
    for _ in range(1000): bell.value = 0
"' >"$work/hostile.log" 2>&1 &
hostile=$!
before=$(rung)
for _ in $(seq 100); do [ "$(rung)" -gt $((before + 1000)) ] && break; sleep 0.1; done
timeout 60 "$build/test/interop/saker_rping" "$work/saker.sock" server 7303 200 4096 >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 100); do grep -q listening "$work/server.log" && break; sleep 0.1; done
timeout 60 "$build/test/interop/saker_rping" "$work/saker.sock" client 10.68.0.1 7303 200 4096 >"$work/client.log" 2>&1 &&
    wait $server && [ "$(rung)" -gt $((before + 1000)) ]
verdict $? "two clients of the host work while a guest rings all the time" "$work/server.log" "$work/client.log" "$work/hostile.log"
wait $hostile
verdict $? "the guest rang all the time" "$work/hostile.log"

# Its heartbeats would be missed after a minute only.
holds() { show | grep "holds"; }
before=$(holds)
"$build/test/interop/saker_rping" "$work/saker.sock" server 7304 1000000 4096 >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 100); do grep -q listening "$work/server.log" && break; sleep 0.1; done
guest -t 60 "$build/test/interop/saker_rping ivshmem: client 10.68.0.1 7304 1000000 4096" >"$work/client.log" 2>&1 &
client=$!
for _ in $(seq 300); do holds | grep -q "holds  1 of" && break; sleep 0.1; done
sleep 1
kill -9 "$(cat "${SAKER_GUEST_DIR:-${TMPDIR:-/tmp}/saker-guest}/$SAKER_GUEST_NAME/pid")"
timeout 30 tail --pid=$server -f /dev/null && for _ in $(seq 100); do [ "$(holds)" = "$before" ] && break; sleep 0.1; done
[ "$(holds)" = "$before" ] && show | grep -q "0 timed out"
verdict $? "the guest is killed in mid-transfer: its peer is told at once, nothing is left" "$work/server.log"
kill $client 2>/dev/null
wait $client 2>/dev/null
kill -0 $saker 2>/dev/null || { echo "saker has died:"; tail -n 20 "$work/saker.log"; failed=$((failed + 1)); }
show | grep doorbell
exit $((failed != 0))
