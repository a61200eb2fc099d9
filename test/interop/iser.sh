#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# iSER: Debian's tgtd exports a file from behind one saker, and Debian's libiscsi uses it from
# behind another, over both devices. iser_disk.c writes and reads the disk and compares every byte;
# what was written over one device is read over the other.
. "$(dirname "$0")/common.sh"
install_packages tgt libiscsi-bin libiscsi-dev jq ||
    skip "Debian's tgt and libiscsi cannot be installed"
[ -x "$build/app/saker-run" ] ||
    skip "saker-run is not built: no headers of libibverbs and librdmacm"
take_memory 600
run=$(realpath "$build/app/saker-run")
target=iqn.2001-04.com.example:disk initiator=iqn.2001-04.com.example:host
url=iser://10.5.0.2/$target/1
gcc -O1 -o "$work/iser_disk" test/interop/iser_disk.c -liscsi >"$work/gcc.log" 2>&1 ||
    fail "iser_disk.c cannot be compiled"

falcon_section 7 >"$work/falcon.ini"
wire_a=(--config "$work/falcon.ini" --address "0=10.5.0.1/24")
wire_b=(--config "$work/falcon.ini" --address "0=10.5.0.2/24")
pair --idle sleep

# The number of tgtd's control socket. Its portal for iSCSI over the kernel's TCP is not used.
number=$(($$ % 30000))
admin() { timeout 20 tgtadm -C $number --lld iser "$@" >>"$work/tgtadm.log" 2>&1; }
answers() {
    is_running tgtd || fail "tgtd ends"
    admin --op show --mode target
}
truncate -s 64M "$work/disk"
start tgtd "$run" --socket "$work/b.sock" tgtd -f -C $number \
    --iscsi portal=127.0.0.1:$((20000 + number))
until_true 60 answers || fail "tgtd does not start"
admin --mode target --op new --tid 1 -T $target &&
    admin --mode logicalunit --op new --tid 1 --lun 1 -b "$work/disk" &&
    admin --mode target --op bind --tid 1 -I ALL &&
    admin --mode target --op bind --tid 1 -Q $initiator || fail "tgtd makes no target"
until_true 60 listens b || fail "tgtd does not listen"

# at DEVICE NAME PROGRAM ARGS...: runs an initiator, whose output goes to $work/NAME.log. libiscsi
# fails ("revents is not POLLIN") when an answer takes a second, which happens on a busy machine:
# the initiator then starts again.
at() {
    local device=$1 name=$2
    shift 2
    for _ in $(seq 5); do
        timeout -k 5 60 "$run" --socket "$work/a.sock" -t "$device" "$@" >"$work/$name.log" 2>&1 &&
            return
        log_says "$name" "revents is not POLLIN" || return
    done
    return 1
}
bytes_in() { telemetry a /saker/info | jq '.bytes_in + .bytes_out'; }
seed=1
for device in iwarp falcon; do
    other=iwarp
    [ $device = iwarp ] && other=falcon
    at $device inq iscsi-inq -i $initiator $url &&
        log_says inq "Product:VIRTUAL-DISK" || fail "$device: iscsi-inq sees no disk"
    at $device capacity iscsi-readcapacity16 -i $initiator $url &&
        log_says capacity "Total size:67108864" || fail "$device: the disk has a wrong size"
    before=$(bytes_in)
    at $device disk "$work/iser_disk" $url $initiator $seed ||
        fail "$device: the disk"
    at $other other "$work/iser_disk" $url $initiator $seed read ||
        fail "$other: what was written over $device"
    [ $(($(bytes_in) - before)) -gt 8000000 ] || fail "$device: the saker has not seen the bytes"
    clean a
    echo "ok    $device iSER: $(cat "$work/disk.log"), and over $other: $(cat "$work/other.log")"
    seed=$((seed + 1))
done
cmp -s -n 67108864 "$work/disk" /dev/zero && fail "the file is empty"
is_running tgtd || fail "tgtd has ended"
echo PASS
