/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a machine's shared memory, for bar.c and slot.c. */
#ifndef SAKER_GATEWAY_BAR_PRIV_H
#define SAKER_GATEWAY_BAR_PRIV_H

#include "bar.h"

#define GW_HOME_SHARE 4 /* 1/GW_HOME_SHARE of a slot holds queues, the rest holds data */

struct gw_slot {
	uint8_t *home;    /* start of the slot's home region */
	int guard;        /* of eng_guard(), or -1 */
	int wake;         /* wakes the slot's program, or -1 */
	int client;       /* the engine's client number, or -1 */
	bool leaving;     /* eng_detach() was called */
	bool vacated;     /* the guest of this client has ended */
	uint64_t cleared; /* bytes of the queues that are 0 for the next program */
	uint32_t serving; /* the value of `want` for which the client was attached */
	uint32_t beat;    /* the heartbeat counter at the last poll */
	uint64_t beat_at; /* ns: when the heartbeat counter last changed */
	uint64_t
		next_attach; /* ns: earliest time of the next attachment, which limits their rate */
};

struct gw_bar {
	struct eng *e;
	uint8_t *base;       /* the mapped file */
	struct shm_bar *dir; /* the directory at `base`, which the guest may write */
	int fd, guard;
	bool cut;     /* atomic: the file was truncated; set by the SIGBUS handler */
	bool stopped; /* no client is attached any more */
	unsigned nslots;
	uint64_t size, slot_size; /* bytes */
	uint64_t mem_len;         /* bytes of a slot for data */
	uint64_t timeout_ns;
	uint64_t looked; /* ns: when gw_bar_poll() was last called */
	/* Atomic: gw_bar_view() reads these from any thread. */
	unsigned clients;
	uint64_t attached, timed_out, refused;
	struct gw_slot slots[SHM_BAR_SLOTS];
};

#endif
