#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Programs of a virtual machine that sleep until saker interrupts them: the guest has an IOMMU, and
# saker-irqd owns its ivshmem-doorbell device through vfio-pci. Debian's rping and perftest with
# events, as client and as server, with what they, QEMU and saker take of the processor. Without
# saker-irqd the same program polls. Then saker ends and starts again under a program of the guest,
# which opens the next one in the same process, and other programs sleep as before: a store of
# descriptors (keep.py) has kept the doorbell's connection, once in order and once after SIGKILL.
# Without the store they poll. Three minutes on a busy machine.
. "$(dirname "$0")/common.sh"
build=$(realpath "$build") interop=$build/test/interop
install_packages jq rdmacm-utils ibverbs-utils perftest ||
    skip "Debian's jq, rdmacm-utils, ibverbs-utils and perftest cannot be installed"
[ -x "$build/app/saker-run" ] ||
    skip "saker-run is not built: no headers of libibverbs and librdmacm"
memory_file=/dev/shm/saker-sleep$$
one_guest "$memory_file"
take_memory 128

cat >"$work/host.ini" <<INI
[gateway]
enabled = yes
[interface 0]
port = net_ring_gateway
address = 10.68.0.1/24
[vm 0]
name = guest
path = $memory_file
size = 64m
slots = 4
timeout = 60000
doorbell = $work/bell.sock
ip = 10.68.0.2/24
mbufs = 2048
INI
# A saker of this folder starts with what the store has.
mkdir -p "$work/kept/app"
cat >"$work/kept/app/saker" <<SH
#!/bin/bash
exec test/interop/keep.py exec "$work" "$build/app/saker" "\$@"
SH
chmod +x "$work/kept/app/saker"
start store test/interop/keep.py store "$work"
until_true 30 test -S "$work/give" || fail "no store"
up() { # up [BUILD]: starts saker, of another folder than that with the store
    local build=${1:-$work/kept}
    saker host 0@0 -- --idle sleep --config "$work/host.ini"
    until_true 30 test -S "$work/host.control" || fail "no control socket"
}
down() { # down [SIGNAL]
    kill "$@" "${pid[host]}"
    ends host 60
    rm -f "$work/host.sock" "$work/host.control"
}
up
boot_guest "ivshmem=$work/bell.sock,irq"

port=7400
under="$build/app/saker-run --poll yield"
# late.c has the reason for perftest's clients.
under_late="env SAKER_POLL=yield LD_PRELOAD=$late:$build/drivers/verbs/libsaker-verbs.so"
at_host() { exec env SAKER_SOCKET="$work/host.sock" nice -n 19 "$@"; }
in_guest() { guest -t 100 "export SAKER_SOCKET=ivshmem: SAKER_VERBOSE=1; $1"; }
sent() { of_machine guest .rdma.frames_sent; }
sends() { [ "$(sent)" -gt "$1" ]; }
guest_listens_at() { [ "$(of_machine guest .holds.listeners)" -gt 0 ]; }
host_listens_at() { [ "$(telemetry host /saker/info | jq .listeners)" -gt 0 ]; }
# taken PID: prints the CPU seconds of a process.
taken() {
    awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) / hz }' "/proc/$1/stat"
}
qemu() { cat "$guests/$SAKER_GUEST_NAME/pid"; }
minus() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a - b }'; }
# account COMMAND...: runs it and prints what QEMU and saker took meanwhile.
account() {
    local q s rc
    q=$(taken "$(qemu)") s=$(taken "${pid[host]}")
    "$@"
    rc=$?
    echo "    CPU seconds: QEMU $(minus "$(taken "$(qemu)")" "$q")," \
        "saker $(minus "$(taken "${pid[host]}")" "$s")"
    return $rc
}
# The times that saker has woken a program of the guest.
interrupts() { of_machine guest .doorbell.interrupts; }
# The work of rping in the guest in three of the guest's seconds, in which nothing comes.
idle_rping() {
    # shellcheck disable=SC2016 # for the guest's shell
    guest 'p=$(pgrep -x rping)
        look() {
            cat /proc/$p/task/*/status | awk "/^voluntary/ { n += \$2 } END { print n }"
            cut -d" " -f1 /proc/uptime
            awk "{ print \$14 + \$15 }" /proc/$p/stat
        }
        a=$(look); sleep 3; b=$(look)
        echo $a $b'
}
# rests: runs rping in the guest, stops its client at the host, and sets `switches` to the number of
# times that the program fell asleep in a second.
rests() {
    local n words
    port=$((port + 1)) n=$(sent)
    start server in_guest "$under rping -s -a 10.68.0.2 -p $port -C 100000000"
    until_true 60 guest_listens_at || fail "rping does not listen"
    start client at_host "$build/app/saker-run" rping -c -a 10.68.0.2 -p $port -C 100000000
    until_true 60 sends $((n + 100)) || fail "no transfer begins"
    kill -STOP "${pid[client]}"
    words=$(idle_rping)
    switches=$(awk '{ printf "%d", ($4 - $1) / ($5 - $2) }' <<<"$words")
    awk '{ print "    rping slept " int(($4 - $1) / ($5 - $2)) " times a second, CPU seconds in " \
        $5 - $2 " s: " ($6 - $3) / 100 }' <<<"$words"
    kill -CONT "${pid[client]}"
    kill "${pid[client]}"
    ends client 60
    ends server 100
}

say "without saker-irqd"
account rests
[ "$(interrupts)" = 0 ] && ! guest "[ -e /run/saker ]"
verdict $? "rping works, and polls" "$work/server.log" "$work/client.log"

say "with saker-irqd"
guest "modprobe -a vfio_pci vfio_iommu_type1
    setsid $build/app/saker-irqd >/run/irqd 2>&1 &
    until grep -q '8 vectors' /run/irqd; do sleep 0.1; kill -0 \$! || exit; done" \
    >"$work/irqd.log" ||
    fail "saker-irqd: $(guest 'cat /run/irqd')"
account rests
# Its heartbeats are 10 a second, and a program that polls sleeps 500 times in one without load.
[ "$(interrupts)" -gt 50 ] && [ "$switches" -lt 40 ]
verdict $? "rping sleeps between completions" "$work/server.log" "$work/client.log"

# The interrupts come one by one, so that a program that sleeps between them has as many.
# shellcheck disable=SC2086 # several words
perf() { # perf PROGRAM WHERE: WHERE is that of the client
    local rc n server client logs=("$work/server.log" "$work/client.log")
    port=$((port + 1)) n=$(interrupts)
    server="$1 -e -R -d saker0 -p $port -n 200 -F"
    client="$server 10.68.0.$([ "$2" = guest ] && echo 1 || echo 2)"
    if [ "$2" = guest ]; then
        start server at_host "$build/app/saker-run" $server
        until_true 60 host_listens_at || fail "$1 does not listen"
        start client in_guest "time $under_late $client"
    else
        start server in_guest "time $under $server"
        until_true 60 guest_listens_at || fail "$1 does not listen"
        start client at_host $under_late $client
    fi
    ends client 120 && ends server 120
    rc=$?
    echo "    interrupts: $(($(interrupts) - n)), CPU seconds of the program:" \
        "$(awk '/^(user|sys)/ { sub(/.*m/, "", $2); n += $2 } END { print n }' "${logs[@]}")"
    [ $rc = 0 ] && [ "$(interrupts)" -gt $((n + 20)) ]
}
perfs() { # as perf, repeated where perftest cannot make its report
    local n
    for n in 1 2 3; do
        perf "$@" && return
        lacks_report server client || break
    done
    return 1
}
for words in "ib_send_lat guest" "ib_send_lat host" "ib_read_bw guest"; do
    # shellcheck disable=SC2086 # several words
    account perfs $words
    verdict $? "${words% *} -e, the client in the ${words#* }" "$work/server.log" \
        "$work/client.log"
done

say "saker ends and starts again"
start program in_guest "$under $interop/verbs_restart 10.68.0.2 7399 2"
until_true 60 guest "pgrep -x verbs_restart" >/dev/null
works() { grep -qs "at work $1" "$guests/$SAKER_GUEST_NAME"/share/*.out; }
for k in 1 2; do
    until_true 60 works $k || fail "the program does not work with saker $k"
    down
    up
done
ends program 60
verdict $? "a program of the guest works with three sakers" "$work/program.log"
in_guest "$under ibv_devinfo" >"$work/devinfo.log" && grep -q PORT_ACTIVE "$work/devinfo.log" &&
    account rests && [ "$(interrupts)" -gt 50 ] && [ "$switches" -lt 40 ]
verdict $? "rping sleeps between completions after that" "$work/server.log" "$work/client.log"
account perfs ib_send_lat guest
verdict $? "ib_send_lat -e after that" "$work/server.log" "$work/client.log"
down -KILL
up
account rests && [ "$(interrupts)" -gt 50 ] && [ "$switches" -lt 40 ]
verdict $? "rping sleeps after a saker that was killed" "$work/server.log" "$work/client.log"
down
up "$build"
rests && [ "$(interrupts)" = 0 ]
verdict $? "rping works with a saker without a store, and polls" "$work/server.log" \
    "$work/client.log"
conclude host
