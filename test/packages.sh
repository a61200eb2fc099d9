# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by test/run.sh and app/demo.sh: the packages that the project builds with and those that
# its tests use, by Debian 12's names.

# shellcheck disable=SC2034 # for the script that sources this
saker_build_packages="build-essential meson ninja-build pkg-config libdpdk-dev dpdk-dev libisal-dev
libipsec-mb-dev libssl-dev libcriterion-dev libibverbs-dev librdmacm-dev libedit-dev"
# shellcheck disable=SC2034
saker_test_packages="clang-14 libclang-rt-14-dev tshark python3 iproute2 jq gnuplot-nox
ibverbs-utils rdmacm-utils perftest procps valgrind iperf3 netcat-openbsd curl lighttpd
ucx-utils mpich libmpich-dev openmpi-bin libopenmpi-dev python3-pyverbs rdma-core tgt
libiscsi-bin libiscsi-dev python3-prometheus-client
clang-format-14 clang-tidy-14 shellcheck codespell gcovr binutils git libseccomp-dev systemd"
# For test/interop/packages.sh, and for building the packages.
# shellcheck disable=SC2034
saker_package_packages="debhelper dpkg-dev lintian mmdebstrap"

# install_packages NAME...: installs the missing ones. A machine without a registry works where all
# of them exist.
install_packages() {
    local missing=() p
    for p in "$@"; do
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q "install ok installed" ||
            missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "installing: ${missing[*]}"
    apt-get update -q >/dev/null || return 1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" \
        >/dev/null
}

# reserve_hugepages N: reserves at least N free pages of 2 MiB, beside the pages that others hold.
reserve_hugepages() {
    local pool=/sys/kernel/mm/hugepages/hugepages-2048kB free total
    [ -d $pool ] || { echo "this kernel has no 2 MiB pages"; return 1; }
    free=$(cat $pool/free_hugepages)
    total=$(cat $pool/nr_hugepages)
    if [ "$free" -lt "$1" ]; then
        echo "reserving hugepages: $((total + $1 - free)) of 2 MiB"
        echo $((total + $1 - free)) >$pool/nr_hugepages
    fi
    [ "$(cat $pool/free_hugepages)" -ge "$1" ] || { echo "no memory for $1 hugepages"; return 1; }
}
