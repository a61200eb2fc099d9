#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run.sh TARGET SEEDS OUT: runs a fuzz target from its seeds, the same way each time. OUT is emptied first;
# new inputs and crashes go there. FUZZ_RUNS sets how many inputs are tried.
set -e
target=$1 seeds=$2 out=$3
rm -rf "$out"
mkdir -p "$out/found"
[ -d "$seeds" ] || seeds=
# shellcheck disable=SC2086
exec "$target" -seed=1 -runs="${FUZZ_RUNS:-5000}" -max_len=4096 -timeout=10 -print_final_stats=1 \
	-artifact_prefix="$out/" "$out/found" $seeds
