/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Converts the engine's events into those of rdma_cm. The dispatcher calls this file with
 * vb_events_lock() held, so that QPs, listeners and the ids that they point to stay valid.
 */
#include "cm_priv.h"

/* The meaning of each of the engine's events in each state of an id: the next state and the event
 * for the program. A combination that is not here is ignored. */
static const struct row {
	enum saker_event_type type;
	enum cm_state from, to;
	enum rdma_cm_event_type event;
} rows[] = {
	{SAKER_EV_ESTABLISHED, CM_CONNECTING, CM_ESTABLISHED, RDMA_CM_EVENT_ESTABLISHED},
	{SAKER_EV_ESTABLISHED, CM_ACCEPTING, CM_ESTABLISHED, RDMA_CM_EVENT_ESTABLISHED},
	/* The program may connect the QP again. */
	{SAKER_EV_REJECTED, CM_CONNECTING, CM_ROUTE_RESOLVED, RDMA_CM_EVENT_REJECTED},
	{SAKER_EV_UNREACHABLE, CM_CONNECTING, CM_ROUTE_RESOLVED, RDMA_CM_EVENT_UNREACHABLE},
	{SAKER_EV_UNREACHABLE, CM_ACCEPTING, CM_CLOSED, RDMA_CM_EVENT_CONNECT_ERROR},
	{SAKER_EV_DISCONNECTED, CM_CONNECTING, CM_CLOSED, RDMA_CM_EVENT_CONNECT_ERROR},
	{SAKER_EV_DISCONNECTED, CM_ACCEPTING, CM_CLOSED, RDMA_CM_EVENT_CONNECT_ERROR},
	{SAKER_EV_DISCONNECTED, CM_ESTABLISHED, CM_CLOSED, RDMA_CM_EVENT_DISCONNECTED},
	{SAKER_EV_DISCONNECTED, CM_CLOSING, CM_CLOSED, RDMA_CM_EVENT_DISCONNECTED},
};

static const struct row *
handler_row_of(enum saker_event_type type, enum cm_state state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].type == type && rows[i].from == state)
			return &rows[i];
	return NULL;
}

/* Sets the type and the status of the event of a failed attempt. For the active side, a reset from
 * the peer is a rejection, a timeout or a missing route is UNREACHABLE, and every other failure is
 * CONNECT_ERROR. rdma_get_cm_event(3) describes the events. */
static void
failure(struct cm_event *e, const struct cm_id *id, int status)
{
	const struct vb_kind *kind = vb_kind_of(id->id.verbs);

	e->ev.status = status;
	if (e->ev.event == RDMA_CM_EVENT_REJECTED) {
		e->ev.status = kind->rejected_status;
	} else if (e->ev.event == RDMA_CM_EVENT_CONNECT_ERROR) {
		e->ev.status = status != 0 ? status : -ECONNRESET;
	} else if (status == -ECONNREFUSED || status == -ECONNRESET) {
		e->ev.event = RDMA_CM_EVENT_REJECTED;
		if (kind->no_listener_status != 0)
			e->ev.status = kind->no_listener_status;
	} else if (status != -ETIMEDOUT && status != -EHOSTUNREACH && status != -ENETUNREACH) {
		e->ev.event = RDMA_CM_EVENT_CONNECT_ERROR;
	}
}

static uint8_t
clip(uint16_t depth)
{
	return depth < RDMA_MAX_RESP_RES ? (uint8_t)depth : RDMA_MAX_RESP_RES;
}

static void
fill_param(struct cm_event *e, const struct cm_id *id, const struct saker_conn_info *cm)
{
	struct rdma_conn_param *c = &e->ev.param.conn;

	if (vb_cm_is_ud(id)) {
		vb_cm_ud_fill(e, id, cm);
		return;
	}
	c->responder_resources = clip(cm->ird);
	c->initiator_depth = clip(cm->ord);
	c->retry_count = CM_RETRIES;
	c->rnr_retry_count = CM_RETRIES;
	vb_cm_event_private(e, cm->private_data, cm->private_len);
}

static void
handler_established(
	struct cm_id *id, struct cm_event *e, struct vb_qp *qp, const struct saker_conn_info *cm)
{
	uint32_t scope = vb_cm_addr_scope(&id->id.route.addr.src_addr);

	fill_param(e, id, cm);
	if (vb_cm_is_ud(id))
		return;
	vb_qp_set_state(qp, IBV_QPS_RTS);
	/* The engine chose the port and, if the program bound none, the address. */
	if (cm->lport != 0)
		vb_cm_addr_to(&cm->local, cm->lport, scope, &id->id.route.addr.src_storage);
	/* The program created the QP itself: it changes the QP's state and then calls
	 * rdma_establish(). */
	if (vb_kind_of(id->id.verbs)->modified_by_program && id->id.qp == NULL &&
		id->state == CM_CONNECTING)
		e->ev.event = RDMA_CM_EVENT_CONNECT_RESPONSE;
}

/* Processes an event of the engine about a QP of an id. Called with vb_cm_lock() held. It sets the
 * new state before it queues the event, because a thread that takes the event may use the id at
 * once. */
static void
handler_outcome(struct cm_id *id, struct vb_qp *qp, const struct saker_event *ev)
{
	const struct row *row = handler_row_of(ev->type, id->state);
	struct cm_event *e = row != NULL ? vb_cm_event_new(id, row->event, 0) : NULL;

	if (row == NULL)
		return;
	if (row->to == CM_CLOSED)
		vb_qp_set_state(qp, IBV_QPS_ERR);
	if (e != NULL) {
		if (ev->type == SAKER_EV_ESTABLISHED)
			handler_established(id, e, qp, &ev->cm);
		else if (row->event != RDMA_CM_EVENT_DISCONNECTED)
			failure(e, id, ev->status);
		if (ev->type == SAKER_EV_REJECTED)
			fill_param(e, id, &ev->cm);
	}
	id->state = row->to;
	if (e != NULL)
		vb_cm_event_queue_locked(e);
	/* The end of the time-wait follows at once where programs expect it: the engine has
	 * released the connection with its last event. */
	if (row->event != RDMA_CM_EVENT_DISCONNECTED || !vb_kind_of(id->id.verbs)->timewait)
		return;
	e = vb_cm_event_new(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	if (e != NULL)
		vb_cm_event_queue_locked(e);
}

/* ---- Requests ---- */

/* Returns the device of a request, or NULL if the listener does not accept the request: it is bound
 * to another device, or restricted to another address family. */
static struct cm_device *
device_for(const struct vb_attachment *a, const struct cm_id *l, const struct saker_conn_info *cm)
{
	bool v6 = l->id.route.addr.src_addr.sa_family == AF_INET6;
	struct cm_device *dev = vb_cm_device_have((enum saker_transport)cm->transport);

	if (dev == NULL || vb_context(dev->verbs)->at != a ||
		(l->id.verbs != NULL && l->id.verbs != dev->verbs))
		return NULL;
	if (sk_addr_is_v4(&cm->remote) ? (v6 && l->port.afonly) : !v6)
		return NULL;
	return dev;
}

/* Creates the id of a request and the event for the program. The id gets its channel when the event
 * is queued, because the listener may move meanwhile. Returns NULL if the listener does not accept
 * the request or there is no memory. */
static struct cm_event *
request_new(const struct vb_attachment *a, struct cm_id *l, const struct saker_event *ev)
{
	struct cm_device *dev = device_for(a, l, &ev->cm);
	struct cm_id *id = NULL;
	struct cm_event *e = NULL;

	if (dev != NULL)
		id = vb_cm_id_new(NULL, l->id.context, l->id.ps);
	if (id != NULL)
		e = vb_cm_event_new(l, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	if (e == NULL) {
		if (id != NULL)
			vb_cm_id_free(id);
		return NULL;
	}
	e->ev.id = &id->id;
	e->ev.listen_id = &l->id;
	id->state = CM_REQUEST;
	id->request = ev->request;
	id->tos = l->tos;
	id->tos_set = l->tos_set;
	id->ird = ev->cm.ird;
	id->ord = ev->cm.ord;
	id->remote = ev->cm.remote;
	id->rport = ev->cm.rport;
	id->id.qp_type = l->id.qp_type;
	vb_cm_device_hold(dev);
	vb_cm_device_bind(id, dev);
	vb_cm_path_fill(id, &ev->cm.local, &ev->cm.remote);
	vb_cm_addr_to(&ev->cm.local, ev->cm.lport, 0, &id->id.route.addr.src_storage);
	vb_cm_addr_to(&ev->cm.remote, ev->cm.rport, 0, &id->id.route.addr.dst_storage);
	fill_param(e, id, &ev->cm);
	return e;
}

/* Returns whether as many requests wait as the program permits. */
static bool
backlog_full(const struct cm_id *l)
{
	bool full;

	vb_cm_lock();
	full = l->state == CM_LISTENING && l->pending >= l->backlog;
	vb_cm_unlock();
	return full;
}

static void
handler_request(const struct vb_attachment *a, const struct saker_event *ev)
{
	struct cm_id *l = saker_listener_user(ev->listener);
	struct cm_event *e = backlog_full(l) ? NULL : request_new(a, l, ev);

	if (e == NULL) {
		saker_reject(a->saker, ev->request, NULL, 0);
		return;
	}
	vb_cm_lock();
	if (l->state == CM_LISTENING)
		vb_cm_event_queue_locked(e);
	else
		vb_cm_event_keep_locked(e);
	vb_cm_unlock();
}

/* ---- The end of the engine ---- */

/* rdma_destroy_id() has dropped the events of an id in CM_ENDING and waits until the program has
 * acknowledged those that it has fetched: an event more might never be fetched. */
static void
removed(struct cm_id *id, void *attachment)
{
	struct cm_event *e;

	if (id->id.verbs == NULL || id->epoch != vb_cm_epoch() ||
		(id->state & (CM_REMOVED | CM_ENDING)) != 0 ||
		vb_context(id->id.verbs)->at != attachment)
		return;
	id->state = CM_REMOVED;
	e = vb_cm_event_new(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	if (e != NULL)
		vb_cm_event_queue_locked(e);
}

static void
on_event(struct vb_attachment *a, const struct saker_event *ev)
{
	struct vb_qp *qp = ev->qp != NULL ? saker_qp_user(ev->qp) : NULL;

	if (ev->type == SAKER_EV_CONNECT_REQUEST) {
		handler_request(a, ev);
		return;
	}
	vb_cm_lock();
	if (ev->type == SAKER_EV_ENGINE_GONE) {
		vb_cm_device_removed(a);
		vb_cm_id_each(removed, a);
	}
	if (qp != NULL && qp->cm != NULL)
		handler_outcome(qp->cm, qp, ev);
	vb_cm_unlock();
}

int
vb_cm_handler_start(struct vb_attachment *a)
{
	vb_on_cm_event(on_event, vb_cm_listen_again);
	return vb_dispatch_start(a);
}
