/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layout of the memory that a virtual machine shares with saker: the memory of one ivshmem
 * device, which begins with this directory. Slots follow, each of which holds the home region of
 * one flat client (shm.h), so that several programs of a guest can be clients at the same time.
 *
 * Claiming a slot: within the guest, a write lock on byte `slot` of the device's memory file keeps
 * two programs from using one slot; the kernel releases the lock when its holder dies, in whatever
 * way. The holder draws a random number other than 0 and writes it to `want`. The engine lays out a
 * home region and writes the number to `serves`, or it writes the number to `refused` and a status.
 * When `want` changes to another number or 0, or when `beat` stands still for `timeout_ms`, the
 * engine tears the client down and sets `serves` to 0 when nothing is left of it. The engine thus
 * detects a reset guest or a dead program after the timeout of its heartbeat, or earlier if another
 * program claims the slot.
 *
 * `engine_beat` stands still after saker has ended. A saker that starts again on the same memory
 * begins with a directory without clients.
 *
 * The engine trusts nothing that a guest writes here: it only compares the numbers, and keeps
 * offsets and sizes elsewhere.
 */
#ifndef SAKER_SHM_BAR_H
#define SAKER_SHM_BAR_H

#include "shm.h"

#define SHM_BAR_MAGIC   0x53414b4552424152ull /* "SAKERBAR" */
#define SHM_BAR_VERSION 1
#define SHM_BAR_SLOTS   16 /* upper limit */
#define SHM_BAR_BEAT_MS 100

struct shm_bar_slot {
	/* Written by the guest. */
	_Alignas(SHM_LINE) uint32_t want; /* 0: the slot is free */
	uint32_t beat;                    /* incremented every SHM_BAR_BEAT_MS */
	char name[SHM_NAME_MAX];          /* the program's; valid when `want` is written */
	/* Written by the engine. */
	_Alignas(SHM_LINE) uint32_t serves; /* the `want` whose home region is laid out, or 0 */
	uint32_t refused;                   /* a `want` that is refused for good */
	int32_t status;                     /* the reason for the refusal: -errno */
};
_Static_assert(sizeof(struct shm_bar_slot) == 2 * SHM_LINE, "layout");

struct shm_bar {
	uint64_t magic; /* written last */
	uint32_t version;
	uint32_t nslots;
	uint64_t size; /* of the whole memory, bytes */
	/* Bytes; slot i begins at slot_at + i * slot_size. */
	uint64_t slot_at, slot_size;
	/* The time after which a heartbeat of either side counts as stopped. */
	uint32_t timeout_ms;
	_Alignas(SHM_LINE) uint32_t engine_beat; /* incremented every SHM_BAR_BEAT_MS or faster */
	struct shm_bar_slot slots[SHM_BAR_SLOTS];
};
_Static_assert(sizeof(struct shm_bar) <= 4096, "one page");

/* The PCI identifiers of QEMU's ivshmem-plain and ivshmem-doorbell. */
#define SHM_BAR_PCI_VENDOR 0x1af4
#define SHM_BAR_PCI_DEVICE 0x1110

/*
 * The registers in BAR 0 of both devices, 32 bits each, in the machine's byte order. A guest with
 * ivshmem-doorbell is a peer with a number other than 0, which IVPosition contains (with
 * ivshmem-plain it contains 0). When saker has set engine_sleeps (shm.h), the guest wakes it by a
 * write to Doorbell. Vector i of the guest's device wakes the program in slot i.
 */
#define SHM_BAR_IVPOSITION 8
#define SHM_BAR_DOORBELL   12
#define SHM_BAR_PEER_SAKER 0
#define SHM_BAR_PEER_GUEST 1
#define SHM_BAR_RING       (SHM_BAR_PEER_SAKER << 16 | 0) /* peer and vector */

#endif
