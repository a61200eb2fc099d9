#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Sakers that end and start again under their programs. Ten programs work on one saker over both
# transports. Each of them gets a device-fatal event when the saker ends, closes its device, and
# opens that of the next saker in the same process. Debian's rping -s, which listens at all
# addresses and knows nothing of this, serves clients of each saker, also those of a second saker,
# whose memif port as client finds each new server by itself. rping -s exits at the event that a
# device with one of its connections has gone, so that a saker ends when it has none. A program has
# as many descriptors and mappings with the last saker as with the first. Then the port of the
# second saker is the uplink of a gateway. 25 seconds; CI_LONG: twenty restarts.
. "$(dirname "$0")/common.sh"
take_memory 512
restarts=${CI_LONG:+20}
restarts=${restarts:-6}
[ -x "$interop/verbs_restart" ] || skip "the tests were built without libibverbs"
[ -n "$(command -v rping)" ] || fail "rping is missing"

falcon_section 7 >"$work/saker.ini"
wire="socket=$work/wire,zero-copy=no" mac=''
up() {
    rm -f "$work/wire" # a saker that is killed leaves it
    saker a 0@0 "net_memif0,role=server,$wire$mac" -- --address 0=10.5.0.1/24 \
        --config "$work/saker.ini" --idle sleep
}
down() { # down SIGNAL
    kill "-$1" "${pid[a]}"
    ends a 60 2>/dev/null
    rm -f "$work/a.sock"
}
# A subshell in the background becomes the program, so that a signal to it reaches the program.
under() { exec env SAKER_SOCKET="$work/a.sock" "$build/app/saker-run" "$@"; }
all_at_work() { # all_at_work K
    local i
    for i in $(seq 10); do log_says "p$i" "at work $1\$" || return 1; done
}
calls() { # calls SAKER DEVICE
    is_running server || fail "rping's server has ended: $(tail -n 1 "$work/server.log")"
    timeout 60 env SAKER_SOCKET="$work/$1.sock" SAKER_DEVICE="$2" "$build/app/saker-run" \
        rping -c -a 10.5.0.1 -p 7999 -C 3 -V >"$work/rping.log" 2>&1
}
# A client that has ended leaves its connection to the server, which has two threads for each until
# it has destroyed the id. Two other threads have the program's name; the library names its own.
disconnected() {
    [ "$(cat "/proc/${pid[server]}/task"/*/comm 2>/dev/null | grep -c "^rping$")" = 2 ]
}

say "ten programs and a server, $restarts restarts"
up
saker b 0@1 "net_memif0,role=client,$wire" -- --address 0=10.5.0.2/24 \
    --config "$work/saker.ini" --idle sleep
for i in $(seq 10); do
    device=iwarp
    [ "$i" -le 5 ] || device=falcon
    SAKER_DEVICE=$device start "p$i" under "$interop/verbs_restart" 10.5.0.1 $((7500 + i)) \
        $((restarts + 1))
done
SAKER_DEVICE=iwarp start server under rping -s -P -p 7999
for k in $(seq "$restarts"); do
    until_true 120 all_at_work "$k" || fail "not all programs work with saker number $k"
    for device in iwarp falcon; do
        until_true 60 calls a $device || fail "saker $k: rping's server does not serve $device"
    done
    until_true 60 calls b iwarp || fail "saker $k: rping's server does not serve saker b"
    until_true 60 disconnected || fail "saker $k: rping's server keeps its connections"
    signal=TERM
    [ $((k % 2)) = 0 ] || signal=KILL
    down $signal
    up
done
until_true 120 all_at_work $((restarts + 1)) || fail "not all programs work with the last saker"
until_true 60 calls b falcon || fail "rping's server does not serve the last saker"
kill "${pid[server]}"
ends server 60
for i in $(seq 10); do
    left=$(sed -n 's/^left //p' "$work/p$i.log")
    [ "$left" = 0 ] || fail "program $i has $left descriptors and mappings more than at first"
done
down TERM
for i in $(seq 10); do passes "p$i" 60; done
echo "each of ten programs worked with $((restarts + 1)) sakers"

# The host's engine behind the gateway does not learn that the wire was away: it keeps the MAC
# address of its neighbour for half a minute.
say "a gateway whose uplink finds the next server"
mac=,mac=02:00:00:00:05:01
kill "${pid[b]}"
ends b 60
up
printf '%s\n' '[gateway]' 'enabled = yes' 'uplink = net_memif0' >"$work/c.ini"
saker c 0@1 "net_memif0,role=client,$wire" -- --address 0=10.5.0.3/24 \
    --config "$work/c.ini" --idle sleep
# rping would wait long for an answer to the SYN that it sends before there is a link.
linked() { grep "the link is" "$work/c.log" | tail -n 1 | grep -q up; }
unlinked() { ! linked; }
for k in 1 2 3; do
    SAKER_DEVICE=iwarp start server under rping -s -P -p 7999
    [ "$k" = 1 ] || until_true 60 linked || fail "saker $k: the uplink has no link"
    until_true 60 calls c iwarp || fail "saker $k: the uplink does not reach it"
    kill "${pid[server]}"
    ends server 60
    down KILL
    until_true 60 unlinked || fail "the uplink keeps its link"
    up
done
echo "the uplink reached three sakers"
echo PASS
