#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# saker-perf as users of perftest run it: two clients of one saker, without EAL's options. Sizes,
# durations, both directions, events and inline data give figures; two ends whose options differ end
# with a sentence that names the option; its help and its tables fit into 80 columns. Before, both
# ends in one process, over a wire that loses frames.
. "$(dirname "$0")/perf.inc"
program=$build/app/saker-perf
"$build/app/saker" --lcores '0@(0,1)' --no-pci --no-huge --no-shconf -m 700 --no-telemetry \
    --file-prefix "skpp$$" --vdev net_ring0 -- --socket "$work/s.sock" \
    --idle yield --falcon yes --address 0=10.7.0.1/24 >"$work/saker.log" 2>&1 &
pid[saker]=$!
until_true 60 test -S "$work/s.sock" || fail "saker does not start"

# ends SERVER-OPTIONS... -- CLIENT-OPTIONS...: runs both ends. Their statuses are $served and $ran.
ends() {
    local server=()
    while [ "$1" != -- ]; do server+=("$1"); shift; done
    shift
    : >"$work/serve.log"
    timeout -k 5 120 "$program" --client "$work/s.sock" --listen "${server[@]}" \
        >"$work/serve.out" 2>"$work/serve.log" &
    pid[serve]=$!
    until_true 60 grep -q listening "$work/serve.log" || fail "saker-perf does not listen"
    timeout -k 5 120 "$program" --client "$work/s.sock" --connect 10.7.0.1 "$@" \
        >"$work/run.out" 2>"$work/run.log"
    ran=$?
    wait "${pid[serve]}"
    served=$?
    unset "pid[serve]"
}
good() { # good OPTIONS...: both ends run with them, and end well
    ends "$@" -- "$@" --quiet
    [ "$ran $served" = "0 0" ] || fail "$*: status $ran, the other end's $served"
}
value() { # value FILTER: it holds for the result; for an empty file, `jq -e` has status 0
    { [ -s "$work/run.out" ] && jq -e "$1" "$work/run.out" >/dev/null; } ||
        fail "$1 does not hold: $(cat "$work/run.out")"
}

say "many QPs over a wire that loses frames, also the last ones"
for transport in iwarp falcon; do
    timeout -k 5 120 "$program" --transport $transport --impair drop=0.02,seed=1 --qps 50 \
        --test rate -n 20000 --rounds 2 --no-floor --json >"$work/run.out" 2>"$work/run.log" ||
        fail "$transport: both ends in one process"
    value '.errors == 0 and .qps == 50'
done

say "sizes, durations, both directions, events and inline data"
for transport in iwarp falcon; do
    for test in lat bw; do
        good --transport $transport --test $test --sizes=8:64k --duration 20ms --json
        value 'length == 14 and ([.[].size] | .[0] == 8 and .[13] == 65536)'
        value 'all(.errors == 0 and .iters > 0 and .mops > 0 and .cpu_percent > 0)'
        [ $test = bw ] ||
            value 'all(.min_ns <= .p50_ns and .p50_ns <= .max_ns and .stdev_ns >= 0)'
    done
    for op in send write read write_imm; do
        good --transport $transport --op $op --test rate -s 16 -D 50ms --bidirectional --json
        value '.errors == 0 and .bidirectional and .iters > 0'
    done
    for op in send read; do
        good --transport $transport --op $op -n 200 --events --json --verify
        value '.errors == 0 and .iters == 200 and .verified == 100'
        good --transport $transport --op $op --test bw -s 4k -n 2000 --events --json
        value '.errors == 0 and .iters == 2000'
    done
    for depth in 1 2 5 64; do
        good --transport $transport --op send --test rate -n 500 --depth $depth -I 64 --json
        value ".errors == 0 and .iters == 500 and .depth == $depth"
    done
    good --transport $transport --test rate -n 1000 --cq-mod 32 -I 64 --versus read --json
    value '.errors == 0 and .iters == 1000 and .versus_mops > 0'
    good --transport $transport --op send --test lat -n 100 --versus write_imm --verify --json
    value '.errors == 0 and .versus_p50_ns > 0'
    good --transport $transport --op atomic_fa -D 20ms --json
    value '.errors == 0 and .size == 8'
done
good --json -n 100
value '.host != "" and .version != "" and (.date | fromdate > 1700000000) and .cpu >= 0'

say "the number of messages is the connecting end's"
ends --iters 10 -- --iters 300 --json --quiet
[ "$ran $served" = "0 0" ] || fail "--iters differs: status $ran, the other end's $served"
value '.iters == 300'

say "ends that differ"
# differ OPTION SERVER-WORDS CLIENT-WORDS: both ends name the option, and fail.
differ() {
    # shellcheck disable=SC2086 # lists of words
    ends $2 -- $3
    [ $ran = 1 ] && [ $served = 1 ] || fail "--$1 differs: status $ran, the other end's $served"
    for log in serve run; do
        grep -q "^saker-perf: the other end runs with '--$1 .*', this one with '--$1 " \
            "$work/$log.log" || fail "--$1 differs, and $log does not name it"
        [ "$(grep -c '^saker-perf: ' "$work/$log.log")" = 1 ] || fail "more than one sentence"
    done
}
differ op "--op send" "--op read"
differ versus "--versus send" ""
differ test "--test bw" "--test rate"
differ size "--size 64" "--size=8k"
differ sizes "--sizes 64:4k" "--sizes 64:8k"
differ rounds "--rounds 1" "--rounds 2"
differ verify "" "--verify"
differ verify "--verify --iters 50" "--verify"
differ qps "--qps 2" "--qps 3"
differ idle-qps "" "--idle-qps 3"
differ depth "--depth 8" "--depth 16"
differ bidirectional "--test bw" "--test bw -b"

say "80 columns"
"$program" --help >"$work/help.out" || fail "--help"
good -a -D 5ms --test bw
mv "$work/run.out" "$work/bw.out"
good -a -D 5ms --test lat
awk 'length > 80 { print FILENAME ": " $0; bad = 1 } END { exit bad }' \
    "$work/help.out" "$work/bw.out" "$work/run.out" || fail "lines are longer than 80 columns"
grep -q 8388608 "$work/bw.out" || fail "-a does not reach 8 MiB"
echo PASS
