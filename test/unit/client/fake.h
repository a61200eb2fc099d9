/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's half, played by a script: it lays out a home region, answers commands with what a
 * table says, and lets a test look at queues and put completions and events into rings. A test
 * calls fake_poll() itself, as `idle`, or from a thread.
 */
#ifndef TEST_CLIENT_FAKE_H
#define TEST_CLIENT_FAKE_H

#include <saker/saker.h>

#include "../../../lib/shm/shm_ring.h"

#define FAKE_OBJS   64
#define FAKE_STAGES 3

struct fake_qp {
	struct shm_qp *shared;
	struct shm_take sq, rq;
	uint32_t rung;
};

struct fake_cq {
	struct shm_cq *shared;
	struct shm_prod sub[FAKE_STAGES];
};

struct fake {
	uint8_t *home;
	struct shm_header *h;
	struct shm_take cmd, bell[SHM_MAX_STAGES];
	struct shm_prod evt, event[SHM_MAX_STAGES];
	uint64_t heap, heap_end;
	/* Commands: what came last, how many of each; the one that is refused; whether answers are
	 * held back. */
	struct shm_msg last;
	uint32_t seen[SHM_OP_COUNT];
	uint32_t refuse_op;
	int refuse_status;
	const char *refuse_text;
	bool mute;      /* takes no command */
	bool backwards; /* answers what is there in reverse order */
	bool nonsense;  /* names places outside of the region */
	uint32_t nqp, ncq, nsrq, others;
	struct fake_qp qp[FAKE_OBJS];
	struct fake_cq cq[FAKE_OBJS];
	struct shm_take srq[FAKE_OBJS];
	int wake; /* write end of what wakes the client, or -1 */
	uint64_t wakes;
};

/* A home region of `size` bytes at `base` (zeroed); the last `mem_len` are the client's. */
void fake_init(struct fake *f, void *base, uint64_t size, uint64_t mem_len);
/* Takes doorbells and answers commands. */
void fake_poll(struct fake *f);
/* The same as an `idle` function. */
void fake_idle(void *f);
/* Writes an event; `turn` of `m` is ignored. */
void fake_event(struct fake *f, const struct shm_msg *m);
/* A completion into a sub-ring; false: it is full. `fire`: with the arm protocol. */
bool fake_complete(struct fake *f, uint32_t cq, uint32_t sub, uint64_t wr_id, uint8_t flags);
void fake_cq_event(struct fake *f, uint32_t stage, uint32_t cq);
/* Fences, and wakes the client if it sleeps. */
void fake_wake(struct fake *f);
/* Takes the next entry of a send queue into *e; false: none. */
bool fake_sq(struct fake *f, uint32_t qp, struct shm_sqe *e);

/* A zeroed region and a client attached to it with `idle`; asserts that it came about. */
struct saker *fake_flat(struct fake *f, uint64_t size, uint64_t mem_len);

#endif
