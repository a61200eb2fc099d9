#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Wrong inputs: options, configuration files, variables and the words of saker-run. Each gets one
# true sentence, on one line of standard error, and an exit status other than 0. --check refuses
# what needs no port, so that most cases start nothing.
. "$(dirname "$0")/common.sh"
saker=$build/app/saker cases=0
eal=(--lcores 0@0 --no-pci --no-huge --no-shconf -m 256 --no-telemetry --vdev net_ring0
    --file-prefix "wrong$$" --log-level lib.eal:error)

# sentence NAME PROGRAM STATUS WORDS COMMAND...: the command ends with the status and the sentence.
sentence() {
    local name=$1 program=$2 status=$3 words=$4 rc=0
    shift 4
    cases=$((cases + 1))
    timeout 120 "$@" </dev/null >"$work/out.log" 2>"$work/err.log" || rc=$?
    grep -v -e '^EAL: ' -e '^TELEMETRY: ' "$work/err.log" >"$work/said.log"
    if [ $rc != "$status" ] || [ "$(cat "$work/said.log")" != "$program: $words" ]; then
        echo "FAIL  $name: status $rc, '$(cat "$work/said.log")' and not '$words'"
        failed=$((failed + 1))
    fi
}
# refused NAME WORDS OPTION...: --check refuses the options.
refused() { sentence "$1" saker 1 "$2" "$saker" "${eal[@]}" -- --check "${@:3}"; }
# starts_not NAME WORDS OPTION...: the start fails.
starts_not() {
    sentence "$1" saker 1 "$2" "$saker" "${eal[@]}" -- --socket "$work/w.sock" --idle yield \
        --total-num-mbufs 2048 --address 0=10.0.0.1/24 "${@:3}"
}
# file NAME LINE WORDS TEXT: --check refuses a configuration file with this text, at this line.
file() {
    printf '%b' "$4" >"$work/$1.ini"
    refused "$1" "$work/$1.ini:$2: $3" --config "$work/$1.ini"
}
# starts OPTION...: saker starts, and ends when it is told to.
starts() {
    cases=$((cases + 1))
    printf 'quit\n' >"$work/quit"
    timeout 120 "$saker" "${eal[@]}" -- --socket "$work/w.sock" --idle sleep \
        --total-num-mbufs 2048 --cmdline-file "$work/quit" "$@" \
        >"$work/out.log" 2>"$work/err.log" ||
        fail "saker $* does not start"
}

say "options"
refused unknown-long "option '--bogus' is unknown" --bogus
refused unknown-short "option '-x' is unknown" -x
refused missing-argument "option '--mtu' needs an argument" --mtu
refused mtu-small "--mtu 100 is not a number within 1280..65517" --mtu 100
refused mtu-word "--mtu abc is not a number within 1280..65517" --mtu abc
refused mtu-negative "--mtu -5 is not a number within 1280..65517" --mtu -5
refused extra-word "'extra' is not an option" extra
refused no-file "the file /nonexistent.ini cannot be read: No such file or directory" \
    --config /nonexistent.ini
refused folder-as-file "the file /tmp cannot be read: Is a directory" --config /tmp
refused psp-word "--psp aes is not a list of none, gcm128, gcm256, gmac128, gmac256" --psp aes
refused falcon-word "--falcon maybe is neither yes nor no" --falcon maybe
refused idle-word "--idle foo is not one of poll, yield, sleep" --idle foo
refused loops "--loops 99 is not a number within 1..32" --loops 99
refused stats "--stats-period 0 is not a number within 1..86400" --stats-period 0
refused name "--name  is empty" --name ""
refused psp-no-key "Falcon: PSP with keys needs a pre-shared key or a certificate, under which the \
exchange transfers them" --falcon yes --psp gcm128
refused address-bare "--address 10.0.0.1/24 is not PORT=ADDRESS/LENGTH" --address 10.0.0.1/24
refused address-length "--address 0=10.0.0.1 is not an address with its prefix length, such as \
10.0.0.1/24" --address 0=10.0.0.1
refused address-octet "--address 0=10.0.0.300/24 is not an IPv4 or IPv6 address with its prefix \
length" --address 0=10.0.0.300/24
refused address-33 "--address 0=10.0.0.1/33 has a prefix length that is not within 0..32" \
    --address 0=10.0.0.1/33
refused address-twice "[interface 1] has the address 10.0.0.1 of [interface 0] again" \
    --address 0=10.0.0.1/24 --address 0=10.0.0.1/24
refused address-loopback "--address 0=127.0.0.1/8 is a loopback address" --address 0=127.0.0.1/8
refused address-loopback6 "--address 0=::1/128 is a loopback address" --address 0=::1/128
refused address-multicast "--address 0=224.0.0.1/24 is a multicast address" \
    --address 0=224.0.0.1/24
refused address-any "--address 0=0.0.0.0/0 is the unspecified address" --address 0=0.0.0.0/0
refused address-broadcast "--address 0=10.0.0.255/24 is the broadcast address of its network, \
which no host has" --address 0=10.0.0.255/24
refused address-network "--address 0=10.0.0.0/24 is the address of its network, which no host has" \
    --address 0=10.0.0.0/24

say "files"
file section-unknown 1 "section [flacon] is unknown" '[flacon]\nenabled = yes\n'
file section-empty 1 "section [flacon] is unknown" '[flacon]\n;enabled = yes\n'
file section-twice 3 "section [port 0] stands in line 1 already" \
    '[port 0]\nmtu = 1500\n[port 0]\nmtu = 9000\n'
file section-none 1 "the key 'cc' stands before the first [section]" 'cc = cubic\n'
file section-broken 1 "the line '[tcp' is not [section]" '[tcp\ncc = cubic\n'
file section-99 1 "section [port 99] needs a number within 0..15" '[port 99]\nmtu = 1500\n'
file key-unknown 2 "[tcp] has no key 'rto_min'" '[tcp]\nrto_min = 10ms\n'
file key-twice 3 "[tcp] cc stands in line 2 already" '[tcp]\ncc = cubic\ncc = dctcp\n'
file no-equals 2 "the line 'hello world' is neither [section] nor key = value" \
    '[tcp]\nhello world\n'
file psp-without-equals 3 "the line 'psp gcm256' is neither [section] nor key = value" \
    '[falcon]\nenabled = yes\npsp gcm256\n'
file no-value 2 "[tcp] cc has no value" '[tcp]\ncc =\n'
file no-unit 2 "[tcp] rto-min = 10 is not a time with its unit (ns, us, ms, s)" \
    '[tcp]\nrto-min = 10\n'
file out-of-range 2 "[tcp] rto-min = 10us is not a time within 100us..60s" '[tcp]\nrto-min = 10us\n'
file rto-crossed 2 "[tcp] rto-min = 4s exceeds rto-max = 10ms" \
    '[tcp]\nrto-min = 4s\nrto-max = 10ms\n'
file ports-crossed 2 "[tcp] port-min = 5000 exceeds port-max = 4000" \
    '[tcp]\nport-min = 5000\nport-max = 4000\n'
file hash-in-value 3 "[tcp] cc = cubic # because is not one of cubic, dctcp, none" \
    '# comment\n[tcp]\ncc = cubic # because\n'
long=$(printf 'x%.0s' {1..300})
file value-long 2 "[saker] name = ${long:0:60}... is longer than 31 bytes" "[saker]\nname = $long\n"
file vlan 3 "[interface 0] vlan = 5000 is not a VLAN within 1..4094, or 0 for none" \
    '[interface 0]\nport = 0\nvlan = 5000\naddress = 10.0.0.1/24\n'
file interface-bare 1 "[interface 0] lacks an address" '[interface 0]\nport = 0\n'
interface='[interface 0]\nport = 0\naddress = 10.0.0.1/24\n'
file route-off-link 4 "[route 0] gateway = 192.168.7.1 is in the network of no [interface]" \
    "${interface}[route 0]\ndestination = 0.0.0.0/0\ngateway = 192.168.7.1\n"
file route-families 4 "[route 0] destination = ::/0 and gateway = 10.0.0.254 are of different \
families" "${interface}[route 0]\ndestination = ::/0\ngateway = 10.0.0.254\n"
file route-bare 4 "[route 0] lacks a gateway" "${interface}[route 0]\ndestination = 0.0.0.0/0\n"
file falcon-mtu 3 "[falcon] mtu = 1000 is not a power of two within 256..8192" \
    '[falcon]\nenabled = yes\nmtu = 1000\n'
falcon='[falcon]\nenabled = yes\npsp = gcm128\n'
file psk-short 4 "[falcon] psk = (a secret) is neither the path of a file (/...) nor \
credential:NAME" "${falcon}psk = 0123\n"
printf '%b' "${falcon}psk = /nonexistent\n" >"$work/psk.ini"
refused psk-missing "[falcon] psk = /nonexistent cannot be read: No such file or directory" \
    --config "$work/psk.ini"
echo 00112233445566778899aabbccddeeff >"$work/psk"
chmod 644 "$work/psk"
printf '%b' "${falcon}psk = $work/psk\n" >"$work/psk.ini"
refused psk-readable "[falcon] psk = $work/psk can be read by others: its mode is 0644 \
(chmod o-rwx)" --config "$work/psk.ini"
printf '%b' "[falcon]\nenabled = yes\nordering = none\n" >"$work/none.ini"
refused unordered "Falcon: the unordered mode completes in error (RoF 6.4)" \
    --config "$work/none.ini"
file limit-large 2 "[limits] qps = 100000000 is not a number within 1..16777216" \
    '[limits]\nqps = 100000000\n'
file limit-zero 2 "[limits] clients = 0 is not a number within 1..4096" '[limits]\nclients = 0\n'
file machine-path 3 "[vm 0] is wrong: the machine lacks path=" \
    '[gateway]\nenabled = yes\n[vm 0]\nname = a\n'
file machine-alone 1 "[vm 0] requires [gateway] enabled = yes" \
    '[vm 0]\nname = a\npath=/dev/hugepages/zz\nip=10.0.0.2/24\n'

say "variables"
SAKER_MTUU=5 refused unknown-variable "environment variable SAKER_MTUU is unknown"
SAKER_MTU=5 refused wrong-variable \
    "environment variable SAKER_MTU: '5' is not a number within 1280..65517"

say "what only a start shows"
starts_not no-port "address 10.0.0.1: there is no port '9'; EAL found 0 (net_ring0)" \
    --address 9=10.0.0.1/24
starts_not no-port-name "address 10.0.0.2: there is no port 'net_tap7'; EAL found 0 (net_ring0)" \
    --address net_tap7=10.0.0.2/24
printf '[port 0]\ndevice = eth7\n' >"$work/port.ini"
starts_not no-device "[port 0]: there is no device 'eth7'; EAL found 0 (net_ring0)" \
    --config "$work/port.ini"
starts_not no-folder "cannot create a socket at /nonexistent/x.sock: No such file or directory" \
    --socket /nonexistent/x.sock
starts_not few-lcores "4 loops require 4 lcores, but EAL has 1 (-l or --lcores)" --loops 4
starts_not no-loop "transport stage 0: loop 5 does not exist" --transports 2 \
    --transport-loops 5,7
starts_not no-control-loop "the control stage's loop 7 does not exist" --control-loop 7
starts_not few-mbufs "total-num-mbufs 100 gives a stage fewer than 256 mbufs" \
    --total-num-mbufs 100
starts_not no-command-file "the command file /nonexistent cannot be read: No such file or \
directory" --cmdline-file /nonexistent
python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('$work/commands.sock')"
starts_not late-command-file "the command file $work/commands.sock cannot be read: No such device \
or address" --cmdline-file "$work/commands.sock"
printf '[gateway]\nenabled = yes\nuplink = foo\n' >"$work/uplink.ini"
starts_not no-uplink "[gateway] uplink = foo is not a port of this saker" \
    --config "$work/uplink.ini"

say "what is right"
printf '[tcp]\ncc = cubic ; because\n' >"$work/comment.ini"
starts --config "$work/comment.ini" --rxd 33
grep -q "there is no address: add \[interface 0\] or --address" "$work/err.log" ||
    fail "saker does not warn that it has no address"

if [ -x "$build/app/saker-run" ]; then
    say "saker-run"
    run=("$build/app/saker-run" --socket "$work/none.sock")
    sentence no-saker saker-run 126 \
        "no saker answers at $work/none.sock: No such file or directory" "${run[@]}" true
    for wrong in "--transport bogus:iwarp or falcon" "--poll bogus:yield or spin" \
        "--devices bogus:iwarp or falcon" "--devices iwarp,bogus:iwarp or falcon"; do
        # shellcheck disable=SC2086 # an option and its value
        sentence "saker-run ${wrong%:*}" saker-run 1 "${wrong%:*} is not ${wrong#*:}" "${run[@]}" \
            ${wrong%:*} true
    done
fi
echo "$cases inputs, $failed failures"
exit $((failed != 0))
