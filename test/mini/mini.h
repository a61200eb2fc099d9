/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The least engine that libsaker can talk to, for programs that Criterion does not run: it makes
 * what it is asked for and completes every request as soon as its queue has rung. One thread's; the
 * client may live in others.
 */
#ifndef TEST_MINI_H
#define TEST_MINI_H

#include "../../lib/client/saker.h"
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
		uint32_t cq; /* index */
		uint64_t done;
	} qp[MINI_OBJS];
	struct mini_cq {
		struct shm_cq *shared;
		struct shm_prod ring;
		bool owed; /* an event */
	} cq[MINI_OBJS];
	uint32_t nqp, ncq, handles;
};

/* A zeroed region of `size` bytes, laid out; false: no memory. */
bool mini_init(struct mini *m, uint64_t size);
void mini_free(struct mini *m);
/* Takes doorbells, answers commands, completes requests. Returns whether there was one. */
bool mini_poll(struct mini *m);
/* As `idle` of saker_open_flat(). */
void mini_idle(void *m);

#endif
