#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A second reader of Falcon: config/falcon.lua in tshark, which has ciphers and header layouts of
# its own. It reads each packet type and each opcode field by field, over IPv4 and IPv6, in
# transport and tunnel mode, in all versions of PSP: with the keys, without them, and with a wrong
# one. Then it reads damaged frames. The fields are random: SEED=N chooses others. CI_LONG=1 reads
# ten sets of frames, from a random seed.
. "$(dirname "$0")/common.sh"
command -v tshark >/dev/null || skip "tshark is not installed"

seed=${SEED:-1} sets=1
[ -n "${CI_LONG:-}" ] && sets=10 seed=${SEED:-$RANDOM}

for ((last = seed + sets; seed < last; seed++)); do
    say "SEED=$seed"
    "$interop/falcon_frames" "$work" "$seed" || fail "falcon_frames writes no frames"
    for keys in keys none wrong damaged; do
        say "keys: $keys"
        test/interop/falcon_fields.py "$work" $keys ||
            fail "SEED=$seed: tshark reads other values than falcon_frames wrote"
    done
done
echo "tshark reads what falcon_frames wrote"
