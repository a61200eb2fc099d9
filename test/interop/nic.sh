#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# DPDK's drivers of real NICs, on NICs that QEMU emulates: two sakers in a guest, each with a NIC of
# its own behind an IOMMU. Every operation of both transports is verified, with and without
# offloads, at MTU 1500 and 9000, on VLANs, over IPv6 without promiscuous mode, with two transport
# stages, while the link goes down and up, with receive interrupts, and with a NIC that is removed
# and comes back. At its end stands a table of model and case.
#
#   test/interop/nic.sh [MODEL...]
#
# Groups of cases, $CASES: offloads link plain jumbo sleep. Without it, offloads and sleep; with
# CI_LONG, all. Models: igb vmxnet3 virtio e1000 e1000e virtio-packed. Without one, igb; with
# CI_LONG, all. All groups of igb take three and a half minutes on two cores.
. "$(dirname "$0")/common.sh"
build=$(realpath "$build")
models=${*:-igb}
[ $# = 0 ] && [ -n "${CI_LONG:-}" ] && models="igb vmxnet3 virtio e1000 e1000e virtio-packed"
[ "$(id -u)" = 0 ] || skip "only root makes network namespaces"
one_guest
test/interop/guest.py backports >"$work/backports.log" 2>&1 ||
    skip "no QEMU with igb: $(tail -n 1 "$work/backports.log")"
export SAKER_GUEST_MEM=1536 SAKER_GUEST_CPUS=2
ns=nic$$ model='' table=()
after_end() {
    rm -rf "${guest_files[@]}"
    ip netns del "$ns" 2>/dev/null
}

# nic [-t SECONDS] VERB...: nic.inc in the guest.
nic() {
    local limit=120
    [ "$1" = -t ] && { limit=$2; shift 2; }
    test/interop/guest.py run -t "$limit" \
        "SAKER_BUILD=$build ROUNDS=${rounds:-1} bash $PWD/test/interop/nic.inc $(printf '%q ' "$@")"
}
# row CASE RESULT: a row of the table.
row() {
    local line
    line=$(printf '%-14s %-44s %s' "$model" "$1" "$2")
    table+=("$line")
    echo "$line"
}
broken() {
    row "$1" FAIL
    failed=$((failed + 1))
    sed 's/^/      /' "$work/case.log" | tail -n 30
}
# case_passes CASE COMMAND...: runs a case.
case_passes() {
    local name=$1 began=$SECONDS
    shift
    if "$@" >"$work/case.log" 2>&1; then row "$name" "ok, $((SECONDS - began)) s"; else
        broken "$name"
    fi
}
counted() { # counted a|b NAME LEAST
    local n
    n=$(nic counter "$1" "$2")
    [ "${n:-0}" -ge "$3" ] || { echo "saker $1 counted $2 $n times, not $3"; return 1; }
}
is() { # is a|b KEY VALUE: a value of `show port info`
    [ "$(nic port "$1" "$2")" = "$3" ] || { echo "saker $1: $2 is not $3"; return 1; }
}
starts() { nic start "$@"; }
exchange() { nic -t 240 peer "$@" quick; }

# The features of a model: igb and virtio have TSO; em (e1000, e1000e) has not. QEMU's vmxnet3
# receives on one queue only.
has_tso() { [[ $model != e1000* ]]; }
has_rss() { [ "$model" = igb ]; }

offloaded() {
    exchange 10.5.0.2 && counted a ENG_TX_CKSUM 1 && counted b ENG_TX_REFUSED 0 || return 1
    ! has_tso || counted a ENG_TX_TSO 1
}
without_offloads() {
    exchange 10.5.0.2 && exchange 10.5.0.2 falcon && is a tx_tcp_checksum false &&
        is a tso_bytes 0
}
ipv6() {
    exchange fd05::2 && [ "$(nic log a 'is promiscuous')" = '' ]
}
# The home stage of a connection receives its frames: only the others are handed off.
spread() {
    local before after
    # With two queues, the connections of one stage would send nothing.
    [[ $model != e1000* ]] || { is a rx_queues 1 && is a tx_queues 1; } || return 1
    exchange 10.5.0.2 || return 1
    has_rss || return 0
    is a rx_queues 2 || return 1
    [ "$(nic port a rss)" != none ] || { nic show a show port info all; return 1; }
    before=$(nic counter a ENG_HANDOFF)
    exchange 10.5.0.2 && exchange 10.5.0.2 falcon || return 1
    after=$(nic counter a ENG_HANDOFF)
    echo "$((after - before)) frames were handed off"
    [ $((after - before)) -le 20 ]
}

monitor() { test/interop/guest.py monitor "$1"; }
# The link goes down in the middle of an exchange, and comes back.
link_test() { # link_test [falcon]
    local began=$SECONDS rc
    downs=$(nic log a 'the link is down' | wc -l)
    rounds=4 nic -t 300 peer 10.5.0.2 "$@" quick >"$work/exchange.log" 2>&1 &
    local exchange=$!
    until_true 60 moving || { echo "nothing moves"; return 1; }
    monitor "set_link nic0 off"
    until_true 60 more_downs || rc=1
    kill -0 "$exchange" 2>/dev/null || rc=2
    monitor "set_link nic0 on"
    [ "${rc:-}" != 1 ] || { echo "saker does not notice that the link is down"; return 1; }
    [ "${rc:-}" != 2 ] || { echo "the exchange had ended before"; return 1; }
    wait "$exchange"
    rc=$?
    cat "$work/exchange.log"
    echo "with the link down and up: $((SECONDS - began)) s"
    return "$rc"
}
moving() { [ "$(nic show a show qp all | grep -c rts)" -ge 1 ]; }
more_downs() { [ "$(nic log a 'the link is down' | wc -l)" -gt "$downs" ]; }

interrupts() {
    exchange 10.5.0.2 || return 1
    is a rx_interrupts true && is b rx_interrupts true || return 1
    nic show a show loops
}
is_removed() { [ "$(nic port b removed)" = true ]; }
is_closed() { ! nic show b port attach 0 | grep -q "still in use"; }
# The NIC of b is removed in the middle of an exchange, which ends at b with the reason, and comes
# back.
removal() {
    local device
    nic -t 300 peer 10.5.0.2 >"$work/exchange.log" 2>&1 &
    local exchange=$!
    until_true 60 moving || { echo "nothing moves"; return 1; }
    monitor "device_del nic1"
    until_true 60 is_removed || { echo "saker does not notice the removal"; return 1; }
    until_true 60 is_closed || { echo "the device stays open"; return 1; }
    counted b ENG_PORT_GONE 1 || return 1
    device=$(guest "sed -n 2p /share/pmd")
    until_true 60 gone_from_bus || { echo "the guest's kernel keeps the device"; return 1; }
    monitor "device_add ${device#* }"
    until_true 60 on_bus || { echo "the guest's kernel finds no new device"; return 1; }
    guest "bash /run/bind ${device%% *}"
    nic show b port attach 0 || return 1
    # The exchange may have been given up by now.
    guest "pkill -x saker_peer"
    wait "$exchange"
    is b removed false && exchange 10.5.0.2
}
gone_from_bus() { ! guest "[ -e /sys/bus/pci/devices/$(pci 2) ]"; }
on_bus() { guest "[ -e /sys/bus/pci/devices/$(pci 2) ]"; }
pci() { guest "sed -n '$1s/ .*//p' /share/pmd"; }

# QEMU stops a packed ring's device at a frame of several segments, because the driver of DPDK 22.11
# marks the header in its table of descriptors as writable for the device. Frames of testpmd show it
# without saker.
stopped() {
    local rc=0
    # testpmd is linked with more drivers than saker needs.
    guest -t 120 "umount /usr/lib/x86_64-linux-gnu/dpdk/pmds-*
        timeout 60 dpdk-testpmd -a $(pci 1) -l 0,1 --in-memory --no-telemetry -- \
        --forward-mode=txonly --txpkts=100,100 --auto-start --stats-period=1 \
        --total-num-mbufs=4096" &
    until_true 90 is_broken || rc=1
    wait $!
    return "$rc"
}
is_broken() {
    test/interop/guest.py ask "info virtio-status /machine/peripheral/nic0/virtio-backend" |
        grep "broken: *true"
}
# The driver reports two queues for the 82540EM, which has one and never sends what the second one
# accepts. Frames of testpmd show it without saker, which uses one queue. Until it did, a connection
# over e1000 with two transport stages stalled, if its home was the second one.
second_queue() { nic queues "$(pci 1)"; }

boot() {
    local mtu=''
    ip netns del $ns 2>/dev/null
    ip netns add $ns || skip "no network namespace can be made"
    if [[ $model == virtio* ]]; then
        ip -n $ns link add br0 type bridge mcast_snooping 0
        for t in pmd0 pmd1; do
            ip -n $ns tuntap add dev $t mode tap vnet_hdr
            ip -n $ns link set $t mtu 9000 master br0 up
        done
        ip -n $ns link set br0 mtu 9000 up
        mtu=,mtu=9000
    fi
    ip netns exec $ns test/interop/guest.py boot "pmd=$model$mtu" "pmd=$model$mtu" ||
        fail "the guest does not boot: $(test/interop/guest.py console | tail -n 20)"
}

cases=${CI_LONG:+offloads link plain jumbo sleep}
cases=${CASES:-${cases:-offloads sleep}}
group() { [[ " $cases " == *" $1 "* ]]; }
with_offloads() {
    case_passes "iWARP, checksums$(has_tso && echo ' and TSO')" offloaded
    case_passes "Falcon" exchange 10.5.0.2 falcon
    case_passes "iWARP, IPv6, not promiscuous" ipv6
    case_passes "Falcon, VLAN" exchange 10.7.0.2 falcon
    case_passes "iWARP, VLAN" exchange 10.7.0.2
}

cases_of_model() {
    boot
    if [ "$model" = virtio-packed ]; then
        if group plain; then
            case_passes "start, no TSO" starts 1 1500 tso=no
            case_passes "iWARP, MTU 1500" exchange 10.5.0.2
            case_passes "Falcon, MTU 1500" exchange 10.5.0.2 falcon
            case_passes "end" nic stop
        fi
        group offloads && case_passes "testpmd: 2 segments, QEMU stops the device" stopped
        return
    fi
    if group offloads || group link; then
        case_passes "start, MTU 1500" starts 1 1500
        group offloads && with_offloads
        if group link; then
            case_passes "iWARP, link down and up" link_test
            case_passes "Falcon, link down and up" link_test falcon
        fi
        case_passes "end" nic stop
    fi
    if group plain; then
        case_passes "start, no offloads" starts 1 1500 checksum=no tso=no
        case_passes "both transports" without_offloads
        case_passes "end" nic stop
    fi
    if group jumbo; then
        case_passes "start, MTU 9000, two transport stages" starts 2 9000
        case_passes "iWARP and Falcon by RSS" spread
        case_passes "Falcon, IPv6" exchange fd05::2 falcon
        case_passes "end" nic stop
        [ "$model" != e1000 ] || case_passes "testpmd: a second queue sends nothing" second_queue
    fi
    if group sleep && [ "$model" != e1000 ]; then # it has no MSI-X and no root port
        case_passes "start, idle = sleep" starts 1 1500 idle=sleep
        case_passes "receive interrupts" interrupts
        case_passes "removed and back" removal
        case_passes "end" nic stop
    fi
}
# A guest once answered no command from the start of its sakers on, and nobody knows why: guest.py
# prints where its processors stand. Its cases run once more in a new guest.
is_silent() { [ -e "$guests/$SAKER_GUEST_NAME/silent" ]; }

for model in $models; do
    for attempt in 1 2; do
        say "$model"
        failed_before=$failed rows_before=${#table[@]}
        cases_of_model
        is_silent && [ $attempt = 1 ] || break
        say "the guest of $model does not answer: a new one"
        test/interop/guest.py stop
        failed=$failed_before table=("${table[@]:0:rows_before}")
    done
    test/interop/guest.py stop
done
echo
printf '%s\n' "${table[@]}"
exit $((failed != 0))
