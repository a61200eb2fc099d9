/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of queues that posting and polling use, for libsaker and for the drivers that contain
 * it: a driver writes a work request into the entry of the queue itself, without a struct saker_wr
 * in between. The rules for threads and signal handlers are those of saker_post_send(),
 * saker_post_recv() and saker_cq_poll().
 */
#ifndef SAKER_CLIENT_PATH_H
#define SAKER_CLIENT_PATH_H

#include <errno.h>
#include <string.h>

#include "../shm/shm.h"
#include "../shm/shm_ring.h"

struct saker;
struct saker_ah;
struct saker_cq;
struct saker_qp;
struct saker_srq;

/* The first member of a struct saker_qp. All of it is private memory, but what the pointers point
 * to. */
struct cl_sq {
	_Alignas(SHM_LINE) struct shm_prod ring;
	uint32_t *pending;    /* in shared memory; NULL: the QP has no queues */
	const uint32_t *gone; /* struct saker's; atomic; not 0: the engine went away */
	uint32_t handle;
	uint16_t max_inline;
	uint8_t max_send_sge, stage;
	uint8_t type; /* enum saker_qp_type */
};
_Static_assert(sizeof(struct cl_sq) == SHM_LINE, "one cache line");

static inline struct cl_sq *
cl_sq_of(struct saker_qp *qp)
{
	return (struct cl_sq *)qp;
}

/* Returns 0 if requests can be posted to the queue, -EPIPE, or -EINVAL for a QP without a send
 * queue. */
int cl_sq_refusal(const struct cl_sq *sq);

static inline bool
cl_sq_open(const struct cl_sq *sq)
{
	return __atomic_load_n(sq->gone, __ATOMIC_RELAXED) == 0 && sq->ring.entries != NULL;
}

/* Returns the next entry, which the caller fills in and passes to shm_sqe_push(), or NULL when the
 * queue is full. */
static inline struct shm_sqe *
cl_sq_entry(struct cl_sq *sq)
{
	return shm_prod_room(&sq->ring) > 0 ? shm_prod_entry(&sq->ring) : NULL;
}

/* Copies the bytes of the elements, `nsge` of them, into an entry. Returns their number, or -EINVAL
 * if the QP does not allow so many. */
static inline int
cl_sqe_inline(const struct cl_sq *sq, struct shm_sqe *e, const struct rd_sge *sge, uint32_t nsge)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < nsge; i++) {
		if (sge[i].len > sq->max_inline - at)
			return -EINVAL;
		memcpy(&e->inl[at], (const void *)(uintptr_t)sge[i].addr, sge[i].len);
		at += sge[i].len;
	}
	return (int)at;
}

/* Copies the elements into an entry. Returns their length in bytes, or -EINVAL if the QP does not
 * allow so many. */
static inline int
cl_sqe_sges(const struct cl_sq *sq, struct shm_sqe *e, const struct rd_sge *sge, uint32_t nsge)
{
	if (nsge > sq->max_send_sge)
		return -EINVAL;
	for (uint32_t i = 0; i < nsge; i++)
		e->sge[i] = sge[i];
	return (int)(nsge * sizeof(*sge));
}

/* Returns the handle of an address handle, for shm_sqe.ah. */
uint32_t cl_ah_handle(const struct saker_ah *ah);

/* Writes the doorbell of the QP. */
void cl_sq_doorbell(struct cl_sq *sq);

/* Called after one or more requests were posted: rings, unless the engine serves the QP already. */
static inline void
cl_sq_ring(struct cl_sq *sq)
{
	if (shm_pend(sq->pending))
		cl_sq_doorbell(sq);
}

/* ---- Receives ---- */

/* The second cache line of a struct saker_qp, and the first of a struct saker_srq. All of it is
 * private memory, but what the pointers point to. */
struct cl_rq {
	_Alignas(SHM_LINE) struct shm_prod ring; /* entries NULL: the QP has no queue of its own */
	const uint32_t *gone;                    /* atomic; not 0: the engine went away */
	uintptr_t lock;                          /* of a shared queue: its owner (sk_own()) */
	uint32_t max_sge;
	uint32_t failed; /* atomic; not 0: the QP had an error and the engine flushes receives, so
			    that they need the doorbell, too */
};
_Static_assert(sizeof(struct cl_rq) == SHM_LINE, "one cache line");

static inline struct cl_rq *
cl_rq_of(struct saker_qp *qp)
{
	return (struct cl_rq *)(cl_sq_of(qp) + 1);
}

static inline struct cl_rq *
cl_srq_of(struct saker_srq *srq)
{
	return (struct cl_rq *)srq;
}

/* Returns 0 if receives can be posted to the queue, -EPIPE, or -EINVAL for a QP without a receive
 * queue. */
static inline int
cl_rq_refusal(const struct cl_rq *rq)
{
	if (__builtin_expect(__atomic_load_n(rq->gone, __ATOMIC_RELAXED) != 0, 0))
		return -EPIPE;
	return rq->ring.entries == NULL ? -EINVAL : 0;
}

/* Posts one receive. Returns 0, -ENOMEM when the queue is full, or -EINVAL for more elements than
 * the queue allows. */
static inline int
cl_rq_post(struct cl_rq *rq, uint64_t wr_id, const struct rd_sge *sge, uint32_t nsge)
{
	struct shm_rqe *e;

	if (__builtin_expect(shm_prod_room(&rq->ring) == 0, 0))
		return -ENOMEM;
	if (nsge > rq->max_sge)
		return -EINVAL;
	e = shm_prod_entry(&rq->ring);
	e->nsge = (uint8_t)nsge;
	e->wr_id = wr_id;
	for (uint32_t i = 0; i < nsge; i++)
		e->sge[i] = sge[i];
	shm_prod_push(&rq->ring);
	return 0;
}

/* Returns how many receives of a shared queue the engine has not taken. */
uint32_t cl_srq_count(struct saker_srq *srq);

/* Called after one or more receives were posted to a QP's own queue. They need no doorbell: the
 * engine checks the queue when a message arrives. A QP in the error state receives no message, so
 * its receives need a doorbell to be flushed. */
static inline void
cl_rq_ring(struct cl_rq *rq, struct saker_qp *qp)
{
	if (__builtin_expect(__atomic_load_n(&rq->failed, __ATOMIC_RELAXED) != 0, 0))
		cl_sq_ring(cl_sq_of(qp));
}

/* ---- Polling ---- */

/* The first member of a struct saker_cq. */
struct cl_cq {
	_Alignas(SHM_LINE) struct shm_cq *shared;
	struct shm_take *sub; /* [nsubs], atomic */
	uint32_t nsubs;       /* atomic; grows as shared->nsubs grows; 0 during a resize */
	uint32_t max_subs;    /* 0 during a resize */
};

static inline struct cl_cq *
cl_cq_of(struct saker_cq *cq)
{
	return (struct cl_cq *)cq;
}

/* Returns whether the queue may have a completion. Any thread may call it at any time. When another
 * thread polls the queue meanwhile, the result is as if this call had come before or after it.
 * While another thread resizes a queue that may have completions, the result is true. */
static inline bool
cl_cq_any(const struct cl_cq *cq)
{
	uint32_t n = __atomic_load_n(&cq->nsubs, __ATOMIC_ACQUIRE);
	const struct shm_take *sub = __atomic_load_n(&cq->sub, __ATOMIC_RELAXED);

	if (__atomic_load_n(&cq->shared->nsubs, __ATOMIC_RELAXED) != n)
		return true;
	for (uint32_t i = 0; i < n; i++) {
		const struct shm_take *t = &sub[i];
		uint32_t next = __atomic_load_n(&t->next, __ATOMIC_RELAXED);

		if (__atomic_load_n((const uint32_t *)shm_take_at(t, next), __ATOMIC_RELAXED) ==
			shm_turn(next, t->log2_count))
			return true;
	}
	return false;
}

/* For a driver whose programs expect an event when they arm a queue to which completions have come
 * since the last event. Called after saker_cq_arm(), and not beside saker_cq_poll() or itself for
 * the same queue. If the queue is armed for such a completion, disarms it and returns true: the
 * engine sends no event then. `any`: the driver has polled a completion that no event has reported
 * and that the program has not got; `solicited`: such a one is solicited or an error. */
bool cl_cq_fire(struct saker_cq *cq, bool any, bool solicited);
/* Does what saker_cq_poll() does, and sets news[i] to whether no event has reported wc[i]. */
int cl_cq_poll_news(struct saker_cq *cq, struct rd_wc *wc, bool *news, int n);
/* Returns how many completions are in the queue. Not called beside saker_cq_poll() for it. */
uint32_t cl_cq_count(struct saker_cq *cq);

/* ---- Sleeping ---- */

/* For a driver that shows cl_fd_events() to its programs: no reply wakes a client that attaches
 * through the socket from now on, until it calls saker_fd(). A thread that waits for a reply polls,
 * with short sleeps. Commands for whose replies no thread waits need saker_fd(). */
void cl_wait_for_events(void);
/* Returns the descriptor of saker_fd(). Before a call of saker_fd(), replies do not make it
 * readable; an attachment through an ivshmem device has no such difference. */
int cl_fd_events(struct saker *s);

#endif
