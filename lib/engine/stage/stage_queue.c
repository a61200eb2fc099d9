/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests from shared memory. The stage copies an entry, checks all lengths in the copy, and
 * uses nothing but the copy. It does not see what a client writes into the entry later, and an
 * invalid entry affects only the client's own QP. A request that was copied for a run and is not
 * sent with it stays in the queue: its copy is discarded, and the general path makes a new one.
 */
#include <string.h>

#include "../../base/mem.h"
#include "stage_priv.h"

/* An opcode that no transport supports: the request completes in error. */
#define BAD_OPCODE 0xff

/* Reads a field once, in the width in which the client wrote it. */
#define TAKE(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

/* The first word of an entry. */
union sqe_head {
	struct {
		uint32_t turn;
		uint8_t opcode, flags;
		uint16_t len;
	};
	uint64_t word;
};

/* Opcodes whose tail consists of operands. */
#define OPERANDS (1u << RD_CMP_SWAP | 1u << RD_FETCH_ADD | 1u << RD_SWAP | 1u << RD_BIND_MW)

static inline bool
has_operands(uint8_t opcode)
{
	return opcode < 32 && (OPERANDS >> opcode & 1) != 0;
}

static inline void
take_fixed(struct rd_wr *wr, const struct shm_sqe *e, union sqe_head h)
{
	wr->wr_id = TAKE(e->wr_id);
	wr->opcode = h.opcode;
	wr->flags = h.flags;
	wr->nsge = 0;
	wr->inline_len = 0;
	wr->rkey = TAKE(e->rkey);
	wr->remote_addr = TAKE(e->remote_addr);
	wr->imm = TAKE(e->imm);
}

/* Copies the destination of a request that the connection does not determine. */
static void
take_address(struct rd_wr *wr, const struct shm_sqe *e)
{
	wr->ah = wr->rkey;
	wr->remote_srqn = TAKE(e->remote_srqn);
	wr->remote_qpn = (uint32_t)wr->remote_addr;
	wr->remote_qkey = (uint32_t)(wr->remote_addr >> 32);
}

static inline void
take_sge(struct rd_sge *to, const struct rd_sge *from)
{
	to->addr = TAKE(from->addr);
	to->len = TAKE(from->len);
	to->lkey = TAKE(from->lkey);
}

static inline void
take_sges(struct rd_wr *wr, const struct rd_sge *sge)
{
	for (unsigned i = 0; i < wr->nsge; i++)
		take_sge(&wr->sge[i], &sge[i]);
}

/* Copies the SGEs or the inline data. Returns false when they exceed the limits of the QP, which
 * are within its entries. */
static bool
take_data(struct rd_wr *wr, const struct shm_sqe *e, uint32_t len, const struct rd_qp_caps *caps)
{
	if (wr->flags & RD_INLINE) {
		if (len > caps->max_inline)
			return false;
		wr->inline_len = len;
		memcpy(wr->inl, e->inl, len);
		return true;
	}
	if (len % sizeof(struct rd_sge) != 0 || len / sizeof(struct rd_sge) > caps->max_send_sge)
		return false;
	wr->nsge = (uint8_t)(len / sizeof(struct rd_sge));
	take_sges(wr, e->sge);
	return true;
}

/* The operands of a request, in words. */
struct operands {
	uint64_t w[5];
};

/* Copies the operands of the next request. Returns the number of entries that it uses, or 0 when
 * they do not continue as they must. */
static uint32_t
take_words(const struct shm_take *sq, const struct shm_sqe *e, uint32_t len, struct operands *o)
{
	uint32_t room = sq->stride - SHM_SQE_BASE;
	const uint8_t *more = shm_take_at(sq, sq->next + 1);

	if (len > sizeof(o->w))
		return 0;
	memcpy(o->w, e->inl, SK_MIN(len, room));
	if (len <= room)
		return 1;
	if (len - room > (uint32_t)sq->stride - SHM_SQE_MORE ||
		__atomic_load_n((const uint32_t *)(const void *)more, __ATOMIC_ACQUIRE) !=
			shm_turn(sq->next + 1, sq->log2_count))
		return 0;
	memcpy((uint8_t *)o->w + room, more + SHM_SQE_MORE, len - room);
	return 2;
}

/* Copies the operands of an Atomic or a bind. Returns the number of entries that the request uses,
 * or 0 when it is invalid. */
static uint32_t
take_operands(struct rd_wr *wr, const struct shm_take *sq, const struct shm_sqe *e, uint32_t len)
{
	struct operands o = {{0}};
	uint32_t n = take_words(sq, e, len, &o);

	if (n == 0 || (wr->flags & RD_INLINE) != 0)
		return 0;
	wr->data = wr->opcode == RD_BIND_MW ? o.w[0] : wr->imm;
	wr->compare = wr->opcode == RD_BIND_MW ? o.w[1] : o.w[2];
	wr->data_mask = wr->opcode == RD_FETCH_ADD ? o.w[2] : UINT64_MAX;
	wr->compare_mask = UINT64_MAX;
	if (wr->opcode == RD_BIND_MW)
		return len == 2 * sizeof(uint64_t) ? n : 0;
	wr->nsge = 1;
	memcpy(&wr->sge[0], o.w, sizeof(wr->sge[0]));
	if (wr->opcode == RD_SWAP)
		return len == sizeof(struct rd_sge) ? n : 0;
	if (wr->opcode == RD_FETCH_ADD || len < sizeof(o.w))
		return len == sizeof(struct rd_sge) + sizeof(uint64_t) ? n : 0;
	wr->data_mask = o.w[3];
	wr->compare_mask = o.w[4];
	return n;
}

/* Returns whether a request of a connected QP has one SGE and nothing else: each entry has room for
 * that, and each QP allows it. */
static inline bool
is_plain(const struct eng_qp *qp, union sqe_head h)
{
	return h.opcode <= RD_READ_INV && (h.flags & RD_INLINE) == 0 &&
	       h.len == sizeof(struct rd_sge) && qp->type == SHM_RC;
}

/* Copies the rest of the next request, of which take_fixed() has copied the fixed part. Returns the
 * number of entries that it uses. An invalid request uses one, completes in error and makes the QP
 * fail. */
static __attribute__((noinline)) uint32_t
take_rest(struct rd_wr *wr, const struct eng_qp *qp, const struct shm_sqe *e, uint32_t len)
{
	uint32_t n = 1;

	if (qp->type != SHM_RC)
		take_address(wr, e);
	if (has_operands(wr->opcode))
		n = take_operands(wr, &qp->sq, e, len);
	else if (!take_data(wr, e, len, &qp->rd.caps))
		n = 0;
	if (n != 0)
		return n;
	wr->opcode = BAD_OPCODE;
	wr->nsge = 0;
	wr->inline_len = 0;
	return 1;
}

bool
eng_sq_next(void *ctx, struct rd_qp *rd, struct rd_wr *wr)
{
	struct eng_qp *qp = eng_qp_of(rd);
	const struct shm_sqe *e = shm_take_at(&qp->sq, qp->sq.next);
	union sqe_head h = {.word = __atomic_load_n(&e->head, __ATOMIC_ACQUIRE)};
	struct eng_stage *s = ctx;

	if (h.turn != shm_turn(qp->sq.next, qp->sq.log2_count))
		return false;
	s->spent.messages++;
	take_fixed(wr, e, h);
	if (__builtin_expect(is_plain(qp, h), 1)) {
		wr->nsge = 1;
		take_sge(&wr->sge[0], e->sge);
		qp->sq.next++;
	} else {
		qp->sq.next += take_rest(wr, qp, e, h.len);
	}
	__builtin_prefetch(shm_take_at(&qp->sq, qp->sq.next));
	return true;
}

unsigned
eng_sq_writes(void *ctx, struct rd_qp *rd, struct rd_write *out, unsigned n, bool *more)
{
	const union sqe_head any = {.flags = RD_SIGNALED | RD_SOLICITED};
	union sqe_head plain = {.opcode = RD_WRITE, .len = sizeof(struct rd_sge)}, h;
	const struct eng_qp *qp = eng_qp_of(rd);
	unsigned k;

	*more = true;
	if (qp->type != SHM_RC)
		return 0;
	for (k = 0; k < n; k++, out++) {
		const struct shm_sqe *e = shm_take_at(&qp->sq, qp->sq.next + k);

		h.word = __atomic_load_n(&e->head, __ATOMIC_ACQUIRE);
		plain.turn = shm_turn(qp->sq.next + k, qp->sq.log2_count);
		if ((h.word & ~any.word) != plain.word) {
			*more = h.turn == plain.turn;
			break;
		}
		out->wr_id = TAKE(e->wr_id);
		out->remote_addr = TAKE(e->remote_addr);
		out->addr = TAKE(e->sge[0].addr);
		out->rkey = TAKE(e->rkey);
		out->lkey = TAKE(e->sge[0].lkey);
		out->len = TAKE(e->sge[0].len);
		out->flags = h.flags;
	}
	return k;
}

void
eng_sq_took(void *ctx, struct rd_qp *rd, unsigned n)
{
	struct eng_stage *s = ctx;

	eng_qp_of(rd)->sq.next += n;
	s->spent.messages += n;
}

bool
eng_sq_pending(void *ctx, struct rd_qp *rd)
{
	return shm_take_peek(&eng_qp_of(rd)->sq) != NULL;
}

bool
eng_receive_next(struct shm_take *rq, uint32_t max_sge, struct rd_wr *wr)
{
	const uint8_t *e = shm_take_peek(rq);
	size_t room = rq->stride - SHM_RQE_BASE;
	const struct shm_rqe *rqe = (const struct shm_rqe *)e;

	if (e == NULL)
		return false;
	wr->wr_id = TAKE(rqe->wr_id);
	wr->opcode = RD_RECV;
	wr->flags = 0;
	wr->inline_len = 0;
	wr->nsge = TAKE(rqe->nsge);
	/* Too many SGEs: the receive gets none, so that any payload is too long for it. */
	if (wr->nsge > max_sge || wr->nsge * sizeof(struct rd_sge) > room)
		wr->nsge = 0;
	take_sges(wr, rqe->sge);
	shm_take_pop(rq);
	/* Messages arrive one by one, so each receive is published immediately. */
	shm_take_publish(rq);
	return true;
}

bool
eng_rq_next(void *ctx, struct rd_qp *rd, struct rd_wr *wr)
{
	struct eng_stage *s = ctx;

	s->spent.other += ENG_COST_RECEIVE;
	if (rd->srq != NULL)
		return eng_srq_next(ctx, rd->srq, wr);
	return eng_receive_next(&eng_qp_of(rd)->rq, rd->caps.max_recv_sge, wr);
}
