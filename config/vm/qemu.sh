#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The machine `web1` of doc/vm.md as a plain QEMU command: DISK is its image, and what else is said goes to QEMU as it is. saker makes the
# memory file and the card's socket when the machine is added, so that comes first. A machine that was added with doorbell=/run/saker/web1.bell has
# instead of the second -object and the ivshmem-plain behind it
#     -chardev socket,id=bell,path=/run/saker/web1.bell -device ivshmem-doorbell,chardev=bell,vectors=1
set -eu
disk=$1
shift
exec qemu-system-x86_64 -machine q35,accel=kvm,memory-backend=ram -cpu host -smp 2 -m 2G \
    -object memory-backend-memfd,id=ram,size=2G,share=on \
    -drive "file=$disk,if=virtio" \
    -object memory-backend-file,id=saker,mem-path=/dev/hugepages/saker-web1,size=64M,share=on \
    -device ivshmem-plain,memdev=saker \
    -chardev socket,id=card,path=/run/saker/web1.sock \
    -netdev vhost-user,id=net,chardev=card \
    -device virtio-net-pci,netdev=net,mac=02:00:00:01:00:01 "$@"
