#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Memory that a program already has can be registered: a gibibyte from malloc is moved and given
# back while threads write to it, without a second copy. The ways: full userfaultfd, userfaultfd
# without the privilege to handle the kernel's faults, and no userfaultfd. Then a user without
# privileges registers, and a program that is killed during a registration leaves nothing behind.
. "$(dirname "$0")/common.sh"
[ -x "$interop/memory" ] || fail "$interop/memory is not built"
available=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
[ "$available" -ge 2500 ] || skip "the test needs 2500 MiB of memory, $available MiB are free"
take_memory 256

saker a 0@0 net_ring0 -- --address 0=10.5.0.1/24
for way in "full 1024" "user 128" "signal 128"; do
    size=${way#* } way=${way% *}
    say "registering $size MiB with SAKER_MOVE=$way"
    SAKER_MOVE=$way start "$way" "$interop/memory" "$work/a.sock" 10.5.0.1 "$size"
    passes "$way" 600
    cat "$work/$way.log"
    clean a
done

say "a user without privileges"
chmod 755 "$work"
chmod 666 "$work/a.sock"
start nobody setpriv --reuid 65534 --regid 65534 --clear-groups \
    "$(realpath "$interop/memory")" "$work/a.sock" 10.5.0.1 128
passes nobody 600
cat "$work/nobody.log"
clean a

say "killed with a gibibyte registered"
before=$(awk '/^Shmem:/ {print int($2 / 1024)}' /proc/meminfo)
start held "$interop/memory" "$work/a.sock" 10.5.0.1 1024 hold
until_true 60 log_says held "^held" || fail "the program registers nothing"
held=$(awk '/^Shmem:/ {print int($2 / 1024)}' /proc/meminfo)
{ kill -KILL "${pid[held]}"; ends held 10; } 2>/dev/null
clean a
freed() { [ "$(awk '/^Shmem:/ {print int($2 / 1024)}' /proc/meminfo)" -lt $((held - 900)) ]; }
until_true 20 freed ||
    fail "its memory is not free: $before MiB shared before, $held while the program lived"
echo "nothing is left behind"
echo PASS
