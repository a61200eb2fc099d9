/* SPDX-License-Identifier: BSD-3-Clause */
/* A step that a program takes with a QP of the Falcon device, told to the engine. Of a path the two
 * GIDs count, which are addresses; sequence numbers are Falcon's own affair. */
#include <string.h>

#include "qp_priv.h"

_Static_assert((int)RD_QP_RTS == (int)IBV_QPS_RTS && (int)RD_QP_ERR == (int)IBV_QPS_ERR,
	"states have the same numbers");

int
vb_qp_step(struct vb_qp *qp, const struct ibv_qp_attr *now, enum ibv_qp_state to)
{
	const struct shm_device *d = &vb_context(qp->ex.qp_base.context)->info;
	struct saker_qp_move m = {
		.state = (enum rd_qp_state)to,
		.remote_qpn = now->dest_qp_num,
		.qkey = now->qkey,
		.access = now->qp_access_flags,
		.ird = now->max_dest_rd_atomic,
		.ord = now->max_rd_atomic,
		.rnr_retry = now->rnr_retry,
		.retry = now->retry_cnt,
		.min_rnr_timer = now->min_rnr_timer,
		.timeout = now->timeout,
	};

	if (now->ah_attr.is_global) {
		memcpy(m.remote.b, now->ah_attr.grh.dgid.raw, sizeof(m.remote.b));
		if (now->ah_attr.grh.sgid_index >= d->naddrs)
			return vb_fail(EINVAL, "there is no GID %u", now->ah_attr.grh.sgid_index);
		m.local = d->addrs[now->ah_attr.grh.sgid_index];
	}
	/* What changes beside the state from here on is for the next connection. */
	if (to == qp->ex.qp_base.state && to == IBV_QPS_RTS)
		return 0;
	return vb_rc(saker_qp_move(qp->saker, &m), "ibv_modify_qp");
}
