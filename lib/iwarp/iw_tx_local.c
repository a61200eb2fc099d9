/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that send nothing: bind a memory window, local invalidate. They take effect when their
 * turn has come, so that a Send behind a bind may tell the peer of it. One that takes away what
 * streams on other stages may have been granted completes when none of them can be in the middle of
 * using it.
 */
#include "iw_priv.h"

static enum iw_step
acted(struct iw_qp *q, struct iw_op *op, bool wait)
{
	const struct rd_ops *rd = &q->st->ops.rd;

	op->acted = true;
	op->token = wait && rd->quiesce ? rd->quiesce(q->st->ctx) : 0;
	return IW_STEP_DID;
}

/* Completes it once the others are quiet. */
static enum iw_step
finish(struct iw_qp *q, struct iw_op *op)
{
	struct iw_stage *st = q->st;

	if (op->token && !st->ops.rd.quiesced(st->ctx, op->token))
		return IW_STEP_NOBUF;
	q->tx_op = NULL;
	iw_sq_done(q, &op->wr, 0);
	iw_op_release(st, op);
	return IW_STEP_DID;
}

enum iw_step
iw_bind_step(struct iw_qp *q, struct iw_op *op)
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
		return IW_STEP_NOBUF;
	default:
		return iw_refuse(q, op, RD_MW_BIND_ERR);
	}
}

/* What an earlier Read or Atomic of this QP still fills is not taken away under it. */
enum iw_step
iw_local_inv_step(struct iw_qp *q, struct iw_op *op)
{
	uint32_t stag = (uint32_t)op->wr.imm;
	struct iw_stage *st = q->st;
	struct rd_mr *mr;

	if (op->acted)
		return finish(q, op);
	if (iw_sq_fills(q, stag)) {
		q->want_reads = true;
		return IW_STEP_WAIT;
	}
	if (rd_invalidate_check(st->ops.rd.mrs, q->rd, stag, false, &mr) != RD_OK ||
		!st->ops.rd.invalidate(st->ctx, mr))
		return iw_refuse(q, op, RD_LOC_PROT_ERR);
	return acted(q, op, !mr->window);
}
