#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the unit tests without optimisation and with counters in FOLDER (default: build-cov), runs
# them, and prints the share of lines of each library and driver that they execute: a table, which
# stays in FOLDER/coverage.txt. The unit tests run without the counters, too; test/run.sh counts
# those.
#
#   test/coverage.sh [FOLDER]
set -u
cd "$(dirname "$0")/.." || exit 1
b=${1:-build-cov}
options=(-Db_coverage=true -Doptimization=0 -Dwerror=false)
[ -f "$b/build.ninja" ] || meson setup "$b" "${options[@]}" || exit 1

# Only what the unit tests need is built: their programs, and what these run.
b=$(realpath "$b")
mapfile -t targets < <(meson introspect "$b" --tests |
    jq -r '.[] | select(.suite | index("saker:unit")) | .cmd[0]' | sed -n "s#^$b/##p" | sort -u)
ninja -C "$b" "${targets[@]}" app/saker drivers/verbs/libsaker-verbs.so || exit 1
# Counters of earlier runs would be wrong, and notes of sources that moved cannot be read.
find "$b" -name '*.gcda' -delete
ninja -C "$b" -t cleandead >/dev/null
find "$b" -name '*.gcno' | while read -r notes; do
    [ -f "${notes%.gcno}.o" ] || rm "$notes"
done
meson test -C "$b" --no-rebuild --suite unit --timeout-multiplier 4 --quiet ||
    echo "a unit test failed in this build: its lines may be missing below"

# gcovr lists each file with its lines and the executed ones. The shares of folders are sums.
gcovr --root . --gcov-executable gcov --json-summary --exclude-unreachable-branches \
    --filter 'lib/' --filter 'drivers/' --filter 'app/' "$b" >"$b/coverage.json" || exit 1
jq -r '.files[] | "\(.filename) \(.line_covered) \(.line_total)"' "$b/coverage.json" | awk '
    { n = split($1, part, "/"); folder = part[1] "/" part[2]
      covered[folder] += $2; total[folder] += $3; all += $2; of += $3 }
    END { for (f in total) printf "  %-16s %6d %6d %6.1f %%\n", f, covered[f], total[f],
              100 * covered[f] / total[f] | "sort"
          close("sort")
          if (of) printf "  %-16s %6d %6d %6.1f %%\n", "all", all, of, 100 * all / of }' \
    >"$b/coverage.table"
{
    printf '  lines that the unit tests execute\n'
    printf '  %-16s %6s %6s %8s\n' folder executed of share
    cat "$b/coverage.table"
} | tee "$b/coverage.txt"
