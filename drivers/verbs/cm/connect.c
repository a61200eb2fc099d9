/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The active side, and disconnecting on both sides. rdma_create_qp(), rdma_connect() and
 * rdma_accept() tie a QP to its id: the engine's events name the QP, which points to the id.
 */
#include "cm_priv.h"

struct vb_qp *
vb_cm_qp_of(struct cm_id *id)
{
	struct saker_qp *sqp = NULL;
	struct vb_qp *qp;

	/* Finds the QP by number: the program may have destroyed a QP that it created itself. */
	if (id->qpn != 0 && id->id.verbs != NULL)
		sqp = saker_qp_find(vb_context(id->id.verbs)->saker, id->qpn);
	if (sqp == NULL)
		return NULL;
	qp = saker_qp_user(sqp);
	return qp != NULL && qp->cm == id ? qp : NULL;
}

int
vb_cm_qp_tie(struct cm_id *id, const struct rdma_conn_param *p)
{
	uint32_t qpn = id->id.qp != NULL ? id->id.qp->qp_num : p != NULL ? p->qp_num : 0;
	struct saker_qp *sqp;
	struct vb_qp *qp;

	vb_events_lock();
	sqp = saker_qp_find(vb_context(id->id.verbs)->saker, qpn);
	qp = sqp != NULL ? saker_qp_user(sqp) : NULL;
	if (qp != NULL && (qp->cm == NULL || qp->cm == id)) {
		qp->cm = id;
		id->qpn = qpn;
		if (id->ack_timeout != 0)
			qp->attr.timeout = id->ack_timeout;
	} else {
		qp = NULL;
	}
	vb_events_unlock();
	return qp != NULL ? 0 : vb_fail(EINVAL, "there is no QP %u that the id could connect", qpn);
}

void
vb_cm_qp_untie(struct cm_id *id)
{
	struct vb_qp *qp;

	vb_events_lock();
	qp = vb_cm_qp_of(id);
	if (qp != NULL)
		qp->cm = NULL;
	id->qpn = 0;
	vb_events_unlock();
}

/* Sets *out to the requested depth; 255 means the largest depth that is available, `all`. Returns
 * 0, or EINVAL when the depth exceeds the device's. */
static int
depth(uint8_t requested, uint32_t device, uint32_t all, uint16_t *out)
{
	_Static_assert(RDMA_MAX_RESP_RES == RDMA_MAX_INIT_DEPTH,
		"one value requests the largest depth in both directions");

	if (requested != RDMA_MAX_RESP_RES && requested > device)
		return vb_fail(EINVAL, "%u outstanding Reads and Atomics exceed the device's %u",
			requested, device);
	*out = (uint16_t)(requested == RDMA_MAX_RESP_RES ? all : requested);
	return 0;
}

int
vb_cm_conn_param(
	const struct cm_id *id, const struct rdma_conn_param *p, struct saker_conn_param *out)
{
	const struct saker_device *d = &vb_context(id->id.verbs)->info;
	bool answer = id->state == CM_REQUEST;
	uint32_t ird = answer && id->ird < d->max_ird ? id->ird : d->max_ird;
	uint32_t ord = answer && id->ord < d->max_ord ? id->ord : d->max_ord;
	int err;

	*out = (struct saker_conn_param){
		.ird = (uint16_t)ird, .ord = (uint16_t)ord, .crc = 2, .markers = 2};
	out->traffic = vb_cm_class_of(id);
	err = vb_modes(id->id.verbs, &out->modes);
	if (err != 0 || p == NULL)
		return err;
	out->private_data = p->private_data;
	out->private_len = p->private_data != NULL ? p->private_data_len : 0;
	err = depth(p->responder_resources, d->max_ird, ird, &out->ird);
	return err != 0 ? err : depth(p->initiator_depth, d->max_ord, ord, &out->ord);
}

static int
connect_start(struct cm_id *id, const struct saker_conn_param *param)
{
	const struct sk_addr *local = sk_addr_is_any(&id->local) ? NULL : &id->local;
	struct vb_qp *qp;
	int rc = -EINVAL;

	vb_events_lock();
	qp = vb_cm_qp_of(id);
	if (qp != NULL)
		rc = saker_connect(qp->saker, local, &id->remote, id->rport, param);
	vb_events_unlock();
	return vb_rc(rc, "connecting");
}

VB_EXPORT int
rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct cm_id *p = vb_cm_id_of(id);
	struct saker_conn_param param;
	int err = vb_cm_check(p, CM_ROUTE_RESOLVED);

	if (err == 0)
		err = vb_cm_conn_param(p, conn_param, &param);
	if (err == 0 && !p->port.chosen)
		param.lport = p->port.port;
	if (err == 0)
		err = vb_cm_qp_tie(p, conn_param);
	if (err == 0)
		err = vb_cm_move(p, CM_ROUTE_RESOLVED, CM_CONNECTING);
	if (err != 0)
		return vb_cm_end(err);
	err = vb_cm_is_ud(p) ? vb_cm_ud_connect(p, conn_param) : connect_start(p, &param);
	if (err != 0) {
		vb_cm_move(p, CM_CONNECTING, CM_ROUTE_RESOLVED);
		return vb_cm_end(err);
	}
	return vb_cm_end(vb_cm_complete(p));
}

/* Sends nothing: the connection has existed since the response came. */
VB_EXPORT int
rdma_establish(struct rdma_cm_id *id)
{
	return vb_cm_end(vb_cm_check(vb_cm_id_of(id), CM_CONNECTED));
}

/* Does nothing but check the state. A program calls it when the first message arrives before the
 * event ESTABLISHED; the engine detects that case on both transports. */
VB_EXPORT int
rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	return vb_cm_end(vb_cm_check(vb_cm_id_of(id), CM_ACCEPTING | CM_CONNECTED));
}

VB_EXPORT int
rdma_disconnect(struct rdma_cm_id *id)
{
	struct cm_id *p = vb_cm_id_of(id);
	int err = vb_cm_is_ud(p) ? EINVAL : vb_cm_move(p, CM_ESTABLISHED, CM_CLOSING);
	struct vb_qp *qp;
	int rc = 0;

	/* The connection has ended or is ending. A program may call this function when it receives
	 * the event that the peer has disconnected. */
	if (err == EINVAL && (p->state & (CM_CLOSING | CM_CLOSED)) != 0)
		return vb_cm_end(p->state == CM_CLOSED ? vb_cm_complete_past(p) : 0);
	if (err != 0)
		return vb_cm_end(err);
	vb_events_lock();
	qp = vb_cm_qp_of(p);
	if (qp != NULL)
		rc = saker_disconnect(qp->saker, false);
	vb_events_unlock();
	if (rc == -ENOTCONN)
		rc = 0; /* the peer disconnected first, and its event will come */
	if (rc < 0 || qp == NULL) {
		vb_cm_move(p, CM_CLOSING, CM_CLOSED);
		return vb_cm_end(vb_rc(rc, "disconnecting"));
	}
	return vb_cm_end(vb_cm_complete(p));
}
