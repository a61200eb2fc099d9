# SPDX-License-Identifier: BSD-3-Clause
# Sourced by test/run.sh and app/demo.sh: what the project builds with and what its tests use, by Debian 12's names.

saker_build_packages="build-essential meson ninja-build pkg-config libdpdk-dev dpdk-dev libisal-dev libipsec-mb-dev libssl-dev
libcriterion-dev libibverbs-dev librdmacm-dev"
saker_test_packages="clang-14 libclang-rt-14-dev tshark python3 iproute2 jq gnuplot-nox ibverbs-utils rdmacm-utils
perftest procps"

# install_packages NAME...: only what is missing, so that a machine without a registry works when everything is there.
install_packages() {
    local missing
    missing=$(for p in "$@"; do
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q "install ok installed" || echo "$p"
    done)
    [ -z "$missing" ] && return 0
    echo "installing:" $missing
    apt-get update -q >/dev/null || return 1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >/dev/null
}

# reserve_hugepages N: at least N free pages of 2 MiB. Pages that others hold are left alone.
reserve_hugepages() {
    local pool=/sys/kernel/mm/hugepages/hugepages-2048kB free total
    [ -d $pool ] || { echo "this kernel has no 2 MiB pages"; return 1; }
    free=$(cat $pool/free_hugepages)
    total=$(cat $pool/nr_hugepages)
    if [ "$free" -lt "$1" ]; then
        echo "reserving hugepages: $((total + $1 - free)) of 2 MiB"
        echo $((total + $1 - free)) >$pool/nr_hugepages
    fi
    [ "$(cat $pool/free_hugepages)" -ge "$1" ] || { echo "no room for $1 hugepages"; return 1; }
}
