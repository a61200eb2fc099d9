/* SPDX-License-Identifier: BSD-3-Clause */
/* The step of a QP that a program connects: passes the state and the attributes to the engine. Of
 * the path, the engine receives the two GIDs, which are addresses, and the class of packets.
 * Sequence numbers are not passed: Falcon chooses its own. */
#include <string.h>

#include "qp_priv.h"

_Static_assert((int)RD_QP_RTS == (int)IBV_QPS_RTS && (int)RD_QP_ERR == (int)IBV_QPS_ERR,
	"verbs and Saker have the same numbers for states");

int
vb_qp_step(struct vb_qp *qp, const struct ibv_qp_attr *now, enum ibv_qp_state to)
{
	const struct saker_device *d = &vb_context(qp->ex.qp_base.context)->info;
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
		m.traffic = vb_class_of(&now->ah_attr);
	}
	if (to == IBV_QPS_RTR && vb_modes(qp->ex.qp_base.context, &m.modes) != 0)
		return EINVAL;
	/* In state RTS, attributes other than the state apply to the next connection only. */
	if (to == qp->ex.qp_base.state && to == IBV_QPS_RTS)
		return 0;
	return vb_rc(saker_qp_move(qp->saker, &m), "ibv_modify_qp");
}
