#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures what one client, machine or peer can do to another one's speed. A victim (8-byte Reads to
# itself, and a ping-pong with a second client) runs alone and beside each attack, in alternating
# rounds.
#
#   test/bench/neighbour.sh [--quick] [ATTACK...]
#
# Method. saker's lcore has core 0, and nothing else runs there. The victim has core 1, and the
# attacker must not take that core from it: an attacker that only wakes up every 50 us, and leaves
# saker alone, would cost 20 % of the rate and twelve times the p99. So:
#
#   * An attacker that works runs in the victim's thread, as a coroutine (test/hostile/beside.h). It
#     wakes up as often as one with a core of its own: between two messages of the victim, or every
#     10 us during a message that takes longer. Each time it does a few things, which are in its
#     rings before the victim's next message is. The victim's clocks stand still meanwhile. The
#     attacker's clients belong to another user.
#   * A peer on the wire that sleeps is a process of ordinary priority. The victim, with real-time
#     priority, never leaves core 1 while it measures.
#   * saker's other threads and the kernel may interrupt the victim. That time is taken from the
#     message that they interrupt, if it takes more than 5 us.
#
# "rhythm", "rhythm-fast" and "vm-rhythm" are the controls: an attacker that wakes up every 50 us,
# or after each message, and does nothing. They must keep rate and p99, as the class "asleep".
#
# The columns: the share of the rate that is kept; the quotient of p99; what the attacker did in a
# second; the new connections, the new clients, and the connections of correct peers on the wire
# that succeeded meanwhile. The verdict compares them with the bound of the attack's class:
#
#   asleep  the attacker sleeps, or its requests wait or are refused: 0.95 of the rate, 1.2 x p99
#   flood   each message has to be parsed: 0.75 of the rate
#   served  the requests are served, as the share of a user among two: 0.45 of the rate
#   rights  clients within their rights: 0.45 to 0.55 of the messages for either
#
# Rates and p99 are medians of the rounds. A round in which the victim's own speed changed does not
# count, since the host has moved the processors. An attack that exceeds a bound gets three times as
# many rounds, and the medians are those of all its rounds: noise leaves them, what an attack costs
# stays. In each class, all new connections succeed within 5 s, and a new client can attach.
#
# The wire is a veth under net_af_packet, whose frames saker reads without a system call. The
# attacks of clients that a machine has no means for are missing among its own: it has no socket for
# regions, and no way to remove pages of its device.
#
# The exit status is 1 when a bound is exceeded. The script runs in a network namespace of its own.
# Three rounds of all attacks take some minutes.
[ -n "${NEIGHBOUR_INSIDE:-}" ] ||
    NEIGHBOUR_INSIDE=1 exec unshare --net "$0" "$@"
. "$(dirname "$0")/../interop/common.sh"
ms=150 rounds=3 connects=5 share_ms=600
if [ "${1:-}" = --quick ]; then
    ms=100 rounds=1 connects=3 share_ms=300
    shift
fi
hostile=$build/test/hostile/hostile
near=nbwire0 far=nbwire1 net=10.9.1 others_net=10.9.2 port=7000
host=10.9.0.1 wire=$net.1 vms=(10.9.0.2 10.9.0.3)
other_user=65534

# NAME CLASS SAKER WORDS: SAKER is the kind of saker and victim; WORDS are those of the attacker. A
# "+" separates a client that serves from the peer on the wire that comes to it.
#
#   plain   the victim is a client at the socket   wire    the same, beside a wire
#   falcon  as wire, and the victim uses Falcon    vm      the attacker is in a machine
#   vms     the victim is in a machine of its own, and the attacker in another one
attacks="
rhythm               asleep plain  hostile rhythm SOCKET
rhythm-fast          asleep plain  hostile rhythm SOCKET 1
owed                 asleep plain  hostile owed SOCKET 16000
hog-qps              asleep plain  hostile hog-qps SOCKET
hog-cqs              asleep plain  hostile hog-cqs SOCKET
hog-pds              asleep plain  hostile hog-pds SOCKET
hog-listeners        asleep plain  hostile hog-listeners SOCKET
hog-clients          asleep plain  hostile hog-clients SOCKET
qp-open              asleep plain  hostile qp-open SOCKET 16000
punch                asleep plain  hostile punch SOCKET 0 HOST 7900
deep-cqs             flood  plain  hostile deep-cqs SOCKET
deep-qps             flood  plain  hostile deep-qps SOCKET
wakes                flood  plain  hostile wakes SOCKET
mailbox-valid        flood  plain  hostile mailbox-valid SOCKET
mailbox-invalid      flood  plain  hostile mailbox-invalid SOCKET
doorbell-valid       flood  plain  hostile doorbell-valid SOCKET
doorbell-invalid     flood  plain  hostile doorbell-invalid SOCKET
doorbell-empty       flood  plain  hostile doorbell-empty SOCKET
regions              flood  plain  hostile regions SOCKET
regions-refused      flood  plain  hostile regions-refused SOCKET
share                rights plain  share SOCKET HOST 1 SOCKET HOST 1000 7900 MS
share-reversed       rights plain  share SOCKET HOST 1000 SOCKET HOST 1 7900 MS
share-equal          rights plain  share SOCKET HOST 8 SOCKET HOST 8 7900 MS
stalled              asleep wire   hostile send SOCKET 200 WIRE 7800 + wire stalled 7800 100
unfinished           asleep wire   hostile accept SOCKET 200 WIRE 7800 + wire unfinished 7800 100
disordered           asleep wire   hostile accept SOCKET 200 WIRE 7800 + wire disordered 7800 8
half-open            asleep wire   wire half-open 7000 4000
half-open-many       asleep wire   wire half-open-many 7000 2000
syn                  flood  wire   frames syn
strays               flood  wire   frames strays
garbage              flood  wire   frames garbage
falcon-half          asleep falcon wire falcon-half 4795 4200
pulls-kept           asleep falcon hostile pulls-kept SOCKET 16 WIRE 7900
pulls-excess         served falcon hostile pulls-excess SOCKET 16 WIRE 7900
vm-rhythm            asleep vm     hostile rhythm BAR
vm-owed              asleep vm     hostile owed BAR 1000
vm-hog-qps           asleep vm     hostile hog-qps BAR
vm-hog-cqs           asleep vm     hostile hog-cqs BAR
vm-hog-pds           asleep vm     hostile hog-pds BAR
vm-hog-listeners     asleep vm     hostile hog-listeners BAR
vm-qp-open           asleep vm     hostile qp-open BAR 200
vm-deep-cqs          flood  vm     hostile deep-cqs BAR
vm-deep-qps          flood  vm     hostile deep-qps BAR
vm-mailbox-valid     flood  vm     hostile mailbox-valid BAR
vm-mailbox-invalid   flood  vm     hostile mailbox-invalid BAR
vm-doorbell-valid    flood  vm     hostile doorbell-valid BAR
vm-doorbell-invalid  flood  vm     hostile doorbell-invalid BAR
vm-doorbell-empty    flood  vm     hostile doorbell-empty BAR
vm-share             rights vm     share SOCKET HOST 1 BAR GUEST 100 7900 MS
vm-share-reversed    rights vm     share SOCKET HOST 100 BAR GUEST 1 7900 MS
vms-owed             asleep vms    hostile owed BAR 1000
vms-hog-qps          asleep vms    hostile hog-qps BAR
vms-hog-cqs          asleep vms    hostile hog-cqs BAR
vms-hog-listeners    asleep vms    hostile hog-listeners BAR
vms-qp-open          asleep vms    hostile qp-open BAR 200
vms-deep-cqs         flood  vms    hostile deep-cqs BAR
vms-deep-qps         flood  vms    hostile deep-qps BAR
vms-mailbox-valid    flood  vms    hostile mailbox-valid BAR
vms-mailbox-invalid  flood  vms    hostile mailbox-invalid BAR
vms-doorbell-valid   flood  vms    hostile doorbell-valid BAR
vms-doorbell-invalid flood  vms    hostile doorbell-invalid BAR
vms-doorbell-empty   flood  vms    hostile doorbell-empty BAR
vms-share            rights vms    share BAR2 GUEST2 1 BAR GUEST 100 7900 MS
vms-share-reversed   rights vms    share BAR2 GUEST2 100 BAR GUEST 1 7900 MS
"
for a in "$@"; do
    grep -q "^$a " <<<"$attacks" ||
        { echo "no attack '$a' in: $(awk '{ print $1 }' <<<"$attacks" | xargs)"; exit 2; }
done
[ -x "$hostile" ] || fail "$hostile is not built"
[ "$(nproc)" -ge 2 ] || skip "the bench needs two processors"
chrt -r 1 true 2>/dev/null || skip "the bench needs the right to set real-time priorities"
others=$(ps -eLo pid,cls,pcpu,comm | awk '$2 == "RR" && $3 > 20 { print $4 " (" $1 ")" }' | xargs)
[ -z "$others" ] || skip "other processes have real-time priority and need the processors: $others"
ip link set lo up
take_memory 700
chmod 711 "$work" # the attacker's user reaches the socket through its group

# ---- saker ----

# While an attacker runs in the victim's thread, saker has no work from the victim. An attacker with
# a core of its own would not cause that, so that saker must not fall asleep then: it waits some
# milliseconds before it sleeps.
config() { # config KIND: writes saker.ini
    printf '%s\n' '[saker]' 'idle = sleep' 'sleep-after = 20000' '[falcon]' 'enabled = yes'
    case $1 in
    plain) printf '%s\n' '[interface 0]' 'port = net_ring0' "address = $host/24" ;;
    wire | falcon) printf '%s\n' '[interface 0]' 'port = net_af_packet0' "address = $wire/16" ;;
    vm | vms) printf '%s\n' '[gateway]' 'enabled = yes' 'uplink = net_ring0' \
        '[interface 0]' 'port = net_ring0' "address = $host/24"
        for i in 0 1; do
            printf '%s\n' "[vm $i]" "name = guest$i" "path = $work/guest$i.mem" 'size = 128m' \
                'slots = 4' 'timeout = 60000' "ip = ${vms[i]}/24" 'peers = yes'
        done ;;
    esac
}
# Runs saker on core 0 with priority. Its other threads, such as the socket's, go to core 1 and take
# precedence over the victim there.
begin() { # begin KIND
    local vdev=net_ring0 t
    config "$1" >"$work/saker.ini"
    [[ $1 != @(wire|falcon) ]] || {
        vdev="net_af_packet0,iface=$near"
        ip link add $near type veth peer name $far
        ip link set $near up
        python3 test/hostile/wire.py plain $far
    }
    saker s 0@0 "$vdev" -- --config "$work/saker.ini" --idle sleep
    chrt -r -p 10 "${pid[s]}" || fail "saker gets no priority"
    for t in /proc/"${pid[s]}"/task/*; do
        t=${t##*/}
        [ "$t" = "${pid[s]}" ] && continue
        taskset -cp 1 "$t" >/dev/null && chrt -r -p 30 "$t"
    done
    [[ $1 != @(wire|falcon) ]] || wires
    [[ $1 != vm* ]] || until_true 60 has_machines || fail "saker has no machines"
}
has_machines() { [ "$(control s -j show vms | jq '.machines | length')" = ${#vms[@]} ]; }
wires() { # gives the wire its addresses, and writes the frames of floods
    local kind
    ip addr add $net.2/16 dev $far
    ip link set $far up
    ip route replace local $others_net.0/24 dev lo
    echo 1 >/proc/sys/net/ipv4/conf/$far/proxy_arp
    ip neigh add proxy $net.77 dev $far
    for kind in syn strays garbage; do
        [ -s "$work/$kind.frames" ] && continue
        python3 test/hostile/wire.py $kind $far $wire $port "$work/$kind.frames"
    done
}
finish() { # finish NAME: ends a process
    [ -n "${pid[$1]:-}" ] || return 0
    kill "${pid[$1]}" 2>/dev/null
    ends "$1" 60
}

# ---- The victim ----

victim() { # victim KIND
    local where=$work/s.sock addr=$host transport=iwarp
    case $1 in
    wire) addr=$wire ;;
    falcon) addr=$wire transport=falcon ;;
    vms) where=bar:$work/guest1.mem:0 addr=${vms[1]} ;;
    esac
    rm -f "$work/orders" "$work/answers"
    mkfifo "$work/orders" "$work/answers"
    exec 7<>"$work/orders" 8<>"$work/answers" # opens without waiting for the other ends
    taskset -c 1 chrt -r 10 "$build/test/hostile/victim" "$where" "$addr" $port $transport \
        <"$work/orders" >"$work/answers" 2>>"$work/victim.log" 7>&- 8>&- &
    pid[victim]=$!
    answer_within 60 && [ "${answer[0]}" = ready ]
}
# answer_within SECONDS: reads the next line of the victim into ${answer[@]}.
answer_within() {
    local end=$((SECONDS + $1))
    answer=()
    until read -r -t 1 -u 8 -a answer; do
        [ $SECONDS -lt $end ] && is_running victim || { answer=("-" "no answer"); return 1; }
    done
    echo "${answer[*]}" >>"$work/victim.log"
}
order() { # order WORDS: gives the victim an order, and reads its answer
    echo "> $*" >>"$work/victim.log"
    echo "$*" >&7
    answer_within 120 && [[ ${answer[1]:-} =~ ^[0-9]+$ ]]
}

# serve: starts a server for correct peers on the wire.
serve() {
    start server "$hostile" accept "$work/s.sock" 512 $wire 7700
    until_true 30 says_or_ends server "^ready"
    log_says server "^ready" || fail "the server does not start"
}

# The kind of saker that runs, with its victim, or empty.
running=
stage() { # stage KIND: starts saker and victim, unless they run
    [ "$running" != "$1" ] || return 0
    strike
    begin "$1"
    [[ $1 != @(wire|falcon) ]] || serve
    victim "$1" || {
        trouble="the victim does not start: $(tail -n 1 "$work/victim.log")"
        return 1
    }
    running=$1
}
strike() { # ends what stage() has started
    local p
    running=
    exec 7>&- 8>&-
    for p in peer server victim s; do finish $p; done
    rm -f "$work"/guest?.mem # a file of the saker that ended names no device
    ip link del $near 2>/dev/null
}

# ---- The attacker ----

words() { # words WORD...: prints the words with their values
    sed "s|SOCKET|$work/s.sock|g; s|BAR2|bar:$work/guest1.mem:3|; s|BAR|bar:$work/guest0.mem:0|
        s|HOST|$host|g; s|GUEST2|${vms[1]}|; s|GUEST|${vms[0]}|; s|WIRE|$wire|; s|MS|$share_ms|
        " <<<"$*"
}
attacker() { # attacker attack|server hostile|wire|frames WORD...
    local as=$1 side=$2 list
    shift 2
    read -ra list <<<"$(words "$@")"
    case $side in
    hostile) order "$as" "${list[0]}" $other_user "${list[@]:1}" ;;
    frames) order "$as" frames 0 $far 0 "$work/${list[0]}.frames" ;;
    wire)
        start peer taskset -c 1 python3 -u test/hostile/wire.py "${list[0]}" $far $wire \
            "${list[@]:1}"
        until_true 120 says_or_ends peer "^ready"
        log_says peer "^ready"
        return
        ;;
    esac
    [ "${answer[1]}" = 1 ]
}
attack() { # attack WORD...: starts one attacker or two
    local all="$*"
    # shellcheck disable=SC2086 # words
    if [[ $all == *" + "* ]]; then
        attacker server ${all% + *} && attacker attack ${all#* + }
    else
        attacker attack $all
    fi
}
# relief: ends the attackers and waits until only the victim's clients are left.
relief() {
    finish peer
    order relief && [ "${answer[1]}" = 1 ] || return 1
    until_true 120 only_the_victim
}
only_the_victim() {
    local n=2
    [ "$running" != vms ] || n=0
    [ -z "${pid[server]:-}" ] || n=3
    [ "$(telemetry s /saker/info | jq .clients)" = $n ]
}

# ---- Rounds ----

quotient() { awk "BEGIN { printf \"%.3f\\n\", $1 / ($2) }"; } # quotient A B
holds() { awk "BEGIN { exit !($1) }"; } # holds CONDITION

# window WHAT: orders the victim to measure, again (at most four times) while others of this machine
# keep saker from core 0 for more than a fiftieth of the window.
waited() { awk '{ print $2 }' "/proc/${pid[s]}/task/${pid[s]}/schedstat"; } # ns
window() {
    local before
    for _ in 1 2 3 4 5; do
        before=$(waited)
        order "$1" $ms || return 1
        [ $(($(waited) - before)) -gt $((ms * 20000)) ] || break
    done
}
# alone WHEN: measures the victim without an attacker: rate[WHEN.reads], p99[WHEN.pong] and so on.
declare -A rate p99
alone() {
    local what
    for what in reads pong; do
        window $what || { trouble="the victim alone: ${answer[*]}"; return 1; }
        rate[$1.$what]=${answer[1]} p99[$1.$what]=${answer[3]}
    done
}
# The attack is compared with the mean of before and after, since the machine's own speed drifts.
# Adds to the files kept.reads, p99.reads, kept.pong and p99.pong. A round in which the victim's own
# speed changed by more than a tenth does not count: the host has moved the processors between
# placements.
compare() {
    local what
    if is_steady; then
        counted=$((counted + 1))
        for what in reads pong; do
            quotient "${rate[beside.$what]}" \
                "(${rate[before.$what]} + ${rate[after.$what]}) / 2" >>"$work/kept.$what"
            quotient "${p99[beside.$what]}" \
                "(${p99[before.$what]} + ${p99[after.$what]}) / 2" >>"$work/p99.$what"
        done
    fi
    for what in reads pong; do
        rate[before.$what]=${rate[after.$what]} p99[before.$what]=${p99[after.$what]}
    done
}
is_steady() {
    local what
    for what in reads pong; do
        holds "${rate[before.$what]} <= 1.1 * ${rate[after.$what]} &&
            ${rate[after.$what]} <= 1.1 * ${rate[before.$what]}" || return 1
    done
}
one_round() { # one_round WORD...
    local what
    if ! attack "$@"; then
        trouble="the attack failed: ${answer[*]}, $(tail -qn 1 "$work"/peer.log 2>/dev/null)"
        trouble+=" $(grep -v "^[>a]" "$work/victim.log" | tail -n 1)"
        return 1
    fi
    for what in reads pong; do
        window $what || { trouble="the victim's $what: ${answer[*]}"; return 1; }
        rate[beside.$what]=${answer[1]} p99[beside.$what]=${answer[3]}
        echo $((answer[6] * 1000 / ms)) >>"$work/deeds"
    done
    order connect $connects
    news "connections" || return 1
    order attach 1
    news "new clients" || return 1
    if [ -n "${pid[server]:-}" ]; then
        read -ra answer < <(test/hostile/wire.py probe $far $wire 7700 2)
        news "peers" || return 1
    fi
    relief || { trouble="the attacker's client is still there: ${answer[*]}"; return 1; }
    alone after || return 1
    compare
}
# news WHAT: adds the victim's answer about new connections or clients.
news() {
    [[ ${answer[1]:-} =~ ^[0-9]+$ ]] || { trouble="the victim: ${answer[*]}"; return 1; }
    good[$1]=$((${good[$1]:-0} + answer[1]))
    bad[$1]=$((${bad[$1]:-0} + answer[2]))
    [ "${answer[2]}" = 0 ] || why[$1]=${answer[*]:5}
    slowest[$1]=$(printf '%s\n' "${slowest[$1]:-0}" $((answer[4] / 1000)) | sort -n | tail -n 1)
}

row() {
    printf '%-20s %-7s %9s %9s %9s %9s %9s  %-14s %-13s %-14s %s\n' "$@" | tee -a "$work/table"
}
verdict_of() { # verdict_of CLASS: prints "ok" or what exceeds the bound
    local least=0.75 most=1000000 out=() what
    [ "$1" = asleep ] && least=0.95 most=1.2
    [ "$1" = served ] && least=0.45
    [ -z "$trouble" ] || { echo "FAIL: $trouble"; return; }
    for what in reads pong; do
        holds "$(median <"$work/kept.$what") < $least" && out+=("rate of $what")
        holds "$(median <"$work/p99.$what") > $most" && out+=("p99 of $what")
    done
    for what in connections "new clients" peers; do
        [ "${bad[$what]:-0}" = 0 ] || out+=("$what: ${why[$what]}")
    done
    [ ${#out[@]} = 0 ] && { echo ok; return; }
    printf -v what '%s, ' "${out[@]}"
    echo "FAIL: ${what%, }"
}
news_of() {
    [ -n "${good[$1]:-}" ] || { echo -; return; }
    echo "${good[$1]}/$((good[$1] + bad[$1])) ${slowest[$1]} us"
}

# until_counted NUMBER WORD...: runs rounds until so many count, at most four times as many.
until_counted() {
    local most=$1
    shift
    for _ in $(seq $((4 * most))); do
        [ -z "$trouble" ] && [ $counted -lt "$most" ] && one_round "$@" || break
    done
}

measured() { # measured NAME CLASS SAKER WORD...
    local name=$1 class=$2 kind=$3 figure
    shift 3
    trouble=
    declare -gA good=() bad=() why=() slowest=()
    rm -f "$work"/{kept,p99}.* "$work/deeds" "$work"/peer.log
    if stage "$kind" && alone before; then
        counted=0
        until_counted $rounds "$@"
        [ -n "$trouble" ] || [ $counted -gt 0 ] || trouble="the processors moved in each round"
        [[ $(verdict_of "$class") == ok ]] || until_counted $((3 * rounds)) "$@"
    fi
    [ -z "$trouble" ] || strike
    for figure in kept.reads kept.pong p99.reads p99.pong deeds; do
        [ -s "$work/$figure" ] || echo 0 >"$work/$figure"
    done
    row "$name" "$class" "$(median <"$work/kept.reads")" "$(median <"$work/kept.pong")" \
        "$(median <"$work/p99.reads")" "$(median <"$work/p99.pong")" "$(median <"$work/deeds")" \
        "$(news_of connections)" "$(news_of "new clients")" "$(news_of peers)" \
        "$(verdict_of "$class")"
}
shared() { # shared NAME CLASS SAKER share WORD...
    local name=$1 list share verdict=ok
    trouble=
    stage "$3" || { row "$name" rights - - - - - - - - "FAIL: $trouble"; strike; return; }
    read -ra list <<<"$(words "${@:5}")"
    start share taskset -c 1 chrt -r 10 "$hostile" share "${list[@]}"
    if ends share 120; then
        share=$(awk '/^share/ { print $2 + 0 }' "$work/share.log")
        holds "$share < 0.45 || $share > 0.55" && verdict="FAIL: the share of the first client"
        verdict="$verdict: $(sed -n 's/^share.*: //p' "$work/share.log")"
    else
        share=- verdict="FAIL: $(tail -n 1 "$work/share.log")"
    fi
    row "$name" rights "$share" - - - - - - - "$verdict"
    until_true 120 only_the_victim || strike
}

row attack class "rate,read" "rate,pong" "p99,read" "p99,pong" "attacks/s" "connections" \
    "clients" "peers" verdict
while read -r name class kind words; do
    [ -n "$name" ] || continue
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    if [ "$class" = rights ]; then
        # shellcheck disable=SC2086 # words
        shared "$name" "$class" "$kind" $words
    else
        # shellcheck disable=SC2086
        measured "$name" "$class" "$kind" $words
    fi
done <<<"$attacks"
strike
failures=$(grep -c FAIL "$work/table")
echo "$failures of $(($(wc -l <"$work/table") - 1)) attacks exceed their bounds, after $SECONDS s"
[ "$failures" = 0 ]
