#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the programs of app/examples between two sakers, on iWARP and on Falcon: each client with
# each server, the verbs program under saker-run. The server must print the text that the client
# writes. Then the README's transcript, with its own sakers.
. "$(dirname "$0")/common.sh"
install_packages jq rdmacm-utils || skip "Debian's jq and rdmacm-utils cannot be installed"
examples=$build/app/examples
[ -x "$examples/verbs" ] || skip "the verbs library is not built"
take_memory 400
port=7500

falcon_section 7 >"$work/falcon.ini"
wire_a=(--config "$work/falcon.ini" --address "0=10.5.0.1/24")
wire_b=(--config "$work/falcon.ini" --address "0=10.5.0.2/24")

at() { # at SAKER COMMAND...: becomes a program of that saker, for start
    local s=$1
    shift
    exec nice -n 19 env SAKER_SOCKET="$work/$s.sock" SAKER_DEVICE="$device" "$@"
}

# exchange SERVER CLIENT: programs of app/examples
exchange() {
    local name="$device, $2 to $1" text server client
    port=$((port + 1))
    text="$name: $(head -c 1500 /dev/urandom | base64 -w 0)"
    case $1 in
        server) server=("$examples/server" "$port" 1) ;;
        verbs) server=("$build/app/saker-run" "$examples/verbs" "$port") ;;
    esac
    case $2 in
        write) client=("$examples/write" 10.5.0.2 "$port" "$text") ;;
        verbs) client=("$build/app/saker-run" "$examples/verbs" 10.5.0.2 "$port" "$text") ;;
    esac
    [ "$2-$device" = write-falcon ] && client+=(falcon)
    start server at b "${server[@]}"
    until_true 20 listens b || fail "$name: the server does not listen"
    start client at a "${client[@]}"
    passes client 20
    passes server 20
    [ "$(cat "$work/server.log")" = "$text" ] || fail "$name: the server prints another text"
    clean a b
    echo "ok    $name"
}

pair --psp none --idle sleep
for device in iwarp falcon; do
    for server in server verbs; do
        for client in write verbs; do
            exchange $server $client
        done
    done
done
for s in a b; do kill "${pid[$s]}"; ends $s 60; done
mkdir "$work/readme"
timeout 300 test/interop/readme.py "$(realpath "$build")" "$work/readme" "${memory[*]}" ||
    fail "the README's transcript"
echo PASS
