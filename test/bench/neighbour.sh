#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures what one client, machine or peer can do to another one's speed. A victim (8-byte Reads to
# itself, and a ping-pong with a second client) runs alone and beside each attack, in alternating
# rounds. saker has core 0. The victim has core 1, and only the attacker, which sleeps between its
# bursts, takes precedence over it. The victim's rate counts messages for each second of the
# processor's time that it had, so that the attacker's own use of core 1 does not count.
#
#   test/bench/neighbour.sh [--quick] [ATTACK...]
#
# Prints the share of the rate that is kept, the quotient of p99, and the new connections, the new
# clients, and the connections of correct peers on the wire that succeed meanwhile. It compares them
# with the bound of the attack's class:
#
#   asleep  the attacker sleeps, or its requests wait or are refused: 0.95 of the rate, 1.2 x p99
#   flood   each message has to be parsed: 0.75 of the rate
#   rights  clients within their rights: 0.45 to 0.55 of the messages for either
#
# "rhythm" is the control: a client that sends nothing, and wakes up as often as those that flood a
# mailbox. Its p99 is what they cost the victim on the processor that they share with it.
#
# In each class, all new connections succeed, and a new client can attach.
#
# The exit status is 1 when a bound is exceeded. The script runs in a network namespace of its own.
[ -n "${NEIGHBOUR_INSIDE:-}" ] ||
    NEIGHBOUR_INSIDE=1 exec unshare --net "$0" "$@"
. "$(dirname "$0")/../interop/common.sh"
ms=400 rounds=3 connects=5
if [ "${1:-}" = --quick ]; then
    ms=200 rounds=1 connects=3
    shift
fi
hostile=$build/test/hostile/hostile
tap=nbtap0 wire=10.9.1.1 host=10.9.0.1 vm=10.9.0.2 port=7000

# NAME CLASS SAKER WORDS: SAKER is the kind of saker that runs; WORDS are those of the attacker. A
# "+" separates two attackers, the first of which is ready before the second starts.
attacks="
rhythm            flood  plain hostile rhythm SOCKET
owed              asleep plain hostile owed SOCKET 16000
hog-qps           asleep plain hostile hog-qps SOCKET
hog-cqs           asleep plain hostile hog-cqs SOCKET
hog-pds           asleep plain hostile hog-pds SOCKET
hog-listeners     asleep plain hostile hog-listeners SOCKET
hog-clients       asleep plain hostile hog-clients SOCKET
qp-open           asleep plain hostile qp-open SOCKET 16000
punch             asleep plain hostile punch SOCKET 0 HOST 7900
deep-cqs          flood  plain hostile deep-cqs SOCKET
deep-qps          flood  plain hostile deep-qps SOCKET
mailbox-valid     flood  plain hostile mailbox-valid SOCKET
mailbox-invalid   flood  plain hostile mailbox-invalid SOCKET
doorbell-valid    flood  plain hostile doorbell-valid SOCKET
doorbell-invalid  flood  plain hostile doorbell-invalid SOCKET
doorbell-empty    flood  plain hostile doorbell-empty SOCKET
regions           flood  plain hostile regions SOCKET
regions-refused   flood  plain hostile regions-refused SOCKET
share             rights plain share SOCKET HOST 1 SOCKET HOST 1000 7900 MS
share-reversed    rights plain share SOCKET HOST 1000 SOCKET HOST 1 7900 MS
share-equal       rights plain share SOCKET HOST 8 SOCKET HOST 8 7900 MS
stalled           asleep tap hostile send SOCKET 200 WIRE 7800 + wire stalled 7800 100
unfinished        asleep tap hostile accept SOCKET 200 WIRE 7800 + wire unfinished 7800 100
disordered        asleep tap hostile accept SOCKET 200 WIRE 7800 + wire disordered 7800 8
half-open         asleep tap wire half-open 7000 16500
falcon-half       asleep tap wire falcon-half 4795 4200
syn               flood  tap wire syn 7000 0
strays            flood  tap wire strays 7000 0
garbage           flood  tap wire garbage 7000 0
vm-owed           asleep vm hostile owed BAR 1000
vm-hog-qps        asleep vm hostile hog-qps BAR
vm-hog-cqs        asleep vm hostile hog-cqs BAR
vm-qp-open        asleep vm hostile qp-open BAR 200
vm-deep-cqs       flood  vm hostile deep-cqs BAR
vm-deep-qps       flood  vm hostile deep-qps BAR
vm-mailbox-valid  flood  vm hostile mailbox-valid BAR
vm-mailbox-invalid flood vm hostile mailbox-invalid BAR
vm-doorbell-valid flood  vm hostile doorbell-valid BAR
vm-doorbell-invalid flood vm hostile doorbell-invalid BAR
vm-doorbell-empty flood  vm hostile doorbell-empty BAR
vm-share          rights vm share SOCKET HOST 1 BAR GUEST 100 7900 MS
vm-share-reversed rights vm share SOCKET HOST 100 BAR GUEST 1 7900 MS
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

config() { # config KIND: writes saker.ini
    printf '%s\n' '[saker]' 'idle = sleep' '[falcon]' 'enabled = yes'
    case $1 in
    plain) printf '%s\n' '[interface 0]' 'port = net_ring0' "address = $host/24" ;;
    tap) printf '%s\n' '[interface 0]' 'port = net_tap0' "address = $wire/24" ;;
    vm) printf '%s\n' '[gateway]' 'enabled = yes' 'uplink = net_ring0' \
        '[interface 0]' 'port = net_ring0' "address = $host/24" \
        '[vm 0]' 'name = guest' "path = $work/guest.mem" 'size = 64m' 'slots = 2' \
        'timeout = 60000' "ip = $vm/24" 'peers = yes' ;;
    esac
}
# Runs saker on core 0 with priority. Its other threads, such as the socket's, go to core 1 and take
# precedence over the attacker there.
begin() { # begin KIND
    local vdev=net_ring0 t
    config "$1" >"$work/saker.ini"
    [ "$1" = tap ] && vdev="net_tap0,iface=$tap"
    saker s 0@0 "$vdev" -- --config "$work/saker.ini" --idle sleep
    chrt -r -p 10 "${pid[s]}" || fail "saker gets no priority"
    for t in /proc/"${pid[s]}"/task/*; do
        t=${t##*/}
        [ "$t" = "${pid[s]}" ] && continue
        taskset -cp 1 "$t" >/dev/null && chrt -r -p 30 "$t"
    done
    [ "$1" = tap ] || return 0
    ip addr add ${wire%.*}.2/24 dev $tap
    ip link set $tap up
    echo 1 >/proc/sys/net/ipv4/conf/$tap/proxy_arp
    ip neigh add proxy ${wire%.*}.77 dev $tap
}
finish() { # finish NAME: ends a process
    [ -n "${pid[$1]:-}" ] || return 0
    kill "${pid[$1]}" 2>/dev/null
    ends "$1" 60
}

# ---- The victim ----

victim() { # victim ADDR TRANSPORT
    mkfifo "$work/orders"
    exec 7<>"$work/orders" # opens without waiting for the other end
    taskset -c 1 chrt -r 10 "$build/test/hostile/victim" "$work/s.sock" "$1" $port "$2" \
        <"$work/orders" >"$work/victim.log" 2>&1 7>&- &
    pid[victim]=$!
    until_true 60 says_or_ends victim ready
    log_says victim ready
}
# order WORDS: gives the victim an order and puts the words of its answer into ${answer[@]}.
order() {
    local before
    before=$(wc -l <"$work/victim.log")
    echo "$*" >&7
    until_true 120 answered "$before" || { answer=("$1" stuck); return 1; }
    read -ra answer < <(tail -n 1 "$work/victim.log")
    [[ ${answer[1]:-} =~ ^[0-9]+$ ]]
}
answered() { has_ended victim || [ "$(wc -l <"$work/victim.log")" -gt "$1" ]; }

# serve: starts a server for correct peers on the wire.
serve() {
    start server "$hostile" accept "$work/s.sock" 64 $wire 7700
    until_true 30 says_or_ends server "^ready"
    log_says server "^ready" || fail "the server does not start"
}

# ---- The attacker ----

words() { # words WORD...: prints the words with their values
    sed "s|SOCKET|$work/s.sock|g; s|BAR|bar:$work/guest.mem:0|; s|HOST|$host|g; s|GUEST|$vm|
        s|WIRE|$wire|; s|MS|$((rounds * ms))|" <<<"$*"
}
attacker() { # attacker NAME hostile|wire WORD...
    local name=$1 side=$2 list
    shift 2
    read -ra list <<<"$(words "$@")"
    case $side in
    hostile)
        start "$name" taskset -c 1 chrt -r 20 setpriv --reuid 65534 --regid 0 --clear-groups \
            "$hostile" "${list[@]}"
        ;;
    wire)
        start "$name" taskset -c 1 chrt -r 20 python3 -u test/hostile/wire.py "${list[0]}" $tap \
            $wire "${list[@]:1}"
        ;;
    esac
    until_true 120 says_or_ends "$name" "^ready"
    log_says "$name" "^ready"
}
attack() { # attack WORD...: starts one attacker or two
    local all="$*"
    # shellcheck disable=SC2086 # words
    if [[ $all == *" + "* ]]; then
        attacker attacker1 ${all% + *} && attacker attacker2 ${all#* + }
    else
        attacker attacker2 $all
    fi
}
# relief: ends the attackers and waits until only the victim's clients are left.
relief() {
    finish attacker2
    finish attacker1
    until_true 120 only_the_victim
}
only_the_victim() {
    local n=2
    [ -z "${pid[server]:-}" ] || n=3
    [ "$(telemetry s /saker/info | jq .clients)" = $n ]
}

# ---- Rounds ----

quotient() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", b ? a / b : 0 }'; }
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
holds() { awk "BEGIN { exit !($1) }"; } # holds CONDITION

# Prints to the files kept.reads, p99.reads, kept.pong and p99.pong.
one_round() { # one_round WORD...
    local what
    declare -A rate p99
    for what in reads pong; do
        order $what $ms || return 1
        rate[$what]=${answer[1]} p99[$what]=${answer[3]}
    done
    if ! attack "$@"; then
        trouble="the attack failed: $(tail -qn 1 "$work"/attacker?.log | xargs)"
        return 1
    fi
    for what in reads pong; do
        if ! order $what $ms; then
            trouble="the victim's $what: ${answer[*]}"
            return 1
        fi
        quotient "${answer[1]}" "${rate[$what]}" >>"$work/kept.$what"
        echo >>"$work/kept.$what"
        quotient "${answer[3]}" "${p99[$what]}" >>"$work/p99.$what"
        echo >>"$work/p99.$what"
    done
    order connect $connects
    news "connections" || return 1
    order attach 1
    news "new clients" || return 1
    if [ -n "${pid[server]:-}" ]; then
        read -ra answer < <(test/hostile/wire.py probe $tap $wire 7700 2)
        news "peers" || return 1
    fi
    relief || { trouble="the attacker's client is still there after 120 s"; return 1; }
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
    printf '%-20s %-7s %10s %10s %10s %10s  %-15s %-13s %-15s %s\n' "$@" | tee -a "$work/table"
}
verdict_of() { # verdict_of CLASS: prints "ok" or what exceeds the bound
    local least=0.75 most=1000000 out=() what
    [ "$1" = asleep ] && least=0.95 most=1.2
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
    echo "${good[$1]}/$((good[$1] + bad[$1])), ${slowest[$1]} us"
}

measured() { # measured NAME CLASS SAKER WORD...
    local name=$1 class=$2 kind=$3 addr=$host round transport=iwarp
    shift 3
    [ "$kind" = tap ] && addr=$wire
    [ "$name" = falcon-half ] && transport=falcon
    trouble=
    declare -gA good=() bad=() why=() slowest=()
    rm -f "$work"/{kept,p99}.* "$work/orders" "$work"/*.log
    begin "$kind"
    [ "$kind" != tap ] || serve
    if victim "$addr" $transport; then
        for round in $(seq $rounds); do one_round "$@" || break; done
    else
        trouble="the victim does not start: $(tail -n 1 "$work/victim.log")"
    fi

    exec 7>&-
    for round in attacker2 attacker1 server victim s; do finish $round; done
    for round in kept.reads kept.pong p99.reads p99.pong; do
        [ -s "$work/$round" ] || echo 0 >"$work/$round"
    done
    row "$name" "$class" "$(median <"$work/kept.reads")" "$(median <"$work/kept.pong")" \
        "$(median <"$work/p99.reads")" "$(median <"$work/p99.pong")" "$(news_of connections)" \
        "$(news_of "new clients")" "$(news_of peers)" "$(verdict_of "$class")"
}
shared() { # shared NAME CLASS SAKER share WORD...
    local name=$1 list share verdict=ok
    begin "$3"
    read -ra list <<<"$(words "${@:5}")"
    start share taskset -c 1 chrt -r 20 "$hostile" share "${list[@]}"
    ends share 120 || fail "$name: $(tail -n 1 "$work/share.log")"
    share=$(awk '{ print $2 + 0 }' "$work/share.log")
    finish s
    holds "$share < 0.45 || $share > 0.55" && verdict="FAIL: the share of the first client"
    row "$name" rights "$share" - - - - - - "$verdict: $(sed 's/.*: //' "$work/share.log")"
}

row attack class "rate,reads" "rate,pong" "p99,reads" "p99,pong" "connections, max" \
    "clients, max" "peers, max" verdict
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
failures=$(grep -c FAIL "$work/table")
echo "$failures of $(($(wc -l <"$work/table") - 1)) attacks exceed their bounds"
[ "$failures" = 0 ]
