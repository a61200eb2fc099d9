#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A saker with real-time priority: only its lcore has it, and clients get answers, both while the
# other threads have a core of their own and while they share the lcore's. The kernel ends a saker
# that uses its core for too long without a break, so that a fault cannot starve the machine. With
# ordinary priority, too, no other thread is bound to the lcore's core.
. "$(dirname "$0")/common.sh"
install_packages jq || skip "jq cannot be installed"
chrt -f 1 true 2>/dev/null || skip "this machine permits no real-time priority"
examples=$build/app/examples
[ -x "$examples/server" ] || fail "$examples is not built"

# with CPUS MICROSECONDS [POLICY]: a saker on these processors, which may run without a break for
# that time. POLICY is that of chrt: -f 1, or -o 0 for ordinary priority.
with() {
    local task policy rt=0 chrt=${3:--f 1}
    say "an lcore on processor $first of $1, chrt $chrt"
    # shellcheck disable=SC2086 # two words
    start s taskset -c "$1" prlimit --rttime="$2" chrt $chrt "$build/app/saker" \
        --lcores "0@$first" --no-pci --no-huge --no-shconf -m 256 --file-prefix "sktest$$s" \
        --vdev net_ring0 -- --socket "$work/s.sock" --address 0=10.5.0.1/24 --idle poll \
        --total-num-mbufs 4096
    until_true 20 accepts s || fail "saker does not start"
    start client env SAKER_SOCKET="$work/s.sock" "$examples/server" 7000 1
    until_true 20 listens s || fail "the program gets no answer"
    for task in /proc/"${pid[s]}"/task/*; do
        # With a core of their own, the other threads stay off the lcore's.
        [ "$1" = "$first" ] || [ "${task##*/}" = "${pid[s]}" ] ||
            [ "$(taskset -cp "${task##*/}" | sed 's/.*: //')" != "$first" ] ||
            fail "$(cat "$task/comm") is bound to the lcore's core"
        policy=$(chrt -p "${task##*/}" 2>/dev/null) || continue
        case $policy in *SCHED_FIFO*) ;; *) continue ;; esac
        rt=$((rt + 1))
        [ "${task##*/}" = "${pid[s]}" ] || fail "$(cat "$task/comm") has real-time priority"
    done
    [ "$chrt" = "-o 0" ] || [ "$rt" -eq 1 ] ||
        fail "$rt threads have real-time priority, not the lcore alone"
    kill "${pid[client]}"
    ends client 20
    kill -TERM "${pid[s]}"
    ends s 20 || fail "saker ends with $?"
}

all=$(taskset -cp $$ | sed 's/.*: //')
first=${all%%[-,]*}
# Alone on its core, the lcore polls without a break; where it shares the core, it must sleep.
with "$first" 1000000
log_says s "idle = sleep applies" || fail "nothing reports that the core is shared"
if [ "$all" != "$first" ]; then
    with "$all" 30000000
    log_says s "idle = sleep applies" && fail "the other threads have a core"
    with "$all" 30000000 "-o 0"
fi
echo PASS
