#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# manual.sh BUILD: compares the manual pages and the completion with the programs: every option of
# --help, every exported function of libsaker and every key of the sample configuration has an
# entry, and no page has another one.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=$1 failed=0

bad() {
    echo "not ok: $*"
    failed=1
}

# entries PAGE PATTERN: the words that match the pattern and stand in the titles of the entries.
entries() {
    grep -A 1 '^\.T[PQ]' "$1" | sed 's/\\-/-/g; s/\\f[A-Z]//g' | grep -oE -- "$2" | sort -u
}

# same WHAT PAGE PATTERN: compares the entries with the words on standard input.
same() {
    local difference
    difference=$(diff <(sort -u) <(entries "$2" "$3")) || bad "$1 and $2 differ: $difference"
}

# options PAGE COMMAND...: compares the long options, or with -h the letters.
options() {
    local page=$1 program
    shift
    program=$(basename "$1")
    "$@" >"$out" 2>/dev/null || bad "$* gives $?"
    [ "$(awk '{ if (length > n) n = length } END { print n }' "$out")" -le 80 ] ||
        bad "$* prints more than 80 columns"
    grep -oE -- '^ +(-., )?--[a-z-]+' "$out" | grep -oE -- '--[a-z-]+' |
        same "$program --help" "$page" '--[a-z][a-z-]+'
}

out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
options "$build/doc/man/saker.8" "$build/app/saker" -- --help
options "$build/doc/man/saker-perf.1" "$build/app/saker-perf" --help
options "$build/doc/man/saker-sim.1" "$build/app/saker-sim/saker-sim" --help
options doc/man/sakerctl.8 "$build/app/sakerctl" --help
[ ! -x "$build/app/saker-run" ] || options doc/man/saker-run.1 "$build/app/saker-run" --help

"$build/app/saker-sim/saker-sim" --keys | grep -oE '^[a-z0-9-]+ +=' | sed 's/^/.BR /; s/ *=$//' |
    same "saker-sim --keys" "$build/doc/man/saker-sim.1" '^\.BR [a-z0-9-]+'
grep -oE '^; ?[a-z0-9-]+ = ' config/saker.ini | grep -oE '[a-z0-9-]{2,}' | sed 's/^/.BR /' |
    same config/saker.ini "$build/doc/man/saker.ini.5" '^\.BR [a-z0-9-]+'
# The functions that the shared library exports.
nm -D --defined-only "$build/lib/client/libsaker.so" |
    awk '$2 == "T" { sub("@.*", "", $3); print $3 "(" }' |
    same "libsaker's exports" "$build/doc/man/libsaker.3" '(saker|sk_addr)_[a-z0-9_]+\('

# completes WORDS PROGRAM FILE ARGUMENT...: the last argument is completed to all these words.
completes() {
    local want=$1 program=$2 file=$3 missing
    shift 3
    missing=$(comm -23 <(tr ' ' '\n' <<<"$want" | sort) <(
        # shellcheck disable=SC1090
        . "$file"
        COMP_WORDS=("$program" "$@") COMP_CWORD=$#
        read -ra how < <(complete -p "$(basename "$program")")
        "${how[2]}" "$program"
        printf '%s\n' "${COMPREPLY[@]}" | sort
    ))
    [ -z "$missing" ] || bad "$(basename "$program") $* is not completed to: $missing"
}
folder=config/packaging/completion
completes "--transport --transfer" "$build/app/saker-perf" $folder/saker-perf.sh --tr 2>/dev/null |
    grep -q 'completed to: --transfer' || bad "completes finds no missing word"
completes "--quiet --qps" "$build/app/saker-perf" $folder/saker-perf.sh --transport iwarp --q
completes "--socket --json" "$build/app/sakerctl" $folder/sakerctl.sh --
if [ -x "$build/app/saker-run" ]; then
    completes "--transport" "$build/app/saker-run" $folder/saker-run.sh --devices falcon --t
    completes "iwarp falcon" "$build/app/saker-run" $folder/saker-run.sh --devices ""
    completes "cat" "$build/app/saker-run" $folder/saker-run.sh -v ca
    completes "meson.build" "$build/app/saker-run" $folder/saker-run.sh -v cat meson.b
fi
[ $failed = 0 ] && echo ok
exit $failed
