#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Checks the form of the tree. Prints each violation as `file:line: sentence`.
#
#   test/lint.sh [--tree FOLDER] [--build FOLDER] [CHECK...]
#   test/lint.sh --list
#
#   format    clang-format 14 changes no C file
#   includes  the #include lines keep to the rooms of test/lint/rules.py
#   symbols   the symbols of the static libraries keep to these rooms, carry their prefixes, and
#             have a user in another file
#   names     no two static functions of the product share a name
#   env       saker knows each variable SAKER_... that a file reads
#   counters  code can count each reason of the lists of counters
#   text      lines, blanks, ends of files, comments that the formatter wrapped, licence lines, and
#             sentences of comments and pages that begin with "what" or "who"
#   links     the links of the pages lead to files and headings that exist
#   shell     shellcheck has no finding
#   python    each Python script compiles
#   spelling  codespell has no finding
#   tidy      clang-tidy 14 has no finding (.clang-tidy has the list)
#   commits   the messages of the last commits have their form
#
# Without a CHECK, all but the last two run: they are slow or concern the history. `symbols` and
# `tidy` read a build: --build, else $BUILD, else the tree's folder build. Exit status: 0 without a
# violation, 1 with one, 2 for a wrong argument, 77 when the only check was skipped.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
build=${BUILD:-}
checks="format includes symbols names env counters text links shell python spelling"
status=0

# list PATTERN...: the tracked and new files that match, each followed by a NUL byte.
list() {
    local f
    git ls-files -co --exclude-standard -z -- "$@" | while IFS= read -r -d '' f; do
        [ -f "$f" ] && printf '%s\0' "$f"
    done
}

# violations SED-SCRIPT: turns a tool's findings on stdin into sentences. Fails when there is one.
violations() {
    sed -nE "$1" | sort -u | { ! grep . ; }
}

helper() { # helper NAME ARGUMENT...
    local name=$1
    shift
    PYTHONDONTWRITEBYTECODE=1 python3 "$here/lint/$name.py" . "$@"
}

check_format() {
    local sentence='clang-format-14 formats this line otherwise.'
    list '*.c' '*.h' | xargs -0 -r -n 32 -P 2 clang-format-14 --dry-run -Werror 2>&1 |
        violations "s/^([^:]+:[0-9]+):[0-9]+: error: .*/\\1: $sentence/p"
}

# The warnings of shellcheck that are wrong here:
#   SC2015  in `A && B || fail`, fail also runs when B fails: so it is meant
#   SC2119  a function whose arguments are optional is called without any
#   SC2317  functions that run by name ("part_$p", until_true SECONDS FUNCTION) seem unreachable
check_shell() {
    list '*.sh' '*.inc' '.ci/run' |
        xargs -0 -r -n 8 -P 2 shellcheck --norc --external-sources --source-path=SCRIPTDIR \
            --exclude=SC2015,SC2119,SC2317 -f gcc |
        violations 's/^([^:]+:[0-9]+):[0-9]+: [a-z]+: (.*)/\1: \2/p'
}

check_python() {
    list '*.py' | PYTHONDONTWRITEBYTECODE=1 xargs -0 -r python3 -c '
import sys
for path in sys.argv[1:]:
    try:
        compile(open(path).read(), path, "exec")
    except SyntaxError as e:
        print(f"{path}:{e.lineno}: Python cannot parse the line: {e.msg}.")
' | violations p
}

check_spelling() {
    list ':!test/fuzz/corpus' ':!*.png' ':!test/lint/words.txt' |
        xargs -0 -r codespell --ignore-words "$here/lint/words.txt" 2>&1 |
        violations 's/^([^:]+:[0-9]+): (\S+) ==> (.*)/\1: "\2" is a misspelling of "\3"./p'
}

# no_build FILE: succeeds when the build lacks FILE, and reports that the check is skipped.
no_build() {
    [ -f "$build/$1" ] && return 1
    echo "skipped: $build/$1 does not exist (meson setup build, ninja -C build)"
}

check_symbols() {
    no_build build.ninja && return 77
    helper symbols "$build"
}

check_tidy() {
    no_build compile_commands.json && return 77
    helper tidy "$build"
}

run_check() {
    case $1 in
    includes | names | env | counters | text | links | commits) helper "$1" ;;
    *) "check_$1" ;;
    esac
}

names=()
while [ $# -gt 0 ]; do
    case $1 in
    --list) echo "$checks"; exit ;;
    --tree) root=$2; shift ;;
    --build) build=$2; shift ;;
    *) [[ " $checks tidy commits " == *" $1 "* ]] || { echo "no check '$1'"; exit 2; }
        names+=("$1") ;;
    esac
    shift
done
[ -z "$build" ] || build=$(realpath -m "$build")
cd "$root" || exit 2
build=${build:-$PWD/build}
[ ${#names[@]} -gt 0 ] || read -ra names <<<"$checks"
for name in "${names[@]}"; do
    run_check "$name"
    case $? in
    0) ;;
    77) [ ${#names[@]} -gt 1 ] || exit 77 ;;
    *) status=1 ;;
    esac
done
exit $status
