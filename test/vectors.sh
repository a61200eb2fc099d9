#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the unit tests of what the processor chooses at the start (checksums, CRC, copies, ciphers)
# bound to each lesser kind of processor, by SAKER_VECTORS for our code and libIPSec_MB, and by
# GLIBC_TUNABLES for memcpy(3). `base-vectors` and `falcon-psp` fail if the choice was not taken.
#
#   test/vectors.sh [FOLDER]      the folder of the build (build)
#
# Prints a line for each kind, and ends with "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}
tests="base-vectors base-check base-crc32c wire-ip wire-tcp-udp wire-pkt wire-mpa iwarp-mpa-rx
iwarp-mpa-tx iwarp-mpa-terminate iwarp-rdmap-ops iwarp-rdmap-mixed falcon-psp rof-fast rof-mixed
engine-sums engine-rx-checksum engine-plain engine-falcon-fast engine-falcon-psp"
passed=0 failed=0 skipped=0

bound() { # bound NAME FEATURES: the tests on a processor of this kind, without these of glibc's.
    local n
    rm -f "$build/meson-logs/testlog-$1.json"
    # shellcheck disable=SC2086 # a list of words
    SAKER_VECTORS=$1 GLIBC_TUNABLES=glibc.cpu.hwcaps=$2 \
        meson test -C "$build" --no-rebuild --quiet --logbase "testlog-$1" $tests >/dev/null 2>&1
    n=$(test/count.py "$build/meson-logs/testlog-$1.json") || { failed=$((failed + 1)); return; }
    read -ra n <<<"$n"
    echo "$1: ${n[0]} passed, ${n[1]} failed, ${n[2]} skipped"
    passed=$((passed + n[0])) failed=$((failed + n[1])) skipped=$((skipped + n[2]))
}

bound sse4.2 -AVX2,-AVX,-AVX512F,-AVX512VL,-AVX512BW,-ERMS
bound avx2 -AVX512F,-AVX512VL,-AVX512BW
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed != 0 ]
