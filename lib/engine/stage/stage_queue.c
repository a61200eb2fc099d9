/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests from shared memory. The stage copies each entry once, and checks all lengths in the
 * copy before it uses them. It does not see what a client writes into an entry later, and an
 * invalid entry affects only the client's own QP.
 */
#include <string.h>

#include "stage_priv.h"

/* An opcode that no transport supports: the request completes in error. */
#define BAD_OPCODE 0xff

static bool
is_atomic(uint8_t opcode)
{
	return opcode == RD_CMP_SWAP || opcode == RD_FETCH_ADD || opcode == RD_SWAP;
}

/* Reads a field once, in the width in which the client wrote it. */
#define TAKE(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

static void
take_fixed(struct rd_wr *wr, const struct shm_sqe *e)
{
	wr->wr_id = TAKE(e->wr_id);
	wr->opcode = TAKE(e->opcode);
	wr->flags = TAKE(e->flags);
	wr->nsge = TAKE(e->nsge);
	wr->rkey = TAKE(e->rkey);
	wr->remote_addr = TAKE(e->remote_addr);
	wr->imm = TAKE(e->imm);
	wr->inline_len = TAKE(e->inline_len);
	wr->data = TAKE(e->data);
	wr->compare = TAKE(e->compare);
}

/* Copies the destination of a request that the connection does not determine. */
static void
take_address(struct rd_wr *wr, const struct shm_sqe *e)
{
	wr->ah = TAKE(e->ah);
	wr->remote_srqn = TAKE(e->remote_srqn);
	wr->remote_qpn = (uint32_t)wr->remote_addr;
	wr->remote_qkey = (uint32_t)(wr->remote_addr >> 32);
}

static void
take_sges(struct rd_wr *wr, const struct rd_sge *sge)
{
	for (unsigned i = 0; i < wr->nsge; i++) {
		wr->sge[i].addr = TAKE(sge[i].addr);
		wr->sge[i].len = TAKE(sge[i].len);
		wr->sge[i].lkey = TAKE(sge[i].lkey);
	}
}

/* Copies the SGEs, masks or inline data behind the fixed part, `room` bytes. Returns false when the
 * request exceeds the limits of the QP. */
static bool
take_tail(struct rd_wr *wr, const uint8_t *tail, uint32_t room, const struct rd_qp_caps *caps)
{
	const size_t masks = offsetof(struct shm_sqe, atomic.data_mask) - SHM_SQE_BASE;
	size_t len = wr->nsge * sizeof(struct rd_sge);

	if (wr->flags & RD_INLINE) {
		if (wr->inline_len > caps->max_inline || wr->inline_len > room)
			return false;
		memcpy(wr->inl, tail, wr->inline_len);
		return true;
	}
	if (wr->nsge > caps->max_send_sge || len > room)
		return false;
	take_sges(wr, (const struct rd_sge *)tail);
	if (!is_atomic(wr->opcode))
		return true;
	if (wr->nsge != 1 || room < masks + 2 * sizeof(uint64_t))
		return false;
	memcpy(&wr->data_mask, tail + masks, sizeof(uint64_t));
	memcpy(&wr->compare_mask, tail + masks + sizeof(uint64_t), sizeof(uint64_t));
	return true;
}

bool
eng_sq_next(void *ctx, struct rd_qp *rd, struct rd_wr *wr)
{
	struct eng_qp *qp = eng_qp_of(rd);
	const uint8_t *e = shm_take_peek(&qp->sq);
	struct eng_stage *s = ctx;

	if (e == NULL)
		return false;
	s->spent.messages++;
	take_fixed(wr, (const struct shm_sqe *)e);
	if (qp->type != SHM_RC)
		take_address(wr, (const struct shm_sqe *)e);
	if (!take_tail(wr, e + SHM_SQE_BASE, qp->sq.stride - SHM_SQE_BASE, &rd->caps)) {
		wr->opcode = BAD_OPCODE;
		wr->nsge = 0;
		wr->inline_len = 0;
	}
	shm_take_pop(&qp->sq);
	return true;
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
