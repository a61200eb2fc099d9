#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# run.sh TARGET SEEDS OUT: runs a fuzz target from its seeds, the same way each time. New inputs and
# crashes go to OUT, which is emptied first. FUZZ_RUNS is the number of inputs.
set -e
target=$1 seeds=$2 out=$3
rm -rf "$out"
mkdir -p "$out/found"
[ -d "$seeds" ] || seeds=
# shellcheck disable=SC2086 # $seeds may be empty, and then is no argument
exec "$target" -seed=1 -runs="${FUZZ_RUNS:-5000}" -max_len=4096 -timeout=10 -print_final_stats=1 \
	-artifact_prefix="$out/" "$out/found" $seeds
