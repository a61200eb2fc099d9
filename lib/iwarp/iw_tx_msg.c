/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send queue: one table row per verbs opcode, and the messages with a local payload (Send
 * variants, Write, Immediate Data). A request is checked as a whole before its first byte is sent.
 * A request that continues in a later call is checked again, since its regions may have been
 * destroyed meanwhile.
 */
#include "iw_priv.h"

#include "../base/mem.h"

static enum iw_step message_step(struct iw_qp *q, struct iw_op *op);
static enum iw_step immediate_step(struct iw_qp *q, struct iw_op *op);
static enum iw_step write_imm_step(struct iw_qp *q, struct iw_op *op);

static const struct sq_kind {
	enum iw_step (*step)(struct iw_qp *q, struct iw_op *op); /* NULL: the opcode is refused */
	uint8_t opcode, opcode_se; /* RDMAP opcodes without and with RD_SOLICITED */
	uint8_t need;              /* rights required on the local elements */
} kinds[] = {
	[RD_SEND] = {message_step, RDMAP_SEND, RDMAP_SEND_SE, 0},
	[RD_SEND_INV] = {message_step, RDMAP_SEND_INV, RDMAP_SEND_SE_INV, 0},
	[RD_WRITE] = {message_step, RDMAP_WRITE, RDMAP_WRITE, 0},
	[RD_WRITE_IMM] = {write_imm_step, RDMAP_WRITE, RDMAP_WRITE, 0},
	[RD_READ] = {iw_read_step, RDMAP_READ_REQUEST, RDMAP_READ_REQUEST, RD_ACC_LOCAL_WRITE},
	[RD_READ_INV] = {iw_read_step, RDMAP_READ_REQUEST, RDMAP_READ_REQUEST, RD_ACC_LOCAL_WRITE},
	[RD_CMP_SWAP] = {iw_atomic_step, 0, 0, RD_ACC_LOCAL_WRITE},
	[RD_FETCH_ADD] = {iw_atomic_step, 0, 0, RD_ACC_LOCAL_WRITE},
	[RD_IMM] = {immediate_step, 0, 0, 0},
	[RD_LOCAL_INV] = {iw_local_step, 0, 0, 0},
	[RD_BIND_MW] = {iw_local_step, 0, 0, 0},
	[RD_SWAP] = {iw_atomic_step, 0, 0, RD_ACC_LOCAL_WRITE},
};

static const struct sq_kind *
iw_tx_msg_kind_of(const struct rd_wr *wr)
{
	if (wr->opcode >= SK_ARRAY_LEN(kinds) || kinds[wr->opcode].step == NULL)
		return NULL;
	return &kinds[wr->opcode];
}

enum iw_step
iw_refuse(struct iw_qp *q, struct iw_op *op, enum rd_status status)
{
	op->status = status;
	iw_fail(q, IW_RDMAP_LOCAL, NULL, 0, 0);
	return IW_STEP_DEAD;
}

static enum rd_status
iw_tx_msg_op_check(struct iw_qp *q, struct iw_op *op, const struct sq_kind *k)
{
	enum rd_status s = RD_SUCCESS;

	if (op->wr.opcode == RD_LOCAL_INV || op->wr.opcode == RD_BIND_MW ||
		op->wr.opcode == RD_IMM) {
		op->total = 0;
		return RD_SUCCESS;
	}
	if (k->need && (op->wr.flags & RD_INLINE))
		return RD_LOC_QP_OP_ERR;
	/* With an ORD of 0 the request would wait for ever. */
	if (q->ord == 0 && (k->step == iw_read_step || k->step == iw_atomic_step))
		return RD_LOC_QP_OP_ERR;
	s = rd_sges_check(&q->st->ops.rd, q->rd, &op->wr, k->need, &op->total, op->mrs);
	op->checked = true;
	if (s == RD_SUCCESS && k->step == iw_atomic_step)
		s = iw_atomic_check(q, op);
	return s;
}

/* Takes the next request from the send queue into q->tx_op. */
static enum iw_step
iw_tx_msg_op_next(struct iw_qp *q)
{
	struct iw_stage *st = q->st;
	struct iw_op *op;

	/* A responder that has not received an FPDU must not send one, not even to empty its send
	 * queue. */
	if (q->phase == IW_PHASE_DRAIN && (q->drain_left == 0 || q->hold))
		return IW_STEP_NONE;
	if (q->hold || (!iw_sq_reserve(q) && !(iw_rec_send(q) && iw_sq_reserve(q)))) {
		if (!st->ops.rd.sq_pending(st->ctx, q->rd))
			return IW_STEP_NONE;
		q->want_reads = true;
		return q->hold || q->reads_out > 0 ? IW_STEP_WAIT : IW_STEP_NOBUF;
	}
	op = iw_op_take(st);
	if (op == NULL)
		return IW_STEP_NOBUF;
	if (!st->ops.rd.sq_next(st->ctx, q->rd, &op->wr)) {
		iw_op_release(st, op);
		return IW_STEP_NONE;
	}
	if (q->phase == IW_PHASE_DRAIN)
		q->drain_left--;
	op->taken = st->latency.now;
	op->done = 0;
	op->sge = op->sge_off = 0;
	op->status = RD_WR_FLUSH_ERR;
	op->checked = op->written = false;
	op->local = (struct rd_local){0};
	q->tx_op = op;
	return IW_STEP_DID;
}

enum iw_step
iw_sq_step(struct iw_qp *q)
{
	const struct sq_kind *k;
	enum rd_status status;

	if (q->tx_op == NULL) {
		enum iw_step s = iw_tx_msg_op_next(q);

		if (s != IW_STEP_DID || iw_tx_fast(q, q->tx_op))
			return s;
	}
	k = iw_tx_msg_kind_of(&q->tx_op->wr);
	if (k == NULL)
		return iw_refuse(q, q->tx_op, RD_LOC_QP_OP_ERR);
	if (!q->tx_op->checked) {
		status = iw_tx_msg_op_check(q, q->tx_op, k);
		if (status != RD_SUCCESS)
			return iw_refuse(q, q->tx_op, status);
		q->tx_op->opcode = q->tx_op->wr.flags & RD_SOLICITED ? k->opcode_se : k->opcode;
	}
	if ((q->tx_op->wr.flags & RD_FENCE) && q->midst == IW_MIDST_NONE && q->reads_out > 0) {
		q->want_reads = true;
		return IW_STEP_WAIT;
	}
	return k->step(q, q->tx_op);
}

/* Returns whether the next `n` bytes of the request's elements can be read now. */
static bool
gather_ready(struct iw_qp *q, const struct iw_op *op, uint32_t n)
{
	uint32_t off = op->sge_off;

	if (op->wr.flags & RD_INLINE)
		return true;
	for (uint32_t i = op->sge; n > 0; i++, off = 0) {
		const struct rd_sge *sge = &op->wr.sge[i];
		uint32_t part = SK_MIN(n, sge->len - off);

		if (part > 0 && !iw_ready(q, op->mrs[i], sge->addr + off, part, sge->len - off))
			return false;
		n -= part;
	}
	return true;
}

static void
iw_tx_msg_gather(struct iw_op *op, struct mpa_writer *w, uint32_t n)
{
	if (op->wr.flags & RD_INLINE) {
		mpa_write_put(w, op->wr.inl + op->done, n);
		return;
	}
	while (n > 0) {
		const struct rd_sge *sge = &op->wr.sge[op->sge];
		uint64_t run;
		const uint8_t *p;
		uint32_t part;

		if (op->sge_off == sge->len) {
			op->sge++;
			op->sge_off = 0;
			continue;
		}
		p = rd_mr_at(op->mrs[op->sge], sge->addr + op->sge_off, &run);
		part = SK_MIN(n, sge->len - op->sge_off);
		if (run < part)
			part = (uint32_t)run;
		mpa_write_put(w, p, part);
		op->sge_off += part;
		n -= part;
	}
}

static void
iw_tx_msg_header(const struct iw_qp *q, const struct iw_op *op, struct wire_ddp *d)
{
	d->opcode = op->opcode;
	if (op->opcode == RDMAP_WRITE) {
		d->tagged = true;
		d->stag = op->wr.rkey;
		d->to = op->wr.remote_addr + op->done;
		return;
	}
	d->tagged = false;
	d->inv_stag = op->wr.opcode == RD_SEND_INV ? (uint32_t)op->wr.imm : 0;
	d->qn = DDP_QN_SEND;
	d->msn = q->send_msn;
	d->mo = (uint32_t)op->done;
}

void
iw_message_done(struct iw_qp *q, struct iw_op *op, uint32_t bytes)
{
	q->irq_turn = true;
	q->info.msgs_out++;
	q->tx_op = NULL;
	iw_sq_done(q, op, bytes);
	iw_op_release(q->st, op);
}

/* Builds the next segment of a Send or Write. */
static enum iw_step
message_step(struct iw_qp *q, struct iw_op *op)
{
	uint32_t hdr_len = op->opcode == RDMAP_WRITE ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
	uint32_t n = iw_seg_len(q, hdr_len, op->total - op->done);
	struct mpa_writer w;
	struct wire_ddp d;

	if (!gather_ready(q, op, n))
		return IW_STEP_PAGES;
	if (!iw_rec_room(q, hdr_len + n))
		return IW_STEP_NOBUF;
	iw_tx_msg_header(q, op, &d);
	d.last = op->done + n == op->total;
	iw_emit_begin(q, &w, &d, n);
	if (n > 0)
		iw_tx_msg_gather(op, &w, n);
	iw_emit_end(q, &w);
	op->done += n;
	q->info.bytes_out += n;
	q->midst = IW_MIDST_SQ;
	if (!d.last)
		return IW_STEP_DID;
	/* Immediate Data follows the Write, without a message between them. */
	if (op->wr.opcode == RD_WRITE_IMM) {
		op->written = true;
		q->info.msgs_out++;
		return IW_STEP_DID;
	}
	if (!d.tagged)
		q->send_msn++;
	q->midst = IW_MIDST_NONE;
	iw_message_done(q, op, (uint32_t)op->total);
	return IW_STEP_DID;
}

/* Builds Immediate Data (RFC 7306 6). */
static enum iw_step
immediate_step(struct iw_qp *q, struct iw_op *op)
{
	bool se = op->wr.flags & RD_SOLICITED;
	struct wire_ddp d = {
		.last = true,
		.opcode = se ? RDMAP_IMMEDIATE_SE : RDMAP_IMMEDIATE,
		.qn = DDP_QN_SEND,
		.msn = q->send_msn,
	};
	uint8_t body[RDMAP_IMMEDIATE_LEN];

	if (!iw_rec_room(q, DDP_UNTAGGED_LEN + RDMAP_IMMEDIATE_LEN))
		return IW_STEP_NOBUF;
	iw_emit(q, &d, body, wire_immediate_emit(body, op->wr.imm));
	q->send_msn++;
	q->midst = IW_MIDST_NONE;
	iw_message_done(q, op, (uint32_t)op->total);
	return IW_STEP_DID;
}

/* Builds the next part of a Write with Immediate: two messages, one request (RFC 7306 1). */
static enum iw_step
write_imm_step(struct iw_qp *q, struct iw_op *op)
{
	return op->written ? immediate_step(q, op) : message_step(q, op);
}
