#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the fuzz targets with counters in FOLDER (default: build-fuzzcov), runs each of them over
# its committed seeds, and prints the share of lines of each library that all of them together
# execute, and that of each file of lib/engine: a table, which stays in FOLDER/coverage.txt. Fails
# when the share of lib/engine is below LEAST percent (default: 70). MORE names further inputs: a
# folder with a folder of inputs for each target, as long runs leave them.
#
#   [LEAST=70] [MORE=FOLDER] test/fuzz/coverage.sh [FOLDER]
set -u
cd "$(dirname "$0")/../.." || exit 1
b=${1:-build-fuzzcov}
counters='-fprofile-instr-generate -fcoverage-mapping'
[ -f "$b/build.ninja" ] ||
    CC=clang-14 meson setup "$b" -Dfuzz=true -Dtests=disabled -Db_lundef=false -Doptimization=1 \
        -Dwerror=false "-Dc_args=$counters" "-Dc_link_args=$counters" >/dev/null || exit 1
b=$(realpath "$b")
ninja -C "$b" build.ninja >/dev/null || exit 1 # introspection does not notice changed targets
mapfile -t targets < <(meson introspect "$b" --tests |
    jq -r '.[] | select(.suite | index("saker:fuzz")) | .cmd[1]' | sed "s#^$b/##" | sort -u)
ninja -C "$b" "${targets[@]}" >/dev/null || exit 1

rm -rf "$b/profiles"
mkdir "$b/profiles"
: >"$b/empty"
objects=()
for t in "${targets[@]}"; do
    name=${t##*/fuzz_}
    inputs=("$b/empty")
    for folder in "test/fuzz/corpus/$name" ${MORE:+"$MORE/$name"}; do
        [ -d "$folder" ] && mapfile -t -O ${#inputs[@]} inputs < <(find "$folder/" -type f | sort)
    done
    # Inputs that are named one by one run once each, and are not changed.
    LLVM_PROFILE_FILE=$b/profiles/$name.profraw xargs -d '\n' "$b/$t" -detect_leaks=0 -timeout=60 \
        -artifact_prefix="$b/" >"$b/$name.log" 2>&1 < <(printf '%s\n' "${inputs[@]}") || {
        echo "$name failed over its seeds: see $b/$name.log"
        exit 1
    }
    objects+=(-object "$b/$t")
done
llvm-profdata-14 merge -sparse "$b"/profiles/*.profraw -o "$b/fuzz.profdata" || exit 1
llvm-cov-14 export -summary-only -instr-profile="$b/fuzz.profdata" "${objects[@]}" \
    2>"$b/export.log" >"$b/coverage.json" || exit 1

jq -r '.data[0].files[] | "\(.filename) \(.summary.lines.covered) \(.summary.lines.count)"' \
    "$b/coverage.json" | sed "s#^$PWD/##; s#^\.\./##; s#^.*/\.\./##" | sort | awk '
    function row(name, covered, of) {
        return sprintf("  %-48s %6d %6d %6.1f %%", name, covered, of, of ? 100 * covered / of : 0)
    }
    $1 ~ /^lib\/engine\// { print row($1, $2, $3) }
    $1 ~ /^(lib|drivers)\// {
        n = split($1, part, "/"); folder = part[1] "/" part[2]
        covered[folder] += $2; total[folder] += $3
    }
    END { print ""; for (f in total) print row(f, covered[f], total[f]) | "sort"; close("sort") }' \
    >"$b/coverage.table"
{
    printf '  lines that the fuzz targets execute\n'
    printf '  %-48s %6s %6s %8s\n' 'file or folder' executed of share
    cat "$b/coverage.table"
} | tee "$b/coverage.txt"
awk -v least="${LEAST:-70}" '$1 == "lib/engine" { share = $4 }
    END { if (share < least) {
              printf "lib/engine: %.1f %% are fewer than %d %%\n", share, least
              exit 1
          } }' "$b/coverage.table"
