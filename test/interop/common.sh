# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by the scripts beside it. They then stand in the project's folder, and have the functions
# of base.inc, too.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
. test/interop/base.inc
interop=$build/test/interop

[ -x "$build/app/saker" ] || [ -x "$interop/soak" ] || fail "$build is not built"

# start NAME COMMAND...: starts the command in the background. Its output goes to $work/NAME.log.
start() {
    local name=$1
    shift
    "$@" >"$work/$name.log" 2>&1 &
    pid[$name]=$!
}

is_running() { kill -0 "${pid[$1]}" 2>/dev/null; }
has_ended() { ! is_running "$1"; }
log_says() { grep -qs -- "$2" "$work/$1.log"; }
says_or_ends() { log_says "$1" "$2" || has_ended "$1"; }

# ends NAME SECONDS: waits for the process and returns its exit status. A process that does not end
# is a failure.
ends() {
    local rc
    until_true "$2" has_ended "$1" || fail "$1 does not end"
    wait "${pid[$1]}"
    rc=$?
    unset "pid[$1]"
    return $rc
}
# ends_of LOG...: prints the first and the last lines, without those of cases that passed. Programs
# print their errors without delay, so they stand before the output that a program keeps until it
# ends.
ends_of() {
    local log lines
    for log; do
        echo "--- $(basename "$log")"
        lines=$(grep -v "^ok " "$log")
        if [ "$(wc -l <<<"$lines")" -le 16 ]; then echo "$lines"; else
            head -n 8 <<<"$lines"
            echo "[...]"
            tail -n 8 <<<"$lines"
        fi
    done
}

# verdict STATUS NAME LOG...: prints the result of one case and counts a failure; the other cases
# still run. The script ends with `exit $((failed != 0))`.
failed=0 failure=""
verdict() {
    local status=$1 name=$2
    shift 2
    if [ "$status" = 0 ]; then echo "ok    $name"; else
        failure=$(echo "FAIL  $name" && ends_of "$@" | sed 's/^/      /')
        echo "$failure"
        failed=$((failed + 1))
    fi
}
# no_reports NAME: fails when the log holds a sanitizer's report.
no_reports() {
    ! grep -qs -e "runtime error" -e Sanitizer "$work/$1.log" || fail "$1: a sanitizer's report"
}
passes() { ends "$1" "$2" || fail "$1 failed with status $?"; no_reports "$1"; }

# saker NAME CPU VDEV... -- OPTIONS...: starts a saker and waits until it accepts clients.
saker() {
    local name=$1 cpus=$2 vdevs=()
    shift 2
    while [ "$1" != -- ]; do
        vdevs+=(--vdev "$1")
        shift
    done
    shift
    start "$name" "$build/app/saker" --lcores "$cpus" --no-pci "${memory[@]}" \
        --file-prefix "sktest$$$name" "${vdevs[@]}" -- \
        --socket "$work/$name.sock" --idle yield "$@"
    until_true 60 accepts "$name" || fail "saker $name does not start"
}
accepts() {
    is_running "$1" || fail "saker $1 ended"
    [ -S "$work/$1.sock" ]
}

# pair OPTIONS...: starts the sakers a and b, joined by shared memory. The scripts put the --address
# options of each into wire_a and wire_b first.
wire_a=() wire_b=()
pair() {
    local wire="socket=$work/wire,zero-copy=no"
    saker a 0@0 "net_memif0,role=server,$wire" -- "${wire_a[@]}" "$@"
    saker b 0@1 "net_memif0,role=client,$wire" -- "${wire_b[@]}" "$@"
}

# falcon_section RNR-RETRY: prints a [falcon] section.
falcon_section() {
    printf '%s\n' '[falcon]' 'enabled = yes' "rnr-retry = $1"
}

# telemetry NAME COMMAND: prints the reply as JSON.
telemetry() {
    test/interop/telemetry.py "/var/run/dpdk/sktest$$$1/dpdk_telemetry.v2" "$2"
}
# control NAME [-j] COMMAND...: prints the answer of the saker.
control() { "$build/app/sakerctl" --socket "$work/$1.control" "${@:2}"; }
# of_machine NAME FILTER: applies jq's filter to what the saker "host" shows about a machine.
of_machine() { control host -j show vms | jq -r ".machines[] | select(.machine == \"$1\") | $2"; }
# counter NAME COUNTER: prints a counter of the engine.
counter() { telemetry "$1" /saker/counters | jq ".eng.$2"; }
# listens NAME: succeeds when the saker has a listener.
listens() { [ "$(telemetry "$1" /saker/info | jq .listeners)" -gt 0 ]; }
# left NAME: prints the number of clients and of their objects. clean NAME...: waits until each of
# the sakers has none. saker promises two seconds; the bound only finds what stays for ever.
left() {
    telemetry "$1" /saker/info |
        jq '.clients + .qps + .cqs + .mrs + .mws + .pds + .srqs + .listeners + .regions'
}
nothing_left() { [ "$(left "$1")" = 0 ]; }
clean() {
    local s
    for s in "$@"; do
        until_true 60 nothing_left "$s" ||
            fail "objects are left at saker $s: $(telemetry "$s" /saker/info)"
    done
}

# ---- Verbs programs between two sakers ----

late=$(realpath -m "$interop/late.so")
verbs=$(realpath -m "$build/drivers/verbs/libsaker-verbs.so")
# at WHERE PROGRAM ARGS...: runs the program on saker WHERE. There are more programs than cores, and
# programs poll their memory or a CQ. The sakers sleep when they have no work, so they run first.
at() {
    local launch=("$build/app/saker-run" --poll yield --socket "$work/$1.sock")
    # late.so intercepts calls of the program, so it stands in front of the library.
    [ -z "${patience-}" ] || launch=(env SAKER_POLL=yield SAKER_SOCKET="$work/$1.sock"
        LATE_MS="$patience" LD_PRELOAD="$late:$verbs")
    shift
    launch=(nice -n 19 timeout -k 5 120 "${launch[@]}" "$@")
    # In the background the subshell becomes the program, so that a signal to it reaches the
    # program.
    [ "$BASHPID" = $$ ] || exec "${launch[@]}"
    "${launch[@]}"
}
# Two reasons of perftest's own for which it fails. Its client over rdma_cm may connect before its
# server listens (late.c has the reason): if the server needs more than half a second for that, the
# client is refused. And it prints no report when the processor's clock, which it measures first,
# seems to vary, as it does on a busy machine. The other end fails then, too, so both start again,
# the client with a longer delay (patiences, in milliseconds).
patiences=("" 500 2000 8000)
too_early() { # too_early CLIENT
    grep -qsE "REJECTED; error: (-111|8)\.|Connection refused" "$work/$1.log"
}
lacks_report() { # lacks_report NAME...: one of the programs, which have ended, could not make it
    local ended=("${@/%/.log}")
    grep -qs "Can't produce a report" "${ended[@]/#/$work/}"
}
# patiently NAME COMMAND...: runs the command, which starts NAME.server and runs NAME.client, with
# each $patience until it succeeds. A command that fails may leave the server running.
patiently() {
    local name=$1 patience
    shift
    for patience in "${patiences[@]}"; do
        "$@" && return
        if [ -n "${pid[$name.server]-}" ]; then
            kill "${pid[$name.server]}" 2>/dev/null
            ends "$name.server" 20 2>/dev/null
        fi
        [[ "$* " == *" -R "* ]] && too_early "$name.client" ||
            lacks_report "$name.client" "$name.server" || fail "$*: the client or the server"
    done
    fail "$*: the client or the server fails each time"
}
# between NAME ADDRESS PROGRAM ARGS...: runs a server at b, and a client at a, whose last argument
# is the server's address. Both must succeed. The client's output is NAME.client.log.
between() {
    local name=$1
    patiently "$name" both_pass "$@"
    no_reports "$name.server"
}
both_pass() { meet "$@" && ends "$1.server" 300; } # as between: one attempt
meet() { # as both_pass, without the end of the server
    local name=$1 address=$2
    shift 2
    start "$name.server" at b "$@"
    if [[ "$* " == *" -R "* ]]; then
        until_true 60 listens b || fail "$*: the server does not listen"
        at a "$@" "$address" >"$work/$name.client.log" 2>&1
        return
    fi
    for _ in $(seq 100); do
        at a "$@" "$address" >"$work/$name.client.log" 2>&1 && return
        is_running "$name.server" || return
        sleep 0.1
    done
    return 1
}

# ---- A guest with Debian's kernel and siw ----

guests=${SAKER_GUEST_DIR:-${TMPDIR:-/tmp}/saker-guest}
build_guest() {
    test/interop/guest.py build >"$work/build.log" 2>&1 ||
        skip "no guest can be made here: $(tail -n 1 "$work/build.log")"
}
# one_guest [FILE...]: prepares the guest of a script that needs only one. The guest and the files
# are removed when the script ends.
one_guest() {
    export SAKER_GUEST_NAME=one$$
    build_guest
    guest_files=("$guests/$SAKER_GUEST_NAME" "$@")
    before_end() { test/interop/guest.py stop; }
    after_end() { rm -rf "${guest_files[@]}"; }
}
# boot_guest DEVICE...: boots the guest with devices in guest.py's form, and waits for the siw
# devices of its cards.
boot_guest() {
    test/interop/guest.py boot "$@" ||
        fail "the guest does not boot: $(test/interop/guest.py console | tail -n 20)"
    # shellcheck disable=SC2016 # for the guest's shell
    [[ $* != *vhost=* ]] || guest 'for c in /sys/class/net/eth*/carrier; do
            for i in $(seq 100); do [ "$(cat $c)" = 1 ] && break; sleep 0.1; done
        done
        rdma link show | grep -c ACTIVE' >"$work/links.log" || fail "the guest has no siw device"
}
guest() { test/interop/guest.py run "$@"; }
# guest_listens SECONDS PORT: waits until the guest's kernel listens.
guest_listens() {
    local listens="rdma resource show cm_id | grep -q 'LISTEN.*:$2'"
    guest -t "$1" "until $listens; do sleep 0.1; done" >/dev/null 2>&1
}
# conclude SAKER: ends a script of verdicts.
conclude() {
    has_ended "$1" && {
        echo "saker $1 has died:"
        tail -n 20 "$work/$1.log"
        failed=$((failed + 1))
    }
    [ $failed = 0 ] || {
        echo "the guest's kernel:"
        test/interop/guest.py console | grep -v "^$" | tail -n 20
        echo "saker $1:"
        tail -n 8 "$work/$1.log"
        echo "$failure" # once more, behind the kernel's lines
    }
    exit $((failed != 0))
}
