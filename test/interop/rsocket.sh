#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Sockets over Saker, between two sakers: Debian's programs on <rdma/rsocket.h> and one of ours, and
# socket programs under `saker-run --sockets` (iperf3, nc, curl, web servers, a server that forks).
# Every byte is compared where the program does not do that, and the counters of the port prove that
# the bytes went over Saker.
. "$(dirname "$0")/common.sh"
install_packages rdmacm-utils jq iperf3 netcat-openbsd curl lighttpd python3 ||
    skip "Debian's socket programs cannot be installed"
run=$build/app/saker-run
[ -x "$run" ] || skip "saker-run is not built"
take_memory 400
port=7600

falcon_section 7 >"$work/falcon.ini"
wire_a=(--config "$work/falcon.ini" --address "0=10.5.0.1/24" --address "0=fd05::1/64")
wire_b=(--config "$work/falcon.ini" --address "0=10.5.0.2/24" --address "0=fd05::2/64")

# at SAKER COMMAND...: becomes a program that uses the saker. sockets: as well for its sockets.
at() {
    local s=$1
    shift
    exec nice -n 19 "$run" -v -t "$device" -s "$work/$s.sock" "${options[@]}" "$@"
}
listens() { [ "$(telemetry "$1" /saker/info | jq .listeners)" -gt 0 ]; }
serve() { # serve COMMAND...: starts a server at b and waits until it listens
    start server at b "$@"
    until_true 30 listens b || fail "$device: $1 does not listen"
}
served() { # served NAME: the server ends by itself, and saker holds nothing
    passes server 60
    gone "$1"
}
stop() { # stop NAME: ends a server that does not end by itself
    kill "${pid[server]}"
    ends server 30
    gone "$1"
}
gone() {
    until_true 20 nothing_left b && until_true 20 nothing_left a ||
        fail "$device $1 leaves objects behind: $(telemetry b /saker/info)"
    echo "ok    $device $1"
}
client() { # client COMMAND...: runs at a, with output in client.log
    start client at a "$@"
    passes client 90
}
same() { cmp -s "$1" "$2" || fail "$device: $1 and $2 differ"; }
received() { control "$1" -j show port stats 0 | jq '.ports[0].rx_bytes'; }
# carried SAKER BEFORE BYTES: the saker's port has received at least so many bytes since then.
carried() {
    local now
    now=$(received "$1")
    [ $((now - $2)) -ge "$3" ] ||
        fail "$device: saker $1 received $((now - $2)) bytes, not $3"
}

rsocket_programs() {
    local t
    for t in "rstream -T b -S 50000 -C 20" "rstream -T n -S 50000 -C 20" \
        "rstream -T a -S 3000 -C 100" "riostream -S 50000 -C 20"; do
        port=$((port + 1))
        # shellcheck disable=SC2086
        serve $t -p $port
        # shellcheck disable=SC2086
        client $t -s 10.5.0.2 -p $port
        served "$t"
    done
    serve rcopy
    client rcopy "$work/one" "10.5.0.2:$work/copy"
    same "$work/one" "$work/copy"
    stop rcopy
}

# Ours: sockets that never block, IPv4 and IPv6, rpoll() on one side and epoll on the other.
without_blocking() {
    local address
    for address in 10.5.0.2 fd05::2; do
        port=$((port + 1))
        serve "$interop/rsocket_peer" serve $port 16
        client "$interop/rsocket_peer" echo $address $port 16 200000
        served "16 connections to $address that do not block"
    done
    client "$interop/rsocket_peer" refused 10.5.0.2 7599
    echo "ok    $device a refused connection"
}

iperf() {
    local before bytes
    before=$(received b)
    serve iperf3 -s -1 -p 5201
    client iperf3 -c 10.5.0.2 -p 5201 -n 20M -P 2 --json
    bytes=$(jq .end.sum_received.bytes "$work/client.log")
    [ "$bytes" -ge 20000000 ] || fail "$device: iperf3 received $bytes bytes"
    served "iperf3, 2 streams: $bytes bytes"
    carried b "$before" "$bytes"
}

# The server closes its listener and listens at the same port again: between two tests, and within a
# test for the options -N and -w.
iperf_again() {
    local size
    serve iperf3 -s -p 5202
    for size in 1M 5M; do
        client iperf3 -c 10.5.0.2 -p 5202 -n $size -N -w 64K --json
        [ "$(jq .end.sum_received.bytes "$work/client.log")" -gt 0 ] ||
            fail "$device: iperf3 -N -w 64K received nothing"
    done
    stop "iperf3 -N -w 64K, two tests at one server"
}

# A file in each direction at the same time.
netcat() {
    local before_a before_b
    before_a=$(received a) before_b=$(received b) port=$((port + 1))
    serve sh -c "nc -l -N 10.5.0.2 $port <$work/two >$work/one.nc"
    client sh -c "nc -N 10.5.0.2 $port <$work/one >$work/two.nc"
    served "nc, both ways"
    same "$work/one" "$work/one.nc"
    same "$work/two" "$work/two.nc"
    carried b "$before_b" 3000000
    carried a "$before_a" 1000000
}

web() { # web NAME COMMAND...
    local name=$1 before
    shift
    before=$(received a)
    serve "$@"
    for _ in 1 2 3; do
        client curl -sS -o "$work/got" "http://10.5.0.2:$port/one"
        same "$work/one" "$work/got"
    done
    stop "$name and curl"
    carried a "$before" 9000000
}
webs() {
    port=$((port + 1))
    web "python3 -m http.server" python3 -m http.server --directory "$work" $port
    port=$((port + 1))
    printf '%s\n' "server.document-root = \"$work\"" "server.port = $port" \
        'server.bind = "10.5.0.2"' >"$work/lighttpd.conf"
    web lighttpd lighttpd -D -f "$work/lighttpd.conf"
}

# The child of a server that forks serves what the parent has accepted.
forking() {
    port=$((port + 1))
    serve python3 -c "
import os, socketserver
main = os.getpid()
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(b'parent ' if os.getpid() == main else line)
socketserver.ForkingTCPServer(('10.5.0.2', $port), Handler).serve_forever()"
    client sh -c "nc -N 10.5.0.2 $port <$work/lines >$work/lines.1"
    client sh -c "nc -N 10.5.0.2 $port <$work/lines >$work/lines.2"
    same "$work/lines" "$work/lines.1"
    same "$work/lines" "$work/lines.2"
    stop "a server that forks"
}

pair --psp none --idle sleep
head -c 3000000 /dev/urandom >"$work/one"
head -c 1000000 /dev/urandom >"$work/two"
seq 50000 >"$work/lines"
for device in iwarp falcon; do
    say "$device"
    options=()
    rsocket_programs
    without_blocking
    options=(--sockets)
    iperf
    iperf_again
    netcat
    webs
    forking
done
echo PASS
