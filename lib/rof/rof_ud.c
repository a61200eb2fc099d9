/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams in. Falcon delivers them reliably, but a datagram that the receiver cannot take is
 * dropped and counted, never refused: many QPs share a connection, and none may block the others. A
 * receive has 40 bytes for the addresses before the payload.
 */
#include "rof_priv.h"

#include <stdlib.h>

#define IP6_VERSION 6

/* Returns the completion of a datagram's receive. */
static struct rd_wc
ud_completion(const struct rof_qp *q, const struct rof_recv *r, const struct rof_in *in,
	const uint8_t grh[ROF_GRH_LEN])
{
	struct rd_wc wc = {
		.wr_id = r->wr.wr_id,
		.qpn = q->rd->qpn,
		.opcode = RD_RECV,
		.status = RD_SUCCESS,
		.flags = RD_WC_GRH | (in->h.se ? RD_WC_SOLICITED : 0),
		.byte_len = ROF_GRH_LEN + in->len,
		.src_qp = in->h.src_qp,
	};

	if (wire_rof_headers(in->h.opcode) & ROF_IMMDT) {
		wc.flags |= RD_WC_IMM;
		wc.imm = in->h.imm;
	}
	if (grh[0] >> 4 != IP6_VERSION)
		wc.flags |= RD_WC_IP4;
	return wc;
}

/* Returns ROF_NONE, ROF_RECEIVE_FAULT or ROF_NO_PAGE. */
static enum rof_reason
ud_place(struct rof_qp *q, struct rof_recv *r, const struct rof_in *in,
	const uint8_t grh[ROF_GRH_LEN])
{
	struct fa_buf head = {.data = (uint8_t *)(uintptr_t)grh,
		.data_len = q->st->lengths_only ? 0 : ROF_GRH_LEN,
		.len = ROF_GRH_LEN};
	const struct rof_in first = {.buf = &head, .len = ROF_GRH_LEN};
	enum rof_reason reason = rof_scatter(q, r, 0, &first);

	return reason == ROF_NONE ? rof_scatter(q, r, ROF_GRH_LEN, in) : reason;
}

bool
rof_ud_deliver(struct rof_qp *q, struct rof_recv *r, const struct rof_in *in,
	const uint8_t grh[ROF_GRH_LEN])
{
	enum rof_reason reason = ROF_NONE;

	r->wc = ud_completion(q, r, in, grh);
	if (r->wc.byte_len > r->room) {
		r->wc.status = RD_LOC_LEN_ERR;
	} else {
		reason = ud_place(q, r, in, grh);
		if (reason == ROF_NO_PAGE)
			return false;
		if (reason != ROF_NONE)
			r->wc.status = RD_LOC_PROT_ERR;
	}
	if (r->wc.status != RD_SUCCESS)
		rof_count(q->st, ROF_RECEIVE_FAULT);
	q->info.msgs_in++;
	q->info.bytes_in += in->len;
	q->st->ops.rd.complete(q->st->ctx, q->rd, true, &r->wc);
	return true;
}

/* Takes the receive for a datagram. Returns NULL when there is none. */
static struct rof_recv *
ud_receive(struct rof_qp *q)
{
	struct rof_stage *st = q->st;
	struct rof_recv *r = q->kept;

	q->kept = NULL;
	if (r != NULL)
		return r;
	r = rof_recv_take(st);
	if (r == NULL)
		return NULL;
	if (!st->ops.rd.rq_next(st->ctx, q->rd, &r->wr)) {
		rof_recv_put(st, r);
		return NULL;
	}
	r->room = 0;
	r->srqn = 0;
	for (unsigned i = 0; i < r->wr.nsge; i++)
		r->room += r->wr.sge[i].len;
	return r;
}

/* Delivers a datagram, at once or when its pages are present. Without a place for one that has to
 * wait, the datagram is lost, and the next one gets its receive. */
static enum rof_reason
ud_accept(struct rof_qp *q, const struct rof_in *in, const uint8_t grh[ROF_GRH_LEN])
{
	struct rof_recv *r = q->nlate < ROF_LATE_MAX ? ud_receive(q) : NULL;

	if (r == NULL)
		return ROF_UD_NO_RECEIVE;
	if (q->late == NULL && rof_ud_deliver(q, r, in, grh)) {
		rof_recv_put(q->st, r);
		return ROF_NONE;
	}
	if (q->late == NULL)
		rof_count(q->st, ROF_NO_PAGE);
	if (rof_late_datagram(q, in, grh, r))
		return ROF_NONE;
	q->kept = r;
	return ROF_UD_NO_RECEIVE;
}

/* Returns whether a QP accepts datagrams. */
static bool
ud_is_open(const struct rof_qp *q)
{
	return q != NULL && q->phase == ROF_PHASE_OPEN && q->transport == ROF_UD;
}

static void
ud_arrive(struct rof_qp *q, const struct rof_in *in, const uint8_t grh[ROF_GRH_LEN])
{
	enum rof_reason reason = q->qkey != in->h.qkey ? ROF_UD_QKEY : ud_accept(q, in, grh);

	if (reason != ROF_NONE)
		rof_count(q->st, reason);
}

bool
rof_rx_datagram(struct rof_chan *c, struct rof_in *in)
{
	struct rof_stage *st = c->st;
	struct rof_qp *q = st->ops.ud_qp(st->ctx, c, in->h.dest_qp);
	uint8_t grh[ROF_GRH_LEN];

	st->ops.ud_grh(st->ctx, c, in->len, grh);
	if (q == NULL && st->ops.ud_pass != NULL &&
		st->ops.ud_pass(st->ctx, in->h.dest_qp, in->buf, grh))
		return true;
	if (ud_is_open(q))
		ud_arrive(q, in, grh);
	else
		rof_count(st, ROF_UD_NO_QP);
	return false;
}

struct rof_qp *
rof_rx_passed(struct rof_stage *st, struct fa_buf *buf, const uint8_t grh[ROF_GRH_LEN])
{
	const struct fa_delivery d = {.type = FA_PUSH, .buf = buf};
	struct rof_qp *q = NULL;
	struct rof_in in;

	if (rof_in_parse(st, &in, &d)) {
		q = st->ops.ud_qp(st->ctx, NULL, in.h.dest_qp);
		if (ud_is_open(q))
			ud_arrive(q, &in, grh);
		else
			rof_count(st, ROF_UD_NO_QP);
	}
	st->ops.buf_put(st->ctx, buf);
	return q;
}
