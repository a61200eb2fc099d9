/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a QP. Each transition to the error state goes through enter_error(). After it no
 * request of the QP is outstanding: the channel answers or drops what Falcon still delivers for it.
 */
#include "rof_priv.h"

#include <stdlib.h>
#include <string.h>

struct rof_op *
rof_op_take(struct rof_stage *st)
{
	struct rof_op *op = st->spare_op;

	if (op == NULL)
		return malloc(sizeof(*op));
	st->spare_op = NULL;
	return op;
}

void
rof_op_put(struct rof_stage *st, struct rof_op *op)
{
	if (st->spare_op == NULL)
		st->spare_op = op;
	else
		free(op);
}

struct rof_qp *
rof_qp_create(struct rof_stage *st, struct rd_qp *qp, uint32_t qkey)
{
	struct rof_qp *q = aligned_alloc(_Alignof(struct rof_qp), sizeof(*q));

	if (q == NULL)
		return NULL;
	memset(q, 0, sizeof(*q));
	q->st = st;
	q->rd = qp;
	q->late_end = &q->late;
	q->qkey = qkey;
	q->send_rmsn = q->pull_rmsn = q->recv_base = q->recv_taken = 1; /* 8.3.2 */
	rd_sample_next(&st->latency, &q->sample);
	rof_users(st, 1);
	return q;
}

void
rof_qp_destroy(struct rof_qp *q)
{
	struct rof_stage *st = q->st;

	rof_chan_unwait(q);
	rof_forget(q);
	if (q->c != NULL)
		q->c->rc = NULL;
	rof_recvs_drop(q);
	rof_late_end(q, false);
	free(q->op);
	free(q->reqs);
	free(q->recvs);
	free(q);
	rof_users(st, -1);
}

struct rd_qp *
rof_qp_rd(const struct rof_qp *q)
{
	return q->rd;
}

void
rof_qp_start(struct rof_qp *q, struct rof_chan *c, uint32_t peer_qpn)
{
	q->c = c;
	c->rc = q;
	q->peer_qpn = peer_qpn;
	q->transport = c->p.transport;
	q->ordering = c->p.ordering;
	q->errors = c->p.errors;
	q->mtu = c->p.mtu;
	q->phase = ROF_PHASE_OPEN;
	q->rd->state = RD_QP_RTS;
}

void
rof_qp_start_ud(struct rof_qp *q, uint8_t ordering, uint8_t errors, uint32_t mtu)
{
	q->transport = ROF_UD;
	q->ordering = ordering;
	q->errors = errors;
	q->mtu = mtu;
	q->phase = ROF_PHASE_OPEN;
	q->rd->state = RD_QP_RTS;
}

void
rof_qp_set_qkey(struct rof_qp *q, uint32_t qkey)
{
	q->qkey = qkey;
}

static void
enter_error(struct rof_qp *q, int reason)
{
	q->phase = ROF_PHASE_ERROR;
	q->error = reason;
	q->rd->state = RD_QP_ERR;
	rof_chan_unwait(q);
	rof_sq_flush(q);
	rof_late_end(q, true);
	rof_rq_flush(q);
	if (!q->st->ops.rd.flush_later)
		rof_flush(q, UINT32_MAX);
	rof_forget(q);
	q->st->ops.rd.qp_error(q->st->ctx, q->rd, reason);
}

static void
close_once(struct rof_qp *q)
{
	if (q->close_called || q->c == NULL)
		return;
	q->close_called = true;
	q->st->ops.close(q->st->ctx, q);
}

void
rof_fail(struct rof_qp *q, enum rof_reason reason)
{
	if (q->phase != ROF_PHASE_ERROR)
		enter_error(q, (int)reason);
	close_once(q);
}

void
rof_fail_target(struct rof_qp *q, enum rof_reason reason)
{
	if (q->phase != ROF_PHASE_OPEN)
		return;
	enter_error(q, (int)reason);
	rof_parked_run(q->c);
}

void
rof_disconnect(struct rof_qp *q)
{
	rof_fail(q, ROF_NONE);
}

void
rof_closed(struct rof_qp *q, int error)
{
	q->close_called = true;
	if (q->phase == ROF_PHASE_ERROR)
		return;
	if (error)
		rof_count(q->st, ROF_CONNECTION_LOST);
	enter_error(q, error ? ROF_CONNECTION_LOST : ROF_NONE);
}

void
rof_unreachable(struct rof_qp *q)
{
	q->close_called = true;
	if (q->phase == ROF_PHASE_ERROR)
		return;
	rof_count(q->st, ROF_UNREACHABLE);
	q->unreachable = true;
	enter_error(q, ROF_UNREACHABLE);
}

bool
rof_idle(const struct rof_qp *q)
{
	return q->req_head == q->req_tail && q->op == NULL &&
	       !q->st->ops.rd.sq_pending(q->st->ctx, q->rd);
}

bool
rof_flush(struct rof_qp *q, uint32_t most)
{
	bool more;

	if (q->rd->state != RD_QP_ERR)
		return false;
	more = rof_sq_flush_queue(q, most);
	return rof_rq_flush_queue(q, most) || more;
}

void
rof_get_info(const struct rof_qp *q, struct rof_info *out)
{
	*out = q->info;
}
