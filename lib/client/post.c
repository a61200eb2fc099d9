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
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../base/mem.h"
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

static uint32_t
late_words(const struct cl_doorbell *b)
{
	return (b->ring.count + 63) / 64;
}

static void
late_set(struct cl_doorbell *b, uint32_t word, uint64_t bits)
{
	__atomic_fetch_or(&b->late[word], bits, __ATOMIC_RELEASE);
	__atomic_store_n(&b->any_late, 1, __ATOMIC_RELEASE);
}

/* Leaves a doorbell to the holder of the lock. Returns false for a handle that no QP has: the ring
 * has more entries than there are QPs. */
static bool
late_add(struct cl_doorbell *b, uint32_t what)
{
	if (what / 64 >= late_words(b))
		return false;
	late_set(b, what / 64, 1ull << what % 64);
	return true;
}

/* Writes the late doorbells. Returns false when the ring is full: the rest waits for the next
 * doorbell of the stage. The caller holds the lock. */
static bool
late_write(struct cl_doorbell *b)
{
	__atomic_store_n(&b->any_late, 0, __ATOMIC_RELAXED);
	shm_fence();
	for (uint32_t i = 0; i < late_words(b); i++) {
		uint64_t bits = __atomic_exchange_n(&b->late[i], 0, __ATOMIC_ACQUIRE);

		for (; bits != 0; bits &= bits - 1) {
			if (doorbell_write(b, i * 64 + (uint32_t)__builtin_ctzll(bits)))
				continue;
			late_set(b, i, bits);
			return false;
		}
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

void
cl_sq_doorbell(struct cl_sq *sq)
{
	/* `gone` saves a look at another cache line of the QP. */
	struct saker *s = SK_CONTAINER(sq->gone, struct saker, gone);

	/* The ring has more entries than there are QPs, so it is full only when the engine is gone
	 * or wrong. The next post then tries again. */
	if (!cl_ring(s, sq->stage, sq->handle))
		shm_pend_clear(sq->pending);
}

int
cl_sq_refusal(const struct cl_sq *sq)
{
	if (__atomic_load_n(sq->gone, __ATOMIC_RELAXED) != 0)
		return -EPIPE;
	return sq->ring.entries == NULL ? -EINVAL : 0;
}

/* Makes each running thread of the process execute a fence. */
static void
fence_threads(void)
{
	(void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static void
qp_see_error(void *owner)
{
	struct saker_qp *qp = owner;

	/* A handle of saker_qp_open() has no queues. */
	if (__atomic_exchange_n(&qp->rq.failed, 1, __ATOMIC_RELAXED) != 0 || qp->sq.pending == NULL)
		return;
	/* A thread that posts a receive stores it and then reads `failed`, without a fence, which
	 * would cost each post. After this one, it has either stored the receive or reads 1, so
	 * that this doorbell or its own flushes the receive. */
	fence_threads();
	cl_sq_ring(&qp->sq);
}

void
cl_qp_failed(struct saker *s, uint32_t qpn)
{
	cl_table_mark(&s->table, qpn);
}

int
cl_post_init(struct saker *s)
{
	s->table.mark = qp_see_error;
	(void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	for (uint32_t i = 0; i < s->nstages; i++) {
		struct cl_doorbell *b = &s->doorbell[i];

		b->late = calloc(late_words(b), sizeof(b->late[0]));
		if (b->late == NULL)
			return cl_fail(-ENOMEM, "no memory for an attachment");
	}
	return 0;
}

void
cl_post_free(struct saker *s)
{
	for (uint32_t i = 0; i < s->nstages; i++)
		free(s->doorbell[i].late);
}

void
cl_qp_works(struct saker_qp *qp)
{
	__atomic_store_n(&qp->rq.failed, 0, __ATOMIC_RELAXED);
}

/* Writes the element and the operands of an Atomic. Returns the length of the tail, or -EINVAL. */
static int
atomic_write(struct shm_sqe *e, const struct saker_wr *wr)
{
	if (wr->nsge != 1 || (wr->flags & RD_INLINE) != 0)
		return -EINVAL;
	e->data = wr->data;
	e->atomic.sink = wr->sge[0];
	if (wr->opcode == RD_SWAP)
		return offsetof(struct shm_sqe, atomic.compare) - SHM_SQE_BASE;
	e->atomic.compare = wr->opcode == RD_FETCH_ADD ? wr->data_mask : wr->compare;
	return offsetof(struct shm_sqe, atomic.data_mask) - SHM_SQE_BASE;
}

static int
bind_write(struct shm_sqe *e, const struct saker_wr *wr)
{
	e->bind.len = wr->data;
	e->bind.access = wr->compare;
	return sizeof(e->bind);
}

static int
tail_write(const struct cl_sq *sq, struct shm_sqe *e, const struct saker_wr *wr)
{
	if (wr->opcode == RD_BIND_MW)
		return bind_write(e, wr);
	if (wr->opcode == RD_CMP_SWAP || wr->opcode == RD_FETCH_ADD || wr->opcode == RD_SWAP)
		return atomic_write(e, wr);
	if ((wr->flags & RD_INLINE) != 0)
		return cl_sqe_inline(sq, e, wr->sge, wr->nsge);
	return cl_sqe_sges(sq, e, wr->sge, wr->nsge);
}

/* Writes the receiver, for QPs whose connection does not define it. */
static void
address_write(const struct cl_sq *sq, struct shm_sqe *e, const struct saker_wr *wr)
{
	e->remote_srqn = wr->remote_srqn;
	if (sq->type != SAKER_UD)
		return;
	e->ah = wr->ah != NULL ? wr->ah->obj.handle : SHM_NONE;
	e->remote_qpn = wr->remote_qpn;
	e->remote_qkey = wr->remote_qkey;
}

static inline bool
is_masked(const struct saker_wr *wr)
{
	return wr->opcode == RD_CMP_SWAP && (wr->data_mask & wr->compare_mask) != UINT64_MAX;
}

/* Writes a Compare and Swap with masks, which may need two entries. Returns 1, 0 when the queue is
 * full, or -EINVAL. */
static int
masked_post(struct cl_sq *sq, const struct saker_wr *wr)
{
	struct shm_sqe *e = cl_sq_entry(sq);
	uint64_t tail[5];
	uint32_t n = sq->ring.stride < SHM_SQE_BASE + sizeof(tail) ? 2 : 1;

	if (!shm_prod_fits(&sq->ring, n))
		return 0;
	e->wr_id = wr->wr_id;
	e->remote_addr = wr->remote_addr;
	e->rkey = wr->rkey;
	e->remote_srqn = wr->remote_srqn;
	if (atomic_write(e, wr) < 0)
		return -EINVAL;
	tail[3] = wr->data_mask;
	tail[4] = wr->compare_mask;
	memcpy(tail, &e->atomic, offsetof(struct shm_sqe, atomic.data_mask) - SHM_SQE_BASE);
	if (n == 2)
		shm_sqe_tail_long(&sq->ring, tail, sizeof(tail));
	else
		memcpy(&e->atomic, tail, sizeof(tail));
	shm_sqe_push(&sq->ring, e, n, wr->opcode, wr->flags, sizeof(tail));
	return 1;
}

/* Posts a request whose fixed part is written. Returns 1, 0 when it needs two entries and one is
 * free, or -EINVAL. */
static __attribute__((noinline)) int
rest_post(struct cl_sq *sq, struct shm_sqe *e, const struct saker_wr *wr)
{
	int len;

	if (wr->opcode > RD_SWAP)
		return -EINVAL;
	if (is_masked(wr))
		return masked_post(sq, wr);
	if (sq->type != SAKER_RC)
		address_write(sq, e, wr);
	len = tail_write(sq, e, wr);
	if (len < 0)
		return len;
	shm_sqe_push(&sq->ring, e, 1, wr->opcode, wr->flags, (uint32_t)len);
	return 1;
}

/* Posts one request, without the doorbell. Returns 1, 0 when the queue is full, or -EINVAL. */
static inline int
send_post(struct cl_sq *sq, const struct saker_wr *wr)
{
	struct shm_sqe *e = cl_sq_entry(sq);

	if (e == NULL)
		return 0;
	e->wr_id = wr->wr_id;
	e->remote_addr = wr->remote_addr;
	e->rkey = wr->rkey;
	e->imm = wr->imm;
	/* Each QP allows one element. */
	if (__builtin_expect(wr->opcode > RD_READ_INV || (wr->flags & RD_INLINE) != 0 ||
				     wr->nsge != 1 || sq->type != SAKER_RC,
		    0))
		return rest_post(sq, e, wr);
	e->sge[0] = wr->sge[0];
	shm_sqe_push(&sq->ring, e, 1, wr->opcode, wr->flags, sizeof(e->sge[0]));
	return 1;
}

int
saker_post_send(struct saker_qp *qp, const struct saker_wr *wr, int n)
{
	struct cl_sq *sq = &qp->sq;
	int done = 0, rc = 1;

	if (!cl_sq_open(sq))
		return cl_sq_refusal(sq);
	while (done < n && (rc = send_post(sq, &wr[done])) > 0)
		done++;
	if (done > 0)
		cl_sq_ring(sq);
	return done == 0 && rc < 0 ? rc : done;
}

bool
saker_send_fits(struct saker_qp *qp, uint32_t n)
{
	return shm_prod_fits(&qp->sq.ring, n);
}

/* Returns the number of receives posted, or -EINVAL if the first one has too many elements. */
static inline int
recv_post(struct cl_rq *rq, const struct saker_wr *wr, int n)
{
	int done = 0, rc = 0;

	while (done < n && (rc = cl_rq_post(rq, wr[done].wr_id, wr[done].sge, wr[done].nsge)) == 0)
		done++;
	return done == 0 && rc == -EINVAL ? rc : done;
}

int
saker_post_recv(struct saker_qp *qp, const struct saker_wr *wr, int n)
{
	int rc = cl_rq_refusal(&qp->rq);

	if (rc < 0)
		return rc;
	rc = recv_post(&qp->rq, wr, n);
	cl_rq_ring(&qp->rq, qp);
	return rc;
}

int
saker_post_srq(struct saker_srq *srq, const struct saker_wr *wr, int n)
{
	int rc = cl_rq_refusal(&srq->rq);

	if (rc < 0)
		return rc;
	/* Unlike a QP's queue, a shared queue may be posted to by several threads. */
	if (!sk_own(&srq->rq.lock, 0))
		return -EBUSY;
	rc = recv_post(&srq->rq, wr, n);
	sk_disown(&srq->rq.lock);
	return rc;
}
