#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A second reader compares field by field: each Atomic of RFC 7306 with masks, its response,
# Immediate Data with and without solicited event, Write followed by Immediate, and the draft's
# Swap. tshark must read the values that the sender posted.
. "$(dirname "$0")/common.sh"
command -v tshark >/dev/null || skip "tshark is not installed"
[ -x "$interop/wire_ext" ] || fail "$interop/wire_ext is not built"
. test/interop/tshark.inc

"$interop/wire_ext" --no-huge --no-shconf --no-pci --no-telemetry -m 256 -l 0 -- "$work/wire.pcap" \
    >"$work/meant" 2>"$work/wire_ext.log" || fail "the operations failed"
# The sorted capture holds each FPDU once and in a segment of its own, whatever a busy machine made
# TCP do.
test/interop/mpa_stream.py "$work/wire.pcap" "$work/sorted.pcap" >"$work/stream.log" ||
    fail "the stream does not follow MPA"
read_mpa "$work/sorted.pcap" -T pdml >"$work/wire.pdml" 2>"$work/tshark.log" ||
    fail "tshark cannot read the capture"
test/interop/wire_ext.py "$work/meant" <"$work/wire.pdml" >"$work/compare.log" ||
    fail "tshark reads other values than were posted"
cat "$work/compare.log"
