/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest engine that libsaker can use, for programs that Criterion does not run. It creates
 * all objects that the client requests, and completes every work request after its doorbell. One
 * thread calls it; the client may use others.
 */
#ifndef TEST_MINI_H
#define TEST_MINI_H

#include <saker/saker.h>

#include "../../lib/shm/shm_msg.h"
#include "../../lib/shm/shm_ring.h"

#define MINI_OBJS 32

struct mini {
	uint8_t *home;
	struct shm_header *h;
	uint64_t size, heap;
	struct shm_take cmd, doorbell;
	struct shm_prod evt, event;
	struct mini_qp {
		struct shm_qp *shared;
		struct shm_take sq;
		uint32_t cq; /* index of the CQ */
	} qp[MINI_OBJS];
	struct mini_cq {
		struct shm_cq *shared;
		struct shm_prod ring;
		bool pending; /* an event that had no room */
	} cq[MINI_OBJS];
	uint32_t nqp, ncq, handles;
};

/* Allocates and lays out a zeroed region of `size` bytes. Returns false without memory. */
bool mini_init(struct mini *m, uint64_t size);
void mini_free(struct mini *m);
/* Takes doorbells, replies to commands, completes requests. Returns whether there was anything. */
bool mini_poll(struct mini *m);
/* The same, in the form of saker_open_flat()'s `idle`. */
void mini_idle(void *m);

#endif
