#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Ports that compute checksums and cut segments: net_impair as a NIC that checks every field of an
# offload request; net_virtio_user against net_vhost; and, for frames that pass the kernel, net_tap
# at a bridge (checksums) and net_af_packet at a veth (no offloads). The first two run iWARP and
# RDMA over Falcon in clear, whose datagrams have a UDP checksum. Every operation is verified byte
# by byte, and the counters show that the offloads were in use.
. "$(dirname "$0")/perf.inc"
iters=20
take_memory 512

# used NAME WHO: fails unless `WHO` left checksums to its port in both directions, and no frame had
# a wrong request or a wrong checksum.
used() {
    local bad
    for bad in "port tx_offload_error" "port rx_cksum_bad" "eng ENG_TX_REFUSED" \
        "eng ENG_RX_OFFLOAD_BAD" "wire WIRE_TCP_CHECKSUM" "wire WIRE_UDP_CHECKSUM" \
        "wire WIRE_IP4_CHECKSUM"; do
        [ "$(counted "$1" "$2" "${bad% *}" "${bad#* }")" = 0 ] || fail "$1: $2 counted $bad"
    done
    [ "$(counted "$1" "$2" eng ENG_TX_CKSUM)" -gt 0 ] || fail "$1: $2 left no checksum to the port"
    [ "$(counted "$1" "$2" eng ENG_RX_CKSUM)" -gt 0 ] || fail "$1: $2's port checked nothing"
}

source_of() { [ "$1" = read ] && echo passive || echo active; } # the end that sends the data

row='%-10s %-7s %-6s %8s %6s %9s %9s %9s\n'
say "net_impair as a NIC, embedded: frames that $iters operations left to the port"
# shellcheck disable=SC2059 # the format is a variable
printf "$row" port over op size mtu checksum tso segments
nic() { # nic TRANSPORT OP SIZE MTU [IMPAIR]
    local transport=$1 op=$2 size=$3 mtu=$4 impair=${5:-} name="nic-$1-$2-$3-$4" who cut segments
    who=$(source_of "$op")
    both "$name" --transport "$transport" --op "$op" --test lat --size "$size" --mtu "$mtu" \
        --iters $iters --verify --impair "nic=1$impair"
    correct "$name" $iters
    [ -n "$impair" ] || { used "$name" active && used "$name" passive; }
    [ "$(counted "$name" "$who" port tx_offload_error)" = 0 ] ||
        fail "$name: the NIC refused frames"
    cut=$(counted "$name" "$who" port tx_tso)
    segments=$(counted "$name" "$who" port tx_segments)
    [ "$cut" = "$(counted "$name" "$who" eng ENG_TX_TSO)" ] ||
        fail "$name: the NIC did not cut each frame for TSO"
    if [ "$transport" = iwarp ] && [ "$size" -gt $((2 * mtu)) ]; then
        [ "$cut" -ge $iters ] && [ "$segments" -ge $((2 * cut)) ] ||
            fail "$name: $cut frames for TSO, $segments segments"
    fi
    # shellcheck disable=SC2059
    printf "$row" "nic${impair:+$impair}" "$transport" "$op" "$size" "$mtu" \
        "$(counted "$name" "$who" port tx_cksum_filled)" "$cut" "$segments"
}
for transport in iwarp falcon; do
    for mtu in ${MTUS-1500 9000}; do
        for op in send write read; do
            for size in 1 1400 4096 65536 1048576; do nic $transport $op $size "$mtu"; done
        done
    done
    nic $transport write 1048576 1500 ,seed=5,drop=0.01,reorder=0.01
done

say "the same port with --no-offload"
for transport in iwarp falcon; do
    both plain --transport $transport --op write --test lat --size 65536 --iters $iters --verify \
        --impair nic=1 --no-offload
    correct plain $iters
    for c in "port tx_tso" "port tx_cksum_filled" "eng ENG_TX_CKSUM"; do
        [ "$(counted plain active "${c% *}" "${c#* }")" = 0 ] ||
            fail "plain: $transport counted $c although --no-offload"
    done
done

# apart NAME EAL-OPTIONS -- EAL-OPTIONS -- OPTIONS...: runs two processes. The first EAL options are
# those of the accepting end, the second those of the connecting end.
apart() {
    local name=$1 first=() second=() server
    shift
    while [ "$1" != -- ]; do first+=("$1"); shift; done
    shift
    while [ "$1" != -- ]; do second+=("$1"); shift; done
    shift
    perf "$name-in" --lcores 0@0 "${first[@]}" -- --listen --address 10.9.0.1/24 --verify \
        --iters $iters "$@" &
    server=$!
    pid[server]=$server
    until_true 30 listens "$name-in" $server || fail "$name: the accepting end does not listen"
    perf "$name-out" --lcores 0@1 "${second[@]}" -- --connect 10.9.0.1 --address 10.9.0.2/24 \
        --verify --iters $iters "$@" || fail "$name: the connecting end failed"
    wait $server || fail "$name: the accepting end failed"
    unset "pid[server]"
    correct "$name-out" $iters
}
listens() {
    kill -0 "$2" 2>/dev/null || fail "$1 ended"
    grep -qs '^listening$' "$work/$1.log"
}
shown() { # shown NAME PORT TRANSPORT OP SIZE MTU
    local log=$1-out who
    who=$(source_of "$4")
    [ "$who" = active ] || log=$1-in
    # shellcheck disable=SC2059
    printf "$row" "$2" "$3" "$4" "$5" "$6" "$(counted "$log" "$who" eng ENG_TX_CKSUM)" \
        "$(counted "$log" "$who" eng ENG_TX_TSO)" -
}

say "net_virtio_user against net_vhost"
virtio() { # virtio TRANSPORT OP SIZE MTU
    local transport=$1 op=$2 size=$3 mtu=$4 name=virtio-$1-$2-$3-$4
    rm -f "$work/vhost.sock"
    # One file for each list of memory segments: vhost-user shares at most eight regions.
    apart "$name" --single-file-segments --vdev "net_vhost0,iface=$work/vhost.sock,tso=1" -- \
        --single-file-segments --vdev "net_virtio_user0,path=$work/vhost.sock" -- \
        --transport "$transport" --op "$op" --test lat --size "$size" --mtu "$mtu"
    used "$name-out" active
    used "$name-in" passive
    if [ "$transport" = iwarp ] && [ "$op" != read ] && [ "$size" -gt $((2 * mtu)) ]; then
        [ "$(counted "$name-out" active eng ENG_TX_TSO)" -ge $iters ] || fail "$name: no TSO"
    fi
    shown "$name" virtio "$transport" "$op" "$size" "$mtu"
}
if [ "${memory[0]}" = --in-memory ]; then
    for transport in iwarp falcon; do
        for op in send write read; do
            for size in 64 65536 1048576; do virtio $transport $op $size 1500; done
        done
        virtio $transport write 1048576 9000
    done
else
    echo "left out: vhost-user cannot share memory without huge pages"
fi

ns=skp$$
after_end() { ip netns del "$ns" 2>/dev/null; }
if ! ip netns add $ns 2>/dev/null; then
    [ "$(id -u)" = 0 ] && fail "no network namespace can be made"
    echo "left out: the kernel's ports, because only root makes network namespaces"
    exit 0
fi
inside() { ip netns exec $ns "$@"; }
inside sysctl -qw net.ipv6.conf.default.disable_ipv6=1
program=$(readlink -f "$build")/app/saker-perf
perf() {
    local name=$1
    shift
    timeout -k 5 "${limit:-120}" ip netns exec $ns "$program" --no-pci "${memory[@]}" \
        --no-telemetry --file-prefix "skp$$$name" "$@" --json --counters \
        >"$work/$name.json" 2>"$work/$name.log"
}

say "net_af_packet over a veth"
ip -n $ns link add ve0 type veth peer name ve1
ip -n $ns link set ve0 up
ip -n $ns link set ve1 up
packet() { # packet OP SIZE
    apart "packet-$1-$2" --vdev net_af_packet0,iface=ve0 -- --vdev net_af_packet0,iface=ve1 -- \
        --op "$1" --test lat --size "$2"
    shown "packet-$1-$2" af_packet iwarp "$1" "$2" 1500
}
for op in send write read; do packet $op 65536; done

say "net_tap at a bridge"
ip -n $ns link add br0 type bridge
ip -n $ns link set br0 up
# The taps live as long as the processes. A bridge keeps frames for the address of a port's device
# to itself, and a tap's device has the engine's address: it gets another one.
join() {
    local t
    while sleep 0.05; do
        for t in 0 1; do
            ip -n $ns -o link show dev tap$t up | grep -q . || continue
            ip -n $ns -o link show dev tap$t | grep -q 02:00:00:00:00:0$t ||
                ip -n $ns link set tap$t address 02:00:00:00:00:0$t
            ip -n $ns link set tap$t master br0
        done
    done
}
join >/dev/null 2>&1 &
joiner=$!
after_end() { kill $joiner; ip netns del $ns; } 2>/dev/null
tap() { # tap OP SIZE
    apart "tap-$1-$2" --vdev net_tap0,iface=tap0 -- --vdev net_tap0,iface=tap1 -- \
        --op "$1" --test lat --size "$2"
    used "tap-$1-$2-out" active
    used "tap-$1-$2-in" passive
    shown "tap-$1-$2" tap iwarp "$1" "$2" 1500
}
for op in send write read; do tap $op 65536; done
echo "every byte was right"
