/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * At the initiator: the end of a transaction. A response must have the requested number of bytes
 * and name the request's sink; a response for another QP is dropped (6.9).
 */
#include "rof_priv.h"

static enum rd_status
nak_status(uint8_t nak)
{
	switch (nak) {
	case ROF_NAK_ACCESS:
		return RD_REM_ACCESS_ERR;
	case ROF_NAK_OPERATION:
		return RD_REM_OP_ERR;
	case ROF_NAK_RNR:
		return RD_RNR_RETRY_EXC_ERR;
	case ROF_NAK_QP: /* as verbs report a peer that does not answer */
		return RD_RETRY_EXC_ERR;
	default:
		return RD_REM_INV_REQ_ERR;
	}
}

static enum rd_status
completion_status(const struct fa_delivery *d)
{
	switch ((enum fa_completion)d->completion) {
	case FA_DONE:
		return RD_SUCCESS;
	case FA_TARGET_CIE:
	case FA_TARGET_FATAL:
		return nak_status(d->ulp_code);
	case FA_TARGET_CID:
		return RD_REM_INV_REQ_ERR;
	case FA_LOCAL_TIMEOUT:
	case FA_DEAD_CONNECTION:
		return RD_RETRY_EXC_ERR;
	case FA_OPERATION_ERROR:
		return RD_BAD_RESP_ERR;
	case FA_LOCAL_RESOURCE:
	case FA_CREDIT_ERROR:
		return RD_LOC_QP_OP_ERR;
	case FA_REMOTE_ERROR:
	case FA_LOCAL_XLR:
		return RD_REM_ABORT_ERR;
	}
	return RD_GENERAL_ERR;
}

/*
 * Returns whether the target's RDMA layer never saw the request, although Falcon continues: then
 * its sequence number is missing there, and no message behind it would complete. For a pull that
 * cannot be determined; only the weakly ordered mode counts those (8.2). A request that cannot be
 * delivered may end the connection (6.8).
 */
static bool
missing(const struct rof_chan *c, const struct rof_txn *t, const struct fa_delivery *d)
{
	switch ((enum fa_completion)d->completion) {
	case FA_DONE:
	case FA_TARGET_CIE:
	case FA_TARGET_FATAL:
	case FA_TARGET_CID:
		return false;
	default:
		return c->p.transport != ROF_UD &&
		       (t->kind == ROF_TXN_PUSH || c->p.ordering == ROF_ORDER_WEAK);
	}
}

/* Ends a transaction, and with it possibly its request. */
static void
ended(struct rof_chan *c, uint32_t rsn, struct rof_txn *t, enum rd_status status, uint32_t vendor)
{
	struct rof_qp *q = t->qp;
	uint32_t req = t->req;
	bool pull = t->kind != ROF_TXN_PUSH;

	rof_chan_done(c, rsn, t);
	if (q == NULL)
		return;
	if (pull)
		q->pulls_out--;
	if (status != RD_SUCCESS)
		rof_count(c->st, ROF_REMOTE_ERROR);
	/* A datagram completes whether or not it arrives. */
	if (q->transport == ROF_UD && status != RD_SUCCESS) {
		rof_count(c->st, ROF_UD_LOST);
		status = RD_SUCCESS;
	}
	rof_req_progress(q, req, status, vendor);
	if (q->transport == ROF_UD && q->blocked)
		rof_chan_ready(c, q);
}

/* Ends the pushes of a run that are the oldest transactions of the channel's QP. Returns their
 * number. */
static uint32_t
pushes_end(struct rof_chan *c, uint32_t rsn, uint32_t n)
{
	struct rof_qp *q = c->rc;
	uint32_t i = 0, cells = 0;

	if (q == NULL || q->ordering != ROF_ORDER_STRONG || rsn != c->txn_base)
		return 0;
	n = SK_MIN(n, c->txn_next - c->txn_base);
	for (; i < n && q->phase == ROF_PHASE_OPEN; i++) {
		const struct rof_txn *t = &c->txns[(rsn + i) & (c->txn_cap - 1)];

		if (t->kind != ROF_TXN_PUSH || t->qp != q)
			break;
		cells += t->cells;
		rof_req_pushed(q, t->req);
	}
	c->credits.req_pkt_tx += i;
	c->credits.req_pkt_rx += i;
	c->credits.req_buf_tx += cells;
	c->txn_base += i;
	rof_chan_rebase(c);
	return i;
}

static void
completion_one(struct rof_chan *c, const struct fa_delivery *d)
{
	struct rof_txn *t = rof_chan_txn(c, d->rsn);
	enum rd_status status = completion_status(d);
	bool lost;

	if (d->buf != NULL)
		c->st->ops.buf_put(c->st->ctx, d->buf);
	if (t == NULL) {
		rof_count(c->st, ROF_BAD_RESPONSE);
		return;
	}
	if (t->kind != ROF_TXN_PUSH && status == RD_SUCCESS) /* the target sent no pull data */
		status = RD_BAD_RESP_ERR;
	lost = missing(c, t, d) && c->rc != NULL && c->rc->phase == ROF_PHASE_OPEN;
	if (lost)
		rof_count(c->st, ROF_CONNECTION_LOST);
	ended(c, d->rsn, t, status, ROF_VENDOR(d->completion, d->ulp_code & 7u));
	if (lost && c->rc->phase == ROF_PHASE_OPEN)
		rof_fail(c->rc, ROF_CONNECTION_LOST);
}

void
rof_rx_completion(struct rof_chan *c, const struct fa_delivery *d)
{
	struct fa_delivery one = *d;
	uint32_t done = 0;

	if (d->completion == FA_DONE && d->buf == NULL && !c->st->general)
		done = pushes_end(c, d->rsn, d->more + 1);
	for (uint32_t i = done; i <= d->more; i++) {
		one.rsn = d->rsn + i;
		completion_one(c, &one);
	}
}

/* Returns whether a response matches this request. */
static bool
is_answer(const struct rof_chan *c, const struct rof_txn *t, const struct rof_in *in)
{
	uint8_t op = in->h.opcode & ROF_OPERATION;
	bool read = op >= ROF_READ_RESPONSE_FIRST && op <= ROF_READ_RESPONSE_ONLY;

	if ((in->h.opcode & ROF_TRANSPORT) != c->p.transport || in->h.sn != t->sn ||
		in->h.sink_va != t->sink || in->h.sink_lkey != t->sink_lkey)
		return false;
	if (t->kind == ROF_TXN_ATOMIC)
		return op == ROF_ATOMIC_RESPONSE && in->len == 0;
	return read && (in->h.ce ? in->len == 0 : in->len == t->bytes);
}

/* Places the bytes of a response. Returns false when pages of the sink are missing. */
static bool
rof_rx_done_place(
	struct rof_qp *q, const struct rof_txn *t, const struct rof_in *in, enum rd_status *status)
{
	uint32_t n = t->kind == ROF_TXN_ATOMIC ? sizeof(uint64_t) : in->len;
	struct rd_mr *mr;

	*status = RD_SUCCESS;
	if (n == 0 || (t->kind == ROF_TXN_ATOMIC && q->st->lengths_only))
		return true;
	if (rd_mr_check(q->st->ops.rd.mrs, q->rd->pd, q->rd->qpn, t->sink_lkey, t->sink, n,
		    RD_ACC_LOCAL_WRITE, &mr) != RD_OK) {
		*status = RD_LOC_PROT_ERR;
		return true;
	}
	if (!rof_ready(q, mr, t->sink, n, n))
		return false;
	if (t->kind == ROF_TXN_ATOMIC) /* in host byte order, as any word of a program */
		rd_mr_write(mr, t->sink, &in->h.original, n);
	else
		rof_place(in, 0, mr, t->sink, n);
	q->info.bytes_in += n;
	return true;
}

/* Parses a response into *in and checks that it answers the request of `t`. */
static enum rd_status
rof_rx_done_check(const struct rof_chan *c, const struct rof_txn *t, const struct fa_delivery *d,
	struct rof_in *in)
{
	if (d->buf == NULL || d->buf->len == 0) /* Falcon's way to report that the target failed */
		return RD_REM_OP_ERR;
	if (!rof_in_parse(c->st, in, d) || !is_answer(c, t, in)) {
		rof_count(c->st, ROF_BAD_RESPONSE);
		return RD_BAD_RESP_ERR;
	}
	if (in->h.dest_qp != t->qp->rd->qpn) {
		rof_count(c->st, ROF_WRONG_QP_RESPONSE);
		return RD_BAD_RESP_ERR;
	}
	return in->h.ce ? RD_REM_ACCESS_ERR : RD_SUCCESS;
}

bool
rof_rx_pull_data(struct rof_chan *c, const struct fa_delivery *d)
{
	struct rof_txn *t = rof_chan_txn(c, d->rsn);
	enum rd_status status = RD_SUCCESS;
	struct rof_in in;

	if (t != NULL && t->kind != ROF_TXN_PUSH && t->qp != NULL) {
		status = rof_rx_done_check(c, t, d, &in);
		if (status == RD_SUCCESS && !rof_rx_done_place(t->qp, t, &in, &status))
			return false;
	} else if (t == NULL || t->kind == ROF_TXN_PUSH) {
		rof_count(c->st, ROF_BAD_RESPONSE);
	}
	if (d->buf != NULL)
		c->st->ops.buf_put(c->st->ctx, d->buf);
	if (t != NULL && t->kind != ROF_TXN_PUSH)
		ended(c, d->rsn, t, status,
			status == RD_REM_ACCESS_ERR || status == RD_REM_OP_ERR ? ROF_VENDOR_PULL
									       : 0);
	return true;
}
