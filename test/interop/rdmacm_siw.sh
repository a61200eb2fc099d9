#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The same program on both sides of the wire: Debian's rping, ucmatose and perftest on the preloaded
# library and Saker here, and on the genuine libraries and the kernel's siw in a guest, over
# vhost-user. Each side connects once. A word as argument selects the programs that contain it.
. "$(dirname "$0")/common.sh"
lib=$(realpath "$build/drivers/verbs/libsaker-verbs.so")
[ -e "$lib" ] || skip "the preloaded library is not built"
install_packages rdmacm-utils perftest jq ||
    skip "Debian's rdmacm-utils and perftest cannot be installed"
one_guest
take_memory 256
# siw needs these waits: doc/rdmacm.md has the reason.
export SAKER_MPA_FIRST_FPDU_WAIT=500ms SAKER_MPA_FIRST_FPDU_DELAY=100ms
saker host 0@0 "net_vhost0,iface=$work/port" -- --idle sleep \
    --address net_vhost0=10.68.0.1/24 --address net_vhost0=fd68::1/64
boot_guest "vhost=$work/port,10.68.0.2/24,fd68::2/64"
port=7500 only=${1:-}

# Programs that spin run at low priority, behind saker and the guest.
host() {
    exec nice -n 19 timeout -k 5 90 env SAKER_SOCKET="$work/host.sock" \
        LATE_MS="${patience-}" LD_PRELOAD="${patience:+$late:}$lib" "$@"
}
listens_or_ends() { listens host || has_ended server; }

# once SIDE SERVER CLIENT: the server is on this SIDE, the client on the other. @ stands for the
# port.
once() {
    local side=$1 status
    port=$((port + 1))
    local serves=${2//@/$port} connects=${3//@/$port}
    # shellcheck disable=SC2086
    if [ "$side" = host ]; then
        start server host $serves
        until_true 30 listens_or_ends
        guest -t 90 "${patience:+LATE_MS=$patience LD_PRELOAD=$late }$connects" \
            >"$work/client.log" 2>&1
        status=$?
    else
        start server guest -t 90 "echo \$\$ >/run/server; exec $serves"
        guest_listens 30 $port
        (host $connects) >"$work/client.log" 2>&1
        status=$?
    fi
    [ $status = 0 ] || end_server "$side"
    ends server 120 || status=1
    return $status
}
end_server() { # end_server SIDE: its client has failed.
    if [ "$1" = host ]; then
        kill "${pid[server]}" 2>/dev/null
    else
        # shellcheck disable=SC2016 # for the guest's shell
        guest 'kill "$(cat /run/server)"' >/dev/null 2>&1
    fi
}

# siw fails a Send whose bytes it has sent, if the FIN of the peer arrives before its sending
# function returns (siw_qp_tx.c looks at tx_suspend after each segment). perftest's server here ends
# as soon as it has answered the client's last message, so the client may find that this message
# has failed.
siw_gave_up() { # siw_gave_up SIDE: the client in the guest could not send its last message
    [ "$1" = host ] && grep -q "Bad wc status 2" "$work/client.log"
}

case_of() { # case_of NAME SIDE SERVER CLIENT
    local name=$1 status began=$SECONDS patience
    for patience in "${patiences[@]}"; do
        once "$2" "$3" "$4"
        status=$?
        [ $status != 0 ] && [[ $name == ib_* ]] || break
        too_early client || lacks_report client server || siw_gave_up "$2" || break
    done
    until_true 20 nothing_left host || {
        status=1
        echo "left behind: $(telemetry host /saker/info)" >>"$work/server.log"
    }
    verdict $status "$name ($((SECONDS - began)) s)" "$work/server.log" "$work/client.log"
}

# both NAME SERVER CLIENT [GUEST-ADDRESS HOST-ADDRESS]: runs the pair once in each direction. %
# stands for the server's address.
both() {
    local to_guest=${4:-10.68.0.2} to_host=${5:-10.68.0.1}
    [[ $1 == *"$only"* ]] || return
    case_of "$1, the guest connects" host "${2//%/$to_host}" "${3//%/$to_host}"
    case_of "$1, Saker connects" guest "${2//%/$to_guest}" "${3//%/$to_guest}"
}

both "rping" "rping -s -a % -p @ -C 20 -V -S 1000" "rping -c -a % -p @ -C 20 -V -S 1000"
both "rping, IPv6" "rping -s -a % -p @ -C 20 -V -S 4000" "rping -c -a % -p @ -C 20 -V -S 4000" \
    fd68::2 fd68::1
both "ucmatose" "ucmatose -p @ -c 3 -C 10 -S 2000" "ucmatose -s % -p @ -c 3 -C 10 -S 2000"
for t in ib_send_lat ib_write_lat ib_read_lat; do
    both "$t -R" "$t -R -F -p @ -n 20 -s 2048" "$t -R -F -p @ -n 20 -s 2048 %"
done
for t in ib_send_bw ib_write_bw ib_read_bw; do
    both "$t -R" "$t -R -F -p @ -n 100 -s 2048" "$t -R -F -p @ -n 100 -s 2048 %"
done
conclude host
