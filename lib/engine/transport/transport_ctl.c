/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the control stage to a transport stage (control_priv.h says what each owes). */
#include <errno.h>
#include <stdlib.h>

#include <rte_ring.h>

#include "falcon/falcon_priv.h"

int
eng_transport_listen(struct eng_transport *t, const struct eng_ctl *m)
{
	struct eng_listener *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->tcp = tcp_listen(t->tcp, m->code > 0 ? (uint32_t)m->code : 1, l);
	if (l->tcp == NULL) {
		free(l);
		return -ENOMEM;
	}
	l->addr = m->tuple.laddr;
	l->port = m->tuple.lport;
	l->number = m->listener;
	l->offer = m->offer;
	LIST_INSERT_HEAD(&t->listeners[l->port % ENG_LISTENER_BUCKETS], l, next);
	return 0;
}

static int
ctl_unlisten(struct eng_transport *t, const struct eng_ctl *m)
{
	struct eng_listener *l;

	for (unsigned b = 0; b < ENG_LISTENER_BUCKETS; b++) {
		LIST_FOREACH (l, &t->listeners[b], next) {
			if (l->number != m->listener)
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
	bool live = c->state == ECONN_REQUESTED && c->tcp != NULL;

	if (c->release_due || (!live && c->state != ECONN_DEAD))
		return -ENOENT;
	if (!live) {
		eng_conn_bind(t, c, m->stage, m->qp_index);
		return 0;
	}
	if (m->ask.mirror)
		return eng_falcon_mirror(t, c);
	c->su->cookie = m->cookie;
	if (eng_startup_reply(t, c, m, true) != 0)
		eng_startup_fail(t, c, -ENOMEM);
	else if (c->falcon == NULL) { /* else once the initiator is ready */
		eng_startup_notice(t, c, ENG_TC_ESTABLISHED);
		eng_startup_hold(t, c);
	}
	eng_conn_bind(t, c, m->stage, m->qp_index);
	return 0;
}

static int
ctl_bind(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	if (c->release_due || (c->state != ECONN_ESTABLISHED && c->state != ECONN_DEAD))
		return -ENOENT;
	eng_conn_bind(t, c, m->stage, m->qp_index);
	return 0;
}

/* The request has its answer, and the connection is of no more use. */
static int
ctl_answer(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	bool found = m->type == ENG_CT_FOUND;

	if (c->state != ECONN_REQUESTED || (found && !c->su->ask.lookup))
		return -ENOENT;
	c->state = ECONN_DRAIN;
	/* Linux's siw sees a FIN before the bytes that come with it, and then looks for no private
	 * data: so it gets the one behind the other. */
	if ((found ? eng_falcon_found(t, c, m) : eng_startup_reply(t, c, m, false)) == 0)
		c->lingers = true;
	else
		tcp_abort(c->tcp, t->now);
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
	c->state = ECONN_DRAIN;
	if (c->falcon != NULL) {
		eng_conn_pend(t, c, ECONN_P_ABORT);
		return 0;
	}
	mpa_startup_abandon(&c->su->mpa);
	eng_startup_terminate(t, c);
	return 0;
}

static int
ctl_query(struct eng_conn *c, struct eng_ctl *m)
{
	if (c->tcp == NULL)
		return -ENOTCONN;
	m->tuple = *tcp_tuple(c->tcp);
	tcp_get_info(c->tcp, &m->info.tcp);
	return 0;
}

static int
ctl_conn(struct eng_transport *t, struct eng_ctl *m)
{
	struct eng_conn *c = m->conn < t->fresh ? &t->conns[m->conn] : NULL;

	if (c == NULL || c->state == ECONN_FREE)
		return -ENOENT;
	switch (m->type) {
	case ENG_CT_ACCEPT:
		return ctl_accept(t, c, m);
	case ENG_CT_BIND:
		return ctl_bind(t, c, m);
	case ENG_CT_FOUND:
	case ENG_CT_REJECT:
		return ctl_answer(t, c, m);
	case ENG_CT_ABORT:
		return ctl_abort(t, c, m->code);
	case ENG_CT_QUERY:
		return ctl_query(c, m);
	}
	return -EINVAL;
}

static int
transport_ctl_ctl_command(struct eng_transport *t, struct eng_ctl *m)
{
	struct eng_conn *c;
	int rc;

	switch (m->type) {
	case ENG_CT_LISTEN:
		return eng_transport_listen(t, m);
	case ENG_CT_UNLISTEN:
		return ctl_unlisten(t, m);
	case ENG_CT_CONNECT:
		rc = eng_startup_connect(t, m, &c);
		if (rc == 0)
			m->conn = c->index;
		return rc;
	case ENG_CT_NEIGHBORS:
		m->code = (int)net_neighbors(t->net, m->object, (unsigned)m->code);
		return 0;
	}
	return ctl_conn(t, m);
}

/* A message of our own has come back. */
static void
unasked_back(struct eng_transport *t, struct eng_ctl *m)
{
	t->unasked_free[t->nunasked++] = m;
	if (m->type == ENG_TC_FAILED || m->type == ENG_TC_REJECTED) {
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

		if (c->type >= ENG_TC_REQUEST) {
			unasked_back(t, c);
			continue;
		}
		c->status = transport_ctl_ctl_command(t, c);
		t->tcp_work = true;
		rte_ring_sp_enqueue(t->to_control, c);
	}
	return n > 0;
}
