#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# UCX and two implementations of MPI, Debian's packages at their defaults, on the Falcon devices of
# two sakers joined by net_memif. Each process is on a host of its own (host.inc), so that it shares
# no memory with the others. Collectives and one-sided operations are verified, and the port's
# counters prove that their bytes went over the wire. A rank that is killed ends the job, and ranks
# that send to it get an error.
#
#   test/interop/cluster.sh [ucx|mpich|openmpi|killed...]
. "$(dirname "$0")/common.sh"
install_packages ucx-utils mpich libmpich-dev openmpi-bin libopenmpi-dev jq ||
    skip "Debian's UCX, MPICH and Open MPI cannot be installed"
[ -x "$build/app/saker-run" ] ||
    skip "saker-run is not built: no headers of libibverbs and librdmacm"
take_memory 900
run=$(realpath "$build/app/saker-run") host=$PWD/test/interop/host.inc
hosts=rank0,rank1,rank2,rank3
export HOST_SOCKETS=$work SAKER_POLL=yield
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# UCX does not open a device before it finds the device's node. It never opens the node.
nodes=()
node() {
    [ -e "/dev/infiniband/$1" ] && return
    mkdir -p /dev/infiniband && mknod "/dev/infiniband/$1" c 1 3 ||
        fail "/dev/infiniband/$1 cannot be created"
    nodes+=("/dev/infiniband/$1")
}
after_end() { rm -f "${nodes[@]}"; }
node uverbs-sakerf0

clients() { telemetry "$1" /saker/info | jq .clients; }
wire_bytes() { control a -j show port stats 0 | jq '.ports[0] | .rx_bytes + .tx_bytes'; }
# crossed NAME LEAST COMMAND...: runs the command, which must pass at least so many bytes over the
# wire.
crossed() {
    local name=$1 least=$2 before begin=$SECONDS
    shift 2
    before=$(wire_bytes)
    start "$name" timeout -k 5 120 "$@"
    passes "$name" 150
    before=$(($(wire_bytes) - before))
    [ "$before" -ge "$least" ] || fail "$name: $before bytes crossed the wire, and not $least"
    clean a b
    echo "ok    falcon $title $name: $before bytes on the wire ($((SECONDS - begin)) s)"
}

# ---- UCX ----

port=$((20000 + $$ % 10000))
# ucx NAME ITERATIONS BYTES ARGUMENT...: ucx_perftest between two hosts. Its two ends find each
# other over the loopback interface.
ucx() {
    local name=$1 n=$2 bytes=$3
    shift 3
    port=$((port + 1))
    start "$name.server" timeout -k 5 120 "$host" rank1 "$run" ucx_perftest -p $port
    until_true 30 port_is_open || fail "$name: the server does not listen"
    crossed "$name" $((n * bytes)) "$host" rank0 "$run" ucx_perftest 127.0.0.1 -p $port \
        -n "$n" -s "$bytes" "$@"
    passes "$name.server" 60
    log_says "$name" "^Final:" || fail "$name prints no result"
}
port_is_open() { ss -Hltn "sport = :$port" | grep -q .; }

part_ucx() {
    say "UCX"
    title=UCX
    start info "$host" rank0 "$run" ucx_info -d
    passes info 30
    for t in rc_verbs ud_verbs; do
        log_says info "Transport: $t" || fail "ucx_info does not list $t"
    done
    ucx tag-polling 500 4096 -t tag_lat
    ucx tag-sleeping 500 4096 -t tag_lat -E sleep
    ucx large 30 1000000 -t tag_bw
    ucx put 200 65536 -t ucp_put_bw
    ucx get 200 65536 -t ucp_get
    ucx add 200 8 -t ucp_fadd
    for t in rc_verbs ud_verbs; do
        ucx $t 500 64 -d sakerf0:1 -x $t -t am_lat
        ucx $t-sleeping 500 64 -d sakerf0:1 -x $t -t am_lat -E sleep
    done
    export UCX_TLS=ud,self
    ucx datagrams 100 65536 -t tag_bw
    unset UCX_TLS
}

# ---- MPI ----

compile() { # compile MPI
    "mpicc.$1" -O1 -o "$work/collectives.$1" test/interop/collectives.c >"$work/mpicc.log" 2>&1 ||
        fail "mpicc.$1 does not compile collectives.c"
}
# job MPI [OPTION...]: prints the words of the command that starts four ranks on four hosts.
job() {
    case $1 in
    mpich) echo mpiexec.hydra -localhost 127.0.0.1 -launcher ssh -launcher-exec "$host" \
        -hosts $hosts -n 4 ;;
    openmpi) echo mpirun.openmpi --leave-session-attached --mca plm_rsh_agent "$host" \
        --host $hosts -np 4 --mca pml ucx --mca osc ucx ;;
    esac
    shift
    echo "$@"
}
# Rank 0 prints how many bytes it compared. Two of four ranks are behind each wire's end, so that at
# least so many bytes crossed it.
collectives() { # collectives NAME MPI
    local bytes
    compile "$2"
    # shellcheck disable=SC2046 # a list of words
    crossed "$1" 10000000 $(job "$2") "$run" "$work/collectives.$2"
    bytes=$(awk '/^4 ranks: each compared/ {print $5}' "$work/$1.log")
    [ "${bytes:-0}" -gt 10000000 ] || fail "$1: rank 0 compared ${bytes:-no} bytes"
    echo "      each rank compared $bytes bytes"
}

part_mpich() {
    say "MPICH"
    title=MPICH
    collectives defaults mpich
    UCX_TLS=ud,self collectives datagrams mpich
}
# Debian's configuration of Open MPI excludes UCX; the two options include it.
part_openmpi() {
    say "Open MPI over UCX"
    title="Open MPI"
    collectives openmpi openmpi
}

all_ready() { [ "$(grep -cs "is ready" "$work/$1.log")" = 4 ]; }
one_left() { [ "$(clients b)" = 1 ]; }
# Prints the id of rank 1's process, which is a client of the saker b, as rank 3's.
victim() {
    local p
    for p in $(control b -j show client all | jq '.clients[].pid'); do
        grep -qzx "PMI_RANK=1" "/proc/$p/environ" && echo "$p"
    done
}
begin_orphans() { # begin_orphans NAME [OPTION...]: starts a job and kills its rank 1
    local name=$1
    shift
    rm -f "$work/go"
    # shellcheck disable=SC2046
    start "$name" timeout -k 5 120 $(job mpich "$@") "$run" "$work/collectives.mpich" orphans \
        "$work/go"
    until_true 60 all_ready "$name" || fail "$name: the ranks do not begin"
    kill -KILL "$(victim)" || fail "$name: rank 1 is not found"
}
three_told() {
    [ "$(sed -n 's/^\[\(rank[0-9]\).* send completion with error: .*/\1/p' "$work/orphans.log" |
        sort -u | wc -l)" = 3 ]
}

part_killed() {
    say "a rank that is killed"
    compile mpich
    begin_orphans job-ends
    ends job-ends 60
    log_says job-ends "PID.*RUNNING AT rank1" && log_says job-ends "EXIT CODE: 9" ||
        fail "mpiexec does not report the rank that was killed"
    clean a b
    echo "ok    falcon MPICH, a rank killed: the launcher ends the job, and nothing is left"

    begin_orphans orphans -disable-auto-cleanup
    until_true 30 one_left || fail "the saker does not notice that a client was killed"
    touch "$work/go"
    until_true 60 three_told || fail "a rank that sends to a dead one gets no error"
    kill "${pid[orphans]}"
    ends orphans 30
    clean a b
    echo "ok    falcon MPICH, a rank killed: three ranks that send to it get an error"
}

falcon_section 7 >"$work/falcon.ini"
wire_a=(--config "$work/falcon.ini" --address "0=10.5.0.1/24")
wire_b=(--config "$work/falcon.ini" --address "0=10.5.0.2/24")
pair --idle sleep
parts=("$@")
[ $# -gt 0 ] || parts=(ucx mpich openmpi killed)
for part in "${parts[@]}"; do
    "part_$part" || fail "no part $part"
done
echo PASS
