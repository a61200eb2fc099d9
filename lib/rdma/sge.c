/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks the local side of a work request. As verbs require, an element's lkey is checked only if
 * the element has bytes. A request is refused as a whole before any of its bytes is copied.
 */
#include "rdma.h"

static enum rd_status
element_check(const struct rd_ops *ops, const struct rd_qp *qp, const struct rd_sge *sge,
	uint32_t need, struct rd_mr **mr)
{
	if (rd_mr_check(ops->mrs, qp->pd, qp->qpn, sge->lkey, sge->addr, sge->len, need, mr) !=
		RD_OK)
		return RD_LOC_PROT_ERR;
	return RD_SUCCESS;
}

/* Returns whether all elements with bytes are in one region. */
static bool
one_region(const struct rd_wr *wr)
{
	const struct rd_sge *first = NULL;

	for (unsigned i = 0; i < wr->nsge; i++) {
		if (wr->sge[i].len == 0)
			continue;
		if (first == NULL)
			first = &wr->sge[i];
		if (wr->sge[i].lkey != first->lkey)
			return false;
	}
	return true;
}

enum rd_status
rd_sges_check(const struct rd_ops *ops, const struct rd_qp *qp, const struct rd_wr *wr,
	uint32_t need, uint64_t *total, struct rd_mr *mrs[RD_MAX_SGE])
{
	uint64_t sum = 0;

	*total = 0;
	if (wr->flags & RD_INLINE) {
		if (wr->inline_len > RD_MAX_INLINE)
			return RD_LOC_QP_OP_ERR;
		*total = wr->inline_len;
		return RD_SUCCESS;
	}
	if (wr->nsge > RD_MAX_SGE || (wr->opcode == RD_READ_INV && !one_region(wr)))
		return RD_LOC_QP_OP_ERR;
	for (unsigned i = 0; i < wr->nsge; i++) {
		enum rd_status s;

		mrs[i] = NULL;
		if (wr->sge[i].len == 0)
			continue;
		s = element_check(ops, qp, &wr->sge[i], need, &mrs[i]);
		if (s != RD_SUCCESS)
			return s;
		sum += wr->sge[i].len;
	}
	*total = sum;
	return sum > RD_MAX_MSG ? RD_LOC_LEN_ERR : RD_SUCCESS;
}
