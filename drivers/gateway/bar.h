/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that saker shares with one virtual machine: a file (on huge pages or in /dev/shm)
 * which QEMU shows to its guest as the memory of an ivshmem device. lib/shm/shm_bar.h says what
 * stands in it. One thread calls all functions about one gw_bar.
 */
#ifndef SAKER_GATEWAY_BAR_H
#define SAKER_GATEWAY_BAR_H

#include "../../lib/engine/engine.h"
#include "../../lib/shm/shm_bar.h"

#define GW_BAR_MIN (1ull << 20)
#define GW_BAR_MAX (1ull << 36)

struct gw_bar_config {
	const char *path;    /* made, mode 0660, if it is not there */
	uint64_t size;       /* bytes, a power of two within GW_BAR_MIN..GW_BAR_MAX */
	unsigned slots;      /* programs at a time: 1..SHM_BAR_SLOTS */
	uint32_t timeout_ms; /* of a heartbeat that stands still: SHM_BAR_BEAT_MS..60000 */
};

struct gw_bar;

/* Lays out the directory; a guest that has the file already finds one without clients. NULL with
 * one sentence in `err`. `e` outlives it, and no other clients attach there. */
struct gw_bar *gw_bar_create(
	struct eng *e, const struct gw_bar_config *cfg, char *err, size_t errlen);
/* Looks at every slot, attaches and detaches; `now` in ns. To be called every few ms. */
void gw_bar_poll(struct gw_bar *b, uint64_t now);
/* The guest that was there is no more: its programs are cut off, others may come. */
void gw_bar_vacate(struct gw_bar *b);
/* From here on nobody is served; the clients go. gw_bar_idle() tells when they have. */
void gw_bar_stop(struct gw_bar *b);
bool gw_bar_idle(const struct gw_bar *b);
/* After the engine has let go of all clients, or is gone itself. */
void gw_bar_destroy(struct gw_bar *b);

/* The file; it stays the gw_bar's. */
int gw_bar_fd(const struct gw_bar *b);

struct gw_bar_view {
	unsigned slots, clients;
	uint64_t attached;  /* ever */
	uint64_t timed_out; /* of these: heartbeat stood still */
	uint64_t refused;
	bool dead; /* somebody has cut the file: nobody is served any more */
};
/* Any thread. */
void gw_bar_look(const struct gw_bar *b, struct gw_bar_view *out);

#endif
