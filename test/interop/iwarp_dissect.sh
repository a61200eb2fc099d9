#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A second reader of iWARP: tshark reads random packets of every kind, field by field, as
# lib/wire emits them. SEED=N chooses others. CI_LONG=1 reads ten times as many, from a random seed.
. "$(dirname "$0")/common.sh"
command -v tshark >/dev/null || skip "tshark is not installed"
[ -x "$interop/iwarp_frames" ] || fail "$interop/iwarp_frames is not built"
. test/interop/tshark.inc
seed=${SEED:-1} connections=30
[ -n "${CI_LONG:-}" ] && connections=300 seed=${SEED:-$RANDOM}
say "SEED=$seed"

"$interop/iwarp_frames" "$seed" $connections "$work/frames.pcap" >"$work/meant" ||
    fail "iwarp_frames writes no frames"
sums_good "$work/frames.pcap" || fail "SEED=$seed: tshark finds wrong checksums"
read_mpa "$work/frames.pcap" -T pdml >"$work/frames.pdml" 2>"$work/tshark.log" ||
    fail "tshark cannot read the capture"
test/interop/wire_ext.py "$work/meant" <"$work/frames.pdml" >"$work/compare.log" ||
    fail "SEED=$seed: tshark reads other values than iwarp_frames wrote"
cat "$work/compare.log"
