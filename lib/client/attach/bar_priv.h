/* SPDX-License-Identifier: BSD-3-Clause */
/* An attachment behind an ivshmem device: what bar.c and bar_move.c share. */
#ifndef SAKER_CLIENT_BAR_PRIV_H
#define SAKER_CLIENT_BAR_PRIV_H

#include <pthread.h>

#include "../../shm/shm_bar.h"
#include "../client_priv.h"

struct cl_bar_pages;

struct cl_bar {
	LIST_ENTRY(cl_bar) next; /* of all that the process has */
	uint8_t *base;           /* of the memory file, as it is mapped here */
	uint8_t *regs;           /* the page with the device's registers, or NULL */
	uint64_t size;
	int fd;       /* holds the lock on the slot's byte */
	uint64_t ino; /* of the memory file */
	uint32_t token, slot, timeout_ms;
	struct shm_bar *dir;
	uint64_t slot_at, slot_size;
	struct saker *s;
	pthread_t thread;
	bool beating, stop;         /* stop: atomic */
	bool watched;               /* atomic: somebody sleeps on saker_fd() */
	long quiet_ns;              /* for so long nothing came */
	struct cl_bar_pages *pages; /* of the program that were moved, or NULL */
};

/* bar_bell.c: maps the registers of the device whose memory is at `path`, if they can be, and lets
 * the attachment ring by them, if somebody listens; and undoes that. */
void cl_bar_bell(struct cl_bar *b, const char *path);
void cl_bar_bell_free(struct cl_bar *b);

/* bar_move.c: NULL: there are none. */
void cl_bar_pages_free(struct cl_bar_pages *t);

#endif
