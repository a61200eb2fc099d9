#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Virtual machines with Debian's kernel use saker through an ivshmem-plain and an ivshmem-doorbell
# device on huge pages: unmodified programs of Debian, on both devices, with programs of the host,
# with another saker over net_memif, and between two machines. Meanwhile their kernels' siw and ping
# use the vhost-user cards. One machine scribbles over its memory while others transfer. Then a
# machine is paused, reset and killed during a transfer, three times each, or ten times with CI_LONG
# set: its peer is disconnected, nothing is left behind, and the machine works again after it comes
# back. It takes six minutes on two cores, and twelve with CI_LONG.
#
#   test/interop/vm.sh [CASE...]
#
# Cases: devices rping perftest siw hostile pause reset kill. Without one, all run.
. "$(dirname "$0")/common.sh"
build=$(realpath "$build") interop=$build/test/interop
cases=${*:-devices rping perftest siw hostile pause reset kill}
rounds=3
[ -n "${CI_LONG:-}" ] && rounds=10
for p in ibv_devinfo rping ib_write_bw; do
    command -v $p >/dev/null || skip "$p is not installed: ibverbs-utils, rdmacm-utils, perftest"
done
[ -x "$build/app/saker-run" ] ||
    skip "saker-run is not built: no headers of libibverbs and librdmacm"
build_guest
take_memory 600
export SAKER_GUEST_CPUS=1 SAKER_GUEST_MEM=256 SAKER_GUEST_REBOOT=1
huge=$(mktemp -d /tmp/saker-huge.XXXXXX)
declare -A address=([host]=10.68.0.1 [web]=10.68.0.2 [db]=10.68.0.3 [wire]=10.68.0.9)

# kill_tree PID: ends a process and all that it has started.
kill_tree() {
    local p
    for p in $(pgrep -P "$1"); do kill_tree "$p"; done
    kill "$1" 2>/dev/null
}
before_end() {
    local vm
    [ -f "$work/passed" ] || control host show vms
    for vm in web db; do
        guest_py $vm stop
        rm -rf "$guests/vm$$$vm"
    done
    for vm in "${!pid[@]}"; do
        [[ $vm == *server* || $vm == *client* || $vm == victim ]] && [ -n "${pid[$vm]-}" ] &&
            kill_tree "${pid[$vm]}"
    done
}
after_end() {
    umount "$huge" 2>/dev/null
    rmdir "$huge"
}

# ---- Machines ----

guest_py() { # guest_py VM VERB...
    SAKER_GUEST_NAME=vm$$$1 test/interop/guest.py "${@:2}"
}
has() { [[ " $cases " == *" $1 "* ]]; }
case_is() { has "$1" && say "$2"; }
folder() { echo "$guests/vm$$$1"; }
boot() { # boot VM
    local card=10.68.0.12/24 file=$huge/web
    [ "$1" = db ] && card=10.68.0.13/24,mac=52:54:00:5a:4b:02,nosiw file=$work/db.bell
    guest_py "$1" boot "vhost=$work/$1-card.sock,$card" "ivshmem=$file" ||
        fail "the guest $1 does not boot: $(guest_py "$1" console | tail -n 20)"
}

holds() { of_machine "$1" ".holds.$2"; } # holds NAME KEY
# counted NAME: prints a counter of the switch.
counted() {
    control host -j show vms | jq "[.switch.counters[] | select(.name == \"$1\").value] | add // 0"
}
listeners() { # listeners WHERE
    case $1 in
    web | db) holds "$1" listeners ;;
    host) telemetry host /saker/info | jq .listeners ;;
    wire) telemetry wire /saker/info | jq .listeners ;;
    esac
}
listens() { [ "$(listeners "$1")" -ge "$2" ]; }

# at WHERE SECONDS SCRIPT: runs the script with bash on a machine, the host or the other saker.
# `run PROGRAM...` in it is for programs that use RDMA: they leave their cores to the host's saker.
# `run_late` is for perftest's clients: late.c has the reason.
at() {
    local limit="timeout -k 5 $2" words
    words="export SAKER_VERBOSE=1
        run() { $limit $build/app/saker-run --poll yield \"\$@\"; }
        run_late() {
            SAKER_POLL=yield LATE_MS=${patience-} \\
                LD_PRELOAD=$late:$build/drivers/verbs/libsaker-verbs.so $limit \"\$@\"
        }
        $3"
    case $1 in
    web | db) guest_py "$1" run -t "$2" "$words" ;;
    *) SAKER_SOCKET=$work/$1.sock nice -n 19 bash -c "$words" ;;
    esac
}

# ---- Programs in pairs ----

port=7200
# pairs SERVER CLIENT PROGRAM...: runs all programs as servers at SERVER, and then, one after the
# other, as clients at CLIENT. In a program's words, ROLE(A|B) is A for the server and B for the
# client, TO is the server's address, and PORT is the port. Returns 1 when a program has failed for
# a reason of perftest's own.
pairs() {
    local server=$1 client=$2 how=${how:-run} p s='' c='' n=0 before began=$SECONDS names
    shift 2
    for p in "$@"; do
        port=$((port + 1)) n=$((n + 1))
        p=${p//PORT/$port} p=${p//TO/${address[$server]}}
        # shellcheck disable=SC2001 # a group
        s+="run $(sed 's/ROLE(\([^|]*\)|[^)]*)/\1/' <<<"$p") & w$n=\$!; "
        # shellcheck disable=SC2001
        c+="$how $(sed 's/ROLE([^|]*|\([^)]*\))/\1/' <<<"$p") && echo \"PASSED ${p%% *}\" || rc=1; "
    done
    s="export SAKER_DEVICE=$device; $s rc=0"
    for ((p = 1; p <= n; p++)); do s+="; wait \$w$p || rc=1"; done
    before=$(listeners "$server")
    start "$server-servers" at "$server" 120 "$s; exit \$rc"
    until_true 60 listens "$server" $((before + n)) || fail "not all servers at $server listen"
    start "$client-clients" at "$client" 120 "export SAKER_DEVICE=$device; rc=0; $c exit \$rc"
    if ! ends "$client-clients" 300; then
        ends "$server-servers" 130
        [ "$how" = run_late ] && {
            too_early "$client-clients" || lacks_report "$client-clients" "$server-servers"
        } && return 1
        # The output of other programs may be behind that of the one that failed.
        tail -n 1000 "$work/$client-clients.log" "$work/$server-servers.log"
        fail "$device: clients at $client of servers at $server"
    fi
    if ! ends "$server-servers" 120; then
        [ "$how" = run_late ] && lacks_report "$server-servers" && return 1
        tail -n 1000 "$work/$server-servers.log"
        fail "$device: servers at $server of clients at $client"
    fi
    [ "$(grep -c ^PASSED "$work/$client-clients.log")" = $n ] ||
        fail "$client-clients: not all have passed"
    names="${*%% *}"
    echo "$device, a client in $client, a server in $server ($((SECONDS - began)) s):" \
        "${names//$interop\//}"
}
# late_pairs SERVER CLIENT PROGRAM...: the same for perftest over rdma_cm, with longer and longer
# delays. Beside two busy loops, one of four pairs fails because of the clock.
late_pairs() {
    local how=run_late patience
    for patience in 500 2000 8000 8000 8000 8000; do pairs "$@" && return; done
    fail "$device: the clients at $2 of servers at $1 fail each time"
}

# ---- The sakers ----

mount -t hugetlbfs -o pagesize=2M none "$huge" || skip "no huge pages can be mounted here"
cat >"$work/host.ini" <<INI
[gateway]
enabled = yes
uplink = net_memif0
$(falcon_section 7)
control-idle = 1s
[interface 0]
port = net_memif0
address = ${address[host]}/24
[vm 0]
name = web
path = $huge/web
size = 128m
slots = 8
timeout = 5000
ip = ${address[web]}/24
peers = yes
nic = $work/web-card.sock
nic-mac = 52:54:00:5a:4b:01
mbufs = 2048
INI
db() { # db KEY=VALUE...: adds the second machine, anew if it exists
    control host vm del db >/dev/null 2>&1
    until_true 30 is_gone db || fail "vm del"
    local keys="path=$huge/db doorbell=$work/db.bell size=128m slots=8 ip=${address[db]}/24"
    keys+=" nic=$work/db-card.sock nic-mac=52:54:00:5a:4b:02 mbufs=2048 $*"
    # shellcheck disable=SC2086
    control host vm add db $keys >"$work/add.log" 2>&1 || fail "vm add $*"
}
put_out() { of_machine "$1" '"\(.memory.timed_out) \(.memory.refused)"'; }
has_no_clients() { [ "$(telemetry host /saker/info | jq .clients)" = 0 ]; }
is_gone() { [ -z "$(of_machine "$1" .state)" ]; }
{ falcon_section 7; echo "control-idle = 1s"; } >"$work/wire.ini"
say "two sakers and two machines"
saker host 0@0 "net_memif0,role=server,socket=$work/wire,zero-copy=no" -- --idle sleep \
    --config "$work/host.ini"
saker wire 0@1 "net_memif0,role=client,socket=$work/wire,zero-copy=no" -- --idle sleep \
    --config "$work/wire.ini" --address "0=${address[wire]}/24"
until_true 30 test -S "$work/host.control" || fail "no control socket"
db peers=yes
if [[ $cases =~ rping|perftest ]]; then boot db; fi
boot web

devices="saker0 sakerf0"
if case_is devices "devices"; then
    at web 60 "run ibv_devinfo" >"$work/devinfo.log" || fail ibv_devinfo
    for d in $devices; do
        grep -q "hca_id:[[:space:]]*$d" "$work/devinfo.log" || fail "no $d in the guest"
    done
    [ "$(grep -c PORT_ACTIVE "$work/devinfo.log")" = 2 ] || fail "a port is not active"
    [ "$(stat -c %a "$huge/web" "$work/web-card.sock" | sort -u)" = 660 ] ||
        fail "QEMU's group may not open the memory file and the card's socket"
fi

bytes=("rping ROLE(-s|-c) -V -a TO -p PORT -C 20 -S 1000"
    "$interop/verbs_peer ROLE(listen|connect) TO PORT quick")
if case_is rping "bytes that are compared: rping, and every operation of verbs"; then
    for device in iwarp falcon; do
        pairs host web "${bytes[@]}"
        pairs web host "${bytes[@]}"
        pairs wire web "${bytes[@]}"
        pairs web wire "${bytes[@]}"
        pairs db web "${bytes[@]}"
    done
fi

if case_is perftest "perftest"; then
    for device in iwarp:saker0 falcon:sakerf0; do
        perf=()
        for p in "write_bw -s 65536 -n 100" "read_bw -s 65536 -n 100" "send_bw -s 65536 -n 100" \
            "atomic_bw -n 100"; do
            perf+=("ib_$p -d ${device#*:} -R -p PORT ROLE(|TO)")
        done
        device=${device%:*}
        late_pairs host web "${perf[@]}"
        late_pairs web host "${perf[@]}"
        late_pairs wire web "${perf[@]}"
        late_pairs db web "${perf[@]}"
    done
fi

# ---- The kernel's own RDMA, beside a transfer ----

sent() { of_machine "$1" .rdma.frames_sent; }
sends() { [ "$(sent "$1")" -gt "$2" ]; }
# transfer VM DEVICE: starts an endless rping from the machine to a server of the host.
transfer() {
    local n
    port=$((port + 1))
    n=$(sent "$1")
    SAKER_DEVICE=$2 start server at host 600 "run rping -s -a ${address[host]} -p $port -S 4096"
    until_true 60 listens host 1 || fail "rping does not listen"
    SAKER_DEVICE=$2 start client at "$1" 600 "export SAKER_DEVICE=$2
        run rping -c -a ${address[host]} -p $port -S 4096 -C 100000000 &
        echo \$! >/run/transfer; wait"
    until_true 90 sends "$1" $((n + 200)) || fail "no transfer begins"
}
if case_is siw "the kernel's siw over the card, while the device is in use"; then
    transfer web iwarp
    n=$(sent web)
    port=$((port + 1))
    start siw-server "$interop/saker_rping" "$work/host.sock" server $port 50 4096
    until_true 60 log_says siw-server listening || fail "saker_rping does not listen"
    guest_py web run -t 60 "rping -c -V -a ${address[host]} -p $port -C 50 -S 4096" \
        >"$work/siw-client.log" 2>&1 || fail "rping over siw"
    passes siw-server 60
    port=$((port + 1))
    start siw-server guest_py web run -t 60 "rping -s -V -a 10.68.0.12 -p $port -C 50 -S 4096"
    guest_py web run -t 30 "until rdma resource show cm_id | grep -q 'LISTEN.*:$port'; do
        sleep 0.1; done" || fail "rping over siw does not listen"
    "$interop/saker_rping" "$work/host.sock" client 10.68.0.12 $port 50 4096 \
        >"$work/siw-client.log" 2>&1 || fail "saker_rping to siw"
    passes siw-server 60
    sends web $((n + 50)) || fail "the transfer stood still"
    guest_py web run "pkill -x rping" || fail "the transfer has ended"
    ends server 60
    ends client 60
    log_says server DISCONNECT || fail "the server receives no disconnect event"
    echo "siw as a client and as a server, $(($(sent web) - n)) frames of the device meanwhile"
fi

# ---- A hostile machine ----

if case_is hostile "a machine scribbles over its memory, and uses addresses of others"; then
    guest_py db stop
    db peers=no qps=8 timeout=2000
    boot db
    share=$(folder db)/share out=$(put_out web)
    touch "$share/scribble"
    port=$((port + 1))
    start victim at host 300 "run rping -s -P -a ${address[host]} -p $port -S 4096"
    until_true 60 listens host 1 || fail "rping does not listen"
    # Its last rping may succeed, or wait for ever because of the scribbling.
    start scribble at db 300 "
        while [ -e /share/scribble ]; do
            run rping -c -a ${address[host]} -p $port -S 4096 -C 100000000; sleep 0.1
        done & loop=\$!
        for d in /sys/bus/pci/devices/*; do
            [ \$(cat \$d/device) = 0x1110 ] || continue
            $interop/scribble \$d/resource2 /share/scribble ${SAKER_SEED:-7}
        done
        while kill -0 \$loop 2>/dev/null; do pkill -KILL -x rping; sleep 0.5; done"
    until_true 60 sends db 100 || fail "the hostile machine does not begin"
    for device in iwarp falcon; do
        pairs host web "${bytes[@]}"
        pairs wire host "${bytes[@]}"
        pairs web wire "${bytes[@]}"
    done
    mac=$(of_machine web .mac)
    guest_py db run "ip neigh replace ${address[web]} lladdr $mac dev eth0
        ping -c 3 -i 0.2 -W 1 ${address[web]}" >"$work/ping.log" &&
        fail "a machine without peers reaches another"
    [ "$(counted GW_TENANT)" -ge 3 ] || fail "frames to another tenant are not counted"
    guest_py db run "ip link set eth0 address 02:de:ad:00:00:01
        ping -c 2 -i 0.2 -W 1 ${address[host]}" >"$work/ping.log" &&
        fail "frames with another machine's source address pass"
    [ "$(counted GW_SPOOFED)" -ge 1 ] ||
        fail "frames with a false source are not counted"
    of_machine db .
    [ "$(holds db qps)" -le 8 ] ||
        fail "the machine holds more QPs than its quota"
    [ "$(put_out web)" = "$out" ] || fail "a program of the other machine was put out"
    rm "$share/scribble"
    ends scribble 120
    grep strokes "$work/scribble.log" || fail "the machine did not scribble"
    kill_tree "${pid[victim]}"
    ends victim 20
    until_true 60 has_no_clients || fail "rping does not end"
    db peers=yes
    device=iwarp
    pairs host db "${bytes[@]}"
fi

# ---- Machines that stop during a transfer ----

lives=no
live() { # boots db with a program that transfers whenever the file `go` exists
    [ $lives = yes ] && return
    lives=yes
    guest_py db stop
    db peers=yes timeout=2000
    export SAKER_GUEST_START="
        while true; do
            until [ -e /share/ready ] && [ -e /share/go ]; do sleep 0.1; done
            . /share/go
            $build/app/saker-run rping -c -a ${address[host]} -p \$port -S 4096 -C 100000000
            sleep 0.2
        done"
    boot db
    until_true 60 has_no_clients || fail "a client is left at the host"
    before=$(state) open=$(descriptors)
}
# state: prints the objects that saker holds for the machine and for the host's programs.
# descriptors: prints the number of its file descriptors, including those of the machine's card.
state() {
    of_machine db ".holds | del(.mbufs_free)"
    telemetry host /saker/info |
        jq -c '[.clients, .qps, .cqs, .mrs, .mws, .pds, .srqs, .listeners, .regions]'
}
descriptors() { find "/proc/${pid[host]}/fd" -type l | wc -l; }
has_descriptors() { [ "$(descriptors)" = "$1" ]; }
is_as_before() { [ "$(state)" = "$before" ]; }
act() { # act KIND
    case $1 in
    pause) guest_py db monitor stop ;;
    reset) rm "$(folder db)/share/ready" && guest_py db monitor system_reset ;;
    kill)
        [ -z "${pid[boot]-}" ] || ends boot 300 || fail "the guest does not boot"
        kill -9 "$(cat "$(folder db)/pid")" && rm "$(folder db)/pid"
        ;;
    esac
}
back() { # back KIND: brings the machine back, unless it comes back by itself
    case $1 in
    pause) guest_py db monitor cont ;;
    kill)
        start boot boot db
        until_true 60 test -s "$(folder db)/pid" || fail "QEMU does not start"
        ;;
    esac
}
round() { # round KIND N
    local n
    port=$((port + 1)) device=$([ $(($2 % 2)) = 1 ] && echo iwarp || echo falcon)
    SAKER_DEVICE=$device start server at host 300 \
        "run rping -s -a ${address[host]} -p $port -S 4096"
    until_true 60 listens host 1 || fail "rping does not listen"
    n=$(sent db)
    echo "export SAKER_DEVICE=$device port=$port" >"$work/go"
    mv "$work/go" "$(folder db)/share/go"
    # A guest under emulation may come up with a clock that stands. It is then reset once more.
    if ! until_true 90 sends db $((n + 200)) && [ "$1" = reset ]; then
        echo "(round $2: the guest has not come up yet)"
        guest_py db monitor system_reset
    fi
    until_true 180 sends db $((n + 200)) ||
        fail "round $2 of $1: no transfer begins: $(cat "$(folder db)/share/start.out")"
    rm "$(folder db)/share/go"
    act "$1"
    ends server 60
    log_says server DISCONNECT || fail "round $2 of $1: the peer receives no disconnect event"
    until_true 60 is_as_before || fail "round $2 of $1: $(state), and before: $before"
    back "$1"
}
for kind in pause reset kill; do
    case_is $kind "$kind during a transfer, $rounds times" || continue
    live
    began=$SECONDS
    for ((i = 1; i <= rounds; i++)); do round $kind $i; done
    [ -z "${pid[boot]-}" ] || ends boot 300 || fail "the guest does not boot"
    until_true 120 test -e "$(folder db)/share/ready" || fail "the guest does not come back"
    for device in iwarp falcon; do pairs host db "${bytes[@]}"; done
    until_true 60 is_as_before || fail "after all: $(state), and before: $before"
    until_true 60 has_descriptors "$open" ||
        fail "after all: $(descriptors) descriptors, $open before"
    echo "the peer was disconnected each time, nothing was left, the machine came back" \
        "($((SECONDS - began)) s)"
done
touch "$work/passed"
echo PASS
