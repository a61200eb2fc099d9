#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds and runs the whole suite, from the installation of packages to interoperability, and ends
# with `N passed, N failed, N skipped`.
#
#   test/run.sh [--long] [PART...]
#
# Parts, in order: lint unit count asan tsan fuzz interop. --long runs the long forms: the coverage
# of the unit tests and the share of mutants that they catch, 8 GiB for each loss rate, every guest
# test, longer fuzzing. Exit status 0 only when nothing failed.
set -u
cd "$(dirname "$0")/.." || exit 1
. test/packages.sh
export CI_LONG=
passed=0 failed=0 skipped=0 shares=()
all="lint unit count asan tsan fuzz interop"
parts='' only=''
for a in "$@"; do
    case $a in
    --long) CI_LONG=1 ;;
    *)
        [[ " $all " == *" $a "* ]] || { echo "test/run.sh: no part '$a' (parts: $all)"; exit 2; }
        parts+=" $a"
        ;;
    esac
done
parts=${parts:-$all}
figures=()

count() { # count PASSED FAILED SKIPPED
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# check NAME COMMAND...: one test. Status 77 means that it was skipped: its last line is the reason.
check() {
    local name=$1 log rc start=$SECONDS
    shift
    log=$(mktemp)
    "$@" >"$log" 2>&1
    rc=$?
    case $rc in
    0) echo "  ok    $name ($((SECONDS - start)) s)"; count 1 0 0 ;;
    77) echo "  skip  $name: $(tail -n 1 "$log")"; count 0 0 1 ;;
    *)
        echo "  FAIL  $name (status $rc)"
        # The first reason, with the logs in front of it, and then the others: what a script prints
        # when it ends may be long.
        { grep -m 1 -B 80 '^FAIL' "$log"; grep '^FAIL' "$log" | sed 1d | head -n 10
            tail -n 20 "$log"; } | sed 's/^/        /'
        count 0 1 0
        ;;
    esac
    rm -f "$log"
}

# configured FOLDER MESON-OPTIONS...: sets a build folder up unless it exists.
configured() {
    local b=$1
    shift
    [ -f "$b/build.ninja" ] || meson setup "$b" "$@" >"$b.log" 2>&1 || {
        tail -n 30 "$b.log"
        return 1
    }
}

# compiled FOLDER TARGET...: builds the targets, or everything without one.
compiled() {
    local b=$1
    shift
    ninja -C "$b" "$@" >"$b.log" 2>&1 || { tail -n 40 "$b.log"; return 1; }
    rm -f "$b.log"
}

# needed FOLDER SUITE: the files that ninja builds for the tests of the suite, and those that the
# test client-installed installs.
needed() {
    meson introspect "$1" --tests --targets | jq -r --arg folder "$PWD/$1/" --arg suite "saker:$2" '
        [.tests[] | select(.suite | index($suite)) | .depends[]] as $ids |
        .targets[] | select(.installed or (.id | IN($ids[]))) | .filename[] | ltrimstr($folder)'
}

# build FOLDER MESON-OPTIONS...: builds everything, or what the suite $only needs.
build() {
    # shellcheck disable=SC2046 # a list of names
    configured "$@" && compiled "$1" ${only:+$(needed "$1" "$only")}
}

# suite FOLDER MESON-TEST-OPTIONS...
suite() {
    local b=$1 n
    shift
    rm -f "$b/meson-logs/testlog.json"
    meson test -C "$b" --no-rebuild --quiet "$@" >/dev/null 2>&1
    n=$(test/count.py "$b/meson-logs/testlog.json") || {
        echo "no test log in $b"
        count 0 1 0
        return
    }
    read -ra n <<<"$n"
    echo "  ${n[0]} passed, ${n[1]} failed, ${n[2]} skipped"
    count "${n[@]}"
}

need() { # need FOLDER OPTIONS...: a build that does not build is a failed test.
    echo "  building $1"
    build "$@" && return 0
    echo "  FAIL  building $1"
    count 0 1 0
    return 1
}

part_lint() {
    local c
    for c in $(test/lint.sh --list); do
        [ "$c" = symbols ] || check "$c" test/lint.sh "$c"
    done
    check "selftest of the checks" test/lint/selftest.sh
    check "commands of the pages" test/interop/pages.py check
    need build || return
    check symbols test/lint.sh symbols
    check tidy test/lint.sh tidy
}
part_unit() {
    need build || return
    suite build --suite unit
    check "with the code of lesser processors" test/vectors.sh build
    [ -n "$CI_LONG" ] || return
    check coverage test/coverage.sh
    check mutants test/mutate.py
    figures=(build-cov/coverage.txt build-mutate/mutants.txt)
}
part_count() {
    need build || return
    check instructions test/bench/instructions.sh
    [ -z "$CI_LONG" ] || check "cache lines" test/bench/lines.sh
}
part_asan() {
    only=unit need build-asan -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 &&
        suite build-asan --suite unit --timeout-multiplier 4
}
part_tsan() { need build && suite build --suite tsan; }
part_fuzz() {
    CC=clang-14 need build-fuzz -Dfuzz=true -Dtests=disabled -Db_lundef=false -Doptimization=1 ||
        return
    FUZZ_RUNS=${CI_LONG:+200000} suite build-fuzz --suite fuzz --timeout-multiplier 10
    [ -z "${CI_LONG:-}" ] || check coverage test/fuzz/coverage.sh
}
part_interop() {
    need build || return
    for t in test/interop/[a-z]*.sh; do
        [ -x "$t" ] && check "$(basename "$t" .sh)" "$t"
    done
}

echo "packages"
# shellcheck disable=SC2086 # lists of names
install_packages $saker_build_packages $saker_test_packages || {
    echo "cannot install packages"
    exit 1
}
# Without them, the tests that use huge pages are skipped.
reserve_hugepages 64
for p in $parts; do
    start=$SECONDS
    echo "$p"
    "part_$p"
    shares+=("$p $((SECONDS - start)) s")
done
for f in "${figures[@]}"; do
    [ ! -f "$f" ] || { echo; cat "$f"; }
done
echo
times=$(printf ', %s' "${shares[@]}")
printf 'time: %s\n%d passed, %d failed, %d skipped\n' "${times:2}" $passed $failed $skipped
[ $failed = 0 ]
