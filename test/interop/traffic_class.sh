#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Classes of packets as unmodified verbs programs choose them, read from captures by tshark: DSCP,
# priority of the VLAN tag and IPv6 flow label, on both devices. The ECN bits stay those of the
# transports. About 10 seconds.
. "$(dirname "$0")/common.sh"
install_packages jq tshark perftest python3-pyverbs || skip "packages cannot be installed"
[ -x "$build/app/saker-run" ] ||
    skip "saker-run is not built: no headers of libibverbs and librdmacm"
take_memory 900

# conf N: prints the configuration of a saker: a VLAN with both families, and a priority for
# rping. Saker a (1) maps the priorities 3 and 5 to others.
conf() {
    falcon_section 7
    printf '%s\n' '[interface 0]' 'port = 0' 'vlan = 7' "address = 10.5.0.$1/24" \
        '[interface 1]' 'port = 0' 'vlan = 7' "address = fd05::$1/64" \
        '[client 0]' 'name = rping' 'traffic-class = 40' 'priority = 3'
    [ "$1" != 1 ] || printf '%s\n' '[saker]' 'vlan-priorities = 0,1,2,6,4,7,6,7'
}
conf 1 >"$work/a.ini"
conf 2 >"$work/b.ini"
wire_a=(--config "$work/a.ini") wire_b=(--config "$work/b.ini")
pair --idle sleep

# captured NAME COMMAND...: captures the frames of saker a while the command runs.
captured() {
    control a capture start "$work/$1.pcapng" 0 >"$work/capture.log" 2>&1 || fail "no capture"
    "${@:2}"
    control a capture stop >>"$work/capture.log" 2>&1 || fail "the capture does not end"
}
# classes NAME FILTER: prints what the packets of a capture that match have, once each: DSCP,
# priority, ECN.
classes() {
    tshark -r "$work/$1.pcapng" -Y "$2" -T fields -E separator=' ' -e ip.dsfield.dscp \
        -e ipv6.tclass.dscp -e vlan.priority 2>"$work/tshark.log" |
        tr -s ' ' | sed 's/^ //' | sort -u | paste -sd,
}
# has NAME FILTER WANT: WANT is the one DSCP and priority of all packets that match.
has() {
    local seen
    seen=$(classes "$1" "$2")
    [ "$seen" = "$3" ] || fail "$1, $2: DSCP and priority are '$seen', not '$3'"
    printf '%-10s %-70s DSCP %-3s priority %s\n' "$1" "$2" "${3% *}" "${3#* }"
}
count() { tshark -r "$work/$1.pcapng" -Y "$2" 2>"$work/tshark.log" | wc -l; }

# perftest NAME PROGRAM ARGS...: runs both ends.
port=18800
perftest() {
    port=$((port + 1))
    between "$1" "$to" "${@:2}" -p $port
}
from_a="(ip.src == 10.5.0.1 or ipv6.src == fd05::1)"
from_b="(ip.src == 10.5.0.2 or ipv6.src == fd05::2)"

say "RDMA_OPTION_ID_TOS over iWARP: ib_write_bw -R --tos"
to=10.5.0.2
captured tos perftest tos ib_write_bw -d saker0 -R --tos 97 -n 50 -s 4096
# perftest first connects another queue pair, without the option, for its parameters, and its server
# never sets the option. The client may connect the second one before the server listens; it is
# refused then and connects once more, so its stream is the last one. The last segments, in
# TIME_WAIT, have the class 0.
stream=$(tshark -r "$work/tos.pcapng" -Y tcp -T fields -e tcp.stream 2>"$work/tshark.log" |
    sort -n | tail -n 1)
has tos "tcp.stream == $stream and $from_a and (tcp.flags.syn == 1 or tcp.len > 0)" "24 0"
has tos "tcp.stream == $stream and $from_b and tcp.flags.fin == 0 and tcp.flags.reset == 0" "0 0"
has tos "tcp.stream == 0 and tcp.len > 0" "0 0"
[ "$(count tos "tcp.len > 0 and $from_a and ip.dsfield.ecn == 2")" -gt 50 ] ||
    fail "data of iWARP is not ECN-capable"
[ "$(count tos "ip.dsfield.ecn == 1")" = 0 ] || fail "the program's value has set ECN bits"

say "the default of a client, over IPv6: rping"
ping() {
    start rping.server at b rping -s -a fd05::2 -p 18900
    until_true 60 listens b || fail "rping does not listen"
    start rping.client at a rping -c -a fd05::2 -p 18900 -C 20
    passes rping.client 60
    ends rping.server 60 # its status tells how the client left
}
captured default ping
has default "tcp.len > 0 and $from_a" "10 6"
has default "tcp.len > 0 and $from_b" "10 3"
labels() { # labels NAME FILTER: prints the flow labels
    tshark -r "$work/$1.pcapng" -Y "$2" -T fields -e ipv6.flow 2>"$work/tshark.log" | sort -u
}
label=$(labels default "tcp and $from_a")
[ "$(wc -l <<<"$label")" = 1 ] && [ $((label)) -gt 0 ] ||
    fail "the segments of one connection have the flow labels $label"
echo "           one flow label from the SYN to the end: $label"

say "an ibv_ah_attr over Falcon: ib_write_bw --tclass --sl"
to=127.0.0.1
gid=$("$build/app/saker-run" --socket "$work/a.sock" ibv_devinfo -v -d sakerf0 2>/dev/null |
    sed -n 's/.*GID\[ *\([0-9]*\)\].*10\.5\.0\.1.*/\1/p' | head -n 1)
captured falcon perftest falcon ib_write_bw -d sakerf0 -x "$gid" --tclass 184 -S 5 -n 50 -s 4096
has falcon "udp.dstport == 1000 and $from_a" "46 7"
has falcon "udp.dstport == 1000 and $from_b" "46 5"
[ "$(count falcon "udp.dstport == 1000 and ip.dsfield.ecn != 2")" = 0 ] ||
    fail "a packet of Falcon is not ECN-capable"

say "a flow label over Falcon"
gid=$("$build/app/saker-run" --socket "$work/a.sock" ibv_devinfo -v -d sakerf0 2>/dev/null |
    sed -n 's/.*GID\[ *\([0-9]*\)\].*fd05::1.*/\1/p' | head -n 1)
label() {
    start label.server at b /usr/bin/python3 test/interop/traffic_class.py server sakerf0 "$gid" \
        "$work"
    start label.client at a /usr/bin/python3 test/interop/traffic_class.py client sakerf0 "$gid" \
        "$work"
    until_true 90 [ -e "$work/done" ] || fail "the Writes are not done"
    # The flow label in use is a matter of each Falcon packet, and not shown.
    seen=$(control a -j show qp "$(cut -d' ' -f1 <"$work/client")" |
        jq -c '.qps[0] | [.kind, .dscp, .vlan_priority]')
    [ "$seen" = '["falcon",46,7]' ] || fail "show qp shows $seen"
    touch "$work/shown"
    passes label.client 90
    passes label.server 90
}
captured label label
has label "udp.dstport == 1000 and $from_a" "46 7"
label=$(labels label "udp.dstport == 1000 and udp.length > 1000 and $from_a")
[ $((label)) = $((0xabcde)) ] || fail "data has the flow labels $label, not 0xabcde"
echo "           flow label of the Writes: $label"
echo PASS
