/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP port space, which has no connections. The active side requests the queue pair that serves
 * a port and receives its number, Q_Key and address. The passive side answers and keeps no state
 * about the requester.
 */
#include <string.h>

#include "cm_priv.h"

bool
vb_cm_is_ud(const struct cm_id *id)
{
	return id->id.ps == RDMA_PS_UDP;
}

int
vb_cm_ud_ready(struct cm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = id->id.port_num, .qkey = RDMA_UDP_QKEY};
	int err = ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (err == 0)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	return err != 0 ? err : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

int
vb_cm_ud_connect(struct cm_id *id, const struct rdma_conn_param *p)
{
	size_t len = p != NULL && p->private_data != NULL ? p->private_data_len : 0;
	struct vb_qp *qp;
	int rc = -EINVAL;

	vb_events_lock();
	qp = vb_cm_qp_of(id);
	if (qp != NULL)
		rc = saker_ud_resolve(
			qp->saker, &id->remote, id->rport, p != NULL ? p->private_data : NULL, len);
	vb_events_unlock();
	return vb_rc(rc, "requesting a datagram service");
}

/* The QP is not tied to the id, because one QP may serve many requesters. */
int
vb_cm_ud_accept(struct cm_id *id, const struct rdma_conn_param *p)
{
	uint32_t qpn = id->id.qp != NULL ? id->id.qp->qp_num : p != NULL ? p->qp_num : 0;
	struct saker *s = vb_context(id->id.verbs)->saker;
	struct saker_conn_param param = {.crc = 2, .markers = 2};
	struct saker_qp *qp;
	int rc = -EINVAL;

	if (p != NULL && p->private_data != NULL) {
		param.private_data = p->private_data;
		param.private_len = p->private_data_len;
	}
	vb_events_lock();
	qp = saker_qp_find(s, qpn);
	if (qp != NULL)
		rc = saker_accept(s, id->request, qp, &param);
	vb_events_unlock();
	return vb_rc(rc, "answering for a datagram service");
}

void
vb_cm_ud_fill(struct cm_event *e, const struct cm_id *id, const struct saker_conn_info *cm)
{
	const struct saker_device *d = &vb_context(id->id.verbs)->info;
	struct rdma_ud_param *u = &e->ev.param.ud;
	struct sk_addr local;
	uint16_t port;

	vb_cm_event_private(e, cm->private_data, cm->private_len);
	u->qp_num = cm->remote_qpn;
	u->qkey = cm->remote_qkey;
	u->ah_attr.is_global = 1;
	u->ah_attr.port_num = id->id.port_num;
	u->ah_attr.grh.hop_limit = 64;
	u->ah_attr.grh.traffic_class = id->tos;
	memcpy(u->ah_attr.grh.dgid.raw, id->remote.b, sizeof(u->ah_attr.grh.dgid.raw));
	if (vb_cm_addr_from(&id->id.route.addr.src_addr, &local, &port) != 0)
		return;
	for (uint8_t i = 0; i < d->naddrs && i < 8; i++)
		if (sk_addr_eq(&local, &d->addrs[i]))
			u->ah_attr.grh.sgid_index = i;
}
