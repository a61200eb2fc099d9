/* SPDX-License-Identifier: BSD-3-Clause */
/* An attachment through an ivshmem device: what the files bar*.c share. */
#ifndef SAKER_CLIENT_BAR_PRIV_H
#define SAKER_CLIENT_BAR_PRIV_H

#include <pthread.h>

#include "../../shm/shm_bar.h"
#include "../client_priv.h"

struct cl_bar_pages;

struct cl_bar {
	LIST_ENTRY(cl_bar) next; /* in the list of all in the process */
	uint8_t *base;           /* where the memory file is mapped */
	uint8_t *regs;           /* the page with the device's registers, or NULL */
	uint64_t size;
	int fd;       /* of the memory file; holds the lock on the slot's byte */
	uint64_t ino; /* of the memory file */
	uint32_t token, slot, timeout_ms;
	struct shm_bar *dir;
	uint64_t slot_at, slot_size;
	struct saker *s;
	pthread_t thread;
	bool beating, stop;         /* stop: atomic */
	bool watched;               /* atomic: the program has called saker_fd() */
	int irqd;                   /* the connection to saker-irqd, or -1 */
	long quiet_ns;              /* time without an event */
	struct cl_bar_pages *pages; /* pages of the program that have moved, or NULL */
	struct mv_device device;    /* `base`, for a child of fork(2) */
};

/* bar_doorbell.c: maps the registers of the device whose memory is at `path`, if it has a doorbell,
 * and sets saker.wake_register, and asks for interrupts; and undoes the former. */
void cl_bar_doorbell(struct cl_bar *b, const char *path);
void cl_bar_doorbell_free(struct cl_bar *b);

/* ---- bar_irq.c: interrupts ---- */

/* Sets `where` to the socket of saker-irqd for the device whose memory is at `path`, or returns
 * false. */
bool cl_bar_irq_path(const char *path, char where[CL_PATH]);
/* Asks the saker-irqd there for the interrupts of the slot, and sets s->wait.wake to their
 * descriptor if it gives them. */
void cl_bar_irq(struct cl_bar *b, const char *where);
/* Sleeps while interrupts wake the program. Returns false, possibly at once, when none has come yet
 * or saker-irqd has ended. */
bool cl_bar_irq_nap(struct cl_bar *b, int ms);
/* Gives the interrupts back, and ends cl_bar_irq_nap(). */
void cl_bar_irq_stop(struct cl_bar *b);
void cl_bar_irq_free(struct cl_bar *b);

/* bar_move.c: frees the table. NULL is allowed. */
void cl_bar_pages_free(struct cl_bar_pages *t);

#endif
