/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The passive side. One listener of the engine receives the requests of all transports. An id that
 * is bound to an address is bound to a device and accepts requests of that device alone.
 */
#include "cm_priv.h"

#define PORT_TRIES 16

int
vb_cm_listen_on(struct cm_id *id, struct vb_attachment *at, uint32_t backlog)
{
	const enum saker_space space = vb_cm_is_ud(id) ? SAKER_SPACE_UDP : SAKER_SPACE_TCP;
	const struct saker_conn_param param = {
		.crc = 2, .markers = 2, .traffic = vb_cm_class_of(id)};
	const struct sk_addr *a = &id->port.addr;
	struct saker *s = at->saker;
	int rc;

	if (id->port.afonly && sk_addr_is_any(a) && !sk_addr_is_v4(a))
		rc = saker_listen_v6only(
			s, space, id->port.port, backlog, &param, id, &id->listener);
	else if (space == SAKER_SPACE_UDP)
		rc = saker_ud_listen(s, a, id->port.port, backlog, id, &id->listener);
	else
		rc = saker_listen_as(s, a, id->port.port, backlog, &param, id, &id->listener);
	if (rc < 0)
		return rc;
	vb_attachment_hold(at);
	id->listens_on = at;
	return 0;
}

void
vb_cm_unlisten(struct cm_id *id)
{
	if (id->listener == NULL)
		return;
	saker_unlisten(id->listener);
	vb_attachment_release(id->listens_on);
	id->listener = NULL;
	id->listens_on = NULL;
}

/* Returns the attachment of the id's device, or the process's, and holds it; NULL with errno. */
static struct vb_attachment *
listen_attachment(const struct cm_id *id)
{
	struct vb_attachment *a;

	if (id->id.verbs == NULL)
		return vb_attach();
	a = vb_context(id->id.verbs)->at;
	vb_attachment_hold(a);
	return a;
}

static int
listen_at(struct cm_id *id, uint32_t backlog)
{
	struct vb_attachment *a = listen_attachment(id);
	int rc;

	if (a == NULL)
		return -errno;
	rc = -vb_cm_handler_start(a);
	if (rc == 0) {
		vb_events_lock();
		rc = vb_cm_listen_on(id, a, backlog);
		vb_events_unlock();
	}
	vb_attachment_release(a);
	return rc;
}

/* Listens at the id's port. A port that the library chose may belong to another process; then it
 * tries others. Returns 0 or errno. */
static int
listen_somewhere(struct cm_id *id, uint32_t backlog)
{
	struct sk_addr addr = id->port.addr;
	int rc = listen_at(id, backlog), err = 0;

	for (int i = 0; i < PORT_TRIES && rc == -EADDRINUSE && id->port.chosen && err == 0; i++) {
		vb_cm_lock();
		err = vb_cm_port_take(&id->port, id->id.ps, &addr, 0, id->port.reuse);
		vb_cm_unlock();
		vb_cm_addr_set_port(&id->id.route.addr.src_addr, id->port.port);
		rc = err == 0 ? listen_at(id, backlog) : -err;
	}
	return vb_rc(rc, "listening");
}

int
vb_cm_listen_devices(void)
{
	bool any = false;

	for (int i = 0; i < VB_NKINDS; i++) {
		struct cm_device *dev = vb_cm_device_open((enum saker_transport)i);

		if (dev != NULL)
			vb_cm_device_release(dev);
		any |= dev != NULL;
	}
	return any ? 0 : ENODEV;
}

int
vb_cm_listen_early(struct cm_id *id)
{
	/* Another id may share the port and listen. */
	if (id->port.reuse || (id->id.verbs == NULL && vb_cm_listen_devices() != 0))
		return 0;
	/* An id that connects needs no listener, so other failures are those of rdma_listen(). */
	return listen_somewhere(id, CM_BACKLOG_MAX) == EADDRINUSE ? EADDRINUSE : 0;
}

void
vb_cm_listen_end(struct cm_id *id)
{
	vb_events_lock();
	vb_cm_unlisten(id);
	vb_events_unlock();
	vb_cm_event_refuse(id);
}

VB_EXPORT int
rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct cm_id *p = vb_cm_id_of(id);
	const struct sockaddr_in any = {.sin_family = AF_INET};
	int err;

	if (p->state == CM_IDLE && rdma_bind_addr(id, (struct sockaddr *)(uintptr_t)&any) != 0)
		return -1;
	if (backlog <= 0 || backlog > CM_BACKLOG_MAX)
		backlog = CM_BACKLOG_MAX;
	p->backlog = (uint32_t)backlog;
	err = p->id.verbs == NULL ? vb_cm_listen_devices() : 0;
	if (err == 0)
		err = vb_cm_move(p, CM_BOUND, CM_LISTENING);
	if (err != 0)
		return vb_cm_end(err);
	if (p->listener != NULL)
		vb_cm_event_release(p);
	else
		err = listen_somewhere(p, (uint32_t)backlog);
	if (err != 0)
		vb_cm_move(p, CM_LISTENING, CM_BOUND);
	return vb_cm_end(err);
}

static int
accept_conn(struct cm_id *id, const struct rdma_conn_param *p)
{
	struct saker_conn_param param;
	struct vb_qp *qp;
	int err = vb_cm_conn_param(id, p, &param), rc = -EINVAL;

	if (err == 0)
		err = vb_cm_qp_tie(id, p);
	if (err == 0)
		err = vb_cm_move(id, CM_REQUEST, CM_ACCEPTING);
	if (err != 0)
		return err;
	vb_events_lock();
	qp = vb_cm_qp_of(id);
	if (qp != NULL)
		rc = saker_accept(vb_context(id->id.verbs)->saker, id->request, qp->saker, &param);
	if (rc == 0)
		vb_qp_set_state(qp, IBV_QPS_RTS);
	vb_events_unlock();
	if (rc == 0)
		return vb_cm_complete(id);
	vb_cm_move(id, CM_ACCEPTING, rc == -ECONNRESET ? CM_CLOSED : CM_REQUEST);
	return vb_rc(rc, "accepting");
}

VB_EXPORT int
rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct cm_id *p = vb_cm_id_of(id);
	int err = vb_cm_check(p, CM_REQUEST);

	if (err != 0)
		return vb_cm_end(err);
	if (!vb_cm_is_ud(p))
		return vb_cm_end(accept_conn(p, conn_param));
	/* An answer for a datagram service makes no connection, and no event follows. */
	err = vb_cm_ud_accept(p, conn_param);
	if (err == 0)
		vb_cm_move(p, CM_REQUEST, CM_ESTABLISHED);
	return vb_cm_end(err);
}

VB_EXPORT int
rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	struct cm_id *p = vb_cm_id_of(id);
	size_t len = private_data != NULL ? private_data_len : 0;
	int err = vb_cm_move(p, CM_REQUEST, CM_CLOSED);

	if (err != 0)
		return vb_cm_end(err);
	return vb_cm_end(
		vb_rc(saker_reject(vb_context(id->verbs)->saker, p->request, private_data, len),
			"rejecting"));
}
