/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests that send nothing: memory window bind and local invalidate. They take effect in the
 * order of the send queue, so that a Send behind a bind may carry the new STag to the peer. A
 * request that revokes access from QPs on other stages completes only when none of those stages can
 * be in the middle of an access.
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
