/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a virtual machine sees of saker: the memory of one ivshmem device, which begins with this
 * directory. Behind it are slots, each the home region of one flat client (shm.h), so that several
 * programs of a guest are clients side by side.
 *
 * Claiming a slot. Within the guest, a write lock on byte `slot` of the device's memory file keeps
 * two programs from one slot; the kernel gives it back when its holder dies, however that happens.
 * The holder draws a number other than 0 and writes it to `want`. The engine's side lays out a home
 * region and writes the number to `serves`, or to `refused` with a status. When `want` becomes
 * another number or 0, or `beat` stands still for `timeout_ms`, the client is torn down; `serves`
 * becomes 0 when nothing of it is left. So a guest that was reset, or a program that died, is
 * noticed at the latest by its heartbeat, and at once by the next program that takes the slot.
 *
 * `engine_beat` stands still when saker has gone. A saker that comes back to the same memory begins
 * with a directory without clients.
 *
 * The engine's side believes nothing of what a guest writes here: the numbers are only compared,
 * and offsets and sizes are kept elsewhere.
 */
#ifndef SAKER_SHM_BAR_H
#define SAKER_SHM_BAR_H

#include "shm.h"

#define SHM_BAR_MAGIC   0x53414b4552424152ull /* "SAKERBAR" */
#define SHM_BAR_VERSION 1
#define SHM_BAR_SLOTS   16 /* most */
#define SHM_BAR_BEAT_MS 100

struct shm_bar_slot {
	/* The guest's line. */
	_Alignas(SHM_LINE) uint32_t want; /* 0: nobody */
	uint32_t beat;                    /* counts up each SHM_BAR_BEAT_MS */
	char name[SHM_NAME_MAX];          /* of the program; valid when `want` is written */
	/* The engine's. */
	_Alignas(SHM_LINE) uint32_t serves; /* the `want` whose home region is laid out, or 0 */
	uint32_t refused;                   /* a `want` that gets none, for good */
	int32_t status;                     /* why: -errno */
};
_Static_assert(sizeof(struct shm_bar_slot) == 2 * SHM_LINE, "layout");

struct shm_bar {
	uint64_t magic; /* written last */
	uint32_t version;
	uint32_t nslots;
	uint64_t size;                           /* of the whole memory, bytes */
	uint64_t slot_at, slot_size;             /* slot i begins at slot_at + i * slot_size */
	uint32_t timeout_ms;                     /* of either side's heartbeat */
	_Alignas(SHM_LINE) uint32_t engine_beat; /* counts up each SHM_BAR_BEAT_MS or faster */
	struct shm_bar_slot slots[SHM_BAR_SLOTS];
};
_Static_assert(sizeof(struct shm_bar) <= 4096, "one page");

/* The device that QEMU calls ivshmem-plain or ivshmem-doorbell. */
#define SHM_BAR_PCI_VENDOR 0x1af4
#define SHM_BAR_PCI_DEVICE 0x1110

/*
 * The registers of either, BAR 0, 32 bits each in the machine's byte order. A guest of
 * ivshmem-doorbell is a peer with a number other than 0, which IVPosition says (elsewhere it says
 * 0); it wakes saker, whose engine_sleeps (shm.h) is set, by a write to Doorbell.
 */
#define SHM_BAR_IVPOSITION 8
#define SHM_BAR_DOORBELL   12
#define SHM_BAR_PEER_SAKER 0
#define SHM_BAR_PEER_GUEST 1
#define SHM_BAR_RING       (SHM_BAR_PEER_SAKER << 16 | 0) /* peer and vector */

#endif
