/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that send no packet (rd_local_step()), executed in their turn. */
#include "rof_priv.h"

enum rof_step
rof_local_step(struct rof_qp *q, struct rof_op *op)
{
	struct rof_stage *st = q->st;

	/* A region that an outstanding Read or Atomic of this QP still fills stays valid until
	 * then. */
	if (op->wr.opcode == RD_LOCAL_INV && !op->local.acted &&
		rof_chan_fills(q->c, q, (uint32_t)op->wr.imm))
		return ROF_STEP_WAIT;
	switch (rd_local_step(&st->ops.rd, st->ctx, q->rd, &op->wr, &op->local)) {
	case RD_LOCAL_AGAIN:
		return ROF_STEP_NOBUF;
	case RD_LOCAL_REFUSED:
		return rof_refuse(q, op, (enum rd_status)op->local.status);
	default:
		break;
	}
	rof_req_begin(q, op);
	rof_op_end(q, op);
	return q->phase == ROF_PHASE_OPEN ? ROF_STEP_DID : ROF_STEP_DEAD;
}
