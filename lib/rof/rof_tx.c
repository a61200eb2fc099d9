/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send queue: one table row per verbs opcode. A request is checked completely before its first
 * transaction. A request that continues in a later call is checked again, since its regions may
 * have been deregistered meanwhile.
 */
#include "rof_priv.h"

/* Bytes that a QP may send in its turn: received packets wait as long as the copy takes, and Falcon
 * measures that as delay of the fabric. */
#define TURN_BYTES 65536

static const struct kind {
	enum rof_step (*step)(struct rof_qp *q, struct rof_op *op); /* NULL: invalid opcode */
	bool local;                                                 /* sends no packet */
	bool pull;                                                  /* counts against ORD */
	uint8_t need; /* access rights on the local elements */
} kinds[] = {
	[RD_SEND] = {.step = rof_push_step},
	[RD_SEND_INV] = {.step = rof_push_step},
	[RD_SEND_IMM] = {.step = rof_push_step},
	[RD_WRITE] = {.step = rof_push_step},
	[RD_WRITE_IMM] = {.step = rof_push_step},
	[RD_READ] = {.step = rof_read_step, .pull = true, .need = RD_ACC_LOCAL_WRITE},
	[RD_READ_INV] = {.step = rof_read_step, .pull = true, .need = RD_ACC_LOCAL_WRITE},
	[RD_CMP_SWAP] = {.step = rof_atomic_step, .pull = true, .need = RD_ACC_LOCAL_WRITE},
	[RD_FETCH_ADD] = {.step = rof_atomic_step, .pull = true, .need = RD_ACC_LOCAL_WRITE},
	[RD_LOCAL_INV] = {.step = rof_local_step, .local = true},
	[RD_BIND_MW] = {.step = rof_local_step, .local = true},
};

static const struct kind *
rof_tx_kind_of(const struct rof_qp *q, const struct rd_wr *wr)
{
	if (wr->opcode >= SK_ARRAY_LEN(kinds) || kinds[wr->opcode].step == NULL)
		return NULL;
	if (q->transport == ROF_UD && wr->opcode != RD_SEND && wr->opcode != RD_SEND_IMM)
		return NULL;
	return &kinds[wr->opcode];
}

void
rof_op_end(struct rof_qp *q, struct rof_op *op)
{
	uint32_t req = op->req;

	rof_req_at(q, req)->total = (uint32_t)op->total;
	q->op = NULL;
	rof_op_put(q->st, op);
	q->info.msgs_out++;
	rof_req_issued(q, req);
}

enum rof_step
rof_refuse(struct rof_qp *q, struct rof_op *op, enum rd_status status)
{
	struct rof_req *r;

	rof_count(q->st, ROF_LOCAL_FAULT);
	if (!op->begun)
		rof_req_begin(q, op);
	r = rof_req_at(q, op->req);
	if (r->status == RD_SUCCESS)
		r->status = (uint8_t)status;
	if (q->errors == ROF_ERRORS_VERBS) {
		q->error = ROF_LOCAL_FAULT;
		q->halted = true; /* those before it may still succeed */
	}
	op->total = 0;
	rof_op_end(q, op);
	return q->phase == ROF_PHASE_OPEN ? ROF_STEP_DID : ROF_STEP_DEAD;
}

/* Checks the size limits of a mode or a QP type (6.4). */
static enum rd_status
size_check(const struct rof_qp *q, const struct rof_op *op)
{
	bool send = op->wr.opcode <= RD_SEND_IMM;

	if (q->transport == ROF_UD)
		return op->total > q->mtu ? RD_LOC_LEN_ERR : RD_SUCCESS;
	if (q->ordering == ROF_ORDER_NONE && (send || op->wr.opcode == RD_WRITE_IMM) &&
		op->total > q->mtu)
		return RD_LOC_LEN_ERR;
	return RD_SUCCESS;
}

static enum rd_status
rof_tx_op_check(struct rof_qp *q, struct rof_op *op, const struct kind *k)
{
	enum rd_status s;

	op->checked = true;
	if (k->local)
		return RD_SUCCESS;
	if (k->need && (op->wr.flags & RD_INLINE))
		return RD_LOC_QP_OP_ERR;
	s = rd_sges_check(&q->st->ops.rd, q->rd, &op->wr, k->need, &op->total, op->mrs);
	return s == RD_SUCCESS ? size_check(q, op) : s;
}

static enum rof_step
rof_tx_op_next(struct rof_qp *q)
{
	struct rof_stage *st = q->st;
	struct rof_op *op;

	if (q->halted)
		return ROF_STEP_NONE;
	if (!rof_req_room(q)) {
		if (q->req_cap == 0)
			return ROF_STEP_NOBUF;
		if (!st->ops.rd.sq_pending(st->ctx, q->rd))
			return ROF_STEP_NONE;
		return ROF_STEP_WAIT;
	}
	op = rof_op_take(st);
	if (op == NULL)
		return ROF_STEP_NOBUF;
	if (!st->ops.rd.sq_next(st->ctx, q->rd, &op->wr)) {
		rof_op_put(st, op);
		return ROF_STEP_NONE;
	}
	op->taken = st->latency.now;
	op->total = op->done = 0;
	op->sge = op->sge_off = op->sent = 0;
	op->local = (struct rd_local){0};
	op->begun = op->checked = op->failing = false;
	q->op = op;
	return ROF_STEP_DID;
}

static enum rof_step
step(struct rof_qp *q)
{
	const struct kind *k;
	struct rof_op *op;

	if (q->op == NULL) {
		enum rof_step s = rof_tx_op_next(q);

		if (s != ROF_STEP_DID)
			return s;
		s = rof_tx_fast(q, q->op);
		if (s != ROF_STEP_NONE)
			return s;
	}
	op = q->op;
	if (q->halted && !op->begun)
		return ROF_STEP_NONE;
	k = rof_tx_kind_of(q, &op->wr);
	if (k == NULL)
		return rof_refuse(q, op, RD_LOC_QP_OP_ERR);
	if (!op->checked) {
		enum rd_status status = rof_tx_op_check(q, op, k);

		if (status != RD_SUCCESS && !op->begun)
			return rof_refuse(q, op, status);
		if (status != RD_SUCCESS)
			return rof_abandon(q, op, status);
	}
	if ((op->wr.flags & RD_FENCE) && !op->begun && q->pulls_out > 0)
		return ROF_STEP_WAIT;
	if (k->pull && q->rd->ord == 0)
		return rof_refuse(q, op, RD_LOC_QP_OP_ERR);
	if (k->pull && q->pulls_out >= q->rd->ord)
		return ROF_STEP_WAIT;
	return k->step(q, op);
}

/* Does the next step, or starts several requests at once if *runs is true. A request that needs a
 * step of its own is usually followed by others: it sets *runs to false for this turn. */
static inline enum rof_step
steps(struct rof_qp *q, uint64_t enough, unsigned *budget, bool *runs)
{
	unsigned sent = 0;
	enum rof_step s = *runs ? rof_tx_run(q, *budget, enough, &sent) : ROF_STEP_WAIT;

	*budget -= sent;
	if (s != ROF_STEP_WAIT)
		return s;
	*runs = false;
	--*budget;
	return step(q);
}

enum rof_tx_result
rof_tx(struct rof_qp *q, uint64_t now, unsigned budget)
{
	uint64_t enough = q->info.bytes_out + TURN_BYTES;
	bool runs = true;

	if (q->c != NULL && !rof_chan_tx(q->c))
		return ROF_TX_NOBUF;
	if (q->phase != ROF_PHASE_OPEN)
		return ROF_TX_IDLE;
	if (q->tx_pages)
		return ROF_TX_BLOCKED;
	q->blocked = false;
	if (q->op != NULL)
		q->op->checked = false;
	while (budget > 0 && q->info.bytes_out < enough) {
		switch (steps(q, enough, &budget, &runs)) {
		case ROF_STEP_DID:
			continue;
		case ROF_STEP_WAIT:
			q->blocked = true;
			return ROF_TX_BLOCKED;
		case ROF_STEP_NOBUF:
			return ROF_TX_NOBUF;
		case ROF_STEP_PAGES:
			q->tx_pages = true;
			return ROF_TX_BLOCKED;
		case ROF_STEP_NONE:
		case ROF_STEP_DEAD:
			return ROF_TX_IDLE;
		}
	}
	return ROF_TX_MORE;
}
