/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Outgoing Atomic Requests, and execution of the peer's Atomics with their answers (RFC 7306 5).
 * The room for the answer is reserved first, since an Atomic that has been executed must be
 * answered.
 */
#include "iw_priv.h"

#include "../rdma/atomic.h"

enum rd_status
iw_atomic_check(const struct iw_qp *q, const struct iw_op *op)
{
	if (op->wr.opcode == RD_SWAP && !q->draft_ext)
		return RD_LOC_QP_OP_ERR;
	if (op->wr.nsge != 1 || op->total != sizeof(uint64_t))
		return RD_LOC_LEN_ERR;
	return RD_SUCCESS;
}

/* Fills in an Atomic Request. The fields that an operation does not use have fixed values (RFC 7306
 * 5.2.1). */
static void
request_fill(const struct iw_qp *q, const struct rd_wr *wr, struct wire_atomic_request *ar)
{
	*ar = (struct wire_atomic_request){
		.op = RDMAP_FETCH_ADD,
		.request_id = q->atomic_next,
		.stag = wr->rkey,
		.to = wr->remote_addr,
		.data = wr->data,
		.data_mask = wr->data_mask,
		.compare_mask = ~0ull,
	};
	if (wr->opcode == RD_CMP_SWAP) {
		ar->op = RDMAP_CMP_SWAP;
		ar->compare = wr->compare;
		ar->compare_mask = wr->compare_mask;
	} else if (wr->opcode == RD_SWAP) {
		ar->op = RDMAP_SWAP;
		ar->data_mask = ~0ull;
	}
}

static void
iw_tx_atomic_request_track(struct iw_qp *q, const struct iw_op *op)
{
	const struct rd_wr *wr = &op->wr;
	struct iw_sqe *e = iw_sq_push(q);

	*e = (struct iw_sqe){
		.wr_id = wr->wr_id,
		.to = wr->sge[0].addr,
		.stag = wr->sge[0].lkey,
		.total = sizeof(uint64_t),
		.opcode = wr->opcode,
		.flags = IW_SQE_READ | IW_SQE_ATOMIC | IW_SQE_LAST,
	};
	if (iw_signaled(q, wr))
		e->flags |= IW_SQE_SIGNALED;
	if (rd_sample_due(&q->sample))
		iw_sq_sample(q, e, op->taken);
}

enum iw_step
iw_atomic_step(struct iw_qp *q, struct iw_op *op)
{
	uint8_t body[RDMAP_ATOMIC_REQUEST_LEN];
	struct wire_atomic_request ar;

	if (!iw_request_may(q))
		return IW_STEP_WAIT;
	if (!iw_rec_room(q, DDP_UNTAGGED_LEN + RDMAP_ATOMIC_REQUEST_LEN))
		return IW_STEP_NOBUF;
	request_fill(q, &op->wr, &ar);
	iw_request_emit(q, RDMAP_ATOMIC_REQUEST, body, wire_atomic_request_emit(body, &ar));
	iw_tx_atomic_request_track(q, op);
	q->atomic_next++;
	q->irq_turn = true;
	q->info.msgs_out++;
	q->tx_op = NULL;
	iw_op_release(q->st, op);
	return IW_STEP_DID;
}

static bool
iw_tx_atomic_execute(const struct iw_irqe *e, uint64_t *word, uint64_t *original)
{
	switch (e->op) {
	case RDMAP_FETCH_ADD:
		return rd_fetch_add(word, e->data, e->data_mask, original);
	case RDMAP_CMP_SWAP:
		return rd_cmp_swap(
			word, e->data, e->data_mask, e->compare, e->compare_mask, original);
	default:
		*original = rd_swap(word, e->data);
		return true;
	}
}

enum iw_step
iw_atomic_answer(struct iw_qp *q, const struct iw_irqe *e)
{
	struct wire_ddp d = {
		.last = true,
		.opcode = RDMAP_ATOMIC_RESPONSE,
		.qn = DDP_QN_ATOMIC,
		.msn = q->answer_msn,
	};
	struct wire_atomic_response r = {.request_id = e->request_id};
	uint8_t body[RDMAP_ATOMIC_RESPONSE_LEN];
	uint64_t *word, at = e->src_to;
	struct rd_mr *mr;

	if (!iw_rec_room(q, DDP_UNTAGGED_LEN + RDMAP_ATOMIC_RESPONSE_LEN))
		return IW_STEP_NOBUF;
	/* Checks the target again: it may have been invalidated since the request arrived. */
	if (rd_remote_check(q->st->ops.rd.mrs, q->rd, e->src_stag, &at, sizeof(uint64_t),
		    RD_ACC_REMOTE_ATOMIC, &mr) != RD_OK)
		return iw_irq_fail(q, e, IW_RDMAP_STAG);
	if (!iw_ready(q, mr, at, sizeof(uint64_t), sizeof(uint64_t)))
		return IW_STEP_PAGES;
	word = rd_atomic_word(mr, at);
	if (word == NULL)
		return iw_irq_fail(q, e, IW_ATOMIC_UNALIGNED);
	if (!iw_tx_atomic_execute(e, word, &r.original))
		return iw_irq_fail(q, e, IW_ATOMIC_CONTENDED);
	iw_emit(q, &d, body, wire_atomic_response_emit(body, &r));
	q->answer_msn++;
	q->irq_turn = false;
	q->irq.head++;
	q->info.msgs_out++;
	q->info.bytes_out += sizeof(r.original);
	return IW_STEP_DID;
}
