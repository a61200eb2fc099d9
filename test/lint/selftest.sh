#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Tests test/lint.sh: a small tree of its own passes each check, and fails it once a violation of
# each kind is planted, with the sentence that names the violation.
set -u
repository=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
good=$work/good
tree=$work/tree
failed=0 cases=0
# A tree of its own: no configuration and no environment of the user's git decides what it lists.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=test GIT_COMMITTER_NAME=test
export GIT_AUTHOR_EMAIL=test@localhost GIT_COMMITTER_EMAIL=test@localhost

# source_file FILE LINE...: writes a file of the tree below its licence line.
source_file() {
    local file=$1
    shift
    mkdir -p "$(dirname "$file")"
    case $file in
    *.md) printf '%s\n' "$@" ;;
    *.[ch]) printf '%s\n' '/* SPDX-License-Identifier: BSD-3-Clause */' "$@" ;;
    *.sh) printf '%s\n' '#!/bin/bash' '# SPDX-License-Identifier: BSD-3-Clause' "$@" ;;
    *) printf '%s\n' '# SPDX-License-Identifier: BSD-3-Clause' "$@" ;;
    esac >"$file"
}

# c_function NAME LINE...: a function without arguments, in the form of .clang-format.
c_function() {
    printf 'void\n%s(void)\n{\n' "$1"
    shift
    [ $# -eq 0 ] || printf '\t%s\n' "$@"
    printf '}\n'
}

wide=$(printf 'x%.0s' {1..120})

make_good() {
    mkdir -p "$good"
    cd "$good" || exit 1
    git init -q .
    cp "$repository"/.clang-format "$repository"/.clang-tidy .
    source_file meson.build "project('small', 'c')"
    source_file lib/meson.build "layers = [" "    'base', # numbers" "    'tcp'," "    'engine'," \
        "]"
    source_file lib/base/base.h "void sk_zero(void);"
    source_file lib/base/base.c '#include "base.h"' '' "$(c_function sk_zero)"
    source_file lib/tcp/tcp.h '#define TCP_REASONS(X) X(TCP_SHORT, 1, "a short segment")' '' \
        '#define TCP_ENUM(name, severity, help) name,' \
        'enum { TCP_NONE, TCP_REASONS(TCP_ENUM) };' "void tcp_send(void);"
    source_file lib/tcp/tcp_priv.h "void tcp_ack(void);"
    source_file lib/tcp/send.c '#include "../base/base.h"' '#include "tcp_priv.h"' \
        '#include "tcp.h"' '' 'static unsigned counters[2];' '' \
        "static $(c_function send_one 'sk_zero();' 'counters[TCP_SHORT]++;')" '' \
        "$(c_function tcp_send 'send_one();' 'tcp_ack();')"
    source_file lib/tcp/ack.c '#include "tcp_priv.h"' '' "$(c_function tcp_ack)"
    source_file lib/engine/engine.h "void eng_start(void);"
    source_file lib/engine/common/common.h "void eng_common(void);"
    source_file lib/engine/common/common.c '#include "common.h"' '' "$(c_function eng_common)"
    source_file lib/engine/transport/transport.h "void eng_transport(void);"
    source_file lib/engine/transport/transport.c '#include "../../tcp/tcp.h"' \
        '#include "../common/common.h"' '#include "transport.h"' '' \
        "$(c_function eng_transport 'tcp_send();' 'eng_common();')"
    source_file lib/engine/stage/stage.h "void eng_stage(void);"
    source_file lib/engine/stage/stage.c '#include "../common/common.h"' '#include "stage.h"' '' \
        "$(c_function eng_stage 'eng_common();')"
    source_file lib/engine/control/core/core.h "void ctl_core(void);"
    source_file lib/engine/control/core/core.c '#include "core.h"' '' "$(c_function ctl_core)"
    source_file lib/engine/eng.c '#include "control/core/core.h"' '#include "stage/stage.h"' \
        '#include "transport/transport.h"' '#include "engine.h"' '' \
        "$(c_function eng_start 'ctl_core();' 'eng_stage();' 'eng_transport();')"
    source_file lib/engine/telemetry.c '#include "engine.h"' '' \
        '/* The state, and' ' * What: a name. A name is What it is. */' \
        'static const char *eng_question = "/* What */";'
    source_file app/small/main.c '#include "../../lib/engine/engine.h"' '' 'int' 'main(void)' '{' \
        $'\teng_start();' $'\treturn 0;' '}'
    source_file app/saker/settings.c 'static const struct row rows[] = {' \
        $'\t{"saker", "mtu", KIND_U32, AT(mtu), 0, 9},' \
        $'\t{"tcp", "rto-min", KIND_TIME, AT(rto_min), 0, 9},' '};' \
        'static const char *const env_others[] = {"SAKER_DEVICE", "SAKER_GUEST_"};'
    # shellcheck disable=SC2016
    source_file test/reads.sh 'echo "$SAKER_DEVICE ${SAKER_TCP_RTO_MIN:-} $SAKER_GUEST_MEM"'
    source_file test/small.sh 'echo "$#"'
    source_file test/small.py 'print(1)'
    # Code, a URL and a table may be longer than 100 columns.
    # shellcheck disable=SC2016 # backquotes of Markdown
    source_file README.md '# A small tree' '' 'See [the page](doc/page.md#a-heading-with-code)' \
        'and `lib/tcp/*.c`.' '' '```' "$wide" '```' "<https://example.org/$wide>"
    # shellcheck disable=SC2016
    source_file doc/page.md '# Page' '' '## A heading, with `code`' '' "| $wide |"
    git add -A
    git commit -qm 'lib: plant a small tree' -m 'The guard is tested with it.'
}

# build_tree: compiles the tree's libraries as meson does: one archive for each folder.
build_tree() {
    local folder archive objects f
    mkdir -p build
    : >build/build.ninja
    for folder in lib/base lib/tcp lib/engine lib/engine/common lib/engine/transport \
        lib/engine/stage lib/engine/control/core; do
        archive=$folder/libsaker_$(basename "$folder").a
        mkdir -p "build/$archive.p"
        objects=()
        for f in "$folder"/*.c; do
            gcc -w -c "$f" -o "build/$archive.p/$(basename "$f").o" || exit 1
            objects+=("build/$archive.p/$(basename "$f").o")
        done
        ar csrDT "build/$archive" "${objects[@]}"
        echo "build $archive: STATIC_LINKER" >>build/build.ninja
    done
    {
        echo '['
        for f in lib/*/*.c; do
            printf '{"directory": "%s", "file": "../%s", "command": "cc -c ../%s"},\n' \
                "$PWD/build" "$f" "$f"
        done | sed '$s/,$//'
        echo ']'
    } >build/compile_commands.json
}

verdict() { # verdict GOOD NAME OUTPUT
    cases=$((cases + 1))
    [ "$1" = yes ] && return
    failed=$((failed + 1))
    printf 'FAIL: %s\n%s\n' "$2" "$3"
}

# expect CHECK PLACE SENTENCE COMMAND...: runs the command in a copy of the good tree. The check
# then fails and prints the sentence for the place, in a line of its own. Both are patterns of
# grep -E.
expect() {
    local check=$1 line="$2:[0-9a-f]+: $3" out rc right=yes
    shift 3
    rm -rf "$tree"
    cp -r "$good" "$tree"
    cd "$tree" || exit 1
    "$@"
    [ "$check" != symbols ] || build_tree
    out=$("$repository/test/lint.sh" --tree "$tree" "$check" 2>&1)
    rc=$?
    [ $rc = 1 ] && grep -qE -- "^$line\$" <<<"$out" || right=no
    verdict "$right" "$check: expected: $line (status $rc)" "$out"
}

append() { # append FILE LINE...
    local file=$1
    shift
    mkdir -p "$(dirname "$file")"
    printf '%s\n' "$@" >>"$file"
}

two_refusals() {
    append lib/base/base.c "static int" "refuse(int a)" "{" "}"
    append lib/tcp/send.c "static int" "refuse(int a)" "{" "}"
}
upward_include() {
    append app/small/small.h
    append lib/tcp/tcp.h '#include "../../app/small/small.h"'
}
circle() {
    source_file lib/tcp/cc/cc.h '#include "../tcp.h"'
    append lib/tcp/tcp.h '#include "cc/cc.h"'
}

make_good
build_tree
echo build >.git/info/exclude
for check in $("$repository/test/lint.sh" --list) tidy commits; do
    out=$("$repository/test/lint.sh" --tree "$good" "$check" 2>&1) && right=yes || right=no
    verdict "$right" "$check: the clean tree fails" "$out"
done
out=$("$repository/test/lint.sh" --tree "$good" --build "$work/nothing" symbols)
[ $? = 77 ] && right=yes || right=no
verdict "$right" "symbols: without a build the check is not skipped" "$out"

common=lib/engine/common/common.c transport=lib/engine/transport/transport.c
stage=lib/engine/stage/stage.c
expect format lib/base/base.h 'clang-format-14 formats this line otherwise\.' \
    sed -i "s/void sk_zero/void  sk_zero/" lib/base/base.h

expect includes lib/base/base.c 'lib/base may not include lib/tcp \(lib/tcp/tcp.h\)\.' \
    append lib/base/base.c '#include "../tcp/tcp.h"'
expect includes $stage 'lib/engine/stage may not include lib/engine/transport .*' \
    append $stage '#include "../transport/transport.h"'
expect includes $common 'lib/engine/common may not include lib/engine/stage .*' \
    append $common '#include "../stage/stage.h"'
expect includes $transport 'lib/tcp/tcp_priv.h is private to lib/tcp\.' \
    append $transport '#include "../../tcp/tcp_priv.h"'
expect includes lib/tcp/tcp.h 'lib/tcp may not include app/small .*' upward_include
expect includes 'lib/tcp/.*' 'lib/tcp.* and lib/tcp.* stand in a circle of includes\.' circle

expect symbols $stage 'lib/engine/stage may not use eng_transport of lib/engine/transport\.' \
    append $stage 'void eng_more(void) { eng_transport(); }'
expect symbols lib/base/base.c 'lib/base may not use tcp_send of lib/tcp\.' \
    append lib/base/base.c 'void sk_more(void) { tcp_send(); }'
expect symbols lib/tcp/send.c 'The name advance carries no prefix of lib/tcp \(tcp_\)\.' \
    append lib/tcp/send.c 'void advance(void) {}'
expect symbols $common 'The name heap_alloc carries no prefix of lib/engine .*' \
    append $common 'int heap_alloc = 1;'

expect symbols lib/tcp/send.c 'No other file uses tcp_alone\.' \
    append lib/tcp/send.c 'void tcp_alone(void) {}' 'static void use(void) { tcp_alone(); }'

expect names lib/tcp/send.c 'The static function refuse exists in lib/base/base.c:[0-9]+, too\.' \
    two_refusals

two_reasons="s/\(TCP_REASONS(X).*\)/\1 X(TCP_LONG, 1, \"a long segment\")/"
uncounted() { # uncounted LINE...: adds a reason to the list, and lines to the code
    sed -i "$two_reasons" lib/tcp/tcp.h
    append lib/tcp/send.c "$@"
}
no_count='No code counts the reason TCP_LONG\.'
expect counters lib/tcp/tcp.h "$no_count" uncounted '/* TCP_LONG */ char *tcp_name = "TCP_LONG";'
expect counters lib/tcp/tcp.h "$no_count" uncounted 'int tcp_codes[] = {[TCP_LONG] = 7};'
expect counters lib/tcp/tcp.h "$no_count" uncounted 'int tcp_is(int a) { return a == TCP_LONG; }'

unknown='env_others in app/saker/settings.c lacks SAKER_DEVICES\.'
expect env lib/base/base.c "$unknown" \
    append lib/base/base.c 'const char *a = secure_getenv("SAKER_DEVICES");'
expect env test/small.py "$unknown" \
    append test/small.py 'os.environ.get("SAKER_DEVICES", "")'
# shellcheck disable=SC2016
expect env test/small.sh "$unknown" append test/small.sh 'echo "${SAKER_DEVICES:-}"'
expect env app/saker/settings.c 'No file reads SAKER_DEVICE\.' \
    sed -i 's/SAKER_DEVICE /SAKER_MTU /' test/reads.sh

long=$(printf 'x%.0s' {1..101})
too_long='The line has 10[1-9] columns\. 100 is the limit\.'
expect text lib/tcp/tcp.h "$too_long" append lib/tcp/tcp.h "/* $long */"
expect text lib/tcp/tcp.h "$too_long" append lib/tcp/tcp.h $'\t'"${long:8}"
expect text README.md "$too_long" append README.md "$long"
expect text test/small.sh "$too_long" append test/small.sh "# $long"
expect text lib/tcp/send.c 'The line ends with a blank\.' append lib/tcp/send.c 'int a; '
expect text doc/page.md 'The line ends with a blank\.' append doc/page.md 'A line '
expect text lib/tcp/send.c 'The file does not end with a newline\.' truncate -s -1 lib/tcp/send.c
expect text lib/tcp/send.c 'The file ends with an empty line\.' append lib/tcp/send.c ''
expect text lib/tcp/send.c 'The cast to void does nothing: .*' \
    append lib/tcp/send.c $'\t(void)ctx;'
expect text lib/tcp/tcp.h 'A wrapped comment ends alone\. .*' \
    append lib/tcp/tcp.h '#define A 1 /* a long comment' '           */'
expect text lib/tcp/tcp.h 'A blank is missing behind the \* of a comment\.' \
    append lib/tcp/tcp.h '/*' ' * A segment' ' *of bytes.' ' */'
riddle='A sentence begins with "What"\. Name its subject\.'
expect text lib/tcp/tcp.h "$riddle" append lib/tcp/tcp.h '/* What a segment holds. */'
expect text lib/tcp/tcp.h "$riddle" append lib/tcp/tcp.h '/*' ' * A segment.' \
    ' * What it holds, follows.' ' */'
expect text lib/tcp/tcp.h "$riddle" append lib/tcp/tcp.h '#define A 1 /* One. What is it: */'
expect text test/small.sh "$riddle" append test/small.sh '# What it does.'
expect text test/small.py "$riddle" append test/small.py '"""Tests.' '' 'What it tests."""'
expect text doc/page.md "$riddle" append doc/page.md '* **What it does.** More.'
expect text doc/page.md "$riddle" append doc/page.md '| What it does | more |'
expect text test/new.sh 'The first lines hold no SPDX-License-Identifier\.' \
    append test/new.sh '#!/bin/bash'
expect text lib/new.c 'The first lines hold no SPDX-License-Identifier\.' append lib/new.c 'int a;'

tick=\`
expect links README.md 'The link leads to doc/gone.md, which does not exist\.' \
    append README.md '[a](doc/gone.md)'
expect links README.md 'The link leads to #gone, which doc/page.md does not have\.' \
    append README.md '[a](doc/page.md#gone)'
expect links README.md 'The file lib/tcp/gone.c does not exist\.' \
    append README.md "Read ${tick}lib/tcp/gone.c$tick."

expect shell test/small.sh '.*\[SC[0-9]+\]' append test/small.sh "rm \$1"
expect python test/small.py 'Python cannot parse the line: .*' append test/small.py 'print('
# The misspelt word is put together here, so that this file passes the check itself.
expect spelling README.md '"reci.*" is a misspelling of "receive".*' \
    append README.md "To rec""ieve."
expect tidy lib/tcp/send.c '.*\[bugprone-suspicious-semicolon\]' \
    append lib/tcp/send.c 'int tcp_a(int b) { if (b);' 'return 1; }'

for title in "no part" "lib: $long" "lib: two; topics" "lib: end with a stop."; do
    expect commits commit 'The title .*' git commit -q --allow-empty -m "$title" -m Why.
done
expect commits commit 'The message has no body: .*' git commit -q --allow-empty -m "lib: be short"

echo "$cases cases, $failed failed"
[ $failed = 0 ]
