/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files about a machine's memory share. */
#ifndef SAKER_GATEWAY_BAR_PRIV_H
#define SAKER_GATEWAY_BAR_PRIV_H

#include "bar.h"

#define GW_HOME_SHARE 4 /* one part in so many of a slot is for queues, the rest for data */

struct gw_slot {
	uint8_t *home;
	int guard;
	int client;           /* the engine's number, or -1 */
	bool leaving;         /* eng_detach() was called */
	bool vacated;         /* its guest is no more */
	uint32_t serving;     /* the number that the guest had drawn */
	uint32_t beat;        /* as it was last seen */
	uint64_t beat_at;     /* when it changed */
	uint64_t next_attach; /* a guest that comes and goes keeps nobody busy */
};

struct gw_bar {
	struct eng *e;
	uint8_t *base;
	struct shm_bar *dir; /* shared */
	int fd, guard;
	bool cut; /* atomic: set by the SIGBUS handler */
	bool stopped;
	unsigned nslots;
	uint64_t size, slot_size, mem_len, timeout_ns, looked;
	/* atomic: others look at them */
	unsigned clients;
	uint64_t attached, timed_out, refused;
	struct gw_slot slots[SHM_BAR_SLOTS];
};

#endif
