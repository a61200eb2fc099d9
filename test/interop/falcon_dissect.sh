#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A second reader of Falcon: config/falcon.lua in tshark, which has ciphers and header layouts of
# its own. It reads each packet type and each opcode field by field, over IPv4 and IPv6, in
# transport and tunnel mode, in all versions of PSP: with the keys, without them, and with a wrong
# one. Then it reads damaged frames.
. "$(dirname "$0")/common.sh"
command -v tshark >/dev/null || skip "tshark is not installed"

"$interop/falcon_frames" "$work" || fail "falcon_frames writes no frames"
for keys in keys none wrong damaged; do
    say "keys: $keys"
    test/interop/falcon_fields.py "$work" $keys ||
        fail "tshark reads other values than falcon_frames wrote"
done
echo "tshark reads what falcon_frames wrote"
