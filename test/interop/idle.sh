#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Sakers that sleep. Two of them, joined by net_vhost and net_virtio_user, have receive interrupts:
# while nothing happens they wake a few times in a second, with a Falcon connection as well, and a
# frame ends their sleep. So it is again when the link of net_vhost has gone and come back. Ports
# without interrupts, and those that do not use them, leave the loop short naps.
#
# The loops' counters decide; the times of round trips are only printed.
. "$(dirname "$0")/common.sh"
install_packages jq || skip "jq cannot be installed"
take_memory 320
[ "${memory[0]}" = --in-memory ] || skip "vhost-user cannot share memory without huge pages"
rounds=50
port=7600

# One file for each list of memory segments: vhost-user shares at most eight regions.
memory+=(--single-file-segments)
asleep() { # asleep NAME CPU VDEV OPTIONS...
    local name=$1 cpu=$2 vdev=$3
    shift 3
    saker "$name" "$cpu" "$vdev" -- --idle sleep --falcon yes --psp none \
        --total-num-mbufs 16384 "$@"
}
loop() { telemetry "$1" /saker/loops | jq ".\"0\".$2"; } # loop NAME COUNTER
grown() { echo $(($(loop "$1" "$2") - $3)); }            # grown NAME COUNTER BEFORE
cpu_us() { awk '{ns += $1} END {print int(ns / 1000)}' /proc/"${pid[$1]}"/task/*/schedstat; }

has_slept() { [ "$(loop "$1" sleeps)" -gt 10 ]; }

# of_threads NAME: the processor time of each thread since the process began, in microseconds.
of_threads() {
    local t
    for t in /proc/"${pid[$1]}"/task/*; do
        echo "    $(cat "$t/comm"): $(awk '{print int($1 / 1000)}' "$t/schedstat") us"
    done
}

# rests NAME SECONDS [WAKES]: the saker's loop takes no nap, and wakes less often than WAKES (30)
# times in a second. All threads of the process together take below 0.5 % of a processor of their
# own; the bound is generous, since a host may share the processor. The saker has ten such spans to
# come to rest: while a peer ends, its port accepts no frames, and the loop takes naps.
rests() {
    local naps sleeps cpu begin us span why=
    until_true 60 has_slept "$1" || fail "saker $1 does not sleep"
    for span in {1..10}; do
        naps=$(loop "$1" naps) sleeps=$(loop "$1" sleeps)
        cpu=$(cpu_us "$1") begin=${EPOCHREALTIME/./}
        sleep "$2"
        us=$((${EPOCHREALTIME/./} - begin)) cpu=$(($(cpu_us "$1") - cpu))
        naps=$(grown "$1" naps "$naps") sleeps=$(grown "$1" sleeps "$sleeps")
        echo "saker $1: $sleeps sleeps, $naps naps and $cpu us of a processor in $((us / 1000)) ms"
        if [ "$naps" != 0 ]; then
            why="takes naps"
        elif [ $((sleeps * 1000000)) -ge $((us * ${3:-30})) ]; then
            why="wakes too often"
        elif [ $((cpu * 50)) -ge "$us" ]; then
            why="takes more than 2 %"
            of_threads "$1"
        else
            return 0
        fi
    done
    fail "saker $1 $why, in span $span as well"
}

# round_trips TRANSPORT FROM TO ADDRESS: a Read after each pause. The peer's saker sleeps at that
# time, or is about to, so that at least half of the requests end its sleep.
round_trips() {
    local naps woken median worst
    port=$((port + 1))
    [ "$1" = iwarp ] || export PEER_FALCON=1
    start server "$interop/pause" "$work/$3.sock" listen $port
    until_true 60 log_says server listening || fail "the server does not listen"
    naps=$(loop "$3" naps) woken=$(loop "$3" port_wakes)
    start client nice -n 19 "$interop/pause" "$work/$2.sock" connect "$4" $port $rounds 5000
    passes client 120
    passes server 60
    unset PEER_FALCON
    naps=$(grown "$3" naps "$naps") woken=$(grown "$3" port_wakes "$woken")
    read -r median worst <"$work/client.log"
    echo "$1, $2 to $3: round trip after a pause $median us, at most $worst us;" \
        "the port of $3 woke it $woken times"
    [ "$naps" = 0 ] || fail "saker $3 took $naps naps"
    [ "$woken" -ge $((rounds / 2)) ] || fail "the port of $3 did not wake it"
}

say "net_vhost and net_virtio_user"
asleep a 0@0 "net_vhost0,iface=$work/vhost" --address 0=10.7.0.1/24
rests a 2
asleep b 0@1 "net_virtio_user0,path=$work/vhost" --address 0=10.7.0.2/24
sleep 1
rests a 2
rests b 2
for transport in iwarp falcon; do
    round_trips $transport a b 10.7.0.2
    round_trips $transport b a 10.7.0.1
done

say "idle connections"
for transport in iwarp falcon; do
    port=$((port + 1))
    [ $transport = iwarp ] || export PEER_FALCON=1
    start "server-$transport" "$interop/pause" "$work/b.sock" listen $port
    until_true 60 log_says "server-$transport" listening || fail "the server does not listen"
    start "client-$transport" "$interop/pause" "$work/a.sock" connect 10.7.0.2 $port 1 600000000
done
unset PEER_FALCON
connected() { [ "$(telemetry a /saker/info | jq .connections)" -ge 2 ]; }
until_true 60 connected || fail "the programs do not connect"
sleep 1
# The control stage looks at the mailboxes of clients 100 times in a second.
rests a 2 150
rests b 2 150
for transport in iwarp falcon; do
    kill "${pid[client-$transport]}" "${pid[server-$transport]}"
done

say "the link of net_vhost goes and comes back"
kill "${pid[b]}"
ends b 60
rests a 1
# Two loops. The second one has no port: the first one wakes it.
asleep b 0@1,1@0 "net_virtio_user0,path=$work/vhost" --address 0=10.7.0.2/24 \
    --loops 2 --transport-loops 0 --stage-loops 1
second() { telemetry b /saker/loops | jq '."1".wakes'; }
woken=$(second)
round_trips iwarp b a 10.7.0.1
round_trips falcon a b 10.7.0.2
[ $(($(second) - woken)) -ge $rounds ] || fail "the second loop of b is not woken"
rests a 1

say "naps"
asleep ring 0@0 net_ring0 --address 0=10.8.0.1/24
printf '[port 0]\ninterrupts = no\n' >"$work/no.ini"
asleep off 0@0 "net_vhost0,iface=$work/off-port" --config "$work/no.ini" --address 0=10.8.0.1/24
naps_of() { [ "$(loop "$1" naps)" -gt 100 ]; }
for name in ring off; do
    until_true 60 naps_of $name || fail "saker $name takes no naps"
    [ "$(loop $name port_wakes)" = 0 ] || fail "the port of saker $name wakes it"
done
echo PASS
