/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads and Atomics: pull transactions. A Read is divided at each MTU and at each boundary between
 * the elements of its sink (6.7), since a response names one sink.
 */
#include "rof_priv.h"

/* Starts the pull that `h` describes, whose response has `n` bytes of payload. */
static enum rof_step
pull_start(struct rof_qp *q, struct rof_op *op, struct wire_rof *h, uint8_t answer, uint32_t n,
	enum rof_txn_kind kind)
{
	uint32_t response = wire_rof_len(answer | q->transport) + n + wire_rof_pad(n);
	struct rof_msg m = {.kind = ROF_MSG_PULL, .response_len = response};
	struct rof_txn *t;

	switch (rof_chan_room(q->c, q, kind, response)) {
	case ROF_ROOM:
		break;
	case ROF_ROOM_LOST: /* datagram channels have no pulls */
	case ROF_ROOM_LATER:
		return ROF_STEP_WAIT;
	case ROF_ROOM_RING:
		return ROF_STEP_NOBUF;
	}
	h->dest_qp = q->peer_qpn;
	h->sn = q->c->sn;
	h->rkey = op->wr.rkey;
	h->rmsn = q->pull_rmsn;
	m.buf = rof_buf(q->st, h, 0);
	if (m.buf == NULL) {
		rof_chan_unroom(q->c, kind, response);
		return ROF_STEP_NOBUF;
	}
	if (!op->begun)
		rof_req_begin(q, op);
	t = rof_chan_start(q->c, &m, kind);
	t->qp = q;
	t->req = op->req;
	t->sink = h->sink_va;
	t->sink_lkey = h->sink_lkey;
	t->bytes = n;
	q->pull_rmsn++;
	q->pulls_out++;
	rof_req_at(q, op->req)->left++;
	op->sent++;
	return ROF_STEP_DID;
}

/* Returns the element that the next pull fills, and skips those without bytes. */
static const struct rd_sge *
rof_tx_pull_sink_next(struct rof_op *op)
{
	static const struct rd_sge none;

	while (op->sge < op->wr.nsge && op->sge_off == op->wr.sge[op->sge].len) {
		op->sge++;
		op->sge_off = 0;
	}
	return op->sge < op->wr.nsge ? &op->wr.sge[op->sge] : &none;
}

enum rof_step
rof_read_step(struct rof_qp *q, struct rof_op *op)
{
	const struct rd_sge *sge = rof_tx_pull_sink_next(op);
	uint32_t n = SK_MIN(sge->len - op->sge_off, q->mtu);
	struct wire_rof h = {
		.opcode = ROF_READ_REQUEST | q->transport,
		.va = op->wr.remote_addr + op->done,
		.length = n,
		.sink_va = sge->addr + op->sge_off,
		.sink_lkey = sge->lkey,
		.xrc_srq = op->wr.remote_srqn,
	};
	enum rof_step s;

	/* The sink's pages are fetched before the pull, since the length is known here. */
	if (n > 0 && !rof_ready(q, op->mrs[op->sge], h.sink_va, n, sge->len - op->sge_off))
		return ROF_STEP_PAGES;
	s = pull_start(q, op, &h, ROF_READ_RESPONSE_ONLY, n, ROF_TXN_READ);
	if (s != ROF_STEP_DID)
		return s;
	op->done += n;
	op->sge_off += n;
	if (op->wr.opcode == RD_READ_INV)
		rof_req_at(q, op->req)->inv_stag = sge->lkey;
	if (op->done == op->total)
		rof_op_end(q, op);
	return q->phase == ROF_PHASE_OPEN ? ROF_STEP_DID : ROF_STEP_DEAD;
}

/* Checks that the masks select all bits: Falcon's Atomics have none. */
static bool
rof_tx_pull_plain(const struct rd_wr *wr)
{
	if (wr->opcode == RD_FETCH_ADD)
		return wr->data_mask == 0;
	return wr->data_mask == UINT64_MAX && wr->compare_mask == UINT64_MAX;
}

enum rof_step
rof_atomic_step(struct rof_qp *q, struct rof_op *op)
{
	const struct rd_sge *sge = &op->wr.sge[0];
	struct wire_rof h = {
		.opcode = (op->wr.opcode == RD_FETCH_ADD ? ROF_FETCH_ADD : ROF_CMP_SWAP) |
			  q->transport,
		.va = op->wr.remote_addr,
		.swap_add = op->wr.data,
		.compare = op->wr.compare,
		.sink_va = sge->addr,
		.sink_lkey = sge->lkey,
		.xrc_srq = op->wr.remote_srqn,
	};
	enum rof_step s;

	if (op->wr.nsge != 1 || op->total != sizeof(uint64_t))
		return rof_refuse(q, op, RD_LOC_LEN_ERR);
	if (!rof_tx_pull_plain(&op->wr))
		return rof_refuse(q, op, RD_LOC_QP_OP_ERR);
	if (!rof_ready(q, op->mrs[0], sge->addr, sge->len, sge->len))
		return ROF_STEP_PAGES;
	s = pull_start(q, op, &h, ROF_ATOMIC_RESPONSE, 0, ROF_TXN_ATOMIC);
	if (s != ROF_STEP_DID)
		return s;
	op->done = op->total;
	rof_op_end(q, op);
	return q->phase == ROF_PHASE_OPEN ? ROF_STEP_DID : ROF_STEP_DEAD;
}
