#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Loss changes no byte: mixed operations run over a wire that drops, duplicates, reorders and
# corrupts. 1 GiB at each loss rate, 64 MiB for each other configuration; with CI_LONG set 8 GiB and
# 1 GiB.
. "$(dirname "$0")/common.sh"
much=1G some=64M
[ -n "${CI_LONG:-}" ] && much=8G some=1G
[ -x "$interop/soak" ] || fail "$interop/soak is not built"

soak() { # soak LCORES OPTIONS...
    local lcores=$1
    shift
    echo "soak --bytes $bytes $*"
    "$interop/soak" --no-huge --no-shconf --no-pci --no-telemetry -m 512 -l "$lcores" -- \
        --bytes $bytes "$@" >"$work/soak.log" 2>&1 || fail "soak on lcores $lcores $*"
    grep "bytes verified" "$work/soak.log"
}

cpus=0
[ "$(nproc)" -gt 1 ] && cpus=0,1
evil=(--dup 0.005 --reorder 0.01 --corrupt 0.001)
bytes=$much
for drop in 0.001 0.01 0.05; do
    say "loss of $drop"
    soak 0 --drop $drop "${evil[@]}" --seed 7
done
bytes=$some
say "each engine on a core"
soak $cpus --drop 0.01 "${evil[@]}" --seed 6
say "stages split over two loops"
soak $cpus --split --drop 0.01 "${evil[@]}" --seed 8
say "IPv6, VLAN, jumbo frames"
soak 0 --v6 --drop 0.01 "${evil[@]}" --seed 9
soak 0 --vlan 77 --mtu 9000 --drop 0.01 "${evil[@]}" --seed 10
say "a NIC that fills in checksums and segments"
soak 0 --nic --drop 0.01 "${evil[@]}" --seed 11
say "the loop port between two clients of one engine"
soak 0 --one
say "corruption that only the CRC sees"
soak 0 --corrupt-crc 0.0005 --seed 12
soak $cpus --split --corrupt-crc 0.0005 --drop 0.01 --reorder 0.01 --seed 13

say "two other readers"
bytes=4M
soak 0 --drop 0.01 --reorder 0.01 --seed 14 --pcap "$work/wire.pcap"
test/interop/mpa_stream.py "$work/wire.pcap" "$work/sorted.pcap" >"$work/stream.json" ||
    fail "the stream does not follow MPA: $(cat "$work/stream.json")"
own() { jq -r "$1" "$work/stream.json"; }
[ "$(own .again)" -gt 10 ] && [ "$(own .crcs)" -gt 1000 ] ||
    fail "the wire lost too little: $(cat "$work/stream.json")"
echo "mpa_stream.py: $(own .fpdus) FPDUs, each with a good CRC, in $(own .segments) segments," \
    "$(own .again) of them late or retransmitted"
if command -v tshark >/dev/null; then
    . test/interop/tshark.inc
    sums_good "$work/wire.pcap" || fail "tshark finds wrong checksums"
    read_mpa "$work/sorted.pcap" -V >"$work/wire.txt" 2>"$work/tshark.log" ||
        fail "tshark cannot read the capture"
    good=$(grep -c "Good CRC32" "$work/wire.txt")
    bad=$(grep -c -e "Bad CRC32" -e Malformed "$work/wire.txt")
    [ "$good" = "$(own '.sorted_opcodes | add')" ] && [ "$bad" = 0 ] ||
        fail "tshark finds $good good CRCs, and $bad bad CRCs or malformed packets"
    echo "tshark: no malformed packet, $good FPDUs with a good CRC and none with a bad one"
else
    echo "tshark is not installed"
fi
echo PASS
