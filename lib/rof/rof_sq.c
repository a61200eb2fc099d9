/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Outstanding work requests. A request is done when all of its transactions are. It completes in
 * posting order, or immediately where the ordering mode promises none (6.2, 6.4). In the verbs
 * error mode the first request that completes in error moves the QP to ERR, after those before it
 * have completed.
 */
#include "rof_priv.h"

#include <stdlib.h>

bool
rof_reqs_grow(struct rof_qp *q)
{
	uint32_t cap = q->req_cap ? 2 * q->req_cap : ROF_REQS_MIN;
	struct rof_req *r;

	if (q->req_cap >= SK_MAX(q->rd->caps.sq_depth, ROF_REQS_MIN))
		return false;
	r = malloc(cap * sizeof(*r));
	if (r == NULL)
		return false;
	for (uint32_t i = q->req_head; i != q->req_tail; i++)
		r[i & (cap - 1)] = *rof_req_at(q, i);
	free(q->reqs);
	q->reqs = r;
	q->req_cap = cap;
	return true;
}

void
rof_req_begin(struct rof_qp *q, struct rof_op *op)
{
	struct rof_req *r = rof_req_at(q, q->req_tail);
	bool signaled = q->rd->sig_all || (op->wr.flags & RD_SIGNALED);

	*r = (struct rof_req){
		.wr_id = op->wr.wr_id,
		.opcode = op->wr.opcode,
		.flags = signaled ? ROF_REQ_SIGNALED : 0,
	};
	if (rd_sample_due(&q->sample))
		rof_req_sample(q, r, op->taken);
	op->req = q->req_tail++;
	op->begun = true;
}

void
rof_req_sample(struct rof_qp *q, struct rof_req *r, uint64_t taken)
{
	r->flags |= ROF_REQ_SAMPLED;
	r->taken = taken;
	rd_sample_next(&q->st->latency, &q->sample);
}

static void
rof_sq_complete(struct rof_qp *q, const struct rof_req *r, enum rd_status status)
{
	struct rd_wc wc = {
		.wr_id = r->wr_id,
		.qpn = q->rd->qpn,
		.opcode = r->opcode,
		.status = status,
		.byte_len = r->total,
		.vendor_err = status == RD_SUCCESS ? 0 : q->error | (uint32_t)r->detail << 8,
	};

	if (status != RD_SUCCESS || (r->flags & ROF_REQ_SIGNALED))
		q->st->ops.rd.complete(q->st->ctx, q->rd, false, &wc);
}

/* Invalidates the sink of a Read (RD_READ_INV): the peer may not use it any longer. */
static enum rd_status
rof_sq_sink_invalidate(struct rof_qp *q, uint32_t stag)
{
	const struct rd_ops *rd = &q->st->ops.rd;
	struct rd_mr *mr;

	switch (rd_invalidate_check(rd->mrs, q->rd, stag, false, &mr)) {
	case RD_OK:
		return rd->invalidate(q->st->ctx, mr) ? RD_SUCCESS : RD_LOC_PROT_ERR;
	case RD_FAULT_ACCESS:
		return RD_LOC_PROT_ERR;
	default: /* the region is gone already */
		return RD_SUCCESS;
	}
}

static void
rof_sq_finish(struct rof_qp *q, struct rof_req *r)
{
	struct rof_req done = *r;

	r->flags |= ROF_REQ_DONE;
	if (done.opcode == RD_READ_INV && done.status == RD_SUCCESS)
		done.status = (uint8_t)rof_sq_sink_invalidate(q, done.inv_stag);
	if ((done.flags & ROF_REQ_SAMPLED) && done.status == RD_SUCCESS)
		rd_latency_add(&q->st->latency, done.taken);
	rof_sq_complete(q, &done, (enum rd_status)done.status);
	if (done.status == RD_SUCCESS || q->errors != ROF_ERRORS_VERBS)
		return;
	q->error_reported = true;
	rof_fail(q, q->error                          ? (enum rof_reason)q->error
		    : done.status == RD_RETRY_EXC_ERR ? ROF_CONNECTION_LOST
						      : ROF_REMOTE_ERROR);
}

static void
rof_sq_advance(struct rof_qp *q)
{
	while (q->phase == ROF_PHASE_OPEN && q->req_head != q->req_tail) {
		struct rof_req *r = rof_req_at(q, q->req_head);

		if (!(r->flags & ROF_REQ_ISSUED) || r->left > 0)
			return;
		q->req_head++;
		if (!(r->flags & ROF_REQ_DONE))
			rof_sq_finish(q, r);
	}
}

/* Finishes the request if it is done. */
static void
rof_sq_settle(struct rof_qp *q, uint32_t i)
{
	struct rof_req *r = rof_req_at(q, i);

	if (q->ordering == ROF_ORDER_NONE && i != q->req_head && (r->flags & ROF_REQ_ISSUED) &&
		r->left == 0 && !(r->flags & ROF_REQ_DONE))
		rof_sq_finish(q, r);
	rof_sq_advance(q);
}

void
rof_req_issued(struct rof_qp *q, uint32_t i)
{
	rof_req_at(q, i)->flags |= ROF_REQ_ISSUED;
	rof_sq_settle(q, i);
}

/* Returns whether the rest of a request with a failed transaction should not be started. In the
 * complete-in-error mode a message that takes a receive continues to its end, so that the receive
 * completes, too. */
static bool
stops(const struct rof_qp *q, uint32_t i)
{
	const struct rof_op *op = q->op;

	if (op == NULL || !op->begun || op->req != i)
		return false;
	return q->errors == ROF_ERRORS_VERBS || op->wr.opcode == RD_WRITE ||
	       op->wr.opcode == RD_READ || op->wr.opcode == RD_READ_INV;
}

void
rof_req_progress(struct rof_qp *q, uint32_t i, enum rd_status status, uint32_t vendor)
{
	struct rof_req *r = rof_req_at(q, i);

	r->left--;
	if (r->status == RD_SUCCESS && status != RD_SUCCESS) {
		r->status = (uint8_t)status;
		r->detail = (uint8_t)(vendor >> 8);
	}
	if (status != RD_SUCCESS && q->errors == ROF_ERRORS_VERBS)
		q->halted = true;
	if (status != RD_SUCCESS && stops(q, i))
		rof_op_end(q, q->op);
	else
		rof_sq_settle(q, i);
}

void
rof_req_pushed(struct rof_qp *q, uint32_t i)
{
	struct rof_req *r = rof_req_at(q, i);

	r->left--;
	/* Such a request needs no completion. */
	if (r->left == 0 && i == q->req_head && r->flags == ROF_REQ_ISSUED &&
		r->status == RD_SUCCESS) {
		q->req_head++;
		if (q->req_head == q->req_tail || rof_req_at(q, q->req_head)->left > 0)
			return;
	}
	rof_sq_advance(q);
}

/* Returns the status of a flushed request. As verbs require, requests behind the first error are
 * flushed, whatever their own result. */
static enum rd_status
flushed(struct rof_qp *q, const struct rof_req *r)
{
	enum rd_status status = (enum rd_status)r->status;

	if (status == RD_SUCCESS && q->unreachable && !q->error_reported)
		status = RD_RETRY_EXC_ERR;
	if (status == RD_SUCCESS || (q->errors == ROF_ERRORS_VERBS && q->error_reported))
		return RD_WR_FLUSH_ERR;
	q->error_reported = true;
	return status;
}

void
rof_sq_flush(struct rof_qp *q)
{
	struct rof_op *op = q->op;
	struct rof_req r = {.opcode = RD_SEND};

	for (; q->req_head != q->req_tail; q->req_head++) {
		r = *rof_req_at(q, q->req_head);
		if (!(r.flags & ROF_REQ_DONE))
			rof_sq_complete(q, &r, flushed(q, &r));
	}
	q->pulls_out = 0;
	q->op = NULL;
	if (op != NULL && !op->begun) {
		r = (struct rof_req){.wr_id = op->wr.wr_id, .opcode = op->wr.opcode};
		rof_sq_complete(q, &r, flushed(q, &r));
	}
	if (op != NULL)
		rof_op_put(q->st, op);
}

bool
rof_sq_flush_queue(struct rof_qp *q, uint32_t most)
{
	const struct rd_ops *rd = &q->st->ops.rd;
	struct rof_req r;
	struct rd_wr wr;

	/* A client that posts while this loop runs rings the doorbell again, so one queue's depth
	 * is enough. */
	most = SK_MIN(most, q->rd->caps.sq_depth);
	for (uint32_t n = 0; n < most; n++) {
		if (!rd->sq_next(q->st->ctx, q->rd, &wr))
			return false;
		r = (struct rof_req){.wr_id = wr.wr_id, .opcode = wr.opcode};
		rof_sq_complete(q, &r, flushed(q, &r));
	}
	return most > 0;
}
