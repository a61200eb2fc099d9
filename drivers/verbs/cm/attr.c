/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For programs that move their QPs themselves: which attributes a state needs. The connection
 * itself is the connection manager's on both devices. It does not know the peer's QP number: a
 * number of 0, which no QP has, says "of this id", and the move to RTR is then one in name only.
 */
#include <string.h>

#include "cm_priv.h"

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static void
attr_to_init(const struct cm_id *id, bool ib, struct ibv_qp_attr *a, int *mask)
{
	a->qp_access_flags = RIGHTS | (ib ? IBV_ACCESS_REMOTE_ATOMIC : 0);
	*mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
	if (!ib)
		return;
	a->pkey_index = 0;
	a->port_num = id->id.port_num;
	*mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (!cm_is_ud(id))
		return;
	a->qkey = RDMA_UDP_QKEY;
	*mask = (*mask & ~IBV_QP_ACCESS_FLAGS) | IBV_QP_QKEY;
}

static void
attr_to_rtr(const struct cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	const struct shm_device *d = &vb_context(id->id.verbs)->info;

	*mask = IBV_QP_STATE;
	if (cm_is_ud(id))
		return;
	memset(&a->ah_attr, 0, sizeof(a->ah_attr));
	memcpy(a->ah_attr.grh.dgid.raw, id->remote.b, sizeof(a->ah_attr.grh.dgid.raw));
	a->ah_attr.is_global = 1;
	a->ah_attr.grh.hop_limit = 64;
	a->ah_attr.port_num = id->id.port_num;
	a->path_mtu = IBV_MTU_4096;
	a->dest_qp_num = 0;
	a->rq_psn = 0;
	a->max_dest_rd_atomic = (uint8_t)(d->max_ird < 255 ? d->max_ird : 255);
	a->min_rnr_timer = 0;
	*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static void
attr_to_rts(const struct cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	const struct shm_device *d = &vb_context(id->id.verbs)->info;

	a->sq_psn = 0;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (cm_is_ud(id))
		return;
	a->timeout = 14; /* 67 ms */
	a->retry_cnt = a->rnr_retry = CM_RETRIES;
	a->max_rd_atomic = (uint8_t)(d->max_ord < 255 ? d->max_ord : 255);
	*mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

VB_EXPORT int
rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	const struct cm_id *p = cm_id_of(id);
	bool ib;

	if (id->verbs == NULL)
		return cm_end(EINVAL);
	ib = vb_is_falcon(id->verbs);
	/* An iWARP QP has rights, and its state is its stream's. */
	if (qp_attr->qp_state == IBV_QPS_INIT || (!ib && qp_attr->qp_state == IBV_QPS_RTR))
		attr_to_init(p, ib, qp_attr, qp_attr_mask);
	else if (qp_attr->qp_state == IBV_QPS_RTR)
		attr_to_rtr(p, qp_attr, qp_attr_mask);
	else if (qp_attr->qp_state == IBV_QPS_RTS && ib)
		attr_to_rts(p, qp_attr, qp_attr_mask);
	else if (qp_attr->qp_state == IBV_QPS_RTS)
		*qp_attr_mask = IBV_QP_STATE;
	else
		return cm_end(EINVAL);
	return 0;
}
