#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The control socket and sakerctl: one command, many, completion, JSON, refusals with their sentence
# and exit status, clients that do not behave, and the end of saker. A second saker gives the shown
# connections a peer, and dpdk-dumpcap captures from a third one.
. "$(dirname "$0")/common.sh"
install_packages jq tshark python3-prometheus-client dpdk-dev iputils-ping ||
    skip "packages cannot be installed"
[ -x "$build/app/sakerctl" ] || fail "sakerctl is not built"
take_memory 500 >/dev/null
wire_a=(--config "$work/a.ini" --address "0=10.5.0.1/24") wire_b=(--address "0=10.5.0.2/24")
(umask 077 && echo 000102030405060708090a0b0c0d0e0f >"$work/psk")
# The file of a changes below.
printf '%s\n' "[saker]" "control = $work/a.control" "[metrics]" "listen = $work/metrics" \
    >"$work/a.ini"
SAKER_FALCON_PSK=$work/psk pair --idle sleep --falcon yes --psp gcm256
ctl() { "$build/app/sakerctl" --socket "$work/a.control" "$@"; }
# gives STATUS WORDS COMMAND...: the exit status and, on the stream that belongs to it, the words.
gives() {
    local want=$1 words=$2 rc=0
    shift 2
    "$@" >"$work/out.log" 2>"$work/err.log" || rc=$?
    [ $rc = "$want" ] || fail "$* gave $rc"
    if [ "$want" = 0 ]; then
        grep -qF -- "$words" "$work/out.log" || fail "$* printed no '$words'"
        [ ! -s "$work/err.log" ] || fail "$* printed an error"
    else
        grep -qF -- "$words" "$work/err.log" || fail "$* did not report '$words'"
        [ ! -s "$work/out.log" ] || fail "$* printed something although it failed"
    fi
}
# holds FILTER COMMAND...: the command succeeds, and jq's filter is true of its output. A pipe does
# not suffice: for the empty output of a command that fails, `jq -e` has status 0.
holds() {
    local filter=$1
    shift
    "$@" >"$work/json.log" && [ -s "$work/json.log" ] &&
        jq -e "$filter" "$work/json.log" >"$work/jq.log"
}

say "one command"
gives 0 "10.5.0.1/24" ctl show port info 0
gives 0 "(no qps)" ctl show qp all
gives 0 "control transport0 engine0" ctl show loops
gives 0 "Counters cleared." ctl clear counters
gives 0 "show qp all|QPN" ctl help
gives 0 "resident bytes" ctl show memory
gives 0 "The log level is debug." ctl log debug
gives 1 "'log loud' is wrong: the command is 'log error|warning|info|debug'" ctl log loud
gives 1 "sakerctl: 'sho qp all' is not a command; 'help' lists all" ctl sho qp all
gives 1 "sakerctl: there is no QP '77'" ctl show qp 77
gives 1 "sakerctl: there is no gateway; set [gateway] enabled = yes" ctl show vms
gives 2 "usage: sakerctl" ctl --bogus
gives 2 "no saker answers at $work/none: No such file or directory" \
    "$build/app/sakerctl" -s "$work/none" help
SAKER_CONTROL=$work/a.control gives 0 "net_memif0" "$build/app/sakerctl" show port info all

say "JSON"
[ "$(ctl --json show port stats all | jq '.ports | length')" = 1 ] || fail "one port"
[ "$(ctl -j show config | jq -r '.config[] | select(.key == "idle").value')" = sleep ] ||
    fail "idle = sleep"
[ "$(ctl -j show counters | jq '.counters | length')" -gt 100 ] || fail "all counters"
for command in "show client all" "show neighbors" "show loops" "show counters nonzero" "help"; do
    # shellcheck disable=SC2086
    holds 'to_entries | length == 1' ctl -j $command || fail "$command"
done
gives 1 "sakerctl: there is no port '9'" ctl -j show port info 9

say "the manual page"
ctl -j help | jq -r '.commands[] | ".B \(.command)", .what_it_does' >"$work/help.log"
sed -n '/^\.B help/,/^\.PP/p' doc/man/sakerctl.8 | grep -v '^\.[TP]P' | diff "$work/help.log" - ||
    fail "doc/man/sakerctl.8 has other commands than saker"

say "a connection"
start server "$interop/pause" "$work/b.sock" listen 7000
until_true 20 listens b || fail "the server does not listen"
start client "$interop/pause" "$work/a.sock" connect 10.5.0.2 7000 100000 1000
is_connected() {
    holds '.qps | length == 1 and .[0].remote == "10.5.0.2:7000"' ctl -j show qp all
}
until_true 20 is_connected || fail "no connection is shown"
gives 0 "10.5.0.2:7000" ctl show qp all
qpn=$(ctl -j show qp all | jq -r '.qps[0].qpn')
gives 0 "messages out" ctl show qp "$qpn"
holds '.qps[0].tcp.state == "ESTABLISHED"' ctl -j show qp "$qpn" ||
    fail "TCP's state"
holds '.qps[0].mpa | .revision == 2 and .crc and .markers_in == false' ctl -j show qp "$qpn" ||
    fail "what MPA agreed on"
holds ".clients[0] | .pid == ${pid[client]} and .uid == $(id -u)" ctl -j show client all ||
    fail "the client's process"
[ "$(ctl show qp all | wc -L)" -le 80 ] || fail "a table is wider than 80 columns"
[ "$(ctl show counters | wc -L)" -le 80 ] || fail "the counters are wider than 80 columns"

say "a Falcon connection"
listeners=$(telemetry b /saker/info | jq .listeners)
listens_more() { [ "$(telemetry b /saker/info | jq .listeners)" -gt "$listeners" ]; }
export PEER_FALCON=1
start falcon-server "$interop/pause" "$work/b.sock" listen 7001
until_true 20 listens_more || fail "the second server does not listen"
start falcon-client "$interop/pause" "$work/a.sock" connect 10.5.0.2 7001 100000 1000
unset PEER_FALCON
of_falcon() { ctl -j show qp all | jq -r '.qps[] | select(.kind == "falcon" and .remote).qpn'; }
is_there() { [ -n "$(of_falcon)" ]; }
until_true 20 is_there || fail "no Falcon connection is shown"
shown() { holds "$1" ctl -j show qp "$(of_falcon)"; }
until_true 20 shown '.qps[0].falcon | .packets_in > 0 and .rtt_ns > 0' || fail "no packets"
shown '.qps[0].falcon | .psp == "gcm256" and .mode == "transport" and .cid != .peer_cid' ||
    fail "the protection and the CIDs"
shown '.qps[0] | .control_channel.state == "ESTABLISHED" and (has("tcp") | not)' ||
    fail "the control channel"
[ "$(ctl show qp "$(of_falcon)" | wc -L)" -le 80 ] || fail "a QP is wider than 80 columns"

say "changes while it runs"
# Beside the command line's address, the file has an interface, a route, a quota and a rate.
conf() {
    printf '%s\n' "[metrics]" "listen = $work/metrics" "[saker]" "control = $work/a.control" \
        "$@" >"$work/a.ini"
}
field() {
    ctl -j show config |
        jq -r ".config[] | select(.section == \"$1\" and .key == \"$2\").value"
}
goes_on() {
    holds '.qps[] | select(.remote == "10.5.0.2:7000")' ctl -j show qp all
}
conf "[interface 1]" "port = 0" "address = 10.5.0.11/24"
gives 0 "interface 1" ctl reload
gives 0 "10.5.0.11/24" ctl show port info 0
gives 0 "Nothing differs." ctl reload
conf "log = debug" "mtu = 9000" "[interface 1]" "port = 0" "address = 10.5.0.11/24" "[route 0]" \
    "destination = 10.9.0.0/16" "gateway = 10.5.0.2" "[client 0]" "name = pause" "max-mops = 2" \
    "[limits]" "client-qps = 9"
gives 0 "Some values need a restart" ctl reload
grep -q "saker *mtu *1500 *9000 *after a restart" "$work/out.log" || fail "mtu needs a restart"
grep -q "limits *client-qps .* now" "$work/out.log" || fail "client-qps changes at once"
[ "$(field saker mtu)" = 1500 ] && [ "$(field limits client-qps)" = 9 ] || fail "what is in force"
conf "[interface 1]" "port = 0" "address = 10.5.0.0/24"
gives 1 "nothing has changed: $work/a.ini:7: [interface 1] address = 10.5.0.0/24" ctl reload
conf "[interface 1]" "port = 7" "address = 10.5.0.11/24"
gives 1 "nothing has changed: address 10.5.0.11: there is no port '7'" ctl reload
[ "$(field "interface 1" port)" = 0 ] || fail "a refused file changed the interface"
goes_on || fail "the connection did not survive the changes"
gives 1 "[tcp] cc changes by a restart only" ctl set tcp cc=dctcp
gives 1 "section [interface 99] needs a number within 0..63" ctl set interface 99 port=0
gives 1 "[interface 2] address = bogus is not" ctl set interface 2 port=0 address=bogus
gives 1 "section [route 7] does not exist" ctl unset route 7
gives 0 "In force. 0 connections and 0 listeners" ctl set interface 2 port=0 vlan=5 \
    address=10.6.0.1/24
gives 0 "In force." ctl unset route 0
gives 1 "the path of the file begins with /" ctl save relative
gives 0 "Saved to $work/saved.ini." ctl save "$work/saved.ini"
"$build/app/saker" -- --check --config "$work/saved.ini" || fail "the saved file is refused"
grep -q "address = 10.6.0.1/24" "$work/saved.ini" && grep -q "client-qps = 9" "$work/saved.ini" &&
    ! grep -q "route" "$work/saved.ini" || fail "the saved values"
# A peer that is connected to an address that disappears, and a listener there.
start far "$interop/pause" "$work/a.sock" listen 7002
until_true 20 listens a || fail "nobody listens at a"
start near "$interop/pause" "$work/b.sock" connect 10.5.0.11 7002 100000 1000
of_address() {
    holds '.qps[] | select(.local == "10.5.0.11:7002")' ctl -j show qp all
}
not_of_address() { ! of_address; }
until_true 20 of_address || fail "no connection to the new address"
gives 0 "In force. 1 connections and 0 listeners" ctl unset interface 1
until_true 20 not_of_address || fail "the connection has not ended"
wait "${pid[near]}" && fail "the peer did not notice"
goes_on || fail "the connection of the other address ended, too"
grep -q "10.5.0.11" <(ctl show port info 0) && fail "the address is still shown"
conf "log = debug"
kill -HUP "${pid[a]}"
until_true 20 log_says a "reload: In force" || fail "SIGHUP does not reload"
conf "log = loud"
kill -HUP "${pid[a]}"
until_true 20 log_says a "reload: nothing has changed: $work/a.ini:5: \[saker\] log = loud" ||
    fail "SIGHUP with a wrong file"

say "the events of connections"
gives 0 "Cannot assign requested address" ctl show failed
holds '.failed[] | select(.local == "10.5.0.11:7002")' ctl -j show failed ||
    fail "the failed connection"
qpn=$(ctl -j show qp all | jq -r '.qps[] | select(.remote == "10.5.0.2:7000").qpn')
gives 1 "there is no connected QP '77'" ctl show events 77
gives 1 "there is no connected QP '${qpn}x'" ctl show events "${qpn}x"
gives 1 "there is no connected QP '0x100${qpn#0x}'" ctl show events "0x100${qpn#0x}"
gives 0 "10.5.0.2:7000" ctl show events "$qpn"
gives 0 "10.5.0.2:7000" ctl show events "$((qpn))"
has_event() {
    holds ".events[] | select(.event == \"$1\")" ctl -j show events "$qpn"
}
kill -STOP "${pid[b]}"
until_true 30 has_event TCP_RTO || { kill -CONT "${pid[b]}"; fail "no timeout is shown"; }
kill -CONT "${pid[b]}"
has_event TCP_RETRANSMIT || fail "no retransmission is shown"
holds '.events | length > 1 and .[0].ms_ago >= .[-1].ms_ago' ctl -j show events "$qpn" ||
    fail "the order of events"
[ "$(ctl show events "$qpn" | wc -L)" -le 80 ] || fail "the events are wider than 80 columns"
[ "$(ctl show failed | wc -L)" -le 80 ] || fail "failed connections are wider than 80 columns"

say "metrics"
timeout 60 /usr/bin/python3 - "$work/metrics" >"$work/metrics.log" 2>&1 <<'END' ||
import socket, sys, time
from prometheus_client.openmetrics.parser import text_string_to_metric_families
def ask(text):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(text)
    answer = b""
    while part := s.recv(65536):
        answer += part
    head, body = answer.decode().split("\r\n\r\n", 1)
    return head, body
# Readers that send nothing, or half a request, keep nobody out.
idle = [socket.socket(socket.AF_UNIX) for i in range(10)]
for i in idle:
    i.connect(sys.argv[1])
    i.sendall(b"GET /met")
head, body = ask(b"GET /metrics HTTP/1.1\r\nHost: saker\r\n\r\n")
assert head.startswith("HTTP/1.1 200 OK"), head
families = {f.name: f for f in text_string_to_metric_families(body)}
assert len(families) > 150, len(families)
assert all(f.documentation for f in families.values())
value = lambda family, **labels: [s.value for s in families[family].samples
                                  if labels.items() <= s.labels.items()]
assert value("saker_running") == [1]
assert value("saker_port_received_packets", port="0")[0] > 0
assert value("saker_client_queue_pairs", name="pause") == [1, 1]
assert value("saker_listeners", machine="-") == [0]
assert value("saker_messages_sent", machine="-")[0] > 0
assert families["saker_tcp_rto"].samples[0].labels == {"machine": "-", "stage": "transport0"}
assert families["saker_build"].samples[0].labels["version"]
# The parser has checked the order of the buckets. The clients read a word every millisecond.
def latencies(transport):
    body = ask(b"GET /metrics HTTP/1.1\r\n\r\n")[1]
    family = {f.name: f for f in text_string_to_metric_families(body)}["saker_request_seconds"]
    assert family.type == "histogram", family.type
    of = [s for s in family.samples if s.labels["transport"] == transport]
    assert all(s.labels["machine"] == "-" and s.labels["stage"] == "engine0" for s in of), of
    buckets = [(float(s.labels["le"]), s.value) for s in of if s.name.endswith("_bucket")]
    assert len(buckets) == 22 and buckets == sorted(buckets), buckets
    assert all(b[1] <= c[1] for b, c in zip(buckets, buckets[1:])), buckets
    assert buckets[0][0] == 2**10 / 1e9 and buckets[20][0] == 2**30 / 1e9, buckets
    count, total = [next(s.value for s in of if s.name.endswith(e)) for e in ("_count", "_sum")]
    assert buckets[-1] == (float("inf"), count), (buckets, count)
    assert total >= sum((v - u) * le / 2 for (le, v), (_, u) in zip(buckets[1:-1], buckets)), total
    return count
for transport in "iwarp", "falcon":
    until = time.monotonic() + 40
    while latencies(transport) == 0:
        assert time.monotonic() < until, transport
        time.sleep(0.1)
assert ask(b"GET / HTTP/1.1\r\n\r\n")[0].startswith("HTTP/1.1 404")
print(len(families), "metrics,", len(body), "bytes")
END
    fail "the metrics: $(tail -n 3 "$work/metrics.log")"

say "a capture"
gives 1 "no capture runs" ctl capture stop
gives 1 "the path of the file begins with /" ctl capture start relative
gives 1 "there is no port '7'" ctl capture start "$work/frames.pcapng" 7
gives 1 "cannot be created: No such file" ctl capture start /nonexistent/x
gives 0 "Capturing the frames of port 0" ctl capture start "$work/frames.pcapng"
gives 1 "a capture runs already" ctl capture start "$work/other.pcapng"
captured() { [ "$(stat -c %s "$work/frames.pcapng")" -gt 20000 ]; }
until_true 30 captured || fail "no frames are captured"
gives 0 "written" ctl capture stop
goes_on || fail "the connection did not survive the capture"
frames() { tshark -r "$work/frames.pcapng" -Y "$1" 2>"$work/tshark.log" | wc -l; }
[ "$(frames "tcp.srcport == 7000")" -gt 10 ] && [ "$(frames "tcp.dstport == 7000")" -gt 10 ] ||
    fail "the capture lacks a direction"
gives 1 "cannot be created: File exists" ctl capture start "$work/frames.pcapng"

say "a capture by dpdk-dumpcap, a second process"
# That needs memory in files, as saker has it without --in-memory.
[ "${memory[0]}" = --in-memory ] || skip "no huge pages, which dpdk-dumpcap needs; the rest passed"
mkdir "$work/huge"
after_end() { umount -l "$work/huge"; }
mount -t hugetlbfs none "$work/huge" || fail "hugetlbfs"
memory=(--huge-dir "$work/huge" -m 256)
saker c 0@0 "net_tap0,iface=sk$$" -- --idle sleep --address 0=198.18.7.1/30
ip addr add 198.18.7.2/30 dev "sk$$" || fail "the tap's address"
start dumpcap dpdk-dumpcap "--file-prefix=sktest$$c" -i 0 -c 20 -w "$work/dumpcap.pcapng"
pings() { timeout 20 ping -q -c 1 -W 5 198.18.7.1 >"$work/ping.log"; }
captured() { pings && has_ended dumpcap; }
until_true 100 captured || fail "dpdk-dumpcap captures nothing"
ends dumpcap 1 || fail "dpdk-dumpcap fails"
for type in 8 0; do
    [ "$(tshark -r "$work/dumpcap.pcapng" -Y "icmp.type == $type" 2>/dev/null | wc -l)" -gt 5 ] ||
        fail "dpdk-dumpcap lacks ICMP messages of type $type"
done
pings || fail "saker does not answer after the capture"
kill "${pid[c]}"
ends c 20 || fail "saker c ends with $?"

say "many commands, and the end of a reader"
printf '# a comment\n\nshow loops\n  show neighbors\n' | ctl >"$work/out.log" || fail "two commands"
grep -q "10.5.0.2 " "$work/out.log" || fail "the second command printed no neighbour"
printf 'nonsense\nshow loops\n' | ctl >"$work/out.log" 2>"$work/err.log"
[ $? = 1 ] && grep -q "control transport0" "$work/out.log" || fail "a refusal among commands"
ctl show config | head -n 1 | grep -q section || fail "a pipe"

say "a prompt with completion"
[ "$(ctl --complete show qp)" = qp ] || fail "the word qp"
[ "$(ctl --complete "show qp ")" = all ] || fail "the argument of show qp"
of_the_shell() { # of_the_shell WORD...: prints bash's completion of the last word
    . config/packaging/completion/sakerctl.sh
    COMP_WORDS=("$build/app/sakerctl" --socket "$work/a.control" "$@")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _sakerctl "${COMP_WORDS[0]}"
    echo "${COMPREPLY[*]}"
}
[ "$(of_the_shell sho)" = show ] && [ "$(of_the_shell show qp "")" = all ] ||
    fail "the completion in the shell"
timeout 60 python3 - "$build/app/sakerctl" "$work/a.control" <<'END' >"$work/prompt.log" 2>&1 ||
import os, pty, select, sys
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "dumb"
    os.execv(sys.argv[1], ["sakerctl", "-s", sys.argv[2]])
seen = b""
def until(words):
    global seen
    while words not in seen:
        seen += os.read(fd, 4096)
        print(seen)
    seen = seen[seen.index(words) + len(words):]
until(b"saker> ")
os.write(fd, b"show lo\t\n")
until(b"control transport0")
until(b"saker> ")
os.write(fd, b"nonsense\n")
until(b"is not a command")
until(b"saker> ")
# The prompt does not see a Ctrl-D that arrives before it has set up the terminal.
try:
    while True:
        if select.select([fd], [], [], 0.1)[0]:
            os.read(fd, 4096)
        else:
            os.write(fd, b"\x04")
except OSError:
    pass # the prompt has closed the terminal
assert os.waitpid(pid, 0)[1] == 0
END
    fail "the prompt of sakerctl: $(grep -v "^b" "$work/prompt.log" | tail -n 3)"

say "clients that do not behave"
# Each stays for as long as saker lets it: one sends no line, one never ends it, others do not read.
timeout 100 python3 - "$work/a.control" <<'END' >"$work/rude.log" 2>&1 &
import socket, sys
def dial(text):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(text)
    return s
rude = [dial(b""), dial(b"text show")] + [dial(b"text show counters\n") for i in range(8)]
try:
    dial(b"x" * 1000000)
except (BrokenPipeError, ConnectionResetError):
    pass
print("rude", flush=True)
for s in rude:
    while s.recv(65536):
        pass
print("closed", flush=True)
END
pid[rude]=$!
until_true 20 log_says rude rude || fail "the clients do not start"
gives 0 "control transport0" ctl show loops
until_true 60 log_says rude closed || fail "saker does not close the connections"
ends rude 20

say "saker stops, starts and ends"
gives 0 "Stopped." ctl stop
gives 1 "the loops are stopped" ctl show qp all
for command in reload "set saker" "set saker log=info" "unset route 0" "show events 1" \
    "show failed"; do
    # shellcheck disable=SC2086
    gives 1 "the loops are stopped; enter 'start' first" ctl $command
done
gives 0 "Started." ctl start
gives 1 "the loops are running already" ctl start
[ "$(stat -c %a "$work/a.control")" = 600 ] || fail "the mode of the control socket"
gives 0 "saker ends." ctl quit
ends a 20 || fail "saker ends with $?"
[ ! -e "$work/a.control" ] || fail "the control socket remains"
gives 2 "no saker answers" ctl help
echo PASS
