#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Programs find the devices where they look for them: under the names of the libraries, in
# /sys/class/infiniband, in /dev/infiniband, and, by a switch, among the addresses of the machine.
. "$(dirname "$0")/common.sh"
install_packages ibverbs-utils ucx-utils python3 || skip "Debian's packages cannot be installed"
run=$build/app/saker-run
[ -x "$run" ] || skip "saker-run is not built"
take_memory 300
falcon_section 7 >"$work/falcon.ini"
saker a 0@0 net_ring0 -- --config "$work/falcon.ini" --address "0=10.5.0.1/24" \
    --address "0=fd05::1/64" --idle sleep
export XDG_RUNTIME_DIR=$work/run
mkdir "$XDG_RUNTIME_DIR"

# says TEXT COMMAND...: the command succeeds under saker-run, and says the text.
says() {
    local text=$1
    shift
    timeout 60 "$run" -s "$work/a.sock" "${options[@]}" "$@" >"$work/out.log" 2>&1 ||
        fail "status $? of: $*"
    grep -qE -- "$text" "$work/out.log" || fail "no '$text' from: $*"
    echo "ok    $*"
}
class=/sys/class/infiniband

libraries() {
    says "^2 devices" "$interop/verbs_lookup" libraries
    says "transport:.*iWARP" ibv_devinfo -d saker0
    says "transport:.*InfiniBand" ibv_devinfo -d sakerf0
}

tree() {
    says "^saker0$" ls $class
    says "^4: RNIC$" cat $class/saker0/node_type
    says "^1: CA$" cat $class/sakerf0/node_type
    says "^4: ACTIVE$" cat $class/sakerf0/ports/1/state
    says "^fd05:0000:.*:0001$" cat $class/sakerf0/ports/1/gids/1
    says "^RoCE v2$" cat $class/sakerf0/ports/1/gid_attrs/types/0
    says "^saker0$" cat /sys/class/infiniband_verbs/uverbs-saker0/ibdev
    says "^Ethernet$" bash -c "cd $class && cat */ports/1/link_layer"
    says "^\['saker0', 'sakerf0'\] 1: CA" python3 -c "
import os
print(sorted(os.listdir('$class')), open('$class/sakerf0/node_type').read())"
}

nodes() {
    says "^character special file 231 193$" python3 -c "
import os, stat
st = os.stat('/dev/infiniband/uverbs-sakerf0')
print('character special file' if stat.S_ISCHR(st.st_mode) else st, os.major(st.st_rdev),
      os.minor(st.st_rdev))"
    says "^c.* uverbs-saker0$" ls -l /dev/infiniband
    says "Transport: rc_verbs" ucx_info -d
    says "Transport: ud_verbs" ucx_info -d
}

addresses() {
    options=(--ifaddrs)
    says "^lo$" "$interop/verbs_lookup" addresses
    [ "$(tail -n 2 "$work/out.log" | tr '\n' ' ')" = "saker saker " ] ||
        fail "the saker's addresses are not the last: $(tail -n 3 "$work/out.log")"
    options=()
    says "^lo$" "$interop/verbs_lookup" addresses
    grep -q saker "$work/out.log" && fail "the saker's addresses are listed without the switch"
}

# A tree ends with its process. The next process removes the tree of one that was killed.
traces() {
    local left
    left=("$XDG_RUNTIME_DIR"/*)
    [ ! -e "${left[0]}" ] || fail "left behind: ${left[*]}"
    "$run" -s "$work/a.sock" sh -c 'test -d /sys/class/infiniband; kill -9 $$'
    left=("$XDG_RUNTIME_DIR"/*)
    [ -e "${left[0]}" ] || fail "no tree was made"
    says "^saker0$" ls $class
    left=("$XDG_RUNTIME_DIR"/*)
    [ ! -e "${left[0]}" ] || fail "left behind: ${left[*]}"
    echo "ok    nothing is left behind"
}

options=()
libraries
tree
nodes
addresses
traces
options=(--sockets)
libraries
echo PASS
