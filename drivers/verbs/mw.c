/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows. A program binds a window of type 2 by ibv_post_send() or ibv_wr_bind_mw(). */
#include <stdlib.h>

#include "ops_priv.h"
#include "path_priv.h"
#include "verbs_priv.h"

static struct vb_mw *
vb_mw(struct ibv_mw *mw)
{
	return (struct vb_mw *)mw;
}

struct ibv_mw *
vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct vb_mw *mw = NULL;
	int rc = vb_alive(pd->context);

	if (rc == 0 && type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		rc = EINVAL;
	if (rc == 0 && (mw = calloc(1, sizeof(*mw))) == NULL)
		rc = ENOMEM;
	if (rc == 0)
		rc = vb_rc(saker_mw_alloc(vb_pd(pd)->saker, (enum rd_mw_type)type, &mw->saker),
			"ibv_alloc_mw");
	if (rc != 0) {
		free(mw);
		errno = rc;
		return NULL;
	}
	mw->mw.context = pd->context;
	mw->mw.pd = pd;
	mw->mw.type = type;
	mw->mw.rkey = saker_mw_stag(mw->saker);
	vb_owned_enter(pd->context, &mw->owned, VB_MW);
	return &mw->mw;
}

int
vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_mr *mr = bind->bind_info.mr;
	const struct saker_mw_bind b = {
		.wr_id = bind->wr_id,
		.flags = ((bind->send_flags & IBV_SEND_SIGNALED) ? RD_SIGNALED : 0) |
			 ((bind->send_flags & IBV_SEND_FENCE) ? RD_FENCE : 0),
		.mr = mr != NULL ? ((struct vb_mr *)mr)->saker : NULL,
		.addr = bind->bind_info.addr,
		.len = bind->bind_info.length,
		.access = bind->bind_info.mw_access_flags,
	};
	int rc;

	if (qp->state < IBV_QPS_RTS)
		return vb_fail(EINVAL, "the queue pair is in state %d and cannot send", qp->state);
	if (mr != NULL && b.mr == NULL)
		return vb_fail(EINVAL, "a window cannot be bound to a region that was imported");
	if (!vb_path_enter(&vb_qp(qp)->sq_lock))
		return EBUSY;
	rc = saker_mw_bind(vb_qp(qp)->saker, vb_mw(mw)->saker, &b);
	if (rc == 0)
		mw->rkey = saker_mw_stag(vb_mw(mw)->saker);
	vb_path_leave(&vb_qp(qp)->sq_lock);
	return rc < 0 ? -rc : 0;
}

int
vb_dealloc_mw(struct ibv_mw *mw)
{
	int rc = 0;

	if (vb_owned_live(mw->context, &vb_mw(mw)->owned))
		rc = vb_rc(saker_mw_free(vb_mw(mw)->saker), "ibv_dealloc_mw");
	if (rc != 0)
		return rc;
	vb_owned_leave(&vb_mw(mw)->owned);
	free(mw);
	return 0;
}
