/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues, also those of XRC. */
#include <stdlib.h>

#include "../../lib/client/path.h"
#include "alloc_priv.h"
#include "events_priv.h"
#include "ops_priv.h"
#include "path_priv.h"
#include "verbs_priv.h"

static int
srq_attr_check(const struct ibv_srq_init_attr_ex *a)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			       IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	if ((a->comp_mask & ~known) != 0 || a->srq_type == IBV_SRQT_TM)
		return vb_fail(EOPNOTSUPP,
			"shared receive queues of type %d with attributes %#x are not supported",
			a->srq_type, a->comp_mask);
	if ((a->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || a->pd == NULL || a->attr.max_wr == 0)
		return vb_fail(
			EINVAL, "a shared receive queue needs a protection domain and a depth");
	if (a->srq_type != IBV_SRQT_XRC)
		return 0;
	if ((a->comp_mask & xrc) != xrc || a->xrcd == NULL || a->cq == NULL)
		return vb_fail(
			EINVAL, "an XRC receive queue needs an XRC domain and a completion queue");
	return 0;
}

/* Creates the engine's queue and fills in *srq. It has no limit: ibv_create_srq(3) ignores that of
 * the attributes. Returns 0 or errno. */
static int
srq_make(struct vb_srq *srq, struct ibv_srq_init_attr_ex *a)
{
	struct vb_xrcd *x = srq->xrc ? (struct vb_xrcd *)a->xrcd : NULL;
	struct saker_srq_attr sa = {
		.depth = a->attr.max_wr,
		.max_sge = a->attr.max_sge > 0 ? a->attr.max_sge : 1,
		.xrcd = x != NULL ? x->saker : NULL,
		.cq = x != NULL ? vb_cq(a->cq)->saker : NULL,
		.user = srq,
	};
	int rc =
		vb_rc(saker_srq_create_as(vb_pd(a->pd)->saker, &sa, &srq->saker), "ibv_create_srq");

	if (rc != 0)
		return rc;
	if (x != NULL) {
		srq->cq = vb_cq(a->cq);
		srq->xrcd = x;
		vb_hold(&srq->cq->refs);
		vb_hold(&x->refs);
	}
	srq->max_wr = a->attr.max_wr = sa.depth;
	srq->max_sge = a->attr.max_sge = sa.max_sge;
	srq->srq.srq_context = a->srq_context;
	srq->srq.pd = a->pd;
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
	return 0;
}

struct ibv_srq *
vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct vb_pd *owner = NULL;
	struct vb_srq *srq = NULL;
	int rc = vb_alive(context);

	if (rc == 0)
		rc = srq_attr_check(attr);
	if (rc == 0 &&
		(srq = vb_object_alloc(attr->pd, sizeof(*srq), VB_RESOURCE_SRQ, &owner)) == NULL)
		rc = ENOMEM;
	if (rc == 0) {
		srq->owner = owner;
		srq->srq.context = context;
		srq->xrc = attr->srq_type == IBV_SRQT_XRC;
		rc = srq_make(srq, attr);
	}
	if (rc == 0) {
		vb_owned_enter(context, &srq->owned, VB_SRQ);
		return &srq->srq;
	}
	vb_object_free(srq, VB_RESOURCE_SRQ, owner);
	errno = rc;
	return NULL;
}

VB_EXPORT struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd};
	struct ibv_srq *srq = vb_create_srq_ex(pd->context, &ex);

	if (srq != NULL)
		attr->attr = ex.attr;
	return srq;
}

/* Resizes a queue. It does not shrink: it may be larger than the program requests, but not smaller
 * than what is in it. */
static int
srq_depth_set(struct vb_srq *srq, uint32_t max_wr)
{
	uint32_t n = cl_srq_count(srq->saker);
	int depth;

	if (max_wr == 0 || max_wr > vb_context(srq->srq.context)->info.max_rq_depth || max_wr < n)
		return vb_fail(EINVAL,
			"a shared receive queue with %u receives cannot have a depth of %u", n,
			max_wr);
	vb_path_depth++;
	depth = saker_srq_resize(srq->saker, max_wr);
	vb_path_depth--;
	if (depth < 0)
		return vb_rc(depth, "ibv_modify_srq");
	__atomic_store_n(&srq->max_wr, (uint32_t)depth, __ATOMIC_RELAXED);
	return 0;
}

/* Checks the limit before anything is modified. Returns 0 or EINVAL. */
static int
srq_limit_check(const struct vb_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	uint32_t depth = srq->max_wr;

	if ((mask & IBV_SRQ_MAX_WR) != 0 && attr->max_wr > depth)
		depth = attr->max_wr;
	if ((mask & IBV_SRQ_LIMIT) != 0 && attr->srq_limit > depth)
		return vb_fail(EINVAL,
			"a limit for a shared receive queue of depth %u cannot be %u", depth,
			attr->srq_limit);
	return 0;
}

VB_EXPORT int
ibv_modify_srq(struct ibv_srq *p, struct ibv_srq_attr *attr, int mask)
{
	struct vb_srq *srq = vb_srq(p);
	int rc = vb_alive(p->context);

	if (rc != 0)
		return rc;
	if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0)
		return vb_fail(EINVAL, "ibv_modify_srq: unknown attributes %#x", mask);
	rc = srq_limit_check(srq, attr, mask);
	if (rc == 0 && (mask & IBV_SRQ_MAX_WR) != 0)
		rc = srq_depth_set(srq, attr->max_wr);
	if (rc == 0 && (mask & IBV_SRQ_LIMIT) != 0)
		rc = vb_rc(saker_srq_set_limit(srq->saker, attr->srq_limit), "ibv_modify_srq");
	if (rc == 0 && (mask & IBV_SRQ_LIMIT) != 0)
		__atomic_store_n(&srq->limit, attr->srq_limit, __ATOMIC_RELAXED);
	return rc;
}

VB_EXPORT int
ibv_query_srq(struct ibv_srq *p, struct ibv_srq_attr *attr)
{
	struct vb_srq *srq = vb_srq(p);

	attr->max_wr = __atomic_load_n(&srq->max_wr, __ATOMIC_RELAXED);
	attr->max_sge = srq->max_sge;
	attr->srq_limit = __atomic_load_n(&srq->limit, __ATOMIC_RELAXED);
	return 0;
}

int
vb_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
	if (!vb_srq(srq)->xrc)
		return vb_fail(EOPNOTSUPP,
			"the shared receive queue is not an XRC queue and has no number");
	*num = saker_srq_num(vb_srq(srq)->saker);
	return 0;
}

VB_EXPORT int
ibv_destroy_srq(struct ibv_srq *p)
{
	struct vb_srq *srq = vb_srq(p);
	struct vb_retire r = {.context = p->context,
		.element = srq,
		.mutex = &p->mutex,
		.cond = &p->cond,
		.async_acked = &p->events_completed,
		.async_got = &srq->async_got};
	int rc = 0;

	if (vb_held(&srq->refs))
		return vb_fail(EBUSY, "the shared receive queue is in use by %u queue pairs",
			__atomic_load_n(&srq->refs, __ATOMIC_RELAXED));
	vb_retire_begin(&r);
	if (vb_owned_live(p->context, &srq->owned))
		rc = vb_rc(saker_srq_destroy(srq->saker), "ibv_destroy_srq");
	vb_retire_end(&r, rc == 0);
	if (rc != 0)
		return rc;
	if (srq->xrc) {
		vb_release(&srq->cq->refs);
		vb_release(&srq->xrcd->refs);
	}
	pthread_mutex_destroy(&p->mutex);
	pthread_cond_destroy(&p->cond);
	vb_owned_leave(&srq->owned);
	vb_object_free(srq, VB_RESOURCE_SRQ, srq->owner);
	return 0;
}
