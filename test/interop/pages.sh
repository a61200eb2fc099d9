#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# doc/real-nic.md and doc/benchmarking.md, walked through as they are written: pages.py takes the
# commands from the pages. Each of them must be run by the walk or be listed with a reason, which
# takes a second. With CI_LONG, or an argument, the walk is done: in a guest with three NICs that
# QEMU emulates (igb), which belong to the kernel at first. It takes four minutes on two cores that
# have nothing else to do.
#
#   test/interop/pages.sh [PART...]    parts: kernel bound jumbo engines bonding local
. "$(dirname "$0")/common.sh"
build=$(realpath "$build")
test/interop/pages.py check || fail "the pages and the walk do not fit each other"
[ -n "${1:-${CI_LONG:-}}" ] || { echo PASS; exit; }
[ "$(id -u)" = 0 ] || skip "only root makes network namespaces"
install_packages dpdk pciutils ethtool iproute2 || skip "packages cannot be installed"
take_memory 400
one_guest
test/interop/guest.py backports >"$work/backports.log" 2>&1 ||
    skip "no QEMU with igb: $(tail -n 1 "$work/backports.log")"
export SAKER_GUEST_MEM=3072 SAKER_GUEST_CPUS=2
boot_guest pmd=igb,kernel pmd=igb,kernel pmd=igb,kernel
# host2 has a folder /run of its own. A host with systemd has /dev/hugepages, and /sys/fs/bpf.
# shellcheck disable=SC2016 # for the guest's shell
guest 'mkdir -p /dev/hugepages && mount -t bpf none /sys/fs/bpf
    setsid unshare -m bash -c "mount -t tmpfs none /run && echo \$\$ >/share/host2
        exec sleep infinity" >/dev/null 2>&1 </dev/null &
    until [ -s /share/host2 ]; do kill -0 $! || exit 1; sleep 0.1; done' ||
    fail "the guest cannot be prepared"
test/interop/pages.py walk "$build" "$@" || fail "the walk"
echo PASS
