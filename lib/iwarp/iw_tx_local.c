/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that send nothing (rd_local_step()), executed in the order of the send queue. */
#include "iw_priv.h"

enum iw_step
iw_local_step(struct iw_qp *q, struct iw_op *op)
{
	struct iw_stage *st = q->st;

	/* A region stays valid while an earlier Read or Atomic of this QP fills it. */
	if (op->wr.opcode == RD_LOCAL_INV && !op->local.acted &&
		iw_sq_fills(q, (uint32_t)op->wr.imm)) {
		q->want_reads = true;
		return IW_STEP_WAIT;
	}
	switch (rd_local_step(&st->ops.rd, st->ctx, q->rd, &op->wr, &op->local)) {
	case RD_LOCAL_AGAIN:
		return IW_STEP_NOBUF;
	case RD_LOCAL_REFUSED:
		return iw_refuse(q, op, (enum rd_status)op->local.status);
	default:
		break;
	}
	q->tx_op = NULL;
	iw_sq_done(q, op, 0);
	iw_op_release(st, op);
	return IW_STEP_DID;
}
