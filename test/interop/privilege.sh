#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# saker with the privileges of its systemd unit and no others: systemd-analyze judges the unit, and
# the program `confined` runs saker with the unit's user (one without a name), capabilities and
# system calls. A system call that the unit forbids ends saker. Under it: both transports, TLS,
# telemetry, a client in namespaces of its own, clients that are killed, that scribble and that take
# their memory away, a vhost port, a client in a user namespace, and the drivers memif, ring,
# af_packet and tap.
. "$(dirname "$0")/common.sh"
unit=$build/config/saker.service
[ -x "$interop/confined" ] || skip "confined is not built: libseccomp-dev"
command -v systemd-analyze >/dev/null || skip "systemd-analyze is not installed: systemd"
[ "$(id -u)" = 0 ] || skip "changing the user needs root"
confined=$(realpath "$interop/confined") program=$(realpath "$build/app/saker")
peer=$interop/saker_peer rogue=$interop/rogue
id=47110 port=7300
spaces=()
take_memory 700
# The folder of the sockets, as RuntimeDirectory= makes it.
run=$work/run
chmod 711 "$work"
install -d -m 755 -o $id -g $id "$run"

after_end() {
    local s
    for s in "${spaces[@]}"; do ip netns del "$s" 2>/dev/null; done
}

# served NAME CPU VDEV... -- OPTIONS...: starts a saker under the unit, and waits until it accepts
# clients. ${inside[@]}: the command that starts it.
inside=() mode=0666
served() {
    local name=$1 cpus=$2 vdevs=()
    shift 2
    while [ "$1" != -- ]; do
        vdevs+=(--vdev "$1")
        shift
    done
    shift
    start "$name" env RUNTIME_DIRECTORY="$run" SAKER_SOCKET_MODE=$mode "${inside[@]}" \
        "$confined" "$unit" $id $id "$program" --lcores "$cpus" --no-pci "${memory[@]}" \
        --file-prefix "$name" "${vdevs[@]}" -- --socket "$run/$name.sock" --idle yield "$@"
    until_true 120 listening "$name" || fail "saker $name does not start"
}
listening() {
    is_running "$1" || fail "saker $1 ended with status $(ends "$1" 5; echo $?)"
    [ -S "$run/$1.sock" ] && [ "$(stat -c %a "$run/$1.sock")" = "${mode#0}" ]
}
stop() {
    local s
    for s in "$@"; do
        kill -TERM "${pid[$s]}"
        passes "$s" 60
    done
}
telemetry() { test/interop/telemetry.py "$run/dpdk/$1/dpdk_telemetry.v2" "$2"; }

# exchange SERVER CLIENT ADDRESS [LAUNCHER...]: messages of all kinds between two clients.
exchange() {
    local server=$1 client=$2 address=$3
    shift 3
    port=$((port + 1))
    start "listen$port" "$peer" "$run/$server.sock" listen any $port quick
    until_true 60 log_says "listen$port" listening || fail "the server at $server does not listen"
    start "connect$port" "$@" "$peer" "$run/$client.sock" connect "$address" $port quick
    passes "connect$port" 300
    passes "listen$port" 60
}
# misbehave MODE: a client at a misbehaves, and its partner at b receives its event.
misbehave() {
    port=$((port + 1))
    start "partner$port" "$rogue" "$run/b.sock" partner any $port
    until_true 60 log_says "partner$port" listening || fail "$1: the partner does not listen"
    start "$1" "$rogue" "$run/a.sock" "$1" 10.5.0.2 $port
    until_true 60 log_says "$1" "^$1" || fail "$1 does not begin"
    [ "$1" != stream ] || kill -KILL "${pid[$1]}"
    ends "$1" 60 2>/dev/null
    passes "partner$port" 90
}

say "the unit"
systemd-analyze security --offline=true --threshold=30 --no-pager "$unit" >"$work/unit.log" 2>&1 ||
    fail "the unit is exposed"
tail -n 1 "$work/unit.log"

say "a forbidden system call ends the process"
"$confined" "$unit" $id $id "$(command -v chroot)" / 2>/dev/null
[ $? = 159 ] || fail "chroot(2) does not end the process with SIGSYS"

say "two sakers joined by memif, both transports, TLS"
printf '%064d' 7 >"$run/psk"
printf '%s\n' '[falcon]' 'enabled = yes' "psk = $run/psk" >"$run/falcon.ini"
chmod 600 "$run/falcon.ini" "$run/psk" && chown $id:$id "$run/falcon.ini" "$run/psk"
wire="socket=$run/wire,zero-copy=no"
served a 0@0 "net_memif0,role=server,$wire" -- --config "$run/falcon.ini" --address 0=10.5.0.1/24
served b 0@1 "net_memif0,role=client,$wire" -- --config "$run/falcon.ini" --address 0=10.5.0.2/24
has() { # has KEY VALUE: of saker a
    grep -q "^${1}:[[:space:]]*${2}\$" "/proc/${pid[a]}/status" ||
        fail "saker has $(grep "^$1:" "/proc/${pid[a]}/status")"
}
has Uid "${id}[[:space:]]${id}[[:space:]]${id}[[:space:]]${id}"
has NoNewPrivs 1
has Seccomp 2
has CapEff 0000000000003000
has CapBnd 0000000000003000
exchange b a 10.5.0.2
exchange a b 10.5.0.1
exchange a a 10.5.0.1
PEER_FALCON=1 exchange b a 10.5.0.2
[ "$(telemetry a /saker/info | jq .clients)" != null ] || fail "no telemetry"

say "a client in a user namespace and a PID namespace of its own"
exchange b a 10.5.0.2 unshare -U -p -f

say "clients that are killed, that scribble, and that take memory away"
for deed in stream scribble punch truncate; do misbehave $deed; done
exchange b a 10.5.0.2
clean a b
[ "$(counter a ENG_CLIENT_DEAD)" -ge 1 ] || fail "saker does not count the client that died"
grep -q "not of huge pages" "$work/punch.log" || [ "$(counter a ENG_CLIENT_SIGBUS)" -ge 1 ] ||
    fail "saker counts no client that took memory away"
stop a b

say "net_ring without capabilities; the group of clients"
sed -e 's/^\(CapabilityBoundingSet\|AmbientCapabilities\)=.*/\1=/' \
    -e 's/^\(RestrictAddressFamilies\)=.*/\1=AF_UNIX AF_NETLINK/' "$unit" >"$work/less.service"
unit=$work/less.service
mode=0660
served c 0@0 net_ring0 -- --address 0=10.6.0.1/24
# as UID GID COMMAND...
as() { setpriv --reuid "$1" --regid "$2" --clear-groups "${@:3}"; }
exchange c c 10.6.0.1 as $((id + 1)) $id
as $((id + 1)) $((id + 1)) "$peer" "$run/c.sock" connect 10.6.0.1 1 >"$work/stranger.log" 2>&1 &&
    fail "a client of another group attaches"
grep -q "Permission denied" "$work/stranger.log" || fail "a client of another group is not refused"
stop c
start foreign env RUNTIME_DIRECTORY="$run" SAKER_SOCKET_GROUP=$((id + 2)) "$confined" "$unit" $id \
    $id "$program" --no-pci "${memory[@]}" --file-prefix foreign --lcores 0@0 \
    --vdev net_ring0 -- --address 0=10.6.0.1/24 --socket "$run/foreign.sock"
ends foreign 60 && fail "saker gives its socket to a group of others"
log_says foreign "cannot be set to $((id + 2)): Operation not permitted" ||
    fail "saker does not name the group"
[ ! -e "$run/foreign.sock" ] || fail "a socket without its group is left"
unit=$build/config/saker.service mode=0666

space=skpriv$$
spaces+=("$space")
ip netns add $space && ip -n $space link add ve0 type veth peer name ve1 || skip "no namespaces"
for link in ve0 ve1; do ip -n $space link set $link up; done
inside=(ip netns exec "$space")
say "net_af_packet over a veth"
served d 0@0 net_af_packet0,iface=ve0 -- --address 0=10.7.0.1/24
served e 0@1 net_af_packet0,iface=ve1 -- --address 0=10.7.0.2/24
exchange e d 10.7.0.2
stop d e

if [ -c /dev/net/tun ]; then
    say "net_tap at a bridge"
    ip -n $space link add br0 type bridge && ip -n $space link set br0 up || skip "no bridge"
    served f 0@0 net_tap0,iface=tap0 -- --address 0=10.8.0.1/24
    served g 0@1 net_tap0,iface=tap1 -- --address 0=10.8.0.2/24
    # A bridge keeps frames for the address of a port's device to itself, and a tap's device has
    # saker's address: it gets another one.
    for n in 0 1; do
        ip -n $space link set tap$n address 02:00:00:00:00:0$n && \
            ip -n $space link set tap$n master br0 && ip -n $space link set tap$n up
    done
    exchange g f 10.8.0.2
    stop f g
fi
echo "saker runs with the privileges of its unit"
