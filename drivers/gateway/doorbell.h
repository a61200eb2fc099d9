/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell of a machine whose memory is an ivshmem-doorbell device: the other end of QEMU's
 * chardev, a server of QEMU's ivshmem protocol, version 0 (docs/specs/ivshmem-spec.txt), with saker
 * as peer SHM_BAR_PEER_SAKER and one vector. QEMU gets the memory and an eventfd, which is written
 * to when the guest writes saker's number into its Doorbell register. One thread calls all but
 * look.
 */
#ifndef SAKER_GATEWAY_DOORBELL_H
#define SAKER_GATEWAY_DOORBELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gw_doorbell;

/* Makes the socket at `path`, mode 0660. `memory` stays the caller's and outlives it. `wake` is
 * called with a descriptor that may wake somebody once more when it is readable and, with `on`
 * false, when it goes. NULL with one sentence in `err`. */
struct gw_doorbell *gw_doorbell_create(const char *path, int memory,
	void (*wake)(void *arg, int fd, bool on), void *arg, char *err, size_t errlen);
/* NULL: nothing. */
void gw_doorbell_destroy(struct gw_doorbell *d);
/* Whoever connects is the machine's QEMU now; takes note of rings, and lets one more wake somebody:
 * so however often a guest rings, it wakes nobody more often than this is called. Never blocks.
 * Returns whether a QEMU that was connected has gone. */
bool gw_doorbell_tend(struct gw_doorbell *d);

struct gw_doorbell_view {
	bool connected;
	uint64_t rings, guests; /* that have connected ever */
};
/* Any thread. */
void gw_doorbell_look(const struct gw_doorbell *d, struct gw_doorbell_view *out);

#endif
