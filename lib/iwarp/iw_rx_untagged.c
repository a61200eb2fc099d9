/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Untagged segments: Send variants, Immediate Data and Read Request. TCP delivers in order and
 * messages are not interleaved, so the next message sequence number and offset are known exactly;
 * any other value is an error (RFC 5041 7.1).
 */
#include "iw_priv.h"

#include "../base/mem.h"

#include <stdlib.h>

static bool
invalidates(const struct wire_ddp *d)
{
	return d->opcode == RDMAP_SEND_INV || d->opcode == RDMAP_SEND_SE_INV;
}

static bool
solicited(const struct wire_ddp *d)
{
	return d->opcode == RDMAP_SEND_SE || d->opcode == RDMAP_SEND_SE_INV ||
	       d->opcode == RDMAP_IMMEDIATE_SE;
}

/* Checks that the peer may invalidate the STag: it must have had a right to access it. */
static int
invalidate_check(const struct iw_qp *q, uint32_t stag, struct rd_mr **mr)
{
	switch (rd_invalidate_check(q->st->ops.rd.mrs, q->rd, stag, true, mr)) {
	case RD_OK:
		return IW_NONE;
	case RD_FAULT_STAG:
		return IW_RDMAP_STAG;
	case RD_FAULT_PD:
		return IW_RDMAP_STREAM;
	default:
		return IW_RDMAP_CANNOT_INV;
	}
}

/* Takes the receive that the first segment of a Send, or Immediate Data, consumes. */
static int
receive_start(struct iw_qp *q, const struct wire_ddp *d)
{
	struct iw_stage *st = q->st;
	struct iw_op *op;

	op = iw_op_take(st);
	if (op == NULL)
		return IW_RDMAP_CATASTROPHIC_STREAM;
	if (!st->ops.rd.rq_next(st->ctx, q->rd, &op->wr)) {
		iw_op_release(st, op);
		return IW_DDP_U_NO_BUFFER;
	}
	op->total = 0;
	for (unsigned i = 0; i < op->wr.nsge; i++)
		op->total += op->wr.sge[i].len;
	op->done = 0;
	op->sge = op->sge_off = 0;
	op->status = RD_WR_FLUSH_ERR;
	op->opcode = d->opcode;
	op->inv_stag = d->inv_stag;
	q->rx_op = op;
	return IW_NONE;
}

/* Checks the elements that the next `n` bytes touch. All of them must be valid before any byte is
 * placed. */
static bool
elements_check(struct iw_qp *q, struct iw_op *op, uint32_t n)
{
	uint32_t off = op->sge_off;

	for (uint32_t i = op->sge; n > 0; i++, off = 0) {
		const struct rd_sge *sge = &op->wr.sge[i];
		uint32_t part = SK_MIN(n, sge->len - off);

		if (rd_mr_check(q->st->ops.rd.mrs, q->rd->pd, q->rd->qpn, sge->lkey,
			    sge->addr + off, part, RD_ACC_LOCAL_WRITE, &op->mrs[i]) != RD_OK)
			return false;
		n -= part;
	}
	return true;
}

/* Returns whether the memory that the next `n` bytes fill is present. */
static bool
elements_ready(struct iw_qp *q, const struct iw_op *op, uint32_t n)
{
	uint32_t off = op->sge_off;

	for (uint32_t i = op->sge; n > 0; i++, off = 0) {
		const struct rd_sge *sge = &op->wr.sge[i];
		uint32_t part = SK_MIN(n, sge->len - off);

		if (part > 0 && !iw_ready(q, op->mrs[i], sge->addr + off, part,
					SK_MIN(sge->len - off, q->mrx.have)))
			return false;
		n -= part;
	}
	return true;
}

static void
scatter(struct iw_op *op, const struct mpa_fpdu *f, uint32_t off, uint32_t n)
{
	while (n > 0) {
		const struct rd_sge *sge = &op->wr.sge[op->sge];
		uint32_t part = SK_MIN(n, sge->len - op->sge_off);

		if (part > 0)
			iw_place(f, off, op->mrs[op->sge], sge->addr + op->sge_off, part);
		off += part;
		n -= part;
		op->sge_off += part;
		if (op->sge_off == sge->len) {
			op->sge++;
			op->sge_off = 0;
		}
	}
}

/* Completes the receive whose message ends with the segment `d`. */
static void
receive_done(struct iw_qp *q, const struct wire_ddp *d, struct rd_wc *wc)
{
	struct iw_op *op = q->rx_op;

	wc->wr_id = op->wr.wr_id;
	wc->qpn = q->rd->qpn;
	wc->status = RD_SUCCESS;
	if (solicited(d))
		wc->flags |= RD_WC_SOLICITED;
	q->rx_op = NULL;
	q->recv_msn++;
	q->info.msgs_in++;
	q->write_len = 0;
	q->st->ops.rd.complete(q->st->ctx, q->rd, true, wc);
	iw_op_release(q->st, op);
}

static void
send_done(struct iw_qp *q, const struct wire_ddp *d)
{
	struct rd_wc wc = {.opcode = RD_RECV, .byte_len = (uint32_t)q->rx_op->done};

	if (invalidates(d)) {
		wc.flags |= RD_WC_INV;
		wc.inv_stag = q->rx_op->inv_stag;
	}
	receive_done(q, d, &wc);
}

/* Checks the message sequence number, the offset in the message and the opcode. */
static int
iw_rx_untagged_send_order(struct iw_qp *q, const struct wire_ddp *d)
{
	const struct iw_op *op = q->rx_op;

	if (d->msn != q->recv_msn)
		return IW_DDP_U_MSN;
	if (d->mo != (op != NULL ? op->done : 0))
		return IW_DDP_U_MO;
	if (op != NULL && op->opcode != d->opcode)
		return IW_RDMAP_OPCODE;
	return IW_NONE;
}

static int
iw_rx_untagged_refuse(struct iw_qp *q, enum rd_status status, int reason)
{
	q->rx_op->status = status;
	return reason;
}

int
iw_rx_send(struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head)
{
	uint32_t n = f->ulpdu_len - DDP_UNTAGGED_LEN;
	struct rd_mr *inv = NULL;
	struct iw_op *op;
	int reason;

	reason = iw_rx_untagged_send_order(q, d);
	if (reason)
		return reason;
	if (q->swallow_rtr && n == 0 && d->last && d->opcode == RDMAP_SEND) {
		q->recv_msn++;
		return IW_NONE;
	}
	if (q->rx_op == NULL) {
		reason = receive_start(q, d);
		if (reason)
			return reason;
	}
	op = q->rx_op;
	if (n > op->total - op->done || op->done + n > RD_MAX_MSG)
		return iw_rx_untagged_refuse(q, RD_LOC_LEN_ERR, IW_DDP_U_TOO_LONG);
	if (invalidates(d)) {
		reason = invalidate_check(q, op->inv_stag, &inv);
		if (reason)
			return iw_rx_untagged_refuse(q, RD_REM_INV_REQ_ERR, reason);
	}
	if (!elements_check(q, op, n))
		return iw_rx_untagged_refuse(q, RD_LOC_PROT_ERR, IW_DDP_LOCAL);
	if (!elements_ready(q, op, n))
		return IW_RX_LATER;
	scatter(op, f, DDP_UNTAGGED_LEN, n);
	op->done += n;
	q->info.bytes_in += n;
	if (!d->last)
		return IW_NONE;
	if (inv != NULL && !q->st->ops.rd.invalidate(q->st->ctx, inv))
		return iw_rx_untagged_refuse(q, RD_REM_INV_REQ_ERR, IW_RDMAP_CANNOT_INV);
	send_done(q, d);
	return IW_NONE;
}

/* Handles Immediate Data (RFC 7306 6). It consumes a receive without touching the receive's
 * elements; the completion carries the 8 bytes. Behind a Write, the completion also carries the
 * number of bytes written, as verbs require. */
int
iw_rx_immediate(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head)
{
	struct rd_wc wc = {
		.opcode = RD_RECV_IMM,
		.flags = RD_WC_IMM,
		.byte_len = q->write_open ? 0 : q->write_len,
	};
	uint32_t n = f->ulpdu_len - DDP_UNTAGGED_LEN;
	int reason = iw_rx_untagged_send_order(q, d);

	if (reason)
		return reason;
	if (n != RDMAP_IMMEDIATE_LEN || !d->last)
		return IW_EXT_LENGTH;
	wire_immediate_parse(&wc.imm, head + DDP_UNTAGGED_LEN, n);
	reason = receive_start(q, d);
	if (reason)
		return reason;
	receive_done(q, d, &wc);
	return IW_NONE;
}

enum iw_reason
iw_rdmap_reason(enum rd_fault fault)
{
	static const uint8_t reasons[] = {
		[RD_FAULT_STAG] = IW_RDMAP_STAG,
		[RD_FAULT_PD] = IW_RDMAP_STREAM,
		[RD_FAULT_ACCESS] = IW_RDMAP_ACCESS,
		[RD_FAULT_BOUNDS] = IW_RDMAP_BOUNDS,
		[RD_FAULT_WRAP] = IW_RDMAP_WRAP,
	};

	return (enum iw_reason)reasons[fault];
}

static int
read_check(const struct iw_qp *q, const struct wire_read_request *rr)
{
	uint64_t at = rr->src_to;
	enum rd_fault fault;
	struct rd_mr *mr;

	if (rr->len == 0)
		return IW_NONE;
	fault = rd_remote_check(
		q->st->ops.rd.mrs, q->rd, rr->src_stag, &at, rr->len, RD_ACC_REMOTE_READ, &mr);
	if (fault != RD_OK)
		return iw_rdmap_reason(fault);
	if (rr->sink_to + (rr->len - 1) < rr->sink_to)
		return IW_RDMAP_WRAP;
	return IW_NONE;
}

static bool
irq_grow(struct iw_irq *irq)
{
	uint32_t cap = irq->cap ? 2 * irq->cap : IW_RING_MIN;
	struct iw_irqe *e = malloc(cap * sizeof(*e));

	if (e == NULL)
		return false;
	for (uint32_t i = irq->head; i != irq->tail; i++)
		e[i & (cap - 1)] = irq->e[i & (irq->cap - 1)];
	free(irq->e);
	irq->e = e;
	irq->cap = cap;
	return true;
}

int
iw_irq_reserve(struct iw_qp *q, struct iw_irqe **e)
{
	struct iw_irq *irq = &q->irq;
	uint32_t used = irq->tail - irq->head;

	if (used >= q->ird)
		return IW_IRD_EXCEEDED;
	if (used == irq->cap && !irq_grow(irq))
		return IW_RDMAP_CATASTROPHIC_STREAM;
	*e = &irq->e[irq->tail & (irq->cap - 1)];
	return IW_NONE;
}

void
iw_irq_push(struct iw_qp *q)
{
	q->irq.tail++;
	q->irq_msn++;
	q->info.msgs_in++;
	q->kick = true;
}

int
iw_rx_queue1(const struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d,
	uint32_t want, enum iw_reason too_short)
{
	uint32_t n = f->ulpdu_len - DDP_UNTAGGED_LEN;

	if (d->msn != q->irq_msn)
		return IW_DDP_U_MSN;
	if (d->mo != 0)
		return IW_DDP_U_MO;
	if (n > want || !d->last)
		return IW_DDP_U_TOO_LONG;
	return n < want ? (int)too_short : IW_NONE;
}

int
iw_rx_read_request(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head)
{
	int reason = iw_rx_queue1(q, f, d, RDMAP_READ_REQUEST_LEN, IW_RDMAP_UNSPECIFIED);
	struct wire_read_request rr;
	struct iw_irqe *e;

	if (reason)
		return reason;
	wire_read_request_parse(&rr, head + DDP_UNTAGGED_LEN, RDMAP_READ_REQUEST_LEN);
	reason = iw_irq_reserve(q, &e);
	if (reason)
		return reason;
	reason = read_check(q, &rr);
	if (reason)
		return reason;
	*e = (struct iw_irqe){
		.sink_to = rr.sink_to,
		.src_to = rr.src_to,
		.sink_stag = rr.sink_stag,
		.src_stag = rr.src_stag,
		.len = rr.len,
	};
	iw_irq_push(q);
	return IW_NONE;
}
