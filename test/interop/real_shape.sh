#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two saker processes joined by net_memif, with client processes at each. Good clients finish with
# every byte right whatever the others do: one is killed during a transfer, one scribbles over all
# the memory that it shares, one punches holes into it, one truncates it. Their partners receive an
# event, saker's counters show what happened, and nothing is left behind.
. "$(dirname "$0")/common.sh"
[ -x "$build/app/saker" ] || fail "$build/app/saker is not built"
peer=$interop/saker_peer rogue=$interop/rogue
long=quick
[ -n "${CI_LONG:-}" ] && long=
take_memory 900
port=7000

# exchange NAME SERVER-SAKER CLIENT-SAKER ADDRESS [OPTIONS...]: starts two programs that exchange
# messages. exchange_passes NAME waits for their end.
exchange() {
    local name=$1 server=$2 client=$3 address=$4
    shift 4
    port=$((port + 1))
    start "$name.listen" "$peer" "$work/$server.sock" listen any $port "$@"
    until_true 60 log_says "$name.listen" listening || fail "$name: the server does not listen"
    start "$name.connect" "$peer" "$work/$client.sock" connect "$address" $port "$@"
}
exchange_passes() {
    passes "$1.connect" 300
    passes "$1.listen" 60
    echo "exchange $1: $(grep steps "$work/$1.connect.log")"
}

# misbehave NAME MODE: starts a client at a and its partner at b, and waits until the client
# misbehaves.
misbehave() {
    port=$((port + 1))
    start "$1.partner" "$rogue" "$work/b.sock" partner any $port
    until_true 60 log_says "$1.partner" listening || fail "$1: the partner does not listen"
    start "$1" "$rogue" "$work/a.sock" "$2" 10.5.0.2 $port
    until_true 60 log_says "$1" "^$2" || fail "$1 does not begin to misbehave"
}
told() { # told NAME: the partner received its event, and every byte before that was right
    passes "$1.partner" 90
    echo "$1: the partner received its event; $(grep requests "$work/$1.partner.log")"
}

value() { telemetry "$1" /saker/info | jq ".$2"; }
# stop NAME...: ends sakers in order. Each removes its socket.
stop() {
    local s
    for s in "$@"; do
        kill -TERM "${pid[$s]}"
        passes "$s" 60
        [ -e "$work/$s.sock" ] && fail "saker $s left its socket behind"
    done
}

say "two sakers joined by memif"
wire_a=(--address "0=10.5.0.1/24" --address "0=fd05::1/64")
wire_b=(--address "0=10.5.0.2/24" --address "0=fd05::2/64")
pair
exchange v4 b a 10.5.0.2 $long
exchange_passes v4
exchange v6 a b fd05::1 $long
exchange_passes v6
exchange loop a a 10.5.0.1 quick
exchange_passes loop
clean a b

say "four clients: one is killed, one scribbles"
misbehave killed stream
exchange good1 b a 10.5.0.2
exchange good2 a b 10.5.0.1
misbehave scribbler scribble
is_running good1.connect && is_running good2.connect ||
    echo "(the good clients have finished already)"
{ kill -KILL "${pid[killed]}"; ends killed 10; } 2>/dev/null
told killed
exchange during b a 10.5.0.2 quick
passes scribbler 60
told scribbler
for e in good1 good2 during; do exchange_passes $e; done
clean a b
[ "$(counter a ENG_CLIENT_DEAD)" -ge 2 ] || fail "saker does not count the clients that died"
bad=$(telemetry a /saker/counters |
    jq '.eng | .ENG_BAD_DOORBELL + .ENG_BAD_COMMAND')
[ "$bad" -gt 0 ] || fail "saker counts no invalid value after the scribbling"
echo "saker counts $bad invalid values"

say "holes in a client's memory, and a truncated one"
exchange good3 b a 10.5.0.2
for deed in punch hollow truncate; do
    misbehave $deed $deed
    ends $deed 60 2>/dev/null
    told $deed
done
exchange_passes good3
exchange good4 b a 10.5.0.2 quick
exchange_passes good4
clean a b
counted=$(counter a ENG_CLIENT_SIGBUS)
grep -h -e holes -e truncated "$work"/{punch,hollow,truncate}.log
echo "saker counts $counted clients that took memory away"
grep -q "not of huge pages" "$work/punch.log" || [ "$counted" -ge 1 ] ||
    fail "saker counts no client that took memory away"
stop a b

say "stages split over two lcores, IPv6, jumbo frames"
while read -r name number role; do
    saker "$name" 0@0,1@1 "net_memif0,role=$role,socket=$work/wire,zero-copy=no,bsize=12288" -- \
        --address "0=fd05::$number/64" --mtu 9000 --loops 2 --transport-loops 0 --stage-loops 1
done <<<"a 1 server
b 2 client"
exchange split b a fd05::2 $long
exchange_passes split
clean a b
stop a b

say "a VLAN"
for n in 1 2; do
    printf '%s\n' '[interface 0]' 'port = net_memif0' 'vlan = 77' "address = 10.5.0.$n/24" \
        >"$work/vlan$n.ini"
done
wire_a=(--config "$work/vlan1.ini")
wire_b=(--config "$work/vlan2.ini")
pair
exchange vlan b a 10.5.0.2 quick
exchange_passes vlan
clean a b
stop a b

say "flat clients"
flat() {
    "$interop/flat_exchange" --no-huge --no-shconf --no-pci --no-telemetry -m 512 \
        --lcores "$cpus" -- $long "$@" >"$work/flat.log" 2>&1 || fail "flat_exchange $*"
    echo "flat clients $*: $(grep steps "$work/flat.log" | tail -n 1)"
}
cpus=0@0,1@1
[ "$(nproc)" -gt 1 ] || cpus=0@0,1@0
flat
flat split
flat one
flat one split v6
flat vlan jumbo
leftovers=$(ls -d /var/run/dpdk/sktest$$*/*map* 2>/dev/null)
[ -z "$leftovers" ] || fail "files are left: $leftovers"
echo "nothing is left behind"
echo PASS
