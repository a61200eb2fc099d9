/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell of a machine whose memory is an ivshmem-doorbell device. A gw_doorbell is the server
 * at the other end of QEMU's chardev. It implements QEMU's ivshmem protocol, version 0
 * (docs/specs/ivshmem-spec.txt), with Saker as peer SHM_BAR_PEER_SAKER and one vector. QEMU
 * receives the memory and an eventfd, and writes to the eventfd when the guest writes Saker's peer
 * number into its Doorbell register. It also receives an eventfd for each vector of the guest's
 * device, and makes an interrupt of what comes there. QEMU connects once and cannot replace the
 * eventfds of its vectors, so a keeper outside of this process holds the connection's descriptors
 * for the next saker. One thread calls all functions except gw_doorbell_view().
 */
#ifndef SAKER_GATEWAY_DOORBELL_H
#define SAKER_GATEWAY_DOORBELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gw_doorbell;

/* Keeps descriptors while saker restarts. Names are those of file names. */
struct gw_keeper {
	/* Keeps a duplicate of `fd` under a name. */
	void (*keep)(const char *name, int fd);
	/* Closes what was kept under a name, if there is something. */
	void (*forget)(const char *name);
	/* Returns the descriptor that an earlier saker kept under a name, which the caller then
	 * owns, or -1. The keeper still keeps its duplicate. */
	int (*kept)(const char *name);
};

struct gw_doorbell_config {
	const char *path; /* of the socket; outlives the gw_doorbell */
	const char *name; /* of the machine */
	int memory;       /* remains the caller's */
	/* The vectors of the guest's device that are used, up to SHM_BAR_SLOTS. */
	unsigned nvectors;
	/* With `on` true, the eventfd `fd` may wake the poller once more; with `on` false, it is
	 * about to be closed. */
	void (*wake)(void *arg, int fd, bool on);
	void *arg;
	struct gw_keeper keeper; /* zeros: none */
};

/* Creates the socket with mode 0660, and continues the connection that the keeper has for this
 * machine and this memory. Returns NULL on failure, with one sentence in `err`. */
struct gw_doorbell *gw_doorbell_create(
	const struct gw_doorbell_config *cfg, char *err, size_t errlen);
/* Removes the socket, and closes this process's descriptors: a connection that is kept continues.
 * NULL is allowed. */
void gw_doorbell_destroy(struct gw_doorbell *d);
/* Ends the connection, also at the keeper. NULL is allowed. */
void gw_doorbell_end(struct gw_doorbell *d);
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
