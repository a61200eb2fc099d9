#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Correct clients come and go: they attach, register memory, connect, verify bytes and leave, in
# order, with requests under way, or killed. saker's resident memory, descriptors, huge pages and
# tables after the first part and at the end are the same.
#
# It takes some twenty seconds, and half an hour with CI_LONG=1.
. "$(dirname "$0")/common.sh"
. test/interop/hostile.inc
processes=8 first=5 seconds=10 slack=4096 # slack: KiB
[ -n "${CI_LONG:-}" ] && first=60 seconds=1740

say "$processes clients at a time"
take_memory 300
crowded
wave() { # wave SECONDS FIRST-SEED
    local end=$((SECONDS + $1)) i
    crowd churn $processes "$2"
    while [ $SECONDS -lt $end ]; do
        is_running s || fail "saker has died"
        for ((i = $2; i < $2 + processes; i++)); do
            is_running "churn$i" || fail "churn$i ended"
        done
        sleep 0.5
    done
    disperse churn $processes "$2" "without a place"
    until_true 60 nothing_held || fail "objects are left: $(held)"
}
wave $first 0
before=$(held) rss=$(resident)
wave $seconds 100
until_true 60 holds_that "$before" ||
    fail "saker holds (objects, descriptors, watched, mappings, huge KiB) $(held); before: $before"
growth=$(($(resident) - rss))
echo "resident memory: $rss KiB after the first $first s, $growth KiB more after $seconds s"
echo "objects, descriptors, watched descriptors, mappings, KiB of huge pages: $before both times"
[ $growth -le $slack ] || fail "saker has grown by $growth KiB; the bound is $slack"
kill -TERM "${pid[s]}"
passes s 60
echo PASS
