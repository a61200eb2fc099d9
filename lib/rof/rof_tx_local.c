/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that send nothing: bind a memory window, local invalidate. They take effect when their
 * turn has come; one that takes away what QPs on other stages may have been granted completes when
 * none of them can be in the middle of using it.
 */
#include "rof_priv.h"

static enum rof_step
acted(struct rof_qp *q, struct rof_op *op, bool wait)
{
	const struct rd_ops *rd = &q->st->ops.rd;

	op->acted = true;
	op->token = wait && rd->quiesce ? rd->quiesce(q->st->ctx) : 0;
	return ROF_STEP_DID;
}

static enum rof_step
finish(struct rof_qp *q, struct rof_op *op)
{
	if (op->token && !q->st->ops.rd.quiesced(q->st->ctx, op->token))
		return ROF_STEP_NOBUF;
	rof_req_begin(q, op);
	rof_op_end(q, op);
	return q->phase == ROF_PHASE_OPEN ? ROF_STEP_DID : ROF_STEP_DEAD;
}

enum rof_step
rof_bind_step(struct rof_qp *q, struct rof_op *op)
{
	struct rd_bind bind = rd_bind_of(&op->wr);

	if (op->acted)
		return finish(q, op);
	switch (rd_mw_bind(q->st->ops.rd.mrs, q->rd, &bind)) {
	case RD_BIND_DONE:
		return acted(q, op, false);
	case RD_BIND_CHANGED:
		return acted(q, op, true);
	case RD_BIND_BUSY:
		return ROF_STEP_NOBUF;
	default:
		return rof_refuse(q, op, RD_MW_BIND_ERR);
	}
}

/* What an earlier Read or Atomic of this QP still fills is not taken away under it. */
enum rof_step
rof_local_inv_step(struct rof_qp *q, struct rof_op *op)
{
	uint32_t stag = (uint32_t)op->wr.imm;
	struct rof_stage *st = q->st;
	struct rd_mr *mr;

	if (op->acted)
		return finish(q, op);
	if (rof_chan_fills(q->c, q, stag))
		return ROF_STEP_WAIT;
	if (rd_invalidate_check(st->ops.rd.mrs, q->rd, stag, false, &mr) != RD_OK ||
		!st->ops.rd.invalidate(st->ctx, mr))
		return rof_refuse(q, op, RD_LOC_PROT_ERR);
	return acted(q, op, !mr->window);
}
