/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends in, and the receives that they fill. A message names its receive by number (RMSN), so that
 * its packets may arrive in any order among those of others. Receives complete in the order of
 * their numbers, and not before all packets sent before them have arrived, unless the mode promises
 * no order.
 */
#include "rof_priv.h"

#include <stdlib.h>

/* Marks the place of a receive that completed before one with a lower number, and of a message that
 * was refused before it had a receive. */
static struct rof_recv completed;

/* ---- Receives ---- */

struct rof_recv *
rof_recv_take(struct rof_stage *st)
{
	struct rof_recv *r = st->spare_recv;

	if (r == NULL)
		return malloc(sizeof(*r));
	st->spare_recv = r->next;
	st->spare_recvs--;
	return r;
}

void
rof_recv_put(struct rof_stage *st, struct rof_recv *r)
{
	if (st->spare_recvs == ROF_SPARE_RECVS) {
		free(r);
		return;
	}
	r->next = st->spare_recv;
	st->spare_recv = r;
	st->spare_recvs++;
}

/* Takes a receive from the queue that the packet names. */
static enum rof_reason
queue_next(struct rof_qp *q, const struct rof_in *in, struct rd_wr *wr)
{
	struct rof_stage *st = q->st;
	int got;

	if (q->transport == ROF_XRC) {
		got = st->ops.xrc_next(st->ctx, q, in->h.xrc_srq, wr);
		if (got < 0)
			return ROF_XRC_SRQ;
	} else {
		got = st->ops.rd.rq_next(st->ctx, q->rd, wr);
	}
	return got ? ROF_NONE : ROF_NO_RECEIVE;
}

static enum rof_reason
recv_open(struct rof_qp *q, const struct rof_in *in, struct rof_recv **slot)
{
	struct rof_recv *r = rof_recv_take(q->st);
	enum rof_reason reason;

	if (r == NULL)
		return ROF_NO_BUFFER;
	reason = queue_next(q, in, &r->wr);
	if (reason != ROF_NONE) {
		rof_recv_put(q->st, r);
		return reason;
	}
	r->room = r->got = 0;
	r->srqn = q->transport == ROF_XRC ? in->h.xrc_srq : 0;
	r->len = UINT64_MAX;
	r->status = RD_SUCCESS;
	r->wc = (struct rd_wc){
		.wr_id = r->wr.wr_id, .qpn = q->rd->qpn, .opcode = RD_RECV, .status = RD_SUCCESS};
	for (unsigned i = 0; i < r->wr.nsge; i++)
		r->room += r->wr.sge[i].len;
	*slot = r;
	return ROF_NONE;
}

static bool
recvs_there(struct rof_qp *q)
{
	if (q->recvs == NULL)
		q->recvs = calloc(ROF_RECVS, sizeof(*q->recvs));
	return q->recvs != NULL;
}

/* The queue's receives belong to messages in the order of their numbers; with XRC, each message
 * names its queue. */
enum rof_reason
rof_recv_get(struct rof_qp *q, const struct rof_in *in, struct rof_recv **out)
{
	uint32_t rmsn = in->h.rmsn, ahead = rmsn - q->recv_base;
	enum rof_reason reason;

	if (ahead >= ROF_SN_WINDOW || (ahead > 0 && q->ordering == ROF_ORDER_STRONG))
		return ROF_SEQUENCE;
	/* Those before it may wait for a packet that is still missing. */
	if (ahead >= ROF_RECVS || !recvs_there(q))
		return ROF_NO_BUFFER;
	if (q->transport == ROF_XRC && q->recvs[rmsn % ROF_RECVS] == NULL) {
		reason = recv_open(q, in, &q->recvs[rmsn % ROF_RECVS]);
		if (reason != ROF_NONE)
			return reason;
	}
	while (q->transport != ROF_XRC && (int32_t)(rmsn - q->recv_taken) >= 0) {
		struct rof_recv **slot = &q->recvs[q->recv_taken % ROF_RECVS];

		reason = *slot != NULL ? ROF_NONE : recv_open(q, in, slot);
		if (reason != ROF_NONE)
			return reason;
		q->recv_taken++;
	}
	*out = q->recvs[rmsn % ROF_RECVS];
	return *out == &completed ? ROF_SEQUENCE : ROF_NONE;
}

static bool
is_whole(const struct rof_qp *q, const struct rof_recv *r)
{
	if (r->got < r->len)
		return false;
	return q->ordering != ROF_ORDER_WEAK || rof_sn_reached(q->c, r->last_sn);
}

bool
rof_xrc_use(struct rof_qp *q, uint32_t srqn)
{
	const struct rd_pd *pd;

	if (q->transport != ROF_XRC)
		return true;
	pd = q->st->ops.xrc_pd(q->st->ctx, q, srqn);
	if (pd != NULL)
		q->rd->pd = pd;
	return pd != NULL;
}

static void
recv_complete(struct rof_qp *q, const struct rof_recv *r)
{
	if (q->transport == ROF_XRC)
		q->st->ops.xrc_complete(q->st->ctx, q, r->srqn, &r->wc);
	else
		q->st->ops.rd.complete(q->st->ctx, q->rd, true, &r->wc);
}

/* Invalidates the rkey that the message names, then completes its receive. */
static void
recv_done(struct rof_qp *q, struct rof_recv *r)
{
	const struct rd_ops *rd = &q->st->ops.rd;
	struct rd_mr *mr;

	if (r->status == RD_SUCCESS && (r->wc.flags & RD_WC_INV) &&
		(!rof_xrc_use(q, r->srqn) ||
			rd_invalidate_check(rd->mrs, q->rd, r->wc.inv_stag, true, &mr) != RD_OK ||
			!rd->invalidate(q->st->ctx, mr))) {
		rof_count(q->st, ROF_CANNOT_INVALIDATE);
		r->status = RD_REM_INV_REQ_ERR;
	}
	r->wc.status = r->status;
	if (r->status != RD_SUCCESS)
		r->wc.flags = 0;
	q->info.msgs_in++;
	recv_complete(q, r);
	if (r->status != RD_SUCCESS && q->errors == ROF_ERRORS_VERBS)
		rof_fail_target(q,
			r->status == RD_REM_INV_REQ_ERR ? ROF_CANNOT_INVALIDATE : ROF_REMOTE_ERROR);
	rof_recv_put(q->st, r);
}

void
rof_recvs_complete(struct rof_qp *q)
{
	while (q->phase == ROF_PHASE_OPEN && q->recvs != NULL) {
		struct rof_recv **slot = &q->recvs[q->recv_base % ROF_RECVS], *r = *slot;

		if (r == NULL || (r != &completed && !is_whole(q, r)))
			return;
		*slot = NULL;
		q->recv_base++;
		if ((int32_t)(q->recv_base - q->recv_taken) > 0)
			q->recv_taken = q->recv_base;
		if (r != &completed)
			recv_done(q, r);
	}
}

/* The peer counts the refused message: its number must not block those behind it. If it has a
 * receive, that fails. A packet out of sequence changes nothing. */
void
rof_recv_refused(struct rof_qp *q, const struct rof_in *in)
{
	struct rof_recv **slot;

	if (q->phase != ROF_PHASE_OPEN || !(wire_rof_headers(in->h.opcode) & ROF_SETH) ||
		in->h.rmsn - q->recv_base >= ROF_RECVS)
		return;
	if (!recvs_there(q)) {
		rof_fail(q, ROF_NO_BUFFER);
		return;
	}
	slot = &q->recvs[in->h.rmsn % ROF_RECVS];
	if (*slot == NULL) {
		*slot = &completed;
	} else if (*slot != &completed && (wire_rof_headers(in->h.opcode) & ROF_RETH)) {
		/* a later message had taken it from the queue */
		(*slot)->status = RD_LOC_ACCESS_ERR;
		(*slot)->len = (*slot)->got;
		(*slot)->last_sn = in->h.sn;
	}
}

/* Completes a message without those before it, where the mode promises no order. */
static void
complete_early(struct rof_qp *q, uint32_t rmsn)
{
	struct rof_recv **slot = &q->recvs[rmsn % ROF_RECVS], *r = *slot;

	if (q->ordering != ROF_ORDER_NONE || rmsn == q->recv_base || r->got < r->len)
		return;
	*slot = &completed;
	recv_done(q, r);
}

void
rof_recvs_drop(struct rof_qp *q)
{
	for (uint32_t i = 0; q->recvs != NULL && i < ROF_RECVS; i++) {
		if (q->recvs[i] != NULL && q->recvs[i] != &completed)
			rof_recv_put(q->st, q->recvs[i]);
		q->recvs[i] = NULL;
	}
}

void
rof_rq_flush(struct rof_qp *q)
{
	struct rd_wc wc = {.qpn = q->rd->qpn, .opcode = RD_RECV};

	for (uint32_t i = 0; q->recvs != NULL && i < ROF_RECVS; i++) {
		struct rof_recv *r = q->recvs[(q->recv_base + i) % ROF_RECVS];

		if (r == NULL || r == &completed)
			continue;
		wc.wr_id = r->wr.wr_id;
		wc.status = r->status != RD_SUCCESS ? r->status : RD_WR_FLUSH_ERR;
		r->wc = wc;
		recv_complete(q, r);
	}
	rof_recvs_drop(q);
}

/* Flushes the QP's own queue only: a shared queue serves other QPs. */
bool
rof_rq_flush_queue(struct rof_qp *q, uint32_t most)
{
	struct rd_wc wc = {.qpn = q->rd->qpn, .opcode = RD_RECV, .status = RD_WR_FLUSH_ERR};
	const struct rd_ops *rd = &q->st->ops.rd;
	struct rd_wr wr;

	most = q->rd->srq != NULL ? 0 : SK_MIN(most, q->rd->caps.rq_depth);
	for (uint32_t n = 0; n < most; n++) {
		if (!rd->rq_next(q->st->ctx, q->rd, &wr))
			return false;
		wc.wr_id = wr.wr_id;
		rd->complete(q->st->ctx, q->rd, true, &wc);
	}
	return most > 0;
}

/* ---- Messages ---- */

static bool
ends(uint8_t opcode)
{
	switch (opcode & ROF_OPERATION) {
	case ROF_SEND_FIRST:
	case ROF_SEND_MIDDLE:
	case ROF_WRITE_FIRST:
	case ROF_WRITE_MIDDLE:
		return false;
	default:
		return true;
	}
}

bool
rof_begins(uint8_t opcode)
{
	switch (opcode & ROF_OPERATION) {
	case ROF_SEND_FIRST:
	case ROF_SEND_ONLY:
	case ROF_SEND_ONLY_IMM:
	case ROF_SEND_ONLY_INV:
	case ROF_WRITE_FIRST:
	case ROF_WRITE_ONLY:
	case ROF_WRITE_ONLY_IMM:
		return true;
	default:
		return false;
	}
}

/* Records the fields of the packet that ends the message. */
static void
message_end(struct rof_recv *r, const struct rof_in *in, uint64_t len)
{
	int headers = wire_rof_headers(in->h.opcode);

	r->len = len;
	r->last_sn = in->h.sn;
	r->wc.byte_len = (uint32_t)len;
	if (in->h.se)
		r->wc.flags |= RD_WC_SOLICITED;
	if (headers & ROF_IMMDT) {
		r->wc.flags |= RD_WC_IMM;
		r->wc.imm = in->h.imm;
		r->wc.opcode = headers & ROF_RETH ? RD_RECV_IMM : RD_RECV;
	}
	if (headers & ROF_IETH) {
		r->wc.flags |= RD_WC_INV;
		r->wc.inv_stag = in->h.inv_rkey;
	}
	if (in->h.ce && r->status == RD_SUCCESS)
		r->status = RD_REM_ABORT_ERR;
}

static enum rof_reason
rof_rx_send_order(const struct rof_qp *q, const struct rof_recv *r, const struct rof_in *in)
{
	uint64_t end = (uint64_t)in->h.offset + in->len;
	bool first = rof_begins(in->h.opcode);

	if (q->ordering == ROF_ORDER_STRONG && in->h.offset != r->got)
		return ROF_SEQUENCE;
	if (r->len != UINT64_MAX && (ends(in->h.opcode) || end > r->len))
		return ROF_SEQUENCE;
	if (first && in->h.offset != 0)
		return ROF_SEQUENCE;
	return !ends(in->h.opcode) && in->len == 0 ? ROF_LENGTH : ROF_NONE;
}

/* Returns whether the rkey may be invalidated at present. recv_done() does it when the message is
 * complete. */
static bool
may_invalidate(struct rof_qp *q, const struct rof_in *in)
{
	struct rd_mr *mr;

	return !(wire_rof_headers(in->h.opcode) & ROF_IETH) || in->h.ce ||
	       rd_invalidate_check(q->st->ops.rd.mrs, q->rd, in->h.inv_rkey, true, &mr) == RD_OK;
}

/* Fills the receive. After an error, the rest of the message fails with the same one. */
static enum rof_reason
rof_rx_send_fill(struct rof_qp *q, struct rof_recv *r, const struct rof_in *in)
{
	if (r->status == RD_SUCCESS && (uint64_t)in->h.offset + in->len > r->room)
		r->status = RD_LOC_LEN_ERR;
	if (r->status == RD_SUCCESS) {
		enum rof_reason reason = rof_scatter(q, r, in->h.offset, in);

		if (reason == ROF_NO_PAGE)
			return reason;
		if (reason != ROF_NONE)
			r->status = RD_LOC_PROT_ERR;
	}
	if (r->status == RD_SUCCESS && !may_invalidate(q, in))
		r->status = RD_REM_INV_REQ_ERR;
	switch (r->status) {
	case RD_SUCCESS:
		return ROF_NONE;
	case RD_LOC_PROT_ERR:
		return ROF_RECEIVE_FAULT;
	case RD_REM_INV_REQ_ERR:
		return ROF_CANNOT_INVALIDATE;
	default:
		return ROF_TOO_LONG;
	}
}

enum rof_reason
rof_rx_send(struct rof_qp *q, struct rof_in *in, uint8_t *nak)
{
	uint64_t end = (uint64_t)in->h.offset + in->len;
	enum rof_reason reason;
	struct rof_recv *r;

	*nak = ROF_NAK_REQUEST;
	reason = rof_recv_get(q, in, &r);
	if (reason != ROF_NONE)
		return reason;
	reason = rof_rx_send_order(q, r, in);
	if (reason != ROF_NONE)
		return reason;
	reason = rof_rx_send_fill(q, r, in);
	if (reason == ROF_NO_PAGE)
		return reason;
	if (reason == ROF_RECEIVE_FAULT)
		*nak = ROF_NAK_OPERATION;
	r->got += in->len;
	q->info.bytes_in += in->len;
	if (ends(in->h.opcode))
		message_end(r, in, in->h.ce ? r->got : end);
	if (reason == ROF_NONE)
		complete_early(q, in->h.rmsn);
	return reason;
}

/* Takes a receive for a Write's Immediate Data, and fills nothing of it. */
enum rof_reason
rof_rx_write_imm(struct rof_qp *q, struct rof_in *in)
{
	struct rof_recv *r;
	enum rof_reason reason = rof_recv_get(q, in, &r);

	if (reason != ROF_NONE)
		return reason;
	if (r->len != UINT64_MAX || r->got > 0)
		return ROF_SEQUENCE;
	message_end(r, in, in->h.length);
	r->got = r->len;
	complete_early(q, in->h.rmsn);
	return ROF_NONE;
}
