/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows. A command creates and frees them; a work request binds them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

int
saker_mw_alloc(struct saker_pd *pd, enum rd_mw_type type, struct saker_mw **out)
{
	struct saker *s = pd->obj.s;
	struct saker_mw *mw = cl_zalloc(sizeof(*mw));
	struct shm_msg m;
	int rc;

	if (mw == NULL)
		return cl_fail(-ENOMEM, "no memory for a memory window");
	memset(&m, 0, sizeof(m));
	m.body.mw.pd = pd->obj.handle;
	m.body.mw.type = type;
	rc = cl_command(s, &m, SHM_MW_CREATE);
	mw->type = type;
	mw->stag = m.body.mw.stag;
	if (rc == 0)
		rc = cl_obj_add(s, &mw->obj, mw, CL_MW, m.body.mw.mw);
	if (rc < 0) {
		free(mw);
		return rc;
	}
	*out = mw;
	return 0;
}

int
saker_mw_free(struct saker_mw *mw)
{
	return cl_obj_destroy(&mw->obj);
}

uint32_t
saker_mw_stag(const struct saker_mw *mw)
{
	return mw->stag;
}

int
saker_mw_bind(struct saker_qp *qp, struct saker_mw *mw, const struct saker_mw_bind *b)
{
	uint8_t key = mw->type == RD_MW_TYPE_1 ? (uint8_t)(mw->stag + 1) : b->key;
	struct saker_wr wr = {
		.wr_id = b->wr_id,
		.opcode = RD_BIND_MW,
		.flags = b->flags & (RD_SIGNALED | RD_FENCE),
		.rkey = (mw->stag & ~0xffu) | key,
		.imm = b->mr != NULL ? saker_mr_stag(b->mr) : 0,
		.remote_addr = b->addr,
		.data = b->len,
		.compare = b->access,
	};
	int rc = saker_post_send(qp, &wr, 1);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return -ENOMEM;
	mw->stag = wr.rkey;
	return 0;
}
