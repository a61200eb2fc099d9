#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A virtual machine whose device is an ivshmem-doorbell, and a saker that sleeps: QEMU receives
# memory and doorbell from saker, programs in the guest wake saker, and a guest that rings all the
# time does not stop the other clients.
. "$(dirname "$0")/common.sh"
build=$(realpath "$build") interop=$build/test/interop
install_packages jq rdmacm-utils ibverbs-utils ||
    skip "Debian's jq, rdmacm-utils and ibverbs-utils cannot be installed"
memory_file=/dev/shm/saker-doorbell$$
one_guest "$memory_file"
take_memory 128

cat >"$work/host.ini" <<INI
[gateway]
enabled = yes
[interface 0]
port = net_ring_gateway
address = 10.68.0.1/24
[vm 0]
name = guest
path = $memory_file
size = 64m
slots = 4
timeout = 60000
doorbell = $work/bell.sock
ip = 10.68.0.2/24
mbufs = 2048
INI
saker host 0@0 -- --idle sleep --config "$work/host.ini"
until_true 30 test -S "$work/host.control" || fail "no control socket"

rung() { of_machine guest '.doorbell | select(.connected).rings'; }
has_rung() { [ "$(rung)" -gt "$1" ]; }
serve() { # serve PORT ROUNDS SIZE: a client of the host
    start server timeout 120 "$interop/saker_rping" "$work/host.sock" server "$@"
    until_true 60 says_or_ends server listening
}
# with_host NAME PORT CLIENT: a client of the host listens. The command CLIENT runs in the guest.
with_host() {
    local status
    serve "$2" 20 1000
    guest -t 100 "$3" >"$work/client.log" 2>&1
    status=$?
    ends server 130 || status=1
    verdict $status "$1" "$work/server.log" "$work/client.log"
}

boot_guest "ivshmem=$work/bell.sock"
[ "$(rung)" = 0 ]
verdict $? "QEMU is connected, and nothing has rung" "$work/host.log"
with_host "libsaker in the guest, a client of the host listens" 7301 \
    "$interop/saker_rping ivshmem: client 10.68.0.1 7301 20 1000"
has_rung 0
verdict $? "the guest has rung" "$work/host.log"
with_host "rping in the guest, a client of the host listens" 7302 \
    "SAKER_SOCKET=ivshmem: LD_PRELOAD=$build/drivers/verbs/libsaker-verbs.so \
        rping -c -V -a 10.68.0.1 -p 7302 -C 20 -S 1000"

# A program in the guest rings for 20 seconds, whether saker sleeps or not.
start hostile guest -t 100 'python3 -c "
import ctypes, glob, os, time
dev = [os.path.dirname(p) for p in glob.glob(\"/sys/bus/pci/devices/*/device\")
       if open(p).read().strip() == \"0x1110\"][0]
at = int(open(dev + \"/resource\").read().split()[0], 16) % 4096
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]
bar = libc.mmap(None, 4096, 3, 1, os.open(dev + \"/resource0\", os.O_RDWR), 0)
bell = ctypes.c_uint32.from_address(bar + at + 12)
end = time.monotonic() + 20
while time.monotonic() < end:
    for _ in range(1000): bell.value = 0
"'
before=$(rung)
until_true 30 has_rung $((before + 1000))
serve 7303 200 4096
timeout 60 "$interop/saker_rping" "$work/host.sock" client 10.68.0.1 7303 200 4096 \
    >"$work/client.log" 2>&1 && ends server 60 && has_rung $((before + 1000))
verdict $? "two clients of the host work while a guest rings all the time" "$work/server.log" \
    "$work/client.log" "$work/hostile.log"
ends hostile 120
verdict $? "the guest rang all the time" "$work/hostile.log"

# Saker would miss the heartbeats of the guest only after a minute (timeout above).
holds() { of_machine guest .holds; }
holds_one() { [ "$(of_machine guest .holds.qps)" = 1 ]; }
none_timed_out() { [ "$(of_machine guest .memory.timed_out)" = 0 ]; }
is_as_before() { [ "$(holds)" = "$before" ]; }
before=$(holds)
serve 7304 1000000 4096
start client guest -t 60 "$interop/saker_rping ivshmem: client 10.68.0.1 7304 1000000 4096"
until_true 60 holds_one
sleep 1
kill -9 "$(cat "$guests/$SAKER_GUEST_NAME/pid")"
until_true 30 has_ended server && until_true 30 is_as_before && none_timed_out
verdict $? "the guest is killed during a transfer: its peer is disconnected, nothing is left" \
    "$work/server.log"
of_machine guest .doorbell
conclude host
