/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that send nothing: bind a memory window, local invalidate. They take effect when their
 * turn has come, so that a Send behind a bind may tell the peer of it. One that takes away what QPs
 * on other stages may have been granted is done when none of them can be in the middle of using it.
 */
#include "rdma.h"

static enum rd_local_result
acted(const struct rd_ops *ops, void *ctx, struct rd_local *l, bool wait)
{
	l->acted = true;
	l->token = wait && ops->quiesce != NULL ? ops->quiesce(ctx) : 0;
	return l->token ? RD_LOCAL_AGAIN : RD_LOCAL_DONE;
}

static enum rd_local_result
bind(const struct rd_ops *ops, void *ctx, const struct rd_qp *qp, const struct rd_wr *wr,
	struct rd_local *l)
{
	struct rd_bind b = rd_bind_of(wr);

	switch (rd_mw_bind(ops->mrs, qp, &b)) {
	case RD_BIND_DONE:
		return acted(ops, ctx, l, false);
	case RD_BIND_CHANGED:
		return acted(ops, ctx, l, true);
	case RD_BIND_BUSY:
		return RD_LOCAL_AGAIN;
	default:
		l->status = RD_MW_BIND_ERR;
		return RD_LOCAL_REFUSED;
	}
}

static enum rd_local_result
local_invalidate(const struct rd_ops *ops, void *ctx, const struct rd_qp *qp, uint32_t stag,
	struct rd_local *l)
{
	struct rd_mr *mr;

	if (rd_invalidate_check(ops->mrs, qp, stag, false, &mr) != RD_OK ||
		!ops->invalidate(ctx, mr)) {
		l->status = RD_LOC_PROT_ERR;
		return RD_LOCAL_REFUSED;
	}
	return acted(ops, ctx, l, !mr->window);
}

enum rd_local_result
rd_local_step(const struct rd_ops *ops, void *ctx, const struct rd_qp *qp, const struct rd_wr *wr,
	struct rd_local *l)
{
	if (l->acted)
		return l->token && !ops->quiesced(ctx, l->token) ? RD_LOCAL_AGAIN : RD_LOCAL_DONE;
	if (wr->opcode == RD_BIND_MW)
		return bind(ops, ctx, qp, wr, l);
	return local_invalidate(ops, ctx, qp, (uint32_t)wr->imm, l);
}
