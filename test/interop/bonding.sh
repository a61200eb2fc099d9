#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two links bonded by DPDK's own driver (net_bonding, active and backup): two sakers, each with two
# taps, whose links are two bridges. In the middle of a transfer over each transport, the active
# link dies. Every byte is verified, and the pause is printed. It takes 20 seconds on two quiet
# cores.
#
# net_tap of DPDK 22.11 promises to report changes of its link and does not, so that the bonding
# driver would wait for ever. net_impair between them promises nothing, and its link is polled.
. "$(dirname "$0")/common.sh"
[ "$(id -u)" = 0 ] || skip "only root makes network namespaces"
take_memory 600
ns=bond$$
ip netns add $ns || skip "no network namespace can be made"
joiner=''
after_end() {
    [ -z "$joiner" ] || { kill "$joiner"; wait "$joiner"; } 2>/dev/null
    ip netns del $ns
}
inside() { ip netns exec $ns "$@"; }
inside sysctl -qw net.ipv6.conf.default.disable_ipv6=1
for link in 0 1; do
    ip -n $ns link add br$link type bridge mcast_snooping 0
    ip -n $ns link set br$link up
done

# bonded NAME CPU NUMBER: starts a saker on the taps NAME0 and NAME1.
bonded() {
    local name=$1
    cat >"$work/$name.ini" <<INI
[port 0]
device = net_bonding0
$(falcon_section 7)
rto-min = 20ms
psp = none
INI
    start "$name" ip netns exec $ns "$build/app/saker" --lcores "$2" --no-pci "${memory[@]}" \
        --file-prefix "sktest$$$name" --vdev "net_tap0,iface=${name}0" \
        --vdev "net_tap1,iface=${name}1" \
        --vdev "net_impair0,port=net_tap0" --vdev "net_impair1,port=net_tap1" \
        --vdev "net_bonding0,mode=1,slave=net_impair0,slave=net_impair1" \
        -- --socket "$work/$name.sock" --idle yield --config "$work/$name.ini" \
        --address "0=10.8.0.$3/24"
    until_true 60 accepts "$name" || fail "saker $name does not start"
}
# A bridge keeps frames to itself whose address a device at its ports has. The bonding driver moves
# the engine's address from tap to tap, and here each tap gets another one at once.
join() {
    local tap number
    while sleep 0.02; do
        number=0
        for tap in a0 a1 b0 b1; do
            number=$((number + 1))
            [[ $(ip -n $ns -o link show dev $tap 2>/dev/null) == *02:00:00:00:00:0$number* ]] ||
                ip -n $ns link set $tap address 02:00:00:00:00:0$number master br${tap#?}
        done
    done
}
join >/dev/null 2>&1 &
joiner=$!
bonded a 0@0 1
bonded b 0@1 2

arrived() { # the frames that a has received: acknowledgements
    control a -j show port stats all | jq '.ports[0].rx_packets'
}
moves() { [ "$(arrived)" -gt $((mark + $1)) ]; }
links() { # links NUMBER up|down: both ends of a cable
    for name in a b; do ip -n $ns link set "$name$1" "$2"; done
}
ms() { date +%s%3N; }

# perf NAME SAKER OPTIONS...: saker-perf as a client. It does 100 Writes of $size and compares each.
perf() {
    start "$1" "$build/app/saker-perf" --client "$work/$2.sock" "${@:3}" --op write --test lat \
        --size "$size" --iters 100 --rounds 1 --verify --json
}

# dies LINK TRANSPORT SIZE: a transfer in whose middle the link dies.
dies() {
    local link=$1 over=$2 size=$3 at
    perf server b --listen --transport "$over"
    until_true 30 listens b || fail "$over: the server does not listen"
    mark=$(arrived)
    perf client a --connect 10.8.0.2 --transport "$over"
    until_true 30 moves 500 || fail "$over: nothing moves"
    at=$(ms)
    links "$link" down
    mark=$(arrived)
    is_running client || fail "$over: the transfer ended before the link died"
    until_true 60 moves 50 || fail "$over: nothing moves over the other link"
    echo "$over: link $link died in mid-transfer; the pause was at most $(($(ms) - at)) ms"
    ends client 120 || fail "$over: the client failed"
    ends server 60 || fail "$over: the server failed"
    [ "$(jq -r '.verified, .errors' "$work/client.log" | tr '\n' ' ')" = "100 0 " ] ||
        fail "$over: not every byte was right"
    echo "$over: 100 Writes of $size arrived, and every byte was right"
    links "$link" up
}
dies 0 iwarp 4m
dies 1 falcon 1m
control a show port info all | grep -E "driver|link"
