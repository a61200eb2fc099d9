#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# hour.sh BUILD [TARGET...]: runs each TARGET (default: all fuzz targets) of the build folder BUILD,
# one after the other, until it has used an hour of processor time, or TIME seconds. The time that
# other processes take does not count. A run begins with the committed inputs and a random seed,
# which BUILD/hour/TARGET.log names. New inputs stay in BUILD/hour/TARGET/found. Prints a line for
# each target: processor time, number of inputs, and the coverage that libFuzzer counts. Exit
# status: 0 without a finding, 1 with one. An input is too slow if it takes an hour of the clock:
# beside other processes, a target may wait for minutes until it has a processor.
set -u
here=$(realpath "$(dirname "$0")")
build=$(realpath "$1")
shift
commands=$(meson introspect "$build" --tests |
    jq -c '.[] | select(.suite | index("saker:fuzz")) | .cmd')
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(jq -r '.[1] | sub(".*/fuzz_"; "")' <<<"$commands" | sort)
ticks=$(getconf CLK_TCK)

used() { # used PID: its processor time in seconds
    local fields
    read -r fields 2>/dev/null <"/proc/$1/stat" || return
    # shellcheck disable=SC2086 # fields
    set -- ${fields##*) }
    echo $(((${12} + ${13}) / ticks))
}

status=0
for name in "${names[@]}"; do
    mapfile -t options < <(jq -r --arg name "/fuzz_$name" \
        'select(.[1] | endswith($name)) | .[5:][]' <<<"$commands")
    folder=$build/hour/$name
    mkdir -p "$folder"
    "$here/run.sh" "$build/test/fuzz/fuzz_$name" "$here/corpus/$name" "$folder" -1 \
        "${options[@]}" -timeout=3600 -seed=$((RANDOM * RANDOM + 1)) >"$build/hour/$name.log" 2>&1 &
    pid=$! time=0
    while s=$(used $pid) && [ -n "$s" ] && time=$s && [ "$time" -lt "${TIME:-3600}" ]; do
        sleep 1
    done
    kill -USR1 $pid 2>/dev/null # libFuzzer ends after this input, and prints its figures
    if wait $pid; then
        inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/hour/$name.log")
        cov=$(grep -o 'cov: [0-9]*' "$build/hour/$name.log" | tail -1)
        echo "$name: $time s, $inputs inputs, ${cov:-cov: ?}, no finding"
    else
        echo "$name: a finding after $time s: see $build/hour/$name.log and $folder"
        status=1
    fi
done
exit $status
