/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell of a machine whose memory is an ivshmem-doorbell device. A gw_doorbell is the server
 * at the other end of QEMU's chardev. It implements QEMU's ivshmem protocol, version 0
 * (docs/specs/ivshmem-spec.txt), with Saker as peer SHM_BAR_PEER_SAKER and one vector. QEMU
 * receives the memory and an eventfd, and writes to the eventfd when the guest writes Saker's peer
 * number into its Doorbell register. It also receives an eventfd for each vector of the guest's
 * device, and makes an interrupt of what comes there. One thread calls all functions except
 * gw_doorbell_view().
 */
#ifndef SAKER_GATEWAY_DOORBELL_H
#define SAKER_GATEWAY_DOORBELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gw_doorbell;

/* Creates the socket at `path` with mode 0660. The caller keeps the descriptor `memory`. The
 * guest's device has at most `nvectors` vectors, up to SHM_BAR_SLOTS, that are used. `wake(arg, fd,
 * true)` is called when the eventfd `fd` may wake the poller once more, and `wake(arg, fd, false)`
 * before `fd` is closed. Returns NULL on failure, with one sentence in `err`. */
struct gw_doorbell *gw_doorbell_create(const char *path, int memory, unsigned nvectors,
	void (*wake)(void *arg, int fd, bool on), void *arg, char *err, size_t errlen);
/* Closes the connection and removes the socket. NULL is allowed. */
void gw_doorbell_destroy(struct gw_doorbell *d);
/* Accepts a new connection, which replaces the present one, counts rings and allows the doorbell to
 * wake the poller once more. A guest therefore cannot wake the poller more often than this function
 * is called. Never blocks. Returns true when a connected QEMU has gone or was replaced. */
bool gw_doorbell_tend(struct gw_doorbell *d);

/* Returns an eventfd for each vector: a write to it interrupts the guest, once QEMU is connected.
 * It never blocks, and QEMU does not have it. */
const int *gw_doorbell_wakes(const struct gw_doorbell *d);

struct gw_doorbell_view {
	bool connected;
	uint64_t rings;
	uint64_t guests;     /* connections since the creation */
	uint64_t interrupts; /* of the guest */
};
/* Fills in *out. Any thread may call this. */
void gw_doorbell_view(const struct gw_doorbell *d, struct gw_doorbell_view *out);

#endif
