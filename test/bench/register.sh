#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Prints what it costs to register memory of each kind at a running saker, and to end that: by the
# clock, and in processor time of the program. The machine's load stands above.
#
#   test/bench/register.sh [MIB]     (default: 1024)
. "$(dirname "$0")/../interop/common.sh"
mib=${1:-1024}
available=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
[ "$available" -ge $((2 * mib + 500)) ] ||
    skip "it needs $((2 * mib + 500)) MiB of memory, $available MiB are free"
take_memory 256
saker a 0 net_ring0 -- --address 0=10.5.0.1/24 --idle sleep
echo "$mib MiB, load average $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) processors"
"$build/test/bench/bench_register" "$work/a.sock" "$mib"
