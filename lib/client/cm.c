/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: listen, connect, accept, reject, disconnect, and their events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

/* Copies the parameters that either side of a connection has. */
static int
param_fill(struct saker *s, const struct saker_conn_param *p, struct shm_cm *cm)
{
	const struct saker_conn_param plain = {.ird = (uint16_t)s->device.max_ird,
		.ord = (uint16_t)s->device.max_ord,
		.crc = 2,
		.markers = 2};

	if (p == NULL)
		p = &plain;
	if (p->private_len > SAKER_PRIVATE_MAX)
		return cl_fail(-EINVAL, "private data of %u bytes is longer than %u",
			p->private_len, SAKER_PRIVATE_MAX);
	cm->ird = p->ird;
	cm->ord = p->ord;
	cm->revision = p->revision;
	cm->crc = p->crc;
	cm->markers = p->markers;
	cm->rtr = p->rtr;
	cm->enhanced = p->enhanced;
	cm->dialect = p->dialect;
	cl_modes_to(&p->modes, &cm->modes);
	cl_class_to(&p->traffic, &cm->class);
	cm->private_len = p->private_len;
	if (p->private_len > 0)
		memcpy(cm->private_data, p->private_data, p->private_len);
	return 0;
}

int
saker_listen(struct saker *s, const struct sk_addr *addr, uint16_t port, uint32_t backlog,
	void *user, struct saker_listener **out)
{
	return saker_listen_as(s, addr, port, backlog, NULL, user, out);
}

/* Creates a listener of either port space. */
static int
listen_in(struct saker *s, enum shm_space space, const struct sk_addr *addr, bool v6only,
	uint16_t port, uint32_t backlog, const struct saker_conn_param *p, void *user,
	struct saker_listener **out)
{
	struct saker_listener *l = cl_zalloc(sizeof(*l));
	struct shm_msg m;
	int rc;

	if (l == NULL)
		return cl_fail(-ENOMEM, "no memory for a listener");
	memset(&m, 0, SHM_CM_BYTES);
	rc = param_fill(s, p, &m.body.cm);
	if (rc < 0) {
		free(l);
		return rc;
	}
	if (addr != NULL)
		m.body.cm.local = *addr;
	m.body.cm.lport = port;
	m.body.cm.backlog = backlog;
	m.body.cm.space = (uint8_t)space;
	m.body.cm.v6only = v6only;
	rc = cl_command(s, &m, SHM_LISTEN);
	l->port = m.body.cm.lport;
	l->user = user;
	if (rc == 0)
		rc = cl_obj_add(s, &l->obj, l, CL_LISTENER, m.body.cm.listener);
	if (rc < 0) {
		free(l);
		return rc;
	}
	*out = l;
	return 0;
}

int
saker_listen_as(struct saker *s, const struct sk_addr *addr, uint16_t port, uint32_t backlog,
	const struct saker_conn_param *p, void *user, struct saker_listener **out)
{
	return listen_in(s, SHM_SPACE_TCP, addr, false, port, backlog, p, user, out);
}

int
saker_listen_v6only(struct saker *s, enum saker_space space, uint16_t port, uint32_t backlog,
	const struct saker_conn_param *p, void *user, struct saker_listener **out)
{
	return listen_in(s, (enum shm_space)space, NULL, true, port, backlog, p, user, out);
}

int
saker_ud_listen(struct saker *s, const struct sk_addr *addr, uint16_t port, uint32_t backlog,
	void *user, struct saker_listener **out)
{
	return listen_in(s, SHM_SPACE_UDP, addr, false, port, backlog, NULL, user, out);
}

int
saker_ud_resolve(struct saker_qp *qp, const struct sk_addr *remote, uint16_t port,
	const void *private_data, size_t len)
{
	struct shm_msg m;

	if (len > SAKER_PRIVATE_MAX)
		return cl_fail(-EINVAL, "private data of %zu bytes is longer than %u", len,
			SAKER_PRIVATE_MAX);
	memset(&m, 0, SHM_CM_BYTES);
	m.body.cm.qp = qp->sq.handle;
	m.body.cm.remote = *remote;
	m.body.cm.rport = port;
	m.body.cm.private_len = (uint16_t)len;
	if (len > 0)
		memcpy(m.body.cm.private_data, private_data, len);
	return cl_command(qp->s, &m, SHM_RESOLVE);
}

int
saker_unlisten(struct saker_listener *l)
{
	return cl_obj_destroy(&l->obj);
}

void *
saker_listener_user(const struct saker_listener *l)
{
	return l->user;
}

uint16_t
saker_listener_port(const struct saker_listener *l)
{
	return l->port;
}

/* Sends a command about a QP, and waits for the reply unless the program wants none. */
static int
cm_send(struct saker *s, struct shm_msg *m, enum shm_op op, const struct saker_conn_param *p)
{
	return p != NULL && p->no_wait ? cl_command_no_wait(s, m, op, m->body.cm.qp)
				       : cl_command(s, m, op);
}

int
saker_connect(struct saker_qp *qp, const struct sk_addr *local, const struct sk_addr *remote,
	uint16_t port, const struct saker_conn_param *p)
{
	struct shm_msg m;
	int rc;

	memset(&m, 0, SHM_CM_BYTES);
	rc = param_fill(qp->s, p, &m.body.cm);
	if (rc < 0)
		return rc;
	m.body.cm.qp = qp->sq.handle;
	if (local != NULL)
		m.body.cm.local = *local;
	m.body.cm.lport = p != NULL ? p->lport : 0;
	m.body.cm.remote = *remote;
	m.body.cm.rport = port;
	return cm_send(qp->s, &m, SHM_CONNECT, p);
}

int
saker_accept(
	struct saker *s, uint32_t request, struct saker_qp *qp, const struct saker_conn_param *p)
{
	struct shm_msg m;
	int rc;

	memset(&m, 0, SHM_CM_BYTES);
	rc = param_fill(s, p, &m.body.cm);
	if (rc < 0)
		return rc;
	m.body.cm.request = request;
	m.body.cm.qp = qp->sq.handle;
	return cm_send(s, &m, SHM_ACCEPT, p);
}

int
saker_reject(struct saker *s, uint32_t request, const void *private_data, size_t len)
{
	const struct saker_conn_param p = {.private_data = private_data,
		.private_len = (uint16_t)(len <= SAKER_PRIVATE_MAX ? len : UINT16_MAX)};

	return saker_reject_as(s, request, &p);
}

int
saker_reject_as(struct saker *s, uint32_t request, const struct saker_conn_param *p)
{
	struct shm_msg m;
	int rc;

	memset(&m, 0, SHM_CM_BYTES);
	rc = param_fill(s, p, &m.body.cm);
	if (rc < 0)
		return rc;
	m.body.cm.request = request;
	return cl_command(s, &m, SHM_REJECT);
}

int
saker_disconnect(struct saker_qp *qp, bool abortive)
{
	struct shm_msg m;

	memset(&m, 0, SHM_CM_BYTES);
	m.body.cm.qp = qp->sq.handle;
	m.body.cm.abort = abortive;
	return cl_command(qp->s, &m, SHM_DISCONNECT);
}

/* ---- Events ---- */

/* For each event of the engine: the program's event; kind and place of the object's handle. */
static const struct event_row {
	enum saker_event_type type;
	enum cl_kind kind; /* of the object */
	bool async;        /* the handle is body.async.object; false: it is in body.cm */
} event_rows[] = {
	[SHM_EV_CONNECT_REQUEST - SHM_EV_CONNECT_REQUEST] = {SAKER_EV_CONNECT_REQUEST, CL_LISTENER,
		false},
	[SHM_EV_ESTABLISHED - SHM_EV_CONNECT_REQUEST] = {SAKER_EV_ESTABLISHED, CL_QP, false},
	[SHM_EV_REJECTED - SHM_EV_CONNECT_REQUEST] = {SAKER_EV_REJECTED, CL_QP, false},
	[SHM_EV_UNREACHABLE - SHM_EV_CONNECT_REQUEST] = {SAKER_EV_UNREACHABLE, CL_QP, false},
	[SHM_EV_DISCONNECTED - SHM_EV_CONNECT_REQUEST] = {SAKER_EV_DISCONNECTED, CL_QP, false},
	[SHM_EV_QP_FATAL - SHM_EV_CONNECT_REQUEST] = {SAKER_EV_QP_FATAL, CL_QP, true},
	[SHM_EV_CQ_OVERFLOW - SHM_EV_CONNECT_REQUEST] = {SAKER_EV_CQ_OVERFLOW, CL_CQ, true},
	[SHM_EV_SRQ_LIMIT - SHM_EV_CONNECT_REQUEST] = {SAKER_EV_SRQ_LIMIT, CL_SRQ, true},
};

/* Of the reply to a command for which nobody waits, a refusal. */
static const struct event_row refused = {SAKER_EV_UNREACHABLE, CL_QP, false};

static const struct event_row *
cm_row_of(const struct shm_msg *m)
{
	unsigned i = (unsigned)m->op - SHM_EV_CONNECT_REQUEST;

	if (m->op < SHM_OP_COUNT)
		return &refused;
	return i < sizeof(event_rows) / sizeof(event_rows[0]) ? &event_rows[i] : NULL;
}

static uint32_t
handle_of(const struct shm_msg *m, const struct event_row *row)
{
	if (row == &refused)
		return cl_refused_qp(m);
	if (row->async)
		return m->body.async.object;
	return row->kind == CL_LISTENER ? m->body.cm.listener : m->body.cm.qp;
}

bool
cl_event_about(const struct shm_msg *m, enum cl_kind kind, uint32_t handle)
{
	const struct event_row *row = cm_row_of(m);

	return row != NULL && row->kind == kind && handle_of(m, row) == handle;
}

/* Notes whether the QP of an event is in the error state. After SAKER_EV_UNREACHABLE it may be: the
 * connection may have ended during its start-up. A QP that fails after its start-up gets a further
 * event behind SAKER_EV_ESTABLISHED. Of a datagram QP, these two report a lookup. */
static void
state_note(struct saker *s, const struct saker_event *ev)
{
	bool lookup = ev->qp->sq.type == SAKER_UD;

	if (ev->type == SAKER_EV_QP_FATAL || ev->type == SAKER_EV_DISCONNECTED ||
		(ev->type == SAKER_EV_UNREACHABLE && !lookup))
		cl_qp_failed(s, ev->qp->qpn);
	else if (ev->type == SAKER_EV_ESTABLISHED && !lookup)
		cl_qp_works(ev->qp);
}

/* Converts an event. Returns false when its object does not exist any more. */
static bool
event_fill(struct saker *s, struct shm_msg *m, struct saker_event *ev)
{
	const struct event_row *row = cm_row_of(m);
	void *owner;

	memset(ev, 0, sizeof(*ev));
	if (row == NULL)
		return false;
	owner = cl_table_find(&s->table, cl_key(row->kind, handle_of(m, row)));
	if (owner == NULL)
		return false;
	ev->type = row->type;
	ev->status = m->status == 0 ? 0 : cl_reason(m->status);
	if (row->kind == CL_QP)
		ev->qp = owner;
	else if (row->kind == CL_CQ)
		ev->cq = owner;
	else if (row->kind == CL_SRQ)
		ev->srq = owner;
	else
		ev->listener = owner;
	if (row->kind == CL_QP)
		state_note(s, ev);
	if (row == &refused) {
		cl_refusal(m);
		return true;
	}
	if (row->async) {
		cl_async_of(&m->body.async, &ev->async);
		return true;
	}
	cl_conn_info_of(&m->body.cm, &ev->cm);
	ev->request = m->body.cm.request;
	return true;
}

int
saker_event(struct saker *s, struct saker_event *ev)
{
	struct cl_event *e;
	bool found = false;

	while (!found && (e = cl_mail_event(s)) != NULL) {
		found = event_fill(s, &e->msg, ev);
		free(e);
	}
	if (found)
		return 1;
	cl_settle(s);
	if (__atomic_load_n(&s->gone, __ATOMIC_RELAXED) == 0 ||
		__atomic_exchange_n(&s->mail.gone_reported, true, __ATOMIC_RELAXED))
		return 0;
	memset(ev, 0, sizeof(*ev));
	ev->type = SAKER_EV_ENGINE_GONE;
	ev->status = -EPIPE;
	return 1;
}
