#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# qemu.sh DISK [QEMU OPTIONS]: starts the machine `web1` of doc/vm.md with the image DISK. Add the
# machine first ("vm add"), because saker then creates the memory file and the card's socket. For a
# machine with doorbell=/run/saker/web1.bell, replace the second -object and the ivshmem-plain
# device by
#     -chardev socket,id=bell,path=/run/saker/web1.bell
#     -device ivshmem-doorbell,chardev=bell,vectors=1
# and for interrupts (saker-irqd), with vectors=8, add to the machine
#     ,kernel-irqchip=split -device intel-iommu,intremap=on
set -eu
disk=$1
shift
case $disk in
*.qcow2) format=qcow2 ;;
*) format=raw ;;
esac
# Without KVM, QEMU emulates the processor.
exec qemu-system-x86_64 -machine q35,accel=kvm:tcg,memory-backend=ram -cpu max -smp 2 -m 2G \
    -object memory-backend-memfd,id=ram,size=2G,share=on \
    -drive "file=$disk,if=virtio,format=$format" \
    -object memory-backend-file,id=saker,mem-path=/dev/hugepages/saker-web1,size=64M,share=on \
    -device ivshmem-plain,memdev=saker \
    -chardev socket,id=card,path=/run/saker/web1.sock,reconnect=1 \
    -netdev vhost-user,id=net,chardev=card \
    -device virtio-net-pci,netdev=net,mac=02:00:00:01:00:01 "$@"
