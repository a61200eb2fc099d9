/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams in. Falcon delivers them reliably, but a datagram that the receiver cannot take is
 * dropped and counted, never refused: many QPs share a connection, and none may block the others. A
 * receive has 40 bytes for the addresses before the payload.
 */
#include "rof_priv.h"

#include <stdlib.h>

static enum rof_reason
rof_ud_receive(struct rof_chan *c, struct rof_qp *q, struct rof_in *in, struct rof_recv *r)
{
	struct rof_stage *st = q->st;
	uint8_t grh[ROF_GRH_LEN];
	struct fa_buf head = {.data = grh, .data_len = sizeof(grh), .len = sizeof(grh)};
	struct rof_in first = {.buf = &head, .len = sizeof(grh)};

	if (!st->ops.rd.rq_next(st->ctx, q->rd, &r->wr))
		return ROF_UD_NO_RECEIVE;
	r->room = 0;
	for (unsigned i = 0; i < r->wr.nsge; i++)
		r->room += r->wr.sge[i].len;
	r->wc = (struct rd_wc){
		.wr_id = r->wr.wr_id,
		.qpn = q->rd->qpn,
		.opcode = RD_RECV,
		.status = RD_SUCCESS,
		.flags = RD_WC_GRH | (in->h.se ? RD_WC_SOLICITED : 0),
		.byte_len = ROF_GRH_LEN + in->len,
		.src_qp = in->h.src_qp,
	};
	if (wire_rof_headers(in->h.opcode) & ROF_IMMDT) {
		r->wc.flags |= RD_WC_IMM;
		r->wc.imm = in->h.imm;
	}
	st->ops.ud_grh(st->ctx, c, in->len, grh);
	if (st->lengths_only)
		head.data_len = 0;
	if (ROF_GRH_LEN + in->len > r->room)
		r->wc.status = RD_LOC_LEN_ERR;
	else if (!rof_scatter(q, r, 0, &first) || !rof_scatter(q, r, ROF_GRH_LEN, in))
		r->wc.status = RD_LOC_PROT_ERR;
	q->info.msgs_in++;
	q->info.bytes_in += in->len;
	st->ops.rd.complete(st->ctx, q->rd, true, &r->wc);
	return r->wc.status == RD_SUCCESS ? ROF_NONE : ROF_RECEIVE_FAULT;
}

void
rof_rx_datagram(struct rof_chan *c, struct rof_in *in)
{
	struct rof_qp *q = c->st->ops.ud_qp(c->st->ctx, c, in->h.dest_qp);
	enum rof_reason reason = ROF_UD_NO_QP;
	struct rof_recv *r;

	if (q != NULL && q->phase == ROF_PHASE_OPEN && q->transport == ROF_UD) {
		r = rof_recv_take(q->st);
		if (q->qkey != in->h.qkey)
			reason = ROF_UD_QKEY;
		else
			reason = r != NULL ? rof_ud_receive(c, q, in, r) : ROF_UD_NO_RECEIVE;
		if (r != NULL)
			rof_recv_put(q->st, r);
	}
	if (reason != ROF_NONE)
		rof_count(c->st, reason);
}
