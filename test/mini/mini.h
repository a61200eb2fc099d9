/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A minimal engine for libsaker, for programs that Criterion does not run. It creates every object
 * that the client requests, and completes each request when its queue's doorbell has rung. One
 * thread runs the engine; the client may run in other threads.
 */
#ifndef TEST_MINI_H
#define TEST_MINI_H

#include <saker/saker.h>

#include "../../lib/shm/shm_ring.h"

#define MINI_OBJS 32

struct mini {
	uint8_t *home;
	struct shm_header *h;
	uint64_t size, heap;
	struct shm_take cmd, bell;
	struct shm_prod evt, event;
	struct mini_qp {
		struct shm_qp *shared;
		struct shm_take sq;
		uint32_t cq; /* index of the CQ */
		uint64_t done;
	} qp[MINI_OBJS];
	struct mini_cq {
		struct shm_cq *shared;
		struct shm_prod ring;
		bool owed; /* an event is pending */
	} cq[MINI_OBJS];
	uint32_t nqp, ncq, handles;
};

/* Allocates and lays out a zeroed region of `size` bytes. Returns false if there is no memory. */
bool mini_init(struct mini *m, uint64_t size);
void mini_free(struct mini *m);
/* Takes doorbells, answers commands and completes requests. Returns whether there was any work. */
bool mini_poll(struct mini *m);
/* Has the signature of `idle` of saker_open_flat(). */
void mini_idle(void *m);

#endif
