/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that Saker shares with one virtual machine. It is a file (on huge pages or in
 * /dev/shm) that QEMU presents to its guest as the memory of an ivshmem device.
 * lib/shm/shm_bar.h defines its layout. One thread calls all functions for one gw_bar, except
 * gw_bar_view().
 */
#ifndef SAKER_GATEWAY_BAR_H
#define SAKER_GATEWAY_BAR_H

#include "../../lib/engine/engine.h"
#include "../../lib/shm/shm_bar.h"

#define GW_BAR_MIN (1ull << 20)
#define GW_BAR_MAX (1ull << 36)

struct gw_bar_config {
	const char *path;    /* of the file; created with mode 0660 if it does not exist */
	uint64_t size;       /* bytes; a power of two within GW_BAR_MIN..GW_BAR_MAX */
	unsigned slots;      /* programs that may be attached at a time: 1..SHM_BAR_SLOTS */
	uint32_t timeout_ms; /* longest gap between two heartbeats: SHM_BAR_BEAT_MS..60000 */
};

struct gw_bar;

/* Opens or creates the file and writes a directory without clients, also when a guest has mapped
 * the file already. The engine `e` must outlive the gw_bar and have no other clients. Returns NULL
 * on failure, with one sentence in `err`. */
struct gw_bar *gw_bar_create(
	struct eng *e, const struct gw_bar_config *cfg, char *err, size_t errlen);
/* Sets the descriptors to which the engine writes when the programs of the slots sleep, one for
 * each slot. They stay the caller's. */
void gw_bar_wakes(struct gw_bar *b, const int *wakes);
/* Checks every slot, and attaches or detaches its client where the guest requests it. `now` is in
 * ns. The caller repeats this every few ms. */
void gw_bar_poll(struct gw_bar *b, uint64_t now);
/* Detaches all clients because their guest has ended. Programs of a new guest may attach. */
void gw_bar_vacate(struct gw_bar *b);
/* Detaches all clients and refuses new ones. gw_bar_idle() returns true when the last has gone. */
void gw_bar_stop(struct gw_bar *b);
bool gw_bar_idle(const struct gw_bar *b);
/* Unmaps and closes the file, which stays. Call this after the engine has released all clients, or
 * after the engine was destroyed. NULL is allowed. */
void gw_bar_destroy(struct gw_bar *b);

/* Returns the file's descriptor, which the gw_bar keeps. */
int gw_bar_fd(const struct gw_bar *b);

struct gw_bar_view {
	unsigned slots, clients;
	uint64_t attached;  /* clients since the creation */
	uint64_t timed_out; /* clients that were detached because their heartbeat stopped */
	uint64_t refused;   /* requests that got no client */
	bool dead;          /* the file was truncated; Saker serves no client in it any more */
};
/* Fills in *out. Any thread may call this. */
void gw_bar_view(const struct gw_bar *b, struct gw_bar_view *out);

#endif
