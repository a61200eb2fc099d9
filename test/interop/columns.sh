#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The tables of saker-perf and of perftest over the same two sakers, column by column, as
# doc/benchmarking.md compares them: the same sizes in the same order, every column that the page
# names under its heading, and figures that agree with each other (the average with the rate, the
# order of the quantiles). Nothing compares the speed of the two. About 20 seconds, with
# a loaded processor a minute.
#
#   test/interop/columns.sh [-v]      -v prints the four tables
. "$(dirname "$0")/common.sh"
install_packages jq perftest || skip "packages cannot be installed"
[ -x "$build/app/saker-run" ] ||
    skip "saker-run is not built: no headers of libibverbs and librdmacm"
take_memory 900
wire_a=(--address "0=10.5.0.1/24") wire_b=(--address "0=10.5.0.2/24")
pair --idle sleep
port=19000

# perftest NAME PROGRAM OPTION...: the client's output is NAME.log.
perftest() {
    port=$((port + 1))
    between "$1" 10.5.0.2 "${@:2}" -d saker0 -R -p $port
    mv "$work/$1.client.log" "$work/$1.log"
}
# perf NAME OPTION...: the same for saker-perf.
perf() {
    local name=$1
    port=$((port + 1))
    start "$name.server" nice -n 19 timeout -k 5 120 "$build/app/saker-perf" \
        --client "$work/b.sock" --listen -p $port --quiet "${@:2}"
    until_true 60 listens b || fail "$name: no listener"
    nice -n 19 timeout -k 5 120 "$build/app/saker-perf" --client "$work/a.sock" \
        --connect 10.5.0.2 -p $port --quiet "${@:2}" >"$work/$name.log" 2>&1 ||
        fail "$name: the connecting end"
    passes "$name.server" 60
}

# table NAME: prints the rows of a table, tab-separated, with its heading first. A name of a column
# has no blank, except in "BW peak" and the like of perftest.
table() {
    sed -nE '/^ *#bytes/,$ { /^-/d; /^ *(#bytes|[0-9])/p }' "$work/$1.log" |
        sed -E 's/(BW|99%|99.9%) (peak|average|percentile)/\1_\2/g; s/^ +//; s/[ \t]+/\t/g; s/\t$//'
}
# column NAME HEADING: prints the values under a heading. There must be such a column.
column() {
    table "$1" | awk -F '\t' -v want="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == want) at = i; if (!at) exit 1; next }
        { if ($at !~ /^[0-9.]+$/) exit 1; print $at }' ||
        fail "$1: no column '$2' with a number in each row"
}
# same PERFTEST'S HEADING, SAKER-PERF'S: both tables of a test have the column.
same() {
    [ "$(column "$ours" "$2" | wc -l)" = "$rows" ] &&
        [ "$(column "$theirs" "$1" | wc -l)" = "$rows" ] ||
        fail "the columns $1 and $2 do not have $rows rows"
    printf '%-22s %-16s %s\n' "$1" "$2" "$rows rows"
}
sizes() { column "$1" "#bytes" | paste -sd ' '; }
# begin THEIRS OURS: the two tables have the same sizes.
begin() {
    theirs=$1 ours=$2
    [ "${show-}" != -v ] || cat "$work/$theirs.log" "$work/$ours.log"
    rows=$(sizes "$theirs" | wc -w)
    [ "$(sizes "$theirs")" = "$(sizes "$ours")" ] && [ "$rows" = 23 ] ||
        fail "the sizes differ: $(sizes "$theirs"), $(sizes "$ours")"
    same "#bytes" "#bytes"
    same "#iterations" "#iters"
}
show=${1-}

say "bandwidth: ib_write_bw -a, saker-perf --test bw -a"
perftest bw ib_write_bw -a -n 10 --report_gbits
perf sbw --test bw --op write -a -n 20 --rounds 2
begin bw sbw
same "BW_peak[Gb/sec]" "peak[Gb/s]"
same "BW_average[Gb/sec]" "average[Gb/s]"
same "MsgRate[Mpps]" "rate[Mop/s]"
# The average is the rate times the bits of a message, in both tables, but for the decimals that
# they do not print.
for name in bw sbw; do
    table $name | awk -F '\t' '
        NR > 1 {
            bits = $1 * 8 / 1000
            off = $4 - $5 * bits
            if (off < 0) off = -off
            if (off > 0.01 + 0.0006 * bits) bad++
        }
        END { exit bad > 0 || NR != 24 }' || fail "$name: average and rate do not fit each other"
done

say "latency: ib_write_lat -a, saker-perf --test lat -a"
perftest lat ib_write_lat -a -n 5
perf slat --test lat --op write -a -n 20 --rounds 2
begin lat slat
for pair in "t_min[usec] t_min" "t_max[usec] t_max" "t_typical[usec] p50" "t_avg[usec] t_avg" \
    "t_stdev[usec] t_stdev" "99%_percentile[usec] p99" "99.9%_percentile[usec] p99.9"; do
    same "${pair% *}" "${pair#* }"
done
paste <(column slat t_min) <(column slat p50) <(column slat p99) <(column slat t_max) |
    awk '$1 > $2 || $2 > $3 * 1.05 || $3 > $4 * 1.05 { bad++ } END { exit bad > 0 }' ||
    fail "the quantiles of saker-perf are not in order"
echo PASS
