#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Twenty hostile processes at a saker under AddressSanitizer and UBSan. Each attaches and hangs up
# again and again, writes to the descriptors and the memory that it has kept, floods the socket with
# regions, and loses pages while its messages are under way. Meanwhile a victim works and verifies
# bytes. At the end there is no report of a sanitizer, and saker holds what it held before.
#
# It takes half a minute, and five minutes with CI_LONG=1.
. "$(dirname "$0")/common.sh"
. test/interop/hostile.inc
processes=20 warm=4 seconds=15 slack=65536 # slack: KiB of the sanitizer's own
[ -n "${CI_LONG:-}" ] && seconds=280

asan=${SAKER_ASAN_BUILD:-build-asan}
if [ ! -x "$asan/app/saker" ]; then
    [ -f "$asan/build.ninja" ] ||
        meson setup "$asan" -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 \
            >"$work/setup.log" 2>&1 || fail "meson setup $asan"
fi
ninja -C "$asan" app/saker >"$work/build.log" 2>&1 || fail "$asan does not build"

say "a victim and $processes hostile processes"
take_memory 300
# The quarantine is what AddressSanitizer keeps of freed memory. Leaks count at the end.
export ASAN_OPTIONS=quarantine_size_mb=16:detect_stack_use_after_return=0
export UBSAN_OPTIONS=print_stacktrace=1
plain=$build build=$asan
crowded
build=$plain
unset ASAN_OPTIONS UBSAN_OPTIONS
steady
still_well() {
    is_running s || fail "saker has died"
    no_reports s
    is_running victim || fail "the victim has died"
}
# storm SECONDS FIRST-SEED
storm() {
    local end=$((SECONDS + $1))
    crowd chaos $processes "$2"
    while [ $SECONDS -lt $end ]; do
        still_well
        sleep 0.5
    done
    disperse chaos $processes "$2" "lost pages"
    still_well
}
storm $warm 0
only_the_victim() { [ "$(telemetry s /saker/info | jq .clients)" = 2 ]; }
until_true 60 only_the_victim || fail "clients are left: $(objects)"
calm
until_true 60 nothing_held || fail "objects are left: $(held)"
before=$(held) rss=$(resident)
steady
storm $seconds 100
calm
until_true 60 holds_that "$before" ||
    fail "saker holds (objects, descriptors, watched, mappings, huge KiB) $(held); before: $before"
growth=$(($(resident) - rss))
echo "resident memory: $rss KiB after the first storm, $growth KiB more at the end"
[ $growth -le $slack ] || fail "saker has grown by $growth KiB; the bound is $slack"
echo "saker holds what it held before: $before"
kill -TERM "${pid[s]}"
passes s 60
echo PASS
