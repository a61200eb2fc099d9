/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scripted engine: it lays out a home region, replies to commands as a table defines, and lets a
 * test read queues and write completions and events to rings. A test calls fake_poll() directly, as
 * `idle`, or from a thread.
 */
#ifndef TEST_CLIENT_FAKE_H
#define TEST_CLIENT_FAKE_H

#include <saker/saker.h>

#include "../../../lib/shm/shm_msg.h"
#include "../../../lib/shm/shm_ring.h"
#include "../../../lib/shm/shm_sock.h"

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
	uint8_t log2_depth;
};

struct fake {
	uint8_t *home;
	struct shm_header *h;
	struct shm_take cmd, doorbell[SHM_MAX_STAGES];
	struct shm_prod evt, event[SHM_MAX_STAGES];
	uint64_t heap, heap_end;
	/* Commands: the last one, and how many of each came; the one to refuse; whether replies are
	 * withheld. */
	struct shm_msg last;
	uint32_t seen[SHM_OP_COUNT];
	uint32_t refuse_op;
	uint32_t refuse_after; /* so many of them are not refused */
	int refuse_status;
	const char *refuse_text;
	bool mute;       /* takes no commands */
	bool backwards;  /* replies to the commands in the ring in reverse order */
	bool nonsense;   /* replies with offsets outside of the region */
	bool no_subs;    /* makes CQs without sub-rings */
	bool depth_only; /* replies to a resize with any depth, and without rings */
	/* A completion with this number comes to sub-ring 0 after a resize and before the reply; 0:
	 * none. */
	uint64_t during;
	uint32_t most; /* commands in the ring at a time */
	uint32_t nqp, ncq, nsrq, others;
	struct fake_qp qp[FAKE_OBJS];
	struct fake_cq cq[FAKE_OBJS];
	struct shm_take srq[FAKE_OBJS];
	struct shm_ring_at larger; /* of the SRQ that grows */
	unsigned take_first;       /* receives that the engine takes before that SRQ moves */
	int wake;                  /* write end of the descriptor that wakes the client, or -1 */
	uint64_t wakes;
};

/* Lays out a home region of `size` zero bytes at `base`; the last `mem_len` are client memory. */
void fake_init(struct fake *f, void *base, uint64_t size, uint64_t mem_len);
/* Takes doorbells and replies to commands. */
void fake_poll(struct fake *f);
/* The same as an `idle` function. */
void fake_idle(void *f);
/* Writes an event; `turn` of `m` is ignored. */
void fake_event(struct fake *f, const struct shm_msg *m);
/* Writes a completion to a sub-ring. Returns false when it is full. `fire`: with the protocol of
 * armed queues. */
bool fake_complete(struct fake *f, uint32_t cq, uint32_t sub, uint64_t wr_id, uint8_t flags);
void fake_cq_event(struct fake *f, uint32_t stage, uint32_t cq);
/* Fences, and wakes the client if it sleeps. */
void fake_wake(struct fake *f);
/* Makes sub-ring `sub` of a CQ, which follows those that exist. */
void fake_sub(struct fake *f, uint32_t cq, uint32_t sub);
/* Takes the next entry of a send queue. Returns false when there is none. */
bool fake_sq(struct fake *f, uint32_t qp, struct shm_sqe *e);

/* Attaches a client to a zeroed region, with `idle`, and asserts success. */
struct saker *fake_flat(struct fake *f, uint64_t size, uint64_t mem_len);

#endif
