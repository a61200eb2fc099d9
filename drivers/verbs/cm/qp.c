/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs and shared receive queues of ids. Where the program gives no completion queues, the
 * library creates them with their channels.
 */
#include <fcntl.h>
#include <string.h>

#include "cm_priv.h"

/* Destroys a completion queue and its channel. A program that reuses the attributes of one id's
 * queue pair for another id shares the first id's completion queues. A queue that is still in use
 * stays until the process ends. */
static void
cq_destroy(struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
	if ((*cq == NULL || ibv_destroy_cq(*cq) == 0) && *channel != NULL)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

static void
cqs_destroy(struct rdma_cm_id *id)
{
	cq_destroy(&id->recv_cq, &id->recv_cq_channel);
	cq_destroy(&id->send_cq, &id->send_cq_channel);
}

static int
cq_create(struct rdma_cm_id *id, uint32_t depth, struct ibv_comp_channel **channel,
	struct ibv_cq **cq)
{
	*channel = ibv_create_comp_channel(id->verbs);
	if (*channel == NULL)
		return errno;
	/* rdma_get_send_comp() and rdma_get_recv_comp() expect the id as the queue's context. */
	*cq = ibv_create_cq(id->verbs, (int)(depth > 0 ? depth : 1), id, *channel, 0);
	return *cq != NULL ? 0 : errno;
}

/* Creates the completion queues that `send` and `recv` select and the id does not have. Creates
 * none on failure. Returns 0 or errno. */
static int
cqs_create(struct rdma_cm_id *id, bool send, uint32_t send_depth, bool recv, uint32_t recv_depth)
{
	int err = 0;

	if (recv && id->recv_cq == NULL)
		err = cq_create(id, recv_depth, &id->recv_cq_channel, &id->recv_cq);
	if (err == 0 && send && id->send_cq == NULL)
		err = cq_create(id, send_depth, &id->send_cq_channel, &id->send_cq);
	if (err != 0)
		cqs_destroy(id);
	return err;
}

static int
pd_settle(struct rdma_cm_id *id, uint32_t *comp_mask, uint32_t bit, struct ibv_pd **pd)
{
	if ((*comp_mask & bit) == 0 || *pd == NULL)
		*pd = id->pd;
	*comp_mask |= bit;
	if (*pd == NULL || (*pd)->context != id->verbs)
		return vb_fail(
			EINVAL, "the protection domain belongs to another device than the id");
	return 0;
}

static int
qp_to_init(struct cm_id *id, struct ibv_qp *qp)
{
	if (vb_cm_is_ud(id))
		return vb_cm_ud_ready(id, qp);
	vb_events_lock();
	vb_qp(qp)->cm = id;
	id->qpn = qp->qp_num;
	vb_qp(qp)->attr.timeout = id->ack_timeout;
	vb_qp_set_state(vb_qp(qp), IBV_QPS_INIT);
	vb_events_unlock();
	return 0;
}

VB_EXPORT int
rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct cm_id *p = vb_cm_id_of(id);
	struct ibv_qp *qp;
	int err = 0;

	if (id->qp != NULL || id->verbs == NULL || (attr->qp_type == IBV_QPT_UD) != vb_cm_is_ud(p))
		return vb_cm_end(EINVAL);
	err = pd_settle(id, &attr->comp_mask, IBV_QP_INIT_ATTR_PD, &attr->pd);
	if (err == 0)
		err = cqs_create(id, attr->send_cq == NULL, attr->cap.max_send_wr,
			attr->recv_cq == NULL, attr->cap.max_recv_wr);
	if (err != 0)
		return vb_cm_end(err);
	if (attr->send_cq == NULL)
		attr->send_cq = id->send_cq;
	if (attr->recv_cq == NULL)
		attr->recv_cq = id->recv_cq;
	if (attr->srq == NULL)
		attr->srq = id->srq;
	qp = ibv_create_qp_ex(id->verbs, attr);
	err = qp != NULL ? qp_to_init(p, qp) : errno;
	if (err != 0) {
		if (qp != NULL)
			ibv_destroy_qp(qp);
		if (id->srq == NULL)
			cqs_destroy(id);
		return vb_cm_end(err);
	}
	id->pd = attr->pd;
	id->qp = qp;
	return 0;
}

VB_EXPORT int
rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex ex = {0};
	int rc;

	/* The longer structure begins with the members of the shorter one. */
	memcpy(&ex, qp_init_attr, sizeof(*qp_init_attr));
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	rc = rdma_create_qp_ex(id, &ex);
	memcpy(qp_init_attr, &ex, sizeof(*qp_init_attr));
	return rc;
}

VB_EXPORT void
rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct cm_id *p = vb_cm_id_of(id);

	if (id->qp == NULL)
		return;
	vb_cm_qp_untie(p);
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
	/* The connection ends with the QP, and the engine sends no event about it. */
	if (!vb_cm_is_ud(p) && vb_cm_move(p, CM_CONNECTED, CM_CLOSED) == 0)
		vb_cm_event_raise(p, RDMA_CM_EVENT_DISCONNECTED, 0);
	if (id->srq == NULL)
		cqs_destroy(id);
}

/* Sets the XRC domain: the device's default domain if the program gives none. Returns 0 or
 * errno. */
static int
xrcd_settle(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct cm_device *dev = vb_cm_device_of(id->verbs);
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT};

	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) != 0 && attr->xrcd != NULL)
		return 0;
	if (dev == NULL)
		return EINVAL;
	if (dev->xrcd == NULL)
		dev->xrcd = ibv_open_xrcd(id->verbs, &init);
	if (dev->xrcd == NULL)
		return errno;
	attr->xrcd = dev->xrcd;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	return 0;
}

static int
xrc_settle(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int err = xrcd_settle(id, attr);

	if (err != 0 || ((attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) != 0 && attr->cq != NULL))
		return err;
	err = cqs_create(id, false, 0, true, attr->attr.max_wr);
	attr->cq = id->recv_cq;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	return err;
}

VB_EXPORT int
rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	bool xrc =
		(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && attr->srq_type == IBV_SRQT_XRC;
	int err;

	if (id->srq != NULL || id->verbs == NULL)
		return vb_cm_end(EINVAL);
	err = pd_settle(id, &attr->comp_mask, IBV_SRQ_INIT_ATTR_PD, &attr->pd);
	if (err == 0 && xrc)
		err = xrc_settle(id, attr);
	if (err != 0)
		return vb_cm_end(err);
	id->srq = ibv_create_srq_ex(id->verbs, attr);
	if (id->srq == NULL) {
		err = errno;
		cqs_destroy(id);
		return vb_cm_end(err);
	}
	id->pd = attr->pd;
	return 0;
}

VB_EXPORT int
rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd};
	int rc = rdma_create_srq_ex(id, &ex);

	attr->attr = ex.attr;
	return rc;
}

VB_EXPORT void
rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq == NULL)
		return;
	ibv_destroy_srq(id->srq);
	id->srq = NULL;
	if (id->qp == NULL)
		cqs_destroy(id);
}
