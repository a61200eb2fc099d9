/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_init_qp_attr(3): the attributes that each state needs, for programs that change the states
 * of their QPs themselves. On every device the connection manager makes the connection. It does not
 * have the peer's QP number and gives 0, which no QP has. That number marks the QP as one that
 * rdma_cm connects (see qp_state.c); the library does not pass the program's step to RTR to the
 * engine.
 */
#include <string.h>

#include "cm_priv.h"

/* The attributes of a QP for datagrams. */
static const struct vb_kind_attrs datagram_attr = {
	.init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
	.rtr = IBV_QP_STATE,
	.rts = IBV_QP_STATE | IBV_QP_SQ_PSN,
};

static uint8_t
clip_to_u8(uint32_t n)
{
	return (uint8_t)(n < UINT8_MAX ? n : UINT8_MAX);
}

static void
path_to_peer(const struct cm_id *id, struct ibv_ah_attr *a)
{
	memset(a, 0, sizeof(*a));
	memcpy(a->grh.dgid.raw, id->remote.b, sizeof(a->grh.dgid.raw));
	a->is_global = 1;
	a->grh.hop_limit = 64;
	a->grh.traffic_class = id->tos;
	a->port_num = id->id.port_num;
}

/* Sets the attributes that the mask names. */
static void
attr_set(const struct cm_id *id, int mask, struct ibv_qp_attr *a)
{
	const struct saker_device *d = &vb_context(id->id.verbs)->info;

	if (mask & IBV_QP_ACCESS_FLAGS)
		a->qp_access_flags = vb_kind_of(id->id.verbs)->init_access;
	if (mask & IBV_QP_PKEY_INDEX)
		a->pkey_index = 0;
	if (mask & IBV_QP_PORT)
		a->port_num = id->id.port_num;
	if (mask & IBV_QP_QKEY)
		a->qkey = RDMA_UDP_QKEY;
	if (mask & IBV_QP_AV)
		path_to_peer(id, &a->ah_attr);
	if (mask & IBV_QP_PATH_MTU)
		a->path_mtu = IBV_MTU_4096;
	if (mask & IBV_QP_DEST_QPN)
		a->dest_qp_num = 0;
	if (mask & IBV_QP_RQ_PSN)
		a->rq_psn = 0;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		a->max_dest_rd_atomic = clip_to_u8(d->max_ird);
	if (mask & IBV_QP_MIN_RNR_TIMER)
		a->min_rnr_timer = 0;
	if (mask & IBV_QP_SQ_PSN)
		a->sq_psn = 0;
	if (mask & IBV_QP_TIMEOUT)
		a->timeout = 14; /* 67 ms */
	if (mask & IBV_QP_RETRY_CNT)
		a->retry_cnt = CM_RETRIES;
	if (mask & IBV_QP_RNR_RETRY)
		a->rnr_retry = CM_RETRIES;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		a->max_rd_atomic = clip_to_u8(d->max_ord);
}

VB_EXPORT int
rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	const struct cm_id *p = vb_cm_id_of(id);
	const struct vb_kind_attrs *attrs;

	if (id->verbs == NULL)
		return vb_cm_end(EINVAL);
	attrs = vb_cm_is_ud(p) ? &datagram_attr : &vb_kind_of(id->verbs)->init_attr;
	if (qp_attr->qp_state == IBV_QPS_INIT)
		*qp_attr_mask = attrs->init;
	else if (qp_attr->qp_state == IBV_QPS_RTR)
		*qp_attr_mask = attrs->rtr;
	else if (qp_attr->qp_state == IBV_QPS_RTS)
		*qp_attr_mask = attrs->rts;
	else
		return vb_cm_end(EINVAL);
	attr_set(p, *qp_attr_mask, qp_attr);
	return 0;
}
