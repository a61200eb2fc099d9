#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Atomicity over streams and lcores: eight streams on two engine stages execute 10 million FetchAdds
# on one word and, every 16th time, a masked FetchAdd and a masked CmpSwap on another. The sums must
# be exact, and every original value must be returned once.
. "$(dirname "$0")/common.sh"
[ -x "$interop/atomics" ] || fail "$interop/atomics is not built"
lcores=0@0,1@0
[ "$(nproc)" -gt 1 ] && lcores=0@0,1@1

"$interop/atomics" --no-huge --no-shconf --no-pci --no-telemetry -m 512 --lcores $lcores -- \
    10000000 >"$work/atomics.log" 2>&1 || fail "atomics on lcores $lcores"
grep -v '^EAL\|^TELEMETRY' "$work/atomics.log"
