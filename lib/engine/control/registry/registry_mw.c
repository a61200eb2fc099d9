/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows. The control stage gives a window its STag and takes it back; the engine stages
 * bind it (lib/rdma/mw.c). A bound window that is destroyed releases its region when no stage can
 * be binding it any more. The control stage sends the reply only then, so that the client can
 * deregister the region after the reply.
 */
#include <errno.h>
#include <stdlib.h>

#include "registry.h"

int
ctl_mw_create(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct shm_mw *i = &m->body.mw;
	struct ctl_pd *pd = ctl_pd_find(cl, i->pd);
	struct ctl_mw *mw;

	if (pd == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no protection domain %u", i->pd);
	if (i->type != RD_MW_TYPE_1 && i->type != RD_MW_TYPE_2)
		return ctl_refuse(c, m, -EINVAL, "memory window type %u does not exist", i->type);
	if (ctl_take(c, cl, CTL_POOL_MW, m) < 0)
		return m->status;
	mw = calloc(1, sizeof(*mw));
	if (mw == NULL) {
		ctl_give(c, cl, CTL_POOL_MW);
		return ctl_refuse(c, m, -ENOMEM, "no memory for a memory window");
	}
	rd_mw_init(&mw->rd, &pd->rd, i->type);
	if (ctl_stag_add(c, &mw->rd.mr) < 0) {
		ctl_give(c, cl, CTL_POOL_MW);
		free(mw);
		return ctl_refuse(c, m, -ENOSPC, "all STags are in use");
	}
	pd->rd.refs++;
	mw->end.client = cl;
	mw->handle = (uint32_t)ctl_table_add(&cl->mws, mw);
	ctl_total(&c->totals.mws, 1);
	i->mw = mw->handle;
	i->stag = mw->rd.mr.stag;
	return 0;
}

static void
mw_free(struct eng_control *c, struct ctl_retired *r)
{
	struct ctl_mw *mw = (struct ctl_mw *)r;

	rd_mw_fini(&mw->rd);
	((struct rd_pd *)mw->rd.mr.pd)->refs--;
	ctl_total(&c->totals.mws, -1);
	ctl_give(c, r->client, CTL_POOL_MW);
	free(mw);
}

void
ctl_mw_retire(struct eng_control *c, struct ctl_mw *mw)
{
	struct ctl_client *cl = mw->end.client;

	rd_mr_del(c->a.mrs, &mw->rd.mr);
	ctl_table_del(&cl->mws, mw->handle);
	mw->end.free = mw_free;
	ctl_retire(c, cl, &mw->end);
}

int
ctl_mw_destroy(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_mw *mw = ctl_table_get(&cl->mws, m->body.handle);

	if (mw == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no memory window %u", m->body.handle);
	mw->end.op = ctl_op_new(c, cl, m, mw, NULL);
	if (mw->end.op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	ctl_mw_retire(c, mw);
	return CTL_LATER;
}
