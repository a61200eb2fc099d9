/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners: one port on one address or on all addresses. Every transport stage listens. */
#include <errno.h>
#include <stdlib.h>

#include "cm.h"

#define LISTENER_SLOTS(c) ((c)->listeners.cap)

static struct cm_ports *
listen_bucket(const struct eng_control *c, uint16_t port)
{
	return &c->ports[port % CTL_PORT_HASH];
}

struct cm_listener *
cm_listener_find(const struct eng_control *c, uint32_t number)
{
	struct cm_listener *l = ctl_table_get(&c->listeners, number % LISTENER_SLOTS(c));

	return l != NULL && l->number == number ? l : NULL;
}

struct cm_listener *
cm_listener_of_service(const struct eng_control *c, const struct sk_addr *addr, uint16_t port)
{
	struct cm_listener *l;

	LIST_FOREACH (l, listen_bucket(c, port), by_port)
		if (l->space == SHM_SPACE_UDP && l->port == port &&
			eng_listens_at(&l->addr, l->v6only, addr))
			return l;
	return NULL;
}

/* Returns whether the listener and one at `addr` accept requests to the same addresses. */
static bool
cm_listen_overlaps(const struct cm_listener *l, const struct sk_addr *addr, bool v6only)
{
	if (!sk_addr_is_any(addr))
		return eng_listens_at(&l->addr, l->v6only, addr);
	if (!sk_addr_is_any(&l->addr))
		return eng_listens_at(addr, v6only, &l->addr);
	return (!v6only && !l->v6only) || (!sk_addr_is_v4(addr) && !sk_addr_is_v4(&l->addr));
}

/* Returns whether another listener would receive requests for this address and port. */
static bool
cm_listen_in_use(const struct eng_control *c, uint8_t space, const struct sk_addr *addr,
	bool v6only, uint16_t port)
{
	const struct cm_listener *l;

	if (space == SHM_SPACE_TCP && port == c->reserved_port)
		return true;
	LIST_FOREACH (l, listen_bucket(c, port), by_port)
		if (l->port == port && l->space == space && cm_listen_overlaps(l, addr, v6only))
			return true;
	return false;
}

/* Returns a free port of the configured range, or 0. The search begins at a port that nobody can
 * predict. */
static uint16_t
choose_port(struct eng_control *c, uint8_t space, const struct sk_addr *addr, bool v6only)
{
	uint32_t from = c->cfg->port_min, n = (uint32_t)c->cfg->port_max - from + 1;
	uint32_t start = (uint32_t)sk_siphash(&c->qpn_key, &c->now, sizeof(c->now)) % n;

	for (uint32_t i = 0; i < SK_MIN(n, 256); i++) {
		uint16_t port = (uint16_t)(from + (start + i) % n);

		if (port != 0 && !cm_listen_in_use(c, space, addr, v6only, port))
			return port;
	}
	return 0;
}

/* Removes a listener from all that peers and other clients can reach. */
static void
listener_leave(struct eng_control *c, struct cm_listener *l)
{
	LIST_REMOVE(l, by_port);
	ctl_table_del(&c->listeners, l->slot);
	if (l->ready)
		ctl_total(&c->totals.listeners, -1);
	l->closed = true;
}

void
cm_listener_free(struct eng_control *c, struct cm_listener *l)
{
	if (!l->closed)
		listener_leave(c, l);
	ctl_table_del(&l->client->listeners, l->handle);
	ctl_give(c, l->client, CTL_POOL_LISTENER);
	free(l);
}

/* No event reports that the control stage itself has closed a listener, so the client still has an
 * object with that handle. The listener keeps the handle until the client frees it, since events
 * for another listener with the same handle would reach the old object. */
static void
cm_listen_closed(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	struct cm_listener *l = op->object;
	struct ctl_op *unlisten = l->unlisten;

	if (op->quiet && unlisten == NULL && l->client->phase == CTL_LIVE)
		listener_leave(c, l);
	else
		cm_listener_free(c, l);
	if (op->status < 0 && op->reply.op == SHM_LISTEN)
		ctl_refuse(c, &op->reply, op->status, "a transport stage cannot listen at port %u",
			op->reply.body.cm.lport);
	ctl_op_reply(c, op);
	if (unlisten != NULL && unlisten != op)
		ctl_op_reply(c, unlisten);
}

static void
send_unlisten(struct eng_control *c, struct cm_listener *l, struct ctl_op *op)
{
	op->finish = cm_listen_closed;
	l->closing = true;
	for (unsigned i = 0; i < c->cfg->ntransports; i++) {
		struct ctl_msg *msg = ctl_msg_get(c, ENG_CT_UNLISTEN, NULL);

		msg->m.listen.number = l->number;
		ctl_op_send_transport(c, op, i, msg);
	}
}

/* Makes the requests that wait due at once: cm_request_poll() rejects them. */
static void
reject_pending(struct eng_control *c, struct cm_listener *l)
{
	struct cm_request *r;

	while ((r = LIST_FIRST(&l->requests)) != NULL) {
		TAILQ_REMOVE(&c->waiting, r, waiting);
		TAILQ_INSERT_HEAD(&c->waiting, r, waiting);
		r->deadline = 0;
		cm_request_orphan(r);
	}
}

void
cm_listener_close(struct eng_control *c, struct cm_listener *l, struct ctl_op *op)
{
	op->object = l;
	send_unlisten(c, l, op);
	reject_pending(c, l);
}

static void
listening(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	struct cm_listener *l = op->object;

	if (op->status < 0) {
		/* Some transport stages may listen. They receive ENG_CT_UNLISTEN. */
		send_unlisten(c, l, op);
		return;
	}
	l->ready = true;
	ctl_total(&c->totals.listeners, 1); /* before the reply: a peer can connect now */
	ctl_op_reply(c, op);
}

static int
listen_check(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_cm *cm = &m->body.cm;
	char text[SK_ADDR_STRLEN];

	if (!sk_addr_is_any(&cm->local) && !cm_addr_is_ours(c, &cm->local))
		return ctl_refuse(c, m, -EADDRNOTAVAIL, "%s is not an address of this device",
			sk_addr_str(&cm->local, text));
	if (cm->space > SHM_SPACE_UDP || (cm->space == SHM_SPACE_UDP && !c->datagrams))
		return ctl_refuse(c, m, -EPROTONOSUPPORT, "no enabled transport has port space %u",
			cm->space);
	if (cm->v6only && (!sk_addr_is_any(&cm->local) || sk_addr_is_v4(&cm->local)))
		return ctl_refuse(c, m, -EINVAL, "a listener at %s has no IPv6 addresses to choose",
			sk_addr_str(&cm->local, text));
	if (cm->lport && cm_listen_in_use(c, cm->space, &cm->local, cm->v6only != 0, cm->lport))
		return ctl_refuse(c, m, -EADDRINUSE, "port %u is in use", cm->lport);
	return 0;
}

static void
listener_enter(struct eng_control *c, struct cm_listener *l)
{
	int64_t slot = ctl_table_add(&c->listeners, l);

	l->slot = (uint32_t)slot;
	l->number = l->slot + LISTENER_SLOTS(c) * c->listener_generation[l->slot]++;
	l->handle = (uint32_t)ctl_table_add(&l->client->listeners, l);
	LIST_INSERT_HEAD(listen_bucket(c, l->port), l, by_port);
	LIST_INIT(&l->requests);
}

static void
send_listen(struct eng_control *c, struct cm_listener *l, struct ctl_op *op,
	const struct eng_offer *offer)
{
	for (unsigned i = 0; i < c->cfg->ntransports; i++) {
		struct ctl_msg *msg = ctl_msg_get(c, ENG_CT_LISTEN, NULL);

		msg->m.user = l->client->eng.user;
		msg->m.listen.number = l->number;
		msg->m.listen.addr = l->addr;
		msg->m.listen.v6only = l->v6only;
		msg->m.listen.port = l->port;
		msg->m.listen.offer = *offer;
		msg->m.listen.backlog = l->backlog;
		ctl_op_send_transport(c, op, i, msg);
	}
}

int
cm_listen(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct shm_cm *cm = &m->body.cm;
	struct cm_listener *l;
	struct ctl_op *op;
	struct eng_offer offer;
	int rc = listen_check(c, cl, m);

	if (rc < 0)
		return rc;
	/* The acceptance sets IRD and ORD. */
	cm->ird = c->cfg->limits.ird;
	cm->ord = c->cfg->limits.ord;
	rc = cm_offer(c, NULL, m, &offer);
	if (rc == 0)
		rc = cm_modes_check(c, m, &cm->modes, true);
	if (rc == 0)
		rc = ctl_class_check(c, m, &cm->class);
	if (rc < 0)
		return rc;
	ctl_class_fill(&cm->class, &cl->class);
	offer.class = ctl_class_net(c, &cm->class);
	if (cm->lport == 0)
		cm->lport = choose_port(c, cm->space, &cm->local, cm->v6only != 0);
	if (cm->lport == 0)
		return ctl_refuse(c, m, -EADDRINUSE, "no free local port was found");
	if (ctl_take(c, cl, CTL_POOL_LISTENER, m) < 0)
		return m->status;
	l = calloc(1, sizeof(*l));
	op = l != NULL ? ctl_op_new(c, cl, m, l, listening) : NULL;
	if (op == NULL) {
		ctl_give(c, cl, CTL_POOL_LISTENER);
		free(l);
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	}
	l->client = cl;
	l->space = cm->space;
	l->addr = cm->local;
	l->v6only = cm->v6only != 0;
	l->port = cm->lport;
	l->modes = cm->modes;
	l->class = cm->class;
	l->backlog = cm->backlog ? SK_MIN(cm->backlog, CTL_CLIENT_REQUESTS) : CTL_BACKLOG_DEFAULT;
	listener_enter(c, l);
	op->reply.body.cm.listener = l->handle;
	if (l->space == SHM_SPACE_UDP) { /* lookups come to the reserved TCP port */
		listening(c, op, NULL);
		return CTL_LATER;
	}
	send_listen(c, l, op, &offer);
	return CTL_LATER;
}

int
cm_unlisten(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct cm_listener *l = ctl_table_get(&cl->listeners, m->body.handle);
	struct ctl_op *op;

	if (l == NULL || !l->ready || l->unlisten != NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no listener %u", m->body.handle);
	if (l->closed) {
		cm_listener_free(c, l);
		return 0;
	}
	op = ctl_op_new(c, cl, m, l, cm_listen_closed);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	l->unlisten = op;
	if (!l->closing)
		cm_listener_close(c, l, op);
	return CTL_LATER;
}
