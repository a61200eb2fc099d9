#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# RDMA over Falcon on wires that lose, duplicate and reorder: every opcode in every ordering mode
# and error mode. Every byte is verified, each completion comes once and in the order that the mode
# promises, and every mbuf is freed. All ciphers, IPv6, jumbo frames, both stages on one lcore and
# on two. Then saker-perf's operations on such a wire, and two sakers joined by shared memory with
# two clients, one of which is killed during a transfer, and two that prove their identity by keys
# and by certificates. With CI_LONG set ten times as much.
. "$(dirname "$0")/common.sh"
[ -x "$interop/falcon_soak" ] || fail "$interop/falcon_soak is not built"
much=1000 some=300
[ -n "${CI_LONG:-}" ] && much=10000 some=3000
cpus=0
evil=(--dup 0.02 --reorder 0.01)
eal=(--no-huge --no-shconf --no-pci --no-telemetry)

soak() { # soak OPTIONS...
    echo "falcon_soak $*"
    timeout 120 "$interop/falcon_soak" "${eal[@]}" -m 512 -l "$cpus" -- "${evil[@]}" "$@" \
        >"$work/soak.log" 2>&1 || fail "falcon_soak on lcores $cpus $*"
    grep "bytes verified" "$work/soak.log"
}

say "every opcode, ordering mode and error mode, loss of 1 % and 5 %"
for drop in 0.01 0.05; do
    for mode in "strong verbs" "strong complete" "weak verbs" "weak complete" "none complete"; do
        soak --requests $much --ordering "${mode% *}" --errors "${mode#* }" --drop $drop --seed 21
    done
done
say "one opcode at a time"
for op in send send_inv send_imm solicited write write_imm read cmp_swap fetch_add; do
    soak --requests $some --op $op --ordering weak --errors complete --drop 0.03 --seed 22
done
say "ciphers, over IPv4 and IPv6, with jumbo frames"
soak --requests $some --psp gcm128 --drop 0.03 --seed 23
soak --requests $some --psp gcm256 --ordering none --errors complete --v6 --drop 0.03 --seed 24
soak --requests $some --psp gmac128 --ordering weak --mtu 9000 --drop 0.03 --seed 25
soak --requests $some --psp gmac256 --v6 --mtu 9000 --drop 0.03 --seed 26
say "stages split over two loops"
soak --requests $some --split --drop 0.03 --seed 27
[ "$(nproc)" -gt 1 ] && cpus=0,1 &&
    soak --requests $some --split --ordering none --errors complete --drop 0.03 --seed 28

say "saker-perf, each end on an lcore"
perf() { # perf OP SIZE OPTIONS...
    local op=$1 size=$2
    shift 2
    timeout 300 "$build/app/saker-perf" --lcores 0@0,1@1 "${eal[@]}" -m 1024 -- \
        --transport falcon --test lat --verify --json --no-floor --rounds 1 --iters 20 \
        --op "$op" --size "$size" --impair "dir=tx,drop=0.03,dup=0.005,reorder=0.01,seed=29" "$@" \
        >"$work/perf.json" 2>"$work/perf.log" || fail "saker-perf --op $op $*"
    [ "$(jq -r '"\(.verified) \(.errors)"' "$work/perf.json")" = "20 0" ] ||
        fail "saker-perf --op $op $*: $(cat "$work/perf.json")"
}
if [ "$(nproc)" -gt 1 ]; then
    perf send 30000 --ordering weak --errors complete
    perf write 30000 --ordering none --errors complete --psp gcm128
    perf read 30000 --mtu 9000
    perf write_imm 1000 --ordering none --errors complete
    perf atomic_fa 8 --ordering weak --psp gmac256
    perf atomic_cs 8
    echo "6 operations, 20 of each verified byte by byte"
fi

say "two sakers joined by memif, two clients, one is killed"
take_memory 600
export PEER_FALCON=1
wire_a=(--address "0=10.5.0.1/24" --falcon yes --psp none)
wire_b=(--address "0=10.5.0.2/24" --falcon yes --psp none)
pair
start good.listen "$interop/saker_peer" "$work/b.sock" listen any 7001 quick
start partner "$interop/rogue" "$work/b.sock" partner any 7002
for who in good.listen partner; do
    until_true 60 log_says $who listening || fail "$who does not listen"
done
start killed "$interop/rogue" "$work/a.sock" stream 10.5.0.2 7002
until_true 60 log_says killed ^stream || fail "the client that is to be killed has no stream"
start good.connect "$interop/saker_peer" "$work/a.sock" connect 10.5.0.2 7001 quick
{ kill -KILL "${pid[killed]}"; ends killed 10; } 2>/dev/null
passes partner 90
passes good.connect 120
passes good.listen 60
echo "the partner's end: $(grep requests "$work/partner.log")"
echo "the others: $(grep steps "$work/good.connect.log")"
clean a b
for s in a b; do
    kill -TERM "${pid[$s]}"
    passes $s 60
done

# ---- Identities ----

rofx() {
    telemetry "$1" /saker/counters | jq --arg n "$2" '[.. | objects | .[$n]? // empty] | add'
}
secret() { (umask 077 && cat >"$work/$1"); }
# settings NAME LINE...: writes the configuration file of a saker.
settings() {
    local name=$1
    shift
    { falcon_section 7; printf '%s\n' 'psp = gcm256' 'require-psp = yes' "$@"; } >"$work/$name.ini"
}
# certificate NAME SUBJECT-ALTERNATIVE-NAME: issues a certificate of the test's CA.
certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
        -keyout - -out "$work/$1.csr" 2>>"$work/openssl.log" | secret "$1.key"
    openssl x509 -req -in "$work/$1.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -days 2 \
        -set_serial "$RANDOM" -extfile <(echo "subjectAltName=$2") -out "$work/$1.pem" \
        2>>"$work/openssl.log" || fail "openssl issues no certificate"
}
certified() { printf '%s\n' "ca = $work/ca.pem" "certificate = $work/$1.pem" "key = $work/$1.key"; }
two_sakers() {
    wire_a=(--address "0=10.5.0.1/24" --config "$work/a.ini")
    wire_b=(--address "0=10.5.0.2/24" --config "$work/b.ini")
    pair
    start good.listen "$interop/saker_peer" "$work/b.sock" listen any 7001 quick
    until_true 60 log_says good.listen listening || fail "good.listen does not listen"
}
they_connect() {
    start good.connect "$interop/saker_peer" "$work/a.sock" connect 10.5.0.2 7001 quick
    passes good.connect 120
    passes good.listen 60
}
end_sakers() {
    for s in a b; do
        kill -TERM "${pid[$s]}"
        passes $s 60
    done
}

say "two sakers with a key for this pair of hosts"
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' | secret pair.psk
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' | secret other.psk
settings a '[peer 0]' 'address = 10.5.0.2' "psk = $work/pair.psk"
settings b "psk = $work/other.psk" '[peer 3]' 'address = 10.5.0.1' "psk = $work/pair.psk"
two_sakers
they_connect
end_sakers

say "two sakers with certificates"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=fabric -days 2 \
    -addext basicConstraints=critical,CA:TRUE -keyout "$work/ca.key" -out "$work/ca.pem" \
    2>"$work/openssl.log" || fail "openssl makes no CA"
certificate first IP:10.5.0.1
certificate second IP:10.5.0.2
certificate stranger IP:10.5.0.9
settings a "$(certified first)"
settings b "$(certified second)"
two_sakers
they_connect
end_sakers

say "a host whose certificate is for another address"
settings a "$(certified stranger)"
two_sakers
start good.connect "$interop/saker_peer" "$work/a.sock" connect 10.5.0.2 7001 quick
ends good.connect 120 && fail "a certificate for another address was accepted"
[ "$(rofx b ROFX_TLS_NAME)" -ge 1 ] || fail "b has not counted ROFX_TLS_NAME"
kill -TERM "${pid[good.listen]}"
ends good.listen 60
end_sakers
echo PASS
