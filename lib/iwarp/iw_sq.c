/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that have been sent and not yet completed. Verbs guarantee completions in posting order,
 * so a Write behind an outstanding Read waits for the Read here, and every request waits until its
 * record has been handed over. Only requests that will complete have an entry: an unsignaled Write
 * has none after it is sent, unless its latency counts. The queue is allocated for the first
 * request, so that a QP that only receives has none, and grows to the depth of the send queue plus
 * ORD; iw_sq_reserve() holds back a client that posts without pause.
 */
#include "iw_priv.h"

#include <stdlib.h>
#include <string.h>

static struct iw_sqe *
sqe_at(const struct iw_sq *sq, uint32_t i)
{
	return &sq->e[i & (sq->cap - 1)];
}

static bool
sq_grow(struct iw_sq *sq)
{
	uint32_t cap = sq->cap ? 2 * sq->cap : IW_RING_MIN;
	struct iw_sqe *e = malloc(cap * sizeof(*e));

	if (e == NULL)
		return false;
	for (uint32_t i = sq->head; i != sq->tail; i++)
		e[i & (cap - 1)] = *sqe_at(sq, i);
	free(sq->e);
	sq->e = e;
	sq->cap = cap;
	return true;
}

/* Returns whether the queue has or will have an entry: iw_tx() also runs without a request. */
static bool
sq_is_needed(const struct iw_qp *q)
{
	return q->sq.cap > 0 || q->rtr == MPA_RTR_READ ||
	       q->st->ops.rd.sq_pending(q->st->ctx, q->rd);
}

bool
iw_sq_reserve(struct iw_qp *q)
{
	struct iw_sq *sq = &q->sq;
	uint32_t used = sq->tail - sq->head;

	if (used > q->rd->caps.sq_depth + q->ord)
		return false;
	return used < sq->cap || (sq_is_needed(q) && sq_grow(sq));
}

struct iw_sqe *
iw_sq_push(struct iw_qp *q)
{
	return sqe_at(&q->sq, q->sq.tail++);
}

bool
iw_signaled(const struct iw_qp *q, const struct rd_wr *wr)
{
	return q->rd->sig_all || (wr->flags & RD_SIGNALED);
}

static void
sq_complete(struct iw_qp *q, const struct iw_sqe *e, enum rd_status status)
{
	struct rd_wc wc = {
		.wr_id = e->wr_id,
		.qpn = q->rd->qpn,
		.opcode = e->opcode,
		.status = status,
		.byte_len = e->total,
		.vendor_err = status == RD_SUCCESS ? 0 : (uint32_t)q->error,
	};

	q->st->ops.rd.complete(q->st->ctx, q->rd, false, &wc);
}

/* Completes the entries from the head that are done and whose records have been handed over. */
static void
sq_drain(struct iw_qp *q)
{
	struct iw_sq *sq = &q->sq;

	while (sq->head != sq->sent) {
		struct iw_sqe e = *sqe_at(sq, sq->head);

		if (e.flags & IW_SQE_READ)
			return;
		sq->head++;
		if (e.flags & IW_SQE_SAMPLED)
			rd_latency_add(&q->st->latency, e.taken);
		if ((e.flags & IW_SQE_LAST) && (e.flags & IW_SQE_SIGNALED))
			sq_complete(q, &e, RD_SUCCESS);
	}
}

void
iw_sq_sent(struct iw_qp *q)
{
	q->sq.sent = q->sq.tail;
	sq_drain(q);
}

void
iw_sq_done(struct iw_qp *q, const struct iw_op *op, uint32_t bytes)
{
	bool sampled = rd_sample_due(&q->sample), signaled = iw_signaled(q, &op->wr);
	struct iw_sqe *e;

	if (!signaled && !sampled)
		return;
	e = iw_sq_push(q);
	e->wr_id = op->wr.wr_id;
	e->total = bytes;
	e->opcode = op->wr.opcode;
	e->flags = signaled ? IW_SQE_LAST | IW_SQE_SIGNALED : 0;
	if (sampled)
		iw_sq_sample(q, e, op->taken);
	if (q->rec == NULL)
		iw_sq_sent(q);
}

void
iw_sq_sample(struct iw_qp *q, struct iw_sqe *e, uint64_t taken)
{
	e->flags |= IW_SQE_SAMPLED;
	e->taken = taken;
	rd_sample_next(&q->st->latency, &q->sample);
}

void
iw_sq_sample_last(struct iw_qp *q, bool signaled)
{
	struct iw_sqe *e = signaled ? sqe_at(&q->sq, q->sq.tail - 1) : iw_sq_push(q);

	if (!signaled)
		e->flags = 0;
	iw_sq_sample(q, e, q->st->latency.now);
}

struct iw_sqe *
iw_sq_read(struct iw_qp *q)
{
	struct iw_sqe *e;

	if (q->sq.head == q->sq.sent)
		return NULL;
	e = sqe_at(&q->sq, q->sq.head);
	return e->flags & IW_SQE_READ ? e : NULL;
}

/* Invalidates the sink's STag after a Read with Invalidate of verbs. RFC 5040 leaves that to the
 * local side. */
static bool
iw_sq_sink_invalidate(struct iw_qp *q, uint32_t stag)
{
	struct rd_mr *mr;

	switch (rd_invalidate_check(q->st->ops.rd.mrs, q->rd, stag, false, &mr)) {
	case RD_OK:
		return q->st->ops.rd.invalidate(q->st->ctx, mr);
	case RD_FAULT_ACCESS:
		return false;
	default: /* the STag is invalid already */
		return true;
	}
}

bool
iw_sq_read_done(struct iw_qp *q)
{
	struct iw_sqe *e = sqe_at(&q->sq, q->sq.head);

	if ((e->flags & IW_SQE_INV) && !iw_sq_sink_invalidate(q, e->stag))
		return false;
	e->flags &= ~IW_SQE_READ;
	q->reads_out--;
	if (q->want_reads) {
		q->want_reads = false;
		q->kick = true;
	}
	sq_drain(q);
	return true;
}

bool
iw_sq_fills(const struct iw_qp *q, uint32_t stag)
{
	const struct iw_sq *sq = &q->sq;

	for (uint32_t i = sq->head; q->reads_out > 0 && i != sq->tail; i++) {
		const struct iw_sqe *e = sqe_at(sq, i);

		if ((e->flags & IW_SQE_READ) && e->stag == stag)
			return true;
	}
	return false;
}

void
iw_sq_read_refused(struct iw_qp *q, uint32_t msn, enum rd_status status)
{
	uint32_t nth = msn - (q->read_msn - q->reads_out); /* position among the outstanding ones */

	if (nth >= q->reads_out)
		return;
	for (uint32_t i = q->sq.head; i != q->sq.tail; i++) {
		if (!(sqe_at(&q->sq, i)->flags & IW_SQE_READ) || nth-- > 0)
			continue;
		/* The work request's completion is at its next entry with LAST. */
		while (i != q->sq.tail && !(sqe_at(&q->sq, i)->flags & IW_SQE_LAST))
			i++;
		q->bad_read = i;
		q->bad_status = status;
		if (i == q->sq.tail && q->tx_op != NULL)
			q->tx_op->status = status;
		return;
	}
}

void
iw_sq_atomic_refused(struct iw_qp *q, enum rd_status status)
{
	uint32_t msn = q->read_msn - q->reads_out;

	for (uint32_t i = q->sq.head; i != q->sq.tail; i++) {
		uint8_t flags = sqe_at(&q->sq, i)->flags;

		if ((flags & IW_SQE_READ) && (flags & IW_SQE_ATOMIC)) {
			iw_sq_read_refused(q, msn, status);
			return;
		}
		msn += flags & IW_SQE_READ ? 1 : 0;
	}
}

/* Completes a request that was being built or waiting. */
static void
flush_op(struct iw_qp *q)
{
	struct iw_op *op = q->tx_op;
	struct iw_sqe e = {.wr_id = op->wr.wr_id, .opcode = op->wr.opcode};

	q->tx_op = NULL;
	sq_complete(q, &e, op->status);
	iw_op_release(q->st, op);
}

void
iw_sq_flush(struct iw_qp *q)
{
	struct iw_sq *sq = &q->sq;

	for (; sq->head != sq->tail; sq->head++) {
		struct iw_sqe e = *sqe_at(sq, sq->head);
		bool bad = q->bad_status && sq->head == q->bad_read;

		e.total = 0;
		if (e.flags & IW_SQE_LAST)
			sq_complete(q, &e, bad ? q->bad_status : RD_WR_FLUSH_ERR);
	}
	sq->sent = sq->tail;
	q->reads_out = 0;
	if (q->tx_op != NULL)
		flush_op(q);
}

bool
iw_sq_flush_queue(struct iw_qp *q, uint32_t most)
{
	const struct rd_ops *rd = &q->st->ops.rd;
	struct rd_wr wr;

	/* One queue depth is enough: a client that posts meanwhile rings its doorbell again. */
	most = SK_MIN(most, q->rd->caps.sq_depth);
	for (uint32_t n = 0; n < most; n++) {
		struct iw_sqe e = {0};

		if (!rd->sq_next(q->st->ctx, q->rd, &wr))
			return false;
		e.wr_id = wr.wr_id;
		e.opcode = wr.opcode;
		sq_complete(q, &e, RD_WR_FLUSH_ERR);
	}
	return most > 0;
}

static void
rq_complete_flushed(struct iw_qp *q, uint64_t wr_id, enum rd_status status)
{
	struct rd_wc wc = {
		.wr_id = wr_id,
		.qpn = q->rd->qpn,
		.opcode = RD_RECV,
		.status = status,
		.vendor_err = (uint32_t)q->error,
	};

	q->st->ops.rd.complete(q->st->ctx, q->rd, true, &wc);
}

void
iw_rq_flush(struct iw_qp *q)
{
	struct iw_op *op = q->rx_op;

	if (op == NULL)
		return;
	q->rx_op = NULL;
	rq_complete_flushed(q, op->wr.wr_id, op->status);
	iw_op_release(q->st, op);
}

/* Flushes the QP's own receive queue only: a shared one serves other QPs. */
bool
iw_rq_flush_queue(struct iw_qp *q, uint32_t most)
{
	const struct rd_ops *rd = &q->st->ops.rd;
	struct rd_wr wr;

	most = q->rd->srq != NULL ? 0 : SK_MIN(most, q->rd->caps.rq_depth);
	for (uint32_t n = 0; n < most; n++) {
		if (!rd->rq_next(q->st->ctx, q->rd, &wr))
			return false;
		rq_complete_flushed(q, wr.wr_id, RD_WR_FLUSH_ERR);
	}
	return most > 0;
}
