#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures goodput under random loss on real packets: RDMA over Falcon and iWARP over TCP on the
# same link, 64 KiB Writes in packets of 4 KiB, one and eight connections. The link is net_impair
# between two lcores: a rate well below what the processors reach, a delay, and a loss that applies
# behind the rate limit (so the ceiling at a loss of p is 1 - p). Both transports run alternately at
# every loss, in rounds. The results are the medians, each relative to its own transport's without
# loss.
#
#     test/bench/goodput.sh [FOLDER]
#
# Writes FOLDER/goodput.dat, FOLDER/goodput.md and, where gnuplot is installed, FOLDER/goodput.png.
# The default is build/goodput.
#
# Environment, with defaults: GOODPUT_MBPS (2000), GOODPUT_DELAY_US (25, each way), GOODPUT_ROUNDS
# (5), GOODPUT_MS (1000, for each run), and GOODPUT_RUN, words before the program, such as "chrt -f
# 50".
. "$(dirname "$0")/../interop/perf.inc"
out=${1:-$build/goodput}
mbps=${GOODPUT_MBPS:-2000} delay=${GOODPUT_DELAY_US:-25}
rounds=${GOODPUT_ROUNDS:-5} ms=${GOODPUT_MS:-1000}
losses="0 0.1 1 2 5" # percent
counts="1 8"
mkdir -p "$out" || exit 1
take_memory 256

# run TRANSPORT CONNECTIONS PERCENT SEED: prints Gb/s.
run() {
    local link="dir=tx,rate_mbps=$mbps,delay_us=$delay,queue=8192,seed=$4"
    # shellcheck disable=SC2086 # GOODPUT_RUN is a list of words
    timeout 120 ${GOODPUT_RUN:-} "$build/app/saker-perf" --lcores 0@0,1@1 --no-pci \
        "${memory[@]}" --no-telemetry --file-prefix "goodput$$" -- \
        --transport "$1" --op write --test bw --size 65536 --mtu 4200 --qps "$2" --depth 32 \
        --iters 1000000 --duration "${ms}ms" --rounds 1 --no-floor --json \
        --impair "$link,drop=$(awk "BEGIN { print $3 / 100 }")" 2>"$work/log" | jq -e .gbps ||
        { echo "$*:" >&2; tail -n 3 "$work/log" >&2; echo failed; }
}

for round in $(seq "$rounds"); do
    for n in $counts; do
        for loss in $losses; do
            for transport in falcon iwarp; do
                echo "$transport $n $loss $(run $transport "$n" "$loss" "$round")"
            done
        done
    done
done | tee "$work/all" | awk '{ printf "%s, %s connections, %s %%: %s Gb/s\n", $1, $2, $3, $4 }' >&2
if grep -q failed "$work/all"; then exit 1; fi

# transport connections loss median share
sort -k1,1 -k2,2n -k3,3n -k4,4n "$work/all" | awk '
    function take() {
        if (k) {
            m = v[int((k + 1) / 2)]
            if (last[3] == 0) clean = m
            print last[1], last[2], last[3], m, 100 * m / clean
        }
        k = 0
    }
    {
        key = $1 " " $2 " " $3
        if (key != was) take()
        was = key
        split(key, last, " ")
        v[++k] = $4
    }
    END { take() }' >"$out/goodput.dat"
{
    echo "| connections | transport | 0 | 0.1 % | 1 % | 2 % | 5 % |"
    echo "|---|---|---|---|---|---|---|"
    for n in 8 1; do
        for transport in falcon iwarp; do
            name="RDMA over Falcon"
            [ $transport = iwarp ] && name="iWARP (TCP, CUBIC)"
            awk -v t=$transport -v n=$n -v name="$name" '
                BEGIN { printf "| %s | %s |", n, name }
                $1 == t && $2 == n && $3 == 0 { printf " %.2f Gb/s |", $4 }
                $1 == t && $2 == n && $3 != 0 { printf " %.1f %% |", $5 }
                END { print "" }' "$out/goodput.dat"
        done
    done
} >"$out/goodput.md"
cat "$out/goodput.md"
command -v gnuplot >/dev/null && gnuplot -e "data='$out/goodput.dat'; picture='$out/goodput.png'" \
    -e "link='$mbps Mb/s, $delay us each way'" test/bench/goodput.gp
