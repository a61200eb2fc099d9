/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends, Writes and datagrams: one push transaction for each MTU of the message (6.7). Each packet
 * contains its own place in the message or in memory, so that the target can place them in any
 * order.
 */
#include "rof_priv.h"

/* The place of a packet in its message. */
enum place { FIRST, MIDDLE, LAST, ONLY };

static const uint8_t opcodes[][4] = {
	[RD_SEND] = {ROF_SEND_FIRST, ROF_SEND_MIDDLE, ROF_SEND_LAST, ROF_SEND_ONLY},
	[RD_SEND_INV] = {ROF_SEND_FIRST, ROF_SEND_MIDDLE, ROF_SEND_LAST_INV, ROF_SEND_ONLY_INV},
	[RD_SEND_IMM] = {ROF_SEND_FIRST, ROF_SEND_MIDDLE, ROF_SEND_LAST_IMM, ROF_SEND_ONLY_IMM},
	[RD_WRITE] = {ROF_WRITE_FIRST, ROF_WRITE_MIDDLE, ROF_WRITE_LAST, ROF_WRITE_ONLY},
	[RD_WRITE_IMM] = {ROF_WRITE_FIRST, ROF_WRITE_MIDDLE, ROF_WRITE_LAST_IMM,
		ROF_WRITE_ONLY_IMM},
};

/* Returns whether the message takes a receive at the target, and has an RMSN therefore (8.3.2). */
static bool
takes_receive(const struct rd_wr *wr)
{
	return wr->opcode != RD_WRITE;
}

static void
rof_tx_push_header(const struct rof_qp *q, const struct rof_op *op, const struct rof_chan *c,
	uint32_t n, struct wire_rof *h)
{
	bool last = op->failing || op->done + n == op->total;
	enum place place = op->sent == 0 ? (last ? ONLY : FIRST) : (last ? LAST : MIDDLE);
	const struct rd_wr *wr = &op->wr;

	*h = (struct wire_rof){
		.opcode = opcodes[wr->opcode][place] | q->transport,
		.ce = op->failing,
		.se = last && takes_receive(wr) && (wr->flags & RD_SOLICITED),
		.pad = wire_rof_pad(n),
		.dest_qp = q->transport == ROF_UD ? wr->remote_qpn : q->peer_qpn,
		.sn = c->sn,
		.va = wr->remote_addr + op->done,
		.rkey = wr->rkey,
		.length = (uint32_t)op->total,
		.rmsn = q->send_rmsn,
		.offset = (uint32_t)op->done,
		.imm = (uint32_t)wr->imm,
		.inv_rkey = (uint32_t)wr->imm,
		.xrc_srq = wr->remote_srqn,
		.qkey = wr->remote_qkey,
		.src_qp = q->rd->qpn,
	};
}

/* Appends the next `n` bytes of the request's elements. */
static void
rof_tx_push_gather(const struct rof_stage *st, struct rof_op *op, struct fa_buf *b, uint32_t n)
{
	if (op->wr.flags & RD_INLINE) {
		rof_append(st, b, op->wr.inl + op->done, n);
		return;
	}
	while (n > 0) {
		const struct rd_sge *sge = &op->wr.sge[op->sge];
		uint32_t part;

		if (op->sge_off == sge->len) {
			op->sge++;
			op->sge_off = 0;
			continue;
		}
		part = SK_MIN(n, sge->len - op->sge_off);
		rof_gather(st, b, op->mrs[op->sge], sge->addr + op->sge_off, part);
		op->sge_off += part;
		n -= part;
	}
}

/* Returns whether the next `n` bytes of the request's elements can be read now. */
static bool
rof_tx_push_ready(struct rof_qp *q, const struct rof_op *op, uint32_t n)
{
	uint32_t off = op->sge_off;

	if (op->wr.flags & RD_INLINE)
		return true;
	for (uint32_t i = op->sge; n > 0; i++, off = 0) {
		const struct rd_sge *sge = &op->wr.sge[i];
		uint32_t part = SK_MIN(n, sge->len - off);

		if (!rof_ready(q, op->mrs[i], sge->addr + off, part, sge->len - off))
			return false;
		n -= part;
	}
	return true;
}

/* Returns the channel of a request, or NULL when the address handle names none. */
static struct rof_chan *
channel(struct rof_qp *q, const struct rof_op *op)
{
	return q->c != NULL ? q->c : q->st->ops.ud_chan(q->st->ctx, q, op->wr.ah);
}

static void
packet_started(struct rof_qp *q, struct rof_op *op, struct rof_txn *t, uint32_t n)
{
	if (!op->begun)
		rof_req_begin(q, op);
	t->qp = q;
	if (q->transport == ROF_UD)
		LIST_INSERT_HEAD(&q->datagrams, t, of_qp);
	t->req = op->req;
	rof_req_at(q, op->req)->left++;
	op->sent++;
	op->done += n;
	q->info.bytes_out += n;
	if (!op->failing && op->done < op->total)
		return;
	if (takes_receive(&op->wr))
		q->send_rmsn++;
	rof_op_end(q, op);
}

/* Completes a datagram that is lost before it is sent, as one that the network loses. */
static enum rof_step
rof_tx_push_lost(struct rof_qp *q, struct rof_op *op)
{
	rof_count(q->st, ROF_UD_LOST);
	rof_req_begin(q, op);
	rof_op_end(q, op);
	return q->phase == ROF_PHASE_OPEN ? ROF_STEP_DID : ROF_STEP_DEAD;
}

enum rof_step
rof_push_step(struct rof_qp *q, struct rof_op *op)
{
	uint32_t n = op->failing ? 0 : (uint32_t)SK_MIN(op->total - op->done, q->mtu);
	struct rof_msg m = {.kind = ROF_MSG_PUSH};
	struct rof_chan *c = channel(q, op);
	struct wire_rof h;

	if (c == NULL)
		return rof_refuse(q, op, RD_LOC_QP_OP_ERR);
	/* The path to a datagram's host may have a smaller MTU than the QP. */
	if (n > c->p.mtu)
		return rof_refuse(q, op, RD_LOC_LEN_ERR);
	if (!rof_tx_push_ready(q, op, n))
		return ROF_STEP_PAGES;
	rof_tx_push_header(q, op, c, n, &h);
	switch (rof_chan_room(c, q, ROF_TXN_PUSH, wire_rof_len(h.opcode) + n + h.pad)) {
	case ROF_ROOM:
		break;
	case ROF_ROOM_LATER:
		return ROF_STEP_WAIT;
	case ROF_ROOM_RING:
		return ROF_STEP_NOBUF;
	case ROF_ROOM_LOST:
		return rof_tx_push_lost(q, op);
	}
	m.buf = rof_buf(q->st, &h, n);
	if (m.buf == NULL) {
		rof_chan_unroom(c, ROF_TXN_PUSH, wire_rof_len(h.opcode) + n + h.pad);
		return ROF_STEP_NOBUF;
	}
	rof_sum_begin(c, m.buf, n);
	rof_tx_push_gather(q->st, op, m.buf, n);
	rof_pad(q->st, m.buf, h.pad);
	packet_started(q, op, rof_chan_start(c, &m, ROF_TXN_PUSH), n);
	return q->phase == ROF_PHASE_OPEN ? ROF_STEP_DID : ROF_STEP_DEAD;
}

/* Ends a request that cannot continue after some of its packets. In the complete-in-error mode its
 * last packet informs the peer that the message is void (8.2, CE). */
enum rof_step
rof_abandon(struct rof_qp *q, struct rof_op *op, enum rd_status status)
{
	bool push = op->wr.opcode <= RD_WRITE_IMM;

	if (q->errors == ROF_ERRORS_VERBS || !push)
		return rof_refuse(q, op, status);
	if (!op->failing) {
		struct rof_req *r = rof_req_at(q, op->req);

		rof_count(q->st, ROF_LOCAL_FAULT);
		if (r->status == RD_SUCCESS)
			r->status = (uint8_t)status;
		op->failing = true;
	}
	return rof_push_step(q, op);
}
