#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# refusals.sh: tests what the scripts of this folder refuse, without a measurement.
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0
work=$(mktemp -d /tmp/saker-refusals.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# refused STATUS SENTENCE COMMAND...: the command ends with the status, and its last line is the
# sentence.
refused() {
    local status=$1 sentence=$2 out code
    shift 2
    out=$("$@" 2>&1 </dev/null)
    code=$?
    [ $code -eq "$status" ] && [ "$(tail -n 1 <<<"$out")" = "$sentence" ] && return
    echo "not ok: $* gave $code: $(tail -n 1 <<<"$out")"
    failed=1
}

rows="write-iwarp write-falcon pong-iwarp pong-falcon read-iwarp read-falcon fetch-add-falcon"
rows="$rows post-send poll-empty"
table=test/bench/instructions.txt
refused 2 "$table has no row 'write-iwrap'; its rows are: $rows" \
    test/bench/instructions.sh write-iwarp write-iwrap
refused 2 "$table has no row 'write'; its rows are: $rows" test/bench/instructions.sh --record write
refused 2 "$table has no row '--recrod'; its rows are: $rows" test/bench/instructions.sh --recrod

# A program in the place of saker-perf. STUB is how its latency runs fail.
mkdir -p "$work/build/app"
cat >"$work/build/app/saker-perf" <<'END'
#!/bin/bash
test=bw size=8
while [ $# -gt 0 ]; do
    case $1 in
    --test) test=$2 ;;
    --size) size=$2 ;;
    esac
    shift
done
floor=300
if [ "$test" = lat ]; then
    case $STUB in
    status) echo "no port" >&2; exit 3 ;;
    nothing) exit 0 ;;
    null) floor=null ;;
    half) echo '{"test": "lat", '; exit 0 ;;
    esac
fi
echo "{\"test\": \"$test\", \"size\": $size, \"p50_ns\": 400, \"p99_ns\": 500, \"gbps\": 9,
\"mops\": 2, \"floor_p50_ns\": $floor, \"floor_p99_ns\": 320, \"floor_gbps\": 10,
\"floor_mops\": 3, \"floor_stores\": \"plain\", \"frame_floor_ns\": 310, \"ratio\": 0.9,
\"histogram\": [[400, 1]], \"floor_histogram\": [[300, 1]]}"
END
chmod +x "$work/build/app/saker-perf"
export SAKER_BUILD=$work/build REPORT_ROUNDS=1 REPORT_SWEEPS=1 REPORT_COUNT=no REPORT_HUGE=no \
    REPORT_RUN='' STUB
run="--transport iwarp --test lat --size 64 --iters 12000 --histogram"
for STUB in status nothing null half; do
    sentence="report: latency-iwarp gave no figure: $run"
    [ $STUB = status ] && sentence="report: latency-iwarp ended with status 3: $run"
    refused 1 "$sentence" test/bench/report.sh "$work/report"
    [ ! -e "$work/report" ] || { echo "not ok: report.sh has written something"; failed=1; }
done
REPORT_MS=0 refused 1 "report: REPORT_MS=0 is not a number above 0" test/bench/report.sh
STUB=
if ! test/bench/report.sh "$work/report" >"$work/out" 2>&1 || ! [ -s "$work/report/report.md" ] ||
    ! [ -s "$work/report/report.json" ] ||
    ! jq -e '.runs | length == 51' "$work/report/report.json" >/dev/null; then
    echo "not ok: report.sh gave no report: $(tail -n 1 "$work/out")"
    failed=1
fi
exit $failed
