#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A second reader of Falcon: config/falcon.lua in tshark, which has ciphers and header layouts of its own. Each packet type and each opcode, over
# IPv4 and IPv6, in transport and tunnel mode, in all versions of PSP, is read field by field: with the keys, without them, with a
# wrong one; and frames that are damaged.
. "$(dirname "$0")/common.sh"
command -v tshark >/dev/null || skip "no tshark here"

"$interop/falcon_frames" "$work" || fail "no frames"
for keys in keys none wrong damaged; do
    say "keys: $keys"
    test/interop/falcon_fields.py "$work" $keys || fail "tshark reads something else"
done
echo "tshark reads what was meant"
