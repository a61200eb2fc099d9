/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the programs of a virtual machine get the interrupts of their ivshmem-doorbell device from
 * saker-irqd: over a SOCK_SEQPACKET connection to its socket, a program sends the number of a
 * vector (uint32_t) with one eventfd, and receives a status (int32_t: 0 or -errno). With 0, the
 * kernel signals the eventfd for each interrupt of the vector until the connection ends, or another
 * one asks for the vector. A vector belongs to the program that has locked the slot of its number
 * (shm_bar.h).
 */
#ifndef SAKER_SHM_IRQD_H
#define SAKER_SHM_IRQD_H

/* For printf(): the length and the text of the device's PCI address. */
#define SHM_IRQD_FOLDER "/run/saker"
#define SHM_IRQD_SOCKET SHM_IRQD_FOLDER "/irq-%.*s"

#endif
