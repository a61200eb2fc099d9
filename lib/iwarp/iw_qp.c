/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a QP's iWARP part. Every path into the error state goes through iw_enter_error(). The
 * stream is closed once (iw_close_once()), and iw_closed() is the last event of a connection.
 */
#include "iw_priv.h"

#include "../base/mem.h"

#include <stdlib.h>
#include <string.h>

struct iw_op *
iw_op_take(struct iw_stage *st)
{
	struct iw_op *op = st->spare;

	if (op == NULL)
		return malloc(sizeof(*op));
	st->spare = NULL;
	return op;
}

void
iw_op_release(struct iw_stage *st, struct iw_op *op)
{
	if (st->spare == NULL)
		st->spare = op;
	else
		free(op);
}

struct iw_qp *
iw_qp_create(struct iw_stage *st, struct rd_qp *qp)
{
	struct iw_qp *q = aligned_alloc(_Alignof(struct iw_qp), sizeof(*q));

	if (q == NULL)
		return NULL;
	memset(q, 0, sizeof(*q));
	q->st = st;
	q->rd = qp;
	/* Message sequence numbers start at 1 (RFC 5041 5.1). */
	q->send_msn = q->read_msn = q->recv_msn = q->irq_msn = 1;
	q->answer_msn = q->atomic_next = q->atomic_due = 1;
	mpa_rx_init(&q->mrx, false, false, st->ops.slice_free, st->ctx);
	rd_sample_next(&st->latency, &q->sample);
	st->qps++;
	return q;
}

static void
buffers_drop(struct iw_qp *q)
{
	struct iw_stage *st = q->st;

	if (q->rec != NULL)
		st->ops.rec_put(st->ctx, q->rec);
	q->rec = NULL;
	mpa_rx_clear(&q->mrx);
}

void
iw_qp_destroy(struct iw_qp *q)
{
	struct iw_stage *st = q->st;

	buffers_drop(q);
	free(q->tx_op);
	free(q->rx_op);
	free(q->sq.e);
	free(q->irq.e);
	free(q);
	if (--st->qps == 0) {
		free(st->spare);
		st->spare = NULL;
	}
}

struct rd_qp *
iw_qp_rd(const struct iw_qp *q)
{
	return q->rd;
}

size_t
iw_qp_size(void)
{
	return sizeof(struct iw_qp);
}

void
iw_emss(struct iw_qp *q, uint32_t emss)
{
	q->mtx.emss = SK_MAX(emss, (uint32_t)IW_EMSS_MIN);
	q->mulpdu = mpa_mulpdu(&q->mtx);
}

void
iw_qp_start(struct iw_qp *q, uint64_t now, const struct iw_params *p)
{
	mpa_tx_init(&q->mtx, p->crc, p->tx_markers, p->emss);
	iw_emss(q, p->emss);
	mpa_rx_init(&q->mrx, p->crc, p->rx_markers, q->st->ops.slice_free, q->st->ctx);
	if (q->st->store.holders != NULL)
		mpa_rx_limit(&q->mrx, &q->st->store, p->user);
	q->ird = q->rd->ird = p->ird;
	q->ord = q->rd->ord = p->ord;
	q->space = p->send_space;
	q->hold = !p->initiator;
	q->rtr = p->initiator ? p->rtr : MPA_RTR_NONE;
	q->swallow_rtr = !p->initiator && p->rtr == MPA_RTR_SEND;
	q->draft_ext = p->draft_ext;
	q->started = true;
	q->phase = IW_PHASE_OPEN;
	q->rd->state = RD_QP_RTS;
}

bool
iw_release(struct iw_qp *q)
{
	bool held = q->hold;

	q->hold = false;
	return held;
}

bool
iw_space(struct iw_qp *q, uint32_t bytes)
{
	bool waited = q->want_space;

	q->space += bytes;
	if (q->space <= 0)
		return false;
	q->want_space = false;
	return waited;
}

void
iw_close_once(struct iw_qp *q, enum iw_close how)
{
	if (q->close_called || !q->started || q->phase == IW_PHASE_CLOSED)
		return;
	q->close_called = true;
	q->st->ops.close(q->st->ctx, q, how);
}

void
iw_enter_error(struct iw_qp *q, int reason)
{
	q->phase = IW_PHASE_ERROR;
	q->error = reason;
	q->rd->state = RD_QP_ERR;
	iw_sq_flush(q);
	iw_rq_flush(q);
	if (!q->st->ops.rd.flush_later)
		iw_flush(q, UINT32_MAX);
	q->irq.head = q->irq.tail;
	q->midst = IW_MIDST_NONE;
	q->st->ops.rd.qp_error(q->st->ctx, q->rd, reason);
}

bool
iw_flush(struct iw_qp *q, uint32_t most)
{
	bool more;

	if (q->rd->state != RD_QP_ERR)
		return false;
	more = iw_sq_flush_queue(q, most);
	return iw_rq_flush_queue(q, most) || more;
}

bool
iw_may_leave(const struct iw_qp *q)
{
	const struct iw_stage *st = q->st;

	if (q->phase != IW_PHASE_OPEN && q->phase != IW_PHASE_DRAIN)
		return q->may_leave;
	return q->midst == IW_MIDST_NONE && q->rec == NULL && q->tx_op == NULL &&
	       q->sq.head == q->sq.tail && q->irq.head == q->irq.tail && q->rtr == MPA_RTR_NONE &&
	       !st->ops.rd.sq_pending(st->ctx, q->rd);
}

void
iw_disconnect(struct iw_qp *q, uint64_t now, enum iw_close how)
{
	if (how == IW_CLOSE_ORDERLY && q->phase <= IW_PHASE_DRAIN) {
		if (q->phase != IW_PHASE_OPEN)
			return;
		q->phase = IW_PHASE_DRAIN;
		q->drain_left = q->rd->caps.sq_depth;
		return;
	}
	if (q->phase < IW_PHASE_ERROR) {
		q->may_leave = iw_may_leave(q);
		iw_enter_error(q, IW_NONE);
	}
	if (how == IW_CLOSE_ABORT)
		iw_close_once(q, IW_CLOSE_ABORT);
}

/* After the peer's FIN, no response can reach the peer and the peer sends no more responses. The
 * message in progress may end; then this side closes, too. */
void
iw_peer_fin(struct iw_qp *q, uint64_t now)
{
	if (q->phase != IW_PHASE_OPEN && q->phase != IW_PHASE_DRAIN)
		return;
	/* The bytes before the FIN come first. */
	if (q->rx_pages) {
		q->fin_waits = true;
		return;
	}
	q->phase = IW_PHASE_DRAIN;
	q->drain_left = 0;
	q->peer_fin = true;
	if (q->rec == NULL && q->midst == IW_MIDST_NONE)
		iw_close_once(q, IW_CLOSE_ORDERLY);
}

void
iw_closed(struct iw_qp *q, uint64_t now, int error)
{
	bool lost = error || q->mrx.have > 0 || q->phase == IW_PHASE_OPEN;

	if (q->phase == IW_PHASE_CLOSED)
		return;
	buffers_drop(q);
	q->tx_pages = q->rx_pages = q->fin_waits = false;
	q->term_len = 0;
	if (q->phase < IW_PHASE_ERROR) {
		if (lost)
			iw_count(q, IW_LLP_CLOSED);
		iw_enter_error(q, lost ? IW_LLP_CLOSED : IW_NONE);
	}
	q->phase = IW_PHASE_CLOSED;
}

void
iw_get_info(const struct iw_qp *q, struct iw_info *out)
{
	*out = q->info;
	out->ord_used = q->reads_out;
	out->ird_used = q->irq.tail - q->irq.head;
	out->mulpdu = q->mulpdu;
}
