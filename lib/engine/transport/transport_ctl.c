/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of the control stage to a transport stage, as control/control.h defines them. */
#include <errno.h>
#include <stdlib.h>

#include <rte_ring.h>

#include "link.h"

int
eng_transport_listen(struct eng_transport *t, const struct eng_ctl *m)
{
	struct eng_listener *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->tcp = tcp_listen(t->tcp, m->listen.backlog > 0 ? m->listen.backlog : 1, l);
	if (l->tcp == NULL) {
		free(l);
		return -ENOMEM;
	}
	l->addr = m->listen.addr;
	l->v6only = m->listen.v6only;
	l->port = m->listen.port;
	l->number = m->listen.number;
	l->user = m->user;
	l->offer = m->listen.offer;
	LIST_INSERT_HEAD(&t->listeners[l->port % ENG_LISTENER_BUCKETS], l, next);
	return 0;
}

static int
ctl_unlisten(struct eng_transport *t, const struct eng_ctl *m)
{
	struct eng_listener *l;

	for (unsigned b = 0; b < ENG_LISTENER_BUCKETS; b++) {
		LIST_FOREACH (l, &t->listeners[b], next) {
			if (l->number != m->listen.number)
				continue;
			LIST_REMOVE(l, next);
			tcp_unlisten(l->tcp, t->now);
			free(l);
			return 0;
		}
	}
	return -ENOENT;
}

static int
ctl_accept(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	bool live = c->state == ECONN_REQUESTED && eng_conn_alive(c);

	if (c->release_due || (!live && c->state != ECONN_DEAD))
		return -ENOENT;
	if (live) {
		c->su->cookie = m->cookie;
		c->su->offer.class = m->connect.offer.class;
		if (c->tcp != NULL)
			eng_path_class(t, &c->path, tcp_tuple(c->tcp), &c->su->offer.class);
		if (c->link->accept(t, c, m) != 0)
			eng_startup_fail(t, c, -ENOMEM);
	}
	eng_conn_bind(t, c, m->stage, m->qp_index);
	return 0;
}

/* Accepts the connect request of a self-connected QP: the QP keeps the requesting end, and from
 * here on, no QP owns the accepting end. */
static int
ctl_self(struct eng_transport *t, struct eng_conn *c)
{
	if (c->release_due || c->state != ECONN_REQUESTED || !eng_conn_alive(c))
		return -ENOENT;
	return c->link->self(t, c);
}

static int
ctl_bind(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	if (c->release_due || (c->state != ECONN_ESTABLISHED && c->state != ECONN_DEAD))
		return -ENOENT;
	eng_conn_bind(t, c, m->stage, m->qp_index);
	return 0;
}

/* Answers a request without making a connection: ENG_CT_REJECT, ENG_CT_FOUND. */
static int
ctl_answer(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	bool found = m->type == ENG_CT_FOUND;
	int rc;

	if (c->state != ECONN_REQUESTED)
		return -ENOENT;
	rc = found ? c->link->found(t, c, m) : c->link->reject(t, c, m);
	if (rc == -ENOENT)
		return rc;
	eng_conn_drain(t, c);
	if (c->tcp == NULL) {
		eng_conn_put(t, c);
		return 0;
	}
	/* siw of Linux handles a FIN before the bytes that arrive with it, and then does not read
	 * the private data. Therefore the FIN follows when the bytes are acknowledged. */
	if (rc != 0) {
		tcp_abort(c->tcp, t->now);
		return 0;
	}
	c->lingers = true;
	tcp_limit_life(c->tcp, t->now);
	return 0;
}

static int
ctl_abort(struct eng_transport *t, struct eng_conn *c, int how)
{
	if (how == ENG_ABORT_UNANSWERED && c->state == ECONN_ESTABLISHED)
		return -EBUSY;
	if (c->state != ECONN_OPENING && c->state != ECONN_REQUESTED &&
		c->state != ECONN_ESTABLISHED)
		return -ENOENT;
	c->pending &= ~ECONN_P_NOTICE;
	eng_conn_drain(t, c);
	c->link->abandon(t, c);
	return 0;
}

static int
ctl_query(const struct eng_transport *t, const struct eng_conn *c, struct eng_qp_view *view)
{
	if (!eng_conn_alive(c))
		return -ENOTCONN;
	view->class = c->path.class;
	if (c->tcp != NULL) {
		view->tuple = *tcp_tuple(c->tcp);
		tcp_get_info(c->tcp, &view->tcp);
	} else {
		c->link->ends(t, c, &view->tuple, &view->tcp);
	}
	if (c->link != NULL && c->link->look != NULL)
		c->link->look(t, c, view);
	return 0;
}

static int
ctl_conn(struct eng_transport *t, struct eng_ctl *m)
{
	struct eng_conn *c = m->conn < t->fresh ? &t->conns[m->conn] : NULL;

	if (c == NULL || c->state == ECONN_FREE || c->state == ECONN_CARRIER)
		return -ENOENT;
	switch (m->type) {
	case ENG_CT_ACCEPT:
		return ctl_accept(t, c, m);
	case ENG_CT_SELF:
		return ctl_self(t, c);
	case ENG_CT_BIND:
		return ctl_bind(t, c, m);
	case ENG_CT_FOUND:
	case ENG_CT_REJECT:
		return ctl_answer(t, c, m);
	case ENG_CT_ABORT:
		return ctl_abort(t, c, m->abort.how);
	case ENG_CT_EVENTS:
		return eng_flight_events(t, c, m);
	case ENG_CT_QUERY:
		return ctl_query(t, c, m->conn_info.view);
	}
	return -EINVAL;
}

static int
transport_command(struct eng_transport *t, struct eng_ctl *m)
{
	switch (m->type) {
	case ENG_CT_LISTEN:
		return eng_transport_listen(t, m);
	case ENG_CT_UNLISTEN:
		return ctl_unlisten(t, m);
	case ENG_CT_CONNECT:
	case ENG_CT_LOOKUP:
		return eng_startup_connect(t, m);
	case ENG_CT_NEIGHBORS:
		m->neighbors.n = net_neighbors(t->net, m->neighbors.view, m->neighbors.n);
		return 0;
	case ENG_CT_FAILED:
		return eng_flight_failed(t, m);
	case ENG_CT_CHANGE:
		return eng_transport_change(t, m);
	}
	return ctl_conn(t, m);
}

/* Frees a notice that the control stage has returned. */
static void
notice_back(struct eng_transport *t, struct eng_ctl *m)
{
	t->notices_free[t->nnotices++] = m;
	if (eng_notice_is_final(m)) {
		struct eng_conn *c = &t->conns[m->conn];

		c->notice_out = false;
		eng_conn_put(t, c);
	}
}

bool
eng_transport_ctl(struct eng_transport *t)
{
	void *m[ENG_BURST];
	unsigned n = rte_ring_sc_dequeue_burst(t->from_control, m, ENG_BURST, NULL);

	for (unsigned i = 0; i < n; i++) {
		struct eng_ctl *c = m[i];

		if (c->type >= ENG_CTL_NOTICE) {
			notice_back(t, c);
			continue;
		}
		c->status = transport_command(t, c);
		rte_ring_sp_enqueue(t->to_control, c);
	}
	return n > 0;
}
