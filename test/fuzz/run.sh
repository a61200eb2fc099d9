#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# run.sh TARGET SEEDS OUT [RUNS [OPTION...]]: runs a fuzz target from its seeds, the same way each
# time. New inputs and crashes go to OUT, which is emptied first. RUNS is the number of inputs
# (5000), which is multiplied by FUZZ_RUNS / 5000; -1: no limit. The options are libFuzzer's. Its
# own status of a finding is 77, which meson takes for a skipped test.
set -e
target=$1 seeds=$2 out=$3 runs=$((${4:-5000} * ${FUZZ_RUNS:-5000} / 5000))
shift 3
[ $# -eq 0 ] || shift
rm -rf "$out"
mkdir -p "$out/found"
[ -d "$seeds" ] || seeds=
# shellcheck disable=SC2086 # $seeds may be empty, and then is no argument
exec "$target" -seed=1 -runs="$runs" -max_len=4096 -timeout=300 -print_final_stats=1 \
	-error_exitcode=1 -artifact_prefix="$out/" "$@" "$out/found" $seeds
