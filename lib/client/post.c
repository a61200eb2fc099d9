/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting, which a program may call millions of times a second. It reads private data only (base,
 * size and index of the ring, limits of the QP), writes the entry, and reads one shared flag per
 * call. It takes no lock and makes no system call, unless it has to write a doorbell and the engine
 * sleeps.
 *
 * A signal handler may post and poll, also when it interrupted its thread within one of these
 * functions. It does not wait for a lock that its own thread holds: it leaves its doorbell in
 * `late`, and the holder of the lock writes it.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../shm/shm_bar.h"
#include "client_priv.h"

#define DOORBELL_TRIES 4096 /* attempts to take the lock before a doorbell becomes a late one */

/* write(2) of libc would be a cancellation point, where a thread can end while it holds the lock of
 * a queue. */
static void
engine_wake(struct saker *s)
{
	const uint64_t one = 1;

	if (s->wake_register != NULL)
		*s->wake_register = SHM_BAR_RING;
	else if (syscall(SYS_write, s->wake_engine, &one, sizeof(one)) < 0)
		return; /* EAGAIN: earlier wake-ups have not been taken yet */
}

/* Writes a doorbell. Returns false when the ring is full. The caller holds the lock. */
static bool
doorbell_write(struct cl_doorbell *b, uint32_t what)
{
	struct shm_doorbell *d;

	if (shm_prod_room(&b->ring) == 0)
		return false;
	d = shm_prod_entry(&b->ring);
	d->what = what;
	shm_prod_push(&b->ring);
	return true;
}

/* Leaves a doorbell to the holder of the lock. Returns false when no place is free. */
static bool
late_add(struct cl_doorbell *b, uint32_t what)
{
	for (uint32_t i = 0; i < CL_LATE; i++) {
		uint32_t none = 0;

		if (!__atomic_compare_exchange_n(&b->late[i], &none, what + 1, false,
			    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&b->any_late, 1, __ATOMIC_RELEASE);
		shm_fence();
		return true;
	}
	return false;
}

/* Writes the late doorbells. Returns false when the ring is full: the rest waits for the next
 * doorbell of the stage. The caller holds the lock. */
static bool
late_write(struct cl_doorbell *b)
{
	__atomic_store_n(&b->any_late, 0, __ATOMIC_RELAXED);
	shm_fence();
	for (uint32_t i = 0; i < CL_LATE; i++) {
		uint32_t what = __atomic_load_n(&b->late[i], __ATOMIC_ACQUIRE);

		if (what == 0)
			continue;
		if (!doorbell_write(b, what - 1)) {
			__atomic_store_n(&b->any_late, 1, __ATOMIC_RELAXED);
			return false;
		}
		__atomic_store_n(&b->late[i], 0, __ATOMIC_RELEASE);
	}
	return true;
}

/* Writes the late doorbells, unless another thread, or the code that this signal handler
 * interrupted, holds the lock and does so. */
static void
late_settle(struct cl_doorbell *b)
{
	bool room = true;

	while (room && __atomic_load_n(&b->any_late, __ATOMIC_RELAXED) != 0 &&
		sk_own(&b->lock, 1)) {
		room = late_write(b);
		sk_disown(&b->lock);
		shm_fence();
	}
}

bool
cl_ring(struct saker *s, uint32_t stage, uint32_t what)
{
	struct cl_doorbell *b = &s->doorbell[stage];
	bool room;

	/* Signal handlers send no commands, so that a command's doorbell can wait for the lock. */
	if (sk_own(&b->lock, what == SHM_RING_MAILBOX ? 0 : DOORBELL_TRIES)) {
		room = doorbell_write(b, what);
		sk_disown(&b->lock);
	} else {
		room = what != SHM_RING_MAILBOX && late_add(b, what);
	}
	shm_fence();
	if (__builtin_expect(__atomic_load_n(&b->any_late, __ATOMIC_RELAXED) != 0, 0))
		late_settle(b);
	if ((s->wake_engine >= 0 || s->wake_register != NULL) &&
		__atomic_load_n(&s->header->engine_sleeps, __ATOMIC_RELAXED) != 0)
		engine_wake(s);
	return room;
}

static void
qp_ring(struct saker_qp *qp)
{
	if (!shm_pend(qp->pending))
		return;
	/* The ring has more entries than there are QPs, so it is full only when the engine is gone
	 * or wrong. The next post then tries again. */
	if (!cl_ring(qp->s, qp->stage, qp->handle))
		shm_pend_clear(qp->pending);
}

static void
qp_see_error(void *owner)
{
	struct saker_qp *qp = owner;

	/* A handle of saker_qp_open() has no queues. */
	if (__atomic_exchange_n(&qp->failed, 1, __ATOMIC_RELAXED) == 0 && qp->pending != NULL)
		qp_ring(qp);
}

bool
cl_qp_failed(struct saker *s, uint32_t qpn)
{
	return cl_table_with(&s->table, cl_key(CL_QPN, qpn), qp_see_error);
}

static inline int
inline_write(const struct saker_qp *qp, const struct saker_wr *wr, struct shm_sqe *e)
{
	uint32_t at = 0;

	for (uint8_t i = 0; i < wr->nsge; i++) {
		const struct rd_sge *sge = &wr->sge[i];

		if (sge->len > qp->max_inline - at)
			return -EINVAL;
		memcpy(&e->inl[at], (const void *)(uintptr_t)sge->addr, sge->len);
		at += sge->len;
	}
	e->inline_len = at;
	return 0;
}

/* Writes the elements or inline data, and the fields of Atomics. */
static inline int
payload_write(const struct saker_qp *qp, const struct saker_wr *wr, struct shm_sqe *e)
{
	if ((wr->flags & RD_INLINE) != 0)
		return inline_write(qp, wr, e);
	e->inline_len = 0;
	if (wr->nsge > qp->max_send_sge)
		return -EINVAL;
	if (wr->opcode == RD_CMP_SWAP || wr->opcode == RD_FETCH_ADD || wr->opcode == RD_SWAP) {
		if (wr->nsge != 1)
			return -EINVAL;
		e->atomic.sink = wr->sge[0];
		e->atomic.data_mask = wr->data_mask;
		e->atomic.compare_mask = wr->compare_mask;
		return 0;
	}
	for (uint8_t i = 0; i < wr->nsge; i++)
		e->sge[i] = wr->sge[i];
	return 0;
}

/* Writes the receiver, for QPs whose connection does not define it. */
static void
address_write(const struct saker_qp *qp, const struct saker_wr *wr, struct shm_sqe *e)
{
	e->ah = wr->ah != NULL ? wr->ah->obj.handle : SHM_NONE;
	e->remote_srqn = wr->remote_srqn;
	if (qp->type != SAKER_UD)
		return;
	e->remote_qpn = wr->remote_qpn;
	e->remote_qkey = wr->remote_qkey;
}

static inline int
sqe_write(const struct saker_qp *qp, const struct saker_wr *wr, struct shm_sqe *e)
{
	if (wr->opcode > RD_SWAP || payload_write(qp, wr, e) < 0)
		return -EINVAL;
	e->opcode = wr->opcode;
	e->flags = wr->flags;
	e->nsge = wr->nsge;
	e->wr_id = wr->wr_id;
	e->remote_addr = wr->remote_addr;
	e->rkey = wr->rkey;
	if (__builtin_expect(qp->type != SAKER_RC, 0))
		address_write(qp, wr, e);
	e->imm = wr->imm;
	e->data = wr->data;
	e->compare = wr->compare;
	return 0;
}

int
saker_post_send(struct saker_qp *qp, const struct saker_wr *wr, int n)
{
	int done = 0;

	if (__atomic_load_n(&qp->s->gone, __ATOMIC_RELAXED) != 0)
		return -EPIPE;
	if (qp->sq.entries == NULL)
		return -EINVAL;
	while (done < n && shm_prod_room(&qp->sq) > 0) {
		if (sqe_write(qp, &wr[done], shm_prod_entry(&qp->sq)) < 0) {
			if (done == 0)
				return -EINVAL;
			break;
		}
		shm_prod_push(&qp->sq);
		done++;
	}
	if (done > 0)
		qp_ring(qp);
	return done;
}

bool
saker_send_fits(struct saker_qp *qp, uint32_t n)
{
	return shm_prod_fits(&qp->sq, n);
}

/* Receives need no doorbell: the engine checks the queue when a message arrives. A QP in the error
 * state receives no message, so its receives need a doorbell to be flushed. */
static inline int
recv_post(struct shm_prod *rq, uint32_t max_sge, const struct saker_wr *wr, int n)
{
	int done;

	for (done = 0; done < n && shm_prod_room(rq) > 0; done++) {
		struct shm_rqe *e = shm_prod_entry(rq);

		if (wr[done].nsge > max_sge)
			return done > 0 ? done : -EINVAL;
		e->nsge = wr[done].nsge;
		e->wr_id = wr[done].wr_id;
		for (uint8_t i = 0; i < wr[done].nsge; i++)
			e->sge[i] = wr[done].sge[i];
		shm_prod_push(rq);
	}
	return done;
}

int
saker_post_recv(struct saker_qp *qp, const struct saker_wr *wr, int n)
{
	if (__atomic_load_n(&qp->s->gone, __ATOMIC_RELAXED) != 0)
		return -EPIPE;
	if (qp->rq.entries == NULL)
		return -EINVAL;
	n = recv_post(&qp->rq, qp->max_recv_sge, wr, n);
	if (__atomic_load_n(&qp->failed, __ATOMIC_RELAXED) != 0)
		qp_ring(qp);
	return n;
}

int
saker_post_srq(struct saker_srq *srq, const struct saker_wr *wr, int n)
{
	int rc;

	if (__atomic_load_n(&srq->s->gone, __ATOMIC_RELAXED) != 0)
		return -EPIPE;
	/* Unlike a QP's queue, a shared queue may be posted to by several threads. */
	if (!sk_own(&srq->lock, 0))
		return -EBUSY;
	rc = recv_post(&srq->rq, srq->max_sge, wr, n);
	sk_disown(&srq->lock);
	return rc;
}
